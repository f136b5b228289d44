//! The port that a name on the command line stands for.

use crate::ladder::progress::progress;
use crate::ladder::{Expectation, Expected};
use crate::names::{IfName, PciAddress, PortNumber, PortSelector, Rung, Target, present};
use crate::observe::Observed;
use crate::report::PortProgress;

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
    Some(Expected { which, port, except: Vec::new(), optional: false, named: true, why })
}

fn port_of_netdev(name: &IfName, observed: &Observed) -> Option<(PciAddress, PortNumber)> {
    observed.functions.iter().find_map(|function| {
        let mut ports = function.rdma.iter().flat_map(|d| &d.ports);
        let port = ports.find(|p| p.netdev.as_ref().is_some_and(|n| n.name == *name))?;
        Some((function.address, port.number))
    })
}

/// All that a boot which has ended could bring is there, as far as the host tells: udev has
/// nothing left to do, and every port that is expected has its final name. A name that
/// nothing has then is a slip, or is of something that is still to be plugged in.
#[must_use]
pub fn all_is_there(expectation: Expectation, observed: &Observed) -> bool {
    let goal = expectation.goal.min(Rung::Named);
    let ports = progress(&Expectation { goal, ..expectation }, observed);
    observed.udev.settled && ports.iter().all(PortProgress::is_ready)
}

/// What the ports of this host are called: netdev, RDMA device, PCI address.
#[must_use]
pub fn names(observed: &Observed) -> String {
    let with_device = observed.functions.iter().filter(|function| !function.rdma.is_empty());
    present(with_device.map(|function| {
        let ports = function.rdma.iter().flat_map(|device| &device.ports);
        let netdevs = ports.filter_map(|port| port.netdev.as_ref().map(|n| n.name.to_string()));
        let devices = function.rdma.iter().map(|device| device.name.to_string());
        let names: Vec<String> = netdevs.chain(devices).collect();
        format!("{} ({})", names.join(" "), function.address)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::host::{Root, testing};
    use crate::ladder::expect::expectation;
    use crate::observe::{ModprobeRules, Observer};
    use std::collections::BTreeSet;

    /// A host with one HCA, as far as udev is with it.
    fn observed(named: bool, settled: bool) -> Observed {
        let device = "sys/bus/pci/devices/0000:4b:00.0";
        let at = |path: &str| format!("{device}/{path}");
        let mut files = vec![
            ("run/udev/control".to_owned(), ""),
            (at("class"), "0x020700\n"),
            (at("vendor"), "0x15b3\n"),
            (at("device"), "0x101b\n"),
            (at("infiniband/mlx5_0/ports/1/link_layer"), "InfiniBand\n"),
            (at("net/ib0/ifindex"), "2\n"),
            (at("net/ib0/type"), "32\n"),
            (at("net/ib0/dev_port"), "0\n"),
        ];
        if named {
            files.push(("run/udev/data/n2".to_owned(), "I:1\nE:ID_BUS=pci\n"));
        }
        if !settled {
            files.push(("run/udev/queue".to_owned(), ""));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let link = at("driver");
        let dir = testing::tree(&files, &[(&link, "../../drivers/mlx5_core")]);
        let root = Root::copy_at(dir.path()).expect("root");
        Observer::new(&root).look([], &BTreeSet::new())
    }

    #[test]
    fn a_name_may_come_until_every_expected_port_has_its_own() {
        for (named, settled, want) in
            [(true, true, true), (false, true, false), (true, false, false)]
        {
            let observed = observed(named, settled);
            let all = expectation(&Config::default(), &observed, &ModprobeRules::default());
            assert_eq!(all_is_there(all, &observed), want, "{named} {settled}: {observed:?}");
        }
        assert_eq!(names(&observed(true, true)), "ib0 mlx5_0 (0000:4b:00.0)");
    }
}
