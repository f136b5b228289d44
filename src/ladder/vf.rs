//! What a PF's VFs shall be, how far each has climbed, and what it lacks.

use crate::model::{VfLack, WantedVf, pf::GuidAtPf, plan::Attribute};
use crate::names::{Administered, Guid, PortNumber, VFIO, VfDriver, VfOwner, VfRung, is_vfio};
use crate::observe::{Backend, ObservedPf, ObservedVf, VfDevices};

/// A port of a VF.
#[derive(Debug)]
pub struct PlannedPort {
    pub number: PortNumber,
    which: Attribute,
    pub planned: Guid,
    /// As the PF has it.
    pub is: Option<Guid>,
    /// As the subnet manager has granted it (mlx4).
    granted: Option<Guid>,
}

impl PlannedPort {
    fn not_granted(&self) -> Option<Guid> {
        self.granted.filter(|granted| *granted != self.planned)
    }
}

/// The ports of a VF for which there is a GUID, as the VF counts them: of `admin` it is known
/// whether it has a second one.
pub fn ports(vf: &WantedVf, admin: Administered) -> impl Iterator<Item = PlannedPort> + use<> {
    let first = PlannedPort {
        number: PortNumber::FIRST,
        which: Attribute::PortGuid,
        planned: vf.port_guid,
        is: admin.port_guid,
        granted: admin.granted,
    };
    let second = vf.port2_guid.zip(admin.port2).map(|(planned, port2)| PlannedPort {
        number: PortNumber::SECOND,
        which: Attribute::Port2Guid,
        planned,
        is: port2.guid,
        granted: port2.granted,
    });
    [first].into_iter().chain(second)
}

/// How far a VF is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfProgress {
    /// The highest rung below which none is missing.
    pub reached: Option<VfRung>,
    /// What is not as wanted, if something is.
    pub lacks: Option<VfLack>,
}

/// The rung that a VF is to reach, which has `reached` this one.
pub fn goal(vf: &WantedVf, reached: Option<VfRung>) -> VfRung {
    match vf.driver {
        // libvirt moves a VF there and back by itself.
        _ if reached == Some(VfRung::HandedOver) => VfRung::HandedOver,
        VfDriver::Host => VfRung::Verified,
        VfDriver::VfioPci => VfRung::HandedOver,
        VfDriver::None => VfRung::Guid,
    }
}

/// How far `vf` is. All three points of verification are judged here: what the
/// PF reads back, the RDMA device's node GUID and GID 0, the netdev's address.
pub fn vf_progress(vf: &WantedVf, seen: Option<&ObservedVf>, pf: &ObservedPf) -> VfProgress {
    let at = |reached, lacks| VfProgress { reached, lacks };
    let Some(seen) = seen else { return at(None, Some(VfLack::Absent)) };
    if has_other_guids(vf, seen, &pf.backend) || guids_are_hidden(seen, pf) {
        let lack = VfLack::GuidsAtPf(other_guids_at_pf(vf, seen, pf));
        return at(Some(VfRung::Created), Some(lack));
    }
    let is_left = is_left_to_cni(vf, seen);
    let not_granted = |port: PlannedPort| {
        let in_force = port.not_granted()?;
        Some(VfLack::NotGranted { planned: port.planned, in_force })
    };
    if let Some(lack) = ports(vf, seen.admin).filter(|_| !is_left).find_map(not_granted) {
        return at(Some(VfRung::Created), Some(lack));
    }
    let other_policy = match seen.admin.policy {
        _ if vf.owner == VfOwner::Cni => None,
        Some(policy) if has_node_guids(&pf.backend) && policy != vf.policy => {
            Some(VfLack::Policy { is: Some(policy), planned: vf.policy })
        }
        _ => None,
    };
    let target = wanted_driver(vf, pf);
    let driver = seen.driver.as_deref();
    if driver.is_some_and(is_vfio) && vf.driver != VfDriver::None {
        return at(Some(VfRung::HandedOver), other_policy);
    }
    if !has_driver(driver, target.as_deref()) {
        let lack = VfLack::Driver { is: seen.driver.clone(), planned: target };
        return at(Some(VfRung::Guid), Some(lack));
    }
    if target.is_none() {
        return at(Some(VfRung::Guid), other_policy);
    }
    let Some(own) = &seen.own else {
        let driver = driver.unwrap_or_default().to_owned();
        if seen.half_bound {
            return at(Some(VfRung::Bound), Some(VfLack::HalfBound { driver }));
        }
        if is_left {
            return at(Some(VfRung::Bound), None);
        }
        return at(Some(VfRung::Bound), Some(VfLack::NoRdmaDevice { driver }));
    };
    let other = shows_other(vf, seen, &pf.backend);
    if pf.ipoib && own.netdev.is_none() {
        if is_left {
            return at(Some(VfRung::Rdma), None);
        }
        return at(Some(VfRung::Rdma), Some(other.unwrap_or(VfLack::NoNetdev)));
    }
    match other.or_else(|| unread(own, &pf.backend).map(VfLack::Unread)) {
        Some(lack) => {
            at(Some(if own.netdev.is_some() { VfRung::Netdev } else { VfRung::Rdma }), Some(lack))
        }
        None => {
            let other_name = || other_name(vf, own).filter(|_| !is_left);
            at(Some(VfRung::Verified), other_policy.or_else(other_name))
        }
    }
}

