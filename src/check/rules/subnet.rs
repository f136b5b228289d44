//! Ports and netdevs for which the subnet manager does not do what they need.

use super::vf_ports::is_zero;
use super::words::no_subnet_manager::{CONFIGURED, SILENT};
use super::words::opensm_misconfigured::RUNS;
use super::{Advice, Boot, Code, Confidence, Event, Finding, Quote, Severity, row, seen};
use crate::check::evidence::state::{NetdevSeen, PortSeen};
use crate::ladder::active::Manager;
use crate::model::advice::ToDo;
use crate::model::status::Role;
use crate::names::{IfName, MadPort, PKey};

/// What is known of the subnet manager of a port with this LID of one. A port that is Active
/// stands for that of another fabric, or of the same.
fn manager(boot: &Boot, sm_lid: &str) -> Manager {
    let of_port = sm_lid.parse().ok().filter(|lid| *lid != 0);
    // `sminfo: sm lid 4 sm guid 0x100001, activity count 89 priority 5 state 3 SMINFO_MASTER`
    let answered = boot.with("SMINFO_MASTER").find_map(|event| {
        let (_, rest) = event.text.split_once("sm lid ")?;
        rest.split_whitespace().next()?.parse().ok()
    });
    let is_beside = |p: &&PortSeen| p.is_active() && p.is_of_pf();
    let beside = boot.state.ports.iter().find(is_beside);
    let label = |port: &PortSeen| match port.device.is_empty() || port.port.is_empty() {
        true => port.name(),
        false => format!("{}/{}", port.device, port.port),
    };
    let is_seen = || boot.with_any(CONFIGURED).chain(boot.with_any(RUNS)).next().is_some();
    match Manager::of(of_port, beside.map(label)) {
        // Of itself sminfo asks through a port that is Active, where there is one.
        Manager::Unknown if answered.is_some() || is_seen() => Manager::Seen(answered),
        known => known,
    }
}

/// Joins of the broadcast group that nobody answered (-ETIMEDOUT), so many and so
/// long that they are no delay of the fabric's.
fn unheard(boot: &Boot) -> Vec<&Event> {
    const MANY: usize = 3;
    const LONG: i64 = 20_000_000;
    let lines: Vec<_> = boot
        .with("multicast join failed for")
        .filter(|e| e.text.contains("status -110") && e.text.contains("ff12:401b"))
        .collect();
    let long = lines
        .first()
        .zip(lines.last())
        .is_some_and(|(first, last)| last.when.since(&first.when).is_some_and(|usec| usec >= LONG));
    if lines.len() >= MANY && long { lines } else { Vec::new() }
}

