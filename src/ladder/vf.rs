//! How far a VF has climbed, and what it lacks.

use crate::ladder::WantedVf;
use crate::names::{Guid, VFIO, VfDriver, VfRung, is_vfio};
use crate::observe::{Backend, ObservedPf, ObservedVf, Own};

/// How far a VF is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfProgress {
    /// The highest rung below which none is missing.
    pub reached: Option<VfRung>,
    /// The rung that it is to reach.
    pub goal: VfRung,
    /// What is not as wanted, in words; empty if all is.
    pub lacks: String,
}

/// Where a VF is to get.
#[must_use]
pub const fn goal(vf: &WantedVf) -> VfRung {
    match vf.driver {
        VfDriver::Default => VfRung::Verified,
        VfDriver::VfioPci => VfRung::HandedOver,
        VfDriver::None => VfRung::Guid,
    }
}

/// How far `vf` is. All three points of verification are judged here: what the
/// PF reads back, the RDMA device's node GUID and GID 0, the netdev's address.
#[must_use]
pub fn vf_progress(vf: &WantedVf, seen: Option<&ObservedVf>, pf: &ObservedPf) -> VfProgress {
    let goal = goal(vf);
    let at = |reached, lacks: String| VfProgress { reached, goal, lacks };
    let Some(seen) = seen else { return at(None, "it does not exist".to_owned()) };
    if !guids_are_set(vf, seen, &pf.backend) {
        return at(Some(VfRung::Created), administered(vf, seen, pf));
    }
    if let Some(granted) = seen.admin.granted.filter(|g| *g != vf.port_guid) {
        let lacks = format!(
            "the subnet manager has not granted its port GUID {}: {granted} is in force",
            vf.port_guid
        );
        return at(Some(VfRung::Created), lacks);
    }
    let policy_lacks = match seen.admin.policy {
        Some(policy) if has_node_guids(&pf.backend) && policy != vf.policy => {
            format!("its policy is {} instead of {}", policy.word(), vf.policy.word())
        }
        _ => String::new(),
    };
    let target = wanted_driver(vf, pf);
    let driver = seen.driver.as_deref();
    if driver.is_some_and(is_vfio) && vf.driver != VfDriver::None {
        // libvirt moves a VF there and back by itself.
        return VfProgress {
            reached: Some(VfRung::HandedOver),
            goal: VfRung::HandedOver,
            lacks: policy_lacks,
        };
    }
    if !has_driver(driver, target.as_deref()) {
        let lacks = format!(
            "its driver is {} instead of {}",
            driver.unwrap_or("none"),
            target.as_deref().unwrap_or("none")
        );
        return at(Some(VfRung::Guid), lacks);
    }
    if target.is_none() {
        return at(Some(VfRung::Guid), policy_lacks);
    }
    let Some(own) = &seen.own else {
        let driver = driver.unwrap_or_default();
        let lacks = format!("{driver} is bound and has registered no RDMA device");
        return at(Some(VfRung::Bound), lacks);
    };
    let others = shows_others(vf, seen, &pf.backend);
    if pf.ipoib && own.netdev.is_none() {
        let lacks = others.unwrap_or_else(|| "ib_ipoib has made no netdev for it".to_owned());
        return at(Some(VfRung::Rdma), lacks);
    }
    match others.or_else(|| unread(own, &pf.backend)) {
        Some(lacks) => {
            at(Some(if own.netdev.is_some() { VfRung::Netdev } else { VfRung::Rdma }), lacks)
        }
        None => at(Some(VfRung::Verified), policy_lacks),
    }
}

/// What cannot be read proves nothing.
fn unread(own: &Own, backend: &Backend) -> Option<String> {
    let what = if has_node_guids(backend) && own.node_guid.is_none() {
        "node GUID"
    } else if own.port_guid.is_none() {
        "port GUID (GID 0)"
    } else if own.netdev.is_some() && own.netdev_guid.is_none() {
        "netdev's GUID"
    } else {
        return None;
    };
    Some(format!("its {what} cannot be read, so it is not verified"))
}

fn administered(vf: &WantedVf, seen: &ObservedVf, pf: &ObservedPf) -> String {
    let is = |what: &str, is: Option<Guid>, wanted: Guid| match is {
        Some(guid) if guid == wanted => None,
        Some(guid) => Some(format!("its {what} at the PF is {guid} instead of {wanted}")),
        None => Some(format!("its {what} at the PF cannot be read; wanted is {wanted}")),
    };
    let node = has_node_guids(&pf.backend)
        .then(|| is("node GUID", seen.admin.node_guid, vf.node_guid))
        .flatten();
    let port = is("port GUID", seen.admin.port_guid, vf.port_guid);
    node.into_iter().chain(port).collect::<Vec<_>>().join(", ")
}

/// It may still get there by waiting: its driver is bound and the rest comes
/// by itself.
#[must_use]
pub fn may_come(vf: &WantedVf, seen: &ObservedVf, pf: &ObservedPf) -> bool {
    let on_host = seen.driver.is_some() && seen.driver == pf.driver;
    let lacks_netdev = seen.own.as_ref().is_none_or(|o| pf.ipoib && o.netdev.is_none());
    let lacks_grant = awaits_grant(vf, seen);
    lacks_grant || vf.driver == VfDriver::Default && on_host && lacks_netdev
}

/// Its alias GUID was asked of the subnet manager, which has not answered yet
/// (mlx4).
#[must_use]
pub fn awaits_grant(vf: &WantedVf, seen: &ObservedVf) -> bool {
    seen.admin.port_guid == Some(vf.port_guid)
        && seen.admin.granted.is_some_and(|granted| granted != vf.port_guid)
}

/// The driver that a VF shall have.
#[must_use]
pub fn wanted_driver(vf: &WantedVf, pf: &ObservedPf) -> Option<String> {
    match vf.driver {
        VfDriver::Default => pf.driver.clone(),
        VfDriver::VfioPci => Some(VFIO.to_owned()),
        VfDriver::None => None,
    }
}

/// A VF whose driver is `bound` has the one that it shall have.
#[must_use]
pub fn has_driver(bound: Option<&str>, target: Option<&str>) -> bool {
    bound == target || target == Some(VFIO) && bound.is_some_and(is_vfio)
}

/// What the PF administers is what is wanted, as far as this kind of PF has it.
#[must_use]
pub fn guids_are_set(vf: &WantedVf, seen: &ObservedVf, backend: &Backend) -> bool {
    let node = !has_node_guids(backend) || seen.admin.node_guid == Some(vf.node_guid);
    node && seen.admin.port_guid == Some(vf.port_guid)
}

/// mlx4 has alias GUIDs for ports alone, and no policy.
#[must_use]
pub const fn has_node_guids(backend: &Backend) -> bool {
    !matches!(backend, Backend::Mlx4 { .. })
}

/// A VF shows other GUIDs than it shall: its driver read them before they were
/// set.
#[must_use]
pub fn shows_others(vf: &WantedVf, seen: &ObservedVf, backend: &Backend) -> Option<String> {
    let own = seen.own.as_ref()?;
    let other = |what: &str, shown: Option<Guid>, wanted: Guid| {
        let shown = shown.filter(|s| *s != wanted)?;
        Some(format!("its {what} is {shown} instead of {wanted}"))
    };
    let node =
        has_node_guids(backend).then(|| other("node GUID", own.node_guid, vf.node_guid)).flatten();
    node.or_else(|| other("port GUID", own.port_guid, vf.port_guid))
        .or_else(|| other("netdev's GUID", own.netdev_guid, vf.port_guid))
}
