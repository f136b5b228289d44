//! The child that holds the PF's lock and does what may hang, and what it is asked.

use std::collections::BTreeMap;

use nix::errno::Errno;

use super::watch::Watch;
use crate::host::lock::Held;
use crate::host::{Root, clock};
use crate::names::PciAddress;
use crate::observe::ObservedPf;
use crate::report::Use;
use crate::report::pf::StepFailure;
use crate::workers::{Answer, Client, Failure, Refusal, Reply, Request};

/// The child of a run.
pub(super) struct Child<'a> {
    client: Client<'a>,
    /// The child shares it: who ends first leaves it to the other.
    _lock: Option<Held>,
}

impl<'a> Child<'a> {
    /// It starts while this process looks around.
    pub(super) fn start(root: &'a Root, lock: Option<Held>) -> anyhow::Result<Self> {
        let mut client = Client::new(root).patient();
        client.start(lock.as_ref())?;
        Ok(Self { client, _lock: lock })
    }

    /// Ask for all of these, and wait for the replies until `until`. What has not
    /// come by then is `None`.
    pub(super) fn ask(
        &mut self,
        requests: &[Request],
        watch: &mut Watch,
        until: u64,
    ) -> anyhow::Result<Vec<Option<Reply>>> {
        let numbers: Vec<u64> = requests.iter().map(|r| self.client.ask(r)).collect();
        let mut replies = BTreeMap::new();
        loop {
            replies.extend(self.client.replies());
            let until = if watch.is_stopped() { until.min(watch.last_moment()) } else { until };
            let is_all = numbers.iter().all(|number| replies.contains_key(number));
            if is_all || clock::monotonic_usec() >= until {
                return Ok(numbers.iter().map(|number| replies.remove(number)).collect());
            }
            watch.wait_for_child(self.client.fd(), until)?;
        }
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

/// What a reply that is no success says.
pub(super) fn failure(reply: Option<Reply>) -> StepFailure {
    match reply {
        Some(Err(Failure::Refused(Refusal { tried, said, errno }))) => StepFailure::Refused {
            tried: tried.to_string(),
            said,
            errno: errno.map(Errno::from_raw),
        },
        Some(Err(Failure::NoChild(why))) => StepFailure::NoChild { why },
        // This child is waited for until the deadline, not for so long.
        Some(Err(Failure::Silent)) | None => StepFailure::Unfinished,
        Some(Ok(Answer::InUse(uses))) => StepFailure::InUse(uses),
        Some(Ok(other)) => StepFailure::Unexpected { answer: format!("{other:?}") },
    }
}
