//! Long campaigns, run by `make test-all` alone.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bed::scenario::Scenario;
use crate::bed::tools;
use crate::card::assert_sound;
use crate::machine::{self, boot};
use crate::seed::assert_up;
use crate::vf_plan::{grown, planned};

#[test]
#[ignore = "40 kills take minutes"]
fn killed_at_random_moments_the_next_run_is_right() {
    let guest = boot("random_kills");
    guest.assert_success();
    let rounds: Vec<String> = guest.stdout().lines().map(str::to_owned).collect();
    assert_eq!(rounds.len(), 40, "{rounds:?}");
    let right = |round: &&String| round.ends_with("then 0, status 0");
    let wrong: Vec<&String> = rounds.iter().filter(|r| !right(r)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // 137 is a kill, 0 a run that was through before it came.
    let killed = rounds.iter().filter(|r| r.contains(": 137,")).count();
    assert!(killed >= 10, "only {killed} of 40 were killed in the middle");
}

#[test]
#[ignore = "waits for the default deadline of 150 s"]
fn one_hca_is_waited_for_150_s_by_default() {
    let guest = boot("long_wait");
    assert_up(&guest);
    let report = guest.boot_json();
    let usec = |name: &str| report[name].as_u64().expect("time");
    let took = usec("finished_usec") - usec("started_usec");
    assert!((149_000_000..156_000_000).contains(&took), "{took} us");
    assert_eq!(report["exit_code"], 3);
}

#[test]
#[ignore = "127 VFs take a minute to come"]
fn a_pf_with_127_vfs_gets_its_plan() {
    let guest = boot("many_vfs");
    guest.assert_success();
    let text = guest.stdout();
    println!("{text}");
    for run in ["applied", "planned"] {
        assert!(text.contains(&format!("{run}: 0\n")), "{text}\n{}", guest.file("applied.log"));
        let report = guest.json(&format!("{run}.json"));
        let vfs = report["pfs"][0]["vfs"].as_array().expect("VFs");
        assert_eq!(vfs.iter().filter(|vf| vf["right"] == true).count(), 127, "{run}");
    }
    let facts = guest.file("facts");
    for vf in 0..127 {
        let low = format!("{vf:04x}");
        let line = format!(
            "{vf} mlx5_core (null) 0200:0070:0000:{low} 0200:0070:0001:{low} 02:00:00:70:00:01:{}:{}",
            &low[..2],
            &low[2..]
        );
        assert!(facts.lines().any(|l| l == line), "{line}\n{facts}");
    }
    assert!(facts.ends_with("autoprobe 1\n"), "{facts}");
}

#[test]
#[ignore = "127 VFs take a minute to come"]
fn a_pf_with_127_vfs_is_shown_whole() {
    let guest = boot("many_vfs");
    guest.assert_success();
    let status = guest.json("status.json");
    let vfs = status["hcas"][0]["vfs"].as_array().expect("VFs");
    assert_eq!(vfs.len(), 127);
    assert_eq!(vfs[126]["node_guid"], "0200:0000:0034:007e");
    assert!(vfs.iter().all(|vf| vf["policy"] == "Down"), "{vfs:?}");
    let report = guest.json("again.json");
    assert_eq!(report["left_out"].as_array().map(Vec::len), Some(127));
    assert_eq!(report["verdict"], "ready");
}

#[test]
#[ignore = "the netdev comes 105 s after the card"]
fn the_founding_failure_ends_with_ib0_up() {
    let guest = boot("seed_late");
    guest.assert_success();
    assert_eq!(guest.file("networking"), "exit-code\n");
    assert!(!guest.file("addr.before").contains("10.7.0.1"));
    let gave_up = guest.journal.failed("networking.service").as_secs_f64();
    let appeared: f64 = guest.file("appeared").trim().parse().expect("time");
    assert!(appeared > gave_up + 85.0, "ib0 came only {} s later", appeared - gave_up);
    assert_eq!(guest.file("instance"), "active\n");
    let addr = guest.file("addr");
    let ib0 = addr.lines().find(|l| l.starts_with("ib0")).unwrap_or_default();
    assert!(ib0.contains("10.7.0.1/24"), "{addr}");
    guest.journal.find("networking.service has been and missed it").expect("who and why");
}

#[test]
#[ignore = "64 interfaces take minutes under emulation"]
fn of_64_interfaces_at_once_all_are_set_up() {
    let guest = boot("iface_many");
    guest.assert_success();
    let text = guest.stdout();
    println!("{text}");
    assert!(text.contains("active: 65\n") && text.contains("umcast: 65\n"), "{text}");
    assert_eq!(guest.file("failed"), "");
}

#[test]
#[ignore = "a boot of its own for one rare fault"]
fn where_no_instance_sets_ib0_boot_does() {
    let guest = boot("iface_masked");
    assert_up(&guest);
    let report = guest.boot_json();
    assert_eq!(report["ports"][0]["reached"], "configured", "{report}");
    let steps = report["steps"].as_array().expect("steps");
    let own = steps.iter().find(|s| s["step"] == "configure").expect("a step of its own");
    assert_eq!((&own["netdev"], &own["failure"]), (&"ib0".into(), &"".into()));
    let waited = report["ports"][0]["waited_usec"].as_u64().expect("time");
    assert!(waited >= 5_000_000, "it gave the instance 5 s: {waited} us");
}

#[test]
#[ignore = "a thousand binds take six minutes"]
fn the_real_drivers_and_the_card_survive_a_thousand_binds() {
    let guest = boot("card_campaign");
    guest.assert_success();
    let text = guest.stdout();
    println!("{text}");
    let failed = |l: &&str| !l.starts_with("rebinds: ") && !l.starts_with("slab: ");
    assert_eq!(text.lines().filter(failed).collect::<Vec<_>>(), [""; 0]);
    assert_sound(&guest);
    assert_eq!(guest.file("held"), "", "what drivers left on the card");
    let grown = text.lines().find_map(|l| l.strip_prefix("slab: ")).expect("slab");
    let grown: i64 = grown.trim_end_matches(" kB").parse().expect("kB");
    // 4 kB for each bind would be 4 MB.
    assert!(grown < 4_000, "{grown} kB more after a thousand binds");
}

#[test]
#[ignore = "254 VFs take minutes to come"]
fn two_pfs_with_127_vfs_each_get_their_plan_on_the_real_driver() {
    let guest = boot("card_many_vfs");
    guest.assert_success();
    let text = guest.stdout();
    println!("{text}");
    assert_sound(&guest);
    for (name, pf) in [("first", 0), ("second", 1)] {
        assert!(text.contains(&format!("{name}: 0\n")), "{text}\n{}", guest.file("first.log"));
        assert_eq!(guest.file(name), planned("0200:0070", pf, 127), "{name}");
    }
    assert!(text.contains("again: 0\n"), "{text}");
    assert!(grown(&guest, "counters.before", "counters.after").is_empty());
    let status = guest.json("status.json");
    for hca in status["hcas"].as_array().expect("HCAs") {
        assert_eq!(hca["vfs"].as_array().map(Vec::len), Some(127), "{}", hca["pci"]);
    }
}

#[test]
#[ignore = "eight PFs with four VFs each take minutes, and so does firmware that never comes up"]
fn eight_pfs_come_up_and_firmware_that_does_not_is_named() {
    let guest = boot("card_eight");
    guest.assert_success();
    let text = guest.stdout();
    println!("{text}");
    assert_sound(&guest);
    let report = guest.boot_json();
    assert_eq!(report["verdict"], "ready", "{report:#}");
    let usec = |name: &str| report[name].as_u64().expect("time");
    println!("boot took {} ms", (usec("finished_usec") - usec("started_usec")) / 1000);
    for pf in 0..8 {
        assert_eq!(guest.file(&format!("fresh.{}", pf + 1)), planned("0200:0070", pf, 4), "{pf}");
    }
    assert!(text.contains("status: 0\n"), "{text}\n{}", guest.file("status"));
    let dmesg = guest.file("dmesg");
    let gave_up =
        |l: &str| l.contains("0001:08:00.0") && l.contains("pre-initializing state, aborting");
    assert!(dmesg.lines().any(gave_up), "{dmesg}");
    assert!(text.contains("pre-init: 1\n") || text.contains("pre-init: 3\n"), "{text}");
    let status = guest.json("pre-init.json");
    let hcas = status["hcas"].as_array().expect("HCAs");
    let hca = hcas.iter().find(|h| h["pci"] == "0001:08:00.0").expect("the eighth");
    assert_eq!(hca["ladder"]["missing"], "driver", "{hca:#}");
    let why = hca["ladder"]["why"].as_str().unwrap_or_default();
    assert!(why.contains("pre-initializing"), "{hca:#}");
    assert!(text.contains("mended: 0\n"), "{text}");
    assert_eq!(guest.file("mended"), planned("0200:0070", 7, 4));
}

#[test]
#[ignore = "a hundred and sixty binds take minutes"]
fn in_twenty_rounds_vfs_get_the_same_names() {
    let guest = boot("card_names_rounds");
    guest.assert_success();
    assert_sound(&guest);
    assert!(!guest.stdout().contains("card"), "{}", guest.stdout());
    let rounds = guest.file("rounds");
    for card in ["1", "2"] {
        let of_card = rounds.lines().filter_map(|line| line.strip_prefix(card)?.strip_prefix(' '));
        let lines: Vec<&str> = of_card.collect();
        assert_eq!(lines.len(), 80, "{rounds}");
        for (at, line) in lines.iter().enumerate() {
            assert_eq!(*line, lines[at % 4], "round {}: {rounds}", at / 4 + 1);
        }
    }
}

#[test]
#[ignore = "fifty reloads of the drivers take minutes"]
fn the_plan_survives_fifty_reloads_of_the_real_drivers() {
    let guest = boot("card_reloads");
    guest.assert_success();
    assert_sound(&guest);
    assert_eq!(guest.file("planned"), planned("0200:0070", 0, 4));
    let text = guest.stdout();
    println!("{text}");
    let figure = |l: &&str| !l.starts_with("reloads: 50 in ");
    assert_eq!(text.lines().filter(figure).collect::<Vec<_>>(), [""; 0]);
}

#[test]
#[ignore = "thirty boots take minutes"]
fn thirty_boots_come_to_the_same() {
    const BOOTS: usize = 30;
    let scenario = Scenario::load(&tools::project().join("tests/vm/scenarios"), "card_boots")
        .unwrap_or_else(|e| panic!("{e}"));
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                loop {
                    let boot = next.fetch_add(1, Ordering::Relaxed);
                    if boot >= BOOTS {
                        return;
                    }
                    let label = format!("card_boots-{boot}");
                    let outcome = machine::run(&scenario, &label);
                    outcomes.lock().expect("outcomes").push((boot, outcome));
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("outcomes");
    let texts: BTreeMap<String, Vec<usize>> =
        outcomes.iter().fold(BTreeMap::new(), |mut texts, (boot, outcome)| {
            let guest = outcome.as_ref().unwrap_or_else(|e| panic!("boot {boot}: {e}"));
            guest.assert_success();
            let verdict = &guest.boot_json()["verdict"];
            texts.entry(format!("{}boot {verdict}", guest.stdout())).or_default().push(*boot);
            texts
        });
    assert_eq!(texts.len(), 1, "outcomes and the boots that had them: {texts:#?}");
    let text = texts.keys().next().expect("an outcome");
    println!("{BOOTS} boots came to:\n{text}");
    assert!(text.ends_with("boot \"ready\"") && text.contains("\nstatus 0\n"), "{text}");
    for (vf, pf) in [(0, 0), (3, 0), (0, 1), (3, 1)] {
        assert!(text.contains(&format!("\n{vf} mlx5_{pf}v{vf} ib{pf}v{vf}\n")), "{text}");
    }
}
