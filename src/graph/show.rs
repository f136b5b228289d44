//! The graph of a live system, as `systemctl show` prints it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Command, Graph, Load, Now, Unit};
use crate::names::Moment;

/// What is asked for, in one call. Properties that a systemd does not know it
/// leaves out.
pub const PROPERTIES: &str = "Id,Names,LoadState,ActiveState,Result,Job,Type,UnitFileState,\
FragmentPath,After,Before,Requires,Requisite,BindsTo,Wants,Upholds,ConditionResult,\
ConditionTimestampMonotonic,InactiveExitTimestampMonotonic,ActiveEnterTimestampMonotonic,\
InactiveEnterTimestampMonotonic,ExecStartPre,ExecStart,ExecStartPost,What,Options,LimitMEMLOCK";

/// The graph of `text`: blocks of `Property=value`, one per unit, with empty
/// lines between. What is no such line is skipped.
pub fn graph(text: &str, goal: &str) -> Graph {
    let mut graph = Graph { goal: goal.to_owned(), ..Graph::default() };
    for block in text.split("\n\n") {
        let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (property, value) in block.lines().filter_map(|l| l.split_once('=')) {
            values.entry(property).or_default().push(value);
        }
        if let Some((unit, names)) = unit(&values) {
            graph.add(unit, names);
        }
    }
    forget_mounted_type(&mut graph);
    graph.settle();
    graph
}

/// systemd orders a mount as a network's or as a local one by its file, and once it is mounted
/// by the type and options that mountinfo has (`mount_setup_existing_unit()`,
/// src/core/mount.c). Where that type is none of those that it knows as a network's, a mount
/// that systemd-fstab-generator has put before remote-fs.target comes before local-fs.target
/// too until it is unmounted. The boot knows nothing of that.
fn forget_mounted_type(graph: &mut Graph) {
    const LOCAL: [&str; 2] = ["local-fs-pre.target", "local-fs.target"];
    let is_both = |unit: &&Unit| {
        unit.name.ends_with(".mount")
            && unit.before.contains("remote-fs.target")
            && unit.before.contains("local-fs.target")
    };
    let both: Vec<String> = graph.units().filter(is_both).map(|unit| unit.name.clone()).collect();
    for name in both {
        for target in LOCAL {
            if let Some(unit) = graph.get_mut(&name) {
                unit.after.remove(target);
                unit.before.remove(target);
            }
            if let Some(target) = graph.get_mut(target) {
                target.after.remove(&name);
                target.before.remove(&name);
            }
        }
    }
}

fn unit(values: &BTreeMap<&str, Vec<&str>>) -> Option<(Unit, Vec<String>)> {
    let value =
        |property: &str| values.get(property).and_then(|v| v.first()).copied().unwrap_or_default();
    let names = |properties: &[&str]| -> BTreeSet<String> {
        properties.iter().flat_map(|p| value(p).split_whitespace()).map(str::to_owned).collect()
    };
    let moment = |property: &str| value(property).parse().ok().and_then(Moment::of_systemd);
    let name = value("Id");
    if name.is_empty() {
        return None;
    }
    let commands = ["ExecStartPre", "ExecStart", "ExecStartPost"].into_iter().flat_map(|phase| {
        values.get(phase).into_iter().flatten().filter_map(move |value| command(phase, value))
    });
    let unit = Unit {
        name: name.to_owned(),
        load: match value("LoadState") {
            "loaded" | "stub" | "merged" | "" => Load::Loaded,
            "masked" => Load::Masked,
            "not-found" => Load::NotFound,
            _ => Load::Bad,
        },
        after: names(&["After"]),
        before: names(&["Before"]),
        requires: names(&["Requires", "Requisite", "BindsTo"]),
        wants: names(&["Wants", "Upholds"]),
        kind: value("Type").to_owned(),
        what: value("What").to_owned(),
        options: value("Options").to_owned(),
        commands: commands.collect(),
        triggers: names(&["Triggers"]),
        settings: Vec::new(),
        memlock: value("LimitMEMLOCK").to_owned(),
        file_state: value("UnitFileState").to_owned(),
        fragment: value("FragmentPath").to_owned(),
        now: Now {
            active: value("ActiveState").to_owned(),
            result: value("Result").to_owned(),
            // A job is shown as its number, none as nothing or 0.
            job: !matches!(value("Job"), "" | "0"),
            began_usec: moment("InactiveExitTimestampMonotonic"),
            up_usec: moment("ActiveEnterTimestampMonotonic"),
            down_usec: moment("InactiveEnterTimestampMonotonic"),
            condition_failed: value("ConditionResult") == "no"
                && moment("ConditionTimestampMonotonic").is_some(),
        },
    };
    let names = value("Names").split_whitespace().map(str::to_owned).collect();
    Some((unit, names))
}

