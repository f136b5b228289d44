//! Who uses a VF, or a netdev. A VF in use is never taken away, nor is a netdev in use
//! disturbed, so whatever cannot be determined counts as use.
//!
//! Reads `/proc/*/fd`, sysfs and, on a live host, RDMA netlink and rtnetlink.
//! All of it may wait for a lock, so on a live host it is run in a child.

use crate::model::{Away, Use};

use std::collections::{BTreeMap, BTreeSet};

use nix::libc::ARPHRD_INFINIBAND;

use super::open_files::{OpenFiles, open_files};
use super::pci::is_rdma_auxiliary;
use super::{Look, RdmaDevice, ipoib, namespaces, pf, rdma};
use crate::host::rdma_netlink::{self, Owner, Resource};
use crate::host::{Root, answer, links, netlink};
use crate::names::{
    IB_DRIVERS, IfName, LinkLayer, NetnsMode, PciAddress, RdmaName, is_vfio, rdma_half_of,
};

/// Kernel modules of the RDMA stack that own resources of every device and use none.
/// IPoIB's netdevs are looked at by themselves.
const IDLE: [&str; 4] = ["ib_core", "ib_mad", "ib_cm", "ib_ipoib"];

/// What of the function at `dir`, which has these RDMA devices here, is in another network
/// namespace: a container. RDMA devices can be in one only where each belongs to one.
/// `may_have_netdevs` says of a device without a netdev here whether ib_ipoib may have one of it
/// elsewhere ([`rdma::ipoib_netdevs`]).
pub fn away(
    look: &mut Look<'_>,
    dir: &str,
    devices: &[RdmaDevice],
    may_have_netdevs: impl Fn(&RdmaName) -> bool,
) -> Option<Away> {
    let root = look.root;
    if devices.is_empty() {
        // It will come, or its driver has failed.
        if namespaces::mode(look) != Some(NetnsMode::Exclusive) {
            return None;
        }
        // Registered and not to be seen.
        let driver = look.link_name(&format!("{dir}/driver"))?;
        let mut halves =
            look.list(dir).into_iter().filter(|entry| is_rdma_auxiliary(entry, &driver));
        let is_there = halves.any(|half| root.exists(&format!("{dir}/{half}/driver")));
        return is_there.then_some(Away::RdmaDevice);
    }
    let mut lacking = devices.iter().filter(|device| lacks_netdev(device));
    let is_away =
        root.exists("/sys/module/ib_ipoib") && lacking.any(|device| may_have_netdevs(&device.name));
    is_away.then_some(Away::Netdev)
}

/// A port of the device is to have a netdev of IPoIB, and has none here.
pub fn lacks_netdev(device: &RdmaDevice) -> bool {
    let lacks = |p: &rdma::Port| p.link_layer == LinkLayer::InfiniBand && p.netdev.is_none();
    device.ports.iter().any(lacks)
}

/// What is found, each once.
type Uses = BTreeSet<Use>;

/// The uses of each of these VFs, in their order.
pub fn uses(root: &Root, vfs: &[PciAddress]) -> Vec<Vec<Use>> {
    let mut host = Host::new(root);
    vfs.iter().map(|vf| collected(root, |look, uses| host.uses(look, *vf, uses))).collect()
}

/// The uses of the RDMA device of a function: by processes, by clients in the kernel, and by disks
/// of SRP and iSER.
pub fn rdma_uses(root: &Root, function: PciAddress) -> Vec<Use> {
    let dir = pf::dir(function);
    collected(root, |look, uses| {
        if let Some(driver) = look.link_name(&format!("{dir}/driver")) {
            let devices = rdma::devices(look, &dir);
            by_rdma(look, &dir, &driver, &devices, uses);
        }
    })
}

