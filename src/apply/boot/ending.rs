//! What a boot ends with: how each port and module is told, and the verdict.

use crate::ladder::Expectation;
use crate::model::{
    BootReport, Cause, LeftOut, ModuleOutcome, ModuleReport, ModuleTrouble, NotExpected,
    PortProgress, PortReport, Severity, Standing, Verdict,
};
use crate::names::{ModuleName, Moment, usec};

/// Who was not waited for; `has_plan` is true for a VF that a plan takes care of.
pub(super) fn left_out(
    expectation: &Expectation,
    has_plan: impl Fn(&NotExpected) -> bool,
) -> Vec<LeftOut> {
    let left_out = expectation.left_out.iter().filter(|(_, reason)| !has_plan(reason));
    left_out.map(|(pci, reason)| LeftOut { pci: *pci, reason: reason.clone() }).collect()
}

/// A port that was waited for from `since` on, and whose settings were made at
/// `made` if they were waited for.
pub(super) fn port(
    progress: &PortProgress,
    cause: Option<Cause>,
    since: Moment,
    made: Option<Moment>,
    now: Moment,
) -> PortReport {
    let ready = progress.is_ready();
    let ready_at = if ready {
        progress.named_usec.unwrap_or(now).max(since).max(made.unwrap_or_default())
    } else {
        now
    };
    PortReport {
        progress: progress.clone(),
        ready,
        missing: progress.missing(),
        cause,
        waited_usec: usec(ready_at.min(now).since(since)),
    }
}

/// A configured module that is not there because of `trouble`.
pub(super) fn missing_module(name: &ModuleName, trouble: ModuleTrouble) -> ModuleReport {
    ModuleReport { name: name.clone(), outcome: ModuleOutcome::Missing { trouble } }
}

/// How the boot went that `report` tells of.
pub(super) fn verdict(report: &BootReport) -> Verdict {
    let missing_module = |m: &ModuleReport| matches!(m.outcome, ModuleOutcome::Missing { .. });
    let ports = report.ports.iter().map(|p| p.progress.standing(p.cause.as_ref()));
    let pfs = report.pfs.iter().map(|pf| Standing::of_exit(pf.exit_code));
    // A PF with a bad plan, or one that is not there: both are not as wanted.
    let unresolved = report.unresolved_pfs.iter().map(|_| Standing::Missing);
    let rxe = report.rxe.iter().map(|rxe| rxe.state.standing());
    let configuration = report.configuration.iter().map(|error| match error.severity {
        Severity::Error => Standing::Missing,
        Severity::Warning | Severity::Info => Standing::Excused,
    });
    let modules = report.modules.iter().filter(|m| missing_module(m)).map(|_| Standing::Excused);
    let unset = report.steps.iter().filter(|step| step.is_unset()).map(|_| Standing::Excused);
    let all = ports.chain(pfs).chain(unresolved).chain(rxe).chain(configuration);
    match Standing::worst(all.chain(modules).chain(unset)) {
        Some(Standing::Missing) => Verdict::NotReady,
        Some(Standing::Excused) => Verdict::Exceptions,
        _ if report.ports.is_empty() && report.left_out.is_empty() && report.rxe.is_empty() => {
            Verdict::NothingExpected
        }
        _ => Verdict::Ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::boot::{Step, StepReport, blank};
    use crate::model::pf::Outcome;
    use crate::names::{NetnsMode, Rung, at};

    fn progress(reached: Rung, optional: bool) -> PortProgress {
        let mut port = PortProgress::absent("0000:4b:00.0", Rung::Named, String::new());
        port.reached = Some(reached);
        port.optional = optional;
        port
    }

    fn judged(ports: &[(Rung, bool, bool)], change: impl Fn(&mut BootReport)) -> Verdict {
        let mut report = blank(Moment::START);
        report.ports = ports
            .iter()
            .map(|(reached, optional, in_use)| {
                let cause = Cause { in_use: *in_use, ..Cause::waiting("", []) };
                port(
                    &progress(*reached, *optional),
                    Some(cause),
                    Moment::START,
                    None,
                    Moment::START,
                )
            })
            .collect();
        change(&mut report);
        verdict(&report)
    }

    #[test]
    fn one_missing_port_decides_unless_it_is_optional_or_in_use() {
        let (here, away) = ((Rung::Named, false, false), (Rung::Pci, false, false));
        assert_eq!(judged(&[], |_| ()), Verdict::NothingExpected);
        assert_eq!(judged(&[here], |_| ()), Verdict::Ready);
        assert_eq!(judged(&[here, away], |_| ()), Verdict::NotReady);
        assert_eq!(judged(&[here, (Rung::Pci, true, false)], |_| ()), Verdict::Exceptions);
        assert_eq!(judged(&[here, (Rung::Pci, false, true)], |_| ()), Verdict::Exceptions);
    }

    #[test]
    fn pfs_and_modules_count_too() {
        let here = [(Rung::Named, false, false)];
        let pf = |exit_code| {
            move |report: &mut BootReport| {
                let lost = Outcome::lost("0000:4b:00.0".parse().expect("address"), "x");
                report.pfs.push(Outcome { exit_code, ..lost });
            }
        };
        assert_eq!(judged(&here, pf(0)), Verdict::Ready);
        assert_eq!(judged(&here, pf(1)), Verdict::Exceptions);
        assert_eq!(judged(&here, pf(3)), Verdict::NotReady);
        let module = |report: &mut BootReport| {
            let trouble = ModuleTrouble::Stuck { pid: 7 };
            report.modules.push(missing_module(&"ib_umad".parse().expect("name"), trouble));
        };
        assert_eq!(judged(&here, module), Verdict::Exceptions);
        let mode = |took_usec, failure: Option<&str>| {
            let failure = failure.map(str::to_owned);
            move |report: &mut BootReport| {
                let step = Step::NetnsMode { mode: NetnsMode::Exclusive };
                let failure = failure.clone();
                report.steps.push(StepReport { step, started_usec: at(1), took_usec, failure });
            }
        };
        assert_eq!(judged(&here, mode(Some(5), None)), Verdict::Ready);
        assert_eq!(judged(&here, mode(Some(5), Some("EBUSY"))), Verdict::Exceptions);
        assert_eq!(judged(&here, mode(None, None)), Verdict::Exceptions, "it hangs");
    }

    #[test]
    fn a_port_was_waited_for_until_it_had_its_name_and_settings() {
        let mut ready = progress(Rung::Named, false);
        ready.named_usec = Some(at(50));
        let waited = |made| port(&ready, None, at(20), made, at(100)).waited_usec;
        assert_eq!((waited(None), waited(Some(at(70))), waited(Some(at(170)))), (30, 50, 80));
        ready.named_usec = Some(at(10));
        assert_eq!(port(&ready, None, at(20), None, at(100)).waited_usec, 0, "it was there before");
        assert_eq!(port(&progress(Rung::Pci, false), None, at(20), None, at(100)).waited_usec, 80);
    }
}
