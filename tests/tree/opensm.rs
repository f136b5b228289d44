//! `ibprov opensm check` against opensm itself. What an opensm makes of each file of
//! `opensm/cases` stands in the first line of NAME.expected (`opensm/fabric.sh` writes it), and
//! what the author of NAME.conf means, in its first line. A case needs no Rust: write the
//! file, then `UPDATE_EXPECT=1 cargo test --test tree opensm -- --include-ignored`, with
//! opensm, ibsim-utils and infiniband-diags installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use expect_test::expect;
use serde_json::Value;

use crate::host::Host;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tree/opensm/cases");
const FABRIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tree/opensm/fabric.sh");

/// The ports of the simulated fabric.
const PORTS: [(&str, u64); 4] =
    [("a", 0x10_0001), ("b", 0x10_0003), ("c", 0x10_0005), ("s", 0x20_0000)];

/// The files of partitions, with the results beside them.
fn cases() -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(CASES).expect("the cases");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "conf"));
    files.retain(|file| !file.display().to_string().ends_with(".opensm.conf"));
    files.sort();
    assert!(files.len() >= 100, "{} cases", files.len());
    files.into_iter().map(|file| (file.clone(), file.with_extension("expected"))).collect()
}

/// What ibprov says of the file, as it would be on a host.
fn checked(conf: &[u8], options: Option<&[u8]>) -> Value {
    let host = Host::new();
    host.bytes("etc/opensm/partitions.conf", conf);
    if let Some(options) = options {
        host.bytes("etc/opensm/opensm.conf", options);
    }
    let out = host.ibprov(&["opensm", "check", "--format", "json"]);
    serde_json::from_slice(&out.stdout).expect("JSON")
}

fn options_of(conf: &Path) -> Option<Vec<u8>> {
    fs::read(conf.with_extension("opensm.conf")).ok()
}

/// The faults: severity, kind, line and column.
fn faults(report: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    let findings = report["findings"].as_array().expect("findings").iter();
    let line = |finding: &Value| {
        let place = &finding["places"][0];
        let [severity, fault] = [&finding["severity"], &finding["fault"]].map(word);
        format!("{severity} {fault} {}:{}", place["line"], place["column"])
    };
    findings.map(line).collect()
}

fn has_errors(faults: &[String]) -> bool {
    faults.iter().any(|fault| fault.starts_with("error"))
}

/// The tables that follow from the partitions which ibprov has read, as `fabric.sh` prints
/// them, but for the groups that are no broadcast groups.
fn predicted(report: &Value, faults: &[String]) -> String {
    let is = |kind: &str| faults.iter().any(|fault| fault.starts_with(&format!("error {kind} ")));
    if is("crash") {
        return "crash".to_owned();
    }
    let files = report["files"].as_array().expect("files");
    let read = files.iter().find(|file| file["kind"] == "partitions").expect("one");
    let partitions = read["partitions"].as_array().expect("partitions");
    let is_default = is("rejected") || partitions.is_empty();
    let mut keys: BTreeMap<u16, BTreeMap<&str, &str>> = BTreeMap::new();
    let mut groups = BTreeSet::new();
    let everybody = if is_default { "full" } else { "limited" };
    keys.insert(0x7fff, PORTS.iter().map(|(port, _)| (*port, everybody)).collect());
    keys.entry(0x7fff).or_default().insert("a", "full");
    if is_default {
        groups.insert("ffff/4/3".to_owned());
    }
    for partition in partitions {
        let hex = partition["pkey"].as_str().and_then(|key| key.strip_prefix("0x"));
        let pkey = u16::from_str_radix(hex.expect("hexadecimal"), 16).expect("a P_Key");
        let ports = keys.entry(pkey).or_default();
        for member in partition["members"].as_array().expect("members") {
            let who = member["port"].as_str().expect("a port");
            let is_it = |port: &str, guid: u64| match who {
                "ALL" => true,
                "ALL_CAS" => port != "s",
                "ALL_SWITCHES" => port == "s",
                "ALL_ROUTERS" => false,
                "SELF" => port == "a",
                _ => who == format!("0x{guid:016x}"),
            };
            let membership = member["membership"].as_str().expect("a word");
            let ports_of = PORTS.iter().filter(|(port, guid)| is_it(port, *guid));
            ports.extend(ports_of.map(|(port, _)| (*port, membership)));
        }
        if partition["ipoib"] == true && !ports.is_empty() {
            let [mtu, rate] = ["mtu", "rate"].map(|key| &partition[key]);
            groups.insert(format!("{:04x}/{mtu}/{rate}", pkey | 0x8000));
        }
    }
    let mut said = String::new();
    for (port, _) in PORTS {
        let mut own = BTreeSet::new();
        for (pkey, members) in &keys {
            let membership = members.get(port).copied().unwrap_or_default();
            own.extend(["full", "both"].contains(&membership).then_some(pkey | 0x8000));
            own.extend(["limited", "both"].contains(&membership).then_some(*pkey));
        }
        said.push_str(&format!("{port}: "));
        own.iter().for_each(|key| said.push_str(&format!("{key:04x} ")));
    }
    said.push_str("groups: ");
    groups.iter().for_each(|group| said.push_str(&format!("{group} ")));
    said.trim_end().to_owned()
}

