//! The port that a name on the command line stands for.

use crate::config::Config;
use crate::ladder::expect::is_meant;
use crate::ladder::progress::progress;
use crate::ladder::{Expectation, Expected};
use crate::model::PortProgress;
use crate::names::{
    IfName, LinkLayer, PciAddress, PortNumber, PortSelector, PortWait, Rung, Target,
};
use crate::observe::ipoib::Interface;
use crate::observe::{NetDev, Observed};

/// The name is one that the configuration or the kernel gives a P_Key child of a netdev of
/// this host, so that the child may still be made.
pub fn may_be_child(target: &Target, config: &Config, observed: &Observed) -> bool {
    let Target::Name(name) = target else { return false };
    let partitions = config.interfaces.iter().flat_map(|rule| &rule.partitions);
    if partitions.filter_map(|partition| partition.name.as_ref()).any(|given| given == name) {
        return true;
    }
    let Some((parent, pkey)) = name.as_str().rsplit_once('.') else { return false };
    let is_pkey = pkey.len() == 4 && pkey.bytes().all(|b| b.is_ascii_hexdigit());
    let ports = observed.functions.iter().flat_map(|f| &f.rdma).flat_map(|d| &d.ports);
    let mut netdevs = ports.filter_map(|port| port.netdev.as_ref());
    is_pkey && !parent.is_empty() && netdevs.any(|n| n.name.as_str().starts_with(parent))
}

/// The port that this stands for on the host as it is now, `child` being the P_Key child
/// that it names; `None` for a name that nothing has yet and only a netdev could have.
pub fn expected(
    target: &Target,
    child: Option<&Interface>,
    config: &Config,
    observed: &Observed,
) -> Option<Expected> {
    let mut link_layer = LinkLayer::InfiniBand;
    let (which, port) = match target {
        Target::Pci(pci, port) => (PortSelector::Pci(*pci), *port),
        Target::Guid(guid) => (PortSelector::PortGuid(*guid), None),
        Target::Rdma(name, port) => (PortSelector::Rdma(name.clone()), *port),
        Target::Name(name) => match (port_of_netdev(name, observed), child) {
            (Some((pci, port, layer)), _) => {
                link_layer = layer;
                (PortSelector::Pci(pci), Some(port))
            }
            (None, Some(child)) => (PortSelector::Pci(child.pci?), child.port),
            (None, None) => (PortSelector::Rdma(name.as_str().parse().ok()?), None),
        },
    };
    let why = "named on the command line".to_owned();
    if is_roce(&which, port, config, observed) {
        link_layer = LinkLayer::Ethernet;
    }
    let (except, optional, named) = (Vec::new(), false, true);
    Some(Expected { which, port, except, optional, wait: PortWait::Online, named, link_layer, why })
}

/// The configuration expects an Ethernet port of what `which` and `port` name.
fn is_roce(
    which: &PortSelector,
    port: Option<PortNumber>,
    config: &Config,
    observed: &Observed,
) -> bool {
    let meant: Vec<_> = observed.functions.iter().filter(|f| is_meant(which, f)).collect();
    let rows = config.ports.iter().filter(|row| row.link_layer == LinkLayer::Ethernet);
    let mut rows = rows.filter(|row| row.port.is_none() || port.is_none() || row.port == port);
    rows.any(|row| meant.iter().any(|function| is_meant(&row.which, function)))
}

fn port_of_netdev(
    name: &IfName,
    observed: &Observed,
) -> Option<(PciAddress, PortNumber, LinkLayer)> {
    observed.functions.iter().find_map(|function| {
        let has = |netdev: &Option<NetDev>| netdev.as_ref().is_some_and(|n| n.name == *name);
        let mut ports = function.rdma.iter().flat_map(|d| &d.ports);
        let port = ports.find(|p| has(&p.netdev) || has(&p.ethernet))?;
        let layer = if has(&port.ethernet) { LinkLayer::Ethernet } else { LinkLayer::InfiniBand };
        Some((function.address, port.number, layer))
    })
}

/// All that a boot which has ended could bring is there, as far as the host tells: udev has
/// nothing left to do, and every port that is expected has its final name. A name that
/// nothing has then is a slip, or is of something that is still to be plugged in.
pub fn all_is_there(expectation: Expectation, observed: &Observed) -> bool {
    let goal = expectation.goal.min(Rung::Named);
    let ports = progress(&Expectation { goal, ..expectation }, observed);
    observed.udev.settled && ports.iter().all(PortProgress::is_ready)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Root, testing};
    use crate::ladder::expect::expectation;
    use crate::observe::target::{child, names};
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
            let all = expectation(&Config::default(), &observed, &ModprobeRules::default(), None);
            assert_eq!(all_is_there(all, &observed), want, "{named} {settled}: {observed:?}");
        }
        assert_eq!(names(&observed(true, true)), "ib0 mlx5_0 (0000:4b:00.0)");
    }

    #[test]
    fn a_p_key_child_is_waited_for_by_itself() {
        let device = "sys/bus/pci/devices/0000:4b:00.0";
        let at = |path: &str| format!("{device}/{path}");
        let files = [
            (at("class"), "0x020700\n"),
            (at("infiniband/mlx5_0/ports/1/link_layer"), "InfiniBand\n"),
            (at("net/ib0/ifindex"), "2\n"),
            (at("net/ib0/type"), "32\n"),
            (at("net/ib0/dev_port"), "0\n"),
            ("sys/class/net/ib0/ifindex".to_owned(), "2\n"),
            ("sys/class/net/ib0/type".to_owned(), "32\n"),
            ("sys/class/net/ib0/dev_port".to_owned(), "0\n"),
            ("sys/class/net/ib0.8001/ifindex".to_owned(), "7\n"),
            ("sys/class/net/ib0.8001/iflink".to_owned(), "2\n"),
            ("sys/class/net/ib0.8001/type".to_owned(), "32\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let links = [
            (at("driver"), "../../drivers/mlx5_core"),
            ("sys/class/net/ib0/device".to_owned(), "../../../0000:4b:00.0"),
        ];
        let links: Vec<(&str, &str)> = links.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let dir = testing::tree(&files, &links);
        let root = Root::copy_at(dir.path()).expect("root");
        let observed = Observer::new(&root).look([], &BTreeSet::new());
        let target = |name: &str| name.parse::<Target>().expect("name");

        let own = child(&target("ib0.8001"), &root).expect("a child");
        let found = expected(&target("ib0.8001"), Some(&own), &Config::default(), &observed)
            .expect("a port");
        let pci = PortSelector::Pci("0000:4b:00.0".parse().expect("address"));
        assert_eq!((found.which, found.port), (pci.clone(), PortNumber::new(1).ok()));
        assert_eq!(child(&target("ib0"), &root), None, "a port's own");
        let parent = expected(&target("ib0"), None, &Config::default(), &observed).expect("a port");
        assert_eq!((parent.which, parent.port), (pci, PortNumber::new(1).ok()));

        let source = crate::config::Source {
            path: "/etc/x.toml".to_owned(),
            text: "[[interface]]\nmatch.name = \"ib0\"\n[[interface.partition]]\npkey = \"0x8002\"\nname = \"lnet\"\n".to_owned(),
        };
        let problems = crate::config::Problems::default();
        let config = crate::config::resolve(vec![source], problems).expect("good").config;
        let may = |name: &str| may_be_child(&target(name), &config, &observed);
        assert!(may("ib0.8002") && may("lnet"));
        assert!(!may("ib1.8002") && !may("ib0.lnet") && !may("storage") && !may("mlx5_0"));
    }
}
