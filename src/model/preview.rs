//! What the dry runs of `ibprov apply` and `ibprov boot` say.

use serde::Serialize;

use super::{
    Cause, Code, DeferredSettings, Finding, IfaceStep, Kind, LeftOut, PlannedPf, PortProgress,
    Report, RxeReport, RxeState, Severity, Step, Verdict, WantedInterface,
    iface::Interface,
    netns::Netns,
    not_read,
    stack::{Decision, View},
};
use crate::names::IfName;

/// What `ibprov apply --dry-run` says, and that of boot of VFs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ApplyPreview {
    /// The PFs of the configuration, those first for which a plan can be made.
    pub pfs: Vec<PlannedPf>,
    /// What could not be read.
    #[serde(skip)]
    pub problems: Vec<String>,
}

impl ApplyPreview {
    /// Of these plans, held against the host.
    pub fn new(mut pfs: Vec<PlannedPf>, problems: Vec<String>) -> Self {
        pfs.sort_by_key(|pf| (!pf.is_planned, pf.pci.filter(|_| pf.is_planned)));
        Self { pfs, problems }
    }

    /// What they come to: a PF that may come is less than an error.
    pub fn verdict(&self) -> Verdict {
        let mut errors = self.pfs.iter().flat_map(|pf| &pf.errors);
        let mut refused = self.pfs.iter().flat_map(|pf| &pf.refused);
        if refused.any(Finding::is_error) || errors.any(|error| !error.code.may_pass()) {
            Verdict::WouldFail
        } else if self.pfs.iter().any(|pf| !pf.is_planned || pf.is_change()) {
            Verdict::WouldChange
        } else if self.pfs.iter().any(PlannedPf::is_pending) {
            Verdict::Deferred
        } else {
            Verdict::NothingToDo
        }
    }

    /// What is not as it is meant to be.
    pub fn findings(&self) -> Vec<Finding> {
        self.pfs.iter().flat_map(|pf| pf.findings(None)).collect()
    }

    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let mut findings = self.findings();
        Finding::worst_first(&mut findings);
        findings.extend(not_read(&self.problems));
        Report::new(Kind::ApplyDryRun, self.verdict(), findings, self)
    }
}

/// What `boot` would do and wait for, seen from now.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preview {
    /// The steps that would be taken at once.
    pub steps: Vec<Step>,
    /// The soft RoCE devices, if any is configured.
    pub rxe: Vec<RxeReport>,
    /// Modules that would not be loaded, and where the site denies them, but for those that a port
    /// lacks: of them the port says so.
    pub denied: Vec<Finding>,
    /// The ports that would be waited for.
    pub ports: Vec<PortProgress>,
    /// Of each of the ports why it is no further.
    #[serde(skip)]
    pub causes: Vec<Option<Cause>>,
    /// How long each of them would be waited for, seconds.
    pub timeout_sec: u64,
    /// The interfaces that would be set.
    pub settings: Vec<Settings>,
    /// The PFs of the configuration.
    #[serde(flatten)]
    pub pfs: ApplyPreview,
    /// What would not be waited for.
    pub left_out: Vec<LeftOut>,
    /// What will not stay as it is wanted, what modprobe runs besides, and what was not judged.
    #[serde(skip)]
    pub contradictions: Vec<Finding>,
    /// What could not be read.
    #[serde(skip)]
    pub problems: Vec<String>,
    /// The RDMA network namespace mode, where one is configured.
    #[serde(skip)]
    pub netns: Option<Netns>,
}

impl Preview {
    fn verdict(&self) -> Verdict {
        // A device that cannot be created, a setting that an interface cannot have.
        let is_refused = self.settings.iter().any(|set| !set.refused.is_empty());
        let lacks =
            |error: &Finding| error.is_of_configuration() && error.severity == Severity::Error;
        let is_refused = is_refused || self.contradictions.iter().any(lacks);
        if is_refused || self.rxe.iter().any(RxeReport::is_refused) {
            return Verdict::WouldFail;
        }
        match self.pfs.verdict() {
            Verdict::NothingToDo | Verdict::Deferred if self.is_pending() => Verdict::WouldChange,
            Verdict::NothingToDo if self.is_deferred() => Verdict::Deferred,
            verdict => verdict,
        }
    }

    /// The ports, each with why it is no further.
    pub fn with_causes(&self) -> impl Iterator<Item = (&PortProgress, Option<&Cause>)> {
        self.ports.iter().zip(self.causes.iter().map(Option::as_ref))
    }

