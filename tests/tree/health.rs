//! One line for those who run health checks, with exit codes that they understand.

use std::process::Command;

use crate::active::{DARK, LIT, rails};
use crate::host::Host;

const ASKERS: [&str; 4] = ["npd", "nagios", "nhc", "slurm"];

/// What health prints, and its exit codes in the order of [`ASKERS`].
#[track_caller]
fn assert_told(host: &Host, codes: [i32; 4], line: &str) {
    for (asker, code) in ASKERS.into_iter().zip(codes) {
        let out = host.ibprov(&["health", "--for", asker]);
        let said = String::from_utf8(out.stdout).expect("text");
        let first = said.lines().next().unwrap_or_default();
        let own = first.split(" | ").next().unwrap_or_default();
        assert_eq!((out.status.code(), own), (Some(code), line), "{asker}: {said}");
        assert_eq!((first != own, asker), (asker == "nagios", asker), "{said}");
        assert!(asker == "nagios" || said.lines().count() == 1, "{said}");
        assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    let (out, status) = (host.ibprov(&["health"]), host.ibprov(&["status"]));
    assert_eq!(String::from_utf8(out.stdout).expect("text"), format!("{line}\n"));
    assert_eq!(out.status.code(), status.status.code());
}

#[test]
fn each_verdict_is_one_line_and_the_code_that_the_asker_knows() {
    assert_told(&rails(&[LIT, LIT]), [0; 4], "ready: 2/2 ports");
    assert_told(&Host::new(), [0; 4], "nothing expected: this host shows no InfiniBand adapter");
    assert_told(
        &rails(&[LIT, DARK, LIT]),
        [1; 4],
        "ready with exceptions: port-not-active mlx5_1/1; 2/3 ports",
    );
    assert_told(&rails(&[DARK]), [1, 2, 1, 1], "NOT READY: port-not-active mlx5_0/1; 0/1 ports");
    assert_told(
        &rails(&[DARK; 8]),
        [1, 2, 1, 1],
        "NOT READY: port-not-active mlx5_0/1 and 7 more; 0/8 ports",
    );
    let host = rails(&[LIT]);
    host.file("etc/ibprov/ibprov.toml", "boot = 1\n");
    let line = "NOT READY: configuration-invalid /etc/ibprov/ibprov.toml:1:8; no port is expected and no VF is planned";
    assert_told(&host, [2, 2, 1, 1], line);
    let host = rails(&[DARK]);
    host.file("etc/ibprov/ibprov.toml", "[boot]\ntimeuot = \"3min\"\n");
    let out = host.ibprov(&["health", "--for", "npd"]);
    assert_eq!(out.status.code(), Some(1), "a port is dark whatever else is wrong");
}

/// The object stands before the counts, so that a cut at 80 characters leaves it.
#[test]
fn a_checker_that_cuts_the_line_keeps_code_and_object() {
    let host = rails(&[LIT, LIT]);
    host.file("sys/bus/pci/devices/0000:10:00.0/sriov_totalvfs", "8\n");
    host.file("sys/bus/pci/devices/0000:10:00.0/mlx5_num_vfs", "0\n");
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[pf]]\npci = \"0000:10:00.0\"\nvfs = 4\nguid.template = \"02:00:00:00:00:12:{kind:8}:{vf:8}\"\n",
    );
    let line = "NOT READY: vf-not-as-planned 0000:10:00.0; 2/2 ports, 0/4 VFs";
    assert_told(&host, [1, 2, 1, 1], line);
}

#[test]
fn nagios_gets_perfdata_and_the_findings_as_long_output() {
    let said = rails(&[LIT, DARK]).show(&["health", "--for", "nagios"]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].ends_with(" | ports=1;;;0;2 vfs=0;;;0;0"), "{said}");
    assert!(lines[1].starts_with("warning: mlx5_1/1: no link: "), "{said}");
}

/// Which exceptions fail a node: what the configuration asks for and the node has not now.
#[test]
fn what_the_configuration_demands_drains_and_what_is_over_does_not() {
    let row = |row: &str| format!("[[port]]\nrdma = \"mlx5_0\"\n{row}\n");
    let demands: [(&str, &str); 3] = [
        ("rate = \"400 Gb/s\"", "port-degraded mlx5_0/1"),
        ("pcie-width = \"x16\"", "pcie-below-minimum mlx5_0/1"),
        ("pkeys = [\"0x8012\"]", "pkey-missing mlx5_0/1"),
    ];
    for (demand, finding) in demands {
        let host = rails(&[LIT, LIT]);
        host.pkeys("0000:10:00.0", "mlx5_0", &["0xffff"]);
        host.file("sys/bus/pci/devices/0000:10:00.0/current_link_width", "8\n");
        host.file("etc/ibprov/ibprov.toml", &row(demand));
        let line = format!("ready with exceptions: {finding}; 2/2 ports");
        assert_told(&host, [1; 4], &line);
        // The administrator may want less, by the code.
        let code = finding.split(' ').next().expect("a code");
        let tolerate = format!("health.tolerate = [\"{code}\"]\n{}", row(demand));
        host.file("etc/ibprov/ibprov.toml", &tolerate);
        assert_told(&host, [0, 1, 0, 0], &line);
    }
    let host = rails(&[LIT, LIT]);
    host.file("sys/bus/pci/devices/0000:10:00.0/infiniband/mlx5_0/fw_ver", "20.35.1012\n");
    let old = row("firmware = \">= 20.40\"");
    host.file("etc/ibprov/ibprov.toml", &old);
    let line = "ready with exceptions: firmware-below-minimum mlx5_0/1; 2/2 ports";
    assert_told(&host, [0, 1, 0, 0], line);
    host.file(
        "etc/ibprov/ibprov.toml",
        &format!("health.fail-on = [\"firmware-below-minimum\"]\n{old}"),
    );
    assert_told(&host, [1; 4], line);

    // The fabric came up after the boot had given up.
    let host = rails(&[LIT, LIT]);
    let report = r#"{"schema":1,"report":"boot","verdict":"not-ready","exit_code":3}"#;
    host.file("run/ibprov/boot.json", report);
    assert_told(&host, [0, 1, 0, 0], "ready with exceptions: boot-failed; 2/2 ports");

    let host = rails(&[LIT, DARK]);
    host.file("etc/ibprov/ibprov.toml", "[[port]]\nrdma = \"mlx5_1\"\nrequired = false\n");
    assert_told(&host, [0; 4], "ready: 1/2 ports");
}

