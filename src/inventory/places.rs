//! Where what touches InfiniBand at boot may stand, and what a line there runs.

use std::collections::BTreeSet;
use std::io::Read as _;

use nix::errno::Errno;

use super::line::{self, Command, Known};
use super::udev_rule::{self, Token};
use super::variables::{self, Variables};
use super::{Does, Entry, Inventory, When};
use crate::graph::{Graph, Load, Unit, files};
use crate::host::{ReadError, Root};
use crate::names::{OPENIBD_STAND_IN, PciAddress, is_ipoib_name, joined_lines};
use crate::observe::{modprobe, udev};

/// What openibd runs, at the default paths.
pub const OPENIBD_HOOKS: [&str; 4] = [
    "/etc/infiniband/pre-start-hook.sh",
    "/etc/infiniband/post-start-hook.sh",
    "/etc/infiniband/pre-stop-hook.sh",
    "/etc/infiniband/post-stop-hook.sh",
];
/// No file of settings or script is larger, bytes.
const LIMIT: u64 = 1 << 20;
/// No program is looked into that is larger, bytes.
const PROGRAM_LIMIT: u64 = 32 << 20;
/// So many scripts and units that run one another are followed.
const DEPTH: u8 = 3;

/// All of it, with the units of `graph`.
pub(super) fn read(root: &Root, graph: &Graph) -> Inventory {
    let mut reader = Reader { root, found: Inventory::default() };
    reader.found.problems.clone_from(&graph.problems);
    reader.rc_local();
    reader.crontabs();
    reader.units(graph);
    reader.udev_rules();
    for file in reader.files(&Known::all().places.hooks, "") {
        reader.script_file(&file, When::AtBoot);
    }
    reader.openibd_hooks();
    reader.interfaces();
    reader.settings();
    reader.modprobe();
    reader.found.problems.sort_unstable();
    reader.found.problems.dedup();
    // A place is named once for each kind, whatever runs it.
    for entry in std::mem::take(&mut reader.found.entries) {
        let is_same = |known: &&mut Entry| {
            (&known.place, known.line, known.does) == (&entry.place, entry.line, entry.does)
        };
        match reader.found.entries.iter_mut().find(is_same) {
            Some(known) => known.lines.extend(entry.lines),
            None => reader.found.entries.push(entry),
        }
    }
    reader.found
}

/// What rc.local has alone.
pub(super) fn rc_local(root: &Root) -> Inventory {
    let mut reader = Reader { root, found: Inventory::default() };
    reader.rc_local();
    reader.found
}

/// A line where it stands, and when it takes effect.
#[derive(Clone, Copy)]
struct At<'a> {
    place: &'a str,
    line: Option<usize>,
    text: &'a str,
    when: When,
    /// The file of the place.
    file: &'a str,
    /// The whole that the line is of.
    context: &'a str,
    /// What may name the adapter where the line does not.
    names: &'a str,
    /// How many scripts and units run it, one by the other.
    depth: u8,
}

impl<'a> At<'a> {
    /// A line of a file that takes effect at boot.
    const fn line(file: &'a str, number: usize, text: &'a str, context: &'a str) -> Self {
        let (place, line, when) = (file, Some(number), When::AtBoot);
        Self { place, line, text, when, file, context, names: context, depth: 0 }
    }
}

struct Reader<'a> {
    root: &'a Root,
    found: Inventory,
}

