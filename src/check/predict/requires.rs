//! Units that use the fabric and require a unit that is not there.

use super::findings::{merge, shown};
use crate::check::evidence::Host;
use crate::graph::{Load, Unit, consumers};
use crate::report::common::Code;
use crate::report::finding::{Confidence, Finding, Severity};

/// One finding for all such units of the next boot.
pub(super) fn judge(host: &Host) -> Vec<Finding> {
    let graph = &host.graph;
    let among = graph.transaction();
    let units = graph.units().filter(|unit| among.contains(unit.name.as_str()));
    let mut findings = Vec::new();
    for unit in units {
        let stem = unit.name.strip_suffix(".service").unwrap_or(&unit.name);
        for needed in unit.requires.iter().filter(|needed| needed.ends_with(".service")) {
            let uses_fabric = |stem: &str| consumers::uses_fabric_by_name(stem);
            let its_stem = needed.strip_suffix(".service").unwrap_or(needed);
            let concerns = uses_fabric(stem) || uses_fabric(its_stem) || its_stem == "openibd";
            if let Some(why) = concerns.then(|| why_not(graph.get(needed))).flatten() {
                merge(&mut findings, vec![finding(host, unit, needed, why)]);
            }
        }
    }
    findings
}

/// Why the unit cannot be started.
fn why_not(needed: Option<&Unit>) -> Option<&'static str> {
    match needed.map(|unit| unit.load) {
        None | Some(Load::NotFound) => Some("does not exist"),
        Some(Load::Masked) => Some("is masked"),
        Some(Load::Bad) => Some("has a file that systemd refuses"),
        Some(Load::Loaded) => None,
    }
}

fn finding(host: &Host, unit: &Unit, needed: &str, why: &str) -> Finding {
    let name = &unit.name;
    Finding::new(
        Code::RequiredUnitMissing,
        Severity::Warning,
        Confidence::High,
        format!("{name} requires {needed}, which {why}: systemd leaves {name} out of the next boot without a message."),
    )
    .about(name.as_str())
    .quoting([shown(host, format!("{name}: Requires={needed}"))])
    .look([format!("systemctl cat {name} | grep -E '^(#|Requires|BindsTo)'")])
    .permanent(remedies(name, needed))
}

fn remedies(name: &str, needed: &str) -> Vec<String> {
    let takes_name = "systemctl enable ibprov.service, which takes the name openibd.service too";
    let ours = (needed == "openibd.service").then(|| takes_name.to_owned());
    let edit = format!(
        "or remove Requires={needed} with `systemctl edit --full {name}`, and order it after the ports with After=ibprov.service"
    );
    ours.into_iter().chain([edit]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::host;
    use super::*;

    /// The objects and summaries of what these units of the next boot are told.
    fn told(lines: &str) -> Vec<String> {
        judge(&host(lines, &[], &[])).into_iter().map(|finding| finding.summary).collect()
    }

    #[test]
    fn a_unit_that_requires_what_is_gone_is_told() {
        let gone = "goal.target wants opensmd.service\nopensmd.service requires openibd.service\n";
        assert_eq!(told(&format!("{gone}openibd.service is oneshot")), [""; 0]);
        let masked = told(&format!("{gone}openibd.service masked"));
        assert!(masked.len() == 1 && masked[0].contains("openibd.service, which is masked"));
        let ours = remedies("opensmd.service", "openibd.service");
        assert!(ours[0].starts_with("systemctl enable ibprov.service"), "{ours:?}");
        assert_eq!(remedies("opensmd.service", "y.service").len(), 1);
        // What the boot does not start, what does not use the fabric, and what is only wanted.
        let fine = [
            "goal.target wants x.service\nopensmd.service requires y.service\ny.service masked",
            "goal.target wants x.service\nx.service requires y.service\ny.service masked",
            "goal.target wants opensmd.service\nopensmd.service wants y.service\ny.service masked",
        ];
        for lines in fine {
            assert_eq!(told(lines), [""; 0], "{lines}");
        }
    }
}
