use serde::{Deserialize, Serialize};

/// Whether each RDMA device is in one network namespace alone, as
/// `/sys/module/ib_core/parameters/netns_mode` has it (`ib_devices_shared_netns`,
/// drivers/infiniband/core/device.c; Linux 5.2).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
