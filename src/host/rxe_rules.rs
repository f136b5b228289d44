#![allow(clippy::disallowed_methods, reason = "a file of udev's that is ours to write")]

//! The rules by which udev has ibprov create a soft RoCE device whenever its netdev appears,
//! and keep its name. They are there only where the configuration has such a device, so that no other host's
//! Ethernet netdevs start a unit.

use std::path::Path;
use std::{fs, io};

use super::persistent_names::{own_path, tell_udev};
use crate::names::{IfName, RdmaName};

const RULES: &str = "/run/udev/rules.d/91-ibprov-rxe.rules";

/// The rules for these devices, each with its netdev; `program` is ibprov itself. A netdev that
/// is renamed comes as `add` with its former name and then as `move`. rdma-core's rule
/// (60-rdma-persistent-naming.rules) names a device without a PCI function by its GUID.
#[must_use]
pub fn rules(devices: &[(&RdmaName, &IfName)], program: &str) -> String {
    let mut rules = "# Written by ibprov boot from ibprov.toml.\n".to_owned();
    for (name, netdev) in devices {
        rules.push_str(&format!(
            "ACTION==\"add\", SUBSYSTEM==\"infiniband\", KERNEL==\"{name}\", RUN+=\"{program} name-rxe {name} {netdev}\"\n"
        ));
        rules.push_str(&format!(
            "ACTION!=\"remove\", SUBSYSTEM==\"net\", KERNEL==\"{netdev}\", TAG+=\"systemd\", ENV{{SYSTEMD_WANTS}}+=\"ibprov-iface@.service\"\n"
        ));
    }
    rules
}

/// Have udev start `ibprov-iface@.service` for the netdevs of these devices, and for no others
/// by this rule, and keep the names of the devices.
///
/// # Errors
/// The path that failed, with the system's answer, or udev could not be told.
pub fn establish(devices: &[(&RdmaName, &IfName)]) -> Result<(), String> {
    let path = Path::new(RULES);
    let failed = |path: &Path, e: &io::Error| format!("{}: {}", path.display(), super::answer(e));
    if devices.is_empty() {
        return match fs::remove_file(path) {
            Ok(()) => tell_udev(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(failed(path, &e)),
        };
    }
    let content = rules(devices, &own_path()?);
    if fs::read_to_string(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let dir = path.parent().unwrap_or(Path::new("/run"));
    fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
    fs::write(path, content).map_err(|e| failed(path, &e))?;
    tell_udev()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_netdev_starts_its_unit_by_name() {
        let netdev: IfName = "eth1".parse().expect("name");
        let name: RdmaName = "rxe0".parse().expect("name");
        expect_test::expect![[r#"
            # Written by ibprov boot from ibprov.toml.
            ACTION=="add", SUBSYSTEM=="infiniband", KERNEL=="rxe0", RUN+="/usr/sbin/ibprov name-rxe rxe0 eth1"
            ACTION!="remove", SUBSYSTEM=="net", KERNEL=="eth1", TAG+="systemd", ENV{SYSTEMD_WANTS}+="ibprov-iface@.service"
        "#]]
        .assert_eq(&rules(&[(&name, &netdev)], "/usr/sbin/ibprov"));
    }
}
