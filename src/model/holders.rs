//! `ibprov holders`: what keeps HCAs or their kernel modules busy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Away, Code, Exit, Finding, Kind, Report, Severity, Verdict};
use crate::names::{PciAddress, RdmaName};

/// Something that keeps an HCA or a kernel module of it busy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Holder {
    /// The PCI function that it keeps busy; `null` where it keeps a kernel module busy, or
    /// where it cannot be told which function.
    pub hca: Option<PciAddress>,
    #[serde(flatten)]
    pub by: By,
}

/// What keeps it busy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum By {
    /// A virtual machine has the function.
    Guest {
        /// The process that has it, by its id.
        pid: u32,
        /// The name of the virtual machine, or of the process if that is not known.
        name: String,
        /// The file of VFIO that it has open.
        file: String,
    },
    /// A process has device files open, or owns RDMA resources.
    Process {
        /// Its id.
        pid: u32,
        /// Its name (`comm`).
        name: String,
        /// The unit of systemd that it belongs to.
        unit: Option<String>,
        /// Device files below `/dev/infiniband`, and resources: `umad0`, `QP`.
        has: Vec<String>,
    },
    /// A netdev of the HCA is part of a bond or a bridge, or has a netdev above it.
    Netdev {
        netdev: String,
        /// The other one.
        with: String,
    },
    /// Its netdev or RDMA device is in another network namespace.
    Namespace {
        /// What is not to be seen here.
        what: Away,
    },
    /// A kernel module owns an RDMA resource of the HCA.
    Resource {
        module: String,
        /// `QP`, `CM ID`.
        resource: String,
    },
    /// A kernel module that is no part of the drivers uses modules that are.
    Module {
        name: String,
        /// The modules that it uses.
        of: Vec<String>,
        /// How often it is used itself; with 0 it can be unloaded.
        users: Option<u32>,
    },
    /// A kernel module is used by something that is not found.
    Reference {
        module: String,
        /// How often it is used beside by what is found.
        count: u32,
    },
    /// It could not be determined.
    Unknown {
        /// Why nobody can tell; in JSON `reason`.
        #[serde(rename = "reason")]
        why: String,
    },
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |all: &[String]| all.join(", ");
        match self {
            Self::Guest { pid, name, file } => {
                write!(f, "virtual machine {name} (process {pid}) has {file} open")
            }
            Self::Process { pid, name, unit, has } => {
                let unit = unit.as_ref().map_or_else(String::new, |unit| format!(" of {unit}"));
                write!(f, "process {pid} ({name}){unit} has {}", list(has))
            }
            Self::Netdev { netdev, with } => write!(f, "{netdev} is stacked with {with}"),
            Self::Namespace { what } => write!(f, "its {what} is in another network namespace"),
            Self::Resource { module, resource } => {
                write!(f, "kernel module {module} owns a {resource} of the HCA")
            }
            Self::Module { name, of, users } => {
                write!(f, "kernel module {name} uses {}", list(of))?;
                match users {
                    Some(0) => f.write_str("; the module is not in use and can be unloaded"),
                    Some(users) => write!(f, "; its own use count is {users}"),
                    None => Ok(()),
                }
            }
            Self::Reference { module, count } => write!(
                f,
                "the use count of kernel module {module} is {count} higher than the modules above it account for"
            ),
            Self::Unknown { why } => write!(f, "the users of the HCA cannot be determined: {why}"),
        }
    }
}

/// What keeps HCAs busy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HoldersReport {
    /// The HCAs that were looked at, with their VFs.
    pub hcas: Vec<PciAddress>,
    /// What keeps them or their modules busy.
    pub holders: Vec<Holder>,
    /// The RDMA devices of those that have one.
    #[serde(skip)]
    pub devices: BTreeMap<PciAddress, RdmaName>,
    /// Those of them that are no VFs of others.
    #[serde(skip)]
    pub pfs: Vec<PciAddress>,
    /// What could not be read, one line each.
    #[serde(skip)]
    pub problems: BTreeSet<String>,
}

impl HoldersReport {
    pub fn verdict(&self) -> Verdict {
        match (self.holders.is_empty(), self.problems.is_empty()) {
            (true, true) => Verdict::Ready,
            // What could not be read may be a holder.
            (true, false) => Verdict::Unknown,
            (false, _) => Verdict::Exceptions,
        }
    }

    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let unread = self.problems.iter().map(Finding::not_read);
        let held = self.holders.iter().map(|holder| {
            let finding = Finding::new(Code::HcaHeld, Severity::Info, holder.by.to_string());
            match holder.hca {
                Some(hca) => finding.about(hca),
                None => finding,
            }
        });
        let findings = held.chain(unread).collect();
        let report = Report::new(Kind::Holders, self.verdict(), findings, self);
        match report.verdict {
            Verdict::Unknown => report.exiting(Exit::Exceptions.code()),
            _ => report,
        }
    }
}
