//! GUIDs, ranges of them, and GIDs.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::{Words, beginning};

/// A 64-bit InfiniBand GUID (EUI-64): a node GUID or a port GUID.
///
/// The most significant byte is the one printed first, as the kernel prints
/// `node_guid` and the low half of `gids/0` (`drivers/infiniband/core/sysfs.c`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(u64);

const NOT_A_GUID: &str = "is not a GUID: expected 16 hex digits, written 0x0002c903000e8acd, 0002:c903:000e:8acd or 00:02:c9:03:00:0e:8a:cd";

impl Guid {
    /// The GUID with this value, most significant byte first.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The value, most significant byte first.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The low half of a GID is the port GUID; `None` if `gid` is not the
    /// kernel's spelling (eight groups of four hex digits).
    pub fn from_gid(gid: &str) -> Option<Self> {
        let groups: Vec<&str> = gid.split(':').collect();
        if groups.len() != 8 {
            return None;
        }
        groups.get(4..)?.join(":").parse().ok()
    }

    /// True if it is a group address: bit 0x01 of its first byte (EUI-64, IEEE
    /// Registration Authority). No device may have one.
    pub const fn is_group(self) -> bool {
        self.0 >> 56 & 0x01 != 0
    }

    /// True if it is locally administered, by bit 0x02 of its first byte: no
    /// vendor ever gives it to a card.
    pub const fn is_local(self) -> bool {
        self.0 >> 56 & 0x02 != 0
    }

    /// The one that differs only in bit 0x02 of the first byte. As port GUIDs
    /// the two map to the same IPv6 link-local address, since IPoIB sets that bit
    /// (`addrconf_ifid_infiniband()`, `net/ipv6/addrconf.c`).
    #[must_use]
    pub const fn link_local_twin(self) -> Self {
        Self(self.0 ^ (0x02 << 56))
    }

    /// Eight bytes, `00:02:c9:03:00:0e:8a:cd`: the end of an IPoIB address, and what
    /// MLNX_OFED's `sriov/N` files take, and nothing else.
    pub fn bytes(self) -> String {
        self.0.to_be_bytes().map(|b| format!("{b:02x}")).join(":")
    }

    /// All zero: what the kernel shows for a GUID that nobody set.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

parsed!(Guid, NOT_A_GUID, |text| {
    let bare = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let width = match (text.len(), bare.len()) {
        (16 | 18, 16) => 16,
        (19, 19) => 4,
        (23, 23) => 2,
        _ => return None,
    };
    let groups: Vec<&str> = bare.split(':').collect();
    let well_formed = groups.len() == 16 / width
        && groups.iter().all(|g| g.len() == width && g.bytes().all(|b| b.is_ascii_hexdigit()));
    well_formed.then(|| u64::from_str_radix(&groups.concat(), 16).ok().map(Self)).flatten()
});

/// Four groups of four hex digits, as sysfs and ibstat users know it.
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i] = self.0.to_be_bytes();
        write!(f, "{a:02x}{b:02x}:{c:02x}{d:02x}:{e:02x}{g:02x}:{h:02x}{i:02x}")
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guid({self})")
    }
}

/// GUIDs in a row, the first and the last with it:
/// `0200:0000:0000:0100 - 0200:0000:0000:010f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GuidRange {
    first: Guid,
    last: Guid,
}

impl GuidRange {
    /// From `first` to `last`, both with it.
    ///
    /// # Errors
    /// `last` is before `first`.
    pub fn new(first: Guid, last: Guid) -> Result<Self, String> {
        if first > last {
            return Err(format!("the range ends at {last}, before its first GUID {first}"));
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "{:?} is not a range of GUIDs: expected the first and the last, \"0200:0000:0000:0100 - 0200:0000:0000:010f\"",
                beginning(text)
            )
        };
        let (first, last) = text.split_once('-').ok_or_else(bad)?;
        let guid = |text: &str| text.trim_matches(' ').parse::<Guid>().map_err(|_| bad());
        Self::new(guid(first)?, guid(last)?)
    }
}

displayed!(GuidRange, Self { first, last } => "{first} - {last}");

/// What a GID is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum GidKind {
    Ib,
    /// RoCE, in Ethernet frames.
    RoceV1,
    /// RoCE, in UDP.
    RoceV2,
    /// Something that is not known here.
    Unknown,
}

impl Words for GidKind {
    // What can be asked for.
    const ALL: &'static [Self] = &[Self::Ib, Self::RoceV1, Self::RoceV2];
}

impl GidKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ib => "IB",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_usual_spelling_is_the_same_guid() {
        let want = Guid::new(0x0002_c903_000e_8acd);
        for text in [
            "0x0002c903000e8acd",
            "0002c903000e8acd",
            "0002:c903:000e:8acd",
            "00:02:c9:03:00:0E:8A:CD",
        ] {
            assert_eq!(text.parse::<Guid>(), Ok(want), "{text}");
        }
    }

    #[test]
    fn wrong_widths_and_letters_are_refused() {
        for text in [
            "",
            "0x",
            "2c903000e8acd",
            "0002:c903:000e",
            "00:02:c9:03:00:0e:8a:112",
            "0x0002c903000e8acdff",
            "000g:c903:000e:8acd",
            "0x2:c903:000e:8acd1",
        ] {
            assert!(text.parse::<Guid>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_gid_gives_its_low_half() {
        assert_eq!(
            Guid::from_gid("fe80:0000:0000:0000:0002:c903:000e:8acd"),
            Some(Guid::new(0x0002_c903_000e_8acd))
        );
        assert_eq!(Guid::from_gid("fe80::2:c903:e:8acd"), None);
    }

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
        fn display_parses_back(value: u64) {
            let guid = Guid::new(value);
            prop_assert_eq!(guid.to_string().parse::<Guid>(), Ok(guid));
        }

        #[test]
        fn display_of_a_range_parses_back(a: u64, b: u64) {
            let range = GuidRange::new(Guid::new(a.min(b)), Guid::new(a.max(b))).expect("range");
            prop_assert_eq!(range.to_string().parse::<GuidRange>(), Ok(range));
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _guid: Result<Guid, _> = text.parse();
            let _range: Result<GuidRange, _> = text.parse();
        }
    }
}
