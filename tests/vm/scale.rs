//! Nodes of the size in which they are sold: what grows with them, and how far. Run by
//! `make test-all` alone.

use crate::bed::outcome::Outcome;
use crate::bed::scenario::Scenario;
use crate::bed::{once, stage, tools};
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

const COLUMNS: [&str; 11] = [
    "children",
    "instances",
    "processes",
    "connections",
    "most connections",
    "memory KiB",
    "PSS KiB",
    "CPU us",
    "CPU us at rest",
    "forks",
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

/// The machine of the P_Key children. IBPROV_CAMPAIGN_CHILDREN is how many each of the three
/// stages has, if not `4,8,16`; a child takes about 1 MiB and, emulated, 1 s.
fn pkeys(name: &str) -> Arc<Outcome> {
    once(name, || {
        let folder = tools::project().join("tests/vm/scenarios");
        let mut scenario = Scenario::load(&folder, name)?;
        if let Ok(stages) = std::env::var("IBPROV_CAMPAIGN_CHILDREN") {
            let settings = &mut scenario.settings;
            let words = &mut settings.cmdline;
            *words = words.replace("bed.children=4,8,16", &format!("bed.children={stages}"));
            settings.memory = 8192;
            settings.timeout = 7200;
            let most = stages.rsplit(',').next().and_then(|most| most.parse().ok());
            let ports = ports(most.ok_or("IBPROV_CAMPAIGN_CHILDREN: no numbers")?);
            settings.card = vec![settings.card[0].clone(); ports];
        }
        machine::run(&scenario, name)
    })
}

/// How many ports so many children, and one more, take.
fn ports(children: usize) -> usize {
    (children + 1).div_ceil(EACH)
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn ports_of(stages: &[Stage]) -> f64 {
    ports(stages.last().expect("a stage").of("children") as usize) as f64
}

#[test]
#[ignore = "hundreds of interfaces take minutes under emulation"]
fn interfaces_that_wait_cost_what_they_are_many_and_hold_no_bus_connection() {
    let guest = pkeys("scale_pkeys");
    guest.assert_success();
    let stages = stages(&guest);
    let told = format!("{}{}", guest.stdout(), guest.file("ends"));
    println!("{told}{}", guest.file("late"));
    assert_sound(&guest);
    assert_eq!(guest.stdout(), "");
    assert_eq!(stages.len(), 3);
    let ports = ports_of(&stages);
    for stage in &stages {
        let of = |column| stage.of(column);
        let n = of("children");
        // Those of the ports' own interfaces wait too.
        assert_eq!(of("instances"), n + ports, "all wait");
        assert!(of("processes") <= n + ports + 1.0, "one process each: {}", of("processes"));
        assert!(of("connections") <= 0.0, "{} bus connections at rest", of("connections"));
        assert!(of("most connections") <= 32.0, "{} at once", of("most connections"));
    }
    // What one more interface costs, where there are many and where there are few.
    let [first, second, third] = stages.as_slice() else { panic!("three stages") };
    let growth = |column: &str| {
        let each = |from: &Stage, to: &Stage| {
            (to.of(column) - from.of(column)) / (to.of("children") - from.of("children"))
        };
        (each(first, second), each(second, third))
    };
    for column in ["memory KiB", "PSS KiB"] {
        let (few, many) = growth(column);
        println!("{column} for each: {few:.0}, then {many:.0}");
        assert!(many <= 1.25 * few, "{column} for each: {few:.0}, then {many:.0}");
    }
    // One child was there before the first stage. What those use that wait already is not
    // the new ones': a stage of more children takes longer.
    let (mut before, mut at_rest) = (1.0, 0.0);
    let mut each = |stage: &Stage| {
        let waited = at_rest / 10.0 * stage.of("seconds");
        let each = (stage.of("CPU us") - waited) / (stage.of("children") - before);
        (before, at_rest) = (stage.of("children"), stage.of("CPU us at rest"));
        each
    };
    let (few, more, many) = (each(first), each(second), each(third));
    println!("CPU us for each: {few:.0}, {more:.0}, {many:.0}");
    // Emulated: other work on the machine counts as theirs. A look of each at all is 16 times.
    assert!(many <= 2.0 * few, "CPU us for each: {few:.0}, then {many:.0}");
    // What others use for them, from one stage to the next; the probe has its part in it.
    let others = guest.file("others");
    let of_others = |who: &str| {
        let used = others.lines().filter_map(|line| line.split_once(' ')?.1.strip_prefix(who));
        let used: Vec<f64> = used.map(|us| us.trim().parse().expect("a number")).collect();
        assert_eq!(used.len(), 3, "{who}: {others}");
        let more = |at: usize| stages[at].of("children") - stages[at - 1].of("children");
        [1, 2].map(|at| (used[at] - used[at - 1]) / more(at))
    };
    for who in ["init.scope", "dbus.service", "systemd-networkd.service", "systemd-udevd.service"] {
        let [few, many] = of_others(who);
        println!("CPU us of {who} for each: {few:.0}, then {many:.0}");
        assert!(many <= 2.0 * few, "CPU us of {who} for each: {few:.0}, then {many:.0}");
    }
    for stage in &stages {
        let rest = stage.of("CPU us at rest") / stage.of("instances");
        println!("CPU us for each in 10 s of waiting: {rest:.0}");
    }
}

#[test]
#[ignore = "hundreds of interfaces take minutes under emulation"]
fn an_interfaces_set_up_opens_no_file_of_another() {
    let guest = pkeys("scale_pkeys");
    guest.assert_success();
    let opens = |which: &str| {
        let own = guest.file(which);
        let opened = guest.file(&format!("opened.{which}"));
        // Of those that are at work for it: others may wake meanwhile. Its instance has the
        // most to open.
        let of_own = opened.lines().filter(|l| l.contains(&own)).filter_map(|l| l.split_once(' '));
        let mut pids: Vec<&str> = of_own.map(|(pid, _)| pid).collect();
        pids.sort_unstable();
        let most = pids.chunk_by(|a, b| a == b).max_by_key(|of_one| of_one.len());
        let instance = most.expect("its own files")[0];
        let of = |pid: &str| -> Vec<String> {
            let of_it = opened.lines().filter_map(|l| l.strip_prefix(pid)?.strip_prefix(' '));
            of_it.map(str::to_owned).collect()
        };
        pids.dedup();
        let all: Vec<String> = pids.iter().flat_map(|pid| of(pid)).collect();
        let is_others = |path: &&String| {
            path.split('/').any(|part| {
                part.contains("ib") && part.contains(".80") && !part.contains(own.as_str())
            })
        };
        let others: Vec<&String> = all.iter().filter(is_others).take(20).collect();
        assert!(others.is_empty(), "files of others: {others:?}");
        of(instance)
    };
    let (first, last) = (opens("first"), opens("last"));
    println!("files that the first opens: {}, the last: {}", first.len(), last.len());
    let more: Vec<&String> = last.iter().skip(first.len()).collect();
    // One of the two may have asked its stack once more.
    assert!(last.len() <= first.len() + 60, "{} and {}: {more:?}", first.len(), last.len());
}

#[test]
#[ignore = "hundreds of interfaces take minutes under emulation"]
fn an_interface_that_comes_up_at_last_is_seen_without_a_connection() {
    let guest = pkeys("scale_pkeys");
    guest.assert_success();
    let late = guest.file("late");
    println!("{late}");
    // Those of all stages, one more, and the ports' own.
    let stages = stages(&guest);
    let all = stages.last().expect("a stage").of("children") + 1.0 + ports_of(&stages);
    assert_eq!(guest.file("ends").trim(), format!("{all}   \"bring_up\": \"up\""));
}

#[test]
#[ignore = "hundreds of interfaces take minutes under emulation"]
fn beside_interfaces_that_wait_units_start_as_soon_as_without_ibprov() {
    let (guest, bare) = (pkeys("scale_pkeys"), pkeys("scale_pkeys_bare"));
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

/// A boot with so many P_Key children by ibprov.toml, on as many ports as they take.
fn children(name: &str, count: u32) -> Arc<Outcome> {
    let label = format!("{name}.{count}");
    once(&label, || {
        let folder = tools::project().join("tests/vm/scenarios");
        let mut scenario = Scenario::load(&folder, name)?;
        let ports = ports(count as usize);
        let settings = &mut scenario.settings;
        settings.card = vec![settings.card[0].clone(); ports];
        // A child takes about 1 MiB.
        settings.memory = if count > 64 { 8192 } else { 2048 };
        settings.timeout += 4 * count;
        let root = stage::folder("vm", &format!("{label}.root"))?;
        // Queues of the default size would take 10 MiB for each child.
        let files = [
            ("etc/ibprov/ibprov.toml", partitions(count as usize)),
            (
                "etc/modprobe.d/ipoib.conf",
                "options ib_ipoib recv_queue_size=32 send_queue_size=32\n".into(),
            ),
        ];
        for (path, text) in files {
            let path = root.join(path);
            let folder = path.parent().ok_or("no folder")?;
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(&path, text))
                .map_err(|e| format!("{}: {e}", path.display()))?;
        }
        scenario.roots.push(root);
        machine::run(&scenario, &label)
    })
}

/// Children for `count` P_Keys, on each port as many as its table has places for.
fn partitions(count: usize) -> String {
    let port = |port: usize| {
        let keys = 0..EACH.min(count - port * EACH);
        let keys: String =
            keys.map(|key| format!("{{ pkey = \"0x{:04x}\" }}, ", 0x8001 + key)).collect();
        format!("[[interface]]\nmatch.name = \"ib{port}\"\npartition = [{keys}]\n")
    };
    (0..ports(count)).map(port).collect()
}

#[test]
#[ignore = "boots with hundreds of interfaces take minutes"]
fn a_child_costs_as_much_where_there_are_many() {
    let stages = std::env::var("IBPROV_CAMPAIGN_CHILDREN").unwrap_or_else(|_| "8,16,32".into());
    let numbers: Vec<u32> = stages.split(',').map(|one| one.parse().expect("a number")).collect();
    let numbers: [u32; 3] = numbers.try_into().expect("three stages");
    let guests = numbers.map(|count| children("scale_children", count));
    for (guest, count) in guests.iter().zip(numbers) {
        guest.assert_success();
        assert_sound(guest);
        println!("{}{}", guest.stdout(), guest.file("status"));
        let links = guest.file("links");
        let all = links.lines().filter(|line| line.contains("@ib")).count();
        assert_eq!(all, count as usize, "{links}");
        assert_eq!(guest.boot_json()["verdict"], "ready", "{count}");
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
