//! systemd-networkd: what it says of a link, and why no .network file fits.

use std::collections::BTreeMap;

use super::files::{Files, LIMIT, address_trouble, first, folder, setting};
use super::stack::{Facts, Owner, Phases, Progress, Reply, Stack, StackState, StackUnit};
use crate::config::foreign::keyfile;
use crate::host::Root;
use crate::host::bus;
use crate::host::manager::Manager;
use crate::host::{links, udev_record};
use crate::model::{
    StackName, StackSetting,
    stack::{Answer, Claim, Phase, SettingValue},
};
use crate::names::{IfName, NetworkRole, harmless};
use crate::observe::ipoib::Interface;

#[derive(Debug)]
pub struct Networkd;

const SERVICE: &str = "systemd-networkd.service";

static FACTS: Facts = Facts {
    waiting_commands: &["systemd-networkd-wait-online"],
    ..Facts::new(
        StackName::new("systemd-networkd", "systemd-networkd"),
        SERVICE,
        &[
            StackUnit::new(
                SERVICE,
                NetworkRole::SetsUpWhatComes,
                &["Network Configuration", "Network Service"],
            ),
            StackUnit::new(
                "systemd-networkd-wait-online.service",
                NetworkRole::WaitsOnline,
                &["Wait for Network to be Configured"],
            ),
        ],
    )
};

const DIRS: [&str; 4] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
];

/// How far it is with a link (`AdministrativeState` of `org.freedesktop.network1(5)`;
/// `link_state_table` of `src/network/networkd-link.c`).
#[derive(Debug, Clone, Default, PartialEq, Eq, strum::AsRefStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum AdministrativeState {
    /// It does not know the link.
    #[default]
    #[strum(serialize = "")]
    Unknown,
    /// udev has not initialized it.
    Pending,
    /// udev has, and no .network file has been looked for.
    Initialized,
    Configuring,
    Configured,
    /// No .network file fits it.
    Unmanaged,
    Failed,
    Linger,
    /// A state of a newer version.
    #[strum(default, transparent)]
    Other(String),
}

impl AdministrativeState {
    /// The state that networkd calls `word`.
    pub fn of(word: &str) -> Self {
        // Any word is one: what none of the others is called is `Other`.
        word.parse().unwrap_or_default()
    }

    pub fn word(&self) -> &str {
        self.as_ref()
    }

    /// It has not made up its mind yet.
    const fn is_undecided(&self) -> bool {
        matches!(self, Self::Unknown | Self::Pending | Self::Initialized)
    }
}

/// What systemd-networkd says of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    pub state: AdministrativeState,
    /// The .network file that it follows.
    pub file: Option<String>,
}

impl StackState for Link {
    fn claim(&self, root: &Files<'_>, interface: &Interface) -> Option<Claim> {
        if self.state.is_undecided() {
            return None;
        }
        Some(match (&self.state, &self.file) {
            (AdministrativeState::Unmanaged, _) => match near_miss(root, interface) {
                Some(why) => Claim::new(Answer::Missed, why),
                None => Claim::new(Answer::No, "unmanaged: no .network file matches the interface"),
            },
            (state, file) => {
                let file = file.as_deref().unwrap_or("a .network file");
                Claim::new(Answer::Yes, format!("{file} ({})", state.word()))
            }
        })
    }

    fn progress(&self, interface: &Interface) -> Progress {
        match self.state {
            AdministrativeState::Configured if interface.up => Progress::Up,
            AdministrativeState::Failed => Progress::Failed,
            _ if self.state.is_undecided() => Progress::Undecided,
            _ => Progress::Working,
        }
    }
}

impl Stack for Networkd {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    /// It takes links in by itself, and tells as soon as it has.
    fn claim(&self, root: &Root, _: &Interface, phase: Phase, _: Phases<'_>) -> Claim {
        match phase {
            Phase::Queued | Phase::Starting | Phase::Active if networks(root).is_empty() => {
                Claim::new(Answer::No, "there is no .network file")
            }
            Phase::Queued | Phase::Starting | Phase::Active => {
                Claim::new(Answer::Later, "the stack has not decided on this interface yet")
            }
            _ => Claim::new(Answer::No, phase.text()),
        }
    }

