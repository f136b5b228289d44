//! `ibprov iface`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::print;
use crate::apply::bring_up::explain;
use crate::apply::children;
use crate::apply::iface::{Ask, StartedBy, is_missed, name_of, run as set_up};
use crate::apply::preview::{Setting, SettingsLook};
use crate::apply::rtnl::Rtnl;
use crate::apply::warnings::queue_advice;
use crate::cli::{Format, IfaceArgs};
use crate::config::{Config, RxeRow};
use crate::host::{Root, alarm, clock, links, process, systemctl, systemd};
use crate::model::{BringUp, Code, Exit, Finding, IfaceReport, preview::IfacePreview};
use crate::names::{IfName, Object, PciAddress, RdmaName, Rung, Target, present};
use crate::node::Node;
use crate::observe::iface::{NotSeen, look};
use crate::observe::target::meant;
use crate::observe::{Look, Observer, ipoib};
use crate::show;
use crate::stacks::{KNOWN, netplan};
use crate::workers::products::manages_nvswitch;

/// The netdev that `name` is of, or that its port has. What nothing has now is refused later.
fn netdev(name: &str, root: &Root) -> Result<IfName> {
    let target: Target = name.parse()?;
    if let Target::Name(name) = &target {
        let own = links::own_name(root, name);
        if root.exists(&format!("/sys/class/net/{own}")) {
            return Ok(own);
        }
    }
    let observed = Observer::new(root).look([], &BTreeSet::new());
    let meant = match (meant(&target, root, &observed), target) {
        (Err(_), Target::Name(name)) => return Ok(name),
        (meant, _) => meant?,
    };
    let ports = meant.iter().flat_map(|meant| &meant.ports);
    let netdevs = ports.filter_map(|(_, port)| port.netdev.as_ref().map(|n| n.name.clone()));
    match netdevs.collect::<Vec<_>>().as_slice() {
        [netdev] => Ok(netdev.clone()),
        several => {
            let names = present(several.iter().map(ToString::to_string));
            anyhow::bail!("{name} is not of one interface; interfaces: {names}")
        }
    }
}

