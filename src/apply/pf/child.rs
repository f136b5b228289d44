//! The child that holds the PF's lock and does what may hang, and what it is asked.

use std::collections::BTreeMap;

use nix::errno::Errno;

use super::watch::Watch;
use crate::host::lock::Held;
use crate::host::netlink::VfSetting;
use crate::host::{Root, clock, live_line};
use crate::names::{PciAddress, RdmaName, VfIndex};
use crate::observe::administered::alias_entry;
use crate::observe::pf::dir;
use crate::observe::{Backend, Look, ObservedPf, ObservedVf, Undo};
use crate::report::Use;
use crate::report::pf::{StepFailure, VfStep};
use crate::workers::survey::rdma_held;
use crate::workers::{Answer, Client, Failure, Refusal, Reply, Request, SILENCE_USEC, undo};

/// The child of a run.
pub(super) struct Child<'a> {
    client: Client<'a>,
    /// One for RDMA netlink alone, so that a registration that hangs takes no thread of the
    /// other. None once it has not answered.
    rdma_netlink: Option<Client<'a>>,
    /// The child shares it: who ends first leaves it to the other.
    _lock: Option<Held>,
}

impl<'a> Child<'a> {
    /// It starts while this process looks around. When this process has ended, by whatever
    /// end, it puts back what is left at `pf`.
    pub(super) fn start(
        root: &'a Root,
        pf: PciAddress,
        mut lock: Option<Held>,
    ) -> anyhow::Result<Self> {
        let mut client = Client::new(root).patient().at(pf);
        client.start(lock.as_ref())?;
        if let Some((lock, child)) = lock.as_mut().zip(client.pid()) {
            lock.set_owner(child);
        }
        Ok(Self { client, rdma_netlink: Some(Client::new(root).patient()), _lock: lock })
    }

    /// Ask for all of these, and wait for the replies until `until`. What has not
    /// come by then is `None`.
    pub(super) fn ask(
        &mut self,
        requests: &[Request],
        watch: &mut Watch,
        until: u64,
    ) -> anyhow::Result<Vec<Option<Reply>>> {
        ask(&mut self.client, requests, watch, until)
    }

    /// How many netdevs ib_ipoib has of these RDMA devices; what is not known is left out, and
    /// `problems` says why.
    pub(super) fn ask_ipoib_netdevs(
        &mut self,
        devices: Vec<RdmaName>,
        watch: &mut Watch,
        problems: &mut Vec<String>,
    ) -> anyhow::Result<Vec<Option<usize>>> {
        let Some(client) = self.rdma_netlink.as_mut().filter(|_| !devices.is_empty()) else {
            return Ok(Vec::new());
        };
        let until = watch.last_moment().min(clock::monotonic_usec() + SILENCE_USEC);
        let reply = ask(client, &[Request::IpoibNetdevs(devices)], watch, until)?.pop().flatten();
        let why = match reply {
            Some(Ok(Answer::IpoibNetdevs(counts))) => return Ok(counts),
            None => rdma_held(&Failure::SILENT),
            other => failure(other).to_string(),
        };
        self.rdma_netlink = None;
        problems.push(format!("VFs may have netdevs in another network namespace: {why}"));
        Ok(Vec::new())
    }

