//! Who brings an interface up: the host's network stacks, which of them claims
//! it, and whether it has been, is at it, or is still to come.
//!
//! All that is known of a stack stands in its one file: its units, how its
//! configuration claims an interface, how it is asked while it runs, what command
//! makes it bring one up, which netdevs its files spell out. [`stack::Stack`] says
//! what that is, [`KNOWN`] has a row for each, and [`decide`] judges. Nothing here
//! goes by a clock.

pub mod addresses;
mod decide;
pub mod files;
pub mod ifupdown;
pub mod netplan;
pub mod network_manager;
pub mod network_scripts;
pub mod networkd;
pub mod stack;
pub mod wicked;

use crate::config::foreign::interfaces::Which;
use crate::config::{Config, InterfaceRule};
use crate::host::bus;
use crate::host::manager::Manager;
use crate::host::unit::{LoadState, UnitState};
use crate::host::{Root, unit_links};
use crate::model::{
    IfaceReport, StackName, StackSetting, WantedInterface,
    stack::{Answer, Claim, ConfiguredNetdev, Phase, View},
};
use crate::names::{IfName, NetworkRole, harmless};
use crate::observe::ipoib::{Interface, Interfaces, StackChild};
use files::Files;
use stack::{Facts, Owner, Phases, Progress, Reply, Stack, Standing};

pub use decide::decide;
pub use stack::phase_of_unit;

/// The stacks that are known, in the order in which they are asked: who watches
/// for interfaces first, then who only looks once.
pub const KNOWN: Stacks = Stacks(&[
    &network_manager::NetworkManager,
    &networkd::Networkd,
    &wicked::Wicked,
    &ifupdown::Ifupdown,
    &network_scripts::NetworkScripts,
]);

/// Units of stacks of which no more than that is known.
const OTHER_UNITS: [(&str, NetworkRole); 1] = [("connman.service", NetworkRole::SetsUpWhatComes)];

#[derive(Debug, Clone, Copy)]
pub struct Stacks(&'static [&'static dyn Stack]);

/// What the stacks that run, and the kernel, say themselves of an interface.
#[derive(Debug, Default)]
pub struct Live {
    /// What each that runs answered.
    replies: Vec<(StackName, Reply)>,
    /// The interface is down and has addresses.
    pub addressed: bool,
}

impl Live {
    /// What the stack answered; [`Reply::Mute`] of one that was not asked.
    pub fn reply(&self, stack: StackName) -> &Reply {
        let of_it = self.replies.iter().find(|(name, _)| *name == stack);
        of_it.map_or(&Reply::Mute, |(_, reply)| reply)
    }

    /// How far the stack is with `interface`; of one that cannot be asked, whether
    /// the interface is up has to do.
    pub fn progress(&self, stack: StackName, interface: &Interface) -> Progress {
        match self.reply(stack) {
            Reply::State(said) => said.progress(interface),
            Reply::Mute if interface.up => Progress::Up,
            Reply::Mute | Reply::Unreachable => Progress::Working,
        }
    }

    /// A stack that runs has not made up its mind.
    pub fn is_undecided(&self, interface: &Interface) -> bool {
        self.replies.iter().any(|(_, reply)| {
            matches!(reply, Reply::State(said) if said.progress(interface) == Progress::Undecided)
        })
    }
}

