//! `ibprov apply`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use tracing::{error, warn};

use super::{level, print, screen};
use crate::apply::boot::to_come;
use crate::apply::pf as one;
use crate::apply::pfs;
use crate::cli::{ApplyArgs, Format};
use crate::config::Config;
use crate::host::{
    Root, alarm, clock, journal, live_line, persistent_names, process, state, terminal,
};
use crate::model::{
    Exit, Finding, Kind, PfReport, Report, Unresolved, Verdict, WantedPf,
    boot::blank,
    events as kinds,
    pf::{Applied, Outcome},
    preview::ApplyPreview,
};
use crate::names::{
    BindOrder, Binding, Moment, PciAddress, Target, harmless, present, usec, vf_ranges,
};
use crate::node::Node;
use crate::node::pf_preview::PfPreview;
use crate::observe::Observer;
use crate::observe::target::meant;
use crate::show;
use crate::show::screen;

/// How long putting back is waited for, microseconds: less than `TimeoutStopSec=` of the units
/// whose `ExecStopPost=` it is. What takes longer is done all the same, by the child.
const UNDO: Duration = Duration::from_secs(3);

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(30);

/// Make the VFs of one PF, or of all, what they shall be.
///
/// # Errors
/// It could not begin, or standard output is gone.
pub fn run(
    args: &ApplyArgs,
    config: &Config,
    config_file: Option<&Path>,
    root: &Root,
    format: Format,
) -> Result<u8> {
    let limit = args.timeout_msec.map_or(config.boot.adapter_timeout, Duration::from_millis);
    let mut deadline = deadline_in(limit);
    let only = args.pf.as_ref().map(|pf| address(pf, root)).transpose()?;
    live_line::timeout(limit);
    let acts = !args.dry_run && root.is_live();
    if config.withheld.has_all_pfs() {
        error!(
            "no [[pf]] is carried out, because the configuration has an error that may concern any of them: `ibprov config check`"
        );
        return Ok(Exit::NotReady.code());
    }
    if config.pf.is_empty() {
        if acts && process::is_root() {
            forget_names(&BTreeSet::new());
        }
        let text = match only {
            Some(pf) => not_planned(pf, config, root)?,
            None => "nothing to do: the configuration has no [[pf]]\n".to_owned(),
        };
        return print_all(format, Vec::new(), &[], &text);
    }
    if acts && !process::is_root() {
        anyhow::bail!("apply must be run as root: use sudo, or --dry-run to see what it would do");
    }
    if !acts {
        return dry_run(only, config, root, format);
    }
    let plans = pfs::resolve_soon(config, root, only, deadline)?;
    if let Some(planned) = plans.pfs().filter(|_| only.is_none()) {
        forget_names(&planned);
    }
    if let Some(pf) = only.filter(|_| plans.wanted.is_empty() && plans.unresolved.is_empty()) {
        let text = not_planned(pf, config, root)?;
        return print_all(format, Vec::new(), &[], &text);
    }
    if !args.yes && terminal::can_ask() {
        agree_to_removal(&plans.wanted, root)?;
        deadline = deadline_in(limit);
        live_line::timeout(limit);
    }
    let mut outcomes = Vec::new();
    match plans.wanted.as_slice() {
        [(wanted, warnings)] => {
            if args.in_turn
                && wanted.binding.awaits_adapters()
                && PfPreview::of_apply(root).would_change(wanted)
            {
                // For adapters, and for the plans before its own.
                alarm::at_deadline(limit.saturating_mul(2));
                to_come::wait(wanted, config, root, limit)?;
                deadline = deadline_in(limit);
            }
            let report = apply(wanted, warnings, root, deadline, format)?;
            outcomes.push(outcome(&report)?);
        }
        several => {
            let pfs: Vec<&WantedPf> = several.iter().map(|(w, _)| w).collect();
            live_line::show(&format!("applying the plans of {} PFs", pfs.len()));
            outcomes = pfs::run_all(&pfs, config_file, deadline)?;
            live_line::end();
            // Each tells its own report where this process would.
            for lost in outcomes.iter().filter(|outcome| outcome.report == Value::Null) {
                error!(pf = %lost.pf, "{}", lost.headline);
            }
        }
    }
    print_all(format, outcomes, &plans.unresolved, "")
}

/// Ask whether VFs with a driver may be removed, if any would be.
fn agree_to_removal(wanted: &[(WantedPf, Vec<String>)], root: &Root) -> Result<()> {
    let mut preview = PfPreview::of_apply(root);
    let removed = wanted.iter().map(|(wanted, _)| (wanted.pf, preview.removed(wanted)));
    let removed = removed.filter(|(_, vfs)| !vfs.is_empty());
    let removed: Vec<String> =
        removed.map(|(pf, vfs)| format!("{} of PF {pf}", vf_ranges(vfs.into_iter()))).collect();
    drop(preview);
    if removed.is_empty() {
        return Ok(());
    }
    let (vfs, seconds) = (removed.join(", "), ANSWER.as_secs());
    let question = format!(
        "The number of VFs changes, for which all VFs of a PF are removed: {vfs}.\nThey have a driver: their netdevs and RDMA devices disappear. Without an answer in {seconds} s they are left. Remove them?"
    );
    if terminal::ask(&question, clock::now() + ANSWER)? {
        return Ok(());
    }
    anyhow::bail!(
        "nothing was changed, because the removal of {vfs} was not confirmed; to apply without the question: ibprov apply --yes"
    )
}

