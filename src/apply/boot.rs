//! `ibprov boot`: one loop of observe, judge, act and wait for an event.

mod ending;
mod former;
mod interfaces;
mod rdma_names;
mod soft_roce;
pub mod to_come;
mod vfs;
mod waited;
#[cfg(test)]
mod world;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use tracing::{debug, info};

use self::interfaces::{Interfaces, leave_out_old_deferrals};
use self::rdma_names::RdmaNames;
use self::vfs::Vfs;
use self::waited::{Waited, standing};
use super::ipoib;
use super::locks;
use super::machine::{Live, Machine};
use super::steps::Steps;
use super::warnings::{foreseen_of_all, send_queue_warning};
use crate::config::{Config, InterfaceSelector, PfSelector, PortRow};
use crate::host::events::{Events, Happened};
use crate::host::persistent_names::NamedPort;
use crate::host::process::{self, Ended};
use crate::host::start_up::{FirstRun, StartUp};
use crate::host::state::{self, Running};
use crate::host::{Root, clock, lock, persistent_names, rxe_rules, systemd};
use crate::ladder::{self, Expectation, KernelLogFacts, UdevHistory, expect, progress};
use crate::model::{
    BootReport, Finding, ModuleOutcome, ModuleReport, PortProgress, Step, Verdict, boot::blank,
    events as kinds, port_span,
};
use crate::names::{IfName, ModuleName, ModuleState, Moment, PciAddress, usec};
use crate::observe::{ModprobeRules, Observed, Observer, driver_modules};
use crate::plan::rxe::rxe_steps;
use crate::plan::settings::{Children, judge_settings};
use crate::plan::{
    boot_steps, denied_modules, free_names_first, hold_misnamed, needed_modules, waits_for_udev,
};
use crate::stacks;
use crate::workers::products::Products;

/// For how long after modprobe's start udev's events do not make boot look at
/// the host: a usual load is over by then.
const QUIET: Duration = Duration::from_millis(300);

/// How long the boot waits until the network namespace mode is set.
const NETNS: Duration = Duration::from_secs(10);

/// Before that nobody reads a status line, and systemd has modules' devices to
/// work on.
const STATUS_AFTER: Duration = Duration::from_secs(1);

/// How often the status line is brought up to date while nothing happens.
const STATUS_EVERY: Duration = Duration::from_secs(5);

/// A boot in progress.
struct Boot<'a> {
    machine: &'a dyn Machine,
    config: &'a Config,
    observer: Observer<'a>,
    rules: &'a ModprobeRules,
    /// What was learnt beside the host's present state.
    facts: KernelLogFacts,
    heard: UdevHistory,
    /// What is done to the host.
    steps: Steps<'a>,
    /// Whether an RDMA device has its final name.
    rdma_names: RdmaNames,
    /// What functions are for, and who alone may bind them.
    products: Products<'a>,
    /// Modules that were there before anything was done, once that is known.
    there: Option<BTreeSet<ModuleName>>,
    /// The GUID plans of the PFs.
    vfs: Vfs<'a>,
    interfaces: Interfaces,
    /// Who is waited for, and since when.
    waited: Waited,
    report: BootReport,
}

