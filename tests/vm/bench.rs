//! `make bench`: what ibprov costs, measured on the shipped binary, and held
//! against its limits. Boots give the times of the units in a guest, and what a
//! start of a program costs there, since each limit has starts in it; the status screen
//! is timed on this machine, on a tree of 128 netdevs, so is a start, and `check` on a
//! long syslog, against grep.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a program to watch, which runs other programs"
)]
#![allow(dead_code, reason = "the bed is shared by two lanes, neither of which needs all of it")]

#[path = "../bed/mod.rs"]
mod bed;
mod figures;
mod guest_times;
#[path = "../tree/host.rs"]
mod host;
mod machine;
#[path = "../boot/nspawn.rs"]
mod nspawn;
#[path = "../bed/told.rs"]
mod told;

use bed::reports;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use bed::outcome::{Outcome, children_seconds};
use figures::{Line, ROUNDS, Spread, spread, spread_of};

fn main() -> ExitCode {
    let binary =
        bed::stage::installed().expect("the binary as it is shipped").join("usr/sbin/ibprov");
    // cargo test --test bench -- PART ...
    let parts: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let binary = binary.as_path();
    let all: [(&str, &dyn Fn() -> Vec<Line>); 10] = [
        ("boot", &|| [HCA, CARD].iter().flat_map(boot).collect()),
        ("vpd", &|| vec![product_data()]),
        ("start", &|| starts_here(binary).into()),
        ("status", &|| vec![status(binary)]),
        ("vfs", &vfs),
        ("named", &|| {
            let on_card = named_vfs("vf_names_bench", NAMED_ON_CARD);
            on_card.into_iter().chain(named_vfs("vf_names_bench_ofed", NAMED_BY_FILES)).collect()
        }),
        ("interface", &interface),
        ("check", &|| {
            let logs = check(binary).into_iter().chain([check_journal(binary)]);
            logs.chain(check_live()).collect()
        }),
        ("decision", &|| vec![decision()]),
        ("guests", &|| vec![guest_start()]),
    ];
    let (mut lines, mut failed) = (Vec::new(), Vec::new());
    failed.extend(parts.iter().filter(|part| all.iter().all(|(name, _)| name != part)).cloned());
    for (part, figures) in all {
        if !parts.is_empty() && !parts.iter().any(|p| p == part) {
            continue;
        }
        // What made it panic has been printed; the figures of the others are wanted too.
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(figures)) {
            Ok(figures) => lines.extend(figures),
            Err(_) => failed.push(part.to_owned()),
        }
    }

    println!("\n{:44} {:>10} {:>10}", "median", "measured", "limit");
    for line in &lines {
        if line.figure.is_nan() {
            println!("{}:", line.what);
            continue;
        }
        let limit =
            if line.limit.is_finite() { format!("{:.2}", line.limit) } else { String::new() };
        let verdict = if line.is_too_much() { "TOO MUCH: " } else { "" };
        println!(
            "{:44} {:>10.2} {limit:>10} {:4} {verdict}{}",
            line.what, line.figure, line.unit, line.from
        );
    }
    let broken = lines.iter().filter(|l| l.is_too_much()).count();
    if broken > 0 {
        eprintln!("bench: {broken} limits exceeded");
    }
    if !failed.is_empty() {
        eprintln!("bench: parts without figures, for they failed: {}", failed.join(", "));
    }
    if broken == 0 && failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The units of a boot on one bed, on as many machines as it takes until each ratio that has a
