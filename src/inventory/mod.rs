//! What touches InfiniBand at boot: one list, of units, rules of udev, scripts and files of
//! settings, that all verbs read. Nothing is run for it.

mod line;
mod opensm;
mod places;
mod udev_rule;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

pub use line::{does, is_module};
pub use opensm::OpensmStarter;
pub use places::OPENIBD_HOOKS;

use crate::graph::files;
use crate::host::Root;
use crate::model::advice::{Advice, ToDo};
use crate::model::common::{Code, Finding};
use crate::names::NetnsMode;
use crate::observe::PciFunction;

/// What something does to InfiniBand; the first of two is the more telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Does {
    CallsOpenibd,
    /// Creates VFs, or gives them GUIDs.
    SetsVfs,
    RunsOpensm,
    SetsFirmware,
    SetsPortTypes,
    RenamesDevices,
    /// Binds functions to a driver, or unbinds them.
    BindsDrivers,
    /// Sets a port, or the RDMA subsystem.
    SetsPorts,
    /// Sets mode, MTU, addresses or children of an IPoIB interface.
    SetsInterfaces,
    LoadsModules,
    StartsGuests,
    /// Sets what ibprov has no setting for, as performance.
    Tunes,
    /// Changes nothing.
    Asks,
    NotUnderstood,
}

/// When an entry takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    AtBoot,
    /// It runs now, or is enabled for something else than the boot.
    NotByBoot,
    /// A file that nothing runs any more.
    Never,
}

/// Something that touches InfiniBand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// A file, or a unit.
    pub place: String,
    /// From 1; none of a unit.
    pub line: Option<usize>,
    /// What stands there.
    pub text: String,
    pub does: Does,
    /// False if it is guessed.
    pub is_sure: bool,
    pub when: When,
    /// The adapters that it names, by address, netdev or RDMA device; none if it is for all, or
    /// that is not known.
    pub objects: Vec<String>,
    /// The lines that do it, its own or its script's.
    pub lines: Vec<String>,
    /// A package brings it, and it is known to do this.
    pub is_shipped: bool,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.at(), if self.is_sure { "" } else { " (guessed)" })
    }
}

impl Entry {
    /// Where it stands.
    pub fn at(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.place),
            None => self.place.clone(),
        }
    }

    /// The services that run it; of a timer or path unit the one of its name.
    fn services(&self) -> Vec<String> {
        let places = &line::Known::all().places;
        let is_in = |all: &[String]| all.iter().any(|place| self.place.starts_with(&**place));
        if is_in(&places.rc_local) {
            vec!["rc-local.service".to_owned()]
        } else if is_in(&places.crontabs) {
            ["cron.service", "crond.service"].map(str::to_owned).to_vec()
        } else if self.place.contains('/') {
            Vec::new()
        } else {
            let stem = self.place.rsplit_once('.').map_or(&*self.place, |(stem, _)| stem);
            vec![format!("{stem}.service")]
        }
    }

    /// It may be about `pf`: it names it, or no adapter at all.
    pub fn may_be_about(&self, pf: &PciFunction) -> bool {
        let address = pf.address.to_string();
        let short = address.strip_prefix("0000:").unwrap_or(&address);
        let ports = pf.rdma.iter().flat_map(|d| d.ports.iter().flat_map(|p| &p.netdev));
        let mut names: Vec<String> = ports.map(|netdev| netdev.name.to_string()).collect();
        names.extend(pf.rdma.iter().map(|device| device.name.to_string()));
        names.extend([short.to_owned(), address.clone()]);
        let is_its = |object: &String| names.iter().any(|name| line::is_like(object, name));
        self.objects.is_empty() || self.objects.iter().any(is_its)
    }
}

/// That lines of rc.local bring InfiniBand up, and nothing runs the file; or that it cannot be
/// read.
pub fn not_run(root: &Root) -> Vec<Finding> {
    if root.runs_rc_local() {
        return Vec::new();
    }
    let Inventory { entries, problems } = places::rc_local(root);
    let mut lines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in entries.into_iter().filter(|entry| entry.does != Does::Asks) {
        lines.entry(entry.place).or_default().extend(entry.line.map(|line| line.to_string()));
    }
    let mut findings: Vec<Finding> = problems.into_iter().map(Finding::not_read).collect();
    for (file, lines) in lines {
        let lines = lines.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!(
            "systemd does not run {file} (from version 260 on it has no generator for it): what brings InfiniBand up in lines {lines} does not happen"
        );
        let advice = [Advice::permanent(ToDo::run("ibprov migrate"))];
        findings.push(Finding::warning(Code::RcLocalNotRun, text).advise(advice));
    }
    findings
}

/// The list, and what could not be read.
#[derive(Debug, Default)]
pub struct Inventory {
    pub entries: Vec<Entry>,
    pub problems: Vec<String>,
}

impl Inventory {
    pub fn read(root: &Root) -> Self {
        places::read(root, &files::enabled(root))
    }

    /// Those that take effect at boot and are no package's.
    pub fn of_site(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.is_shipped && entry.when == When::AtBoot)
    }

    /// The units that need the ports, or run what does.
    pub fn users_of_ports(&self) -> BTreeSet<String> {
        let needs = |entry: &&Entry| {
            !matches!(
                entry.does,
                Does::CallsOpenibd
                    | Does::LoadsModules
                    | Does::BindsDrivers
                    | Does::RenamesDevices
                    | Does::SetsFirmware
                    | Does::SetsPortTypes
            )
        };
        self.of_site().filter(needs).flat_map(Entry::services).collect()
    }

    /// Those that create the VFs of `pf` at boot, or give them GUIDs.
    pub fn vf_writers<'a>(&'a self, pf: &'a PciFunction) -> impl Iterator<Item = &'a Entry> {
        self.of_site().filter(|entry| entry.does == Does::SetsVfs && entry.may_be_about(pf))
    }

    /// Who sets the RDMA network namespace mode at boot, and to which.
    pub fn netns_modes(&self) -> impl Iterator<Item = (String, NetnsMode)> {
        self.of_site().flat_map(|entry| {
            let modes = entry.lines.iter().filter_map(|line| line::netns_mode(line));
            modes.map(|mode| (entry.to_string(), mode))
        })
    }

    /// The files and units that rename RDMA devices.
    pub fn rdma_renamers(&self) -> Vec<String> {
        let renamers = self.of_site().filter(|entry| entry.does == Does::RenamesDevices);
        let mut places: Vec<String> = renamers.map(|entry| entry.place.clone()).collect();
        places.dedup();
        places
    }
}
