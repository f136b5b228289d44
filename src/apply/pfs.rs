//! The GUID plan of all PFs: which of the configuration is which on this host,
//! and one child `ibprov apply PF` for each.

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::Config;
use crate::host::events::Events;
use crate::host::process::{self, Running};
use crate::host::{Root, answer, clock, live_line};
use crate::ladder::WantedPf;
use crate::names::{BindOrder, ModuleName, PciAddress, VfNamePattern};
use crate::observe::{Look, Observed, Observer, Port, plan_host};
use crate::plan::guid::{self, Resolved};
use crate::report::pf::{Outcome, Unresolved};
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
const RENAMED_USEC: u64 = 2_000_000;

/// What the patterns for VFs' names need of their PFs.
struct Needs {
    netdev: bool,
    rdma: bool,
}

impl Needs {
    fn of(config: &Config) -> Self {
        let patterns = || config.pf.iter().flat_map(|pf| [&pf.vf_name, &pf.vf_rdma_name]).flatten();
        Self {
            netdev: patterns().any(VfNamePattern::needs_netdev),
            rdma: patterns().any(VfNamePattern::needs_rdma),
        }
    }
}

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
    deadline: u64,
) -> anyhow::Result<Plans> {
    let mut events = None;
    let needs = Needs::of(config);
    let renamed_by = clock::monotonic_usec().saturating_add(RENAMED_USEC);
    let observer = Observer::new(root);
    let mut products = Products::new(root);
    let no_modules: [ModuleName; 0] = [];
    loop {
        let mut observed = observer.look_at_pfs();
        products.learn_all(&mut observed);
        let mut plans = resolve(config, root, &observed);
        // VFs without a plan have GUIDs that no plan may give away.
        let planned = |pf: PciAddress| plans.wanted.iter().any(|(w, _)| w.pf == pf);
        if observed.functions.iter().filter_map(|f| f.physfn).any(|pf| !planned(pf)) {
            observed = observer.look(&no_modules, &BTreeSet::new());
            products.learn_all(&mut observed);
            plans = resolve(config, root, &observed);
        }
        let now = clock::monotonic_usec();
        let comes = observed.functions.iter().any(|f| {
            let asked = only.is_none_or(|pf| pf == f.address) && f.physfn.is_none();
            let nameless = needs.netdev && f.rdma.iter().any(|d| !d.ports.iter().any(is_named));
            let comes = f.rdma.is_empty() || nameless;
            asked && f.ib_driver.is_some() && f.driver.is_some() && comes
        });
        let is_missing = plans.unresolved.iter().any(Unresolved::may_pass);
        // udev keeps no record of an RDMA device, and may be about to rename it.
        let is_renaming = needs.rdma && !observed.udev.settled && now < renamed_by;
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
                events = Some(match needs.netdev || needs.rdma {
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
pub fn may_begin(order: BindOrder, at_work: impl IntoIterator<Item = BindOrder>) -> bool {
    at_work.into_iter().all(|other| order == BindOrder::Parallel && other == order)
}

/// One `ibprov apply PF` at work.
#[derive(Debug)]
pub struct Worker {
    pub pf: PciAddress,
    /// How its VFs are bound.
    pub order: BindOrder,
    child: Running,
}

/// Start one for `wanted`, which ends by itself `limit_usec` from now at the
/// latest, or a little later.
///
/// # Errors
/// It cannot be started.
pub fn start(wanted: &WantedPf, config: Option<&Path>, limit_usec: u64) -> std::io::Result<Worker> {
    let (pf, order) = (wanted.pf, wanted.binding.order);
    let mut args = vec!["apply".to_owned(), pf.to_string()];
    args.extend(["--format".to_owned(), "json".to_owned()]);
    args.extend(["--timeout-msec".to_owned(), (limit_usec / 1000).to_string()]);
    if let Some(config) = config {
        args.extend(["--config".to_owned(), config.display().to_string()]);
    }
    Ok(Worker { pf, order, child: process::start_self(&args)? })
}

impl Worker {
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// What it came to, once it has ended.
    pub fn ended(&mut self) -> Option<Outcome> {
        match self.child.ended() {
            Ok(None) => None,
            Ok(Some(ended)) => {
                let failure = ended.failure.map_or_else(String::new, |f| f.to_string());
                Some(Outcome::of(self.pf, &ended.stdout, &failure))
            }
            Err(e) => Some(Outcome::lost(self.pf, &answer(&e))),
        }
    }
}

/// Take the reports of those that have ended.
pub fn collect(workers: &mut Vec<Worker>, outcomes: &mut Vec<Outcome>) {
    workers.retain_mut(|worker| {
        let ended = worker.ended();
        let is_at_work = ended.is_none();
        outcomes.extend(ended);
        is_at_work
    });
}

/// All of them, at the same time but for those whose VFs are bound in order
/// ([`may_begin`]).
///
/// # Errors
/// Nothing could be waited for at all.
pub fn run_all(
    wanted: &[&WantedPf],
    config: Option<&Path>,
    deadline: u64,
) -> anyhow::Result<Vec<Outcome>> {
    let mut events = Events::open(&[])?;
    let mut outcomes = Vec::new();
    let mut workers: Vec<Worker> = Vec::new();
    let mut to_come = wanted.to_vec();
    to_come.sort_unstable_by_key(|w| w.pf);
    let mut is_stopped = false;
    // Each has a deadline of its own; this one is for a child that hangs.
    let last = deadline + 5_000_000;
    loop {
        collect(&mut workers, &mut outcomes);
        live_line::count(outcomes.len(), wanted.len());
        let now = clock::monotonic_usec();
        let mut rest = Vec::new();
        for pf in std::mem::take(&mut to_come) {
            if is_stopped || now >= deadline {
                let why = if is_stopped { "a signal" } else { "the deadline" };
                let why = format!(
                    "{why} occurred before the turn of this PF, whose VFs are bound in order"
                );
                outcomes.push(Outcome::lost(pf.pf, &why));
            } else if may_begin(pf.binding.order, workers.iter().map(|w| w.order)) {
                match start(pf, config, deadline - now) {
                    Ok(worker) => workers.push(worker),
                    Err(e) => outcomes.push(Outcome::lost(pf.pf, &answer(&e))),
                }
            } else {
                rest.push(pf);
            }
        }
        to_come = rest;
        if workers.is_empty() && to_come.is_empty() || now >= last {
            break;
        }
        if events.wait(if to_come.is_empty() { last } else { deadline })?.stop {
            is_stopped = true;
            for worker in &workers {
                let _pf = tracing::error_span!("pf", pf = %worker.pf).entered();
                worker.child.ask_to_end();
            }
        }
    }
    for worker in workers {
        outcomes.push(Outcome::lost(worker.pf, &format!("process {} hangs", worker.pid())));
    }
    outcomes.sort_unstable_by_key(|o| o.pf);
    Ok(outcomes)
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
