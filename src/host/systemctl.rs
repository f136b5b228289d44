//! Questions to systemd through its own commands: for the time before the bus, and for
//! waits, since these commands reach PID 1 by a socket of its own
//! (`bus_connect_transport_systemd()`, `src/shared/bus-util.c`) and hold no connection to
//! the bus.

use std::io;
use std::time::Duration;

use super::alarm;
use super::clock;
use super::process::{self, Output};
use super::unit::{ActiveState, Apart, CALL, JobEnd, LoadState, UnitState};
use crate::names::{Moment, usec};

/// What is asked of a unit, as `systemctl show` names it.
const PROPERTIES: &str = "--property=Id,LoadState,ActiveState,SubState,Result,Job,InactiveEnterTimestampMonotonic,ConditionResult";

/// The states of these units, in one run.
pub(super) fn units(names: &[&str]) -> io::Result<Vec<UnitState>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut args = vec!["show", "--no-pager", PROPERTIES, "--"];
    args.extend(names);
    let text = ask("systemctl", &args)?;
    parse_units(names, &text).ok_or_else(|| {
        let (asked, answer) = (args.join(" "), text.chars().take(200).collect::<String>());
        io::Error::other(format!(
            "systemctl {asked}: cannot understand systemd's answer {answer:?}"
        ))
    })
}

fn ask(program: &str, args: &[&str]) -> io::Result<String> {
    ask_within(CALL, program, args)
}

pub(super) fn ask_within(limit: Duration, program: &str, args: &[&str]) -> io::Result<String> {
    let until = alarm::before(clock::now() + limit);
    process::output_until(program, args, until)?.into_text(program, args)
}

/// How long a question for a report may take; systemctl needs a fraction of a second.
const REPORT: Duration = Duration::from_secs(10);

/// These properties of these units, as `systemctl show` prints them. Each unit costs
/// systemd a message of all its properties: ask for few.
///
/// # Errors
/// It cannot be run, fails, or has no answer in time: a host without systemd,
/// or one so early in its boot that nothing answers.
pub fn shown(properties: &str, units: &[String]) -> io::Result<String> {
    let properties = format!("--property={properties}");
    let mut args = vec!["show", "--no-pager", "--all", properties.as_str(), "--"];
    args.extend(units.iter().map(String::as_str));
    ask_within(REPORT, "systemctl", &args)
}

/// The units that match `pattern` and have failed. However many match, and there can be two for
/// each P_Key child, it costs systemd one message.
///
/// # Errors
/// As [`shown`].
pub fn failed(pattern: &str) -> io::Result<Vec<String>> {
    let args = "list-units --all --full --plain --no-legend --no-pager --state=failed --";
    let args: Vec<&str> = args.split(' ').chain([pattern]).collect();
    let text = ask_within(REPORT, "systemctl", &args)?;
    let name = |line: &str| line.split_whitespace().next().map(str::to_owned);
    Ok(text.lines().filter_map(name).collect())
}

/// `systemctl start`, which waits for the job itself.
///
/// # Errors
/// systemctl is missing, or systemd refuses (no such unit, masked).
pub fn start(unit: &str, until: Moment) -> io::Result<JobEnd> {
    let args = ["start", "--no-ask-password", "--", unit];
    end_of_job(unit, &process::output_until("systemctl", &args, until)?, until)
}

/// `systemctl restart --no-block`: queue a start for when the unit has stopped.
/// A plain start would become one with a start job that is about to fail.
///
/// # Errors
/// systemctl is missing, or systemd refuses (the machine goes down).
pub fn queue_restart(unit: &str) -> io::Result<()> {
    queue("restart", unit)
}

/// `systemctl start --no-block`: queue a start for when the units that the unit is ordered
/// after have started.
///
/// # Errors
/// systemctl is missing, or systemd refuses (no such unit, masked).
pub fn queue_start(unit: &str) -> io::Result<()> {
    queue("start", unit)
}

fn queue(verb: &str, unit: &str) -> io::Result<()> {
    ask("systemctl", &[verb, "--no-block", "--no-ask-password", "--", unit]).map(drop)
}

