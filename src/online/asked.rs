//! What children are asked while it is waited: the state of ports, and what of netdevs waits for
//! the RTNL lock, which a sick driver holds for as long as its card does not answer: their carrier
//! (since Linux 6.8) and their addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

use super::judge::{SILENCE, Seen};
use crate::ladder::active::Subject;
use crate::model::PortProgress;
use crate::names::{IfName, Moment, PciAddress, PortNumber, RdmaName};
use crate::observe::link::PortAnswer;
use crate::observe::{Observed, PciFunction};
use crate::workers::{Answer, Client, Failure, Request};

/// Which port is asked. A new name, or another function under it, is a new port.
type Key = (PciAddress, RdmaName, PortNumber);

/// Starts a child that takes as long as it needs.
pub(super) type Start = Rc<dyn Fn() -> Client<'static>>;

/// The ports whose state is asked for. There is a child for each function: a card
/// that hangs holds up the answers of its own ports only, whatever number of VFs it
/// has.
pub(super) struct Ports {
    start: Start,
    children: BTreeMap<PciAddress, Client<'static>>,
    asked: BTreeMap<Key, Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    /// The question that has no answer yet, and since when.
    open: Option<(u64, Moment)>,
    last: Option<PortAnswer>,
    /// Why it cannot be asked.
    failure: Option<String>,
}

fn key(port: &PortProgress) -> Option<Key> {
    // Below `rdma` there is nobody to ask; a port in Ethernet mode has no SM.
    let ask = !port.is_ethernet();
    ask.then(|| Some((port.pci?, port.rdma.clone()?, port.port?))).flatten()
}

impl Ports {
    pub(super) const fn new(start: Start) -> Self {
        Self { start, children: BTreeMap::new(), asked: BTreeMap::new() }
    }

    /// Ask those of `progress` from now on, and no others.
    pub(super) fn follow(&mut self, progress: &[PortProgress], now: Moment) {
        let wanted: Vec<Key> = progress.iter().filter_map(key).collect();
        self.asked.retain(|key, _| wanted.contains(key));
        self.children.retain(|pci, _| wanted.iter().any(|(of, ..)| of == pci));
        for key in wanted {
            if !self.asked.contains_key(&key) {
                self.asked.insert(key.clone(), Asked::default());
                self.ask_one(&key, now);
            }
        }
    }

    /// Ask every port that owes no answer.
    pub(super) fn ask(&mut self, now: Moment) {
        let keys: Vec<Key> = self.asked.keys().cloned().collect();
        for key in keys {
            self.ask_one(&key, now);
        }
    }

    fn ask_one(&mut self, key: &Key, now: Moment) {
        let Some(asked) = self.asked.get_mut(key) else { return };
        if asked.open.is_none() && asked.failure.is_none() {
            let (pci, device, port) = key.clone();
            // One that is silent is at work, and is not asked again before it answers.
            let child = self.children.entry(pci).or_insert_with(|| (self.start)());
            asked.open = Some((child.ask(&Request::Port { pci, device, port }), now));
        }
    }

    /// What can be read when an answer has come.
    pub(super) fn answers_come(&self) -> Vec<BorrowedFd<'_>> {
        self.children.values().filter_map(Client::fd).collect()
    }

    /// Take the answers that have come.
    pub(super) fn take_answers(&mut self) {
        for (pci, child) in &mut self.children {
            for (number, reply) in child.replies() {
                let of_child = self.asked.iter_mut().filter(|((of, ..), _)| of == pci);
                let mut asked = of_child.map(|(_, asked)| asked);
                if let Some(asked) =
                    asked.find(|asked| asked.open.is_some_and(|(open, _)| open == number))
                {
                    asked.take(reply);
                }
            }
        }
    }

    /// Until when answers are waited for; `None` if none is to
    /// come.
    pub(super) fn due(&self, now: Moment) -> Option<Moment> {
        let open = self.asked.values().filter_map(|asked| asked.open);
        open.map(|(_, since)| since + SILENCE).filter(|until| *until > now).min()
    }

    /// What is known of `port`.
    pub(super) fn seen(&self, port: &PortProgress, observed: &Observed, now: Moment) -> Seen {
        let asked = key(port).and_then(|key| self.asked.get(&key));
        let function = observed.functions.iter().find(|f| Some(f.address) == port.pci);
        let waits = asked.and_then(|asked| asked.open);
        Seen {
            answer: asked.and_then(|a| a.last.clone()),
            silent: waits.map(|(_, since)| now.since(since)).unwrap_or_default(),
            cannot_ask: asked.and_then(|a| a.failure.clone()),
            subject: Subject {
                pci: port.pci,
                at: port.mad_port(),
                vf: function.map(PciFunction::is_vf).unwrap_or_default(),
                driver: function.and_then(|f| f.driver.clone()).unwrap_or_default(),
                beside: self.asked.iter().find_map(|((pci, device, number), asked)| {
                    let link = &asked.last.as_ref()?.link;
                    let is_other = Some(*pci) != port.pci || Some(*number) != port.port;
                    (is_other && link.is_active()).then(|| format!("{device}/{number}"))
                }),
            },
            ..Seen::default()
        }
    }
}

impl Asked {
    fn take(&mut self, reply: Result<Answer, Failure>) {
        self.open = None;
        match reply {
            Ok(Answer::Port { answer, .. }) => self.last = Some(answer),
            Err(Failure::NoChild(why)) => {
                self.lose(&format!("the process that asks for it has ended ({why})"));
            }
            other => self.lose(&Failure::of(other).to_string()),
        }
    }

    fn lose(&mut self, why: &str) {
        self.last = None;
        self.failure = Some(why.to_owned());
    }
}

/// The netdevs that are asked about. One child does it for all: whoever holds the
/// lock holds it against all.
pub(super) struct Netdevs {
    start: Start,
    child: Option<Client<'static>>,
    /// Questions without an answer, each with the netdev whose carrier it is for;
    /// without one: for the addresses.
    open: BTreeMap<u64, Option<IfName>>,
    since: Moment,
    /// Something has happened since the questions were asked.
    is_stale: bool,
    carriers: BTreeMap<IfName, bool>,
    addresses: Option<Vec<(u32, IpAddr, u8)>>,
    pub(super) problem: Option<String>,
}

impl Netdevs {
    pub(super) const fn new(start: Start) -> Self {
        Self {
            start,
            child: None,
            open: BTreeMap::new(),
            since: Moment::START,
            is_stale: false,
            carriers: BTreeMap::new(),
            addresses: None,
            problem: None,
        }
    }

    /// Ask about these netdevs, and no others. While answers are owed, they are asked
    /// about once more when the answers have come.
    pub(super) fn ask(&mut self, netdevs: Vec<IfName>, now: Moment) {
        self.carriers.retain(|known, _| netdevs.contains(known));
        if !self.open.is_empty() {
            self.is_stale = true;
            return;
        }
        (self.is_stale, self.since) = (false, now);
        let child = self.child.get_or_insert_with(|| (self.start)());
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

    /// Until when answers are waited for; `None` if none is to
    /// come.
    pub(super) fn due(&self, now: Moment) -> Option<Moment> {
        let until = self.since + SILENCE;
        (!self.open.is_empty() && until > now).then_some(until)
    }

    /// For how long answers have been owed; zero if none is.
    pub(super) fn silent(&self, now: Moment) -> Duration {
        if self.open.is_empty() { Duration::ZERO } else { now.since(self.since) }
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
}
