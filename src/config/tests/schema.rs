//! The JSON schema against the program: it refuses nothing that is accepted, and what it
//! accepts is refused only for what no schema can say.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use regex::Regex;
use serde_json::{Map, Value as Json, json};

use super::loaded;
use crate::config::keys::{KEYS, Key, Kind};
use crate::config::schema::{schema, spelling};
use crate::config::timespan::LONGEST_SEC;

/// As much of a validator (draft 2020-12) as our schema needs.
#[derive(Default)]
struct Validator(RefCell<BTreeMap<String, Regex>>);

impl Validator {
    fn fits(&self, schema: &Json, value: &Json) -> bool {
        let schema = match schema {
            Json::Bool(always) => return *always,
            Json::Object(schema) => schema,
            other => panic!("no schema: {other}"),
        };
        let each = |keyword: &str| {
            let list = schema.get(keyword).and_then(Json::as_array);
            list.map(|list| list.iter().filter(|one| self.fits(one, value)).count())
        };
        schema.iter().all(|(keyword, wanted)| match keyword.as_str() {
            "$schema" | "title" | "description" | "default" | "examples" | "then" => true,
            "type" => has_type(wanted, value),
            "const" => value == wanted,
            "pattern" => value.as_str().is_none_or(|text| self.matches(wanted, text)),
            "minimum" => value.as_i64().is_none_or(|n| Some(n) >= wanted.as_i64()),
            "maximum" => value.as_i64().is_none_or(|n| Some(n) <= wanted.as_i64()),
            "minItems" => value.as_array().is_none_or(|l| Some(l.len() as u64) >= wanted.as_u64()),
            "maxItems" => value.as_array().is_none_or(|l| Some(l.len() as u64) <= wanted.as_u64()),
            "items" => value.as_array().is_none_or(|l| l.iter().all(|i| self.fits(wanted, i))),
            "maxProperties" => {
                value.as_object().is_none_or(|o| Some(o.len() as u64) <= wanted.as_u64())
            }
            "required" => value.as_object().is_none_or(|o| {
                wanted
                    .as_array()
                    .into_iter()
                    .flatten()
                    .all(|k| o.contains_key(k.as_str().unwrap_or("")))
            }),
            "properties" => value.as_object().is_none_or(|o| {
                o.iter().all(|(k, v)| wanted.get(k).is_none_or(|schema| self.fits(schema, v)))
            }),
            "additionalProperties" => value.as_object().is_none_or(|o| {
                let known =
                    |k: &String| schema.get("properties").is_some_and(|p| p.get(k).is_some());
                o.iter().all(|(k, v)| known(k) || self.fits(wanted, v))
            }),
            "propertyNames" => {
                value.as_object().is_none_or(|o| o.keys().all(|k| self.fits(wanted, &json!(k))))
            }
            "enum" => wanted.as_array().is_some_and(|all| all.contains(value)),
            "anyOf" => each("anyOf") >= Some(1),
            "oneOf" => each("oneOf") == Some(1),
            "allOf" => each("allOf") == wanted.as_array().map(Vec::len),
            "not" => !self.fits(wanted, value),
            "if" => !self.fits(wanted, value) || self.fits(&schema["then"], value),
            other => panic!("the validator does not know {other}"),
        })
    }

    fn matches(&self, pattern: &Json, text: &str) -> bool {
        let pattern = pattern.as_str().expect("a pattern");
        let mut known = self.0.borrow_mut();
        let regex = known
            .entry(pattern.to_owned())
            .or_insert_with(|| Regex::new(pattern).unwrap_or_else(|e| panic!("{e}")));
        regex.is_match(text)
    }
}

fn has_type(wanted: &Json, value: &Json) -> bool {
    match wanted.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        other => panic!("the validator does not know the type {other:?}"),
    }
}

/// Choices that are made from a list of numbers, and 0 when that has ended.
struct Dice<'a>(std::slice::Iter<'a, u32>);

impl Dice<'_> {
    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.next().copied().unwrap_or(0)).expect("small") % n
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Good for one kind or other, or nearly.
const TEXTS: &[&str] = &[
    "",
    " ",
    "ib0",
    "ib*",
    "ib[01]",
    "[",
    "***",
    "ib 0",
    ".",
    "..",
    ".x",
    "a/b",
    "-x",
    "auto",
    "sixteen-letters-",
    "4b:00.0",
    "0000:4b:00.0",
    "0000:4b:00.8",
    "4b:00.0/3",
    "0000:4b:00.0/65534",
    "4b:00.0/65535",
    "4b:00.0/007",
    "0x8010",
    "0x0001",
    "0x8000",
    "0x1000",
    "8001",
    "0002:c903:000e:8acd",
    "0x0002c903000e8acd",
    "mlx5_0",
    "3",
    " 3 - 5 ",
    "5-3",
    "8-15",
    "4min",
    "1 2",
    " 90 s",
    "1h 30min",
    "2 min 3",
    "4 fortnights",
    "0s",
    "datagram",
    "connected",
    "follow",
    "up",
    "host",
    "none",
    "vfio-pci",
    "found",
    "listed",
    "/etc/x",
    "etc",
    "vm00",
    "vm; reboot",
    "vm@1.service",
    "vm@.service",
    "a.timer",
    "qemu:///system",
    "qemu",
    "ib_srp",
    "active",
    "pci",
    "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}",
    "{netdev}v{vf}",
    "in-order",
    "0200:0000:0000:0001 - 0200:0000:0000:0009",
    "last-digits",
    "retry",
    "agent",
    "running",
];

