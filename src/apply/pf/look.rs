//! Looking at a PF, and asking the child for what may hang.

use std::collections::BTreeMap;

use super::steps::failure;
use super::{GRACE_USEC, GRANT_USEC, LINKS_USEC, Purpose, Run};
use crate::host::clock;
use crate::names::{PciAddress, VfIndex};
use crate::observe::pf::dir;
use crate::observe::{Backend, Look, ObservedPf, pf};
use crate::plan::VfPlan;
use crate::plan::vf::{disturbed, vf_steps};
use crate::workers::{Answer, Reply, Request};

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
            for reply in self.ask(&Request::all_of(&observed), self.last_moment())? {
                match reply {
                    Some(Ok(Answer::Administered(told))) => observed.learn(told, &mut problems),
                    Some(other) => problems.push(failure(Some(&other)).to_string()),
                    None => {
                        problems.push(format!(
                        "the driver of the PF did not say what it administers for its VFs before the deadline: process {} still asks; a firmware command is given up after 60 s",
                        self.worker.pid().unwrap_or_default()
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
        let functions: Vec<PciAddress> = pcis.iter().filter_map(|p| p.parse().ok()).collect();
        let requests: Vec<_> = functions.iter().copied().map(Request::Override).collect();
        let replies = self.ask(&requests, self.last_moment())?;
        let known = |(pci, reply): (PciAddress, _)| match reply {
            Some(Ok(Answer::Override(driver))) => {
                Some((pci.to_string(), driver.unwrap_or_default()))
            }
            _ => None,
        };
        let known: Vec<_> = functions.into_iter().zip(replies).filter_map(known).collect();
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
            let vfs = unknown.iter().filter_map(of).map(|v| v.pci).collect();
            let reply = self.ask(&[Request::Uses(vfs)], self.deadline)?.pop().flatten();
            let uses = match reply {
                Some(Ok(Answer::Uses(uses))) => uses,
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
        requests: &[Request],
        until: u64,
    ) -> anyhow::Result<Vec<Option<Reply>>> {
        let numbers: Vec<u64> = requests.iter().map(|r| self.worker.ask(r)).collect();
        let mut replies = BTreeMap::new();
        loop {
            replies.extend(self.worker.replies());
            let until = if self.stopped { until.min(self.last_moment()) } else { until };
            let is_all = numbers.iter().all(|number| replies.contains_key(number));
            if is_all || clock::monotonic_usec() >= until {
                return Ok(numbers.iter().map(|number| replies.remove(number)).collect());
            }
            let child = self.worker.fd().into_iter().collect();
            let happened = self.events.wait_only(until, child)?;
            if happened.stop && !self.stopped {
                self.deadline = self.deadline.min(clock::monotonic_usec());
            }
            self.learn(&happened);
        }
    }

    /// Until when what was changed for the work may be put back, and looked at
    /// for the last time.
    pub(super) const fn last_moment(&self) -> u64 {
        self.deadline.saturating_add(GRACE_USEC)
    }
}
