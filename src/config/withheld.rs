//! What of a configuration with errors is not carried out, so that the rest can be. Nothing that
//! is left out may widen what is done: what a broken table selects, or may select, is not touched.

use std::collections::BTreeSet;

use super::keys::{
    FIRMWARE, GUEST, INTERFACE, Name, PF, PORT, RXE, SUBNET_MANAGER, Tables, firmware, guest,
    interface, pf, port, rxe, subnet_manager,
};

/// What is left out of a configuration with errors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Withheld {
    /// What has an error.
    pub(super) parts: BTreeSet<Part>,
    /// The lists of which no table is carried out, since what a broken one selects is not known.
    pub(super) lists: BTreeSet<&'static str>,
}

/// A part of the configuration, by what depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::VariantArray)]
pub enum Part {
    /// Ports, names, settings or VFs may be missing for it.
    Ports,
    Firmware,
    Guests,
    Metrics,
    SubnetManagers,
    WaitOnline,
}

impl Part {
    /// The part that the key at `path` belongs to.
    pub(super) fn of(path: &str) -> Self {
        match path.split('.').next() {
            Some("firmware") => Self::Firmware,
            Some("guest" | "guests") => Self::Guests,
            Some("health" | "metrics") => Self::Metrics,
            Some("subnet-manager") => Self::SubnetManagers,
            Some("wait-online") => Self::WaitOnline,
            _ => Self::Ports,
        }
    }
}

impl Withheld {
    /// Something of `part` is left out.
    pub fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// No `[[pf]]` is carried out.
    pub fn has_all_pfs(&self) -> bool {
        self.has_all(PF)
    }

    /// No `[[port]]` names anything or sets a type, and no driver is bound to a port.
    pub fn has_all_ports(&self) -> bool {
        self.has_all(PORT)
    }

    /// No `[[interface]]` is carried out.
    pub fn has_all_interfaces(&self) -> bool {
        self.has_all(INTERFACE)
    }

    /// No `[[subnet-manager]]` is carried out.
    pub fn has_all_subnet_managers(&self) -> bool {
        self.has_all(SUBNET_MANAGER)
    }

    pub(super) fn has_all(&self, list: Name<Tables>) -> bool {
        self.lists.contains(list.path())
    }
}

/// The lists of tables, the keys that select what a table is for, and how many of them each table
/// has.
pub(super) const SELECTORS: [(Name<Tables>, &[&str], usize); 7] = [
    (FIRMWARE, &[firmware::PCI.path()], 1),
    (GUEST, &[guest::DOMAIN.path(), guest::UNIT.path()], 1),
    (
        INTERFACE,
        &[
            interface::MATCH_NAME.path(),
            interface::MATCH_PORT_GUID.path(),
            interface::MATCH_PCI.path(),
        ],
        1,
    ),
    (
        PF,
        &[pf::PCI_ADDRESS.path(), pf::PORT_GUID.path(), pf::NODE_GUID.path(), pf::RDMA_NAME.path()],
        1,
    ),
    (PORT, &[port::PCI.path(), port::PORT_GUID.path(), port::RDMA.path()], 1),
    (RXE, &[rxe::NAME.path(), rxe::NETDEV.path()], 2),
    (SUBNET_MANAGER, &[subnet_manager::PORT_GUID.path()], 1),
];
