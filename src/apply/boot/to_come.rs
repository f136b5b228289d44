//! Whether the devices of other adapters are still to come. The kernel gives each new device
//! the lowest number that is free, and a VF has such numbers even if the configuration names
//! it: until it is renamed. So VFs for a driver of this host are bound once no device may come
//! that would take one of their numbers, or keep another because a VF has its own.

use std::collections::BTreeSet;

use tracing::{info, warn};

use super::rdma_names::RdmaNames;
use crate::apply::pfs;
use crate::config::Config;
use crate::host::events::Events;
use crate::host::{Root, clock, kernel_log};
use crate::ladder::{Facts, Heard, cause, expect, progress};
use crate::names::{ModuleName, ModuleState, PciAddress, Rung, present};
use crate::observe::{ModprobeRules, Observer, driver_modules};
use crate::report::PortProgress;
use crate::report::pf::Unresolved;
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
    unresolved.iter().filter(move |pf| pf.may_pass && !pf.pci.is_some_and(&is_given_up))
}

/// Whether the devices of an adapter other than `pf` may still come: of one with a port that
/// is `awaited` and not ready, whether it has a plan or not, or, with `comes_unseen`, of a PF
/// of the configuration that is not seen.
pub(super) fn comes_another(
    pf: PciAddress,
    ports: &[PortProgress],
    awaited: impl Fn(PciAddress) -> bool,
    comes_unseen: bool,
) -> bool {
    let is_other =
        |port: &PortProgress| !port.is_ready() && port.pci.is_some_and(|p| p != pf && awaited(p));
    comes_unseen || ports.iter().any(is_other)
}

/// Wait as a boot does, until the devices of no adapter other than `pf` may come any more, or
/// until `deadline`: after a reload of the drivers the PFs come one after the other, too, and
/// udev has the plan of each applied as it comes.
///
/// # Errors
/// Nothing could be waited for at all, or a signal came.
pub fn wait(pf: PciAddress, config: &Config, root: &Root, deadline: u64) -> anyhow::Result<()> {
    let rules = ModprobeRules::read(root);
    let observer = Observer::new(root);
    let mut products = Products::new(root).with_overrides();
    let (mut facts, mut heard) = (Facts::default(), Heard::default());
    let mut rdma_names = RdmaNames::default();
    let mut events = Events::open(&[])?;
    heard.learn_history(&mut facts, kernel_log);
    let ipoib: Option<ModuleName> = "ib_ipoib".parse().ok();
    let modules: Vec<ModuleName> = driver_modules().into_iter().chain(ipoib.clone()).collect();
    let mut waits = false;
    loop {
        let mut observed = observer.look(&modules, heard.devices());
        products.learn_all(&mut observed);
        rdma_names.learn(&observed, !waits);
        let mut expectation = expect::expectation(config, &observed, &rules);
        // Nothing more of a port has a number, and without ib_ipoib no netdev comes.
        let state = ipoib.as_ref().and_then(|module| observed.modules.get(module));
        let has_ipoib = state.is_some_and(|state| *state != ModuleState::Absent);
        let goal = if has_ipoib { Rung::Named } else { Rung::Rdma };
        expectation.goal = expectation.goal.min(goal);
        let mut ports = progress::progress(&expectation, &observed);
        let now = clock::monotonic_usec();
        let held = rdma_names.hold(&mut ports, &observed, now);
        let may_come = |port: &&PortProgress| {
            let is_final = || cause::cause(port, &observed, &facts).is_some_and(|c| c.is_final);
            !port.is_ready() && !is_final()
        };
        let awaited: BTreeSet<PciAddress> =
            ports.iter().filter(may_come).filter_map(|port| port.pci).collect();
        let unresolved = pfs::resolve(config, root, &observed).unresolved;
        let awaits = |pf| awaited.contains(&pf);
        let unseen: Vec<&Unresolved> = missing(&unresolved, &ports, awaits).collect();
        if !comes_another(pf, &ports, awaits, !unseen.is_empty()) {
            return Ok(());
        }
        let others = awaited.iter().filter(|p| **p != pf).map(ToString::to_string);
        let others = present(others.chain(unseen.into_iter().map(|pf| pf.which.clone())));
        if now >= deadline {
            warn!(
                %pf,
                "PF {pf}: binding its VFs, although {others} has not appeared before the deadline: the kernel's numbers (mlx5_0, ib0) of VFs and of what appears later may differ from those of the last boot"
            );
            return Ok(());
        }
        if !waits {
            waits = true;
            info!(%pf, "PF {pf}: waiting for {others} before its VFs are bound");
        }
        let happened = events.wait(held.map_or(deadline, |held| held.min(deadline)))?;
        heard.learn(&happened, &mut facts);
        anyhow::ensure!(!happened.stop, "stopped by a signal while waiting for {others}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_adapters_port_that_is_not_ready_and_awaited_may_come() {
        let [own, other] = ["0001:01:00.0", "0001:02:00.0"]
            .map(|address| address.parse::<PciAddress>().expect("an address"));
        let comes = |pci: PciAddress, reached: Rung, is_awaited: bool| {
            let mut port = PortProgress::absent(String::new(), Rung::Named, String::new());
            (port.pci, port.reached) = (Some(pci), Some(reached));
            comes_another(own, &[port], |_| is_awaited, false)
        };
        assert!(comes(other, Rung::Netdev, true));
        assert!(!comes(other, Rung::Netdev, false), "it is given up");
        assert!(!comes(other, Rung::Named, true), "a step that is not its own is awaited");
        assert!(!comes(own, Rung::Driver, true), "the PF's own");
        assert!(comes_another(own, &[], |_| false, true), "a PF that is not seen");
    }

    #[test]
    fn a_pf_whose_port_is_given_up_is_not_missing() {
        let pf: PciAddress = "0001:01:00.0".parse().expect("an address");
        let unresolved = |pci: Option<PciAddress>| Unresolved {
            which: "0001:01:00.0".to_owned(),
            origin: String::new(),
            pci,
            errors: Vec::new(),
            may_pass: true,
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
        assert!(!is_missing(&Unresolved { may_pass: false, ..one }, &[], false));
    }
}
