//! Who brings an interface up: the host's network stacks, which of them claims
//! it, and whether it has been, is at it, or is still to come.
//!
//! One file per stack says what its configuration asks of an interface;
//! [`decide`] judges. Pure but for reading configuration through
//! [`crate::host::Root`]: the states of units, and what NetworkManager and
//! systemd-networkd say of themselves, come in as values. Nothing here goes by
//! a clock.

mod decide;
pub mod ifupdown;
pub mod network_manager;
pub mod network_scripts;
pub mod networkd;
pub mod wicked;

use std::fmt;

use serde::Serialize;

pub use decide::{Action, Decision, decide};

use crate::host::Root;
use crate::host::manager::UnitState;
use crate::observe::ipoib::Interface;

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
    /// Where `unit` is; `stack` is whose it should be.
    #[must_use]
    pub fn of(stack: Stack, unit: &UnitState) -> Self {
        // network.service can be an alias of wicked or NetworkManager.
        if !unit.is_loaded() || unit.id != stack.unit() {
            return Self::Absent;
        }
        Self::of_unit(unit)
    }

    /// Where any unit is.
    #[must_use]
    pub fn of_unit(unit: &UnitState) -> Self {
        match (unit.active.as_str(), unit.job) {
            ("active" | "reloading", _) => Self::Active,
            ("activating", _) => Self::Starting,
            ("deactivating", _) => Self::Stopped,
            (_, 1..) => Self::Queued,
            ("failed", _) => Self::Failed,
            _ if unit.inactive_enter_usec > 0 => Self::Stopped,
            _ => Self::NotStarted,
        }
    }

    /// Where ifupdown's own unit of an interface is. It is a simple service that
    /// remains: active from its first moment, and at it while its process runs.
    #[must_use]
    pub fn of_hotplug(unit: &UnitState) -> Self {
        match Self::of_unit(unit) {
            Self::Active if unit.sub == "running" => Self::Starting,
            phase => phase,
        }
    }

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

/// The name of ifupdown's unit for an interface that appears.
#[must_use]
pub fn hotplug_unit(interface: &Interface) -> String {
    format!("ifup@{}.service", unit_escape(interface.name.as_str()))
}

/// A text as the instance of a unit, as `systemd-escape` does it
/// (`systemd.unit(5)`, "String escaping for inclusion in unit names").
#[must_use]
pub fn unit_escape(text: &str) -> String {
    let mut escaped = String::new();
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'/' => escaped.push('-'),
            b'.' if i == 0 => escaped.push_str("\\x2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("\\x{byte:02x}")),
        }
    }
    escaped
}

/// The units whose states [`views`] wants, in this order.
#[must_use]
pub fn units(interface: &Interface) -> Vec<String> {
    let stacks = Stack::ALL.iter().map(|s| s.unit().to_owned());
    stacks.chain([hotplug_unit(interface)]).collect()
}

/// What NetworkManager, systemd-networkd and the kernel say themselves of an
/// interface.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// NetworkManager; `None` while it does not run.
    pub network_manager: Option<network_manager::Device>,
    /// systemd-networkd; `None` while it does not run.
    pub networkd: Option<networkd::Link>,
    /// The interface is down and has addresses.
    pub addressed: bool,
}

/// Every stack's view of `interface`. `states` answers [`units`].
#[must_use]
pub fn views(root: &Root, interface: &Interface, states: &[UnitState], live: &Live) -> Vec<View> {
    let phase = |stack: Stack| {
        let unit = states.iter().find(|u| u.name == stack.unit());
        unit.map_or(Phase::Absent, |unit| Phase::of(stack, unit))
    };
    let hotplug = hotplug_unit(interface);
    let hotplug = states.iter().find(|u| u.name == hotplug);
    let hotplug = hotplug.map_or(Phase::Absent, Phase::of_hotplug);
    let nm = phase(Stack::NetworkManager);
    let nm_here = !matches!(nm, Phase::Absent | Phase::NotStarted);
    let view = |stack: Stack| {
        let phase = phase(stack);
        let claim = match stack {
            _ if phase == Phase::Absent => Claim::new(Answer::No, "not on this host"),
            Stack::NetworkManager => {
                network_manager::claim(root, interface, phase, live.network_manager.as_ref())
            }
            Stack::SystemdNetworkd => {
                networkd::claim(root, interface, phase, live.networkd.as_ref())
            }
            Stack::Wicked => wicked::claim(root, interface),
            Stack::Ifupdown => ifupdown::claim(root, interface),
            Stack::NetworkScripts => network_scripts::claim(root, interface, nm_here),
        };
        let recorded = match stack {
            Stack::Ifupdown => ifupdown::is_recorded(root, interface),
            _ => interface.up,
        };
        let hotplug = if stack == Stack::Ifupdown { hotplug } else { Phase::Absent };
        let addressed = stack == Stack::Ifupdown && live.addressed;
        View { stack, phase, claim, recorded, addressed, hotplug }
    };
    Stack::ALL.into_iter().map(view).collect()
}

