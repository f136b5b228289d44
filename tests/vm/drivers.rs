//! Drivers that nobody loads, probes that fail, VFs, and the simulated HCA.

use crate::machine::boot;
use crate::seed::assert_up;

#[test]
fn what_udev_leaves_without_a_driver_is_loaded_and_reported() {
    let guest = boot("modules");
    guest.assert_success();
    let report = guest.json("no_autoload.json");
    assert_eq!(report["verdict"], "ready", "{report:#}");
    let steps = report["steps"].as_array().expect("steps");
    let of_kind = |kind: &str| steps.iter().find(|s| s["step"] == kind).cloned();
    let driver = of_kind("load-driver").expect("the driver was loaded by boot");
    assert_eq!(driver["pci"], "0001:01:00.0");
    let half = of_kind("load-rdma-half").expect("the RDMA half was loaded by boot");
    assert_eq!(half["module"], "mlx5_ib");
    guest.journal.expect("ibprov.service", "changed by ibprov: load the driver of 0001:01:00.0");
}

#[test]
fn where_udev_does_its_work_boot_loads_no_driver() {
    let report = boot("seed_with").boot_json();
    let steps = report["steps"].as_array().expect("steps");
    assert!(steps.iter().all(|s| s["step"] == "load-modules"), "{steps:?}");
}

#[test]
fn a_failed_probe_is_named_and_not_waited_for() {
    let guest = boot("left_out");
    assert_up(&guest);
    let report = guest.boot_json();
    assert_eq!(report["exit_code"], 3);
    let ports = report["ports"].as_array().expect("ports");
    let cause = |pci: &str, missing: &str| {
        let failed = ports.iter().find(|p| p["pci"] == pci).expect("the HCA");
        assert_eq!(failed["missing"], missing, "{failed:#}");
        failed["cause"]["message"].as_str().expect("cause").to_owned()
    };
    let probe = cause("0001:05:00.0", "driver");
    assert!(probe.starts_with("the driver's probe failed: "), "{probe}");
    assert!(probe.contains("failed with error -5"), "{probe}");
    // What the firmware refused, which comes first and says more.
    assert!(probe.contains("INIT_HCA"), "{probe}");
    let half = cause("0001:06:00.0", "rdma");
    assert!(half.contains("ALLOC_XRCD") && half.contains("-5"), "{half}");
    let steps = report["steps"].as_array().expect("steps");
    assert!(steps.iter().all(|s| s["step"] == "load-modules"), "loaded again: {steps:?}");
    let usec = |name: &str| report[name].as_u64().expect("time");
    let took = usec("finished_usec") - usec("started_usec");
    assert!(took < 30_000_000, "boot waited {took} us for what cannot come");
}

#[test]
fn vfs_are_shown_with_guids_and_policy_by_both_interfaces() {
    let guest = boot("sriov");
    guest.assert_success();
    let status = guest.json("status.json");
    let vf = |hca: usize, vf: usize| status["hcas"][hca]["vfs"][vf].clone();
    let ofed = vf(0, 1);
    assert_eq!(ofed["pci"], "0000:01:00.2", "{status}");
    assert_eq!(ofed["node_guid"], "0200:0000:0012:0001");
    assert_eq!(ofed["port_guid"], "0200:0000:0012:0101");
    assert_eq!(ofed["link_state"], "follow");
    let mainline = vf(1, 0);
    assert_eq!(mainline["node_guid"], "0200:0000:0034:0000", "{status}");
    assert_eq!(mainline["port_guid"], "0200:0000:0034:0100");
    assert_eq!(mainline["link_state"], "up");
    assert_eq!(mainline["driver"], "mlx5_core");
}

