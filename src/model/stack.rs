//! What the network stacks say of an interface, and who brings it up.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::names::Mode;

/// The name of a network stack. What is known of the stack is known to
/// `crate::stacks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackName {
    json: &'static str,
    word: &'static str,
}

impl StackName {
    /// A stack that is `json` in JSON (`network-manager`) and `word` for people
    /// (`NetworkManager`).
    pub const fn new(json: &'static str, word: &'static str) -> Self {
        Self { json, word }
    }

    pub const fn word(self) -> &'static str {
        self.word
    }
}

#[cfg(test)]
impl schemars::JsonSchema for StackName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StackName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string"})
    }
}

impl Serialize for StackName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.json)
    }
}

impl fmt::Display for StackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word)
    }
}

/// A unit is configured to set up a netdev.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfiguredNetdev {
    pub unit: String,
    pub netdev: String,
    /// The file that says so.
    pub file: String,
}

/// Where a service is in this boot, in systemd's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// There is no such unit, or it is masked, or it is another stack's.
    Absent,
    /// It is there, has no job, and has not run.
    NotStarted,
    /// Its start is queued: it is still to come.
    Queued,
    /// It is starting.
    Starting,
    /// It is active: a daemon runs, a one-shot service has run.
    Active,
    /// It has run and failed.
    Failed,
    /// It has run and was stopped, or is being stopped.
    Stopped,
}

impl Phase {
    /// What is printed for it, to stand within a sentence.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Absent => "not on this host",
            Self::NotStarted => "not part of this boot",
            Self::Queued => "still to come",
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// Whether a stack's configuration is for an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Claim {
    pub answer: Answer,
    /// Where that stands, or why not; in JSON `reason`.
    #[serde(rename = "reason")]
    pub why: String,
}

/// An answer to "is it yours?".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It brings it up when its service starts, or when it appears.
    Yes,
    /// ifupdown brings it up by a unit of its own when it appears
    /// (`allow-hotplug`).
    Hotplug,
    /// It has a configuration for it and is told not to bring it up by itself.
    ByHand,
    /// Nothing of its configuration is for the interface.
    No,
    /// No, although something was probably meant for it: a wrong address, a
    /// former name.
    Missed,
    /// It cannot be told before its service runs.
    Later,
}

impl Claim {
    pub(crate) fn new(answer: Answer, why: impl Into<String>) -> Self {
        Self { answer, why: why.into() }
    }
}

/// One stack and one interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct View {
    /// The stack whose view this is.
    pub stack: StackName,
    /// Where its service is.
    pub phase: Phase,
    /// Whether the interface is its.
    pub claim: Claim,
    /// By its own record, the interface is up.
    pub recorded: bool,
    /// The interface is down and has addresses, and the stack is one that stumbles
    /// over them (ifupdown).
    pub addressed: bool,
    /// Where the stack's own unit for the one interface is (ifupdown's `ifup@`);
    /// `Absent` where its files do not have it start one.
    pub hotplug: Phase,
    /// What it writes to the interface when it brings it up.
    pub writes: Vec<StackSetting>,
}

impl View {
    /// Which stacks are there, and whether each claims the interface: a line for each.
    pub fn lines(views: &[Self]) -> impl Iterator<Item = String> {
        let present = views.iter().filter(|view| view.phase != Phase::Absent);
        present.map(|Self { stack, phase, claim, .. }| {
            let answer = match claim.answer {
                Answer::Yes | Answer::Hotplug => "claims it",
                Answer::ByHand => "has the interface, but starts it only by hand",
                Answer::No => "does not claim the interface",
                Answer::Missed => "does not claim the interface, but should",
                Answer::Later => "has not decided yet",
            };
            format!("stack {stack} ({}): {answer}: {}", phase.text(), claim.why)
        })
    }
}

/// A setting that a stack writes to an interface when it brings it up, by its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StackSetting {
    /// What it writes.
    #[serde(flatten)]
    pub value: SettingValue,
    /// The file that says so, without control characters.
    pub file: String,
    /// Its key for that, in its own words (`infiniband.transport-mode`).
    pub key: &'static str,
    /// The key is not in the file: this is what the stack takes then.
    pub by_default: bool,
}

