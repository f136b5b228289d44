//! SUSE's wicked: `ifcfg-*` below /etc/sysconfig/network. Its nanny watches for
//! interfaces and brings up what it has a policy for.

use super::{ifcfg, last};
use crate::host::Root;
use crate::observe::ipoib::Interface;
use crate::report::stack::{Answer, Claim};

const DIR: &str = "/etc/sysconfig/network";

/// The stack's claim to `interface`.
#[must_use]
pub fn claim(root: &Root, interface: &Interface) -> Claim {
    let path = format!("{DIR}/ifcfg-{}", interface.name);
    let Ok(text) = root.text(&path, 1 << 20) else {
        return Claim::new(Answer::No, format!("no {path}"));
    };
    let pairs = ifcfg(&text);
    match last(&pairs, "STARTMODE").map(str::to_lowercase).as_deref() {
        Some("manual") => Claim::new(Answer::ByHand, format!("STARTMODE=manual in {path}")),
        Some("off") => Claim::new(Answer::No, format!("STARTMODE=off in {path}")),
        mode => {
            let mode = mode.map(|m| format!(" (STARTMODE={m})")).unwrap_or_default();
            Claim::new(Answer::Yes, format!("{path}{mode}"))
        }
    }
}