/// VFs of PFs whose `[[pf]]` was removed get no names any more.
fn forget_names(planned: &BTreeSet<PciAddress>) {
    if let Err(e) = persistent_names::forget_vfs_but_of(planned) {
        error!("cannot remove the udev rules for the names of VFs without a plan: {e}");
    }
}

/// The deadline of what begins now.
fn deadline_in(limit: Duration) -> Moment {
    alarm::at_deadline(limit);
    clock::now() + limit
}

/// What `report` comes to.
fn outcome(report: &PfReport) -> Result<Outcome> {
    Ok(Outcome {
        pf: report.pf,
        exit_code: report.verdict.exit().code(),
        headline: report.headline(),
        report: serde_json::to_value(report.to_report())?,
    })
}

/// What is said of a PF that no `[[pf]]` means: udev starts us for each there is.
fn not_planned(pf: PciAddress, config: &Config, root: &Root) -> Result<String> {
    let dir = format!("/sys/bus/pci/devices/{pf}");
    if let Ok(physfn) = root.link_name(&format!("{dir}/physfn")) {
        anyhow::bail!("{pf} is a VF of {physfn}: use the PF's address");
    }
    if root.exists(&dir) {
        return Ok(format!(
            "PF {pf}: nothing to do, because the configuration has no [[pf]] for it\n"
        ));
    }
    let planned = pfs::resolve(config, root, &Observer::new(root).look_at_pfs());
    let planned = present(planned.wanted.iter().map(|(w, _)| w.pf.to_string()));
    anyhow::bail!("{pf}: this host has no such PCI function; PFs with a plan: {planned}")
}

/// One PF, in this process, with its report written and told.
fn apply(
    wanted: &WantedPf,
    warnings: &[String],
    root: &Root,
    deadline: Moment,
    format: Format,
) -> Result<PfReport> {
    // A child's terminal is its parent's.
    if format == Format::Text {
        live_line::show(&format!("PF {}: applying the plan of its VFs", wanted.pf));
    }
    let mut report = one::run(wanted, root, deadline)?;
    live_line::end();
    report.problems.extend(warnings.iter().cloned());
    let name = format!("pf/{}.json", wanted.pf);
    let json = report.to_report().to_json()?;
    let written = state::write(&name, &json);
    report.problems.extend(written.err().map(|e| format!("cannot write {e}")));
    match format {
        Format::Text if terminal::is_by_hand() => {
            let mut out = terminal::stdout();
            let screen = screen(&out);
            write!(out, "{}", screen.page(&show::pf::text(&report, screen)))?;
        }
        Format::Text | Format::Json => tell(&report),
    }
    Ok(report)
}

fn tell(report: &PfReport) {
    let level = level(report.verdict.exit());
    for vf in report.vfs.iter().filter(|v| !v.right) {
        let kind = if vf.deferred { kinds::VF_DEFERRED } else { kinds::VF_NOT_RIGHT };
        journal::event!(
            level,
            message_id = kind,
            pf = %report.pf,
            vf = %vf.vf,
            guid = %vf.port_guid,
            cause = vf.cause.as_ref().map(Finding::with_remedy).unwrap_or_default(),
            pci = vf.pci.map(display),
            rung = vf.reached.map(|r| r.word()),
            "PF {}: {}",
            report.pf,
            vf.line()
        );
    }
    journal::event!(
        level,
        message_id = kinds::PF_FINISHED,
        pf = %report.pf,
        verdict = report.verdict.word(),
        exit = report.verdict.exit().code(),
        took_usec = usec(report.finished_usec.since(report.started_usec)),
        "{}",
        show::pf::summary(report)
    );
}

fn print_all(
    format: Format,
    outcomes: Vec<Outcome>,
    unresolved: &[Unresolved],
    text: &str,
) -> Result<u8> {
    let verdict = match outcomes.iter().map(|outcome| outcome.exit_code).max() {
        _ if !unresolved.is_empty() => Verdict::Failed,
        None | Some(0) => Verdict::Done,
        Some(1) => Verdict::Deferred,
        Some(_) => Verdict::Failed,
    };
    let mut findings: Vec<Finding> =
        unresolved.iter().flat_map(|pf| pf.errors.iter().cloned()).collect();
    findings.extend(outcomes.iter().flat_map(Outcome::findings));
    Finding::worst_first(&mut findings);
    let of_pf = |outcome: Outcome| match outcome.report {
        Value::Null => serde_json::to_value(&outcome),
        report => Ok(report),
    };
    let pfs = outcomes.into_iter().map(of_pf).collect::<Result<_, _>>()?;
    let body = Applied { pfs, unresolved: unresolved.to_vec() };
    print(&Report::new(Kind::Apply, verdict, findings, body), format, |screen| {
        let lines = unresolved.iter().flat_map(|pf| show::pf::unresolved(pf, screen));
        screen.page(&(text.to_owned() + &screen::text(lines)))
    })
}