/// What `find` finds; what it cannot read may be a use.
fn collected(root: &Root, find: impl FnOnce(&mut Look<'_>, &mut Uses)) -> Vec<Use> {
    let (mut look, mut uses) = (Look::new(root), BTreeSet::new());
    find(&mut look, &mut uses);
    uses.extend(look.problems.into_iter().map(|why| Use::Unknown { why }));
    uses.into_iter().collect()
}

/// The uses of `devices`, those of the function at `dir`.
fn by_rdma(look: &mut Look<'_>, dir: &str, driver: &str, devices: &[RdmaDevice], uses: &mut Uses) {
    for device in devices.iter().filter(|_| look.root.is_live()) {
        match rdma_netlink::owners(device.name.as_str()) {
            Ok(owners) => uses.extend(owners.into_iter().filter_map(|o| owned(o, driver))),
            Err(e) => {
                let why = format!("RDMA netlink: {}", answer(&e));
                uses.insert(Use::Unknown { why });
            }
        }
    }
    // The connection of a target that is away shows as no use, and its disks wait for it.
    let hosts = look.list(dir).into_iter().filter(|entry| is_scsi_host(entry));
    uses.extend(hosts.map(|host| Use::ScsiHost { host }));
}

/// The uses of each of these netdevs by the network, in their order: addresses and routes, its
/// own and those of the bond, bridge, P_Key child or other netdev above it. None of one that is
/// down: whatever is changed of it, no traffic stops.
///
/// Waits for the RTNL lock.
pub fn netdev_uses(root: &Root, netdevs: &[IfName]) -> Vec<Vec<Use>> {
    let mut host = Host::new(root);
    let of = |netdev: &IfName| {
        collected(root, |look, uses| host.traffic(look, netdev.as_str(), &mut Vec::new(), uses))
    };
    netdevs.iter().map(of).collect()
}

/// The uses of the port of each of these netdevs by the RDMA connection manager, in their order.
/// None of one that is down.
///
/// Waits for a registration of an RDMA device, as [`rdma::ipoib_netdevs`] does.
pub fn cm_uses(root: &Root, netdevs: &[IfName]) -> Vec<Vec<Use>> {
    let of = |netdev: &IfName| {
        collected(root, |look, uses| {
            if is_up(look, netdev.as_str()) {
                connections(look, netdev.as_str(), uses);
            }
        })
    };
    netdevs.iter().map(of).collect()
}

const CLASS: &str = "/sys/class/net";

/// What is read once for all VFs, when the first needs it.
struct Host<'a> {
    root: &'a Root,
    net: Option<Result<Vec<(u32, String)>, String>>,
    /// Who has files of VFIO open.
    open: Option<OpenFiles>,
    /// The P_Key children of all netdevs, each with the index of its parent.
    children: Option<Vec<(String, String)>>,
}

/// What a function has in this network namespace.
struct Here {
    devices: Vec<RdmaDevice>,
    /// How many netdevs ib_ipoib has of each RDMA device anywhere; `None` where that cannot be
    /// told.
    netdevs: Netdevs,
    /// How many netdevs of the port are here.
    own: usize,
    /// The P_Key children of those.
    children: Vec<String>,
}

type Netdevs = BTreeMap<RdmaName, Option<usize>>;

impl Here {
    /// What of the function is in another network namespace.
    fn away(&self, look: &mut Look<'_>, dir: &str) -> Option<Away> {
        let all = |device: &RdmaName| self.netdevs.get(device).copied().flatten();
        let here = self.own + self.children.len();
        let has_more = match self.devices.as_slice() {
            [device] => all(&device.name).is_some_and(|all| all > here),
            _ => false,
        };
        let may_have = |device: &RdmaName| all(device) != Some(0);
        let is_away = away(look, dir, &self.devices, may_have);
        is_away.or_else(|| has_more.then_some(Away::Netdev))
    }
}

/// Of each RDMA device the lower of two counts.
fn fewer(before: &Netdevs, now: Netdevs) -> Netdevs {
    let lower = |(device, now): (RdmaName, Option<usize>)| {
        let before = before.get(&device).copied().flatten();
        (device, now.map(|now| before.map_or(now, |before| before.min(now))))
    };
    now.into_iter().map(lower).collect()
}

impl<'a> Host<'a> {
    const fn new(root: &'a Root) -> Self {
        Self { root, net: None, open: None, children: None }
    }

