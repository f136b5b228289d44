//! What the node lacks of what is expected and planned. Pure: every verb that speaks of
//! the whole node is given the same answer for the same host.

use std::collections::{BTreeMap, BTreeSet};

use super::fabric::{self, ActivePort, NetworkConfiguration, VfPort};
use crate::config::timespan::TimeSpan;
use crate::ladder::active::Activity;
use crate::names::{
    Guid, IB_DRIVERS, LinkLayer, ModuleName, Object, PciAddress, Policy, RdmaName, Rung, VfIndex,
    vf_ranges,
};
use crate::report::advice::Advice;
use crate::report::common::{Code, Finding};
use crate::report::degraded::{Degraded, NarrowLink, PcieLink};
use crate::report::finding::Severity;
use crate::report::firmware::{how_to_set, link_type};
use crate::report::hardware::{NodeDescription, Vf};
use crate::report::netns::Netns;
use crate::report::node::{Count, Judgement, PortCount, Standing};
use crate::report::plan::{Action, PlannedPf};
use crate::report::port::Awaited;
use crate::report::rxe::RxeReport;
use crate::report::{BootReport, Cause, ModuleTrouble, NotExpected, PortProgress, Silence};

/// An expected port, and what is known of it.
#[derive(Debug, Clone)]
pub struct KnownPort<'a> {
    pub progress: &'a PortProgress,
    /// Why it is no further.
    pub cause: Option<Cause>,
    /// Whether the fabric uses it; judged of one that boot does not wait for any more.
    pub activity: Activity,
}

impl KnownPort<'_> {
    /// It is not there, and may come by waiting: its function is there, or no function is named.
    fn may_come(&self) -> bool {
        let Self { progress: port, cause, .. } = self;
        let is_begun = port.reached.is_some() || port.of_number == Some(Awaited::Unnamed);
        let is_open = cause.as_ref().is_none_or(|cause| !cause.is_final);
        !port.is_ready() && is_begun && is_open
    }

    /// It does not come by waiting, and is required.
    fn is_lost(&self) -> bool {
        let Self { progress: port, cause, .. } = self;
        let is_missing = port.standing(cause.as_ref()) == Standing::Missing;
        is_missing && !port.is_no_port() && !self.may_come()
    }
}

