//! A fabric with a time of its own, for tests: adapters that come late, links that come and go, a
//! subnet manager and a network stack that take their time, firmware that is slow or silent, in an
//! order that is drawn. Whether wait-online was right is judged by what this fabric is then.

#![allow(clippy::disallowed_methods, reason = "the tree that is looked at changes with time")]

use std::time::Duration;

use std::cell::RefCell;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::host::testing::tree;
use crate::host::{KernelLine, UdevEvent};
use crate::model::Link;
use crate::names::{LinkState, Moment, PhysicalState, usec};
use crate::observe::link::PortAnswer;
use crate::workers::{Answer, Request};

const MSEC: u64 = 1_000;
const SEC: u64 = 1_000 * MSEC;
const BEGIN: u64 = 10 * SEC;
const NEVER: u64 = u64::MAX;

/// Of a port: everything after the begin, in microseconds.
#[derive(Debug, Clone)]
struct Card {
    /// When the adapter is there.
    comes: u64,
    /// When its link comes up, and how long a subnet manager then takes to make it active.
    link: u64,
    sm: u64,
    /// When its link is lost, and for how long.
    loses: Option<(u64, u64)>,
    /// When a network stack brings its netdev up, which then has an address after a time.
    up: u64,
    address: u64,
}

#[derive(Debug, Clone)]
struct Story {
    cards: Vec<Card>,
    /// How long firmware takes to answer, one question after the other; `None`: for ever.
    latencies: Vec<Option<u64>>,
    /// The kernel logs what becomes of a port, as Linux 6.14 does.
    logs: bool,
    is_named: bool,
    goal: Goal,
    timeout_sec: u64,
    stop: Option<u64>,
}

/// A question of one child, and when it is answered.
#[derive(Debug)]
struct Question {
    child: usize,
    number: u64,
    what: Request,
    at: u64,
}

#[derive(Debug)]
struct State {
    now: u64,
    story: Story,
    children: Vec<UnixStream>,
    unread: Vec<Vec<u8>>,
    questions: Vec<Question>,
    asked: usize,
    told: Vec<String>,
}

impl Card {
    fn is_there(&self, at: u64) -> bool {
        BEGIN + self.comes <= at
    }

    /// When its link came up last, if it is up then.
    fn up_since(&self, at: u64) -> Option<u64> {
        let first = BEGIN + self.comes.max(self.link);
        let again = self.loses.map(|(lost, takes)| (BEGIN + lost, BEGIN + lost + takes));
        match again {
            Some((lost, back)) if lost > first && at >= lost => (at >= back).then_some(back),
            _ => (at >= first).then_some(first),
        }
    }

    fn is_active(&self, at: u64) -> bool {
        self.up_since(at).is_some_and(|since| at >= since.saturating_add(self.sm))
    }

    fn is_up(&self, at: u64) -> bool {
        self.is_there(at) && at >= BEGIN.saturating_add(self.up)
    }

    fn has_carrier(&self, at: u64) -> bool {
        self.is_up(at) && self.is_active(at)
    }

    fn has_address(&self, at: u64) -> bool {
        self.is_up(at) && at >= BEGIN.saturating_add(self.up).saturating_add(self.address)
    }

    fn is_good(&self, goal: Goal, at: u64) -> bool {
        self.is_there(at)
            && (goal.rung < Rung::Link || self.up_since(at).is_some())
            && (goal.rung < Rung::Active || self.has_carrier(at))
            && (!goal.address || self.has_address(at))
    }

    /// How often its link has gone down.
    fn downed(&self, at: u64) -> u64 {
        let first = BEGIN + self.comes.max(self.link);
        let lost = |(lost, _)| BEGIN + lost > first && at >= BEGIN + lost;
        u64::from(self.loses.is_some_and(lost))
    }

    /// When something becomes of it.
    fn times(&self) -> Vec<u64> {
        let link = BEGIN + self.comes.max(self.link);
        let up = BEGIN.saturating_add(self.up);
        let (lost, back) =
            self.loses.map_or((NEVER, NEVER), |(lost, takes)| (BEGIN + lost, BEGIN + lost + takes));
        let sm = self.sm;
        let active = [link, back].map(|at| at.saturating_add(sm));
        let address = up.saturating_add(self.address);
        [BEGIN + self.comes, link, lost, back, active[0], active[1], up, address].into()
    }

