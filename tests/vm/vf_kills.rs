//! Killed at any step of `ibprov apply`, the next run is right.

use crate::bed::outcome::Outcome;
use crate::card::assert_sound;
use crate::machine::boot;
use crate::vf_plan::planned;

/// The rounds of a file: their first line, and the facts below it.
fn rounds(guest: &Outcome, name: &str) -> Vec<(String, String)> {
    let mut rounds: Vec<(String, String)> = Vec::new();
    for line in guest.file(name).lines() {
        if line.contains(", then ") {
            rounds.push((line.to_owned(), String::new()));
        } else if let Some((_, facts)) = rounds.last_mut() {
            facts.push_str(line);
            facts.push('\n');
        }
    }
    rounds
}

fn assert_right((line, facts): &(String, String), pf: u32, vfs: u32) {
    assert!(line.contains("then 0, "), "{line}");
    let first = format!("0200:00{}", &line[line.len() - 2..]);
    assert_eq!(*facts, planned(&first, pf, vfs), "{line}");
}

/// Killed after every step, which is before the next, at a PF whose settings are written so.
fn assert_every_step(guest: &Outcome) {
    guest.assert_success();
    let rounds = rounds(guest, "rounds");
    let kills = |how: &str| {
        let of = |(l, _): &&(String, String)| l.contains(how) && l.contains(": 137, ");
        rounds.iter().filter(of).count()
    };
    // A child that was not killed puts back what was changed for the time of the work.
    let back = guest.file("by-child");
    let killed = back.lines().filter(|line| line.starts_with("137: "));
    assert_eq!(killed.clone().count(), kills("-p "), "{back}");
    for line in killed {
        assert!(["137: (null) 1 ", "137:  1 "].contains(&line), "{back}");
    }
    // Automatic probing off and on, number, 2 GUIDs, 3 writes of a bind, what is
    // remembered of it twice, and forgotten; or unbind, 2 GUIDs, and the bind.
    for (how, least) in [(" fresh ", 11), (" fresh-p ", 11), (" again ", 8), (" again-p ", 8)] {
        assert!(kills(how) >= least, "only {} kills{how}: {rounds:#?}", kills(how));
    }
    for round in &rounds {
        assert_right(round, 0, 1);
    }
}

#[test]
#[ignore = "two hundred seconds of kills"]
fn before_and_after_every_step() {
    let guest = boot("vf_kills");
    assert_every_step(&guest);
    assert_sound(&guest);
}

#[test]
#[ignore = "the steps of vf_kills once more"]
fn before_and_after_every_step_by_the_vendors_files() {
    assert_every_step(&boot("vf_kills_ofed"));
}

/// The kernel ends the probe of the RDMA half then, and leaves mlx5_core bound.
#[test]
#[ignore = "two hundred seconds of kills"]
fn a_vf_that_a_kill_has_left_half_bound_is_bound_anew() {
    let guest = boot("vf_kills");
    let text = guest.stdout();
    assert!(text.contains("half bound\n"), "the kill came too early or too late: {text}");
    assert!(text.contains("half-bound: 0\n"), "{text}\n{}", guest.file("half-bound.log"));
    let line = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).expect("a line");
    let first = format!("0200:00{}", line("half-bound plan: "));
    assert_eq!(guest.file("half-bound"), planned(&first, 1, 2));
    let steps = guest.json("half-bound.json")["pfs"][0]["steps"].to_string();
    assert!(steps.contains("\"unbind\""), "{steps}");
    // It waits for no device that does not come.
    let took: u64 = line("half-bound took: ").parse().expect("ms");
    assert!(took < 30_000, "{took} ms");
}
