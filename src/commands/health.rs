//! `ibprov health`.

use std::io::Write as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{node, status};
use crate::cli::{Asker, Format, HealthArgs};
use crate::config::{Config, Loaded, Problems};
use crate::host::{Root, terminal};
use crate::names::harmless;
use crate::report::common::Code;
use crate::report::finding::Severity;
use crate::report::node::{Judgement, NodeVerdict};

/// For how long the node is looked at. node-problem-detector ends a plugin after 5 s by default.
const LONGEST: Duration = Duration::from_secs(2);

/// So many characters node-problem-detector takes of a line by default (`max_output_length`).
const WIDTH: usize = 80;

/// Print the verdict in one line, and end with what it means to the program that asks.
///
/// # Errors
/// JSON is asked for; no thread can be started; standard output is gone.
pub fn run(
    args: &HealthArgs,
    loaded: Result<Loaded, Problems>,
    root: Root,
    format: Format,
) -> anyhow::Result<u8> {
    if format == Format::Json {
        anyhow::bail!("health prints only one line. For JSON: `ibprov status --format json`");
    }
    let (config, invalid) = match loaded {
        Ok(loaded) => (loaded.config, None),
        Err(problems) => (Config::default(), Some(node::invalid(&problems))),
    };
    let (tell, told) = mpsc::channel();
    // What may hang is done by children; it ends with the process, whatever it waits for.
    thread::Builder::new().name("look".to_owned()).spawn(move || {
        drop(tell.send(status::gather(false, &config, invalid, &root).judgement));
    })?;
    let judgement = told.recv_timeout(LONGEST).ok();
    writeln!(terminal::stdout(), "{}", line(judgement.as_ref()))?;
    Ok(exit_code(args.asker, judgement.as_ref()))
}

/// The headline, and the worst finding: its code and objects, as far as they fit.
fn line(judgement: Option<&Judgement>) -> String {
    let Some(judgement) = judgement else {
        return format!("UNKNOWN: the node was not judged within {} s", LONGEST.as_secs());
    };
    let mut line = judgement.headline();
    let findings = judgement.grouped();
    if let Some(worst) = findings.iter().find(|finding| finding.severity != Severity::Info) {
        let object = worst.object.as_ref().map(|object| format!(" {object}")).unwrap_or_default();
        line = format!("{line}; {}{object}", worst.code.name());
    }
    let line = harmless(&line);
    match line.char_indices().nth(WIDTH) {
        None => line,
        Some(_) => line.chars().take(WIDTH - 3).chain("...".chars()).collect(),
    }
}

/// What the node is to a health checker, which knows fewer cases than the node has.
fn exit_code(asker: Asker, judgement: Option<&Judgement>) -> u8 {
    let verdict = judgement.map_or(NodeVerdict::Unknown, |judgement| judgement.verdict);
    let is_dark = judgement.is_some_and(|judgement| {
        let mut findings = judgement.findings.iter();
        findings.any(|f| f.code == Code::PortNotActive && f.severity != Severity::Info)
    });
    match (asker, verdict) {
        (_, NodeVerdict::Ready | NodeVerdict::NoInfiniband) => 0,
        (Asker::Nagios, NodeVerdict::Exceptions) => 1,
        (Asker::Nagios, NodeVerdict::NotReady) => 2,
        (Asker::Nagios, NodeVerdict::Unknown) => 3,
        (_, NodeVerdict::Exceptions) => u8::from(is_dark),
        (Asker::Npd, NodeVerdict::Unknown) => 2,
        (_, NodeVerdict::NotReady | NodeVerdict::Unknown) => 1,
    }
}
