//! `ibprov check`: findings for people, the root cause first, its consequences
//! below it.

use super::advice;
use super::screen::{self, Screen, Tone};
use crate::model::advice::{Advice, Purpose};
use crate::model::common::Verdict;
use crate::model::finding::{Diagnosis, Failures, Finding, Quote, Read, Severity};
use crate::names::{counted, few};

/// Lines of evidence shown for each finding; JSON has all.
const QUOTES: usize = 8;

/// The whole diagnosis as text; more of it with what became of each failure that was read.
pub fn text(diagnosis: &Diagnosis, screen: Screen) -> String {
    let tone = match diagnosis.verdict {
        Verdict::Ready => Tone::Good,
        Verdict::Exceptions => Tone::Warning,
        _ => Tone::Bad,
    };
    let mut lines = vec![screen.paint(tone, &headline(diagnosis))];
    lines.extend(screen.wrapped("read: ", &read(&diagnosis.body.read)));
    if screen.verbose {
        let Failures { explained, harmless, over, unexplained } = diagnosis.body.read.failures;
        let told = format!(
            "{explained} explained, {harmless} harmless, {over} over, {unexplained} unexplained"
        );
        lines.extend(screen.wrapped("lines that report a failure: ", &told));
    }
    // What is said of a root cause is not said again of its consequences.
    let mut said: Vec<&Finding> = Vec::new();
    for finding in &diagnosis.findings {
        if finding.caused_by.is_none() {
            said.clear();
        }
        lines.push(String::new());
        lines.extend(of(finding, &said, screen));
        said.push(finding);
    }
    screen::text(lines)
}

fn headline(diagnosis: &Diagnosis) -> String {
    // What follows from a cause is counted with it.
    let causes = diagnosis.findings.chunk_by(|_, next| next.caused_by.is_some());
    let worst: Vec<Severity> =
        causes.filter_map(|of_one| of_one.iter().map(|f| f.severity).min()).collect();
    let count = |severity| worst.iter().filter(|of_one| **of_one == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let said = diagnosis.verdict.word();
    format!("verdict: {said} (errors: {errors}, warnings: {warnings})")
}

/// `messages, dmesg: 4711 lines, 2 boots, Mar 18 10:29:41 to Mar 22 16:56:38`.
fn read(read: &Read) -> String {
    let names: Vec<&str> = read.sources.iter().map(|source| source.name.as_str()).collect();
    if names.is_empty() {
        return "no log".to_owned();
    }
    let mut text = format!("{}: ", few(&names));
    let lines = read.sources.iter().map(|source| source.lines).sum::<u64>();
    let lines = counted(lines.try_into().unwrap_or(usize::MAX), "line");
    text.push_str(&format!("{lines}, {}", counted(read.boots, "boot")));
    match (read.begins.as_str(), read.ends.as_str()) {
        ("", "") => text.push_str(", without times"),
        (begins, "") => text.push_str(&format!(", from {begins}")),
        ("", ends) => text.push_str(&format!(", until {ends}")),
        (begins, ends) => text.push_str(&format!(", {begins} to {ends}")),
    }
    text
}

/// The lines of a finding, in parts that are labelled; without what was `said` already.
fn of(finding: &Finding, said: &[&Finding], screen: Screen) -> Vec<String> {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    };
    let confidence: &str = finding.confidence.map_or("unknown", Into::into);
    let indent = if finding.caused_by.is_some() { "    " } else { "" };
    let caused = finding.caused_by.map_or(String::new(), |c| format!(", caused by {c}"));
    let boot = finding.boot.as_ref().map_or(String::new(), |b| format!(", boot of {b}"));
    let head = format!("{severity}: {} (confidence {confidence}{caused}{boot})", finding.code);
    let mut lines = screen.painted(finding.severity.into(), indent, &head);
    lines.extend(screen.wrapped(&format!("{indent}  "), &finding.message));
    let mut part = |label: &str, items: Vec<(String, String)>| {
        if items.is_empty() {
            return;
        }
        lines.push(screen.paint(Tone::Head, &format!("{indent}  {label}:")));
        for (mark, item) in items {
            lines.extend(screen.wrapped(&format!("{indent}    {mark}"), &item));
        }
    };
    let chain = finding.chain.iter().enumerate();
    // What works has no cause to look for.
    let label = if finding.severity == Severity::Info { "Details" } else { "Cause" };
    part(label, chain.map(|(at, link)| (format!("{}. ", at + 1), link.clone())).collect());
    let is_new = |quote: &&Quote| !said.iter().any(|other| other.evidence.contains(quote));
    let mut quotes: Vec<&Quote> = finding.evidence.iter().filter(is_new).collect();
    quotes.sort_by(|a, b| (&a.source, a.line).cmp(&(&b.source, b.line)));
    let mut shown: Vec<(String, String)> = quotes.iter().take(QUOTES).map(|q| quoted(q)).collect();
    if quotes.len() > QUOTES {
        shown.push((String::new(), format!("and {} more lines", quotes.len() - QUOTES)));
    }
    part("Evidence", shown);
    let is_new = |step: &&Advice| !said.iter().any(|other| other.advice.contains(step));
    for purpose in Purpose::ALL {
        let steps = finding.advice.iter().filter(|step| step.purpose == purpose).filter(is_new);
        let steps = advice::lines(steps, &format!("{indent}    "), screen);
        if !steps.is_empty() {
            let heading = format!("{indent}  {}:", purpose.heading());
            lines.push(screen.paint(Tone::Head, &heading));
            lines.extend(steps);
        }
    }
    lines.extend(advice::explained(finding.code, &format!("{indent}  "), screen));
    lines
}

/// `messages:13: [Mar 18 10:29:53] ...`; what has no lines is named alone.
fn quoted(quote: &Quote) -> (String, String) {
    let place = match quote.line {
        0 => quote.source.clone(),
        line => format!("{}:{line}", quote.source),
    };
    let time = if quote.time.is_empty() { String::new() } else { format!("[{}] ", quote.time) };
    (String::new(), format!("{place}: {time}{}", quote.text))
}
