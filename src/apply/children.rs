//! P_Key children, of which hundreds can come at once: their instances of
//! ibprov-iface@.service, and later of ibprov-iface-later@.service, are started a few at a
//! time. systemd would start all of them at once, and whatever is to be started after that
//! would come last.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use nix::libc::ARPHRD_INFINIBAND;
use nix::unistd::{SysconfVar, sysconf};
use tracing::{info, warn};

use crate::host::events::Events;
use crate::host::manager::Manager;
use crate::host::{Root, alarm, clock, state};
use crate::names::IfName;
use crate::observe::ipoib::{outcome, outcome_file};
use crate::report::iface::IfaceReport;
use crate::stacks::stack::unit_escape;

/// How long an instance may take, microseconds, before no other waits for it: a driver may
/// hold a lock that all of them need.
const PATIENCE_USEC: u64 = 5_000_000;

/// The most instances at once, so that systemd has never more of them to start.
const MOST_AT_ONCE: usize = 8;

/// How long systemd may be too busy to take a start, microseconds.
const LATE_USEC: u64 = 60_000_000;

/// How many interfaces may come in a second, or be left for udev to process, while instances
/// are begun.
const FEW: usize = 8;

/// How long instances may be put off while more interfaces are made, microseconds.
const MAKING_USEC: u64 = 60_000_000;

/// How often it is looked at whether more are made, microseconds, if udev has not ended before:
/// it writes some files for each. A systemd that cannot be reached is asked again as often.
const LOOK_USEC: u64 = 1_000_000;

/// How long one round may take.
const ROUND: Duration = Duration::from_secs(120);

/// What instances are started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// To set the children up: ibprov-iface@.service.
    SetUp,
    /// To look again at those that need it once the network stacks have started:
    /// ibprov-iface-later@.service.
    LookAgain,
}

impl Round {
    /// The unit, of which there is an instance for each interface.
    const fn template(self) -> &'static str {
        match self {
            Self::SetUp => "ibprov-iface",
            Self::LookAgain => "ibprov-iface-later",
        }
    }

    /// Where it is noted which instances were asked for, below [`state::RUN_DIR`].
    const fn notes(self) -> &'static str {
        match self {
            Self::SetUp => state::CHILDREN,
            Self::LookAgain => state::CHILDREN_LATER,
        }
    }

    /// Where that is noted of an interface of this index and name.
    fn note(self, ifindex: u32, name: &str) -> String {
        format!("{}/{ifindex}.{name}", self.notes())
    }
}

/// A P_Key child whose instance has not been asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Child {
    name: IfName,
    ifindex: u32,
    unit: String,
}

/// Start the instance of each P_Key child that udev has processed and that needs one, until there
/// is none whose instance has not been asked for under the name that the child has. False if
/// this process was to stop before.
///
/// # Errors
/// Nothing can be waited for, systemd does not answer, or it cannot be noted what it was
/// asked.
pub fn start_instances(root: &Root, round: Round) -> anyhow::Result<bool> {
    let mut events = Events::open_quiet()?;
    match state::outcomes_dir(state::PORTS) {
        Ok(dir) => events.watch_new_files(&dir),
        Err((path, e)) => warn!(cause = %e, "{}: {}", path.display(), crate::host::answer(&e)),
    }
    events.watch_udev();
    forget_gone(root, round);
    let mut pace = Pace::new();
    let mut making = Making::begins(clock::monotonic_usec(), interfaces(root));
    loop {
        alarm::at_deadline(ROUND);
        while let Some(until) = making.lasts_until(root) {
            alarm::at_deadline(ROUND);
            if events.wait(until)?.stop {
                return Ok(false);
            }
        }
        let mut missed = missed(root, round);
        if missed.is_empty() {
            return Ok(true);
        }
        let (all, at_once) = (missed.len(), pace.at_once);
        let what = match round {
            Round::SetUp => "set up",
            Round::LookAgain => "looked at again",
        };
        info!("P_Key children to be {what}: {all}, {at_once} at a time");
        let (mut manager, _) = Manager::open_until(&[], clock::monotonic_usec() + LATE_USEC)?;
        while !missed.is_empty() && making.lasts_until(root).is_none() {
            alarm::at_deadline(ROUND);
            let now = clock::monotonic_usec();
            match pace.free(now, |child, since| is_through(root, round, child, since)) {
                Ok(free) => {
                    let next: Vec<Child> = missed.drain(..free.min(missed.len())).collect();
                    if !ask_for(root, round, &mut manager, &next, &mut events)? {
                        return Ok(false);
                    }
                    pace.begun.extend(next.into_iter().map(|child| (child, now)));
                }
                Err(until) if events.wait(until)?.stop => return Ok(false),
                Err(_) => {}
            }
        }
    }
}

