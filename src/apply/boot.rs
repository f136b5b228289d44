//! `ibprov boot`: one loop of observe, judge, act and wait for an event.

mod ending;
mod rdma_names;
mod status;
mod vfs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use log::Level;

use self::rdma_names::RdmaNames;
use self::vfs::Vfs;
use super::preview::denied;
use super::steps::Steps;
use super::{locks, usec};
use crate::config::{Config, InterfaceSelector};
use crate::host::events::{Events, Happened};
use crate::host::process::{self, Ended};
use crate::host::{Root, clock, journal, lock, persistent_names, state};
use crate::ladder::{self, Facts, expect, progress};
use crate::names::{Guid, IfName, ModuleName, ModuleState, Rung};
use crate::observe::ipoib::Interfaces;
use crate::observe::{ModprobeRules, Observed, Observer, driver_modules};
use crate::plan::settings::judge_settings;
use crate::plan::{Done, boot_steps, waits_for_udev};
use crate::report::boot::{Climbed, Moment, Step, blank};
use crate::report::port::port_fields;
use crate::report::{BootReport, PortProgress, Verdict, events as kinds};

/// For how long after modprobe's start udev's events do not make boot look at
/// the host: a usual load is over by then.
const QUIET_USEC: u64 = 300_000;

/// Before that nobody reads a status line, and systemd has modules' devices to
/// work on.
const STATUS_AFTER_USEC: u64 = 1_000_000;

/// Time that the unit's own limit leaves us beyond the deadline, seconds.
const GRACE_SEC: u64 = 20;

/// How often the status line is brought up to date while nothing happens.
const STATUS_EVERY_USEC: u64 = 5_000_000;

/// How long an interface's own unit may take to say how its settings went,
/// before boot makes them itself: the udev rule can be missing, the unit masked.
const INSTANCE_USEC: u64 = 5_000_000;

/// A boot in progress.
struct Boot<'a> {
    config: &'a Config,
    observer: Observer<'a>,
    rules: ModprobeRules,
    facts: Facts,
    done: Done,
    steps: Steps<'a>,
    /// Devices that udev was heard to finish with.
    heard: BTreeSet<String>,
    /// Whether an RDMA device has its final name.
    rdma_names: RdmaNames,
    /// The kernel log from before boot has been read.
    knows_history: bool,
    /// Modules that were there before anything was done.
    there: BTreeSet<ModuleName>,
    /// The GUID plans of the PFs.
    vfs: Vfs<'a>,
    /// When each expected port was first waited for, by label of expectation.
    since: BTreeMap<String, u64>,
    /// The rung each port was last seen at.
    seen: BTreeMap<String, Option<Rung>>,
    /// systemd knows the deadline.
    extended: bool,
    /// Since when an interface waits for its settings.
    unset: BTreeMap<IfName, u64>,
    /// When they were made, of those that were waited for.
    set: BTreeMap<IfName, u64>,
    report: BootReport,
}

