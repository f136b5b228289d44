//! Guests: libvirt domains, and what `[guests]` and `[[guest]]` of the configuration can say.

use std::str::FromStr;

use serde::Serialize;

use super::{VfName, is_hostile};

/// A libvirt domain, by name or UUID.
///
/// libvirt lets a name be nearly anything but empty (`virDomainDefPostParse`
/// refuses `/`), blanks and quotes too. What would be hostile on a terminal is
/// refused here; the rest is handed on as one argument and never interpreted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainName(String);

as_it_is!(DomainName);

const NOT_A_DOMAIN: &str = "is not a libvirt domain: expected its name or UUID, 1 to 255 printable characters without '/', not beginning or ending with a blank";

parsed!(DomainName, NOT_A_DOMAIN, |text| {
    let good = (1..=255).contains(&text.len())
        && text.trim() == text
        && !text.chars().any(|c| c == '/' || is_hostile(c));
    good.then(|| Self(text.to_owned()))
});

/// libvirt's connection URI, `qemu:///system`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection(String);

as_it_is!(Connection);

const NOT_A_CONNECTION: &str = "is not a libvirt connection: expected a URI such as qemu:///system";

parsed!(Connection, NOT_A_CONNECTION, |text| {
    let (scheme, rest) = text.split_once(':')?;
    let good = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && !rest.is_empty()
        && text.len() <= 300
        && text.bytes().all(|b| b.is_ascii_graphic());
    good.then(|| Self(text.to_owned()))
});

/// An entry of `vfs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum GuestVf {
    #[strum(to_string = "auto")]
    Auto,
    #[strum(to_string = "{0}")]
    One(VfName),
}

impl FromStr for GuestVf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => text.parse().map(Self::One).map_err(|e| format!("{e}, or \"auto\"")),
        }
    }
}

/// What to do if a guest's VFs are not right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum OnFailure {
    /// Start it when they are.
    Retry,
    /// Report it and leave it.
    Report,
}

/// What counts as up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Ready {
    Running,
    /// And its guest agent answers.
    Agent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_domain_names_pass_and_hostile_ones_do_not() {
        for text in ["vm09", "vm; reboot", "--help", "$(id)", "5", "Gästin 1"] {
            assert!(text.parse::<DomainName>().is_ok(), "{text}");
        }
        for text in ["", " vm", "vm ", "a/b", "vm\n", "vm\u{1b}[2J", "vm\u{202e}", "\u{7f}"] {
            assert!(text.parse::<DomainName>().is_err(), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _domain: Result<DomainName, _> = text.parse();
        }
    }
}
