//! `ibprov wait-online`: waits until ports are in use by the fabric, not only
//! there.
//!
//! One loop of look, ask, judge and wait for the next event. [`judge`] is pure;
//! [`target`] says which ports were meant. Nothing on the host is changed.

mod asked;
mod judge;
mod soft_roce;
mod target;
#[cfg(test)]
mod world;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tracing::Level;

use self::asked::{Netdevs, Ports, Start};
use crate::config::Config;
use crate::host::events::{Events, Happened};
use crate::host::{Root, clock, journal, kernel_log, links, state, systemd, terminal};
use crate::ladder::minimum::{degraded_port, minimum};
use crate::ladder::{Expectation, KernelLogFacts, UdevHistory, cause, expect, progress, roce};
use crate::model::{
    Advice, Awaited, Cause, Code, Finding, OnlineReport, PortProgress, RxeReport, RxeState,
    Standing, Verdict, events as kinds,
    online::{Goal, Lack, OnlinePort},
    port_span,
};
use crate::names::{IfName, LinkLayer, ModuleName, Moment, Object, PortNumber, Rung, Target};
use crate::observe::{self, ModprobeRules, Observed, Observer, driver_modules};
use crate::plan::denied_modules;
use crate::plan::settings::{Children, judge_settings};
use crate::stacks::{self, KNOWN};
use crate::workers::Client;
use crate::workers::products::Products;

use judge::{LastSeen, lasting};
pub use judge::{SILENCE, Seen, lack, words};

/// What to wait for, and how long.
#[derive(Debug)]
pub struct Wanted {
    /// The ports; every expected one if none is named.
    pub targets: Vec<Target>,
    /// How far each has to come.
    pub goal: Goal,
    /// For how long to wait.
    pub timeout: Duration,
    /// Who wants a netdev of IPoIB, where ib_ipoib is denied.
    pub wants_ipoib: Option<String>,
    /// The errors of the configuration for which a port may not be waited for.
    pub errors: Vec<Finding>,
}

/// How often a port that has no link or is not Active is asked again. No event
/// of the kernel tells of that: see [`crate::host`]'s `link_events`. Since Linux
/// 6.14 its log does ("Port: 1 Link ACTIVE", `ib_cache_update()`), which is
/// listened to; so is the carrier. One question is four firmware queries.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// How often everything is looked at although nothing was heard.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A wait that goes on.
struct Waiting<'a> {
    config: &'a Config,
    wanted: &'a Wanted,
    observer: Observer<'a>,
    rules: ModprobeRules,
    facts: KernelLogFacts,
    heard: UdevHistory,
    ports: Ports,
    netdevs: Netdevs,
    products: Products<'a>,
    observed: Observed,
    due: Due,
    is_stopped: bool,
    /// What each port lacks, how often its link had gone down, and since when that is seen.
    since: BTreeMap<(Awaited, Option<PortNumber>), (LastSeen, Moment)>,
    report: OnlineReport,
}

/// When what is seen is worth another look.
#[derive(Debug, Default)]
struct Due {
    look: Moment,
    ports: Moment,
    netdevs: Moment,
}

/// What a turn came to.
#[derive(Debug)]
enum Next {
    /// The end, by force or with what became of the ports.
    End(Vec<OnlinePort>, Option<Verdict>),
    /// Wait for what may change something, until then at the latest.
    Wait(Moment),
}

/// Wait. Always gives a report; never outlasts the deadline.
///
/// # Errors
/// Nothing could be waited for at all (no poll, no signals).
pub fn run(config: &Config, wanted: &Wanted, root: &Root) -> anyhow::Result<OnlineReport> {
    let started = clock::now();
    // Where settings are made, of which no other event tells. Only root has it.
    let outcomes = state::outcomes_dir(state::PORTS);
    if let Err(e) = &outcomes {
        tracing::debug!(cause = e.answer, "cannot watch {e}");
    }
    let watched: Vec<&Path> = outcomes.iter().map(PathBuf::as_path).collect();
    let mut events = Events::open(&watched)?;
    events.listen_to_links();
    let start: Start = Rc::new(|| Client::live().patient());
    let mut waiting = Waiting::new(config, wanted, root, &start, started);
    waiting.report.problems.append(&mut events.problems);
    let deadline = started + wanted.timeout;
    loop {
        match waiting.turn(clock::now(), deadline) {
            Next::End(ports, forced) => {
                waiting.finish(ports, forced, clock::now());
                return Ok(waiting.report);
            }
            Next::Wait(until) => {
                let happened = events.wait_also(until, waiting.answers_come())?;
                waiting.learn(&happened, clock::now());
            }
        }
    }
}

