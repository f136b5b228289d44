//! The soft RoCE devices, for the verbs that show them.

use crate::config::Config;
use crate::host::Root;
use crate::ladder::roce::{Roce, words};
use crate::model::{Gid, RxeReport, RxeState};
use crate::names::{IfName, LinkLayer, Rung};
use crate::observe::link::{gids_in, netdev};
use crate::observe::rxe;
use crate::plan::rxe::judge_rxe;
use crate::workers::survey::Survey;

/// How each stands that is configured or there.
pub fn judged(config: &Config, root: &Root) -> Vec<RxeReport> {
    judge_rxe(&config.rxe, &rxe(root, &config.rxe))
}

/// The netdevs of those that are there, whose carrier is to be asked for.
pub fn netdevs(reports: &[RxeReport]) -> Vec<IfName> {
    let present = reports.iter().filter(|report| report.state == RxeState::Present);
    present.filter_map(|report| report.netdev.clone()).collect()
}

/// The same with what those lack that are there: carrier, or a GID of type RoCE v2.
pub fn with_lacks(mut reports: Vec<RxeReport>, root: &Root, survey: &Survey) -> Vec<RxeReport> {
    for report in reports.iter_mut().filter(|report| report.state == RxeState::Present) {
        let Some(name) = report.netdev.clone() else { continue };
        let state = netdev(root, &name, survey.carriers.get(&name).copied());
        report.reason = Roce::of(&state, &table(root, report)).lack(Rung::Active).map(|lack| {
            let addresses = survey.addresses_of(&name);
            words(Some(&name), lack, root.is_live().then_some(addresses.as_slice())).text
        });
    }
    reports
}

/// The GID table of one that is there, if it is asked for.
pub fn gids(are_wanted: bool, root: &Root, report: &RxeReport) -> Option<Vec<Gid>> {
    let is_there = matches!(report.state, RxeState::Present | RxeState::NotConfigured);
    (are_wanted && is_there).then(|| table(root, report))
}

fn table(root: &Root, report: &RxeReport) -> Vec<Gid> {
    let dir = format!("/sys/class/infiniband/{}/ports/1", report.name);
    gids_in(root, &dir, LinkLayer::Ethernet)
}
