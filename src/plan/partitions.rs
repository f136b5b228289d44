//! The lines of opensm's `partitions.conf` that make VFs members of a partition.
//!
//! The format is opensm's `doc/partition-config.txt`: `NAME=PKEY : GUID=full,
//! GUID=limited ;`, `#` begins a comment, and a partition may be defined in
//! several pieces if each gives its P_Key.

use super::guid::Resolved;

/// A partition to put VFs in: its P_Key and how they are members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// The low 15 bits; the membership bit is not a part of it.
    pub pkey: u16,
    /// Limited members reach only full ones.
    pub membership: Membership,
}

/// How a port is a member of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Membership {
    /// Reaches every member.
    Full,
    /// Reaches only full members.
    Limited,
    /// Both, for subnet managers that know it.
    Both,
}

impl std::fmt::Display for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Limited => "limited",
            Self::Both => "both",
        })
    }
}

/// The P_Key of the partition that opensm always makes.
pub const DEFAULT_PKEY: u16 = 0x7fff;

/// The P_Key in `text`, hex after `0x` or decimal, without its membership bit.
///
/// # Errors
/// It is none: 0x0000 and 0x8000 are not valid (InfiniBand Architecture,
/// 10.9.1).
pub fn pkey(text: &str) -> Result<u16, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u16::from_str_radix(hex, 16).ok(),
        Some(_) => None,
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        None => None,
    };
    let key = parsed.map(|key| key & DEFAULT_PKEY).filter(|key| *key != 0);
    key.ok_or_else(|| "want a P_Key from 0x0001 to 0x7fff, the membership bit aside".to_owned())
}

/// One line for each VF of a good plan, so that they can be sorted, compared
/// and merged by other tools. `host` goes into the comments.
#[must_use]
pub fn lines(plans: &[Resolved], partition: Partition, host: Option<&str>) -> String {
    let Partition { pkey, membership } = partition;
    // The comment must stay one: nothing of the name may end the line.
    let clean = |name: &str| -> String {
        name.chars().filter(|c| c.is_ascii_graphic() && *c != '#').take(64).collect()
    };
    let host = host.map(clean).filter(|name| !name.is_empty()).unwrap_or_else(|| "host".to_owned());
    let name = if pkey == DEFAULT_PKEY { "Default" } else { "vfs" };
    let mut text = String::new();
    for wanted in plans.iter().filter_map(|plan| plan.wanted.as_ref().ok()) {
        for vf in &wanted.vfs {
            let guid = vf.port_guid.value();
            text.push_str(&format!(
                "{name}=0x{pkey:04x} : 0x{guid:016x}={membership} ; # {host} {} VF {}\n",
                wanted.pf, vf.index
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pkey_is_15_bits_and_not_0() {
        for (text, want) in [("0x7fff", 0x7fff), ("0xffff", 0x7fff), ("1", 1), ("0x8001", 1)] {
            assert_eq!(pkey(text), Ok(want), "{text}");
        }
        for text in ["", "0", "0x0", "0x8000", "0x", "0x+1", "-1", "65536", "0x10000"] {
            assert!(pkey(text).is_err(), "{text}");
        }
    }
}
