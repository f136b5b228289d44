//! `ibprov plan`: what would change, what is wrong, pins, partitions.

mod errors;
mod fleet;
mod pins;

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

const TEMPLATE: &str = "guid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n";

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
            no [[pf]] is configured, so that there is nothing to plan
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
              3 VFs planned, 0 present, 3 to create, GUIDs not pinned
              VFs are bound one after the other, so that the kernel numbers them in their order
              + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (template)  link state follow  driver host
              + VF 1  node GUID 0200:000c:0000:0001  port GUID 0200:000c:0001:0001 (template)  link state follow  driver host
              + VF 2  node GUID 0200:000c:0000:0002  port GUID 0200:000c:0001:0002 (template)  link state follow  driver host

            Plan: 3 VFs to create
            exit 1
        "#]],
    );
}

#[test]
fn every_difference_is_shown_and_what_is_right_is_counted() {
    let config = format!(
        "{}[[pf.vf]]\nindex = \"3-4\"\ndriver = \"vfio-pci\"\nlink-state = \"up\"\n",
        good(5)
    );
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
              5 VFs planned, 5 present, 3 to change (1 of them bound again), 2 as planned, GUIDs not pinned
              VFs are bound one after the other, so that the kernel numbers them in their order
              ~ VF 1   driver mlx5_core -> rebound (the port GUID of the VF is 0000:0000:0000:0000 instead of 0200:000c:0001:0001)
              ~ VF 2   node GUID 0000:0000:0000:0000 -> 0200:000c:0000:0002 (template)
                       link state down -> follow
                       driver none -> mlx5_core
              ~ VF 4   driver mlx5_core -> vfio-pci

            Plan: 3 VFs to change (1 of them bound again), 2 as planned
            exit 1
        "#]],
    );
    expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          5 VFs planned, 5 present, 3 to change (1 of them bound again), 2 as planned, GUIDs not pinned
          VFs are bound one after the other, so that the kernel numbers them in their order
          = VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (template)  link state follow  driver host
          ~ VF 1   driver mlx5_core -> rebound (the port GUID of the VF is 0000:0000:0000:0000 instead of 0200:000c:0001:0001)
          ~ VF 2   node GUID 0000:0000:0000:0000 -> 0200:000c:0000:0002 (template)
                   link state down -> follow
                   driver none -> mlx5_core
          = VF 3  node GUID 0200:000c:0000:0003  port GUID 0200:000c:0001:0003 (template)  link state up  driver vfio-pci
          ~ VF 4   driver mlx5_core -> vfio-pci

        Plan: 3 VFs to change (1 of them bound again), 2 as planned
        exit 1
    "#]].assert_eq(&host.show(&["plan", "--all"]));
    // Fewer VFs: all are made anew.
    host.file("etc/ibprov/ibprov.toml", &good(2));
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              2 VFs planned, 5 present, 2 to remove and create again, 3 to remove, GUIDs not pinned
              VFs are bound one after the other, so that the kernel numbers them in their order
              warning: apply removes VFs 0-4, with their netdevs and RDMA devices
              -/+ VFs 0-1: removed and created again (sriov_numvfs can only be changed via 0)
              - VFs 2-4

            Plan: 2 VFs to remove and create again, 3 to remove
            exit 1
        "#]],
    );
    host.file("etc/ibprov/ibprov.toml", &good(0));
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              0 VFs planned, 5 present, 5 to remove
              warning: apply removes VFs 0-4, with their netdevs and RDMA devices
              - VFs 0-4

            Plan: 5 VFs to remove
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
              1 VF planned, 1 present, 1 as planned, GUIDs not pinned
              VFs are bound one after the other, so that the kernel numbers them in their order

            Plan: 1 VF as planned
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
          "report": "plan",
          "verdict": "would-change",
          "exit_code": 1,
          "findings": [
            {
              "code": "vf-not-as-planned",
              "severity": "error",
              "object": "0000:4b:00.0",
              "message": "VF 1 to be created, VF 0 to be removed and created again, with their netdevs and RDMA devices",
              "advice": [
                {
                  "purpose": "look",
                  "run": "ibprov plan"
                },
                {
                  "purpose": "now",
                  "run": "ibprov apply"
                }
              ]
            }
          ],
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
              "bind": {
                "order": "in-order",
                "because_of": "kernel-numbers",
                "message": "one after the other, so that the kernel numbers them in their order"
              },
              "vfs": [
                {
                  "index": 0,
                  "action": "change",
                  "changes": [
                    {
                      "what": "vf",
                      "from": null,
                      "to": null,
                      "reason": "sriov_numvfs can only be changed via 0"
                    }
                  ],
                  "reason": null,
                  "wanted": {
                    "node_guid": "0200:000c:0000:0000",
                    "port_guid": "0200:000c:0001:0000",
                    "port2_guid": null,
                    "link_state": "follow",
                    "driver": "host",
                    "owner": "plan",
                    "guids_from": "template",
                    "netdev_name": null,
                    "rdma_name": null
                  }
                },
                {
                  "index": 1,
                  "action": "create",
                  "changes": [],
                  "reason": null,
                  "wanted": {
                    "node_guid": "0200:000c:0000:0001",
                    "port_guid": "0200:000c:0001:0001",
                    "port2_guid": null,
                    "link_state": "follow",
                    "driver": "host",
                    "owner": "plan",
                    "guids_from": "template",
                    "netdev_name": null,
                    "rdma_name": null
                  }
                }
              ],
              "steps": [
                {
                  "step": "count",
                  "from": 1,
                  "to": 2
                },
                {
                  "step": "node-guid",
                  "vf": 0,
                  "from": null,
                  "to": "0200:000c:0000:0000"
                },
                {
                  "step": "port-guid",
                  "vf": 0,
                  "port": 1,
                  "from": null,
                  "to": "0200:000c:0001:0000"
                },
                {
                  "step": "link-state",
                  "vf": 0,
                  "from": null,
                  "to": "follow"
                },
                {
                  "step": "node-guid",
                  "vf": 1,
                  "from": null,
                  "to": "0200:000c:0000:0001"
                },
                {
                  "step": "port-guid",
                  "vf": 1,
                  "port": 1,
                  "from": null,
                  "to": "0200:000c:0001:0001"
                },
                {
                  "step": "link-state",
                  "vf": 1,
                  "from": null,
                  "to": "follow"
                },
                {
                  "step": "bind",
                  "vf": 0,
                  "driver": "mlx5_core",
                  "after": null,
                  "rdma": null
                },
                {
                  "step": "bind",
                  "vf": 1,
                  "driver": "mlx5_core",
                  "after": 0,
                  "rdma": null
                }
              ],
              "is_planned": true,
              "refused": [],
              "reason": null,
              "deferred": []
            }
          ],
          "rxe": [],
          "netns": null,
          "would_change": true,
          "drift": false,
          "errors": false
        }
        exit 1
    "#]]
    .assert_eq(&host.show(&["plan", "--format", "json"]));
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
              1 VF planned, 0 present, 1 not possible to change now, GUIDs not pinned
              VFs are bound one after the other, so that the kernel numbers them in their order
              no change is possible: the PF has no IPoIB netdev, which is needed to set GUIDs of VFs (this host has no sriov/N files of MLNX_OFED). To fix: `modprobe ib_ipoib`
              ! VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (template)  link state follow  driver host

            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:6)
              2 VFs planned, 2 present, 1 deferred, 1 as planned, GUIDs not pinned
              VFs are bound one after the other, so that the kernel numbers them in their order
              ! VF 1 is left alone: the port GUID of the VF is 0000:0000:0000:0000 instead of 0200:000c:0101:0001; it is in use: its netdev is not in this network namespace

            Plan: 1 VF deferred, 1 not possible to change now, 1 as planned
            exit 1
        "#]],
    );
}

