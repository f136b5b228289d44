//! The order of units in the boot.

use std::time::Duration;

use super::consumers::mount_before_ipoib;
use super::words::ordering_cycle::NEEDED;
use super::words::ordering_missing::{MISSED, NAMED};
use super::{Boot, Code, Confidence, Event, Finding, Kind, Severity, row, seen};
use crate::check::evidence::host::HostPort;
use crate::check::evidence::relevance::rdma_device_in;
use crate::check::pattern::{caught_one, has_any, has_word, word};
use crate::graph::consumers::{DropIn, PROVIDER};
use crate::model::advice::ToDo;
use crate::model::duration::duration;
use crate::names::{is_ipoib_name, sh};
use crate::stacks;

/// True if the network or RDMA lacks something when `job` (`x.service/start`) is left
/// out. At a shutdown nothing is.
fn is_needed(job: &str) -> bool {
    !job.ends_with("/stop") && has_any(job, NEEDED)
}

pub(super) fn ordering_cycle(boot: &Boot) -> Option<Finding> {
    let lines = row::lines(boot, Code::OrderingCycle);
    let deleted: Vec<&str> = lines
        .iter()
        .filter_map(|e| {
            caught_one(&e.text, "Job {} deleted to break")
                .or_else(|| caught_one(&e.text, "deleting job {}"))
                .or_else(|| caught_one(&e.text, "by deleting job {}"))
        })
        .map(|j| j.trim_end_matches(['.', ' ']))
        .collect();
    if !lines.iter().any(|e| e.text.contains("ordering cycle")) {
        return None;
    }
    let broken = lines
        .iter()
        .any(|e| has_any(&e.text, &["deleted", "deleting", "Found ordering cycle", "Breaking"]));
    let harmless = !deleted.is_empty() && !deleted.iter().any(|job| is_needed(job));
    let severity = if broken && !harmless { Severity::Error } else { Severity::Warning };
    let what = deleted
        .first()
        .map_or("the log does not name the job that was deleted".to_owned(), |job| {
            format!("systemd deleted the job of {job}")
        });
    let unit = deleted.first().map(|job| job.split('/').next().unwrap_or(job));
    let (judged, told) =
        ((severity, Confidence::High), format!("Units form an ordering cycle; {what}."));
    Some(row::told(boot, Code::OrderingCycle, judged, told, unit.as_slice(), lines))
}

pub(super) fn ordering_missing(boot: &Boot) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for failed in seen::failed_units(boot) {
        let Kind::UnitFailed(unit) = &failed.kind else { continue };
        // Network services have diagnoses of their own.
        let is_network = stacks::network_role(unit).is_some();
        if is_network || unit.starts_with("ibprov") || unit.starts_with("openibd") {
            continue;
        }
        let Some((asked, object)) = missed(boot, failed) else { continue };
        let Some(came) = came(boot, asked, &object) else { continue };
        let is_mount = unit.ends_with(".mount") || unit.starts_with("lnet");
        let code = if is_mount { Code::MountBeforeIpoib } else { Code::OrderingMissing };
        // What that rule has found already has its own words.
        if is_mount && mount_before_ipoib(boot).is_some()
            || found.iter().any(|finding| finding.code == code)
        {
            continue;
        }
        let late = match came.late {
            Some(late) if !late.is_zero() => format!("{} later", duration(late)),
            _ => "later".to_owned(),
        };
        let name = if unit.contains('.') { unit.to_string() } else { format!("{unit}.service") };
        let drop_in = DropIn::new(&name, PROVIDER);
        let told = format!(
            "{unit} looked for {object} before it existed, and failed; {object} appeared {late}."
        );
        let finding = Finding::of(code, Severity::Error, Confidence::High, told)
            .about(name.as_str())
            .chain([
                format!("{unit} asked for {object}: {}", asked.text.trim()),
                format!("{object} was there {late}."),
                format!("{unit} is not ordered after the unit that waits for the netdevs."),
            ])
            .quoting([boot.quote(asked), boot.quote(failed)])
            .quoting(came.line.map(|event| boot.quote(event)))
            .look([ToDo::run(format!("systemctl show -p After,Before {}", sh(&name)))])
            .now([ToDo::run(format!("systemctl restart {}", sh(&name)))])
            .permanent([ToDo::run(drop_in.commands())]);
        found.push(finding);
    }
    found
}

