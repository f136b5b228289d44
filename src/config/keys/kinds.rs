//! What a key is, and what it may hold.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use crate::config::timespan::{self, TimeSpan};
use crate::names::{BadText, FirmwareValue, VfIndex, VfRange, Words, shown};

/// One key: where it stands, what it holds, what it means.
#[derive(Debug)]
pub(crate) struct Key {
    /// As written with dots; for a key of a list's tables, its name there.
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
    /// The default as TOML; empty if there is none.
    pub(crate) default: &'static str,
    /// What the published schema says of it.
    #[cfg(test)]
    pub(crate) doc: &'static str,
    /// The value is of the type by which the key is read.
    #[cfg(test)]
    pub(crate) holds: fn(&Value) -> bool,
}

/// One value of a configuration file, already of its type.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    typed: Arc<dyn Any + Send + Sync>,
    /// As it stands in JSON and, since no name needs escaping, in TOML.
    pub(crate) json: Json,
}

impl Value {
    pub(crate) fn new(typed: impl Any + Send + Sync, json: impl Into<Json>) -> Self {
        Self { typed: Arc::new(typed), json: json.into() }
    }

    /// A value that is written as a string, as it is displayed.
    pub(crate) fn text(typed: impl Any + Send + Sync + Display) -> Self {
        let json = typed.to_string();
        Self::new(typed, json)
    }

    /// The value, if it is of this type.
    pub(crate) fn get<T: Any + Clone>(&self) -> Option<T> {
        self.typed.downcast_ref().cloned()
    }
}

/// What stands for the type of a list of tables, whose own keys are typed.
#[derive(Debug, Clone)]
pub(crate) struct Tables;

/// What stands for the type of a table whose keys are names of another program.
#[derive(Debug, Clone)]
pub(crate) struct Settings;

/// The path of a key, by which values are read as `T`.
#[derive(Debug)]
pub(crate) struct Name<T>(&'static str, PhantomData<fn() -> T>);

impl<T> Name<T> {
    pub(crate) const fn new(path: &'static str) -> Self {
        Self(path, PhantomData)
    }

    pub(crate) const fn path(&self) -> &'static str {
        self.0
    }
}

impl<T> Clone for Name<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Name<T> {}

impl<T> Deref for Name<T> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

