//! `ibprov apply` for one PF: look, plan, do the next stage, look again, until
//! nothing is left to do or the deadline comes.
//!
//! What may hang is done by a child that holds the PF's lock. What is changed
//! only for the time of the work (automatic probing, driver_override) is
//! written down in `/run/ibprov/pf/PCI.undo` before, so that the next run puts
//! it back if this one is killed.

mod judge;
mod look;
mod steps;
mod tried;

use self::tried::Tried;
use super::locks;
use crate::host::events::{Events, Happened};
use crate::host::{Root, clock, lock, state};
use crate::ladder::vf::{awaits_grant, may_come};
use crate::ladder::{self, Facts, WantedPf, WantedVf};
use crate::names::{PciAddress, VfIndex, is_vfio};
use crate::observe::pf;
use crate::observe::{Backend, Look, ObservedPf, ObservedVf, Own, Undo};
use crate::plan::VfPlan;
use crate::plan::vf::Uses;
use crate::report::pf::{Hindrance, PfProblem, PfReport, PfVerdict, Stage, VfStep};
use crate::workers::Client;

/// How long what was changed for the time of the work is tried to be put back
/// when the deadline has come or a signal asks to end.
const GRACE_USEC: u64 = 2_000_000;
/// The kernel makes `virtfnN` before the write of the number returns; some
/// kernels were reported to be late.
const LINKS_USEC: u64 = 10_000_000;

/// How often it is asked whether a subnet manager has granted an alias GUID;
/// mlx4 asks it anew after a second at the earliest.
const GRANT_USEC: u64 = 500_000;

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Make the VFs what they shall be.
    Apply,
    /// Only put back what a run that was cut short has left.
    Undo,
}

/// Bring the VFs of one PF to what is wanted, until `deadline`, microseconds
/// of CLOCK_MONOTONIC.
///
/// # Errors
/// Nothing could be waited for at all (no poll, no signals).
pub fn run(
    wanted: &WantedPf,
    purpose: Purpose,
    root: &Root,
    deadline: u64,
) -> anyhow::Result<PfReport> {
    let mut report = PfReport::blank(wanted.pf, clock::monotonic_usec());
    let locks = locks(&mut report.problems);
    let events = Events::open_quiet()?;
    let mut run = Run {
        wanted,
        purpose,
        root,
        deadline,
        events,
        lock: None,
        worker: Client::new(root).patient(),
        undo: Undo::default(),
        uses: Uses::new(),
        bound: Vec::new(),
        hung: Vec::new(),
        tried: Tried::default(),
        facts: Facts::default(),
        stopped: false,
        report,
    };
    match run.take_turn(locks.as_ref())? {
        Turn::Ours => {
            // It starts while this process looks around.
            run.worker.start(run.lock.as_ref())?;
            run.undo = remembered(root, wanted.pf, &mut run.report.problems);
            let end = run.work()?;
            run.finish(end)?;
        }
        Turn::Another => run.end(PfVerdict::Interrupted),
        Turn::Never => run.end(PfVerdict::NotRight),
    }
    Ok(run.report)
}

/// Who may act at the PF.
enum Turn {
    Ours,
    /// Somebody is at it, and there is no need to wait.
    Another,
    /// The deadline or a signal came first.
    Never,
}

struct Run<'a> {
    wanted: &'a WantedPf,
    purpose: Purpose,
    root: &'a Root,
    deadline: u64,
    events: Events,
    lock: Option<lock::Held>,
    worker: Client<'a>,
    undo: Undo,
    uses: Uses,
    /// VFs that the last stage has bound, the driver, and what they showed then.
    bound: Vec<(VfIndex, String, Option<Own>)>,
    /// VFs whose `driver_override` was not told: a driver's probe hangs there.
    hung: Vec<String>,
    tried: Tried,
    facts: Facts,
    stopped: bool,
    report: PfReport,
}

/// Where what must be put back is written down, below `/run/ibprov`.
fn undo_file(pf: PciAddress) -> String {
    format!("pf/{pf}.undo")
}

fn remembered(root: &Root, pf: PciAddress, problems: &mut Vec<String>) -> Undo {
    let path = format!("{}/{}", state::RUN_DIR, undo_file(pf));
    match root.text(&path, 1 << 20) {
        Ok(text) => serde_json::from_str(&text).unwrap_or_else(|e| {
            problems.push(format!("{path}: {e}: what an earlier run changed is not put back"));
            Undo::default()
        }),
        Err(e) if e.is_absent() => Undo::default(),
        Err(e) => {
            problems.push(e.to_string());
            Undo::default()
        }
    }
}

