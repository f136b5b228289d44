//! What brings InfiniBand up on a host today, what becomes of it, and what has to change
//! for that. The order of the changes is such that a boot between any two of them starts
//! the vendor's openibd, ibprov, or both.

use std::collections::BTreeSet;

use super::record::Record;
use crate::config;
use crate::config::foreign::interfaces::{self, Said, Seen, Which};
use crate::config::foreign::{
    self, Imported, ifcfg, ifcfg_suse, keyfile, mlx4_conf, openib_conf, rdma_conf, sriov_vfs,
};
use crate::host::{Root, SYSV_GENERATOR, answer, site_files};
use crate::inventory::{self, Does, Entry, Inventory, OPENIBD_HOOKS, When};
use crate::model::{
    Advice, Code, Finding, Severity, ToDo,
    migrate::{Change, Item, Reason},
};
use crate::names::{BLUEFIELD, Guid, IfName, MELLANOX, OPENIBD_STAND_IN, PathState, is_ipoib_name};
use crate::observe::ipoib::{Interface, Interfaces};
use crate::observe::{Look, Observer, PciFunction, interface_manager, opensm, pf};
use crate::stacks;

const ETC: &str = "/etc/systemd/system";
/// Where units of packages are, in the order in which systemd looks.
const UNIT_DIRS: [&str; 3] =
    ["/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
const OURS: &str = "ibprov.service";
const OPENIBD: &str = "openibd.service";
const WANTS: &str = "/etc/systemd/system/sysinit.target.wants";
const DROP_INS: &str = "/etc/ibprov/ibprov.d";
/// What openibd and its hooks read beside openib.conf.
const CONNECTX: &str = "/etc/infiniband/connectx.conf";
const MLX5: &str = "/etc/infiniband/mlx5.conf";
/// No configuration file is larger, bytes.
const LIMIT: u64 = 4 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Each thing, and what becomes of it.
    pub items: Vec<Item>,
    /// What has to change, in this order.
    pub changes: Vec<Change>,
    /// What is wrong: an error means that nothing may be changed.
    pub problems: Vec<Finding>,
}

/// Takes out of what a file says what would be refused on a host with the interfaces `all`.
pub fn fit(said: &mut Said, all: &[Interface]) {
    let Some(wanted) = &said.interface else { return };
    let is_meant = |seen: &&Interface| match &wanted.which {
        Which::Name(name) => seen.name == *name,
        Which::PortGuid(guid) => seen.guid == Some(*guid),
    };
    let seen = all.iter().filter(|seen| seen.parent.is_none()).find(is_meant);
    let seen = seen.map(|seen| Seen {
        name: seen.name.clone(),
        can_connect: seen.can_connect,
        omni_path: seen.omni_path,
    });
    said.fit(seen.as_ref());
}

/// Look at the tree. `record` is what an earlier migration has changed.
pub fn find(root: &Root, record: Option<&Record>) -> Found {
    let mut finder = Finder {
        root,
        record,
        found: Found::default(),
        inventory: Inventory::read(root),
        drop_ins: Vec::new(),
        imported: Vec::new(),
    };
    finder.settings();
    finder.ourselves();
    finder.openibd();
    finder.interface_manager();
    finder.others();
    let functions = Observer::new(root).look_at_pfs().functions;
    finder.inventory(&functions);
    finder.bluefield(&functions);
    finder.configuration();
    finder.found
}

struct Finder<'a> {
    root: &'a Root,
    record: Option<&'a Record>,
    found: Found,
    inventory: Inventory,
    /// The drop-ins that are to be written, path and text.
    drop_ins: Vec<(String, String)>,
    /// The files of network stacks with settings that are ibprov's too.
    imported: Vec<String>,
}

