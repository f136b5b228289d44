//! Units that start another and wait for it, while it waits for them.

use super::findings::{in_order, merge, shown};
use crate::check::evidence::Host;
use crate::graph::deadlock::{self, Deadlock};
use crate::report::common::Code;
use crate::report::finding::{Confidence, Finding, Severity};
use crate::stacks;

/// One finding for all deadlocks.
pub(super) fn judge(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    for deadlock in deadlock::deadlocks(&host.graph, stacks::waited_for) {
        merge(&mut findings, vec![finding(host, &deadlock)]);
    }
    findings
}

fn finding(host: &Host, found: &Deadlock) -> Finding {
    let Deadlock { unit, command, waits_for, chain } = found;
    // A unit that has come up all the same may have skipped that command.
    let went_well = host.graph.get(unit).is_some_and(|u| u.now.active == "active");
    let (severity, confidence) = if went_well {
        (Severity::Warning, Confidence::Low)
    } else {
        (Severity::Error, Confidence::Medium)
    };
    Finding::new(
        Code::StartWaitDeadlock,
        severity,
        confidence,
        format!("{unit} starts {waits_for} and waits for it, but {waits_for} is ordered after {unit}: both wait until a time limit ends them."),
    ).about(unit.as_str())
    .chain([
        format!("{unit} is not up before its command has ended: {command}"),
        format!("{waits_for} cannot start before {unit} is up: {}.", in_order(chain)),
        "systemd sees no cycle: the second start is a transaction of its own.".to_owned(),
    ])
    .quoting([shown(host, format!("{unit} runs: {command}"))])
    .permanent([format!("start {waits_for} without waiting: systemctl --no-block start {waits_for}; or add Wants={waits_for} to {unit}")])
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::host;
    use super::*;

    #[test]
    fn a_deadlock_is_told_with_both_ends() {
        let mut host = host(
            "goal.target wants a.service network.target b.service\n\
             a.service is oneshot\n\
             a.service runs /bin/systemctl start b.service\n\
             a.service before network.target\n\
             network.target before b.service\n",
            &[],
            &[],
        );
        let [finding] = &judge(&host)[..] else { panic!("{:?}", judge(&host)) };
        assert_eq!((finding.code, finding.severity), (Code::StartWaitDeadlock, Severity::Error));
        host.graph.get_mut("a.service").expect("unit").now.active = "active".to_owned();
        assert_eq!(judge(&host)[0].severity, Severity::Warning);
    }
}
