//! What check says of the ports of VFs of this host.

use serde_json::Value;

use crate::host::{Host, PF, PortSpec};

const INIT: (&str, &str, &str) = ("2: INIT", "5: LinkUp", "0xffff");

fn json(host: &Host, verb: &[&str]) -> Value {
    let out = host.ibprov(&[verb, &["--format", "json"]].concat());
    serde_json::from_slice(&out.stdout).expect("JSON")
}

/// A PF that is active and its VFs, whose ports are in `state`; the plan is met.
fn vfs(state: (&str, &str, &str), policy: &str) -> Host {
    let mut host = Host::healthy();
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "16\n");
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_numvfs"), "2\n");
    for index in 0..2 {
        let vf = format!("0000:4b:00.{}", index + 1);
        host.function(&vf, "15b3:101c", "020700", Some("mlx5_core"));
        host.link(&format!("sys/bus/pci/devices/{vf}/physfn"), &format!("../{PF}"));
        host.link(&format!("sys/bus/pci/devices/{PF}/virtfn{index}"), &format!("../{vf}"));
        let ofed = format!("sys/bus/pci/devices/{PF}/sriov/{index}");
        host.file(&format!("{ofed}/node"), &format!("02:00:00:00:00:12:00:0{index}\n"));
        host.file(&format!("{ofed}/port"), &format!("02:00:00:00:00:12:01:0{index}\n"));
        host.file(&format!("{ofed}/policy"), &format!("{policy}\n"));
        let (guid, netdev) = (format!("0200:0000:0012:010{index}"), format!("ib{}", index + 1));
        let port = PortSpec {
            guid: &guid,
            netdev: Some(&netdev),
            state: state.0,
            physical: state.1,
            lid: state.2,
            ..PortSpec::default()
        };
        let node = format!("0200:0000:0012:000{index}");
        host.rdma(&vf, &format!("mlx5_{}", index + 1), &node, &[port]);
        host.file(&format!("sys/bus/pci/devices/{vf}/net/{netdev}/carrier"), "0\n");
    }
    let link_state = policy.to_lowercase();
    let plan = format!(
        "[[pf]]\npci = \"{PF}\"\nvfs = 2\nlink-state = \"{link_state}\"\nguid.template = \"02:00:00:00:00:12:{{kind:8}}:{{vf:8}}\"\n"
    );
    host.file("etc/ibprov/ibprov.toml", &plan);
    host
}

/// Severity and code of each finding of check.
fn codes(host: &Host) -> Vec<String> {
    let check = json(host, &["check"]);
    let findings = check["findings"].as_array().expect("findings").iter();
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    findings.map(|f| format!("{} {}", word(&f["severity"]), word(&f["code"]))).collect()
}

#[test]
fn vfs_that_the_subnet_manager_does_not_serve_are_told_from_a_port_without_one() {
    for state in [("1: DOWN", "5: LinkUp", "0xffff"), INIT] {
        let host = vfs(state, "Follow");
        assert_eq!(codes(&host), ["error opensm-virt-disabled"], "{state:?}");
        let shown = host.show(&["check"]);
        assert!(!shown.contains("enable --now opensm"), "{shown}");
    }
    // Nor is it taken for a second port without a cable.
    let disabled = vfs(("1: DOWN", "3: Disabled", "0xffff"), "Follow");
    assert_eq!(codes(&disabled), ["error opensm-virt-disabled"]);
}

#[test]
fn vfs_are_down_by_right_where_the_plan_or_the_port_of_their_pf_is() {
    let down = vfs(("1: DOWN", "3: Disabled", "0xffff"), "Down");
    assert_eq!(codes(&down), ["info healthy"]);
    let dark = vfs(("1: DOWN", "2: Polling", "0xffff"), "Follow");
    let port = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/ports/1");
    for (file, text) in
        [("state", "1: DOWN\n"), ("phys_state", "2: Polling\n"), ("lid", "0xffff\n")]
    {
        dark.file(&format!("{port}/{file}"), text);
    }
    dark.file(&format!("sys/bus/pci/devices/{PF}/net/ib0/carrier"), "0\n");
    assert_eq!(codes(&dark), ["error link-down-cable"]);
}
