//! The judgement of the node, for the verbs that show it: what is known is gathered here.

mod fabric;
pub mod firmware;
pub mod judge;
pub mod pf_preview;
mod ports;
pub mod soft_roce;
mod subnet_managers;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use self::judge::{Known, KnownPort, judge};
use crate::apply::warnings::foreseen_of_all;
use crate::apply::{in_use, ipoib};
use crate::config::Config;
use crate::config::pins::Pins;
use crate::config::timespan::TimeSpan;
use crate::host::start_up::FirstRun;
use crate::host::{KernelLine, Root, answer, clock, kernel_log, state, systemctl};
use crate::inventory::{self, Entry, Inventory};
use crate::ladder::active::{self, Activity, Subject};
use crate::ladder::expect::{candidate, expectation};
use crate::ladder::minimum::{degraded_pcie, degraded_port, minimum};
use crate::ladder::module_trouble::{self, Signs};
use crate::ladder::progress::progress;
use crate::ladder::roce::{self, Roce, has_gid};
use crate::ladder::{Expectation, Facts, cause};
use crate::names::{
    FirmwareVersion, IfName, IsVf, LinkLayer, MadPort, ModuleName, ModuleState, PciAddress,
    RdmaName, Rung, is_ipoib_name,
};
use crate::observe::ipoib::{Interface, Interfaces};
use crate::observe::link::PortAnswer;
use crate::observe::plan_host::{self, PlanHost};
use crate::observe::{
    self, Look, ModprobeRules, Observed, PciFunction, RdmaDevice, driver_modules, namespaces,
};
use crate::plan::guid::{Resolved, pins_unreadable, resolve};
use crate::plan::settings::{Children, Settings, judge_settings, settings};
use crate::plan::{denied_modules, misnamed, needed_modules};
use crate::report::advice::Advice;
use crate::report::common::{Code, Finding, Severity};
use crate::report::degraded::{Degraded, PcieLink};
use crate::report::guests::GuestsReport;
use crate::report::hardware::{NetDevState, NodeDescription, Vf};
use crate::report::netns::Netns;
use crate::report::node::Judgement;
use crate::report::online::Lack;
use crate::report::plan::PlannedPf;
use crate::report::rxe::RxeReport;
use crate::report::stack::Asked;
use crate::report::subnet_manager::SubnetManagerReport;
use crate::report::{self, BootReport, Cause, ModuleTrouble, NotExpected, PortProgress};
use crate::stacks;
use crate::workers::survey::{Survey, survey};

/// The node, looked at once: what is there, what the configuration expects, how far that is
/// and why it is no further.
#[derive(Debug)]
pub struct Node<'a> {
    pub root: &'a Root,
    pub config: &'a Config,
    pub observed: Observed,
    pub survey: Survey,
    pub soft_roce: Vec<RxeReport>,
    pub rules: ModprobeRules,
    /// Without what is left out.
    pub expectation: Expectation,
    pub left_out: BTreeMap<PciAddress, NotExpected>,
    pub interfaces: Interfaces,
    /// What the network stacks of this boot are configured to set up.
    pub asked: Vec<Asked>,
    pub facts: Facts,
    /// The expected ports, with their settings judged.
    pub ports: Vec<PortProgress>,
    /// How the configured subnet managers stand, once the node is judged.
    pub subnet_managers: Vec<SubnetManagerReport>,
    /// What could not be read.
    pub problems: Vec<String>,
    inventory: OnceCell<Inventory>,
}

/// The plans of all PFs, and what they are made from.
#[derive(Debug)]
pub struct Plans {
    pub facts: PlanHost,
    pub pins: Result<Pins, String>,
    pub resolved: Vec<Resolved>,
    /// What could not be read.
    pub problems: BTreeSet<String>,
}

impl<'a> Node<'a> {
    /// Look at the node below `root`. `last_boot` has tried to load modules, and of a refused
    /// signature the kernel log may say nothing.
    pub fn look(root: &'a Root, config: &'a Config, last_boot: Option<&BootReport>) -> Self {
        Self::look_for(Children::Counted, false, root, config, last_boot)
    }

    /// As a run of `ibprov iface` would find it; with `force` nothing counts as in use.
    pub fn look_as_iface(root: &'a Root, config: &'a Config, force: bool) -> Self {
        Self::look_for(Children::Counted, force, root, config, None)
    }

