//! What uses InfiniBand: what is too early, and what comes after the ports once its order is
//! written; a port whose link has less than was bought. Two boots of one machine.

use serde_json::Value;

use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("consumers", name)
}

#[test]
#[ignore = "two boots of one machine with a slow adapter"]
fn what_nothing_orders_is_too_early_and_named() {
    for unit in ["lnet.service", "kubelet.service"] {
        assert_eq!(scene(&format!("first {unit}")), "exit-code failed yes");
    }
    let guest = boot("consumers");
    let said = guest.file("unordered");
    assert_eq!(scene("unordered"), "1", "{said}");
    let check = guest.json("check");
    let codes: Vec<(&str, &str)> = check["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|f| Some((f["code"].as_str()?, f["object"].as_str()?)))
        .collect();
    assert_eq!(codes.first(), Some(&("ordering-missing", "lnet.service")), "{check:#}");
}

#[test]
#[ignore = "two boots of one machine with a slow adapter"]
fn a_drop_in_for_each_is_written_once() {
    let guest = boot("consumers");
    assert_eq!(scene("dry-run"), "1", "{}", guest.file("dry-run"));
    assert_eq!(guest.file("dry-run-files"), "");
    assert_eq!(scene("install"), "0", "{}", guest.file("install"));
    let files: Vec<String> = guest.file("installed").lines().map(str::to_owned).collect();
    for unit in ["lnet", "kubelet"] {
        let file = format!("/etc/systemd/system/{unit}.service.d/50-ibprov-order.conf");
        assert!(files.contains(&file), "{files:?}");
    }
    assert_eq!(files.len(), 2, "{files:?}");
    assert_eq!(scene("install-again"), "0", "{}", guest.file("install-again"));
}

#[test]
#[ignore = "two boots of one machine with a slow adapter"]
fn with_their_drop_ins_they_come_after_a_slow_adapter() {
    for unit in ["lnet.service", "kubelet.service", "mnt.mount", "opensm.service"] {
        // opensm is skipped, and not delayed, where ib_umad is not loaded yet.
        assert_eq!(scene(&format!("second {unit}")), "success active yes");
        let order = format!("second {unit}: after the ports\n");
        assert!(boot("consumers").stdout().contains(&order), "{unit}");
    }
    let guest = boot("consumers");
    assert_eq!(scene("ordered"), "0", "{}", guest.file("ordered"));
    assert!(!guest.stdout().contains("no carrier"), "{}", guest.stdout());
}

#[test]
#[ignore = "two boots of one machine with a slow adapter"]
fn what_was_written_is_taken_away_and_what_a_site_changed_is_left() {
    let guest = boot("consumers");
    assert_eq!(scene("remove"), "1", "{}", guest.file("remove"));
    let left = guest.file("left");
    assert_eq!(left, "/etc/systemd/system/kubelet.service.d/50-ibprov-order.conf\n");
}

/// The first finding of `report` with `code`, if it has one.
fn finding(report: &Value, code: &str) -> Option<String> {
    let all = report["findings"].as_array().expect("findings");
    let found = all.iter().find(|finding| finding["code"] == code);
    found.map(|finding| finding["message"].to_string())
}

#[test]
#[ignore = "two boots of one machine with a slow adapter"]
fn less_than_was_bought_is_degraded_and_boot_does_not_judge_it() {
    let guest = boot("consumers");
    let report = guest.json("boot");
    assert_eq!(report["verdict"], "ready", "{report:#}");
    for name in ["status", "online", "check-degraded"] {
        let report = guest.json(name);
        assert_eq!(scene(name), "1", "{name}: {report:#}");
        let said = finding(&report, "port-degraded");
        let said = said.unwrap_or_else(|| panic!("{name}: {report:#}"));
        assert!(said.contains("100 Gb/s") && said.contains("200 Gb/s"), "{name}: {said}");
    }
    let said = finding(&guest.json("status"), "pcie-below-minimum").expect("the PCIe link");
    assert!(said.contains("x8") && said.contains("x16"), "{said}");
    let metrics = guest.file("metrics");
    assert!(
        metrics.lines().any(|line| line.contains("degraded") && line.ends_with(" 1")),
        "{metrics}"
    );
}

#[test]
#[ignore = "two boots of one machine with a slow adapter"]
fn a_port_that_polls_has_no_rate_to_judge() {
    let guest = boot("consumers");
    assert_eq!(guest.file("rate"), "10 Gb/sec (4X SDR)\n");
    let said = finding(&guest.json("down"), "pcie-below-minimum").expect("the PCIe link");
    assert!(said.contains("PCIe") && !said.contains("rate"), "{said}");
}
