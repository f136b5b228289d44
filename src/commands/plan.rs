//! `ibprov plan`.

use std::io::Write;
use std::path::Path;

use super::fleet::{self};
use super::print;
use crate::cli::{Format, PlanArgs};
use crate::config::Config;
use crate::config::pins::Pins;
use crate::host::{Root, answer, pins_file, process, terminal};
use crate::model::{
    Code, Finding, Kind, Report, Verdict, not_read,
    plan::{Partitions, Pinned, PlanReport},
};
use crate::names::PINS_PATH;
use crate::node::{Node, Plans, firmware};
use crate::plan::guid::{Resolved, is_recognized, pins_of, resolve_anew};
use crate::plan::partitions::{self, BroadcastGroup, Partition};
use crate::show;
use crate::show::advice;
use crate::show::screen::Screen;

/// Show what the VFs shall be and what would change; or pin it, or print it for
/// the subnet manager.
///
/// # Errors
/// Standard output is gone; the pins cannot be written.
pub fn run(args: &PlanArgs, config: &Config, root: &Root, format: Format) -> anyhow::Result<u8> {
    if let Some(dir) = &args.fleet {
        return if args.partitions {
            partitions_of_fleet(dir, partition(args), format)
        } else {
            fleet::run(dir, format)
        };
    }
    if args.dry_run && !args.pin && !args.seal {
        anyhow::bail!("plan changes nothing by itself: --dry-run belongs to --pin and --seal");
    }
    let mut out = terminal::stdout();
    if args.seal {
        return super::seal::run(config, root, args.dry_run, format);
    }
    let node = Node::look(root, config, None);
    let mut plans = node.plans();
    plans.problems.extend(node.observed.problems.iter().chain(&node.survey.problems).cloned());
    if args.pin && config.pf.is_empty() {
        return print(&unpinned(Verdict::Done, Vec::new()), format, |_| {
            "nothing to pin: the configuration has no [[pf]]\n".to_owned()
        });
    }
    if args.pin {
        return plans.pin(args, config, root, format, &mut out);
    }
    if args.partitions {
        let members = partitions::planned(&plans.resolved, plans.facts.name.as_deref());
        let verdict =
            if has_errors(&plans.resolved) { Verdict::WouldFail } else { Verdict::NothingToDo };
        let body = Partitions { lines: partitions::lines(&members, partition(args)) };
        let report = Report::new(Kind::PlanPartitions, verdict, findings(&plans.resolved), body);
        let code = print(&report, format, |_| report.body.lines.clone())?;
        if format == Format::Text {
            complain(&plans.resolved)?;
        }
        return Ok(code);
    }
    let host = plans.facts.name.clone();
    let (pfs, problems) = node.held_against(plans);
    let report = PlanReport {
        host,
        pfs,
        rxe: node.configured_rxe(),
        netns: node.netns(),
        firmware: firmware::findings(root, config, &node.observed),
        problems: problems.into_iter().collect(),
        ..PlanReport::default()
    };
    let report = report.judged();
    print(&report.to_report(), format, |screen| {
        screen.page(&show::plan::text(&report, args.all, screen))
    })
}

/// The partition that the lines are for.
fn partition(args: &PlanArgs) -> Partition {
    let group = args.ipoib.then_some(BroadcastGroup { mtu: args.mtu, rate: args.rate });
    Partition { pkey: args.pkey, membership: args.membership, group }
}

/// Print the lines of partitions.conf of all hosts of `dir` for the one host with the subnet
/// manager. Of a fleet
/// that was not seen whole there are none: the ports that they lack would lose their partition.
///
/// # Errors
/// `dir` cannot be read; standard output is gone.
fn partitions_of_fleet(dir: &Path, partition: Partition, format: Format) -> anyhow::Result<u8> {
    let (hosts, problems) = fleet::hosts(dir)?;
    let judged = fleet::judged(&hosts, problems);
    let told = judged.to_report();
    let verdict = match told.verdict {
        Verdict::Ready => Verdict::NothingToDo,
        Verdict::NotReady => Verdict::WouldFail,
        verdict => verdict,
    };
    let lines = match told.verdict {
        Verdict::Unknown => String::new(),
        _ => partitions::lines(&partitions::of_fleet(&hosts), partition),
    };
    let findings = told.findings.into_iter().map(|told| told.finding).collect();
    let report = Report::new(Kind::PlanPartitions, verdict, findings, Partitions { lines });
    let code = print(&report, format, |_| report.body.lines.clone())?;
    if format == Format::Text && verdict != Verdict::NothingToDo {
        write!(terminal::stderr(), "{}", show::plan::fleet(&judged))?;
    }
    Ok(code)
}

fn has_errors(plans: &[Resolved]) -> bool {
    let errors = plans.iter().filter_map(|plan| plan.wanted.as_ref().err());
    errors.flatten().any(|finding| !finding.code.may_pass())
}

