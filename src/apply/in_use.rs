//! Netdevs that are in use: what would interrupt what is sent and received over them is left
//! undone.

use super::rtnl::{NotDone, Rtnl};
use crate::config::Config;
use crate::host::Root;
use crate::ladder::KernelLogFacts;
use crate::model::{Use, used_by};
use crate::names::IfName;
use crate::observe::Observed;
use crate::observe::ipoib::Interfaces;
use crate::plan::port_types;
use crate::plan::settings::to_be_asked;
use crate::workers::survey::{Survey, rdma_held};
use crate::workers::{Answer, Failure, Request};

/// By what each of these netdevs is in use, in their order.
///
/// # Errors
/// Their addresses cannot be read.
pub fn uses(netdevs: &[IfName], rtnl: &mut Rtnl) -> Result<Vec<Vec<Use>>, NotDone> {
    let mut all = match rtnl.ask(&Request::NetdevUses(netdevs.to_vec()))? {
        Answer::Uses(all) => all,
        other => return Err(Failure::of(Ok(other)).into()),
    };
    let without = netdevs.iter().zip(&mut all).filter(|(_, uses)| uses.is_empty());
    let (idle, open): (Vec<IfName>, Vec<_>) = without.map(|(n, u)| (n.clone(), u)).unzip();
    if idle.is_empty() {
        return Ok(all);
    }
    let why = match rtnl.rdma_netlink().ask_one(&Request::CmUses(idle)) {
        Ok(Answer::Uses(by_rdma)) => {
            open.into_iter().zip(by_rdma).for_each(|(uses, by_rdma)| *uses = by_rdma);
            return Ok(all);
        }
        other => rdma_held(&Failure::of(other)),
    };
    open.into_iter().for_each(|uses| uses.push(Use::Unknown { why: why.clone() }));
    Ok(all)
}

/// As [`uses`], for who only looks: what cannot be read counts as use.
fn uses_or_unknown(netdevs: &[IfName], rtnl: &mut Rtnl) -> Vec<Vec<Use>> {
    uses(netdevs, rtnl).unwrap_or_else(|e| {
        let unknown = vec![Use::Unknown { why: e.to_string() }];
        vec![unknown; netdevs.len()]
    })
}

/// Learn what a run of `boot` or `iface` would find in use and leave undone: interfaces whose mode
/// or MTU differs, and adapters whose port types do. A copied tree has no kernel to ask.
pub fn learn(
    config: &Config,
    root: &Root,
    (observed, survey): (&Observed, &Survey),
    seen: &mut Interfaces,
    facts: &mut KernelLogFacts,
) {
    if !root.is_live() {
        return;
    }
    let mut rtnl = Rtnl::to_look(survey.rtnl.is_some());
    let (indexes, names): (Vec<u32>, Vec<IfName>) = to_be_asked(config, seen).into_iter().unzip();
    if !names.is_empty() {
        seen.uses.extend(indexes.into_iter().zip(uses_or_unknown(&names, &mut rtnl)));
    }
    for function in &observed.functions {
        if port_types(config, function).is_none() {
            continue;
        }
        let request = Request::Uses(vec![function.address]);
        let uses: Vec<Use> = match rtnl.rdma_netlink().ask_one(&request) {
            Ok(Answer::Uses(uses)) => uses.into_iter().flatten().collect(),
            other => vec![Use::Unknown { why: rdma_held(&Failure::of(other)) }],
        };
        if !uses.is_empty() {
            facts.types_in_use.insert(function.address, used_by(&uses));
        }
    }
}
