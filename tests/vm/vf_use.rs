//! VFs in use are left alone, whoever uses them; on the distribution's own mlx5
//! drivers.

use std::collections::BTreeMap;

use crate::bed::journal::Entry;
use crate::bed::outcome::Outcome;
use crate::card::assert_sound;
use crate::machine::boot;
use crate::vf_plan::{counters, grown};

/// The lines of a file by their first word, the VF.
fn by_vf(guest: &Outcome, name: &str) -> BTreeMap<String, String> {
    let line = |l: &str| {
        let (vf, rest) = l.split_once(' ').expect("VF and facts");
        (vf.to_owned(), rest.trim().to_owned())
    };
    guest.file(name).lines().map(line).collect()
}

#[test]
fn vfs_for_virtual_machines_are_never_probed_by_the_hosts_driver() {
    let guest = boot("vf_use");
    guest.assert_success();
    assert_sound(&guest);
    let counters = counters(&guest, "counters.fresh");
    let probes = |function: &str| counters.get(&format!("ibcard/{function} probe")).copied();
    assert_eq!(probes("0001:01:00.2"), Some(1), "VF 1 is the host's");
    for vf in ["0001:01:00.3", "0001:01:00.4"] {
        assert_eq!(probes(vf).unwrap_or_default(), 0, "{vf}");
    }
    let facts = by_vf(&guest, "fresh.facts");
    assert_eq!(facts["2"], "vfio-pci (null) - - -");
    assert_eq!(facts["3"], "vfio-pci (null) - - -");
    assert_eq!(guest.json("first.json")["pfs"][0]["exit_code"], 0);
}

/// That the next test tells idle VFs from used ones rests on this.
#[test]
fn an_idle_vf_has_what_drivers_and_clients_hold_in_each() {
    let guest = boot("vf_use");
    let held = guest.file("idle.resources");
    let has = |what: &str, who: &str| {
        held.lines().any(|l| l.contains(what) && l.contains(&format!("comm [{who}]")))
    };
    // Of the queue pairs that mlx5_ib makes for itself none is here: they are for P_Keys of
    // datagrams that this card does not offer.
    assert!(has("state RTS", "ib_core"), "{held}");
    assert!(has("pdn", "mlx5_ib"), "{held}");
    assert!(has("pdn", "ib_srp"), "{held}");
    assert!(has("state LISTEN", "ibsim_user"), "{held}");
}

/// So is the next test's process.
#[test]
fn a_process_has_a_connected_queue_pair_of_a_vf() {
    let guest = boot("vf_use");
    assert!(guest.stdout().contains("verbs-user: connected\n"), "{}", guest.stdout());
    let used = guest.file("used.resources");
    let is_its = |l: &str| l.contains("type RC state RTS") && l.contains("comm verbs-user");
    assert!(used.lines().any(is_its), "{used}");
    assert!(guest.stdout().contains("verbs-user with a thread: connected\n"), "{}", guest.stdout());
}

#[test]
fn only_what_nobody_uses_gets_another_guid() {
    let guest = boot("vf_use");
    assert!(guest.stdout().contains("other: 1\n"), "{}", guest.stdout());
    let report = guest.json("other.json");
    let vfs = report["pfs"][0]["vfs"].as_array().expect("VFs");
    let deferred: Vec<u64> =
        vfs.iter().filter(|v| v["deferred"] == true).filter_map(|v| v["vf"].as_u64()).collect();
    assert_eq!(deferred, [0, 1, 2, 5, 6, 8, 9, 10, 11], "{vfs:?}");
    let (before, after) = (by_vf(&guest, "admin.before"), by_vf(&guest, "admin.after"));
    let changed: Vec<&String> = before.keys().filter(|vf| before[*vf] != after[*vf]).collect();
    assert_eq!(changed, ["3", "4", "7"]);
    let (before, after) = (by_vf(&guest, "facts.before"), by_vf(&guest, "facts.after"));
    let changed: Vec<&String> = before.keys().filter(|vf| before[*vf] != after[*vf]).collect();
    assert_eq!(changed, ["4", "7"], "VF 3 shows nothing here: vfio-pci has it");
    let grown = grown(&guest, "counters.before", "counters.after");
    let removed: Vec<&String> = grown.keys().filter(|c| c.ends_with(" remove")).collect();
    assert_eq!(removed, ["ibcard/0001:01:00.5 remove", "ibcard/0001:01:01.0 remove"]);
}

