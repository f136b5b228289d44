//! What became of each object of the fabric in a boot: its lines are gone through once, in
//! order, and the last word on an object counts, not the first.

pub mod lines;
mod reader;

use std::collections::{BTreeMap, BTreeSet};

use super::Boot;
use super::event::{Event, Kind, When};
use crate::graph::consumers::uses_fabric_by_name;
use crate::model::finding::Quote;
use crate::names::{Rung, is_ipoib_name};
use reader::Reader;

/// What kind of thing an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum What {
    /// A PCI function.
    Adapter,
    /// A port of an RDMA device.
    Port,
    /// An IPoIB netdev, or the netdev of a port that does RoCE.
    Netdev,
    /// A unit: one that uses the fabric, by its name, or one that has failed.
    Unit,
}

/// What is wrong with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum Lack {
    /// The cable was unplugged, or is broken.
    Cable,
    /// The netdev has lost its carrier.
    Carrier,
    /// The port was Active, and is not any more, or it was disabled.
    NotActive,
    /// Nobody gave the netdev an address, or its network service gave up on it.
    Address,
    /// The adapter is gone.
    Gone,
    /// The PCIe link to it had an uncorrectable error, and was not recovered.
    Bus,
    /// The driver gave up on it.
    Driver,
    /// The IOMMU has refused an access of the adapter.
    Fault,
    /// The unit has failed.
    Failed,
}

/// How an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum State {
    /// A port is Active, a netdev has carrier or an address, a unit has started.
    Good,
    #[strum(to_string = "bad ({0})")]
    Bad(Lack),
    /// What was said of it proves neither.
    Unknown,
}

/// What a line says of an object.
#[derive(Debug, Clone)]
pub struct Said {
    pub state: State,
    pub quote: Quote,
    when: When,
    /// Its place in the boot, dumps and all.
    now: usize,
    /// The log line, by its place in the boot; none of a dump.
    pub event: Option<usize>,
}

/// An object of a boot.
#[derive(Debug, Clone)]
pub struct Object {
    pub what: What,
    pub name: String,
    /// The PCI function that a port or a netdev is of.
    pub adapter: Option<String>,
    /// Of Ethernet: it proves nothing of a port that is InfiniBand's.
    pub is_ethernet: bool,
    /// The highest rung that it has reached.
    pub ever: Option<Rung>,
    /// The last word on it.
    pub last: Said,
    /// Somebody has set the netdev down: that it has no carrier is no loss.
    is_down: bool,
}

impl Object {
    /// True of one by which the fabric is used: not of an adapter, nor of a unit.
    pub fn is_port(&self) -> bool {
        matches!(self.what, What::Port | What::Netdev)
    }

    /// What is wrong with it at last.
    pub fn lack(&self) -> Option<Lack> {
        match self.last.state {
            State::Bad(lack) => Some(lack),
            State::Good | State::Unknown => None,
        }
    }

    fn has_reached(&self, rung: Rung) -> bool {
        self.ever.is_some_and(|ever| ever >= rung)
    }

    /// Its name, with its PCI function.
    pub fn title(&self) -> String {
        match &self.adapter {
            Some(adapter) => format!("{} ({adapter})", self.name),
            None => self.name.clone(),
        }
    }
}

/// All objects of a boot.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    objects: BTreeMap<(What, String), Object>,
    /// Names of netdevs that the boot says to be IPoIB's, whatever they are called.
    ipoib: BTreeSet<String>,
}

impl Fold {
    /// Every object.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// The objects of `boot`.
    pub fn of(boot: &Boot) -> Self {
        Reader::new(boot).read()
    }

    /// Ports and netdevs that are in use by the fabric at last. Those of Ethernet count only
    /// where nothing of the boot is InfiniBand's.
    pub fn good(&self) -> impl Iterator<Item = &Object> {
        let ports = || self.objects.values().filter(|object| object.is_port());
        let has_infiniband = ports().any(|object| !object.is_ethernet);
        ports().filter(move |object| {
            object.last.state == State::Good && !(object.is_ethernet && has_infiniband)
        })
    }

    /// What is wrong at last, but for units that do not use the fabric by their name.
    pub fn bad(&self) -> impl Iterator<Item = (&Object, Lack)> {
        let counts = |o: &&Object| o.what != What::Unit || uses_fabric_by_name(&o.name);
        self.objects.values().filter(counts).filter_map(|object| Some((object, object.lack()?)))
    }

    /// True if `name` is that of an IPoIB netdev of this boot.
    pub fn is_ipoib(&self, name: &str) -> bool {
        is_ipoib_name(name) || self.ipoib.contains(name)
    }

    /// Units whose last word is that they have failed.
    pub fn failed_units(&self) -> impl Iterator<Item = &Object> {
        self.objects.values().filter(|o| o.what == What::Unit && o.lack().is_some())
    }
}

/// A service without its suffix; where systemd has said only what it is, what the journal
/// calls it.
pub fn unit_name(event: &Event) -> String {
    let (Kind::UnitFailed(unit) | Kind::UnitStarted(unit)) = &event.kind else {
        return String::new();
    };
    let name = if unit.contains('.') || event.unit.is_empty() { unit } else { &event.unit };
    name.strip_suffix(".service").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Intake;

    /// What is wrong by these sources, read in this order.
    fn lacks(sources: &[(&str, &str)]) -> Vec<String> {
        let mut intake = Intake::new(crate::check::rules::needles());
        for (name, text) in sources {
            intake.read(name, &mut text.as_bytes());
        }
        let boot = intake.finish().boots.remove(0);
        boot.fold().bad().map(|(object, lack)| format!("{} {lack}", object.name)).collect()
    }

    const JOURNAL: (&str, &str) = (
        "journal.txt",
        "Jul 30 05:14:05 n9 kernel: mlx5_core 0000:4b:00.0 ibp75s0: renamed from ib0\n\
         Jul 30 05:14:12 n9 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ibp75s0: link becomes ready\n\
         Jul 30 05:14:55 n9 systemd-networkd[9]: ibp75s0: Lost carrier\n",
    );

    #[test]
    fn a_line_that_another_source_tells_again_is_no_later_word() {
        let ready = "[   14.2] IPv6: ADDRCONF(NETDEV_CHANGE): ibp75s0: link becomes ready\n";
        assert_eq!(lacks(&[JOURNAL, ("dmesg.txt", ready)]), ["ibp75s0 carrier"]);
        assert_eq!(lacks(&[("dmesg.txt", ready), JOURNAL]), ["ibp75s0 carrier"]);
    }

    #[test]
    fn of_two_sources_with_a_clock_the_later_word_counts() {
        let gained = "Jul 30 05:14:13 n9 systemd-networkd[9]: ibp75s0: Gained carrier\n";
        assert_eq!(lacks(&[JOURNAL, ("messages", gained)]), ["ibp75s0 carrier"]);
        let later = gained.replace("05:14:13", "05:15:13");
        assert_eq!(lacks(&[("messages", &later), JOURNAL]), [""; 0]);
    }

    #[test]
    fn a_dump_of_its_own_is_newer_than_the_logs() {
        let state = |state: &str| {
            format!("CA 'mlx5_0'\n\tPort 1:\n\t\tState: {state}\n\t\tLink layer: InfiniBand\n")
        };
        assert_eq!(lacks(&[("ibstat.txt", &state("Active")), JOURNAL]), [""; 0]);
        assert_eq!(lacks(&[("ibstat.txt", &state("Down")), JOURNAL]), ["ibp75s0 carrier"]);
    }
}
