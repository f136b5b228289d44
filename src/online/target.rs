//! The port that a name on the command line stands for.

use crate::config::PortSelector;
use crate::ladder::Expected;
use crate::names::{IfName, PciAddress, PortNumber, Target};
use crate::observe::Observed;

/// The port that this stands for on the host as it is now; `None` for a
/// name that nothing has yet and only a netdev could have.
#[must_use]
pub fn expected(target: &Target, observed: &Observed) -> Option<Expected> {
    let (which, port) = match target {
        Target::Pci(pci, port) => (PortSelector::Pci(*pci), *port),
        Target::Guid(guid) => (PortSelector::PortGuid(*guid), None),
        Target::Rdma(name, port) => (PortSelector::Rdma(name.clone()), *port),
        Target::Name(name) => match port_of_netdev(name, observed) {
            Some((pci, port)) => (PortSelector::Pci(pci), Some(port)),
            None => (PortSelector::Rdma(name.as_str().parse().ok()?), None),
        },
    };
    let why = "named on the command line".to_owned();
    Some(Expected { which, port, optional: false, named: true, why })
}

fn port_of_netdev(name: &IfName, observed: &Observed) -> Option<(PciAddress, PortNumber)> {
    observed.functions.iter().find_map(|function| {
        let mut ports = function.rdma.iter().flat_map(|d| &d.ports);
        let port = ports.find(|p| p.netdev.as_ref().is_some_and(|n| n.name == *name))?;
        Some((function.address, port.number))
    })
}
