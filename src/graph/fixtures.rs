//! Graphs for tests, a fact a line: `a.service before b.target c.target`.

use super::{Command, Graph, Load, Unit};
use crate::names::NetworkRole;

/// What some units do for interfaces, as the network stacks would tell.
pub(crate) fn role_of(unit: &str) -> Option<NetworkRole> {
    match unit {
        "networking.service" | "network.service" => Some(NetworkRole::SetsUpOnce),
        "NetworkManager.service" => Some(NetworkRole::SetsUpWhatComes),
        _ => None,
    }
}

/// Which service a command waits for, as the network stacks would tell.
pub(crate) fn waited_for(command: &str) -> Option<&'static str> {
    (command == "nm-online").then_some("NetworkManager.service")
}

/// The graph of these lines; it starts from `goal.target`.
pub(crate) fn graph(lines: &str) -> Graph {
    let mut graph = Graph { goal: "goal.target".to_owned(), ..Graph::default() };
    for line in lines.lines().filter(|l| !l.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let name = words.next().expect("name");
        let verb = words.next().expect("verb");
        let rest: Vec<String> = words.map(str::to_owned).collect();
        for name in rest.iter().map(String::as_str).chain([name]) {
            if matches!(verb, "before" | "after" | "wants" | "requires" | "masked" | "is")
                && graph.get(name).is_none()
                && name.contains('.')
            {
                let unit = Unit { name: name.to_owned(), ..Unit::default() };
                graph.add(unit, []);
            }
        }
        let unit = graph.get_mut(name).unwrap_or_else(|| panic!("{name} unknown"));
        match verb {
            "before" => unit.before.extend(rest),
            "after" => unit.after.extend(rest),
            "wants" => unit.wants.extend(rest),
            "requires" => unit.requires.extend(rest),
            "masked" => unit.load = Load::Masked,
            "is" => unit.kind = rest.join(" "),
            "what" => unit.what = rest.join(" "),
            "alias" => {
                let unit = unit.clone();
                graph.add(unit, rest);
            }
            "runs" => unit.commands.push(Command {
                phase: "ExecStart".to_owned(),
                line: rest.join(" "),
                script: None,
            }),
            other => panic!("{other}"),
        }
    }
    graph.settle();
    graph
}
