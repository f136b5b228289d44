//! The ports of PFs, as far as the cable and the configuration decide.

use std::collections::BTreeSet;

use super::{Advice, Boot, Code, Confidence, Event, Finding, Needs, Quote, Severity, row, seen};
use crate::check::evidence::fold::{Lack, Object};
use crate::check::evidence::state::{NetdevSeen, PortSeen};
use crate::check::pattern::has_any;
use crate::ladder::active::no_cable;
use crate::model::advice::ToDo;
use crate::model::status::Role;

pub(super) fn link_down_cable(boot: &Boot) -> Option<Finding> {
    let ports: Vec<_> = boot.state.ports.iter().filter(|p| p.is_of_pf()).collect();
    // One that is optional, and dark, is named as that.
    let down: Vec<_> = ports
        .iter()
        .copied()
        .filter(|p| p.state == "down" && p.role != Some(Role::Optional))
        .filter(|p| {
            matches!(
                p.physical.as_str(),
                "polling" | "disabled" | "sleep" | "" | "portconfigurationtraining"
            )
        })
        .collect();
    let (unused, down): (Vec<_>, Vec<_>) =
        down.into_iter().partition(|p| p.role == Some(Role::Unexpected));
    let lit = ports.iter().any(|p| matches!(p.state.as_str(), "active" | "init" | "armed"));
    let lost: Vec<(&Object, Lack)> = boot.fold().bad().collect();
    let is_lost = |e: &Event| lost.iter().any(|(o, _)| o.last.quote == boot.quote(e));
    let bad = boot.lines(|e| {
        has_any(&e.text, &["Cable error", "Port module event[error]"]) && is_lost(e)
            || e.text.contains("nsupported")
                && e.text.contains("able")
                && seen::rdma_module(&e.text).is_some()
    });
    let unplugged: Vec<_> = boot.with("Cable unplugged").collect();
    let plugged = boot.says("Cable plugged");
    let alive = seen::sign_of_life(boot).is_some();
    let quotes = |ports: &[&PortSeen]| -> Vec<Quote> {
        ports.iter().take(8).map(|p| boot.quote_at(p.origin, &p.told())).collect()
    };
    let of_host = seen::inactive(boot);
    let is_used = lit || alive;
    // Beside a port that is used, one without a cable is free, and one that was disabled is not.
    let down: Vec<_> = match is_used && of_host.is_none() {
        true => down.into_iter().filter(|port| port.is_disabled()).collect(),
        false => down,
    };
    let (severity, confidence) = if let Some(first) = down.first() {
        let confidence =
            if first.physical == "polling" { Confidence::High } else { Confidence::Medium };
        match of_host {
            // As status has it of the same host.
            Some(severity) => (severity, confidence),
            None if is_used => (Severity::Warning, confidence),
            None => (Severity::Error, confidence),
        }
    } else if !bad.is_empty() {
        let severity = if is_used { Severity::Warning } else { Severity::Error };
        (severity, Confidence::High)
    } else if let Some(finding) = lost_again(boot, &lost).filter(|_| of_host.is_none()) {
        return Some(finding);
    } else if !unplugged.is_empty() && !plugged && !is_used {
        (Severity::Warning, Confidence::Medium)
    } else if !unused.is_empty() {
        let text = match told(&unused) {
            (names, 1) => format!("{names} has no physical link, and nothing is expected of it."),
            (names, _) => {
                format!("{names} have no physical link, and nothing is expected of them.")
            }
        };
        let note = Finding::of(Code::LinkDownCable, Severity::Info, Confidence::High, text);
        return Some(note.about_all(unused.iter().copied()).quoting(quotes(&unused)));
    } else {
        return None;
    };
    let (disabled, dark): (Vec<_>, Vec<_>) =
        down.iter().copied().partition(|port| port.physical == "disabled");
    let mut texts = Vec::new();
    match told(&disabled) {
        (_, 0) => {}
        (names, 1) => texts.push(format!("{names} is disabled")),
        (names, _) => texts.push(format!("{names} are disabled")),
    }
    let cause = "the cable, the module or the peer is the cause";
    match told(&dark) {
        (_, 0) if texts.is_empty() => texts.push(format!("A port has no physical link: {cause}")),
        (_, 0) => {}
        (names, 1) => texts.push(format!("{names} has no physical link: {cause}")),
        (names, _) => texts.push(format!("{names} have no physical link: {cause}")),
    }
    let finding =
        Finding::of(Code::LinkDownCable, severity, confidence, format!("{}.", texts.join("; ")))
            .about_all(down.iter().copied())
            .quoting(quotes(&down))
            .quoting(seen::quotes(boot, bad.into_iter().chain(unplugged)))
            .advise(look(boot, &down))
            .now(disabled.iter().map(|port| {
                let port = port.mad_port();
                ToDo::at(&port, port.ibportstate("enable"))
            }));
    Some(if dark.is_empty() && !disabled.is_empty() {
        finding
    } else {
        finding.now(["reseat the cable, or replace it"])
    })
}

