//! `ibprov boot`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use tracing::warn;

use super::{level, print, print_or_tell};
use crate::apply::preview::SettingsLook;
use crate::apply::rtnl::Rtnl;
use crate::cli::{BootArgs, Format};
use crate::config::timespan::LONGEST_SEC;
use crate::config::{Config, Loaded};
use crate::host::{self, Root, alarm, journal, live_line, process, state, systemd};
use crate::model::{
    BootReport, Cause, Code, Finding, LeftOut, ModuleTrouble, NotExpected, PortProgress, Severity,
    Step, events as kinds, port_span,
    preview::{ApplyPreview, Preview},
};
use crate::names::{ModuleName, Rung, harmless, usec};
use crate::node::{Node, unreadable};
use crate::observe::Install;
use crate::plan::{Done, boot_steps, needed_modules};
use crate::show;
use crate::show::screen::Screen;
use crate::stacks::netplan;

/// Bring the node up.
///
/// # Errors
/// It could not begin: no signals or poll, or standard output is gone.
pub fn run(
    args: &BootArgs,
    loaded: Loaded,
    config_file: Option<&Path>,
    root: &Root,
    format: Format,
) -> anyhow::Result<u8> {
    let errors = super::config::errors(&loaded);
    let mut config = loaded.config;
    if let Ok(cmdline) = root.attribute("/proc/cmdline") {
        for problem in obey_command_line(&mut config, &cmdline) {
            warn!(warning = problem, "{problem}");
        }
    }
    if args.dry_run || !root.is_live() {
        if let Some(why) = unreadable(root) {
            anyhow::bail!(why);
        }
        let mut preview = preview(&config, root, args.force);
        preview.contradictions.splice(0..0, errors);
        return print(&preview.to_report(), format, |screen| {
            screen.page(&show::preview::text(&preview, screen))
        });
    }
    if !process::is_root() {
        anyhow::bail!("boot must be run as root: use sudo, or --dry-run to see what it would do");
    }
    alarm::at_deadline(config.boot.timeout);
    live_line::timeout(config.boot.timeout);
    let write = |report: &mut BootReport| {
        let json = report.to_report().to_json().unwrap_or_default();
        let written = state::write("boot.json", &json);
        report.problems.extend(written.err().map(|e| format!("cannot write {e}")));
        // Last, since the file may be anywhere.
        if let Some(path) = &config.metrics_file
            && let Err(e) = state::replace(path, &show::metrics::of_boot(report))
        {
            let (path, answer) = (path.display(), host::answer(&e));
            report
                .problems
                .push(format!("cannot write the metrics to {path} (metrics.file): {answer}"));
        }
    };
    let report = crate::apply::boot::run(&config, config_file, root, args.force, errors, write)?;
    systemd::tell_status(&report.headline());
    live_line::end();
    print_or_tell(
        &report.to_report(),
        format,
        |screen| show::boot::text(&report, screen),
        || tell(&report),
    )
}

