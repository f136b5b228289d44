//! RDMA netlink (`include/uapi/rdma/rdma_netlink.h`): who owns resources of an
//! RDMA device, as `rdma resource show` asks it.

use std::collections::BTreeSet;
use std::io;

use netlink_packet_core::NLM_F_DUMP;
use netlink_sys::protocols::NETLINK_RDMA;

use super::netlink_wire::{Question, attribute, attributes, text_of, u32_at, value_of};

// What libc lacks: include/uapi/rdma/rdma_netlink.h.
/// `RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, 0)`: the client's share of a message type.
const NLDEV: u16 = 5 << 10;
const RDMA_NLDEV_CMD_GET: u16 = 1;
const RDMA_NLDEV_CMD_RES_CTX_GET: u16 = 22;
const RDMA_NLDEV_CMD_RES_SRQ_GET: u16 = 23;
/// `RDMA_NLDEV_CMD_RES_*_GET`, each with its word.
const RESOURCES: [(u16, &str); 7] = [
    (10, "QP"),
    (11, "CM ID"),
    (12, "CQ"),
    (13, "MR"),
    (14, "PD"),
    (RDMA_NLDEV_CMD_RES_CTX_GET, "context"),
    (RDMA_NLDEV_CMD_RES_SRQ_GET, "SRQ"),
];
const RDMA_NLDEV_ATTR_DEV_INDEX: u16 = 1;
const RDMA_NLDEV_ATTR_DEV_NAME: u16 = 2;
const RDMA_NLDEV_ATTR_RES_PID: u16 = 28;
const RDMA_NLDEV_ATTR_RES_KERN_NAME: u16 = 29;
/// `RDMA_NLDEV_ATTR_RES_*` and `_ENTRY`: tables and their entries, which hold the
/// attributes above. QP, CM_ID, CQ, MR, PD, CTX, SRQ.
const NESTED: [u16; 14] = [19, 20, 30, 31, 35, 36, 40, 41, 46, 47, 86, 87, 88, 89];

/// Who owns a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A process, by its id.
    Process(u32),
    /// A kernel module.
    Kernel(String),
}

/// The owners of resources of the RDMA device `name`, with the kind of
/// resource. `None` if the kernel knows no device of that name.
///
/// # Errors
/// The socket fails, or the kernel knows none of the questions (before 4.17).
pub fn owners(name: &str) -> io::Result<Option<BTreeSet<(Owner, &'static str)>>> {
    let named = |device: &[u8]| {
        let index = u32_at(value_of(device, RDMA_NLDEV_ATTR_DEV_INDEX)?, 0)?;
        (text_of(value_of(device, RDMA_NLDEV_ATTR_DEV_NAME)?) == name).then_some(index)
    };
    let Some(index) = dump(RDMA_NLDEV_CMD_GET, &[], named)?.pop() else { return Ok(None) };
    let request = attribute(RDMA_NLDEV_ATTR_DEV_INDEX, &index.to_ne_bytes());
    let mut owners = BTreeSet::new();
    for (command, word) in RESOURCES {
        let asked = dump(command, &request, |attributes| {
            collect(attributes, word, &mut owners);
            Some(())
        });
        match asked {
            // Contexts and SRQs are younger than the rest; every user of them
            // that matters owns a PD as well.
            Err(e) if command >= RDMA_NLDEV_CMD_RES_CTX_GET && is_unknown(&e) => {}
            other => drop(other?),
        }
    }
    Ok(Some(owners))
}

fn is_unknown(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(nix::libc::EINVAL | nix::libc::EOPNOTSUPP | nix::libc::ENOENT))
}

fn collect(table: &[u8], word: &'static str, owners: &mut BTreeSet<(Owner, &'static str)>) {
    for (kind, value) in attributes(table) {
        match kind {
            RDMA_NLDEV_ATTR_RES_PID => {
                owners.extend(u32_at(value, 0).map(|pid| (Owner::Process(pid), word)));
            }
            RDMA_NLDEV_ATTR_RES_KERN_NAME => {
                owners.insert((Owner::Kernel(text_of(value)), word));
            }
            _ if NESTED.contains(&kind) => collect(value, word, owners),
            _ => {}
        }
    }
}

fn dump<T>(
    command: u16,
    payload: &[u8],
    mut read: impl FnMut(&[u8]) -> Option<T>,
) -> io::Result<Vec<T>> {
    let kind = NLDEV | command;
    let question = Question { protocol: NETLINK_RDMA, kind, flags: NLM_F_DUMP, payload };
    question.ask(&mut |_, attributes| read(attributes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_found_below_tables_and_entries() {
        let entry = |inner: &[u8]| attribute(20 | 0x8000, inner);
        let mut table = entry(&attribute(RDMA_NLDEV_ATTR_RES_KERN_NAME, b"ib_ipoib\0"));
        table.extend(entry(&attribute(RDMA_NLDEV_ATTR_RES_PID, &4711_u32.to_ne_bytes())));
        let mut owners = BTreeSet::new();
        collect(&attribute(19 | 0x8000, &table), "QP", &mut owners);
        let want = [(Owner::Process(4711), "QP"), (Owner::Kernel("ib_ipoib".to_owned()), "QP")];
        assert_eq!(owners, BTreeSet::from(want));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            collect(&bytes, "QP", &mut BTreeSet::new());
        }
    }
}
