//! What the virtual machine lane and the nspawn lane share: scenarios as
//! folders, the agent installed as it is shipped, and what comes out of a boot.
//!
//! A scenario boots once per test process; every test that names it reads the
//! same outcome. Nothing here knows what a right outcome is: the tests do.

pub(crate) mod journal;
pub(crate) mod limited;
pub(crate) mod outcome;
pub(crate) mod reports;
pub(crate) mod scenario;
pub(crate) mod stage;
pub(crate) mod tools;
pub(crate) mod turns;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use outcome::Outcome;

type Run = Arc<OnceLock<Result<Arc<Outcome>, String>>>;

/// The outcome of scenario `name`, booted by `boot` if it has not been yet.
///
/// # Panics
/// When the guest could not be booted or brought no outcome out; the message
/// is the same for every test that shares the boot.
pub(crate) fn once(name: &str, boot: impl FnOnce() -> Result<Outcome, String>) -> Arc<Outcome> {
    static RUNS: OnceLock<Mutex<HashMap<String, Run>>> = OnceLock::new();
    let run = RUNS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(name.to_owned())
        .or_default()
        .clone();
    match run.get_or_init(|| boot().map(Arc::new)) {
        Ok(outcome) => outcome.clone(),
        Err(why) => panic!("scenario {name}: {why}"),
    }
}
