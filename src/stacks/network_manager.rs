//! NetworkManager: what it says of a device, and why no profile fits.

use super::{address_trouble, ifcfg, last};
use crate::host::Root;
use crate::observe::ipoib::Interface;
use crate::report::stack::{Answer, Claim, Phase};

/// What NetworkManager says of a device
/// (`org.freedesktop.NetworkManager.Device`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// NMDeviceState: 10 unmanaged, 20 unavailable, 30 disconnected, 40 to 90
    /// being brought up, 100 activated, 110 deactivating, 120 failed; 0 while
    /// NetworkManager does not know the device.
    pub state: u32,
    /// NMDeviceStateReason.
    pub reason: u32,
    /// It manages it.
    pub managed: bool,
    /// Profiles that it could activate now.
    pub profiles: usize,
    /// The profile that is active, by name.
    pub active: Option<String>,
}

impl Device {
    /// The state in NetworkManager's words.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self.state {
            0 => "unknown",
            10 => "unmanaged",
            20 => "unavailable",
            30 => "disconnected",
            40..=90 => "being brought up",
            100 => "activated",
            110 => "deactivating",
            120 => "failed",
            _ => "in a state of its own",
        }
    }

    /// It is bringing the device up, or has.
    #[must_use]
    pub const fn is_taken(&self) -> bool {
        matches!(self.state, 40..=100)
    }
}

const SCRIPTS: &str = "/etc/sysconfig/network-scripts";
const DIRS: [&str; 3] = [
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager/system-connections",
];

/// The stack's claim to `interface`.
#[must_use]
pub fn claim(root: &Root, interface: &Interface, phase: Phase, live: Option<&Device>) -> Claim {
    let Some(device) = live.filter(|d| d.state != 0) else {
        return match phase {
            Phase::Queued | Phase::Starting | Phase::Active => {
                Claim::new(Answer::Later, "it has not decided on this interface yet")
            }
            _ => Claim::new(Answer::No, phase.text()),
        };
    };
    let word = device.word();
    if device.is_taken() || device.profiles > 0 {
        let profile = device.active.as_ref().map(|p| format!(", profile {p:?}"));
        return Claim::new(Answer::Yes, format!("{word}{}", profile.unwrap_or_default()));
    }
    match fitting(root, interface) {
        Fit::No => {}
        // It activates it as soon as there is carrier, or has failed to.
        Fit::Yes(path) if device.managed => {
            return Claim::new(Answer::Yes, format!("{path} ({word})"));
        }
        Fit::Yes(path) => {
            let why = format!(
                "{path} is for it, but NetworkManager does not manage it: unmanaged-devices in NetworkManager.conf, a udev rule with NM_UNMANAGED, or /etc/network/interfaces"
            );
            return Claim::new(Answer::Missed, why);
        }
        Fit::Missed(why) => return Claim::new(Answer::Missed, why),
    }
    match device.managed {
        true => Claim::new(Answer::No, format!("{word}: it has no profile for it")),
        false => Claim::new(Answer::No, "it does not manage it"),
    }
}

enum Fit {
    Yes(String),
    Missed(String),
    No,
}

/// Whether one of the profiles on disk is for `interface`.
fn fitting(root: &Root, interface: &Interface) -> Fit {
    let mut missed = None;
    for dir in DIRS {
        for file in root.list_or_empty(dir).unwrap_or_default() {
            let path = format!("{dir}/{file}");
            if file.starts_with('.') || file.ends_with('~') {
                continue;
            }
            let Ok(text) = root.text(&path, 1 << 20) else { continue };
            match keyfile(&path, &text, interface) {
                Fit::No => {}
                Fit::Missed(why) => missed = Some(why),
                yes @ Fit::Yes(_) => return yes,
            }
        }
    }
    for file in root.list_or_empty(SCRIPTS).unwrap_or_default() {
        let path = format!("{SCRIPTS}/{file}");
        let Ok(text) = root.text(&path, 1 << 20) else { continue };
        let pairs = ifcfg(&text);
        if file.starts_with("ifcfg-") && last(&pairs, "DEVICE") == Some(interface.name.as_str()) {
            let no = last(&pairs, "NM_CONTROLLED").is_some_and(|v| v.eq_ignore_ascii_case("no"));
            let trouble = last(&pairs, "HWADDR").and_then(|a| address_trouble(a, interface));
            match (no, trouble) {
                (true, _) => missed = Some(format!("NM_CONTROLLED=no in {path}")),
                (_, Some(trouble)) => missed = Some(format!("{path} does not fit: {trouble}")),
                _ => return Fit::Yes(path),
            }
        }
    }
    missed.map_or(Fit::No, Fit::Missed)
}

/// One profile in keyfile format (`nm-settings-keyfile(5)`).
fn keyfile(path: &str, text: &str, interface: &Interface) -> Fit {
    let mut section = "";
    let mut pairs = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name;
        } else if let Some((key, value)) = line.split_once('=') {
            pairs.push((format!("{section}.{}", key.trim()), value.trim().to_owned()));
        }
    }
    let get = |key: &str| last(&pairs, key);
    if get("connection.type") != Some("infiniband") {
        return match get("connection.interface-name") {
            Some(name) if name == interface.name.as_str() => {
                let kind = get("connection.type").unwrap_or("no type");
                let kind: String = kind.chars().filter(|c| !c.is_control()).collect();
                Fit::Missed(format!("{path} names it, but is of type {kind}, not infiniband"))
            }
            _ => Fit::No,
        };
    }
    let name = get("connection.interface-name");
    let address = get("infiniband.mac-address");
    // NetworkManager compares the last 8 bytes of an InfiniBand address.
    let trouble = address.and_then(|a| address_trouble(a, interface));
    match (name, address, trouble) {
        (Some(name), Some(_), None) if name != interface.name.as_str() => Fit::Missed(format!(
            "{path} has this port's address, but is bound to the name {name:?}"
        )),
        (Some(name), ..) if name != interface.name.as_str() => Fit::No,
        (Some(_), _, Some(trouble)) => Fit::Missed(format!("{path} does not fit: {trouble}")),
        (None, _, Some(_)) => Fit::No,
        _ if get("connection.autoconnect") == Some("false") => Fit::No,
        _ => Fit::Yes(path.to_owned()),
    }
}
