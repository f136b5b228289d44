//! Netlink messages as bytes (`include/uapi/linux/netlink.h`): one question,
//! its answers, attributes. What they mean is known to [`super::netlink`],
//! [`super::links`] and [`super::rdma_netlink`].
//!
//! By hand, because the crate that knows all of rtnetlink made the program a
//! tenth larger, and a few attributes are read of it.

use std::io;

use netlink_sys::{Socket, SocketAddr};
use nix::libc::{NLA_TYPE_MASK, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, c_int};

/// `struct nlmsghdr`.
const HEADER: usize = 16;

/// One question: its socket family, message type, flags and payload.
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) protocol: isize,
    pub(super) kind: u16,
    pub(super) flags: c_int,
    pub(super) payload: &'a [u8],
}

impl Question<'_> {
    /// Ask the kernel, and give each answer's type and payload to `each` until
    /// it says that there is no more.
    ///
    /// # Errors
    /// The socket fails; what the kernel answers; bytes that are no netlink.
    pub(super) fn ask(&self, each: &mut dyn FnMut(u16, &[u8])) -> io::Result<()> {
        let mut socket = Socket::new(self.protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.send(&self.bytes(), 0)?;
        loop {
            let (datagram, _) = socket.recv_from_full()?;
            if take(&datagram, each)? {
                return Ok(());
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(HEADER + self.payload.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::new();
        bytes.extend(length.to_ne_bytes());
        bytes.extend(self.kind.to_ne_bytes());
        let flags = u16::try_from(NLM_F_REQUEST | self.flags).unwrap_or_default();
        bytes.extend(flags.to_ne_bytes());
        // Sequence number and port: there is one question a socket.
        bytes.extend(1_u32.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(self.payload);
        bytes
    }
}

/// The messages of a datagram; true if there will be no more.
fn take(datagram: &[u8], each: &mut dyn FnMut(u16, &[u8])) -> io::Result<bool> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let (kind, payload, after) =
            message(rest).ok_or_else(|| io::Error::other("unreadable netlink message"))?;
        rest = after;
        match c_int::from(kind) {
            NLMSG_NOOP => {}
            // An acknowledgement is an error of number 0; a dump that failed
            // half way says so at its end.
            NLMSG_ERROR | NLMSG_DONE => {
                let errno = u32_at(payload, 0).unwrap_or_default().cast_signed();
                return if errno < 0 {
                    Err(io::Error::from_raw_os_error(errno.saturating_neg()))
                } else {
                    Ok(true)
                };
            }
            _ => each(kind, payload),
        }
    }
    Ok(false)
}

/// The first message: its type, its payload, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let kind = u16_at(bytes, 4)?;
    let payload = bytes.get(HEADER..length)?;
    let next = length.next_multiple_of(4);
    Some((kind, payload, bytes.get(next..).unwrap_or_default()))
}

/// Attributes: type without its flags, and value.
#[derive(Debug)]
pub(super) struct Attributes<'a>(pub(super) &'a [u8]);

impl<'a> Attributes<'a> {
    /// Those after a header of `length` bytes.
    pub(super) fn after(payload: &'a [u8], length: usize) -> Self {
        Self(payload.get(length..).unwrap_or_default())
    }

    /// The value of the first of this type.
    pub(super) fn value(self, kind: u16) -> Option<&'a [u8]> {
        self.into_iter().find(|(k, _)| *k == kind).map(|(_, value)| value)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16_at(self.0, 0)?);
        let kind = u16::try_from(c_int::from(u16_at(self.0, 2)?) & NLA_TYPE_MASK).ok()?;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

/// An attribute, padded.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(u16::try_from(4 + value.len()).unwrap_or(u16::MAX).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Text up to its NUL.
pub(super) fn text_of(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use nix::libc::{NLM_F_DUMP, RTM_GETLINK};

    use super::*;

    fn answer(kind: c_int, payload: &[u8]) -> Vec<u8> {
        let kind = u16::try_from(kind).expect("type");
        let question = Question { protocol: 0, kind, flags: 0, payload };
        let mut bytes = question.bytes();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn answers_come_until_the_end_or_an_error() {
        let mut seen = Vec::new();
        let mut datagram = answer(16, b"odd");
        datagram.extend(answer(20, b"even"));
        let more = take(&datagram, &mut |kind, payload| seen.push((kind, payload.to_vec())));
        assert!(!more.expect("messages"));
        assert_eq!(seen, [(16, b"odd".to_vec()), (20, b"even".to_vec())]);

        let none = &mut |_: u16, _: &[u8]| panic!("no message");
        assert!(take(&answer(NLMSG_DONE, &0_i32.to_ne_bytes()), none).expect("the end"));
        assert!(take(&answer(NLMSG_ERROR, &0_i32.to_ne_bytes()), none).expect("acknowledged"));
        for kind in [NLMSG_ERROR, NLMSG_DONE] {
            let e = take(&answer(kind, &(-19_i32).to_ne_bytes()), none).expect_err("ENODEV");
            assert_eq!(e.raw_os_error(), Some(19));
        }
        assert!(take(&[1, 2, 3], none).is_err());
    }

    #[test]
    fn attributes_are_read_as_they_are_written() {
        let mut bytes = attribute(3, b"ib0\0");
        bytes.extend(attribute(18 | 0x8000, &attribute(1, b"ipoib")));
        let read: Vec<_> = Attributes(&bytes).collect();
        assert_eq!(read[0], (3, b"ib0\0".as_slice()));
        assert_eq!(read[1].0, 18);
        assert_eq!(Attributes(read[1].1).value(1), Some(b"ipoib".as_slice()));
        assert_eq!(text_of(read[0].1), "ib0");
    }

    #[test]
    fn the_kernel_answers() {
        // By rtnetlink: every network namespace has a loopback.
        let question =
            Question { protocol: 0, kind: RTM_GETLINK, flags: NLM_F_DUMP, payload: &[0_u8; 16] };
        let mut names = Vec::new();
        let found = question.ask(&mut |_, payload| {
            names.extend(Attributes::after(payload, 16).value(3).map(text_of));
        });
        found.expect("links");
        assert!(names.contains(&"lo".to_owned()), "{names:?}");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let mut count = 0;
            drop(take(&bytes, &mut |_, payload| count += Attributes(payload).count()));
        }
    }
}