    fn answer(&self, at: u64) -> PortAnswer {
        let (state, physical) = match self.up_since(at) {
            _ if self.is_active(at) => (LinkState::Active, PhysicalState::LinkUp),
            Some(_) => (LinkState::Init, PhysicalState::LinkUp),
            None => (LinkState::Down, PhysicalState::Polling),
        };
        let lid = self.is_active(at).then_some(7);
        let (state, physical) = (Some(state), Some(physical));
        let link_downed = Some(self.downed(at));
        let link = Link { state, physical, rate: None, lid, sm_lid: lid, link_downed };
        PortAnswer { link, policy: None }
    }
}

impl State {
    fn tell(&mut self, what: &str) {
        let msec = (self.now - BEGIN) / MSEC;
        self.told.push(format!("\n    {}.{:03} s: {what}", msec / 1000, msec % 1000));
    }

    /// Take the questions that the children were asked since.
    fn take_questions(&mut self) {
        for child in 0..self.children.len() {
            let mut bytes = [0; 4096];
            let unread = &mut self.unread[child];
            loop {
                match self.children[child].read(&mut bytes) {
                    Ok(0) => break,
                    Ok(read) => unread.extend_from_slice(&bytes[..read]),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) => panic!("{e}"),
                }
            }
            while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = unread.drain(..=end).collect();
                let mut line: serde_json::Value = serde_json::from_slice(&line).expect("JSON");
                let what: Request = serde_json::from_value(line["what"].take()).expect("request");
                let takes = match what {
                    Request::Port { .. } => {
                        self.asked += 1;
                        self.story.latencies[self.asked % self.story.latencies.len()]
                    }
                    _ => Some(MSEC),
                };
                let at = takes.map_or(NEVER, |takes| self.now + takes.max(MSEC));
                let number = line["number"].as_u64().expect("number");
                self.questions.push(Question { child, number, what, at });
            }
        }
    }

    fn card(&self, number: usize) -> &Card {
        &self.story.cards[number]
    }

    fn answer(&mut self, question: &Question) {
        let now = self.now;
        let number_of = |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse();
        let answer = match &question.what {
            Request::Port { pci, .. } => {
                let is_it = |number: &usize| address(*number) == pci.to_string();
                let card = (0..self.story.cards.len()).find(is_it).expect("card");
                Answer::Port { answer: self.card(card).answer(now), problems: Vec::new() }
            }
            Request::Carrier(name) => {
                let card: usize = number_of(name.as_str()).expect("a number");
                Answer::Carrier(self.card(card).has_carrier(now))
            }
            Request::GlobalAddresses => {
                let cards = self.story.cards.iter().enumerate();
                let with = cards.filter(|(_, card)| card.has_address(now));
                let of =
                    |(number, _): (usize, &Card)| (ifindex_of(number), [10, 0, 0, 1].into(), 24);
                Answer::GlobalAddresses(with.map(of).collect())
            }
            other => panic!("nobody asks for {other:?}"),
        };
        let answer: Result<Answer, ()> = Ok(answer);
        let line = json!({"number": question.number, "what": answer}).to_string() + "\n";
        // Who asks no more has closed it.
        drop(self.children[question.child].write_all(line.as_bytes()));
    }
}

fn address(card: usize) -> String {
    format!("0000:{:02x}:00.0", 0x40 + card)
}

fn ifindex_of(card: usize) -> u32 {
    10 + u32::try_from(card).expect("few")
}

/// Lay the adapters that have come by now; those that have not wait beside the tree.
fn lay(dir: &Path, story: &Story, now: u64) {
    for (number, card) in story.cards.iter().enumerate() {
        let (at, name) = (address(number), format!("ib{number}"));
        let moves = [
            (format!("later/{at}"), format!("sys/bus/pci/devices/{at}")),
            (format!("later/{name}"), format!("sys/class/net/{name}")),
            (format!("later/n{number}"), format!("run/udev/data/n{}", ifindex_of(number))),
        ];
        for (from, to) in moves {
            if card.is_there(now) && dir.join(&from).exists() {
                fs::rename(dir.join(&from), dir.join(&to)).expect("a move");
            }
        }
        let flags = if card.is_up(now) { "0x1003\n" } else { "0x1002\n" };
        let file = dir.join(format!("sys/class/net/{name}/flags"));
        if file.exists() && fs::read_to_string(&file).expect("flags") != flags {
            fs::write(&file, flags).expect("flags");
        }
    }
}

