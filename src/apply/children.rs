//! P_Key children, of which many can come at once: one process sets them all up, each on a
//! thread of its own, since most of the time a network stack is waited for. What may hang is
//! done by child processes, as for any interface.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use anyhow::Context as _;
use nix::libc::ARPHRD_INFINIBAND;
use tracing::{info, warn};

use super::iface::{self, Ask, StartedBy};
use crate::config::Config;
use crate::host::events::Events;
use crate::host::{Root, alarm};
use crate::model::{BringUp, Exit, IfaceReport};
use crate::names::{IfName, Moment, unit_escape};
use crate::observe::ipoib::outcome;
use crate::observe::{Look, ipoib};

/// The most that are under way at once, so that their files stay below the limit of a process.
const MOST_AT_ONCE: usize = 64;

/// A P_Key child, by index and name: under another name it is set up again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Child {
    ifindex: u32,
    name: IfName,
}

/// Set up each P_Key child that udev has processed and that no run has been through with, until
/// there is none: with exceptions if this process was to stop before, not ready if one is not
/// set or not up.
///
/// # Errors
/// Nothing can be waited for, a thread cannot be started, or an outcome cannot be written.
pub fn set_up(config: &Config, root: &Root) -> anyhow::Result<Exit> {
    let config = Arc::new(config.clone());
    // Before the first look, to miss nothing.
    let mut events = Events::open(&[])?;
    let (mut ended, ends) = UnixStream::pair()?;
    ended.set_nonblocking(true)?;
    let (mut begun, mut running, mut exit) = (BTreeSet::new(), 0, Exit::Good);
    loop {
        let mut next = left(root, &begun);
        next.truncate(MOST_AT_ONCE - running);
        if !next.is_empty() {
            info!("P_Key children to be set up: {}", next.len());
            alarm::at_deadline(config.network.timeout);
        }
        for child in next {
            begin(&config, child.name.clone(), ends.try_clone()?)
                .with_context(|| format!("{}: cannot start a thread", child.name))?;
            begun.insert(child);
            running += 1;
        }
        if running == 0 {
            break;
        }
        let mut codes = [0; MOST_AT_ONCE];
        // Each end of a process that a thread has started is heard too.
        running -= loop {
            let happened = events.wait_also(Moment::NEVER, vec![ended.as_fd()])?;
            if happened.stop {
                return Ok(Exit::Exceptions);
            }
            // Without any there is nothing to read.
            let number = ended.read(&mut codes).unwrap_or(0);
            if number > 0 || happened.to_devices() {
                break number;
            }
        };
        if codes.contains(&Exit::NotReady.code()) {
            exit = Exit::NotReady;
        }
    }
    // The unit would start again and again for it.
    let is_unwritten = |child: &Child| outcome(root, child.ifindex).is_none();
    match left(root, &BTreeSet::new()).into_iter().find(|c| begun.contains(c) && is_unwritten(c)) {
        Some(Child { name, .. }) => anyhow::bail!("{name}: its outcome cannot be written"),
        None => Ok(exit),
    }
}

/// Set `name` up on a thread, which writes its exit code to `ends` at its end.
fn begin(config: &Arc<Config>, name: IfName, mut ends: UnixStream) -> std::io::Result<()> {
    let config = Arc::clone(config);
    let thread = thread::Builder::new().spawn(move || {
        let later = unit_escape(&format!("sys/devices/virtual/net/{name}"));
        let later = format!("ibprov-iface-later@{later}.service");
        let ask = Ask {
            name: &name,
            settings_only: false,
            no_bus: false,
            then: Some(&later),
            later: false,
            force: false,
            by: StartedBy::Unit,
        };
        let code = match iface::run(&config, &Root::live(), ask) {
            Ok(report) => report.exit_code,
            // It has gone.
            Err(e) => {
                info!(netdev = %name, "{e}");
                Exit::Good.code()
            }
        };
        if let Err(e) = ends.write_all(&[code]) {
            warn!(netdev = %name, cause = %e, "the end of its run cannot be told: {e}");
        }
    });
    thread.map(drop)
}

/// A P_Key child has come after [`set_up`] had had its last look, and was running still.
pub fn are_missed(root: &Root) -> bool {
    !left(root, &BTreeSet::new()).is_empty()
}

/// No run has begun yet for some P_Key child.
pub fn are_not_begun(root: &Root) -> bool {
    let children = left(root, &BTreeSet::new()).into_iter();
    children.map(|child| child.name).any(|name| iface::is_missed(root, &name).unwrap_or(false))
}

/// The P_Key children that udev has processed and that no run has been through with, but for
/// `begun`. As for udev's rule a child is an interface of its hardware type that no adapter is
/// above of. First come those that no run has begun with.
fn left(root: &Root, begun: &BTreeSet<Child>) -> Vec<Child> {
    let names = root.list("/sys/class/net").unwrap_or_default();
    let children = names.iter().filter_map(|name| left_child(root, name, begun));
    let mut all: Vec<Child> = children.collect();
    // Each start after a kill is with some that no run has begun with, so that there is a last.
    all.sort_by_key(|child| outcome(root, child.ifindex).is_some());
    all
}

