//! The ports of VFs: GUIDs, link state.

use super::{Advice, Boot, Code, Confidence, Finding, Quote, Severity, row, seen};
use crate::check::evidence::fold::lines::last_word;
use crate::check::evidence::state::{NetdevSeen, PortSeen, VfSeen};
use crate::check::pattern::{caught_one, has_any};
use crate::names::IsVf;

pub(super) fn vf_guid_zero(boot: &Boot) -> Option<Finding> {
    let zero: Vec<_> = vfs(boot)
        .filter(|v| {
            v.node_guid.as_deref().is_some_and(is_zero)
                || v.port_guid.as_deref().is_some_and(is_zero)
        })
        .collect();
    let ports: Vec<_> = boot
        .state
        .ports
        .iter()
        .filter(|p| {
            // Those of a host are in its judgement. An Ethernet PF may show none either; a VF
            // without one cannot be used.
            p.role.is_none() && is_zero(&p.node_guid) && (p.infiniband == Some(true) || p.is_vf())
        })
        .collect();
    let sysfs = seen::answered(boot, |typed, answer| {
        typed.contains("cat") && has_any(typed, &["sriov/", "node_guid"]) && is_zero(answer)
    });
    let mut said = row::lines(boot, Code::VfGuidZero);
    said.retain(|e| has_any(&e.text, &["VF", "vf"]));
    let devices: Vec<_> = boot.state.devices.iter().filter(|d| is_zero(&d.node_guid)).collect();
    // ibdev2netdev finds the netdev by the GUID: two devices have one of a GUID that both have.
    let all = &boot.state.netdevs;
    let twins: Vec<_> = all
        .iter()
        .filter(|n| {
            let is_twin = |other: &&NetdevSeen| {
                other.name == n.name
                    && other.origin.source == n.origin.source
                    && other.port.as_ref().zip(n.port.as_ref()).is_some_and(|(a, b)| a.0 != b.0)
            };
            n.infiniband && all.iter().any(|other| is_twin(&other))
        })
        .collect();
    if devices.is_empty()
        && twins.is_empty()
        && zero.is_empty()
        && ports.is_empty()
        && said.is_empty()
        && sysfs.is_empty()
    {
        return None;
    }
    // The PF's record is 0 also where the GUID was written by sysfs; a VF that
    // is seen to work has one.
    let works =
        boot.state.ports.iter().any(|p| p.is_vf() && p.is_active() && !is_zero(&p.node_guid));
    let proved = !ports.is_empty()
        || !devices.is_empty()
        || !said.is_empty()
        || !dead_ports(boot).is_empty();
    let (severity, confidence) = match (works && ports.is_empty(), proved) {
        (true, _) => (Severity::Info, Confidence::Low),
        (false, true) => (Severity::Error, Confidence::High),
        (false, false) => (Severity::Error, Confidence::Medium),
    };
    let mut names = named(boot, &zero);
    if names.is_empty() {
        names.extend(ports.iter().map(|port| port.name()));
    }
    if names.is_empty() {
        names.extend(devices.iter().map(|device| device.name.clone()));
    }
    if names.is_empty() {
        names.extend(twins.iter().filter_map(|n| Some(n.port.as_ref()?.0.clone())));
    }
    if names.is_empty() {
        let netdevs = said.iter().filter_map(|e| caught_one(&e.text, "VF {} GUID is not valid"));
        names.extend(seen::each(netdevs.map(|netdev| last_word(netdev).to_owned())));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let which = match &names[..] {
        [] => "A VF has".to_owned(),
        [one] => format!("{one} has"),
        several => format!("{} have", seen::all_of("port", several)),
    };
    let is_vf = !zero.is_empty()
        || !said.is_empty()
        || ports.iter().any(|port| port.is_vf())
        || sysfs.iter().any(|quote| quote.text.contains("sriov/"));
    let mut advice = Vec::new();
    if is_vf {
        advice = repaired(
            boot,
            &zero,
            "ip link set {pf} vf {vf} node_guid GUID; ip link set {pf} vf {vf} port_guid GUID",
        );
        let rebind = "then rebind the VF, which reads its GUID when its driver is bound";
        advice.push(Advice::now(rebind));
    }
    let told = format!("{which} GUID zero.");
    Some(
        row::told(boot, Code::VfGuidZero, (severity, confidence), told, &names, said)
            .quoting(quote_vfs(boot, &zero))
            .quoting(ports.iter().take(12).map(|port| {
                let told = format!("{}: node GUID {}", port.name(), port.node_guid);
                boot.quote_at(port.origin, &told)
            }))
            .quoting(sysfs)
            .quoting(twins.iter().map(|n| boot.quote_at(n.origin, &n.text)))
            .quoting(devices.iter().map(|d| boot.quote_at(d.origin, &d.text)))
            .advise(advice),
    )
}

/// Each of `all` with the first behind it that is its twin.
fn twins<'a, T>(all: &[&'a T], are_twins: impl Fn(&T, &T) -> bool) -> Vec<&'a T> {
    let twin = |(at, one): (usize, &&'a T)| {
        let other = all.iter().skip(at + 1).find(|other| are_twins(one, other))?;
        Some([*one, *other])
    };
    all.iter().enumerate().filter_map(twin).flatten().collect()
}

