//! Which diagnosis explains which, where both are made in one boot.

use crate::report::finding::Code;

/// Each cause with what follows from it. What is in no row together is told side by side.
pub const CAUSES: &[(Code, &[Code])] = &[
    (
        "configuration-invalid",
        &[
            "port-not-ready",
            "module-not-loaded",
            "netdev-late",
            "mount-before-ipoib",
            "netdev-admin-down",
            "not-as-expected",
        ],
    ),
    (
        "openibd-skips-inbox-modules",
        &[
            "openibd-failed",
            "module-not-loaded",
            "module-missing-for-kernel",
            "rdma-service-failed",
        ],
    ),
    (
        "openibd-disabled",
        &[
            "netdev-late",
            "port-not-ready",
            "module-loaded-late",
            "ifup-skipped-os-booting",
            "module-not-loaded",
            "mount-before-ipoib",
            "netdev-admin-down",
            "ifcfg-mismatch",
        ],
    ),
    (
        "ordering-cycle",
        &[
            "netdev-late",
            "port-not-ready",
            "ordering-missing",
            "module-not-loaded",
            "openibd-disabled",
            "mount-before-network",
            "mount-before-ipoib",
            "wait-online-timeout",
            "module-loaded-late",
        ],
    ),
    ("start-wait-deadlock", &["wait-online-timeout", "openibd-failed"]),
    (
        "module-load-interrupted",
        &[
            "driver-regression",
            "rdma-service-failed",
            "module-not-loaded",
            "not-as-expected",
            "port-not-ready",
        ],
    ),
    (
        "module-signature-refused",
        &[
            "openibd-failed",
            "module-not-loaded",
            "port-not-ready",
            "rdma-service-failed",
            "mount-before-ipoib",
            "not-as-expected",
        ],
    ),
    (
        "module-symbol-mismatch",
        &[
            "openibd-failed",
            "module-not-loaded",
            "rdma-service-failed",
            "mount-before-ipoib",
            "not-as-expected",
        ],
    ),
    (
        "module-missing-for-kernel",
        &[
            "openibd-failed",
            "module-not-loaded",
            "rdma-service-failed",
            "mount-before-ipoib",
            "not-as-expected",
        ],
    ),
    ("module-missing-in-initrd", &["rdma-service-failed"]),
    ("initrd-without-fabric", &["module-not-loaded", "mount-before-ipoib", "driver-regression"]),
    ("module-is-a-dummy", &["mount-before-ipoib", "mount-before-network", "not-as-expected"]),
    ("module-wrong-driver", &["module-not-loaded", "driver-regression", "not-as-expected"]),
    (
        "module-parameter",
        &["driver-regression", "openibd-failed", "module-not-loaded", "not-as-expected"],
    ),
    (
        "module-denied",
        &[
            "module-not-loaded",
            "module-loaded-late",
            "port-not-ready",
            "not-as-expected",
            "openibd-failed",
            "mount-before-ipoib",
        ],
    ),
    (
        "firmware-too-old",
        &[
            "driver-regression",
            "vf-probe-failed",
            "openibd-failed",
            "module-not-loaded",
            "not-as-expected",
        ],
    ),
    ("firmware-reset-pending", &["sriov-not-enabled-fw", "not-as-expected"]),
    (
        "firmware-fatal",
        &[
            "fw-init-timeout",
            "module-init-slow",
            "driver-regression",
            "vf-probe-failed",
            "port-not-ready",
            "module-not-loaded",
            "not-as-expected",
        ],
    ),
    (
        "fw-init-timeout",
        &[
            "driver-regression",
            "vf-probe-failed",
            "udev-timeout",
            "openibd-failed",
            "module-loaded-late",
            "module-init-slow",
            "module-not-loaded",
            "port-not-ready",
            "not-as-expected",
            "mount-before-ipoib",
        ],
    ),
    ("driver-unload-under-remote-root", &["driver-regression"]),
    (
        "pci-bar-unassigned",
        &["driver-regression", "port-not-ready", "module-not-loaded", "not-as-expected"],
    ),
    ("selinux-denies-subnet", &["no-subnet-manager", "port-not-ready", "opensm-misconfigured"]),
    ("vf-probe-failed", &["driver-regression", "not-as-expected"]),
    (
        "driver-regression",
        &[
            "module-init-slow",
            "module-not-loaded",
            "udev-timeout",
            "mount-before-ipoib",
            "wait-online-timeout",
            "not-as-expected",
            "port-not-ready",
        ],
    ),
    ("udev-timeout", &["module-not-loaded", "openibd-failed", "not-as-expected", "port-not-ready"]),
    (
        "module-init-slow",
        &[
            "openibd-failed",
            "rdma-service-failed",
            "module-not-loaded",
            "not-as-expected",
            "port-not-ready",
            "mount-before-ipoib",
        ],
    ),
    ("sriov-not-enabled-fw", &["vm-before-vf", "sriov-not-exposed-kernel", "not-as-expected"]),
    ("sriov-mmio", &["vf-probe-failed", "vm-before-vf", "driver-regression", "not-as-expected"]),
    ("sriov-not-exposed-kernel", &["vm-before-vf", "not-as-expected"]),
    ("iommu-off", &["vm-before-vf", "autostart-guest-on-vf", "not-as-expected"]),
    ("sriov-vf-unreachable", &["vm-before-vf"]),
    ("vf-setting-dropped", &["vf-guid-zero", "vf-policy-down", "not-as-expected"]),
    ("vf-setting-refused", &["vf-guid-zero", "vf-policy-down", "not-as-expected"]),
    (
        "vf-guid-zero",
        &[
            "opensm-virt-disabled",
            "vf-policy-down",
            "netdev-admin-down",
            "no-subnet-manager",
            "link-down-cable",
            "not-as-expected",
        ],
    ),
    ("vf-guid-duplicate", &["not-as-expected"]),
    (
        "vf-policy-down",
        &["opensm-virt-disabled", "netdev-admin-down", "link-down-cable", "not-as-expected"],
    ),
    ("umad-zero-guid", &["opensm-misconfigured", "rdma-service-failed", "no-subnet-manager"]),
    ("opensm-skipped", &["no-subnet-manager"]),
    ("opensm-partitions-rejected", &["module-load-order", "vf-policy-down"]),
    ("opensm-other-port", &["no-subnet-manager"]),
    ("opensm-misconfigured", &["no-subnet-manager", "rdma-service-failed"]),
    ("opensm-virt-disabled", &["link-down-cable", "netdev-admin-down", "no-subnet-manager"]),
    (
        "no-subnet-manager",
        &["port-not-active", "netdev-admin-down", "wait-online-timeout", "mount-before-ipoib"],
    ),
    (
        "link-down-cable",
        &["port-not-active", "netdev-admin-down", "wait-online-timeout", "mount-before-ipoib"],
    ),
    ("port-not-active", &["netdev-admin-down", "wait-online-timeout", "mount-before-ipoib"]),
    (
        "module-not-loaded",
        &["rdma-service-failed", "opensm-misconfigured", "mount-before-ipoib", "not-as-expected"],
    ),
    (
        "openibd-failed",
        &[
            "module-not-loaded",
            "rdma-service-failed",
            "mount-before-ipoib",
            "netdev-admin-down",
            "not-as-expected",
        ],
    ),
    ("openibd-alias-broken", &["mount-before-ipoib"]),
    ("port-degraded", &["not-as-expected"]),
    ("mlnx-interface-mgr-armed", &["netdev-admin-down"]),
    (
        "port-not-ready",
        &["netdev-late", "mount-before-ipoib", "wait-online-timeout", "not-as-expected"],
    ),
    ("netdev-late", &["netdev-admin-down", "mount-before-ipoib", "wait-online-timeout"]),
    ("module-load-order", &["mount-before-ipoib"]),
    ("module-loaded-late", &["ifup-skipped-os-booting", "mount-before-ipoib"]),
    ("netdev-renamed", &["ifcfg-mismatch", "module-loaded-late", "mount-before-ipoib"]),
    ("ipoib-parent-down", &["netdev-admin-down", "mount-before-ipoib"]),
    (
        "network-stack-bug",
        &["netdev-admin-down", "wait-online-timeout", "mount-before-ipoib", "ifcfg-mismatch"],
    ),
    ("ifcfg-mismatch", &["mount-before-ipoib", "wait-online-timeout"]),
    ("netdev-admin-down", &["mount-before-ipoib"]),
    ("autostart-guest-on-vf", &["vm-before-vf"]),
    // LNet is both: a service without an order, and what mounts.
    ("ordering-missing", &["mount-before-ipoib"]),
    ("mount-before-ipoib", &["mount-before-network"]),
    ("wait-online-timeout", &["mount-before-network"]),
];