    /// Those that cannot come by waiting.
    pub fn hopeless(&self) -> impl Iterator<Item = (&PortProgress, &Cause)> {
        let all = self.with_causes().filter_map(|(port, cause)| Some((port, cause?)));
        all.filter(|(_, cause)| cause.is_final)
    }

    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let mut findings = self.pfs.findings();
        findings.extend(self.with_causes().flat_map(|(port, cause)| port.findings(cause)));
        let rxe = self.rxe.iter().filter(|rxe| rxe.state != RxeState::Absent);
        findings.extend(rxe.filter_map(RxeReport::finding));
        findings.extend(self.denied.iter().cloned());
        self.settings.iter().for_each(|set| set.tell(&mut findings));
        findings.extend(self.contradictions.iter().cloned());
        Finding::worst_first(&mut findings);
        findings.extend(not_read(&self.problems));
        findings.extend(self.netns.iter().flat_map(Netns::contradictions));
        Report::new(Kind::BootDryRun, self.verdict(), findings, self)
    }

    /// Something would be done, or waited for, beside what the plans of VFs ask for.
    pub fn is_pending(&self) -> bool {
        let is_in_use = |cause: Option<&Cause>| cause.is_some_and(|cause| cause.in_use);
        let is_set = |set: &Settings| !set.steps.is_empty() || !set.refused.is_empty();
        !self.steps.is_empty()
            || self.with_causes().any(|(port, cause)| !port.is_ready() && !is_in_use(cause))
            || self.settings.iter().any(is_set)
            || self.rxe.iter().any(|rxe| matches!(rxe.state, RxeState::Absent | RxeState::NotNamed))
    }

    /// Something is left as it is, because it is in use.
    pub fn is_deferred(&self) -> bool {
        self.settings.iter().any(|set| set.deferred.is_some())
            || self.hopeless().any(|(_, cause)| cause.in_use)
    }
}

/// What would be set at an interface.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Settings {
    pub netdev: IfName,
    pub steps: Vec<IfaceStep>,
    /// What would be left undone, because it is in use.
    pub deferred: Option<DeferredSettings>,
    /// What is asked for and cannot be.
    #[serde(skip)]
    pub refused: Vec<Cause>,
    /// Where it is asked for.
    pub origins: Vec<String>,
}

impl Settings {
    /// What cannot be set and what is deferred, beside what is told of the port.
    pub fn tell(&self, findings: &mut Vec<Finding>) {
        let deferred = self.deferred.iter().map(|what| Cause::deferred(&self.netdev, what));
        let all = deferred.chain(self.refused.iter().cloned());
        let all: Vec<Finding> = all.flat_map(|cause| cause.of_settings()).collect();
        Finding::add_untold(findings, &all);
    }
}

/// What `ibprov iface --dry-run` says.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IfacePreview {
    /// The interface as it is; `null` for the netdev of a soft RoCE device.
    pub interface: Option<Interface>,
    /// What is wanted of it.
    pub wanted: WantedInterface,
    /// What would be set, in this order.
    pub steps: Vec<IfaceStep>,
    /// What would be left undone, because the interface is in use.
    pub deferred: Option<DeferredSettings>,
    /// What the account of the node says of it.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    #[serde(skip)]
    pub notes: Vec<String>,
    /// How systemd was asked; `null` in a copied tree.
    pub asked_by: Option<String>,
    /// Who brings it up, and why; `null` in a copied tree.
    pub decision: Option<Decision>,
    /// What each network stack has to say of it.
    pub stacks: Vec<View>,
    /// The soft RoCE device that the configuration has for this netdev.
    pub rxe: Option<RxeReport>,
}

impl IfacePreview {
    pub fn is_refused(&self) -> bool {
        self.findings.iter().any(|finding| finding.code == Code::SettingRefused)
    }

    pub fn verdict(&self) -> Verdict {
        let is_absent = |rxe: &RxeReport| rxe.state == RxeState::Absent;
        let is_stuck = self.decision.as_ref().is_some_and(|decision| decision.is_wrong);
        if is_stuck || self.is_refused() || self.rxe.iter().any(RxeReport::is_refused) {
            Verdict::WouldFail
        } else if !self.steps.is_empty() || self.rxe.iter().any(is_absent) {
            Verdict::WouldChange
        } else if self.deferred.is_some() {
            Verdict::Deferred
        } else {
            Verdict::NothingToDo
        }
    }

    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let rxe = self.rxe.iter().filter(|rxe| rxe.state != RxeState::Absent);
        let mut findings: Vec<Finding> =
            self.findings.iter().cloned().chain(rxe.filter_map(RxeReport::finding)).collect();
        let name = self.interface.iter().map(|interface| &interface.name);
        findings.extend(name.flat_map(|name| {
            self.notes.iter().map(move |note| Finding::warning(Code::Notice, note).about(name))
        }));
        Report::new(Kind::IfaceDryRun, self.verdict(), findings, self)
    }
}
