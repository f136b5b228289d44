//! `ibprov guests`.

use super::print;
use crate::cli::{Format, GuestsArgs};
use crate::config::{Config, Part};
use crate::guests::service;
use crate::host::{Root, alarm, live_line, process};
use crate::model::{Exit, Finding, GuestsReport, guests::Phase};
use crate::names::{Object, harmless};
use crate::node::Node;
use crate::observe::last_report;
use crate::show;
use crate::show::screen::Screen;

/// Start the guests, or show how they are.
///
/// # Errors
/// It could not begin: no signals or poll, not root, a copied tree, or standard
/// output is gone.
pub fn run(args: &GuestsArgs, config: &Config, root: &Root, format: Format) -> anyhow::Result<u8> {
    if !root.is_live() {
        anyhow::bail!("guests cannot be combined with --root: no guest runs in a copied tree");
    }
    if !process::is_root() {
        anyhow::bail!("guests must be run as root: use sudo");
    }
    if args.status || args.dry_run {
        return look(args, config, root, format);
    }
    alarm::at_deadline(config.guests.timeout);
    live_line::timeout(config.guests.timeout);
    let mut report = service::run(config, root)?;
    if config.withheld.has(Part::Guests) {
        report.exit_code = Some(Exit::NotReady.code());
    }
    live_line::end();
    let code = print(&report.to_report(), format, |_| String::new())?;
    tracing::info!("{}", show::guests::text(&report, Screen::default()).trim_end());
    Ok(code)
}

fn look(args: &GuestsArgs, config: &Config, root: &Root, format: Format) -> anyhow::Result<u8> {
    let (mut report, order) = service::look(config, root)?;
    if args.status {
        remember_failures(&mut report, root);
    }
    let judgement = Node::look(root, config, None).account(None).judge(Vec::new());
    report.account = of_vfs(judgement.findings, &report);
    if args.dry_run {
        let change = if order.is_empty() { Exit::Good } else { Exit::Exceptions };
        report.exit_code = Some(change.code());
        report.would_start.clone_from(&order);
    }
    print(&report.to_report(), format, |screen| {
        let mut text = screen.page(&show::guests::text(&report, screen));
        if args.dry_run && !order.is_empty() {
            text.push_str("would be started, in this order:\n");
            let each = order.iter().enumerate();
            text.extend(each.map(|(at, guest)| format!("  {}. {guest}\n", at + 1)));
        }
        text
    })
}

/// Those of `findings` that are about the VFs of guests, or about their PFs.
fn of_vfs(mut findings: Vec<Finding>, report: &GuestsReport) -> Vec<Finding> {
    let vfs = || report.guests.iter().flat_map(|guest| guest.vfs.iter().flatten());
    let is_of_one = |object: &Object| {
        let mut functions = vfs().flat_map(|vf| [vf.pci, vf.vf.map(|vf| vf.pf)]).flatten();
        object.function().is_some_and(|pci| functions.any(|function| function == pci))
    };
    findings.retain(|finding| finding.objects.iter().any(is_of_one));
    findings
}

/// Why a guest is not up that could be started is known to who has tried.
fn remember_failures(report: &mut GuestsReport, root: &Root) {
    let Some(last) = last_report::<GuestsReport>(root, "guests.json") else { return };
    for guest in report.guests.iter_mut().filter(|g| g.phase == Phase::Idle) {
        let own = last.guests.iter().filter(|g| g.name == guest.name);
        let why = own.map(|g| &g.phase).find_map(|phase| match phase {
            Phase::Failed { why } => Some(why),
            _ => None,
        });
        if let Some(why) = why {
            guest.phase = Phase::Failed { why: harmless(why) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::common::{Code, Severity};
    use crate::model::guests::{GuestKind, GuestReport, VfState};
    use crate::names::{Moment, PciAddress};

    #[test]
    fn the_account_of_the_node_is_told_of_the_vfs_of_guests() {
        let mut report = GuestsReport::new(Moment::START);
        let pci: PciAddress = "0000:4b:00.3".parse().expect("address");
        let absent = VfState::no_function(pci);
        let vf = VfState { vf: "0000:4b:00.0/2".parse().ok(), ..absent };
        report.guests.push(GuestReport {
            name: "vm1".to_owned(),
            kind: GuestKind::Domain,
            uuid: None,
            phase: Phase::Failed { why: "no".to_owned() },
            waits: None,
            vfs: Some(vec![vf]),
            up_usec: None,
            origin: String::new(),
        });
        let about = [
            (Code::VfNotAsPlanned, "0000:4b:00.0"),
            (Code::VfProbeFailed, "0000:4b:00.3"),
            (Code::VfGuidDuplicate, "VF 2 of 0000:4b:00.0"),
            (Code::VfProbeFailed, "0000:5e:00.3"),
            (Code::UnitFailed, "x.service"),
        ];
        let told = about.map(|(code, object)| Finding::error(code, "x").about(object));
        report.account = of_vfs(told.to_vec(), &report);
        assert_eq!(report.account, told[..3]);
        let findings = report.to_report().findings;
        let [rest @ .., failed] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!(rest, &told[..3]);
        let as_in_status = (Code::GuestFailed, Severity::Warning);
        assert_eq!((failed.code, failed.severity), as_in_status);
        assert!(
            show::guests::text(&report, Screen::default())
                .contains("  error: PF 0000:4b:00.0: x\n"),
            "{}",
            show::guests::text(&report, Screen::default())
        );
    }
}
