//! Ports in Ethernet mode that the configuration expects: RoCE.

use expect_test::expect;

use crate::host::{Host, PortSpec};

const PCI: &str = "0000:81:00.0";

const EXPECTED: &str = "[[port]]\npci = \"0000:81:00.0\"\nlink-layer = \"ethernet\"\n";

fn port(host: &Host, path: &str, content: &str) {
    let dir = format!("sys/bus/pci/devices/{PCI}/infiniband/mlx5_3/ports/1");
    host.file(&format!("{dir}/{path}"), &format!("{content}\n"));
}

fn gid(host: &Host, index: u32, kind: &str, gid: &str) {
    port(host, &format!("gids/{index}"), gid);
    port(host, &format!("gid_attrs/types/{index}"), kind);
    port(host, &format!("gid_attrs/ndevs/{index}"), "eth2");
}

/// A healthy host with an Ethernet adapter too, whose port has no address yet.
fn host() -> Host {
    let mut host = Host::healthy();
    host.function(PCI, "15b3:1021", "020000", Some("mlx5_core"));
    let spec = PortSpec { link_layer: "Ethernet", netdev: None, lid: "0x0", ..PortSpec::default() };
    host.rdma(PCI, "mlx5_3", "b859:9f03:0012:a4a0", &[spec]);
    netdev(&host, "eth2", 9, &[("phys_port_name", "p0")]);
    host.file("run/udev/data/n9", "I:5221000\nE:ID_BUS=pci\n");
    gid(&host, 0, "IB/RoCE v1", "fe80:0000:0000:0000:ba59:9fff:fe12:a4a0");
    gid(&host, 1, "RoCE v2", "fe80:0000:0000:0000:ba59:9fff:fe12:a4a0");
    host.file("etc/ibprov/ibprov.toml", EXPECTED);
    host
}

fn netdev(host: &Host, name: &str, index: u32, more: &[(&str, &str)]) {
    let index = index.to_string();
    let dir = format!("sys/bus/pci/devices/{PCI}/net/{name}");
    let usual = [
        ("type", "1"),
        ("ifindex", index.as_str()),
        ("dev_port", "0"),
        ("mtu", "9000"),
        ("flags", "0x1003"),
        ("carrier", "1"),
    ];
    for (attribute, value) in usual.iter().chain(more) {
        host.file(&format!("{dir}/{attribute}"), &format!("{value}\n"));
    }
    host.link(&format!("sys/class/net/{name}"), &format!("../../bus/pci/devices/{PCI}/net/{name}"));
}

/// The same, whose port is in use.
pub fn ready() -> Host {
    let host = host();
    with_address(&host);
    host
}

fn with_address(host: &Host) {
    gid(host, 2, "IB/RoCE v1", "0000:0000:0000:0000:0000:ffff:0a00:0007");
    gid(host, 3, "RoCE v2", "0000:0000:0000:0000:0000:ffff:0a00:0007");
}