    fn uses(&mut self, look: &mut Look<'_>, vf: PciAddress, uses: &mut Uses) {
        let dir = pf::dir(vf);
        let driver = look.link_name(&format!("{dir}/driver"));
        match driver.as_deref() {
            // Nobody uses a function that nothing drives.
            None => {}
            Some(vfio) if is_vfio(vfio) => self.vfio(look, &dir, uses),
            Some(hca) if IB_DRIVERS.contains(&hca) => {
                self.on_this_host(look, &dir, hca, uses);
            }
            // xen-pciback, pci-stub, uio: what these give it to cannot be seen.
            Some(other) => {
                let why = format!("the driver {other} may have passed it to a virtual machine");
                uses.insert(Use::Unknown { why });
            }
        }
    }

    fn vfio(&mut self, look: &mut Look<'_>, dir: &str, uses: &mut Uses) {
        let mut files = Vec::new();
        if let Some(group) = look.link_name(&format!("{dir}/iommu_group")) {
            files = vec![format!("/dev/vfio/{group}"), format!("/dev/vfio/noiommu-{group}")];
        }
        let devices = look.list(&format!("{dir}/vfio-dev")).into_iter();
        files.extend(devices.map(|device| format!("/dev/vfio/devices/{device}")));
        if files.is_empty() {
            uses.insert(Use::Unknown { why: "the function has no iommu_group".to_owned() });
        }
        let root = self.root;
        let open = self.open.get_or_insert_with(|| open_vfio(root));
        for (pid, name, file) in &open.files {
            // In a virtual machine's own mount namespace the path is another
            // one: its end, below /dev, is the same.
            let end = |f: &String| {
                let name = f.trim_start_matches("/dev/vfio/");
                file.ends_with(&format!("vfio/{name}"))
            };
            if let Some(file) = files.iter().find(|f| end(f)) {
                uses.insert(Use::Vfio { file: file.clone(), pid: *pid, name: name.clone() });
            }
        }
        uses.extend(open.unknown.clone().map(|why| Use::Unknown { why }));
    }

    fn on_this_host(&mut self, look: &mut Look<'_>, dir: &str, driver: &str, uses: &mut Uses) {
        let mut here = self.here(look, dir);
        // Until it is registered, what comes looks like what is elsewhere.
        let is_hidden =
            here.devices.is_empty() && namespaces::mode(look) == Some(NetnsMode::Exclusive);
        let away = here.away(look, dir).or_else(|| is_hidden.then_some(Away::RdmaDevice));
        if let Some(what) = away.filter(|_| self.root.is_live()) {
            match self.let_come(dir, what) {
                Ok(()) => {
                    self.children = None;
                    let now = self.here(look, dir);
                    // What has been begun since is on its way again.
                    here = Here { netdevs: fewer(&here.netdevs, now.netdevs), ..now };
                }
                Err(why) => {
                    uses.insert(Use::Unknown { why });
                }
            }
        }
        uses.extend(here.away(look, dir).map(|what| Use::OtherNamespace { what }));
        let Here { devices, children, .. } = here;
        if devices.is_empty() {
            uses.extend(self.hidden(look, dir, driver));
        }
        by_rdma(look, dir, driver, &devices, uses);
        for netdev in look.list(&format!("{dir}/net")) {
            self.netdev(look, &format!("{dir}/net/{netdev}"), &netdev, uses);
        }
        for child in children {
            self.netdev(look, &format!("{CLASS}/{child}"), &child, uses);
        }
    }

    /// What the function at `dir` has here.
    fn here(&mut self, look: &mut Look<'_>, dir: &str) -> Here {
        let devices = rdma::devices(look, dir);
        let count = |device: &RdmaDevice| rdma::ipoib_netdevs(self.root, &device.name);
        let netdevs = devices.iter().map(|d| (d.name.clone(), count(d))).collect();
        let own = look.list(&format!("{dir}/net"));
        let children = self.children_of(look, &own);
        Here { devices, netdevs, own: own.len(), children }
    }

    /// Wait until what may have been on its way has come. A netdev is registered with the RTNL
    /// lock held, and an RDMA device in a probe.
    fn let_come(&self, dir: &str, what: Away) -> Result<(), String> {
        match what {
            Away::Netdev => links::wait_for_rtnl()
                .map_err(|e| format!("the RTNL lock cannot be waited for: {}", answer(&e))),
            Away::RdmaDevice => rdma::wait_for_probe(self.root, dir).map_err(|e| e.to_string()),
        }
    }

