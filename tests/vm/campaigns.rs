//! Long campaigns, run by `make test-all` alone.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::bed::outcome::Outcome;
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
    guest
        .journal
        .find("networking.service finished before the interface appeared")
        .expect("who and why");
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
    assert_eq!((&own["netdev"], &own["reason"]), (&"ib0".into(), &serde_json::Value::Null));
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
    for (pf, hca) in status["hcas"].as_array().expect("HCAs").iter().enumerate() {
        let vfs = hca["vfs"].as_array().expect("VFs");
        assert_eq!(vfs.len(), 127, "{}", hca["pci"]);
        assert_eq!(vfs[126]["node_guid"], format!("0200:0070:{pf:02x}00:007e"));
        assert!(vfs.iter().all(|vf| vf["link_state"] == "follow"), "{vfs:?}");
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
    let why = hca["ladder"]["reason"].as_str().unwrap_or_default();
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

/// What `work` comes to for each number below `count`, for two at a time.
pub(crate) fn side_by_side<T: Send>(
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<(usize, T)> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    if nth >= count {
                        return;
                    }
                    let outcome = work(nth);
                    outcomes.lock().expect("outcomes").push((nth, outcome));
                }
            });
        }
    });
    outcomes.into_inner().expect("outcomes")
}

/// What `count` boots of a scenario came to, which is the same: the output of its script and
/// boot's verdict. IBPROV_CAMPAIGN_BOOTS is how many there are instead.
fn alike(name: &str, count: usize) -> String {
    let count =
        given("IBPROV_CAMPAIGN_BOOTS").map_or(count, |boots| usize::try_from(boots).expect("few"));
    let scenario = Scenario::load(&tools::project().join("tests/vm/scenarios"), name)
        .unwrap_or_else(|e| panic!("{e}"));
    let outcomes = side_by_side(count, |boot| machine::run(&scenario, &format!("{name}-{boot}")));
    let texts: BTreeMap<String, Vec<usize>> =
        outcomes.iter().fold(BTreeMap::new(), |mut texts, (boot, outcome)| {
            let guest = outcome.as_ref().unwrap_or_else(|e| panic!("boot {boot}: {e}"));
            guest.assert_success();
            let verdict = &guest.boot_json()["verdict"];
            texts.entry(format!("{}boot {verdict}", guest.stdout())).or_default().push(*boot);
            texts
        });
    assert_eq!(texts.len(), 1, "outcomes and the boots that had them: {texts:#?}");
    let text = texts.into_keys().next().expect("an outcome");
    println!("{count} boots of {name} came to:\n{text}");
    assert!(text.ends_with("boot \"ready\"") && text.contains("\nstatus 0\n"), "{text}");
    text
}

#[test]
#[ignore = "thirty boots take minutes"]
fn thirty_boots_come_to_the_same() {
    let text = alike("card_boots", 30);
    for (vf, pf) in [(0, 0), (3, 0), (0, 1), (3, 1)] {
        assert!(text.contains(&format!("\n{vf} mlx5_{pf}v{vf} ib{pf}v{vf}\n")), "{text}");
    }
}

#[test]
#[ignore = "twenty boots take minutes"]
fn in_twenty_boots_unnamed_vfs_are_numbered_alike() {
    let text = alike("card_boots_in_order", 20);
    for (pf, first) in [(0, 2), (1, 6)] {
        for vf in 0..4 {
            let number = first + vf;
            let line = format!("\n{vf} mlx5_{number} ib{number}\n");
            assert!(text.contains(&line), "VF {vf} of PF {pf}: {text}");
        }
    }
}

