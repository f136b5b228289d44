//! `ibprov collect`: what `check` finds on a host it finds in the archive of it, with and
//! without names and addresses.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ibprov::check::rules::causes;
use ibprov::model::common::Code;
use serde_json::Value;

use crate::host::{Host, PortSpec, assert_report};
use crate::sites;

/// Hosts with one fault each, and healthy ones.
fn hosts() -> Vec<(String, Host)> {
    let mut hosts: Vec<(String, Host)> = vec![
        ("healthy".to_owned(), sites::healthy()),
        ("degraded".to_owned(), sites::degraded()),
        ("failed".to_owned(), sites::failed()),
        ("no InfiniBand".to_owned(), Host::new()),
    ];
    let mut with = |name: &str, change: &dyn Fn(&Host)| {
        let host = Host::healthy();
        change(&host);
        hosts.push((name.to_owned(), host));
    };
    with("bad configuration", &|host| host.file("etc/ibprov/ibprov.toml", "deadlin = 1\n"));
    with("driver denied", &|host| host.file("etc/modprobe.d/x.conf", "blacklist mlx5_core\n"));
    with("ib_ipoib missing", &|host| host.remove("sys/module/ib_ipoib"));
    with("agent masked", &|host| host.link("etc/systemd/system/ibprov.service", "/dev/null"));
    with("last boot failed", &|host| {
        host.file(
            "run/ibprov/boot.json",
            r#"{"schema":1,"report":"boot","verdict":"not-ready","exit_code":3}"#,
        );
    });
    with("boot.json of another version", &|host| {
        host.file(
            "run/ibprov/boot.json",
            r#"{"schema":2,"report":"boot","verdict":"ready","exit_code":0}"#,
        );
    });
    with("a guest failed", &|host| host.file("run/ibprov/guests.json", GUESTS));
    with("an interface failed", &|host| host.file("run/ibprov/ports/2.json", IFACE));
    with("not online", &|host| host.file("run/ibprov/online.json", ONLINE));
    with("a mount without order", &|host| {
        host.file("etc/fstab", "10.9.8.7:/scratch /scratch nfs defaults 0 0\nfs1:/home /home nfs defaults,password=geheim 0 0\n");
        host.file(
            "etc/network/interfaces",
            "auto ib0\niface ib0 inet static\n address 10.9.8.1/24\n",
        );
    });
    with("an ordering cycle", &|host| {
        for (unit, text) in [
            (
                "a.service",
                "[Unit]\nDefaultDependencies=no\nAfter=b.service\n[Service]\nExecStart=/bin/true\n",
            ),
            (
                "b.service",
                "[Unit]\nDefaultDependencies=no\nAfter=a.service\n[Service]\nExecStart=/bin/true --token=geheim\n",
            ),
            ("multi-user.target", "[Unit]\nWants=a.service b.service\n"),
        ] {
            host.file(&format!("etc/systemd/system/{unit}"), text);
        }
        host.link("etc/systemd/system/default.target", "multi-user.target");
    });
    for (name, state) in [("no subnet manager", "2: INIT\n"), ("no cable", "1: DOWN\n")] {
        let mut host = Host::new();
        host.function("0000:4b:00.0", "15b3:101b", "020700", Some("mlx5_core"));
        let port = PortSpec { state: state.trim(), ..PortSpec::default() };
        host.rdma("0000:4b:00.0", "mlx5_0", "b859:9f03:0012:a480", &[port]);
        hosts.push((name.to_owned(), host));
    }
    // Each fault of which there is a log.
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tree/logs/public");
    let mut logs: Vec<PathBuf> =
        std::fs::read_dir(logs).expect("logs").map(|entry| entry.expect("entry").path()).collect();
    logs.sort();
    for path in logs {
        let host = Host::healthy();
        host.bytes("var/log/messages", &std::fs::read(&path).expect("log"));
        hosts.push((path.file_name().expect("name").to_string_lossy().into_owned(), host));
    }
    hosts
}

const GUESTS: &str = r#"{"schema":1,"report":"guests","verdict":"not-ready","exit_code":3,"findings":[{"code":"guest-failed","severity":"error","object":"vm1","message":"FAILED: its VF is missing","advice":[]}]}"#;
const IFACE: &str = r#"{"schema":1,"report":"iface","verdict":"failed","exit_code":3,"netdev":"ib0","findings":[{"code":"interface-not-up","severity":"error","object":"ib0","message":"no network stack has brought it up","advice":[]}]}"#;
const ONLINE: &str = r#"{"schema":1,"report":"wait-online","verdict":"not-ready","exit_code":3,"findings":[{"code":"port-not-online","severity":"error","object":"ib0","message":"no carrier","advice":[]}]}"#;

