//! Which netdevs the network stacks are configured to set up, by the names in
//! their files. Only names that a file spells out count: a pattern (`ib*`)
//! says nothing of a single netdev.

use crate::host::Root;

/// No configuration of one interface is larger.
const LIMIT: u64 = 256 * 1024;

/// A unit is configured to set up a netdev.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The unit.
    pub unit: String,
    /// The netdev.
    pub netdev: String,
    /// The file that says so.
    pub file: String,
}

/// Every netdev with an InfiniBand name that a file sets up, with the unit that
/// reads the file. Files of a stack that does not run count as well: the
/// caller knows which do.
#[must_use]
pub fn asked(root: &Root, is_infiniband: impl Fn(&str) -> bool) -> Vec<Asked> {
    let mut all = Vec::new();
    let mut add = |units: &[&str], netdev: &str, file: &str| {
        if is_infiniband(netdev) {
            for unit in units {
                let asked = Asked {
                    unit: (*unit).to_owned(),
                    netdev: netdev.to_owned(),
                    file: file.to_owned(),
                };
                if !all.contains(&asked) {
                    all.push(asked);
                }
            }
        }
    };
    let folder = |dir: &str| -> Vec<String> {
        let names = root.list_or_empty(dir).unwrap_or_default();
        names.into_iter().map(|name| format!("{dir}/{name}")).collect()
    };
    let mut ifupdown = vec!["/etc/network/interfaces".to_owned()];
    ifupdown.extend(folder("/etc/network/interfaces.d"));
    for file in ifupdown {
        for line in root.text(&file, LIMIT).unwrap_or_default().lines() {
            // What only hot plug brings up is not asked for at boot.
            if let Some(names) = line.trim().strip_prefix("auto ") {
                names.split_whitespace().for_each(|n| add(&["networking.service"], n, &file));
            }
        }
    }
    for file in folder("/etc/sysconfig/network-scripts") {
        let Some(name) = file.rsplit_once("/ifcfg-").map(|(_, name)| name) else { continue };
        let text = root.text(&file, LIMIT).unwrap_or_default();
        if value(&text, "ONBOOT").is_some_and(|v| v.eq_ignore_ascii_case("no")) {
            continue;
        }
        let device = value(&text, "DEVICE").unwrap_or(name);
        let by_nm = value(&text, "NM_CONTROLLED").is_none_or(|v| !v.eq_ignore_ascii_case("no"));
        let units: &[&str] = if by_nm {
            &["network.service", "NetworkManager.service"]
        } else {
            &["network.service"]
        };
        add(units, device, &file);
    }
    for file in folder("/etc/sysconfig/network") {
        if let Some((_, name)) = file.rsplit_once("/ifcfg-") {
            add(&["wicked.service"], name, &file);
        }
    }
    for dir in ["/etc/NetworkManager/system-connections", "/run/NetworkManager/system-connections"]
    {
        for file in folder(dir) {
            let text = root.text(&file, LIMIT).unwrap_or_default();
            if let Some(netdev) = value(&text, "interface-name") {
                add(&["NetworkManager.service"], netdev, &file);
            }
        }
    }
    for dir in ["/etc/systemd/network", "/run/systemd/network"] {
        for file in folder(dir).into_iter().filter(|f| f.ends_with(".network")) {
            let text = root.text(&file, LIMIT).unwrap_or_default();
            for netdev in value(&text, "Name").unwrap_or_default().split_whitespace() {
                add(&["systemd-networkd.service"], netdev, &file);
            }
        }
    }
    all
}

/// The value of `key` in lines of `KEY=value`, quotes taken off.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.trim().split_once('=')?;
        (name.trim() == key).then(|| value.trim().trim_matches(['"', '\'']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stacks_files_name_their_netdevs() {
        let files = [
            ("etc/network/interfaces", "auto lo ib0\niface ib0 inet dhcp\nallow-hotplug ib9\n"),
            ("etc/network/interfaces.d/x", "auto ib1\n"),
            ("etc/sysconfig/network-scripts/ifcfg-ib2", "ONBOOT=yes\n"),
            ("etc/sysconfig/network-scripts/ifcfg-storage", "DEVICE=\"ib3\"\nNM_CONTROLLED=no\n"),
            ("etc/sysconfig/network-scripts/ifcfg-ib8", "ONBOOT=no\n"),
            (
                "etc/NetworkManager/system-connections/a.nmconnection",
                "[connection]\ninterface-name=ib4\n",
            ),
            ("etc/systemd/network/10.network", "[Match]\nName=ib5 ib* eth0\n"),
            ("etc/systemd/network/10.link", "[Link]\nName=ib7\n"),
        ];
        let dir = crate::host::testing::tree(&files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let found = asked(&root, |n| n.starts_with("ib") && !n.contains('*'));
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|a| (a.unit.trim_end_matches(".service"), a.netdev.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("networking", "ib0"),
                ("networking", "ib1"),
                ("network", "ib2"),
                ("NetworkManager", "ib2"),
                ("network", "ib3"),
                ("NetworkManager", "ib4"),
                ("systemd-networkd", "ib5"),
            ]
        );
    }
}
