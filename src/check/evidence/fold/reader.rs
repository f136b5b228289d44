//! Goes through the lines and dumps of a boot in order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::lines::{
    bridge, bus, driven, ends, given_up, last_word, link_of_driver, of_manager, of_networkd,
    port_state,
};
use super::{Fold, Lack, Object, Said, State, What, unit_name};
use crate::check::evidence::event::{Event, Kind, Origin, When, function};
use crate::check::evidence::own::{About, Own};
use crate::check::evidence::relevance::rdma_device_in;
use crate::check::evidence::state::{NetdevSeen, PortSeen, UnitSeen};
use crate::check::evidence::{Boot, Host};
use crate::check::pattern::{caught, caught_one, word};
use crate::graph::consumers::uses_fabric_by_name;
use crate::model::common::listed;
use crate::model::node::Standing;
use crate::names::{PciAddress, RDMA_MODULES, Rung, is_ipoib_name, roce_half_of};

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
    // A line of a dump has no time.
    let logged = |e: &&Event| !e.when.stamp.is_empty();
    let logs: BTreeSet<u16> =
        boot.events.iter().filter(logged).map(|event| event.origin.source).collect();
    // A dump in a log stands behind the line above it.
    let place = |origin: Origin| {
        let above = |e: &Event| e.origin.source == origin.source && e.origin.line <= origin.line;
        let at = logs.contains(&origin.source).then(|| boot.events.iter().rposition(above));
        at.flatten().map_or(0, |at| at + 1)
    };
    let state = &boot.state;
    let events = boot.events.iter().enumerate();
    let events = events.map(|(at, e)| (at + 1, e.origin, Item::Event(at, e)));
    let dumps = state.ports.iter().map(|port| (port.origin, Item::Port(port)));
    let dumps = dumps.chain(state.netdevs.iter().map(|n| (n.origin, Item::Netdev(n))));
    let dumps = dumps.chain(state.units.iter().map(|unit| (unit.origin, Item::Unit(unit))));
    let dumps = dumps.map(|(origin, item)| (place(origin), origin, item));
    let mut items: Vec<(usize, Origin, Item<'_>)> = events.chain(dumps).collect();
    // In a log of its own each event has a place; of what is no log the lines count.
    items.sort_by_key(|(place, origin, _)| match logs.contains(&origin.source) {
        true => (false, *place, *origin),
        false => (true, 0, *origin),
    });
    items.into_iter().map(|(_, _, item)| item).collect()
}

/// Goes through a boot.
pub struct Reader<'a> {
    boot: &'a Boot,
    fold: Fold,
    /// Netdevs of Ethernet, with the function that they are of, and its RDMA half.
    ethernet: BTreeMap<String, (String, &'static str)>,
    /// RDMA halves of Ethernet drivers that the boot names.
    halves: BTreeSet<&'static str>,
    /// The buses behind each bridge.
    bridges: BTreeMap<String, RangeInclusive<u8>>,
    /// Netdevs that are not the fabric's.
    has_others: bool,
    /// The netdev for which dhclient asks.
    asked: Option<String>,
    /// The system shuts down: what ends, ends by right.
    is_ending: bool,
    now: usize,
    /// Where the first dump of a port is.
    ports_at: Option<usize>,
}

