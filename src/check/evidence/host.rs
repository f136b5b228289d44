//! What a live host, or the tree of one, shows beyond logs and dumps: systemd's
//! graph, the ports' ladders, who is configured to set up which netdev.

use crate::graph::Graph;
use crate::names::{ModuleName, PciAddress};
use crate::observe::autostart::{AutostartGuest, Resumed};
use crate::report::node::Judgement;
use crate::report::units::Units;
use crate::report::{BootReport, Cause, ModuleTrouble, PortProgress};
use crate::stacks::Asked;

/// A host that was looked at.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// It runs; else it is the tree of one, and only its next boot can be judged.
    pub live: bool,
    /// systemd's units and orders; for a live host with their states.
    pub graph: Graph,
    /// Who answers to openibd.service, and whether ibprov runs at boot.
    pub units: Option<Units>,
    /// The expected ports.
    pub ports: Vec<HostPort>,
    /// Functions that are not expected because the site denies their driver.
    pub denied: Vec<Denied>,
    /// VFs that the PF's driver should have bound and has not.
    pub unbound_vfs: Vec<PciAddress>,
    /// Which unit is configured to set up which netdev, and where it says so.
    pub asked: Vec<Asked>,
    /// Guests that libvirt starts by itself and that are given a VF.
    pub autostart: Vec<AutostartGuest>,
    /// Guests that libvirt-guests.service starts again.
    pub resumed: Resumed,
    /// `/run/ibprov/boot.json`.
    pub boot_report: Option<BootReport>,
    /// Whether it is as it is meant to be; of one that runs.
    pub judgement: Option<Judgement>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// An expected port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// How far it is.
    pub progress: PortProgress,
    /// Why it is no further.
    pub cause: Option<Cause>,
    /// The module that is missing for its next rung, and why it is.
    pub module: Option<(ModuleName, ModuleTrouble)>,
    /// Its driver has said that it is waiting for firmware.
    pub firmware_wait: bool,
    /// Its netdev is up, administratively; none if it has no netdev.
    pub up: Option<bool>,
}

/// A module that the site denies and that would be needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The module.
    pub module: ModuleName,
    /// File and line, or the kernel command line.
    pub by: String,
}
