//! `ibprov iface` as its unit runs it, on a tree of files.

use crate::host::Host;

#[test]
fn a_bond_of_ipoib_interfaces_is_none_of_ours_and_no_failure_of_the_unit() {
    let host = Host::healthy();
    let bond = "sys/class/net/bond0";
    host.file(&format!("{bond}/ifindex"), "9\n");
    host.file(&format!("{bond}/type"), "32\n");
    host.file(&format!("{bond}/uevent"), "DEVTYPE=bond\nINTERFACE=bond0\nIFINDEX=9\n");
    let unit = host.ibprov(&["iface", "--device=/sys/devices/virtual/net/bond0"]);
    let said = String::from_utf8_lossy(&unit.stderr);
    assert_eq!(unit.status.code(), Some(0), "{said}");
    assert!(said.contains("bond0 is a bond, no IPoIB interface: ibprov leaves it alone"), "{said}");
    // Who asks for it by name is told that it cannot be.
    let by_hand = host.ibprov(&["iface", "bond0", "--dry-run"]);
    assert_eq!(by_hand.status.code(), Some(2));
}
