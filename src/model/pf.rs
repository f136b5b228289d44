//! The report of `ibprov apply` for one PF: `/run/ibprov/pf/PCI.json`, and its
//! text.

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Code, Finding, Kind, Report, Severity, Verdict,
    common::{as_text, with_remedy},
    not_read, seconds,
};
use crate::names::{
    Guid, IfName, Moment, PciAddress, RdmaName, VfIndex, VfRung, counted, grouped, vf_ranges,
};

pub use super::vf_cause::{DROPPED, REFUSED, StepFailure};
pub use super::vf_lack::{GuidAtPf, VfLack};
pub use super::vf_step::{Deferred, Stage, VfStep};

/// What a run at a PF is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Make the VFs what they shall be.
    Apply,
    /// Only put back what a run that was cut short has left.
    Undo,
}

/// All that `apply` saw and did at one PF. Times are microseconds of
/// CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PfReport {
    pub pf: PciAddress,
    #[serde(skip)]
    pub purpose: Purpose,
    pub started_usec: Moment,
    pub finished_usec: Moment,
    #[serde(skip)]
    pub verdict: Verdict,
    /// What stood in the way at the PF itself; in JSON a text, `reason`.
    #[serde(rename = "reason", serialize_with = "with_remedy")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub problem: Option<Finding>,
    /// What was done, in order.
    pub steps: Vec<StepDone>,
    /// The VFs of the plan.
    pub vfs: Vec<VfOutcome>,
    /// What was left undone, because a VF is in use.
    pub deferred: Vec<Deferred>,
    /// Failures of the PF as a whole, and what could not be read.
    #[serde(skip)]
    pub problems: Vec<String>,
}

/// A step and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepDone {
    /// What was to be done.
    #[serde(flatten)]
    pub step: VfStep,
    /// How it failed, if it did; in JSON a text.
    #[serde(rename = "reason", serialize_with = "as_text::option")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub failure: Option<StepFailure>,
}

impl StepDone {
    /// The system reported success.
    pub const fn is_done(&self) -> bool {
        self.failure.is_none()
    }
}

/// What a run came to at one VF of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VfOutcome {
    /// The VF that this is about.
    pub vf: VfIndex,
    pub pci: Option<PciAddress>,
    /// It is as wanted.
    pub right: bool,
    /// It is left as it is, because it is in use.
    pub deferred: bool,
    /// The highest rung it has reached.
    pub reached: Option<VfRung>,
    /// The rung that it is to reach.
    pub goal: VfRung,
    /// The node GUID of the plan.
    pub node_guid: Guid,
    /// The port GUID of the plan.
    pub port_guid: Guid,
    /// The GUID of its second InfiniBand port by the plan, if it can have one (mlx4).
    pub port2_guid: Option<Guid>,
    pub rdma: Option<RdmaName>,
    /// The netdev that it has on this host; `None` if it has none.
    pub netdev: Option<IfName>,
    /// What is to be said of it: why it is not as wanted, mostly; in JSON a text.
    #[serde(rename = "reason", serialize_with = "with_remedy")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub cause: Option<Finding>,
}

/// The report as JSON has it, with the sentence that says it all.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToldPf<'a> {
    headline: String,
    #[serde(flatten)]
    report: &'a PfReport,
}

