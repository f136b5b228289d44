//! Archives that were made to do harm: whatever they claim, `ibprov check` and its
//! helpers take little memory, end, and say what they did not read.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// No run, and no program that it starts, gets more memory of its own, KiB: it ends by a signal
/// where it asks for more.
const MOST_KIB: &str = "102400";

fn check(path: &Path) -> Output {
    Command::new("sh")
        .args(["-c", "ulimit -d $0 && exec \"$@\"", MOST_KIB])
        .args([env!("CARGO_BIN_EXE_ibprov"), "check", "--log"])
        .arg(path)
        .output()
        .expect("ibprov runs")
}

/// A file with what this program makes of what `write` gives it.
fn packed(path: &Path, program: &[&str], write: impl FnOnce(&mut dyn Write)) {
    let mut child = Command::new(program[0])
        .args(&program[1..])
        .stdin(Stdio::piped())
        .stdout(File::create(path).expect("file"))
        .spawn()
        .expect(program[0]);
    let mut stdin = std::io::BufWriter::new(child.stdin.take().expect("pipe"));
    write(&mut stdin);
    drop(stdin);
    assert!(child.wait().expect("wait").success());
}

fn header(kind: u8, name: &str, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_size(size);
    header.set_cksum();
    header
}

fn entry(out: &mut dyn Write, kind: u8, name: &str, content: &[u8]) {
    out.write_all(header(kind, name, content.len() as u64).as_bytes()).expect("written");
    out.write_all(content).expect("written");
    let padding = content.len().next_multiple_of(512) - content.len();
    out.write_all(&vec![0; padding]).expect("written");
}

fn many(out: &mut dyn Write, byte: u8, mib: u64) {
    std::io::copy(&mut std::io::repeat(byte).take(mib << 20), out).expect("written");
}

#[test]
fn a_pipe_is_read_from_its_writer_and_one_without_is_not_waited_for() {
    let dir = tempfile::tempdir().expect("directory");
    let fifo = dir.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("FIFO");
    let shell = |script: &str| {
        let mut command = Command::new("timeout");
        command.args(["60", "bash", "-c", script, env!("CARGO_BIN_EXE_ibprov")]).arg(&fifo);
        let out = command.output().expect("bash");
        (
            out.status.code(),
            String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned(),
        )
    };
    let (code, text) = shell("exec \"$0\" check --log \"$1\"");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("is a pipe that no process writes to"), "{text}");
    let line = "echo 'Nov 23 10:00:09 n kernel: mlx5_core 0000:4b:00.0: probe of 0000:4b:00.0 failed with error -110'";
    let (code, read) = shell(&format!("\"$0\" check --log <({line})"));
    assert_eq!((code, read.contains(": 1 line,")), (Some(1), true), "{read}");
    let (_, piped) = shell(&format!("{line} | \"$0\" check --log /dev/stdin"));
    assert!(piped.contains("/dev/stdin: 1 line,"), "{piped}");
    // It writes before the FIFO is opened for reading.
    let (_, named) = shell(&format!(
        "exec 3<>\"$1\"; {line} >\"$1\"; exec 4<\"$1\" 3<&-; \"$0\" check --log \"$1\""
    ));
    assert!(named.contains("fifo: 1 line,"), "{named}");
}

/// What `ibprov` says of this archive, within its bound.
#[track_caller]
fn said(path: &Path) -> String {
    let out = check(path);
    let code = out.status.code();
    assert!(code.is_some(), "{}: ended by a signal: {:?}", path.display(), out.status);
    let said = [out.stdout, out.stderr].concat();
    assert!(said.len() < 1 << 20, "{} bytes are said", said.len());
    String::from_utf8(said).expect("text")
}

const LINE: &[u8] = b"Nov 22 10:00:00 n1 kernel: mlx5_core 0000:4b:00.0: firmware version: 20.1\n";

#[test]
fn headers_that_claim_much_do_not_fill_memory() {
    let dir = tempfile::tempdir().expect("directory");
    for kind in [b'L', b'K', b'x', b'g'] {
        let path = dir.path().join(format!("{}.tar.gz", char::from(kind)));
        packed(&path, &["gzip", "-1"], |out| {
            out.write_all(header(kind, "././@LongLink", 256 << 20).as_bytes()).expect("written");
            many(out, 0, 256);
            entry(out, b'0', "messages", LINE);
        });
        let said = said(&path);
        let told = said.contains("the rest of the archive was not read");
        assert_eq!(told, kind != b'g', "{said}");
    }
    // A map of a sparse file that goes on and on.
    let path = dir.path().join("sparse.tar.gz");
    packed(&path, &["gzip", "-1"], |out| {
        let mut first = header(b'S', "core", 0);
        first.as_mut_bytes()[482] = 1;
        first.set_cksum();
        out.write_all(first.as_bytes()).expect("written");
        many(out, 1, 128);
    });
    assert!(said(&path).contains("the rest of the archive was not read"));
}

