//! How the settings of interfaces stand: what `boot` waits for as the rung
//! `configured`.

use super::iface::{IfacePlan, iface_plan, rename, wanted};
use crate::config::Config;
use crate::ladder::{KernelLogFacts, progress};
use crate::model::{
    Advice, Cause, Code, Finding, IfaceReport, IfaceStep, PortProgress, StackName, StackSetting,
    WantedInterface, stack::SettingValue,
};
use crate::names::{IfName, Mode, Rung};
use crate::observe::ipoib::{Interface, Interfaces};

/// How the settings of an interface stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settings {
    Made,
    /// They are not, and nobody has said why.
    Open {
        /// The interface's index.
        ifindex: u32,
        /// What cannot be, beside what can be made, or its name, which may be free when a run
        /// gives it.
        refused: Option<Cause>,
    },
    /// They are, but for P_Key children that a network stack is still to create.
    Awaited(Cause),
    /// They could not be made, the interface cannot have them, or is in use.
    Left(Cause),
    /// There is no IPoIB interface of this name: it has just got another, or is gone, and
    /// what is seen next tells.
    Gone,
}

/// How those of `name` stand, by what it shows; what a run for it has left
/// counts for the reason only.
pub fn settings(config: &Config, seen: &Interfaces, name: &IfName) -> Settings {
    let Some(interface) = seen.all.iter().find(|i| i.name == *name) else {
        return Settings::Gone;
    };
    let before = seen.before(interface);
    let written = seen.written_of(interface);
    let (wanted, mut plan) = planned(config, seen, interface);
    let renamed = rename(&config.interfaces, interface, &seen.all, &seen.names);
    if renamed == Ok(None) && plan.steps.is_empty() && plan.refused.is_empty() {
        // Whose settings another agent may change the next moment are not made.
        return match seen.unsettled.contains(name) {
            false => awaited(name, plan.awaited).map_or(Settings::Made, Settings::Awaited),
            true => match before {
                Some(before) if before.mlnx_interface_mgr_pending => failed(name, before),
                _ => Settings::Open { ifindex: interface.ifindex, refused: None },
            },
        };
    }
    // All else has been made.
    let is_last =
        plan.steps.is_empty() && !plan.refused.is_empty() && !matches!(renamed, Ok(Some(_)));
    let mut refused = std::mem::take(&mut plan.refused);
    if let Err(why) = renamed {
        refused.insert(0, why);
    }
    match before {
        _ if is_last => left(refused),
        Some(before) if !before.is_settled() => failed(name, before),
        _ => {
            let told = written.iter().filter_map(|(stack, setting)| {
                let asked = against(&wanted, interface, setting.value)?;
                let by = stack.to_string();
                let is_now = now(interface, setting.value) == Some(setting.value);
                is_now.then(|| lost(interface, asked, &by, Some(setting)))
            });
            if let Some(lost) = Cause::of_all(told.map(|why| Cause::not_made(name, why)).collect())
            {
                return Settings::Left(lost);
            }
            let deferred = match seen.uses.get(&interface.ifindex) {
                Some(uses) => {
                    plan.defer(uses.clone());
                    plan.deferred
                }
                // What a run has found is as good as a look of one's own, if it is for that.
                None => {
                    before.and_then(|before| before.deferred.clone()).filter(|_| plan.interrupts())
                }
            };
            match deferred {
                Some(deferred) => {
                    refused.push(Cause::deferred(name, &deferred));
                    left(refused)
                }
                None => {
                    Settings::Open { ifindex: interface.ifindex, refused: Cause::of_all(refused) }
                }
            }
        }
    }
}

/// They are left as they are for these reasons, one at least.
fn left(why: Vec<Cause>) -> Settings {
    Cause::of_all(why).map_or(Settings::Gone, Settings::Left)
}

/// The P_Key children of `netdev` that a network stack is still to create, one sentence each.
fn awaited(netdev: &IfName, missing: Vec<String>) -> Option<Cause> {
    let advice =
        Advice::look(format!("journalctl -b -g {netdev}: what the network stack has logged"));
    let of = |child| Cause::waiting(child, [advice.clone()]);
    Cause::of_all(missing.into_iter().map(of).collect())
}

