//! Who needs a netdev and is not ordered after the unit that waits for it.

use super::{has_infiniband, in_order};
use crate::check::evidence::Host;
use crate::graph::Unit;
use crate::graph::consumers::{self, DropIn, JudgedUnit, Need, Proof};
use crate::model::advice::ToDo;
use crate::model::common::Code;
use crate::model::duration::duration;
use crate::model::finding::{Confidence, Finding, Quote, Severity};
use crate::names::{Moment, sh_words};
use crate::stacks;

/// One finding for each kind of consumer that is not proved.
pub(super) fn judge(host: &Host) -> Vec<Finding> {
    if !has_infiniband(host) {
        return Vec::new();
    }
    let late = too_early(host);
    let Some(provider) = consumers::provider(&host.graph) else { return late };
    let mut findings: Vec<Finding> = Vec::new();
    // Units that lack the same for the same reason are one finding.
    let mut unordered: Vec<(Severity, Need, Vec<String>, Vec<DropIn>)> = Vec::new();
    for judged in consumers(host).into_iter().filter(|judged| judged.need.is_hard()) {
        let severity = severity(host, &judged.unit);
        match judged.proof {
            Proof::Ordered(_) => {}
            Proof::Before(chain) => {
                let finding = before(&provider.name, &judged.unit, judged.need, severity, &chain);
                findings.push(finding.quoting([no_chain(host, &provider.name, &judged.unit)]));
            }
            Proof::Missing(drop_in) => {
                let known = unordered.iter_mut().find(|u| (u.0, u.1) == (severity, judged.need));
                match known {
                    Some((_, _, units, drop_ins)) => {
                        units.push(judged.unit);
                        drop_ins.push(drop_in);
                    }
                    None => {
                        unordered.push((severity, judged.need, vec![judged.unit], vec![drop_in]));
                    }
                }
            }
        }
    }
    for (severity, need, units, drop_ins) in unordered {
        findings.push(missing(host, &provider.name, severity, need, &units, &drop_ins));
    }
    findings.extend(late);
    findings
}

/// The units of the next boot that need InfiniBand, each with what the order says of it.
pub fn consumers(host: &Host) -> Vec<JudgedUnit> {
    let uses = |unit: &Unit| host.fabric.is_used_by(unit);
    let mut judged = consumers::judge(&host.graph, stacks::network_role, uses);
    judged.retain(|judged| needs_infiniband(host, judged));
    judged
}

/// True if this unit is known to need an InfiniBand netdev, not any network.
fn needs_infiniband(host: &Host, judged: &JudgedUnit) -> bool {
    let Some(unit) = host.graph.get(&judged.unit) else { return false };
    match judged.need {
        Need::NetworkOnce | Need::NetworkHotplug => {
            host.asked.iter().any(|a| host.graph.resolve(&a.unit) == judged.unit)
        }
        Need::Mount => is_over_infiniband(unit) || host.fabric.is_used_by(unit),
        Need::Guests => !is_libvirts(&judged.unit) || !host.autostart.is_empty(),
        Need::Service | Need::Containers => true,
        Need::WaitOnline => false,
    }
}

/// True of a unit that starts the guests of libvirt, whose devices are known.
fn is_libvirts(unit: &str) -> bool {
    ["lib", "virt", "ibprov-"].iter().any(|begin| unit.starts_with(begin))
}

/// RDMA transports say so, and who requires openibd; whether NFS by address runs over IPoIB they
/// do not.
fn is_over_infiniband(unit: &Unit) -> bool {
    let rdma = unit.options.split(',').any(|o| matches!(o, "rdma" | "proto=rdma"));
    rdma || unit.what.contains("@o2ib") || consumers::names_openibd(unit)
}

const fn code(need: Need) -> Code {
    match need {
        Need::Mount => Code::MountBeforeIpoib,
        Need::Guests => Code::VmBeforeVf,
        _ => Code::OrderingMissing,
    }
}

