//! One interface: from the configuration's rules and what it is now to the
//! settings that differ.

use crate::config::{Config, InterfaceRule, InterfaceSelector, PartitionRule};
use crate::model::{
    Advice, Cause, ChildCreator, DeferredSettings, IfaceStep, ToDo, Use, WantedChild,
    WantedInterface,
};
use crate::names::{IfName, Mode, PKey, is_group_mtu, sh};
use crate::observe::ipoib::{Interface, StackChild};

/// What is to be done to one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IfacePlan {
    /// In this order.
    pub steps: Vec<IfaceStep>,
    /// What is not done, because the interface is in use.
    pub deferred: Option<DeferredSettings>,
    /// What is wanted and cannot be.
    pub refused: Vec<Cause>,
    /// The P_Key children that a network stack is still to create, one sentence each.
    pub awaited: Vec<String>,
    /// The MTU that it has, where the fabric's broadcast group allows less than is configured.
    pub group_mtu: Option<u32>,
}

impl IfacePlan {
    /// A step interrupts what is sent and received over the interface.
    pub fn interrupts(&self) -> bool {
        self.steps.iter().any(IfaceStep::interrupts)
    }

    /// Leave undone what interrupts what these `uses` stand for, if there are any.
    pub fn defer(&mut self, uses: Vec<Use>) {
        let steps: Vec<IfaceStep> = if uses.is_empty() {
            Vec::new()
        } else {
            self.steps.extract_if(.., |step| step.interrupts()).collect()
        };
        self.deferred = (!steps.is_empty()).then_some(DeferredSettings { steps, uses });
    }
}

/// What the rules want of `interface`. A rule for a port's interface holds for its P_Key
/// children too, but for its name and those children; what it says of one P_Key comes
/// before what it says of all. Of the P_Key children, `of_stacks` are created by others.
pub fn wanted(
    rules: &[InterfaceRule],
    interface: &Interface,
    of_stacks: &[StackChild],
) -> WantedInterface {
    let mut wanted = WantedInterface::default();
    if withholds(rules, interface) {
        return wanted;
    }
    for rule in rules.iter().filter(|rule| applies(&rule.which, interface)) {
        wanted.mode = rule.mode.or(wanted.mode);
        wanted.mtu = rule.mtu.or(wanted.mtu);
        wanted.umcast = rule.umcast.or(wanted.umcast);
        wanted.receive_queue = rule.receive_queue.or(wanted.receive_queue);
        wanted.send_queue = rule.send_queue.or(wanted.send_queue);
        if interface.parent.is_none() {
            for PartitionRule { pkey, name, .. } in &rule.partitions {
                match wanted.partitions.iter_mut().find(|child| child.pkey == *pkey) {
                    Some(child) => child.name = name.clone().or(child.name.take()),
                    None => {
                        let created_by = of_stacks
                            .iter()
                            .find(|c| c.parent == interface.ifindex && c.pkey == *pkey)
                            .map(|c| ChildCreator {
                                stack: c.stack.to_string(),
                                file: c.file.clone(),
                            });
                        let child = WantedChild { pkey: *pkey, name: name.clone(), created_by };
                        wanted.partitions.push(child);
                    }
                }
            }
            wanted.name = rule.name.clone().or(wanted.name);
        } else if let Some(own) = rule.partitions.iter().find(|p| Some(p.pkey) == interface.pkey) {
            wanted.mode = own.mode.or(wanted.mode);
            wanted.mtu = own.mtu.or(wanted.mtu);
            wanted.umcast = own.umcast.or(wanted.umcast);
            wanted.name = own.name.clone().or(wanted.name);
        }
        // One row may match in two ways.
        if wanted.origins.last() != Some(&rule.origin) {
            wanted.origins.push(rule.origin.clone());
        }
    }
    wanted.partitions.sort_unstable_by_key(|child| child.pkey);
    wanted
}

/// A rule for `interface` has an error, or may be for it, so that none is carried out.
pub fn is_withheld(config: &Config, interface: &Interface) -> bool {
    config.withheld.has_all_interfaces() || withholds(&config.interfaces, interface)
}

