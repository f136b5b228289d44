//! From what the files say to [`Config`]; contradictions are found here, each
//! shown with both places, across files too.

use super::keys::{
    BOOT_ADAPTER_TIMEOUT, BOOT_AT_LEAST, BOOT_IGNORE, BOOT_PORTS, BOOT_TIMEOUT, FIRMWARE, GUEST,
    GUESTS_CONNECTION, HEALTH_FAIL_ON, HEALTH_TOLERATE, METRICS_FILE, MODULES_EXCLUDE,
    MODULES_LOAD, NETWORK_TIMEOUT, RDMA_NETNS, RXE, WAIT_ADDRESS, WAIT_STABLE, WAIT_STATE,
    WAIT_TIMEOUT,
};
use super::merge::Merged;
use super::problem::{Place, Problem, Problems};
use super::timespan::TimeSpan;
use super::{
    AtLeast, Boot, Config, Health, Ignored, Modules, Network, PortRow, WaitOnline, pf, pf_guids,
};
use crate::model::Code;
use crate::names::{ModuleName, PortChoice, PortSelector, is_kernel_ipoib_name};

/// The configuration that `merged` stands for. What contradicts is noted in
/// `problems`; then the result is of no use, until that is left out.
pub(crate) fn build(merged: &Merged, problems: &mut Problems) -> Config {
    let withheld = merged.withheld();
    let boot = boot(merged, problems);
    let mut modules = modules(merged, problems);
    let mut interfaces = super::interface::rules(merged, problems);
    let mut rxe = super::rxe::rows(merged, &interfaces, problems);
    if withheld.has_all(RXE) {
        rxe.clear();
    }
    let first = merged.tables(RXE).next().map(|row| &row.place);
    super::rxe::need_module(&rxe, &mut modules, first, problems);
    let mut pfs = pf::pfs(merged, problems);
    pf_guids::judge(&pfs, merged, problems);
    let mut firmware = super::firmware::cards(merged, &pfs, problems);
    let mut ports = super::ports::rows(merged, &rxe, &pfs, problems);
    let mut guests = super::guest::guests(merged, &pfs, problems);
    let mut subnet_managers = super::subnet_manager::entries(merged, problems);
    if withheld.has_all_interfaces() {
        interfaces.clear();
    }
    if withheld.has_all(FIRMWARE) {
        firmware.clear();
    }
    for (port, _) in ports.iter_mut().filter(|_| withheld.has_all_ports()) {
        port.withhold();
    }
    for placed in pfs.iter_mut().filter(|_| withheld.has_all_pfs()) {
        placed.pf.is_withheld = true;
    }
    for entry in subnet_managers.iter_mut().filter(|_| withheld.has_all_subnet_managers()) {
        entry.is_withheld = true;
    }
    for guest in &mut guests.list {
        // Without its plan nobody knows what is right of a VF.
        guest.is_withheld |= withheld.has_all(GUEST)
            || merged.is_lost(&GUESTS_CONNECTION)
            || withheld.has_all_pfs() && guest.vfs.are_any();
    }
    ignored_and_described(merged, &ports, problems);
    Config {
        boot,
        modules,
        ports: ports.into_iter().map(|(port, _)| port).collect(),
        guests,
        network: Network { timeout: merged.set(NETWORK_TIMEOUT).0 },
        interfaces,
        rxe,
        firmware,
        subnet_managers,
        wait_online: wait_online(merged, problems),
        host_number: pf::host_number(merged, problems),
        netns_mode: merged.value(RDMA_NETNS).filter(|_| !merged.lacks_file),
        metrics_file: merged.value(METRICS_FILE).map(Into::into),
        health: health(merged, problems),
        pf: pfs.into_iter().map(|placed| placed.pf).collect(),
        withheld,
    }
}

fn boot(merged: &Merged, problems: &mut Problems) -> Boot {
    let (timeout, timeout_at) = merged.set(BOOT_TIMEOUT);
    let (mut adapter_timeout, adapter_at) = merged.set(BOOT_ADAPTER_TIMEOUT);
    match adapter_at {
        None => adapter_timeout = adapter_timeout.min(timeout),
        // Where a file could not be read well, the default may be no default.
        Some(_) if timeout_at.is_none() && !problems.is_empty() => {}
        Some(place) if adapter_timeout > timeout && !merged.is_broken(&BOOT_TIMEOUT) => {
            let mut problem = Problem::new("boot.adapter-timeout is longer than boot.timeout")
                .at(place, format!("one adapter may take {}", TimeSpan(adapter_timeout)));
            let all = format!("the boot may take {}", TimeSpan(timeout));
            problem = match timeout_at {
                Some(place) => problem.at(place, all).help("set boot.timeout to at least as much"),
                None => problem.help(format!("{all} (the default): set boot.timeout too")),
            };
            problems.push(problem);
        }
        Some(_) => {}
    }
    let mut ignore: Vec<Ignored> = Vec::new();
    for (which, place) in merged.list(BOOT_IGNORE) {
        if !ignore.iter().any(|other| other.which == which) {
            let origin = place.map(Place::to_string).unwrap_or_default();
            ignore.push(Ignored { which, origin });
        }
    }
    let at_least = merged.one(BOOT_AT_LEAST).and_then(|(ports, at)| {
        let origin = at.map(Place::to_string).unwrap_or_default();
        Some(AtLeast { ports: usize::try_from(ports).ok()?, origin })
    });
    // What is not known may have taken away any port that is only found.
    let ports = if merged.is_lost(&BOOT_PORTS) || merged.is_lost(&BOOT_IGNORE) {
        PortChoice::Listed
    } else {
        merged.set(BOOT_PORTS).0
    };
    Boot { timeout, adapter_timeout, ports, ignore, at_least }
}

