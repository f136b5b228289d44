//! One IPoIB interface, with everything that a plan for it is made of.

use super::Look;
use super::ipoib::{self, Interface, Sort, outcome};
use crate::host::{Root, answer, links};
use crate::names::{IfName, PciAddress};
use crate::report::iface::IfaceReport;

/// Everything that a plan for one interface is made of.
#[derive(Debug)]
pub struct Seen {
    /// The interface.
    pub interface: Interface,
    /// All IPoIB interfaces.
    pub all: Vec<Interface>,
    /// All names that are taken.
    pub names: Vec<String>,
    /// What an earlier run left.
    pub before: Option<IfaceReport>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// Why there is nothing to see of an interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSeen {
    /// It is not there.
    #[error("there is no interface {0}")]
    Absent(IfName),
    /// It is an interface of another kind.
    #[error("{name} is {what}, no IPoIB interface: ibprov leaves it alone")]
    NotIpoib {
        /// The interface.
        name: IfName,
        /// What it is.
        what: String,
    },
    /// Its port is no fabric's.
    #[error(
        "{name} is of {pci}, which manages an NVSwitch (SMDL=SW_MNG in its product data) and is nvidia-fabricmanager's: ibprov leaves it alone"
    )]
    NvSwitch {
        /// The interface.
        name: IfName,
        /// The function of its port.
        pci: PciAddress,
    },
    /// It was there at the first look and not at the second.
    #[error("the interface {0} went away")]
    WentAway(IfName),
}

/// Look at the interface `name`.
///
/// # Errors
/// It is not there, or is no IPoIB interface.
pub fn look(root: &Root, name: &IfName) -> Result<Seen, NotSeen> {
    let mut look = Look::new(root);
    match ipoib::sort(&mut look, name) {
        None => return Err(NotSeen::Absent(name.clone())),
        Some(Sort::Other(what)) => return Err(NotSeen::NotIpoib { name: name.clone(), what }),
        Some(Sort::Ipoib(_)) => {}
    }
    let mut all = ipoib::interfaces(&mut look);
    let mut problems: Vec<String> = look.problems.into_iter().collect();
    if root.is_live() {
        for interface in all.iter_mut().filter(|i| i.name == *name && i.mode.is_none()) {
            match links::ipoib_of(interface.ifindex) {
                Ok((mode, umcast)) => (interface.mode, interface.umcast) = (mode, umcast),
                Err(e) => problems.push(format!("mode of {name}: {}", answer(&e))),
            }
        }
    }
    let found = all.iter().find(|i| i.name == *name).cloned();
    let interface = found.ok_or_else(|| NotSeen::WentAway(name.clone()))?;
    let names = root.list("/sys/class/net").unwrap_or_default();
    let before = outcome(root, interface.ifindex);
    Ok(Seen { interface, all, names, before, problems })
}