/// What the configuration files say, for a copy of a tree, which has no units to
/// ask for: every stack is looked at whose unit is there.
#[must_use]
pub fn on_disk(root: &Root, interface: &Interface) -> Vec<View> {
    let is_there = |unit: &str| {
        ["/etc", "/usr/lib", "/lib"]
            .iter()
            .any(|d| root.exists(&format!("{d}/systemd/system/{unit}")))
    };
    let states: Vec<UnitState> = Stack::ALL
        .iter()
        .filter(|s| is_there(s.unit()) || root.exists("/etc/init.d/network") && s.looks_once())
        .map(|s| UnitState {
            name: s.unit().to_owned(),
            id: s.unit().to_owned(),
            load: "loaded".to_owned(),
            active: "inactive".to_owned(),
            ..UnitState::default()
        })
        .collect();
    views(root, interface, &states, &Live::default())
}

/// `KEY=value` lines of an ifcfg file, which is a shell script of assignments:
/// quotes are taken off, the last one counts. Nothing is executed.
pub(crate) fn ifcfg(text: &str) -> Vec<(String, String)> {
    let pair = |line: &str| {
        let (key, value) = line.trim().split_once('=')?;
        let key = key.trim_start_matches("export ").trim();
        let good = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let value = value.trim();
        let bare = match value.chars().next() {
            Some(q @ ('"' | '\'')) => value.get(1..).and_then(|v| v.split(q).next()),
            _ => value.split([' ', '\t', '#']).next(),
        };
        good.then(|| (key.to_owned(), bare.unwrap_or_default().to_owned()))
    };
    text.lines().filter(|l| !l.trim_start().starts_with('#')).filter_map(pair).collect()
}

/// The last value of `key`.
pub(crate) fn last<'a>(pairs: &'a [(String, String)], key: &str) -> Option<&'a str> {
    let found = pairs.iter().rev().find(|(k, _)| k.eq_ignore_ascii_case(key));
    found.map(|(_, v)| v.as_str())
}

/// Why a hardware address of a configuration is not that of `interface`, in the
/// ways that people get it wrong; `None` if it is, for those who compare its
/// last 8 bytes, or all of it.
pub(crate) fn address_trouble(configured: &str, interface: &Interface) -> Option<String> {
    let guid = interface.guid?;
    let bytes: Vec<&str> = configured.split([':', '-']).collect();
    let tail = |n: usize| {
        let from = bytes.len().checked_sub(n)?;
        Some(bytes.get(from..)?.join(":").to_ascii_lowercase())
    };
    let own = guid_bytes(guid);
    match bytes.len() {
        20 if tail(8).as_deref() == Some(&own) => None,
        20 => Some(format!("its address {configured} ends in another port GUID")),
        8 if tail(8).as_deref() == Some(&own) => {
            Some(format!("its address {configured} is the port GUID alone: 20 bytes are wanted"))
        }
        6 => Some(format!(
            "its address {configured} has the 6 bytes of Ethernet, an IPoIB address has 20"
        )),
        n => Some(format!("its address {configured} has {n} bytes, an IPoIB address has 20")),
    }
}

/// `b8:59:9f:03:00:12:a4:80`
pub(crate) fn guid_bytes(guid: crate::names::Guid) -> String {
    guid.value().to_be_bytes().map(|b| format!("{b:02x}")).join(":")
}

#[cfg(test)]
mod tests;