/// Bring the ports up. Always gives a report; never outlasts the deadline.
///
/// # Errors
/// Nothing could be waited for at all (no poll, no signals).
pub fn run(config: &Config, config_file: Option<&Path>, root: &Root) -> anyhow::Result<BootReport> {
    let started = clock::monotonic_usec();
    let before = process::own_usage();
    let deadline = started + usec(config.boot.deadline);
    let mut report = blank(started);
    report.cpu_before_usec = before.cpu_usec;
    report.deadline_sec = config.boot.deadline.as_secs();
    report.hca_deadline_sec = config.boot.hca_deadline.as_secs();

    let locks = locks(&mut report.problems);
    let mut watched: Vec<&Path> = locks.iter().map(lock::Locks::dir).collect();
    // Where the instances of ibprov-iface@.service leave their outcomes.
    let outcomes = state::ports_dir();
    match &outcomes {
        Ok(dir) => watched.push(dir),
        Err((path, e)) => {
            let answer = crate::host::answer(e);
            report.problems.push(format!("cannot make {}: {answer}", path.display()));
        }
    }
    let mut events = Events::open(&watched)?;
    report.problems.append(&mut events.problems);

    journal::emit(
        kinds::STARTED,
        Level::Debug,
        "boot began",
        &[
            ("IBPROV_VERSION", report.version.to_string()),
            ("IBPROV_DEADLINE_SEC", report.deadline_sec.to_string()),
        ],
    );
    // Before a module is loaded that makes an interface.
    if let Err(e) = persistent_names::establish(&names_by_guid(config)) {
        report.problems.push(format!("persistent names: {e}"));
    }
    let rules = ModprobeRules::read(root);
    report.problems.extend(rules.problems.iter().cloned());
    let mut boot = Boot {
        config,
        observer: Observer::new(root),
        rules,
        facts: Facts::default(),
        done: Done::default(),
        steps: Steps::new(locks.as_ref()),
        heard: BTreeSet::new(),
        rdma_names: RdmaNames::default(),
        knows_history: false,
        there: BTreeSet::new(),
        vfs: Vfs::new(config, config_file, started),
        since: BTreeMap::new(),
        seen: BTreeMap::new(),
        extended: false,
        unset: BTreeMap::new(),
        set: BTreeMap::new(),
        report,
    };
    let own_turn = boot.take_turn(locks.as_ref(), &mut events, deadline)?;
    match own_turn {
        Turn::Ours(_lock) => boot.climb(&mut events, deadline)?,
        Turn::Stopped => boot.finish(Some(Verdict::Interrupted), &[], &Observed::default()),
        Turn::Never => boot.finish(Some(Verdict::NotReady), &[], &Observed::default()),
    }
    Ok(boot.report)
}

/// The names that the configuration gives by port GUID.
fn names_by_guid(config: &Config) -> Vec<(Guid, IfName)> {
    let named =
        config.interfaces.iter().filter_map(|rule| match (&rule.which, &rule.persistent_name) {
            (InterfaceSelector::PortGuid(guid), Some(name)) => Some((*guid, name.clone())),
            _ => None,
        });
    let mut names: Vec<(Guid, IfName)> = named.collect();
    names.dedup();
    names
}

/// Whether this boot may act.
enum Turn {
    Ours(Option<lock::Held>),
    Stopped,
    Never,
}

