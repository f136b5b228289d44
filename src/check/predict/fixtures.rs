//! Hosts for tests.

use crate::check::evidence::Host;
use crate::check::evidence::host::HostPort;
use crate::graph::fixtures::graph;
use crate::model::PortProgress;
use crate::model::stack::ConfiguredNetdev;
use crate::names::{LinkLayer, Moment, Rung, at};

/// Makes ports.
pub(super) struct Port;

impl Port {
    fn port(netdev: Option<&str>, reached: Rung, named_usec: Option<Moment>) -> HostPort {
        let progress = PortProgress {
            expected: "0000:4b:00.0".into(),
            pci: "0000:4b:00.0".parse().ok(),
            rdma: "mlx5_0".parse().ok(),
            port: crate::names::PortNumber::new(1).ok(),
            guid: None,
            link_layer: Some(LinkLayer::InfiniBand),
            netdev: netdev.and_then(|n| n.parse().ok()),
            named_usec,
            reached: Some(reached),
            goal: Rung::Named,
            optional: false,
            must_be_infiniband: false,
            must_be_ethernet: false,
            of_number: None,
            why: String::new(),
        };
        HostPort { progress, cause: None, up: netdev.map(|_| true) }
    }

    /// A port that is ready since `usec`.
    pub(super) fn named(netdev: &str, usec: u64) -> HostPort {
        Self::port(Some(netdev), Rung::Named, Some(at(usec)))
    }

    /// One without a netdev.
    pub(super) fn stuck() -> HostPort {
        Self::port(None, Rung::Rdma, None)
    }
}

/// A live host with this graph, these ports and who is to set up what.
pub(super) fn host(lines: &str, ports: &[HostPort], asked: &[(&str, &str)]) -> Host {
    Host {
        live: true,
        graph: graph(lines),
        ports: ports.to_vec(),
        asked: asked
            .iter()
            .map(|(unit, netdev)| ConfiguredNetdev {
                unit: (*unit).to_owned(),
                netdev: (*netdev).to_owned(),
                file: "/etc/x".to_owned(),
            })
            .collect(),
        ..Host::default()
    }
}
