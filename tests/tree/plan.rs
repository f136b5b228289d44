//! `ibprov plan`: what would change, what is wrong, pins, partitions.

use expect_test::{Expect, expect};

use crate::host::{Host, PF, PortSpec};

/// A healthy node c12 whose PF can have 16 VFs.
fn node(config: &str) -> Host {
    let host = Host::healthy();
    sriov(&host, PF, 16);
    host.file("etc/hostname", "c12\n");
    host.file("etc/ibprov/ibprov.toml", config);
    host
}

fn sriov(host: &Host, pci: &str, total: u16) {
    let dir = format!("sys/bus/pci/devices/{pci}");
    host.file(&format!("{dir}/sriov_totalvfs"), &format!("{total}\n"));
    host.link(&format!("{dir}/iommu_group"), "../../../../kernel/iommu_groups/17");
}

/// VF `index` of the PF, as MLNX_OFED shows it.
fn vf(host: &mut Host, index: u8, driver: Option<&str>, [node, port]: [&str; 2], policy: &str) {
    let pci = format!("0000:4b:00.{}", index + 1);
    host.function(&pci, "15b3:101c", "020700", driver);
    host.link(&format!("sys/bus/pci/devices/{pci}/physfn"), &format!("../{PF}"));
    host.link(&format!("sys/bus/pci/devices/{PF}/virtfn{index}"), &format!("../{pci}"));
    let ofed = format!("sys/bus/pci/devices/{PF}/sriov/{index}");
    for (name, value) in [("node", node), ("port", port), ("policy", policy)] {
        host.file(&format!("{ofed}/{name}"), &format!("{value}\n"));
    }
}

/// A second PF, with one port.
fn second(host: &mut Host, pci: &str, name: &str, guid: &str) {
    host.function(pci, "15b3:101b", "020700", Some("mlx5_core"));
    let port = PortSpec { guid, netdev: None, ..PortSpec::default() };
    host.rdma(pci, name, guid, &[port]);
    sriov(host, pci, 16);
}

const TEMPLATE: &str = "vf-guid-template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n";

fn good(vfs: u16) -> String {
    format!("[[pf]]\npci = \"{PF}\"\nvfs = {vfs}\n{TEMPLATE}")
}

#[track_caller]
fn plan(host: &Host, want: &Expect) {
    want.assert_eq(&host.show(&["plan"]));
}

#[test]
fn without_a_pf_nothing_is_planned() {
    plan(
        &Host::healthy(),
        &expect![[r#"
        no [[pf]] is configured: nothing is planned
        exit 0
    "#]],
    );
}

#[test]
fn a_fresh_node_would_get_its_vfs() {
    plan(
        &node(&good(3)),
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              3 VFs wanted, 0 there, 3 to create, GUIDs not pinned
              + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (template)  policy follow  driver default
              + VF 1  node GUID 0200:000c:0000:0001  port GUID 0200:000c:0001:0001 (template)  policy follow  driver default
              + VF 2  node GUID 0200:000c:0000:0002  port GUID 0200:000c:0001:0002 (template)  policy follow  driver default
            exit 1
        "#]],
    );
}

#[test]
fn every_difference_is_shown_and_what_is_right_is_counted() {
    let config =
        format!("{}[[pf.vf]]\nindex = \"3-4\"\ndriver = \"vfio-pci\"\npolicy = \"up\"\n", good(5));
    let mut host = node(&config);
    let guids =
        |n: u8| [format!("02:00:00:0c:00:00:00:{n:02x}"), format!("02:00:00:0c:00:01:00:{n:02x}")];
    for (n, driver, policy) in [
        (0, Some("mlx5_core"), "Follow"),
        (1, Some("mlx5_core"), "Follow"),
        (2, None, "Down"),
        (3, Some("vfio-pci"), "Up"),
        (4, Some("mlx5_core"), "Up"),
    ] {
        let [node, port] = guids(n);
        let node = if n == 2 { "00:00:00:00:00:00:00:00".to_owned() } else { node };
        vf(&mut host, n, driver, [&node, &port], policy);
    }
    // VF 1 was bound before it got its port GUID.
    let port = PortSpec { guid: "0000:0000:0000:0000", netdev: Some("ib1"), ..PortSpec::default() };
    host.rdma("0000:4b:00.2", "mlx5_2", "0200:000c:0000:0001", &[port]);
    host.link("sys/bus/pci/devices/0000:4b:00.4/iommu_group", "../../../../kernel/iommu_groups/18");
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              5 VFs wanted, 5 there, 3 to change, 2 as wanted, GUIDs not pinned
              ~ VF 1   driver mlx5_core -> bound again (its port GUID is 0000:0000:0000:0000 instead of 0200:000c:0001:0001)
              ~ VF 2   node GUID 0000:0000:0000:0000 -> 0200:000c:0000:0002 (template)
                       policy down -> follow
                       driver none -> mlx5_core
              ~ VF 4   driver mlx5_core -> vfio-pci
            exit 1
        "#]],
    );
    expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          5 VFs wanted, 5 there, 3 to change, 2 as wanted, GUIDs not pinned
          = VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (template)  policy follow  driver default
          ~ VF 1   driver mlx5_core -> bound again (its port GUID is 0000:0000:0000:0000 instead of 0200:000c:0001:0001)
          ~ VF 2   node GUID 0000:0000:0000:0000 -> 0200:000c:0000:0002 (template)
                   policy down -> follow
                   driver none -> mlx5_core
          = VF 3  node GUID 0200:000c:0000:0003  port GUID 0200:000c:0001:0003 (template)  policy up  driver vfio-pci
          ~ VF 4   driver mlx5_core -> vfio-pci
        exit 1
    "#]].assert_eq(&host.show(&["plan", "--all"]));
    // Fewer VFs: all are made anew.
    host.file("etc/ibprov/ibprov.toml", &good(2));
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              2 VFs wanted, 5 there, 2 to change, 3 to remove, GUIDs not pinned
              ~ VF 0   VF there -> made anew (the number of VFs changes only by way of none)
              ~ VF 1   VF there -> made anew (the number of VFs changes only by way of none)
              - VF 2
              - VF 3
              - VF 4
            exit 1
        "#]],
    );
    host.file("etc/ibprov/ibprov.toml", &good(0));
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              0 VFs wanted, 5 there, 5 to remove
              - VF 0
              - VF 1
              - VF 2
              - VF 3
              - VF 4
            exit 1
        "#]],
    );
}

