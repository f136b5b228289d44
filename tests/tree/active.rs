//! Expected ports that are named and not Active: status, metrics and check say
//! the same of them. Ports of VFs.

use expect_test::expect;
use serde_json::Value;

use crate::host::{Host, PF, PortSpec};

pub const DARK: (&str, &str, &str) = ("1: DOWN", "2: Polling", "0xffff");
pub const LIT: (&str, &str, &str) = ("4: ACTIVE", "5: LinkUp", "0x7");
const INIT: (&str, &str, &str) = ("2: INIT", "5: LinkUp", "0xffff");

fn pci(rail: usize) -> String {
    format!("0000:{:02x}:00.0", 0x10 + rail)
}

/// A node with an adapter for each of these states of a port.
pub fn rails(states: &[(&str, &str, &str)]) -> Host {
    let mut host = Host::healthy();
    host.remove(&format!("sys/bus/pci/devices/{PF}"));
    host.remove("sys/class/net/ib0");
    for (rail, (state, physical, lid)) in states.iter().enumerate() {
        let (guid, netdev) = (format!("b859:9f03:0013:{rail:04x}"), format!("ib{rail}"));
        host.function(&pci(rail), "15b3:101b", "020700", Some("mlx5_core"));
        let port = PortSpec {
            guid: &guid,
            netdev: Some(&netdev),
            state,
            physical,
            lid,
            ..PortSpec::default()
        };
        host.rdma(&pci(rail), &format!("mlx5_{rail}"), &guid, &[port]);
        let carrier = if state.contains("ACTIVE") { "1\n" } else { "0\n" };
        host.file(&format!("sys/bus/pci/devices/{}/net/{netdev}/carrier", pci(rail)), carrier);
    }
    host
}

pub fn json(host: &Host, verb: &[&str]) -> Value {
    let out = host.ibprov(&[verb, &["--format", "json"]].concat());
    serde_json::from_slice(&out.stdout).expect("JSON")
}

/// The exit code, and severity and objects of each finding with this code.
fn told(report: &Value) -> (i64, Vec<String>) {
    let findings = report["findings"].as_array().expect("findings").iter();
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let of = findings.filter(|finding| finding["code"] == "port-not-active");
    let of = of.map(|finding| {
        let objects = text(&finding["object"]);
        let ports: Vec<&str> =
            objects.split(", ").map(|o| o.split(['/', ' ']).next().expect("a word")).collect();
        format!("{} {}", text(&finding["severity"]), ports.join(" "))
    });
    (report["exit_code"].as_i64().expect("exit code"), of.collect())
}

/// That status, check and metrics say this of the node: the exit code, and of each
/// finding its severity and RDMA devices.
#[track_caller]
fn assert_told(host: &Host, code: i64, want: &[&str]) {
    let status = told(&json(host, &["status"]));
    let mut devices: Vec<String> = Vec::new();
    for finding in want {
        let (severity, ports) = finding.split_once(' ').expect("severity and ports");
        devices.extend(ports.split(' ').map(|port| format!("{severity} {port}")));
    }
    assert_eq!(status, (code, devices), "status");
    let check = json(host, &["check"]);
    assert_eq!(told(&check), (code, want.iter().map(|w| (*w).to_owned()).collect()), "{check:#}");
    let metrics = host.show(&["metrics"]);
    assert!(metrics.contains(&format!("\nibprov_node_exit_code {code}\n")), "{metrics}");
}