/// What is worse than an exception is tolerated by its code too; what is beside it is not.
#[test]
fn a_tolerated_error_hides_no_other() {
    let host = rails(&[LIT]);
    host.function("0000:5e:00.0", "15b3:1003", "028000", None);
    host.file("etc/modprobe.d/site.conf", "blacklist mlx4_core\n");
    let line = "NOT READY: module-denied 0000:5e:00.0; 1/2 ports";
    assert_told(&host, [1, 2, 1, 1], line);
    host.file("etc/ibprov/ibprov.toml", "health.tolerate = [\"module-denied\"]\n");
    assert_told(&host, [0, 2, 0, 0], line);
    host.file(
        "etc/ibprov/ibprov.toml",
        "health.tolerate = [\"module-denied\"]\n[[port]]\nrdma = \"mlx5_7\"\n",
    );
    let out = host.ibprov(&["health", "--for", "slurm"]);
    let said = String::from_utf8(out.stdout).expect("text");
    assert_eq!(
        (out.status.code(), said.trim()),
        (Some(1), "NOT READY: port-absent mlx5_7; 1/3 ports")
    );
}

#[test]
fn a_code_that_does_not_exist_is_an_error_of_the_configuration() {
    let host = rails(&[LIT]);
    for key in ["tolerate", "fail-on"] {
        host.file("etc/ibprov/ibprov.toml", &format!("health.{key} = [\"port-degrade\"]\n"));
        let out = host.ibprov(&["config", "check"]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned()
            + &String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("\"port-degrade\"") && said.contains("port-degraded"), "{said}");
    }
}

/// What the driver container of NVIDIA's Network Operator does to a node: it denies the kernel's
/// drivers, and loads its own once kubelet has started it.
#[test]
fn a_node_whose_drivers_come_from_a_container_is_healthy_once_they_are_there() {
    let row = "[[port]]\npci = \"0000:10:00.0\"\nwait = \"online\"\n";
    let deny = "blacklist mlx5_core\nblacklist mlx5_ib\nblacklist ib_ipoib\n";
    let before = Host::new();
    before.function("0000:10:00.0", "15b3:101b", "020700", None);
    let after = rails(&[LIT]);
    for host in [&before, &after] {
        host.file("etc/modprobe.d/blacklist-ofed-modules.conf", deny);
        host.file("etc/ibprov/ibprov.toml", row);
    }
    before.remove("sys/module/ib_ipoib");
    assert_eq!(before.ibprov(&["boot", "--dry-run"]).status.code(), Some(0), "nothing to wait for");
    assert_eq!(before.ibprov(&["health", "--for", "npd"]).status.code(), Some(1));
    assert_told(&after, [0; 4], "ready: 1/1 ports");
}

#[test]
fn json_is_of_status() {
    let out = Host::new().ibprov(&["health", "--for", "npd", "--format", "json"]);
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8(out.stdout).expect("text");
    assert!(said.contains("`ibprov status --format json`"), "{said}");
}

/// The check of Node Health Check, which reports a failure by its `die`.
#[test]
fn node_health_check_tells_the_line() {
    let check = include_str!("../../docs/examples/health/ibprov.nhc");
    let ran = |host: &Host| {
        let program =
            format!("{} --root {}", env!("CARGO_BIN_EXE_ibprov"), host.path("").display());
        let check = check.replace("/usr/sbin/ibprov", &program);
        let script =
            format!("die() {{ echo \"ERROR: nhc: $2\"; exit $1; }}\n{check}\ncheck_ibprov");
        let out = Command::new("bash").args(["-euc", &script]).output().expect("bash runs");
        (out.status.code(), String::from_utf8(out.stdout).expect("text"))
    };
    assert_eq!(ran(&rails(&[LIT])), (Some(0), String::new()));
    let (code, said) = ran(&rails(&[DARK]));
    assert_eq!(code, Some(1));
    assert!(
        said.starts_with("ERROR: nhc: check_ibprov:  NOT READY: port-not-active mlx5_0/1"),
        "{said}"
    );
}