#[test]
fn a_plan_tells_each_difference_until_there_is_none() {
    let guest = boot("sriov");
    guest.assert_success();
    let vfs = |name: &str| -> Vec<String> {
        let text = guest.file(name);
        let change = |line: &&str| line.starts_with("  ~") || line.starts_with("        ");
        text.lines().filter(change).map(|l| l.trim().to_owned()).collect()
    };
    let exit = |name: &str| guest.file(name).lines().last().map(str::to_owned);
    // VFs 0 and 1 of a PF each, one of them set and not bound again.
    let half = vfs("plan.half");
    for line in [
        "~ VF 0   node GUID 0000:0000:0000:0000 -> 0200:0000:0012:0000 (template)",
        "port GUID 0000:0000:0000:0000 -> 0200:0000:0012:0100 (template)",
        "link state down -> follow",
        "~ VF 1   node GUID 0000:0000:0000:0000 -> 0200:0000:0034:0001 (template)",
        "link state down -> up",
    ] {
        assert!(half.iter().any(|l| l == line), "{line}: {}", guest.file("plan.half"));
    }
    assert_eq!(exit("plan.half").as_deref(), Some("exit 1"));
    let unbound = vfs("plan.unbound");
    let again =
        |line: &&String| line.contains("driver mlx5_core -> rebound (the node GUID of the VF is");
    assert_eq!(unbound.iter().filter(again).count(), 4, "{}", guest.file("plan.unbound"));
    let done = guest.file("plan.done");
    assert!(done.starts_with("PF 0000:01:00.0 mlx5_0"), "nothing but the plan: {done}");
    assert_eq!(done.matches("2 VFs planned, 2 present, 2 as planned").count(), 2, "{done}");
    assert_eq!(exit("plan.done").as_deref(), Some("exit 0"), "{done}");
}

#[test]
fn pins_are_written_once_and_hold_for_another_host_number() {
    let guest = boot("sriov");
    guest.assert_success();
    assert_eq!(
        guest.file("plan.pin"),
        "/etc/ibprov/guid-pins.toml: the GUIDs of 4 VFs of 2 PFs are pinned\nexit 0\n"
    );
    assert_eq!(
        guest.file("plan.again"),
        "/etc/ibprov/guid-pins.toml is up to date: it was not written\nexit 0\n"
    );
    let pins = guest.file("guid-pins.toml");
    assert!(pins.contains("[\"0200:0000:0012:0001\", \"0200:0000:0012:0101\"], # VF 1"), "{pins}");
    let drift = guest.file("plan.drift");
    assert!(drift.contains("the configured node GUID of VF 0 is 0200:0000:0013:0000, but 0200:0000:0012:0000 is pinned and stays in use"), "{drift}");
    assert_eq!(drift.matches("2 as planned, GUIDs pinned").count(), 2, "{drift}");
    assert!(drift.ends_with("exit 1\n"), "{drift}");
    let new = guest.file("plan.new");
    assert!(new.contains("node GUID 0200:0000:0012:0001 -> 0200:0000:0013:0001"), "{new}");
}

#[test]
fn the_pins_of_another_machine_of_this_name_are_refused() {
    let guest = boot("sriov");
    guest.assert_success();
    let pins = guest.file("guid-pins.toml");
    assert!(pins.contains("\nmachine = { product-uuid = \""), "{pins}");
    let replaced = guest.file("plan.replaced");
    assert!(replaced.contains("GUIDs pinned") && !replaced.contains("clone"), "{replaced}");
    let clone = guest.file("plan.clone");
    assert!(clone.contains("it was written on another machine"), "{clone}");
    assert!(clone.ends_with("exit 3\n"), "{clone}");
    let report = guest.json("clone.json");
    let findings = report["findings"].as_array().expect("findings").iter();
    let refused = findings.filter(|finding| finding["code"] == "pins-of-another-host");
    assert_eq!(refused.count(), 2, "both PFs: {report:#}");
}

#[test]
#[ignore = "of the simulated HCA itself: a minute"]
fn the_simulated_hca_passes_its_own_checks() {
    let guest = boot("hca_selftest");
    let tap = guest.file("selftest");
    assert!(!tap.contains("\nnot ok"), "{tap}");
    let ok = tap.lines().filter(|l| l.starts_with("ok ")).count();
    assert!(ok >= 100, "only {ok} checks:\n{tap}");
}
