//! Whether a VF is right for a guest to be started on it.

use crate::ladder::vf::{guids_are_untold, has_node_guids, vf_progress};
use crate::model::{VfLack, WantedVf, guests::VfState, listed, plan::Attribute};
use crate::names::{
    Guid, LinkLayer, PciAddress, Policy, VfDriver, VfName, VfNames, VfOwner, VfRung, is_vfio,
};
use crate::observe::ObservedPf;

/// A device that a guest needs, as far as a VF is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A VF by PF and index.
    Vf(VfName),
    /// The function that a domain has as hostdev, whatever it is.
    Function(PciAddress),
}

/// How the VF `name` of `pf` is. With a plan it has to be as planned; without,
/// it has to have GUIDs at its PF, and to show them.
pub fn judge(name: VfName, planned: Option<&WantedVf>, pf: &ObservedPf) -> VfState {
    let seen = pf.vf(name.index);
    let state = |reached, lacks: Option<String>| VfState {
        vf: Some(name),
        pci: seen.map(|vf| vf.pci),
        reached,
        lacks,
    };
    let wrong = |reached, lacks: &str| state(reached, Some(lacks.to_owned()));
    let climbed = |planned: &WantedVf| {
        let progress = vf_progress(planned, seen, pf);
        state(progress.reached, progress.lacks.map(|lack| lack.to_string()))
    };
    if !pf.present {
        return wrong(None, &absent(name.pf));
    }
    if pf.driver.is_none() {
        return wrong(None, &format!("no driver is bound to the PF {}", name.pf));
    }
    let Some(seen) = seen else { return wrong(None, &VfLack::Absent.to_string()) };
    // A VF of an Ethernet port has no GUIDs that anybody would have to set.
    if pf.link_layer == Some(LinkLayer::Ethernet) {
        return state(Some(VfRung::Created), None);
    }
    if let Some(planned) = planned {
        return climbed(planned);
    }
    if seen.admin.policy == Some(Policy::Down) {
        return wrong(Some(VfRung::Created), "the link state is set to down");
    }
    let set = |guid: Option<Guid>, which: Attribute| match guid {
        None => Err(format!("the {which} at the PF cannot be read")),
        Some(guid) if guid.is_zero() => Err(format!("the {which} is not set")),
        Some(guid) => Ok(guid),
    };
    // Where the kernel does not tell, it shows them itself, or nobody knows them.
    let (node, port) = if guids_are_untold(seen) {
        seen.own.as_ref().map_or((None, None), |own| (own.node_guid, own.port_guid))
    } else {
        (seen.admin.node_guid, seen.admin.port_guid)
    };
    let node =
        if has_node_guids(&pf.backend) { set(node, Attribute::NodeGuid) } else { Ok(Guid::new(0)) };
    let (node_guid, port_guid) = match (node, set(port, Attribute::PortGuid)) {
        (Ok(node), Ok(port)) => (node, port),
        (node, port) => {
            let lacks: Vec<String> = node.err().into_iter().chain(port.err()).collect();
            return wrong(Some(VfRung::Created), &listed(&lacks));
        }
    };
    let driver = match seen.driver.as_deref() {
        None => {
            let why = "no driver is bound to the VF: the probe has failed, or the VF was not bound";
            return wrong(Some(VfRung::Guid), why);
        }
        Some(driver) if is_vfio(driver) => VfDriver::VfioPci,
        Some(_) => VfDriver::Host,
    };
    let port2_guid = seen.admin.port2.and_then(|port| port.guid);
    climbed(&WantedVf {
        index: name.index,
        node_guid,
        port_guid,
        port2_guid: port2_guid.filter(|guid| !guid.is_zero()),
        policy: seen.admin.policy.unwrap_or(Policy::Follow),
        policy_named: false,
        driver,
        owner: VfOwner::Plan,
        guids_from: String::new(),
        names: VfNames::default(),
    })
}

