//! `ibprov boot`.

use std::path::Path;
use std::time::Duration;

use tracing::{Level, warn};

use super::pf_preview::PfPreview;
use super::print;
use crate::cli::{BootArgs, Format};
use crate::config::Config;
use crate::config::timespan::LONGEST_SEC;
use crate::host::{self, Root, alarm, journal, live_line, process, state, systemd, terminal};
use crate::report::common::Verdict as _;
use crate::report::port::port_span;
use crate::report::{BootReport, Verdict, events as kinds, metrics};

/// Bring the node up.
///
/// # Errors
/// It could not begin: no signals or poll, or standard output is gone.
pub fn run(
    args: &BootArgs,
    mut config: Config,
    config_file: Option<&Path>,
    root: &Root,
    format: Format,
) -> anyhow::Result<u8> {
    if let Ok(cmdline) = root.attribute("/proc/cmdline") {
        for problem in obey_command_line(&mut config, &cmdline) {
            warn!(warning = problem, "{problem}");
        }
    }
    if args.dry_run || !root.is_live() {
        return dry_run(&config, root, args.force, format);
    }
    if !process::is_root() {
        anyhow::bail!("boot must be run as root: use sudo, or --dry-run to see what it would do");
    }
    alarm::at_deadline(config.boot.timeout);
    live_line::deadline(config.boot.timeout);
    let mut report = crate::apply::boot::run(&config, config_file, root, args.force)?;
    let json = report.told().to_json()?;
    if let Err((path, e)) = state::write("boot.json", &json) {
        report.problems.push(format!("cannot write {}: {}", path.display(), host::answer(&e)));
    }
    // Last, since the file may be anywhere.
    if let Some(path) = &config.metrics_file
        && let Err(e) = state::replace(path, &metrics::of_boot(&report))
    {
        let (path, answer) = (path.display(), host::answer(&e));
        report
            .problems
            .push(format!("cannot write the metrics to {path} (metrics.file): {answer}"));
    }
    systemd::tell_status(&report.headline());
    live_line::end();
    let by_hand = format == Format::Text && terminal::is_by_hand();
    if !by_hand {
        tell(&report);
    }
    print(&report.told(), format, |screen| match by_hand {
        true => screen.page(&report.to_text()),
        false => String::new(),
    })
}

/// `ibprov.timeout=SECONDS` on the kernel command line is the way out for
/// who sits at the console; a shorter one shortens the adapter's too.
fn obey_command_line(config: &mut Config, cmdline: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for word in cmdline.split_whitespace() {
        if word.starts_with("ibprov.deadline=") {
            problems.push(format!(
                "kernel command line: {word:?}: ibprov.deadline was renamed to ibprov.timeout; ignored"
            ));
        }
        let Some(text) = word.strip_prefix("ibprov.timeout=") else { continue };
        match text.parse::<u64>() {
            Ok(seconds @ 1..=LONGEST_SEC) => {
                config.boot.timeout = Duration::from_secs(seconds);
                config.boot.adapter_timeout = config.boot.adapter_timeout.min(config.boot.timeout);
            }
            _ => problems.push(format!(
                "kernel command line: {word:?}: expected a number of seconds from 1 to {LONGEST_SEC}; ignored"
            )),
        }
    }
    problems
}

/// To the journal, with fields; to standard error where programs read standard output.
fn tell(report: &BootReport) {
    let level = match report.verdict {
        Verdict::Ready | Verdict::NoInfiniband => Level::INFO,
        Verdict::Deferred | Verdict::Interrupted => Level::WARN,
        Verdict::NotReady => Level::ERROR,
    };
    for port in report.ports.iter().filter(|p| !p.ready) {
        let why = port.cause.as_ref().map(|c| format!(": {}", c.text)).unwrap_or_default();
        let _port = port_span(&port.progress).entered();
        journal::event!(
            level,
            message_id = kinds::PORT_NOT_READY,
            missing = port.missing.map(display),
            cause = port.cause.as_ref().map(|c| &c.text),
            "{}{why}",
            port.line()
        );
    }
    for problem in &report.problems {
        warn!(message_id = kinds::WARNING, warning = problem, "{problem}");
    }
    journal::event!(
        level,
        message_id = kinds::FINISHED,
        verdict = report.verdict.word(),
        exit = report.exit_code,
        took_usec = report.finished_usec.saturating_sub(report.started_usec),
        cpu_usec = report.cpu_usec,
        "{}",
        report.to_text().trim_end()
    );
}

fn dry_run(config: &Config, root: &Root, force: bool, format: Format) -> anyhow::Result<u8> {
    let (mut preview, plans) = crate::apply::preview::preview(config, root, force);
    let mut pfs = PfPreview::new(root);
    preview.pfs = plans.wanted.iter().map(|(wanted, notes)| pfs.would(wanted, notes)).collect();
    preview.warnings.extend(pfs.problems.iter().map(|what| format!("cannot read {what}")));
    print(&preview.told(), format, |screen| screen.page(&preview.to_text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_can_shorten_and_lengthen_the_deadline() {
        let deadlines = |cmdline: &str| {
            let mut config = Config::default();
            let problems = obey_command_line(&mut config, cmdline);
            (config.boot.timeout.as_secs(), config.boot.adapter_timeout.as_secs(), problems.len())
        };
        assert_eq!(deadlines("quiet"), (240, 150, 0));
        assert_eq!(deadlines("quiet ibprov.timeout=10"), (10, 10, 0));
        assert_eq!(deadlines("ibprov.timeout=600"), (600, 150, 0));
        assert_eq!(deadlines("ibprov.timeout=0 ibprov.timeout=x"), (240, 150, 2));
        assert_eq!(deadlines("ibprov.deadline=10"), (240, 150, 1), "the old name is told");
    }
}
