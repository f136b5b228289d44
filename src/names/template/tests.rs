use super::*;
use proptest::prelude::*;

fn template(text: &str) -> Template {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn guid(template: &Template, host: u64, vf: u64, kind: GuidKind) -> Result<String, String> {
    let numbers = Numbers { host: Some(host), site: None, pf: 0, vf };
    let guid = template.guid(&numbers, kind).map_err(|e| e.to_string())?;
    // As scripts write it.
    Ok(guid.value().to_be_bytes().map(|b| format!("{b:02x}")).join(":"))
}

/// What the kernel makes of a text written to `sriov/N/port`:
/// `sscanf("%02x:%02x:...")`, eight times, as MLNX_OFED does it. `None` is
/// EINVAL.
fn sscanf(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut value = 0;
    for byte in 0..8 {
        if byte > 0 {
            rest = rest.strip_prefix(':')?;
        }
        let digits = rest.bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
        value = value << 8 | u64::from_str_radix(&rest[..digits], 16).ok()?;
        rest = &rest[digits..];
    }
    Some(value)
}

const HOSTS: [u64; 6] = [8, 9, 10, 12, 99, 112];
const VFS: [u64; 3] = [0, 9, 10];

/// A script that writes `11:11:11:11:11:11:$host:${vf}0` to port and
/// `...:${vf}1` to node.
const MANY_VFS: &str = "11:11:11:11:11:11:{host:8:decimal}:{vf:4:decimal}{kind:4:node=1,port=0}";
/// A script that writes `11:11:11:11:11:11:$host:00` to node and `...:01` to
/// port of its only VF.
const ONE_VF: &str = "11:11:11:11:11:11:{host:8:decimal}:{kind:8}";

#[test]
fn the_script_for_many_vfs_gives_the_same_bytes_where_it_worked() {
    let template = template(MANY_VFS);
    for host in HOSTS {
        for vf in VFS {
            for (kind, last) in [(GuidKind::Port, 0), (GuidKind::Node, 1)] {
                let text = format!("11:11:11:11:11:11:{host}:{vf}{last}");
                // It worked where the kernel took every digit of it. For VF 10
                // the kernel takes "10" of "100": VF 1's GUID, a second time.
                let worked = host <= 99 && vf <= 9;
                let got = guid(&template, host, vf, kind);
                match (worked, &got) {
                    (true, Ok(got)) => assert_eq!(sscanf(got), sscanf(&text), "{text}"),
                    (false, Err(_)) => {}
                    _ => panic!("{text}: {got:?}"),
                }
            }
        }
    }
    let vf_1 = guid(&template, 12, 1, GuidKind::Port).expect("VF 1");
    assert_eq!(sscanf("11:11:11:11:11:11:12:100"), sscanf(&vf_1), "why VF 10 is refused");
    assert_eq!(sscanf("11:11:11:11:11:11:112:00"), None, "why host 112 is refused");
}

#[test]
fn the_script_for_one_vf_gives_the_same_bytes_where_it_worked() {
    let template = template(ONE_VF);
    for host in HOSTS {
        for (kind, last) in [(GuidKind::Node, "00"), (GuidKind::Port, "01")] {
            // Its host names had two digits: c08, c12.
            let text = format!("11:11:11:11:11:11:{host:02}:{last}");
            let got = guid(&template, host, 0, kind);
            assert_eq!(sscanf(&text), got.ok().and_then(|got| sscanf(&got)), "{text}");
            assert_eq!(sscanf(&text).is_some(), host <= 99, "{text}");
        }
    }
}

#[test]
fn golden_bytes_of_both_scripts() {
    let [many, one] = [MANY_VFS, ONE_VF].map(template);
    let ok = |text: &str| Ok(text.to_owned());
    let bad = |text: &str| Err(text.to_owned());
    assert_eq!(guid(&many, 8, 0, GuidKind::Port), ok("11:11:11:11:11:11:08:00"));
    assert_eq!(guid(&many, 8, 0, GuidKind::Node), ok("11:11:11:11:11:11:08:01"));
    assert_eq!(guid(&many, 9, 9, GuidKind::Port), ok("11:11:11:11:11:11:09:90"));
    assert_eq!(guid(&many, 10, 9, GuidKind::Node), ok("11:11:11:11:11:11:10:91"));
    assert_eq!(guid(&many, 12, 0, GuidKind::Port), ok("11:11:11:11:11:11:12:00"));
    assert_eq!(guid(&many, 99, 9, GuidKind::Node), ok("11:11:11:11:11:11:99:91"));
    assert_eq!(
        guid(&many, 12, 10, GuidKind::Port),
        bad("VF index 10 does not fit in {vf:4:decimal}: the largest is 9")
    );
    assert_eq!(
        guid(&many, 112, 0, GuidKind::Port),
        bad("host number 112 does not fit in {host:8:decimal}: the largest is 99")
    );
    assert_eq!(guid(&one, 8, 0, GuidKind::Node), ok("11:11:11:11:11:11:08:00"));
    assert_eq!(guid(&one, 12, 0, GuidKind::Port), ok("11:11:11:11:11:11:12:01"));
    assert_eq!(
        guid(&one, 112, 0, GuidKind::Node),
        bad("host number 112 does not fit in {host:8:decimal}: the largest is 99")
    );
}

#[test]
fn the_same_scheme_with_room_is_right_for_every_host_and_vf() {
    let binary = template("02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}");
    assert_eq!(guid(&binary, 112, 10, GuidKind::Port), Ok("02:00:00:70:00:01:00:0a".into()));
    let decimal = template("02:00:{host:16:decimal}:{pf:8}:{kind:8}:{vf:16:decimal}");
    assert_eq!(guid(&decimal, 112, 10, GuidKind::Node), Ok("02:00:01:12:00:00:00:10".into()));
    assert_eq!(guid(&decimal, 8, 0, GuidKind::Node), Ok("02:00:00:08:00:00:00:00".into()));
    assert!(guid(&decimal, 10000, 0, GuidKind::Node).is_err());
    assert!(guid(&binary, 65536, 0, GuidKind::Node).is_err());
}

#[test]
fn what_is_wrong_is_said() {
    let why = |text: &str| text.parse::<Template>().expect_err(text).to_string();
    assert_eq!(why(""), "the template has 0 bits, and a GUID has 64");
    assert_eq!(why("02:00:{vf:16}"), "the template has 32 bits, and a GUID has 64");
    assert_eq!(why("0:2"), "a ':' follows 4 bits: it is allowed only between bytes");
    assert_eq!(why("0g"), "'g' is neither a hex digit nor a field such as {vf:16}");
    assert_eq!(
        why("{vf:6:decimal}"),
        "{vf:6:decimal} holds decimal digits of 4 bits each, so its width is a multiple of 4"
    );
    assert_eq!(why("{vf:8}:{vf:8}"), "{vf} occurs twice");
    assert_eq!(
        why("{kind:1:node=2,port=0}"),
        "{kind:1:node=2,port=0} needs two different numbers that fit, one for node and one for port GUIDs"
    );
    // A terminal gets no control characters of others.
    for text in ["{v\0\0\n}", "{v\0\0\n"] {
        assert!(why(text).starts_with(r"{v\0\0\n} is not a field: "), "{}", why(text));
    }
    for text in ["{vf}", "{vf:0}", "{vf:57}", "{vf:+8}", "{name:8}", "{vf:8", "{vf:8:hex}", "{}"] {
        assert!(
            why(text).contains("is not a field: expected {host:BITS}"),
            "{text}: {}",
            why(text)
        );
    }
    assert!(why("{h\u{1b}[2Jst:8}").starts_with("{h\\u{1b}[2Jst:8} is not a field"));
}

#[test]
fn without_a_number_a_host_field_is_an_error_and_others_are_not() {
    let numbers = Numbers { host: None, site: Some(7), pf: 1, vf: 2 };
    let with = template("02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}");
    assert_eq!(with.guid(&numbers, GuidKind::Node), Err(Misfit::NoHostNumber));
    let without = template("02:00:00:00:00:{pf:8}:{kind:8}:{vf:8}");
    assert_eq!(
        without.guid(&numbers, GuidKind::Port).map(|g| g.to_string()),
        Ok("0200:0000:0001:0102".to_owned())
    );
}

fn field() -> impl Strategy<Value = (u32, bool)> {
    (1_u32..=3, any::<bool>()).prop_map(|(nibbles, decimal)| (4 * nibbles, decimal))
}

/// A second port is of a third kind, whatever the numbers of the other two are.
#[test]
fn a_second_port_has_a_kind_of_its_own_where_there_is_room() {
    let port2 =
        |kind: &str| guid(&template(&format!("{:0<14}{{{kind}}}", "")), 1, 0, GuidKind::Port2);
    assert!(port2("kind:8").is_ok_and(|guid| guid.ends_with(":02")));
    assert!(port2("kind:8:node=1,port=0").is_ok_and(|guid| guid.ends_with(":02")));
    assert!(port2("kind:8:node=6,port=3").is_ok_and(|guid| guid.ends_with(":07")));
    let full = port2("kind:8:node=1,port=255");
    assert!(full.as_ref().is_err_and(|why| why.contains("kind 256 does not fit")), "{full:?}");
}

proptest! {
    #[test]
    fn distinct_numbers_never_give_one_guid(
        fields in prop::collection::vec(field(), 4),
        one in prop::array::uniform3(0_u64..5000),
        other in prop::array::uniform3(0_u64..5000),
        kinds in prop::array::uniform2(prop::sample::select(GuidKind::ALL.to_vec())),
    ) {
        let used: u32 = fields.iter().map(|(bits, _)| bits).sum();
        let mut text = "0".repeat(((64 - used) / 4) as usize);
        for ((bits, decimal), name) in fields.iter().zip(["host", "pf", "vf", "kind"]) {
            let base = if *decimal { ":decimal" } else { "" };
            text.push_str(&format!("{{{name}:{bits}{base}}}"));
        }
        let template = template(&text);
        let fill = |[host, pf, vf]: [u64; 3], kind| {
            template.guid(&Numbers { host: Some(host), site: None, pf, vf }, kind)
        };
        let [a, b] = [fill(one, kinds[0]), fill(other, kinds[1])];
        if let (Ok(a), Ok(b)) = (a, b) {
            prop_assert_eq!(a == b, one == other && kinds[0] == kinds[1], "{}", text);
        }
    }

    #[test]
    fn display_parses_back(fields in prop::collection::vec(field(), 4), swap: bool) {
        let used: u32 = fields.iter().map(|(bits, _)| bits).sum();
        let mut text = "b".repeat(((64 - used) / 4) as usize);
        let kind = if swap { "kind:4:node=1,port=0" } else { "kind:4:decimal:node=3,port=7" };
        for ((bits, decimal), name) in fields.iter().zip(["vf", "host", "pf"]) {
            let base = if *decimal { ":decimal" } else { "" };
            text.push_str(&format!("{{{name}:{bits}{base}}}"));
        }
        text.push_str(&"5".repeat((fields[3].0 / 4 - 1) as usize));
        text.push_str(&format!("{{{kind}}}"));
        let template = template(&text);
        prop_assert_eq!(template.to_string().parse::<Template>(), Ok(template));
    }

    #[test]
    fn no_text_panics(text in "(?s).{0,60}") {
        let _parsed: Result<Template, _> = text.parse();
    }

    #[test]
    fn nearly_good_text_panics_neither(text in "([0-9a-f:]{0,4}\\{(vf|kind|host):[0-9]{1,3}(:decimal|:node=[0-9]{1,21},port=1)?\\}){0,4}") {
        let _parsed: Result<Template, _> = text.parse();
    }
}
