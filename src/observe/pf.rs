//! A PF and its VFs as the GUID plan compares them: what the PF administers,
//! and what each VF shows of itself.
//!
//! In parts. [`look`] reads what no reader ever waits for. What asks firmware or
//! takes the RTNL lock is read by [`super::administered`], [`driver_override`]
//! takes a VF's device lock, which a probe holds, and what only RDMA netlink tells
//! ([`rdma::ipoib_netdevs`]) waits for registrations of RDMA devices: on a live host
//! these are run in a child.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::administered::{AdministeredVf, Backend, VfInfoQuery};
pub use super::pci::dir;
use super::pci::is_rdma_auxiliary;
use super::rdma::{self, RdmaDevice};
use super::{Look, Observer, ReadError, Root};
use crate::host::{answer, rdma_netlink, recovery};
use crate::names::{
    Administered, Guid, IfName, LinkLayer, PciAddress, RdmaName, VfIndex, VfName, rdma_half_of,
};

/// A PF at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedPf {
    pub pf: PciAddress,
    /// It is on the bus.
    pub present: bool,
    /// The driver bound to it.
    pub driver: Option<String>,
    /// `sriov_drivers_autoprobe`; `None` before Linux 4.12.
    pub autoprobe: Option<bool>,
    /// The link layer of its first port, once its RDMA device is there.
    pub link_layer: Option<LinkLayer>,
    /// How its VFs are administered.
    pub backend: Backend,
    /// ib_ipoib is loaded, so that every VF with a driver gets a netdev.
    pub ipoib: bool,
    /// Its VFs, by index.
    pub vfs: Vec<ObservedVf>,
    /// Why nobody was there to answer what it administers for them, as when its driver hangs.
    pub unreadable: Option<String>,
    /// What a run that was cut short left to put back, as far as the caller knows.
    pub undo: Undo,
}

/// A VF at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedVf {
    pub index: VfIndex,
    pub pci: PciAddress,
    /// The driver bound to it.
    pub driver: Option<String>,
    /// The only driver that may bind it, where somebody said so. Known only
    /// where it was asked for ([`driver_override`]).
    pub driver_override: Option<String>,
    /// What the PF administers for it.
    pub admin: Administered,
    /// What it shows of itself, once it has an RDMA device.
    pub own: Option<VfDevices>,
    /// Its driver is bound, and no RDMA device comes by waiting: the driver's RDMA half is
    /// loaded and has not taken it, since its probe failed or was interrupted, or the driver
    /// has given up to recover it ([`recovery`]).
    pub half_bound: bool,
    /// ib_ipoib is loaded and has no netdev of it, here or in another network namespace
    /// ([`rdma::ipoib_netdevs`]): IPoIB's set-up of its port failed, or was interrupted as
    /// by a signal to the modprobe that loaded it, and is not tried again. Known only where it
    /// was asked for ([`without_netdev`]).
    pub ipoib_failed: bool,
}

/// What a VF with a driver on this host shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfDevices {
    pub rdma: RdmaName,
    /// The node GUID that the device read when it was registered.
    pub node_guid: Option<Guid>,
    /// The low half of GID 0.
    pub port_guid: Option<Guid>,
    /// The same of its second port, if it has one.
    pub port2_guid: Option<Guid>,
    /// That of its first port.
    pub netdev: Option<IfName>,
    /// The last 8 bytes of the netdev's address.
    pub netdev_guid: Option<Guid>,
}

impl VfDevices {
    /// All of what is there could be read.
    pub const fn is_whole(&self) -> bool {
        let has_netdev_guid = self.netdev.is_none() || self.netdev_guid.is_some();
        self.node_guid.is_some() && self.port_guid.is_some() && has_netdev_guid
    }
}

/// What must be put back after an interrupted run, as it was remembered
/// before anything was changed (`/run/ibprov/pf/PCI.undo`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Undo {
    /// `sriov_drivers_autoprobe` as it was.
    pub autoprobe: Option<bool>,
    /// `driver_override` of VFs as it was; empty: none.
    pub overrides: BTreeMap<PciAddress, String>,
}

