//! How the settings of interfaces stand: what `boot` waits for as the rung
//! `configured`.

use super::iface::{iface_plan, rename, wanted};
use crate::config::Config;
use crate::ladder::Facts;
use crate::names::{IfName, Rung};
use crate::observe::ipoib::Interfaces;
use crate::report::PortProgress;

/// How the settings of an interface stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settings {
    /// They are as wanted.
    Made,
    /// They are not, and nobody has said why.
    Open {
        /// The interface's index.
        ifindex: u32,
    },
    /// They could not be made.
    Failed(String),
}

/// How those of `name` stand, by what it shows; what a run for it has left
/// counts for the reason only.
#[must_use]
pub fn settings(config: &Config, seen: &Interfaces, name: &IfName) -> Settings {
    // One that is gone, or is no IPoIB interface, has none.
    let Some(interface) = seen.all.iter().find(|i| i.name == *name) else {
        return Settings::Made;
    };
    let wanted = wanted(&config.interfaces, interface);
    let before = seen.outcomes.get(&interface.ifindex);
    let asked = before.and_then(|o| o.mtu_asked);
    let plan = iface_plan(&wanted, interface, &seen.all, &seen.names, asked);
    let is_named = rename(&config.interfaces, interface, &seen.all, &seen.names) == Ok(None);
    if is_named && plan.steps.is_empty() && plan.refused.is_empty() {
        // Whose settings another agent may change the next moment are not made.
        return match seen.unsettled.contains(name) {
            false => Settings::Made,
            true => Settings::Open { ifindex: interface.ifindex },
        };
    }
    match before {
        Some(before) if !before.configured => Settings::Failed(before.failures.join("; ")),
        _ => Settings::Open { ifindex: interface.ifindex },
    }
}

/// Judge the rung `configured` of ports that are named and have to reach it.
/// Gives the interfaces whose settings nobody has made yet.
pub fn judge_settings(
    config: &Config,
    seen: &Interfaces,
    ports: &mut [PortProgress],
    facts: &mut Facts,
) -> Vec<(IfName, u32)> {
    let mut open = Vec::new();
    for port in ports.iter_mut() {
        if port.goal != Rung::Configured || port.reached != Some(Rung::Named) {
            continue;
        }
        let Some(netdev) = port.netdev.clone() else { continue };
        match settings(config, seen, &netdev) {
            Settings::Made => {
                facts.unset.remove(&netdev);
                port.reached = Some(Rung::Configured);
            }
            Settings::Failed(why) => {
                facts.unset.insert(netdev, Some(why));
            }
            Settings::Open { ifindex } => {
                facts.unset.entry(netdev.clone()).or_default();
                open.push((netdev, ifindex));
            }
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Root;
    use crate::host::testing::tree;

    #[test]
    fn what_another_agent_is_at_work_on_is_not_made_yet() {
        let ib0 = "sys/class/net/ib0";
        let name: IfName = "ib0".parse().expect("name");
        let look = |links: &[(&str, &str)]| {
            let files = [
                (format!("{ib0}/ifindex"), "3\n"),
                (format!("{ib0}/type"), "32\n"),
                ("etc/infiniband/openib.conf".to_owned(), ""),
            ];
            let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
            let dir = tree(&files, links);
            let seen = Interfaces::look(&Root::copy_at(dir.path()).expect("root"));
            settings(&Config::default(), &seen, &name)
        };
        assert_eq!(look(&[]), Settings::Made);
        let up = "run/systemd/units/invocation:mlnx_interface_mgr@ib0.service";
        assert_eq!(look(&[(up, "1f2e")]), Settings::Open { ifindex: 3 });
    }
}
