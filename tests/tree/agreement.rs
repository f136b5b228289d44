//! Whatever a host shows: the verbs never disagree on it.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::host::{Host, PortSpec};

/// An adapter and what the configuration says of it.
#[derive(Debug, Clone)]
struct Adapter {
    /// It is on the bus.
    present: bool,
    driver: Option<&'static str>,
    rdma: bool,
    ethernet: bool,
    netdev: bool,
    named: bool,
    /// It is listed, and whether as optional.
    listed: Option<bool>,
    /// How many VFs are planned.
    vfs: Option<u8>,
}

#[derive(Debug, Clone)]
struct Node {
    adapters: Vec<Adapter>,
    /// Which modules are not loaded.
    missing: Vec<&'static str>,
    deny_driver: bool,
    mtu: bool,
    bad_configuration: bool,
    /// How the last boot ended.
    boot: Option<&'static str>,
}

fn adapter() -> impl Strategy<Value = Adapter> {
    let driver = prop_oneof![
        6 => Just(Some("mlx5_core")),
        1 => Just(None),
        1 => Just(Some("vfio-pci")),
    ];
    (
        prop::bool::weighted(0.9),
        driver,
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.9),
        prop_oneof![3 => Just(None), 1 => any::<bool>().prop_map(Some)],
        prop_oneof![3 => Just(None), 1 => (0u8..4).prop_map(Some)],
    )
        .prop_map(|(present, driver, rdma, ethernet, netdev, named, listed, vfs)| Adapter {
            present,
            driver,
            rdma,
            ethernet,
            netdev,
            named,
            listed,
            vfs,
        })
}

fn node() -> impl Strategy<Value = Node> {
    let rare = || prop::bool::weighted(0.1);
    let missing = prop_oneof![
        4 => Just(Vec::new()),
        1 => prop::sample::subsequence(vec!["ib_umad", "ib_ipoib"], 1..=2),
    ];
    let boot = prop_oneof![Just(None), Just(Some("ready")), Just(Some("not-ready"))];
    (prop::collection::vec(adapter(), 0..4), missing, rare(), rare(), rare(), boot).prop_map(
        |(adapters, missing, deny_driver, mtu, bad_configuration, boot)| Node {
            adapters,
            missing,
            deny_driver,
            mtu,
            bad_configuration,
            boot,
        },
    )
}

