//! The JSON schema of a configuration file, `docs/ibprov.schema.json`: made from the table of keys.

pub(super) mod spelling;

use serde_json::{Map, Value as Json, json};

use self::spelling::any_case;
use super::keys::{
    HOST_NUMBER, HOST_NUMBER_FILE, KEYS, Key, Kind, OWN_OPTIONS, Word, firmware, guest, interface,
    partition, pf, port, rxe, subnet_manager, vf,
};
use super::timespan::LONGEST_SEC;
use crate::names::Mode;

/// The schema (draft 2020-12), for editors.
pub(super) fn schema() -> Json {
    let mut schema = object("", KEYS);
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".into(), "ibprov.toml".into());
    Json::Object(schema)
}

/// An object with these keys, the tables of the list `path`; dots make objects inside it.
fn object(path: &str, keys: &[Key]) -> Map<String, Json> {
    let mut properties = Map::new();
    for key in keys {
        insert(&mut properties, key.path, describe(path, key));
    }
    let mut object = Map::new();
    object.insert("type".into(), "object".into());
    object.insert("additionalProperties".into(), false.into());
    object.insert("properties".into(), Json::Object(properties));
    let bounds = bounds(path);
    if !bounds.is_empty() {
        object.insert("allOf".into(), bounds.into());
    }
    object
}

/// What holds between the keys of one table, as far as a schema can say it. What stands in
/// several tables or files, what numbers of GUIDs make together, and names that may stand
/// once only are for `ibprov config check`.
fn bounds(path: &str) -> Vec<Json> {
    let mtu_fits_mode = || {
        json!({
            "if": {"required": ["mode"], "properties": {"mode": word("datagram")}},
            "then": {"properties": {"mtu": {"maximum": Mode::Datagram.largest_mtu(true)}}},
        })
    };
    match path {
        "" => vec![not_both(&HOST_NUMBER, &HOST_NUMBER_FILE)],
        "port" => vec![
            of("oneOf", &[&port::PCI, &port::PORT_GUID, &port::RDMA]),
            not_both(&port::PORT_GUID, &port::PORT),
            not_both(&port::TYPE, &port::LINK_LAYER),
            json!({"if": given(&port::TYPE), "then": given(&port::PCI)}),
            json!({
                "if": {
                    "required": [&*port::LINK_LAYER],
                    "properties": {&*port::LINK_LAYER: word("ethernet")},
                },
                "then": {"not": given(&port::PORT_GUID)},
            }),
            json!({
                "if": {"anyOf": [
                    {
                        "required": [&*port::LINK_LAYER],
                        "properties": {&*port::LINK_LAYER: word("ethernet")},
                    },
                    {"required": [&*port::TYPE], "properties": {&*port::TYPE: word("eth")}},
                ]},
                "then": {"properties": {&*port::PKEYS: {"maxItems": 0}}},
            }),
        ],
        "interface" => vec![
            of(
                "oneOf",
                &[&interface::MATCH_NAME, &interface::MATCH_PORT_GUID, &interface::MATCH_PCI],
            ),
            json!({"if": given(&interface::MATCH_PORT), "then": given(&interface::MATCH_PCI)}),
            not_both(&interface::NAME, &interface::MATCH_NAME),
            json!({
                "if": given(&interface::NAME),
                "then": {"properties": {"match": {"properties": {
                    "pci": {"maxItems": 1}, "port-guid": {"maxItems": 1},
                }}}},
            }),
            mtu_fits_mode(),
        ],
        "interface.partition" => vec![given(&partition::PKEY), mtu_fits_mode()],
        "pf" => {
            let lists = [&*pf::VFS, &pf::GUID_LIST, &pf::GUID_NODE_LIST, &pf::GUID_PORT_LIST];
            vec![
                of("oneOf", &[&pf::PCI_ADDRESS, &pf::PORT_GUID, &pf::NODE_GUID, &pf::RDMA_NAME]),
                of("anyOf", &lists),
                // All of one kind, or one for node and one for port.
                json!({"properties": {"guid": {
                    "anyOf": [
                        {"maxProperties": 1},
                        {"required": ["node", "port"], "maxProperties": 2},
                    ],
                    "properties": {"node": {"maxProperties": 1}, "port": {"maxProperties": 1}},
                }}}),
            ]
        }
        "pf.vf" => vec![given(&vf::INDEX)],
        "firmware" => vec![given(&firmware::PCI), given(&firmware::SET)],
        "rxe" => vec![given(&rxe::NAME), given(&rxe::NETDEV)],
        "subnet-manager" => {
            vec![given(&subnet_manager::PORT_GUID), given(&subnet_manager::PRIORITY)]
        }
        "guest" => vec![
            of("oneOf", &[&guest::DOMAIN, &guest::UNIT]),
            json!({
                "if": given(&guest::UNIT),
                "then": {"properties": {
                    "ready": word("running"),
                    "vfs": {"items": {"not": {"const": "auto"}}},
                }},
            }),
        ],
        _ => Vec::new(),
    }
}

