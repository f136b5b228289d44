//! One account of the node: status, check and the dry run of boot say the same of a copied tree,
//! with the same code, object and severity, and with the cause.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::active::{DARK, LIT, vfs};
use crate::host::{Host, PF, PortSpec};

/// Codes of what is said of units and files, which each verb says in its own way.
const OF_UNITS: [&str; 9] = [
    "ibprov-masked",
    "ibprov-not-wanted",
    "ibprov-disabled",
    "openibd-alias-broken",
    "openibd-want-left",
    "openibd-drop-in",
    "mlnx-interface-mgr-armed",
    "not-read",
    "notice",
];

pub fn json(host: &Host, verb: &[&str]) -> (i32, Value) {
    let out = host.ibprov(&[verb, &["--format", "json"]].concat());
    let code = out.status.code().expect("exit code");
    (code, serde_json::from_slice(&out.stdout).unwrap_or(Value::Null))
}

/// What a report says of the node: `severity code object`, each object by itself.
pub fn facts(report: &Value) -> BTreeSet<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut facts = BTreeSet::new();
    for finding in report["findings"].as_array().expect("findings") {
        let (severity, code) = (word(&finding["severity"]), word(&finding["code"]));
        if OF_UNITS.contains(&code.as_str()) {
            continue;
        }
        let objects = word(&finding["object"]);
        facts.extend(objects.split(", ").map(|object| format!("{severity} {code} {object}")));
    }
    facts
}

/// status says `wanted`, and check no less; both end with `exit`.
#[track_caller]
fn is(host: &Host, exit: i32, wanted: &[&str]) -> (Value, Value) {
    let (status_code, status) = json(host, &["status"]);
    let (check_code, check) = json(host, &["check"]);
    let wanted: BTreeSet<String> = wanted.iter().map(|fact| (*fact).to_owned()).collect();
    assert_eq!(facts(&status), wanted, "{status:#}");
    let missing: Vec<String> = wanted.difference(&facts(&check)).cloned().collect();
    assert_eq!(missing, [""; 0], "{check:#}");
    assert_eq!((status_code, check_code), (exit, exit), "{check:#}");
    (status, check)
}

/// What is said under `code`.
fn message(report: &Value, code: &str) -> String {
    let mut findings = report["findings"].as_array().expect("findings").iter();
    let of = findings.find(|finding| finding["code"] == code).expect(code);
    of["message"].as_str().expect("a message").to_owned()
}

fn unbound() -> Host {
    let host = Host::new();
    host.function(PF, "15b3:101b", "020700", None);
    host
}

/// The exit codes of status and of the dry run of boot.
fn codes(host: &Host) -> (i32, i32) {
    (json(host, &["status"]).0, json(host, &["boot", "--dry-run"]).0)
}

#[test]
fn an_adapter_whose_driver_is_denied_is_missing_and_its_line_is_named() {
    let host = unbound();
    host.file("etc/modprobe.d/blacklist-ofed-modules.conf", "blacklist mlx5_core\n");
    let (status, check) = is(&host, 3, &[&format!("error module-denied {PF}")]);
    for report in [status, check] {
        let said = message(&report, "module-denied");
        assert!(said.contains("/etc/modprobe.d/blacklist-ofed-modules.conf:1"), "{said}");
        assert!(said.contains("driver container"), "{said}");
    }
    let shown = host.show(&["status"]);
    assert!(shown.contains("wait = \"online\""), "{shown}");
    // The usual way of hardening guides, and the console.
    host.file("etc/modprobe.d/blacklist-ofed-modules.conf", "install mlx5_core /bin/false\n");
    is(&host, 3, &[&format!("error module-denied {PF}")]);
    host.remove("etc/modprobe.d/blacklist-ofed-modules.conf");
    host.file("proc/cmdline", "quiet modprobe.blacklist=mlx5_core\n");
    is(&host, 3, &[&format!("error module-denied {PF}")]);
    // Beside a port that works it is missing too, unless the configuration says that it may be.
    let host = Host::healthy();
    host.function("0000:5e:00.0", "15b3:1003", "028000", None);
    host.file("etc/modprobe.d/site.conf", "blacklist mlx4_core\n");
    is(&host, 3, &["error module-denied 0000:5e:00.0"]);
    for (configuration, exits) in [
        ("boot.ignore = [\"0000:5e:00.0\"]\n", (0, 0)),
        ("modules.exclude = [\"mlx4_core\"]\n", (0, 0)),
        ("[[port]]\npci = \"0000:5e:00.0\"\nrequired = false\n", (1, 1)),
        ("boot.at-least = 1\n", (1, 1)),
        ("[[port]]\npci = \"0000:5e:00.0\"\nwait = \"online\"\n", (3, 0)),
    ] {
        host.file("etc/ibprov/ibprov.toml", configuration);
        assert_eq!(codes(&host), exits, "{configuration}");
    }
}

