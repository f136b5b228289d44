//! Units and jobs of the service manager as values, the same by whichever way it
//! is asked: [`super::bus`] or [`super::systemctl`].

use std::fmt;

/// How long one question to systemd may take, microseconds.
pub(super) const CALL_USEC: u64 = 20_000_000;

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

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.running { "running" } else { "waiting" };
        write!(f, "job {} ({} {}, {state})", self.id, self.kind, self.unit)
    }
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
