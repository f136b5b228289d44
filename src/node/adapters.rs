//! What is judged of adapters as a whole.

use std::collections::BTreeMap;

use super::{Account, Node};
use crate::apply::ipoib;
use crate::config::Config;
use crate::ladder::expect::candidate;
use crate::model::{
    Advice, Code, Finding, NarrowLink, NotExpected, PcieLink, Severity, ToDo,
    firmware::{how_to_set, link_type},
};
use crate::names::{LinkLayer, PciAddress};
use crate::observe::{PciFunction, link};

/// What to do about a PCIe link that is less than it can be.
pub(super) const RESEAT: &str =
    "reseat the adapter, or check speed and width of the slot in the firmware setup";

pub(super) fn look_at_link(pci: PciAddress) -> Advice {
    Advice::look(ToDo::run(format!("lspci -vv -s {pci} | grep -e LnkCap: -e LnkSta:")))
}

impl Node<'_> {
    /// The adapters in Ethernet mode with an RDMA device, where nothing is expected and no
    /// `[[port]]` says what would be.
    pub fn unwatched(&self) -> Vec<PciAddress> {
        let Config { ports, pf, rxe, .. } = self.config;
        let is_none = ports.is_empty() && pf.is_empty() && rxe.is_empty();
        let is_none = is_none && self.ports.iter().all(|port| port.is_ethernet());
        let functions = self.observed.functions.iter().filter(|_| is_none);
        let is_roce = |f: &&PciFunction| {
            let mut ports = f.rdma.iter().flat_map(|device| &device.ports);
            f.physfn.is_none() && ports.any(|port| port.link_layer == LinkLayer::Ethernet)
        };
        functions.filter(is_roce).map(|f| f.address).collect()
    }

    /// A port of this function is expected.
    fn is_expected(&self, pci: PciAddress) -> bool {
        self.ports.iter().any(|port| port.pci == Some(pci))
    }
}

impl Account<'_> {
    /// Adapters of which no port is expected because their driver is denied.
    pub(super) fn left_out(&self, findings: &mut Vec<Finding>) {
        for (pci, reason) in &self.node.left_out {
            if let NotExpected::DriverDenied { module, by } = reason {
                let when = format!("to use the adapter: remove {module} from {by}");
                let step = ToDo::with(when, "systemctl restart ibprov");
                let finding = Finding::new(Code::ModuleDenied, Severity::Info, reason.to_string());
                findings.push(finding.about(pci).permanent([step]));
            }
        }
    }

    /// Adapters, all in Ethernet mode, where something of the host is configured for InfiniBand.
    pub(super) fn ethernet(&self, findings: &mut Vec<Finding>) {
        let Node { root, config, observed, ports, .. } = self.node;
        let adapters = || observed.functions.iter().filter(|f| f.physfn.is_none());
        let mut ethernet = adapters().filter(|f| f.ib_driver == Some("mlx5_core")).peekable();
        if !ports.is_empty()
            || adapters().any(|f| candidate(f).is_some())
            || ethernet.peek().is_none()
        {
            return;
        }
        let Some(wants) = ipoib::set_up(root, config) else { return };
        for PciFunction { address: pci, .. } in ethernet {
            let message = format!("the adapter is in Ethernet mode, and {wants}");
            let advice = how_to_set(pci, &link_type(*pci, LinkLayer::InfiniBand), false);
            let finding = Finding::warning(Code::PfEthernet, message).about(pci);
            findings.push(finding.permanent([advice]));
        }
    }

    /// RoCE ports that nobody has asked to be judged, with the lines that do.
    pub(super) fn unwatched(&self, findings: &mut Vec<Finding>) {
        let adapters = self.node.unwatched();
        if adapters.is_empty() {
            return;
        }
        let row = roce_row(&adapters).replace('\n', "\\n");
        let step = ToDo::run(format!("printf '{row}' >>/etc/ibprov/ibprov.toml"));
        let message = "the RoCE ports of this host are not judged: no [[port]] expects one";
        findings.push(Finding::new(Code::Notice, Severity::Info, message).permanent([step]));
    }

    /// The PCIe links of adapters that have an expected port.
    fn pcie_links(&self) -> impl Iterator<Item = (PciAddress, &PcieLink)> {
        let links = self.node.survey.pcie.iter().map(|(pci, link)| (*pci, link));
        links.filter(|(pci, _)| self.node.is_expected(*pci))
    }

    /// PCIe links that are less than they can be. What the configuration says of one counts more.
    pub(super) fn pcie(&self, findings: &mut Vec<Finding>) {
        for (pci, link) in self.pcie_links() {
            let is_told = self.ports.iter().any(|port| {
                port.progress.pci == Some(pci)
                    && port.degraded.iter().any(|d| d.code() == Code::PcieBelowMinimum)
            });
            if let Some(loss) = link.loss().filter(|_| !is_told) {
                let finding = Finding::new(Code::PcieLinkReduced, Severity::Info, loss).about(pci);
                findings.push(finding.advise([look_at_link(pci), Advice::permanent(RESEAT)]));
            }
        }
    }

    /// PCIe links above adapters that are narrower than these.
    pub(super) fn narrow_links(&self, findings: &mut Vec<Finding>) {
        let mut narrow: BTreeMap<NarrowLink, Vec<PciAddress>> = BTreeMap::new();
        for (pci, link) in self.pcie_links() {
            link.narrow_above.iter().for_each(|above| narrow.entry(*above).or_default().push(pci));
        }
        for (link, below) in narrow {
            let finding = Finding::new(Code::PcieLinkReduced, Severity::Info, link.to_string());
            let advice = "check riser, switch board and cables between them, and bifurcation in the firmware setup";
            let advice = [look_at_link(link.below), Advice::permanent(advice)];
            findings.push(finding.about_all(&below).advise(advice));
        }
    }

    /// Node descriptions that are not as rdma-ndd sets them.
    pub(super) fn descriptions(&self, findings: &mut Vec<Finding>) {
        let functions = self.node.observed.functions.iter();
        for function in functions.filter(|f| f.physfn.is_none()) {
            for device in function.rdma.iter().filter(|_| self.node.is_expected(function.address)) {
                let root = self.node.root;
                let description = link::node_description(root, function.address, &device.name);
                let Some(description) = &description else { continue };
                let Some(expected) = description.deviates_from() else { continue };
                let message = format!(
                    "the node description is {:?}, and rdma-ndd sets {expected:?}",
                    description.text
                );
                let finding = Finding::new(Code::NodeDescription, Severity::Info, message);
                findings.push(
                    finding
                        .about(&device.name)
                        .look([ToDo::run("journalctl -b -u rdma-ndd")])
                        .now([ToDo::run("systemctl restart rdma-ndd")]),
                );
            }
        }
    }
}

/// The table that expects the RoCE ports of `adapters`.
pub fn roce_row(adapters: &[PciAddress]) -> String {
    let list: Vec<String> = adapters.iter().map(|pci| format!("\"{pci}\"")).collect();
    format!("[[port]]\npci = [{}]\nlink-layer = \"ethernet\"\n", list.join(", "))
}
