//! NetworkManager: what it says of a device, and why no profile fits.

use super::files::{
    Files, LIMIT, NETWORK_SCRIPTS, Profile, address_trouble, first, folder, ifcfg, ifcfg_settings,
    last, mtu_setting, network_scripts, setting,
};
use super::stack::{Facts, Owner, Phases, Progress, Reply, Stack, StackState, StackUnit};
use crate::config::foreign;
use crate::config::foreign::interfaces::Which;
use crate::host::Root;
use crate::host::bus::{self, At, Bus, BusError, ObjectPath};
use crate::host::manager::Manager;
use crate::model::{
    StackName, StackSetting,
    stack::{Answer, Claim, Phase, SettingValue},
};
use crate::names::{IfName, Mode, NetworkRole, PKey, harmless};
use crate::observe::ipoib::Interface;

#[derive(Debug)]
pub struct NetworkManager;

pub(super) const SERVICE: &str = "NetworkManager.service";

static FACTS: Facts = Facts {
    log_programs: &["NetworkManager"],
    waiting_commands: &["nm-online"],
    ..Facts::new(
        StackName::new("network-manager", "NetworkManager"),
        SERVICE,
        &[
            StackUnit::new(SERVICE, NetworkRole::SetsUpWhatComes, &["Network Manager"]),
            StackUnit::new(
                "NetworkManager-wait-online.service",
                NetworkRole::WaitsOnline,
                &["Network Manager Wait Online"],
            ),
        ],
    )
};

const DIRS: [&str; 3] = [
    foreign::keyfile::DIR,
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager/system-connections",
];

/// How far it is with a device (`enum NMDeviceState`,
/// `src/libnm-core-public/nm-dbus-interface.h`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum DeviceState {
    /// NetworkManager does not know the device.
    #[default]
    Unknown,
    Unmanaged,
    /// It cannot be used: no carrier.
    Unavailable,
    /// It can be brought up.
    Disconnected,
    /// It is being brought up, in whichever step.
    #[strum(serialize = "being brought up")]
    Activating,
    Activated,
    /// It is being taken down.
    Deactivating,
    /// It could not be brought up.
    Failed,
    /// A state that is not known here.
    #[strum(serialize = "in another state")]
    Other,
}

impl From<u32> for DeviceState {
    fn from(number: u32) -> Self {
        match number {
            0 => Self::Unknown,
            10 => Self::Unmanaged,
            20 => Self::Unavailable,
            30 => Self::Disconnected,
            // Prepare, config, need-auth, ip-config, ip-check, secondaries.
            40..=90 => Self::Activating,
            100 => Self::Activated,
            110 => Self::Deactivating,
            120 => Self::Failed,
            _ => Self::Other,
        }
    }
}

impl DeviceState {
    /// The state in NetworkManager's words.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// What NetworkManager says of a device
/// (`org.freedesktop.NetworkManager.Device`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    pub state: DeviceState,
    pub managed: bool,
    /// Profiles that it could activate now.
    pub profiles: usize,
    /// The profile that is active, by name.
    pub active: Option<String>,
}

impl StackState for Device {
    fn claim(&self, files: &Files<'_>, interface: &Interface) -> Option<Claim> {
        if self.state == DeviceState::Unknown {
            return None;
        }
        let word = self.state.word();
        let is_taken = matches!(self.state, DeviceState::Activating | DeviceState::Activated);
        if is_taken || self.profiles > 0 {
            let profile = self.active.as_ref().map(|p| format!(", profile {p:?}"));
            let why = format!("{word}{}", profile.unwrap_or_default());
            return Some(Claim::new(Answer::Yes, why));
        }
        Some(match (fitting(files, interface), self.managed) {
            // It activates it as soon as there is carrier, or has failed to.
            (Fit::Yes(Fitting { path, .. }), true) => {
                Claim::new(Answer::Yes, format!("{path} ({word})"))
            }
            (Fit::Yes(Fitting { path, .. }), false) => {
                let why = format!(
                    "{path} is for the interface, but NetworkManager does not manage it: unmanaged-devices in NetworkManager.conf, a udev rule with NM_UNMANAGED, or /etc/network/interfaces"
                );
                Claim::new(Answer::Missed, why)
            }
            (Fit::Missed(why), _) => Claim::new(Answer::Missed, why),
            (Fit::No, true) => Claim::new(
                Answer::No,
                format!("{word}: NetworkManager has no profile for the interface"),
            ),
            (Fit::No, false) => {
                Claim::new(Answer::No, "NetworkManager does not manage the interface")
            }
        })
    }

