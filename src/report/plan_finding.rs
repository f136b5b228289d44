use super::common::{self, Code};
use super::finding::Severity;
use crate::names::template::Misfit;
use crate::names::{Guid, GuidKind, PciAddress, VfIndex};

/// Something about the plan of one PF: an error, which keeps ibprov from
/// touching the PF, or a warning. Its text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// No such PF.
    #[error("it is not there{}: it may come later; what is there: {}", shown_as(*.unregistered), list(.there))]
    Absent {
        /// Functions without an RDMA device, which could be it.
        unregistered: usize,
        /// The PFs that are there.
        there: Vec<PciAddress>,
    },
    /// Its name fits several.
    #[error("{} are all called that: name it by its PCI address", list(.0))]
    Ambiguous(Vec<PciAddress>),
    /// Two `[[pf]]` mean one PF.
    #[error("it is {pci}, which {other} names too: keep one of the two")]
    SamePf {
        /// The PF.
        pci: PciAddress,
        /// Where the configuration names it as well.
        other: String,
    },
    /// It is a VF.
    #[error("{pci} is itself a VF, of {physfn}: name the PF")]
    IsVf {
        /// The function that the configuration names.
        pci: PciAddress,
        /// Its PF.
        physfn: PciAddress,
    },
    /// It manages an NVSwitch.
    #[error(
        "{0} manages an NVSwitch (SMDL=SW_MNG in its product data) and is nvidia-fabricmanager's: its VFs are none of ibprov's, remove this [[pf]]"
    )]
    NvSwitch(PciAddress),
    /// It is another kind of card.
    #[error(
        "{0} is no InfiniBand adapter: neither its PCI class nor its driver has an InfiniBand side"
    )]
    NotHca(PciAddress),
    /// It is in Ethernet mode.
    #[error(
        "its ports are in Ethernet mode, where VFs have MAC addresses and no GUIDs to plan: set InfiniBand with `mlxconfig -d {0} set LINK_TYPE_P1=1` and reset the firmware, or take the PF out of the configuration"
    )]
    Ethernet(PciAddress),
    /// It cannot have VFs at all.
    #[error(
        "{0} has no SR-IOV capability (no sriov_totalvfs in sysfs): SR-IOV is off in its firmware (`mlxconfig -d {0} set SRIOV_EN=1 NUM_OF_VFS=N`, then reset the firmware), or the card has none"
    )]
    NoSriov(PciAddress),
    /// The firmware allows none.
    #[error(
        "it shall have {wanted} VFs, and its sriov_totalvfs is 0: SR-IOV is off in its firmware: `mlxconfig -d {pci} set SRIOV_EN=1 NUM_OF_VFS={wanted}`, then reset the firmware"
    )]
    SriovOff {
        /// The PF.
        pci: PciAddress,
        /// How many VFs it shall have.
        wanted: u16,
    },
    /// The firmware allows fewer.
    #[error(
        "it shall have {wanted} VFs, and its sriov_totalvfs is {total}: the firmware allows no more: `mlxconfig -d {pci} set SRIOV_EN=1 NUM_OF_VFS={wanted}`, then reset the firmware"
    )]
    TooManyVfs {
        /// The PF.
        pci: PciAddress,
        /// How many VFs it shall have.
        wanted: u16,
        /// How many it can have.
        total: u16,
    },
    /// vfio-pci without an IOMMU.
    #[error(
        "VF {vf} is meant for vfio-pci, and the IOMMU is off ({pci} is in no iommu_group): boot with intel_iommu=on iommu=pt (AMD: iommu=pt), and switch on VT-d or AMD-Vi in the firmware setup"
    )]
    NoIommu {
        /// The PF.
        pci: PciAddress,
        /// The first such VF.
        vf: VfIndex,
    },
    /// The pins cannot be read, so nobody knows what the VFs were given.
    #[error("the pins cannot be read: {path}: {why}: correct the file, or remove it to plan anew")]
    Pins {
        /// The pin file.
        path: String,
        /// Why the file cannot be read.
        why: String,
    },
    /// The pins are another host's.
    #[error(
        "the pins are not this host's: {path} is of host {}, this is {}, and none of this host's cards is in it{}: an image was cloned, most likely: `ibprov plan --pin --replace` gives this host GUIDs of its own; or put its own file back; if the file is its own, and both its name and its cards are new, remove the line \"host = \" from it",
        quoted(.then), .now.as_deref().map_or_else(|| "a host without a name of its own".to_owned(), quoted),
        if *.undecided { ", as far as they have registered an RDMA device (yet)" } else { "" }
    )]
    ForeignPins {
        /// The pin file.
        path: String,
        /// The host that it is of.
        then: String,
        /// This host, if its name is certain.
        now: Option<String>,
        /// A card has no RDMA device yet, so its GUIDs are not known: it may be one of
        /// those in the file.
        undecided: bool,
    },
    /// No number for `{host:BITS}`.
    #[error("the host has no number for {{host:BITS}}: {0}: set host.number or host.number-file")]
    HostNumber(String),
    /// A number does not fit its field.
    #[error("VF {vf}{}: {why}: make the field of guid.template wider", and_more(*.more))]
    Template {
        /// The first VF.
        vf: VfIndex,
        /// How many more VFs.
        more: usize,
        /// Which number does not fit which field.
        why: Misfit,
    },
    /// A list or range ends too early.
    #[error(
        "VF {vf} has no {kind} GUID: there are to be {vfs} VFs, and the {what} of {kind} GUIDs ends before it"
    )]
    Missing {
        /// The first VF without one.
        vf: VfIndex,
        /// Which GUID.
        kind: GuidKind,
        /// How many VFs it shall have.
        vfs: u16,
        /// `list` or `range`.
        what: &'static str,
    },
    /// An exception gives one of the two, and nothing gives the other.
    #[error("VF {vf} has no {kind} GUID: nothing in the configuration gives it one")]
    Nothing {
        /// The VF.
        vf: VfIndex,
        /// Which GUID.
        kind: GuidKind,
    },
    /// An offset to a GUID that is not known.
    #[error(
        "its VFs' GUIDs are offsets to its port GUID, and {0} shows none (yet): it comes with the RDMA device"
    )]
    NoBase(PciAddress),
    /// An offset leads out of 64 bits.
    #[error("VF {vf}: {base} plus {offset} is no GUID: it leaves the 64 bits")]
    Overflow {
        /// The VF.
        vf: VfIndex,
        /// The PF's port GUID.
        base: Guid,
        /// What is added.
        offset: i64,
    },
    /// Zero is no GUID.
    #[error(
        "VF {vf}: its {kind} GUID is all zero, which is no GUID: with it the port stays down, or rdma_cm fails"
    )]
    Zero {
        /// The VF.
        vf: VfIndex,
        /// Which GUID.
        kind: GuidKind,
    },
    /// All ones is what parked VFs have.
    #[error("VF {vf}: its {kind} GUID is all ones, which is no GUID")]
    AllOnes {
        /// The VF.
        vf: VfIndex,
        /// Which GUID.
        kind: GuidKind,
    },
    /// The plan gives the same GUID twice.
    #[error("VF {vf}: its {kind} GUID {guid} is the {other_kind} GUID of {other} too")]
    Duplicate {
        /// The VF.
        vf: VfIndex,
        /// Which GUID.
        kind: GuidKind,
        /// The GUID.
        guid: Guid,
        /// Who else has it: `VF 3`, or `VF 3 of 0000:5e:00.0`.
        other: String,
        /// Which GUID it is over there.
        other_kind: GuidKind,
    },
    /// A card, or a VF that no plan is for, has it.
    #[error(
        "VF {vf}: its {kind} GUID {guid} is already the {other_kind} GUID of {other} on this host"
    )]
    Hardware {
        /// The VF.
        vf: VfIndex,
        /// Which GUID.
        kind: GuidKind,
        /// The GUID.
        guid: Guid,
        /// The PCI function that has it already.
        other: PciAddress,
        /// Which GUID it is over there.
        other_kind: GuidKind,
    },
    /// Two IPv6 link-local addresses would be one.
    #[error(
        "VF {vf}: its port GUID {guid} differs from that of {other} only in bit 0x02 of the first byte, so both get the same IPv6 link-local address"
    )]
    Twin {
        /// The VF.
        vf: VfIndex,
        /// Its port GUID.
        guid: Guid,
        /// Who has the other.
        other: String,
    },
    /// A pattern for the names of VFs needs a name of the PF that is not known.
    #[error(
        "the pattern for its VFs' {what} names needs a name of the PF that is not there (yet): it comes with its RDMA device and its netdev"
    )]
    NoPfName {
        /// `netdev` or `RDMA device`.
        what: &'static str,
    },
    /// A pattern gives what is no name, or a name that is too long.
    #[error(
        "VF {vf}: {name:?} is no name for its {what}: at most {} letters, digits, '_', '-' and '.': write a shorter pattern", if *.what == "netdev" { 15 } else { 63 }
    )]
    BadName {
        /// The VF.
        vf: VfIndex,
        /// `netdev` or `RDMA device`.
        what: &'static str,
        /// What the pattern gives.
        name: String,
    },
    /// A pattern gives a name of the kernel's own.
    #[error(
        "VF {vf}: its {what} name would be {name}, which the kernel gives to whichever device comes first: put a letter between, as in \"{{netdev}}v{{vf}}\""
    )]
    KernelsName {
        /// The VF.
        vf: VfIndex,
        /// `netdev` or `RDMA device`.
        what: &'static str,
        /// What the pattern gives.
        name: String,
    },
    /// Two patterns give one name, or a PF has it.
    #[error(
        "VF {vf}: its {what} name would be {name}, which is that of {other}: choose another pattern for one of them"
    )]
    SameName {
        /// The VF.
        vf: VfIndex,
        /// `netdev` or `RDMA device`.
        what: &'static str,
        /// What the pattern gives.
        name: String,
        /// Who else has it: `VF 3 of 0000:5e:00.0`, `PF 0000:5e:00.0`.
        other: String,
    },
    /// The group bit is set (a warning).
    #[error(
        "VF {vf}{}: the GUID {guid} has the group bit (0x01 of its first byte) set: no device may have such an EUI-64; the fabric was seen to bear it",
        and_more(*.more)
    )]
    Group {
        /// The first VF.
        vf: VfIndex,
        /// How many more VFs.
        more: usize,
        /// Its first such GUID.
        guid: Guid,
    },
    /// Not locally administered (a warning).
    #[error(
        "VF {vf}{}: the GUID {guid} is not locally administered (0x02 of its first byte is not set): a vendor may give it to a card",
        and_more(*.more)
    )]
    NotLocal {
        /// The first VF.
        vf: VfIndex,
        /// How many more VFs.
        more: usize,
        /// Its first such GUID.
        guid: Guid,
    },
    /// The host's number is that of a name that may change (a warning).
    #[error(
        "the host's number comes from the name {}, which is neither in /etc/hostname nor on the kernel command line (systemd.hostname=): DHCP may change it, and the GUIDs with it: set one of the two, or host.number, or pin the GUIDs (ibprov plan --pin)",
        quoted(.0)
    )]
    TransientName(String),
    /// The configuration would give another GUID than the pinned one (a warning:
    /// the pin holds).
    #[error(
        "drift: VF {vf}{}: the configuration now gives {kind} GUID {now}, and {pinned} is pinned and holds",
        and_more(*.more)
    )]
    Drift {
        /// The first VF.
        vf: VfIndex,
        /// How many more VFs.
        more: usize,
        /// Its first GUID that differs.
        kind: GuidKind,
        /// What the configuration gives.
        now: Guid,
        /// What is pinned.
        pinned: Guid,
    },
    /// The configuration gives nothing any more (a warning: the pin holds).
    #[error("drift: the configuration gives no GUIDs any more, and the pinned ones hold: {0}")]
    DriftNothing(Box<Self>),
    /// Another card than when it was pinned (a warning: the pin holds).
    #[error(
        "drift: it is another card than when it was pinned (port GUID {then} then, {now} now); the pinned GUIDs hold for it"
    )]
    OtherCard {
        /// The first pinned port GUID.
        then: Guid,
        /// The first present one.
        now: Guid,
    },
}

