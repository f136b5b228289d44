//! What of a link or an adapter is less than it has to be.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Code, listed};

use crate::names::{
    FirmwareVersion, Gbps, LinkSpeed, PciAddress, PcieSpeed, PcieWidth, Rate, displayed,
};

/// One thing of a port's link, of its adapter's PCIe link or of its firmware that is below the
/// configured minimum; without what it is, the kernel does not report it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Degraded {
    /// The rate of the port.
    Rate {
        is: Option<Rate>,
        /// As it has to be at least.
        minimum: Gbps,
    },
    /// The width of the port's link, in lanes.
    Width {
        is: Option<u8>,
        /// As it has to be at least.
        minimum: u8,
    },
    /// The speed of a lane of the port.
    Speed {
        /// As it is, in the kernel's word.
        is: Option<String>,
        /// As it has to be at least.
        minimum: LinkSpeed,
    },
    /// The width of the PCIe link, in lanes.
    PcieWidth {
        is: Option<PcieWidth>,
        /// As it has to be at least.
        minimum: PcieWidth,
    },
    /// The speed of the PCIe link.
    PcieSpeed {
        is: Option<PcieSpeed>,
        /// As it has to be at least.
        minimum: PcieSpeed,
    },
    /// The firmware of the adapter.
    Firmware {
        is: Option<FirmwareVersion>,
        /// As it has to be at least.
        minimum: FirmwareVersion,
    },
}

impl Degraded {
    /// The code of what is said of it.
    pub const fn code(&self) -> Code {
        match self {
            Self::Rate { .. } | Self::Width { .. } | Self::Speed { .. } => Code::PortDegraded,
            Self::PcieWidth { .. } | Self::PcieSpeed { .. } => Code::PcieBelowMinimum,
            Self::Firmware { .. } => Code::FirmwareBelowMinimum,
        }
    }

    /// All of it as one phrase.
    pub fn phrase(all: &[Self]) -> String {
        listed(all)
    }
}

impl fmt::Display for Degraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut say = |what: &str, is: Option<String>, minimum: String| {
            let is = is.unwrap_or_else(|| "unknown".to_owned());
            write!(f, "{what} {is}, minimum {minimum}")
        };
        match self {
            Self::Rate { is, minimum } => {
                say("rate", is.as_ref().map(ToString::to_string), minimum.to_string())
            }
            Self::Width { is, minimum } => {
                say("link width", is.map(|lanes| format!("{lanes}x")), format!("{minimum}x"))
            }
            Self::Speed { is, minimum } => {
                say("link speed", is.as_ref().map(|s| s.to_uppercase()), minimum.to_string())
            }
            Self::PcieWidth { is, minimum } => {
                say("PCIe width", is.map(|w| w.to_string()), minimum.to_string())
            }
            Self::PcieSpeed { is, minimum } => {
                say("PCIe speed", is.map(|s| s.to_string()), minimum.to_string())
            }
            Self::Firmware { is, minimum } => {
                say("firmware version", is.map(|v| v.to_string()), minimum.to_string())
            }
        }
    }
}

/// The PCIe link of a function, as sysfs `current_link_width`, `max_link_width` and their
/// siblings of the speed show it. What is not known is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PcieLink {
    /// Its width, in lanes.
    pub width: Option<PcieWidth>,
    pub speed: Option<PcieSpeed>,
    /// The width that the adapter can have.
    pub adapter_width: Option<PcieWidth>,
    /// The speed that the adapter can have.
    pub adapter_speed: Option<PcieSpeed>,
    /// The width that the slot can have: that of the port of the switch or root complex
    /// above.
    pub slot_width: Option<PcieWidth>,
    /// The speed that the slot can have.
    pub slot_speed: Option<PcieSpeed>,
    /// The first link above the slot, from the root port down, that is narrower than both its ends
    /// can be.
    pub narrow_above: Option<NarrowLink>,
}

/// A PCIe link between two bridges that is narrower than both can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NarrowLink {
    /// The root port, or the downstream port of a switch.
    pub above: PciAddress,
    /// The upstream port of a switch below it.
    pub below: PciAddress,
    /// Its width, in lanes.
    pub width: PcieWidth,
    /// The width that both can have.
    pub can_be: PcieWidth,
}

displayed!(NarrowLink, Self { above, below, width, can_be } =>
    "above the slot, the PCIe width between {above} and {below} is {width}, and both are capable of {can_be}");

impl PcieLink {
    /// What it loses, in one phrase, where adapter and slot can both have more.
    pub fn loss(&self) -> Option<String> {
        let lost = [
            lost("width", self.width, self.adapter_width, self.slot_width),
            lost("speed", self.speed, self.adapter_speed, self.slot_speed),
        ];
        let lost: Vec<String> = lost.into_iter().flatten().collect();
        (!lost.is_empty()).then(|| lost.join("; "))
    }
}

fn lost<T: Ord + Copy + fmt::Display>(
    what: &str,
    is: Option<T>,
    adapter: Option<T>,
    slot: Option<T>,
) -> Option<String> {
    let can = adapter?.min(slot?);
    let is = is.filter(|is| *is < can)?;
    Some(format!("the PCIe {what} is {is}, and adapter and slot are capable of {can}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_adapter_and_slot_can_both_have_is_lost() {
        let width = PcieWidth::from_sysfs;
        let link = |is, adapter, slot| PcieLink {
            width: width(is),
            adapter_width: width(adapter),
            slot_width: width(slot),
            ..PcieLink::default()
        };
        assert_eq!(link("8", "16", "8").loss(), None, "a slot of eight lanes");
        assert_eq!(link("8", "8", "16").loss(), None, "an adapter of eight lanes");
        assert_eq!(link("8", "16", "0").loss(), None, "nothing is known of the slot");
        assert_eq!(
            link("4", "16", "8").loss().as_deref(),
            Some("the PCIe width is x4, and adapter and slot are capable of x8")
        );
    }
}
