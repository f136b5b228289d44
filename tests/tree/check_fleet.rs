//! `ibprov check --fleet`: the reports of many nodes together.

use std::path::Path;
use std::process::Command;

use expect_test::expect;

use crate::host::{Host, assert_report};

/// Run `check --fleet` on `dir`: standard output and exit code.
fn fleet(dir: &Path, more: &[&str]) -> String {
    let mut arguments = vec!["check", "--fleet", dir.to_str().expect("UTF-8")];
    arguments.extend(more);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibprov"));
    let out = command.env_remove("COLUMNS").args(&arguments).output().expect("ibprov runs");
    assert_report(&arguments, &out);
    let shown = [out.stdout, out.stderr].concat();
    let shown = String::from_utf8(shown).expect("UTF-8").replace(arguments[2], "DIR");
    format!("{shown}exit {}\n", out.status.code().expect("exit code"))
}

/// A report of a node on `kernel` that found `findings`: code, severity, object.
fn report(kernel: &str, exit: u8, findings: &[(&str, &str, &str)]) -> String {
    let findings: Vec<String> = findings
        .iter()
        .map(|(code, severity, object)| {
            format!(
                r#"{{"code": "{code}", "severity": "{severity}", "object": "{object}",
                    "message": "not as expected",
                    "advice": [{{"purpose": "look", "run": "ip link"}},
                               {{"purpose": "now", "do": "do it"}}]}}"#
            )
        })
        .collect();
    format!(
        r#"{{"schema": 1, "report": "boot", "verdict": "x", "exit_code": {exit},
            "kernel": "{kernel}", "findings": [{}]}}"#,
        findings.join(",")
    )
}

fn nodes(dir: &Path) {
    let late = [("module-not-loaded", "warning", "ib_umad")];
    for n in 1..=12 {
        let (kernel, findings): (_, &[_]) =
            if n > 2 { ("6.1.0-56-amd64", &late) } else { ("6.1.0-9-amd64", &[]) };
        let text = report(kernel, u8::from(n > 2), findings);
        std::fs::write(dir.join(format!("c{n}.json")), text).expect("file");
    }
    let mut findings = late.to_vec();
    findings.push(("port-absent", "error", "0000:4b:00.0"));
    std::fs::write(dir.join("c13.json"), report("6.1.0-56-amd64", 3, &findings)).expect("file");
    std::fs::write(dir.join("README"), "not a report").expect("file");
}