impl Finder<'_> {
    fn item(&mut self, item: Item) {
        self.found.items.push(item);
    }

    /// What is at `path`; a problem if that cannot be told.
    fn state(&mut self, path: &str) -> Option<PathState> {
        match site_files::state(self.root, path) {
            Ok(state) => Some(state),
            Err(e) => {
                let message = format!(
                    "the path would be replaced, but cannot be recorded so that it could be restored: {}",
                    answer(&e)
                );
                self.found.problems.push(Finding::error(Code::NotRead, message).about(path));
                None
            }
        }
    }

    /// Plan that it is so at `path`, with the directories above it.
    fn want(&mut self, path: &str, after: PathState) {
        let Some(before) = self.state(path) else { return };
        if before.is_same(&after) {
            return;
        }
        for (at, _) in path.match_indices('/').skip(1) {
            let dir = path.get(..at).unwrap_or_default();
            let is_planned = self.found.changes.iter().any(|change| change.path == dir);
            if !is_planned && self.state(dir) == Some(PathState::Absent) {
                self.change(dir, PathState::Absent, PathState::Directory);
            }
        }
        self.change(path, before, after);
    }

    fn change(&mut self, path: &str, before: PathState, after: PathState) {
        self.found.changes.push(Change { path: path.to_owned(), before, after });
    }

    /// The text of a file of settings; an error if it is there and cannot be read, since
    /// its settings would be lost.
    fn text(&mut self, path: &str) -> Option<String> {
        match self.root.text(path, LIMIT) {
            Ok(text) => Some(text),
            Err(e) if e.is_absent() => None,
            Err(e) => {
                let message = format!("the settings cannot be imported: {e}");
                self.found.problems.push(Finding::error(Code::NotRead, message).about(path));
                None
            }
        }
    }

    /// The names in a directory, none if there is no such; a problem if it cannot be read.
    fn names(&mut self, dir: &str) -> Vec<String> {
        self.root.list_or_empty(dir).unwrap_or_else(|e| {
            self.found.problems.push(Finding::error(Code::NotRead, e.to_string()).about(dir));
            Vec::new()
        })
    }

    /// Files of settings that become ours.
    fn settings(&mut self) {
        if let Some(text) = self.text(openib_conf::PATH) {
            let imported = openib_conf::import(&text, &self.datagram_only());
            self.import(openib_conf::PATH, "50-openib.toml", &imported, Reason::Settings);
        }
        if let Some(text) = self.text(sriov_vfs::PATH) {
            let vfs = pf::owners(self.root);
            let imported = sriov_vfs::import(&text, |pci| vfs.get(&pci).copied());
            self.import(sriov_vfs::PATH, "50-sriov-vfs.toml", &imported, Reason::Settings);
        }
        let dirs = [ETC, "/etc/init.d"].into_iter().chain(UNIT_DIRS);
        let names =
            dirs.flat_map(|dir| ["rdma.service", "rdma"].map(|name| format!("{dir}/{name}")));
        let is_read = { names }.any(|path| self.root.exists(&path));
        if !is_read && self.root.exists(rdma_conf::PATH) {
            self.item(Item::new(rdma_conf::PATH, Reason::RdmaConf));
        } else if let Some(text) = self.text(rdma_conf::PATH) {
            let imported = rdma_conf::import(&text);
            self.import(rdma_conf::PATH, "50-rdma.toml", &imported, Reason::Settings);
        }
        if let Some(text) = self.text(mlx4_conf::PATH) {
            let imported = mlx4_conf::import(&text, |pci| pf::may_be_here(self.root, pci));
            self.import(mlx4_conf::PATH, "50-mlx4.toml", &imported, Reason::PortTypes);
        }
        if let Some(text) = self.text(CONNECTX) {
            let imported = mlx4_conf::import(&text, |pci| pf::may_be_here(self.root, pci));
            let is_whole = !imported.toml.is_empty() && imported.todo.is_empty();
            if is_whole && !self.root.exists(mlx4_conf::PATH) {
                self.import(CONNECTX, "50-connectx.toml", &imported, Reason::Settings);
            } else {
                self.item(Item::new(CONNECTX, Reason::PortTypesOfVendor));
            }
        }
        let hooks = OPENIBD_HOOKS.into_iter().map(|path| (path, Reason::HookOfVendor));
        for (path, reason) in hooks.chain([(MLX5, Reason::SettingsOfMlx5)]) {
            if self.root.exists(path) {
                self.item(Item::new(path, reason));
            }
        }
        self.interfaces();
    }

    /// Mode, MTU and P_Key children that the files of network stacks have, in one drop-in: a
    /// parent's settings have to come before its children's. It comes after that of openib.conf,
    /// since the stack sets them later than openibd.
    fn interfaces(&mut self) {
        let mut files: Vec<(String, Said)> = Vec::new();
        for dir in [ifcfg::DIR, ifcfg_suse::DIR] {
            for file in self.names(dir) {
                let path = format!("{dir}/{file}");
                let Some(name) = ifcfg::name_of(&file) else { continue };
                let Some(text) = self.text(&path) else { continue };
                files.extend(ifcfg::read_at(&path, name, &text).map(|said| (path, said)));
            }
        }
        for file in self.names(keyfile::DIR) {
            let path = format!("{}/{file}", keyfile::DIR);
            if file.starts_with('.') || file.ends_with('~') {
                continue;
            }
            let Some(text) = self.text(&path) else { continue };
            files.extend(keyfile::read(&text).map(|said| (path, said)));
        }
        let seen = Interfaces::look(self.root).all;
        for (path, said) in &mut files {
            fit(said, &seen);
            self.not_converted(path, &said.todo);
        }
        files.retain(|(_, said)| said.interface.is_some());
        let mut imported = interfaces::import(&files);
        imported.todo.clear();
        imported.stays.clear();
        if files.is_empty() {
            return;
        }
        let Some((reason, path)) =
            self.drop_in("the files named below", "60-interfaces.toml", &imported)
        else {
            return;
        };
        let reason = if reason == Reason::Settings { Reason::InterfaceSettings } else { reason };
        for (file, _) in files {
            self.item(Item::new(&file, reason).into_drop_in(&path));
            self.imported.push(file);
        }
    }

    /// The interfaces of ports, without P_Key children.
    fn ports(&self) -> impl Iterator<Item = Interface> {
        Interfaces::look(self.root).all.into_iter().filter(|seen| seen.parent.is_none())
    }

    /// Those whose driver has no connected mode.
    fn datagram_only(&self) -> Vec<IfName> {
        self.ports().filter(|seen| !seen.can_connect).map(|seen| seen.name).collect()
    }

    fn not_converted(&mut self, from: &str, todo: &[String]) {
        for todo in todo {
            let finding = Finding::warning(Code::NotConverted, todo.clone()).about(from);
            self.found.problems.push(finding);
        }
    }

    fn import(&mut self, from: &str, name: &str, imported: &Imported, new: Reason) {
        self.not_converted(from, &imported.todo);
        if imported.toml.is_empty() {
            let is_read = imported.todo.is_empty();
            let reason = if is_read { Reason::Defaults } else { Reason::NothingConverted };
            self.item(Item::new(from, reason));
            return;
        }
        if let Some((reason, path)) = self.drop_in(from, name, imported) {
            let reason = if reason == Reason::Settings { new } else { reason };
            self.item(Item::new(from, reason).into_drop_in(&path));
        }
    }

    /// Plan the drop-in `name` that `from` becomes: what becomes of `from`, and the drop-in's
    /// path.
    fn drop_in(&mut self, from: &str, name: &str, imported: &Imported) -> Option<(Reason, String)> {
        let path = format!("{DROP_INS}/{name}");
        let now = self.state(&path)?;
        let wanted = PathState::own_file(imported.to_text(from));
        let recorded = self.record.iter().flat_map(|record| &record.changes);
        let is_ours = recorded.into_iter().any(|c| c.path == path && now.is_same(&c.after));
        let reason = match &now {
            PathState::File { text, .. } if foreign::says_the_same(text, imported) => {
                Reason::SettingsThere
            }
            PathState::Absent => Reason::Settings,
            _ if is_ours => Reason::Settings,
            _ => Reason::DropInThere,
        };
        if reason == Reason::Settings {
            self.drop_ins.push((path.clone(), imported.to_text(from)));
            self.want(&path, wanted);
        }
        Some((reason, path))
    }

    /// ibprov's own units.
    fn ourselves(&mut self) {
        let installed = |unit: &str| {
            let mut dirs = UNIT_DIRS.iter().map(|dir| format!("{dir}/{unit}"));
            dirs.find(|path| self.root.exists(path))
        };
        let (Some(ours), Some(stand_in)) = (installed(OURS), installed(OPENIBD_STAND_IN)) else {
            let message = format!("{OURS} and {OPENIBD_STAND_IN} are not installed");
            let advice = Advice::permanent("install ibprov on this system, then run this again");
            let finding = Finding::error(Code::NotInstalled, message);
            self.found.problems.push(finding.advise([advice]));
            return;
        };
        for dir in [ETC, "/run/systemd/system"] {
            let path = format!("{dir}/{OURS}");
            if self.root.link_name(&path).is_ok_and(|target| target == "null") {
                let message = format!("{path} masks the unit, so that it would not run at boot");
                let advice = Advice::permanent(ToDo::run(format!("systemctl unmask {OURS}")));
                let finding = Finding::error(Code::IbprovMasked, message).about(OURS);
                self.found.problems.push(finding.advise([advice]));
            }
        }
        let before = self.found.changes.len();
        let links = [
            (format!("{WANTS}/{OURS}"), ours),
            (format!("{WANTS}/{OPENIBD_STAND_IN}"), stand_in.clone()),
            // From here on the vendor's unit is hidden by the alias.
            (format!("{ETC}/{OPENIBD}"), stand_in),
        ];
        for (path, target) in links {
            let name = target.rsplit('/').next().unwrap_or_default();
            if !self.root.link_name(&path).is_ok_and(|now| now == name) {
                self.want(&path, PathState::link(target));
            }
        }
        if self.found.changes.len() > before {
            self.item(Item::new(OURS, Reason::Ourselves));
        }
    }

    /// The vendor's openibd: its unit with what wants it, and its start script.
    fn openibd(&mut self) {
        let root = self.root;
        let mut wants = Vec::new();
        for dir in self.names(ETC) {
            if dir.ends_with(".target.wants") || dir.ends_with(".target.requires") {
                let path = format!("{ETC}/{dir}/{OPENIBD}");
                wants.extend(
                    root.link_name(&path).is_ok_and(|t| t != OPENIBD_STAND_IN).then_some(path),
                );
            }
        }
        let in_etc = format!("{ETC}/{OPENIBD}");
        let has_name = root.link_name(&in_etc).is_ok_and(|target| target == OPENIBD_STAND_IN);
        let unit = std::iter::once(in_etc)
            .filter(|path| !root.is_link(path))
            .chain(UNIT_DIRS.iter().map(|dir| format!("{dir}/{OPENIBD}")))
            .find(|path| root.exists(path));
        match unit {
            Some(path) if !wants.is_empty() => self.item(Item::new(path, Reason::UnitOfVendor)),
            Some(path) if !has_name => self.item(Item::new(path, Reason::UnitNotEnabled)),
            _ => {}
        }
        for path in wants {
            self.want(&path, PathState::Absent);
        }
        let rc_links = self.rc_links();
        if !rc_links.is_empty() {
            self.item(Item::new("/etc/init.d/openibd", Reason::ScriptOfVendor));
        }
        for (dir, start, stop) in rc_links {
            // As `update-rc.d openibd disable` and `chkconfig openibd off` do: a script
            // without any link would get its default ones back from the next update.
            if let (Some(stop), Some(link)) = (stop, self.state(&format!("{dir}/{start}"))) {
                self.want(&format!("{dir}/{stop}"), link);
            }
            self.want(&format!("{dir}/{start}"), PathState::Absent);
        }
        for dir in std::iter::once(&ETC).chain(&UNIT_DIRS) {
            let dir = format!("{dir}/{OPENIBD}.d");
            for name in self.names(&dir) {
                if name.ends_with(".conf") {
                    self.drop_in_of_vendor(&format!("{dir}/{name}"));
                }
            }
        }
    }

    /// A drop-in of openibd, line by line.
    fn drop_in_of_vendor(&mut self, path: &str) {
        let Some(text) = self.text(path) else { return };
        for (number, line) in (1..).zip(text.lines()) {
            let Some((key, value)) = line.split_once('=') else { continue };
            if key.trim_start().starts_with(['#', ';']) || value.trim().is_empty() {
                continue;
            }
            let program = value.split_whitespace().next().and_then(|word| word.rsplit('/').next());
            let reason = match inventory::does(value) {
                _ if !key.trim_start().starts_with("Exec") => Reason::DropInOfVendor,
                Some(Does::LoadsModules) => Reason::DropInLoadsModules,
                _ if program == Some("sleep") => Reason::DropInWaits,
                _ => Reason::DropInOfVendor,
            };
            self.item(Item::new(path, reason).at_line(number, line));
        }
    }

    /// The links that start the script: the directory, the link, and the link that says
    /// that it does not start, unless there is one.
    fn rc_links(&mut self) -> Vec<(String, String, Option<String>)> {
        let mut found = Vec::new();
        if !self.root.has_generator(SYSV_GENERATOR) {
            return found;
        }
        for level in ["rcS.d", "rc2.d", "rc3.d", "rc4.d", "rc5.d"] {
            let below_etc = format!("/etc/{level}");
            let is_link = self.root.is_link(&below_etc);
            let dirs = (!is_link).then_some(below_etc).into_iter();
            for dir in dirs.chain([format!("/etc/rc.d/{level}")]) {
                let names = self.names(&dir);
                let of = |letter: char| {
                    let is_its = move |name: &&String| {
                        name.starts_with(letter) && name.get(3..) == Some("openibd")
                    };
                    names.iter().find(is_its)
                };
                let Some(start) = of('S') else { continue };
                let number = start.get(1..3).and_then(|number| number.parse::<u8>().ok());
                let stop =
                    number.map(|n| format!("K{:02}openibd", 100_u8.saturating_sub(n).min(99)));
                found.push((dir.clone(), start.clone(), stop.filter(|_| of('K').is_none())));
            }
        }
        found
    }

    fn interface_manager(&mut self) {
        if let Some(rule) = interface_manager::rule(self.root) {
            self.want(interface_manager::MASK, PathState::link("/dev/null"));
            self.item(Item::new(rule, Reason::InterfaceManager));
        }
    }

    fn others(&mut self) {
        let files = [
            ("/usr/lib/systemd/system/rdma-load-modules@.service", Reason::ModulesOfRdmaCore),
            ("/lib/systemd/system/rdma-load-modules@.service", Reason::ModulesOfRdmaCore),
            ("/etc/default/opensm", Reason::SubnetManager),
            ("/etc/sysconfig/opensm", Reason::SubnetManager),
            ("/etc/rdma/opensm.conf", Reason::SubnetManager),
            ("/etc/opensm/opensm.conf", Reason::SubnetManager),
        ];
        let merged = self.root.is_link("/lib");
        for (file, reason) in files {
            if self.root.exists(file) && !(merged && file.starts_with("/lib/")) {
                self.item(Item::new(file, reason));
            }
        }
        // systemd-modules-load.service(8)
        for name in self.names("/etc/modules-load.d") {
            let path = format!("/etc/modules-load.d/{name}");
            let Some(text) = self.text(&path).filter(|_| name.ends_with(".conf")) else { continue };
            if text.lines().any(|line| inventory::is_module(line.trim())) {
                self.item(Item::new(path, Reason::ModulesOfRdmaCore));
            }
        }
        self.found.problems.extend(stacks::netplan::not_judged(self.root));
        self.subnet_managers();
        let mut files: Vec<String> =
            stacks::KNOWN.asked(self.root, is_ipoib_name).into_iter().map(|a| a.file).collect();
        files.sort_unstable();
        files.dedup();
        files.retain(|file| !self.imported.contains(file));
        for file in files {
            self.item(Item::new(file, Reason::Addresses));
        }
    }

    /// What else touches InfiniBand at boot.
    fn inventory(&mut self, functions: &[PciFunction]) {
        let Inventory { entries, problems } = std::mem::take(&mut self.inventory);
        self.found.problems.extend(problems.into_iter().map(Finding::not_read));
        for entry in entries {
            let is_its = entry.does != Does::SetsVfs
                || functions.iter().any(|f| f.ib_driver.is_some() && entry.may_be_about(f));
            let left = entry.is_shipped || entry.when == When::NotByBoot || !is_its;
            let Some(reason) = reason(&entry).filter(|_| !left) else { continue };
            let item = match entry.line {
                Some(line) => Item::new(&entry.place, reason).at_line(line, &entry.text),
                None => Item::new(&entry.place, reason).saying(&entry.text),
            };
            self.item(if entry.is_sure { item } else { item.guessed() });
        }
    }

    /// A BlueField's own system, told as mlnx_bf_configure tells it (tsbin/mlnx_bf_configure of
    /// mlnx-tools 26.07): by the PCI bridge at 00:00.0, or from BlueField-4 on by a file.
    fn bluefield(&mut self, functions: &[PciFunction]) {
        let of_bridge =
            |name: &str| self.root.attribute(&format!("/sys/bus/pci/devices/0000:00:00.0/{name}"));
        let has_bridge = of_bridge("vendor").is_ok_and(|vendor| vendor == "0x15b3")
            && of_bridge("class").is_ok_and(|class| class.starts_with("0x0604"));
        let mut adapters = functions.iter();
        let has_adapter = adapters.any(|f| f.vendor == MELLANOX && BLUEFIELD.contains(&f.device));
        if has_bridge || has_adapter && self.root.exists("/etc/mlnx-release") {
            let message = "this is the system of a BlueField itself, where openibd runs mlnx_bf_configure, which sets up switchdev mode, scalable functions and Open vSwitch; ibprov does none of this";
            let advice = Advice::permanent("leave this system to openibd");
            let finding = Finding::error(Code::BluefieldSystem, message);
            self.found.problems.push(finding.advise([advice]));
        }
    }

    /// The units that start opensm, and the entries that would do the same.
    fn subnet_managers(&mut self) {
        let look = Look::new(self.root);
        let of_defaults = opensm::ports_of_defaults(&look);
        let mut units = self.inventory.opensm_starters(self.root, of_defaults.as_deref());
        units.retain(|starter| starter.is_unit);
        let priority = opensm::DEFAULTS
            .iter()
            .flat_map(|path| opensm::settings(&look, path))
            .find_map(|(key, value)| (key == "PRIORITY").then(|| value.parse::<u8>().ok())?);
        let ports: BTreeSet<Guid> =
            units.iter().filter_map(|u| u.ports.clone()).flatten().collect();
        let entry = |guid: &Guid| {
            let priority = priority.unwrap_or_default();
            format!("{{ port-guid = \"{:016x}\", priority = {priority} }}", guid.value())
        };
        for unit in units {
            self.item(Item::new(unit.name, Reason::SubnetManagerUnit));
        }
        if ports.is_empty() {
            return;
        }
        let entries: Vec<String> = ports.iter().map(entry).collect();
        let message = "to have ibprov start opensm instead, disable its units, add these entries to the configuration, then `systemctl enable ibprov-opensm.target` (ibprov.toml(5))";
        let entries = format!("subnet-manager = [{}]", entries.join(", "));
        self.found.problems.push(
            Finding::new(Code::Notice, Severity::Info, message)
                .about("opensm")
                .advise([Advice::permanent(entries)]),
        );
    }

    /// The configuration as it would be.
    fn configuration(&mut self) {
        if let Err(problems) = config::load_with(self.root, &self.drop_ins) {
            let message = format!("the configuration would have errors: {problems}");
            self.found.problems.push(Finding::error(Code::ConfigurationInvalid, message));
        }
    }
}