    /// Without auxiliary devices (mlx5 before Linux 5.11, mlx4 before 6.7) nothing tells an
    /// RDMA device that is in another network namespace from one that was never registered.
    fn hidden(&self, look: &mut Look<'_>, dir: &str, driver: &str) -> Option<Use> {
        let half = rdma_half_of(driver)?;
        let is_loaded = self.root.exists(&format!("/sys/module/{half}"));
        let has_halves = look.list(dir).iter().any(|entry| is_rdma_auxiliary(entry, driver));
        if !is_loaded || has_halves || !self.root.is_live() {
            return None;
        }
        let why = "its RDMA device may be in another network namespace";
        (namespaces::mode(look) == Some(NetnsMode::Exclusive))
            .then(|| Use::Unknown { why: why.to_owned() })
    }

    /// The P_Key children of these netdevs that are here. They go with the netdev of the port, and
    /// are virtual devices, whose `iflink` is the index of that netdev
    /// (`ipoib_get_iflink()`, drivers/infiniband/ulp/ipoib/ipoib_main.c).
    fn children_of(&mut self, look: &mut Look<'_>, parents: &[String]) -> Vec<String> {
        if parents.is_empty() {
            return Vec::new();
        }
        let root = self.root;
        // What has gone meanwhile is no use.
        let read = |name: &String, what: &str| {
            root.attribute(&format!("{CLASS}/{name}/{what}")).unwrap_or_default()
        };
        let all = self.children.get_or_insert_with(|| {
            let netdevs = look.list(CLASS).into_iter();
            let of_ipoib =
                netdevs.filter(|name| read(name, "type") == ARPHRD_INFINIBAND.to_string());
            let linked = of_ipoib.map(|name| (read(&name, "iflink"), read(&name, "ifindex"), name));
            let is_child = |(iflink, own, _): &(String, String, String)| iflink != own;
            linked.filter(is_child).map(|(iflink, _, name)| (iflink, name)).collect()
        });
        let parents: Vec<String> = parents.iter().map(|name| read(name, "ifindex")).collect();
        let own = all.iter().filter(|(iflink, _)| parents.contains(iflink));
        own.map(|(_, name)| name.clone()).collect()
    }

    fn netdev(&mut self, look: &mut Look<'_>, dir: &str, netdev: &str, uses: &mut Uses) {
        let stacked = |with| Use::Stacked { netdev: netdev.to_owned(), with };
        uses.extend(uppers(look, dir).into_iter().map(stacked));
        self.network(look, dir, netdev, uses);
    }

    /// What is sent and received over `netdev` and over those above it, but for those `seen`
    /// before.
    fn traffic(
        &mut self,
        look: &mut Look<'_>,
        netdev: &str,
        seen: &mut Vec<String>,
        uses: &mut Uses,
    ) {
        if seen.iter().any(|of| of == netdev) || !is_up(look, netdev) {
            return;
        }
        seen.push(netdev.to_owned());
        let dir = format!("{CLASS}/{netdev}");
        self.network(look, &dir, netdev, uses);
        let above = uppers(look, &dir).into_iter();
        for with in above.chain(self.children_of(look, &[netdev.to_owned()])) {
            let mut over = BTreeSet::new();
            self.traffic(look, &with, seen, &mut over);
            if !over.is_empty() {
                uses.insert(Use::Stacked { netdev: netdev.to_owned(), with });
                uses.extend(over);
            }
        }
    }

    /// The addresses and routes of `netdev`, which is at `dir`.
    fn network(&mut self, look: &mut Look<'_>, dir: &str, netdev: &str, uses: &mut Uses) {
        if !self.root.is_live() {
            return;
        }
        let index = look.attribute(&format!("{dir}/ifindex")).and_then(|t| t.parse::<u32>().ok());
        let net = self.net.get_or_insert_with(|| {
            netlink::net_uses().map_err(|e| format!("addresses and routes: {}", answer(&e)))
        });
        match net {
            Ok(found) => {
                for (_, what) in found.iter().filter(|(i, _)| Some(*i) == index) {
                    let (netdev, what) = (netdev.to_owned(), what.clone());
                    uses.insert(Use::Network { netdev, what });
                }
            }
            Err(why) => {
                uses.insert(Use::Unknown { why: why.clone() });
            }
        }
    }
}

