//! What became of each object of the fabric in a boot: its lines are gone through once, in
//! order, and the last word on an object counts, not the first.

use std::collections::{BTreeMap, BTreeSet};

use super::super::pattern::{caught, caught_one, word};
use super::event::{Event, Kind, Origin, When, function};
use super::own::{About, Own};
use super::relevance::rdma_device_in;
use super::state::{NetdevSeen, PortSeen, UnitSeen};
use super::{Boot, Host};
use crate::graph::consumers::uses_fabric_by_name;
use crate::names::{PciAddress, RDMA_MODULES, Rung, is_ipoib_name, roce_half_of};
use crate::report::finding::Quote;
use crate::report::node::Standing;

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
    /// The port was Active, and is not any more.
    NotActive,
    /// Nobody gave the netdev an address, or its network service gave up on it.
    Address,
    /// The adapter is gone.
    Gone,
    /// The driver gave up on it.
    Driver,
    /// The IOMMU has refused an access of the adapter.
    Fault,
    /// The unit has failed.
    Failed,
}

/// How an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A port is Active, a netdev has carrier or an address, a unit has started.
    Good,
    Bad(Lack),
    /// What was said of it proves neither.
    Unknown,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Good => f.write_str("good"),
            Self::Bad(lack) => write!(f, "bad ({lack})"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
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
        let mut reader = Reader::new(boot);
        for (now, item) in items(boot).into_iter().enumerate() {
            reader.now = now;
            match item {
                Item::Event(at, event) => reader.event(at, event),
                Item::Port(port) => reader.port(port),
                Item::Netdev(netdev) => reader.netdev(netdev),
                Item::Unit(unit) => reader.unit(unit),
            }
        }
        reader.finish()
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

    /// Adapters of which the boot shows a cable and the final name of the IPoIB netdev, and
    /// nothing after that: it may end before the subnet manager has come.
    pub fn named_with_a_cable(&self) -> impl Iterator<Item = &Object> {
        let named = |o: &&Object| o.what == What::Netdev && !o.is_ethernet;
        self.objects.values().filter(named).filter(|netdev| {
            let adapter = netdev.adapter.as_ref();
            let adapter = adapter.and_then(|a| self.objects.get(&(What::Adapter, a.clone())));
            netdev.has_reached(Rung::Named)
                && netdev.last.state == State::Unknown
                && adapter.is_some_and(|a| a.has_reached(Rung::Link) && a.lack().is_none())
        })
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

/// Words of the lines that the fold reads and no rule asks for.
pub const NEEDLES: &[&str] = &[
    "Gained carrier",
    "Lost carrier",
    ": Link DOWN",
    ": Link UP",
    "link is not ready",
    "carrier: link ",
    "carrier-changed",
    "Activation: successful",
    "Activation: failed",
    "-> failed (reason",
    "DHCPDISCOVER on ",
    "No DHCPOFFERS",
    "bound to ",
    "DHCPv4 client: ",
    "DHCPv4 address ",
    "request timed out",
    "state changed new lease",
    "Port module event",
    "NIC Link is ",
    ": Link up",
    ": Link down",
    "Card not present",
    "PCI bridge to [bus",
    "AER: can't recover",
    "DMAR: [",
    "IO_PAGE_FAULT",
    "logical state changed to PORT_",
    "IB: Port active",
    "SUBNET UP",
    "Firmware over",
    "couldn't register ipoib port",
    "ipoib_intf_alloc failed",
    "Couldn't register device",
    ": mlx5_load:",
    "mlx5_ib: ",
    "infiniband mlx5_",
    "infiniband bnxt_re",
    "Failed with result",
    "Stopped target Multi-User",
    "Stopped target multi-user",
    "Reached target Multi-User",
    "Reached target multi-user",
    "System is rebooting",
    "System is powering down",
    "shutting down for system",
];

/// A line or a dump of a boot.
enum Item<'a> {
    Event(usize, &'a Event),
    Port(&'a PortSeen),
    Netdev(&'a NetdevSeen),
    Unit(&'a UnitSeen),
}

/// The lines and dumps of `boot` in order. A source without log lines shows how the node is
/// when it is asked: after all that was logged.
fn items(boot: &Boot) -> Vec<Item<'_>> {
    // A line of a dump has neither time nor program.
    let logged = |e: &&Event| !e.when.stamp.is_empty() || !e.program.is_empty();
    let logs: BTreeSet<u16> =
        boot.events.iter().filter(logged).map(|event| event.origin.source).collect();
    let state = &boot.state;
    let events = boot.events.iter().enumerate().map(|(at, e)| (e.origin, Item::Event(at, e)));
    let dumps = state.ports.iter().map(|port| (port.origin, Item::Port(port)));
    let dumps = dumps.chain(state.netdevs.iter().map(|n| (n.origin, Item::Netdev(n))));
    let dumps = dumps.chain(state.units.iter().map(|unit| (unit.origin, Item::Unit(unit))));
    let mut items: Vec<(Origin, Item<'_>)> = events.chain(dumps).collect();
    items.sort_by_key(|(origin, _)| (!logs.contains(&origin.source), *origin));
    items.into_iter().map(|(_, item)| item).collect()
}

/// Goes through a boot.
struct Reader<'a> {
    boot: &'a Boot,
    fold: Fold,
    /// Netdevs of Ethernet, with the function that they are of, and its RDMA half.
    ethernet: BTreeMap<String, (String, &'static str)>,
    /// RDMA halves of Ethernet drivers that the boot names.
    halves: BTreeSet<&'static str>,
    /// The buses behind each bridge.
    bridges: BTreeMap<String, (u8, u8)>,
    /// Netdevs that are not the fabric's.
    has_others: bool,
    /// The netdev for which dhclient asks.
    asked: Option<String>,
    /// The source that has told a line of the kernel first.
    told: BTreeMap<&'a str, u16>,
    /// The system shuts down: what ends, ends by right.
    is_ending: bool,
    now: usize,
    /// Where the first dump of a port is.
    ports_at: Option<usize>,
}

impl<'a> Reader<'a> {
    fn new(boot: &'a Boot) -> Self {
        let mut fold = Fold::default();
        let shown = boot.state.netdevs.iter().filter(|n| n.infiniband && n.parent.is_none());
        fold.ipoib.extend(shown.map(|netdev| netdev.name.clone()));
        Self {
            boot,
            fold,
            ethernet: BTreeMap::new(),
            halves: BTreeSet::new(),
            bridges: BTreeMap::new(),
            has_others: false,
            asked: None,
            told: BTreeMap::new(),
            is_ending: false,
            now: 0,
            ports_at: None,
        }
    }

    fn finish(mut self) -> Fold {
        // That all ports are active, when somebody looked, is the last word on cables.
        let all_active = self.boot.state.ports.iter().all(PortSeen::is_active);
        let looked = self.ports_at.filter(|_| all_active);
        for object in self.fold.objects.values_mut() {
            if matches!(object.lack(), Some(Lack::Cable | Lack::Carrier | Lack::NotActive))
                && looked.is_some_and(|looked| object.last.now < looked)
            {
                object.last.state = State::Unknown;
            }
        }
        if let Some(host) = self.boot.host.as_ref().filter(|host| host.live) {
            // Of a host that runs, systemd's word is the last.
            let is_failed = |o: &Object| is_failed(host, self.boot, o);
            let counts = |o: &Object| o.what != What::Unit || o.lack().is_none() || is_failed(o);
            self.fold.objects.retain(|_, object| counts(object));
        }
        self.fold
    }

    /// The word of the log line `event`, which is number `at`.
    fn said(&self, state: State, at: usize, event: &Event) -> Said {
        let quote = self.boot.quote(event);
        Said { state, quote, when: event.when.clone(), now: self.now, event: Some(at) }
    }

    fn shown(&self, state: State, origin: Origin, text: &str) -> Said {
        let quote = self.boot.quote_at(origin, "", text);
        Said { state, quote, when: When::default(), now: self.now, event: None }
    }

    /// `said` is the last word on the object, unless what was said before is surely newer.
    /// It is the object's first if `rung` is the first that it reaches.
    fn put(&mut self, what: What, name: &str, said: Said, rung: Option<Rung>) -> &mut Object {
        let made = || Object {
            what,
            name: name.to_owned(),
            adapter: None,
            is_ethernet: false,
            ever: None,
            last: said.clone(),
            is_down: false,
        };
        let object = self.fold.objects.entry((what, name.to_owned())).or_insert_with(made);
        object.ever = object.ever.max(rung);
        if said.when.since(&object.last.when).is_none_or(|gap| gap >= 0) {
            object.last = said;
        }
        object
    }

    fn object(&self, what: What, name: &str) -> Option<&Object> {
        self.fold.objects.get(&(what, name.to_owned()))
    }

    /// What the adapter lacks, what is behind it lacks too.
    fn adapter_lost(&mut self, adapter: &str, said: Said) {
        for object in self.fold.objects.values_mut() {
            if object.is_port() && object.adapter.as_deref() == Some(adapter) {
                object.last = said.clone();
            }
        }
        self.put(What::Adapter, adapter, said, None);
    }

    fn has_reached(&self, what: What, name: &str, rung: Rung) -> bool {
        self.object(what, name).is_some_and(|object| object.has_reached(rung))
    }

    /// True if `name` is a netdev by which the fabric is used.
    fn is_of_fabric(&self, name: &str) -> bool {
        self.fold.is_ipoib(name)
            || self.ethernet.get(name).is_some_and(|(_, half)| self.halves.contains(half))
    }

    /// `said` of a netdev, if it is one of the fabric.
    fn netdev_said(&mut self, name: &str, said: Said, rung: Option<Rung>) {
        if !self.is_of_fabric(name) {
            self.has_others |= said.state == State::Good && name != "lo";
            return;
        }
        let state = said.state;
        let again = said.clone();
        let ethernet = self.ethernet.get(name).filter(|_| !self.fold.is_ipoib(name)).cloned();
        let netdev = self.put(What::Netdev, name, said, rung);
        if let Some((address, _)) = ethernet {
            netdev.is_ethernet = true;
            netdev.adapter = Some(address);
        }
        let adapter = netdev.adapter.clone();
        // A netdev that works has a cable and an adapter.
        if let Some(adapter) = adapter.filter(|_| state == State::Good)
            && self.object(What::Adapter, &adapter).is_some()
        {
            self.put(What::Adapter, &adapter, Said { state: State::Unknown, ..again }, rung);
        }
    }

    /// What a line says of a loss, if the netdev had what is lost.
    fn lost(&mut self, name: &str, said: Said) {
        let is_down = self.object(What::Netdev, name).is_some_and(|netdev| netdev.is_down);
        let state = if is_down { State::Unknown } else { said.state };
        self.netdev_said(name, Said { state, ..said }, None);
    }

    fn event(&mut self, at: usize, event: &'a Event) {
        let text = &*event.text;
        if event.from_kernel() {
            // The kernel's lines stand in the journal, in messages and in what dmesg shows.
            let source = event.origin.source;
            if *self.told.entry(text).or_insert(source) != source {
                return;
            }
        }
        if text.starts_with("Stopped target ") && has_goal(text)
            || ["System is rebooting", "System is powering down", "shutting down for system"]
                .iter()
                .any(|words| text.contains(words))
        {
            self.is_ending = true;
        } else if text.starts_with("Reached target ") && has_goal(text) {
            self.is_ending = false;
        }
        if self.is_ending {
            return;
        }
        if let Kind::UnitStarting(unit) | Kind::UnitStarted(unit) = &event.kind
            && let Some(name) = unit.strip_prefix("mlnx_interface_mgr@")
        {
            let name = name.strip_suffix(".service").unwrap_or(name);
            self.fold.ipoib.insert(name.to_owned());
        }
        let good = || self.said(State::Good, at, event);
        let unknown = || self.said(State::Unknown, at, event);
        match &event.kind {
            Kind::UnitFailed(_) => {
                let said = self.said(State::Bad(Lack::Failed), at, event);
                self.put(What::Unit, &unit_name(event), said, None);
            }
            Kind::UnitStarted(_) => {
                let (name, said) = (unit_name(event), good());
                if uses_fabric_by_name(&name) || self.object(What::Unit, &name).is_some() {
                    self.put(What::Unit, &name, said, None);
                }
            }
            Kind::NetdevRenamed { from, to } => self.renamed(from, to, at, event),
            Kind::LinkReady(name) => {
                let said = good();
                self.netdev_said(name, said, Some(Rung::Active));
            }
            Kind::InterfaceAsked { name, worked: Some(true) } => {
                let said = good();
                self.netdev_said(name, said, Some(Rung::Active));
            }
            Kind::DriverProbe { driver, address } if RDMA_MODULES.contains(&&**driver) => {
                let said = unknown();
                self.put(What::Adapter, address, said, Some(Rung::Driver));
            }
            Kind::ProbeFailed { driver, device, .. }
                if RDMA_MODULES.contains(&&**driver) && device.parse::<PciAddress>().is_ok() =>
            {
                let said = self.said(State::Bad(Lack::Driver), at, event);
                self.put(What::Adapter, device, said, None);
            }
            Kind::NetdevMade { address } => {
                let said = unknown();
                self.put(What::Adapter, address, said, Some(Rung::Netdev));
            }
            Kind::Own(Own { about: About::Online, object, standing: Standing::Ready }) => {
                let said = good();
                self.put(What::Port, object, said, Some(Rung::Active));
            }
            Kind::Own(Own { about: About::WaitOnline, standing: Standing::Ready, .. }) => {
                let said = good();
                self.put(What::Port, "the ports of ibprov wait-online", said, Some(Rung::Active));
            }
            Kind::Own(_) | Kind::UnitStarting(_) => {}
            _ if &*event.program != "ibprov" => self.text(at, event),
            _ => {}
        }
    }

    /// A line of which the words alone tell what it is.
    fn text(&mut self, at: usize, event: &Event) {
        let text = &*event.text;
        let half = ["mlx5_ib", "mlx4_ib", "bnxt_re", "irdma", "qedr", "hns_roce"];
        if event.from_kernel() || matches!(event.kind, Kind::ModuleLoad(_)) {
            let named = half.iter().filter(|half| {
                text.contains(**half)
                    || text.contains("infiniband mlx")
                        && half.starts_with("mlx")
                        && text.contains(&half[..4])
            });
            self.halves.extend(named);
        }
        let said = |state| self.said(state, at, event);
        if let Some(name) = caught_one(text, "Setting up Mellanox network interface: {}") {
            let name = word(name);
            self.fold.ipoib.insert(name.to_owned());
        } else if let Some((name, state)) = of_networkd(text).or_else(|| of_manager(text)) {
            let said = said(state);
            match state {
                State::Good => self.netdev_said(name, said, Some(Rung::Active)),
                State::Bad(_) => self.lost(name, said),
                State::Unknown => self.netdev_said(name, said, None),
            }
        } else if let Some((head, down)) = text
            .split_once(": Link DOWN")
            .map(|(head, _)| (head, true))
            .or_else(|| text.split_once(": Link UP").map(|(head, _)| (head, false)))
        {
            let name = last_word(head);
            if self.is_of_fabric(name) {
                let said = said(State::Unknown);
                // What was lost before is lost still.
                let known = self.object(What::Netdev, name).map(|netdev| netdev.last.clone());
                let said = known.filter(|_| !down).unwrap_or(said);
                self.put(What::Netdev, name, said, None).is_down = down;
            }
        } else if let Some((name, is_up)) = link_of_driver(text) {
            if is_up || self.has_reached(What::Netdev, name, Rung::Link) {
                let said = said(if is_up { State::Good } else { State::Bad(Lack::Carrier) });
                self.netdev_said(name, said, is_up.then_some(Rung::Active));
            }
        } else if let Some((head, _)) = text.split_once(": link is not ready") {
            let name = last_word(head);
            if self.has_reached(What::Netdev, name, Rung::Link) {
                let said = said(State::Bad(Lack::Carrier));
                self.lost(name, said);
            }
        } else if text.contains("Port module event") {
            self.module_event(at, event);
        } else if let Some([port, state]) =
            caught::<2>(text, "{}: logical state changed to PORT_{}")
        {
            let (port, state) = (last_word(port), word(state));
            let had = self.has_reached(What::Port, port, Rung::Active);
            let (state, rung) = match state {
                "ACTIVE" => (State::Good, Some(Rung::Active)),
                _ if had => (State::Bad(Lack::NotActive), None),
                _ => (State::Unknown, None),
            };
            let said = said(state);
            let adapter = function(text).map(str::to_owned);
            self.put(What::Port, port, said, rung).adapter = adapter;
        } else if text.contains("IB: Port active") {
            let port = rdma_device_in(text).or_else(|| function(text)).unwrap_or("a port");
            let said = said(State::Good);
            self.put(What::Port, port, said, Some(Rung::Active));
        } else if text.contains("SUBNET UP") {
            let said = said(State::Good);
            self.put(What::Port, "the port of the subnet manager", said, Some(Rung::Active));
        } else if let Some(rest) = text.split_once("DHCPDISCOVER on ").map(|(_, rest)| rest) {
            self.asked = Some(word(rest).to_owned());
        } else if text.contains("No DHCPOFFERS") || text.starts_with("bound to ") {
            let said = said(match text.starts_with("bound to ") {
                true => State::Good,
                false => State::Bad(Lack::Address),
            });
            let only = || {
                let mut netdevs = self.fold.objects().filter(|o| o.what == What::Netdev);
                let only = netdevs.next().filter(|_| netdevs.next().is_none() && !self.has_others);
                only.map(|netdev| netdev.name.clone())
            };
            if let Some(name) = self.asked.take().or_else(only) {
                self.netdev_said(&name, said, None);
            }
        } else {
            self.bus(at, event);
        }
    }

    /// A line about the PCI bus.
    fn bus(&mut self, at: usize, event: &Event) {
        let text = &*event.text;
        if let Some([bridge, buses]) = caught::<2>(text, "pci {}: PCI bridge to [bus {}]") {
            let number = |text: &str| u8::from_str_radix(text, 16).ok();
            let (first, last) = buses.split_once('-').unwrap_or((buses, buses));
            if let (Some(first), Some(last)) = (number(first), number(last)) {
                self.bridges.insert(bridge.to_owned(), (first, last));
            }
        } else if let Some(slot) = caught_one(text, "Slot({}): Card not present") {
            for adapter in self.in_slot(slot, function(text)) {
                let said = self.said(State::Bad(Lack::Gone), at, event);
                self.adapter_lost(&adapter, said);
            }
        } else if text.contains("AER: can't recover") {
            let known = |a: &&str| self.object(What::Adapter, a).is_some();
            if let Some(adapter) = driven(text).or_else(|| function(text).filter(known)) {
                let said = self.said(State::Bad(Lack::Gone), at, event);
                self.adapter_lost(adapter, said);
            }
        } else if let Some(place) = caught_one(text, "Request device [{}]")
            .or_else(|| caught_one(text, "IO_PAGE_FAULT device={} "))
        {
            let place = place.replace("0x", "");
            let mut adapters = self.boot.events.iter().filter_map(|e| driven(&e.text));
            let adapter = adapters.find(|a| a.ends_with(&place) && place.len() >= 7);
            if let Some(adapter) = adapter {
                let said = self.said(State::Bad(Lack::Fault), at, event);
                self.put(What::Adapter, adapter, said, None);
            }
        } else if text.contains("Firmware over") && text.contains("aborting")
            || text.contains(": mlx5_load:")
        {
            if let Some(adapter) = driven(text) {
                let said = self.said(State::Bad(Lack::Driver), at, event);
                self.put(What::Adapter, adapter, said, None);
            }
        } else if let Some(port) = given_up(text) {
            let said = self.said(State::Bad(Lack::Driver), at, event);
            self.put(What::Port, &port, said, None);
        }
    }

    /// The adapters that may be in `slot` of `bridge`: those that are known to be, or the only
    /// one of which that is not known.
    fn in_slot(&self, slot: &str, bridge: Option<&str>) -> Vec<String> {
        let adapters = || self.fold.objects().filter(|o| o.what == What::Adapter);
        let bus = |adapter: &str| u8::from_str_radix(adapter.get(5..7)?, 16).ok();
        if let Some((first, last)) = bridge.and_then(|bridge| self.bridges.get(bridge)) {
            let behind = |o: &&Object| bus(&o.name).is_some_and(|b| (*first..=*last).contains(&b));
            return adapters().filter(behind).map(|o| o.name.clone()).collect();
        }
        // udev calls a netdev by its slot, where the firmware tells it.
        let slots = |adapter: &str| -> Vec<&str> {
            let its = |o: &&Object| o.what == What::Netdev && o.adapter.as_deref() == Some(adapter);
            let netdevs = self.fold.objects().filter(its);
            netdevs
                .filter_map(|o| o.name.strip_prefix("ibs"))
                .map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default())
                .collect()
        };
        let known: Vec<String> =
            adapters().filter(|o| slots(&o.name).contains(&slot)).map(|o| o.name.clone()).collect();
        if !known.is_empty() {
            return known;
        }
        let mut open = adapters().filter(|o| slots(&o.name).is_empty());
        open.next().filter(|_| open.next().is_none()).map(|o| o.name.clone()).into_iter().collect()
    }

    /// mlx5 says that a cable was plugged or unplugged.
    fn module_event(&mut self, at: usize, event: &Event) {
        let text = &*event.text;
        let Some(adapter) = function(text) else { return };
        let had = self.has_reached(What::Adapter, adapter, Rung::Link);
        let said = |state| self.said(state, at, event);
        if text.contains("Cable plugged") {
            let said = said(State::Unknown);
            for object in self.fold.objects.values_mut() {
                let is_its = object.adapter.as_deref() == Some(adapter);
                if is_its && object.lack() == Some(Lack::Cable) {
                    object.last = said.clone();
                }
            }
            self.put(What::Adapter, adapter, said, Some(Rung::Link));
        } else if text.contains("Cable error") || text.contains("Cable unplugged") && had {
            let said = said(State::Bad(Lack::Cable));
            self.adapter_lost(adapter, said);
        } else {
            let said = said(State::Unknown);
            self.put(What::Adapter, adapter, said, None);
        }
    }

    /// A netdev has another name: what is known of it goes with it.
    fn renamed(&mut self, from: &str, to: &str, at: usize, event: &Event) {
        let address = function(&event.text).map(str::to_owned);
        if !self.fold.is_ipoib(from) && !is_ipoib_name(to) {
            let driver = event.text.split(' ').next().unwrap_or_default();
            if let (Some(address), Some(half)) = (address, roce_half_of(driver)) {
                if half == driver {
                    self.halves.insert(half);
                }
                self.ethernet.insert(to.to_owned(), (address, half));
            }
            return;
        }
        self.fold.ipoib.insert(to.to_owned());
        if let Some(netdev) = self.fold.objects.remove(&(What::Netdev, from.to_owned())) {
            let netdev = Object { name: to.to_owned(), ..netdev };
            self.fold.objects.insert((What::Netdev, to.to_owned()), netdev);
        }
        let last = self.object(What::Netdev, to).map(|netdev| netdev.last.clone());
        let said = last.unwrap_or_else(|| self.said(State::Unknown, at, event));
        if let Some(address) = &address {
            let said = self.said(State::Unknown, at, event);
            self.reached(address, said);
        }
        let netdev = self.put(What::Netdev, to, said, Some(Rung::Named));
        netdev.adapter = address.or(netdev.adapter.take());
    }

    /// The adapter at `address` has its netdev; what was said of its cable stands.
    fn reached(&mut self, address: &str, said: Said) {
        let last = self.object(What::Adapter, address).map(|adapter| adapter.last.clone());
        self.put(What::Adapter, address, last.unwrap_or(said), Some(Rung::Named));
    }

    fn port(&mut self, port: &PortSeen) {
        self.ports_at = self.ports_at.or(Some(self.now));
        let name = port.name();
        let had = self.has_reached(What::Port, &name, Rung::Active);
        let state = match port.is_active() {
            true => State::Good,
            false if had => State::Bad(Lack::NotActive),
            false => State::Unknown,
        };
        let rung = port.is_active().then_some(Rung::Active);
        let said = self.shown(state, port.origin, &port.text);
        let again = Said { state: State::Unknown, ..said.clone() };
        let adapter = port.function.map(|function| function.to_string());
        let object = self.put(What::Port, &name, said, rung);
        object.is_ethernet = !port.may_be_infiniband();
        object.adapter.clone_from(&adapter);
        if let Some(adapter) =
            adapter.filter(|a| state == State::Good && self.object(What::Adapter, a).is_some())
        {
            self.put(What::Adapter, &adapter, again, rung);
        }
    }

    fn netdev(&mut self, netdev: &NetdevSeen) {
        // A child of mlx5 has carrier although its parent is down.
        if netdev.name.is_empty() || !netdev.infiniband || netdev.parent.is_some() {
            return;
        }
        let had = self.has_reached(What::Netdev, &netdev.name, Rung::Link);
        let state = match netdev.carrier {
            Some(true) => State::Good,
            Some(false) if netdev.up && had => State::Bad(Lack::Carrier),
            _ => State::Unknown,
        };
        let rung = (state == State::Good).then_some(Rung::Active);
        let said = self.shown(state, netdev.origin, &netdev.text);
        self.netdev_said(&netdev.name, said, rung);
    }

    fn unit(&mut self, unit: &UnitSeen) {
        let state = match word(&unit.active) {
            "active" => State::Good,
            "failed" => State::Bad(Lack::Failed),
            _ => return,
        };
        let name = unit.name.strip_suffix(".service").unwrap_or(&unit.name).to_owned();
        if state == State::Good && self.object(What::Unit, &name).is_none() {
            return;
        }
        let said = self.shown(state, unit.origin, &unit.text);
        self.put(What::Unit, &name, said, None);
    }
}

/// The PCI function of which a driver of the RDMA stack speaks.
fn driven(text: &str) -> Option<&str> {
    let driver = text.split([' ', ':']).next().unwrap_or_default();
    RDMA_MODULES.contains(&driver).then(|| function(text)).flatten()
}

/// The RDMA device that was not registered, or the port for which ib_ipoib has made no netdev.
fn given_up(text: &str) -> Option<String> {
    if let Some(device) = caught_one(text, "infiniband {}: Couldn't register device") {
        return Some(device.to_owned());
    }
    let [device, port] = caught::<2>(text, "{}: couldn't register ipoib port {}")
        .or_else(|| caught::<2>(text, "{}, {}: ipoib_intf_alloc failed"))?;
    Some(format!("{} port {}", last_word(device), word(port).trim_end_matches(';')))
}

/// True if the target is the one that a boot goes for.
fn has_goal(text: &str) -> bool {
    text.contains("Multi-User") || text.contains("multi-user")
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

/// True if `unit`, of which a line tells, is failed now.
fn is_failed(host: &Host, boot: &Boot, unit: &Object) -> bool {
    let shown = || {
        let event = unit.last.event.and_then(|at| boot.events.get(at))?;
        Some(&*event.unit).filter(|unit| !unit.is_empty())
    };
    let service = format!("{}.service", unit.name);
    let names = [Some(service.as_str()), Some(unit.name.as_str()), shown()];
    let of = names.into_iter().flatten().find_map(|name| host.graph.get(name));
    of.is_some_and(|unit| unit.now.active == "failed")
}

fn last_word(text: &str) -> &str {
    text.rsplit([' ', ':']).next().unwrap_or(text)
}

/// What systemd-networkd says of a netdev.
fn of_networkd(text: &str) -> Option<(&str, State)> {
    let found = [
        (": Gained carrier", State::Good),
        (": DHCPv4 address ", State::Good),
        (": Lost carrier", State::Bad(Lack::Carrier)),
        (": DHCPv4 client: Timed out", State::Bad(Lack::Address)),
        (": DHCPv4 client: timed out", State::Bad(Lack::Address)),
    ];
    let of = |(words, state): (&str, State)| Some((last_word(text.split_once(words)?.0), state));
    found.into_iter().find_map(of).filter(|(name, _)| !name.is_empty())
}

/// What NetworkManager says of a netdev.
fn of_manager(text: &str) -> Option<(&str, State)> {
    let device =
        caught::<2>(text, "device ({}): {}").or_else(|| caught::<2>(text, "dhcp4 ({}): {}"));
    let [name, rest] = device?;
    let state = if rest.starts_with("carrier: link connected")
        || rest.starts_with("Activation: successful")
        || rest.starts_with("state changed new lease")
    {
        State::Good
    } else if rest.starts_with("carrier: link disconnected")
        || rest.contains("-> unavailable (reason 'carrier-changed'")
    {
        State::Bad(Lack::Carrier)
    } else if rest.starts_with("request timed out")
        || rest.contains("-> failed (reason")
        || rest.starts_with("Activation: failed")
    {
        State::Bad(Lack::Address)
    } else {
        return None;
    };
    Some((name, state))
}

/// What an Ethernet driver says of the link of its netdev: `mlx5_core 0000:42:00.1 eth4: Link
/// up`, `bnxt_en 0000:01:00.0 eno1: NIC Link is Up, 25000 Mbps`.
fn link_of_driver(text: &str) -> Option<(&str, bool)> {
    let words = [(": Link up", true), (": Link Up", true), (": Link down", false)];
    let words = words.into_iter().chain([
        (": Link Down", false),
        (": NIC Link is Up", true),
        (": NIC Link is up", true),
        (": NIC Link is Down", false),
        (": NIC Link is down", false),
    ]);
    let mut found = words.filter_map(|(w, up)| Some((last_word(text.split_once(w)?.0), up)));
    found.next().filter(|(name, _)| !name.is_empty())
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
