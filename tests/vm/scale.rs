//! Nodes of the size in which they are sold: what grows with them, and how far. Run by
//! `make test-all` alone.

use crate::bed::outcome::Outcome;
use crate::bed::scenario::Scenario;
use crate::bed::{once, tools};
use crate::card::assert_sound;
use crate::machine::{self, boot};
use std::sync::Arc;

/// The most that a service has had, as the sampler in the guest has it.
pub(crate) fn most(guest: &Outcome, what: &str) -> f64 {
    let text = guest.file("most");
    let line = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {what} in {text}")).parse().expect("a number")
}

/// What one more costs where there are many, and where there are few. A part that grows with
/// the square of their number makes it more.
pub(crate) struct Growth {
    numbers: [u32; 3],
    wrong: Vec<String>,
}

impl Growth {
    pub(crate) const fn of(numbers: [u32; 3]) -> Self {
        Self { numbers, wrong: Vec::new() }
    }

    /// One more, between the second and the third number, costs at most `limit` times as much as
    /// one between the first and the second, and as one of the first with its part in what all
    /// cost together. What is below `least` is not told from chance.
    pub(crate) fn holds(&mut self, what: &str, figures: [f64; 3], limit: f64, least: f64) {
        let (each, next, another) = self.costs(figures);
        self.judge(what, figures, another <= (limit * each.min(next)).max(least));
    }

    /// The same of what a whole boot costs beside: there each of few has a large part in it, and
    /// the difference between few is little beside chance.
    pub(crate) fn holds_of_boot(&mut self, what: &str, figures: [f64; 3], limit: f64) {
        let (each, _, another) = self.costs(figures);
        self.judge(what, figures, another <= limit * each);
    }

    /// Of one where there are few, the next, and another where there are many.
    fn costs(&self, figures: [f64; 3]) -> (f64, f64, f64) {
        let [few, more, most] = self.numbers.map(f64::from);
        let next = (figures[1] - figures[0]) / (more - few);
        (figures[0] / few, next, (figures[2] - figures[1]) / (most - more))
    }

    fn judge(&mut self, what: &str, figures: [f64; 3], is_right: bool) {
        let (each, next, another) = self.costs(figures);
        let line = format!(
            "{what}: {figures:.0?}: {each:.1} each, {next:.1} for the next, then {another:.1}"
        );
        println!("{line}");
        self.wrong.extend((!is_right).then_some(line));
    }

    pub(crate) fn assert_all_hold(&self) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}

/// Figures of one stage of a scenario, by the names of their columns.
struct Stage(Vec<f64>);

const COLUMNS: [&str; 10] = [
    "children",
    "waiting",
    "processes",
    "connections",
    "most connections",
    "memory KiB",
    "PSS KiB",
    "CPU us",
    "CPU us at rest",
    "seconds",
];

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

/// So many P_Key children a port has places for, one of them for the child after the stages.
const EACH: usize = 126;

#[test]
#[ignore = "many interfaces take minutes under emulation"]
fn children_that_wait_are_of_one_process_that_holds_no_bus_connection() {
    let guest = boot("scale_pkeys");
    guest.assert_success();
    let stages = stages(&guest);
    println!("{}{}{}", guest.stdout(), guest.file("ends"), guest.file("late"));
    assert_sound(&guest);
    assert_eq!(guest.stdout(), "");
    for stage in &stages {
        let of = |column| stage.of(column);
        assert_eq!(of("waiting"), of("children"), "all wait");
        assert_eq!(of("processes"), 1.0);
        assert!(of("connections") <= 0.0, "{} bus connections at rest", of("connections"));
        assert!(of("most connections") <= 4.0, "{} at once", of("most connections"));
        let rest = of("CPU us at rest") / of("children");
        println!("CPU us for each in 10 s of waiting: {rest:.0}");
    }
    // What one more costs, where there are many and where there are few. One child was there
    // before the first stage.
    let [first, second, third] = stages.as_slice() else { panic!("three stages") };
    assert_eq!(third.of("children"), 64.0);
    // The default of network.timeout.
    assert!(third.of("seconds") < 120.0, "{} s", third.of("seconds"));
    let few = first.of("CPU us") / (first.of("children") - 1.0);
    let many = third.of("CPU us") / (third.of("children") - second.of("children"));
    println!("CPU us for each: {few:.0}, then {many:.0}");
    // Emulated: other work on the machine counts as theirs.
    assert!(many <= 2.0 * few, "CPU us for each: {few:.0}, then {many:.0}");
}

#[test]
#[ignore = "many interfaces take minutes under emulation"]
fn an_interface_that_comes_up_at_last_is_seen_without_a_connection() {
    let guest = boot("scale_pkeys");
    guest.assert_success();
    println!("{}", guest.file("late"));
    // Those of the last stage, and the port's own.
    assert_eq!(guest.file("ends").trim(), "65   \"bring_up\": \"up\"");
}

#[test]
#[ignore = "many interfaces take minutes under emulation"]
fn beside_interfaces_that_wait_units_start_as_soon_as_without_ibprov() {
    let (guest, bare) = (boot("scale_pkeys"), boot("scale_pkeys_bare"));
    bare.assert_success();
    assert_sound(&bare);
    assert_eq!(bare.stdout(), "");
    assert_soon(&guest, &bare);
}

