//! What the service manager (PID 1) knows of units and jobs, over the system
//! bus where it is up and through `systemctl` where it is not yet.
//!
//! Both ways give the same [`UnitState`]. Every question has a deadline:
//! before basic.target the bus socket is there and nobody answers.

use std::io;
use std::time::Duration;

use super::bus::{Bus, BusError};
use super::unit::{CALL, UnitState};
use super::{Root, clock, systemctl, unit_links};
use crate::names::Moment;

/// Why the service manager could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Systemctl(#[from] io::Error),
}

impl ManagerError {
    /// True if nobody answered in time: systemd or the bus has much to do.
    pub fn is_late(&self) -> bool {
        match self {
            Self::Bus(e) => e.is_late(),
            Self::Systemctl(e) => e.kind() == io::ErrorKind::TimedOut,
        }
    }
}

/// The service manager, for one run of ibprov.
#[derive(Debug, Default)]
pub struct Manager {
    bus: Option<Bus>,
    way: Way,
}

/// How the last question was put.
#[derive(Debug, Clone, PartialEq, Eq, Default, strum::Display)]
pub enum Way {
    #[default]
    #[strum(to_string = "the system bus")]
    Bus,
    /// Through systemctl, and why.
    #[strum(to_string = "systemctl ({0})")]
    Systemctl(String),
    /// Through systemctl, as all are, whatever the bus does.
    #[strum(to_string = "systemctl only")]
    SystemctlOnly,
}

/// How long the bus may take to let us in: it runs and has nothing to wait for.
const CONNECT: Duration = Duration::from_millis(250);

impl Manager {
    /// Ask for `names`, and keep the way for further questions.
    ///
    /// # Errors
    /// systemctl cannot be run, or systemd does not answer.
    pub fn open(names: &[&str]) -> Result<(Self, Vec<UnitState>), ManagerError> {
        let mut manager = Self::default();
        let states = manager.units(names)?;
        Ok((manager, states))
    }

    /// As [`Manager::open`], asked again while systemd is late, at the latest at `until`
    /// of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// As [`Manager::open`].
    pub fn open_until(
        names: &[&str],
        until: Moment,
    ) -> Result<(Self, Vec<UnitState>), ManagerError> {
        loop {
            match Self::open(names) {
                Err(e) if e.is_late() && clock::now() < until => {}
                end => return end,
            }
        }
    }

    /// Ask through systemctl only, whatever the bus does.
    pub const fn by_systemctl() -> Self {
        Self { bus: None, way: Way::SystemctlOnly }
    }

    pub const fn way(&self) -> &Way {
        &self.way
    }

    /// Close the connection, before anything is waited for; the next question opens
    /// another one.
    pub fn disconnect(&mut self) {
        self.bus = None;
    }

    /// The bus, also where it did not let us in at once: for what can be asked
    /// in no other way.
    ///
    /// # Errors
    /// Others of ours keep it busy.
    pub fn bus_by_all_means(&mut self) -> Result<Option<&mut Bus>, BusError> {
        match self.way {
            Way::SystemctlOnly => Ok(None),
            _ => self.connected(CALL),
        }
    }

    /// The bus, where it is up: the service of its daemon runs, and it lets us in within 250 ms.
    /// A socket that is there says nothing: before basic.target nobody answers on it. Else
    /// systemctl answers for now.
    ///
    /// # Errors
    /// Others of ours keep it busy.
    pub fn bus(&mut self) -> Result<Option<&mut Bus>, BusError> {
        if self.way == Way::SystemctlOnly {
            return Ok(None);
        }
        if self.bus.is_none() && !bus_daemon_runs(&Root::live()) {
            self.way = Way::Systemctl("dbus.service does not run".to_owned());
            return Ok(None);
        }
        self.connected(CONNECT)
    }

    fn connected(&mut self, limit: Duration) -> Result<Option<&mut Bus>, BusError> {
        if self.bus.is_none() {
            match Bus::connect(limit) {
                Ok(bus) => (self.bus, self.way) = (Some(bus), Way::Bus),
                Err(e @ BusError::NoTurn { .. }) => return Err(e),
                Err(e) => {
                    tracing::debug!(cause = %e, "{e}");
                    self.way = Way::Systemctl(e.to_string());
                }
            }
        }
        Ok(self.bus.as_mut())
    }

    /// The states of these units, in this order. A unit that does not exist has
    /// load state `not-found`.
    ///
    /// # Errors
    /// systemd could not be asked.
    pub fn units(&mut self, names: &[&str]) -> Result<Vec<UnitState>, ManagerError> {
        match self.bus()? {
            Some(bus) => Ok(bus.units(names)?),
            None => Ok(systemctl::units(names)?),
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