fn withholds(rules: &[InterfaceRule], interface: &Interface) -> bool {
    rules.iter().any(|rule| rule.is_withheld && applies(&rule.which, interface))
}

/// What the rules want of `interface` concerns other interfaces too: names that may be
/// taken, P_Key children that may be there.
pub fn concerns_others(rules: &[InterfaceRule], interface: &Interface) -> bool {
    let wanted = wanted(rules, interface, &[]);
    !wanted.partitions.is_empty() || wanted.name.is_some_and(|name| name != interface.name)
}

fn applies(which: &InterfaceSelector, interface: &Interface) -> bool {
    match which {
        InterfaceSelector::Name(pattern) => {
            let own = match interface.parent {
                None => Some(&interface.name),
                Some(_) => interface.parent_name.as_ref(),
            };
            let altnames = interface.altnames.iter().filter(|_| pattern.is_name());
            own.into_iter().chain(altnames).any(|name| pattern.matches(name))
        }
        InterfaceSelector::PortGuid(guid) => interface.guid == Some(*guid),
        InterfaceSelector::Pci(pci, port) => {
            interface.pci == Some(*pci) && port.is_none_or(|p| interface.port == Some(p))
        }
    }
}

/// The step that gives `interface` its persistent name; none if it has that or has none
/// to get. udev gives it, unless the interface was made before its rule was there: in
/// the initramfs, or by who loads the driver before `ibprov boot`.
///
/// Who bears the name gives way only if it is down and `rules` give it another one.
///
/// # Errors
/// It cannot be renamed: why, and what to do.
pub fn rename(
    rules: &[InterfaceRule],
    interface: &Interface,
    all: &[Interface],
    names: &[String],
) -> Result<Option<IfaceStep>, Cause> {
    let other = |i: &Interface| wanted(rules, i, &[]).name.filter(|n| *n != i.name);
    let Some(to) = other(interface) else { return Ok(None) };
    let name = &interface.name;
    let here = sh(name.as_str());
    if interface.up {
        return Err(Cause::refused(
            name,
            &format!(
                "its configured name is {to}, but an interface that is up is not renamed (Linux before 6.2 cannot): it was created and brought up before `ibprov boot` (in the initramfs, or because the driver was loaded earlier)"
            ),
            Advice::now(ToDo::run(format!("ip link set {here} down && ibprov iface {here}"))),
        ));
    }
    if !names.iter().any(|n| n == to.as_str()) {
        return Ok(Some(IfaceStep::Rename { to, aside: None }));
    }
    let holder = all.iter().find(|i| i.name == to);
    match holder {
        Some(holder) if !holder.up && other(holder).is_some() => {
            Ok(Some(IfaceStep::Rename { to, aside: Some(holder.ifindex) }))
        }
        Some(holder) if other(holder).is_some() => Err(Cause::refused(
            name,
            &format!(
                "its configured name is {to}, which is the name of another interface that is up"
            ),
            Advice::now(ToDo::run(format!(
                "ip link set {to} down && ibprov iface {to} && ibprov iface {here}"
            ))),
        )),
        _ => Err(Cause::refused(
            name,
            &format!("its configured name is {to}, which is the name of another interface"),
            Advice::permanent(
                "set a name for that one too (interface.name), or choose a name that the kernel does not use",
            ),
        )),
    }
}

/// Whether `all` has a child of `interface` with this P_Key. By P_Key, not by name: old and
/// new kernels call the child of 0x000a differently, and so do their users.
pub fn has_child(interface: &Interface, all: &[Interface], pkey: PKey) -> bool {
    all.iter().any(|child| child.parent == Some(interface.ifindex) && child.pkey == Some(pkey))
}

