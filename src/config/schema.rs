//! The JSON schema of a configuration file, made from the table of keys.

use serde_json::{Map, Value as Json, json};

use super::keys::{KEYS, Key, Kind, Word};

/// The schema (draft 2020-12), for editors.
#[must_use]
pub fn schema() -> Json {
    let mut schema = object(KEYS);
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".into(), "ibprov.toml".into());
    Json::Object(schema)
}

/// An object with these keys; dots make objects inside it.
fn object(keys: &[Key]) -> Map<String, Json> {
    let mut properties = Map::new();
    for key in keys {
        insert(&mut properties, key.path, describe(key));
    }
    let mut object = Map::new();
    object.insert("type".into(), "object".into());
    object.insert("additionalProperties".into(), false.into());
    object.insert("properties".into(), Json::Object(properties));
    object
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

fn describe(key: &Key) -> Json {
    let string = |word: &Word| match word.spelling.pattern() {
        None => json!({"type": "string", "examples": [word.example]}),
        Some(pattern) => json!({"type": "string", "pattern": pattern, "examples": [word.example]}),
    };
    let mut schema = match &key.kind {
        // The units are checked by ibprov; a pattern for all of systemd's
        // spellings would only repeat them badly.
        Kind::Span { min, max } => json!({"anyOf": [
            {"type": "integer", "minimum": min, "maximum": max},
            {"type": "string", "pattern": "^ *[0-9]+ *[a-z]*( *[0-9]+ *[a-z]+)* *$"},
        ]}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Number { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Vfs => json!({"anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 65534},
            {"type": "string", "pattern": "^[0-9]+( *- *[0-9]+)?$"},
        ]}),
        Kind::Word(word) => string(word),
        Kind::Words(word) => json!({"type": "array", "items": string(word)}),
        Kind::OneOrMore(word) => json!({"anyOf": [
            string(word),
            {"type": "array", "minItems": 1, "items": string(word)},
        ]}),
        Kind::Tables(keys) => json!({"type": "array", "items": object(keys)}),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_current() {
        expect_test::expect_file!["../../docs/ibprov.schema.json"]
            .assert_eq(&format!("{:#}\n", schema()));
    }
}