#[test]
fn a_host_that_is_right_exits_0() {
    let mut host = node(&good(1));
    vf(
        &mut host,
        0,
        Some("mlx5_core"),
        ["02:00:00:0c:00:00:00:00", "02:00:00:0c:00:01:00:00"],
        "Follow",
    );
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          1 VF wanted, 1 there, 1 as wanted, GUIDs not pinned
        exit 0
    "#]],
    );
}

#[test]
fn json_has_everything() {
    let mut host = node(&good(2));
    vf(
        &mut host,
        0,
        Some("mlx5_core"),
        ["02:00:00:0c:00:00:00:00", "02:00:00:0c:00:01:00:00"],
        "Follow",
    );
    expect![[r#"
        {
          "schema": 1,
          "host": "c12",
          "pfs": [
            {
              "named": "PF 0000:4b:00.0",
              "origin": "/etc/ibprov/ibprov.toml:1",
              "pci": "0000:4b:00.0",
              "rdma": "mlx5_0",
              "node_guid": "b859:9f03:0012:a480",
              "port_guids": [
                "b859:9f03:0012:a480"
              ],
              "present": 1,
              "wanted": 2,
              "pinned": 0,
              "vfs": [
                {
                  "index": 0,
                  "action": "change",
                  "changes": [
                    {
                      "what": "VF",
                      "from": "there",
                      "to": "made anew",
                      "why": "the number of VFs changes only by way of none"
                    }
                  ],
                  "node_guid": "0200:000c:0000:0000",
                  "port_guid": "0200:000c:0001:0000",
                  "policy": "follow",
                  "driver": "default",
                  "guids_from": "template"
                },
                {
                  "index": 1,
                  "action": "create",
                  "changes": [],
                  "node_guid": "0200:000c:0000:0001",
                  "port_guid": "0200:000c:0001:0001",
                  "policy": "follow",
                  "driver": "default",
                  "guids_from": "template"
                }
              ],
              "errors": [],
              "problem": null,
              "deferred": [],
              "warnings": []
            }
          ],
          "problems": [],
          "would_change": true,
          "drift": false,
          "errors": false
        }
        exit 1
    "#]]
    .assert_eq(&host.show(&["plan", "--format", "json"]));
}

/// The plan of a PF with these lines below its `vfs`.
#[track_caller]
fn wrong(lines: &str, want: &Expect) {
    let host = node(&format!("[[pf]]\npci = \"{PF}\"\nvfs = 2\n{lines}\n"));
    plan(&host, want);
}

#[test]
fn guids_that_are_none() {
    wrong(
        "vf-guids = [\"0000:0000:0000:0000\", \"ffff:ffff:ffff:ffff\"]",
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 0: its node GUID is all zero, which is no GUID: with it the port stays down, or rdma_cm fails
          error: VF 0: its port GUID is all zero, which is no GUID: with it the port stays down, or rdma_cm fails
          error: VF 1: its node GUID is all ones, which is no GUID
          error: VF 1: its port GUID is all ones, which is no GUID
        exit 2
    "#]],
    );
}

#[test]
fn a_guid_that_is_missing() {
    wrong(
        "vf-node-guids = [\"0200:0000:0000:0001\", \"0200:0000:0000:0002\"]\nvf-port-guids = [\"0200:0000:0000:0011\"]",
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              would be left alone:
              error: VF 1 has no port GUID: there are to be 2 VFs, and the list of port GUIDs ends before it
            exit 2
        "#]],
    );
    wrong(
        "vf-guid-range = \"0200:0000:0000:0001 - 0200:0000:0000:0001\"",
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 1 has no node GUID: there are to be 2 VFs, and the range of node GUIDs ends before it
          error: VF 1 has no port GUID: there are to be 2 VFs, and the range of port GUIDs ends before it
        exit 2
    "#]],
    );
}

#[test]
fn guids_that_are_given_twice() {
    wrong(
        "vf-guids = [\"0200:0000:0000:0001\", \"0200:0000:0000:0001\"]",
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 1: its node GUID 0200:0000:0000:0001 is the node GUID of VF 0 too
        exit 2
    "#]],
    );
    wrong(
        "vf-node-guid-range = \"0200:0000:0000:0001 - 0200:0000:0000:0010\"\nvf-port-guid-range = \"0200:0000:0000:0002 - 0200:0000:0000:0010\"",
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              would be left alone:
              error: VF 1: its node GUID 0200:0000:0000:0002 is the port GUID of VF 0 too
            exit 2
        "#]],
    );
    // On two PFs.
    let other = "[[pf]]\nrdma = \"mlx5_1\"\nvfs = 1\nindex = 0\n";
    let mut host = node(&format!("{}{other}{TEMPLATE}", good(1)));
    second(&mut host, "0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a4a0");
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 0: its node GUID 0200:000c:0000:0000 is the node GUID of VF 0 of 0000:5e:00.0 too
          error: VF 0: its port GUID 0200:000c:0001:0000 is the port GUID of VF 0 of 0000:5e:00.0 too

        PF 0000:5e:00.0 mlx5_1 (/etc/ibprov/ibprov.toml:5)
          would be left alone:
          error: VF 0: its node GUID 0200:000c:0000:0000 is the node GUID of VF 0 of 0000:4b:00.0 too
          error: VF 0: its port GUID 0200:000c:0001:0000 is the port GUID of VF 0 of 0000:4b:00.0 too
        exit 2
    "#]],
    );
}

#[test]
fn a_guid_of_the_hardware() {
    wrong(
        "vf-guid-offset = 0",
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 0: its node GUID b859:9f03:0012:a480 is already the node GUID of 0000:4b:00.0 on this host
          error: VF 0: its node GUID b859:9f03:0012:a480 is already the port GUID of 0000:4b:00.0 on this host
          warning: VF 0 (and 1 VF more): the GUID b859:9f03:0012:a480 is not locally administered (0x02 of its first byte is not set): a vendor may give it to a card
        exit 2
    "#]],
    );
    let mut host = node(&format!("[[pf]]\npci = \"{PF}\"\nvfs = 32\nvf-guid-offset = 1\n"));
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "64\n");
    second(&mut host, "0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a4a0");
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 31: its node GUID b859:9f03:0012:a4a0 is already the node GUID of 0000:5e:00.0 on this host
          error: VF 31: its node GUID b859:9f03:0012:a4a0 is already the port GUID of 0000:5e:00.0 on this host
          warning: VF 0 (and 31 VFs more): the GUID b859:9f03:0012:a481 is not locally administered (0x02 of its first byte is not set): a vendor may give it to a card
        exit 2
    "#]],
    );
}

