use super::advice::Advice;
use super::common::{Code, Finding, Severity, listed};
use super::firmware::{how_to_set, link_type};
use crate::names::host_number::is_placeholder;
use crate::names::template::Misfit;
use crate::names::{Guid, GuidKind, LinkLayer, Object, PciAddress, VfIndex};

/// Something about the plan of one PF: an error, which keeps ibprov from
/// touching the PF, or a warning. Its text says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanProblem {
    /// No such PF.
    #[error("the PF is absent{}; it may appear later. PFs of this host: {}", shown_as(*.unregistered), list(.there))]
    Absent {
        /// Functions without an RDMA device, which could be it.
        unregistered: usize,
        /// The PFs that are there.
        there: Vec<PciAddress>,
    },
    /// The configuration has an error that is about it, or may be.
    #[error(
        "the PF and its VFs are left as they are, because the configuration has an error that concerns this [[pf]] or may concern it"
    )]
    Withheld,
    #[error("the name fits several PFs: {}", list(.0))]
    Ambiguous(Vec<PciAddress>),
    /// Two `[[pf]]` mean one PF.
    #[error("duplicate [[pf]] for {pci}, which is also named at {other}")]
    SamePf {
        pci: PciAddress,
        /// Where the configuration names it as well.
        other: String,
    },
    #[error("{pci} is a VF of {physfn}, not a PF")]
    IsVf {
        /// The function that the configuration names.
        pci: PciAddress,
        physfn: PciAddress,
    },
    #[error(
        "{0} manages an NVSwitch (SMDL=SW_MNG in its product data): nvidia-fabricmanager uses it, and ibprov creates no VFs on it"
    )]
    NvSwitch(PciAddress),
    /// It is another kind of adapter.
    #[error("{0} is not an InfiniBand adapter by its PCI class and its driver")]
    NotHca(PciAddress),
    /// It is in Ethernet mode.
    #[error(
        "the ports of {pci} are in Ethernet mode, in which VFs have MAC addresses instead of GUIDs"
    )]
    Ethernet {
        pci: PciAddress,
        /// A `[[firmware]]` sets it.
        is_configured: bool,
    },
    /// It cannot have VFs at all.
    #[error(
        "{pci} has no SR-IOV capability (no sriov_totalvfs in sysfs): SR-IOV is disabled in its firmware, or the adapter does not support it"
    )]
    NoSriov {
        pci: PciAddress,
        /// How many VFs it shall have.
        wanted: u16,
        /// A `[[firmware]]` sets it.
        is_configured: bool,
    },
    /// The firmware allows none.
    #[error(
        "{wanted} VFs are planned for {pci}, but SR-IOV is disabled in the firmware (sriov_totalvfs is 0)"
    )]
    SriovOff {
        pci: PciAddress,
        /// How many VFs it shall have.
        wanted: u16,
        /// A `[[firmware]]` sets it.
        is_configured: bool,
    },
    #[error("{wanted} VFs are planned for {pci}, but the firmware allows {total} (sriov_totalvfs)")]
    TooManyVfs {
        pci: PciAddress,
        /// How many VFs it shall have.
        wanted: u16,
        /// How many it can have.
        total: u16,
        /// A `[[firmware]]` sets it.
        is_configured: bool,
    },
    /// vfio-pci without an IOMMU.
    #[error("VF {vf} is planned for vfio-pci, but the IOMMU is off ({pci} has no iommu_group)")]
    NoIommu {
        pci: PciAddress,
        /// The first such VF.
        vf: VfIndex,
    },
    /// The pins cannot be read, so nobody knows what the VFs were given.
    #[error("cannot read the pin file {path}: {why}")]
    Pins {
        path: String,
        /// Why the file cannot be read.
        why: String,
    },
    /// The pins are another host's.
    #[error(
        "the pin file {path} {}: it names {}, {}, and the file lists none of its adapters{}",
        if *.undecided { "may belong to another host, if an image was cloned" } else { "belongs to another host, probably because an image was cloned" },
        named(.then.as_deref()),
        this_host(.now.as_deref(), *.is_named),
        if *.undecided { " that have registered an RDMA device" } else { "" }
    )]
    ForeignPins {
        path: String,
        /// The host that it is of, as far as it says.
        then: Option<String>,
        /// This host, if its name is certain and its own.
        now: Option<String>,
        /// The file names this host, and was written on another machine.
        is_named: bool,
        /// An adapter has no RDMA device yet, so its GUIDs are not known: it may be one of
        /// those in the file.
        undecided: bool,
    },
    /// No number for `{host:BITS}`.
    #[error("the host has no number for {{host:BITS}} of guid.template: {0}")]
    HostNumber(String),
    /// No number for `{host:BITS}`: the host's only name is one that may change.
    #[error(
        "the host has no number for {{host:BITS}} of guid.template: its name {} is neither in /etc/hostname nor on the kernel command line (systemd.hostname=). No GUID is computed from such a name, because DHCP may change it, and boot runs before DHCP",
        quoted(.0)
    )]
    TransientName(String),
    /// A number does not fit its field.
    #[error("VF {vf}{}: {why}", and_more(*.more))]
    Template {
        /// The first VF.
        vf: VfIndex,
        more: usize,
        /// Which number does not fit which field.
        why: Misfit,
    },
    /// An exception gives one of the two, and nothing gives the other.
    #[error("VF {vf} has no {kind} GUID: nothing in the configuration gives it one")]
    Nothing { vf: VfIndex, kind: GuidKind },
    /// An offset to a GUID that is not known.
    #[error(
        "the GUIDs of VFs are offsets to the PF's port GUID, which is unknown until {0} has an RDMA device"
    )]
    NoBase(PciAddress),
    /// An offset leads out of 64 bits.
    #[error("VF {vf}: {base} plus {offset} is not a GUID: it exceeds 64 bits")]
    Overflow { vf: VfIndex, base: Guid, offset: i64 },
    /// Zero is no GUID.
    #[error(
        "VF {vf}: the {kind} GUID is all zero, with which the port stays down or rdma_cm fails"
    )]
    Zero { vf: VfIndex, kind: GuidKind },
    /// All ones is what parked VFs have.
    #[error("VF {vf}: the {kind} GUID is all ones, which is not a valid GUID")]
    AllOnes { vf: VfIndex, kind: GuidKind },
    /// The plan gives the same GUID twice.
    #[error("VF {vf}: the {kind} GUID {guid} is also the {other_kind} GUID of {other}")]
    Duplicate {
        vf: VfIndex,
        kind: GuidKind,
        guid: Guid,
        /// Who else has it: `VF 3`, or `VF 3 of 0000:5e:00.0`.
        other: String,
        /// Which GUID it is over there.
        other_kind: GuidKind,
    },
    /// An adapter, or a VF without a plan, has it.
    #[error(
        "VF {vf}: the {kind} GUID {guid} is already the {other_kind} GUID of {other} on this host"
    )]
    Hardware {
        vf: VfIndex,
        kind: GuidKind,
        guid: Guid,
        /// The PCI function that has it already.
        other: PciAddress,
        /// Which GUID it is over there.
        other_kind: GuidKind,
    },
    /// Two IPv6 link-local addresses would be one.
    #[error(
        "VF {vf}: the port GUID {guid} differs from that of {other} only in bit 0x02 of the first byte, so both get the same IPv6 link-local address"
    )]
    Twin { vf: VfIndex, guid: Guid, other: String },
    /// A pattern for the names of VFs needs a name of the PF that is not known.
    #[error(
        "the pattern for the {what} names of VFs refers to a name of the PF, which is unknown until the PF has its RDMA device and its netdev"
    )]
    NoPfName {
        /// `netdev` or `RDMA device`.
        what: &'static str,
    },
    /// A pattern gives what is no name, or a name that is too long.
    #[error(
        "VF {vf}: {name:?} is not a valid {what} name: expected at most {}", if *.what == "netdev" { "15 letters, digits, '_', '-' and '.', and neither a number nor lo, all, default or bonding_masters" } else { "63 letters, digits, '_', '-' and '.'" }
    )]
    BadName {
        vf: VfIndex,
        /// `netdev` or `RDMA device`.
        what: &'static str,
        name: String,
    },
    /// A pattern gives a name of the kernel's own.
    #[error(
        "VF {vf}: the {what} name would be {name}, which the kernel itself assigns to the first free device"
    )]
    KernelsName {
        vf: VfIndex,
        /// `netdev` or `RDMA device`.
        what: &'static str,
        name: String,
    },
    /// Two patterns give one name, or a PF has it.
    #[error("VF {vf}: the {what} name would be {name}, which is that of {other}")]
    SameName {
        vf: VfIndex,
        /// `netdev` or `RDMA device`.
        what: &'static str,
        name: String,
        /// Who else has it: `VF 3 of 0000:5e:00.0`, `PF 0000:5e:00.0`.
        other: String,
    },
    /// The group bit is set (a warning).
    #[error(
        "VF {vf}{}: the GUID {guid} has the group bit set (0x01 of the first byte), which EUI-64 does not allow for a device. Fabrics were observed to accept it",
        and_more(*.more)
    )]
    Group {
        /// The first VF.
        vf: VfIndex,
        more: usize,
        /// Its first such GUID.
        guid: Guid,
    },
    /// Not locally administered (a warning).
    #[error(
        "VF {vf}{}: the GUID {guid} is not locally administered (0x02 of the first byte is not set): a vendor may assign it to an adapter",
        and_more(*.more)
    )]
    NotLocal {
        /// The first VF.
        vf: VfIndex,
        more: usize,
        /// Its first such GUID.
        guid: Guid,
    },
    /// The configuration would give another GUID than the pinned one (a warning:
    /// the pin holds).
    #[error(
        "drift: VF {vf}{}: the configured {kind} GUID is {now}, but {pinned} is pinned and stays in use",
        and_more(*.more)
    )]
    Drift {
        /// The first VF.
        vf: VfIndex,
        more: usize,
        /// Its first GUID that differs.
        kind: GuidKind,
        now: Guid,
        pinned: Guid,
    },
    /// The configuration gives nothing any more (a warning: the pin holds).
    #[error("drift: the configuration no longer gives GUIDs; the pinned ones stay in use: {0}")]
    DriftNothing(Box<Self>),
    /// The lines of files by which other programs set the number of its VFs (a warning).
    #[error(
        "VFs are created, or given GUIDs, by {0} too: of two writers the later is refused, or replaces what the other has set"
    )]
    OtherWriter(String),
    /// Another adapter than when it was pinned (a warning: the pin holds).
    #[error(
        "drift: the adapter was replaced after the GUIDs were pinned (port GUID {then} then, {now} now); the pinned GUIDs stay in use"
    )]
    OtherCard {
        /// The first pinned port GUID.
        then: Guid,
        /// The first present one.
        now: Guid,
    },
}

