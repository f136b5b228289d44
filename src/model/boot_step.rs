use std::fmt;

use serde::{Deserialize, Serialize};

use super::listed;
use crate::names::{IfName, ModuleName, NetnsMode, PciAddress, PortNumber, PortType, RdmaName};

/// One thing that `boot` does to the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// Load these modules with one `modprobe -a`.
    LoadModules {
        /// In this order.
        modules: Vec<ModuleName>,
    },
    /// Load one module that the step above did not bring, to learn why.
    LoadModule {
        /// The module that is loaded.
        module: ModuleName,
    },
    /// Load whatever drives a function that udev left without a driver.
    LoadDriver {
        /// The function that has no driver.
        pci: PciAddress,
        /// The function's modalias, by which modprobe finds the driver.
        modalias: String,
    },
    /// Load the RDMA half of a driver whose core is bound and that has
    /// registered no RDMA device.
    LoadRdmaHalf {
        /// The function that needs it.
        pci: PciAddress,
        /// `mlx5_ib` or `mlx4_ib`.
        module: ModuleName,
    },
    /// Set whether RDMA devices are shared by all network namespaces.
    NetnsMode {
        /// What is set.
        mode: NetnsMode,
    },
    /// Set the types of ports of a ConnectX-3.
    PortTypes {
        pci: PciAddress,
        /// Each port, and its type.
        types: Vec<(PortNumber, PortType)>,
    },
    /// Give the RDMA device of a function its name.
    NameRdma { pci: PciAddress, name: RdmaName },
    /// Create a soft RoCE device.
    CreateRxe {
        name: RdmaName,
        /// The netdev that it uses.
        netdev: IfName,
    },
    /// Make the settings of an interface that its own unit did not make.
    Configure {
        /// The netdev that is set.
        netdev: IfName,
        /// The netdev's index, which a rename leaves as it is.
        ifindex: u32,
    },
}

impl Step {
    /// The modules that modprobe is run for by name.
    pub fn modules(&self) -> &[ModuleName] {
        match self {
            Self::LoadModules { modules } => modules,
            Self::LoadModule { module } | Self::LoadRdmaHalf { module, .. } => {
                std::slice::from_ref(module)
            }
            Self::LoadDriver { .. }
            | Self::NetnsMode { .. }
            | Self::PortTypes { .. }
            | Self::NameRdma { .. }
            | Self::CreateRxe { .. }
            | Self::Configure { .. } => &[],
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoadModules { modules } => write!(f, "load {}", listed(modules)),
            Self::LoadModule { module } => write!(f, "load {module}"),
            Self::LoadDriver { pci, .. } => write!(f, "load the driver of {pci}"),
            Self::LoadRdmaHalf { pci, module } => write!(f, "load {module} for {pci}"),
            Self::NetnsMode { mode } => {
                write!(f, "set the RDMA network namespace mode to {mode}")
            }
            Self::PortTypes { pci, types } => {
                let each: Vec<String> =
                    types.iter().map(|(port, of)| format!("port {port} to {of}")).collect();
                write!(f, "set the port type of {pci}: {}", each.join(", "))
            }
            Self::NameRdma { pci, name } => write!(f, "name the RDMA device of {pci} {name}"),
            Self::CreateRxe { name, netdev } => {
                write!(f, "create the soft RoCE device {name} on {netdev}")
            }
            Self::Configure { netdev, .. } => {
                write!(f, "configure {netdev}, because ibprov-iface@.service has not")
            }
        }
    }
}