/// Put back what runs that were cut short have left, of one PF or all. Needs no
/// configuration: a bad one must not hinder it.
///
/// # Errors
/// As [`run`].
pub fn undo(args: &ApplyArgs, root: &Root, format: Format) -> Result<u8> {
    if !root.is_live() {
        anyhow::bail!("apply --undo changes the running host, never a copy: omit --root");
    }
    if !process::is_root() {
        anyhow::bail!("apply --undo must be run as root: use sudo");
    }
    let only = args.pf.as_ref().map(|pf| address(pf, root)).transpose()?;
    if only.is_none() {
        tell_of_a_killed_boot();
    }
    let deadline = clock::now() + UNDO;
    let left = root.list_or_empty(&format!("{}/pf", state::RUN_DIR))?;
    let left = left.iter().filter_map(|n| n.strip_suffix(".undo")).filter_map(|n| n.parse().ok());
    let mut outcomes = Vec::new();
    for pf in left.filter(|pf| only.is_none_or(|o| o == *pf)) {
        let report = one::put_back(pf, root, deadline)?;
        tell(&report);
        outcomes.push(outcome(&report)?);
    }
    print_all(format, outcomes, &[], "")
}

/// Leave a report in place of that of a boot which a signal has ended, SIGALRM above all: this is
/// ExecStopPost= of ibprov.service then (systemd.exec(5)).
fn tell_of_a_killed_boot() {
    let [result, signal] =
        ["SERVICE_RESULT", "EXIT_STATUS"].map(|name| std::env::var(name).unwrap_or_default());
    if !["signal", "core-dump", "timeout", "oom-kill"].contains(&result.as_str()) {
        return;
    }
    let mut report = blank(clock::now());
    report.verdict = Verdict::NotReady;
    let signal = harmless(&signal);
    report.problems.push(format!(
        "signal {signal} ended ibprov boot before its report (see journalctl -b -u ibprov.service)"
    ));
    if let Err(e) = state::write("boot.json", &report.to_report().to_json().unwrap_or_default()) {
        warn!("cannot write {e}");
    }
}

/// The same plans, without the doing: of `only` one or of all PFs.
fn dry_run(only: Option<PciAddress>, config: &Config, root: &Root, format: Format) -> Result<u8> {
    let node = Node::look(root, config, None);
    let (mut planned, problems) = node.held_against(node.plans());
    planned.retain(|pf| only.is_none() || pf.pci == only);
    if let Some(pf) = only.filter(|_| planned.is_empty()) {
        let text = not_planned(pf, config, root)?;
        return print_all(format, Vec::new(), &[], &text);
    }
    let report = ApplyPreview::new(planned, problems.into_iter().collect());
    print(&report.to_report(), format, |screen| {
        let mut lines = Vec::new();
        let binds: Vec<Binding> = report.pfs.iter().filter_map(|pf| pf.bind).collect();
        if binds.len() > 1 {
            let how = if binds.iter().any(|bind| bind.order == BindOrder::InOrder) {
                "one after the other where VFs are bound in order"
            } else {
                "at the same time"
            };
            lines.push(format!("{} PFs, {how}:", binds.len()));
        }
        lines.extend(report.pfs.iter().flat_map(|pf| show::plan::preview(pf, screen)));
        lines.extend(report.problems.iter().map(|problem| format!("cannot read {problem}")));
        screen.page(&screen::text(lines))
    })
}

/// The PF that `target` names. An address is taken as it is: the PF may be gone.
fn address(target: &Target, root: &Root) -> Result<PciAddress> {
    if let Target::Pci(pci, None) = target {
        return Ok(*pci);
    }
    let observed = Observer::new(root).look([], &BTreeSet::new());
    match meant(target, root, &observed)?.as_slice() {
        [one] => Ok(one.function.address),
        several => {
            let each = present(several.iter().map(|meant| meant.function.address.to_string()));
            anyhow::bail!("{target} names several PFs: {each}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_does_not_end_what_puts_back() {
        for unit in [
            include_str!("../../units/ibprov.service"),
            include_str!("../../units/ibprov-pf@.service"),
        ] {
            assert!(unit.contains("\nExecStopPost=/usr/sbin/ibprov apply --undo"), "{unit}");
            let limit = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec="));
            let limit: u64 = limit.and_then(|sec| sec.parse().ok()).expect("a limit in seconds");
            // To start and to end takes time too.
            let limit = Duration::from_secs(limit);
            assert!(UNDO + Duration::from_secs(1) < limit, "{UNDO:?} of {limit:?}");
        }
    }
}
