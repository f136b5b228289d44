//! `[[subnet-manager]]` on copied trees: why opensm would not be started, what it would be
//! given, and how `status` and `config check` tell of it.

use std::process::Command;

use expect_test::expect;
use serde_json::Value;

use crate::host::{Host, PF};

const GUID: &str = "b8599f030012a480";
const UNIT: &str = "ibprov-opensm@sys-devices-x-infiniband_mad-issm0.service";
const ENTRY: &str = "[[subnet-manager]]\nport-guid = \"b8599f030012a480\"\npriority = 14\n";
const TARGET: &str = "etc/systemd/system/multi-user.target.wants/ibprov-opensm.target";

/// A host whose port has a device for subnet managers and an entry; the target is enabled.
fn host(more: &str) -> Host {
    let host = Host::healthy();
    issm(&host, 0, "mlx5_0");
    host.file("etc/ibprov/ibprov.toml", &format!("{ENTRY}{more}"));
    host.link(TARGET, "/usr/lib/systemd/system/ibprov-opensm.target");
    host
}

fn issm(host: &Host, number: u8, device: &str) {
    let dir = format!("devices/x/infiniband_mad/issm{number}");
    let umad = format!("bus/pci/devices/{PF}/infiniband_mad/umad{number}");
    for dir in [&dir, &umad] {
        host.file(&format!("sys/{dir}/ibdev"), &format!("{device}\n"));
        host.file(&format!("sys/{dir}/port"), "1\n");
    }
    host.link(&format!("sys/class/infiniband_mad/issm{number}"), &format!("../../{dir}"));
}

fn run(host: &Host) -> String {
    host.show(&["opensm", "run", "/sys/devices/x/infiniband_mad/issm0"])
}

