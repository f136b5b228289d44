//! `ibprov plan`.

use std::collections::BTreeSet;
use std::io::Write;

use super::{exit, pf_preview};
use crate::cli::{Format, PlanArgs};
use crate::config::Config;
use crate::config::pins::Pins;
use crate::host::{Root, answer, pins_file, process};
use crate::names::PINS_PATH;
use crate::observe::plan_host::{self, PlanHost};
use crate::observe::{self, Look};
use crate::plan::guid::{Resolved, pins_of, resolve, resolve_anew};
use crate::plan::partitions::{self, Partition};
use crate::report::plan::{Finding, PlanReport};
use crate::workers::products::learn_all;

/// Show what the VFs shall be and what would change; or pin it, or print it for
/// the subnet manager.
///
/// # Errors
/// Standard output is gone; the pins cannot be written.
pub fn run(args: &PlanArgs, config: &Config, root: &Root, format: Format) -> anyhow::Result<u8> {
    if let Some(dir) = &args.fleet {
        return super::fleet::run(dir, format);
    }
    let mut out = std::io::stdout().lock();
    if args.seal {
        return super::seal::run(config, root, args.dry_run, &mut out);
    }
    let host = gather(config, root);
    if args.pin {
        return host.pin(args, config, root, &mut out);
    }
    if args.partitions {
        let partition = Partition { pkey: args.pkey, membership: args.membership };
        let name = host.facts.name.as_deref();
        write!(out, "{}", partitions::lines(&host.plans, partition, name))?;
        complain(&host.plans)?;
        return Ok(if has_errors(&host.plans) { exit::CANNOT_BEGIN } else { exit::GOOD });
    }
    let report = host.report(root);
    match format {
        Format::Text => write!(out, "{}", report.to_text(args.all))?,
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?,
    }
    Ok(exit_code(&report, &host.plans))
}

/// An error of the plan is more than a change, and a PF that may come later is
/// less than an error.
fn exit_code(report: &PlanReport, plans: &[Resolved]) -> u8 {
    if has_errors(plans) {
        exit::CANNOT_BEGIN
    } else if report.would_change || report.drift || report.errors {
        exit::DEFERRED
    } else {
        exit::GOOD
    }
}

fn has_errors(plans: &[Resolved]) -> bool {
    let errors = plans.iter().filter_map(|plan| plan.wanted.as_ref().err());
    errors.flatten().any(|finding| !finding.may_pass())
}

/// What stands in the way, to standard error, where standard output is for
/// another program.
fn complain(plans: &[Resolved]) -> std::io::Result<()> {
    let mut err = std::io::stderr();
    for plan in plans {
        let errors = plan.wanted.as_ref().err().into_iter().flatten();
        for finding in errors.chain(&plan.warnings) {
            let kind = if finding.is_error() { "error" } else { "warning" };
            writeln!(err, "{} ({}): {kind}: {finding}", plan.which, plan.origin)?;
        }
    }
    Ok(())
}

/// What was read, and what it comes to.
struct Planned {
    facts: PlanHost,
    pins: Result<Pins, String>,
    plans: Vec<Resolved>,
    problems: BTreeSet<String>,
}

fn gather(config: &Config, root: &Root) -> Planned {
    let mut observed = observe::Observer::new(root).look([], &BTreeSet::new());
    let mut problems = learn_all(root, &mut observed);
    let mut look = Look::new(root);
    let facts = plan_host::plan_host(&mut look, &observed, config);
    let pins = plan_host::pins(root);
    let plans = resolve(config, pins.as_ref().map_err(String::as_str), &facts);
    problems.extend(look.problems);
    problems.extend(observed.problems.iter().cloned());
    Planned { facts, pins, plans, problems }
}

impl Planned {
    fn report(&self, root: &Root) -> PlanReport {
        let mut problems = self.problems.clone();
        let (pfs, unread) = pf_preview::reports(root, &self.plans, &self.facts, &BTreeSet::new());
        problems.extend(unread);
        PlanReport::new(self.facts.name.clone(), pfs, problems.into_iter().collect())
    }

    /// Pins what holds now; with `--replace`, what the configuration gives.
    fn pin(
        &self,
        args: &PlanArgs,
        config: &Config,
        root: &Root,
        out: &mut impl Write,
    ) -> anyhow::Result<u8> {
        let Ok(old) = &self.pins else {
            complain(&self.plans)?;
            return Ok(exit::CANNOT_BEGIN);
        };
        let anew = args.replace.then(|| resolve_anew(config, old, &self.facts));
        let plans = anew.as_ref().unwrap_or(&self.plans);
        complain(plans)?;
        if has_errors(plans) {
            anyhow::bail!("nothing is pinned before the errors above are gone");
        }
        let new = pins_of(plans, old, &self.facts, args.replace);
        let text = new.to_toml();
        if args.dry_run || !root.is_live() {
            write!(out, "{text}")?;
        } else if new == *old {
            writeln!(out, "{PINS_PATH} is as it should be: nothing was written")?;
        } else {
            if !process::is_root() {
                anyhow::bail!(
                    "{PINS_PATH} is root's: use sudo, or --dry-run to see what would be written"
                );
            }
            pins_file::replace(PINS_PATH, &text).map_err(|e| {
                anyhow::anyhow!("cannot write {PINS_PATH}, which is as it was: {}", answer(&e))
            })?;
            let vfs: usize = new.pfs.iter().map(|pf| pf.vfs.len()).sum();
            let pfs = new.pfs.len();
            writeln!(out, "{PINS_PATH}: the GUIDs of {vfs} VFs of {pfs} PFs are pinned")?;
        }
        // A GUID that is pinned is only replaced if that was asked for, and a PF
        // that is not there cannot be pinned.
        let open = |plan: &Resolved| {
            plan.wanted.is_err() || plan.warnings.iter().any(Finding::is_guid_drift)
        };
        Ok(if plans.iter().any(open) { exit::DEFERRED } else { exit::GOOD })
    }
}
