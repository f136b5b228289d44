//! Red Hat's network-scripts: `ifcfg-*` below /etc/sysconfig/network-scripts.

use super::{address_trouble, ifcfg, last};
use crate::host::Root;
use crate::observe::ipoib::Interface;
use crate::report::stack::{Answer, Claim};

const DIR: &str = "/etc/sysconfig/network-scripts";

/// The stack's claim to `interface`. With NetworkManager at work, a file is
/// NetworkManager's unless it says NM_CONTROLLED=no.
#[must_use]
pub fn claim(root: &Root, interface: &Interface, nm_here: bool) -> Claim {
    let name = interface.name.as_str();
    let mut missed = None;
    for file in root.list_or_empty(DIR).unwrap_or_default() {
        let Some(suffix) = file.strip_prefix("ifcfg-") else { continue };
        let backup = [".bak", ".orig", ".rpmnew", ".rpmorig", ".rpmsave", "~"];
        if backup.iter().any(|b| suffix.ends_with(b)) {
            continue;
        }
        let path = format!("{DIR}/{file}");
        let Ok(text) = root.text(&path, 1 << 20) else { continue };
        let pairs = ifcfg(&text);
        let device = last(&pairs, "DEVICE");
        let address = last(&pairs, "HWADDR");
        let trouble = address.and_then(|a| address_trouble(a, interface));
        let named = device.unwrap_or(suffix) == name;
        if !named {
            // The scripts know no other name than DEVICE and the file's.
            if address.is_some() && trouble.is_none() {
                let other = device.unwrap_or(suffix);
                missed = Some(format!("{path} has this port's address, but is for {other:?}"));
            }
            continue;
        }
        if let Some(trouble) = trouble {
            missed = Some(format!("{path} does not fit: {trouble}"));
            continue;
        }
        let no = |key: &str| {
            last(&pairs, key)
                .is_some_and(|v| matches!(v.to_lowercase().as_str(), "no" | "n" | "false"))
        };
        return if nm_here && !no("NM_CONTROLLED") {
            Claim::new(Answer::No, format!("{path} is NetworkManager's (no NM_CONTROLLED=no)"))
        } else if no("ONBOOT") {
            Claim::new(Answer::ByHand, format!("ONBOOT=no in {path}"))
        } else {
            Claim::new(Answer::Yes, path)
        };
    }
    match missed {
        Some(why) => Claim::new(Answer::Missed, why),
        None => Claim::new(Answer::No, format!("no {DIR}/ifcfg-{name}")),
    }
}