pub(super) fn no_subnet_manager(boot: &Boot) -> Option<Finding> {
    let waiting: Vec<_> = boot
        .state
        .ports
        .iter()
        .filter(|p| p.state == "init" && p.is_of_pf())
        .filter(|p| p.role.is_none_or(|role| role == Role::Expected))
        .filter(|p| p.physical.is_empty() || p.physical == "linkup")
        .collect();
    let active = boot.state.ports.iter().any(|p| p.is_active() && p.may_be_infiniband());
    // hfi1 names the states in the log.
    let inits: Vec<_> = boot.with("logical state changed to PORT_INIT").collect();
    let stuck = inits.last().filter(|init| {
        let later = |e: &&Event| e.origin > init.origin;
        let moved = boot.with_any(CONFIGURED).any(|e| later(&e));
        // The log must go on long enough for a subnet manager to come by.
        let goes_on = boot
            .events
            .iter()
            .filter(later)
            .any(|e| e.when.since(&init.when).is_some_and(|t| t > 30_000_000));
        !moved && goes_on
    });
    // srp_daemon reads the port's SM LID. Without an agent of its own on the port the
    // kernel answers no subnet manager; SELinux can forbid that agent.
    let forbidden: Vec<_> = boot
        .with("manage_subnet")
        .filter(|e| e.text.contains("denied") && !e.text.contains("permissive=1"))
        .collect();
    let unanswered: Vec<_> = boot
        .with_any(SILENT)
        .chain(boot.with("Couldn't open port").filter(|e| e.text.contains("for agents")))
        .chain(forbidden.iter().copied())
        .collect();
    let came = active || seen::sign_of_life(boot).is_some();
    let unheard = if came { Vec::new() } else { unheard(boot) };
    if waiting.is_empty() && stuck.is_none() && unanswered.is_empty() && !unheard.is_empty() {
        let told = "The subnet manager does not answer: IPoIB asks repeatedly to join its broadcast group, and is never ready.";
        return Some(
            Finding::of(Code::NoSubnetManager, Severity::Warning, Confidence::Medium, told)
                .quoting(seen::quotes(boot, unheard))
                .advise(manager(boot, "").advice(&MadPort::default())),
        );
    }
    if waiting.is_empty() && stuck.is_none() && (unanswered.is_empty() || came) {
        return None;
    }
    let all: Vec<String> = waiting.iter().map(|p| p.name()).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut managers: Vec<(MadPort, Manager)> =
        waiting.iter().map(|port| (port.mad_port(), manager(boot, &port.sm_lid))).collect();
    if managers.is_empty() {
        managers.push((MadPort::default(), manager(boot, "")));
    }
    let has = if all.len() > 1 { "have a link and stay" } else { "has a link and stays" };
    let why = match managers.first() {
        Some((_, Manager::OfPort(other))) => {
            format!("no subnet manager has configured the port, and {other} is Active")
        }
        of => {
            let last = of.map(|(_, manager)| manager.last()).unwrap_or_default();
            format!("no subnet manager has configured the port{last}")
        }
    };
    let advice = seen::each(managers.iter().flat_map(|(port, manager)| manager.advice(port)));
    let (severity, confidence) = match (active, waiting.is_empty()) {
        (false, false) => (Severity::Error, Confidence::High),
        (true, false) => (Severity::Warning, Confidence::Medium),
        (_, true) => (Severity::Error, Confidence::Medium),
    };
    // As status has it of the same host.
    let of_host = seen::inactive(boot).filter(|_| !waiting.is_empty());
    let (severity, confidence) =
        of_host.map_or((severity, confidence), |severity| (severity, Confidence::High));
    let told = format!("{} {has} in Initializing: {why}.", seen::all_of("port", &all));
    Some(
        Finding::of(Code::NoSubnetManager, severity, confidence, told)
            .about_all(waiting.iter().copied())
            .quoting(waiting .iter() .map(|p| boot.quote_at(p.origin, &p.told())))
            .quoting(seen::quotes(boot, stuck.copied()))
            .quoting(seen::quotes(boot, unanswered))
            .chain(forbidden.first().map(|_| {
            "SELinux has denied manage_subnet, so that the kernel does not answer the subnet manager on that port".to_owned()
        }))
            .permanent(forbidden.first().map(|_| "allow manage_subnet to the domain that loads the modules (ausearch -m avc | audit2allow), then load mlx5_ib again"))
            .advise(advice),
    )
}

pub(super) fn umad_zero_guid(boot: &Boot) -> Option<Finding> {
    let lines = row::lines(boot, Code::UmadZeroGuid);
    let ports = boot.state.ports.iter().filter(|p| is_zero(&p.guid) || is_zero(&p.node_guid));
    let is_vf = ports.clone().any(PortSeen::is_vf);
    let shown: Vec<_> = ports.map(|p| boot.quote_at(p.origin, &p.text)).collect();
    if lines.is_empty() || shown.is_empty() {
        return None;
    }
    let told = "Tools for management datagrams fail: they give up at a device whose GUID is 0.";
    let set = "ip link set PF_NETDEV vf N node_guid GUID; ip link set PF_NETDEV vf N port_guid GUID; bind the VF again";
    let judged = (Severity::Error, Confidence::Medium);
    let finding = row::told(boot, Code::UmadZeroGuid, judged, told, &[], lines);
    Some(finding.quoting(shown).now(is_vf.then_some(set)))
}