fn value(kind: &Kind, dice: &mut Dice<'_>) -> Json {
    // Once in a while, of another kind.
    if dice.below(25) == 24 {
        return match dice.below(4) {
            0 => json!(dice.one(TEXTS)),
            1 => json!(dice.one(&[-1_i64, 0, 1, 70_000])),
            2 => json!(true),
            _ => json!([]),
        };
    }
    let word = |example: &str, dice: &mut Dice<'_>| match dice.below(4) {
        3 => json!(dice.one(TEXTS)),
        _ => json!(example),
    };
    match kind {
        Kind::Span => match dice.below(4) {
            0 => json!(dice.one(&["4min", "1 2", " 90 s", "0s", "1h 30min", "soon"])),
            1 => json!(dice.one(&[0, LONGEST_SEC, LONGEST_SEC + 1])),
            _ => json!(1 + dice.below(60) as u64),
        },
        Kind::Flag => json!(dice.below(2) == 1),
        Kind::Options => {
            let key = dice.one(&["routing_engine", "lmc", "guid", "log-flags"]);
            json!({ key: dice.one(&["updn", "a b", "a#b", " a"]) })
        }
        Kind::Number { min, max } => {
            json!(dice.one(&[*min, *min + 1, *max, *max, min.saturating_sub(1), max + 1]))
        }
        Kind::Numbers { min, max } => match dice.below(3) {
            0 => json!([min, max]),
            1 => json!([]),
            _ => json!(dice.one(&[*min, *max, min.saturating_sub(1), max + 1])),
        },
        Kind::Vfs => match dice.below(3) {
            0 => json!(dice.one(&["8-15", " 3 - 5 ", "5-3", "7", ""])),
            _ => json!(dice.one(&[0_i64, 1, 65_534, 65_535])),
        },
        Kind::Word(name) => word(spelling::of(name).0, dice),
        Kind::OneOrMore(name) if dice.below(2) == 0 => word(spelling::of(name).0, dice),
        Kind::Words(name) | Kind::OneOrMore(name) => {
            (0..dice.below(3)).map(|_| word(spelling::of(name).0, dice)).collect()
        }
        Kind::Settings => {
            let names = ["NUM_OF_VFS", "LINK_TYPE_P1", "A[3]", "a", "LINK_TYPE", "A["];
            let values = [json!(true), json!(8), json!("IB"), json!(-1), json!("a b"), json!([])];
            let mut few =
                |n| dice.one(&[0, 0, 0, 1, 1, 2, 2, n, n + 1, n + 2].map(|at: usize| at % 6));
            (0..2).map(|_| (names[few(3)].to_owned(), values[few(3)].clone())).collect()
        }
        Kind::Tables(keys) => (0..dice.one(&[1, 1, 2, 0])).map(|_| row(keys, dice)).collect(),
    }
}

/// Keys that say what a table is about: mostly one of them is given, and well.
const SELECTORS: [&str; 13] = [
    "netdev",
    "pci",
    "port-guid",
    "node-guid",
    "rdma",
    "match.name",
    "match.port-guid",
    "match.pci",
    "domain",
    "unit",
    "index",
    "pkey",
    "vfs",
];

/// A table of a list.
fn row(keys: &[Key], dice: &mut Dice<'_>) -> Json {
    let (about, other): (Vec<&Key>, Vec<&Key>) =
        keys.iter().partition(|key| SELECTORS.contains(&key.path));
    let mut table = Map::new();
    for key in other.into_iter().filter(|_| dice_roll(dice, 4)).collect::<Vec<_>>() {
        insert(&mut table, key.path, value(&key.kind, dice));
    }
    let mut about: Vec<&Key> = about;
    // Of a PF the number of VFs too.
    if let Some(at) = about.iter().position(|key| key.path == "vfs")
        && !dice_roll(dice, 8)
    {
        let vfs = about.remove(at);
        insert(&mut table, vfs.path, json!(dice.one(&[0, 1, 1, 4])));
    }
    for _ in 0..dice.one(&[1, 1, 1, 1, 0, 2]) {
        let key = dice.one(&about);
        let good = match &key.kind {
            Kind::Word(word) | Kind::OneOrMore(word) if !dice_roll(dice, 6) => {
                json!(spelling::of(word).0)
            }
            kind => value(kind, dice),
        };
        insert(&mut table, key.path, good);
    }
    Json::Object(table)
}

fn insert(table: &mut Map<String, Json>, path: &str, value: Json) {
    match path.split_once('.') {
        None => drop(table.insert(path.to_owned(), value)),
        Some((section, rest)) => {
            let inner = table.entry(section).or_insert_with(|| json!({}));
            insert(inner.as_object_mut().expect("a section"), rest, value);
        }
    }
}

