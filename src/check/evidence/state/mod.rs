//! What the dumps of tools show: ports, netdevs, PCI functions, modules,
//! firmware settings, units, and what was typed at a prompt.

mod modules;
mod netdev;
mod netdev_tables;
mod netdevs;
mod port;
mod port_files;
mod ports;
mod prompt;
mod tools;
mod units;

pub use modules::Modules;
pub use netdev::{NetdevSeen, VfSeen};
pub use port::PortSeen;
pub use ports::begins_dump;
pub use prompt::{Command, typed};
pub use tools::{DeviceSeen, PciSeen, Setting};
pub use units::UnitSeen;

use super::event::Origin;
use crate::check::ledger::words::is_program;

/// At most this many of anything that dumps show are kept.
const LIMIT: usize = 4096;

/// What the dumps show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// RDMA ports: `ibstat`, `ibstatus`, `ibv_devinfo`, `rdma link`, files in sysfs.
    pub ports: Vec<PortSeen>,
    /// RDMA devices: `ibv_devices`.
    pub devices: Vec<DeviceSeen>,
    /// Netdevs: `ip link`, `ip addr`, `networkctl`, `ifconfig`, `ibdev2netdev`.
    pub netdevs: Vec<NetdevSeen>,
    /// PCI functions: `lspci`.
    pub pci: Vec<PciSeen>,
    /// Loaded modules: `lsmod`; `None` if it was not shown.
    pub modules: Option<Modules>,
    /// Firmware settings: `mlxconfig`, `mstconfig`.
    pub settings: Vec<Setting>,
    /// Units: `systemctl status`, `systemctl list-unit-files`, `systemctl list-units`.
    pub units: Vec<UnitSeen>,
    /// What was typed at a prompt, and what came of it.
    pub commands: Vec<Command>,
}

/// Adds `item`, unless there are as many as may be; false then.
fn put<T>(all: &mut Vec<T>, item: T) -> bool {
    let has_room = all.len() < LIMIT;
    if has_room {
        all.push(item);
    }
    has_room
}

impl State {
    /// True if no dump was seen.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The unit `name`, if a dump shows it: the first that tells whether it is
    /// enabled, which tables of units do not.
    pub fn unit(&self, name: &str) -> Option<&UnitSeen> {
        let mut shown = self.units.iter().filter(|u| u.name == name);
        shown.clone().find(|u| !u.enabled.is_empty()).or_else(|| shown.next())
    }
}

/// Puts the lines of dumps together.
#[derive(Debug, Default)]
pub struct DumpReader {
    state: State,
    prompt: prompt::PromptReader,
    ports: ports::IbstatReader,
    netdevs: netdevs::IpLinkReader,
    modules: modules::LsmodReader,
    units: units::SystemctlReader,
    tools: tools::HardwareReader,
}

impl DumpReader {
    /// Take a line that is no log record.
    pub fn line(&mut self, text: &str, origin: Origin) {
        if let Some(typed) = typed(text) {
            let line = prompt::Line::parse(typed);
            self.prompt.typed(typed, origin, &mut self.state.commands);
            self.modules.typed(&line);
            self.netdevs.typed(&line);
            self.ports.typed(&line);
            self.tools.typed(typed);
        } else {
            self.prompt.line(text, origin, &mut self.state.commands);
            self.modules.line(text, &mut self.state.modules);
            self.netdevs.line(text, origin, &mut self.state.netdevs);
            self.ports.line(text, origin, &mut self.state.ports);
        }
        self.units.line(text, origin, &mut self.state.units);
        let State { devices, pci, settings, .. } = &mut self.state;
        self.tools.line(text, origin, devices, pci, settings);
    }

    /// A source called `name` begins: perhaps what a program has printed.
    pub fn begin(&mut self, name: &str) {
        let file = name.rsplit(['/', ':']).next().unwrap_or_default();
        let file = file.strip_suffix(".txt").or_else(|| file.strip_suffix(".log")).unwrap_or(file);
        self.prompt.program = Some(file).filter(|file| is_program(file)).unwrap_or_default().into();
    }

    /// A log record stands between the lines of dumps.
    pub fn record(&mut self) {
        self.prompt.program.clear();
    }

    /// The program that prints the lines that are no log records, where that is known.
    pub fn program(&self) -> &str {
        &self.prompt.program
    }

    /// An empty line, or lines that were left out.
    pub fn gap(&mut self) {
        self.netdevs.gap();
        self.ports.gap();
        self.modules.gap();
        self.units.gap();
        self.tools.gap();
    }

    pub fn finish(self) -> State {
        self.state
    }
}