#[test]
fn one_dark_rail_of_four_is_an_exception_in_every_verb() {
    let host = rails(&[LIT, LIT, DARK, LIT]);
    assert_told(&host, 1, &["warning mlx5_2"]);
    expect![[r#"
        ready with exceptions: 3 of 4 expected ports active
          warning: mlx5_2/1: no link: no cable, or the other end is down (Polling)
            do: check the cable and the switch port
            run: mlxlink -d 0000:12:00.0 || mstlink -d 0000:12:00.0
            do: if nothing is meant to be connected to it: `required = false` in its [[port]], or boot.ignore (man 5 ibprov.toml)
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE    LID  Gb/s     NOTE
          mlx5_0/1  0000:10:00.0  ib0     active   7    200 HDR
          mlx5_1/1  0000:11:00.0  ib1     active   7    200 HDR
        ~ mlx5_2/1  0000:12:00.0  ib2     polling  -    -
          mlx5_3/1  0000:13:00.0  ib3     active   7    200 HDR
        exit 1
    "#]].assert_eq(&host.show(&["status"]));
    expect![[r#"
        verdict: exceptions (errors: 0, warnings: 1)
        read: no log

        warning: link-down-cable (confidence high)
          mlx5_2/1 has no physical link: the cable, the module or the peer is the cause.
          Evidence:
            tree: mlx5_2/1: state DOWN, physical state Polling, sm_lid 1
          Look:
            do: check the cable and the switch port
            run: mlxlink -d 0000:12:00.0 || mstlink -d 0000:12:00.0
          Fix now:
            do: reseat the cable, or replace it

            warning: port-not-active (confidence high, caused by link-down-cable)
              mlx5_2/1 (0000:12:00.0): no link: no cable, or the other end is down (Polling).
              Fix permanently:
                do: if nothing is meant to be connected to it: `required = false` in its [[port]], or boot.ignore (man 5 ibprov.toml)
        exit 1
    "#]].assert_eq(&host.show(&["check"]));
}

/// Only the boot and the names of netdevs have times.
#[test]
fn the_picture_of_a_tree_has_the_boot_that_ran_and_the_present_state_of_each_port() {
    let host = rails(&[LIT, DARK]);
    let boot = r#"{"schema":1,"report":"boot","verdict":"ready","exit_code":0,"started_usec":2000000,"finished_usec":9000000}"#;
    host.file("run/ibprov/boot.json", boot);
    let svg = host.show(&["check", "--svg", "-"]);
    for said in ["active now", "polling now", "<title>ibprov.service: up at 9.000 s</title>"] {
        assert!(svg.contains(said), "{said}: {svg}");
    }
    assert!(!svg.contains("never ran"), "{svg}");
}

#[test]
fn with_all_cables_out_the_node_is_not_ready() {
    let host = rails(&[DARK, DARK]);
    assert_told(&host, 3, &["error mlx5_0 mlx5_1"]);
    expect![[r#"
        NOT READY: 0 of 2 expected ports active
          error: mlx5_0/1, mlx5_1/1: no link: no cable, or the other end is down (Polling)
            do: check the cable and the switch port
            run: mlxlink -d 0000:10:00.0 || mstlink -d 0000:10:00.0
            do: if nothing is meant to be connected to it: `required = false` in its [[port]], or boot.ignore (man 5 ibprov.toml)
            run: mlxlink -d 0000:11:00.0 || mstlink -d 0000:11:00.0
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE    LID  Gb/s  NOTE
        ! mlx5_0/1  0000:10:00.0  ib0     polling  -    -
        ! mlx5_1/1  0000:11:00.0  ib1     polling  -    -
        exit 3
    "#]].assert_eq(&host.show(&["status"]));
    expect![[r#"
        verdict: not-ready (errors: 1, warnings: 0)
        read: no log

        error: link-down-cable (confidence high)
          2 ports (mlx5_0/1, mlx5_1/1) have no physical link: the cable, the module or the peer is the cause.
          Evidence:
            tree: mlx5_0/1: state DOWN, physical state Polling, sm_lid 1
            tree: mlx5_1/1: state DOWN, physical state Polling, sm_lid 1
          Look:
            do: check the cable and the switch port
            run: mlxlink -d 0000:10:00.0 || mstlink -d 0000:10:00.0
            run: mlxlink -d 0000:11:00.0 || mstlink -d 0000:11:00.0
          Fix now:
            do: reseat the cable, or replace it

            error: port-not-active (confidence high, caused by link-down-cable)
              mlx5_0/1 (0000:10:00.0), mlx5_1/1 (0000:11:00.0): no link: no cable, or the other end is down (Polling).
              Fix permanently:
                do: if nothing is meant to be connected to it: `required = false` in its [[port]], or boot.ignore (man 5 ibprov.toml)
        exit 3
    "#]].assert_eq(&host.show(&["check"]));
    let metrics = host.show(&["metrics"]);
    for line in ["ibprov_ports_expected 2", "ibprov_ports_ready 2", "ibprov_ports_active 0"] {
        assert!(metrics.contains(&format!("\n{line}\n")), "{metrics}");
    }
    // boot does not wait for cables.
    assert!(host.show(&["boot", "--dry-run"]).ends_with("exit 0\n"));
}

/// The node has no InfiniBand, whatever else it has.
#[test]
fn an_active_roce_port_does_not_stand_for_the_required_infiniband_ports() {
    let mut host = crate::roce::ready();
    let link = [("state", DARK.0), ("phys_state", DARK.1), ("lid", DARK.2)];
    for (file, value) in link {
        let path = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/ports/1/{file}");
        host.file(&path, &format!("{value}\n"));
    }
    host.file(&format!("sys/bus/pci/devices/{PF}/net/ib0/carrier"), "0\n");
    assert_told(&host, 3, &["error mlx5_0"]);
    // With one that is required and active the other is an exception.
    host.function("0000:5e:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    let port = PortSpec { guid: "b859:9f03:0013:0009", netdev: Some("ib9"), ..PortSpec::default() };
    host.rdma("0000:5e:00.0", "mlx5_9", "b859:9f03:0013:0009", &[port]);
    assert_told(&host, 1, &["warning mlx5_0"]);
}

#[test]
fn each_state_that_is_not_active_is_named() {
    for (state, words) in [
        (DARK, "no link: no cable, or the other end is down (Polling)"),
        (("1: DOWN", "3: Disabled", "0xffff"), "no link: the port is disabled (Disabled)"),
        (INIT, "not active: no subnet manager configured it (Initializing)"),
        (
            ("3: ARMED", "5: LinkUp", "0x7"),
            "not active: the subnet manager has not finished configuring the port (Armed)",
        ),
        (("4: ACTIVE", "5: LinkUp", "0x0"), "not active: the port is Active without a usable LID"),
        (
            ("4: ACTIVE", "5: LinkUp", "0xc000"),
            "not active: the port is Active without a usable LID",
        ),
    ] {
        let host = rails(&[state, LIT]);
        assert_told(&host, 1, &["warning mlx5_0"]);
        let shown = host.show(&["status"]);
        assert!(shown.contains(&format!("warning: mlx5_0/1: {words}\n")), "{shown}");
    }
    // Active, with the link lost for a moment.
    assert_told(&rails(&[("5: ACTIVE_DEFER", "5: LinkUp", "0x7")]), 0, &[]);
}

/// Two ports of a host can be in two fabrics, and a second subnet manager in one does harm.
#[test]
fn a_second_subnet_manager_is_not_advised() {
    let beside = rails(&[INIT, LIT]);
    let known = rails(&[INIT]);
    let port = format!("sys/bus/pci/devices/{}/infiniband/mlx5_0/ports/1", pci(0));
    known.file(&format!("{port}/sm_lid"), "0x4\n");
    for verb in [["status"], ["check"]] {
        let said = beside.show(&verb);
        assert!(said.contains("in the fabric of mlx5_1"), "{said}");
        assert!(!said.contains("systemctl start opensm"), "{said}");
        let said = known.show(&verb);
        assert!(said.contains("the last one had LID 4"), "{said}");
        assert!(!said.contains("opensm"), "{said}");
    }
}

/// LIDs of Omni-Path have 32 bits; those of InfiniBand have 16.
#[test]
fn an_extended_lid_is_one_on_omni_path_only() {
    for (driver, code) in [("hfi1", 0), ("mlx5_core", 3)] {
        let mut host = rails(&[]);
        host.function(&pci(0), "8086:24f0", "020800", Some(driver));
        let port = PortSpec { lid: "0x10007", ..PortSpec::default() };
        host.rdma(&pci(0), "hfi1_0", "0011:7501:0165:9b46", &[port]);
        let status = json(&host, &["status"]);
        assert_eq!(told(&status).0, code, "{driver}: {status:#}");
    }
}

/// By intention: no rung of a netdev is missing, and a port says how its link is.
#[test]
fn without_ipoib_no_netdev_is_missing() {
    let host = rails(&[LIT, INIT]);
    host.remove("sys/class/net/ib0");
    host.remove("sys/class/net/ib1");
    host.remove(&format!("sys/bus/pci/devices/{}/net", pci(0)));
    host.remove(&format!("sys/bus/pci/devices/{}/net", pci(1)));
    host.file("etc/ibprov/ibprov.toml", "[modules]\nexclude = [\"ib_ipoib\"]\n");
    let text = String::from_utf8(host.ibprov(&["status"]).stdout).expect("UTF-8");
    let (_, table) = text.split_once("  PORT").expect("a table");
    expect![[r#"
              PCI           NETDEV  STATE         LID  Gb/s     NOTE
          mlx5_0/1  0000:10:00.0  -       active        7    200 HDR
        ~ mlx5_1/1  0000:11:00.0  -       initializing  -    200 HDR
    "#]]
    .assert_eq(table);
    let ladder = &json(&host, &["status"])["hcas"][0]["ports"][0]["ladder"];
    expect![[
        r#"{"missing":null,"reached":["pci","driver","rdma","link","active"],"reason":null}"#
    ]]
    .assert_eq(&ladder.to_string());
}

#[test]
fn fewer_than_at_least_are_not_enough() {
    let at_least = |count: u8| {
        let host = rails(&[LIT, DARK, LIT, DARK]);
        host.file("etc/ibprov/ibprov.toml", &format!("boot.at-least = {count}\n"));
        host
    };
    assert_told(&at_least(2), 1, &["warning mlx5_1 mlx5_3"]);
    assert_told(&at_least(3), 3, &["error mlx5_1 mlx5_3"]);
}

#[test]
fn a_port_that_is_meant_to_be_dark_is_a_note() {
    let host = rails(&[LIT, DARK]);
    let optional = format!("[[port]]\npci = \"{}\"\nrequired = false\n", pci(1));
    host.file("etc/ibprov/ibprov.toml", &optional);
    assert_told(&host, 0, &["info mlx5_1"]);
    expect![[r#"
        ready: 1 of 2 expected ports active
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE    LID  Gb/s     NOTE
          mlx5_0/1  0000:10:00.0  ib0     active   7    200 HDR
          mlx5_1/1  0000:11:00.0  ib1     polling  -    -
        note: mlx5_1/1: no link (optional): no cable, or the other end is down (Polling)
        exit 0
    "#]]
    .assert_eq(&host.show(&["status"]));
    // It is not counted on, though it is the only one that is active.
    let host = rails(&[DARK, LIT]);
    host.file("etc/ibprov/ibprov.toml", &optional);
    assert_told(&host, 3, &["error mlx5_0"]);
    let host = rails(&[LIT, DARK]);
    host.file("etc/ibprov/ibprov.toml", &format!("boot.ignore = [\"{}\"]\n", pci(1)));
    assert_told(&host, 0, &[]);
    let shown = host.show(&["status", "-v"]);
    assert!(shown.starts_with("ready: 1 of 1 expected ports active\n"), "{shown}");
    assert!(shown.contains("polling  -    -        ignored: boot.ignore\n"), "{shown}");
}

/// A copy of a tree need not have what the kernel reads from the firmware.
#[test]
fn a_state_that_was_not_copied_is_not_judged() {
    let without = |rail: usize| {
        let host = rails(&[LIT, LIT]);
        let device = format!("sys/bus/pci/devices/{}/infiniband/mlx5_{rail}", pci(rail));
        host.remove(&format!("{device}/ports/1/state"));
        host.remove(&format!("{device}/ports/1/phys_state"));
        host
    };
    let host = without(0);
    expect![[r#"
        ready: 1 of 2 expected ports active, 1 not judged
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE    LID  Gb/s     NOTE
        ~ mlx5_0/1  0000:10:00.0  ib0     unknown  7    -        its state is not reported
          mlx5_1/1  0000:11:00.0  ib1     active   7    200 HDR
        note: mlx5_0/1: not judged: the copy does not show its state
        exit 0
    "#]]
    .assert_eq(&host.show(&["status"]));
    let host = rails(&[LIT]);
    let device = format!("sys/bus/pci/devices/{}/infiniband/mlx5_0", pci(0));
    host.remove(&format!("{device}/ports/1/state"));
    expect![[r#"
        UNKNOWN: 0 of 1 expected ports active, 1 not judged
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE    LID  Gb/s     NOTE
        ~ mlx5_0/1  0000:10:00.0  ib0     unknown  7    200 HDR  its state is not reported
        note: mlx5_0/1: not judged: the copy does not show its state
        exit 2
    "#]]
    .assert_eq(&host.show(&["status"]));
    expect![[r#"
        verdict: unknown (errors: 0, warnings: 0)
        read: no log

        info: port-not-judged (confidence high)
          mlx5_0/1 (0000:10:00.0): not judged: the copy does not show its state.
        exit 2
    "#]]
    .assert_eq(&host.show(&["check"]));
}

/// A PF that is active and its VFs, whose ports are in `state`; the plan is met.
pub fn vfs(state: (&str, &str, &str), policy: &str) -> Host {
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
    let told = ["warning opensm-virt-disabled", "warning vf-port-not-active"];
    // Nor is it taken for a second port without a cable.
    let disabled = ("1: DOWN", "3: Disabled", "0xffff");
    for state in [("1: DOWN", "5: LinkUp", "0xffff"), INIT, disabled] {
        for policy in ["Follow", "Up"] {
            let host = vfs(state, policy);
            assert_eq!(codes(&host), told, "{state:?}");
            let shown = host.show(&["check"]);
            assert!(!shown.contains("enable --now opensm"), "{shown}");
        }
    }
}

#[test]
fn ports_of_vfs_beside_an_active_one_are_exceptions_in_every_verb() {
    let host = vfs(("1: DOWN", "5: LinkUp", "0xffff"), "Follow");
    expect![[r#"
        ready with exceptions: 1 of 1 expected ports active, 2 of 2 VFs as planned
          warning: mlx5_1/1 (0000:4b:00.1), mlx5_2/1 (0000:4b:00.2): Down, although the port of its PF is Active: the subnet manager probably serves no virtual ports
            do: ask which subnet manager it is: sminfo -C mlx5_0 -P 1
            do: use a subnet manager with virtualization support: NVIDIA's OpenSM with `virt_enabled 2` in its opensm.conf, UFM, or a managed switch where it is enabled; the OpenSM of distributions has none
        ibprov: enabled; last boot: ready, exit 0; openibd.service: ibprov's

          PORT      PCI           NETDEV  STATE   LID  Gb/s     NOTE
          mlx5_0/1  0000:4b:00.0  ib0     active  7    200 HDR
        ~     VFs 0-1  mlx5_core, link state follow, as planned, port 1 down
        exit 1
    "#]].assert_eq(&host.show(&["status"]));
    expect![[r#"
        verdict: exceptions (errors: 0, warnings: 1)
        read: no log

        warning: opensm-virt-disabled (confidence medium)
          The PF is Active and its VFs are not: the subnet manager does not serve virtual ports.
          Evidence:
            tree: mlx5_1/1: state DOWN, physical state LinkUp, sm_lid 1
            tree: mlx5_2/1: state DOWN, physical state LinkUp, sm_lid 1
          Look:
            do: check that GUID and link state of the VF are set: ibprov status, or ip link show PF_NETDEV
          Fix permanently:
            do: set virt_enabled 2 in /etc/opensm/opensm.conf of NVIDIA's opensm (the distributions' opensm has no such option), then restart opensm

            warning: vf-port-not-active (confidence high, caused by opensm-virt-disabled)
              mlx5_1/1 (0000:4b:00.1), mlx5_2/1 (0000:4b:00.2): Down, although the port of its PF is Active: the subnet manager probably serves no virtual ports.
              Look:
                do: ask which subnet manager it is: sminfo -C mlx5_0 -P 1
        exit 1
    "#]].assert_eq(&host.show(&["check"]));
    let details = host.show(&["status", "-v"]);
    assert!(details.contains("link state follow  port 1 DOWN LinkUp LID -\n"), "{details}");
    let status = json(&host, &["status"]);
    let port = &status["hcas"][0]["vfs"][1]["ports"][0];
    assert_eq!((&port["port"], &port["state"]), (&Value::from(1), &Value::from("down")), "{port}");
    let metrics = host.show(&["metrics"]);
    for line in [
        "ibprov_findings{code=\"vf-port-not-active\",severity=\"warning\"} 2",
        "ibprov_node_exit_code 1",
    ] {
        assert!(metrics.contains(&format!("\n{line}\n")), "{metrics}");
    }
}

#[test]
fn a_port_of_a_vf_that_somebody_else_has_is_none_of_the_hosts() {
    let dark = ("1: DOWN", "5: LinkUp", "0xffff");
    // A virtual machine has VF 0, and a container the netdev of VF 1.
    let host = vfs(dark, "Follow");
    host.remove("sys/bus/pci/devices/0000:4b:00.1/driver");
    host.link("sys/bus/pci/devices/0000:4b:00.1/driver", "../../drivers/vfio-pci");
    host.remove("sys/bus/pci/devices/0000:4b:00.1/infiniband");
    host.file("sys/module/ib_ipoib/parameters/send_queue_size", "128\n");
    host.remove("sys/bus/pci/devices/0000:4b:00.2/net");
    host.remove("sys/class/net/ib2");
    let status = json(&host, &["status"]);
    assert_eq!(status["findings"], Value::Array(Vec::new()), "{status:#}");
    assert_eq!(codes(&host), ["info healthy"]);
    // One with a [[port]] is an expected port, and one without a GUID lacks that.
    let listed = vfs(dark, "Follow");
    let plan = std::fs::read_to_string(listed.path("etc/ibprov/ibprov.toml")).expect("file");
    let rows = [1, 2].map(|at| format!("[[port]]\npci = \"0000:4b:00.{at}\"\n")).concat();
    listed.file("etc/ibprov/ibprov.toml", &(rows + &plan));
    let zero = vfs(dark, "Follow");
    for index in 0..2 {
        zero.file(
            &format!("sys/bus/pci/devices/{PF}/sriov/{index}/port"),
            "00:00:00:00:00:00:00:00\n",
        );
    }
    for host in [listed, zero] {
        let shown = host.show(&["status"]);
        assert!(!shown.contains("virtual ports") && !shown.ends_with("exit 0\n"), "{shown}");
    }
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
    assert_eq!(codes(&dark), ["error link-down-cable", "error port-not-active"]);
}

/// A virtual machine whose only function is a VF of its host.
#[test]
fn in_a_guest_the_host_is_who_can_help() {
    for (state, guid, words) in [
        (("1: DOWN", "5: LinkUp", "0xffff"), "0200:000c:0001:0003", "the hypervisor has set"),
        (("1: DOWN", "3: Disabled", "0xffff"), "0200:000c:0001:0003", "the hypervisor has set"),
        (("1: DOWN", "5: LinkUp", "0xffff"), "0000:0000:0000:0000", "the hypervisor has set"),
    ] {
        let mut host = rails(&[]);
        host.function(&pci(0), "15b3:101c", "020700", Some("mlx5_core"));
        let (state, physical, lid) = state;
        let port = PortSpec { guid, state, physical, lid, ..PortSpec::default() };
        host.rdma(&pci(0), "mlx5_0", guid, &[port]);
        if guid == "0000:0000:0000:0000" {
            for verb in ["status", "check"] {
                let report = json(&host, &[verb]);
                let all = report["findings"].as_array().expect("findings").iter();
                let all: Vec<String> = all
                    .map(|f| {
                        format!("{} {} {}", f["severity"], f["code"], f["object"]).replace('"', "")
                    })
                    .collect();
                let port = "mlx5_0/1 (0000:10:00.0)";
                let told =
                    ["vf-guid-zero", "port-not-active"].map(|code| format!("error {code} {port}"));
                for finding in told {
                    assert!(all.contains(&finding), "{verb}: {report:#}");
                }
                assert_eq!(all.len(), 2, "{verb}: {report:#}");
            }
        }
        let check = host.show(&["check"]);
        for text in [host.show(&["status"]), check.clone()] {
            assert!(text.contains(words) && text.ends_with("exit 3\n"), "{text}");
            for not in ["ip link set PF_NETDEV", "ibprov.toml", "reseat", "PF is Active"] {
                assert!(!text.contains(not), "{not}: {text}");
            }
        }
    }
}

/// VFs that another program creates: boot waits for none of them, status counts those that are
/// missing.
#[test]
fn vfs_of_another_program_are_missing_until_each_has_a_driver() {
    let mut host = Host::healthy();
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[port]]\nrdma = \"mlx5_0\"\nvfs-expected = 2\n\n[[port]]\npci = \"4b:00.2\"\nlink-layer = \"ethernet\"\nwait = \"online\"\nrequired = false\n",
    );
    let told = |host: &Host| {
        let status = json(host, &["status"]);
        let findings = status["findings"].as_array().expect("findings").iter();
        let of = |finding: &Value| {
            ["code", "severity", "object", "message"].map(|key| finding[key].to_string()).join(" ")
        };
        (status["exit_code"].as_i64(), findings.map(of).collect::<Vec<String>>())
    };
    // As many ports as have to be there excuse no VF.
    host.file("etc/ibprov/ibprov.d/at-least.toml", "[boot]\nat-least = 1\n");
    assert_eq!(told(&host).0, Some(3));
    host.remove("etc/ibprov/ibprov.d/at-least.toml");
    let late = r#""port-absent" "warning" "0000:4b:00.2" "absent, and optional (listed in /etc/ibprov/ibprov.toml:5)""#;
    let (code, findings) = told(&host);
    let missing = r#""port-absent" "error" "2 of 2 VFs of mlx5_0" "absent, and expected (vfs-expected in /etc/ibprov/ibprov.toml:1)""#;
    assert_eq!((code, findings), (Some(3), vec![missing.to_owned(), late.to_owned()]));
    let boot = json(&host, &["boot", "--dry-run"]);
    let of_ports = |finding: &&Value| finding["code"] == "port-absent";
    assert_eq!(boot["findings"].as_array().expect("findings").iter().filter(of_ports).count(), 0);

    for (vf, driver) in [("0000:4b:00.1", Some("vfio-pci")), ("0000:4b:00.2", None)] {
        host.function(vf, "15b3:101c", "020700", driver);
        host.link(&format!("sys/bus/pci/devices/{vf}/physfn"), &format!("../{PF}"));
    }
    let (code, findings) = told(&host);
    assert!(findings[0].contains("\"1 of 2 VFs of mlx5_0\""), "{findings:#?}");
    assert_eq!(code, Some(3), "{findings:#?}");
    host.link("sys/bus/pci/devices/0000:4b:00.2/driver", "../../drivers/mlx5_core");
    assert!(told(&host).1[0].contains("\"1 of 2 VFs of mlx5_0\""), "a probe may last");
    let guid = "0200:0000:0013:0001";
    let port = PortSpec { guid, netdev: None, link_layer: "Ethernet", ..PortSpec::default() };
    host.rdma("0000:4b:00.2", "mlx5_2", guid, &[port]);
    let (code, findings) = told(&host);
    assert_eq!(code, Some(1), "{findings:#?}");
    assert!(!findings.iter().any(|finding| finding.contains("VFs of")), "{findings:#?}");
}

/// A copy without what udev and the kernel's modules keep shows nothing of them: a sosreport, or
/// a public dump of /sys.
#[test]
fn what_a_copy_lacks_is_said_once_and_nothing_rests_on_it() {
    let host = Host::healthy();
    host.remove("run/udev");
    host.remove("sys/module");
    host.remove("lib/modules");
    let out = host.ibprov(&["status"]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.starts_with("ready: 1 of 1 expected ports active"), "{said}");
    for lacking in ["this copy has no /run/udev/control", "/sys/module: missing in this copy"] {
        assert_eq!(said.matches(lacking).count(), 1, "{said}");
    }
    for false_of_it in ["not loaded", "not running", "may still change"] {
        assert!(!said.contains(false_of_it), "{said}");
    }
}

#[test]
fn a_module_that_is_not_loaded_is_not_said_to_have_failed() {
    let mut host = Host::enabled();
    host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
    let port = PortSpec { netdev: None, ..PortSpec::default() };
    host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[port]);
    host.remove("sys/module/ib_ipoib");
    host.remove("lib/modules");
    let interface = format!("[[interface]]\nmatch.pci = \"{PF}\"\nmode = \"datagram\"\n");
    host.file("etc/ibprov/ibprov.toml", &interface);
    let out = host.ibprov(&["status"]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("no netdev: module ib_ipoib is not loaded"), "{said}");
    assert!(!said.contains("modprobe -r"), "{said}");
}
