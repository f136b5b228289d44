//! The configuration: read, merged, validated once, then only [`Config`].
//!
//! Each file becomes a draft (`draft.rs`: keys known, values of their type,
//! each with its place), the drafts are laid over the defaults (`merge.rs`),
//! and the whole is judged (`validate.rs`). Everything that is wrong is
//! collected, over all files. The keys stand in one table, `keys.rs`. Pure,
//! but for [`load()`], which asks [`crate::host`] for the files.

mod draft;
mod effective;
pub mod foreign;
pub mod guest;
mod interface;
mod keys;
mod load;
mod merge;
mod pf;
pub mod pins;
mod problem;
mod schema;
pub mod timespan;
mod validate;
mod value;

use std::time::Duration;

use self::guest::Guests;
use crate::names::{
    Guid, HostNumber, ModuleName, NameRule, PciAddress, PortNumber, RdmaName, Rung,
};

pub use effective::{Setting, SettingOrigin, to_json, to_toml};
pub use interface::{InterfaceRule, InterfaceSelector};
pub use load::{Loaded, load, resolve};
pub use pf::{GuidSource, Pf, PfSelector, VfException};
pub(crate) use problem::harmless;
pub use problem::{Place, Problem, Problems, Source};
pub use schema::schema;

/// The validated configuration. No file at all gives [`Config::default`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How long `ibprov boot` waits, in all and for one HCA.
    pub boot: Boot,
    /// Kernel modules to load.
    pub modules: Modules,
    /// Which ports have to come.
    pub expect: Expect,
    /// Virtual machines and units that start when their VFs are right.
    pub guests: Guests,
    /// Bringing interfaces up.
    pub network: Network,
    /// How IPoIB interfaces are set, in the order in which it applies.
    pub interfaces: Vec<InterfaceRule>,
    /// What `ibprov wait-online` waits for.
    pub wait_online: WaitOnline,
    /// Where the host's number in GUID templates comes from.
    pub host_number: HostNumber,
    /// The PFs whose VFs are ours to make.
    pub pf: Vec<Pf>,
}

/// Bringing interfaces up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// How long `ibprov iface` waits for the network stack; default 90 s, more
    /// than the 60 s of `nm-online` and than DHCP clients take to give up.
    pub deadline: Duration,
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

/// What `ibprov wait-online` waits for, if its flags say nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitOnline {
    /// How long; default 120 s, as systemd-networkd-wait-online does.
    pub deadline: Duration,
    /// How far every port has to come.
    pub rung: Rung,
    /// An address of global scope is waited for too.
    pub address: bool,
}

impl Default for Config {
    fn default() -> Self {
        // The network waits for the netdevs: what makes them comes first.
        let load = ["ib_ipoib", "ib_umad", "ib_uverbs"];
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
            network: Network { deadline: Duration::from_secs(90) },
            interfaces: Vec::new(),
            wait_online: WaitOnline {
                deadline: Duration::from_secs(120),
                rung: Rung::Active,
                address: false,
            },
            host_number: HostNumber::Name(NameRule::Only),
            pf: Vec::new(),
            guests: Guests::default(),
        }
    }
}

#[cfg(test)]
mod tests;
