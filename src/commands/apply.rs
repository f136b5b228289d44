//! `ibprov apply`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tracing::{Level, error};

use super::exit;
use super::pf_preview::PfPreview;
use crate::apply::pf::{self as one, Purpose};
use crate::apply::pfs::{self, Plans};
use crate::cli::{ApplyArgs, Format, PfArg};
use crate::config::Config;
use crate::host::{Root, answer, clock, journal, live_line, process, state, systemd, terminal};
use crate::ladder::WantedPf;
use crate::names::{BindOrder, Binding, PciAddress, present};
use crate::observe::{Observer, PciFunction};
use crate::plan::preview::PfSteps;
use crate::report::pf::{PfReport, PfVerdict, Unresolved};
use crate::report::{SCHEMA, events as kinds};

/// Time that the unit's own limit leaves us beyond the deadline, seconds.
const GRACE_SEC: u64 = 20;

/// How long putting back may take, microseconds.
const UNDO_USEC: u64 = 10_000_000;

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
) -> anyhow::Result<u8> {
    let limit = args.timeout_msec.map_or(config.boot.adapter_timeout, Duration::from_millis);
    let now = clock::monotonic_usec();
    let deadline = now.saturating_add(clock::usec(limit));
    let only = args.pf.as_ref().map(|pf| address(pf, root)).transpose()?;
    live_line::deadline(limit);
    // The unit's own limit is only for an ibprov that hangs before it could ask.
    systemd::tell_deadline(limit.as_secs() + GRACE_SEC);
    if config.pf.is_empty() {
        return print(format, &[], &[], &[], "no [[pf]] in the configuration: nothing to do\n");
    }
    if !args.dry_run && root.is_live() && !process::is_root() {
        anyhow::bail!(
            "apply sets GUIDs and binds drivers, which only root may do: use sudo, or --dry-run to see what it would do"
        );
    }
    let plans = pfs::resolve_soon(config, root, only, deadline)?;
    if let Some(pf) = only.filter(|_| plans.wanted.is_empty() && plans.unresolved.is_empty()) {
        let text = not_planned(pf, config, root)?;
        return print(format, &[], &[], &[], &text);
    }
    if args.dry_run || !root.is_live() {
        return dry_run(&plans, root, format);
    }
    let (mut codes, mut values) = (Vec::new(), Vec::new());
    match plans.wanted.as_slice() {
        [(wanted, warnings)] => {
            let report = apply(wanted, warnings, root, deadline, format)?;
            codes.push(report.exit_code);
            if format == Format::Json {
                values.push(serde_json::to_value(Told::of(&report))?);
            }
        }
        several => {
            let pfs: Vec<&WantedPf> = several.iter().map(|(w, _)| w).collect();
            live_line::show(&format!("applying the plans of {} PFs", pfs.len()));
            let outcomes = pfs::run_all(&pfs, config_file, deadline)?;
            live_line::end();
            // Each tells its own report where this process would.
            for outcome in outcomes {
                codes.push(outcome.exit_code);
                values.push(match outcome.report {
                    serde_json::Value::Null => {
                        error!(pf = %outcome.pf, "{}", outcome.headline);
                        serde_json::to_value(&outcome)?
                    }
                    report => report,
                });
            }
        }
    }
    print(format, &codes, &values, &plans.unresolved, "")
}

/// What is said of a PF that no `[[pf]]` means: udev starts us for each there is.
fn not_planned(pf: PciAddress, config: &Config, root: &Root) -> anyhow::Result<String> {
    let dir = format!("/sys/bus/pci/devices/{pf}");
    if let Ok(physfn) = root.link_name(&format!("{dir}/physfn")) {
        anyhow::bail!("{pf} is a VF of {physfn}: give the PF's address");
    }
    if root.exists(&dir) {
        return Ok(format!("PF {pf} is in no [[pf]] of the configuration: nothing to do\n"));
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
    deadline: u64,
    format: Format,
) -> anyhow::Result<PfReport> {
    // A child's terminal is its parent's.
    if format == Format::Text {
        live_line::show(&format!("PF {}: applying the plan of its VFs", wanted.pf));
    }
    let mut report = one::run(wanted, Purpose::Apply, root, deadline)?;
    live_line::end();
    report.problems.extend(warnings.iter().cloned());
    let name = format!("pf/{}.json", wanted.pf);
    let json = serde_json::to_string_pretty(&Told::of(&report))?;
    if let Err((path, e)) = state::write(&name, &json) {
        report.problems.push(format!("cannot write {}: {}", path.display(), answer(&e)));
    }
    match format {
        Format::Text if terminal::is_by_hand() => {
            write!(std::io::stdout(), "{}", report.to_text())?;
        }
        Format::Text | Format::Json => tell(&report),
    }
    Ok(report)
}

/// The report as JSON has it, with the sentence that says it all.
#[derive(Serialize)]
struct Told<'a> {
    headline: String,
    #[serde(flatten)]
    report: &'a PfReport,
}

impl<'a> Told<'a> {
    fn of(report: &'a PfReport) -> Self {
        Self { headline: report.headline(), report }
    }
}

