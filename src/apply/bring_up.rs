//! Seeing that an interface comes up, by the stack that it belongs to.

use std::time::Duration;

use anyhow::Context as _;
use anyhow::Result;
use tracing::{Level, info};

use super::rtnl::Rtnl;
use crate::host::bus::BusError;
use crate::host::link_events::LinkEvents;
use crate::host::manager::{Manager, ManagerError};
use crate::host::unit::{Apart, CALL, JobEnd, UnitState};
use crate::host::{Root, answer, clock, journal, systemctl};
use crate::model::{
    BringUp, IfaceReport, events as kinds,
    stack::{Action, Decision, Phase, View},
};
use crate::names::{Moment, unit_escape};
use crate::observe::iface::look;
use crate::observe::ipoib::Interface;
use crate::stacks::files::Files;
use crate::stacks::stack::{OwnUnit, Progress, Stack};
use crate::stacks::{KNOWN, Live, decide, phase_of_unit};

/// How long a stack that runs may take to notice a new interface at all,
/// before its "not mine" is believed.
const NOTICE: Duration = Duration::from_secs(3);

/// How often what the stacks record of the interface is looked at while it is waited for:
/// soon after an event, then more and more rarely. There is no event for it
/// that hundreds of instances could wait for: root has 256 connections to the bus and 128
/// inotify instances (`/proc/sys/fs/inotify/max_user_instances`) on the whole host.
const PEEK: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// What a stack does not record is asked for: after so long at first, and each
/// time after twice as many.
const ASK_AGAIN: Duration = Duration::from_secs(15);

/// How a look at the stacks ended.
enum Next {
    End(BringUp),
    Again,
}

struct Run<'a> {
    root: &'a Root,
    deadline: Moment,
    /// Until when a "not mine" is not believed: begins with the first one.
    notice_until: Option<Moment>,
    manager: Manager,
    interface: Interface,
    report: &'a mut IfaceReport,
    rtnl: &'a mut Rtnl,
    /// How long no event may come before the stacks are asked again.
    ask_again: Duration,
    /// What was done last: nothing is done twice.
    acted: Option<Action>,
    /// Nothing is done at all: the interface was left to its stack.
    only_looks: bool,
}

/// Decide who brings the interface up, and see that it happens; of one that was left to a
/// stack (`only_looks`), only see whether that stack has it up.
pub fn bring_up(
    root: &Root,
    no_bus: bool,
    deadline: Moment,
    interface: &Interface,
    only_looks: bool,
    rtnl: &mut Rtnl,
    report: &mut IfaceReport,
) {
    // Nothing more is asked of it for a while.
    rtnl.disconnect();
    let (manager, states) = match while_late(deadline, || ask_systemd(root, interface, no_bus)) {
        Ok(answer) => answer,
        Err(e) => {
            report.failures.push(format!(
                "cannot determine which network stack brings {} up: {e}",
                interface.name
            ));
            report.bring_up = BringUp::Failed;
            return;
        }
    };
    report.asked_by = manager.way().to_string();
    let interface = interface.clone();
    let ask_again = ASK_AGAIN;
    let mut run = Run {
        root,
        deadline,
        notice_until: None,
        manager,
        interface,
        report,
        rtnl,
        ask_again,
        acted: None,
        only_looks,
    };
    let mut states = Some(states);
    run.report.bring_up = loop {
        match run.step(states.take()) {
            Ok(Next::End(end)) => break end,
            Ok(Next::Again) => {}
            Err(e) if may_ask_again(&e, deadline) => {}
            Err(e) => {
                run.report.failures.push(format!("{}: {e:#}", run.interface.name));
                break BringUp::Failed;
            }
        }
    };
    run.report.asked_by = run.manager.way().to_string();
    run.report.rtnl_held = run.rtnl.is_held();
}