pub(super) fn pkey_missing(boot: &Boot) -> Vec<Finding> {
    // A host is judged as it is now.
    if boot.judgement().is_some() {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = Vec::new();
    for out in kept_out(boot) {
        let Some(pkey) = out.pkey else { continue };
        // The last word on each port.
        let mut ports: Vec<&PortSeen> = Vec::new();
        for port in boot.state.ports.iter().filter(|port| !port.pkeys.is_empty()) {
            ports.retain(|other| other.name() != port.name());
            ports.push(port);
        }
        let is_its = |port: &&PortSeen| out.shown.is_none_or(|(_, own)| own.name() == port.name());
        for port in ports.into_iter().filter(|port| port.is_active()).filter(is_its) {
            let Some(lack) = pkey.lack_in(&port.pkeys) else { continue };
            let text = if out.refusals.is_empty() {
                format!("{}: {lack}; needed by {}.", port.name(), out.netdev)
            } else {
                format!("{}: {lack}, and {} is refused.", port.name(), out.netdev)
            };
            findings.push(
                Finding::of(Code::PkeyMissing, Severity::Warning, Confidence::Medium, text)
                    .about(port.name())
                    .quoting([boot.quote_at(port.origin, &port.told())])
                    .advise([Advice::full_membership(pkey, port.guid.parse().ok())]),
            );
        }
    }
    findings
}

pub(super) fn interface_not_online(boot: &Boot) -> Vec<Finding> {
    // A host is judged as it is now.
    if boot.judgement().is_some() {
        return Vec::new();
    }
    let told = kept_out(boot).into_iter().map(|KeptOut { netdev, refusals, shown, .. }| {
        let finding = |text, quotes: Vec<Quote>| {
            let finding = Finding::of(Code::InterfaceNotOnline, Severity::Warning, Confidence::Medium, text);
            finding.about(netdev).quoting(quotes)
        };
        match shown {
            Some((up, port)) if refusals.is_empty() => finding(
                format!(
                    "{netdev} is up without carrier, although {} is Active: it has not joined its broadcast group.",
                    port.name()
                ),
                vec![
                    boot.quote_at(up.origin, &up.text),
                    boot.quote_at(port.origin, &port.told()),
                ],
            )
            .look([ToDo::multicast_joins(netdev)]),
            _ => finding(
                format!(
                    "The subnet manager refuses to let {netdev} join its broadcast group (status -22), so that {netdev} has no carrier."
                ),
                seen::quotes(boot, refusals),
            )
            .look([
                ToDo::with("compare the P_Keys of the port with the partition of the group", "ibprov status -v"),
                "the rate and the MTU of the group must not be greater than those of the port: saquery -C DEVICE -P PORT -g".into(),
            ]),
        }
    });
    told.collect()
}

/// A netdev that is not in its broadcast group.
struct KeptOut<'a> {
    netdev: &'a str,
    /// The partition of the group.
    pkey: Option<PKey>,
    /// The lines that say that the subnet manager refuses it.
    refusals: Vec<&'a Event>,
    /// A dump that shows it up without carrier, and one that shows its port as active.
    shown: Option<(&'a NetdevSeen, &'a PortSeen)>,
}

/// The netdevs that are shown up without carrier at an active port; and those whose last word is
/// that the join of their broadcast group was answered with an error (`recv_handler()`,
/// drivers/infiniband/core/sa_query.c: EINVAL for any), so often and so long that the fabric does
/// not only start, or with a dump that shows no carrier.
fn kept_out(boot: &Boot) -> Vec<KeptOut<'_>> {
    const MANY: usize = 3;
    const LONG: i64 = 20_000_000;
    let mut all: Vec<(KeptOut<'_>, Option<usize>)> = Vec::new();
    for (at, event) in boot.events.iter().enumerate() {
        let Some((netdev, pkey)) = refusal(&event.text) else { continue };
        match all.iter_mut().find(|(out, _)| out.netdev == netdev) {
            Some((out, last)) => {
                out.refusals.push(event);
                *last = Some(at);
            }
            None => {
                all.push((KeptOut { netdev, pkey, refusals: vec![event], shown: None }, Some(at)));
            }
        }
    }
    for (netdev, port) in dark(boot) {
        match all.iter_mut().find(|(out, _)| out.netdev == netdev.name) {
            Some((out, _)) => out.shown = Some((netdev, port)),
            None => all.push((
                KeptOut {
                    netdev: &netdev.name,
                    // It is no child.
                    pkey: PKey::new(0xffff),
                    refusals: Vec::new(),
                    shown: Some((netdev, port)),
                },
                None,
            )),
        }
    }
    let is_last = |(out, last): &(KeptOut<'_>, Option<usize>)| {
        let mut good = boot.fold().good().filter(|object| object.name == out.netdev);
        let came = good.any(|object| {
            object.last.event.is_none_or(|event| last.is_none_or(|last| event > last))
        });
        let shown = boot.state.netdevs.iter().rfind(|netdev| netdev.name == out.netdev);
        let is_dark = shown.and_then(|netdev| netdev.carrier) == Some(false);
        let ends = out.refusals.first().zip(out.refusals.last());
        let long = ends.and_then(|(first, last)| last.when.since(&first.when));
        let often = out.refusals.len() >= MANY && long.is_some_and(|usec| usec >= LONG);
        !came && (is_dark || often)
    };
    all.into_iter().filter(is_last).map(|(out, _)| out).collect()
}

