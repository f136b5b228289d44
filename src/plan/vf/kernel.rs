//! A model of a PF's kernel, driver and firmware, for tests.

use proptest::prelude::*;

use super::*;
use crate::model::VfStep;
use crate::names::{
    Administered, Binding, Guid, LinkLayer, PciAddress, Policy, Port2, PortNumber, VFIO, VfDriver,
    VfIndex, VfNames, VfOwner,
};
use crate::observe::{Undo, VfDevices};

pub(crate) const HOST: &str = "mlx5_core";

/// The part of the kernel, of the PF's driver and of its firmware that the
/// steps meet. What survives what is as the real ones have it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kernel {
    pub(crate) total: u16,
    /// It is mlx4: neither the number, nor node GUIDs, nor policies can be set.
    pub(crate) is_mlx4: bool,
    pub(crate) autoprobe: bool,
    /// `/run/ibprov/pf/PCI.undo`.
    pub(crate) undo: Undo,
    /// What the PF administers: survives N, 0, N.
    pub(crate) admin: Vec<Administered>,
    pub(crate) vfs: Vec<Vf>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vf {
    pub(crate) driver: Option<String>,
    pub(crate) driver_override: String,
    /// What its driver read when it was bound.
    pub(crate) read: Administered,
    pub(crate) in_use: bool,
    /// The RDMA half of its driver has not taken it.
    pub(crate) half_bound: bool,
    /// ib_ipoib has made no netdev for it.
    pub(crate) ipoib_failed: bool,
}

pub(crate) fn pci(n: usize) -> PciAddress {
    format!("0000:01:{:02x}.{}", (n + 1) / 8, (n + 1) % 8).parse().expect("address")
}

pub(crate) fn index(n: usize) -> VfIndex {
    VfIndex::new(count(n)).expect("index")
}

pub(crate) fn pf() -> PciAddress {
    "0000:01:00.0".parse().expect("address")
}

impl Kernel {
    /// As a PF with so many VFs: mlx4 makes them when it is loaded.
    pub(crate) fn with_vfs(mut self, number: usize) -> Self {
        if self.is_mlx4 {
            let made = self.vfs.clone();
            self.make(number, self.autoprobe);
            self.vfs.iter_mut().zip(made).for_each(|(vf, made)| *vf = made);
        }
        self
    }

    /// What the PF tells of a VF; the subnet manager grants what it is asked for.
    fn told(&self, n: usize) -> Administered {
        let admin = self.admin[n];
        if self.is_mlx4 {
            let granted = admin.port_guid;
            Administered { node_guid: None, policy: None, granted, ..admin }
        } else {
            admin
        }
    }

    pub(crate) fn observe(&self) -> ObservedPf {
        let iov = Some("/sys/iov".to_owned());
        // A port without a grant is dark, and has no GUID.
        let shown = |port2: Port2| port2.granted.map_or(Some(Guid::new(0)), |_| port2.guid);
        let vf = |(n, vf): (usize, &Vf)| ObservedVf {
            index: index(n),
            pci: pci(n),
            driver: vf.driver.clone(),
            driver_override: Some(vf.driver_override.clone()).filter(|o| !o.is_empty()),
            admin: self.told(n),
            half_bound: vf.half_bound,
            ipoib_failed: vf.ipoib_failed,
            own: (vf.driver.as_deref() == Some(HOST) && !vf.half_bound).then(|| VfDevices {
                rdma: format!("mlx5_{n}").parse().expect("name"),
                node_guid: vf.read.node_guid,
                port_guid: vf.read.port_guid,
                port2_guid: vf.read.port2.and_then(shown),
                netdev: format!("ib{n}").parse().ok().filter(|_| !vf.ipoib_failed),
                netdev_guid: vf.read.port_guid.filter(|_| !vf.ipoib_failed),
            }),
        };
        ObservedPf {
            pf: pf(),
            present: true,
            driver: Some(HOST.to_owned()),
            autoprobe: Some(self.autoprobe),
            link_layer: Some(LinkLayer::InfiniBand),
            backend: if self.is_mlx4 { Backend::Mlx4 { iov } } else { Backend::OfedSysfs },
            ipoib: true,
            vfs: self.vfs.iter().enumerate().map(vf).collect(),
            undo: self.undo.clone(),
            unreadable: None,
        }
    }