/// True if `cause` explains `effect`.
pub fn explains(cause: &str, effect: &str) -> bool {
    CAUSES.iter().any(|(code, effects)| *code == cause && effects.contains(&effect))
}

/// Pairs that are made together, and of which neither explains the other, even over others.
pub const BESIDE: &[(Code, Code)] = &[
    ("driver-regression", "link-down-cable"),
    ("iommu-off", "sriov-vf-unreachable"),
    ("no-subnet-manager", "link-down-cable"),
];

/// True if `cause` explains `effect`, perhaps over others.
fn leads_to(cause: &str, effect: &str) -> bool {
    let of_it = CAUSES.iter().filter(|(code, _)| *code == cause);
    let mut next = of_it.flat_map(|(_, effects)| *effects);
    next.any(|next| *next == effect || leads_to(next, effect))
}

/// True if it is known of two diagnoses which explains which, or that neither does.
pub fn is_decided(one: &str, other: &str) -> bool {
    let is_pair = |(a, b): &(Code, Code)| (*a, *b) == (one, other) || (*a, *b) == (other, one);
    one == other || leads_to(one, other) || leads_to(other, one) || BESIDE.iter().any(is_pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rank::ranked;
    use crate::check::rules;
    use crate::check::rules::testing::{host, port};
    use crate::report::finding::{Confidence, Finding, Severity};
    use crate::report::status::Role;

    fn finding(code: Code) -> Finding {
        Finding::new(code, Severity::Error, Confidence::Medium, "x")
    }

    #[test]
    fn every_pair_is_ranked_cause_first_whichever_rule_comes_first() {
        for (cause, effects) in CAUSES {
            assert!(rules::rule(cause).is_some(), "{cause} is no rule");
            assert_eq!(CAUSES.iter().filter(|(code, _)| code == cause).count(), 1, "{cause}");
            for effect in *effects {
                assert!(rules::rule(effect).is_some(), "{cause} causes {effect}, which is no rule");
                for pair in [[cause, effect], [effect, cause]] {
                    let told = ranked(pair.map(|code| finding(code)).to_vec());
                    let order: Vec<Code> = told.iter().map(|f| f.code).collect();
                    assert_eq!(order, [*cause, *effect]);
                    assert_eq!(told.get(1).and_then(|f| f.caused_by), Some(*cause));
                }
            }
        }
    }

    #[test]
    fn nothing_explains_itself_even_over_others() {
        let mut unexplained: Vec<Code> = rules::ALL.iter().map(|rule| rule.code).collect();
        // Take away what nothing that is left explains, until nothing is left.
        while !unexplained.is_empty() {
            let before = unexplained.len();
            let left = unexplained.clone();
            unexplained.retain(|code| left.iter().any(|other| explains(other, code)));
            assert!(unexplained.len() < before, "a circle of causes: {unexplained:?}");
        }
    }

    fn logs(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(dir).expect("a folder") {
            let path = entry.expect("entry").path();
            if path.is_dir() { paths.extend(logs(&path)) } else { paths.push(path) }
        }
        paths.sort();
        paths
    }

    #[test]
    fn of_each_pair_that_is_made_together_it_is_known_which_explains_which() {
        let mut seen = std::collections::BTreeSet::new();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut look = |name: &str, boot: &crate::check::evidence::Boot| {
            let made = crate::check::rank::judge(boot);
            let made = made.iter().filter(|f| f.severity != Severity::Info).map(|f| f.code);
            let codes: Vec<Code> = made.collect();
            for one in &codes {
                for other in &codes {
                    seen.insert((*one, *other));
                    assert!(is_decided(one, other), "{name}: {one}, {other}");
                }
            }
        };
        for path in logs(&root.join("tests/tree/logs")) {
            let mut intake = crate::check::evidence::Intake::new(rules::needles());
            intake.read("log", &mut std::fs::read(&path).expect("log").as_slice());
            for boot in &intake.finish().boots {
                look(&path.display().to_string(), boot);
            }
        }
        let down = port("a", "down", "polling", Role::Expected);
        let init = port("b", "init", "linkup", Role::Expected);
        let named = ["a", "b"].map(|device| (device, Severity::Warning));
        look("a host", &host(vec![down, init], &named));
        assert!(!is_decided("iommu-off", "opensm-skipped"));
        for pair in BESIDE {
            assert!(seen.contains(pair), "no log makes both of {pair:?}");
            assert!(!leads_to(pair.0, pair.1) && !leads_to(pair.1, pair.0), "{pair:?}");
        }
    }

    #[test]
    fn the_known_chains_hold() {
        for (cause, effect) in [
            ("module-denied", "module-not-loaded"),
            ("driver-regression", "port-not-ready"),
            ("fw-init-timeout", "port-not-ready"),
            ("vf-probe-failed", "not-as-expected"),
            ("port-not-ready", "mount-before-ipoib"),
            ("ordering-missing", "mount-before-ipoib"),
            ("vf-setting-dropped", "vf-guid-zero"),
            ("vf-setting-dropped", "vf-policy-down"),
            ("vf-setting-refused", "vf-guid-zero"),
        ] {
            assert!(explains(cause, effect) && !explains(effect, cause), "{cause}, {effect}");
        }
    }

    #[test]
    fn what_explains_the_account_of_the_node_is_as_grave() {
        let mild = Finding { severity: Severity::Warning, ..finding("udev-timeout") };
        let told = ranked(vec![finding("not-as-expected"), mild]);
        let told: Vec<_> = told.iter().map(|f| (f.code, f.severity)).collect();
        let both = ["udev-timeout", "not-as-expected"].map(|code| (code, Severity::Error));
        assert_eq!(told, both);
    }

    #[test]
    fn advice_explains_no_failure() {
        let mild = Finding { severity: Severity::Info, ..finding("module-denied") };
        let told = ranked(vec![mild, finding("module-not-loaded")]);
        assert_eq!(told.first().map(|f| (f.code, f.caused_by)), Some(("module-not-loaded", None)));
    }
}