/// A number that who runs the test may give.
pub(crate) fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// Rounds of kills amid faults on one machine, the `nth`. IBPROV_CAMPAIGN_SEED repeats
/// those of a run, IBPROV_CAMPAIGN_FIRST begins with another than the first,
/// IBPROV_CAMPAIGN_ROUNDS is how many there are.
fn rounds_of_kills(nth: u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let seed = given("IBPROV_CAMPAIGN_SEED").unwrap_or(now % 100_000);
    let first = given("IBPROV_CAMPAIGN_FIRST").unwrap_or(1);
    let count = given("IBPROV_CAMPAIGN_ROUNDS").unwrap_or(100);
    // Past the test harness, which would show it of a run that fails alone, and lose it with
    // one that is interrupted.
    let again = format!("IBPROV_CAMPAIGN_SEED={seed}");
    writeln!(std::io::stderr(), "kill_rounds.{nth}: {again}").expect("standard error");
    let folder = tools::project().join("tests/vm/scenarios");
    let mut scenario = Scenario::load(&folder, "kill_rounds").expect("scenario");
    let words = format!(" bed.seed={seed} bed.nth={nth} bed.first={first} bed.rounds={count}");
    scenario.settings.cmdline.push_str(&words);
    let guest = machine::run(&scenario, &format!("kill_rounds.{nth}")).expect("a machine");
    guest.assert_success();
    let text = guest.stdout();
    println!("{text}");
    assert_sound(&guest);
    assert!(text.contains("first: 0 0 0 0\n"), "{text}");
    let host = guest.file("planned");
    let host = host.strip_prefix(&planned("0200:0070", 0, 2)).unwrap_or_else(|| panic!("{host}"));
    let want = [
        "VF 0: infiniband/mlx5_0v0 net/ib0v0",
        "VF 1: infiniband/mlx5_0v1 net/ib0v1",
        "vf 0 NODE_GUID 02:00:00:70:00:00:00:00, PORT_GUID 02:00:00:70:00:01:00:00, link-state auto",
        "vf 1 NODE_GUID 02:00:00:70:00:00:00:01, PORT_GUID 02:00:00:70:00:01:00:01, link-state auto",
        "ib0 mtu: 1500",
        "ib0 umcast: 1",
        "ib0.8001: 0x8001",
        "guests: active active ",
    ];
    for (have, want) in host.lines().zip(want) {
        assert!(have.starts_with(want), "{have:?} instead of {want:?}");
    }
    assert_eq!(host.lines().count(), want.len(), "{host}");
    let rounds: Vec<&str> = text.lines().filter(|l| l.starts_with("round ")).collect();
    let right = rounds.iter().filter(|l| l.ends_with(": right")).count();
    let all = usize::try_from(count).expect("few");
    assert_eq!(right, all, "of the rounds of {again}:\n{}", guest.file("wrong"));
    let killed = rounds.iter().filter(|l| l.contains(" ms: 137, ")).count();
    assert!(4 * killed >= all, "only {killed} of {all} were killed in the middle");
    // Where the script lends a hand, the round does not show that ibprov needs none.
    let helped = text.lines().filter(|l| l.starts_with("after the kill of round ")).count();
    assert!(10 * helped <= all, "in {helped} of {all} rounds the script unloaded ib_ipoib");
}

#[test]
#[ignore = "a hundred kills amid faults take a quarter of an hour"]
fn after_a_hundred_kills_amid_faults_the_next_run_is_right() {
    rounds_of_kills(0);
}

#[test]
#[ignore = "a hundred kills amid faults take a quarter of an hour"]
fn after_another_hundred_kills_amid_faults_the_next_run_is_right() {
    rounds_of_kills(1);
}