    /// Its record says what its object on the bus does.
    fn ask(&self, root: &Root, _: &mut Manager, interface: &Interface) -> bus::Result<Reply> {
        Ok(Reply::State(Box::new(record(root, interface.ifindex))))
    }

    fn record_of(&self, interface: &Interface) -> Option<String> {
        Some(format!("{RECORDS}/{}", interface.ifindex))
    }

    /// `[IPoIB] Mode=` (systemd 252 ignores that section of a .network file still) and
    /// `[Link] MTUBytes=` of the file that it follows, or will; what is not said is left
    /// alone.
    fn writes(&self, root: &Files<'_>, interface: &Interface, _: Phases<'_>) -> Vec<StackSetting> {
        let followed = record(root, interface.ifindex).file.filter(|file| !file.is_empty());
        let Some(network) = followed.or_else(|| fitting(root, interface)) else {
            return Vec::new();
        };
        let (mut mode, mut mtu) = (None, None);
        for path in std::iter::once(network.clone()).chain(drop_ins(root, &network)) {
            let Ok(text) = root.text(&path, LIMIT) else { continue };
            for (_, word) in section(&text, "IPoIB").iter().filter(|(key, _)| key == "Mode") {
                let value = word.parse().ok().map(SettingValue::Mode);
                mode = value.map(|value| setting(value, &path, "[IPoIB] Mode="));
            }
            for (_, word) in section(&text, "Link").iter().filter(|(key, _)| key == "MTUBytes") {
                let value = bytes(word).map(SettingValue::Mtu);
                mtu = value.map(|value| setting(value, &path, "[Link] MTUBytes="));
            }
        }
        [mode, mtu].into_iter().flatten().collect()
    }

    fn asked(&self, root: &Root) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for dir in ["/etc/systemd/network", "/run/systemd/network"] {
            for file in folder(root, dir).into_iter().filter(|f| f.ends_with(".network")) {
                let text = root.text(&file, LIMIT).unwrap_or_default();
                let names = first(&text, "Name").unwrap_or_default().split_whitespace();
                let own = |name: &str| match name.parse() {
                    Ok(name) => links::own_name(root, &name).to_string(),
                    Err(_) => name.to_owned(),
                };
                found.extend(names.map(|netdev| (own(netdev), file.clone())));
            }
        }
        found
    }

    fn owner(&self, root: &Root, _netdev: &IfName, ifindex: u32) -> Option<Owner> {
        let Link { state, file } = record(root, ifindex);
        if matches!(state, AdministrativeState::Unknown | AdministrativeState::Unmanaged) {
            return None;
        }
        Some(Owner::Record(match file.filter(|f| !f.is_empty()) {
            Some(file) => format!("systemd-networkd ({})", harmless(&file)),
            None => "systemd-networkd".to_owned(),
        }))
    }
}

/// Its records of links, by index.
const RECORDS: &str = "/run/systemd/netif/links";

/// Its own record of the link with this index, as `sd_network_link_get_setup_state`
/// reads it.
fn record(root: &Root, ifindex: u32) -> Link {
    let text = root.attribute(&format!("{RECORDS}/{ifindex}")).unwrap_or_default();
    let value = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
    Link {
        state: AdministrativeState::of(value("ADMIN_STATE").unwrap_or_default()),
        file: value("NETWORK_FILE").map(str::to_owned),
    }
}

/// The .network files that hold, by name.
fn networks(root: &Root) -> BTreeMap<String, String> {
    holding(root, "", ".network")
}

/// The files that end so in folder `below` of [`DIRS`], by name: of one name, the first holds.
fn holding(root: &Root, below: &str, end: &str) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for dir in DIRS {
        let dir = format!("{dir}{below}");
        for name in root.list_or_empty(&dir).unwrap_or_default() {
            if name.ends_with(end) {
                let path = format!("{dir}/{name}");
                files.entry(name).or_insert(path);
            }
        }
    }
    files
}

/// The .network file that fits `interface`: the first by name. `None` also where that
/// cannot be told from [Match] keys that are known here.
fn fitting(root: &Root, interface: &Interface) -> Option<String> {
    for path in networks(root).into_values() {
        let text = root.text(&path, LIMIT).ok()?;
        let (mut fits, mut is_known) = (true, true);
        for (key, value) in matching(&text) {
            let mut words = value.split_whitespace();
            match key.as_str() {
                "Name" if !value.starts_with('!') => {
                    fits &= words.any(|word| names(root, word, interface));
                }
                "Type" if !value.starts_with('!') => fits &= words.any(|w| w == "infiniband"),
                _ => is_known = false,
            }
        }
        match (fits, is_known) {
            (true, true) => return Some(path),
            (true, false) => return None,
            (false, _) => {}
        }
    }
    None
}

