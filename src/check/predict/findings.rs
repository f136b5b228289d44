//! What the questions make their findings with.

use crate::check::evidence::Host;
use crate::graph::consumers;
use crate::report::finding::{Finding, Quote};

/// Add what the host tells to what the logs told: of one code, one finding.
pub fn merge(found: &mut Vec<Finding>, more: Vec<Finding>) {
    for finding in more {
        match found.iter_mut().find(|f| f.code == finding.code) {
            Some(known) => {
                if finding.severity < known.severity {
                    known.severity = finding.severity;
                    known.summary = finding.summary;
                    known.chain = finding.chain;
                    known.object.clone_from(&finding.object);
                }
                let more = finding.object.filter(|_| finding.severity == known.severity);
                if let (Some(known), Some(more)) = (&mut known.object, more)
                    && !known.split(", ").any(|object| object == more)
                {
                    *known = format!("{known}, {more}");
                }
                known.confidence = known.confidence.min(finding.confidence);
                for quote in finding.evidence {
                    if !known.evidence.contains(&quote) {
                        known.evidence.push(quote);
                    }
                }
                for step in finding.advice {
                    if !known.advice.contains(&step) {
                        known.advice.push(step);
                    }
                }
            }
            None => found.push(finding),
        }
    }
}

/// Something that the host shows, to be quoted.
pub(super) fn shown(host: &Host, text: impl Into<String>) -> Quote {
    Quote {
        source: if host.live { "live host" } else { "tree" }.to_owned(),
        line: 0,
        time: String::new(),
        text: text.into(),
    }
}

/// True if the host has, or is set up for, InfiniBand.
pub(super) fn has_infiniband(host: &Host) -> bool {
    let is_shown = host.ports.iter().any(|p| !p.progress.is_ethernet()) || !host.denied.is_empty();
    // A tree may lack its devices; who enabled this expects them.
    let is_set_up = || consumers::provider(&host.graph).is_some() || !host.asked.is_empty();
    is_shown || !host.live && is_set_up()
}

/// `a, then b, then c`.
pub(super) fn in_order(units: &[String]) -> String {
    units.join(", then ")
}