impl<'a> Reader<'a> {
    pub fn new(boot: &'a Boot) -> Self {
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
            is_ending: false,
            now: 0,
            ports_at: None,
        }
    }

    pub fn read(mut self) -> Fold {
        for (now, item) in items(self.boot).into_iter().enumerate() {
            self.now = now;
            match item {
                Item::Event(at, event) => self.event(at, event),
                Item::Port(port) => self.port(port),
                Item::Netdev(netdev) => self.netdev(netdev),
                Item::Unit(unit) => self.unit(unit),
            }
        }
        self.finish()
    }

    fn finish(mut self) -> Fold {
        // That all ports are active, when somebody looked, is the last word on cables: if there are
        // as many as adapters had netdevs.
        let ports = self.boot.state.ports.iter().filter(|port| port.may_be_infiniband());
        let netdevs = self.fold.objects.values().filter(|object| object.what == What::Netdev);
        let adapters: BTreeSet<&str> = netdevs.filter_map(|o| o.adapter.as_deref()).collect();
        let is_whole = ports.clone().count() >= adapters.len().max(1);
        let looked = self.ports_at.filter(|_| is_whole && ports.clone().all(PortSeen::is_active));
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
        let quote = self.boot.quote_at(origin, text);
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
        self.is_ending = ends(text).unwrap_or(self.is_ending);
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
        let bad = |lack| self.said(State::Bad(lack), at, event);
        match &event.kind {
            Kind::UnitFailed(_) => {
                self.put(What::Unit, &unit_name(event), bad(Lack::Failed), None);
            }
            Kind::UnitStarted(_) => {
                let (name, said) = (unit_name(event), good());
                if uses_fabric_by_name(&name) || self.object(What::Unit, &name).is_some() {
                    self.put(What::Unit, &name, said, None);
                }
            }
            Kind::NetdevRenamed { from, to } => self.renamed(from, to, at, event),
            Kind::LinkReady(name) | Kind::InterfaceAsked { name, worked: Some(true) } => {
                self.netdev_said(name, good(), Some(Rung::Active));
            }
            Kind::DriverProbe { driver, address } if RDMA_MODULES.contains(&&**driver) => {
                self.put(What::Adapter, address, unknown(), Some(Rung::Driver));
            }
            Kind::ProbeFailed { driver, device, .. }
                if RDMA_MODULES.contains(&&**driver) && device.parse::<PciAddress>().is_ok() =>
            {
                self.put(What::Adapter, device, bad(Lack::Driver), None);
            }
            Kind::NetdevMade { address } => {
                self.put(What::Adapter, address, unknown(), Some(Rung::Netdev));
            }
            Kind::Own(Own { about: About::Online, objects, standing: Standing::Ready }) => {
                self.put(What::Port, &listed(objects), good(), Some(Rung::Active));
            }
            Kind::Own(Own { about: About::WaitOnline, standing: Standing::Ready, .. }) => {
                self.put(What::Port, "the ports of ibprov wait-online", good(), Some(Rung::Active));
            }
            Kind::Own(_) | Kind::UnitStarting(_) => {}
            _ if &*event.program == "ibprov" || self.pcie(at, event) => {}
            _ => self.text(at, event),
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
        let bad = |lack| said(State::Bad(lack));
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
        } else if let Some((port, state)) = port_state(text).filter(|_| event.from_kernel()) {
            let adapter = function(text).map(str::to_owned);
            // Its netdev may have told that it was Active, or the only one that there is.
            let others = || self.fold.objects().filter(|o| o.is_port() && o.name != port);
            let is_only = others().count() == 1;
            let is_its = |o: &Object| match &o.adapter {
                Some(its) => adapter.as_ref() == Some(its),
                None => is_only,
            };
            let was = |o: &Object| o.what == What::Netdev && o.has_reached(Rung::Active);
            let had = self.has_reached(What::Port, &port, Rung::Active)
                || others().any(|o| was(o) && is_its(o));
            let (state, rung) = of_port(state, had);
            self.put(What::Port, &port, said(state), rung).adapter = adapter;
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
                let said = if is_up { said(State::Good) } else { bad(Lack::Carrier) };
                self.netdev_said(name, said, is_up.then_some(Rung::Active));
            }
        } else if let Some((head, _)) = text.split_once(": link is not ready") {
            let name = last_word(head);
            if self.has_reached(What::Netdev, name, Rung::Link) {
                self.lost(name, bad(Lack::Carrier));
            }
        } else if text.contains("Port module event") {
            self.module_event(at, event);
        } else if let Some([port, state]) =
            caught::<2>(text, "{}: logical state changed to PORT_{}")
        {
            let (port, state) = (last_word(port), word(state));
            let had = self.has_reached(What::Port, port, Rung::Active);
            let (state, rung) = of_port(state, had);
            let adapter = function(text).map(str::to_owned);
            self.put(What::Port, port, said(state), rung).adapter = adapter;
        } else if text.contains("IB: Port active") {
            let port = rdma_device_in(text).or_else(|| function(text)).unwrap_or("a port");
            self.put(What::Port, port, said(State::Good), Some(Rung::Active));
        } else if text.contains("SUBNET UP") {
            let port = "the port of the subnet manager";
            self.put(What::Port, port, said(State::Good), Some(Rung::Active));
        } else if let Some(rest) = text.split_once("DHCPDISCOVER on ").map(|(_, rest)| rest) {
            self.asked = Some(word(rest).to_owned());
        } else if text.contains("No DHCPOFFERS") || text.starts_with("bound to ") {
            let is_bound = text.starts_with("bound to ");
            let said = if is_bound { said(State::Good) } else { bad(Lack::Address) };
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

    /// A line about errors of a PCIe link, and whether the function was recovered; false of
    /// another line.
    fn pcie(&mut self, at: usize, event: &Event) -> bool {
        let text = &*event.text;
        let is_behind = |o: &Object| self.is_behind(function(text), o);
        let (adapters, state) = if text.contains("AER: device recovery successful") {
            let is_lost = |o: &Object| o.lack() == Some(Lack::Bus);
            (self.adapters(is_lost), State::Unknown)
        } else if let Some((_, of)) = text
            .split_once("AER: Uncorrect")
            .or_else(|| text.split_once(" ").filter(|_| text.contains("mlx5_pci_err_detected")))
        {
            let named = |o: &Object| function(of) == Some(&*o.name);
            (self.adapters(named), State::Bad(Lack::Bus))
        } else if let Some([_, source]) = caught::<2>(text, "DPC: containment event{}source:0x{}") {
            let source = u16::from_str_radix(word(source), 16).unwrap_or_default();
            let (bus, device, function) = (source >> 8, source >> 3 & 0x1f, source & 7);
            let place = format!("{bus:02x}:{device:02x}.{function}");
            let is_it = |o: &Object| is_behind(o) || o.name.ends_with(&place);
            (self.adapters(is_it), State::Bad(Lack::Bus))
        } else if text.contains("AER: device recovery failed") || text.contains("): Link Down") {
            (self.adapters(is_behind), State::Bad(Lack::Bus))
        } else {
            return false;
        };
        for adapter in adapters {
            self.adapter_lost(&adapter, self.said(state, at, event));
        }
        true
    }

    /// The adapters of which `is_it` is true.
    fn adapters(&self, is_it: impl Fn(&Object) -> bool) -> Vec<String> {
        let all = self.fold.objects().filter(|o| o.what == What::Adapter && is_it(o));
        all.map(|adapter| adapter.name.clone()).collect()
    }

    fn is_behind(&self, bridge: Option<&str>, adapter: &Object) -> bool {
        let buses = bridge.and_then(|bridge| self.bridges.get(bridge));
        buses.zip(bus(&adapter.name)).is_some_and(|(buses, bus)| buses.contains(&bus))
    }

    /// A line about the PCI bus.
    fn bus(&mut self, at: usize, event: &Event) {
        let text = &*event.text;
        let bad = |lack| self.said(State::Bad(lack), at, event);
        if let Some((bridge, buses)) = bridge(text) {
            self.bridges.insert(bridge.to_owned(), buses);
        } else if let Some(slot) = caught_one(text, "Slot({}): Card not present") {
            let said = bad(Lack::Gone);
            for adapter in self.in_slot(slot, function(text)) {
                self.adapter_lost(&adapter, said.clone());
            }
        } else if text.contains("AER: can't recover") {
            let known = |a: &&str| self.object(What::Adapter, a).is_some();
            if let Some(adapter) = driven(text).or_else(|| function(text).filter(known)) {
                self.adapter_lost(adapter, bad(Lack::Gone));
            }
        } else if let Some(place) = caught_one(text, "Request device [{}]")
            .or_else(|| caught_one(text, "IO_PAGE_FAULT device={} "))
        {
            let place = place.replace("0x", "");
            let mut adapters = self.boot.events.iter().filter_map(|e| driven(&e.text));
            let adapter = adapters.find(|a| a.ends_with(&place) && place.len() >= 7);
            if let Some(adapter) = adapter {
                self.put(What::Adapter, adapter, bad(Lack::Fault), None);
            }
        } else if text.contains("Firmware over") && text.contains("aborting")
            || text.contains(": mlx5_load:")
        {
            if let Some(adapter) = driven(text) {
                self.put(What::Adapter, adapter, bad(Lack::Driver), None);
            }
        } else if let Some(port) = given_up(text) {
            self.put(What::Port, &port, bad(Lack::Driver), None);
        }
    }

    /// The adapters that may be in `slot` of `bridge`: those that are known to be, or the only
    /// one of which that is not known.
    fn in_slot(&self, slot: &str, bridge: Option<&str>) -> Vec<String> {
        if bridge.is_some_and(|bridge| self.bridges.contains_key(bridge)) {
            return self.adapters(|o| self.is_behind(bridge, o));
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
        let known = self.adapters(|o| slots(&o.name).contains(&slot));
        let open = self.adapters(|o| slots(&o.name).is_empty());
        match known.as_slice() {
            [] if open.len() == 1 => open,
            _ => known,
        }
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
            self.adapter_lost(adapter, said(State::Bad(Lack::Cable)));
        } else {
            self.put(What::Adapter, adapter, said(State::Unknown), None);
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
            // What was said of its cable stands.
            let last = self.object(What::Adapter, address).map(|adapter| adapter.last.clone());
            let said = last.unwrap_or_else(|| self.said(State::Unknown, at, event));
            self.put(What::Adapter, address, said, Some(Rung::Named));
        }
        let netdev = self.put(What::Netdev, to, said, Some(Rung::Named));
        netdev.adapter = address.or(netdev.adapter.take());
    }

    fn port(&mut self, port: &PortSeen) {
        self.ports_at = self.ports_at.or(Some(self.now));
        let name = port.name();
        let had = self.has_reached(What::Port, &name, Rung::Active);
        let state = match port.is_active() {
            true => State::Good,
            false if had || port.is_disabled() => State::Bad(Lack::NotActive),
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
        self.netdev_said(&netdev.name, self.shown(state, netdev.origin, &netdev.text), rung);
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
        self.put(What::Unit, &name, self.shown(state, unit.origin, &unit.text), None);
    }
}

/// How a port is of which the driver says that it is in `state`; it `had` been Active.
fn of_port(state: &str, had: bool) -> (State, Option<Rung>) {
    match state {
        "ACTIVE" => (State::Good, Some(Rung::Active)),
        _ if had => (State::Bad(Lack::NotActive), None),
        _ => (State::Unknown, None),
    }
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
