//! What becomes of each `[[rxe]]`.

use crate::config::RxeRow;
use crate::model::{RxeReport, RxeState, Step};
use crate::observe::{RxeDevice, RxeSeen};

/// How each row stands, and then each soft RoCE device that no row names.
pub fn judge_rxe(rows: &[RxeRow], seen: &RxeSeen) -> Vec<RxeReport> {
    let configured = rows.iter().map(|row| RxeReport {
        name: row.name.clone(),
        netdev: Some(row.netdev.clone()),
        state: state(row, seen),
        reason: None,
    });
    let others = seen.devices.iter().filter_map(|device| {
        let netdev = device.rxe_on.clone()?;
        let is_named = rows.iter().any(|row| row.name == device.name);
        (!is_named).then(|| RxeReport {
            name: device.name.clone(),
            netdev: Some(netdev),
            state: RxeState::NotConfigured,
            reason: None,
        })
    });
    configured.chain(others).collect()
}

fn state(row: &RxeRow, seen: &RxeSeen) -> RxeState {
    if let Some(device) = seen.devices.iter().find(|device| device.name == row.name) {
        return match &device.rxe_on {
            Some(netdev) if *netdev == row.netdev => RxeState::Present,
            by => RxeState::NameTaken { by: by.clone() },
        };
    }
    let on_it = |device: &&RxeDevice| device.rxe_on.as_ref() == Some(&row.netdev);
    if let Some(device) = seen.devices.iter().find(on_it) {
        return RxeState::NetdevTaken { by: device.name.clone() };
    }
    match seen.netdevs.iter().find(|netdev| netdev.name == row.netdev) {
        None => RxeState::NoNetdev,
        Some(netdev) if netdev.is_ipoib => RxeState::OverIpoib,
        Some(netdev) if !netdev.is_named => RxeState::NotNamed,
        Some(_) => RxeState::Absent,
    }
}

/// What boot does for them now: `has_module` says that the module is there.
pub fn rxe_steps(reports: &[RxeReport], has_module: bool) -> Vec<Step> {
    let absent = reports.iter().filter(|rxe| has_module && rxe.state == RxeState::Absent);
    let step = |rxe: &RxeReport| {
        Some(Step::CreateRxe { name: rxe.name.clone(), netdev: rxe.netdev.clone()? })
    };
    absent.filter_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::RxeNetdev;

    fn row(name: &str, netdev: &str) -> RxeRow {
        RxeRow {
            name: name.parse().expect("name"),
            netdev: netdev.parse().expect("netdev"),
            origin: String::new(),
        }
    }

    fn device(name: &str, netdev: Option<&str>) -> RxeDevice {
        let rxe_on = netdev.map(|netdev| netdev.parse().expect("netdev"));
        RxeDevice { name: name.parse().expect("name"), rxe_on }
    }

    fn netdev(is_ipoib: bool, is_named: bool) -> Vec<RxeNetdev> {
        vec![RxeNetdev { name: "eth1".parse().expect("netdev"), is_ipoib, is_named }]
    }

    #[test]
    fn a_row_is_judged_by_its_name_and_its_netdev() {
        let of = |devices: Vec<RxeDevice>, netdevs: Vec<RxeNetdev>| {
            let seen = RxeSeen { devices, netdevs };
            judge_rxe(&[row("rxe0", "eth1")], &seen).remove(0).state
        };
        let named = || netdev(false, true);
        assert_eq!(of(vec![], named()), RxeState::Absent);
        assert_eq!(of(vec![], vec![]), RxeState::NoNetdev);
        assert_eq!(of(vec![], netdev(false, false)), RxeState::NotNamed);
        assert_eq!(of(vec![], netdev(true, true)), RxeState::OverIpoib);
        assert_eq!(of(vec![device("rxe0", Some("eth1"))], named()), RxeState::Present);
        let by = "eth2".parse().ok();
        assert_eq!(of(vec![device("rxe0", Some("eth2"))], named()), RxeState::NameTaken { by });
        assert_eq!(of(vec![device("rxe0", None)], named()), RxeState::NameTaken { by: None });
        let by = "soft".parse().expect("name");
        assert_eq!(of(vec![device("soft", Some("eth1"))], named()), RxeState::NetdevTaken { by });
    }

    #[test]
    fn what_no_row_names_is_told_and_left_alone() {
        let devices = vec![device("rxe7", Some("eth2")), device("mlx5_0", None)];
        let seen = RxeSeen { devices, netdevs: Vec::new() };
        let reports = judge_rxe(&[], &seen);
        assert_eq!(reports.len(), 1);
        assert_eq!(
            reports[0].to_string(),
            "rxe7 (eth2): soft RoCE device on eth2 is not in the configuration, and is not changed"
        );
        assert_eq!(rxe_steps(&reports, true), []);
    }

    #[test]
    fn a_device_is_created_once_the_module_is_there() {
        let seen = RxeSeen { devices: Vec::new(), netdevs: netdev(false, true) };
        let reports = judge_rxe(&[row("rxe0", "eth1"), row("rxe1", "eth2")], &seen);
        assert_eq!(rxe_steps(&reports, false), []);
        let steps = rxe_steps(&reports, true);
        let text: Vec<String> = steps.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["create the soft RoCE device rxe0 on eth1"]);
    }
}
