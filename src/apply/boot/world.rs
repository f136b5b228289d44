//! A machine with a time of its own that boots, for tests: adapters that come late, fail once or
//! for good, modprobe and plans of PFs that take their time or hang, in an order that is drawn.
//! Whether boot was right is judged by what this machine is then.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::apply::machine::Child;
use crate::apply::pf::LONGEST_END;
use crate::config::{Problems, Source};
use crate::host::KernelLine;
use crate::host::UdevEvent;
use crate::host::lock::Held;
use crate::host::testing::tree;
use crate::model::{DeferredSettings, IfaceReport};
use crate::names::{LinkLayer, Moment, PortNumber, at};
use crate::observe::{NetDev, PciFunction, Port, RdmaDevice};

const MSEC: u64 = 1_000;
const BEGIN: u64 = 10_000 * MSEC;
const NEVER: u64 = u64::MAX;
const MODULES: [&str; 4] = ["ib_umad", "ib_uverbs", "ib_ipoib", "mlx5_ib"];

#[derive(Debug, Clone)]
struct Card {
    /// When udev loads its driver, after the begin; `None`: udev does not.
    udev: Option<u64>,
    probe: u64,
    /// The first probe fails; the second does, too.
    fails: (bool, bool),
    /// How long its RDMA device, its netdev and udev take after that.
    takes: [u64; 3],
}

#[derive(Debug, Clone)]
struct Story {
    cards: Vec<Card>,
    /// So many of them have VFs of a plan.
    pfs: usize,
    /// How long children take, one after the other; `None`: they hang.
    children: Vec<Option<u64>>,
    timeout_sec: u64,
    stop: Option<u64>,
}

/// What came of a card so far; each when it comes, or came.
#[derive(Debug, Clone, Copy)]
struct Known {
    probed: u64,
    driver: u64,
    rdma: u64,
    netdev: u64,
    named: u64,
}

#[derive(Debug)]
struct Started {
    args: Vec<String>,
    at: u64,
    ends: u64,
    is_over: bool,
}

#[derive(Debug)]
struct State {
    now: u64,
    story: Story,
    known: Vec<Known>,
    /// When the modules that boot loads are there.
    loaded: u64,
    started: Vec<Started>,
    lines: Vec<(u64, String)>,
    told: Vec<String>,
}

#[derive(Debug, Clone)]
struct World(Rc<RefCell<State>>);

/// One child of this world.
#[derive(Debug)]
struct Program(World, usize);

fn address(card: usize) -> String {
    format!("0000:{:02x}:00.0", 0x40 + card)
}

fn modalias(card: usize) -> String {
    format!("pci:v000015B3d0000101Bsv{card}")
}

impl State {
    fn tell(&mut self, what: &str) {
        let msec = (self.now - BEGIN) / MSEC;
        self.told.push(format!("\n    {}.{:03} s: {what}", msec / 1000, msec % 1000));
    }

    /// The driver of a card is bound at that time.
    fn bind(&mut self, card: usize, at: u64) {
        let [rdma, netdev, named] = self.story.cards[card].takes;
        let known = &mut self.known[card];
        known.driver = at;
        known.rdma = at + rdma;
        known.netdev =
            if self.loaded == NEVER { NEVER } else { known.rdma.max(self.loaded) + netdev };
        known.named = known.netdev.saturating_add(named);
    }

    fn fail(&mut self, card: usize, at: u64) {
        let at_card = address(card);
        let line =
            format!("mlx5_core {at_card}: probe with driver mlx5_core failed with error -110");
        self.lines.push((at, line));
    }

    /// ib_ipoib is there at that time.
    fn load(&mut self, at: u64) {
        self.loaded = self.loaded.min(at);
        for card in 0..self.known.len() {
            let driver = self.known[card].driver;
            if driver != NEVER {
                self.bind(card, driver);
            }
        }
    }