pub(super) fn vf_guid_duplicate(boot: &Boot) -> Option<Finding> {
    let said = row::lines(boot, Code::VfGuidDuplicate);
    let has_guid = |guid: &str| !guid.is_empty() && !is_zero(guid);
    let all: Vec<_> = vfs(boot).collect();
    // The same VF may be shown twice, in two dumps.
    let twice = twins(&all, |a, b| {
        let is_same = a.index != b.index && a.port_guid == b.port_guid;
        is_same && a.port_guid.as_deref().is_some_and(has_guid)
    });
    // Those of a host are in its judgement.
    let shown: Vec<&PortSeen> = boot.state.ports.iter().filter(|p| p.role.is_none()).collect();
    let ports = twins(&shown, |a, b| {
        let is_same = a.device != b.device && a.guid == b.guid && has_guid(&a.guid);
        // Two dumps of one host after a rename are no duplicate.
        let is_renamed = a.node_guid == b.node_guid && !a.node_guid.is_empty();
        is_same && a.may_be_infiniband() && !is_renamed
    });
    if said.is_empty() && twice.is_empty() && ports.is_empty() {
        return None;
    }
    let mut names = named(boot, &twice);
    names.extend(ports.iter().map(|port| port.name()).filter(|_| twice.is_empty()));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let guid = twice.first().and_then(|vf| vf.port_guid.as_deref());
    let guid = guid.or_else(|| ports.first().map(|port| port.guid.as_str()));
    let told = match (&names[..], guid) {
        ([_, _, ..], Some(guid)) => {
            format!("{} have the same port GUID, {guid}.", seen::all_of("port", &names))
        }
        _ => "Two ports have the same GUID.".to_owned(),
    };
    // Only where one of them is not of this host the fabric has to be asked.
    let mad_port = ports.first().map(|port| port.mad_port()).unwrap_or_default();
    let ask = format!("find the other port of the fabric: saquery {mad_port} -N | grep GUID");
    let judged = (Severity::Error, Confidence::High);
    Some(
        row::told(boot, Code::VfGuidDuplicate, judged, told, &names, said)
            .quoting(quote_vfs(boot, &twice))
            .quoting(quote_ports(boot, &ports))
            .look((names.len() < 2).then_some(ask)),
    )
}

pub(super) fn vf_policy_down(boot: &Boot) -> Option<Finding> {
    let down: Vec<_> =
        vfs(boot).filter(|v| v.link_state == "disable" && v.node_guid.is_some()).collect();
    let sysfs = seen::answered(boot, |typed, answer| {
        typed.contains("policy") && typed.contains("cat") && answer == "Down"
    });
    if down.is_empty() && sysfs.is_empty() {
        return None;
    }
    let dead = dead_ports(boot);
    let confidence = if dead.is_empty() { Confidence::Medium } else { Confidence::High };
    let names = named(boot, &down);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let told = match &names[..] {
        [] => "The link policy of a VF is Down, so that its port stays Down.".to_owned(),
        [one] => format!("The link policy of {one} is Down, so that its port stays Down."),
        several => format!(
            "The link policies of {} are Down, so that their ports stay Down.",
            seen::all_of("VF", several)
        ),
    };
    let judged = (Severity::Error, confidence);
    Some(
        row::told(boot, Code::VfPolicyDown, judged, told, &names, [])
            .quoting(quote_vfs(boot, &down))
            .quoting(sysfs)
            .quoting(quote_ports(boot, &dead))
            .advise(repaired(boot, &down, "ip link set {pf} vf {vf} state auto")),
    )
}