/// What is known of the node.
#[derive(Debug, Clone, Default)]
pub struct Known<'a> {
    /// What is wrong with the configuration, and left out.
    pub configuration: Vec<Finding>,
    /// Why it is not known which PCI devices there are.
    pub unreadable: Option<String>,
    pub ports: Vec<KnownPort<'a>>,
    /// The adapters of which no port is expected, and why.
    pub left_out: Vec<(PciAddress, NotExpected)>,
    /// Where all adapters are in Ethernet mode, and something of the host is configured for
    /// InfiniBand: the adapters, and what.
    pub ethernet: Option<(Vec<PciAddress>, String)>,
    /// Where nothing is expected and nothing configured: the adapters with RoCE ports.
    pub unwatched: Vec<PciAddress>,
    /// Others that bring InfiniBand up at boot beside ibprov.
    pub agents: Option<Finding>,
    /// Nothing on this host is configured for a netdev of IPoIB, and ib_ipoib is not loaded or not
    /// to be.
    pub needs_no_ipoib: bool,
    /// So many of them have to be there and active; `None`: each, and one of them active.
    pub at_least: Option<usize>,
    /// The ports that the fabric uses, with their partitions and netdevs.
    pub active: Vec<ActivePort<'a>>,
    pub network: NetworkConfiguration<'a>,
    /// What the links of expected ports lack of what they have to be.
    /// With the driver of the adapter.
    pub degraded: Vec<(&'a PortProgress, &'a str, Vec<Degraded>)>,
    pub soft_roce: &'a [RxeReport],
    /// The PCIe links of adapters with an expected port.
    pub pcie: Vec<(PciAddress, PcieLink)>,
    /// The node descriptions of RDMA devices with an expected port.
    pub descriptions: Vec<(RdmaName, NodeDescription)>,
    /// The RDMA network namespace mode where one is configured.
    pub netns: Option<Netns>,
    /// Configured modules that this host needs and that are not loaded, beside those that a port
    /// lacks; with the reason, as far as one is known.
    pub missing_modules: Vec<(ModuleName, Option<ModuleTrouble>)>,
    /// Guests that did not come up.
    pub guests: Vec<Finding>,
    /// Settings of interfaces that cannot be made, or are left as they are.
    pub settings: Vec<Finding>,
    /// Settings that network stacks are configured to make otherwise.
    pub contradictions: Vec<Finding>,
    /// RDMA devices without a device node that they have to have.
    pub without_node: Vec<Finding>,
    /// Configured settings in firmware that are not in effect.
    pub firmware: Vec<Finding>,
    /// What is wrong with the configured subnet managers.
    pub subnet_managers: Vec<Finding>,
    /// The kernel command line has ibprov=0.
    pub is_switched_off: bool,
    /// The plans, as far as they can be held against the host.
    pub pfs: &'a [PlannedPf],
    /// Why the last run at a PF did not change the number of its VFs, if it failed in that.
    pub last_runs: BTreeMap<PciAddress, String>,
    /// The adapters that did not answer, and for how long; without where they could not be asked.
    pub silent: BTreeMap<PciAddress, Option<Silence>>,
    /// A process holds the RTNL lock: for so long the kernel has not answered.
    pub rtnl: Option<Silence>,
    /// The adapters of which settings were not read for that reason.
    pub unread: BTreeSet<PciAddress>,
    /// The ports with a GUID that no plan gives: what each is called, its node GUID where it is
    /// an adapter's own, its port GUID.
    pub guids: Vec<(Object, Option<Guid>, Guid)>,
    /// Functions whose driver's last probe has failed.
    pub probe_failed: BTreeSet<PciAddress>,
    /// VFs with a GUID of 0, at the PF or as the driver of the VF has read it.
    pub zero_vfs: BTreeSet<PciAddress>,
    /// How many VFs the last run at a PF that has any configured in this boot.
    pub configured: BTreeMap<PciAddress, usize>,
    /// The VFs of each PF.
    pub vfs: Vec<(PciAddress, &'a [Vf])>,
    /// The ports of VFs whose PFs' ports are active.
    pub vf_ports: Vec<VfPort>,
    /// The ports of VFs without a GUID, beyond the first of each.
    pub second_ports: Vec<Object>,
    /// The expected ports of VFs that were passed through and have no GUID.
    pub without_guid: Vec<Object>,
    /// The first run of ibprov.service in this boot is under way: how long it has.
    pub boot_has: Option<TimeSpan>,
    /// How the last boot ended.
    pub last_boot: Option<&'a BootReport>,
    /// Units of ibprov's that have failed.
    pub failed_units: Vec<String>,
    /// The host shows an InfiniBand adapter.
    pub has_adapter: bool,
}

