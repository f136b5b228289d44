//! MLNX_OFED's openibd and mlnx_interface_mgr.

use super::{Boot, Code, Confidence, Event, Finding, Kind, Severity, row, seen};
use crate::check::pattern::{caught_one, has_any, word};

pub(super) fn openibd_disabled(boot: &Boot) -> Option<Finding> {
    let unit = boot.state.unit("openibd.service").filter(|u| {
        (u.enabled == "disabled" || u.enabled == "masked")
            && (u.active.is_empty() || u.active.starts_with("inactive"))
    });
    let typed = boot.state.commands.iter().find(|c| {
        c.text.contains("is-enabled openibd")
            && (c.answer() == "disabled" || c.answer() == "masked")
    });
    let late = seen::late(boot).filter(|l| !l.recovered);
    let ran = boot.events.iter().any(|e| {
        &*e.program == "openibd"
            || matches!(&e.kind, Kind::UnitStarting(u) | Kind::UnitStarted(u) if u.contains("openibd"))
    });
    let ofed = boot.events.iter().any(|e| e.program.starts_with("mlnx_interface_mgr"));
    let unit = unit.map(|unit| boot.quote_at(unit.origin, &unit.text));
    let typed = typed.map(|command| boot.quote_at(command.origin, &command.text));
    let mut quotes: Vec<_> = unit.into_iter().chain(typed).collect();
    let shown = !quotes.is_empty();
    let finding = |judged, told: String| {
        row::told(boot, Code::OpenibdDisabled, judged, told, &["openibd.service"], [])
    };
    let Some(late) = late else {
        if !shown || seen::sign_of_life(boot).is_some() {
            return None;
        }
        let without = boot.state.netdevs.iter().all(|n| !n.infiniband);
        let severity = if without { Severity::Error } else { Severity::Warning };
        let told = "openibd.service is not enabled, so that no unit loads the IPoIB modules before the network starts.";
        let judged = (severity, Confidence::Medium);
        return Some(finding(judged, told.to_owned()).quoting(quotes));
    };
    if ran || !(ofed || shown) {
        return None;
    }
    quotes.extend(seen::quotes(boot, [late.asked, late.made]));
    quotes.extend(seen::quotes(boot, boot.with("OS is booting, will not run ifup")));
    let gap = late.seconds().map_or(String::new(), |gap| format!(", {gap} s too late"));
    let netdev = late.netdev;
    let up = boot.after(late.made.origin).find(|e| {
        matches!(&e.kind, Kind::InterfaceAsked { name, worked: Some(true) } if &**name == netdev)
    });
    let until = up.map_or(String::new(), |e| format!(" until {}", e.when.stamp));
    let (asked, made) = (&late.asked.when.stamp, &late.made.when.stamp);
    let confidence = if shown { Confidence::High } else { Confidence::Medium };
    let told = format!(
        "openibd did not run, so that {netdev} was created only at {made}{gap}, after the network service had looked for it at {asked}."
    );
    Some(
        finding((Severity::Error, confidence), told)
            .chain([
                "openibd did not run, probably because it is not enabled: this boot has no line of it".to_owned(),
                format!("at {asked} the network service looked for {netdev}, which did not exist"),
                format!("another process loaded ib_ipoib, which created {netdev} at {made}"),
                "mlnx_interface_mgr considers the system to be booting and leaves the interface to the network service".to_owned(),
                format!("no unit tried again: {netdev} stayed down{until}"),
            ])
            .quoting(quotes),
    )
}

/// `openibd restart` could not take a module of ours away, so it loaded none anew.
fn is_kept(event: &Event) -> bool {
    let text = &event.text;
    text.contains("Cannot unload driver while")
        || text.contains("Unloading ")
            && is_marked(text)
            && (seen::rdma_module(text).is_some() || text.contains("HCA driver"))
}