/// The index of a netdev, as sysfs has it.
fn ifindex(root: &Root, name: &IfName) -> Option<u32> {
    root.attribute(&format!("/sys/class/net/{name}/ifindex")).ok()?.parse().ok()
}

impl<'a> Waiting<'a> {
    fn new(
        config: &'a Config,
        wanted: &'a Wanted,
        root: &'a Root,
        start: &Start,
        started: Moment,
    ) -> Self {
        let mut report = OnlineReport::new(started, wanted.timeout.as_secs(), wanted.goal);
        report.configuration.clone_from(&wanted.errors);
        let mut facts = KernelLogFacts::default();
        facts.wants_ipoib.clone_from(&wanted.wants_ipoib);
        Self {
            config,
            wanted,
            observer: Observer::new(root),
            rules: ModprobeRules::read(root),
            facts,
            heard: UdevHistory::default(),
            ports: Ports::new(Rc::clone(start)),
            netdevs: Netdevs::new(Rc::clone(start)),
            products: Products::new(root).with_overrides(),
            observed: Observed::default(),
            due: Due::default(),
            is_stopped: false,
            since: BTreeMap::new(),
            report,
        }
    }

    /// Look at what is due, ask about it, and judge what is known.
    fn turn(&mut self, now: Moment, deadline: Moment) -> Next {
        if now >= self.due.look {
            let load = self.config.modules.load.iter().cloned();
            let modules: Vec<ModuleName> = load.chain(driver_modules()).collect();
            self.observed = self.observer.look(&modules, &self.heard.devices);
            self.facts.modules = denied_modules(self.config, &self.rules, &self.observed);
            self.products.learn(&mut self.observed, now);
            self.due.look = now + LOOK_EVERY;
        }
        let progress = self.progress();
        // Who asks nothing must not be woken for it.
        let asks = self.wanted.goal.rung >= Rung::Link;
        if asks {
            self.ports.follow(&progress, now);
            if now >= self.due.ports {
                self.ports.ask(now);
                self.due.ports = now + LOOK_EVERY;
            }
        }
        if now >= self.due.netdevs || self.netdevs.is_stale() {
            self.netdevs.ask(self.netdevs_of(&progress), now);
            self.due.netdevs = now + LOOK_EVERY;
        }
        let complete = self.is_complete();
        let states = self.judge(&progress, complete, now);
        if complete && states.iter().any(|state| self.is_unknown(state)) {
            return Next::End(states, Some(Verdict::NotBegun));
        }
        if self.is_stopped {
            return Next::End(states, Some(Verdict::Interrupted));
        }
        let lacks_link = |s: &OnlinePort| {
            matches!(
                s.lack,
                Some(Lack::Answer | Lack::Link | Lack::Active | Lack::Gid | Lack::Stable)
            )
        };
        if states.iter().any(lacks_link) {
            self.due.ports = self.due.ports.min(now + ASK_EVERY);
        }
        // What the ports answered last may not be so any more where something was heard since, and
        // who is online is told with its addresses, if those can be had.
        let answers = self.ports.due(now).into_iter().chain(self.netdevs.due(now)).min();
        // A port that cannot may turn out not to be expected.
        let products = self.products.due(true, now);
        let can_still_come = |s: &OnlinePort| {
            let is_final = s.cause.as_ref().is_some_and(|cause| cause.is_final);
            s.lack.is_some() && (products.is_some() || !is_final)
        };
        if now >= deadline || !states.iter().any(can_still_come) && answers.is_none() {
            return Next::End(states, None);
        }
        self.tell(&states);
        let until = deadline.min(self.due.look).min(self.due.netdevs);
        let ports = asks.then_some(self.due.ports);
        // That time has passed is no event.
        let is_short = states.iter().any(|state| state.lack == Some(Lack::Stable));
        let stable = is_short.then_some(now + ASK_EVERY);
        let sooner = ports.into_iter().chain(answers).chain(products).chain(stable);
        Next::Wait(sooner.fold(until, Moment::min))
    }

