//! Whether the next boot is whole, by the unit graph.

use std::collections::BTreeSet;

use crate::check::evidence::Host;
use crate::check::{Boot, predict};
use crate::graph::consumers::{self, Proof};
use crate::graph::{Graph, cycles};
use crate::host::Root;
use crate::model::{Code, Finding, Severity, migrate::Change};
use crate::names::{PathState, is_ipoib_name};
use crate::observe::autostart;
use crate::stacks;

/// The one unit that brings the ports up.
const OURS: &str = "ibprov.service";

/// What is wrong with the boot of `after`, errors for what was right in `before` or makes
/// ibprov useless: nothing is changed where there is one.
pub fn judge(root: &Root, before: &Graph, after: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    let error = |message: String| Finding::error(Code::NextBootNotWhole, message);
    match consumers::provider(after) {
        Some(unit) if unit.name == OURS => {}
        other => {
            let goal = &after.goal;
            let instead = other.map_or_else(String::new, |unit| format!(", but {}", unit.name));
            let message = if after.has_goal() {
                format!(
                    "{goal} does not start the unit{instead}: the InfiniBand ports would not be brought up in time"
                )
            } else {
                format!("there is no {goal}: the next boot cannot be judged")
            };
            findings.push(error(message).about(OURS));
        }
    }
    let known: BTreeSet<Vec<String>> = cycles::cycles(before).into_iter().map(sorted).collect();
    for cycle in cycles::cycles(after) {
        let units = cycle.units.join(", then ");
        if !known.contains(&sorted(cycle)) {
            findings.push(error(format!(
                "the units would form an ordering cycle, and systemd would drop the start of one of them: {units}"
            )));
        }
    }
    let proved = ordered(after);
    for unit in ordered(before).difference(&proved) {
        findings.push(
            error("the unit is ordered after the unit that brings the InfiniBand ports up, and would no longer be".to_owned())
                .about(unit),
        );
    }
    if findings.is_empty() {
        findings.extend(predicted(root, after));
    }
    findings
}

fn sorted(cycle: cycles::Cycle) -> Vec<String> {
    let mut units = cycle.units;
    units.sort_unstable();
    units
}

/// The units that are proved to come after the one that brings the ports up.
fn ordered(graph: &Graph) -> BTreeSet<String> {
    let judged = consumers::judge(graph, stacks::network_role, |_| false);
    let proved = judged.into_iter().filter(|judged| matches!(judged.proof, Proof::Ordered(_)));
    proved.map(|judged| judged.unit).collect()
}

/// What `ibprov check` predicts of that boot: the node had the same trouble before.
fn predicted(root: &Root, graph: &Graph) -> Vec<Finding> {
    let transaction = graph.transaction();
    let mut asked = stacks::KNOWN.asked(root, is_ipoib_name);
    asked.retain(|asked| transaction.contains(graph.resolve(&asked.unit)));
    let host = Host {
        graph: graph.clone(),
        asked,
        autostart: autostart::guests(root),
        resumed: autostart::resumed(root),
        ..Host::default()
    };
    let boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
    let told = predict::findings(&boot).into_iter().map(|finding| {
        let message = format!("{}: {}", finding.code, finding.message.trim_end_matches('.'));
        Finding::warning(Code::NextBootAtRisk, message).advise(finding.advice)
    });
    told.collect()
}

/// What is to be known of the boot of `after`, where the migration is undone by `changes`:
/// nothing of it keeps the administrator from undoing it.
pub fn judge_back(after: &Graph, changes: &[Change]) -> Vec<Finding> {
    if consumers::provider(after).is_some() {
        return Vec::new();
    }
    let has_openibd = |change: &Change| {
        change.after != PathState::Absent && change.path.ends_with("openibd")
            || change.path.ends_with(".wants/openibd.service")
    };
    let (severity, why) = if changes.iter().any(has_openibd) {
        (Severity::Warning, "openibd was enabled before the migration and is no longer installed")
    } else {
        (Severity::Info, "as before the migration, another process has to bring the ports up")
    };
    let message = format!(
        "neither ibprov.service nor openibd.service brings the InfiniBand ports up at the next boot: {why}"
    );
    vec![Finding::new(Code::NextBootAtRisk, severity, message)]
}
