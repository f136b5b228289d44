//! `ibprov iface`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::print;
use crate::apply::bring_up::explain;
use crate::apply::children;
use crate::apply::iface::{
    Ask, is_missed, look_for_plan, name_of, planned, queue_advice, run as set_up, would_defer,
};
use crate::apply::rtnl::Rtnl;
use crate::apply::warnings::foreseen;
use crate::cli::{Format, IfaceArgs};
use crate::config::{Config, RxeRow};
use crate::host::{Root, alarm, clock, process, systemctl, systemd};
use crate::names::{IfName, PciAddress, RdmaName, present};
use crate::observe::iface::NotSeen;
use crate::observe::ipoib::Interface;
use crate::observe::rxe::rxe;
use crate::observe::{Look, ipoib};
use crate::plan::preview::DryRunVerdict;
use crate::plan::rxe::judge_rxe;
use crate::plan::settings::contradictions;
use crate::report::advice::Advice;
use crate::report::common::{Code, Exit, Finding, Kind, Report};
use crate::report::iface::{
    BringUp, DeferredSettings, IfaceReport, IfaceStep, WantedInterface, stacks_text,
};
use crate::report::rxe::{RxeReport, RxeState};
use crate::report::stack::{Decision, View};
use crate::stacks::KNOWN;
use crate::stacks::files::Files;
use crate::workers::products::manages_nvswitch;

/// Set one interface up.
///
/// # Errors
/// It could not begin: no such interface, not root, or standard output is gone.
pub fn run(args: &IfaceArgs, config: &Config, root: &Root, format: Format) -> anyhow::Result<u8> {
    if let (Some(unit), Some(device)) = (&args.stopped, &args.device) {
        return stopped(unit, device, root);
    }
    if args.children {
        return set_up_children(args.stopped.as_deref(), config, root);
    }
    let name = match (&args.name, &args.device) {
        (Some(name), _) => name.parse::<IfName>()?,
        (None, Some(device)) => name_of(device)?,
        (None, None) => anyhow::bail!("iface needs the name of an interface, or --device PATH"),
    };
    if let Some(row) = config.rxe.iter().find(|row| row.netdev == name) {
        return match args.dry_run || !root.is_live() {
            true => soft_roce_dry_run(row, root, format),
            false => soft_roce(row, config.network.timeout, format),
        };
    }
    let ask = Ask {
        name: &name,
        settings_only: args.settings_only,
        no_bus: args.no_bus,
        then: args.then.as_deref(),
        later: args.later,
        force: args.force,
    };
    let done = is_of_a_fabric(root, &name)
        .map_err(anyhow::Error::from)
        .and_then(|()| set_up_or_show(args, ask, config, root, format));
    match (done, &args.device) {
        // udev cannot tell in every case: a unit for what is not ours has nothing to do.
        (Err(e), Some(_)) if is_not_ours(&e) => {
            tracing::info!(netdev = %name, "{e}");
            let mut report = IfaceReport::blank(name.as_str(), clock::monotonic_usec());
            report.bring_up = BringUp::NotAsked;
            report.configured = true;
            report.notes.push(e.to_string());
            print(&report.told(), format, |_| String::new())
        }
        // It has disappeared since udev saw it, and systemd will stop the unit.
        (Err(e), Some(_)) if is_absent(&e) => {
            let mut report = IfaceReport::blank(name.as_str(), clock::monotonic_usec());
            report.disappeared();
            report.exit_code = report.judge();
            tracing::info!(netdev = %name, "{}", report.headline());
            print(&report.told(), format, |_| String::new())
        }
        (Err(e), None) if is_absent(&e) => {
            let all = ipoib::interfaces(&mut Look::new(root));
            let names = present(all.iter().map(|interface| interface.name.to_string()));
            Err(anyhow::anyhow!("{e}; IPoIB interfaces of this host: {names}"))
        }
        (done, _) => done,
    }
}

