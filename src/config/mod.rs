//! The configuration: read, merged, validated once, then only [`Config`].
//!
//! Each file becomes a draft (`draft.rs`: keys known, values of their type,
//! each with its place), the drafts are laid over the defaults (`merge.rs`),
//! and the whole is judged (`validate.rs`). Everything that is wrong is
//! collected, over all files. The keys stand in one table, `keys.rs`. Pure,
//! but for [`load()`], which asks [`crate::host`] for the files.

mod draft;
mod effective;
mod firmware;
pub mod foreign;
pub mod guest;
mod interface;
mod keys;
mod load;
mod merge;
mod pf;
mod pf_guids;
pub mod pins;
mod ports;
mod problem;
mod rxe;
#[cfg(test)]
mod schema;
mod subnet_manager;
pub mod timespan;
mod validate;
mod withheld;

use std::path::PathBuf;
use std::time::Duration;

use self::guest::Guests;
use crate::model::Code;
use crate::names::{
    HostNumber, IfName, LinkLayer, LinkMinimum, ModuleName, NetnsMode, PKey, PciAddress,
    PortChoice, PortNumber, PortSelector, PortType, PortWait, RdmaName, Rung,
};

pub use effective::{Setting, SettingOrigin, changed, to_toml};
pub use firmware::{FirmwareCard, FirmwareSetting};
pub use interface::{InterfaceRule, InterfaceSelector, PartitionRule};
pub use load::{Loaded, load, load_with, resolve, resolve_right};
pub use pf::{GuidSource, Pf, PfSelector, VfException};
pub use problem::{Place, Problem, ProblemTold, Problems, Source};
pub use rxe::{MODULE as RXE_MODULE, RxeRow};
pub use subnet_manager::SubnetManager;
pub use withheld::{Part, Withheld};

/// The validated configuration. No file at all gives [`Config::default`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How long `ibprov boot` waits, in all and for one HCA.
    pub boot: Boot,
    pub modules: Modules,
    /// What is special about single ports.
    pub ports: Vec<PortRow>,
    /// Virtual machines and units that start when their VFs are right.
    pub guests: Guests,
    pub network: Network,
    /// How IPoIB interfaces are set, in the order in which it applies.
    pub interfaces: Vec<InterfaceRule>,
    /// What `ibprov wait-online` waits for.
    pub wait_online: WaitOnline,
    /// Where the host's number in GUID templates comes from.
    pub host_number: HostNumber,
    /// The PFs whose VFs are ours to make.
    pub pf: Vec<Pf>,
    /// The soft RoCE devices that are ours to create.
    pub rxe: Vec<RxeRow>,
    /// The adapters whose firmware settings `ibprov firmware` compares and writes.
    pub firmware: Vec<FirmwareCard>,
    /// The ports on which an opensm of ours runs.
    pub subnet_managers: Vec<SubnetManager>,
    /// Whether RDMA devices are shared by network namespaces; `None`: it is left as it is.
    pub netns_mode: Option<NetnsMode>,
    /// The file to which `ibprov boot` writes its metrics; `None`: it writes none.
    pub metrics_file: Option<PathBuf>,
    /// By which findings `ibprov health` fails a node.
    pub health: Health,
    /// What has errors, and is not in the rest.
    pub withheld: Withheld,
}

/// What of `ibprov health` is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// By these findings no node fails.
    pub tolerate: Vec<Code>,
    /// By these it does, beside those by which each does.
    pub fail_on: Vec<Code>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// How long `ibprov iface` waits for the network stack; default 90 s, more
    /// than the 60 s of `nm-online` and than DHCP clients take to give up.
    pub timeout: Duration,
}

/// How long `ibprov boot` waits, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// In all; default 240 s.
    pub timeout: Duration,
    /// For one adapter, from when it is expected; default 150 s, because mlx5
    /// waits up to 120 s for firmware pre-initialisation
    /// (`drivers/net/ethernet/mellanox/mlx5/core/lib/tout.c`).
    pub adapter_timeout: Duration,
    pub ports: PortChoice,
    /// What is not expected, although it is found.
    pub ignore: Vec<Ignored>,
    /// So many ports have to be ready, whichever; `None`: all that are required.
    pub at_least: Option<AtLeast>,
}

/// How many ports have to be ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtLeast {
    pub ports: usize,
    /// File and line, for messages.
    pub origin: String,
}

