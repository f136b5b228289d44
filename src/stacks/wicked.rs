//! SUSE's wicked: `ifcfg-*` below /etc/sysconfig/network. Its nanny watches for
//! interfaces and brings up what it has a policy for.

use super::files::{Files, LIMIT, folder, ifcfg, last, mtu_setting, setting};
use super::stack::{Facts, Owner, Phases, Stack, StackUnit};
use crate::host::Root;
use crate::model::{
    StackName, StackSetting,
    stack::{Answer, Claim, Phase, SettingValue},
};
use crate::names::{IfName, NetworkRole};
use crate::observe::ipoib::Interface;

#[derive(Debug)]
pub struct Wicked;

const DIR: &str = "/etc/sysconfig/network";

/// Its service, which asks its daemons for all that is configured.
const SERVICE: &str = "wicked.service";

static FACTS: Facts = Facts {
    ..Facts::new(
        StackName::new("wicked", "wicked"),
        SERVICE,
        &[
            StackUnit::new(
                SERVICE,
                NetworkRole::SetsUpWhatComes,
                &["wicked managed network interfaces"],
            ),
            StackUnit::new("wickedd.service", NetworkRole::SetsUpWhatComes, &[]),
        ],
    )
};

impl Stack for Wicked {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn claim(&self, root: &Root, interface: &Interface, _: Phase, _: Phases<'_>) -> Claim {
        let path = format!("{DIR}/ifcfg-{}", interface.name);
        let Ok(text) = root.text(&path, LIMIT) else {
            return Claim::new(Answer::No, format!("no {path}"));
        };
        let pairs = ifcfg(&text);
        match last(&pairs, "STARTMODE").map(str::to_lowercase).as_deref() {
            Some("manual") => Claim::new(Answer::ByHand, format!("STARTMODE=manual in {path}")),
            Some("off") => Claim::new(Answer::No, format!("STARTMODE=off in {path}")),
            mode => {
                let mode = mode.map(|m| format!(" (STARTMODE={m})")).unwrap_or_default();
                Claim::new(Answer::Yes, format!("{path}{mode}"))
            }
        }
    }

    /// Without IPOIB_MODE it leaves the mode alone (`ifcfg-infiniband(5)`).
    fn writes(&self, root: &Files<'_>, interface: &Interface, _: Phases<'_>) -> Vec<StackSetting> {
        let path = format!("{DIR}/ifcfg-{}", interface.name);
        let pairs = ifcfg(&root.text(&path, LIMIT).unwrap_or_default());
        let mode = last(&pairs, "IPOIB_MODE").and_then(|word| word.to_lowercase().parse().ok());
        let mode = mode.map(|mode| setting(SettingValue::Mode(mode), &path, "IPOIB_MODE"));
        let mtu = mtu_setting(last(&pairs, "MTU"), &path, "MTU");
        [mode, mtu].into_iter().flatten().collect()
    }

    fn asked(&self, root: &Root) -> Vec<(String, String)> {
        let files = folder(root, DIR).into_iter();
        files
            .filter_map(|file| {
                let netdev = file.rsplit_once("/ifcfg-")?.1.to_owned();
                Some((netdev, file))
            })
            .collect()
    }

    fn owner(&self, root: &Root, netdev: &IfName, _ifindex: u32) -> Option<Owner> {
        let file = format!("{DIR}/ifcfg-{netdev}");
        root.exists(&file).then(|| Owner::File(format!("wicked ({file})")))
    }
}
