//! Network services and their configuration.

use super::words::network_stack_bug::{FAULTS, MANAGERS, WORKS};
use super::{Boot, Code, Confidence, Event, Finding, Severity, row, seen};
use crate::check::pattern::{caught_one, has_any};
use crate::names::{RDMA_MODULES, is_ipoib_name};

pub(super) fn ifcfg_mismatch(boot: &Boot) -> Option<Finding> {
    let lines = row::lines(boot, Code::IfcfgMismatch);
    let first = lines.first()?;
    // An attempt that worked afterwards.
    let name = seen::not_found(first).or_else(|| seen::ib_netdev_in(&first.text));
    if name.is_some_and(|n| seen::came_up_after(boot, n, first)) {
        return None;
    }
    let told = format!("The network configuration fits no device: {}", first.text.trim());
    let judged = (Severity::Error, Confidence::Medium);
    Some(row::told(boot, Code::IfcfgMismatch, judged, told, &[], lines))
}

fn of_network_manager(event: &Event) -> bool {
    has_any(&event.program, MANAGERS) || event.program.is_empty()
}

fn is_fault(event: &Event) -> bool {
    let t = &event.text;
    let low = t.to_ascii_lowercase();
    let names_ib = has_any(&low, &["infiniband", "ipoib"]) || seen::ib_netdev_in(t).is_some();
    if t.contains("could not be readied for configuration") {
        return true;
    }
    names_ib && has_any(&low, FAULTS)
}

/// What a network manager says of an interface that it gave up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why<'a> {
    /// It cannot deal with the kind of interface.
    Unsupported,
    NoDhcp,
    /// NetworkManager's own word.
    Reason(&'a str),
}

/// The last reason by which NetworkManager gave `netdev` up.
fn reason<'a>(boot: &'a Boot, netdev: &str) -> Option<&'a str> {
    let device = format!("({netdev}): state change: ");
    let lines = boot.events.iter().filter(|e| e.text.contains(&device));
    lines.filter_map(|e| caught_one(&e.text, "-> failed (reason '{}'")).next_back()
}

/// The netdev of a line by which a DHCP client says that nobody answers.
fn unanswered<'a>(boot: &'a Boot, event: &'a Event) -> Option<&'a str> {
    let text = &event.text;
    if has_any(text, &["DHCPv4 client: Timed out", "request timed out"]) {
        return seen::ib_netdev_in(text);
    }
    if !text.contains("No DHCPOFFERS received") {
        return None;
    }
    // dhclient names the interface in the lines before.
    let before = boot.events.iter().rfind(|e| {
        e.origin < event.origin && e.program == event.program && e.text.contains("DHCPDISCOVER on")
    })?;
    seen::ib_netdev_in(&before.text)
}

pub(super) fn network_stack_bug(boot: &Boot) -> Vec<Finding> {
    // What the kernel says of its own is no fault of a network manager.
    let faults = boot
        .events
        .iter()
        .filter(|e| of_network_manager(e) && is_fault(e) && &*e.program != "kernel")
        .filter(|e| !e.program.is_empty() || !kernel_like(&e.text))
        .map(|e| (e, seen::ib_netdev_in(&e.text)));
    let silent = boot.events.iter().filter_map(|e| Some((e, Some(unanswered(boot, e)?))));
    let judged = faults.chain(silent).map(|(event, name)| {
        let of_dhcp =
            |name: &str| boot.events.iter().any(|e| e.text.contains(&format!("dhcp4 ({name})")));
        let why = match name.and_then(|name| Some((name, reason(boot, name)?))) {
            _ if unanswered(boot, event).is_some() => Why::NoDhcp,
            None | Some((_, "config-failed")) => Why::Unsupported,
            Some((name, "ip-config-unavailable" | "dhcp-failed")) if of_dhcp(name) => Why::NoDhcp,
            Some((_, reason)) => Why::Reason(reason),
        };
        (why, name, vec![event])
    });
    let finding = |(why, names, lines): (_, Vec<_>, Vec<_>)| finding(boot, why, &names, &lines);
    seen::by_key(judged).into_iter().map(finding).collect()
}

fn finding(boot: &Boot, why: Why<'_>, names: &[&str], lines: &[&Event]) -> Finding {
    let last = lines.iter().map(|e| e.origin).max();
    // A later attempt that worked.
    let works = |name: &&str| {
        boot.events
            .iter()
            .any(|e| Some(e.origin) > last && e.text.contains(name) && has_any(&e.text, WORKS))
    };
    let severity = if !names.is_empty() && names.iter().all(works) {
        Severity::Warning
    } else {
        Severity::Error
    };
    let of = seen::all_of("interface", names);
    let first = lines.first().map(|e| e.text.trim()).unwrap_or_default();
    let told = match why {
        Why::Unsupported => {
            format!("The network manager does not support the InfiniBand interface: {first}")
        }
        Why::NoDhcp => {
            format!("No DHCP server has answered on {of}, so that it has no address.")
        }
        Why::Reason(reason) => format!("NetworkManager gave {of} up, with the reason {reason}."),
    };
    let kind = match why {
        Why::Unsupported => "unsupported",
        Why::NoDhcp => "no-dhcp",
        Why::Reason(_) => "reason",
    };
    let (judged, lines) = ((severity, Confidence::Medium), lines.iter().copied());
    row::told_as(boot, (Code::NetworkStackBug, kind), judged, told, names, lines)
}

/// True for a line of dmesg, which names no program: it begins with a driver or
/// a netdev.
fn kernel_like(text: &str) -> bool {
    let first = text.split([':', ' ']).next().unwrap_or_default();
    RDMA_MODULES.contains(&first)
        || is_ipoib_name(first)
        || first.starts_with("mlx")
        || first == "infiniband"
        || first == "IPv6"
}
