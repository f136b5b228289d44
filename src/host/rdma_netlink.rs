//! RDMA netlink (`include/uapi/rdma/rdma_netlink.h`): who owns resources of an
//! RDMA device, as `rdma resource show` asks it.

use std::collections::BTreeSet;
use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP};
use netlink_sys::protocols::NETLINK_RDMA;

use super::netlink_wire::{
    Question, attribute, attributes, text_attribute, text_of, u32_at, value_of,
};
use crate::names::{IfName, NetnsMode, RdmaName};

// What libc lacks: include/uapi/rdma/rdma_netlink.h.
/// `RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, 0)`: the client's share of a message type.
const NLDEV: u16 = 5 << 10;
const RDMA_NLDEV_CMD_GET: u16 = 1;
const RDMA_NLDEV_CMD_SET: u16 = 2;
const RDMA_NLDEV_CMD_NEWLINK: u16 = 3;
const RDMA_NLDEV_CMD_SYS_GET: u16 = 6;
const RDMA_NLDEV_CMD_SYS_SET: u16 = 7;
const RDMA_NLDEV_CMD_RES_PD_GET: u16 = 14;
const RDMA_NLDEV_CMD_RES_CTX_GET: u16 = 22;
const RDMA_NLDEV_CMD_RES_SRQ_GET: u16 = 23;
const RDMA_NLDEV_CMD_RES_QP_GET: u16 = 10;
const RDMA_NLDEV_CMD_RES_CM_ID_GET: u16 = 11;
/// The others of `RDMA_NLDEV_CMD_RES_*_GET`, each with its word.
const OTHERS: [(u16, &str); 5] = [
    (12, "CQ"),
    (13, "MR"),
    (RDMA_NLDEV_CMD_RES_PD_GET, "PD"),
    (RDMA_NLDEV_CMD_RES_CTX_GET, "context"),
    (RDMA_NLDEV_CMD_RES_SRQ_GET, "SRQ"),
];
const RDMA_NLDEV_ATTR_DEV_INDEX: u16 = 1;
const RDMA_NLDEV_ATTR_DEV_NAME: u16 = 2;
const RDMA_NLDEV_ATTR_PORT_INDEX: u16 = 3;
const RDMA_NLDEV_ATTR_NDEV_NAME: u16 = 51;
const RDMA_NLDEV_ATTR_LINK_TYPE: u16 = 65;
const RDMA_NLDEV_ATTR_RES_PID: u16 = 28;
const RDMA_NLDEV_ATTR_RES_KERN_NAME: u16 = 29;
const RDMA_NLDEV_ATTR_RES_STATE: u16 = 27;
const RDMA_NLDEV_ATTR_RES_SRC_ADDR: u16 = 33;
const RDMA_NLDEV_SYS_ATTR_NETNS_MODE: u16 = 66;
/// `RDMA_NLDEV_ATTR_RES_*`: tables of QPs, CM ids, CQs, MRs, PDs, contexts, SRQs.
const TABLES: [u16; 7] = [19, 30, 35, 40, 46, 86, 88];
/// `RDMA_NLDEV_ATTR_RES_*_ENTRY`: what is in them.
const ENTRIES: [u16; 7] = [20, 31, 36, 41, 47, 87, 89];

/// States of a QP in which it has a peer or sends (`enum ib_qp_state`,
/// `include/rdma/ib_verbs.h`): RTR, RTS, SQD, SQE.
const CONNECTED: std::ops::RangeInclusive<u8> = 2..=5;
/// `RDMA_CM_LISTEN` (`enum rdma_cm_state`, `include/rdma/rdma_cm.h`).
const LISTENING: u8 = 8;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A process, by its id.
    Process(u32),
    Kernel(String),
    /// A process whose thread that made it has ended: the kernel keeps that thread and does
    /// not tell of whom it was (`fill_res_name_pid()`, drivers/infiniband/core/nldev.c).
    EndedThread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    Qp {
        /// It is ready to receive or to send. True where the kernel does not tell.
        is_connected: bool,
    },
    /// An identifier of the connection manager (`rdma_cm`).
    CmId {
        /// The port that it is bound to, if the kernel tells.
        port: Option<u32>,
        /// It listens at no address of its own: such a one is made on every device
        /// there is (`cma_listen_on_dev()`, `drivers/infiniband/core/cma.c`).
        is_wildcard_listener: bool,
    },
    /// Anything else, by its word: `CQ`, `MR`, `PD`, `context`, `SRQ`.
    Other(&'static str),
}

impl Resource {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Qp { .. } => "QP",
            Self::CmId { .. } => "CM ID",
            Self::Other(word) => word,
        }
    }
}