fn run(arguments: &[&str]) -> (Option<i32>, Value, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_ibprov"))
        .args(arguments)
        .args(["--format", "json"])
        .output()
        .expect("ibprov runs");
    assert_report(&[arguments, &["--format", "json"]].concat(), &out);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    (out.status.code(), serde_json::from_slice(&out.stdout).unwrap_or(Value::Null), said)
}

/// The verdict, and of each finding what has no address in it; `whole`: all but where its
/// evidence stands.
fn told(report: &Value, whole: bool) -> Value {
    let mut findings = report["findings"].as_array().expect("findings").clone();
    for finding in &mut findings {
        let finding = finding.as_object_mut().expect("finding");
        let evidence = finding.get("evidence").and_then(Value::as_array).map_or(0, Vec::len);
        finding.insert("evidence".to_owned(), evidence.into());
        // Lines of what is not a journal are counted anew.
        finding.remove("boot");
        if !whole {
            for key in ["object", "message", "chain", "advice"] {
                finding.remove(key);
            }
        }
    }
    serde_json::json!([report["verdict"], findings])
}

fn collected(host: &Host, name: &str, more: &[&str]) -> PathBuf {
    let archive = host.path(name);
    let (root, path) = (host.path(""), archive.display().to_string());
    let root = root.display().to_string();
    let (code, report, said) = run(&[&["collect", "--root", &root, &path], more].concat());
    assert!(code.is_some_and(|code| code < 2), "{said}");
    assert_eq!(report["file"], path);
    archive
}

#[test]
fn an_archive_tells_what_the_host_tells() {
    for (name, host) in hosts() {
        let root = host.path("").display().to_string();
        let (code, on_host, said) = run(&["check", "--root", &root]);
        if on_host.get("read").is_none() {
            panic!("{name}: {said}");
        }
        // Of each two that are found together it is known which explains which.
        let codes: Vec<Code> = on_host["findings"]
            .as_array()
            .expect("findings")
            .iter()
            .filter(|finding| finding["severity"] != "info")
            .map(|finding| serde_json::from_value(finding["code"].clone()).expect("code"))
            .collect();
        for one in &codes {
            let other = codes.iter().find(|other| !causes::is_decided(*one, **other));
            assert_eq!(other, None, "{name}: {one}");
        }
        for (file, more, whole) in
            [("plain.tar.gz", &[][..], true), ("masked.tar.gz", &["--anonymize"][..], false)]
        {
            let archive = collected(&host, file, more).display().to_string();
            let (read_code, read, said) = run(&["check", "--log", &archive]);
            assert_eq!(told(&read, whole), told(&on_host, whole), "{name}, {file}: {said}");
            assert_eq!(read_code, code, "{name}, {file}");
        }
    }
}

/// The names and the text of all files of an archive.
fn unpacked(archive: &Path) -> String {
    let file = std::fs::File::open(archive).expect("archive");
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut all = String::new();
    for entry in tar.entries().expect("entries") {
        let mut entry = entry.expect("entry");
        all.push_str(&format!("== {}\n", entry.path().expect("path").display()));
        std::io::Read::read_to_string(&mut entry, &mut all).expect("text");
    }
    all
}

#[test]
fn no_name_and_no_address_of_the_host_is_in_an_anonymized_archive() {
    let host = sites::healthy();
    host.file("etc/hostname", "node17.cluster.example\n");
    host.file("etc/hosts", "10.9.8.7 node17 storage-a # x\n127.0.0.1 localhost\n");
    host.file(
        "var/log/messages",
        "Nov 23 10:00:09 node17 kernel: mlx5_core 0000:10:00.0: node guid b8599f0300120000\n\
         Nov 23 10:00:10 node17 x[1]: ib0: 10.9.8.7 of mds3.cluster.example (00:11:22:33:44:55) is away\n\
         Nov 23 10:00:11 node17 x[1]: mount storage-a:/home -o password=geheim\n",
    );
    let secrets = [
        "node17",
        "storage-a",
        "mds3",
        "cluster.example",
        "10.9.8.7",
        "33:44:55",
        "geheim",
        "b8599f0300120000",
    ];
    let plain = unpacked(&collected(&host, "plain.tar.gz", &[]));
    let of_host: Vec<_> = secrets.iter().filter(|secret| plain.contains(**secret)).collect();
    assert_eq!(of_host.len(), secrets.len() - 1, "the test has something to find: {of_host:?}");
    assert!(!plain.contains("geheim"), "secrets are left out of every archive");
    let masked = unpacked(&collected(&host, "masked.tar.gz", &["--anonymize"]));
    for secret in secrets {
        let found = masked.lines().find(|line| line.contains(secret));
        assert_eq!(found, None, "{secret}");
    }
    assert!(masked.contains("host-1") && masked.contains("mlx5_core 0000:10:00.0"), "{masked}");
    assert_ne!(masked, unpacked(&collected(&host, "again.tar.gz", &["--anonymize"])));
}

