//! `ibprov iface`: one interface, its settings and then who brings it up.

use std::io;
use std::path::Path;
use std::time::Duration;

use tracing::{error, error_span, info, warn};

use super::bring_up::{bring_up, tell, while_late};
use super::in_use;
use super::rtnl::{NotDone, Rtnl};
use super::warnings::{foreseen, queue_advice};
use crate::config::Config;
use crate::graph::{show, start_wait};
use crate::host::manager::Manager;
use crate::host::start_up::{self, StartUp};
use crate::host::unit::JobEnd;
use crate::host::{Root, answer, clock, errno_name, lock, state, systemctl, unit_links};
use crate::model::{
    BringUp, Cause, Finding, IfaceReport, IfaceStep, Use, events as kinds, iface::IfaceStepReport,
};
use crate::names::{BadText, IfName, Moment, harmless, sh, usec};
use crate::observe::iface::{NotSeen, Seen, look};
use crate::observe::ipoib::{self, Interface, Sort, outcome_file};
use crate::observe::udev::initialized;
use crate::observe::{Look, interface_manager};
use crate::plan::settings::{mtu_asked, overwritten};
use crate::plan::{IfacePlan, concerns_others, has_child, iface_plan, is_withheld, rename, wanted};
use crate::stacks::KNOWN;
use crate::stacks::files::Files;
use crate::workers::{Failure, Request};

/// What is asked of one run.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub name: &'a IfName,
    /// Leave bringing it up to others.
    pub settings_only: bool,
    pub no_bus: bool,
    /// The unit that has the interface looked at again once the network stacks have started.
    pub then: Option<&'a str>,
    /// This is that second look.
    pub later: bool,
    /// Set it although it is in use.
    pub force: bool,
    pub by: StartedBy,
}

/// Who has started a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedBy {
    /// An administrator, or a program of theirs.
    Hand,
    Boot,
    /// A unit of the interface, or ibprov-children.service.
    Unit,
}

/// Set the interface up. Always gives a report, unless it is not there or not
/// ours.
///
/// # Errors
/// As [`look`].
pub fn run(config: &Config, root: &Root, ask: Ask<'_>) -> Result<IfaceReport, NotSeen> {
    let _netdev = error_span!("netdev", netdev = %ask.name).entered();
    let mut report = IfaceReport::blank(ask.name.as_str(), clock::now());
    let deadline = report.started_usec + config.network.timeout;
    let seen = look(root, ask.name)?;
    report.ifindex = seen.interface.ifindex;
    report.was_set = seen.before().is_some_and(|before| before.was_set);
    // Two runs at one interface would undo each other's work half-way.
    let locks = lock::Locks::in_run();
    let name = lock_of(seen.interface.ifindex);
    let held = locks.and_then(|locks| locks.take_until(&name, deadline));
    let mut rtnl = Rtnl::until(deadline);
    let _held = match held {
        Ok(held) => {
            if let Err(e) = rtnl.hold(&held) {
                report.notes.push(format!("the lock {name} cannot be passed to a child: {e}"));
            }
            Some(held)
        }
        Err(e @ lock::LockError::Busy { .. }) => {
            report.failures.push(format!(
                "{}: another run of ibprov is configuring the interface: {e}",
                ask.name
            ));
            report.mlnx_interface_mgr_pending = interface_manager::armed(root).is_some();
            // The outcome is that of who holds the lock.
            return Ok(finished(report));
        }
        Err(e) => {
            report.notes.push(format!("{e}: continuing without it"));
            None
        }
    };
    Run { config, root, ask, deadline, rtnl: &mut rtnl, report }.set_up()
}

/// A run at one interface, which has its lock.
struct Run<'a> {
    config: &'a Config,
    root: &'a Root,
    ask: Ask<'a>,
    /// Microseconds of CLOCK_MONOTONIC.
    deadline: Moment,
    rtnl: &'a mut Rtnl,
    report: IfaceReport,
}