/// Set up all P_Key children; `stopped` is the unit that has done so, and may have missed one.
fn set_up_children(stopped: Option<&str>, config: &Config, root: &Root) -> anyhow::Result<u8> {
    if !root.is_live() || !process::is_root() {
        anyhow::bail!("iface --children is for ibprov-children.service");
    }
    let Some(unit) = stopped else {
        return Ok(children::set_up(config, root)?.code());
    };
    // Of ExecStopPost=, systemd.exec(5).
    let [result, status] =
        ["SERVICE_RESULT", "EXIT_STATUS"].map(|name| std::env::var(name).unwrap_or_default());
    let is = |exit: Exit| status == exit.code().to_string();
    let is_to_start = match result.as_str() {
        // Who has stopped it does not want it to start again.
        "success" => is(Exit::Good) && children::are_missed(root),
        // Why it could not begin is told, and would come again at once.
        "exit-code" => is(Exit::NotReady) && children::are_missed(root),
        // So would what has hung.
        _ => status != "ALRM" && children::are_not_begun(root),
    };
    if is_to_start {
        tracing::info!(unit, "P_Key children are left: starting {unit} again");
        systemctl::queue_restart(unit)?;
    }
    Ok(Exit::Good.code())
}

/// Create the soft RoCE device of a netdev that has appeared.
fn soft_roce(row: &RxeRow, timeout: Duration, format: Format) -> anyhow::Result<u8> {
    if !process::is_root() {
        anyhow::bail!("iface must be run as root: use sudo");
    }
    alarm::at_deadline(timeout);
    let RxeRow { name, netdev, .. } = row;
    let mut report = IfaceReport::blank(netdev.as_str(), clock::monotonic_usec());
    report.bring_up = BringUp::NotAsked;
    let told = match create_rxe(name, netdev, timeout) {
        Ok(()) => {
            report.configured = true;
            report.exit_code = Exit::Good.code();
            format!("{name} ({netdev}): soft RoCE device present")
        }
        Err(e) => {
            report.exit_code = Exit::NotReady.code();
            format!("{name} ({netdev}): soft RoCE device not created: {e:#}")
        }
    };
    match report.configured {
        true => tracing::info!(netdev = %netdev, "{told}"),
        false => tracing::error!(netdev = %netdev, "{told}"),
    }
    systemd::tell_status(&told);
    report.finished_usec = clock::monotonic_usec();
    report.notes.push(told);
    print(&report.told(), format, |_| String::new())
}

/// Has a child create it: a registration waits for locks that a driver may hold.
fn create_rxe(name: &RdmaName, netdev: &IfName, timeout: Duration) -> anyhow::Result<()> {
    let args = ["create-rxe", "--", name.as_str(), netdev.as_str()];
    let until = clock::monotonic_usec().saturating_add(clock::usec(timeout));
    let out = process::own_output_until(&args, until)?;
    match out.failure {
        Some(failure) if out.ended && !failure.is_by_signal() => {
            anyhow::bail!("{}", out.stderr.trim_start_matches("error: "))
        }
        _ => out.into_text("ibprov", &args).map(drop).map_err(anyhow::Error::from),
    }
}

/// What would become of the soft RoCE device of a netdev.
fn soft_roce_dry_run(row: &RxeRow, root: &Root, format: Format) -> anyhow::Result<u8> {
    let rows = std::slice::from_ref(row);
    let standings = judge_rxe(rows, &rxe(root, rows));
    let report = IfacePreview {
        rxe: standings.into_iter().find(|rxe| rxe.name == row.name),
        ..IfacePreview::default()
    };
    print(&report.told(), format, |screen| {
        let planned = report.rxe.iter().map(|rxe| format!("{}\n", rxe.planned()));
        screen.page(&planned.collect::<String>())
    })
}

/// There is no such interface.
fn is_absent(e: &anyhow::Error) -> bool {
    matches!(e.downcast_ref(), Some(NotSeen::Absent(_)))
}

/// It is an interface of another kind, or of a function that is no HCA.
fn is_not_ours(e: &anyhow::Error) -> bool {
    matches!(e.downcast_ref(), Some(NotSeen::NotIpoib { .. } | NotSeen::NvSwitch { .. }))
}

