//! Units and jobs of the service manager as values, the same by whichever way it
//! is asked: [`super::bus`] or [`super::systemctl`].

use std::time::Duration;

use crate::names::Moment;

/// How long one question to systemd may take.
pub const CALL: Duration = Duration::from_secs(20);

/// A unit, in systemd's own words (`org.freedesktop.systemd1(5)`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitState {
    /// The name that was asked for.
    pub name: String,
    /// The name that it has; another one if `name` is an alias.
    pub id: String,
    pub load: LoadState,
    pub active: ActiveState,
    /// SubState: `running`, `exited`, `dead` ...
    pub sub: String,
    /// Result of a service that does not run: `success`, `exit-code`, `timeout`
    /// ...; `None` of what is no service, and of one that runs.
    pub result: Option<String>,
    /// The job queued or running for it; 0 for none.
    pub job: u32,
    /// When one that does not run became inactive or failed, if it has run.
    pub inactive_enter: Option<Moment>,
    /// The conditions of one that does not run held when they were last checked;
    /// true of one that runs.
    pub condition: bool,
}

impl UnitState {
    /// There is such a unit, and nothing masks it.
    pub fn is_loaded(&self) -> bool {
        self.load == LoadState::Loaded
    }

    /// It runs, or has run and remains.
    pub const fn is_active(&self) -> bool {
        matches!(self.active, ActiveState::Active | ActiveState::Reloading)
    }

    /// It neither runs nor is about to.
    pub const fn is_down(&self) -> bool {
        matches!(self.active, ActiveState::Inactive | ActiveState::Failed)
    }
}

/// LoadState of a unit (`unit_load_state_table`, `src/basic/unit-def.c`).
#[derive(Debug, Clone, Default, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum LoadState {
    /// There is such a unit.
    Loaded,
    #[default]
    NotFound,
    Masked,
    /// What systemd cannot take, in its word: `bad-setting`, `error` ...
    #[strum(default, transparent)]
    Other(String),
}

impl LoadState {
    /// The state that systemd calls `word`.
    pub fn of(word: &str) -> Self {
        // Any word is one: what none of the others is called is `Other`.
        word.parse().unwrap_or_default()
    }
}

/// ActiveState of a unit (`unit_active_state_table`, `src/basic/unit-def.c`).
#[derive(Debug, Clone, Default, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum ActiveState {
    /// It runs, or has run and remains.
    Active,
    /// It runs, and reads its configuration again.
    Reloading,
    #[default]
    Inactive,
    /// It does not run, for it failed.
    Failed,
    Activating,
    Deactivating,
    /// A state that is rare or new, in systemd's word.
    #[strum(default, transparent)]
    Other(String),
}

impl ActiveState {
    /// The state that systemd calls `word`.
    pub fn of(word: &str) -> Self {
        // As for [`LoadState::of`].
        word.parse().unwrap_or_default()
    }
}

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
    pub description: &'a str,
    pub command: &'a [&'a str],
    /// The unit of the device that it is for, and goes with.
    pub device: &'a str,
    /// How long its start may take.
    pub timeout: Duration,
}
