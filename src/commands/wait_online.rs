//! `ibprov wait-online`.

use anyhow::Result;

use super::{level, print_or_tell};
use crate::apply::ipoib;
use crate::cli::{Format, WaitOnlineArgs};
use crate::config::{Loaded, Part};
use crate::host::{Root, alarm, journal, live_line, state, systemd};
use crate::model::{OnlineReport, events as kinds, online::Goal};
use crate::names::{WAIT_ONLINE_UNIT, usec};
use crate::observe::ModprobeRules;
use crate::online::{self, Wanted};
use crate::show;
use crate::show::screen::Screen;

/// Wait until the ports are online.
///
/// # Errors
/// It could not begin: no signals or poll, a copied tree, or standard output is
/// gone.
pub fn run(args: &WaitOnlineArgs, loaded: &Loaded, root: &Root, format: Format) -> Result<u8> {
    if !root.is_live() {
        anyhow::bail!(
            "wait-online cannot be combined with --root: no port comes online in a copied tree"
        );
    }
    let config = &loaded.config;
    let mut errors = super::config::errors(loaded);
    errors.retain(|_| [Part::Ports, Part::WaitOnline].iter().any(|p| config.withheld.has(*p)));
    let timeout = args.timeout.unwrap_or(config.wait_online.timeout);
    // From here on files are read that may not answer.
    alarm::at_deadline(timeout);
    live_line::timeout(timeout);
    let wanted = Wanted {
        errors,
        targets: args.ports.clone(),
        goal: Goal {
            rung: args.state.unwrap_or(config.wait_online.state),
            address: args.address || config.wait_online.address,
            stable_sec: args.stable.unwrap_or(config.wait_online.stable).as_secs(),
        },
        timeout,
        wants_ipoib: ipoib::wanted_denied(root, config, &ModprobeRules::read(root)),
    };
    let mut report = online::run(config, &wanted, root)?;
    let json = report.to_report().to_json()?;
    // The report is evidence of the node's boot: a run by hand may ask for any port.
    match systemd::own_unit(root) {
        Ok(Some(unit)) if unit == WAIT_ONLINE_UNIT => {
            let written = state::write("online.json", &json);
            report.problems.extend(written.err().map(|e| format!("cannot write {e}")));
        }
        Ok(_) => {}
        Err(e) => report.problems.push(format!(
            "cannot determine the unit of this process, so that {}/online.json was not written: {e}",
            state::RUN_DIR
        )),
    }
    systemd::tell_status(&report.headline());
    live_line::end();
    print_or_tell(
        &report.to_report(),
        format,
        |screen| show::online::text(&report, screen),
        || tell(&report),
    )
}

/// To the journal, with fields; to standard error where programs read standard output.
fn tell(report: &OnlineReport) {
    let took = usec(report.finished_usec.since(report.started_usec));
    journal::event!(
        level(report.verdict.exit()),
        message_id = kinds::WAIT_FINISHED,
        verdict = report.verdict.word(),
        exit = report.verdict.exit().code(),
        took_usec = took,
        "{}",
        show::online::text(report, Screen::default()).trim_end()
    );
}