impl Stacks {
    fn facts(self) -> impl Iterator<Item = &'static Facts> {
        self.0.iter().map(|stack| stack.facts())
    }

    pub fn named(self, name: StackName) -> Option<&'static dyn Stack> {
        self.0.iter().copied().find(|stack| stack.facts().name == name)
    }

    /// The units whose states [`Stacks::standings`] wants. The unit that a stack has for
    /// `interface` alone is one of them only if its files say so: to be asked for it, systemd
    /// reads its file, and forgets it again.
    pub fn units(self, files: &Files<'_>, interface: &Interface) -> Vec<String> {
        let services = self.facts().map(|facts| facts.service.to_owned());
        let own = self.0.iter().filter_map(|stack| {
            let unit = stack.facts().own_unit.as_ref()?;
            let claim = stack.claim(files, interface, Phase::NotStarted, &|_| Phase::Absent);
            (claim.answer == Answer::Hotplug).then(|| unit.of(interface))
        });
        services.chain(own).collect()
    }

    /// The files that stacks write anew when they get further with `interface`.
    pub fn records_of(self, interface: &Interface) -> Vec<String> {
        self.0.iter().filter_map(|stack| stack.record_of(interface)).collect()
    }

    /// Ask the stacks that run by `states` of [`Stacks::units`].
    ///
    /// # Errors
    /// The bus broke.
    pub fn ask(
        self,
        root: &Root,
        manager: &mut Manager,
        states: &[UnitState],
        interface: &Interface,
    ) -> bus::Result<Live> {
        let mut live = Live::default();
        for stack in self.0 {
            let facts = stack.facts();
            if phase_in(states, facts.service) == Phase::Active {
                let reply = stack.ask(root, manager, interface)?;
                live.replies.push((facts.name, reply));
            }
        }
        Ok(live)
    }

    /// A stack that is there by `states` stumbles over addresses of an interface that is down.
    pub fn may_stumble(self, states: &[UnitState]) -> bool {
        let mut stumbling = self.facts().filter(|facts| facts.stumbles_over_addresses);
        stumbling.any(|facts| phase_in(states, facts.service) != Phase::Absent)
    }

    /// Where every stack stands to `interface`. `states` answers [`Stacks::units`].
    /// What the stacks write is left out: [`Stacks::with_writes`].
    pub fn standings(
        self,
        files: &Files<'_>,
        interface: &Interface,
        states: &[UnitState],
        live: &Live,
    ) -> Vec<Standing> {
        let standing = |stack: &&'static dyn Stack| {
            let facts = stack.facts();
            let phase = phase_in(states, facts.service);
            let others = |service: &str| phase_in(states, service);
            let claim = match live.reply(facts.name) {
                _ if phase == Phase::Absent => Some(Claim::new(Answer::No, "not on this host")),
                Reply::State(said) => said.claim(files, interface),
                Reply::Mute | Reply::Unreachable => None,
            };
            let claim = claim.unwrap_or_else(|| stack.claim(files, interface, phase, &others));
            let hotplug = facts.own_unit.as_ref().and_then(|own| {
                let name = own.of(interface);
                states.iter().find(|u| u.name == name).map(own.phase)
            });
            let view = View {
                stack: facts.name,
                phase,
                claim,
                recorded: stack.has_brought_up(files, interface),
                addressed: facts.stumbles_over_addresses && live.addressed,
                hotplug: hotplug.unwrap_or(Phase::Absent),
                writes: Vec::new(),
            };
            Standing { facts, view }
        };
        self.0.iter().map(standing).collect()
    }

    /// With what each stack that is there writes to `interface`: for who has to do with mode
    /// or MTU.
    pub fn with_writes(
        self,
        files: &Files<'_>,
        interface: &Interface,
        states: &[UnitState],
        mut standings: Vec<Standing>,
    ) -> Vec<Standing> {
        let others = |service: &str| phase_in(states, service);
        for (stack, standing) in self.0.iter().zip(&mut standings) {
            if standing.view.phase != Phase::Absent {
                standing.view.writes = stack.writes(files, interface, &others);
            }
        }
        standings
    }

    /// What the configuration files say, for a copy of a tree, which has no units
    /// to ask for: every stack is looked at whose unit is there.
    pub fn on_disk(self, root: &Root, interface: &Interface) -> Vec<Standing> {
        let is_there = |facts: &&Facts| {
            let units = ["/etc", "/usr/lib", "/lib"].map(|dir| format!("{dir}/systemd/system"));
            units.iter().any(|dir| root.exists(&format!("{dir}/{}", facts.service)))
                || facts.init_script.is_some_and(|script| root.exists(script))
        };
        let state = |facts: &Facts| UnitState {
            name: facts.service.to_owned(),
            id: facts.service.to_owned(),
            load: LoadState::Loaded,
            ..UnitState::default()
        };
        let states: Vec<UnitState> = self.facts().filter(is_there).map(state).collect();
        let files = Files::of(root);
        let standings = self.standings(&files, interface, &states, &Live::default());
        self.with_writes(&files, interface, &states, standings)
    }

    /// What the stacks that are part of this boot write to `interface` when they bring
    /// it up, by files alone: those that run, and those that are enabled.
    pub fn writes(
        self,
        files: &Files<'_>,
        interface: &Interface,
    ) -> Vec<(StackName, StackSetting)> {
        self.writes_by(files, interface, &|service| {
            if is_in_boot(files, service) { Phase::Queued } else { Phase::Absent }
        })
    }

    /// What the stacks that run say in their files of `interface`, if that shows other settings
    /// than the run that left `before` has made. Files are read only then.
    pub fn written(
        self,
        files: &Files<'_>,
        interface: &Interface,
        before: Option<&IfaceReport>,
    ) -> Vec<(StackName, StackSetting)> {
        let differs = |wanted: &WantedInterface| {
            wanted.mode.is_some_and(|mode| interface.mode.is_some_and(|now| now != mode))
                || wanted.mtu.is_some_and(|mtu| interface.mtu != Some(mtu))
        };
        if !before.is_some_and(|before| before.is_settled() && differs(&before.wanted)) {
            return Vec::new();
        }
        self.writes_by(files, interface, &|service| {
            if unit_links::is_up(files, service) { Phase::Active } else { Phase::Absent }
        })
    }

    fn writes_by(
        self,
        files: &Files<'_>,
        interface: &Interface,
        phase: Phases<'_>,
    ) -> Vec<(StackName, StackSetting)> {
        let mut all = Vec::new();
        for stack in self.0.iter().filter(|s| phase(s.facts().service) != Phase::Absent) {
            let writes = stack.writes(files, interface, phase).into_iter();
            all.extend(writes.map(|setting| (stack.facts().name, setting)));
        }
        all
    }

    /// The P_Key children of `parents` that `rules` ask for, and that a stack of this boot
    /// creates itself: see [`Stack::creates`]. Files are read only where there is something to
    /// find.
    pub fn children(
        self,
        root: &Root,
        rules: &[InterfaceRule],
        parents: &[Interface],
    ) -> Vec<StackChild> {
        let mut all: Vec<StackChild> = Vec::new();
        if rules.iter().all(|rule| rule.partitions.is_empty()) {
            return all;
        }
        let files = Files::of(root);
        for stack in self.0.iter().filter(|stack| is_in_boot(root, stack.facts().service)) {
            for (which, pkey, file) in stack.creates(&files) {
                let of_it = parents.iter().filter(|parent| match &which {
                    _ if parent.parent.is_some() => false,
                    Which::Name(name) => *name == parent.name,
                    Which::PortGuid(guid) => Some(*guid) == parent.guid,
                });
                all.extend(of_it.map(|parent| StackChild {
                    parent: parent.ifindex,
                    pkey,
                    stack: stack.facts().name,
                    file: harmless(&file),
                }));
            }
        }
        all
    }

    /// Every netdev with an InfiniBand name that a file sets up, with the unit that
    /// reads the file. Files of a stack that does not run count as well: the caller
    /// knows which do. Those that look once come first: what they miss stays down.
    pub fn asked(self, root: &Root, is_infiniband: impl Fn(&str) -> bool) -> Vec<ConfiguredNetdev> {
        let mut stacks = self.0.to_vec();
        stacks.sort_by_key(|stack| !stack.facts().looks_once);
        let mut all: Vec<ConfiguredNetdev> = Vec::new();
        for stack in stacks {
            let named = stack.asked(root).into_iter().filter(|(netdev, _)| is_infiniband(netdev));
            for (netdev, file) in named {
                let asked =
                    ConfiguredNetdev { unit: stack.facts().service.to_owned(), netdev, file };
                if !all.contains(&asked) {
                    all.push(asked);
                }
            }
        }
        // Of a file that two stacks read, both stand together.
        let files: Vec<String> = all.iter().map(|asked| asked.file.clone()).collect();
        all.sort_by_key(|asked| files.iter().position(|file| *file == asked.file));
        all
    }

    /// [`Stacks::asked`] of the stacks that are part of this boot: that run, or are enabled. A
    /// copied tree may show neither of any stack, and each that it has files of counts then.
    pub fn claims(
        self,
        root: &Root,
        is_infiniband: impl Fn(&str) -> bool,
    ) -> Vec<ConfiguredNetdev> {
        let mut asked = self.asked(root, is_infiniband);
        let is_shown = |service: &str| is_in_boot(root, service);
        if root.is_live() || self.facts().any(|facts| is_shown(facts.service)) {
            asked.retain(|asked| is_shown(&asked.unit));
        }
        asked
    }

    /// The stack that should set `netdev` up, with the file that says so, as a
    /// phrase; `None` if none has anything for it. For messages only: what is
    /// decided on it is decided by [`decide`].
    pub fn owner(self, root: &Root, netdev: &IfName, ifindex: u32) -> Option<String> {
        let mut by_file = None;
        for stack in self.0 {
            match stack.owner(root, netdev, ifindex) {
                Some(Owner::Record(phrase)) => return Some(phrase),
                Some(Owner::File(phrase)) => by_file = by_file.or(Some(phrase)),
                None => {}
            }
        }
        by_file
    }

    /// What `unit` does for interfaces, if it is one of a stack.
    pub fn role(self, unit: &str) -> Option<NetworkRole> {
        let known = self.facts().flat_map(|facts| facts.units).map(|u| (u.name, u.role));
        known.chain(OTHER_UNITS).find(|(name, _)| *name == unit).map(|(_, role)| role)
    }

    /// The unit of a stack that logs call so (`Description=`).
    pub fn described(self, description: &str) -> Option<&'static str> {
        let mut units = self.facts().flat_map(|facts| facts.units);
        units.find(|unit| unit.descriptions.contains(&description)).map(|unit| unit.name)
    }

    /// The service whose lines in a log without units are those of `program`.
    pub fn logging_as(self, program: &str) -> Option<&'static str> {
        self.facts().find(|f| f.log_programs.contains(&program)).map(|f| f.service)
    }

    /// The service that the command waits for, if it waits for one of a stack.
    pub fn waited_for(self, command: &str) -> Option<&'static str> {
        let waits = |facts: &&Facts| facts.waiting_commands.contains(&command);
        self.facts().find(waits).map(|facts| facts.service)
    }
}