    /// As boot would find it.
    pub fn look_as_boot(root: &'a Root, config: &'a Config, force: bool) -> Self {
        Self::look_for(Children::Excused, force, root, config, None)
    }

    fn look_for(
        children: Children,
        force: bool,
        root: &'a Root,
        config: &'a Config,
        last_boot: Option<&BootReport>,
    ) -> Self {
        let modules: Vec<ModuleName> =
            config.modules.load.iter().cloned().chain(driver_modules()).collect();
        let is_asked = |f: &PciFunction| f.physfn.is_none() || f.driver.is_some();
        let is_roce = |f: &PciFunction| roce::is_expected(config, f);
        let soft_roce = soft_roce::judged(config, root);
        let mut interfaces = stacks::interfaces(root, config);
        let mut netdevs = soft_roce::netdevs(&soft_roce);
        let with_parent = interfaces.all.iter().filter(|interface| interface.parent.is_some());
        netdevs.extend(with_parent.map(|child| child.name.clone()));
        let (observed, survey) = survey(root, &modules, is_asked, is_roce, &netdevs);
        let rules = ModprobeRules::read(root);
        let mut problems: Vec<String> = observed.problems.iter().cloned().collect();
        let mut facts = Facts::default();
        learn(&mut facts, root, config, &rules, &observed, last_boot, &mut problems);
        // Boot loads it, and waits for what it makes.
        let mut ports =
            observed.functions.iter().flat_map(|f| &f.rdma).flat_map(|device| &device.ports);
        let is_without = children == Children::Counted
            && observed.is_absent("ib_ipoib")
            && ports.all(|port| port.netdev.is_none());
        facts.wants_ipoib = match is_without {
            true => ipoib::wanted(root, config, &rules),
            false => ipoib::wanted_denied(root, config, &rules),
        };
        let mut expectation = expectation(config, &observed, &rules, facts.wants_ipoib.as_deref());
        expectation.is_whole = children == Children::Counted;
        if is_without && facts.wants_ipoib.is_none() {
            expectation.goal = Rung::Rdma;
        }
        let mut ports = progress(&expectation, &observed);
        // Of an RDMA device without ports a copy does not tell more than that it is there.
        for port in ports.iter_mut().filter(|port| port.port.is_none() && !root.is_live()) {
            port.reached = port.rdma.as_ref().map(|_| Rung::Rdma).or(port.reached);
        }
        let is_ipoib = |name: &str| {
            is_ipoib_name(name) || interfaces.all.iter().any(|i| i.name.as_str() == name)
        };
        let asked = stacks::KNOWN.claims(root, is_ipoib);
        if !force {
            in_use::learn(config, root, (&observed, &survey), &mut interfaces, &mut facts);
        }
        judge_settings(config, &interfaces, &mut ports, &mut facts, children);
        Node {
            root,
            config,
            soft_roce: soft_roce::with_lacks(soft_roce, root, &survey),
            observed,
            survey,
            left_out: std::mem::take(&mut expectation.left_out).into_iter().collect(),
            expectation,
            rules,
            interfaces,
            asked,
            facts,
            ports,
            subnet_managers: Vec::new(),
            problems,
            inventory: OnceCell::new(),
        }
    }

    /// Why `port`, one that is expected, is no further.
    pub fn cause(&self, port: &PortProgress) -> Option<Cause> {
        let cause = cause::cause(port, &self.observed, &self.facts)?;
        match self.missing_module(port) {
            Some((name, trouble)) if !trouble.tells() => Some(Cause::not_loaded(&name)),
            _ => Some(cause),
        }
    }

    /// The module that the next rung of `port` needs and that is not there.
    pub fn missing_module(&self, port: &PortProgress) -> Option<(ModuleName, ModuleTrouble)> {
        let name = self.next_module(port)?;
        let trouble = self.facts.modules.get(&name)?.clone();
        Some((name, trouble))
    }

    /// The module that the next rung of `port` needs.
    fn next_module(&self, port: &PortProgress) -> Option<ModuleName> {
        let function = self.function(port.pci?);
        match port.missing()? {
            Rung::Driver => function?.ib_driver?.parse().ok(),
            Rung::Rdma => observe::rdma_half(function?.driver.as_deref()?),
            Rung::Netdev if !port.must_be_ethernet => "ib_ipoib".parse().ok(),
            _ => None,
        }
    }

