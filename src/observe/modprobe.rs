//! What the site says about modules: deny-lists and `install` overrides, as
//! `modprobe.d(5)` and the kernel command line hold them.
//!
//! modprobe itself obeys these; they are read only to say, with file and
//! line, why a module was not loaded.

use std::collections::{BTreeMap, BTreeSet};

use super::Look;
use crate::host::Root;
use crate::names::{ModuleName, joined_lines};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModprobeRules {
    denied: BTreeMap<ModuleName, String>,
    install: BTreeMap<ModuleName, Install>,
    /// Module, `key=value`, origin; the last one wins, as in the kernel.
    options: Vec<(ModuleName, String, String)>,
    /// Module, one that is loaded before it, origin.
    softdeps: Vec<(ModuleName, ModuleName, String)>,
    /// What could not be read, one line each.
    pub problems: BTreeSet<String>,
}

/// An `install MODULE COMMAND` line: run instead of loading the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Install {
    pub command: String,
    pub origin: String,
}

/// Strongest first; a file masks its namesakes further down (`modprobe.d(5)`).
const DIRS: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

/// The files that count, in the order in which they are read.
fn files(look: &mut Look<'_>) -> Vec<String> {
    let mut files: BTreeMap<String, &str> = BTreeMap::new();
    for dir in DIRS.into_iter().rev() {
        let names = look.list(dir).into_iter().filter(|name| name.ends_with(".conf"));
        files.extend(names.map(|name| (name, dir)));
    }
    files.into_iter().map(|(name, dir)| format!("{dir}/{name}")).collect()
}

impl ModprobeRules {
    pub fn read(root: &Root) -> Self {
        let mut look = Look::new(root);
        let mut rules = Self::default();
        for path in files(&mut look) {
            let reading = root.text(&path, 1 << 20);
            if let Some(text) = look.note(reading) {
                rules.add_file(&path, &text);
            }
        }
        if let Some(cmdline) = look.attribute("/proc/cmdline") {
            rules.add_command_line(&cmdline);
        }
        rules.problems = look.problems;
        rules
    }

    #[cfg(test)]
    pub(crate) fn of(path: &str, text: &str) -> Self {
        let mut rules = Self::default();
        rules.add_file(path, text);
        rules
    }

    /// Where `module` is deny-listed, if it is.
    pub fn denied(&self, module: &ModuleName) -> Option<&str> {
        self.denied.get(module).map(String::as_str)
    }

    /// The `install` line of `module`, if it has one.
    pub fn install(&self, module: &ModuleName) -> Option<&Install> {
        self.install.get(module)
    }

    /// The value that `options` lines give the parameter `key` of `module`,
    /// and where.
    pub fn option(&self, module: &str, key: &str) -> Option<(&str, &str)> {
        self.options.iter().rev().filter(|(m, _, _)| m.as_str() == module).find_map(
            |(_, setting, origin)| {
                let (k, value) = setting.split_once('=')?;
                (k == key).then_some((value, origin.as_str()))
            },
        )
    }

    /// Where it stands that `first` is loaded before `module`.
    pub fn loads_before(&self, first: &str, module: &str) -> Option<&str> {
        let is_it = |(of, before, _): &&(ModuleName, ModuleName, String)| {
            of.as_str() == module && before.as_str() == first
        };
        self.softdeps.iter().find(is_it).map(|(_, _, origin)| origin.as_str())
    }

    fn add_file(&mut self, path: &str, text: &str) {
        for (number, line) in joined_lines(text) {
            let origin = || format!("{path}:{number}");
            let mut words = line.split_whitespace();
            let (verb, name) = (words.next(), words.next().and_then(|w| w.parse().ok()));
            match (verb, name) {
                (Some("blacklist"), Some(name)) => {
                    self.denied.insert(name, origin());
                }
                (Some("install"), Some(name)) => {
                    let command = words.collect::<Vec<_>>().join(" ");
                    // The usual way to have a module not loaded by anybody.
                    if does_nothing(&command) {
                        self.denied.insert(name, origin());
                        continue;
                    }
                    self.install.insert(name, Install { command, origin: origin() });
                }
                (Some("options"), Some(name)) => {
                    let name: ModuleName = name;
                    for setting in words {
                        self.options.push((name.clone(), setting.to_owned(), origin()));
                    }
                }
                (Some("softdep"), Some(name)) => {
                    let name: ModuleName = name;
                    let before = words.skip_while(|word| *word != "pre:").skip(1);
                    let before = before.take_while(|word| *word != "post:");
                    for module in before.filter_map(|word| word.parse().ok()) {
                        self.softdeps.push((name.clone(), module, origin()));
                    }
                }
                _ => {}
            }
        }
    }

