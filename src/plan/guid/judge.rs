//! What is wrong with a plan, or odd.

use std::collections::BTreeMap;

use super::{Draft, quoted};
use crate::config::pins::{PinnedPf, Pins};
use crate::config::{FirmwareCard, Pf};
use crate::model::{
    Code, Finding, Severity, ToDo,
    firmware::{how_to_set, link_type},
};
use crate::names::host_number::is_placeholder;
use crate::names::{
    FirmwareName, Guid, GuidKind, LinkLayer, PINS_PATH, PciAddress, VfDriver, VfGuids, VfIndex,
    vf_ranges,
};
use crate::observe::plan_host::{PlanFunction, PlanHost};

/// What is wrong with the PF itself.
pub(super) fn function(
    config: &Pf,
    function: &PlanFunction,
    firmware: &[FirmwareCard],
) -> Vec<Finding> {
    let (pci, wanted) = (function.pci, config.vfs);
    if let Some(physfn) = function.physfn {
        let finding = Finding::error(Code::PfIsVf, format!("{pci} is a VF of {physfn}, not a PF"));
        return vec![finding.permanent([format!("name the PF {physfn} instead")])];
    }
    let no_pf =
        |code, message| vec![Finding::error(code, message).permanent(["remove this [[pf]]"])];
    if function.nvswitch {
        let message = format!(
            "{pci} manages an NVSwitch (SMDL=SW_MNG in its product data): nvidia-fabricmanager uses it, and ibprov creates no VFs on it"
        );
        return no_pf(Code::PfNvswitch, message);
    }
    if !function.hca {
        let message = format!("{pci} is not an InfiniBand adapter by its PCI class and its driver");
        return no_pf(Code::PfNoHca, message);
    }
    let card = FirmwareCard::of(firmware, pci);
    let of_port = |name: &FirmwareName| name.link_type_of() == Some(pci.port_of_adapter());
    let is_configured = card.is_some_and(|c| c.settings.iter().any(|s| of_port(&s.name)));
    let mut findings = Vec::new();
    findings.extend(function.ethernet.then(|| ethernet(pci, is_configured)));
    let is_configured = card.is_some_and(|c| c.setting(FirmwareName::NUM_OF_VFS).is_some());
    findings.extend(too_few_vfs(pci, wanted, function.total_vfs, is_configured));
    let for_vfio = VfIndex::first(wanted).find(|vf| {
        let exception = config.exceptions.iter().find(|e| e.vfs.contains(*vf));
        exception.and_then(|e| e.driver).unwrap_or(config.driver) == VfDriver::VfioPci
    });
    if let Some(vf) = for_vfio.filter(|_| !function.iommu) {
        let message = format!(
            "VF {vf} is planned for vfio-pci, but the IOMMU is off ({pci} has no iommu_group)"
        );
        findings.push(Finding::error(Code::IommuOff, message).permanent([
            "boot with intel_iommu=on iommu=pt (AMD: iommu=pt), and enable VT-d or AMD-Vi in the firmware setup",
        ]));
    }
    findings
}

/// The ports of the PF are in Ethernet mode; `is_configured`: a `[[firmware]]` sets it.
pub(in crate::plan) fn ethernet(pci: PciAddress, is_configured: bool) -> Finding {
    let message = format!(
        "the ports of {pci} are in Ethernet mode, in which VFs have MAC addresses instead of GUIDs"
    );
    let set = how_to_set(pci, &link_type(pci, LinkLayer::InfiniBand), is_configured);
    Finding::error(Code::PfEthernet, message).permanent([set, "or remove this [[pf]]".into()])
}

/// That the PF cannot have so many VFs, if so; `is_configured`: a `[[firmware]]` sets their
/// number.
fn too_few_vfs(
    pci: PciAddress,
    wanted: u16,
    total: Option<u16>,
    is_configured: bool,
) -> Option<Finding> {
    let (code, message) = match total {
        _ if wanted == 0 => return None,
        None => (
            Code::SriovNotEnabledFw,
            format!(
                "{pci} has no SR-IOV capability (no sriov_totalvfs in sysfs): SR-IOV is disabled in its firmware, or the adapter does not support it"
            ),
        ),
        Some(0) => (
            Code::SriovNotEnabledFw,
            format!(
                "{wanted} VFs are planned for {pci}, but SR-IOV is disabled in the firmware (sriov_totalvfs is 0)"
            ),
        ),
        Some(total) if wanted > total => (
            Code::TooManyVfs,
            format!(
                "{wanted} VFs are planned for {pci}, but the firmware allows {total} (sriov_totalvfs)"
            ),
        ),
        Some(_) => return None,
    };
    let set = how_to_set(pci, &format!("SRIOV_EN=1 NUM_OF_VFS={wanted}"), is_configured);
    let too = "and enable SR-IOV in the firmware setup of the machine";
    let is_off = code == Code::SriovNotEnabledFw;
    Some(Finding::error(code, message).permanent([set]).permanent(is_off.then_some(too)))
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
            let message = format!("duplicate [[pf]] for {pci}, which is also named at {other}");
            draft.errors.push(
                Finding::error(Code::PfTwice, message).permanent(["keep one of the two [[pf]]"]),
            );
        }
    }
}

