//! The graph of the next boot from files: units, drop-ins, aliases, masks and
//! the links of `systemctl enable`, read as systemd does (systemd.unit(5),
//! "UNIT FILE LOAD PATH"). A live system has what its generators made as well;
//! of a mounted one, the mounts of fstab and start scripts with rc links are
//! worked out here.
//!
//! For a live system too: to ask systemd for all its units costs seconds of CPU
//! where this costs milliseconds, and what it has loaded may be older than the
//! files that the next boot reads.

use std::collections::{BTreeMap, BTreeSet};

use super::planned::{Planned, Tree};
use super::unit_file::{Assignments, expand};
use super::{Command, Graph, Load, Unit, fstab, sysv};
use crate::host::{RC_LOCAL_GENERATOR, Root, unit_links};
use crate::names::UNIT_DIRS;

/// No unit file is larger.
const LIMIT: u64 = 256 * 1024;
/// Larger programs are no scripts.
const SCRIPT_LIMIT: u64 = 64 * 1024;
/// More units than these are no boot.
const MOST_UNITS: usize = 10_000;

/// The graph of the next boot of the system below `root`.
pub fn graph(root: &Root) -> Graph {
    graph_with(root, &Planned::new())
}

/// The same, with what is planned in place.
pub fn graph_with(root: &Root, planned: &Planned) -> Graph {
    read(Tree { root, planned }, None)
}

/// The same, with the units that are up and all that links enable: what pulls those in may be a
/// device.
pub fn enabled(root: &Root) -> Graph {
    read(Tree { root, planned: &Planned::new() }, Some(unit_links::up_services(root)))
}

/// The unit of this name alone, whether anything starts it or not.
pub fn unit(root: &Root, name: &str) -> Unit {
    Reader::new(Tree { root, planned: &Planned::new() }).load(name)
}

/// The graph of the goal, with all that links enable if there are `more` units to begin with.
fn read(tree: Tree<'_>, more: Option<Vec<String>>) -> Graph {
    let root = tree.root;
    let mut reader = Reader::new(tree);
    reader.graph.goal = "default.target".to_owned();
    // What generators made of these on a live system may be of this boot only.
    let has_generated = root.exists("/run/systemd/generator");
    let fstab = root.text("/etc/fstab", LIMIT).unwrap_or_else(|e| {
        if !e.is_absent() {
            reader.graph.problems.push(e.to_string());
        }
        String::new()
    });
    for mount in fstab::mounts(&fstab) {
        if has_generated && reader.has(&mount.unit.name) {
            continue;
        }
        let mut pulled = mount.unit.name.clone();
        if let Some(automount) = mount.automount {
            pulled.clone_from(&automount.name);
            reader.given.insert(automount.name.clone(), automount);
        }
        if let Some(target) = mount.wanted_by {
            let pull = if mount.required { &mut reader.requires } else { &mut reader.wants };
            pull.entry(target.to_owned()).or_default().insert(pulled);
        }
        reader.given.insert(mount.unit.name.clone(), mount.unit);
    }
    for script in sysv::scripts(reader.tree, |name| reader.has(name)) {
        for target in ["multi-user.target", "graphical.target"] {
            reader.wants.entry(target.to_owned()).or_default().insert(script.name.clone());
        }
        reader.given.insert(script.name.clone(), script);
    }
    // systemd-rc-local-generator(8)
    let rc_local = "rc-local.service";
    let has_script =
        || ["/etc/rc.local", "/etc/rc.d/rc.local"].iter().any(|path| root.exists(path));
    if reader.has(rc_local) && root.has_generator(RC_LOCAL_GENERATOR) && has_script() {
        reader.wants.entry("multi-user.target".to_owned()).or_default().insert(rc_local.to_owned());
    }
    let mut open = vec!["default.target".to_owned()];
    if let Some(more) = more {
        let links = reader.wants.values().chain(reader.requires.values()).flatten();
        open.extend(more.into_iter().chain(links.cloned()));
    }
    while let Some(name) = open.pop() {
        if reader.graph.get(&name).is_some() || reader.graph.units.len() >= MOST_UNITS {
            continue;
        }
        let unit = reader.load(&name);
        open.extend(unit.requires.iter().chain(&unit.wants).chain(&unit.triggers).cloned());
        let alias = (unit.name != name).then(|| name.clone());
        let aliases = reader.names_of(&unit.name);
        reader.graph.add(unit, aliases.into_iter().chain(alias));
    }
    // Not part of the boot, and worth knowing that they are there.
    for name in ["ibprov.service", "openibd.service"] {
        if reader.graph.get(name).is_none() && reader.has(name) {
            let mut unit = reader.load(name);
            let state = if unit.load == Load::Masked { "masked" } else { "disabled" };
            state.clone_into(&mut unit.file_state);
            reader.graph.add(unit, []);
        }
    }
    reader.order_targets();
    let mut graph = reader.graph;
    graph.settle();
    graph
}

