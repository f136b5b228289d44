//! The names that the patterns of the configuration give VFs on this host.

use std::collections::BTreeMap;

use super::Draft;
use crate::names::{IfName, PfNames, VfIndex, VfNamePattern, VfNames, is_given_by_kernel};
use crate::observe::plan_host::PlanHost;
use crate::report::plan::PlanProblem;

/// Fill in each draft's names, and what is wrong with them, alone and against each
/// other.
pub(super) fn names(drafts: &mut [Draft<'_>], host: &PlanHost) {
    let mut netdevs: BTreeMap<String, String> = BTreeMap::new();
    let mut rdma: BTreeMap<String, String> = BTreeMap::new();
    for function in host.functions.iter().filter(|f| f.physfn.is_none()) {
        let pf = format!("PF {}", function.pci);
        netdevs.extend(function.netdev.iter().map(|name| (name.to_string(), pf.clone())));
        rdma.extend(function.rdma.iter().map(|name| (name.to_string(), pf.clone())));
    }
    for draft in drafts {
        let Some(function) = draft.function else { continue };
        let pf = PfNames { netdev: function.netdev.as_ref(), rdma: function.rdma.first() };
        let Draft { config, errors, .. } = draft;
        let vfs = || VfIndex::first(config.vfs);
        let owner = |vf: VfIndex| format!("VF {vf} of {}", function.pci);
        let mut of = |pattern: Option<&VfNamePattern>, what, taken: &mut BTreeMap<_, _>| {
            let mut names = Vec::new();
            for vf in vfs().filter(|_| pattern.is_some()) {
                let Some(name) = pattern.and_then(|pattern| pattern.name(pf, vf)) else {
                    errors.push(PlanProblem::NoPfName { what });
                    break;
                };
                if is_given_by_kernel(&name) {
                    errors.push(PlanProblem::KernelsName { vf, what, name: name.clone() });
                    break;
                }
                if let Some(other) = taken.insert(name.clone(), owner(vf)) {
                    errors.push(PlanProblem::SameName { vf, what, name: name.clone(), other });
                    break;
                }
                names.push(name);
            }
            names
        };
        let netdev_names = of(config.vf_name.as_ref(), "netdev", &mut netdevs);
        let rdma_names = of(config.vf_rdma_name.as_ref(), "RDMA device", &mut rdma);
        let mut all = Vec::new();
        for (at, vf) in vfs().enumerate() {
            let (netdev, device) = (netdev_names.get(at), rdma_names.get(at));
            let named = VfNames {
                netdev: netdev.and_then(|name| IfName::to_give(name).ok()),
                rdma: device.and_then(|name| name.parse().ok()),
            };
            let unfit = [
                (netdev.filter(|_| named.netdev.is_none()), "netdev"),
                (device.filter(|_| named.rdma.is_none()), "RDMA device"),
            ];
            for (name, what) in unfit {
                let name = name.cloned();
                errors.extend(name.map(|name| PlanProblem::BadName { vf, what, name }));
            }
            all.push(named);
        }
        draft.names = all;
    }
}