#[test]
fn a_denied_rdma_half_is_missing_and_boot_would_not_wait_for_it() {
    let host = Host::new();
    host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
    host.file("etc/modprobe.d/site.conf", "blacklist mlx5_ib\n");
    let (status, _) = is(&host, 3, &[&format!("error module-denied {PF}")]);
    let said = message(&status, "module-denied");
    assert_eq!(
        said,
        "no RDMA device: module mlx5_ib is not loaded: deny-listed by /etc/modprobe.d/site.conf:1"
    );
    let (_, boot) = json(&host, &["boot", "--dry-run"]);
    assert_eq!(boot["steps"], serde_json::json!([]), "{boot:#}");
    assert_eq!(message(&boot, "module-denied"), said);
    assert!(!host.show(&["boot", "--dry-run"]).contains("wait up to"));
    // The configuration of ibprov says it of the half as of the driver.
    host.file("etc/ibprov/ibprov.toml", "modules.exclude = [\"mlx5_ib\"]\n");
    assert_eq!(codes(&host), (0, 0));
}

/// Fleets that use verbs alone deny ib_ipoib, and their ports are in use without netdevs.
#[test]
fn without_ipoib_a_port_is_whole_unless_something_wants_its_netdev() {
    let bare = |link: (&str, &str, &str)| {
        let mut host = Host::new();
        host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
        let (state, physical, lid) = link;
        let port = PortSpec { state, physical, lid, netdev: None, ..PortSpec::default() };
        host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[port]);
        host.remove("sys/module/ib_ipoib");
        host.file("etc/modprobe.d/site.conf", "blacklist ib_ipoib\n");
        host
    };
    let host = bare(LIT);
    let (status, _) = is(&host, 1, &["warning module-denied ib_ipoib"]);
    assert_eq!(status["expected_ports"]["active"], 1, "{status:#}");
    // Not active it is as dark as any other.
    let dark = bare(DARK);
    assert_eq!(json(&dark, &["status"]).0, 3);

    let port = format!("mlx5_0/1 ({PF})");
    let unit = "etc/systemd/system/bench.service";
    let wanted: [(&str, &str); 4] = [
        ("etc/ibprov/ibprov.toml", "[[interface]]\nmatch.name = \"ib*\"\nmtu = 2044\n"),
        ("etc/network/interfaces", "auto ib0\niface ib0 inet static\naddress 10.0.0.1/24\n"),
        ("etc/modprobe.d/lnet.conf", "options lnet networks=\"o2ib0(ib0)\"\n"),
        (unit, "[Service]\nExecStart=/usr/bin/bench --interface ib0\n[Install]\n"),
    ];
    for (file, text) in wanted {
        let host = bare(LIT);
        host.file(file, text);
        if file == unit {
            let wants = "etc/systemd/system/multi-user.target.wants/bench.service";
            host.file("lib/systemd/system/multi-user.target", "[Unit]\n");
            host.link("etc/systemd/system/default.target", "/lib/systemd/system/multi-user.target");
            host.link(wants, "/etc/systemd/system/bench.service");
        }
        let (status, _) = is(&host, 3, &[&format!("error module-denied {port}")]);
        let said = message(&status, "module-denied");
        let name = if file.ends_with("toml") { "[[interface]]" } else { "ib0" };
        assert!(said.contains("site.conf:1") && said.contains(name), "{file}: {said}");
    }
}