/// `ports` as a sentence names them, and how many they are.
fn told(ports: &[&PortSeen]) -> (String, usize) {
    let names: Vec<String> = ports.iter().map(|port| port.name()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (seen::all_of("port", &names), names.len())
}

/// What shows more of `ports`, of which none may be known.
fn look(boot: &Boot, ports: &[&PortSeen]) -> Vec<Advice> {
    /// More are all alike.
    const ENOUGH: usize = 4;
    let of = |port: &PortSeen| {
        let at = port.function.map(|at| at.to_string()).unwrap_or_default();
        let is_known = port.device.is_empty() || !at.is_empty();
        let is_mlx5 = port.device.starts_with("mlx5") || is_known && Needs::Mlx5.is_met(boot, &at);
        let [cable, query] = no_cable(&port.mad_port(), port.function.filter(|_| is_mlx5));
        let query = match () {
            () if port.device.starts_with("hfi1") => Advice::look(ToDo::run("opainfo")),
            () if is_mlx5 && at.is_empty() => Advice::look(format!(
                "mlxlink -d ADDRESS (or mstlink with the same arguments), or {}",
                query.step
            )),
            () => query,
        };
        if port.is_disabled() { vec![query] } else { vec![cable, query] }
    };
    let unknown = PortSeen::default();
    let ports = if ports.is_empty() { &[&unknown][..] } else { ports };
    seen::each(ports.iter().take(ENOUGH).flat_map(|port| of(port)))
}

/// What is to be said of links that a log shows, and shows lost later. Of a host its judgement
/// says how they are.
fn lost_again(boot: &Boot, lost: &[(&Object, Lack)]) -> Option<Finding> {
    if boot.judgement().is_some() {
        return None;
    }
    let is_link = |lack| matches!(lack, Lack::Cable | Lack::Carrier | Lack::NotActive);
    let links: Vec<&Object> =
        lost.iter().filter(|(_, lack)| is_link(*lack)).map(|(object, _)| *object).collect();
    // An adapter is named with its netdev.
    let is_named =
        |adapter: &Object| links.iter().any(|o| o.adapter.as_ref() == Some(&adapter.name));
    let named: Vec<String> =
        links.iter().filter(|object| !is_named(object)).map(|object| object.title()).collect();
    let first = links.first()?;
    let unplugged = lost.iter().any(|(_, lack)| *lack == Lack::Cable);
    let confidence = if unplugged { Confidence::High } else { Confidence::Medium };
    let cause = if unplugged {
        "the cable, the module or the peer"
    } else {
        "the cable, the peer or the subnet manager"
    };
    let when = |object: &Object| {
        let time = object.last.quote.time.as_str();
        if time.is_empty() { String::new() } else { format!(" at {time}") }
    };
    let (names, time) = (named.join(", "), when(first));
    let summary = format!("{names} had a link and lost it{time}: {cause} is the cause.");
    let failed = lost.iter().filter(|(_, lack)| *lack == Lack::Failed);
    let (failed, said): (Vec<_>, Vec<_>) = failed
        .map(|(unit, _)| (format!("{} failed{}", unit.name, when(unit)), unit.last.quote.clone()))
        .unzip();
    Some(
        Finding::of(Code::LinkDownCable, Severity::Warning, confidence, summary)
            .about_all(&named)
            .chain(failed)
            .quoting(links.iter().map(|object| object.last.quote.clone()))
            .quoting(said)
            .advise(look(boot, &[]))
            .now(["reseat the cable, or replace it"]),
    )
}

pub(super) fn port_not_active(boot: &Boot) -> Option<Finding> {
    let is_judged = boot.judgement().is_some();
    idle(boot).filter(|_| !is_judged)
}

/// What dumps show of a netdev without carrier, where they do not show its port.
fn idle(boot: &Boot) -> Option<Finding> {
    let is_idle = |n: &&NetdevSeen| {
        let is_lacking = n.carrier == Some(false) && (n.up || n.operational_state_alone);
        n.infiniband && n.parent.is_none() && is_lacking
    };
    let netdevs: Vec<&NetdevSeen> = boot.state.netdevs.iter().filter(is_idle).collect();
    let first = netdevs.first()?;
    let shows_ports = boot.state.ports.iter().any(PortSeen::may_be_infiniband);
    if shows_ports || seen::sign_of_life(boot).is_some() || boot.fold().bad().next().is_some() {
        return None;
    }
    let names: BTreeSet<&str> = netdevs.iter().map(|netdev| netdev.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let what = if first.up { "no carrier" } else { "no carrier, or is set down" };
    let summary = format!(
        "{} has {what}: its port is not Active, or it has not joined the broadcast group of its subnet.",
        names.join(", ")
    );
    let judged = (Severity::Warning, Confidence::Medium);
    let shown = netdevs.iter().take(8).map(|n| boot.quote_at(n.origin, &n.text));
    Some(row::told(boot, Code::PortNotActive, judged, summary, &names, []).quoting(shown))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ca, host, port, severity};
    use super::*;
    use crate::check::evidence::host::Host;
    use crate::check::ledger::Book;
    use crate::check::rank;
    use crate::model::common::{Finding as Told, listed};
    use crate::model::node::Judgement;

    #[test]
    fn a_second_port_without_cable_is_none() {
        let told = |lines: &[&str]| severity(Code::LinkDownCable, lines);
        let active = ca(0, "MT4123", 1, "Active", "LinkUp");
        let down = ca(1, "MT4123", 1, "Down", "Polling");
        assert_eq!(told(&[&down]), Some(Severity::Error));
        assert_eq!(told(&[&active, &down]), None);
        let ethernet = ca(0, "MT4123", 1, "Down", "Disabled").replace("InfiniBand", "Ethernet");
        assert_eq!(told(&[&ethernet]), None);
        let event = |function: u8, what: &str| {
            format!(
                "[ 5.1] mlx5_core 0000:03:00.{function}: Port module event: module {function}, {what}"
            )
        };
        let unplugged = event(1, "Cable unplugged");
        assert_eq!(told(&[&unplugged]), Some(Severity::Warning));
        assert_eq!(told(&[&event(0, "Cable plugged"), &unplugged]), None);
    }

    /// What is told of such a host: severity, code, object and cause.
    fn told(ports: Vec<PortSeen>, named: &[(&str, Severity)]) -> Vec<String> {
        let all = rank::judge(&Book::of(&host(ports, named))).into_iter();
        all.filter(|finding| {
            ![Code::Healthy, Code::NotInfiniband, Code::Unknown].contains(&finding.code)
        })
        .map(|f| {
            let object = listed(&f.objects);
            format!("{} {} {object} <- {}", f.severity, f.code, f.caused_by.map_or("-", Code::name))
        })
        .collect()
    }

    #[test]
    fn each_port_has_the_cause_that_is_its_own() {
        use Role::Expected;
        let ports = vec![
            port("a", "down", "polling", Expected),
            port("b", "init", "linkup", Expected),
            port("c", "armed", "linkup", Expected),
            port("d", "active", "linkup", Expected),
        ];
        let named = ["a", "b", "c"].map(|device| (device, Severity::Warning));
        assert_eq!(
            told(ports, &named),
            [
                "warning no-subnet-manager b/1 <- -",
                "warning link-down-cable a/1 <- -",
                "warning port-not-active a/1 (0000:4b:00.0) <- link-down-cable",
                "warning port-not-active b/1 (0000:4b:00.0) <- no-subnet-manager",
                "warning port-not-active c/1 (0000:4b:00.0) <- -",
            ]
        );
    }

    #[test]
    fn what_explains_it_is_as_grave() {
        let dark = || port("a", "down", "polling", Role::Expected);
        let active = port("b", "active", "linkup", Role::Unexpected);
        let both = [
            "error link-down-cable a/1 <- -",
            "error port-not-active a/1 (0000:4b:00.0) <- link-down-cable",
        ];
        assert_eq!(told(vec![dark(), active], &[("a", Severity::Error)]), both);
        let optional = || port("a", "down", "polling", Role::Optional);
        assert_eq!(
            told(vec![optional()], &[("a", Severity::Info)]),
            ["note port-not-active a/1 (0000:4b:00.0) <- -"]
        );
        let ignored = port("a", "down", "polling", Role::Unexpected);
        assert_eq!(told(vec![ignored], &[]), ["note link-down-cable a/1 <- -"]);
        let init = port("a", "init", "linkup", Role::Optional);
        assert_eq!(
            told(vec![init], &[("a", Severity::Info)]),
            ["note port-not-active a/1 (0000:4b:00.0) <- -"]
        );
    }

    #[test]
    fn it_is_told_beside_any_other_warning_and_only_once() {
        let told = vec![
            Told::warning(Code::PortDegraded, "degraded: the rate is less").about("mlx5_0/1"),
            Told::warning(Code::BootFailed, "deferred (exit code 1)"),
            Told::new(Code::PcieLinkReduced, Severity::Info, "the PCIe width is x8"),
        ];
        let judgement = Judgement::new(Vec::new(), Vec::new(), true, true, told);
        assert_eq!(judgement.verdict.exit().code(), 1);
        let host = Host { live: true, judgement: Some(judgement), ..Host::default() };
        let boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
        let all = crate::check::rank::judge(&Book::of(&boot));
        let of = |code| all.iter().filter(|f| f.code == code).count();
        assert_eq!((of(Code::PortDegraded), of(Code::PcieLinkReduced)), (1, 1), "{all:?}");
    }
}
