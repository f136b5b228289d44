//! What all reports have in common: the keys with which each begins, their findings, and
//! the rule of the exit codes.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Advice, ToDo};
use crate::names::{Object, displayed, escaped, grouped};

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

macro_rules! page {
    ($name:literal) => {
        include_str!(concat!("../../docs/diagnoses/", $name, ".md"))
    };
}

macro_rules! codes {
    (
        every { $($code:ident = $name:literal $(of $noun:literal)?,)+ }
        check { $($rule:ident = $rule_name:literal,)+ }
    ) => {
        /// What kind of thing is wrong: the name by which programs know it, which never
        /// changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($code,)+
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

            /// What the object of such a finding is, to stand before its name.
            const fn noun(self) -> &'static str {
                match self {
                    $(Self::$code => concat!($($noun, " ")?),)+
                    _ => "",
                }
            }

            /// Its page, in Markdown: the name as heading, what it means in one sentence, how it is
            /// seen, what to do.
            pub const fn page(self) -> &'static str {
                match self {
                    $(Self::$code => page!($name),)+
                    $(Self::$rule => page!($rule_name),)+
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
                schemars::json_schema!({"type": "string", "enum": vec![$($name,)+ $($rule_name),+]})
            }
        }
    };
}

codes! {
    // A report of any verb may have these; of what their object is, where its name does not say it.
    every {
        ConfigurationInvalid = "configuration-invalid",
        Usage = "usage",
        NotBegun = "not-begun",
        NotRead = "not-read",
        Notice = "notice",
        HostUnreadable = "host-unreadable",
        BootInProgress = "boot-in-progress",
        PortAbsent = "port-absent",
        PortNotReady = "port-not-ready",
        PortNotActive = "port-not-active",
        PortNotJudged = "port-not-judged",
        DeviceNodeMissing = "device-node-missing",
        PkeyMissing = "pkey-missing",
        InterfaceNotOnline = "interface-not-online",
        IfcfgMismatch = "ifcfg-mismatch",
        PortDegraded = "port-degraded",
        PcieBelowMinimum = "pcie-below-minimum",
        FirmwareBelowMinimum = "firmware-below-minimum",
        PcieLinkReduced = "pcie-link-reduced" of "adapter",
        NodeDescription = "node-description",
        PortNotOnline = "port-not-online",
        NoSuchPort = "no-such-port",
        NoSuchGid = "no-such-gid",
        HcaHeld = "hca-held",
        RxeNotReady = "rxe-not-ready",
        RdmaNameDiffers = "rdma-name-differs",
        NetnsMode = "netns-mode",
        ModuleNotLoaded = "module-not-loaded" of "module",
        ModuleParameter = "module-parameter",
        ModuleDenied = "module-denied",
        ModuleMissingForKernel = "module-missing-for-kernel",
        ModuleSymbolMismatch = "module-symbol-mismatch",
        ModuleSignatureRefused = "module-signature-refused",
        ModuleInitSlow = "module-init-slow",
        FwInitTimeout = "fw-init-timeout",
        FirmwareResetPending = "firmware-reset-pending",
        FirmwareNotAsConfigured = "firmware-not-as-configured",
        FirmwareNotSet = "firmware-not-set",
        FirmwareUnreadable = "firmware-unreadable",
        OrderingMissing = "ordering-missing",
        InitrdWithoutModule = "initrd-without-module",
        InitrdNamesDiffer = "initrd-names-differ",
        StepFailed = "step-failed",
        Interrupted = "interrupted",
        AdapterSilent = "adapter-silent" of "adapter",
        RtnlHeld = "rtnl-held",
        VfPlanBlocked = "vf-plan-blocked" of "PF",
        PfNotReady = "pf-not-ready" of "PF",
        VfNotAsPlanned = "vf-not-as-planned" of "PF",
        VfSettingDropped = "vf-setting-dropped" of "PF",
        VfSettingRefused = "vf-setting-refused" of "PF",
        VfNotProbed = "vf-not-probed" of "PF",
        IommuGroupShared = "iommu-group-shared" of "PF",
        VfDeferred = "vf-deferred" of "PF",
        VfPortNotActive = "vf-port-not-active",
        VfGuidZero = "vf-guid-zero" of "PF",
        VfPolicyDown = "vf-policy-down" of "PF",
        VfOrphaned = "vf-orphaned" of "PF",
        ReportLost = "report-lost",
        BootFailed = "boot-failed",
        VfOtherWriter = "vf-other-writer",
        RdmaOtherNamer = "rdma-other-namer",
        UnitFailed = "unit-failed",
        InterfaceNotConfigured = "interface-not-configured",
        InterfaceNotUp = "interface-not-up",
        SettingRefused = "setting-refused",
        SettingDeferred = "setting-deferred",
        SettingContradicted = "setting-contradicted",
        SubnetManagerNotRunning = "subnet-manager-not-running",
        SubnetManagerNotEnabled = "subnet-manager-not-enabled",
        OpensmOtherUnit = "opensm-other-unit",
        GuestFailed = "guest-failed",
        GuestWaits = "guest-waits",
        NotConverted = "not-converted",
        OneHostOnly = "one-host-only",
        IbprovMasked = "ibprov-masked",
        RcLocalNotRun = "rc-local-not-run",
        IbprovNotWanted = "ibprov-not-wanted",
        IbprovSwitchedOff = "ibprov-switched-off",
        IbprovDisabled = "ibprov-disabled",
        OpenibdAliasBroken = "openibd-alias-broken",
        OpenibdWantLeft = "openibd-want-left",
        OpenibdDropIn = "openibd-drop-in",
        TwoAgents = "two-agents",
        MlnxInterfaceMgrArmed = "mlnx-interface-mgr-armed",
        NeedsDecision = "needs-decision",
        NotInstalled = "not-installed",
        BluefieldSystem = "bluefield-system",
        NextBootNotWhole = "next-boot-not-whole",
        NextBootAtRisk = "next-boot-at-risk",
        ChangedSince = "changed-since",
        PfAbsent = "pf-absent" of "PF",
        PfAmbiguous = "pf-ambiguous" of "PF",
        PfTwice = "pf-twice" of "PF",
        PfIsVf = "pf-is-vf" of "PF",
        PfNvswitch = "pf-nvswitch" of "PF",
        PfNoHca = "pf-no-hca" of "PF",
        PfEthernet = "pf-ethernet" of "PF",
        PfNameUnknown = "pf-name-unknown" of "PF",
        NameUnfit = "name-unfit" of "PF",
        NameOfKernel = "name-of-kernel" of "PF",
        NameTwice = "name-twice" of "PF",
        SriovNotEnabledFw = "sriov-not-enabled-fw" of "PF",
        TooManyVfs = "too-many-vfs" of "PF",
        IommuOff = "iommu-off" of "PF",
        PinsUnreadable = "pins-unreadable" of "PF",
        PinsOfAnotherHost = "pins-of-another-host" of "PF",
        PinsUndecided = "pins-undecided" of "PF",
        NoHostNumber = "no-host-number" of "PF",
        DoesNotFit = "does-not-fit" of "PF",
        GuidMissing = "guid-missing" of "PF",
        NoPfGuid = "no-pf-guid" of "PF",
        OffsetOverflow = "offset-overflow" of "PF",
        GuidZero = "guid-zero" of "PF",
        GuidAllOnes = "guid-all-ones" of "PF",
        VfGuidDuplicate = "vf-guid-duplicate" of "PF",
        GuidOfHardware = "guid-of-hardware" of "PF",
        GuidLinkLocalTwin = "guid-link-local-twin" of "PF",
        GuidGroupBit = "guid-group-bit",
        GuidNotLocal = "guid-not-local",
        HostNameTransient = "host-name-transient" of "PF",
        Drift = "drift",
        DriftOtherCard = "drift-other-card",
        OpensmMisconfigured = "opensm-misconfigured",
        OpensmPartitionsRejected = "opensm-partitions-rejected",
    }
    // Only `check` makes these.
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
    /// What it means, in one sentence.
    pub fn meaning(self) -> &'static str {
        self.page().lines().nth(2).unwrap_or_default()
    }

    /// Nothing can be said of the node while this is so.
    pub const fn leaves_unknown(self) -> bool {
        matches!(self, Self::HostUnreadable | Self::BootInProgress)
    }

    /// Of a plan: the PF, or what has to be known of it, may still come.
    pub const fn may_pass(self) -> bool {
        matches!(self, Self::PfAbsent | Self::NoPfGuid | Self::PfNameUnknown | Self::PinsUndecided)
    }

    /// Configuration, pin and host do not agree, and an administrator has to decide.
    pub const fn is_drift(self) -> bool {
        matches!(self, Self::Drift | Self::DriftOtherCard)
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display)]
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