    fn progress(&self, _interface: &Interface) -> Progress {
        match self.state {
            DeviceState::Unknown
            | DeviceState::Unmanaged
            | DeviceState::Unavailable
            | DeviceState::Disconnected => Progress::Undecided,
            DeviceState::Activated => Progress::Up,
            DeviceState::Failed => Progress::Failed,
            DeviceState::Activating | DeviceState::Deactivating | DeviceState::Other => {
                Progress::Working
            }
        }
    }
}

impl Stack for NetworkManager {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn claim(&self, _: &Root, _: &Interface, phase: Phase, _: Phases<'_>) -> Claim {
        match phase {
            Phase::Queued | Phase::Starting | Phase::Active => {
                Claim::new(Answer::Later, "the stack has not decided on this interface yet")
            }
            _ => Claim::new(Answer::No, phase.text()),
        }
    }

    /// It can be asked over the bus alone.
    fn ask(&self, _: &Root, manager: &mut Manager, interface: &Interface) -> bus::Result<Reply> {
        Ok(match manager.bus_by_all_means()? {
            Some(bus) => Reply::State(Box::new(on_the_bus(bus, interface)?)),
            None => Reply::Unreachable,
        })
    }

    /// Written when it begins or ceases to manage a device, when the device can be brought
    /// up and when it is (`device_state_changed()`, `src/core/nm-manager.c`); that it
    /// could not be comes just before that it can be again.
    fn record_of(&self, interface: &Interface) -> Option<String> {
        Some(record_file(interface.ifindex))
    }

    /// At each activation it takes the interface down and writes the profile's mode
    /// (`act_stage1_prepare()`, `src/core/devices/nm-device-infiniband.c`); the MTU
    /// only if the profile has one.
    fn writes(&self, files: &Files<'_>, interface: &Interface, _: Phases<'_>) -> Vec<StackSetting> {
        match fitting(files, interface) {
            Fit::Yes(Fitting { writes, .. }) => writes,
            Fit::Missed(_) | Fit::No => Vec::new(),
        }
    }

    /// A child that another program has created is not managed as long as it has no address,
    /// even once it is up (`is_unmanaged_external_down()`, `src/core/devices/nm-device.c`): a
    /// profile is then not activated on it.
    fn creates(&self, files: &Files<'_>) -> Vec<(Which, PKey, String)> {
        let said = |Profile { path, text, pairs }: &Profile| {
            let said = match script_name(path) {
                None => foreign::keyfile::read(text)?,
                Some(_) if is_not_controlled(pairs) => return None,
                Some(name) => foreign::ifcfg::read(name, text)?,
            };
            let interface = said.interface?;
            Some((interface.which, interface.child?.pkey, path.clone()))
        };
        profiles(files).iter().filter_map(said).collect()
    }

    /// Red Hat's `ifcfg-*` are read by its plugin ifcfg-rh.
    fn asked(&self, root: &Root) -> Vec<(String, String)> {
        let mut found = ifcfg_files(root);
        for dir in [foreign::keyfile::DIR, "/run/NetworkManager/system-connections"] {
            for file in keyfiles(root, dir) {
                let text = root.text(&file, LIMIT).unwrap_or_default();
                let by_hand = first(&text, "autoconnect").is_some_and(|flag| flag == "false");
                let netdev = first(&text, "interface-name").filter(|netdev| !netdev.is_empty());
                found.extend(netdev.filter(|_| !by_hand).map(|netdev| (netdev.to_owned(), file)));
            }
        }
        found
    }

    /// By its state file of the device (`nm_config_device_state_load()`,
    /// `src/core/nm-config.c`).
    fn owner(&self, root: &Root, _netdev: &IfName, ifindex: u32) -> Option<Owner> {
        let state = root.text(&record_file(ifindex), LIMIT).ok()?;
        if !state.lines().any(|l| l == "managed=1" || l == "managed=true") {
            return None;
        }
        let active = state.lines().any(|l| l.starts_with("connection-uuid="));
        let profile = if active { "" } else { ", which has no active profile on the interface" };
        Some(Owner::Record(format!("NetworkManager{profile}")))
    }
}

