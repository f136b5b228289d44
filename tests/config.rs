//! The `config` verb on trees of files, as an operator sees it.

#![allow(clippy::disallowed_methods, reason = "tests lay out trees and run the program")]
#![allow(clippy::expect_used, reason = "a test may panic in its helpers too")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use expect_test::{Expect, expect};
use tempfile::TempDir;

#[path = "bed/reports.rs"]
mod reports;

/// A tree with these files; `-> TARGET` is a symbolic link.
fn tree(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        match content.strip_prefix(b"-> ") {
            Some(target) => symlink(OsStr::from_bytes(target), path).expect("link"),
            None => fs::write(path, content).expect("file"),
        }
    }
    dir
}

struct Answer {
    code: Option<i32>,
    out: String,
    err: String,
}

fn ibprov(root: &TempDir, args: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_ibprov"))
        .arg("--root")
        .arg(root.path())
        .args(args)
        .env_remove("JOURNAL_STREAM")
        .output()
        .expect("ibprov runs");
    if args.windows(2).any(|pair| pair == ["--format", "json"]) {
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        reports::assert_valid(&report);
        let exit_code = report.get("exit_code").and_then(serde_json::Value::as_i64);
        assert_eq!(exit_code, output.status.code().map(i64::from));
    }
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Answer { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[track_caller]
fn prints(root: &TempDir, args: &[&str], code: i32, want: &Expect) {
    let answer = ibprov(root, args);
    assert_eq!(answer.code, Some(code), "{}{}", answer.out, answer.err);
    assert_eq!(answer.err, "");
    want.assert_eq(&answer.out);
}

/// A vendor file, two hidden vendor drop-ins, one of /run, one of the site.
fn site() -> TempDir {
    tree(&[
        ("usr/lib/ibprov/ibprov.toml", b"boot.timeout = \"5min\"\n"),
        ("usr/lib/ibprov/ibprov.d/10-masked.toml", b"nonsense\n"),
        ("etc/ibprov/ibprov.d/10-masked.toml", b"-> /dev/null"),
        ("usr/lib/ibprov/ibprov.d/20-empty.toml", b"nonsense\n"),
        ("run/ibprov/ibprov.d/20-empty.toml", b""),
        ("run/ibprov/ibprov.d/90-late.toml", b"modules.load = [\"ib_srp\"]\n"),
        (
            "etc/ibprov/ibprov.d/50-site.toml",
            b"[boot]\ntimeout = 90\n\n[[port]]\npci = \"0000:4b:00.0\"\nport = 1\n",
        ),
    ])
}

#[test]
fn a_host_without_files_is_good() {
    let root = tree(&[]);
    prints(
        &root,
        &["config", "check"],
        0,
        &expect![[r#"
            the configuration is valid: no file exists, and the defaults apply
        "#]],
    );
    prints(
        &root,
        &["config", "show"],
        0,
        &expect![[r#"
            port = []  # default
            interface = []  # default
            pf = []  # default
            firmware = []  # default
            rxe = []  # default
            subnet-manager = []  # default
            guest = []  # default

            [boot]
            timeout = "4min"  # default
            adapter-timeout = "2min 30s"  # default
            ports = "found"  # default
            ignore = []  # default

            [modules]
            load = [
                "ib_ipoib",  # default
                "ib_umad",  # default
                "ib_uverbs",  # default
            ]
            exclude = []  # default

            [network]
            timeout = "1min 30s"  # default

            [wait-online]
            timeout = "2min"  # default
            state = "active"  # default
            address = false  # default

            [host]
            number-rule = "only-digits"  # default

            [health]
            tolerate = []  # default
            fail-on = []  # default

            [guests]
            connection = "qemu:///system"  # default
            max-parallel = 4  # default
            timeout = "2min"  # default
        "#]],
    );
}

#[test]
fn files_are_merged_as_systemd_does() {
    let root = site();
    prints(
        &root,
        &["config", "check"],
        0,
        &expect![[r#"
            the configuration is valid
            files, in the order in which they apply:
              /usr/lib/ibprov/ibprov.toml
              /run/ibprov/ibprov.d/20-empty.toml
              /etc/ibprov/ibprov.d/50-site.toml
              /run/ibprov/ibprov.d/90-late.toml
            ignored files:
              /usr/lib/ibprov/ibprov.d/10-masked.toml: masked by /etc/ibprov/ibprov.d/10-masked.toml
              /usr/lib/ibprov/ibprov.d/20-empty.toml: masked by /run/ibprov/ibprov.d/20-empty.toml
              /etc/ibprov/ibprov.d/10-masked.toml: a link to /dev/null, which masks files of this name with lower precedence
        "#]],
    );
    prints(
        &root,
        &["config", "show"],
        0,
        &expect![[r#"
            interface = []  # default
            pf = []  # default
            firmware = []  # default
            rxe = []  # default
            subnet-manager = []  # default
            guest = []  # default

            [boot]
            timeout = "1min 30s"  # from /etc/ibprov/ibprov.d/50-site.toml:2
            adapter-timeout = "1min 30s"  # default
            ports = "found"  # default
            ignore = []  # default

            [modules]
            load = [
                "ib_ipoib",  # default
                "ib_umad",  # default
                "ib_uverbs",  # default
                "ib_srp",  # from /run/ibprov/ibprov.d/90-late.toml:1
            ]
            exclude = []  # default

            [[port]]
            pci = "0000:4b:00.0"  # from /etc/ibprov/ibprov.d/50-site.toml:5
            port = 1  # from /etc/ibprov/ibprov.d/50-site.toml:6

            [network]
            timeout = "1min 30s"  # default

            [wait-online]
            timeout = "2min"  # default
            state = "active"  # default
            address = false  # default

            [host]
            number-rule = "only-digits"  # default

            [health]
            tolerate = []  # default
            fail-on = []  # default

            [guests]
            connection = "qemu:///system"  # default
            max-parallel = 4  # default
            timeout = "2min"  # default
        "#]],
    );
    prints(
        &root,
        &["config", "show", "--format", "json"],
        0,
        &expect![[r#"
            {
              "schema": 1,
              "report": "config-show",
              "verdict": "ready",
              "exit_code": 0,
              "findings": [],
              "files": [
                "/usr/lib/ibprov/ibprov.toml",
                "/run/ibprov/ibprov.d/20-empty.toml",
                "/etc/ibprov/ibprov.d/50-site.toml",
                "/run/ibprov/ibprov.d/90-late.toml"
              ],
              "settings": [
                {
                  "key": "boot.timeout",
                  "value": "1min 30s",
                  "file": "/etc/ibprov/ibprov.d/50-site.toml",
                  "line": 2
                },
                {
                  "key": "boot.adapter-timeout",
                  "value": "1min 30s",
                  "file": null,
                  "line": null
                },
                {
                  "key": "boot.ports",
                  "value": "found",
                  "file": null,
                  "line": null
                },
                {
                  "key": "boot.ignore",
                  "value": [],
                  "file": null,
                  "line": null
                },
                {
                  "key": "modules.load[0]",
                  "value": "ib_ipoib",
                  "file": null,
                  "line": null
                },
                {
                  "key": "modules.load[1]",
                  "value": "ib_umad",
                  "file": null,
                  "line": null
                },
                {
                  "key": "modules.load[2]",
                  "value": "ib_uverbs",
                  "file": null,
                  "line": null
                },
                {
                  "key": "modules.load[3]",
                  "value": "ib_srp",
                  "file": "/run/ibprov/ibprov.d/90-late.toml",
                  "line": 1
                },
                {
                  "key": "modules.exclude",
                  "value": [],
                  "file": null,
                  "line": null
                },
                {
                  "key": "port[0].pci",
                  "value": "0000:4b:00.0",
                  "file": "/etc/ibprov/ibprov.d/50-site.toml",
                  "line": 5
                },
                {
                  "key": "port[0].port",
                  "value": 1,
                  "file": "/etc/ibprov/ibprov.d/50-site.toml",
                  "line": 6
                },
                {
                  "key": "network.timeout",
                  "value": "1min 30s",
                  "file": null,
                  "line": null
                },
                {
                  "key": "interface",
                  "value": [],
                  "file": null,
                  "line": null
                },
                {
                  "key": "wait-online.timeout",
                  "value": "2min",
                  "file": null,
                  "line": null
                },
                {
                  "key": "wait-online.state",
                  "value": "active",
                  "file": null,
                  "line": null
                },
                {
                  "key": "wait-online.address",
                  "value": false,
                  "file": null,
                  "line": null
                },
                {
                  "key": "host.number-rule",
                  "value": "only-digits",
                  "file": null,
                  "line": null
                },
                {
                  "key": "pf",
                  "value": [],
                  "file": null,
                  "line": null
                },
                {
                  "key": "firmware",
                  "value": [],
                  "file": null,
                  "line": null
                },
                {
                  "key": "rxe",
                  "value": [],
                  "file": null,
                  "line": null
                },
                {
                  "key": "subnet-manager",
                  "value": [],
                  "file": null,
                  "line": null
                },
                {
                  "key": "health.tolerate",
                  "value": [],
                  "file": null,
                  "line": null
                },
                {
                  "key": "health.fail-on",
                  "value": [],
                  "file": null,
                  "line": null
                },
                {
                  "key": "guests.connection",
                  "value": "qemu:///system",
                  "file": null,
                  "line": null
                },
                {
                  "key": "guests.max-parallel",
                  "value": 4,
                  "file": null,
                  "line": null
                },
                {
                  "key": "guests.timeout",
                  "value": "2min",
                  "file": null,
                  "line": null
                },
                {
                  "key": "guest",
                  "value": [],
                  "file": null,
                  "line": null
                }
              ]
            }
        "#]],
    );
}

#[test]
fn what_is_not_the_default_can_be_shown_alone() {
    let root = tree(&[(
        "etc/ibprov/ibprov.toml",
        b"boot.timeout = 60\nwait-online.timeout = \"2min\"\nmodules.load = [\"ib_srp\", \"rdma_ucm\"]\nmodules.exclude = [\"ib_umad\"]\n[[interface]]\nmatch.name = \"*\"\n[[interface.partition]]\npkey = \"0x8001\"\n",
    )]);
    prints(
        &root,
        &["config", "show", "--changed"],
        0,
        &expect![[r#"
        [boot]
        timeout = "1min"  # from /etc/ibprov/ibprov.toml:1

        [modules]
        load = [
            "ib_srp",  # from /etc/ibprov/ibprov.toml:3
            "rdma_ucm",  # from /etc/ibprov/ibprov.toml:3
        ]
        exclude = [
            "ib_umad",  # from /etc/ibprov/ibprov.toml:4
        ]

        [[interface]]
        match.name = "*"  # from /etc/ibprov/ibprov.toml:6

        [[interface.partition]]
        pkey = "0x8001"  # from /etc/ibprov/ibprov.toml:8
    "#]],
    );
    prints(&tree(&[]), &["config", "show", "--changed"], 0, &expect![[r#""#]]);
}

#[test]
fn files_that_do_not_count_are_named() {
    let root = tree(&[
        ("etc/ibprov/ibprov.toml", b""),
        ("usr/lib/ibprov/ibprov.toml", b""),
        ("etc/ibprov/ibprov.d/60-x.conf", b"nonsense"),
        ("etc/ibprov/ibprov.d/.70-y.toml", b""),
        ("etc/ibprov/ibprov.d/80-z.toml", b"-> /dev/null"),
        ("usr/lib/ibprov/ibprov.d/80-z.toml", b""),
    ]);
    prints(
        &root,
        &["config", "check"],
        0,
        &expect![[r#"
            the configuration is valid
            files, in the order in which they apply:
              /etc/ibprov/ibprov.toml
            ignored files:
              /usr/lib/ibprov/ibprov.toml: masked by /etc/ibprov/ibprov.toml
              /etc/ibprov/ibprov.d/.70-y.toml: the name does not end in .toml, or begins with a dot
              /etc/ibprov/ibprov.d/60-x.conf: the name does not end in .toml, or begins with a dot
              /usr/lib/ibprov/ibprov.d/80-z.toml: masked by /etc/ibprov/ibprov.d/80-z.toml
              /etc/ibprov/ibprov.d/80-z.toml: a link to /dev/null, which masks files of this name with lower precedence
        "#]],
    );
    let answer = ibprov(&root, &["config", "check", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&answer.out).expect("JSON");
    assert_eq!(json["not_read"].as_array().map(Vec::len), Some(5), "{json}");
}

#[test]
fn one_file_stands_alone() {
    let root = site();
    let args = ["config", "check", "--config", "/etc/ibprov/ibprov.d/50-site.toml"];
    prints(
        &root,
        &args,
        0,
        &expect![[r#"
            the configuration is valid
            files, in the order in which they apply:
              /etc/ibprov/ibprov.d/50-site.toml
        "#]],
    );
    prints(
        &root,
        &["config", "check", "--config", "/none.toml"],
        2,
        &expect![[r#"
            error: cannot read the configuration: /none.toml: ENOENT: No such file or directory
             |
             = help: --config FILE is looked up in the tree of --root

            the configuration is not valid: 1 error
        "#]],
    );
}

#[test]
fn all_errors_of_all_files_are_shown_with_their_places() {
    let root = tree(&[
        (
            "etc/ibprov/ibprov.toml",
            b"[boot]\ntimeout = \"soon\"\nhca-deadlin = 3\n[[port]]\nrdma = \"mlx5_0\"\n",
        ),
        (
            "etc/ibprov/ibprov.d/10-a.toml",
            b"modules.load = [\"ib_srp\"]\n[[port]]\nrdma = \"mlx5_0\"\n",
        ),
        ("run/ibprov/ibprov.d/20-b.toml", b"modules.exclude = [\"ib_srp\"]\n[modules\n"),
        ("run/ibprov/ibprov.d/30-c.toml", b"-> nowhere.toml"),
        ("run/ibprov/ibprov.d/40-d.toml", b"x = \"\xff\"\n"),
    ]);
    prints(
        &root,
        &["config", "check"],
        2,
        &expect![[r#"
            error: cannot read the configuration: /run/ibprov/ibprov.d/30-c.toml: ENOENT: No such file or directory
             |
             = help: correct, rename or remove it; to mask a file of that name with lower precedence, link it to /dev/null

            error: the file is not UTF-8 text
             --> /run/ibprov/ibprov.d/40-d.toml:1:6
              |
            1 | x = "�"
              |      ^ byte 0xff
              |
              = help: save it as UTF-8

            error: bad value for boot.timeout
             --> /etc/ibprov/ibprov.toml:2:11
              |
            2 | timeout = "soon"
              |           ^^^^^^ "soon" is not a time span: write it like "240s", "4min" or "2min 30s", or as a whole number of seconds

            error: unknown key "hca-deadlin" in [boot]
             --> /etc/ibprov/ibprov.toml:3:1
              |
            3 | hca-deadlin = 3
              | ^^^^^^^^^^^
              |
              = help: possible are timeout, adapter-timeout, ports, ignore, at-least

            error: module ib_srp is in modules.load and in modules.exclude
             --> /etc/ibprov/ibprov.d/10-a.toml:1:17
              |
            1 | modules.load = ["ib_srp"]
              |                 ^^^^^^^^ to be loaded here
              |
             ::: /run/ibprov/ibprov.d/20-b.toml:1:20
              |
            1 | modules.exclude = ["ib_srp"]
              |                    -------- excluded here
              |
              = help: remove it from one of the two lists

            error: the same port is described twice
             --> /etc/ibprov/ibprov.d/10-a.toml:3:8
              |
            3 | rdma = "mlx5_0"
              |        ^^^^^^^^ here
              |
             ::: /etc/ibprov/ibprov.toml:5:8
              |
            5 | rdma = "mlx5_0"
              |        -------- and first here
              |
              = help: keep one of the two; `port = []` in a file between them clears the list before it

            error: TOML syntax
             --> /run/ibprov/ibprov.d/20-b.toml:2:9
              |
            2 | [modules
              |         ^ unclosed table, expected `]`

            the configuration is not valid: 7 errors
            files, in the order in which they apply:
              /etc/ibprov/ibprov.toml
              /etc/ibprov/ibprov.d/10-a.toml
              /run/ibprov/ibprov.d/20-b.toml
        "#]],
    );

    let answer = ibprov(&root, &["config", "check", "--format", "json"]);
    assert_eq!(answer.code, Some(2));
    let json: serde_json::Value = serde_json::from_str(&answer.out).expect("JSON");
    assert_eq!((&json["schema"], &json["verdict"]), (&1.into(), &"not-ready".into()));
    let problems = json["findings"].as_array().expect("list");
    let twice = problems.iter().find(|p| p["message"] == "the same port is described twice");
    let places = &twice.expect("said")["places"];
    assert_eq!(places[0]["file"], "/etc/ibprov/ibprov.d/10-a.toml");
    assert_eq!((&places[0]["line"], &places[0]["column"]), (&3.into(), &8.into()));
    assert_eq!(places[1]["file"], "/etc/ibprov/ibprov.toml");
}

#[test]
fn what_cannot_begin_leaves_standard_output_empty() {
    let root = tree(&[("etc/ibprov/ibprov.toml", b"x = 1\n")]);
    for verb in [&["config", "show"][..], &["apply"], &["plan", "--pin"], &["firmware"]] {
        let answer = ibprov(&root, &[verb, &["--format", "json"]].concat());
        let json: serde_json::Value = serde_json::from_str(&answer.out).expect("JSON");
        assert_eq!((answer.code, answer.err.as_str()), (Some(2), ""), "{verb:?}");
        assert_eq!((&json["report"], &json["verdict"]), (&"not-begun".into(), &"not-begun".into()));
        let place = &json["findings"][0]["places"][0];
        assert_eq!(place["file"], "/etc/ibprov/ibprov.toml");
        assert_eq!((&place["line"], &place["column"]), (&1.into(), &1.into()));
    }
    for args in [&["config", "show"][..], &["iface", "ib0", "--dry-run"], &["plan"]] {
        let answer = ibprov(&root, args);
        assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(answer.err.starts_with("error: unknown key \"x\"\n"), "{args:?}: {}", answer.err);
    }
}

#[test]
fn no_verb_leaves_a_drop_in_out_for_its_name() {
    let root = tree(&[("etc/ibprov/ibprov.d/10-a.toml", b"[[port]]\npci = \"0000:4b:00.0\"\n")]);
    // Latin-1.
    let name = OsStr::from_bytes(b"50-k\xf6ln.toml");
    fs::write(root.path().join("etc/ibprov/ibprov.d").join(name), "").expect("file");
    let verbs: [&[&str]; 11] = [
        &["config", "check"],
        &["config", "show"],
        &["boot", "--dry-run"],
        &["apply", "--dry-run"],
        &["plan"],
        &["iface", "ib0", "--dry-run"],
        &["guests", "--dry-run"],
        &["wait-online"],
        &["status"],
        &["check"],
        &["metrics"],
    ];
    for verb in verbs {
        let answer = ibprov(&root, verb);
        if verb == ["metrics"] {
            let error = "ibprov_findings{code=\"configuration-invalid\",severity=\"error\"} 1\n";
            assert!(answer.out.contains(error), "{}{}", answer.out, answer.err);
            continue;
        }
        if verb == ["check"] {
            continue;
        }
        assert_eq!(answer.code, Some(2), "{verb:?}: {}{}", answer.out, answer.err);
        let said = "\"/etc/ibprov/ibprov.d/50-k\\xF6ln.toml\": the file name is not UTF-8";
        let all = answer.out + &answer.err;
        assert!(all.contains(said), "{verb:?}: {all}");
    }
}

#[test]
fn a_hostile_file_and_its_name_do_not_reach_the_terminal() {
    let root = tree(&[
        ("etc/ibprov/ibprov.d/\u{1b}]0;owned\u{7}.toml", "\u{1b}[2J\u{9b}31m = 1\n".as_bytes()),
        ("etc/ibprov/ibprov.d/b\u{202e}.toml", b"boot = [[[[\n"),
        ("etc/ibprov/ibprov.d/\u{1b}[2Jdangling.toml", b"-> \x1b[2J"),
        ("etc/ibprov/ibprov.d/\u{9b}2Jdirectory.toml/x", b""),
    ]);
    for format in ["text", "json"] {
        let answer = ibprov(&root, &["config", "check", "--format", format]);
        assert_eq!(answer.code, Some(2));
        let shown = format!("{}{}", answer.out, answer.err);
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        assert!(!shown.contains('\u{202e}'), "{shown:?}");
    }
}