impl Run<'_> {
    fn set_up(mut self) -> Result<IfaceReport, NotSeen> {
        let Ask { name, settings_only, .. } = self.ask;
        self.let_other_agent_end();
        let turn = self.rtnl.turn();
        let Some(mut seen) = self.look_again_for_plan(name)? else {
            self.report.disappeared();
            return Ok(self.told());
        };
        let before = seen.before().filter(|before| !before.mlnx_interface_mgr_pending);
        if let Some(before) = before.filter(|_| self.ask.later).cloned() {
            return Ok(self.look_again(&seen.interface, before));
        }
        self.report.notes.append(&mut seen.problems);
        let mut refused = Vec::new();
        refused.extend(self.give_name(&mut seen));
        refused.extend(self.settings(&mut seen));
        drop(turn);
        let report = &mut self.report;
        report.rtnl_held = self.rtnl.is_held();
        report.was_set |= report.configured && !report.mlnx_interface_mgr_pending;
        report.notes.extend(queue_advice(self.root, &report.wanted));
        let foreseen = foreseen(&Files::of(self.root), &report.wanted, &seen.interface);
        report.notes.extend(foreseen.iter().map(Finding::sentence));
        if settings_only {
            report.bring_up = BringUp::NotAsked;
            // Steps have been told; who brings up tells the whole report.
            for why in refused.iter().map(Cause::sentence) {
                error!(cause = why, "{why}");
            }
            if let Some(deferred) = &report.deferred {
                let warning = deferred.with_command(name);
                warn!(message_id = kinds::WARNING, warning, "{warning}");
            }
        }
        report.settled_usec = clock::now();
        if !report.configured && has_disappeared(self.root, report) {
            report.disappeared();
            return Ok(self.told());
        }
        report.exit_code = report.judge();
        // Before anything is waited for: `boot` waits for this and no more.
        write(report);
        if settings_only {
            return Ok(ended(self.report));
        }
        // No network stack gets the lock while it is held, and the boot waits for this run.
        if !self.rtnl.is_held() {
            self.bring_up(&seen.interface, false);
        }
        self.start_later();
        Ok(self.told())
    }

    /// The report, told and written.
    fn told(self) -> IfaceReport {
        tell(&self.report);
        ended(self.report)
    }

    /// Look once it is our turn; `None` if by now another interface has the name, for which there
    /// is another run.
    ///
    /// # Errors
    /// As [`look`].
    fn look_again_for_plan(&mut self, name: &IfName) -> Result<Option<Seen>, NotSeen> {
        let seen = self.look_for_plan(name)?;
        Ok((seen.interface.ifindex == self.report.ifindex).then_some(seen))
    }

    /// Look at an interface, and at the others where the configuration has something for it
    /// that concerns them.
    ///
    /// # Errors
    /// As [`look`].
    fn look_for_plan(&mut self, name: &IfName) -> Result<Seen, NotSeen> {
        let (config, root) = (self.config, self.root);
        let mut seen = look(root, name)?;
        seen.interface.read_altnames(root, &config.interface_names());
        if wanted(&config.interfaces, &seen.interface, &[]).sets() {
            self.rtnl.complete_or_tell(root, &mut seen.interface, &mut seen.problems);
        }
        if concerns_others(&config.interfaces, &seen.interface) {
            seen.look_at_others(root);
            let own = std::slice::from_ref(&seen.interface);
            seen.around.stack_children = KNOWN.children(root, &config.interfaces, own);
        }
        let written = KNOWN.written(&Files::of(root), &seen.interface, seen.before());
        seen.around.written.insert(seen.interface.ifindex, written);
        Ok(seen)
    }

    /// Start the unit that looks again, if there is a reason to.
    fn start_later(&mut self) {
        let unit = self.ask.then.filter(|_| self.report.is_to_be_looked_at_again());
        let Some(unit) = unit else { return };
        if let Err(e) = systemctl::queue_start(unit) {
            self.report.notes.push(format!(
                "{unit} cannot be started, so the interface is not looked at again: {e}"
            ));
        }
    }

    /// An interface that `before` left to a stack: the stack has started since. What it has made
    /// of the settings is read back; nothing is set, or NetworkManager and ibprov would take turns
    /// at it.
    fn look_again(mut self, interface: &Interface, before: IfaceReport) -> IfaceReport {
        self.report = IfaceReport { exit_code: before.judge(), ..before };
        if !is_left(&self.report) {
            return ended(self.report);
        }
        let foreseen = foreseen(&Files::of(self.root), &self.report.wanted, interface);
        self.report.notes.extend(foreseen.iter().map(Finding::sentence));
        self.bring_up(interface, true);
        self.told()
    }

    /// See that the interface comes up, or only look whether it has, and read back what a stack
    /// has made of the settings.
    fn bring_up(&mut self, interface: &Interface, only_looks: bool) {
        let Self { root, ask, deadline, rtnl, report, .. } = self;
        bring_up(root, ask.no_bus, *deadline, interface, only_looks, rtnl, report);
        self.read_back(interface);
        if !self.report.failures.is_empty() && has_disappeared(self.root, &self.report) {
            self.report.disappeared();
        }
    }

    /// What a stack has written over since, by a look after it has brought the interface up:
    /// NetworkManager writes its profile's mode at each activation.
    fn read_back(&mut self, interface: &Interface) {
        let report = &mut self.report;
        let was_touched = match report.bring_up {
            BringUp::Up | BringUp::Waiting | BringUp::Nobody | BringUp::Failed => true,
            // Nobody has been at it.
            BringUp::NotAsked | BringUp::Pending | BringUp::Left | BringUp::Disappeared => false,
        };
        // What could not be made is told.
        if !was_touched || !report.configured {
            return;
        }
        let mut seen = match look(self.root, &interface.name) {
            Ok(seen) if seen.interface.ifindex == interface.ifindex => seen,
            // That it went away is told, or another run is for the one that has come.
            _ => return,
        };
        if report.wanted.sets()
            && let Err(e) = self.rtnl.complete(self.root, &mut seen.interface)
        {
            let name = &interface.name;
            report.failures.push(format!("{name}: the settings cannot be read back: {e}"));
            (report.configured, report.rtnl_held) = (false, self.rtnl.is_held());
            return;
        }
        let stack = report.decision.as_ref().and_then(|decision| decision.stack);
        let view = report.stacks.iter().find(|view| Some(view.stack) == stack);
        let writes = view.map_or(&[][..], |view| &view.writes);
        let lost = overwritten(&report.wanted, &seen.interface, report.mtu_asked, stack, writes);
        report.configured = lost.is_empty();
        report.failures.extend(lost);
    }

    /// MLNX_OFED's agent sets new interfaces too. It is let end first: what is set and
    /// read back afterwards stays as it is. udev has queued its unit before ours.
    fn let_other_agent_end(&mut self) {
        let Self { root, ask, deadline: until, report, .. } = self;
        let armed = interface_manager::armed(root);
        if let Some(rule) = &armed {
            report.notes.push(format!(
                "MLNX_OFED's rule {rule} has mlnx_interface_mgr set new interfaces too: {}",
                interface_manager::REMEDY
            ));
        }
        if armed.is_none() && interface_manager::at_work(root, [ask.name]).is_empty() {
            return;
        }
        let unit = interface_manager::unit(ask.name);
        let end = while_late(*until, || ends(root, &unit, ask.no_bus, *until));
        note_end(ask.name, &unit, end, report);
    }

    /// Give it its persistent name, before anything that goes by the name is looked up.
    /// Gives the reason why that cannot be.
    fn give_name(&mut self, seen: &mut Seen) -> Option<Cause> {
        let rules = &self.config.interfaces;
        let step = match rename(rules, &seen.interface, &seen.around.all, &seen.around.names) {
            Ok(None) => return None,
            Ok(Some(step)) => step,
            Err(why) => {
                self.report.failures.push(why.sentence());
                return Some(why);
            }
        };
        let IfaceStep::Rename { to, .. } = step.clone() else { return None };
        self.do_step(step, seen)?;
        match self.look_for_plan(&to) {
            Err(e) => self.report.failures.push(e.to_string()),
            Ok(now) => {
                self.report.netdev = to.to_string();
                *seen = now;
            }
        }
        None
    }

    /// Take one step, tell it and note it; none if it failed.
    fn do_step(&mut self, step: IfaceStep, seen: &Seen) -> Option<()> {
        let began = clock::now();
        let ifindex = seen.interface.ifindex;
        let done = self.rtnl.ask(&Request::SetInterface { ifindex, step: step.clone() });
        let done = match done {
            Err(NotDone::Failed(Failure::Refused(_))) if self.has_come(&step, seen) => Ok(()),
            done => done.map(drop),
        };
        let failure = done.as_ref().err().map(|e| explain(&step, &seen.interface, e));
        let took = clock::now().since(began);
        tell_step(&step, &seen.interface, took, failure.as_deref());
        if let Some(failure) = &failure {
            self.report.failures.push(format!("{}: {step}: {failure}", seen.interface.name));
        }
        self.report.steps.push(IfaceStepReport { step, took_usec: usec(took), failure });
        done.ok()
    }

    /// The step is to create a P_Key child, and it is there by now: the network stack creates
    /// those of its own configuration at the same time.
    fn has_come(&mut self, step: &IfaceStep, seen: &Seen) -> bool {
        let IfaceStep::AddChild { pkey, .. } = step else { return false };
        self.look_for_plan(&seen.interface.name)
            .is_ok_and(|now| has_child(&now.interface, &now.around.all, *pkey))
    }

    /// Make the settings, and read back what they came to.
    /// Gives the reasons why some cannot be made.
    fn settings(&mut self, seen: &mut Seen) -> Vec<Cause> {
        let report = &mut self.report;
        let Seen { interface, around, .. } = &*seen;
        report.wanted = wanted(&self.config.interfaces, interface, &around.stack_children);
        if is_withheld(self.config, interface) {
            report.failures.push(format!(
                "{}: no [[interface]] is carried out for it, because the configuration has an error that concerns it or may concern it: `ibprov config check`",
                self.ask.name
            ));
        }
        report.mtu_asked = mtu_asked(&report.wanted, interface, around);
        let asked = report.mtu_asked;
        let mut plan = iface_plan(&report.wanted, interface, &around.all, &around.names, asked);
        report.failures.extend(plan.refused.iter().map(Cause::sentence));
        let Ask { force, by, .. } = self.ask;
        let may_interrupt = || may_interrupt(self.config, self.root, by, seen, &mut report.notes);
        if let Err(e) = defer(force, interface, self.rtnl, &mut plan, may_interrupt) {
            let name = self.ask.name;
            report.failures.push(format!(
                "{name}: whether it is in use cannot be determined: {e}, then run `ibprov iface {name}`"
            ));
            return plan.refused;
        }
        report.deferred.clone_from(&plan.deferred);
        for step in plan.steps {
            let asked = if let IfaceStep::SetMtu { mtu } = &step { Some(*mtu) } else { None };
            if self.do_step(step, seen).is_some() {
                self.report.mtu_asked = asked.or(self.report.mtu_asked);
            }
            // The others would fail for the same reason.
            if self.rtnl.is_held() {
                return plan.refused;
            }
        }
        let now = self.look_for_plan(&seen.interface.name);
        let report = &mut self.report;
        match now {
            Err(e) => report.failures.push(e.to_string()),
            Ok(now) if self.rtnl.is_held() => report.failures.extend(now.problems),
            Ok(now) => {
                let Seen { interface, around, .. } = &now;
                let asked = report.mtu_asked;
                let left = iface_plan(&report.wanted, interface, &around.all, &around.names, asked);
                // What failed has been told; what did not take is told here.
                let told = |step: &IfaceStep| {
                    report.steps.iter().any(|s| s.step == *step && s.failure.is_some())
                };
                let is_deferred = |step: &IfaceStep| {
                    plan.deferred.as_ref().is_some_and(|d| d.steps.contains(step))
                };
                for step in left.steps.iter().filter(|s| !told(s) && !is_deferred(s)) {
                    let name = &now.interface.name;
                    report.failures.push(format!(
                        "{name}: {step}: the kernel accepted the value, but reads back another"
                    ));
                }
                if let (Some(asked), Some(mtu)) = (report.wanted.mtu, left.group_mtu) {
                    report.notes.push(format!(
                        "the MTU is {mtu}, not {asked}: limited by the fabric's broadcast group (see the subnet manager's mtu for the IPoIB partition)"
                    ));
                }
                report.notes.extend(left.awaited);
                *seen = now;
            }
        }
        report.configured = report.failures.is_empty() && report.deferred.is_none();
        plan.refused
    }
}

