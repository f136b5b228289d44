//! opensm on this host, and what it does not serve.

use super::vf_ports::{dead_ports, is_zero, quote_ports, vfs};
use super::words::opensm_misconfigured::{ENDS, NUMBERS, RUNS, SURE};
use super::{Boot, Code, Confidence, Event, Finding, Kind, Severity, row, seen};
use crate::check::evidence::Host;
use crate::check::evidence::state::UnitSeen;
use crate::check::pattern::has_any;
use crate::graph::consumers::{DropIn, PROVIDER};
use crate::model::advice::ToDo;
use crate::names::{Object, Policy};

fn unit_failed(event: &Event) -> bool {
    matches!(&event.kind, Kind::UnitFailed(u) if u.to_ascii_lowercase().contains("opensm"))
        || event.text.contains("opensm")
            && (event.text.contains("status=1")
                || event.text.contains("code=exited, status=") && !event.text.contains("status=0"))
}

pub(super) fn opensm_misconfigured(boot: &Boot) -> Option<Finding> {
    let lines = boot.lines(|e| [SURE, ENDS, NUMBERS].iter().any(|words| has_any(&e.text, words)));
    let units = boot.lines(unit_failed);
    // MLNX_OFED's start script: its unit stays active when opensm has ended.
    let is_ended =
        |unit: &&UnitSeen| unit.name.starts_with("opensmd.") && unit.active == "active (exited)";
    let shown = seen::shown_failed(boot, |name| name.starts_with("opensm"))
        .or_else(|| boot.state.units.iter().find(is_ended));
    if lines.is_empty() && units.is_empty() && shown.is_none() {
        return None;
    }
    let last = lines.iter().chain(&units).map(|e| e.origin).max();
    let up = boot.with_any(RUNS).any(|e| last.is_none_or(|l| e.origin > l));
    let (severity, end) =
        if up { (Severity::Warning, ", and runs now") } else { (Severity::Error, "") };
    let fault = if lines.iter().any(|e| e.text.contains("find SM port by guid")) {
        "does not find its own port in the fabric"
    } else {
        "could not start"
    };
    // What failed in the library below it may have any reason.
    let is_sure = lines.iter().any(|e| has_any(&e.text, SURE));
    let confidence = if is_sure { Confidence::High } else { Confidence::Medium };
    let ended = shown.filter(is_ended).map(|_| "its unit is active, and no process of it is left");
    let why = lines.first().map_or(ended.unwrap_or("it exits"), |e| e.text.trim());
    let told = format!("opensm {fault}{end}: {why}");
    let (lines, judged) = (lines.into_iter().chain(units), (severity, confidence));
    let unit = shown.map(|unit| seen::quote_unit(boot, unit));
    let code = Code::OpensmMisconfigured;
    Some(row::told(boot, code, judged, told, &["opensm.service"], lines).quoting(unit))
}

pub(super) fn opensm_skipped(boot: &Boot) -> Option<Finding> {
    let lines = row::lines(boot, Code::OpensmSkipped);
    let skipped = |host: &Host| {
        let unit = host.graph.get("opensm.service")?;
        let is_skipped = unit.now.condition_failed && unit.now.active != "active";
        let text = format!("{} was skipped: a condition of the unit did not hold", unit.name);
        is_skipped.then(|| host.quote(text))
    };
    let shown = boot.host.as_deref().and_then(skipped);
    if lines.is_empty() && shown.is_none() {
        return None;
    }
    let last = lines.last().map(|e| e.origin);
    let runs = boot.with_any(RUNS).any(|e| last.is_none_or(|last| e.origin > last));
    if runs {
        return None;
    }
    // Another host may have a subnet manager.
    let severity = seen::error_unless_alive(boot);
    let told =
        "opensm.service was skipped: ib_umad was not loaded when systemd checked the condition.";
    let judged = (severity, Confidence::High);
    let finding = row::told(boot, Code::OpensmSkipped, judged, told, &["opensm.service"], lines);
    let after = ToDo::run(DropIn::new("opensm.service", PROVIDER).commands());
    Some(finding.quoting(shown).permanent([after]))
}

