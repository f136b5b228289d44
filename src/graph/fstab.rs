//! The mount units that systemd-fstab-generator(8) makes of /etc/fstab.

use std::collections::BTreeSet;

use super::unit_file::escape_path;
use super::{Unit, consumers};

pub(super) struct Mount {
    pub(super) unit: Unit,
    /// What mounts it when it is first looked at.
    pub(super) automount: Option<Unit>,
    /// What wants or requires it, or its automount; none if it is `noauto`.
    pub(super) wanted_by: Option<&'static str>,
    pub(super) required: bool,
}

/// The mounts of fstab's `text`.
pub(super) fn mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split_whitespace();
    let (what, path, kind) = (fields.next()?, fields.next()?, fields.next()?);
    let options = fields.next().unwrap_or("defaults");
    if !path.starts_with('/') || kind == "swap" {
        return None;
    }
    let has = |option: &str| options.split(',').any(|o| o == option);
    let values = |key: &str| -> BTreeSet<String> {
        options
            .split(',')
            .filter_map(|o| o.strip_prefix(key)?.strip_prefix('='))
            .map(name)
            .collect()
    };
    // `\040` is a blank (fstab(5)).
    let path = path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
    let mut unit = Unit {
        name: format!("{}.mount", escape_path(&path)),
        kind: kind.to_owned(),
        what: what.to_owned(),
        options: options.to_owned(),
        file_state: "generated".to_owned(),
        fragment: "/etc/fstab".to_owned(),
        ..Unit::default()
    };
    let network = consumers::is_network_mount(&unit);
    order_mount(&mut unit);
    if has("nofail") {
        // Ordered before nothing (systemd.mount(5), nofail).
        unit.before.clear();
    }
    unit.after.extend(values("x-systemd.after"));
    unit.before.extend(values("x-systemd.before"));
    let requires = values("x-systemd.requires");
    unit.after.extend(requires.iter().cloned());
    unit.requires.extend(requires);
    let automount = has("x-systemd.automount").then(|| Unit {
        name: format!("{}.automount", unit.name.trim_end_matches(".mount")),
        triggers: BTreeSet::from([unit.name.clone()]),
        file_state: unit.file_state.clone(),
        fragment: unit.fragment.clone(),
        ..Unit::default()
    });
    // `noauto` is of the mount: its automount is wanted all the same (`add_mount()` of
    // src/fstab-generator/fstab-generator.c).
    let is_wanted = !has("noauto") || automount.is_some();
    let target = if network { "remote-fs.target" } else { "local-fs.target" };
    let wanted_by = is_wanted.then_some(target);
    Some(Mount { unit, automount, wanted_by, required: !has("nofail") })
}

/// The orders of each mount (systemd.mount(5), "Automatic dependencies").
pub(super) fn order_mount(unit: &mut Unit) {
    let network = consumers::is_network_mount(unit);
    let (first, last): (&[&str], _) = if network {
        (&["remote-fs-pre.target", "network.target", "network-online.target"], "remote-fs.target")
    } else {
        (&["local-fs-pre.target"], "local-fs.target")
    };
    unit.after.extend(first.iter().map(|n| (*n).to_owned()));
    unit.before.insert(last.to_owned());
    if network {
        unit.wants.insert("network-online.target".to_owned());
    }
}

/// The options name units, or paths that stand for their mounts.
fn name(value: &str) -> String {
    if value.starts_with('/') { format!("{}.mount", escape_path(value)) } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_fstab_are_ordered_as_the_generator_does() {
        let text = "# comment\nUUID=1 / ext4 defaults 0 1\n10.0.0.1:/s /scratch\\040a nfs4 rdma,x-systemd.requires=ib.service\nx none swap sw\nfs:/l /l lustre noauto,_netdev\n/dev/b /b ext4 _netdev,nofail\n";
        let mounts = mounts(text);
        let names: Vec<&str> = mounts.iter().map(|m| m.unit.name.as_str()).collect();
        assert_eq!(names, ["-.mount", "scratch\\x20a.mount", "l.mount", "b.mount"]);
        let nfs = &mounts[1];
        assert!(nfs.unit.after.contains("network-online.target"));
        assert!(nfs.unit.after.contains("ib.service") && nfs.unit.requires.contains("ib.service"));
        assert_eq!(nfs.wanted_by, Some("remote-fs.target"));
        assert_eq!(mounts[2].wanted_by, None);
        assert!(mounts[3].unit.before.is_empty() && !mounts[3].required);
        assert_eq!(mounts[0].wanted_by, Some("local-fs.target"));
    }
}