/// The interface is configured, and was left to its stack. boot makes the settings of one whose
/// instance takes long, and may write the later outcome.
const fn is_left(report: &IfaceReport) -> bool {
    report.configured && matches!(report.bring_up, BringUp::Left | BringUp::NotAsked)
}

/// The name that the interface had belongs to no interface, or to another one: a step, or the
/// wait for a stack, failed for that reason. A CNI plugin moves a VF's netdev to a pod as
/// soon as it is there, and udev and systemd hear of it later.
fn has_disappeared(root: &Root, report: &IfaceReport) -> bool {
    let index = root.attribute(&format!("/sys/class/net/{}/ifindex", report.netdev));
    match index {
        Ok(text) => text.parse() != Ok(report.ifindex),
        Err(e) => e.is_absent(),
    }
}

/// Take in how the wait for MLNX_OFED's agent, `unit`, ended.
fn note_end(name: &IfName, unit: &str, end: anyhow::Result<OtherAgent>, report: &mut IfaceReport) {
    let why = match end {
        Ok(OtherAgent::Ended) => return,
        Ok(OtherAgent::Works) => {
            format!("{unit} is still configuring it after network.timeout")
        }
        Ok(OtherAgent::WaitsForUs(chain)) => format!(
            "{unit} will configure it too, and starts only after ibprov ({})",
            chain.join(" after ")
        ),
        // It may have one, and set the interface after we have.
        Err(e) => format!(
            "systemd cannot be asked whether {unit}, which configures it too, has a job: {e}. Once systemd answers, run `ibprov iface {name}`, or do without {unit}"
        ),
    };
    report.mlnx_interface_mgr_pending = true;
    report.failures.push(format!("{name}: {why}: {}", interface_manager::REMEDY));
}

