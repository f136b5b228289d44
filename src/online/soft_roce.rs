//! The soft RoCE devices that are waited for: ports without a PCI function, of which netlink
//! and sysfs tell all.

use crate::config::{Config, RxeRow};
use crate::host::Root;
use crate::ladder::roce::{self, Roce};
use crate::model::{
    Cause, PortProgress, RxeReport, RxeState,
    online::{Goal, Lack},
};
use crate::names::{IfName, LinkLayer, PortNumber, Rung, Target};
use crate::observe::link::{gids_in, netdev};
use crate::observe::rxe;
use crate::plan::rxe::judge_rxe;

/// Whether `target` names the device of this row.
fn is_named(row: &RxeRow, target: &Target) -> bool {
    match target {
        Target::Rdma(name, port) => {
            *name == row.name && port.is_none_or(|port| port == PortNumber::FIRST)
        }
        Target::Name(name) => name.as_str() == row.name.as_str() || *name == row.netdev,
        Target::Pci(..) | Target::Guid(_) => false,
    }
}

/// `target` names a soft RoCE device of the configuration.
pub(super) fn is_meant(config: &Config, target: &Target) -> bool {
    config.rxe.iter().any(|row| is_named(row, target))
}

/// Those that are waited for: all of the configuration, or those that are named.
pub(super) fn wanted(config: &Config, root: &Root, targets: &[Target]) -> Vec<RxeReport> {
    let is_wanted =
        |row: &&RxeRow| targets.is_empty() || targets.iter().any(|target| is_named(row, target));
    let rows: Vec<RxeRow> = config.rxe.iter().filter(is_wanted).cloned().collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut reports = judge_rxe(&rows, &rxe(root, &rows));
    reports.retain(|report| report.state != RxeState::NotConfigured);
    reports
}

/// What is known of the netdev of one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known<'a> {
    /// Its carrier, if the kernel has told.
    pub(super) carrier: Option<bool>,
    /// Its addresses of global scope, if the kernel has told.
    pub(super) addresses: Option<&'a [String]>,
    /// The kernel owes an answer for too long.
    pub(super) is_silent: bool,
}

/// The first thing that it lacks, and why.
pub(super) fn lack(
    report: &RxeReport,
    root: &Root,
    known: Known<'_>,
    goal: Goal,
) -> Option<(Lack, Cause)> {
    let of_state = |rung, is_final| {
        let cause = Cause::waiting(report.message(), report.advice());
        Some((Lack::Rung(rung), Cause { is_final, ..cause }))
    };
    match &report.state {
        RxeState::NoNetdev => return of_state(Rung::Netdev, false),
        RxeState::NotNamed => return of_state(Rung::Named, false),
        RxeState::Absent => return of_state(Rung::Rdma, false),
        RxeState::OverIpoib | RxeState::NameTaken { .. } | RxeState::NetdevTaken { .. } => {
            return of_state(Rung::Rdma, true);
        }
        RxeState::Present | RxeState::NotConfigured => {}
    }
    let name = report.netdev.as_ref()?;
    let mut state = netdev(root, name, known.carrier);
    state.carrier = state.carrier.filter(|_| !known.is_silent);
    let dir = format!("/sys/class/infiniband/{}/ports/1", report.name);
    let of_port = Roce::of(&state, &gids_in(root, &dir, LinkLayer::Ethernet)).lack(goal.rung);
    let is_without = known.addresses.is_none_or(<[String]>::is_empty);
    let lack = of_port.or_else(|| (goal.address && is_without).then_some(Lack::Address))?;
    let cause = match lack {
        Lack::Address => Cause::waiting(format!("{name} has no address of global scope"), []),
        lack => roce::words(Some(name), lack, known.addresses),
    };
    Some((lack, cause))
}

/// It as a port that is waited for.
pub(super) fn progress(report: &RxeReport, lack: Option<Lack>, goal: Goal) -> PortProgress {
    let why = "[[rxe]]".to_owned();
    let is_there = report.state == RxeState::Present;
    let netdev: Option<IfName> = report.netdev.clone().filter(|_| is_there);
    let reached = match lack {
        None => Some(goal.rung),
        Some(Lack::Rung(Rung::Named)) => Some(Rung::Netdev),
        Some(Lack::Rung(_)) => None,
        Some(_) => Some(Rung::Named),
    };
    PortProgress {
        rdma: is_there.then(|| report.name.clone()),
        port: is_there.then_some(PortNumber::FIRST),
        link_layer: is_there.then_some(LinkLayer::Ethernet),
        netdev,
        reached,
        must_be_ethernet: true,
        ..PortProgress::absent(&report.name, goal.rung, why)
    }
}
