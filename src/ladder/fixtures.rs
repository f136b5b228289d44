//! A PF at 0000:4b:00.0 with VFs as they are planned, for tests.

use crate::model::{WantedPf, WantedVf};
use crate::names::{
    Administered, Binding, Guid, LinkLayer, Policy, VFIO, VfDriver, VfIndex, VfNames, VfOwner,
};
use crate::observe::{Backend, ObservedPf, ObservedVf, Undo, VfDevices};

/// One VF for each of `drivers`, with GUIDs of their own.
pub(crate) fn wanted(drivers: &[VfDriver]) -> WantedPf {
    let vf = |(index, driver): (VfIndex, &VfDriver)| WantedVf {
        index,
        node_guid: Guid::new(0x0200_0000_0000_0001 + u64::from(index.get())),
        port_guid: Guid::new(0x0200_0000_0000_0101 + u64::from(index.get())),
        port2_guid: None,
        policy: Policy::Follow,
        policy_named: false,
        driver: *driver,
        owner: VfOwner::Plan,
        guids_from: String::new(),
        names: VfNames::default(),
    };
    let count = u16::try_from(drivers.len()).expect("few");
    WantedPf {
        pf: "0000:4b:00.0".parse().expect("address"),
        vfs: VfIndex::first(count).zip(drivers).map(vf).collect(),
        binding: Binding::default(),
    }
}

/// A host that is as `wanted`, with MLNX_OFED's files.
pub(crate) fn right(wanted: &WantedPf) -> ObservedPf {
    let own = |vf: &WantedVf| VfDevices {
        rdma: format!("mlx5_{}", vf.index.get() + 1).parse().expect("name"),
        node_guid: Some(vf.node_guid),
        port_guid: Some(vf.port_guid),
        port2_guid: None,
        netdev: format!("ib{}", vf.index.get() + 1).parse().ok(),
        netdev_guid: Some(vf.port_guid),
    };
    let vf = |vf: &WantedVf| ObservedVf {
        index: vf.index,
        pci: format!("0000:4b:00.{}", vf.index.get() + 1).parse().expect("address"),
        driver: match vf.driver {
            VfDriver::Host => Some("mlx5_core".to_owned()),
            VfDriver::VfioPci => Some(VFIO.to_owned()),
            VfDriver::None => None,
        },
        driver_override: None,
        admin: Administered {
            node_guid: Some(vf.node_guid),
            port_guid: Some(vf.port_guid),
            policy: Some(vf.policy),
            granted: None,
            port2: None,
            is_answered: true,
        },
        own: (vf.driver == VfDriver::Host).then(|| own(vf)),
        half_bound: false,
        ipoib_failed: false,
    };
    ObservedPf {
        pf: wanted.pf,
        present: true,
        driver: Some("mlx5_core".to_owned()),
        autoprobe: Some(true),
        link_layer: Some(LinkLayer::InfiniBand),
        backend: Backend::OfedSysfs,
        ipoib: true,
        vfs: wanted.vfs.iter().map(vf).collect(),
        undo: Undo::default(),
        unreadable: None,
    }
}
