//! The configuration: read, merged, validated once, then only [`Config`].

use std::time::Duration;

use crate::names::{Guid, ModuleName, PciAddress, PortNumber, RdmaName};

/// The validated configuration. No file at all gives [`Config::default`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How long `ibprov boot` waits, in all and for one HCA.
    pub boot: Boot,
    /// Kernel modules to load.
    pub modules: Modules,
    /// Which ports have to come.
    pub expect: Expect,
}

/// Deadlines of `ibprov boot`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// In all; default 240 s.
    pub deadline: Duration,
    /// For one HCA, from when it is expected; default 150 s, because mlx5
    /// waits up to 120 s for firmware pre-initialisation
    /// (`drivers/net/ethernet/mellanox/mlx5/core/lib/tout.c`).
    pub hca_deadline: Duration,
}

/// Which modules are loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modules {
    /// In the order in which they are given to modprobe: `ib_umad`,
    /// `ib_uverbs`, `ib_ipoib` and what `modules.load` adds, without what
    /// `modules.skip` names.
    pub load: Vec<ModuleName>,
    /// What `modules.skip` names: never loaded by ibprov, by no way.
    pub skip: Vec<ModuleName>,
}

/// Which ports have to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// Every InfiniBand port of every candidate PCI function.
    Auto,
    /// Exactly these.
    List(Vec<ExpectedPort>),
}

/// One `[[expect.port]]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedPort {
    /// Which HCA or port.
    pub which: PortSelector,
    /// Only this port of the HCA; all of them if not given.
    pub port: Option<PortNumber>,
    /// Waited for until its deadline, but missing it is no failure.
    pub optional: bool,
    /// File and line, for messages: `/etc/ibprov/ibprov.toml:12`.
    pub origin: String,
}

/// How a port is named in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortSelector {
    /// By the PCI address of its function.
    Pci(PciAddress),
    /// By its port GUID.
    PortGuid(Guid),
    /// By the name of its RDMA device.
    Rdma(RdmaName),
}

impl Default for Config {
    fn default() -> Self {
        let load = ["ib_umad", "ib_uverbs", "ib_ipoib"];
        Self {
            boot: Boot {
                deadline: Duration::from_secs(240),
                hca_deadline: Duration::from_secs(150),
            },
            modules: Modules {
                load: load.into_iter().filter_map(|m| m.parse().ok()).collect(),
                skip: Vec::new(),
            },
            expect: Expect::Auto,
        }
    }
}