#[test]
fn an_install_line_that_does_nothing_is_a_denial() {
    let host = Host::new();
    host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
    host.file("etc/modprobe.d/cis.conf", "install ib_umad /usr/bin/false\n");
    host.remove("sys/module/ib_umad");
    let shown = host.show(&["boot", "--dry-run"]);
    assert!(shown.contains("ib_umad: not loaded: deny-listed by /etc/modprobe.d/cis.conf:1"));
    assert!(!shown.contains("load ib_umad"), "{shown}");
}

#[test]
fn a_card_in_ethernet_mode_is_missed_only_where_something_wants_infiniband() {
    let host = Host::new();
    host.function(PF, "15b3:101b", "020000", Some("mlx5_core"));
    is(&host, 0, &[]);
    host.file("etc/ibprov/ibprov.toml", "[[interface]]\nmatch.name = \"ib0\"\nmtu = 2044\n");
    is(&host, 1, &[&format!("warning pf-ethernet {PF}")]);
}

#[test]
fn what_a_plan_of_vfs_lacks_is_one_fact_in_every_verb() {
    let host = Host::healthy();
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "8\n");
    host.file(&format!("sys/bus/pci/devices/{PF}/mlx5_num_vfs"), "0\n");
    let plan = |vfs: u8| {
        format!(
            "[[pf]]\npci = \"{PF}\"\nvfs = {vfs}\nguid.template = \"02:00:00:00:00:12:{{kind:8}}:{{vf:8}}\"\n"
        )
    };
    const VERBS: [&[&str]; 5] =
        [&["status"], &["check"], &["plan"], &["apply", "--dry-run"], &["boot", "--dry-run"]];
    for (vfs, fact, said) in [
        (3, "vf-not-as-planned", "VFs 0-2 to be created"),
        (9, "too-many-vfs", "9 VFs are planned"),
    ] {
        host.file("etc/ibprov/ibprov.toml", &plan(vfs));
        for verb in VERBS {
            let (_, report) = json(&host, verb);
            let fact = format!("error {fact} {PF}");
            assert!(facts(&report).contains(&fact), "{verb:?}: {fact}: {report:#}");
            let text = report.to_string();
            assert!(text.contains(said), "{verb:?}: {said}: {report:#}");
        }
    }
}

#[test]
fn what_vfs_lack_is_judged_in_one_place() {
    let active = ("4: ACTIVE", "5: LinkUp", "0x7");
    let down = ("1: DOWN", "5: LinkUp", "0xffff");
    let ofed = format!("sys/bus/pci/devices/{PF}/sriov");
    let check_is = |host: &Host, exit: i32, wanted: &[&str]| {
        let (_, check) = is(host, exit, wanted);
        let facts = facts(&check);
        let is_of_vf = |fact: &&String| fact.contains(" vf-");
        let of_vfs: Vec<&str> = facts.iter().filter(is_of_vf).map(String::as_str).collect();
        assert_eq!(of_vfs, wanted, "{check:#}");
    };
    // As planned, also if that is down.
    for (policy, state) in [("Follow", active), ("Down", down)] {
        check_is(&vfs(state, policy), 0, &[]);
    }
    // Another link state, and another GUID, than is planned.
    let wrong = format!("error vf-not-as-planned {PF}");
    let host = vfs(active, "Follow");
    host.file(&format!("{ofed}/1/policy"), "Down\n");
    check_is(&host, 3, &[&wrong]);
    host.file(&format!("{ofed}/1/policy"), "Follow\n");
    host.file(&format!("{ofed}/1/port"), "00:00:00:00:00:00:00:00\n");
    check_is(&host, 3, &[&wrong]);
    // Without a plan.
    host.file("etc/ibprov/ibprov.toml", "");
    check_is(&host, 1, &[&format!("warning vf-guid-zero {PF}")]);
    host.file(&format!("{ofed}/1/port"), "02:00:00:00:00:12:01:00\n");
    host.file(&format!("{ofed}/1/port"), "02:00:00:00:00:12:01:01\n");
    let own = "sys/bus/pci/devices/0000:4b:00.2/infiniband/mlx5_2/node_guid";
    host.file(own, "0000:0000:0000:0000\n");
    check_is(&host, 1, &[&format!("warning vf-guid-zero {PF}")]);
    host.file(own, "0200:0000:0012:0001\n");
    host.file(&format!("{ofed}/1/port"), "02:00:00:00:00:12:01:00\n");
    let twice = [0, 1].map(|vf| format!("warning vf-guid-duplicate VF {vf} of {PF}"));
    check_is(&host, 1, &[&twice[0], &twice[1]]);
    host.file(&format!("{ofed}/1/port"), "02:00:00:00:00:12:01:01\n");
    host.file(&format!("{ofed}/1/policy"), "Down\n");
    check_is(&host, 1, &[&format!("warning vf-policy-down {PF}")]);
    // Of one that has no driver of this host somebody else decides.
    let vf = "sys/bus/pci/devices/0000:4b:00.2";
    for path in ["driver", "infiniband", "net"] {
        host.remove(&format!("{vf}/{path}"));
    }
    host.link(&format!("{vf}/driver"), "../../drivers/vfio-pci");
    check_is(&host, 0, &[]);
}

