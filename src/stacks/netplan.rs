//! netplan, which is no stack itself: during the boot it writes files for networkd and
//! NetworkManager. From version 1.2 on a service does that, not a generator.

use super::files::folder;
use crate::host::Root;
use crate::model::{Code, Finding, Severity, stack::is_netplans};
use crate::names::harmless;

/// Where its own files are (netplan(5)).
const DIRS: [&str; 3] = ["/etc/netplan", "/run/netplan", "/lib/netplan"];
/// Where it writes those of the stacks.
const WRITTEN: [&str; 2] = ["/run/systemd/network", "/run/NetworkManager/system-connections"];
/// It writes this for a configuration without a single netdev (`renderer: NetworkManager`).
const RENDERER: &str = "/run/NetworkManager/conf.d/10-globally-managed-devices.conf";

/// That its files say what is not known yet, where it has none written for the stacks.
pub fn not_judged(root: &Root) -> Option<Finding> {
    let mut files = DIRS.iter().flat_map(|dir| folder(root, dir));
    let first = files.find(|file| file.ends_with(".yaml"))?;
    let mut written = WRITTEN.iter().flat_map(|dir| folder(root, dir));
    if written.any(|file| is_netplans(&file)) || root.exists(RENDERER) {
        return None;
    }
    let message = "addresses, MTU and infiniband-mode were not judged: netplan writes its files for systemd-networkd and NetworkManager during the boot";
    Some(Finding::new(Code::Notice, Severity::Info, message).about(harmless(&first)))
}
