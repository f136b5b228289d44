//! What all reports have in common: the keys with which each begins, their findings, and
//! the rule of the exit codes.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::advice::Advice;
use crate::names::{PciAddress, escaped};

/// Version of all JSON output. Fields and codes are added, never changed.
pub const SCHEMA: u32 = 1;

/// What a run ended with: the one rule, for every verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All is as it is meant to be, or there is nothing to do.
    Good,
    /// It is, with exceptions; of a dry run: something would change.
    Exceptions,
    /// It could not begin: usage, configuration, or nothing could be read.
    NotBegun,
    /// It is not as it is meant to be; of a dry run: it would fail.
    NotReady,
}

impl Exit {
    /// The number that the process ends with.
    pub const fn code(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Exceptions => 1,
            Self::NotBegun => 2,
            Self::NotReady => 3,
        }
    }
}

/// Which report it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `ibprov status`.
    Status,
    /// `ibprov check`.
    Check,
    /// `ibprov check --explain`.
    CheckExplain,
    /// `ibprov consumers`.
    Consumers,
    /// `ibprov check --fleet`.
    CheckFleet,
    /// `ibprov check --initrd`.
    CheckInitrd,
    /// `ibprov collect`.
    Collect,
    /// `ibprov firmware`.
    Firmware,
    /// `ibprov gid`.
    Gid,
    /// `ibprov holders`.
    Holders,
    /// `ibprov wait-online`, and /run/ibprov/online.json.
    WaitOnline,
    /// `ibprov plan`.
    Plan,
    /// `ibprov plan --fleet`.
    PlanFleet,
    /// `ibprov plan --pin`.
    PlanPin,
    /// `ibprov plan --seal`.
    PlanSeal,
    /// `ibprov plan --partitions`.
    PlanPartitions,
    /// `ibprov apply`.
    Apply,
    /// One PF of `ibprov apply`: /run/ibprov/pf/PCI.json.
    ApplyPf,
    /// `ibprov apply --dry-run`.
    ApplyDryRun,
    /// `ibprov guests`, and /run/ibprov/guests.json.
    Guests,
    /// `ibprov boot`, and /run/ibprov/boot.json.
    Boot,
    /// `ibprov boot --dry-run`.
    BootDryRun,
    /// `ibprov iface`, and /run/ibprov/ports/IFINDEX.json.
    Iface,
    /// `ibprov iface --dry-run`.
    IfaceDryRun,
    /// `ibprov config check`.
    ConfigCheck,
    /// `ibprov config show`.
    ConfigShow,
    /// `ibprov import`.
    Import,
    /// `ibprov opensm check`.
    OpensmCheck,
    /// `ibprov migrate`.
    Migrate,
    /// What any verb prints that could not begin.
    NotBegun,
}

macro_rules! codes {
    (
        every { $($(#[$doc:meta])+ $code:ident = $name:literal,)+ }
        check { $($rule:ident = $rule_name:literal,)+ }
    ) => {
        /// What kind of thing is wrong: the name by which programs know it, which never
        /// changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])+ $code,)+
            $($rule,)+
        }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$code,)+ $(Self::$rule,)+];

            /// Its name, as JSON has it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                    $(Self::$rule => $rule_name,)+
                }
            }
        }

        #[cfg(test)]
        impl schemars::JsonSchema for Code {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "Code".into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                // An array of json! itself would recurse once for each of its elements.
                schemars::json_schema!({"type": "string", "enum": vec![$($name),+]})
            }
        }
    };
}