/// What `known` comes to.
pub fn judge(known: &Known<'_>) -> Judgement {
    let mut findings = Vec::new();
    findings.extend(known.configuration.iter().cloned());
    findings.extend(
        known.unreadable.iter().map(|why| Finding::error(Code::HostUnreadable, why.clone())),
    );
    let is_enough = is_enough(known);
    let boot = boot_in_progress(known);
    let is_booting = boot.is_some();
    findings.extend(boot);
    let judged = known.ports.iter().filter(|port| !(is_booting && port.may_come()));
    findings.extend(judged.flat_map(|port| lacks(port, is_enough)));
    findings.extend(left_out(known));
    let (ports, of_activity) = activity(known, is_enough);
    findings.extend(of_activity);
    findings.extend(known.active.iter().flat_map(fabric::judge));
    findings.extend(known.soft_roce.iter().filter_map(RxeReport::finding));
    let vf_ports = known.vf_ports.iter().filter(|port| port.is_as_planned(known.pfs));
    findings.extend(vf_ports.filter_map(VfPort::finding));
    findings.extend(known.subnet_managers.iter().chain(&known.contradictions).cloned());
    for (port, driver, degraded) in &known.degraded {
        for code in [Code::PortDegraded, Code::PcieBelowMinimum, Code::FirmwareBelowMinimum] {
            let own = degraded.iter().filter(|degraded| degraded.code() == code);
            let own: Vec<Degraded> = own.cloned().collect();
            let message = format!("degraded: {}", Degraded::phrase(&own));
            let finding = Finding::warning(code, message).about(port.label());
            let advice = how_to_mend(port, driver, code);
            findings.extend((!own.is_empty()).then(|| finding.advise(advice)));
        }
    }
    for (pci, link) in &known.pcie {
        // What the configuration says of it counts more.
        let is_told = |(port, _, degraded): &(&PortProgress, &str, Vec<Degraded>)| {
            port.pci == Some(*pci) && degraded.iter().any(|d| d.code() == Code::PcieBelowMinimum)
        };
        if let Some(loss) = link.loss().filter(|_| !known.degraded.iter().any(is_told)) {
            let finding = Finding::new(Code::PcieLinkReduced, Severity::Info, loss).about(pci);
            findings.push(finding.advise([look_at_link(*pci), Advice::permanent(RESEAT)]));
        }
    }
    let mut narrow: BTreeMap<NarrowLink, Vec<PciAddress>> = BTreeMap::new();
    for (pci, link) in &known.pcie {
        link.narrow_above.iter().for_each(|above| narrow.entry(*above).or_default().push(*pci));
    }
    findings.extend(narrow.into_iter().map(|(link, below)| {
        let finding = Finding::new(Code::PcieLinkReduced, Severity::Info, link.to_string());
        let advice = "check riser, switch board and cables between them, and bifurcation in the firmware setup";
        finding.about_all(&below).advise([look_at_link(link.below), Advice::permanent(advice)])
    }));
    for (device, description) in &known.descriptions {
        if let Some(expected) = description.deviates_from() {
            let message = format!(
                "the node description is {:?}, and rdma-ndd sets {expected:?}",
                description.text
            );
            let finding = Finding::new(Code::NodeDescription, Severity::Info, message);
            findings.push(finding.about(device).advise([
                Advice::look("journalctl -b -u rdma-ndd"),
                Advice::now("systemctl restart rdma-ndd"),
            ]));
        }
    }
    if let Some(netns) = &known.netns {
        findings.extend(netns.deviation().into_iter().chain(netns.contradictions()));
    }
    let is_to_come = |trouble: &Option<_>| is_booting && trouble.is_none();
    for (module, trouble) in known.missing_modules.iter().filter(|(_, t)| !is_to_come(t)) {
        findings.push(match trouble {
            Some(trouble) => trouble.finding(module),
            None if known.needs_no_ipoib && module.as_str() == "ib_ipoib" => {
                let message = "not loaded: the ports have no netdev, and nothing on this host is configured for one";
                Finding::new(Code::ModuleNotLoaded, Severity::Info, message)
                    .about(module)
                    .advise([Advice::now("modprobe ib_ipoib")])
            }
            None => Finding::warning(Code::ModuleNotLoaded, "not loaded, although configured")
                .about(module)
                .advise([
                    Advice::look("ibprov boot --dry-run"),
                    Advice::now(format!("modprobe {module}")),
                ]),
        });
    }
    findings.extend(known.without_node.iter().filter(|_| known.boot_has.is_none()).cloned());
    let of_others = known.guests.iter().chain(&known.firmware).chain(&known.agents);
    findings.extend(of_others.cloned());
    if known.is_switched_off {
        let message = "ibprov=0 is on the kernel command line: no unit of ibprov runs in this boot";
        findings.push(Finding::new(Code::IbprovSwitchedOff, Severity::Info, message));
    }
    for (pci, silence) in &known.silent {
        let message = match silence {
            Some(silence) => silence.to_string(),
            None => "its state could not be queried".to_owned(),
        };
        let finding = Finding::error(Code::AdapterSilent, message);
        findings.push(finding.about(pci).advise([
            Advice::look("dmesg"),
            Advice::look(format!("devlink health show pci/{pci} reporter fw")),
        ]));
    }
    if let Some(silence) = known.rtnl {
        let message = format!(
            "network settings cannot be read: a process holds the RTNL lock, and the kernel {silence}"
        );
        findings.push(Finding::error(Code::RtnlHeld, message).advise([
            Advice::look("dmesg"),
            Advice::look(
                "find the process that hangs (an `ip`, ifup or modprobe in state D), and see `cat /proc/PID/stack`",
            ),
        ]));
    }
    let mut of_pfs = Vec::new();
    for pf in known.pfs {
        let good = pf.vfs.iter().filter(|vf| vf.action == Action::Keep).count();
        of_pfs.push((pf.object(), Count { good, of: pf.wanted }));
        // That it does not answer is said of the adapter.
        let is_silent = |pci| known.silent.contains_key(&pci) || known.unread.contains(&pci);
        findings.extend(
            match pf.pci.is_some_and(is_silent) || is_booting && vfs_may_come(known, pf) {
                true => pf.errors(),
                false => {
                    pf.findings(pf.pci.and_then(|pci| known.last_runs.get(&pci)).map(|s| &**s))
                }
            },
        );
    }
    for port in &known.without_guid {
        let message =
            "the GUID of this VF is 0: the hypervisor has set none before its driver was bound";
        findings.push(Finding::error(Code::VfGuidZero, message).about(port).advise([
            Advice::look(
                "on the hypervisor, which sets the GUIDs of this VF: ibprov status, ibprov plan",
            ),
            Advice::now(
                "after it has set them, detach the VF from this machine and attach it again, or rebind it here: the driver reads its GUIDs when it is bound",
            ),
        ]));
    }
    for port in &known.second_ports {
        let message = "the port GUID of this port is 0: a plan has one port GUID for each VF, and it is set at port 1 alone";
        findings.push(Finding::warning(Code::VfGuidZero, message).about(port).advise([
            Advice::now(
                "on a ConnectX-3, write one to iov/ports/2/admin_guids of the PF's RDMA device, in the entry of this VF, then rebind the VF",
            ),
        ]));
    }
    for (pf, seen) in &known.vfs {
        // What is planned is judged by the plan.
        if known.pfs.iter().all(|planned| planned.pci != Some(*pf)) {
            findings.extend(unplanned(known, *pf, seen));
        }
    }
    findings.extend(duplicates(&known.guids));
    if let Some(boot) = known.last_boot.filter(|boot| boot.exit_code != 0) {
        let message = format!("{} (exit code {})", boot.headline(), boot.exit_code);
        let finding = Finding::warning(Code::BootFailed, message);
        findings.push(finding.advise([Advice::look("journalctl -b -u ibprov.service")]));
    }
    for unit in &known.failed_units {
        let finding = Finding::warning(Code::UnitFailed, "the unit has failed").about(unit);
        findings.push(finding.advise([Advice::look(format!("systemctl status {unit}"))]));
    }
    Finding::add_untold(&mut findings, &known.settings);
    // A netdev that is still to come may have the name.
    let is_whole = of_pfs.iter().all(|(_, vfs)| vfs.good == vfs.of);
    let count = PortCount::sum(&ports);
    if count.of > 0 && count.good == count.of && is_whole {
        findings.extend(known.network.unmatched());
    }
    findings.extend(unwatched(&known.unwatched));
    Judgement::new(ports, of_pfs, known.has_adapter, !known.soft_roce.is_empty(), findings)
}

