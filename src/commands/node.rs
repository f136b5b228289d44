//! The judgement of the node, for the verbs that show it: what is known is gathered here.

use super::pf_preview;
use crate::config::pins::Pins;
use crate::config::{Config, Problems};
use crate::host::{Root, unit_graph};
use crate::ladder::active::{self, Activity, Words};
use crate::ladder::minimum::{degraded_pcie, degraded_port, minimum};
use crate::ladder::roce::{self, Roce, has_gid};
use crate::names::{IfName, IsVf, LinkLayer, ModuleName, ModuleState, PciAddress, RdmaName, Rung};
use crate::observe::link::PortAnswer;
use crate::observe::{
    self, Look, ModprobeRules, Observed, PciFunction, RdmaDevice, namespaces, plan_host,
};
use crate::plan::guid::resolve;
use crate::plan::needed_modules;
use crate::plan::node::{Known, KnownPort, judge};
use crate::report::advice::Advice;
use crate::report::degraded::{Degraded, PcieLink};
use crate::report::hardware::{NodeDescription, Vf};
use crate::report::netns::Netns;
use crate::report::node::Judgement;
use crate::report::online::Lack;
use crate::report::plan::PlannedPf;
use crate::report::rxe::RxeReport;
use crate::report::{Cause, PortProgress, Verdict};
use crate::workers::survey::Survey;

/// What the caller has seen of the node.
pub(super) struct Seen<'a> {
    pub(super) config: &'a Config,
    /// What is wrong with the configuration, where `config` is the default instead.
    pub(super) configuration: Option<String>,
    pub(super) observed: &'a Observed,
    pub(super) survey: &'a Survey,
    pub(super) soft_roce: &'a [RxeReport],
    /// The expected ports, with their settings judged, and why each is no further.
    pub(super) ports: Vec<(&'a PortProgress, Option<Cause>)>,
    /// How the last boot ended.
    pub(super) last_boot: Option<Verdict>,
    pub(super) has_adapter: bool,
}

/// What is said of a configuration with these mistakes.
pub(super) fn invalid(problems: &Problems) -> String {
    match problems.len() {
        1 => "the configuration has an error".to_owned(),
        n => format!("the configuration has {n} errors"),
    }
}

/// Judge the node. What could not be read on the way goes to `problems`.
/// The plans of VFs, held against the host, are given too.
pub(super) fn judgement<'a>(
    root: &Root,
    seen: Seen<'a>,
    problems: &mut Vec<String>,
) -> (Judgement, Vec<PlannedPf>) {
    let pfs = planned(root, &seen, problems);
    let mut look = Look::new(root);
    let with_vfs = seen.observed.functions.iter().filter(|f| f.physfn.is_none());
    let vfs: Vec<_> =
        with_vfs.map(|f| (f.address, seen.survey.vfs(&mut look, f.address))).collect();
    let needed = needed_modules(seen.config, seen.observed, !seen.ports.is_empty());
    let is_missing =
        |module: &&&ModuleName| seen.observed.modules.get(**module) == Some(&ModuleState::Absent);
    let missing_modules =
        needed.iter().filter(is_missing).map(|module| (*module).clone()).collect();
    let degraded = degraded(&seen);
    let pcie = pcie(&seen);
    let known_port = |(progress, cause): &(&'a PortProgress, Option<Cause>)| KnownPort {
        progress,
        cause: cause.clone(),
        activity: match progress.is_usable(cause.as_ref()) {
            true => activity(root, seen.observed, seen.survey, progress),
            false => Activity::NotTold,
        },
    };
    let ports = seen.ports.iter().map(known_port).collect();
    let netns = netns(seen.config, root, seen.observed);
    let known = Known {
        descriptions: descriptions(root, &seen),
        at_least: seen.config.boot.at_least.as_ref().map(|at_least| at_least.ports),
        soft_roce: seen.soft_roce,
        degraded,
        pcie,
        configuration: seen.configuration,
        unreadable: unreadable(root),
        ports,
        netns,
        missing_modules,
        pfs: &pfs,
        silent: seen.survey.silent.clone(),
        is_rtnl_held: seen.survey.is_rtnl_held,
        unread: seen.survey.unread.clone(),
        vfs: vfs.iter().map(|(pf, vfs): &(_, Vec<Vf>)| (*pf, vfs.as_slice())).collect(),
        last_boot: seen.last_boot,
        failed_units: failed_units(root, problems),
        has_adapter: seen.has_adapter,
    };
    let judgement = judge(&known);
    (judgement, pfs)
}

