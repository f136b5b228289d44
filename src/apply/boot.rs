//! `ibprov boot`: one loop of observe, judge, act and wait for an event.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use log::Level;

use super::boot_vfs::Vfs;
use super::preview::denied;
use super::steps::Steps;
use super::warnings::send_queue_warning;
use crate::config::Config;
use crate::host::events::{Events, Happened};
use crate::host::process::Ended;
use crate::host::{Root, clock, journal, lock, process, systemd};
use crate::ladder::{self, Cause, Expectation, Facts, PortProgress, Rung, expect, progress};
use crate::names::ModuleName;
use crate::observe::{ModprobeRules, ModuleState, Observed, Observer, driver_modules};
use crate::plan::{Done, Step, boot_steps, waits_for_udev};
use crate::report::boot::{
    Climbed, LeftOut, ModuleOutcome, ModuleReport, Moment, PortReport, blank,
};
use crate::report::{BootReport, Verdict, events as kinds};

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

    let locks = lock::Locks::in_run()
        .map_err(|e| report.problems.push(format!("{e}: working without locks")))
        .ok();
    let watched: Vec<&Path> = locks.iter().map(lock::Locks::dir).collect();
    let mut events = Events::open(&watched)?;
    report.problems.append(&mut events.problems);

    journal::emit(
        kinds::STARTED,
        Level::Debug,
        "boot began",
        &[
            ("IBPROV_VERSION", report.version.to_owned()),
            ("IBPROV_DEADLINE_SEC", report.deadline_sec.to_string()),
        ],
    );
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
        knows_history: false,
        there: BTreeSet::new(),
        vfs: Vfs::new(config, config_file, started),
        since: BTreeMap::new(),
        seen: BTreeMap::new(),
        extended: false,
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

/// Whether this boot may act.
enum Turn {
    Ours(Option<lock::Held>),
    Stopped,
    Never,
}