codes! {
    // A report of any verb may have these.
    every {
        /// The configuration has an error, and what it concerns is left out.
        ConfigurationInvalid = "configuration-invalid",
        /// The command line is not understood, or asks for what cannot be done together.
        Usage = "usage",
        /// The verb could not begin, and its message says why.
        NotBegun = "not-begun",
        /// Something could not be read, written or listened to.
        NotRead = "not-read",
        /// Something to know of, which stopped nothing.
        Notice = "notice",
        /// The tree that was named shows no PCI devices at all.
        HostUnreadable = "host-unreadable",
        /// An expected port or adapter is not there.
        PortAbsent = "port-absent",
        /// An expected port has not climbed far enough.
        PortNotReady = "port-not-ready",
        /// An expected port is where boot no longer waits for it, and the fabric does not use it.
        PortNotActive = "port-not-active",
        /// What was looked at does not show whether the fabric uses an expected port.
        PortNotJudged = "port-not-judged",
        /// The module is loaded, and has made no device node for an RDMA device or a port of it.
        DeviceNodeMissing = "device-node-missing",
        /// An active port is no member, or no full one, of a partition that it has to be in.
        PkeyMissing = "pkey-missing",
        /// The netdev of an active port has no carrier, or is down and meant to be up.
        InterfaceNotOnline = "interface-not-online",
        /// The network configuration names an interface, or an address, that no device has.
        IfcfgMismatch = "ifcfg-mismatch",
        /// The link of an expected port is less than the configuration says it has to be.
        PortDegraded = "port-degraded",
        /// The PCIe link of an adapter is less than the configuration says it has to be.
        PcieBelowMinimum = "pcie-below-minimum",
        /// The firmware of an adapter is older than the configuration says it has to be.
        FirmwareBelowMinimum = "firmware-below-minimum",
        /// The PCIe link of an adapter is less than adapter and slot can have.
        PcieLinkReduced = "pcie-link-reduced",
        /// The node description is another one than rdma-ndd sets.
        NodeDescription = "node-description",
        /// A port that was waited for is not online.
        PortNotOnline = "port-not-online",
        /// Nothing on the host has the name that was given.
        NoSuchPort = "no-such-port",
        /// No entry of a GID table, or not one alone, is as it was asked for.
        NoSuchGid = "no-such-gid",
        /// Something keeps an HCA or its kernel modules busy.
        HcaHeld = "hca-held",
        /// A soft RoCE device is not as the configuration says, or is not in it.
        RxeNotReady = "rxe-not-ready",
        /// An RDMA device has another name than configured.
        RdmaNameDiffers = "rdma-name-differs",
        /// The RDMA network namespace mode is another one than configured, or will be.
        NetnsMode = "netns-mode",
        /// A configured module is not loaded.
        ModuleNotLoaded = "module-not-loaded",
        /// A module that is needed is on a deny list.
        ModuleDenied = "module-denied",
        /// A module that is needed was not built for the running kernel.
        ModuleMissingForKernel = "module-missing-for-kernel",
        /// The symbols of a module do not match those of the loaded ones.
        ModuleSymbolMismatch = "module-symbol-mismatch",
        /// The kernel refused the signature of a module.
        ModuleSignatureRefused = "module-signature-refused",
        /// A module that another one needs was not initialized in time.
        ModuleInitSlow = "module-init-slow",
        /// The driver waits for the firmware of an adapter.
        FwInitTimeout = "fw-init-timeout",
        /// A setting was written to the firmware of an adapter, which has not loaded it yet.
        FirmwareResetPending = "firmware-reset-pending",
        /// A setting in the firmware of an adapter is not as configured, or cannot be.
        FirmwareNotAsConfigured = "firmware-not-as-configured",
        /// A setting in the firmware of an adapter could not be set or read.
        FirmwareNotSet = "firmware-not-set",
        /// The settings in the firmware of an adapter cannot be read, or may not be set.
        FirmwareUnreadable = "firmware-unreadable",
        /// A unit that uses InfiniBand is not ordered after the unit that brings it up.
        OrderingMissing = "ordering-missing",
        /// An initramfs image lacks a module that the ports need.
        InitrdWithoutModule = "initrd-without-module",
        /// An initramfs image gives interfaces other names than the configuration.
        InitrdNamesDiffer = "initrd-names-differ",
        /// A step failed.
        StepFailed = "step-failed",
        /// A signal ended the run before its time.
        Interrupted = "interrupted",
        /// An adapter did not answer when it was asked for its state.
        AdapterSilent = "adapter-silent",
        /// A process holds the RTNL lock, so that the kernel does not report settings of netdevs.
        RtnlHeld = "rtnl-held",
        /// Nothing can be done at a PF, although its plan is good.
        VfPlanBlocked = "vf-plan-blocked",
        /// VFs are not as planned.
        VfNotAsPlanned = "vf-not-as-planned",
        /// A GUID or link state was set for VFs with success, and the PF has it no more.
        VfSettingDropped = "vf-setting-dropped",
        /// The driver or the firmware of a PF refused a GUID or link state of VFs.
        VfSettingRefused = "vf-setting-refused",
        /// mlx4_core binds fewer VFs on this host than are planned for it.
        VfNotProbed = "vf-not-probed",
        /// A VF for guests shares its IOMMU group with a function that the host uses.
        IommuGroupShared = "iommu-group-shared",
        /// VFs are not as planned, and are left so because they are in use.
        VfDeferred = "vf-deferred",
        /// The port of a VF is not active, although that of its PF is.
        VfPortNotActive = "vf-port-not-active",
        /// No plan gives the VF a port GUID, and it has none.
        VfGuidZero = "vf-guid-zero",
        /// No plan gives the VF a link state, and it is down.
        VfPolicyDown = "vf-policy-down",
        /// ibprov configured the VF, and no plan has it any more.
        VfOrphaned = "vf-orphaned",
        /// The report of a PF is lost.
        ReportLost = "report-lost",
        /// The last boot did not come to a good end.
        BootFailed = "boot-failed",
        /// Another program sets the number of VFs of a PF that is planned.
        VfOtherWriter = "vf-other-writer",
        /// Another program renames RDMA devices, of which the configuration names one.
        RdmaOtherNamer = "rdma-other-namer",
        /// A unit of ibprov's failed.
        UnitFailed = "unit-failed",
        /// An interface has not the settings that are wanted.
        InterfaceNotConfigured = "interface-not-configured",
        /// An interface is not up.
        InterfaceNotUp = "interface-not-up",
        /// A setting is asked for that an interface cannot have.
        SettingRefused = "setting-refused",
        /// A setting is not made, because the interface is in use.
        SettingDeferred = "setting-deferred",
        /// A setting will not stay as it is wanted.
        SettingContradicted = "setting-contradicted",
        /// A subnet manager of the configuration does not run.
        SubnetManagerNotRunning = "subnet-manager-not-running",
        /// A subnet manager is configured, or ibprov-opensm.target enabled, and not the other.
        SubnetManagerNotEnabled = "subnet-manager-not-enabled",
        /// A unit of a distribution's opensm has the port of a configured subnet manager.
        OpensmOtherUnit = "opensm-other-unit",
        /// A guest did not come up, or is not started.
        GuestFailed = "guest-failed",
        /// A guest waits for its VFs, or for another guest.
        GuestWaits = "guest-waits",
        /// What another tool's configuration says has no counterpart.
        NotConverted = "not-converted",
        /// The configuration fits one host only.
        OneHostOnly = "one-host-only",
        /// ibprov.service is masked.
        IbprovMasked = "ibprov-masked",
        /// rc.local has lines for InfiniBand, and nothing runs it.
        RcLocalNotRun = "rc-local-not-run",
        /// ibprov.service is not wanted by sysinit.target, although its alias is there.
        IbprovNotWanted = "ibprov-not-wanted",
        /// ibprov is switched off on the kernel command line.
        IbprovSwitchedOff = "ibprov-switched-off",
        /// ibprov does not run at boot.
        IbprovDisabled = "ibprov-disabled",
        /// openibd.service does not lead to ibprov.
        OpenibdAliasBroken = "openibd-alias-broken",
        /// The vendor's link that starts openibd is left over.
        OpenibdWantLeft = "openibd-want-left",
        /// Drop-ins that were made for openibd apply to ibprov's unit.
        OpenibdDropIn = "openibd-drop-in",
        /// openibd, or the agent of MLNX_OFED, brings InfiniBand up at boot beside ibprov.
        TwoAgents = "two-agents",
        /// MLNX_OFED's agent sets interfaces too.
        MlnxInterfaceMgrArmed = "mlnx-interface-mgr-armed",
        /// Something that brings InfiniBand up stays until the administrator decides.
        NeedsDecision = "needs-decision",
        /// ibprov's units are not installed.
        NotInstalled = "not-installed",
        /// The system is that of a BlueField itself.
        BluefieldSystem = "bluefield-system",
        /// The unit graph does not prove that the next boot brings the ports up.
        NextBootNotWhole = "next-boot-not-whole",
        /// Something of the next boot may come too early, or nothing brings the ports up.
        NextBootAtRisk = "next-boot-at-risk",
        /// What a migration has changed was changed again since.
        ChangedSince = "changed-since",
        /// No such PF.
        PfAbsent = "pf-absent",
        /// The name of a PF fits several.
        PfAmbiguous = "pf-ambiguous",
        /// Two `[[pf]]` mean one PF.
        PfTwice = "pf-twice",
        /// What is named as a PF is a VF.
        PfIsVf = "pf-is-vf",
        /// The PF manages an NVSwitch.
        PfNvswitch = "pf-nvswitch",
        /// It is another kind of card.
        PfNoHca = "pf-no-hca",
        /// The PF is in Ethernet mode.
        PfEthernet = "pf-ethernet",
        /// The names of VFs need a name of the PF that is not known.
        PfNameUnknown = "pf-name-unknown",
        /// A pattern gives what is no name.
        NameUnfit = "name-unfit",
        /// A pattern gives a name of the kernel's own.
        NameOfKernel = "name-of-kernel",
        /// Two devices would have one name.
        NameTwice = "name-twice",
        /// The firmware allows no VFs.
        SriovNotEnabledFw = "sriov-not-enabled-fw",
        /// The firmware allows fewer VFs.
        TooManyVfs = "too-many-vfs",
        /// The IOMMU is off, without which no VF can be given to a guest.
        IommuOff = "iommu-off",
        /// The pins cannot be read.
        PinsUnreadable = "pins-unreadable",
        /// The pins are another host's.
        PinsOfAnotherHost = "pins-of-another-host",
        /// No number for `{host:BITS}`.
        NoHostNumber = "no-host-number",
        /// A number does not fit its field of the template.
        DoesNotFit = "does-not-fit",
        /// A VF has no GUID.
        GuidMissing = "guid-missing",
        /// The GUIDs are offsets to one that is not known.
        NoPfGuid = "no-pf-guid",
        /// An offset leads out of 64 bits.
        OffsetOverflow = "offset-overflow",
        /// A GUID is zero.
        GuidZero = "guid-zero",
        /// A GUID is all ones.
        GuidAllOnes = "guid-all-ones",
        /// Two ports or VFs have one GUID.
        VfGuidDuplicate = "vf-guid-duplicate",
        /// A card has the GUID already.
        GuidOfHardware = "guid-of-hardware",
        /// Two port GUIDs give one IPv6 link-local address.
        GuidLinkLocalTwin = "guid-link-local-twin",
        /// The group bit of a GUID is set.
        GuidGroupBit = "guid-group-bit",
        /// A GUID is not locally administered.
        GuidNotLocal = "guid-not-local",
        /// The host's only name is one that may change, so that it has no number.
        HostNameTransient = "host-name-transient",
        /// The configuration gives another GUID than the pinned one.
        Drift = "drift",
        /// It is another card than when it was pinned.
        DriftOtherCard = "drift-other-card",
        /// opensm does not run, or takes a line of its files in another way than it is meant.
        OpensmMisconfigured = "opensm-misconfigured",
        /// opensm throws its partitions away, and every port is in the default one alone.
        OpensmPartitionsRejected = "opensm-partitions-rejected",
    }
    // Only `check` makes these: what each means stands in the rule of that name.
    check {
        AutostartGuestOnVf = "autostart-guest-on-vf",
        ConsumerBeforeAddress = "consumer-before-address",
        DriverRegression = "driver-regression",
        DriverUnloadUnderRemoteRoot = "driver-unload-under-remote-root",
        FirmwareFatal = "firmware-fatal",
        FirmwareTooOld = "firmware-too-old",
        HarmlessWarning = "harmless-warning",
        Healthy = "healthy",
        IfupSkippedOsBooting = "ifup-skipped-os-booting",
        InitrdWithoutFabric = "initrd-without-fabric",
        InputLeftOut = "input-left-out",
        IpoibParentDown = "ipoib-parent-down",
        LinkDownCable = "link-down-cable",
        ModuleIsADummy = "module-is-a-dummy",
        ModuleLoadInterrupted = "module-load-interrupted",
        ModuleLoadOrder = "module-load-order",
        ModuleLoadedLate = "module-loaded-late",
        ModuleMissingInInitrd = "module-missing-in-initrd",
        ModuleParameter = "module-parameter",
        ModuleWrongDriver = "module-wrong-driver",
        MountBeforeIpoib = "mount-before-ipoib",
        MountBeforeNetwork = "mount-before-network",
        NetdevAdminDown = "netdev-admin-down",
        NetdevLate = "netdev-late",
        NetdevRenamed = "netdev-renamed",
        NetworkStackBug = "network-stack-bug",
        NoSubnetManager = "no-subnet-manager",
        NotAsExpected = "not-as-expected",
        NotInfiniband = "not-infiniband",
        OpenibdDisabled = "openibd-disabled",
        OpenibdFailed = "openibd-failed",
        OpenibdSkipsInboxModules = "openibd-skips-inbox-modules",
        OpensmOtherPort = "opensm-other-port",
        OpensmSkipped = "opensm-skipped",
        OpensmVirtDisabled = "opensm-virt-disabled",
        OrderingCycle = "ordering-cycle",
        PciBarUnassigned = "pci-bar-unassigned",
        RdmaServiceFailed = "rdma-service-failed",
        RequiredUnitMissing = "required-unit-missing",
        RunFull = "run-full",
        SelinuxDeniesSubnet = "selinux-denies-subnet",
        SriovMmio = "sriov-mmio",
        SriovNotExposedKernel = "sriov-not-exposed-kernel",
        SriovVfUnreachable = "sriov-vf-unreachable",
        StartWaitDeadlock = "start-wait-deadlock",
        UdevTimeout = "udev-timeout",
        UmadZeroGuid = "umad-zero-guid",
        Unexplained = "unexplained",
        Unknown = "unknown",
        VfProbeFailed = "vf-probe-failed",
        VmBeforeVf = "vm-before-vf",
        WaitOnlineTimeout = "wait-online-timeout",
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

// serde's own would be 40 kB of code.
impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(d)?;
        let code = Self::ALL.iter().find(|code| code.name() == name).copied();
        code.ok_or_else(|| D::Error::custom(format_args!("unknown code {name:?}")))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Code {
    /// Nothing can be said of the node while this is so.
    pub const fn leaves_unknown(self) -> bool {
        matches!(self, Self::HostUnreadable)
    }

    /// True if it is about the VFs of a PF, and what is planned for them.
    pub const fn is_of_pf(self) -> bool {
        matches!(
            self,
            Self::VfPlanBlocked
                | Self::VfNotAsPlanned
                | Self::VfSettingDropped
                | Self::VfSettingRefused
                | Self::VfDeferred
                | Self::VfGuidZero
                | Self::VfPolicyDown
                | Self::VfOrphaned
                | Self::VfGuidDuplicate
                | Self::VfNotProbed
                | Self::IommuGroupShared
                | Self::SriovNotEnabledFw
                | Self::IommuOff
                | Self::PfAbsent
                | Self::PfAmbiguous
                | Self::PfTwice
                | Self::PfIsVf
                | Self::PfNvswitch
                | Self::PfNoHca
                | Self::PfEthernet
                | Self::PfNameUnknown
                | Self::NameUnfit
                | Self::NameOfKernel
                | Self::NameTwice
                | Self::TooManyVfs
                | Self::PinsUnreadable
                | Self::PinsOfAnotherHost
                | Self::NoHostNumber
                | Self::DoesNotFit
                | Self::GuidMissing
                | Self::NoPfGuid
                | Self::OffsetOverflow
                | Self::GuidZero
                | Self::GuidAllOnes
                | Self::GuidOfHardware
                | Self::GuidLinkLocalTwin
                | Self::HostNameTransient
        )
    }

    /// What the object of such a finding is, to stand before its name.
    const fn noun(self) -> &'static str {
        match self {
            Self::ModuleNotLoaded => "module ",
            Self::AdapterSilent | Self::PcieLinkReduced => "adapter ",
            _ if self.is_of_pf() => "PF ",
            _ => "",
        }
    }

    /// What a finding without an object is about.
    const fn whole(self) -> &'static str {
        match self {
            Self::ConfigurationInvalid => "the configuration",
            Self::BootFailed => "the last boot",
            _ => "the host",
        }
    }
}