struct Reader<'a> {
    tree: Tree<'a>,
    /// Names in the directories: which directory has it first.
    places: BTreeMap<String, &'static str>,
    /// Other names, from links.
    aliases: BTreeMap<String, String>,
    /// Links in `X.wants` and `X.requires`.
    wants: BTreeMap<String, BTreeSet<String>>,
    requires: BTreeMap<String, BTreeSet<String>>,
    /// Folders of drop-ins that exist, `X.d`.
    drop_ins: BTreeMap<String, Vec<&'static str>>,
    /// Units that no file in those directories makes.
    given: BTreeMap<String, Unit>,
    graph: Graph,
    /// Units without default dependencies.
    bare: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    fn new(tree: Tree<'a>) -> Self {
        let mut reader = Self {
            tree,
            places: BTreeMap::new(),
            aliases: BTreeMap::new(),
            wants: BTreeMap::new(),
            requires: BTreeMap::new(),
            drop_ins: BTreeMap::new(),
            given: BTreeMap::new(),
            graph: Graph::default(),
            bare: BTreeSet::new(),
        };
        // Where /lib is a link to usr/lib, all of it has been read.
        let merged = tree.root.is_link("/lib");
        for dir in UNIT_DIRS.into_iter().filter(|dir| !(merged && dir.starts_with("/lib/"))) {
            match tree.list_or_empty(dir) {
                Ok(names) => names.into_iter().for_each(|name| reader.enter(dir, name)),
                Err(e) => reader.graph.problems.push(e.to_string()),
            }
        }
        reader
    }

    fn enter(&mut self, dir: &'static str, name: String) {
        if let Some(unit) = name.strip_suffix(".d") {
            self.drop_ins.entry(unit.to_owned()).or_default().push(dir);
        } else if let Some((unit, pulls)) = name
            .strip_suffix(".wants")
            .map(|u| (u, false))
            .or_else(|| name.strip_suffix(".requires").map(|u| (u, true)))
        {
            let links = match self.tree.list_or_empty(&format!("{dir}/{name}")) {
                Ok(links) => links,
                Err(e) => return self.graph.problems.push(e.to_string()),
            };
            let into = if pulls { &mut self.requires } else { &mut self.wants };
            into.entry(unit.to_owned()).or_default().extend(links);
        } else if !self.places.contains_key(&name) {
            // What is no link has no target: that is what an error means here.
            let target = self.tree.link_name(&format!("{dir}/{name}"));
            if let Some(target) = target.filter(|t| *t != name && *t != "null" && !t.is_empty()) {
                // A link to one's own template is an instance, no alias.
                if template(&name).as_deref() != Some(&target) {
                    self.aliases.insert(name.clone(), target);
                }
            }
            self.places.insert(name, dir);
        }
    }

    fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// The unit that a name stands for, through links to links.
    fn resolve(&self, name: &str) -> String {
        let mut name = name;
        for _ in 0..8 {
            match self.aliases.get(name) {
                Some(target) => name = target,
                None => break,
            }
        }
        name.to_owned()
    }

    fn names_of(&self, unit: &str) -> Vec<String> {
        self.aliases.keys().filter(|alias| self.resolve(alias) == unit).cloned().collect()
    }

    fn load(&mut self, name: &str) -> Unit {
        let name = self.resolve(name);
        if let Some(mut unit) = self.given.remove(&name) {
            let drop_ins = self.assignments(&name, &[], "");
            self.dependencies(&mut unit, &drop_ins);
            return unit;
        }
        let mut unit = Unit { name: name.clone(), ..Unit::default() };
        let file = [Some(name.clone()), template(&name)]
            .into_iter()
            .flatten()
            .find_map(|file| self.places.get(&file).map(|dir| format!("{dir}/{file}")));
        let Some(path) = file else {
            // Those systemd makes without a file.
            let is_made = [".slice", ".scope", ".device"].iter().any(|kind| name.ends_with(kind));
            unit.load = if is_made { Load::Loaded } else { Load::NotFound };
            return unit;
        };
        unit.fragment.clone_from(&path);
        if self.tree.link_name(&path).is_some_and(|target| target == "null") {
            unit.load = Load::Masked;
            return unit;
        }
        match self.tree.text(&path, LIMIT) {
            Ok(text) if text.is_empty() => unit.load = Load::Masked,
            Ok(text) => {
                let aliases = self.names_of(&name);
                let read = self.assignments(&name, &aliases, &text);
                self.fill(&mut unit, &read);
            }
            Err(e) => {
                unit.load = Load::Bad;
                self.graph.problems.push(e.to_string());
            }
        }
        unit
    }

    /// File and drop-ins. Of two drop-ins of one name the first directory's
    /// counts; all are read in the order of their names.
    fn assignments(&mut self, name: &str, aliases: &[String], text: &str) -> Assignments {
        let mut read = Assignments::default();
        read.read(text);
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for owner in drop_in_names(name).into_iter().chain(aliases.iter().cloned()) {
            for dir in self.drop_ins.get(&owner).into_iter().flatten() {
                let folder = format!("{dir}/{owner}.d");
                for file in self.tree.list_or_empty(&folder).unwrap_or_default() {
                    if file.ends_with(".conf") {
                        let path = format!("{folder}/{file}");
                        files.entry(file).or_insert(path);
                    }
                }
            }
        }
        for path in files.values() {
            match self.tree.text(path, LIMIT) {
                Ok(text) => read.read(&text),
                Err(e) => self.graph.problems.push(e.to_string()),
            }
        }
        read
    }

    fn fill(&mut self, unit: &mut Unit, read: &Assignments) {
        let kind = unit.name.rsplit('.').next().unwrap_or_default().to_owned();
        match kind.as_str() {
            "service" => {
                unit.kind = read.last("Service", "Type").to_owned();
                if unit.kind.is_empty() {
                    let bus = !read.last("Service", "BusName").is_empty();
                    let started = !read.all("Service", "ExecStart").is_empty();
                    unit.kind = match (bus, started) {
                        (true, _) => "dbus",
                        (false, true) => "simple",
                        (false, false) => "oneshot",
                    }
                    .to_owned();
                }
                // What makes /tmp's content private comes after /tmp is tidy
                // (systemd.exec(5), "Implicit Dependencies").
                if matches!(read.last("Service", "PrivateTmp"), "yes" | "true" | "1" | "on") {
                    unit.after.insert("systemd-tmpfiles-setup.service".to_owned());
                }
                for phase in ["ExecStartPre", "ExecStart", "ExecStartPost"] {
                    for line in read.all("Service", phase) {
                        let line = expand(line, &unit.name).unwrap_or_else(|| line.clone());
                        let script = script(self.tree.root, &line);
                        unit.commands.push(Command { phase: phase.to_owned(), line, script });
                    }
                }
                unit.settings = read.all("Service", "Environment").to_vec();
                for file in read.all("Service", "EnvironmentFile") {
                    let text = self.tree.text(file.trim_start_matches('-'), LIMIT);
                    unit.settings.extend(text.iter().flat_map(|t| t.lines().map(str::to_owned)));
                }
                unit.settings.extend_from_slice(read.all("Service", "DeviceAllow"));
                read.last("Service", "LimitMEMLOCK").clone_into(&mut unit.memlock);
            }
            "timer" | "path" | "automount" => {
                let section = format!("{}{}", kind[..1].to_uppercase(), &kind[1..]);
                let stem = unit.name.trim_end_matches(&format!(".{kind}"));
                let other = if kind == "automount" { "mount" } else { "service" };
                unit.triggers.insert(match read.last(&section, "Unit") {
                    "" => format!("{stem}.{other}"),
                    named => named.to_owned(),
                });
            }
            "mount" => {
                unit.kind = read.last("Mount", "Type").to_owned();
                unit.what = read.last("Mount", "What").to_owned();
                unit.options = read.last("Mount", "Options").to_owned();
            }
            _ => {}
        }
        let conditions = NEEDED_PATHS.iter().flat_map(|key| read.all("Unit", key));
        let needed = conditions.filter(|path| !path.trim_start_matches('|').starts_with('!'));
        unit.settings.extend(needed.cloned());
        self.dependencies(unit, read);
        let default =
            !matches!(read.last("Unit", "DefaultDependencies"), "no" | "false" | "0" | "off");
        if default {
            default_dependencies(unit, &kind);
        } else {
            self.bare.insert(unit.name.clone());
        }
        if kind == "socket" {
            let stem = unit.name.trim_end_matches(".socket");
            unit.before.insert(format!("{stem}.service"));
        }
    }

    fn dependencies(&self, unit: &mut Unit, read: &Assignments) {
        let name = unit.name.clone();
        let names = |keys: &[&str]| -> Vec<String> {
            let values = keys.iter().flat_map(|key| read.all("Unit", key));
            values
                .flat_map(|value| value.split_whitespace())
                .filter_map(|value| expand(value, &name))
                .collect()
        };
        unit.after.extend(names(&["After"]));
        unit.before.extend(names(&["Before"]));
        unit.requires.extend(names(&["Requires", "BindsTo", "Requisite"]));
        unit.wants.extend(names(&["Wants", "Upholds"]));
        for owner in self.names_of(&name).iter().chain([&name]) {
            unit.wants.extend(self.wants.get(owner).into_iter().flatten().cloned());
            unit.requires.extend(self.requires.get(owner).into_iter().flatten().cloned());
        }
    }

    /// A target comes after what it pulls in, unless that has been ordered
    /// after the target, or one of them has no default dependencies
    /// (`unit_add_default_target_dependency()` of `src/core/unit.c`).
    fn order_targets(&mut self) {
        let mut orders: Vec<(String, String)> = Vec::new();
        for target in self.graph.units().filter(|u| u.name.ends_with(".target")) {
            if self.bare.contains(&target.name) {
                continue;
            }
            for name in target.requires.iter().chain(&target.wants) {
                let Some(unit) = self.graph.get(name) else { continue };
                let names: Vec<&String> =
                    self.aliases.keys().filter(|a| self.resolve(a) == target.name).collect();
                let opposed = unit.after.contains(&target.name)
                    || names.iter().any(|n| unit.after.contains(*n))
                    || target.before.contains(&unit.name);
                if !opposed && !self.bare.contains(&unit.name) {
                    orders.push((target.name.clone(), unit.name.clone()));
                }
            }
        }
        for (target, unit) in orders {
            if let Some(target) = self.graph.get_mut(&target) {
                target.after.insert(unit);
            }
        }
    }
}

