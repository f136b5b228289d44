//! GUID templates: 64 bits of literal digits and numbers of stated width.
//!
//! Computed from numbers, never pasted from text: a number that does not fit
//! its field is an error, and none is ever cut.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Guid, Words as _, beginning};

/// A GUID template, `02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}`.
///
/// Hex digits stand for themselves, four bits each. `{NAME:BITS}` is a number
/// of the host, in that many bits; `{NAME:BITS:decimal}` holds its decimal
/// digits, one in each four bits (host 12 is 0x12). Colons stand between bytes
/// and mean nothing. All of it is exactly 64 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Digit(u8),
    Field(Field),
}

/// A field of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: FieldName,
    /// Its width, bits.
    pub bits: u32,
    /// How the number is written in them.
    pub base: Base,
    /// For [`FieldName::Kind`]: the number of a node GUID and that of a port
    /// GUID; 0 and 1 for the others.
    kinds: [u64; 2],
}

/// Which number a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum FieldName {
    Host,
    Site,
    Pf,
    Vf,
    /// Node or port GUID.
    Kind,
}

/// How a number is written in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    Binary,
    /// Each decimal digit in four bits.
    Decimal,
}

/// Which of a VF's GUIDs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum GuidKind {
    Node,
    Port,
    /// Of a second InfiniBand port, which VFs of mlx4 may have.
    #[strum(to_string = "port 2")]
    Port2,
}

/// The GUIDs of a VF, one of each [`GuidKind`].
pub type VfGuids = [Option<Guid>; 3];

impl GuidKind {
    /// In the order of [`VfGuids`].
    pub const ALL: [Self; 3] = [Self::Node, Self::Port, Self::Port2];
}

/// The numbers that a template is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The host's number, if it is known.
    pub host: Option<u64>,
    /// The site's number, if it is known.
    pub site: Option<u64>,
    pub pf: u64,
    pub vf: u64,
}

/// Why a template gives no GUID for these numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// The number is too large for its field.
    #[error("{name} {value} does not fit in {field}: the largest is {largest}")]
    TooLarge {
        /// What the number is, for people: "host number".
        name: &'static str,
        /// The number that was to be put in.
        value: u64,
        /// The field, as it is written.
        field: String,
        /// The largest number that fits.
        largest: u64,
    },
    /// The host's number is wanted, and not known.
    #[error("the host has no number")]
    NoHostNumber,
    /// The site's number is wanted, and not known.
    #[error("the site has no number: host.site is not set")]
    NoSite,
}

/// What is said of a field that is not understood; it may hold anything, and is printed escaped.
fn bad_field(text: &str) -> String {
    format!(
        "{{{}}} is not a field: expected {{host:BITS}}, {{site:BITS}}, {{pf:BITS}}, {{vf:BITS}} or {{kind:BITS}}, BITS from 1 to 56, and \":decimal\" after it where each decimal digit is to take 4 bits; {{kind:8:node=0,port=1}} says which number is which",
        beginning(text).escape_debug()
    )
}

impl FieldName {
    fn word(self) -> &'static str {
        self.typed()
    }

    const fn for_people(self) -> &'static str {
        match self {
            Self::Host => "host number",
            Self::Site => "site number",
            Self::Pf => "PF number",
            Self::Vf => "VF index",
            Self::Kind => "kind",
        }
    }
}

/// No text that is longer can be a template.
const LONGEST: usize = 200;

impl Field {
    fn parse(text: &str) -> Result<Self, String> {
        let bad = || bad_field(text);
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let name = FieldName::from_typed(name).ok_or_else(bad)?;
        let bits: u32 = number(words.next().ok_or_else(bad)?).ok_or_else(bad)?;
        if !(1..=56).contains(&bits) {
            return Err(bad());
        }
        let mut field = Self { name, bits, base: Base::Binary, kinds: [0, 1] };
        for word in words {
            if word == "decimal" && field.base == Base::Binary {
                field.base = Base::Decimal;
            } else if name == FieldName::Kind && word.contains('=') {
                field.kinds = kinds(word).ok_or_else(bad)?;
            } else {
                return Err(bad());
            }
        }
        if field.base == Base::Decimal && !bits.is_multiple_of(4) {
            return Err(format!(
                "{{{text}}} holds decimal digits of 4 bits each, so its width is a multiple of 4"
            ));
        }
        let [node, port] = field.kinds;
        if name == FieldName::Kind && (node == port || node.max(port) > field.largest()) {
            return Err(format!(
                "{{{text}}} needs two different numbers that fit, one for node and one for port GUIDs"
            ));
        }
        Ok(field)
    }