#[test]
fn opensm_is_given_what_is_ours_and_what_the_entry_adds() {
    let host = host(
        "partitions = \"/srv/partitions.conf\"\noptions = { routing_engine = \"updn\", qos = true }\n",
    );
    host.file("srv/partitions.conf", "Default=0x7fff,ipoib : ALL=full ;\n");
    expect![[r#"
        # Written by ibprov at each start, from /etc/ibprov/ibprov.toml:1.
        guid 0xb8599f030012a480
        sm_priority 14
        partition_config_file /srv/partitions.conf
        log_file stdout
        dump_files_dir /var/lib/ibprov/opensm/b8599f030012a480
        daemon FALSE
        console off
        qos TRUE
        routing_engine updn
        exit 0
    "#]]
    .assert_eq(&run(&host));
    // By its name too.
    assert!(host.show(&["opensm", "run", "issm0"]).ends_with("exit 0\n"));
}

/// What opensm would not take as meant of the file that it is given: nothing.
#[test]
#[ignore = "needs opensm and ibsim; make test-opensm"]
fn opensm_reads_what_it_is_given() {
    let host = host(
        "options = { routing_engine = \"updn\", subnet_prefix = \"0xfe80000000000001\", qos = true }\n",
    );
    let conf = run(&host);
    let conf = conf.strip_suffix("exit 0\n").expect("good");
    host.file("opensm.conf", conf);
    let opensm = std::env::var("OPENSM_ROOT").unwrap_or_default();
    let mut command = Command::new(format!("{opensm}/usr/sbin/opensm"));
    if !opensm.is_empty() {
        let lib = format!("{opensm}/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        command.env("LD_LIBRARY_PATH", lib);
    }
    let read = host.path("opensm.conf");
    let template = command.arg("-F").arg(read).args(["-c", "/dev/stdout"]).output();
    let template = String::from_utf8(template.expect("opensm").stdout).expect("UTF-8");
    assert!(
        !template.contains("Unrecognized") && !template.contains("Parsing error"),
        "{template}"
    );
    // What it has understood it writes again.
    for line in conf.lines().filter(|line| !line.starts_with('#')) {
        assert!(template.lines().any(|read| read == line), "{line}\n{template}");
    }
}

#[test]
fn a_port_that_no_entry_names_is_left_alone() {
    let host = host("");
    host.file("etc/ibprov/ibprov.toml", &ENTRY.replace(GUID, "b8599f030012a481"));
    assert_eq!(run(&host), "exit 64\n");
    host.remove("etc/ibprov/ibprov.toml");
    assert_eq!(run(&host), "exit 64\n");
    let unknown = host.show(&["opensm", "run", "issm7"]);
    assert!(unknown.ends_with("issm7: no such device\nexit 78\n"), "{unknown}");
    let hostile = host.show(&["opensm", "run", "../x"]);
    assert!(hostile.ends_with("../x: no such device\nexit 78\n"), "{hostile}");
}

#[test]
fn opensm_is_refused_for_an_error_of_its_own_table_alone() {
    let host = host("");
    let set = |text: &str| host.file("etc/ibprov/ibprov.toml", text);
    set(&format!("{ENTRY}[[guest]]\nunti = \"a.service\"\n"));
    let shown = run(&host);
    assert!(shown.contains("sm_priority 14\n") && shown.ends_with("exit 0\n"), "{shown}");
    let other = ENTRY.replace(GUID, "b8599f030012a481").replace("14", "16");
    set(&format!("{ENTRY}{other}"));
    assert!(run(&host).ends_with("exit 0\n"));
    for text in [
        ENTRY.replace("14", "16"),
        // It may have been meant for this port, or may have replaced the table.
        format!("{ENTRY}{}", other.replace("b8599f", "x")),
        format!("{ENTRY}["),
    ] {
        set(&text);
        let shown = run(&host);
        assert!(shown.contains("opensm is not started") && shown.ends_with("exit 69\n"), "{shown}");
    }
}

#[test]
fn opensm_is_not_started_where_it_would_do_harm_or_nothing() {
    let refused = |host: &Host, why: &str| {
        let said = run(host);
        let whole = format!("mlx5_0/1 (b859:9f03:0012:a480): opensm is not started: {why}");
        assert!(said.contains(&whole) && said.ends_with("exit 69\n"), "{said}");
    };
    let vf = host("");
    vf.link(&format!("sys/bus/pci/devices/{PF}/physfn"), "../0000:4b:00.7");
    vf.function("0000:4b:00.7", "15b3:101b", "020700", Some("mlx5_core"));
    refused(&vf, "the port is that of a VF, on which no subnet manager can run");
    let mut switch = host("");
    switch.bytes(
        &format!("sys/bus/pci/devices/{PF}/vpd"),
        b"\x82\x04\x00CX-7\x90\x0e\x00V3\x0bSMDL=SW_MNG\x78",
    );
    refused(&switch, "the port manages NVSwitches");
    switch = host("");
    switch.link("run/systemd/units/invocation:opensm@0xb8599f030012a480.service", "1f2e");
    refused(
        &switch,
        "opensm@0xb8599f030012a480.service has this port, and is active: `systemctl disable --now opensm@0xb8599f030012a480.service`",
    );
    let debian = host("");
    debian.link("etc/systemd/system/network-online.target.wants/opensm.service", "/x");
    refused(&debian, "opensm.service has this port, and is enabled");
    for ports in ["NONE", "0xb8599f030012a4ff"] {
        debian.file("etc/default/opensm", &format!("# PORTS=ALL\nPORTS=\"{ports}\"\n"));
        assert!(run(&debian).ends_with("exit 0\n"), "{ports}");
    }
    let absent = host("partitions = \"/srv/partitions.conf\"\n");
    refused(&absent, "the partitions file cannot be read: /srv/partitions.conf: ENOENT");
    let bad = host("");
    bad.file("etc/opensm/partitions.conf", "Default=0x7fff : ALL=full ;\nx=0x8010 ALL=full ;\n");
    refused(
        &bad,
        "/etc/opensm/partitions.conf has an error: `ibprov opensm check /etc/opensm/partitions.conf`",
    );
    let said = run(&bad);
    assert!(said.starts_with("error: opensm would throw away"), "{said}");
    // A warning does not keep it back.
    bad.file(
        "etc/opensm/partitions.conf",
        "Default=0x7fff : ALL=full ;\nx=0x8010,mtu=4: ALL=full ;\n",
    );
    let said = run(&bad);
    assert!(said.contains("warning: ") && said.ends_with("exit 0\n"), "{said}");
}

/// Whatever its name, and whoever pulls it in.
#[test]
fn another_unit_that_runs_opensm_keeps_ours_from_the_port() {
    let refused = |host: &Host, why: &str| {
        let said = run(host);
        let whole = format!("opensm is not started: {why}");
        assert!(said.contains(&whole) && said.ends_with("exit 69\n"), "{said}");
        let (_, findings, exit) = told(host);
        assert!(findings.contains(&"error opensm-other-unit".to_owned()), "{findings:?}");
        assert_eq!(exit, 3);
    };
    let dir = "etc/systemd/system";
    let rc = host("");
    rc.file(
        "etc/init.d/opensmd",
        "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: opensmd\n# Default-Start: 3 5\n### END INIT INFO\nexec /usr/sbin/opensm --daemon\n",
    );
    rc.link("etc/rc3.d/S60opensmd", "../init.d/opensmd");
    refused(&rc, "opensmd.service has this port, and is enabled");

    let site = |exec: &str| {
        let host = host("");
        let unit = format!("[Service]\nExecStart={exec}\n[Install]\nWantedBy=rdma-hw.target\n");
        host.file(&format!("{dir}/fabric-a.service"), &unit);
        host.link(&format!("{dir}/rdma-hw.target.wants/fabric-a.service"), "../fabric-a.service");
        host
    };
    let why = "fabric-a.service has this port, and is enabled: `systemctl disable --now fabric-a.service`";
    for exec in [
        "/usr/sbin/opensm -g 0xb8599f030012a480 -F /etc/opensm/a.conf",
        "-/usr/sbin/opensm --guid=0xb8599f030012a480",
        "/bin/sh -c 'opensm -p 9'",
        "/usr/sbin/opensm -F /etc/opensm/a.conf",
        "/usr/local/sbin/fabric",
    ] {
        let host = site(exec);
        host.file("etc/opensm/a.conf", "# a\nguid 0xb8599f030012a480\n");
        host.file("usr/local/sbin/fabric", "#!/bin/sh\nOPENSM=/usr/sbin/opensm\n$OPENSM -B\n");
        refused(&host, why);
    }
    for exec in [
        "/usr/sbin/opensm -g 0xb8599f030012a4ff",
        "/usr/sbin/opensm -F /etc/opensm/b.conf",
        "/usr/sbin/opensm-exporter --listen :9",
        "/usr/local/sbin/watch",
    ] {
        let host = site(exec);
        host.file("etc/opensm/b.conf", "guid 0xb8599f030012a4ff\n");
        host.file("usr/local/sbin/watch", "#!/bin/sh\n# opensm\npgrep -x opensm || exit 1\n");
        assert!(run(&host).ends_with("exit 0\n"), "{exec}: {}", run(&host));
    }
    // By no unit.
    let line = host("");
    line.file("etc/rc.local", "#!/bin/sh\nsleep 9; /usr/sbin/opensm -B -g 0xb8599f030012a480\n");
    refused(&line, "/etc/rc.local:2 has this port, and starts opensm at boot: remove the line");
    line.file("etc/rc.local", "#!/bin/sh\n/usr/sbin/opensm -B -g 0xb8599f030012a4ff\n");
    assert!(run(&line).ends_with("exit 0\n"), "{}", run(&line));
    // By hand, and not enabled.
    let active = site("/usr/sbin/opensm");
    active.remove(&format!("{dir}/rdma-hw.target.wants/fabric-a.service"));
    assert!(run(&active).ends_with("exit 0\n"));
    active.link("run/systemd/units/invocation:fabric-a.service", "1f2e");
    refused(&active, "fabric-a.service has this port, and is active");
    let masked = site("/usr/sbin/opensm");
    masked.remove(&format!("{dir}/fabric-a.service"));
    masked.link(&format!("{dir}/fabric-a.service"), "/dev/null");
    assert!(run(&masked).ends_with("exit 0\n"));
}

/// Who has them can do what the subnet manager does.
#[test]
fn keys_of_the_fabric_are_not_shown() {
    let host = host("options = { sm_key = \"0x0a1b2c3d4e5f6071\", routing_engine = \"updn\" }\n");
    for verb in [
        &["opensm", "run", "issm0"][..],
        &["config", "show"],
        &["config", "show", "--format", "json"],
    ] {
        let said = host.show(verb);
        assert!(!said.contains("0a1b2c3d") && said.contains("sm_key"), "{said}");
        assert!(said.contains("***") && said.contains("updn"), "{said}");
    }
}

/// A reload reads the file that the running opensm has.
#[test]
fn a_reload_with_an_error_is_refused() {
    let host = host("");
    let reload = || host.show(&["opensm", "run", "--reload", "issm0"]);
    host.file(
        &format!("run/ibprov/opensm/{GUID}/opensm.conf"),
        "partition_config_file /srv/p.conf\n",
    );
    host.file("srv/p.conf", "Default=0x7fff : ALL=full ;\n");
    assert_eq!(reload(), "exit 0\n");
    host.file("srv/p.conf", "Default=0x7fff ALL=full ;\n");
    let said = reload();
    assert!(
        said.contains("opensm goes on with the partitions that it has: /srv/p.conf has"),
        "{said}"
    );
    assert!(said.ends_with("exit 69\n"), "{said}");
}

/// The state of the one subnet manager, the findings of it, and the exit code.
fn told(host: &Host) -> (Value, Vec<String>, i64) {
    let out = host.ibprov(&["status", "--format", "json"]);
    let status: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = status["findings"].as_array().expect("findings").iter();
    let of_it = all.filter(|finding| {
        let code = word(&finding["code"]);
        code.starts_with("subnet-manager-") || code == "opensm-other-unit"
    });
    let findings = of_it.map(|f| format!("{} {}", word(&f["severity"]), word(&f["code"])));
    let metrics = host.show(&["metrics"]);
    for manager in status["subnet_managers"].as_array().expect("a list") {
        let line = format!(
            "ibprov_subnet_manager{{port_guid={},state={}}} 1\n",
            manager["port_guid"], manager["state"]
        );
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    let findings = findings.collect();
    (status["subnet_managers"][0].clone(), findings, status["exit_code"].as_i64().expect("a code"))
}

/// What the last run has left, and whether its unit is up.
fn ran(host: &Host, stage: &str, reason: &str, is_up: bool) {
    let run = format!(r#"{{"stage":"{stage}","reason":{reason},"pid":9}}"#);
    host.file(&format!("run/ibprov/opensm/{GUID}.json"), &run);
    if is_up {
        host.link(&format!("run/systemd/units/invocation:{UNIT}"), "1f2e");
    }
}

#[test]
fn status_says_how_each_stands() {
    let port = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/ports/1");
    let master = host("");
    ran(&master, "running", "null", true);
    master.file(&format!("{port}/sm_lid"), "0x4\n");
    master.file(&format!("{port}/lid"), "0x4\n");
    let (manager, findings, exit) = told(&master);
    assert_eq!((&manager["state"], findings.len(), exit), (&"master".into(), 0, 0), "{manager}");
    let text = master.show(&["status"]);
    let line = format!(
        "\nsubnet manager: mlx5_0/1 (b859:9f03:0012:a480), priority 14: master ('{UNIT}')\n"
    );
    assert!(text.contains(&line), "{text}");
    master.file(&format!("{port}/sm_lid"), "0x7\n");
    let (manager, findings, _) = told(&master);
    assert_eq!((&manager["state"], &manager["master_lid"]), (&"standby".into(), &7.into()));
    assert!(findings.is_empty(), "{findings:?}");
    master.file(&format!("{port}/sm_lid"), "0x0\n");
    assert_eq!(told(&master).0["state"], "starting");
    master.file(&format!("{port}/phys_state"), "2: Polling\n");
    assert_eq!(told(&master).0["state"], "waiting-for-link");

    let waiting = host("");
    ran(&waiting, "waiting", "\"0x7 is the subnet manager\"", true);
    let (manager, findings, exit) = told(&waiting);
    assert_eq!(manager["state"], "waiting");
    assert_eq!(manager["reason"], "0x7 is the subnet manager");
    assert_eq!((findings, exit), (vec!["warning subnet-manager-not-running".to_owned()], 1));

    for (stage, state) in [("refused", "refused"), ("running", "not-running")] {
        let down = host("");
        ran(&down, stage, "\"the partitions file has an error\"", false);
        let (manager, findings, exit) = told(&down);
        assert_eq!(manager["state"], state, "{manager}");
        assert_eq!((findings, exit), (vec!["error subnet-manager-not-running".to_owned()], 3));
    }
}

#[test]
fn what_cannot_run_is_told_before_it_is_started() {
    let config = |host: &Host| host.show(&["config", "check"]);
    let no_device = host("");
    no_device.remove("sys/class/infiniband_mad/issm0");
    let (manager, findings, _) = told(&no_device);
    assert_eq!(manager["state"], "no-device");
    assert_eq!(findings, ["error subnet-manager-not-running"]);
    let said = config(&no_device);
    assert!(said.contains("the port has no issm device") && said.ends_with("exit 2\n"), "{said}");

    let absent = host("");
    absent.file("etc/ibprov/ibprov.toml", &ENTRY.replace(GUID, "b8599f030012a481"));
    assert_eq!(told(&absent).0["state"], "no-port");
    let ethernet = host("");
    let port = format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/ports/1");
    ethernet.file(&format!("{port}/link_layer"), "Ethernet\n");
    assert_eq!(told(&ethernet).0["state"], "no-port");

    let other = host("");
    other.link("run/systemd/units/invocation:opensm.service", "1f2e");
    let (_, findings, exit) = told(&other);
    assert!(findings.contains(&"error opensm-other-unit".to_owned()), "{findings:?}");
    assert_eq!(exit, 3);
    let said = config(&other);
    assert!(
        said.contains("opensm.service is active for this port") && said.ends_with("exit 2\n"),
        "{said}"
    );
}

#[test]
fn an_entry_without_the_target_and_the_target_without_an_entry_are_told() {
    let entry = host("");
    entry.remove(TARGET);
    let (manager, findings, exit) = told(&entry);
    assert_eq!(manager["state"], "not-enabled");
    assert_eq!((findings, exit), (vec!["warning subnet-manager-not-enabled".to_owned()], 1));
    let said = entry.show(&["config", "check"]);
    let advice =
        "    run: systemctl enable ibprov-opensm.target && udevadm trigger -s infiniband_mad\n";
    assert!(said.contains(advice) && said.ends_with("exit 0\n"), "{said}");

    let target = host("");
    target.remove("etc/ibprov/ibprov.toml");
    let (manager, findings, exit) = told(&target);
    assert_eq!(manager, Value::Null);
    assert_eq!((findings, exit), (vec!["warning subnet-manager-not-enabled".to_owned()], 1));
    let said = target.show(&["config", "check"]);
    assert!(
        said.contains("no [[subnet-manager]] is configured") && said.ends_with("exit 0\n"),
        "{said}"
    );
    // Masked, it starts nothing.
    target.link("etc/systemd/system/ibprov-opensm.target", "/dev/null");
    assert!(told(&target).1.is_empty());
}

/// What starts opensm today is listed with the entries that would do the same, and left.
#[test]
fn a_migration_proposes_entries_and_enables_nothing() {
    let host = Host::healthy();
    host.link("etc/systemd/system/multi-user.target.wants/opensm.service", "/x");
    let guids = "GUIDS=\"0xb8599f030012a480 0xb8599f030012a364\"  #ibstat -p\n";
    host.file("etc/sysconfig/opensm", &format!("PRIORITY=15\n{guids}"));
    let said = host.show(&["migrate"]);
    assert!(
        said.contains("  left: opensm.service: the unit continues to start opensm\n"),
        "{said}"
    );
    let entries = "subnet-manager = [{ port-guid = \"b8599f030012a364\", priority = 15 }, { port-guid = \"b8599f030012a480\", priority = 15 }]";
    assert!(said.contains(&format!("    do: {entries}\n")), "{said}");
    // It is pasted as it is.
    host.file("etc/ibprov/ibprov.toml", &format!("{entries}\n"));
    let shown = host.show(&["config", "show", "--changed"]);
    assert!(shown.contains("port-guid = \"b859:9f03:0012:a480\""), "{shown}");
    assert!(!said.contains("ibprov-opensm.target.wants"), "{said}");
}
