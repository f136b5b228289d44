//! The GUID plan of all PFs: which of the configuration is which on this host,
//! and one child `ibprov apply PF` for each.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::machine::{Child, Live, Machine};
use crate::config::Config;
use crate::host::events::Events;
use crate::host::{Root, answer, clock, live_line};
use crate::model::{Unresolved, WantedPf, pf::Outcome};
use crate::names::{BindOrder, ModuleName, Moment, PciAddress, VfNamePattern};
use crate::observe::{Look, Observed, Observer, Port, plan_host};
use crate::plan::guid::{self, Resolved};
use crate::workers::products::Products;

/// The plan on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plans {
    /// PFs with what their VFs shall be, and what to know of it.
    pub wanted: Vec<(WantedPf, Vec<String>)>,
    pub unresolved: Vec<Unresolved>,
}

impl Plans {
    /// The PFs that the configuration means; `None` if it is not known of each which it is.
    pub fn pfs(&self) -> Option<BTreeSet<PciAddress>> {
        let wanted = self.wanted.iter().map(|(wanted, _)| Some(wanted.pf));
        wanted.chain(self.unresolved.iter().map(|unresolved| unresolved.pci)).collect()
    }
}

/// What each PF's VFs shall be, on the host as it is observed.
pub fn resolve(config: &Config, root: &Root, observed: &Observed) -> Plans {
    let mut plans = Plans::default();
    if config.pf.is_empty() {
        return plans;
    }
    let mut look = Look::new(root);
    let host = plan_host::plan_host(&mut look, observed, config);
    let pins = plan_host::pins(root);
    for Resolved { which, origin, pci, wanted, warnings, .. } in
        guid::resolve(config, pins.as_ref().map_err(String::as_str), &host)
    {
        match wanted {
            Ok(wanted) => {
                let warnings = warnings.into_iter().map(|told| told.message).collect();
                plans.wanted.push((wanted, warnings));
            }
            Err(errors) => {
                let which = which.to_string();
                plans.unresolved.push(Unresolved { which, origin, pci, errors });
            }
        }
    }
    plans
}

/// How long udev may take to rename a PF's RDMA device: as boot waits for it.
const RENAMED: Duration = Duration::from_secs(2);

/// It has its netdev, and udev has named it.
fn is_named(port: &Port) -> bool {
    port.netdev.as_ref().is_some_and(|netdev| netdev.named)
}

/// The plan for `only` or for all PFs. Waits, until `deadline`, while a PF
/// cannot be told because a function has a driver and no RDMA device yet.
///
/// # Errors
/// Nothing could be waited for at all.
pub fn resolve_soon(
    config: &Config,
    root: &Root,
    only: Option<PciAddress>,
    deadline: Moment,
) -> Result<Plans> {
    let mut events = None;
    // What the patterns for VFs' names need of their PFs.
    let patterns = || config.pf.iter().flat_map(|pf| [&pf.vf_name, &pf.vf_rdma_name]).flatten();
    let needs_netdev = patterns().any(VfNamePattern::needs_netdev);
    let needs_rdma = patterns().any(VfNamePattern::needs_rdma);
    let renamed_by = clock::now() + RENAMED;
    let observer = Observer::new(root);
    let mut products = Products::new(root);
    let no_modules: [ModuleName; 0] = [];
    loop {
        let mut observed = observer.look_at_pfs();
        products.read_all(&mut observed);
        let mut plans = resolve(config, root, &observed);
        // VFs without a plan have GUIDs that no plan may give away.
        let planned = |pf: PciAddress| plans.wanted.iter().any(|(w, _)| w.pf == pf);
        if observed.functions.iter().filter_map(|f| f.physfn).any(|pf| !planned(pf)) {
            observed = observer.look(&no_modules, &BTreeSet::new());
            products.read_all(&mut observed);
            plans = resolve(config, root, &observed);
        }
        let now = clock::now();
        let comes = observed.functions.iter().any(|f| {
            let asked = only.is_none_or(|pf| pf == f.address) && f.physfn.is_none();
            let nameless = needs_netdev && f.rdma.iter().any(|d| !d.ports.iter().any(is_named));
            let comes = f.rdma.is_empty() || nameless;
            asked && f.ib_driver.is_some() && f.driver.is_some() && comes
        });
        let is_missing = plans.unresolved.iter().any(Unresolved::may_pass);
        // udev keeps no record of an RDMA device, and may be about to rename it.
        let is_renaming = needs_rdma && !observed.udev.settled && now < renamed_by;
        let is_open = comes && is_missing || is_renaming;
        if !root.is_live() || !is_open || now >= deadline {
            if let Some(pf) = only {
                plans.wanted.retain(|(w, _)| w.pf == pf);
                plans.unresolved.retain(|u| u.pci == Some(pf));
            }
            return Ok(plans);
        }
        let events = match &mut events {
            Some(events) => events,
            // What came between the look and now is seen by looking again.
            None => {
                events = Some(match needs_netdev || needs_rdma {
                    true => Events::open(&[])?,
                    false => Events::open_unprocessed(&[])?,
                });
                continue;
            }
        };
        let until = if is_renaming { deadline.min(renamed_by) } else { deadline };
        if events.wait(until)?.stop {
            anyhow::bail!("stopped by a signal while the PF had no RDMA device");
        }
    }
}

