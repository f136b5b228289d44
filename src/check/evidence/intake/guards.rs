//! What the reading of logs must never do: hide the last word.

use super::boots::ALL;
use super::*;
use crate::check::diagnose;
use crate::model::common::{Code, Verdict};
use crate::model::finding::Diagnosis;
use proptest::prelude::*;
use std::fmt::Write;

fn read(sources: &[(&str, &str)]) -> Evidence {
    let mut intake = Intake::new(crate::check::rules::needles());
    for (name, text) in sources {
        intake.read(name, &mut text.as_bytes());
    }
    intake.finish()
}

/// What `--boot 0` judges.
fn newest(sources: &[(&str, &str)]) -> Evidence {
    let mut evidence = read(sources);
    evidence.boots = evidence.boots.pop().into_iter().collect();
    evidence
}

fn verdict(sources: &[(&str, &str)]) -> Verdict {
    diagnose(&newest(sources)).verdict
}

/// What is told, without the places of the lines.
fn told(diagnosis: &Diagnosis) -> Vec<String> {
    let line = |f: &crate::model::finding::Finding| {
        let quotes: Vec<&str> = f.evidence.iter().map(|quote| quote.text.as_str()).collect();
        format!("{} {} {:?} {quotes:?} {}", f.severity, f.code, f.objects, f.message)
    };
    diagnosis.findings.iter().map(line).collect()
}

/// `Jan 02 00:00:00` and `seconds`, as syslog has it.
fn stamp(day: u64, seconds: u64) -> String {
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("Jan {:02} {h:02}:{m:02}:{s:02} n9", day + seconds / 86_400)
}

/// An adapter that comes up on `day`, the link of `ibp75s0` last.
fn up(day: u64) -> String {
    [
        "Linux version 6.1.0-13-amd64 (x)",
        "mlx5_core 0000:4b:00.0: firmware version: 20.31.1014",
        "mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024)",
        "mlx5_core 0000:4b:00.0 ibp75s0: renamed from ib0",
        "IPv6: ADDRCONF(NETDEV_CHANGE): ibp75s0: link becomes ready",
    ]
    .into_iter()
    .zip(5..)
    .map(|(text, second)| format!("{} kernel: {text}\n", stamp(day, second)))
    .collect()
}

const LOST: &str = "systemd-networkd[9]: ibp75s0: Lost carrier\n";

/// `flaps` of the carrier of `netdev`, from second `from` on, a second apart.
fn flaps(netdev: &str, from: u64, flaps: u64) -> String {
    let mut log = String::new();
    for n in 0..flaps {
        for (second, what) in [(2 * n, "Lost"), (2 * n + 1, "Gained")] {
            let stamp = stamp(2, from + second);
            writeln!(log, "{stamp} systemd-networkd[9]: {netdev}: {what} carrier").expect("text");
        }
    }
    log
}

#[test]
fn a_port_that_is_lost_after_many_flaps_is_lost() {
    let up = up(2) + &flaps("ibp75s0", 20, 1500);
    let is_down = |log: &str| {
        let findings = diagnose(&read(&[("log", log)])).findings;
        findings.iter().any(|finding| finding.code == Code::LinkDownCable)
    };
    assert!(!is_down(&up));
    let down = format!("{up}{} {LOST}", stamp(2, 4000));
    assert_eq!(verdict(&[("log", &down)]), Verdict::Exceptions);
    // So it is in a log that is too long to be read line by line.
    let filler = format!("{} sshd[1]: session opened for user root by (uid=0)\n", stamp(2, 10));
    let long = filler.repeat(2 * CLOSELY as usize / filler.len()) + &down;
    assert_eq!(verdict(&[("log", &long)]), Verdict::Exceptions);
}

#[test]
fn an_object_keeps_its_last_word_behind_many_lines_of_others() {
    for lines in [0, 40_000] {
        let filler = format!("{} sshd[1]: session opened for user root\n", stamp(2, 10));
        let log = filler.repeat(lines)
            + &up(2)
            + &flaps("veth1", 20, 300)
            + &format!("{} {LOST}", stamp(2, 700))
            + &flaps("veth1", 800, 1500);
        assert_eq!(verdict(&[("log", &log)]), Verdict::Exceptions, "{lines}");
        // A name of the administrator's own.
        let own = log.replace("ibp75s0", "storage0").replace("veth1", "cali1");
        assert_eq!(verdict(&[("log", &own)]), Verdict::Exceptions, "{lines}");
    }
}

