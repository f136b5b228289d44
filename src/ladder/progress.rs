//! How far each expected port has climbed.

use crate::config::AtLeast;
use crate::model::{Awaited, PortProgress};

use super::expect::{ExpectedVfs, is_meant};
use super::{Expectation, Expected};
use crate::names::{LinkLayer, NetnsMode, PortSelector, PortWait, Rung, keeps_for_others};
use crate::observe::{Observed, PciFunction, Port, RdmaDevice};

/// How far everything expected is. An HCA whose ports are not known gives one
/// entry, so nothing expected is ever without one.
pub fn progress(expectation: &Expectation, observed: &Observed) -> Vec<PortProgress> {
    let mut all: Vec<PortProgress> = Vec::new();
    let is_due = |e: &&Expected| expectation.is_whole || e.wait == PortWait::Boot;
    for expected in expectation.expected.iter().filter(is_due) {
        let goal = match expected.link_layer {
            LinkLayer::Ethernet => expectation.roce_goal,
            _ => expectation.goal,
        };
        for port in one(expected, goal, observed) {
            // The configuration may name one port in two ways, and what it says of a port
            // counts before what is found.
            let same = |p: &&mut PortProgress| {
                port.pci.is_some() && (p.pci, &p.rdma, p.port) == (port.pci, &port.rdma, port.port)
            };
            match all.iter_mut().find(same) {
                Some(seen) => seen.optional &= port.optional || !expected.named,
                None => all.push(port),
            }
        }
    }
    // What is not there and nothing names is missing all the same.
    if let Some(AtLeast { ports, origin }) = &expectation.at_least
        && let more @ 1.. = ports.saturating_sub(all.len())
    {
        let name = if more == 1 { "1 more port".to_owned() } else { format!("{more} more ports") };
        let why = format!("boot.at-least is {ports} ({origin})");
        let absent = PortProgress::absent(name, expectation.goal, why);
        all.push(PortProgress { of_number: Some(Awaited::Unnamed), ..absent });
    }
    let vfs = expectation.vfs.iter().filter(|_| expectation.is_whole);
    all.extend(vfs.filter_map(|vfs| missing_vfs(vfs, expectation.goal, observed)));
    all
}

/// The VFs that another program has not created yet, or that are not bound yet: a driver of a
/// fabric has bound one when its RDMA device is there, which in the exclusive mode another
/// network namespace can have.
fn missing_vfs(vfs: &ExpectedVfs, goal: Rung, observed: &Observed) -> Option<PortProgress> {
    let pf = observed.functions.iter().find(|function| is_meant(&vfs.pf, function));
    let is_away = observed.netns_mode == Some(NetnsMode::Exclusive);
    let is_bound =
        |vf: &PciFunction, driver: &str| keeps_for_others(driver) || !vf.rdma.is_empty() || is_away;
    let is_ready = |vf: &&PciFunction| {
        pf.is_some_and(|pf| vf.physfn == Some(pf.address))
            && vf.driver.as_ref().is_some_and(|driver| is_bound(vf, driver))
    };
    let ready = observed.functions.iter().filter(is_ready).count();
    let missing = vfs.count.checked_sub(ready).filter(|missing| *missing > 0)?;
    let name = format!("{missing} of {} VFs of {}", vfs.count, vfs.pf);
    let why = format!("vfs-expected in {}", vfs.origin);
    let absent = PortProgress::absent(name, goal, why);
    let of_number = Some(Awaited::Vfs(vfs.pf.to_string()));
    Some(PortProgress { optional: vfs.optional, of_number, ..absent })
}

/// Where as many ports are ready as have to be, the others are no failure.
pub fn excuse_beyond(at_least: Option<&AtLeast>, ports: &mut [PortProgress]) {
    let ready = ports.iter().filter(|port| port.is_ready() && !port.is_ethernet()).count();
    if at_least.is_some_and(|at_least| ready >= at_least.ports) {
        let excused = ports.iter_mut().filter(|port| !port.is_ready() && !port.is_no_port());
        excused.for_each(|port| port.optional = true);
    }
}