/// Bring the ports up. Always gives a report; never outlasts the deadline. `errors` are those for
/// which something is left out of `config`. `write` gets the report before another boot has its
/// turn.
///
/// # Errors
/// Nothing could be waited for at all (no poll, no signals).
pub fn run(
    config: &Config,
    config_file: Option<&Path>,
    root: &Root,
    force: bool,
    errors: Vec<Finding>,
    write: impl FnOnce(&mut BootReport),
) -> anyhow::Result<BootReport> {
    let started = clock::now();
    let before = process::own_usage();
    let deadline = started + config.boot.timeout;
    let mut report = blank(started);
    report.cpu_before_usec = usec(before.cpu);
    report.configuration = errors;
    report.timeout_sec = config.boot.timeout.as_secs();
    report.adapter_timeout_sec = config.boot.adapter_timeout.as_secs();

    if let Err(e) = FirstRun::begin(root, started, deadline) {
        report.problems.push(format!("cannot write {e}"));
    }
    let locks = locks(&mut report.problems);
    let mut watched: Vec<&Path> = locks.iter().map(lock::Locks::dir).collect();
    // Where the instances of ibprov-iface@.service leave their outcomes.
    let outcomes = state::outcomes_dir(state::PORTS);
    match &outcomes {
        Ok(dir) => watched.push(dir),
        Err(e) => report.problems.push(format!("cannot make {e}")),
    }
    let mut events = Events::open(&watched)?;
    report.problems.append(&mut events.problems);

    debug!(
        message_id = kinds::STARTED,
        version = %report.version,
        timeout_sec = report.timeout_sec,
        "boot began"
    );
    let rules = ModprobeRules::read(root);
    report.problems.extend(rules.problems.iter().cloned());
    let steps = Steps::new(&Live, root, &rules, locks.as_ref(), config_file, force);
    let vfs = Vfs::new(&Live, config, config_file, started);
    let mut boot = Boot::new(&Live, config, root, &rules, steps, vfs, report);
    let own_turn = boot.take_turn(locks.as_ref(), &mut events, deadline)?;
    let end = match own_turn {
        // The lock is held until the report is written, or another boot would have its own
        // replaced by this one.
        Turn::Ours(_lock) => {
            let running = Running::begin();
            if let Err(e) = &running {
                boot.report.problems.push(format!("cannot write {e}"));
            }
            former::forget(root, &mut boot.report.problems);
            boot.write_rules();
            let mut report = boot.climb(&mut events, deadline)?;
            write(&mut report);
            return Ok(report);
        }
        Turn::Stopped => Verdict::Interrupted,
        Turn::Never => Verdict::NotReady,
    };
    let mut report = boot.finish(Some(end), &[], &Observed::default());
    write(&mut report);
    Ok(report)
}

/// The names that the configuration gives to interfaces by their ports.
pub fn names(config: &Config) -> Vec<(NamedPort, IfName)> {
    let named = config.interfaces.iter().filter_map(|rule| {
        let port = match rule.which {
            InterfaceSelector::PortGuid(guid) => NamedPort::PortGuid(guid),
            InterfaceSelector::Pci(pci, port) => NamedPort::Pci(pci, port),
            InterfaceSelector::Name(_) => return None,
        };
        Some((port, rule.name.clone()?))
    });
    let mut names: Vec<(NamedPort, IfName)> = named.collect();
    names.dedup();
    names
}

/// The PFs of the configuration; `None` unless it names each by its address.
fn pfs_by_address(config: &Config) -> Option<BTreeSet<PciAddress>> {
    if config.withheld.has_all_pfs() {
        return None;
    }
    let address = |which: &PfSelector| match which {
        PfSelector::Pci(pci) => Some(*pci),
        _ => None,
    };
    config.pf.iter().map(|pf| address(&pf.which)).collect()
}

/// Whether this boot may act.
enum Turn {
    Ours(Option<lock::Held>),
    Stopped,
    Never,
}

/// What a turn came to.
#[derive(Debug)]
enum Next {
    /// The end, by force or with what became of everything.
    End(Option<Verdict>),
    /// Wait for what may change something, `until` at the latest. What udev has done is that, too,
    /// if `udev_decides`.
    Wait { until: Moment, udev_decides: bool },
}

impl<'a> Boot<'a> {
    fn new(
        machine: &'a dyn Machine,
        config: &'a Config,
        root: &'a Root,
        rules: &'a ModprobeRules,
        steps: Steps<'a>,
        vfs: Vfs<'a>,
        report: BootReport,
    ) -> Self {
        Self {
            machine,
            config,
            observer: Observer::new(root),
            rules,
            facts: KernelLogFacts::default(),
            heard: UdevHistory::default(),
            steps,
            rdma_names: RdmaNames::default(),
            products: Products::new(root).again().with_overrides(),
            there: None,
            vfs,
            interfaces: Interfaces::default(),
            waited: Waited::default(),
            report,
        }
    }