#[test]
fn guids_with_one_link_local_address() {
    wrong(
        "vf-guids = [\"0200:0000:0000:0001\", \"0000:0000:0000:0001\"]",
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 1: its port GUID 0000:0000:0000:0001 differs from that of VF 0 only in bit 0x02 of the first byte, so both get the same IPv6 link-local address
          warning: VF 1: the GUID 0000:0000:0000:0001 is not locally administered (0x02 of its first byte is not set): a vendor may give it to a card
        exit 2
    "#]],
    );
    // The PF's own is b859:...: without bit 0x02 of its first byte.
    wrong(
        "vf-guids = [\"ba59:9f03:0012:a480\", \"0200:0000:0000:0001\"]",
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 0: its port GUID ba59:9f03:0012:a480 differs from that of 0000:4b:00.0 only in bit 0x02 of the first byte, so both get the same IPv6 link-local address
        exit 2
    "#]],
    );
}

#[test]
fn group_bit_and_vendors_space_are_warned_of() {
    wrong(
        "vf-guid-template = \"11:11:11:11:11:11:{host:8:decimal}:{vf:4:decimal}{kind:4:node=1,port=0}\"",
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              2 VFs wanted, 0 there, 2 to create, GUIDs not pinned
              warning: VF 0 (and 1 VF more): the GUID 1111:1111:1111:1201 has the group bit (0x01 of its first byte) set: no device may have such an EUI-64; the fabric was seen to bear it
              warning: VF 0 (and 1 VF more): the GUID 1111:1111:1111:1201 is not locally administered (0x02 of its first byte is not set): a vendor may give it to a card
              + VF 0  node GUID 1111:1111:1111:1201  port GUID 1111:1111:1111:1200 (template)  policy follow  driver default
              + VF 1  node GUID 1111:1111:1111:1211  port GUID 1111:1111:1111:1210 (template)  policy follow  driver default
            exit 1
        "#]],
    );
}