/// How much it matters. The order is the order of the report.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// InfiniBand, or what needs it, does not work.
    #[strum(to_string = "error")]
    Error,
    /// Something failed, and InfiniBand may work all the same.
    #[strum(to_string = "warning")]
    Warning,
    /// Nothing is wrong with what was seen.
    #[strum(to_string = "note")]
    Info,
}

/// Something that is not as it is meant to be, or is to be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// What kind of thing it is.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: a PCI address, a port, a VF, an interface, a unit, a file;
    /// `null` for the whole host.
    pub object: Option<String>,
    /// What is wrong with it, and why as far as the host tells.
    pub message: String,
    /// What to do.
    pub advice: Vec<Advice>,
}

impl Finding {
    /// Of the whole host, without advice.
    pub fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        Self { code, severity, object: None, message: message.into(), advice: Vec::new() }
    }

    /// An error of the whole host.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, message)
    }

    /// A warning of the whole host.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, message)
    }

    /// Of something that could not be read, written or listened to.
    pub fn not_read(message: impl Into<String>) -> Self {
        Self::warning(Code::NotRead, message)
    }

    /// About `object`.
    #[must_use]
    pub fn about(self, object: impl fmt::Display) -> Self {
        Self { object: Some(object.to_string()), ..self }
    }

    /// With what to do.
    #[must_use]
    pub fn advise(mut self, steps: impl IntoIterator<Item = Advice>) -> Self {
        self.advice.extend(steps);
        self
    }

    /// Sorts errors before warnings before notes; what is as grave keeps its order.
    pub fn worst_first(findings: &mut [Self]) {
        findings.sort_by_key(|finding| finding.severity);
    }

    /// It is an error of the configuration.
    pub fn is_of_configuration(&self) -> bool {
        self.code == Code::ConfigurationInvalid
    }

    /// In one sentence, where severity and code stand elsewhere.
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.subject(), self.message)
    }

    /// What it is about, in words.
    pub fn subject(&self) -> String {
        match &self.object {
            None => self.code.whole().to_owned(),
            Some(object) => {
                let first = object.split(',').next().unwrap_or_default();
                let is_bare =
                    self.code == Code::ModuleNotLoaded || first.parse::<PciAddress>().is_ok();
                let noun = if is_bare { self.code.noun() } else { "" };
                format!("{noun}{object}")
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.sentence())
    }
}