/// What is wanted of `interface`, and the steps to it.
pub fn planned(
    config: &Config,
    seen: &Interfaces,
    interface: &Interface,
) -> (WantedInterface, IfacePlan) {
    let wanted = wanted(&config.interfaces, interface, &seen.stack_children);
    let asked = mtu_asked(&wanted, interface, seen);
    let plan = iface_plan(&wanted, interface, &seen.all, &seen.names, asked);
    (wanted, plan)
}

/// The interfaces, with their indexes, whose mode or MTU the next run would change unless they
/// are in use.
pub fn to_be_asked(config: &Config, seen: &Interfaces) -> Vec<(u32, IfName)> {
    let is_asked = |interface: &&Interface| {
        let (wanted, plan) = planned(config, seen, interface);
        // The mode of a child that was made by netlink is not seen here.
        let is_known = wanted.mode.is_none() || interface.mode.is_some();
        // Nobody sends anything over one that is down.
        is_known && plan.interrupts() && interface.up
    };
    let asked = seen.all.iter().filter(is_asked);
    asked.map(|interface| (interface.ifindex, interface.name.clone())).collect()
}

/// The MTU that an earlier run wrote to `interface`: a smaller one is the fabric's doing, unless
/// that run could not configure the interface, or a stack has written the smaller one.
pub fn mtu_asked(
    wanted: &WantedInterface,
    interface: &Interface,
    seen: &Interfaces,
) -> Option<u32> {
    let asked = seen.before(interface).filter(|before| before.is_settled())?.mtu_asked;
    let is_by_stack = |(_, setting): &(StackName, StackSetting)| {
        matches!(setting.value, SettingValue::Mtu(_))
            && now(interface, setting.value) == Some(setting.value)
            && against(wanted, interface, setting.value).is_some()
    };
    asked.filter(|_| !seen.written_of(interface).iter().any(is_by_stack))
}

/// What the interface has now where `like` is for.
fn now(interface: &Interface, like: SettingValue) -> Option<SettingValue> {
    match like {
        SettingValue::Mode(_) => interface.mode.map(SettingValue::Mode),
        SettingValue::Mtu(_) => interface.mtu.map(SettingValue::Mtu),
    }
}

/// `interface` is not as `asked` since its stack, `by`, has brought it up; where a file of the
/// stack says so, that is the `source`.
fn lost(
    interface: &Interface,
    asked: SettingValue,
    by: &str,
    source: Option<&StackSetting>,
) -> String {
    let now = now(interface, asked).map(|now| now.to_string());
    let source = match source {
        Some(setting) => {
            format!("{setting}: change that, or {} in the configuration", asked.own_key())
        }
        None => "no known file of this network stack has this setting: look for a script or a hook"
            .to_owned(),
    };
    format!(
        "{}: {} is {} since {by} brought the interface up, but {} is configured: {source}",
        interface.name,
        asked.what(),
        now.unwrap_or_else(|| "unknown".to_owned()),
        shown(asked),
    )
}

/// They could not be made, as the run that left `outcome` says.
fn failed(netdev: &IfName, outcome: &IfaceReport) -> Settings {
    let mut said = outcome.failures.clone();
    if said.is_empty() {
        said.push(String::new());
    }
    left(said.into_iter().map(|why| Cause::not_made(netdev, why)).collect())
}

/// What `wanted` says against a setting that a stack writes; `None` if the two agree.
fn against(
    wanted: &WantedInterface,
    interface: &Interface,
    value: SettingValue,
) -> Option<SettingValue> {
    match value {
        SettingValue::Mode(mode) => match (wanted.mode, wanted.mtu) {
            (Some(asked), _) if asked != mode => Some(SettingValue::Mode(asked)),
            // The kernel takes the MTU down with the mode.
            (None, Some(mtu))
                if mode == Mode::Datagram && mtu > mode.largest_mtu(interface.omni_path) =>
            {
                Some(SettingValue::Mtu(mtu))
            }
            _ => None,
        },
        SettingValue::Mtu(mtu) => wanted.mtu.filter(|asked| *asked != mtu).map(SettingValue::Mtu),
    }
}

