//! A unit that starts another and waits for it, while the other waits for it
//! to be done. systemd sees no cycle: the second start is a transaction of its
//! own. Both stand still until a time limit ends one of them.

use super::{Command, Graph, Unit};

/// Which unit a command waits for that is one of a network stack, by the program's
/// name. Those who know the stacks hand it in.
pub type WaitedFor = fn(&str) -> Option<&'static str>;

/// A unit that waits for one that is ordered after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    pub unit: String,
    pub command: String,
    pub waits_for: String,
    /// Why that one cannot start: from the first to the second, in order.
    pub chain: Vec<String>,
}

/// The deadlocks among the units that a boot starts.
pub fn deadlocks(graph: &Graph, waited_for: WaitedFor) -> Vec<Deadlock> {
    let transaction = graph.transaction();
    let mut found = Vec::new();
    for unit in transaction.iter().filter_map(|name| graph.get(name)) {
        for command in unit.commands.iter().filter(|c| holds_up(unit, c)) {
            for (line, other) in waits(command, waited_for) {
                // Others of its boot that it waits for have their jobs already.
                if let Some(chain) = graph.chain(&unit.name, &other, &transaction) {
                    let known = found.iter().any(|d: &Deadlock| {
                        d.unit == unit.name && Some(&d.waits_for) == chain.last()
                    });
                    if !known {
                        found.push(Deadlock {
                            unit: unit.name.clone(),
                            command: line,
                            waits_for: graph.resolve(&other).to_owned(),
                            chain,
                        });
                    }
                }
            }
        }
    }
    found
}

/// True if the unit is not up before this command has ended.
fn holds_up(unit: &Unit, command: &Command) -> bool {
    let before_start = matches!(unit.kind.as_str(), "oneshot" | "forking" | "notify" | "dbus");
    command.phase != "ExecStart" || before_start
}

/// The commands that wait for a unit, with the unit.
fn waits(command: &Command, by_name: WaitedFor) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let lines = std::iter::once(&command.line).chain(command.script.iter().flatten());
    for line in lines {
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        // One shell line may hold several commands.
        for one in line.split([';', '&', '|', '"', '\'', '(', ')', '`', '{', '}']) {
            let units = waited_for(one, by_name);
            found.extend(units.into_iter().map(|unit| (one.trim().to_owned(), unit)));
        }
    }
    found
}

/// The units that one simple command waits for.
fn waited_for(command: &str, by_name: WaitedFor) -> Vec<String> {
    let mut words = command.split_whitespace().skip_while(|w| {
        // What may stand before a command: assignments, and shells' own words.
        w.contains('=')
            || matches!(
                w.trim_start_matches(['@', '-', ':', '+', '!']),
                "exec"
                    | "if"
                    | "then"
                    | "else"
                    | "do"
                    | "while"
                    | "until"
                    | "!"
                    | "sudo"
                    | "env"
                    | "nohup"
                    | "time"
                    | "-c"
                    | "sh"
                    | "bash"
                    | "/bin/sh"
                    | "/bin/bash"
                    | "/usr/bin/env"
            )
    });
    let program = words.next().unwrap_or_default().trim_start_matches(['@', '-', ':', '+', '!']);
    let words: Vec<&str> = words.collect();
    let named = |name: &str| {
        if name.contains('.') { name.to_owned() } else { format!("{name}.service") }
    };
    let plain = |w: &&&str| !w.starts_with('-') && !w.contains(['$', '*', '<', '>']);
    match program.rsplit('/').next().unwrap_or_default() {
        "systemctl" => {
            let gone_on =
                words.iter().any(|w| matches!(*w, "--no-block" | "--job-mode=ignore-dependencies"));
            let mut plain = words.iter().filter(plain);
            let verb = plain.next().copied().unwrap_or_default();
            let starts = matches!(
                verb,
                "start" | "restart" | "try-restart" | "reload-or-restart" | "isolate"
            ) || verb == "enable" && words.contains(&"--now");
            if starts && !gone_on { plain.map(|u| named(u)).collect() } else { Vec::new() }
        }
        "service" | "invoke-rc.d" => match words.get(..2) {
            Some([unit, "start" | "restart"]) if plain(&unit) => vec![named(unit)],
            _ => Vec::new(),
        },
        program => by_name(program).map(str::to_owned).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{self, graph};
    use super::*;

    fn waited(line: &str) -> Vec<String> {
        let command = Command { phase: "ExecStart".into(), line: line.to_owned(), script: None };
        waits(&command, fixtures::waited_for).into_iter().map(|(_, unit)| unit).collect()
    }

    #[test]
    fn commands_that_wait_are_told_from_those_that_do_not() {
        assert_eq!(waited("/usr/bin/systemctl start libvirtd"), ["libvirtd.service"]);
        assert_eq!(
            waited("/bin/sh -c 'sleep 1; systemctl restart a.service b'"),
            ["a.service", "b.service"]
        );
        assert_eq!(waited("-/bin/systemctl enable --now x.socket"), ["x.socket"]);
        assert_eq!(waited("service network restart"), ["network.service"]);
        assert_eq!(waited("LANG=C exec nm-online -q -t 30"), ["NetworkManager.service"]);
        for harmless in [
            "systemctl --no-block start x",
            "systemctl status x",
            "systemctl stop x",
            "systemctl start $unit",
            "systemctl enable x",
            "echo systemctl start x",
            "service x status",
            "",
        ] {
            assert_eq!(waited(harmless), [""; 0], "{harmless}");
        }
    }

    #[test]
    fn a_deadlock_is_found_through_three_hops_and_in_a_script() {
        let mut graph = graph(
            "goal.target wants prepare.service network-pre.target net.service guests.service\n\
             prepare.service is oneshot\n\
             prepare.service before network-pre.target\n\
             network-pre.target before net.service\n\
             net.service before guests.service\n",
        );
        assert_eq!(deadlocks(&graph, fixtures::waited_for), []);
        graph.get_mut("prepare.service").expect("unit").commands.push(Command {
            phase: "ExecStart".into(),
            line: "/usr/local/sbin/prepare".into(),
            script: Some(
                ["#!/bin/sh", "# systemctl start net", "systemctl start guests"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
        });
        let [deadlock] = &deadlocks(&graph, fixtures::waited_for)[..] else {
            panic!("{:?}", deadlocks(&graph, fixtures::waited_for))
        };
        assert_eq!(deadlock.waits_for, "guests.service");
        assert_eq!(deadlock.command, "systemctl start guests");
        assert_eq!(deadlock.chain.len(), 4);
        // Up before the command has ended: nobody waits for that.
        graph.get_mut("prepare.service").expect("unit").kind = "simple".into();
        assert_eq!(deadlocks(&graph, fixtures::waited_for), []);
    }
}
