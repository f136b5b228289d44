//! The P_Key tables of ports, and netdevs that their partition keeps from being online.

use serde_json::{Value, json};

use crate::host::{Host, PF};

/// A healthy host whose port has this P_Key table.
fn with(table: &[&str]) -> Host {
    let host = Host::healthy();
    host.pkeys(PF, "mlx5_0", table);
    host
}

fn report(host: &Host, verb: &str) -> Value {
    let out = host.ibprov(&[verb, "--format", "json"]);
    serde_json::from_slice(&out.stdout).expect("JSON")
}

#[test]
fn status_shows_the_table_with_the_membership_of_each_entry() {
    let host = with(&["0x7fff", "0x0000", "0x8012"]);
    let shown = host.show(&["status", "-v"]);
    assert!(shown.contains("\n    P_Keys 0x7fff limited, 0x8012 full\n"), "{shown}");
    let pkeys = |host: &Host| report(host, "status")["hcas"][0]["ports"][0]["pkeys"].clone();
    let table = json!([
        {"index": 0, "pkey": "0x7fff", "membership": "limited"},
        {"index": 2, "pkey": "0x8012", "membership": "full"},
    ]);
    assert_eq!(pkeys(&host), table);
    assert!(with(&[]).show(&["status", "-v"]).contains("\n    P_Keys none\n"));
    // Not copied, or no table.
    let without = Host::healthy();
    assert_eq!(pkeys(&without), Value::Null);
    assert!(!without.show(&["status", "-v"]).contains("P_Key"));
    let odd = with(&["0xffff", "0x80"]);
    odd.file(&format!("sys/bus/pci/devices/{PF}/infiniband/mlx5_0/ports/1/pkeys/1"), "no\n");
    assert_eq!(pkeys(&odd), Value::Null);
    assert!(odd.show(&["status"]).contains("pkeys/1: \"no\" is not a P_Key"));
}