/// Ask systemd by `ask`, and again where it had so much to do that it has not answered and
/// there is time for another question before `deadline`.
///
/// # Errors
/// As `ask`.
pub(super) fn while_late<T>(deadline: Moment, mut ask: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match ask() {
            Err(e) if may_ask_again(&e, deadline) => {}
            end => return end,
        }
    }
}

/// True if systemd had so much to do that it has not answered, as where hundreds of
/// interfaces come at once, and there is time for another question.
fn may_ask_again(e: &anyhow::Error, deadline: Moment) -> bool {
    let is_late = e.downcast_ref::<ManagerError>().is_some_and(ManagerError::is_late)
        || e.downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::TimedOut)
        || e.downcast_ref::<BusError>().is_some_and(BusError::is_late);
    let is_time = clock::now() + CALL < deadline;
    if is_late && is_time {
        tracing::info!("{e}: asking again");
    }
    is_late && is_time
}

/// Decide how to ask systemd, and ask it.
///
/// # Errors
/// It does not answer.
pub fn ask_systemd(
    root: &Root,
    interface: &Interface,
    no_bus: bool,
) -> Result<(Manager, Vec<UnitState>)> {
    let names = KNOWN.units(&Files::of(root), interface);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if no_bus {
        let mut manager = Manager::by_systemctl();
        let states = manager.units(&names)?;
        return Ok((manager, states));
    }
    Ok(Manager::open(&names)?)
}

