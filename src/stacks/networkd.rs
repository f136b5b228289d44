//! systemd-networkd: what it says of a link, and why no .network file fits.

use std::collections::BTreeMap;

use super::address_trouble;
use crate::host::Root;
use crate::observe::ipoib::Interface;
use crate::report::stack::{Answer, Claim, Phase};

/// What systemd-networkd says of a link (`org.freedesktop.network1(5)`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// AdministrativeState: `pending`, `initialized`, `configuring`,
    /// `configured`, `unmanaged`, `failed`, `linger`.
    pub state: String,
    /// The .network file that it follows.
    pub file: Option<String>,
}

impl Link {
    /// It has not made up its mind yet.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        matches!(self.state.as_str(), "" | "pending" | "initialized")
    }
}

const DIRS: [&str; 4] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
];

/// The stack's claim to `interface`.
#[must_use]
pub fn claim(root: &Root, interface: &Interface, phase: Phase, live: Option<&Link>) -> Claim {
    match live {
        Some(link) if link.state == "unmanaged" => match near_miss(root, interface) {
            Some(why) => Claim::new(Answer::Missed, why),
            None => Claim::new(Answer::No, "unmanaged: no .network file fits it"),
        },
        Some(link) if !link.is_undecided() => {
            let file = link.file.clone().unwrap_or_else(|| "a .network file".to_owned());
            Claim::new(Answer::Yes, format!("{file} ({})", link.state))
        }
        // It takes links in by itself, and tells as soon as it has.
        _ if matches!(phase, Phase::Queued | Phase::Starting | Phase::Active) => {
            if networks(root).is_empty() {
                Claim::new(Answer::No, "there is no .network file")
            } else {
                Claim::new(Answer::Later, "it has not decided on this interface yet")
            }
        }
        _ => Claim::new(Answer::No, phase.text()),
    }
}

/// The .network files that hold, by name.
fn networks(root: &Root) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for dir in DIRS {
        for name in root.list_or_empty(dir).unwrap_or_default() {
            if name.ends_with(".network") {
                let path = format!("{dir}/{name}");
                files.entry(name).or_insert(path);
            }
        }
    }
    files
}

/// A .network file that was probably meant for `interface`, and why it is not.
fn near_miss(root: &Root, interface: &Interface) -> Option<String> {
    for path in networks(root).values() {
        let Ok(text) = root.text(path, 1 << 20) else { continue };
        let section = matching(&text);
        let values = |key: &str| {
            let of_key = section.iter().filter(|(k, _)| k == key);
            of_key.flat_map(|(_, v)| v.split_whitespace()).map(str::to_owned).collect::<Vec<_>>()
        };
        let names = values("Name");
        let named = names
            .iter()
            .any(|p| glob::Pattern::new(p).is_ok_and(|p| p.matches(interface.name.as_str())));
        let addresses = values("MACAddress");
        let close = addresses.iter().find_map(|a| {
            // networkd compares all 20 bytes, of which the first 4 change.
            address_trouble(a, interface).or_else(|| {
                Some(format!(
                    "its address {a} has this port's GUID, but systemd-networkd compares all 20 bytes, and the first 4 change at every probe: match by Name= or Path="
                ))
            })
        });
        let ours = |a: &String| address_trouble(a, interface).is_none();
        if named && let Some(trouble) = close {
            return Some(format!("{path} names it and does not fit: {trouble}"));
        }
        if let (Some(trouble), true) = (close, addresses.iter().any(ours)) {
            return Some(format!("{path}: {trouble}"));
        }
        if names.is_empty() && values("Type").iter().any(|t| t == "ether") {
            continue;
        }
        if named {
            let rest: Vec<String> = section
                .iter()
                .filter(|(k, _)| k != "Name")
                .map(|(k, v)| format!("{k}={v}"))
                .collect();
            return Some(format!(
                "{path} names it and does not fit; it also wants {}",
                rest.join(", ")
            ));
        }
    }
    former_name(root, interface)
}

/// A .network file for a kernel name, where the interface has been renamed.
fn former_name(root: &Root, interface: &Interface) -> Option<String> {
    let record = root.attribute(&format!("/run/udev/data/n{}", interface.ifindex)).ok()?;
    let known: Vec<&str> = record
        .lines()
        .filter_map(|l| l.strip_prefix("E:")?.split_once('='))
        .filter(|(k, _)| k.starts_with("ID_NET_NAME") || *k == "INTERFACE_OLD")
        .map(|(_, v)| v)
        .collect();
    for path in networks(root).values() {
        let Ok(text) = root.text(path, 1 << 20) else { continue };
        for (_, value) in matching(&text).iter().filter(|(k, _)| k == "Name") {
            let other = value.split_whitespace().find(|name| known.contains(name));
            if let Some(other) = other {
                let now = &interface.name;
                return Some(format!("{path} is for {other}, a name that {now} could have had"));
            }
        }
    }
    None
}

/// The assignments of the [Match] section.
fn matching(text: &str) -> Vec<(String, String)> {
    let mut inside = false;
    let mut pairs = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[Match]";
        } else if inside
            && !line.starts_with(['#', ';'])
            && let Some((key, value)) = line.split_once('=')
        {
            pairs.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    pairs
}