/// That the first run of ibprov.service in this boot is waiting, and for what. Nothing that it
/// waits for makes up for a port that is lost.
fn boot_in_progress(known: &Known<'_>) -> Option<Finding> {
    let deadline = known.boot_has.filter(|_| !known.ports.iter().any(KnownPort::is_lost))?;
    let mut awaited: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for port in known.ports.iter().filter(|port| port.may_come()).map(|port| port.progress) {
        let lacking = port.missing().map(Rung::lacking).unwrap_or_default();
        let name = match (&port.rdma, port.port) {
            (Some(device), Some(number)) => format!("{device}/{number}"),
            _ => port.label().to_string(),
        };
        awaited.entry(lacking.strip_prefix("no ").unwrap_or(lacking)).or_default().push(name);
    }
    for pf in known.pfs.iter().filter(|pf| vfs_may_come(known, pf)) {
        awaited.entry("VFs").or_default().push(pf.object().to_string());
    }
    let of_kind =
        |(lacking, names): (&&str, &Vec<String>)| format!("{} ({lacking})", names.join(", "));
    let awaited: Vec<String> = awaited.iter().map(of_kind).collect();
    let message = format!(
        "boot not finished, waits for {}, deadline {deadline} after its start",
        awaited.join(" and ")
    );
    let finding = Finding::warning(Code::BootInProgress, message);
    (!awaited.is_empty()).then(|| finding.advise([Advice::look("systemctl status ibprov")]))
}