/// What a unit missed.
#[derive(strum::Display)]
enum Object {
    #[strum(to_string = "{0}")]
    Netdev(String),
    #[strum(to_string = "{0}")]
    Rdma(String),
}

/// The line in which the unit that `failed` missed an IPoIB netdev or an RDMA device.
fn missed<'a>(boot: &'a Boot, failed: &'a Event) -> Option<(&'a Event, Object)> {
    let near = |event: &Event| failed.when.since(&event.when).is_none_or(|gap| gap < 600_000_000);
    seen::words_of_unit(boot, failed)
        .filter(|event| event.origin < failed.origin && near(event))
        .find_map(|event| {
            let netdev = seen::not_found(event).filter(|name| is_ipoib_name(name)).or_else(|| {
                is_missed(&event.text).then(|| seen::ib_netdev_in(&event.text)).flatten()
            });
            let rdma = || {
                let text = &event.text;
                let is_missed = is_missed(text) || text.contains("not found");
                rdma_device_in(text).filter(|_| is_missed).map(|name| Object::Rdma(name.to_owned()))
            };
            Some((event, netdev.map(|name| Object::Netdev(name.to_owned())).or_else(rdma)?))
        })
}

/// True if a program says here that an interface is not there.
fn is_missed(text: &str) -> bool {
    let missing = ["not found", "not available", "unavailable", "is down", "nvalid"];
    has_any(text, MISSED)
        || has_any(text, NAMED) && missing.iter().any(|words| text.contains(words))
}

/// That something came after it was asked for.
struct Came<'a> {
    /// The line that tells; none where the host shows it.
    line: Option<&'a Event>,
    /// How much later, where both times are known.
    late: Option<Duration>,
}

/// How `object` came after it was `asked` for; `None` if it never did.
fn came<'a>(boot: &'a Boot, asked: &Event, object: &Object) -> Option<Came<'a>> {
    match object {
        Object::Netdev(name) => netdev_came(boot, asked, name),
        Object::Rdma(name) => rdma_came(boot, asked, name),
    }
}

/// The same of an RDMA device. Netdevs of other ports are no sign of it.
fn rdma_came<'a>(boot: &'a Boot, asked: &Event, device: &str) -> Option<Came<'a>> {
    let shows = |event: &&Event| {
        let is_told = match &event.kind {
            Kind::Own(_) => event.text.contains(": ready"),
            _ => event.from_kernel(),
        };
        is_told && has_word(&event.text, device)
    };
    let is_it =
        |port: &&HostPort| port.progress.rdma.as_ref().is_some_and(|name| name.as_str() == device);
    let is_shown = || boot.state.ports.iter().any(|port| port.device == device);
    came_by(boot, asked, shows, is_it, is_shown)
}

/// The same of a netdev.
fn netdev_came<'a>(boot: &'a Boot, asked: &Event, netdev: &str) -> Option<Came<'a>> {
    let shows = |event: &&Event| match &event.kind {
        Kind::NetdevRenamed { to, .. } | Kind::LinkReady(to) => &**to == netdev,
        Kind::NetdevMade { .. } => follows(event, asked) == Some(true),
        Kind::InterfaceAsked { name, worked } => &**name == netdev && *worked == Some(true),
        Kind::Own(_) => has_word(&event.text, netdev) && event.text.contains(": ready"),
        _ => false,
    };
    let is_it = |port: &&HostPort| {
        port.progress.netdev.as_ref().is_some_and(|name| name.as_str() == netdev)
    };
    let is_shown = || boot.state.netdevs.iter().any(|seen| seen.name == netdev);
    came_by(boot, asked, shows, is_it, is_shown)
}

