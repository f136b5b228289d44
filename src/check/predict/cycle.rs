//! Ordering cycles among the units of the next boot.

use super::findings::{merge, shown};
use crate::check::evidence::Host;
use crate::graph::cycles::{self, Cycle};
use crate::graph::{Graph, consumers};
use crate::report::common::Code;
use crate::report::finding::{Confidence, Finding, Severity};
use crate::stacks;

/// So many are named in the summary.
const NAMED: usize = 4;

/// One finding for all cycles, an error if one has to do with the network.
pub(super) fn judge(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    for cycle in cycles::cycles(&host.graph) {
        merge(&mut findings, vec![finding(host, &cycle)]);
    }
    findings
}

fn finding(host: &Host, cycle: &Cycle) -> Finding {
    let concerns = cycle.units.iter().any(|unit| of_the_network(&host.graph, unit));
    let severity = if concerns { Severity::Error } else { Severity::Warning };
    let first = cycle.units.first().map_or("", String::as_str);
    let way = format!("{} -> {first}", cycle.units.join(" -> "));
    let dropped = match &cycle.candidates[..] {
        [] => "the boot cannot start at all: each of them is required".to_owned(),
        [one] => format!("systemd does not start {one}"),
        several => {
            let named =
                several.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = several.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" or {more} more") } else { String::new() };
            format!("systemd leaves out one or more of {named}{more}")
        }
    };
    Finding::new(
        Code::OrderingCycle,
        severity,
        Confidence::High,
        format!("Units of the boot form an ordering cycle, so {dropped}."),
    ).about_if(cycle.units.first())
    .chain([
        format!("Each unit is ordered before the next one: {way}."),
        "systemd breaks each cycle when it builds the boot's transaction: it drops the start job of one unit that the boot does not require.".to_owned(),
        format!("Any of these units can be the one: {}.", cycle.candidates.join(", ")),
    ])
    .quoting([shown(host, format!("order: {way}"))])
    .look([format!("systemctl cat {} | grep -E '^(#|After|Before)'", cycle.units.join(" ")), "systemd-analyze verify default.target".to_owned()]).permanent(["remove one After= or Before= of that cycle, preferably one that a drop-in in /etc adds, then: systemctl daemon-reload"])
}

fn of_the_network(graph: &Graph, unit: &str) -> bool {
    let named = ["ibprov", "openibd", "network", "remote-fs", "rdma", "opensm", "nss-lookup"];
    named.iter().any(|n| unit.starts_with(n))
        || graph.get(unit).is_some_and(|u| consumers::need(u, stacks::network_role).is_some())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::host;
    use super::*;

    #[test]
    fn a_cycle_with_the_network_is_an_error_and_names_the_victims() {
        let host = host(
            "goal.target wants ibprov.service network.target\n\
             ibprov.service before network.target\n\
             network.target before ibprov.service\n",
            &[],
            &[],
        );
        let [finding] = &judge(&host)[..] else { panic!("{:?}", judge(&host)) };
        assert_eq!(finding.severity, Severity::Error);
        assert!(
            finding.summary.contains("one or more of ibprov.service, network.target"),
            "{finding:?}"
        );
    }

    #[test]
    fn one_that_concerns_nobody_is_a_warning() {
        let lines = "goal.target wants a.service b.service\na.service before b.service\nb.service before a.service\n";
        assert_eq!(judge(&host(lines, &[], &[]))[0].severity, Severity::Warning);
    }
}
