//! What keeps HCAs or their kernel modules busy: what a stop of the drivers, an unbind or an
//! update of them stumbles over.
//!
//! Reads `/proc`, sysfs and, on a live host, RDMA netlink and rtnetlink. Some of it may wait
//! for a lock, so on a live host it is run in a child.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::open_files::{OpenFiles, name, open_files, unit};
use super::routes::{Route, routes, way_to};
use super::uses::uses;
use super::{Look, pf};
use crate::names::{HCA_DRIVERS, PciAddress, rdma_half_of};
use crate::report::Use;
use crate::report::holders::{By, Holder};

/// What stands below and beside the drivers and goes with them: none of it is a user.
const CORE: [&str; 14] = [
    "ib_core",
    "ib_cm",
    "ib_mad",
    "ib_sa",
    "ib_addr",
    "ib_umad",
    "ib_uverbs",
    "ib_ucm",
    "ib_ipoib",
    "iw_cm",
    "rdma_cm",
    "rdma_ucm",
    "mlx4_en",
    "mlx_compat",
];
/// A node with many containers has thousands of mounts.
const MOUNTS_LIMIT: u64 = 16 << 20;

/// What keeps these functions, or the modules of their drivers, busy.
#[must_use]
pub fn holders(look: &mut Look<'_>, functions: &[PciAddress]) -> Vec<Holder> {
    let mut found = Found::default();
    let used = uses(look.root, functions);
    for (hca, uses) in functions.iter().zip(used) {
        for by in uses {
            found.usage(look, *hca, by);
        }
    }
    found.device_files(look, functions);
    let netdevs = netdevs(look, functions);
    let routes = routes(look);
    found.routes(&netdevs, &routes);
    found.disks_and_mounts(look, functions, &netdevs, &routes);
    found.modules(look, functions);
    found.all()
}

/// What was found so far.
#[derive(Default)]
struct Found {
    holders: BTreeSet<Holder>,
    /// What processes have of a function, `None` for what is of none alone.
    processes: BTreeMap<(Option<PciAddress>, u32), BTreeSet<String>>,
    named: Vec<(u32, String, Option<String>)>,
}

impl Found {
    fn add(&mut self, hca: Option<PciAddress>, by: By) {
        self.holders.insert(Holder { hca, by });
    }

    fn process(&mut self, look: &Look<'_>, hca: Option<PciAddress>, pid: u32, has: String) {
        if !self.named.iter().any(|(known, ..)| *known == pid) {
            self.named.push((pid, name(look.root, pid), unit(look.root, pid)));
        }
        self.processes.entry((hca, pid)).or_default().insert(has);
    }

    fn all(mut self) -> Vec<Holder> {
        for ((hca, pid), has) in std::mem::take(&mut self.processes) {
            let known = self.named.iter().find(|(known, ..)| *known == pid);
            let (name, unit) = known.map(|(_, n, u)| (n.clone(), u.clone())).unwrap_or_default();
            let has = has.into_iter().collect();
            self.add(hca, By::Process { pid, name, unit, has });
        }
        self.holders.into_iter().collect()
    }

    fn usage(&mut self, look: &Look<'_>, hca: PciAddress, by: Use) {
        let by = match by {
            Use::Vfio { file, pid, name } => {
                By::Guest { pid, name: guest(look, pid).unwrap_or(name), file }
            }
            Use::OtherNamespace { what } => By::Namespace { what },
            Use::Process { resource, pid } => {
                self.process(look, Some(hca), pid, resource);
                return;
            }
            Use::Kernel { resource, module } => By::Resource { module, resource },
            Use::Stacked { netdev, with } => By::Netdev { netdev, with },
            // An address goes with its netdev, and routes are looked at for themselves.
            Use::Network { .. } => return,
            Use::Unknown { why } => By::Unknown { why },
        };
        self.add(Some(hca), by);
    }