/// The owners of resources of the RDMA device `name`, with what they own; none if the kernel
/// knows no device of that name.
///
/// # Errors
/// The socket fails, or the kernel knows none of the questions (before 4.17).
pub fn owners(name: &str) -> io::Result<BTreeSet<(Owner, Resource)>> {
    let Some(index) = index_of(name)? else { return Ok(BTreeSet::new()) };
    let mut owners = BTreeSet::new();
    owners.extend(owned(index, RDMA_NLDEV_CMD_RES_QP_GET, &qp)?);
    owners.extend(owned(index, RDMA_NLDEV_CMD_RES_CM_ID_GET, &cm_id)?);
    for (command, word) in OTHERS {
        match owned(index, command, &|_| Resource::Other(word)) {
            // Contexts and SRQs are younger than the rest; every user of them
            // that matters owns a PD as well.
            Err(e) if command >= RDMA_NLDEV_CMD_RES_CTX_GET && is_unknown(&e) => {}
            other => owners.extend(other?),
        }
    }
    Ok(owners)
}

/// The identifiers of the connection manager of the RDMA device `name`, each with its owner.
/// Like [`modules_with_pd`] it asks no firmware. None if the kernel knows no device of that
/// name.
///
/// # Errors
/// As [`modules_with_pd`].
pub fn cm_ids(name: &str) -> io::Result<BTreeSet<(Owner, Resource)>> {
    let Some(index) = index_of(name)? else { return Ok(BTreeSet::new()) };
    Ok(owned(index, RDMA_NLDEV_CMD_RES_CM_ID_GET, &cm_id)?.into_iter().collect())
}

/// The kernel modules that own protection domains of the RDMA device `name`, one for each
/// protection domain. Unlike [`owners`] it asks no firmware, as the driver is asked for the
/// state of each queue pair. None if the kernel knows no device of that name.
///
/// # Errors
/// The socket fails, or the kernel does not know the question (before 4.17).
pub fn modules_with_pd(name: &str) -> io::Result<Vec<String>> {
    let Some(index) = index_of(name)? else { return Ok(Vec::new()) };
    let owners = owned(index, RDMA_NLDEV_CMD_RES_PD_GET, &|_| Resource::Other("PD"))?;
    let modules = owners.into_iter().filter_map(|(owner, _)| match owner {
        Owner::Kernel(module) => Some(module),
        Owner::Process(_) | Owner::EndedThread => None,
    });
    Ok(modules.collect())
}

/// The resources of the RDMA device `index` that `command` lists, each as `what` reads it.
fn owned(
    index: u32,
    command: u16,
    what: &dyn Fn(&[u8]) -> Resource,
) -> io::Result<Vec<(Owner, Resource)>> {
    let request = attribute(RDMA_NLDEV_ATTR_DEV_INDEX, &index.to_ne_bytes());
    Ok(dump(command, &request, |message| Some(entries(message, what)))?.concat())
}

/// The kernel's number of the RDMA device `name`.
fn index_of(name: &str) -> io::Result<Option<u32>> {
    let named = |device: &[u8]| {
        let index = u32_at(value_of(device, RDMA_NLDEV_ATTR_DEV_INDEX)?, 0)?;
        (text_of(value_of(device, RDMA_NLDEV_ATTR_DEV_NAME)?) == name).then_some(index)
    };
    Ok(dump(RDMA_NLDEV_CMD_GET, &[], named)?.pop())
}

/// Give the RDMA device `name` another name. Nothing is done if it has that.
///
/// # Errors
/// ENODEV: the kernel knows no device of that name; EEXIST: another one is called so;
/// before Linux 4.20 it cannot (EOPNOTSUPP or EINVAL).
pub fn rename(name: &str, to: &RdmaName) -> io::Result<()> {
    let index = index_of(name)?.ok_or_else(|| io::Error::from(nix::errno::Errno::ENODEV))?;
    let device = attribute(RDMA_NLDEV_ATTR_DEV_INDEX, &index.to_ne_bytes());
    let body = [device, text_attribute(RDMA_NLDEV_ATTR_DEV_NAME, to.as_str())].concat();
    question(RDMA_NLDEV_CMD_SET, NLM_F_ACK, &body).tell()
}

/// Create an RDMA device of software: `kind` is `rxe` or `siw`. The kernel loads the module
/// of that kind (`nldev_newlink()`, drivers/infiniband/core/nldev.c), if ib_core is there.
///
/// # Errors
/// EEXIST: `netdev` has one; ENFILE: another RDMA device is called so; ENODEV: there is no
/// such netdev; EINVAL: no module offers this kind; EPERM: `netdev` is a VLAN.
pub fn add_link(name: &RdmaName, kind: &str, netdev: &IfName) -> io::Result<()> {
    let body = [
        text_attribute(RDMA_NLDEV_ATTR_DEV_NAME, name.as_str()),
        text_attribute(RDMA_NLDEV_ATTR_LINK_TYPE, kind),
        text_attribute(RDMA_NLDEV_ATTR_NDEV_NAME, netdev.as_str()),
    ]
    .concat();
    question(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK, &body).tell()
}

