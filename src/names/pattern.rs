use std::fmt;
use std::str::FromStr;

use super::{IfName, is_hostile};

/// A pattern for names of network devices, as a shell's: `*`, `?`, `[ab]`,
/// `[!ab]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfPattern(glob::Pattern);

/// Why a text is not an [`IfPattern`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a name pattern: {why}")]
pub struct IfPatternError {
    text: String,
    why: &'static str,
}

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
    type Err = IfPatternError;

    fn from_str(text: &str) -> Result<Self, IfPatternError> {
        let bad = |why| IfPatternError { text: text.chars().take(64).collect(), why };
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