#[test]
fn a_unit_that_was_started_again_is_not_failed_behind_many_sessions() {
    let unit = |second, what| format!("{} systemd[1]: {what}\n", stamp(2, second));
    let sessions = |from: u64| -> String {
        let of =
            |n| unit(from + n, format!("Started session-{n}.scope - Session {n} of User root."));
        (0..4100).map(of).collect()
    };
    let failed = unit(20, "ibacm.service: Failed with result 'exit-code'.".to_owned());
    let log = up(2) + &sessions(100) + &failed;
    assert_ne!(verdict(&[("log", &log)]), Verdict::Ready);
    let started =
        unit(9000, "Started ibacm.service - InfiniBand Address Cache Manager Daemon.".to_owned());
    let log = log + &started + &sessions(9100);
    let diagnosis = diagnose(&read(&[("log", &log)]));
    assert_eq!(diagnosis.verdict, Verdict::Ready, "{:?}", told(&diagnosis));
}

/// An export of `boots`, each with so many `sessions`; the last one's cable is unplugged. `wall`
/// has the clock at the beginning and at the end of a boot, in days since 1970.
fn export(boots: u64, sessions: u64, wall: impl Fn(u64) -> (u64, u64)) -> String {
    const DAY: u64 = 86_400_000_000;
    let mut log = String::new();
    for boot in 0..boots {
        let (begin, end) = wall(boot);
        let mut entry = |usec: u64, day: u64, program: &str, text: &str| {
            let wall = day * DAY + usec;
            writeln!(log, "__CURSOR=s;{wall}\n__REALTIME_TIMESTAMP={wall}\n__MONOTONIC_TIMESTAMP={usec}\n_BOOT_ID=b{boot}\nSYSLOG_IDENTIFIER={program}\nPRIORITY=6\nMESSAGE={text}\n").expect("text");
        };
        for (text, second) in [
            "Linux version 6.1.0-13-amd64",
            "mlx5_core 0000:4b:00.0: firmware version: 20.31.1014",
            "mlx5_core 0000:4b:00.0 ibp75s0: renamed from ib0",
            "IPv6: ADDRCONF(NETDEV_CHANGE): ibp75s0: link becomes ready",
        ]
        .into_iter()
        .zip(1..)
        {
            entry(second * 1_000_000, begin, "kernel", text);
        }
        for n in 0..sessions {
            let text = format!("Started session-{n}.scope - Session {n} of User root.");
            entry((10 + n) * 1_000_000, end, "systemd", &text);
        }
        if boot + 1 == boots {
            let text = "mlx5_core 0000:4b:00.0: Port module event: module 0, Cable unplugged";
            entry((11 + sessions) * 1_000_000, end, "kernel", text);
        }
    }
    log
}

#[test]
fn the_newest_of_many_boots_is_read_whole() {
    let log = export(12, 4100, |boot| (20_000 + 3 * boot, 20_000 + 3 * boot));
    let evidence = read(&[("journal", &log)]);
    let last = evidence.boots.last().expect("a boot");
    assert_eq!(last.id.as_deref(), Some("b11"));
    assert!(last.says("Cable unplugged"));
    assert!(evidence.boots.iter().map(|b| b.events.len()).sum::<usize>() <= ALL);
    assert_eq!(diagnose(&evidence).verdict, Verdict::Exceptions);
    assert_eq!(verdict(&[("journal", &log)]), Verdict::Exceptions);
    // Nothing is said of the boots that were left out, and that is said.
    let healthy = log.replace("Cable unplugged", "Cable plugged");
    let diagnosis = diagnose(&read(&[("journal", &healthy)]));
    assert_eq!(diagnosis.verdict, Verdict::Unknown);
    assert!(told(&diagnosis).iter().any(|line| line.contains("input-left-out")));
    assert_eq!(verdict(&[("journal", &healthy)]), Verdict::Ready);
}

#[test]
fn more_boots_than_are_judged_are_the_oldest() {
    let log = export(90, 0, |boot| (20_000 + boot, 20_000 + boot));
    let evidence = read(&[("journal", &log)]);
    assert_eq!(evidence.boots.len(), BOOTS);
    let last = evidence.boots.last().expect("a boot");
    assert_eq!((last.id.as_deref(), last.events.len()), (Some("b89"), 5));
    assert_eq!(evidence.boots[0].events.len(), 4);
}

#[test]
fn many_files_of_one_boot_are_bounded_and_that_is_said() {
    let files: Vec<(String, String)> = (0..60)
        .map(|n| (format!("node-{n}.txt"), flaps(&format!("veth{n}"), 20, 500)))
        .chain([("log".to_owned(), up(2))])
        .chain((0..3000).map(|n| (format!("{n}/notes"), "nothing\n".to_owned())))
        .collect();
    let sources: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let evidence = read(&sources);
    assert!(evidence.boots.iter().map(|boot| boot.events.len()).sum::<usize>() <= ALL);
    assert_eq!(diagnose(&evidence).verdict, Verdict::Unknown);
}

