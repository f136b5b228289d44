//! From what the files say to [`Config`]; contradictions are found here, each
//! shown with both places, across files too.

use std::time::Duration;

use super::draft::Row;
use super::keys::{
    BOOT_DEADLINE, BOOT_HCA_DEADLINE, EXPECT_PORT, MODULES_LOAD, MODULES_SKIP, NETWORK_DEADLINE,
    WAIT_ADDRESS, WAIT_DEADLINE, WAIT_RUNG, port,
};
use super::merge::Merged;
use super::problem::{Place, Problem, Problems};
use super::timespan::TimeSpan;
use super::{Boot, Config, Expect, ExpectedPort, Modules, Network, PortSelector, WaitOnline, pf};
use crate::names::{ModuleName, PortNumber, Rung};

/// The configuration that `merged` stands for. What contradicts is noted in
/// `problems`; then the result is of no use.
pub(crate) fn build(merged: &Merged, problems: &mut Problems) -> Config {
    let defaults = Config::default();
    Config {
        boot: boot(merged, &defaults.boot, problems),
        modules: modules(merged, problems),
        expect: expect(merged, problems),
        guests: super::guest::guests(merged, problems),
        network: Network {
            deadline: merged
                .one::<Duration>(NETWORK_DEADLINE)
                .map_or(defaults.network.deadline, |(deadline, _)| deadline),
        },
        interfaces: super::interface::rules(merged, problems),
        wait_online: wait_online(merged, &defaults.wait_online),
        host_number: pf::host_number(merged, problems),
        pf: pf::pfs(merged, problems),
    }
}

fn boot(merged: &Merged, defaults: &Boot, problems: &mut Problems) -> Boot {
    let (deadline, deadline_at) =
        merged.one::<Duration>(BOOT_DEADLINE).unwrap_or((defaults.deadline, None));
    let (mut hca_deadline, hca_at) =
        merged.one::<Duration>(BOOT_HCA_DEADLINE).unwrap_or((defaults.hca_deadline, None));
    match hca_at {
        None => hca_deadline = hca_deadline.min(deadline),
        // Where a file could not be read well, the default may be no default.
        Some(_) if deadline_at.is_none() && !problems.is_empty() => {}
        Some(place) if hca_deadline > deadline && !merged.is_broken(BOOT_DEADLINE) => {
            let mut problem = Problem::new("boot.hca-deadline is longer than boot.deadline")
                .at(place, format!("one HCA may take {}", TimeSpan(hca_deadline)));
            let all = format!("all of it may take {}", TimeSpan(deadline));
            problem = match deadline_at {
                Some(place) => problem.at(place, all).help("make boot.deadline at least as long"),
                None => problem.help(format!("{all} (the default): set boot.deadline too")),
            };
            problems.push(problem);
        }
        Some(_) => {}
    }
    Boot { deadline, hca_deadline }
}

fn wait_online(merged: &Merged, defaults: &WaitOnline) -> WaitOnline {
    let deadline = merged.one::<Duration>(WAIT_DEADLINE).map(|(value, _)| value);
    let rung = merged.one::<Rung>(WAIT_RUNG).map(|(value, _)| value);
    let address = merged.one::<bool>(WAIT_ADDRESS).map(|(value, _)| value);
    WaitOnline {
        deadline: deadline.unwrap_or(defaults.deadline),
        rung: rung.unwrap_or(defaults.rung),
        address: address.unwrap_or(defaults.address),
    }
}

fn modules(merged: &Merged, problems: &mut Problems) -> Modules {
    let mut load: Vec<ModuleName> = Vec::new();
    let skipped = merged.list::<ModuleName>(MODULES_SKIP);
    for (name, place) in merged.list::<ModuleName>(MODULES_LOAD) {
        let skip = skipped.iter().find(|(skip, _)| *skip == name);
        match (skip, place) {
            (None, _) if !load.contains(&name) => load.push(name),
            (Some((_, Some(skip_at))), Some(place)) => problems.push(
                Problem::new(format!("module {name} is both to be loaded and to be skipped"))
                    .at(place, "loaded here")
                    .at(skip_at, "skipped here")
                    .help("take it out of one of the two lists"),
            ),
            // Skipping a module of the default list is what skip is for.
            (None | Some(_), _) => {}
        }
    }
    let mut skip: Vec<ModuleName> = Vec::new();
    for (name, _) in skipped {
        if !skip.contains(&name) {
            skip.push(name);
        }
    }
    Modules { load, skip }
}

fn expect(merged: &Merged, problems: &mut Problems) -> Expect {
    let mut ports: Vec<(ExpectedPort, &Row)> = Vec::new();
    for row in merged.tables(EXPECT_PORT) {
        let Some(port) = expected_port(row, problems) else { continue };
        match ports.iter().find(|(other, _)| same(other, &port)) {
            Some((_, other)) => problems.push(
                Problem::new("the same port is expected twice")
                    .at(&row.place, "here")
                    .at(&other.place, "and first here")
                    .help("keep one of the two; `expect.port = []` in a file between them drops what came before it"),
            ),
            None => ports.push((port, row)),
        }
    }
    match ports.is_empty() {
        true => Expect::Auto,
        false => Expect::List(ports.into_iter().map(|(port, _)| port).collect()),
    }
}

fn expected_port(row: &Row, problems: &mut Problems) -> Option<ExpectedPort> {
    if row.broken {
        return None;
    }
    let pci = row.field(port::PCI).map(|(name, at)| (PortSelector::Pci(name), at));
    let guid = row.field(port::PORT_GUID).map(|(name, at)| (PortSelector::PortGuid(name), at));
    let rdma = row.field(port::RDMA).map(|(name, at)| (PortSelector::Rdma(name), at));
    let ways: Vec<(PortSelector, &Place)> = [pci, guid, rdma].into_iter().flatten().collect();
    let number = row.field::<i64>(port::PORT);
    let (which, which_at) = match ways.as_slice() {
        [way] => way,
        [] => {
            problems.push(
                Problem::new("expect.port does not say which port")
                    .at(&row.place, "names no HCA and no port")
                    .help("give exactly one of pci, port-guid, rdma"),
            );
            return None;
        }
        several => {
            let start = Problem::new("expect.port names its port in more than one way")
                .help("keep exactly one of pci, port-guid, rdma");
            let several = several.iter().zip(["one way", "and another", "and a third"]);
            problems.push(several.fold(start, |p, ((_, at), label)| p.at(at, label)));
            return None;
        }
    };
    match (which, number) {
        (PortSelector::PortGuid(guid), _) if guid.is_zero() => {
            problems.push(
                Problem::new("bad value for port-guid")
                    .at(which_at, "an all-zero GUID is what a port without a GUID shows"),
            );
            return None;
        }
        (PortSelector::PortGuid(_), Some((_, at))) => {
            problems.push(
                Problem::new("port has no meaning beside port-guid")
                    .at(at, "which port of an HCA")
                    .at(which_at, "is one port already")
                    .help("leave port out"),
            );
            return None;
        }
        _ => {}
    }
    Some(ExpectedPort {
        which: which.clone(),
        port: number.and_then(|(number, _)| PortNumber::new(number).ok()),
        optional: row.field(port::OPTIONAL).is_some_and(|(optional, _)| optional),
        origin: row.place.to_string(),
    })
}

/// True if one port could be meant by both.
fn same(a: &ExpectedPort, b: &ExpectedPort) -> bool {
    a.which == b.which && (a.port.is_none() || b.port.is_none() || a.port == b.port)
}