/// Conditions that are met by what is at a path.
const NEEDED_PATHS: [&str; 7] = [
    "ConditionPathExists",
    "ConditionPathExistsGlob",
    "ConditionPathIsDirectory",
    "ConditionDirectoryNotEmpty",
    "AssertPathExists",
    "AssertPathExistsGlob",
    "AssertDirectoryNotEmpty",
];

/// What DefaultDependencies=yes adds (systemd.service(5), "Default
/// Dependencies", and the same section of the other kinds).
fn default_dependencies(unit: &mut Unit, kind: &str) {
    match kind {
        "service" => {
            unit.requires.insert("sysinit.target".to_owned());
            unit.after.extend(["sysinit.target", "basic.target"].map(str::to_owned));
        }
        "socket" | "timer" | "path" => {
            unit.requires.insert("sysinit.target".to_owned());
            unit.after.insert("sysinit.target".to_owned());
            unit.before.insert(format!("{kind}s.target"));
        }
        "mount" => fstab::order_mount(unit),
        _ => {}
    }
    if kind != "target" || !unit.name.starts_with("shutdown") {
        unit.before.insert("shutdown.target".to_owned());
    }
}

/// `a-b@.service` of `a-b@c.service`.
fn template(name: &str) -> Option<String> {
    let (stem, kind) = name.rsplit_once('.')?;
    let (prefix, instance) = stem.split_once('@')?;
    (!instance.is_empty()).then(|| format!("{prefix}@.{kind}"))
}

