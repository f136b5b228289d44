use std::time::Duration;

use toml::de::DeValue;

use super::keys::{Kind, Word};
use super::timespan::{self, TimeSpan};
use crate::names::{
    Connection, DomainName, GuestVf, Guid, GuidRange, IfName, IfPattern, Mode, ModuleName,
    NameRule, OnFailure, PKey, PciAddress, Policy, RdmaName, Ready, Rung, Template, UnitName,
    VfDriver, VfIndex, VfRange,
};

/// One value of a configuration file, already of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Span(Duration),
    Flag(bool),
    Number(i64),
    Module(ModuleName),
    Pci(PciAddress),
    Guid(Guid),
    Rdma(RdmaName),
    Domain(DomainName),
    Unit(UnitName),
    GuestVf(GuestVf),
    OnFailure(OnFailure),
    Ready(Ready),
    Connection(Connection),
    IfName(IfName),
    IfPattern(IfPattern),
    Mode(Mode),
    PKey(PKey),
    Rung(Rung),
    GuidRange(GuidRange),
    Template(Template),
    Policy(Policy),
    Driver(VfDriver),
    NameRule(NameRule),
    Path(String),
    Vfs(VfRange),
}

impl Value {
    /// As it stands in JSON and, since no name needs escaping, in TOML.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Span(span) => TimeSpan(*span).to_string().into(),
            Self::Flag(flag) => (*flag).into(),
            Self::Number(number) => (*number).into(),
            Self::Module(name) => name.as_str().into(),
            Self::Pci(address) => address.to_string().into(),
            Self::Guid(guid) => guid.to_string().into(),
            Self::Rdma(name) => name.as_str().into(),
            Self::Domain(name) => name.as_str().into(),
            Self::Unit(name) => name.as_str().into(),
            Self::GuestVf(vf) => vf.to_string().into(),
            Self::OnFailure(what) => what.word().into(),
            Self::Ready(what) => what.word().into(),
            Self::Connection(uri) => uri.as_str().into(),
            Self::IfName(name) => name.as_str().into(),
            Self::IfPattern(pattern) => pattern.as_str().into(),
            Self::Mode(mode) => mode.word().into(),
            Self::PKey(pkey) => pkey.to_string().into(),
            Self::Rung(rung) => rung.word().into(),
            Self::GuidRange(range) => range.to_string().into(),
            Self::Template(template) => template.to_string().into(),
            Self::Policy(policy) => policy.to_string().into(),
            Self::Driver(driver) => driver.to_string().into(),
            Self::NameRule(rule) => rule.to_string().into(),
            Self::Path(path) => path.as_str().into(),
            Self::Vfs(range) if range.is_one() => range.first().get().into(),
            Self::Vfs(range) => range.to_string().into(),
        }
    }

    /// Reads a single value of this kind.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub(crate) fn read(kind: &Kind, given: &DeValue<'_>) -> Result<Self, String> {
        match (kind, given) {
            (Kind::Span { min, max }, DeValue::String(text)) => {
                let span = timespan::parse(text)
                    .ok_or_else(|| format!("{} is not a time span: {}", quote(text), SPAN_FORMS))?;
                in_range(span, *min, *max)
            }
            (Kind::Span { min, max }, DeValue::Integer(number)) => {
                let seconds = integer(number)?;
                let span = u64::try_from(seconds).map(Duration::from_secs);
                in_range(
                    span.map_err(|_| range_text(&seconds.to_string(), *min, *max))?,
                    *min,
                    *max,
                )
            }
            (Kind::Flag, DeValue::Boolean(flag)) => Ok(Self::Flag(*flag)),
            (Kind::Number { min, max }, DeValue::Integer(number)) => {
                let number = integer(number)?;
                if (min..=max).contains(&&number) {
                    Ok(Self::Number(number))
                } else {
                    Err(format!("{number} is out of range: want {min} to {max}"))
                }
            }
            (Kind::Word(word) | Kind::Words(word), DeValue::String(text)) => (word.parse)(text),
            (Kind::Vfs, DeValue::String(text)) => {
                text.parse().map(Self::Vfs).map_err(|e: crate::names::VfRangeError| e.to_string())
            }
            (Kind::Vfs, DeValue::Integer(number)) => {
                let number = integer(number)?;
                let index = u16::try_from(number).ok().and_then(VfIndex::new);
                let index =
                    index.ok_or_else(|| format!("{number} is out of range: want 0 to 65534"));
                index.map(|index| Self::Vfs(VfRange::one(index)))
            }
            _ => Err(format!("want {}, got {}", wanted(kind), type_name(given))),
        }
    }
}

const SPAN_FORMS: &str =
    "write it like \"240s\", \"4min\" or \"2min 30s\", or as a whole number of seconds";

fn in_range(span: Duration, min: u64, max: u64) -> Result<Value, String> {
    if (Duration::from_secs(min)..=Duration::from_secs(max)).contains(&span) {
        Ok(Value::Span(span))
    } else {
        Err(range_text(&TimeSpan(span).to_string(), min, max))
    }
}

fn range_text(given: &str, min: u64, max: u64) -> String {
    let [min, max] = [min, max].map(|s| TimeSpan(Duration::from_secs(s)));
    format!("{given} is out of range: want {min} to {max}")
}

fn integer(number: &toml::de::DeInteger<'_>) -> Result<i64, String> {
    i64::from_str_radix(number.as_str(), number.radix())
        .map_err(|_| "the number is larger than any that could be meant".to_owned())
}

fn quote(text: &str) -> String {
    format!("{:?}", text.chars().take(64).collect::<String>())
}

/// What a kind wants, with its article.
pub(crate) fn wanted(kind: &Kind) -> String {
    let string = |word: &Word| format!("a string with {}", word.what);
    match kind {
        Kind::Span { .. } => {
            "a time span such as \"4min\", or a whole number of seconds".to_owned()
        }
        Kind::Flag => "true or false".to_owned(),
        Kind::Number { .. } => "a whole number".to_owned(),
        Kind::Word(word) | Kind::Words(word) => string(word),
        Kind::Vfs => "a VF index, or a string with the first and the last".to_owned(),
        Kind::Tables(_) => "a table".to_owned(),
    }
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

/// Takes the Rust type out of a [`Value`]; `None` if it holds another.
pub(crate) trait FromValue: Sized {
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($variant:ident => $type:ty),+ $(,)?) => {$(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                if let Value::$variant(inner) = value { Some(inner.clone()) } else { None }
            }
        }
    )+};
}

from_value! {
    Span => Duration,
    Flag => bool,
    Number => i64,
    Module => ModuleName,
    Pci => PciAddress,
    Guid => Guid,
    Rdma => RdmaName,
    Domain => DomainName,
    Unit => UnitName,
    GuestVf => GuestVf,
    OnFailure => OnFailure,
    Ready => Ready,
    Connection => Connection,
    IfName => IfName,
    IfPattern => IfPattern,
    Mode => Mode,
    PKey => PKey,
    Rung => Rung,
    GuidRange => GuidRange,
    Template => Template,
    Policy => Policy,
    Driver => VfDriver,
    NameRule => NameRule,
    Path => String,
    Vfs => VfRange,
}