    /// What touches InfiniBand at boot beside ibprov, once it is asked for.
    pub fn inventory(&self) -> &Inventory {
        self.inventory.get_or_init(|| Inventory::read(self.root))
    }

    pub fn function(&self, pci: PciAddress) -> Option<&PciFunction> {
        self.observed.functions.iter().find(|f| f.address == pci)
    }

    /// True if `function` is shown by itself: VFs of this host are shown below their PF.
    pub fn is_shown(&self, function: &PciFunction) -> bool {
        let is_expected = self.ports.iter().any(|port| port.pci == Some(function.address));
        let is_hca = candidate(function).is_some() || !function.rdma.is_empty();
        function.physfn.is_none() && (is_hca || is_expected)
    }

    /// Judge the node; `configuration` is what is wrong with the configuration. The plans of VFs,
    /// held against the host, are given too.
    pub fn judgement(
        &mut self,
        configuration: Vec<Finding>,
        last_boot: Option<&BootReport>,
    ) -> (Judgement, Vec<PlannedPf>) {
        let pfs = self.planned();
        let mut failed_units = self.failed_units();
        let subnet_managers = self.judge_subnet_managers(&mut failed_units);
        let mut unread = Vec::new();
        let guests = guests(self.root, &mut unread);
        self.problems.extend(unread);
        let mut look = Look::new(self.root);
        let with_vfs = self.observed.functions.iter().filter(|f| f.physfn.is_none());
        let vfs: Vec<_> =
            with_vfs.map(|f| (f.address, self.survey.vfs(&mut look, f.address))).collect();
        let vf_ports = self.vf_ports(&vfs, &mut look);
        let needed = needed_modules(self.config, &self.observed, !self.ports.is_empty());
        let of_ports: Vec<ModuleName> =
            self.ports.iter().filter_map(|port| self.next_module(port)).collect();
        let is_missing = |module: &&&ModuleName| {
            self.observed.modules.get(**module) == Some(&ModuleState::Absent)
                && !of_ports.contains(module)
        };
        let with_reason = |module: &ModuleName| {
            let trouble = self.facts.modules.get(module).filter(|trouble| trouble.tells());
            (module.clone(), trouble.cloned())
        };
        let known_port = |progress| {
            let cause = self.cause(progress);
            // The fabric uses a port that has no netdev.
            let may_be = progress.reached >= Some(Rung::Rdma)
                && progress.link_layer == Some(LinkLayer::InfiniBand)
                && !progress.must_be_ethernet;
            let activity = match may_be || progress.is_usable(cause.as_ref()) {
                true => self.activity(progress),
                false => Activity::NotTold,
            };
            KnownPort { progress, cause, activity }
        };
        let driver = |port: &PortProgress| {
            port.pci.and_then(|pci| self.function(pci)).and_then(|f| f.driver.as_deref())
        };
        let degraded = self
            .ports
            .iter()
            .map(|port| (port, driver(port).unwrap_or_default(), self.degraded(port)));
        let known = Known {
            active: self.active_ports(),
            network: self.network(),
            agents: observe::units::other_agents(self.root),
            unwatched: self.unwatched(),
            descriptions: self.descriptions(),
            left_out: self.left_out.iter().map(|(pci, reason)| (*pci, reason.clone())).collect(),
            ethernet: self.ethernet(),
            needs_no_ipoib: self.expectation.goal == Rung::Rdma,
            at_least: self.config.boot.at_least.as_ref().map(|at_least| at_least.ports),
            soft_roce: &self.soft_roce,
            degraded: degraded.filter(|(.., all)| !all.is_empty()).collect(),
            pcie: self.pcie(),
            configuration,
            unreadable: unreadable(self.root),
            ports: self.ports.iter().map(known_port).collect(),
            netns: self.netns(),
            missing_modules: needed
                .iter()
                .filter(is_missing)
                .map(|module| with_reason(module))
                .collect(),
            guests,
            settings: self.settings().into_iter().chain(self.misnamed()).collect(),
            contradictions: self.contradictions(),
            without_node: self.without_node(),
            firmware: firmware::findings(self.root, self.config, &self.observed),
            subnet_managers,
            is_switched_off: self
                .root
                .attribute("/proc/cmdline")
                .is_ok_and(|line| line.split_whitespace().any(|word| word == "ibprov=0")),
            pfs: &pfs,
            last_runs: self.last_runs(&pfs),
            silent: self.survey.silent.clone(),
            rtnl: self.survey.rtnl,
            unread: self.survey.unread.clone(),
            second_ports: self.second_ports(&vfs),
            vf_ports,
            without_guid: self.without_guid(),
            guids: self.guids(&vfs, &pfs),
            zero_vfs: self.zero_vfs(&vfs),
            configured: self.configured(&vfs),
            probe_failed: {
                let logs = self.facts.functions.iter();
                logs.filter(|(_, log)| log.probe_failed.is_some()).map(|(pci, _)| *pci).collect()
            },
            vfs: vfs.iter().map(|(pf, vfs): &(_, Vec<Vf>)| (*pf, vfs.as_slice())).collect(),
            boot_has: FirstRun::under_way(self.root, clock::monotonic_usec())
                .filter(|_| self.root.is_live())
                .map(|usec| TimeSpan(Duration::from_micros(usec))),
            last_boot,
            failed_units,
            has_adapter: self.observed.functions.iter().any(|f| self.is_shown(f)),
        };
        (judge(&known), pfs)
    }