/// The faults of the card that `fault_phases` knows.
///
/// vpd=none is none of them: whether a card has product data at all is read when the
/// card's module is loaded, and no phase of a boot can change it.
const FAULTS: &str = "none silent slow pages link sm stale guid-refuse policy-refuse vpd-slow \
     slow.INIT_HCA serial link-delay sm-delay vf-silent vf-syndrome fail.ALLOC_XRCD \
     fail.ACCESS_REG vf-fail.INIT_HCA drop.ENABLE_HCA drop.QUERY_HCA_CAP drop.CREATE_CQ \
     drop.RST2INIT_QP drop.MAD_IFC drop.QUERY_HCA_VPORT_CONTEXT vf-drop.INIT_HCA \
     vf-drop.ALLOC_XRCD gone syndrome init eth guid-drop policy-drop vpd fw-wait fail.INIT_HCA \
     active-delay vpd-late syndrome-norfr vf-gone vf-fw-wait fail.CREATE_CQ \
     fail.QUERY_HCA_VPORT_CONTEXT vf-fail.ALLOC_XRCD drop.INIT_HCA drop.CREATE_QP \
     drop.ALLOC_XRCD drop.ACCESS_REG drop.MODIFY_HCA_VPORT_CONTEXT \
     drop.CREATE_MKEY vf-drop.CREATE_CQ drop.CREATE_EQ drop.MANAGE_PAGES syndrome-reset";

/// Those of the simulated HCA, which `fault_phases_hca` has: locks of the kernel that are held
/// for good, and what MLNX_OFED's files do.
const HCA_FAULTS: &str = "held-lock held-rtnl port-query vf-query sriov-errno probe-errno \
     vf-probe-errno vf-probe-delay";

/// The phases at which a fault comes, as the script names them; without a fault there is the
/// first one alone.
const PHASES: [&str; 6] = ["before", "probe", "rdma", "netdev", "vfs", "bound"];

/// Faults that need a machine for each phase: once such a command is lost in a probe,
/// `mlx5_core` hangs for good. Of the first, the probe waits in `mlx5_cmd_allowed_opcode()` for
/// the slots of all commands, and that of the lost one stays taken; of the second, in
/// `cmd_work_handler()` for the one slot that commands about pages have. The driver can be
/// neither unloaded nor bound then, and journald may hang with it: it reads the uevent file of
/// a device that a message of the kernel is about.
const FOR_GOOD: [&str; 2] = ["drop.CREATE_EQ", "drop.MANAGE_PAGES"];

/// Faults with which no boot can be ready that has them from before its beginning to its end:
/// the driver of the PF or of its VFs cannot be bound, or the plan cannot be set. Of those
/// that are not here the host itself says whether it is ready.
const NEVER_READY: [&str; 27] = [
    "sriov-errno",
    "probe-errno",
    "vf-probe-errno",
    "silent",
    "gone",
    "pages",
    "eth",
    "guid-drop",
    "guid-refuse",
    "policy-drop",
    "policy-refuse",
    "fw-wait",
    "vf-silent",
    "vf-fw-wait",
    "fail.INIT_HCA",
    "fail.ALLOC_XRCD",
    "fail.CREATE_CQ",
    "vf-fail.INIT_HCA",
    "vf-fail.ALLOC_XRCD",
    "drop.ENABLE_HCA",
    "drop.QUERY_HCA_CAP",
    "drop.INIT_HCA",
    "drop.CREATE_CQ",
    "drop.ALLOC_XRCD",
    "vf-drop.INIT_HCA",
    "vf-drop.ALLOC_XRCD",
    "vf-drop.CREATE_CQ",
];

/// Faults that take from a host what it had: the driver looks at the health of its card every
/// two seconds, and gives it up. So they can come to a boot that has verified everything.
const STRIKES: [&str; 7] =
    ["silent", "gone", "syndrome", "syndrome-reset", "vf-silent", "vf-gone", "vf-syndrome"];

/// After so many milliseconds the driver has found such a fault, under emulation too: it takes
/// a card that is silent for dead after 6 s, any other fault sooner.
const STRUCK: u64 = 10_000;

/// What hangs, as a report says it, or the driver's word for a command that was not answered.
const HUNG: [&str; 8] = [
    "did not finish",
    "has not finished",
    "no answer before the deadline",
    "was still processing events",
    " holds /run/ibprov/lock/",
    "-110",
    "ETIMEDOUT",
    "timeout. Will cause a leak",
];

