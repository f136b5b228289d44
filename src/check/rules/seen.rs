//! Questions about a boot that several rules ask.

use super::super::evidence::state::{NetdevSeen, is_ib_name};
use super::super::evidence::{Boot, Event, Kind};
use super::super::pattern::{caught_one, word};
use crate::names::PciAddress;
use crate::report::finding::Quote;

/// The kernel modules of the RDMA stack: cores, HCA drivers, upper layers.
pub(super) const RDMA_MODULES: &[&str] = &[
    "ib_core",
    "ib_cm",
    "ib_mad",
    "ib_sa",
    "ib_addr",
    "ib_umad",
    "ib_uverbs",
    "ib_ucm",
    "ib_ipoib",
    "ib_srp",
    "ib_srpt",
    "ib_iser",
    "ib_isert",
    "iw_cm",
    "rdma_cm",
    "rdma_ucm",
    "rdmavt",
    "mlx4_core",
    "mlx4_ib",
    "mlx4_en",
    "mlx5_core",
    "mlx5_ib",
    "mlx5_vdpa",
    "mlx_compat",
    "ib_mthca",
    "ib_qib",
    "ib_ipath",
    "hfi1",
    "opa_vnic",
    "irdma",
    "i40iw",
    "iw_cxgb3",
    "iw_cxgb4",
    "iw_nes",
    "bnxt_re",
    "qedr",
    "ocrdma",
    "hns_roce",
    "hns_roce_hw_v2",
    "efa",
    "erdma",
    "mana_ib",
    "vmw_pvrdma",
    "usnic_verbs",
    "rdma_rxe",
    "siw",
    "rpcrdma",
    "xprtrdma",
    "svcrdma",
    "nvme_rdma",
    "nvmet_rdma",
    "ko2iblnd",
    "smc",
];

/// Drivers of HCAs, by the name they have on the PCI or auxiliary bus.
pub(super) const HCA_DRIVERS: &[&str] = &[
    "mlx4_core",
    "mlx5_core",
    "mlx5_ib",
    "mlx4_ib",
    "ib_mthca",
    "ib_qib",
    "hfi1",
    "irdma",
    "bnxt_re",
    "qedr",
    "iw_cxgb4",
    "hns_roce",
    "hns_roce_hw_v2",
    "efa",
    "erdma",
    "vmw_pvrdma",
];

/// The module of the RDMA stack that stands in square brackets in a stack
/// frame or at the instruction pointer.
pub(super) fn module_in_frame(text: &str) -> Option<&'static str> {
    let inside = text.split('[').skip(1).map(|t| word(t).trim_end_matches(']'));
    inside.filter_map(|name| RDMA_MODULES.iter().copied().find(|m| *m == name)).next()
}

/// True if a word of `text` is a module of the RDMA stack.
pub(super) fn rdma_module(text: &str) -> Option<&'static str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .find_map(|w| RDMA_MODULES.iter().copied().find(|m| *m == w))
}

/// True for the names of IPoIB netdevs.
pub(super) fn is_ib_netdev(name: &str) -> bool {
    is_ib_name(name)
}

/// The IPoIB netdev that a word of `text` names.
pub(super) fn ib_netdev_in(text: &str) -> Option<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'))
        .map(|w| w.trim_end_matches('.'))
        .find(|w| is_ib_netdev(w))
}

/// Lines to quote.
pub(super) fn quotes<'a>(boot: &Boot, events: impl IntoIterator<Item = &'a Event>) -> Vec<Quote> {
    /// More of a kind prove nothing more.
    const ENOUGH: usize = 12;
    events.into_iter().take(ENOUGH).map(|e| boot.quote(e)).collect()
}

/// The interface of the line in which a network service did not find it.
pub(super) fn not_found(event: &Event) -> Option<&str> {
    if let Kind::InterfaceAsked { name, worked: Some(false) } = &event.kind
        && ["does not seem to be present", "not present", "Cannot find device"]
            .iter()
            .any(|w| event.text.contains(w))
    {
        return Some(name);
    }
    for pattern in [
        "Device {} does not seem to be present",
        "Cannot find device \"{}\"",
        "Cannot find device '{}'",
        "Device \"{}\" does not exist",
        "device {} not present",
        "interface {} does not exist",
        "{}: error fetching interface information: Device not found",
        "{}: interface does not exist",
    ] {
        if let Some(name) = caught_one(&event.text, pattern) {
            let name = name.rsplit(' ').next().unwrap_or(name);
            if !name.is_empty() && name.len() < 16 {
                return Some(name);
            }
        }
    }
    None
}

/// Words of the lines that [`not_found`] knows.
pub(super) const NOT_FOUND: &[&str] = &[
    "does not seem to be present",
    "Cannot find device",
    "does not exist",
    "not present",
    "error fetching interface information",
];

/// A network service asked for an IPoIB netdev that came later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late<'a> {
    /// It was asked for here.
    pub asked: &'a Event,
    /// The netdev.
    pub netdev: &'a str,
    /// It was made here.
    pub made: &'a Event,
    /// Somebody brought it up after all, soon enough to be part of the boot.
    pub recovered: bool,
}

