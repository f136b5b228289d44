//! The report of `ibprov guests`: `/run/ibprov/guests.json`, and its text.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::names::{Moment, PciAddress, VfName, VfRung};

use super::{Code, Exit, Finding, Kind, Report, Verdict, not_read, seconds};

/// How far a guest is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::EnumDiscriminants)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "phase", rename_all = "kebab-case")]
#[strum_discriminants(name(PhaseWord), doc = "The same in one word.")]
#[strum_discriminants(derive(strum::IntoStaticStr, strum::VariantArray))]
#[strum_discriminants(strum(serialize_all = "kebab-case"))]
pub enum Phase {
    /// Not started yet.
    Idle,
    /// Being started since then, microseconds of CLOCK_MONOTONIC.
    Starting {
        #[serde(default)]
        since_usec: Moment,
    },
    /// Asked for, and not waited for: it could not start before this unit has.
    Issued {
        /// Why it was not waited for; in JSON `reason`.
        #[serde(default, rename = "reason")]
        why: String,
    },
    /// It is up, or was when it was last looked at.
    Up {
        /// It was up already.
        #[serde(default)]
        already: bool,
    },
    /// It will not be started.
    Failed {
        /// Why its start failed, or was not tried; in JSON `reason`.
        #[serde(default, rename = "reason")]
        why: String,
    },
}

impl Phase {
    /// Nothing more is going to happen to it, so who comes after it may go on.
    pub const fn is_settled(&self) -> bool {
        matches!(self, Self::Up { .. } | Self::Failed { .. } | Self::Issued { .. })
    }
}

/// How such a device is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VfState {
    /// Which VF; `None` for a function that is not there.
    pub vf: Option<VfName>,
    /// Its PCI function, once it exists.
    pub pci: Option<PciAddress>,
    /// The highest rung that it has reached.
    pub reached: Option<VfRung>,
    /// What is not right: the first that counts; `None` if a guest may be started on it.
    #[serde(rename = "reason")]
    pub lacks: Option<String>,
}

impl VfState {
    /// A function that does not exist.
    pub fn no_function(pci: PciAddress) -> Self {
        let why =
            "no PCI function has this address; the guest is started when one appears".to_owned();
        Self::unclear(pci, why)
    }

    /// A function of which it cannot be told whether it is a VF.
    pub const fn unclear(pci: PciAddress, why: String) -> Self {
        Self { vf: None, pci: Some(pci), reached: None, lacks: Some(why) }
    }

    /// A guest may be started on it.
    pub const fn is_right(&self) -> bool {
        self.lacks.is_none()
    }

    pub fn label(&self) -> String {
        match (self.vf, self.pci) {
            (Some(vf), Some(pci)) => format!("VF {vf} ({pci})"),
            (Some(vf), None) => format!("VF {vf}"),
            (None, Some(pci)) => format!("function {pci}"),
            (None, None) => "VF".to_owned(),
        }
    }
}

/// All guests at one moment. Times are microseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GuestsReport {
    /// Version of ibprov.
    #[serde(default)]
    pub version: Cow<'static, str>,
    /// When ibprov began.
    #[serde(default)]
    pub started_usec: Moment,
    /// When the first pass was over.
    pub ready_usec: Option<Moment>,
    /// When it ended; absent while it waits for VFs.
    pub finished_usec: Option<Moment>,
    /// Its exit code, once it has ended.
    #[serde(skip)]
    pub exit_code: Option<u8>,
    /// With `--dry-run` the guests that would be started, in this order.
    #[serde(default)]
    pub would_start: Vec<String>,
    /// The guests, as configured.
    #[serde(default)]
    pub guests: Vec<GuestReport>,
    /// What the account of the node says of the VFs of guests, where it was looked at.
    #[serde(skip)]
    pub account: Vec<Finding>,
    /// Warnings and what could not be read.
    #[serde(skip)]
    pub problems: BTreeSet<String>,
}

/// What sort of guest one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GuestKind {
    /// A libvirt domain.
    #[strum(to_string = "domain")]
    Domain,
    /// A systemd unit.
    #[strum(to_string = "unit")]
    Unit,
}

