//! Who else starts opensm, and on which ports.

use super::{Does, Entry, Inventory, When};
use crate::host::{Root, unit_links};
use crate::names::Guid;

/// No opensm.conf is larger, bytes.
const LIMIT: u64 = 1 << 20;

/// A unit that is not ours, or a line of a script, and starts opensm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpensmStarter {
    /// A unit, or a file and a line.
    pub name: String,
    pub is_unit: bool,
    /// It runs; else it is enabled.
    pub is_active: bool,
    /// The ports on which it runs opensm; `None` if that is not known, or all.
    pub ports: Option<Vec<Guid>>,
}

impl OpensmStarter {
    /// It may have the port.
    pub fn has(&self, port: Guid) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.contains(&port))
    }

    /// How it stands, after its name.
    pub const fn state(&self) -> &'static str {
        match (self.is_unit, self.is_active) {
            (true, true) => "is active",
            (true, false) => "is enabled",
            (false, _) => "starts opensm at boot",
        }
    }

    /// What ends it for good.
    pub fn remedy(&self) -> String {
        match self.is_unit {
            true => format!("systemctl disable --now {}", self.name),
            false => {
                format!("remove the line {}, and end the opensm that it has started", self.name)
            }
        }
    }
}

impl Inventory {
    /// Who starts opensm and is active or enabled, by whatever link. `of_defaults` are the ports
    /// that the files of the distribution's package name.
    pub fn opensm_starters(&self, root: &Root, of_defaults: Option<&[Guid]>) -> Vec<OpensmStarter> {
        let one = |entry: &Entry| {
            let starts = entry.does == Does::RunsOpensm && entry.when != When::Never;
            if !starts || entry.place.starts_with("ibprov-") {
                return None;
            }
            let is_unit = entry.line.is_none() && !entry.place.contains('/');
            let runs: Vec<_> = entry.lines.iter().filter_map(|line| run(line)).collect();
            let ports = match entry
                .place
                .strip_prefix("opensm@")
                .and_then(|n| n.strip_suffix(".service"))
            {
                Some(instance) => instance.parse().ok().map(|guid| vec![guid]),
                None if matches!(entry.place.as_str(), "opensm.service" | "opensmd.service")
                    || runs.is_empty() =>
                {
                    of_defaults.map(<[Guid]>::to_vec)
                }
                None => runs.iter().map(|run| guid(root, run)).collect(),
            };
            let is_active = is_unit && unit_links::is_up(root, &entry.place);
            Some(OpensmStarter { name: entry.at(), is_unit, is_active, ports })
        };
        self.entries.iter().filter_map(one).collect()
    }
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
