//! What is to be known of a network stack: the facts, and the questions that it
//! is asked.

use std::fmt;

use super::files::Files;
use crate::config::foreign::interfaces::Which;
use crate::host::bus;
use crate::host::manager::Manager;
use crate::host::unit::{ActiveState, UnitState};
use crate::host::{Root, process};
use crate::model::{
    StackName, StackSetting,
    stack::{Action, Claim, Phase, View},
};
use crate::names::{IfName, NetworkRole, PKey, unit_escape};
use crate::observe::ipoib::Interface;

/// What is always so of a stack.
#[derive(Debug)]
pub struct Facts {
    pub name: StackName,
    /// The service that brings interfaces up.
    pub service: &'static str,
    /// All its units that have to do with interfaces, that service among them.
    pub units: &'static [StackUnit],
    /// Programs whose lines in a log without units are its service's.
    pub log_programs: &'static [&'static str],
    /// Commands that wait for its service to be done, without their folder.
    pub waiting_commands: &'static [&'static str],
    /// It looks at the interfaces once, when its service starts; the others take
    /// what appears later too.
    pub looks_once: bool,
    /// A record of its own says what it brought up, and outlives the interface.
    pub keeps_record: bool,
    /// It stumbles over addresses of an interface that is down.
    pub stumbles_over_addresses: bool,
    /// The unit that it has for each interface, if it has.
    pub own_unit: Option<OwnUnit>,
    /// The script of System V's init that stands for its service where there is
    /// no unit file.
    pub init_script: Option<&'static str>,
}

impl Facts {
    /// Of a stack with nothing special.
    pub const fn new(name: StackName, service: &'static str, units: &'static [StackUnit]) -> Self {
        Self {
            name,
            service,
            units,
            log_programs: &[],
            waiting_commands: &[],
            looks_once: false,
            keeps_record: false,
            stumbles_over_addresses: false,
            own_unit: None,
            init_script: None,
        }
    }
}

#[derive(Debug)]
pub struct StackUnit {
    /// Its name, `networking.service`.
    pub name: &'static str,
    /// What it does for interfaces.
    pub role: NetworkRole,
    /// What systemd and distributions call it in logs (`Description=`).
    pub descriptions: &'static [&'static str],
}

impl StackUnit {
    pub const fn new(
        name: &'static str,
        role: NetworkRole,
        descriptions: &'static [&'static str],
    ) -> Self {
        Self { name, role, descriptions }
    }
}

/// A unit that a stack has for each interface.
#[derive(Debug)]
pub struct OwnUnit {
    /// The template's name up to its `@`.
    pub template: &'static str,
    /// Where such a unit is.
    pub phase: fn(&UnitState) -> Phase,
}

impl OwnUnit {
    /// The unit's name for `interface`.
    pub fn of(&self, interface: &Interface) -> String {
        format!("{}@{}.service", self.template, unit_escape(interface.name.as_str()))
    }
}

/// Where the service of each name is.
pub type Phases<'a> = &'a dyn Fn(&str) -> Phase;

/// A network stack: one file each, and one row in [`super::KNOWN`].
pub trait Stack: Sync + fmt::Debug {
    /// What is always so of it.
    fn facts(&self) -> &'static Facts;

