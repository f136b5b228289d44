//! What systemd says of some units, as `systemctl show` and `list-units` print it.

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
    asked(&args)
}

/// The units that match `pattern` and have failed. However many match, and there can be two for
/// each P_Key child, it costs systemd one message.
///
/// # Errors
/// As [`shown`].
pub fn failed(pattern: &str) -> std::io::Result<Vec<String>> {
    let text = asked(&[
        "list-units",
        "--all",
        "--full",
        "--plain",
        "--no-legend",
        "--no-pager",
        "--state=failed",
        "--",
        pattern,
    ])?;
    let name = |line: &str| line.split_whitespace().next().map(str::to_owned);
    Ok(text.lines().filter_map(name).collect())
}

fn asked(args: &[&str]) -> std::io::Result<String> {
    let until = clock::monotonic_usec() + PATIENCE_USEC;
    process::output_until("systemctl", args, until)?.into_text("systemctl", args)
}
