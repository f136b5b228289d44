//! What a boot ends with: its report and verdict.

use super::Boot;
use crate::apply::warnings::send_queue_warning;
use crate::host::{clock, process};
use crate::ladder::{Expectation, cause};
use crate::names::{ModuleName, ModuleState};
use crate::observe::Observed;
use crate::report::boot::{LeftOut, ModuleOutcome, ModuleReport, PortReport};
use crate::report::{BootReport, Cause, PortProgress, Verdict};

impl Boot<'_> {
    pub(super) fn left_out(&mut self, expectation: &Expectation) {
        self.report.left_out = expectation
            .left_out
            .iter()
            .filter(|(_, reason)| !self.vfs.has_plan_for(reason))
            .map(|(pci, reason)| LeftOut { pci: *pci, reason: reason.clone() })
            .collect();
    }

    pub(super) fn finish(
        &mut self,
        forced: Option<Verdict>,
        ports: &[PortProgress],
        observed: &Observed,
    ) {
        let now = clock::monotonic_usec();
        self.steps.give_up(&self.done, &mut self.facts);
        (self.report.pfs, self.report.unresolved_pfs) = self.vfs.outcomes();
        if ports.iter().any(|p| !p.is_ready()) {
            self.learn_history();
        }
        self.report.ports = ports.iter().map(|p| self.port_report(p, observed, now)).collect();
        self.report.modules = self.module_reports(observed, ports.is_empty());
        self.report.problems.extend(observed.problems.iter().cloned());
        if !ports.is_empty() && !observed.udev.running {
            self.report.problems.push(
                "systemd-udevd is not running (/run/udev/control does not exist): nobody loads drivers or names netdevs".to_owned(),
            );
        }
        self.report.problems.extend(send_queue_warning(
            self.observer.root(),
            &self.rules,
            observed,
        ));
        self.report.steps = self.steps.reports();
        self.report.forks = self.steps.forks();
        self.report.timeline.sort_by_key(|m| m.usec);
        self.report.finished_usec = now;
        let verdict = forced.unwrap_or_else(|| verdict(&self.report));
        self.report.verdict = verdict;
        self.report.exit_code = verdict.exit_code();
        let usage = process::own_usage();
        self.report.cpu_usec = usage.cpu_usec.saturating_sub(self.report.cpu_before_usec);
        self.report.peak_memory_kib = usage.peak_memory_kib;
    }

    fn port_report(&self, port: &PortProgress, observed: &Observed, now: u64) -> PortReport {
        let since = self.since.get(&port.expected).copied().unwrap_or(now);
        let set = port.netdev.as_ref().and_then(|n| self.set.get(n).copied()).unwrap_or_default();
        let ready_at =
            if port.is_ready() { port.named_usec.unwrap_or(now).max(since).max(set) } else { now };
        PortReport {
            progress: port.clone(),
            ready: port.is_ready(),
            missing: port.missing(),
            cause: cause::cause(port, observed, &self.facts),
            waited_usec: ready_at.min(now).saturating_sub(since),
        }
    }

    fn module_reports(&self, observed: &Observed, nothing_expected: bool) -> Vec<ModuleReport> {
        let outcome = |name: &ModuleName| {
            let state = observed.modules.get(name).copied().unwrap_or(ModuleState::Absent);
            if self.there.contains(name) {
                return ModuleOutcome::AlreadyThere;
            }
            match (state, self.facts.modules.get(name)) {
                (ModuleState::Loaded, _) => ModuleOutcome::Loaded,
                _ if nothing_expected => ModuleOutcome::NotNeeded,
                (_, trouble) => {
                    let trouble = trouble.cloned().unwrap_or_else(|| {
                        self.steps.trouble(name, &self.rules, observed, self.observer.root())
                    });
                    let text = trouble.to_string();
                    let advice = trouble.advice(name);
                    ModuleOutcome::Missing { trouble, text, advice }
                }
            }
        };
        let load = self.config.modules.load.iter();
        load.map(|name| ModuleReport { name: name.clone(), outcome: outcome(name) }).collect()
    }
}

fn verdict(report: &BootReport) -> Verdict {
    let deferred =
        |p: &PortReport| p.progress.optional || p.cause.as_ref().is_some_and(|c: &Cause| c.by_site);
    let missing_module = |m: &ModuleReport| matches!(m.outcome, ModuleOutcome::Missing { .. });
    // A PF with a bad plan, or one that is not there: both are not as wanted.
    let wrong_pf = report.pfs.iter().any(|p| p.exit_code > 1) || !report.unresolved_pfs.is_empty();
    let deferred_pf = report.pfs.iter().any(|p| p.exit_code == 1);
    if wrong_pf || report.ports.iter().any(|p| !p.ready && !deferred(p)) {
        Verdict::NotReady
    } else if deferred_pf
        || report.ports.iter().any(|p| !p.ready)
        || report.modules.iter().any(missing_module)
    {
        Verdict::Deferred
    } else if report.ports.is_empty() && report.left_out.is_empty() {
        Verdict::NoInfiniband
    } else {
        Verdict::Ready
    }
}