/// Whether RDMA devices are shared by all network namespaces.
///
/// # Errors
/// The socket fails; before Linux 5.2 it cannot (EOPNOTSUPP or EINVAL).
pub fn netns_mode() -> io::Result<NetnsMode> {
    let question = question(RDMA_NLDEV_CMD_SYS_GET, NLM_F_ACK, &[]);
    let answers = question.ask(&mut |_, attributes| mode_in(attributes))?;
    answers.first().copied().ok_or_else(|| io::Error::other("the kernel's answer has no mode"))
}

pub(super) fn mode_in(attributes: &[u8]) -> Option<NetnsMode> {
    match value_of(attributes, RDMA_NLDEV_SYS_ATTR_NETNS_MODE)?.first()? {
        0 => Some(NetnsMode::Exclusive),
        1 => Some(NetnsMode::Shared),
        _ => None,
    }
}

/// Have RDMA devices shared by all network namespaces, or not.
///
/// # Errors
/// EBUSY: there is a network namespace beside the first (`rdma_compatdev_set()`,
/// drivers/infiniband/core/device.c); EPERM: without CAP_NET_ADMIN in the first user
/// namespace; before Linux 5.2 it cannot (EOPNOTSUPP or EINVAL).
pub fn set_netns_mode(mode: NetnsMode) -> io::Result<()> {
    let body = attribute(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, &[mode.number()]);
    question(RDMA_NLDEV_CMD_SYS_SET, NLM_F_ACK, &body).tell()
}

pub(super) fn qp(entry: &[u8]) -> Resource {
    let state = value_of(entry, RDMA_NLDEV_ATTR_RES_STATE).and_then(|v| v.first());
    Resource::Qp { is_connected: state.is_none_or(|state| CONNECTED.contains(state)) }
}

/// The kernel leaves the address out where there is none (`fill_res_cm_id_entry()`,
/// `drivers/infiniband/core/nldev.c`); its family is in host byte order.
pub(super) fn cm_id(entry: &[u8]) -> Resource {
    let state = value_of(entry, RDMA_NLDEV_ATTR_RES_STATE).and_then(|v| v.first());
    let address = value_of(entry, RDMA_NLDEV_ATTR_RES_SRC_ADDR);
    let bytes = |address: &[u8]| {
        let family: [u8; 2] = address.get(..2)?.try_into().ok()?;
        // struct sockaddr_in, sockaddr_in6, sockaddr_ib (include/uapi/rdma/ib.h).
        let at = match i32::from(u16::from_ne_bytes(family)) {
            nix::libc::AF_INET => 4..8,
            nix::libc::AF_INET6 | nix::libc::AF_IB => 8..24,
            _ => return None,
        };
        address.get(at).map(<[u8]>::to_vec)
    };
    let is_any = address.is_none_or(|a| bytes(a).is_some_and(|b| b.iter().all(|b| *b == 0)));
    let port = value_of(entry, RDMA_NLDEV_ATTR_PORT_INDEX).and_then(|v| u32_at(v, 0));
    Resource::CmId { port, is_wildcard_listener: state == Some(&LISTENING) && is_any }
}

fn is_unknown(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(nix::libc::EINVAL | nix::libc::EOPNOTSUPP | nix::libc::ENOENT))
}

/// The entries of the tables in `message`, each as `what` reads it.
pub(super) fn entries(message: &[u8], what: &dyn Fn(&[u8]) -> Resource) -> Vec<(Owner, Resource)> {
    let tables = attributes(message).filter(|(kind, _)| TABLES.contains(kind));
    let entries = tables.flat_map(|(_, table)| attributes(table));
    let owned = |(_, entry): (u16, &[u8])| {
        let process = value_of(entry, RDMA_NLDEV_ATTR_RES_PID).and_then(|v| u32_at(v, 0));
        let module = value_of(entry, RDMA_NLDEV_ATTR_RES_KERN_NAME).map(text_of);
        let owner = module.map(Owner::Kernel).or(process.map(Owner::Process));
        (owner.unwrap_or(Owner::EndedThread), what(entry))
    };
    entries.filter(|(kind, _)| ENTRIES.contains(kind)).map(owned).collect()
}

fn dump<T>(
    command: u16,
    payload: &[u8],
    mut read: impl FnMut(&[u8]) -> Option<T>,
) -> io::Result<Vec<T>> {
    question(command, NLM_F_DUMP, payload).ask(&mut |_, attributes| read(attributes))
}