    pub(crate) fn uses(&self) -> Uses {
        let of =
            |vf: &Vf| if vf.in_use { vec![Use::Unknown { why: "test".into() }] } else { vec![] };
        self.vfs.iter().enumerate().map(|(n, vf)| (index(n), of(vf))).collect()
    }

    pub(crate) fn vf(&mut self, vf: VfIndex) -> &mut Vf {
        &mut self.vfs[usize::from(vf.get())]
    }

    /// So many VFs and no others, which drivers have or have not `probed`.
    pub(crate) fn make(&mut self, number: usize, probed: bool) {
        let new = |admin: &Administered| Vf {
            driver: probed.then(|| HOST.to_owned()),
            driver_override: String::new(),
            read: *admin,
            in_use: false,
            half_bound: false,
            ipoib_failed: false,
        };
        self.vfs = self.admin.iter().take(number).map(new).collect();
    }

    /// What a step is made of, each part whole or not at all.
    pub(crate) fn parts(step: &VfStep) -> Vec<Part> {
        match step.clone() {
            VfStep::AutoprobeOff => {
                vec![Box::new(|k| k.undo.autoprobe = Some(true)), Box::new(|k| k.autoprobe = false)]
            }
            VfStep::Count { to, .. } => vec![
                Box::new(|k| {
                    assert!(k.vfs.iter().all(|v| !v.in_use), "a VF in use was destroyed");
                    k.vfs.clear();
                }),
                Box::new(move |k| k.make(usize::from(to), k.autoprobe)),
            ],
            VfStep::Unbind { vf, driver } => vec![Box::new(move |k| {
                let vf = k.vf(vf);
                assert!(!vf.in_use, "a VF in use was unbound");
                assert_eq!(vf.driver.take(), Some(driver.clone()));
                (vf.half_bound, vf.ipoib_failed) = (false, false);
            })],
            VfStep::NodeGuid { vf, to, .. } => vec![Box::new(move |k| {
                k.admin[usize::from(vf.get())].node_guid = Some(to);
            })],
            VfStep::PortGuid { vf, port: PortNumber::FIRST, to, .. } => vec![Box::new(move |k| {
                k.admin[usize::from(vf.get())].port_guid = Some(to);
            })],
            VfStep::PortGuid { vf, to, .. } => vec![Box::new(move |k| {
                let port2 = k.admin[usize::from(vf.get())].port2.as_mut().expect("a second port");
                *port2 = Port2 { guid: Some(to), granted: port2.granted.and(Some(to)) };
            })],
            VfStep::Policy { vf, to, .. } => vec![Box::new(move |k| {
                k.admin[usize::from(vf.get())].policy = Some(to);
            })],
            VfStep::Bind { vf, driver, .. } => {
                let set = driver.clone();
                vec![
                    Box::new(move |k| {
                        let prior = k.vf(vf).driver_override.clone();
                        let pci = pci(usize::from(vf.get()));
                        k.undo.overrides.entry(pci).or_insert(prior);
                    }),
                    Box::new(move |k| k.vf(vf).driver_override.clone_from(&set)),
                    Box::new(move |k| {
                        let read = k.admin[usize::from(vf.get())];
                        let vf = k.vf(vf);
                        assert_eq!(vf.driver, None, "bound twice");
                        vf.driver = Some(driver.clone());
                        vf.read = read;
                    }),
                    Box::new(move |k| {
                        let pci = pci(usize::from(vf.get()));
                        let prior = k.undo.overrides.get(&pci).cloned().unwrap_or_default();
                        k.vf(vf).driver_override = prior;
                    }),
                ]
            }
            VfStep::RestoreOverride { pci: at, to } => vec![Box::new(move |k| {
                let n = (0..k.vfs.len()).find(|n| pci(*n) == at).expect("VF");
                k.vfs[n].driver_override.clone_from(&to);
            })],
            VfStep::RestoreAutoprobe { on } => {
                vec![Box::new(move |k| k.autoprobe = on), Box::new(|k| k.undo.autoprobe = None)]
            }
        }
    }