/// The instance of some P_Key child has not been asked for: it came when
/// [`start_instances`] had had its last look, and was running still.
pub fn are_missed(root: &Root, round: Round) -> bool {
    !missed(root, round).is_empty()
}

/// Forget that an instance was asked for to look at this child again: a later run has left it to
/// be looked at once more.
pub fn forget_second_look(interface: &IfName, ifindex: u32) {
    // Best effort: without a note there is nothing to forget.
    drop(state::remove(&Round::LookAgain.note(ifindex, interface.as_str())));
}

/// Ask for the instances of `children`, and note it. One that systemd refuses to start is not
/// asked for again. False if this process was to stop before.
fn ask_for(
    root: &Root,
    round: Round,
    manager: &mut Manager,
    children: &[Child],
    events: &mut Events,
) -> anyhow::Result<bool> {
    let units: Vec<&str> = children.iter().map(|child| child.unit.as_str()).collect();
    let until = clock::monotonic_usec() + LATE_USEC;
    while let Err(e) = manager.queue_starts(&units) {
        if manager.has_refused(&e) {
            warn!(cause = %e, "not all of {} can be started: {e}", units.join(", "));
            break;
        }
        let now = clock::monotonic_usec();
        if now >= until {
            return Err(e.into());
        }
        info!("{e}: asking again");
        alarm::at_deadline(ROUND);
        let again = now + LOOK_USEC;
        while clock::monotonic_usec() < again {
            if events.wait(again)?.stop {
                return Ok(false);
            }
        }
    }
    let asked = asked(root, round);
    for Child { name, ifindex, unit } in children {
        state::write(&round.note(*ifindex, name.as_str()), "")
            .map_err(|(path, e)| std::io::Error::new(e.kind(), format!("{}: {e}", path.display())))
            .with_context(|| format!("cannot note that {unit} was started"))?;
        // It had another name, or another one had its name.
        for (index, former) in &asked {
            if (index == ifindex) != (former == name.as_str()) {
                drop(state::remove(&round.note(*index, former)));
            }
        }
    }
    Ok(true)
}

/// The run for the child, begun at `since`, has got to its settings, or has looked at what has
/// become of them; or the child has gone.
fn is_through(root: &Root, round: Round, child: &Child, since: u64) -> bool {
    let has_got_there = match round {
        Round::SetUp => root.exists(&format!("{}/{}", state::RUN_DIR, outcome_file(child.ifindex))),
        Round::LookAgain => outcome(root, child.ifindex).is_some_and(|o| o.finished_usec >= since),
    };
    has_got_there || !root.exists(&format!("/sys/class/net/{}", child.name))
}

/// The P_Key children that udev has processed, and whose instance is needed and has not been
/// asked for. As for udev's rule a child is an interface of its hardware type that no adapter is
/// above of. Of those that were asked for, of which there can be hundreds, no file is read.
fn missed(root: &Root, round: Round) -> Vec<Child> {
    // What udev has not processed may get another name.
    let processed = processed(root);
    let asked = asked(root, round).into_iter().filter(|(ifindex, _)| processed.contains(ifindex));
    let asked: BTreeSet<String> = asked.map(|(_, name)| name).collect();
    let child = |name: String| {
        let dir = format!("/sys/class/net/{name}");
        let name = name.parse::<IfName>().ok()?;
        let target = root.link_target(&dir).ok()?;
        let device = target.trim_start_matches("../");
        if device != format!("devices/virtual/net/{name}") {
            return None;
        }
        let number = |what| root.attribute(&format!("{dir}/{what}")).ok()?.parse::<u32>().ok();
        let is_infiniband = number("type") == Some(u32::from(ARPHRD_INFINIBAND));
        let ifindex = number("ifindex").filter(|i| is_infiniband && processed.contains(i))?;
        let unit =
            format!("{}@{}.service", round.template(), unit_escape(&format!("sys/{device}")));
        let needs = |outcome: IfaceReport| outcome.is_to_be_looked_at_again();
        let is_needed = round == Round::SetUp || outcome(root, ifindex).is_some_and(needs);
        is_needed.then_some(Child { name, ifindex, unit })
    };
    let names = root.list("/sys/class/net").unwrap_or_default().into_iter();
    names.filter(|name| !asked.contains(name)).filter_map(child).collect()
}

