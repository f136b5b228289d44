//! What the configuration gives each VF, pins aside: its GUIDs and its names.

use std::collections::BTreeMap;

use super::{Draft, KINDS};
use crate::config::{GuidSource, Pf};
use crate::names::host_number::{of_name, of_text};
use crate::names::template::{Misfit, Numbers};
use crate::names::{
    Guid, GuidKind, HostNumber, IfName, NameRule, PfNames, VfIndex, VfNamePattern, VfNames,
    is_given_by_kernel,
};
use crate::observe::plan_host::{PlanFunction, PlanHost};
use crate::report::plan::PlanProblem;

/// The host's number, or why it has none. A transient name gives none: boot runs before
/// DHCP and a later apply after it, and both have to decide the same.
pub(super) fn host_number(source: &HostNumber, host: &PlanHost) -> Result<u64, PlanProblem> {
    let number = match source {
        HostNumber::Given(number) => Ok(*number),
        HostNumber::Name(rule) => match &host.name {
            Some(name) if host.name_is_transient => {
                return Err(PlanProblem::TransientName(name.clone()));
            }
            Some(name) => of_fixed_name(name, host.overruled_name.as_deref(), *rule),
            None => Err("the host has no name".to_owned()),
        },
        HostNumber::File(path) => match &host.number_file {
            Some(Ok(text)) => of_text(text).map_err(|why| format!("{path}: {why}")),
            // It names the path.
            Some(Err(why)) => Err(why.clone()),
            None => Err(format!("{path} was not read")),
        },
    };
    number.map_err(PlanProblem::HostNumber)
}

/// The number of a host by its fixed name; `overruled` is what `/etc/hostname` says beside
/// the kernel command line.
fn of_fixed_name(name: &str, overruled: Option<&str>, rule: NameRule) -> Result<u64, String> {
    let number = of_name(name, rule)?;
    match overruled.map(|file| (file, of_name(file, rule))) {
        Some((file, Ok(other))) if other != number => Err(format!(
            "the host's number is {number} by systemd.hostname={name} on the kernel command line, and {other} by {file:?} in /etc/hostname, so that one of them is wrong"
        )),
        _ => Ok(number),
    }
}

/// Node and port GUID of each VF; `None` where a finding says why not.
pub(super) fn guids(
    config: &Pf,
    function: Option<&PlanFunction>,
    number: &Result<u64, PlanProblem>,
) -> (Vec<[Option<Guid>; 2]>, Vec<PlanProblem>) {
    let mut findings: Vec<PlanProblem> = Vec::new();
    let guids = VfIndex::first(config.vfs)
        .map(|vf| {
            let exception = config.exceptions.iter().find(|e| e.vfs.contains(vf));
            KINDS.map(|kind| {
                let given = exception.and_then(|e| match kind {
                    GuidKind::Node => e.node_guid,
                    GuidKind::Port => e.port_guid,
                });
                match given.map_or_else(|| one(config, function, number, vf, kind), Ok) {
                    Ok(guid) => Some(guid),
                    Err(finding) => {
                        note(&mut findings, finding);
                        None
                    }
                }
            })
        })
        .collect();
    (guids, findings)
}

/// One thing that is wrong is said once, not for every VF after the first.
fn note(findings: &mut Vec<PlanProblem>, new: PlanProblem) {
    for old in findings.iter_mut() {
        match (old, &new) {
            (
                PlanProblem::Template { vf, more, why },
                PlanProblem::Template { vf: new_vf, why: new_why, .. },
            ) if why.is_like(new_why) => {
                *more = usize::from(new_vf.get() - vf.get()).max(*more);
                return;
            }
            (PlanProblem::Overflow { .. }, PlanProblem::Overflow { .. })
            | (PlanProblem::HostNumber(_), PlanProblem::HostNumber(_))
            | (PlanProblem::TransientName(_), PlanProblem::TransientName(_))
            | (PlanProblem::NoBase(_), PlanProblem::NoBase(_)) => return,
            _ => {}
        }
    }
    findings.push(new);
}

fn one(
    config: &Pf,
    function: Option<&PlanFunction>,
    number: &Result<u64, PlanProblem>,
    vf: VfIndex,
    kind: GuidKind,
) -> Result<Guid, PlanProblem> {
    let source = match kind {
        GuidKind::Node => &config.node,
        GuidKind::Port => &config.port,
    };
    let index = u64::from(vf.get());
    let nothing = PlanProblem::Nothing { vf, kind };
    match source {
        None => Err(nothing),
        // The configuration has one for each VF.
        Some(GuidSource::List(list)) => list.get(usize::from(vf.get())).copied().ok_or(nothing),
        Some(GuidSource::Range(range)) => range.get(index).ok_or(nothing),
        Some(GuidSource::Offset(offset)) => {
            // Where there is no such PF, that is said already.
            let Some(function) = function else { return Err(PlanProblem::Nothing { vf, kind }) };
            let base = function.port_guids.first().ok_or(PlanProblem::NoBase(function.pci))?;
            let offset = *offset + i64::from(vf.get());
            let sum = base.value().checked_add_signed(offset).map(Guid::new);
            sum.ok_or(PlanProblem::Overflow { vf, base: *base, offset })
        }
        Some(GuidSource::Template(template)) => {
            let host = number.as_ref().ok().copied();
            let numbers = Numbers { host, site: config.site, pf: config.number, vf: index };
            template.guid(&numbers, kind).map_err(|why| match (why, number) {
                (Misfit::NoHostNumber, Err(why)) => why.clone(),
                (why, _) => PlanProblem::Template { vf, more: 0, why },
            })
        }
    }
}

/// Where the GUIDs of one VF come from, by the words of the configuration.
pub(super) fn source(config: &Pf, vf: VfIndex) -> String {
    let exception = config.exceptions.iter().find(|e| e.vfs.contains(vf));
    let word = |given: Option<Guid>, source: &Option<GuidSource>| match (given, source) {
        (Some(_), _) => "[[pf.vf]]",
        (None, Some(GuidSource::List(_))) => "list",
        (None, Some(GuidSource::Range(_))) => "range",
        (None, Some(GuidSource::Offset(_))) => "offset",
        (None, Some(GuidSource::Template(_))) => "template",
        (None, None) => "nothing",
    };
    let node = word(exception.and_then(|e| e.node_guid), &config.node);
    let port = word(exception.and_then(|e| e.port_guid), &config.port);
    if node == port { node.to_owned() } else { format!("{node} and {port}") }
}

/// Fill in the names that the patterns of the configuration give each draft's VFs, and what is wrong with them, alone and against each
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