/// What the kernel says of firmware that it waits for.
const PRE_INIT: [&str; 4] =
    ["pre-initializing", "in initializing state", "Waiting for FW", "waiting for firmware"];

/// With this fault something can hang until the deadline, or until the driver gives up on a
/// command, and nothing says more than that. The probe of a card that is gone takes what it
/// reads for firmware that has not begun, and says that it waits only after 20 s.
fn hangs(fault: &str) -> bool {
    let hanging = [
        "slow",
        "fw-wait",
        "vf-fw-wait",
        "silent",
        "vf-silent",
        "gone",
        "vf-gone",
        "held-lock",
        "held-rtnl",
        "port-query",
        "vf-query",
        "vf-probe-delay",
    ];
    let commands = ["drop.", "vf-drop.", "slow."];
    hanging.contains(&fault) || commands.iter().any(|kind| fault.starts_with(kind))
}

/// What the report of a boot that fails says of a fault: one of these. Of a command that
/// fails, is slow or is not answered it names the command, or what hangs. Of firmware that has
/// failed it has the driver's word. No other fault makes a boot fail.
fn reasons(fault: &str) -> Vec<&str> {
    let dead = ["mlx5_error_sw_reset", "Fatal error", "error -67", "cannot be read"];
    // The driver core's word for a VF's probe that has ended with any error.
    let probe = ["failed with error"];
    let own = match fault {
        "silent" => vec!["error -16", "cannot be read", "reached miss count"],
        "gone" => [&PRE_INIT[..], &dead].concat(),
        "syndrome" | "syndrome-reset" => vec!["Fatal error"],
        "vf-silent" => [&PRE_INIT[..], &probe, &["cannot be read", "reached miss count"]].concat(),
        // The driver of the PF cannot enable a VF that does not answer.
        "vf-gone" => [&PRE_INIT[..], &probe, &dead, &["sriov_numvfs"]].concat(),
        // The reset that the driver of the VF asks for is one of the whole card.
        "vf-syndrome" => [&probe[..], &dead].concat(),
        // Without a request for a reset the driver says it, and goes on.
        "syndrome-norfr" => vec!["Health issue"],
        "serial" => vec!["INIT_HCA"],
        "pages" => vec!["MANAGE_PAGES", "ENOMEM"],
        // ib_core asks for the ports before it registers a device.
        "port-query" => vec!["has not registered an RDMA device"],
        // Of a lock that a registration waits for there is no other sign.
        "held-lock" => vec!["has not registered an RDMA device"],
        "held-rtnl" => vec!["ib_ipoib has not created a netdev"],
        "vf-query" => vec!["cannot be read: no answer before the deadline"],
        "sriov-errno" => vec!["ENOSPC"],
        "probe-errno" | "vf-probe-errno" => vec!["failed with error -5", "EIO"],
        "guid-refuse" => vec!["set node GUID", "set port GUID"],
        "policy-refuse" => vec!["set link state"],
        "guid-drop" => vec!["ignored it", "still uses other GUIDs"],
        // A VF that had none goes on with none, as if firmware had dropped what was set.
        "stale" => vec!["still uses other GUIDs", "ignored it"],
        "policy-drop" => vec!["ignored it"],
        "eth" => vec!["in Ethernet mode"],
        // The driver says that it waits after 20 s, which is when boot ends.
        "fw-wait" => [&PRE_INIT[..], &["has not registered an RDMA device"]].concat(),
        "vf-fw-wait" => [&PRE_INIT[..], &probe].concat(),
        _ => fault.split_once('.').map(|(_, command)| command).into_iter().collect(),
    };
    if hangs(fault) { [&HUNG[..], &own].concat() } else { own }
}

