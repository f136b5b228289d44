//! What `ibprov boot --dry-run` says.

use super::iface::{asked_before, defer};
use super::rtnl::Rtnl;
use crate::config::Config;
use crate::host::Root;
use crate::model::boot::{LeftOut, Step};
use crate::model::common::{Finding, Kind, Report, Severity, Verdict, not_read};
use crate::model::iface::{DeferredSettings, IfaceStep, WantedInterface};
use crate::model::netns::Netns;
use crate::model::plan::PlannedPf;
use crate::model::rxe::{RxeReport, RxeState};
use crate::model::{Cause, PortProgress, Use};
use crate::names::{IfName, PciAddress, Rung};
use crate::observe::iface::Seen;
use crate::observe::ipoib::{Interface, Interfaces};
use crate::plan::preview::ApplyPreview;
use crate::plan::{IfacePlan, concerns_others, iface_plan, rename, wanted};

/// What `boot` would do and wait for, seen from now.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preview {
    /// The steps that would be taken at once.
    pub steps: Vec<Step>,
    /// The soft RoCE devices, if any is configured.
    pub rxe: Vec<RxeReport>,
    /// Configured modules that would not be loaded, and where the site denies them.
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
    fn with_causes(&self) -> impl Iterator<Item = (&PortProgress, Option<&Cause>)> {
        self.ports.iter().zip(self.causes.iter().map(Option::as_ref))
    }

    /// Those that cannot come by waiting.
    fn hopeless(&self) -> impl Iterator<Item = (&PortProgress, &Cause)> {
        let all = self.with_causes().filter_map(|(port, cause)| Some((port, cause?)));
        all.filter(|(_, cause)| cause.is_final)
    }

    /// With the keys that every report has.
    pub fn told(&self) -> Report<&Self> {
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
}

/// What would be set at an interface.
#[derive(Debug, serde::Serialize)]
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

/// An interface, what is wanted of it, and what would be set.
#[derive(Debug)]
pub struct Setting {
    pub seen: Seen,
    pub wanted: WantedInterface,
    pub settings: Settings,
    /// The P_Key children that a network stack is still to create, one sentence each.
    pub awaited: Vec<String>,
}

/// A look at the interfaces that are there, which says what would be set.
#[derive(Debug)]
pub struct SettingsLook<'a> {
    pub config: &'a Config,
    pub root: &'a Root,
    pub interfaces: &'a Interfaces,
    /// Set what is in use, too.
    pub force: bool,
    pub rtnl: Rtnl,
}

impl SettingsLook<'_> {
    pub fn settings(&mut self) -> Vec<Settings> {
        if self.config.interfaces.is_empty() {
            return Vec::new();
        }
        let all = &self.interfaces.all;
        let of = |interface| self.setting(interface).settings;
        let is_set = |set: &Settings| {
            set.steps.is_empty() && set.deferred.is_none() && set.refused.is_empty()
        };
        all.iter().map(of).filter(|set| !is_set(set)).collect()
    }

    /// What would be set at one of them.
    pub fn setting(&mut self, interface: &Interface) -> Setting {
        let seen = self.seen(interface);
        let (wanted, mut plan) = planned(self.config, &seen);
        match self.interfaces.uses.get(&seen.interface.ifindex) {
            Some(uses) => plan.defer(uses.clone()),
            // Its mode has just been asked for. A copied tree has no kernel to ask.
            None if self.root.is_live() => {
                if let Err(e) = defer(self.force, &seen, &mut self.rtnl, &mut plan, || false) {
                    // What cannot be told counts as use.
                    plan.defer(vec![Use::Unknown { why: e.to_string() }]);
                }
            }
            None => {}
        }
        let settings = Settings {
            netdev: seen.interface.name.clone(),
            steps: plan.steps,
            deferred: plan.deferred,
            refused: plan.refused,
            origins: wanted.origins.clone(),
        };
        Setting { seen, wanted, settings, awaited: plan.awaited }
    }

    /// What a run would look at for its plan; no file is read again.
    fn seen(&mut self, interface: &Interface) -> Seen {
        let (rules, all) = (&self.config.interfaces, self.interfaces);
        let mut seen = Seen::among(all, interface);
        if wanted(rules, interface, &[]).sets() {
            self.rtnl.complete_or_tell(self.root, &mut seen);
        }
        if concerns_others(rules, interface) {
            seen.set_others(all.all.clone(), all.names.clone());
        }
        seen
    }
}