/// Where a GUID is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Card { pci: PciAddress, kind: GuidKind },
    Vf { draft: usize, vf: VfIndex, kind: GuidKind },
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
        let (mut group, mut not_local) = (BTreeMap::new(), BTreeMap::new());
        for (vf, guids) in VfIndex::first(draft.config.vfs).zip(&draft.guids) {
            for (kind, guid) in GuidKind::ALL.into_iter().zip(guids) {
                let Some(guid) = *guid else { continue };
                let mut is_none = |code, why: &str| {
                    let finding =
                        Finding::error(code, format!("VF {vf}: the {kind} GUID is {why}"));
                    let other = "choose another GUID, for example one that begins with 02";
                    draft.errors.push(finding.permanent([other]));
                };
                if guid.is_zero() {
                    let why = "all zero, with which the port stays down or rdma_cm fails";
                    is_none(Code::GuidZero, why);
                } else if guid.value() == u64::MAX {
                    is_none(Code::GuidAllOnes, "all ones, which is not a valid GUID");
                } else {
                    all.push((guid, Owner::Vf { draft: at, vf, kind }));
                    for (odd, is_odd) in
                        [(&mut group, guid.is_group()), (&mut not_local, !guid.is_local())]
                    {
                        if is_odd {
                            odd.entry(vf).or_insert(guid);
                        }
                    }
                }
            }
        }
        draft.warnings.extend(odd(
            Code::GuidGroupBit,
            &group,
            "have the group bit set (0x01 of the first byte), which EUI-64 does not allow for a device. Fabrics were observed to accept them",
        ));
        draft.warnings.extend(odd(
            Code::GuidNotLocal,
            &not_local,
            "are not locally administered (0x02 of the first byte is not set): a vendor may assign them to an adapter",
        ));
    }
    all.sort_unstable();
    against_each_other(drafts, &all);
}