fn tell(report: &PfReport) {
    let level = match report.verdict {
        PfVerdict::Right => Level::INFO,
        PfVerdict::Deferred | PfVerdict::Interrupted => Level::WARN,
        PfVerdict::NotRight => Level::ERROR,
    };
    for vf in report.vfs.iter().filter(|v| !v.right) {
        let kind = if vf.deferred { kinds::VF_DEFERRED } else { kinds::VF_NOT_RIGHT };
        journal::event!(
            level,
            message_id = kind,
            pf = %report.pf,
            vf = %vf.vf,
            guid = %vf.port_guid,
            cause = vf.cause.as_ref().map(ToString::to_string).unwrap_or_default(),
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
        exit = report.exit_code,
        took_usec = report.finished_usec.saturating_sub(report.started_usec),
        "{}",
        report.summary()
    );
}

fn print(
    format: Format,
    codes: &[u8],
    reports: &[serde_json::Value],
    unresolved: &[Unresolved],
    text: &str,
) -> anyhow::Result<u8> {
    let of_others =
        unresolved.iter().map(|u| if u.may_pass { exit::NOT_READY } else { exit::CANNOT_BEGIN });
    let exit_code = codes.iter().copied().chain(of_others).max().unwrap_or(exit::GOOD);
    let mut out = std::io::stdout().lock();
    match format {
        Format::Json => writeln!(
            out,
            "{}",
            json!({ "schema": SCHEMA, "exit_code": exit_code, "pfs": reports, "unresolved": unresolved })
        )?,
        Format::Text => {
            write!(out, "{text}")?;
            for line in unresolved.iter().flat_map(Unresolved::lines) {
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(exit_code)
}

/// Put back what runs that were cut short have left, of one PF or all. Needs no
/// configuration: a bad one must not hinder it.
///
/// # Errors
/// As [`run`].
pub fn undo(args: &ApplyArgs, root: &Root, format: Format) -> anyhow::Result<u8> {
    let only = args.pf.as_ref().map(|pf| address(pf, root)).transpose()?;
    let deadline = clock::monotonic_usec() + UNDO_USEC;
    let left = root.list_or_empty(&format!("{}/pf", state::RUN_DIR))?;
    let left = left.iter().filter_map(|n| n.strip_suffix(".undo")).filter_map(|n| n.parse().ok());
    let (mut codes, mut values) = (Vec::new(), Vec::new());
    for pf in left.filter(|pf| only.is_none_or(|o| o == *pf)) {
        let nothing = WantedPf { pf, vfs: Vec::new(), binding: Binding::default() };
        let report = one::run(&nothing, Purpose::Undo, root, deadline)?;
        tell(&report);
        codes.push(report.exit_code);
        values.push(serde_json::to_value(Told::of(&report))?);
    }
    print(format, &codes, &values, &[], "")
}

/// The same look and the same plan, without the doing.
fn dry_run(plans: &Plans, root: &Root, format: Format) -> anyhow::Result<u8> {
    let mut preview = PfPreview::new(root);
    let pfs: Vec<PfSteps> = plans.wanted.iter().map(|(w, notes)| preview.would(w, notes)).collect();
    let exit_code = dry_run_code(&pfs, &plans.unresolved);
    let mut out = std::io::stdout().lock();
    match format {
        Format::Json => {
            let by_pf: BTreeMap<PciAddress, &PfSteps> = pfs.iter().map(|p| (p.pf, p)).collect();
            let json = json!({
                "schema": SCHEMA,
                "exit_code": exit_code,
                "plans": by_pf,
                "unresolved": plans.unresolved,
                "problems": preview.problems,
            });
            writeln!(out, "{json}")?;
        }
        Format::Text => {
            if pfs.len() > 1 {
                let is_in_order = |(w, _): &(WantedPf, _)| w.binding.order == BindOrder::InOrder;
                let how = match plans.wanted.iter().any(is_in_order) {
                    true => "one after the other where VFs are bound in order",
                    false => "at the same time",
                };
                writeln!(out, "{} PFs, {how}:", pfs.len())?;
            }
            for line in pfs.iter().flat_map(PfSteps::lines) {
                writeln!(out, "{line}")?;
            }
            for line in plans.unresolved.iter().flat_map(Unresolved::lines) {
                writeln!(out, "{line}")?;
            }
            for problem in &preview.problems {
                writeln!(out, "could not read {problem}")?;
            }
        }
    }
    Ok(exit_code)
}

/// What a dry run exits with: whether something is left to do, as of `ibprov plan`.
pub(super) fn dry_run_code(pfs: &[PfSteps], unresolved: &[Unresolved]) -> u8 {
    if unresolved.iter().any(|pf| !pf.may_pass) {
        exit::CANNOT_BEGIN
    } else if !unresolved.is_empty() || pfs.iter().any(PfSteps::is_pending) {
        exit::DEFERRED
    } else {
        exit::GOOD
    }
}

fn address(pf: &PfArg, root: &Root) -> anyhow::Result<PciAddress> {
    let name = match pf {
        PfArg::Pci(pci) => return Ok(*pci),
        PfArg::Rdma(name) => name,
    };
    let functions = Observer::new(root).look_at_pfs().functions;
    let is_pf = |f: &&PciFunction| f.physfn.is_none();
    let mut devices =
        functions.iter().filter(is_pf).flat_map(|f| f.rdma.iter().map(move |d| (f, d)));
    let found = devices.clone().find(|(_, device)| device.name == *name);
    found.map(|(function, _)| function.address).ok_or_else(|| {
        let names = present(devices.by_ref().map(|(_, device)| device.name.to_string()));
        anyhow::anyhow!("no PF of this host has an RDMA device {name}; present: {names}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pf_is_typed_by_address_path_or_rdma_name() {
        let pci: PfArg = "0000:4b:00.0".parse().expect("address");
        assert_eq!("/sys/devices/pci0000:4a/0000:4a:02.0/0000:4b:00.0".parse(), Ok(pci.clone()));
        assert!(matches!(pci, PfArg::Pci(_)));
        assert_eq!("4b:00.0".parse(), Ok(pci.clone()), "as lspci prints it");
        assert!(matches!("mlx5_0".parse(), Ok(PfArg::Rdma(_))));
        assert!("4b:00.0 ".parse::<PfArg>().is_err());
    }
}
