//! Red Hat's network-scripts: `ifcfg-*` below /etc/sysconfig/network-scripts.

use super::files::{
    Files, LIMIT, NETWORK_SCRIPTS, address_trouble, ifcfg, ifcfg_settings, last, network_scripts,
};
use super::network_manager;
use super::stack::{Command, Facts, Owner, Phases, Stack, StackUnit, program};
use crate::config::foreign;
use crate::host::Root;
use crate::model::{
    StackName, StackSetting,
    stack::{Action, Answer, Claim, Phase},
};
use crate::names::{IfName, NetworkRole};
use crate::observe::ipoib::Interface;

#[derive(Debug)]
pub struct NetworkScripts;

const SERVICE: &str = "network.service";

static FACTS: Facts = Facts {
    log_programs: &["network"],
    looks_once: true,
    init_script: Some("/etc/init.d/network"),
    ..Facts::new(
        StackName::new("network-scripts", "network-scripts"),
        SERVICE,
        &[StackUnit::new(SERVICE, NetworkRole::SetsUpOnce, &["LSB: Bring up/down networking"])],
    )
};

/// NetworkManager is part of this boot.
fn has_network_manager(others: Phases<'_>) -> bool {
    !matches!(others(network_manager::SERVICE), Phase::Absent | Phase::NotStarted)
}

fn says_no(pairs: &[(String, String)], key: &str) -> bool {
    last(pairs, key).is_some_and(|v| matches!(v.to_lowercase().as_str(), "no" | "n" | "false"))
}

impl Stack for NetworkScripts {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    /// With NetworkManager at work, a file is NetworkManager's unless it says
    /// NM_CONTROLLED=no.
    fn claim(&self, root: &Root, interface: &Interface, _: Phase, others: Phases<'_>) -> Claim {
        let nm_here = has_network_manager(others);
        let name = interface.name.as_str();
        let mut missed = None;
        // Its own first: where hundreds of interfaces have one each, all would read all.
        let own = format!("ifcfg-{name}");
        let mut files = root.list_or_empty(NETWORK_SCRIPTS).unwrap_or_default();
        files.sort_by_key(|file| *file != own);
        for file in files {
            let Some(suffix) = foreign::ifcfg::name_of(&file) else { continue };
            let path = format!("{NETWORK_SCRIPTS}/{file}");
            let Ok(text) = root.text(&path, LIMIT) else { continue };
            let pairs = ifcfg(&text);
            let device = last(&pairs, "DEVICE").filter(|device| !device.is_empty());
            let address = last(&pairs, "HWADDR");
            let trouble = address.and_then(|a| address_trouble(a, interface));
            let named = device.unwrap_or(suffix) == name;
            if !named {
                // The scripts know no other name than DEVICE and the file's.
                if address.is_some() && trouble.is_none() {
                    let other = device.unwrap_or(suffix);
                    missed = Some(format!("{path} has this port's address, but is for {other:?}"));
                }
                continue;
            }
            if let Some(trouble) = trouble {
                missed = Some(format!("{path} does not match: {trouble}"));
                continue;
            }
            let no = |key: &str| says_no(&pairs, key);
            return if nm_here && !no("NM_CONTROLLED") {
                Claim::new(Answer::No, format!("{path} is NetworkManager's (no NM_CONTROLLED=no)"))
            } else if no("ONBOOT") {
                Claim::new(Answer::ByHand, format!("ONBOOT=no in {path}"))
            } else {
                Claim::new(Answer::Yes, path)
            };
        }
        match missed {
            Some(why) => Claim::new(Answer::Missed, why),
            None => Claim::new(Answer::No, format!("no {NETWORK_SCRIPTS}/ifcfg-{name}")),
        }
    }

    fn command(&self, _how: Action, name: &IfName) -> Result<Command, String> {
        Ok(Command { shown: "ifup", words: vec![program("ifup")?, name.to_string()] })
    }

    /// `ifup-ib` writes the mode at each call, and MTU= if it is there.
    fn writes(
        &self,
        root: &Files<'_>,
        interface: &Interface,
        others: Phases<'_>,
    ) -> Vec<StackSetting> {
        let path = format!("{NETWORK_SCRIPTS}/ifcfg-{}", interface.name);
        let pairs = ifcfg(&root.text(&path, LIMIT).unwrap_or_default());
        let is_its = !has_network_manager(others) || says_no(&pairs, "NM_CONTROLLED");
        if pairs.is_empty() || !is_its { Vec::new() } else { ifcfg_settings(&pairs, &path) }
    }

    fn asked(&self, root: &Root) -> Vec<(String, String)> {
        let files = network_scripts(root).into_iter();
        files.map(|(netdev, file, _)| (netdev, file)).collect()
    }

    fn owner(&self, root: &Root, netdev: &IfName, _ifindex: u32) -> Option<Owner> {
        let file = format!("{NETWORK_SCRIPTS}/ifcfg-{netdev}");
        root.exists(&file).then(|| Owner::File(format!("the network service ({file})")))
    }
}