/// The service runs, or a link in a `.wants` directory of the administrator's has the
/// next boot start it.
fn is_in_boot(root: &Root, service: &str) -> bool {
    const DIR: &str = "/etc/systemd/system";
    let wants = root.list_or_empty(DIR).unwrap_or_default();
    let mut wants = wants.into_iter().filter(|dir| dir.ends_with(".wants"));
    unit_links::is_up(root, service)
        || wants.any(|dir| root.is_link(&format!("{DIR}/{dir}/{service}")))
}

/// Where the service is by `states`; `Absent` if they have nothing of it.
fn phase_in(states: &[UnitState], service: &str) -> Phase {
    let unit = states.iter().find(|u| u.name == service);
    unit.map_or(Phase::Absent, |unit| stack::phase_of_service(service, unit))
}

/// All IPoIB interfaces, with the P_Key children of theirs that stacks create and what stacks
/// may have written over what was set.
pub fn interfaces(root: &Root, config: &Config) -> Interfaces {
    let mut seen = Interfaces::look(root);
    let names = config.interface_names();
    seen.all.iter_mut().for_each(|interface| interface.read_altnames(root, &names));
    seen.stack_children = KNOWN.children(root, &config.interfaces, &seen.all);
    let files = Files::of(root);
    let written = seen.all.iter().map(|interface| {
        (interface.ifindex, KNOWN.written(&files, interface, seen.before(interface)))
    });
    seen.written = written.filter(|(_, written)| !written.is_empty()).collect();
    seen
}

/// As [`Stacks::role`] of [`KNOWN`], for who is not to know of stacks.
pub fn network_role(unit: &str) -> Option<NetworkRole> {
    KNOWN.role(unit)
}

/// As [`Stacks::waited_for`] of [`KNOWN`], for who is not to know of stacks.
pub fn waited_for(command: &str) -> Option<&'static str> {
    KNOWN.waited_for(command)
}

#[cfg(test)]
mod tests;