    /// What can be read when an answer has come.
    fn answers_come(&self) -> Vec<BorrowedFd<'_>> {
        let mut answers = self.ports.answers_come();
        answers.extend(self.netdevs.answers_come());
        answers.extend(self.products.answers_come());
        answers
    }

    /// Take in what has happened, and the answers that have come.
    fn learn(&mut self, happened: &Happened, now: Moment) {
        self.is_stopped |= happened.stop;
        self.ports.take_answers();
        self.netdevs.take_answers();
        let to_devices = happened.to_devices();
        if self.products.take(now) || happened.links || happened.files || to_devices {
            self.due.look = Moment::START;
        }
        // A netdev that has got its name is asked about for the first time.
        if happened.links || to_devices {
            self.due.netdevs = Moment::START;
        }
        if happened.links || self.tells_of_a_port(happened) {
            self.due.ports = Moment::START;
        }
        self.heard.learn(happened, &mut self.facts);
    }

    /// How far every port is that is waited for, up to `configured`.
    fn progress(&mut self) -> Vec<PortProgress> {
        let mut ports = self.climbed();
        judge_settings(
            self.config,
            &stacks::interfaces(self.observer.root(), self.config),
            &mut ports,
            &mut self.facts,
            Children::Excused,
        );
        // The fabric uses it whether or not its settings have been left as they were.
        let unset = &self.facts.unset;
        let is_in_use = |port: &PortProgress| {
            let unset = port.netdev.as_ref().and_then(|netdev| unset.get(netdev));
            unset.is_some_and(|why| why.in_use)
        };
        for port in ports.iter_mut().filter(|p| p.reached == Some(Rung::Named) && is_in_use(p)) {
            port.reached = Some(Rung::Configured);
        }
        ports
    }

    fn expectation(&self) -> Expectation {
        let wants_ipoib = self.facts.wants_ipoib.as_deref();
        expect::expectation(self.config, &self.observed, &self.rules, wants_ipoib)
    }

    /// The same, up to `named`.
    fn climbed(&self) -> Vec<PortProgress> {
        let mut expectation = self.expectation();
        let goal = expectation.goal.min(self.wanted.goal.rung);
        expectation.goal = goal;
        let roce_goal = expectation.roce_goal.min(self.wanted.goal.rung);
        expectation.roce_goal = roce_goal;
        if self.wanted.targets.is_empty() {
            return progress::progress(&expectation, &self.observed);
        }
        let mut all: Vec<PortProgress> = Vec::new();
        for target in &self.targets() {
            if soft_roce::is_meant(self.config, target) {
                continue;
            }
            let child = observe::target::child(target, self.observer.root());
            let Some(expected) =
                target::expected(target, child.as_ref(), self.config, &self.observed)
            else {
                let why = "named on the command line".to_owned();
                all.push(PortProgress::absent(target.to_string(), goal, why));
                continue;
            };
            let one = Expectation {
                expected: vec![expected],
                left_out: Vec::new(),
                goal,
                roce_goal,
                at_least: None,
                vfs: Vec::new(),
                is_whole: true,
            };
            for mut port in progress::progress(&one, &self.observed) {
                if let Some(child) = &child {
                    // The parent's port, but a netdev of its own.
                    port.netdev = Some(child.name.clone());
                    port.expected = Object::from(&child.name);
                }
                let known = |p: &PortProgress| {
                    port.rdma.is_some()
                        && p.rdma == port.rdma
                        && p.port == port.port
                        && p.netdev == port.netdev
                };
                if !all.iter().any(known) {
                    all.push(port);
                }
            }
        }
        all
    }

    /// The ports that were named, a netdev by its own name.
    fn targets(&self) -> Vec<Target> {
        let root = self.observer.root();
        self.wanted.targets.iter().map(|target| links::by_own_name(root, target)).collect()
    }

    /// Nothing on the host has the name that this was given by.
    fn is_unknown(&self, port: &OnlinePort) -> bool {
        !self.wanted.targets.is_empty()
            && port.lack == Some(Lack::Rung(Rung::Pci))
            && !self.may_be_child(&port.progress)
    }

    /// It was given by the name of a P_Key child, which can be created at any time.
    fn may_be_child(&self, port: &PortProgress) -> bool {
        let child = |target: &Target| {
            port.expected == Object::from(target.to_string())
                && target::may_be_child(target, self.config, &self.observed)
        };
        self.wanted.targets.iter().any(child)
    }

    /// Nothing is still to come by itself; asked only where ports were named.
    fn is_complete(&self) -> bool {
        let root = self.observer.root();
        !self.wanted.targets.is_empty()
            && root.exists(&format!("{}/boot.json", state::RUN_DIR))
            && target::all_is_there(self.expectation(), &self.observed)
    }

    fn judge(&mut self, progress: &[PortProgress], complete: bool, now: Moment) -> Vec<OnlinePort> {
        if let Some(problem) = self.netdevs.problem.take()
            && !self.report.problems.contains(&problem)
        {
            self.report.problems.push(problem);
        }
        if progress.iter().any(|p| !p.is_ready()) {
            // A copied tree has no log of its own.
            let is_live = self.observer.root().is_live();
            let log = || if is_live { kernel_log() } else { Ok(Vec::new()) };
            self.heard.read_history(&mut self.facts, log);
        }
        let mut states: Vec<OnlinePort> =
            progress.iter().map(|port| self.judge_one(port, complete, now)).collect();
        self.excuse_beyond(&mut states);
        let soft = soft_roce::wanted(self.config, self.observer.root(), &self.targets());
        states.extend(soft.iter().map(|report| self.judge_soft(report, now)));
        states
    }

    /// A soft RoCE device, of which no port is to be asked.
    fn judge_soft(&mut self, report: &RxeReport, now: Moment) -> OnlinePort {
        let root = self.observer.root();
        let netdev = report.netdev.as_ref().filter(|_| report.state == RxeState::Present);
        let addresses = netdev.and_then(|name| self.addresses(name, ifindex(root, name)?));
        let known = soft_roce::Known {
            carrier: netdev.and_then(|name| self.netdevs.carrier(name)),
            addresses: addresses.as_deref(),
            is_silent: self.netdevs.silent(now) >= SILENCE,
        };
        let (lack, cause) = soft_roce::lack(report, root, known, self.wanted.goal).unzip();
        let mut progress = soft_roce::progress(report, lack, self.wanted.goal);
        let stable_sec = self.wanted.goal.stable_sec;
        let (lack, for_sec) = lasting(&mut self.since, &progress, stable_sec, (lack, None), now);
        let is_short = lack == Some(Lack::Stable);
        let cause = cause.or_else(|| is_short.then(|| judge::too_short(None)));
        // As status judges it; one that is named is counted on.
        let is_excused = report.state.standing() == Standing::Excused;
        progress.optional = is_excused && self.wanted.targets.is_empty();
        OnlinePort {
            online: lack.is_none(),
            lid: None,
            state: None,
            physical: None,
            degraded: Vec::new(),
            rate: None,
            addresses: addresses.unwrap_or_default(),
            for_sec,
            progress,
            lack,
            cause,
        }
    }

    /// The addresses of global scope of a netdev and of what is above it, if they are known.
    fn addresses(&self, name: &IfName, index: u32) -> Option<Vec<String>> {
        let indexes = observe::link::above(self.observer.root(), name, index);
        self.netdevs.addresses().map(|all| {
            let own = all.iter().filter(|(index, ..)| indexes.contains(index));
            own.map(|(_, address, bits)| format!("{address}/{bits}")).collect()
        })
    }

    /// What `boot.at-least` excuses, of ports that nobody has named.
    fn excuse_beyond(&self, states: &mut [OnlinePort]) {
        let named = !self.wanted.targets.is_empty();
        let online = states.iter().filter(|s| s.online && !s.progress.is_ethernet()).count();
        let enough = self.config.boot.at_least.as_ref().is_some_and(|a| online >= a.ports);
        for state in states.iter_mut().filter(|state| !state.online) {
            let is_excused = enough && !state.progress.is_no_port();
            state.progress.optional = !named && (state.progress.optional || is_excused);
        }
    }

    fn judge_one(&mut self, port: &PortProgress, complete: bool, now: Moment) -> OnlinePort {
        let root = self.observer.root();
        let mut seen = self.ports.seen(port, &self.observed, now);
        if let Some((name, ifindex)) = self.netdev(port) {
            seen.netdev = Some(observe::link::netdev(root, &name, self.netdevs.carrier(&name)));
            seen.netdev_silent = self.netdevs.silent(now);
            seen.addresses = self.addresses(&name, ifindex);
            seen.owner = KNOWN.owner(root, &name, ifindex);
        }
        if let (true, Some(pci), Some(device), Some(number)) =
            (port.must_be_ethernet, port.pci, &port.rdma, port.port)
        {
            let gids = observe::link::gids(root, pci, device, (number, LinkLayer::Ethernet));
            seen.has_gid = roce::has_gid(&gids);
        }
        let lack = lack(port, &seen, self.wanted.goal);
        let downed = seen.answer.as_ref().and_then(|answer| answer.link.link_downed);
        let stable_sec = self.wanted.goal.stable_sec;
        let (lack, for_sec) = lasting(&mut self.since, port, stable_sec, (lack, downed), now);
        let cause = match lack {
            Some(Lack::Rung(Rung::Pci)) if !self.wanted.targets.is_empty() => Some(Cause {
                text: format!(
                    "no such netdev, RDMA device, PCI function or port GUID (present: {})",
                    observe::target::names(&self.observed)
                ),
                advice: vec![Advice::look(
                    "`ibprov status` shows all names; a P_Key child has to be created first ([[interface.partition]])",
                )],
                is_final: complete && !self.may_be_child(port),
                ..Cause::waiting("", [])
            }),
            // A program may still load drivers of its own, as a driver container does.
            Some(Lack::Rung(_)) => {
                let cause = cause::cause(port, &self.observed, &self.facts);
                cause.map(|cause| Cause {
                    is_final: cause.is_final && cause.code != Some(Code::ModuleDenied),
                    ..cause
                })
            }
            Some(lack) => Some(words(port, &seen, lack)),
            None => None,
        };
        let link = seen.answer.map(|a| a.link).unwrap_or_default();
        OnlinePort {
            progress: port.clone(),
            online: lack.is_none(),
            lid: link.lid,
            state: link.state,
            physical: link.physical,
            degraded: degraded_port(&minimum(self.config, port), &link),
            rate: link.rate,
            addresses: seen.addresses.unwrap_or_default(),
            lack,
            cause,
            for_sec,
        }
    }

    fn netdevs_of(&self, progress: &[PortProgress]) -> Vec<IfName> {
        let ours = progress.iter().filter(|port| !port.is_ethernet());
        let ours = ours.filter_map(|port| Some(self.netdev(port)?.0));
        let soft = soft_roce::wanted(self.config, self.observer.root(), &self.targets());
        let present = soft.into_iter().filter(|report| report.state == RxeState::Present);
        ours.chain(present.filter_map(|report| report.netdev)).collect()
    }

    fn netdev(&self, port: &PortProgress) -> Option<(IfName, u32)> {
        let function = self.observed.functions.iter().find(|f| Some(f.address) == port.pci)?;
        let netdevs = function.rdma.iter().flat_map(|d| &d.ports).filter_map(|p| p.netdev.as_ref());
        let name = port.netdev.clone()?;
        let own = netdevs.filter(|n| n.name == name).map(|n| n.ifindex).next();
        // A P_Key child is no netdev of the port's own.
        let index = own.or_else(|| ifindex(self.observer.root(), &name))?;
        Some((name, index))
    }

    /// True if the kernel log has said something of a port's link.
    fn tells_of_a_port(&self, happened: &Happened) -> bool {
        let devices = || self.observed.functions.iter().flat_map(|f| &f.rdma);
        happened.kernel.iter().any(|line| {
            line.text.contains("Link ") && devices().any(|d| line.text.contains(d.name.as_str()))
        })
    }

    fn tell(&self, states: &[OnlinePort]) {
        let waited: Vec<&OnlinePort> =
            states.iter().filter(|s| !s.progress.is_ethernet()).collect();
        let online = waited.iter().filter(|s| s.online).count();
        let mut line = format!("{online} of {} ports online", waited.len());
        if let Some(port) = waited.iter().find(|s| !s.online) {
            line = format!("{line}: waiting for {}", port.line());
        }
        systemd::tell_status(&line);
    }

    fn finish(&mut self, states: Vec<OnlinePort>, forced: Option<Verdict>, now: Moment) {
        self.report.problems.extend(self.observed.problems.iter().cloned());
        self.report.finish(states, forced, now);
        // Who reads along has them in the report.
        if terminal::is_by_hand() {
            return;
        }
        for port in self.report.ports.iter().filter(|p| !p.progress.is_ethernet()) {
            let (kind, level) = if port.online {
                (kinds::PORT_ONLINE, Level::INFO)
            } else {
                (kinds::PORT_NOT_ONLINE, Level::ERROR)
            };
            let _port = port_span(&port.progress).entered();
            journal::event!(
                level,
                message_id = kind,
                missing = (!port.online).then(|| port.lack.map_or("", Lack::word)),
                cause = port.cause.as_ref().filter(|_| !port.online).map(|c| &c.text),
                "{}",
                port.line()
            );
        }
    }
}