#[test]
fn no_secret_of_the_host_is_in_an_archive() {
    let host = sites::healthy();
    let hidden = |n: u8| format!("geheim{n}");
    let all: Vec<String> = (0..12).map(hidden).collect();
    let [a, b, c, d, e, f, g, h, i, j, k, l] = &all[..] else { panic!("twelve") };
    host.file(
        "proc/cmdline",
        &format!("netroot=iscsi:u:{a}@10.9.8.7::3260::iqn rd.luks.key={b}\n"),
    );
    host.file("etc/modprobe.d/x.conf", &format!("options foo chap_secret={c} api_key = {d}\n"));
    host.file(
        "etc/udev/rules.d/9.rules",
        &format!("RUN+=\"/usr/bin/curl -H 'Authorization: Bearer {e}' https://u:{f}@h/\"\n"),
    );
    host.file(
        "var/log/messages",
        &format!(
            "Nov 23 10:00:09 node17 sudo: a : PWD=/a ; COMMAND=/usr/bin/ipmitool -P {g}\n\
             Nov 23 10:00:10 node17 x[1]: {{\"password\":\"{h}\"}} Passphrase: {i}\n\
             Nov 23 10:00:11 node17 x[1]: ipmitool -U a -P {j} lan\n\
             Nov 23 10:00:12 node17 OpenSM[1]: m_key 0x0{k} sm_key=0x0{l}\n\
             Nov 23 10:00:13 node17 kernel: mlx5_0: P_Key 0x8001 is not in the table\n"
        ),
    );
    for more in [&[][..], &["--anonymize"]] {
        let text = unpacked(&collected(&host, "secrets.tar.gz", more));
        let left: Vec<&str> = text.lines().filter(|line| line.contains("geheim")).collect();
        assert_eq!(left, [""; 0], "{more:?}");
        assert!(text.contains("P_Key 0x8001") && text.contains("COMMAND=/usr/bin/ipmitool ***"));
    }
}

#[test]
fn a_hostile_line_is_masked_in_time_that_grows_with_its_length() {
    let host = sites::healthy();
    let parts = [
        "password ",
        "password=\"",
        "key",
        "key\\",
        "iscsi:",
        "://",
        "command=",
        "curl -u",
        "a-",
        "a:",
        "1.",
    ];
    let lines: String =
        parts.iter().map(|part| part.repeat((1 << 16) / part.len()) + "\n").collect();
    host.file("var/log/messages", &lines);
    let archive = host.path("hostile.tar.gz");
    // In the square of its length one of them takes minutes.
    let code = Command::new("timeout")
        .args(["60", env!("CARGO_BIN_EXE_ibprov"), "collect", "--anonymize", "--root"])
        .args([host.path(""), archive.clone()])
        .status()
        .expect("ibprov runs");
    assert_eq!(code.code(), Some(0));
    assert!(unpacked(&archive).contains("password=\"***\""));
}

#[test]
fn an_archive_is_its_owners_and_says_what_it_holds() {
    let host = sites::failed();
    let archive = host.path("x.tar.gz");
    let root = host.path("").display().to_string();
    let out = Command::new(env!("CARGO_BIN_EXE_ibprov"))
        .args(["collect", "x.tar.gz", "--root", &root])
        .current_dir(host.path(""))
        .output()
        .expect("ibprov runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("To read it: ibprov check --log x.tar.gz\n"), "{text}");
    let mode = std::fs::metadata(&archive).expect("archive").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let all = unpacked(&archive);
    for file in ["host.json", "run/ibprov/boot.json", "etc/ibprov/ibprov.toml", "proc/cmdline"] {
        assert!(all.contains(&format!("== ibprov-collect/{file}\n")), "{file} in {all}");
    }
    let nowhere = host.path("none/x.tar.gz").display().to_string();
    let (code, _, _) = run(&["collect", "--root", &root, &nowhere]);
    assert_eq!(code, Some(2));
}

#[test]
fn report_files_of_an_archive_are_evidence() {
    let dir = tempfile::tempdir().expect("directory");
    let run_dir = dir.path().join("sos-n1/run/ibprov/ports");
    std::fs::create_dir_all(&run_dir).expect("directory");
    let boot = r#"{"schema":1,"report":"boot","verdict":"not-ready","exit_code":3,"findings":[]}"#;
    std::fs::write(dir.path().join("sos-n1/run/ibprov/boot.json"), boot).expect("file");
    std::fs::write(run_dir.join("7.json"), IFACE).expect("file");
    let sos = dir.path().join("sos-n1").display().to_string();
    let (code, report, _) = run(&["check", "--log", &sos]);
    assert_eq!((code, report["verdict"].as_str()), (Some(1), Some("not-ready")));
    let finding = &report["findings"][0];
    assert_eq!(finding["code"], "not-as-expected");
    assert_eq!(finding["message"], "boot incomplete.");
    assert_eq!(finding["chain"][0], "ib0: no network stack has brought it up");
}