    /// The largest number that fits.
    pub const fn largest(self) -> u64 {
        match self.base {
            Base::Binary => (1 << self.bits) - 1,
            Base::Decimal => 10_u64.pow(self.bits / 4) - 1,
        }
    }

    /// The bits that `value` is written as.
    ///
    /// # Errors
    /// It does not fit.
    pub fn encode(self, value: u64) -> Result<u64, Misfit> {
        if value > self.largest() {
            let (name, largest) = (self.name.for_people(), self.largest());
            return Err(Misfit::TooLarge { name, value, field: self.to_string(), largest });
        }
        let digit = |at: u32| (value / 10_u64.pow(at) % 10) << (4 * at);
        Ok(match self.base {
            Base::Binary => value,
            Base::Decimal => (0..self.bits / 4).map(digit).sum(),
        })
    }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// `node=0,port=1`, in either order.
fn kinds(text: &str) -> Option<[u64; 2]> {
    let (one, other) = text.split_once(',')?;
    let (node, port) = if one.starts_with("node=") { (one, other) } else { (other, one) };
    Some([number(node.strip_prefix("node=")?)?, number(port.strip_prefix("port=")?)?])
}

impl Template {
    /// The GUID of this kind for these numbers.
    ///
    /// # Errors
    /// A number does not fit its field, or is not known.
    pub fn guid(&self, numbers: &Numbers, kind: GuidKind) -> Result<Guid, Misfit> {
        let mut value = 0;
        for part in &self.parts {
            let (bits, content) = match part {
                Part::Digit(digit) => (4, u64::from(*digit)),
                Part::Field(field) => {
                    let [node, port] = field.kinds;
                    let content = match (field.name, kind) {
                        (FieldName::Host, _) => numbers.host.ok_or(Misfit::NoHostNumber)?,
                        (FieldName::Site, _) => numbers.site.ok_or(Misfit::NoSite)?,
                        (FieldName::Pf, _) => numbers.pf,
                        (FieldName::Vf, _) => numbers.vf,
                        (FieldName::Kind, GuidKind::Node) => node,
                        (FieldName::Kind, GuidKind::Port) => port,
                        // Beyond both, so that it is neither of them.
                        (FieldName::Kind, GuidKind::Port2) => node.max(port) + 1,
                    };
                    (field.bits, field.encode(content)?)
                }
            };
            value = value << bits | content;
        }
        Ok(Guid::new(value))
    }

    /// The field of that name, if the template has it.
    pub fn field(&self, name: FieldName) -> Option<Field> {
        self.parts.iter().find_map(|part| match part {
            Part::Field(field) if field.name == name => Some(*field),
            _ => None,
        })
    }
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(bad_field(text));
        }
        let mut parts: Vec<Part> = Vec::new();
        let mut bits = 0_u32;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            match c {
                ':' if bits.is_multiple_of(8) => {}
                ':' => {
                    return Err(format!(
                        "a ':' follows {bits} bits: it is allowed only between bytes"
                    ));
                }
                '{' => {
                    let (field, after) = rest.split_once('}').ok_or_else(|| bad_field(rest))?;
                    rest = after;
                    let field = Field::parse(field)?;
                    let same = |p: &Part| matches!(p, Part::Field(f) if f.name == field.name);
                    if parts.iter().any(same) {
                        return Err(format!("{{{}}} occurs twice", field.name.word()));
                    }
                    bits += field.bits;
                    parts.push(Part::Field(field));
                }
                c => {
                    let digit = c.to_digit(16).and_then(|d| u8::try_from(d).ok());
                    parts.push(Part::Digit(digit.ok_or_else(|| {
                        format!("{c:?} is neither a hex digit nor a field such as {{vf:16}}")
                    })?));
                    bits += 4;
                }
            }
        }
        if bits != 64 {
            return Err(format!("the template has {bits} bits, and a GUID has 64"));
        }
        Ok(Self { parts })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}:{}", self.name.word(), self.bits)?;
        if self.base == Base::Decimal {
            f.write_str(":decimal")?;
        }
        let [node, port] = self.kinds;
        if self.kinds != [0, 1] {
            write!(f, ":node={node},port={port}")?;
        }
        f.write_str("}")
    }
}

/// A colon wherever a part ends with a byte.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bits = 0_u32;
        for part in &self.parts {
            if bits > 0 && bits.is_multiple_of(8) {
                f.write_str(":")?;
            }
            match part {
                Part::Digit(digit) => {
                    write!(f, "{digit:x}")?;
                    bits += 4;
                }
                Part::Field(field) => {
                    write!(f, "{field}")?;
                    bits += field.bits;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
