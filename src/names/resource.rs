//! What of the kernel a query waits for.

use std::fmt;
use std::str::FromStr;

use super::PciAddress;

/// What keeps the answer to a query back as long as it likes, for every query that needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// An adapter, by the address of its PF: its firmware, or a lock of its driver.
    Adapter(PciAddress),
    /// The lock of all netdevs (`rtnl_mutex`, net/core/rtnetlink.c).
    Rtnl,
    /// RDMA netlink: the lock of all RDMA devices (`devices_rwsem`,
    /// drivers/infiniband/core/device.c).
    RdmaNetlink,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adapter(pci) => pci.fmt(f),
            Self::Rtnl => f.write_str("rtnl"),
            Self::RdmaNetlink => f.write_str("rdma-netlink"),
        }
    }
}

impl FromStr for Resource {
    type Err = <PciAddress as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "rtnl" => Ok(Self::Rtnl),
            "rdma-netlink" => Ok(Self::RdmaNetlink),
            text => text.parse().map(Self::Adapter),
        }
    }
}