pub(super) fn opensm_virt_disabled(boot: &Boot) -> Option<Finding> {
    let setting: Vec<_> = boot
        .with("virt_enabled")
        .filter(|e| {
            let value = e.text.split("virt_enabled").nth(1).unwrap_or_default();
            let value = value.trim_start_matches([' ', '=', ':', '\t']);
            // 0 ignores it, 1 switches it off, 2 on.
            value.starts_with(['0', '1']) || value.starts_with("FALSE")
        })
        .collect();
    let mut dead = dead_ports(boot);
    // Their PF keeps those down, whatever the subnet manager does; of a host that was judged
    // the judgement says which others are none of its fault. Alias GUIDs (mlx4) need no support.
    dead.retain(|port| port.policy != Some(Policy::Down) && !seen::has_alias(boot, port));
    if let Some(named) = seen::dark_vf_ports(boot) {
        dead.retain(|port| named.iter().any(|object| object.is(&Object::from(*port))));
    }
    // The judgement of a host names those that have a GUID and a link state.
    let is_judged = seen::dark_vf_ports(boot).is_some();
    let ready = is_judged && !dead.is_empty()
        || vfs(boot).any(|v| {
            !v.port_guid.as_deref().is_none_or(is_zero)
                && matches!(v.link_state.as_str(), "auto" | "enable")
        });
    if dead.is_empty() && setting.is_empty() {
        return None;
    }
    let enabled = boot.with("virt_enabled").any(|e| {
        e.text
            .split("virt_enabled")
            .nth(1)
            .is_some_and(|v| v.trim_start_matches([' ', '=', ':', '\t']).starts_with('2'))
    });
    if enabled && setting.is_empty() {
        return None;
    }
    // Zero GUIDs and policies of Down are other findings.
    if dead.iter().any(|p| is_zero(&p.node_guid)) && setting.is_empty() {
        return None;
    }
    let confidence = match (setting.is_empty(), ready, dead.is_empty()) {
        (false, _, false) => Confidence::High,
        (false, _, true) | (true, true, _) => Confidence::Medium,
        (true, false, _) => Confidence::Low,
    };
    let told =
        "The PF is Active and its VFs are not: the subnet manager does not serve virtual ports.";
    let judged = (Severity::Warning, confidence);
    let finding = row::told(boot, Code::OpensmVirtDisabled, judged, told, &[], setting);
    Some(finding.about_all(dead.iter().copied()).quoting(quote_ports(boot, &dead)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ca, severity};
    use super::{Code, Severity};

    #[test]
    fn a_vf_that_is_down_beside_its_pf() {
        let pf = ca(0, "MT4123", 1, "Active", "LinkUp");
        for (other, told) in [
            (ca(1, "MT4124", 2, "Down", "LinkUp"), Some(Severity::Warning)),
            (ca(1, "MT4124", 2, "Active", "LinkUp"), None),
            (ca(1, "MT4123", 2, "Down", "Polling"), None),
            (ca(1, "MT4124", 0, "Down", "LinkUp"), None),
        ] {
            assert_eq!(severity(Code::OpensmVirtDisabled, &[&pf, &other]), told, "{other}");
        }
    }

    #[test]
    fn nvidias_option_is_on_at_2_only() {
        let vf = ca(1, "MT4124", 2, "Down", "LinkUp");
        let pf = ca(0, "MT4123", 1, "Active", "LinkUp");
        for (value, told) in [(0, Some(Severity::Warning)), (1, Some(Severity::Warning)), (2, None)]
        {
            let option = format!("virt_enabled {value}");
            assert_eq!(severity(Code::OpensmVirtDisabled, &[&option, &pf, &vf]), told, "{value}");
        }
    }
}