impl Undo {
    /// Nothing is left to put back.
    pub fn is_empty(&self) -> bool {
        self.autoprobe.is_none() && self.overrides.is_empty()
    }
}

/// The harmless part, of those VFs alone for which `is_meant` is true: each costs dozens of reads.
pub fn look(look: &mut Look<'_>, pf: PciAddress, is_meant: impl Fn(VfIndex) -> bool) -> ObservedPf {
    let dir = dir(pf);
    let driver = driver(look, pf);
    let devices = rdma::devices(look, &dir);
    let first = devices.first().and_then(|d| d.ports.first());
    let backend = backend_of(look, &dir, driver.as_deref(), &devices);
    let autoprobe = autoprobe(look, pf);
    ObservedPf {
        pf,
        present: look.root.exists(&dir),
        autoprobe,
        link_layer: first.map(|p| p.link_layer),
        backend,
        ipoib: look.root.exists("/sys/module/ib_ipoib"),
        vfs: vfs(look, pf, is_meant),
        unreadable: None,
        driver,
        undo: Undo::default(),
    }
}

/// How a PF administers its VFs; nobody is asked.
pub fn backend(look: &mut Look<'_>, pf: PciAddress) -> Backend {
    let dir = dir(pf);
    let driver = driver(look, pf);
    let devices = rdma::devices(look, &dir);
    backend_of(look, &dir, driver.as_deref(), &devices)
}

fn backend_of(
    look: &mut Look<'_>,
    dir: &str,
    driver: Option<&str>,
    devices: &[RdmaDevice],
) -> Backend {
    if driver == Some("mlx4_core") {
        let iov = devices.first().map(|d| format!("{dir}/infiniband/{}/iov", d.name));
        Backend::Mlx4 { iov: iov.filter(|iov| look.root.exists(iov)) }
    } else if is_ofed(look.root, dir) {
        Backend::OfedSysfs
    } else {
        // Never a P_Key child: `ports` has the netdev of the port itself.
        let port = devices.iter().flat_map(|d| &d.ports).find_map(|p| p.netdev.as_ref());
        Backend::Netlink { ifindex: port.map(|n| n.ifindex) }
    }
}

/// The VFs of a PF that was looked at just now and has got others since. `None`
/// if they are administered in another way than it seemed.
pub fn look_at_vfs(look: &mut Look<'_>, pf: ObservedPf) -> Option<ObservedPf> {
    let dir = dir(pf.pf);
    let as_before = is_ofed(look.root, &dir) == (pf.backend == Backend::OfedSysfs);
    as_before.then(|| ObservedPf { vfs: vfs(look, pf.pf, |_| true), ..pf })
}

/// Whether VFs that come are probed by themselves; `None` before Linux 4.12.
pub fn autoprobe(look: &mut Look<'_>, pf: PciAddress) -> Option<bool> {
    look.attribute(&format!("{}/sriov_drivers_autoprobe", dir(pf))).map(|t| t == "1")
}

/// OFED's files are there: with VFs, those of the first VF of an InfiniBand
/// port; without, the file that makes them.
fn is_ofed(root: &Root, dir: &str) -> bool {
    if root.exists(&format!("{dir}/virtfn0")) {
        root.exists(&format!("{dir}/sriov/0/policy"))
    } else {
        root.exists(&format!("{dir}/mlx5_num_vfs"))
    }
}

/// The VFs of this host: the PF of each, and which of its VFs it is.
pub fn owners(root: &Root) -> BTreeMap<PciAddress, (PciAddress, VfIndex)> {
    let observed = Observer::new(root).look([], &BTreeSet::new());
    let mut look = Look::new(root);
    let mut all = BTreeMap::new();
    for pf in observed.functions.iter().filter(|f| f.physfn.is_none()) {
        let vfs = addresses(&mut look, pf.address, |_| true);
        all.extend(vfs.into_iter().map(|(index, pci)| (pci, (pf.address, index))));
    }
    all
}

/// False if the tree shows PCI functions, and none at `pci`.
pub fn may_be_here(root: &Root, pci: PciAddress) -> bool {
    root.exists(&dir(pci)) || !root.exists("/sys/bus/pci/devices")
}