/// limit is known to a tenth.
fn boot(bed: &Bed) -> Vec<Line> {
    const MOST: usize = 12;
    const NARROW: f64 = 0.1;
    let scenarios = bed::tools::project().join("tests/vm/scenarios");
    let scenario = bed::scenario::Scenario::load(&scenarios, bed.scenario).expect("a scenario");
    let mut machines: Vec<Vec<Line>> = Vec::new();
    let mut stood_still = 0;
    let ratios = |machines: &[Vec<Line>], at: usize| -> Vec<f64> {
        machines.iter().map(|lines| lines[at].figure).collect()
    };
    let is_judged = |line: &Line| line.unit == "x" && line.limit.is_finite();
    let is_known = |machines: &[Vec<Line>]| {
        let judged = (0..machines[0].len()).filter(|at| is_judged(&machines[0][*at]));
        let mut intervals = judged.map(|at| figures::interval(&ratios(machines, at)));
        intervals.all(|(low, high)| high - low < NARROW)
    };
    while machines.is_empty() || machines.len() < MOST && !is_known(&machines) {
        println!("Booting a guest and measuring {ROUNDS} rounds on the {} ...", bed.name);
        let label = format!("{}-{}", bed.scenario, machines.len() + stood_still);
        let measured = || {
            let guest = machine::run(&scenario, &label).expect("a machine");
            guest.assert_success();
            times(&guest, bed).into_iter().chain(own_use(&guest)).collect()
        };
        // Of a machine that stands still it has been printed where it stood.
        match std::panic::catch_unwind(measured) {
            Ok(lines) => machines.push(lines),
            Err(_) => stood_still += 1,
        }
        assert!(stood_still < 3, "three machines of the {} stood still", bed.name);
    }
    if stood_still > 0 {
        println!("{stood_still} of {} machines stood still", machines.len() + stood_still);
    }
    let all: Vec<Vec<f64>> = (0..machines[0].len()).map(|at| ratios(&machines, at)).collect();
    let last = machines.pop().expect("a machine").into_iter().zip(all);
    let lines = last.map(|(line, all)| if is_judged(&line) { line.mean(&all) } else { line });
    std::iter::once(Line::head(bed.name)).chain(lines).collect()
}

/// What a boot is measured on, and how much longer than bare modprobe ibprov may take.
struct Bed {
    name: &'static str,
    scenario: &'static str,
    /// Until the netdev is named, than modprobe without a sandbox.
    bare: f64,
    /// Than modprobe in the sandbox of `ibprov.service`.
    boxed: f64,
}

const HCA: Bed = Bed { name: "simulated HCA", scenario: "bench", bare: 1.15, boxed: 1.15 };
/// The driver stays loaded: ib_ipoib alone makes the netdev, in a fifth of a second, a third
/// of which systemd takes for the sandbox under emulation.
const CARD: Bed = Bed { name: "card", scenario: "bench_card", bare: f64::INFINITY, boxed: 1.25 };