#[test]
fn a_clock_that_is_wrong_makes_no_old_boot() {
    // The battery is flat: the newest boot begins in 2020, and learns the time, or never does.
    for (begin, end) in [(18_262, 20_100), (18_262, 18_262)] {
        let wall = |boot| if boot == 2 { (begin, end) } else { (20_000 + boot, 20_000 + boot) };
        let log = export(3, 1, wall);
        assert_eq!(verdict(&[("journal", &log)]), Verdict::Exceptions, "{end}");
    }
}

#[test]
fn a_rotated_file_is_older_than_what_follows_it() {
    let (old, new) = (up(5), up(20) + &format!("{} {LOST}", stamp(20, 100)));
    for (elder, younger) in [
        ("/var/log/messages.1", "/var/log/messages"),
        ("/var/log/messages-20260105", "/var/log/messages"),
        ("r.tar.gz:r/var/log/syslog.10.gz", "r.tar.gz:r/var/log/syslog.9.gz"),
        ("messages-20260105.gz", "messages-20260110.xz"),
        ("dmesg.old", "dmesg"),
    ] {
        for (elder_text, younger_text, wanted) in
            [(&old, &new, Verdict::Exceptions), (&new, &old, Verdict::Ready)]
        {
            // The number says more than a clock that may be wrong.
            let [a, b] = [(elder, elder_text.as_str()), (younger, younger_text.as_str())];
            assert_eq!(verdict(&[a, b]), wanted, "{elder}");
            assert_eq!(verdict(&[b, a]), wanted, "{elder}");
            assert_eq!(read(&[a, b]).boots.len(), 2);
        }
    }
    // The boot goes on in the younger file.
    let rest = format!("{} {LOST}", stamp(20, 100));
    let evidence = read(&[("messages", &rest), ("messages.1", &up(20))]);
    assert_eq!(evidence.boots.len(), 1);
    assert_eq!(diagnose(&evidence).verdict, Verdict::Exceptions);
}

const DMESG: &str = "\
[   16.000000] mlx5_core 0000:4b:00.0: firmware version: 20.31.1014
[   16.500000] mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024)
[   17.000000] mlx5_core 0000:4b:00.0 ibp75s0: renamed from ib0
[   19.000000] IPv6: ADDRCONF(NETDEV_CHANGE): ibp75s0: link becomes ready
[   20.000000] mlx5_core 0000:4b:00.0: Port module event: module 0, Cable unplugged
";

/// `dmesg` as syslog has it: with the kernel's time in each line, or without.
fn messages(dmesg: &str, with_uptime: bool) -> String {
    let line = |line: &str| {
        let (time, text) = line[1..].split_once("] ").expect("a time");
        let second = time.trim().split('.').next().expect("seconds").parse().expect("seconds");
        let uptime = if with_uptime { format!("[{time}] ") } else { String::new() };
        format!("{} kernel: {uptime}{text}\n", stamp(2, second))
    };
    dmesg.lines().map(line).collect()
}

#[test]
fn a_line_at_two_times_is_two_events_and_one_that_two_sources_tell_is_one() {
    let plugged =
        "[   30.000000] mlx5_core 0000:4b:00.0: Port module event: module 0, Cable plugged\n";
    let again = DMESG.lines().last().expect("a line").replace("20.0", "40.0");
    for with_uptime in [true, false] {
        let one = messages(DMESG, with_uptime);
        let evidence = read(&[("dmesg", DMESG), ("messages", &one)]);
        assert_eq!((evidence.boots.len(), evidence.boots[0].events.len()), (1, 5));
        let later = messages(&[DMESG, plugged].concat(), with_uptime);
        let lost = messages(&[DMESG, plugged, &again].concat(), with_uptime);
        // A cable alone proves no port.
        for (log, wanted) in [(&later, Verdict::Unknown), (&lost, Verdict::Exceptions)] {
            let (a, b) = (("a-dmesg.txt", DMESG), ("b-messages.txt", log.as_str()));
            assert_eq!(verdict(&[a, b]), wanted, "{log}");
            assert_eq!(verdict(&[b, a]), wanted, "{log}");
            assert_eq!(verdict(&[("messages", log)]), wanted, "{log}");
            assert_eq!(verdict(&[("z-dmesg", DMESG), ("messages", log)]), wanted, "{log}");
        }
    }
    // A kernel that greets in both is one kernel.
    let greets = format!("[    0.000000] Linux version 6.1.0 (x)\n{DMESG}");
    let evidence = read(&[("dmesg", &greets), ("messages", &messages(&greets, false))]);
    assert_eq!(evidence.boots.len(), 1);
}

