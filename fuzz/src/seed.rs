//! Seeds and dictionaries from what the repository has already: the string literals of
//! each parser's source and of its tests, and the files that the tests read.
//! Read from the repository's root.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// A target, the letter of the section that its seeds stand in (none: the whole input),
/// and where they are from: Rust sources or other files, below folders too.
const SOURCES: &[(&str, Option<char>, &[&str])] = &[
    ("config", None, &["src/config", "tests/config.rs", "docs/examples", "packaging"]),
    ("pins", None, &["src/config/pins.rs", "src/config/pins", "tests/tree/plan"]),
    ("names", None, &["src/names", "src/config/timespan.rs"]),
    ("logs", None, &["tests/tree/archives.rs", "src/host/logs", "tests/tree/logs"]),
    (
        "intake",
        None,
        &["src/check", "tests/tree/check.rs", "tests/tree/logs", "proptest-regressions"],
    ),
    ("kernel", None, &["src/host/kernel_log.rs", "src/host/systemctl.rs"]),
    ("netlink", None, &["src/host/netlink.rs", "src/host/rdma_netlink.rs"]),
    ("udev", None, &["src/host/udev.rs", "src/host/udev_record.rs"]),
    ("units", Some('A'), &["src/graph", "tests/boot/scenarios", "units"]),
    ("units", Some('B'), &["src/graph", "units", "src/check/predict"]),
    ("units", Some('E'), &["src/graph/files/tests.rs"]),
    ("units", Some('I'), &["src/graph/fstab.rs", "src/graph/files/tests.rs"]),
    ("units", Some('J'), &["src/graph/sysv.rs", "src/observe/units.rs"]),
    ("units", Some('L'), &["src/graph/sysv.rs", "src/observe/units.rs"]),
    ("guests", None, &["src/guests/domain.rs", "src/guests/libvirt.rs"]),
    ("import", None, &["src/config/foreign", "tests/tree/import.rs"]),
    ("stacks", Some('A'), &["src/stacks/network_manager.rs", "src/stacks/tests.rs"]),
    ("stacks", Some('B'), &["src/stacks/network_manager.rs"]),
    ("stacks", Some('C'), &["src/stacks/network_manager.rs"]),
    ("stacks", Some('D'), &["src/stacks/networkd.rs", "src/stacks/tests.rs"]),
    ("stacks", Some('H'), &["src/stacks/networkd.rs"]),
    ("stacks", Some('I'), &["src/stacks/ifupdown.rs", "src/stacks/tests.rs"]),
    ("stacks", Some('K'), &["src/stacks/ifupdown.rs"]),
    ("stacks", Some('L'), &["src/stacks/network_scripts.rs", "src/stacks/tests.rs"]),
    ("stacks", Some('M'), &["src/stacks/wicked.rs", "src/stacks/tests.rs"]),
    ("stacks", Some('N'), &["src/host/udev_record.rs"]),
    ("reports", None, &["src/model", "src/workers"]),
    ("host", Some('A'), &["src/observe/modprobe.rs"]),
    ("host", Some('B'), &["src/observe/modprobe.rs", "src/observe/plan_host.rs"]),
    ("host", Some('C'), &["src/observe/plan_host.rs", "src/names/host_number.rs"]),
    ("host", Some('E'), &["src/config/tests"]),
    ("host", Some('F'), &["src/config/pins"]),
    ("host", Some('G'), &["src/model/read.rs", "src/model/round_trip.rs"]),
    ("host", Some('I'), &["src/observe/autostart.rs"]),
    ("host", Some('J'), &["src/observe/autostart.rs"]),
    ("host", Some('K'), &["src/observe/autostart.rs"]),
    ("host", Some('M'), &["src/observe/interface_manager.rs"]),
    ("host", Some('S'), &["src/observe/rdma.rs", "src/observe/mod.rs"]),
    ("host", Some('X'), &["src/observe/modules.rs"]),
    ("host", Some('Y'), &["src/observe/modules.rs"]),
    ("opensm", None, &["tests/tree/opensm/cases", "src/opensm"]),
    ("firmware", None, &["src/firmware"]),
];

/// Longer texts are no words of a format.
const LONGEST_WORD: usize = 32;
/// Longer files make slow seeds.
const LONGEST_SEED: usize = 48 << 10;

/// The seeds for `target`, and the words of its formats.
pub fn of(target: &str) -> (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>) {
    let mut words = BTreeSet::new();
    let mut seeds = BTreeSet::new();
    for (_, letter, places) in SOURCES.iter().filter(|(of, ..)| *of == target) {
        for file in places.iter().flat_map(|place| files(Path::new(place))) {
            for text in texts(&file) {
                if (2..=LONGEST_WORD).contains(&text.len()) {
                    words.insert(text.clone());
                }
                let head = letter.map_or(Vec::new(), |letter| vec![0x1e, letter as u8]);
                seeds.insert([head.as_slice(), &text].concat());
            }
        }
    }
    seeds.extend(made(target));
    seeds.extend(kept(target));
    seeds.retain(|seed| seed.len() <= LONGEST_SEED);
    assert!(!seeds.is_empty(), "no seeds for {target}");
    (seeds, words)
}