/// Whether a PF may begin beside those `at_work`, where PFs begin in the order of their
/// addresses. One whose VFs are bound in order works alone: the kernel gives each new device
/// the lowest number that is free, so any other VF that comes meanwhile would take one of its
/// numbers, by chance.
fn may_begin(order: BindOrder, at_work: impl IntoIterator<Item = BindOrder>) -> bool {
    at_work.into_iter().all(|other| order == BindOrder::Parallel && other == order)
}

/// The children `ibprov apply PF` of one run, each of which ends by itself at its limit or a
/// little later, and what came of them.
#[derive(Debug)]
pub(super) struct PfRuns<'a> {
    machine: &'a dyn Machine,
    config: Option<&'a Path>,
    running: Vec<(PciAddress, BindOrder, Box<dyn Child>)>,
    outcomes: Vec<Outcome>,
}

impl<'a> PfRuns<'a> {
    pub(super) const fn new(machine: &'a dyn Machine, config: Option<&'a Path>) -> Self {
        Self { machine, config, running: Vec::new(), outcomes: Vec::new() }
    }

    /// Begin with `wanted`, if it may begin now ([`may_begin`]); false if it may not.
    pub(super) fn begin(&mut self, wanted: &WantedPf, limit: Duration) -> bool {
        let (pf, order) = (wanted.pf, wanted.binding.order);
        if !may_begin(order, self.running.iter().map(|(_, order, _)| *order)) {
            return false;
        }
        let mut args = vec!["apply".to_owned(), pf.to_string()];
        args.extend(["--format".to_owned(), "json".to_owned()]);
        args.extend(["--timeout-msec".to_owned(), limit.as_millis().to_string()]);
        if let Some(config) = self.config {
            args.extend(["--config".to_owned(), config.display().to_string()]);
        }
        match self.machine.start_self(&args) {
            Ok(child) => self.running.push((pf, order, child)),
            Err(e) => self.lose(pf, &answer(&e)),
        }
        true
    }

    /// Nothing was done for `pf`.
    pub(super) fn lose(&mut self, pf: PciAddress, why: &str) {
        self.outcomes.push(Outcome::lost(pf, why));
    }

    /// Take the reports of those that have ended.
    pub(super) fn collect(&mut self) {
        let outcomes = &mut self.outcomes;
        self.running.retain_mut(|(pf, _, child)| {
            let outcome = match child.ended() {
                Ok(None) => return true,
                Ok(Some(ended)) => {
                    let failure = ended.failure.map_or_else(String::new, |f| f.to_string());
                    Outcome::of(*pf, &ended.stdout, &failure)
                }
                Err(e) => Outcome::lost(*pf, &answer(&e)),
            };
            outcomes.push(outcome);
            false
        });
    }

    pub(super) fn at_work(&self) -> impl Iterator<Item = PciAddress> {
        self.running.iter().map(|(pf, ..)| *pf)
    }

    fn ask_to_end(&self) {
        for (pf, _, child) in &self.running {
            let _pf = tracing::error_span!("pf", %pf).entered();
            child.ask_to_end();
        }
    }

    /// What came of all of them, by their addresses.
    pub(super) fn outcomes(&mut self) -> Vec<Outcome> {
        self.collect();
        for (pf, _, child) in std::mem::take(&mut self.running) {
            self.lose(pf, &format!("process {} is still running", child.pid()));
        }
        self.outcomes.sort_unstable_by_key(|outcome| outcome.pf);
        std::mem::take(&mut self.outcomes)
    }
}

/// All of them, at the same time but for those whose VFs are bound in order
/// ([`may_begin`]).
///
/// # Errors
/// Nothing could be waited for at all.
pub fn run_all(
    wanted: &[&WantedPf],
    config: Option<&Path>,
    deadline: Moment,
) -> Result<Vec<Outcome>> {
    let mut events = Events::open(&[])?;
    let mut runs = PfRuns::new(&Live, config);
    let mut to_come = wanted.to_vec();
    to_come.sort_unstable_by_key(|w| w.pf);
    let mut is_stopped = false;
    // Each has a deadline of its own; this one is for a child that hangs.
    let last = deadline + Duration::from_secs(5);
    loop {
        runs.collect();
        live_line::count(runs.outcomes.len(), wanted.len());
        let now = clock::now();
        to_come.retain(|pf| {
            if !is_stopped && now < deadline {
                return !runs.begin(pf, deadline.since(now));
            }
            let why = if is_stopped { "a signal" } else { "the deadline" };
            runs.lose(
                pf.pf,
                &format!("{why} occurred before the turn of this PF, whose VFs are bound in order"),
            );
            false
        });
        if runs.running.is_empty() && to_come.is_empty() || now >= last {
            return Ok(runs.outcomes());
        }
        if events.wait(if to_come.is_empty() { last } else { deadline })?.stop {
            is_stopped = true;
            runs.ask_to_end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pf_whose_vfs_are_bound_in_order_works_alone() {
        use BindOrder::{InOrder, Parallel};
        for (order, at_work, expected) in [
            (Parallel, &[][..], true),
            (Parallel, &[Parallel, Parallel], true),
            (Parallel, &[Parallel, InOrder], false),
            (InOrder, &[], true),
            (InOrder, &[Parallel], false),
            (InOrder, &[InOrder], false),
        ] {
            let may = may_begin(order, at_work.iter().copied());
            assert_eq!(may, expected, "{order:?} beside {at_work:?}");
        }
    }
}
