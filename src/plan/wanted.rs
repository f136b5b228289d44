//! What a PF's VFs shall be: the GUID plan of one PF, resolved to bytes.
//!
//! Made from the configuration, the pins and the host's identity; what is done
//! about it is planned elsewhere. It holds no template and no name that could
//! mean something else tomorrow.

use serde::Serialize;

use crate::names::{Guid, PciAddress, VfIndex};

/// What one PF's VFs shall be. VF `i` is `vfs[i]`; their number is wanted too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WantedPf {
    /// The PF as it was found on this host.
    pub pf: PciAddress,
    /// Its VFs, from VF 0 on, without a gap; empty: no VFs are wanted.
    pub vfs: Vec<WantedVf>,
}

/// What one VF shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WantedVf {
    /// Which VF.
    pub index: VfIndex,
    /// Its node GUID.
    pub node_guid: Guid,
    /// Its port GUID.
    pub port_guid: Guid,
    /// Its link policy.
    pub policy: Policy,
    /// Who drives it.
    pub driver: VfDriver,
}

/// The link policy of a VF: what its port's state follows.
///
/// `IFLA_VF_LINK_STATE` (`include/uapi/linux/if_link.h`) calls them auto,
/// enable and disable; OFED's `sriov/N/policy` Follow, Up and Down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The physical port's state.
    Follow,
    /// Up, whatever the cable says; needs a virtualization-aware SM.
    Up,
    /// Down.
    Down,
}

/// Who drives a VF on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VfDriver {
    /// The host's own driver for it, as its modalias says (mlx5_core).
    Default,
    /// vfio-pci, for a VM; the host's own driver never probes it.
    VfioPci,
    /// Nobody.
    None,
}
