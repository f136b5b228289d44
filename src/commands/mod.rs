//! One file per verb: gathers, calls the pure rooms, prints. Each `run` gives
//! the exit code.

use std::os::fd::AsFd;

use crate::host::terminal;
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
pub mod fleet;
pub mod gid;
pub mod guests;
pub mod holders;
pub mod iface;
pub mod import;
pub mod initrd;
pub mod metrics;
pub mod migrate;
pub mod name_rdma;
mod node;
mod pf_preview;
pub mod picture;
pub mod plan;
pub mod schema;
mod seal;
pub mod set_netns_mode;
pub mod set_port_type;
mod soft_roce;
pub mod status;
pub mod wait_online;

/// How `stream` shows text.
fn screen(stream: &impl AsFd) -> Screen {
    Screen { columns: terminal::columns(stream), colour: terminal::wants_colour(stream) }
}
