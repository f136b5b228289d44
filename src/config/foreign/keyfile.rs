//! Profiles of NetworkManager in keyfile format (`nm-settings-keyfile(5)`).

use super::interfaces::{Child, Given, Interface, Said, Todo, Which};
use super::shown;
use crate::names::{IfName, Mode};

/// Where those of the administrator are.
pub const DIR: &str = "/etc/NetworkManager/system-connections";

/// What a profile, or another file with `[SECTION]` heads, says: each `SECTION.KEY` with its line
/// and value.
pub fn pairs(text: &str) -> Vec<(usize, String, String)> {
    let mut section = "";
    let mut pairs = Vec::new();
    let lines = (1..).zip(text.lines().map(str::trim));
    for (number, line) in lines.filter(|(_, line)| !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name;
        } else if let Some((key, value)) = line.split_once('=') {
            pairs.push((number, format!("{section}.{}", key.trim()), value.trim().to_owned()));
        }
    }
    pairs
}

/// Reads a profile; `None` if it is not for an InfiniBand interface.
pub fn read(text: &str) -> Option<Said> {
    let pairs = pairs(text);
    let get = |path: &'static str| {
        let (line, _, text) = pairs.iter().rev().find(|(_, key, _)| key == path)?;
        let key = path.rsplit('.').next().unwrap_or(path);
        Some(Given { line: *line, key, text })
    };
    if get("connection.type")?.text != "infiniband" {
        return None;
    }
    let mut said = Said::default();
    let ours = ["transport-mode", "mtu", "p-key", "parent", "mac-address"];
    for (line, key, _) in &pairs {
        match key.strip_prefix("infiniband.") {
            Some(key) if ours.contains(&key) => {}
            Some(other) => {
                said.todo(*line, &format!("{}: ibprov does not know this key", shown(other)));
            }
            None if matches!(key.as_str(), "connection.type" | "connection.interface-name") => {}
            None => said.stays(*line, key),
        }
    }
    // Then nobody has that set at boot.
    if get("connection.autoconnect").is_none_or(|value| value.text != "false") {
        let interface = interface(&mut said, get);
        said.take(interface);
    }
    Some(said)
}

fn interface<'a>(
    said: &mut Said,
    get: impl Fn(&'static str) -> Option<Given<'a>>,
) -> Result<Option<Interface>, Todo> {
    let mode = get("infiniband.transport-mode").map(|word| {
        let why = " is not a transport mode: expected datagram or connected";
        word.text.parse::<Mode>().map_err(|_| word.todo(why))
    });
    let mode = mode.transpose()?;
    // Without one NetworkManager writes datagram.
    let written = mode.unwrap_or(Mode::Datagram);
    let mtu = said.mtu(get("infiniband.mtu"), Some(written));
    let name = get("connection.interface-name");
    let key = get("infiniband.p-key").filter(|key| key.text != "-1");
    let parent = if key.is_some() { get("infiniband.parent") } else { name };
    let which = match (parent, get("infiniband.mac-address")) {
        (Some(parent), _) => Which::Name(parent.name()?),
        (None, Some(address)) => address.port()?,
        (None, None) if key.is_some() || mode.is_some() || mtu.is_some() => {
            let line = key.or(get("connection.type")).map_or(1, |given| given.line);
            let why = match key {
                Some(_) => {
                    "the P_Key has no parent and no mac-address: NetworkManager refuses the profile; add parent=INTERFACE to [infiniband]"
                }
                None => {
                    "the profile names neither an interface nor its address: give one of them in match of an [[interface]]"
                }
            };
            return Err((line, why.to_owned()));
        }
        (None, None) => return Ok(None),
    };
    let Some(key) = key else {
        let says = mode.is_some() || mtu.is_some();
        return Ok(says.then_some(Interface { which, child: None, mode, umcast: None, mtu }));
    };
    let (pkey, value) = key.pkey()?;
    // NetworkManager names the child PARENT.KEY, with the key as it is in the profile; the
    // kernel names it with the membership bit.
    let name = match (&which, name) {
        _ if value == pkey.value() => None,
        (Which::Name(parent), _) => IfName::to_give(&format!("{parent}.{value:04x}")).ok(),
        (Which::PortGuid(_), Some(name)) => IfName::to_give(name.text).ok(),
        (Which::PortGuid(_), None) => None,
    };
    if value != pkey.value() && name.is_none() {
        return Err(key.todo(&format!(
            ": the name of the child cannot be determined: write the P_Key with the membership bit, {}",
            pkey.value()
        )));
    }
    let child = Some(Child { pkey, name });
    Ok(Some(Interface { which, child, mode: Some(written), umcast: None, mtu }))
}
