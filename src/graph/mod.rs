//! systemd's unit graph as plain values, and what follows from it before the
//! next boot: who is ordered after the InfiniBand ports, who is not, where the
//! order bites its own tail, and who waits for somebody that waits for him.
//!
//! Pure, but for [`files`], which reads the unit files of a system.
//! On a live system `systemctl show` adds how the units that matter are now
//! ([`show`]).

pub mod consumers;
pub mod cycles;
pub mod deadlock;
pub mod files;
mod fstab;
pub mod planned;
pub mod show;
pub mod start_wait;
mod sysv;
mod unit_file;

use crate::names::Moment;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

/// The units that are known, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    units: BTreeMap<String, Unit>,
    aliases: BTreeMap<String, String>,
    /// What the next boot starts from: `default.target` or what stands for it.
    pub goal: String,
    /// What could not be read, one line each.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    pub name: String,
    pub load: Load,
    /// Units that come before it.
    pub after: BTreeSet<String>,
    /// Units that come after it.
    pub before: BTreeSet<String>,
    /// Units that must be started with it (Requires=, BindsTo=, Requisite=).
    pub requires: BTreeSet<String>,
    /// Units that shall be started with it (Wants=, Upholds=).
    pub wants: BTreeSet<String>,
    /// `Type=` of a service, the file system of a mount.
    pub kind: String,
    /// `What=` of a mount.
    pub what: String,
    /// `Options=` of a mount.
    pub options: String,
    pub commands: Vec<Command>,
    /// What it starts when its time has come: of a timer, a path unit or an automount.
    #[serde(default)]
    pub triggers: BTreeSet<String>,
    /// `Environment=`, the lines of the files of `EnvironmentFile=`, `DeviceAllow=`, and the paths
    /// without which it does not start.
    #[serde(default)]
    pub settings: Vec<String>,
    /// `LimitMEMLOCK=`; of a live system what holds without it, too.
    #[serde(default)]
    pub memlock: String,
    /// `enabled`, `disabled`, `masked` ... as `systemctl is-enabled` says.
    pub file_state: String,
    pub fragment: String,
    /// How it is now, on a live system.
    pub now: Now,
}

/// Whether a unit is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Load {
    /// It is, and its file is good.
    #[default]
    Loaded,
    /// Only its name is known.
    NotFound,
    /// It is a link to /dev/null.
    Masked,
    /// systemd would not take its file.
    Bad,
}

/// How a unit is now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// `active`, `failed`, `activating` ...; empty where nothing runs.
    pub active: String,
    /// Why it failed, systemd's word: `exit-code`, `timeout` ...
    pub result: String,
    /// It has a job that is not done.
    pub job: bool,
    /// When it began to start.
    pub began_usec: Option<Moment>,
    pub up_usec: Option<Moment>,
    /// When it was down again, after a failure too.
    pub down_usec: Option<Moment>,
    /// A condition kept it from starting.
    pub condition_failed: bool,
}

/// A program that a unit runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// `ExecStartPre`, `ExecStart` or `ExecStartPost`.
    pub phase: String,
    /// The program and its arguments.
    pub line: String,
    /// Its lines, if it is a script that could be read.
    pub script: Option<Vec<String>>,
}

impl Graph {
    /// Add a unit, with the other names it has.
    pub fn add(&mut self, unit: Unit, names: impl IntoIterator<Item = String>) {
        for name in names {
            if name != unit.name {
                self.aliases.insert(name, unit.name.clone());
            }
        }
        self.units.insert(unit.name.clone(), unit);
    }

    /// The name of the unit that answers to `name`.
    pub fn resolve<'a>(&'a self, name: &'a str) -> &'a str {
        self.aliases.get(name).map_or(name, String::as_str)
    }

    /// The unit that answers to `name`.
    pub fn get(&self, name: &str) -> Option<&Unit> {
        self.units.get(self.resolve(name))
    }

    pub fn units(&self) -> impl Iterator<Item = &Unit> {
        self.units.values()
    }

    /// All units, taken out.
    pub fn into_units(self) -> impl Iterator<Item = Unit> {
        self.units.into_values()
    }