/// What a key may hold.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A time span, from 1 s to [`timespan::LONGEST_SEC`].
    Span,
    Flag,
    Number {
        min: i64,
        max: i64,
    },
    /// Such a number, or a list of at least one.
    Numbers {
        min: i64,
        max: i64,
    },
    /// VFs: an index, or the first and the last as a string.
    Vfs,
    /// A string of one kind of name.
    Word(&'static Word),
    /// A list of such strings.
    Words(&'static Word),
    /// Such a string, or a list of at least one.
    OneOrMore(&'static Word),
    /// A table of firmware settings, by their names.
    Settings,
    /// A table of keys of opensm.conf and their values, as opensm reads them.
    Options,
    /// A list of tables with these keys.
    Tables(&'static [Key]),
}

/// A kind of name that is written as a string.
#[derive(Debug)]
pub(crate) struct Word {
    /// With its article, for "want a ...".
    pub(crate) what: &'static str,
    /// The door to the type.
    pub(crate) parse: fn(&Word, &str) -> Result<Value, String>,
}

impl Word {
    /// Reads `text` as this kind of name.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        (self.parse)(self, text)
    }
}

/// A name with a parser of its own, which says what is wrong.
pub(super) const fn text<T>(what: &'static str) -> Word
where
    T: FromStr<Err: Display> + Display + Any + Send + Sync,
{
    let parse =
        |_: &Word, text: &str| text.parse::<T>().map(Value::text).map_err(|e| e.to_string());
    Word { what, parse }
}

/// One of a few words.
pub(super) const fn one_of<T: Words + Send + Sync>(what: &'static str) -> Word {
    let parse =
        |_: &Word, text: &str| word::<T>(text).ok_or_else(|| format!("expected {}", T::quoted()));
    Word { what, parse }
}

/// One of a few words; an error says what it is not.
pub(super) const fn named<T: Words + Send + Sync>(what: &'static str) -> Word {
    let parse = |of: &Word, text: &str| {
        let why = || format!("{} is not {}: expected {}", shown(text), of.what, T::quoted());
        word::<T>(text).ok_or_else(why)
    };
    Word { what, parse }
}

pub(super) fn word<T: Words + Send + Sync>(text: &str) -> Option<Value> {
    // Tools print some with capitals: Connected, NDR.
    let value = T::from_typed(text).or_else(|| T::from_typed(&text.to_ascii_lowercase()))?;
    Some(Value::new(value, value.typed()))
}

impl Kind {
    /// Reads a single value of this kind.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub(crate) fn read(&self, given: &DeValue<'_>) -> Result<Value, String> {
        match (self, given) {
            (Self::Span, DeValue::String(text)) => {
                let span = timespan::parse(text)
                    .ok_or_else(|| format!("{} is not a time span: {}", shown(text), SPAN_FORMS))?;
                in_range(span)
            }
            (Self::Span, DeValue::Integer(number)) => {
                let seconds = integer(number)?;
                let span = u64::try_from(seconds).map(Duration::from_secs);
                in_range(span.map_err(|_| range_text(&seconds.to_string()))?)
            }
            (Self::Flag, DeValue::Boolean(flag)) => Ok(Value::new(*flag, *flag)),
            (Self::Number { min, max } | Self::Numbers { min, max }, DeValue::Integer(number)) => {
                let number = integer(number)?;
                if (min..=max).contains(&&number) {
                    Ok(Value::new(number, number))
                } else {
                    Err(format!("{number} is out of range: expected {min} to {max}"))
                }
            }
            (
                Self::Word(word) | Self::Words(word) | Self::OneOrMore(word),
                DeValue::String(text),
            ) => word.read(text),
            (Self::Vfs, DeValue::String(text)) => {
                let range = text.parse().map_err(|e: BadText| e.to_string())?;
                Ok(vfs(range))
            }
            (Self::Vfs, DeValue::Integer(number)) => {
                let number = integer(number)?;
                let index = u16::try_from(number).ok().and_then(VfIndex::new);
                let index =
                    index.ok_or_else(|| format!("{number} is out of range: expected 0 to 65534"));
                index.map(|index| vfs(VfRange::one(index)))
            }
            (Self::Options, DeValue::Table(table)) => {
                let option = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
                    let value = option(key.get_ref(), value.get_ref())?;
                    Ok::<_, String>((key.get_ref().to_string(), value))
                };
                let options = table.iter().map(option).collect::<Result<BTreeMap<_, _>, _>>()?;
                let json: serde_json::Map<_, _> =
                    options.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect();
                Ok(Value::new(options, json))
            }
            _ => Err(format!("expected {}, got {}", self.wanted(), type_name(given))),
        }
    }
    /// What is wanted, with its article.
    pub(crate) fn wanted(&self) -> String {
        let string = |word: &Word| format!("a string with {}", word.what);
        match self {
            Self::Span => "a time span such as \"4min\", or a whole number of seconds".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Number { .. } => "a whole number".to_owned(),
            Self::Numbers { .. } => "a whole number, or a list of such numbers".to_owned(),
            Self::Word(word) | Self::Words(word) => string(word),
            Self::OneOrMore(word) => format!("{}, or a list of such strings", string(word)),
            Self::Vfs => "a VF index, or a string with the first and the last".to_owned(),
            Self::Settings | Self::Options | Self::Tables(_) => "a table".to_owned(),
        }
    }
}

/// Reads the value of a firmware setting.
///
/// # Errors
/// Why it is none, for people.
pub(crate) fn setting(given: &DeValue<'_>) -> Result<Value, String> {
    match given {
        DeValue::Boolean(flag) => Ok(Value::new(FirmwareValue::Flag(*flag), *flag)),
        DeValue::Integer(number) => {
            let number = integer(number)?;
            let value = u64::try_from(number);
            let value =
                value.map_err(|_| format!("{number} is out of range: expected 0 or more"))?;
            Ok(Value::new(FirmwareValue::Number(value), number))
        }
        DeValue::String(text) => Ok(Value::new(FirmwareValue::word(text)?, text.as_ref())),
        other => Err(format!(
            "expected true or false, a whole number or a string, got {}",
            type_name(other)
        )),
    }
}

/// One VF is written as a number.
fn vfs(range: VfRange) -> Value {
    if range.is_one() { Value::new(range, range.first().get()) } else { Value::text(range) }
}

/// The keys of opensm.conf that are written from other keys of the entry, or that the unit
/// depends on.
pub(crate) const OWN_OPTIONS: [&str; 7] = [
    "guid",
    "sm_priority",
    "partition_config_file",
    "log_file",
    "dump_files_dir",
    "daemon",
    "console",
];

/// The value of the key `key` of opensm.conf, as it is written there.
fn option(key: &str, value: &DeValue<'_>) -> Result<String, String> {
    let is_key = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if key.is_empty() || key.len() > 64 || !key.bytes().all(is_key) {
        return Err(format!("{} is not a key of opensm.conf", shown(key)));
    }
    if OWN_OPTIONS.contains(&key) {
        return Err(format!(
            "{key} is not for options: ibprov writes it from port-guid, priority and partitions, or as its unit needs it"
        ));
    }
    let text = match value {
        DeValue::Boolean(flag) => if *flag { "TRUE" } else { "FALSE" }.to_owned(),
        DeValue::Integer(number) => integer(number)?.to_string(),
        DeValue::String(text) => text.to_string(),
        other => return Err(format!("{key}: expected a string, got {}", type_name(other))),
    };
    // opensm cuts a line at '#' and after 1022 bytes.
    let is_good = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'#';
    if text.trim() == text && (1..=500).contains(&text.len()) && text.bytes().all(is_good) {
        Ok(text)
    } else {
        Err(format!(
            "{key}: {} cannot be written into opensm.conf: expected up to 500 printable ASCII characters without '#', not empty and without a blank at either end",
            shown(&text)
        ))
    }
}

const SPAN_FORMS: &str =
    "write it like \"240s\", \"4min\" or \"2min 30s\", or as a whole number of seconds";

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(timespan::LONGEST_SEC);

fn in_range(span: Duration) -> Result<Value, String> {
    if (SHORTEST..=LONGEST).contains(&span) {
        Ok(Value::new(span, TimeSpan(span).to_string()))
    } else {
        Err(range_text(&TimeSpan(span).to_string()))
    }
}

fn range_text(given: &str) -> String {
    let [shortest, longest] = [SHORTEST, LONGEST].map(TimeSpan);
    format!("{given} is out of range: expected {shortest} to {longest}")
}

fn integer(number: &toml::de::DeInteger<'_>) -> Result<i64, String> {
    i64::from_str_radix(number.as_str(), number.radix())
        .map_err(|_| "the number is larger than any that could be meant".to_owned())
}

/// A TOML type with its article.
pub(crate) fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
