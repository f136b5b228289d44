//! What the network stacks say of an interface, and who brings it up.

use std::fmt;

use serde::Serialize;

/// A network stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    /// NetworkManager.
    NetworkManager,
    /// systemd-networkd.
    SystemdNetworkd,
    /// SUSE's wicked.
    Wicked,
    /// Debian's ifupdown.
    Ifupdown,
    /// Red Hat's network-scripts.
    NetworkScripts,
}

impl Stack {
    /// All, in the order in which they are asked: who watches for interfaces
    /// first, then who only looks once.
    pub const ALL: [Self; 5] = [
        Self::NetworkManager,
        Self::SystemdNetworkd,
        Self::Wicked,
        Self::Ifupdown,
        Self::NetworkScripts,
    ];

    /// Its service.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::NetworkManager => "NetworkManager.service",
            Self::SystemdNetworkd => "systemd-networkd.service",
            Self::Wicked => "wicked.service",
            Self::Ifupdown => "networking.service",
            Self::NetworkScripts => "network.service",
        }
    }

    /// What to call it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NetworkManager => "NetworkManager",
            Self::SystemdNetworkd => "systemd-networkd",
            Self::Wicked => "wicked",
            Self::Ifupdown => "ifupdown",
            Self::NetworkScripts => "network-scripts",
        }
    }

    /// It looks at the interfaces once, when its service starts; the others
    /// take what appears later too.
    #[must_use]
    pub const fn looks_once(self) -> bool {
        matches!(self, Self::Ifupdown | Self::NetworkScripts)
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Where a service is in this boot, in systemd's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
    /// In words.
    #[must_use]
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
pub struct Claim {
    /// Is it?
    pub answer: Answer,
    /// Where that stands, or why not.
    pub why: String,
}

/// An answer to "is it yours?".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It brings it up when its service starts, or when it appears.
    Yes,
    /// ifupdown brings it up by a unit of its own when it appears
    /// (`allow-hotplug`).
    Hotplug,
    /// It has a configuration for it and is told not to bring it up by itself.
    ByHand,
    /// No.
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
pub struct View {
    /// Which.
    pub stack: Stack,
    /// Where its service is.
    pub phase: Phase,
    /// Whether the interface is its.
    pub claim: Claim,
    /// By its own record, the interface is up.
    pub recorded: bool,
    /// ifupdown's, and it is down and has addresses: `ip addr add` fails then with
    /// EEXIST, after which `ifup --force` ends with success and nothing done.
    pub addressed: bool,
    /// Where ifupdown's own hotplug unit for the interface is; `Absent` for
    /// other stacks.
    pub hotplug: Phase,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The stack has brought it up already.
    Nothing,
    /// The stack is still to come: it will find the interface there.
    Leave,
    /// The stack is at it: wait for its service's job, then look again.
    WaitForService,
    /// ifupdown's own unit for the interface is at it: wait, then look again.
    WaitForHotplug,
    /// The stack has been and missed it: `ifup`, in a unit of its own.
    Ifup,
    /// As `Ifup`, but its record of the interface is of one that is gone.
    IfupAgain,
    /// As `Ifup`, but the interface is down and has addresses already, by which
    /// ifupdown would stumble: `ifdown` first.
    IfupAnew,
    /// ifupdown's own unit for the interface was not started: start it.
    StartHotplug,
    /// The stack watches for interfaces: let it, and see that it does.
    Verify,
    /// A stack should bring it up and cannot.
    Stuck,
    /// No stack claims it.
    Nobody,
}

impl Action {
    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Nothing => "nothing to do",
            Self::Leave => "leave it to its stack",
            Self::WaitForService => "wait for the service, then look again",
            Self::WaitForHotplug => "wait for ifupdown's own unit, then look again",
            Self::Ifup => "run ifup",
            Self::IfupAgain => "run ifup --force",
            Self::IfupAnew => "run ifdown --force, then ifup",
            Self::StartHotplug => "start ifupdown's own unit for it",
            Self::Verify => "let its stack, and see that it does",
            Self::Stuck => "it cannot come up",
            Self::Nobody => "nobody brings it up",
        }
    }
}

/// What to do, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The stack that brings the interface up; none if nobody does.
    pub stack: Option<Stack>,
    /// What is to be done.
    pub action: Action,
    /// One sentence, without a full stop.
    pub why: String,
    /// Something is configured wrongly: it is no good end.
    pub is_wrong: bool,
}

impl Decision {
    pub(crate) fn new(stack: Stack, action: Action, why: String) -> Self {
        Self { stack: Some(stack), action, why, is_wrong: action == Action::Stuck }
    }
}