/// True if `later` was written after `earlier`; `None` of lines of two sources that name no
/// common clock.
fn follows(later: &Event, earlier: &Event) -> Option<bool> {
    match later.origin.source == earlier.origin.source {
        // A clock may have been set.
        true => Some(later.origin > earlier.origin),
        false => later.when.since(&earlier.when).map(|gap| gap > 0),
    }
}

/// By the lines that show it, by the host's ports, and by what a tool shows; `None` if it
/// was there before it was `asked` for, or never.
fn came_by<'a>(
    boot: &'a Boot,
    asked: &Event,
    shows: impl Fn(&&Event) -> bool,
    is_it: impl Fn(&&HostPort) -> bool,
    is_shown: impl Fn() -> bool,
) -> Option<Came<'a>> {
    let lines: Vec<&Event> = boot.events.iter().filter(shows).collect();
    if lines.iter().any(|line| follows(asked, line) == Some(true)) {
        return None;
    }
    if let Some(line) = lines.into_iter().find(|line| follows(line, asked) == Some(true)) {
        let late = line.when.since(&asked.when).and_then(|usec| u64::try_from(usec).ok());
        return Some(Came { line: Some(line), late: late.map(Duration::from_micros) });
    }
    if let Some(port) = boot.host.iter().flat_map(|host| &host.ports).find(is_it) {
        let Some((named, asked)) = port.progress.named_usec.zip(asked.when.monotonic) else {
            return Some(Came { line: None, late: None });
        };
        return (named >= asked).then(|| Came { line: None, late: Some(named.since(asked)) });
    }
    is_shown().then_some(Came { line: None, late: None })
}

