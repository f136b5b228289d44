//! Services that fail, or that wait in vain.

use super::words::rdma_service_failed::SERVICES;
use super::words::wait_online_timeout::FAILS;
use super::{Boot, Code, Confidence, Event, Finding, Kind, Severity, row, seen};
use crate::check::pattern::has_any;
use crate::model::advice::ToDo;

/// The service that `text` names. Too many lines have the last word for it to be looked for.
fn service_in(text: &str) -> Option<&'static str> {
    SERVICES.iter().copied().chain(["srp"]).find(|service| text.contains(service))
}

/// The subnet manager of Omni-Path.
const MANAGER: &str = "opafm";

pub(super) fn rdma_service_failed(boot: &Boot) -> Vec<Finding> {
    let lines = boot.lines(|e| {
        let ours = service_in(&e.text).is_some();
        let failed = matches!(&e.kind, Kind::UnitFailed(u) if service_in(u).is_some());
        failed
            || ours
                && (e.text.contains("Failed with result")
                    || e.text.contains("Failed at step EXEC")
                    || e.text.contains("Failed to execute")
                    || e.text.contains("code=exited, status=") && !e.text.contains("status=0/")
                    || has_any(&e.text, &["code=killed", "failed because", "Couldn't start"]))
    });
    let shown = seen::shown_failed(boot, |name| service_in(name).is_some());
    let named = lines.into_iter().filter_map(|e| Some((service_in(&e.text)?, None, vec![e])));
    let mut services: Vec<(&str, Vec<&Event>)> =
        seen::by_key(named).into_iter().map(|(name, _, lines)| (name, lines)).collect();
    if let Some(unit) = shown
        && !services.iter().any(|(name, _)| unit.name.contains(name))
    {
        services.push((&unit.name, Vec::new()));
    }
    let is_back = |name: &str, lines: &[&Event]| {
        let is_it = |unit: &str| unit.contains(name);
        lines.last().is_some_and(|last| boot.starts_after(last.origin, is_it))
    };
    let (back, failed): (Vec<_>, Vec<_>) =
        services.into_iter().partition(|(name, lines)| is_back(name, lines));
    let (managers, failed): (Vec<_>, Vec<_>) =
        failed.into_iter().partition(|(name, _)| name.starts_with(MANAGER));
    let finding = |of: Vec<(&str, Vec<&Event>)>, severity, what: &str| {
        let names: Vec<&str> = of.iter().map(|(name, _)| *name).collect();
        let units: Vec<String> = names
            .iter()
            .map(|name| {
                if name.contains([' ', '.']) {
                    (*name).to_owned()
                } else {
                    format!("{name}.service")
                }
            })
            .collect();
        let shown = shown.filter(|unit| names.iter().any(|name| unit.name.contains(name)));
        let shown = shown.map(|unit| seen::quote_unit(boot, unit));
        let told = format!("{} failed. {what}", seen::all_of("service", &names));
        (!names.is_empty()).then(|| {
            Finding::of(Code::RdmaServiceFailed, severity, Confidence::High, told)
                .about_all(&units)
                .quoting(seen::quotes(boot, of.iter().flat_map(|(_, lines)| lines).copied()))
                .quoting(shown)
                .look(
                    names.iter().map(|name| ToDo::run(format!("journalctl -b | grep -i '{name}'"))),
                )
        })
    };
    let severity = seen::error_unless_alive(boot);
    let managers = finding(
        managers,
        severity,
        "It is the subnet manager of Omni-Path: without one, on this host or another, no port of the fabric becomes Active.",
    );
    let works = "InfiniBand and IPoIB work without it.";
    let failed = finding(failed, Severity::Warning, works);
    let back = finding(back, Severity::Info, "It was started later.");
    let restart = ToDo::with("after its log has told the reason", "systemctl restart opafm");
    let mask = "if this host does not need the unit: systemctl mask UNIT";
    let all = [managers.map(|f| f.now([restart])), failed.map(|f| f.permanent([mask])), back];
    all.into_iter().flatten().collect()
}

pub(super) fn wait_online_timeout(boot: &Boot) -> Option<Finding> {
    let lines = boot.lines(|e| {
        let t = &e.text;
        let of = t.contains("wait-online")
            || e.program.contains("wait-online")
            || has_any(t, &["Wait Online", "Wait for Network to be"]);
        t.contains("Timeout occurred while waiting for network connectivity")
            || of && (matches!(e.kind, Kind::UnitFailed(_)) || has_any(t, FAILS))
    });
    let shown = seen::shown_failed(boot, |name| name.contains("wait-online"));
    if lines.is_empty() && shown.is_none() {
        return None;
    }
    let only_waiting = shown.is_none()
        && lines.iter().all(|e| {
            e.text.contains("A start job is running")
                && e.text.contains("no limit")
                && !e.text.contains("min")
        });
    let severity = if only_waiting { Severity::Warning } else { Severity::Error };
    let ib = boot.events.iter().any(|e| seen::ib_netdev_in(&e.text).is_some());
    let which = if ib { "" } else { "; the log does not name the interface" };
    let told = format!("The boot waited in vain for the network to be online{which}.");
    let judged = (severity, Confidence::High);
    let finding = row::told(boot, Code::WaitOnlineTimeout, judged, told, &[], lines);
    Some(finding.quoting(shown.map(|unit| seen::quote_unit(boot, unit))))
}