#[test]
fn a_port_with_a_gid_for_its_address_is_ready() {
    let host = host();
    with_address(&host);
    expect![[r#"
        ready: 2 of 2 expected ports active
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
          mlx5_3/1  0000:81:00.0  eth2    active  -    200 HDR

        kernel 6.1.0-9-amd64
        modules: ib_ipoib, ib_umad, ib_uverbs

        mlx5_0  0000:4b:00.0  15b3:101b  MT4123  firmware 20.36.1010  node GUID b859:9f03:0012:a480  driver mlx5_core
          port 1  InfiniBand  ACTIVE  LinkUp  200 Gb/sec (4X HDR)  LID 7  SM LID 1  port GUID b859:9f03:0012:a480
            ib0  datagram  mtu 2044  up, carrier  no address
            pci > driver > rdma > netdev > named > configured > link > active

        mlx5_3  0000:81:00.0  15b3:1021  MT4123  firmware 20.36.1010  node GUID b859:9f03:0012:a4a0  driver mlx5_core
          port 1  Ethernet  ACTIVE  LinkUp  200 Gb/sec (4X HDR)
            eth2  mtu 9000  up, carrier  no address
            pci > driver > rdma > netdev > named > carrier > gid
        exit 0
    "#]].assert_eq(&host.show(&["status", "-v"]));
    let check = host.show(&["check"]);
    assert!(check.starts_with("verdict: ready"), "{check}");
}

fn status(host: &Host) -> serde_json::Value {
    let json = host.ibprov(&["status", "--format", "json"]);
    serde_json::from_slice(&json.stdout).expect("JSON")
}

#[test]
fn one_without_an_address_has_no_gid_to_use() {
    let host = host();
    expect![[r#"
        ready with exceptions: 1 of 2 expected ports active
          warning: mlx5_3/1: no GID: none of type RoCE v2 is for an address of global scope
            run: ibprov status --gids
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
        ~ mlx5_3/1  0000:81:00.0  eth2    no GID  -    200 HDR
        exit 1
    "#]]
    .assert_eq(&host.show(&["status"]));
    let status = status(&host);
    assert_eq!(status["findings"][0]["code"], "port-not-active");
    let ports: Vec<_> = status["hcas"].as_array().expect("adapters").iter().collect();
    let port = ports.iter().find(|hca| hca["pci"] == PCI).expect("adapter");
    assert_eq!(port["ports"][0]["ladder"]["missing"], "gid");
    assert_eq!(host.ibprov(&["check"]).status.code(), Some(1));
}

#[test]
fn carrier_comes_before_the_gid() {
    let host = host();
    host.file(&format!("sys/bus/pci/devices/{PCI}/net/eth2/carrier"), "0\n");
    let shown = host.show(&["status"]);
    assert!(shown.contains(": no carrier: eth2 has no carrier: "), "{shown}");
    host.file(&format!("sys/bus/pci/devices/{PCI}/net/eth2/flags"), "0x1002\n");
    let shown = host.show(&["status"]);
    assert!(shown.contains(": netdev down: eth2 is down: "), "{shown}");
}

#[test]
fn without_a_cable_it_is_not_active_whatever_gid_it_has() {
    let host = ready();
    host.file(&format!("sys/bus/pci/devices/{PCI}/net/eth2/carrier"), "0\n");
    let status = status(&host);
    assert_eq!(status["findings"][0]["code"], "port-not-active", "{status:#}");
    assert_eq!(status["exit_code"], 1, "{status:#}");
}

#[test]
fn a_port_that_is_not_configured_is_left_aside() {
    let host = host();
    host.file("etc/ibprov/ibprov.toml", "");
    let shown = host.show(&["status", "-v"]);
    assert!(shown.starts_with("ready: 1 of 1 expected ports active\n"), "{shown}");
    assert!(shown.contains("mlx5_3/1  0000:81:00.0  eth2    Ethernet"), "{shown}");
}

#[test]
fn netdevs_of_vfs_are_not_the_port_s() {
    let host = host();
    with_address(&host);
    netdev(&host, "eth2npf0vf0", 10, &[("phys_port_name", "pf0vf0")]);
    assert_eq!(host.ibprov(&["status"]).status.code(), Some(0));
}

#[test]
fn boot_waits_for_its_name_alone() {
    let host = host();
    let shown = host.show(&["boot", "--dry-run"]);
    assert!(shown.contains("eth2"), "{shown}");
    host.remove("run/udev/data/n9");
    let shown = host.show(&["status"]);
    assert!(shown.contains("mlx5_3/1: not named: udev"), "{shown}");
    assert!(shown.ends_with("exit 3\n"), "{shown}");
}

#[test]
fn a_port_in_infiniband_mode_is_of_the_other_type() {
    let host = Host::healthy();
    let row = EXPECTED.replace("81:00.0", "4b:00.0");
    host.file("etc/ibprov/ibprov.toml", &row);
    expect![[r#"
        NOT READY: 0 of 1 expected ports active
          error: mlx5_0/1: no netdev: the port is in InfiniBand mode, and an Ethernet port is expected (listed in /etc/ibprov/ibprov.toml:1)
            do: to change the type: set it (mlxconfig takes the same arguments), then reboot, or power the host off and on
            run: mstconfig -d 0000:4b:00.0 set LINK_TYPE_P1=2
            do: or ignore the port (boot.ignore)
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE       LID  Gb/s     NOTE
        ! mlx5_0/1  0000:4b:00.0  -       InfiniBand  7    200 HDR  Ethernet expected
        exit 3
    "#]].assert_eq(&host.show(&["status"]));
}

#[test]
fn an_ethernet_port_has_no_port_guid() {
    let host = Host::new();
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[port]]\nport-guid = \"b859:9f03:0012:a480\"\nlink-layer = \"ethernet\"\n",
    );
    expect![[r#"
        error: a port in Ethernet mode has no port GUID
         --> /etc/ibprov/ibprov.toml:2:13
          |
        2 | port-guid = "b859:9f03:0012:a480"
          |             ^^^^^^^^^^^^^^^^^^^^^ names an InfiniBand port
        3 | link-layer = "ethernet"
          |              ---------- is in Ethernet mode
          |
          = help: name the adapter with pci or rdma

        the configuration is not valid: 1 error
        files, in the order in which they apply:
          /etc/ibprov/ibprov.toml
        exit 2
    "#]]
    .assert_eq(&host.show(&["config", "check"]));
}

#[test]
fn the_index_of_a_gid_is_printed_alone() {
    let host = host();
    with_address(&host);
    let gid = |more: &[&str]| host.show(&[&["gid", "--port"], more].concat());
    for port in ["mlx5_3/1", "mlx5_3", "eth2", "0000:81:00.0", "81:00.0/1"] {
        assert_eq!(
            gid(&[port, "--type", "rocev2", "--address", "10.0.0.7"]),
            "3\nexit 0\n",
            "{port}"
        );
    }
    assert_eq!(gid(&["ib0", "--type", "ib"]), "0\nexit 0\n");
    let address = "fe80::ba59:9fff:fe12:a4a0";
    assert_eq!(gid(&["eth2", "--type", "rocev1", "--address", address]), "0\nexit 0\n");
    expect![[r#"
        error: mlx5_3/1: none of the 4 entries of the GID table is for 10.0.0.8: `ibprov status --gids` shows them
        exit 3
    "#]].assert_eq(&gid(&["eth2", "--address", "10.0.0.8"]));
    expect![[r#"
        error: mlx5_3/1: several entries of the GID table are for 10.0.0.7: 2 (RoCE v1, ::ffff:10.0.0.7), 3 (RoCE v2, ::ffff:10.0.0.7); give --type and --address
        exit 3
    "#]].assert_eq(&gid(&["eth2", "--address", "10.0.0.7"]));
    expect![[r#"
        error: mlx5_9 is no port and no adapter of this host: it has ib0 mlx5_0 (0000:4b:00.0), eth2 mlx5_3 (0000:81:00.0)
        exit 2
    "#]]
    .assert_eq(&gid(&["mlx5_9", "--type", "rocev2"]));
    expect![[r#"
        error: invalid value 'roce' for '--type <TYPE>': expected "ib", "rocev1" or "rocev2"

        For more information, try '--help'.
        exit 2
    "#]]
    .assert_eq(&gid(&["eth2", "--type", "roce"]));
    let json = host.ibprov(&["gid", "--port", "eth2", "--address", "10.0.0.7", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(report["verdict"], "not-ready");
}

/// An rxe device has no PCI function.
#[test]
fn a_device_of_software_has_gids_too() {
    let host = Host::new();
    let dir = "sys/class/infiniband/rxe0/ports/1";
    host.file(&format!("{dir}/link_layer"), "Ethernet\n");
    host.file(&format!("{dir}/gids/1"), "0000:0000:0000:0000:0000:ffff:0a00:0007\n");
    host.file(&format!("{dir}/gid_attrs/types/1"), "RoCE v2\n");
    assert_eq!(host.show(&["gid", "--port", "rxe0", "--type", "rocev2"]), "1\nexit 0\n");
}
