//! What is wrong with a plan, or odd.

use super::{Draft, KINDS};
use crate::config::pins::{PinnedPf, Pins};
use crate::config::{FirmwareCard, Pf};
use crate::names::{FirmwareName, Guid, GuidKind, PINS_PATH, PciAddress, VfDriver, VfIndex};
use crate::observe::plan_host::{PlanFunction, PlanHost};
use crate::report::plan::PlanProblem;

/// What is wrong with the PF itself.
pub(super) fn function(
    config: &Pf,
    function: &PlanFunction,
    firmware: &[FirmwareCard],
) -> Vec<PlanProblem> {
    let (pci, wanted) = (function.pci, config.vfs);
    if let Some(physfn) = function.physfn {
        return vec![PlanProblem::IsVf { pci, physfn }];
    }
    if function.nvswitch {
        return vec![PlanProblem::NvSwitch(pci)];
    }
    if !function.hca {
        return vec![PlanProblem::NotHca(pci)];
    }
    let card = FirmwareCard::of(firmware, pci);
    let of_port = |name: &FirmwareName| name.link_type_of() == Some(pci.port_of_adapter());
    let is_configured = card.is_some_and(|c| c.settings.iter().any(|s| of_port(&s.name)));
    let mut findings = Vec::new();
    if function.ethernet {
        findings.push(PlanProblem::Ethernet { pci, is_configured });
    }
    let is_configured = card.is_some_and(|c| c.setting(FirmwareName::NUM_OF_VFS).is_some());
    match function.total_vfs {
        _ if wanted == 0 => {}
        None => findings.push(PlanProblem::NoSriov { pci, wanted, is_configured }),
        Some(0) => findings.push(PlanProblem::SriovOff { pci, wanted, is_configured }),
        Some(total) if wanted > total => {
            findings.push(PlanProblem::TooManyVfs { pci, wanted, total, is_configured });
        }
        Some(_) => {}
    }
    let for_vfio = VfIndex::first(wanted).find(|vf| {
        let exception = config.exceptions.iter().find(|e| e.vfs.contains(*vf));
        exception.and_then(|e| e.driver).unwrap_or(config.driver) == VfDriver::VfioPci
    });
    if let Some(vf) = for_vfio.filter(|_| !function.iommu) {
        findings.push(PlanProblem::NoIommu { pci, vf });
    }
    findings
}

/// Two `[[pf]]` that turn out to be one PF.
pub(super) fn same_pf(drafts: &mut [Draft<'_>]) {
    let found: Vec<(Option<PciAddress>, String)> =
        drafts.iter().map(|d| (d.function.map(|f| f.pci), d.config.origin.clone())).collect();
    for (at, draft) in drafts.iter_mut().enumerate() {
        let Some(pci) = draft.function.map(|f| f.pci) else { continue };
        let others =
            found.iter().enumerate().filter(|(other, (p, _))| *other != at && *p == Some(pci));
        for (_, (_, other)) in others {
            draft.errors.push(PlanProblem::SamePf { pci, other: other.clone() });
        }
    }
}

/// Where a GUID is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Card { pci: PciAddress, kind: GuidKind },
    Vf { draft: usize, vf: VfIndex, kind: GuidKind },
}

impl Owner {
    fn is_node_of(self, at: usize, index: VfIndex) -> bool {
        self == Self::Vf { draft: at, vf: index, kind: GuidKind::Node }
    }
}