    /// The adapters, all in Ethernet mode, where something of the host is configured for
    /// InfiniBand.
    fn ethernet(&self) -> Option<(Vec<PciAddress>, String)> {
        let adapters = || self.observed.functions.iter().filter(|f| f.physfn.is_none());
        if !self.ports.is_empty() || adapters().any(|f| candidate(f).is_some()) {
            return None;
        }
        let ethernet = adapters().filter(|f| f.ib_driver == Some("mlx5_core"));
        let ethernet: Vec<PciAddress> = ethernet.map(|f| f.address).collect();
        if ethernet.is_empty() {
            return None;
        }
        Some((ethernet, ipoib::set_up(self.root, self.config)?))
    }

    /// The adapters in Ethernet mode with an RDMA device, where nothing is expected and no
    /// `[[port]]` says what would be.
    pub fn unwatched(&self) -> Vec<PciAddress> {
        let Config { ports, pf, rxe, .. } = self.config;
        let is_none = ports.is_empty() && pf.is_empty() && rxe.is_empty();
        let is_none = is_none && self.ports.iter().all(|port| port.is_ethernet());
        let functions = self.observed.functions.iter().filter(|_| is_none);
        let is_roce = |f: &&PciFunction| {
            let mut ports = f.rdma.iter().flat_map(|device| &device.ports);
            f.physfn.is_none() && ports.any(|port| port.link_layer == LinkLayer::Ethernet)
        };
        functions.filter(is_roce).map(|f| f.address).collect()
    }

    /// What the link of this port and the PCIe link of its adapter lack.
    pub fn degraded(&self, port: &PortProgress) -> Vec<Degraded> {
        let minimum = minimum(self.config, port);
        let (Some(pci), Some(device), Some(number)) = (port.pci, &port.rdma, port.port) else {
            return Vec::new();
        };
        let answer = self.survey.port(pci, device, number);
        let mut all = answer.map(|a| degraded_port(&minimum, &a.link)).unwrap_or_default();
        all.extend(self.survey.pcie.get(&pci).iter().flat_map(|l| degraded_pcie(&minimum, l)));
        if let Some(minimum) = minimum.firmware {
            let card = observe::link::card(&mut Look::new(self.root), pci, device);
            let is: Option<FirmwareVersion> = card.firmware.and_then(|text| text.parse().ok());
            let is_old = is.is_none_or(|is| is < minimum);
            all.extend(is_old.then_some(Degraded::Firmware { is, minimum }));
        }
        all
    }

    /// The node descriptions of adapters that have an expected port.
    fn descriptions(&self) -> Vec<(RdmaName, NodeDescription)> {
        let functions = self.observed.functions.iter();
        let functions = functions.filter(|f| f.physfn.is_none() && self.is_expected(f.address));
        let devices = functions.flat_map(|f| f.rdma.iter().map(move |device| (f.address, device)));
        let of = |(pci, device): (_, &RdmaDevice)| {
            let description = observe::link::node_description(self.root, pci, &device.name)?;
            Some((device.name.clone(), description))
        };
        devices.filter_map(of).collect()
    }

    /// The PCIe links of adapters that have an expected port.
    fn pcie(&self) -> Vec<(PciAddress, PcieLink)> {
        let links = self.survey.pcie.iter().map(|(pci, link)| (*pci, *link));
        links.filter(|(pci, _)| self.is_expected(*pci)).collect()
    }

