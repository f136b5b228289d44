//! What is judged of expected ports.

use super::adapters::{RESEAT, look_at_link};
use super::{Account, Node};
use crate::ladder::active::{self, Activity, Subject};
use crate::ladder::minimum::{degraded_pcie, degraded_port, minimum};
use crate::ladder::roce::{self, Roce};
use crate::model::{
    Advice, Awaited, Cause, Code, Degraded, Finding, PortProgress, Severity, Standing, ToDo,
    node::PortCount, online::Lack,
};
use crate::names::{
    FirmwareVersion, IsVf, LinkLayer, MadPort, ModuleState, Object, PciAddress, Rung,
};
use crate::observe::link::PortAnswer;
use crate::observe::{self, Look, PciFunction};

/// An expected port, and what is known of it.
#[derive(Debug, Clone)]
pub struct JudgedPort<'a> {
    pub progress: &'a PortProgress,
    /// Why it is no further.
    pub cause: Option<Cause>,
    /// Whether the fabric uses it; judged of one that boot does not wait for any more.
    pub activity: Activity,
    /// What of its link, its adapter's PCIe link and firmware is below the minimum.
    pub degraded: Vec<Degraded>,
}

impl JudgedPort<'_> {
    /// It is not there, and may come by waiting: its function is there, or no function is named.
    pub(super) fn may_come(&self) -> bool {
        let Self { progress: port, cause, .. } = self;
        let is_begun = port.reached.is_some() || port.of_number == Some(Awaited::Unnamed);
        let is_open = cause.as_ref().is_none_or(|cause| !cause.is_final);
        !port.is_ready() && is_begun && is_open
    }

    /// It does not come by waiting, and is required.
    pub(super) fn is_lost(&self) -> bool {
        let Self { progress: port, cause, .. } = self;
        let is_missing = port.standing(cause.as_ref()) == Standing::Missing;
        is_missing && !port.is_no_port() && !self.may_come()
    }

    fn is_usable(&self) -> bool {
        self.progress.is_usable(self.cause.as_ref())
    }

    fn count(&self) -> PortCount {
        let is = |activity| usize::from(self.activity == activity);
        PortCount {
            good: usize::from(self.progress.is_ready()),
            active: is(Activity::Active),
            not_judged: usize::from(self.is_usable()) * is(Activity::NotShown),
            of: 1,
        }
    }

    /// That the fabric does not use it: where too few ports are in use an error, of one that is
    /// optional a note.
    fn not_active(&self, is_enough: bool) -> Option<Finding> {
        let port = self.progress;
        let optional = if port.optional { " (optional)" } else { "" };
        let finding = match &self.activity {
            Activity::Active | Activity::NotTold => return None,
            Activity::NotShown => {
                let message = format!("not judged{optional}: the copy does not show its state");
                Finding::new(Code::PortNotJudged, Severity::Info, message)
            }
            Activity::Lacks(lack, Cause { text, advice, .. }) => {
                let severity = match (port.optional, is_enough) {
                    (true, _) => Severity::Info,
                    (false, true) => Severity::Warning,
                    (false, false) => Severity::Error,
                };
                let message = format!("{}{optional}: {text}", lack.lacking());
                // What is meant to be so needs no remedy.
                let advice = if port.optional { Vec::new() } else { advice.clone() };
                Finding::new(Code::PortNotActive, severity, message).advise(advice)
            }
        };
        Some(finding.about(port.label()))
    }
}