    /// Complete `observed` with what the PF administers for its VFs. What was not told
    /// is added to `problems`, where the kernel refused it or a file could not be read. If
    /// nobody was there to answer, nothing can be compared.
    pub(super) fn ask_administered(
        &mut self,
        observed: &mut ObservedPf,
        watch: &mut Watch,
        problems: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        observed.forget_administered();
        observed.unreadable = None;
        if observed.vfs.is_empty() {
            return Ok(());
        }
        for reply in self.ask(&Request::all_of(observed), watch, watch.last_moment())? {
            match reply {
                Some(Ok(Answer::Administered(told))) => observed.learn(told, problems),
                Some(Err(refused @ Failure::Refused(_))) => problems.push(refused.to_string()),
                Some(other) => observed.unreadable = Some(failure(Some(other)).to_string()),
                None => {
                    observed.unreadable = Some(format!(
                        "no answer before the deadline: process {} is still waiting; a firmware command times out after 60 s",
                        self.client.pid().unwrap_or_default()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Its process id, while there is one.
    pub(super) fn pid(&self) -> Option<u32> {
        self.client.pid()
    }

    /// RDMA netlink has not answered.
    pub(super) const fn is_rdma_held(&self) -> bool {
        self.rdma_netlink.is_none()
    }

    /// Who alone may bind these functions, empty for whoever can; left out where it
    /// was not answered: a driver's probe hangs there.
    pub(super) fn ask_overrides(
        &mut self,
        vfs: &[PciAddress],
        watch: &mut Watch,
    ) -> anyhow::Result<Vec<(PciAddress, String)>> {
        let requests: Vec<Request> = vfs.iter().copied().map(Request::Override).collect();
        let replies = self.ask(&requests, watch, watch.last_moment())?;
        let known = |(vf, reply): (&PciAddress, Option<Reply>)| match reply {
            Some(Ok(Answer::Override(driver))) => Some((*vf, driver.unwrap_or_default())),
            _ => None,
        };
        Ok(vfs.iter().zip(replies).filter_map(known).collect())
    }

    /// Who uses these VFs, VF by VF.
    pub(super) fn ask_uses(
        &mut self,
        vfs: Vec<PciAddress>,
        watch: &mut Watch,
    ) -> anyhow::Result<Vec<Vec<Use>>> {
        let count = vfs.len();
        let reply = self.ask(&[Request::Uses(vfs)], watch, watch.deadline())?.pop().flatten();
        Ok(match reply {
            Some(Ok(Answer::Uses(uses))) => uses,
            other => vec![vec![Use::Unknown { why: failure(other).to_string() }]; count],
        })
    }
}

/// Ask `client` for all of these, and wait for the replies until `until`. What has not come by
/// then is `None`.
fn ask(
    client: &mut Client<'_>,
    requests: &[Request],
    watch: &mut Watch,
    until: u64,
) -> anyhow::Result<Vec<Option<Reply>>> {
    let numbers: Vec<u64> = requests.iter().map(|r| client.ask(r)).collect();
    let mut replies = BTreeMap::new();
    // Who asks after a signal has reckoned with it.
    let was_stopped = watch.is_stopped();
    loop {
        replies.extend(client.replies());
        live_line::count(replies.len(), numbers.len());
        let is_cut_short = watch.is_stopped() && !was_stopped;
        let until = if is_cut_short { until.min(watch.last_moment()) } else { until };
        let is_all = numbers.iter().all(|number| replies.contains_key(number));
        if is_all || clock::monotonic_usec() >= until {
            return Ok(numbers.iter().map(|number| replies.remove(number)).collect());
        }
        watch.wait_for_child(client.fd(), until)?;
    }
}

/// What a reply that is no success says.
pub(super) fn failure(reply: Option<Reply>) -> StepFailure {
    match reply {
        Some(Err(Failure::Refused(Refusal { tried, said, errno }))) => {
            StepFailure::Refused { tried, said, errno: errno.map(Errno::from_raw) }
        }
        Some(Err(Failure::NoChild(why))) => {
            StepFailure::Other(format!("cannot start a child process: {why}"))
        }
        // This child is waited for until the deadline, not for so long.
        Some(Err(Failure::Silent(_))) | None => StepFailure::Unfinished,
        Some(Ok(Answer::InUse(vfs))) => {
            StepFailure::InUse(vfs.into_iter().flat_map(|(_, uses)| uses).collect())
        }
        Some(Ok(other)) => {
            StepFailure::Other(format!("the child process gave an unexpected answer: {other:?}"))
        }
    }
}

/// What does `step` at a PF as it was seen. `before` is what was remembered.
/// `None` if the VF that the step is about was not there.
pub(super) fn request(
    step: &VfStep,
    observed: &ObservedPf,
    before: &Undo,
    root: &Root,
) -> Option<Request> {
    let pf = observed.pf;
    let set = |vf: VfIndex, setting| Some(set_vf(observed, observed.vf(vf)?, setting, root));
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
pub(super) fn to_number(pf: PciAddress, number: u16, unless_used: Vec<PciAddress>) -> Request {
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
        // Without a netdev there is no step (Code::PfNotReady).
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