    /// Take over how a unit is now, and the orders that systemd knows beyond
    /// its files. One that no boot starts is added, to be found by its name.
    pub fn learn(&mut self, shown: Unit) {
        match self.get_mut(&shown.name) {
            Some(unit) => {
                unit.now = shown.now;
                unit.file_state = shown.file_state;
                unit.after.extend(shown.after);
                unit.before.extend(shown.before);
                if !shown.memlock.is_empty() {
                    unit.memlock = shown.memlock;
                }
            }
            None => self.add(shown, []),
        }
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Unit> {
        let name = self.resolve(name).to_owned();
        self.units.get_mut(&name)
    }

    /// True if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Give every order and every name both its ends: what comes before A has
    /// A after it, and aliases are resolved.
    pub fn settle(&mut self) {
        let resolved = |graph: &Self, names: &BTreeSet<String>| -> BTreeSet<String> {
            names.iter().map(|n| graph.resolve(n).to_owned()).collect()
        };
        let names: Vec<String> = self.units.keys().cloned().collect();
        let mut later: Vec<(String, String)> = Vec::new();
        for name in &names {
            let Some(unit) = self.units.get(name) else { continue };
            let (after, before) = (resolved(self, &unit.after), resolved(self, &unit.before));
            let (requires, wants) = (resolved(self, &unit.requires), resolved(self, &unit.wants));
            later.extend(after.iter().map(|first| (first.clone(), name.clone())));
            later.extend(before.iter().map(|second| (name.clone(), second.clone())));
            if let Some(unit) = self.units.get_mut(name) {
                (unit.requires, unit.wants) = (requires, wants);
                (unit.after, unit.before) = (after, before);
            }
        }
        for (first, second) in later {
            if first == second {
                continue;
            }
            if let Some(unit) = self.units.get_mut(&first) {
                unit.before.insert(second.clone());
            }
            if let Some(unit) = self.units.get_mut(&second) {
                unit.after.insert(first);
            }
        }
        for unit in self.units.values_mut() {
            unit.after.remove(&unit.name);
            unit.before.remove(&unit.name);
        }
        self.goal = self.resolve(&self.goal).to_owned();
    }

    /// The goal is there; without it nothing is known of the next boot.
    pub fn has_goal(&self) -> bool {
        self.get(&self.goal).is_some_and(|unit| unit.load == Load::Loaded)
    }

    /// The units that a boot to [`Graph::goal`] starts: an order only counts
    /// between these (`systemd.unit(5)`, After=).
    pub fn transaction(&self) -> BTreeSet<&str> {
        self.reach(|unit| Box::new(unit.requires.iter().chain(&unit.wants)))
    }

    /// Those, and what timers, path units and automounts among them start.
    pub fn started(&self) -> BTreeSet<&str> {
        self.reach(|unit| Box::new(unit.requires.iter().chain(&unit.wants).chain(&unit.triggers)))
    }

    /// Those of them that systemd may not give up, because the goal requires
    /// them, through any number of others.
    pub fn essential(&self) -> BTreeSet<&str> {
        self.reach(|unit| Box::new(unit.requires.iter()))
    }

    fn reach<'a>(
        &'a self,
        next: impl Fn(&'a Unit) -> Box<dyn Iterator<Item = &'a String> + 'a>,
    ) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&str> = vec![self.goal.as_str()];
        while let Some(name) = open.pop() {
            let Some(unit) = self.get(name).filter(|u| u.load == Load::Loaded) else { continue };
            if reached.insert(unit.name.as_str()) {
                open.extend(next(unit).map(String::as_str));
            }
        }
        reached
    }

    /// The shortest chain of orders from `first` to `last`, both ends
    /// included, over units that are in `among`.
    pub fn chain(&self, first: &str, last: &str, among: &BTreeSet<&str>) -> Option<Vec<String>> {
        let (first, last) = (self.get(first)?, self.get(last)?);
        let mut from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut open: VecDeque<&Unit> = VecDeque::from([first]);
        while let Some(unit) = open.pop_front() {
            for next in &unit.before {
                let Some(next) = self.get(next) else { continue };
                if from.contains_key(next.name.as_str()) || next.name == first.name {
                    continue;
                }
                if next.name == last.name {
                    let mut chain = vec![last.name.clone(), unit.name.clone()];
                    let mut at = unit.name.as_str();
                    while let Some(before) = from.get(at) {
                        chain.push((*before).to_owned());
                        at = before;
                    }
                    chain.reverse();
                    return Some(chain);
                }
                if among.contains(next.name.as_str()) {
                    from.insert(&next.name, &unit.name);
                    open.push_back(next);
                }
            }
        }
        None
    }
}

#[cfg(test)]
pub(crate) mod fixtures;

#[cfg(test)]
mod tests {
    use super::fixtures::graph;

    #[test]
    fn an_order_over_a_unit_that_is_not_started_is_none() {
        let graph = graph(
            "goal.target wants a.service b.service\n\
             a.service before middle.target\n\
             middle.target before b.service\n",
        );
        assert_eq!(graph.chain("a.service", "b.service", &graph.transaction()), None);
        let graph = fixtures_with_middle();
        assert_eq!(
            graph.chain("a.service", "b.service", &graph.transaction()),
            Some(["a.service", "middle.target", "b.service"].map(str::to_owned).to_vec())
        );
    }

    fn fixtures_with_middle() -> super::Graph {
        graph(
            "goal.target wants a.service b.service\n\
             a.service before middle.target\n\
             a.service wants middle.target\n\
             b.service after middle.target\n",
        )
    }

    #[test]
    fn only_what_is_required_all_the_way_is_essential() {
        let graph = graph(
            "goal.target requires basic.target\n\
             basic.target requires sysinit.target\n\
             sysinit.target wants x.service\n\
             x.service requires y.service\n",
        );
        let essential: Vec<&str> = graph.essential().into_iter().collect();
        assert_eq!(essential, ["basic.target", "goal.target", "sysinit.target"]);
        assert_eq!(graph.transaction().len(), 5);
    }
}
