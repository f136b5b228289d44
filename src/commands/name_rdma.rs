//! `ibprov name-rdma`, which ibprov's own rules of udev run when a VF's RDMA device
//! comes (`crate::host::persistent_names`).

use anyhow::Context as _;

use crate::host::Root;
use crate::names::{PciAddress, RdmaName};
use crate::observe::pf;

/// Give the RDMA device of a function its name.
///
/// # Errors
/// The kernel refuses: another device is called so, or it is not root who asks.
pub fn run(pci: PciAddress, name: &RdmaName) -> anyhow::Result<()> {
    pf::name_rdma(&Root::live(), pci, name)
        .map_err(|e| anyhow::anyhow!(crate::host::answer(&e)))
        .with_context(|| format!("set the name of the RDMA device of {pci} to {name} by netlink"))
}