#[test]
fn sizes_that_are_lies_end_the_archive() {
    let dir = tempfile::tempdir().expect("directory");
    for size in ["9223372036854775807", "18446744073709551615", "1099511627776"] {
        let path = dir.path().join("lie.tar.gz");
        packed(&path, &["gzip", "-1"], |out| {
            let record = format!(" size={size}\n");
            let record = format!("{}{record}", record.len() + 2);
            entry(out, b'x', "pax", record.as_bytes());
            entry(out, b'0', "messages", LINE);
            many(out, 0, 64);
        });
        assert!(said(&path).contains("the rest of the archive was not read"), "{size}");
    }
}

#[test]
fn what_expands_without_end_does_not_fill_memory() {
    let dir = tempfile::tempdir().expect("directory");
    // One line, and lines.
    for (name, text, mib) in [("line", &b"a"[..], 128), ("lines", LINE, 32)] {
        let path = dir.path().join(format!("{name}.tar.gz"));
        packed(&path, &["gzip", "-1"], |out| {
            out.write_all(header(b'0', "messages", mib << 20).as_bytes()).expect("written");
            let block = text.repeat(65536 / text.len());
            let mut left = usize::try_from(mib << 20).expect("MiB");
            while left > 0 {
                let part = &block[..block.len().min(left)];
                out.write_all(part).expect("written");
                left -= part.len();
            }
        });
        said(&path);
    }
    // Members and their names.
    let path = dir.path().join("members.tar.gz");
    let long = vec![b'n'; 8000];
    packed(&path, &["gzip", "-1"], |out| {
        for _ in 0..21_000 {
            entry(out, b'L', "././@LongLink", &long);
            entry(out, b'0', "messages", b"x\n");
        }
    });
    assert!(said(&path).contains("has more than 20000 files: the rest was not read"));
    // Archives in archives, each of which is damaged.
    let path = dir.path().join("damaged.tar.gz");
    packed(&path, &["gzip", "-1"], |out| {
        let mut broken = header(b'0', "x", 1 << 40).as_bytes().to_vec();
        broken.extend([b'x'; 512]);
        for n in 0..19_000 {
            entry(out, b'0', &format!("{n}.tar"), &broken);
        }
    });
    let told = said(&path);
    assert!(told.contains("more files could not be read, and are not listed"), "{}", &told[..2000]);
}

#[test]
fn programs_that_expand_get_little_memory() {
    let dir = tempfile::tempdir().expect("directory");
    let good = dir.path().join("messages.xz");
    packed(&good, &["xz", "-1"], |out| many(out, b'a', 128));
    said(&good);
    // The same with a dictionary of 4 GiB: the byte of the block's header that says so, and
    // the header's checksum.
    let mut bytes = std::fs::read(&good).expect("file");
    let length = (usize::from(bytes[12]) + 1) * 4;
    assert_eq!(bytes[14..16], [0x21, 1], "LZMA2 with one byte of properties");
    bytes[16] = 40;
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[12..12 + length - 4]);
    bytes[12 + length - 4..12 + length].copy_from_slice(&crc.sum().to_le_bytes());
    let path = dir.path().join("dictionary.xz");
    std::fs::write(&path, &bytes).expect("file");
    assert!(said(&path).contains("needs more memory than ibprov allows: xz: exit status: 1"));

    let path = dir.path().join("messages.zst");
    packed(&path, &["zstd", "-q", "-1"], |out| many(out, b'a', 128));
    said(&path);
    // A window of 2 GiB.
    let mut bytes = std::fs::read(&path).expect("file");
    assert_eq!(bytes[4] & 0b0010_0000, 0, "a frame with a window");
    bytes[5] = 21 << 3;
    std::fs::write(&path, &bytes).expect("file");
    assert!(said(&path).contains("needs more memory than ibprov allows: zstd: exit status: 1"));
}

#[test]
fn names_and_links_lead_nowhere() {
    let dir = tempfile::tempdir().expect("directory");
    let secret = dir.path().join("secret");
    std::fs::write(&secret, LINE).expect("file");
    let path = dir.path().join("links.tar");
    let out = &mut File::create(&path).expect("file");
    for kind in [b'1', b'2', b'3', b'6'] {
        let mut link = header(kind, "var/log/messages", 0);
        link.set_link_name(&secret).expect("short");
        link.set_cksum();
        out.write_all(link.as_bytes()).expect("written");
    }
    let above = "../../../../../../../../tmp/ibprov-was-here/messages";
    entry(out, b'0', above, LINE);
    entry(out, b'0', "/tmp/ibprov-was-here/\x1b[2J\n", b"x\n");
    let said = said(&path);
    assert!(!said.contains('\u{1b}'), "{said}");
    assert!(!Path::new("/tmp/ibprov-was-here").exists());
}
