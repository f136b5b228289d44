//! What would be set at interfaces, for dry runs.

use super::iface::defer;
use super::rtnl::Rtnl;
use crate::config::Config;
use crate::host::Root;
use crate::model::{Use, WantedInterface, preview::Settings};
use crate::observe::ipoib::{Interface, Interfaces};
use crate::plan::settings::planned;
use crate::plan::{rename, wanted};

/// An interface, what is wanted of it, and what would be set.
#[derive(Debug)]
pub struct Setting {
    pub interface: Interface,
    pub wanted: WantedInterface,
    pub settings: Settings,
    /// The P_Key children that a network stack is still to create, one sentence each.
    pub awaited: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// A look at the interfaces that are there, which says what would be set.
#[derive(Debug)]
pub struct SettingsLook<'a> {
    pub config: &'a Config,
    pub root: &'a Root,
    pub interfaces: &'a Interfaces,
    /// Set what is in use, too.
    pub force: bool,
    pub rtnl: Rtnl,
}

impl SettingsLook<'_> {
    pub fn settings(&mut self) -> Vec<Settings> {
        if self.config.interfaces.is_empty() {
            return Vec::new();
        }
        let all = &self.interfaces.all;
        let of = |interface| self.setting(interface).settings;
        let is_set = |set: &Settings| {
            set.steps.is_empty() && set.deferred.is_none() && set.refused.is_empty()
        };
        all.iter().map(of).filter(|set| !is_set(set)).collect()
    }

    /// What would be set at one of them.
    pub fn setting(&mut self, interface: &Interface) -> Setting {
        let Self { config, root, interfaces, force, rtnl } = self;
        let (mut interface, mut problems) = (interface.clone(), Vec::new());
        if wanted(&config.interfaces, &interface, &[]).sets() {
            rtnl.complete_or_tell(root, &mut interface, &mut problems);
        }
        let (wanted, mut plan) = planned(config, interfaces, &interface);
        match rename(&config.interfaces, &interface, &interfaces.all, &interfaces.names) {
            Ok(step) => plan.steps.splice(..0, step).for_each(drop),
            Err(why) => plan.refused.insert(0, why),
        }
        match interfaces.uses.get(&interface.ifindex) {
            Some(uses) => plan.defer(uses.clone()),
            // Its mode has just been asked for. A copied tree has no kernel to ask.
            None if root.is_live() => {
                if let Err(e) = defer(*force, &interface, rtnl, &mut plan, || false) {
                    // What cannot be told counts as use.
                    plan.defer(vec![Use::Unknown { why: e.to_string() }]);
                }
            }
            None => {}
        }
        let settings = Settings {
            netdev: interface.name.clone(),
            steps: plan.steps,
            deferred: plan.deferred,
            refused: plan.refused,
            origins: wanted.origins.clone(),
        };
        Setting { interface, wanted, settings, awaited: plan.awaited, problems }
    }
}
