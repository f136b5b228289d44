//! `ibprov check --fleet DIR`: the reports of many nodes together.

use std::path::Path;

use serde::Deserialize;

use super::check::{Taken, from_logs};
use super::print;
use crate::check::fleet::{Fleet, NodeReport};
use crate::cli::Format;
use crate::host::Root;
use crate::model::{
    Advice,
    check_fleet::{CheckFleetReport, NodeFinding, Unread},
    check_schema, listed,
};
use crate::names::harmless;
use crate::show;

/// No report of a node is longer, bytes.
const FILE_LIMIT: u64 = 16 << 20;

/// Findings that are taken of one node.
const MOST_FINDINGS: usize = 2000;

/// Files that could not be read are listed up to this many, and counted beyond.
const MOST_PROBLEMS: usize = 100;

/// Characters of a message that are kept.
const LONGEST: usize = 400;

/// What archives of nodes are called.
const ARCHIVES: [&str; 6] = [".tar.gz", ".tgz", ".tar", ".tar.xz", ".tar.zst", ".tar.bz2"];

/// Judge the reports in `dir`, one for each node: boot.json, or what `check` or `status` print
/// as JSON (`NAME.json`), archives of `collect` (`NAME.tar.gz`), or directories of such files
/// as `check --log` reads.
///
/// # Errors
/// `dir` cannot be read; standard output is gone.
pub fn run(dir: &Path, format: Format) -> anyhow::Result<u8> {
    let root = Root::copy_at(dir)?;
    let mut names = root.list("/")?;
    names.sort_unstable();
    let mut fleet = Fleet::default();
    let (mut problems, mut unread) = (Vec::new(), 0);
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let added = match node(dir, &root, name) {
            Ok(None) => continue,
            Ok(Some(report)) => fleet.add(report),
            Err(why) => Err(why),
        };
        if let Err(why) = added {
            unread += 1;
            if problems.len() < MOST_PROBLEMS {
                problems.push(Unread { file: short(name), why: short(&why) });
            }
        }
    }
    let report =
        CheckFleetReport { nodes: fleet.counts(), findings: fleet.findings(), problems, unread };
    print(&report.to_report(), format, |screen| show::check_fleet::text(&report, screen))
}

/// The report of the node whose file or directory is `name`; `None` for an entry that is not
/// for us.
fn node(dir: &Path, root: &Root, name: &str) -> Result<Option<NodeReport>, String> {
    if let Some(node) = name.strip_suffix(".json") {
        let text = root.text(&format!("/{name}"), FILE_LIMIT).map_err(|e| e.to_string())?;
        return printed(node, &text).map(Some);
    }
    let archive = ARCHIVES.iter().find_map(|end| name.strip_suffix(end));
    let is_directory = || root.list(&format!("/{name}")).is_ok();
    match archive.or_else(|| is_directory().then_some(name)) {
        Some(node) => diagnosed(node, &dir.join(name)).map(Some),
        // A file of another kind, a README say.
        None => Ok(None),
    }
}

#[derive(Deserialize)]
struct Printed {
    schema: u64,
    exit_code: u8,
    #[serde(default)]
    findings: Vec<NodeFinding>,
    #[serde(default)]
    kernel: Option<String>,
}

/// What boot.json says, or what a verb printed as JSON.
fn printed(node: &str, text: &str) -> Result<NodeReport, String> {
    let printed: Printed = serde_json::from_str(text).map_err(|e| harmless(&e.to_string()))?;
    let Printed { schema, exit_code, findings, kernel } = printed;
    check_schema(schema).map_err(|e| e.to_string())?;
    if exit_code > 3 {
        return Err(format!("the report has exit code {exit_code}: expected 0 to 3"));
    }
    if findings.len() > MOST_FINDINGS {
        return Err(format!("the report has more than {MOST_FINDINGS} findings"));
    }
    let is_code = |code: &str| {
        let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        (1..=64).contains(&code.len()) && code.bytes().all(word)
    };
    if let Some(bad) = findings.iter().find(|finding| !is_code(&finding.code)) {
        return Err(format!("{:?} is not the code of a finding", short(&bad.code)));
    }
    let findings = findings.into_iter().map(bounded).collect();
    Ok(NodeReport { node: short(node), kernel: kernel.as_deref().map(short), exit_code, findings })
}

/// What `check --log` says of `path`.
fn diagnosed(node: &str, path: &Path) -> Result<NodeReport, String> {
    let Taken { diagnosis, kernel, problems } = from_logs(path)?;
    for problem in problems {
        tracing::debug!(cause = problem, "{}: {problem}", path.display());
    }
    let findings = diagnosis.findings.into_iter().map(|finding| {
        bounded(NodeFinding {
            code: finding.code.to_string(),
            severity: finding.severity,
            object: (!finding.objects.is_empty()).then(|| listed(&finding.objects)),
            message: finding.message,
            advice: finding.advice,
        })
    });
    Ok(NodeReport {
        node: short(node),
        kernel: kernel.as_deref().map(short),
        exit_code: diagnosis.exit_code,
        findings: findings.collect(),
    })
}

/// A text of a file, without control characters and not longer than what is read.
fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", harmless(text.get(..end).unwrap_or_default())),
        None => harmless(text),
    }
}

/// What is kept of a finding.
fn bounded(finding: NodeFinding) -> NodeFinding {
    let step = |step: &Advice| Advice { purpose: step.purpose, step: step.step.map(short) };
    NodeFinding {
        code: finding.code,
        severity: finding.severity,
        object: finding.object.as_deref().map(short),
        message: short(&finding.message),
        advice: finding.advice.iter().take(4).map(step).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_report_panics(text in "(?s).{0,40}", code in "(late|(?s).{0,5})", exit in 0_u8..6) {
            let _text = printed("c1", &text);
            let report = serde_json::json!({
                "schema": 1, "exit_code": exit, "kernel": text,
                "findings": [{"code": code, "severity": "error", "object": text, "message": text}],
            });
            let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let good = exit <= 3 && !code.is_empty() && code.chars().all(word);
            let read = printed("c1", &report.to_string());
            prop_assert_eq!(read.is_ok(), good);
            if let Ok(report) = read {
                let message = &report.findings[0].message;
                prop_assert!(!message.chars().any(char::is_control), "{message:?}");
            }
        }
    }
}