    /// Each keeps ib_uverbs, ib_umad or rdma_ucm loaded, and the first two the driver
    /// (`ib_uverbs_open()`, drivers/infiniband/core/uverbs_main.c).
    fn device_files(&mut self, look: &Look<'_>, functions: &[PciAddress]) {
        let owner = |file: &str| {
            let class =
                if file.starts_with("uverbs") { "infiniband_verbs" } else { "infiniband_mad" };
            functions
                .iter()
                .find(|pci| look.root.exists(&format!("{}/{class}/{file}", pf::dir(**pci))))
                .copied()
        };
        let file = |target: &str| {
            let (_, name) = target.trim_end_matches(" (deleted)").rsplit_once("/infiniband/")?;
            let is_device = ["uverbs", "umad", "issm", "ucm", "rdma_cm"];
            let is_device = is_device.iter().any(|begin| name.starts_with(begin));
            (is_device && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
                .then(|| name.to_owned())
        };
        let OpenFiles { files, unknown } = open_files(look.root, |target| file(target).is_some());
        for (pid, _, target) in files {
            let Some(file) = file(&target) else { continue };
            let hca = owner(&file);
            // One of another HCA, while those of some were asked for.
            let is_of_one = !file.starts_with("rdma_cm");
            if hca.is_some() || !is_of_one || !is_known(look, &file) {
                self.process(look, hca, pid, file);
            }
        }
        if let Some(why) = unknown {
            self.add(None, By::Unknown { why });
        }
    }

    fn routes(&mut self, netdevs: &BTreeMap<String, PciAddress>, routes: &[Route]) {
        for route in routes {
            let Some(hca) = netdevs.get(&route.netdev) else { continue };
            // That of an address goes with its netdev.
            if route.gateway.is_none() && route.length > 0 {
                continue;
            }
            self.add(
                Some(*hca),
                By::Route {
                    to: (route.length > 0).then(|| format!("{}/{}", route.to, route.length)),
                    gateway: route.gateway.map(|gateway| gateway.to_string()),
                    netdev: route.netdev.clone(),
                },
            );
        }
    }

    fn disks_and_mounts(
        &mut self,
        look: &mut Look<'_>,
        functions: &[PciAddress],
        netdevs: &BTreeMap<String, PciAddress>,
        routes: &[Route],
    ) {
        let disks = disks(look, functions, netdevs, routes);
        for (name, hca) in &disks {
            self.add(*hca, By::Disk { name: name.clone() });
        }
        let text = look.root.text("/proc/self/mountinfo", MOUNTS_LIMIT);
        let text = look.note(text).unwrap_or_default();
        for mount in text.lines().filter_map(Mount::parse) {
            let over_netdev = mount.peers.iter().find_map(|ip| {
                let netdev = way_to(routes, *ip)?;
                Some((Some(*netdevs.get(netdev)?), netdev.to_owned()))
            });
            let way = over_netdev
                .or_else(|| mount.module().map(|module| (None, module.to_owned())))
                .or_else(|| mount.disk(look, &disks));
            if let Some((hca, over)) = way {
                let Mount { at, source, fstype, .. } = mount;
                self.add(hca, By::Mount { at, source, fstype, over });
            }
        }
    }

    /// `/sys/module/X/holders` has the modules that use X. Those that are drivers themselves
    /// are followed, the others are holders.
    fn modules(&mut self, look: &mut Look<'_>, functions: &[PciAddress]) {
        let mut open: Vec<String> = CORE.iter().map(|name| (*name).to_owned()).collect();
        for pci in functions {
            let driver = look.link_name(&format!("{}/driver", pf::dir(*pci)));
            open.extend(driver.as_deref().and_then(rdma_half_of).map(str::to_owned));
            open.extend(driver);
        }
        let has_processes = !self.processes.is_empty();
        let mut seen = BTreeSet::new();
        let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        while let Some(module) = open.pop() {
            if !seen.insert(module.clone()) {
                continue;
            }
            let above = look.list(&format!("/sys/module/{module}/holders"));
            let is_driver = CORE.contains(&module.as_str()) || HCA_DRIVERS.contains(&&*module);
            let counted = u32::try_from(above.len()).unwrap_or(u32::MAX);
            let more = count(look, &module).unwrap_or(0).saturating_sub(counted);
            // Open files of devices count too.
            if is_driver && more > 0 && !has_processes {
                self.add(None, By::Reference { module: module.clone(), count: more });
            }
            for name in above {
                if !CORE.contains(&name.as_str()) && !HCA_DRIVERS.contains(&name.as_str()) {
                    users.entry(name.clone()).or_default().insert(module.clone());
                }
                open.push(name);
            }
        }
        for (name, of) in users {
            let (users, of) = (count(look, &name), of.into_iter().collect());
            self.add(None, By::Module { name, of, users });
        }
    }
}

fn count(look: &mut Look<'_>, module: &str) -> Option<u32> {
    look.attribute(&format!("/sys/module/{module}/refcnt"))?.parse().ok()
}

/// Whether some function has this device file, by the class of it.
fn is_known(look: &Look<'_>, file: &str) -> bool {
    ["infiniband_verbs", "infiniband_mad"]
        .iter()
        .any(|class| look.root.exists(&format!("/sys/class/{class}/{file}")))
}

/// The name of the virtual machine that a process of QEMU runs: `-name guest=NAME,...`.
fn guest(look: &Look<'_>, pid: u32) -> Option<String> {
    let line = look.root.bytes(&format!("/proc/{pid}/cmdline"), 1 << 20).ok()?;
    let mut arguments = line.split(|byte| *byte == 0).skip_while(|a| *a != b"-name").skip(1);
    let value = std::str::from_utf8(arguments.next()?).ok()?;
    let name = value.split(',').next()?;
    let name = name.strip_prefix("guest=").unwrap_or(name);
    (!name.is_empty()).then(|| harmless(name))
}

fn harmless(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// The netdevs of the functions, and the bonds and bridges that these are part of.
fn netdevs(look: &mut Look<'_>, functions: &[PciAddress]) -> BTreeMap<String, PciAddress> {
    let mut netdevs = BTreeMap::new();
    for pci in functions {
        let dir = format!("{}/net", pf::dir(*pci));
        for netdev in look.list(&dir) {
            if let Some(above) = look.link_name(&format!("{dir}/{netdev}/master")) {
                netdevs.insert(above, *pci);
            }
            netdevs.insert(netdev, *pci);
        }
    }
    netdevs
}

/// The disks that are connected over an HCA, each with the function where it is known. SRP
/// and iSER make their SCSI hosts below it; a controller of NVMe over RDMA is a virtual
/// device that tells the address of its peer.
fn disks(
    look: &mut Look<'_>,
    functions: &[PciAddress],
    netdevs: &BTreeMap<String, PciAddress>,
    routes: &[Route],
) -> BTreeMap<String, Option<PciAddress>> {
    let mut disks = BTreeMap::new();
    for name in look.list("/sys/class/block") {
        let Ok(target) = look.root.link_target(&format!("/sys/class/block/{name}")) else {
            continue;
        };
        let own = functions.iter().find(|pci| target.split('/').any(|p| p == pci.to_string()));
        // A partition is part of a disk that is told.
        if let Some(pci) = own
            && !look.root.exists(&format!("/sys/class/block/{name}/partition"))
        {
            disks.insert(name, Some(*pci));
        }
    }
    for controller in look.list("/sys/class/nvme") {
        let dir = format!("/sys/class/nvme/{controller}");
        if look.attribute(&format!("{dir}/transport")).as_deref() != Some("rdma") {
            continue;
        }
        let address = look.attribute(&format!("{dir}/address")).unwrap_or_default();
        let peer = address.split(',').find_map(|part| part.strip_prefix("traddr=")?.parse().ok());
        let hca = peer.and_then(|ip: IpAddr| netdevs.get(way_to(routes, ip)?)).copied();
        let disk = |entry: &String| is_namespace(entry).then(|| without_path(entry));
        let names: BTreeSet<String> = look.list(&dir).iter().filter_map(disk).collect();
        let names = if names.is_empty() { BTreeSet::from([controller]) } else { names };
        disks.extend(names.into_iter().map(|name| (name, hca)));
    }
    disks
}

/// `nvme0n1`, or of a path of several `nvme0c1n1`.
fn is_namespace(name: &str) -> bool {
    let rest = name.strip_prefix("nvme").unwrap_or_default();
    rest.contains('n') && rest.chars().all(|c| c.is_ascii_digit() || c == 'c' || c == 'n')
}

/// The disk that `nvme0c1n1` is a path to: `nvme0n1`.
fn without_path(name: &str) -> String {
    match (name.find('c'), name.rfind('n')) {
        (Some(path), Some(namespace)) if path < namespace => {
            let (before, after) = (name.get(..path), name.get(namespace..));
            [before.unwrap_or_default(), after.unwrap_or_default()].concat()
        }
        _ => name.to_owned(),
    }
}

/// A line of mountinfo (proc_pid_mountinfo(5)).
struct Mount {
    /// `MAJOR:MINOR`.
    device: String,
    at: String,
    fstype: String,
    source: String,
    /// `proto=rdma` is among its options.
    is_rdma: bool,
    /// The addresses of its servers.
    peers: Vec<IpAddr>,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(2);
        let (device, _, at) = (front.next()?, front.next()?, front.next()?);
        let mut back = back.split(' ');
        let (fstype, source) = (back.next()?, back.next()?);
        let options = back.next().unwrap_or_default();
        let text = |field: &str| harmless(&field.replace("\\040", " "));
        let mut peers: Vec<IpAddr> = Vec::new();
        let address = |text: &str| text.parse::<IpAddr>().ok();
        if matches!(fstype, "nfs" | "nfs4" | "cifs" | "smb3") {
            peers.extend(options.split(',').find_map(|o| address(o.strip_prefix("addr=")?)));
        }
        // `10.0.0.1:6789,10.0.0.2:6789:/path`
        if fstype == "ceph" {
            let servers = source.split(',').filter_map(|server| server.split(':').next());
            peers.extend(servers.filter_map(address));
        }
        Some(Self {
            device: device.to_owned(),
            at: text(at),
            fstype: text(fstype),
            source: text(source),
            is_rdma: options.split(',').any(|option| option == "proto=rdma" || option == "rdma"),
            peers,
        })
    }

    /// The module of the fabric that it is known to go through.
    fn module(&self) -> Option<&'static str> {
        match self.fstype.as_str() {
            "nfs" | "nfs4" if self.is_rdma => Some("rpcrdma"),
            "lustre" if self.source.contains("@o2ib") => Some("ko2iblnd"),
            _ => None,
        }
    }

