//! What many nodes' reports say together: each finding once, with the nodes that have it.
//!
//! Pure and lean: of a node its name, its kernel and the numbers of its findings are kept,
//! and of a finding what the first node says of it, so that tens of thousands of nodes are
//! judged in one go.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::check_fleet::{FleetFinding, NodeCounts, NodeFinding};
use crate::model::common::Severity;
use crate::names::natural;

/// What one node's report says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// The node, as its file is called.
    pub node: String,
    /// `uname -r`, where the report has it.
    pub kernel: Option<String>,
    /// What the verb that wrote it ended with.
    pub exit_code: u8,
    pub findings: Vec<NodeFinding>,
}

/// Kinds of findings that are kept; there are some 150. More are only in hostile files.
const MOST_KINDS: usize = 1000;

/// The reports of many nodes.
#[derive(Debug, Default)]
pub struct Fleet {
    nodes: Vec<Node>,
    kernels: Vec<String>,
    kernel_numbers: BTreeMap<String, u32>,
    names: BTreeSet<String>,
    groups: BTreeMap<(Severity, String), Group>,
}

#[derive(Debug)]
struct Node {
    name: String,
    /// Index of the kernel.
    kernel: Option<u32>,
    exit_code: u8,
}

#[derive(Debug)]
struct Group {
    /// Indices of the nodes.
    nodes: Vec<u32>,
    first: NodeFinding,
}

impl Fleet {
    /// Adds a node.
    ///
    /// # Errors
    /// One of that name was added before, or its findings are of too many kinds; in words.
    pub fn add(&mut self, report: NodeReport) -> Result<(), String> {
        let NodeReport { node, kernel, exit_code, findings } = report;
        if self.names.contains(&node) {
            return Err(format!("another report of the node {node} was read"));
        }
        let kinds: BTreeSet<(Severity, &str)> =
            findings.iter().map(|finding| (finding.severity, finding.code.as_str())).collect();
        if self.groups.len() + kinds.len() > MOST_KINDS {
            let known = |(severity, code): &(Severity, &str)| {
                self.groups.contains_key(&(*severity, (*code).to_owned()))
            };
            if !kinds.iter().all(known) {
                return Err(format!("the reports have more than {MOST_KINDS} kinds of findings"));
            }
        }
        let index = number(self.nodes.len());
        let kernel = kernel.map(|kernel| self.kernel(kernel));
        self.names.insert(node.clone());
        self.nodes.push(Node { name: node, kernel, exit_code });
        for finding in findings {
            let key = (finding.severity, finding.code.clone());
            let group =
                self.groups.entry(key).or_insert(Group { nodes: Vec::new(), first: finding });
            if group.nodes.last() != Some(&index) {
                group.nodes.push(index);
            }
        }
        Ok(())
    }

    fn kernel(&mut self, kernel: String) -> u32 {
        if let Some(number) = self.kernel_numbers.get(&kernel) {
            return *number;
        }
        let at = number(self.kernels.len());
        self.kernels.push(kernel.clone());
        self.kernel_numbers.insert(kernel, at);
        at
    }

    /// How many nodes there are, and how they stand.
    pub fn counts(&self) -> NodeCounts {
        let of =
            |codes: &[u8]| self.nodes.iter().filter(|node| codes.contains(&node.exit_code)).count();
        NodeCounts {
            all: self.nodes.len(),
            good: of(&[0]),
            exceptions: of(&[1, 2]),
            not_ready: of(&[3]),
        }
    }

    /// Each kind of finding: errors first, and what few nodes have before what many have.
    pub fn findings(&self) -> Vec<FleetFinding> {
        let order = |(key, group): &(&(Severity, String), &Group)| {
            (key.0, group.nodes.len(), key.1.clone())
        };
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(order);
        groups.into_iter().map(|(_, group)| self.finding(group)).collect()
    }

    fn finding(&self, group: &Group) -> FleetFinding {
        let nodes: Vec<&Node> = group.nodes.iter().filter_map(|at| self.node(*at)).collect();
        let example = nodes.first().map(|node| node.name.clone()).unwrap_or_default();
        let mut names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
        names.sort_by_cached_key(|name| natural(name));
        FleetFinding {
            first: group.first.clone(),
            example,
            since_kernel: self.since_kernel(&nodes),
            nodes: names,
        }
    }

    fn node(&self, at: u32) -> Option<&Node> {
        self.nodes.get(usize::try_from(at).ok()?)
    }