/// GUIDs of VFs with the same oddity, as one note.
fn odd(code: Code, guids: &BTreeMap<VfIndex, Guid>, how: &str) -> Option<Finding> {
    let first = guids.values().next()?;
    let vfs = vf_ranges(guids.keys().copied());
    let finding = Finding::new(code, Severity::Info, format!("{vfs}: GUIDs such as {first} {how}"));
    Some(finding.permanent(["choose GUIDs whose first byte is 02"]))
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
    let mut found: Vec<(usize, VfIndex, GuidKind, Finding)> = Vec::new();
    for (guid, owner) in all {
        let Owner::Vf { draft: at, vf, kind } = *owner else { continue };
        let guid = *guid;
        let mut note = |code, message, remedy| {
            let finding = Finding::error(code, message).permanent([remedy]);
            found.push((at, vf, kind, finding));
        };
        let either = "change one of the two, or the template that gives them";
        // A GUID that is both of a VF is judged as its node GUID.
        let node = Owner::Vf { draft: at, vf, kind: GuidKind::Node };
        let both = kind == GuidKind::Port && holders(guid).any(|(_, owner)| *owner == node);
        let mut told = None;
        for (_, other) in holders(guid).filter(|_| !both) {
            match *other {
                Owner::Card { pci, kind: other_kind } => {
                    let message = format!(
                        "VF {vf}: the {kind} GUID {guid} is already the {other_kind} GUID of {pci} on this host"
                    );
                    note(Code::GuidOfHardware, message, either);
                }
                // One VF may have one GUID as a node and as a port.
                Owner::Vf { draft, vf: other_vf, kind: other }
                    if (draft, other_vf) == (at, vf)
                        && (kind != GuidKind::Port2 || other != GuidKind::Port) => {}
                // Of two in one PF, the later one tells.
                Owner::Vf { draft, vf: other_vf, .. } if draft == at && other_vf > vf => {}
                Owner::Vf { draft, vf: other_vf, .. } if told == Some((draft, other_vf)) => {}
                Owner::Vf { draft, vf: other_vf, kind: other_kind } => {
                    told = Some((draft, other_vf));
                    let other = name(draft, other_vf, at);
                    let message = format!(
                        "VF {vf}: the {kind} GUID {guid} is also the {other_kind} GUID of {other}"
                    );
                    note(Code::VfGuidDuplicate, message, either);
                }
            }
        }
        // Only port GUIDs make IPv6 addresses.
        let twins = holders(guid.link_local_twin()).filter(|_| kind != GuidKind::Node);
        for (_, twin) in twins {
            let other = match *twin {
                Owner::Card { pci, kind: GuidKind::Port } => pci.to_string(),
                Owner::Vf { draft, vf: other, kind: GuidKind::Port | GuidKind::Port2 }
                    if draft != at || other < vf =>
                {
                    name(draft, other, at)
                }
                _ => continue,
            };
            let message = format!(
                "VF {vf}: the port GUID {guid} differs from that of {other} only in bit 0x02 of the first byte, so both get the same IPv6 link-local address"
            );
            note(
                Code::GuidLinkLocalTwin,
                message,
                "change one of the two port GUIDs in another bit",
            );
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
pub(super) fn foreign_pins(pins: &Pins, host: &PlanHost) -> Option<Finding> {
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
    // An adapter without an RDMA device may be one of those in the file.
    let is_undecided = own().any(|f| f.rdma.is_empty());
    let (code, belongs, shown) = if is_undecided {
        (
            Code::PinsUndecided,
            "may belong to another host, if an image was cloned",
            " that have registered an RDMA device",
        )
    } else {
        (
            Code::PinsOfAnotherHost,
            "belongs to another host, probably because an image was cloned",
            "",
        )
    };
    let then = match pins.host.as_deref() {
        Some(name) if is_placeholder(name) => {
            format!("host {}, which identifies no host", quoted(name))
        }
        Some(name) => format!("host {}", quoted(name)),
        None => "no host".to_owned(),
    };
    let (this, keep) = match now {
        _ if is_named => (
            "which is this host's name, but it was written on another machine (by DMI's product UUID or board serial number)".to_owned(),
            "its board and adapters were replaced, remove the key machine from the file".to_owned(),
        ),
        Some(name) => (
            format!("this host is {}", quoted(name)),
            format!("its adapters were replaced, set host = {} in the file", quoted(name)),
        ),
        None => (
            "this host has no name of its own".to_owned(),
            "its adapters were replaced, set port-guids in the file to the port GUIDs of the new adapters, which ibprov status -v prints".to_owned(),
        ),
    };
    let message = format!(
        "the pin file {PINS_PATH} {belongs}: it names {then}, {this}, and the file lists none of its adapters{shown}"
    );
    let look =
        ToDo::with("check that all adapters have their drivers and RDMA devices", "ibprov status");
    let finding = Finding::error(code, message).look(is_undecided.then_some(look));
    Some(finding.permanent([
        ToDo::with("give this host GUIDs of its own", "ibprov plan --pin --replace"),
        "or restore the pin file of this host".into(),
        ToDo::with(format!("or, if the file is this host's and {keep}"), "ibprov plan --pin"),
    ]))
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
    computed: &[VfGuids],
    function: Option<&PlanFunction>,
) -> Vec<Finding> {
    let of_vf = |(vf, (pinned, now)): (VfIndex, (&VfGuids, &VfGuids))| {
        let mut all = GuidKind::ALL.into_iter().zip(pinned).zip(now);
        all.find_map(|((kind, pinned), now)| {
            let (pinned, now) = pinned.zip(*now)?;
            (pinned != now).then_some((vf, kind, pinned, now))
        })
    };
    let all = VfIndex::first(u16::MAX).zip(pin.vfs.iter().zip(computed));
    let drifted: Vec<_> = all.filter_map(of_vf).collect();
    let replace = ToDo::with("or pin the configured GUIDs", "ibprov plan --pin --replace");
    let mut findings = Vec::new();
    if let Some((vf, kind, pinned, now)) = drifted.first() {
        let vfs = vf_ranges(drifted.iter().map(|(vf, ..)| *vf));
        let message = format!(
            "drift of {vfs}: the configured {kind} GUID of VF {vf} is {now}, but {pinned} is pinned and stays in use"
        );
        findings.push(Finding::warning(Code::Drift, message).permanent([
            "correct the configuration, or the host's number, so that it gives the pinned GUIDs".into(),
            replace.clone(),
        ]));
    }
    let ports = function.map_or(&[][..], |f| &f.port_guids);
    if let (Some(then), Some(now)) = (pin.port_guids.first(), ports.first())
        && !pin.is_card(ports)
    {
        let message = format!(
            "drift: the adapter was replaced after the GUIDs were pinned (port GUID {then} then, {now} now); the pinned GUIDs stay in use"
        );
        findings.push(Finding::warning(Code::DriftOtherCard, message).permanent([
            ToDo::with("keep the pinned GUIDs for this adapter", "ibprov plan --pin"),
            replace,
        ]));
    }
    findings
}