/// What is ignored is no netdev, and is not described as a whole in a `[[port]]`: that makes it
/// expected.
fn ignored_and_described(merged: &Merged, ports: &[(PortRow, Place)], problems: &mut Problems) {
    for (which, at) in merged.list(BOOT_IGNORE) {
        let Some(at) = at else { continue };
        let is_whole = |(port, _): &&(PortRow, Place)| port.which == which && port.port.is_none();
        if let Some((_, described)) = ports.iter().find(is_whole) {
            Problem::new(format!("{which} is in boot.ignore and in a [[port]]"))
                    .at(at, "not expected")
                    .at(described, "expected, because it is described")
                    .help("remove one of the two; for a port that may be dark: `required = false` in its [[port]]").add_to(problems);
        }
        if let PortSelector::Rdma(name) = &which
            // ib_ipoib calls netdevs so, and no driver an RDMA device.
            && is_kernel_ipoib_name(name.as_str())
        {
            Problem::new(format!("boot.ignore names {name}, which is the name of a netdev"))
                    .at(at, "no adapter and no port is known by it")
                    .help("name the PCI address, the port GUID or the RDMA device (mlx5_0): `ibprov status` shows them").add_to(problems);
        }
    }
}

fn wait_online(merged: &Merged, problems: &mut Problems) -> WaitOnline {
    let timeout = merged.set(WAIT_TIMEOUT).0;
    let stable = merged.one(WAIT_STABLE);
    if let Some((span, Some(at))) = stable
        && span >= timeout
    {
        Problem::new("wait-online.stable is not shorter than wait-online.timeout")
            .at(at, format!("no port can be online for so long within {}", TimeSpan(timeout)))
            .help("set wait-online.timeout to more than that")
            .add_to(problems);
    }
    WaitOnline {
        timeout,
        stable: stable.map(|(span, _)| span).unwrap_or_default(),
        state: merged.set(WAIT_STATE).0,
        address: merged.set(WAIT_ADDRESS).0,
    }
}

fn health(merged: &Merged, problems: &mut Problems) -> Health {
    let (tolerate, fail_on) = (merged.list(HEALTH_TOLERATE), merged.list(HEALTH_FAIL_ON));
    for (code, at) in &tolerate {
        let twice = fail_on.iter().find(|(other, _)| other == code);
        if let (Some(at), Some((_, Some(other)))) = (at, twice) {
            Problem::new(format!("{code} is in health.tolerate and in health.fail-on"))
                .at(at, "no node fails by it")
                .at(other, "a node fails by it")
                .help("remove one of the two")
                .add_to(problems);
        }
    }
    let codes = |list: Vec<(Code, _)>| list.into_iter().map(|(code, _)| code).collect();
    Health { tolerate: codes(tolerate), fail_on: codes(fail_on) }
}

fn modules(merged: &Merged, problems: &mut Problems) -> Modules {
    let mut load: Vec<ModuleName> = Vec::new();
    let excludes_unknown = merged.is_lost(&MODULES_EXCLUDE);
    let excluded = merged.list(MODULES_EXCLUDE);
    for (name, place) in merged.list(MODULES_LOAD) {
        let exclude = excluded.iter().find(|(other, _)| *other == name);
        match (exclude, place) {
            // What is not known may be a module of the default list.
            (None, None) if excludes_unknown => {}
            (None, _) if !load.contains(&name) => load.push(name),
            (Some((_, Some(exclude_at))), Some(place)) => {
                Problem::new(format!("module {name} is in modules.load and in modules.exclude"))
                    .at(place, "to be loaded here")
                    .at(exclude_at, "excluded here")
                    .help("remove it from one of the two lists")
                    .add_to(problems);
            }
            // To exclude a module of the default list is what the list is for.
            (None | Some(_), _) => {}
        }
    }
    let mut exclude: Vec<ModuleName> = Vec::new();
    for (name, _) in excluded {
        if !exclude.contains(&name) {
            exclude.push(name);
        }
    }
    Modules { load, exclude, excludes_unknown }
}