impl PfReport {
    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<ToldPf<'_>> {
        let body = ToldPf { headline: self.headline(), report: self };
        Report::new(Kind::ApplyPf, self.verdict, self.findings(), body)
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = match self.purpose {
            Purpose::Apply => self.plan_findings(),
            Purpose::Undo => self.undo_findings(),
        };
        Finding::worst_first(&mut findings);
        findings.extend(not_read(&self.problems).into_iter().map(|f| f.about(self.pf)));
        findings
    }

    fn undo_findings(&self) -> Vec<Finding> {
        let warning = |busy| Finding { severity: Severity::Warning, ..busy };
        let busy = self.problem.clone().map(warning);
        let failed = self.steps.iter().filter_map(|step| {
            let message = format!("{}: {}", step.step, step.failure.as_ref()?);
            Some(Finding::error(Code::StepFailed, message))
        });
        busy.into_iter().chain(failed).map(|finding| finding.about(self.pf)).collect()
    }

    fn plan_findings(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.problem.clone().into_iter().collect();
        for same in self.wrong() {
            let Some(vf) = same.first() else { continue };
            let vfs = vf_ranges(same.iter().map(|vf| vf.vf));
            let why = vf.cause.as_ref();
            let message = match why {
                Some(why) => format!("{vfs}: {}: {}", vf.state(), why.message),
                None => format!("{vfs}: {}", vf.state()),
            };
            let finding = Finding::error(why.map_or(Code::VfNotAsPlanned, |w| w.code), message);
            let advice = why.iter().flat_map(|why| why.advice.clone());
            let severity = why.map_or(Severity::Error, |why| why.severity);
            findings.push(Finding { severity, ..finding }.about(self.pf).advise(advice));
        }
        for deferred in &self.deferred {
            let is_told = |vf: &VfOutcome| vf.deferred && deferred.vf() == Some(vf.vf);
            if !self.vfs.iter().any(is_told) {
                let message = deferred.to_string();
                findings.push(Finding::warning(Code::VfDeferred, message).about(self.pf));
            }
        }
        if self.verdict == Verdict::Interrupted {
            let message = "a signal interrupted the run";
            findings.push(Finding::warning(Code::Interrupted, message).about(self.pf));
        }
        let is_left = findings.is_empty() && self.verdict == Verdict::Failed;
        if is_left {
            let message = "not as planned".to_owned();
            findings.push(Finding::error(Code::VfNotAsPlanned, message).about(self.pf));
        }
        findings
    }

    /// The constant head of a report.
    pub const fn blank(pf: PciAddress, started_usec: Moment) -> Self {
        Self {
            pf,
            purpose: Purpose::Apply,
            started_usec,
            finished_usec: started_usec,
            verdict: Verdict::Interrupted,
            problem: None,
            steps: Vec::new(),
            vfs: Vec::new(),
            deferred: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The sentence that says it all.
    pub fn headline(&self) -> String {
        let took = seconds(self.finished_usec.since(self.started_usec));
        if self.purpose == Purpose::Undo {
            return format!("PF {}: {}", self.pf, self.restored(&took));
        }
        let right = self.vfs.iter().filter(|v| v.right).count();
        let changed = match self.steps.len() {
            0 => "nothing changed".to_owned(),
            n => counted(n, "step"),
        };
        let tail = match self.verdict {
            Verdict::Deferred => ", the others are in use".to_owned(),
            Verdict::Interrupted => ", then a signal stopped it".to_owned(),
            _ => String::new(),
        };
        let why = match self.verdict {
            Verdict::Failed => self.failure().map(|why| format!(" ({why})")),
            _ => None,
        };
        if let (true, Some(why)) = (self.vfs.is_empty(), &why) {
            return format!(
                "PF {}: the state of its VFs is unknown{why} after {took}, {changed}",
                self.pf
            );
        }
        format!(
            "PF {}: {right} of {} VFs as planned{} after {took}, {changed}{tail}",
            self.pf,
            self.vfs.len(),
            why.unwrap_or_default()
        )
    }

    /// What of the changes of an interrupted run was restored, and why not all.
    fn restored(&self, took: &str) -> String {
        if let Some(busy) = &self.problem {
            return format!(
                "nothing is restored yet ({}); that process restores sriov_drivers_autoprobe and driver_override when it has finished, or the next `ibprov apply` if it is killed",
                busy.message
            );
        }
        let count = self.steps.len();
        let failed = self.steps.iter().filter_map(|s| Some((&s.step, s.failure.as_ref()?)));
        let done = count - failed.clone().count();
        let why = failed.map(|(step, failure)| format!(" ({step}: {failure})")).next();
        format!(
            "{done} of {count} changes of an interrupted run restored{} after {took}",
            why.unwrap_or_default()
        )
    }

    /// What failed first, in few words.
    fn failure(&self) -> Option<String> {
        let is_count = |step: &&StepDone| step.step.stage() == Stage::Count;
        let failed = self.steps.iter().filter(is_count).find_map(|step| step.failure.as_ref());
        match (failed, &self.problem) {
            (Some(failure), _) => Some(match failure.errno() {
                Some(errno) => format!("sriov_numvfs: {errno:?}"),
                None => format!("sriov_numvfs: {failure}"),
            }),
            (None, Some(problem)) => Some(problem.message.clone()),
            (None, None) => {
                let same = self.wrong().into_iter().next()?;
                let first = same.first()?;
                let vfs = vf_ranges(same.iter().map(|vf| vf.vf));
                Some(match &first.cause {
                    Some(cause) => format!("{vfs}: {}", cause.message),
                    None => format!("{vfs}: {}", first.state()),
                })
            }
        }
    }

    /// The VFs that are not as planned, those of which the same is to be said together.
    pub fn wrong(&self) -> Vec<Vec<&VfOutcome>> {
        let said = |vf: &&VfOutcome| (vf.reached, vf.goal, vf.deferred, vf.cause.clone());
        let kinds = grouped(self.vfs.iter().filter(|vf| !vf.right), said);
        kinds.into_iter().map(|(_, same)| same).collect()
    }
}

impl VfOutcome {
    /// `VF 3 (0000:01:00.4): not as planned (state: guid, expected: verified): ...`
    pub fn line(&self) -> String {
        let pci = self.pci.map(|p| format!(" ({p})")).unwrap_or_default();
        format!("VF {}{pci}: {}", self.vf, self.said())
    }

    /// How it is, and why.
    pub fn said(&self) -> String {
        let why = self.cause.as_ref().map(|cause| format!(": {}", cause.with_remedy()));
        let why = why.unwrap_or_default();
        format!("{}{why}", self.state())
    }

    fn state(&self) -> String {
        match (self.reached, self.deferred) {
            (_, true) => "not changed".to_owned(),
            (None, false) => "not created".to_owned(),
            // Bound and verified, with another link state or in another place.
            (Some(reached), false) if reached == self.goal => "not as planned".to_owned(),
            (Some(reached), false) => {
                format!(
                    "not as planned (state: {}, expected: {})",
                    reached.word(),
                    self.goal.word()
                )
            }
        }
    }
}

/// A PF of the configuration for which nothing can be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unresolved {
    /// How the configuration names it; in JSON `named`.
    #[serde(rename = "named")]
    pub which: String,
    pub origin: String,
    /// The PF, where it is clear which it is.
    pub pci: Option<PciAddress>,
    /// What is wrong; in JSON `findings`.
    #[serde(rename = "findings")]
    pub errors: Vec<Finding>,
}

