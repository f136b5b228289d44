use std::fmt;
use std::str::FromStr;

/// A 64-bit InfiniBand GUID (EUI-64): a node GUID or a port GUID.
///
/// The most significant byte is the one printed first, as the kernel prints
/// `node_guid` and the low half of `gids/0` (`drivers/infiniband/core/sysfs.c`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(u64);

/// Why a text is not a [`Guid`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a GUID: expected 16 hex digits, written 0x0002c903000e8acd, 0002:c903:000e:8acd or 00:02:c9:03:00:0e:8a:cd"
)]
pub struct GuidError {
    text: String,
}

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

    /// Eight bytes, `00:02:c9:03:00:0e:8a:cd`: what MLNX_OFED's `sriov/N` files
    /// take, and nothing else.
    pub fn bytes(self) -> String {
        self.0.to_be_bytes().map(|b| format!("{b:02x}")).join(":")
    }

    /// All zero: what the kernel shows for a GUID that nobody set.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl FromStr for Guid {
    type Err = GuidError;

    fn from_str(text: &str) -> Result<Self, GuidError> {
        let bad = || GuidError { text: text.chars().take(64).collect() };
        let bare = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
        let width = match (text.len(), bare.len()) {
            (16 | 18, 16) => 16,
            (19, 19) => 4,
            (23, 23) => 2,
            _ => return Err(bad()),
        };
        let groups: Vec<&str> = bare.split(':').collect();
        let well_formed = groups.len() == 16 / width
            && groups.iter().all(|g| g.len() == width && g.bytes().all(|b| b.is_ascii_hexdigit()));
        if !well_formed {
            return Err(bad());
        }
        u64::from_str_radix(&groups.concat(), 16).map(Self).map_err(|_| bad())
    }
}

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

    proptest! {
        #[test]
        fn display_parses_back(value: u64) {
            let guid = Guid::new(value);
            prop_assert_eq!(guid.to_string().parse::<Guid>(), Ok(guid));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _parsed: Result<Guid, _> = text.parse();
        }
    }
}