    fn start(&mut self, args: &[String]) -> usize {
        let number = self.started.len();
        let takes = self.story.children[number % self.story.children.len()];
        let ends = takes.map_or(NEVER, |takes| self.now + takes.max(MSEC));
        self.tell(&format!("begins: {}", args.join(" ")));
        self.started.push(Started { args: args.to_vec(), at: self.now, ends, is_over: false });
        if ends != NEVER {
            let is_it = |card: &usize| args.last() == Some(&modalias(*card));
            if let Some(card) = (0..self.known.len()).find(is_it) {
                match self.story.cards[card].fails.1 && self.story.cards[card].fails.0 {
                    true => self.fail(card, ends - MSEC),
                    false if self.known[card].driver > ends => self.bind(card, ends - MSEC),
                    false => {}
                }
            } else if args.first().is_some_and(|first| first == "-b") {
                self.load(ends);
            }
        }
        number
    }

    fn observe(&self, heard: &BTreeSet<String>) -> Observed {
        let is = |at: u64| at <= self.now;
        let function = |(card, known): (usize, &Known)| {
            let netdev = is(known.netdev).then(|| NetDev {
                name: format!("ib{card}").parse().expect("name"),
                ifindex: 10 + u32::try_from(card).expect("few"),
                named: is(known.named),
                named_usec: Some(known.named).filter(|at| is(*at)).map(Moment::from_usec),
                guid: None,
            });
            let port = Port {
                number: PortNumber::new(1).expect("number"),
                link_layer: LinkLayer::InfiniBand,
                guid: None,
                netdev,
                ethernet: None,
            };
            let device = RdmaDevice {
                name: format!("mlx5_{card}").parse().expect("name"),
                node_guid: None,
                ports: vec![port],
            };
            PciFunction {
                address: address(card).parse().expect("address"),
                modalias: modalias(card),
                driver: is(known.driver).then(|| "mlx5_core".to_owned()),
                rdma: Some(device).filter(|_| is(known.rdma)).into_iter().collect(),
                ..PciFunction::connectx6()
            }
        };
        let state = |name: &str| match name == "mlx5_ib" || is(self.loaded) {
            true => ModuleState::Loaded,
            false => ModuleState::Absent,
        };
        Observed {
            kernel: "6.12.0".to_owned(),
            functions: self.known.iter().enumerate().map(function).collect(),
            modules: MODULES.map(|m| (m.parse().expect("name"), state(m))).into(),
            netns_mode: None,
            udev: crate::model::status::Udev {
                running: Some(true),
                settled: !self.udev_times().any(|(_, at)| at != NEVER && !is(at)),
                heard: heard.clone(),
            },
            problems: BTreeSet::new(),
        }
    }

    /// When udev is through with what.
    fn udev_times(&self) -> impl Iterator<Item = (String, u64)> {
        self.known.iter().enumerate().flat_map(|(card, known)| {
            // Its rule waits for the name that the kernel gives the RDMA device.
            let rdma = (format!("mlx5_{card}"), known.rdma.saturating_add(MSEC));
            [(address(card), known.probed), rdma, (format!("ib{card}"), known.named)]
        })
    }

    /// Whatever happens next.
    fn next(&self) -> u64 {
        let children = self.started.iter().filter(|child| !child.is_over).map(|child| child.ends);
        let lines = self.lines.iter().map(|(at, _)| *at);
        let known = self.known.iter().flat_map(|k| [k.driver, k.rdma, k.netdev, k.named]);
        let stop = self.story.stop.map(|at| BEGIN + at);
        let all = children.chain(lines).chain(known).chain(self.udev_times().map(|(_, at)| at));
        all.chain(stop).filter(|at| *at > self.now).min().unwrap_or(NEVER)
    }
}

impl World {
    fn new(story: &Story) -> Self {
        let nothing =
            Known { probed: BEGIN, driver: NEVER, rdma: NEVER, netdev: NEVER, named: NEVER };
        let mut state = State {
            now: BEGIN,
            story: story.clone(),
            known: vec![nothing; story.cards.len()],
            loaded: NEVER,
            started: Vec::new(),
            lines: Vec::new(),
            told: Vec::new(),
        };
        for (number, card) in story.cards.iter().enumerate() {
            let Some(udev) = card.udev else { continue };
            let at = BEGIN + udev + card.probe;
            state.known[number].probed = at;
            if card.fails.0 { state.fail(number, at) } else { state.bind(number, at) }
        }
        Self(Rc::new(RefCell::new(state)))
    }