/// The units that have a job.
///
/// # Errors
/// systemctl is missing, or systemd does not answer.
pub fn with_jobs() -> io::Result<Vec<String>> {
    let list = ask("systemctl", &["list-jobs", "--no-legend", "--no-pager", "--full"])?;
    // JOB UNIT TYPE STATE
    let unit = |line: &str| {
        let mut words = line.split_whitespace();
        let is_job = words.next().is_some_and(|id| id.parse::<u32>().is_ok());
        words.next().filter(|_| is_job).map(str::to_owned)
    };
    Ok(list.lines().filter_map(unit).collect())
}

/// `systemctl stop`, which waits for the job itself.
///
/// # Errors
/// As [`start`].
pub fn stop(unit: &str, until: Moment) -> io::Result<JobEnd> {
    let args = ["stop", "--no-ask-password", "--", unit];
    job_end(&process::output_until("systemctl", &args, until)?)
}

/// Run a command as a service of its own, which outlives us, by `systemd-run`, and wait
/// until its start has ended: what the command leaves behind (a DHCP client) stays there.
///
/// # Errors
/// systemd-run is missing, or systemd refuses (a unit of that name exists).
pub fn run_apart(unit: &Apart<'_>, until: Moment) -> io::Result<JobEnd> {
    let name = format!("--unit={}", unit.name);
    let description = format!("--description={}", unit.description);
    let timeout = format!("--property=TimeoutStartSec={}us", usec(unit.timeout));
    let binds = format!("--property=BindsTo={}", unit.device);
    let after = format!("--property=After={}", unit.device);
    let mut args: Vec<&str> =
        [&name, &description, &timeout, &binds, &after].map(|s| s.as_str()).to_vec();
    args.extend(RUN_APART);
    args.push("--");
    args.extend(unit.command);
    end_of_job(unit.name, &process::output_until("systemd-run", &args, until)?, until)
}

/// What every such unit has.
const RUN_APART: [&str; 7] = [
    "--no-ask-password",
    "--collect",
    "--property=Type=oneshot",
    // What the command leaves running stays, and the unit with it.
    "--property=RemainAfterExit=yes",
    "--property=DefaultDependencies=no",
    "--property=Conflicts=shutdown.target",
    "--property=Before=shutdown.target",
];

/// Wait until `unit` has no start job any more; never starts it. There is no command that
/// does. But the start of a unit that is ordered after it waits for it, and does not start
/// it.
///
/// # Errors
/// systemctl or systemd-run is missing, or systemd does not answer.
pub fn wait_for_job(unit: &str, until: Moment) -> io::Result<JobEnd> {
    if units(&[unit])?.iter().all(|state| state.job == 0) {
        return Ok(JobEnd::Done);
    }
    let after = format!("--property=After={unit}");
    loop {
        let now = clock::now().usec();
        let waiter = format!("ibprov-wait-{}-{now}.service", std::process::id());
        let name = format!("--unit={waiter}");
        let args = [
            "--no-ask-password",
            "--collect",
            "--property=Type=oneshot",
            "--property=DefaultDependencies=no",
            &name,
            &after,
            "--",
            "/bin/true",
        ];
        let out = process::output_until("systemd-run", &args, until)?;
        let e = match job_end(&out) {
            Ok(end) => return Ok(end),
            Err(e) => e,
        };
        let states = units_in_time(&[unit, &waiter], until)?;
        match states.iter().map(|state| state.job != 0).collect::<Vec<_>>().as_slice() {
            [false, _] => return Ok(JobEnd::Done),
            // The connection was cut, as in end_of_job().
            [true, true] => {}
            _ => return Err(e),
        }
    }
}

/// How the job of `unit` has ended that a command waited for. When systemd executes itself again
/// it cuts its connections, so that the command fails, and goes on with its jobs.
fn end_of_job(unit: &str, out: &Output, until: Moment) -> io::Result<JobEnd> {
    let e = match job_end(out) {
        Ok(end) => return Ok(end),
        Err(e) => e,
    };
    let mut states = units_in_time(&[unit], until)?;
    if states.iter().any(|state| state.job != 0) {
        if wait_for_job(unit, until)? == JobEnd::Pending {
            return Ok(JobEnd::Pending);
        }
        states = units_in_time(&[unit], until)?;
    } else if !states.iter().any(UnitState::is_active) {
        return Err(e);
    }
    let has_failed = states.iter().any(|state| state.active == ActiveState::Failed);
    Ok(if has_failed { JobEnd::Failed } else { JobEnd::Done })
}