/// Refuses the interface of a function that manages an NVSwitch.
fn is_of_a_fabric(root: &Root, name: &IfName) -> Result<(), NotSeen> {
    let device = root.link_name(&format!("/sys/class/net/{name}/device")).ok();
    let pci = device.and_then(|device| device.parse::<PciAddress>().ok());
    match pci.filter(|pci| manages_nvswitch(root, *pci)) {
        Some(pci) => Err(NotSeen::NvSwitch { name: name.clone(), pci }),
        None => Ok(()),
    }
}

fn set_up_or_show(
    args: &IfaceArgs,
    ask: Ask<'_>,
    config: &Config,
    root: &Root,
    format: Format,
) -> anyhow::Result<u8> {
    if args.dry_run || !root.is_live() {
        return dry_run(ask, config, root, format);
    }
    if !process::is_root() {
        anyhow::bail!("iface must be run as root: use sudo, or --dry-run to see what it would do");
    }
    alarm::at_deadline(config.network.timeout);
    let report = set_up(config, root, ask)?;
    systemd::tell_status(&report.headline());
    print(&report.told(), format, |_| String::new())
}

/// The unit has stopped: start it again if that was for an interface that is
/// gone, and another one has its path meanwhile.
fn stopped(unit: &str, device: &Path, root: &Root) -> anyhow::Result<u8> {
    let name = name_of(device)?;
    if is_missed(root, &name).map_err(anyhow::Error::msg)? {
        tracing::info!(netdev = %name, unit, "{name} has appeared again: starting {unit} again");
        systemctl::queue_restart(unit)?;
    }
    Ok(Exit::Good.code())
}

fn dry_run(ask: Ask<'_>, config: &Config, root: &Root, format: Format) -> anyhow::Result<u8> {
    let mut rtnl = Rtnl::to_look();
    let mut seen = look_for_plan(config, root, ask.name, &mut rtnl)?;
    rtnl.complete_or_tell(root, &mut seen);
    let (wanted, mut plan) = planned(config, &seen);
    would_defer(ask.force, root, &seen, &mut rtnl, &mut plan);
    let mut notes = seen.problems.clone();
    notes.extend(plan.awaited);
    notes.extend(queue_advice(root, &wanted));
    // A copy of a tree has no units to ask for.
    let decided = match root.is_live() && !ask.settings_only {
        true => Some(explain(root, &seen.interface, ask.no_bus, &mut rtnl)?),
        false => None,
    };
    let views = decided.as_ref().map(|(_, views, _)| views.clone());
    let views = views.unwrap_or_else(|| {
        let standings = KNOWN.on_disk(root, &seen.interface);
        standings.into_iter().map(|s| s.view).collect()
    });
    let decider = decided.as_ref().and_then(|(_, _, decision)| decision.stack);
    let warnings = match views.iter().find(|view| Some(view.stack) == decider) {
        Some(View { stack, writes, .. }) => {
            contradictions(ask.name, &wanted, writes.iter().map(|setting| (*stack, setting)))
        }
        None => foreseen(&Files::of(root), &wanted, &seen.interface),
    };
    let report = IfacePreview {
        interface: Some(seen.interface),
        wanted,
        steps: plan.steps,
        deferred: plan.deferred,
        refused: plan.refused,
        warnings,
        notes,
        asked_by: decided.as_ref().map(|(way, _, _)| way.to_string()),
        decision: decided.as_ref().map(|(_, _, decision)| decision.clone()),
        stacks: views,
        rxe: None,
    };
    let mut text = String::new();
    let IfacePreview { wanted, steps, deferred, refused, warnings, notes, stacks: views, .. } =
        &report;
    match (wanted.origins.as_slice(), steps.as_slice()) {
        ([], _) => writeln!(text, "{}: no settings are configured", ask.name)?,
        (origins, []) if refused.is_empty() && deferred.is_none() => {
            let origins = origins.join(", ");
            writeln!(text, "{}: all settings are as configured ({origins})", ask.name)?;
        }
        (origins, steps) => {
            writeln!(text, "{}: settings of {}:", ask.name, origins.join(", "))?;
            for step in steps {
                writeln!(text, "  would {step}")?;
            }
        }
    }
    if let Some(deferred) = deferred {
        let command = DeferredSettings::command(ask.name);
        writeln!(text, "  deferred: {}; to do it now: {command}", deferred.sentence(ask.name))?;
    }
    for refused in refused {
        writeln!(text, "error: {refused}")?;
    }
    for warning in warnings {
        writeln!(text, "warning: {warning}")?;
    }
    for note in notes {
        writeln!(text, "note: {note}")?;
    }
    text.push_str(&stacks_text(views));
    match &decided {
        Some((way, _, decision)) => {
            writeln!(text, "decision: {}: {}", decision.action.text(), decision.why)?;
            writeln!(text, "queried by: {way}")?;
        }
        None if ask.settings_only => {}
        None => writeln!(
            text,
            "decision: unknown, because the decision depends on the state of units, and no systemd runs in a copied tree"
        )?,
    }
    print(&report.told(), format, |screen| screen.page(&text))
}