/// The RDMA network namespace mode, where one is configured.
pub(super) fn netns(config: &Config, root: &Root, observed: &Observed) -> Option<Netns> {
    let wanted = config.netns_mode?;
    let rules = ModprobeRules::read(root);
    Some(namespaces::netns(root, &rules, observed.netns_mode, wanted))
}

/// What the links of the expected ports lack.
fn degraded<'a>(seen: &Seen<'a>) -> Vec<(&'a PortProgress, Vec<Degraded>)> {
    let of = |port: &'a PortProgress| {
        let all = degraded_of(seen.config, seen.survey, port);
        (!all.is_empty()).then_some((port, all))
    };
    seen.ports.iter().filter_map(|(port, _)| of(port)).collect()
}

/// What the link of this port and the PCIe link of its adapter lack.
pub(super) fn degraded_of(config: &Config, survey: &Survey, port: &PortProgress) -> Vec<Degraded> {
    let minimum = minimum(config, port);
    let (Some(pci), Some(device), Some(number)) = (port.pci, &port.rdma, port.port) else {
        return Vec::new();
    };
    let answer = survey.port(pci, device, number);
    let mut all = answer.map(|a| degraded_port(&minimum, &a.link)).unwrap_or_default();
    all.extend(survey.pcie.get(&pci).iter().flat_map(|link| degraded_pcie(&minimum, link)));
    all
}

/// The node descriptions of adapters that have an expected port.
fn descriptions(root: &Root, seen: &Seen<'_>) -> Vec<(RdmaName, NodeDescription)> {
    let is_expected = |pci| seen.ports.iter().any(|(port, _)| port.pci == Some(pci));
    let functions = seen.observed.functions.iter();
    let functions = functions.filter(|f| f.physfn.is_none() && is_expected(f.address));
    let devices = functions.flat_map(|f| f.rdma.iter().map(move |device| (f.address, device)));
    let of = |(pci, device): (_, &RdmaDevice)| {
        let description = observe::node_desc::node_description(root, pci, &device.name)?;
        Some((device.name.clone(), description))
    };
    devices.filter_map(of).collect()
}

/// How the netdev of a port in Ethernet mode that is expected is, and its GIDs.
pub(super) fn roce(root: &Root, survey: &Survey, port: &PortProgress) -> Roce {
    let (Some(pci), Some(device), Some(number), Some(netdev)) =
        (port.pci, &port.rdma, port.port, &port.netdev)
    else {
        return Roce::default();
    };
    let state = observe::link::netdev(root, netdev, survey.carriers.get(netdev).copied());
    let gids = observe::link::gids(root, pci, device, (number, LinkLayer::Ethernet));
    Roce { up: state.admin_up, carrier: state.carrier, has_gid: has_gid(&gids) }
}

/// Whether the fabric uses an expected port that it can use.
pub(super) fn activity(
    root: &Root,
    observed: &Observed,
    survey: &Survey,
    port: &PortProgress,
) -> Activity {
    match port.must_be_ethernet {
        true => roce_activity(root, survey, port),
        false => infiniband_activity(root, observed, survey, port),
    }
}

/// What to write where a port is meant to have no link.
fn meant_dark() -> Advice {
    Advice::permanent(
        "if nothing is meant to be connected to it: `required = false` in its [[port]], or boot.ignore (man 5 ibprov.toml)",
    )
}