/// The file of inputs that campaigns came upon, and that reach code which no other seed does:
/// one on each line, as Rust writes a byte string.
pub fn kept_file(target: &str) -> PathBuf {
    format!("fuzz/kept/{target}").into()
}

/// The inputs in that file; none for a new target, which has no file yet.
pub fn kept(target: &str) -> BTreeSet<Vec<u8>> {
    let file = kept_file(target);
    let text = match fs::read_to_string(&file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.unwrap_or_else(|e| panic!("{}: {e}", file.display())),
    };
    let input = |line: &str| {
        let literal = syn::parse_str::<syn::LitByteStr>(&format!("b\"{line}\""));
        literal.unwrap_or_else(|e| panic!("{}: {line}: {e}", file.display())).value()
    };
    text.lines().map(input).collect()
}

/// What no source spells out.
fn made(target: &str) -> Vec<Vec<u8>> {
    match target {
        "netlink" => {
            let attribute = |kind: u16, value: &[u8]| {
                let length = u16::try_from(value.len() + 4).expect("short");
                let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
                bytes.extend(value);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                bytes
            };
            let message = |kind: u16, payload: &[u8]| {
                let length = u32::try_from(payload.len() + 16).expect("short");
                let mut bytes = length.to_ne_bytes().to_vec();
                bytes.extend([kind.to_ne_bytes(), 2_u16.to_ne_bytes()].concat());
                bytes.extend([0; 8]);
                bytes.extend(payload);
                bytes
            };
            let guid = [[0; 8], [7; 8]].concat();
            let vf = [attribute(10, &guid), attribute(11, &guid), attribute(5, &[0; 8])].concat();
            let link = [vec![0; 16], attribute(22, &attribute(1, &vf))].concat();
            let ipoib = [attribute(1, b"ipoib\0"), attribute(2, &attribute(2, &[1, 0]))].concat();
            let child = [vec![0; 16], attribute(18, &ipoib)].concat();
            let address = [vec![2, 24, 0, 0, 7, 0, 0, 0], attribute(2, &[10, 0, 0, 1])].concat();
            let hop = [vec![8, 0, 0, 0, 7, 0, 0, 0]].concat();
            let route = [
                vec![2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0],
                attribute(1, &[10, 0, 0, 0]),
                attribute(4, &[7, 0, 0, 0]),
                attribute(9, &hop),
            ]
            .concat();
            let mut entry = [attribute(29, b"ib_ipoib\0"), attribute(27, &[3])].concat();
            entry.extend(attribute(33, &[2, 0, 0, 0, 10, 0, 0, 1]));
            let table = attribute(19 | 0x8000, &attribute(20 | 0x8000, &entry));
            let done = message(3, &[0; 4]);
            [link, child, address, route, table]
                .iter()
                .map(|payload| [message(16, payload), done.clone()].concat())
                .collect()
        }
        "udev" => vec![
            b"add\0pci\0/devices/pci0000:00/0000:4b:00.0\0".to_vec(),
            b"move\0net\0/devices/virtual/net/a!b\0I:1\nE:ID_NET_NAME=v0\nE:ID_RENAMING=1\n"
                .to_vec(),
        ],
        "guests" => vec![b"6695eb01-f6a4-8304-79aa-97f2502e193f test\n\0test\n\0test\n".to_vec()],
        "logs" => archives(),
        _ => Vec::new(),
    }
}

/// Archives as the system's tar and gzip make them.
fn archives() -> Vec<Vec<u8>> {
    let flags: [&[&str]; 4] =
        [&["-cf"], &["-czf"], &["--format=pax", "-cf"], &["--format=ustar", "-czf"]];
    let one = |flags: &&[&str]| {
        let out = std::process::Command::new("tar")
            .args(*flags)
            .args(["-", "tests/tree/logs/openibd-enabled.log", "units"])
            .output()
            .expect("tar");
        assert!(out.status.success(), "{out:?}");
        out.stdout
    };
    flags.iter().map(one).collect()
}

/// The files at and below `place`.
fn files(place: &Path) -> Vec<PathBuf> {
    let kind = fs::symlink_metadata(place).unwrap_or_else(|e| panic!("{}: {e}", place.display()));
    if kind.is_file() {
        return vec![place.to_owned()];
    }
    if !kind.is_dir() {
        return Vec::new();
    }
    let entries = fs::read_dir(place).expect("a directory");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| files(path)).collect()
}

/// The literals of a Rust file; of another, all of it.
fn texts(file: &Path) -> Vec<Vec<u8>> {
    let content = fs::read(file).expect("a file");
    if file.extension().is_none_or(|e| e != "rs") {
        return vec![content];
    }
    let source = String::from_utf8(content).expect("Rust");
    let tokens: TokenStream = source.parse().expect("Rust");
    let mut found = Vec::new();
    literals(tokens, &mut found);
    found
}

fn literals(tokens: TokenStream, found: &mut Vec<Vec<u8>>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => literals(group.stream(), found),
            TokenTree::Literal(literal) => match syn::Lit::new(literal) {
                syn::Lit::Str(text) => found.push(text.value().into_bytes()),
                syn::Lit::ByteStr(bytes) => found.push(bytes.value()),
                _ => {}
            },
            _ => {}
        }
    }
}