/// A document with about one in `few` of the keys.
fn document(few: usize, dice: &mut Dice<'_>) -> Json {
    let mut table = Map::new();
    for key in KEYS.iter().filter(|_| dice_roll(dice, few)).collect::<Vec<_>>() {
        insert(&mut table, key.path, value(&key.kind, dice));
    }
    Json::Object(table)
}

fn dice_roll(dice: &mut Dice<'_>, few: usize) -> bool {
    dice.below(few) == 0
}

fn toml(value: &Json) -> String {
    match value {
        Json::Object(table) => {
            let fields: Vec<String> =
                table.iter().map(|(key, value)| format!("{key:?} = {}", toml(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Json::Array(list) => {
            format!("[{}]", list.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// What no schema can say: it is between tables or between numbers, or of templates,
/// patterns and ranges as a whole.
const UNSAID: &str = concat!(
    // A time span's unit and range; integers are said.
    r#"(timeout|stable)": ".*(is not a time span|[a-z] is out of range|0 is out of range)"#,
    // Between keys of one section, and between tables.
    "|is longer than boot.timeout|is not shorter than wait-online|another program creates|port.rdma-name|two RDMA devices would|that the kernel gives by itself|modules.load and in modules.exclude",
    "|described twice|listed twice|given twice|two interfaces have the same name|one interface has two names",
    "|is not a guest|comes after itself|VFs beside auto",
    // The names of firmware settings, and what else is said of their adapter.
    "|is a setting of a port|names one adapter twice|is given two different values",
    "|that the configuration does not expect|than its firmware is set to allow|has no effect beside",
    // What a row or a table in it has from elsewhere.
    "|partition.name is for one interface|too large for datagram mode",
    "|no source for the|PF does not have|two exceptions|have one GUID|would have the GUID",
    "|have one (netdev|RDMA device) name|(netdev|RDMA device) name of VF|name for VF|of two PFs",
    "|site number|host.site is not set|the same GUID",
    // Between a table and a section.
    r"|two \[\[(rxe|subnet-manager)\]\] have|boot.ignore names|is in boot.ignore and in a|is an IPoIB interface|is a soft RoCE device|modules.exclude names",
    // The order of two ends, what widths make together, what a pattern's brackets mean.
    "|pf[.](guid|vf-name|vf-rdma-name)|pf.vf.index|is not a name pattern",
    "|does not fit in [{]|all-zero GUID|is not a libvirt connection|is in health.tolerate and|cannot be given to a network device",
);

/// What the program says of this document that a schema could have said; `None`: it is
/// good.
fn judged(text: &str) -> Option<Vec<String>> {
    let problems = loaded(&[text]).err()?.told();
    let said = problems.iter().map(|problem| {
        let label = problem.places.first().map(|place| place.label.as_str());
        format!("{}: {}", Json::from(problem.message.as_str()), Json::from(label))
    });
    let unsaid = Regex::new(UNSAID).unwrap_or_else(|e| panic!("{e}"));
    Some(said.filter(|said| !unsaid.is_match(said)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_schema_accepts_what_the_program_accepts(
        numbers in proptest::collection::vec(any::<u32>(), 20..200),
    ) {
        thread_local! { static CHECK: (Validator, Json) = (Validator::default(), schema()); }
        let mut dice = Dice(numbers.iter());
        let document = document(8, &mut dice);
        let text: String = document
            .as_object()
            .expect("a table")
            .iter()
            .map(|(key, value)| format!("{key} = {}\n", toml(value)))
            .collect();
        let fits = CHECK.with(|(validator, schema)| validator.fits(schema, &document));
        match judged(&text) {
            None => prop_assert!(fits, "only the schema refuses\n{}", text),
            Some(said) if fits => {
                prop_assert!(said.is_empty(), "only the program refuses\n{}{:#?}", text, said);
            }
            Some(_) => {}
        }
    }
}

#[test]
fn the_validator_tells_good_from_bad() {
    let validator = Validator::default();
    let fits = |document: Json| validator.fits(&schema(), &document);
    assert!(fits(json!({})));
    assert!(fits(json!({"port": [{"pci": ["4b:00.0"], "required": false}]})));
    for bad in [
        json!({"x": 1}),
        json!({"boot": {"timeout": "soon!"}}),
        json!({"boot": {"timeout": 0}}),
        json!({"port": [{}]}),
        json!({"port": [{"pci": "4b:00.0", "rdma": "mlx5_0"}]}),
        json!({"port": [{"pci": []}]}),
        json!({"host": {"number": 1, "number-file": "/x"}}),
        json!({"interface": [{"match": {"name": "ib0"}, "name": "ib1"}]}),
        json!({"interface": [{"match": {"name": "ib0"}, "mode": "datagram", "mtu": 65520}]}),
        json!({"pf": [{"rdma": "mlx5_0", "vfs": 1, "guid": {"offset": 1, "list": []}}]}),
        json!({"guest": [{"unit": "a.service", "ready": "agent"}]}),
    ] {
        assert!(!fits(bad.clone()), "{bad}");
    }
}