    /// The kernel with which it begins: no node with an older one has it, and at least half
    /// of those with this one or a newer one do. One node alone, on either side, shows
    /// nothing.
    fn since_kernel(&self, nodes: &[&Node]) -> Option<String> {
        let name = |node: &Node| self.kernels.get(usize::try_from(node.kernel?).ok()?);
        let kernels: Option<Vec<&String>> = nodes.iter().map(|node| name(node)).collect();
        let first = kernels?.into_iter().min_by_key(|kernel| natural(kernel))?;
        let from = natural(first);
        // As many kernels as there are, not as many as nodes.
        let is_older: Vec<bool> = self.kernels.iter().map(|k| natural(k) < from).collect();
        let mut count = [0_usize; 2];
        for node in &self.nodes {
            let older = node.kernel.and_then(|at| is_older.get(usize::try_from(at).ok()?));
            match older {
                Some(true) => count[0] += 1,
                Some(false) => count[1] += 1,
                None => {}
            }
        }
        let [older, newer] = count;
        let is_shown = older > 1 && nodes.len() > 1 && nodes.len() * 2 >= newer;
        is_shown.then(|| first.clone())
    }
}

fn number(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn report(node: &str, kernel: &str, codes: &[&str]) -> NodeReport {
        let finding = |code: &&str| NodeFinding {
            code: (*code).to_owned(),
            severity: Severity::Error,
            object: None,
            message: format!("of {node}"),
            advice: Vec::new(),
        };
        NodeReport {
            node: node.to_owned(),
            kernel: Some(kernel.to_owned()).filter(|kernel| !kernel.is_empty()),
            exit_code: if codes.is_empty() { 0 } else { 3 },
            findings: codes.iter().map(finding).collect(),
        }
    }

    /// The findings of such nodes: the code, the nodes, since which kernel.
    fn found(nodes: &[(&str, &str, &[&str])]) -> Vec<(String, Vec<String>, Option<String>)> {
        let mut fleet = Fleet::default();
        for (node, kernel, codes) in nodes {
            fleet.add(report(node, kernel, codes)).expect("a node");
        }
        fleet.findings().into_iter().map(|f| (f.first.code, f.nodes, f.since_kernel)).collect()
    }

    #[test]
    fn what_few_have_comes_first_and_each_node_counts_once() {
        let found = found(&[
            ("c10", "6.1", &["late", "late"]),
            ("c2", "6.1", &["late"]),
            ("c3", "6.1", &["odd"]),
        ]);
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            found,
            [
                ("odd".to_owned(), names(&["c3"]), None),
                ("late".to_owned(), names(&["c2", "c10"]), None),
            ]
        );
    }

    #[test]
    fn a_kernel_is_named_where_the_finding_begins_with_it() {
        let since = |nodes: &[(&str, &str, &[&str])]| found(nodes).pop().and_then(|found| found.2);
        let (old, new) = ("6.1.0-9-amd64", "6.1.0-56-amd64");
        let late: &[&str] = &["late"];
        let two: [(&str, &str, &[&str]); 4] =
            [("a", old, &[]), ("b", old, &[]), ("c", new, late), ("d", new, late)];
        assert_eq!(since(&two).as_deref(), Some(new));
        let newer = [two.as_slice(), &[("e", "6.1.0-57-amd64", late)]].concat();
        assert_eq!(since(&newer).as_deref(), Some(new), "the first of several");
        let both = [two.as_slice(), &[("e", old, late)]].concat();
        assert_eq!(since(&both), None, "an older kernel has it too");
        let few = [two.as_slice(), &[("e", new, &[]), ("f", new, &[]), ("g", new, &[])]].concat();
        assert_eq!(since(&few), None, "most nodes with it do not");
        assert_eq!(since(&two[1..]), None, "one older node");
        assert_eq!(since(&two[..3]), None, "one node");
        let unknown = [two.as_slice(), &[("e", "", late)]].concat();
        assert_eq!(since(&unknown), None, "a node of which the kernel is not known");
    }

    #[test]
    fn a_node_is_added_once_and_kinds_are_bounded() {
        let mut fleet = Fleet::default();
        fleet.add(report("a", "", &[])).expect("a node");
        fleet.add(report("a", "", &[])).expect_err("the same");
        let codes: Vec<String> = (0..MOST_KINDS + 1).map(|n| format!("c{n}")).collect();
        let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
        fleet.add(report("b", "", &codes)).expect_err("too many");
        fleet.add(report("c", "", &codes[1..])).expect("as many as there may be");
        fleet.add(report("d", "", &codes[1..])).expect("the same kinds");
        assert_eq!(fleet.counts(), NodeCounts { all: 3, good: 1, exceptions: 0, not_ready: 2 });
    }

    proptest! {
        #[test]
        fn names_have_one_order(a in "[a-c0-3.-]{0,6}", b in "[a-c0-3.-]{0,6}", n: u32, m: u32) {
            prop_assert!(a == b || natural(&a) != natural(&b) || a.contains('0'));
            prop_assert_eq!(
                natural(&format!("k{n}-{a}")).cmp(&natural(&format!("k{m}-{a}"))),
                n.cmp(&m)
            );
        }
    }
}