/// The VFs of `pf` are not as planned, and a run that is under way may make them so.
fn vfs_may_come(known: &Known<'_>, pf: &PlannedPf) -> bool {
    let has_failed = pf.pci.is_some_and(|pci| known.last_runs.contains_key(&pci));
    let good = pf.vfs.iter().filter(|vf| vf.action == Action::Keep).count();
    good < pf.wanted && pf.errors().is_empty() && !has_failed
}

/// The table that expects the RoCE ports of `adapters`.
pub fn roce_row(adapters: &[PciAddress]) -> String {
    let list: Vec<String> = adapters.iter().map(|pci| format!("\"{pci}\"")).collect();
    format!("[[port]]\npci = [{}]\nlink-layer = \"ethernet\"\n", list.join(", "))
}

/// What is said of RoCE ports that nobody has asked to be judged, with the lines that do.
fn unwatched(adapters: &[PciAddress]) -> Option<Finding> {
    let row = roce_row(adapters).replace('\n', "\\n");
    let advice = Advice::permanent(format!("printf '{row}' >>/etc/ibprov/ibprov.toml"));
    let message = "the RoCE ports of this host are not judged: no [[port]] expects one";
    let finding = Finding::new(Code::Notice, Severity::Info, message);
    (!adapters.is_empty()).then(|| finding.advise([advice]))
}

/// What is said of the VFs of a PF for which nothing is planned.
fn unplanned(known: &Known<'_>, pf: PciAddress, seen: &[Vf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let named = |is_meant: &dyn Fn(&&Vf) -> bool| {
        let meant: Vec<VfIndex> = seen.iter().filter(is_meant).map(|vf| vf.index).collect();
        (!meant.is_empty()).then(|| vf_ranges(meant.into_iter()))
    };
    let configured = known.configured.get(&pf).copied().unwrap_or_default();
    if let Some(vfs) = named(&|vf| usize::from(vf.index.get()) < configured) {
        let message = format!(
            "{vfs}: orphaned: ibprov configured them in this boot, and no [[pf]] plans them"
        );
        let finding = Finding::new(Code::VfOrphaned, Severity::Info, message).about(pf);
        findings.push(finding.advise([Advice::now(format!(
            "to remove them: add a [[pf]] with vfs = 0, then `ibprov apply {pf}`"
        ))]));
    }
    if let Some(vfs) = named(&|vf| known.zero_vfs.contains(&vf.pci)) {
        let message = format!("{vfs}: the port GUID is 0, and no [[pf]] sets one");
        let advice = Advice::permanent("plan GUIDs with a [[pf]]: man 5 ibprov.toml");
        findings.push(Finding::warning(Code::VfGuidZero, message).about(pf).advise([advice]));
    }
    let is_failed = |vf: &&Vf| vf.driver.is_none() && known.probe_failed.contains(&vf.pci);
    for Vf { pci, .. } in seen.iter().filter(is_failed) {
        let message = "the driver's probe of this VF failed";
        findings.push(Finding::warning(Code::VfProbeFailed, message).about(pci).advise([
            Advice::look(format!("journalctl -k -b | grep {pci}")),
            Advice::now(format!(
                "after the cause is corrected: echo {pci} > /sys/bus/pci/drivers_probe"
            )),
        ]));
    }
    let is_driven = |vf: &Vf| vf.driver.as_deref().is_some_and(|d| IB_DRIVERS.contains(&d));
    if let Some(vfs) = named(&|vf| vf.policy == Some(Policy::Down) && is_driven(vf)) {
        let message = format!(
            "{vfs}: the link state is down, so that their ports stay Down, and no [[pf]] sets one"
        );
        findings.push(Finding::warning(Code::VfPolicyDown, message).about(pf).advise([
            Advice::now("ip link set PF_NETDEV vf N state auto"),
            Advice::permanent("plan link states with a [[pf]]: man 5 ibprov.toml"),
        ]));
    }
    findings
}