impl Run<'_> {
    /// Look, decide and do one thing.
    fn step(&mut self, states: Option<Vec<UnitState>>) -> Result<Next> {
        let watch = Watch::open(self.root, &self.interface)?;
        let states = match states {
            Some(states) => states,
            None => {
                let names = KNOWN.units(&Files::of(self.root), &self.interface);
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                self.manager.units(&names)?
            }
        };
        let mut live = KNOWN.ask(self.root, &mut self.manager, &states, &self.interface)?;
        // From here on it may be waited for, for as long as the deadline is.
        self.manager.disconnect();
        // After the stacks, which may take long to answer: one that says that it is
        // done has set it up, and does not tell again.
        self.interface = look(self.root, &self.interface.name)?.interface;
        if self.interface.ifindex != self.report.ifindex {
            anyhow::bail!("the interface disappeared, and another one has its name");
        }
        live.addressed = is_addressed(&self.interface, &states, self.rtnl)?;
        self.rtnl.disconnect();
        let files = Files::of(self.root);
        let mut standings = KNOWN.standings(&files, &self.interface, &states, &live);
        if self.report.wanted.mode.is_some() || self.report.wanted.mtu.is_some() {
            standings = KNOWN.with_writes(&files, &self.interface, &states, standings);
        }
        let decision = decide(&standings, &self.interface);
        if self.report.decided_usec == Moment::START {
            self.report.decided_usec = clock::now();
        }
        if self.report.decision.as_ref() != Some(&decision) {
            tracing::debug!(cause = %decision.why, "{}: {}", self.interface.name, decision.why);
        }
        self.report.stacks = standings.into_iter().map(|s| s.view).collect();
        self.report.decision = Some(decision.clone());
        let stack = decision.stack.and_then(|name| KNOWN.named(name));
        let own_unit = stack.and_then(|stack| stack.facts().own_unit.as_ref());
        match decision.action {
            Action::Nothing => Ok(Next::End(BringUp::Up)),
            Action::Leave => Ok(Next::End(BringUp::Left)),
            Action::WaitForService => self.wait_for(known(stack)?.facts().service),
            Action::WaitForHotplug => self.wait_for_own(known(own_unit)?, &watch),
            // Its stack has not brought it up, or has taken it down since.
            Action::Ifup | Action::IfupAgain | Action::IfupAnew | Action::StartHotplug
                if self.only_looks =>
            {
                Ok(Next::End(BringUp::Left))
            }
            // An ifup for a former interface of that name may have left addresses
            // after our look: that alone is worth a second try.
            Action::IfupAnew if self.acted != Some(Action::IfupAnew) => {
                self.ifup(known(stack)?, &decision)
            }
            Action::Ifup | Action::IfupAgain | Action::IfupAnew | Action::StartHotplug
                if self.acted.is_some() =>
            {
                Ok(self.failed(&format!("{}, but the interface is still not up", decision.why)))
            }
            Action::Ifup | Action::IfupAgain | Action::IfupAnew => {
                self.ifup(known(stack)?, &decision)
            }
            Action::StartHotplug => {
                self.acted = Some(decision.action);
                let unit = known(own_unit)?.of(&self.interface);
                let end = systemctl::start(&unit, self.deadline)?;
                Ok(self.after(&unit, end))
            }
            Action::Verify => self.verify(&live, &decision, &watch),
            // What a stack says in its first moments is not its last word. They begin when it
            // answers: one that was too busy for that has noticed nothing either.
            Action::Nobody | Action::Stuck if live.is_undecided(&self.interface) => {
                let notice = || (clock::now() + NOTICE).min(self.deadline);
                let until = *self.notice_until.get_or_insert_with(notice);
                match self.wait(until, &watch)? {
                    true => Ok(Next::Again),
                    false => Ok(self.concluded(&decision)),
                }
            }
            Action::Nobody | Action::Stuck => Ok(self.concluded(&decision)),
        }
    }

    fn concluded(&mut self, decision: &Decision) -> Next {
        match decision.is_wrong {
            true => self.failed(&decision.why),
            false => Next::End(BringUp::Nobody),
        }
    }

    fn failed(&mut self, why: &str) -> Next {
        self.report.failures.push(format!("{}: {why}", self.interface.name));
        Next::End(BringUp::Failed)
    }

    fn wait_for(&mut self, unit: &str) -> Result<Next> {
        match systemctl::wait_for_job(unit, self.deadline)? {
            JobEnd::Pending => Ok(self.failed(&format!(
                "{unit} is still starting after network.timeout: see systemctl status {unit}"
            ))),
            JobEnd::Done | JobEnd::Failed => Ok(Next::Again),
        }
    }

    /// A stack's own unit for the interface has no job while it works: the change of the
    /// interface is waited for.
    fn wait_for_own(&mut self, own: &OwnUnit, watch: &Watch) -> Result<Next> {
        let unit = own.of(&self.interface);
        let state = self.manager.units(&[&unit])?;
        self.manager.disconnect();
        if state.first().is_some_and(|u| u.job != 0) {
            return self.wait_for(&unit);
        }
        let works = state.first().is_some_and(|u| (own.phase)(u) == Phase::Starting);
        if !works || self.wait(self.deadline, watch)? {
            return Ok(Next::Again);
        }
        Ok(self.failed(&format!(
            "{unit} is still running after network.timeout: see systemctl status '{unit}'"
        )))
    }

    /// After a unit that should have brought it up.
    fn after(&mut self, unit: &str, end: JobEnd) -> Next {
        match end {
            JobEnd::Done => Next::Again,
            JobEnd::Failed => self.failed(&format!("{unit} failed: journalctl -u '{unit}'")),
            JobEnd::Pending => self.failed(&format!(
                "{unit} has not finished within network.timeout: see journalctl -u '{unit}'"
            )),
        }
    }

    /// The stack's command, in a unit of its own: a DHCP client that it starts
    /// outlives us.
    fn ifup(&mut self, stack: &dyn Stack, decision: &Decision) -> Result<Next> {
        let before = self.acted.replace(decision.action);
        let command = stack
            .command(decision.action, &self.interface.name)
            .map_err(|e| anyhow::anyhow!("{}: {e}", decision.why))?;
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let name = self.interface.name.as_str().to_owned();
        // Its index tells it from a former interface of that name.
        let unit = format!("ibprov-ifup-{}-{}.service", unit_escape(&name), self.interface.ifindex);
        // One that was begun by a run of ours that was killed goes on.
        let state = self.manager.units(&[&unit])?;
        self.manager.disconnect();
        match state.first().map(phase_of_unit) {
            Some(Phase::Starting | Phase::Queued) => {
                self.acted = before;
                return self.wait_for(&unit);
            }
            Some(Phase::Active | Phase::Stopped) => {
                systemctl::stop(&unit, self.deadline)?;
            }
            _ => {}
        }
        let description = format!("ifup {name}, which its network service did not find");
        let device = format!("sys-subsystem-net-devices-{}.device", unit_escape(&name));
        info!(
            message_id = kinds::IFUP,
            netdev = name,
            unit,
            "{name}: {}: running {}",
            decision.why,
            command.shown
        );
        let left = self.deadline.since(clock::now());
        let apart = Apart {
            name: &unit,
            description: &description,
            command: &words,
            device: &device,
            timeout: left,
        };
        let end = systemctl::run_apart(&apart, self.deadline)?;
        Ok(self.after(&unit, end))
    }

    /// A stack that takes interfaces by itself: see that it does.
    fn verify(&mut self, live: &Live, decision: &Decision, watch: &Watch) -> Result<Next> {
        let stack = known(decision.stack)?;
        match live.progress(stack, &self.interface) {
            Progress::Up => return Ok(Next::End(BringUp::Up)),
            Progress::Failed => {
                return Ok(self.failed(&format!("{stack} failed: {}", decision.why)));
            }
            Progress::Undecided | Progress::Working => {}
        }
        if self.wait(self.deadline, watch)? {
            return Ok(Next::Again);
        }
        if self.interface.up {
            let carrier = self.rtnl.carrier(&self.interface.name);
            if !carrier.context("its carrier cannot be read")? {
                return Ok(Next::End(BringUp::Waiting));
            }
        }
        Ok(self.failed(&format!(
            "{stack} has not brought the interface up within network.timeout: {}",
            decision.why
        )))
    }

    /// Wait until something changes, or the stacks are to be asked again; false at
    /// `until`.
    fn wait(&mut self, until: Moment, watch: &Watch) -> Result<bool> {
        let ask = clock::now() + self.ask_again;
        if watch.wait(self.root, until.min(ask))? {
            self.ask_again = ASK_AGAIN;
            return Ok(true);
        }
        self.ask_again = self.ask_again.saturating_mul(2);
        Ok(ask < until)
    }
}

