use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use expect_test::expect;

use crate::host::Host;

const BOOT: &str = r#"{
  "schema": 1, "report": "boot", "verdict": "exceptions", "exit_code": 1,
  "started_usec": 5000000, "finished_usec": 7312000,
  "ports": [
    {"expected": "0000:4b:00.0", "pci": "0000:4b:00.0", "rdma": "mlx5_0", "port": 1,
     "port_guid": null, "link_layer": "infiniband", "netdev": "ib0", "named_usec": 5312000,
     "reached": "named", "goal": "named", "required": true, "ready": true, "missing": null,
     "cause": null},
    {"expected": "mlx5_7", "pci": null, "rdma": null, "port": null, "port_guid": null,
     "link_layer": null, "netdev": null, "named_usec": null, "reached": null, "goal": "named",
     "required": false, "ready": false, "missing": "pci", "cause": null}
  ],
  "timeline": [
    {"usec": 4900000, "text": "", "climbed": {"expected": "0000:4b:00.0", "port": null, "rung": "driver"}},
    {"usec": 5312000, "text": "", "climbed": {"expected": "0000:4b:00.0", "port": 1, "rung": "named"}},
    {"usec": 6000000, "text": "the end", "climbed": null}
  ]
}"#;

const GUESTS: &str = r#"{
  "schema": 1, "report": "guests", "verdict": "exceptions", "exit_code": 1,
  "guests": [
    {"name": "vm1", "kind": "domain", "phase": "up", "already": false},
    {"name": "vm2", "kind": "domain", "phase": "failed", "reason": "no"},
    {"name": "vm3", "kind": "domain", "phase": "up", "already": true}
  ]
}"#;

