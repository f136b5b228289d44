//! The GUID plans within a boot: each PF's is carried out by a child of its
//! own, and boot only waits for it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::apply::pfs::{self, Plans, Worker};
use crate::config::Config;
use crate::host::{Root, answer, clock};
use crate::names::PciAddress;
use crate::observe::Observed;
use crate::report::pf::{Outcome, Unresolved};
use crate::report::{NotExpected, PortProgress};

/// How often the host is looked at while VFs come.
const LOOK_EVERY_USEC: u64 = 250_000;
/// Left for a child to put things back and report before boot's own deadline.
const RESERVE_USEC: u64 = 3_000_000;

/// The plans of one boot.
#[derive(Debug)]
pub(super) struct Vfs<'a> {
    config: &'a Config,
    config_file: Option<&'a Path>,
    started: u64,
    begun: BTreeSet<PciAddress>,
    /// PFs that are there, and whose own ports are not through.
    held: Vec<PciAddress>,
    workers: Vec<Worker>,
    outcomes: Vec<Outcome>,
    unresolved: Vec<Unresolved>,
}

impl<'a> Vfs<'a> {
    pub(super) const fn new(
        config: &'a Config,
        config_file: Option<&'a Path>,
        started: u64,
    ) -> Self {
        Self {
            config,
            config_file,
            started,
            begun: BTreeSet::new(),
            held: Vec::new(),
            workers: Vec::new(),
            outcomes: Vec::new(),
            unresolved: Vec::new(),
        }
    }

    /// Begin with every PF that is there, once its own ports are through or
    /// cannot become so: its VFs' driver and, by netlink, their GUIDs need it. One of
    /// which it is `unclear` whether it is an HCA is left alone until that is known.
    pub(super) fn begin(
        &mut self,
        root: &Root,
        observed: &Observed,
        ports: &[PortProgress],
        unclear: &BTreeSet<PciAddress>,
        deadline: u64,
    ) {
        self.collect();
        if self.begun.len() == self.config.pf.len() {
            return;
        }
        let Plans { wanted, unresolved } = pfs::resolve(self.config, root, observed);
        self.unresolved = unresolved;
        let is_ready = |pf: PciAddress| {
            let function = observed.functions.iter().find(|f| f.address == pf);
            let own = || ports.iter().filter(|p| p.pci == Some(pf));
            !unclear.contains(&pf)
                && function.is_some_and(|f| f.driver.is_some())
                && own().all(PortProgress::is_ready)
        };
        self.held.clear();
        for (wanted, _) in wanted {
            if !is_ready(wanted.pf) {
                self.held.push(wanted.pf);
                continue;
            }
            if !self.begun.insert(wanted.pf) {
                continue;
            }
            let left = deadline.saturating_sub(clock::monotonic_usec() + RESERVE_USEC);
            let limit = left.min(clock::usec(self.config.boot.adapter_timeout));
            match pfs::start(wanted.pf, self.config_file, limit) {
                Ok(worker) => self.workers.push(worker),
                Err(e) => self.outcomes.push(Outcome::lost(wanted.pf, &answer(&e))),
            }
        }
    }

    /// Take the reports of those that have ended.
    pub(super) fn collect(&mut self) {
        let outcomes = &mut self.outcomes;
        self.workers.retain_mut(|w| match w.ended() {
            Some(outcome) => {
                outcomes.push(outcome);
                false
            }
            None => true,
        });
    }

    /// Until when VFs are waited for; `None` if there is nothing to wait for.
    pub(super) fn next_deadline(&self, now: u64, deadline: u64) -> Option<u64> {
        let per_hca = clock::usec(self.config.boot.adapter_timeout);
        let for_pf = self.started.saturating_add(per_hca).min(deadline);
        let is_missing = self.unresolved.iter().any(|u| u.may_pass);
        if !self.workers.is_empty() && now < deadline {
            Some(deadline)
        } else if is_missing && now < for_pf {
            Some(for_pf)
        } else {
            None
        }
    }

    /// Until when events of devices are no reason to look.
    pub(super) const fn quiet_until(&self, now: u64) -> u64 {
        if self.workers.is_empty() { now } else { now + LOOK_EVERY_USEC }
    }

    /// One phrase for the status line.
    pub(super) fn waiting(&self) -> Option<String> {
        let pfs: Vec<String> = self.workers.iter().map(|w| w.pf.to_string()).collect();
        if !pfs.is_empty() {
            return Some(format!("waiting for the VFs of {}", pfs.join(", ")));
        }
        let missing = self.unresolved.iter().find(|u| u.may_pass)?;
        Some(format!("waiting for {}", missing.which))
    }

    /// True for a VF that a plan takes care of.
    pub(super) fn has_plan_for(&self, reason: &NotExpected) -> bool {
        matches!(reason, NotExpected::VfOfThisHost { physfn } if self.begun.contains(physfn))
    }

    /// What came of all of them.
    pub(super) fn outcomes(&mut self) -> (Vec<Outcome>, Vec<Unresolved>) {
        self.collect();
        for worker in self.workers.drain(..) {
            let why = format!("process {} is still at it", worker.pid());
            self.outcomes.push(Outcome::lost(worker.pf, &why));
        }
        for pf in self.held.drain(..) {
            self.outcomes
                .push(Outcome::lost(pf, "its own port is not ready: its VFs were left alone"));
        }
        self.outcomes.sort_by_key(|o| o.pf);
        (std::mem::take(&mut self.outcomes), std::mem::take(&mut self.unresolved))
    }
}