/// The indexes of the interfaces that udev has processed and that are there: it has a record of
/// each (`device_get_db_path()`, src/libsystemd/sd-device).
fn processed(root: &Root) -> BTreeSet<u32> {
    let records = root.list("/run/udev/data").unwrap_or_default();
    records.iter().filter_map(|file| file.strip_prefix('n')?.parse().ok()).collect()
}

/// Forget which instances of interfaces that have gone were asked for.
fn forget_gone(root: &Root, round: Round) {
    let processed = processed(root);
    for (ifindex, name) in asked(root, round) {
        if !processed.contains(&ifindex) {
            // Best effort: what is left means nothing.
            drop(state::remove(&round.note(ifindex, &name)));
        }
    }
}

/// The interfaces whose instances were asked for, by index and name.
fn asked(root: &Root, round: Round) -> Vec<(u32, String)> {
    let files = root.list(&format!("{}/{}", state::RUN_DIR, round.notes())).unwrap_or_default();
    let parsed = |file: String| {
        let (ifindex, name) = file.split_once('.')?;
        Some((ifindex.parse().ok()?, name.to_owned()))
    };
    files.into_iter().filter_map(parsed).collect()
}

/// Whether many interfaces are being made, as where hundreds of P_Key children come at once: no
/// instance is begun meanwhile. Making one takes commands to the firmware with the RTNL lock
/// held, which each instance needs, and udev and systemd have work for each.
#[derive(Debug)]
struct Making {
    /// How many there were at the last look, and when that was.
    all: usize,
    looked: u64,
    /// Many had come since the look before.
    grew: bool,
    processed: usize,
    /// When udev last got on.
    since: u64,
    /// Until when it is waited for.
    end: u64,
}

impl Making {
    const fn begins(now: u64, all: usize) -> Self {
        Self { all, looked: now, grew: false, processed: 0, since: now, end: now + MAKING_USEC }
    }

    /// Until when to wait before the next look; none if there is no more to wait for.
    fn lasts_until(&mut self, root: &Root) -> Option<u64> {
        self.of(clock::monotonic_usec(), interfaces(root), processed(root).len())
    }

    /// The same where udev has processed so many of all interfaces.
    fn of(&mut self, now: u64, all: usize, processed: usize) -> Option<u64> {
        if processed > self.processed {
            (self.since, self.processed) = (now, processed);
        }
        let grows = all > self.all + FEW;
        if now >= self.looked + LOOK_USEC {
            (self.all, self.looked, self.grew) = (all, now, grows);
        }
        let lasts = grows || self.grew || all > processed + FEW;
        let until = (self.since + PATIENCE_USEC).min(self.end);
        (lasts && now < until).then(|| until.min(now + LOOK_USEC))
    }
}

/// How many interfaces there are.
fn interfaces(root: &Root) -> usize {
    root.list("/sys/class/net").map_or(0, |names| names.len())
}

/// Which instances have work to do.
#[derive(Debug)]
struct Pace {
    at_once: usize,
    /// Since when.
    begun: Vec<(Child, u64)>,
    /// How many have taken too long since one last got through.
    slow: usize,
}

impl Pace {
    /// Half of the processors are left to others.
    fn new() -> Self {
        let processors = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
        let processors = processors.and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
        Self::of((processors / 2).clamp(1, MOST_AT_ONCE))
    }

    const fn of(at_once: usize) -> Self {
        Self { at_once, begun: Vec::new(), slow: 0 }
    }

