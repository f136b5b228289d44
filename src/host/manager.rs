//! What the service manager (PID 1) knows of units and jobs, over the system
//! bus where it is up and through `systemctl` where it is not yet.
//!
//! Both ways give the same [`UnitState`]. Every question has a deadline:
//! before basic.target the bus socket is there and nobody answers.

use std::fmt;

use super::bus::{Bus, BusError};
use super::{Root, clock, systemctl};

/// A unit, in systemd's own words (`org.freedesktop.systemd1(5)`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitState {
    /// The name that was asked for.
    pub name: String,
    /// The name that it has; another one if `name` is an alias.
    pub id: String,
    /// LoadState: `loaded`, `not-found`, `masked`, `bad-setting`, `error`.
    pub load: String,
    /// ActiveState: `active`, `reloading`, `inactive`, `failed`, `activating`,
    /// `deactivating`.
    pub active: String,
    /// SubState: `running`, `exited`, `dead` ...
    pub sub: String,
    /// Result of a service that does not run: `success`, `exit-code`, `timeout`
    /// ...; empty for what is none.
    pub result: String,
    /// The job queued or running for it; 0 for none.
    pub job: u32,
    /// When one that does not run became inactive or failed, microseconds of
    /// CLOCK_MONOTONIC; 0 for never.
    pub inactive_enter_usec: u64,
    /// The conditions of one that does not run held when they were last checked;
    /// true of one that runs.
    pub condition: bool,
}

impl UnitState {
    /// There is such a unit, and nothing masks it.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.load == "loaded"
    }

    /// `active` or `reloading`.
    #[must_use]
    pub fn is_active(&self) -> bool {
        matches!(self.active.as_str(), "active" | "reloading")
    }
}

/// A job of the service manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: u32,
    /// Whose.
    pub unit: String,
    /// `start`, `stop`, `restart`, `verify-active` ...
    pub kind: String,
    /// Running; else it waits for others.
    pub running: bool,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// It is done; also if a condition of the unit skipped it.
    Done,
    /// It failed, timed out, was cancelled, skipped for a failed dependency ...
    Failed,
    /// It had not ended by the deadline.
    Pending,
}

/// Why the service manager could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// Over the bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Through systemctl or systemd-run.
    #[error("{0}")]
    Systemctl(#[from] std::io::Error),
    /// It answered with something that is no answer.
    #[error("{what}: cannot understand systemd's answer {answer:?}")]
    Answer {
        /// What was asked.
        what: String,
        /// What came, shortened.
        answer: String,
    },
}

/// The service manager, for one run of ibprov.
#[derive(Debug)]
pub struct Manager {
    bus: Option<Bus>,
    /// Why it is asked by the way it is, for people.
    pub way: String,
}

/// How long the bus may take to let us in: it runs and has nothing to wait for.
const CONNECT_USEC: u64 = 250_000;
/// Marks a manager that never uses the bus.
const ONLY: &str = " only";
/// How long one question may take.
pub(super) const CALL_USEC: u64 = 20_000_000;

impl Manager {
    /// Decide how to ask, and ask for `names` at once.
    ///
    /// The bus counts as up where the service of its daemon runs, and is then given
    /// 250 ms; what it does not take goes to systemctl for good. A socket that is
    /// there says nothing: before basic.target nobody answers on it.
    ///
    /// # Errors
    /// systemctl cannot be run, or systemd does not answer.
    pub fn open(names: &[&str]) -> Result<(Self, Vec<UnitState>), ManagerError> {
        let mut manager = if bus_daemon_runs(&Root::live()) {
            match Bus::connect(clock::monotonic_usec() + CONNECT_USEC) {
                Ok(bus) => Self::by_bus(bus),
                Err(e) => Self { bus: None, way: format!("systemctl ({e})") },
            }
        } else {
            Self { bus: None, way: "systemctl (dbus.service does not run)".to_owned() }
        };
        // Signals are on by now: what changes from here on is heard.
        let states = manager.units(names)?;
        Ok((manager, states))
    }

    /// Ask through systemctl only, whatever the bus does.
    #[must_use]
    pub fn by_systemctl() -> Self {
        Self { bus: None, way: format!("systemctl{ONLY}") }
    }

    /// Ask over this bus.
    #[must_use]
    pub fn by_bus(bus: Bus) -> Self {
        Self { bus: Some(bus), way: "the system bus".to_owned() }
    }

    /// The bus, also where it did not let us in at once: for what can be asked
    /// in no other way.
    pub fn bus_by_all_means(&mut self) -> Option<&mut Bus> {
        if self.bus.is_none() && !self.way.ends_with(ONLY) {
            match Bus::connect(clock::monotonic_usec() + CALL_USEC) {
                Ok(bus) => {
                    self.bus = Some(bus);
                    "the system bus, at the second try".clone_into(&mut self.way);
                }
                Err(e) => log::debug!("{e}"),
            }
        }
        self.bus.as_mut()
    }