/// One [`Finding::not_read`] for each of `problems`.
pub fn not_read<'a>(problems: impl IntoIterator<Item = &'a String>) -> Vec<Finding> {
    problems.into_iter().map(Finding::not_read).collect()
}

/// How it went, in one word: the same words for every verb.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Verdict {
    /// What was judged is as it is meant to be.
    Ready,
    /// It is, or all was done that could be, with exceptions: the findings tell which.
    Exceptions,
    /// What was judged is not as it is meant to be.
    NotReady,
    /// What was seen does not tell.
    Unknown,
    /// Nothing is expected or configured.
    NothingExpected,
    /// All was done.
    Done,
    /// Something was left as it is, because it is in use.
    Deferred,
    /// It ended before its time: by a signal, or because its object disappeared.
    #[default]
    Interrupted,
    /// Something could not be done.
    Failed,
    /// Nothing would be done.
    NothingToDo,
    /// Something would be changed, or waited for.
    WouldChange,
    /// It would fail.
    WouldFail,
    /// It could not begin.
    NotBegun,
}

impl Verdict {
    /// The word, as JSON has it.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// What the process ends with, unless the verb has another rule.
    pub const fn exit(self) -> Exit {
        match self {
            Self::Ready | Self::NothingExpected | Self::Done | Self::NothingToDo => Exit::Good,
            Self::Exceptions | Self::Deferred | Self::Interrupted | Self::WouldChange => {
                Exit::Exceptions
            }
            Self::Unknown | Self::NotBegun => Exit::NotBegun,
            Self::NotReady | Self::Failed | Self::WouldFail => Exit::NotReady,
        }
    }
}