/// What is wrong with the plans, and what to know all the same.
fn findings(plans: &[Resolved]) -> Vec<Finding> {
    let of = |plan: &Resolved| plan.findings().cloned().collect::<Vec<_>>();
    let mut findings: Vec<Finding> = plans.iter().flat_map(of).collect();
    Finding::worst_first(&mut findings);
    findings
}

/// Of a run by which nothing is pinned.
fn unpinned(verdict: Verdict, findings: Vec<Finding>) -> Report<Pinned> {
    let body = Pinned { file: PINS_PATH.to_owned(), written: false, toml: None };
    Report::new(Kind::PlanPin, verdict, findings, body)
}

/// What stands in the way, to standard error, where standard output is for
/// another program.
fn complain(plans: &[Resolved]) -> std::io::Result<()> {
    let mut err = terminal::stderr();
    for plan in plans {
        for finding in plan.findings() {
            let (severity, message) = (finding.severity, &finding.message);
            writeln!(err, "{} ({}): {severity}: {message}", plan.which, plan.origin)?;
            for line in advice::lines(&finding.advice, "  ", Screen::default()) {
                writeln!(err, "{line}")?;
            }
        }
    }
    Ok(())
}

impl Plans {
    /// Pins what holds now; with `--replace`, what the configuration gives.
    fn pin(
        &self,
        args: &PlanArgs,
        config: &Config,
        root: &Root,
        format: Format,
        out: &mut impl Write,
    ) -> anyhow::Result<u8> {
        let failed = |plans: &[Resolved]| unpinned(Verdict::Failed, findings(plans));
        let mut report = match &self.pins {
            Err(_) => {
                if format == Format::Text {
                    complain(&self.resolved)?;
                }
                failed(&self.resolved)
            }
            Ok(old) => {
                let anew = args.replace.then(|| resolve_anew(config, old, &self.facts));
                let plans = anew.as_ref().unwrap_or(&self.resolved);
                if format == Format::Text {
                    complain(plans)?;
                }
                if has_errors(plans) {
                    tracing::error!("no GUID was pinned: correct the errors above first");
                    failed(plans)
                } else {
                    self.pin_all(args, root, format, (old, plans), out)?
                }
            }
        };
        report.findings.extend(not_read(&self.problems));
        // What people read of it is said above.
        print(&report, format, |_| String::new())
    }

    /// The same where no error stands in the way: `plans` instead of the `old` pins.
    fn pin_all(
        &self,
        args: &PlanArgs,
        root: &Root,
        format: Format,
        (old, plans): (&Pins, &[Resolved]),
        out: &mut impl Write,
    ) -> anyhow::Result<Report<Pinned>> {
        let new = pins_of(plans, old, &self.facts, args.replace);
        if !is_recognized(&new, &self.facts) {
            anyhow::bail!(
                "no GUID was pinned: {PINS_PATH} would not show that it is of this host, which has no name of its own (/etc/hostname, systemd.hostname=) and no PF in the plan whose GUIDs are known. Set the name in /etc/hostname, or bind the PFs to their drivers (see ibprov status), then run ibprov plan --pin again"
            );
        }
        let text = new.to_toml();
        let is_dry = args.dry_run || !root.is_live();
        let is_new = new != *old;
        let said = if is_dry {
            text.clone()
        } else if !is_new {
            format!("{PINS_PATH} is up to date: it was not written\n")
        } else {
            if !process::is_root() {
                anyhow::bail!(
                    "{PINS_PATH} belongs to root: use sudo, or --dry-run to see what would be written"
                );
            }
            pins_file::replace(PINS_PATH, &text).map_err(|e| {
                anyhow::anyhow!("cannot write {PINS_PATH}, which is unchanged: {}", answer(&e))
            })?;
            let vfs: usize = new.pfs.iter().map(|pf| pf.vfs.len()).sum();
            let pfs = new.pfs.len();
            format!("{PINS_PATH}: the GUIDs of {vfs} VFs of {pfs} PFs are pinned\n")
        };
        if format == Format::Text {
            write!(out, "{said}")?;
        }
        // A GUID that is pinned is only replaced if that was asked for, and a PF
        // that is not there cannot be pinned.
        let open = |plan: &Resolved| {
            plan.wanted.is_err() || plan.warnings.iter().any(|told| told.code == Code::Drift)
        };
        let verdict = match plans.iter().any(open) {
            true => Verdict::Exceptions,
            false if is_dry && is_new => Verdict::WouldChange,
            false => Verdict::Done,
        };
        let written = is_new && !is_dry;
        let body = Pinned { file: PINS_PATH.to_owned(), written, toml: Some(text) };
        Ok(Report::new(Kind::PlanPin, verdict, findings(plans), body))
    }
}
