//! `ibprov apply` for one PF: look, plan, do the next stage, look again, until
//! nothing is left to do or the deadline comes.
//!
//! What may hang is done by a child that holds the PF's lock (`child.rs`). What is
//! changed only for the time of the work (automatic probing, driver_override) is
//! written down before ([`undo`](crate::workers::undo)), so that it is put back if this run is
//! killed.

mod child;
mod judge;
mod machine;
mod untold;
mod watch;
#[cfg(test)]
mod world;

use std::time::Duration;

use tracing::{debug, error_span, warn};

use self::child::{failure, request, to_number};
use self::judge::Attempts;
use self::machine::{Live, Machine, Responder};
use self::untold::Untold;
#[cfg(test)]
pub(super) use self::watch::LONGEST_END;
use self::watch::Watch;
use super::locks;
use crate::host::{Root, clock, live_line};
use crate::ladder::vf::{awaits_grant, lacks_name, may_come};
use crate::model::{
    Code, PfReport, StepDone, StepFailure, Verdict, VfStep, WantedPf, WantedVf, events as kinds,
    pf::{Purpose, Stage},
    vf_step::together,
};
use crate::names::{Moment, PciAddress, VfIndex, VfNames, VfOwner, is_vfio, vf_ranges};
use crate::observe::{Backend, ObservedPf, ObservedVf, VfDevices};
use crate::plan::VfPlan;
use crate::plan::vf::{Uses, disturbed, due, uses_by_index, vf_steps};
use crate::workers::undo::{self, UndoRecord};
use crate::workers::{Answer, Failure, Reply, Request};

/// The kernel makes `virtfnN` before the write of the number returns; some
/// kernels were reported to be late.
const LINKS: Duration = Duration::from_secs(10);

/// How often it is asked whether a subnet manager has granted an alias GUID;
/// mlx4 asks it anew after a second at the earliest.
const GRANT: Duration = Duration::from_millis(500);

/// How long udev may take to name a netdev or an RDMA device that has come, once it has
/// nothing else to do: two events in a row, unless udev itself is in trouble. With hundreds
/// of disks to look at first it gets as long again.
const NAMES: Duration = Duration::from_secs(3);

/// Bring the VFs of one PF to what is wanted, until `deadline`, microseconds
/// of CLOCK_MONOTONIC.
///
/// # Errors
/// Nothing could be waited for at all (no poll, no signals).
pub fn run(wanted: &WantedPf, root: &Root, deadline: Moment) -> anyhow::Result<PfReport> {
    let mut problems = Vec::new();
    let live = Live::open(root, wanted.pf, locks(&mut problems))?;
    let (mut report, Watch { machine, .. }) = run_at(live, wanted, deadline)?;
    report.problems.splice(0..0, problems);
    report.problems.extend(machine.events.problems);
    Ok(report)
}

/// The same, at a machine, which is given back.
fn run_at<M: Machine>(
    machine: M,
    wanted: &WantedPf,
    deadline: Moment,
) -> anyhow::Result<(PfReport, Watch<M>)> {
    let _pf = error_span!("pf", pf = %wanted.pf).entered();
    let mut report = PfReport::blank(wanted.pf, machine.now());
    let mut watch = Watch::new(machine, deadline);
    if let Some(problem) = watch.take_turn(&mut report.problems)? {
        report.problem = Some(problem);
        return Ok((ended(report, watch.now(), Verdict::Failed), watch));
    }
    watch.machine.start()?;
    let mut run = Run {
        wanted,
        record: watch.machine.record(&mut report.problems),
        watch,
        is_rdma_held: false,
        uses: Uses::new(),
        attempts: Attempts::default(),
        is_unrecorded: false,
        untold: Untold::new(),
        names_until: Moment::START,
        names_are_told: false,
        report,
    };
    let (observed, plan) = run.work()?;
    run.finish(observed, plan)
}

