//! What a link has to be at least, as the configuration gives it.

use serde::{Deserialize, Serialize};

use super::{Rate, Words};

/// The least that the link of a port and the PCIe link of its adapter have to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkMinimum {
    pub rate: Option<Gbps>,
    pub width: Option<LinkWidth>,
    pub speed: Option<LinkSpeed>,
    pub pcie_width: Option<PcieWidth>,
    pub pcie_speed: Option<PcieSpeed>,
    pub firmware: Option<FirmwareVersion>,
}

impl LinkMinimum {
    /// What satisfies both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            rate: self.rate.max(other.rate),
            width: self.width.max(other.width),
            speed: self.speed.max(other.speed),
            pcie_width: self.pcie_width.max(other.pcie_width),
            pcie_speed: self.pcie_speed.max(other.pcie_speed),
            firmware: self.firmware.max(other.firmware),
        }
    }
}

/// A number in tenths, as it is written: `2.5`, `400`.
fn tenths(text: &str) -> Option<u32> {
    let (whole, tenth) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let is_padded = whole.len() > 1 && whole.starts_with('0');
    if !is_number(whole) || !is_number(tenth) || is_padded || whole.len() > 5 || tenth.len() > 1 {
        return None;
    }
    let tenths = whole.parse::<u32>().ok()? * 10 + tenth.parse::<u32>().ok()?;
    (tenths > 0).then_some(tenths)
}

fn of_tenths(tenths: u32) -> String {
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

/// The unit of a text, and the blank before it, taken off.
fn without_unit<'a>(text: &'a str, units: &[&str]) -> Option<&'a str> {
    let number = units.iter().find_map(|unit| text.strip_suffix(unit))?;
    Some(number.strip_suffix(' ').unwrap_or(number))
}

/// The number before what a link is called by its width and speed, as `ibprov status`
/// (`400 NDR`, `100 2X HDR`) and the kernel (`400 Gb/sec (4X NDR)`) show it.
fn before_link(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(end);
    let link = rest.strip_prefix(' ')?;
    let link = match link.strip_prefix("Gb/sec (") {
        Some(link) => link.strip_suffix(')')?,
        None => link,
    };
    let (width, speed) = link.split_once(' ').unwrap_or(("4x", link));
    let is_speed = LinkSpeed::from_typed(&speed.to_ascii_lowercase()).is_some();
    let is_link = is_speed && width.parse::<LinkWidth>().is_ok();
    is_link.then_some(number)
}

/// A rate in gigabits per second, as the kernel counts it: in steps of 0.1
/// (`rate_show()`, drivers/infiniband/core/sysfs.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gbps(u32);

impl Gbps {
    /// True if `rate` is this or more.
    pub fn is_met_by(self, rate: &Rate) -> bool {
        rate.gbps * 10.0 + 0.5 >= f64::from(self.0)
    }
}

parsed!(
    Gbps,
    "is not a rate: expected gigabits per second, such as \"400 Gb/s\" or \"400 NDR\"",
    |text| {
        let number = without_unit(text, &["Gb/s", "Gb/sec", "Gbps"]);
        number.or_else(|| before_link(text)).and_then(tenths).map(Self)
    }
);

/// A version of an adapter's firmware, as sysfs `fw_ver` shows it: `28.43.1014`. What a text
/// leaves out is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirmwareVersion([u32; 3]);

parsed!(
    FirmwareVersion,
    "is not a firmware version: expected numbers such as \"28.43.1014\"",
    |text| {
        let mut parts = [0; 3];
        let numbers = text.trim_start_matches(">=").trim_start().split('.');
        let is_read = numbers.clone().count() <= parts.len()
            && parts.iter_mut().zip(numbers).all(|(part, number)| {
                let is_number = number.len() <= 9 && number.bytes().all(|b| b.is_ascii_digit());
                number.parse().is_ok_and(|number| {
                    *part = number;
                    is_number
                })
            });
        is_read.then_some(Self(parts))
    }
);

displayed!(FirmwareVersion, Self([major, minor, build]) => "{major}.{minor}.{build}");

displayed!(Gbps, Self(tenths) => "{} Gb/s", of_tenths(*tenths));

/// The number of lanes of a port's link (InfiniBand Architecture,
/// PortInfo.LinkWidthActive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkWidth(u8);

impl LinkWidth {
    pub const fn lanes(self) -> u8 {
        self.0
    }
}

parsed!(
    LinkWidth,
    "is not a link width: expected \"1x\", \"2x\", \"4x\", \"8x\" or \"12x\"",
    |text| {
        let lanes = text.strip_suffix(['x', 'X']).filter(|lanes| !lanes.starts_with(['0', '+']))?;
        lanes.parse().ok().filter(|lanes| [1, 2, 4, 8, 12].contains(lanes)).map(Self)
    }
);

displayed!(LinkWidth, Self(lanes) => "{lanes}x");

/// The speed of one lane of a port's link, slowest first, by the names of `rate_show()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum LinkSpeed {
    /// 2.5 Gb/s.
    Sdr,
    /// 5 Gb/s.
    Ddr,
    /// 10 Gb/s.
    Qdr,
    /// 10 Gb/s, in another encoding.
    Fdr10,
    /// 14 Gb/s.
    Fdr,
    /// 25 Gb/s.
    Edr,
    /// 50 Gb/s.
    Hdr,
    /// 100 Gb/s.
    Ndr,
    /// 200 Gb/s.
    Xdr,
}

displayed!(LinkSpeed, speed => "{}", speed.typed().to_uppercase());

