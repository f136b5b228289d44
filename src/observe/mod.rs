//! What the host shows: PCI functions, RDMA devices, ports, netdevs, modules.
//!
//! Reads sysfs, `/run/udev/data` and modprobe's tables through [`Root`] and
//! gives plain values. It judges nothing and waits for nothing: no attribute
//! that asks firmware or takes a device lock (`ports/N/state`,
//! `sriov_numvfs`, `driver_override`) is read here; `crate::workers` has children do that.
//! What cannot be read becomes a line in [`Observed::problems`].

pub mod administered;
pub mod autostart;
pub mod captured;
pub mod holders;
pub mod iface;
pub mod interface_manager;
pub mod ipoib;
mod last_report;
pub mod limits;
pub mod link;
pub mod modprobe;
mod modules;
pub mod namespaces;
mod open_files;
pub mod opensm;
mod pci;
pub mod pf;
pub mod plan_host;
mod rdma;
pub mod target;
pub mod udev;
pub mod units;
pub mod uses;
pub mod vpd;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;

use self::modules::Aliases;
use crate::host::{ReadError, Root};
use crate::model::status::Udev;
use crate::names::{ModuleName, ModuleState, NetnsMode};

pub use administered::Backend;
pub use last_report::last_report;
pub use modprobe::{Install, ModprobeRules};
pub use modules::{driver_modules, is_built, module_file, rdma_half};
pub use pci::{PciClass, PciFunction, pcie_link};
pub use pf::{ObservedPf, ObservedVf, Undo, VfDevices};
pub use rdma::{NetDev, Port, RdmaDevice, RxeDevice, RxeNetdev, RxeSeen, ipoib_netdevs, rxe};
pub use vpd::Product;

/// The host at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// `uname -r`, the running kernel's release; empty if it cannot be read.
    pub kernel: String,
    /// The network controllers and InfiniBand functions on the PCI bus, by address.
    pub functions: Vec<PciFunction>,
    /// The state of each module asked for.
    pub modules: BTreeMap<ModuleName, ModuleState>,
    /// Whether RDMA devices are shared by all network namespaces; `None` without ib_core.
    pub netns_mode: Option<NetnsMode>,
    /// What udev has said so far.
    pub udev: Udev,
    /// What could not be read, one line each.
    pub problems: BTreeSet<String>,
}

impl Observed {
    /// This module, one that was asked for, is known not to be loaded.
    pub fn is_absent(&self, module: &str) -> bool {
        let mut modules = self.modules.iter();
        modules.any(|(name, state)| name.as_str() == module && *state == ModuleState::Absent)
    }
}

/// Looks at one host, again and again.
#[derive(Debug)]
pub struct Observer<'a> {
    root: &'a Root,
    /// Read once: on a full system it is more than a megabyte.
    aliases: OnceCell<Aliases>,
    /// The modules that are built into the kernel; read once.
    builtin: OnceCell<BTreeSet<String>>,
}

/// A look around: reads what it can and notes what it cannot.
#[derive(Debug)]
pub struct Look<'a> {
    root: &'a Root,
    /// What could not be read, one line each.
    pub problems: BTreeSet<String>,
}

impl<'a> Look<'a> {
    pub const fn new(root: &'a Root) -> Self {
        Self { root, problems: BTreeSet::new() }
    }

    /// The tree that is looked at.
    pub const fn root(&self) -> &'a Root {
        self.root
    }

    /// The value, or `None` with a note, unless the thing is simply not there:
    /// a device may vanish while it is looked at.
    fn note<T>(&mut self, reading: Result<T, ReadError>) -> Option<T> {
        match reading {
            Ok(value) => Some(value),
            Err(e) if e.is_absent() => None,
            Err(e) => {
                self.problems.insert(e.to_string());
                None
            }
        }
    }

    fn attribute(&mut self, path: &str) -> Option<String> {
        let reading = self.root.attribute(path);
        self.note(reading)
    }

    /// What a symbolic link points to, its last component.
    fn link_name(&mut self, path: &str) -> Option<String> {
        let reading = self.root.link_name(path);
        self.note(reading)
    }

    /// An attribute that must parse: what it holds instead is noted, escaped.
    fn parsed<T, E: Display>(
        &mut self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.attribute(path)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(e) => {
                self.problems.insert(format!("{path}: {e}"));
                None
            }
        }
    }

    fn number<N: FromStr>(&mut self, path: &str) -> Option<N> {
        self.parsed(path, |t| t.parse::<N>().map_err(|_| format!("{t:?} is not a number")))
    }

    fn list(&mut self, path: &str) -> Vec<String> {
        let reading = self.root.list_or_empty(path);
        self.note(reading).unwrap_or_default()
    }

    /// The names in a directory, as far as they are names of such devices.
    fn names<T: FromStr<Err: Display>>(&mut self, path: &str) -> Vec<T> {
        let mut names = Vec::new();
        for entry in self.list(path) {
            match entry.parse() {
                Ok(name) => names.push(name),
                Err(e) => drop(self.problems.insert(format!("{path}: {e}"))),
            }
        }
        names
    }
}

impl<'a> Observer<'a> {
    /// For the host below `root`.
    pub const fn new(root: &'a Root) -> Self {
        Self { root, aliases: OnceCell::new(), builtin: OnceCell::new() }
    }

    /// The tree that is looked at.
    pub const fn root(&self) -> &'a Root {
        self.root
    }

    /// Look at PCI functions alone, and at VFs of this host only that they are
    /// there: of a thousand attributes that [`Observer::look`] reads of 16 VFs,
    /// who asks for PFs needs none.
    pub fn look_at_pfs(&self) -> Observed {
        let mut look = Look::new(self.root);
        let kernel = kernel_release(&mut look);
        let udev = udev::state(self.root, &BTreeSet::new());
        let functions = pci::functions(&mut look, &self.aliases, &kernel, false);
        let modules = BTreeMap::new();
        let problems = look.problems;
        Observed { kernel, functions, modules, netns_mode: None, udev, problems }
    }

    /// Look at the host; the state of `modules` is told as well. `heard` are
    /// the devices whose processed udev event was heard.
    pub fn look<'m>(
        &self,
        modules: impl IntoIterator<Item = &'m ModuleName>,
        heard: &BTreeSet<String>,
    ) -> Observed {
        let root = self.root;
        let mut look = Look::new(root);
        let kernel = kernel_release(&mut look);
        let udev = udev::state(root, heard);
        let functions = pci::functions(&mut look, &self.aliases, &kernel, true);
        let modules = modules.into_iter().filter_map(|name| {
            let state = modules::state(&mut look, &self.builtin, &kernel, name)?;
            Some((name.clone(), state))
        });
        let modules = modules.collect();
        let netns_mode = namespaces::mode(&mut look);
        Observed { kernel, functions, modules, netns_mode, udev, problems: look.problems }
    }
}

fn kernel_release(look: &mut Look<'_>) -> String {
    let release = look.attribute("/proc/sys/kernel/osrelease").unwrap_or_default();
    if release.bytes().all(|b| b.is_ascii_graphic() && b != b'/') {
        release
    } else {
        look.problems
            .insert(format!("/proc/sys/kernel/osrelease: {release:?} is not a kernel release"));
        String::new()
    }
}