/// What opensm has said, without the groups that are no broadcast groups.
fn tables(said: &str) -> &str {
    said.split("others:").next().unwrap_or_default().trim_end()
}

#[test]
fn errors_are_named_exactly_where_opensm_does_not_do_what_is_meant() {
    let (mut wrong, mut named) = (Vec::new(), 0);
    for (conf, expected) in cases() {
        let content = fs::read(&conf).expect("a case");
        let name = conf.file_name().expect("a name").to_string_lossy();
        let report = checked(&content, options_of(&conf).as_deref());
        let faults = faults(&report);
        let recorded = fs::read_to_string(&expected).unwrap_or_default();
        let said = recorded.lines().next().unwrap_or_default();
        let first = content.split(|b| *b == b'\n').next().map(String::from_utf8_lossy);
        let means = first.as_deref().and_then(|line| line.strip_prefix("# means "));
        let means = means.map(|means| means.trim_end_matches('\r'));
        if has_errors(&faults) == (means == Some(said)) {
            wrong.push(format!("{name}: {faults:?}\n  means {means:?}\n  is    {said:?}"));
        }
        // With such a value opensm makes a group with another one, or none.
        let is_vague = faults.iter().any(|fault| fault.contains(" flag-value "));
        let prediction = predicted(&report, &faults);
        if prediction != tables(said) && !is_vague {
            wrong.push(format!("{name}:\n  predicted {prediction:?}\n  is        {said:?}"));
        }
        named += usize::from(has_errors(&faults));
        let all =
            format!("{said}\n{}", faults.iter().map(|f| format!("{f}\n")).collect::<String>());
        expect_test::expect_file![expected].assert_eq(&all);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(named > 40, "{named} cases have errors");
}

/// What opensm makes of a file.
fn real(conf: &Path, options: Option<&Path>) -> String {
    let out = Command::new(FABRIC).arg(conf).args(options).output().expect("fabric.sh");
    assert!(out.status.success(), "{}: {out:?}", conf.display());
    String::from_utf8(out.stdout).expect("UTF-8").trim_end().to_owned()
}

#[test]
#[ignore = "needs opensm and ibsim; make test-opensm"]
fn opensm_says_what_is_recorded() {
    for (conf, expected) in cases() {
        let options = conf.with_extension("opensm.conf");
        let said = real(&conf, options.exists().then_some(&options));
        let recorded = fs::read_to_string(&expected).unwrap_or_default();
        let rest: String = recorded.lines().skip(1).map(|line| format!("{line}\n")).collect();
        expect_test::expect_file![expected].assert_eq(&format!("{said}\n{rest}"));
    }
}

/// Chance that comes again with its seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % sides as u64).expect("small")
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

/// A file as people write them, each member once, with its meaning.
fn written(dice: &mut Dice) -> (String, String) {
    let mut keys: BTreeMap<&str, BTreeSet<u16>> =
        PORTS.iter().map(|(port, _)| (*port, BTreeSet::from([0xffff]))).collect();
    let mut groups = BTreeSet::from(["ffff/4/3".to_owned()]);
    let mut text = dice.one(&["", "# partitions\n", "\n \n"]).to_owned();
    let blank = |dice: &mut Dice| dice.one(&["", " ", "\t", "  "]).to_owned();
    text.push_str(dice.one(&[
        "Default=0x7fff,ipoib : ALL=full ;\n",
        "Default=0x7fff, ipoib, defmember=full:ALL;\n",
        "Default = 0xFFFF , ipoib:\n  ALL=full;\n",
        "Default, ipoib : ALL=limited, ALL_SWITCHES=full, ALL_CAS=full ;\n",
    ]));
    for number in 1..=1 + dice.roll(3) {
        let pkey = u16::try_from(number * 16 + dice.roll(16)).expect("small");
        let key = match dice.roll(4) {
            0 => format!("0x{pkey:x}"),
            1 => format!("0x{:04X}", pkey | 0x8000),
            2 => pkey.to_string(),
            _ => format!("0x{pkey:04x}"),
        };
        let (mtu, rate) = (1 + dice.roll(5), [3, 6, 7, 16][dice.roll(4)]);
        let mut flags = match dice.roll(4) {
            0 => vec!["ipoib".to_owned(), format!("mtu={mtu}"), format!("rate = {rate}")],
            1 => vec![format!("mtu={mtu}"), "ipoib".to_owned()],
            2 => vec!["ipoib".to_owned()],
            _ => Vec::new(),
        };
        let named = flags.len();
        let defmember = dice.one(&["", "", "full", "limited"]);
        if !defmember.is_empty() {
            flags.push(format!("defmember={defmember}"));
        }
        let head = |dice: &mut Dice| {
            let (one, two) = (blank(dice), blank(dice));
            let flags: String = flags.iter().map(|flag| format!(",{one}{flag}{two}")).collect();
            format!("p {number}{one}={two}{key}{one}{flags}{two}:")
        };
        text.push_str(&head(dice));
        let mut had = false;
        for (port, guid) in PORTS {
            let word = dice.one(&["", "full", "limited", "none"]);
            if word == "none" {
                continue;
            }
            if had {
                let (before, after) = (blank(dice), blank(dice));
                match dice.roll(4) {
                    0 => text.push_str(&format!("{before},{after}\n\t")),
                    1 => text.push_str(&format!("{before}, # a member\n")),
                    2 => text.push_str(&format!(";{after}\n{}", head(dice))),
                    _ => text.push_str(&format!("{before},{after}")),
                }
            }
            had = true;
            let guid = match dice.roll(3) {
                0 => format!("0x{guid:016X}"),
                _ => format!("0x{guid:016x}"),
            };
            let (before, after) = (blank(dice), blank(dice));
            match word {
                "" => text.push_str(&format!("{before}{guid}")),
                _ => text.push_str(&format!("{before}{guid}{after}={before}{word}")),
            }
            let is_full = word == "full" || word.is_empty() && defmember == "full";
            let own = keys.get_mut(port).expect("a port");
            own.insert(if is_full { pkey | 0x8000 } else { pkey });
        }
        let (before, after) = (blank(dice), blank(dice));
        text.push_str(&format!("{before};{after}{}\n", dice.one(&["", "# x : y=z"])));
        if named > 0 && had {
            let mtu = if named > 1 { mtu } else { 4 };
            let rate = if named > 2 { rate } else { 3 };
            groups.insert(format!("{:04x}/{mtu}/{rate}", pkey | 0x8000));
        }
    }
    let mut means = String::new();
    for (port, own) in keys {
        means.push_str(&format!("{port}: "));
        own.iter().for_each(|key| means.push_str(&format!("{key:04x} ")));
    }
    means.push_str("groups: ");
    groups.iter().for_each(|group| means.push_str(&format!("{group} ")));
    (text, means.trim_end().to_owned())
}

/// One mistake, as they are made by hand.
fn mistaken(text: &str, dice: &mut Dice) -> String {
    let all: &[(&str, &str)] = &[
        (";", ""),
        (";", ";;"),
        (";", "\n;"),
        (";", ","),
        (":", ""),
        (":", ";"),
        (",", " "),
        (",", ";"),
        ("=", ""),
        ("=", ":"),
        ("=", "=="),
        ("\n", "\r\n"),
        ("0x00000", "00000"),
        ("0x00000", "0000:0"),
        ("0x", "0"),
        ("0x", "0x1234567"),
        ("0x", "\"0x"),
        ("ipoib", "IPoIB"),
        ("ipoib", "i"),
        ("ipoib", "ipoib6"),
        ("mtu", "MTU"),
        ("mtu=", "mtu=4096"),
        ("rate", "speed"),
        ("full", "Full"),
        ("full", ""),
        ("full", "rw"),
        ("limited", "limit ed"),
        ("limited", "LIMITED"),
        ("defmember", "member"),
        ("ALL", "ANY"),
        ("#", "//"),
        ("p 1", "p 1,"),
        ("\n", "\n;\n"),
    ];
    let fitting: Vec<_> = all.iter().filter(|(from, _)| text.contains(from)).collect();
    let (from, to) = fitting[dice.roll(fitting.len())];
    let places: Vec<usize> = text.match_indices(from).map(|(at, _)| at).collect();
    let at = places[dice.roll(places.len())];
    format!("{}{to}{}", &text[..at], &text[at + from.len()..])
}

/// Bytes anywhere.
fn scribbled(text: &str, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=dice.roll(3) {
        let at = dice.roll(bytes.len());
        let of = b" \t\n\r,;:=#0x19afFALSEmgid\"-\0";
        let byte = of[dice.roll(of.len())];
        match dice.roll(3) {
            0 => bytes[at] = byte,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, byte),
        }
    }
    bytes
}

