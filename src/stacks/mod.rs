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

use crate::host::Root;
use crate::host::manager::UnitState;
use crate::observe::ipoib::Interface;
use crate::report::stack::{Answer, Claim, Phase, Stack, View};

pub use decide::decide;

/// Where `unit` is; `stack` is whose it should be.
#[must_use]
pub fn phase_of(stack: Stack, unit: &UnitState) -> Phase {
    // network.service can be an alias of wicked or NetworkManager.
    if !unit.is_loaded() || unit.id != stack.unit() {
        return Phase::Absent;
    }
    phase_of_unit(unit)
}

/// Where any unit is.
#[must_use]
pub fn phase_of_unit(unit: &UnitState) -> Phase {
    match (unit.active.as_str(), unit.job) {
        ("active" | "reloading", _) => Phase::Active,
        ("activating", _) => Phase::Starting,
        ("deactivating", _) => Phase::Stopped,
        (_, 1..) => Phase::Queued,
        ("failed", _) => Phase::Failed,
        _ if unit.inactive_enter_usec > 0 => Phase::Stopped,
        _ => Phase::NotStarted,
    }
}

/// Where ifupdown's own unit of an interface is. It is a simple service that
/// remains: active from its first moment, and at it while its process runs.
#[must_use]
pub fn phase_of_hotplug(unit: &UnitState) -> Phase {
    match phase_of_unit(unit) {
        Phase::Active if unit.sub == "running" => Phase::Starting,
        phase => phase,
    }
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
        unit.map_or(Phase::Absent, |unit| crate::stacks::phase_of(stack, unit))
    };
    let hotplug = hotplug_unit(interface);
    let hotplug = states.iter().find(|u| u.name == hotplug);
    let hotplug = hotplug.map_or(Phase::Absent, crate::stacks::phase_of_hotplug);
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
