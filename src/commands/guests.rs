//! `ibprov guests`.

use super::print;
use crate::cli::{Format, GuestsArgs};
use crate::config::Config;
use crate::guests::service;
use crate::host::{Root, alarm, live_line, process, state};
use crate::names::harmless;
use crate::report;
use crate::report::common::Exit;
use crate::report::guests::{GuestsReport, Phase};

/// Start the guests, or show how they are.
///
/// # Errors
/// It could not begin: no signals or poll, not root, a copied tree, or standard
/// output is gone.
pub fn run(args: &GuestsArgs, config: &Config, root: &Root, format: Format) -> anyhow::Result<u8> {
    if !root.is_live() {
        anyhow::bail!("guests cannot be combined with --root: no guest runs in a copied tree");
    }
    if !process::is_root() {
        anyhow::bail!("guests must be run as root: use sudo");
    }
    if args.status || args.dry_run {
        return look(args, config, root, format);
    }
    alarm::at_deadline(config.guests.timeout);
    live_line::deadline(config.guests.timeout);
    let report = service::run(config, root)?;
    live_line::end();
    let code = print(&report.told(), format, |_| String::new())?;
    tracing::info!("{}", report.to_text().trim_end());
    Ok(code)
}

fn look(args: &GuestsArgs, config: &Config, root: &Root, format: Format) -> anyhow::Result<u8> {
    let (mut report, order) = service::look(config, root)?;
    if args.status {
        remember_failures(&mut report, root);
    }
    if args.dry_run {
        let change = if order.is_empty() { Exit::Good } else { Exit::Exceptions };
        report.exit_code = Some(change.code());
        report.would_start.clone_from(&order);
    }
    print(&report.told(), format, |screen| {
        let mut text = screen.page(&report.to_text());
        if args.dry_run {
            text.push_str("would be started, in this order:\n");
            let each = order.iter().enumerate();
            text.extend(each.map(|(at, guest)| format!("  {}. {guest}\n", at + 1)));
        }
        text
    })
}

/// Why a guest is not up that could be started is known to who has tried.
fn remember_failures(report: &mut GuestsReport, root: &Root) {
    let path = format!("{}/guests.json", state::RUN_DIR);
    let Ok(text) = root.text(&path, 16 << 20) else { return };
    let last: GuestsReport = match report::read(&text) {
        Ok(last) => last,
        Err(e) => {
            tracing::debug!(cause = %e, "{path}: {e}");
            return;
        }
    };
    for guest in report.guests.iter_mut().filter(|g| g.phase == Phase::Idle) {
        let own = last.guests.iter().filter(|g| g.name == guest.name);
        let why = own.map(|g| &g.phase).find_map(|phase| match phase {
            Phase::Failed { why } => Some(why),
            _ => None,
        });
        if let Some(why) = why {
            guest.phase = Phase::Failed { why: harmless(why) };
        }
    }
}
