//! Whether the devices of other adapters are still to come. The kernel gives each new device
//! the lowest number that is free, and a VF has such numbers even if the configuration names
//! it: until it is renamed. So VFs for a driver of this host are bound once no device may come
//! that would take one of their numbers, or keep another because a VF has its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use tracing::{info, warn};

use super::rdma_names::RdmaNames;
use crate::apply::pfs::{self, Plans};
use crate::config::Config;
use crate::host::events::Events;
use crate::host::{Root, clock, kernel_log, state};
use crate::ladder::{KernelLogFacts, UdevHistory, cause, expect, progress};
use crate::model::{PortProgress, Unresolved, WantedPf};
use crate::names::{BindOrder, ModuleName, ModuleState, Moment, PciAddress, Rung};
use crate::observe::{ModprobeRules, Observer, PciFunction, driver_modules, last_report};
use crate::workers::products::Products;

/// The PFs of the configuration that are not there as their plans need them, and may still come:
/// none whose own port is not ready and not `awaited` any more, as after a probe that has failed.
pub(super) fn missing<'a>(
    unresolved: &'a [Unresolved],
    ports: &[PortProgress],
    awaited: impl Fn(PciAddress) -> bool,
) -> impl Iterator<Item = &'a Unresolved> {
    let is_given_up = move |pci: PciAddress| {
        let mut own = ports.iter().filter(|port| port.pci == Some(pci));
        own.any(|port| !port.is_ready()) && !awaited(pci)
    };
    unresolved.iter().filter(move |pf| pf.may_pass() && !pf.pci.is_some_and(&is_given_up))
}

/// Wait, as a boot does, until the devices of no adapter but that of `own` may come any more, and
/// then until the PFs are through whose VFs are numbered before its own, each at most `limit`:
/// after a reload of the drivers the PFs come one after the other, too, and udev has the plan of
/// each applied as it comes.
///
/// # Errors
/// Nothing could be waited for at all, or a signal came.
pub fn wait(own: &WantedPf, config: &Config, root: &Root, limit: Duration) -> anyhow::Result<()> {
    let pf = own.pf;
    let [adapters_by, turn_by] = [1, 2].map(|n| clock::now() + limit.saturating_mul(n));
    let rules = ModprobeRules::read(root);
    let observer = Observer::new(root);
    let mut products = Products::new(root).with_overrides();
    let (mut facts, mut heard) = (KernelLogFacts::default(), UdevHistory::default());
    let mut rdma_names = RdmaNames::default();
    let outcomes = state::outcomes_dir(state::PFS);
    if let Err(e) = &outcomes {
        warn!(cause = e.answer, "cannot watch {e}");
    }
    let watched: Vec<&Path> = outcomes.iter().map(PathBuf::as_path).collect();
    let mut events = Events::open(&watched)?;
    heard.read_history(&mut facts, kernel_log);
    let ipoib: Option<ModuleName> = "ib_ipoib".parse().ok();
    let modules: Vec<ModuleName> = driver_modules().into_iter().chain(ipoib.clone()).collect();
    let mut waits_for = Vec::new();
    loop {
        let mut observed = observer.look(&modules, &heard.devices);
        products.read_all(&mut observed);
        rdma_names.learn(&observed, waits_for.is_empty());
        let mut expectation = expect::expectation(config, &observed, &rules, None).of_boot();
        // Nothing more of a port has a number, and without ib_ipoib no netdev comes.
        let state = ipoib.as_ref().and_then(|module| observed.modules.get(module));
        let has_ipoib = state.is_some_and(|state| *state != ModuleState::Absent);
        let goal = if has_ipoib { Rung::Named } else { Rung::Rdma };
        expectation.goal = expectation.goal.min(goal);
        let mut ports = progress::progress(&expectation, &observed);
        let now = clock::now();
        let held = rdma_names.hold(&mut ports, &observed, now);
        let may_come = |port: &&PortProgress| {
            let is_final = || cause::cause(port, &observed, &facts).is_some_and(|c| c.is_final);
            !port.is_ready() && !is_final()
        };
        let awaited: BTreeSet<PciAddress> =
            ports.iter().filter(may_come).filter_map(|port| port.pci).collect();
        let Plans { wanted, unresolved } = pfs::resolve(config, root, &observed);
        let unseen = missing(&unresolved, &ports, |pf| awaited.contains(&pf));
        let others = awaited.iter().filter(|p| **p != pf).map(ToString::to_string);
        let adapters: Vec<String> = others.chain(unseen.map(|pf| pf.which.clone())).collect();
        let is_awaited = |other: &PciFunction| {
            let has_turn =
                |(wanted, _): &(WantedPf, _)| wanted.pf == other.address && is_before(wanted, own);
            other.driver.is_some()
                && wanted.iter().any(has_turn)
                && !is_through(other.address, came(other), root)
        };
        let before = observed.functions.iter().filter(|other| is_awaited(other));
        let before: Vec<String> = before.map(|pf| format!("the VFs of {}", pf.address)).collect();
        let (others, until) = if !adapters.is_empty() && now < adapters_by {
            (adapters, adapters_by)
        } else if !before.is_empty() && now < turn_by {
            (before, turn_by)
        } else {
            let late = [adapters, before].concat();
            if !late.is_empty() {
                warn!(
                    %pf,
                    "PF {pf}: binding its VFs without waiting any longer for {}: the kernel's numbers (mlx5_0, ib0) of VFs and of what appears later may differ from those of the last boot",
                    late.join(", ")
                );
            }
            return Ok(());
        };
        if waits_for != others {
            info!(%pf, "PF {pf}: waiting for {} before its VFs are bound", others.join(", "));
            waits_for = others;
        }
        let happened = events.wait(held.map_or(until, |held| held.min(until)))?;
        heard.learn(&happened, &mut facts);
        anyhow::ensure!(
            !happened.stop,
            "stopped by a signal while waiting for {}",
            waits_for.join(", ")
        );
    }
}