/// What becomes of what the inventory has; nothing of what only asks.
fn reason(entry: &Entry) -> Option<Reason> {
    let is_unit = entry.line.is_none() && !entry.place.contains('/');
    Some(match entry.does {
        Does::Asks => return None,
        _ if entry.when == When::Never => Reason::NotRun,
        Does::CallsOpenibd => Reason::CallsOpenibd,
        Does::SetsVfs => Reason::SetsVfs,
        // Named with its ports.
        Does::RunsOpensm if is_unit => return None,
        Does::RunsOpensm => Reason::StartsOpensm,
        Does::SetsFirmware => Reason::SetsFirmware,
        Does::SetsPortTypes => Reason::SetsPortTypes,
        Does::RenamesDevices => Reason::RenamesRdma,
        Does::BindsDrivers => Reason::BindsDrivers,
        Does::SetsPorts => Reason::SetsPorts,
        Does::SetsInterfaces => Reason::BringsUp,
        // As rules of packages do.
        Does::LoadsModules if entry.place.ends_with(".rules") => return None,
        Does::LoadsModules => Reason::LoadsModules,
        // To start guests is what libvirt's units are for.
        Does::StartsGuests if is_unit => return None,
        Does::StartsGuests => Reason::StartsGuest,
        Does::Tunes => Reason::Tunes,
        Does::NotUnderstood => Reason::NotUnderstood,
    })
}