/// The bond, bridge or other netdevs above the netdev at `dir`; P_Key children are not among them.
fn uppers(look: &mut Look<'_>, dir: &str) -> BTreeSet<String> {
    let mut uppers = BTreeSet::new();
    for entry in look.list(dir) {
        if entry == "master" {
            uppers.insert(look.link_name(&format!("{dir}/master")).unwrap_or_default());
        } else if let Some(with) = entry.strip_prefix("upper_") {
            uppers.insert(with.to_owned());
        }
    }
    uppers
}

/// Somebody has brought the netdev up. What cannot be read is among the look's problems.
fn is_up(look: &mut Look<'_>, netdev: &str) -> bool {
    ipoib::flags(look, &format!("{CLASS}/{netdev}")).is_some_and(ipoib::is_up)
}

/// What the connection manager has on the port of `netdev`, or of the netdev that it is a child
/// of.
fn connections(look: &mut Look<'_>, netdev: &str, uses: &mut Uses) {
    let number = |what: &str| {
        let text = look.root.attribute(&format!("{CLASS}/{netdev}/{what}")).ok()?;
        text.parse::<u32>().ok()
    };
    let lower = number("iflink").filter(|lower| Some(*lower) != number("ifindex"));
    let lower = lower.and_then(links::name_of);
    let base = lower.as_ref().map_or(netdev, IfName::as_str);
    let Some(pci) = look.link_name(&format!("{CLASS}/{base}/device")) else { return };
    let Ok(pci) = pci.parse::<PciAddress>() else { return };
    let dir = pf::dir(pci);
    let driver = look.link_name(&format!("{dir}/driver")).unwrap_or_default();
    for device in rdma::devices(look, &dir) {
        let is_base = |of: &rdma::NetDev| of.name.as_str() == base;
        let own = device.ports.iter().find(|port| {
            port.netdev.as_ref().is_some_and(is_base) || port.ethernet.as_ref().is_some_and(is_base)
        });
        // Where its port is not known, it may be any.
        let own = own.map(|port| u32::from(port.number.get()));
        let is_own = |resource: &Resource| match (resource, own) {
            (Resource::CmId { port: Some(port), .. }, Some(own)) => *port == own,
            _ => true,
        };
        match rdma_netlink::cm_ids(device.name.as_str()) {
            Ok(ids) => {
                let ids = ids.into_iter().filter(|(_, id)| is_own(id));
                uses.extend(ids.filter_map(|id| owned(id, &driver)));
            }
            Err(e) => {
                let why = format!("RDMA netlink: {}", answer(&e));
                uses.insert(Use::Unknown { why });
            }
        }
    }
}

