//! `ibprov holders` on a copy of a host's tree: what keeps the HCA or its modules busy.

use serde_json::{Value, json};

use crate::host::{Host, PF};

const VF: &str = "0000:4b:00.1";

/// The drivers of the HCA, with nothing above them, and the route of ib0's own address.
fn node() -> Host {
    let host = Host::healthy();
    for (module, above) in [
        ("mlx5_core", &["mlx5_ib"][..]),
        ("mlx5_ib", &[]),
        ("ib_core", &["mlx5_ib", "ib_uverbs", "ib_umad", "ib_ipoib", "rdma_cm"]),
        ("ib_uverbs", &["mlx5_ib"]),
        ("ib_umad", &[]),
        ("ib_ipoib", &[]),
        ("rdma_cm", &[]),
    ] {
        host.file(&format!("sys/module/{module}/refcnt"), &format!("{}\n", above.len()));
        for above in above {
            holds(&host, above, module);
        }
    }
    host.file(&format!("sys/bus/pci/devices/{PF}/infiniband_mad/umad0/ibdev"), "mlx5_0\n");
    host.file("sys/class/infiniband_mad/umad0/ibdev", "mlx5_0\n");
    host.file(
        "proc/net/route",
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
         eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
         ib0\t0008090A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n",
    );
    host.file(
        "proc/self/mountinfo",
        "22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n\
         90 22 0:50 / /home rw shared:3 - nfs4 192.168.1.5:/home rw,addr=192.168.1.5\n",
    );
    host.link("sys/dev/block/8:2", "../../devices/pci0000:00/0000:00:17.0/ata1/block/sda/sda2");
    host.link("sys/class/block/sda", "../../devices/pci0000:00/0000:00:17.0/ata1/block/sda");
    host
}

fn holds(host: &Host, above: &str, module: &str) {
    host.file(&format!("sys/module/{module}/holders/{above}/initstate"), "live\n");
}

fn process(host: &Host, pid: u32, name: &str, group: &str, file: &str) {
    host.file(&format!("proc/{pid}/comm"), &format!("{name}\n"));
    host.file(&format!("proc/{pid}/cgroup"), &format!("0::{group}\n"));
    host.link(&format!("proc/{pid}/fd/3"), file);
}

fn ran(host: &Host, arguments: &[&str]) -> (i32, Value) {
    let mut all = vec!["holders", "--format", "json"];
    all.extend(arguments);
    let output = host.ibprov(&all);
    let report = serde_json::from_slice(&output.stdout).expect("JSON");
    (output.status.code().expect("an exit code"), report)
}

#[test]
fn a_node_that_nothing_uses_is_free() {
    let host = node();
    let (code, report) = ran(&host, &[]);
    assert_eq!((code, &report["verdict"]), (0, &json!("free")), "{report:#}");
    assert_eq!((&report["hcas"], &report["holders"]), (&json!([PF]), &json!([])));
    let text = String::from_utf8(host.ibprov(&["holders"]).stdout).expect("text");
    assert_eq!(text, format!("{PF} and its kernel modules are not busy\n"));
}