/// What is wanted of `seen`, with what its plan needs, and the steps to it.
fn planned(config: &Config, seen: &Seen) -> (WantedInterface, IfacePlan) {
    let wanted = wanted(&config.interfaces, &seen.interface, &seen.stack_children);
    let asked = asked_before(&wanted, seen);
    let mut plan = iface_plan(&wanted, &seen.interface, &seen.all, &seen.names, asked);
    match rename(&config.interfaces, &seen.interface, &seen.all, &seen.names) {
        Ok(step) => plan.steps.splice(..0, step).for_each(drop),
        Err(why) => plan.refused.insert(0, why),
    }
    (wanted, plan)
}

impl Preview {
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
    fn is_deferred(&self) -> bool {
        self.settings.iter().any(|set| set.deferred.is_some())
            || self.hopeless().any(|(_, cause)| cause.in_use)
    }

    /// The text of it: what would be done, in this order, and what would not.
    pub fn to_text(&self) -> String {
        let mut stages = vec![self.loads(), self.creates(), self.waits(), self.sets()];
        let (pending, done): (Vec<_>, Vec<_>) = self.pfs.pfs.iter().partition(|pf| pf.is_pending());
        stages.extend(pending.into_iter().map(PlannedPf::preview));
        stages.retain(|stage| !stage.is_empty());
        let is_complete = self.ports.iter().all(PortProgress::is_ready);
        let head = match (stages.is_empty(), self.ports.is_empty()) {
            (false, _) => "boot would, in this order:",
            (true, true) => "boot would change nothing: no InfiniBand port is expected",
            (true, false) if is_complete => "boot would change nothing and not wait",
            (true, false) if self.is_deferred() => {
                "boot would change nothing: what is not as configured is in use"
            }
            (true, false) => {
                "boot would change nothing and not wait: the missing ports cannot become ready (see the errors)"
            }
        };
        let mut lines = vec![head.to_owned()];
        for (at, stage) in stages.iter().enumerate() {
            let number = format!("{}. ", at + 1);
            for (line, first) in
                stage.iter().zip([true].into_iter().chain(std::iter::repeat(false)))
            {
                let indent = if first { number.clone() } else { " ".repeat(number.len()) };
                lines.push(format!("{indent}{line}"));
            }
        }
        for port in self.ports.iter().filter(|port| port.is_ready() && !port.is_ethernet()) {
            let netdev = port.netdev.as_ref().map(|netdev| format!(" as {netdev}"));
            // Boot does not wait for its link: what it has reached is said.
            let reached = port.reached.unwrap_or(port.goal);
            lines.push(format!("{reached}: {}{}", port.label(), netdev.unwrap_or_default()));
        }
        for pf in done {
            lines.extend(pf.preview());
        }
        lines.extend(self.denied.iter().map(Finding::sentence));
        let told = self.rxe.iter().filter(|rxe| rxe.state != RxeState::Absent);
        lines.extend(told.map(ToString::to_string));
        lines.extend(self.refused());
        lines.extend(self.deferred());
        lines.extend(self.not_waited_for());
        lines.extend(self.contradictions.iter().map(ToString::to_string));
        lines.extend(self.problems.iter().map(|problem| format!("warning: cannot read {problem}")));
        let others = self.netns.iter().flat_map(Netns::contradictions);
        lines.extend(others.map(|other| format!("warning: {}", other.message)));
        lines.push(String::new());
        lines.join("\n")
    }