/// Where the files of the stacks that bring `interface` up are against what is wanted of it:
/// told before it happens, with the same code in every verb.
pub fn contradictions<'a>(
    interface: &Interface,
    wanted: &WantedInterface,
    writes: impl IntoIterator<Item = (StackName, &'a StackSetting)>,
) -> Vec<Finding> {
    let told = |(stack, setting): (StackName, &StackSetting)| {
        let asked = against(wanted, interface, setting.value)?;
        let message = format!(
            "{stack} will set {} {} when it brings the interface up, but {} = {} is configured ({}). Change one of the two: {setting}",
            setting.value.what(),
            setting.value,
            asked.own_key(),
            shown(asked),
            wanted.origins.join(", "),
        );
        Some(Finding::warning(Code::SettingContradicted, message).about(&interface.name))
    };
    writes.into_iter().filter_map(told).collect()
}

/// As it is typed in the configuration.
fn shown(value: SettingValue) -> String {
    match value {
        SettingValue::Mode(mode) => format!("{:?}", mode.word()),
        SettingValue::Mtu(mtu) => mtu.to_string(),
    }
}

/// The settings that are no longer as wanted now that `stack` has brought the interface
/// up, with the file and key that say so where `writes`, what the stack's files say, has
/// them. `interface` is seen after that; what was made before had been read back.
pub fn overwritten(
    wanted: &WantedInterface,
    interface: &Interface,
    mtu_asked: Option<u32>,
    stack: Option<StackName>,
    writes: &[StackSetting],
) -> Vec<String> {
    let name = &interface.name;
    let by = stack.map_or_else(|| "its network stack".to_owned(), |stack| stack.to_string());
    let lost = |asked: SettingValue| {
        let source = writes.iter().find(|w| {
            against(wanted, interface, w.value) == Some(asked)
                && now(interface, w.value) == Some(w.value)
        });
        lost(interface, asked, &by, source)
    };
    let mut told = Vec::new();
    for step in iface_plan(wanted, interface, &[], &[], mtu_asked).steps {
        match step {
            IfaceStep::SetMode { mode } => told.push(lost(SettingValue::Mode(mode))),
            // Written again after a mode only; the fabric holds a datagram MTU down.
            IfaceStep::SetMtu { mtu } if interface.mtu == Some(mtu) => {}
            IfaceStep::SetMtu { mtu } => told.push(lost(SettingValue::Mtu(mtu))),
            IfaceStep::SetUmcast { umcast } => told.push(format!(
                "{name}: umcast is {} since {by} brought the interface up, but {} is configured",
                u8::from(!umcast),
                u8::from(umcast),
            )),
            IfaceStep::Rename { .. } | IfaceStep::AddChild { .. } => {}
        }
    }
    // A smaller one that the stack wrote looks like one that the fabric allows.
    let held = writes.iter().filter(|w| {
        matches!(w.value, SettingValue::Mtu(_)) && now(interface, w.value) == Some(w.value)
    });
    if let Some(asked) = held.filter_map(|w| against(wanted, interface, w.value)).next()
        && told.is_empty()
    {
        told.push(lost(asked));
    }
    told
}

/// Whether the P_Key children of a netdev count for the rung of its port, beside those that
/// ibprov is to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// They do not: what creates them, and their own runs of iface, may wait for who asks.
    Excused,
    /// Those that network stacks create and those whose settings could not be made do.
    Counted,
}