/// Each holder alone makes the difference, and is named with what it has.
#[test]
fn each_holder_is_named() {
    let pf = json!(PF);
    #[expect(clippy::type_complexity, reason = "rows of a table")]
    let rows: Vec<(&str, Box<dyn Fn(&Host)>, Value)> = vec![
        (
            "a process",
            Box::new(|host| {
                process(
                    host,
                    71,
                    "opensm",
                    "/system.slice/opensm.service",
                    "/dev/infiniband/umad0",
                );
            }),
            json!({"hca": pf, "kind": "process", "pid": 71, "name": "opensm",
                "unit": "opensm.service", "has": ["umad0"]}),
        ),
        (
            "a process that listens at no HCA",
            Box::new(|host| process(host, 72, "rping", "/", "/dev/infiniband/rdma_cm")),
            json!({"hca": null, "kind": "process", "pid": 72, "name": "rping",
                "unit": null, "has": ["rdma_cm"]}),
        ),
        (
            "a module",
            Box::new(|host| {
                holds(host, "ko2iblnd", "rdma_cm");
                host.file("sys/module/rdma_cm/refcnt", "1\n");
                host.file("sys/module/ko2iblnd/refcnt", "2\n");
            }),
            json!({"hca": null, "kind": "module", "name": "ko2iblnd", "of": ["rdma_cm"], "users": 2}),
        ),
        (
            "a use count that nothing accounts for",
            Box::new(|host| host.file("sys/module/mlx5_ib/refcnt", "3\n")),
            json!({"hca": null, "kind": "reference", "module": "mlx5_ib", "count": 3}),
        ),
        (
            "a mount",
            Box::new(|host| {
                host.file(
                    "proc/self/mountinfo",
                    "90 22 0:50 / /scratch rw - nfs4 10.9.8.5:/x rw,proto=tcp,addr=10.9.8.5\n",
                );
            }),
            json!({"hca": pf, "kind": "mount", "at": "/scratch", "source": "10.9.8.5:/x",
                "fstype": "nfs4", "over": "ib0"}),
        ),
        (
            "a route",
            Box::new(|host| {
                host.file(
                    "proc/net/route",
                    "ib0\t0000140A\t0108090A\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0\n",
                );
            }),
            json!({"hca": pf, "kind": "route", "to": "10.20.0.0/16", "gateway": "10.9.8.1", "netdev": "ib0"}),
        ),
        (
            "a bond",
            Box::new(|host| {
                let netdev = format!("sys/bus/pci/devices/{PF}/net/ib0");
                host.link(&format!("{netdev}/master"), "../../../../class/net/bond0");
            }),
            json!({"hca": pf, "kind": "netdev", "netdev": "ib0", "with": "bond0"}),
        ),
        (
            "a disk of NVMe over RDMA",
            Box::new(|host| {
                host.file("sys/class/nvme/nvme1/transport", "rdma\n");
                host.file("sys/class/nvme/nvme1/address", "traddr=10.9.8.9,trsvcid=4420\n");
                host.file("sys/class/nvme/nvme1/nvme1c1n1/size", "8\n");
            }),
            json!({"hca": pf, "kind": "disk", "name": "nvme1n1"}),
        ),
    ];
    for (what, change, want) in rows {
        let host = node();
        change(&host);
        let (code, report) = ran(&host, &[]);
        assert_eq!((code, &report["verdict"]), (1, &json!("held")), "{what}: {report:#}");
        assert_eq!(report["holders"], json!([want]), "{what}");
        assert_eq!(report["findings"][0]["code"], "hca-held", "{what}");
    }
}

/// Two disks of SRP, one of them below the root file system's volume group.
#[test]
fn the_root_disk_is_named() {
    let host = node();
    let behind = format!("../../devices/pci0000:40/0000:40:01.0/{PF}/host6/target6:0:0/block/sdb");
    host.link("sys/class/block/sdb", &behind);
    host.file("sys/class/block/dm-0/slaves/sdb/size", "8\n");
    host.link("sys/dev/block/253:0", "../../devices/virtual/block/dm-0");
    host.file("proc/self/mountinfo", "22 1 253:0 / / rw - ext4 /dev/mapper/vg-root rw\n");
    let (code, report) = ran(&host, &["ib0"]);
    let want = json!([
        {"hca": PF, "kind": "mount", "at": "/", "source": "/dev/mapper/vg-root", "fstype": "ext4",
            "over": "sdb"},
        {"hca": PF, "kind": "disk", "name": "sdb"},
    ]);
    assert_eq!((code, &report["holders"]), (1, &want), "{report:#}");
    let text = String::from_utf8(host.ibprov(&["holders"]).stdout).expect("text");
    let line =
        format!("  {PF}  the root file system, /dev/mapper/vg-root (ext4), is reached over sdb\n");
    assert!(text.contains(&line), "{text}");
}

/// A VF in a virtual machine keeps its PF; another HCA is not kept by it.
#[test]
fn a_virtual_machine_is_named() {
    let mut host = node();
    host.function(VF, "15b3:101c", "020700", Some("vfio-pci"));
    host.link(&format!("sys/bus/pci/devices/{VF}/physfn"), &format!("../{PF}"));
    host.link(&format!("sys/bus/pci/devices/{VF}/iommu_group"), "../../../kernel/iommu_groups/17");
    process(&host, 90, "qemu-system-x86", "/machine.slice/x.scope", "/dev/vfio/17");
    host.file("proc/90/cmdline", "qemu\0-name\0guest=node7,debug-threads=on\0-m\x004\0");
    let want = json!([{"hca": VF, "kind": "guest", "pid": 90, "name": "node7",
        "file": "/dev/vfio/17"}]);
    let (code, report) = ran(&host, &["mlx5_0"]);
    assert_eq!((code, &report["holders"]), (1, &want), "{report:#}");

    host.function("0000:81:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    let port = crate::host::PortSpec {
        guid: "b859:9f03:0012:a490",
        netdev: Some("ib1"),
        ..crate::host::PortSpec::default()
    };
    host.rdma("0000:81:00.0", "mlx5_1", "b859:9f03:0012:a490", &[port]);
    let (code, report) = ran(&host, &["81:00.0"]);
    assert_eq!((code, &report["holders"]), (0, &json!([])), "{report:#}");
}

#[test]
fn what_is_no_hca_is_refused() {
    let output = node().ibprov(&["holders", "mlx5_7"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(PF), "{output:?}");
}
