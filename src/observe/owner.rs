//! Which network stack sets a netdev up, by the files that each keeps. For
//! messages only: what is decided on it is decided elsewhere.

use crate::host::Root;
use crate::names::IfName;

/// The stack that should set `netdev` up, with the file that says so, as a
/// phrase; `None` if none has anything for it.
#[must_use]
pub fn owner(root: &Root, netdev: &IfName, ifindex: u32) -> Option<String> {
    let text = |path: &str| root.text(path, 1 << 20).ok();
    // networkd: what it wrote of the link (sd-network(3) reads the same file).
    if let Some(state) = text(&format!("/run/systemd/netif/links/{ifindex}")) {
        let value = |key: &str| state.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
        if value("ADMIN_STATE").is_some_and(|s| s != "unmanaged") {
            let file = value("NETWORK_FILE").filter(|f| !f.is_empty());
            return Some(match file {
                Some(file) => format!("systemd-networkd ({})", shown(file)),
                None => "systemd-networkd".to_owned(),
            });
        }
    }
    // NetworkManager: nm-device's state file, `src/core/nm-config.c`.
    if let Some(state) = text(&format!("/run/NetworkManager/devices/{ifindex}"))
        && state.lines().any(|l| l == "managed=1" || l == "managed=true")
    {
        let active = state.lines().any(|l| l.starts_with("connection-uuid="));
        let profile = if active { "" } else { ", which has no profile active on it" };
        return Some(format!("NetworkManager{profile}"));
    }
    for (stack, file) in [
        ("the network service", format!("/etc/sysconfig/network-scripts/ifcfg-{netdev}")),
        ("wicked", format!("/etc/sysconfig/network/ifcfg-{netdev}")),
    ] {
        if root.exists(&file) {
            return Some(format!("{stack} ({file})"));
        }
    }
    ifupdown_files(root)
        .into_iter()
        .find(|file| text(file).is_some_and(|t| has_stanza(&t, netdev)))
        .map(|file| format!("ifupdown ({file})"))
}

fn ifupdown_files(root: &Root) -> Vec<String> {
    let dir = "/etc/network/interfaces.d";
    let mut files = vec!["/etc/network/interfaces".to_owned()];
    let names = root.list_or_empty(dir).unwrap_or_default();
    files.extend(names.iter().map(|name| format!("{dir}/{name}")));
    files
}

/// interfaces(5): `iface NAME FAMILY METHOD`.
fn has_stanza(text: &str, netdev: &IfName) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("iface") && words.next() == Some(netdev.as_str())
    })
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner_with(path: &str, content: &str) -> Option<String> {
        let dir = crate::host::testing::tree(&[(path, content)], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        owner(&root, &"ib0".parse().expect("name"), 7)
    }

    #[test]
    fn each_stack_is_told_by_its_own_files() {
        for (path, content, want) in [
            (
                "etc/network/interfaces",
                "auto ib0\niface ib0 inet static\n",
                "ifupdown (/etc/network/interfaces)",
            ),
            (
                "etc/network/interfaces.d/ib",
                "iface ib0 inet dhcp\n",
                "ifupdown (/etc/network/interfaces.d/ib)",
            ),
            (
                "run/systemd/netif/links/7",
                "ADMIN_STATE=configuring\nNETWORK_FILE=/etc/systemd/network/ib.network\n",
                "systemd-networkd (/etc/systemd/network/ib.network)",
            ),
            (
                "run/NetworkManager/devices/7",
                "[device]\nmanaged=1\n",
                "NetworkManager, which has no profile active on it",
            ),
            (
                "etc/sysconfig/network/ifcfg-ib0",
                "BOOTPROTO=dhcp",
                "wicked (/etc/sysconfig/network/ifcfg-ib0)",
            ),
        ] {
            assert_eq!(owner_with(path, content).as_deref(), Some(want));
        }
    }

    #[test]
    fn another_netdevs_configuration_is_nobodys_claim() {
        assert_eq!(owner_with("etc/network/interfaces", "iface ib00 inet dhcp\n"), None);
        assert_eq!(owner_with("run/systemd/netif/links/7", "ADMIN_STATE=unmanaged\n"), None);
        assert_eq!(owner_with("run/NetworkManager/devices/7", "managed=0\n"), None);
    }
}