impl Unresolved {
    /// It is right and only not there yet.
    pub fn may_pass(&self) -> bool {
        self.errors.iter().all(|error| error.code.may_pass())
    }
}

/// What came of one PF: its report as JSON, and the exit code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Outcome {
    pub pf: PciAddress,
    pub exit_code: u8,
    /// What came of it, in one sentence.
    pub headline: String,
    /// The report as another process printed it, `null` if there is none. It is
    /// only passed on: causes and failures in it are the texts of values that the
    /// other process had.
    pub report: serde_json::Value,
}

/// What is read of a PF's report that another process printed.
#[derive(Debug, Deserialize)]
struct Head {
    exit_code: u8,
    headline: String,
}

impl Outcome {
    /// From what `ibprov apply --format json` printed, and how it failed.
    pub fn of(pf: PciAddress, printed: &str, failure: &str) -> Self {
        #[derive(Deserialize)]
        struct Printed {
            pfs: Vec<serde_json::Value>,
        }
        let first = || {
            let report = super::read::<Printed>(printed)?.pfs.into_iter().next();
            let report = report.ok_or_else(|| serde_json::Error::custom("no PF in it"))?;
            Ok((Head::deserialize(&report)?, report))
        };
        match first() {
            Ok((Head { exit_code, headline }, report)) => Self { pf, exit_code, headline, report },
            Err::<_, super::ReadError>(e) => {
                tracing::debug!(%pf, cause = %e, "the report of PF {pf}: {e}");
                Self::lost(pf, &format!("{failure} {printed}"))
            }
        }
    }

    /// What is not as it is meant to be at the PF.
    pub fn findings(&self) -> Vec<Finding> {
        #[derive(Deserialize)]
        struct Head {
            findings: Vec<Finding>,
        }
        match Head::deserialize(&self.report) {
            Ok(Head { findings }) => findings,
            Err(_) => vec![Finding::error(Code::ReportLost, &self.headline).about(self.pf)],
        }
    }

