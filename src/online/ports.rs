use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use super::judge::Seen;
use crate::names::{PciAddress, PortNumber, RdmaName};
use crate::observe::link::PortAnswer;
use crate::observe::{Observed, PciFunction};
use crate::report::PortProgress;
use crate::workers::{Answer, Client, Failure, Request};

/// Which port is asked. A new name, or another function under it, is a new port.
type Key = (PciAddress, RdmaName, PortNumber);

/// The ports whose state is asked for. There is a child for each function: a card
/// that hangs holds up the answers of its own ports only, whatever number of VFs it
/// has.
#[derive(Debug, Default)]
pub(super) struct Ports {
    children: BTreeMap<PciAddress, Client<'static>>,
    asked: BTreeMap<Key, Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    /// The question that has no answer yet.
    open: Option<u64>,
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
    /// Ask those of `progress` from now on, and no others.
    pub(super) fn follow(&mut self, progress: &[PortProgress]) {
        let wanted: Vec<Key> = progress.iter().filter_map(key).collect();
        self.asked.retain(|key, _| wanted.contains(key));
        self.children.retain(|pci, _| wanted.iter().any(|(of, ..)| of == pci));
        for key in wanted {
            if !self.asked.contains_key(&key) {
                self.asked.insert(key.clone(), Asked::default());
                self.ask_one(&key);
            }
        }
    }

    /// Ask every port that owes no answer.
    pub(super) fn ask(&mut self) {
        let keys: Vec<Key> = self.asked.keys().cloned().collect();
        for key in keys {
            self.ask_one(&key);
        }
    }

    fn ask_one(&mut self, key: &Key) {
        let Some(asked) = self.asked.get_mut(key) else { return };
        if asked.open.is_none() && asked.failure.is_none() {
            let (pci, device, port) = key.clone();
            // One that is silent is at work, and is not asked again before it answers.
            let child = self.children.entry(pci).or_insert_with(|| Client::live().patient());
            asked.open = Some(child.ask(&Request::Port { pci, device, port }));
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
                if let Some(asked) = asked.find(|asked| asked.open == Some(number)) {
                    asked.take(reply);
                }
            }
        }
    }

    /// What is known of `port`.
    pub(super) fn seen(&self, port: &PortProgress, observed: &Observed, now: u64) -> Seen {
        let asked = key(port).and_then(|key| self.asked.get(&key));
        let child = port.pci.and_then(|pci| self.children.get(&pci));
        let function = observed.functions.iter().find(|f| Some(f.address) == port.pci);
        let waits = asked.and_then(|a| child?.waits_since(a.open?));
        Seen {
            answer: asked.and_then(|a| a.last.clone()),
            silent_usec: waits.map_or(0, |since| now.saturating_sub(since)),
            cannot_ask: asked.and_then(|a| a.failure.clone()),
            vf: function.map(PciFunction::is_vf).unwrap_or_default(),
            ..Seen::default()
        }
    }
}

impl Asked {
    fn take(&mut self, reply: Result<Answer, Failure>) {
        self.open = None;
        match reply {
            Ok(Answer::Port { answer, .. }) => self.last = Some(answer),
            Ok(other) => self.lose(&format!("an unexpected answer: {other:?}")),
            Err(Failure::NoChild(why)) => {
                self.lose(&format!("the process that asks for it has ended ({why})"));
            }
            Err(other) => self.lose(&other.to_string()),
        }
    }

    fn lose(&mut self, why: &str) {
        self.last = None;
        self.failure = Some(why.to_owned());
    }
}