impl Account<'_> {
    fn infiniband(&self) -> impl Iterator<Item = &JudgedPort<'_>> + Clone {
        self.ports.iter().filter(|port| !port.progress.is_ethernet())
    }

    pub(super) fn of_ports(&self) -> Vec<(Object, PortCount)> {
        self.infiniband().map(|port| (port.progress.label(), port.count())).collect()
    }

    /// Whether so many ports are in use that another one is an exception: as many as
    /// `boot.at-least` says; else one of the required InfiniBand ports that can be judged, and
    /// without such one of all.
    fn is_enough(&self) -> bool {
        let is_active =
            |port: &JudgedPort<'_>| port.is_usable() && port.activity == Activity::Active;
        let is_unknown =
            |port: &JudgedPort<'_>| port.is_usable() && port.activity == Activity::NotShown;
        let is_required =
            |port: &JudgedPort<'_>| !port.progress.optional && !port.progress.must_be_ethernet;
        let mut required = self.infiniband().filter(|port| is_required(port) && !is_unknown(port));
        match (&self.node.config.boot.at_least, required.clone().next()) {
            (None, Some(_)) => required.any(is_active),
            (at_least, _) => {
                let is_possible = |port: &&JudgedPort<'_>| is_active(port) || is_unknown(port);
                let least = at_least.as_ref().map_or(1, |at_least| at_least.ports);
                self.infiniband().filter(is_possible).count() >= least
            }
        }
    }

    /// Ports that have not reached their goal: where too few are in use, what is an exception
    /// beside others is why.
    pub(super) fn ports_not_ready(&self, findings: &mut Vec<Finding>) {
        let (is_booting, is_enough) = (self.is_booting(), self.is_enough());
        for known in self.ports.iter().filter(|port| !(is_booting && port.may_come())) {
            let mut lacking = known.progress.findings(known.cause.as_ref());
            if !is_enough && !known.progress.optional && !known.is_usable() {
                lacking.iter_mut().for_each(|finding| finding.severity = Severity::Error);
            }
            findings.append(&mut lacking);
        }
    }

    /// Ports that boot does not wait for any more, and that the fabric does not use.
    pub(super) fn ports_not_active(&self, findings: &mut Vec<Finding>) {
        let is_enough = self.is_enough();
        let usable = self.infiniband().filter(|port| port.is_usable());
        findings.extend(usable.filter_map(|port| port.not_active(is_enough)));
    }

    pub(super) fn ports_degraded(&self, findings: &mut Vec<Finding>) {
        for JudgedPort { progress: port, degraded, .. } in &self.ports {
            for code in [Code::PortDegraded, Code::PcieBelowMinimum, Code::FirmwareBelowMinimum] {
                let own = degraded.iter().filter(|degraded| degraded.code() == code);
                let own: Vec<Degraded> = own.cloned().collect();
                if let (false, Some(pci)) = (own.is_empty(), port.pci) {
                    let message = format!("degraded: {}", Degraded::phrase(&own));
                    let finding = Finding::warning(code, message).about(port.label());
                    findings.push(finding.advise(self.node.how_to_mend(pci, code)));
                }
            }
        }
    }

    /// The RDMA devices of which programs cannot use an expected port, because it has no device
    /// node although the module that makes it is loaded. A port that is still on its way up is not
    /// judged, nor is one during boot: it may be about to have one.
    pub(super) fn without_node(&self, findings: &mut Vec<Finding>) {
        let Node { root, observed, ports, .. } = self.node;
        let is_loaded = |module: &str| {
            let mut modules = observed.modules.iter();
            modules.any(|(name, state)| name.as_str() == module && *state == ModuleState::Loaded)
        };
        let verbs = ("ib_uverbs", "infiniband_verbs", "uverbs", Severity::Error);
        let mad = ("ib_umad", "infiniband_mad", "umad", Severity::Warning);
        for (module, class, node, severity) in [verbs, mad] {
            if self.boot_has.is_some() || !is_loaded(module) {
                continue;
            }
            for port in ports.iter().filter(|port| port.is_ready()) {
                let Some((pci, device, number)) = port.place() else { continue };
                let of = (node == "umad").then_some(number);
                if of.is_some() && port.link_layer != Some(LinkLayer::InfiniBand)
                    || observe::link::has_node(root, pci, class, device, of) != Some(false)
                {
                    continue;
                }
                let of = of.map_or_else(String::new, |number| format!(" for port {number}"));
                let message = format!("no {node} device{of}, although {module} is loaded");
                let severity = if port.optional { Severity::Warning } else { severity };
                let finding = Finding::new(Code::DeviceNodeMissing, severity, message);
                let finding = finding.about(device).look([ToDo::run(format!("dmesg | grep -e {node} -e {pci}"))]).look([ToDo::run(format!("ibprov holders {pci}"))]).now(["once nothing holds the adapter, rebind its driver; or drain and restart the node"]);
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
    }
}

impl Node<'_> {
    pub(super) fn judged<'a>(&'a self, progress: &'a PortProgress) -> JudgedPort<'a> {
        let cause = self.cause(progress);
        // The fabric uses a port that has no netdev.
        let may_be = progress.reached >= Some(Rung::Rdma)
            && progress.link_layer == Some(LinkLayer::InfiniBand)
            && !progress.must_be_ethernet;
        let activity = if may_be || progress.is_usable(cause.as_ref()) {
            self.activity(progress)
        } else {
            Activity::NotTold
        };
        JudgedPort { progress, cause, activity, degraded: self.degraded(progress) }
    }

    pub(super) fn answer(&self, port: &PortProgress) -> Option<&PortAnswer> {
        let (pci, device, number) = port.place()?;
        self.survey.port(pci, device, number)
    }

    fn degraded(&self, port: &PortProgress) -> Vec<Degraded> {
        let Some((pci, device, _)) = port.place() else { return Vec::new() };
        let minimum = minimum(self.config, port);
        let answer = self.answer(port);
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

    /// What to do where a port of `pci` has less than it has to have, by the code of that. Only
    /// adapters with these drivers have the vendor's tools.
    fn how_to_mend(&self, pci: PciAddress, code: Code) -> Vec<Advice> {
        let driver = self.function(pci).and_then(|f| f.driver.as_deref()).unwrap_or_default();
        let (look, permanent) = match code {
            Code::PcieBelowMinimum => (Some(look_at_link(pci)), RESEAT),
            Code::FirmwareBelowMinimum => (
                driver
                    .starts_with("mlx")
                    .then(|| Advice::look(ToDo::run(format!("mstflint -d {pci} query")))),
                "update the firmware of the adapter",
            ),
            _ => (
                (driver == "mlx5_core")
                    .then(|| Advice::look(ToDo::run(format!("mlxlink -d {pci}")))),
                "check the cable, and speed and width of the switch port it leads to",
            ),
        };
        look.into_iter().chain([Advice::permanent(permanent)]).collect()
    }

    /// How the netdev of a port in Ethernet mode that is expected is, and its GIDs.
    pub fn roce(&self, port: &PortProgress) -> Roce {
        let (Some((pci, device, number)), Some(netdev)) = (port.place(), &port.netdev) else {
            return Roce::default();
        };
        let gids = observe::link::gids(self.root, pci, device, (number, LinkLayer::Ethernet));
        Roce::of(&self.netdev(netdev), &gids)
    }

    /// Whether the fabric uses an expected port that it can use.
    pub fn activity(&self, port: &PortProgress) -> Activity {
        if port.must_be_ethernet {
            self.roce_activity(port)
        } else {
            self.infiniband_activity(port)
        }
    }

    fn infiniband_activity(&self, port: &PortProgress) -> Activity {
        let is_copy = !self.root.is_live();
        let Some((pci, ..)) = port.place() else {
            return if is_copy { Activity::NotShown } else { Activity::NotTold };
        };
        let function = self.function(pci);
        let hca = function.and_then(|f| f.physfn).unwrap_or(pci);
        let is_shown = |answer: &&PortAnswer| {
            !is_copy || answer.link.state.is_some() && answer.link.physical.is_some()
        };
        match self.answer(port).filter(is_shown) {
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
                Activity::Lacks(
                    Lack::Answer,
                    Cause::waiting(text, [Advice::look(ToDo::run("dmesg"))]),
                )
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
        let Some((pci, device, number)) = port.place() else { return true };
        let types = format!("{}/gid_attrs/types", observe::link::port_dir(pci, device, number));
        self.root.is_live() || self.roce(port).carrier.is_some() && self.root.exists(&types)
    }
}

/// What to write where a port is meant to have no link.
fn meant_dark() -> Advice {
    Advice::permanent(
        "if nothing is meant to be connected to it: `required = false` in its [[port]], or boot.ignore (man 5 ibprov.toml)",
    )
}