/// How the wait for MLNX_OFED's agent ended.
enum OtherAgent {
    /// It has neither a job nor anything that runs.
    Ended,
    /// It has still, at the deadline.
    Works,
    /// Its job waits for ours to end, by these orders.
    WaitsForUs(Vec<String>),
}

/// Wait until `unit` has neither a job nor anything that runs, unless its job waits for us.
fn ends(root: &Root, unit: &str, no_bus: bool, until: Moment) -> anyhow::Result<OtherAgent> {
    let states = match no_bus {
        true => Manager::by_systemctl().units(&[unit])?,
        // No connection is held while it is waited for.
        false => Manager::open(&[unit])?.1,
    };
    if states.first().is_some_and(|state| state.job != 0) {
        if let Some(chain) = waits_for_us(unit)? {
            return Ok(OtherAgent::WaitsForUs(chain));
        }
        if systemctl::wait_for_job(unit, until)? == JobEnd::Pending {
            return Ok(OtherAgent::Works);
        }
    }
    Ok(match unit_links::wait_until_down(root, unit, until)? {
        true => OtherAgent::Ended,
        false => OtherAgent::Works,
    })
}

/// The orders by which the job of `unit` waits for ours, from it to ours. Default
/// dependencies are enough where cloud-init is installed: its units come before
/// sysinit.target, and after the network services.
fn waits_for_us(unit: &str) -> anyhow::Result<Option<Vec<String>>> {
    let jobs = systemctl::with_jobs()?;
    // Without a name, systemctl would show systemd itself.
    if jobs.is_empty() {
        return Ok(None);
    }
    let units = show::graph(&systemctl::shown(start_wait::PROPERTIES, &jobs)?, "");
    let is_ours = |job: &&String| {
        let services = ["ibprov.service", "ibprov-children.service"];
        services.contains(&job.as_str()) || job.starts_with("ibprov-iface@")
    };
    let mut own = jobs.iter().filter(is_ours);
    let chain = own.find_map(|own| start_wait::waits_for_us(&units, own, unit));
    Ok(chain.map(|chain| chain.into_iter().rev().collect()))
}