/// An adapter or a port that `boot.ignore` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    pub which: PortSelector,
    /// File and line, for messages.
    pub origin: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modules {
    /// In the order in which they are given to modprobe: `ib_umad`,
    /// `ib_uverbs`, `ib_ipoib` and what `modules.load` adds, without what
    /// `modules.exclude` names.
    pub load: Vec<ModuleName>,
    /// What `modules.exclude` names: never loaded by ibprov, by no way.
    pub exclude: Vec<ModuleName>,
    /// It may name others too, since it has an error: only what `load` has is loaded.
    pub excludes_unknown: bool,
}

impl Modules {
    /// ibprov does not load it, by no way.
    pub fn excludes(&self, module: &ModuleName) -> bool {
        self.exclude.contains(module) || self.excludes_unknown && !self.load.contains(module)
    }
}

/// What one `[[port]]` of the configuration says of one adapter or port; a row that names
/// several makes several of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortRow {
    pub which: PortSelector,
    /// The name of its RDMA device; only of an adapter by its PCI address.
    pub rdma_name: Option<RdmaName>,
    /// Only this port of the adapter; default: all ports.
    pub port: Option<PortNumber>,
    /// Missing it is a failure; otherwise it is only waited for.
    pub required: bool,
    /// Where it is waited for.
    pub wait: PortWait,
    /// How many VFs another program creates on the adapter.
    pub vfs_expected: Option<usize>,
    /// Its link layer, InfiniBand or Ethernet.
    pub link_layer: LinkLayer,
    /// The type that a port of a ConnectX-3 is set to.
    pub port_type: Option<PortType>,
    /// The least that its link has to be.
    pub minimum: LinkMinimum,
    /// The partitions of which it has to be a full member.
    pub pkeys: Vec<PKey>,
    /// It has an error: the port is expected and waited for, and nothing is done to it.
    pub is_withheld: bool,
    /// File and line, for messages: `/etc/ibprov/ibprov.toml:12`.
    pub origin: String,
}

impl PortRow {
    /// Takes away all that is done to the port.
    fn withhold(&mut self) {
        self.is_withheld = true;
        (self.rdma_name, self.port_type) = (None, None);
    }

    /// The adapter whose RDMA device gets a name, and the name.
    pub const fn rdma_name(&self) -> Option<(PciAddress, &RdmaName)> {
        match (&self.which, &self.rdma_name) {
            (PortSelector::Pci(pci), Some(name)) => Some((*pci, name)),
            _ => None,
        }
    }
}

/// What `ibprov wait-online` waits for, if its flags say nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitOnline {
    /// How long; default 120 s, as systemd-networkd-wait-online does.
    pub timeout: Duration,
    /// How far every port has to come.
    pub state: Rung,
    /// An address of global scope is waited for too.
    pub address: bool,
    /// For how long each has to be online without interruption.
    pub stable: Duration,
}

impl Config {
    /// The names of interfaces that `[[interface]]` has, without its patterns.
    pub fn interface_names(&self) -> Vec<IfName> {
        let name = |rule: &InterfaceRule| match &rule.which {
            InterfaceSelector::Name(pattern) if pattern.is_name() => pattern.as_str().parse().ok(),
            _ => None,
        };
        self.interfaces.iter().filter_map(name).collect()
    }

    /// Where it names an RDMA device, or has VFs whose RDMA devices get names: file and line.
    pub fn rdma_names(&self) -> Vec<&str> {
        let is_rdma = |which: &PortSelector| matches!(which, PortSelector::Rdma(_));
        let has_name = |row: &&PortRow| is_rdma(&row.which) || row.rdma_name.is_some();
        let ports = self.ports.iter().filter(has_name).map(|row| &row.origin);
        let ignored = self.boot.ignore.iter().filter(|i| is_rdma(&i.which)).map(|i| &i.origin);
        let named = |pf: &&Pf| pf.vf_rdma_name.is_some() || matches!(pf.which, PfSelector::Rdma(_));
        let pfs = self.pf.iter().filter(named).map(|pf| &pf.origin);
        let mut origins: Vec<&str> = ports.chain(ignored).chain(pfs).map(String::as_str).collect();
        // A row that names several ports makes several of these.
        origins.dedup();
        origins
    }
}

impl Default for Config {
    fn default() -> Self {
        validate::build(&merge::Merged::defaults(), &mut Problems::default())
    }
}

#[cfg(test)]
mod tests;
