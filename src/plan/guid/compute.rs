//! What the configuration gives each VF, pins aside: its GUIDs and its names.

use std::collections::BTreeMap;

use super::{Draft, quoted};
use crate::config::{GuidSource, Pf};
use crate::model::{Code, Finding, ToDo};
use crate::names::host_number::{of_name, of_text};
use crate::names::template::{FieldName, Misfit, Numbers};
use crate::names::{
    Guid, GuidKind, HostNumber, IfName, NameRule, PfNames, Template, VfGuids, VfIndex,
    VfNamePattern, VfNames, is_given_by_kernel,
};
use crate::observe::plan_host::{PlanFunction, PlanHost};

/// The host's number, or why it has none. A transient name gives none: boot runs before
/// DHCP and a later apply after it, and both have to decide the same.
pub(super) fn host_number(source: &HostNumber, host: &PlanHost) -> Result<u64, Finding> {
    let number = match source {
        HostNumber::Given(number) => Ok(*number),
        HostNumber::Name(rule) => match &host.name {
            Some(name) if host.name_is_transient => return Err(transient(name)),
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
    number.map_err(|why| {
        let message = format!("the host has no number for {{host:BITS}} of guid.template: {why}");
        Finding::error(Code::NoHostNumber, message)
            .permanent(["set host.number or host.number-file"])
    })
}

fn transient(name: &str) -> Finding {
    let message = format!(
        "the host has no number for {{host:BITS}} of guid.template: its name {} is neither in /etc/hostname nor on the kernel command line (systemd.hostname=). No GUID is computed from such a name, because DHCP may change it, and boot runs before DHCP",
        quoted(name)
    );
    Finding::error(Code::HostNameTransient, message).permanent([
        "set the name in /etc/hostname or with systemd.hostname= on the kernel command line",
        "or set host.number or host.number-file",
        "or restore the pin file of this host: pinned GUIDs do not depend on its name",
    ])
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

/// The GUIDs of each VF. Without a node or a port GUID a finding says why; where VFs have no
/// second port, or nothing gives that a GUID, there is none.
pub(super) fn guids(
    config: &Pf,
    function: Option<&PlanFunction>,
    number: &Result<u64, Finding>,
) -> (Vec<VfGuids>, Vec<Finding>) {
    let mut findings: Vec<Finding> = Vec::new();
    let guids = VfIndex::first(config.vfs)
        .map(|vf| {
            let exception = config.exceptions.iter().find(|e| e.vfs.contains(vf));
            GuidKind::ALL.map(|kind| {
                let given = exception.and_then(|e| match kind {
                    GuidKind::Node => e.node_guid,
                    GuidKind::Port => e.port_guid,
                    GuidKind::Port2 => e.port2_guid,
                });
                let may_have =
                    kind != GuidKind::Port2 || function.is_some_and(|f| f.vfs_have_port2);
                match given.map_or_else(|| one(config, function, number, vf, kind), Ok) {
                    Ok(guid) => Some(guid).filter(|_| may_have),
                    // That it stays unset is a refusal of the plan.
                    Err(_) if kind == GuidKind::Port2 => None,
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
fn note(findings: &mut Vec<Finding>, new: Finding) {
    let is_same = |old: &Finding| old.code == new.code && old.advice == new.advice;
    if new.code == Code::GuidMissing || !findings.iter().any(is_same) {
        findings.push(new);
    }
}

fn one(
    config: &Pf,
    function: Option<&PlanFunction>,
    number: &Result<u64, Finding>,
    vf: VfIndex,
    kind: GuidKind,
) -> Result<Guid, Finding> {
    let source = match kind {
        GuidKind::Node => &config.node,
        GuidKind::Port | GuidKind::Port2 => &config.port,
    };
    let index = u64::from(vf.get());
    let nothing = || {
        let message =
            format!("VF {vf} has no {kind} GUID: nothing in the configuration gives it one");
        Finding::error(Code::GuidMissing, message)
            .permanent(["add guid.template, guid.list, guid.range or guid.offset to this [[pf]]"])
    };
    let has_kinds = |template: &Template| template.field(FieldName::Kind).is_some();
    match source {
        None => Err(nothing()),
        // Only a template tells its two ports apart.
        Some(source)
            if kind == GuidKind::Port2
                && !matches!(source, GuidSource::Template(template) if has_kinds(template)) =>
        {
            Err(nothing())
        }
        // The configuration has one for each VF.
        Some(GuidSource::List(list)) => {
            list.get(usize::from(vf.get())).copied().ok_or_else(nothing)
        }
        Some(GuidSource::Range(range)) => range.get(index).ok_or_else(nothing),
        Some(GuidSource::Offset(offset)) => {
            let base = function.and_then(|f| f.port_guids.first()).ok_or_else(|| {
                let pf = function.map_or_else(|| "it".to_owned(), |f| f.pci.to_string());
                let message = format!(
                    "the GUIDs of VFs are offsets to the PF's port GUID, which is unknown until {pf} has an RDMA device"
                );
                Finding::error(Code::NoPfGuid, message).look([no_device()])
            })?;
            let offset = *offset + i64::from(vf.get());
            base.value().checked_add_signed(offset).map(Guid::new).ok_or_else(|| {
                let message =
                    format!("VF {vf}: {base} plus {offset} is not a GUID: it exceeds 64 bits");
                Finding::error(Code::OffsetOverflow, message)
                    .permanent(["choose a smaller guid.offset"])
            })
        }
        Some(GuidSource::Template(template)) => {
            let host = number.as_ref().ok().copied();
            let numbers = Numbers { host, site: config.site, pf: config.number, vf: index };
            template.guid(&numbers, kind).map_err(|misfit| {
                let advice = match (&misfit, number) {
                    (Misfit::NoHostNumber, Err(why)) => return why.clone(),
                    (Misfit::TooLarge { field, .. }, _) => {
                        format!("make {field} of guid.template wider")
                    }
                    (Misfit::NoSite, _) => "set host.site".to_owned(),
                    (Misfit::NoHostNumber, Ok(_)) => "set host.number".to_owned(),
                };
                Finding::error(Code::DoesNotFit, misfit.to_string()).permanent([advice])
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

/// What to do where a PF has no RDMA device yet.
fn no_device() -> ToDo {
    ToDo::with("check that the driver is bound and has registered an RDMA device", "ibprov status")
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
        let config = draft.config;
        let most = "15 letters, digits, '_', '-' and '.', and neither a number nor lo, all, default or bonding_masters";
        let give = |name: &str| IfName::to_give(name).ok();
        let pattern = config.vf_name.as_ref();
        let netdev = names_of(draft, function, pattern, ("netdev", most), &mut netdevs, give);
        let most = "63 letters, digits, '_', '-' and '.'";
        let give = |name: &str| name.parse().ok();
        let pattern = config.vf_rdma_name.as_ref();
        let device = names_of(draft, function, pattern, ("RDMA device", most), &mut rdma, give);
        let named = |at| VfNames {
            netdev: netdev.get(at).cloned().flatten(),
            rdma: device.get(at).cloned().flatten(),
        };
        draft.names = (0..usize::from(config.vfs)).map(named).collect();
    }
}

/// The names that `pattern` gives to the VFs of `function`, up to the first that none can have:
/// `None` where it cannot be one of `what`, whose names have `most` of characters.
fn names_of<N>(
    draft: &mut Draft<'_>,
    function: &PlanFunction,
    pattern: Option<&VfNamePattern>,
    (what, most): (&str, &str),
    taken: &mut BTreeMap<String, String>,
    give: impl Fn(&str) -> Option<N>,
) -> Vec<Option<N>> {
    let pf = PfNames { netdev: function.netdev.as_ref(), rdma: function.rdma.first() };
    let mut names = Vec::new();
    for vf in VfIndex::first(draft.config.vfs).filter(|_| pattern.is_some()) {
        let Some(name) = pattern.and_then(|pattern| pattern.name(pf, vf)) else {
            let message = format!(
                "the pattern for the {what} names of VFs refers to a name of the PF, which is unknown until the PF has its RDMA device and its netdev"
            );
            draft.errors.push(Finding::error(Code::PfNameUnknown, message).look([no_device()]));
            break;
        };
        let would_be = |code, whose: &str, remedy| {
            let message = format!("VF {vf}: the {what} name would be {name}, which {whose}");
            Finding::error(code, message).permanent([remedy])
        };
        if is_given_by_kernel(&name) {
            draft.errors.push(would_be(
                Code::NameOfKernel,
                "the kernel itself assigns to the first free device",
                "put a letter between name and number, as in \"{netdev}v{vf}\"",
            ));
            break;
        }
        let owner = format!("VF {vf} of {}", function.pci);
        if let Some(other) = taken.insert(name.clone(), owner) {
            draft.errors.push(would_be(
                Code::NameTwice,
                &format!("is that of {other}"),
                "choose another pattern for one of the two",
            ));
            break;
        }
        let given = give(&name);
        if given.is_none() {
            let message =
                format!("VF {vf}: {name:?} is not a valid {what} name: expected at most {most}");
            draft.errors.push(
                Finding::error(Code::NameUnfit, message).permanent(["write another pattern"]),
            );
        }
        names.push(given);
    }
    names
}