impl PlanProblem {
    /// As every report has it, about the PF `object`.
    pub fn finding(&self, object: impl Into<Object>) -> Finding {
        let severity = match self {
            _ if self.is_error() => Severity::Error,
            Self::OtherWriter(_) => Severity::Warning,
            _ if self.is_drift() => Severity::Warning,
            // What to know all the same.
            _ => Severity::Info,
        };
        let (code, remedy) = self.code_and_remedy();
        Finding::new(code, severity, self.to_string()).about(object).advise(remedy)
    }

    /// The name by which programs know it.
    pub fn code(&self) -> Code {
        self.code_and_remedy().0
    }

    /// The name by which programs know it, and what to do about it, in the order to try.
    fn code_and_remedy(&self) -> (Code, Vec<Advice>) {
        let enable = |pci: &PciAddress, vfs: u16, is_configured: bool| {
            let settings = format!("SRIOV_EN=1 NUM_OF_VFS={vfs}");
            vec![Advice::permanent(how_to_set(pci, &settings, is_configured))]
        };
        let change = |text: &str| vec![Advice::permanent(text)];
        let no_device = || {
            vec![Advice::look(
                "check that the driver is bound and has registered an RDMA device: ibprov status",
            )]
        };
        let other_guid = || change("choose another GUID, for example one that begins with 02");
        let either = || change("change one of the two, or the template that gives them");
        let local = || change("choose GUIDs whose first byte is 02");
        let decide = || {
            vec![
                Advice::look("ibprov plan shows what is pinned and what is configured"),
                Advice::permanent("ibprov plan --pin keeps the pinned GUIDs for this adapter"),
                Advice::permanent("ibprov plan --pin --replace pins the configured GUIDs"),
            ]
        };
        match self {
            Self::Absent { .. } => (Code::PfAbsent, vec![Advice::look("lspci -Dnn -d 15b3:")]),
            Self::NoBase(_) => (Code::NoPfGuid, no_device()),
            Self::NoPfName { .. } => (Code::PfNameUnknown, no_device()),
            Self::Withheld => {
                (Code::ConfigurationInvalid, vec![Advice::look("ibprov config check")])
            }
            Self::Ambiguous(_) => (Code::PfAmbiguous, change("name the PF by its PCI address")),
            Self::SamePf { .. } => (Code::PfTwice, change("keep one of the two [[pf]]")),
            Self::IsVf { physfn, .. } => {
                (Code::PfIsVf, change(&format!("name the PF {physfn} instead")))
            }
            Self::NvSwitch(_) => (Code::PfNvswitch, change("remove this [[pf]]")),
            Self::NotHca(_) => (Code::PfNoHca, change("remove this [[pf]]")),
            Self::Ethernet { pci, is_configured } => {
                let set = link_type(*pci, LinkLayer::InfiniBand);
                let set = how_to_set(pci, &set, *is_configured);
                let remove = Advice::permanent("or remove this [[pf]]");
                (Code::PfEthernet, vec![Advice::permanent(set), remove])
            }
            Self::NoSriov { pci, wanted, is_configured }
            | Self::SriovOff { pci, wanted, is_configured } => {
                (Code::SriovNotEnabledFw, enable(pci, *wanted, *is_configured))
            }
            Self::TooManyVfs { pci, wanted, is_configured, .. } => {
                (Code::TooManyVfs, enable(pci, *wanted, *is_configured))
            }
            Self::NoIommu { .. } => (
                Code::IommuOff,
                change(
                    "boot with intel_iommu=on iommu=pt (AMD: iommu=pt), and enable VT-d or AMD-Vi in the firmware setup",
                ),
            ),
            Self::Pins { .. } => (
                Code::PinsUnreadable,
                change("correct the file, or remove it to use the GUIDs of the configuration"),
            ),
            Self::ForeignPins { now, is_named, undecided, .. } => {
                (Code::PinsOfAnotherHost, of_foreign_pins(now.as_deref(), *is_named, *undecided))
            }
            Self::HostNumber(_) => {
                (Code::NoHostNumber, change("set host.number or host.number-file"))
            }
            Self::TransientName(_) => (
                Code::HostNameTransient,
                vec![
                    Advice::permanent(
                        "set the name in /etc/hostname or with systemd.hostname= on the kernel command line",
                    ),
                    Advice::permanent("or set host.number or host.number-file"),
                    Advice::permanent(
                        "or restore the pin file of this host: pinned GUIDs do not depend on its name",
                    ),
                ],
            ),
            Self::Template { .. } => {
                (Code::DoesNotFit, change("make that field of guid.template wider"))
            }
            Self::Nothing { .. } => (
                Code::GuidMissing,
                change("add guid.template, guid.list, guid.range or guid.offset to this [[pf]]"),
            ),
            Self::Overflow { .. } => (Code::OffsetOverflow, change("choose a smaller guid.offset")),
            Self::Zero { .. } => (Code::GuidZero, other_guid()),
            Self::AllOnes { .. } => (Code::GuidAllOnes, other_guid()),
            Self::Duplicate { .. } => (Code::VfGuidDuplicate, either()),
            Self::Hardware { .. } => (Code::GuidOfHardware, either()),
            Self::Twin { .. } => {
                (Code::GuidLinkLocalTwin, change("change one of the two port GUIDs in another bit"))
            }
            Self::BadName { .. } => (Code::NameUnfit, change("write another pattern")),
            Self::KernelsName { .. } => (
                Code::NameOfKernel,
                change("put a letter between name and number, as in \"{netdev}v{vf}\""),
            ),
            Self::SameName { .. } => {
                (Code::NameTwice, change("choose another pattern for one of the two"))
            }
            Self::OtherWriter(place) => (
                Code::VfOtherWriter,
                change(&format!("remove what {place} does, or the [[pf]] of this PF")),
            ),
            Self::Group { .. } => (Code::GuidGroupBit, local()),
            Self::NotLocal { .. } => (Code::GuidNotLocal, local()),
            Self::DriftNothing(why) => (Code::Drift, why.code_and_remedy().1),
            Self::Drift { .. } => (Code::Drift, decide()),
            Self::OtherCard { .. } => (Code::DriftOtherCard, decide()),
        }
    }