/// The lock of the interface with this index.
fn lock_of(ifindex: u32) -> String {
    format!("netdev-{ifindex}")
}

/// The interface `name` is there, and no run has begun for it yet. True only
/// once for each, so that a unit that cannot even begin is not started for ever.
///
/// An interface that comes back while the unit of the former one of its name
/// stops is one that systemd does not start the unit for: that start gives way
/// to the stop (job mode `fail`, `src/core/unit.c`). An index is not used twice.
///
/// # Errors
/// The locks cannot be used.
pub fn is_missed(root: &Root, name: &IfName) -> Result<bool, lock::LockError> {
    match ipoib::sort(&mut Look::new(root), name) {
        Some(Sort::Ipoib(interface)) => {
            let (locks, name) = (lock::Locks::in_run(), lock_of(interface.ifindex));
            let locks = locks?;
            if locks.was_taken(&name) {
                return Ok(false);
            }
            match locks.try_take(&name) {
                Ok(_) => Ok(true),
                Err(lock::LockError::Busy { .. }) => Ok(false),
                Err(e) => Err(e),
            }
        }
        // Gone: it is started for when it comes.
        Some(Sort::Other(_)) | None => Ok(false),
    }
}

fn finished(mut report: IfaceReport) -> IfaceReport {
    report.finished_usec = clock::now();
    report.exit_code = report.judge();
    report
}

fn ended(report: IfaceReport) -> IfaceReport {
    let mut report = finished(report);
    write(&mut report);
    report
}

