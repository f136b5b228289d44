//! What a child can be asked for and what it answers, as lines of JSON.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::host::netlink::VfSetting;
use crate::model::{IfaceStep, PKeyEntry, PcieLink, Refusal, Use, holders::Holder};
use crate::names::{IfName, Mode, Moment, PciAddress, PortNumber, RdmaName, UnitName, VfIndex};
use crate::observe::administered::{AdministeredVf, VfInfoQuery};
use crate::observe::link::PortAnswer;
use crate::observe::{Backend, ObservedPf, Product, VfDevices};

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Read what PFs administer for VFs.
    Administered(Vec<VfInfoQuery>),
    /// Read what the product data of a function say that it is for.
    Product(PciAddress),
    /// Read the serial number in the product data of a function.
    Serial(PciAddress),
    /// Read who alone may bind a function.
    Override(PciAddress),
    Uses(Vec<PciAddress>),
    /// What uses these netdevs by the network.
    NetdevUses(Vec<IfName>),
    /// What uses the ports of these netdevs by the RDMA connection manager.
    CmUses(Vec<IfName>),
    /// How many netdevs ib_ipoib has of these RDMA devices.
    IpoibNetdevs(Vec<RdmaName>),
    /// What keeps these functions, or the modules of their drivers, busy.
    Holders(Vec<PciAddress>),
    /// Write an attribute, unless one of these VFs is in use.
    Write {
        path: String,
        value: String,
        /// The VFs that it takes away.
        unless_used: Vec<PciAddress>,
    },
    /// Write an attribute as it was before the work. What is gone needs nothing.
    Restore {
        path: String,
        value: String,
    },
    /// Set something for a VF by netlink.
    SetVf {
        ifindex: u32,
        vf: VfIndex,
        setting: VfSetting,
    },
    /// Give a function to a driver, whatever automatic probing says.
    Bind {
        pci: PciAddress,
        driver: String,
        /// Its `driver_override` as it was; empty: none.
        before: String,
        /// What its RDMA device is to be called; `None`: as it comes.
        rdma: Option<RdmaName>,
    },
    /// Read the state of a port.
    Port {
        pci: PciAddress,
        device: RdmaName,
        port: PortNumber,
    },
    /// Read the P_Key table of a port.
    PKeys {
        pci: PciAddress,
        device: RdmaName,
        port: PortNumber,
    },
    /// Read the PCIe link of a function.
    Pcie(PciAddress),
    /// Read whether a netdev has carrier.
    Carrier(IfName),
    /// Read the addresses of all netdevs, by their names.
    Addresses,
    /// Read those that a peer can use, by the indices of their netdevs.
    GlobalAddresses,
    /// Read what only netlink tells of an IPoIB interface, by its index.
    IpoibSettings(u32),
    /// Take a step at an interface.
    SetInterface {
        ifindex: u32,
        step: IfaceStep,
    },
    StartUnit {
        unit: UnitName,
        /// See its job to its end; otherwise only have it begun.
        wait: bool,
        /// Until when.
        until: Moment,
    },
    /// These, one after the other, all of them.
    Each(Vec<Request>),
}

impl Request {
    /// Whether the host is another one afterwards. To start a unit is systemd's work, which
    /// goes on by itself.
    pub(super) fn changes(&self) -> bool {
        match self {
            Self::Write { .. }
            | Self::Restore { .. }
            | Self::SetVf { .. }
            | Self::Bind { .. }
            | Self::SetInterface { .. } => true,
            Self::Each(requests) => requests.iter().any(Self::changes),
            Self::Administered(_)
            | Self::Product(_)
            | Self::Serial(_)
            | Self::Override(_)
            | Self::Uses(_)
            | Self::NetdevUses(_)
            | Self::CmUses(_)
            | Self::IpoibNetdevs(_)
            | Self::Holders(_)
            | Self::Port { .. }
            | Self::PKeys { .. }
            | Self::Pcie(_)
            | Self::Carrier(_)
            | Self::Addresses
            | Self::GlobalAddresses
            | Self::IpoibSettings(_)
            | Self::StartUnit { .. } => false,
        }
    }

    /// It puts back what was changed for the time of the work, and nothing else.
    pub(super) fn restores(&self) -> bool {
        match self {
            Self::Restore { .. } => true,
            Self::Each(requests) => requests.iter().all(Self::restores),
            _ => false,
        }
    }

