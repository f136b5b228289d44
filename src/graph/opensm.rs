//! Units that are not ours and run opensm, whatever their names.

use super::{Command, Load, Unit, files};
use crate::host::{Root, unit_links};
use crate::names::Guid;

/// No opensm.conf is larger, bytes.
const LIMIT: u64 = 1 << 20;

/// A unit that is not ours and runs opensm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpensmUnit {
    pub name: String,
    /// It runs; else it is enabled.
    pub is_active: bool,
    /// The ports on which it runs opensm; `None` if that is not known, or all.
    pub ports: Option<Vec<Guid>>,
}

impl OpensmUnit {
    /// It may have the port.
    pub fn has(&self, port: Guid) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.contains(&port))
    }
}

/// Those that are active or enabled, by whatever link, and what could not be read. `of_defaults`
/// are the ports that the files of the distribution's package name.
pub fn units(root: &Root, of_defaults: Option<&[Guid]>) -> (Vec<OpensmUnit>, Vec<String>) {
    let graph = files::enabled(root);
    let problems = graph.problems.clone();
    let one = |unit: Unit| {
        let stem = unit.name.strip_suffix(".service")?;
        if unit.load == Load::Masked || stem.starts_with("ibprov-") {
            return None;
        }
        let ports = match stem.strip_prefix("opensm@") {
            Some(instance) => instance.parse().ok().map(|guid| vec![guid]),
            None if matches!(stem, "opensm" | "opensmd") => of_defaults.map(<[Guid]>::to_vec),
            None => {
                let runs: Vec<_> = unit.commands.iter().flat_map(lines).filter_map(run).collect();
                let guids = runs.iter().map(|run| guid(root, run));
                (!runs.is_empty()).then(|| guids.collect::<Option<Vec<Guid>>>())?
            }
        };
        let is_active = unit_links::is_up(root, &unit.name);
        Some(OpensmUnit { name: unit.name, is_active, ports })
    };
    (graph.into_units().filter_map(one).collect(), problems)
}

/// The lines of a command: its own, and those of its script that do not end or look for another.
fn lines(command: &Command) -> impl Iterator<Item = &str> {
    let script = command.script.as_deref().unwrap_or_default().lines();
    let script = script.filter(|line| {
        let others = ["pgrep", "pkill", "killall", "pidof", "systemctl"];
        !line.trim_start().starts_with('#') && !others.iter().any(|other| line.contains(other))
    });
    std::iter::once(command.line.as_str()).chain(script)
}

/// The arguments of the opensm that `line` runs.
fn run(line: &str) -> Option<Vec<&str>> {
    let is_between = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ';' | '&' | '(');
    let mut words = line.split(is_between).filter(|word| !word.is_empty());
    words.find(|word| word.rsplit('/').next() == Some("opensm"))?;
    Some(words.collect())
}

/// The port that the arguments name, by themselves or by a file.
fn guid(root: &Root, arguments: &[&str]) -> Option<Guid> {
    let of = |names: [&str; 2]| {
        let at = arguments.iter().position(|word| names.contains(word))?;
        arguments.get(at + 1).copied()
    };
    if let Some(guid) = of(["-g", "--guid"]) {
        return number(guid);
    }
    let text = root.text(of(["-F", "--config"])?, LIMIT).ok()?;
    let mut lines = text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    let (_, guid) = lines.find(|(key, _)| *key == "guid")?;
    number(guid.trim())
}

/// As opensm reads it; 0 is whatever port it finds first.
fn number(guid: &str) -> Option<Guid> {
    let digits = guid.strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok().map(Guid::new).filter(|guid| !guid.is_zero())
}