#[test]
fn a_vf_that_a_container_has_is_right_where_its_guids_are() {
    let guest = boot("vf_use");
    assert!(guest.stdout().contains("away: 0\n"), "{}", guest.stdout());
    let vf = &guest.json("away.json")["pfs"][0]["vfs"][1];
    assert_eq!((&vf["right"], &vf["netdev"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(
        vf["reason"],
        "the netdev is in another network namespace, where it is not verified"
    );
}

#[test]
fn the_report_says_who_uses_what() {
    let guest = boot("vf_use");
    let log = guest.file("other.log");
    for want in [
        "has address 10.9.0.1/24",
        "its netdev is not in this network namespace",
        "is open in process ",
        "has route to 10.10.0.0/16",
        "kernel module ibsim_user owns a QP of its RDMA device",
        "child9 has address 10.11.0.1/24",
        "the thread that created a QP of its RDMA device has ended",
    ] {
        assert!(log.contains(want), "want {want:?} in:\n{log}");
    }
    let process = |l: &str| l.contains(": process ") && l.contains(" owns a QP of its RDMA device");
    assert!(log.lines().any(process), "{log}");
}

#[test]
fn the_number_is_not_changed_while_a_vf_is_in_use() {
    let guest = boot("vf_use");
    assert!(guest.stdout().contains("fewer: 1\n"), "{}", guest.stdout());
    let facts = guest.file("fewer.facts");
    assert_eq!(facts.lines().count(), 13, "{facts}");
    let log = guest.file("fewer.log");
    assert!(log.contains("the number of VFs stays 12 instead of 4"), "{log}");
}

/// It has not the capability that shows it what other processes have open, and takes what it
/// cannot see for used.
#[test]
fn a_restart_of_the_boots_unit_takes_no_vf_from_a_virtual_machine() {
    let guest = boot("vf_use");
    let said = guest.stdout();
    assert!(said.contains("restarted beside a virtual machine: 1\n"), "{said}");
    let facts = guest.file("restarted.facts");
    assert_eq!(facts.lines().count(), 13, "{facts}");
    assert!(facts.contains("\n2 vfio-pci "), "{facts}");
    let report = guest.json("restarted.json").to_string();
    assert!(report.contains("the open files of process"), "{report}");
    assert!(said.contains("restarted without one: 0\n"), "{said}");
}

#[test]
fn once_nobody_uses_them_all_is_as_planned() {
    let guest = boot("vf_use");
    assert!(guest.stdout().contains("free: 0\n"), "{}", guest.stdout());
    let want = "\
        0 mlx5_core (null) 0200:0071:0000:0000 0200:0071:0001:0000 02:00:00:71:00:01:00:00\n\
        1 mlx5_core (null) 0200:0071:0000:0001 0200:0071:0001:0001 02:00:00:71:00:01:00:01\n\
        2 vfio-pci (null) - - -\n\
        3 vfio-pci (null) - - -\n\
        autoprobe 1\n";
    assert_eq!(guest.file("free.facts"), want);
}

/// What holds the function of a VF by a report of `holders`, by the VF's address.
fn kinds(report: &serde_json::Value, hca: &str) -> Vec<String> {
    let all = report["holders"].as_array().expect("holders");
    let of_it = all.iter().filter(|holder| holder["hca"] == hca);
    of_it.map(|holder| holder["kind"].as_str().expect("a kind").to_owned()).collect()
}

#[test]
fn what_holds_the_adapter_is_named() {
    let guest = boot("vf_use");
    let report = guest.json("holders.json");
    assert!(guest.stdout().contains("holders: 1\n"), "{report:#}");
    for (vf, want) in [
        ("0001:01:00.2", "namespace"),
        ("0001:01:00.3", "guest"),
        ("0001:01:00.7", "resource"),
        ("0001:01:01.1", "process"),
    ] {
        assert!(kinds(&report, vf).iter().any(|kind| kind == want), "{vf}, {want}: {report:#}");
    }
    let all = report["holders"].as_array().expect("holders");
    let is_srp = |holder: &serde_json::Value| {
        (&holder["kind"], &holder["name"]) == (&"module".into(), &"ib_srp".into())
    };
    assert!(all.iter().any(is_srp), "{report:#}");
    // Of an idle VF only modules are told, which are of all.
    assert!(!guest.file("holders.idle").contains("process"), "{}", guest.file("holders.idle"));
    let free = guest.file("holders.free");
    assert!(guest.stdout().contains("holders at the end: 0\n"), "{free}");
}

/// systemd hears of it from udev, and starts or goes on with an instance meanwhile.
#[test]
fn a_netdev_that_a_pod_has_got_is_no_failed_unit() {
    let guest = boot("vf_use");
    for line in ["begins without a netdev: active\n", "loses its netdev: active\n"] {
        assert!(guest.stdout().contains(line), "{line}: {}", guest.stdout());
    }
    assert!(!guest.stdout().contains("it does not wait"), "{}", guest.stdout());
    let told = |entry: &&Entry| entry.message.contains("the interface disappeared before");
    assert_eq!(guest.journal.0.iter().filter(told).count(), 2);
}

#[test]
fn a_vf_of_a_cni_plugin_is_neither_drift_nor_repaired() {
    let guest = boot("vf_use");
    for line in ["given: 0\n", "cni: 0\n", "cni status: 0\n", "cni holders: 1\n"] {
        assert!(guest.stdout().contains(line), "{line}: {}", guest.stdout());
    }
    let before = guest.file("cni.before");
    assert!(before.contains("02:00:00:99:00:01:00:01"), "{before}");
    assert_eq!(guest.file("cni.after"), before);
    let grown = grown(&guest, "counters.cni", "counters.cni.after");
    assert!(grown.is_empty(), "{grown:?}");
    let status = guest.json("cni.status.json");
    assert_eq!(status["hcas"][0]["vfs"][1]["other_namespace"], "netdev", "{status:#}");
    let report = guest.json("cni.holders.json");
    let away: Vec<&serde_json::Value> = report["holders"]
        .as_array()
        .expect("holders")
        .iter()
        .filter(|holder| holder["kind"] == "namespace")
        .collect();
    assert_eq!(away.len(), 1, "{report:#}");
}