    /// The finding and its remedy, as text for people: the first line says what is wrong.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        // What to do about drift is printed once, below all PFs.
        let is_below = matches!(self, Self::Drift { .. } | Self::OtherCard { .. });
        let remedy = if is_below { Vec::new() } else { self.code_and_remedy().1 };
        let remedy: Vec<String> = Advice::lines("  do: ", &remedy).collect();
        [self.to_string()].into_iter().chain(remedy)
    }

    /// True if the PF must not be touched; false for a warning.
    pub const fn is_error(&self) -> bool {
        !matches!(
            self,
            Self::Group { .. }
                | Self::NotLocal { .. }
                | Self::OtherWriter(_)
                | Self::Drift { .. }
                | Self::DriftNothing(_)
                | Self::OtherCard { .. }
        )
    }

    /// True if the PF, or what has to be known of it, may still come: nothing
    /// is wrong with the configuration.
    pub const fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Absent { .. }
                | Self::NoBase(_)
                | Self::NoPfName { .. }
                | Self::ForeignPins { undecided: true, .. }
        )
    }

    /// True if configuration, pin and host do not agree, and somebody has to
    /// decide.
    pub const fn is_drift(&self) -> bool {
        matches!(self, Self::Drift { .. } | Self::DriftNothing(_) | Self::OtherCard { .. })
    }

    /// True if the configuration gives another GUID than the pinned one.
    pub const fn is_guid_drift(&self) -> bool {
        matches!(self, Self::Drift { .. } | Self::DriftNothing(_))
    }
}

