//! systemd's whole graph, as `systemctl show` prints it.

use super::{clock, process};

/// How long systemctl may take; it needs a fraction of a second.
const PATIENCE_USEC: u64 = 10_000_000;

/// What systemd knows of every unit that it has loaded, these properties of
/// them, in one run of systemctl.
///
/// # Errors
/// It cannot be run, fails, or has no answer in time: a host without systemd,
/// or one so early in its boot that nothing answers.
pub fn shown(properties: &str) -> std::io::Result<String> {
    let properties = format!("--property={properties}");
    let args = ["show", "--no-pager", "--all", &properties, "*"];
    let until = clock::monotonic_usec() + PATIENCE_USEC;
    process::output_until("systemctl", &args, until)?.into_text("systemctl", &args)
}
