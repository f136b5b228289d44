//! Red Hat's `ifcfg-*`, which network-scripts and NetworkManager read: shell assignments.

use super::interfaces::{self, Child, Interface, Said, Which};
use super::{ifcfg_suse, port_guid, shown};
use crate::names::{Mode, is_ipoib_name};

pub const DIR: &str = "/etc/sysconfig/network-scripts";

/// The keys that concern ibprov; all others stay with the stack.
const OURS: [&str; 9] =
    ["TYPE", "DEVICE", "PHYSDEV", "HWADDR", "PKEY", "PKEY_ID", "CONNECTED_MODE", "MTU", ONBOOT];
const ONBOOT: &str = "ONBOOT";

/// The name in `ifcfg-NAME`, a file's name; `None` if it is another file, or a copy that no
/// reader looks at.
pub fn name_of(file: &str) -> Option<&str> {
    let name = file.strip_prefix("ifcfg-")?;
    let copies = [".bak", ".orig", ".rpmnew", ".rpmorig", ".rpmsave", "~"];
    let is_copy = copies.iter().any(|copy| name.ends_with(copy));
    (!name.is_empty() && !is_copy).then_some(name)
}

/// The mode that `CONNECTED_MODE` means. Without it both readers, `ifup-ib` and NetworkManager's
/// plugin ifcfg-rh, write datagram.
pub fn mode(connected: Option<&str>) -> Mode {
    let is_connected = connected
        .is_some_and(|w| matches!(w.to_lowercase().as_str(), "yes" | "y" | "true" | "t" | "1"));
    if is_connected { Mode::Connected } else { Mode::Datagram }
}

/// Reads the text of the file `path`, whose name has `NAME`, as the reader of its folder does;
/// elsewhere its keys tell whose it is.
pub fn read_at(path: &str, name: &str, text: &str) -> Option<Said> {
    let is_wickeds = match path.rsplit_once('/') {
        Some((DIR, _)) => false,
        Some((ifcfg_suse::DIR, _)) => true,
        _ => ifcfg_suse::is_one(text),
    };
    if is_wickeds { ifcfg_suse::read(name, text) } else { read(name, text) }
}

/// Reads the text of `ifcfg-NAME`; `None` if it is not for an InfiniBand interface.
pub fn read(name: &str, text: &str) -> Option<Said> {
    let mut said = Said::default();
    let values = said.assignments(text, &OURS, ONBOOT);
    let get = |key: &str| values.get(key).map(|(line, value)| (*line, value.as_str()));
    let device = get("DEVICE").map_or(name, |(_, device)| device);
    let is_infiniband = match get("TYPE") {
        Some((_, kind)) => kind.eq_ignore_ascii_case("InfiniBand"),
        None => is_ipoib_name(device) || get("CONNECTED_MODE").is_some() || get("PKEY").is_some(),
    };
    if !is_infiniband {
        return None;
    }
    let onboot = get(ONBOOT).is_none_or(|(_, value)| {
        !matches!(value.to_lowercase().as_str(), "no" | "n" | "false" | "0")
    });
    // Without it no reader sets up the interface at boot.
    if onboot {
        said.interface = interface(&mut said, device, get);
    }
    Some(said)
}

fn interface<'a>(
    said: &mut Said,
    device: &str,
    get: impl Fn(&str) -> Option<(usize, &'a str)>,
) -> Option<Interface> {
    let word = get("CONNECTED_MODE");
    let mode = mode(word.map(|(_, word)| word));
    let mtu = get("MTU").and_then(|(line, text)| {
        let mtu = interfaces::mtu(text, Some(mode));
        mtu.unwrap_or_else(|why| {
            said.todo(line, &format!("MTU={}: {why}", shown(text)));
            None
        })
    });
    let is_child = get("PKEY")
        .is_some_and(|(_, v)| matches!(v.to_lowercase().as_str(), "yes" | "y" | "true" | "1"));
    if is_child {
        return child(said, device, mode, mtu, get);
    }
    if let Some((line, id)) = get("PKEY_ID") {
        said.todo(line, &format!("PKEY_ID={} has no meaning without PKEY=yes", shown(id)));
        return None;
    }
    let which = match (get("DEVICE"), get("HWADDR")) {
        // A profile without a device is for the port with the address.
        (None, Some((line, address))) => match port_guid(address) {
            Ok(guid) => Which::PortGuid(guid),
            Err(why) => {
                said.todo(line, &format!("HWADDR={}: {why}", shown(address)));
                return None;
            }
        },
        (at, _) => match interfaces::plain(device) {
            Some(name) => Which::Name(name),
            None => {
                let line = at.map_or(1, |(line, _)| line);
                said.todo(
                    line,
                    &format!("DEVICE={} is not a plain name of an interface", shown(device)),
                );
                return None;
            }
        },
    };
    let mode = word.map(|_| mode);
    (mode.is_some() || mtu.is_some()).then_some(Interface {
        which,
        child: None,
        mode,
        umcast: None,
        mtu,
    })
}

/// The readers call the child `PHYSDEV.8xxx`, and refuse another DEVICE.
fn child<'a>(
    said: &mut Said,
    device: &str,
    mode: Mode,
    mtu: Option<u32>,
    get: impl Fn(&str) -> Option<(usize, &'a str)>,
) -> Option<Interface> {
    let line = get("PKEY").map_or(1, |(line, _)| line);
    let (Some((id_line, id)), Some((parent_line, parent))) = (get("PKEY_ID"), get("PHYSDEV"))
    else {
        said.todo(line, "PKEY=yes needs PKEY_ID and PHYSDEV: the network stack refuses it");
        return None;
    };
    let Some((pkey, _)) = interfaces::pkey(id) else {
        said.todo(id_line, &format!("PKEY_ID={} is not a P_Key", shown(id)));
        return None;
    };
    let Some(name) = interfaces::plain(parent) else {
        let why = format!("PHYSDEV={} is not a plain name of an interface", shown(parent));
        said.todo(parent_line, &why);
        return None;
    };
    let wanted = format!("{name}.{:04x}", pkey.value());
    if device != wanted {
        let line = get("DEVICE").map_or(line, |(line, _)| line);
        said.todo(
            line,
            &format!("DEVICE={}: the network stack refuses any other than {wanted}", shown(device)),
        );
        return None;
    }
    let child = Some(Child { pkey, name: None });
    Some(Interface { which: Which::Name(name), child, mode: Some(mode), umcast: None, mtu })
}
