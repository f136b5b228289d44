//! What a card, a link, a netdev and a VF show.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::{Away, Code, Finding, Kind, Report, Verdict};
use crate::names::{
    GidKind, Guid, IfName, LinkState, Membership, Object, PciAddress, PhysicalState, Policy,
    PortNumber, Rate, RdmaName, TablePKey, VfIndex,
};

/// A card, by its RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Card {
    /// `hca_type`: `MT4123`.
    pub hca_type: Option<String>,
    /// `board_id`: `MT_0000000223`.
    pub board: Option<String>,
    /// `fw_ver`.
    pub firmware: Option<String>,
    /// The NUMA node of its PCI function; none if the firmware of the host names none.
    #[serde(default)]
    pub numa_node: Option<u16>,
    /// The upstream port of the PCIe switch below which it is; none if there is no switch.
    #[serde(default)]
    pub pcie_switch: Option<PciAddress>,
}

/// The node description of an RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeDescription {
    /// As the device reports it to the subnet manager.
    pub text: String,
    /// What rdma-ndd sets; `None` if it is not active.
    pub expected: Option<String>,
}

impl NodeDescription {
    /// What rdma-ndd would have set, where it is something else.
    pub fn deviates_from(&self) -> Option<&str> {
        self.expected.as_deref().filter(|expected| *expected != self.text)
    }
}

/// The link of a port (InfiniBand Architecture, PortInfo), as the kernel
/// prints it in `/sys/class/infiniband/*/ports/*`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Link {
    /// Logical state.
    pub state: Option<LinkState>,
    pub physical: Option<PhysicalState>,
    pub rate: Option<Rate>,
    /// Its LID; none if none is assigned that a peer can use.
    pub lid: Option<u32>,
    /// The LID of the subnet manager; none if none is known.
    pub sm_lid: Option<u32>,
    /// How often the link has gone down since the driver was loaded or the counter was reset
    /// (InfiniBand Architecture, PortCounters); it stays at 255 where it has 8 bits.
    #[serde(default)]
    pub link_downed: Option<u64>,
}

impl Link {
    /// True if the fabric can use the port: its link is up, and a subnet manager has made it
    /// active and given it a LID.
    pub fn is_active(&self) -> bool {
        self.physical == Some(PhysicalState::LinkUp)
            && matches!(self.state, Some(LinkState::Active | LinkState::ActiveDefer))
            && self.lid.is_some()
    }
}

/// How a netdev is set. What cannot be read is absent: this is shown, not acted on,
/// and a netdev that goes away meanwhile has none of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NetDevState {
    /// `datagram` or `connected`.
    pub mode: Option<String>,
    /// The MTU, bytes.
    pub mtu: Option<u32>,
    /// `IFF_UP`: somebody brought it up; none if a copy does not tell.
    pub admin_up: Option<bool>,
    /// It has carrier; none if the kernel did not tell.
    pub carrier: Option<bool>,
}

/// One entry of a port's GID table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Gid {
    /// Its index, which applications are configured with.
    pub index: u32,
    /// What it is for.
    pub kind: GidKind,
    pub gid: Ipv6Addr,
    /// The IPv4 address that it stands for, for RoCE over IPv4.
    pub ipv4: Option<std::net::Ipv4Addr>,
    /// The netdev it belongs to, for RoCE.
    pub netdev: Option<IfName>,
}

/// One entry of a port's P_Key table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PKeyEntry {
    /// Its index, which applications are configured with.
    pub index: u16,
    /// Partition and membership bit, `0x7fff`.
    pub pkey: TablePKey,
    /// `full` or `limited`.
    pub membership: Membership,
}

impl PKeyEntry {
    /// The entry with this P_Key.
    pub const fn new(index: u16, pkey: TablePKey) -> Self {
        Self { index, pkey, membership: pkey.membership() }
    }
}

/// A VF, and the netdev and RDMA device it has on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VfStatus {
    /// N of `virtfnN`.
    pub index: VfIndex,
    pub pci: PciAddress,
    /// The driver bound to it.
    pub driver: Option<String>,
    /// Its node GUID, administered at the PF.
    pub node_guid: Option<Guid>,
    /// Its port GUID, administered at the PF.
    pub port_guid: Option<Guid>,
    /// That of its second InfiniBand port, if it has one (mlx4).
    pub port2_guid: Option<Guid>,
    /// Its link state.
    #[serde(rename = "link_state")]
    pub policy: Option<Policy>,
    /// Its RDMA device here.
    pub rdma: Option<RdmaName>,
    /// Its netdev here.
    pub netdev: Option<IfName>,
    /// What of it is in another network namespace; `null`: nothing.
    pub other_namespace: Option<Away>,
    /// Its ports here; none unless a driver of this host has it.
    pub ports: Vec<VfPortStatus>,
}

/// A port of a VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VfPortStatus {
    /// The number of the port, counted from 1.
    pub port: PortNumber,
    #[serde(rename = "port_guid")]
    pub guid: Option<Guid>,
    #[serde(flatten)]
    pub link: Link,
}

impl VfStatus {
    /// How its port `port` is called in findings.
    pub fn port_label(&self, port: &VfPortStatus) -> Option<Object> {
        Some(Object::port_of(self.rdma.clone()?, port.port, self.pci))
    }
}

/// What was found in the GID table of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GidReport {
    pub rdma: RdmaName,
    pub port: PortNumber,
    /// What was looked for, in words.
    #[serde(skip)]
    pub wanted: String,
    /// The entries that fit.
    pub gids: Vec<Gid>,
    /// How many entries the table has.
    pub entries: usize,
}

impl GidReport {
    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let wanted = &self.wanted;
        let (verdict, wrong) = match self.gids.as_slice() {
            [_] => (Verdict::Ready, None),
            [] => {
                let message = format!(
                    "none of the {} entries of the GID table is {wanted}: `ibprov status --gids` shows them",
                    self.entries
                );
                (Verdict::NotReady, Some(message))
            }
            several => {
                let of = |gid: &Gid| format!("{} ({}, {})", gid.index, gid.kind.word(), gid.gid);
                let each: Vec<String> = several.iter().map(of).collect();
                let message = format!(
                    "several entries of the GID table are {wanted}: {}; give --type and --address",
                    each.join(", ")
                );
                (Verdict::NotReady, Some(message))
            }
        };
        let object = format!("{}/{}", self.rdma, self.port);
        let wrong = wrong.map(|wrong| Finding::error(Code::NoSuchGid, wrong).about(object));
        Report::new(Kind::Gid, verdict, wrong.into_iter().collect(), self)
    }
}
