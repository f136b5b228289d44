//! Orders that bite their own tail.
//!
//! systemd finds them when it builds the boot's transaction, and drops the
//! start job of one unit on the cycle that the goal does not require
//! (`transaction_verify_order_one()` of `src/core/transaction.c`). Which one of
//! several depends on the order of a hash table with a random key: all that can
//! be hit are named here.

use std::collections::{BTreeMap, BTreeSet};

use super::Graph;

/// A cycle, the shortest of its knot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// Each comes before the next, the last before the first.
    pub units: Vec<String>,
    /// Those whose job systemd may drop: of this cycle, or of longer ones
    /// through the same units; more than one where it meets several. If there
    /// are none the boot itself fails.
    pub candidates: Vec<String>,
}

/// The cycles among the units that a boot starts: the shortest of each knot.
pub fn cycles(graph: &Graph) -> Vec<Cycle> {
    let transaction = graph.transaction();
    let essential = graph.essential();
    knots(graph, &transaction)
        .into_iter()
        .filter_map(|knot| {
            let mut best: Option<Vec<String>> = None;
            // In a knot of hundreds any of its cycles will do.
            for unit in knot.iter().take(64) {
                let chain = graph.chain_back(unit, &knot);
                if chain.as_ref().is_some_and(|c| best.as_ref().is_none_or(|b| c.len() < b.len())) {
                    best = chain;
                }
            }
            let units = best?;
            let may_go = knot.into_iter().filter(|u| !essential.contains(u)).map(str::to_owned);
            Some(Cycle { candidates: may_go.collect(), units })
        })
        .collect()
}

impl Graph {
    /// The shortest way from `unit` back to itself over units of `knot`.
    fn chain_back(&self, unit: &str, knot: &BTreeSet<&str>) -> Option<Vec<String>> {
        let nexts = self.get(unit)?.before.iter().filter(|n| knot.contains(n.as_str()));
        nexts
            .filter_map(|next| {
                let mut chain = self.chain(next, unit, knot)?;
                // It ends where it began.
                chain.rotate_right(1);
                Some(chain)
            })
            .min_by_key(Vec::len)
    }
}

/// Sets of units that can each reach all others of the set (Tarjan's strongly
/// connected components, without recursion), those of one unit left out.
fn knots<'a>(graph: &'a Graph, among: &BTreeSet<&'a str>) -> Vec<BTreeSet<&'a str>> {
    let mut search = Search::default();
    for start in among {
        if search.index.contains_key(start) {
            continue;
        }
        let mut path = vec![(*start, nexts(graph, start, among))];
        search.enter(start);
        while let Some((unit, open)) = path.last_mut() {
            let unit = *unit;
            match open.pop() {
                Some(next) if !search.index.contains_key(next) => {
                    search.enter(next);
                    path.push((next, nexts(graph, next, among)));
                }
                Some(next) => search.meet(unit, next),
                None => {
                    path.pop();
                    if let Some((parent, _)) = path.last() {
                        search.pass_up(parent, unit);
                    }
                    search.leave(unit);
                }
            }
        }
    }
    search.found
}

fn nexts<'a>(graph: &'a Graph, unit: &str, among: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let before = graph.get(unit).map(|u| &u.before);
    before.into_iter().flatten().filter_map(|n| among.get(n.as_str()).copied()).collect()
}

#[derive(Default)]
struct Search<'a> {
    index: BTreeMap<&'a str, usize>,
    low: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    on_stack: BTreeSet<&'a str>,
    found: Vec<BTreeSet<&'a str>>,
}

impl<'a> Search<'a> {
    fn enter(&mut self, unit: &'a str) {
        let index = self.index.len();
        self.index.insert(unit, index);
        self.low.insert(unit, index);
        self.stack.push(unit);
        self.on_stack.insert(unit);
    }

    fn meet(&mut self, unit: &'a str, other: &str) {
        if let (true, Some(index)) = (self.on_stack.contains(other), self.index.get(other).copied())
        {
            self.lower(unit, index);
        }
    }

    fn pass_up(&mut self, parent: &'a str, unit: &str) {
        if let Some(low) = self.low.get(unit).copied() {
            self.lower(parent, low);
        }
    }

    fn lower(&mut self, unit: &'a str, to: usize) {
        let low = self.low.entry(unit).or_insert(to);
        *low = (*low).min(to);
    }

    fn leave(&mut self, unit: &'a str) {
        if self.low.get(unit) != self.index.get(unit) {
            return;
        }
        let mut knot = BTreeSet::new();
        while let Some(top) = self.stack.pop() {
            self.on_stack.remove(top);
            knot.insert(top);
            if top == unit {
                break;
            }
        }
        if knot.len() > 1 {
            self.found.push(knot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::graph;
    use super::*;

    #[test]
    fn a_cycle_is_found_with_who_may_be_dropped() {
        let graph = graph(
            "goal.target requires basic.target\n\
             goal.target wants net.service ib.service\n\
             basic.target before ib.service\n\
             ib.service before net.service\n\
             net.service before basic.target\n",
        );
        let [cycle] = &cycles(&graph)[..] else { panic!("{:?}", cycles(&graph)) };
        assert_eq!(cycle.units.len(), 3);
        let at = |name: &str| cycle.units.iter().position(|u| u == name).expect("in it");
        assert_eq!((at("basic.target") + 1) % 3, at("ib.service"));
        assert_eq!((at("ib.service") + 1) % 3, at("net.service"));
        let mut candidates = cycle.candidates.clone();
        candidates.sort();
        assert_eq!(candidates, ["ib.service", "net.service"]);
    }

    #[test]
    fn a_cycle_through_what_is_not_started_is_none() {
        let graph = graph(
            "goal.target wants a.service\n\
             a.service before b.service\n\
             b.service before a.service\n",
        );
        assert_eq!(cycles(&graph), []);
    }

    #[test]
    fn two_knots_are_two_cycles_and_the_shortest_is_shown() {
        let graph = graph(
            "goal.target wants a b c d e\n\
             goal.target wants a.service b.service c.service d.service e.service\n\
             a.service before b.service\n\
             b.service before c.service a.service\n\
             c.service before a.service\n\
             d.service before e.service\n\
             e.service before d.service\n",
        );
        let found: Vec<usize> = cycles(&graph).iter().map(|c| c.units.len()).collect();
        assert_eq!(found, [2, 2]);
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let mut lines = String::new();
        for i in 0..3000 {
            lines.push_str(&format!("u{i}.service before u{}.service\n", i + 1));
            lines.push_str(&format!("goal.target wants u{i}.service u{}.service\n", i + 1));
        }
        assert_eq!(cycles(&graph(&lines)), []);
        lines.push_str("u3000.service before u0.service\n");
        assert_eq!(cycles(&graph(&lines)).first().map(|c| c.units.len()), Some(3001));
    }
}
