//! What the child is asked for to do a step.

use crate::host::Root;
use crate::host::netlink::VfSetting;
use crate::names::{PciAddress, VfIndex};
use crate::observe::administered::alias_entry;
use crate::observe::pf::dir;
use crate::observe::{Backend, Look, ObservedPf, ObservedVf, Undo};
use crate::report::pf::VfStep;
use crate::workers::{Request, undo};

/// What does `step` at a PF as it was seen. `before` is what was remembered.
/// `None` if the VF that the step is about was not there.
pub(super) fn of(
    step: &VfStep,
    observed: &ObservedPf,
    before: &Undo,
    root: &Root,
) -> Option<Request> {
    let pf = observed.pf;
    let set = |vf: VfIndex, setting| Some(set_vf(observed, observed.vf(vf)?, setting, root));
    match step {
        VfStep::AutoprobeOff => Some(write(format!("{}/sriov_drivers_autoprobe", dir(pf)), "0")),
        VfStep::Count { to, .. } => Some(number(pf, *to, Vec::new())),
        VfStep::Unbind { vf, driver } => {
            let pci = observed.vf(*vf)?.pci;
            Some(Request::Write {
                path: format!("/sys/bus/pci/drivers/{driver}/unbind"),
                value: pci.to_string(),
                unless_used: vec![pci],
            })
        }
        VfStep::NodeGuid { vf, to, .. } => set(*vf, VfSetting::NodeGuid(*to)),
        VfStep::PortGuid { vf, to, .. } => set(*vf, VfSetting::PortGuid(*to)),
        VfStep::Policy { vf, to, .. } => set(*vf, VfSetting::Policy(*to)),
        VfStep::Bind { vf, driver, rdma, .. } => {
            let pci = observed.vf(*vf)?.pci;
            let before = before.overrides.get(&pci).cloned().unwrap_or_default();
            Some(Request::Bind { pci, driver: driver.clone(), before, rdma: rdma.clone() })
        }
        VfStep::RestoreAutoprobe { .. } | VfStep::RestoreOverride { .. } => undo::restore(pf, step),
    }
}

/// Make so many VFs, unless one of `unless_used` is in use. From one number to
/// another the way is by none.
pub(super) fn number(pf: PciAddress, number: u16, unless_used: Vec<PciAddress>) -> Request {
    let path = format!("{}/sriov_numvfs", dir(pf));
    Request::Write { path, value: number.to_string(), unless_used }
}

fn set_vf(pf: &ObservedPf, vf: &ObservedVf, setting: VfSetting, root: &Root) -> Request {
    let (file, value) = match setting {
        VfSetting::NodeGuid(guid) => ("node", guid.bytes()),
        VfSetting::PortGuid(guid) => ("port", guid.bytes()),
        VfSetting::Policy(policy) => ("policy", policy.word().to_owned()),
    };
    match &pf.backend {
        Backend::OfedSysfs => write(format!("{}/sriov/{}/{file}", dir(pf.pf), vf.index), &value),
        // Without a netdev there is no step (PfProblem::NotReady).
        Backend::Netlink { ifindex } => {
            Request::SetVf { ifindex: ifindex.unwrap_or_default(), vf: vf.index, setting }
        }
        // Nor without a directory. It has port GUIDs only.
        Backend::Mlx4 { iov } => {
            let iov = iov.as_deref().unwrap_or_default();
            let path = alias_entry(&mut Look::new(root), iov, vf.index, vf.pci);
            write(path, &value.replace(':', ""))
        }
    }
}

fn write(path: String, value: &str) -> Request {
    Request::Write { path, value: value.to_owned(), unless_used: Vec::new() }
}
