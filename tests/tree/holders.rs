//! `ibprov holders` on a copy of a host's tree: what keeps the HCA or its modules busy.

use serde_json::{Value, json};

use crate::host::{Host, PF};

const VF: &str = "0000:4b:00.1";

/// The drivers of the HCA, with nothing above them.
fn node() -> Host {
    let host = Host::healthy();
    for (module, above) in [
        ("mlx5_core", &["mlx5_ib"][..]),
        ("mlx5_ib", &[]),
        (
            "ib_core",
            &["mlx5_ib", "ib_uverbs", "ib_uverbs_support", "ib_umad", "ib_ipoib", "rdma_cm"],
        ),
        ("ib_uverbs", &["mlx5_ib"]),
        // Of Linux 7.2.
        ("ib_uverbs_support", &["mlx5_ib", "ib_uverbs"]),
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
fn a_copied_tree_in_which_nothing_uses_the_hca_is_not_judged() {
    let host = node();
    let (code, report) = ran(&host, &[]);
    assert_eq!((code, &report["verdict"]), (1, &json!("unknown")), "{report:#}");
    assert_eq!((&report["hcas"], &report["holders"]), (&json!([PF]), &json!([])));
    let text = String::from_utf8(host.ibprov(&["holders"]).stdout).expect("text");
    assert_eq!(
        text,
        format!(
            "mlx5_0 ({PF}): not known: no user was found, but not all could be read (see below)\nwarning: not read: a copied tree has no kernel to ask for users of the HCA, and may lack its processes\n"
        )
    );
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
            "a bond",
            Box::new(|host| {
                let netdev = format!("sys/bus/pci/devices/{PF}/net/ib0");
                host.link(&format!("{netdev}/master"), "../../../../class/net/bond0");
            }),
            json!({"hca": pf, "kind": "netdev", "netdev": "ib0", "with": "bond0"}),
        ),
    ];
    for (what, change, want) in rows {
        let host = node();
        change(&host);
        let (code, report) = ran(&host, &[]);
        assert_eq!((code, &report["verdict"]), (1, &json!("exceptions")), "{what}: {report:#}");
        assert_eq!(report["holders"], json!([want]), "{what}");
        assert_eq!(report["findings"][0]["code"], "hca-held", "{what}");
    }
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
    assert_eq!((code, &report["holders"]), (1, &json!([])), "{report:#}");
}

#[test]
fn what_is_said_of_many_vfs_is_said_once_and_fits_the_screen() {
    let host = crate::sites::healthy();
    let shown = host.show_on(&[("COLUMNS", "80")], &["holders"]);
    assert!(shown.starts_with("12 HCAs with 192 VFs: kept busy by:\n"), "{shown}");
    assert!(
        shown.contains("\n  0000:10:00.1, 0000:10:00.2, 0000:10:00.3, 0000:10:00.4 and 188 more:")
    );
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(shown.lines().count() < 10, "{shown}");
    let two = host.show(&["holders", "mlx5_0", "ibp17s0"]);
    let subject = "mlx5_0 (0000:10:00.0), mlx5_1 (0000:11:00.0) with 32 VFs: kept busy by:\n";
    assert!(two.starts_with(subject), "{two}");
}

#[test]
fn what_is_no_hca_is_refused() {
    let output = node().ibprov(&["holders", "mlx5_7"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(PF), "{output:?}");
}