/// The number of lanes of a PCIe link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct PcieWidth(u8);

impl PcieWidth {
    /// As sysfs `current_link_width` and `max_link_width` print it
    /// (drivers/pci/pci-sysfs.c); `None` for what stands for a width that is not known.
    pub fn from_sysfs(text: &str) -> Option<Self> {
        text.parse().ok().filter(|lanes| Self::ALL.contains(lanes)).map(Self)
    }

    const ALL: [u8; 7] = [1, 2, 4, 8, 12, 16, 32];
}

parsed!(
    PcieWidth,
    "is not a PCIe width: expected \"x1\", \"x2\", \"x4\", \"x8\", \"x12\", \"x16\" or \"x32\"",
    |text| {
        let lanes = text.strip_prefix(['x', 'X']).filter(|lanes| !lanes.starts_with(['0', '+']));
        lanes.and_then(Self::from_sysfs)
    }
);

displayed!(PcieWidth, Self(lanes) => "x{lanes}");

/// The speed of a PCIe link in gigatransfers per second and lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PcieSpeed(u32);

impl PcieSpeed {
    /// As sysfs `current_link_speed` and `max_link_speed` print it: `16.0 GT/s PCIe`, before
    /// Linux 5.9 `16 GT/s`; `None` for `Unknown`.
    pub fn from_sysfs(text: &str) -> Option<Self> {
        tenths(text.split_once(" GT/s")?.0).filter(|speed| Self::ALL.contains(speed)).map(Self)
    }

    const ALL: [u32; 6] = [25, 50, 80, 160, 320, 640];
}

parsed!(
    PcieSpeed,
    "is not a PCIe speed: expected \"2.5 GT/s\", \"5 GT/s\", \"8 GT/s\", \"16 GT/s\", \"32 GT/s\" or \"64 GT/s\"",
    |text| {
        let speed =
            without_unit(&text.to_ascii_lowercase(), &["gt/s", "gt/s pcie"]).and_then(tenths);
        speed.filter(|speed| Self::ALL.contains(speed)).map(Self)
    }
);

displayed!(PcieSpeed, Self(tenths) => "{} GT/s", of_tenths(*tenths));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_compared_in_tenths() {
        let rate = |text: &str| text.parse::<Rate>().expect("rate");
        let least: Gbps = "400 Gb/s".parse().expect("minimum");
        assert!(least.is_met_by(&rate("400 Gb/sec (4X NDR)")));
        assert!(least.is_met_by(&rate("800 Gb/sec (4X XDR)")));
        assert!(!least.is_met_by(&rate("200 Gb/sec (2X NDR)")));
        let least: Gbps = "2.5Gb/sec".parse().expect("minimum");
        assert!(least.is_met_by(&rate("2.5 Gb/sec (1X SDR)")));
        assert!(!least.is_met_by(&rate("2 Gb/sec (1X SDR)")));
        assert_eq!(least.to_string(), "2.5 Gb/s");
        for shown in ["400 Gbps", "400 NDR", "400 ndr", "400 8x NDR", "400 Gb/sec (4X NDR)"] {
            assert_eq!(shown.parse::<Gbps>(), "400 Gb/s".parse(), "{shown}");
        }
        for bad in [
            "",
            "400",
            "Gb/s",
            "0 Gb/s",
            "-1 Gb/s",
            "4e2 Gb/s",
            "400 GB/s",
            "1.25 Gb/s",
            "NDR",
            "400NDR",
            "400 NDR)",
            "400 (4X NDR)",
            "400 3X NDR",
            "400 Gb/sec (4X NDR",
        ] {
            assert!(bad.parse::<Gbps>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_sysfs_shows_of_a_pcie_link_is_read() {
        let speed = |text: &str| PcieSpeed::from_sysfs(text).map(|s| s.to_string());
        assert_eq!(speed("16.0 GT/s PCIe").as_deref(), Some("16 GT/s"));
        assert_eq!(speed("2.5 GT/s").as_deref(), Some("2.5 GT/s"));
        assert_eq!(speed("Unknown"), None);
        assert_eq!(speed("Unknown speed"), None);
        assert_eq!(PcieWidth::from_sysfs("16").map(|w| w.to_string()).as_deref(), Some("x16"));
        for unknown in ["0", "63", "255", "x16", ""] {
            assert_eq!(PcieWidth::from_sysfs(unknown), None, "{unknown}");
        }
        assert_eq!("x16".parse::<PcieWidth>().ok(), PcieWidth::from_sysfs("16"));
        assert_eq!("16 GT/s".parse::<PcieSpeed>().ok(), PcieSpeed::from_sysfs("16.0 GT/s PCIe"));
        assert!("x+8".parse::<PcieWidth>().is_err() && "7 GT/s".parse::<PcieSpeed>().is_err());
    }

    #[test]
    fn of_two_minima_the_greater_holds() {
        let with = |rate: &str, width: Option<&str>| LinkMinimum {
            rate: rate.parse().ok(),
            width: width.and_then(|w| w.parse().ok()),
            ..LinkMinimum::default()
        };
        let both = with("200 Gb/s", Some("4X")).and(with("400 Gb/s", None));
        assert_eq!(both, with("400 Gb/s", Some("4x")));
        assert!(LinkSpeed::Fdr10 < LinkSpeed::Fdr && LinkSpeed::Hdr < LinkSpeed::Ndr);
        assert!("3x".parse::<LinkWidth>().is_err() && "0004x".parse::<LinkWidth>().is_err());
    }
}