/// What is said of ports with the same GUID. Several functions of an adapter may show one port.
fn duplicates(guids: &[(Object, Option<Guid>, Guid)]) -> Vec<Finding> {
    let mut by_guid: BTreeMap<Guid, Vec<(&Object, Option<Guid>)>> = BTreeMap::new();
    for (object, node, guid) in guids {
        by_guid.entry(*guid).or_default().push((object, *node));
    }
    let is_one = |all: &[(&Object, Option<Guid>)]| match all {
        [(_, Some(node)), rest @ ..] => rest.iter().all(|(_, other)| other.as_ref() == Some(node)),
        all => all.len() < 2,
    };
    let of_guid = |(guid, all): (Guid, Vec<(&Object, Option<Guid>)>)| {
        let message = format!("port GUID {guid}, which is that of another port of this host too");
        let advice = [Advice::permanent(
            "give each VF a GUID of its own with a [[pf]] (man 5 ibprov.toml), and rebind the VF",
        )];
        let of = |(name, _)| {
            let finding = Finding::warning(Code::VfGuidDuplicate, message.clone());
            finding.about(name).advise(advice.clone())
        };
        all.into_iter().map(of).collect::<Vec<_>>()
    };
    by_guid.into_iter().filter(|(_, all)| !is_one(all)).flat_map(of_guid).collect()
}

/// What is said of adapters without an expected port.
fn left_out(known: &Known<'_>) -> Vec<Finding> {
    let denied = known.left_out.iter().filter_map(|(pci, reason)| {
        let NotExpected::DriverDenied { module, by } = reason else { return None };
        let advice = Advice::permanent(format!(
            "to use the adapter: remove {module} from {by}, then `systemctl restart ibprov`"
        ));
        let finding = Finding::new(Code::ModuleDenied, Severity::Info, reason.to_string());
        Some(finding.about(pci).advise([advice]))
    });
    let ethernet = known.ethernet.iter().flat_map(|(adapters, wants)| {
        adapters.iter().map(move |pci| {
            let message = format!("the adapter is in Ethernet mode, and {wants}");
            Finding::warning(Code::PfEthernet, message)
                .about(pci)
                .advise([Advice::permanent(to_infiniband(*pci))])
        })
    });
    denied.chain(ethernet).collect()
}

/// How the ports of an mlx5 adapter become InfiniBand ports.
fn to_infiniband(pci: PciAddress) -> String {
    how_to_set(pci, &link_type(pci, LinkLayer::InfiniBand), false)
}

