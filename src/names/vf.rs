use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::PciAddress;

/// Which VF of its PF: the N of `virtfnN`, of OFED's `sriov/N` and of
/// `ip link set DEV vf N`; counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(transparent))]
pub struct VfIndex(u16);

/// Why a text is not a [`VfIndex`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a VF index: expected a number from 0 to 65534")]
pub struct VfIndexError {
    text: String,
}

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

impl FromStr for VfIndex {
    type Err = VfIndexError;

    fn from_str(text: &str) -> Result<Self, VfIndexError> {
        let bad = || VfIndexError { text: text.chars().take(64).collect() };
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        text.parse().ok().and_then(Self::new).ok_or_else(bad)
    }
}

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
        Self::new(index).ok_or_else(|| de::Error::custom(VfIndexError { text: index.to_string() }))
    }
}

/// A VF by its PF and index, `0000:4b:00.0/3`: what does not change when VFs
/// are made anew, and exists before the VF does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VfName {
    /// Its PF.
    pub pf: PciAddress,
    /// Which VF of it.
    pub index: VfIndex,
}

/// Why a text is not a [`VfName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} does not name a VF: expected the PF's PCI address and the VF's index, e.g. 0000:4b:00.0/3"
)]
pub struct VfNameError {
    text: String,
}

impl FromStr for VfName {
    type Err = VfNameError;

    fn from_str(text: &str) -> Result<Self, VfNameError> {
        let parse = || {
            let (pf, index) = text.split_once('/')?;
            Some(Self { pf: PciAddress::typed(pf).ok()?, index: index.parse().ok()? })
        };
        parse().ok_or_else(|| VfNameError { text: text.chars().take(64).collect() })
    }
}

impl fmt::Display for VfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.pf, self.index)
    }
}

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
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .collect();
    let several = runs.len() > 1 || runs.iter().any(|(first, last)| first != last);
    format!("{} {}", if several { "VFs" } else { "VF" }, words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