impl Reader<'_> {
    /// What openibd runs, unless ibprov has its place.
    fn openibd_hooks(&mut self) {
        let openibd = self.root.link_name("/etc/systemd/system/openibd.service");
        if openibd.is_ok_and(|target| target == OPENIBD_STAND_IN) {
            return;
        }
        let conf = self.text("/etc/infiniband/openib.conf").unwrap_or_default();
        let named = conf.lines().filter_map(|line| {
            let (key, path) = line.trim().strip_prefix("OPENIBD_P")?.split_once('=')?;
            matches!(key, "RE_START" | "OST_START").then(|| path.trim_matches(['"', '\'', ' ']))
        });
        for path in OPENIBD_HOOKS.into_iter().chain(named.filter(|path| path.starts_with('/'))) {
            self.script_file(path, When::AtBoot);
        }
    }

    /// The files in these folders whose names end so; a path that is no folder stands for itself.
    fn files(&mut self, paths: &[String], end: &str) -> Vec<String> {
        let mut files = Vec::new();
        for path in paths {
            match self.root.list(path) {
                Ok(names) => {
                    let names = names.into_iter().filter(|name| name.ends_with(end));
                    files.extend(names.map(|name| format!("{path}/{name}")));
                }
                Err(ReadError::System { errno: Errno::ENOTDIR, .. }) => files.push(path.clone()),
                Err(e) => self.problem(&e),
            }
        }
        files
    }

    /// The text of a file; none, with a problem, of one that is there and cannot be read. A
    /// folder among files is none.
    fn text(&mut self, path: &str) -> Option<String> {
        match self.root.text(path, LIMIT) {
            Ok(text) => Some(text),
            Err(ReadError::System { errno: Errno::EISDIR, .. }) => None,
            Err(e) => {
                self.problem(&e);
                None
            }
        }
    }

    fn rc_local(&mut self) {
        let when = if self.root.runs_rc_local() { When::AtBoot } else { When::Never };
        for file in &Known::all().places.rc_local {
            // One that is a link to another counts there; one that is no file may have had such
            // lines.
            if self.root.is_link(file) {
                continue;
            }
            match self.root.text(file, LIMIT) {
                Ok(text) => self.lines(file, &text, when, |line| Some(line)),
                Err(e) => self.problem(&e),
            }
        }
    }

    fn crontabs(&mut self) {
        fn command(line: &str) -> Option<&str> {
            line.trim_start().strip_prefix("@reboot").map(str::trim_start)
        }
        for file in self.files(&Known::all().places.crontabs, "") {
            if let Some(text) = self.text(&file) {
                self.lines(&file, &text, When::AtBoot, command);
            }
        }
    }

    /// The lines of interfaces(5) that run a program. To set an interface up is what they are for.
    fn interfaces(&mut self) {
        for file in self.files(&Known::all().places.interfaces, "") {
            let Some(text) = self.text(&file) else { continue };
            let from = self.found.entries.len();
            self.lines(&file, &text, When::AtBoot, |line| {
                let (key, command) = line.trim_start().split_once(char::is_whitespace)?;
                matches!(key, "pre-up" | "up" | "post-up").then_some(command)
            });
            let mut at = 0;
            self.found.entries.retain(|entry| {
                at += 1;
                at <= from || entry.does != Does::SetsInterfaces
            });
        }
    }

    /// What the lines of a text do of which `command` gives a part.
    fn lines(
        &mut self,
        file: &str,
        text: &str,
        when: When,
        command: impl Fn(&str) -> Option<&str>,
    ) {
        let (mut folder, mut variables) = (None, Variables::default());
        for (number, line) in joined_lines(text) {
            let expanded = variables.expanded(&line);
            let Some(part) = command(&expanded) else { continue };
            let names = if part.contains('$') { "" } else { text };
            let at = At { when, names, ..At::line(file, number, &line, text) };
            self.line(at, part, &mut folder);
        }
    }

    /// What a line does, by itself or by a script; `folder` is the one that an earlier line has
    /// changed to.
    fn line(&mut self, at: At<'_>, line: &str, folder: &mut Option<String>) {
        let mut all: Vec<(Does, bool)> = Vec::new();
        let mut others = Vec::new();
        let line = &variables::without_inner_quotes(line);
        for command in line::commands(line) {
            match command.does(at.context) {
                Some(does) => all.push(does),
                None if command.changes_folder(folder) => {}
                None => others.push((command, folder.clone())),
            }
        }
        self.add(at, &all, at.text, line, None);
        for (command, folder) in others {
            self.programs(at, &command, folder.as_deref());
        }
    }

    /// What the scripts do that a command runs, and what its program is guessed to.
    fn programs(&mut self, at: At<'_>, command: &Command<'_>, folder: Option<&str>) {
        let mut words = command.words.iter().copied();
        let Some(first) = words.next() else { return };
        if command.only_tells() || at.depth > DEPTH {
            return;
        }
        if let Some(units) = command.started_units() {
            units.for_each(|unit| self.started(at, unit));
            return;
        }
        let launches = Known::all().words.launches(line::base(first));
        let own = if first.starts_with('/') {
            vec![first.to_owned()]
        } else if let (true, Some(folder)) = (first.contains('/'), folder) {
            vec![format!("{folder}/{}", first.trim_start_matches("./"))]
        } else if first.contains('/') {
            Vec::new()
        } else {
            Known::all().places.programs.iter().map(|dir| format!("{dir}/{first}")).collect()
        };
        let root = self.root;
        let mut unopened = Vec::new();
        let mut opened = |path: String| match root.own_file(&path) {
            Ok(file) => Some((path, file?)),
            Err(why) => {
                unopened.push((path, why));
                None
            }
        };
        let own = own.into_iter().find_map(&mut opened);
        let script = words.find(|word| launches && word.starts_with('/')).map(str::to_owned);
        let files: Vec<_> = own.into_iter().chain(script.and_then(opened)).collect();
        // Units run much that is not of InfiniBand; what somebody has written into a file of few
        // lines may be.
        let is_unit = at.line.is_none();
        // What is in /run was written since this boot began, by what is found where it stands.
        let is_named = |path: &str| {
            command.words.contains(&path)
                && is_outside_of_packages(path)
                && !path.starts_with("/run/")
        };
        for (path, why) in unopened.iter().filter(|(path, _)| !is_unit && is_named(path)) {
            let text = format!("{}; {path} was not looked at: {why}", at.text.trim());
            self.add(at, &[(Does::NotUnderstood, false)], &text, at.text, None);
        }
        for (path, mut file) in
            files.into_iter().filter(|(path, _)| !path.contains("/lib/systemd/"))
        {
            let mut head = [0; 4];
            let is_read = file.read_exact(&mut head).is_ok();
            let is_elf = head == *b"\x7fELF";
            let is_packaged = !is_outside_of_packages(&path);
            if !is_read || is_packaged && (is_elf || at.depth > 0) {
                continue;
            }
            let limit = if is_elf { PROGRAM_LIMIT } else { LIMIT };
            let mut bytes = head.to_vec();
            let is_whole =
                file.take(limit).read_to_end(&mut bytes).is_ok_and(|n| n as u64 != limit);
            if !is_whole {
                continue;
            }
            if is_elf {
                let guess = line::of_program(&bytes).map(|does| (does, false));
                self.add(at, guess.as_slice(), at.text, at.text, None);
            } else if !bytes.contains(&0) {
                self.script(at, &path, &String::from_utf8_lossy(&bytes));
            }
        }
    }

    /// What the script `path` does, one entry for each kind, at the line that runs it.
    fn script(&mut self, at: At<'_>, path: &str, text: &str) {
        let first = text.lines().next().unwrap_or_default();
        let is_shell = !first.starts_with("#!")
            || first.split(['/', ' ']).any(|word| Known::all().words.is_shell(word));
        let mut all: Vec<(Does, bool, usize, String)> = Vec::new();
        let mut variables = Variables::default();
        let (mut folder, mut others) = (None, Vec::new());
        for (number, raw) in joined_lines(text) {
            let line = if is_shell { variables.expanded(&raw) } else { raw.clone() };
            let mut of_line = Vec::new();
            if is_shell {
                for command in line::commands(&line) {
                    match command.does(text) {
                        Some(does) => of_line.push(does),
                        None if command.changes_folder(&mut folder) => {}
                        None => others.push((number, line.clone(), folder.clone())),
                    }
                }
            } else {
                of_line.extend(line::of_other_language(&line).map(|does| (does, false)));
            }
            all.extend(of_line.into_iter().map(|(does, sure)| (does, sure, number, line.clone())));
        }
        let kinds: BTreeSet<Does> = all.iter().map(|(does, ..)| *does).collect();
        for kind in kinds {
            let mut its = all.iter().filter(|(does, ..)| *does == kind);
            let Some((_, _, number, first)) =
                its.clone().find(|(_, sure, ..)| *sure).or_else(|| its.next())
            else {
                continue;
            };
            let is_sure = all.iter().any(|(does, sure, ..)| *does == kind && *sure);
            let shown = if at.file == path {
                first.trim().to_owned()
            } else {
                format!("{}; {path}:{number}: {}", at.text.trim(), first.trim())
            };
            let lines: Vec<String> = all
                .iter()
                .filter(|(does, ..)| *does == kind)
                .map(|(.., line)| line.clone())
                .collect();
            let at = if at.file == path { At { line: Some(*number), ..at } } else { at };
            self.add(at, &[(kind, is_sure)], &shown, &lines.join("\n"), Some(text));
        }
        others.dedup();
        for (number, line, folder) in others {
            let shown = match at.text {
                "" => line.trim().to_owned(),
                by => format!("{}; {path}:{number}: {}", by.trim(), line.trim()),
            };
            let at_line = if at.file == path { Some(number) } else { at.line };
            let at = At { line: at_line, text: &shown, depth: at.depth + 1, ..at };
            for command in line::commands(&line).iter().filter(|c| c.does(text).is_none()) {
                self.programs(at, command, folder.as_deref());
            }
        }
    }

    /// What a unit of the site does that a line starts.
    fn started(&mut self, at: At<'_>, name: &str) {
        let suffix = if name.contains('.') { "" } else { ".service" };
        let unit = files::unit(self.root, &format!("{name}{suffix}"));
        if unit.fragment.starts_with("/etc/systemd/") || unit.fragment.starts_with("/usr/local/") {
            for command in &unit.commands {
                let text = format!("{}; {name}: {}", at.text.trim(), command.line);
                let at = At { text: &text, depth: at.depth + 1, ..at };
                self.line(at, &command.line, &mut None);
            }
        }
    }

    /// One entry for each kind of what stands at `at`.
    fn add(
        &mut self,
        at: At<'_>,
        all: &[(Does, bool)],
        text: &str,
        lines: &str,
        script: Option<&str>,
    ) {
        let mut known: BTreeSet<Does> = BTreeSet::new();
        for (does, is_sure) in all.iter().copied() {
            if !known.insert(does) {
                continue;
            }
            let own = objects(lines);
            // What a line takes from a variable is not known, whatever else the script names.
            let is_open = lines.lines().any(|l| l.contains('$') && objects(l).is_empty());
            let wider = script.into_iter().filter(|_| own.is_empty()).chain([at.names]);
            let objects = match does {
                _ if !own.is_empty() && !is_open => own,
                Does::CallsOpenibd | Does::RunsOpensm | Does::LoadsModules | Does::StartsGuests => {
                    Vec::new()
                }
                _ if is_open => objects(at.names),
                _ => wider.map(objects).find(|named| !named.is_empty()).unwrap_or_default(),
            };
            self.found.entries.push(Entry {
                place: at.place.to_owned(),
                line: at.line,
                text: text.trim().to_owned(),
                does,
                is_sure,
                when: at.when,
                objects,
                lines: lines.lines().map(str::to_owned).collect(),
                is_shipped: Known::all().is_shipped(at.file, does)
                    || !at.place.contains('/')
                        && !at.file.starts_with("/etc/systemd/")
                        && Known::all()
                            .is_shipped(&format!("/lib/systemd/system/{}", at.place), does),
            });
        }
    }

    fn script_file(&mut self, path: &str, when: When) {
        let Some(text) = self.text(path) else { return };
        let at = At { when, line: None, ..At::line(path, 0, "", &text) };
        self.script(at, path, &text);
    }

    fn units(&mut self, graph: &Graph) {
        let started = graph.started();
        for unit in graph.units().filter(|unit| unit.load != Load::Masked) {
            if Known::all().places.starters.iter().any(|known| line::is_like(known, &unit.name)) {
                continue;
            }
            // What has to be disabled is what starts it.
            let trigger = graph.units().find(|other| {
                other.triggers.contains(&unit.name) && !other.name.ends_with(".automount")
            });
            let place = trigger.map_or(&unit.name, |trigger| &trigger.name);
            let is_started = started.contains(unit.name.as_str());
            let when = if is_started { When::AtBoot } else { When::NotByBoot };
            self.unit(place, unit, when);
        }
    }

    fn unit(&mut self, place: &str, unit: &Unit, when: When) {
        let from = self.found.entries.len();
        let settings = unit.settings.join("\n");
        let mut folder = None;
        for command in &unit.commands {
            let context = format!("{}\n{settings}", command.line);
            let text = &command.line;
            let file = &unit.fragment;
            let names = context.as_str();
            let at = At { place, line: None, text, when, file, context: names, names, depth: 0 };
            match &command.script {
                // Of a start script with rc links, which is no file of the line.
                Some(script) if file.starts_with("/etc/init.d/") => {
                    self.script(At { file: "", ..at }, file, &script.join("\n"));
                }
                _ => self.line(at, text, &mut folder),
            }
        }
        let file = &unit.fragment;
        let at = At { place, line: None, text: "", when, file, context: "", names: "", depth: 0 };
        if self.found.entries.len() == from {
            let line = unit.commands.first().map_or("", |command| command.line.as_str());
            let of_name = Known::all().acting(&unit.name);
            let guess = of_name.or_else(|| line::of_settings(&format!("{line}\n{settings}")));
            let guess = guess.map(|does| (does, false));
            self.add(at, guess.as_slice(), line, line, Some(&settings));
        }
    }

    fn udev_rules(&mut self) {
        let (names, problems) = udev::rules(self.root);
        self.found.problems.extend(problems.into_iter().map(|e| e.to_string()));
        for (file, text) in names.iter().filter_map(|name| udev::rule(self.root, name)) {
            for (number, rule) in joined_lines(&text) {
                if !rule.trim_start().starts_with('#') {
                    self.udev_rule(&file, number, &rule);
                }
            }
        }
    }

    fn udev_rule(&mut self, file: &str, number: usize, rule: &str) {
        let tokens = udev_rule::tokens(rule);
        if !udev_rule::may_be_infiniband(&tokens) {
            return;
        }
        let is_ours = udev_rule::is_infiniband(&tokens);
        let from = self.found.entries.len();
        let ours = if is_ours { "mlx5" } else { "" };
        let context = &format!("{} {ours}", named(&tokens));
        let at = At::line(file, number, rule, context);
        let mut runs_any = false;
        for token in &tokens {
            let is_set = matches!(token.key, "ATTR" | "SYSCTL") && !token.compares;
            if is_set {
                let of_interface = is_ours && matches!(token.attribute, "mtu" | "mode");
                let does = line::of_written(token.attribute, &[token.value], ours)
                    .or_else(|| of_interface.then_some(Does::SetsInterfaces));
                self.add(at, does.map(|does| (does, true)).as_slice(), rule, rule, None);
            } else if token.is_run() {
                runs_any |= token.key != "IMPORT";
                let program = token.value.split_whitespace().next().unwrap_or_default();
                let in_udev = format!("/usr/lib/udev/{program}");
                let value = if !program.contains('/') && self.root.exists(&in_udev) {
                    format!("/usr/lib/udev/{}", token.value)
                } else {
                    token.value.to_owned()
                };
                self.line(at, &value, &mut None);
            } else if token.key == "ENV"
                && token.attribute.contains("SYSTEMD_WANTS")
                && !token.compares
            {
                self.line(at, &format!("systemctl start {}", token.value), &mut None);
            }
        }
        let is_understood = self.found.entries.len() > from;
        if is_ours && runs_any && !is_understood && is_own_program(&tokens) {
            self.add(at, &[(Does::NotUnderstood, true)], rule, rule, None);
        }
    }

    fn settings(&mut self) {
        let places = &Known::all().places;
        for (dir, end, key, does) in &places.settings {
            for file in self.files(std::slice::from_ref(dir), end) {
                let Some(text) = self.text_of_file(&file) else { continue };
                let is_set =
                    |line: &str| !line.trim_start().starts_with(['#', ';']) && line.contains(key);
                for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| is_set(line)) {
                    let at = At::line(&file, number, line, &text);
                    self.add(at, &[(*does, true)], line, "", None);
                }
            }
        }
        for file in self.files(&places.written, ".conf") {
            let Some(text) = self.text_of_file(&file) else { continue };
            for (number, line) in (1..).zip(text.lines()) {
                let words = line.split(|c: char| c.is_whitespace() || c == '=');
                let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
                let path = words.iter().find(|word| word.contains('/'));
                let is_comment = line.trim_start().starts_with(['#', ';']);
                let Some(path) = path.filter(|_| !is_comment) else { continue };
                let does = line::of_written(path, &words, path).map(|does| (does, true));
                self.add(At::line(&file, number, line, line), does.as_slice(), line, line, None);
            }
        }
    }

    fn problem(&mut self, e: &ReadError) {
        self.found.problems.extend((!e.is_absent()).then(|| e.to_string()));
    }

    /// The text of a file; a folder in its place is a problem.
    fn text_of_file(&mut self, path: &str) -> Option<String> {
        self.root.text(path, LIMIT).map_err(|e| self.problem(&e)).ok()
    }

    /// `install` lines, and `softdep` and `options` ones of a site's files.
    fn modprobe(&mut self) {
        for file in modprobe::paths(self.root) {
            let Some(text) = self.text(&file) else { continue };
            for (number, line) in joined_lines(&text) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let at = At::line(&file, number, &line, &line);
                match words.split_first() {
                    Some((&"install", rest)) => {
                        let Some((module, command)) = rest.split_first() else { continue };
                        let of_site = command
                            .iter()
                            .filter(|word| **word != "--ignore-install" && *word != module);
                        let command = of_site.copied().collect::<Vec<_>>().join(" ");
                        let from = self.found.entries.len();
                        self.line(at, &command, &mut None);
                        let does_nothing = modprobe::does_nothing(&command);
                        if self.found.entries.len() == from
                            && line::is_module(module)
                            && !does_nothing
                        {
                            self.add(at, &[(Does::NotUnderstood, true)], &line, &line, None);
                        }
                    }
                    Some((&"softdep", [_, after @ ..])) if file.starts_with("/etc/") => {
                        let loads = after.iter().any(|word| line::is_module(word));
                        let loads = loads.then_some((Does::LoadsModules, true));
                        self.add(at, loads.as_slice(), &line, &line, None);
                    }
                    // The adapters are bound before their own driver sees them.
                    Some((&"options", ["vfio-pci" | "vfio_pci", values @ ..])) => {
                        let has = |v: &&str| v.starts_with("ids=") && v.contains("15b3:");
                        let binds = values.iter().any(has).then_some((Does::BindsDrivers, true));
                        self.add(at, binds.as_slice(), &line, &line, None);
                    }
                    Some((&"options", ["mlx4_core", values @ ..])) => {
                        let is = |key: &str| values.iter().any(|value| value.starts_with(key));
                        let vfs = is("num_vfs=").then_some((Does::SetsVfs, true));
                        let types = is("port_type_array=").then_some((Does::SetsPortTypes, true));
                        let all: Vec<_> = vfs.into_iter().chain(types).collect();
                        self.add(at, &all, &line, "", None);
                    }
                    _ => {}
                }
            }
        }
    }
}

