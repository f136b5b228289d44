//! What the service manager (PID 1) knows of units and jobs, over the system
//! bus where it is up and through `systemctl` where it is not yet.
//!
//! Both ways give the same [`UnitState`]. Every question has a deadline:
//! before basic.target the bus socket is there and nobody answers.

use super::bus::{Bus, BusError};
use super::systemctl::SystemctlError;
use super::unit::{CALL_USEC, JobEnd, UnitState};
use super::{Root, systemctl, unit_links};

/// Why the service manager could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// Over the bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Through systemctl or systemd-run.
    #[error(transparent)]
    Systemctl(#[from] SystemctlError),
}

impl ManagerError {
    /// True if nobody answered in time: systemd or the bus has much to do.
    #[must_use]
    pub fn is_late(&self) -> bool {
        match self {
            Self::Bus(e) => e.is_late(),
            Self::Systemctl(e) => e.is_late(),
        }
    }
}

/// The service manager, for one run of ibprov.
#[derive(Debug)]
pub struct Manager {
    bus: Option<Bus>,
    /// The bus is used, whether a connection is open now or not.
    by_bus: bool,
    /// Why it is asked by the way it is, for people.
    pub way: String,
}

/// How long the bus may take to let us in: it runs and has nothing to wait for.
const CONNECT_USEC: u64 = 250_000;
/// Marks a manager that never uses the bus.
const ONLY: &str = " only";

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
            match Bus::connect(CONNECT_USEC) {
                Ok(bus) => Self { bus: Some(bus), by_bus: true, way: "the system bus".to_owned() },
                Err(e) => Self { bus: None, by_bus: false, way: format!("systemctl ({e})") },
            }
        } else {
            let way = "systemctl (dbus.service does not run)".to_owned();
            Self { bus: None, by_bus: false, way }
        };
        let states = manager.units(names)?;
        Ok((manager, states))
    }

    /// Ask through systemctl only, whatever the bus does.
    #[must_use]
    pub fn by_systemctl() -> Self {
        Self { bus: None, by_bus: false, way: format!("systemctl{ONLY}") }
    }

    /// Close the connection, before anything is waited for; the next question opens
    /// another one.
    pub fn rest(&mut self) {
        self.bus = None;
    }

    /// The bus, also where it did not let us in at once: for what can be asked
    /// in no other way.
    pub fn bus_by_all_means(&mut self) -> Option<&mut Bus> {
        if self.bus.is_none() && !self.way.ends_with(ONLY) {
            match Bus::connect(CALL_USEC) {
                Ok(bus) => {
                    self.bus = Some(bus);
                    if !self.by_bus {
                        self.by_bus = true;
                        "the system bus, at the second try".clone_into(&mut self.way);
                    }
                }
                Err(e) => tracing::debug!(cause = %e, "{e}"),
            }
        }
        self.bus.as_mut()
    }

    /// The bus, where it is up.
    pub fn bus(&mut self) -> Option<&mut Bus> {
        if self.bus.is_none() && self.by_bus {
            // It was up before: systemctl answers for now where it is not.
            match Bus::connect(CONNECT_USEC) {
                Ok(bus) => self.bus = Some(bus),
                Err(e) => tracing::debug!(cause = %e, "{e}"),
            }
        }
        self.bus.as_mut()
    }

    /// The states of these units, in this order. A unit that does not exist has
    /// load state `not-found`.
    ///
    /// # Errors
    /// systemd could not be asked.
    pub fn units(&mut self, names: &[&str]) -> Result<Vec<UnitState>, ManagerError> {
        match self.bus() {
            Some(bus) => Ok(bus.units(names)?),
            None => Ok(systemctl::units(names)?),
        }
    }

    /// Start `unit` and wait until its job has ended, at the latest until
    /// `until_usec` of CLOCK_MONOTONIC. An identical job that is there already
    /// is joined. A connection to the bus is held meanwhile: for who starts few at a
    /// time.
    ///
    /// # Errors
    /// systemd could not be asked, or refuses (no such unit, masked).
    pub fn start(&mut self, unit: &str, until_usec: u64) -> Result<JobEnd, ManagerError> {
        match self.bus() {
            Some(bus) => Ok(bus.start(unit, until_usec)?),
            None => Ok(systemctl::start(unit, until_usec)?),
        }
    }
}

/// To ask systemctl would cost ten times what the bus answers in.
fn bus_daemon_runs(root: &Root) -> bool {
    let daemons = ["dbus.service", "dbus-broker.service"];
    daemons.iter().any(|daemon| unit_links::is_up(root, daemon))
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
