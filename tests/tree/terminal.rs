//! What a real terminal gets: colour, its width, and the line of a wait.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::pty::{Winsize, openpty};
use serde_json::Value;

use crate::active::{LIT, json, vfs};
use crate::host::{Host, PF};
use crate::sites;

/// A terminal of that many rows and columns: our end, and the program's.
fn terminal(rows: u16, columns: u16) -> (std::fs::File, OwnedFd) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(Some(&size), None).expect("pty");
    (pty.master.into(), pty.slave)
}

#[test]
fn a_reader_that_goes_changes_no_exit_code() {
    let host = sites::failed();
    for arguments in [&["status", "-v"][..], &["check"], &["check", "--format", "json"]] {
        let code = |out: Stdio| {
            let mut command = ibprov();
            command.arg("--root").arg(host.path("")).args(arguments).stdout(out);
            command.status().expect("ibprov").code()
        };
        let (reader, writer) = std::io::pipe().expect("pipe");
        drop(reader);
        assert_eq!(code(writer.into()), code(Stdio::null()), "{arguments:?}");
        assert_ne!(code(Stdio::null()), Some(0), "{arguments:?}");
    }
}

/// All that was written to it until the program has ended: the last end that is closed is
/// EIO for ours.
fn written(ours: std::fs::File) -> String {
    answered(ours, "")
}

/// The same; `typed` is typed when a question is there.
fn answered(mut ours: std::fs::File, typed: &str) -> String {
    let (mut all, mut some) = (Vec::new(), [0; 4096]);
    let mut is_typed = false;
    while let Ok(n @ 1..) = ours.read(&mut some) {
        all.extend_from_slice(&some[..n]);
        if !is_typed && all.ends_with(b"[y/N] ") {
            ours.write_all(typed.as_bytes()).expect("typed");
            is_typed = true;
        }
    }
    String::from_utf8(all).expect("text").replace("\r\n", "\n")
}

/// What a terminal of that size shows of `host`, and the exit code.
pub fn on_terminal(host: &Host, rows: u16, columns: u16, arguments: &[&str]) -> String {
    let (ours, theirs) = terminal(rows, columns);
    let mut command = ibprov();
    let root = host.path("").display().to_string();
    let root = root.trim_end_matches('/');
    command.env("NO_COLOR", "1").args(["--root", root]).args(arguments).stdout(theirs);
    let mut child = command.spawn().expect("ibprov");
    drop(command);
    let text = written(ours).replace(root, "ROOT");
    format!("{text}exit {}\n", child.wait().expect("end").code().expect("exit code"))
}

fn ibprov() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibprov"));
    command.env_remove("COLUMNS").env_remove("LINES").env_remove("NO_COLOR").env("TERM", "xterm");
    command
}

#[test]
fn a_terminal_gets_colour_and_its_own_width() {
    let host = sites::degraded();
    let on = |columns: u16, no_colour: bool| {
        let (ours, theirs) = terminal(100, columns);
        let mut command = ibprov();
        let root = host.path("").display().to_string();
        let root = root.trim_end_matches('/');
        command.args(["--root", root, "status"]).stdout(theirs);
        if no_colour {
            command.env("NO_COLOR", "1");
        }
        let mut child = command.spawn().expect("ibprov");
        // Or our end would stay open.
        drop(command);
        let text = written(ours).replace(root, "ROOT");
        child.wait().expect("end");
        text
    };
    let coloured = on(80, false);
    assert!(coloured.contains("\u{1b}[33m~ mlx5_2/1 "), "{coloured:?}");
    let plain = on(80, true);
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    assert_eq!(format!("{plain}exit 1\n"), host.show_on(&[("COLUMNS", "80")], &["status"]));
    assert_eq!(
        format!("{}exit 1\n", on(100, true)),
        host.show_on(&[("COLUMNS", "100")], &["status"])
    );
}

/// What is marked and pasted is what was meant: a terminal breaks a long line itself, and pastes it
/// whole, but not one that the program has broken.
#[test]
fn a_command_comes_out_of_a_terminal_unbroken() {
    let host = vfs(LIT, "Follow");
    let path = "etc/ibprov/ibprov.toml";
    let planned = std::fs::read_to_string(host.path(path)).expect("file");
    host.file(path, &format!("{planned}vf-rdma-name = \"{{rdma}}v{{vf}}\"\n"));
    for (verb, arguments) in [("status", &["status", "-v"][..]), ("check", &["check"])] {
        let report = json(&host, &[verb]);
        let steps = |finding: &Value| finding["advice"].as_array().cloned().expect("advice");
        let findings = report["findings"].as_array().expect("findings");
        let meant: Vec<String> = findings
            .iter()
            .flat_map(steps)
            .filter_map(|step| step["run"].as_str().map(str::to_owned))
            .collect();
        assert!(meant.iter().any(|command| command.len() > 120), "{report:#}");
        let shown = on_terminal(&host, 24, 80, arguments);
        let lines = shown.lines().filter_map(|line| line.trim_start().strip_prefix("run: "));
        assert_eq!(lines.collect::<Vec<_>>(), meant, "{shown}");
    }
}

