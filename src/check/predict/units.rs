//! Units of the next boot that systemd cannot start, or not all of them: ordering cycles, units
//! that require one that is not there, and units that wait for one that waits for them.

use super::in_order;
use crate::check::evidence::Host;
use crate::check::evidence::host::Denied;
use crate::graph::cycles::Cycle;
use crate::graph::deadlock::{self, Deadlock};
use crate::graph::{self, Graph, Load, Unit, consumers};
use crate::ladder::cause::CONTAINERS_DENY_LIST;
use crate::model::advice::ToDo;
use crate::model::common::Code;
use crate::model::finding::{Confidence, Finding, Severity};
use crate::names::{sh, sh_words};
use crate::stacks;

/// So many are named in the summary.
const NAMED: usize = 4;

/// One finding for all cycles, an error if one has to do with the network.
pub(super) fn cycles(host: &Host) -> Vec<Finding> {
    graph::cycles::cycles(&host.graph).iter().map(|cycle| of_cycle(host, cycle)).collect()
}

fn of_cycle(host: &Host, cycle: &Cycle) -> Finding {
    let concerns = cycle.units.iter().any(|unit| of_the_network(&host.graph, unit));
    let severity = if concerns { Severity::Error } else { Severity::Warning };
    let first = cycle.units.first().map_or("", String::as_str);
    let way = format!("{} -> {first}", cycle.units.join(" -> "));
    let dropped = match &cycle.candidates[..] {
        [] => "the boot cannot start at all: each of them is required".to_owned(),
        [one] => format!("systemd does not start {one}"),
        several => {
            let named =
                several.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = several.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" or {more} more") } else { String::new() };
            format!("systemd leaves out one or more of {named}{more}")
        }
    };
    let told = format!("Units of the boot form an ordering cycle, so {dropped}.");
    Finding::of(Code::OrderingCycle, severity, Confidence::High, told)
        .about_all(cycle.units.first())
        .chain([
            format!("Each unit is ordered before the next one: {way}."),
            "systemd breaks each cycle when it builds the boot's transaction: it drops the start job of one unit that the boot does not require.".to_owned(),
            format!("Any of these units can be the one: {}.", cycle.candidates.join(", ")),
        ])
        .quoting([host.quote(format!("order: {way}"))])
        .look([
            ToDo::run(format!("systemctl cat {} | grep -E '^(#|After|Before)'", sh_words(&cycle.units))),
            ToDo::run("systemd-analyze verify default.target"),
        ])
        .permanent([ToDo::with("remove one After= or Before= of that cycle, preferably one that a drop-in in /etc adds", "systemctl daemon-reload")])
}

fn of_the_network(graph: &Graph, unit: &str) -> bool {
    let named = ["ibprov", "openibd", "network", "remote-fs", "rdma", "opensm", "nss-lookup"];
    named.iter().any(|n| unit.starts_with(n))
        || graph.get(unit).is_some_and(|u| consumers::need(u, stacks::network_role).is_some())
}

/// One finding for all such units of the next boot.
pub(super) fn requirements(host: &Host) -> Vec<Finding> {
    let graph = &host.graph;
    let among = graph.transaction();
    let units = graph.units().filter(|unit| among.contains(unit.name.as_str()));
    let mut findings = Vec::new();
    for unit in units {
        let stem = unit.name.strip_suffix(".service").unwrap_or(&unit.name);
        for needed in unit.requires.iter().filter(|needed| needed.ends_with(".service")) {
            let uses_fabric = |stem: &str| consumers::uses_fabric_by_name(stem);
            let its_stem = needed.strip_suffix(".service").unwrap_or(needed);
            let concerns = uses_fabric(stem) || uses_fabric(its_stem) || its_stem == "openibd";
            if let Some(why) = concerns.then(|| why_not(graph.get(needed))).flatten() {
                findings.push(of_requirement(host, unit, needed, why));
            }
        }
    }
    findings
}

/// Why the unit cannot be started.
fn why_not(needed: Option<&Unit>) -> Option<&'static str> {
    match needed.map(|unit| unit.load) {
        None | Some(Load::NotFound) => Some("does not exist"),
        Some(Load::Masked) => Some("is masked"),
        Some(Load::Bad) => Some("has a file that systemd refuses"),
        Some(Load::Loaded) => None,
    }
}