    /// A port of this function is expected.
    fn is_expected(&self, pci: PciAddress) -> bool {
        self.ports.iter().any(|port| port.pci == Some(pci))
    }

    /// How the netdev of a port in Ethernet mode that is expected is, and its GIDs.
    pub fn roce(&self, port: &PortProgress) -> Roce {
        let (Some(pci), Some(device), Some(number), Some(netdev)) =
            (port.pci, &port.rdma, port.port, &port.netdev)
        else {
            return Roce::default();
        };
        let state = self.netdev(netdev);
        let gids = observe::link::gids(self.root, pci, device, (number, LinkLayer::Ethernet));
        Roce { up: state.admin_up != Some(false), carrier: state.carrier, has_gid: has_gid(&gids) }
    }

    /// Whether the netdev of that name is up and has carrier.
    pub fn netdev(&self, name: &IfName) -> NetDevState {
        observe::link::netdev(self.root, name, self.survey.carriers.get(name).copied())
    }

    /// Whether the fabric uses an expected port that it can use.
    pub fn activity(&self, port: &PortProgress) -> Activity {
        match port.must_be_ethernet {
            true => self.roce_activity(port),
            false => self.infiniband_activity(port),
        }
    }

    fn infiniband_activity(&self, port: &PortProgress) -> Activity {
        let is_copy = !self.root.is_live();
        let (Some(pci), Some(device), Some(number)) = (port.pci, &port.rdma, port.port) else {
            return if is_copy { Activity::NotShown } else { Activity::NotTold };
        };
        let function = self.function(pci);
        let hca = function.and_then(|f| f.physfn).unwrap_or(pci);
        let is_shown = |answer: &&PortAnswer| {
            !is_copy || answer.link.state.is_some() && answer.link.physical.is_some()
        };
        match self.survey.port(pci, device, number).filter(is_shown) {
            Some(answer) => match active::lack(&answer.link, Rung::Active) {
                None => Activity::Active,
                Some(lack) => {
                    let subject = self.subject(function, pci, port.mad_port());
                    let mut words = active::words(&subject, answer);
                    let is_dark = lack == Lack::Link && subject.vf == IsVf::No;
                    words.advice.extend(is_dark.then(meant_dark));
                    Activity::Lacks(lack, words)
                }
            },
            None if self.survey.silent.contains_key(&hca) => Activity::NotTold,
            None if is_copy => Activity::NotShown,
            None => {
                let text = "the driver does not report the state of the port";
                Activity::Lacks(Lack::Answer, Cause::waiting(text, [Advice::look("dmesg")]))
            }
        }
    }

    /// The port `at` of `pci`, as it is spoken of.
    pub fn subject(&self, function: Option<&PciFunction>, pci: PciAddress, at: MadPort) -> Subject {
        let beside = self.survey.ports.iter().find(|((other, device, number), answer)| {
            let is_itself = Some(device) == at.device.as_ref() && Some(*number) == at.port;
            let is_vf = self.function(*other).is_some_and(|f| f.is_vf() != IsVf::No);
            !is_itself && !is_vf && answer.link.is_active()
        });
        Subject {
            pci: Some(pci),
            at,
            vf: function.map(PciFunction::is_vf).unwrap_or_default(),
            driver: function.and_then(|f| f.driver.clone()).unwrap_or_default(),
            beside: beside.map(|((_, device, number), _)| format!("{device}/{number}")),
        }
    }

    fn roce_activity(&self, port: &PortProgress) -> Activity {
        let lack = match self.roce(port).lack(Rung::Active) {
            None => return Activity::Active,
            Some(Lack::Answer | Lack::Gid) if !self.shows_roce(port) => return Activity::NotShown,
            Some(Lack::Answer) if self.survey.rtnl.is_some() => return Activity::NotTold,
            Some(lack) => lack,
        };
        let own = port.netdev.as_ref().map(|netdev| self.survey.addresses_of(netdev));
        let addresses = own.unwrap_or_default();
        // A copied tree has no kernel to ask for them.
        let addresses = self.root.is_live().then_some(addresses.as_slice());
        let mut words = roce::words(port.netdev.as_ref(), lack, addresses);
        words.advice.extend((lack == Lack::Carrier).then(meant_dark));
        Activity::Lacks(lack, words)
    }