const fn question(command: u16, flags: u16, payload: &[u8]) -> Question<'_> {
    Question { protocol: NETLINK_RDMA, kind: NLDEV | command, flags, payload }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(kind: u16, inner: &[u8]) -> Vec<u8> {
        attribute(kind | 0x8000, inner)
    }

    fn read(what: &dyn Fn(&[u8]) -> Resource, message: &[u8]) -> Vec<(Owner, Resource)> {
        BTreeSet::from_iter(entries(message, what)).into_iter().collect()
    }

    fn qp_of(owner: &[u8], state: u8) -> Vec<u8> {
        nested(20, &[owner, &attribute(RDMA_NLDEV_ATTR_RES_STATE, &[state])].concat())
    }

    #[test]
    fn owners_are_found_below_tables_and_entries() {
        let module = attribute(RDMA_NLDEV_ATTR_RES_KERN_NAME, b"ib_ipoib\0");
        let process = attribute(RDMA_NLDEV_ATTR_RES_PID, &4711_u32.to_ne_bytes());
        let table = [qp_of(&module, 3), qp_of(&process, 1), qp_of(&[], 3)].concat();
        let got = read(&qp, &nested(19, &table));
        assert_eq!(
            got,
            [
                (Owner::Process(4711), Resource::Qp { is_connected: false }),
                (Owner::Kernel("ib_ipoib".to_owned()), Resource::Qp { is_connected: true }),
                (Owner::EndedThread, Resource::Qp { is_connected: true }),
            ]
        );
    }

    #[test]
    fn a_listener_at_no_address_is_told_from_one_at_an_address() {
        let at = |family: i32, address: &[u8]| {
            let family = u16::try_from(family).expect("family").to_ne_bytes();
            // Ports or flow labels stand before the address.
            let before: &[u8] =
                if address.len() == 4 { &[0x50, 1] } else { &[0x50, 1, 9, 9, 9, 9] };
            let padding = vec![0; 128 - 2 - before.len() - address.len()];
            let all = [&family, before, address, &padding].concat();
            attribute(RDMA_NLDEV_ATTR_RES_SRC_ADDR, &all)
        };
        let is_wildcard = |state: u8, address: &[u8]| {
            let owner = attribute(RDMA_NLDEV_ATTR_RES_KERN_NAME, b"rpcrdma\0");
            let state = attribute(RDMA_NLDEV_ATTR_RES_STATE, &[state]);
            let entry = nested(31, &[&owner[..], &state, address].concat());
            match read(&cm_id, &nested(30, &entry))[..] {
                [(_, Resource::CmId { is_wildcard_listener, .. })] => is_wildcard_listener,
                ref other => panic!("{other:?}"),
            }
        };
        assert!(is_wildcard(LISTENING, &at(nix::libc::AF_INET, &[0; 4])));
        assert!(is_wildcard(LISTENING, &at(nix::libc::AF_INET6, &[0; 16])));
        assert!(is_wildcard(LISTENING, &[]));
        assert!(!is_wildcard(LISTENING, &at(nix::libc::AF_INET, &[10, 0, 0, 1])));
        assert!(!is_wildcard(LISTENING, &at(nix::libc::AF_INET6, &[0xfe; 16])));
        // One that is connected is no listener, whatever its address.
        assert!(!is_wildcard(5, &at(nix::libc::AF_INET, &[0; 4])));
        // What is not understood is not taken for a wildcard.
        assert!(!is_wildcard(LISTENING, &at(nix::libc::AF_UNIX, &[0; 4])));
    }

    #[test]
    fn an_identifier_is_of_the_port_that_it_is_bound_to() {
        let port = |entry: &[u8]| match cm_id(entry) {
            Resource::CmId { port, .. } => port,
            other => panic!("{other:?}"),
        };
        let bound = attribute(RDMA_NLDEV_ATTR_PORT_INDEX, &2_u32.to_ne_bytes());
        assert_eq!((port(&bound), port(&[])), (Some(2), None));
    }

    #[test]
    fn the_mode_that_is_set_is_the_mode_that_is_read() {
        for mode in [NetnsMode::Exclusive, NetnsMode::Shared] {
            let body = attribute(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, &[mode.number()]);
            assert_eq!(mode_in(&body), Some(mode));
            let text = mode.number().to_string();
            assert_eq!(NetnsMode::from_parameter(&text), Some(mode));
        }
        assert_eq!(mode_in(&[]), None);
        assert_eq!(mode_in(&attribute(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, &[7])), None);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            for what in [&qp as &dyn Fn(&[u8]) -> Resource, &cm_id] {
                read(what, &bytes);
                read(what, &nested(19, &nested(20, &bytes)));
                what(&bytes);
            }
        }
    }
}
