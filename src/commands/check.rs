//! `ibprov check`.

use std::io::Write as _;

use anyhow::Context as _;

use super::print;
use crate::check::diagnose;
use crate::check::evidence::{Boot, Evidence, Intake, Source};
use crate::check::rules;
use crate::cli::{CheckArgs, Common, Format};
use crate::host::{Root, logs, state, terminal};
use crate::model::{
    Code, Exit, Finding, Kind, Report, Verdict,
    finding::{Diagnosis, Explained, ExplainedCode},
};
use crate::names::nearest;
use crate::show;
use crate::timeline::evidence::timeline;
use crate::timeline::{Timeline, svg};

/// Say what is wrong: with the logs that are named, with the system below
/// `root`, or with this host.
///
/// # Errors
/// Standard output is gone, or the tree cannot be opened.
pub fn run(args: &CheckArgs, common: &Common) -> anyhow::Result<u8> {
    let (root, format) = (common.root.as_deref(), common.format);
    if let Some(code) = &args.explain {
        return explain(code, format);
    }
    let mut intake = Intake::new(rules::needles());
    let mut problems = Vec::new();
    let mut read = |name: &str, stream: &mut dyn std::io::Read| intake.read(name, stream);
    for path in &args.log {
        problems.extend(logs::read(path, &mut read));
    }
    if args.log.is_empty() {
        match root {
            Some(dir) => problems.extend(logs::of_system(&Root::copy_at(dir)?, &mut read)),
            None => problems.extend(logs::journal(args.boot.unwrap_or(0), &mut read).err()),
        }
    }
    let mut evidence = intake.finish();
    problems.extend(
        evidence
            .sources
            .iter()
            .filter_map(|s| s.problem.as_ref().map(|p| format!("{}: {p}", s.name))),
    );
    let looked = look(args, common, &mut evidence)?;
    let is_read = match looked {
        Looked::Live => true,
        Looked::Tree { devices } => devices || evidence.sources.iter().any(|s| s.bytes > 0),
        Looked::No => evidence.sources.iter().any(|s| s.bytes > 0),
    };
    // Where nothing is read, the error has the first reason.
    for problem in problems.iter().skip(usize::from(!is_read)) {
        tracing::warn!(warning = problem, "cannot read all input: {problem}");
    }
    if !is_read {
        anyhow::bail!(
            "nothing could be read: {}",
            why_nothing(&problems, &evidence.sources, matches!(looked, Looked::Tree { .. }))
        );
    }
    // An archive of a host is judged as the host is: by the boot in which it was made.
    let recorded: Vec<_> = evidence
        .boots
        .iter()
        .filter_map(|b| b.host.as_ref())
        .filter(|_| !args.log.is_empty())
        .collect();
    for problem in recorded.iter().flat_map(|host| &host.problems) {
        tracing::warn!(warning = problem, "on the host: {problem}");
    }
    let asked = args.boot.or((!recorded.is_empty()).then_some(0));
    if let Some(boot) = asked.filter(|_| !args.log.is_empty() || root.is_some()) {
        let Some(at) = usize::try_from(boot.unsigned_abs())
            .ok()
            .and_then(|back| evidence.boots.len().checked_sub(back + 1))
        else {
            anyhow::bail!(
                "boot {boot} is not in the input, which has {}",
                match evidence.boots.len() {
                    0 => "none".to_owned(),
                    1 => "one boot, 0".to_owned(),
                    n => format!("{n} boots, 0 to -{}", n - 1),
                }
            );
        };
        evidence.boots = evidence.boots.into_iter().skip(at).take(1).collect();
    }
    let diagnosis = judged(&evidence, args.strict);
    if let Some(path) = &args.svg {
        let picture = svg::draw(&last_boot(&evidence, &diagnosis.findings));
        if path.as_os_str() == "-" {
            terminal::stdout().write_all(picture.as_bytes())?;
            return Ok(diagnosis.exit_code);
        }
        state::write_file(path, &picture)
            .with_context(|| format!("cannot write the picture to {}", path.display()))?;
    }
    print(&diagnosis, format, |screen| show::check::text(&diagnosis, screen))
}

