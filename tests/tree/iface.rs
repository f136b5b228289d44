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
    assert!(
        said.contains("bond0 is a bond, not an IPoIB interface: ibprov does not change it"),
        "{said}"
    );
    // Who asks for it by name is told that it cannot be.
    let by_hand = host.ibprov(&["iface", "bond0", "--dry-run"]);
    assert_eq!(by_hand.status.code(), Some(2));
}

const PROFILE: &str = "etc/NetworkManager/system-connections/fabric.nmconnection";

/// A host that wants ib0 connected, with NetworkManager and its profile, enabled or not.
fn host_with_network_manager(enabled: bool) -> Host {
    let host = Host::healthy();
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.name = \"ib0\"\nmode = \"connected\"\n",
    );
    let unit = "lib/systemd/system/NetworkManager.service";
    host.file(unit, "[Service]\nExecStart=/usr/sbin/NetworkManager\n");
    let profile = "[connection]\nid=fabric\ntype=infiniband\ninterface-name=ib0\n[infiniband]\ntransport-mode=datagram\n";
    host.file(PROFILE, profile);
    if enabled {
        let link = "etc/systemd/system/multi-user.target.wants/NetworkManager.service";
        host.link(link, &format!("/{unit}"));
    }
    host
}

#[test]
fn a_profile_that_says_another_mode_is_named_before_it_is_written() {
    let host = host_with_network_manager(true);
    let want = "ib0: NetworkManager will set transport mode datagram when it brings the interface up, but mode = \"connected\" is configured (/etc/ibprov/ibprov.toml:1). Change one of the two: infiniband.transport-mode in /etc/NetworkManager/system-connections/fabric.nmconnection says datagram";
    let dry_run = host.show(&["iface", "ib0", "--dry-run"]);
    assert!(dry_run.contains(&format!("warning: {want}\n")), "{dry_run}");
    let status = host.show(&["status"]);
    assert!(status.contains(&format!("note: {want}\n")), "{status}");
    let boot = host.show(&["boot", "--dry-run"]);
    assert!(boot.contains(want), "{boot}");
    // What is not part of the boot writes nothing.
    let idle = host_with_network_manager(false).show(&["status"]);
    assert!(!idle.contains("will set transport"), "{idle}");
}