/// IBPROV_CAMPAIGN_FILES of each kind: a file as it should be is taken as it is meant and has
/// no finding; one with a mistake is taken as it is meant, or has an error; of any that has no
/// error, the tables are those that ibprov has read.
#[test]
#[ignore = "needs opensm and ibsim; make test-opensm"]
fn what_opensm_takes_otherwise_than_ibprov_reads_it_has_an_error() {
    let count = env::var("IBPROV_CAMPAIGN_FILES").map_or(100, |n| n.parse().expect("a number"));
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("partitions.conf");
    let (mut harmless, mut exact) = (0, 0);
    for seed in 0..count {
        let mut dice = Dice(seed);
        let (text, means) = written(&mut dice);
        let wrong = mistaken(&text, &mut dice);
        let scribble = scribbled(&text, &mut dice);
        for (kind, content) in
            [("good", text.as_bytes()), ("mistaken", wrong.as_bytes()), ("scribbled", &scribble)]
        {
            fs::write(&file, content).expect("written");
            let said = real(&file, None);
            let report = checked(content, None);
            let faults = faults(&report);
            let shown = format!("seed {seed}, {kind}: {faults:?}\n{}", content.escape_ascii());
            exact += usize::from(predicted(&report, &faults) == tables(&said));
            if !has_errors(&faults) {
                assert_eq!(predicted(&report, &faults), tables(&said), "{shown}");
            }
            match kind {
                "good" => {
                    // The dice may have made all members limited.
                    let is_limited = |fault: &String| fault.contains(" no-full-member ");
                    assert!(faults.iter().all(is_limited), "{shown}");
                    assert_eq!(tables(&said), means, "{shown}");
                }
                "mistaken" if !has_errors(&faults) => {
                    harmless += 1;
                    assert_eq!(tables(&said), means, "{shown}");
                }
                _ => {}
            }
        }
    }
    println!("{count} files of each kind, {harmless} mistakes harmless, {exact} tables foretold");
}