/// A CNI plugin has given it other GUIDs than those of the plan, or parks it with all bits
/// set (ib-sriov-cni): its GUIDs, its link state and where its devices are is not for the
/// plan to say. One without a port GUID has not been given any yet.
pub fn is_left_to_cni(vf: &WantedVf, seen: &ObservedVf) -> bool {
    let shown = || seen.own.as_ref().and_then(|own| own.port_guid);
    let port = seen.admin.port_guid.or_else(shown);
    let is_given = port.is_some_and(|guid| !guid.is_zero() && guid != vf.port_guid);
    vf.owner == VfOwner::Cni && is_given
}

/// The first of its names that is not as wanted.
fn other_name(vf: &WantedVf, own: &VfDevices) -> Option<VfLack> {
    let name = |what, is: String, planned: String| {
        (is != planned).then_some(VfLack::Name { what, is, planned })
    };
    let netdev = vf.names.netdev.as_ref().zip(own.netdev.as_ref());
    let netdev = netdev
        .and_then(|(planned, is)| name(Attribute::Netdev, is.to_string(), planned.to_string()));
    let rdma = vf.names.rdma.as_ref();
    netdev.or_else(|| name(Attribute::RdmaDevice, own.rdma.to_string(), rdma?.to_string()))
}

/// It has its devices, under names that are not those it shall have: the first of them.
pub fn lacks_name(vf: &WantedVf, seen: &ObservedVf) -> Option<VfLack> {
    let own = seen.own.as_ref().filter(|_| !is_left_to_cni(vf, seen))?;
    other_name(vf, own)
}

/// The first GUID that cannot be read: it proves nothing.
const fn unread(own: &VfDevices, backend: &Backend) -> Option<Attribute> {
    if has_node_guids(backend) && own.node_guid.is_none() {
        Some(Attribute::NodeGuid)
    } else if own.port_guid.is_none() {
        Some(Attribute::PortGuid)
    } else if own.netdev.is_some() && own.netdev_guid.is_none() {
        Some(Attribute::NetdevGuid)
    } else {
        None
    }
}

/// What the PF administers that is not as planned.
fn other_guids_at_pf(vf: &WantedVf, seen: &ObservedVf, pf: &ObservedPf) -> Vec<GuidAtPf> {
    let other = |which, is: Option<Guid>, planned| {
        (is != Some(planned)).then_some(GuidAtPf { which, is, planned })
    };
    let node = has_node_guids(&pf.backend)
        .then(|| other(Attribute::NodeGuid, seen.admin.node_guid, vf.node_guid))
        .flatten();
    let ports = ports(vf, seen.admin).filter_map(|port| other(port.which, port.is, port.planned));
    node.into_iter().chain(ports).collect()
}

/// It may still get there by waiting: its driver is bound and the rest comes
/// by itself.
pub fn may_come(vf: &WantedVf, seen: &ObservedVf, pf: &ObservedPf) -> bool {
    let on_host = seen.driver.is_some() && seen.driver == pf.driver;
    if is_left_to_cni(vf, seen) {
        return false;
    }
    let lacks_device = seen.own.as_ref().is_none_or(|o| pf.ipoib && o.netdev.is_none());
    let lacks_grant = awaits_grant(vf, seen);
    let comes = on_host && lacks_device && !seen.half_bound;
    lacks_grant || vf.driver == VfDriver::Host && comes
}