    /// All questions for what a PF administers. By netlink it is one for all VFs;
    /// files can be read by several threads.
    pub fn all_of(observed: &ObservedPf) -> Vec<Self> {
        Self::in_parts(observed.question(|_| true))
    }

    /// The question in as many requests as are worth a thread.
    pub(super) fn in_parts(question: VfInfoQuery) -> Vec<Self> {
        let VfInfoQuery { pf, backend, vfs } = question;
        let chunk = match backend {
            Backend::Netlink { .. } => vfs.len().max(1),
            _ => vfs.len().div_ceil(4).max(4),
        };
        let one = |vfs: &[_]| {
            let (backend, vfs) = (backend.clone(), vfs.to_vec());
            Self::Administered(vec![VfInfoQuery { pf, backend, vfs }])
        };
        vfs.chunks(chunk).map(one).collect()
    }
}

/// What became of a request that was not refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Done,
    /// It is bound; what it shows of itself since then, if all of it could be read.
    Bound(Option<VfDevices>),
    /// Not done: somebody uses these VFs.
    InUse(Vec<(PciAddress, Vec<Use>)>),
    /// What the PFs administer, VF by VF.
    Administered(Vec<AdministeredVf>),
    Product(Product),
    /// The serial number, if there is one.
    Serial(Option<String>),
    /// Who alone may bind it; without: whoever can.
    Override(Option<String>),
    /// Who uses them, VF by VF or netdev by netdev.
    Uses(Vec<Vec<Use>>),
    /// How many netdevs ib_ipoib has of them, in their order, as
    /// [`crate::observe::ipoib_netdevs`] has it.
    IpoibNetdevs(Vec<Option<usize>>),
    Holders {
        holders: Vec<Holder>,
        /// What could not be read, one line each, for a report.
        problems: Vec<String>,
    },
    /// The state of the port.
    Port {
        answer: PortAnswer,
        /// What could not be read, one line each, for a report.
        problems: Vec<String>,
    },
    /// The P_Key table of the port.
    PKeys {
        table: Option<Vec<PKeyEntry>>,
        /// What could not be read, one line each, for a report.
        problems: Vec<String>,
    },
    /// The PCIe link of the function.
    Pcie(PcieLink),
    /// The netdev is up and has carrier.
    Carrier(bool),
    /// The addresses, each with its netdev's name, as
    /// [`crate::host::netlink::addresses`] has them.
    Addresses(Vec<(String, String)>),
    /// The addresses that a peer can use, as
    /// [`crate::host::netlink::global_addresses`] has them.
    GlobalAddresses(Vec<(u32, IpAddr, u8)>),
    /// What netlink tells of an IPoIB interface.
    IpoibSettings {
        mode: Option<Mode>,
        /// User space may join multicast groups.
        umcast: Option<bool>,
    },
    Each(Vec<Result<Answer, Refusal>>),
}

/// A request or what became of it on its way, with the number that joins them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Numbered<T> {
    pub(super) number: u64,
    pub(super) what: T,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Guid;

    #[test]
    fn requests_and_answers_survive_the_way() {
        let pci: PciAddress = "0000:01:00.1".parse().expect("address");
        let vf = VfIndex::new(0).expect("index");
        let request = Request::Each(vec![
            Request::Administered(vec![VfInfoQuery {
                pf: "0000:01:00.0".parse().expect("address"),
                backend: Backend::Netlink { ifindex: Some(3) },
                vfs: vec![(vf, pci)],
            }]),
            Request::SetVf { ifindex: 3, vf, setting: VfSetting::NodeGuid(Guid::new(u64::MAX)) },
            Request::Bind { pci, driver: "mlx5_core".into(), before: String::new(), rdma: None },
        ]);
        let line = serde_json::to_string(&Numbered { number: 7, what: request.clone() });
        let line = line.expect("JSON");
        assert!(!line.contains('\n'));
        let back: Numbered<Request> = serde_json::from_str(&line).expect("request");
        assert_eq!((back.number, back.what), (7, request));
        let used = Use::Vfio { file: "/dev/vfio/7".into(), pid: 4, name: "qemu".into() };
        let (tried, said) = ("set node GUID".into(), "EINVAL: Invalid argument".into());
        let refusal = Refusal { tried, errno: Some(22), said };
        let answer = Answer::Each(vec![Ok(Answer::InUse(vec![(pci, vec![used])])), Err(refusal)]);
        let line = serde_json::to_string(&answer).expect("JSON");
        assert_eq!(serde_json::from_str::<Answer>(&line).expect("answer"), answer);
    }
}
