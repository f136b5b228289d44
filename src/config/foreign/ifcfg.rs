//! Red Hat's `ifcfg-*`, which network-scripts and NetworkManager read: shell assignments.

use super::ifcfg_suse;
use super::interfaces::{Child, Given, Interface, Said, Todo, Which};
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
    let get = |key| values.get(key).map(|(line, text)| Given { line: *line, key, text });
    let device = get("DEVICE").map_or(name, |device| device.text);
    let is_infiniband = match get("TYPE") {
        Some(kind) => kind.text.eq_ignore_ascii_case("InfiniBand"),
        None => is_ipoib_name(device) || get("CONNECTED_MODE").is_some() || get("PKEY").is_some(),
    };
    if !is_infiniband {
        return None;
    }
    let onboot = get(ONBOOT)
        .is_none_or(|value| !matches!(value.lower().as_str(), "no" | "n" | "false" | "0"));
    // Without it no reader sets up the interface at boot.
    if onboot {
        let interface = interface(&mut said, device, get);
        said.take(interface);
    }
    Some(said)
}

fn interface<'a>(
    said: &mut Said,
    device: &'a str,
    get: impl Fn(&'static str) -> Option<Given<'a>>,
) -> Result<Option<Interface>, Todo> {
    let word = get("CONNECTED_MODE");
    let mode = mode(word.map(|word| word.text));
    let mtu = said.mtu(get("MTU"), Some(mode));
    let pkey = get("PKEY").filter(|v| matches!(v.lower().as_str(), "yes" | "y" | "true" | "1"));
    if let Some(pkey) = pkey {
        return child(device, pkey.line, mode, mtu, get).map(Some);
    }
    if let Some(id) = get("PKEY_ID") {
        return Err(id.todo(" has no meaning without PKEY=yes"));
    }
    let which = match (get("DEVICE"), get("HWADDR")) {
        // A profile without a device is for the port with the address.
        (None, Some(address)) => address.port()?,
        (at, _) => {
            let of_file = Given { line: 1, key: "DEVICE", text: device };
            Which::Name(at.unwrap_or(of_file).name()?)
        }
    };
    let mode = word.map(|_| mode);
    let says = mode.is_some() || mtu.is_some();
    Ok(says.then_some(Interface { which, child: None, mode, umcast: None, mtu }))
}

/// The readers call the child `PHYSDEV.8xxx`, and refuse another DEVICE.
fn child<'a>(
    device: &str,
    line: usize,
    mode: Mode,
    mtu: Option<u32>,
    get: impl Fn(&'static str) -> Option<Given<'a>>,
) -> Result<Interface, Todo> {
    let (Some(id), Some(parent)) = (get("PKEY_ID"), get("PHYSDEV")) else {
        let why = "PKEY=yes needs PKEY_ID and PHYSDEV: the network stack refuses it";
        return Err((line, why.to_owned()));
    };
    let ((pkey, _), name) = (id.pkey()?, parent.name()?);
    let wanted = format!("{name}.{:04x}", pkey.value());
    if device != wanted {
        let given = get("DEVICE").unwrap_or(Given { line, key: "DEVICE", text: device });
        return Err(given.todo(&format!(": the network stack refuses any other than {wanted}")));
    }
    let child = Some(Child { pkey, name: None });
    Ok(Interface { which: Which::Name(name), child, mode: Some(mode), umcast: None, mtu })
}