fn profiles<'a>(files: &'a Files<'_>) -> &'a [Profile] {
    files.profiles(|root| {
        let mut paths: Vec<String> = DIRS.into_iter().flat_map(|dir| keyfiles(root, dir)).collect();
        let mut scripts = folder(root, NETWORK_SCRIPTS);
        scripts.retain(|path| script_name(path).is_some());
        if !scripts.is_empty() && reads_ifcfg(root) {
            paths.extend(scripts);
        }
        let profile = |path: String| {
            let text = root.text(&path, LIMIT).ok()?;
            let pairs = match script_name(&path) {
                None => {
                    let pairs = foreign::keyfile::pairs(&text).into_iter();
                    pairs.map(|(_, key, value)| (key, value)).collect()
                }
                Some(_) => ifcfg(&text),
            };
            Some(Profile { path, text, pairs })
        };
        paths.into_iter().filter_map(profile).collect()
    })
}

/// The name in the path of an `ifcfg-NAME`.
fn script_name(path: &str) -> Option<&str> {
    foreign::ifcfg::name_of(path.strip_prefix(NETWORK_SCRIPTS)?.strip_prefix('/')?)
}

/// The `ifcfg-*` says that the interface is none of its.
fn is_not_controlled(pairs: &[(String, String)]) -> bool {
    last(pairs, "NM_CONTROLLED").is_some_and(|v| v.eq_ignore_ascii_case("no"))
}

/// The keyfiles in `dir`: without what it takes for an editor's copy, and beside /etc only
/// what is called so (`nm_keyfile_utils_ignore_filename()`).
fn keyfiles(root: &Root, dir: &str) -> Vec<String> {
    let mut files = folder(root, dir);
    files.retain(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_called_so = dir == foreign::keyfile::DIR || name.ends_with(".nmconnection");
        is_called_so && !name.starts_with('.') && !name.ends_with('~')
    });
    files
}

/// The netdevs of Red Hat's `ifcfg-*` with their files, as far as it reads them.
fn ifcfg_files(root: &Root) -> Vec<(String, String)> {
    if !reads_ifcfg(root) {
        return Vec::new();
    }
    let scripts = network_scripts(root).into_iter();
    let its = scripts.filter(|(.., by_network_manager)| *by_network_manager);
    its.map(|(netdev, file, _)| (netdev, file)).collect()
}

/// True if it reads `ifcfg-*`: its plugin ifcfg-rh is installed beside its other plugins,
/// which distributions but Red Hat's do not build, and Fedora and RHEL 10 no more. Taken for
/// granted where no folder of plugins is found (`PLUGINDIR`, `load_plugin()` in
/// `src/core/settings/nm-settings.c`).
fn reads_ifcfg(root: &Root) -> bool {
    let names = |dir: &str| root.list_or_empty(dir).unwrap_or_default();
    let multiarch = names("/usr/lib").into_iter().filter(|name| name.contains("-linux-"));
    let mut bases: Vec<String> =
        multiarch.map(|name| format!("/usr/lib/{name}/NetworkManager")).collect();
    bases.extend(["/usr/lib64/NetworkManager", "/usr/lib/NetworkManager"].map(str::to_owned));
    // A folder for each version; others hold configuration.
    let versions = bases.iter().flat_map(|base| {
        let names = names(base).into_iter();
        let names = names.filter(|name| name.starts_with(|c: char| c.is_ascii_digit()));
        names.map(move |name| format!("{base}/{name}"))
    });
    let folders: Vec<Vec<String>> = versions.map(|folder| names(&folder)).collect();
    let has = |files: &Vec<String>| files.iter().any(|name| name == IFCFG_PLUGIN);
    folders.is_empty() || folders.iter().any(has)
}

/// Its state file of the device with this index.
fn record_file(ifindex: u32) -> String {
    format!("/run/NetworkManager/devices/{ifindex}")
}

/// The plugin that reads `ifcfg-*`.
const IFCFG_PLUGIN: &str = "libnm-settings-plugin-ifcfg-rh.so";

const BUS_NAME: &str = "org.freedesktop.NetworkManager";
const BUS_PATH: &str = "/org/freedesktop/NetworkManager";

fn on_the_bus(bus: &mut Bus, interface: &Interface) -> bus::Result<Device> {
    let manager = At { service: BUS_NAME, path: BUS_PATH, interface: BUS_NAME };
    let name = interface.name.as_str();
    let path: ObjectPath = match bus.call(manager, "GetDeviceByIpIface", &name) {
        Ok(path) => path,
        // It does not know the device yet, or has taken its name on the bus and
        // has put nothing there yet.
        Err(BusError::Refused { .. }) => return Ok(Device::default()),
        Err(e) => return Err(e),
    };
    let at =
        At { path: path.as_str(), interface: "org.freedesktop.NetworkManager.Device", ..manager };
    let device = bus.properties(at)?;
    let active = device.path("ActiveConnection").filter(|p| p != "/");
    let active = active.and_then(|path| {
        let interface = "org.freedesktop.NetworkManager.Connection.Active";
        // It may have gone meanwhile.
        let properties = bus.properties(At { path: &path, interface, ..at }).ok()?;
        Some(harmless(&properties.text("Id")))
    });
    Ok(Device {
        state: device.get::<u32>("State").unwrap_or_default().into(),
        managed: device.get("Managed").unwrap_or_default(),
        profiles: device.count("AvailableConnections"),
        active,
    })
}