impl Boot<'_> {
    /// A second `boot` waits for the first, under its own deadline.
    fn take_turn(
        &mut self,
        locks: Option<&lock::Locks>,
        events: &mut Events,
        deadline: u64,
    ) -> anyhow::Result<Turn> {
        let Some(locks) = locks else { return Ok(Turn::Ours(None)) };
        loop {
            match locks.try_take("boot") {
                Ok(held) => return Ok(Turn::Ours(Some(held))),
                Err(lock::LockError::Busy { owner }) => {
                    let owner = owner.map_or_else(|| "?".to_owned(), |p| p.to_string());
                    self.tell(&format!("waiting for another ibprov boot, process {owner}"));
                    if clock::monotonic_usec() >= deadline {
                        self.report.problems.push(format!(
                            "another ibprov boot (process {owner}) held /run/ibprov/lock/boot until the deadline"
                        ));
                        return Ok(Turn::Never);
                    }
                }
                Err(e) => {
                    self.report.problems.push(format!("{e}: working without it"));
                    return Ok(Turn::Ours(None));
                }
            }
            let retry = clock::monotonic_usec() + lock::RETRY_USEC;
            let happened = events.wait(deadline.min(retry))?;
            self.learn(&happened);
            if happened.stop {
                return Ok(Turn::Stopped);
            }
        }
    }

    fn climb(&mut self, events: &mut Events, deadline: u64) -> anyhow::Result<()> {
        let mut first_look = true;
        let mut stopped = false;
        loop {
            // What has ended is collected before the host is looked at, or a
            // step would be judged by what the host was before it ended.
            let ended = self.steps.collect_ended();
            let observed = self.observe();
            self.rdma_names.learn(&observed, first_look);
            if first_look {
                self.first_look(&observed);
            }
            self.judge(ended, &observed);
            let expectation = expect::expectation(self.config, &observed, &self.rules);
            let mut ports = progress::progress(&expectation, &observed);
            let now = clock::monotonic_usec();
            let held = self.rdma_names.hold(&mut ports, &observed, now);
            let overdue = self.settings(&mut ports);
            self.note_progress(&ports);
            if stopped {
                self.left_out(&expectation);
                self.finish(Some(Verdict::Interrupted), &ports, &observed);
                return Ok(());
            }
            let steps =
                boot_steps(self.config, &self.rules, &observed, &expectation, &ports, &self.done);
            let overdue = overdue.into_iter().filter(|s| !self.done.begun.contains(s));
            for step in steps.into_iter().chain(overdue.collect::<Vec<_>>()) {
                self.steps.begin(step, &mut self.done, &mut self.facts);
            }
            first_look = false;
            self.vfs.begin(self.observer.root(), &observed, &ports, deadline);
            // Hundreds of lines that a good boot has no need of: read once
            // modprobe is through and a port is still missing.
            if !self.done.modules_in_flight() && ports.iter().any(|p| !p.is_ready()) {
                self.learn_history();
            }
            let next = self.next_deadline(&ports, &observed, now, deadline);
            let next = self.vfs.next_deadline(now, deadline).into_iter().chain(next).min();
            let next = next.map(|n| held.map_or(n, |h| h.min(n)));
            let Some(next) = next else {
                self.left_out(&expectation);
                self.finish(None, &ports, &observed);
                return Ok(());
            };
            if now.saturating_sub(self.report.started_usec) >= STATUS_AFTER_USEC {
                self.tell(&self.status_line(&ports, &observed, now));
            }
            let until = next.min(now + STATUS_EVERY_USEC).min(self.next_status(now));
            stopped = self.listen(events, until, held.is_some() || waits_for_udev(&ports))?;
        }
    }

    /// When the first status line is due; the others follow from looking.
    fn next_status(&self, now: u64) -> u64 {
        let first = self.report.started_usec + STATUS_AFTER_USEC;
        if now < first { first } else { u64::MAX }
    }

    /// Wait until the host is worth another look; true if we are to stop.
    ///
    /// A look takes CPU time from the modprobe that is waited for, and each
    /// module it loads makes events: while it has just begun, only what can
    /// change the next step counts.
    fn listen(
        &mut self,
        events: &mut Events,
        until: u64,
        waits_for_udev: bool,
    ) -> anyhow::Result<bool> {
        let udev_decides = waits_for_udev || !events.hears_udev();
        let quiet = match self.steps.loading_since() {
            Some(since) if !udev_decides => since + QUIET_USEC,
            _ => 0,
        };
        // VFs that come make hundreds of events more.
        let quiet = quiet.max(self.vfs.quiet_until(clock::monotonic_usec()));
        let mut news = false;
        loop {
            let now = clock::monotonic_usec();
            let limit = if news { until.min(quiet) } else { until };
            if limit <= now {
                return Ok(false);
            }
            let happened = events.wait(limit)?;
            self.learn(&happened);
            if happened.stop {
                return Ok(true);
            }
            if happened.child || happened.files || !happened.kernel.is_empty() {
                return Ok(false);
            }
            news |= happened.to_devices() || (happened.udev_idle && udev_decides);
            if news && clock::monotonic_usec() >= quiet {
                return Ok(false);
            }
        }
    }

    /// When to look again at the latest; `None` if there is nothing left to
    /// wait for.
    fn next_deadline(
        &mut self,
        ports: &[PortProgress],
        observed: &Observed,
        now: u64,
        deadline: u64,
    ) -> Option<u64> {
        if now >= deadline {
            return None;
        }
        let per_hca = usec(self.config.boot.hca_deadline);
        let mut next = None;
        for port in ports.iter().filter(|p| !p.is_ready()) {
            let since = *self.since.entry(port.expected.clone()).or_insert(now);
            let blocked =
                ladder::cause::cause(port, observed, &self.facts).is_some_and(|c| c.is_final);
            let until = (since + per_hca).min(deadline);
            if !blocked && until > now {
                next = Some(next.map_or(until, |n: u64| n.min(until)));
            }
        }
        if self.done.modules_in_flight() {
            next = Some(next.unwrap_or(deadline));
        }
        if self.steps.watches_another_run() {
            next = next.map(|n: u64| n.min(now + lock::RETRY_USEC));
        }
        // When an interface's own unit has had its time.
        let instances = self.unset.iter().filter(|(netdev, _)| !self.set.contains_key(netdev));
        let soonest = instances.map(|(_, since)| since + INSTANCE_USEC).filter(|t| *t > now).min();
        next.map(|n: u64| soonest.map_or(n, |s| n.min(s)))
    }

    /// Judge the rung `configured`: each interface's own unit makes its settings
    /// and says so. Gives what boot does itself, where none has in 5 s.
    fn settings(&mut self, ports: &mut [PortProgress]) -> Vec<Step> {
        let now = clock::monotonic_usec();
        let root = self.observer.root();
        let open = judge_settings(self.config, &Interfaces::look(root), ports, &mut self.facts);
        for (netdev, ..) in &open {
            self.unset.entry(netdev.clone()).or_insert(now);
        }
        for port in ports.iter().filter(|p| p.reached == Some(Rung::Configured)) {
            if let Some(netdev) = port.netdev.as_ref().filter(|n| self.unset.contains_key(n)) {
                self.set.entry(netdev.clone()).or_insert(now);
            }
        }
        let overdue = open.into_iter().filter(|(netdev, _)| {
            self.unset.get(netdev).is_some_and(|since| now >= since + INSTANCE_USEC)
        });
        overdue.map(|(netdev, ifindex)| Step::Configure { netdev, ifindex }).collect()
    }

    fn observe(&self) -> Observed {
        let modules: Vec<ModuleName> =
            self.config.modules.load.iter().cloned().chain(driver_modules()).collect();
        self.observer.look(&modules, &self.heard)
    }

    fn judge(&mut self, ended: Vec<(Step, Ended)>, observed: &Observed) {
        for (step, end) in ended {
            self.done.ended.insert(step.clone());
            let host = (observed, self.observer.root());
            self.steps.judge(&step, &end, &mut self.facts, &self.rules, host);
        }
    }

    fn first_look(&mut self, observed: &Observed) {
        self.report.kernel.clone_from(&observed.kernel);
        let loaded = observed.modules.iter().filter(|(_, s)| **s != ModuleState::Absent);
        self.there = loaded.map(|(name, _)| name.clone()).collect();
        // No step is taken for these, so nothing else would say why they lack.
        self.facts.modules.extend(denied(self.config, &self.rules, observed));
    }

    /// What the kernel said before boot began.
    fn learn_history(&mut self) {
        if std::mem::replace(&mut self.knows_history, true) {
            return;
        }
        // Who cannot read the log was told so when the events were opened.
        for line in crate::host::kernel_log().unwrap_or_default() {
            ladder::cause::learn(&mut self.facts, line.level, &line.text);
        }
    }

    fn learn(&mut self, happened: &Happened) {
        for event in &happened.udev {
            if event.action == "remove" {
                self.heard.remove(&event.sysname);
            } else {
                self.heard.insert(event.sysname.clone());
            }
        }
        for line in &happened.kernel {
            ladder::cause::learn(&mut self.facts, line.level, &line.text);
            self.steps.hear(line);
        }
    }

    /// Write down each rung a port reaches, when it is seen there.
    fn note_progress(&mut self, ports: &[PortProgress]) {
        let now = clock::monotonic_usec();
        for port in ports {
            self.since.entry(port.expected.clone()).or_insert(now);
            let key = format!("{} {:?}", port.expected, port.port);
            let before = self.seen.insert(key, port.reached);
            if before == Some(port.reached) {
                continue;
            }
            let Some(rung) = port.reached else { continue };
            let netdev = port.netdev.as_ref().map(|n| format!(" as {n}")).unwrap_or_default();
            // When the settings were made first is not known, if boot did not wait.
            let waited = port.netdev.as_ref().is_some_and(|n| self.unset.contains_key(n));
            let usec = match rung {
                Rung::Named => port.named_usec.unwrap_or(now),
                Rung::Configured if !waited => port.named_usec.unwrap_or(now),
                _ => now,
            };
            let there = if before.is_none() { " (when first seen)" } else { "" };
            let text = format!("{}: {rung}{netdev}{there}", port.label());
            let (expected, port_number) = (port.expected.clone(), port.port);
            let climbed = Some(Climbed { expected, port: port_number, rung });
            self.report.timeline.push(Moment { usec, text, climbed });
            if port.is_ready() && !port.is_ethernet() {
                journal::emit(
                    kinds::PORT_READY,
                    Level::Info,
                    &format!("{}: {rung}{netdev}", port.label()),
                    &port_fields(port),
                );
            }
        }
    }
}