    /// Let time pass until something happens, or `until`; what has happened.
    fn pass(&self, until: u64) -> Happened {
        let mut state = self.0.borrow_mut();
        let before = state.now;
        state.now = state.next().min(until).max(before);
        let now = state.now;
        let is_new = |at: u64| before < at && at <= now;
        let kernel = state.lines.iter().filter(|(at, _)| is_new(*at));
        let kernel = kernel.map(|(at, text)| (Moment::from_usec(*at), text.clone()));
        let kernel = kernel.map(|(at, text)| KernelLine { at, level: 4, text });
        let udev = state.udev_times().filter(|(_, at)| is_new(*at));
        let udev = udev.map(|(sysname, _)| UdevEvent {
            action: "add".to_owned(),
            subsystem: "pci".to_owned(),
            sysname,
        });
        let happened = Happened {
            kernel: kernel.collect(),
            udev: udev.collect(),
            stop: state.story.stop.is_some_and(|at| is_new(BEGIN + at)),
            ..Happened::default()
        };
        for line in &happened.kernel {
            state.tell(&line.text);
        }
        happened
    }
}

impl Machine for World {
    fn now(&self) -> Moment {
        Moment::from_usec(self.0.borrow().now)
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        Some(PathBuf::from(program))
    }

    fn start(&self, _: &Path, args: &[String], _: Option<Held>) -> io::Result<Box<dyn Child>> {
        self.start_self(args)
    }

    fn start_self(&self, args: &[String]) -> io::Result<Box<dyn Child>> {
        let number = self.0.borrow_mut().start(args);
        Ok(Box::new(Program(self.clone(), number)))
    }

    fn kernel_log(&self) -> io::Result<Vec<KernelLine>> {
        Ok(Vec::new())
    }
}

impl Child for Program {
    fn pid(&self) -> u32 {
        7
    }

    fn started(&self) -> Moment {
        Moment::from_usec(self.0.0.borrow().started[self.1].at)
    }

    fn ended(&mut self) -> io::Result<Option<Ended>> {
        let mut state = self.0.0.borrow_mut();
        let now = state.now;
        let child = &mut state.started[self.1];
        child.is_over = child.ends <= now;
        let took = Duration::from_micros(now - child.at);
        let ended = Ended { failure: None, stderr: String::new(), stdout: String::new(), took };
        Ok(child.is_over.then_some(ended))
    }

    fn ask_to_end(&self) {}
}

fn config(story: &Story) -> Config {
    let pf = |card: usize| {
        format!(
            "[[pf]]\npci = \"{}\"\nvfs = 1\nguid.template = \"02:00:00:0{card}:{{pf:8}}:{{kind:8}}:{{vf:16}}\"\n",
            address(card)
        )
    };
    let text: String = (0..story.pfs.min(story.cards.len())).map(pf).collect();
    let source = Source { path: "/c.toml".to_owned(), text };
    let loaded = crate::config::resolve(vec![source], Problems::default());
    let mut config = loaded.map_err(|problems| problems.to_string()).expect("good").config;
    config.boot.timeout = Duration::from_secs(story.timeout_sec);
    config.boot.adapter_timeout = config.boot.timeout;
    config
}