/// A profile that is for an interface.
struct Fitting {
    path: String,
    /// `connection.autoconnect-priority`: of several, the highest is activated.
    priority: i64,
    /// What it says of mode and MTU.
    writes: Vec<StackSetting>,
}

enum Fit {
    Yes(Fitting),
    Missed(String),
    No,
}

/// Whether one of the profiles on disk is for `interface`: the one of the highest
/// priority, and the first of those.
fn fitting(files: &Files<'_>, interface: &Interface) -> Fit {
    let (mut missed, mut best): (_, Option<Fitting>) = (None, None);
    for Profile { path, pairs, .. } in profiles(files) {
        let fit = match script_name(path) {
            None => keyfile(path, pairs, interface),
            Some(_) => script(path, pairs, interface),
        };
        match fit {
            Fit::No => {}
            Fit::Missed(why) => missed = Some(why),
            Fit::Yes(found) if best.as_ref().is_some_and(|b| b.priority >= found.priority) => {}
            Fit::Yes(found) => best = Some(found),
        }
    }
    match best {
        Some(best) => Fit::Yes(best),
        None => missed.map_or(Fit::No, Fit::Missed),
    }
}

/// One `ifcfg-*`. All have the priority 0 and come after the keyfiles.
fn script(path: &str, pairs: &[(String, String)], interface: &Interface) -> Fit {
    if last(pairs, "DEVICE") != Some(interface.name.as_str()) {
        return Fit::No;
    }
    let trouble = last(pairs, "HWADDR").and_then(|a| address_trouble(a, interface));
    match (is_not_controlled(pairs), trouble) {
        (true, _) => Fit::Missed(format!("NM_CONTROLLED=no in {path}")),
        (_, Some(trouble)) => Fit::Missed(format!("{path} does not match: {trouble}")),
        _ => {
            let writes = ifcfg_settings(pairs, path);
            Fit::Yes(Fitting { path: path.to_owned(), priority: 0, writes })
        }
    }
}

/// One profile in keyfile format (`nm-settings-keyfile(5)`).
fn keyfile(path: &str, pairs: &[(String, String)], interface: &Interface) -> Fit {
    let get = |key: &str| last(pairs, key);
    if get("connection.type") != Some("infiniband") {
        return match get("connection.interface-name") {
            Some(name) if name == interface.name.as_str() => {
                let kind = get("connection.type").unwrap_or("no type");
                let kind = harmless(kind);
                Fit::Missed(format!(
                    "{path} names the interface, but is of type {kind}, not infiniband"
                ))
            }
            _ => Fit::No,
        };
    }
    // It makes a child by itself, called after its parent, which is another interface.
    let is_of_child = get("infiniband.p-key").is_some_and(|key| key != "-1");
    if is_of_child && interface.parent.is_none() {
        return Fit::No;
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
        (Some(_), _, Some(trouble)) => Fit::Missed(format!("{path} does not match: {trouble}")),
        (None, _, Some(_)) => Fit::No,
        _ if get("connection.autoconnect") == Some("false") => Fit::No,
        _ => {
            let priority = get("connection.autoconnect-priority").and_then(|p| p.parse().ok());
            let writes = keyfile_settings(path, pairs);
            Fit::Yes(Fitting { path: path.to_owned(), priority: priority.unwrap_or(0), writes })
        }
    }
}

/// What a keyfile says of mode and MTU.
fn keyfile_settings(path: &str, pairs: &[(String, String)]) -> Vec<StackSetting> {
    let word = last(pairs, "infiniband.transport-mode");
    let mode = word.map_or(Ok(Mode::Datagram), str::parse);
    let mode = mode.ok().map(|mode| StackSetting {
        by_default: word.is_none(),
        ..setting(SettingValue::Mode(mode), path, "infiniband.transport-mode")
    });
    let mtu = mtu_setting(last(pairs, "infiniband.mtu"), path, "infiniband.mtu");
    [mode, mtu].into_iter().flatten().collect()
}
