//! The names of network devices, and patterns for them.

use std::fmt;
use std::str::FromStr;

use super::words::is_plain_char;
use super::{BadText, beginning, is_hostile};

/// The name of a network device.
///
/// What the kernel accepts (`dev_valid_name()` in `net/core/dev.c`): 1 to 15
/// bytes, not `.` or `..`, no `/`, `:` or white space. What is hostile on a
/// terminal and non-UTF-8, which the kernel lets through, are refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IfName(String);

as_it_is!(IfName);

const NOT_A_NAME: &str =
    "is not a network device name: expected 1 to 15 printable bytes without '/', ':' or blanks";

const NOT_GIVEN: &str = "cannot be given to a network device: expected 1 to 15 letters, digits, '_', '-' and '.', the first a letter or digit; not a number, lo, all, default or bonding_masters";

/// True for letters, digits, `_`, `-` and `.`, the first a letter or digit: what means nothing
/// to udev, a shell or a path.
pub fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_plain_char)
}

/// udev and `ip` take it for an index (`parse_ifindex()`, `src/basic/parse-util.c`).
fn is_number(text: &str) -> bool {
    let digits = ["0x", "0X", "0b", "0o"].iter().find_map(|head| text.strip_prefix(head));
    digits.unwrap_or(text).bytes().all(|b| match digits {
        Some(_) => b.is_ascii_hexdigit(),
        None => b.is_ascii_digit(),
    })
}

/// In each network namespace the first is there, sysfs has the last, and IPv4 and IPv6 have
/// settings of the others (`sysctl_dev_name_is_allowed()`, `include/net/ip.h`).
const RESERVED: [&str; 4] = ["lo", "all", "default", "bonding_masters"];

impl IfName {
    /// The name that a netdev is to be given.
    ///
    /// # Errors
    /// The kernel refuses it, or udev would refuse, replace or quote a part of it.
    pub fn to_give(text: &str) -> Result<Self, BadText> {
        let name = text.parse::<Self>();
        match name {
            Ok(name) if is_plain(text) && !is_number(text) && !RESERVED.contains(&text) => Ok(name),
            _ => Err(BadText::new(text, NOT_GIVEN)),
        }
    }
}

parsed!(IfName, NOT_A_NAME, |text| {
    let good = (1..=15).contains(&text.len())
        && text != "."
        && text != ".."
        && !text.chars().any(|c| c == '/' || c == ':' || c.is_whitespace() || is_hostile(c));
    good.then(|| Self(text.to_owned()))
});

/// A pattern for names of network devices, as a shell's: `*`, `?`, `[ab]`,
/// `[!ab]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfPattern(glob::Pattern);

impl IfPattern {
    /// True if `name` is meant.
    pub fn matches(&self, name: &IfName) -> bool {
        self.0.matches(name.as_str())
    }

    /// True if it means one name alone.
    pub fn is_name(&self) -> bool {
        !self.as_str().contains(['*', '?', '['])
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for IfPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = |why| format!("{:?} is not a name pattern: {why}", beginning(text));
        if text.is_empty() || text.len() > 64 {
            return Err(bad("expected 1 to 64 bytes"));
        }
        if text.contains(|c: char| c == '/' || c == ':' || c.is_whitespace()) {
            return Err(bad("no network device has '/', ':' or blanks in its name"));
        }
        if text.contains(is_hostile) {
            return Err(bad("it has a control character, or one that is invisible"));
        }
        glob::Pattern::new(text).map(Self).map_err(|e| bad(e.msg))
    }
}

impl fmt::Display for IfPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
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
        for text in [
            "",
            ".",
            "..",
            "a/b",
            "ib0:1",
            "ib 0",
            "ib\n0",
            "ib\u{7}0",
            "abcdefghijklmnop",
            "ib\u{202e}0",
            "ib\u{200b}0",
        ] {
            assert!(text.parse::<IfName>().is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        let matches = |pattern: &str, name: &str| {
            let name: IfName = name.parse().expect("name");
            pattern.parse::<IfPattern>().expect("pattern").matches(&name)
        };
        assert!(matches("*", "ib0") && matches("ib*", "ib0.8001") && matches("ib[01]", "ib1"));
        assert!(matches("-x", "-x") && matches("a\\x2fb", "a\\x2fb"), "no character is special");
        assert!(!matches("ib?", "ib10") && !matches("ib[!0]", "ib0") && !matches("IB0", "ib0"));
        for text in ["", "a/b", "ib 0", "ib[0", "a:1", "ib**x", "ib\u{202e}*", "ib\u{feff}"] {
            assert!(text.parse::<IfPattern>().is_err(), "{text}");
        }
    }
}