    /// A run as `apply` does it, stage after stage, with a look between, that
    /// is killed after so many parts. True if it came to its end.
    pub(crate) fn run(&mut self, wanted: &WantedPf, mut parts: usize) -> bool {
        for _round in 0..12 {
            let observed = self.observe();
            let plan = vf_steps(wanted, &observed, &self.uses());
            let Some(stage) = plan.steps.first().map(VfStep::stage) else {
                self.undo.overrides.clear();
                return true;
            };
            for step in plan.steps.iter().filter(|s| s.stage() == stage) {
                for part in Self::parts(step) {
                    if parts == 0 {
                        return false;
                    }
                    parts -= 1;
                    part(self);
                }
            }
        }
        panic!("a run does not come to rest: {self:?}");
    }
}

type Part = Box<dyn Fn(&mut Kernel)>;

pub(crate) fn admin() -> impl Strategy<Value = Administered> {
    let guid = || prop_oneof![Just(0_u64), 1_u64..4].prop_map(|g| Some(Guid::new(g)));
    let policy = prop_oneof![Just(Policy::Down), Just(Policy::Follow)];
    let port2 = prop::option::of((guid(), any::<bool>()))
        .prop_map(|port2| port2.map(|(guid, lit)| Port2 { guid, granted: guid.filter(|_| lit) }));
    (guid(), guid(), port2, policy).prop_map(|(node_guid, port_guid, port2, policy)| Administered {
        node_guid,
        port_guid,
        policy: Some(policy),
        granted: None,
        port2,
        is_answered: true,
    })
}

/// mlx5's or mlx4's.
pub(crate) fn either() -> impl Strategy<Value = Kernel> {
    any::<bool>().prop_flat_map(of)
}

/// mlx5's.
pub(crate) fn kernel() -> impl Strategy<Value = Kernel> {
    of(false)
}

fn of(is_mlx4: bool) -> impl Strategy<Value = Kernel> {
    let driver = prop_oneof![
        Just(None),
        Just(Some(HOST.to_owned())),
        Just(Some(HOST.to_owned())),
        Just(Some(VFIO.to_owned()))
    ];
    let set = prop_oneof![Just(String::new()), Just(String::new()), Just("driverctl".to_owned())];
    let rare = || prop::bool::weighted(0.2);
    let vf = (driver, set, admin(), rare(), rare(), rare()).prop_map(
        |(driver, driver_override, read, used, half, ipoib)| Vf {
            in_use: used && driver.is_some(),
            half_bound: half && driver.as_deref() == Some(HOST),
            ipoib_failed: ipoib && !half && driver.as_deref() == Some(HOST),
            driver,
            driver_override,
            read,
        },
    );
    let parts =
        (any::<bool>(), prop::collection::vec(admin(), 4), prop::collection::vec(vf, 0..=4));
    parts.prop_map(move |(autoprobe, mut admin, vfs)| {
        // mlx5 has no second port with a GUID.
        admin.iter_mut().for_each(|admin| admin.port2 = admin.port2.filter(|_| is_mlx4));
        let mut kernel = Kernel { total: 4, is_mlx4, autoprobe, undo: Undo::default(), admin, vfs };
        for (vf, admin) in kernel.vfs.iter_mut().zip(&kernel.admin) {
            // It has the ports that it has, and which of them are dark is the same for both.
            let guid = vf.read.port2.map_or(Some(Guid::new(0)), |port2| port2.guid);
            vf.read.port2 = admin.port2.map(|port2| Port2 { guid, ..port2 });
        }
        kernel
    })
}

pub(crate) fn wanted() -> impl Strategy<Value = WantedPf> {
    let driver = prop_oneof![Just(VfDriver::Host), Just(VfDriver::VfioPci), Just(VfDriver::None)];
    let policy = prop_oneof![Just(Policy::Follow), Just(Policy::Up), Just(Policy::Down)];
    prop::collection::vec((driver, policy, any::<bool>()), 0..=4).prop_map(|vfs| WantedPf {
        pf: pf(),
        vfs: vfs
            .into_iter()
            .enumerate()
            .map(|(n, (driver, policy, policy_named))| WantedVf {
                index: index(n),
                node_guid: Guid::new(1 + n as u64 % 3),
                port_guid: Guid::new(2 + n as u64 % 2),
                port2_guid: (n != 1).then(|| Guid::new(1 + n as u64 % 2)),
                policy,
                policy_named,
                driver,
                owner: VfOwner::Plan,
                guids_from: String::new(),
                names: VfNames::default(),
            })
            .collect(),
        binding: Binding::default(),
    })
}
