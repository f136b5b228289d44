//! `ibprov plan --fleet` on a fleet of 10,000 hosts with 16 VFs each: in under a
//! second, built for release (`make bench`), and in under 200 MiB. `ibprov opensm check` on a
//! partitions.conf of as many lines: in under 50 ms.

#![allow(clippy::disallowed_methods, reason = "tests lay out trees and run the program")]
#![allow(clippy::expect_used, reason = "a test may panic in its helpers too")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

const HOSTS: u64 = 10_000;
const VFS: u64 = 16;

/// What ibprov must stay below, KiB.
const MEMORY_KIB: i64 = 200 * 1024;

/// The binary, and how long it may take: `limit` for the one built for release that
/// `make bench` names; the unoptimized one of the tests may take as long as the machine lets it.
fn candidate(limit: Duration) -> (PathBuf, Duration) {
    match std::env::var_os("IBPROV_RELEASE") {
        Some(path) => (path.into(), limit),
        None => (env!("CARGO_BIN_EXE_ibprov").into(), Duration::MAX),
    }
}

/// The pins of host `n`, as ibprov writes them.
fn pins(n: u64) -> String {
    let guid = |value: u64| {
        let hex = format!("{value:016x}");
        format!("\"{}:{}:{}:{}\"", &hex[..4], &hex[4..8], &hex[8..12], &hex[12..])
    };
    let card = guid(0xb859_9f03_0000_0000 + 16 * n);
    let mut text = format!(
        "# The GUIDs that the VFs of this host were given.\nschema = 1\nhost = \"c{n}\"\n\n[[pf]]\nconfig = {{ pci = \"0000:4b:00.0\" }}\npci = \"0000:4b:00.0\"\nnode-guid = {card}\nport-guids = [{card}]\nvfs = [\n"
    );
    for vf in 0..VFS {
        let of = |kind: u64| guid(0x0200_0000_0000_0000 | n << 32 | kind << 16 | vf);
        writeln!(text, "    [{}, {}], # VF {vf}", of(0), of(1)).expect("text");
    }
    text.push_str("]\n");
    text
}

fn judge(ibprov: &Path, dir: &Path) -> (Output, Duration) {
    let started = Instant::now();
    let output =
        Command::new(ibprov).args(["plan", "--fleet"]).arg(dir).output().expect("ibprov runs");
    (output, started.elapsed())
}

#[test]
fn ten_thousand_hosts() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for n in 0..HOSTS {
        fs::write(dir.path().join(format!("c{n}.toml")), pins(n)).expect("file");
    }
    let (ibprov, time) = candidate(Duration::from_secs(1));
    let (output, took) = judge(&ibprov, dir.path());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "10000 hosts, 160000 VFs: no GUID is used twice\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(0));
    // The largest of the children so far.
    let memory = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage").max_rss();
    println!("10,000 hosts with 16 VFs: {took:?}, {} MiB", memory / 1024);
    assert!(memory < MEMORY_KIB, "{memory} KiB");
    assert!(took < time, "{took:?}");

    // One host is a copy of another.
    fs::write(dir.path().join("copy.toml"), pins(4711)).expect("file");
    let (output, _) = judge(&ibprov, dir.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.ends_with("10001 hosts, 160016 VFs: 33 conflicts of GUIDs\n"), "{text}");
    assert!(text.contains("0200:1267:0001:000f is used more than once\n  c4711: port of VF 15 of 0000:4b:00.0\n  copy: port of VF 15 of 0000:4b:00.0\n"), "{text}");
}

/// Each line is a partition of its own.
#[test]
fn a_partitions_file_of_ten_thousand_lines() {
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    let mut text = "Default=0x7fff,ipoib : ALL=full ;\n".to_owned();
    for n in 1..HOSTS {
        writeln!(text, "p{n}=0x{n:04x},ipoib,mtu=5 : SELF=full, 0xb8599f03{n:08x}=full ;")
            .expect("text");
    }
    fs::write(file.path(), text).expect("file");
    let (ibprov, time) = candidate(Duration::from_millis(50));
    // What other processes take of the machine is not ibprov's.
    let mut took = Duration::MAX;
    for _ in 0..10 {
        let started = Instant::now();
        let check = ["opensm", "check", "--as", "partitions"];
        let output = Command::new(&ibprov).args(check).arg(file.path()).output().expect("runs");
        took = took.min(started.elapsed());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.ends_with("(10000 partitions): as it is meant\n"), "{text}");
        assert_eq!(output.status.code(), Some(0));
    }
    println!("partitions.conf of 10,000 lines: {took:?}");
    assert!(took < time, "{took:?}");
}