fn write(report: &mut IfaceReport) {
    let json = report.to_report().to_json().unwrap_or_default();
    let written = state::write(&outcome_file(report.ifindex), &json);
    report.notes.extend(written.err().map(|e| format!("cannot write {e}")));
}

/// Leave undone what would interrupt the traffic of an interface that is in use, unless this run
/// `may_interrupt` it.
///
/// # Errors
/// Whether it is in use cannot be told.
pub(super) fn defer(
    force: bool,
    interface: &Interface,
    rtnl: &mut Rtnl,
    plan: &mut IfacePlan,
    may_interrupt: impl FnOnce() -> bool,
) -> Result<(), NotDone> {
    // Nobody sends anything over one that is down.
    if !force && plan.interrupts() && interface.up {
        let uses = in_use::uses(std::slice::from_ref(&interface.name), rtnl)?;
        let uses: Vec<Use> = uses.into_iter().flatten().collect();
        if !uses.is_empty() && !may_interrupt() {
            plan.defer(uses);
        }
    }
    Ok(())
}

/// What can make the first setting of an interface in use one that is made.
#[derive(Debug, Clone, Copy)]
struct FirstSetting<'a> {
    by: StartedBy,
    before: Option<&'a IfaceReport>,
    /// When udev first finished with the interface, as `now`.
    appeared: Option<Moment>,
    boot_timeout: Duration,
    now: Moment,
}

impl FirstSetting<'_> {
    /// It is one, and is made: by a unit for an interface that has appeared within boot.timeout, and
    /// by what the start of the system has started while that is under way, but no later than
    /// boot.timeout after ibprov.service began. systemd is asked last.
    ///
    /// # Errors
    /// systemd cannot be asked.
    fn is_made(
        self,
        start_up: impl FnOnce() -> io::Result<StartUp>,
        boot_began: impl FnOnce() -> io::Result<Option<Moment>>,
    ) -> io::Result<bool> {
        let Self { by, before, appeared, now, .. } = self;
        let was_set = before.filter(|before| before.was_set);
        let is_recent = |at: Moment| now < at + self.boot_timeout;
        if by == StartedBy::Hand {
            return Ok(false);
        }
        if by == StartedBy::Unit && was_set.is_none() && appeared.is_some_and(is_recent) {
            return Ok(true);
        }
        let start_up = start_up()?;
        // An outcome of the user space before a soft-reboot is none of this one.
        let is_first = was_set.is_none_or(|before| before.started_usec < start_up.began);
        if start_up.is_over || !is_first {
            return Ok(false);
        }
        Ok(boot_began()?.is_none_or(is_recent))
    }
}

/// This run makes a setting of an interface although that is in use.
fn may_interrupt(
    config: &Config,
    root: &Root,
    by: StartedBy,
    seen: &Seen,
    notes: &mut Vec<String>,
) -> bool {
    let Interface { name, ifindex, .. } = &seen.interface;
    let first = FirstSetting {
        by,
        before: seen.before(),
        appeared: initialized(root, name, *ifindex),
        boot_timeout: config.boot.timeout,
        now: clock::now(),
    };
    first.is_made(StartUp::ask, start_up::boot_began).unwrap_or_else(|e| {
        notes.push(format!(
            "whether the start of the system is over, after which an interface in use is left as it is, cannot be determined: {}",
            answer(&e)
        ));
        false
    })
}

/// What the kernel answered, what it means and what to do.
fn explain(step: &IfaceStep, interface: &Interface, e: &NotDone) -> String {
    use nix::errno::Errno;
    let (answer, errno) = match e {
        NotDone::Failed(Failure::Refused(refusal)) => (refusal.said.clone(), refusal.errno()),
        NotDone::Held(_) | NotDone::Failed(_) => {
            return format!("{e}, then run `ibprov iface {}`", sh(interface.name.as_str()));
        }
    };
    let name = &interface.name;
    let meaning = match (step, errno) {
        (IfaceStep::Rename { .. }, Some(Errno::EBUSY)) => {
            ": this interface, or the one that has the name, has been brought up in the meantime"
                .to_owned()
        }
        (IfaceStep::Rename { to, .. }, Some(Errno::EEXIST)) => {
            format!(": in the meantime another interface has the name {to}")
        }
        (IfaceStep::SetMode { .. }, Some(Errno::EINVAL | Errno::EOPNOTSUPP)) => {
            ": the driver refuses this mode".to_owned()
        }
        (IfaceStep::SetMtu { mtu }, Some(Errno::EINVAL)) => format!(
            ": more than the port's InfiniBand MTU less 4 (2044 or 4092; 10236 on Omni-Path); see active_mtu in `ibv_devinfo`, and set a smaller mtu than {mtu}"
        ),
        (IfaceStep::AddChild { pkey, .. }, Some(Errno::ENOTUNIQ)) => {
            format!(": {name} already has a child with P_Key {pkey}")
        }
        (IfaceStep::AddChild { name: child, .. }, Some(Errno::EEXIST)) => {
            format!(": another interface is named {child}")
        }
        (_, Some(Errno::EPERM)) => ": root or CAP_NET_ADMIN is required".to_owned(),
        (_, Some(Errno::ENODEV)) => format!(": {name} disappeared"),
        (_, Some(other)) => format!(" ({}): see dmesg", errno_name(other)),
        _ => String::new(),
    };
    format!("{answer}{meaning}")
}