/// Whose drop-ins a unit heeds, without the `.d`.
fn drop_in_names(name: &str) -> Vec<String> {
    let Some((stem, kind)) = name.rsplit_once('.') else { return Vec::new() };
    let mut names = vec![kind.to_owned()];
    let prefix = stem.split('@').next().unwrap_or_default();
    for (at, _) in prefix.match_indices('-') {
        names.extend(prefix.get(..=at).map(|p| format!("{p}.{kind}")));
    }
    names.extend(template(name));
    names.push(name.to_owned());
    names
}

/// The text of the script that a command line runs.
fn script(root: &Root, line: &str) -> Option<Vec<String>> {
    let mut words =
        line.split_whitespace().map(|w| w.trim_start_matches(['@', '-', ':', '+', '!']));
    let mut program = words.next()?;
    // `sh SCRIPT` is the same.
    if matches!(program.rsplit('/').next(), Some("sh" | "bash" | "dash")) {
        program = words.next().filter(|w| w.starts_with('/'))?;
    }
    if !program.starts_with('/')
        || program.starts_with("/usr/lib/systemd/")
        || program.starts_with("/lib/systemd/")
    {
        return None;
    }
    // Larger than any script, or not there: it is none that could be looked into.
    let bytes = root.bytes(program, SCRIPT_LIMIT).ok()?;
    let lines = || String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect();
    bytes.starts_with(b"#!").then(lines)
}

#[cfg(test)]
mod tests;