/// Boot it. What was wrong is told with what happened before.
fn is_good(story: &Story) -> Result<(), String> {
    let total = |card| (format!("sys/bus/pci/devices/{}/sriov_totalvfs", address(card)), "8\n");
    let files: Vec<_> = (0..story.cards.len()).map(total).collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let dir = tree(&files, &[]);
    let root = Root::copy_at(dir.path()).expect("root");
    let (config, rules, world) = (config(story), ModprobeRules::default(), World::new(story));
    let steps = Steps::new(&world, &root, &rules, None, None, false);
    let begin = Moment::from_usec(BEGIN);
    let vfs = Vfs::new(&world, &config, None, begin);
    let mut boot = Boot::new(&world, &config, &root, &rules, steps, vfs, blank(begin));
    let deadline = begin + config.boot.timeout;
    let (mut is_stopped, mut last_event) = (false, begin);
    let told = || world.0.borrow().told.concat();
    for _turn in 0..2_000 {
        let ended = boot.steps.collect_ended();
        let observed = world.0.borrow().observe(&boot.heard.devices);
        let now = world.now();
        let (ports, next) = boot.turn(&observed, ended, is_stopped, now, deadline);
        match next {
            Next::Wait { until, .. } => {
                if is_stopped || now >= deadline || until > deadline || until <= now {
                    return Err(format!("at {now:?} it waits until {until:?}:{}", told()));
                }
                let happened = world.pass(until.usec());
                is_stopped |= happened.stop;
                if world.now() < until || happened != Happened::default() {
                    last_event = world.now();
                }
                boot.learn(&happened);
            }
            Next::End(forced) => {
                let report = boot.finish(forced, &ports, &observed);
                let unresolved = report.unresolved_pfs.iter().filter(|pf| !pf.may_pass());
                if let Some(pf) = unresolved.flat_map(|pf| &pf.errors).next() {
                    return Err(format!("this world has no plan: {pf}"));
                }
                world.0.borrow_mut().tell(&format!("it ends: {:?}", report.verdict));
                let state = world.0.borrow();
                return state
                    .judge(&report, now.usec(), last_event.usec(), deadline.usec())
                    .map_err(|why| format!("{why}:{}", state.told.concat()));
            }
        }
    }
    Err(format!("it does not wait:{}", told()))
}

impl State {
    fn judge(
        &self,
        report: &BootReport,
        now: u64,
        last_event: u64,
        deadline: u64,
    ) -> Result<(), String> {
        let is_stopped = report.verdict == Verdict::Interrupted;
        for (number, child) in self.started.iter().enumerate() {
            let before = self.started.iter().take(number);
            if before.clone().any(|other| other.args == child.args) {
                return Err(format!("begun twice: {}", child.args.join(" ")));
            }
            if child.args.first().is_some_and(|verb| verb == "apply") {
                let limit: u64 = child.args[5].parse().expect("milliseconds");
                if limit > 0 && child.at + limit * MSEC + usec(LONGEST_END) > deadline {
                    return Err(format!("no time is left for: {}", child.args.join(" ")));
                }
                // Numbers of the kernel: one works alone.
                let is_beside = |other: &Started| other.args[0] == "apply" && other.ends > child.at;
                if before.clone().any(is_beside) {
                    return Err("VFs are bound in any order".to_owned());
                }
            } else if !child.is_over && now < deadline && !is_stopped {
                return Err(format!("at work: {}", child.args.join(" ")));
            }
        }
        let lacking = self.known.iter().filter(|known| known.named > now).count();
        if report.verdict == Verdict::Ready && lacking > 0 {
            return Err(format!("ready, and {lacking} ports are not named"));
        }
        // What is still to come was not waited for.
        let is_to_come = |(known, card): &(&Known, &Card)| {
            let is_seen_to_fail = card.fails.0 && known.driver > now;
            known.named > now && known.named != NEVER && !is_seen_to_fail
        };
        let to_come = self.known.iter().zip(&self.story.cards).filter(is_to_come).count();
        if to_come > 0 && now < deadline && !is_stopped {
            return Err(format!("{to_come} ports are still to come"));
        }
        let is_awaited = lacking > 0 || self.started.iter().any(|child| child.ends > now);
        if !is_awaited && now > last_event + 100 * MSEC {
            return Err(format!("it waited {} ms for nothing", (now - last_event) / MSEC));
        }
        Ok(())
    }
}