/// An entry of a function's directory is a SCSI host, `host7`: ib_srp and ib_iser make theirs a
/// child of the function (`srp_add_target()`, drivers/infiniband/ulp/srp/ib_srp.c;
/// `iscsi_iser_session_create()`, drivers/infiniband/ulp/iser/iscsi_iser.c).
fn is_scsi_host(entry: &str) -> bool {
    let number = entry.strip_prefix("host").unwrap_or_default();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

/// The use that an owned resource of a device is, if it is one. `driver` is the
/// device's own, which holds PDs, CQs and QPs for itself as long as it is bound
/// (`mlx5_ib_gsi_create_qp()`, `mlx5r_umr_resource_init()`).
fn owned((owner, resource): (Owner, Resource), driver: &str) -> Option<Use> {
    let is_wildcard = matches!(resource, Resource::CmId { is_wildcard_listener: true, .. });
    let word = resource.word().to_owned();
    match owner {
        _ if is_wildcard => None,
        Owner::Process(pid) => Some(Use::Process { resource: word, pid }),
        Owner::EndedThread => Some(Use::Unknown {
            why: format!(
                "the thread that created a {word} of its RDMA device has ended, and its process may still use it"
            ),
        }),
        Owner::Kernel(module) => {
            let is_own = module == driver || Some(module.as_str()) == rdma_half_of(driver);
            // A client such as ib_srp or rds_rdma takes a PD, perhaps an SRQ and a CQ, of
            // each device that comes, and uses it once it has a connection.
            let is_at_work = match resource {
                Resource::Qp { is_connected } => is_connected,
                Resource::CmId { .. } => true,
                Resource::Other(_) => false,
            };
            let is_use = is_at_work && !is_own && !IDLE.contains(&module.as_str());
            is_use.then_some(Use::Kernel { resource: word, module })
        }
    }
}

/// Looks at the open files of every process.
fn open_vfio(root: &Root) -> OpenFiles {
    let is_device = |target: &str| target.contains("anon_inode:[vfio-device]");
    let is_group = |target: &str| target.contains("vfio/") && !target.ends_with("vfio/vfio");
    let OpenFiles { files, mut unknown } =
        open_files(root, |target| is_device(target) || is_group(target));
    let (devices, groups): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|(.., target)| is_device(target));
    // A device that outlives its group's file: of which VF is not told.
    let is_alone = |pid: u32| groups.iter().all(|(of, ..)| *of != pid);
    if let Some((pid, ..)) = devices.iter().rev().find(|(pid, ..)| is_alone(*pid)) {
        unknown =
            Some(format!("process {pid} has a VFIO device open, but not the group of the device"));
    }
    OpenFiles { files: groups, unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_use(module: &str, resource: Resource) -> bool {
        owned((Owner::Kernel(module.to_owned()), resource), "mlx5_core").is_some()
    }

    const QP: Resource = Resource::Qp { is_connected: true };

    /// `rdma resource show` of an idle VF on mlx5_core and mlx5_ib, and of one that a
    /// client module has seen.
    #[test]
    fn what_every_device_has_is_no_use() {
        for resource in [QP, Resource::Other("PD"), Resource::Other("CQ"), Resource::Other("SRQ")] {
            for module in ["mlx5_ib", "mlx5_core", "ib_core", "ib_ipoib"] {
                assert!(!is_use(module, resource), "{module} {resource:?}");
            }
        }
        for resource in ["PD", "SRQ", "CQ", "MR"].map(Resource::Other) {
            assert!(!is_use("ib_srp", resource), "{resource:?}");
        }
        assert!(!is_use("ib_srp", Resource::Qp { is_connected: false }));
        assert!(!is_use("rpcrdma", Resource::CmId { port: None, is_wildcard_listener: true }));
        // The driver of another card is a stranger here.
        assert!(is_use("mlx4_ib", QP));
    }

    /// A daemon may create its queue pairs in a thread that ends, and so may its parent.
    #[test]
    fn what_an_ended_thread_has_created_may_be_in_use() {
        let of = |resource| owned((Owner::EndedThread, resource), "mlx5_core");
        assert!(matches!(of(QP), Some(Use::Unknown { .. })));
        assert!(matches!(of(Resource::Other("PD")), Some(Use::Unknown { .. })));
        assert_eq!(of(Resource::CmId { port: None, is_wildcard_listener: true }), None);
    }

    #[test]
    fn a_connection_is_a_use() {
        assert!(is_use("ib_srp", QP));
        assert!(is_use("rpcrdma", Resource::CmId { port: None, is_wildcard_listener: false }));
    }

    #[test]
    fn whatever_a_process_has_is_a_use_but_a_listener_at_no_address() {
        let of = |resource| owned((Owner::Process(7), resource), "mlx5_core");
        for resource in [
            Resource::Other("PD"),
            Resource::Other("context"),
            Resource::Qp { is_connected: false },
            Resource::CmId { port: None, is_wildcard_listener: false },
        ] {
            assert_eq!(
                of(resource),
                Some(Use::Process { resource: resource.word().to_owned(), pid: 7 })
            );
        }
        assert_eq!(of(Resource::CmId { port: None, is_wildcard_listener: true }), None);
    }
}