/// What tells that an interface gets further, without a connection to the bus.
struct Watch {
    links: LinkEvents,
    /// The files that stacks write anew, with what was in them.
    records: Vec<(String, Option<String>)>,
}

impl Watch {
    /// Watch; to miss nothing, before the stacks are asked.
    fn open(root: &Root, interface: &Interface) -> Result<Self> {
        let links = LinkEvents::of(interface.ifindex)
            .map_err(|e| anyhow::anyhow!("cannot listen to rtnetlink: {}", answer(&e)))?;
        let records = KNOWN.records_of(interface).into_iter();
        let records = records.map(|path| (path.clone(), root.attribute(&path).ok())).collect();
        Ok(Self { links, records })
    }

    /// Wait until something has changed; false at `until`.
    fn wait(&self, root: &Root, until: Moment) -> Result<bool> {
        let (mut step, most) = PEEK;
        loop {
            let next = until.min(clock::now() + step);
            if self.links.wait(next)? {
                return Ok(true);
            }
            if self.records.iter().any(|(path, then)| root.attribute(path).ok() != *then) {
                return Ok(true);
            }
            if clock::now() >= until {
                return Ok(false);
            }
            step = step.saturating_mul(2).min(most);
        }
    }
}

/// What an action needs of the stack that it was decided for.
fn known<T>(of_stack: Option<T>) -> Result<T> {
    of_stack.context("the network stack is not known")
}

/// The interface is down and has addresses, over which a stack of this host would stumble.
fn is_addressed(interface: &Interface, states: &[UnitState], rtnl: &mut Rtnl) -> Result<bool> {
    if interface.up || !KNOWN.may_stumble(states) {
        return Ok(false);
    }
    rtnl.has_address(interface.ifindex).context("its addresses cannot be read")
}