fn story() -> impl Strategy<Value = Story> {
    let takes = || prop_oneof![Just(0), 0..50 * MSEC, 0..3_000 * MSEC];
    let udev = prop::option::weighted(0.8, 0..4_000 * MSEC);
    let fails = (prop::bool::weighted(0.3), any::<bool>());
    let card = (udev, takes(), fails, [takes(), takes(), takes()])
        .prop_map(|(udev, probe, fails, takes)| Card { udev, probe, fails, takes });
    let cards = prop::collection::vec(card, 1..4);
    let children = prop::collection::vec(prop::option::weighted(0.9, takes()), 1..6);
    let stop = prop::option::weighted(0.1, 1..8_000 * MSEC);
    (cards, 0_usize..4, children, 4_u64..40, stop).prop_map(
        |(cards, pfs, children, timeout_sec, stop)| Story {
            cards,
            pfs,
            children,
            timeout_sec,
            stop,
        },
    )
}

/// What was in use then may not be any more: the interface's own unit says so anew.
#[test]
fn what_an_earlier_run_found_in_use_is_waited_for() {
    let nothing = DeferredSettings { steps: Vec::new(), uses: Vec::new() };
    let waits = |began: Moment| {
        let outcome = IfaceReport {
            ifindex: 10,
            deferred: Some(nothing.clone()),
            ..IfaceReport::blank("ib0", began)
        };
        let json = outcome.to_report().to_json().expect("JSON");
        let net = "sys/class/net/ib0";
        let files = [("ifindex", "10\n"), ("type", "32\n"), ("dev_port", "0\n"), ("uevent", "\n")];
        let mut files = files.map(|(file, text)| (format!("{net}/{file}"), text)).to_vec();
        files.push(("run/ibprov/ports/10.json".to_owned(), &json));
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let dir = tree(&files, &[(&format!("{net}/device"), "../../0000:40:00.0")]);
        let root = Root::copy_at(dir.path()).expect("root");
        let card = Card { udev: Some(0), probe: MSEC, fails: (false, false), takes: [MSEC; 3] };
        let story = Story {
            cards: vec![card],
            pfs: 0,
            children: vec![Some(MSEC)],
            timeout_sec: 60,
            stop: None,
        };
        let world = World::new(&story);
        world.0.borrow_mut().load(BEGIN);
        let source = Source {
            path: "/c.toml".to_owned(),
            text: "[[interface]]\nmatch.name = \"ib0\"\nmtu = 2044\n".to_owned(),
        };
        let loaded = crate::config::resolve(vec![source], Problems::default());
        let config = loaded.map_err(|problems| problems.to_string()).expect("good").config;
        let rules = ModprobeRules::default();
        let steps = Steps::new(&world, &root, &rules, None, None, false);
        let vfs = Vfs::new(&world, &config, None, at(BEGIN));
        let mut boot = Boot::new(&world, &config, &root, &rules, steps, vfs, blank(at(BEGIN)));
        while at(world.0.borrow().known[0].named) > world.now() {
            let happened = world.pass(NEVER);
            boot.learn(&happened);
        }
        let observed = world.0.borrow().observe(&boot.heard.devices);
        let now = world.now();
        let (ports, next) =
            boot.turn(&observed, Vec::new(), false, now, now + Duration::from_secs(1));
        assert_eq!(ports[0].reached, Some(crate::names::Rung::Named), "{ports:?}");
        matches!(next, Next::Wait { .. })
    };
    assert!(waits(at(BEGIN - 1)));
    assert!(!waits(at(BEGIN)), "it was found in this boot");
}

proptest! {
    /// It ends when nothing is awaited any more and not sooner, at the latest at its deadline; it
    /// is ready only if all ports are; it begins nothing twice, and leaves the plan of each PF the
    /// time to put things back.
    #[test]
    fn whatever_comes_when_boot_waits_for_it_and_for_nothing_else(story in story()) {
        if let Err(why) = is_good(&story) {
            prop_assert!(false, "{why}");
        }
    }
}