/// What dumps show up and without carrier, with their ports, if these are active to the last. A
/// netdev whose address is not shown is that of the only port.
fn dark(boot: &Boot) -> impl Iterator<Item = (&NetdevSeen, &PortSeen)> {
    let is_dark =
        |n: &&NetdevSeen| n.infiniband && n.parent.is_none() && n.up && n.carrier == Some(false);
    boot.state.netdevs.iter().filter(is_dark).filter_map(|netdev| {
        let ports = &boot.state.ports;
        let is_its = |port: &&PortSeen| match netdev.guid.as_str() {
            "" => ports.iter().all(|other| other.name() == port.name()),
            guid => port.guid == guid,
        };
        let port = ports.iter().rfind(is_its)?;
        port.is_active().then_some((netdev, port))
    })
}

/// The netdev of a line about a join of its broadcast group that was refused, and the partition
/// of the group: `ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status
/// -22` (drivers/infiniband/ulp/ipoib/ipoib_multicast.c).
fn refusal(text: &str) -> Option<(&str, Option<PKey>)> {
    let (netdev, rest) = text.split_once(": multicast join failed for ")?;
    let (group, status) = rest.split_once(", status ")?;
    let fields: Vec<&str> = group.split(':').collect();
    let is_broadcast =
        fields.len() == 8 && group.starts_with("ff1") && group.ends_with("ffff:ffff");
    let netdev = netdev.rsplit(' ').next().filter(|name| name.parse::<IfName>().is_ok())?;
    let pkey = || PKey::new(u16::from_str_radix(fields.get(2)?, 16).ok()?);
    (is_broadcast && status.trim() == "-22").then(|| (netdev, pkey()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ca, severity};
    use super::*;

    #[test]
    fn initializing_is_no_cable_and_no_vf() {
        let told = |lines: &[&str]| severity(Code::NoSubnetManager, lines);
        let port = |device, state, physical| ca(device, "MT4123", 1, state, physical);
        let init = port(1, "Initializing", "LinkUp");
        let alone = init.replace("SM lid: 1", "SM lid: 0");
        assert_eq!(told(&[&alone]), Some(Severity::Error));
        let active = port(0, "Active", "LinkUp");
        assert_eq!(told(&[&active, &init]), Some(Severity::Warning));
        assert_eq!(told(&[&port(0, "Down", "Polling")]), None);
        assert_eq!(told(&[&active]), None);
        let srp = "Mar 22 07:12:19 n2 srp_daemon[4681]: SM LID is 0, maybe no SM is running";
        assert_eq!(told(&[srp]), Some(Severity::Error));
        let later =
            "Mar 22 07:12:49 n2 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        assert_eq!(told(&[srp, later]), None);
        let agents = "kernel: infiniband mlx5_0: Couldn't open port 1 for agents";
        let denied = "kernel: audit: type=1400 audit(1656357157.949:4): avc: denied { manage_subnet } for pid=7176 comm=\"systemd-modules\" device=mlx5_0 port_num=1 tclass=infiniband_endport permissive=0";
        assert_eq!(told(&[agents, denied]), Some(Severity::Error));
    }

    #[test]
    fn joins_that_nobody_answers() {
        let join = |at: u32, status: &str| {
            format!(
                "[{at:5}.1] ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status {status}"
            )
        };
        let told = |status: &str, ats: &[u32], last: &str| {
            let mut lines: Vec<String> = ats.iter().map(|at| join(*at, status)).collect();
            lines.push(last.to_owned());
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            severity(Code::NoSubnetManager, &lines)
        };
        assert_eq!(told("-110", &[33, 37, 45, 61], ""), Some(Severity::Warning));
        // A fabric that starts answers late, and with errors of its own.
        assert_eq!(told("-110", &[33, 34, 36], ""), None);
        assert_eq!(told("-22", &[33, 37, 45, 61], ""), None);
        let ready = "[   80.0] IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        assert_eq!(told("-110", &[33, 37, 45, 61], ready), None);
    }

    #[test]
    fn a_dump_of_the_table_explains_joins_that_are_refused() {
        let join = "Oct 04 08:11:22 n3 kernel: ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22";
        let dark = "4: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 2044\n    link/infiniband 00:00 brd ff";
        let port = ca(0, "MT4126", 1, "Active", "LinkUp");
        let table = |pkey: &str| format!("/sys/class/infiniband/mlx5_0/ports/1/pkeys/0:{pkey}");
        let told = |pkey: &str| severity(Code::PkeyMissing, &[join, &port, &table(pkey), dark]);
        assert_eq!(told("0x7fff"), Some(Severity::Warning));
        assert_eq!(told("0x8012"), Some(Severity::Warning));
        assert_eq!(told("0xffff"), None);
        assert_eq!(severity(Code::PkeyMissing, &[join, &port, dark]), None);
    }

    #[test]
    fn a_dump_shows_no_carrier_at_an_active_port() {
        let port = |state: &str| {
            format!(
                "CA 'mlx5_0'\n\tCA type: MT4126\n\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: LinkUp\n\t\tPort GUID: 0x0200000c00010003\n\t\tLink layer: InfiniBand"
            )
        };
        let netdev = |flags: &str, guid: &str| {
            format!(
                "3: ib0: <{flags}BROADCAST,MULTICAST,UP> mtu 2044\n    link/infiniband 00:00:01:28:fe:80:00:00:00:00:00:00:{guid} brd 00:ff"
            )
        };
        let (own, other) = ("02:00:00:0c:00:01:00:03", "02:00:00:0c:00:01:00:04");
        for (state, flags, guid, told) in [
            ("Active", "NO-CARRIER,", own, true),
            ("Active", "LOWER_UP,", own, false),
            ("Active", "NO-CARRIER,", other, false),
            ("Initializing", "NO-CARRIER,", own, false),
        ] {
            let log = [port(state), netdev(flags, guid)];
            let log = log.each_ref().map(String::as_str);
            let want = told.then_some(Severity::Warning);
            assert_eq!(severity(Code::InterfaceNotOnline, &log), want, "{log:#?}");
            let is_healthy = severity(Code::Healthy, &log).is_some();
            assert_eq!(is_healthy, !told && state == "Active", "{log:#?}");
        }
        let brief = |guid: &str| {
            format!("ib0 DOWN 00:00:01:28:fe:80:00:00:00:00:00:00:{guid} <NO-CARRIER,MULTICAST,UP>")
        };
        let cut = "3: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 2044".to_owned();
        for (netdev, told) in [(brief(own), true), (brief(other), false), (cut, true)] {
            let log = [port("Active"), netdev];
            let want = told.then_some(Severity::Warning);
            assert_eq!(
                severity(Code::InterfaceNotOnline, &log.each_ref().map(String::as_str)),
                want,
                "{log:#?}"
            );
        }
    }

    #[test]
    fn joins_that_are_refused_to_the_last() {
        let join = |at: u32, netdev: &str, words: &str, status: &str| {
            format!(
                "Oct 04 08:11:{at} n3 kernel: {netdev}: {words}multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status {status}"
            )
        };
        let told = |netdev: &str, words: &str, status: &str, ats: &[u32], last: &str| {
            let mut lines: Vec<String> =
                ats.iter().map(|at| join(*at, netdev, words, status)).collect();
            lines.push(last.to_owned());
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            severity(Code::InterfaceNotOnline, &lines)
        };
        let ats = [13, 17, 25, 41];
        assert_eq!(told("ib0", "", "-22", &ats, ""), Some(Severity::Warning));
        assert_eq!(told("ib0", "", "-110", &ats, ""), None);
        // A group that nobody has created yet.
        assert_eq!(told("ib0", "sendonly ", "-22", &ats, ""), None);
        // A fabric that starts.
        assert_eq!(told("ib0", "", "-22", &[33, 34, 36], ""), None);
        let shown = "4: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 2044\n    link/infiniband 00:00 brd ff";
        assert_eq!(told("ib0", "", "-22", &[33], shown), Some(Severity::Warning));
        for (ready, want) in [("ib0", None), ("ib1", Some(Severity::Warning))] {
            let ready = format!(
                "Oct 04 08:11:50 n3 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): {ready}: link becomes ready"
            );
            assert_eq!(told("ib0", "", "-22", &ats, &ready), want);
        }
    }
}
