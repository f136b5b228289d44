//! The rate of a link.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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

/// The text is no rate of a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the rate of a link")]
pub struct RateError(String);

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let parts = || {
            let (gbps, rest) = text.split_once(" Gb/sec (")?;
            let (width, speed) = rest.strip_suffix(')')?.split_once("X ")?;
            let gbps: f64 = gbps.parse().ok()?;
            let is_word = speed.chars().all(|c| c.is_ascii_alphanumeric()) && !speed.is_empty();
            let rate = Self { gbps, width: width.parse().ok()?, speed: speed.to_lowercase() };
            (gbps.is_finite() && gbps >= 0.0 && is_word).then_some(rate)
        };
        parts().ok_or_else(|| RateError(text.to_owned()))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Gb/sec ({}X {})", self.gbps, self.width, self.speed.to_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