fn infiniband_activity(
    root: &Root,
    observed: &Observed,
    survey: &Survey,
    port: &PortProgress,
) -> Activity {
    let (Some(pci), Some(device), Some(number)) = (port.pci, &port.rdma, port.port) else {
        return Activity::NotTold;
    };
    let is_copy = !root.is_live();
    let function = observed.functions.iter().find(|f| f.address == pci);
    let hca = function.and_then(|f| f.physfn).unwrap_or(pci);
    let is_shown = |answer: &&PortAnswer| {
        !is_copy || answer.link.state.is_some() && answer.link.physical.is_some()
    };
    match survey.port(pci, device, number).filter(is_shown) {
        Some(answer) => match active::lack(&answer.link, Rung::Active) {
            None => Activity::Active,
            Some(lack) => {
                let vf = function.map(PciFunction::is_vf).unwrap_or_default();
                let mut words = active::words(Some(pci), &port.mad_port(), answer, vf);
                words.advice.extend((lack == Lack::Link && vf == IsVf::No).then(meant_dark));
                Activity::Lacks(lack, words)
            }
        },
        None if survey.silent.contains(&hca) => Activity::NotTold,
        None if is_copy => Activity::NotShown,
        None => {
            let text = "the driver does not report the state of the port".to_owned();
            Activity::Lacks(Lack::Answer, Words { text, advice: vec![Advice::look("dmesg")] })
        }
    }
}

fn roce_activity(root: &Root, survey: &Survey, port: &PortProgress) -> Activity {
    let lack = match roce(root, survey, port).lack(Rung::Active) {
        None => return Activity::Active,
        Some(Lack::Answer) if survey.is_rtnl_held => return Activity::NotTold,
        Some(lack) => lack,
    };
    let own = port.netdev.as_ref().map(|netdev| addresses(survey, netdev));
    let addresses = own.unwrap_or_default();
    // A copied tree has no kernel to ask for them.
    let addresses = root.is_live().then_some(addresses.as_slice());
    let mut words = roce::words(port.netdev.as_ref(), lack, addresses);
    words.advice.extend((lack == Lack::Carrier).then(meant_dark));
    Activity::Lacks(lack, words)
}

/// The addresses of `netdev` that a peer can use.
pub(super) fn addresses(survey: &Survey, netdev: &IfName) -> Vec<String> {
    let own = survey.addresses.iter().filter(|(of, _)| of == netdev.as_str());
    let is_global = |text: &&String| !text.starts_with("fe80:") && !text.starts_with("169.254.");
    own.map(|(_, text)| text).filter(is_global).cloned().collect()
}

/// The PCIe links of adapters that have an expected port.
fn pcie(seen: &Seen<'_>) -> Vec<(PciAddress, PcieLink)> {
    let links = seen.survey.pcie.iter().map(|(pci, link)| (*pci, *link));
    links.filter(|(pci, _)| seen.ports.iter().any(|(port, _)| port.pci == Some(*pci))).collect()
}

/// The plans of all PFs, held against the host. An adapter that has just been silent is
/// not asked again.
fn planned(root: &Root, seen: &Seen<'_>, problems: &mut Vec<String>) -> Vec<PlannedPf> {
    if seen.config.pf.is_empty() {
        return Vec::new();
    }
    let mut look = Look::new(root);
    let facts = plan_host::plan_host(&mut look, seen.observed, seen.config);
    problems.extend(look.problems);
    let pins: Result<Pins, String> = plan_host::pins(root);
    let plans = resolve(seen.config, pins.as_ref().map_err(String::as_str), &facts);
    let silent = seen.survey.silent.union(&seen.survey.unread).copied().collect();
    let hanging = pf_preview::Hanging { pfs: silent, rdma_netlink: seen.survey.is_rdma_held };
    let (pfs, unread) = pf_preview::reports(root, &plans, &facts, &hanging);
    problems.extend(unread);
    pfs
}

/// Why it is not known which PCI devices there are, if so.
fn unreadable(root: &Root) -> Option<String> {
    const DEVICES: &str = "/sys/bus/pci/devices";
    (!root.exists(DEVICES))
        .then(|| format!("the PCI devices are not known: {DEVICES} does not exist"))
}

/// The units of ibprov's that have failed. A copied tree has none, nor has a host that
/// systemd does not run on.
fn failed_units(root: &Root, problems: &mut Vec<String>) -> Vec<String> {
    if !root.is_live() || !root.exists("/run/systemd/system") {
        return Vec::new();
    }
    match unit_graph::failed("ibprov*") {
        Ok(failed) => failed,
        Err(e) => {
            let e = crate::host::answer(&e);
            problems.push(format!("cannot query failed units from systemd: {e}"));
            Vec::new()
        }
    }
}
