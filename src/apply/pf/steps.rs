//! Carrying out the steps of one stage, and remembering what must be put back.

use log::Level;
use nix::errno::Errno;

use super::{Run, undo_file};
use crate::host::netlink::VfSetting;
use crate::host::{answer, journal, state};
use crate::names::VfIndex;
use crate::observe::administered::alias_entry;
use crate::observe::pf::dir;
use crate::observe::{Backend, Look, ObservedPf};
use crate::report::events as kinds;
use crate::report::pf::{Stage, StepFailure, VfStep};
use crate::workers::{Answer, Failure, Reply, Request};

impl Run<'_> {
    pub(super) fn carry_out(
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
        self.bound.clear();
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
                self.note_step(step, Some(StepFailure::ProbeHangs));
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
        let requests: Vec<Request> = groups.iter().map(|(_, r)| r.clone()).collect();
        let replies = self.ask(&requests, until)?;
        for ((group, _), reply) in groups.into_iter().zip(replies) {
            let each: Vec<Option<Reply>> = match reply {
                Some(Ok(Answer::Each(each))) => {
                    each.into_iter().map(|r| Some(r.map_err(Failure::from))).collect()
                }
                other => vec![other; group.len()],
            };
            for (step, reply) in group.into_iter().zip(each) {
                self.judge(step, reply.as_ref());
            }
        }
        if stage == Stage::Restore {
            self.put_back();
        }
        Ok(())
    }

    /// Write down `driver_override` of the VFs to be bound, as it is.
    pub(super) fn remember_overrides(
        &mut self,
        steps: &[VfStep],
        observed: &ObservedPf,
    ) -> anyhow::Result<()> {
        let of = |step: &VfStep| address(step.vf()?, observed);
        let new = |pci: &String| !self.undo.overrides.contains_key(pci);
        let unknown: Vec<String> = steps.iter().filter_map(of).filter(new).collect();
        // What this run has made has none yet.
        let known = if self.tried.has_made_vfs() {
            unknown.into_iter().map(|pci| (pci, String::new())).collect()
        } else {
            self.overrides(&unknown)?
        };
        self.undo.overrides.extend(known);
        self.remember();
        Ok(())
    }

    /// From one number of VFs to another, by none.
    pub(super) fn count(
        &mut self,
        steps: Vec<VfStep>,
        observed: &ObservedPf,
    ) -> anyhow::Result<()> {
        for step in steps {
            let VfStep::Count { from, to } = step else { continue };
            let mut reply = Some(Ok(Answer::Done));
            let all = || observed.vfs.iter().map(|v| v.pci).collect();
            for (number, unless_used) in [(0, all()), (to, Vec::new())] {
                let is_due = if number == 0 { from > 0 } else { true };
                if is_due && matches!(reply, Some(Ok(Answer::Done))) {
                    let path = format!("{}/sriov_numvfs", dir(self.wanted.pf));
                    let value = number.to_string();
                    let request = Request::Write { path, value, unless_used };
                    reply = self.ask(&[request], self.deadline)?.pop().flatten();
                }
            }
            let done = matches!(reply, Some(Ok(Answer::Done)));
            self.judge(step, reply.as_ref());
            if done {
                // Those of before are gone, and who used them.
                self.uses.clear();
                self.undo.overrides.clear();
                self.wait_for_links(to)?;
            }
        }
        Ok(())
    }

    pub(super) fn request(&self, step: &VfStep, observed: &ObservedPf) -> Request {
        let pci = |vf: &VfIndex| observed.vfs.iter().find(|v| v.index == *vf).map(|v| v.pci);
        let write =
            |path: String, value: String, unless_used| Request::Write { path, value, unless_used };
        match step {
            VfStep::AutoprobeOff => self.autoprobe(false),
            VfStep::RestoreAutoprobe { on } => self.autoprobe(*on),
            // Done by `count`.
            VfStep::Count { .. } => Request::Each(Vec::new()),
            VfStep::Unbind { vf, driver } => {
                let Some(pci) = pci(vf) else { return Request::Each(Vec::new()) };
                let path = format!("/sys/bus/pci/drivers/{driver}/unbind");
                write(path, pci.to_string(), vec![pci])
            }
            VfStep::Bind { vf, driver } => {
                let Some(pci) = pci(vf) else { return Request::Each(Vec::new()) };
                let before = self.undo.overrides.get(&pci.to_string()).cloned().unwrap_or_default();
                Request::Bind { pci, driver: driver.clone(), before }
            }
            VfStep::RestoreOverride { pci, to } => {
                let to = if to.is_empty() { "\n".to_owned() } else { to.clone() };
                write(format!("{}/driver_override", dir(*pci)), to, Vec::new())
            }
            VfStep::NodeGuid { vf, .. }
            | VfStep::PortGuid { vf, .. }
            | VfStep::Policy { vf, .. } => self.setting(step, *vf, observed),
        }
    }

    pub(super) fn setting(&self, step: &VfStep, vf: VfIndex, observed: &ObservedPf) -> Request {
        let (file, text, setting) = match step {
            VfStep::NodeGuid { to, .. } => ("node", to.bytes(), VfSetting::NodeGuid(*to)),
            VfStep::PortGuid { to, .. } => ("port", to.bytes(), VfSetting::PortGuid(*to)),
            VfStep::Policy { to, .. } => ("policy", to.word().to_owned(), VfSetting::Policy(*to)),
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
                Request::SetVf { ifindex: ifindex.unwrap_or_default(), vf, setting }
            }
            Backend::Mlx4 { iov } => {
                let pci = observed.vfs.iter().find(|v| v.index == vf).map(|v| v.pci);
                let mut look = Look::new(self.root);
                let path = iov.as_ref().zip(pci);
                let path = path.map(|(iov, pci)| alias_entry(&mut look, iov, vf, pci));
                Request::Write {
                    path: path.unwrap_or_default(),
                    value: text.replace(':', ""),
                    unless_used: Vec::new(),
                }
            }
        }
    }

    pub(super) fn autoprobe(&self, on: bool) -> Request {
        Request::Write {
            path: format!("{}/sriov_drivers_autoprobe", dir(self.wanted.pf)),
            value: if on { "1" } else { "0" }.to_owned(),
            unless_used: Vec::new(),
        }
    }

    /// Note what the child's answer says of a step, and tell.
    pub(super) fn judge(&mut self, step: VfStep, reply: Option<&Reply>) {
        match reply {
            Some(Ok(Answer::Done)) => self.note_step(step, None),
            Some(Ok(Answer::Bound(own))) => {
                if let VfStep::Bind { vf, driver } = &step {
                    self.bound.push((*vf, driver.clone(), own.clone()));
                }
                self.note_step(step, None);
            }
            Some(Ok(Answer::InUse(uses))) => {
                // Taken since the plan was made: the next plan leaves it alone.
                if let Some(vf) = step.vf() {
                    self.uses.insert(vf, uses.clone());
                } else {
                    self.uses.extend(VfIndex::new(0).map(|vf| (vf, uses.clone())));
                }
            }
            other => self.note_step(step, Some(failure(other))),
        }
    }

    /// Note what became of a step, and tell.
    fn note_step(&mut self, step: VfStep, failure: Option<StepFailure>) {
        let mut fields =
            vec![("IBPROV_STEP", step.to_string()), ("IBPROV_PCI", self.wanted.pf.to_string())];
        match &failure {
            None => {
                journal::emit(kinds::STEP_DONE, Level::Debug, &format!("done: {step}"), &fields);
            }
            Some(failure) => {
                fields.push(("IBPROV_CAUSE", failure.to_string()));
                let text = format!("PF {}: failed: {step}: {failure}", self.wanted.pf);
                journal::emit(kinds::STEP_FAILED, Level::Warn, &text, &fields);
            }
        }
        self.tried.add(step, failure);
    }

    pub(super) fn remember(&mut self) {
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

    /// What was put back need not be remembered; written down with the end of the
    /// run, since to put it back once more does no harm.
    pub(super) fn put_back(&mut self) {
        for done in self.tried.iter().filter(|step| step.is_done()) {
            match &done.step {
                VfStep::RestoreAutoprobe { .. } => {
                    self.undo.autoprobe = None;
                }
                VfStep::RestoreOverride { pci, .. } => {
                    self.undo.overrides.remove(&pci.to_string());
                }
                _ => {}
            }
        }
    }
}

/// The PCI address of a VF.
pub(super) fn address(vf: VfIndex, observed: &ObservedPf) -> Option<String> {
    observed.vfs.iter().find(|v| v.index == vf).map(|v| v.pci.to_string())
}

/// What an answer that is no success says.
pub(super) fn failure(reply: Option<&Reply>) -> StepFailure {
    match reply {
        Some(Err(Failure::Refused(refusal))) => StepFailure::Refused {
            tried: refusal.tried.to_string(),
            said: refusal.said.clone(),
            errno: refusal.errno.map(Errno::from_raw),
        },
        Some(Err(Failure::NoChild(why))) => StepFailure::NoChild { why: why.clone() },
        Some(Ok(Answer::InUse(uses))) => StepFailure::InUse(uses.clone()),
        Some(Ok(other)) => StepFailure::Unexpected { answer: format!("{other:?}") },
        Some(Err(Failure::Silent)) | None => StepFailure::Unfinished,
    }
}