/// Set one interface up.
///
/// # Errors
/// It could not begin: no such interface, not root, or standard output is gone.
pub fn run(args: &IfaceArgs, config: &Config, root: &Root, format: Format) -> Result<u8> {
    // It was not to act, and would be started again and again.
    if args.stopped.is_some() && service_result() == "exec-condition" {
        return Ok(Exit::Good.code());
    }
    if let (Some(unit), Some(device)) = (&args.stopped, &args.device) {
        return stopped(unit, device, root);
    }
    if args.children {
        return set_up_children(args.stopped.as_deref(), config, root);
    }
    let name = match (&args.name, &args.device) {
        (Some(name), _) => netdev(name, root)?,
        (None, Some(device)) => name_of(device)?,
        (None, None) => anyhow::bail!("iface needs the name of an interface, or --device PATH"),
    };
    if let Some(row) = config.rxe.iter().find(|row| row.netdev == name) {
        return if args.dry_run || !root.is_live() {
            soft_roce_dry_run(row, config, root, format)
        } else {
            soft_roce(row, config.network.timeout, format)
        };
    }
    let ask = Ask {
        name: &name,
        settings_only: args.settings_only,
        no_bus: args.no_bus,
        then: args.then.as_deref(),
        later: args.later,
        force: args.force,
        by: match (args.of_boot, &args.device) {
            (true, _) => StartedBy::Boot,
            (false, Some(_)) if alarm::is_of_unit() => StartedBy::Unit,
            (false, _) => StartedBy::Hand,
        },
    };
    let done = is_of_a_fabric(root, &name)
        .map_err(anyhow::Error::from)
        .and_then(|()| set_up_or_show(args, ask, config, root, format));
    match (done, &args.device) {
        // udev cannot tell in every case: a unit for what is not ours has nothing to do.
        (Err(e), Some(_)) if is_not_ours(&e) => {
            tracing::info!(netdev = %name, "{e}");
            let mut report = IfaceReport::blank(name.as_str(), clock::now());
            report.bring_up = BringUp::NotAsked;
            report.configured = true;
            report.notes.push(e.to_string());
            print(&report.to_report(), format, |_| String::new())
        }
        // It has disappeared since udev saw it, and systemd will stop the unit.
        (Err(e), Some(_)) if is_absent(&e) => {
            let mut report = IfaceReport::blank(name.as_str(), clock::now());
            report.disappeared();
            report.exit_code = report.judge();
            tracing::info!(netdev = %name, "{}", report.headline());
            print(&report.to_report(), format, |_| String::new())
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
fn set_up_children(stopped: Option<&str>, config: &Config, root: &Root) -> Result<u8> {
    if !root.is_live() || !process::is_root() {
        anyhow::bail!("iface --children is for ibprov-children.service");
    }
    let Some(unit) = stopped else {
        return Ok(children::set_up(config, root)?.code());
    };
    let (result, status) = (service_result(), std::env::var("EXIT_STATUS").unwrap_or_default());
    let is = |exit: Exit| status == exit.code().to_string();
    let is_to_start = match result.as_str() {
        // Who has stopped it does not want it to start again.
        "success" => is(Exit::Good) && children::are_missed(root),
        // Why it could not begin is told, and would come again at once.
        "exit-code" => is(Exit::NotReady) && children::are_missed(root),
        // So would what has hung, but those come first that no run has begun with.
        _ => children::are_not_begun(root),
    };
    if is_to_start {
        tracing::info!(unit, "P_Key children are left: starting {unit} again");
        systemctl::queue_restart(unit)?;
    }
    Ok(Exit::Good.code())
}

/// How the unit has ended whose ExecStopPost= this is (systemd.exec(5)).
fn service_result() -> String {
    std::env::var("SERVICE_RESULT").unwrap_or_default()
}

/// Create the soft RoCE device of a netdev that has appeared.
fn soft_roce(row: &RxeRow, timeout: Duration, format: Format) -> Result<u8> {
    if !process::is_root() {
        anyhow::bail!("iface must be run as root: use sudo");
    }
    alarm::at_deadline(timeout);
    let RxeRow { name, netdev, .. } = row;
    let mut report = IfaceReport::blank(netdev.as_str(), clock::now());
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
    if report.configured {
        tracing::info!(netdev = %netdev, "{told}");
    } else {
        tracing::error!(netdev = %netdev, "{told}");
    }
    systemd::tell_status(&told);
    report.finished_usec = clock::now();
    report.notes.push(told);
    print(&report.to_report(), format, |_| String::new())
}

/// Has a child create it: a registration waits for locks that a driver may hold.
fn create_rxe(name: &RdmaName, netdev: &IfName, timeout: Duration) -> Result<()> {
    let args = ["create-rxe", "--", name.as_str(), netdev.as_str()];
    let until = clock::now() + timeout;
    let out = process::own_output_until(&args, until)?;
    match out.failure {
        Some(failure) if out.ended && !failure.is_by_signal() => {
            anyhow::bail!("{}", out.stderr.trim_start_matches("error: "))
        }
        _ => out.into_text("ibprov", &args).map(drop).map_err(anyhow::Error::from),
    }
}

/// What would become of the soft RoCE device of a netdev.
fn soft_roce_dry_run(row: &RxeRow, config: &Config, root: &Root, format: Format) -> Result<u8> {
    let all = Node::look(root, config, None).soft_roce;
    let rxe = all.into_iter().find(|rxe| rxe.name == row.name);
    let report = IfacePreview { rxe, ..IfacePreview::default() };
    print(&report.to_report(), format, |screen| {
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
) -> Result<u8> {
    if args.dry_run || !root.is_live() {
        return dry_run(ask, config, root, format);
    }
    if !process::is_root() {
        anyhow::bail!("iface must be run as root: use sudo, or --dry-run to see what it would do");
    }
    alarm::at_deadline(config.network.timeout);
    let report = set_up(config, root, ask)?;
    systemd::tell_status(&report.headline());
    print(&report.to_report(), format, |_| String::new())
}

/// The unit has stopped: start it again if that was for an interface that is
/// gone, and another one has its path meanwhile.
fn stopped(unit: &str, device: &Path, root: &Root) -> Result<u8> {
    let name = name_of(device)?;
    if is_missed(root, &name).map_err(anyhow::Error::msg)? {
        tracing::info!(netdev = %name, unit, "{name} has appeared again: starting {unit} again");
        systemctl::queue_restart(unit)?;
    }
    Ok(Exit::Good.code())
}

/// What a run would do, and what the account of the node says of the interface.
fn dry_run(ask: Ask<'_>, config: &Config, root: &Root, format: Format) -> Result<u8> {
    let mut notes = look(root, ask.name)?.problems;
    let node = Node::look_as_iface(root, config, ask.force);
    let is_it = |finding: &Finding| finding.objects == [Object::from(ask.name)];
    let of_port = node.ports.iter().filter(|port| port.missing() == Some(Rung::Configured));
    let of_port = of_port.filter(|port| port.netdev.as_ref() == Some(ask.name));
    let mut findings: Vec<Finding> =
        of_port.flat_map(|port| port.findings(node.cause(port).as_ref())).collect();
    let judgement = node.account(None).judge(Vec::new());
    let of_it = judgement.findings.into_iter().filter(|f| is_it(f) && !findings.contains(f));
    findings.extend(of_it.collect::<Vec<_>>());
    let interface = node.interfaces.all.iter().find(|i| i.name == *ask.name);
    let interface = interface.ok_or_else(|| NotSeen::Absent(ask.name.clone()))?;
    let (interfaces, force) = (&node.interfaces, ask.force);
    let rtnl = Rtnl::to_look(node.survey.rtnl.is_some());
    let mut look = SettingsLook { config, root, interfaces, force, rtnl };
    let Setting { mut interface, wanted, settings, awaited, mut problems } =
        look.setting(interface);
    let mut rtnl = look.rtnl;
    rtnl.complete_or_tell(root, &mut interface, &mut problems);
    settings.tell(&mut findings);
    findings.extend(netplan::not_judged(root));
    notes.append(&mut problems);
    notes.extend(awaited);
    notes.extend(queue_advice(root, &wanted));
    // A copy of a tree has no units to ask for.
    let decided = if root.is_live() && !ask.settings_only {
        Some(explain(root, &interface, ask.no_bus, &mut rtnl)?)
    } else {
        None
    };
    let (asked_by, stacks, decision) = match decided {
        Some((way, views, decision)) => (Some(way), views, Some(decision)),
        None => {
            let standings = KNOWN.on_disk(root, &interface);
            (None, standings.into_iter().map(|s| s.view).collect(), None)
        }
    };
    let stuck = decision.iter().filter(|decision| decision.is_wrong);
    let stuck = stuck.map(|decision| Finding::error(Code::InterfaceNotUp, &decision.why));
    findings.extend(stuck.map(|finding| finding.about(ask.name)));
    Finding::worst_first(&mut findings);
    let report = IfacePreview {
        interface: Some(interface),
        wanted,
        steps: settings.steps,
        deferred: settings.deferred,
        findings,
        notes,
        asked_by,
        decision,
        stacks,
        rxe: None,
    };
    print(&report.to_report(), format, |screen| {
        screen.page(&show::preview::iface(&report, ask.name, ask.settings_only, screen))
    })
}