/// What `ibprov iface --dry-run` says.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct IfacePreview {
    /// The interface as it is; `null` for the netdev of a soft RoCE device.
    interface: Option<Interface>,
    /// What is wanted of it.
    wanted: WantedInterface,
    /// What would be set, in this order.
    steps: Vec<IfaceStep>,
    /// What would be left undone, because the interface is in use.
    deferred: Option<DeferredSettings>,
    #[serde(skip)]
    refused: Vec<String>,
    #[serde(skip)]
    warnings: Vec<String>,
    #[serde(skip)]
    notes: Vec<String>,
    /// How systemd was asked; `null` in a copied tree.
    asked_by: Option<String>,
    /// Who brings it up, and why; `null` in a copied tree.
    decision: Option<Decision>,
    /// What each network stack has to say of it.
    stacks: Vec<View>,
    /// The soft RoCE device that the configuration has for this netdev.
    rxe: Option<RxeReport>,
}

impl IfacePreview {
    fn verdict(&self) -> DryRunVerdict {
        let is_absent = |rxe: &RxeReport| rxe.state == RxeState::Absent;
        let is_stuck = self.decision.as_ref().is_some_and(|decision| decision.is_wrong);
        if is_stuck || !self.refused.is_empty() || self.rxe.iter().any(RxeReport::is_refused) {
            DryRunVerdict::WouldFail
        } else if !self.steps.is_empty() || self.rxe.iter().any(is_absent) {
            DryRunVerdict::WouldChange
        } else if self.deferred.is_some() {
            DryRunVerdict::Deferred
        } else {
            DryRunVerdict::NothingToDo
        }
    }

    /// With the keys that every report has.
    pub(super) fn told(&self) -> Report<DryRunVerdict, &Self> {
        let refused = self.refused.iter();
        let refused = refused.map(|why| Finding::error(Code::SettingRefused, why));
        let stuck = self.decision.iter().filter(|decision| decision.is_wrong);
        let stuck = stuck.map(|decision| Finding::error(Code::InterfaceNotUp, &decision.why));
        let name = self.interface.as_ref().map(|interface| &interface.name);
        let deferred = self.deferred.iter().zip(name).map(|(deferred, name)| {
            Finding::warning(Code::SettingDeferred, deferred.sentence(name))
                .advise([Advice::now(DeferredSettings::command(name))])
        });
        let warned = self.warnings.iter();
        let warned = warned.map(|why| Finding::warning(Code::SettingContradicted, why));
        let notes = self.notes.iter().map(|note| Finding::warning(Code::Notice, note));
        let all = refused.chain(stuck).chain(deferred).chain(warned).chain(notes);
        let all = all.map(|finding| match name {
            Some(name) => finding.about(name),
            None => finding,
        });
        let rxe = self.rxe.iter().filter(|rxe| rxe.state != RxeState::Absent);
        let findings = all.chain(rxe.filter_map(RxeReport::finding)).collect();
        Report::new(Kind::IfaceDryRun, self.verdict(), findings, self)
    }
}
