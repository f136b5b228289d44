//! What the configuration files of several stacks have in common.

use std::cell::OnceCell;
use std::ops::Deref;

use crate::config::foreign::ifcfg;
use crate::config::foreign::shell::assignment;
use crate::host::Root;
use crate::model::{StackSetting, stack::SettingValue};
use crate::names::harmless;
use crate::observe::ipoib::Interface;

/// No configuration of interfaces is larger, bytes.
pub(super) const LIMIT: u64 = 1 << 20;

/// A tree, and what has been read there of files that concern all interfaces: for one look at
/// one interface or at many.
#[derive(Debug)]
pub struct Files<'a> {
    root: &'a Root,
    profiles: OnceCell<Vec<Profile>>,
}

/// A file of which a stack has one for each interface, or one for several, under any name.
#[derive(Debug)]
pub(super) struct Profile {
    pub path: String,
    pub text: String,
    pub pairs: Vec<(String, String)>,
}

impl<'a> Files<'a> {
    pub const fn of(root: &'a Root) -> Self {
        Self { root, profiles: OnceCell::new() }
    }

    /// The profiles of NetworkManager, by `read` if nobody has asked for them yet.
    pub(super) fn profiles(&self, read: impl FnOnce(&Root) -> Vec<Profile>) -> &[Profile] {
        self.profiles.get_or_init(|| read(self.root))
    }
}

impl Deref for Files<'_> {
    type Target = Root;

    fn deref(&self) -> &Root {
        self.root
    }
}

/// Where Red Hat's `ifcfg-*` are, which network-scripts and NetworkManager read.
pub(super) const NETWORK_SCRIPTS: &str = ifcfg::DIR;

/// The paths of the files in `dir`; none if it is not there.
pub(super) fn folder(root: &Root, dir: &str) -> Vec<String> {
    let names = root.list_or_empty(dir).unwrap_or_default();
    names.into_iter().map(|name| format!("{dir}/{name}")).collect()
}

/// `KEY=value` lines of an ifcfg file. What a shell would have to compute is left out.
pub(super) fn ifcfg(text: &str) -> Vec<(String, String)> {
    let pairs = text.lines().filter_map(|line| assignment(line).ok().flatten());
    pairs.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The last value of `key`.
pub(super) fn last<'a>(pairs: &'a [(String, String)], key: &str) -> Option<&'a str> {
    let found = pairs.iter().rev().find(|(k, _)| k.eq_ignore_ascii_case(key));
    found.map(|(_, v)| v.as_str())
}

/// A setting that `file` says with `key`.
pub(super) fn setting(value: SettingValue, file: &str, key: &'static str) -> StackSetting {
    StackSetting { value, file: harmless(file), key, by_default: false }
}

/// The MTU that `file` says with `key`, if it is a number other than 0, which means
/// none to all stacks.
pub(super) fn mtu_setting(
    value: Option<&str>,
    file: &str,
    key: &'static str,
) -> Option<StackSetting> {
    let mtu = value?.trim().parse::<u32>().ok().filter(|mtu| *mtu != 0)?;
    Some(setting(SettingValue::Mtu(mtu), file, key))
}

/// What Red Hat's `ifcfg-*` says of mode and MTU.
pub(super) fn ifcfg_settings(pairs: &[(String, String)], file: &str) -> Vec<StackSetting> {
    let word = last(pairs, "CONNECTED_MODE");
    let mode = ifcfg::mode(word);
    let mut mode = setting(SettingValue::Mode(mode), file, "CONNECTED_MODE");
    mode.by_default = word.is_none();
    let mtu = mtu_setting(last(pairs, "MTU"), file, "MTU");
    [Some(mode), mtu].into_iter().flatten().collect()
}

/// The first value of `key` in lines of `KEY=value`, quotes taken off.
pub(super) fn first<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.trim().split_once('=')?;
        (name.trim() == key).then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// The netdevs that Red Hat's `ifcfg-*` set up at boot, each with its file and
/// whether NetworkManager may have it.
pub(super) fn network_scripts(root: &Root) -> Vec<(String, String, bool)> {
    let mut found = Vec::new();
    for file in folder(root, NETWORK_SCRIPTS) {
        let base = file.rsplit('/').next().unwrap_or_default();
        let Some(name) = ifcfg::name_of(base) else { continue };
        let text = root.text(&file, LIMIT).unwrap_or_default();
        if first(&text, "ONBOOT").is_some_and(|v| v.eq_ignore_ascii_case("no")) {
            continue;
        }
        let device = first(&text, "DEVICE").filter(|device| !device.is_empty());
        let device = device.unwrap_or(name).to_owned();
        let by_nm = first(&text, "NM_CONTROLLED").is_none_or(|v| !v.eq_ignore_ascii_case("no"));
        found.push((device, file, by_nm));
    }
    found
}

/// Why a hardware address of a configuration is not that of `interface`, in the
/// ways that people get it wrong; `None` if it is, for those who compare its
/// last 8 bytes, or all of it.
pub(super) fn address_trouble(configured: &str, interface: &Interface) -> Option<String> {
    let guid = interface.guid?;
    let bytes: Vec<&str> = configured.split([':', '-']).collect();
    let tail = |n: usize| {
        let from = bytes.len().checked_sub(n)?;
        Some(bytes.get(from..)?.join(":").to_ascii_lowercase())
    };
    let own = guid.bytes();
    match bytes.len() {
        20 if tail(8).as_deref() == Some(&own) => None,
        20 => Some(format!("the configured address {configured} ends in another port GUID")),
        8 if tail(8).as_deref() == Some(&own) => Some(format!(
            "the configured address {configured} is only the port GUID, but 20 bytes are required"
        )),
        6 => Some(format!(
            "the configured address {configured} has the 6 bytes of Ethernet, but an IPoIB address has 20"
        )),
        n => Some(format!(
            "the configured address {configured} has {n} bytes, but an IPoIB address has 20"
        )),
    }
}
