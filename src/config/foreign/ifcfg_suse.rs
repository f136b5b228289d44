//! Files `ifcfg-NAME` of SUSE's wicked (`ifcfg(5)`, `ifcfg-infiniband(5)`; `try_infiniband()` in
//! its client/suse/compat-suse.c).

use super::interfaces::{Child, Given, Interface, Said, Todo, Which};
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
    let get = |key| values.get(key).map(|(line, text)| Given { line: *line, key, text });
    let is_infiniband = match get("IPOIB") {
        Some(word) => matches!(word.lower().as_str(), "yes" | "true" | "on" | "1"),
        None => {
            ["IPOIB_MODE", "IPOIB_UMCAST"].iter().any(|key| get(key).is_some())
                || is_ipoib_name(name)
        }
    };
    if !is_infiniband {
        return None;
    }
    // wicked does not set up such an interface at boot.
    let at_boot = get(STARTMODE).is_none_or(|word| !matches!(word.text, "off" | "manual"));
    if at_boot {
        let interface = interface(&mut said, name, get);
        said.take(interface);
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
    name: &'a str,
    get: impl Fn(&'static str) -> Option<Given<'a>>,
) -> Result<Option<Interface>, Todo> {
    let own = IfName::to_give(name)
        .map_err(|_| (1, format!("{} is not a plain name of an interface", shown(name))))?;
    let mode = get("IPOIB_MODE").map(|word| match word.lower().as_str() {
        "connected" => Ok(Mode::Connected),
        "datagram" => Ok(Mode::Datagram),
        _ => Err(word.todo(": wicked refuses this mode")),
    });
    let umcast = get("IPOIB_UMCAST").map(|word| match word.lower().as_str() {
        "allowed" | "1" => Ok(true),
        "disallowed" | "0" => Ok(false),
        _ => Err(word.todo(" is neither allowed nor disallowed")),
    });
    let (mode, umcast) = (mode.transpose()?, umcast.transpose()?);
    let mtu = said.mtu(get("MTU"), mode);
    let by_name = name.split_once('.').filter(|_| is_ipoib_name(name));
    let of_name = |key, text| Given { line: 1, key, text };
    let pkey = get("IPOIB_PKEY").or(by_name.map(|(_, pkey)| of_name("IPOIB_PKEY", pkey)));
    let parent = get("IPOIB_DEVICE").or(by_name.map(|(parent, _)| of_name("IPOIB_DEVICE", parent)));
    let (pkey, parent) = match (pkey, parent) {
        (None, None) => {
            let says = mode.is_some() || umcast.is_some() || mtu.is_some();
            let which = Which::Name(own);
            return Ok(says.then_some(Interface { which, child: None, mode, umcast, mtu }));
        }
        (Some(pkey), Some(parent)) => (pkey, parent),
        (Some(one), None) | (None, Some(one)) => {
            let why = "a child needs IPOIB_PKEY and IPOIB_DEVICE: wicked refuses the file";
            return Err((one.line, why.to_owned()));
        }
    };
    // Hexadecimal, with 0x or without.
    let text = pkey.text;
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let value = u16::from_str_radix(digits, 16).ok().and_then(PKey::new);
    let value = value.ok_or_else(|| pkey.todo(" is not a P_Key"))?;
    let parent = parent.name()?;
    let of_kernel: Option<IfName> = format!("{parent}.{:04x}", value.value()).parse().ok();
    let name = Some(own).filter(|own| Some(own) != of_kernel.as_ref());
    let child = Some(Child { pkey: value, name });
    Ok(Some(Interface { which: Which::Name(parent), child, mode, umcast, mtu }))
}