/// The value is this one of a few words.
fn word(word: &str) -> Json {
    json!({"pattern": format!("^{}$", any_case(word))})
}

/// The key is given; dots lead through objects.
fn given(key: &str) -> Json {
    match key.split_once('.') {
        Some((section, rest)) => {
            json!({"required": [section], "properties": {section: given(rest)}})
        }
        None => json!({"required": [key]}),
    }
}

/// `how` many of these keys are given: `oneOf` or `anyOf`.
fn of(how: &str, keys: &[&str]) -> Json {
    json!({how: keys.iter().map(|key| given(key)).collect::<Vec<_>>()})
}

fn not_both(one: &str, other: &str) -> Json {
    json!({"not": {"allOf": [given(one), given(other)]}})
}

fn insert(properties: &mut Map<String, Json>, path: &str, leaf: Json) {
    let Some((section, rest)) = path.split_once('.') else {
        properties.insert(path.to_owned(), leaf);
        return;
    };
    let section = properties.entry(section).or_insert_with(
        || json!({"type": "object", "additionalProperties": false, "properties": {}}),
    );
    if let Some(Json::Object(inner)) = section.get_mut("properties") {
        insert(inner, rest, leaf);
    }
}

/// Numbers with units, a blank between two numbers.
const SPAN: &str = "^\\s*[0-9]+(\\s*[a-z]+\\s*[0-9]+|\\s+[0-9]+)*\\s*[a-z]*\\s*$";

/// As [`crate::names::FirmwareName`] has it.
const FIRMWARE_NAME: &str = "^[A-Z][A-Z0-9_]{0,63}(\\[[0-9]{1,4}\\])?$";

fn describe(above: &str, key: &Key) -> Json {
    let string = |word: &Word| {
        let (example, spelling) = spelling::of(word);
        match spelling.pattern() {
            None => json!({"type": "string", "examples": [example]}),
            Some(pattern) => json!({"type": "string", "pattern": pattern, "examples": [example]}),
        }
    };
    let mut schema = match &key.kind {
        // Units and range are checked by ibprov: a pattern for all of systemd's
        // spellings would only repeat them badly.
        Kind::Span => json!({"anyOf": [
            {"type": "integer", "minimum": 1, "maximum": LONGEST_SEC},
            {"type": "string", "pattern": SPAN},
        ]}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Number { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Numbers { min, max } => {
            let number = json!({"type": "integer", "minimum": min, "maximum": max});
            json!({"anyOf": [number, {"type": "array", "minItems": 1, "items": number}]})
        }
        Kind::Vfs => json!({"anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 65534},
            {"type": "string", "pattern": "^ *[0-9]+ *(- *[0-9]+ *)?$"},
        ]}),
        Kind::Options => json!({
            "type": "object",
            "propertyNames": {"pattern": "^[a-z0-9_]{1,64}$", "not": {"enum": OWN_OPTIONS}},
            "additionalProperties": {"anyOf": [
                {"type": "integer"},
                {"type": "boolean"},
                {"type": "string", "pattern": "^[!-\"$-~]([ -\"$-~]{0,498}[!-\"$-~])?$"},
            ]},
        }),
        Kind::Word(word) => string(word),
        Kind::Words(word) => json!({"type": "array", "items": string(word)}),
        Kind::OneOrMore(word) => json!({"anyOf": [
            string(word),
            {"type": "array", "minItems": 1, "items": string(word)},
        ]}),
        Kind::Settings => json!({
            "type": "object",
            "propertyNames": {"pattern": FIRMWARE_NAME},
            "additionalProperties": {"anyOf": [
                {"type": "boolean"},
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": "^[A-Za-z0-9_.]{1,64}$"},
            ]},
        }),
        Kind::Tables(keys) => {
            let path = match above {
                "" => key.path.to_owned(),
                _ => format!("{above}.{}", key.path),
            };
            json!({"type": "array", "items": object(&path, keys)})
        }
    };
    if let Json::Object(schema) = &mut schema {
        schema.insert("description".into(), key.doc.into());
        if let Ok(default) = toml::de::DeValue::parse(key.default)
            && let Some(default) = default_json(default.get_ref())
        {
            schema.insert("default".into(), default);
        }
    }
    schema
}

fn default_json(value: &toml::de::DeValue<'_>) -> Option<Json> {
    use toml::de::DeValue;
    match value {
        DeValue::String(text) => Some(text.as_ref().into()),
        DeValue::Boolean(flag) => Some((*flag).into()),
        DeValue::Array(items) => items.iter().map(|item| default_json(item.get_ref())).collect(),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

#[test]
fn the_published_schema_is_current() {
    expect_test::expect_file!["../../docs/ibprov.schema.json"]
        .assert_eq(&format!("{:#}\n", schema()));
}