/// From the start of the unit to the netdev named, and to the unit's end, when
/// the network may begin: ibprov against bare modprobe.
fn times(guest: &Outcome, bed: &Bed) -> Vec<Line> {
    let rounds = guest.file("rounds");
    let of = |unit: &str, column: usize| {
        let times = rounds.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let usec = |n: usize| words[n].parse::<f64>().expect("microseconds");
            (words[0] == unit).then(|| (usec(column) - usec(1)) / 1000.0)
        });
        spread(times.collect())
    };
    let line = |what, other, column, limit| {
        let (ibprov, bare) = (of("ibprov", column), of(other, column));
        Line {
            what,
            figure: ibprov.median / bare.median,
            at_least: None,
            limit,
            unit: "x",
            from: format!("ibprov {} ms, {other} {} ms", ibprov.text(), bare.text()),
        }
    };
    // Where the time goes. What is negative was over before it was waited for.
    let part = |what, begin: Moment<'_>, end: Moment<'_>| {
        let times = spread((0..ROUNDS).map(|n| (end(n) - begin(n)) / 1000.0).collect());
        Line::share(what, &times)
    };
    let unit = |unit: &str, column: usize| -> Moment<'_> {
        let of_unit = |l: &&str| l.split(' ').next() == Some(unit);
        let own: Vec<&str> = rounds.lines().filter(of_unit).collect();
        Box::new(move |n| {
            own[n].split_whitespace().nth(column).unwrap().parse().expect("microseconds")
        })
    };
    let (ibprov, bare) = (|column| unit("ibprov", column), |column| unit("bare", column));
    let json: Vec<_> = (1..=ROUNDS).map(|n| guest.json(&format!("ibprov-{n}.json"))).collect();
    let report = |pointer: &'static str| -> Moment<'_> {
        let json = &json;
        Box::new(move |n| json[n].pointer(pointer).unwrap().as_f64().expect("microseconds"))
    };
    let modprobe_ended = || -> Moment<'_> {
        let (started, took) = (report("/steps/0/started_usec"), report("/steps/0/took_usec"));
        Box::new(move |n| started(n) + took(n))
    };
    let mut lines = vec![
        line("unit start to netdev named, ratio", "bare", 2, bed.bare),
        // No limit: bare modprobe itself takes 1.2 times as long in the sandbox.
        line("unit start to unit's end, ratio", "bare", 3, f64::INFINITY),
        line("the same, bare in ibprov's sandbox: named", "boxed", 2, bed.boxed),
        line("the same, bare in ibprov's sandbox: end", "boxed", 3, bed.boxed),
        part("  ibprov: unit start to its process", ibprov(1), ibprov(4)),
        part("  its process to main(): sandbox, linking", ibprov(4), report("/started_usec")),
        part("  main() to modprobe", report("/started_usec"), report("/steps/0/started_usec")),
        part("  modprobe, with its start", report("/steps/0/started_usec"), modprobe_ended()),
        part("  waiting: modprobe to netdev named", modprobe_ended(), ibprov(2)),
        part("  netdev named to report", ibprov(2), report("/finished_usec")),
        part("  report to process ended", report("/finished_usec"), ibprov(5)),
        part("  process ended to unit's end", ibprov(5), ibprov(3)),
        part("  bare: unit start, modprobe, to udevadm", bare(1), bare(4)),
        part("  waiting: udevadm's start to netdev named", bare(4), bare(2)),
        part("  netdev named to udevadm ended", bare(2), bare(5)),
        part("  udevadm ended to unit's end", bare(5), bare(3)),
    ];
    lines.extend(starts(guest, &["ibprov", "bare"]));
    lines
}

/// What asking a card for its product data adds to a boot, which has them kept otherwise.
fn product_data() -> Line {
    println!("Booting a guest and asking for product data ...");
    let guest = machine::boot("vpd_bench");
    guest.assert_success();
    let rounds = guest.file("rounds");
    let of = |who: &str| {
        let times = rounds.lines().filter_map(|l| l.strip_prefix(who)?.trim().parse::<f64>().ok());
        spread(times.map(|usec| usec / 1000.0).collect())
    };
    let (asked, kept) = (of("asked"), of("kept"));
    Line {
        what: "a boot that asks for product data, more",
        figure: asked.median - kept.median,
        at_least: None,
        limit: 5.0,
        unit: "ms",
        from: format!("asked {} ms, kept {} ms", asked.text(), kept.text()),
    }
}

/// A moment of each round, microseconds of CLOCK_MONOTONIC.
type Moment<'a> = Box<dyn Fn(usize) -> f64 + 'a>;

/// The programs that were started in one more round of each of `who`, and what it costs
/// in this guest to start one.
fn starts(guest: &Outcome, who: &[&str]) -> Vec<Line> {
    let count = |who: &&str| {
        let programs = started(guest, who);
        let text: Vec<String> = programs.iter().map(|(name, n)| format!("{n} {name}")).collect();
        Line {
            what: "  programs started meanwhile, by all",
            figure: programs.values().sum::<usize>() as f64,
            at_least: None,
            limit: f64::INFINITY,
            unit: "",
            from: format!("{who}: {}", text.join(", ")),
        }
    };
    let programs = [
        ("true", "  one start: true"),
        ("modprobe", "  one start: modprobe"),
        ("udevadm", "  one start: udevadm"),
        ("ibprov", "  one start: ibprov"),
    ];
    let costs = programs.map(|(program, what)| Line::share(what, &start_cost(guest, program)));
    who.iter().map(count).chain(costs).collect()
}

