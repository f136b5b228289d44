//! Who uses a VF. A VF in use is never taken away, so whatever cannot be
//! determined counts as use.
//!
//! Reads `/proc/*/fd`, sysfs and, on a live host, RDMA netlink and rtnetlink.
//! All of it may wait for a lock, so on a live host it is run in a child.

use crate::report::Use;

use std::collections::BTreeSet;

use super::{Look, pf, rdma};
use crate::host::rdma_netlink::{self, Owner};
use crate::host::{Root, answer, netlink};
use crate::names::PciAddress;

/// Kernel modules that own resources of every device and use none.
const IDLE: [&str; 4] = ["ib_core", "ib_mad", "ib_cm", "ib_ipoib"];

/// The uses of each of these VFs, in their order.
#[must_use]
pub fn uses(root: &Root, vfs: &[PciAddress]) -> Vec<Vec<Use>> {
    let mut host = Host { root, net: None, open: None };
    vfs.iter().map(|vf| host.uses(*vf).into_iter().collect()).collect()
}

/// What is read once for all VFs, when the first needs it.
struct Host<'a> {
    root: &'a Root,
    net: Option<Result<Vec<(u32, String)>, String>>,
    open: Option<OpenVfio>,
}

/// Who has files of VFIO open.
#[derive(Default)]
struct OpenVfio {
    /// Device number `MAJOR:MINOR` or path below `/dev`, process and its name.
    files: Vec<(String, u32, String)>,
    /// Why it is not the whole truth.
    unknown: Option<String>,
}

impl Host<'_> {
    fn uses(&mut self, vf: PciAddress) -> BTreeSet<Use> {
        let mut uses = BTreeSet::new();
        let mut look = Look::new(self.root);
        let dir = pf::dir(vf);
        let driver = look.link_name(&format!("{dir}/driver"));
        match driver.as_deref() {
            // Nobody uses a function that nothing drives.
            None => {}
            Some("vfio-pci" | "vfio" | "mlx5_vfio_pci") => self.vfio(&mut look, &dir, &mut uses),
            Some("pci-stub") => {}
            Some(_) => self.on_this_host(&mut look, &dir, &mut uses),
        }
        uses.extend(look.problems.into_iter().map(|why| Use::Unknown { why }));
        uses
    }

    fn vfio(&mut self, look: &mut Look<'_>, dir: &str, uses: &mut BTreeSet<Use>) {
        let mut files = Vec::new();
        if let Some(group) = look.link_name(&format!("{dir}/iommu_group")) {
            files.push(format!("/dev/vfio/{group}"));
            files.push(format!("/dev/vfio/noiommu-{group}"));
        }
        for device in look.list(&format!("{dir}/vfio-dev")) {
            files.push(format!("/dev/vfio/devices/{device}"));
        }
        if files.is_empty() {
            uses.insert(Use::Unknown { why: format!("{dir} has no iommu_group") });
        }
        let root = self.root;
        let open = self.open.get_or_insert_with(|| open_vfio(root));
        for (file, pid, name) in &open.files {
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

    fn on_this_host(&mut self, look: &mut Look<'_>, dir: &str, uses: &mut BTreeSet<Use>) {
        let devices = rdma::devices(look, dir);
        if devices.is_empty() {
            // Registered and not to be seen: it was given to a container.
            let halves: Vec<String> =
                look.list(dir).into_iter().filter(|e| e.contains(".rdma.")).collect();
            if halves.iter().any(|h| self.root.exists(&format!("{dir}/{h}/driver"))) {
                uses.insert(Use::OtherNamespace { what: "RDMA device".to_owned() });
            }
            return;
        }
        let ipoib = self.root.exists("/sys/module/ib_ipoib");
        for device in &devices {
            let is_ib = |p: &&rdma::Port| p.link_layer == crate::names::LinkLayer::InfiniBand;
            if ipoib && device.ports.iter().filter(is_ib).any(|p| p.netdev.is_none()) {
                uses.insert(Use::OtherNamespace { what: "netdev".to_owned() });
            }
            if self.root.is_live() {
                match rdma_netlink::owners(device.name.as_str()) {
                    Ok(Some(owners)) => uses.extend(owners.into_iter().filter_map(owned)),
                    // It went away while it was looked at.
                    Ok(None) => {}
                    Err(e) => {
                        let why = format!("RDMA netlink: {}", answer(&e));
                        uses.insert(Use::Unknown { why });
                    }
                }
            }
        }
        // P_Key children are here too: they go with the port's own netdev.
        for netdev in look.list(&format!("{dir}/net")) {
            self.netdev(look, &format!("{dir}/net/{netdev}"), &netdev, uses);
        }
    }

    fn netdev(&mut self, look: &mut Look<'_>, dir: &str, netdev: &str, uses: &mut BTreeSet<Use>) {
        for entry in look.list(dir) {
            if entry == "master" {
                let with = look.link_name(&format!("{dir}/master")).unwrap_or_default();
                uses.insert(Use::Stacked { netdev: netdev.to_owned(), with });
            } else if let Some(with) = entry.strip_prefix("upper_") {
                let with = with.to_owned();
                uses.insert(Use::Stacked { netdev: netdev.to_owned(), with });
            }
        }
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

fn owned((owner, resource): (Owner, &'static str)) -> Option<Use> {
    let resource = resource.to_owned();
    match owner {
        Owner::Process(pid) => Some(Use::Process { resource, pid }),
        Owner::Kernel(module) if IDLE.contains(&module.as_str()) => None,
        Owner::Kernel(module) => Some(Use::Kernel { resource, module }),
    }
}

/// Looks at the open files of every process.
fn open_vfio(root: &Root) -> OpenVfio {
    let mut open = OpenVfio::default();
    let processes = match root.list("/proc") {
        Ok(names) => names,
        Err(e) => {
            open.unknown = Some(e.to_string());
            return open;
        }
    };
    for pid in processes.iter().filter_map(|n| n.parse::<u32>().ok()) {
        let dir = format!("/proc/{pid}/fd");
        let files = match root.list(&dir) {
            Ok(files) => files,
            // It has ended meanwhile.
            Err(e) if e.is_absent() => continue,
            Err(e) => {
                open.unknown = Some(format!("the open files of process {pid}: {e}"));
                continue;
            }
        };
        let (mut devices, mut groups) = (0, 0);
        for file in files {
            let Ok(target) = root.link_target(&format!("{dir}/{file}")) else { continue };
            if target.contains("anon_inode:[vfio-device]") {
                devices += 1;
            } else if target.contains("vfio/") && !target.ends_with("vfio/vfio") {
                groups += 1;
                let name = root.attribute(&format!("/proc/{pid}/comm")).unwrap_or_default();
                open.files.push((target, pid, name));
            }
        }
        // A device that outlives its group's file: of which VF is not told.
        if devices > 0 && groups == 0 {
            open.unknown = Some(format!("process {pid} has a VFIO device open, its group not"));
        }
    }
    open
}