#[test]
fn a_setting_that_the_driver_refuses_is_refused_in_every_verb() {
    let host = Host::healthy();
    // Enhanced IPoIB: the first byte of the hardware address is 0.
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.name = \"ib0\"\nmode = \"connected\"\n",
    );
    let refused = ["error setting-refused ib0"];
    let (status, check) = is(&host, 3, &refused);
    let said = message(&status, "setting-refused");
    assert!(said.contains("the driver does not support it"), "{said}");
    assert!(message(&check, "setting-refused").contains(&said));
    for verb in [["boot", "--dry-run"].as_slice(), &["iface", "ib0", "--dry-run"]] {
        let (code, report) = json(&host, verb);
        assert_eq!((code, facts(&report)), (3, refused.map(str::to_owned).into()), "{report:#}");
        assert_eq!(message(&report, "setting-refused"), said);
    }
    assert!(!host.show(&["boot", "--dry-run"]).contains("wait up to"));
    // What can be set beside it does not make it a setting that is not applied yet.
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.name = \"ib0\"\nmode = \"connected\"\numcast = true\n",
    );
    is(&host, 3, &refused);
    for verb in [["boot", "--dry-run"].as_slice(), &["iface", "ib0", "--dry-run"]] {
        let (code, report) = json(&host, verb);
        assert_eq!((code, facts(&report)), (3, refused.map(str::to_owned).into()), "{report:#}");
    }
    // A name that cannot be given while the interface is up.
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.port-guid = \"b859:9f03:0012:a480\"\nname = \"rail0\"\n",
    );
    let (status, _) = is(&host, 3, &refused);
    let finding = status["findings"].as_array().and_then(|all| all.first()).expect("one");
    assert_eq!(finding["advice"][0]["run"], "ip link set ib0 down && ibprov iface ib0");
}

#[test]
fn what_is_refused_of_several_interfaces_is_said_once_in_a_dry_run() {
    let host = Host::with_hcas(3);
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.name = \"*\"\nmode = \"connected\"\n",
    );
    let shown = host.show(&["boot", "--dry-run"]);
    let errors: Vec<&str> = shown.lines().filter(|line| line.contains("error: ")).collect();
    let [error] = errors[..] else { panic!("{shown}") };
    assert!(error.starts_with("error: ib0, ib1, ib2, ib3: connected mode is"), "{shown}");
    let (_, report) = json(&host, &["boot", "--dry-run"]);
    assert_eq!(facts(&report).len(), 4, "{report:#}");
}