/// How often each program was started while `who` was at it.
fn started(guest: &Outcome, who: &str) -> BTreeMap<String, usize> {
    let mut programs = BTreeMap::new();
    for path in guest.file(&format!("started.{who}")).lines() {
        // A child of ours is the program itself.
        let name = if path == "/proc/self/exe" { "ibprov" } else { path };
        *programs.entry(name.rsplit('/').next().expect("a name").to_owned()).or_default() += 1;
    }
    programs
}

/// What it costs in the guest to start `program`, which then does nothing, milliseconds.
fn start_cost(guest: &Outcome, program: &str) -> Spread {
    let costs = guest.file("costs");
    let of = |l: &str| Some(l.strip_prefix(program)?.trim().parse::<f64>().ok()? / 1000.0);
    spread(costs.lines().filter_map(of).collect())
}

/// What a start costs on this machine, from start to end of the process. The least of
/// many: other work on the machine only adds to it.
fn starts_here(binary: &Path) -> [Line; 2] {
    let host = host::Host::healthy();
    let tree = host.path("").display().to_string();
    let line = |what, args: &[&str], limit| {
        let once = || {
            let begin = Instant::now();
            let out = Command::new(binary).args(args).output().expect("ibprov");
            let took = begin.elapsed().as_secs_f64() * 1000.0;
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            took
        };
        // The first fills the caches.
        once();
        let times = spread((0..3 * ROUNDS).map(|_| once()).collect());
        let from = format!("the least; median {}", times.text());
        Line { what, figure: times.least, at_least: None, limit, unit: "ms", from }
    };
    [
        line("ibprov --version, this machine", &["--version"], 5.0),
        line(
            "ibprov boot --dry-run, a small tree, here",
            &["--root", &tree, "boot", "--dry-run"],
            15.0,
        ),
    ]
}

/// How long VFs take: by the script that sites use, by a hand-written sequence
/// of the same kernel calls, and by ibprov.
fn vfs() -> Vec<Line> {
    println!("Booting a guest and making VFs ...");
    let guest = machine::boot("vf_bench");
    guest.assert_success();
    assert_eq!(guest.stdout(), "", "VFs are missing");
    let times = guest.file("times");
    let of = |who: &str, vfs: u32, probe: u32| {
        let key = format!("{who} {vfs} {probe} ");
        let times = times.lines().filter_map(|l| l.strip_prefix(&key)?.parse::<f64>().ok());
        spread_of(times.collect())
    };
    let ratio = |what, other, (vfs, probe), limit| {
        let (ibprov, other_times) = (of("by_ibprov", vfs, probe), of(other, vfs, probe));
        Line::ratio(what, &ibprov, (other, &other_times), limit)
    };
    let again = of("again", 16, 0);
    let own_starts = started(&guest, "again")["ibprov"] as f64;
    let none = f64::INFINITY;
    let mut lines = vec![
        ratio("16 VFs, probe 100 ms: ibprov / script", "script", (16, 100), 0.25),
        ratio("16 VFs, probe 100 ms: ibprov / by hand", "by_hand", (16, 100), 1.2),
        ratio("16 VFs, probe 0: ibprov / script", "script", (16, 0), none),
        ratio("16 VFs, probe 0: ibprov / by hand", "by_hand", (16, 0), none),
        ratio("16 VFs, probe 300 ms: ibprov / script", "script", (16, 300), 0.25),
        ratio("16 VFs, probe 300 ms: ibprov / by hand", "by_hand", (16, 300), 1.2),
        ratio("1 VF, probe 100 ms: ibprov / script", "script", (1, 100), none),
        ratio("8 VFs, probe 100 ms: ibprov / script", "script", (8, 100), none),
        Line {
            what: "16 VFs as planned: ibprov apply",
            figure: again.median,
            at_least: None,
            // The looks at PF and VFs, and what it costs here to start the programs.
            limit: 100.0 + 3.0 * 16.0 + own_starts * start_cost(&guest, "ibprov").median,
            unit: "ms",
            from: format!("{}, with {own_starts} starts", again.text()),
        },
    ];
    lines.extend(starts(&guest, &["again"]));
    lines
}

