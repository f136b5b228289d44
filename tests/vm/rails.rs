//! RDMA devices with names of the configuration, and the gate for what another program creates.

use crate::bed::journal::assert_in_order;
use crate::machine::{self, boot};

fn scene(name: &str) -> String {
    machine::scene("rails", name)
}

const NAMES: &str = "0001:01:00.0 rail1\n0001:02:00.0 rail0\n";

#[test]
fn rdma_devices_have_their_names_before_the_network_and_after_a_rebind() {
    let guest = boot("rails");
    guest.assert_success();
    assert_eq!(guest.file("names"), NAMES);
    assert_eq!(guest.file("rebound"), NAMES);
    let report = guest.boot_json();
    assert_eq!(report["verdict"], "ready", "{report:#}");
    let ports = report["ports"].as_array().expect("ports");
    let names: Vec<&str> = ports.iter().filter_map(|port| port["rdma"].as_str()).collect();
    assert_eq!(names, ["rail1", "rail0"], "{report:#}");
}

#[test]
fn a_name_that_is_lost_is_an_exception_until_boot_runs_again() {
    let guest = boot("rails");
    let lost = guest.json("renamed.json");
    let codes = |report: &serde_json::Value| {
        let findings = report["findings"].as_array().expect("findings").iter();
        let of = findings.map(|f| format!("{} {}", f["code"], f["object"]).replace('"', ""));
        of.collect::<Vec<String>>()
    };
    assert!(codes(&lost).contains(&"rdma-name-differs other0".to_owned()), "{lost:#}");
    assert_eq!(guest.file("restarted"), NAMES);
    // One that has another's name gets its own first.
    assert_eq!(guest.file("taken"), NAMES);
    assert_eq!(guest.json("taken.json")["verdict"], "ready");
}

#[test]
fn boot_does_not_wait_for_vfs_of_another_program_and_the_gate_does() {
    let guest = boot("rails");
    let journal = &guest.journal;
    assert_in_order(&[
        ("ibprov.service", journal.started("ibprov.service")),
        ("network.target", journal.started("network.target")),
        ("ibprov-wait-online.service", journal.started("ibprov-wait-online.service")),
        ("gated.service", journal.started("gated.service")),
        ("vf-loop.service", journal.started("vf-loop.service")),
    ]);
    assert_eq!(guest.file("gated"), "mlx5_core\nmlx5_core\n");
    assert!(guest.file("waiting").contains("2 of 2 VFs of 0001:01:00.0"));
    let online = guest.json("online.json");
    assert_eq!(online["verdict"], "ready", "{online:#}");
    for unit in ["vf-agent.service", "gated.service", "vf-loop.service"] {
        println!("{unit}: {:?}", journal.started(unit));
    }
}

#[test]
fn health_is_one_line_with_the_code_of_who_asks() {
    let guest = boot("rails");
    let said = guest.stdout();
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("restart")).collect();
    assert_eq!(lines[0], "ready with exceptions: vf-guid-zero 0001:01:00.0; 2/2 ports");
    assert_eq!(lines[1], "health: 0");
    assert!(lines[2].starts_with("NOT READY: port-absent "), "{said}");
    assert!(lines[2].contains("; 2/3 ports | ports=2;;;0;3 vfs=0;;;0;0"), "{said}");
    assert!(lines[3].starts_with("error: ") && lines.contains(&"health: 2"), "{said}");
}