#[test]
fn numbers_that_do_not_fit() {
    let script = "vf-guid-template = \"11:11:11:11:11:11:{host:8:decimal}:{vf:4:decimal}{kind:4:node=1,port=0}\"";
    let host = node(&format!("[[pf]]\npci = \"{PF}\"\nvfs = 12\n{script}\n"));
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 10 (and 1 VF more): VF index 10 does not fit in {vf:4:decimal}: the largest is 9: make the field of vf-guid-template wider
          warning: VF 0 (and 9 VFs more): the GUID 1111:1111:1111:1201 has the group bit (0x01 of its first byte) set: no device may have such an EUI-64; the fabric was seen to bear it
          warning: VF 0 (and 9 VFs more): the GUID 1111:1111:1111:1201 is not locally administered (0x02 of its first byte is not set): a vendor may give it to a card
        exit 2
    "#]],
    );
    host.file("etc/hostname", "c112.cluster\n");
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 0 (and 11 VFs more): host number 112 does not fit in {host:8:decimal}: the largest is 99: make the field of vf-guid-template wider
        exit 2
    "#]],
    );
}

#[test]
fn a_host_without_a_number() {
    let host = node(&good(2));
    host.file("etc/hostname", "# comment\nlogin\n");
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: the host has no number for {host:BITS}: the host name "login" has no digits: set host.number or host.number-file
        exit 2
    "#]],
    );
    host.file("etc/hostname", "rack2-node14\u{1b}[2J\n");
    host.file("etc/ibprov/ibprov.d/n.toml", "host.number-rule = \"only-digits\"\n");
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: the host has no number for {host:BITS}: the host name "rack2-node14�[2J" has more than one number, and host.number-rule is "only-digits": set host.number or host.number-file
        exit 2
    "#]],
    );
    host.file("etc/ibprov/ibprov.d/n.toml", "host.number-file = \"/etc/number\"\n");
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: the host has no number for {host:BITS}: /etc/number: ENOENT: No such file or directory: set host.number or host.number-file
        exit 2
    "#]],
    );
    host.file("etc/number", "twelve\n");
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: the host has no number for {host:BITS}: /etc/number: "twelve" is not a decimal number: set host.number or host.number-file
        exit 2
    "#]],
    );
    // The kernel's name where the file says nothing.
    host.file("etc/hostname", "\n");
    host.remove("etc/ibprov/ibprov.d/n.toml");
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: the host has no number for {host:BITS}: the host has no name: set host.number or host.number-file
        exit 2
    "#]],
    );
    host.file("proc/sys/kernel/hostname", "c7\n");
    expect![[r#"
        # For a partitions.conf with a rule for ALL in Default: these lines alone would
        # take away opensm's own rule, Default=0x7fff : ALL=limited, SELF=full ;
        Default=0x7fff : 0x0200000700010000=full ; # c7 0000:4b:00.0 VF 0
        Default=0x7fff : 0x0200000700010001=full ; # c7 0000:4b:00.0 VF 1
        exit 0
    "#]]
    .assert_eq(&host.show(&["plan", "--partitions"]));
}

#[test]
fn more_vfs_than_the_firmware_allows() {
    plan(
        &node(&good(17)),
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: it shall have 17 VFs, and its sriov_totalvfs is 16: the firmware allows no more: `mlxconfig -d 0000:4b:00.0 set SRIOV_EN=1 NUM_OF_VFS=17`, then reset the firmware
        exit 2
    "#]],
    );
    let host = node(&good(4));
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "0\n");
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: it shall have 4 VFs, and its sriov_totalvfs is 0: SR-IOV is off in its firmware: `mlxconfig -d 0000:4b:00.0 set SRIOV_EN=1 NUM_OF_VFS=4`, then reset the firmware
        exit 2
    "#]],
    );
    host.remove(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"));
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: 0000:4b:00.0 has no SR-IOV capability (no sriov_totalvfs in sysfs): SR-IOV is off in its firmware (`mlxconfig -d 0000:4b:00.0 set SRIOV_EN=1 NUM_OF_VFS=N`, then reset the firmware), or the card has none
        exit 2
    "#]],
    );
}