/// The VFs of a PF for which `is_meant` is true with their PCI functions, by index.
///
/// `sriov_numvfs` is not read: its reader waits for a lock that a hanging writer
/// holds (`drivers/pci/iov.c`). The `virtfnN` links say the same.
pub fn addresses(
    look: &mut Look<'_>,
    pf: PciAddress,
    is_meant: impl Fn(VfIndex) -> bool,
) -> Vec<(VfIndex, PciAddress)> {
    let dir = dir(pf);
    let index = |name: &String| name.strip_prefix("virtfn").and_then(|n| n.parse().ok());
    let known = look.list(&dir);
    let known = known.iter().filter_map(index).filter(|vf| is_meant(*vf));
    let mut known: Vec<VfIndex> = known.collect();
    known.sort_unstable();
    let mut pci = |index| function(look, VfName { pf, index });
    known.into_iter().filter_map(|vf| Some((vf, pci(vf)?))).collect()
}

/// The PCI function of a VF.
pub fn function(look: &mut Look<'_>, vf: VfName) -> Option<PciAddress> {
    look.link_name(&format!("{}/virtfn{}", dir(vf.pf), vf.index))?.parse().ok()
}

/// The driver bound to a function.
pub fn driver(look: &mut Look<'_>, pci: PciAddress) -> Option<String> {
    look.link_name(&format!("{}/driver", dir(pci)))
}

/// Whether an adapter is one of Omni-Path, by its driver.
pub fn is_omni_path(look: &mut Look<'_>, pci: PciAddress) -> bool {
    driver(look, pci).is_some_and(|driver| driver == "hfi1" || driver == "hfi2")
}

/// How many VFs a thread is worth.
const VFS_A_THREAD: usize = 4;

