//! What the files of opensm say that opensm would not take as it is meant.

use crate::check::evidence::Host;
use crate::check::evidence::host::OpensmFault;
use crate::model::advice::ToDo;
use crate::model::finding::{Confidence, Finding, Quote};

/// Faults that are quoted; the verb that finds them shows all.
const QUOTED: usize = 5;

/// One finding for each code, by its gravest fault.
pub(super) fn judge(host: &Host) -> Vec<Finding> {
    let mut faults: Vec<&OpensmFault> = host.opensm.iter().collect();
    faults.sort_by_key(|fault| (fault.code, fault.severity));
    let of_code = faults.chunk_by(|a, b| a.code == b.code);
    let finding = |faults: &[&OpensmFault]| {
        let first = faults.first()?;
        let more = match faults.len() {
            1 => String::new(),
            number => format!("; {} more", number - 1),
        };
        let summary =
            format!("{} ({}:{}: {}){more}", first.consequence, first.file, first.line, first.label);
        let quote = |fault: &&OpensmFault| Quote {
            source: fault.file.clone(),
            line: fault.line,
            text: format!("{}: {}", fault.label, fault.consequence),
            ..Quote::default()
        };
        Some(
            Finding::of(first.code, first.severity, Confidence::High, summary)
                .about(&first.file)
                .quoting(faults.iter().take(QUOTED).map(quote))
                .look([ToDo::run("ibprov opensm check")]),
        )
    };
    of_code.filter_map(finding).collect()
}