impl Finding {
    /// As every report has it, about the PF `object`.
    #[must_use]
    pub fn told(&self, object: &str) -> common::Finding {
        let severity = if self.is_error() { Severity::Error } else { Severity::Warning };
        common::Finding::new(self.code(), severity, self.to_string()).about(object)
    }

    /// True if the PF must not be touched; false for a warning.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        !matches!(
            self,
            Self::Group { .. }
                | Self::NotLocal { .. }
                | Self::TransientName(_)
                | Self::Drift { .. }
                | Self::DriftNothing(_)
                | Self::OtherCard { .. }
        )
    }

    /// True if the PF, or what has to be known of it, may still come: nothing
    /// is wrong with the configuration.
    #[must_use]
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
    #[must_use]
    pub const fn is_drift(&self) -> bool {
        matches!(self, Self::Drift { .. } | Self::DriftNothing(_) | Self::OtherCard { .. })
    }

    /// True if the configuration gives another GUID than the pinned one.
    #[must_use]
    pub const fn is_guid_drift(&self) -> bool {
        matches!(self, Self::Drift { .. } | Self::DriftNothing(_))
    }

    /// The name by which programs know it.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::NoPfName { .. } => Code::PfNameUnknown,
            Self::BadName { .. } => Code::NameUnfit,
            Self::KernelsName { .. } => Code::NameOfKernel,
            Self::SameName { .. } => Code::NameTwice,
            Self::Absent { .. } => Code::PfAbsent,
            Self::Ambiguous(_) => Code::PfAmbiguous,
            Self::SamePf { .. } => Code::PfTwice,
            Self::IsVf { .. } => Code::PfIsVf,
            Self::NvSwitch(_) => Code::PfNvswitch,
            Self::NotHca(_) => Code::PfNoHca,
            Self::Ethernet(_) => Code::PfEthernet,
            Self::NoSriov(_) => Code::NoSriov,
            Self::SriovOff { .. } => Code::SriovOff,
            Self::TooManyVfs { .. } => Code::TooManyVfs,
            Self::NoIommu { .. } => Code::NoIommu,
            Self::Pins { .. } => Code::PinsUnreadable,
            Self::ForeignPins { .. } => Code::PinsOfAnotherHost,
            Self::HostNumber(_) => Code::NoHostNumber,
            Self::Template { .. } => Code::DoesNotFit,
            Self::Missing { .. } | Self::Nothing { .. } => Code::GuidMissing,
            Self::NoBase(_) => Code::NoPfGuid,
            Self::Overflow { .. } => Code::OffsetOverflow,
            Self::Zero { .. } => Code::GuidZero,
            Self::AllOnes { .. } => Code::GuidAllOnes,
            Self::Duplicate { .. } => Code::GuidDuplicate,
            Self::Hardware { .. } => Code::GuidOfHardware,
            Self::Twin { .. } => Code::GuidLinkLocalTwin,
            Self::Group { .. } => Code::GuidGroupBit,
            Self::NotLocal { .. } => Code::GuidNotLocal,
            Self::TransientName(_) => Code::HostNameTransient,
            Self::Drift { .. } | Self::DriftNothing(_) => Code::Drift,
            Self::OtherCard { .. } => Code::DriftOtherCard,
        }
    }
}

/// A hostile name as it may be printed.
fn quoted(name: impl AsRef<str>) -> String {
    let shown: String = name.as_ref().chars().take(64).collect();
    format!("{shown:?}")
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
        _ => pcis.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}