fn one(expected: &Expected, goal: Rung, observed: &Observed) -> Vec<PortProgress> {
    let (name, guid) = match &expected.which {
        PortSelector::PortGuid(guid) => (format!("port GUID {guid}"), Some(*guid)),
        other => (other.to_string(), None),
    };
    let nothing = PortProgress {
        guid,
        port: expected.port,
        optional: expected.optional,
        ..PortProgress::absent(name, goal, expected.why.clone())
    };
    let mut found: Vec<(&PciFunction, &RdmaDevice, &Port)> = observed
        .functions
        .iter()
        .flat_map(|f| f.ports().map(move |(d, p)| (f, d, p)))
        .filter(|(f, d, p)| {
            expected.port.is_none_or(|n| n == p.number)
                && !expected.except.contains(&p.number)
                && match &expected.which {
                    PortSelector::Pci(address) => f.address == *address,
                    PortSelector::PortGuid(guid) => p.guid == Some(*guid),
                    PortSelector::Rdma(name) => d.name == *name,
                }
        })
        .collect();
    // Of an HCA as a whole, those of its ports that are of its link layer are meant.
    let is_one = expected.port.is_some() || matches!(expected.which, PortSelector::PortGuid(_));
    let is_roce = expected.link_layer == LinkLayer::Ethernet;
    let all_ethernet = found.iter().all(|(_, _, p)| p.link_layer == LinkLayer::Ethernet);
    let must_be_infiniband = expected.named && !is_roce && (is_one || all_ethernet);
    let is_ethernet = |p: &Port| p.link_layer == LinkLayer::Ethernet;
    if is_roce && found.iter().any(|(_, _, p)| is_ethernet(p)) {
        found.retain(|(_, _, p)| is_ethernet(p));
    }
    let nothing = PortProgress { must_be_infiniband, must_be_ethernet: is_roce, ..nothing };
    if !found.is_empty() {
        return found.into_iter().map(|(f, d, p)| with_port(nothing.clone(), f, d, p)).collect();
    }
    let function = observed.functions.iter().find(|f| is_meant(&expected.which, f));
    vec![match function {
        Some(function) => without_port(nothing, function),
        None => nothing,
    }]
}

fn without_port(nothing: PortProgress, function: &PciFunction) -> PortProgress {
    let device = function.rdma.first();
    let reached = match (&function.driver, device) {
        (_, Some(_)) => Rung::Rdma,
        (Some(_), None) => Rung::Driver,
        (None, None) => Rung::Pci,
    };
    // An RDMA device whose ports cannot be read is not ready for anybody.
    let reached = if reached >= nothing.goal { Rung::Driver } else { reached };
    PortProgress {
        pci: Some(function.address),
        rdma: device.map(|d| d.name.clone()),
        reached: Some(reached),
        ..nothing
    }
}

fn with_port(
    nothing: PortProgress,
    function: &PciFunction,
    device: &RdmaDevice,
    port: &Port,
) -> PortProgress {
    let netdev =
        if nothing.must_be_ethernet { port.ethernet.as_ref() } else { port.netdev.as_ref() };
    let reached = match netdev {
        None => Rung::Rdma,
        Some(netdev) if netdev.named => Rung::Named,
        Some(_) => Rung::Netdev,
    };
    let nothing = PortProgress { link_layer: Some(port.link_layer), ..nothing };
    // As an RDMA device it is there, which may be all that is wanted.
    let is_other_type = nothing.is_of_other_type();
    let reached = match is_other_type {
        true if nothing.goal <= Rung::Rdma => Rung::Driver,
        true => Rung::Rdma,
        false => reached,
    };
    PortProgress {
        pci: Some(function.address),
        rdma: Some(device.name.clone()),
        port: Some(port.number),
        guid: port.guid,
        netdev: netdev.map(|n| n.name.clone()),
        named_usec: netdev.and_then(|n| n.named_usec),
        reached: Some(reached),
        ..nothing
    }
}
