//! What systemd is asked about guests that are units.

use super::deadlock::waits_for_us;
use super::tasks::QUESTION_USEC;
use crate::config::guest::What;
use crate::graph::{Graph, show};
use crate::host::manager::{Manager, ManagerError};
use crate::host::unit::UnitState;
use crate::host::{clock, process};

/// How the units of these names are now.
///
/// # Errors
/// systemd cannot be asked.
pub(super) fn states(names: &[&str]) -> Result<Vec<UnitState>, ManagerError> {
    Manager::open(names).map(|(_, states)| states)
}

/// Why the start of `guest` cannot end before that of the unit `own` has; `None`
/// if it can, and for a domain.
pub(super) fn deadlock(own: &str, guest: &What) -> Option<String> {
    let What::Unit(unit) = guest else { return None };
    let graph = match graph(unit.as_str()) {
        Ok(graph) => graph,
        Err(e) => return Some(format!("cannot query the ordering of the unit from systemd: {e}")),
    };
    let chain = waits_for_us(&graph, own, unit.as_str())?;
    Some(format!(
        "the unit is ordered after ibprov-guests.service, which is not up yet: {}",
        chain.join(" < ")
    ))
}

/// The units that are loaded, and `unit`, with their orders and jobs.
fn graph(unit: &str) -> std::io::Result<Graph> {
    let properties = format!("--property={}", show::PROPERTIES);
    let args = ["show", "--no-pager", &properties, "--", "*", unit];
    let until = clock::monotonic_usec() + QUESTION_USEC;
    let text = process::output_until("systemctl", &args, until)?.into_text("systemctl", &args)?;
    Ok(show::graph(&text, "multi-user.target"))
}
