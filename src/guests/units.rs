//! What systemd is asked about guests that are units.

use std::cell::OnceCell;
use std::io;

use super::tasks::QUESTION;
use crate::config::guest::What;
use crate::graph::start_wait::{may_come_to_wait, waits_for_us};
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

/// Our own unit, while its start has not ended: what is ordered after it cannot be waited for.
#[derive(Debug)]
pub(super) struct OwnUnit {
    name: String,
    /// The units as they were at the first question: one about all units of the host for each
    /// of hundreds of guests would keep systemd and us busy for minutes.
    units: OnceCell<Graph>,
}

impl OwnUnit {
    pub(super) const fn new(name: String) -> Self {
        Self { name, units: OnceCell::new() }
    }

    /// Why the start of `guest`, one of `guests`, cannot end before that of our unit has;
    /// `None` if it can, and for a domain.
    pub(super) fn deadlock(&self, guest: &What, guests: &[&str]) -> Option<String> {
        let What::Unit(unit) = guest else { return None };
        let unit = unit.as_str();
        self.chain(unit, guests).unwrap_or_else(|e| {
            Some(format!("cannot query the ordering of the unit from systemd: {e}"))
        })
    }

    fn chain(&self, unit: &str, guests: &[&str]) -> io::Result<Option<String>> {
        let before = match self.units.get() {
            Some(units) => units,
            None => {
                let units = graph(guests)?;
                self.units.get_or_init(|| units)
            }
        };
        // A job that waits for us is there as long as our unit's start.
        let mut chain = waits_for_us(before, &self.name, unit);
        if chain.is_none() && may_come_to_wait(before, &self.name, unit) {
            chain = waits_for_us(&graph(&[unit])?, &self.name, unit);
        }
        Ok(chain.map(|chain| {
            format!(
                "the unit is ordered after ibprov-guests.service, which is not up yet: {}",
                chain.join(" < ")
            )
        }))
    }
}

/// The units that are loaded, and `units`, with their orders and jobs.
fn graph(units: &[&str]) -> io::Result<Graph> {
    let properties = format!("--property={}", show::PROPERTIES);
    let args: Vec<&str> =
        ["show", "--no-pager", &properties, "--", "*"].iter().chain(units).copied().collect();
    let until = clock::now() + QUESTION;
    let text = process::output_until("systemctl", &args, until)?.into_text("systemctl", &args)?;
    Ok(show::graph(&text, "multi-user.target"))
}