/// How sure the rule is. The order is the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Confidence {
    /// The program that failed said so itself.
    High,
    /// It follows from what was said, and little else would explain it.
    Medium,
    /// It fits what was seen; something else may fit too.
    Low,
}

/// A line that a finding rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quote {
    /// Where it stands: the file's name as it was given, or `live host`.
    pub source: String,
    /// Line number, from 1; 0, in JSON `null`, where a source has no lines.
    #[serde(serialize_with = "numbered")]
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub line: u64,
    /// The time as it is written there; in JSON `null` where there is none.
    #[serde(serialize_with = "or_null")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub time: String,
    /// The text, control characters replaced.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn numbered<S: Serializer>(line: &u64, s: S) -> Result<S::Ok, S::Error> {
    Some(*line).filter(|line| *line > 0).serialize(s)
}

pub(super) fn or_null<S: Serializer>(text: &str, s: S) -> Result<S::Ok, S::Error> {
    Some(text).filter(|text| !text.is_empty()).serialize(s)
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

/// Something that is not as it is meant to be, or is to be known. What only some verbs have of
/// it is left out of JSON where there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// What kind of thing it is.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: a PCI address, a port, a VF, an interface, a unit, a file;
    /// `null` for the whole host.
    #[serde(rename = "object", with = "objects")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub objects: Vec<Object>,
    /// What is wrong with it, and why as far as the host tells.
    pub message: String,
    /// What to do, one step each.
    pub advice: Vec<Advice>,
    /// How sure the rule of `check` is that made it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The chain of cause, first cause first, one sentence each.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
    /// The lines that it rests on.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Quote>,
    /// The boot it is about, where the evidence holds several.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The code of the finding above that caused this one.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<Code>,
    /// Where in files it is: the first is where it is wrong, the others belong to it.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

impl Finding {
    /// Of the whole host, without advice.
    pub fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            objects: Vec::new(),
            message: message.into(),
            advice: Vec::new(),
            confidence: None,
            chain: Vec::new(),
            evidence: Vec::new(),
            boot: None,
            caused_by: None,
            places: Vec::new(),
        }
    }

    /// As a rule of `check` makes it.
    pub fn of(
        code: Code,
        severity: Severity,
        confidence: Confidence,
        message: impl Into<String>,
    ) -> Self {
        Self { confidence: Some(confidence), ..Self::new(code, severity, message) }
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
    pub fn about(self, object: impl Into<Object>) -> Self {
        self.about_all([object])
    }

    /// About all of `objects`.
    #[must_use]
    pub fn about_all(self, objects: impl IntoIterator<Item = impl Into<Object>>) -> Self {
        Self { objects: objects.into_iter().map(Into::into).collect(), ..self }
    }

    /// With the chain of cause.
    #[must_use]
    pub fn chain<S: Into<String>>(mut self, links: impl IntoIterator<Item = S>) -> Self {
        self.chain.extend(links.into_iter().map(Into::into));
        self
    }

    /// With evidence. Equal lines are taken once.
    #[must_use]
    pub fn quoting(mut self, quotes: impl IntoIterator<Item = Quote>) -> Self {
        for quote in quotes {
            if !self.evidence.contains(&quote) {
                self.evidence.push(quote);
            }
        }
        self
    }

    /// With steps that only look.
    #[must_use]
    pub fn look<S: Into<ToDo>>(self, steps: impl IntoIterator<Item = S>) -> Self {
        self.advise(steps.into_iter().map(Advice::look))
    }

    /// With steps that repair this boot.
    #[must_use]
    pub fn now<S: Into<ToDo>>(self, steps: impl IntoIterator<Item = S>) -> Self {
        self.advise(steps.into_iter().map(Advice::now))
    }

    /// With steps that repair every later boot.
    #[must_use]
    pub fn permanent<S: Into<ToDo>>(self, steps: impl IntoIterator<Item = S>) -> Self {
        self.advise(steps.into_iter().map(Advice::permanent))
    }

    /// With what to do. Equal steps are taken once.
    #[must_use]
    pub fn advise(mut self, steps: impl IntoIterator<Item = Advice>) -> Self {
        for step in steps {
            if !self.advice.contains(&step) {
                self.advice.push(step);
            }
        }
        self
    }

    /// Sorts errors before warnings before notes; what is as grave keeps its order.
    pub fn worst_first(findings: &mut [Self]) {
        findings.sort_by_key(|finding| finding.severity);
    }

    /// `findings`, those that say the same of several objects as one, with what to do at each.
    pub fn grouped<'a>(findings: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let said = |finding: &&'a Self| (finding.code, finding.severity, &finding.message);
        let together = |first: Self, Self { objects, advice, .. }: Self| {
            Self { objects: [first.objects.clone(), objects].concat(), ..first }.advise(advice)
        };
        let groups = grouped(findings, said).into_iter();
        groups.filter_map(|(_, same)| same.into_iter().cloned().reduce(together)).collect()
    }

    /// Adds what is said of settings, but where that is told of an expected port.
    pub fn add_untold(findings: &mut Vec<Self>, of_settings: &[Self]) {
        let is_told = |setting: &Self| {
            findings
                .iter()
                .any(|told| (told.code, &told.objects) == (setting.code, &setting.objects))
        };
        let untold: Vec<Self> =
            of_settings.iter().filter(|setting| !is_told(setting)).cloned().collect();
        findings.extend(untold);
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
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
        format!("{}{}", self.noun(), listed(&self.objects))
    }

    /// Its message, with what to do first.
    pub fn with_remedy(&self) -> String {
        format!("{}{}", self.message, Advice::remedy(&self.advice))
    }

    /// In one line, with nothing before the message where it names no object.
    pub fn bare(&self) -> String {
        let objects: String = self.objects.iter().map(|object| format!("{object}: ")).collect();
        format!("{}: {objects}{}", self.severity, self.message)
    }

    /// What stands before its objects: what they are, where their names do not say it.
    pub fn noun(&self) -> &'static str {
        match self.objects.first() {
            None => self.code.whole(),
            Some(Object::Function(_)) => self.code.noun(),
            Some(_) if self.code == Code::ModuleNotLoaded => self.code.noun(),
            Some(_) => "",
        }
    }
}

