//! What the service manager (PID 1) knows of units and jobs, over the system
//! bus where it is up and through `systemctl` where it is not yet.
//!
//! Both ways give the same [`UnitState`]. Every question has a deadline:
//! before basic.target the bus socket is there and nobody answers.

use super::bus::{Bus, BusError};
use super::systemctl::SystemctlError;
use super::unit::{CALL_USEC, JobEnd, UnitState};
use super::{Root, clock, systemctl, unit_links};

/// Why the service manager could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Systemctl(#[from] SystemctlError),
}

impl ManagerError {
    /// True if nobody answered in time: systemd or the bus has much to do.
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
    way: Way,
}

/// How the service manager is asked, and why so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Over the system bus, which let us in at once.
    Bus,
    /// Over the system bus, which had not let us in at first.
    BusLate,
    /// Through systemctl where the bus does not let us in: it has not at first, and why.
    Late(String),
    /// Through systemctl, and over the bus for what can be asked in no other way: it is not
    /// there, and why.
    Systemctl(String),
    /// Through systemctl, whatever the bus does.
    SystemctlOnly,
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bus => f.write_str("the system bus"),
            Self::BusLate => f.write_str("the system bus, at the second try"),
            Self::Late(cause) | Self::Systemctl(cause) => write!(f, "systemctl ({cause})"),
            Self::SystemctlOnly => f.write_str("systemctl only"),
        }
    }
}

/// How long the bus may take to let us in: it runs and has nothing to wait for.
const CONNECT_USEC: u64 = 250_000;

impl Manager {
    /// Decide how to ask, and ask for `names` at once.
    ///
    /// The bus counts as up where the service of its daemon runs, and is then given
    /// 250 ms. What it does not take in that time goes to systemctl, and the next question
    /// to the bus again; where it cannot be connected to at all, systemctl has all of them.
    /// A socket that is there says nothing: before basic.target nobody answers on it.
    ///
    /// # Errors
    /// systemctl cannot be run, or systemd does not answer.
    pub fn open(names: &[&str]) -> Result<(Self, Vec<UnitState>), ManagerError> {
        let (bus, way) = if bus_daemon_runs(&Root::live()) {
            match Bus::connect(CONNECT_USEC) {
                Ok(bus) => (Some(bus), Way::Bus),
                Err(e @ BusError::NoTurn { .. }) => return Err(e.into()),
                Err(e) if e.is_late() => (None, Way::Late(e.to_string())),
                Err(e) => (None, Way::Systemctl(e.to_string())),
            }
        } else {
            (None, Way::Systemctl("dbus.service does not run".to_owned()))
        };
        let mut manager = Self { bus, way };
        // Not by the bus, which has just been late.
        let states = match &mut manager.bus {
            Some(bus) => bus.units(names)?,
            None => systemctl::units(names)?,
        };
        Ok((manager, states))
    }

    /// As [`Manager::open`], asked again while systemd is late, at the latest at `until_usec`
    /// of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// As [`Manager::open`].
    pub fn open_until(
        names: &[&str],
        until_usec: u64,
    ) -> Result<(Self, Vec<UnitState>), ManagerError> {
        loop {
            match Self::open(names) {
                Err(e) if e.is_late() && clock::monotonic_usec() < until_usec => {}
                end => return end,
            }
        }
    }

    /// Ask through systemctl only, whatever the bus does.
    pub fn by_systemctl() -> Self {
        Self { bus: None, way: Way::SystemctlOnly }
    }

    /// How it is asked now.
    pub const fn way(&self) -> &Way {
        &self.way
    }

    /// Close the connection, before anything is waited for; the next question opens
    /// another one.
    pub fn rest(&mut self) {
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
            _ => self.connected(CALL_USEC),
        }
    }

    /// The bus, where it is up.
    ///
    /// # Errors
    /// Others of ours keep it busy.
    pub fn bus(&mut self) -> Result<Option<&mut Bus>, BusError> {
        match self.way {
            Way::Systemctl(_) | Way::SystemctlOnly => Ok(None),
            // Where it does not let us in now, systemctl answers for now.
            Way::Bus | Way::BusLate | Way::Late(_) => self.connected(CONNECT_USEC),
        }
    }

    fn connected(&mut self, within_usec: u64) -> Result<Option<&mut Bus>, BusError> {
        if self.bus.is_none() {
            match Bus::connect(within_usec) {
                Ok(bus) => {
                    self.bus = Some(bus);
                    if self.way != Way::Bus {
                        self.way = Way::BusLate;
                    }
                }
                Err(e @ BusError::NoTurn { .. }) => return Err(e),
                Err(e) => tracing::debug!(cause = %e, "{e}"),
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

    /// Start `unit` and wait until its job has ended, at the latest until
    /// `until_usec` of CLOCK_MONOTONIC. An identical job that is there already
    /// is joined. A connection to the bus is held meanwhile: for who starts few at a
    /// time.
    ///
    /// # Errors
    /// systemd could not be asked, or refuses (no such unit, masked).
    pub fn start(&mut self, unit: &str, until_usec: u64) -> Result<JobEnd, ManagerError> {
        match self.bus() {
            Ok(Some(bus)) => Ok(bus.start(unit, until_usec)?),
            // It takes no turn for this.
            Ok(None) | Err(_) => Ok(systemctl::start(unit, until_usec)?),
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
