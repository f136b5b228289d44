use std::fmt;
use std::str::FromStr;

/// The address of a PCI function, `0000:4b:00.0`: domain, bus, device, function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// Why a text is not a [`PciAddress`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a PCI address: expected domain:bus:device.function in hex, as `lspci -D` prints it, e.g. 0000:4b:00.0"
)]
pub struct PciAddressError {
    text: String,
}

impl PciAddress {
    /// The address as people write it: without a domain, as `lspci` prints it (`4b:00.0`),
    /// domain 0000 is meant. Text of the kernel is parsed by [`FromStr`], which wants all
    /// of it: in a log, `10:12.5` is a time.
    ///
    /// # Errors
    /// Other text.
    pub fn typed(text: &str) -> Result<Self, PciAddressError> {
        match text.matches(':').count() {
            1 => format!("0000:{text}").parse().map_err(|_| PciAddressError::of(text)),
            _ => text.parse(),
        }
    }

    /// True if both are functions of one adapter.
    pub const fn is_beside(self, other: Self) -> bool {
        self.domain == other.domain && self.bus == other.bus && self.device == other.device
    }

    /// The number of the adapter's port that an mlx5 function has: each has one.
    pub const fn port_of_adapter(self) -> u8 {
        self.function + 1
    }

    fn parse(text: &str) -> Option<Self> {
        let (domain, rest) = text.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (device, function) = rest.split_once('.')?;
        // Domains above ffff exist (Hyper-V, VMD): the kernel prints %04x.
        let domain = hex(domain, 4..=8)?;
        let bus = u8::try_from(hex(bus, 2..=2)?).ok()?;
        let device = u8::try_from(hex(device, 2..=2)?).ok()?;
        let function = u8::try_from(hex(function, 1..=1)?).ok()?;
        (device < 32 && function < 8).then_some(Self { domain, bus, device, function })
    }
}

fn hex(digits: &str, width: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let well_formed =
        width.contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    well_formed.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

impl PciAddressError {
    fn of(text: &str) -> Self {
        Self { text: text.chars().take(64).collect() }
    }
}

impl FromStr for PciAddress {
    type Err = PciAddressError;

    fn from_str(text: &str) -> Result<Self, PciAddressError> {
        Self::parse(text).ok_or_else(|| PciAddressError::of(text))
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl fmt::Debug for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PciAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sysfs_names_parse_and_print_back() {
        for text in ["0000:4b:00.0", "10000:e1:1f.7", "abcd1234:00:02.3"] {
            assert_eq!(text.parse::<PciAddress>().map(|a| a.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_not_a_full_address_is_refused() {
        for text in [
            "",
            "4b:00.0",
            "0000:4b:00",
            "0000:4b:20.0",
            "0000:4b:00.8",
            "0000:4b:00.0/x",
            "../..:00.0",
            "0000:+b:00.0",
        ] {
            assert!(text.parse::<PciAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn people_may_leave_out_domain_0() {
        let typed = |text| PciAddress::typed(text).map(|a| a.to_string());
        for (text, want) in [
            ("4b:00.0", "0000:4b:00.0"),
            ("0000:4b:00.0", "0000:4b:00.0"),
            ("10000:e1:1f.7", "10000:e1:1f.7"),
        ] {
            assert_eq!(typed(text), Ok(want.to_owned()));
        }
        for text in ["4b:00", "b:00.0", "4b:00.8", ":4b:00.0", "00.0", ""] {
            let e = typed(text).expect_err(text).to_string();
            assert!(e.starts_with(&format!("{text:?} is not a PCI address: ")), "{e}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _parsed: Result<PciAddress, _> = text.parse();
        }
    }
}
