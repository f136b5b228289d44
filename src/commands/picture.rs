//! The picture of the boot that `ibprov check` judged: `--svg`, `--timeline`.

use std::io::Write;

use anyhow::Context;

use crate::check::Evidence;
use crate::cli::CheckArgs;
use crate::host::{state, terminal};
use crate::report::finding::{Diagnosis, Finding};
use crate::timeline::evidence::timeline;
use crate::timeline::{Timeline, svg, text};

/// Draw what was asked for: the last boot of the evidence.
///
/// # Errors
/// The file cannot be written, or standard output is gone.
pub fn draw(
    args: &CheckArgs,
    evidence: &Evidence,
    diagnosis: &Diagnosis,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if args.svg.is_none() && !args.timeline {
        return Ok(());
    }
    let timeline = last(evidence, &diagnosis.findings);
    if let Some(path) = &args.svg {
        state::write_file(path, &svg::draw(&timeline))
            .with_context(|| format!("cannot write the picture to {}", path.display()))?;
    }
    if args.timeline {
        writeln!(out)?;
        write!(out, "{}", text::draw(&timeline, terminal()))?;
    }
    Ok(())
}

/// The picture of the last boot of which something is known.
fn last(evidence: &Evidence, findings: &[Finding]) -> Timeline {
    let told = |b: &&crate::check::Boot| !b.events.is_empty() || b.host.is_some();
    let boot = evidence.boots.iter().rev().find(told);
    boot.map_or_else(Timeline::default, |boot| timeline(boot, findings))
}

/// What standard output can show. A console that does not say that it speaks
/// UTF-8 gets ASCII.
fn terminal() -> text::Terminal {
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    let locale = locale.to_ascii_uppercase();
    let stdout = terminal::stdout();
    text::Terminal {
        columns: terminal::columns(&stdout).unwrap_or(80),
        unicode: locale.contains("UTF-8") || locale.contains("UTF8"),
        colour: terminal::wants_colour(&stdout),
    }
}
