//! Netlink messages: one question, its answers, attributes. What they mean is known
//! to [`super::netlink`], [`super::links`] and [`super::rdma_netlink`].
//!
//! Headers and attributes are taken apart and put together by netlink-packet-core.
//! What a dialogue with the kernel needs besides stands here.

use std::io;
use std::num::NonZeroI32;

use netlink_packet_core::{
    DefaultNla, DoneBuffer, Emitable, ErrorBuffer, NLA_HEADER_SIZE, NLM_F_DUMP_INTR, NLM_F_REQUEST,
    NLMSG_ALIGNTO, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN, NetlinkBuffer,
    NetlinkHeader, NlasIterator,
};
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;
use nix::libc::{MSG_PEEK, MSG_TRUNC, c_int};

/// What each receive offers, bytes. A dump's messages are packed into buffers as long
/// as the longest offer so far, up to 32 KiB, and not longer than the kernel's own
/// estimate where less was offered (`netlink_dump()`, net/netlink/af_netlink.c). The
/// estimate of a PF's link is too low by 40 bytes a VF before the fix of
/// `rtnl_vfinfo_size()` (2025), and a link that does not fit ends the dump with EMSGSIZE.
const OFFERED: usize = 64 << 10;

/// How often a list is read that changes while it is read.
const TRIES: usize = 4;

/// One question: its socket family, message type, flags and payload.
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) protocol: isize,
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) payload: &'a [u8],
}

/// Receives a datagram into the room that the buffer has, with these flags of recv(2).
pub(super) type Receive<'a> = &'a mut dyn FnMut(&mut Vec<u8>, c_int) -> io::Result<usize>;

/// What is made of a message, of its type and payload.
pub(super) type Read<'a, T> = &'a mut dyn FnMut(u16, &[u8]) -> Option<T>;

impl Question<'_> {
    /// Ask the kernel; what `read` makes of its answers.
    ///
    /// A list that changed while the kernel gave it is asked for again. One that
    /// always does is taken as it came last: it lacks what came or went meanwhile.
    ///
    /// # Errors
    /// The socket fails; what the kernel answers; ENOBUFS where answers were lost;
    /// bytes that are no netlink.
    pub(super) fn ask<T>(&self, read: Read<'_, T>) -> io::Result<Vec<T>> {
        self.answers(read).map(|answers| answers.read)
    }

    /// As [`Question::ask`], for a list of which nothing may be missing.
    ///
    /// # Errors
    /// As there, and if the list changed each time.
    pub(super) fn ask_whole<T>(&self, read: Read<'_, T>) -> io::Result<Vec<T>> {
        whole(self.answers(read)?)
    }

    fn answers<T>(&self, read: Read<'_, T>) -> io::Result<Answers<T>> {
        at_rest(&mut || {
            let mut socket = Socket::new(self.protocol)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            socket.send(&self.bytes()?, 0)?;
            answers(&mut |buffer, flags| socket.recv(buffer, flags), read)
        })
    }

    /// Have the kernel do something, which it acknowledges: NLM_F_ACK is among the flags.
    ///
    /// # Errors
    /// As [`Question::ask`].
    pub(super) fn tell(&self) -> io::Result<()> {
        self.ask(&mut |_, _| None::<()>).map(drop)
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut header = NetlinkHeader::default();
        let length = header.buffer_len() + self.payload.len();
        header.length = u32::try_from(length).map_err(io::Error::other)?;
        header.message_type = self.kind;
        header.flags = NLM_F_REQUEST | self.flags;
        // The port number is the kernel's, 0; there is one question a socket.
        header.sequence_number = 1;
        let mut bytes = vec![0; header.buffer_len()];
        header.emit(&mut bytes);
        bytes.extend(self.payload);
        Ok(bytes)
    }
}

/// What was answered to one question.
pub(super) struct Answers<T> {
    pub(super) read: Vec<T>,
    /// What was listed has changed meanwhile (NLM_F_DUMP_INTR).
    is_interrupted: bool,
}

