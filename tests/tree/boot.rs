use expect_test::expect;

use crate::host::{Host, PF, PortSpec};

#[test]
fn a_dry_run_says_what_would_be_loaded_and_awaited() {
    let mut host = Host::new();
    for module in ["ib_umad", "ib_ipoib"] {
        host.remove(&format!("sys/module/{module}"));
    }
    host.function("0000:01:00.0", "15b3:101b", "020700", None);
    host.function("0000:02:00.0", "15b3:1003", "028000", Some("mlx4_core"));
    host.function("0000:03:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    host.rdma("0000:03:00.0", "mlx5_0", "b859:9f03:0012:a490", &[PortSpec::default()]);
    host.function("0000:04:00.0", "15b3:101b", "020700", Some("pci-stub"));
    host.function("0000:05:00.0", "15b3:101b", "020000", Some("mlx5_core"));
    host.function("0000:06:00.0", "15b3:101b", "020700", None);
    host.file("sys/bus/pci/devices/0000:06:00.0/driver_override", "none\n");
    expect![[r#"
        boot would, in this order:
        1. in parallel:
             load ib_ipoib, ib_umad
             load the driver of 0000:01:00.0
             load mlx4_ib for 0000:02:00.0
        2. wait up to 150 s for each adapter:
             0000:01:00.0: no driver; expected state: named
             0000:02:00.0: no RDMA device; expected state: named
        named: mlx5_0/1 (0000:03:00.0) as ib0
        not waited for: 0000:04:00.0: bound to pci-stub
        not waited for: 0000:06:00.0: driver_override is "none"
        exit 1
    "#]]
    .assert_eq(&host.show(&["boot", "--dry-run"]));
}

#[test]
fn a_dry_run_shows_vfs_and_settings_too_and_equal_lines_once() {
    let host = Host::healthy();
    host.file(&format!("sys/bus/pci/devices/{PF}/sriov_totalvfs"), "16\n");
    for index in 0..16 {
        let vf = format!("0000:4b:{:02x}.{}", (index + 1) / 8, (index + 1) % 8);
        host.function(&vf, "15b3:101c", "020700", Some("mlx5_core"));
        host.link(&format!("sys/bus/pci/devices/{vf}/physfn"), &format!("../{PF}"));
        host.link(&format!("sys/bus/pci/devices/{PF}/virtfn{index}"), &format!("../{vf}"));
        let ofed = format!("sys/bus/pci/devices/{PF}/sriov/{index}");
        host.file(&format!("{ofed}/node"), "02:00:00:00:00:12:00:00\n");
        host.file(&format!("{ofed}/port"), "02:00:00:00:00:12:01:00\n");
        host.file(&format!("{ofed}/policy"), "Follow\n");
    }
    expect![[r#"
        boot would change nothing and not wait
        named: mlx5_0/1 (0000:4b:00.0) as ib0
        not waited for: 0000:4b:00.1 and 15 more functions: VF of 0000:4b:00.0 on this host
        exit 0
    "#]]
    .assert_eq(&host.show(&["boot", "--dry-run"]));
    let config = format!(
        "[[interface]]\nmatch.name = \"ib0\"\nmtu = 2040\n[[pf]]\npci = \"{PF}\"\nvfs = 16\nlink-state = \"follow\"\nguid.template = \"02:00:00:00:00:12:{{kind:8}}:{{vf:8}}\"\n"
    );
    host.file("etc/ibprov/ibprov.toml", &config);
    expect![[r#"
        boot would, in this order:
        1. wait up to 150 s for each adapter:
             mlx5_0/1 (0000:4b:00.0): not configured; expected state: configured
        2. ib0: set MTU 2040 (/etc/ibprov/ibprov.toml:1)
        3. PF 0000:4b:00.0: in this order:
             1. unbind VFs 1-15 from mlx5_core, in parallel
             2. set the node GUIDs of VFs 1-15: 0200:0000:0012:0001 to 0200:0000:0012:000f
             3. set the port GUIDs of VFs 1-15: 0200:0000:0012:0101 to 0200:0000:0012:010f
             4. bind VFs 1-15 to mlx5_core, one after the other
        exit 1
    "#]]
    .assert_eq(&host.show(&["boot", "--dry-run"]));
}

#[test]
fn the_sites_deny_list_is_obeyed_in_the_plan() {
    let host = Host::new();
    host.remove("sys/module/ib_ipoib");
    host.file("etc/modprobe.d/site.conf", "blacklist ib_ipoib\nblacklist mlx4_core\n");
    host.function("0000:01:00.0", "15b3:101b", "020700", Some("mlx5_core"));
    host.function("0000:02:00.0", "15b3:1003", "028000", None);
    expect![[r#"
        boot would, in this order:
        1. load mlx5_ib for 0000:01:00.0
        2. wait up to 150 s for each adapter:
             0000:01:00.0: no RDMA device; expected state: rdma
        ib_ipoib: not loaded: deny-listed by /etc/modprobe.d/site.conf:1
        not waited for: 0000:02:00.0: module mlx4_core is not loaded: deny-listed by /etc/modprobe.d/site.conf:2
        exit 1
    "#]].assert_eq(&host.show(&["boot", "--dry-run"]));
}

/// NVIDIA's packages install the first of these files on every host.
#[test]
fn a_command_that_modprobe_runs_for_a_module_is_named() {
    let mut host = Host::new();
    for module in ["ib_umad", "ib_uverbs"] {
        host.remove(&format!("sys/module/{module}"));
    }
    host.function(PF, "15b3:101b", "020700", Some("mlx5_core"));
    host.rdma(PF, "mlx5_0", "b859:9f03:0012:a480", &[PortSpec::default()]);
    host.file(
        "etc/modprobe.d/mlnx-bf.conf",
        "install ib_umad /sbin/modprobe --ignore-install ib_umad $CMDLINE_OPTS && /sbin/mlnx_bf_configure\n",
    );
    host.file("etc/modprobe.d/x.conf", "install ib_ipoib /x\ninstall mlx4_core /y\n");
    expect![[r#"
        boot would, in this order:
        1. load ib_umad, ib_uverbs
        named: mlx5_0/1 (0000:4b:00.0) as ib0
        note: ib_umad: to load it, modprobe runs the command of /etc/modprobe.d/mlnx-bf.conf:1: /sbin/modprobe --ignore-install ib_umad $CMDLINE_OPTS && /sbin/mlnx_bf_configure
        exit 1
    "#]].assert_eq(&host.show(&["boot", "--dry-run"]));
    host.function("0000:02:00.0", "15b3:1003", "028000", None);
    let report = host.ibprov(&["boot", "--dry-run", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let objects: Vec<&serde_json::Value> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter(|finding| finding["severity"] == "info")
        .map(|finding| &finding["object"])
        .collect();
    assert_eq!(objects, ["ib_umad", "mlx4_core"], "what is loaded or has its module: nothing");
}

#[test]
fn what_the_configuration_skips_is_not_waited_for() {
    let host = Host::new();
    host.file("etc/ibprov/ibprov.toml", "[modules]\nexclude = [\"mlx4_core\"]\n");
    host.function("0000:02:00.0", "15b3:1003", "028000", None);
    expect![[r#"
        boot would change nothing: no InfiniBand port is expected
        not waited for: 0000:02:00.0: the driver mlx4_core is deny-listed by modules.exclude of the configuration
        exit 0
    "#]]
    .assert_eq(&host.show(&["boot", "--dry-run"]));
}

#[test]
fn verbs_typed_by_hand_refuse_a_bad_configuration_and_units_go_on() {
    let host = Host::healthy();
    host.remove("sys/module/ib_ipoib");
    host.file("etc/ibprov/ibprov.toml", "[boot]\ndeadlin = \"5min\"\n");
    let by_hand: [&[&str]; 5] =
        [&["apply"], &["plan"], &["config", "check"], &["firmware"], &["iface", "ib0"]];
    for verb in by_hand {
        let shown = host.show(verb);
        assert!(shown.contains("/etc/ibprov/ibprov.toml:2:1"), "{verb:?}: {shown}");
        assert!(shown.ends_with("exit 2\n"), "{verb:?}: {shown}");
    }
    let shown = host.show(&["boot", "--dry-run"]);
    assert!(shown.contains("/etc/ibprov/ibprov.toml:2:1"), "{shown}");
    assert!(shown.contains("1. load ib_ipoib\n") && shown.ends_with("exit 3\n"), "{shown}");
    // No port is missing for it.
    host.file("etc/ibprov/ibprov.toml", "[[guest]]\nunti = \"a.service\"\n");
    let shown = host.show(&["boot", "--dry-run"]);
    assert!(shown.contains("1. load ib_ipoib\n") && shown.ends_with("exit 1\n"), "{shown}");
    // An excluded module stays excluded.
    host.file("etc/ibprov/ibprov.toml", "[modules]\nexlude = [\"ib_ipoib\"]\n");
    let shown = host.show(&["boot", "--dry-run"]);
    assert!(!shown.contains("load ib_ipoib"), "{shown}");
}

/// A typo in one [[interface]] leaves its interface as it is, and names it not.
#[test]
fn an_image_has_the_names_that_are_right() {
    let host = Host::healthy();
    let rule = |guid: &str, name: &str| {
        format!("[[interface]]\nmatch.port-guid = \"{guid}\"\nname = \"{name}\"\n")
    };
    let text = rule("98039b0300a1b0c1", "ib_a") + &rule("98039b0300a1b0c2", "ib_b") + "mtuu = 1\n";
    host.file("etc/ibprov/ibprov.toml", &text);
    let shown = host.show(&["config", "udev-rules"]);
    assert!(shown.contains("\"ib_a\"") && !shown.contains("\"ib_b\""), "{shown}");
    assert!(shown.contains("/etc/ibprov/ibprov.toml:7:1"), "{shown}");
    assert!(shown.ends_with("exit 1\n"), "{shown}");
}

#[test]
fn a_host_without_cards_plans_nothing() {
    let host = Host::new();
    host.remove("sys/module/ib_ipoib");
    expect![[r#"
        boot would change nothing: no InfiniBand port is expected
        exit 0
    "#]]
    .assert_eq(&host.show(&["boot", "--dry-run"]));
}

/// A ConnectX-3 has the types of its ports in sysfs, an mlx5 adapter in its firmware.
#[test]
fn the_type_of_a_port_is_set_or_the_firmware_s_setting_is_named() {
    let host = Host::healthy();
    host.function("0000:02:00.0", "15b3:1003", "028000", Some("mlx4_core"));
    host.file("sys/bus/pci/devices/0000:02:00.0/mlx4_port1", "ib\n");
    host.file("sys/bus/pci/devices/0000:02:00.0/mlx4_port2", "auto (eth)\n");
    let row = |pci: &str| format!("[[port]]\npci = \"{pci}\"\ntype = \"eth\"\n");
    host.file("etc/ibprov/ibprov.toml", &row("0000:02:00.0"));
    let shown = host.show(&["boot", "--dry-run"]);
    assert!(shown.contains("set the port type of 0000:02:00.0: port 1 to eth\n"), "{shown}");
    host.file("etc/ibprov/ibprov.toml", &row(PF));
    let shown = host.show(&["status"]);
    assert!(shown.contains("the port is in InfiniBand mode, and an Ethernet port"), "{shown}");
    assert!(shown.contains("mstconfig -d 0000:4b:00.0 set LINK_TYPE_P1=2\n"), "{shown}");
    host.file("etc/ibprov/ibprov.toml", "[[port]]\nrdma = \"mlx4_0\"\ntype = \"eth\"\n");
    let shown = host.show(&["config", "check"]);
    assert!(shown.contains("error: port.type needs port.pci\n"), "{shown}");
}

/// The mode is a parameter of ib_core, which follows each change.
#[test]
fn the_network_namespace_mode_is_set_and_who_else_sets_it_is_named() {
    let host = Host::healthy();
    let parameter = "sys/module/ib_core/parameters/netns_mode";
    host.file(parameter, "Y\n");
    assert!(host.show(&["boot", "--dry-run"]).contains("boot would change nothing"));
    host.file("etc/ibprov/ibprov.toml", "[rdma]\nnetns = \"exclusive\"\n");
    let shown = host.show(&["boot", "--dry-run"]);
    assert!(shown.contains("set the RDMA network namespace mode to exclusive\n"), "{shown}");
    let mode = "RDMA network namespace mode:";
    let planned = format!("{mode} shared, would be set to exclusive\nexit 1\n");
    assert_eq!(host.show(&["plan"]), planned);
    let output = host.ibprov(&["status", "--format", "json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = status["findings"].as_array().expect("findings").iter();
    let of: Vec<_> = findings.filter(|f| f["code"] == "netns-mode").collect();
    assert_eq!((output.status.code(), of.len()), (Some(1), 1), "{status:#}");
    assert!(of[0]["advice"][1].to_string().contains("netns_mode=0"), "{of:#?}");
    host.file(parameter, "N\n");
    assert!(host.show(&["boot", "--dry-run"]).contains("boot would change nothing"));
    assert_eq!(host.ibprov(&["status"]).status.code(), Some(0));
    host.file("etc/modprobe.d/sriov.conf", "options ib_core netns_mode=1\n");
    for verb in [&["status"][..], &["boot", "--dry-run"], &["plan"]] {
        let shown = host.show(verb);
        assert!(shown.contains("/etc/modprobe.d/sriov.conf:1 sets the RDMA network"), "{shown}");
    }
    host.remove("etc/modprobe.d/sriov.conf");
    assert_eq!(host.show(&["plan"]), format!("{mode} exclusive, as configured\nexit 0\n"));
    host.file("etc/ibprov/ibprov.toml", "[rdma]\nnetns = \"private\"\n");
    let shown = host.show(&["config", "check"]);
    assert!(shown.contains("is not a network namespace mode"), "{shown}");
}

#[test]
fn an_rdma_device_with_another_name_is_to_be_renamed() {
    let host = Host::healthy();
    host.file("etc/ibprov/ibprov.toml", "[[port]]\npci = \"4b:00.0\"\nrdma-name = \"rail0\"\n");
    let told = host.show(&["boot", "--dry-run"]);
    assert!(told.contains("name the RDMA device of 0000:4b:00.0 rail0"), "{told}");
    for verb in ["status", "check"] {
        let told = host.show(&[verb]);
        let why = "mlx5_0: another name is configured (rdma-name), which a restart of ibprov sets";
        assert!(told.contains(why), "{verb}: {told}");
    }
    host.file("etc/ibprov/ibprov.toml", "[[port]]\npci = \"4b:00.0\"\n");
    assert!(host.show(&["status"]).starts_with("ready:"));
}