/// `name` as a P_Key child, if it is one that udev has processed and that is left to do.
fn left_child(root: &Root, name: &str, begun: &BTreeSet<Child>) -> Option<Child> {
    let dir = format!("/sys/class/net/{name}");
    let name = name.parse::<IfName>().ok()?;
    let target = root.link_target(&dir).ok()?;
    if target.trim_start_matches("../") != format!("devices/virtual/net/{name}") {
        return None;
    }
    let number = |what| root.attribute(&format!("{dir}/{what}")).ok()?.parse::<u32>().ok();
    let ifindex = number("ifindex")?;
    let child = Child { ifindex, name };
    if begun.contains(&child) {
        return None;
    }
    // What udev has not processed may get another name. It has a record of what it has
    // (`device_get_db_path()`, src/libsystemd/sd-device).
    let is_processed = root.exists(&format!("/run/udev/data/n{ifindex}"));
    let is_infiniband = number("type") == Some(u32::from(ARPHRD_INFINIBAND));
    let is_left = is_processed
        && is_infiniband
        && !outcome(root, ifindex).is_some_and(|outcome| is_through(&outcome, &child.name))
        && matches!(ipoib::sort(&mut Look::new(root), &child.name), Some(ipoib::Sort::Ipoib(_)));
    is_left.then_some(child)
}

/// The run that has left this has ended, and was to see that `name` comes up: boot makes only the
/// settings.
fn is_through(outcome: &IfaceReport, name: &IfName) -> bool {
    outcome.netdev == name.as_str()
        && outcome.finished_usec >= outcome.settled_usec
        && outcome.bring_up != BringUp::NotAsked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;
    use crate::names::at;

    #[test]
    fn a_child_is_left_until_a_run_has_been_through_with_it_under_its_name() {
        let outcome = |ifindex: u32, netdev: &str, change: fn(&mut IfaceReport)| {
            let mut report = IfaceReport::blank(netdev, at(5));
            (report.ifindex, report.settled_usec, report.finished_usec) = (ifindex, at(6), at(7));
            (report.configured, report.bring_up) = (true, BringUp::Up);
            change(&mut report);
            let json = report.to_report().to_json().expect("JSON");
            (format!("run/ibprov/ports/{ifindex}.json"), json)
        };
        let mut files = vec![
            outcome(1, "ib0.0001", |_| {}),
            outcome(2, "storage", |_| {}),
            outcome(3, "ib0.0003", |report| report.finished_usec = at(5)),
            outcome(4, "ib0.0004", |report| report.bring_up = BringUp::NotAsked),
            outcome(5, "ib0.0005", |report| report.bring_up = BringUp::Failed),
        ];
        let mut links = Vec::new();
        let mut netdev = |ifindex: u32, device: &str, kind: &str| {
            let name = device.rsplit('/').next().expect("name").to_owned();
            files.push((format!("sys/{device}/ifindex"), format!("{ifindex}\n")));
            files.push((format!("sys/{device}/type"), format!("{kind}\n")));
            links.push((format!("sys/class/net/{name}"), format!("../../{device}")));
        };
        for ifindex in 1..=7 {
            netdev(ifindex, &format!("devices/virtual/net/ib0.{ifindex:04x}"), "32");
        }
        netdev(8, "devices/pci0000:00/0000:00:01.0/net/ib0", "32");
        netdev(9, "devices/virtual/net/br0", "1");
        netdev(10, "devices/virtual/net/bond0", "32");
        files.push(("sys/devices/virtual/net/bond0/uevent".into(), "DEVTYPE=bond\n".into()));
        // udev may still rename the seventh.
        let processed = [1, 2, 3, 4, 5, 6, 8, 9, 10];
        files.extend(processed.map(|n| (format!("run/udev/data/n{n}"), "I:1\n".into())));
        let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
        let links: Vec<(&str, &str)> = links.iter().map(|(a, b)| (&**a, &**b)).collect();
        let dir = tree(&files, &links);
        let root = Root::copy_at(dir.path()).expect("root");
        let indexes = |begun: &BTreeSet<Child>| {
            let mut all: Vec<u32> = left(&root, begun).iter().map(|child| child.ifindex).collect();
            all.sort_unstable();
            all
        };
        // Under another name, killed between settings and end, set by boot, and new.
        assert_eq!(indexes(&BTreeSet::new()), [2, 3, 4, 6]);
        let all = left(&root, &BTreeSet::new());
        assert_eq!(all.first().map(|child| child.ifindex), Some(6), "no run has begun with it");
        let begun = all.into_iter().filter(|child| child.ifindex < 4);
        assert_eq!(indexes(&begun.collect()), [4, 6]);
    }
}
