//! `ibprov apply` on a copy of a host: what it would do, in order.

use expect_test::{Expect, expect};

use crate::host::{Host, PF};

const TEMPLATE: &str = "guid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n";

/// A healthy node c12 whose PF shall have that many VFs of 16.
fn node(vfs: u16) -> Host {
    let host = Host::healthy();
    let dir = format!("sys/bus/pci/devices/{PF}");
    host.file(&format!("{dir}/sriov_totalvfs"), "16\n");
    host.file(&format!("{dir}/sriov_drivers_autoprobe"), "1\n");
    host.file(&format!("{dir}/mlx5_num_vfs"), "0\n");
    host.file("etc/hostname", "c12\n");
    let config = format!("[[pf]]\npci = \"{PF}\"\nvfs = {vfs}\n{TEMPLATE}");
    host.file("etc/ibprov/ibprov.toml", &config);
    host
}

#[track_caller]
fn apply(host: &Host, arguments: &[&str], want: &Expect) {
    want.assert_eq(&host.show(&[&["apply"], arguments].concat()));
}

#[test]
fn without_a_plan_there_is_nothing_to_do() {
    apply(
        &Host::healthy(),
        &[],
        &expect![[r#"
            nothing to do: the configuration has no [[pf]]
            exit 0
        "#]],
    );
}

/// What a copy says is to be restored is not restored on the host that reads it.
#[test]
fn nothing_of_a_copy_is_restored() {
    let host = Host::healthy();
    host.file(&format!("run/ibprov/pf/{PF}.undo"), "{\"autoprobe\":true}");
    apply(
        &host,
        &["--undo"],
        &expect![[r#"
            error: apply --undo changes the running host, never a copy: omit --root
            exit 2
        "#]],
    );
}

#[test]
fn new_vfs_get_their_guids_before_their_driver() {
    apply(
        &node(1),
        &["--dry-run"],
        &expect![[r#"
            PF 0000:4b:00.0: in this order:
              1. disable sriov_drivers_autoprobe
              2. change the number of VFs from 0 to 1
              3. set node GUID of VF 0 to 0200:000c:0000:0000
              4. set port GUID of VF 0 to 0200:000c:0001:0000
              5. set link state of VF 0 to follow
              6. bind VF 0 to mlx5_core
              7. restore sriov_drivers_autoprobe to 1
            exit 1
        "#]],
    );
}

#[test]
fn a_pf_that_the_host_does_not_have_is_an_error_without_a_plan_too() {
    let host = Host::healthy();
    let shown = host.show(&["apply", "0000:99:00.0"]);
    assert!(shown.contains("0000:99:00.0: this host has no such PCI function"), "{shown}");
    assert!(shown.ends_with("exit 2\n"), "{shown}");
    let shown = host.show(&["apply", PF]);
    assert!(shown.contains("the configuration has no [[pf]] for it"), "{shown}");
    assert!(shown.ends_with("exit 0\n"), "{shown}");
}

#[test]
fn steps_that_are_alike_are_one_line() {
    apply(
        &node(16),
        &["--dry-run"],
        &expect![[r#"
        PF 0000:4b:00.0: in this order:
          1. disable sriov_drivers_autoprobe
          2. change the number of VFs from 0 to 16
          3. set the node GUIDs of VFs 0-15: 0200:000c:0000:0000 to 0200:000c:0000:000f
          4. set the port GUIDs of VFs 0-15: 0200:000c:0001:0000 to 0200:000c:0001:000f
          5. set link state of VFs 0-15 to follow
          6. bind VFs 0-15 to mlx5_core, one after the other
          7. restore sriov_drivers_autoprobe to 1
        exit 1
    "#]],
    );
}

#[test]
fn a_bad_plan_is_told_and_nothing_would_be_done() {
    apply(
        &node(17),
        &[PF],
        &expect![[r#"
            PF 0000:4b:00.0 (/etc/ibprov/ibprov.toml:1): no change is possible:
              error: 17 VFs are planned for 0000:4b:00.0, but the firmware allows 16 (sriov_totalvfs)
                do: set it (mlxconfig takes the same arguments), then reboot, or power the host off and on
                run: mstconfig -d 0000:4b:00.0 set SRIOV_EN=1 NUM_OF_VFS=17
            exit 3
        "#]],
    );
}

#[test]
fn a_name_that_is_none_is_bad_usage() {
    let output = node(1).ibprov(&["apply", "ib0/../x y"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("does not name a port: expected a netdev (ib0), an RDMA device"),
        "{said}"
    );
}

/// One VF as planned, but for an RDMA device.
fn half_bound() -> Host {
    let host = node(1);
    let vf = "0000:4b:00.1";
    let pf_dir = format!("sys/bus/pci/devices/{PF}");
    host.function(vf, "15b3:101c", "020700", Some("mlx5_core"));
    host.link(&format!("sys/bus/pci/devices/{vf}/physfn"), &format!("../{PF}"));
    host.link(&format!("{pf_dir}/virtfn0"), &format!("../{vf}"));
    for (file, text) in [
        ("node", "02:00:00:0c:00:00:00:00\n"),
        ("port", "02:00:00:0c:00:01:00:00\n"),
        ("policy", "Follow\n"),
    ] {
        host.file(&format!("{pf_dir}/sriov/0/{file}"), text);
    }
    host.file(&format!("sys/bus/pci/devices/{vf}/mlx5_core.rdma.7/uevent"), "");
    host.file("sys/module/mlx5_ib/initstate", "live\n");
    host
}

#[test]
fn a_vf_whose_rdma_half_has_no_driver_is_bound_anew() {
    apply(
        &half_bound(),
        &["--dry-run"],
        &expect![[r#"
            PF 0000:4b:00.0: in this order:
              1. unbind VF 0 from mlx5_core
              2. bind VF 0 to mlx5_core
            exit 1
        "#]],
    );
}

/// The target of its disk is away, so that no queue pair of ib_srp is connected.
#[test]
fn a_vf_with_a_disk_of_srp_is_left_alone() {
    let host = half_bound();
    host.file("sys/bus/pci/devices/0000:4b:00.1/host7/scsi_host/host7/proc_name", "ib_srp\n");
    apply(
        &host,
        &["--dry-run"],
        &expect![[r#"
            PF 0000:4b:00.0: no change is possible while VFs are in use
              deferred: VF 0 is left alone: the driver mlx5_core is bound, but the VF has no RDMA device, because the probe of the auxiliary RDMA device or the recovery of the VF failed; it is in use: SCSI host7 (SRP or iSER) is connected over it
            exit 1
        "#]],
    );
}

#[test]
fn a_vf_whose_rdma_half_comes_is_left_alone() {
    // Its probe is under way.
    let host = half_bound();
    host.link(
        "sys/bus/pci/devices/0000:4b:00.1/mlx5_core.rdma.7/driver",
        "../../../../../bus/auxiliary/drivers/mlx5_ib.rdma",
    );
    let nothing = expect![[r#"
        PF 0000:4b:00.0: 1 VF as planned, nothing to do
        exit 0
    "#]];
    apply(&host, &["--dry-run"], &nothing);
    // Its module is being loaded, or is still to be.
    let host = half_bound();
    host.file("sys/module/mlx5_ib/initstate", "coming\n");
    apply(&host, &["--dry-run"], &nothing);
    let host = half_bound();
    host.remove("sys/module/mlx5_ib");
    apply(&host, &["--dry-run"], &nothing);
}

#[test]
fn an_address_may_be_typed_as_lspci_prints_it() {
    assert_eq!(
        node(1).show(&["apply", "4b:00.0", "--dry-run"]),
        node(1).show(&["apply", PF, "--dry-run"])
    );
    let short = node(1);
    let config = format!("[[pf]]\npci = \"4b:00.0\"\nvfs = 1\n{TEMPLATE}");
    short.file("etc/ibprov/ibprov.toml", &config);
    assert_eq!(short.show(&["plan"]), node(1).show(&["plan"]));
}

#[test]
fn an_rdma_device_that_is_not_there_and_a_vf_are_errors_that_say_what_is_there() {
    apply(
        &node(1),
        &["mlx5_9", "--dry-run"],
        &expect![[r#"
            error: mlx5_9 is no port and no adapter of this host: it has ib0 mlx5_0 (0000:4b:00.0)
            exit 2
        "#]],
    );
    apply(
        &half_bound(),
        &["4b:00.1", "--dry-run"],
        &expect![[r#"
            error: 0000:4b:00.1 is a VF of 0000:4b:00.0: use the PF's address
            exit 2
        "#]],
    );
}

#[test]
fn a_pf_that_is_not_there_is_an_error_and_one_without_a_plan_is_none() {
    let host = node(1);
    apply(
        &host,
        &["0000:99:00.0", "--dry-run"],
        &expect![[r#"
            error: 0000:99:00.0: this host has no such PCI function; PFs with a plan: 0000:4b:00.0
            exit 2
        "#]],
    );
    host.function("0000:01:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    apply(
        &host,
        &["0000:01:00.0", "--dry-run"],
        &expect![[r#"
            PF 0000:01:00.0: nothing to do, because the configuration has no [[pf]] for it
            exit 0
        "#]],
    );
}
