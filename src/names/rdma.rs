//! RDMA devices: their names, and the network namespaces that they are in.

use serde::{Deserialize, Serialize};

use super::is_plain;

/// The name of an RDMA device, `mlx5_0` or `ibp75s0`: the entry in
/// `/sys/class/infiniband`. At most 63 bytes (`IB_DEVICE_NAME_MAX`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RdmaName(String);

as_it_is!(RdmaName);

const NOT_A_DEVICE: &str = "is not an RDMA device name: expected letters, digits, '_', '-' or '.', as `rdma link` prints it, e.g. mlx5_0";

parsed!(RdmaName, NOT_A_DEVICE, |text| {
    (text.len() <= 63 && is_plain(text)).then(|| Self(text.to_owned()))
});

/// Whether each RDMA device is in one network namespace alone, as
/// `/sys/module/ib_core/parameters/netns_mode` has it (`ib_devices_shared_netns`,
/// drivers/infiniband/core/device.c; Linux 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum NetnsMode {
    /// In one alone.
    Exclusive,
    /// Every namespace has them all: the kernel's default.
    Shared,
}

impl NetnsMode {
    /// As a parameter of a module has it: `Y` in sysfs; `1`, `y` in modprobe.d
    /// (`kstrtobool()`).
    pub fn from_parameter(text: &str) -> Option<Self> {
        match text {
            "1" | "Y" | "y" | "on" => Some(Self::Shared),
            "0" | "N" | "n" | "off" => Some(Self::Exclusive),
            _ => None,
        }
    }

    /// The number that the kernel has for it.
    pub const fn number(self) -> u8 {
        match self {
            Self::Exclusive => 0,
            Self::Shared => 1,
        }
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
}