/// The answers of the first of [`TRIES`] that nothing came in between, or the last.
fn at_rest<T>(ask: &mut dyn FnMut() -> io::Result<Answers<T>>) -> io::Result<Answers<T>> {
    for _ in 1..TRIES {
        let answers = ask()?;
        if !answers.is_interrupted {
            return Ok(answers);
        }
    }
    ask()
}

fn whole<T>(answers: Answers<T>) -> io::Result<Vec<T>> {
    if answers.is_interrupted {
        Err(io::Error::other("the kernel's list changed each time while it was read"))
    } else {
        Ok(answers.read)
    }
}

/// All answers, datagram by datagram, until the kernel says that there is no more.
pub(super) fn answers<T>(receive: Receive<'_>, read: Read<'_, T>) -> io::Result<Answers<T>> {
    let mut answers = Answers { read: Vec::new(), is_interrupted: false };
    let mut datagram = Vec::with_capacity(OFFERED);
    while {
        take_datagram(receive, &mut datagram)?;
        !take(&datagram, &mut answers, read)?
    } {}
    Ok(answers)
}

/// The next datagram, whole. Even the look at its length offers [`OFFERED`] bytes, as
/// the kernel goes on with its dump in each receive.
fn take_datagram(receive: Receive<'_>, datagram: &mut Vec<u8>) -> io::Result<()> {
    datagram.clear();
    let length = receive(datagram, MSG_PEEK | MSG_TRUNC)?;
    datagram.clear();
    datagram.reserve(length);
    let length = receive(datagram, MSG_TRUNC)?;
    if length > datagram.len() { Err(Errno::EMSGSIZE.into()) } else { Ok(()) }
}

/// The messages of a datagram; true if there will be no more.
fn take<T>(datagram: &[u8], answers: &mut Answers<T>, read: Read<'_, T>) -> io::Result<bool> {
    let unreadable = |_| io::Error::other("unreadable netlink message");
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkBuffer::new_checked(rest).map_err(unreadable)?;
        let payload = message.payload();
        answers.is_interrupted |= message.flags() & NLM_F_DUMP_INTR != 0;
        match message.message_type() {
            NLMSG_NOOP => {}
            NLMSG_OVERRUN => return Err(Errno::ENOBUFS.into()),
            // An acknowledgement is an error of number 0.
            NLMSG_ERROR => {
                let error = ErrorBuffer::new_checked(payload).map_err(unreadable)?;
                return ended(error.code().map_or(0, NonZeroI32::get));
            }
            NLMSG_DONE if payload.is_empty() => return Ok(true),
            // A dump that failed half way says so at its end.
            NLMSG_DONE => {
                return ended(DoneBuffer::new_checked(payload).map_err(unreadable)?.code());
            }
            kind => answers.read.extend(read(kind, payload)),
        }
        let length = usize::try_from(message.length()).map_err(io::Error::other)?;
        let next = length.next_multiple_of(usize::from(NLMSG_ALIGNTO));
        rest = rest.get(next..).unwrap_or_default();
    }
    Ok(false)
}

/// The end of the answers, with an error's number as the kernel gives it: negative.
fn ended(code: i32) -> io::Result<bool> {
    if code < 0 { Err(io::Error::from_raw_os_error(code.saturating_neg())) } else { Ok(true) }
}

/// Attributes, up to the first that is none: type without its flags, and value.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(|attribute| {
        let attribute = attribute.ok()?;
        let end = usize::from(attribute.length());
        Some((attribute.kind(), attribute.into_inner().get(NLA_HEADER_SIZE..end)?))
    })
}

/// Those after a header of `length` bytes.
pub(super) fn after(payload: &[u8], length: usize) -> &[u8] {
    payload.get(length..).unwrap_or_default()
}

/// The value of the first attribute of this type.
pub(super) fn value_of(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(k, _)| *k == kind).map(|(_, value)| value)
}

/// An attribute, padded.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let attribute = DefaultNla::new(kind, value.to_vec());
    let mut bytes = vec![0; attribute.buffer_len()];
    attribute.emit(&mut bytes);
    bytes
}

/// An attribute with `text`, which ends with a zero byte.
pub(super) fn text_attribute(kind: u16, text: &str) -> Vec<u8> {
    attribute(kind, format!("{text}\0").as_bytes())
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes)
}