fn lay_out(node: &Node) -> Host {
    let mut host = Host::new();
    let mut text = String::new();
    // The rows choose only where they are told to.
    if node.adapters.first().is_some_and(|adapter| adapter.listed.is_some()) {
        text.push_str("boot.ports = \"listed\"\n");
    }
    for module in &node.missing {
        host.remove(&format!("sys/module/{module}"));
    }
    for (at, adapter) in node.adapters.iter().enumerate() {
        let pci = format!("0000:{:02x}:00.0", 16 + at);
        if adapter.present {
            host.function(&pci, "15b3:101b", "020700", adapter.driver);
            host.file(&format!("sys/bus/pci/devices/{pci}/sriov_totalvfs"), "8\n");
            host.file(&format!("sys/bus/pci/devices/{pci}/mlx5_num_vfs"), "0\n");
        }
        if adapter.present && adapter.driver == Some("mlx5_core") && adapter.rdma {
            let (guid, netdev) = (format!("b859:9f03:0013:{at:04x}"), format!("ib{at}"));
            let port = PortSpec {
                guid: &guid,
                link_layer: if adapter.ethernet { "Ethernet" } else { "InfiniBand" },
                netdev: (adapter.netdev && !adapter.ethernet).then_some(netdev.as_str()),
                named: adapter.named,
                ..PortSpec::default()
            };
            host.rdma(&pci, &format!("mlx5_{at}"), &guid, &[port]);
        }
        if let Some(optional) = adapter.listed {
            text.push_str(&format!("[[port]]\npci = \"{pci}\"\nrequired = {}\n", !optional));
        }
        if let Some(vfs) = adapter.vfs {
            text.push_str(&format!(
                "[[pf]]\npci = \"{pci}\"\nvfs = {vfs}\nguid.template = \"02:00:00:00:{at:02x}:12:{{kind:8}}:{{vf:8}}\"\n"
            ));
        }
    }
    if node.mtu {
        text.push_str("[[interface]]\nmatch.name = \"ib*\"\nmtu = 2040\n");
    }
    if node.deny_driver {
        host.file("etc/modprobe.d/site.conf", "blacklist mlx5_core\n");
    }
    if node.bad_configuration {
        text.push_str("[boot]\ndeadlin = \"5min\"\n");
    }
    host.file("etc/ibprov/ibprov.toml", &text);
    if let Some(verdict) = node.boot {
        let code = if verdict == "ready" { 0 } else { 3 };
        let report = format!(r#"{{"schema":2,"verdict":"{verdict}","exit_code":{code}}}"#);
        host.file("run/ibprov/boot.json", &report);
    }
    host
}

/// The exit code and the report of a verb.
fn run(host: &Host, verb: &[&str]) -> (i32, Value) {
    let out = host.ibprov(&[verb, &["--format", "json"]].concat());
    let code = out.status.code().expect("exit code");
    (code, serde_json::from_slice(&out.stdout).unwrap_or(Value::Null))
}

/// The codes of what `status` finds, without what is past.
fn codes(status: &Value) -> Vec<String> {
    let findings = status["findings"].as_array().expect("findings").iter();
    let codes = findings.map(|f| f["code"].as_str().expect("code").to_owned());
    codes.filter(|code| code != "boot-failed").collect()
}

fn agree(node: &Node) -> Result<(), TestCaseError> {
    let host = lay_out(node);
    let (status_code, status) = run(&host, &["status"]);
    let (check_code, check) = run(&host, &["check"]);
    let (boot_code, boot) = run(&host, &["boot", "--dry-run"]);
    let (apply_code, _) = run(&host, &["apply", "--dry-run"]);
    let (plan_code, plan) = run(&host, &["plan"]);
    let codes = codes(&status);
    let is_about = |prefix: &str| codes.iter().any(|code| code.starts_with(prefix));

    // The exit code is the verdict's, and the headline's.
    prop_assert_eq!(status["exit_code"].as_i64(), Some(i64::from(status_code)));
    let text = host.show(&["status"]);
    let good = text.starts_with("ready: ") || text.starts_with("no InfiniBand: ");
    prop_assert_eq!(good, status_code == 0, "{}", text);

    if node.bad_configuration {
        prop_assert_eq!((status_code, boot_code, apply_code, plan_code), (2, 2, 2, 2), "{}", text);
        prop_assert_ne!(check_code, 0);
        return Ok(());
    }
    // A dry run has something to do or to wait for exactly where status finds something
    // that is not as it is meant to be.
    let about_vfs = is_about("vf-plan") || is_about("vf-not") || is_about("vf-deferred");
    let is_pending = is_about("port-") || is_about("module-") || about_vfs;
    let would = boot["steps"].as_array().is_some_and(|steps| !steps.is_empty());
    let denied = boot["denied"].as_array().is_some_and(|denied| !denied.is_empty());
    if boot_code == 0 && !denied {
        prop_assert!(!is_pending, "boot would do nothing, and status says {:?}", codes);
    }
    if !is_pending && !would {
        prop_assert_eq!(boot_code, 0, "{:?}: {:#}", codes, boot);
    }
    // VFs, as plan has them.
    prop_assert_eq!(plan_code != 0, about_vfs, "{:?}: {:#}", codes, plan);
    prop_assert_eq!(plan_code, apply_code);
    // What status calls not ready, check does not call healthy, and names no fewer ports.
    let failed = check["verdict"] == "healthy";
    if status_code == 3 {
        prop_assert!(!failed, "{:#}", check);
        prop_assert_ne!(check_code, 0);
    }
    Ok(())
}

#[test]
fn the_verbs_never_disagree_on_a_node() {
    let mut runner = TestRunner::new(Config { cases: 24, ..Config::default() });
    runner.run(&node(), |node| agree(&node)).expect("agreement");
}
