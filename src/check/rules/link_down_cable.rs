use super::{Boot, Code, Confidence, Finding, Judge, Quote, Rule, Severity, seen};
use crate::check::evidence::fold::{Lack, Object};
use crate::check::evidence::state::PortSeen;
use crate::names::MadPort;
use crate::report::status::Role;

pub(super) const RULE: Rule = Rule {
    code: Code::LinkDownCable,
    meaning: "the port has no physical link: the cable, the module or the peer is the cause",
    page: "\
The port looks for a peer and finds none: physical state Polling. The cable is missing,
broken or of a type that the port does not support, or the port at the other end is
disabled. No software on this host can change that. Or the port itself is disabled:
physical state Disabled.

Symptoms: State: Down, Physical state: Polling in ibstat; \"Cable unplugged\",
\"Cable error\" from mlx5_core.

A second port without cable beside one that is Active is not an error. A port that had a
link and has lost it by the end of the log is a warning; one that got it back is none.

Remedy: check the cable, the module and the LEDs, and enable the port of the switch.
If the state is Disabled, enable the port, or correct LINK_TYPE in its firmware.

    ibportstate -C DEVICE -P PORT -D 0 PORT query
    mlxlink -d ADDRESS --show_module",
    needles: &[&[
        "Cable unplugged",
        "Cable error",
        "Cable plugged",
        "Link Down Reason",
        "unsupported module",
        "Unsupported cable",
        "cable is not supported",
        "not a supported cable",
        "QSFP not present",
        "Port module event",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let ports: Vec<_> =
        boot.state.ports.iter().filter(|p| p.may_be_infiniband() && !p.is_vf()).collect();
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
    let is_lost = |e: &super::Event| lost.iter().any(|(o, _)| o.last.quote == boot.quote(e));
    let bad: Vec<_> = boot
        .events
        .iter()
        .filter(|e| {
            (e.text.contains("Cable error") || e.text.contains("Port module event[error]"))
                && is_lost(e)
                || e.text.contains("nsupported")
                    && e.text.contains("able")
                    && seen::rdma_module(&e.text).is_some()
        })
        .collect();
    let unplugged: Vec<_> = boot.with("Cable unplugged").collect();
    let plugged = boot.says("Cable plugged");
    let alive = seen::sign_of_life(boot).is_some();
    let quotes = |ports: &[&PortSeen]| -> Vec<Quote> {
        ports.iter().take(8).map(|p| boot.quote_at(p.origin, "", &p.told())).collect()
    };
    let of_host = seen::inactive(boot);
    let (severity, confidence) = if let Some(first) = down.first() {
        let confidence =
            if first.physical == "polling" { Confidence::High } else { Confidence::Medium };
        match of_host {
            // As status has it of the same host.
            Some(severity) => (severity, confidence),
            // A second port that nobody uses.
            None if lit || alive => return Vec::new(),
            None => (Severity::Error, confidence),
        }
    } else if !bad.is_empty() {
        let severity = if alive || lit { Severity::Warning } else { Severity::Error };
        (severity, Confidence::High)
    } else if let Some(finding) = lost_again(boot, &lost).filter(|_| of_host.is_none()) {
        return vec![finding];
    } else if !unplugged.is_empty() && !plugged && !alive && !lit {
        (Severity::Warning, Confidence::Medium)
    } else if !unused.is_empty() {
        let text = match told(&unused) {
            (names, 1) => format!("{names} has no physical link, and nothing is expected of it."),
            (names, _) => {
                format!("{names} have no physical link, and nothing is expected of them.")
            }
        };
        let note = Finding::new(RULE.code, Severity::Info, Confidence::High, text);
        return vec![note.about_if(seen::names(unused.iter().copied())).quoting(quotes(&unused))];
    } else {
        return Vec::new();
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
    let finding = Finding::new(RULE.code, severity, confidence, format!("{}.", texts.join("; ")))
        .about_if(seen::names(down.iter().copied()))
        .quoting(quotes(&down))
        .quoting(seen::quotes(boot, bad.into_iter().chain(unplugged)))
        .look(look(&down))
        .now(disabled.iter().map(|port| port.mad_port().ibportstate("enable")));
    vec![match dark.is_empty() && !disabled.is_empty() {
        true => finding,
        false => finding.now(["reseat the cable, or replace it"]),
    }]
}

/// `ports` as a sentence names them, and how many they are.
fn told(ports: &[&PortSeen]) -> (String, usize) {
    let names: Vec<String> = ports.iter().map(|port| port.name()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (seen::all_of("port", &names), names.len())
}

/// What shows more of `ports`, of which none may be known.
fn look(ports: &[&PortSeen]) -> Vec<String> {
    /// More are all alike.
    const ENOUGH: usize = 4;
    let ask = |at: String, port: &MadPort| {
        let query = port.ibportstate("query");
        format!("mlxlink -d {at} --show_module (or mstlink with the same arguments), or {query}")
    };
    let of = |port: &&PortSeen| {
        let at = port.function.map_or_else(|| "ADDRESS".to_owned(), |at| at.to_string());
        match port.device.starts_with("hfi1") {
            true => "opainfo".to_owned(),
            false => ask(at, &port.mad_port()),
        }
    };
    let mut all: Vec<String> = ports.iter().take(ENOUGH).map(of).collect();
    if all.is_empty() {
        all.push(ask("ADDRESS".to_owned(), &MadPort::default()));
    }
    all.push(
        "check the LEDs at both ends of the cable, and whether the switch's port is enabled"
            .to_owned(),
    );
    all
}

/// What is to be said of links that a log shows, and shows lost later. Of a host its judgement
/// says how they are.
fn lost_again(boot: &Boot, lost: &[(&Object, Lack)]) -> Option<Finding> {
    if boot.host.as_ref().is_some_and(|host| host.judgement.is_some()) {
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
    let cause = match unplugged {
        true => "the cable, the module or the peer",
        false => "the cable, the peer or the subnet manager",
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
        Finding::new(RULE.code, Severity::Warning, confidence, summary)
            .about(names)
            .chain(failed)
            .quoting(links.iter().map(|object| object.last.quote.clone()))
            .quoting(said)
            .look(look(&[]))
            .now(["reseat the cable, or replace it"]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ca, severity};
    use super::{RULE, Severity};

    #[test]
    fn a_second_port_without_cable_is_none() {
        assert_eq!(
            severity(&RULE, &[&ca(0, "MT4123", 1, "Down", "Polling"),]),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[&ca(0, "MT4123", 1, "Active", "LinkUp"), &ca(1, "MT4123", 1, "Down", "Polling"),]
            ),
            None
        );
        assert_eq!(
            severity(
                &RULE,
                &[&ca(0, "MT4123", 1, "Down", "Disabled").replace("InfiniBand", "Ethernet"),]
            ),
            None
        );
        assert_eq!(
            severity(
                &RULE,
                &["[ 5.1] mlx5_core 0000:03:00.0: Port module event: module 0, Cable unplugged",]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 5.1] mlx5_core 0000:03:00.0: Port module event: module 0, Cable plugged",
                    "[ 5.2] mlx5_core 0000:03:00.1: Port module event: module 1, Cable unplugged",
                ]
            ),
            None
        );
    }
}
