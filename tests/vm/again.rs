//! Run again: on a healthy node nothing is touched; after a kill at any step
//! the next run is right; a signal and a second run are orderly.

use crate::machine::boot;
use crate::seed::assert_up;

#[test]
fn a_restart_on_a_healthy_node_touches_no_module_link_or_vf() {
    let guest = boot("again");
    assert_up(&guest);
    assert!(guest.stdout().contains("restart: 0\n"), "{}", guest.stdout());
    let [before, after] = ["counters.before", "counters.after"].map(|n| actions(&guest.file(n)));
    assert!(before.contains("probe 1\n"), "no counters to compare: {before:?}");
    assert_eq!(before, after);
    assert_eq!(guest.file("links.before"), guest.file("links.after"));
    let report = guest.json("again.json");
    assert_eq!(report["steps"], serde_json::json!([]));
    assert_eq!(report["forks"], 0);
    let modules = report["modules"].as_array().expect("modules");
    assert!(modules.iter().all(|m| m["outcome"] == "already-there"), "{modules:?}");
    let foreign = |line: &&str| !line.contains("heard") && line.contains('/');
    let uevents = guest.file("uevents");
    let net: Vec<&str> = uevents.lines().filter(|l| l.contains("(net)")).filter(foreign).collect();
    assert_eq!(net, [""; 0], "{uevents}");
    let modules: Vec<&str> =
        uevents.lines().filter(|l| l.contains("(module)")).filter(foreign).collect();
    assert!(modules.iter().all(|l| l.contains("dummy")), "{modules:?}");
    let links = guest.file("link-events");
    let ib: Vec<&str> = links.lines().filter(|l| l.contains(" ib")).collect();
    assert_eq!(ib, [""; 0], "{links}");
}

/// The counters of what is done to an HCA. Others count what IPoIB and the
/// subnet manager say to each other all the time.
fn actions(counters: &str) -> String {
    let names = [
        "probe",
        "remove",
        "init",
        "teardown",
        "reset",
        "set_node_guid",
        "set_port_guid",
        "set_policy",
    ];
    let is_action = |l: &&str| l.split_once(' ').is_some_and(|(name, _)| names.contains(&name));
    counters.lines().filter(is_action).map(|l| format!("{l}\n")).collect()
}

fn assert_right_after_kills(scenario: &str, kills: &[&str]) {
    let guest = boot(scenario);
    guest.assert_success();
    for kill in kills {
        // The script has taken ib0 down, which ifupdown is to bring up.
        let want = format!("{kill}: signal, then active, status 1, interface-not-online\n");
        assert!(guest.stdout().contains(&want), "want {want:?} in:\n{}", guest.stdout());
    }
    assert!(guest.file("addr.after").contains("192.168.77.9/24"));
}

#[test]
fn killed_at_its_first_and_last_module_the_next_run_is_right() {
    assert_right_after_kills("again", &["before ib_umad", "after ib_ipoib"]);
}

#[test]
#[ignore = "each kill takes a boot's time"]
fn killed_at_any_other_module_the_next_run_is_right() {
    let kills = ["after ib_umad", "before ib_uverbs", "after ib_uverbs", "before ib_ipoib"];
    assert_right_after_kills("again_kills", &kills);
}

#[test]
fn a_signal_ends_it_with_a_partial_report() {
    let guest = boot("never");
    assert!(guest.stdout().contains("interrupted: 1\n"), "{}", guest.stdout());
    let report = guest.json("interrupted.json");
    assert_eq!(report["verdict"], "interrupted");
    assert_eq!(report["ports"].as_array().map(Vec::len), Some(2));
    let text = guest.file("interrupted.text");
    assert!(text.contains("stopped by a signal after"), "{text}");
}

#[test]
fn of_two_at_once_the_second_waits_for_the_first() {
    let guest = boot("never");
    let [first, second] = ["first.json", "second.json"].map(|name| guest.json(name));
    let usec = |report: &serde_json::Value, name: &str| report[name].as_u64().expect("time");
    let (a, b) = if usec(&first, "finished_usec") < usec(&second, "finished_usec") {
        (&first, &second)
    } else {
        (&second, &first)
    };
    let waited = usec(b, "cpu_usec");
    assert!(waited < 1_500_000, "the second used {waited} us of CPU: it did not sleep");
    // Each waits 4 s for the HCA that never comes: one after the other is 8 s.
    let apart = usec(b, "finished_usec") - usec(a, "finished_usec");
    assert!(apart >= 3_900_000, "only {apart} us apart: they ran at the same time");
    assert!(usec(b, "started_usec") < usec(a, "finished_usec"), "they did not meet");
}