#[test]
fn the_metrics_of_a_node_say_what_status_says() {
    let host = Host::healthy();
    let toml = "[[port]]\nrdma = \"mlx5_7\"\nrequired = false\n\n[[pf]]\npci = \"0000:4b:00.0\"\nvfs = 4\nguid.template = \"02:00:00:00:00:12:{kind:8}:{vf:8}\"\n";
    host.file("etc/ibprov/ibprov.toml", toml);
    host.file("sys/bus/pci/devices/0000:4b:00.0/sriov_totalvfs", "8\n");
    host.file("sys/bus/pci/devices/0000:4b:00.0/sriov_numvfs", "0\n");
    host.file("run/ibprov/boot.json", BOOT);
    host.file("run/ibprov/guests.json", GUESTS);
    expect![[r##"
        # HELP ibprov_info The version of ibprov and of the kernel; the value is 1.
        # TYPE ibprov_info gauge
        ibprov_info{version="0.2.0",kernel="6.1.0-9-amd64"} 1
        # HELP ibprov_schema_version The version of the format of ibprov's reports.
        # TYPE ibprov_schema_version gauge
        ibprov_schema_version 1
        # HELP ibprov_node_exit_code The exit code of ibprov status: 0 ready, 1 with exceptions, 2 not known, 3 not ready.
        # TYPE ibprov_node_exit_code gauge
        ibprov_node_exit_code 3
        # HELP ibprov_node_verdict 1 for the verdict on the node, 0 for the others.
        # TYPE ibprov_node_verdict gauge
        ibprov_node_verdict{verdict="exceptions"} 0
        ibprov_node_verdict{verdict="not-ready"} 1
        ibprov_node_verdict{verdict="nothing-expected"} 0
        ibprov_node_verdict{verdict="ready"} 0
        ibprov_node_verdict{verdict="unknown"} 0
        # HELP ibprov_findings The findings of ibprov status, by code and severity.
        # TYPE ibprov_findings gauge
        ibprov_findings{code="boot-failed",severity="warning"} 1
        ibprov_findings{code="guest-failed",severity="warning"} 1
        ibprov_findings{code="port-absent",severity="warning"} 1
        ibprov_findings{code="vf-not-as-planned",severity="error"} 1
        # HELP ibprov_configuration_errors Errors in the configuration; what they concern is left out.
        # TYPE ibprov_configuration_errors gauge
        ibprov_configuration_errors 0
        # HELP ibprov_configuration_warnings Settings that will not last, and configuration files that were not read.
        # TYPE ibprov_configuration_warnings gauge
        ibprov_configuration_warnings 0
        # HELP ibprov_enabled 1 if ibprov.service runs at boot.
        # TYPE ibprov_enabled gauge
        ibprov_enabled 1
        # HELP ibprov_ports_expected The ports that are expected.
        # TYPE ibprov_ports_expected gauge
        ibprov_ports_expected 2
        # HELP ibprov_ports_ready The expected ports that are ready: boot does not wait for them any more.
        # TYPE ibprov_ports_ready gauge
        ibprov_ports_ready 1
        # HELP ibprov_ports_active The expected ports that the fabric uses.
        # TYPE ibprov_ports_active gauge
        ibprov_ports_active 1
        # HELP ibprov_port_state The state of each expected port: 0 absent, 1 pci, 2 driver, 3 rdma, 4 netdev, 5 named, 6 configured, 7 link, 8 active.
        # TYPE ibprov_port_state gauge
        ibprov_port_state{expected="mlx5_7",required="false"} 0
        ibprov_port_state{pci="0000:4b:00.0",device="mlx5_0",port="1",netdev="ib0",required="true"} 8
        # HELP ibprov_vfs_planned The VFs that are planned.
        # TYPE ibprov_vfs_planned gauge
        ibprov_vfs_planned 4
        # HELP ibprov_vfs_as_planned The planned VFs that are as planned.
        # TYPE ibprov_vfs_as_planned gauge
        ibprov_vfs_as_planned 0
        # HELP ibprov_pf_vfs_planned The VFs that are planned at each PF.
        # TYPE ibprov_pf_vfs_planned gauge
        ibprov_pf_vfs_planned{pf="0000:4b:00.0"} 4
        # HELP ibprov_pf_vfs_as_planned The VFs of each PF that are as planned.
        # TYPE ibprov_pf_vfs_as_planned gauge
        ibprov_pf_vfs_as_planned{pf="0000:4b:00.0"} 0
        # HELP ibprov_guests The number of guests in each state.
        # TYPE ibprov_guests gauge
        ibprov_guests{phase="failed"} 1
        ibprov_guests{phase="idle"} 0
        ibprov_guests{phase="issued"} 0
        ibprov_guests{phase="starting"} 0
        ibprov_guests{phase="up"} 2
        # HELP ibprov_boot_exit_code The exit code of ibprov boot: 0 ready, 1 with exceptions, 3 not ready.
        # TYPE ibprov_boot_exit_code gauge
        ibprov_boot_exit_code 1
        # HELP ibprov_boot_verdict 1 for the verdict on the boot, 0 for the others.
        # TYPE ibprov_boot_verdict gauge
        ibprov_boot_verdict{verdict="exceptions"} 1
        ibprov_boot_verdict{verdict="interrupted"} 0
        ibprov_boot_verdict{verdict="not-ready"} 0
        ibprov_boot_verdict{verdict="nothing-expected"} 0
        ibprov_boot_verdict{verdict="ready"} 0
        # HELP ibprov_boot_duration_seconds How long ibprov boot took.
        # TYPE ibprov_boot_duration_seconds gauge
        ibprov_boot_duration_seconds 2.312000
        # HELP ibprov_boot_ports_expected The ports that the boot waited for.
        # TYPE ibprov_boot_ports_expected gauge
        ibprov_boot_ports_expected 2
        # HELP ibprov_boot_ports_ready The ports that were ready at the end of the boot.
        # TYPE ibprov_boot_ports_ready gauge
        ibprov_boot_ports_ready 1
        # HELP ibprov_boot_port_state_seconds When the boot first saw the port in the state, since the start of the kernel.
        # TYPE ibprov_boot_port_state_seconds gauge
        ibprov_boot_port_state_seconds{pci="0000:4b:00.0",device="mlx5_0",port="1",state="named"} 5.312000
        ibprov_boot_port_state_seconds{pci="0000:4b:00.0",device="mlx5_0",state="driver"} 4.900000
        exit 0
    "##]]
    .assert_eq(&host.show(&["metrics"]));
    let status = host.show(&["status"]);
    assert!(status.starts_with("NOT READY: 1 of 2 expected ports active, 0 of 4 VFs"), "{status}");
}

#[test]
fn a_bad_configuration_and_no_host_are_numbers_too() {
    let host = Host::new();
    host.file("etc/ibprov/ibprov.toml", "[boot]\ntimeout = 7\nports = 8\n");
    expect![[r##"
        # HELP ibprov_info The version of ibprov and of the kernel; the value is 1.
        # TYPE ibprov_info gauge
        ibprov_info{version="0.2.0",kernel="6.1.0-9-amd64"} 1
        # HELP ibprov_schema_version The version of the format of ibprov's reports.
        # TYPE ibprov_schema_version gauge
        ibprov_schema_version 1
        # HELP ibprov_node_exit_code The exit code of ibprov status: 0 ready, 1 with exceptions, 2 not known, 3 not ready.
        # TYPE ibprov_node_exit_code gauge
        ibprov_node_exit_code 3
        # HELP ibprov_node_verdict 1 for the verdict on the node, 0 for the others.
        # TYPE ibprov_node_verdict gauge
        ibprov_node_verdict{verdict="exceptions"} 0
        ibprov_node_verdict{verdict="not-ready"} 1
        ibprov_node_verdict{verdict="nothing-expected"} 0
        ibprov_node_verdict{verdict="ready"} 0
        ibprov_node_verdict{verdict="unknown"} 0
        # HELP ibprov_findings The findings of ibprov status, by code and severity.
        # TYPE ibprov_findings gauge
        ibprov_findings{code="configuration-invalid",severity="error"} 1
        ibprov_findings{code="ibprov-disabled",severity="warning"} 1
        # HELP ibprov_configuration_errors Errors in the configuration; what they concern is left out.
        # TYPE ibprov_configuration_errors gauge
        ibprov_configuration_errors 1
        # HELP ibprov_configuration_warnings Settings that will not last, and configuration files that were not read.
        # TYPE ibprov_configuration_warnings gauge
        ibprov_configuration_warnings 0
        # HELP ibprov_enabled 1 if ibprov.service runs at boot.
        # TYPE ibprov_enabled gauge
        ibprov_enabled 0
        # HELP ibprov_ports_expected The ports that are expected.
        # TYPE ibprov_ports_expected gauge
        ibprov_ports_expected 0
        # HELP ibprov_ports_ready The expected ports that are ready: boot does not wait for them any more.
        # TYPE ibprov_ports_ready gauge
        ibprov_ports_ready 0
        # HELP ibprov_ports_active The expected ports that the fabric uses.
        # TYPE ibprov_ports_active gauge
        ibprov_ports_active 0
        # HELP ibprov_vfs_planned The VFs that are planned.
        # TYPE ibprov_vfs_planned gauge
        ibprov_vfs_planned 0
        # HELP ibprov_vfs_as_planned The planned VFs that are as planned.
        # TYPE ibprov_vfs_as_planned gauge
        ibprov_vfs_as_planned 0
        # HELP ibprov_guests The number of guests in each state.
        # TYPE ibprov_guests gauge
        ibprov_guests{phase="failed"} 0
        ibprov_guests{phase="idle"} 0
        ibprov_guests{phase="issued"} 0
        ibprov_guests{phase="starting"} 0
        ibprov_guests{phase="up"} 0
        error: bad value for boot.ports
         --> /etc/ibprov/ibprov.toml:3:9
          |
        3 | ports = 8
          |         ^ expected a string with a choice of ports, got a whole number

        the configuration is not valid: 1 error
        exit 0
    "##]]
    .assert_eq(&host.show(&["metrics"]));
}

#[test]
fn the_file_is_replaced_and_everybody_may_read_it() {
    let host = Host::healthy();
    let dir = tempfile::tempdir().expect("directory");
    let (file, victim) = (dir.path().join("ibprov.prom"), dir.path().join("victim"));
    symlink(&victim, &file).expect("link");
    let out = host.show(&["metrics", "--output", file.to_str().expect("UTF-8")]);
    assert_eq!(out, "exit 0\n");
    assert!(!victim.exists());
    assert_eq!(std::fs::metadata(&file).expect("file").mode() & 0o7777, 0o644);
    let text = std::fs::read_to_string(&file).expect("file");
    assert_eq!(format!("{text}exit 0\n"), host.show(&["metrics"]));
    assert_eq!(std::fs::read_dir(dir.path()).expect("directory").count(), 1);
}

#[test]
fn what_cannot_be_had_is_refused_with_its_reason() {
    let host = Host::healthy();
    expect![[r#"
        error: cannot write /nowhere/ibprov.prom: ENOENT: No such file or directory
        exit 2
    "#]]
    .assert_eq(&host.show(&["metrics", "--output", "/nowhere/ibprov.prom"]));
    let out = host.ibprov(&["metrics", "--format", "json"]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("For JSON: `ibprov status --format json`"), "{text}");
}

/// A child that sleeps uninterruptibly outlasts every signal. opensm has the unit that it runs in.
#[test]
fn no_unit_waits_for_a_child_that_hangs() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["units", "packaging/prometheus"].map(|dir| fs::read_dir(project.join(dir)));
    let files = files.into_iter().flat_map(|dir| dir.expect("directory").flatten());
    let mut units = 0;
    for file in files.map(|file| file.path()) {
        let name = file.file_name().and_then(|name| name.to_str()).expect("name");
        let text = fs::read_to_string(&file).expect("text");
        if name.starts_with("ibprov-opensm@") || !text.contains("\nExecStart=/usr/sbin/ibprov ") {
            continue;
        }
        units += 1;
        assert!(text.contains("\nKillMode=process\n"), "{name}");
    }
    assert!(units > 7, "{units}");
}
