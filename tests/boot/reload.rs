//! What systemd does with the units that wait when it reads its units again.

use std::collections::BTreeMap;

use crate::bed::outcome::Outcome;
use crate::nspawn::boot;

const WAITING: [&str; 7] = [
    "ibprov-children.service",
    "ibprov-guests.service",
    "ibprov-iface@sys-devices-virtual-net-ib500.service",
    "ibprov-iface@sys-devices-virtual-net-ib501.service",
    "ibprov-pf@sys-devices-0000:4b:00.0.service",
    "ibprov-wait-online.service",
    "ibprov.service",
];

/// State and main process of each unit at a look.
fn look(guest: &Outcome, name: &str) -> BTreeMap<String, (String, u32)> {
    let looks = guest.file("looks");
    let lines = looks.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let lines = lines.filter(|words| words[0] == name);
    lines.map(|w| (w[1].to_owned(), (w[2].to_owned(), w[3].parse().expect("a number")))).collect()
}

#[test]
fn what_waits_longer_than_half_a_minute_outlives_a_reload_and_a_reexec() {
    let guest = boot("reload");
    guest.assert_success();
    assert_eq!(guest.stdout(), "");
    let before = look(&guest, "before");
    assert!(before.keys().eq(WAITING), "{before:?}");
    assert!(before.values().all(|(state, pid)| state == "activating" && *pid > 0), "{before:?}");
    assert_eq!(look(&guest, "reload"), before);
    assert_eq!(look(&guest, "reexec"), before);
}

#[test]
fn what_comes_after_a_reload_and_a_reexec_is_seen() {
    let guest = boot("reload");
    guest.assert_success();
    let states = |name| look(&guest, name).into_values().map(|(state, _)| state);
    let come: Vec<String> = states("come").collect();
    let [starts, up] = ["activating", "active"];
    assert_eq!(come, [starts, up, starts, up, starts, starts, starts]);
}

#[test]
fn what_waits_can_be_stopped() {
    let guest = boot("reload");
    guest.assert_success();
    let stopped = look(&guest, "stopped");
    assert!(stopped.values().all(|(_, pid)| *pid == 0), "{stopped:?}");
    let seconds: u64 = guest.file("stopped").trim().parse().expect("seconds");
    assert!(seconds < 20, "{seconds} s");
}

/// How a unit ended, and how many seconds its program ran.
fn end(guest: &Outcome, unit: &str) -> (String, String, f64) {
    let file = guest.file(unit);
    let lines: BTreeMap<&str, &str> = file.lines().filter_map(|l| l.split_once('=')).collect();
    let usec = |name: &str| lines[name].parse::<f64>().expect("time");
    let took = usec("ExecMainExitTimestampMonotonic") - usec("ExecMainStartTimestampMonotonic");
    (lines["Result"].to_owned(), lines["ExecMainStatus"].to_owned(), took / 1e6)
}

#[test]
fn a_program_that_hangs_is_ended_by_its_alarm() {
    let guest = boot("reload");
    guest.assert_success();
    // SIGALRM: 30 s from its first instruction, and 10 s after its deadline.
    for (unit, due) in [("ibprov-hung.service", 30.0), ("ibprov-hung-later.service", 11.0)] {
        let (result, status, took) = end(&guest, unit);
        assert_eq!((result.as_str(), status.as_str()), ("signal", "14"), "{unit} after {took} s");
        assert!((due..due + 15.0).contains(&took), "{unit}: {took} s");
    }
}
