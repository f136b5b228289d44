//! What keeps HCAs or their kernel modules busy: what a stop of the drivers, an unbind or an
//! update of them stumbles over.
//!
//! Reads `/proc`, sysfs and, on a live host, RDMA netlink and rtnetlink. Some of it may wait
//! for a lock, so on a live host it is run in a child.

use std::collections::{BTreeMap, BTreeSet};

use super::open_files::{OpenFiles, name, open_files, unit};
use super::uses::uses;
use super::{Look, pf};
use crate::model::{
    Use,
    holders::{By, Holder},
};
use crate::names::{HCA_DRIVERS, PciAddress, RDMA_CORE, harmless, rdma_half_of};

/// What keeps these functions, or the modules of their drivers, busy.
pub fn holders(look: &mut Look<'_>, functions: &[PciAddress]) -> Vec<Holder> {
    let mut found = Found::default();
    let used = uses(look.root, functions);
    for (hca, uses) in functions.iter().zip(used) {
        for by in uses {
            found.usage(look, *hca, by);
        }
    }
    found.device_files(look, functions);
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
            // An address goes with its netdev, and a SCSI host with its module.
            Use::Network { .. } | Use::ScsiHost { .. } => return,
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

    /// `/sys/module/X/holders` has the modules that use X. Those that are drivers themselves
    /// are followed, the others are holders.
    fn modules(&mut self, look: &mut Look<'_>, functions: &[PciAddress]) {
        let mut open: Vec<String> = RDMA_CORE.iter().map(|name| (*name).to_owned()).collect();
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
            let is_driver = RDMA_CORE.contains(&module.as_str()) || HCA_DRIVERS.contains(&&*module);
            let counted = u32::try_from(above.len()).unwrap_or(u32::MAX);
            let more = count(look, &module).unwrap_or(0).saturating_sub(counted);
            // Open files of devices count too.
            if is_driver && more > 0 && !has_processes {
                self.add(None, By::Reference { module: module.clone(), count: more });
            }
            for name in above {
                if !RDMA_CORE.contains(&name.as_str()) && !HCA_DRIVERS.contains(&name.as_str()) {
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
