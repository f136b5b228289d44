//! Settings in the firmware of a ConnectX, as mstconfig and mlxconfig have them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{LinkLayer, shown};

/// The name of a setting, in the spelling of mstconfig: `NUM_OF_VFS`, `LINK_TYPE_P1`, an
/// item of a list `NAME[3]`. It can stand on a command line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FirmwareName(String);

as_it_is!(FirmwareName);

const NOT_A_SETTING: &str = "is not the name of a firmware setting: expected capital letters, digits and '_', as `mstconfig -d ADDRESS query` prints it, e.g. NUM_OF_VFS, LINK_TYPE_P1 or \"NAME[3]\"";

impl FirmwareName {
    pub const NUM_OF_VFS: &'static str = "NUM_OF_VFS";
    pub const SRIOV_EN: &'static str = "SRIOV_EN";
    /// Each PF has a number of VFs of its own, and NUM_OF_VFS does not count.
    pub const PER_PF: &'static str = "PF_NUM_OF_VF_VALID";
    const LINK_TYPE: &'static str = "LINK_TYPE";
    /// Settings of a port that mstconfig knows with `_P1` or `_P2` only.
    const OF_PORT: [&'static str; 6] = [
        Self::LINK_TYPE,
        "KEEP_ETH_LINK_UP",
        "KEEP_IB_LINK_UP",
        "KEEP_LINK_UP_ON_BOOT",
        "KEEP_LINK_UP_ON_STANDBY",
        "SRIOV_IB_ROUTING_MODE",
    ];

    /// It is of a port, and does not say of which.
    pub fn lacks_port(&self) -> bool {
        Self::OF_PORT.contains(&self.as_str())
    }

    /// The port of the adapter whose link type it is: 1 for `LINK_TYPE_P1`.
    pub fn link_type_of(&self) -> Option<u8> {
        self.0.strip_prefix(Self::LINK_TYPE)?.strip_prefix("_P")?.parse().ok()
    }
}

parsed!(FirmwareName, NOT_A_SETTING, |text| {
    let (name, item) = text.split_once('[').unwrap_or((text, "0]"));
    let number = item.strip_suffix(']')?;
    let good = (1..=64).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && (1..=4).contains(&number.len())
        && number.bytes().all(|b| b.is_ascii_digit());
    good.then(|| Self(text.to_owned()))
});

/// What a setting is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum FirmwareValue {
    Flag(bool),
    Number(u64),
    /// One of the setting's own words; see [`FirmwareValue::word`].
    Word(String),
}

impl FirmwareValue {
    /// A word of a setting.
    ///
    /// # Errors
    /// It holds what no such word does.
    pub fn word(text: &str) -> Result<Self, String> {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.';
        if (1..=64).contains(&text.len()) && text.bytes().all(is_plain) {
            Ok(Self::Word(text.to_owned()))
        } else {
            Err(format!(
                "{} is not a word of a firmware setting: expected letters, digits, '_' and '.'",
                shown(text)
            ))
        }
    }

    /// The number that it is, if it is written as one.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Flag(flag) => Some(u64::from(*flag)),
            Self::Number(number) => Some(*number),
            Self::Word(word) => word.parse().ok(),
        }
    }

    /// The link layer that it sets as a link type (`IB(1)`, `ETH(2)`).
    pub fn link_layer(&self) -> Option<LinkLayer> {
        let is = |word: &str, number| match self {
            Self::Word(text) if text.eq_ignore_ascii_case(word) => true,
            Self::Flag(_) => false,
            other => other.number() == Some(number),
        };
        let all = [("IB", 1, LinkLayer::InfiniBand), ("ETH", 2, LinkLayer::Ethernet)];
        all.into_iter().find(|(word, number, _)| is(word, *number)).map(|(_, _, layer)| layer)
    }

    /// True if mstconfig shows this value as `shown`: `True(1)`, `IB(1)`, `16`. Flags and
    /// numbers are compared as numbers, words as words in any case.
    pub fn is_shown_as(&self, shown: &str) -> bool {
        let (word, number) = match shown.strip_suffix(')').and_then(|s| s.rsplit_once('(')) {
            Some((word, number)) => (word, number),
            None => (shown, shown),
        };
        let number = match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => number.parse().ok(),
        };
        let is_word = matches!(self, Self::Word(text) if text.eq_ignore_ascii_case(word));
        is_word || self.number().is_some_and(|own| number == Some(own))
    }
}

/// As mstconfig takes it.
impl fmt::Display for FirmwareValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{}", u8::from(*flag)),
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_those_of_the_tool() {
        for good in ["NUM_OF_VFS", "LINK_TYPE_P1", "A", "UCTX_EN", "NAME[3]", "BOOT_PKEY_P2"] {
            assert_eq!(good.parse::<FirmwareName>().map(|n| n.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "-d", "sriov_en", "A=1", "A B", "A[", "A[]", "A[x]", "A[1]x", "[1]", "1A"] {
            assert!(bad.parse::<FirmwareName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_value_is_compared_by_number_or_by_word() {
        let word = |text| FirmwareValue::word(text).expect("a word");
        let (flag, number) = (FirmwareValue::Flag, FirmwareValue::Number);
        for (value, shown) in [
            (flag(true), "True(1)"),
            (flag(false), "False(0)"),
            (number(1), "True(1)"),
            (number(16), "16"),
            (number(16), "0x10"),
            (number(2), "ETH(2)"),
            (word("ib"), "IB(1)"),
            (word("1"), "IB(1)"),
            (word("DEVICE_DEFAULT"), "DEVICE_DEFAULT(0)"),
        ] {
            assert!(value.is_shown_as(shown), "{value:?} {shown}");
        }
        for (value, shown) in [
            (flag(true), "False(0)"),
            (number(8), "16"),
            (number(1), "11"),
            (word("IB"), "ETH(2)"),
            (word("True"), "False(0)"),
            (number(0), "N/A"),
            (number(0), "Array[0..7]"),
            (number(0), ""),
        ] {
            assert!(!value.is_shown_as(shown), "{value:?} {shown}");
        }
        assert!(FirmwareValue::word("1 -y reset").is_err() && FirmwareValue::word("").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _name: Result<FirmwareName, _> = text.parse();
            let _same = FirmwareValue::Number(1).is_shown_as(&text);
        }
    }
}