/// What is wrong with the GUIDs, alone and against each other.
pub(super) fn guids(drafts: &mut [Draft<'_>], host: &PlanHost) {
    let mut all: Vec<(Guid, Owner)> = Vec::new();
    // The VFs of PFs that have a plan bear what they were given by it before.
    let planned: Vec<Option<PciAddress>> =
        drafts.iter().filter_map(|d| d.function).map(|f| Some(f.pci)).collect();
    let foreign = |f: &&PlanFunction| f.physfn.is_none() || !planned.contains(&f.physfn);
    for function in host.functions.iter().filter(foreign) {
        let pci = function.pci;
        let node = function.node_guid.filter(|guid| !guid.is_zero());
        all.extend(node.map(|g| (g, Owner::Card { pci, kind: GuidKind::Node })));
        let ports = function.port_guids.iter();
        all.extend(ports.map(|g| (*g, Owner::Card { pci, kind: GuidKind::Port })));
    }
    for (at, draft) in drafts.iter_mut().enumerate() {
        let mut group = OddGuids::default();
        let mut not_local = OddGuids::default();
        for (vf, guids) in VfIndex::first(draft.config.vfs).zip(&draft.guids) {
            for (kind, guid) in KINDS.into_iter().zip(guids) {
                let Some(guid) = *guid else { continue };
                if guid.is_zero() {
                    draft.errors.push(PlanProblem::Zero { vf, kind });
                } else if guid.value() == u64::MAX {
                    draft.errors.push(PlanProblem::AllOnes { vf, kind });
                } else {
                    all.push((guid, Owner::Vf { draft: at, vf, kind }));
                    group.add(guid.is_group(), vf, guid);
                    not_local.add(!guid.is_local(), vf, guid);
                }
            }
        }
        draft.warnings.extend(group.said().map(|(vf, more, guid)| PlanProblem::Group {
            vf,
            more,
            guid,
        }));
        let not_local = not_local.said();
        draft.warnings.extend(not_local.map(|(vf, more, guid)| PlanProblem::NotLocal {
            vf,
            more,
            guid,
        }));
    }
    all.sort_unstable();
    against_each_other(drafts, &all);
}

/// VFs with the same oddity, for one line.
#[derive(Default)]
struct OddGuids {
    first: Option<(VfIndex, Guid)>,
    last: Option<VfIndex>,
    vfs: usize,
}

impl OddGuids {
    fn add(&mut self, odd: bool, vf: VfIndex, guid: Guid) {
        if odd {
            self.first.get_or_insert((vf, guid));
            self.vfs += usize::from(self.last != Some(vf));
            self.last = Some(vf);
        }
    }

    fn said(self) -> Option<(VfIndex, usize, Guid)> {
        let (vf, guid) = self.first?;
        Some((vf, self.vfs - 1, guid))
    }
}

/// `all` is sorted.
fn against_each_other(drafts: &mut [Draft<'_>], all: &[(Guid, Owner)]) {
    let holders = |guid: Guid| {
        let start = all.partition_point(|(other, _)| *other < guid);
        all.get(start..).unwrap_or_default().iter().take_while(move |(other, _)| *other == guid)
    };
    let places: Vec<Option<PciAddress>> =
        drafts.iter().map(|d| d.function.map(|f| f.pci)).collect();
    let name = |draft: usize, vf: VfIndex, seen_from: usize| match places.get(draft) {
        Some(Some(pci)) if draft != seen_from => format!("VF {vf} of {pci}"),
        _ if draft != seen_from => format!("VF {vf} of another PF"),
        _ => format!("VF {vf}"),
    };
    let mut found: Vec<(usize, VfIndex, GuidKind, PlanProblem)> = Vec::new();
    for (guid, owner) in all {
        let Owner::Vf { draft: at, vf, kind } = *owner else { continue };
        let guid = *guid;
        let mut note = |finding| found.push((at, vf, kind, finding));
        // A GUID that is both of a VF is judged as its node GUID.
        let both = kind == GuidKind::Port && holders(guid).any(|(_, o)| o.is_node_of(at, vf));
        let mut told = None;
        for (_, other) in holders(guid).filter(|_| !both) {
            match *other {
                Owner::Card { pci, kind: other_kind } => {
                    note(PlanProblem::Hardware { vf, kind, guid, other: pci, other_kind });
                }
                // One VF may have one GUID for both.
                Owner::Vf { draft, vf: other_vf, .. } if (draft, other_vf) == (at, vf) => {}
                // Of two in one PF, the later one tells.
                Owner::Vf { draft, vf: other_vf, .. } if draft == at && other_vf > vf => {}
                Owner::Vf { draft, vf: other_vf, .. } if told == Some((draft, other_vf)) => {}
                Owner::Vf { draft, vf: other_vf, kind: other_kind } => {
                    told = Some((draft, other_vf));
                    let other = name(draft, other_vf, at);
                    note(PlanProblem::Duplicate { vf, kind, guid, other, other_kind });
                }
            }
        }
        // Only port GUIDs make IPv6 addresses.
        let twins = holders(guid.link_local_twin()).filter(|_| kind == GuidKind::Port);
        for (_, twin) in twins {
            match *twin {
                Owner::Card { pci, kind: GuidKind::Port } => {
                    note(PlanProblem::Twin { vf, guid, other: pci.to_string() });
                }
                Owner::Vf { draft, vf: other, kind: GuidKind::Port }
                    if draft != at || other < vf =>
                {
                    note(PlanProblem::Twin { vf, guid, other: name(draft, other, at) });
                }
                _ => {}
            }
        }
    }
    found.sort_by_key(|(at, vf, kind, _)| (*at, *vf, *kind));
    for (at, _, _, finding) in found {
        if let Some(draft) = drafts.get_mut(at) {
            draft.errors.push(finding);
        }
    }
}

/// That the pins are another host's: neither its own name ([`PlanHost::own_name`]) nor one
/// of its cards is in them, or the name is and the machine is known to be another. A PCI
/// address says nothing, as it is the same in each node of a kind, and neither does a name
/// such as `localhost`, or none: there the cards alone decide. An image that was captured from
/// one node and started on many gives all of them that node's GUIDs otherwise.
pub(super) fn foreign_pins(pins: &Pins, host: &PlanHost) -> Option<PlanProblem> {
    let now = host.own_name();
    // A placeholder is never a host's own name.
    let is_named = now.zip(pins.host.as_deref()).is_some_and(|(now, then)| is_same_host(then, now));
    if pins.pfs.is_empty() || is_named && !host.machine.is_other_than(&pins.machine) {
        return None;
    }
    let own = || host.functions.iter().filter(|f| f.hca && f.physfn.is_none());
    let is_pinned = |guid: &Guid| {
        !guid.is_zero()
            && pins.pfs.iter().any(|p| p.node_guid == Some(*guid) || p.port_guids.contains(guid))
    };
    if own().any(|f| f.port_guids.iter().chain(&f.node_guid).any(is_pinned)) {
        return None;
    }
    Some(PlanProblem::ForeignPins {
        path: PINS_PATH.to_owned(),
        then: pins.host.clone(),
        now: now.map(str::to_owned),
        is_named,
        undecided: own().any(|f| f.rdma.is_empty()),
    })
}

/// Two names of one host; one of them may be without its domain.
fn is_same_host(one: &str, other: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let has_domain = one.contains('.') && other.contains('.');
    let (one, other) =
        if has_domain { (one.to_owned(), other.to_owned()) } else { (short(one), short(other)) };
    one.eq_ignore_ascii_case(&other)
}

/// Where configuration, pin and host do not agree.
pub(super) fn drift(
    pin: &PinnedPf,
    computed: &[[Option<Guid>; 2]],
    function: Option<&PlanFunction>,
) -> Vec<PlanProblem> {
    let mut findings = Vec::new();
    let mut drifted: Option<PlanProblem> = None;
    for ((vf, pinned), now) in VfIndex::first(u16::MAX).zip(&pin.vfs).zip(computed) {
        let differs = KINDS.into_iter().zip(pinned).zip(now).find_map(|((kind, pinned), now)| {
            now.filter(|now| now != pinned).map(|now| (kind, *pinned, now))
        });
        match (differs, &mut drifted) {
            (Some(_), Some(PlanProblem::Drift { more, .. })) => *more += 1,
            (Some((kind, pinned, now)), _) => {
                drifted = Some(PlanProblem::Drift { vf, more: 0, kind, now, pinned });
            }
            (None, _) => {}
        }
    }
    findings.extend(drifted);
    let ports = function.map_or(&[][..], |f| &f.port_guids);
    if let (Some(then), Some(now)) = (pin.port_guids.first(), ports.first())
        && !pin.is_card(ports)
    {
        findings.push(PlanProblem::OtherCard { then: *then, now: *now });
    }
    findings
}