/// What is not as planned of a host, by what `host` in the script has written of it.
fn not_as_planned(host: &str) -> Option<String> {
    let plan = planned("0200:0070", 0, 2);
    let Some(rest) = host.strip_prefix(&plan) else {
        return Some(format!("instead of\n{plan}there is\n{host}"));
    };
    let value = |name: &str| rest.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
    let pf: Vec<&str> = value("PF: ").split(' ').collect();
    let is_named = |device: &str, kind: &str| {
        device.strip_prefix(kind).is_some_and(|name| !name.is_empty() && name != "*")
    };
    let &[rdma, netdev, "InfiniBand"] = &pf[..] else { return Some(host.to_owned()) };
    let is_up = is_named(rdma, "infiniband/") && is_named(netdev, "net/");
    let are_named = ["0", "1"]
        .iter()
        .all(|vf| value(&format!("VF {vf}: ")) == format!("{rdma}v{vf} {netdev}v{vf}"));
    let mut states = rest.lines().filter(|line| line.starts_with("vf "));
    let follow = states.all(|line| line.ends_with(" link-state auto"));
    (!(is_up && are_named && follow)).then(|| host.to_owned())
}

/// What is wrong with a boot: `pair` is a line of the script's file `pairs`. Where the boot
/// ended before the fault came (`missed`) it is one without a fault.
fn judged(guest: &Outcome, pair: &str, missed: bool) -> Vec<String> {
    let words: Vec<&str> = pair.split(' ').collect();
    let [fault, phase, code, took, since] = words[..] else { panic!("{pair:?}") };
    let number = |text: &str| -> u64 { text.parse().expect("milliseconds") };
    let name = format!("{fault}.{phase}");
    let mut wrong = Vec::new();
    // The longest time is 24 s; a start of a unit and of a program is under a second.
    if number(took) >= 27_000 {
        wrong.push("it took too long".to_owned());
    }
    // The kernel has said that the port does not come.
    if fault == "probe-errno" && number(took) >= 10_000 {
        wrong.push("it waited for a port whose probe has failed".to_owned());
    }
    let report = guest.json(&format!("{name}.json"));
    let reported = report["exit_code"].to_string();
    if reported != code {
        wrong.push(format!("the report is of another exit code: {report:#}"));
    }
    let (host, after) = (guest.file(&format!("{name}.host")), guest.file(&format!("{name}.after")));
    let lacks = not_as_planned(&host);
    match code {
        "0" if !missed => {
            if phase == "before" && NEVER_READY.contains(&fault) {
                wrong.push("with this fault no boot is ready".to_owned());
            }
            let struck = STRIKES.contains(&fault) && phase != "before" && number(since) < STRUCK;
            match &lacks {
                Some(lacks) if struck => println!("{pair}: after its last look: {lacks}"),
                Some(lacks) => wrong.push(format!("ready, and the host is not: {lacks}")),
                None => {}
            }
            if fault == "none" && host.matches("link-state auto").count() != 2 {
                wrong.push(format!("no link states: {host}"));
            }
        }
        "0" => {}
        _ if missed => wrong.push(format!("failed without a fault: {}", report["findings"])),
        _ => {
            let (text, why) = (report["findings"].to_string(), reasons(fault));
            if !why.iter().any(|why| text.contains(why)) {
                wrong.push(format!("none of {why:?}: {text}"));
            }
        }
    }
    // The fault may strike, and the driver may recover, between the boot and the question.
    if let (Some(lacks), Some(_)) = (lacks, not_as_planned(&after)) {
        let status = guest.file(&format!("{name}.status"));
        if status.lines().last() == Some("0") {
            wrong.push(format!("status says 0: {status}and the host is not ready: {lacks}"));
        }
    }
    wrong.iter().map(|wrong| format!("{pair}: {wrong}")).collect()
}

/// The boots of a machine that has one fault, at each phase or at one.
#[derive(Default)]
struct Boots {
    count: usize,
    /// Those of them that ended before the fault came.
    missed: Vec<String>,
    wrong: Vec<String>,
}