/// Put back what a run at `pf` that was cut short has left. It is not waited for another run,
/// or the child of one: that does it at its end.
///
/// # Errors
/// As [`run`].
pub fn put_back(pf: PciAddress, root: &Root, deadline: Moment) -> anyhow::Result<PfReport> {
    let _pf = error_span!("pf", %pf).entered();
    let blank = PfReport::blank(pf, clock::now());
    let mut report = PfReport { purpose: Purpose::Undo, ..blank };
    let live = Live::open(root, pf, locks(&mut report.problems))?;
    let mut watch = Watch::new(live, deadline);
    let verdict = match watch.machine.lock(&mut report.problems) {
        None => put_back_at(pf, &mut watch, &mut report)?,
        Some(problem) => {
            report.problem = Some(problem);
            Verdict::Deferred
        }
    };
    report.problems.append(&mut watch.machine.events.problems);
    Ok(ended(report, watch.now(), verdict))
}

fn put_back_at<M: Machine>(
    pf: PciAddress,
    watch: &mut Watch<M>,
    report: &mut PfReport,
) -> anyhow::Result<Verdict> {
    watch.machine.start()?;
    let told = report.problems.len();
    let mut record = watch.machine.record(&mut report.problems);
    let is_known = report.problems.len() == told;
    let steps = record.steps();
    let requests: Vec<Request> = steps.iter().filter_map(|s| undo::restore(pf, s)).collect();
    let replies = watch.ask(Responder::Child, &requests, watch.deadline)?;
    for (step, reply) in steps.into_iter().zip(replies) {
        let failure = match reply {
            Some(Ok(Answer::Done)) => {
                record.forget(&step);
                None
            }
            other => Some(failure(other)),
        };
        report.steps.push(StepDone { step, failure });
    }
    if is_known {
        report.problems.extend(watch.machine.write(&record).err());
    }
    Ok(if is_known && record.undo().is_empty() { Verdict::Done } else { Verdict::Failed })
}

fn ended(mut report: PfReport, now: Moment, verdict: Verdict) -> PfReport {
    report.finished_usec = now;
    report.verdict = verdict;
    report
}

struct Run<'a, M> {
    wanted: &'a WantedPf,
    watch: Watch<M>,
    /// RDMA netlink has not answered.
    is_rdma_held: bool,
    record: UndoRecord,
    uses: Uses,
    attempts: Attempts,
    /// What a kill would leave cannot be written down: nothing is begun.
    is_unrecorded: bool,
    /// What the kernel does not tell of the VFs.
    untold: Untold,
    /// Until when udev may take to name what has been bound last.
    names_until: Moment,
    /// udev has been told of the VFs' names.
    names_are_told: bool,
    report: PfReport,
}

/// What is to be done next.
enum Turn {
    /// Learn who uses these VFs.
    AskUses(Vec<(VfIndex, PciAddress)>),
    /// These steps, of one stage.
    Do(Stage, Vec<VfStep>),
    /// Wait for devices, or for the end of a problem that passes.
    Wait {
        passes: bool,
    },
    End(VfPlan),
}