/// How long the longest start of the probe took, milliseconds.
fn longest_start(guest: &Outcome) -> u32 {
    let text = guest.file("probes");
    let took = |line: &str| {
        let [_, took, "0"] = *line.split(' ').collect::<Vec<_>>() else { panic!("{line}") };
        took.parse().expect("milliseconds")
    };
    let probes: Vec<u32> = text.lines().map(took).collect();
    assert!(probes.len() >= 15, "{text}");
    probes.into_iter().max().expect("probes")
}

/// A unit is never started more than a second later than in the same boot without ibprov.
pub(crate) fn assert_soon(guest: &Outcome, bare: &Outcome) {
    let (with, without) = (longest_start(guest), longest_start(bare));
    println!("longest start: {with} ms with ibprov, {without} ms without");
    assert!(with <= without + 1000, "{with} ms with ibprov, {without} ms without");
}

/// The columns of a boot's figures.
const BOOT_COLUMNS: [&str; 6] = ["ms", "boot us", "interfaces us", "PID 1 us", "bus us", "udev us"];

/// What boots of `numbers` of something cost, which is to be no more for each where there are
/// many.
fn assert_linear(numbers: [u32; 3], guests: &[Arc<Outcome>; 3]) {
    let figures = |guest: &Arc<Outcome>| -> Vec<f64> {
        let text = guest.file("figures");
        let figures = text.split_whitespace().map(|one| one.parse().expect("a number"));
        let figures: Vec<f64> = figures.collect();
        assert_eq!(figures.len(), BOOT_COLUMNS.len(), "{text}");
        figures
    };
    let figures = guests.each_ref().map(figures);
    let mut growth = Growth::of(numbers);
    for (column, name) in BOOT_COLUMNS.iter().enumerate() {
        let of_column = figures.each_ref().map(|of| of[column]);
        // Other work on the machine counts as theirs: 100 ms are some starts of a program.
        match *name {
            "boot us" | "interfaces us" => growth.holds(name, of_column, 1.5, 100_000.0),
            _ => growth.holds_of_boot(name, of_column, 1.5),
        }
    }
    let of = |what: &str| guests.each_ref().map(|guest| most(guest, what));
    for service in ["ibprov", "interfaces"] {
        println!("{service}, KiB charged to it at most: {:?}", of(&format!("{service}.memory")));
    }
    // What it keeps of each interface is in buffers that grow by doubling.
    growth.holds("ibprov, KiB of its own", of("ibprov.anon"), 1.5, 8.0);
    growth.holds("ibprov, tasks", of("ibprov.tasks"), 1.25, 2.0);
    // How many instances are there at once is chance: of few the first end before the last come.
    let (memory, tasks) = (of("interfaces.anon"), of("interfaces.tasks"));
    println!("interfaces, KiB of their own at most: {memory:?}, tasks: {tasks:?}");
    for (number, (memory, tasks)) in
        numbers.map(f64::from).into_iter().zip(memory.into_iter().zip(tasks))
    {
        assert!(memory <= 1024.0 * (number + 1.0), "{number} interfaces: {memory} KiB");
        assert!(tasks <= 2.0 * (number + 2.0), "{number} interfaces: {tasks} tasks");
    }
    let bus = guests.each_ref().map(|guest| most(guest, "bus"));
    println!("connections to the bus at most: {bus:?}");
    assert!(bus[2] <= bus[0] + 16.0, "connections to the bus: {bus:?}");
    growth.assert_all_hold();
}

/// A boot of a node with so many InfiniBand adapters, and two in Ethernet mode.
fn cards(adapters: u32) -> Arc<Outcome> {
    if adapters == 8 {
        return boot("scale_cards");
    }
    let label = format!("scale_cards.{adapters}");
    once(&label, || {
        let folder = tools::project().join("tests/vm/scenarios");
        let mut scenario = Scenario::load(&folder, "scale_cards")?;
        let settings = &mut scenario.settings;
        let ethernet = settings.card.split_off(8);
        settings.card.truncate(adapters as usize);
        settings.card.extend(ethernet);
        machine::run(&scenario, &label)
    })
}

#[test]
#[ignore = "boots with ten cards take minutes"]
fn an_adapter_costs_as_much_where_there_are_many() {
    let numbers = [2, 4, 8];
    let guests = numbers.map(cards);
    for (guest, adapters) in guests.iter().zip(numbers) {
        guest.assert_success();
        assert_sound(guest);
        assert_eq!(guest.stdout(), "status: 0\n", "{adapters}: {}", guest.file("status"));
        assert_eq!(guest.boot_json()["verdict"], "ready", "{adapters}");
    }
    assert_linear(numbers, &guests);
}

#[test]
#[ignore = "two boots with ten cards take minutes"]
fn beside_ten_cards_units_start_as_soon_as_without_ibprov() {
    let (guest, bare) = (cards(8), boot("scale_cards_bare"));
    for guest in [&guest, &bare] {
        guest.assert_success();
        assert_sound(guest);
        assert_eq!(guest.file("devices").lines().count(), 10, "{}", guest.file("layers"));
        let layers: Vec<String> =
            guest.file("layers").lines().map(|l| l.trim().to_owned()).collect();
        assert_eq!(layers, ["2 Ethernet", "8 InfiniBand"]);
    }
    assert_eq!(guest.boot_json()["verdict"], "ready", "{}", guest.file("status"));
    assert_eq!(guest.stdout(), "status: 0\n", "{}", guest.file("status"));
    assert_soon(&guest, &bare);
}
