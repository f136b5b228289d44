//! The GUID plans within a boot: each PF's is carried out by a child of its
//! own, and boot only waits for it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::to_come::missing;
use crate::apply::machine::Machine;
use crate::apply::pfs::{self, PfRuns, Plans};
use crate::config::Config;
use crate::host::Root;
use crate::model::{NotExpected, PortProgress, Unresolved, pf::Outcome};
use crate::names::{Moment, PciAddress, Rung};
use crate::observe::Observed;

/// How often the host is looked at while VFs come.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Left for a child to put things back and report before boot's own deadline.
const RESERVE: Duration = Duration::from_secs(3);

/// Why a PF's plan has not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Its own port is not through.
    Port,
    /// Devices of another adapter may still come.
    Adapter,
    /// VFs that are bound in order, its own or those of another PF.
    Turn,
}

/// The plans of one boot.
#[derive(Debug)]
pub(super) struct Vfs<'a> {
    config: &'a Config,
    started: Moment,
    begun: BTreeSet<PciAddress>,
    /// PFs that are there and have not begun, and why.
    held: Vec<(PciAddress, Held)>,
    runs: PfRuns<'a>,
    unresolved: Vec<Unresolved>,
    /// How the configuration names one of these that may still come.
    missing: Option<String>,
}

impl<'a> Vfs<'a> {
    pub(super) const fn new(
        machine: &'a dyn Machine,
        config: &'a Config,
        config_file: Option<&'a Path>,
        started: Moment,
    ) -> Self {
        Self {
            config,
            started,
            begun: BTreeSet::new(),
            held: Vec::new(),
            runs: PfRuns::new(machine, config_file),
            unresolved: Vec::new(),
            missing: None,
        }
    }

    /// Begin with every PF that is there, once its own ports are through or
    /// cannot become so: its VFs' driver and, by netlink, their GUIDs need it. One of
    /// which it is `unclear` whether it is an HCA is left alone until that is known. VFs for a
    /// driver of this host are bound once no other adapter is `awaited` any more, and PFs whose
    /// VFs are bound in order take turns.
    pub(super) fn begin(
        &mut self,
        root: &Root,
        observed: &Observed,
        ports: &[PortProgress],
        unclear: &BTreeSet<PciAddress>,
        awaited: impl Fn(PciAddress) -> bool,
        (now, deadline): (Moment, Moment),
    ) {
        self.runs.collect();
        if self.begun.len() == self.config.pf.len() {
            return;
        }
        let Plans { mut wanted, unresolved } = pfs::resolve(self.config, root, observed);
        self.missing = missing(&unresolved, ports, &awaited).next().map(|pf| pf.which.clone());
        self.unresolved = unresolved;
        let is_ready = |pf: PciAddress| {
            let function = observed.functions.iter().find(|f| f.address == pf);
            let own = || ports.iter().filter(|p| p.pci == Some(pf));
            !unclear.contains(&pf)
                && function.is_some_and(|f| f.driver.is_some())
                && own().all(|port| is_through(port, awaited(pf)))
        };
        let comes = |port: &PortProgress| !port.is_ready() && port.pci.is_some_and(&awaited);
        let comes_any = self.is_any_missing(now, deadline) || ports.iter().any(comes);
        self.held.clear();
        wanted.retain(|(wanted, _)| !self.begun.contains(&wanted.pf));
        wanted.sort_unstable_by_key(|(wanted, _)| wanted.pf);
        let limit = deadline.since(now + RESERVE);
        let limit = limit.min(self.config.boot.adapter_timeout);
        for (wanted, _) in wanted {
            let pf = wanted.pf;
            let held = if !is_ready(pf) {
                Held::Port
            } else if wanted.binding.awaits_adapters() && comes_any {
                Held::Adapter
            } else if self.runs.begin(&wanted, limit) {
                self.begun.insert(pf);
                continue;
            } else {
                Held::Turn
            };
            self.held.push((pf, held));
        }
    }

    /// Until when PFs of the configuration are waited for that are not seen.
    fn for_pf(&self, deadline: Moment) -> Moment {
        (self.started + self.config.boot.adapter_timeout).min(deadline)
    }

    /// A PF of the configuration is not seen, and may still come.
    fn is_any_missing(&self, now: Moment, deadline: Moment) -> bool {
        now < self.for_pf(deadline) && self.missing.is_some()
    }

    /// Until when VFs are waited for; `None` if there is nothing to wait for.
    pub(super) fn next_deadline(&self, now: Moment, deadline: Moment) -> Option<Moment> {
        if self.is_at_work() && now < deadline {
            Some(deadline)
        } else if self.is_any_missing(now, deadline) {
            Some(self.for_pf(deadline))
        } else {
            None
        }
    }

    fn is_at_work(&self) -> bool {
        self.runs.at_work().next().is_some()
    }

    /// Until when events of devices are no reason to look.
    pub(super) fn quiet_until(&self, now: Moment) -> Moment {
        if self.is_at_work() { now + LOOK_EVERY } else { now }
    }

    /// One phrase for the status line.
    pub(super) fn waiting(&self) -> Option<String> {
        let pfs: Vec<String> = self.runs.at_work().map(|pf| pf.to_string()).collect();
        if !pfs.is_empty() {
            return Some(format!("waiting for the VFs of {}", pfs.join(", ")));
        }
        let missing = self.missing.as_ref()?;
        Some(format!("waiting for {missing}"))
    }

    /// True for a VF that a plan takes care of.
    pub(super) fn has_plan_for(&self, reason: &NotExpected) -> bool {
        matches!(reason, NotExpected::VfOfThisHost { physfn } if self.begun.contains(physfn))
    }

    /// What came of all of them.
    pub(super) fn outcomes(&mut self) -> (Vec<Outcome>, Vec<Unresolved>) {
        for (pf, held) in self.held.drain(..) {
            self.runs.lose(
                pf,
                match held {
                    Held::Port => "the PF's own port is not ready, so that its VFs were not changed",
                    Held::Adapter => {
                        "the VFs of the PF were not changed, because the devices of another adapter could still appear until the end of the boot, and would have got other kernel numbers (mlx5_0, ib0). Set boot.adapter-timeout to less than boot.timeout, or name the adapter in boot.ignore if it need not appear"
                    }
                    Held::Turn => {
                        "the PF was not configured before the deadline, because PFs whose VFs are bound in order are configured one after the other. To configure all PFs at the same time: name the VFs (vf-name, vf-rdma-name)"
                    }
                },
            );
        }
        (self.runs.outcomes(), std::mem::take(&mut self.unresolved))
    }
}

/// Nothing is to come of `port` that the VFs of its PF need: of its settings they need none, as
/// where those are deferred because the interface is in use.
fn is_through(port: &PortProgress, is_awaited: bool) -> bool {
    port.is_ready() || port.missing() == Some(Rung::Configured) && !is_awaited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_left_hold_up_no_vf() {
        let mut port = PortProgress::absent("x".to_owned(), Rung::Configured, String::new());
        let mut through = |reached, is_awaited| {
            port.reached = Some(reached);
            is_through(&port, is_awaited)
        };
        assert!(through(Rung::Configured, false));
        assert!(through(Rung::Named, false), "they are deferred");
        assert!(!through(Rung::Named, true), "they are being made");
        assert!(!through(Rung::Netdev, false));
    }
}