/// Judge the rung `configured` of ports that are named and have to reach it.
/// With that it is known which ports are ready, and so which may be missing by
/// `boot.at-least`. Gives the interfaces whose settings nobody has made yet.
pub fn judge_settings(
    config: &Config,
    seen: &Interfaces,
    ports: &mut [PortProgress],
    facts: &mut KernelLogFacts,
    children: Children,
) -> Vec<(IfName, u32)> {
    let mut open = Vec::new();
    for port in ports.iter_mut() {
        if port.goal != Rung::Configured || port.reached != Some(Rung::Named) {
            continue;
        }
        let Some(netdev) = port.netdev.clone() else { continue };
        match settings(config, seen, &netdev) {
            Settings::Awaited(why) if children == Children::Counted => {
                facts.unset.insert(netdev, why);
            }
            Settings::Made | Settings::Awaited(_) => {
                let unset = match children {
                    Children::Excused => None,
                    Children::Counted => unset_child(config, seen, &netdev),
                };
                if let Some(unset) = unset {
                    facts.unset.insert(netdev, unset);
                    continue;
                }
                facts.unset.remove(&netdev);
                port.reached = Some(Rung::Configured);
            }
            Settings::Left(why) => {
                facts.unset.insert(netdev, why);
            }
            Settings::Gone => {}
            // boot waits for the run that makes the others.
            Settings::Open { refused: Some(why), .. } if children == Children::Counted => {
                facts.unset.insert(netdev, why);
            }
            Settings::Open { ifindex, .. } => {
                if facts.unset.get(&netdev).is_none_or(|unset| unset.in_use || !unset.is_final) {
                    let interface = seen.all.iter().find(|i| i.name == netdev);
                    let steps = interface.map(|interface| planned(config, seen, interface).1.steps);
                    let unset = Cause::not_made_yet(&netdev, &steps.unwrap_or_default());
                    facts.unset.insert(netdev.clone(), unset);
                }
                open.push((netdev, ifindex));
            }
        }
    }
    progress::excuse_beyond(config.boot.at_least.as_ref(), ports);
    open
}

/// The interface that is to have `child` as its P_Key child, and has not.
pub fn parent_of_missing(config: &Config, seen: &Interfaces, child: &IfName) -> Option<IfName> {
    let adds = |step: &IfaceStep| matches!(step, IfaceStep::AddChild { name, .. } if name == child);
    let parent = seen.all.iter().find(|i| planned(config, seen, i).1.steps.iter().any(adds));
    parent.map(|parent| parent.name.clone())
}