fn usec(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 4)
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
            let happened = events.wait(deadline)?;
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
            if first_look {
                self.first_look(&observed);
            }
            self.judge(ended, &observed);
            let expectation = self.expectation(&observed);
            let ports = progress::progress(&expectation, &observed);
            self.note_progress(&ports);
            if stopped {
                self.left_out(&expectation);
                self.finish(Some(Verdict::Interrupted), &ports, &observed);
                return Ok(());
            }
            let now = clock::monotonic_usec();
            let steps =
                boot_steps(self.config, &self.rules, &observed, &expectation, &ports, &self.done);
            for step in steps {
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
            let Some(next) = next else {
                self.left_out(&expectation);
                self.finish(None, &ports, &observed);
                return Ok(());
            };
            if now.saturating_sub(self.report.started_usec) >= STATUS_AFTER_USEC {
                self.tell(&self.status_line(&ports, &observed, now));
            }
            let until = next.min(now + STATUS_EVERY_USEC).min(self.next_status(now));
            stopped = self.listen(events, until, &ports)?;
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
        ports: &[PortProgress],
    ) -> anyhow::Result<bool> {
        let udev_decides = waits_for_udev(ports) || !events.hears_udev();
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
            news |= !happened.udev.is_empty() || (happened.udev_idle && udev_decides);
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
        next
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

    fn expectation(&self, observed: &Observed) -> Expectation {
        expect::expectation(self.config, observed, |module| {
            if self.config.modules.skip.contains(module) {
                return Some("modules.skip of the configuration".to_owned());
            }
            self.rules.denied(module).map(str::to_owned)
        })
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
            let usec = if rung == Rung::Named { port.named_usec.unwrap_or(now) } else { now };
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

    fn tell(&mut self, status: &str) {
        if !std::mem::replace(&mut self.extended, true)
            && let Err(e) = systemd::extend_start(self.config.boot.deadline.as_secs() + GRACE_SEC)
        {
            log::debug!("cannot tell systemd the deadline: {e}");
        }
        if let Err(e) = systemd::status(status) {
            log::debug!("cannot tell systemd the status: {e}");
        }
    }

    fn status_line(&self, ports: &[PortProgress], observed: &Observed, now: u64) -> String {
        let waited: Vec<&PortProgress> = ports.iter().filter(|p| !p.is_ethernet()).collect();
        let ready = waited.iter().filter(|p| p.is_ready()).count();
        let mut line = format!("{ready} of {} ports", waited.len());
        let since = |p: &PortProgress| self.since.get(&p.expected).copied().unwrap_or(now);
        let says_why = |p: &PortProgress| {
            let log = p.pci.and_then(|pci| self.facts.functions.get(&pci));
            log.is_some_and(|l| l.firmware_wait.is_some())
        };
        // A card that waits for firmware may be what the others wait for: its
        // driver's module is not through before it is.
        let missing = waited.iter().filter(|p| !p.is_ready());
        if let Some(port) = missing.min_by_key(|p| (!says_why(p), since(p))) {
            let why = ladder::cause::cause(port, observed, &self.facts).map(|c| c.text);
            let seconds = now.saturating_sub(since(port)) / 1_000_000;
            line = format!(
                "{line}: waiting for {}: {}, {seconds} s",
                port.label(),
                why.unwrap_or_default()
            );
        } else if self.done.modules_in_flight() {
            line.push_str(": waiting for modprobe");
        } else if let Some(waiting) = self.vfs.waiting() {
            line = format!("{line}: {waiting}");
        }
        line
    }

    fn left_out(&mut self, expectation: &Expectation) {
        self.report.left_out = expectation
            .left_out
            .iter()
            .filter(|(_, reason)| !self.vfs.has_plan_for(reason))
            .map(|(pci, reason)| LeftOut { pci: *pci, reason: reason.clone() })
            .collect();
    }

    fn finish(&mut self, forced: Option<Verdict>, ports: &[PortProgress], observed: &Observed) {
        let now = clock::monotonic_usec();
        self.steps.give_up(&self.done, &mut self.facts);
        (self.report.pfs, self.report.unresolved_pfs) = self.vfs.outcomes();
        if ports.iter().any(|p| !p.is_ready()) {
            self.learn_history();
        }
        self.report.ports = ports.iter().map(|p| self.port_report(p, observed, now)).collect();
        self.report.modules = self.module_reports(observed, ports.is_empty());
        self.report.problems.extend(observed.problems.iter().cloned());
        if !ports.is_empty() && !observed.udev.running {
            self.report.problems.push(
                "systemd-udevd is not running (/run/udev/control does not exist): nobody loads drivers or names netdevs".to_owned(),
            );
        }
        self.report.problems.extend(send_queue_warning(
            self.observer.root(),
            &self.rules,
            observed,
        ));
        self.report.steps = self.steps.reports();
        self.report.forks = self.steps.forks();
        self.report.timeline.sort_by_key(|m| m.usec);
        self.report.finished_usec = now;
        let verdict = forced.unwrap_or_else(|| verdict(&self.report));
        self.report.verdict = verdict;
        self.report.exit_code = verdict.exit_code();
        let usage = process::own_usage();
        self.report.cpu_usec = usage.cpu_usec.saturating_sub(self.report.cpu_before_usec);
        self.report.peak_memory_kib = usage.peak_memory_kib;
    }

    fn port_report(&self, port: &PortProgress, observed: &Observed, now: u64) -> PortReport {
        let since = self.since.get(&port.expected).copied().unwrap_or(now);
        let ready_at =
            if port.is_ready() { port.named_usec.unwrap_or(now).max(since) } else { now };
        PortReport {
            progress: port.clone(),
            ready: port.is_ready(),
            missing: port.missing(),
            cause: ladder::cause::cause(port, observed, &self.facts),
            waited_usec: ready_at.min(now).saturating_sub(since),
        }
    }

    fn module_reports(&self, observed: &Observed, nothing_expected: bool) -> Vec<ModuleReport> {
        let outcome = |name: &ModuleName| {
            let state = observed.modules.get(name).copied().unwrap_or(ModuleState::Absent);
            if self.there.contains(name) {
                return ModuleOutcome::AlreadyThere;
            }
            match (state, self.facts.modules.get(name)) {
                (ModuleState::Loaded, _) => ModuleOutcome::Loaded,
                _ if nothing_expected => ModuleOutcome::NotNeeded,
                (_, trouble) => {
                    let trouble = trouble.cloned().unwrap_or_else(|| {
                        self.steps.trouble(name, &self.rules, observed, self.observer.root())
                    });
                    let text = trouble.to_string();
                    let advice = trouble.advice(name);
                    ModuleOutcome::Missing { trouble, text, advice }
                }
            }
        };
        let load = self.config.modules.load.iter();
        load.map(|name| ModuleReport { name: name.clone(), outcome: outcome(name) }).collect()
    }
}

/// The fields of a port's journal event.
#[must_use]
pub fn port_fields(port: &PortProgress) -> Vec<(&'static str, String)> {
    let mut fields = vec![("IBPROV_EXPECTED", port.expected.clone())];
    let mut add = |name: &'static str, value: Option<String>| {
        fields.extend(value.map(|v| (name, v)));
    };
    add("IBPROV_PCI", port.pci.map(|v| v.to_string()));
    add("IBPROV_RDMA", port.rdma.as_ref().map(ToString::to_string));
    add("IBPROV_PORT", port.port.map(|v| v.to_string()));
    add("IBPROV_GUID", port.guid.map(|v| v.to_string()));
    add("IBPROV_NETDEV", port.netdev.as_ref().map(ToString::to_string));
    add("IBPROV_RUNG", port.reached.map(|v| v.to_string()));
    fields
}

fn verdict(report: &BootReport) -> Verdict {
    let deferred =
        |p: &PortReport| p.progress.optional || p.cause.as_ref().is_some_and(|c: &Cause| c.by_site);
    let missing_module = |m: &ModuleReport| matches!(m.outcome, ModuleOutcome::Missing { .. });
    // A PF with a bad plan, or one that is not there: both are not as wanted.
    let wrong_pf = report.pfs.iter().any(|p| p.exit_code > 1) || !report.unresolved_pfs.is_empty();
    let deferred_pf = report.pfs.iter().any(|p| p.exit_code == 1);
    if wrong_pf || report.ports.iter().any(|p| !p.ready && !deferred(p)) {
        Verdict::NotReady
    } else if deferred_pf
        || report.ports.iter().any(|p| !p.ready)
        || report.modules.iter().any(missing_module)
    {
        Verdict::Deferred
    } else if report.ports.is_empty() && report.left_out.is_empty() {
        Verdict::NoInfiniband
    } else {
        Verdict::Ready
    }
}