/// The boots of a machine that has one fault, at each phase of a boot or at `phase` alone.
fn boots_with(fault: &str, phase: Option<&str>) -> Result<Boots, String> {
    let folder = tools::project().join("tests/vm/scenarios");
    let is_hcas = HCA_FAULTS.split_whitespace().any(|one| one == fault);
    let name = if is_hcas { "fault_phases_hca" } else { "fault_phases" };
    let mut scenario = Scenario::load(&folder, name)?;
    scenario.settings.cmdline.push_str(&format!(" bed.faults={fault}"));
    let mut label = format!("fault_phases.{fault}");
    if let Some(phase) = phase {
        scenario.settings.cmdline.push_str(&format!(" bed.phase={phase}"));
        scenario.settings.timeout = 400;
        label.push_str(&format!(".{phase}"));
    }
    let guest = machine::run(&scenario, &label)?;
    guest.assert_success();
    let (pairs, missed) = (guest.file("pairs"), guest.file("missed"));
    // Past the test harness, which would show the last machine's with the first's.
    drop(write!(std::io::stderr(), "{pairs}{missed}"));
    let is_missed = |pair: &str| {
        let mut all = missed.lines().filter_map(|line| line.strip_suffix(": ended first"));
        all.any(|missed| pair.starts_with(&format!("{missed} ")))
    };
    let mut boots = Boots::default();
    for pair in pairs.lines() {
        boots.count += 1;
        boots.wrong.extend(judged(&guest, pair, is_missed(pair)));
        boots.missed.extend(is_missed(pair).then(|| pair.to_owned()));
    }
    // All is well in the end, where an end was tried, and nothing was stuck on the way.
    let end = if phase.is_some() { "" } else { "last: 0 0\n" };
    if guest.stdout() != end {
        boots.wrong.push(format!("{label}: {}", guest.stdout()));
    }
    Ok(boots)
}

/// What is wrong with the boots that have one fault, at each phase of a boot.
fn judged_fault(fault: &str) -> Result<(), String> {
    let phases = PHASES.map(Some);
    let machines = if FOR_GOOD.contains(&fault) { &phases[..] } else { &[None] };
    let mut all = Boots::default();
    for &phase in machines {
        // A machine that has come to nothing does not keep the others from telling.
        let boots = catch_unwind(|| boots_with(fault, phase))
            .unwrap_or_else(|_| Err("no outcome, see above".to_owned()));
        match boots {
            Ok(boots) => {
                all.count += boots.count;
                all.missed.extend(boots.missed);
                all.wrong.extend(boots.wrong);
            }
            Err(why) => all.wrong.push(format!("{fault} {}: {why}", phase.unwrap_or_default())),
        }
    }
    // A script that has ended early, or whose faults come too late, has tried nothing.
    let expected = if fault == "none" { 1 } else { PHASES.len() };
    if all.count != expected || 3 * all.missed.len() > expected {
        let (count, missed) = (all.count, &all.missed);
        all.wrong.push(format!("{fault}: {count} of {expected} boots, too late: {missed:?}"));
    }
    if all.wrong.is_empty() {
        return Ok(());
    }
    let wrong = all.wrong.join("\n");
    drop(writeln!(std::io::stderr(), "wrong: {wrong}"));
    Err(wrong)
}

/// Each fault in a machine of its own, or in several; IBPROV_CAMPAIGN_FAULTS, a list with commas: these
/// instead.
#[test]
#[ignore = "three hundred boots of ibprov take an hour"]
fn every_fault_at_every_phase_of_a_boot_ends_in_time() {
    let given = std::env::var("IBPROV_CAMPAIGN_FAULTS");
    let faults = given.unwrap_or_else(|_| format!("{FAULTS} {HCA_FAULTS}").replace(' ', ","));
    let faults: Vec<&str> = faults.split(',').collect();
    let outcomes = side_by_side(faults.len(), |nth| judged_fault(faults[nth]));
    let wrong: Vec<String> = outcomes.into_iter().filter_map(|(_, ended)| ended.err()).collect();
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), faults.len(), wrong.join("\n"));
}