    /// A second `boot` waits for the first, under its own deadline.
    fn take_turn(
        &mut self,
        locks: Option<&lock::Locks>,
        events: &mut Events,
        deadline: Moment,
    ) -> anyhow::Result<Turn> {
        let Some(locks) = locks else { return Ok(Turn::Ours(None)) };
        loop {
            match locks.try_take("boot") {
                Ok(held) => return Ok(Turn::Ours(Some(held))),
                Err(lock::LockError::Busy { owner }) => {
                    let owner = owner.map_or_else(|| "?".to_owned(), |p| p.to_string());
                    systemd::tell_status(&format!(
                        "waiting for another ibprov boot, process {owner}"
                    ));
                    if clock::now() >= deadline {
                        self.report.problems.push(format!(
                            "another ibprov boot (process {owner}) held /run/ibprov/lock/boot until the deadline"
                        ));
                        return Ok(Turn::Never);
                    }
                }
                Err(e) => {
                    self.report.problems.push(format!("{e}: continuing without it"));
                    return Ok(Turn::Ours(None));
                }
            }
            let retry = clock::now() + lock::RETRY;
            let happened = events.wait(deadline.min(retry))?;
            self.learn(&happened);
            if happened.stop {
                return Ok(Turn::Stopped);
            }
        }
    }

    /// Write the rules of udev for names.
    fn write_rules(&mut self) {
        let config = self.config;
        let devices: Vec<_> = config.rxe.iter().map(|row| (&row.name, &row.netdev)).collect();
        let of_rdma = config.ports.iter().filter_map(PortRow::rdma_name);
        let forget = |planned| persistent_names::forget_vfs_but_of(&planned);
        for (what, written) in [
            // Before a module is loaded that makes an interface.
            ("persistent names", persistent_names::establish(&names(config))),
            ("names of RDMA devices", persistent_names::establish_for_rdma(of_rdma)),
            ("names of VFs without a plan", pfs_by_address(config).map_or(Ok(()), forget)),
            // Before a netdev is looked for: one that appears later starts a unit.
            ("cannot write the udev rule for soft RoCE", rxe_rules::establish(&devices)),
        ] {
            self.report.problems.extend(written.err().map(|e| format!("{what}: {e}")));
        }
    }

    fn climb(mut self, events: &mut Events, deadline: Moment) -> anyhow::Result<BootReport> {
        let mut stopped = false;
        loop {
            // What has ended is collected before the host is looked at, or a
            // step would be judged by what the host was before it ended.
            let ended = self.steps.collect_ended();
            let mut observed = self.observe();
            let now = clock::now();
            // modprobe is started before them: it takes longer than all else.
            self.products.learn_later(&mut observed, now);
            let (ports, next) = self.turn(&observed, ended, stopped, now, deadline);
            match next {
                Next::End(forced) => return Ok(self.finish(forced, &ports, &observed)),
                Next::Wait { until, udev_decides } => {
                    stopped = self.listen(events, until, udev_decides)?;
                }
            }
        }
    }