#[test]
fn a_journal_and_a_log_in_another_zone_tell_of_one_boot() {
    let journal = export(2, 1, |boot| (20_456 + boot, 20_456 + boot));
    for hours in ["00", "05"] {
        // The boot of January 3, 2026, which the journal has in UTC,
        let text = up(3).replace(" 00:00:", &format!(" {hours}:00:"));
        let evidence = read(&[("syslog", &text), ("system.journal", &journal)]);
        let ids: Vec<_> = evidence.boots.iter().map(|boot| boot.id.as_deref()).collect();
        assert_eq!(ids, [Some("b0"), Some("b1")], "{hours}");
        let sources = |b: &Boot| b.events.iter().map(|e| e.origin.source).collect::<BTreeSet<_>>();
        assert_eq!(sources(&evidence.boots[0]).len(), 2, "{hours}");
    }
}

#[test]
fn epoch_stamps_of_libraries_are_no_uptime() {
    let log = "[1700000000.123456] [n9:77:0] ib_device.c:1 UCX  ERROR mlx5_0: cannot open device\n\
               [    2.000000] mlx5_core 0000:4b:00.0: firmware version: 20.31.1014\n\
               [    3.000000] mlx5_core 0000:4b:00.0: Port module event: module 0, Cable unplugged\n";
    let evidence = read(&[("out", log)]);
    assert_eq!(evidence.boots.len(), 1);
    assert_eq!(header(log.lines().next().expect("a line")).when.monotonic, None);
}

#[test]
fn a_boot_that_begins_anew_after_one_line_is_another_boot() {
    let log = "[ 5000.000000] mlx5_core 0000:4b:00.0: firmware version: 20.31.1014\n\
               [    0.000000] Linux version 6.1.0 (x)\n\
               [    2.000000] mlx5_core 0000:4b:00.0: firmware version: 20.31.1014\n";
    assert_eq!(read(&[("console", log)]).boots.len(), 2);
    // Excerpts of one boot in any order.
    let log = "[ 5000.000000] mlx5_core 0000:4b:00.0: firmware version: 20.31.1014\n\
               [  800.000000] mlx5_core 0000:4c:00.0: firmware version: 20.31.1014\n\
               [   20.000000] mlx5_core 0000:4d:00.0: firmware version: 20.31.1014\n";
    assert_eq!(read(&[("mail", log)]).boots.len(), 1);
}

#[test]
fn of_two_lines_of_one_second_the_second_counts() {
    for (first, second, wanted) in
        [("Gained", "Lost", Verdict::Exceptions), ("Lost", "Gained", Verdict::Ready)]
    {
        let said =
            |what| format!("{} systemd-networkd[9]: ibp75s0: {what} carrier\n", stamp(2, 50));
        assert_eq!(verdict(&[("log", &(up(2) + &said(first) + &said(second)))]), wanted);
    }
}

#[test]
fn of_a_word_the_first_and_the_last_lines_are_kept() {
    let line = |n| format!("[ {n}.0] ib0: multicast join failed for ff12, status -110, try {n}\n");
    for filler in [0, 40_000] {
        let filler =
            "[ 1.0] a line of another program, which is about something else\n".repeat(filler);
        let log: String = (0..3000).map(line).collect();
        let evidence = read(&[("log", &(filler + &log))]);
        let of = |e: &Event| e.when.monotonic.map(|at| at.usec() / 1_000_000);
        let kept: Vec<u64> = evidence.boots[0].events.iter().filter_map(of).collect();
        let wanted: Vec<u64> = (0..100).chain(2100..3000).collect();
        assert_eq!(kept, wanted);
    }
}

/// Every log of `cases.toml`.
fn cases() -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Cases {
        case: Vec<Case>,
    }
    #[derive(serde::Deserialize)]
    struct Case {
        log: String,
    }
    let text = include_str!("../../rules/cases.toml");
    let cases: Cases = toml::from_str(text).expect("cases.toml");
    cases.case.into_iter().map(|case| case.log).collect()
}

