//! What `ibprov iface` did with one interface:
//! `/run/ibprov/ports/IFINDEX.json`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

pub use super::iface_step::{
    ChildCreator, DeferredSettings, IfaceStep, WantedChild, WantedInterface, aside_name,
};

use super::{
    Code, Exit, Finding, Kind, Report, Severity, ToDo, Verdict, seconds,
    stack::{Decision, View},
};

use crate::names::{Guid, IfName, Mode, Moment, PKey, PciAddress, PortNumber, harmless};

/// An IPoIB interface as it is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interface {
    /// Its name now.
    pub name: IfName,
    /// Of the names in the configuration those that are alternative ones of it, or of its parent.
    #[serde(skip)]
    pub altnames: Vec<IfName>,
    pub ifindex: u32,
    /// Index of the interface it is a P_Key child of; of none: a port's own.
    pub parent: Option<u32>,
    /// The name of that, if it could be seen.
    pub parent_name: Option<IfName>,
    /// The PCI function of its port.
    pub pci: Option<PciAddress>,
    pub port: Option<PortNumber>,
    /// Port GUID, the last 8 bytes of its address.
    #[serde(rename = "port_guid")]
    pub guid: Option<Guid>,
    /// Its P_Key, from the broadcast address that the kernel makes of it.
    pub pkey: Option<PKey>,
    /// The driver can do connected mode (IPOIB_FLAGS_RC in the first byte of
    /// the address; RFC 4755, section 3.1).
    pub can_connect: bool,
    /// Its port is one of Omni-Path, whose packets are larger.
    pub omni_path: bool,
    /// Transport mode; open where nothing could tell it.
    pub mode: Option<Mode>,
    /// In bytes.
    pub mtu: Option<u32>,
    /// User space may join multicast groups.
    pub umcast: Option<bool>,
    /// IFF_UP.
    pub up: bool,
}

/// How far bringing it up is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BringUp {
    /// Only the settings were asked for.
    NotAsked,
    /// Not looked at yet, or being waited for.
    #[default]
    Pending,
    /// A stack that is still to come does it.
    Left,
    /// It is up, by its stack.
    Up,
    /// Its stack has it and waits for carrier.
    Waiting,
    /// No stack claims it.
    Nobody,
    /// It did not come up.
    Failed,
    /// The interface disappeared meanwhile: it was removed, renamed or moved to another
    /// network namespace. If it appears again, another run configures it.
    Disappeared,
}

const RTNL_HELD: &str = "the interface was not set or verified: a process holds the RTNL lock";

const DISAPPEARED: &str = "the interface disappeared before it was configured or up: it was removed, renamed or moved to another network namespace";

/// One interface's report. Times are microseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IfaceReport {
    /// Version of ibprov.
    #[serde(default)]
    pub version: Cow<'static, str>,
    /// The interface's name.
    pub netdev: String,
    /// Its index; 0 if it is not there.
    pub ifindex: u32,
    /// When ibprov began.
    #[serde(default)]
    pub started_usec: Moment,
    /// When the settings were as wanted, or could not be made so.
    #[serde(default)]
    pub settled_usec: Moment,
    /// When it decided who brings it up.
    #[serde(default)]
    pub decided_usec: Moment,
    #[serde(default)]
    pub finished_usec: Moment,
    /// Mode, MTU, umcast and P_Key children are as wanted.
    pub configured: bool,
    #[serde(default)]
    pub wanted: WantedInterface,
    /// What was done.
    #[serde(default)]
    pub steps: Vec<IfaceStepReport>,
    /// This run, or one before it in this boot, has found or made the interface as wanted: what a
    /// later one changes is no longer the first setting.
    #[serde(default)]
    pub was_set: bool,
    /// What was left undone, because it is in use.
    #[serde(default)]
    pub deferred: Option<DeferredSettings>,
    /// The MTU that was written to it, if any ever was.
    pub mtu_asked: Option<u32>,
    /// MLNX_OFED's mlnx_interface_mgr may still set the interface: this run waited for it in
    /// vain, or not at all.
    #[serde(default)]
    pub mlnx_interface_mgr_pending: bool,
    /// A process held the RTNL lock until the end of this run, which needed it.
    #[serde(default)]
    pub rtnl_held: bool,
    /// What could not be: settings, or bringing it up. In JSON the errors among the
    /// findings.
    #[serde(default, rename = "findings", skip_serializing, deserialize_with = "errors")]
    pub failures: Vec<String>,
    /// Advice, and what could not be read.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// How systemd was asked.
    #[serde(default)]
    pub asked_by: String,
    /// Every stack's view, as it was decided on last. Not read back: only
    /// `crate::stacks` knows the stacks.
    #[serde(skip_deserializing)]
    pub stacks: Vec<View>,
    /// Who brings it up, and why. Not read back either.
    #[serde(skip_deserializing)]
    pub decision: Option<Decision>,
    /// How far that is.
    pub bring_up: BringUp,
    #[serde(skip_serializing)]
    pub exit_code: u8,
}