    /// False of a copy that lacks the carrier or the types of GIDs of the port.
    fn shows_roce(&self, port: &PortProgress) -> bool {
        let (Some(pci), Some(device), Some(number)) = (port.pci, &port.rdma, port.port) else {
            return true;
        };
        let types = format!("{}/gid_attrs/types", observe::link::port_dir(pci, device, number));
        self.root.is_live() || self.roce(port).carrier.is_some() && self.root.exists(&types)
    }

    fn planned(&mut self) -> Vec<PlannedPf> {
        if self.config.pf.is_empty() {
            return Vec::new();
        }
        let (pfs, problems) = self.held_against(self.plans());
        self.problems.extend(problems);
        pfs
    }

    /// The plans of all PFs.
    pub fn plans(&self) -> Plans {
        let mut look = Look::new(self.root);
        let facts = plan_host::plan_host(&mut look, &self.observed, self.config);
        let pins = plan_host::pins(self.root);
        let resolved = resolve(self.config, pins.as_ref().map_err(String::as_str), &facts);
        Plans { facts, pins, resolved, problems: look.problems }
    }

    /// `plans`, held against the host, and what could not be read. An adapter that has just been
    /// silent is not asked again.
    pub fn held_against(&self, plans: Plans) -> (Vec<PlannedPf>, BTreeSet<String>) {
        let (rtnl, is_rdma_held) = (self.survey.rtnl, self.survey.is_rdma_held);
        let mut hanging = self.survey.silent.clone();
        hanging.extend(self.survey.unread.iter().map(|pci| (*pci, rtnl)));
        let mut preview = pf_preview::PfPreview::new(self.root, hanging, is_rdma_held);
        preview.problems = plans.problems;
        let inventory = self.inventory();
        preview.problems.extend(inventory.problems.iter().cloned());
        let with_writers = |plan| {
            let mut pf = preview.report(plan, &plans.facts);
            if let Some(function) = pf.pci.and_then(|pci| self.function(pci)) {
                let places: Vec<String> =
                    inventory.vf_writers(function).map(Entry::to_string).collect();
                pf.warnings.extend((!places.is_empty()).then(|| other_writer(&places.join(", "))));
            }
            pf
        };
        let pfs = plans.resolved.iter().map(with_writers).collect();
        (pfs, preview.problems)
    }

