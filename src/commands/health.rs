//! `ibprov health`.

use std::io::Write as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{config, status};
use crate::cli::{Asker, Format, HealthArgs};
use crate::config::{Health, Loaded};
use crate::host::{Root, terminal};
use crate::model::{Code, Finding, Judgement, Severity, Verdict};
use crate::names::harmless;
use crate::show::status::with_short_names;

/// For how long the node is looked at. node-problem-detector ends a plugin after 5 s by default.
const LONGEST: Duration = Duration::from_secs(2);

/// The exceptions by which a node fails: it has less now than the configuration asks for.
const BELOW_DEMAND: [Code; 4] =
    [Code::PortNotActive, Code::PortDegraded, Code::PcieBelowMinimum, Code::PkeyMissing];

/// Print the verdict in one line, and end with what it means to the program that asks.
///
/// # Errors
/// JSON is asked for; no thread can be started; standard output is gone.
pub fn run(args: &HealthArgs, loaded: Loaded, root: Root, format: Format) -> anyhow::Result<u8> {
    if format == Format::Json {
        anyhow::bail!("health prints only one line. For JSON: `ibprov status --format json`");
    }
    let invalid = config::errors(&loaded);
    let health = loaded.config.health.clone();
    let (tell, told) = mpsc::channel();
    // What may hang is done by children; it ends with the process, whatever it waits for.
    thread::Builder::new().name("look".to_owned()).spawn(move || {
        drop(tell.send(with_short_names(&status::gather(false, &loaded.config, invalid, &root))));
    })?;
    let judgement = told.recv_timeout(LONGEST).ok();
    let mut out = terminal::stdout();
    let Some(judgement) = judgement else {
        writeln!(out, "UNKNOWN: the node was not judged within {} s", LONGEST.as_secs())?;
        return Ok(exit_code(args.asker, Verdict::Unknown, false));
    };
    let fails = |finding: &Finding| fails(&health, &judgement, finding);
    let line = line(&judgement, fails);
    match args.asker {
        Some(Asker::Nagios) => writeln!(out, "{}", for_nagios(&line, &judgement))?,
        _ => writeln!(out, "{line}")?,
    }
    let mut failing = judgement.findings.iter().filter(|finding| fails(finding)).peekable();
    let is_failed = failing.peek().is_some();
    // What such a configuration asks for is not known, and a fleet gets it at once.
    let is_open = failing.all(|finding| finding.code == Code::ConfigurationInvalid);
    let verdict = match args.asker {
        Some(Asker::Npd) if is_failed && is_open => Verdict::Unknown,
        _ => judgement.verdict,
    };
    let is_booting = judgement.findings.iter().any(|f| f.code == Code::BootInProgress);
    Ok(match args.asker {
        // They fail the node and do not drain it.
        Some(Asker::Nhc | Asker::Slurm) if is_booting => 2,
        asker => exit_code(asker, verdict, is_failed),
    })
}

/// Whether a node fails by `finding`.
fn fails(health: &Health, judgement: &Judgement, finding: &Finding) -> bool {
    let code = finding.code;
    let is_below_demand = || {
        // Without a plan nobody has asked for the VF.
        BELOW_DEMAND.contains(&code) || code == Code::VfPortNotActive && judgement.vfs.of > 0
    };
    match finding.severity {
        _ if health.tolerate.contains(&code) => false,
        _ if health.fail_on.contains(&code) => true,
        Severity::Error => true,
        Severity::Warning => is_below_demand(),
        Severity::Info => false,
    }
}

/// The verdict, the worst finding with its first object, and the counts: what matters stands
/// first, since most who read it cut it.
fn line(judgement: &Judgement, fails: impl Fn(&Finding) -> bool) -> String {
    let findings = || judgement.findings.iter();
    let worst = findings().find(|f| f.code.leaves_unknown() || fails(f));
    let worst = worst.or_else(|| findings().find(|f| f.severity != Severity::Info));
    let worst = worst.map(|worst| {
        let is_same = |f: &&Finding| (f.code, f.severity) == (worst.code, worst.severity);
        let more = findings().filter(is_same).count() - 1;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let object = worst.objects.first().map(|object| format!(" {object}")).unwrap_or_default();
        format!("{}{object}{more}; ", worst.code)
    });
    let counts = judgement.counts();
    harmless(&format!("{}: {}{counts}", judgement.verdict.words(), worst.unwrap_or_default()))
}

/// With perfdata, and the findings as long output, as Nagios' plugins print them: what follows
/// a `|` is perfdata.
fn for_nagios(line: &str, judgement: &Judgement) -> String {
    let Judgement { ports, vfs, .. } = judgement;
    let findings = Finding::grouped(&judgement.findings);
    let long = findings.iter().map(|finding| format!("\n{}", harmless(&finding.to_string())));
    let (line, long) = (line.replace('|', "/"), long.collect::<String>().replace('|', "/"));
    let perfdata =
        format!("ports={};;;0;{} vfs={};;;0;{}", ports.active, ports.of, vfs.good, vfs.of);
    format!("{line} | {perfdata}{long}")
}

/// What the node is to a health checker, which knows fewer cases than the node has.
fn exit_code(asker: Option<Asker>, verdict: Verdict, is_failed: bool) -> u8 {
    match (asker, verdict) {
        (None, verdict) => verdict.exit().code(),
        (Some(Asker::Nagios), Verdict::Exceptions) => 1,
        (Some(Asker::Nagios), Verdict::NotReady) => 2,
        (Some(Asker::Nagios), Verdict::Unknown) => 3,
        (Some(Asker::Nagios), _) => 0,
        (Some(Asker::Npd), Verdict::Unknown) => 2,
        (Some(_), Verdict::Unknown) => 1,
        (Some(_), _) => u8::from(is_failed),
    }
}