/// That the PF of a VF does not exist.
pub(super) fn absent(pf: PciAddress) -> String {
    format!("the PF {pf} is absent")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::fixtures;
    use crate::names::Administered;
    use crate::observe::{Backend, ObservedVf, VfDevices};

    const NODE: Guid = Guid::new(0x0200_0000_0000_0001);
    const PORT: Guid = Guid::new(0x0200_0000_0000_0101);

    fn name() -> VfName {
        "0000:4b:00.0/0".parse().expect("name")
    }

    fn pf() -> ObservedPf {
        fixtures::right(&fixtures::wanted(&[VfDriver::Host]))
    }

    fn lacks(change: impl FnOnce(&mut ObservedPf)) -> String {
        let mut pf = pf();
        change(&mut pf);
        judge(name(), None, &pf).lacks.unwrap_or_default()
    }

    #[test]
    fn a_vf_that_shows_what_its_pf_administers_is_right() {
        let state = judge(name(), None, &pf());
        assert_eq!((state.reached, state.lacks), (Some(VfRung::Verified), None));
    }

    #[test]
    fn the_variant_driver_for_migration_is_vfio_too() {
        let mut pf = pf();
        pf.vfs[0].driver = Some("mlx5_vfio_pci".to_owned());
        pf.vfs[0].own = None;
        let state = judge(name(), None, &pf);
        assert_eq!((state.reached, state.lacks), (Some(VfRung::HandedOver), None));
    }

    #[test]
    fn a_vf_at_vfio_needs_its_guids_and_policy_at_the_pf() {
        let vfio = |change: fn(&mut Administered)| {
            lacks(|pf| {
                pf.vfs[0].driver = Some("vfio-pci".to_owned());
                pf.vfs[0].own = None;
                change(&mut pf.vfs[0].admin);
            })
        };
        assert_eq!(vfio(|_| ()), "");
        assert_eq!(vfio(|a| a.port_guid = Some(Guid::new(0))), "the port GUID is not set");
        assert_eq!(vfio(|a| a.node_guid = None), "the node GUID at the PF cannot be read");
        assert_eq!(vfio(|a| a.policy = Some(Policy::Down)), "the link state is set to down");
    }

    #[test]
    fn each_thing_that_is_missing_is_told() {
        assert!(lacks(|pf| pf.present = false).contains("is absent"));
        assert!(lacks(|pf| pf.driver = None).contains("no driver is bound"));
        assert_eq!(lacks(|pf| pf.vfs.clear()), "the VF does not exist");
        assert!(lacks(|pf| pf.vfs[0].driver = None).contains("the probe has failed"));
        let stale = lacks(|pf| pf.vfs[0].own.as_mut().expect("own").netdev_guid = Some(NODE));
        assert!(!stale.is_empty(), "a netdev with another GUID");
        let unread =
            |change: fn(&mut VfDevices)| lacks(|pf| change(pf.vfs[0].own.as_mut().expect("own")));
        assert!(unread(|o| o.node_guid = None).starts_with("the node GUID cannot be read"));
        assert!(unread(|o| o.port_guid = None).starts_with("the port GUID (GID 0) cannot be read"));
        assert!(unread(|o| o.netdev_guid = None).starts_with("the netdev's GUID cannot be read"));
    }

    #[test]
    fn where_the_kernel_tells_no_guids_a_vf_is_right_that_shows_some() {
        let untold = |change: fn(&mut ObservedVf)| {
            lacks(|pf| {
                pf.backend = Backend::Netlink { ifindex: Some(3) };
                pf.vfs[0].admin.node_guid = None;
                pf.vfs[0].admin.port_guid = None;
                change(&mut pf.vfs[0]);
            })
        };
        assert_eq!(untold(|_| ()), "");
        let unset = untold(|vf| vf.own.as_mut().expect("own").port_guid = Some(Guid::new(0)));
        assert_eq!(unset, "the port GUID is not set");
        let at_vfio = untold(|vf| (vf.driver, vf.own) = (Some("vfio-pci".to_owned()), None));
        assert!(at_vfio.contains("cannot be read"), "{at_vfio}");
        // Nothing at all is told of the VF: that is no old kernel.
        assert!(untold(|vf| vf.admin.is_answered = false).contains("cannot be read"));
    }

    #[test]
    fn with_a_plan_other_guids_are_wrong() {
        let planned = fixtures::wanted(&[VfDriver::Host]).vfs[0].clone();
        let planned = WantedVf { port_guid: Guid::new(7), ..planned };
        assert!(!judge(name(), Some(&planned), &pf()).is_right());
        let planned = WantedVf { port_guid: PORT, ..planned };
        assert!(judge(name(), Some(&planned), &pf()).is_right());
    }

    #[test]
    fn a_vf_of_an_ethernet_port_has_no_guid_to_wait_for() {
        let state = lacks(|pf| {
            pf.link_layer = Some(LinkLayer::Ethernet);
            pf.vfs[0].admin = Administered::default();
        });
        assert_eq!(state, "");
    }
}
