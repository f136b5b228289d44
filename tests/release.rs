//! The binary that `make release` builds and distributions ship: hardened, with what
//! debuggers unwind by, and with nothing in it of the machine that built it.
//! `make test-release` names it in `IBPROV_RELEASE`.

#![allow(clippy::disallowed_methods, reason = "tests read files and run programs")]
#![allow(clippy::expect_used, reason = "a test may panic in its helpers too")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goblin::elf::Elf;
use goblin::elf::dynamic::{DF_1_NOW, DF_1_PIE, DF_BIND_NOW};
use goblin::elf::header::ET_DYN;
use goblin::elf::program_header::{PF_X, PT_GNU_EH_FRAME, PT_GNU_RELRO, PT_GNU_STACK};
use goblin::elf::section_header::SHT_SYMTAB;

/// What it is linked with. The dynamic linker is named too where thread-local storage
/// is asked for.
const NEEDED: [&str; 3] = ["libc.so.6", "libgcc_s.so.1", "libudev.so.1"];

/// 7.75 MiB.
const MOST_BYTES: usize = 31 << 18;

fn binary() -> (PathBuf, Vec<u8>) {
    let path = std::env::var_os("IBPROV_RELEASE").expect("IBPROV_RELEASE: see `make test-release`");
    let bytes = fs::read(&path).expect("the release binary");
    (path.into(), bytes)
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn it_is_hardened_as_distributions_ask() {
    let (_, bytes) = binary();
    let elf = Elf::parse(&bytes).expect("an ELF file");
    let dynamic = &elf.dynamic.as_ref().expect("a dynamic section").info;
    assert_eq!(elf.header.e_type, ET_DYN);
    assert_ne!(dynamic.flags_1 & DF_1_PIE, 0, "no position-independent executable");
    let segment = |kind| elf.program_headers.iter().find(|h| h.p_type == kind);
    // Both together are what is called full RELRO.
    assert!(segment(PT_GNU_RELRO).is_some(), "no RELRO");
    assert_ne!(dynamic.flags & DF_BIND_NOW | dynamic.flags_1 & DF_1_NOW, 0, "no BIND_NOW");
    let stack = segment(PT_GNU_STACK).expect("without PT_GNU_STACK the stack is executable");
    assert_eq!(stack.p_flags & PF_X, 0, "the stack is executable");
    assert!(!dynamic.textrel, "text relocations");
    assert!(elf.rpaths.is_empty(), "{:?}", elf.rpaths);
    assert!(elf.runpaths.is_empty(), "{:?}", elf.runpaths);
}

#[test]
fn it_is_stripped_and_debuggers_can_unwind_it() {
    let (_, bytes) = binary();
    let elf = Elf::parse(&bytes).expect("an ELF file");
    let section = |name: &str| {
        elf.section_headers.iter().find(|s| elf.shdr_strtab.get_at(s.sh_name) == Some(name))
    };
    let unwinding = section(".eh_frame").expect(".eh_frame");
    // One entry takes some 60 bytes, and the program has thousands of functions.
    assert!(unwinding.sh_size > 100_000, "{} bytes of .eh_frame", unwinding.sh_size);
    assert!(section(".eh_frame_hdr").is_some());
    assert!(elf.program_headers.iter().any(|h| h.p_type == PT_GNU_EH_FRAME));
    // By it a core dump finds its program, and a debugger its symbols.
    assert!(section(".note.gnu.build-id").is_some());
    assert!(elf.section_headers.iter().all(|s| s.sh_type != SHT_SYMTAB), "not stripped");
    assert!(section(".debug_info").is_none(), "not stripped");
    assert!(bytes.len() <= MOST_BYTES, "{} bytes", bytes.len());
}

#[test]
fn it_needs_what_the_readme_says() {
    let (_, bytes) = binary();
    let elf = Elf::parse(&bytes).expect("an ELF file");
    let libraries = elf.libraries.iter().copied().filter(|l| !l.starts_with("ld-linux"));
    let needed: BTreeSet<&str> = libraries.collect();
    assert_eq!(needed, BTreeSet::from(NEEDED));

    let version = |text: &str| -> Option<(u32, u32)> {
        let (major, minor) = text.split_once('.')?;
        let minor = minor.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let files = elf.verneed.as_ref().expect("symbols with versions").iter();
    let names = files.flat_map(|f| f.iter().map(|v| v.vna_name).collect::<Vec<_>>());
    let versions = names.filter_map(|at| elf.dynstrtab.get_at(at)?.strip_prefix("GLIBC_"));
    let newest = versions.filter_map(version).max().expect("a version of glibc");
    println!("glibc {}.{}, {} bytes, {needed:?}", newest.0, newest.1, bytes.len());
    let readme = fs::read_to_string(project().join("README.md")).expect("README.md");
    let said = readme.split("glibc ").skip(1).find_map(version).expect("README: glibc X.Y");
    assert!(newest <= said, "needs glibc {newest:?}, and README says {said:?}");
}

/// Paths, user and host of the machine that built it, which is this one.
#[test]
fn nothing_of_the_machine_that_built_it_is_in_it() {
    let (path, bytes) = binary();
    let said = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().expect("a program of this machine");
        assert!(output.status.success(), "{program}: {output:?}");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    let home = std::env::var("HOME").expect("HOME");
    let target = path.ancestors().nth(2).expect("the target directory").display().to_string();
    let mut paths = vec![
        format!("{home}/.cargo"),
        format!("{home}/.rustup"),
        said("rustc", &["--print", "sysroot"]),
        project().display().to_string(),
        target,
    ];
    paths.extend(std::env::var("CARGO_HOME"));
    for path in paths {
        assert_eq!(around(&bytes, &path, |_| true), None, "{path}");
    }
    // Of a name that our own sources have, as "root" and perhaps "vm", nothing is known.
    let sources = sources(&project().join("src"));
    for name in [said("id", &["-un"]), said("uname", &["-n"])] {
        let whole = |c: u8| !c.is_ascii_alphanumeric();
        if around(sources.as_bytes(), &name, whole).is_none() {
            assert_eq!(around(&bytes, &name, whole), None, "{name}");
        }
    }
}

/// The text around the first `word` in `bytes` that has on both sides what `ends` it.
fn around(bytes: &[u8], word: &str, ends: impl Fn(u8) -> bool) -> Option<String> {
    let is_end = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_none_or(|&c| ends(c));
    let length = word.len();
    let found = memchr::memmem::find_iter(bytes, word)
        .find(|&at| is_end(at.checked_sub(1)) && is_end(Some(at + length)))?;
    let context = bytes.get(found.saturating_sub(40)..bytes.len().min(found + length + 40))?;
    Some(String::from_utf8_lossy(context).into_owned())
}

fn sources(dir: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else {
            text.push_str(&fs::read_to_string(&path).expect("a source"));
        }
    }
    text
}