    /// Take in what is observed and which steps have `ended`, and begin what can be done now.
    fn turn(
        &mut self,
        observed: &Observed,
        ended: Vec<(Step, Ended)>,
        is_stopped: bool,
        now: Moment,
        deadline: Moment,
    ) -> (Vec<PortProgress>, Next) {
        let is_first = self.there.is_none();
        self.rdma_names.learn(observed, is_first);
        if is_first {
            self.first_look(observed);
        }
        for (step, end) in ended {
            self.steps.judge(&step, &end, &mut self.facts, observed);
        }
        let wants_ipoib = self.facts.wants_ipoib.as_deref();
        let expectation =
            expect::expectation(self.config, observed, self.rules, wants_ipoib).of_boot();
        let mut ports = progress::progress(&expectation, observed);
        let held = self.rdma_names.hold(&mut ports, observed, now);
        hold_misnamed(self.config, observed, &mut ports, &self.steps.done);
        let overdue = self.settings(&mut ports, now);
        for port in self.waited.note(&ports, &self.interfaces, now) {
            tell_ready(port);
        }
        if is_stopped {
            self.left_out(&expectation);
            return (ports, Next::End(Some(Verdict::Interrupted)));
        }
        let done = &self.steps.done;
        let mut steps = boot_steps(self.config, self.rules, observed, &expectation, &ports, done);
        free_names_first(&mut steps, observed);
        let rxe = self.rxe();
        let more = rxe_steps(&rxe, soft_roce::has_module(observed));
        steps.extend(overdue.into_iter().chain(more).filter(|s| !done.begun.contains(s)));
        for step in steps {
            self.steps.begin(step, &mut self.facts);
        }
        let unclear = self.products.open();
        let awaited = |pf| {
            let own = ports.iter().filter(|p| p.pci == Some(pf)).cloned();
            let own: Vec<PortProgress> = own.collect();
            self.next_deadline(&own, observed, now, deadline).is_some()
        };
        let awaited: BTreeSet<PciAddress> =
            ports.iter().filter_map(|p| p.pci).filter(|pf| awaited(*pf)).collect();
        let root = self.observer.root();
        let awaits = |pf| awaited.contains(&pf);
        self.vfs.begin(root, observed, &ports, &unclear, awaits, (now, deadline));
        // Hundreds of lines that a good boot has no need of: read once
        // modprobe is through and a port is still missing.
        if !self.steps.done.modules_in_flight() && ports.iter().any(|p| !p.is_ready()) {
            self.heard.read_history(&mut self.facts, || self.machine.kernel_log());
        }
        let deadlines = [
            self.next_deadline(&ports, observed, now, deadline),
            self.vfs.next_deadline(now, deadline),
            self.product_deadline(&ports, now, deadline),
        ];
        // A name that is held is no reason to wait, but to look.
        let next = deadlines.into_iter().flatten().min();
        let next = next.map(|n| held.map_or(n, |h| h.min(n)));
        let rxe = self.rxe_deadline(&rxe, now, deadline);
        let Some(next) = next.into_iter().chain(rxe).min() else {
            self.left_out(&expectation);
            return (ports, Next::End(None));
        };
        if now.since(self.report.started_usec) >= STATUS_AFTER {
            self.tell_status(&ports, observed, now);
        }
        let until = next.min(now + STATUS_EVERY).min(self.next_status(now));
        let udev_decides = held.is_some() || waits_for_udev(&ports);
        (ports, Next::Wait { until, udev_decides })
    }

    /// When the first status line is due; the others follow from looking.
    fn next_status(&self, now: Moment) -> Moment {
        let first = self.report.started_usec + STATUS_AFTER;
        if now < first { first } else { Moment::NEVER }
    }

    /// Wait until the host is worth another look; true if we are to stop.
    ///
    /// A look takes CPU time from the modprobe that is waited for, and each
    /// module it loads makes events: while it has just begun, only what can
    /// change the next step counts.
    fn listen(
        &mut self,
        events: &mut Events,
        until: Moment,
        udev_decides: bool,
    ) -> anyhow::Result<bool> {
        let udev_decides = udev_decides || !events.hears_udev();
        let quiet = match self.steps.at_work_since(|step| matches!(step, Step::LoadModules { .. }))
        {
            Some(since) if !udev_decides => since + QUIET,
            _ => Moment::START,
        };
        // VFs that come make hundreds of events more.
        let quiet = quiet.max(self.vfs.quiet_until(clock::now()));
        let mut news = false;
        loop {
            let now = clock::now();
            let limit = if news { until.min(quiet) } else { until };
            if limit <= now {
                return Ok(false);
            }
            // Not at each answer: a look costs more than all of them.
            if self.products.take(now) && self.products.due(true, now).is_none() {
                return Ok(false);
            }
            let happened = events.wait_also(limit, self.products.answers_come())?;
            news |= self.learn(&happened);
            if happened.stop {
                return Ok(true);
            }
            if happened.child || happened.files {
                return Ok(false);
            }
            news |= happened.to_devices() || (happened.udev_idle && udev_decides);
            if news && clock::now() >= quiet {
                return Ok(false);
            }
        }
    }

