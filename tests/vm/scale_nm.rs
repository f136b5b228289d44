//! Many interfaces under NetworkManager: what one more costs. One boot.

use std::collections::BTreeSet;

use crate::card::assert_sound;
use crate::machine::boot;

/// How many VFs each stage has.
const STAGES: [usize; 3] = [4, 8, 16];

#[test]
fn a_profile_is_read_once_however_many_interfaces_there_are() {
    let guest = boot("scale_nm");
    guest.assert_success();
    assert_sound(&guest);
    assert_eq!(guest.stdout(), "");
    let mut costs = Vec::new();
    for n in STAGES {
        let ends = guest.file(&format!("ends.{n}"));
        let text = guest.file(&format!("opened.{n}"));
        let opened: Vec<(&str, &str)> =
            text.lines().filter_map(|line| line.split_once(' ')).collect();
        // The processes that set an interface up.
        let is_own = |(_, file): &&(&str, &str)| file.starts_with("/run/NetworkManager/devices/");
        let runs: BTreeSet<&str> = opened.iter().filter(is_own).map(|(pid, _)| *pid).collect();
        let of_runs = opened.iter().filter(|(pid, _)| runs.contains(pid));
        let profiles = of_runs.filter(|(_, file)| file.ends_with(".nmconnection")).count();
        let mut files: Vec<usize> =
            runs.iter().map(|run| opened.iter().filter(|(pid, _)| pid == run).count()).collect();
        files.sort_unstable();
        println!("{n}: {} runs, files {files:?}, {profiles} of them profiles\n{ends}", runs.len());
        assert!(runs.len() >= n, "{n}: {} runs", runs.len());
        assert!(ends.contains(&format!("{n}   \"bring_up\": \"waiting\"")), "{n}: {ends}");
        // The middle one: a run of the PF's own interface may have begun before, and then only
        // its last files are counted.
        costs.push((n, files[files.len() / 2], profiles));
    }
    let (_, few, _) = costs[0];
    for (n, each, profiles) in costs {
        // One that is written at the moment is read once more.
        assert!(profiles <= 2 * n, "{n} interfaces: {profiles} times a profile");
        assert!(4 * each <= 5 * few, "{n} interfaces: {each} files each, {few} where they are few");
    }
}
