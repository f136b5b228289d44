//! What a card, a link, a netdev and a VF show.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize, Serializer};

use crate::names::{Guid, IfName, PciAddress, Policy, VfIndex};

/// A card, by its RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Card {
    /// `hca_type`: `MT4123`.
    pub hca_type: Option<String>,
    /// `board_id`: `MT_0000000223`.
    pub board: Option<String>,
    /// `fw_ver`.
    pub firmware: Option<String>,
}

/// The link of a port (InfiniBand Architecture, PortInfo), as the kernel
/// prints it in `/sys/class/infiniband/*/ports/*`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Logical state: `ACTIVE`, `INIT`, `DOWN`.
    pub state: Option<String>,
    /// Physical state: `LinkUp`, `Polling`.
    pub physical: Option<String>,
    /// `200 Gb/sec (4X HDR)`.
    pub rate: Option<String>,
    /// Its LID; none assigned if 0.
    pub lid: Option<u16>,
    /// The LID of the subnet manager; none known if 0.
    pub sm_lid: Option<u16>,
}

/// How a netdev is set. What cannot be read is absent: this is shown, not acted on,
/// and a netdev that goes away meanwhile has none of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NetDevState {
    /// `datagram` or `connected`.
    pub mode: Option<String>,
    /// The MTU, bytes.
    pub mtu: Option<u32>,
    /// `IFF_UP`: somebody brought it up.
    pub admin_up: bool,
    /// It has carrier; none if the kernel did not tell.
    pub carrier: Option<bool>,
}

/// One entry of a port's GID table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gid {
    /// Its index, which applications are configured with.
    pub index: u32,
    /// `IB`, `RoCE v1` or `RoCE v2`.
    pub kind: String,
    /// The GID.
    pub gid: Ipv6Addr,
    /// The IPv4 address that it stands for, for RoCE over IPv4.
    pub ipv4: Option<std::net::Ipv4Addr>,
    /// The netdev it belongs to, for RoCE.
    pub netdev: Option<IfName>,
}

/// A VF as its PF shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vf {
    /// N of `virtfnN`.
    pub index: VfIndex,
    /// Its PCI function.
    pub pci: PciAddress,
    /// The driver bound to it.
    pub driver: Option<String>,
    /// Its node GUID, administered at the PF.
    pub node_guid: Option<Guid>,
    /// Its port GUID, administered at the PF.
    pub port_guid: Option<Guid>,
    /// Its link policy, in the words of OFED: `Follow`, `Up` or `Down`.
    #[serde(serialize_with = "in_words_of_ofed")]
    pub policy: Option<Policy>,
}

fn in_words_of_ofed<S: Serializer>(policy: &Option<Policy>, s: S) -> Result<S::Ok, S::Error> {
    policy.map(Policy::word).serialize(s)
}