    /// The RDMA devices of which programs cannot use an expected port, because it has no device
    /// node although the module that makes it is loaded. A port that is still on its way up is not
    /// judged: it may be about to have one.
    fn without_node(&self) -> Vec<Finding> {
        let is_loaded = |module: &str| {
            let mut modules = self.observed.modules.iter();
            modules.any(|(name, state)| name.as_str() == module && *state == ModuleState::Loaded)
        };
        let verbs = ("ib_uverbs", "infiniband_verbs", "uverbs", Severity::Error);
        let mad = ("ib_umad", "infiniband_mad", "umad", Severity::Warning);
        let mut findings: Vec<Finding> = Vec::new();
        for (module, class, node, severity) in [verbs, mad].into_iter().filter(|of| is_loaded(of.0))
        {
            for port in self.ports.iter().filter(|port| port.is_ready()) {
                let (Some(pci), Some(device), Some(number)) = (port.pci, &port.rdma, port.port)
                else {
                    continue;
                };
                let of = (node == "umad").then_some(number);
                if of.is_some() && port.link_layer != Some(LinkLayer::InfiniBand)
                    || observe::link::has_node(self.root, pci, class, device, of) != Some(false)
                {
                    continue;
                }
                let of = of.map_or_else(String::new, |number| format!(" for port {number}"));
                let message = format!("no {node} device{of}, although {module} is loaded");
                let severity = if port.optional { Severity::Warning } else { severity };
                let finding = Finding::new(Code::DeviceNodeMissing, severity, message);
                let advice = [
                    Advice::look(format!("dmesg | grep -e {node} -e {pci}")),
                    Advice::look(format!("ibprov holders {pci}")),
                    Advice::now(
                        "once nothing holds the adapter, rebind its driver; or drain and restart the node",
                    ),
                ];
                let finding = finding.about(device).advise(advice);
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
        findings
    }

    /// The RDMA network namespace mode, where one is configured.
    pub fn netns(&self) -> Option<Netns> {
        let mode = self.observed.netns_mode;
        self.config.netns_mode.map(|wanted| namespaces::netns(self.root, &self.rules, mode, wanted))
    }

    /// The settings of interfaces that cannot be made, or are left as they are.
    fn settings(&self) -> Vec<Finding> {
        let of = |interface: &Interface| match settings(
            self.config,
            &self.interfaces,
            &interface.name,
        ) {
            Settings::Left(why) | Settings::Open { refused: Some(why), .. } => why.of_settings(),
            _ => Vec::new(),
        };
        let is_asked = !self.config.interfaces.is_empty();
        self.interfaces.all.iter().filter(|_| is_asked).flat_map(of).collect()
    }

    /// The RDMA devices that have another name than their `[[port]]` says.
    fn misnamed(&self) -> impl Iterator<Item = Finding> {
        misnamed(self.config, &self.observed).map(|(device, _)| {
            let message = "another name is configured (rdma-name), which a restart of ibprov sets";
            let steps =
                [Advice::look("ibprov boot --dry-run"), Advice::now("systemctl restart ibprov")];
            Finding::warning(Code::RdmaNameDiffers, message).about(&device.name).advise(steps)
        })
    }

    /// What network stacks are configured to set otherwise than it is wanted, and who renames
    /// RDMA devices that the configuration names.
    pub fn contradictions(&self) -> Vec<Finding> {
        let mut findings = foreseen_of_all(self.root, self.config, &self.interfaces);
        findings.extend(inventory::not_run(self.root));
        let origins = self.config.rdma_names();
        if origins.is_empty() {
            return findings;
        }
        let inventory = self.inventory();
        findings.extend(inventory.problems.iter().map(Finding::not_read));
        let renamers = inventory.rdma_renamers();
        if !renamers.is_empty() {
            let message = format!(
                "RDMA devices are renamed here, so that the name in {} may be of no RDMA device, or of another one",
                origins.join(", ")
            );
            let advice = Advice::permanent(
                "name adapters by pci or port-guid in the configuration, or remove the other program",
            );
            let finding = Finding::warning(Code::RdmaOtherNamer, message);
            findings.push(finding.about_all(&renamers).advise([advice]));
        }
        findings
    }

    /// The soft RoCE devices, where any is configured.
    pub fn configured_rxe(&self) -> Vec<RxeReport> {
        if self.config.rxe.is_empty() { Vec::new() } else { self.soft_roce.clone() }
    }

    /// The units of ibprov's that have failed. A copied tree has none, nor has a host that
    /// systemd does not run on.
    fn failed_units(&mut self) -> Vec<String> {
        if !self.root.is_live() || !self.root.exists("/run/systemd/system") {
            return Vec::new();
        }
        systemctl::failed("ibprov*").unwrap_or_else(|e| {
            self.problems.push(format!("cannot query failed units from systemd: {}", answer(&e)));
            Vec::new()
        })
    }
}

/// What the kernel log and modprobe's files tell of why a port is no further.
fn learn(
    facts: &mut Facts,
    root: &Root,
    config: &Config,
    rules: &ModprobeRules,
    observed: &Observed,
    last_boot: Option<&BootReport>,
    problems: &mut Vec<String>,
) {
    let log = if root.is_live() { kernel_log() } else { Ok(Vec::new()) };
    let lines: Vec<KernelLine> = log.unwrap_or_else(|e| {
        let e = answer(&e);
        problems.push(format!("cannot read /dev/kmsg, so causes may be missing: {e}"));
        Vec::new()
    });
    for line in &lines {
        cause::learn(facts, line.level, &line.text);
    }
    let kernel_lines: Vec<String> = lines.into_iter().map(|l| l.text).collect();
    let kernel = observed.kernel.as_str();
    let is_absent = |m: &&ModuleName| observed.modules.get(*m) == Some(&ModuleState::Absent);
    facts.modules = denied_modules(config, rules, observed);
    for module in config.modules.load.iter().filter(is_absent) {
        if facts.modules.contains_key(module) {
            continue;
        }
        let built = observe::is_built(root, kernel, module);
        // A copied tree may lack the folder of modules, which says nothing of the host's.
        if built.is_none() && !root.is_live() {
            continue;
        }
        // Nobody has tried: what can be told without trying.
        let signs = Signs { rules, kernel, built, stderr: "", kernel_lines: &kernel_lines };
        let mut trouble = module_trouble::diagnose(module, signs);
        if let (ModuleTrouble::Other { said }, Some(tried)) =
            (&trouble, last_boot.and_then(|report| report.trouble_of(module)))
            && said.is_nothing()
        {
            trouble = tried.clone();
        }
        facts.modules.insert(module.clone(), trouble);
    }
}

/// What a valid configuration may have to say of this host: the expected ports that have no link
/// now, of which it does not say that this is meant, and what is wrong with the pins and with
/// subnet managers.
pub fn of_host(config: &Config, root: &Root) -> (Vec<PortProgress>, Vec<Finding>) {
    let mut node = Node::look(root, config, None);
    let mut failed = node.failed_units();
    let mut findings: Vec<Finding> = unreadable_pins(root).into_iter().collect();
    findings.extend(node.judge_subnet_managers(&mut failed));
    findings.extend(unknown_to_nvshmem(config, &node.observed));
    let is_dark = |port: &&PortProgress| {
        !port.optional
            && port.is_ready()
            && match node.activity(port) {
                Activity::Lacks(lack, _) => matches!(lack, Lack::Link | Lack::Carrier),
                Activity::Active | Activity::NotTold | Activity::NotShown => false,
            }
    };
    (node.ports.iter().filter(is_dark).cloned().collect(), findings)
}

/// The names of RDMA devices by which NVSHMEM does not know an adapter of mlx5 (`strstr(name,
/// "mlx5")` in the transports ibrc, ibgda and ibdevx up to 3.3.9).
fn unknown_to_nvshmem(config: &Config, observed: &Observed) -> Option<Finding> {
    let is_mlx5 = |pci| {
        let mut functions = observed.functions.iter();
        functions.any(|f| f.address == pci && f.ib_driver == Some("mlx5_core"))
    };
    let rows = config.ports.iter().filter_map(|row| Some((row, row.rdma_name()?)));
    let mut unknown =
        rows.filter(|(_, (pci, name))| is_mlx5(*pci) && !name.as_str().contains("mlx5"));
    let (row, (_, name)) = unknown.next()?;
    let message = format!(
        "NVSHMEM up to 3.3.9, and DeepEP with it, use only RDMA devices whose names contain mlx5: not {name}{}",
        match unknown.count() {
            0 => String::new(),
            n => format!(", and {n} more"),
        }
    );
    let advice = format!("if programs on this node use NVSHMEM: name them mlx5_{name} ...");
    let finding = Finding::new(Code::Notice, Severity::Info, message).about(&row.origin);
    Some(finding.advise([Advice::permanent(advice)]))
}

/// That the pins cannot be read, if so.
pub fn unreadable_pins(root: &Root) -> Option<Finding> {
    let why = plan_host::pins(root).err()?;
    // The message has the path.
    Some(pins_unreadable(&why))
}

/// The lines of files at `place` set the number of a PF's VFs too.
fn other_writer(place: &str) -> Finding {
    let message = format!(
        "VFs are created, or given GUIDs, by {place} too: of two writers the later is refused, or replaces what the other has set"
    );
    Finding::warning(Code::VfOtherWriter, message)
        .permanent([format!("remove what {place} does, or the [[pf]] of this PF")])
}

/// Why it is not known which PCI devices there are, if so.
pub fn unreadable(root: &Root) -> Option<String> {
    const DEVICES: &str = "/sys/bus/pci/devices";
    (!root.exists(DEVICES))
        .then(|| format!("the PCI devices are not known: {DEVICES} does not exist"))
}

/// The guests that did not come up in this boot, as the last run of `ibprov guests` says.
fn guests(root: &Root, problems: &mut Vec<String>) -> Vec<Finding> {
    let path = format!("{}/guests.json", state::RUN_DIR);
    let text = match root.text(&path, 16 << 20) {
        Ok(text) => text,
        Err(e) => {
            problems.extend((!e.is_absent()).then(|| e.to_string()));
            return Vec::new();
        }
    };
    let report = report::read::<GuestsReport>(&text);
    let report = report.map_err(|e| problems.push(format!("{path}: {e}")));
    let findings = report.map(|report| report.told().findings).unwrap_or_default();
    findings.into_iter().filter(|finding| finding.code == Code::GuestFailed).collect()
}

/// What to write where a port is meant to have no link.
fn meant_dark() -> Advice {
    Advice::permanent(
        "if nothing is meant to be connected to it: `required = false` in its [[port]], or boot.ignore (man 5 ibprov.toml)",
    )
}