#[test]
fn each_setting_that_is_refused_is_a_finding_with_its_own_remedy() {
    let host = Host::healthy();
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nmatch.name = \"ib0\"\nmode = \"connected\"\nmtu = 65520\n",
    );
    let want = [
        ("the driver does not support it", "set mode = \"datagram\""),
        ("the maximum in datagram mode is 4092", "set mtu to 4092 or less"),
    ];
    const VERBS: [&[&str]; 4] =
        [&["status"], &["check"], &["boot", "--dry-run"], &["iface", "ib0", "--dry-run"]];
    for verb in VERBS {
        let (code, report) = json(&host, verb);
        assert_eq!(code, 3, "{verb:?}: {report:#}");
        let findings = report["findings"].as_array().expect("findings").iter();
        let refused: Vec<_> = findings.filter(|f| f["code"] == "setting-refused").collect();
        assert_eq!(refused.len(), want.len(), "{verb:?}: {report:#}");
        let shown = host.show(verb).split_whitespace().collect::<Vec<_>>().join(" ");
        for (finding, (said, remedy)) in refused.into_iter().zip(want) {
            assert_eq!(finding["object"], "ib0", "{verb:?}: {finding:#}");
            assert!(finding["message"].as_str().expect("a text").contains(said), "{finding:#}");
            let step = &finding["advice"][0];
            let advice = step["run"].as_str().or(step["do"].as_str()).expect("a remedy");
            assert!(advice.starts_with(remedy), "{verb:?}: {finding:#}");
            for text in [said, remedy] {
                assert_eq!(shown.matches(text).count(), 1, "{verb:?}: {text}: {shown}");
            }
        }
    }
    let metrics = host.show(&["metrics"]);
    let count = "ibprov_findings{code=\"setting-refused\",severity=\"error\"} 2";
    assert!(metrics.lines().any(|line| line == count), "{metrics}");
}

#[test]
fn config_check_says_what_to_write_where_a_dark_port_is_meant() {
    let mut host = Host::healthy();
    host.function("0000:5e:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    let dark = PortSpec {
        guid: "b859:9f03:0013:0001",
        state: "1: DOWN",
        physical: "2: Polling",
        lid: "0xffff",
        netdev: Some("ib1"),
        ..PortSpec::default()
    };
    host.rdma("0000:5e:00.0", "mlx5_1", "b859:9f03:0013:0001", &[dark]);
    let shown = host.show(&["config", "check"]);
    let row = "[[port]]  # mlx5_1/1 (0000:5e:00.0)\n  pci = \"0000:5e:00.0\"\n  port = 1\n  required = false\n";
    assert!(shown.contains(row) && shown.ends_with("exit 0\n"), "{shown}");
    let (_, report) = json(&host, &["config", "check"]);
    assert_eq!(report["dark_ports"], serde_json::json!(["mlx5_1/1 (0000:5e:00.0)"]));
    // Where it has a [[port]] already, a second one would be an error.
    host.file("etc/ibprov/ibprov.toml", "\n[[port]]\npci = \"5e:00.0\"\nrate = \"200 Gb/s\"\n");
    let shown = host.show(&["config", "check"]);
    let add = "  required = false  # at /etc/ibprov/ibprov.toml:2: mlx5_1/1 (0000:5e:00.0)\n";
    assert!(shown.contains(add) && !shown.contains("[[port]]"), "{shown}");
    host.file("etc/ibprov/ibprov.toml", "[[port]]\npci = [\"4b:00.0\", \"5e:00.0\"]\n");
    let shown = host.show(&["config", "check"]);
    let take = "  take 0000:5e:00.0 out of the list at /etc/ibprov/ibprov.toml:1, and add:\n";
    assert!(shown.contains(take) && shown.contains(row), "{shown}");
    // With these lines it is silent, and the port is a note.
    host.file("etc/ibprov/ibprov.toml", row);
    assert!(!host.show(&["config", "check"]).contains("[[port]]"));
    is(&host, 0, &["info port-not-active mlx5_1/1 (0000:5e:00.0)"]);
}

#[test]
fn config_check_notes_names_by_which_nvshmem_knows_no_adapter() {
    let host = Host::healthy();
    let check = |name: &str| {
        let row = format!("[[port]]\npci = \"{PF}\"\nrdma-name = \"{name}\"\n");
        host.file("etc/ibprov/ibprov.toml", &row);
        host.show(&["config", "check"])
    };
    let said = check("rail0");
    assert!(said.contains("note: /etc/ibprov/ibprov.toml:1: NVSHMEM up to 3.3.9"), "{said}");
    assert!(said.ends_with("exit 0\n"), "{said}");
    assert!(!check("mlx5_rail0").contains("NVSHMEM"));
}

