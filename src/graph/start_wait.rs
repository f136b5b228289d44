//! Whether a unit's start can end before that of a unit of ours.
//!
//! A boot unit that starts another and waits for it stands still if the other
//! is ordered after it, through any number of units. systemd sees no cycle: the
//! second start is a transaction of its own.

use std::collections::BTreeSet;

use super::Graph;

/// What [`waits_for_us`] needs of the properties that [`super::show`] reads.
pub const PROPERTIES: &str = "Id,Names,LoadState,ActiveState,Job,After,Before,Requires,Wants";

/// The chain of orders from `own` to `unit`, both included, that keeps `unit`'s
/// start from ending before that of `own` has; `None` if there is none.
///
/// An order counts only while the units on the way have something to start:
/// those with a job, and those that the start of `unit` would pull in.
pub fn waits_for_us(graph: &Graph, own: &str, unit: &str) -> Option<Vec<String>> {
    let mut among: BTreeSet<&str> =
        graph.units().filter(|u| u.now.job).map(|u| u.name.as_str()).collect();
    let mut pulled: BTreeSet<&str> = BTreeSet::new();
    let mut open = vec![unit];
    while let Some(name) = open.pop() {
        let Some(unit) = graph.get(name) else { continue };
        let is_up = matches!(unit.now.active.as_str(), "active" | "reloading");
        if !is_up && pulled.insert(unit.name.as_str()) {
            open.extend(unit.requires.iter().chain(&unit.wants).map(String::as_str));
        }
    }
    among.extend(pulled);
    graph.chain(own, unit, &among)
}

/// True if jobs that are not there yet could make the start of `unit` wait for that of `own`:
/// a chain of orders leads there, or `unit` is unknown.
pub fn may_come_to_wait(graph: &Graph, own: &str, unit: &str) -> bool {
    let all = graph.units().map(|unit| unit.name.as_str()).collect();
    graph.get(unit).is_none() || graph.chain(own, unit, &all).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::show;

    /// `name|After=|Wants=|state`, a unit a line; `+` at the end: it has a job.
    fn graph(lines: &[&str]) -> Graph {
        let blocks = lines.iter().map(|line| {
            let mut parts = line.split('|');
            let mut part = || parts.next().unwrap_or_default();
            let (name, after, wants, state) = (part(), part(), part(), part());
            let job = if state.ends_with('+') { "7" } else { "0" };
            let state = state.trim_end_matches('+');
            format!(
                "Id={name}\nNames={name}\nLoadState=loaded\nActiveState={state}\nJob={job}\nAfter={after}\nWants={wants}\n"
            )
        });
        show::graph(&blocks.collect::<Vec<_>>().join("\n"), "multi-user.target")
    }

    const US: &str = "ibprov-guests.service";

    #[test]
    fn three_hops_are_seen() {
        let graph = graph(&[
            "ibprov-guests.service|||activating+",
            "a.service|ibprov-guests.service||inactive+",
            "b.target|a.service||inactive+",
            "vm.service|b.target||inactive",
        ]);
        let chain = waits_for_us(&graph, US, "vm.service").expect("a chain");
        assert_eq!(chain, [US, "a.service", "b.target", "vm.service"]);
    }

    #[test]
    fn what_the_start_would_pull_in_counts_too() {
        let graph = graph(&[
            "ibprov-guests.service|||activating+",
            "a.service|ibprov-guests.service||inactive",
            "vm.service|a.service|a.service|inactive",
        ]);
        assert!(waits_for_us(&graph, US, "vm.service").is_some());
    }

    #[test]
    fn an_order_over_what_is_up_or_not_started_holds_nobody() {
        for (state, wants) in [("active", "a.service"), ("inactive", "")] {
            let graph = graph(&[
                "ibprov-guests.service|||activating+",
                &format!("a.service|ibprov-guests.service||{state}"),
                &format!("vm.service|a.service|{wants}|inactive"),
            ]);
            assert_eq!(waits_for_us(&graph, US, "vm.service"), None, "{state}");
        }
    }

    #[test]
    fn one_that_is_ordered_before_us_or_not_at_all_is_waited_for() {
        let graph = graph(&[
            "ibprov-guests.service|early.service||activating+",
            "early.service|||inactive",
            "free.service|||inactive",
            "after.service|ibprov-guests.service||inactive",
        ]);
        assert_eq!(waits_for_us(&graph, US, "early.service"), None);
        assert_eq!(waits_for_us(&graph, US, "free.service"), None);
        assert!(waits_for_us(&graph, US, "after.service").is_some());
        assert_eq!(waits_for_us(&graph, US, "unknown.service"), None);
    }
}
