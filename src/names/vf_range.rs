use std::fmt;
use std::str::FromStr;

use super::VfIndex;

/// One VF or several in a row: `3`, or `8-15` with both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VfRange {
    first: VfIndex,
    last: VfIndex,
}

/// Why a text is not a [`VfRange`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} does not name VFs: expected a VF index such as 3, or the first and the last, \"8-15\""
)]
pub struct VfRangeError {
    text: String,
}

impl VfRange {
    /// Only this VF.
    pub const fn one(index: VfIndex) -> Self {
        Self { first: index, last: index }
    }

    pub const fn first(self) -> VfIndex {
        self.first
    }

    /// The last VF, which belongs to it.
    pub const fn last(self) -> VfIndex {
        self.last
    }

    /// True if it is one VF.
    pub fn is_one(self) -> bool {
        self.first == self.last
    }

    /// True if `index` is one of them.
    pub fn contains(self, index: VfIndex) -> bool {
        self.first <= index && index <= self.last
    }

    /// True if some VF is in both.
    pub fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl FromStr for VfRange {
    type Err = VfRangeError;

    fn from_str(text: &str) -> Result<Self, VfRangeError> {
        let bad = || VfRangeError { text: text.chars().take(64).collect() };
        let index = |text: &str| text.trim_matches(' ').parse::<VfIndex>().map_err(|_| bad());
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (index(first)?, index(last)?),
            None => (index(text)?, index(text)?),
        };
        if first > last {
            return Err(bad());
        }
        Ok(Self { first, last })
    }
}

impl fmt::Display for VfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_one() {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_ends_belong_to_it() {
        let range: VfRange = "8 - 15".parse().expect("range");
        let index = |n| VfIndex::new(n).expect("index");
        assert!(range.contains(index(8)) && range.contains(index(15)));
        assert!(!range.contains(index(7)) && !range.contains(index(16)));
        assert!(range.meets(VfRange::one(index(15))) && !range.meets(VfRange::one(index(16))));
        for text in ["", "-", "8-", "-8", "15-8", "1-2-3", "0x1", "a", "65535"] {
            assert!(text.parse::<VfRange>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn display_parses_back(a in 0..65535_u16, b in 0..65535_u16) {
            let [a, b] = [a, b].map(|n| VfIndex::new(n).expect("index"));
            let range = VfRange { first: a.min(b), last: a.max(b) };
            prop_assert_eq!(range.to_string().parse::<VfRange>(), Ok(range));
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _parsed: Result<VfRange, _> = text.parse();
        }
    }
}