#[test]
fn that_nothing_brings_the_ports_up_at_the_next_boot_is_foretold_of_a_copied_tree() {
    let mut host = Host::new();
    host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
    host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[PortSpec::default()]);
    let dir = "usr/lib/systemd/system";
    let units = concat!(env!("CARGO_MANIFEST_DIR"), "/units");
    for entry in std::fs::read_dir(units).expect("a folder") {
        let path = entry.expect("entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if path.is_file() {
            host.file(&format!("{dir}/{name}"), &std::fs::read_to_string(&path).expect("a unit"));
        }
    }
    for target in ["sysinit", "network"] {
        host.file(&format!("{dir}/{target}.target"), "[Unit]\n");
    }
    let goal = "[Unit]\nRequires=sysinit.target\nAfter=sysinit.target\n";
    host.file(&format!("{dir}/default.target"), goal);
    // The vendor's package took its unit and its script with it, and left this.
    let wants = "etc/systemd/system/sysinit.target.wants/openibd.service";
    host.link(wants, "/usr/lib/systemd/system/openibd.service");
    let (code, check) = json(&host, &["check"]);
    let told = facts(&check);
    assert!(told.contains("warning openibd-disabled ibprov.service"), "{check:#}");
    assert_eq!(code, 1, "{check:#}");
}

#[test]
fn another_writer_of_the_number_of_vfs_is_an_exception_beside_the_plan() {
    let host = Host::healthy();
    host.file(
        "etc/ibprov/ibprov.toml",
        &format!("[[pf]]\npci = \"{PF}\"\nvfs = 0\nguid.template = \"02:00:00:00:00:12:{{kind:8}}:{{vf:8}}\"\n"),
    );
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "8\n");
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_numvfs"), "0\n");
    is(&host, 0, &[]);
    host.file("etc/sysfs.d/vfs.conf", "class/net/ib0/device/sriov_numvfs = 4\n");
    let other = format!("warning vf-other-writer {PF}");
    let (status, _) = is(&host, 1, &[&other]);
    for verb in [["plan"].as_slice(), &["apply", "--dry-run"], &["boot", "--dry-run"]] {
        let (code, report) = json(&host, verb);
        assert_eq!((code, facts(&report)), (0, [other.clone()].into()), "{report:#}");
        assert!(host.show(verb).contains("by /etc/sysfs.d/vfs.conf:1 too"));
    }
    assert!(message(&status, "vf-other-writer").contains("by /etc/sysfs.d/vfs.conf:1 too"));
}

#[test]
fn what_renames_rdma_devices_is_told_where_the_configuration_names_one() {
    let host = Host::healthy();
    host.file(
        "etc/udev/rules.d/10-rdma.rules",
        "SUBSYSTEM==\"infiniband\", RUN+=\"/usr/bin/rdma dev set %k name rail0\"\n",
    );
    let config = |which: &str| {
        host.file("etc/ibprov/ibprov.toml", &format!("[[port]]\n{which}\n"));
    };
    config(&format!("pci = \"{PF}\""));
    is(&host, 0, &[]);
    config("rdma = \"mlx5_0\"");
    let other = "warning rdma-other-namer /etc/udev/rules.d/10-rdma.rules";
    let (status, _) = is(&host, 1, &[other]);
    let said = "the name in /etc/ibprov/ibprov.toml:1 may be of no RDMA device, or of another one";
    assert!(message(&status, "rdma-other-namer").contains(said), "{status:#}");
    let (code, report) = json(&host, &["boot", "--dry-run"]);
    assert_eq!((code, facts(&report)), (0, [other.to_owned()].into()), "{report:#}");
}

