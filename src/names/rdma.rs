use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::is_plain;

/// The name of an RDMA device, `mlx5_0` or `ibp75s0`: the entry in
/// `/sys/class/infiniband`. At most 63 bytes (`IB_DEVICE_NAME_MAX`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RdmaName(String);

/// Why a text is not an [`RdmaName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not an RDMA device name: expected letters, digits, '_', '-' or '.', as `rdma link` prints it, e.g. mlx5_0"
)]
pub struct RdmaNameError {
    text: String,
}

impl RdmaName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RdmaName {
    type Err = RdmaNameError;

    fn from_str(text: &str) -> Result<Self, RdmaNameError> {
        let good = text.len() <= 63 && is_plain(text);
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(RdmaNameError { text: text.chars().take(64).collect() })
        }
    }
}

impl fmt::Display for RdmaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The number of a physical port of an RDMA device, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(into = "u8", try_from = "i64")]
pub struct PortNumber(u8);

/// Why a number is not a [`PortNumber`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text} is not a port number: expected 1 to 254")]
pub struct PortNumberError {
    text: String,
}

impl PortNumber {
    /// Port 1, the only one of most devices.
    pub const FIRST: Self = Self(1);

    /// The port with this number.
    ///
    /// # Errors
    /// 0 is a switch's management port and 255 is reserved (InfiniBand
    /// Architecture, PortInfo): neither is a port of an HCA.
    pub fn new(number: i64) -> Result<Self, PortNumberError> {
        u8::try_from(number)
            .ok()
            .filter(|n| (1..=254).contains(n))
            .map(Self)
            .ok_or_else(|| PortNumberError { text: number.to_string() })
    }

    /// The number, from 1.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<i64> for PortNumber {
    type Error = PortNumberError;

    fn try_from(number: i64) -> Result<Self, PortNumberError> {
        Self::new(number)
    }
}

impl From<PortNumber> for u8 {
    fn from(port: PortNumber) -> Self {
        port.get()
    }
}

impl fmt::Display for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The port through which a tool of infiniband-diags sends its datagrams, as its options
/// `-C` and `-P`. Without them it takes the first port that is up, which may be another
/// adapter's (rdma-core, ibportstate(8)). What is not known is a placeholder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MadPort {
    /// The RDMA device.
    pub device: Option<RdmaName>,
    /// The port.
    pub port: Option<PortNumber>,
}

impl MadPort {
    /// The command that does this to the port itself: `enable`, `query`.
    pub fn ibportstate(&self, operation: &str) -> String {
        format!("ibportstate {self} -D 0 {} {operation}", self.number())
    }

    fn number(&self) -> String {
        self.port.map_or_else(|| "PORT".to_owned(), |port| port.to_string())
    }
}

impl fmt::Display for MadPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.device.as_ref().map_or("DEVICE", RdmaName::as_str);
        write!(f, "-C {device} -P {}", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_pass_and_paths_do_not() {
        for text in ["mlx5_0", "ibp75s0f0", "rocex525400c0fe123455", "hfi1_0"] {
            assert!(text.parse::<RdmaName>().is_ok(), "{text}");
        }
        for text in ["", "..", "-x", "a/b", "mlx5 0"] {
            assert!(text.parse::<RdmaName>().is_err(), "{text}");
        }
    }

    #[test]
    fn ports_count_from_one() {
        assert!(PortNumber::new(1).is_ok());
        for n in [0, -1, 255, 300] {
            assert!(PortNumber::new(n).is_err(), "{n}");
        }
    }
}