    /// When to look again at the latest; `None` if there is nothing left to
    /// wait for.
    fn next_deadline(
        &self,
        ports: &[PortProgress],
        observed: &Observed,
        now: Moment,
        deadline: Moment,
    ) -> Option<Moment> {
        if now >= deadline {
            return None;
        }
        let is_blocked = |port: &PortProgress| {
            let is_tried = port.pci.is_some_and(|pci| self.steps.is_loading_driver(pci));
            !is_tried
                && ladder::cause::cause(port, observed, &self.facts).is_some_and(|c| c.is_final)
        };
        let per_hca = self.config.boot.adapter_timeout;
        let next = self.waited.next_deadline(ports, is_blocked, per_hca, now);
        let mut next = next.map(|n| n.min(deadline));
        if self.steps.done.modules_in_flight() {
            next = Some(next.unwrap_or(deadline));
        }
        // It holds up nothing, so a child that hangs is not waited for as long as a port.
        if let Some(since) = self.steps.at_work_since(|step| matches!(step, Step::NetnsMode { .. }))
            && now < since + NETNS
        {
            next = Some(next.unwrap_or(deadline).min(since + NETNS));
        }
        if self.steps.watches_another_run() {
            next = next.map(|n| n.min(now + lock::RETRY));
        }
        let overdue = self.interfaces.next_overdue(now);
        next.map(|n| overdue.map_or(n, |o| n.min(o)))
    }

    /// Until when it is waited for what functions are for and who alone may bind them: a port
    /// that is missing, even for good, may turn out to be none of a fabric or not to be
    /// expected, and a PF's plan to be for none.
    fn product_deadline(
        &self,
        ports: &[PortProgress],
        now: Moment,
        deadline: Moment,
    ) -> Option<Moment> {
        let is_needed = ports.iter().any(|p| !p.is_ready()) || !self.config.pf.is_empty();
        let until = self.products.due(is_needed, now)?.min(deadline);
        (until > now).then_some(until)
    }

    /// Judge the rung `configured`: each interface's own unit makes its settings
    /// and says so. Gives what boot does itself, where none has in time.
    fn settings(&mut self, ports: &mut [PortProgress], now: Moment) -> Vec<Step> {
        let mut seen = stacks::interfaces(self.observer.root(), self.config);
        leave_out_old_deferrals(&mut seen.outcomes, self.report.started_usec);
        let children = Children::Excused;
        let open = judge_settings(self.config, &seen, ports, &mut self.facts, children);
        // Where systemd cannot be asked, their units are waited for.
        let is_started = || StartUp::ask().is_ok_and(|start_up| start_up.is_over);
        self.interfaces.note(open, ports, now, is_started)
    }

    fn tell_status(&mut self, ports: &[PortProgress], observed: &Observed, now: Moment) {
        let work = if self.steps.done.modules_in_flight() {
            Some("waiting for modprobe".to_owned())
        } else {
            self.vfs.waiting()
        };
        let seen = (observed, &self.facts);
        systemd::tell_status(&self.waited.status(ports, work.as_deref(), seen, now));
    }

    fn observe(&self) -> Observed {
        let modules: Vec<ModuleName> =
            self.config.modules.load.iter().cloned().chain(driver_modules()).collect();
        self.observer.look(&modules, &self.heard.devices)
    }

    fn first_look(&mut self, observed: &Observed) {
        self.report.kernel.clone_from(&observed.kernel);
        let loaded = observed.modules.iter().filter(|(_, s)| **s != ModuleState::Absent);
        self.there = Some(loaded.map(|(name, _)| name.clone()).collect());
        self.facts.modules.extend(denied_modules(self.config, self.rules, observed));
        self.facts.wants_ipoib =
            ipoib::wanted_denied(self.observer.root(), self.config, self.rules);
    }