/// An error for a unit that has failed because it was too early.
fn severity(host: &Host, unit: &str) -> Severity {
    let failed = host.graph.get(unit).is_some_and(|u| u.now.active == "failed");
    match failed && began_before_netdevs(host, unit) {
        true => Severity::Error,
        false => Severity::Warning,
    }
}

fn no_chain(host: &Host, provider: &str, unit: &str) -> Quote {
    host.quote(format!("no chain of After= and Before= from {provider} to {unit}"))
}

/// What is said of a unit that comes before the provider, over `chain`.
fn before(provider: &str, unit: &str, need: Need, severity: Severity, chain: &[String]) -> Finding {
    let harm = need.harm();
    let told = format!(
        "{unit} is ordered before {provider}, which waits for the InfiniBand ports: {harm}."
    );
    let finding = Finding::of(code(need), severity, Confidence::High, told)
        .about(unit)
        .chain([format!("The order is {}.", in_order(chain))])
        .look([ToDo::run(format!(
            "systemctl cat {} | grep -E '^(#|After|Before)'",
            sh_words(chain)
        ))])
        .permanent([format!(
            "remove the line that orders {unit} first, then: systemctl daemon-reload"
        )]);
    finding.chain((severity == Severity::Error).then(|| was_early(unit)))
}

fn was_early(unit: &str) -> String {
    format!("{unit} failed in this boot: it was started before the netdevs were present.")
}

/// What is said of units that nothing orders after the provider.
fn missing(
    host: &Host,
    provider: &str,
    severity: Severity,
    need: Need,
    units: &[String],
    drop_ins: &[DropIn],
) -> Finding {
    let is = if units.len() > 1 { "are" } else { "is" };
    let told = format!(
        "{} {is} not ordered after {provider}, which waits for the InfiniBand ports: when the ports are slow, {}.",
        units.join(", "),
        need.harm()
    );
    Finding::of(code(need), severity, Confidence::High, told)
        .about_all(units)
        .permanent(drop_ins.iter().map(|drop_in| ToDo::run(drop_in.remedy())))
        .chain(units.iter().filter(|_| severity == Severity::Error).map(|unit| was_early(unit)))
        .quoting(units.iter().map(|unit| no_chain(host, provider, unit)))
}

fn began_before_netdevs(host: &Host, unit: &str) -> bool {
    let Some(began) = host.graph.get(unit).and_then(|u| u.now.began_usec) else { return false };
    host.ports.iter().any(|p| p.progress.named_usec.is_none_or(|named| named > began))
}

/// A unit that sets netdevs up once was through before one of them was there,
/// and it is still down.
fn too_early(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    for asked in &host.asked {
        let Some(unit) = host.graph.get(&asked.unit) else { continue };
        if consumers::need(unit, stacks::network_role) != Some(Need::NetworkOnce) {
            continue;
        }
        let port = host
            .ports
            .iter()
            .find(|p| p.progress.netdev.as_ref().is_some_and(|n| n.as_str() == asked.netdev));
        let Some((port, began)) = port.zip(unit.now.began_usec) else { continue };
        let done = unit.now.up_usec.or(unit.now.down_usec).unwrap_or(began);
        let Some(named) = port.progress.named_usec.filter(|named| *named > began) else { continue };
        if port.up != Some(false) {
            continue;
        }
        let late = duration(named.since(began));
        let netdev = &asked.netdev;
        let name = &unit.name;
        let told = format!(
            "{netdev} appeared {late} after {name} began to set interfaces up, and is down."
        );
        findings.push(
            Finding::of(Code::NetdevLate, Severity::Error, Confidence::High, told)
                .about(netdev.as_str())
                .chain([
                    format!("{name} began at {} and had finished at {}.", at(began), at(done)),
                    format!("{netdev} had its name at {}.", at(named)),
                    "No network service sets the netdev up after that.".to_owned(),
                ])
                .quoting([host.quote(format!("{name} sets up {netdev}: {}", asked.file))])
                .now([format!("ifup {netdev}, or systemctl restart {name}")])
                .permanent([ToDo::run("systemctl enable ibprov.service")]),
        );
    }
    findings
}

