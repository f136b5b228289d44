//! Profiles of NetworkManager in keyfile format (`nm-settings-keyfile(5)`).

use super::interfaces::{self, Child, Interface, Said, Which};
use super::{port_guid, shown};
use crate::names::Mode;

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
    let get = |key: &str| {
        let last = pairs.iter().rev().find(|(_, k, _)| k == key);
        last.map(|(line, _, value)| (*line, value.as_str()))
    };
    if get("connection.type")?.1 != "infiniband" {
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
    if get("connection.autoconnect").is_none_or(|(_, value)| value != "false") {
        said.interface = interface(&mut said, get);
    }
    Some(said)
}

fn interface<'a>(
    said: &mut Said,
    get: impl Fn(&str) -> Option<(usize, &'a str)>,
) -> Option<Interface> {
    let mode = match get("infiniband.transport-mode") {
        None => None,
        Some((line, word)) => {
            match word.parse::<Mode>() {
                Ok(mode) => Some(mode),
                Err(_) => {
                    said.todo(
                    line,
                    &format!("transport-mode={} is not a transport mode: expected datagram or connected", shown(word)),
                );
                    return None;
                }
            }
        }
    };
    // Without one NetworkManager writes datagram.
    let written = mode.unwrap_or(Mode::Datagram);
    let mtu = get("infiniband.mtu").and_then(|(line, text)| {
        interfaces::mtu(text, Some(written)).unwrap_or_else(|why| {
            said.todo(line, &format!("mtu={}: {why}", shown(text)));
            None
        })
    });
    let name = get("connection.interface-name");
    let key = get("infiniband.p-key").filter(|(_, key)| *key != "-1");
    let (parent, parent_key) = match key {
        Some(_) => (get("infiniband.parent"), "parent"),
        None => (name, "interface-name"),
    };
    let which = match (parent, get("infiniband.mac-address")) {
        (Some((line, text)), _) => match interfaces::plain(text) {
            Some(name) => Which::Name(name),
            None => {
                let why =
                    format!("{parent_key}={} is not a plain name of an interface", shown(text));
                said.todo(line, &why);
                return None;
            }
        },
        (None, Some((line, address))) => match port_guid(address) {
            Ok(guid) => Which::PortGuid(guid),
            Err(why) => {
                said.todo(line, &format!("mac-address={}: {why}", shown(address)));
                return None;
            }
        },
        (None, None) if key.is_some() || mode.is_some() || mtu.is_some() => {
            let line = key.or(get("connection.type")).map_or(1, |(line, _)| line);
            said.todo(line, match key {
                Some(_) => "the P_Key has no parent and no mac-address: NetworkManager refuses the profile; add parent=INTERFACE to [infiniband]",
                None => "the profile names neither an interface nor its address: give one of them in match of an [[interface]]",
            });
            return None;
        }
        (None, None) => return None,
    };
    let Some((line, key)) = key else {
        let says = mode.is_some() || mtu.is_some();
        return says.then_some(Interface { which, child: None, mode, umcast: None, mtu });
    };
    let Some((pkey, value)) = interfaces::pkey(key) else {
        said.todo(line, &format!("p-key={} is not a P_Key", shown(key)));
        return None;
    };
    // NetworkManager names the child PARENT.KEY, with the key as it is in the profile; the
    // kernel names it with the membership bit.
    let name = match (&which, name) {
        _ if value == pkey.value() => None,
        (Which::Name(parent), _) => interfaces::plain(&format!("{parent}.{value:04x}")),
        (Which::PortGuid(_), Some((_, name))) => interfaces::plain(name),
        (Which::PortGuid(_), None) => None,
    };
    if value != pkey.value() && name.is_none() {
        said.todo(
            line,
            &format!(
                "p-key={}: the name of the child cannot be determined: write the P_Key with the membership bit, {}",
                shown(key),
                pkey.value()
            ),
        );
        return None;
    }
    Some(Interface {
        which,
        child: Some(Child { pkey, name }),
        mode: Some(written),
        umcast: None,
        mtu,
    })
}
