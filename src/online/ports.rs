use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use super::judge::{Seen, Vf};
use crate::host::answer;
use crate::names::{PciAddress, PortNumber, RdmaName, is_vf_id};
use crate::observe::Observed;
use crate::observe::link::PortAnswer;
use crate::report::PortProgress;
use crate::workers::port_reader::PortReader;

/// Which port is asked. A new name, or another function under it, is a new port.
type Key = (PciAddress, RdmaName, PortNumber);

/// The ports whose state is asked for, each in a child of its own.
#[derive(Debug, Default)]
pub(super) struct Ports(BTreeMap<Key, Asked>);

#[derive(Debug)]
struct Asked {
    reader: Option<PortReader>,
    last: Option<PortAnswer>,
    /// Why there is no reader.
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
        self.0.retain(|key, _| wanted.contains(key));
        for key in wanted {
            self.0.entry(key).or_insert_with_key(|key| {
                let (pci, device, port) = key;
                match PortReader::start(*pci, device, *port).and_then(|mut reader| {
                    reader.ask()?;
                    Ok(reader)
                }) {
                    Ok(reader) => Asked { reader: Some(reader), last: None, failure: None },
                    Err(e) => Asked { reader: None, last: None, failure: Some(answer(&e)) },
                }
            });
        }
    }

    /// Ask every port that owes no answer.
    pub(super) fn ask(&mut self) {
        for asked in self.0.values_mut() {
            if let Some(reader) = &mut asked.reader
                && let Err(e) = reader.ask()
            {
                asked.lose(&e);
            }
        }
    }

    /// What can be read when an answer has come.
    pub(super) fn answers_come(&self) -> Vec<BorrowedFd<'_>> {
        self.0.values().filter_map(|asked| Some(asked.reader.as_ref()?.as_fd())).collect()
    }

    /// Take the answers that have come.
    pub(super) fn take_answers(&mut self) {
        for asked in self.0.values_mut() {
            match asked.reader.as_mut().map(PortReader::answer) {
                Some(Ok(Some(link))) => asked.last = Some(link),
                Some(Err(e)) => asked.lose(&e),
                Some(Ok(None)) | None => {}
            }
        }
    }

    /// What is known of `port`.
    pub(super) fn seen(&self, port: &PortProgress, observed: &Observed, now: u64) -> Seen {
        let asked = key(port).and_then(|key| self.0.get(&key));
        let waits = asked.and_then(|a| a.reader.as_ref()?.waits_since());
        Seen {
            answer: asked.and_then(|a| a.last.clone()),
            silent_usec: waits.map_or(0, |since| now.saturating_sub(since)),
            cannot_ask: asked.and_then(|a| a.failure.clone()),
            vf: vf(port, observed),
            ..Seen::default()
        }
    }
}

impl Asked {
    fn lose(&mut self, e: &std::io::Error) {
        self.reader = None;
        self.last = None;
        self.failure = Some(format!("the process that asks for it has ended ({})", answer(e)));
    }
}

fn vf(port: &PortProgress, observed: &Observed) -> Vf {
    let function = observed.functions.iter().find(|f| Some(f.address) == port.pci);
    match function.map(|f| (f.physfn, is_vf_id(f.vendor, f.device))) {
        Some((Some(pf), _)) => Vf::OfThisHost(pf),
        Some((None, true)) => Vf::PassedThrough,
        _ => Vf::No,
    }
}