/// A report as JSON has it: the keys that all have, then its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Envelope"))]
pub struct Report<B, F = Finding> {
    /// Version of this format.
    schema: u32,
    /// Which report it is.
    report: Kind,
    /// How it went, in one word.
    pub verdict: Verdict,
    /// What the process ends with, or ended with: 0 as it is meant to be, 1 with exceptions
    /// or would change, 2 could not begin, 3 not ready or would fail.
    pub exit_code: u8,
    /// All that is not as it is meant to be, the worst first.
    pub findings: Vec<F>,
    /// What is the report's own.
    #[serde(flatten)]
    pub body: B,
}

impl<B, F> Report<B, F> {
    /// The report `kind`; its exit code is the one of its verdict.
    pub fn new(kind: Kind, verdict: Verdict, findings: Vec<F>, body: B) -> Self {
        let exit_code = verdict.exit().code();
        Self { schema: SCHEMA, report: kind, verdict, exit_code, findings, body }
    }

    /// The same, which ends or has ended with `exit_code`.
    pub fn exiting(self, exit_code: u8) -> Self {
        Self { exit_code, ..self }
    }
}

impl<B: Serialize, F: Serialize> Report<B, F> {
    /// As every program reads it.
    ///
    /// # Errors
    /// A map in it has a key that is no text.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|json| escaped(&json))
    }

    /// The same on one line.
    ///
    /// # Errors
    /// As [`Self::to_json`].
    pub fn to_json_line(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|json| escaped(&json))
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    /// Its path.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is said of it; empty for nothing.
    pub label: String,
}

