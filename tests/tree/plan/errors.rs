//! What is wrong with a plan, found before anything is touched.

use expect_test::{Expect, expect};

use super::{TEMPLATE, good, node, plan, second, sriov, vf};
use crate::host::{Host, PF, PortSpec};

/// How plan calls the PF of a healthy node.
const OURS: &str = "PF 0000:4b:00.0 mlx5_0";

/// The first of the configuration is the only PF, and nothing would be done at
/// it: `want` says why.
#[track_caller]
fn left_alone(host: &Host, pf: &str, exit: u8, want: &Expect) {
    let shown = host.show(&["plan"]);
    let head = format!("{pf} (/etc/ibprov/ibprov.toml:1)\n  would not be applied:\n");
    let findings =
        shown.strip_prefix(&head).and_then(|rest| rest.strip_suffix(&format!("exit {exit}\n")));
    let findings = findings.unwrap_or(&shown);
    // As a line of the tests is indented, not as plan does it.
    want.assert_eq(&findings.replace("\n  ", "\n").replacen("  ", "", 1));
}

/// A node whose PF shall have two VFs, with these lines below its `vfs`.
fn two(lines: &str) -> Host {
    node(&format!("[[pf]]\npci = \"{PF}\"\nvfs = 2\n{lines}\n"))
}