/// The first P_Key child of `parent` whose settings are not as configured, and why.
fn unset_child(config: &Config, seen: &Interfaces, parent: &IfName) -> Option<Cause> {
    let parent = seen.all.iter().find(|i| i.name == *parent)?.ifindex;
    let mut children = seen.all.iter().filter(|i| i.parent == Some(parent));
    children.find_map(|child| match settings(config, seen, &child.name) {
        Settings::Left(why) | Settings::Open { refused: Some(why), .. } => Some(why),
        // The mode of one that was made by netlink is not seen here, so that its settings are
        // open for ever.
        Settings::Open { refused: None, .. } => child.mode.map(|_| {
            let text = format!("the settings of {} are not as configured", child.name);
            Cause { is_final: false, ..Cause::not_made(&child.name, text) }
        }),
        Settings::Made | Settings::Awaited(_) | Settings::Gone => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Problems, Source, resolve};
    use crate::host::Root;
    use crate::host::testing::tree;
    use crate::model::Use;
    use crate::model::advice::ToDo;
    use crate::model::iface::DeferredSettings;
    use crate::model::node::Standing;
    use crate::names::{Moment, PKey};
    use crate::observe::Observed;
    use crate::observe::ipoib::{Interface, StackChild};

    const STACK: StackName = StackName::new("network-manager", "NetworkManager");

    /// ib0 as `mode` and `mtu` show it, what the text wants of it, and what the stack's
    /// file says.
    fn seen(text: &str, mode: Mode, mtu: u32) -> (WantedInterface, Interface) {
        let interface =
            Interface { mode: Some(mode), mtu: Some(mtu), up: true, ..Interface::ib0() };
        let source = Source { path: "/etc/x.toml".to_owned(), text: text.to_owned() };
        let config = resolve(vec![source], Problems::default()).expect("configuration").config;
        let wanted = wanted(&config.interfaces, &interface, &[]);
        (wanted, interface)
    }

    fn says(value: SettingValue) -> StackSetting {
        StackSetting { value, file: "/etc/p".to_owned(), key: "key", by_default: false }
    }

    const OPEN: Settings = Settings::Open { ifindex: 3, refused: None };

    const CONNECTED: &str =
        "[[interface]]\nmatch.name = \"*\"\nmode = \"connected\"\nmtu = 65520\n";

    #[test]
    fn what_the_stack_has_written_over_is_told_with_its_file() {
        let (wanted, now) = seen(CONNECTED, Mode::Datagram, 2044);
        let writes = [says(SettingValue::Mode(Mode::Datagram))];
        let told = overwritten(&wanted, &now, Some(65520), Some(STACK), &writes);
        assert_eq!(
            told,
            [
                "ib0: transport mode is datagram since NetworkManager brought the interface up, but \"connected\" is configured: key in /etc/p says datagram: change that, or mode in the configuration",
                "ib0: MTU is 2044 since NetworkManager brought the interface up, but 65520 is configured: no known file of this network stack has this setting: look for a script or a hook",
            ]
        );
        let (wanted, kept) = seen(CONNECTED, Mode::Connected, 65520);
        assert_eq!(overwritten(&wanted, &kept, Some(65520), Some(STACK), &writes), [""; 0]);
    }

    #[test]
    fn an_mtu_that_the_fabric_holds_down_is_not_one_that_the_stack_wrote() {
        let (wanted, now) =
            seen("[[interface]]\nmatch.name = \"*\"\nmtu = 4092\n", Mode::Datagram, 2044);
        let with = |writes: &[StackSetting]| overwritten(&wanted, &now, Some(4092), None, writes);
        assert_eq!(with(&[]), [""; 0]);
        assert_eq!(with(&[says(SettingValue::Mtu(4092))]), [""; 0]);
        let told = with(&[says(SettingValue::Mtu(2044))]);
        assert!(told[0].contains("key in /etc/p says 2044"), "{told:?}");
    }

    #[test]
    fn a_contradiction_is_foreseen_only_where_something_is_wanted() {
        let on = |omni_path, text: &str, value| {
            let (wanted, now) = seen(text, Mode::Datagram, 2044);
            let interface = Interface { omni_path, ..now };
            contradictions(&interface, &wanted, [(STACK, &says(value))]).len()
        };
        let with = |text: &str, value| on(false, text, value);
        let (datagram, connected) =
            (SettingValue::Mode(Mode::Datagram), SettingValue::Mode(Mode::Connected));
        assert_eq!((with(CONNECTED, datagram), with(CONNECTED, connected)), (1, 0));
        assert_eq!(
            (with(CONNECTED, SettingValue::Mtu(2044)), with(CONNECTED, SettingValue::Mtu(65520))),
            (1, 0)
        );
        let mtu = "[[interface]]\nmatch.name = \"*\"\nmtu = 65520\n";
        assert_eq!((with(mtu, datagram), with(mtu, connected)), (1, 0), "the mode takes it down");
        let large = mtu.replace("65520", "10236");
        assert_eq!((on(false, &large, datagram), on(true, &large, datagram)), (1, 0), "Omni-Path");
        let umcast = "[[interface]]\nmatch.name = \"*\"\numcast = true\n";
        assert_eq!(with(umcast, datagram), 0);
    }

    #[test]
    fn what_is_in_use_is_deferred_by_a_look_or_by_what_a_run_has_found() {
        let files = [
            ("sys/class/net/ib0/ifindex", "3\n"),
            ("sys/class/net/ib0/type", "32\n"),
            ("sys/class/net/ib0/mtu", "2044\n"),
            ("sys/class/net/ib0/flags", "0x1003\n"),
        ];
        let dir = tree(&files, &[]);
        let mut seen = Interfaces::look(&Root::copy_at(dir.path()).expect("root"));
        let config = |mtu: u32| {
            let text = format!("[[interface]]\nmatch.name = \"ib0\"\nmtu = {mtu}\n");
            let source = Source { path: "/etc/x.toml".to_owned(), text };
            resolve(vec![source], Problems::default()).expect("configuration").config
        };
        let name: IfName = "ib0".parse().expect("name");
        // Its first setting in this boot interrupts its traffic as any other.
        assert_eq!(to_be_asked(&config(1500), &seen), [(3, name.clone())]);
        assert_eq!(settings(&config(1500), &seen, &name), OPEN);
        let blank = IfaceReport::blank("ib0", Moment::START);
        let before = IfaceReport { configured: true, was_set: true, ifindex: 3, ..blank };
        seen.outcomes.insert(3, before.clone());
        assert_eq!(to_be_asked(&config(2044), &seen), []);
        assert_eq!(to_be_asked(&config(1500), &seen), [(3, name.clone())]);
        // Who does not ask leaves it open.
        assert_eq!(settings(&config(1500), &seen, &name), OPEN);
        let uses =
            vec![Use::Network { netdev: "ib0".to_owned(), what: "address 10.0.0.5/24".to_owned() }];
        seen.uses.insert(3, uses.clone());
        let deferred =
            |mtu| DeferredSettings { steps: vec![IfaceStep::SetMtu { mtu }], uses: uses.clone() };
        let in_use = |mtu| Settings::Left(Cause::deferred(&name, &deferred(mtu)));
        assert_eq!(settings(&config(1500), &seen, &name), in_use(1500));
        // A run has found the same.
        let found = IfaceReport { configured: false, deferred: Some(deferred(1500)), ..before };
        seen.outcomes.insert(3, found.clone());
        seen.uses.clear();
        assert_eq!(settings(&config(1500), &seen, &name), in_use(1500));
        assert_eq!(settings(&config(2044), &seen, &name), Settings::Made, "edited back");
        // By now nobody uses it.
        seen.uses.insert(3, Vec::new());
        assert_eq!(settings(&config(1500), &seen, &name), OPEN);
        // What has failed beside that says more.
        let failed = IfaceReport { failures: vec!["ib0: EBUSY".to_owned()], ..found };
        seen.outcomes.insert(3, failed);
        assert_eq!(
            settings(&config(1500), &seen, &name),
            Settings::Left(Cause::not_made(&name, "ib0: EBUSY".to_owned()))
        );
    }

    #[test]
    fn what_an_interface_cannot_have_is_refused_after_a_run_in_vain_too() {
        let files = [("sys/class/net/ib0/ifindex", "3\n"), ("sys/class/net/ib0/type", "32\n")];
        let dir = tree(&files, &[]);
        let mut seen = Interfaces::look(&Root::copy_at(dir.path()).expect("root"));
        seen.all[0].can_connect = false;
        seen.all[0].mode = Some(Mode::Datagram);
        let codes = |seen: &Interfaces, mtu: u32| {
            let text =
                format!("[[interface]]\nmatch.name = \"ib0\"\nmode = \"connected\"\nmtu = {mtu}\n");
            let source = Source { path: "/etc/x.toml".to_owned(), text };
            let config = resolve(vec![source], Problems::default()).expect("configuration").config;
            match settings(&config, seen, &seen.all[0].name) {
                Settings::Left(why) => why.all().map(|cause| cause.code).collect(),
                _ => Vec::new(),
            }
        };
        let refused = vec![Some(Code::SettingRefused); 2];
        assert_eq!(codes(&seen, 65520), refused);
        let failures = vec!["ib0: connected mode is configured".to_owned(), "ib0: MTU".to_owned()];
        seen.outcomes
            .insert(3, IfaceReport { failures, ..IfaceReport::blank("ib0", Moment::START) });
        assert_eq!(codes(&seen, 65520), refused);
        // What is left because of its use is said beside that.
        seen.outcomes.clear();
        seen.uses.insert(3, vec![Use::Network { netdev: "ib0".to_owned(), what: "x".to_owned() }]);
        let both = vec![Some(Code::SettingRefused), Some(Code::SettingDeferred)];
        assert_eq!(codes(&seen, 1500), both);
    }

    #[test]
    fn a_port_whose_settings_are_deferred_is_no_failure() {
        let deferred = DeferredSettings { steps: Vec::new(), uses: Vec::new() };
        let unset = Cause::deferred(&"ib0".parse().expect("name"), &deferred);
        let mut facts = KernelLogFacts::default();
        facts.unset.insert("ib0".parse().expect("name"), unset);
        let port = PortProgress::absent("0000:4b:00.0".to_owned(), Rung::Configured, String::new());
        let netdev = Some("ib0".parse().expect("name"));
        let pci = Some("0000:4b:00.0".parse().expect("address"));
        let port = PortProgress { pci, netdev, reached: Some(Rung::Named), ..port };
        let cause = crate::ladder::cause::cause(&port, &Observed::default(), &facts).expect("one");
        assert!(cause.is_final && cause.in_use, "{cause:?}");
        assert_eq!(port.standing(Some(&cause)), Standing::Excused);
        assert!(port.is_usable(Some(&cause)) && !port.is_usable(None));
        assert!(
            cause.advice.iter().any(|a| a.step == ToDo::run("ibprov iface ib0 --force")),
            "{cause:?}"
        );
    }

    /// A port was seen with a name that its netdev had only while two swapped theirs.
    #[test]
    fn a_netdev_that_has_just_been_renamed_is_not_configured() {
        let dir =
            tree(&[("sys/class/net/ib0/ifindex", "3\n"), ("sys/class/net/ib0/type", "32\n")], &[]);
        let seen = Interfaces::look(&Root::copy_at(dir.path()).expect("root"));
        let reached = |name: &str| {
            let goal = Rung::Configured;
            let port = PortProgress::absent("0000:4b:00.0".to_owned(), goal, String::new());
            let netdev = Some(name.parse().expect("name"));
            let mut ports = [PortProgress { netdev, reached: Some(Rung::Named), ..port }];
            judge_settings(
                &Config::default(),
                &seen,
                &mut ports,
                &mut KernelLogFacts::default(),
                Children::Counted,
            );
            ports[0].reached
        };
        assert_eq!(reached("ib0"), Some(Rung::Configured));
        assert_eq!(reached("ibprov3"), Some(Rung::Named));
    }

    /// Created by ibprov, it would not be set up.
    #[test]
    fn a_child_that_a_stack_creates_is_not_created_but_missed_once_the_stack_should_have() {
        let dir =
            tree(&[("sys/class/net/ib0/ifindex", "3\n"), ("sys/class/net/ib0/type", "32\n")], &[]);
        let mut seen = Interfaces::look(&Root::copy_at(dir.path()).expect("root"));
        let text =
            "[[interface]]\nmatch.name = \"ib0\"\n[[interface.partition]]\npkey = \"0x8001\"\n";
        let source = Source::new("t.toml".to_owned(), text.as_bytes().to_vec()).expect("a text");
        let config = resolve(vec![source], Problems::default()).expect("a configuration").config;
        let name: IfName = "ib0".parse().expect("name");
        assert_eq!(settings(&config, &seen, &name), OPEN);
        let pkey = PKey::new(0x8001).expect("P_Key");
        let file = "/etc/child.nmconnection".to_owned();
        seen.stack_children.push(StackChild { parent: 3, pkey, stack: STACK, file });
        let missing = "ib0: P_Key child 0x8001 does not exist yet; NetworkManager is to create it (/etc/child.nmconnection)".to_owned();
        let why = awaited(&name, vec![missing.clone()]).expect("one");
        assert_eq!(settings(&config, &seen, &name), Settings::Awaited(why));
        let judged = |children| {
            let goal = Rung::Configured;
            let port = PortProgress::absent("0000:4b:00.0".to_owned(), goal, String::new());
            let port =
                PortProgress { netdev: Some(name.clone()), reached: Some(Rung::Named), ..port };
            let (mut ports, mut facts) = ([port], KernelLogFacts::default());
            let open = judge_settings(&config, &seen, &mut ports, &mut facts, children);
            assert_eq!(open, []);
            (ports[0].reached, facts.unset.remove(&name))
        };
        assert_eq!(judged(Children::Excused), (Some(Rung::Configured), None));
        let missed = (Some(Rung::Named), awaited(&name, vec![missing]));
        assert_eq!(judged(Children::Counted), missed);
    }

    #[test]
    fn a_child_whose_settings_could_not_be_made_counts_in_status() {
        let child = "sys/class/net/ib0.8001";
        let files = [
            ("sys/class/net/ib0/ifindex".to_owned(), "3\n"),
            ("sys/class/net/ib0/type".to_owned(), "32\n"),
            (format!("{child}/ifindex"), "7\n"),
            (format!("{child}/iflink"), "3\n"),
            (format!("{child}/type"), "32\n"),
            (format!("{child}/umcast"), "0\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let dir = tree(&files, &[]);
        let mut seen = Interfaces::look(&Root::copy_at(dir.path()).expect("root"));
        let text = "[[interface]]\nmatch.name = \"ib0\"\n[[interface.partition]]\npkey = \"0x8001\"\numcast = true\n";
        let source = Source { path: "/etc/x.toml".to_owned(), text: text.to_owned() };
        let config = resolve(vec![source], Problems::default()).expect("configuration").config;
        let pkey = PKey::new(0x8001);
        seen.all.iter_mut().filter(|i| i.parent.is_some()).for_each(|i| i.pkey = pkey);
        let judged = |seen: &Interfaces, children| {
            let goal = Rung::Configured;
            let port = PortProgress::absent("0000:4b:00.0".to_owned(), goal, String::new());
            let netdev = Some("ib0".parse().expect("name"));
            let port = PortProgress { netdev, reached: Some(Rung::Named), ..port };
            let (mut ports, mut facts) = ([port], KernelLogFacts::default());
            judge_settings(&config, seen, &mut ports, &mut facts, children);
            (ports[0].reached, facts.unset.into_values().next())
        };
        let ready = (Some(Rung::Configured), None);
        assert_eq!(judged(&seen, Children::Counted), ready, "its run is still to come");
        let mut outcome = IfaceReport::blank("ib0.8001", Moment::START);
        outcome.failures.push("ib0.8001: umcast: EBUSY".to_owned());
        seen.outcomes.insert(7, outcome);
        let name: IfName = "ib0.8001".parse().expect("name");
        let failed = Cause::not_made(&name, "ib0.8001: umcast: EBUSY".to_owned());
        assert_eq!(judged(&seen, Children::Counted), (Some(Rung::Named), Some(failed)));
        assert_eq!(judged(&seen, Children::Excused), ready);
        let made = seen.all.iter_mut().filter(|i| i.parent.is_some());
        made.for_each(|i| i.umcast = Some(true));
        assert_eq!(judged(&seen, Children::Counted), ready, "it is as wanted by now");
    }

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
        assert_eq!(look(&[(up, "1f2e")]), OPEN);
    }

    /// Its job may be queued and nothing show of it: a run of `ibprov iface` has waited
    /// for that, and nobody else has.
    #[test]
    fn what_another_agent_may_still_begin_with_is_not_made_yet() {
        let name: IfName = "ib0".parse().expect("name");
        let look = |outcome: Option<&str>| {
            let mut files = vec![
                ("sys/class/net/ib0/ifindex", "3\n"),
                ("sys/class/net/ib0/type", "32\n"),
                ("etc/infiniband/openib.conf", ""),
                ("lib/systemd/system/mlnx_interface_mgr@.service", "[Service]\n"),
                ("lib/udev/rules.d/90-ib.rules", "RUN+=\"mlnx_interface_mgr@$name.service\"\n"),
            ];
            files.extend(outcome.map(|text| ("run/ibprov/ports/3.json", text)));
            let dir = tree(&files, &[]);
            let seen = Interfaces::look(&Root::copy_at(dir.path()).expect("root"));
            settings(&Config::default(), &seen, &name)
        };
        assert_eq!(look(None), OPEN);
        let after = |change: &dyn Fn(&mut IfaceReport)| {
            let mut outcome = IfaceReport::blank("ib0", Moment::START);
            outcome.ifindex = 3;
            change(&mut outcome);
            let text = outcome.to_report().to_json().expect("JSON");
            look(Some(&text))
        };
        assert_eq!(after(&|outcome| outcome.configured = true), Settings::Made);
        let why = "ib0: mlnx_interface_mgr@ib0.service is still configuring it";
        let in_vain = |outcome: &mut IfaceReport| {
            outcome.mlnx_interface_mgr_pending = true;
            outcome.failures.push(why.to_owned());
        };
        assert_eq!(after(&in_vain), Settings::Left(Cause::not_made(&name, why.to_owned())));
        // What failed then for another reason is as wanted now.
        let failed = |outcome: &mut IfaceReport| outcome.failures.push("ib0: EBUSY".to_owned());
        assert_eq!(after(&failed), Settings::Made);
    }
}