#[test]
fn findings_have_place_consequence_and_exit_code() {
    let host = Host::new();
    expect![[r#"
        no partitions.conf and no opensm.conf: opensm would use its defaults
        exit 0
    "#]]
    .assert_eq(&host.show(&["opensm", "check"]));
    host.file("etc/opensm/opensm.conf", "guid 0x98039b0300a1b0c1,0x98039b0300a1b0c2\n");
    host.file(
        "etc/opensm/partitions.conf",
        "Default=0x7fff,ipoib : ALL=full ;\n\
         storage=0x18010,ipoib,mtu=4096 : 0x98039b0300a1b0c1=full ;\n\
         # the new nodes\n\
         compute=0x20 : 0x98039b0300a1b0c2=full, 0x98039b0300a1b0c2=full ;\n\
         compute=0x20 : 98039b0300a1b0c3=full ;\n",
    );
    host.file(
        "etc/ibprov/ibprov.toml",
        "[[interface]]\nname = \"ib0\"\npartition = [{ pkey = \"0x8020\" }]\n",
    );
    expect![[r#"
        error: opensm would ignore guid, and run on the first port whose link is up
         --> /etc/opensm/opensm.conf:1:6
          |
        1 | guid 0x98039b0300a1b0c1,0x98039b0300a1b0c2
          |      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ more than one
          |
          = help: run one opensm for each port, as opensm@GUID.service does

        error: opensm would cut the P_Key 0x18010 to 0x8010
         --> /etc/opensm/partitions.conf:2:9
          |
        2 | storage=0x18010,ipoib,mtu=4096 : 0x98039b0300a1b0c1=full ;
          |         ^^^^^^^ more than 16 bits

        error: opensm would make no broadcast group, or one with another mtu
         --> /etc/opensm/partitions.conf:2:23
          |
        2 | storage=0x18010,ipoib,mtu=4096 : 0x98039b0300a1b0c1=full ;
          |                       ^^^^^^^^ not one of the codes 1 to 5
          |
          = help: write mtu=5 for 4096 bytes

        warning: opensm would take 0x98039b0300a1b0c2 once
         --> /etc/opensm/partitions.conf:4:41
          |
        4 | compute=0x20 : 0x98039b0300a1b0c2=full, 0x98039b0300a1b0c2=full ;
          |                ------------------       ^^^^^^^^^^^^^^^^^^ again
          |                |
          |                the first time

        error: opensm would throw away the whole file; every port would be a full member of 0x7fff alone
         --> /etc/opensm/partitions.conf:5:16
          |
        5 | compute=0x20 : 98039b0300a1b0c3=full ;
          |                ^^^^^^^^^^^^^^^^ "98039b0300a1b0c3" is not a port GUID
          |
          = help: write 0x98039b0300a1b0c3

        /etc/opensm/opensm.conf: 1 error
        /etc/opensm/partitions.conf (0 partitions): 3 errors, 1 warning
        exit 3
    "#]].assert_eq(&host.show(&["opensm", "check"]));
    expect![[r#"
        error: /etc/hostname is named neither partitions.conf nor opensm.conf: add --as partitions or --as opensm
        exit 2
    "#]].assert_eq(&host.show(&["opensm", "check", "/etc/hostname"]));
    expect![[r#"
        cannot read /etc/partitions.conf: ENOENT: No such file or directory
        exit 2
    "#]]
    .assert_eq(&host.show(&["opensm", "check", "/etc/partitions.conf"]));
    // check says the same, where there is an opensm, of its own kind of findings.
    let codes = |host: &Host| {
        let out = host.ibprov(&["check", "--format", "json"]);
        let report: Value = serde_json::from_slice(&out.stdout).expect("JSON");
        let findings = report["findings"].as_array().expect("findings").iter();
        let opensm =
            findings.filter(|f| f["code"].as_str().is_some_and(|c| c.starts_with("opensm")));
        opensm.map(|f| format!("{}: {}", f["code"], f["message"])).collect::<Vec<_>>()
    };
    assert_eq!(codes(&host), [""; 0]);
    host.file("usr/sbin/opensm", "");
    expect![[r#"
        "opensm-partitions-rejected": "opensm would throw away the whole file; every port would be a full member of 0x7fff alone (/etc/opensm/partitions.conf:5: \"98039b0300a1b0c3\" is not a port GUID)"
        "opensm-misconfigured": "opensm would ignore guid, and run on the first port whose link is up (/etc/opensm/opensm.conf:1: more than one); 3 more""#]].assert_eq(&codes(&host).join("\n"));
    host.file("etc/opensm/opensm.conf", "guid 0x98039b0300a1b0c1\nvirt_enabled 2\n");
    host.file("etc/opensm/partitions.conf", "Default=0x7fff,ipoib : ALL=full ;\n");
    assert_eq!(codes(&host), [""; 0]);
}

/// A key of NVIDIA's opensm is an error for that of distributions alone; a bad value is one for both.
#[test]
fn keys_of_nvidias_opensm_are_no_errors_where_it_is_meant() {
    let host = Host::new();
    host.file("etc/opensm/opensm.conf", "virt_enabled 2\nsm_priority 300\n");
    let told = |which: &[&str]| {
        let out = host.ibprov(&[&["opensm", "check", "--format", "json"], which].concat());
        faults(&serde_json::from_slice(&out.stdout).expect("JSON"))
    };
    let priority = "error out-of-range 2:13";
    assert_eq!(told(&[]), ["error key-unknown 1:1", priority]);
    assert_eq!(told(&["--opensm", "nvidia"]), [priority]);
    host.file("etc/opensm/opensm.conf", "virt_enabled 2\n");
    assert_eq!(told(&["--opensm", "nvidia"]), [""; 0]);
}
