//! One file per verb: gathers, calls the pure rooms, prints. Each `run` gives
//! the exit code.

use std::io::Write as _;
use std::os::fd::AsFd;

use serde::Serialize;

use crate::cli::Format;
use crate::host::terminal;
use crate::report::common::{Report, Verdict};
use crate::report::screen::Screen;

pub mod apply;
pub mod boot;
pub mod check;
pub mod check_fleet;
pub mod check_host;
pub mod collect;
pub mod completions;
pub mod config;
pub mod consumers;
pub mod create_rxe;
mod fabric;
pub mod firmware;
pub mod fleet;
pub mod gid;
pub mod guests;
pub mod health;
pub mod holders;
pub mod iface;
pub mod import;
pub mod initrd;
pub mod metrics;
pub mod migrate;
pub mod name_rdma;
mod node;
pub mod opensm;
pub mod opensm_run;
mod partitions;
mod pf_preview;
pub mod picture;
pub mod plan;
pub mod schema;
mod seal;
pub mod set_netns_mode;
pub mod set_port_type;
mod soft_roce;
pub mod status;
mod subnet_managers;
mod vf_ports;
pub mod wait_online;

/// Prints `report` as `format` asks, for people by `text`; gives its exit code.
fn print<V: Verdict, B: Serialize, F: Serialize>(
    report: &Report<V, B, F>,
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

/// How `stream` shows text.
fn screen(stream: &impl AsFd) -> Screen {
    Screen {
        columns: terminal::columns(stream),
        rows: terminal::rows(stream),
        colour: terminal::wants_colour(stream),
    }
}