displayed!(Finding, finding => "{}: {}", finding.severity, finding.sentence());

/// One [`Finding::not_read`] for each of `problems`.
pub fn not_read<'a>(problems: impl IntoIterator<Item = &'a String>) -> Vec<Finding> {
    problems.into_iter().map(Finding::not_read).collect()
}

/// How it went, in one word: the same words for every verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
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

/// What a verb says that could not begin: nothing but findings.
pub type NotBegun = Report<NoBody>;

/// Nothing beside the keys that every report has.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoBody {}

impl NotBegun {
    pub fn because(code: Code, message: impl Into<String>) -> Self {
        Self::of(vec![Finding::error(code, message)])
    }

    /// Because of these.
    pub fn of(findings: Vec<Finding>) -> Self {
        Self::new(Kind::NotBegun, Verdict::NotBegun, findings, NoBody {})
    }
}

/// All of them on one line.
pub fn listed<T: fmt::Display>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What a finding is about, as one text in JSON; `null` for the whole host.
pub(super) mod objects {
    use super::{Deserialize, Deserializer, Object, Serialize, Serializer, listed};

    pub(in crate::model) fn serialize<S: Serializer>(
        objects: &[Object],
        s: S,
    ) -> Result<S::Ok, S::Error> {
        (!objects.is_empty()).then(|| listed(objects)).serialize(s)
    }

    pub(in crate::model) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Vec<Object>, D::Error> {
        let text = Option::<String>::deserialize(d)?;
        Ok(text.map(|text| Object::all(&text)).unwrap_or_default())
    }
}

/// Values that are texts in JSON: for `#[serde(serialize_with = ...)]`.
pub mod as_text {
    use std::fmt::Display;

    use serde::Serializer;

    pub fn one<T: Display, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(value)
    }

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

/// Writes findings as the list of their messages.
pub(super) fn messages<S: Serializer>(findings: &[Finding], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(findings.iter().map(|finding| &finding.message))
}

/// Writes the message of a finding, with what to do first.
pub fn with_remedy<S: Serializer>(finding: &Option<Finding>, s: S) -> Result<S::Ok, S::Error> {
    as_text::option(&finding.as_ref().map(Finding::with_remedy), s)
}

/// Writes a flag as its opposite, for a key that says the other side.
pub(super) mod opposite {
    use super::{Deserialize, Serializer};
    use serde::Deserializer;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    pub(in crate::model) fn serialize<S: Serializer>(flag: &bool, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_bool(!flag)
    }

    pub(in crate::model) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
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
