//! What a PF's VFs shall be: the GUID plan of one PF, resolved to bytes.
//!
//! Made from the configuration, the pins and the host's identity; what is done
//! about it is planned elsewhere. It holds no template and no name that could
//! mean something else tomorrow.

use serde::Serialize;

use crate::names::{Binding, Guid, PciAddress, Policy, VfDriver, VfIndex, VfNames, VfOwner};

/// What one PF's VFs shall be. VF `i` is `vfs[i]`; their number is wanted too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WantedPf {
    /// The PF as it was found on this host.
    pub pf: PciAddress,
    /// Its VFs, from VF 0 on, without a gap; empty: no VFs are wanted.
    pub vfs: Vec<WantedVf>,
    pub binding: Binding,
}

/// What one VF shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WantedVf {
    pub index: VfIndex,
    pub node_guid: Guid,
    pub port_guid: Guid,
    pub policy: Policy,
    /// The configuration names that policy for this very VF, so it is set whoever
    /// uses the VF.
    pub policy_named: bool,
    pub driver: VfDriver,
    /// Whose it is once it has GUIDs.
    pub owner: VfOwner,
    /// What it is called on this host.
    pub names: VfNames,
}