    /// For one that gave no report.
    pub fn lost(pf: PciAddress, why: &str) -> Self {
        Self {
            pf,
            exit_code: 3,
            headline: format!("PF {pf}: no report: {}", why.trim()),
            report: serde_json::Value::Null,
        }
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Applied {
    /// The report of each PF, or what is known of it where that is lost.
    #[cfg_attr(test, schemars(with = "Vec<AppliedPf>"))]
    pub pfs: Vec<Value>,
    /// The PFs of the configuration for which nothing can be done.
    pub unresolved: Vec<Unresolved>,
}

/// The report of a PF, or what is known of it where that is lost.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "its schema is what counts")]
enum AppliedPf {
    Report(Report<ToldPf<'static>>),
    Lost(Outcome),
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::advice::ToDo;
    use crate::names::at;
    use crate::show;

    fn pf() -> PciAddress {
        "0000:4b:00.0".parse().expect("address")
    }

    fn busy() -> Finding {
        let message = "process 2420 holds /run/ibprov/lock/pf-0000:4b:00.0";
        Finding::error(Code::VfPlanBlocked, message)
            .look([ToDo::run("journalctl -u 'ibprov-pf@*'")])
    }

    fn json_of(report: &PfReport) -> Value {
        serde_json::to_value(report.to_report()).expect("JSON")
    }

    #[test]
    fn a_run_whose_turn_never_came_names_who_was_at_work() {
        let mut report = PfReport::blank(pf(), Moment::START);
        report.verdict = Verdict::Failed;
        report.finished_usec = at(16_668_000);
        report.problem = Some(busy());
        assert_eq!(
            report.headline(),
            "PF 0000:4b:00.0: the state of its VFs is unknown (process 2420 holds /run/ibprov/lock/pf-0000:4b:00.0) after 16.668 s, nothing changed"
        );
    }

    #[test]
    fn what_puts_back_says_what_is_back_or_who_does_it() {
        let steps = [
            VfStep::RestoreAutoprobe { on: true },
            VfStep::RestoreOverride {
                pci: "0000:4b:00.1".parse().expect("address"),
                to: String::new(),
            },
        ];
        let done = steps.map(|step| StepDone { step, failure: None });
        let blank = PfReport { purpose: Purpose::Undo, ..PfReport::blank(pf(), Moment::START) };
        let mut report = PfReport { steps: done.to_vec(), ..blank.clone() };
        let head = "PF 0000:4b:00.0: 2 of 2 changes of an interrupted run restored after 0.000 s";
        assert_eq!(
            (show::pf::text(&report, Default::default()), report.findings().len()),
            (format!("{head}\n"), 0)
        );
        report.steps[1].failure = Some(StepFailure::Unfinished);
        report.verdict = Verdict::Failed;
        let value = json_of(&report);
        assert_eq!(
            value["headline"],
            "PF 0000:4b:00.0: 1 of 2 changes of an interrupted run restored (clear driver_override of 0000:4b:00.1, left by an interrupted run: the step did not finish before the deadline; a child process is still running) after 0.000 s"
        );
        assert_eq!(value["findings"][0]["code"], "step-failed");
        assert_eq!(value["findings"].as_array().map(Vec::len), Some(1));
        let mut busy = PfReport { verdict: Verdict::Deferred, ..blank };
        busy.problem = Some(self::busy());
        assert_eq!(
            busy.headline(),
            "PF 0000:4b:00.0: nothing is restored yet (process 2420 holds /run/ibprov/lock/pf-0000:4b:00.0); that process restores sriov_drivers_autoprobe and driver_override when it has finished, or the next `ibprov apply` if it is killed"
        );
        assert_eq!(json_of(&busy)["findings"][0]["severity"], "warning");
        assert_eq!(show::pf::text(&busy, Default::default()), format!("{}\n", busy.headline()));
    }

    #[test]
    fn what_is_a_value_here_is_a_text_in_json_and_null_for_nothing() {
        let mut report = PfReport::blank(pf(), Moment::START);
        let value = json_of(&report);
        assert_eq!(value["reason"], Value::Null);
        let refused = crate::model::Refusal {
            tried: "write \"8\" to /sys/x".to_owned(),
            said: "ENOSPC: No space left on device".to_owned(),
            errno: Some(Errno::ENOSPC as i32),
        };
        let step = VfStep::Count { from: 0, to: 8 };
        report.steps = vec![
            StepDone { step: VfStep::AutoprobeOff, failure: None },
            StepDone { step, failure: Some(refused.into()) },
        ];
        report.problem = Some(busy());
        let value = json_of(&report);
        assert_eq!(
            value["steps"],
            json!([
                {"step": "autoprobe-off", "reason": null},
                {"step": "count", "from": 0, "to": 8,
                 "reason": "write \"8\" to /sys/x: ENOSPC: No space left on device"},
            ])
        );
        let reason = busy().with_remedy();
        assert_eq!(value["reason"], json!(reason));
        assert_eq!(value["findings"][0], json!(busy()));
        assert!(
            show::pf::text(&report, Default::default()).contains(&format!("\n  why: {reason}\n")),
            "{}",
            show::pf::text(&report, Default::default())
        );
        report.verdict = Verdict::Failed;
        let headline = report.headline();
        assert!(headline.contains("is unknown (sriov_numvfs: ENOSPC) after"), "{headline}");
    }

    #[test]
    fn a_vf_says_what_it_lacks_in_its_line_and_in_json() {
        let lack = VfLack::Policy {
            is: Some(crate::names::Policy::Down),
            planned: crate::names::Policy::Follow,
        };
        let message = format!("{lack}; the kernel: it is tired");
        let cause = Finding::error(Code::VfSettingDropped, message);
        let mut vf = VfOutcome {
            vf: VfIndex::new(3).expect("index"),
            pci: None,
            right: false,
            deferred: false,
            reached: Some(VfRung::Guid),
            goal: VfRung::Verified,
            node_guid: Guid::new(1),
            port_guid: Guid::new(2),
            port2_guid: None,
            rdma: None,
            netdev: None,
            cause: Some(cause),
        };
        let text = "the link state is down instead of follow; the kernel: it is tired";
        assert_eq!(
            vf.line(),
            format!("VF 3: not as planned (state: guid, expected: verified): {text}")
        );
        assert_eq!(serde_json::to_value(&vf).expect("JSON")["reason"], json!(text));
        vf.cause = None;
        assert_eq!(vf.line(), "VF 3: not as planned (state: guid, expected: verified)");
        // It is verified, and its link state is another: the state says nothing.
        let verified = VfOutcome { reached: Some(VfRung::Verified), ..vf.clone() };
        assert_eq!(verified.line(), "VF 3: not as planned");
        // Those that lack the same are one line, and the headline names them.
        let mut report = PfReport::blank(pf(), Moment::START);
        report.verdict = Verdict::Failed;
        let index = |vf| VfIndex::new(vf).expect("index");
        report.vfs = (1..4).map(|at| VfOutcome { vf: index(at), ..vf.clone() }).collect();
        report.vfs.push(VfOutcome { vf: index(0), right: true, ..vf.clone() });
        let text = show::pf::text(&report, Default::default());
        let said = "not as planned (state: guid, expected: verified)";
        let head =
            format!("PF 0000:4b:00.0: 1 of 4 VFs as planned (VFs 1-3: {said}) after 0.000 s");
        assert!(text.starts_with(&head), "{text}");
        assert!(text.contains(&format!("\n  VFs 1-3: {said}\n")), "{text}");
        assert!(!show::pf::summary(&report).contains("\n  VF"), "{}", show::pf::summary(&report));
        assert_eq!(serde_json::to_value(&vf).expect("JSON")["reason"], Value::Null);
    }

    #[test]
    fn what_apply_printed_is_passed_on() {
        let report = json!({ "exit_code": 1, "headline": "PF x: 3 of 4", "vfs": [] });
        let printed =
            json!({ "schema": crate::model::SCHEMA, "exit_code": 1, "pfs": [report] }).to_string();
        let outcome = Outcome::of(pf(), &printed, "");
        assert_eq!((outcome.exit_code, outcome.headline.as_str()), (1, "PF x: 3 of 4"));
        assert_eq!(outcome.report, report);
        let lost = Outcome::of(pf(), "{}", "signal: 9 (SIGKILL)");
        let said = "PF 0000:4b:00.0: no report: signal: 9 (SIGKILL) {}";
        assert_eq!((lost.exit_code, lost.headline.as_str()), (3, said));
        assert_eq!(lost.report, Value::Null);
    }
}
