//! The rules by which udev has ibprov create a soft RoCE device whenever its netdev appears,
//! and keep its name. They are there only where the configuration has such a device, so that no other host's
//! Ethernet netdevs start a unit.

use super::udev_rules::{self, own_path};
use crate::names::{IfName, RdmaName};

const RULES: &str = "91-ibprov-rxe.rules";

/// The rules for these devices, each with its netdev; `program` is ibprov itself. A netdev that
/// is renamed comes as `add` with its former name and then as `move`. rdma-core's rule
/// (60-rdma-persistent-naming.rules) names a device without a PCI function by its GUID.
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
    if devices.is_empty() {
        return udev_rules::put(RULES, None);
    }
    udev_rules::put(RULES, Some(&rules(devices, &own_path()?)))
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
