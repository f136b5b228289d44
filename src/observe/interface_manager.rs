//! MLNX_OFED's own agent for interfaces beside ours: mlnx_interface_mgr.
//!
//! A udev rule of its kernel package starts `mlnx_interface_mgr@IF.service` for each
//! netdev of a Mellanox driver that is added, whether openibd is enabled or not. Its
//! script sets mode and MTU after openib.conf, makes P_Key children and runs `ifup`;
//! it does nothing where there is no openib.conf (`ofed_scripts/90-ib.rules`,
//! `mlnx_interface_mgr.sh` of mlnx-ofa_kernel).

use super::udev;
use crate::host::{Root, unit_links};
use crate::names::{IfName, UNIT_FILE_DIRS};

/// What the script needs.
const CONF: &str = "/etc/infiniband/openib.conf";
const RULE: &str = "90-ib.rules";
const UNIT: &str = "mlnx_interface_mgr@.service";

/// What masks the rule where it is a link to /dev/null; updates of the package leave it.
pub const MASK: &str = "/etc/udev/rules.d/90-ib.rules";

/// What takes the rule out of force; it survives updates of the package.
pub const REMEDY: &str =
    "ln -sf /dev/null /etc/udev/rules.d/90-ib.rules && udevadm control --reload";

/// The rule that starts it, where nothing masks rule or unit.
pub fn armed(root: &Root) -> Option<String> {
    if !root.exists(CONF) {
        return None;
    }
    udev::unmasked(root, UNIT_FILE_DIRS, UNIT)?;
    rule(root)
}

/// The rule, where nothing masks it, whether the rest of it is installed or not.
pub fn rule(root: &Root) -> Option<String> {
    let (path, text) = udev::rule(root, RULE)?;
    let starts = |l: &str| !l.trim_start().starts_with('#') && l.contains("mlnx_interface_mgr");
    text.lines().any(starts).then_some(path)
}

/// Its unit for the interface `name`. The rule pastes the name as it is.
pub fn unit(name: &IfName) -> String {
    format!("mlnx_interface_mgr@{name}.service")
}

/// Those of `names` that it is at work on now. A host without openib.conf pays one look
/// for a file.
pub fn at_work<'a>(root: &Root, names: impl IntoIterator<Item = &'a IfName>) -> Vec<IfName> {
    if !root.exists(CONF) {
        return Vec::new();
    }
    names.into_iter().filter(|name| unit_links::is_up(root, &unit(name))).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;

    const LINES: &str = "# IPoIB\nDRIVERS==\"*mlx*\", SUBSYSTEM==\"net\", ACTION==\"add\", RUN+=\"/bin/systemctl --no-block start mlnx_interface_mgr@$name.service\"\n";

    fn armed_in(files: &[(&str, &str)], links: &[(&str, &str)]) -> Option<String> {
        let mut all = vec![
            ("etc/infiniband/openib.conf", "ONBOOT=yes\n"),
            ("lib/systemd/system/mlnx_interface_mgr@.service", "[Service]\n"),
        ];
        all.extend(files);
        let dir = tree(&all, links);
        armed(&Root::copy_at(dir.path()).expect("root"))
    }

    #[test]
    fn the_rule_counts_unless_something_masks_it() {
        let rule = ("lib/udev/rules.d/90-ib.rules", LINES);
        assert_eq!(armed_in(&[rule], &[]).as_deref(), Some("/lib/udev/rules.d/90-ib.rules"));
        assert_eq!(armed_in(&[rule, ("etc/udev/rules.d/90-ib.rules", "")], &[]), None);
        assert_eq!(armed_in(&[rule, ("run/udev/rules.d/90-ib.rules", "\n")], &[]), None);
        assert_eq!(armed_in(&[rule], &[("etc/udev/rules.d/90-ib.rules", "/dev/null")]), None);
        let unit = "etc/systemd/system/mlnx_interface_mgr@.service";
        assert_eq!(armed_in(&[rule], &[(unit, "/dev/null")]), None);
        assert_eq!(armed_in(&[rule, (unit, "")], &[]), None);
        // Another rule of that name, and one that is commented out.
        assert_eq!(armed_in(&[("lib/udev/rules.d/90-ib.rules", "KERNEL==\"umad*\"\n")], &[]), None);
        let off = format!("#{}", LINES.lines().last().expect("rule"));
        assert_eq!(armed_in(&[("lib/udev/rules.d/90-ib.rules", &off)], &[]), None);
    }

    #[test]
    fn without_openib_conf_the_script_does_nothing() {
        let dir = tree(
            &[
                ("lib/udev/rules.d/90-ib.rules", LINES),
                ("lib/systemd/system/mlnx_interface_mgr@.service", "[Service]\n"),
            ],
            &[("run/systemd/units/invocation:mlnx_interface_mgr@ib0.service", "1f2e")],
        );
        let root = Root::copy_at(dir.path()).expect("root");
        assert_eq!(armed(&root), None);
        assert_eq!(at_work(&root, [&"ib0".parse().expect("name")]), []);
    }

    #[test]
    fn it_is_at_work_while_its_unit_is_up() {
        let dir = tree(
            &[("etc/infiniband/openib.conf", "")],
            &[("run/systemd/units/invocation:mlnx_interface_mgr@ib0.service", "1f2e")],
        );
        let root = Root::copy_at(dir.path()).expect("root");
        let [ib0, ib1] = ["ib0", "ib1"].map(|name| name.parse::<IfName>().expect("name"));
        assert_eq!(at_work(&root, [&ib0, &ib1]), [ib0]);
    }
}