impl Run<'_> {
    /// One at a time at a PF: who comes second waits, and then finds all done.
    fn take_turn(&mut self, locks: Option<&lock::Locks>) -> anyhow::Result<Turn> {
        let Some(locks) = locks else { return Ok(Turn::Ours) };
        let mut is_watched = false;
        loop {
            match locks.try_take(&format!("pf-{}", self.wanted.pf)) {
                Ok(held) => {
                    self.lock = Some(held);
                    return Ok(Turn::Ours);
                }
                Err(lock::LockError::Busy { .. }) if self.purpose == Purpose::Undo => {
                    return Ok(Turn::Another);
                }
                Err(lock::LockError::Busy { .. }) if !is_watched => {
                    self.events.watch_closed(&[locks.dir()]);
                    is_watched = true;
                    continue;
                }
                Err(e @ lock::LockError::Busy { .. }) => {
                    if clock::monotonic_usec() >= self.deadline || self.stopped {
                        self.report.problems.push(format!(
                            "{}/pf-{} was {e}, or by a child that it left, until the deadline",
                            locks.dir().display(),
                            self.wanted.pf
                        ));
                        return Ok(Turn::Never);
                    }
                }
                Err(e) => {
                    self.report.problems.push(format!("{e}: working without it"));
                    return Ok(Turn::Ours);
                }
            }
            let retry = clock::monotonic_usec() + lock::RETRY_USEC;
            let happened = self.events.wait(self.deadline.min(retry))?;
            self.learn(&happened);
        }
    }

    fn learn(&mut self, happened: &Happened) {
        self.stopped |= happened.stop;
        for line in &happened.kernel {
            ladder::cause::learn(&mut self.facts, line.level, &line.text);
        }
    }

    fn is_late(&self) -> bool {
        self.stopped || clock::monotonic_usec() >= self.deadline
    }

    /// The circle. Ends with the last look and plan.
    fn work(&mut self) -> anyhow::Result<(ObservedPf, VfPlan)> {
        let mut seen: Option<ObservedPf> = None;
        loop {
            let observed = match seen.take() {
                Some(seen) => seen,
                None => self.look()?,
            };
            let plan = self.plan(&observed)?;
            let steps = self.open_steps(&plan);
            let Some(stage) = steps.first().map(VfStep::stage) else {
                let passes = plan.problem.as_ref().is_some_and(PfProblem::may_pass);
                let comes = self.wanted.vfs.iter().any(|want| {
                    let seen = observed.vfs.iter().find(|v| v.index == want.index);
                    seen.is_some_and(|seen| self.is_awaited(want, seen, &observed))
                });
                if self.purpose == Purpose::Apply && !self.is_late() && (passes || comes) {
                    self.wait_for_devices(&observed)?;
                    continue;
                }
                return Ok((observed, plan));
            };
            let now: Vec<VfStep> = steps.into_iter().filter(|s| s.stage() == stage).collect();
            let only_autoprobe = now
                .iter()
                .all(|s| matches!(s, VfStep::AutoprobeOff | VfStep::RestoreAutoprobe { .. }));
            let tried = now.len();
            self.carry_out(stage, now, &observed)?;
            let observed = ObservedPf { undo: self.undo.clone(), ..observed };
            seen = if only_autoprobe {
                let autoprobe = pf::autoprobe(&mut Look::new(self.root), self.wanted.pf);
                Some(ObservedPf { autoprobe, ..observed })
            } else {
                self.look_after(stage, tried, observed)?
            };
        }
    }

    /// What is seen after the `tried` steps of a stage, if less than all can have
    /// changed since `observed`: on a machine that is busy with the VFs' events a
    /// whole look is dear.
    fn look_after(
        &mut self,
        stage: Stage,
        tried: usize,
        observed: ObservedPf,
    ) -> anyhow::Result<Option<ObservedPf>> {
        // mlx4 asks the subnet manager anew when a VF comes.
        if matches!(observed.backend, Backend::Mlx4 { .. }) {
            return Ok(None);
        }
        let is_done = self.tried.ends_well();
        match stage {
            // Nobody has told the PF anything for them, or nobody knows: it is told all.
            Stage::Count if is_done => {
                let mut look = Look::new(self.root);
                let seen = pf::look_at_vfs(&mut look, observed);
                self.note(look.problems);
                Ok(seen)
            }
            // What a VF shows is what it read when it was bound.
            Stage::Administer => self.ask_all(observed, Vec::new()).map(Some),
            Stage::Bind if self.bound.len() == tried => Ok(self.as_bound(observed)),
            _ => Ok(None),
        }
    }

    /// What is seen once all VFs of a stage are bound; `None` if not all is known.
    fn as_bound(&mut self, mut observed: ObservedPf) -> Option<ObservedPf> {
        for (index, driver, own) in std::mem::take(&mut self.bound) {
            let seen = observed.vfs.iter_mut().find(|v| v.index == index)?;
            // vfio gives it nothing to show.
            if own.is_none() && !is_vfio(&driver) {
                return None;
            }
            seen.driver = Some(driver);
            seen.own = own;
            // Who binds puts it back.
            let prior = observed.undo.overrides.get(&seen.pci.to_string());
            seen.driver_override = prior.filter(|o| !o.is_empty()).cloned();
        }
        Some(observed)
    }

    /// True if waiting may bring what the VF lacks. One that this run has not
    /// bound, with an RDMA device and no netdev, has its netdev in another
    /// network namespace: it does not come.
    fn is_awaited(&self, want: &WantedVf, seen: &ObservedVf, pf: &ObservedPf) -> bool {
        let fresh = self.tried.has_bound(want.index);
        may_come(want, seen, pf) && (seen.own.is_none() || fresh || awaits_grant(want, seen))
    }

    /// What of the plan is still to be tried: nothing twice, and nothing of a
    /// VF for which something before it was in vain.
    fn open_steps(&self, plan: &VfPlan) -> Vec<VfStep> {
        let in_vain = |s: &&VfStep| self.tried.has(s);
        let lost: Vec<VfIndex> = plan
            .steps
            .iter()
            .filter(in_vain)
            .filter(|s| !matches!(s, VfStep::Policy { .. }) && !s.is_repeated())
            .filter_map(VfStep::vf)
            .collect();
        let no_number = plan.steps.iter().any(|s| s.stage() == Stage::Count && in_vain(&s));
        let only_back = no_number || self.purpose == Purpose::Undo || self.is_late();
        let open = |s: &&VfStep| {
            !in_vain(s)
                && (s.stage() == Stage::Restore || !only_back)
                && (matches!(s, VfStep::Policy { .. })
                    || !s.vf().is_some_and(|vf| lost.contains(&vf)))
        };
        plan.steps.iter().filter(open).cloned().collect()
    }

    fn finish(&mut self, (mut observed, plan): (ObservedPf, VfPlan)) -> anyhow::Result<()> {
        self.learn_names(&mut observed);
        let is_back = |s: &VfStep| s.stage() == Stage::Restore;
        if !plan.steps.iter().any(is_back) && !self.undo.is_empty() {
            self.undo.autoprobe = None;
            self.undo.overrides.retain(|pci, _| self.hung.contains(pci));
        }
        self.remember();
        let mut vfs = judge::vfs(self.wanted, &observed, &plan, &self.tried, &self.facts);
        if vfs.iter().any(|v| !v.right) || self.tried.failed_count().is_some() {
            // What the kernel said while only the child was listened to.
            let kernel = self.events.kernel_lines()?;
            self.learn(&Happened { kernel, ..Happened::default() });
            vfs = judge::vfs(self.wanted, &observed, &plan, &self.tried, &self.facts);
        }
        self.report.vfs = vfs;
        self.report.hindrance = Hindrance {
            problem: plan.problem,
            number: judge::number_failed(&self.tried, &self.facts, self.wanted.pf),
        };
        self.report.steps = std::mem::take(&mut self.tried).into_steps();
        self.report.deferred = plan.deferred;
        let all_right = self.report.vfs.iter().all(|v| v.right || v.deferred)
            && self.report.hindrance.is_none();
        let put_back = self.undo.is_empty();
        let verdict = match (all_right && put_back, self.report.deferred.is_empty()) {
            _ if self.purpose == Purpose::Undo && put_back => PfVerdict::Right,
            (true, true) => PfVerdict::Right,
            (true, false) => PfVerdict::Deferred,
            (false, _) if self.stopped => PfVerdict::Interrupted,
            (false, _) => PfVerdict::NotRight,
        };
        if !put_back {
            self.report.problems.push(
                "automatic probing or driver_override could not be put back; the next `ibprov apply` tries again".to_owned(),
            );
        }
        self.end(verdict);
        Ok(())
    }

    /// What a VF showed when it was bound is true still, but for the names that udev
    /// has given its devices since.
    fn learn_names(&mut self, observed: &mut ObservedPf) {
        let mut look = Look::new(self.root);
        for vf in &mut observed.vfs {
            if let Some(own) = &mut vf.own {
                pf::learn_names(&mut look, vf.pci, own);
            }
        }
        self.note(look.problems);
    }

    fn end(&mut self, verdict: PfVerdict) {
        self.report.problems.append(&mut self.events.problems);
        self.report.finished_usec = clock::monotonic_usec();
        self.report.verdict = verdict;
        self.report.exit_code = verdict.exit_code();
    }
}