const NAMED_ON_CARD: [&str; 3] = [
    "16 named VFs, mlx5, probe 0: ibprov / by hand",
    "16 named VFs, mlx5, probe 100 ms: the same",
    "16 named VFs, mlx5, probe 300 ms: the same",
];
const NAMED_BY_FILES: [&str; 3] = [
    "16 named VFs, MLNX_OFED's files, probe 0",
    "16 named VFs, MLNX_OFED's files, probe 100 ms",
    "16 named VFs, MLNX_OFED's files, probe 300 ms",
];

/// VFs that have their names: by ibprov, and by a hand-written sequence that binds as
/// many at the same time.
fn named_vfs(scenario: &str, whats: [&'static str; 3]) -> Vec<Line> {
    println!("Booting a guest and naming VFs ...");
    let guest = machine::boot(scenario);
    guest.assert_success();
    assert_eq!(guest.stdout(), "", "VFs are not as they were asked for");
    let times = guest.file("times");
    let of = |who: &str, probe: u32| {
        let key = format!("{who} {probe} ");
        let times = times.lines().filter_map(|l| l.strip_prefix(&key)?.parse::<f64>().ok());
        spread_of(times.collect())
    };
    let ratio = |(what, probe): (&'static str, u32)| {
        Line::ratio(what, &of("by_ibprov", probe), ("by hand", &of("by_hand", probe)), 1.3)
    };
    let mut lines: Vec<Line> = whats.into_iter().zip([0, 100, 300]).map(ratio).collect();
    lines.extend(starts(&guest, &["by_hand", "by_ibprov"]));
    lines
}

/// From udev's word of a netdev to its settings made, against a bare unit that
/// makes the same one write.
fn interface() -> Vec<Line> {
    println!("Booting a guest and setting an interface up ...");
    let guest = machine::boot("iface_bench");
    guest.assert_success();
    assert_eq!(guest.stdout(), "", "settings are missing");
    let rounds = guest.file("rounds");
    let of = |who: &str, column: usize| {
        let lines = rounds.lines().filter_map(|l| l.strip_prefix(who)?.strip_prefix(' '));
        let millis = |l: &str| l.split(' ').nth(column)?.parse::<f64>().ok().map(|t| t / 1000.0);
        spread(lines.filter_map(millis).collect())
    };
    let bare = of("bare", 0);
    let line =
        |what, column, limit| Line::ratio(what, &of("ibprov", column), ("bare unit", &bare), limit);
    let mut lines = vec![
        // The bare unit is a shell without a sandbox. Until main(), which is systemd's
        // sandbox and the linking of the program, ibprov's alone takes 1.6 times as long.
        line("interface: udev to configured, ratio", 1, 2.5),
        line("  udev to ibprov's main()", 0, f64::INFINITY),
        line("  udev to who brings it up is decided", 2, f64::INFINITY),
        line("  udev to the unit active", 3, f64::INFINITY),
    ];
    lines.extend(starts(&guest, &["ibprov", "bare"]));
    lines
}

/// How long `ibprov iface` takes to say who brings an interface up, from start to
/// end, on this machine's own processor with a system bus that is up.
fn decision() -> Line {
    println!("Booting a container and asking who brings an interface up ...");
    let container = nspawn::boot("iface_decision");
    let usec = container.file("usec");
    let took = spread(usec.lines().filter_map(|l| Some(l.parse::<f64>().ok()? / 1000.0)).collect());
    Line {
        what: "who brings it up, with a live bus, this machine",
        figure: took.median,
        at_least: None,
        limit: 15.0,
        unit: "ms",
        from: took.text(),
    }
}

/// What the reports say of forks, memory and CPU time.
fn own_use(guest: &Outcome) -> Vec<Line> {
    let reports = |kind: &str, verdict: &str| -> Vec<_> {
        let report = |round| {
            let report = guest.json(&format!("{kind}-{round}.json"));
            assert_eq!(report["verdict"], verdict, "{report}");
            report
        };
        (1..=ROUNDS).map(report).collect()
    };
    let (with, without) = (reports("ibprov", "ready"), reports("none", "nothing-expected"));
    let of = |reports: &[serde_json::Value], field: &str, scale: f64| {
        spread(reports.iter().map(|r| r[field].as_f64().expect("a number") / scale).collect())
    };
    let modules = with[0]["modules"].as_array().expect("modules").len() as f64;
    let line = |what, spread: Spread, limit, unit| Line {
        what,
        figure: spread.median,
        at_least: None,
        limit,
        unit,
        from: spread.text(),
    };
    vec![
        line("children (modules + 2)", of(&with, "forks", 1.0), modules + 2.0, ""),
        line("peak memory", of(&with, "peak_memory_kib", 1.0), 8192.0, "KiB"),
        line("own CPU time without an HCA", of(&without, "cpu_usec", 1000.0), 100.0, "ms"),
        Line::share("  own CPU time with one, main() to report", &of(&with, "cpu_usec", 1000.0)),
        Line::share(
            "  before main(), systemd's sandbox too",
            &of(&with, "cpu_before_usec", 1000.0),
        ),
    ]
}

/// `ibprov status` on this machine, from start to end of the process.
fn status(binary: &Path) -> Line {
    let host = host::Host::with_hcas(128);
    let mut times = Vec::new();
    // The first fills the caches.
    for round in 0..=3 * ROUNDS {
        let begin = Instant::now();
        let out = Command::new(binary)
            .arg("--root")
            .arg(host.path(""))
            .arg("status")
            .output()
            .expect("ibprov status");
        let took = begin.elapsed().as_secs_f64() * 1000.0;
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        assert!((0..=128).all(|n| text.contains(&format!(" ib{n} "))), "{text}");
        if round > 0 {
            times.push(took);
        }
    }
    let times = spread(times);
    Line {
        what: "ibprov status, 128 netdevs, this machine",
        figure: times.median,
        at_least: None,
        limit: 50.0,
        unit: "ms",
        from: times.text(),
    }
}

/// `ibprov check` on 200 MiB of syslog, against grep with ten words, both on the
/// warm file; and the peak memory on five times as much.
fn check(binary: &Path) -> Vec<Line> {
    const MIB: usize = 1_048_576;
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("messages");
    std::fs::write(&path, syslog(200 * MIB)).expect("syslog");
    let seconds = |command: &mut Command| {
        let begin = Instant::now();
        let out = command.output().expect("a program of this machine");
        assert!(!out.stdout.is_empty(), "{command:?}");
        begin.elapsed().as_secs_f64()
    };
    let words = "ib0|mlx5_core|openibd|infiniband|opensm|ipoib|rdma|probe of|timed out|failed";
    let grep = || seconds(Command::new("grep").env("LC_ALL", "C").args(["-cE", words]).arg(&path));
    let ours = || seconds(Command::new(binary).args(["check", "--log"]).arg(&path));
    grep();
    let (grep, ours) = (
        spread((0..ROUNDS).map(|_| grep()).collect()),
        spread((0..ROUNDS).map(|_| ours()).collect()),
    );
    let ratio = Line {
        what: "check --log on 200 MiB, ratio to grep",
        figure: ours.median / grep.median,
        at_least: None,
        limit: 4.0,
        unit: "x",
        from: format!("ibprov {:.2} s, grep -cE {:.2} s", ours.median, grep.median),
    };
    let peak = peak_memory(binary, &path);
    vec![
        ratio,
        Line {
            what: "check --log -, peak memory on 1000 MiB",
            figure: peak,
            at_least: None,
            limit: 64.0,
            unit: "MiB",
            from: "the same five times over, by a pipe".to_owned(),
        },
    ]
}

/// `ibprov check` on a large binary journal, against `journalctl -o json` on it.
fn check_journal(binary: &Path) -> Line {
    const REMOTE: &str = "/usr/lib/systemd/systemd-journal-remote";
    let need = ["tests/vm/image/need.sh", "systemd-journal-remote"];
    assert!(Command::new("sh").args(need).status().expect("sh").success(), "{need:?}");
    let dir = tempfile::tempdir().expect("temporary directory");
    let (export, journal) = (dir.path().join("export"), dir.path().join("big.journal"));
    std::fs::write(&export, export_text(100_000)).expect("export");
    let mut remote = Command::new(REMOTE);
    let made = remote.arg("-o").arg(&journal).arg("--split-mode=none").arg(&export).output();
    let made = made.expect("systemd-journal-remote");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let seconds = |command: &mut Command| {
        let begin = Instant::now();
        let out = command.output().expect("a program of this machine");
        assert!(!out.stdout.is_empty(), "{command:?}");
        begin.elapsed().as_secs_f64()
    };
    let file = format!("--file={}", journal.display());
    let json = || seconds(Command::new("journalctl").args(["-o", "json", "--no-pager", &file]));
    let ours = || seconds(Command::new(binary).args(["check", "--log"]).arg(&journal));
    json();
    let (json, ours) = (
        spread((0..ROUNDS).map(|_| json()).collect()),
        spread((0..ROUNDS).map(|_| ours()).collect()),
    );
    Line {
        what: "check --log on a binary journal, ratio",
        figure: ours.median / json.median,
        at_least: None,
        limit: 1.0,
        unit: "x",
        from: format!("ibprov {:.2} s, journalctl -o json {:.2} s", ours.median, json.median),
    }
}

/// The lines of [`syslog`] as `journalctl -o export` writes them, with the fields
/// that journald adds.
fn export_text(entries: usize) -> String {
    let mut export = String::new();
    for (n, line) in syslog(128 * entries).lines().take(entries).enumerate() {
        let (program, text) = line
            .split_at("Mar  1 00:00:00 node-9.domain.tld ".len())
            .1
            .split_once(": ")
            .expect("a program");
        let program = program.split('[').next().expect("a name");
        export.push_str(&format!(
            "__REALTIME_TIMESTAMP={}\n__MONOTONIC_TIMESTAMP={}\n\
             _BOOT_ID=0123456789abcdef0123456789abcdef\n\
             _MACHINE_ID=fedcba9876543210fedcba9876543210\n_HOSTNAME=node-9\n\
             PRIORITY=6\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER={program}\n_COMM={program}\n\
             _TRANSPORT=syslog\n_UID=0\n_GID=0\n_CAP_EFFECTIVE=1ffffffffff\n\
             _SYSTEMD_UNIT={program}.service\n_SYSTEMD_SLICE=system.slice\nMESSAGE={text}\n\n",
            1_700_000_000_000_000 + 40_000 * n,
            1_000_000 + 40_000 * n,
        ));
    }
    export
}

/// Lines as busy nodes write them; some name InfiniBand, most do not.
fn syslog(size: usize) -> String {
    let lines = [
        "systemd[1]: Started Session {} of user root.",
        "sshd[{}]: pam_unix(sshd:session): session opened for user root by (uid=0)",
        "CROND[{}]: (root) CMD (/usr/lib64/sa/sa1 1 1)",
        "kernel: docker0: port 3(veth{}) entered blocking state",
        "kernel: IPv6: ADDRCONF(NETDEV_CHANGE): veth{}: link becomes ready",
        "NetworkManager[1533]: <info>  [1647594713.{}] device (veth7): carrier: link connected",
        "kubelet[3011]: E0318 10:29:53.{} pod_workers.go:191] Error syncing pod, skipping: failed",
        "slurmd[4411]: launch task {}.0 request from UID:0 GID:0 HOST:10.1.1.7 PORT:33012",
        "dhclient[2211]: DHCPACK from 10.1.0.1 (xid=0x{})",
        "kernel: mlx5_core 0000:4b:00.0: Port module event: module 0, Cable plugged ({})",
    ];
    let mut log = String::with_capacity(size + 256);
    let mut n = 0_usize;
    while log.len() < size {
        // The last kind is rare.
        let kind = if n.is_multiple_of(500) { lines.len() - 1 } else { n % (lines.len() - 1) };
        let (day, clock) = (1 + n / 2_000_000 % 28, n / 23);
        let time = format!("{:02}:{:02}:{:02}", clock / 3600 % 24, clock / 60 % 60, clock % 60);
        let text = lines[kind].replacen("{}", &n.to_string(), 1);
        log.push_str(&format!("Mar {day:2} {time} node-9.domain.tld {text}\n"));
        n += 1;
    }
    log
}

/// CPU time of `ibprov check` and its children on a system that runs, on this
/// machine's own processor; once, as a test lane holds it to the limit too.
fn check_live() -> [Line; 2] {
    println!("Booting a container and looking what is wrong with it ...");
    let container = nspawn::boot("check_order");
    let seconds = |name: &str| children_seconds(&container.file(name));
    let line = |what, after, before| Line {
        what,
        figure: (seconds(after) - seconds(before)) * 1000.0,
        at_least: None,
        limit: 300.0,
        unit: "ms",
        from: "with journalctl and systemctl".to_owned(),
    };
    [
        line("check on a running system, CPU, this machine", "times.after", "times.before"),
        line("check with 30 failed units, CPU", "times.failed.after", "times.failed.before"),
    ]
}

/// Peak memory of `ibprov check --log -` in MiB, fed the file five times.
fn peak_memory(binary: &Path, path: &Path) -> f64 {
    use std::io::{Read, Write};
    let mut child = Command::new(binary)
        .args(["check", "--log", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("ibprov check");
    let status = format!("/proc/{}/status", child.id());
    let mut input = child.stdin.take().expect("standard input");
    let mut peak: f64 = 0.0;
    let mut buffer = vec![0; 1 << 20];
    for _ in 0..5 {
        let mut file = std::fs::File::open(path).expect("syslog");
        loop {
            let n = file.read(&mut buffer).expect("syslog");
            if n == 0 {
                break;
            }
            input.write_all(&buffer[..n]).expect("ibprov reads to the end");
        }
        // While it waits for more it has read nearly all that was written.
        let status = std::fs::read_to_string(&status).expect("its status");
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("VmHWM");
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        peak = peak.max(kib / 1024.0);
    }
    drop(input);
    child.wait().expect("ibprov check");
    peak
}

/// From a VF's netdev, the last that makes it right, to the start of its guest
/// being asked for, where the founding script slept for 10 s.
fn guest_start() -> Line {
    let guest = machine::boot("guests_bench");
    guest.assert_success();
    let delays = guest_times::delays(&guest);
    let delays = spread(delays.into_iter().map(|seconds| seconds * 1000.0).collect());
    Line {
        what: "last VF verified to its guest's start",
        figure: delays.median,
        at_least: None,
        limit: 100.0,
        unit: "ms",
        from: delays.text(),
    }
}