impl<M: Machine> Run<'_, M> {
    /// Ends with the last look and plan.
    fn work(&mut self) -> anyhow::Result<(ObservedPf, VfPlan)> {
        let mut seen: Option<ObservedPf> = None;
        loop {
            let observed = match seen.take() {
                Some(seen) => seen,
                None => self.look()?,
            };
            match self.turn(&observed) {
                Turn::AskUses(vfs) => {
                    let (vfs, functions): (Vec<VfIndex>, Vec<PciAddress>) = vfs.into_iter().unzip();
                    self.uses.extend(vfs.into_iter().zip(self.watch.ask_uses(functions)?));
                    seen = Some(observed);
                }
                Turn::Do(stage, steps) => seen = self.act(stage, steps, observed)?,
                Turn::Wait { passes } => self.wait_for_devices(&observed, passes)?,
                Turn::End(plan) => return Ok((observed, plan)),
            }
        }
    }

    /// What is to be done on a host that was observed so. Nothing is planned before it is known
    /// who uses what the plan would disturb.
    fn turn(&mut self, observed: &ObservedPf) -> Turn {
        let plan = vf_steps(self.wanted, observed, &self.uses);
        let unknown = disturbed(self.wanted, &plan, observed).into_iter();
        let unknown = unknown.filter(|vf| !self.uses.contains_key(vf));
        let unknown: Vec<_> = unknown.filter_map(|vf| Some((vf, observed.vf(vf)?.pci))).collect();
        if !unknown.is_empty() {
            return Turn::AskUses(unknown);
        }
        let steps = self.due_steps(&plan, observed);
        if let Some(stage) = steps.first().map(VfStep::stage) {
            return Turn::Do(stage, steps);
        }
        self.give_udev_time();
        let passes = plan.problem.as_ref().is_some_and(|p| p.code == Code::PfNotReady);
        let comes = self.is_any_awaited(observed);
        if !self.watch.is_late() && (passes || comes) {
            return Turn::Wait { passes };
        }
        Turn::End(plan)
    }

    /// Do these steps. Gives what is seen after them, where that takes no whole look.
    fn act(
        &mut self,
        stage: Stage,
        steps: Vec<VfStep>,
        observed: ObservedPf,
    ) -> anyhow::Result<Option<ObservedPf>> {
        let only_autoprobe = steps
            .iter()
            .all(|s| matches!(s, VfStep::AutoprobeOff | VfStep::RestoreAutoprobe { .. }));
        let tried = steps.len();
        let bound = self.carry_out(stage, steps, &observed)?;
        let observed = ObservedPf { undo: self.record.undo().clone(), ..observed };
        if only_autoprobe {
            let autoprobe = self.watch.machine.autoprobe();
            Ok(Some(ObservedPf { autoprobe, ..observed }))
        } else if matches!(observed.backend, Backend::Mlx4 { .. }) {
            // It asks the subnet manager anew when a VF comes.
            Ok(None)
        } else if stage == Stage::Bind && bound.len() == tried {
            Ok(as_bound(observed, bound))
        } else {
            self.look_after(stage, observed)
        }
    }

    /// The host now. The part that may hang is asked of the child.
    fn look(&mut self) -> anyhow::Result<ObservedPf> {
        let mut problems = Vec::new();
        let observed = self.watch.machine.look(&mut problems);
        let observed = ObservedPf { undo: self.record.undo().clone(), ..observed };
        self.complete(observed, problems)
    }

    /// What is seen after a stage, if less than all can have changed since
    /// `observed`: on a machine that is busy with the VFs' events a whole look is
    /// dear.
    fn look_after(
        &mut self,
        stage: Stage,
        observed: ObservedPf,
    ) -> anyhow::Result<Option<ObservedPf>> {
        match stage {
            // Nobody has told the PF anything for them, or nobody knows: it is told all.
            Stage::Count if self.attempts.0.last().is_some_and(StepDone::is_done) => {
                let mut problems = Vec::new();
                let seen = self.watch.machine.look_at_vfs(observed, &mut problems);
                self.note(problems);
                // Before Linux 4.12 they are probed at once, and their GUIDs have to be known.
                Ok(seen.filter(|pf| pf.vfs.iter().all(|vf| vf.driver.is_none())))
            }
            // What a VF shows is what it read when it was bound.
            Stage::Administer => self.complete(observed, Vec::new()).map(Some),
            _ => Ok(None),
        }
    }

    /// What was looked at, with what is asked of the child, which knows how the rest
    /// is read. `problems` are those of the look.
    fn complete(
        &mut self,
        mut observed: ObservedPf,
        mut problems: Vec<String>,
    ) -> anyhow::Result<ObservedPf> {
        self.watch.ask_administered(&mut observed, &mut problems)?;
        self.untold = untold::learn(&mut observed, &self.attempts);
        self.record_netdevs(&mut observed, &mut problems)?;
        let left: Vec<PciAddress> = self.record.undo().overrides.keys().copied().collect();
        for (pci, now) in self.overrides(&left)? {
            if let Some(vf) = observed.vfs.iter_mut().find(|v| v.pci == pci) {
                vf.driver_override = Some(now).filter(|n| !n.is_empty());
            }
        }
        self.note(problems);
        Ok(observed)
    }

    /// Which VFs ib_ipoib has made no netdev for. What this run has bound may still get its.
    fn record_netdevs(
        &mut self,
        observed: &mut ObservedPf,
        problems: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        observed.vfs.iter_mut().for_each(|vf| vf.ipoib_failed = false);
        let mut lacking = self.watch.machine.without_netdev(observed);
        lacking.retain(|(vf, _)| !self.attempts.have_bound(*vf));
        if lacking.is_empty() || self.is_rdma_held {
            return Ok(());
        }
        let devices = lacking.iter().map(|(_, device)| device.clone()).collect();
        match self.watch.ask_ipoib_netdevs(devices)? {
            Ok(counts) => {
                observed.record_netdevs(&lacking, &counts);
                // The answer waits for registrations, by whose end the netdev has come.
                let mut now = self.watch.machine.look(problems).vfs;
                for vf in
                    observed.vfs.iter_mut().filter(|vf| lacking.iter().any(|l| l.0 == vf.index))
                {
                    let seen = now.iter_mut().find(|seen| seen.index == vf.index);
                    vf.own = seen.and_then(|seen| seen.own.take());
                }
            }
            Err(why) => {
                self.is_rdma_held = true;
                problems.push(format!("VFs may have netdevs in another network namespace: {why}"));
            }
        }
        Ok(())
    }

    /// `driver_override` of these VFs, as far as no probe hangs there.
    fn overrides(&mut self, vfs: &[PciAddress]) -> anyhow::Result<Vec<(PciAddress, String)>> {
        let known = self.watch.ask_overrides(vfs)?;
        let is_known = |vf: &PciAddress| known.iter().any(|(pci, _)| pci == vf);
        self.record.hang(vfs.iter().copied().filter(|vf| !is_known(vf)).collect());
        Ok(known)
    }

    /// What could not be read, said once.
    fn note(&mut self, problems: impl IntoIterator<Item = String>) {
        for problem in problems {
            if !self.report.problems.contains(&problem) {
                self.report.problems.push(problem);
            }
        }
    }

    /// What of the plan is to be tried now.
    fn due_steps(&self, plan: &VfPlan, observed: &ObservedPf) -> Vec<VfStep> {
        let is_awaited = |vf| {
            let want = self.wanted.vfs.iter().find(|want| want.index == vf);
            want.zip(observed.vf(vf)).is_some_and(|(want, seen)| self.comes(want, seen, observed))
        };
        due(&self.open_steps(plan), is_awaited)
    }

    /// What of the plan is still to be tried: nothing twice, and nothing of a
    /// VF for which something before it was in vain.
    fn open_steps(&self, plan: &VfPlan) -> Vec<VfStep> {
        let in_vain = |s: &&VfStep| self.attempts.has(s);
        let lost: Vec<VfIndex> = plan
            .steps
            .iter()
            .filter(in_vain)
            .filter(|s| !matches!(s, VfStep::Policy { .. }) && !s.is_repeated())
            .filter_map(VfStep::vf)
            .collect();
        let no_number = plan.steps.iter().any(|s| s.stage() == Stage::Count && in_vain(&s));
        let only_back = no_number || self.is_unrecorded || self.watch.is_late();
        // VFs that the kernel is still creating would be probed: the child restores it after them.
        let is_counting =
            matches!(self.attempts.failed_count(), Some((_, StepFailure::Unfinished)));
        let is_too_early = |s: &VfStep| is_counting && matches!(s, VfStep::RestoreAutoprobe { .. });
        let open = |s: &&VfStep| {
            let is_in_time = s.stage() == Stage::Restore || !only_back;
            let is_of_lost = s.vf().is_some_and(|vf| lost.contains(&vf));
            let is_held_up = is_of_lost && !matches!(s, VfStep::Policy { .. });
            is_in_time && !in_vain(s) && !is_too_early(s) && !is_held_up
        };
        plan.steps.iter().filter(open).cloned().collect()
    }

    /// Do the steps of one stage. Returns the VFs that were bound.
    fn carry_out(
        &mut self,
        stage: Stage,
        steps: Vec<VfStep>,
        observed: &ObservedPf,
    ) -> anyhow::Result<Vec<ObservedVf>> {
        match stage {
            Stage::Prepare => {
                self.record.probing_goes_off();
                if let Err(e) = self.watch.machine.write(&self.record) {
                    self.record.forget_what_was_seen();
                    self.is_unrecorded = true;
                    self.report.problems.push(format!(
                        "{e}, so that it is not switched off, and the VFs are left as they are"
                    ));
                    return Ok(Vec::new());
                }
            }
            Stage::Bind => {
                self.tell_names(observed);
                self.remember_overrides(&steps, observed)?;
                // A signal may have come meanwhile.
                if self.watch.is_late() {
                    return Ok(Vec::new());
                }
            }
            Stage::Count => return self.change_number(steps, observed).map(|()| Vec::new()),
            _ => {}
        }
        if let Some(first) = together(&steps).first() {
            live_line::update(&format!("PF {}: {first}", self.wanted.pf));
        }
        // One request a VF: its settings in order, the VFs at the same time.
        let mut groups: Vec<(Vec<VfStep>, Vec<Request>)> = Vec::new();
        for step in steps {
            let vf = step.vf().and_then(|vf| observed.vf(vf));
            if stage == Stage::Bind && vf.is_some_and(|vf| self.record.is_hung(vf.pci)) {
                let why = "cannot read driver_override: a probe by another driver hangs";
                self.note_step(step, Some(StepFailure::Other(why.to_owned())));
                continue;
            }
            let Some(request) = request(&step, observed, self.record.undo(), &self.watch.machine)
            else {
                let why = "the VF has disappeared".to_owned();
                self.note_step(step, Some(StepFailure::Other(why)));
                continue;
            };
            let is_of_vf = |(group, _): &&mut (Vec<VfStep>, Vec<Request>)| {
                stage == Stage::Administer && group.first().is_some_and(|f| f.vf() == step.vf())
            };
            match groups.iter_mut().find(is_of_vf) {
                Some((group, requests)) => {
                    group.push(step);
                    requests.push(request);
                }
                None => groups.push((vec![step], vec![request])),
            }
        }
        let (groups, requests): (Vec<_>, Vec<_>) = groups.into_iter().unzip();
        let requests: Vec<Request> = requests.into_iter().map(Request::Each).collect();
        let until = match stage {
            Stage::Restore => self.watch.until_restored(),
            _ => self.watch.deadline,
        };
        let replies = self.watch.ask(Responder::Child, &requests, until)?;
        let mut bound = Vec::new();
        for (group, reply) in groups.into_iter().zip(replies) {
            let each: Vec<Option<Reply>> = match reply {
                Some(Ok(Answer::Each(each))) => {
                    each.into_iter().map(|one| Some(one.map_err(Failure::Refused))).collect()
                }
                other => vec![other; group.len()],
            };
            for (step, reply) in group.into_iter().zip(each) {
                bound.extend(self.take_reply(step, reply, observed));
            }
        }
        if stage == Stage::Bind {
            self.names_until = self.watch.now() + NAMES;
        }
        if stage == Stage::Restore {
            self.attempts.done().for_each(|step| self.record.forget(step));
        }
        Ok(bound)
    }

    /// Have udev name the VFs, once a run, before the first is bound.
    fn tell_names(&mut self, observed: &ObservedPf) {
        if self.names_are_told {
            return;
        }
        self.names_are_told = true;
        let of = |want: &WantedVf| Some((observed.vf(want.index)?.pci, want.names.clone()));
        let names: Vec<(PciAddress, VfNames)> = self.wanted.vfs.iter().filter_map(of).collect();
        if let Err(e) = self.watch.machine.name_vfs(&names) {
            self.report.problems.push(format!("cannot write udev rules for the names of VFs: {e}"));
        }
    }

    /// Write down `driver_override` of the VFs to be bound, as it is.
    fn remember_overrides(
        &mut self,
        steps: &[VfStep],
        observed: &ObservedPf,
    ) -> anyhow::Result<()> {
        let of = |step: &VfStep| Some(observed.vf(step.vf()?)?.pci);
        let is_new = |pci: &PciAddress| !self.record.undo().overrides.contains_key(pci);
        let unknown: Vec<PciAddress> = steps.iter().filter_map(of).filter(is_new).collect();
        let known = if self.attempts.have_made_vfs() {
            // What this run has made has none yet.
            unknown.into_iter().map(|pci| (pci, String::new())).collect()
        } else {
            self.overrides(&unknown)?
        };
        self.record.overrides_change(known);
        self.write_record();
        Ok(())
    }

    fn write_record(&mut self) {
        self.report.problems.extend(self.watch.machine.write(&self.record).err());
    }

    /// From one number of VFs to another, by none.
    fn change_number(&mut self, steps: Vec<VfStep>, observed: &ObservedPf) -> anyhow::Result<()> {
        let pf = self.wanted.pf;
        for step in steps {
            let VfStep::Count { from, to } = step else { continue };
            live_line::update(&format!("PF {pf}: {step}"));
            let mut reply = Some(Ok(Answer::Done));
            if from > 0 {
                let vfs = observed.vfs.iter().map(|vf| vf.pci).collect();
                reply = self.ask_number(to_number(pf, 0, vfs))?;
            }
            if matches!(reply, Some(Ok(Answer::Done))) {
                // Those of before are gone, who used them, and what was to be put back at them:
                // that is written down before there are others with their addresses.
                self.uses.clear();
                if self.record.vfs_are_gone() {
                    self.write_record();
                }
                reply = self.ask_number(to_number(pf, to, Vec::new()))?;
            }
            let is_made = matches!(reply, Some(Ok(Answer::Done)));
            self.take_reply(step, reply, observed);
            if is_made {
                self.wait_for_links(to)?;
            }
        }
        Ok(())
    }

    fn ask_number(&mut self, request: Request) -> anyhow::Result<Option<Reply>> {
        let until = self.watch.deadline;
        Ok(self.watch.ask(Responder::Child, &[request], until)?.pop().flatten())
    }

    /// Note what a reply says of a step.
    fn take_reply(
        &mut self,
        step: VfStep,
        reply: Option<Reply>,
        observed: &ObservedPf,
    ) -> Option<ObservedVf> {
        match reply {
            Some(Ok(Answer::Done)) => self.note_step(step, None),
            Some(Ok(Answer::Bound(own))) => {
                let bound = self.bound(&step, own, observed);
                self.note_step(step, None);
                return bound;
            }
            Some(Ok(Answer::InUse(uses))) => {
                // Taken since the plan was made: the next plan leaves them alone.
                self.uses.extend(uses_by_index(observed, uses));
            }
            other => self.note_step(step, Some(failure(other))),
        }
        None
    }

    /// The VF that `step` has bound, as it is then.
    fn bound(
        &self,
        step: &VfStep,
        own: Option<VfDevices>,
        observed: &ObservedPf,
    ) -> Option<ObservedVf> {
        let VfStep::Bind { vf, driver, .. } = step else { return None };
        let seen = observed.vf(*vf)?.clone();
        // Who binds puts it back.
        let prior = self.record.undo().overrides.get(&seen.pci);
        let driver_override = prior.filter(|o| !o.is_empty()).cloned();
        Some(ObservedVf { driver: Some(driver.clone()), own, driver_override, ..seen })
    }

    /// Note what became of a step, and tell.
    fn note_step(&mut self, step: VfStep, failure: Option<StepFailure>) {
        let pci = self.wanted.pf;
        let _step = error_span!("step", %step, %pci, vf = step.vf().map(display)).entered();
        match &failure {
            None => debug!(message_id = kinds::STEP_DONE, "done: {step}"),
            Some(cause) => {
                warn!(message_id = kinds::STEP_FAILED, %cause, "PF {pci}: failed: {step}: {cause}");
            }
        }
        self.attempts.add(StepDone { step, failure });
    }

    fn wait_for_links(&mut self, to: u16) -> anyhow::Result<()> {
        let until = self.watch.deadline.min(self.watch.now() + LINKS);
        let Some(last) = to.checked_sub(1) else { return Ok(()) };
        while !self.watch.machine.has_vf(last) && self.watch.now() < until && !self.watch.is_stopped
        {
            // It may have come before anybody listened.
            if !self.watch.machine.listen_to_devices() {
                self.watch.wait(until)?;
            }
        }
        Ok(())
    }

    /// Until every VF with a driver has its RDMA device and its netdev, and a problem that
    /// `passes` may be over. Only what nobody waits for is read meanwhile.
    fn wait_for_devices(&mut self, before: &ObservedPf, passes: bool) -> anyhow::Result<()> {
        let is_awaited = |want: &&WantedVf| {
            before.vf(want.index).is_some_and(|seen| self.is_awaited(want, seen, before))
        };
        let mut awaited = self.wanted.vfs.iter().filter(is_awaited).peekable();
        if awaited.peek().is_some() {
            let awaited = vf_ranges(awaited.map(|want| want.index));
            live_line::update(&format!("PF {}: waiting for the devices of {awaited}", before.pf));
        }
        if matches!(before.backend, Backend::Mlx4 { iov: Some(_) }) {
            // The kernel tells nobody when the subnet manager grants a GUID.
            return self.watch.wait(self.watch.now() + GRANT);
        }
        if self.watch.machine.listen_to_devices() {
            // It may have come before anybody listened.
            return Ok(());
        }
        loop {
            self.give_udev_time();
            let now = self.watch.now();
            let until = Some(self.names_until).filter(|until| *until > now);
            self.watch.wait(until.unwrap_or(self.watch.deadline))?;
            // Told by the whole look that follows.
            let mut problems = Vec::new();
            let now = self.watch.machine.look(&mut problems);
            let comes = self.is_any_awaited(&now);
            let is_other = now.driver != before.driver
                || now.addresses() != before.addresses()
                || now.link_layer != before.link_layer
                || now.backend != before.backend;
            let is_over = !comes && (!passes || now.vfs.len() == self.wanted.vfs.len());
            if self.watch.is_late() || is_other || is_over {
                return Ok(());
            }
        }
    }

    /// True if waiting may bring what a VF lacks.
    fn is_any_awaited(&self, pf: &ObservedPf) -> bool {
        let comes =
            |want: &WantedVf| pf.vf(want.index).is_some_and(|seen| self.is_awaited(want, seen, pf));
        self.wanted.vfs.iter().any(comes)
    }

    /// One that this run has not bound, with an RDMA device and no netdev, has its
    /// netdev in another network namespace: it does not come. One of the CNI's may have its
    /// RDMA device there, too.
    fn is_awaited(&self, want: &WantedVf, seen: &ObservedVf, pf: &ObservedPf) -> bool {
        self.comes(want, seen, pf) || self.awaits_names(want, seen)
    }

    /// While udev has events to work on, that of a name may be among them.
    fn give_udev_time(&mut self) {
        let now = self.watch.now();
        if self.names_until <= now && !self.watch.machine.is_udev_settled() {
            self.names_until = now + NAMES;
        }
    }

    /// udev may still give it its names: this run has bound it, or another one that was killed.
    fn awaits_names(&self, want: &WantedVf, seen: &ObservedVf) -> bool {
        self.watch.now() < self.names_until
            && lacks_name(want, seen).is_some()
            && (self.attempts.have_bound(want.index) || !self.watch.machine.is_udev_settled())
    }

    /// Its devices may still come.
    fn comes(&self, want: &WantedVf, seen: &ObservedVf, pf: &ObservedPf) -> bool {
        let fresh = self.attempts.have_bound(want.index);
        let is_used = self.uses.get(&want.index).is_some_and(|uses| !uses.is_empty());
        // A pod may have both devices of one that is the CNI's, or in use.
        // Who waits for the registration of its RDMA device gets no answer about netdevs.
        let is_open = seen.own.is_none() || self.is_rdma_held;
        let is_open = is_open && want.owner != VfOwner::Cni && !is_used;
        may_come(want, seen, pf) && (is_open || fresh || awaits_grant(want, seen))
    }

    fn finish(
        mut self,
        mut observed: ObservedPf,
        plan: VfPlan,
    ) -> anyhow::Result<(PfReport, Watch<M>)> {
        self.tell_names(&observed);
        // What a VF showed when it was bound is true still, but for the names that udev has
        // given its devices since, unless the VF has gone with the PF's driver.
        observed.vfs.retain(|vf| self.watch.machine.has_vf(vf.index.get()));
        let mut problems = Vec::new();
        self.watch.machine.read_names(&mut observed, &mut problems);
        self.note(problems);
        if !plan.steps.iter().any(|step| step.stage() == Stage::Restore) {
            self.record.forget_what_was_seen();
        }
        self.write_record();
        let judge = |run: &Self| {
            let (observed, is_rdma_held) = (&observed, run.is_rdma_held);
            let udev_works = !run.watch.machine.is_udev_settled();
            let seen = judge::LastLook { observed, is_rdma_held, udev_works };
            judge::vfs(run.wanted, seen, &plan, &run.attempts, &run.watch.facts)
        };
        let mut vfs = judge(&self);
        if vfs.iter().any(|v| !v.right) || self.attempts.failed_count().is_some() {
            // What the kernel said while only the child was listened to.
            self.watch.wait(Moment::START)?;
            vfs = judge(&self);
        }
        self.report.vfs = vfs;
        let notes = untold::notes(&self.untold, self.wanted, &observed, &self.attempts);
        self.report.problems.extend(notes);
        // It says more than the problem that this has left behind.
        let facts = &self.watch.facts;
        let number = judge::number_failed(&plan, &self.attempts, facts, self.wanted.pf);
        self.report.problem = number.or(plan.problem);
        self.report.steps = self.attempts.0;
        self.report.deferred = plan.deferred;
        let all_right =
            self.report.vfs.iter().all(|v| v.right || v.deferred) && self.report.problem.is_none();
        let put_back = self.record.undo().is_empty();
        let verdict = match (all_right && put_back, self.report.deferred.is_empty()) {
            (true, true) => Verdict::Done,
            (true, false) => Verdict::Deferred,
            (false, _) if self.watch.is_stopped => Verdict::Interrupted,
            (false, _) => Verdict::Failed,
        };
        if !put_back {
            let who = match self.watch.machine.child() {
                Some(pid) => format!("process {pid}, when it has finished, or "),
                None => String::new(),
            };
            self.report.problems.push(format!(
                "sriov_drivers_autoprobe or driver_override could not be restored; {who}the next `ibprov apply` tries again"
            ));
        }
        Ok((ended(self.report, self.watch.now(), verdict), self.watch))
    }
}

/// What is seen once all VFs of a stage are `bound`; `None` if not all is known.
fn as_bound(mut observed: ObservedPf, bound: Vec<ObservedVf>) -> Option<ObservedPf> {
    for vf in bound {
        // vfio gives it nothing to show.
        if vf.own.is_none() && !vf.driver.as_deref().is_some_and(is_vfio) {
            return None;
        }
        let seen = observed.vfs.iter_mut().find(|seen| seen.index == vf.index)?;
        *seen = vf;
    }
    Some(observed)
}