#[test]
fn findings_are_grouped_and_what_few_nodes_have_comes_first() {
    let dir = tempfile::tempdir().expect("directory");
    nodes(dir.path());
    expect![[r#"
        NOT READY: 13 nodes: 1 not ready, 10 with exceptions, 2 as expected

        1 of 13 nodes: error: port-absent
          nodes: c13
          c13: 0000:4b:00.0: not as expected
          run: ip link
          do: do it

        11 of 13 nodes: warning: module-not-loaded since kernel 6.1.0-56-amd64
          nodes: c3, c4, c5, c6, c7, c8, c9, c10 and 3 more
          c10: ib_umad: not as expected
          run: ip link
          do: do it
        exit 3
    "#]]
    .assert_eq(&fleet(dir.path(), &[]));
    let json = fleet(dir.path(), &["--format", "json"]);
    let json = json.strip_suffix("exit 3\n").expect("not ready");
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(
        json["nodes"],
        serde_json::json!({"all": 13, "good": 2, "exceptions": 10, "not_ready": 1})
    );
    assert_eq!(json["findings"][1]["since_kernel"], "6.1.0-56-amd64");
    assert_eq!(json["findings"][1]["nodes"].as_array().map(Vec::len), Some(11));
}

#[test]
fn an_archive_of_collect_says_what_check_says_of_it() {
    let dir = tempfile::tempdir().expect("directory");
    let host = Host::healthy();
    host.remove("sys/module/ib_ipoib");
    for name in ["c1.tar.gz", "c2.tgz"] {
        let archive = dir.path().join(name);
        let out = host.ibprov(&["collect", archive.to_str().expect("UTF-8")]);
        assert!(archive.exists(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    let alone = Command::new(env!("CARGO_BIN_EXE_ibprov"))
        .args(["check", "--format", "json", "--log"])
        .arg(dir.path().join("c1.tar.gz"))
        .output()
        .expect("ibprov runs");
    let alone: serde_json::Value = serde_json::from_slice(&alone.stdout).expect("JSON");
    let both = fleet(dir.path(), &["--format", "json"]);
    let both = both.rsplit_once("exit ").expect("exit code").0;
    let both: serde_json::Value = serde_json::from_str(both).expect("JSON");
    let codes = |report: &serde_json::Value| -> std::collections::BTreeSet<String> {
        let findings = report["findings"].as_array().expect("findings").iter();
        findings.map(|finding| finding["code"].to_string()).collect()
    };
    assert!(!codes(&alone).is_empty(), "{alone}");
    assert_eq!(codes(&both), codes(&alone));
    assert_eq!(both["exit_code"], alone["exit_code"]);
    for finding in both["findings"].as_array().expect("findings") {
        assert_eq!(finding["nodes"], serde_json::json!(["c1", "c2"]));
    }
}

#[test]
fn what_cannot_be_read_is_named_and_stops_nothing() {
    let dir = tempfile::tempdir().expect("directory");
    let write = |name: &str, content: &[u8]| {
        std::fs::write(dir.path().join(name), content).expect("file");
    };
    expect![[r#"
        UNKNOWN: no report found. Expected for each node: NAME.json (boot.json, or the output of check or status with --format json), NAME.tar.gz (collect) or a directory NAME
        exit 2
    "#]]
    .assert_eq(&fleet(dir.path(), &[]));
    write("c1.json", report("6.1", 0, &[]).as_bytes());
    write("c1.tar.gz", b"");
    write("c2.json", b"{\"schema\": 2, \"exit_code\": 0}");
    write("c3.json", report("6.1", 7, &[]).as_bytes());
    write(
        "c4.json",
        report("6.1", 1, &[("Late\u{1b}", "error", "x")]).replace('\u{1b}', "\\u001b").as_bytes(),
    );
    write("c5.json", b"[[[[[");
    write("c6.json", b"\xff\xfe");
    write("c7\u{1b}[31m.json", b"");
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("c8.json")).expect("link");
    std::fs::File::create(dir.path().join("c9.json"))
        .expect("file")
        .set_len(17 << 20)
        .expect("size");
    let many = vec![("late", "error", "x"); 2001];
    write("d1.json", report("6.1", 1, &many).as_bytes());
    std::fs::create_dir(dir.path().join("d2")).expect("directory");
    let fifo = Command::new("mkfifo").arg(dir.path().join("d3.json")).status().expect("mkfifo");
    assert!(fifo.success());
    expect![[r#"
        with exceptions: 1 node: 0 not ready, 0 with exceptions, 1 as expected

        cannot read c1.tar.gz: the input is empty
        cannot read c2.json: the report has schema 2, but this ibprov reads schema 1
        cannot read c3.json: the report has exit code 7: expected 0 to 3
        cannot read c4.json: "Late�" is not the code of a finding
        cannot read c5.json: invalid type: sequence, expected u64 at line 1 column 1
        cannot read c6.json: /c6.json: content is not UTF-8 text
        cannot read c7�[31m.json: EOF while parsing a value at line 1 column 0
        cannot read c8.json: /c8.json: ENOENT: No such file or directory
        cannot read c9.json: /c9.json: larger than 16777216 bytes
        cannot read d1.json: the report has more than 2000 findings
        cannot read d2: DIR/d2 has no log in it, nor another file that check reads
        cannot read d3.json: /d3.json is a FIFO, not a file, and was not opened
        exit 1
    "#]]
    .assert_eq(&fleet(dir.path(), &[]));
}