/// A copy of the program that everybody can run, to be run as nobody, who leaves nothing in
/// /run.
fn as_nobody() -> (tempfile::TempDir, Command) {
    let dir = tempfile::tempdir().expect("directory");
    let program = dir.path().join("ibprov");
    // By another process: what a thread of this one starts meanwhile would have the file open
    // for writing, and it could not be run (ETXTBSY).
    let from = env!("CARGO_BIN_EXE_ibprov");
    let copy = Command::new("install").args(["-m", "755", from]).arg(&program).status();
    assert!(copy.expect("install").success());
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(dir.path(), mode).expect("mode");
    let mut command = Command::new(&program);
    command.env_remove("COLUMNS").env_remove("LINES").env("TERM", "xterm").stdin(Stdio::null());
    if nix::unistd::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    (dir, command)
}

#[test]
fn watching_shows_the_host_until_it_is_stopped() {
    let (_dir, mut command) = as_nobody();
    let (mut ours, theirs) = terminal(40, 80);
    command.args(["status", "--watch"]).stdout(theirs).stderr(Stdio::null());
    let mut child = command.spawn().expect("ibprov");
    drop(command);
    let mut first = [0; 16];
    ours.read_exact(&mut first).expect("the first screen");
    assert!(first.starts_with(b"\x1b[H\x1b[2J"), "{first:?}");
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().expect("pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("SIGINT");
    let rest = written(ours);
    assert!(rest.contains("\nibprov: "), "{rest:?}");
    let code = child.wait().expect("end").code();
    assert!(matches!(code, Some(0..=3)), "{code:?}");
    let copied = sites::degraded().show(&["status", "--watch"]);
    assert!(copied.starts_with("error: --watch cannot be combined with --root"), "{copied}");
}

#[test]
fn a_wait_is_one_line_that_goes_on_and_is_gone_at_its_end() {
    let (_dir, mut command) = as_nobody();
    let (ours, theirs) = terminal(40, 80);
    command
        .args(["wait-online", "--timeout", "4s", "--state", "named", "nosuch7"])
        .stdout(Stdio::piped())
        .stderr(theirs);
    let child = command.spawn().expect("ibprov");
    drop(command);
    let line = written(ours);
    let output = child.wait_with_output().expect("end");
    let report = String::from_utf8(output.stdout).expect("text");
    // Where a boot has ended, the name cannot come any more.
    if output.status.code() == Some(3) {
        assert!(line.contains("\r\u{1b}[K0 of 1 ports online: waiting for nosuch7: "), "{line:?}");
        // A busy machine shows not every second.
        let shown = (0..4).filter(|second| line.contains(&format!("({second} s of 4 s)")));
        assert!(shown.count() >= 2, "{line:?}");
        let long = |shown: &str| shown.trim_end_matches('\r').chars().count() > 79;
        assert!(!line.split("\u{1b}[K").any(long), "{line:?}");
    } else {
        assert_eq!(output.status.code(), Some(2), "{report}");
    }
    assert!(line.is_empty() || line.ends_with("\r\u{1b}[K"), "{line:?}");
    assert!(report.contains("nosuch7") && !report.contains('\u{1b}'), "{report:?}");
}

/// Runs `apply` with these arguments as root of a name space in which `host` is the system, on a
/// terminal, where `typed` is the answer to its question, and another was typed before. `None` where no such name space can be
/// made.
fn applied(host: &Host, arguments: &str, typed: &str) -> Option<(String, Option<i32>)> {
    let unshared = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-euc"]);
        command
    };
    let tree = host.path("");
    let mounts = format!(
        "mount --rbind '{0}/sys' /sys; mount -t tmpfs none /run; mkdir -p /run/udev",
        tree.display()
    );
    let can = unshared().arg(&mounts).stderr(Stdio::null()).status().expect("unshare").success();
    if !can {
        return None;
    }
    let (mut ours, theirs) = terminal(40, 200);
    let mut command = unshared();
    command
        .arg(format!(
            "{mounts}; exec '{}' --config '{}/etc/ibprov/ibprov.toml' apply --timeout-msec 1000 {arguments}",
            env!("CARGO_BIN_EXE_ibprov"),
            tree.display()
        ))
        .env("TERM", "xterm")
        .stdin(theirs.try_clone().expect("terminal"))
        .stdout(theirs.try_clone().expect("terminal"))
        .stderr(theirs);
    ours.write_all(b"y\n").expect("typed");
    let mut child = command.spawn().expect("unshare");
    drop(command);
    let said = answered(ours, typed);
    Some((said, child.wait().expect("end").code()))
}

