//! What a name on the command line stands for: one rule for every verb that takes one.

use super::ipoib::{self, Interface, Sort};
use super::{Look, Observed, PciFunction, Port, RdmaDevice};
use crate::host::{Root, links};
use crate::names::{PortNumber, Target, present};

/// A function that is meant, with those of its ports that are.
#[derive(Debug, Clone)]
pub struct NamedFunction<'a> {
    pub function: &'a PciFunction,
    /// None of a function that shows none.
    pub ports: Vec<(&'a RdmaDevice, &'a Port)>,
}

/// Nothing of this host has the name.
#[derive(Debug, thiserror::Error)]
#[error("{target} is no port and no adapter of this host: it has {names}")]
pub struct NoSuch {
    target: String,
    names: String,
}

impl NoSuch {
    pub fn new(target: &(impl ToString + ?Sized), observed: &Observed) -> Self {
        Self { target: target.to_string(), names: names(observed) }
    }
}

/// The functions and ports that `target` names, by alternative names of netdevs and by P_Key
/// children too.
///
/// # Errors
/// There is none.
pub fn meant<'a>(
    target: &Target,
    root: &Root,
    observed: &'a Observed,
) -> Result<Vec<NamedFunction<'a>>, NoSuch> {
    let own = links::by_own_name(root, target);
    let own = match child(&own, root) {
        Some(Interface { pci: Some(pci), port, .. }) => Target::Pci(pci, port),
        _ => own,
    };
    let of = |function: &'a PciFunction| {
        let ports: Vec<_> =
            function.ports().filter(|(d, port)| is_meant(&own, function, d, port)).collect();
        let mut names = function.rdma.iter().map(|device| device.name.as_str());
        let is_whole = match &own {
            Target::Pci(pci, None) => function.address == *pci,
            Target::Rdma(name, None) => names.any(|own| own == name.as_str()),
            Target::Name(name) => names.any(|own| own == name.as_str()),
            _ => false,
        };
        (function.may_be_hca() && (is_whole || !ports.is_empty()))
            .then_some(NamedFunction { function, ports })
    };
    let meant: Vec<NamedFunction<'_>> = observed.functions.iter().filter_map(of).collect();
    if meant.is_empty() { Err(NoSuch::new(target, observed)) } else { Ok(meant) }
}

fn is_meant(target: &Target, function: &PciFunction, device: &RdmaDevice, port: &Port) -> bool {
    let is_number = |number: &Option<PortNumber>| number.is_none_or(|n| n == port.number);
    let mut netdevs = [&port.netdev, &port.ethernet].into_iter().flatten();
    match target {
        Target::Pci(pci, number) => function.address == *pci && is_number(number),
        Target::Guid(guid) => port.guid == Some(*guid),
        Target::Rdma(name, number) => device.name == *name && is_number(number),
        Target::Name(name) => {
            device.name.as_str() == name.as_str() || netdevs.any(|n| n.name == *name)
        }
    }
}

/// The P_Key child that `target` names, with the port of its parent.
pub fn child(target: &Target, root: &Root) -> Option<Interface> {
    let Target::Name(name) = target else { return None };
    let mut look = Look::new(root);
    let Some(Sort::Ipoib(mut interface)) = ipoib::sort(&mut look, name) else { return None };
    ipoib::give_port(&mut look, &mut interface);
    interface.parent.is_some().then_some(*interface)
}

/// What the adapters of this host are called: netdevs, RDMA devices, PCI address. VFs are left
/// out.
pub fn names(observed: &Observed) -> String {
    let adapters = observed.functions.iter().filter(|f| f.may_be_hca() && f.physfn.is_none());
    present(adapters.map(|function| {
        let ports = function.rdma.iter().flat_map(|device| &device.ports);
        let netdevs = ports.filter_map(|port| port.netdev.as_ref().or(port.ethernet.as_ref()));
        let netdevs = netdevs.map(|netdev| netdev.name.to_string());
        let devices = function.rdma.iter().map(|device| device.name.to_string());
        let names: Vec<String> = netdevs.chain(devices).collect();
        if names.is_empty() {
            function.address.to_string()
        } else {
            format!("{} ({})", names.join(" "), function.address)
        }
    }))
}