// What the dumps show of VFs that are down while their PF works: three rules draw different
// conclusions from it.

/// VF ports that are not active beside a PF that is. Of one that was passed through to this
/// machine the PF is not seen.
pub(super) fn dead_ports(boot: &Boot) -> Vec<&PortSeen> {
    let ports = &boot.state.ports;
    let active = || ports.iter().filter(|p| p.is_active() && p.is_of_pf());
    let pf_works = |port: &PortSeen| match port.vf {
        IsVf::OfThisHost(pf) => active().any(|p| p.function == Some(pf)),
        IsVf::OfUnknownPf => port.physical == "linkup" || active().next().is_some(),
        IsVf::PassedThrough | IsVf::No => false,
    };
    let is_dead = |p: &&PortSeen| {
        p.may_be_infiniband() && matches!(p.state.as_str(), "down" | "init" | "initializing")
    };
    ports.iter().filter(is_dead).filter(|port| pf_works(port)).collect()
}

/// VFs as the PF's netdev shows them in logs and dumps: those of a host are in its judgement.
pub(super) fn vfs(boot: &Boot) -> impl Iterator<Item = &VfSeen> {
    boot.state.netdevs.iter().flat_map(|n| &n.vfs)
}

/// The netdev of the PF of `vf`.
fn pf_of<'a>(boot: &'a Boot, vf: &VfSeen) -> &'a str {
    let netdevs = &boot.state.netdevs;
    let of = netdevs.iter().find(|n| n.vfs.iter().any(|known| std::ptr::eq(known, vf)));
    of.map_or("PF_NETDEV", |netdev| &netdev.name)
}

/// `vfs` by their PF and number, each once.
fn named(boot: &Boot, vfs: &[&VfSeen]) -> Vec<String> {
    seen::each(vfs.iter().map(|vf| format!("VF {} of {}", vf.index, pf_of(boot, vf))))
}

/// What repairs `vfs`: `command` for each, in which `{pf}` and `{vf}` stand for the netdev and
/// the number.
fn repaired(boot: &Boot, vfs: &[&VfSeen], command: &str) -> Vec<Advice> {
    /// More are all alike.
    const ENOUGH: usize = 4;
    let of = |pf: &str, vf: &str| Advice::now(command.replace("{pf}", pf).replace("{vf}", vf));
    let mut steps = seen::each(vfs.iter().map(|vf| of(pf_of(boot, vf), &vf.index)));
    steps.truncate(ENOUGH);
    if steps.is_empty() {
        steps.push(of("PF_NETDEV", "N"));
    }
    steps
}

/// True if a GUID is nothing but zeros.
pub(super) fn is_zero(guid: &str) -> bool {
    let digits = guid.trim_start_matches("0x").chars().filter(char::is_ascii_hexdigit);
    digits.clone().count() >= 8 && digits.into_iter().all(|c| c == '0')
}

/// Lines to quote for VFs.
fn quote_vfs<'a>(boot: &'a Boot, vfs: &'a [&'a VfSeen]) -> impl Iterator<Item = Quote> + 'a {
    vfs.iter().take(12).map(|v| boot.quote_at(v.origin, &v.text))
}

/// Lines to quote for ports.
pub(super) fn quote_ports<'a>(
    boot: &'a Boot,
    ports: &'a [&'a PortSeen],
) -> impl Iterator<Item = Quote> + 'a {
    ports.iter().take(12).map(|p| boot.quote_at(p.origin, &p.told()))
}