    /// True if what the kernel has said tells more of why a port is missing.
    fn learn(&mut self, happened: &Happened) -> bool {
        for line in &happened.kernel {
            self.steps.hear(line);
        }
        self.heard.learn(happened, &mut self.facts)
    }

    fn left_out(&mut self, expectation: &Expectation) {
        self.report.left_out =
            ending::left_out(expectation, |reason| self.vfs.has_plan_for(reason));
    }

    /// The report; without `forced` the verdict is what became of everything.
    fn finish(
        mut self,
        forced: Option<Verdict>,
        ports: &[PortProgress],
        observed: &Observed,
    ) -> BootReport {
        let now = self.machine.now();
        self.steps.give_up(&mut self.facts);
        if ports.iter().any(|p| !p.is_ready()) {
            self.heard.read_history(&mut self.facts, || self.machine.kernel_log());
        }
        let modules = self.module_reports(observed, !ports.is_empty());
        let (pfs, unresolved_pfs) = self.vfs.outcomes();
        let rxe = self.rxe();
        let port_report = |port: &PortProgress| {
            let cause = ladder::cause::cause(port, observed, &self.facts);
            ending::port(port, cause, self.waited.since(port, now), self.interfaces.made(port), now)
        };
        let ports_reports = ports.iter().map(port_report).collect();
        let warning = send_queue_warning(self.observer.root(), self.rules, observed);
        let mut problems = self.report.problems;
        problems.extend(observed.problems.iter().cloned());
        problems.extend(self.products.problems);
        if !ports.is_empty() && observed.udev.running == Some(false) {
            problems.push(
                "systemd-udevd is not running (/run/udev/control does not exist): drivers are not loaded and netdevs are not named".to_owned(),
            );
        }
        problems.extend(warning.as_ref().map(Finding::sentence));
        if !self.config.interfaces.is_empty() {
            let root = self.observer.root();
            let interfaces = stacks::interfaces(root, self.config);
            let foreseen = foreseen_of_all(root, self.config, &interfaces);
            problems.extend(foreseen.iter().map(Finding::sentence));
        }
        let usage = process::own_usage();
        let mut report = BootReport {
            finished_usec: now,
            cpu_usec: usec(usage.cpu).saturating_sub(self.report.cpu_before_usec),
            peak_memory_kib: usage.peak_memory_kib,
            forks: self.steps.forks,
            modules,
            steps: self.steps.reports,
            ports: ports_reports,
            pfs,
            unresolved_pfs,
            rxe,
            problems,
            timeline: self.waited.into_timeline(),
            ..self.report
        };
        report.verdict = forced.unwrap_or_else(|| ending::verdict(&report));
        report
    }

    fn module_reports(&self, observed: &Observed, is_expecting: bool) -> Vec<ModuleReport> {
        let needed = needed_modules(self.config, observed, is_expecting);
        let report = |name: &ModuleName| {
            let outcome = if self.there.as_ref().is_some_and(|there| there.contains(name)) {
                ModuleOutcome::AlreadyThere
            } else if observed.modules.get(name) == Some(&ModuleState::Loaded) {
                ModuleOutcome::Loaded
            } else if !needed.contains(&name) {
                ModuleOutcome::NotNeeded
            } else {
                let known = self.facts.modules.get(name).cloned();
                let trouble = known.unwrap_or_else(|| self.steps.trouble(name, observed));
                return ending::missing_module(name, trouble);
            };
            ModuleReport { name: name.clone(), outcome }
        };
        self.config.modules.load.iter().map(report).collect()
    }
}

/// A port has become ready.
fn tell_ready(port: &PortProgress) {
    let text = port.reached.map_or_else(|| port.label().to_string(), |rung| standing(port, rung));
    port_span(port).in_scope(|| info!(message_id = kinds::PORT_READY, "{text}"));
}
