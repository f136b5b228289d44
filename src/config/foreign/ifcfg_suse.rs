//! Files `ifcfg-NAME` of SUSE's wicked (`ifcfg(5)`, `ifcfg-infiniband(5)`; `try_infiniband()` in
//! its client/suse/compat-suse.c).

use super::interfaces::{self, Child, Interface, Said, Which};
use super::shown;
use crate::names::{IfName, Mode, PKey};

pub const DIR: &str = "/etc/sysconfig/network";

const OURS: [&str; 7] =
    ["IPOIB", "IPOIB_MODE", "IPOIB_UMCAST", "IPOIB_DEVICE", "IPOIB_PKEY", "MTU", STARTMODE];
const STARTMODE: &str = "STARTMODE";

/// Whether the text of an `ifcfg-NAME` is for wicked: Red Hat's readers have none of these keys.
pub fn is_one(text: &str) -> bool {
    text.lines().any(|line| {
        let key = line.split('=').next().unwrap_or_default().trim();
        key == STARTMODE || key == "IPOIB" || key.starts_with("IPOIB_")
    })
}

/// Reads the text of `ifcfg-NAME`; `None` if it is not for an InfiniBand interface.
pub fn read(name: &str, text: &str) -> Option<Said> {
    let mut said = Said::default();
    let values = said.assignments(text, &OURS, STARTMODE);
    let get = |key: &str| values.get(key).map(|(line, value)| (*line, value.as_str()));
    let is_infiniband = match get("IPOIB") {
        Some((_, word)) => matches!(word.to_lowercase().as_str(), "yes" | "true" | "on" | "1"),
        None => {
            ["IPOIB_MODE", "IPOIB_UMCAST"].iter().any(|key| get(key).is_some())
                || is_ipoib_name(name)
        }
    };
    if !is_infiniband {
        return None;
    }
    // wicked does not set up such an interface at boot.
    let at_boot = get(STARTMODE).is_none_or(|(_, word)| !matches!(word, "off" | "manual"));
    if at_boot {
        said.interface = interface(&mut said, name, get);
    }
    Some(said)
}

/// `ibN`, or `ibN.XXXX` with hexadecimal digits.
fn is_ipoib_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("ib") else { return false };
    let (number, pkey) = rest.split_once('.').unwrap_or((rest, "0"));
    !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
        && u64::from_str_radix(pkey, 16).is_ok()
}

fn interface<'a>(
    said: &mut Said,
    name: &str,
    get: impl Fn(&str) -> Option<(usize, &'a str)>,
) -> Option<Interface> {
    let Some(own) = interfaces::plain(name) else {
        said.todo(1, &format!("{} is not a plain name of an interface", shown(name)));
        return None;
    };
    let mode = match get("IPOIB_MODE").map(|(line, word)| (line, word, word.to_lowercase())) {
        None => None,
        Some((line, word, lower)) => match lower.as_str() {
            "connected" => Some(Mode::Connected),
            "datagram" => Some(Mode::Datagram),
            _ => {
                said.todo(line, &format!("IPOIB_MODE={}: wicked refuses this mode", shown(word)));
                return None;
            }
        },
    };
    let umcast = match get("IPOIB_UMCAST").map(|(line, word)| (line, word, word.to_lowercase())) {
        None => None,
        Some((line, word, lower)) => match lower.as_str() {
            "allowed" | "1" => Some(true),
            "disallowed" | "0" => Some(false),
            _ => {
                said.todo(
                    line,
                    &format!("IPOIB_UMCAST={} is neither allowed nor disallowed", shown(word)),
                );
                return None;
            }
        },
    };
    let mtu = get("MTU").and_then(|(line, text)| {
        let mtu = interfaces::mtu(text, mode);
        mtu.unwrap_or_else(|why| {
            said.todo(line, &format!("MTU={}: {why}", shown(text)));
            None
        })
    });
    let by_name = name.split_once('.').filter(|_| is_ipoib_name(name));
    let pkey = get("IPOIB_PKEY").or(by_name.map(|(_, pkey)| (1, pkey)));
    let parent = get("IPOIB_DEVICE").or(by_name.map(|(parent, _)| (1, parent)));
    if pkey.is_none() && parent.is_none() {
        let says = mode.is_some() || umcast.is_some() || mtu.is_some();
        let which = Which::Name(own);
        return says.then_some(Interface { which, child: None, mode, umcast, mtu });
    }
    let (Some((pkey_line, pkey)), Some((parent_line, parent))) = (pkey, parent) else {
        let line = pkey.or(parent).map_or(1, |(line, _)| line);
        said.todo(line, "a child needs IPOIB_PKEY and IPOIB_DEVICE: wicked refuses the file");
        return None;
    };
    // Hexadecimal, with 0x or without.
    let digits = pkey.strip_prefix("0x").or_else(|| pkey.strip_prefix("0X")).unwrap_or(pkey);
    let Some(value) = u16::from_str_radix(digits, 16).ok().and_then(PKey::new) else {
        said.todo(pkey_line, &format!("IPOIB_PKEY={} is not a P_Key", shown(pkey)));
        return None;
    };
    let Some(parent) = interfaces::plain(parent) else {
        let why = format!("IPOIB_DEVICE={} is not a plain name of an interface", shown(parent));
        said.todo(parent_line, &why);
        return None;
    };
    let of_kernel: Option<IfName> = format!("{parent}.{:04x}", value.value()).parse().ok();
    let name = Some(own).filter(|own| Some(own) != of_kernel.as_ref());
    let child = Some(Child { pkey: value, name });
    Some(Interface { which: Which::Name(parent), child, mode, umcast, mtu })
}