pub(super) fn start_wait_deadlock(boot: &Boot) -> Vec<Finding> {
    // From a log it shows only where the waiting program says what it waits for.
    let mut found = Vec::new();
    for ended in boot.with("start operation timed out") {
        let unit = ended.text.split(':').next().unwrap_or_default();
        let asked = boot.events.iter().find(|e| {
            e.origin < ended.origin
                && (&*e.unit == unit || unit.strip_suffix(".service") == Some(&*e.program))
                && e.text.contains("systemctl start ")
                && !e.text.contains("--no-block")
        });
        let Some(asked) = asked else { continue };
        let other = word(asked.text.split("systemctl start ").nth(1).unwrap_or_default());
        let began_after = boot.after(ended.origin).any(|e| {
            matches!(&e.kind, Kind::UnitStarting(u) if other.contains(&**u) || u.contains(other))
        });
        if !other.is_empty() && began_after {
            let told = format!(
                "{unit} started {other} and waited for it, which can start only after {unit} has finished."
            );
            found.push(
                Finding::of(Code::StartWaitDeadlock, Severity::Error, Confidence::Medium, told)
                    .about(unit)
                    .quoting(seen::quotes(boot, [asked, ended]))
                    .permanent([format!("start {other} without waiting: systemctl --no-block start {other}; or add Wants={other} to {unit}")]),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ca, severity};
    use super::*;
    use crate::check::diagnose;
    use crate::check::evidence::Intake;

    #[test]
    fn a_job_that_the_network_does_not_miss_is_a_warning() {
        let dropped = |job: &str| {
            let found = "systemd[1]: x.service: Found ordering cycle on y.service/start";
            let line = format!(
                "systemd[1]: x.service: Job {job} deleted to break ordering cycle starting with x.service/start"
            );
            severity(Code::OrderingCycle, &[found, &line])
        };
        assert_eq!(dropped("plymouth-start.service/start"), Some(Severity::Warning));
        assert_eq!(dropped("local-fs.target/stop"), Some(Severity::Warning));
        for job in ["dbus.socket/start", "rpcbind.socket/start", "NetworkManager.service/start"] {
            assert_eq!(dropped(job), Some(Severity::Error), "{job}");
        }
    }

    const FAILED: [&str; 3] = [
        "Jan 02 10:00:03 n9 site-fs[77]: cannot parse interface ib0: No such device",
        "Jan 02 10:00:03 n9 systemd[1]: site-fs.service: Failed with result 'exit-code'.",
        "Jan 02 10:00:09 n9 kernel: mlx5_core 0000:4b:00.0 ib0: renamed from ib1",
    ];

    #[test]
    fn a_unit_of_any_name_that_asked_too_early() {
        assert_eq!(severity(Code::OrderingMissing, &FAILED), Some(Severity::Error));
        assert_eq!(severity(Code::OrderingMissing, &FAILED[..2]), None, "the netdev never came");
        let [asked, failed, came] = FAILED;
        assert_eq!(
            severity(Code::OrderingMissing, &[came, asked, failed]),
            None,
            "it was there before"
        );
        let again = "Jan 02 10:00:30 n9 systemd[1]: Started site-fs.service - x.";
        assert_eq!(
            severity(Code::OrderingMissing, &[asked, failed, came, again]),
            None,
            "it was started again"
        );
        let other = asked.replace("ib0", "eth0");
        assert_eq!(severity(Code::OrderingMissing, &[&other, failed, came]), None);
    }

    #[test]
    fn a_program_that_has_not_the_units_name() {
        let tool = "Jan 02 10:00:03 n9 site-fsctl[77]: Error: interface ib0 not found";
        assert_eq!(
            severity(Code::OrderingMissing, &[tool, FAILED[1], FAILED[2]]),
            Some(Severity::Error)
        );
        let good = "Jan 02 10:00:03 n9 site-fsctl[77]: using interface ib0";
        assert_eq!(severity(Code::OrderingMissing, &[good, FAILED[1], FAILED[2]]), None);
    }

    /// A dmesg, which is read before the journal.
    #[test]
    fn lines_of_two_sources_are_ordered_by_their_clocks() {
        let judged = |second: u32| {
            let came = format!(
                "Jan 02 10:00:{second:02} n9 kernel: mlx5_core 0000:4b:00.0 ib0: renamed from ib1"
            );
            let mut intake = Intake::new(super::super::needles());
            intake.read("dmesg", &mut came.as_bytes());
            intake.read("journal", &mut FAILED[..2].join("\n").as_bytes());
            let diagnosis = diagnose(&intake.finish());
            diagnosis.findings.iter().any(|finding| finding.code == Code::OrderingMissing)
        };
        assert!(judged(9), "it came later");
        assert!(!judged(1), "it was there before");
    }

    #[test]
    fn an_rdma_device_that_came_later() {
        let asked =
            "Jan 02 10:00:03 n9 kubelet[77]: E0102 10:00:03.1 plugin.go:88] mlx5_0: No such device";
        let failed =
            "Jan 02 10:00:03 n9 systemd[1]: kubelet.service: Failed with result 'exit-code'.";
        let came = "Jan 02 10:00:09 n9 kernel: infiniband mlx5_0: set_ib_dev_state";
        let shown = ca(0, "MT4123", 1, "Active", "LinkUp");
        assert_eq!(severity(Code::OrderingMissing, &[asked, failed, came]), Some(Severity::Error));
        assert_eq!(
            severity(Code::OrderingMissing, &[asked, failed, "", "$ ibstat", &shown]),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(Code::OrderingMissing, &[came, asked, failed]),
            None,
            "it was there before"
        );
        let other = "Jan 02 10:00:09 n9 kernel: mlx5_core 0000:4b:00.0 ib0: renamed from ib1";
        assert_eq!(
            severity(Code::OrderingMissing, &[asked, failed, other]),
            None,
            "that is another one"
        );
    }

    #[test]
    fn lnet_is_told_as_what_mounts() {
        let log: Vec<String> = FAILED.iter().map(|l| l.replace("site-fs", "lnet")).collect();
        let lines: Vec<&str> = log.iter().map(String::as_str).collect();
        assert_eq!(severity(Code::MountBeforeIpoib, &lines), Some(Severity::Error));
    }
}
