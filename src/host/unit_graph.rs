//! What systemd says of some units, as `systemctl show` prints it.

use super::{clock, process};

/// How long systemctl may take; it needs a fraction of a second.
const PATIENCE_USEC: u64 = 10_000_000;

/// These properties of these units, in one run of systemctl. Each unit costs
/// systemd a message of all its properties: ask for few.
///
/// # Errors
/// It cannot be run, fails, or has no answer in time: a host without systemd,
/// or one so early in its boot that nothing answers.
pub fn shown(properties: &str, units: &[String]) -> std::io::Result<String> {
    let properties = format!("--property={properties}");
    let mut args = vec!["show", "--no-pager", "--all", properties.as_str(), "--"];
    args.extend(units.iter().map(String::as_str));
    let until = clock::monotonic_usec() + PATIENCE_USEC;
    process::output_until("systemctl", &args, until)?.into_text("systemctl", &args)
}