/// Whether so many ports are in use that another one is an exception: as many as `boot.at-least`
/// says; else one of the required InfiniBand ports that can be judged, and without such one of
/// all.
fn is_enough(known: &Known<'_>) -> bool {
    let expected = || known.ports.iter().filter(|port| !port.progress.is_ethernet());
    let is_active = |port: &KnownPort<'_>| is_usable(port) && port.activity == Activity::Active;
    let is_possible =
        |port: &&KnownPort<'_>| is_active(port) || port.activity == Activity::NotShown;
    let mut required = expected().filter(|KnownPort { progress: port, activity, .. }| {
        !port.optional && !port.must_be_ethernet && *activity != Activity::NotShown
    });
    match (known.at_least, required.clone().next()) {
        (None, Some(_)) => required.any(is_active),
        (at_least, _) => expected().filter(is_possible).count() >= at_least.unwrap_or(1),
    }
}

/// What is said of a port that has not reached its goal: where too few are in use, what is an
/// exception beside others is why.
fn lacks(known: &KnownPort<'_>, is_enough: bool) -> Vec<Finding> {
    let KnownPort { progress: port, cause, .. } = known;
    let mut findings = port.findings(cause.as_ref());
    if !is_enough && !port.optional && !port.is_usable(cause.as_ref()) {
        findings.iter_mut().for_each(|finding| finding.severity = Severity::Error);
    }
    findings
}

/// How many of the expected ports are active, and what is said of those that are not: too few
/// of them is an error, one that is optional a note.
fn activity(known: &Known<'_>, is_enough: bool) -> (Vec<(Object, PortCount)>, Vec<Finding>) {
    let expected = known.ports.iter().filter(|port| !port.progress.is_ethernet());
    let of_port = |port: &KnownPort<'_>| {
        let is = |activity| usize::from(port.activity == activity);
        let count = PortCount {
            good: usize::from(port.progress.is_ready()),
            active: is(Activity::Active),
            not_judged: usize::from(is_usable(port)) * is(Activity::NotShown),
            of: 1,
        };
        (port.progress.label(), count)
    };
    let of_ports: Vec<_> = expected.clone().map(of_port).collect();
    let finding = |KnownPort { progress: port, activity, .. }: &KnownPort<'_>| {
        let optional = if port.optional { " (optional)" } else { "" };
        let (code, severity, message, advice) = match activity {
            Activity::Active | Activity::NotTold => return None,
            Activity::NotShown => {
                let message = format!("not judged{optional}: the copy does not show its state");
                (Code::PortNotJudged, Severity::Info, message, Vec::new())
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
                (Code::PortNotActive, severity, message, advice)
            }
        };
        Some(Finding::new(code, severity, message).about(port.label()).advise(advice))
    };
    (of_ports, expected.filter(|port| is_usable(port)).filter_map(finding).collect())
}

fn is_usable(port: &KnownPort<'_>) -> bool {
    port.progress.is_usable(port.cause.as_ref())
}

/// What to do about a PCIe link that is less than it can be.
const RESEAT: &str =
    "reseat the adapter, or check speed and width of the slot in the firmware setup";

fn look_at_link(pci: PciAddress) -> Advice {
    Advice::look(format!("lspci -vv -s {pci} | grep -e LnkCap: -e LnkSta:"))
}

/// What to do where `port` has less than it has to have, by the code of that. Only adapters with
/// these drivers have the vendor's tools.
fn how_to_mend(port: &PortProgress, driver: &str, code: Code) -> Vec<Advice> {
    let pci = port.pci.map(|pci| pci.to_string()).unwrap_or_default();
    let (look, permanent) = match code {
        Code::PcieBelowMinimum => {
            (Some(format!("lspci -vv -s {pci} | grep -e LnkCap: -e LnkSta:")), RESEAT)
        }
        Code::FirmwareBelowMinimum => (
            driver.starts_with("mlx").then(|| format!("mstflint -d {pci} query")),
            "update the firmware of the adapter",
        ),
        _ => (
            (driver == "mlx5_core").then(|| format!("mlxlink -d {pci}")),
            "check the cable, and speed and width of the switch port it leads to",
        ),
    };
    look.map(Advice::look).into_iter().chain([Advice::permanent(permanent)]).collect()
}