/// Lines of objects that are none of the fabric, with words of its lines.
fn noise() -> String {
    let mut log = String::new();
    for n in 0..1200 {
        for text in [
            "kernel: IPv6: ADDRCONF(NETDEV_CHANGE): veth{}: link becomes ready",
            "systemd-networkd[9]: veth{}: Lost carrier",
            "systemd-networkd[9]: veth{}: Gained carrier",
            "systemd[1]: Started session-{}.scope - Session {} of User root.",
            "kernel: nvme 0000:c1:00.0: probe of nvme{} failed with error -12",
        ] {
            let text = text.replace("{}", &n.to_string());
            writeln!(log, "Jan 09 10:00:00 n9 {text}").expect("text");
        }
    }
    log
}

#[test]
fn lines_about_others_make_no_fault_healthy() {
    let noise = noise();
    // One in eight, as each takes its time.
    for case in cases().into_iter().step_by(8) {
        let bad = |verdict| matches!(verdict, Verdict::NotReady | Verdict::Exceptions);
        let alone = verdict(&[("log", &case)]);
        if bad(alone) {
            let more = format!("{}\n{noise}", case.trim_end());
            assert_ne!(verdict(&[("log", &more)]), Verdict::Ready, "{alone:?}: {case}");
        }
    }
}

#[test]
fn older_boots_change_nothing_that_is_said_of_the_newest() {
    let older = up(1) + &format!("{} {LOST}", stamp(1, 100));
    let greets = "kernel: Linux version 6.1.0-13-amd64 (x)";
    for case in cases().into_iter().filter(|case| !case.contains("Linux version")) {
        let alone = format!("{greets}\n{case}");
        let of = |log: &str| told(&diagnose(&newest(&[("log", log)])));
        assert_eq!(of(&format!("{older}{alone}")), of(&alone), "{case}");
    }
}

#[test]
fn sources_in_any_order_give_the_same() {
    let ibstat = "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tLink layer: InfiniBand\n";
    let dmesg = format!("[    0.000000] Linux version 6.1.0 (x)\n{DMESG}");
    let sources = [
        ("dmesg", dmesg.clone()),
        ("messages", messages(&dmesg, false) + &format!("{} {LOST}", stamp(2, 100))),
        ("messages.1", up(1)),
        ("opensm.log", format!("{} OpenSM[9]: SUBNET UP\n", stamp(2, 50))),
        ("ibstat", ibstat.to_owned()),
    ];
    let of = |order: &[usize]| {
        let read_so: Vec<(&str, &str)> =
            order.iter().map(|at| (sources[*at].0, sources[*at].1.as_str())).collect();
        let evidence = read(&read_so);
        let boots = evidence.boots.len();
        (boots, diagnose(&evidence).verdict, told(&diagnose(&evidence)))
    };
    let first = of(&[0, 1, 2, 3, 4]);
    assert_eq!(first.0, 2);
    for order in [[4, 3, 2, 1, 0], [1, 0, 4, 2, 3], [2, 4, 1, 3, 0], [3, 0, 2, 4, 1]] {
        assert_eq!(of(&order), first, "{order:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever comes between: no link is down if the last word on each netdev is good.
    #[test]
    fn the_last_word_on_each_netdev_decides(
        runs in proptest::collection::vec((0..6_u64, 0..500_u64, any::<bool>()), 0..9),
    ) {
        let mut log = up(2);
        let (mut second, mut lost) = (20, [false; 6]);
        for n in 0..6 {
            second += 1;
            writeln!(log, "{} systemd-networkd[9]: ib{n}: Gained carrier", stamp(2, second)).expect("text");
        }
        for (netdev, times, is_lost) in runs {
            log += &flaps(&format!("ib{netdev}"), second + 1, times);
            second += 2 * times + 1;
            lost[usize::try_from(netdev).expect("small")] = is_lost;
            let what = if is_lost { "Lost" } else { "Gained" };
            writeln!(log, "{} systemd-networkd[9]: ib{netdev}: {what} carrier", stamp(2, second)).expect("text");
        }
        let findings = diagnose(&read(&[("log", &log)])).findings;
        let is_down = findings.iter().any(|finding| finding.code == Code::LinkDownCable);
        prop_assert_eq!(is_down, lost.contains(&true));
    }
}

#[test]
fn a_journal_may_have_any_number_as_a_time() {
    let entry = |usec: u64| {
        format!(
            "__CURSOR=s\n__MONOTONIC_TIMESTAMP={usec}\n_BOOT_ID=b0\nSYSLOG_IDENTIFIER=kernel\nMESSAGE=mlx5_core 0000:4b:00.0: {usec}\n\n"
        )
    };
    let evidence = read(&[("log", &[entry(1), entry(u64::MAX), entry(2)].concat())]);
    assert_eq!(evidence.boots[0].events.len(), 3);
}
