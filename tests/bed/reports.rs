//! The JSON reports of ibprov, held against their published schemas. Strict: a key that no
//! schema has is a fault, although readers of a report pass over it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

/// Asserts that `report` is as its schema has it.
///
/// # Panics
/// When it is not, or is no report.
pub(crate) fn assert_valid(report: &Value) {
    assert_eq!(validate(report), Ok(()), "{report:#}");
}

/// The schema of all reports.
static REPORTS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../docs/reports.schema.json")).expect("JSON")
});

/// Why `report` is not as its schema has it.
pub(crate) fn validate(report: &Value) -> Result<(), String> {
    let name = report.get("report").and_then(Value::as_str).ok_or("it has no key `report`")?;
    let schema = REPORTS.get("$defs").and_then(|defs| defs.get(name));
    let schema = schema.ok_or_else(|| format!("{name} is not a report"))?;
    Schema { root: &REPORTS }.judge(schema, report, name).map(|_| ())
}

struct Schema<'a> {
    root: &'a Value,
}

/// The keys of an object that a schema knows.
type Known = BTreeSet<String>;

impl Schema<'_> {
    /// `value` is as `schema` has it, and has no other keys.
    fn judge(&self, schema: &Value, value: &Value, at: &str) -> Result<Known, String> {
        let known = self.fits(schema, value, at)?;
        let keys = value.as_object().map(|object| object.keys()).into_iter().flatten();
        if is_open(schema) {
            // The report of another process, passed on.
            return match value.get("report") {
                Some(Value::String(_)) => validate(value).map(|()| known),
                _ => Ok(known),
            };
        }
        match keys.into_iter().find(|key| !known.contains(*key)) {
            Some(key) => Err(format!("{at}: no schema has the key {key:?}")),
            None => Ok(known),
        }
    }

    /// The keys of `value` that `schema` knows, if it fits.
    fn fits(&self, schema: &Value, value: &Value, at: &str) -> Result<Known, String> {
        let fault = |what: &str| Err(format!("{at}: {value} {what}"));
        let schema = match schema {
            Value::Bool(true) => return Ok(all_keys(value)),
            Value::Object(schema) => schema,
            other => return fault(&format!("cannot fit {other}")),
        };
        let mut known = Known::new();
        for (keyword, wanted) in schema {
            match keyword.as_str() {
                annotation if ANNOTATIONS.contains(&annotation) => {}
                "$ref" => {
                    let path = wanted.as_str().unwrap_or_default().trim_start_matches('#');
                    let target = self.root.pointer(path).ok_or(format!("{at}: no {path}"))?;
                    known.extend(self.fits(target, value, at)?);
                }
                "type" if !has_type(wanted, value) => return fault(&format!("is no {wanted}")),
                "const" if value != wanted => return fault(&format!("is not {wanted}")),
                "enum" if !wanted.as_array().is_some_and(|list| list.contains(value)) => {
                    return fault(&format!("is none of {wanted}"));
                }
                "minimum" if value.as_f64().is_some_and(|n| Some(n) < wanted.as_f64()) => {
                    return fault(&format!("is below {wanted}"));
                }
                "maximum" if value.as_f64().is_some_and(|n| Some(n) > wanted.as_f64()) => {
                    return fault(&format!("is above {wanted}"));
                }
                "type" | "const" | "enum" | "minimum" | "maximum" | "format" => {}
                "required" => {
                    let missing = wanted.as_array().into_iter().flatten().find(|key| {
                        value.is_object() && value.get(key.as_str().unwrap_or_default()).is_none()
                    });
                    if let Some(missing) = missing {
                        return fault(&format!("has no {missing}"));
                    }
                }
                "properties" => {
                    for (key, schema) in wanted.as_object().into_iter().flatten() {
                        if let Some(value) = value.get(key) {
                            self.judge(schema, value, &format!("{at}.{key}"))?;
                            known.insert(key.clone());
                        }
                    }
                }
                // Of maps, whose keys are numbers.
                "patternProperties" | "additionalProperties" => {
                    let schemas: Vec<&Value> = match keyword.as_str() {
                        "patternProperties" => {
                            wanted.as_object().into_iter().flatten().map(|(_, s)| s).collect()
                        }
                        _ if wanted.is_object() => vec![wanted],
                        _ => Vec::new(),
                    };
                    for (key, value) in value.as_object().into_iter().flatten() {
                        for schema in &schemas {
                            self.judge(schema, value, &format!("{at}.{key}"))?;
                            known.insert(key.clone());
                        }
                    }
                }
                "items" => {
                    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.judge(wanted, item, &format!("{at}[{number}]"))?;
                    }
                }
                "prefixItems" => {
                    let schemas = wanted.as_array().into_iter().flatten();
                    let items = value.as_array().into_iter().flatten();
                    for (number, (schema, item)) in schemas.zip(items).enumerate() {
                        self.judge(schema, item, &format!("{at}[{number}]"))?;
                    }
                }
                "minItems" if items(value).is_some_and(|n| Some(n) < wanted.as_u64()) => {
                    return fault(&format!("has fewer than {wanted} items"));
                }
                "maxItems" if items(value).is_some_and(|n| Some(n) > wanted.as_u64()) => {
                    return fault(&format!("has more than {wanted} items"));
                }
                "minItems" | "maxItems" => {}
                "anyOf" | "oneOf" => {
                    let each = wanted.as_array().into_iter().flatten();
                    let tried: Vec<Result<Known, String>> =
                        each.map(|one| self.fits(one, value, at)).collect();
                    let good = tried.iter().filter(|one| one.is_ok()).count();
                    if good == 0 || keyword == "oneOf" && good > 1 {
                        let why: Vec<&String> =
                            tried.iter().filter_map(|one| one.as_ref().err()).collect();
                        return fault(&format!("fits {good} of several: {why:?}"));
                    }
                    known.extend(tried.into_iter().flatten().flatten());
                }
                "allOf" => {
                    for one in wanted.as_array().into_iter().flatten() {
                        known.extend(self.fits(one, value, at)?);
                    }
                }
                other => return fault(&format!("meets the keyword {other}, which is not known")),
            }
        }
        Ok(known)
    }
}

/// Keywords that say nothing of a value.
const ANNOTATIONS: [&str; 6] = ["$schema", "$defs", "title", "description", "default", "readOnly"];

/// Any value fits.
fn is_open(schema: &Value) -> bool {
    match schema {
        Value::Object(schema) => schema.keys().all(|key| ANNOTATIONS.contains(&key.as_str())),
        other => *other == Value::Bool(true),
    }
}

fn items(value: &Value) -> Option<u64> {
    value.as_array().and_then(|items| items.len().try_into().ok())
}

fn all_keys(value: &Value) -> Known {
    value.as_object().map(|object| object.keys().cloned().collect()).unwrap_or_default()
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    if let Some(list) = wanted.as_array() {
        return list.iter().any(|one| has_type(one, value));
    }
    match wanted.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    }
}
