//! What the child that holds the PF's lock is asked, and what it does, as it may hang.

use super::machine::{Machine, Responder};
use super::watch::Watch;
use crate::host::netlink::VfSetting;
use crate::model::{StepFailure, Use, VfStep, used_by};
use crate::names::{PciAddress, PortNumber, RdmaName, VfIndex};
use crate::observe::pf::dir;
use crate::observe::{Backend, ObservedPf, ObservedVf, Undo};
use crate::workers::survey::rdma_held;
use crate::workers::{Answer, Failure, Reply, Request, SILENCE, undo};

impl<M: Machine> Watch<M> {
    /// How many netdevs ib_ipoib has of these RDMA devices; what is not known is left out.
    ///
    /// # Errors
    /// Why the kernel has not answered.
    pub(super) fn ask_ipoib_netdevs(
        &mut self,
        devices: Vec<RdmaName>,
    ) -> anyhow::Result<Result<Vec<Option<usize>>, String>> {
        let until = self.last_moment().min(self.now() + SILENCE);
        let request = [Request::IpoibNetdevs(devices)];
        let reply = self.ask(Responder::RdmaNetlink, &request, until)?.pop().flatten();
        Ok(match reply {
            Some(Ok(Answer::IpoibNetdevs(counts))) => Ok(counts),
            None => Err(rdma_held(&Failure::SILENT)),
            other => Err(failure(other).to_string()),
        })
    }

    /// Complete `observed` with what the PF administers for its VFs. What was not told
    /// is added to `problems`, where the kernel refused it or a file could not be read. If
    /// nobody was there to answer, nothing can be compared.
    pub(super) fn ask_administered(
        &mut self,
        observed: &mut ObservedPf,
        problems: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        observed.forget_administered();
        observed.unreadable = None;
        if observed.vfs.is_empty() {
            return Ok(());
        }
        for reply in self.ask(Responder::Child, &Request::all_of(observed), self.last_moment())? {
            match reply {
                Some(Ok(Answer::Administered(told))) => observed.learn(told, problems),
                Some(Err(refused @ Failure::Refused(_))) => problems.push(refused.to_string()),
                Some(other) => observed.unreadable = Some(failure(Some(other)).to_string()),
                None => {
                    observed.unreadable = Some(format!(
                        "no answer before the deadline: process {} is still waiting; a firmware command times out after 60 s",
                        self.machine.child().unwrap_or_default()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Who alone may bind these functions, empty for whoever can; left out where it
    /// was not answered: a driver's probe hangs there.
    pub(super) fn ask_overrides(
        &mut self,
        vfs: &[PciAddress],
    ) -> anyhow::Result<Vec<(PciAddress, String)>> {
        let requests: Vec<Request> = vfs.iter().copied().map(Request::Override).collect();
        let replies = self.ask(Responder::Child, &requests, self.last_moment())?;
        let known = |(vf, reply): (&PciAddress, Option<Reply>)| match reply {
            Some(Ok(Answer::Override(driver))) => Some((*vf, driver.unwrap_or_default())),
            _ => None,
        };
        Ok(vfs.iter().zip(replies).filter_map(known).collect())
    }

    /// Who uses these VFs, VF by VF.
    pub(super) fn ask_uses(&mut self, vfs: Vec<PciAddress>) -> anyhow::Result<Vec<Vec<Use>>> {
        let count = vfs.len();
        let request = [Request::Uses(vfs)];
        let reply = self.ask(Responder::Child, &request, self.deadline)?.pop().flatten();
        Ok(match reply {
            Some(Ok(Answer::Uses(uses))) => uses,
            other => vec![vec![Use::Unknown { why: failure(other).to_string() }]; count],
        })
    }
}

/// What a reply that is no success says.
pub(super) fn failure(reply: Option<Reply>) -> StepFailure {
    match reply {
        Some(Ok(Answer::InUse(vfs))) => {
            let uses: Vec<Use> = vfs.into_iter().flat_map(|(_, uses)| uses).collect();
            StepFailure::Other(used_by(&uses))
        }
        Some(Err(Failure::Refused(refusal))) => refusal.into(),
        // This child is waited for until the deadline, not for so long.
        Some(Err(Failure::Silent(_))) | None => StepFailure::Unfinished,
        Some(other) => StepFailure::Other(Failure::of(other).to_string()),
    }
}

/// What does `step` at a PF as it was seen. `before` is what was remembered.
/// `None` if the VF that the step is about was not there.
pub(super) fn request(
    step: &VfStep,
    observed: &ObservedPf,
    before: &Undo,
    machine: &impl Machine,
) -> Option<Request> {
    let pf = observed.pf;
    let set = |vf: VfIndex, setting| {
        set_vf(observed, observed.vf(vf)?, PortNumber::FIRST, setting, machine)
    };
    match step {
        VfStep::AutoprobeOff => Some(write(format!("{}/sriov_drivers_autoprobe", dir(pf)), "0")),
        VfStep::Count { to, .. } => Some(to_number(pf, *to, Vec::new())),
        VfStep::Unbind { vf, driver } => {
            let pci = observed.vf(*vf)?.pci;
            Some(Request::Write {
                path: format!("/sys/bus/pci/drivers/{driver}/unbind"),
                value: pci.to_string(),
                unless_used: vec![pci],
            })
        }
        VfStep::NodeGuid { vf, to, .. } => set(*vf, VfSetting::NodeGuid(*to)),
        VfStep::PortGuid { vf, port, to, .. } => {
            set_vf(observed, observed.vf(*vf)?, *port, VfSetting::PortGuid(*to), machine)
        }
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
pub(super) fn to_number(pf: PciAddress, number: u16, unless_used: Vec<PciAddress>) -> Request {
    let path = format!("{}/sriov_numvfs", dir(pf));
    Request::Write { path, value: number.to_string(), unless_used }
}

fn set_vf(
    pf: &ObservedPf,
    vf: &ObservedVf,
    port: PortNumber,
    setting: VfSetting,
    machine: &impl Machine,
) -> Option<Request> {
    let (file, value) = match setting {
        VfSetting::NodeGuid(guid) => ("node", guid.bytes()),
        VfSetting::PortGuid(guid) => ("port", guid.bytes()),
        VfSetting::Policy(policy) => ("policy", policy.word().to_owned()),
    };
    Some(match &pf.backend {
        Backend::OfedSysfs => write(format!("{}/sriov/{}/{file}", dir(pf.pf), vf.index), &value),
        // Without a netdev there is no step (Code::PfNotReady).
        Backend::Netlink { ifindex } => {
            Request::SetVf { ifindex: ifindex.unwrap_or_default(), vf: vf.index, setting }
        }
        // Nor without a directory. It has port GUIDs only.
        Backend::Mlx4 { iov } => {
            let iov = iov.as_deref().unwrap_or_default();
            let path = machine.alias_entry(iov, vf.pci, port)?;
            write(path, &value.replace(':', ""))
        }
    })
}

fn write(path: String, value: &str) -> Request {
    Request::Write { path, value: value.to_owned(), unless_used: Vec::new() }
}
