//! Mounts and services that use the fabric before it can be used.

use super::words::consumer_before_address::{BINDS, RECONNECTS};
use super::words::mount_before_ipoib::{FABRIC, STARTS, UNREACHABLE};
use super::{Boot, Code, Confidence, Event, Finding, Kind, Severity, row, seen};
use crate::check::pattern::has_any;
use crate::graph::consumers;
use crate::model::advice::ToDo;
use crate::names::is_ipoib_name;

/// What comes later than this after the failure is no longer the boot, microseconds.
const SOON: i64 = 300_000_000;

/// The module that says in `event` that it cannot bind or reach an address.
fn of_kernel(event: &Event) -> Option<&'static str> {
    let text = &event.text;
    let binds = has_any(text, BINDS) && text.contains("-99");
    let reaches = text.contains("rdma_resolve_addr") && has_any(text, &["-99", "-101"]);
    if !binds && !reaches {
        return None;
    }
    seen::rdma_module(text).or_else(|| text.starts_with("nvme ").then_some("nvme_rdma"))
}

/// The service known to use the fabric that says in `event` that it cannot bind an address,
/// where a netdev of ours became ready after that.
fn of_service<'a>(boot: &Boot, event: &'a Event) -> Option<&'a str> {
    let is_refused = event.text.contains("Cannot assign requested address");
    consumers::by_name(&event.program).filter(|_| is_refused)?;
    let comes = boot.events.iter().filter(|e| e.origin > event.origin).any(|e| {
        let is_ours = match &e.kind {
            Kind::LinkReady(name) => is_ipoib_name(name),
            Kind::InterfaceAsked { name, worked } => is_ipoib_name(name) && *worked == Some(true),
            _ => e.text.contains("Activation: successful") && seen::ib_netdev_in(&e.text).is_some(),
        };
        is_ours && e.when.since(&event.when).is_none_or(|gap| gap < SOON)
    });
    comes.then_some(&*event.program)
}

/// True if what `event` tells was made good: the service was started again, the initiator
/// has reconnected.
fn is_made_good(boot: &Boot, event: &Event, who: &str) -> bool {
    boot.events.iter().filter(|e| e.origin > event.origin).any(|e| match &e.kind {
        Kind::UnitStarted(unit) => unit.strip_suffix(".service").unwrap_or(unit) == who,
        _ => who == "nvme_rdma" && has_any(&e.text, RECONNECTS),
    })
}

pub(super) fn consumer_before_address(boot: &Boot) -> Vec<Finding> {
    let found = boot
        .events
        .iter()
        .filter_map(|event| Some((event, of_kernel(event).or_else(|| of_service(boot, event))?)));
    let (good, bad): (Vec<_>, Vec<_>) =
        found.partition(|(event, who)| is_made_good(boot, event, who));
    let finding = |of: Vec<(&Event, &str)>, severity: Severity| {
        let names = seen::each(of.iter().map(|(_, who)| *who));
        let said = of.first()?.0.text.trim();
        let who = seen::all_of("service", &names);
        let told = format!("{who} came before the address of the fabric: {said}");
        let restart =
            names.iter().map(|name| ToDo::run(format!("systemctl restart {}", unit(name))));
        let lines = of.iter().map(|(event, _)| *event);
        let judged = (severity, Confidence::High);
        let code = Code::ConsumerBeforeAddress;
        Some(row::told(boot, code, judged, told, &names, lines).now(restart))
    };
    [finding(bad, Severity::Error), finding(good, Severity::Warning)]
        .into_iter()
        .flatten()
        .collect()
}

/// The unit that sets up what `module` serves.
fn unit(module: &str) -> String {
    let stem = match module {
        "nvmet_rdma" => "nvmet",
        "nvme_rdma" => "nvmf-autoconnect",
        "svcrdma" => "nfs-server",
        "ib_iser" => "iscsi",
        "ib_isert" => "target",
        "ko2iblnd" => "lnet",
        other => other,
    };
    format!("{stem}.service")
}

/// LNet or the RDMA transport says so itself.
fn over_ib(event: &Event) -> bool {
    let t = &event.text;
    let lnet = (has_any(t, STARTS)
        || has_any(t, &["kiblnd_startup", "kiblnd_dev_", "kiblnd_create_dev"]))
        && !t.contains("Unknown symbol")
        || t.contains("query intf") && seen::ib_netdev_in(t).is_some()
        || t.contains("LNet")
            && seen::ib_netdev_in(t).is_some()
            && has_any(t, &["it's down", "rror", "Invalid"]);
    let nfs = has_any(t, &["mount.nfs", "mount.lustre", "mount["])
        && t.contains("rdma")
        && !t.contains("Protocol not supported");
    lnet || nfs
}

/// A mount that found no network.
fn no_network(event: &Event) -> bool {
    let t = &event.text;
    let mount =
        has_any(t, &["mount.", "mount[", "mounting", "NFS", "nfs", "glusterfs", "ceph", "cifs"])
            || event.program.contains("mount");
    let other = ["Connection timed out", "Network is down", "Cannot assign requested address"];
    mount && (has_any(t, UNREACHABLE) || has_any(t, &other))
}

/// True if the boot's lines speak of InfiniBand as the way to the server.
pub(super) fn ib_here(boot: &Boot) -> bool {
    seen::shows_infiniband(boot) || boot.with_any(FABRIC).next().is_some()
}

pub(super) fn mount_before_ipoib(boot: &Boot) -> Option<Finding> {
    let said = boot.lines(over_ib);
    let generic = boot.lines(no_network);
    let (lines, confidence) = if !said.is_empty() {
        (said, Confidence::High)
    } else if !generic.is_empty() && ib_here(boot) {
        (generic, Confidence::Medium)
    } else if generic.iter().any(|e| e.text.contains("Network is unreachable")) {
        // Whether the way goes over InfiniBand is not in the log.
        let told =
            "If the server is reached over IPoIB, the mount was tried before the port was active.";
        let judged = (Severity::Info, Confidence::Low);
        let kind = (Code::MountBeforeIpoib, "unsure");
        return Some(row::told_as(boot, kind, judged, told, &[], generic));
    } else {
        return None;
    };
    let last = lines.last()?;
    let mounted = boot.after(last.origin).any(|e| {
        e.text.starts_with("Mounted /")
            || e.text.contains("LNet: Added LNI") && e.text.contains("o2ib")
    });
    let (severity, end) = if mounted {
        (Severity::Warning, "; a later attempt succeeded")
    } else {
        (Severity::Error, "")
    };
    let told = format!(
        "A mount or LNet was started before IPoIB could be used{end}: {}",
        last.text.trim()
    );
    let unit = seen::each(Some(&*last.unit).filter(|unit| !unit.is_empty()));
    Some(row::told(boot, Code::MountBeforeIpoib, (severity, confidence), told, &unit, lines))
}

pub(super) fn mount_before_network(boot: &Boot) -> Option<Finding> {
    let lines = boot.lines(no_network);
    if lines.is_empty() || ib_here(boot) || boot.events.iter().any(over_ib) {
        return None;
    }
    let mounted = lines
        .last()
        .is_some_and(|last| boot.after(last.origin).any(|e| e.text.starts_with("Mounted /")));
    let severity = if mounted { Severity::Warning } else { Severity::Error };
    let told =
        "A mount was tried before the network was up; no line of the log is about InfiniBand.";
    Some(row::told(
        boot,
        Code::MountBeforeNetwork,
        (severity, Confidence::Medium),
        told,
        &[],
        lines,
    ))
}
