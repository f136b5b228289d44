//! `ibprov check`: findings for people, the root cause first, its consequences
//! below it.

use std::fmt::Write;

use crate::report::finding::{Confidence, Diagnosis, Finding, Severity, Verdict};

/// Lines of evidence shown for each finding; JSON has all.
const QUOTES: usize = 8;

/// The whole diagnosis as text.
#[must_use]
pub fn text(diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}", headline(diagnosis));
    for finding in &diagnosis.findings {
        let _ = writeln!(out);
        let indent = if finding.caused_by.is_some() { "    " } else { "" };
        for line in lines(finding) {
            let _ = writeln!(out, "{indent}{line}");
        }
    }
    out
}

fn headline(diagnosis: &Diagnosis) -> String {
    let count = |s| diagnosis.findings.iter().filter(|f| f.severity == s).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let said = match diagnosis.verdict {
        Verdict::Healthy => "healthy".to_owned(),
        Verdict::Degraded => "degraded".to_owned(),
        Verdict::Failed => "failed".to_owned(),
        Verdict::Unknown => "unknown".to_owned(),
    };
    format!("verdict: {said} (errors: {errors}, warnings: {warnings})")
}

fn lines(finding: &Finding) -> Vec<String> {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    };
    let confidence = match finding.confidence {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    };
    let caused = finding.caused_by.map_or(String::new(), |c| format!(", caused by {c}"));
    let boot = finding.boot.as_ref().map_or(String::new(), |b| format!(", boot of {b}"));
    let mut lines = vec![
        format!("{severity}: {} (confidence {confidence}{caused}{boot})", finding.code),
        format!("  {}", finding.summary),
    ];
    lines.extend(finding.chain.iter().enumerate().map(|(i, link)| format!("  {}. {link}", i + 1)));
    for quote in finding.evidence.iter().take(QUOTES) {
        let time = if quote.time.is_empty() { String::new() } else { format!(" [{}]", quote.time) };
        lines.push(format!("  | {}:{}{time} {}", quote.source, quote.line, quote.text));
    }
    if finding.evidence.len() > QUOTES {
        lines.push(format!("  | and {} more lines", finding.evidence.len() - QUOTES));
    }
    lines.extend(finding.advice.iter().map(|step| format!("  > {step}")));
    lines
}