/// How long until a systemd that could not be reached is asked again.
const AGAIN: Duration = Duration::from_millis(250);

/// As [`units`], asked again while systemd cannot be reached: it executes itself again.
fn units_in_time(names: &[&str], until: Moment) -> io::Result<Vec<UnitState>> {
    loop {
        let again = clock::now() + AGAIN;
        match units(names) {
            Err(_) if again < until => clock::sleep_until(again),
            end => return end,
        }
    }
}

/// systemctl and systemd-run end with 0 if the job is done. What they say when
/// no job came to be is an error, what a job came to is not.
fn job_end(out: &Output) -> io::Result<JobEnd> {
    if !out.ended {
        return Ok(JobEnd::Pending);
    }
    let Some(failure) = &out.failure else { return Ok(JobEnd::Done) };
    // "Job for x.service failed because ...", "A dependency job for ...",
    // "Job for x.service canceled."
    if out.stderr.contains("Job for ") || out.stderr.contains("job for ") {
        return Ok(JobEnd::Failed);
    }
    Err(io::Error::other(format!("{failure}: {}", out.stderr)))
}

/// One paragraph of `Name=value` lines for each unit, in the order asked.
pub(super) fn parse_units(names: &[&str], text: &str) -> Option<Vec<UnitState>> {
    let paragraphs: Vec<&str> = text.split("\n\n").filter(|p| !p.trim().is_empty()).collect();
    if paragraphs.len() != names.len() {
        return None;
    }
    let states = names.iter().zip(paragraphs).map(|(name, paragraph)| {
        let mut state = UnitState { name: (*name).to_owned(), ..UnitState::default() };
        let (mut load, mut active) = (None, None);
        for line in paragraph.lines() {
            let (key, value) = line.split_once('=')?;
            match key {
                "Id" => value.clone_into(&mut state.id),
                "LoadState" => load = Some(value).filter(|v| !v.is_empty()),
                "ActiveState" => active = Some(value).filter(|v| !v.is_empty()),
                "SubState" => value.clone_into(&mut state.sub),
                "Result" => state.result = Some(value.to_owned()).filter(|v| !v.is_empty()),
                "Job" => state.job = value.parse().unwrap_or_default(),
                "InactiveEnterTimestampMonotonic" => {
                    state.inactive_enter = value.parse().ok().and_then(Moment::of_systemd);
                }
                "ConditionResult" => state.condition = value == "yes",
                _ => {}
            }
        }
        (state.load, state.active) = (LoadState::of(load?), ActiveState::of(active?));
        if !state.is_down() {
            (state.result, state.inactive_enter) = Default::default();
            state.condition = true;
        }
        Some(state)
    });
    states.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_paragraph_is_the_unit_asked_for() {
        let text = "Result=success\nId=wicked.service\nLoadState=loaded\nActiveState=inactive\nSubState=dead\nJob=45\nInactiveEnterTimestampMonotonic=77\nConditionResult=yes\n\nId=networking.service\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nConditionResult=no\n";
        let states = parse_units(&["network.service", "networking.service"], text).expect("two");
        let [network, networking] = states.as_slice() else { panic!("{states:?}") };
        assert_eq!(
            (network.name.as_str(), network.id.as_str()),
            ("network.service", "wicked.service")
        );
        assert_eq!((network.job, network.inactive_enter), (45, Moment::of_systemd(77)));
        assert!(network.is_loaded() && network.condition && network.is_down());
        assert_eq!((networking.is_loaded(), networking.result.as_deref()), (false, None));
        assert_eq!(parse_units(&["a.service"], text), None, "as many answers as questions");
        assert_eq!(parse_units(&["a.service"], "Failed to connect\n"), None);
    }
}