/// A finding, and where in files it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlacedFinding {
    /// What every finding has.
    #[serde(flatten)]
    pub finding: Finding,
    /// The first is where it is wrong, the others belong to it; empty where no file is.
    pub places: Vec<Place>,
}

impl From<Finding> for PlacedFinding {
    fn from(finding: Finding) -> Self {
        Self { finding, places: Vec::new() }
    }
}

/// What a verb says that could not begin: nothing but findings.
pub type NotBegun = Report<NoBody, PlacedFinding>;

/// Nothing beside the keys that every report has.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoBody {}

impl NotBegun {
    /// Because of this.
    pub fn because(code: Code, message: impl Into<String>) -> Self {
        Self::of(vec![Finding::error(code, message).into()])
    }

    /// Because of these.
    pub fn of(findings: Vec<PlacedFinding>) -> Self {
        Self::new(Kind::NotBegun, Verdict::NotBegun, findings, NoBody {})
    }
}

/// All of them on one line.
pub fn listed<T: fmt::Display>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Values that are texts in JSON: for `#[serde(serialize_with = ...)]`.
pub mod as_text {
    use std::fmt::Display;

    use serde::Serializer;

    /// The text of it; `null` for none.
    pub fn option<T: Display, S: Serializer>(value: &Option<T>, s: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => s.collect_str(value),
            None => s.serialize_none(),
        }
    }

    /// Writes a list of values as the list of their texts.
    pub fn list<T: Display, S: Serializer>(values: &[T], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(values.iter().map(ToString::to_string))
    }
}

/// Writes a flag as its opposite, for a key that says the other side.
pub(super) mod opposite {
    use super::{Deserialize, Serializer};
    use serde::Deserializer;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    pub(in crate::report) fn serialize<S: Serializer>(
        flag: &bool,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.serialize_bool(!flag)
    }

    pub(in crate::report) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<bool, D::Error> {
        bool::deserialize(d).map(|flag| !flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_it_is_written() {
        for code in Code::ALL {
            let json = serde_json::to_string(code).expect("JSON");
            assert_eq!(serde_json::from_str::<Code>(&json).expect("the code"), *code);
        }
        let said = serde_json::from_str::<Code>("\"x-y\"").expect_err("no code").to_string();
        assert!(said.starts_with("unknown code \"x-y\""), "{said}");
    }
}