    fn loads(&self) -> Vec<String> {
        match self.steps.as_slice() {
            [step] => vec![step.to_string()],
            [] => Vec::new(),
            steps => {
                let steps = steps.iter().map(|step| format!("  {step}"));
                ["in parallel:".to_owned()].into_iter().chain(steps).collect()
            }
        }
    }

    fn creates(&self) -> Vec<String> {
        let created = self.rxe.iter().filter(|rxe| rxe.state == RxeState::Absent);
        let line = |rxe: &RxeReport| {
            let netdev = rxe.netdev.as_ref()?;
            Some(format!("create the soft RoCE device {} on {netdev}", rxe.name))
        };
        created.filter_map(line).collect()
    }

    fn waits(&self) -> Vec<String> {
        let is_final = |cause: Option<&Cause>| cause.is_some_and(|cause| cause.is_final);
        let waited = self.with_causes();
        let waited = waited.filter(|(port, cause)| !port.is_ready() && !is_final(*cause));
        let mut lines: Vec<String> = waited
            .map(|(port, _)| {
                let optional = if port.optional { " (optional)" } else { "" };
                let state = port.missing().map_or("", Rung::lacking);
                format!("  {}{optional}: {state}; expected state: {}", port.label(), port.goal)
            })
            .collect();
        if !lines.is_empty() {
            lines.insert(0, format!("wait up to {} s for each adapter:", self.timeout_sec));
        }
        lines
    }

    fn sets(&self) -> Vec<String> {
        let set = |set: &Settings| {
            let steps: Vec<String> = set.steps.iter().map(ToString::to_string).collect();
            (!steps.is_empty()).then(|| {
                format!("{}: {} ({})", set.netdev, steps.join(", "), set.origins.join(", "))
            })
        };
        self.settings.iter().filter_map(set).collect()
    }

    /// What is asked for of interfaces and cannot be.
    fn refused(&self) -> Vec<String> {
        let refused = Cause::sentences(self.settings.iter().flat_map(|set| &set.refused));
        refused.iter().map(|why| format!("error: {why}")).collect()
    }

    /// What would be left undone, because it is in use.
    fn deferred(&self) -> Vec<String> {
        let set = |set: &Settings| {
            let deferred = set.deferred.as_ref()?.sentence(&set.netdev);
            let command = DeferredSettings::command(&set.netdev);
            Some(format!("deferred: {deferred}; to do it now: {command}"))
        };
        self.settings.iter().filter_map(set).collect()
    }

    /// One line for each reason.
    fn not_waited_for(&self) -> Vec<String> {
        let is_told = |port: &PortProgress| {
            let of_it = |set: &&Settings| Some(&set.netdev) == port.netdev.as_ref();
            let set = self.settings.iter().find(of_it);
            set.is_some_and(|set| set.deferred.is_some() || !set.refused.is_empty())
        };
        let hopeless = self.hopeless().filter(|(port, _)| !port.is_ready() && !is_told(port));
        let hopeless =
            hopeless.map(|(port, why)| format!("not waited for: {}: {}", port.label(), why.text));
        let mut lines: Vec<String> = hopeless.collect();
        let mut reasons: Vec<(String, Vec<PciAddress>)> = Vec::new();
        for LeftOut { pci, reason } in &self.left_out {
            let reason = reason.to_string();
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, functions)) => functions.push(*pci),
                None => reasons.push((reason, vec![*pci])),
            }
        }
        lines.extend(reasons.iter().map(|(reason, functions)| {
            let first = functions.first().map(ToString::to_string).unwrap_or_default();
            let more = match functions.len() - 1 {
                0 => String::new(),
                n => format!(" and {n} more functions"),
            };
            format!("not waited for: {first}{more}: {reason}")
        }));
        lines
    }
}