fn at(moment: Moment) -> String {
    crate::model::duration::seconds(moment.since(Moment::START))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Port, host};
    use super::*;
    use crate::names::{Object, at};

    const NODE: &str = "\
goal.target wants ibprov.service networking.service scratch.mount home.mount
ibprov.service before network-pre.target
goal.target wants network-pre.target
network-pre.target before networking.service
scratch.mount is nfs4
home.mount is nfs4
";

    #[test]
    fn a_proved_node_has_no_finding_and_plain_nfs_proves_nothing() {
        assert_eq!(
            judge(&host(NODE, &[Port::named("ib0", 5)], &[("networking.service", "ib0")])),
            []
        );
    }

    #[test]
    fn a_mount_by_rdma_that_is_not_ordered_gets_its_drop_in() {
        let mut host = host(NODE, &[Port::named("ib0", 5)], &[]);
        host.graph.get_mut("scratch.mount").expect("mount").options = "rw,rdma".to_owned();
        let [finding] = &judge(&host)[..] else { panic!("{:?}", judge(&host)) };
        assert_eq!((finding.code, finding.severity), (Code::MountBeforeIpoib, Severity::Warning));
        let advice: Vec<String> = finding.advice.iter().map(|a| a.step.to_string()).collect();
        assert_eq!(advice, ["`ibprov consumers --install`"]);
        let mount = host.graph.get_mut("scratch.mount").expect("mount");
        mount.now.active = "failed".to_owned();
        mount.now.began_usec = Some(at(3));
        assert_eq!(judge(&host)[0].severity, Severity::Error);
    }

    #[test]
    fn a_netdev_that_came_after_the_network_and_is_down_is_an_error() {
        let mut late = host(NODE, &[Port::named("ib0", 50)], &[("networking.service", "ib0")]);
        let networking = late.graph.get_mut("networking.service").expect("unit");
        networking.now.began_usec = Some(at(20));
        late.ports[0].up = Some(false);
        let findings = judge(&late);
        assert_eq!(findings.first().map(|f| f.code), Some(Code::NetdevLate), "{findings:?}");
        late.ports[0].up = Some(true);
        assert_eq!(judge(&late), []);
        // Nobody brings ports up at boot: it is late all the same.
        let lines = "goal.target wants networking.service\n";
        let mut late = host(lines, &[Port::named("ib0", 50)], &[("networking.service", "ib0")]);
        late.graph.get_mut("networking.service").expect("unit").now.began_usec = Some(at(20));
        late.ports[0].up = Some(false);
        assert_eq!(judge(&late).len(), 1);
    }

    #[test]
    fn units_that_lack_the_same_order_are_one_finding_that_names_all() {
        let mut host = host(NODE, &[Port::named("ib0", 5)], &[]);
        for mount in ["scratch.mount", "home.mount"] {
            host.graph.get_mut(mount).expect("mount").options = "rdma".to_owned();
        }
        let [finding] = &judge(&host)[..] else { panic!("{:?}", judge(&host)) };
        assert_eq!(finding.objects, Object::all("home.mount, scratch.mount"));
        let told = "home.mount, scratch.mount are not ordered after ibprov.service";
        assert!(finding.message.starts_with(told), "{}", finding.message);
        assert_eq!(finding.advice.len(), 1, "{finding:?}");
    }

    #[test]
    fn without_infiniband_nothing_is_said() {
        let mut host = host(NODE, &[], &[]);
        host.graph.get_mut("scratch.mount").expect("mount").options = "rdma".to_owned();
        assert_eq!(judge(&host), []);
    }
}
