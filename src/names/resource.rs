//! What of the kernel a query waits for.

use std::str::FromStr;

use super::PciAddress;

/// What keeps the answer to a query back as long as it likes, for every query that needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum Resource {
    /// An adapter, by the address of its PF: its firmware, or a lock of its driver.
    #[strum(to_string = "{0}")]
    Adapter(PciAddress),
    /// The lock of all netdevs (`rtnl_mutex`, net/core/rtnetlink.c).
    #[strum(to_string = "rtnl")]
    Rtnl,
    /// RDMA netlink: the lock of all RDMA devices (`devices_rwsem`,
    /// drivers/infiniband/core/device.c).
    #[strum(to_string = "rdma-netlink")]
    RdmaNetlink,
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
