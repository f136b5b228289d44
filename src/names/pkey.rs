use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::BadText;

/// The P_Key of an IPoIB interface: 15 bits of partition and the membership
/// bit 0x8000, which is always set.
///
/// IPoIB joins its broadcast group as a full member: the kernel sets the bit
/// whatever it is given (`ipoib_ndo_init()`, `drivers/infiniband/ulp/ipoib/`),
/// older ones before naming the child and newer ones after. So `0x000a` and
/// `0x800a` are one P_Key, and only the full value is ever shown or used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PKey(u16);

const NOT_A_PKEY: &str = "is not a P_Key: expected 0x and four hex digits, 0x8001 to 0xffff (0x0001 is 0x8001: IPoIB is always a full member)";

impl PKey {
    /// The P_Key of this value, the membership bit added; `None` for 0 and
    /// 0x8000, which name no partition.
    pub const fn new(value: u16) -> Option<Self> {
        if value & 0x7fff == 0 { None } else { Some(Self(value | 0x8000)) }
    }

    /// Its 16 bits, the membership bit set.
    pub const fn value(self) -> u16 {
        self.0
    }

    /// The number of the partition, without the membership bit.
    pub const fn partition(self) -> u16 {
        self.0 & 0x7fff
    }

    /// What a port with this P_Key table lacks of full membership, in words; `None` if nothing.
    pub fn lack_in(self, table: &[TablePKey]) -> Option<PKeyLack> {
        let own = || table.iter().filter(|entry| entry.full() == self);
        if own().any(|entry| entry.membership() == Membership::Full) {
            return None;
        }
        let is_limited = own().next().is_some();
        Some(PKeyLack { pkey: self, is_limited })
    }
}

parsed!(PKey, NOT_A_PKEY, |text| {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let is_hex = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex).and_then(Self::new)
});

displayed!(PKey, Self(value) => "0x{value:04x}");

/// An entry of a port's P_Key table, with the membership bit as it stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TablePKey(u16);

impl TablePKey {
    /// The entry of this value; `None` for 0 and 0x8000, which name no partition: the entry is
    /// empty.
    pub const fn new(value: u16) -> Option<Self> {
        if value & 0x7fff == 0 { None } else { Some(Self(value)) }
    }

    /// The P_Key of a full member of the same partition.
    pub const fn full(self) -> PKey {
        PKey(self.0 | 0x8000)
    }

    /// What the membership bit says.
    pub const fn membership(self) -> Membership {
        if self.0 & 0x8000 == 0 { Membership::Limited } else { Membership::Full }
    }
}

impl FromStr for TablePKey {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let pkey: PKey = text.parse()?;
        // The digits are good, and the first has the bit.
        let is_full = text.as_bytes().get(2).is_some_and(|digit| *digit >= b'8');
        Ok(Self(if is_full { pkey.0 } else { pkey.0 & 0x7fff }))
    }
}

displayed!(TablePKey, Self(value) => "0x{value:04x}");

/// A port is not a full member of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PKeyLack {
    pkey: PKey,
    /// It is a limited one: it reaches full members, and a subnet manager can let it join groups.
    pub is_limited: bool,
}

impl fmt::Display for PKeyLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (full, limited) = (self.pkey, self.pkey.partition());
        if self.is_limited {
            write!(
                f,
                "the port is only a limited member of partition 0x{limited:04x} (its P_Key table has 0x{limited:04x}, not {full})"
            )
        } else {
            write!(
                f,
                "the port is not a member of partition 0x{limited:04x} (its P_Key table has neither {full} nor 0x{limited:04x})"
            )
        }
    }
}

/// How a port is a member of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum, strum::Display)]
pub enum Membership {
    /// Reaches every member.
    #[strum(to_string = "full")]
    Full,
    /// Reaches only full members.
    #[strum(to_string = "limited")]
    Limited,
    /// Both, for subnet managers that know it.
    #[strum(to_string = "both")]
    Both,
}

/// Declares what a multicast group has by a code: the values as people write them, and codes.
macro_rules! coded {
    ($(#[$doc:meta])+ $name:ident, $expected:literal, [$($value:literal = $code:literal),+ $(,)?]) => {
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name(u8);

        impl $name {
            /// The code for `value`.
            pub const fn of(value: u64) -> Option<Self> {
                match value {
                    $($value => Some(Self($code)),)+
                    _ => None,
                }
            }

            /// As opensm takes it.
            pub const fn code(self) -> u8 {
                self.0
            }
        }

        impl FromStr for $name {
            type Err = &'static str;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().ok().and_then(Self::of).ok_or($expected)
            }
        }
    };
}

coded!(
    /// The MTU of a multicast group, written in bytes.
    GroupMtu,
    "expected 256, 512, 1024, 2048 or 4096",
    [256 = 1, 512 = 2, 1024 = 3, 2048 = 4, 4096 = 5]
);
coded!(
    /// The rate of a multicast group, written in Gb/s: that of a link of four lanes.
    GroupRate,
    "expected 10, 14, 20, 25, 40, 50, 56, 100, 200, 300 or 400",
    [
        10 = 3, 14 = 11, 20 = 6, 25 = 15, 40 = 7, 50 = 20, 56 = 12, 100 = 16, 200 = 17,
        300 = 18, 400 = 21,
    ]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_p_key_is_always_a_full_member() {
        for text in ["0x000a", "0x800a", "0X800A"] {
            assert_eq!(text.parse::<PKey>().map(|p| p.to_string()), Ok("0x800a".to_owned()));
        }
        for text in ["", "0x", "8001", "0x0000", "0x8000", "0x1", "0x18001", "0x80_1", "0x+801"] {
            assert!(text.parse::<PKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_entry_of_a_table_keeps_its_membership() {
        for (text, full, membership) in [
            ("0x7fff", 0xffff, Membership::Limited),
            ("0xFFFF", 0xffff, Membership::Full),
            ("0x8012", 0x8012, Membership::Full),
            ("0x0012", 0x8012, Membership::Limited),
        ] {
            let entry: TablePKey = text.parse().expect(text);
            assert_eq!(entry.to_string(), text.to_lowercase());
            assert_eq!((entry.full().value(), entry.membership()), (full, membership), "{text}");
        }
    }

    #[test]
    fn full_membership_is_that_bit_whatever_else_the_table_has() {
        let lack = |table: &[&str]| {
            let table: Vec<TablePKey> = table.iter().map(|t| t.parse().expect("entry")).collect();
            let pkey: PKey = "0x0012".parse().expect("P_Key");
            pkey.lack_in(&table).map(|lack| lack.is_limited)
        };
        assert_eq!(lack(&["0x0012", "0x8012"]), None);
        assert_eq!(lack(&["0x8013", "0x0012"]), Some(true));
        assert_eq!(lack(&["0x8013"]), Some(false));
        assert_eq!(lack(&[]), Some(false));
    }
}