fn is_outside_of_packages(path: &str) -> bool {
    let packaged = ["/usr/bin/", "/usr/sbin/", "/usr/lib", "/bin/", "/sbin/", "/lib"];
    !packaged.iter().any(|dir| path.starts_with(dir))
}

/// True of a rule that runs a program that no package of the distribution has.
fn is_own_program(tokens: &[Token<'_>]) -> bool {
    let runs = tokens.iter().filter(|token| matches!(token.key, "RUN" | "PROGRAM"));
    let mut programs = runs.flat_map(|token| token.value.split_whitespace());
    programs.any(|program| program.starts_with('/') && is_outside_of_packages(program))
}

/// What the tokens of a rule compare with that names a device; a pattern as its beginning.
fn named(tokens: &[Token<'_>]) -> String {
    let names =
        |token: &&Token<'_>| token.compares && matches!(token.key, "KERNEL" | "KERNELS" | "ENV");
    let all = tokens
        .iter()
        .filter(names)
        .flat_map(|token| token.value.split('|').map(move |v| (token, v)));
    let words = all.map(|(token, value)| {
        let value = match value.split_once(['*', '?', '[']) {
            Some((begin, _)) => format!("{begin}*"),
            None => value.to_owned(),
        };
        if token.key == "ENV" { value } else { format!("class/net/{value}") }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The adapters that a text names: addresses, netdevs and RDMA devices.
fn objects(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.:-*$%{}[]".contains(c);
    let is_literal = |word: &str| !word.starts_with('*') && !word.contains(['$', '%', '{', '[']);
    let words = text.split(|c| !is_part(c)).map(|word| word.trim_matches([':', '.']));
    // As udev's ID_PATH.
    let words = words.map(|word| word.strip_prefix("pci-").unwrap_or(word));
    let is_object = |word: &&str| {
        let is_address = word.contains(':')
            && (word.parse::<PciAddress>().is_ok()
                || format!("0000:{word}").parse::<PciAddress>().is_ok());
        let is_rdma = ["mlx4_", "mlx5_", "hfi1_", "qib"].iter().any(|begin| {
            word.strip_prefix(begin)
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        });
        let is_ethernet = ["eth", "eno", "enp", "ens", "enP"].iter().any(|begin| {
            word.strip_prefix(begin).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
        });
        is_address || is_rdma || is_ethernet || is_ipoib_name(word)
    };
    let of_class = ["class/net/", "class/infiniband/"].into_iter().flat_map(|class| {
        let behind = text.split(class).skip(1);
        behind.filter_map(|rest| rest.split(|c| !is_part(c)).next())
    });
    let all = words.filter(is_object).chain(of_class.filter(|word| !word.is_empty()));
    let found: BTreeSet<&str> = all.filter(|word| is_literal(word)).collect();
    found.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