    /// How many may begin now; if none, until when to wait at the most. All may where as many as
    /// may be there at once, and two at least, have taken too long one after the other.
    fn free(&mut self, now: u64, is_through: impl Fn(&Child, u64) -> bool) -> Result<usize, u64> {
        let slow = &mut self.slow;
        self.begun.retain(|(child, since)| {
            let (is_through, is_slow) = (is_through(child, *since), now >= *since + PATIENCE_USEC);
            *slow = if is_through { 0 } else { *slow + usize::from(is_slow) };
            !is_through && !is_slow
        });
        if self.slow >= self.at_once.max(2) {
            return Ok(usize::MAX);
        }
        match self.at_once.saturating_sub(self.begun.len()) {
            0 => {
                let first = self.begun.iter().map(|(_, since)| *since).min().unwrap_or(now);
                Err(first + PATIENCE_USEC)
            }
            free => Ok(free),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;
    use crate::report::iface::BringUp;

    fn child(ifindex: u32) -> Child {
        let name: IfName = format!("ib0.{ifindex:04x}").parse().expect("name");
        Child { unit: format!("{name}.service"), name, ifindex }
    }

    #[test]
    fn as_many_are_at_their_settings_as_may_be_and_one_that_hangs_holds_up_none() {
        let mut pace = Pace::of(2);
        assert_eq!(pace.free(10, |_, _| false), Ok(2));
        pace.begun.extend([(child(3), 10), (child(4), 10)]);
        assert_eq!(pace.free(20, |_, _| false), Err(10 + PATIENCE_USEC));
        assert_eq!(pace.free(30, |child, _| child.ifindex == 4), Ok(1));
        pace.begun.push((child(5), 30));
        // The first hangs: the next takes its place, and no second one is let go for it.
        assert_eq!(pace.free(10 + PATIENCE_USEC, |_, _| false), Ok(1));
        pace.begun.push((child(6), 40));
        assert_eq!(pace.free(20 + PATIENCE_USEC, |_, _| false), Err(30 + PATIENCE_USEC));
        // Two hang, and so would all others, one after the other; one that gets through shows
        // that they would not.
        let mut other = Pace::of(1);
        assert_eq!(pace.free(40 + PATIENCE_USEC, |_, _| false), Ok(usize::MAX));
        other.begun.push((child(7), 0));
        assert_eq!(other.free(PATIENCE_USEC, |_, _| false), Ok(1));
        other.begun.push((child(8), PATIENCE_USEC));
        assert_eq!(other.free(PATIENCE_USEC + 1, |_, _| true), Ok(1));
        other.begun.push((child(9), PATIENCE_USEC));
        assert_eq!(other.free(2 * PATIENCE_USEC, |_, _| false), Ok(1));
    }

    #[test]
    fn no_instance_begins_while_many_interfaces_are_made_and_udev_gets_on() {
        let mut making = Making::begins(0, 3);
        assert_eq!(making.of(0, 3 + FEW, 3), None);
        assert_eq!(making.of(10, 200, 50), Some(10 + LOOK_USEC));
        assert_eq!(making.of(4_900_000, 200, 51), Some(4_900_000 + LOOK_USEC));
        assert_eq!(making.of(9_800_000, 200, 51), Some(4_900_000 + PATIENCE_USEC));
        // udev hangs, or will not process them; it is waited for once more when it goes on.
        assert_eq!(making.of(9_900_000, 200, 51), None);
        assert_eq!(making.of(20_000_000, 200, 51), None);
        assert_eq!(making.of(30_000_000, 200, 52), Some(31_000_000));
        assert_eq!(making.of(30_100_000, 200, 200 - FEW), None);
        // udev keeps up, and more come.
        assert_eq!(making.of(31_000_000, 200, 200), None);
        assert_eq!(making.of(31_500_000, 209, 209), Some(32_500_000));
        assert_eq!(making.of(32_000_000, 209, 209), Some(33_000_000));
        assert_eq!(making.of(32_500_000, 209, 209), Some(33_500_000));
        assert_eq!(making.of(33_000_000, 209, 209), None);
        assert_eq!(making.of(MAKING_USEC - 1, 400, 300), Some(MAKING_USEC));
        assert_eq!(making.of(MAKING_USEC, 400, 301), None);
    }

    #[test]
    fn a_child_is_missed_until_it_is_asked_for_under_its_name() {
        let files = [
            ("sys/devices/pci0000:00/0000:00:01.0/net/ib0/ifindex", "3\n"),
            ("sys/devices/pci0000:00/0000:00:01.0/net/ib0/type", "32\n"),
            ("sys/devices/virtual/net/ib0.8001/ifindex", "4\n"),
            ("sys/devices/virtual/net/ib0.8001/type", "32\n"),
            ("sys/devices/virtual/net/storage-a/ifindex", "5\n"),
            ("sys/devices/virtual/net/storage-a/type", "32\n"),
            ("sys/devices/virtual/net/ib0.8003/ifindex", "6\n"),
            ("sys/devices/virtual/net/ib0.8003/type", "32\n"),
            ("sys/devices/virtual/net/br0/ifindex", "7\n"),
            ("sys/devices/virtual/net/br0/type", "1\n"),
            ("run/udev/data/n3", "I:1\n"),
            ("run/udev/data/n4", "I:1\n"),
            ("run/udev/data/n5", "I:1\n"),
            ("run/udev/data/n7", "I:1\n"),
            ("run/ibprov/children/4.ib0.8001", ""),
            ("run/ibprov/children/5.ib0.8002", ""),
            ("run/ibprov/children/2.ib0.8004", ""),
            ("sys/devices/virtual/net/ib0.8004/ifindex", "8\n"),
            ("sys/devices/virtual/net/ib0.8004/type", "32\n"),
            ("run/udev/data/n8", "I:1\n"),
        ];
        let links = [
            ("sys/class/net/ib0", "../../devices/pci0000:00/0000:00:01.0/net/ib0"),
            ("sys/class/net/ib0.8001", "../../devices/virtual/net/ib0.8001"),
            ("sys/class/net/storage-a", "../../devices/virtual/net/storage-a"),
            ("sys/class/net/ib0.8003", "../../devices/virtual/net/ib0.8003"),
            ("sys/class/net/ib0.8004", "../../devices/virtual/net/ib0.8004"),
            ("sys/class/net/br0", "../../devices/virtual/net/br0"),
        ];
        let dir = tree(&files, &links);
        let root = Root::copy_at(dir.path()).expect("root");
        let missed = missed(&root, Round::SetUp);
        // storage-a had another name, and another interface had that of ib0.8004. udev may still
        // rename ib0.8003, and starts the instance of ib0 itself.
        let mut units: Vec<&str> = missed.iter().map(|child| child.unit.as_str()).collect();
        units.sort_unstable();
        let [first, second] = ["ib0.8004", "storage\\x2da"]
            .map(|name| format!("ibprov-iface@sys-devices-virtual-net-{name}.service"));
        assert_eq!(units, [first, second]);
        let has_settings = |child| is_through(&root, Round::SetUp, child, 0);
        assert!(!has_settings(&missed[0]), "it is there, and has none");
        assert!(has_settings(&child(99)), "it has gone");
    }

    #[test]
    fn a_child_is_looked_at_again_if_its_outcome_says_so() {
        let outcome = |ifindex: u32, change: fn(&mut IfaceReport)| {
            let mut report = IfaceReport::blank("ib0.8001", 5);
            (report.ifindex, report.configured, report.finished_usec) = (ifindex, true, 7);
            change(&mut report);
            let json = crate::report::to_json(&report).expect("JSON");
            (format!("run/ibprov/ports/{ifindex}.json"), json)
        };
        let left = |report: &mut IfaceReport| {
            report.bring_up = BringUp::Left;
            report.wanted.mtu = Some(2044);
        };
        let outcomes = [
            outcome(1, left),
            outcome(2, left),
            outcome(3, |report| report.bring_up = BringUp::Left),
            outcome(4, |report| report.rtnl_held = true),
        ];
        let mut files: Vec<(String, String)> = outcomes.into();
        let mut links = Vec::new();
        for ifindex in 1..=5 {
            let device = format!("devices/virtual/net/ib0.{ifindex:04x}");
            files.push((format!("sys/{device}/ifindex"), format!("{ifindex}\n")));
            files.push((format!("sys/{device}/type"), "32\n".into()));
            files.push((format!("run/udev/data/n{ifindex}"), "I:1\n".into()));
            links.push((format!("sys/class/net/ib0.{ifindex:04x}"), format!("../../{device}")));
        }
        files.push(("run/ibprov/children-later/2.ib0.0002".into(), String::new()));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let links: Vec<(&str, &str)> =
            links.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let dir = tree(&files, &links);
        let root = Root::copy_at(dir.path()).expect("root");
        let mut missed = missed(&root, Round::LookAgain);
        missed.sort_unstable_by_key(|child| child.ifindex);
        // The second was asked for, of the third nothing is configured, the fifth has not run.
        let indexes: Vec<u32> = missed.iter().map(|child| child.ifindex).collect();
        assert_eq!(indexes, [1, 4]);
        let unit = "ibprov-iface-later@sys-devices-virtual-net-ib0.0001.service";
        assert_eq!(missed[0].unit, unit);
        let [before, after] = [7, 8].map(|at| is_through(&root, Round::LookAgain, &missed[0], at));
        assert!(before && !after, "its run has ended at 7");
    }
}