fn of_requirement(host: &Host, unit: &Unit, needed: &str, why: &str) -> Finding {
    let name = &unit.name;
    let told = format!(
        "{name} requires {needed}, which {why}: systemd leaves {name} out of the next boot without a message."
    );
    Finding::of(Code::RequiredUnitMissing, Severity::Warning, Confidence::High, told)
        .about(name.as_str())
        .quoting([host.quote(format!("{name}: Requires={needed}"))])
        .look([ToDo::run(format!("systemctl cat {} | grep -E '^(#|Requires|BindsTo)'", sh(name)))])
        .permanent(remedies(name, needed))
}

fn remedies(name: &str, needed: &str) -> Vec<String> {
    let takes_name = "systemctl enable ibprov.service, which takes the name openibd.service too";
    let ours = (needed == "openibd.service").then(|| takes_name.to_owned());
    let edit = format!(
        "or remove Requires={needed} with `systemctl edit --full {name}`, and order it after the ports with After=ibprov.service"
    );
    ours.into_iter().chain([edit]).collect()
}

/// One finding for all deadlocks.
pub(super) fn deadlocks(host: &Host) -> Vec<Finding> {
    let deadlocks = deadlock::deadlocks(&host.graph, stacks::waited_for);
    let findings = deadlocks.iter().map(|deadlock| of_deadlock(host, deadlock));
    findings.chain(of_driver_container(host)).collect()
}

/// What runs containers and requires a target of ibprov's is not started before the ports are
/// there, and NVIDIA's driver container, which loads their drivers, not before that.
fn of_driver_container(host: &Host) -> Option<Finding> {
    let is_containers = |denied: &&Denied| denied.by.contains(CONTAINERS_DENY_LIST);
    let denied = host.denied.iter().filter(is_containers).max_by_key(|denied| denied.at_boot)?;
    let is_waiting = |name: &&&str| denied.at_boot || name.contains("online");
    let targets = ["ibprov-online.target", "ibprov-ready.target", "ibprov.service"];
    let transaction = host.graph.transaction();
    let requires = |unit: &Unit| {
        let is_it =
            consumers::need(unit, stacks::network_role) == Some(consumers::Need::Containers);
        let is_it = is_it && transaction.contains(unit.name.as_str());
        targets.iter().filter(is_waiting).find(|name| is_it && unit.requires.contains(**name))
    };
    let (unit, target) =
        host.graph.units().find_map(|unit| Some((unit.name.as_str(), *requires(unit)?)))?;
    let told = format!(
        "{unit} requires {target}, which is not reached before the drivers of the adapters are loaded, and NVIDIA's driver container, which loads them, is started by {unit}."
    );
    let finding = Finding::of(Code::StartWaitDeadlock, Severity::Error, Confidence::High, told);
    Some(
        finding
            .about(unit)
            .chain([format!("{} denies {}, and the container writes that file.", denied.by, denied.module)])
            .quoting([host.quote(format!("{unit} requires {target}"))])
            .permanent([
                format!("remove Requires={target} from {unit} and its drop-ins, then: systemctl daemon-reload"),
                "wait = \"online\" in the [[port]] of these adapters, so that boot does not wait for them".to_owned(),
            ]),
    )
}