/// The messages of the findings that are errors.
fn errors<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    struct Error {
        severity: Severity,
        /// A newer ibprov may have other codes.
        code: Option<String>,
        message: String,
    }
    let findings = Vec::<Error>::deserialize(d)?.into_iter();
    // That the RTNL lock was held is a field of the report.
    let is_held = |f: &Error| f.code.as_deref() == Some(Code::RtnlHeld.name());
    let failures = findings.filter(|f| f.severity == Severity::Error && !is_held(f));
    Ok(failures.map(|f| f.message).collect())
}

impl IfaceReport {
    fn verdict(&self) -> Verdict {
        match (self.bring_up, self.exit_code) {
            (BringUp::Disappeared, _) => Verdict::Interrupted,
            (_, 1) if !self.configured => Verdict::Deferred,
            // Without carrier, it is the exit code 1.
            (_, 0 | 1) => Verdict::Done,
            _ => Verdict::Failed,
        }
    }

    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let code =
            if self.configured { Code::InterfaceNotUp } else { Code::InterfaceNotConfigured };
        let name = harmless(&self.netdev);
        let held = self.rtnl_held.then(|| Finding::error(Code::RtnlHeld, RTNL_HELD));
        let failures = self.failures.iter().map(|failure| Finding::error(code, failure));
        let failures = held.into_iter().chain(failures);
        let carrier = (self.bring_up == BringUp::Waiting).then(|| {
            let why = self.decision.as_ref().map(|d| d.why.as_str()).unwrap_or_default();
            Finding::warning(Code::InterfaceNotUp, format!("no carrier yet: {why}"))
        });
        let deferred = self.deferred.iter().map(|deferred| {
            Finding::warning(Code::SettingDeferred, deferred.sentence(&name))
                .now([ToDo::run(DeferredSettings::command(&name))])
        });
        let gone =
            (self.bring_up == BringUp::Disappeared).then(|| Finding::warning(code, DISAPPEARED));
        let notes = self.notes.iter().map(|note| Finding::warning(Code::Notice, note));
        let findings = failures
            .chain(deferred)
            .chain(carrier)
            .chain(gone)
            .chain(notes)
            .map(|finding| finding.about(&name))
            .collect();
        Report::new(Kind::Iface, self.verdict(), findings, self).exiting(self.exit_code)
    }
}

/// A step and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IfaceStepReport {
    /// What was done.
    #[serde(flatten)]
    pub step: IfaceStep,
    /// How long it took, microseconds.
    #[serde(default)]
    pub took_usec: u64,
    /// What went wrong; in JSON `reason`.
    #[serde(default, rename = "reason")]
    pub failure: Option<String>,
}

impl IfaceReport {
    /// Nothing done yet.
    pub fn blank(netdev: &str, started_usec: Moment) -> Self {
        Self {
            version: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
            netdev: netdev.to_owned(),
            started_usec,
            finished_usec: started_usec,
            ..Self::default()
        }
    }

    /// The exit code that it comes to: 0 configured, and up or left to who
    /// brings it up; 1 configured and without carrier, or not configured because it is in use, or
    /// no longer there; 3 anything else.
    pub fn judge(&self) -> u8 {
        match (self.configured, self.bring_up) {
            (_, BringUp::Disappeared) => Exit::Exceptions.code(),
            (_, BringUp::Failed) => Exit::NotReady.code(),
            (false, _) if !self.is_settled() => Exit::NotReady.code(),
            (false, _) | (true, BringUp::Waiting) => Exit::Exceptions.code(),
            (true, _) => Exit::Good.code(),
        }
    }

    /// What was to be set was set, or was left undone only because the interface is in use.
    pub fn is_settled(&self) -> bool {
        self.configured || self.deferred.is_some() && self.failures.is_empty()
    }

    /// There is something to look at once the network stacks have started: a stack that may set
    /// the interface otherwise has it, or mlnx_interface_mgr.
    pub fn is_to_be_looked_at_again(&self) -> bool {
        let is_set = self.wanted.mode.is_some() || self.wanted.mtu.is_some();
        self.mlnx_interface_mgr_pending
            || self.bring_up == BringUp::Left && self.configured && is_set
    }

    /// There is nothing left to configure or bring up. What failed for that reason is a note.
    pub fn disappeared(&mut self) {
        self.bring_up = BringUp::Disappeared;
        self.notes.append(&mut self.failures);
    }

