//! Looking at a PF, and asking the child for what may hang.

use std::os::fd::AsFd;

use super::steps::failure;
use super::{GRACE_USEC, GRANT_USEC, LINKS_USEC, Purpose, Run};
use crate::host::clock;
use crate::names::VfIndex;
use crate::observe::pf::dir;
use crate::observe::{Backend, Look, ObservedPf, pf};
use crate::plan::VfPlan;
use crate::plan::vf::{disturbed, vf_steps};
use crate::workers::hand::{Answer, Numbered, Request, VERB};
use crate::workers::socket::Hand;

impl Run<'_> {
    /// The host now. The part that may hang is asked of the child.
    pub(super) fn look(&mut self) -> anyhow::Result<ObservedPf> {
        let mut look = Look::new(self.root);
        let observed = pf::look(&mut look, self.wanted.pf, self.undo.clone());
        self.ask_all(observed, look.problems.into_iter().collect())
    }

    /// What was looked at, with what is asked of the child, which knows how the rest
    /// is read. `problems` are those of the look.
    pub(super) fn ask_all(
        &mut self,
        mut observed: ObservedPf,
        mut problems: Vec<String>,
    ) -> anyhow::Result<ObservedPf> {
        if !observed.vfs.is_empty() {
            for answer in self.ask(Request::all_of(&observed), self.last_moment())? {
                match answer {
                    Some(Answer::Asked(asked)) => observed.learn(asked, &mut problems),
                    Some(other) => problems.push(failure(Some(&other)).to_string()),
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
        for (pci, now) in self.overrides(&left)? {
            if let Some(vf) = observed.vfs.iter_mut().find(|v| v.pci.to_string() == pci) {
                vf.driver_override = Some(now).filter(|n| !n.is_empty());
            }
        }
        self.note(problems);
        Ok(observed)
    }

    /// What could not be read, said once.
    pub(super) fn note(&mut self, problems: impl IntoIterator<Item = String>) {
        for problem in problems {
            if !self.report.problems.contains(&problem) {
                self.report.problems.push(problem);
            }
        }
    }

    /// Who alone may bind these functions; left out where it was not answered:
    /// a driver's probe hangs there.
    pub(super) fn overrides(&mut self, pcis: &[String]) -> anyhow::Result<Vec<(String, String)>> {
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
    pub(super) fn plan(&mut self, observed: &ObservedPf) -> anyhow::Result<VfPlan> {
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
                    let why = failure(other.as_ref()).to_string();
                    vec![vec![crate::report::Use::Unknown { why }]; unknown.len()]
                }
            };
            self.uses.extend(unknown.into_iter().zip(uses));
        }
    }

    pub(super) fn wait_for_links(&mut self, to: u16) -> anyhow::Result<()> {
        let until = self.deadline.min(clock::monotonic_usec() + LINKS_USEC);
        loop {
            let last = format!("{}/virtfn{}", dir(self.wanted.pf), to.saturating_sub(1));
            if to == 0 || self.root.exists(&last) {
                return Ok(());
            }
            if clock::monotonic_usec() >= until || self.stopped {
                return Ok(());
            }
            if self.events.listen_to_kernel_devices() {
                continue;
            }
            let happened = self.events.wait(until)?;
            self.learn(&happened);
        }
    }

    /// Until every VF with a driver has its RDMA device and its netdev. Only
    /// what nobody waits for is read meanwhile.
    pub(super) fn wait_for_devices(&mut self, before: &ObservedPf) -> anyhow::Result<()> {
        if matches!(before.backend, Backend::Mlx4 { iov: Some(_) }) {
            // The kernel tells nobody when the subnet manager grants a GUID.
            let happened =
                self.events.wait(self.deadline.min(clock::monotonic_usec() + GRANT_USEC))?;
            self.learn(&happened);
            return Ok(());
        }
        if self.events.listen_to_kernel_devices() {
            // It may have come before anybody listened.
            return Ok(());
        }
        loop {
            let happened = self.events.wait(self.deadline)?;
            self.learn(&happened);
            let mut look = Look::new(self.root);
            let now = pf::look(&mut look, self.wanted.pf, self.undo.clone());
            let comes = self.wanted.vfs.iter().any(|want| {
                let seen = now.vfs.iter().find(|v| v.index == want.index);
                seen.is_some_and(|seen| self.is_awaited(want, seen, &now))
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

    /// Ask the child for all of these, and wait for the answers until `until`.
    /// What has not come by then is `None`.
    pub(super) fn ask(
        &mut self,
        requests: Vec<Request>,
        until: u64,
    ) -> anyhow::Result<Vec<Option<Answer>>> {
        let first = self.number;
        let mut answers: Vec<Option<Answer>> = vec![None; requests.len()];
        if self.hand.is_none() {
            self.hand = Some(Hand::start(VERB, self.lock.as_ref())?);
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
            let happened = self.events.wait_only(until, vec![hand.as_fd()])?;
            if happened.stop && !self.stopped {
                self.deadline = self.deadline.min(clock::monotonic_usec());
            }
            self.learn(&happened);
        }
        Ok(answers)
    }

    /// Until when what was changed for the work may be put back, and looked at
    /// for the last time.
    pub(super) const fn last_moment(&self) -> u64 {
        self.deadline.saturating_add(GRACE_USEC)
    }
}