/// Whatever brought the drivers up now: a deny-list that was written since, and a newer kernel
/// without them.
#[test]
fn what_the_next_boot_would_not_load_is_foretold() {
    let host = Host::healthy();
    let all = ["mlx5_core", "mlx5_ib", "ib_ipoib"];
    for module in all {
        host.file(&format!("sys/module/{module}/initstate"), "live\n");
    }
    let built = |kernel: &str, modules: &[&str], dir: &str| {
        let files = modules.iter().map(|module| format!("{dir}/{module}.ko.xz:\n"));
        host.file(&format!("lib/modules/{kernel}/modules.dep"), &files.collect::<String>());
    };
    built("6.1.0-9-amd64", &all, "updates/dkms");
    is(&host, 0, &[]);

    let list = "blacklist mlx5-ib\ninstall ib_ipoib /bin/false\nblacklist nouveau\n";
    host.file("etc/modprobe.d/site.conf", list);
    let denied = ["ib_ipoib", "mlx5_ib"].map(|m| format!("warning next-boot-at-risk {m}"));
    let denied = denied.each_ref().map(String::as_str);
    // Where it is not known when the boot began, nothing is.
    is(&host, 0, &[]);
    host.file("proc/stat", "cpu 0\nbtime 1\n");
    let (status, _) = is(&host, 1, &denied);
    let told = message(&status, "next-boot-at-risk");
    assert!(told.contains("/etc/modprobe.d/site.conf:2 denies it"), "{told}");
    let (_, dry) = json(&host, &["boot", "--dry-run"]);
    assert!(denied.iter().all(|fact| facts(&dry).contains(*fact)), "{dry:#}");
    // A list that is older than the boot has kept nothing away.
    host.file("proc/stat", "cpu 0\nbtime 32503680000\n");
    is(&host, 0, &[]);
    host.file("proc/stat", "cpu 0\nbtime 1\n");
    host.remove("etc/modprobe.d/site.conf");
    is(&host, 0, &[]);

    // The driver comes first, whatever IDs vfio-pci has, unless it is loaded after it.
    let ids = "options vfio-pci ids=10de:2330,15b3:101B\n";
    host.file("etc/modprobe.d/vfio.conf", ids);
    is(&host, 0, &[]);
    host.file("etc/modprobe.d/softdep.conf", "softdep mlx5-core pre: x vfio-pci post: y\n");
    let (status, _) = is(&host, 1, &[&format!("warning next-boot-at-risk {PF}")]);
    let told = message(&status, "next-boot-at-risk");
    assert!(told.contains("/etc/modprobe.d/vfio.conf:1 gives it 15b3:101b"), "{told}");
    assert!(told.contains("/etc/modprobe.d/softdep.conf:1 has it loaded before"), "{told}");
    host.file("etc/modprobe.d/softdep.conf", "softdep mlx5_core pre: x post: vfio-pci\n");
    is(&host, 0, &[]);
    host.file("etc/modprobe.d/softdep.conf", "softdep mlx5_core pre: vfio-pci\n");
    host.file("etc/modprobe.d/vfio.conf", "options vfio-pci ids=15b3:101c\n");
    is(&host, 0, &[]);
    host.remove("etc/modprobe.d/vfio.conf");
    host.remove("etc/modprobe.d/softdep.conf");

    for other in ["6.1.0-8-amd64", "6.2.0-1-rt-amd64"] {
        built(other, &[], "kernel");
    }
    built("6.1.0-10-amd64", &["mlx5_ib"], "updates");
    built("6.1.0-11-amd64", &all, "extra");
    is(&host, 0, &[]);
    host.remove("lib/modules/6.1.0-11-amd64/modules.dep");
    host.remove("lib/modules/6.1.0-11-amd64");
    let newer = ["warning next-boot-at-risk kernel 6.1.0-10-amd64"];
    let (status, _) = is(&host, 1, &newer);
    let told = message(&status, "next-boot-at-risk");
    assert!(told.contains("it has no ib_ipoib, mlx5_core,"), "{told}");
    built("6.1.0-10-amd64", &all, "kernel");
    let (status, _) = is(&host, 1, &newer);
    let told = message(&status, "next-boot-at-risk");
    assert!(told.contains("mlx5_core (updates/dkms/mlx5_core.ko.xz now)"), "{told}");
}

#[test]
fn a_queue_that_a_connect_ib_cannot_have_is_told_before_it_is_seen() {
    let mut host = Host::enabled();
    host.function(PF, "15b3:1011", "020700", Some("mlx5_core"));
    host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[PortSpec::default()]);
    let parameter = "sys/module/ib_ipoib/parameters/send_queue_size";
    host.file(parameter, "1024\n");
    is(&host, 0, &[]);
    host.file(parameter, "8192\n");
    is(&host, 1, &[&format!("warning module-parameter {PF}")]);
}