    /// The disk of the fabric below it, and its HCA.
    fn disk(
        &self,
        look: &mut Look<'_>,
        disks: &BTreeMap<String, Option<PciAddress>>,
    ) -> Option<(Option<PciAddress>, String)> {
        if disks.is_empty() {
            return None;
        }
        let number = look.link_name(&format!("/sys/dev/block/{}", self.device));
        // Of btrfs the number is none of a disk.
        let mut open = vec![number.or_else(|| {
            let name = self.source.strip_prefix("/dev/")?;
            Some(name.rsplit('/').next().unwrap_or(name).to_owned())
        })?];
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            // Of a partition the disk stands before it.
            let target = look.root.link_target(&format!("/sys/class/block/{name}"));
            let mut parts: Vec<String> =
                target.unwrap_or_default().split('/').map(str::to_owned).collect();
            parts.push(name.clone());
            if let Some((disk, hca)) = parts.iter().find_map(|part| disks.get_key_value(part)) {
                return Some((*hca, disk.clone()));
            }
            open.extend(look.list(&format!("/sys/class/block/{name}/slaves")));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_with_its_servers() {
        let nfs = "90 1 0:50 / /data\\040x rw,relatime shared:3 - nfs4 10.9.8.5:/x rw,vers=4.2,proto=tcp,clientaddr=10.9.8.1,addr=10.9.8.5";
        let mount = Mount::parse(nfs).expect("a mount");
        assert_eq!((mount.at.as_str(), mount.module()), ("/data x", None));
        assert_eq!(mount.peers, ["10.9.8.5".parse::<IpAddr>().expect("an address")]);
        let rdma = Mount::parse(&nfs.replace("proto=tcp", "proto=rdma")).expect("a mount");
        assert_eq!(rdma.module(), Some("rpcrdma"));
        let lustre = "91 1 0:51 / /lustre rw - lustre 10.9.8.2@o2ib:/fs rw,checksum";
        assert_eq!(Mount::parse(lustre).expect("a mount").module(), Some("ko2iblnd"));
        let ethernet = lustre.replace("@o2ib", "@tcp");
        assert_eq!(Mount::parse(&ethernet).expect("a mount").module(), None);
        let ceph = "92 1 0:52 / /c rw - ceph 10.9.8.2:6789,10.9.8.3:6789:/ rw,name=a";
        assert_eq!(Mount::parse(ceph).expect("a mount").peers.len(), 2);
        assert!(Mount::parse("no mount").is_none());
    }

    #[test]
    fn a_path_of_nvme_leads_to_its_disk() {
        for (name, disk) in [("nvme0c1n2", "nvme0n2"), ("nvme3n1", "nvme3n1")] {
            assert!(is_namespace(name), "{name}");
            assert_eq!(without_path(name), disk);
        }
        for other in ["nvme0", "power", "ng0n1", "hwmon1"] {
            assert!(!is_namespace(other), "{other}");
        }
    }
}
