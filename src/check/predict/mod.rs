//! What the host itself tells, beyond logs: what will go wrong at the next boot
//! by the order of systemd's units, and what is wrong now by the ports' ladders.
//!
//! Pure: [`super::evidence::Host`] in, findings out.
//! A finding about the next boot is a warning, as this one may have gone well;
//! it is an error where the host shows that it has happened.

mod guests;
mod opensm;
mod order;
mod provider;
mod units;

use super::evidence::{Boot, Host};
use crate::graph;
use crate::model::finding::{Confidence, Finding};

pub use order::consumers;

/// What follows from the host that was looked at; nothing if none was.
pub fn findings(boot: &Boot) -> Vec<Finding> {
    let Some(host) = boot.host.as_deref() else { return Vec::new() };
    let mut all = Vec::new();
    for judge in [
        provider::judge,
        units::cycles,
        units::requirements,
        units::deadlocks,
        guests::judge,
        opensm::judge,
        order::judge,
    ] {
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
                    known.message = finding.message;
                    known.chain = finding.chain;
                    known.objects.clone_from(&finding.objects);
                }
                let is_told = finding.severity == known.severity && !known.objects.is_empty();
                for object in finding.objects.into_iter().filter(|_| is_told) {
                    if !known.objects.contains(&object) {
                        known.objects.push(object);
                    }
                }
                known.confidence = known.confidence.min(finding.confidence);
                *known = known.clone().quoting(finding.evidence).advise(finding.advice);
            }
            None => found.push(finding),
        }
    }
}

/// True if the host has, or is set up for, InfiniBand.
fn has_infiniband(host: &Host) -> bool {
    let is_shown = host.ports.iter().any(|p| !p.progress.is_ethernet());
    // A tree may lack its devices; who enabled this expects them.
    let is_set_up = || graph::consumers::provider(&host.graph).is_some() || !host.asked.is_empty();
    is_shown || !host.live && is_set_up()
}

/// `a, then b, then c`.
fn in_order(units: &[String]) -> String {
    units.join(", then ")
}

/// What the judgement of the node says, in the place of what the logs told under the same code:
/// their lines stay as evidence.
pub fn account(host: &Host, found: &mut Vec<Finding>) {
    let finding = |told: Finding| {
        let message = format!("{}: {}.", told.subject(), told.message.trim_end_matches('.'));
        Finding { message, confidence: Some(Confidence::High), ..told }
    };
    let of_node = host.judgement.iter().flat_map(|judgement| &judgement.findings);
    let mut told: Vec<Finding> = Finding::grouped(of_node).into_iter().map(finding).collect();
    found.retain_mut(|of_logs| match told.iter_mut().find(|f| f.code == of_logs.code) {
        Some(finding) => {
            finding.evidence.append(&mut of_logs.evidence);
            false
        }
        None => true,
    });
    found.extend(told);
}

#[cfg(test)]
mod fixtures;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::common::Code;
    use crate::model::finding::{Quote, Severity};
    use crate::model::node::Judgement;
    use crate::names::Object;

    #[test]
    fn what_the_host_shows_counts_and_the_lines_of_logs_are_its_evidence() {
        let denied = Finding::warning(Code::ModuleDenied, "deny-listed by x:1");
        let told = ["0000:4b:00.0", "0000:5e:00.0"].map(|pci| denied.clone().about(pci));
        let judgement = Judgement::new(Vec::new(), Vec::new(), true, true, told.to_vec());
        let host = Host { judgement: Some(judgement), ..Host::default() };
        let line = Quote {
            source: String::new(),
            line: 1,
            time: String::new(),
            text: "blacklist mlx5_core".to_owned(),
        };
        let mut found = vec![
            Finding::of(Code::ModuleDenied, Severity::Error, Confidence::Low, "x").quoting([line]),
            Finding::of(Code::UdevTimeout, Severity::Warning, Confidence::Low, "y"),
        ];
        account(&host, &mut found);
        let codes: Vec<_> = found.iter().map(|f| (f.code, f.severity)).collect();
        let want =
            [(Code::UdevTimeout, Severity::Warning), (Code::ModuleDenied, Severity::Warning)];
        assert_eq!(codes, want);
        assert_eq!(found[1].objects, Object::all("0000:4b:00.0, 0000:5e:00.0"));
        assert_eq!(found[1].evidence.len(), 1);
    }
}