#[test]
fn names_and_the_order_of_binding_are_shown_with_why() {
    let named = "vf-name = \"{netdev}v{vf}\"\nvf-rdma-name = \"{rdma}v{vf}\"\n";
    let host = node(&format!("{}{named}", good(1)));
    expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
          1 VF planned, 0 present, 1 to create, GUIDs not pinned
          VFs are bound at the same time, because vf-name and vf-rdma-name name each of them
          + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (template)  link state follow  driver host  netdev ib0v0  RDMA device mlx5_0v0

        Plan: 1 VF to create
        exit 1
    "#]]
    .assert_eq(&host.show(&["plan"]));
    let said = |lines: &str, of: &str| {
        let host = node(&format!("{}{lines}", good(2)));
        let json: serde_json::Value =
            serde_json::from_slice(&host.ibprov(&["plan", "--format", "json"]).stdout)
                .expect("JSON");
        json["pfs"][0]["bind"][of].as_str().unwrap_or_default().to_owned()
    };
    for (lines, order, why) in [
        ("", "in-order", "kernel-numbers"),
        (named, "parallel", "named"),
        ("vf-name = \"{netdev}v{vf}\"\n", "in-order", "kernel-numbers"),
        ("driver = \"vfio-pci\"\n", "parallel", "not-on-host"),
        ("bind = \"parallel\"\n", "parallel", "configured"),
    ] {
        assert_eq!(
            (said(lines, "order").as_str(), said(lines, "because_of").as_str()),
            (order, why)
        );
    }
}

#[test]
fn names_that_cannot_be_on_this_host_are_errors() {
    let pf = |lines: &str| {
        let text = node(&format!("{}{lines}\n", good(12))).show(&["plan"]);
        text.lines().find(|l| l.contains("error: ")).unwrap_or(&text).trim().to_owned()
    };
    assert_eq!(
        pf("vf-name = \"{rdma}-is-too-l{vf}\""),
        "error: VF 0: \"mlx5_0-is-too-l0\" is not a valid netdev name: expected at most 15 letters, digits, '_', '-' and '.', and neither a number nor lo, all, default or bonding_masters"
    );
    let host = node(&format!("{}vf-name = \"{{netdev}}v{{vf}}\"\n", good(2)));
    host.remove("run/udev/data/n2");
    let said = host.show(&["plan"]);
    assert!(said.contains("refers to a name of the PF, which is unknown"), "{said}");
    assert!(said.ends_with("exit 1\n"), "{said}");
}