#[test]
fn apply_asks_before_it_removes_vfs_that_have_a_driver() {
    let host = Host::healthy();
    let vf = "0000:4b:00.1";
    let pf_dir = format!("sys/bus/pci/devices/{PF}");
    let (numvfs, autoprobe) = (format!("{pf_dir}/sriov_numvfs"), "sriov_drivers_autoprobe");
    host.file(&format!("{pf_dir}/sriov_totalvfs"), "16\n");
    host.file(&format!("{pf_dir}/{autoprobe}"), "1\n");
    host.function(vf, "15b3:101c", "020700", Some("mlx5_core"));
    host.link(&format!("sys/bus/pci/devices/{vf}/physfn"), &format!("../{PF}"));
    host.link(&format!("{pf_dir}/virtfn0"), &format!("../{vf}"));
    let number = || std::fs::read_to_string(host.path(&numvfs)).expect("number");
    host.file("etc/ibprov/ibprov.toml", &format!("[[pf]]\npci = \"{PF}\"\nvfs = 0\n"));
    let question = "VF 0 of PF 0000:4b:00.0";
    for (arguments, typed, is_asked, is_done) in [
        ("", "n\n", true, false),
        ("", "\n", true, false),
        ("", "y\n", true, true),
        ("--yes", "", false, true),
        // No terminal.
        ("</dev/null", "", false, true),
    ] {
        host.file(&numvfs, "1\n");
        // Some builders' machines allow no name space.
        let Some((said, code)) = applied(&host, arguments, typed) else { return };
        assert_eq!(said.contains("[y/N]"), is_asked, "{arguments} {typed:?}: {said}");
        assert_eq!(said.contains(question), is_asked, "{arguments} {typed:?}: {said}");
        assert_eq!(number() == "0\n", is_done, "{arguments} {typed:?}: {said}");
        assert_eq!(code == Some(2), !is_done, "{arguments} {typed:?}: {said}");
    }
    // One without a driver is nobody's loss.
    host.remove(&format!("sys/bus/pci/devices/{vf}/driver"));
    let said = applied(&host, "", "").expect("a name space").0;
    assert!(!said.contains("[y/N]"), "{said}");
}

#[test]
fn completions_know_verbs_and_flags_and_no_internal_ones() {
    for (shell, flag) in [("bash", "--dry-run"), ("zsh", "--dry-run"), ("fish", "dry-run")] {
        let out = ibprov().args(["completions", shell]).output().expect("ibprov");
        let text = String::from_utf8(out.stdout).expect("text");
        assert!(out.status.success() && text.contains("wait-online") && text.contains(flag));
        assert!(!text.contains("worker") && !text.contains("name-rdma"), "{shell}: {text}");
        assert!(text.contains("ordering-cycle") && text.contains("infiniband"), "{shell}: {text}");
        let offered = match shell {
            "bash" => "opts=\"",
            "zsh" => "'",
            _ => "complete ",
        };
        let offers = text.lines().filter(|line| line.trim_start().starts_with(offered));
        let hidden =
            offers.filter(|line| line.contains("-timeout-msec") || line.contains("in-turn"));
        assert_eq!(hidden.collect::<String>(), "", "{shell}");
    }
}

#[test]
fn bash_completes_the_names_of_ports_where_a_verb_takes_one() {
    let completed = |words: &str, last: &str| {
        let script = format!(
            "source <({} completions bash)\n\
             ls() {{ printf '%s\\n' /sys/class/infiniband/mlx5_0 /sys/class/infiniband/mlx5_0/device/net/ib0; }}\n\
             COMP_WORDS=(ibprov {words} '{last}') COMP_CWORD=2\n\
             _ibprov_names ibprov '{last}' {words}\necho \"${{COMPREPLY[@]}}\"\n",
            env!("CARGO_BIN_EXE_ibprov")
        );
        let out = Command::new("bash").args(["-c", &script]).output().expect("bash");
        String::from_utf8(out.stdout).expect("text").trim().to_owned()
    };
    for verb in ["status", "apply", "holders", "wait-online", "iface", "firmware"] {
        assert_eq!(completed(verb, "i"), "ib0", "{verb}");
        assert_eq!(completed(verb, "ml"), "mlx5_0", "{verb}");
    }
    assert_eq!(completed("status", "--prob"), "--problems");
    assert_eq!(completed("plan", "i"), "");
}
