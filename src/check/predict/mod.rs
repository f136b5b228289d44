//! What the host itself tells, beyond logs: what will go wrong at the next boot
//! by the order of systemd's units, and what is wrong now by the ports' ladders.
//!
//! Each file is one question. Pure: [`super::evidence::Host`] in, findings out.
//! A finding about the next boot is a warning, as this one may have gone well;
//! it is an error where the host shows that it has happened.

mod cycle;
mod guests;
mod order;
mod ports;
mod provider;
mod wait;

use super::evidence::{Boot, Host};
use crate::report::finding::{Finding, Quote};

/// What follows from the host that was looked at; nothing if none was.
#[must_use]
pub fn findings(boot: &Boot) -> Vec<Finding> {
    let Some(host) = boot.host.as_deref() else { return Vec::new() };
    let mut all = Vec::new();
    for judge in
        [ports::judge, provider::judge, cycle::judge, wait::judge, guests::judge, order::judge]
    {
        all.extend(judge(host));
    }
    all
}

/// Add what the host tells to what the logs told: of one code, one finding.
pub fn merge(found: &mut Vec<Finding>, more: Vec<Finding>) {
    for finding in more {
        match found.iter_mut().find(|f| f.code == finding.code) {
            Some(known) => {
                if finding.severity < known.severity {
                    known.severity = finding.severity;
                    known.summary = finding.summary;
                    known.chain = finding.chain;
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
fn shown(host: &Host, text: impl Into<String>) -> Quote {
    Quote {
        source: if host.live { "live host" } else { "tree" }.to_owned(),
        line: 0,
        time: String::new(),
        text: text.into(),
    }
}

/// True if the host has, or is set up for, InfiniBand.
fn has_infiniband(host: &Host) -> bool {
    if host.live {
        host.ports.iter().any(|p| !p.progress.is_ethernet()) || !host.denied.is_empty()
    } else {
        // Of a tree the hardware is not known; who enabled this expects it.
        crate::graph::consumers::provider(&host.graph).is_some() || !host.asked.is_empty()
    }
}

/// `a, then b, then c`.
fn in_order(units: &[String]) -> String {
    units.join(", then ")
}

#[cfg(test)]
mod fixtures;