    /// The sentence that says it all.
    pub fn headline(&self) -> String {
        let name = harmless(&self.netdev);
        let set = match (self.configured, self.wanted.origins.is_empty()) {
            (false, _) if self.is_settled() => "settings are deferred, because it is in use",
            (true, true) => "no settings are configured",
            (true, false) => "configured",
            (false, _) => "NOT CONFIGURED",
        };
        let why = self.decision.as_ref().map(|d| d.why.as_str()).unwrap_or_default();
        let up = match self.bring_up {
            BringUp::NotAsked | BringUp::Pending => String::new(),
            BringUp::Left => format!("; left to the network stack: {why}"),
            BringUp::Up => format!("; up: {why}"),
            BringUp::Waiting => format!("; no carrier yet: {why}"),
            BringUp::Nobody => format!("; no network stack brings it up: {why}"),
            BringUp::Failed => "; NOT UP".to_owned(),
            BringUp::Disappeared => return format!("{name}: {DISAPPEARED}"),
        };
        format!("{name}: {set}{up}")
    }
}

/// What the journal has of it.
impl fmt::Display for IfaceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = harmless(&self.netdev);
        let mut lines = vec![self.headline()];
        lines.extend(self.failures.iter().map(|failure| format!("  why: {failure}")));
        if let Some(deferred) = &self.deferred {
            lines.push(format!("  why: {}", deferred.sentence(&name)));
            lines.push(format!("  do: {}", DeferredSettings::command(&name)));
        }
        lines.extend(self.steps.iter().map(|step| match &step.failure {
            None => {
                format!("done: {} in {}", step.step, seconds(Duration::from_micros(step.took_usec)))
            }
            Some(failure) => format!("failed: {}: {failure}", step.step),
        }));
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines.extend(View::lines(&self.stacks));
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Use;

    #[test]
    fn that_the_rtnl_lock_was_held_is_a_finding_of_its_own_and_read_back_once() {
        let mut report = IfaceReport::blank("ib2", Moment::START);
        report.rtnl_held = true;
        report.failures.push("ib2: set MTU 2044: no answer".to_owned());
        let codes: Vec<Code> = report.to_report().findings.iter().map(|f| f.code).collect();
        assert_eq!(codes, [Code::RtnlHeld, Code::InterfaceNotConfigured]);
        let text = report.to_report().to_json().expect("JSON");
        let read = |text: &str| crate::model::read::<IfaceReport>(text).expect("a report");
        assert_eq!((read(&text).failures, read(&text).rtnl_held), (report.failures.clone(), true));
        // One of a newer version, and one that has none.
        let newer = text.replace("interface-not-configured", "of-a-newer-version");
        assert_eq!(read(&newer).failures, report.failures);
    }

    #[test]
    fn one_in_use_is_no_failure_and_the_command_is_named() {
        let mut report = IfaceReport::blank("ib0", Moment::START);
        let what = "address 10.1.0.1/24".to_owned();
        let uses = vec![Use::Network { netdev: "ib0".to_owned(), what }];
        let steps = vec![IfaceStep::SetMtu { mtu: 1500 }];
        report.deferred = Some(DeferredSettings { steps, uses });
        report.bring_up = BringUp::Up;
        report.exit_code = report.judge();
        assert_eq!((report.exit_code, report.verdict()), (1, Verdict::Deferred));
        let text = report.to_string();
        let want =
            "ib0 is in use: ib0 has address 10.1.0.1/24; deferred to the next boot: set MTU 1500";
        assert!(text.contains(want) && text.contains("ibprov iface ib0 --force"), "{text}");
        let [finding] = report.to_report().findings.try_into().expect("one");
        assert_eq!((finding.code, finding.severity), (Code::SettingDeferred, Severity::Warning));
        let json = report.to_report().to_json().expect("JSON");
        let back = crate::model::read::<IfaceReport>(&json).expect("a report");
        assert_eq!((&back.deferred, back.is_settled()), (&report.deferred, true));
        report.failures.push("ib0: set umcast 1: EPERM".to_owned());
        assert_eq!((report.judge(), report.is_settled()), (3, false));
    }

    #[test]
    fn one_that_disappeared_is_no_failure_and_keeps_what_was_seen() {
        let mut report = IfaceReport::blank("ib2", Moment::START);
        report.failures.push("ib2: set mtu: ENODEV: ib2 disappeared".to_owned());
        assert_eq!(report.judge(), Exit::NotReady.code());
        report.disappeared();
        report.exit_code = report.judge();
        assert_eq!(report.exit_code, Exit::Exceptions.code());
        assert_eq!(report.verdict(), Verdict::Interrupted);
        assert!(report.headline().starts_with("ib2: the interface disappeared"));
        let severities: Vec<Severity> =
            report.to_report().findings.iter().map(|f| f.severity).collect();
        assert_eq!(severities, [Severity::Warning, Severity::Warning]);
        assert!(
            report.to_string().contains("note: ib2: set mtu: ENODEV"),
            "{}",
            report.to_string()
        );
    }
}
