//! Where a unit is in this boot, by what systemd says of it.

use crate::host::unit::{ActiveState, UnitState};
use crate::report::stack::Phase;

/// Where any unit is.
pub fn of_unit(unit: &UnitState) -> Phase {
    match (&unit.active, unit.job) {
        (ActiveState::Active | ActiveState::Reloading, _) => Phase::Active,
        (ActiveState::Activating, _) => Phase::Starting,
        (ActiveState::Deactivating, _) => Phase::Stopped,
        (_, 1..) => Phase::Queued,
        (ActiveState::Failed, _) => Phase::Failed,
        _ if unit.inactive_enter_usec > 0 => Phase::Stopped,
        _ => Phase::NotStarted,
    }
}

/// Where the service called `service` is; `Absent` if the name is an alias of
/// another stack's: network.service can be one of wicked or NetworkManager.
pub fn of_service(service: &str, unit: &UnitState) -> Phase {
    if !unit.is_loaded() || unit.id != service {
        return Phase::Absent;
    }
    of_unit(unit)
}