/// What they show is read by several threads: while udev is at the VFs too, one
/// would get little of the processors.
fn vfs(look: &mut Look<'_>, pf: PciAddress, is_meant: impl Fn(VfIndex) -> bool) -> Vec<ObservedVf> {
    let known = addresses(look, pf, is_meant);
    let one = |(index, pci)| ObservedVf {
        index,
        pci,
        driver: driver(look, pci),
        driver_override: None,
        admin: Administered::default(),
        own: None,
        half_bound: false,
        ipoib_failed: false,
    };
    let mut vfs: Vec<_> = known.into_iter().map(one).collect();
    // Without a driver there is nothing to show.
    let mut bound: Vec<_> = vfs.iter_mut().filter(|vf| vf.driver.is_some()).collect();
    let root = look.root;
    let part = |vfs: &mut [&mut ObservedVf]| {
        let mut look = Look::new(root);
        for vf in vfs {
            vf.own = own(&mut look, vf.pci);
            vf.half_bound = vf.own.is_none() && is_half_bound(&mut look, vf.pci);
        }
        look.problems
    };
    let a_part = bound.len().div_ceil(4).max(VFS_A_THREAD);
    let problems = std::thread::scope(|scope| {
        let mut parts = bound.chunks_mut(a_part);
        let ours = parts.next().unwrap_or_default();
        let others: Vec<_> = parts.map(|p| scope.spawn(move || part(p))).collect();
        let mut problems = part(ours);
        for thread in others {
            problems.extend(thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
        }
        problems
    });
    look.problems.extend(problems);
    read_recoveries(look, &mut vfs);
    vfs
}

/// The VFs of `pf` that have an RDMA device and no netdev here, although ib_ipoib has looked at
/// all devices: with the device, of which is to be asked how many netdevs ib_ipoib has.
pub fn without_netdev(look: &mut Look<'_>, pf: &ObservedPf) -> Vec<(VfIndex, RdmaName)> {
    let lacking = pf.vfs.iter().filter_map(|vf| {
        let own = vf.own.as_ref().filter(|own| own.netdev.is_none())?;
        Some((vf.index, own.rdma.clone()))
    });
    let lacking: Vec<(VfIndex, RdmaName)> = lacking.collect();
    if lacking.is_empty() || !is_live(look, "ib_ipoib") { Vec::new() } else { lacking }
}

/// Read the kernel log if a VF of mlx5 has its driver and no RDMA device.
fn read_recoveries(look: &mut Look<'_>, vfs: &mut [ObservedVf]) {
    let is_mlx5 = |vf: &&mut ObservedVf| vf.driver.as_deref() == Some("mlx5_core");
    let lacking = |vf: &&mut ObservedVf| vf.own.is_none() && !vf.half_bound;
    let lacking: Vec<_> = vfs.iter_mut().filter(is_mlx5).filter(lacking).collect();
    if lacking.is_empty() || !look.root.is_live() {
        return;
    }
    match recovery::given_up() {
        Ok(given_up) => {
            lacking.into_iter().for_each(|vf| vf.half_bound = given_up.contains(&vf.pci));
        }
        Err(e) => {
            let e = answer(&e);
            look.problems.insert(format!("cannot read /dev/kmsg, so causes may be missing: {e}"));
        }
    }
}

/// What a VF shows. udev may rename either device between its name and what is
/// read below it.
pub fn own(look: &mut Look<'_>, pci: PciAddress) -> Option<VfDevices> {
    let mut own = own_now(look, pci)?;
    for _ in 1..READINGS {
        if own.is_whole() {
            break;
        }
        own = own_now(look, pci)?;
    }
    Some(own)
}

/// How often what a VF shows is read, if something was not there.
const READINGS: usize = 3;

/// It is read for every VF at every look, so nothing more than what is compared.
fn own_now(look: &mut Look<'_>, pci: PciAddress) -> Option<VfDevices> {
    let dir = dir(pci);
    let rdma = rdma_device(look, pci)?;
    let device = format!("{dir}/infiniband/{rdma}");
    let node_guid = look.parsed(&format!("{device}/node_guid"), |t| t.parse::<Guid>());
    let [port_guid, port2_guid] = [1, 2].map(|port| {
        look.parsed(&format!("{device}/ports/{port}/gids/0"), |t| {
            Guid::from_gid(t).ok_or_else(|| format!("{t:?} is not a GID"))
        })
    });
    let netdev = netdev(look, pci);
    let address = netdev.as_ref().and_then(|n| look.attribute(&format!("{dir}/net/{n}/address")));
    let netdev_guid = address.and_then(|a| rdma::port_guid_of(&a));
    Some(VfDevices { rdma, node_guid, port_guid, port2_guid, netdev, netdev_guid })
}

/// The names of a VF's devices now, by which they may be known no more.
pub fn read_names(look: &mut Look<'_>, pci: PciAddress, own: &mut VfDevices) {
    let dir = dir(pci);
    if !look.root.exists(&format!("{dir}/infiniband/{}", own.rdma))
        && let Some(name) = rdma_device(look, pci)
    {
        own.rdma = name;
    }
    if let Some(name) = &own.netdev
        && !look.root.exists(&format!("{dir}/net/{name}"))
        && let Some(name) = netdev(look, pci)
    {
        own.netdev = Some(name);
    }
}

/// Call the RDMA device of a function so. One that has none (yet) is left to udev's
/// rule, which names it when it comes (`crate::host::persistent_names`).
///
/// # Errors
/// What the kernel answered; EEXIST: another device is called so.
pub fn name_rdma(root: &Root, pci: PciAddress, name: &RdmaName) -> std::io::Result<()> {
    let mut last = Ok(());
    for _ in 0..READINGS {
        let Some(now) = rdma_device(&mut Look::new(root), pci) else { return Ok(()) };
        if now == *name {
            return Ok(());
        }
        last = rdma_netlink::rename(now.as_str(), name);
        match &last {
            // udev has renamed it meanwhile.
            Err(e) if e.raw_os_error() == Some(nix::libc::ENODEV) => {}
            _ => return last,
        }
    }
    last
}

fn rdma_device(look: &mut Look<'_>, pci: PciAddress) -> Option<RdmaName> {
    let names = look.list(&format!("{}/infiniband", dir(pci)));
    names.into_iter().find_map(|name| name.parse().ok())
}

/// The netdev of a VF's first port. A P_Key child has the same GUID, but is no proof
/// that the port's own netdev is there.
fn netdev(look: &mut Look<'_>, pci: PciAddress) -> Option<IfName> {
    let net = format!("{}/net", dir(pci));
    let names = look.list(&net);
    let mut is_it = |name: &&String| {
        let dev_port = look.attribute(&format!("{net}/{name}/dev_port"));
        dev_port.is_none_or(|port| port == "0")
            && !look.root.exists(&format!("{net}/{name}/parent"))
    };
    names.iter().find(&mut is_it).and_then(|name| name.parse().ok())
}

/// The auxiliary device of a function for RDMA has no driver, and the module that drives
/// it is not just being loaded, which probes one device after the other. While one is
/// probed it has the link (`really_probe()`, `drivers/base/dd.c`).
fn is_half_bound(look: &mut Look<'_>, pci: PciAddress) -> bool {
    let Some(driver) = driver(look, pci) else { return false };
    let Some(half) = rdma_half_of(&driver) else { return false };
    let dir = dir(pci);
    let device = look.list(&dir).into_iter().find(|entry| is_rdma_auxiliary(entry, &driver));
    device.is_some_and(|device| look.link_name(&format!("{dir}/{device}/driver")).is_none())
        && is_live(look, half)
}

/// The module is loaded, and its initialization, which looks at each device that is there,
/// has ended.
fn is_live(look: &mut Look<'_>, module: &str) -> bool {
    look.attribute(&format!("/sys/module/{module}/initstate")).as_deref() == Some("live")
}

/// The only driver that may bind a function, where somebody said so.
///
/// # Errors
/// It cannot be read.
pub fn driver_override(root: &Root, pci: PciAddress) -> Result<Option<String>, ReadError> {
    let text = root.attribute(&format!("{}/driver_override", dir(pci)))?;
    Ok(Some(text).filter(|t| !t.is_empty() && t != "(null)"))
}

impl ObservedPf {
    /// Take in what it administers, as far as it is about these VFs; what could
    /// not be read of it is added to `problems`.
    pub fn learn(&mut self, told: Vec<AdministeredVf>, problems: &mut Vec<String>) {
        for told in told {
            problems.extend(told.problems);
            let is_it = |vf: &&mut ObservedVf| told.vf == VfName { pf: self.pf, index: vf.index };
            if let Some(vf) = self.vfs.iter_mut().find(is_it) {
                vf.admin = told.admin;
            }
        }
    }

    /// Take in how many netdevs ib_ipoib has of these VFs, as far as that was told.
    pub fn record_netdevs(&mut self, vfs: &[(VfIndex, RdmaName)], counts: &[Option<usize>]) {
        for ((index, _), count) in vfs.iter().zip(counts) {
            if let Some(vf) = self.vfs.iter_mut().find(|vf| vf.index == *index) {
                vf.ipoib_failed = *count == Some(0);
            }
        }
    }

    /// The question for what it administers for all its VFs, or for those that
    /// are `wanted`.
    pub fn question(&self, wanted: impl Fn(VfIndex) -> bool) -> VfInfoQuery {
        let vfs = self.addresses().into_iter().filter(|(index, _)| wanted(*index)).collect();
        VfInfoQuery { pf: self.pf, backend: self.backend.clone(), vfs }
    }

    /// What it administers is asked anew: what was answered before stands no more.
    pub fn forget_administered(&mut self) {
        self.vfs.iter_mut().for_each(|vf| vf.admin = Administered::default());
    }

    /// The VFs of which it has not answered what it administers.
    pub fn unanswered(&self) -> impl Iterator<Item = VfIndex> {
        self.vfs.iter().filter(|vf| !vf.admin.is_answered).map(|vf| vf.index)
    }

    pub fn vf(&self, index: VfIndex) -> Option<&ObservedVf> {
        self.vfs.iter().find(|vf| vf.index == index)
    }

    /// Its VFs with their PCI functions.
    pub fn addresses(&self) -> Vec<(VfIndex, PciAddress)> {
        self.vfs.iter().map(|v| (v.index, v.pci)).collect()
    }
}