/// What a stack writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SettingValue {
    /// The transport mode.
    Mode(Mode),
    /// The MTU, bytes.
    Mtu(u32),
}

impl SettingValue {
    /// What it is a value of.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Mode(_) => "transport mode",
            Self::Mtu(_) => "MTU",
        }
    }

    /// The key of `[[interface]]` for it.
    pub const fn own_key(self) -> &'static str {
        match self {
            Self::Mode(_) => "mode",
            Self::Mtu(_) => "mtu",
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mode(mode) => f.write_str(mode.word()),
            Self::Mtu(mtu) => write!(f, "{mtu}"),
        }
    }
}

impl fmt::Display for StackSetting {
    /// Where it stands: `infiniband.transport-mode in FILE says datagram`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, file, key, by_default } = self;
        if *by_default {
            write!(f, "{file} has no {key}, which means {value}")?;
        } else {
            write!(f, "{key} in {file} says {value}")?;
        }
        match (is_netplans(file), value) {
            (false, _) => Ok(()),
            (true, SettingValue::Mtu(_)) => f.write_str(&by_netplan("mtu")),
            (true, SettingValue::Mode(_)) => f.write_str(&by_netplan("infiniband-mode")),
        }
    }
}

/// netplan writes this file anew at each boot (`/run/systemd/network/10-netplan-ib0.network`,
/// `/run/NetworkManager/system-connections/netplan-ib0.nmconnection`).
pub fn is_netplans(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    file.starts_with("/run/") && (name.starts_with("10-netplan-") || name.starts_with("netplan-"))
}

fn by_netplan(key: &str) -> String {
    format!(
        "; netplan writes that file at each boot from /etc/netplan/*.yaml: change {key} there and run `netplan apply`"
    )
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The stack has brought it up already.
    #[strum(to_string = "nothing to do")]
    Nothing,
    /// The stack is still to come: it will find the interface there.
    #[strum(to_string = "leave it to the network stack")]
    Leave,
    /// The stack is at it: wait for its service's job, then look again.
    #[strum(to_string = "wait for the service, then look again")]
    WaitForService,
    /// ifupdown's own unit for the interface is at it: wait, then look again.
    #[strum(to_string = "wait for ifupdown's own unit, then look again")]
    WaitForHotplug,
    /// The stack has been and missed it: `ifup`, in a unit of its own.
    #[strum(to_string = "run ifup")]
    Ifup,
    /// As `Ifup`, but its record of the interface is of one that is gone.
    #[strum(to_string = "run ifup --force")]
    IfupAgain,
    /// As `Ifup`, but the interface is down and has addresses already, by which
    /// ifupdown would stumble: `ifdown` first.
    #[strum(to_string = "run ifdown --force, then ifup")]
    IfupAnew,
    /// ifupdown's own unit for the interface was not started: start it.
    #[strum(to_string = "start ifupdown's own unit for it")]
    StartHotplug,
    /// The stack watches for interfaces: let it, and see that it does.
    #[strum(to_string = "verify that the network stack brings it up")]
    Verify,
    /// A stack should bring it up and cannot.
    #[strum(to_string = "the interface cannot come up")]
    Stuck,
    /// No stack claims it.
    #[strum(to_string = "no network stack brings it up")]
    Nobody,
}

/// What to do, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Decision {
    /// The stack that brings the interface up; none if nobody does.
    pub stack: Option<StackName>,
    /// What is to be done.
    pub action: Action,
    /// One sentence, without a full stop; in JSON `reason`.
    #[serde(rename = "reason")]
    pub why: String,
    /// Something is configured wrongly: it is no good end.
    pub is_wrong: bool,
}

impl Decision {
    pub(crate) fn new(stack: StackName, action: Action, why: String) -> Self {
        Self { stack: Some(stack), action, why, is_wrong: action == Action::Stuck }
    }
}