fn of_deadlock(host: &Host, found: &Deadlock) -> Finding {
    let Deadlock { unit, command, waits_for, chain } = found;
    // A unit that has come up all the same may have skipped that command.
    let went_well = host.graph.get(unit).is_some_and(|u| u.now.active == "active");
    let (severity, confidence) = if went_well {
        (Severity::Warning, Confidence::Low)
    } else {
        (Severity::Error, Confidence::Medium)
    };
    let told = format!(
        "{unit} starts {waits_for} and waits for it, but {waits_for} is ordered after {unit}: both wait until a time limit ends them."
    );
    Finding::of(Code::StartWaitDeadlock, severity, confidence, told)
        .about(unit.as_str())
        .chain([
            format!("{unit} is not up before its command has ended: {command}"),
            format!("{waits_for} cannot start before {unit} is up: {}.", in_order(chain)),
            "systemd sees no cycle: the second start is a transaction of its own.".to_owned(),
        ])
        .quoting([host.quote(format!("{unit} runs: {command}"))])
        .permanent([format!("start {waits_for} without waiting: systemctl --no-block start {waits_for}; or add Wants={waits_for} to {unit}")])
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::host;
    use super::*;
    use crate::model::common::listed;

    /// NVIDIA's container, started by kubelet, writes the deny-list and loads the drivers.
    #[test]
    fn a_kubelet_that_requires_our_targets_never_starts_the_container_with_the_drivers() {
        let told = |lines: &str, by: &str, at_boot: bool| {
            let mut host = host(lines, &[], &[]);
            let module = "mlx5_core".parse().expect("name");
            host.denied = vec![Denied { module, by: by.to_owned(), at_boot }];
            let found = deadlocks(&host);
            found.into_iter().map(|f| listed(&f.objects)).collect::<Vec<_>>()
        };
        let container = "/etc/modprobe.d/blacklist-ofed-modules.conf:1";
        let requires = |target: &str| {
            format!("goal.target wants kubelet.service\nkubelet.service requires {target}\n")
        };
        for target in ["ibprov-online.target", "ibprov-ready.target", "ibprov.service"] {
            let lines = requires(target);
            assert_eq!(told(&lines, container, true), ["kubelet.service"], "{target}");
            assert_eq!(told(&lines, "/etc/modprobe.d/site.conf:1", true), [""; 0], "{target}");
            let only_online = told(&lines, container, false);
            assert_eq!(!only_online.is_empty(), target.contains("online"), "{target}");
        }
        let wants =
            "goal.target wants kubelet.service\nkubelet.service wants ibprov-online.target\n";
        assert_eq!(told(wants, container, true), [""; 0]);
    }

    #[test]
    fn a_cycle_with_the_network_is_an_error_and_names_the_victims() {
        let host = host(
            "goal.target wants ibprov.service network.target\n\
             ibprov.service before network.target\n\
             network.target before ibprov.service\n",
            &[],
            &[],
        );
        let [finding] = &cycles(&host)[..] else { panic!("{:?}", cycles(&host)) };
        assert_eq!(finding.severity, Severity::Error);
        assert!(
            finding.message.contains("one or more of ibprov.service, network.target"),
            "{finding:?}"
        );
    }

    #[test]
    fn one_that_concerns_nobody_is_a_warning() {
        let lines = "goal.target wants a.service b.service\na.service before b.service\nb.service before a.service\n";
        assert_eq!(cycles(&host(lines, &[], &[]))[0].severity, Severity::Warning);
    }

    /// The objects and summaries of what these units of the next boot are told.
    fn told(lines: &str) -> Vec<String> {
        requirements(&host(lines, &[], &[])).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_unit_that_requires_what_is_gone_is_told() {
        let gone = "goal.target wants opensmd.service\nopensmd.service requires openibd.service\n";
        assert_eq!(told(&format!("{gone}openibd.service is oneshot")), [""; 0]);
        let masked = told(&format!("{gone}openibd.service masked"));
        assert!(masked.len() == 1 && masked[0].contains("openibd.service, which is masked"));
        let ours = remedies("opensmd.service", "openibd.service");
        assert!(ours[0].starts_with("systemctl enable ibprov.service"), "{ours:?}");
        assert_eq!(remedies("opensmd.service", "y.service").len(), 1);
        // What the boot does not start, what does not use the fabric, and what is only wanted.
        let fine = [
            "goal.target wants x.service\nopensmd.service requires y.service\ny.service masked",
            "goal.target wants x.service\nx.service requires y.service\ny.service masked",
            "goal.target wants opensmd.service\nopensmd.service wants y.service\ny.service masked",
        ];
        for lines in fine {
            assert_eq!(told(lines), [""; 0], "{lines}");
        }
    }

    #[test]
    fn a_deadlock_is_told_with_both_ends() {
        let mut host = host(
            "goal.target wants a.service network.target b.service\n\
             a.service is oneshot\n\
             a.service runs /bin/systemctl start b.service\n\
             a.service before network.target\n\
             network.target before b.service\n",
            &[],
            &[],
        );
        let [finding] = &deadlocks(&host)[..] else { panic!("{:?}", deadlocks(&host)) };
        assert_eq!((finding.code, finding.severity), (Code::StartWaitDeadlock, Severity::Error));
        host.graph.get_mut("a.service").expect("unit").now.active = "active".to_owned();
        assert_eq!(deadlocks(&host)[0].severity, Severity::Warning);
    }
}
