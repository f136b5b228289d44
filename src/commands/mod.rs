//! One file per verb: gathers, calls the pure rooms, prints. Each `run` gives
//! the exit code.

use std::io::Write as _;
use std::os::fd::AsFd;

use serde::Serialize;
use tracing::Level;

use crate::cli::Format;
use crate::host::terminal;
use crate::model::{Exit, Report};
use crate::show::screen::Screen;

pub mod apply;
pub mod boot;
pub mod check;
pub mod check_host;
pub mod collect;
pub mod completions;
pub mod config;
pub mod consumers;
pub mod firmware;
pub mod fleet;
mod generate;
pub mod gid;
pub mod guests;
pub mod health;
pub mod holders;
pub mod iface;
pub mod import;
pub mod initrd;
pub mod internal;
pub mod metrics;
pub mod migrate;
pub mod opensm;
pub mod opensm_run;
pub mod plan;
#[cfg(test)]
mod schema;
mod seal;
pub mod status;
pub mod wait_online;

/// Prints `report` as `format` asks, for people by `text`; gives its exit code.
fn print<B: Serialize, F: Serialize>(
    report: &Report<B, F>,
    format: Format,
    text: impl FnOnce(Screen) -> String,
) -> anyhow::Result<u8> {
    let mut out = terminal::stdout();
    match format {
        Format::Text => write!(out, "{}", text(screen(&out)))?,
        Format::Json => writeln!(out, "{}", report.to_json()?)?,
    }
    Ok(report.exit_code)
}

/// The same for a verb of units: for people only where somebody has started it by hand; else
/// `tell` says it to the journal.
fn print_or_tell<B: Serialize, F: Serialize>(
    report: &Report<B, F>,
    format: Format,
    text: impl FnOnce(Screen) -> String,
    tell: impl FnOnce(),
) -> anyhow::Result<u8> {
    let by_hand = format == Format::Text && terminal::is_by_hand();
    if !by_hand {
        tell();
    }
    print(report, format, |screen| if by_hand { screen.page(&text(screen)) } else { String::new() })
}

/// How much it matters in the journal that a verb ends with `exit`.
const fn level(exit: Exit) -> Level {
    match exit {
        Exit::Good => Level::INFO,
        Exit::Exceptions => Level::WARN,
        Exit::NotBegun | Exit::NotReady => Level::ERROR,
    }
}

fn screen(stream: &impl AsFd) -> Screen {
    Screen {
        columns: terminal::columns(stream),
        rows: terminal::rows(stream),
        colour: terminal::wants_colour(stream),
        verbose: terminal::wanted().verbose,
        more: &terminal::wanted().more,
    }
}
