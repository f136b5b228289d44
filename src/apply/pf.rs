//! `ibprov apply` for one PF: look, plan, do the next stage, look again, until
//! nothing is left to do or the deadline comes.
//!
//! What may hang is done by a child that holds the PF's lock. What is changed
//! only for the time of the work (automatic probing, driver_override) is
//! written down in `/run/ibprov/pf/PCI.undo` before, so that the next run puts
//! it back if this one is killed.

use std::os::fd::AsFd;

use log::Level;

use super::hand::{Answer, Numbered, Request, Set};
use super::pf_judge;
use crate::host::events::{Events, Happened};
use crate::host::hand::Hand;
use crate::host::{Root, answer, clock, journal, lock, state};
use crate::ladder::vf::may_come;
use crate::ladder::{self, Facts};
use crate::names::{PciAddress, VfIndex};
use crate::observe::pf::dir;
use crate::observe::{Backend, Look, ObservedPf, ObservedVf, Undo, pf};
use crate::plan::vf::{Uses, disturbed, vf_steps};
use crate::plan::{PfProblem, Stage, VfPlan, VfStep, WantedPf};
use crate::report::events as kinds;
use crate::report::pf::{PfReport, PfStepReport, PfVerdict};

/// The verb of the child that does what may hang.
pub const HAND: &str = "hand";
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
    let locks = lock::Locks::in_run()
        .map_err(|e| report.problems.push(format!("{e}: working without locks")))
        .ok();
    let watched: Vec<_> = locks.iter().map(lock::Locks::dir).collect();
    let mut events = Events::open_unprocessed(&watched)?;
    report.problems.append(&mut events.problems);
    let mut run = Run {
        wanted,
        purpose,
        root,
        deadline,
        events,
        lock: None,
        hand: None,
        number: 0,
        undo: Undo::default(),
        uses: Uses::new(),
        hung: Vec::new(),
        tried: Vec::new(),
        facts: Facts::default(),
        stopped: false,
        report,
    };
    match run.take_turn(locks.as_ref())? {
        Turn::Ours => {
            // It starts while this process looks around.
            run.hand = Some(Hand::start(HAND, run.lock.as_ref())?);
            run.undo = remembered(root, wanted.pf, &mut run.report.problems);
            let end = run.work()?;
            run.finish(end);
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
    hand: Option<Hand>,
    /// Of the next request.
    number: u64,
    undo: Undo,
    uses: Uses,
    /// VFs whose `driver_override` was not told: a driver's probe hangs there.
    hung: Vec<String>,
    /// What was done in this run, and how it failed.
    tried: Vec<(VfStep, String)>,
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
        loop {
            match locks.try_take(&format!("pf-{}", self.wanted.pf)) {
                Ok(held) => {
                    self.lock = Some(held);
                    return Ok(Turn::Ours);
                }
                Err(lock::LockError::Busy { .. }) if self.purpose == Purpose::Undo => {
                    return Ok(Turn::Another);
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
            let happened = self.events.wait(self.deadline)?;
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
        loop {
            let observed = self.look()?;
            let plan = self.plan(&observed)?;
            let steps = self.open_steps(&plan);
            let Some(stage) = steps.first().map(VfStep::stage) else {
                let passes = plan.problem.as_ref().is_some_and(PfProblem::may_pass);
                let comes = self.wanted.vfs.iter().any(|want| {
                    let seen = observed.vfs.iter().find(|v| v.index == want.index);
                    seen.is_some_and(|seen| may_come(want, seen, &observed))
                });
                if self.purpose == Purpose::Apply && !self.is_late() && (passes || comes) {
                    self.wait_for_devices(&observed)?;
                    continue;
                }
                return Ok((observed, plan));
            };
            let now: Vec<VfStep> = steps.into_iter().filter(|s| s.stage() == stage).collect();
            self.carry_out(stage, now, &observed)?;
        }
    }

    /// What of the plan is still to be tried: nothing twice, and nothing of a
    /// VF for which something before it was in vain.
    fn open_steps(&self, plan: &VfPlan) -> Vec<VfStep> {
        let in_vain = |s: &&VfStep| self.tried.iter().any(|(t, _)| t.is_same(s));
        let lost: Vec<VfIndex> = plan
            .steps
            .iter()
            .filter(in_vain)
            .filter(|s| !matches!(s, VfStep::Policy { .. }))
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

    /// The host now. The part that may hang is asked of the child.
    fn look(&mut self) -> anyhow::Result<ObservedPf> {
        let mut look = Look::new(self.root);
        let mut observed = pf::look(&mut look, self.wanted.pf, self.undo.clone());
        let mut problems: Vec<String> = look.problems.into_iter().collect();
        if !observed.vfs.is_empty() {
            // By netlink it is one question for all; files can be read by several.
            let chunk = match observed.backend {
                Backend::Netlink { .. } => observed.vfs.len(),
                _ => observed.vfs.len().div_ceil(4).max(4),
            };
            let request = |vfs: &[ObservedVf]| Request::Ask {
                pf: self.wanted.pf.to_string(),
                backend: observed.backend.clone(),
                vfs: vfs.iter().map(|v| (v.index.get(), v.pci.to_string())).collect(),
            };
            let requests = observed.vfs.chunks(chunk).map(request).collect();
            for answer in self.ask(requests, self.last_moment())? {
                match answer {
                    Some(Answer::Asked(asked)) => observed.learn(asked, &mut problems),
                    Some(other) => problems.push(failure(Some(&other))),
                    None => {
                        problems.push(format!(
                        "the driver of the PF did not say what it administers for its VFs before the deadline: process {} still asks; a firmware command is given up after 60 s",
                        self.hand.as_ref().map_or(0, Hand::pid)
                    ));
                        // Nothing more can be judged, only put back.
                        self.deadline = self.deadline.min(clock::monotonic_usec());
                        break;
                    }
                }
            }
        }
        let left: Vec<String> = self.undo.overrides.keys().cloned().collect();
        for (pci, now) in self.overrides(left)? {
            if let Some(vf) = observed.vfs.iter_mut().find(|v| v.pci.to_string() == pci) {
                vf.driver_override = Some(now).filter(|n| !n.is_empty());
            }
        }
        for problem in problems {
            if !self.report.problems.contains(&problem) {
                self.report.problems.push(problem);
            }
        }
        Ok(observed)
    }

    /// Who alone may bind these functions; left out where it was not answered:
    /// a driver's probe hangs there.
    fn overrides(&mut self, pcis: Vec<String>) -> anyhow::Result<Vec<(String, String)>> {
        let requests = pcis.iter().map(|p| Request::Override(p.clone())).collect();
        let answers = self.ask(requests, self.last_moment())?;
        let known = |(pci, answer)| match answer {
            Some(Answer::Override(text)) => Some((pci, text)),
            _ => None,
        };
        let known: Vec<_> = pcis.iter().cloned().zip(answers).filter_map(known).collect();
        let is_hung = |pci: &&String| !known.iter().any(|(k, _)| k == *pci);
        self.hung = pcis.iter().filter(is_hung).cloned().collect();
        Ok(known)
    }

    /// The plan, with all known that it must know of who uses what.
    fn plan(&mut self, observed: &ObservedPf) -> anyhow::Result<VfPlan> {
        loop {
            let plan = vf_steps(self.wanted, observed, &self.uses);
            let unknown: Vec<VfIndex> = disturbed(&plan, observed)
                .into_iter()
                .filter(|vf| !self.uses.contains_key(vf))
                .collect();
            if unknown.is_empty() || self.purpose == Purpose::Undo {
                return Ok(plan);
            }
            let of = |vf: &VfIndex| observed.vfs.iter().find(|v| v.index == *vf);
            let vfs = unknown.iter().filter_map(of).map(|v| v.pci.to_string()).collect();
            let answer = self.ask(vec![Request::Uses(vfs)], self.deadline)?.pop().flatten();
            let uses = match answer {
                Some(Answer::Uses(uses)) => uses,
                other => {
                    let why = failure(other.as_ref());
                    vec![vec![crate::observe::Use::Unknown { why }]; unknown.len()]
                }
            };
            self.uses.extend(unknown.into_iter().zip(uses));
        }
    }

    fn carry_out(
        &mut self,
        stage: Stage,
        steps: Vec<VfStep>,
        observed: &ObservedPf,
    ) -> anyhow::Result<()> {
        match stage {
            Stage::Prepare => {
                self.undo.autoprobe = Some(true);
                self.remember();
            }
            Stage::Bind => self.remember_overrides(&steps, observed)?,
            Stage::Count => return self.count(steps, observed),
            _ => {}
        }
        let until = if stage == Stage::Restore { self.last_moment() } else { self.deadline };
        // One request a VF: its settings in order, the VFs at the same time.
        let mut groups: Vec<(Vec<VfStep>, Request)> = Vec::new();
        for step in steps {
            if matches!(step, VfStep::Bind { .. })
                && step
                    .vf()
                    .and_then(|vf| address(vf, observed))
                    .is_some_and(|p| self.hung.contains(&p))
            {
                let said = Answer::Failed {
                    tried: "read driver_override".to_owned(),
                    said: "another driver's probe of it hangs".to_owned(),
                    errno: None,
                };
                self.judge(step, Some(&said));
                continue;
            }
            let request = self.request(&step, observed);
            match groups.iter_mut().find(|(g, _)| {
                stage == Stage::Administer && g.first().is_some_and(|f| f.vf() == step.vf())
            }) {
                Some((group, Request::Each(all))) => {
                    group.push(step);
                    all.push(request);
                }
                _ => groups.push((vec![step], Request::Each(vec![request]))),
            }
        }
        let requests = groups.iter().map(|(_, r)| r.clone()).collect();
        let answers = self.ask(requests, until)?;
        for ((group, _), answer) in groups.into_iter().zip(answers) {
            let each = match answer {
                Some(Answer::Each(each)) => each.into_iter().map(Some).collect(),
                other => vec![other; group.len()],
            };
            for (step, answer) in group.into_iter().zip(each) {
                self.judge(step, answer.as_ref());
            }
        }
        if stage == Stage::Restore {
            self.put_back();
        }
        Ok(())
    }

    /// Write down `driver_override` of the VFs to be bound, as it is.
    fn remember_overrides(
        &mut self,
        steps: &[VfStep],
        observed: &ObservedPf,
    ) -> anyhow::Result<()> {
        let of = |step: &VfStep| address(step.vf()?, observed);
        let new = |pci: &String| !self.undo.overrides.contains_key(pci);
        let unknown: Vec<String> = steps.iter().filter_map(of).filter(new).collect();
        // What this run has made has none yet.
        let made = |(s, f): &(VfStep, String)| s.stage() == Stage::Count && f.is_empty();
        let known = if self.tried.iter().any(made) {
            unknown.into_iter().map(|pci| (pci, String::new())).collect()
        } else {
            self.overrides(unknown)?
        };
        self.undo.overrides.extend(known);
        self.remember();
        Ok(())
    }

    /// From one number of VFs to another, by none.
    fn count(&mut self, steps: Vec<VfStep>, observed: &ObservedPf) -> anyhow::Result<()> {
        for step in steps {
            let VfStep::Count { from, to } = step else { continue };
            let mut answer = Some(Answer::Done);
            let all = || observed.vfs.iter().map(|v| v.pci.to_string()).collect();
            for (number, unless_used) in [(0, all()), (to, Vec::new())] {
                let is_due = if number == 0 { from > 0 } else { true };
                if is_due && matches!(answer, Some(Answer::Done)) {
                    let path = format!("{}/sriov_numvfs", dir(self.wanted.pf));
                    let value = number.to_string();
                    let request = Request::Write { path, value, unless_used };
                    answer = self.ask(vec![request], self.deadline)?.pop().flatten();
                }
            }
            let done = matches!(answer, Some(Answer::Done));
            self.judge(step, answer.as_ref());
            if done {
                // Those of before are gone, and who used them.
                self.uses.clear();
                self.undo.overrides.clear();
                self.wait_for_links(to)?;
            }
        }
        Ok(())
    }

    fn wait_for_links(&mut self, to: u16) -> anyhow::Result<()> {
        let until = self.deadline.min(clock::monotonic_usec() + LINKS_USEC);
        loop {
            let last = format!("{}/virtfn{}", dir(self.wanted.pf), to.saturating_sub(1));
            if to == 0 || self.root.exists(&last) {
                return Ok(());
            }
            if clock::monotonic_usec() >= until || self.stopped {
                return Ok(());
            }
            let happened = self.events.wait(until)?;
            self.learn(&happened);
        }
    }

    /// Until every VF with a driver has its RDMA device and its netdev. Only
    /// what nobody waits for is read meanwhile.
    fn wait_for_devices(&mut self, before: &ObservedPf) -> anyhow::Result<()> {
        if matches!(before.backend, Backend::Mlx4 { iov: Some(_) }) {
            // The kernel tells nobody when the subnet manager grants a GUID.
            let happened =
                self.events.wait(self.deadline.min(clock::monotonic_usec() + GRANT_USEC))?;
            self.learn(&happened);
            return Ok(());
        }
        loop {
            let happened = self.events.wait(self.deadline)?;
            self.learn(&happened);
            let mut look = Look::new(self.root);
            let now = pf::look(&mut look, self.wanted.pf, self.undo.clone());
            let comes = self.wanted.vfs.iter().any(|want| {
                let seen = now.vfs.iter().find(|v| v.index == want.index);
                seen.is_some_and(|seen| may_come(want, seen, &now))
            });
            let is_other = now.driver != before.driver
                || now.addresses() != before.addresses()
                || now.link_layer != before.link_layer
                || now.backend != before.backend;
            if self.is_late() || is_other || (!comes && now.vfs.len() == self.wanted.vfs.len()) {
                return Ok(());
            }
        }
    }

    fn request(&self, step: &VfStep, observed: &ObservedPf) -> Request {
        let pci = |vf: &VfIndex| address(*vf, observed).unwrap_or_default();
        let write =
            |path: String, value: String, unless_used| Request::Write { path, value, unless_used };
        match step {
            VfStep::AutoprobeOff => self.autoprobe(false),
            VfStep::RestoreAutoprobe { on } => self.autoprobe(*on),
            // Done by `count`.
            VfStep::Count { .. } => Request::Each(Vec::new()),
            VfStep::Unbind { vf, driver } => {
                let path = format!("/sys/bus/pci/drivers/{driver}/unbind");
                write(path, pci(vf), vec![pci(vf)])
            }
            VfStep::Bind { vf, driver } => Request::Bind {
                pci: pci(vf),
                driver: driver.clone(),
                before: self.undo.overrides.get(&pci(vf)).cloned().unwrap_or_default(),
            },
            VfStep::RestoreOverride { pci, to } => {
                let to = if to.is_empty() { "\n".to_owned() } else { to.clone() };
                write(format!("{}/driver_override", dir(*pci)), to, Vec::new())
            }
            VfStep::NodeGuid { vf, .. }
            | VfStep::PortGuid { vf, .. }
            | VfStep::Policy { vf, .. } => self.setting(step, *vf, observed),
        }
    }

    fn setting(&self, step: &VfStep, vf: VfIndex, observed: &ObservedPf) -> Request {
        let (file, text, set) = match step {
            VfStep::NodeGuid { to, .. } => ("node", to.bytes(), Set::Node(to.value())),
            VfStep::PortGuid { to, .. } => ("port", to.bytes(), Set::Port(to.value())),
            VfStep::Policy { to, .. } => {
                ("policy", to.word().to_owned(), Set::Policy(to.word().to_owned()))
            }
            _ => return Request::Each(Vec::new()),
        };
        match &observed.backend {
            Backend::OfedSysfs => Request::Write {
                path: format!("{}/sriov/{vf}/{file}", dir(self.wanted.pf)),
                value: text,
                unless_used: Vec::new(),
            },
            // Without a netdev there is no step (PfProblem::NotReady).
            Backend::Netlink { ifindex } => {
                Request::SetVf { ifindex: ifindex.unwrap_or_default(), vf: vf.get(), set }
            }
            Backend::Mlx4 { iov } => {
                let pci = observed.vfs.iter().find(|v| v.index == vf).map(|v| v.pci);
                let mut look = Look::new(self.root);
                let path = iov.as_ref().zip(pci);
                let path = path.map(|(iov, pci)| pf::alias_entry(&mut look, iov, vf, pci));
                Request::Write {
                    path: path.unwrap_or_default(),
                    value: text.replace(':', ""),
                    unless_used: Vec::new(),
                }
            }
        }
    }

    fn autoprobe(&self, on: bool) -> Request {
        Request::Write {
            path: format!("{}/sriov_drivers_autoprobe", dir(self.wanted.pf)),
            value: if on { "1" } else { "0" }.to_owned(),
            unless_used: Vec::new(),
        }
    }

    /// Note what became of a step, and tell.
    fn judge(&mut self, step: VfStep, answer: Option<&Answer>) {
        let failure = match answer {
            Some(Answer::Done) => String::new(),
            Some(Answer::InUse(uses)) => {
                // Taken since the plan was made: the next plan leaves it alone.
                if let Some(vf) = step.vf() {
                    self.uses.insert(vf, uses.clone());
                } else {
                    self.uses.extend(VfIndex::new(0).map(|vf| (vf, uses.clone())));
                }
                return;
            }
            other => failure(other),
        };
        let mut fields =
            vec![("IBPROV_STEP", step.to_string()), ("IBPROV_PCI", self.wanted.pf.to_string())];
        if failure.is_empty() {
            journal::emit(kinds::STEP_DONE, Level::Debug, &format!("done: {step}"), &fields);
        } else {
            fields.push(("IBPROV_CAUSE", failure.clone()));
            let text = format!("PF {}: failed: {step}: {failure}", self.wanted.pf);
            journal::emit(kinds::STEP_FAILED, Level::Warn, &text, &fields);
        }
        self.report.steps.push(PfStepReport { step: step.clone(), failure: failure.clone() });
        self.tried.push((step, failure));
    }

    /// Ask the child for all of these, and wait for the answers until `until`.
    /// What has not come by then is `None`.
    fn ask(&mut self, requests: Vec<Request>, until: u64) -> anyhow::Result<Vec<Option<Answer>>> {
        let first = self.number;
        let mut answers: Vec<Option<Answer>> = vec![None; requests.len()];
        if self.hand.is_none() {
            self.hand = Some(Hand::start(HAND, self.lock.as_ref())?);
        }
        let Some(hand) = &mut self.hand else { return Ok(answers) };
        for what in requests {
            let line = serde_json::to_string(&Numbered { number: self.number, what })?;
            self.number += 1;
            // Whether it is gone is seen below.
            drop(hand.ask(&line));
        }
        while answers.iter().any(Option::is_none) {
            let Some(hand) = &mut self.hand else { break };
            let said = hand.said()?;
            for line in &said.lines {
                let answer: Numbered<Answer> = serde_json::from_str(line)?;
                let place = answer.number.checked_sub(first).and_then(|n| usize::try_from(n).ok());
                if let Some(slot) = place.and_then(|n| answers.get_mut(n)) {
                    *slot = Some(answer.what);
                }
            }
            if said.gone {
                let gone = Answer::Failed {
                    tried: "do it in a child process".to_owned(),
                    said: "the child was killed".to_owned(),
                    errno: None,
                };
                for slot in answers.iter_mut().filter(|a| a.is_none()) {
                    *slot = Some(gone.clone());
                }
                self.hand = None;
                break;
            }
            let until = if self.stopped { until.min(self.last_moment()) } else { until };
            if clock::monotonic_usec() >= until || answers.iter().all(Option::is_some) {
                break;
            }
            let Some(hand) = &self.hand else { break };
            let happened = self.events.wait_also(until, vec![hand.as_fd()])?;
            if happened.stop && !self.stopped {
                self.deadline = self.deadline.min(clock::monotonic_usec());
            }
            self.learn(&happened);
        }
        Ok(answers)
    }

    /// Until when what was changed for the work may be put back, and looked at
    /// for the last time.
    const fn last_moment(&self) -> u64 {
        self.deadline.saturating_add(GRACE_USEC)
    }

    fn remember(&mut self) {
        let file = undo_file(self.wanted.pf);
        let result = if self.undo.is_empty() {
            state::remove(&file)
        } else {
            // Plain values: there is no JSON that they do not make.
            let text = serde_json::to_string(&self.undo).unwrap_or_default();
            state::write(&file, &text).map(drop)
        };
        if let Err((path, e)) = result {
            self.report.problems.push(format!(
                "{}: {}: a run that is killed now would leave automatic probing off",
                path.display(),
                answer(&e)
            ));
        }
    }

    /// What was put back need not be remembered.
    fn put_back(&mut self) {
        for (step, failure) in &self.tried {
            match step {
                VfStep::RestoreAutoprobe { .. } if failure.is_empty() => {
                    self.undo.autoprobe = None;
                }
                VfStep::RestoreOverride { pci, .. } if failure.is_empty() => {
                    self.undo.overrides.remove(&pci.to_string());
                }
                _ => {}
            }
        }
        self.remember();
    }

    fn finish(&mut self, (observed, plan): (ObservedPf, VfPlan)) {
        let is_back = |s: &VfStep| s.stage() == Stage::Restore;
        if !plan.steps.iter().any(is_back) && !self.undo.is_empty() {
            self.undo.autoprobe = None;
            self.undo.overrides.retain(|pci, _| self.hung.contains(pci));
            self.remember();
        }
        self.report.problem_text =
            plan.problem.as_ref().map(ToString::to_string).unwrap_or_default();
        let failed_number =
            self.tried.iter().find(|(s, f)| s.stage() == Stage::Count && !f.is_empty());
        if let Some((step, failure)) = failed_number {
            self.report.problem_text =
                pf_judge::number_failed(step, failure, &self.facts, self.wanted.pf);
        }
        self.report.vfs = pf_judge::vfs(self.wanted, &observed, &plan, &self.tried, &self.facts);
        self.report.problem = plan.problem;
        self.report.deferred = plan.deferred;
        let all_right = self.report.vfs.iter().all(|v| v.right || v.deferred)
            && self.report.problem_text.is_empty();
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
    }

    fn end(&mut self, verdict: PfVerdict) {
        self.report.finished_usec = clock::monotonic_usec();
        self.report.verdict = verdict;
        self.report.exit_code = verdict.exit_code();
    }
}

/// The PCI address of a VF.
fn address(vf: VfIndex, observed: &ObservedPf) -> Option<String> {
    observed.vfs.iter().find(|v| v.index == vf).map(|v| v.pci.to_string())
}

/// An answer that is no success, in words.
fn failure(answer: Option<&Answer>) -> String {
    match answer {
        Some(Answer::Failed { tried, said, .. }) => format!("{tried}: {said}"),
        Some(Answer::InUse(uses)) => {
            uses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        Some(other) => format!("an unexpected answer: {other:?}"),
        None => "it did not come to its end before the deadline; a child process is still at it"
            .to_owned(),
    }
}
