use std::fmt;
use std::str::FromStr;

use super::Guid;

/// GUIDs in a row, the first and the last with it:
/// `0200:0000:0000:0100 - 0200:0000:0000:010f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GuidRange {
    first: Guid,
    last: Guid,
}

/// Why a text is not a [`GuidRange`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuidRangeError {
    /// It is not two GUIDs.
    #[error(
        "{0:?} is not a range of GUIDs: expected the first and the last, \"0200:0000:0000:0100 - 0200:0000:0000:010f\""
    )]
    Form(String),
    /// The last comes before the first.
    #[error("the range ends at {last}, before its first GUID {first}")]
    Backwards {
        /// The GUID that was given as the first.
        first: Guid,
        /// The GUID that was given as the last.
        last: Guid,
    },
}

impl GuidRange {
    /// From `first` to `last`, both with it.
    ///
    /// # Errors
    /// `last` is before `first`.
    pub fn new(first: Guid, last: Guid) -> Result<Self, GuidRangeError> {
        if first > last {
            return Err(GuidRangeError::Backwards { first, last });
        }
        Ok(Self { first, last })
    }

    /// How many GUIDs it has; of all GUIDs, one less.
    pub const fn count(self) -> u64 {
        (self.last.value() - self.first.value()).saturating_add(1)
    }

    /// The one at `index`, counted from 0; `None` past the end.
    pub fn get(self, index: u64) -> Option<Guid> {
        let value = self.first.value().checked_add(index)?;
        (value <= self.last.value()).then_some(Guid::new(value))
    }
}

impl FromStr for GuidRange {
    type Err = GuidRangeError;

    fn from_str(text: &str) -> Result<Self, GuidRangeError> {
        let bad = || GuidRangeError::Form(text.chars().take(64).collect());
        let (first, last) = text.split_once('-').ok_or_else(bad)?;
        let guid = |text: &str| text.trim_matches(' ').parse::<Guid>().map_err(|_| bad());
        Self::new(guid(first)?, guid(last)?)
    }
}

impl fmt::Display for GuidRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} - {}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_belongs_to_it() {
        let range: GuidRange =
            "0200:0000:0000:00fe-0x0200000000000100".parse().expect("a range in two spellings");
        assert_eq!(range.get(2), Some(Guid::new(0x0200_0000_0000_0100)));
        assert_eq!(range.get(3), None);
        let whole = GuidRange::new(Guid::new(1), Guid::new(u64::MAX)).expect("range");
        assert_eq!(whole.get(u64::MAX), None, "no wrap");
        for text in ["", "-", "0200:0000:0000:0100", "0200:0000:0000:0100 - ", "a-b"] {
            assert!(text.parse::<GuidRange>().is_err(), "{text}");
        }
        assert_eq!(
            "0200:0000:0000:0101 - 0200:0000:0000:0100"
                .parse::<GuidRange>()
                .map_err(|e| e.to_string()),
            Err("the range ends at 0200:0000:0000:0100, before its first GUID 0200:0000:0000:0101"
                .to_owned())
        );
    }

    proptest! {
        #[test]
        fn display_parses_back(a: u64, b: u64) {
            let range = GuidRange::new(Guid::new(a.min(b)), Guid::new(a.max(b))).expect("range");
            prop_assert_eq!(range.to_string().parse::<GuidRange>(), Ok(range));
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _parsed: Result<GuidRange, _> = text.parse();
        }
    }
}
