//! The report of `ibprov boot`: `/run/ibprov/boot.json`, and its text.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Cause, Code, Finding, Kind, ModuleTrouble, NotExpected, PortProgress, Report, RxeReport,
    Standing, Unresolved, Verdict, not_read, pf::Outcome, seconds,
};
use crate::names::{ModuleName, Moment, Object, PciAddress, PortNumber, Rung};

pub use super::boot_step::Step;

/// All that `boot` saw and did. Times are microseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BootReport {
    /// Version of ibprov.
    pub version: Cow<'static, str>,
    /// `uname -r`.
    pub kernel: String,
    /// When boot began.
    pub started_usec: Moment,
    pub finished_usec: Moment,
    /// CPU time of ibprov itself since it began, user and system, microseconds.
    pub cpu_usec: u64,
    /// CPU time that its process had used when ibprov began: loading the
    /// program, and systemd's preparations in the same process.
    pub cpu_before_usec: u64,
    pub peak_memory_kib: u64,
    /// Programs that it ran.
    pub forks: u32,
    /// The deadlines it had, seconds.
    pub timeout_sec: u64,
    /// For one HCA, seconds.
    pub adapter_timeout_sec: u64,
    #[serde(skip_serializing)]
    pub verdict: Verdict,
    /// The configured modules.
    pub modules: Vec<ModuleReport>,
    /// What was done to the host, in order.
    pub steps: Vec<StepReport>,
    /// The expected ports.
    pub ports: Vec<PortReport>,
    /// The PFs with a GUID plan, and what came of each.
    pub pfs: Vec<Outcome>,
    /// PFs of the configuration for which nothing could be done.
    pub unresolved_pfs: Vec<Unresolved>,
    /// The soft RoCE devices, if any is configured.
    pub rxe: Vec<RxeReport>,
    /// Functions that look like HCAs and were not waited for.
    pub left_out: Vec<LeftOut>,
    /// What is wrong with the configuration, and left out.
    #[serde(skip)]
    pub configuration: Vec<Finding>,
    /// Warnings and what could not be read.
    #[serde(skip)]
    pub problems: Vec<String>,
    /// What happened when.
    pub timeline: Vec<TimelineEntry>,
}

/// A configured module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModuleReport {
    /// The module's name, as the kernel has it.
    pub name: ModuleName,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: ModuleOutcome,
}

/// What became of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum ModuleOutcome {
    /// It was there before boot began: the initrd, udev or the kernel has it.
    AlreadyThere,
    /// It was loaded while boot ran.
    Loaded,
    /// It is not there.
    Missing {
        /// Why it is not there.
        trouble: ModuleTrouble,
    },
    /// Nobody asked for it: no port is expected.
    NotNeeded,
}

/// A step and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepReport {
    /// What was to be done.
    #[serde(flatten)]
    pub step: Step,
    #[serde(default)]
    pub started_usec: Moment,
    /// How long it took; absent if it had not ended when boot did.
    pub took_usec: Option<u64>,
    /// What went wrong; JSON has an empty text where nothing did.
    #[serde(default, rename = "reason")]
    pub failure: Option<String>,
}

impl StepReport {
    /// It was to set the RDMA network namespace mode or the name of an RDMA device, and has not:
    /// the ports are there all the same.
    pub const fn is_unset(&self) -> bool {
        matches!(self.step, Step::NetnsMode { .. } | Step::NameRdma { .. })
            && (self.took_usec.is_none() || self.failure.is_some())
    }
}

/// An expected port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PortReport {
    #[serde(flatten)]
    pub progress: PortProgress,
    /// Nothing is left to wait for.
    pub ready: bool,
    /// The first missing rung.
    pub missing: Option<Rung>,
    /// Why it is missing.
    pub cause: Option<Cause>,
    /// How long boot waited for it, microseconds.
    #[serde(default)]
    pub waited_usec: u64,
}

/// A function that was not waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOut {
    pub pci: PciAddress,
    /// Why it was not waited for.
    #[serde(flatten)]
    pub reason: NotExpected,
}

/// One line of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Moment"))]
pub struct TimelineEntry {
    /// When, microseconds of CLOCK_MONOTONIC.
    pub usec: Moment,
    /// What happened, in words.
    pub text: String,
    /// Which port reached which rung, if that is what it was.
    pub climbed: Option<Climbed>,
}

/// A port was seen on a rung for the first time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Climbed {
    /// The port, as [`PortProgress::expected`] has it.
    #[cfg_attr(test, schemars(with = "String"))]
    pub expected: Object,
    /// Its number; absent while the HCA's ports are not known.
    pub port: Option<PortNumber>,
    /// The rung that it was seen on.
    pub rung: Rung,
}

