//! Hundreds of interfaces that wait for their network stack at the same time.

use crate::bed::outcome::Outcome;
use crate::nspawn::boot;

const COLUMNS: [&str; 9] = [
    "interfaces",
    "waiting",
    "processes",
    "connections",
    "most connections",
    "PSS KiB",
    "reads",
    "reads at rest",
    "seconds",
];

/// Figures of one stage, by the names of their columns.
struct Stage(Vec<f64>);

impl Stage {
    fn of(&self, column: &str) -> f64 {
        self.0[COLUMNS.iter().position(|c| *c == column).expect("a column")]
    }
}

fn stages(guest: &Outcome) -> Vec<Stage> {
    let figures = guest.file("figures");
    println!("{}\n{figures}", COLUMNS.join(", "));
    let stage = |line: &str| {
        let figures: Vec<f64> =
            line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        assert_eq!(figures.len(), COLUMNS.len(), "{line}");
        Stage(figures)
    };
    figures.lines().map(stage).collect()
}

#[test]
fn interfaces_that_wait_hold_no_connection_to_the_bus() {
    let guest = boot("iface_many");
    guest.assert_success();
    let stages = stages(&guest);
    assert_eq!(stages.len(), 3);
    for stage in &stages {
        let n = stage.of("interfaces");
        assert_eq!((stage.of("waiting"), stage.of("processes")), (n, n), "all wait, by themselves");
        assert!(stage.of("connections") <= 0.0, "{} held at rest", stage.of("connections"));
        let most = stage.of("most connections");
        // One for each of 320 that wait would be more; how many ask at once is up to the machine.
        assert!(most <= 128.0, "{most} at the same time, where root has 256");
    }
    assert_eq!(guest.stdout(), "");
}

#[test]
fn what_an_interface_costs_does_not_grow_with_their_number() {
    let guest = boot("iface_many");
    guest.assert_success();
    let stages = stages(&guest);
    let mut grown = Vec::new();
    let mut holds = |what: &str, few: f64, many: f64, factor: f64| {
        let line =
            format!("{what} for each: {few:.0}, and {many:.0} where there are four times as many");
        println!("{line}");
        grown.extend((many > factor * few).then_some(line));
    };
    let (first, second, third) = (&stages[0], &stages[1], &stages[2]);
    let more = |from: &Stage, to: &Stage, column: &str| {
        (to.of(column) - from.of(column)) / (to.of("interfaces") - from.of("interfaces"))
    };
    let memory = "PSS KiB";
    holds(memory, more(first, second, memory), more(second, third, memory), 1.3);
    // The first had one more before.
    let few = first.of("reads") / (first.of("interfaces") - 1.0);
    let many = third.of("reads") / (third.of("interfaces") - second.of("interfaces"));
    holds("reads", few, many, 1.6);
    // Of the last, which is there beside 319 others: to look at those takes thousands.
    let reads = guest.file("reads");
    let reads = reads.lines().last().expect("two lines").rsplit(' ').next().expect("a word");
    println!("reads of the last: {reads}");
    assert!(reads.parse::<u32>().expect("a number") < 1_000, "{reads} reads");
    for stage in &stages {
        let rest = stage.of("reads at rest") / stage.of("interfaces") / 5.0;
        println!("reads of each in a second of waiting: {rest:.1}");
        assert!(rest < 100.0, "{rest} reads a second");
    }
    assert!(grown.is_empty(), "{}", grown.join("\n"));
}

#[test]
fn an_interface_that_comes_up_at_last_is_seen_without_a_connection() {
    let guest = boot("iface_many");
    guest.assert_success();
    println!("{}", guest.file("late"));
    assert!(guest.file("ends").contains(" 4   \"bring_up\": \"up\""), "{}", guest.file("ends"));
}

#[test]
fn what_a_guest_that_waits_costs_does_not_grow_with_their_number() {
    const COLUMNS: [&str; 8] = [
        "guests",
        "waiting",
        "processes",
        "connections",
        "PSS KiB",
        "reads",
        "reads at rest",
        "seconds",
    ];
    let guest = boot("guests_many");
    guest.assert_success();
    let figures = guest.file("figures");
    println!("{}\n{figures}", COLUMNS.join(", "));
    let stages: Vec<Vec<f64>> = figures
        .lines()
        .map(|l| l.split_whitespace().map(|word| word.parse().expect("a number")).collect())
        .collect();
    let of = |stage: usize, column: &str| {
        stages[stage][COLUMNS.iter().position(|c| *c == column).expect("a column")]
    };
    assert_eq!(stages.len(), 3);
    for stage in 0..3 {
        // And one more, which waits for ever.
        assert_eq!(of(stage, "waiting"), of(stage, "guests") + 1.0, "all wait");
        // The service, and a child for each PF.
        assert!(of(stage, "processes") <= 3.0, "{} processes", of(stage, "processes"));
        assert!(of(stage, "connections") <= 0.0, "{} held", of(stage, "connections"));
        assert!(of(stage, "reads at rest") <= 20_000.0, "{}", of(stage, "reads at rest"));
    }
    for column in ["PSS KiB", "reads"] {
        let (few, many) = (of(0, column), of(2, column));
        println!("{column}: {:.1} times as much for four times as many", many / few);
        assert!(many <= 1.3 * 4.0 * few, "{column}: {few}, {many}");
    }
}

/// Started late, in the first pass, or by a first pass that cannot wait for them.
#[test]
fn a_guest_that_starts_costs_as_much_where_there_are_hundreds() {
    let guest = boot("guests_many");
    guest.assert_success();
    assert_eq!(guest.stdout(), "");
    let text = guest.file("starts");
    println!("guests, how, ms, most connections, reads\n{text}");
    let mut reads = std::collections::BTreeMap::new();
    for line in text.lines() {
        let [guests, how, _, connections, used] = *line.split(' ').collect::<Vec<_>>() else {
            panic!("{line}")
        };
        let number = |word: &str| word.parse::<f64>().expect("a number");
        // guests.max-parallel is 4, and each start may have two. Without that limit there are 127.
        assert!(number(connections) <= 16.0, "{line}");
        reads.insert((how, guests), number(used) / number(guests));
    }
    for how in ["late", "first", "issued"] {
        let (few, many) = (reads[&(how, "127")], reads[&(how, "254")]);
        println!("{how}: {few:.1} reads for each of 127, {many:.1} for each of 254");
        // Twice where each start looks at all.
        assert!(many <= 1.7 * few, "{how}: {few:.1} reads for each of 127, {many:.1} of 254");
    }
}

#[test]
fn a_service_that_starts_is_waited_for_without_a_connection() {
    let guest = boot("iface_starting");
    guest.assert_success();
    assert_eq!(guest.stdout(), "");
    assert_eq!(guest.file("starting"), "0 up\n");
}

/// At its beginning, and when it has been let in after all.
#[test]
fn a_bus_that_is_late_is_asked_again() {
    let guest = boot("iface_starting");
    guest.assert_success();
    assert_eq!(guest.file("silent"), "the system bus\n");
}