/// Tell what came of it.
pub(super) fn tell(report: &IfaceReport) {
    let stack = report.decision.as_ref().and_then(|d| d.stack);
    let cause = (!report.failures.is_empty()).then(|| report.failures.join("; "));
    if report.bring_up == BringUp::Disappeared {
        info!(netdev = report.netdev, "{report}");
        return;
    }
    let (kind, level) = match report.bring_up {
        _ if !report.is_settled() => (kinds::IFACE_FAILED, Level::ERROR),
        BringUp::Failed => (kinds::IFACE_FAILED, Level::ERROR),
        _ if !report.configured => (kinds::IFACE_FAILED, Level::WARN),
        BringUp::Waiting => (kinds::IFACE_DONE, Level::WARN),
        _ => (kinds::IFACE_DONE, Level::INFO),
    };
    journal::event!(
        level,
        message_id = kind,
        netdev = report.netdev,
        stack = stack.map(|s| s.to_string()).unwrap_or_default(),
        cause,
        "{report}"
    );
}

/// Every stack's view and the decision, for `--dry-run`.
///
/// # Errors
/// systemd or the bus does not answer.
pub fn explain(
    root: &Root,
    interface: &Interface,
    no_bus: bool,
    rtnl: &mut Rtnl,
) -> Result<(String, Vec<View>, Decision)> {
    let (mut manager, states) = ask_systemd(root, interface, no_bus)?;
    let mut live = KNOWN.ask(root, &mut manager, &states, interface)?;
    live.addressed = is_addressed(interface, &states, rtnl)?;
    let files = Files::of(root);
    let standings = KNOWN.standings(&files, interface, &states, &live);
    let standings = KNOWN.with_writes(&files, interface, &states, standings);
    let decision = decide(&standings, interface);
    let views = standings.into_iter().map(|s| s.view).collect();
    Ok((manager.way().to_string(), views, decision))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;

    #[test]
    fn what_a_stack_records_is_seen_before_it_is_asked_again() {
        let net = "sys/class/net/ib0";
        let files = [("ifindex", "7\n"), ("type", "32\n"), ("dev_port", "0\n"), ("uevent", "\n")];
        let files = files.map(|(file, text)| (format!("{net}/{file}"), text));
        let files = files.each_ref().map(|(path, text)| (path.as_str(), *text));
        let dir = tree(&files, &[(&format!("{net}/device"), "../../0000:4b:00.0")]);
        let root = Root::copy_at(dir.path()).expect("root");
        let interface = look(&root, &"ib0".parse().expect("name")).expect("there").interface;
        let watch = Watch::open(&root, &interface).expect("rtnetlink");
        for record in KNOWN.records_of(&interface) {
            let file = dir.path().join(record.trim_start_matches('/'));
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, "OPER_STATE=routable\n").expect("written");
        }
        assert!(watch.wait(&root, clock::now() + ASK_AGAIN).expect("wait"));
    }

    #[test]
    fn a_question_that_was_not_answered_in_time_is_asked_again_while_there_is_time() {
        let late = || {
            let e = std::io::Error::from(std::io::ErrorKind::TimedOut);
            anyhow::Error::from(ManagerError::from(e))
        };
        let now = clock::now();
        assert!(may_ask_again(&late(), now + 3 * CALL));
        assert!(!may_ask_again(&late(), now + CALL / 2), "no time is left");
        let silent = BusError::Silent { what: "x".to_owned(), waited: CALL };
        assert!(may_ask_again(&silent.into(), now + 3 * CALL));
        let listed = std::io::Error::from(std::io::ErrorKind::TimedOut);
        assert!(may_ask_again(&listed.into(), now + 3 * CALL), "of all jobs");
        let refused = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let refused = anyhow::Error::from(refused);
        assert!(!may_ask_again(&refused, now + 3 * CALL));
    }
}
