use std::fmt;
use std::str::FromStr;

use super::is_hostile;

/// A libvirt domain, by name or UUID.
///
/// libvirt lets a name be nearly anything but empty (`virDomainDefPostParse`
/// refuses `/`), blanks and quotes too. What would be hostile on a terminal is
/// refused here; the rest is handed on as one argument and never interpreted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainName(String);

/// Why a text is not a [`DomainName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a libvirt domain: expected its name or UUID, 1 to 255 printable characters without '/', not beginning or ending with a blank"
)]
pub struct DomainNameError {
    text: String,
}

impl DomainName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DomainName {
    type Err = DomainNameError;

    fn from_str(text: &str) -> Result<Self, DomainNameError> {
        let good = (1..=255).contains(&text.len())
            && text.trim() == text
            && !text.chars().any(|c| c == '/' || is_hostile(c));
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(DomainNameError { text: text.chars().take(64).collect() })
        }
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The name of a systemd unit that can be started, with its suffix
/// (`systemd.unit(5)`): at most 255 of ASCII letters, digits and `:-_.\@`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitName(String);

/// Why a text is not a [`UnitName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a unit name: expected the full name, e.g. vm@9.service, of ASCII letters, digits and :-_.\\@ (systemd-escape makes one of any text)"
)]
pub struct UnitNameError {
    text: String,
}

/// What can be started and be up.
const SUFFIXES: [&str; 7] =
    [".service", ".target", ".socket", ".mount", ".scope", ".path", ".timer"];

impl UnitName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UnitName {
    type Err = UnitNameError;

    fn from_str(text: &str) -> Result<Self, UnitNameError> {
        let stem = SUFFIXES.iter().find_map(|suffix| text.strip_suffix(suffix));
        let good = text.len() <= 255
            // A template without an instance cannot be started.
            && stem.is_some_and(|s| !s.is_empty() && !s.ends_with('@') && !s.starts_with('@'))
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b));
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(UnitNameError { text: text.chars().take(64).collect() })
        }
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
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

    #[test]
    fn unit_names_need_a_suffix_and_an_instance() {
        for text in ["vm.service", "vm@9.service", "vm@a\\x2fb.service", "vms.target"] {
            assert!(text.parse::<UnitName>().is_ok(), "{text}");
        }
        for text in
            ["", "vm", ".service", "vm@.service", "vm;reboot.service", "a b.service", "x.device"]
        {
            assert!(text.parse::<UnitName>().is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _domain: Result<DomainName, _> = text.parse();
            let _unit: Result<UnitName, _> = text.parse();
        }
    }
}