/// What comes later than this after the netdev is no longer the boot,
/// microseconds.
const SOON: i64 = 300_000_000;

/// The first netdev that came too late.
pub(super) fn late(boot: &Boot) -> Option<Late<'_>> {
    boot.events.iter().enumerate().find_map(|(at, asked)| {
        let netdev = not_found(asked).filter(|n| is_ib_netdev(n))?;
        let after = boot.events.get(at + 1..).unwrap_or_default();
        let made = after.iter().find(|e| {
            // Another netdev's coming would say nothing of this one; mlx5 does
            // not name it.
            let comes = match &e.kind {
                Kind::NetdevMade { .. } => true,
                Kind::ModuleLoad(module) => &**module == "ib_ipoib",
                Kind::LinkReady(name) => &**name == netdev,
                Kind::NetdevRenamed { from, to } => &**from == netdev || &**to == netdev,
                _ => {
                    caught_one(&e.text, "Setting up Mellanox network interface: {}").map(word)
                        == Some(netdev)
                }
            };
            comes && e.when.since(&asked.when).is_none_or(|gap| gap >= 0)
        })?;
        let recovered = came_up_after(boot, netdev, made);
        Some(Late { asked, netdev, made, recovered })
    })
}

/// True if `netdev` was brought up within minutes after `event`.
pub(super) fn came_up_after(boot: &Boot, netdev: &str, event: &Event) -> bool {
    boot.events.iter().any(|e| {
        let up = match &e.kind {
            Kind::InterfaceAsked { name, worked: Some(true) } | Kind::LinkReady(name) => {
                &**name == netdev
            }
            _ => false,
        };
        up && e.origin > event.origin
            && e.when.since(&event.when).is_none_or(|gap| (0..SOON).contains(&gap))
    })
}

/// The first sign that IPoIB or an InfiniBand port works in this boot.
pub(super) fn sign_of_life(boot: &Boot) -> Option<Quote> {
    let event = boot.events.iter().find(|e| match &e.kind {
        Kind::LinkReady(name) => is_ib_netdev(name),
        Kind::InterfaceAsked { name, worked } => is_ib_netdev(name) && *worked == Some(true),
        _ => ACTIVE.iter().any(|w| e.text.contains(w)),
    });
    let port = || {
        let port = boot.state.ports.iter().find(|p| p.is_active() && p.may_be_infiniband())?;
        Some(boot.quote_at(port.origin, "", &port.text))
    };
    // Carrier of IPoIB means that the subnet manager let it join its group.
    let netdev = || {
        let works = |n: &&NetdevSeen| n.infiniband && n.carrier == Some(true) && n.parent.is_none();
        let netdev = boot.state.netdevs.iter().find(works)?;
        Some(boot.quote_at(netdev.origin, "", &netdev.text))
    };
    event.map(|e| boot.quote(e)).or_else(port).or_else(netdev)
}

/// Log lines that say that a port is active.
pub(super) const ACTIVE: &[&str] = &["logical state changed to PORT_ACTIVE", "IB: Port active"];

/// PCI device ids of VFs (vendor 15b3): the id after its PF's.
const VF_IDS: [&str; 8] = [
    "15b3:1002",
    "15b3:1004",
    "15b3:1012",
    "15b3:1014",
    "15b3:1016",
    "15b3:1018",
    "15b3:101a",
    "15b3:101c",
];
/// The VF id that ConnectX-6 Dx and all later cards share.
const VF_ID_OF_ALL: &str = "15b3:101e";

/// True if the PCI function at `address` is surely or very likely a VF.
pub(super) fn is_vf(boot: &Boot, address: &str) -> bool {
    let by_id = boot.events.iter().any(|e| {
        matches!(&e.kind, Kind::PciFunction { address: a, id, .. }
            if &**a == address && (VF_IDS.contains(&&**id) || &**id == VF_ID_OF_ALL))
    });
    let by_words = || {
        boot.events.iter().any(|e| {
            e.text.contains(address)
                && ["running in slave mode", "Assigned random MAC address", "irtual function"]
                    .iter()
                    .any(|w| e.text.contains(w))
        })
    };
    let by_lspci = || {
        boot.state
            .pci
            .iter()
            .any(|f| address.ends_with(f.address.as_str()) && f.text.contains("Virtual Function"))
    };
    // Cards have at most two PFs, functions 0 and 1 of device 0.
    let by_number = || {
        // `mlx5_core.rdma.0` and its like are devices on the auxiliary bus.
        if address.parse::<PciAddress>().is_err() {
            return false;
        }
        let place = address.rsplit(':').next().unwrap_or_default();
        let after_sriov = boot.events.iter().any(|e| {
            e.text.contains("E-Switch: Enable") || e.text.contains("Enabling SR-IOV with")
        });
        let numbered = !matches!(place, "00.0" | "00.1");
        // Behind a PCI Express port there is one device, 0. Numbers go on beyond its
        // functions where VFs are many. A guest's cards lie beside each other, on its
        // first bus.
        let beyond = !address.ends_with(&format!(":00:{place}")) && !place.starts_with("00.");
        numbered && (after_sriov || place.starts_with("00.") || beyond)
    };
    by_id || by_words() || by_lspci() || by_number()
}