/// The steps that make `interface` as `wanted`: none for what is so already.
///
/// `all` are all IPoIB interfaces, `names` the names that are taken;
/// `mtu_asked` the MTU that was written to this interface before, if any.
pub fn iface_plan(
    wanted: &WantedInterface,
    interface: &Interface,
    all: &[Interface],
    names: &[String],
    mtu_asked: Option<u32>,
) -> IfacePlan {
    let mut plan = IfacePlan::default();
    let name = &interface.name;
    let mut mode = interface.mode;
    let mut switches = false;
    match wanted.mode {
        Some(Mode::Connected) if !interface.can_connect => plan.refused.push(Cause::refused(
            name,
            "connected mode is configured, but the driver does not support it (the hardware address is that of enhanced IPoIB of mlx5, or of MLNX_OFED 23.07 and later)",
            Advice::permanent("set mode = \"datagram\", or load ib_ipoib with ipoib_enhanced=0 if that parameter exists"),
        )),
        Some(asked) if interface.mode != Some(asked) => {
            plan.steps.push(IfaceStep::SetMode { mode: asked });
            mode = Some(asked);
            switches = true;
        }
        _ => {}
    }
    if let Some(mtu) = wanted.mtu {
        let limit = mode.unwrap_or(Mode::Connected).largest_mtu(interface.omni_path);
        // In datagram mode the kernel takes an MTU that the link can have, and
        // applies it only as far as the broadcast group allows.
        let may_be_held = mode == Some(Mode::Datagram) && mtu_asked == Some(mtu);
        let held = interface.mtu.filter(|now| may_be_held && *now < mtu && is_group_mtu(*now));
        plan.group_mtu = held;
        if mtu > limit {
            let word = mode.map_or("this", Mode::word);
            let or = if interface.can_connect && mtu <= Mode::Connected.largest_mtu(false) {
                ", or mode = \"connected\" too"
            } else {
                ""
            };
            plan.refused.push(Cause::refused(
                name,
                &format!(
                    "an MTU of {mtu} is configured, but the maximum in {word} mode is {limit}"
                ),
                Advice::permanent(format!("set mtu to {limit} or less{or}")),
            ));
        } else if switches || interface.mtu != Some(mtu) && held.is_none() {
            // A change of mode changes the MTU too.
            plan.steps.push(IfaceStep::SetMtu { mtu });
        }
    }
    if let Some(umcast) = wanted.umcast
        && interface.umcast != Some(umcast)
    {
        plan.steps.push(IfaceStep::SetUmcast { umcast });
    }
    let mut taken: Vec<String> = names.to_vec();
    for WantedChild { pkey, name: given, created_by } in &wanted.partitions {
        if interface.pkey == Some(*pkey) || has_child(interface, all, *pkey) {
            continue;
        }
        if let Some(ChildCreator { stack, file }) = created_by {
            plan.awaited.push(format!(
                "{name}: P_Key child {pkey} does not exist yet; {stack} is to create it ({file})"
            ));
            continue;
        }
        match given.clone().or_else(|| child_name(name, *pkey)) {
            Some(child) if !taken.iter().any(|t| t == child.as_str()) => {
                taken.push(child.as_str().to_owned());
                plan.steps.push(IfaceStep::AddChild { pkey: *pkey, name: child });
            }
            child => {
                let why = match child {
                    Some(child) => {
                        format!("would be named {child}, but another interface has that name")
                    }
                    None => "has no possible name".to_owned(),
                };
                plan.refused.push(Cause::refused(
                    name,
                    &format!("P_Key child {pkey} {why}"),
                    Advice::permanent("choose a name (interface.partition.name)"),
                ));
            }
        }
    }
    plan
}