fn of_foreign_pins(now: Option<&str>, is_named: bool, undecided: bool) -> Vec<Advice> {
    let mut advice = Vec::new();
    if undecided {
        advice.push(Advice::look(
            "check that all adapters have their drivers and RDMA devices: ibprov status",
        ));
    }
    advice.push(Advice::permanent("ibprov plan --pin --replace gives this host GUIDs of its own"));
    advice.push(Advice::permanent("or restore the pin file of this host"));
    advice.push(Advice::permanent(match now {
        _ if is_named => "or, if the file is this host's and its board and adapters were replaced, remove the key machine from the file, then run ibprov plan --pin".to_owned(),
        Some(name) => format!(
            "or, if the file is this host's and its adapters were replaced, set host = {} in the file, then run ibprov plan --pin",
            quoted(name)
        ),
        None => "or, if the file is this host's and its adapters were replaced, set port-guids in the file to the port GUIDs of the new adapters, which ibprov status -v prints, then run ibprov plan --pin".to_owned(),
    }));
    advice
}

/// What this host is, beside the name in the file.
fn this_host(now: Option<&str>, is_named: bool) -> String {
    match now {
        _ if is_named => "which is this host's name, but it was written on another machine (by DMI's product UUID or board serial number)".to_owned(),
        Some(now) => format!("this host is {}", quoted(now)),
        None => "this host has no name of its own".to_owned(),
    }
}

/// A hostile name as it may be printed.
fn quoted(name: impl AsRef<str>) -> String {
    let shown: String = name.as_ref().chars().take(64).collect();
    format!("{shown:?}")
}

/// The host that a pin file names.
fn named(host: Option<&str>) -> String {
    match host {
        Some(name) if is_placeholder(name) => {
            format!("host {}, which identifies no host", quoted(name))
        }
        Some(name) => format!("host {}", quoted(name)),
        None => "no host".to_owned(),
    }
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        1 => " (and 1 VF more)".to_owned(),
        n => format!(" (and {n} VFs more)"),
    }
}

fn shown_as(unregistered: usize) -> &'static str {
    if unregistered > 0 { ", or has not registered its RDMA device" } else { "" }
}

fn list(pcis: &[PciAddress]) -> String {
    match pcis {
        [] => "no PF".to_owned(),
        _ => listed(pcis),
    }
}
