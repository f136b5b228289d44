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
        assert_eq!((out.status.code(), said.as_str()), (Some(code), line), "{asker}");
        assert!(said.chars().count() <= 81, "{said:?}");
        assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    }
}

#[test]
fn each_verdict_is_one_line_and_the_code_that_the_asker_knows() {
    assert_told(&rails(&[LIT, LIT]), [0; 4], "ready: 2 of 2 expected ports active\n");
    assert_told(&Host::new(), [0; 4], "no InfiniBand: this host shows no InfiniBand adapter\n");
    assert_told(
        &rails(&[LIT, DARK, LIT]),
        [1; 4],
        "ready with exceptions: 2 of 3 expected ports active; port-not-active mlx5_1 p...\n",
    );
    assert_told(
        &rails(&[DARK]),
        [1, 2, 1, 1],
        "NOT READY: 0 of 1 expected ports active; port-not-active mlx5_0 port 1 (0000:...\n",
    );
    let host = rails(&[LIT]);
    host.file("etc/ibprov/ibprov.toml", "boot = 1\n");
    assert_told(
        &host,
        [2, 3, 1, 1],
        "UNKNOWN: 1 of 1 expected ports active; configuration-invalid\n",
    );
}

/// An exception that leaves all ports in use is no problem but to Nagios, which has a word for it.
#[test]
fn an_exception_with_active_ports_is_a_warning_of_nagios() {
    let host = rails(&[LIT, LIT]);
    host.file("etc/ibprov/ibprov.toml", "[[port]]\nrdma = \"mlx5_0\"\nrate = \"400 Gb/s\"\n");
    assert_told(
        &host,
        [0, 1, 0, 0],
        "ready with exceptions: 2 of 2 expected ports active; port-degraded mlx5_0 por...\n",
    );
    let host = rails(&[LIT, DARK]);
    host.file("etc/ibprov/ibprov.toml", "[[port]]\nrdma = \"mlx5_1\"\nrequired = false\n");
    assert_told(&host, [0; 4], "ready: 1 of 2 expected ports active\n");
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
    assert!(said.starts_with("ERROR: nhc: check_ibprov:  NOT READY: 0 of 1 expected"), "{said}");
}