#[test]
fn guids_that_are_none() {
    left_alone(
        &two("guid.list = [\"0000:0000:0000:0000\", \"ffff:ffff:ffff:ffff\"]"),
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: VF 0: the node GUID is all zero, with which the port stays down or rdma_cm fails
            do: choose another GUID, for example one that begins with 02
            error: VF 0: the port GUID is all zero, with which the port stays down or rdma_cm fails
              do: choose another GUID, for example one that begins with 02
            error: VF 1: the node GUID is all ones, which is not a valid GUID
              do: choose another GUID, for example one that begins with 02
            error: VF 1: the port GUID is all ones, which is not a valid GUID
              do: choose another GUID, for example one that begins with 02

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
}

/// The configuration alone does not show it.
#[test]
fn guids_that_are_given_twice() {
    left_alone(
        &two(
            "guid.offset = 16\n[[pf.vf]]\nindex = 1\nnode-guid = \"b859:9f03:0012:a490\"\nport-guid = \"0200:0000:0000:0001\"",
        ),
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: VF 1: the node GUID b859:9f03:0012:a490 is also the node GUID of VF 0
            do: change one of the two, or the template that gives them
            note: VFs 0-1: GUIDs such as b859:9f03:0012:a490 are not locally administered (0x02 of the first byte is not set): a vendor may assign them to an adapter
              do: choose GUIDs whose first byte is 02

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    left_alone(
        &two(
            "guid.node.offset = 16\nguid.port.offset = 32\n[[pf.vf]]\nindex = 1\nnode-guid = \"b859:9f03:0012:a4a0\"",
        ),
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: VF 1: the node GUID b859:9f03:0012:a4a0 is also the port GUID of VF 0
            do: change one of the two, or the template that gives them
            note: VFs 0-1: GUIDs such as b859:9f03:0012:a490 are not locally administered (0x02 of the first byte is not set): a vendor may assign them to an adapter
              do: choose GUIDs whose first byte is 02

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    // On two PFs.
    let other = "[[pf]]\nrdma = \"mlx5_1\"\nguid.list = [\"0200:000c:0000:0000\"]\n";
    let mut host = node(&format!("{}{other}", good(1)));
    second(&mut host, "0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a4a0");
    plan(
        &host,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              would not be applied:
              error: VF 0: the node GUID 0200:000c:0000:0000 is also the node GUID of VF 0 of 0000:5e:00.0
                do: change one of the two, or the template that gives them

            PF 0000:5e:00.0 mlx5_1 (/etc/ibprov/ibprov.toml:5)
              would not be applied:
              error: VF 0: the node GUID 0200:000c:0000:0000 is also the node GUID of VF 0 of 0000:4b:00.0
                do: change one of the two, or the template that gives them

            Plan: 2 PFs would not be applied
            exit 3
        "#]],
    );
}

#[test]
fn a_guid_of_the_hardware() {
    left_alone(
        &two("guid.offset = 0"),
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: VF 0: the node GUID b859:9f03:0012:a480 is already the node GUID of 0000:4b:00.0 on this host
            do: change one of the two, or the template that gives them
            error: VF 0: the node GUID b859:9f03:0012:a480 is already the port GUID of 0000:4b:00.0 on this host
              do: change one of the two, or the template that gives them
            note: VFs 0-1: GUIDs such as b859:9f03:0012:a480 are not locally administered (0x02 of the first byte is not set): a vendor may assign them to an adapter
              do: choose GUIDs whose first byte is 02

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    let mut host = node(&format!("[[pf]]\npci = \"{PF}\"\nvfs = 32\nguid.offset = 1\n"));
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "64\n");
    second(&mut host, "0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a4a0");
    left_alone(
        &host,
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: VF 31: the node GUID b859:9f03:0012:a4a0 is already the node GUID of 0000:5e:00.0 on this host
            do: change one of the two, or the template that gives them
            error: VF 31: the node GUID b859:9f03:0012:a4a0 is already the port GUID of 0000:5e:00.0 on this host
              do: change one of the two, or the template that gives them
            note: VFs 0-31: GUIDs such as b859:9f03:0012:a481 are not locally administered (0x02 of the first byte is not set): a vendor may assign them to an adapter
              do: choose GUIDs whose first byte is 02

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
}

#[test]
fn guids_with_one_link_local_address() {
    left_alone(
        &two("guid.list = [\"0200:0000:0000:0001\", \"0000:0000:0000:0001\"]"),
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: VF 1: the port GUID 0000:0000:0000:0001 differs from that of VF 0 only in bit 0x02 of the first byte, so both get the same IPv6 link-local address
            do: change one of the two port GUIDs in another bit
            note: VF 1: GUIDs such as 0000:0000:0000:0001 are not locally administered (0x02 of the first byte is not set): a vendor may assign them to an adapter
              do: choose GUIDs whose first byte is 02

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    // The PF's own is b859:...: without bit 0x02 of its first byte.
    left_alone(
        &two("guid.list = [\"ba59:9f03:0012:a480\", \"0200:0000:0000:0001\"]"),
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: VF 0: the port GUID ba59:9f03:0012:a480 differs from that of 0000:4b:00.0 only in bit 0x02 of the first byte, so both get the same IPv6 link-local address
            do: change one of the two port GUIDs in another bit

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
}

#[test]
fn group_bit_and_vendors_space_are_warned_of() {
    plan(
        &two(
            "guid.template = \"11:11:11:11:11:11:{host:8:decimal}:{vf:4:decimal}{kind:4:node=1,port=0}\"",
        ),
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
              2 VFs planned, 0 present, 2 to create, GUIDs not pinned
              VFs are bound one after the other, so that the kernel numbers them in their order
              note: VFs 0-1: GUIDs such as 1111:1111:1111:1201 have the group bit set (0x01 of the first byte), which EUI-64 does not allow for a device. Fabrics were observed to accept them
                do: choose GUIDs whose first byte is 02
              note: VFs 0-1: GUIDs such as 1111:1111:1111:1201 are not locally administered (0x02 of the first byte is not set): a vendor may assign them to an adapter
                do: choose GUIDs whose first byte is 02
              + VF 0  node GUID 1111:1111:1111:1201  port GUID 1111:1111:1111:1200 (template)  link state follow  driver host
              + VF 1  node GUID 1111:1111:1111:1211  port GUID 1111:1111:1111:1210 (template)  link state follow  driver host

            Plan: 2 VFs to create
            exit 1
        "#]],
    );
}

#[test]
fn numbers_that_do_not_fit() {
    let script = "guid.template = \"11:11:11:11:11:11:{host:8:decimal}:{vf:4:decimal}{kind:4:node=1,port=0}\"";
    let host = node(&format!("[[pf]]\npci = \"{PF}\"\nvfs = 10\n{script}\n"));
    host.file("etc/hostname", "c112.cluster\n");
    left_alone(
        &host,
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: host number 112 does not fit in {host:8:decimal}: the largest is 99
            do: make {host:8:decimal} of guid.template wider

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
}

#[test]
fn a_host_without_a_number() {
    let host = node(&good(2));
    host.file("etc/hostname", "# comment\nlogin\n");
    left_alone(
        &host,
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: the host has no number for {host:BITS} of guid.template: the host name "login" has no digits
            do: set host.number or host.number-file

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    host.file("etc/hostname", "rack2-node14\u{1b}[2J\n");
    left_alone(
        &host,
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: the host has no number for {host:BITS} of guid.template: the host name "rack2-node14\u{1b}[2J" has more than one number, and host.number-rule is "only-digits" ("first-digits" or "last-digits" takes one of them)
            do: set host.number or host.number-file

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    host.file("etc/ibprov/ibprov.d/n.toml", "host.number-file = \"/etc/number\"\n");
    left_alone(
        &host,
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: the host has no number for {host:BITS} of guid.template: /etc/number: ENOENT: No such file or directory
            do: set host.number or host.number-file

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    host.file("etc/number", "twelve\n");
    left_alone(
        &host,
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: the host has no number for {host:BITS} of guid.template: /etc/number: "twelve" is not a decimal number
            do: set host.number or host.number-file

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    // The kernel's name where the file says nothing.
    host.file("etc/hostname", "\n");
    host.remove("etc/ibprov/ibprov.d/n.toml");
    left_alone(
        &host,
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: the host has no number for {host:BITS} of guid.template: the host has no name
            do: set host.number or host.number-file

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
}

#[test]
fn a_name_of_dhcp_gives_no_number_at_any_time() {
    let host = node(&good(2));
    host.remove("etc/hostname");
    let at_boot = expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
        would not be applied:
        error: the host has no number for {host:BITS} of guid.template: its name "localhost" is neither in /etc/hostname nor on the kernel command line (systemd.hostname=). No GUID is computed from such a name, because DHCP may change it, and boot runs before DHCP
        do: set the name in /etc/hostname or with systemd.hostname= on the kernel command line
          do: or set host.number or host.number-file
          do: or restore the pin file of this host: pinned GUIDs do not depend on its name

        Plan: 1 PF would not be applied
        exit 3
    "#]];
    let later = expect![[r#"
        PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
        would not be applied:
        error: the host has no number for {host:BITS} of guid.template: its name "c7" is neither in /etc/hostname nor on the kernel command line (systemd.hostname=). No GUID is computed from such a name, because DHCP may change it, and boot runs before DHCP
        do: set the name in /etc/hostname or with systemd.hostname= on the kernel command line
          do: or set host.number or host.number-file
          do: or restore the pin file of this host: pinned GUIDs do not depend on its name

        Plan: 1 PF would not be applied
        exit 3
    "#]];
    for (name, want) in [("localhost", &at_boot), ("c7", &later)] {
        host.file("proc/sys/kernel/hostname", &format!("{name}\n"));
        left_alone(&host, OURS, 2, want);
        for verb in [&["boot", "--dry-run"][..], &["apply", "--dry-run"]] {
            let said = host.show(verb);
            assert!(said.contains("No GUID is computed from such a name"), "{verb:?}: {said}");
            assert!(!said.contains("0200:0007"), "{verb:?}: {said}");
        }
        let pin = host.show(&["plan", "--pin"]);
        assert!(pin.ends_with("no GUID was pinned: correct the errors above first\nexit 3\n"));
    }
    // What is pinned applies, and is no drift.
    host.file("etc/hostname", "c12\n");
    let pins = host.show(&["plan", "--pin"]);
    host.file("etc/ibprov/guid-pins.toml", pins.strip_suffix("exit 1\n").expect("good"));
    let fixed = host.show(&["plan"]);
    host.remove("etc/hostname");
    assert_eq!(host.show(&["plan"]), fixed);
    assert!(fixed.contains("0200:000c:0001:0001 (pin)"), "{fixed}");
}

#[test]
fn more_vfs_than_the_firmware_allows() {
    left_alone(
        &node(&good(17)),
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: 17 VFs are planned for 0000:4b:00.0, but the firmware allows 16 (sriov_totalvfs)
            do: set it (mlxconfig takes the same arguments), then reboot, or power the host off and on
              run: mstconfig -d 0000:4b:00.0 set SRIOV_EN=1 NUM_OF_VFS=17

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    let host = node(&good(4));
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "0\n");
    left_alone(
        &host,
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: 4 VFs are planned for 0000:4b:00.0, but SR-IOV is disabled in the firmware (sriov_totalvfs is 0)
            do: set it (mlxconfig takes the same arguments), then reboot, or power the host off and on
              run: mstconfig -d 0000:4b:00.0 set SRIOV_EN=1 NUM_OF_VFS=4
              do: and enable SR-IOV in the firmware setup of the machine

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    host.remove(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"));
    left_alone(
        &host,
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: 0000:4b:00.0 has no SR-IOV capability (no sriov_totalvfs in sysfs): SR-IOV is disabled in its firmware, or the adapter does not support it
            do: set it (mlxconfig takes the same arguments), then reboot, or power the host off and on
              run: mstconfig -d 0000:4b:00.0 set SRIOV_EN=1 NUM_OF_VFS=4
              do: and enable SR-IOV in the firmware setup of the machine

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
}

#[test]
fn a_pf_that_is_not_there() {
    let host = node(&format!("[[pf]]\npci = \"0000:5e:00.0\"\nvfs = 1\n{TEMPLATE}"));
    left_alone(
        &host,
        "PF 0000:5e:00.0",
        1,
        &expect![[r#"
            error: the PF is absent; it may appear later. PFs of this host: 0000:4b:00.0
              run: lspci -Dnn -d 15b3:

            Plan: 1 PF would not be applied
        "#]],
    );
    host.function("0000:af:00.0", "15b3:101b", "020700", None);
    host.file(
        "etc/ibprov/ibprov.toml",
        &format!("[[pf]]\nport-guid = \"b859:9f03:0012:ffff\"\nvfs = 1\n{TEMPLATE}"),
    );
    left_alone(
        &host,
        "PF with port GUID b859:9f03:0012:ffff",
        1,
        &expect![[r#"
            error: the PF is absent, or has not registered its RDMA device; it may appear later. PFs of this host: 0000:4b:00.0, 0000:af:00.0
              run: lspci -Dnn -d 15b3:

            Plan: 1 PF would not be applied
        "#]],
    );
}

#[test]
fn a_pf_in_ethernet_mode() {
    let mut host = node(&format!("[[pf]]\npci = \"0000:5e:00.0\"\nvfs = 1\n{TEMPLATE}"));
    host.function("0000:5e:00.0", "15b3:101b", "020000", Some("mlx5_core"));
    sriov(&host, "0000:5e:00.0", 16);
    left_alone(
        &host,
        "PF 0000:5e:00.0",
        2,
        &expect![[r#"
            PF 0000:5e:00.0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: the ports of 0000:5e:00.0 are in Ethernet mode, in which VFs have MAC addresses instead of GUIDs
            do: set it (mlxconfig takes the same arguments), then reboot, or power the host off and on
              run: mstconfig -d 0000:5e:00.0 set LINK_TYPE_P1=1
              do: or remove this [[pf]]

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
    let port = PortSpec { link_layer: "Ethernet", netdev: None, ..PortSpec::default() };
    host.file("sys/bus/pci/devices/0000:5e:00.0/class", "0x020700\n");
    host.rdma("0000:5e:00.0", "mlx5_1", "b859:9f03:0012:a4a0", &[port]);
    left_alone(
        &host,
        "PF 0000:5e:00.0 mlx5_1",
        2,
        &expect![[r#"
            PF 0000:5e:00.0 mlx5_1 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: the ports of 0000:5e:00.0 are in Ethernet mode, in which VFs have MAC addresses instead of GUIDs
            do: set it (mlxconfig takes the same arguments), then reboot, or power the host off and on
              run: mstconfig -d 0000:5e:00.0 set LINK_TYPE_P1=1
              do: or remove this [[pf]]

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
}

#[test]
fn a_pf_that_is_a_vf() {
    let mut host = node(&format!("[[pf]]\npci = \"0000:4b:00.1\"\nvfs = 1\n{TEMPLATE}"));
    vf(&mut host, 0, None, ["00:00:00:00:00:00:00:00", "00:00:00:00:00:00:00:00"], "Down");
    left_alone(
        &host,
        "PF 0000:4b:00.1",
        2,
        &expect![[r#"
            PF 0000:4b:00.1 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: 0000:4b:00.1 is a VF of 0000:4b:00.0, not a PF
            do: name the PF 0000:4b:00.0 instead

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
}

#[test]
fn a_pf_that_is_no_hca() {
    let host = node(&format!("[[pf]]\npci = \"0000:00:03.0\"\nvfs = 1\n{TEMPLATE}"));
    host.function("0000:00:03.0", "1af4:1041", "020000", Some("virtio-pci"));
    left_alone(
        &host,
        "PF 0000:00:03.0",
        2,
        &expect![[r#"
            PF 0000:00:03.0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: 0000:00:03.0 is not an InfiniBand adapter by its PCI class and its driver
            do: remove this [[pf]]

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
}

#[test]
fn vfio_without_an_iommu() {
    let host = node(&format!("{}[[pf.vf]]\nindex = 1\ndriver = \"vfio-pci\"\n", good(2)));
    host.remove(&format!("sys/bus/pci/devices/{PF}/iommu_group"));
    left_alone(
        &host,
        OURS,
        2,
        &expect![[r#"
            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: VF 1 is planned for vfio-pci, but the IOMMU is off (0000:4b:00.0 has no iommu_group)
            do: boot with intel_iommu=on iommu=pt (AMD: iommu=pt), and enable VT-d or AMD-Vi in the firmware setup

            Plan: 1 PF would not be applied
            exit 3
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
              would not be applied:
              error: duplicate [[pf]] for 0000:4b:00.0, which is also named at /etc/ibprov/ibprov.toml:5
                do: keep one of the two [[pf]]

            PF 0000:4b:00.0 mlx5_0 (/etc/ibprov/ibprov.toml:5)
              would not be applied:
              error: duplicate [[pf]] for 0000:4b:00.0, which is also named at /etc/ibprov/ibprov.toml:1
                do: keep one of the two [[pf]]

            Plan: 2 PFs would not be applied
            exit 3
        "#]],
    );
    let mut host =
        node(&format!("[[pf]]\nnode-guid = \"b859:9f03:0012:a480\"\nvfs = 1\n{TEMPLATE}"));
    second(&mut host, "0000:4b:00.1", "mlx5_1", "b859:9f03:0012:a480");
    left_alone(
        &host,
        "PF with node GUID b859:9f03:0012:a480",
        2,
        &expect![[r#"
            PF with node GUID b859:9f03:0012:a480 (/etc/ibprov/ibprov.toml:1)
            would not be applied:
            error: the name fits several PFs: 0000:4b:00.0, 0000:4b:00.1
            do: name the PF by its PCI address

            Plan: 1 PF would not be applied
            exit 3
        "#]],
    );
}

#[test]
fn an_offset_needs_the_pf_s_guid() {
    let host = node("[[pf]]\npci = \"0000:5e:00.0\"\nvfs = 2\nguid.offset = 16\n");
    host.function("0000:5e:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    sriov(&host, "0000:5e:00.0", 16);
    left_alone(
        &host,
        "PF 0000:5e:00.0",
        1,
        &expect![[r#"
            error: the GUIDs of VFs are offsets to the PF's port GUID, which is unknown until 0000:5e:00.0 has an RDMA device
              do: check that the driver is bound and has registered an RDMA device
              run: ibprov status

            Plan: 1 PF would not be applied
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
              1 VF planned, 0 present, 1 to create, GUIDs not pinned
              VFs are bound one after the other, so that the kernel numbers them in their order
              + VF 0  node GUID 0200:000c:0000:0000  port GUID 0200:000c:0001:0000 (template)  link state follow  driver host

            PF 0000:5e:00.0 mlx5_1 (/etc/ibprov/ibprov.toml:5)
              would not be applied:
              error: 99 VFs are planned for 0000:5e:00.0, but the firmware allows 16 (sriov_totalvfs)
                do: set it (mlxconfig takes the same arguments), then reboot, or power the host off and on
                run: mstconfig -d 0000:5e:00.0 set SRIOV_EN=1 NUM_OF_VFS=99

            Plan: 1 VF to create, 1 PF would not be applied
            exit 3
        "#]],
    );
}

/// Its GUIDs come from its own, which is not known before it appears.
#[test]
fn of_an_absent_pf_with_an_offset_no_guid_is_missed() {
    let host = Host::healthy();
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[pf]]\npci = \"0000:41:00.0\"\nvfs = 2\nguid.offset = 0x10000\n",
    );
    expect![[r#"
        PF 0000:41:00.0 (/etc/ibprov/ibprov.toml:1)
          would not be applied:
          error: the PF is absent; it may appear later. PFs of this host: 0000:4b:00.0
            run: lspci -Dnn -d 15b3:
          error: the GUIDs of VFs are offsets to the PF's port GUID, which is unknown until it has an RDMA device
            do: check that the driver is bound and has registered an RDMA device
            run: ibprov status

        Plan: 1 PF would not be applied
        exit 1
    "#]].assert_eq(&host.show(&["plan"]));
    let boot = host.show(&["boot", "--dry-run"]);
    assert!(!boot.contains("gives it one"), "{boot}");
}
