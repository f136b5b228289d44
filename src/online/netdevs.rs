//! What of netdevs waits for the RTNL lock, which a sick driver holds for as long as
//! its card does not answer: their carrier (since Linux 6.8) and their addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use crate::names::IfName;
use crate::workers::{Answer, Client, Request};

/// The netdevs that are asked about. One child does it for all: whoever holds the
/// lock holds it against all.
#[derive(Debug, Default)]
pub(super) struct Netdevs {
    child: Option<Client<'static>>,
    /// Questions without an answer, each with the netdev whose carrier it is for;
    /// without one: for the addresses.
    open: BTreeMap<u64, Option<IfName>>,
    since: u64,
    /// Something has happened since the questions were asked.
    is_stale: bool,
    carriers: BTreeMap<IfName, bool>,
    addresses: Option<Vec<(u32, IpAddr, u8)>>,
    problem: Option<String>,
}

impl Netdevs {
    /// Ask about these netdevs, and no others. While answers are owed, they are asked
    /// about once more when the answers have come.
    pub(super) fn ask(&mut self, netdevs: Vec<IfName>, now: u64) {
        self.carriers.retain(|known, _| netdevs.contains(known));
        if !self.open.is_empty() {
            self.is_stale = true;
            return;
        }
        (self.is_stale, self.since) = (false, now);
        let child = self.child.get_or_insert_with(|| Client::live().patient());
        self.open.insert(child.ask(&Request::GlobalAddresses), None);
        for netdev in netdevs {
            self.open.insert(child.ask(&Request::Carrier(netdev.clone())), Some(netdev));
        }
    }

    /// All answers have come, and something has happened since they were asked for.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale && self.open.is_empty()
    }

    /// What can be read when an answer has come.
    pub(super) fn answers_come(&self) -> Option<BorrowedFd<'_>> {
        self.child.as_ref().and_then(Client::fd)
    }

    /// Take the answers that have come.
    pub(super) fn take_answers(&mut self) {
        for (number, reply) in self.child.iter_mut().flat_map(Client::replies) {
            let Some(of) = self.open.remove(&number) else { continue };
            match (of, reply) {
                (Some(netdev), Ok(Answer::Carrier(carrier))) => {
                    self.carriers.insert(netdev, carrier);
                }
                (None, Ok(Answer::GlobalAddresses(found))) => self.addresses = Some(found),
                (_, Ok(other)) => self.problem = Some(format!("an unexpected answer: {other:?}")),
                (of, Err(why)) => {
                    self.problem = Some(why.to_string());
                    match of {
                        Some(netdev) => drop(self.carriers.remove(&netdev)),
                        // That there is none would be a statement; it is not one of the port.
                        None => self.addresses = Some(Vec::new()),
                    }
                }
            }
        }
    }

    /// For how long answers have been owed, microseconds; 0 if none is.
    pub(super) fn silent_usec(&self, now: u64) -> u64 {
        if self.open.is_empty() { 0 } else { now.saturating_sub(self.since).max(1) }
    }

    /// Whether the netdev has carrier, if that is known.
    pub(super) fn carrier(&self, netdev: &IfName) -> Option<bool> {
        self.carriers.get(netdev).copied()
    }

    /// The addresses of all netdevs of this host, each with the index of its netdev and
    /// its prefix length, if they are known.
    pub(super) fn addresses(&self) -> Option<&[(u32, IpAddr, u8)]> {
        self.addresses.as_deref()
    }

    /// What went wrong since the last call.
    pub(super) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }
}