/// `ibprov.timeout=SECONDS` on the kernel command line is the way out for
/// who sits at the console; a shorter one shortens the adapter's too.
fn obey_command_line(config: &mut Config, cmdline: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for word in cmdline.split_whitespace() {
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
    let level = level(report.verdict.exit());
    for port in report.ports.iter().filter(|p| !p.ready) {
        let cause = port.cause.as_ref().map(Cause::line);
        let why = cause.iter().map(|why| format!(": {why}")).collect::<String>();
        let _port = port_span(&port.progress).entered();
        journal::event!(
            level,
            message_id = kinds::PORT_NOT_READY,
            missing = port.missing.map(display),
            cause,
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
        exit = report.verdict.exit().code(),
        took_usec = usec(report.finished_usec.since(report.started_usec)),
        cpu_usec = report.cpu_usec,
        "{}",
        show::boot::text(report, Screen::default()).trim_end()
    );
}

/// Look, and say what would be done; nothing is changed.
fn preview(config: &Config, root: &Root, force: bool) -> Preview {
    let mut node = Node::look_as_boot(root, config, force);
    // By address, whatever the order of tables.
    node.ports.sort_by_key(|port| (port.pci.is_none(), port.pci));
    let Node { rules, observed, expectation, ports, facts, interfaces, .. } = &node;
    let mut steps = boot_steps(config, rules, observed, expectation, ports, &Done::default());
    let is_left = |step: &Step| matches!(step, Step::PortTypes { pci, .. } if facts.types_in_use.contains_key(pci));
    steps.retain(|step| !is_left(step));
    // Of one that a port lacks, the port says so.
    let needed = needed_modules(config, observed, !ports.is_empty()).into_iter();
    let denied = needed.filter(|name| !node.is_lacked_by_a_port(name)).filter_map(|name| {
        let trouble = facts
            .modules
            .get(name)
            .filter(|trouble| matches!(trouble, ModuleTrouble::Denied { .. }))?;
        Some(trouble.finding(name))
    });
    let rtnl = Rtnl::to_look(node.survey.rtnl.is_some());
    let settings = SettingsLook { config, root, interfaces, force, rtnl }.settings();
    // A run of boot would wait for the interface's own run, which cannot make them.
    let refused = |port: &PortProgress| {
        let own = settings.iter().filter(|set| port.netdev.as_ref() == Some(&set.netdev));
        let own = own.filter(|_| port.missing() == Some(Rung::Configured));
        Cause::of_all(own.flat_map(|set| set.refused.clone()).collect())
    };
    let cause = |port: &PortProgress| match node.cause(port) {
        Some(cause) if cause.is_final => Some(cause),
        cause => refused(port).or(cause),
    };
    let (planned, unread) = node.held_against(node.plans());
    // VFs for which there is a plan are waited for by it.
    let has_plan = |pf| planned.iter().any(|planned| planned.is_planned && planned.pci == Some(pf));
    let is_planned = |reason: &NotExpected| matches!(reason, NotExpected::VfOfThisHost { physfn } if has_plan(*physfn));
    let left_out = node.left_out.iter().filter(|(_, reason)| !is_planned(reason));
    let left_out = left_out.map(|(pci, reason)| LeftOut { pci: *pci, reason: reason.clone() });
    Preview {
        rxe: node.configured_rxe(),
        denied: denied.collect(),
        causes: ports.iter().map(cause).collect(),
        ports: ports.clone(),
        timeout_sec: config.boot.adapter_timeout.as_secs(),
        left_out: left_out.collect(),
        netns: node.netns(),
        pfs: ApplyPreview::new(planned, Vec::new()),
        contradictions: {
            let mut all = node.contradictions();
            all.extend(commands(&node, &steps).into_iter().chain(netplan::not_judged(root)));
            all
        },
        steps,
        settings,
        problems: unread.into_iter().collect(),
    }
}

/// The commands that modprobe runs for the modules of `steps`.
fn commands(node: &Node<'_>, steps: &[Step]) -> Vec<Finding> {
    let driver = |step: &Step| match step {
        Step::LoadDriver { pci, .. } => node.function(*pci)?.ib_driver?.parse().ok(),
        _ => None,
    };
    let named = steps.iter().flat_map(Step::modules).cloned();
    let modules: BTreeSet<ModuleName> = named.chain(steps.iter().filter_map(driver)).collect();
    let finding = |module: &ModuleName| {
        let Install { command, origin } = node.rules.install(module)?;
        let command = harmless(command);
        let message = format!("to load it, modprobe runs the command of {origin}: {command}");
        Some(Finding::new(Code::Notice, Severity::Info, message).about(module))
    };
    modules.iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Problems, Source, resolve};
    use crate::host::testing::{reads, tree};

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
    }

    /// What the preview of a host with so many P_Key children, which all are to have other names
    /// and settings, reads.
    fn reads_of(children: u32) -> u64 {
        let mut files = Vec::new();
        let mut text = "[[interface]]\nmatch.name = \"ib0\"\numcast = true\n".to_owned();
        let mut netdev = |name: &str, index: u32, parent: u32, pkey: u32| {
            let broadcast = format!(
                "00:ff:ff:ff:ff:12:40:1b:{:02x}:{:02x}:00:00:00:00:00:00:ff:ff:ff:ff",
                pkey >> 8,
                pkey & 0xff
            );
            for (attribute, value) in [
                ("ifindex", index.to_string()),
                ("iflink", parent.to_string()),
                ("type", "32".to_owned()),
                ("uevent", String::new()),
                ("umcast", "0".to_owned()),
                ("mode", "datagram".to_owned()),
                ("broadcast", broadcast),
            ] {
                files.push((format!("sys/class/net/{name}/{attribute}"), value));
            }
        };
        netdev("ib0", 3, 3, 0xffff);
        for child in 1..=children {
            let pkey = 0x8000 + child;
            netdev(&format!("ib0.{pkey:x}"), 3 + child, 3, pkey);
            text.push_str(&format!(
                "[[interface.partition]]\npkey = \"0x{pkey:04x}\"\nname = \"p{child}\"\n"
            ));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        let dir = tree(&files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let source = Source { path: "/c.toml".to_owned(), text };
        let config = match resolve(vec![source], Problems::default()) {
            Ok(loaded) => loaded.config,
            Err(problems) => panic!("{problems}"),
        };
        let before = reads();
        let preview = preview(&config, &root, false);
        assert_eq!(preview.settings.len(), 1 + usize::try_from(children).expect("few"));
        reads() - before
    }

    /// Each P_Key child is read once, however many others there are.
    #[test]
    fn what_is_read_grows_with_the_number_of_children() {
        let [some, more, most] = [10, 20, 40].map(reads_of);
        assert_eq!(most - more, 2 * (more - some), "{some}, {more}, {most}");
    }
}