#[test]
fn a_pf_that_is_not_there() {
    let host = node(&format!("[[pf]]\npci = \"0000:5e:00.0\"\nvfs = 1\n{TEMPLATE}"));
    plan(
        &host,
        &expect![[r#"
        PF 0000:5e:00.0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: it is not there: it may come later; what is there: 0000:4b:00.0
        exit 1
    "#]],
    );
    host.function("0000:af:00.0", "15b3:101b", "020700", None);
    host.file(
        "etc/ibprov/ibprov.toml",
        &format!("[[pf]]\nport-guid = \"b859:9f03:0012:ffff\"\nvfs = 1\n{TEMPLATE}"),
    );
    plan(
        &host,
        &expect![[r#"
        PF with port GUID b859:9f03:0012:ffff (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: it is not there, or has not registered its RDMA device: it may come later; what is there: 0000:4b:00.0, 0000:af:00.0
        exit 1
    "#]],
    );
}

#[test]
fn a_pf_in_ethernet_mode() {
    let mut host = node(&format!("[[pf]]\npci = \"0000:5e:00.0\"\nvfs = 1\n{TEMPLATE}"));
    host.function("0000:5e:00.0", "15b3:101b", "020000", Some("mlx5_core"));
    sriov(&host, "0000:5e:00.0", 16);
    plan(
        &host,
        &expect![[r#"
        PF 0000:5e:00.0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: its ports are in Ethernet mode, where VFs have MAC addresses and no GUIDs to plan: set InfiniBand with `mlxconfig -d 0000:5e:00.0 set LINK_TYPE_P1=1` and reset the firmware, or take the PF out of the configuration
        exit 2
    "#]],
    );
    let port = PortSpec { link_layer: "Ethernet", netdev: None, ..PortSpec::default() };
    host.file("sys/bus/pci/devices/0000:5e:00.0/class", "0x020700\n");
    host.rdma("0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a4a0", &[port]);
    plan(
        &host,
        &expect![[r#"
        PF 0000:5e:00.0 mlx5_1 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: its ports are in Ethernet mode, where VFs have MAC addresses and no GUIDs to plan: set InfiniBand with `mlxconfig -d 0000:5e:00.0 set LINK_TYPE_P1=1` and reset the firmware, or take the PF out of the configuration
        exit 2
    "#]],
    );
}

#[test]
fn a_pf_that_is_a_vf() {
    let mut host = node(&format!("[[pf]]\npci = \"0000:4b:00.1\"\nvfs = 1\n{TEMPLATE}"));
    vf(&mut host, 0, None, ["00:00:00:00:00:00:00:00", "00:00:00:00:00:00:00:00"], "Down");
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.1 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: 0000:4b:00.1 is itself a VF, of 0000:4b:00.0: name the PF
        exit 2
    "#]],
    );
}

#[test]
fn a_pf_that_is_no_hca() {
    let host = node(&format!("[[pf]]\npci = \"0000:00:03.0\"\nvfs = 1\n{TEMPLATE}"));
    host.function("0000:00:03.0", "1af4:1041", "020000", Some("virtio-pci"));
    plan(
        &host,
        &expect![[r#"
        PF 0000:00:03.0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: 0000:00:03.0 is no InfiniBand adapter: neither its PCI class nor its driver has an InfiniBand side
        exit 2
    "#]],
    );
}

#[test]
fn vfio_without_an_iommu() {
    let host = node(&format!("{}[[pf.vf]]\nindex = 1\ndriver = \"vfio-pci\"\n", good(2)));
    host.remove(&format!("sys/bus/pci/devices/{PF}/iommu_group"));
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: VF 1 is meant for vfio-pci, and the IOMMU is off (0000:4b:00.0 is in no iommu_group): boot with intel_iommu=on iommu=pt (AMD: iommu=pt), and switch on VT-d or AMD-Vi in the firmware setup
        exit 2
    "#]],
    );
}

#[test]
fn two_names_of_one_pf_and_one_name_of_two() {
    let host = node(&format!("{}[[pf]]\nrdma = \"mlx5_0\"\nvfs = 0\n", good(1)));
    plan(
        &host,
        &expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: it is 0000:4b:00.0, which /etc/ibprov/ibprov.toml:5 names too: keep one of the two

        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:5)
          would be left alone:
          error: it is 0000:4b:00.0, which /etc/ibprov/ibprov.toml:1 names too: keep one of the two
        exit 2
    "#]],
    );
    let mut host =
        node(&format!("[[pf]]\nnode-guid = \"b859:9f03:0012:a480\"\nvfs = 1\n{TEMPLATE}"));
    second(&mut host, "0000:4b:00.1", "mlx5_1", "b859:9f03:0012:a480");
    plan(
        &host,
        &expect![[r#"
        PF with node GUID b859:9f03:0012:a480 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: 0000:4b:00.0, 0000:4b:00.1 are all called that: name it by its PCI address
        exit 2
    "#]],
    );
}

#[test]
fn an_offset_needs_the_pf_s_guid() {
    let host = node("[[pf]]\npci = \"0000:5e:00.0\"\nvfs = 2\nvf-guid-offset = 16\n");
    host.function("0000:5e:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    sriov(&host, "0000:5e:00.0", 16);
    plan(
        &host,
        &expect![[r#"
        PF 0000:5e:00.0 (/etc/ibprov/ibprov.toml:1)
          would be left alone:
          error: its VFs' GUIDs are offsets to its port GUID, and 0000:5e:00.0 shows none (yet): it comes with the RDMA device
        exit 1
    "#]],
    );
}

#[test]
fn one_bad_pf_does_not_stop_another() {
    let bad = format!("[[pf]]\npci = \"0000:5e:00.0\"\nvfs = 99\n{TEMPLATE}");
    let mut host = node(&format!("{}{bad}", good(1)));
    second(&mut host, "0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a4a0");
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              1 VF wanted, 0 there, 1 to create, GUIDs not pinned
              + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (template)  policy follow  driver default

            PF 0000:5e:00.0 mlx5_1 (/etc/ibprov/ibprov.toml:5)
              would be left alone:
              error: it shall have 99 VFs, and its sriov_totalvfs is 16: the firmware allows no more: `mlxconfig -d 0000:5e:00.0 set SRIOV_EN=1 NUM_OF_VFS=99`, then reset the firmware
            exit 2
        "#]],
    );
}

#[test]
fn pins_hold_and_drift_wants_a_decision() {
    let host = node(&good(2));
    let pins = host.show(&["plan", "--pin"]);
    expect![[r##"
        # The GUIDs that the VFs of this host were given, written by `ibprov plan --pin`.
        # They hold whatever ibprov.toml says: see ibprov(8), "Pins".
        # config: how ibprov.toml names the PF; pci, node-guid, port-guids: which card
        # it was then; vfs: node GUID and port GUID of each VF, from VF 0 on.
        schema = 1
        host = "c12"

        [[pf]]
        config = { pci = "0000:4b:00.0" }
        pci = "0000:4b:00.0"
        node-guid = "b859:9f03:0012:a480"
        port-guids = ["b859:9f03:0012:a480"]
        vfs = [
            ["0200:000c:0000:0000", "0200:000c:0001:0000"], # VF 0
            ["0200:000c:0000:0001", "0200:000c:0001:0001"], # VF 1
        ]
        exit 0
    "##]]
    .assert_eq(&pins);
    let text = pins.strip_suffix("exit 0\n").expect("good");
    host.file("etc/ibprov/guid-pins.toml", text);
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              2 VFs wanted, 0 there, 2 to create, GUIDs pinned
              + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (pin)  policy follow  driver default
              + VF 1  node GUID 0200:000c:0000:0001  port GUID 0200:000c:0001:0001 (pin)  policy follow  driver default
            exit 1
        "#]],
    );
    // The host is called otherwise: nothing changes in the fabric.
    host.file("etc/hostname", "c13\n");
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              2 VFs wanted, 0 there, 2 to create, GUIDs pinned
              warning: drift: VF 0 (and 1 VF more): the configuration now gives node GUID 0200:000d:0000:0000, and 0200:000c:0000:0000 is pinned and holds
              + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (pin)  policy follow  driver default
              + VF 1  node GUID 0200:000c:0000:0001  port GUID 0200:000c:0001:0001 (pin)  policy follow  driver default

            drift: decide; the pins (/etc/ibprov/guid-pins.toml) hold until then
              keep the pinned GUIDs: set the configuration, or the host's number, so that it gives them
              keep them for another card: ibprov plan --pin
              give the VFs new GUIDs: ibprov plan --pin --replace
            exit 1
        "#]],
    );
    // Pinning keeps what is pinned; replacing takes what the template gives.
    let kept = host.show(&["plan", "--pin"]);
    assert!(kept.contains("0200:000c:0001:0001") && kept.ends_with("exit 1\n"), "{kept}");
    let replaced = host.show(&["plan", "--pin", "--replace"]);
    assert!(replaced.contains("0200:000d:0001:0001") && replaced.ends_with("exit 0\n"));
    assert!(!replaced.contains("000c"), "{replaced}");
    // The template gives nothing for such a name: the pins hold all the same.
    host.file("etc/hostname", "login\n");
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              2 VFs wanted, 0 there, 2 to create, GUIDs pinned
              warning: drift: the configuration gives no GUIDs any more, and the pinned ones hold: the host has no number for {host:BITS}: the host name "login" has no digits: set host.number or host.number-file
              + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (pin)  policy follow  driver default
              + VF 1  node GUID 0200:000c:0000:0001  port GUID 0200:000c:0001:0001 (pin)  policy follow  driver default

            drift: decide; the pins (/etc/ibprov/guid-pins.toml) hold until then
              keep the pinned GUIDs: set the configuration, or the host's number, so that it gives them
              keep them for another card: ibprov plan --pin
              give the VFs new GUIDs: ibprov plan --pin --replace
            exit 1
        "#]],
    );
    assert!(
        host.show(&["plan", "--pin", "--replace"])
            .ends_with("ibprov: nothing is pinned before the errors above are gone\nexit 2\n")
    );
    // Another card in the slot.
    host.file("etc/hostname", "c12\n");
    host.file(
        &format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/ports/1/gids/0"),
        "fe80:0000:0000:0000:b859:9f03:0012:ffff\n",
    );
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              2 VFs wanted, 0 there, 2 to create, GUIDs pinned
              warning: drift: it is another card than when it was pinned (port GUID b859:9f03:0012:a480 then, b859:9f03:0012:ffff now); the pinned GUIDs hold for it
              + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (pin)  policy follow  driver default
              + VF 1  node GUID 0200:000c:0000:0001  port GUID 0200:000c:0001:0001 (pin)  policy follow  driver default

            drift: decide; the pins (/etc/ibprov/guid-pins.toml) hold until then
              keep the pinned GUIDs: set the configuration, or the host's number, so that it gives them
              keep them for another card: ibprov plan --pin
              give the VFs new GUIDs: ibprov plan --pin --replace
            exit 1
        "#]],
    );
}

#[test]
fn pins_that_cannot_be_read_are_no_absence() {
    let host = node(&good(1));
    for (content, want) in [
        (
            &b"schema = 1\n[[pf\n"[..],
            expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              would be left alone:
              error: the pins cannot be read: /etc/ibprov/guid-pins.toml: line 2: unclosed array table, expected `]]`: correct the file, or remove it to plan anew
            exit 2
        "#]],
        ),
        (
            b"\xff",
            expect![[r#"
                PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
                  would be left alone:
                  error: the pins cannot be read: /etc/ibprov/guid-pins.toml: content is not UTF-8 text: correct the file, or remove it to plan anew
                exit 2
            "#]],
        ),
        (
            b"schema = 1\n[[pf]]\nconfig = { pci = \"\\u001b[2J\" }\npci = \"0000:4b:00.0\"\n",
            expect![[r#"
                PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
                  would be left alone:
                  error: the pins cannot be read: /etc/ibprov/guid-pins.toml: pf 1: "\u{1b}[2J" is not a PCI address: want domain:bus:device.function in hex, as `lspci -D` prints it, e.g. 0000:4b:00.0: correct the file, or remove it to plan anew
                exit 2
            "#]],
        ),
    ] {
        host.bytes("etc/ibprov/guid-pins.toml", content);
        plan(&host, &want);
        assert!(host.show(&["plan", "--pin"]).ends_with("exit 2\n"));
    }
}

#[test]
fn partitions_are_for_the_subnet_manager() {
    let host = node(&good(2));
    expect![[r#"
        # For a partitions.conf with a rule for ALL in Default: these lines alone would
        # take away opensm's own rule, Default=0x7fff : ALL=limited, SELF=full ;
        Default=0x7fff : 0x0200000c00010000=full ; # c12 0000:4b:00.0 VF 0
        Default=0x7fff : 0x0200000c00010001=full ; # c12 0000:4b:00.0 VF 1
        exit 0
    "#]]
    .assert_eq(&host.show(&["plan", "--partitions"]));
    expect![[r#"
        vfs=0x0005 : 0x0200000c00010000=limited ; # c12 0000:4b:00.0 VF 0
        vfs=0x0005 : 0x0200000c00010001=limited ; # c12 0000:4b:00.0 VF 1
        exit 0
    "#]]
    .assert_eq(&host.show(&[
        "plan",
        "--partitions",
        "--pkey",
        "0x8005",
        "--membership",
        "limited",
    ]));
    let usage = host.show(&["plan", "--partitions", "--pkey", "0x8000"]);
    assert!(usage.contains("is not a P_Key") && usage.ends_with("exit 2\n"));
    // Only lines of a whole plan are printed.
    host.file("etc/ibprov/ibprov.toml", &good(17));
    expect![[r#"
        PF 0000:4b:00.0 (/etc/ibprov/ibprov.toml:1): error: it shall have 17 VFs, and its sriov_totalvfs is 16: the firmware allows no more: `mlxconfig -d 0000:4b:00.0 set SRIOV_EN=1 NUM_OF_VFS=17`, then reset the firmware
        exit 2
    "#]].assert_eq(&host.show(&["plan", "--partitions"]));
}

#[test]
fn hostile_names_do_not_reach_the_terminal_or_the_partitions() {
    let host = node("[[pf]]\nrdma = \"mlx5_0\"\nvfs = 1\nvf-guids = [\"0200:0000:0000:0001\"]\n");
    host.file("etc/hostname", "c12\u{1b}[2J;0x1=full\n");
    for arguments in [&["plan"][..], &["plan", "--partitions"], &["plan", "--pin"]] {
        let shown = host.show(arguments);
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
    expect![[r#"
        # For a partitions.conf with a rule for ALL in Default: these lines alone would
        # take away opensm's own rule, Default=0x7fff : ALL=limited, SELF=full ;
        Default=0x7fff : 0x0200000000000001=full ; # c12[2J;0x1=full 0000:4b:00.0 VF 0
        exit 0
    "#]]
    .assert_eq(&host.show(&["plan", "--partitions"]));
}

/// A directory with the pins of hosts, by name.
fn fleet(hosts: &[(&str, &str)]) -> Host {
    let dir = Host::new();
    for (name, text) in hosts {
        dir.file(&format!("fleet/{name}"), text);
    }
    dir
}

fn judged(dir: &Host) -> String {
    let fleet = dir.path("fleet").display().to_string();
    dir.show(&["plan", "--fleet", &fleet])
}

#[test]
fn a_fleet_is_judged_from_pins_and_plans() {
    let host = node(&good(2));
    let pins = |name: &str| {
        host.file("etc/hostname", &format!("{name}\n"));
        let shown = host.show(&["plan", "--pin"]);
        shown.strip_suffix("exit 0\n").expect("good").to_owned()
    };
    let (c12, c13) =
        (pins("c12"), pins("c13").replace("b859:9f03:0012:a480", "b859:9f03:0012:b480"));
    host.file("etc/hostname", "c14\n");
    let json = host.show(&["plan", "--format", "json"]).replace("exit 1\n", "");
    let json = json.replace("b859:9f03:0012:a480", "b859:9f03:0012:c480");
    let good = fleet(&[
        ("c12.toml", &c12),
        ("c13/etc/ibprov/guid-pins.toml", &c13),
        ("c14.json", &json),
        ("README", "not a plan\n"),
        (".hidden.toml", "neither\n"),
    ]);
    expect![[r#"
        3 hosts, 6 VFs: no GUID is there twice
        exit 0
    "#]]
    .assert_eq(&judged(&good));
    // A node installed from a copy of another's disk.
    let copied = fleet(&[("c12.toml", &c12), ("c13.toml", &c12)]);
    expect![[r#"
        0200:000c:0000:0000 is there more than once
          c12: node of VF 0 of 0000:4b:00.0
          c13: node of VF 0 of 0000:4b:00.0
        0200:000c:0000:0001 is there more than once
          c12: node of VF 1 of 0000:4b:00.0
          c13: node of VF 1 of 0000:4b:00.0
        0200:000c:0001:0000 is there more than once
          c12: port of VF 0 of 0000:4b:00.0
          c13: port of VF 0 of 0000:4b:00.0
        0200:000c:0001:0001 is there more than once
          c12: port of VF 1 of 0000:4b:00.0
          c13: port of VF 1 of 0000:4b:00.0
        b859:9f03:0012:a480 is there more than once
          c12: node of the card 0000:4b:00.0
          c12: port of the card 0000:4b:00.0
          c13: node of the card 0000:4b:00.0
          c13: port of the card 0000:4b:00.0
        2 hosts, 4 VFs: 5 found
        exit 1
    "#]]
    .assert_eq(&judged(&copied));
}

#[test]
fn a_fleet_that_is_not_seen_whole_is_not_judged() {
    expect![[r#"
        0 hosts, 0 VFs: no plan is there: want NAME.toml (pins) or NAME.json (plan --format json) for each host
        exit 2
    "#]].assert_eq(&judged(&fleet(&[("README", "")])));
    let host = node(&good(17));
    let json = host.show(&["plan", "--format", "json"]).replace("exit 2\n", "");
    let dir = fleet(&[
        ("a.toml", "schema = 1\n[[pf]]\n"),
        ("b.json", "{}"),
        ("c.json", &json),
        ("d\u{1b}[2J.toml", "x"),
        ("e.toml/x", ""),
        ("g/etc/ibprov/ibprov.toml", ""),
        ("f.json", "{\"schema\": 2, \"pfs\": []}"),
    ]);
    expect![[r#"
        could not read /a.toml: line 2: missing field `config`
        could not read /b.json: missing field `schema` at line 1 column 2
        could not read /c.json: PF 0000:4b:00.0 has no plan: it has errors
        could not read /d�[2J.toml: line 1: key with no value, expected `=`
        could not read /e.toml: EISDIR: Is a directory
        could not read /f.json: schema 2: this ibprov knows schema 1 only
        could not read /g: neither guid-pins.toml nor etc/ibprov/guid-pins.toml is in it
        0 hosts, 0 VFs: no plan is there: want NAME.toml (pins) or NAME.json (plan --format json) for each host
        exit 2
    "#]].assert_eq(&judged(&dir));
    let none = Host::new();
    expect![[r#"
        ibprov: ROOT/fleet: ENOENT: No such file or directory
        exit 2
    "#]]
    .assert_eq(&judged(&none));
}

#[test]
fn what_cannot_be_done_now_is_said_and_what_is_in_use_is_left() {
    let mut host =
        node(&format!("[[pf]]\npci = \"0000:5e:00.0\"\nvfs = 1\n{TEMPLATE}\n{}", good(2)));
    // No netdev through which its VFs could be administered.
    second(&mut host, "0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a4a0");
    // VF 1 is to be bound again, and its netdev is not to be seen here.
    for n in 0..2 {
        let guids =
            [format!("02:00:00:0c:01:00:00:{n:02x}"), format!("02:00:00:0c:01:01:00:{n:02x}")];
        vf(&mut host, n, Some("mlx5_core"), [&guids[0], &guids[1]], "Follow");
    }
    let port = PortSpec { guid: "0000:0000:0000:0000", netdev: None, ..PortSpec::default() };
    host.rdma("0000:4b:00.2", "mlx5_2", "0200:000c:0100:0001", &[port]);
    plan(
        &host,
        &expect![[r#"
        PF 0000:5e:00.0 mlx5_1 (/etc/ibprov/ibprov.toml:1)
          1 VF wanted, 0 there, GUIDs not pinned
          nothing can be done: it has no IPoIB netdev, through which alone its VFs' GUIDs can be set (this host has no sriov/N files of MLNX_OFED): load ib_ipoib, see dmesg
          ! VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (template)  policy follow  driver default

        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:6)
          2 VFs wanted, 2 there, 1 deferred, 1 as wanted, GUIDs not pinned
          ! VF 1 is left alone: its port GUID is 0000:0000:0000:0000 instead of 0200:000c:0101:0001; it is in use: its netdev is not in this network namespace
        exit 1
    "#]],
    );
}
