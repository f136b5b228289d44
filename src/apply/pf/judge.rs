//! What a run at a PF came to, VF by VF, and why. Pure.

use crate::ladder::vf::{shows_others, vf_progress};
use crate::ladder::{Facts, WantedPf, WantedVf};
use crate::names::{PciAddress, VfRung};
use crate::observe::{ObservedPf, ObservedVf};
use crate::plan::VfPlan;
use crate::report::pf::{Deferred, VfReport, VfStep};

/// The VFs of the plan as they are after the run.
pub(super) fn vfs(
    wanted: &WantedPf,
    observed: &ObservedPf,
    plan: &VfPlan,
    tried: &[(VfStep, String)],
    facts: &Facts,
) -> Vec<VfReport> {
    let each = |want: &WantedVf| {
        let seen = observed.vfs.iter().find(|v| v.index == want.index);
        let progress = vf_progress(want, seen, observed);
        let own = seen.and_then(|s| s.own.as_ref());
        let deferred = plan.deferred.iter().any(|d| match d {
            Deferred::Vf { vf, .. } => *vf == want.index,
            // What does not exist waits for the number.
            Deferred::Count { .. } => seen.is_none(),
        });
        let away = progress.reached == Some(VfRung::Rdma)
            && seen.is_some_and(|s| is_away(want, s, observed, tried));
        let right = progress.lacks.is_empty() || away;
        VfReport {
            vf: want.index,
            pci: seen.map(|s| s.pci),
            right,
            deferred: deferred && !right,
            reached: progress.reached,
            goal: progress.goal,
            node_guid: want.node_guid,
            port_guid: want.port_guid,
            rdma: own.map(|o| o.rdma.clone()),
            netdev: own.and_then(|o| o.netdev.clone()),
            cause: if away {
                "its netdev is in another network namespace, and is not looked at".to_owned()
            } else if right || deferred || plan.problem.is_some() {
                progress.lacks
            } else {
                cause(want, seen, &progress.lacks, tried, facts)
            },
        }
    };
    wanted.vfs.iter().map(each).collect()
}

/// A VF with an RDMA device and no netdev that this run has not bound, and that
/// shows nothing but the plan's GUIDs: a container has its netdev.
fn is_away(
    want: &WantedVf,
    seen: &ObservedVf,
    pf: &ObservedPf,
    tried: &[(VfStep, String)],
) -> bool {
    let bound = |s: &VfStep| matches!(s, VfStep::Bind { vf, .. } if *vf == seen.index);
    pf.ipoib
        && shows_others(want, seen, &pf.backend).is_none()
        && !tried.iter().any(|(s, _)| bound(s))
}

fn cause(
    want: &WantedVf,
    seen: Option<&ObservedVf>,
    lacks: &str,
    tried: &[(VfStep, String)],
    facts: &Facts,
) -> String {
    let of_vf: Vec<&(VfStep, String)> =
        tried.iter().filter(|(s, _)| s.vf() == Some(want.index)).collect();
    let log = seen.and_then(|s| facts.functions.get(&s.pci));
    let kernel = log.and_then(|l| l.probe_failed.as_ref().or(l.last_error.as_ref()));
    let kernel = kernel.map(|line| format!("; the kernel: {line}")).unwrap_or_default();
    if let Some((step, failure)) = of_vf.iter().find(|(_, f)| !f.is_empty()) {
        let kernel = match step {
            VfStep::Bind { driver, .. } if driver == "mlx4_core" && failure.contains("ENODEV") => {
                format!(
                    "; mlx4_core leaves VFs from number probe_vf on to virtual machines{kernel}"
                )
            }
            _ => kernel,
        };
        return format!("{lacks}: {step}: {failure}{kernel}");
    }
    let was_set = of_vf.iter().any(|(s, _)| {
        matches!(s, VfStep::NodeGuid { .. } | VfStep::PortGuid { .. } | VfStep::Policy { .. })
    });
    if was_set && lacks.contains("at the PF") || lacks.starts_with("its policy") {
        return format!(
            "{lacks}, although setting it was reported as done: the firmware dropped it{kernel}"
        );
    }
    let was_bound = of_vf.iter().any(|(s, _)| matches!(s, VfStep::Bind { .. }));
    if was_bound && lacks.contains(" instead of ") {
        return format!(
            "{lacks}, although it was bound after they were set: the VF's firmware goes on with others; a reset of the VF or the card may help{kernel}"
        );
    }
    format!("{lacks}{kernel}")
}

/// Why the number of VFs could not be changed, and what it means.
pub(super) fn number_failed(step: &VfStep, failure: &str, facts: &Facts, pf: PciAddress) -> String {
    let log = facts.functions.get(&pf).and_then(|l| l.last_error.as_ref());
    let kernel = log.map(|line| format!("; the kernel: {line}")).unwrap_or_default();
    let meaning = if failure.contains("ENOSPC") {
        "the firmware has no room for so many VFs: lower the number or raise NUM_OF_VFS with mlxconfig"
    } else if failure.contains("ERANGE") {
        "more than sriov_totalvfs: raise NUM_OF_VFS with mlxconfig"
    } else if failure.contains("ENOMEM") {
        "the bridge above has no room for the VFs' memory: enable SR-IOV in the server's firmware set-up, or boot with pci=realloc"
    } else if failure.contains("EBUSY") {
        "somebody else has changed the number meanwhile"
    } else if failure.contains("ENOENT") {
        "the driver has let go of the PF, or cannot do SR-IOV"
    } else if failure.contains("deadline") {
        "the driver hangs in making or removing VFs; see dmesg"
    } else {
        "see dmesg for the PF"
    };
    format!("could not {step}: {failure}: {meaning}{kernel}")
}