/// `{ path=/bin/x ; argv[]=/bin/x a b ; ignore_errors=no ; ... }`
fn command(phase: &str, value: &str) -> Option<Command> {
    let argv = value.split_once("argv[]=")?.1;
    // An argument may have " ; " in it, as a shell's command often does: what
    // follows the arguments is always this.
    let line = argv.rsplit_once(" ; ignore_errors=").map_or(argv, |(line, _)| line);
    Some(Command { phase: phase.to_owned(), line: line.trim().to_owned(), script: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::at;

    const SHOWN: &str = "\
Type=oneshot
ExecStart={ path=/bin/sh ; argv[]=/bin/sh -c systemctl start b.service ; true ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }
ExecStart={ path=/bin/true ; argv[]=/bin/true ; ignore_errors=no ; start_time=[n/a] }
Id=ibprov.service
Names=ibprov.service openibd.service
Requires=system.slice
Wants=network-pre.target
Before=network-pre.target shutdown.target
After=local-fs.target
LoadState=loaded
ActiveState=failed
Result=exit-code
UnitFileState=enabled
Job=
ConditionResult=yes
InactiveExitTimestampMonotonic=1500000
ActiveEnterTimestampMonotonic=0
InactiveEnterTimestampMonotonic=2500000

Id=b.service
LoadState=masked
After=openibd.service

Id=network-pre.target
LoadState=loaded
Job=57
";

    #[test]
    fn what_systemctl_prints_is_read() {
        let graph = graph(SHOWN, "multi-user.target");
        let unit = graph.get("openibd.service").expect("alias");
        assert_eq!(unit.name, "ibprov.service");
        assert_eq!(unit.commands.len(), 2);
        assert_eq!(unit.commands[0].line, "/bin/sh -c systemctl start b.service ; true");
        assert_eq!((unit.now.began_usec, unit.now.up_usec), (Some(at(1_500_000)), None));
        assert_eq!(unit.now.down_usec, Some(at(2_500_000)));
        // b.service says it in terms of the alias, and only from its side.
        assert!(unit.before.contains("b.service"), "{unit:?}");
        assert_eq!(graph.get("b.service").map(|u| u.load), Some(Load::Masked));
        assert!(graph.get("network-pre.target").expect("target").after.contains("ibprov.service"));
        assert!(graph.get("network-pre.target").expect("target").now.job);
    }

    /// As systemd 252 shows a mount of fstab, of a type that it does not know.
    #[test]
    fn a_mounted_network_mount_is_no_local_one() {
        let shown = "\
Id=mnt.mount
LoadState=loaded
After=systemd-journald.socket local-fs-pre.target -.mount system.slice swap.target
Before=umount.target local-fs.target remote-fs.target

Id=local-fs.target
LoadState=loaded
After=mnt.mount local-fs-pre.target

Id=data.mount
LoadState=loaded
After=local-fs-pre.target
Before=local-fs.target
";
        let graph = graph(shown, "multi-user.target");
        let mount = graph.get("mnt.mount").expect("the mount");
        assert!(!mount.before.contains("local-fs.target"), "{mount:?}");
        assert!(mount.before.contains("remote-fs.target"), "{mount:?}");
        let local = graph.get("local-fs.target").expect("the target");
        assert!(!local.after.contains("mnt.mount") && local.after.contains("data.mount"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_printed_panics(text in "(Id=|After=|ExecStart=|[a-z.= \n{;}])*") {
            assert!(graph(&text, "x").goal == "x");
        }
    }
}