/// True if a start script has marked what `text` tells as failed.
fn is_marked(text: &str) -> bool {
    ["[FAILED]", "[  FAILED  ]"].iter().any(|mark| text.trim_end().ends_with(mark))
}

fn failed(event: &Event) -> bool {
    let of_unit = matches!(&event.kind, Kind::UnitFailed(u) if u.contains("openibd"));
    let text = &event.text;
    let no_unit = [
        "Failed to restart openibd",
        "Failed to start openibd.service",
        "openibd.service not found",
    ];
    of_unit
        || no_unit.iter().any(|w| text.contains(w))
        || text.contains("openibd.service")
            && has_any(text, &["status=1", "code=killed", "timed out", "failed."])
        || text.contains("Access Layer") && has_any(text, &["FAILED", "[FAIL"])
        || is_kept(event)
}

pub(super) fn openibd_failed(boot: &Boot) -> Option<Finding> {
    let unit = boot.state.unit("openibd.service").filter(|u| u.active.starts_with("failed"));
    let lines = boot.lines(failed);
    if lines.is_empty() && unit.is_none() {
        return None;
    }
    let recovered = lines
        .last()
        .is_some_and(|last| boot.starts_after(last.origin, |unit| unit.contains("openibd")));
    let (severity, end) =
        if recovered { (Severity::Warning, ", and started later") } else { (Severity::Error, "") };
    let refused = |e: &&Event| is_marked(&e.text) && e.text.contains("oad");
    let modules = boot.events.iter().filter(refused).filter_map(|e| seen::rdma_module(&e.text));
    let objects = seen::each(std::iter::once("openibd.service").chain(modules));
    let said = boot.events.iter().filter(|e| {
        let told = &*e.program == "openibd" || &*e.unit == "openibd.service";
        told && has_any(&e.text, &["rror", "ail", "FATAL", "skipping"])
            || seen::rdma_module(&e.text).is_some() && is_marked(&e.text)
            || e.text.contains("is in use by: ") && seen::rdma_module(&e.text).is_some()
    });
    let shown = unit.map(|u| boot.quote_at(u.origin, &format!("{} {}", u.text, u.active)));
    let told = format!("openibd.service failed{end}.");
    let judged = (severity, Confidence::High);
    Some(
        row::told(boot, Code::OpenibdFailed, judged, told, &objects, lines)
            .quoting(seen::quotes(boot, said))
            .quoting(shown),
    )
}

pub(super) fn mlnx_interface_mgr_armed(boot: &Boot) -> Option<Finding> {
    let of = |program: &str| boot.events.iter().find(|e| e.program.starts_with(program));
    let (Some(other), Some(ours)) = (of("mlnx_interface_mgr"), of("ibprov")) else {
        return None;
    };
    let told = "MLNX_OFED's mlnx_interface_mgr configures the same interfaces as ibprov.";
    let (judged, lines) = ((Severity::Warning, Confidence::High), [other, ours]);
    let code = Code::MlnxInterfaceMgrArmed;
    Some(row::told(boot, code, judged, told, &["mlnx_interface_mgr"], lines))
}

pub(super) fn ifup_skipped_os_booting(boot: &Boot) -> Option<Finding> {
    let skipped = boot.with("OS is booting, will not run ifup").find_map(|e| {
        let netdev = word(caught_one(&e.text, "will not run ifup on {}")?);
        let asked = boot
            .events
            .iter()
            .find(|a| a.origin < e.origin && seen::not_found(a) == Some(netdev))?;
        (!seen::came_up_after(boot, netdev, e)).then_some((e, netdev, asked))
    });
    let (event, netdev, asked) = skipped?;
    let told = format!(
        "mlnx_interface_mgr did not bring {netdev} up, and the network service had already given up on it."
    );
    let (judged, lines) = ((Severity::Error, Confidence::High), [asked, event]);
    Some(row::told(boot, Code::IfupSkippedOsBooting, judged, told, &[netdev], lines))
}
