//! `ibprov firmware`: the settings in the firmware of adapters.

use std::fmt::Display;

use serde::Serialize;

use super::{Code, Finding, Kind, Report, ToDo, Verdict};
use crate::names::{FirmwareName, FirmwareValue, LinkLayer, PciAddress};

/// How a setting stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is not configured.
    #[serde(rename = "shown")]
    #[strum(serialize = "-")]
    Shown,
    /// It has the configured value, now and at the next boot.
    #[strum(serialize = "as wanted")]
    AsWanted,
    /// It will not have it at the next boot.
    #[strum(serialize = "to be set")]
    ToBeSet,
    /// It will have it after the next reboot.
    #[strum(serialize = "pending reboot")]
    PendingReboot,
    /// It was written, and the boot since then has not made it effective, or the tool asked
    /// for a power cycle.
    #[strum(serialize = "pending power cycle")]
    PendingPowerCycle,
    /// The adapter does not have it, or not as it is set up.
    #[strum(serialize = "not supported")]
    NotSupported,
    /// The database of the tool does not have it.
    #[strum(serialize = "unknown name")]
    UnknownName,
    /// Another setting makes it ineffective.
    #[strum(serialize = "no effect")]
    NoEffect,
    /// The tool or the firmware refused to set it, or it was set and is not there.
    #[strum(serialize = "not set")]
    NotSet,
    /// It could not be read.
    #[strum(serialize = "unreadable")]
    Unreadable,
}

/// A setting, and how it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Setting {
    /// Its name in mstconfig and mlxconfig.
    pub name: FirmwareName,
    /// The value in effect as the tool prints it; `null` where the firmware does not tell.
    pub current: Option<String>,
    /// The value of the next boot as the tool prints it.
    pub next: Option<String>,
    /// The configured value; `null` if none is.
    pub wanted: Option<FirmwareValue>,
    pub state: State,
    /// Why, where there is more to say.
    pub reason: Option<String>,
}

impl Setting {
    /// As it is printed, where nothing is configured.
    pub const fn shown(name: FirmwareName, current: Option<String>, next: Option<String>) -> Self {
        Self { name, current, next, wanted: None, state: State::Shown, reason: None }
    }
}

/// An adapter, and its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CardSettings {
    /// The function that was asked.
    pub pci: PciAddress,
    /// What the tool calls it: ConnectX6.
    pub device_type: Option<String>,
    /// The version of its firmware.
    pub firmware: Option<String>,
    /// Why its settings could not be read or may not be set; `null` if that is not so.
    pub problem: Option<String>,
    /// What makes new values effective, as the tool said it when it wrote them.
    pub effect: Option<String>,
    /// The settings that this run has written.
    pub written: Vec<FirmwareName>,
    /// The configured settings, or a choice if none are.
    pub settings: Vec<Setting>,
    /// What else is to be known of it.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// What `ibprov firmware` says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FirmwareReport {
    /// The programs that were run: mstconfig, mlxconfig.
    pub tool: String,
    pub adapters: Vec<CardSettings>,
}

/// The setting that gives the port of this mlx5 function a link layer.
pub fn link_type(pci: PciAddress, wanted: LinkLayer) -> String {
    let number = if wanted == LinkLayer::Ethernet { 2 } else { 1 };
    format!("LINK_TYPE_P{}={number}", pci.port_of_adapter())
}

/// How `settings` (`NUM_OF_VFS=8`) get into the firmware of `pci` and take effect: by ibprov
/// where its `[[firmware]]` has them, else by the vendor's tool.
pub fn how_to_set(pci: impl Display, settings: &str, is_configured: bool) -> ToDo {
    if is_configured {
        let words = "write it, then reboot, or power the host off and on";
        return ToDo::with(words, format!("ibprov firmware {pci} --apply"));
    }
    ToDo::with(
        "set it (mlxconfig takes the same arguments), then reboot, or power the host off and on",
        format!("mstconfig -d {pci} set {settings}"),
    )
}

impl CardSettings {
    /// The adapter of this function, of which nothing else is known yet.
    pub const fn new(pci: PciAddress, firmware: Option<String>) -> Self {
        Self {
            pci,
            device_type: None,
            firmware,
            problem: None,
            effect: None,
            written: Vec::new(),
            settings: Vec::new(),
            findings: Vec::new(),
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = self.findings.clone();
        if let Some(why) = &self.problem {
            findings.push(Finding::error(Code::FirmwareUnreadable, why).about(self.pci));
        }
        for setting in &self.settings {
            let because = setting.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            let name = &setting.name;
            let wanted = setting.wanted.as_ref().map(shown_value).unwrap_or_default();
            let next = setting.next.as_deref().unwrap_or("unknown");
            let text = match setting.state {
                State::Shown | State::AsWanted => continue,
                State::Unreadable if self.problem.is_some() => continue,
                State::ToBeSet => {
                    format!("{name} is to be {wanted}, and is {next} for the next boot{because}")
                }
                State::PendingReboot => {
                    format!("{name} = {wanted} is written, and takes effect at the next reboot")
                }
                State::PendingPowerCycle => format!(
                    "{name} = {wanted} is written, and takes effect after a power cycle (a reboot, if the last one was by kexec): do not write it again"
                ),
                State::NotSupported => {
                    format!("the adapter does not support {name}, or not as it is set up")
                }
                State::UnknownName => format!("the tool does not know {name}{because}"),
                State::NoEffect => format!("{name} = {wanted} has no effect{because}"),
                State::NotSet => format!("{name} = {wanted} was not set{because}"),
                State::Unreadable => format!("{name} could not be read{because}"),
            };
            let finding = match setting.state {
                State::PendingReboot | State::PendingPowerCycle => {
                    Finding::warning(Code::FirmwareResetPending, text)
                }
                State::NotSet | State::Unreadable => Finding::error(Code::FirmwareNotSet, text),
                _ if self.would_set(setting) => {
                    Finding::warning(Code::FirmwareNotAsConfigured, text)
                        .permanent([ToDo::run("ibprov firmware --apply")])
                }
                _ => Finding::warning(Code::FirmwareNotAsConfigured, text),
            };
            findings.push(finding.about(self.pci));
        }
        findings
    }

    /// `ibprov firmware --apply` writes it: nothing is known that keeps it from that.
    pub fn would_set(&self, setting: &Setting) -> bool {
        setting.state == State::ToBeSet && setting.reason.is_none() && self.problem.is_none()
    }

    fn verdict(&self) -> Verdict {
        let has = |states: &[State]| self.settings.iter().any(|s| states.contains(&s.state));
        if self.problem.is_some() || has(&[State::NotSet, State::Unreadable]) {
            Verdict::Failed
        } else if self.settings.iter().any(|s| !matches!(s.state, State::Shown | State::AsWanted)) {
            Verdict::Exceptions
        } else {
            Verdict::Ready
        }
    }
}

/// As it is written in the configuration, without quotes.
pub fn shown_value(value: &FirmwareValue) -> String {
    match value {
        FirmwareValue::Flag(flag) => flag.to_string(),
        other => other.to_string(),
    }
}

impl FirmwareReport {
    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let verdicts: Vec<_> = self.adapters.iter().map(CardSettings::verdict).collect();
        let all = [Verdict::Failed, Verdict::Exceptions];
        let worst = all.into_iter().find(|v| verdicts.contains(v));
        let mut findings: Vec<_> = self.adapters.iter().flat_map(CardSettings::findings).collect();
        Finding::worst_first(&mut findings);
        Report::new(Kind::Firmware, worst.unwrap_or(Verdict::Ready), findings, self)
    }
}