/// One guest, as `ibprov guests` last saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GuestReport {
    /// Its libvirt name or UUID, or its unit, as configured.
    pub name: String,
    /// What sort of guest it is.
    pub kind: GuestKind,
    /// The domain's UUID, once libvirt has told.
    pub uuid: Option<String>,
    #[serde(flatten)]
    pub phase: Phase,
    /// Why it has not been started yet; absent where it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// Its VFs; `null` until they were looked at. Not read back.
    #[serde(skip_deserializing)]
    pub vfs: Option<Vec<VfState>>,
    /// When it was seen to be up.
    pub up_usec: Option<Moment>,
    #[serde(default)]
    pub origin: String,
}

impl GuestsReport {
    /// What the process ends with, or ended with.
    pub fn exit_code(&self) -> u8 {
        self.exit_code.unwrap_or_else(|| self.code())
    }

    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let of = |guest: &GuestReport| {
            let finding = match &guest.phase {
                Phase::Failed { .. } => Finding::warning(Code::GuestFailed, self.state(guest)),
                Phase::Up { .. } => return None,
                _ => Finding::warning(Code::GuestWaits, self.state(guest)),
            };
            Some(finding.about(&guest.name))
        };
        let mut findings = self.account.clone();
        findings.extend(self.guests.iter().filter_map(of));
        Finding::worst_first(&mut findings);
        findings.extend(not_read(&self.problems));
        let verdict = match self.exit_code() {
            0 => Verdict::Ready,
            1 => Verdict::Exceptions,
            _ => Verdict::NotReady,
        };
        Report::new(Kind::Guests, verdict, findings, self).exiting(self.exit_code())
    }

    /// Of a run that has just begun.
    pub fn new(started_usec: Moment) -> Self {
        Self { version: Cow::Borrowed(env!("CARGO_PKG_VERSION")), started_usec, ..Self::default() }
    }

    /// The run has ended, by a signal or because nothing is left to do.
    pub fn finish(&mut self, now: Moment) {
        self.finished_usec = Some(now);
        self.exit_code = Some(self.code());
    }

    /// 3 if a guest has failed, 1 if one waits, else 0.
    pub fn code(&self) -> u8 {
        if self.guests.iter().any(|g| matches!(g.phase, Phase::Failed { .. })) {
            Exit::NotReady.code()
        } else if self.guests.iter().any(|g| !matches!(g.phase, Phase::Up { .. })) {
            Exit::Exceptions.code()
        } else {
            Exit::Good.code()
        }
    }

    pub fn state(&self, guest: &GuestReport) -> String {
        match &guest.phase {
            Phase::Idle => match &guest.waits {
                Some(why) => format!("waits: {why}"),
                None => "can be started".to_owned(),
            },
            Phase::Starting { .. } => "is being started".to_owned(),
            Phase::Issued { why } => format!("started and not waited for: {why}"),
            Phase::Up { already: true } => "is up, and was before".to_owned(),
            Phase::Up { already: false } => {
                let at = guest.up_usec.unwrap_or_default().since(self.started_usec);
                format!("up after {}", seconds(at))
            }
            Phase::Failed { why } => format!("FAILED: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_vf_lacks_is_text_in_json_and_nothing_is_null() {
        let pci: PciAddress = "0000:4b:00.1".parse().expect("address");
        let absent = VfState::no_function(pci);
        let right = VfState { lacks: None, ..absent.clone() };
        let json = |state: &VfState| serde_json::to_value(state).expect("JSON");
        assert_eq!(
            json(&absent),
            serde_json::json!({
                "vf": null, "pci": "0000:4b:00.1", "reached": null,
                "reason": "no PCI function has this address; the guest is started when one appears",
            })
        );
        assert_eq!(json(&right)["reason"], serde_json::Value::Null);
        let mut report = GuestsReport::new(Moment::START);
        report.guests.push(GuestReport {
            name: "vm".to_owned(),
            kind: GuestKind::Domain,
            uuid: None,
            phase: Phase::Idle,
            waits: Some("why".to_owned()),
            vfs: Some(vec![absent, right]),
            up_usec: None,
            origin: String::new(),
        });
        assert_eq!(
            crate::show::guests::text(&report, Default::default()),
            "0 of 1 guests up\n  domain vm: waits: why\n      \
             function 0000:4b:00.1: absent: no PCI function has this address; the guest is started when one appears\n      \
             function 0000:4b:00.1: absent: right\n"
        );
    }
}