fn tell_step(step: &IfaceStep, interface: &Interface, took: Duration, failure: Option<&str>) {
    let (name, took_usec) = (&interface.name, usec(took));
    let _step = error_span!("step", %step, netdev = %name).entered();
    match failure {
        None => info!(message_id = kinds::STEP_DONE, took_usec, "{name}: {step}"),
        Some(cause) => {
            error!(message_id = kinds::STEP_FAILED, took_usec, cause, "{name}: {step}: {cause}");
        }
    }
}

/// A path in sysfs that stands for no interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnInterface {
    /// It is none of a network device; the path is fit to be shown.
    #[error("{0:?} is not the path of a network device in /sys")]
    OtherDevice(String),
    /// What it ends in is no name of an interface.
    #[error(transparent)]
    Name(#[from] BadText),
}

/// The interface that a device's path in sysfs stands for.
///
/// # Errors
/// The path is none of a network device.
pub fn name_of(device: &Path) -> Result<IfName, NotAnInterface> {
    let is_net = device.parent().and_then(Path::file_name).is_some_and(|n| n == "net");
    let name = device.file_name().and_then(|n| n.to_str()).filter(|_| is_net);
    let shown = || harmless(&device.display().to_string());
    Ok(name.ok_or_else(|| NotAnInterface::OtherDevice(shown()))?.parse::<IfName>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;
    use crate::names::at;

    /// systemctl had been killed at its deadline, say.
    #[test]
    fn an_interface_is_not_configured_while_nobody_can_tell_whether_the_other_agent_has_a_job() {
        let name: IfName = "ib0".parse().expect("name");
        let after = |end| {
            let mut report = IfaceReport::blank("ib0", Moment::START);
            note_end(&name, "mlnx_interface_mgr@ib0.service", end, &mut report);
            (report.mlnx_interface_mgr_pending, report.failures.join("\n"))
        };
        assert_eq!(after(Ok(OtherAgent::Ended)), (false, String::new()));
        let (is_pending, told) = after(Err(anyhow::anyhow!("systemctl list-jobs: no answer")));
        assert!(is_pending);
        assert!(told.starts_with("ib0: systemd cannot be asked whether mlnx_interface_mgr@ib0.service, which configures it too, has a job: systemctl list-jobs: no answer"), "{told}");
        assert!(told.contains("`ibprov iface ib0`"), "{told}");
    }

    #[test]
    fn an_interface_that_got_the_name_during_the_wait_for_the_lock_is_left_to_its_own_run() {
        let net = "sys/class/net/ib0";
        let files = [("ifindex", "7\n"), ("type", "32\n"), ("dev_port", "0\n"), ("uevent", "\n")];
        let files = files.map(|(file, text)| (format!("{net}/{file}"), text));
        let files = files.each_ref().map(|(path, text)| (path.as_str(), *text));
        let dir = tree(&files, &[(&format!("{net}/device"), "../../0000:4b:00.0")]);
        let root = Root::copy_at(dir.path()).expect("root");
        let name: IfName = "ib0".parse().expect("name");
        let is_ours = |locked: u32| {
            let ask = Ask {
                name: &name,
                settings_only: true,
                no_bus: true,
                then: None,
                later: false,
                force: false,
                by: StartedBy::Hand,
            };
            let report =
                IfaceReport { ifindex: locked, ..IfaceReport::blank("ib0", Moment::START) };
            let (config, rtnl) = (Config::default(), &mut Rtnl::until(Moment::START));
            let mut run =
                Run { config: &config, root: &root, ask, deadline: Moment::START, rtnl, report };
            run.look_again_for_plan(&name).expect("it is there").is_some()
        };
        assert!(is_ours(7));
        assert!(!is_ours(6));
    }

    const SEC: u64 = 1_000_000;

    /// A run by a unit for an interface that udev finished with an hour ago.
    const FIRST: FirstSetting<'_> = FirstSetting {
        by: StartedBy::Unit,
        before: None,
        appeared: Some(at(100 * SEC)),
        boot_timeout: Duration::from_secs(240),
        now: at(3700 * SEC),
    };

    /// Whether that is made; `boot_began` 0 for never.
    fn is_made(first: FirstSetting<'_>, is_over: bool, boot_began: u64) -> bool {
        let began = Moment::of_systemd(boot_began * SEC);
        let start_up = StartUp { began: at(20 * SEC), is_over };
        first.is_made(|| Ok(start_up), || Ok(began)).expect("answers")
    }

    #[test]
    fn the_first_setting_of_an_interface_in_use_is_made_while_the_system_starts() {
        let by_boot = FirstSetting { by: StartedBy::Boot, ..FIRST };
        for first in [FIRST, by_boot] {
            assert!(is_made(first, false, 3600));
            assert!(is_made(first, false, 0), "before ibprov.service");
            assert!(!is_made(first, true, 3600));
            assert!(!is_made(first, true, 0));
            assert!(!is_made(first, false, 3460), "boot.timeout has passed");
        }
        let by_hand = FirstSetting { by: StartedBy::Hand, ..FIRST };
        assert!(!is_made(by_hand, false, 3600), "`ibprov iface` is typed");
    }

    #[test]
    fn a_setting_that_is_not_the_first_is_never_made_in_use() {
        let outcome = |was_set, started| {
            let blank = IfaceReport::blank("ib0", at(started * SEC));
            IfaceReport { was_set, ..blank }
        };
        let after = |was_set, started| {
            is_made(FirstSetting { before: Some(&outcome(was_set, started)), ..FIRST }, false, 3600)
        };
        assert!(!after(true, 30));
        assert!(after(false, 30), "what failed is tried again");
        assert!(after(true, 10), "that was before a soft-reboot");
    }

    /// Its driver was loaded again, say, and its network stack was faster.
    #[test]
    fn a_unit_sets_an_interface_that_has_just_appeared_and_systemd_is_not_asked() {
        let unasked = |first: FirstSetting<'_>| {
            first.is_made(|| Err(io::Error::other("asked")), || Ok(None)).ok()
        };
        let fresh = FirstSetting { now: at(339 * SEC), ..FIRST };
        assert_eq!(unasked(fresh), Some(true));
        assert_eq!(unasked(FirstSetting { now: at(340 * SEC), ..FIRST }), None);
        assert_eq!(unasked(FirstSetting { appeared: None, ..fresh }), None);
        assert_eq!(unasked(FirstSetting { by: StartedBy::Boot, ..fresh }), None);
        assert_eq!(unasked(FirstSetting { by: StartedBy::Hand, ..fresh }), Some(false));
        let set = IfaceReport { was_set: true, ..IfaceReport::blank("ib0", Moment::START) };
        assert_eq!(unasked(FirstSetting { before: Some(&set), ..fresh }), None);
    }

    #[test]
    fn what_boot_has_set_beside_a_slow_instance_is_looked_at_again_too() {
        let left = |configured, bring_up| {
            is_left(&IfaceReport {
                configured,
                bring_up,
                ..IfaceReport::blank("ib0", Moment::START)
            })
        };
        assert!(left(true, BringUp::Left));
        assert!(left(true, BringUp::NotAsked));
        assert!(!left(false, BringUp::Left), "what could not be made is told");
        assert!(!left(true, BringUp::Up), "it has been read back");
    }

    #[test]
    fn an_interface_is_gone_if_its_name_is_free_or_of_another() {
        let dir = tree(&[("sys/class/net/ib0/ifindex", "7\n")], &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let gone = |name, ifindex| {
            has_disappeared(
                &root,
                &IfaceReport { ifindex, ..IfaceReport::blank(name, Moment::START) },
            )
        };
        assert!(!gone("ib0", 7));
        assert!(gone("ib0", 8), "the name is another interface's");
        assert!(gone("ib1", 7));
    }
}