fn new_tree(story: &Story) -> tempfile::TempDir {
    let mut files = vec![
        ("run/udev/control".to_owned(), String::new()),
        ("run/udev/data/empty".to_owned(), String::new()),
        ("sys/bus/pci/devices/empty/class".to_owned(), "0x010000\n".to_owned()),
        ("sys/class/net/lo/ifindex".to_owned(), "1\n".to_owned()),
    ];
    let mut links = Vec::new();
    for number in 0..story.cards.len() {
        let (at, index) = (format!("later/{}", address(number)), ifindex_of(number));
        for (path, text) in [
            (format!("{at}/class"), "0x020700\n".to_owned()),
            (format!("{at}/vendor"), "0x15b3\n".to_owned()),
            (format!("{at}/device"), "0x101b\n".to_owned()),
            (
                format!("{at}/infiniband/mlx5_{number}/ports/1/link_layer"),
                "InfiniBand\n".to_owned(),
            ),
            (format!("{at}/net/ib{number}/ifindex"), format!("{index}\n")),
            (format!("{at}/net/ib{number}/type"), "32\n".to_owned()),
            (format!("{at}/net/ib{number}/dev_port"), "0\n".to_owned()),
            (format!("later/ib{number}/ifindex"), format!("{index}\n")),
            (format!("later/ib{number}/type"), "32\n".to_owned()),
            (format!("later/ib{number}/flags"), "0x1002\n".to_owned()),
            (format!("later/n{number}"), "I:1\nE:ID_BUS=pci\n".to_owned()),
        ] {
            files.push((path, text));
        }
        links.push((format!("{at}/driver"), "../../drivers/mlx5_core"));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    let links: Vec<(&str, &str)> = links.iter().map(|(p, t)| (p.as_str(), *t)).collect();
    tree(&files, &links)
}

/// Let time pass until something happens, or `until`; what has happened.
fn pass(world: &RefCell<State>, dir: &Path, until: u64) -> Happened {
    let mut state = world.borrow_mut();
    state.take_questions();
    let before = state.now;
    let times = state.story.cards.iter().flat_map(Card::times);
    let stop = state.story.stop.map(|at| BEGIN + at);
    let answers = state.questions.iter().map(|question| question.at);
    let next = times.chain(stop).chain(answers).filter(|at| *at > before).min();
    state.now = next.unwrap_or(NEVER).min(until).max(before);
    let now = state.now;
    lay(dir, &state.story, now);
    let mut happened =
        Happened { stop: stop.is_some_and(|at| before < at && at <= now), ..Happened::default() };
    for (number, card) in state.story.cards.clone().iter().enumerate() {
        let differs = |of: fn(&Card, u64) -> bool| of(card, before) != of(card, now);
        if differs(Card::is_there) {
            state.tell(&format!("ib{number} is there"));
            for (subsystem, sysname) in [("pci", address(number)), ("net", format!("ib{number}"))] {
                let (action, subsystem) = ("add".to_owned(), subsystem.to_owned());
                happened.udev.push(UdevEvent { action, subsystem, sysname });
            }
        }
        // rtnetlink tells of these.
        if differs(Card::is_up) || differs(Card::has_carrier) || differs(Card::has_address) {
            happened.links = true;
        }
        if differs(|card, at| card.up_since(at).is_some()) || differs(Card::is_active) {
            let answer = card.answer(now).link.state;
            let word = match answer {
                Some(LinkState::Active) => "ACTIVE",
                Some(LinkState::Init) => "INIT",
                _ => "DOWN",
            };
            let text = format!("mlx5_{number}: Port: 1 Link {word}");
            state.tell(&text);
            if state.story.logs {
                happened.kernel.push(KernelLine { at: Moment::from_usec(now), level: 6, text });
            }
        }
    }
    let questions = std::mem::take(&mut state.questions);
    let (due, open) = questions.into_iter().partition(|question| question.at <= now);
    state.questions = open;
    let due: Vec<Question> = due;
    for question in &due {
        state.answer(question);
    }
    happened
}

/// Wait for it. What was wrong is told with what happened before.
fn is_good(story: &Story) -> Result<(), String> {
    let dir = new_tree(story);
    lay(dir.path(), story, BEGIN);
    let root = Root::copy_at(dir.path()).expect("root");
    let config = Config::default();
    let target = |number| address(number).parse().expect("address");
    let targets = (0..story.cards.len()).map(target).collect();
    let wanted = Wanted {
        targets: if story.is_named { targets } else { Vec::new() },
        goal: story.goal,
        timeout: Duration::from_secs(story.timeout_sec),
        wants_ipoib: None,
        errors: Vec::new(),
    };
    let world = Rc::new(RefCell::new(State {
        now: BEGIN,
        story: story.clone(),
        children: Vec::new(),
        unread: Vec::new(),
        questions: Vec::new(),
        asked: 0,
        told: Vec::new(),
    }));
    let children = Rc::clone(&world);
    let start: Start = Rc::new(move || {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        theirs.set_nonblocking(true).expect("no waiting");
        let mut state = children.borrow_mut();
        state.children.push(theirs);
        state.unread.push(Vec::new());
        Client::over(ours).patient()
    });
    let begin = Moment::from_usec(BEGIN);
    let mut waiting = Waiting::new(&config, &wanted, &root, &start, begin);
    let deadline = begin + wanted.timeout;
    let told = || world.borrow().told.concat();
    for _turn in 0..2_000 {
        let now = Moment::from_usec(world.borrow().now);
        match waiting.turn(now, deadline) {
            Next::Wait(until) => {
                if waiting.is_stopped || now >= deadline || until > deadline || until <= now {
                    return Err(format!("at {now:?} it waits until {until:?}:{}", told()));
                }
                let happened = pass(&world, dir.path(), until.usec());
                waiting.learn(&happened, Moment::from_usec(world.borrow().now));
            }
            Next::End(ports, forced) => {
                waiting.finish(ports, forced, now);
                let mut state = world.borrow_mut();
                let lines = waiting.report.ports.iter().map(OnlinePort::line);
                let lines: Vec<String> = lines.collect();
                state.tell(&format!("it ends: {}: {lines:#?}", waiting.report.headline()));
                let told = state.told.concat();
                return state
                    .judge(&waiting.report, deadline.usec())
                    .map_err(|why| format!("{why}:{told}"));
            }
        }
    }
    Err(format!("it does not wait:{}", told()))
}

impl State {
    fn judge(&self, report: &OnlineReport, deadline: u64) -> Result<(), String> {
        let (now, goal) = (self.now, self.story.goal);
        let is_stopped = self.story.stop.is_some_and(|at| BEGIN + at <= now);
        if is_stopped != (report.verdict == Verdict::Interrupted) {
            return Err("it was not stopped by what stopped it".to_owned());
        }
        if is_stopped {
            return Ok(());
        }
        // What was not there at the begin and is not named is not waited for.
        let is_meant = |card: &&Card| self.story.is_named || card.is_there(now);
        let cards: Vec<&Card> = self.story.cards.iter().filter(is_meant).collect();
        let longest = self.story.latencies.iter().flatten().max().copied().unwrap_or_default();
        // What was seen last may be as old as this.
        let oldest = now.saturating_sub(usec(LOOK_EVERY) + longest).max(BEGIN);
        let times: Vec<u64> = cards.iter().flat_map(|card| card.times()).collect();
        let moments = || {
            let within = times.iter().copied().filter(|at| (oldest..=now).contains(at));
            within.chain([oldest, now])
        };
        // For so long all is as it is, and after so long that had to be seen.
        let last = times.iter().copied().filter(|at| *at <= now).max().unwrap_or(BEGIN);
        let quiet = [longest * 2, usec(ASK_EVERY) * 2, goal.stable_sec * SEC].iter().sum::<u64>();
        let answers = self.story.latencies.iter().all(Option::is_some) && longest < SEC;
        let is_quiet = answers && now > last.max(BEGIN) + quiet;
        if report.verdict == Verdict::Ready {
            if cards.is_empty() {
                return Err("ready without a port".to_owned());
            }
            if is_quiet {
                return Err("it goes on although all is well".to_owned());
            }
            for card in &cards {
                if !moments().any(|at| card.is_good(goal, at)) {
                    return Err(format!("ready, and this port is not: {card:?}"));
                }
                let stable = goal.stable_sec * SEC;
                let is_long_enough = now.saturating_sub(stable) >= BEGIN;
                let is_asked = goal.rung >= Rung::Link;
                // Without a line of the kernel it is seen when the port is asked again; and no answer
                // is awaited beyond the deadline.
                let is_heard = self.story.logs && now < deadline;
                let unheard = if is_heard { 0 } else { usec(ASK_EVERY) + longest };
                let seen = now.saturating_sub(unheard);
                let is_lost = |since| is_asked && card.downed(seen) > card.downed(since);
                if stable > 0 && (!is_long_enough || is_lost(now - stable)) {
                    return Err(format!("ready, and this port was not so long enough: {card:?}"));
                }
            }
            return Ok(());
        }
        if cards.is_empty() {
            return Ok(());
        }
        if now < deadline {
            return Err("it gives up although ports can come".to_owned());
        }
        if is_quiet && cards.iter().all(|card| card.is_good(goal, now)) {
            return Err("all is well, and it does not see that".to_owned());
        }
        if is_quiet && self.story.is_named {
            for (card, port) in self.story.cards.iter().zip(&report.ports) {
                if port.online != card.is_good(goal, now) {
                    return Err(format!("{} is not told as it is: {card:?}", port.line()));
                }
            }
        }
        Ok(())
    }
}

fn card() -> impl Strategy<Value = Card> {
    let sec = |longest: u64| 0..longest * SEC;
    let late = |longest: u64| prop_oneof![3 => Just(0), 2 => 0..longest * SEC];
    let never = |longest: u64| prop_oneof![1 => Just(NEVER / 4), 6 => 0..longest * SEC];
    (late(12), never(12), never(8), proptest::option::of((sec(25), sec(6))), never(10), never(6))
        .prop_map(|(comes, link, sm, loses, up, address)| Card {
            comes,
            link,
            sm,
            loses,
            up,
            address,
        })
}

fn story() -> impl Strategy<Value = Story> {
    let rung = prop_oneof![Just(Rung::Named), Just(Rung::Link), Just(Rung::Active)];
    let goal = (rung, any::<bool>(), 0..4_u64).prop_map(|(rung, address, stable_sec)| Goal {
        rung,
        address,
        stable_sec,
    });
    let latency = prop_oneof![
        8 => (0..20 * MSEC).prop_map(Some),
        2 => (0..900 * MSEC).prop_map(Some),
        1 => (0..6 * SEC).prop_map(Some),
    ];
    let latency = prop_oneof![30 => latency, 1 => Just(None)];
    (
        proptest::collection::vec(card(), 1..4),
        proptest::collection::vec(latency, 1..6),
        any::<bool>(),
        any::<bool>(),
        goal,
        5..40_u64,
        prop_oneof![9 => Just(None), 1 => (0..30 * SEC).prop_map(Some)],
    )
        .prop_map(|(cards, latencies, logs, is_named, goal, timeout_sec, stop)| Story {
            cards,
            latencies,
            logs,
            is_named,
            goal,
            timeout_sec,
            stop,
        })
}

/// All ports are stable at the moment in which the kernel says that one has lost its link.
#[test]
fn a_link_that_is_lost_at_the_last_moment_is_asked_for() {
    let card = |link, sm, loses, up, address| Card { comes: 0, link, sm, loses, up, address };
    let story = Story {
        cards: vec![
            card(6_135_580, 5_284_491, Some((13_129_244, 4_434_358)), 4_103_800, 5_082_614),
            card(1_813_691, NEVER / 4, Some((13_420_071, 2_846_049)), 5_273_165, 5_634_100),
        ],
        latencies: vec![Some(9_460), Some(19_943)],
        logs: true,
        is_named: false,
        goal: Goal { rung: Rung::Link, address: true, stable_sec: 2 },
        timeout_sec: 36,
        stop: None,
    };
    is_good(&story).expect("good");
}

/// Without a link that is asked for nothing but time makes a port stable.
#[test]
fn a_port_that_has_been_there_for_so_long_ends_the_wait() {
    let never = NEVER / 4;
    let card = Card { comes: 0, link: never, sm: 0, loses: None, up: never, address: never };
    let story = Story {
        cards: vec![card],
        latencies: vec![Some(0)],
        logs: false,
        is_named: false,
        goal: Goal { rung: Rung::Named, address: false, stable_sec: 1 },
        timeout_sec: 36,
        stop: None,
    };
    is_good(&story).expect("good");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// It ends as soon as all ports are what is asked for, as long as that is asked for, and at
    /// the latest at its deadline; it is ready only if the ports are; it says of each what it is.
    #[test]
    fn whatever_comes_it_waits_for_the_ports_and_believes_no_old_answer(story in story()) {
        if let Err(why) = is_good(&story) {
            prop_assert!(false, "{why}");
        }
    }
}