/// A word of `Name=` means `interface`: by its name, or by an alternative one without a pattern.
fn names(root: &Root, word: &str, interface: &Interface) -> bool {
    let is_own = |name: IfName| links::own_name(root, &name) == interface.name;
    glob::Pattern::new(word).is_ok_and(|pattern| pattern.matches(interface.name.as_str()))
        || word.parse().is_ok_and(is_own)
}

/// The drop-ins of a .network file, in the order in which they count.
fn drop_ins(root: &Root, network: &str) -> Vec<String> {
    let name = network.rsplit('/').next().unwrap_or_default();
    holding(root, &format!("/{name}.d"), ".conf").into_values().collect()
}

/// A number of bytes with a suffix to the base of 1024 (`parse_mtu()`,
/// `src/basic/parse-util.c`).
fn bytes(text: &str) -> Option<u32> {
    let (digits, factor) = match text.char_indices().last()? {
        (at, 'K') => (text.get(..at)?, 1 << 10),
        (at, 'M') => (text.get(..at)?, 1 << 20),
        _ => (text, 1_u32),
    };
    digits.trim().parse::<u32>().ok()?.checked_mul(factor)
}

/// A .network file that was probably meant for `interface`, and why it is not.
fn near_miss(root: &Root, interface: &Interface) -> Option<String> {
    for path in networks(root).values() {
        let Ok(text) = root.text(path, LIMIT) else { continue };
        let section = matching(&text);
        let values = |key: &str| {
            let of_key = section.iter().filter(|(k, _)| k == key);
            of_key.flat_map(|(_, v)| v.split_whitespace()).map(str::to_owned).collect::<Vec<_>>()
        };
        let words = values("Name");
        let named = words.iter().any(|word| names(root, word, interface));
        let addresses = values("MACAddress");
        let close = addresses.iter().find_map(|a| {
            // networkd compares all 20 bytes, of which the first 4 change.
            address_trouble(a, interface).or_else(|| {
                Some(format!(
                    "the configured address {a} has this port's GUID, but systemd-networkd compares all 20 bytes, of which the first 4 change at every probe: match by Name= or Path="
                ))
            })
        });
        let ours = |a: &String| address_trouble(a, interface).is_none();
        if named && let Some(trouble) = close {
            return Some(format!("{path} names the interface, but does not match: {trouble}"));
        }
        if let (Some(trouble), true) = (close, addresses.iter().any(ours)) {
            return Some(format!("{path}: {trouble}"));
        }
        if words.is_empty() && values("Type").iter().any(|t| t == "ether") {
            continue;
        }
        if named {
            let rest: Vec<String> = section
                .iter()
                .filter(|(k, _)| k != "Name")
                .map(|(k, v)| format!("{k}={v}"))
                .collect();
            return Some(format!(
                "{path} names the interface, but does not match, because it also requires {}",
                rest.join(", ")
            ));
        }
    }
    former_name(root, interface)
}

/// A .network file for a kernel name, where the interface has been renamed.
fn former_name(root: &Root, interface: &Interface) -> Option<String> {
    let stored = udev_record::of_netdev(root, &interface.name, interface.ifindex).ok()??;
    let known: Vec<&str> = stored
        .iter()
        .filter(|(k, _)| k.starts_with("ID_NET_NAME") || *k == "INTERFACE_OLD")
        .map(|(_, v)| v.as_str())
        .collect();
    for path in networks(root).values() {
        let Ok(text) = root.text(path, LIMIT) else { continue };
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
    section(text, "Match")
}

/// The assignments of the sections of this name.
fn section(text: &str, name: &str) -> Vec<(String, String)> {
    let in_it = |key: String| Some(key.strip_prefix(name)?.strip_prefix('.')?.to_owned());
    let pairs = keyfile::pairs(text).into_iter();
    pairs.filter_map(|(_, key, value)| Some((in_it(key)?, value))).collect()
}