/// Its alias GUID was asked of the subnet manager, which has not answered yet
/// (mlx4).
pub fn awaits_grant(vf: &WantedVf, seen: &ObservedVf) -> bool {
    let mut ports = ports(vf, seen.admin);
    ports.any(|port| port.is == Some(port.planned) && port.not_granted().is_some())
}

/// The driver that a VF shall have.
pub fn wanted_driver(vf: &WantedVf, pf: &ObservedPf) -> Option<String> {
    match vf.driver {
        VfDriver::Host => pf.driver.clone(),
        VfDriver::VfioPci => Some(VFIO.to_owned()),
        VfDriver::None => None,
    }
}

/// A VF whose driver is `bound` has the one that it shall have.
pub fn has_driver(bound: Option<&str>, target: Option<&str>) -> bool {
    bound == target || target == Some(VFIO) && bound.is_some_and(is_vfio)
}

/// The kernel tells of the VF, but not which GUIDs the PF has for it: netlink has them
/// since Linux 5.5, and only from a driver that answers (`ndo_get_vf_guid`,
/// net/core/rtnetlink.c). What the VF itself shows is all there is then.
pub const fn guids_are_untold(seen: &ObservedVf) -> bool {
    let admin = &seen.admin;
    admin.is_answered && admin.node_guid.is_none() && admin.port_guid.is_none()
}

/// The PF has not answered which GUIDs it has for the VF, and the VF has no driver of this
/// host that would show them.
pub fn guids_are_hidden(seen: &ObservedVf, pf: &ObservedPf) -> bool {
    let admin = &seen.admin;
    let on_host = seen.driver.is_some() && seen.driver == pf.driver;
    let is_unread =
        has_node_guids(&pf.backend) && admin.node_guid.is_none() || admin.port_guid.is_none();
    !on_host && !admin.is_answered && is_unread
}

/// It shows all GUIDs by which a VF of this host is verified, and they are the plan's.
pub fn shows_its_guids(vf: &WantedVf, seen: &ObservedVf, backend: &Backend) -> bool {
    let is_read = seen.own.as_ref().is_some_and(|own| unread(own, backend).is_none());
    is_read && shows_other(vf, seen, backend).is_none()
}

/// The PF administers a GUID for the VF that is known to be another than the plan's, as far
/// as this kind of PF has it.
pub fn has_other_guids(vf: &WantedVf, seen: &ObservedVf, backend: &Backend) -> bool {
    let is_other = |is: Option<Guid>, planned| is.is_some_and(|is| is != planned);
    let node = has_node_guids(backend) && is_other(seen.admin.node_guid, vf.node_guid);
    let port = || ports(vf, seen.admin).any(|port| is_other(port.is, port.planned));
    !is_left_to_cni(vf, seen) && (node || port())
}

/// mlx4 has alias GUIDs for ports alone, and no policy.
pub const fn has_node_guids(backend: &Backend) -> bool {
    !matches!(backend, Backend::Mlx4 { .. })
}

/// The first GUID that a VF shows other than it shall: its driver read it before
/// it was set.
pub fn shows_other(vf: &WantedVf, seen: &ObservedVf, backend: &Backend) -> Option<VfLack> {
    let own = seen.own.as_ref().filter(|_| !is_left_to_cni(vf, seen))?;
    let other = |which, is: Option<Guid>, planned| {
        is.filter(|is| *is != planned).map(|is| VfLack::Shows { which, is, planned })
    };
    let node = has_node_guids(backend)
        .then(|| other(Attribute::NodeGuid, own.node_guid, vf.node_guid))
        .flatten();
    // Without a grant it has another, or none.
    let mut granted = ports(vf, seen.admin).filter(|port| port.granted == Some(port.planned));
    let port2 = granted.find(|port| port.which == Attribute::Port2Guid);
    node.or_else(|| other(Attribute::PortGuid, own.port_guid, vf.port_guid))
        .or_else(|| other(Attribute::NetdevGuid, own.netdev_guid, vf.port_guid))
        .or_else(|| other(Attribute::Port2Guid, own.port2_guid, port2?.planned))
}