impl BootReport {
    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let mut findings: Vec<Finding> =
            self.ports.iter().flat_map(|p| p.progress.findings(p.cause.as_ref())).collect();
        findings.extend(self.pfs.iter().flat_map(Outcome::findings));
        findings.extend(self.unresolved_pfs.iter().flat_map(|pf| pf.errors.iter().cloned()));
        findings.extend(self.rxe.iter().filter_map(RxeReport::finding));
        findings.extend(self.missing_modules().map(|(name, trouble)| trouble.finding(name)));
        // Of a soft RoCE device its own finding tells.
        let steps = self.steps.iter().filter(|s| !matches!(s.step, Step::CreateRxe { .. }));
        for StepReport { step, failure, .. } in steps {
            let failed = failure.iter().map(|why| format!("{step}: {why}"));
            findings.extend(failed.map(|message| Finding::warning(Code::StepFailed, message)));
        }
        Finding::worst_first(&mut findings);
        findings.splice(0..0, self.configuration.iter().cloned());
        if self.verdict == Verdict::Interrupted {
            findings.push(Finding::warning(Code::Interrupted, "a signal ended the boot"));
        }
        findings.extend(not_read(&self.problems));
        Report::new(Kind::Boot, self.verdict, findings, self)
    }

    /// The modules that are missing, without those that a port lacks: the port says so.
    pub fn missing_modules(&self) -> impl Iterator<Item = (&ModuleName, &ModuleTrouble)> {
        let lacked = |name| {
            let mut causes = self.ports.iter().filter_map(|port| port.cause.as_ref());
            causes.any(|cause| cause.all().any(|cause| cause.module.as_ref() == Some(name)))
        };
        self.modules.iter().filter_map(move |module| match &module.outcome {
            ModuleOutcome::Missing { trouble } if !lacked(&module.name) => {
                Some((&module.name, trouble))
            }
            _ => None,
        })
    }

    /// Why `module` could not be loaded, if boot tried and it is missing.
    pub fn trouble_of(&self, module: &ModuleName) -> Option<&ModuleTrouble> {
        self.modules.iter().filter(|m| m.name == *module).find_map(|m| match &m.outcome {
            ModuleOutcome::Missing { trouble } => Some(trouble),
            _ => None,
        })
    }

    /// The sentence that says it all.
    pub fn headline(&self) -> String {
        let took = seconds(self.finished_usec.since(self.started_usec));
        // Of one that was stopped there may be no times.
        let after = match self.finished_usec {
            Moment::START => String::new(),
            _ => format!(" after {took}"),
        };
        let waited: Vec<&PortReport> =
            self.ports.iter().filter(|p| !p.progress.is_ethernet()).collect();
        let ready = waited.iter().filter(|p| p.ready).count();
        let count = format!("{ready} of {} expected ports ready", waited.len());
        match self.verdict {
            Verdict::NothingExpected => {
                "this host has no InfiniBand: no PCI function needs it and none is configured; nothing done".to_owned()
            }
            Verdict::Ready if waited.is_empty() => {
                format!("no InfiniBand port to wait for, after {took}")
            }
            Verdict::Ready => format!("{count}{after}"),
            Verdict::Interrupted => format!("stopped by a signal{after}: {count}"),
            _ => {
                let failed = self.failures();
                let first = failed.first().map(|first| format!(": {first}")).unwrap_or_default();
                let more = match failed.len() {
                    0 | 1 => String::new(),
                    n => format!(" and {} more", n - 1),
                };
                let count = match waited.len() {
                    0 => String::new(),
                    _ => format!("; {count}"),
                };
                format!("boot incomplete{after}{first}{more}{count}")
            }
        }
    }

    /// What is not as it is meant to be, the worst first, in few words each.
    fn failures(&self) -> Vec<String> {
        let port = |port: &PortReport| {
            let label = port.progress.label();
            let state = port.missing.map_or("not ready", Rung::lacking);
            let optional = if port.progress.optional { " (optional)" } else { "" };
            let standing = port.progress.standing(port.cause.as_ref());
            (standing, format!("{label}: {state}{optional}"))
        };
        let pf = |pf: &Outcome| (Standing::of_exit(pf.exit_code), pf.headline.clone());
        let unresolved = |pf: &Unresolved| {
            let why = pf.errors.first().map_or("it cannot be planned", |e| e.message.as_str());
            (Standing::Missing, format!("{}: {why}", pf.which))
        };
        let of_configuration = |f: &Finding| (Standing::Missing, f.sentence());
        let mut all: Vec<(Standing, String)> =
            self.configuration.iter().map(of_configuration).collect();
        all.extend(self.ports.iter().map(port));
        all.extend(self.pfs.iter().map(pf));
        all.extend(self.unresolved_pfs.iter().map(unresolved));
        let rxe = |rxe: &RxeReport| (rxe.state.standing(), rxe.to_string());
        all.extend(self.rxe.iter().map(rxe));
        let missing = self.missing_modules();
        all.extend(
            missing.map(|(name, _)| (Standing::Excused, format!("module {name} is not loaded"))),
        );
        let unset = self.steps.iter().filter(|step| step.is_unset());
        all.extend(unset.map(|step| (Standing::Excused, format!("failed: {}", step.step))));
        all.retain(|(standing, _)| *standing != Standing::Ready);
        all.sort_by_key(|(standing, _)| std::cmp::Reverse(*standing));
        all.into_iter().map(|(_, text)| text).collect()
    }
}

impl PortReport {
    /// `mlx5_0/1 (0000:4b:00.0): ready, netdev ib0, port GUID ...`
    pub fn line(&self) -> String {
        let label = self.progress.label();
        let mut line = if self.progress.is_ethernet() {
            format!("{label}: in Ethernet mode, not waited for")
        } else if let Some(missing) = self.missing {
            let optional = if self.progress.optional { " (optional)" } else { "" };
            let state = missing.lacking();
            format!(
                "{label}: NOT READY{optional}: {state} after {}",
                seconds(Duration::from_micros(self.waited_usec))
            )
        } else {
            format!("{label}: ready")
        };
        if let Some(netdev) = &self.progress.netdev {
            line.push_str(&format!(", netdev {netdev}"));
        }
        if let Some(guid) = self.progress.guid {
            line.push_str(&format!(", port GUID {guid}"));
        }
        line
    }
}

/// The constant head of a report.
pub fn blank(started_usec: Moment) -> BootReport {
    BootReport {
        version: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
        started_usec,
        finished_usec: started_usec,
        ..BootReport::default()
    }
}