    /// The bus, where it is up: network managers are on it too.
    pub fn bus(&mut self) -> Option<&mut Bus> {
        self.bus.as_mut()
    }

    /// The states of these units, in this order. A unit that does not exist has
    /// load state `not-found`.
    ///
    /// # Errors
    /// systemd could not be asked.
    pub fn units(&mut self, names: &[&str]) -> Result<Vec<UnitState>, ManagerError> {
        match &mut self.bus {
            Some(bus) => Ok(bus.units(names)?),
            None => systemctl::units(names),
        }
    }

    /// The jobs that are queued or running.
    ///
    /// # Errors
    /// systemd could not be asked.
    pub fn jobs(&mut self) -> Result<Vec<Job>, ManagerError> {
        match &mut self.bus {
            Some(bus) => Ok(bus.jobs()?),
            None => systemctl::jobs(),
        }
    }

    /// Start `unit` and wait until its job has ended, at the latest until
    /// `until_usec` of CLOCK_MONOTONIC. An identical job that is there already
    /// is joined.
    ///
    /// # Errors
    /// systemd could not be asked, or refuses (no such unit, masked).
    pub fn start(&mut self, unit: &str, until_usec: u64) -> Result<JobEnd, ManagerError> {
        match &mut self.bus {
            Some(bus) => Ok(bus.start(unit, until_usec)?),
            None => Ok(systemctl::start(unit, until_usec)?),
        }
    }

    /// Stop `unit` and wait until its job has ended.
    ///
    /// # Errors
    /// As [`Manager::start`].
    pub fn stop(&mut self, unit: &str, until_usec: u64) -> Result<JobEnd, ManagerError> {
        match &mut self.bus {
            Some(bus) => Ok(bus.stop(unit, until_usec)?),
            None => Ok(systemctl::stop(unit, until_usec)?),
        }
    }

    /// Run `command` as the service `unit` of its own, which outlives us, and
    /// wait until its start has ended: a program that leaves children behind
    /// (a DHCP client) leaves them there.
    ///
    /// # Errors
    /// systemd could not be asked, or refuses (a unit of that name exists).
    pub fn run_apart(&mut self, unit: &Apart<'_>, until_usec: u64) -> Result<JobEnd, ManagerError> {
        match &mut self.bus {
            Some(bus) => Ok(bus.run_apart(unit, until_usec)?),
            None => Ok(systemctl::run_apart(unit, until_usec)?),
        }
    }

    /// Wait until `unit` has no start job any more. Returns at once if it has
    /// none. Never starts it.
    ///
    /// # Errors
    /// systemd could not be asked.
    pub fn wait_for_job(&mut self, unit: &str, until_usec: u64) -> Result<JobEnd, ManagerError> {
        match &mut self.bus {
            Some(bus) => Ok(bus.wait_for_job(unit, until_usec)?),
            None => systemctl::wait_for_job(unit, until_usec),
        }
    }
}

/// The links that systemd keeps of its services while they are neither inactive nor
/// failed (`unit_export_state_files()`, `src/core/unit.c`), which journald reads too.
/// To ask systemctl would cost ten times what the bus answers in.
fn bus_daemon_runs(root: &Root) -> bool {
    let daemons = ["dbus.service", "dbus-broker.service"];
    daemons.iter().any(|d| root.link_name(&format!("/run/systemd/units/invocation:{d}")).is_ok())
}

/// A service made for one command (`systemd-run(1)`).
#[derive(Debug, Clone, Copy)]
pub struct Apart<'a> {
    /// Its name, `x.service`.
    pub name: &'a str,
    /// For people.
    pub description: &'a str,
    /// Absolute path and arguments.
    pub command: &'a [&'a str],
    /// The unit of the device that it is for, and goes with.
    pub device: &'a str,
    /// How long its start may take, microseconds.
    pub timeout_usec: u64,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.running { "running" } else { "waiting" };
        write!(f, "job {} ({} {}, {state})", self.id, self.kind, self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bus_is_up_while_its_daemon_is() {
        let runs = |links: &[(&str, &str)]| {
            let dir = crate::host::testing::tree(&[("run/dbus/system_bus_socket", "")], links);
            bus_daemon_runs(&Root::copy_at(dir.path()).expect("root"))
        };
        let units = "run/systemd/units/invocation";
        assert!(!runs(&[(&format!("{units}:dbus.socket"), "1f2e")]));
        assert!(runs(&[(&format!("{units}:dbus.service"), "1f2e")]));
        assert!(runs(&[(&format!("{units}:dbus-broker.service"), "1f2e")]));
    }
}
