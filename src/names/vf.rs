//! VFs by their index.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{BadText, PciAddress};

/// Which VF of its PF: the N of `virtfnN`, of OFED's `sriov/N` and of
/// `ip link set DEV vf N`; counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(transparent))]
pub struct VfIndex(u16);

const NOT_AN_INDEX: &str = "is not a VF index: expected a number from 0 to 65534";

impl VfIndex {
    /// VF `index`; `None` for 65535, since a PF has at most 65535 VFs
    /// (TotalVFs is 16 bits wide, PCI Express SR-IOV capability).
    pub const fn new(index: u16) -> Option<Self> {
        if index == u16::MAX { None } else { Some(Self(index)) }
    }

    /// Its number, as `virtfnN` has it.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The VFs 0 to `count` - 1.
    pub fn first(count: u16) -> impl Iterator<Item = Self> {
        (0..count).map(Self)
    }
}

parsed!(VfIndex, NOT_AN_INDEX, |text| {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok().and_then(Self::new))
        .flatten()
});

impl fmt::Display for VfIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for VfIndex {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u16(self.0)
    }
}

impl<'de> Deserialize<'de> for VfIndex {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let index = u16::deserialize(d)?;
        Self::new(index)
            .ok_or_else(|| de::Error::custom(BadText::new(&index.to_string(), NOT_AN_INDEX)))
    }
}

/// A VF by its PF and index, `0000:4b:00.0/3`: what does not change when VFs
/// are made anew, and exists before the VF does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VfName {
    pub pf: PciAddress,
    pub index: VfIndex,
}

const NOT_A_VF: &str =
    "does not name a VF: expected the PF's PCI address and the VF's index, e.g. 0000:4b:00.0/3";

parsed!(VfName, NOT_A_VF, |text| {
    let (pf, index) = text.split_once('/')?;
    Some(Self { pf: PciAddress::typed(pf).ok()?, index: index.parse().ok()? })
});

displayed!(VfName, Self { pf, index } => "{pf}/{index}");

/// `VF 3` or `VFs 0-3, 7`.
pub fn vf_ranges(vfs: impl Iterator<Item = VfIndex>) -> String {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for vf in vfs.map(VfIndex::get) {
        match runs.last_mut() {
            Some((_, last)) if u32::from(*last) + 1 == u32::from(vf) => *last = vf,
            _ => runs.push((vf, vf)),
        }
    }
    let words: Vec<String> = runs
        .iter()
        .map(
            |(first, last)| {
                if first == last { first.to_string() } else { format!("{first}-{last}") }
            },
        )
        .collect();
    let several = runs.len() > 1 || runs.iter().any(|(first, last)| first != last);
    format!("{} {}", if several { "VFs" } else { "VF" }, words.join(", "))
}

/// One VF or several in a row: `3`, or `8-15` with both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VfRange {
    first: VfIndex,
    last: VfIndex,
}

const NO_VFS: &str =
    "does not name VFs: expected a VF index such as 3, or the first and the last, \"8-15\"";

impl VfRange {
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

parsed!(VfRange, NO_VFS, |text| {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let [first, last] = [first, last].map(|index| index.trim_matches(' ').parse().ok());
    let range = Self { first: first?, last: last? };
    (range.first <= range.last).then_some(range)
});

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
    fn only_plain_numbers_are_indices() {
        assert_eq!("10".parse::<VfIndex>().map(VfIndex::get), Ok(10));
        for text in ["", "-1", "+1", " 1", "0x1", "65535", "65536", "1e3"] {
            assert!(text.parse::<VfIndex>().is_err(), "{text}");
        }
    }

    #[test]
    fn first_counts_from_zero() {
        let indices: Vec<u16> = VfIndex::first(3).map(VfIndex::get).collect();
        assert_eq!(indices, [0, 1, 2]);
    }

    #[test]
    fn neighbours_are_one_range() {
        let of = |vfs: &[u16]| vf_ranges(vfs.iter().filter_map(|vf| VfIndex::new(*vf)));
        assert_eq!(of(&[3]), "VF 3");
        assert_eq!(of(&[0, 1, 2, 3, 7, 9, 10]), "VFs 0-3, 7, 9-10");
        assert_eq!(of(&[0, 2]), "VFs 0, 2");
    }

    #[test]
    fn a_vf_is_named_by_its_pf_and_index() {
        let name = "0000:4b:00.0/3".parse::<VfName>().expect("name");
        assert_eq!((name.index.get(), name.to_string().as_str()), (3, "0000:4b:00.0/3"));
        assert_eq!("4b:00.0/3".parse(), Ok(name), "as lspci prints the address");
        for text in ["0000:4b:00.0", "0000:4b:00.0/", "mlx5_0/3", "0000:4b:00.0/-1", "/3", "a/b/c"]
        {
            assert!(text.parse::<VfName>().is_err(), "{text}");
        }
    }

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
