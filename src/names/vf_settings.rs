//! What a VF has beside its names: GUIDs, link state, driver, owner.

use serde::{Deserialize, Serialize};

use super::{Guid, Words as _};

/// The link state of a VF: what its port's state follows.
///
/// `IFLA_VF_LINK_STATE` (`include/uapi/linux/if_link.h`) calls them auto,
/// enable and disable; OFED's `sriov/N/policy` Follow, Up and Down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Policy {
    /// The physical port's state.
    Follow,
    /// Up, whatever the cable says; needs a virtualization-aware SM.
    Up,
    /// The VF's port stays down, whatever the cable says.
    Down,
}

impl Policy {
    /// The word that OFED's `sriov/N/policy` takes and gives; case counts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Follow => "Follow",
            Self::Up => "Up",
            Self::Down => "Down",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|policy| policy.word() == word)
    }
}

/// Who drives a VF on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum VfDriver {
    /// The host's own driver for it, as its modalias says (mlx5_core).
    Host,
    /// vfio-pci, for a VM; the host's own driver never probes it.
    VfioPci,
    /// No driver is bound to it.
    None,
}

/// To whom the GUIDs and the link state of a VF belong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum VfOwner {
    /// To the plan: what differs from it is put right.
    #[default]
    Plan,
    /// To a CNI plugin (ib-sriov-cni), from the first GUIDs on: it gives the VF those of a
    /// pod, and moves it to the network namespace of that.
    Cni,
}

/// What a PF administers for a VF, as it is read back from where it is set. What
/// that place does not have, or what cannot be read, is absent: a GUID that is absent is
/// unknown, never another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Administered {
    /// Its node GUID; zero is none.
    pub node_guid: Option<Guid>,
    /// Its port GUID; zero is none.
    pub port_guid: Option<Guid>,
    pub policy: Option<Policy>,
    /// For mlx4: the port GUID that the subnet manager has granted.
    pub granted: Option<Guid>,
    /// For mlx4: the VF's second InfiniBand port, if it has one.
    pub port2: Option<Port2>,
    /// The place where it is set has answered all that it has. False: the question was
    /// refused, this VF was left out of the answer, or a file could not be read.
    pub is_answered: bool,
}

/// What mlx4 has for the second InfiniBand port of a VF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Port2 {
    pub guid: Option<Guid>,
    /// What is granted; absent while the port of the PF is not active, of which mlx4 asks no
    /// subnet manager.
    pub granted: Option<Guid>,
}

/// The driver that keeps a VF for a virtual machine.
pub const VFIO: &str = "vfio-pci";

/// Drivers that keep a VF for a virtual machine: vfio-pci, and the kernel's own
/// variant for mlx5 VFs, which newer libvirt and administrators take for live
/// migration (drivers/vfio/pci/mlx5/main.c). Neither reads a GUID.
const VFIO_DRIVERS: [&str; 2] = [VFIO, "mlx5_vfio_pci"];

/// The driver keeps a VF for a virtual machine.
pub fn is_vfio(driver: &str) -> bool {
    VFIO_DRIVERS.contains(&driver)
}

/// The driver keeps a function for somebody else than this host: a virtual machine,
/// or one of Xen's (xen-pciback), or nobody yet (pci-stub). What the last two hold is
/// handed over as well, and yet it is not where a plan that says vfio-pci wants it.
pub fn keeps_for_others(driver: &str) -> bool {
    is_vfio(driver) || ["pci-stub", "xen-pciback"].contains(&driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_parse_back() {
        for &policy in Policy::ALL {
            assert_eq!(Policy::from_typed(&policy.to_string()), Some(policy));
        }
        for &driver in VfDriver::ALL {
            assert_eq!(VfDriver::from_typed(&driver.to_string()), Some(driver));
        }
        assert_eq!((Policy::from_typed("Follow"), VfDriver::from_typed("")), (None, None));
    }
}
