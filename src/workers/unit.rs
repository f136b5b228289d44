//! The start of a unit: it waits for one job and nothing else.

use crate::host::clock::monotonic_usec;
use crate::host::manager::Manager;
use crate::host::process;
use crate::host::unit::JobEnd;
use crate::names::UnitName;

/// Start `unit` and, with `wait`, see its job to its end.
///
/// # Errors
/// systemd could not be asked, or the unit did not come up, and why.
pub(super) fn start(unit: &UnitName, wait: bool, until_usec: u64) -> anyhow::Result<()> {
    let name = unit.as_str();
    let (mut manager, _) = Manager::open_until(&[], until_usec)?;
    if !wait {
        if matches!(manager.bus(), Ok(Some(_))) {
            manager.start(name, monotonic_usec())?;
        } else {
            let args = ["start", "--no-block", "--no-ask-password", "--", name];
            process::output_until("systemctl", &args, until_usec)?.into_text("systemctl", &args)?;
        }
        return Ok(());
    }
    let end = manager.start(name, until_usec)?;
    let states = manager.units(&[name])?;
    let Some(state) = states.first() else { anyhow::bail!("systemd reports no reason") };
    match end {
        JobEnd::Pending => {
            anyhow::bail!("the start has not finished before its timeout ({})", state.active)
        }
        // A condition that did not hold ends the job well, and starts nothing.
        JobEnd::Done if state.is_active() || state.condition => Ok(()),
        JobEnd::Done => anyhow::bail!("a condition of the unit failed"),
        JobEnd::Failed => {
            let result = state.result.as_deref().unwrap_or("see its log");
            anyhow::bail!("the start failed ({result}): journalctl -u {name}")
        }
    }
}
