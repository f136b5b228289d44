//! What would be set at interfaces, for dry runs.

use super::iface::{asked_before, defer};
use super::rtnl::Rtnl;
use crate::config::Config;
use crate::host::Root;
use crate::model::{Use, WantedInterface, preview::Settings};
use crate::observe::iface::Seen;
use crate::observe::ipoib::{Interface, Interfaces};
use crate::plan::{IfacePlan, concerns_others, iface_plan, rename, wanted};

/// An interface, what is wanted of it, and what would be set.
#[derive(Debug)]
pub struct Setting {
    pub seen: Seen,
    pub wanted: WantedInterface,
    pub settings: Settings,
    /// The P_Key children that a network stack is still to create, one sentence each.
    pub awaited: Vec<String>,
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
        let seen = self.seen(interface);
        let (wanted, mut plan) = planned(self.config, &seen);
        match self.interfaces.uses.get(&seen.interface.ifindex) {
            Some(uses) => plan.defer(uses.clone()),
            // Its mode has just been asked for. A copied tree has no kernel to ask.
            None if self.root.is_live() => {
                if let Err(e) = defer(self.force, &seen, &mut self.rtnl, &mut plan, || false) {
                    // What cannot be told counts as use.
                    plan.defer(vec![Use::Unknown { why: e.to_string() }]);
                }
            }
            None => {}
        }
        let settings = Settings {
            netdev: seen.interface.name.clone(),
            steps: plan.steps,
            deferred: plan.deferred,
            refused: plan.refused,
            origins: wanted.origins.clone(),
        };
        Setting { seen, wanted, settings, awaited: plan.awaited }
    }

    /// What a run would look at for its plan; no file is read again.
    fn seen(&mut self, interface: &Interface) -> Seen {
        let (rules, all) = (&self.config.interfaces, self.interfaces);
        let mut seen = Seen::among(all, interface);
        if wanted(rules, interface, &[]).sets() {
            self.rtnl.complete_or_tell(self.root, &mut seen);
        }
        if concerns_others(rules, interface) {
            seen.set_others(all.all.clone(), all.names.clone());
        }
        seen
    }
}

/// What is wanted of `seen`, with what its plan needs, and the steps to it.
fn planned(config: &Config, seen: &Seen) -> (WantedInterface, IfacePlan) {
    let wanted = wanted(&config.interfaces, &seen.interface, &seen.stack_children);
    let asked = asked_before(&wanted, seen);
    let mut plan = iface_plan(&wanted, &seen.interface, &seen.all, &seen.names, asked);
    match rename(&config.interfaces, &seen.interface, &seen.all, &seen.names) {
        Ok(step) => plan.steps.splice(..0, step).for_each(drop),
        Err(why) => plan.refused.insert(0, why),
    }
    (wanted, plan)
}
