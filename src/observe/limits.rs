//! What the kernel lets be done with the VFs of a PF, as it can be read before it is tried.

use std::collections::BTreeMap;

use super::administered::{Backend, is_infiniband};
use super::pci::dir;
use super::pf::driver;
use super::{Look, ObservedPf};
use crate::names::{PciAddress, VfIndex, keeps_for_others};

/// What is refused, of one PF.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    pub mlx4: Option<Mlx4>,
    /// The VFs whose IOMMU group has a function that a driver of the host has.
    pub shared: BTreeMap<VfIndex, SharedGroup>,
    /// The VFs have a second InfiniBand port, and not by mlx4: mlx5 sets the GUIDs of VFs at
    /// port 1, whatever port it is asked for (`mlx5_ib_set_vf_guid()`).
    pub port2_cannot_be_set: bool,
}

/// The parameters of mlx4_core, as the kernel prints them.
#[derive(Debug, Clone)]
pub struct Mlx4 {
    pub num_vfs: String,
    pub probe_vf: String,
}

/// An IOMMU group that a VF shares with a function that a driver of the host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedGroup {
    pub group: u32,
    pub with: PciAddress,
    pub driver: String,
}

pub fn limits(look: &mut Look<'_>, pf: &ObservedPf) -> Limits {
    let mut parameter =
        |name: &str| look.attribute(&format!("/sys/module/mlx4_core/parameters/{name}"));
    let mlx4 = match pf.backend {
        Backend::Mlx4 { .. } => parameter("num_vfs")
            .zip(parameter("probe_vf"))
            .map(|(num_vfs, probe_vf)| Mlx4 { num_vfs, probe_vf }),
        Backend::OfedSysfs | Backend::Netlink { .. } => None,
    };
    let mut users = BTreeMap::new();
    let shared = pf.vfs.iter().filter_map(|vf| Some((vf.index, shared(look, vf.pci, &mut users)?)));
    let shared = shared.collect();
    let device = format!("{}/infiniband", dir(pf.pf));
    let devices = look.list(&device);
    let mut has_port2 = |name: &String| is_infiniband(look, &format!("{device}/{name}/ports/2"));
    let port2_cannot_be_set =
        !matches!(pf.backend, Backend::Mlx4 { .. }) && devices.iter().any(&mut has_port2);
    Limits { mlx4, shared, port2_cannot_be_set }
}

/// The group of a VF, if it is not its alone; `users` are the groups that were looked at.
fn shared(
    look: &mut Look<'_>,
    vf: PciAddress,
    users: &mut BTreeMap<u32, Vec<(PciAddress, String)>>,
) -> Option<SharedGroup> {
    let group: u32 = look.link_name(&format!("{}/iommu_group", dir(vf)))?.parse().ok()?;
    let users = users.entry(group).or_insert_with(|| {
        let members = look.list(&format!("/sys/kernel/iommu_groups/{group}/devices"));
        let members = members.iter().filter_map(|name| name.parse().ok());
        let used = members.filter_map(|pci| Some((pci, driver(look, pci)?)));
        used.filter(|(_, driver)| !keeps_for_others(driver) && driver != "pcieport").collect()
    });
    let (with, driver) = users.iter().find(|(pci, _)| *pci != vf)?;
    Some(SharedGroup { group, with: *with, driver: driver.clone() })
}

impl Mlx4 {
    /// False if mlx4_core leaves the VF to guests.
    pub fn is_probed(&self, vf: VfIndex) -> bool {
        is_probed(counts(&self.num_vfs), counts(&self.probe_vf), u32::from(vf.get()) + 1)
    }
}

/// So many for port 1, for port 2, and for both: one number is for both
/// (`param_map`, drivers/net/ethernet/mellanox/mlx4/main.c).
fn counts(text: &str) -> [u32; 3] {
    let numbers: Vec<u32> = text.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    match numbers.as_slice() {
        [both] => [0, 0, *both],
        _ => [0, 1, 2].map(|at| numbers.get(at).copied().unwrap_or_default()),
    }
}

/// Whether function `number`, from 1, is one that the host may bind (`__mlx4_init_one()`).
fn is_probed(all: [u32; 3], probed: [u32; 3], number: u32) -> bool {
    let mut before = 0;
    for (all, probed) in all.into_iter().zip(probed) {
        if number <= before + all {
            return number - before <= probed;
        }
        before += all;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_say_which_vfs_the_host_may_bind() {
        for (num_vfs, probe_vf, probed) in [
            ("2", "", [false, false, false]),
            ("2", "1", [true, false, false]),
            ("2", "2", [true, true, false]),
            // One for port 1, one for port 2, two for both.
            ("1,1,1", "1,0,1", [true, false, true]),
            ("1,1,1", "3", [false, false, true]),
        ] {
            let is = [1, 2, 3].map(|n| is_probed(counts(num_vfs), counts(probe_vf), n));
            assert_eq!(is, probed, "{num_vfs} {probe_vf}");
        }
    }
}