    /// Its claim to `interface` by its configuration alone, where it does not
    /// tell by itself. `phase` says where its service is, `others` where the
    /// service of that name is.
    fn claim(&self, root: &Root, interface: &Interface, phase: Phase, others: Phases<'_>) -> Claim;

    /// By what it records, it has brought `interface` up.
    fn has_brought_up(&self, _: &Root, interface: &Interface) -> bool {
        interface.up
    }

    /// Ask it, while it runs, what it has to say of `interface`.
    ///
    /// # Errors
    /// The bus broke.
    fn ask(&self, _: &Root, _: &mut Manager, _interface: &Interface) -> bus::Result<Reply> {
        Ok(Reply::Mute)
    }

    /// The file that it writes anew, while it runs, each time it gets further with
    /// `interface`: an event without a connection to the bus.
    fn record_of(&self, _interface: &Interface) -> Option<String> {
        None
    }

    /// The command that makes it bring the interface up that it missed; `how` is
    /// one of [`Action::Ifup`], [`Action::IfupAgain`] and [`Action::IfupAnew`].
    ///
    /// # Errors
    /// It has none, or its program is not there.
    fn command(&self, _how: Action, _name: &IfName) -> Result<Command, String> {
        Err("the stack brings interfaces up only by itself".to_owned())
    }

    /// The transport mode and the MTU that it writes to `interface` when it brings it
    /// up, by its files. What cannot be told from them is left out. `others` as for
    /// [`Stack::claim`].
    fn writes(
        &self,
        files: &Files<'_>,
        interface: &Interface,
        others: Phases<'_>,
    ) -> Vec<StackSetting>;

    /// The netdevs that its files set up at boot by name, each with the file. A
    /// pattern (`ib*`) says nothing of a single netdev.
    fn asked(&self, root: &Root) -> Vec<(String, String)>;

    /// The P_Key children that it creates itself and would leave alone if another program had
    /// created them: of which interface, and the file that says so.
    fn creates(&self, _files: &Files<'_>) -> Vec<(Which, PKey, String)> {
        Vec::new()
    }

    /// The netdev is its, by what it has written down; for messages only.
    fn owner(&self, root: &Root, netdev: &IfName, ifindex: u32) -> Option<Owner>;
}

/// How a stack answers when it is asked for an interface.
#[derive(Debug)]
pub enum Reply {
    /// It cannot be asked: that the interface is up has to do.
    Mute,
    /// It can be asked, but not reached now.
    Unreachable,
    State(Box<dyn StackState>),
}

/// What a stack that runs says itself of an interface.
pub trait StackState: fmt::Debug {
    /// Its claim; `None` while it has not decided.
    fn claim(&self, files: &Files<'_>, interface: &Interface) -> Option<Claim>;

    /// How far it is with it.
    fn progress(&self, interface: &Interface) -> Progress;
}

/// How far a stack is with an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It has not made up its mind whether to begin.
    Undecided,
    Working,
    /// It has brought it up.
    Up,
    Failed,
}

/// A command that brings an interface up.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    pub shown: &'static str,
    pub words: Vec<String>,
}

/// Where the program `name` is.
///
/// # Errors
/// It is not there.
pub(super) fn program(name: &str) -> Result<String, String> {
    let found = process::find(name).map(|path| path.display().to_string());
    found.ok_or_else(|| format!("the program {name} does not exist"))
}

/// Where a unit is in this boot, by what systemd says of it.
pub fn phase_of_unit(unit: &UnitState) -> Phase {
    match (&unit.active, unit.job) {
        (ActiveState::Active | ActiveState::Reloading, _) => Phase::Active,
        (ActiveState::Activating, _) => Phase::Starting,
        (ActiveState::Deactivating, _) => Phase::Stopped,
        (_, 1..) => Phase::Queued,
        (ActiveState::Failed, _) => Phase::Failed,
        _ if unit.inactive_enter.is_some() => Phase::Stopped,
        _ => Phase::NotStarted,
    }
}

/// Where the service called `service` is; `Absent` if the name is an alias of
/// another stack's: network.service can be one of wicked or NetworkManager.
pub fn phase_of_service(service: &str, unit: &UnitState) -> Phase {
    if !unit.is_loaded() || unit.id != service {
        return Phase::Absent;
    }
    phase_of_unit(unit)
}

/// By what a netdev is a stack's; the phrase names the stack and the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The running stack's own record of the netdev.
    Record(String),
    File(String),
}

/// One stack and one interface, as it is decided on.
#[derive(Debug)]
pub struct Standing {
    pub facts: &'static Facts,
    /// Where it is, and whether it claims the interface.
    pub view: View,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_systemd_does() {
        for (name, escaped) in [
            ("ib0", "ib0"),
            ("ib-storage", "ib\\x2dstorage"),
            ("-x", "\\x2dx"),
            ("ib0;reboot", "ib0\\x3breboot"),
            ("a\\x2fb", "a\\x5cx2fb"),
            (".a", "\\x2ea"),
            ("ib0.8001", "ib0.8001"),
        ] {
            assert_eq!(unit_escape(name), escaped);
        }
    }
}