    /// `modprobe.blacklist=` is kmod's, `module_blacklist=` the kernel's own; kmod gives a module
    /// its `MODULE.KEY=VALUE` last.
    fn add_command_line(&mut self, cmdline: &str) {
        for word in cmdline.split_whitespace() {
            let Some((key, names)) = word.split_once('=') else { continue };
            if !matches!(key, "modprobe.blacklist" | "module_blacklist") {
                let option = word.split_once('.');
                if let Some((Ok(module), setting)) = option.map(|(m, s)| (m.parse(), s)) {
                    let origin = "the kernel command line".to_owned();
                    self.options.push((module, setting.to_owned(), origin));
                }
                continue;
            }
            for name in names.split(',').filter_map(|n| n.parse::<ModuleName>().ok()) {
                self.denied
                    .entry(name)
                    .or_insert_with(|| format!("the kernel command line ({key}=)"));
            }
        }
    }
}

/// The files that count, in the order in which they are read.
pub fn paths(root: &Root) -> Vec<String> {
    files(&mut Look::new(root))
}

/// True of the command of an `install` line that stands for "not at all".
pub fn does_nothing(command: &str) -> bool {
    let program = command.split(' ').next().unwrap_or_default();
    matches!(program.rsplit('/').next(), Some("true" | "false" | ":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> ModuleName {
        text.parse().expect("module name")
    }

    #[test]
    fn options_of_the_command_line_come_last() {
        let mut rules =
            ModprobeRules::of("/etc/modprobe.d/a.conf", "options ib_core netns_mode=1\n");
        rules.add_command_line("ro quiet root=UUID=1.2 ib_core.netns_mode=0");
        let by = "the kernel command line";
        assert_eq!(rules.option("ib_core", "netns_mode"), Some(("0", by)));
    }

    #[test]
    fn a_rule_is_found_with_file_and_line() {
        let mut rules = ModprobeRules::default();
        rules.add_file(
            "/etc/modprobe.d/site.conf",
            "# no\n\nblacklist ib-ipoib\noptions ib_umad x=1\ninstall ib_uverbs \\\n /sbin/load --now\n#blacklist ib_umad\n",
        );
        rules.add_command_line("quiet modprobe.blacklist=mlx5_core,igb module_blacklist=hfi1");
        assert_eq!(rules.denied(&name("ib_ipoib")), Some("/etc/modprobe.d/site.conf:3"));
        assert_eq!(rules.denied(&name("ib_umad")), None);
        let install = rules.install(&name("ib_uverbs")).expect("install rule");
        assert_eq!(install.command, "/sbin/load --now");
        assert_eq!(install.origin, "/etc/modprobe.d/site.conf:5");
        assert_eq!(
            rules.denied(&name("mlx5_core")),
            Some("the kernel command line (modprobe.blacklist=)")
        );
        assert!(rules.denied(&name("hfi1")).is_some());
        assert_eq!(rules.option("ib_umad", "x"), Some(("1", "/etc/modprobe.d/site.conf:4")));
    }

    #[test]
    fn the_stronger_directory_masks_its_namesake() {
        let files = [
            ("etc/modprobe.d/a.conf", "# emptied by the site\n"),
            ("usr/lib/modprobe.d/a.conf", "blacklist ib_umad\n"),
            ("usr/lib/modprobe.d/b.conf", "blacklist ib_uverbs\n"),
            ("usr/lib/modprobe.d/c.txt", "blacklist ib_ipoib\n"),
        ];
        let dir = crate::host::testing::tree(&files, &[]);
        let rules = ModprobeRules::read(&Root::copy_at(dir.path()).expect("root"));
        assert_eq!(rules.denied(&name("ib_umad")), None);
        assert_eq!(rules.denied(&name("ib_uverbs")), Some("/usr/lib/modprobe.d/b.conf:1"));
        assert_eq!(rules.denied(&name("ib_ipoib")), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,200}") {
            let mut rules = ModprobeRules::default();
            rules.add_file("x", &text);
            rules.add_command_line(&text);
        }
    }
}