/// Why no byte was read of these, where these are the problems.
fn why_nothing(problems: &[String], sources: &[Source], is_tree: bool) -> String {
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    match (problems.first(), names.is_empty()) {
        (Some(problem), _) => problem.clone(),
        (None, true) if is_tree => {
            "the tree has no log, and /sys/bus/pci/devices does not exist in it".to_owned()
        }
        (None, true) => "the input is empty".to_owned(),
        (None, false) => format!("{}: empty", names.join(", ")),
    }
}

/// What is wrong by `evidence`, and what the process ends with for it.
fn judged(evidence: &Evidence, strict: bool) -> Diagnosis {
    let diagnosis = diagnose(evidence);
    let hosts = evidence.boots.iter().filter_map(|boot| boot.host.as_ref()?.judgement.as_ref());
    let verdicts: Vec<Verdict> = hosts.map(|judgement| judgement.verdict).collect();
    let is_judged = !verdicts.contains(&Verdict::Unknown);
    let has_unexplained = diagnosis.findings.iter().any(|f| f.code == Code::Unexplained);
    let exit = match diagnosis.verdict {
        // Nothing failed, and what is expected of the host is not known.
        Verdict::Unknown if !is_judged => Exit::NotBegun,
        // As status has it of the same host.
        _ if verdicts.contains(&Verdict::NotReady) => Exit::NotReady,
        // What was not proved to be good is bad.
        Verdict::Unknown if strict || has_unexplained => Exit::Exceptions,
        Verdict::Unknown => Exit::Good,
        // What a log tells may be over.
        Verdict::NotReady => Exit::Exceptions,
        verdict => verdict.exit(),
    };
    diagnosis.exiting(exit.code())
}

/// Look at the host itself, live or the tree of one, unless logs or an earlier
/// boot are judged.
fn look(args: &CheckArgs, common: &Common, evidence: &mut Evidence) -> anyhow::Result<Looked> {
    if !args.log.is_empty() || args.boot.is_some_and(|boot| boot != 0) {
        return Ok(Looked::No);
    }
    let root = match &common.root {
        Some(dir) => Root::copy_at(dir)?,
        None => Root::live(),
    };
    let Some(boot) = evidence.boots.last_mut() else { return Ok(Looked::No) };
    super::check_host::gather(boot, &root, common.config.as_deref());
    for problem in boot.host.iter().flat_map(|host| &host.problems) {
        tracing::warn!(warning = problem, "{problem}");
    }
    Ok(match root.is_live() {
        true => Looked::Live,
        false => Looked::Tree { devices: root.exists("/sys/bus/pci/devices") },
    })
}

/// What was looked at beside logs.
#[derive(Clone, Copy)]
enum Looked {
    Live,
    /// The tree of one, which shows PCI devices or not.
    Tree {
        devices: bool,
    },
    No,
}

/// The picture of the last boot of which something is known.
fn last_boot(evidence: &Evidence, findings: &[Finding]) -> Timeline {
    let told = |b: &&Boot| !b.events.is_empty() || b.host.is_some();
    let boot = evidence.boots.iter().rev().find(told);
    boot.map_or_else(Timeline::default, |boot| timeline(boot, findings))
}

/// The page of `code`, or the list of all.
fn explain(code: &str, format: Format) -> anyhow::Result<u8> {
    if code.is_empty() {
        let mut all = Code::ALL.to_vec();
        all.sort_unstable_by_key(|code| code.name());
        return print(&explained(&all), format, |_| {
            let width = all.iter().map(|code| code.name().len()).max().unwrap_or_default();
            let line = |code: &Code| format!("{code:width$} {}\n", code.meaning());
            all.iter().map(line).collect()
        });
    }
    let Some(known) = Code::ALL.iter().find(|known| known.name() == code) else {
        let meant = nearest(code, Code::ALL.iter().map(|known| known.name()));
        let meant = meant.map_or_else(|| ".".to_owned(), |code| format!("; did you mean {code}?"));
        anyhow::bail!(
            "{code:?} is not the code of a finding{meant} To list all codes: `ibprov check --explain`"
        );
    };
    print(&explained(&[*known]), format, |_| known.page().to_owned())
}

fn explained(codes: &[Code]) -> Report<Explained> {
    let of = |code: &Code| ExplainedCode {
        code: code.name(),
        meaning: code.meaning(),
        page: code.page(),
    };
    let body = Explained { diagnoses: codes.iter().map(of).collect() };
    Report::new(Kind::CheckExplain, Verdict::Ready, Vec::new(), body)
}
