//! The link of a port: what it speaks, its state and its rate.

use serde::{Deserialize, Serialize};

use super::Words;

/// What a port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum LinkLayer {
    /// InfiniBand or Omni-Path: has IPoIB.
    #[serde(rename = "infiniband")]
    InfiniBand,
    /// Ethernet: RoCE or iWARP.
    Ethernet,
    /// The kernel says `Unknown` or nothing readable.
    Unknown,
}

impl Words for LinkLayer {
    // What a port can be set to.
    const ALL: &'static [Self] = &[Self::InfiniBand, Self::Ethernet];
}

/// The type of a port of a ConnectX-3, as `mlx4_portN` of its PCI function has it
/// (`set_port_type()`, drivers/net/ethernet/mellanox/mlx4/main.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum PortType {
    Ib,
    Eth,
}

impl PortType {
    /// As sysfs prints it: `eth`, or `auto (eth)` if the driver has found it out by itself;
    /// `None` for `auto`, which is not decided yet.
    pub fn from_sysfs(text: &str) -> Option<Self> {
        let word = text.strip_prefix("auto (").and_then(|rest| rest.strip_suffix(')'));
        Self::from_typed(word.unwrap_or(text))
    }

    /// The link layer of a port of this type.
    pub const fn link_layer(self) -> LinkLayer {
        match self {
            Self::Ib => LinkLayer::InfiniBand,
            Self::Eth => LinkLayer::Ethernet,
        }
    }
}

/// The logical state of a port (InfiniBand Architecture, PortInfo.PortState), as
/// `state_show()` of drivers/infiniband/core/sysfs.c spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum LinkState {
    Nop,
    /// The physical link is not up, or the port was told to be down.
    Down,
    /// The link is up, and no subnet manager has configured it.
    Init,
    /// A subnet manager has begun to configure it.
    Armed,
    /// A subnet manager has configured it.
    Active,
    /// Active, with the link lost for a moment.
    ActiveDefer,
    Unknown,
}

/// The physical state of a port (PortInfo.PortPhysicalState), as `phys_state_to_str()` of
/// the same file spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum PhysicalState {
    /// It neither sends nor listens.
    Sleep,
    /// It sees no signal.
    Polling,
    /// It is switched off.
    Disabled,
    PortConfigurationTraining,
    LinkUp,
    LinkErrorRecovery,
    #[strum(serialize = "Phy Test")]
    PhyTest,
    #[strum(serialize = "<unknown>")]
    Unknown,
}

impl LinkState {
    /// The kernel's word for it.
    pub fn word(self) -> &'static str {
        self.typed()
    }

    pub fn from_word(word: &str) -> Self {
        Self::from_typed(word).unwrap_or(Self::Unknown)
    }
}

impl PhysicalState {
    /// The kernel's word for it.
    pub fn word(self) -> &'static str {
        self.typed()
    }

    pub fn from_word(word: &str) -> Self {
        Self::from_typed(word).unwrap_or(Self::Unknown)
    }
}

/// The rate of a port's link, as `rate_show()` of drivers/infiniband/core/sysfs.c prints
/// it: `400 Gb/sec (4X NDR)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rate {
    /// Gigabits in a second, over all lanes: 400, 2.5.
    #[serde(serialize_with = "whole_if_it_is")]
    pub gbps: f64,
    /// How many lanes it has.
    pub width: u8,
    /// What each of them is: `ndr`.
    pub speed: String,
}

// No rate of a link is NaN: it is read by `from_str` alone.
impl Eq for Rate {}

fn whole_if_it_is<S: serde::Serializer>(gbps: &f64, s: S) -> Result<S::Ok, S::Error> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is no more")]
    match gbps {
        gbps if gbps.fract() == 0.0 && (0.0..1e9).contains(gbps) => s.serialize_u32(*gbps as u32),
        gbps => s.serialize_f64(*gbps),
    }
}

parsed!(Rate, "is not the rate of a link", |text| {
    let (gbps, rest) = text.split_once(" Gb/sec (")?;
    let (width, speed) = rest.strip_suffix(')')?.split_once("X ")?;
    let gbps: f64 = gbps.parse().ok()?;
    let is_word = speed.chars().all(|c| c.is_ascii_alphanumeric()) && !speed.is_empty();
    let rate = Self { gbps, width: width.parse().ok()?, speed: speed.to_lowercase() };
    (gbps.is_finite() && gbps >= 0.0 && is_word).then_some(rate)
});

displayed!(Rate, Self { gbps, width, speed } => "{gbps} Gb/sec ({width}X {})", speed.to_uppercase());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sysfs_prints_is_read() {
        for (text, want) in [
            ("ib", Some(PortType::Ib)),
            ("eth", Some(PortType::Eth)),
            ("auto (eth)", Some(PortType::Eth)),
            ("auto", None),
            ("", None),
        ] {
            assert_eq!(PortType::from_sysfs(text), want, "{text}");
        }
    }

    use strum::VariantArray as _;

    #[test]
    fn the_kernels_words_are_read_back() {
        for state in LinkState::VARIANTS.iter().copied() {
            assert_eq!(LinkState::from_word(state.word()), state);
        }
        for state in PhysicalState::VARIANTS.iter().copied() {
            assert_eq!(PhysicalState::from_word(state.word()), state);
        }
        assert_eq!(LinkState::from_word("active"), LinkState::Unknown);
    }

    #[test]
    fn rates_are_read_back() {
        for text in ["400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)", "50 Gb/sec (2X EDR)"] {
            let rate: Rate = text.parse().expect(text);
            assert_eq!(rate.to_string(), text);
            let json = serde_json::to_string(&rate).expect("JSON");
            assert_eq!(serde_json::from_str::<Rate>(&json).expect("rate"), rate);
        }
        let rate: Rate = "200 Gb/sec (4X HDR)".parse().expect("rate");
        let json = serde_json::to_value(&rate).expect("JSON");
        assert_eq!(json, serde_json::json!({"gbps": 200, "width": 4, "speed": "hdr"}));
        for bad in ["", "200", "NaN Gb/sec (4X HDR)", "2 Gb/sec (4X )", "2 Gb/sec (4X \u{7})"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }
}
