//! What of a plan for VFs does not come about, whatever `apply` does.

use super::VfPlan;
use crate::ladder::vf::lacks_name;
use crate::ladder::{WantedPf, WantedVf};
use crate::names::{VfDriver, VfName};
use crate::observe::limits::Limits;
use crate::observe::{ObservedPf, ObservedVf};
use crate::report::pf::VfStep;
use crate::report::refusal::{Refusal, Refused};

/// Of the VFs that are there, and that `plan` does not make anew.
pub fn refusals(
    wanted: &WantedPf,
    observed: &ObservedPf,
    plan: &VfPlan,
    limits: &Limits,
) -> Vec<Refusal> {
    let is_renewed = plan.steps.iter().any(|step| matches!(step, VfStep::Count { .. }));
    if plan.problem.is_some() || is_renewed {
        return Vec::new();
    }
    let of_vf = |vf: &WantedVf| {
        let seen = observed.vf(vf.index)?;
        let why = name(vf, seen, plan).or_else(|| limit(vf, seen, observed, limits))?;
        Some(Refusal { vf: VfName { pf: wanted.pf, index: vf.index }, why })
    };
    wanted.vfs.iter().filter_map(of_vf).collect()
}

/// It has another name, and is not bound anew.
fn name(vf: &WantedVf, seen: &ObservedVf, plan: &VfPlan) -> Option<Refused> {
    let is_bind = |step: &VfStep| matches!(step, VfStep::Bind { vf: of, .. } if *of == vf.index);
    let lack = lacks_name(vf, seen).filter(|_| !plan.steps.iter().any(is_bind))?;
    Some(Refused::Name { lack, driver: seen.driver.clone()? })
}

/// What its driver, or vfio, refuses.
fn limit(vf: &WantedVf, seen: &ObservedVf, pf: &ObservedPf, limits: &Limits) -> Option<Refused> {
    match vf.driver {
        VfDriver::Host if seen.driver != pf.driver => limits.not_probed(vf.index),
        VfDriver::VfioPci => limits.shared.get(&vf.index).cloned(),
        VfDriver::Host | VfDriver::None => None,
    }
}
