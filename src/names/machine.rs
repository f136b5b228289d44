//! Which machine this is by its firmware (SMBIOS), to tell a clone from its original.

use std::hash::Hasher;

/// What tells one machine from others of its kind. Both are digests: only root may read what
/// they are made of, and everybody may read the pin file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine {
    pub product_uuid: Option<DmiDigest>,
    /// Of the serial number of the board.
    pub board_serial: Option<DmiDigest>,
}

impl Machine {
    /// The machine whose firmware says this. What vendors leave in thousands of machines says
    /// nothing.
    pub fn of(product_uuid: Option<&str>, board_serial: Option<&str>) -> Self {
        Self {
            product_uuid: product_uuid.and_then(DmiDigest::of),
            board_serial: board_serial.and_then(DmiDigest::of),
        }
    }

    /// True if this is known to be another machine than `then`: they have nothing in common of
    /// what is known of both.
    pub fn is_other_than(&self, then: &Self) -> bool {
        let both = [(self.product_uuid, then.product_uuid), (self.board_serial, then.board_serial)];
        let mut both = both.into_iter().filter_map(|(now, then)| now.zip(then)).peekable();
        both.peek().is_some() && both.all(|(now, then)| now != then)
    }
}

/// A digest of 64 bits: SipHash-2-4 with a key of ibprov's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmiDigest(u64);

/// What vendors write who write nothing, in lower case; also as the beginning of more.
const NOTHING: [&str; 14] = [
    "to be filled",
    "not specified",
    "not available",
    "not applicable",
    "not settable",
    "not present",
    "default string",
    "system serial",
    "base board serial",
    "board serial",
    "unknown",
    "invalid",
    "none",
    "n/a",
];

/// UUIDs and serial numbers that many machines have, letters and digits alone.
const COMMON: [&str; 6] = [
    "03000200040005000006000700080009",
    "00020003000400050006000700080009",
    "12345678123456789abcdef012345678",
    "0123456789",
    "1234567890",
    "123456789",
];

impl DmiDigest {
    /// Of `text`, unless that is what many machines have.
    fn of(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let plain: Vec<u8> = text.bytes().filter(u8::is_ascii_alphanumeric).collect();
        let first = plain.first()?;
        let is_common = plain.iter().all(|byte| byte == first)
            || COMMON.iter().any(|common| common.as_bytes() == plain)
            || NOTHING.iter().any(|nothing| text.starts_with(nothing));
        if is_common {
            return None;
        }
        #[expect(deprecated, reason = "its algorithm is fixed, unlike that of DefaultHasher")]
        let mut hasher = std::hash::SipHasher::new_with_keys(0x6962_7072_6f76, 0x7069_6e73);
        hasher.write(text.as_bytes());
        Some(Self(hasher.finish()))
    }
}

displayed!(DmiDigest, Self(digest) => "{digest:016x}");

parsed!(DmiDigest, "is not a digest: expected 16 hex digits", |text| {
    let is_hex = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(text, 16).ok().map(Self)).flatten()
});

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "4c4c4544-0043-3510-8052-b4c04f4a3733";

    #[test]
    fn what_many_machines_have_is_no_identity() {
        for text in [
            "",
            " \n",
            "00000000-0000-0000-0000-000000000000",
            "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
            "03000200-0400-0500-0006-000700080009",
            "To be filled by O.E.M.",
            "To Be Filled By O.E.M",
            "Not Specified",
            "Default string",
            "System Serial Number",
            "N/A",
            "None",
            "0",
            "..............",
            "XXXXXXXX",
            "0123456789",
        ] {
            assert_eq!(Machine::of(Some(text), Some(text)), Machine::default(), "{text:?}");
        }
        // What is between the letters and digits does not matter to them alone.
        for text in [UUID, "CN7475153B0B16", ".8HX2T23.CNFCP0054A00FG.", "0000a"] {
            assert_ne!(Machine::of(None, Some(text)), Machine::default(), "{text:?}");
        }
    }

    #[test]
    fn another_machine_has_nothing_in_common() {
        let machine = |uuid: &str, serial: &str| Machine::of(Some(uuid), Some(serial));
        let (one, two) =
            (machine(UUID, "S1"), machine("4c4c4544-0043-3510-8052-b4c04f4a3734", "S2"));
        assert!(one.is_other_than(&two) && !one.is_other_than(&one));
        // The vendor's technician has given a new board the product's UUID.
        assert!(!one.is_other_than(&machine(&UUID.to_uppercase(), "S3")));
        assert!(!one.is_other_than(&machine("Not Settable", "S1")));
        // Nothing that both have is known.
        assert!(!one.is_other_than(&Machine::default()) && !Machine::default().is_other_than(&one));
        assert!(!Machine::of(Some(UUID), None).is_other_than(&Machine::of(None, Some("S1"))));
        assert!(one.is_other_than(&Machine::of(None, Some("S2"))));
    }

    #[test]
    fn a_digest_stays_the_same_and_is_read_back() {
        let digest = Machine::of(Some(UUID), None).product_uuid.expect("an identity");
        assert_eq!(digest.to_string(), "baa2002367a0dbf1");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for text in ["", "12", "000000000000000g", "+000000000000001"] {
            assert!(text.parse::<DmiDigest>().is_err(), "{text:?}");
        }
    }
}