/// The VFs of `own`, if they are bound in order, have the kernel's numbers after those of
/// `other`: after those of each PF with a lower address, and of each whose VFs lose such numbers
/// again, because they get names.
fn is_before(other: &WantedPf, own: &WantedPf) -> bool {
    let is_first = other.binding.order == BindOrder::Parallel || other.pf < own.pf;
    own.binding.order == BindOrder::InOrder && other.pf != own.pf && is_first
}

/// When udev had finished with the netdevs of `pf`.
fn came(pf: &PciFunction) -> Moment {
    let ports = pf.rdma.iter().flat_map(|device| &device.ports);
    ports.filter_map(|port| port.netdev.as_ref()?.named_usec).max().unwrap_or_default()
}

/// True if the plan of `pf` has been applied since then, whatever has become of it.
fn is_through(pf: PciAddress, came: Moment, root: &Root) -> bool {
    #[derive(Deserialize)]
    struct Applied {
        finished_usec: Moment,
    }
    let applied: Option<Applied> = last_report(root, &format!("{}/{pf}.json", state::PFS));
    applied.is_some_and(|applied| applied.finished_usec > came)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::common::{Code, Finding};
    use crate::names::at;

    #[test]
    fn vfs_that_are_bound_in_order_come_after_those_with_a_lower_number_and_with_names() {
        use crate::names::{BindReason, Binding};
        let pf = |n: u8, order: BindOrder| WantedPf {
            pf: format!("0001:0{n}:00.0").parse().expect("an address"),
            vfs: Vec::new(),
            binding: Binding { order, why: BindReason::Configured },
        };
        use BindOrder::{InOrder, Parallel};
        for (other, own, expected) in [
            (pf(1, InOrder), pf(2, InOrder), true),
            (pf(3, InOrder), pf(2, InOrder), false),
            (pf(2, InOrder), pf(2, InOrder), false),
            (pf(3, Parallel), pf(2, InOrder), true),
            (pf(1, InOrder), pf(2, Parallel), false),
        ] {
            assert_eq!(is_before(&other, &own), expected, "{other:?} before {own:?}");
        }
    }

    #[test]
    fn a_plan_that_was_applied_before_the_netdevs_came_has_its_turn_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = Root::copy_at(dir.path()).expect("a tree");
        let pf: PciAddress = "0001:01:00.0".parse().expect("an address");
        assert!(!is_through(pf, Moment::START, &root), "nothing was applied");
        std::fs::create_dir_all(dir.path().join("run/ibprov/pf")).expect("a folder");
        let report = dir.path().join("run/ibprov/pf/0001:01:00.0.json");
        std::fs::write(&report, "{\"schema\":1,\"exit_code\":0,\"finished_usec\":7}")
            .expect("written");
        assert!(is_through(pf, at(6), &root) && !is_through(pf, at(7), &root));
        std::fs::write(&report, "{\"schema\":1,").expect("written");
        assert!(!is_through(pf, Moment::START, &root), "cut off");
    }

    #[test]
    fn a_pf_whose_port_is_given_up_is_not_missing() {
        let pf: PciAddress = "0001:01:00.0".parse().expect("an address");
        let unresolved = |pci: Option<PciAddress>| Unresolved {
            which: "0001:01:00.0".to_owned(),
            origin: String::new(),
            pci,
            errors: Vec::new(),
        };
        let port = |reached: Rung| {
            let mut port = PortProgress::absent(String::new(), Rung::Named, String::new());
            (port.pci, port.reached) = (Some(pf), Some(reached));
            port
        };
        let is_missing = |one: &Unresolved, ports: &[PortProgress], is_awaited: bool| {
            missing(std::slice::from_ref(one), ports, |_| is_awaited).next().is_some()
        };
        let one = unresolved(Some(pf));
        assert!(is_missing(&one, &[port(Rung::Pci)], true));
        assert!(!is_missing(&one, &[port(Rung::Pci)], false), "its probe has failed");
        assert!(is_missing(&one, &[port(Rung::Named)], false), "its port is ready");
        assert!(is_missing(&one, &[], false) && is_missing(&unresolved(None), &[], false));
        let errors = vec![Finding::error(Code::PfNoHca, "no HCA")];
        assert!(!is_missing(&Unresolved { errors, ..one }, &[], false));
    }
}
