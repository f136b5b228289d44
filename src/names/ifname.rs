use std::fmt;
use std::str::FromStr;

/// The name of a network device.
///
/// What the kernel accepts (`dev_valid_name()` in `net/core/dev.c`): 1 to 15
/// bytes, not `.` or `..`, no `/`, `:` or white space. Control bytes and
/// non-UTF-8, which the kernel lets through, are refused as hostile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IfName(String);

/// Why a text is not an [`IfName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a network device name: expected 1 to 15 printable bytes without '/', ':' or blanks"
)]
pub struct IfNameError {
    text: String,
}

impl IfName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IfName {
    type Err = IfNameError;

    fn from_str(text: &str) -> Result<Self, IfNameError> {
        let good = (1..=15).contains(&text.len())
            && text != "."
            && text != ".."
            && !text.chars().any(|c| c == '/' || c == ':' || c.is_whitespace() || c.is_control());
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(IfNameError { text: text.chars().take(64).collect() })
        }
    }
}

impl fmt::Display for IfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_names_pass_and_hostile_ones_do_not() {
        for text in ["ib0", "ibp1s0.8001", "ib-storage", "ib0;reboot", "abcdefghijklmno"] {
            assert!(text.parse::<IfName>().is_ok(), "{text}");
        }
        for text in ["", ".", "..", "a/b", "ib0:1", "ib 0", "ib\n0", "ib\u{7}0", "abcdefghijklmnop"]
        {
            assert!(text.parse::<IfName>().is_err(), "{text}");
        }
    }
}