/// Text up to its NUL. A name that is not UTF-8 is no reason to drop the message.
pub(super) fn text_of(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use netlink_packet_core::NLM_F_DUMP;
    use nix::libc::RTM_GETLINK;

    use super::*;

    fn answer(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
        let question = Question { protocol: 0, kind, flags, payload };
        let mut bytes = question.bytes().expect("short");
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    type Seen = (u16, Vec<u8>);

    /// What comes of these datagrams.
    fn heard(datagrams: &[&[u8]]) -> io::Result<Answers<Seen>> {
        let mut kernel = Kernel { datagrams: datagrams.iter().map(|d| d.to_vec()).collect() };
        answers(&mut |buffer, flags| Ok(kernel.give(buffer, flags)), &mut |kind, payload| {
            Some((kind, payload.to_vec()))
        })
    }

    /// Gives its datagrams as recv(2) does.
    struct Kernel {
        datagrams: VecDeque<Vec<u8>>,
    }

    impl Kernel {
        fn give(&mut self, buffer: &mut Vec<u8>, flags: c_int) -> usize {
            let datagram = self.datagrams.front().expect("another datagram").clone();
            if flags & MSG_PEEK == 0 {
                self.datagrams.pop_front();
            }
            let fits = datagram.len().min(buffer.capacity() - buffer.len());
            buffer.extend_from_slice(&datagram[..fits]);
            if flags & MSG_TRUNC == 0 { fits } else { datagram.len() }
        }
    }

    fn done(code: i32) -> Vec<u8> {
        answer(NLMSG_DONE, 0, &code.to_ne_bytes())
    }

    #[test]
    fn answers_come_until_the_end_or_an_error() {
        let two = [answer(16, 0, b"odd"), answer(20, 0, b"even")].concat();
        let seen = heard(&[&two, &answer(NLMSG_NOOP, 0, &[]), &done(0)]).expect("messages").read;
        assert_eq!(seen, [(16, b"odd".to_vec()), (20, b"even".to_vec())]);

        for end in [answer(NLMSG_ERROR, 0, &[0; 4]), done(0), answer(NLMSG_DONE, 0, &[])] {
            assert!(heard(&[&end]).expect("the end").read.is_empty());
        }
        for kind in [NLMSG_ERROR, NLMSG_DONE] {
            // With what the kernel has to say of it: the question, and attributes.
            let said = [(-19_i32).to_ne_bytes().as_slice(), &[7; 60]].concat();
            for payload in [&said[..4], &said] {
                let e = heard(&[&answer(kind, 0x300, payload)]).err().expect("ENODEV");
                assert_eq!(e.raw_os_error(), Some(19));
            }
            let e = heard(&[&answer(kind, 0, &i32::MIN.to_ne_bytes())]).err().expect("an error");
            assert_eq!(e.raw_os_error(), Some(i32::MAX));
            assert!(heard(&[&answer(kind, 0, &[1, 2])]).is_err(), "half a number is no end");
        }
        let lost = heard(&[&answer(NLMSG_OVERRUN, 0, &[]), &done(0)]).err().expect("ENOBUFS");
        assert_eq!(lost.raw_os_error(), Some(nix::libc::ENOBUFS));
        assert!(heard(&[&[1, 2, 3]]).is_err());
    }

    #[test]
    fn a_datagram_of_any_length_is_read_whole() {
        let long = answer(16, 0, &vec![7; 3 * OFFERED]);
        let seen = heard(&[&long, &done(0)]).expect("messages").read;
        assert_eq!(seen, [(16, vec![7; 3 * OFFERED])]);
        // A kernel that tells of less than it then has.
        let mut kernel = Kernel { datagrams: [long].into() };
        let read = take_datagram(
            &mut |buffer, flags| {
                let length = kernel.give(buffer, flags);
                Ok(if flags & MSG_PEEK == 0 { length } else { 20 })
            },
            &mut Vec::new(),
        );
        assert_eq!(read.expect_err("cut").raw_os_error(), Some(nix::libc::EMSGSIZE));
    }

    #[test]
    fn a_link_longer_than_the_kernels_estimate_of_it_comes() {
        // netlink_dump(): the next datagram is made in each receive, peeks too, as
        // long as was offered by then.
        let links = [vec![1; 900], vec![2; 9000]];
        let (mut made, mut offered, mut queue) = (1, 0, VecDeque::from([answer(16, 0, &links[0])]));
        let mut receive = |buffer: &mut Vec<u8>, flags: c_int| {
            offered = offered.max(buffer.capacity() - buffer.len()).min(16 << 10);
            queue.push_back(match links.get(made) {
                Some(link) if link.len() < offered.max(3700) => answer(16, 0, link),
                Some(_) => done(-nix::libc::EMSGSIZE),
                None => done(0),
            });
            made += 1;
            let mut kernel = Kernel { datagrams: std::mem::take(&mut queue) };
            let given = kernel.give(buffer, flags);
            queue = kernel.datagrams;
            Ok(given)
        };
        let seen = answers(&mut receive, &mut |_, link| Some(link.to_vec())).expect("both links");
        assert_eq!(seen.read, links);
    }

    #[test]
    fn a_list_that_changed_while_it_was_given_is_asked_for_again() {
        let changed = [answer(16, NLM_F_DUMP_INTR, b"half"), done(0)].concat();
        let unchanged = [answer(16, 0, b"half"), answer(16, 0, b"half"), done(0)].concat();
        let mut asked = 0;
        let read = at_rest(&mut || {
            asked += 1;
            heard(&[if asked < 3 { &changed } else { &unchanged }])
        });
        let read = read.expect("answers");
        assert_eq!((read.read.len(), asked), (2, 3));
        assert_eq!(whole(read).expect("nothing came in between").len(), 2);
        let mut asked = 0;
        let read = at_rest(&mut || {
            asked += 1;
            heard(&[&changed])
        });
        let read = read.expect("the last answers");
        assert_eq!((read.read.len(), asked), (1, TRIES));
        assert!(whole(read).is_err(), "something may be missing");
    }

    #[test]
    fn attributes_are_read_as_they_are_written() {
        let mut bytes = attribute(3, b"ib0\0");
        bytes.extend(attribute(18 | 0x8000, &attribute(1, b"ipoib")));
        assert_eq!(bytes[..8], *b"\x08\0\x03\0ib0\0");
        assert_eq!(bytes[8..], *b"\x10\0\x12\x80\x09\0\x01\0ipoib\0\0\0");
        let read: Vec<_> = attributes(&bytes).collect();
        assert_eq!(read[0], (3, b"ib0\0".as_slice()));
        assert_eq!(read[1].0, 18);
        assert_eq!(value_of(read[1].1, 1), Some(b"ipoib".as_slice()));
        assert_eq!(text_of(read[0].1), "ib0");
        // What is cut ends the list.
        assert_eq!(attributes(&bytes[..15]).count(), 1);
        assert_eq!(attributes(&[4, 0, 3]).count(), 0);
        assert_eq!(attributes(&[3, 0, 3, 0, 4, 0, 3, 0]).count(), 0);
    }

    #[test]
    fn the_kernel_answers() {
        // By rtnetlink: every network namespace has a loopback.
        let question =
            Question { protocol: 0, kind: RTM_GETLINK, flags: NLM_F_DUMP, payload: &[0_u8; 16] };
        let names = question.ask(&mut |_, payload| value_of(after(payload, 16), 3).map(text_of));
        let names = names.expect("links");
        assert!(names.contains(&"lo".to_owned()), "{names:?}");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let mut answers = Answers { read: Vec::new(), is_interrupted: false };
            drop(take(&bytes, &mut answers, &mut |_, payload| Some(attributes(payload).count())));
        }

        /// The same, where lengths and types are such as get far.
        #[test]
        fn no_messages_panic(
            parts: Vec<(u8, u8, Vec<u8>)>,
        ) {
            let mut bytes = Vec::new();
            for (length, kind, rest) in parts {
                bytes.extend([length, 0, 0, 0, kind % 8, 0, 16, 3]);
                bytes.extend(rest);
            }
            let mut answers = Answers { read: Vec::new(), is_interrupted: false };
            drop(take(&bytes, &mut answers, &mut |_, payload| Some(attributes(payload).count())));
            let _count = attributes(&bytes).count();
        }
    }
}
