//! What `apply` would do at a PF, for those who only show it: the same look and the
//! same plan, without the doing.
//!
//! As `apply` does, it has a child read what may hang, and waits for it only so
//! long. A copied tree is read in this process.

use std::collections::BTreeSet;

use crate::host::Root;
use crate::ladder::WantedPf;
use crate::names::{PciAddress, VfIndex, vf_ranges};
use crate::observe::plan_host::PlanHost;
use crate::observe::{Look, ObservedPf, Undo, limits, pf};
use crate::plan::VfPlan;
use crate::plan::guid::Resolved;
use crate::plan::preview::PfSteps;
use crate::plan::refusal::refusals;
use crate::plan::show::pf_report;
use crate::plan::vf::{Uses, disturbed, vf_steps};
use crate::report::Use;
use crate::report::plan::PlannedPf;
use crate::report::refusal::Refusal;
use crate::workers::survey::RDMA_HELD;
use crate::workers::{Answer, Client, Failure, Request, SILENCE_USEC};

/// Looks at PFs, one after the other.
pub(super) struct PfPreview<'a> {
    root: &'a Root,
    worker: Client<'a>,
    /// RDMA netlink has not answered: it is asked no more.
    is_rdma_held: bool,
    /// What could not be read of VFs, one line each.
    pub(super) problems: BTreeSet<String>,
}

/// What has just not answered, and is not asked again.
#[derive(Debug, Default)]
pub(super) struct Hanging {
    pub(super) pfs: BTreeSet<PciAddress>,
    pub(super) rdma_netlink: bool,
}

/// The plans, held against the host, and what could not be read of it.
pub(super) fn reports(
    root: &Root,
    plans: &[Resolved],
    facts: &PlanHost,
    hanging: &Hanging,
) -> (Vec<PlannedPf>, BTreeSet<String>) {
    let mut preview = PfPreview { is_rdma_held: hanging.rdma_netlink, ..PfPreview::new(root) };
    let pfs = plans.iter().map(|plan| {
        let function = facts.functions.iter().find(|f| Some(f.pci) == plan.pci);
        let observed = plan.pci.filter(|pci| !hanging.pfs.contains(pci)).map(|pci| {
            let seen = preview.look(pci);
            let steps = plan.wanted.as_ref().map(|wanted| preview.steps(wanted, &seen));
            let (steps, refused) = steps.unwrap_or_default();
            (seen, steps, refused)
        });
        pf_report(plan, function, observed)
    });
    let pfs = pfs.collect();
    (pfs, preview.problems)
}

impl<'a> PfPreview<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        let worker = Client::new(root);
        Self { root, worker, is_rdma_held: false, problems: BTreeSet::new() }
    }

    /// The PF with all that is administered there.
    pub(super) fn look(&mut self, pci: PciAddress) -> ObservedPf {
        let mut look = Look::new(self.root);
        let mut pf = pf::look(&mut look, pci, Undo::default());
        let lacking = match self.is_rdma_held {
            true => Vec::new(),
            false => pf::without_netdev(&mut look, &pf),
        };
        let mut problems: Vec<String> = look.problems.into_iter().collect();
        let mut refusal = None;
        let mut requests = Request::all_of(&pf);
        let administered = requests.len();
        if !lacking.is_empty() {
            let devices = lacking.iter().map(|(_, device)| device.clone());
            requests.push(Request::IpoibNetdevs(devices.collect()));
        }
        let replies = self.worker.ask_all(&requests);
        for (at, reply) in replies.into_iter().enumerate() {
            match reply {
                Ok(Answer::IpoibNetdevs(counts)) => pf.learn_netdevs(&lacking, &counts),
                Err(failure) if at >= administered => {
                    self.is_rdma_held = true;
                    let vfs = vf_ranges(lacking.iter().map(|(index, _)| *index));
                    let why = match failure {
                        Failure::Silent => RDMA_HELD.to_owned(),
                        failure => failure.to_string(),
                    };
                    problems.push(format!("whether ib_ipoib has netdevs of {vfs} of {pci}: {why}"));
                }
                Ok(Answer::Administered(told)) => pf.learn(told, &mut problems),
                Ok(other) => pf.unreadable = Some(format!("an unexpected answer: {other:?}")),
                Err(Failure::Refused(refused)) => refusal = Some(refused.said),
                Err(failure) => pf.unreadable = Some(why(&failure)),
            }
        }
        let unanswered: Vec<VfIndex> = pf.unanswered().collect();
        // A copied tree has no kernel to ask.
        if !unanswered.is_empty() && pf.unreadable.is_none() && self.root.is_live() {
            let why = refusal.as_deref().unwrap_or(
                "the driver of the PF did not report all of them, as when a firmware command fails, see dmesg",
            );
            let vfs = vf_ranges(unanswered.into_iter());
            problems.push(format!("the settings of {vfs} of {pci} at the PF: {why}"));
        }
        self.problems.extend(problems);
        pf
    }

    /// What would be done, and what would be refused.
    fn steps(&mut self, wanted: &WantedPf, observed: &ObservedPf) -> (VfPlan, Vec<Refusal>) {
        let plan = self.used_steps(wanted, observed);
        let mut look = Look::new(self.root);
        let limits = limits::limits(&mut look, observed);
        self.problems.extend(look.problems);
        let refused = refusals(wanted, observed, &plan, &limits);
        (plan, refused)
    }

    /// What would be done, with who uses the VFs that it would disturb.
    fn used_steps(&mut self, wanted: &WantedPf, observed: &ObservedPf) -> VfPlan {
        let plan = vf_steps(wanted, observed, &Uses::new());
        let touched = disturbed(wanted, &plan, observed);
        if touched.is_empty() {
            return plan;
        }
        let of = |vf| observed.vf(vf).map(|v| v.pci);
        let pcis = touched.iter().filter_map(|vf| of(*vf)).collect();
        let uses = match self.worker.ask_all(&[Request::Uses(pcis)]).pop() {
            Some(Ok(Answer::Uses(uses))) => uses,
            Some(Err(failure)) => vec![vec![Use::Unknown { why: why(&failure) }]; touched.len()],
            other => {
                let why = format!("an unexpected answer: {other:?}");
                vec![vec![Use::Unknown { why }]; touched.len()]
            }
        };
        vf_steps(wanted, observed, &touched.into_iter().zip(uses).collect())
    }

    /// What dry runs say of a PF.
    pub(super) fn would(&mut self, wanted: &WantedPf, warnings: &[String]) -> PfSteps {
        let seen = self.look(wanted.pf);
        let (plan, refused) = self.steps(wanted, &seen);
        PfSteps {
            pf: wanted.pf,
            planned: wanted.vfs.len(),
            plan,
            refused,
            warnings: warnings.to_vec(),
        }
    }
}

fn why(failure: &Failure) -> String {
    match failure {
        Failure::Silent => format!("no answer in {} s", SILENCE_USEC / 1_000_000),
        failure => failure.to_string(),
    }
}
