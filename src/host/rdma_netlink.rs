//! RDMA netlink (`include/uapi/rdma/rdma_netlink.h`): who owns resources of an
//! RDMA device, as `rdma resource show` asks it. The packet crates do not know
//! this family.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use netlink_sys::{Socket, SocketAddr};

/// `NETLINK_RDMA` (`include/uapi/linux/netlink.h`).
const NETLINK_RDMA: isize = 20;
/// `RDMA_NL_NLDEV << 10`: the client's share of a message type.
const NLDEV: u16 = 5 << 10;
const CMD_GET: u16 = 1;
/// `RDMA_NLDEV_CMD_RES_*_GET`, each with its word.
const RESOURCES: [(u16, &str); 7] =
    [(10, "QP"), (11, "CM ID"), (12, "CQ"), (13, "MR"), (14, "PD"), (22, "context"), (23, "SRQ")];
const ATTR_DEV_INDEX: u16 = 1;
const ATTR_DEV_NAME: u16 = 2;
const ATTR_PID: u16 = 28;
const ATTR_KERN_NAME: u16 = 29;
/// Tables and their entries, which hold the attributes above.
const NESTED: [u16; 14] = [19, 20, 30, 31, 35, 36, 40, 41, 46, 47, 86, 87, 88, 89];

/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER: usize = 16;

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
    let mut indexes = BTreeMap::new();
    dump(CMD_GET, &[], |attributes| {
        let mut index = None;
        for (kind, value) in Attributes(attributes) {
            match kind {
                ATTR_DEV_INDEX => index = u32_of(value),
                ATTR_DEV_NAME => {
                    if let Some(index) = index {
                        indexes.insert(text_of(value), index);
                    }
                }
                _ => {}
            }
        }
    })?;
    let Some(index) = indexes.get(name).copied() else { return Ok(None) };
    let mut request = Vec::new();
    request.extend(8_u16.to_ne_bytes());
    request.extend(ATTR_DEV_INDEX.to_ne_bytes());
    request.extend(index.to_ne_bytes());
    let mut owners = BTreeSet::new();
    for (command, word) in RESOURCES {
        let asked = dump(command, &request, |attributes| collect(attributes, word, &mut owners));
        match asked {
            // Contexts and SRQs are younger than the rest; every user of them
            // that matters owns a PD as well.
            Err(e) if command >= 22 && is_unknown(&e) => {}
            other => other?,
        }
    }
    Ok(Some(owners))
}

fn is_unknown(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(nix::libc::EINVAL | nix::libc::EOPNOTSUPP | nix::libc::ENOENT))
}

fn collect(attributes: &[u8], word: &'static str, owners: &mut BTreeSet<(Owner, &'static str)>) {
    for (kind, value) in Attributes(attributes) {
        match kind {
            ATTR_PID => owners.extend(u32_of(value).map(|pid| (Owner::Process(pid), word))),
            ATTR_KERN_NAME => {
                owners.insert((Owner::Kernel(text_of(value)), word));
            }
            _ if NESTED.contains(&kind) => collect(value, word, owners),
            _ => {}
        }
    }
}

fn dump(command: u16, attributes: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_RDMA)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let length = u32::try_from(HEADER + attributes.len()).unwrap_or(u32::MAX);
    let mut request = Vec::new();
    request.extend(length.to_ne_bytes());
    request.extend((NLDEV | command).to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend(1_u32.to_ne_bytes());
    request.extend(0_u32.to_ne_bytes());
    request.extend(attributes);
    socket.send(&request, 0)?;
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        let mut rest = datagram.as_slice();
        while let Some((kind, payload, after)) = message(rest) {
            rest = after;
            match kind {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => {
                    let errno = payload.get(..4).and_then(u32_of).unwrap_or_default();
                    return match errno.cast_signed() {
                        0 => Ok(()),
                        e => Err(io::Error::from_raw_os_error(-e)),
                    };
                }
                _ => each(payload),
            }
        }
    }
}

/// The first message: its type, its payload, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(u32_of(bytes.get(..4)?)?).ok()?;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let payload = bytes.get(HEADER..length)?;
    let next = length.next_multiple_of(4);
    Some((kind, payload, bytes.get(next..).unwrap_or_default()))
}

/// Netlink attributes: type without its flags, and value.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16::from_ne_bytes(self.0.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(self.0.get(2..4)?.try_into().ok()?) & 0x3fff;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

fn u32_of(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(value.get(..4)?.try_into().ok()?))
}

fn text_of(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(u16::try_from(4 + value.len()).expect("length").to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn owners_are_found_below_tables_and_entries() {
        let entry = |inner: &[u8]| attribute(20 | 0x8000, inner);
        let mut table = entry(&attribute(ATTR_KERN_NAME, b"ib_ipoib\0"));
        table.extend(entry(&attribute(ATTR_PID, &4711_u32.to_ne_bytes())));
        let mut owners = BTreeSet::new();
        collect(&attribute(19 | 0x8000, &table), "QP", &mut owners);
        let want = [(Owner::Process(4711), "QP"), (Owner::Kernel("ib_ipoib".to_owned()), "QP")];
        assert_eq!(owners, BTreeSet::from(want));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            collect(&bytes, "QP", &mut BTreeSet::new());
            let _first = message(&bytes);
        }
    }
}
