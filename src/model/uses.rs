//! Who uses a VF or a netdev.

use serde::{Deserialize, Serialize};

use super::listed;

/// What of a function is in another network namespace, and so is not to be seen here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display)]
pub enum Away {
    /// Its RDMA device, and with it all that is known by it.
    #[strum(to_string = "RDMA device")]
    RdmaDevice,
    /// A netdev of its ports.
    #[strum(to_string = "netdev")]
    Netdev,
}

/// One sign that a VF or a netdev is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::Display)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "use", rename_all = "kebab-case")]
pub enum Use {
    /// A process has its VFIO group or device open: a virtual machine.
    #[strum(to_string = "{file} is open in process {pid} ({name})")]
    Vfio {
        /// The file below `/dev`.
        file: String,
        /// The process that has it, by its id.
        pid: u32,
        /// The name of that process (`comm`).
        name: String,
    },
    /// Its netdev or RDMA device is in another network namespace: a container.
    #[strum(to_string = "its {what} is not in this network namespace")]
    OtherNamespace {
        /// What is not to be seen here.
        what: Away,
    },
    /// A process owns an RDMA resource of it.
    #[strum(to_string = "process {pid} owns a {resource} of its RDMA device")]
    Process {
        /// `QP`, `PD` ...
        resource: String,
        /// The process that has it, by its id.
        pid: u32,
    },
    /// A kernel module owns an RDMA resource of it: NFS, NVMe or Lustre.
    #[strum(to_string = "kernel module {module} owns a {resource} of its RDMA device")]
    Kernel {
        /// `QP`, `PD` ...
        resource: String,
        /// The kernel module that owns it.
        module: String,
    },
    /// Its netdev is part of a bond or a bridge, or has a netdev above it.
    #[strum(to_string = "{netdev} is stacked with {with}")]
    Stacked {
        /// The netdev that is in use.
        netdev: String,
        /// The other one.
        with: String,
    },
    /// Its netdev has an address that reaches further than the link, or a
    /// route leads through it.
    #[strum(to_string = "{netdev} has {what}")]
    Network {
        /// The netdev that is in use.
        netdev: String,
        /// `address 10.0.0.1/24`, `route to 10.1.0.0/16`.
        what: String,
    },
    /// A SCSI host is its child, with the disks of a target: SRP or iSER.
    #[strum(to_string = "SCSI {host} (SRP or iSER) is connected over it")]
    ScsiHost {
        /// `host7`.
        host: String,
    },
    /// It could not be determined.
    #[strum(to_string = "its use cannot be determined: {why}")]
    Unknown {
        /// Why its use cannot be determined; in JSON `reason`.
        #[serde(rename = "reason")]
        why: String,
    },
}

/// That `object` is in use, and by what; or that this is assumed, and why.
pub(super) fn told(object: &str, uses: &[Use]) -> String {
    match uses.iter().find(|of| !matches!(of, Use::Unknown { .. })) {
        None if !uses.is_empty() => format!("{object} may be in use: {}", used_by(uses)),
        _ => format!("{object} is in use: {}", used_by(uses)),
    }
}

/// All of them on one line.
pub fn used_by(uses: &[Use]) -> String {
    listed(uses)
}
