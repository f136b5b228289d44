//! The states of many ports at once, each asked for by a child of its own: a
//! dead card holds up its own answer only.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;

use super::port_reader::PortReader;
use crate::host::clock;
use crate::names::{PciAddress, PortNumber, RdmaName};
use crate::observe::link::PortAnswer;

/// A port: its function, its RDMA device, its number.
pub type Key = (PciAddress, RdmaName, PortNumber);

/// What each of `ports` answered by `until_usec` of CLOCK_MONOTONIC.
#[must_use]
pub fn ask(ports: &[Key], until_usec: u64) -> Vec<Option<PortAnswer>> {
    let mut readers: Vec<Option<PortReader>> = ports
        .iter()
        .map(|(pci, device, port)| {
            let mut reader = PortReader::start(*pci, device, *port).ok()?;
            reader.ask().ok().map(|()| reader)
        })
        .collect();
    let mut answers: Vec<Option<PortAnswer>> = ports.iter().map(|_| None).collect();
    loop {
        for (reader, answer) in readers.iter_mut().zip(&mut answers) {
            match reader.as_mut().map(PortReader::answer) {
                Some(Ok(Some(got))) => {
                    *answer = Some(got);
                    *reader = None;
                }
                Some(Err(_)) => *reader = None,
                Some(Ok(None)) | None => {}
            }
        }
        let mut waiting: Vec<PollFd<'_>> = readers
            .iter()
            .flatten()
            .map(|reader| PollFd::new(reader.as_fd(), PollFlags::POLLIN))
            .collect();
        let left = until_usec.saturating_sub(clock::monotonic_usec()).div_ceil(1000);
        if waiting.is_empty() || left == 0 {
            return answers;
        }
        let timeout = i32::try_from(left).ok().and_then(|ms| PollTimeout::try_from(ms).ok());
        match poll(&mut waiting, timeout.unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return answers,
        }
    }
}
