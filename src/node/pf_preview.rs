//! What `apply` would do at a PF, for those who only show it: the same look and the
//! same plan, without the doing.
//!
//! As `apply` does, it has a child read what may hang, and waits for it only so
//! long. A copied tree is read in this process.

use std::collections::{BTreeMap, BTreeSet};

use crate::host::Root;
use crate::model::{PlannedPf, Silence, Use, WantedPf};
use crate::names::{PciAddress, Resource, VfIndex, vf_ranges};
use crate::observe::plan_host::PlanHost;
use crate::observe::{Backend, Look, ObservedPf, limits, pf};
use crate::plan::VfPlan;
use crate::plan::diff::{Refused, pf_report, refusals};
use crate::plan::guid::Resolved;
use crate::plan::vf::{Uses, disturbed, removed, vf_steps};
use crate::workers::client::ask_each;
use crate::workers::survey::rdma_held;
use crate::workers::{Answer, Client, Failure, Request};

/// Looks at PFs, one after the other.
#[derive(Debug)]
pub struct PfPreview<'a> {
    root: &'a Root,
    is_look: bool,
    /// Those have just not answered, and are not asked again.
    hanging: BTreeMap<PciAddress, Option<Silence>>,
    /// RDMA netlink has not answered: it is asked no more.
    is_rdma_held: bool,
    /// What could not be read of VFs, one line each.
    pub problems: BTreeSet<String>,
}

impl<'a> PfPreview<'a> {
    pub fn new(
        root: &'a Root,
        hanging: BTreeMap<PciAddress, Option<Silence>>,
        is_rdma_held: bool,
    ) -> Self {
        Self { root, is_look: true, hanging, is_rdma_held, problems: BTreeSet::new() }
    }

    /// For who is about to apply the plans: no look that hangs keeps it from that.
    pub fn of_apply(root: &'a Root) -> Self {
        Self { is_look: false, ..Self::new(root, BTreeMap::new(), false) }
    }

    fn client(&self, resource: Resource) -> Client<'a> {
        if self.is_look {
            Client::new(self.root).querying(resource)
        } else {
            Client::new(self.root)
        }
    }

    /// `plan`, held against the host.
    pub fn report(&mut self, plan: &Resolved, host: &PlanHost) -> PlannedPf {
        let function = host.functions.iter().find(|f| Some(f.pci) == plan.pci);
        let observed = plan.pci.map(|pci| {
            let seen = self.look(pci);
            let steps = plan.wanted.as_ref().map(|wanted| self.steps(wanted, &seen));
            let (steps, refused) = steps.unwrap_or_default();
            (seen, steps, refused)
        });
        pf_report(plan, function, observed)
    }

    /// `apply` would do something at the PF, or could not although something is to be done.
    pub fn would_change(&mut self, wanted: &WantedPf) -> bool {
        let seen = self.look(wanted.pf);
        let (plan, _) = self.steps(wanted, &seen);
        !plan.steps.is_empty() || plan.problem.is_some()
    }

    /// The VFs with a driver that `apply` would destroy at the PF.
    pub fn removed(&mut self, wanted: &WantedPf) -> Vec<VfIndex> {
        let seen = self.look(wanted.pf);
        removed(&self.used_steps(wanted, &seen), &seen)
    }

    /// The PF with all that is administered there.
    fn look(&mut self, pci: PciAddress) -> ObservedPf {
        let mut look = Look::new(self.root);
        if let Some(silence) = self.hanging.get(&pci) {
            let seen = pf::look(&mut look, pci, |_| false);
            let failure = silence.map_or(Failure::SILENT, Failure::Silent);
            return ObservedPf { unreadable: Some(why(&failure)), ..seen };
        }
        let mut pf = pf::look(&mut look, pci, |_| true);
        let lacking =
            if self.is_rdma_held { Vec::new() } else { pf::without_netdev(&mut look, &pf) };
        let mut problems: Vec<String> = look.problems.into_iter().collect();
        let mut refusal = None;
        let (by_pf, mut by_rdma) = (Request::all_of(&pf), Vec::new());
        if !lacking.is_empty() {
            let devices = lacking.iter().map(|(_, device)| device.clone());
            by_rdma.push(Request::IpoibNetdevs(devices.collect()));
        }
        let of_pf = match pf.backend {
            Backend::Netlink { .. } => Resource::Rtnl,
            _ => Resource::Adapter(pci),
        };
        let mut of_pf = self.client(of_pf);
        let mut of_rdma = self.client(Resource::RdmaNetlink);
        let replies = ask_each(vec![(&mut of_pf, &by_pf), (&mut of_rdma, &by_rdma)]);
        let administered = by_pf.len();
        for (at, reply) in replies.into_iter().flatten().enumerate() {
            match reply {
                Ok(Answer::IpoibNetdevs(counts)) => pf.record_netdevs(&lacking, &counts),
                Err(failure) if at >= administered => {
                    self.is_rdma_held = true;
                    let vfs = vf_ranges(lacking.iter().map(|(index, _)| *index));
                    let why = rdma_held(&failure);
                    problems.push(format!("whether ib_ipoib has netdevs of {vfs} of {pci}: {why}"));
                }
                Ok(Answer::Administered(told)) => pf.learn(told, &mut problems),
                Err(Failure::Refused(refused)) => refusal = Some(refused.said),
                other => pf.unreadable = Some(why(&Failure::of(other))),
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
    fn steps(&mut self, wanted: &WantedPf, observed: &ObservedPf) -> (VfPlan, Refused) {
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
        // Last of all that shows a use RDMA netlink is asked.
        let mut client = self.client(Resource::RdmaNetlink);
        let uses = match client.ask_one(&Request::Uses(pcis)) {
            Ok(Answer::Uses(uses)) => uses,
            other => {
                let why = rdma_held(&Failure::of(other));
                vec![vec![Use::Unknown { why }]; touched.len()]
            }
        };
        vf_steps(wanted, observed, &touched.into_iter().zip(uses).collect())
    }
}

fn why(failure: &Failure) -> String {
    match failure {
        Failure::Silent(silence) => format!("the PF {silence}"),
        failure => failure.to_string(),
    }
}