/// The name of a P_Key child, as the kernel makes it for `create_child`: the
/// first 10 characters of its parent's, a dot, the P_Key in hex.
fn child_name(parent: &IfName, pkey: PKey) -> Option<IfName> {
    let head = parent.as_str();
    // A name is cut between characters, at 10 bytes at most.
    let end = (0..=head.len().min(10)).rev().find(|end| head.is_char_boundary(*end))?;
    format!("{}.{:04x}", head.get(..end)?, pkey.value()).parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{Problems, Source, resolve};

    const NAMED: &str = "[[interface]]\nmatch.port-guid = \"0002:c903:000e:8acd\"\nname = \"ib0\"\n[[interface]]\nmatch.port-guid = \"0002:c903:000e:8ace\"\nname = \"ib1\"\n";

    fn one(name: &str, ifindex: u32, guid: u64, up: bool) -> Interface {
        Interface { guid: Some(crate::names::Guid::new(guid)), up, ..interface(name, ifindex) }
    }

    fn renamed(all: &[Interface], which: usize) -> String {
        let names: Vec<String> =
            all.iter().map(|i| i.name.to_string()).chain(["lo".to_owned()]).collect();
        match rename(&rules(NAMED), &all[which], all, &names) {
            Ok(step) => step.map(|s| s.to_string()).unwrap_or_default(),
            Err(why) => why.sentence(),
        }
    }

    #[test]
    fn one_that_is_down_gets_its_persistent_name() {
        let (first, second) = (0x0002_c903_000e_8acd, 0x0002_c903_000e_8ace);
        assert_eq!(renamed(&[one("ib0", 3, first, true)], 0), "");
        assert_eq!(renamed(&[one("ib5", 3, first, false)], 0), "rename to ib0");
        assert!(renamed(&[one("ib5", 3, first, true)], 0).contains("ip link set ib5 down"));
        // Each has the other's name.
        let swapped = [one("ib1", 3, first, false), one("ib0", 4, second, false)];
        let want = "rename to ib0, after the interface of that name has been renamed to ibprov4";
        assert_eq!(renamed(&swapped, 0), want);
        let up = [one("ib1", 3, first, false), one("ib0", 4, second, true)];
        assert!(renamed(&up, 0).contains("ip link set ib0 down && ibprov iface ib0"));
        // Nobody gives this one another name.
        let foreign = [one("ib1", 3, first, false), one("ib0", 4, 7, false)];
        assert!(renamed(&foreign, 0).contains("is the name of another interface"));
        // A P_Key child keeps its own.
        let child = Interface { parent: Some(3), ..one("ib0.8001", 5, first, false) };
        assert_eq!(renamed(&[child], 0), "");
    }

    fn rules(text: &str) -> Vec<InterfaceRule> {
        let source = Source { path: "/etc/x.toml".to_owned(), text: text.to_owned() };
        resolve(vec![source], Problems::default()).expect("configuration").config.interfaces
    }

    fn interface(name: &str, ifindex: u32) -> Interface {
        Interface { name: name.parse().expect("name"), ifindex, ..Interface::ib0() }
    }

    fn child(name: &str, ifindex: u32, parent: u32, pkey: u16) -> Interface {
        Interface {
            parent: Some(parent),
            parent_name: "ib0".parse().ok(),
            pkey: PKey::new(pkey),
            mode: None,
            umcast: None,
            ..interface(name, ifindex)
        }
    }

    fn planned(text: &str, of: &Interface, all: &[Interface]) -> (Vec<String>, Vec<String>) {
        let names: Vec<String> = all.iter().map(|i| i.name.to_string()).collect();
        let plan = iface_plan(&wanted(&rules(text), of, &[]), of, all, &names, None);
        let refused = plan.refused.iter().map(Cause::sentence).collect();
        (plan.steps.iter().map(ToString::to_string).collect(), refused)
    }

    #[test]
    fn an_alternative_name_is_as_good_as_the_own_one() {
        let ib0 =
            Interface { altnames: vec!["ibp7s0".parse().expect("name")], ..interface("ib0", 3) };
        let is_meant = |pattern: &str| {
            let text = format!("[[interface]]\nmatch.name = \"{pattern}\"\nmtu = 2040\n");
            wanted(&rules(&text), &ib0, &[]).mtu.is_some()
        };
        assert!(is_meant("ib0") && is_meant("ib?") && is_meant("ibp7s0"));
        assert!(!is_meant("ibp7s1") && !is_meant("ibp*"), "of a pattern not all would be known");
    }

    #[test]
    fn only_what_differs_is_done_and_the_mtu_follows_the_mode() {
        let ib0 = interface("ib0", 3);
        let all = [ib0.clone()];
        let (steps, refused) = planned(
            "[[interface]]\nmatch.name = \"ib*\"\nmode = \"connected\"\nmtu = 65520\numcast = false\n",
            &ib0,
            &all,
        );
        assert_eq!(steps, ["set mode connected", "set MTU 65520"]);
        assert_eq!(refused, [""; 0]);
        let same =
            "[[interface]]\nmatch.name = \"*\"\nmode = \"datagram\"\nmtu = 2044\numcast = false\n";
        assert_eq!(planned(same, &ib0, &all).0, [""; 0]);
        let other = "[[interface]]\nmatch.name = \"eth*\"\nmtu = 4092\n";
        assert_eq!(planned(other, &ib0, &all).0, [""; 0], "not meant");
        let connected = Interface { mode: Some(Mode::Connected), mtu: Some(2044), ..ib0 };
        let back = "[[interface]]\nmatch.name = \"*\"\nmode = \"datagram\"\nmtu = 2044\n";
        let (steps, _) = planned(back, &connected, &all);
        assert_eq!(steps, ["set mode datagram", "set MTU 2044"], "a mode takes its own MTU along");
    }

    #[test]
    fn only_an_mtu_that_a_broadcast_group_can_have_is_the_fabrics_doing() {
        let rules = rules("[[interface]]\nmatch.name = \"*\"\nmtu = 2000\n");
        for (now, steps) in [(1020, 0), (2000, 0), (1500, 1)] {
            let mode = Some(Mode::Datagram);
            let ib0 = Interface { mode, mtu: Some(now), ..interface("ib0", 2) };
            let wanted = wanted(&rules, &ib0, &[]);
            let plan = iface_plan(&wanted, &ib0, &[], &[], Some(2000));
            assert_eq!(plan.steps.len(), steps, "{now}: {:?}", plan.steps);
        }
    }

    #[test]
    fn a_later_rule_counts_and_p_keys_add_up() {
        let text = "[[interface]]\nmatch.name = \"*\"\nmtu = 2000\npartition = [{ pkey = \"0x8001\" }]\n[[interface]]\nmatch.pci = \"0000:4b:00.0\"\nmatch.port = 1\nmtu = 1500\n[[interface]]\nmatch.port-guid = \"b859:9f03:0012:a480\"\npartition = [{ pkey = \"0x000a\" }]\n[[interface]]\nmatch.pci = \"0000:4b:00.0\"\nmatch.port = 2\nmtu = 1000\n";
        let ib0 = interface("ib0", 3);
        let (steps, _) = planned(text, &ib0, std::slice::from_ref(&ib0));
        assert_eq!(
            steps,
            [
                "set MTU 1500",
                "create P_Key child ib0.8001 (0x8001)",
                "create P_Key child ib0.800a (0x800a)"
            ]
        );
    }

    #[test]
    fn a_child_is_known_by_its_p_key_whatever_its_name() {
        let text = "[[interface]]\nmatch.name = \"ib0\"\npartition = [{ pkey = \"0x000a\" }, { pkey = \"0x8001\" }, { pkey = \"0xffff\" }]\n";
        let ib0 = interface("ib0", 3);
        let all = [ib0.clone(), child("ib0.000a", 7, 3, 0x800a), child("storage", 8, 3, 0x8001)];
        assert_eq!(planned(text, &ib0, &all).0, [""; 0]);
        // The same P_Key below another port is another interface.
        let all = [ib0.clone(), child("ib1.8001", 8, 4, 0x8001)];
        assert_eq!(planned(text, &ib0, &all).0.len(), 2);
    }

    #[test]
    fn children_of_long_names_are_called_as_the_kernel_does_and_do_not_collide() {
        let text = "[[interface]]\nmatch.name = \"ibp*\"\npartition = [{ pkey = \"0x8001\" }]\n";
        let parent = interface("ibp129s0f0np1", 3);
        let (steps, _) = planned(text, &parent, std::slice::from_ref(&parent));
        assert_eq!(steps, ["create P_Key child ibp129s0f0.8001 (0x8001)"]);
        let all = [parent.clone(), child("ibp129s0f0.8001", 9, 4, 0x8001)];
        let (steps, refused) = planned(text, &parent, &all);
        assert_eq!(steps, [""; 0]);
        assert!(refused[0].contains("another interface has that name"), "{refused:?}");
    }

    #[test]
    fn what_matches_an_interface_holds_for_its_children() {
        let all = [
            interface("ib0", 3),
            child("ib0.8001", 7, 3, 0x8001),
            child("storage", 8, 3, 0x8002),
            child("ib0.8003", 9, 3, 0x8003),
        ];
        for which in ["name = \"ib0\"", "port-guid = \"b859:9f03:0012:a480\"", "pci = \"4b:00.0\""]
        {
            let text = format!(
                "[[interface]]\nmatch.{which}\nmtu = 1500\n[[interface.partition]]\npkey = \"0x8001\"\nmtu = 2000\numcast = true\n[[interface.partition]]\npkey = \"0x8002\"\nname = \"ib0.lnet\"\n"
            );
            let steps = |at: usize| planned(&text, &all[at], &all).0;
            assert_eq!(steps(0), ["set MTU 1500"], "{which}: both children are there");
            assert_eq!(steps(1), ["set MTU 2000", "set umcast 1"], "{which}");
            assert_eq!(steps(2), ["set MTU 1500"], "{which}");
            assert_eq!(steps(3), ["set MTU 1500"], "{which}: nobody listed it");
            let name = rename(&rules(&text), &all[2], &all, &[]).map(|s| s.map(|s| s.to_string()));
            assert_eq!(name, Ok(Some("rename to ib0.lnet".to_owned())), "{which}");
            let new = planned(&text, &all[0], &all[..1]).0;
            let want = [
                "set MTU 1500",
                "create P_Key child ib0.8001 (0x8001)",
                "create P_Key child ib0.lnet (0x8002)",
            ];
            assert_eq!(new, want, "{which}");
        }
        // Not by its own name.
        let own = "[[interface]]\nmatch.name = \"ib0.8001\"\nmtu = 1500\n";
        assert_eq!(planned(own, &all[1], &all).0, [""; 0]);
    }

    #[test]
    fn what_cannot_be_is_refused_before_it_is_tried() {
        let enhanced = Interface { can_connect: false, ..interface("ib0", 3) };
        let text = "[[interface]]\nmatch.name = \"*\"\nmode = \"connected\"\nmtu = 65520\n";
        let (steps, refused) = planned(text, &enhanced, std::slice::from_ref(&enhanced));
        assert_eq!(steps, [""; 0]);
        assert!(refused[0].contains("the driver does not support it"), "{refused:?}");
        assert!(refused[1].contains("the maximum in datagram mode is 4092"), "{refused:?}");
        let text = "[[interface]]\nmatch.name = \"*\"\nmode = \"datagram\"\nmtu = 10236\n";
        let (steps, refused) = planned(text, &enhanced, std::slice::from_ref(&enhanced));
        assert_eq!((steps.len(), refused.len()), (0, 1), "{steps:?} {refused:?}");
        let opa = Interface { omni_path: true, ..enhanced };
        let (steps, refused) = planned(text, &opa, std::slice::from_ref(&opa));
        assert_eq!((steps, refused), (vec!["set MTU 10236".to_owned()], Vec::new()));
    }

    #[test]
    fn an_mtu_that_the_fabric_holds_down_is_not_written_again() {
        let ib0 = interface("ib0", 3);
        let wanted = wanted(&rules("[[interface]]\nmatch.name = \"*\"\nmtu = 4092\n"), &ib0, &[]);
        let steps = |asked| iface_plan(&wanted, &ib0, &[], &[], asked).steps.len();
        assert_eq!((steps(None), steps(Some(4092)), steps(Some(3000))), (1, 0, 1));
    }

    #[test]
    fn what_interrupts_the_traffic_of_one_in_use_is_left_undone() {
        let text = "[[interface]]\nmatch.name = \"ib0\"\nmode = \"connected\"\nmtu = 65520\numcast = true\n[[interface.partition]]\npkey = \"0x8001\"\n";
        let ib0 = Interface { up: true, ..interface("ib0", 3) };
        let planned = |uses: &[Use]| {
            let wanted = wanted(&rules(text), &ib0, &[]);
            let mut plan = iface_plan(&wanted, &ib0, std::slice::from_ref(&ib0), &[], None);
            plan.defer(uses.to_vec());
            let steps: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
            (steps.join(", "), plan.deferred.map(|deferred| deferred.sentence("ib0")))
        };
        let (others, all) = (
            "set umcast 1, create P_Key child ib0.8001 (0x8001)",
            "set mode connected, set MTU 65520, set umcast 1, create P_Key child ib0.8001 (0x8001)",
        );
        assert_eq!(planned(&[]), (all.to_owned(), None));
        let address =
            Use::Network { netdev: "ib0".to_owned(), what: "address 10.1.0.1/24".to_owned() };
        let left = "ib0 is in use: ib0 has address 10.1.0.1/24; deferred to the next boot: set mode connected, set MTU 65520";
        assert_eq!(planned(&[address]), (others.to_owned(), Some(left.to_owned())));
        // What is not known counts as use.
        let unknown = Use::Unknown { why: "RDMA netlink: EPERM".to_owned() };
        let left = planned(&[unknown]).1.expect("deferred");
        assert!(
            left.starts_with("ib0 may be in use: its use cannot be determined: RDMA"),
            "{left}"
        );
    }

    /// What the kernel makes of a step.
    fn apply(step: &IfaceStep, of: &mut Interface, all: &mut Vec<Interface>) {
        match step {
            IfaceStep::Rename { to, .. } => of.name = to.clone(),
            IfaceStep::SetMode { mode } => {
                of.mode = Some(*mode);
                of.mtu = Some(if *mode == Mode::Connected { 65520 } else { 2044 });
            }
            IfaceStep::SetMtu { mtu } => of.mtu = Some(*mtu),
            IfaceStep::SetUmcast { umcast } => of.umcast = Some(*umcast),
            IfaceStep::AddChild { pkey, name } => {
                let index = 100 + u32::try_from(all.len()).expect("few");
                all.push(child(name.as_str(), index, of.ifindex, pkey.value()));
            }
        }
    }

    proptest! {
        /// From any state, stopped after any step and begun anew, the plan ends,
        /// and what it ends with needs nothing more.
        #[test]
        fn a_plan_that_was_carried_out_leaves_nothing_to_do(
            mode in prop_oneof![Just(Mode::Datagram), Just(Mode::Connected)],
            mtu in prop_oneof![Just(2044_u32), Just(65520)],
            can_connect: bool,
            asked in proptest::option::of(prop_oneof![Just("datagram"), Just("connected")]),
            asked_mtu in proptest::option::of(72_u32..65520),
            stop_after in 0_usize..3,
            pkeys in proptest::collection::vec(1_u16..0x7fff, 0..4),
        ) {
            let mut text = "[[interface]]\nmatch.name = \"*\"\numcast = true\n".to_owned();
            text.extend(asked.map(|m| format!("mode = \"{m}\"\n")));
            if asked_mtu.is_some_and(|m| m <= 4092) || asked == Some("connected") {
                text.extend(asked_mtu.map(|m| format!("mtu = {m}\n")));
            }
            let pkeys: std::collections::BTreeSet<u16> = pkeys.into_iter().collect();
            text.extend(pkeys.iter().map(|p| format!("[[interface.partition]]\npkey = \"0x{p:04x}\"\n")));
            let mut of = Interface { mode: Some(mode), mtu: Some(mtu), can_connect, ..interface("ib0", 3) };
            let mut all = vec![of.clone()];
            let rules = rules(&text);
            for limit in [stop_after, usize::MAX] {
                let names: Vec<String> = all.iter().map(|i| i.name.to_string()).collect();
                let plan = iface_plan(&wanted(&rules, &of, &[]), &of, &all, &names, None);
                for step in plan.steps.iter().take(limit) {
                    apply(step, &mut of, &mut all);
                }
            }
            let names: Vec<String> = all.iter().map(|i| i.name.to_string()).collect();
            let rest = iface_plan(&wanted(&rules, &of, &[]), &of, &all, &names, None);
            // A switch to a mode that was stopped before its MTU is made good.
            prop_assert_eq!(rest.steps, vec![]);
        }
    }
}
