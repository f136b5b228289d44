//! A port and how far it is: what every report tells of it.

use tracing::{Span, error_span};

use serde::{Deserialize, Serialize};

use super::{
    Advice, Code, DeferredSettings, Finding, IfaceStep, ModuleTrouble, Severity, Standing, ToDo,
    common::opposite, listed,
};
use crate::names::{
    Guid, IfName, LinkLayer, MadPort, ModuleName, Moment, Object, PciAddress, PortNumber, RdmaName,
    Rung, grouped, sh,
};

/// What is waited for since some moment, however many of it are still missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// A port, or an HCA, in the words it was named by.
    Port(Object),
    /// The ports of `boot.at-least` that nothing names.
    Unnamed,
    /// The VFs of this PF, which another program creates.
    Vfs(String),
}

/// One expected port, or an expected HCA whose ports are not known yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PortProgress {
    /// What is expected, by the name it was given: a PCI address, a port GUID or an RDMA device.
    #[cfg_attr(test, schemars(with = "String"))]
    pub expected: Object,
    pub pci: Option<PciAddress>,
    pub rdma: Option<RdmaName>,
    pub port: Option<PortNumber>,
    #[serde(rename = "port_guid")]
    pub guid: Option<Guid>,
    pub link_layer: Option<LinkLayer>,
    /// Its netdev, by the name it has now.
    pub netdev: Option<IfName>,
    /// When udev finished with the netdev, microseconds of CLOCK_MONOTONIC.
    pub named_usec: Option<Moment>,
    /// The highest rung reached; none if the host shows nothing of it.
    pub reached: Option<Rung>,
    /// The rung that is waited for.
    pub goal: Rung,
    /// Missing it is no failure; in JSON the opposite, `required`.
    #[serde(rename = "required", with = "opposite")]
    #[cfg_attr(test, schemars(with = "bool"))]
    pub optional: bool,
    /// Somebody has named it, in the configuration or on a command line, and counts on
    /// an InfiniBand port: in Ethernet mode it is missing, not left out.
    #[serde(default)]
    pub must_be_infiniband: bool,
    /// The configuration expects a port in Ethernet mode: in InfiniBand mode it is missing.
    #[serde(default)]
    pub must_be_ethernet: bool,
    /// It stands for several of a number, so that `expected` changes while it is waited for them.
    #[serde(skip)]
    pub of_number: Option<Awaited>,
    /// Why it is expected; in JSON `expected_by`.
    #[serde(default, rename = "expected_by")]
    pub why: String,
}

impl PortProgress {
    /// Of something that the host shows nothing of, called `expected`.
    pub fn absent(expected: impl Into<Object>, goal: Rung, why: String) -> Self {
        Self {
            expected: expected.into(),
            pci: None,
            rdma: None,
            port: None,
            guid: None,
            link_layer: None,
            netdev: None,
            named_usec: None,
            reached: None,
            goal,
            optional: false,
            must_be_infiniband: false,
            must_be_ethernet: false,
            of_number: None,
            why,
        }
    }

    /// As what it is waited for.
    pub fn awaited(&self) -> Awaited {
        self.of_number.clone().unwrap_or_else(|| Awaited::Port(self.expected.clone()))
    }

    /// It stands for what is no port, so that `boot.at-least` neither counts nor excuses it.
    pub const fn is_no_port(&self) -> bool {
        matches!(self.of_number, Some(Awaited::Vfs(_)))
    }

    /// True if there is nothing (more) to wait for: the goal is reached, or
    /// the port is in Ethernet mode and nobody counts on it.
    pub fn is_ready(&self) -> bool {
        self.is_ethernet() || self.reached >= Some(self.goal)
    }

    /// The fabric can use it: it is ready, or lacks only settings that are left as they are while
    /// it is in use; `cause` is why it lacks what it lacks.
    pub fn is_usable(&self, cause: Option<&Cause>) -> bool {
        let is_in_use = cause.is_some_and(|cause| cause.in_use);
        self.is_ready() || is_in_use && self.missing() == Some(Rung::Configured)
    }

    /// How it stands; `cause` is why it lacks what it lacks.
    pub fn standing(&self, cause: Option<&Cause>) -> Standing {
        Standing::of_port(self.is_ready(), self.optional, cause.is_some_and(|cause| cause.in_use))
    }

    /// What is said of it where it has not reached its goal; `cause` is why, each part of it by
    /// itself. Each verb says the same.
    pub fn findings(&self, cause: Option<&Cause>) -> Vec<Finding> {
        match cause {
            None => self.finding(None).into_iter().collect(),
            Some(cause) => cause.all().filter_map(|cause| self.finding(Some(cause))).collect(),
        }
    }

    fn finding(&self, cause: Option<&Cause>) -> Option<Finding> {
        let severity = match self.standing(cause) {
            Standing::Ready => return None,
            Standing::Excused => Severity::Warning,
            Standing::Missing => Severity::Error,
        };
        let (code, message) = match (self.reached, self.missing()) {
            (Some(_), Some(missing)) => {
                let optional = if self.optional { " (optional)" } else { "" };
                let why = cause.iter().filter(|cause| !cause.text.is_empty());
                let why: String = why.map(|cause| format!(": {}", cause.phrase())).collect();
                let code = cause.and_then(|cause| cause.code).unwrap_or(Code::PortNotReady);
                (code, format!("{}{optional}{why}", missing.lacking()))
            }
            _ => {
                let how = if self.optional { "optional" } else { "expected" };
                (Code::PortAbsent, format!("absent, and {how} ({})", self.why))
            }
        };
        let advice = cause.iter().flat_map(|cause| cause.advice.clone());
        let interface = cause.and_then(|cause| cause.interface.as_ref());
        let object = interface.map_or_else(|| self.label(), Object::from);
        Some(Finding::new(code, severity, message).about(object).advise(advice))
    }

    /// True for a port in Ethernet mode: seen, and not waited for.
    pub fn is_ethernet(&self) -> bool {
        self.link_layer == Some(LinkLayer::Ethernet)
            && !self.must_be_infiniband
            && !self.must_be_ethernet
    }

    /// True for a port that somebody counts on, and that has the other link layer: the one
    /// that is expected does not come by waiting.
    pub fn is_of_other_type(&self) -> bool {
        match self.link_layer {
            Some(LinkLayer::Ethernet) => self.must_be_infiniband,
            Some(LinkLayer::InfiniBand) => self.must_be_ethernet,
            Some(LinkLayer::Unknown) | None => false,
        }
    }

    /// The first rung that is missing on the way to the goal.
    pub fn missing(&self) -> Option<Rung> {
        if self.is_ready() {
            return None;
        }
        Rung::ALL.into_iter().find(|rung| Some(*rung) > self.reached)
    }

    /// Where the host has it, once that is known.
    pub fn place(&self) -> Option<(PciAddress, &RdmaName, PortNumber)> {
        Some((self.pci?, self.rdma.as_ref()?, self.port?))
    }

    /// The port for commands that ask through it.
    pub fn mad_port(&self) -> MadPort {
        MadPort { device: self.rdma.clone(), port: self.port }
    }

    /// What to call it: `mlx5_0/1 (0000:4b:00.0)` once that is known.
    pub fn label(&self) -> Object {
        match (&self.rdma, self.port, self.pci) {
            (Some(rdma), Some(port), Some(pci)) => Object::port_of(rdma.clone(), port, pci),
            (Some(rdma), None, Some(pci)) => Object::Device { name: rdma.clone(), function: pci },
            (_, Some(port), None) => format!("{}/{port}", self.expected).into(),
            (None, _, Some(pci)) if self.expected != Object::Function(pci) => {
                format!("{} ({pci})", self.expected).into()
            }
            _ => self.expected.clone(),
        }
    }
}

/// Why a rung is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cause {
    /// One phrase, lower case, without a full stop; in JSON `message`.
    #[serde(rename = "message")]
    pub text: String,
    /// What to do about it; empty while waiting is all there is to do.
    #[serde(default)]
    pub advice: Vec<Advice>,
    /// It cannot come any more by waiting.
    #[serde(default, rename = "final")]
    pub is_final: bool,
    /// It is left so because it is in use: not a failure.
    #[serde(default)]
    pub in_use: bool,
    /// The diagnosis that it is, where there is one that says more than that the port lacks
    /// something.
    #[serde(skip)]
    pub code: Option<Code>,
    /// The interface whose settings it is about.
    #[serde(skip)]
    pub interface: Option<IfName>,
    /// The module that is not loaded.
    #[serde(skip)]
    pub module: Option<ModuleName>,
    /// What else is missing for the same rung, each by itself.
    #[serde(skip)]
    pub others: Vec<Self>,
}

/// Make the settings of `netdev`.
fn iface(netdev: &IfName) -> ToDo {
    ToDo::run(format!("ibprov iface {}", sh(netdev.as_str())))
}

/// See what that would do.
fn iface_dry_run(netdev: &IfName) -> ToDo {
    ToDo::run(format!("ibprov iface {} --dry-run", sh(netdev.as_str())))
}

impl Cause {
    pub(crate) fn waiting(
        text: impl Into<String>,
        advice: impl IntoIterator<Item = Advice>,
    ) -> Self {
        let advice = advice.into_iter().collect();
        Self { text: text.into(), advice, ..Self::default() }
    }

    /// Of all that is missing for a rung: the first, with the others.
    pub(crate) fn of_all(mut all: Vec<Self>) -> Option<Self> {
        if all.is_empty() {
            return None;
        }
        let first = all.remove(0);
        Some(Self { others: all, ..first })
    }

    /// It and the others.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.others)
    }

    /// What it and the others say, in one line.
    pub fn line(&self) -> String {
        let all: Vec<&str> = self.all().map(|cause| cause.text.as_str()).collect();
        all.join("; ")
    }

    /// In one sentence, with what to do.
    pub fn sentence(&self) -> String {
        format!("{}{}", self.text, Advice::remedy(&self.advice))
    }

    /// A sentence for each of `all` that says something else, with the interfaces of which it
    /// is said.
    pub fn sentences<'a>(all: impl IntoIterator<Item = &'a Self>) -> Vec<String> {
        let kinds = grouped(all, |cause| (cause.phrase(), &cause.advice));
        let told = |((phrase, advice), causes): ((&str, &Vec<Advice>), Vec<&Self>)| match causes
            .as_slice()
        {
            [cause] => cause.sentence(),
            several => {
                let names = several.iter().filter_map(|cause| cause.interface.as_ref());
                let names: Vec<&str> = names.map(IfName::as_str).collect();
                format!("{}: {phrase}{}", names.join(", "), Advice::remedy(advice))
            }
        };
        kinds.into_iter().map(told).collect()
    }

    pub(crate) fn last(text: impl Into<String>, advice: impl IntoIterator<Item = Advice>) -> Self {
        Self { is_final: true, ..Self::waiting(text, advice) }
    }

    pub(crate) fn in_use(
        text: impl Into<String>,
        advice: impl IntoIterator<Item = Advice>,
    ) -> Self {
        Self { in_use: true, ..Self::last(text, advice) }
    }

    /// Nobody has loaded `module` yet.
    pub(crate) fn not_loaded(module: &ModuleName) -> Self {
        let advice = Advice::now(ToDo::with(
            "load it now, as ibprov boot does at boot",
            format!("modprobe {module}"),
        ));
        Self::waiting(format!("module {module} is not loaded"), [advice])
            .diagnosed(Code::ModuleNotLoaded)
    }

    /// A setting of `netdev` is asked for that it cannot have.
    pub(crate) fn refused(netdev: &IfName, why: &str, remedy: Advice) -> Self {
        let text = format!("{netdev}: {why}");
        Self::last(text, [remedy]).diagnosed(Code::SettingRefused).of(netdev)
    }

    /// No run has made the settings of `netdev` yet: these steps are left, where that is known.
    pub(crate) fn not_made_yet(netdev: &IfName, steps: &[IfaceStep]) -> Self {
        let text = match steps {
            [] => "the settings are not applied yet".to_owned(),
            [IfaceStep::AddChild { pkey, name }] => {
                format!("P_Key child {name} ({pkey}) is missing")
            }
            steps => format!("to be done on {netdev}: {}", listed(steps)),
        };
        let units = ToDo::run("systemctl status 'ibprov-iface@*' ibprov-children.service");
        Self::waiting(text, [Advice::now(iface(netdev)), Advice::look(units)])
    }

    /// Settings of `netdev` could not be made.
    pub(crate) fn not_made(netdev: &IfName, why: String) -> Self {
        let advice = [Advice::look(iface_dry_run(netdev)), Advice::now(iface(netdev))];
        Self::last(why, advice)
    }

    /// Settings of `netdev` are left as they are, because it is in use.
    pub(crate) fn deferred(netdev: &IfName, deferred: &DeferredSettings) -> Self {
        let advice = [
            Advice::look(iface_dry_run(netdev)),
            Advice::now(ToDo::run(DeferredSettings::command(netdev))),
        ];
        let text = deferred.sentence(netdev);
        Self::in_use(text, advice).diagnosed(Code::SettingDeferred).of(netdev)
    }

    fn of(self, netdev: &IfName) -> Self {
        Self { interface: Some(netdev.clone()), ..self }
    }

    pub(crate) fn diagnosed(self, code: Code) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Of settings, what is said of their interface by itself.
    pub fn of_settings(&self) -> Vec<Finding> {
        self.all().filter_map(Self::of_setting).collect()
    }

    fn of_setting(&self) -> Option<Finding> {
        let severity = if self.in_use { Severity::Warning } else { Severity::Error };
        let finding = Finding::new(self.code?, severity, self.phrase());
        Some(finding.about(self.interface.as_ref()?).advise(self.advice.clone()))
    }

    /// Its text, where the interface that it is about is named beside it.
    fn phrase(&self) -> &str {
        let name = self.interface.as_ref().map(IfName::as_str).unwrap_or_default();
        let rest = self.text.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
        rest.unwrap_or(&self.text)
    }

    pub(crate) fn module(module: &ModuleName, trouble: &ModuleTrouble) -> Self {
        Self {
            text: format!("module {module} is not loaded: {trouble}"),
            advice: trouble.advice(module),
            is_final: !matches!(trouble, ModuleTrouble::Stuck { .. }),
            module: Some(module.clone()),
            ..Self::waiting("", []).diagnosed(trouble.code())
        }
    }
}

/// Why a function that looks like an HCA is not waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum NotExpected {
    /// It is bound to a driver that hands it to a guest or keeps it away.
    #[error("bound to {driver}")]
    HandedOver {
        /// `vfio-pci`, `pci-stub` or `xen-pciback`.
        driver: String,
    },
    /// Its vital product data say that it manages an NVSwitch.
    #[serde(rename = "nvswitch-management")]
    #[error("manages an NVSwitch (SMDL=SW_MNG in its product data) for nvidia-fabricmanager")]
    NvSwitchManagement,
    /// The configuration lists the ports that are expected, and none of this one.
    #[error("not listed in any [[port]] (boot.ports is \"listed\")")]
    NotListed,
    /// The configuration says so.
    #[error("ignored by boot.ignore ({by})")]
    Ignored {
        /// Where it says so.
        by: String,
    },
    /// Somebody decided by `driver_override` what may bind it.
    #[error("driver_override is {driver:?}")]
    DriverOverride {
        /// The driver that `driver_override` names.
        driver: String,
    },
    /// It is a VF of a PF on this host: the SR-IOV plan decides on those.
    #[error("VF of {physfn} on this host")]
    VfOfThisHost { physfn: PciAddress },
    /// The configuration denies its driver, or the RDMA half of that.
    #[error("the driver {module} is deny-listed by {by}")]
    DriverDenied {
        /// The driver's module.
        module: ModuleName,
        /// Where it says so.
        by: String,
    },
}

impl NotExpected {
    /// The same in a few words, for a table.
    pub fn short(&self) -> String {
        match self {
            Self::NvSwitchManagement => "manages an NVSwitch".to_owned(),
            Self::NotListed => "not expected".to_owned(),
            Self::Ignored { .. } => "ignored: boot.ignore".to_owned(),
            Self::HandedOver { driver } => format!("ignored: bound to {driver}"),
            Self::DriverOverride { driver } => format!("ignored: driver_override is {driver:?}"),
            Self::VfOfThisHost { physfn } => format!("VF of {physfn}"),
            Self::DriverDenied { module, .. } => format!("ignored: {module} is deny-listed"),
        }
    }
}

/// What is said of a port is said in this span, whose fields a port's journal events have.
pub fn port_span(port: &PortProgress) -> Span {
    error_span!(
        "port",
        expected = display(&port.expected),
        pci = port.pci.map(display),
        rdma = port.rdma.as_ref().map(display),
        port = port.port.map(display),
        guid = port.guid.map(display),
        netdev = port.netdev.as_ref().map(display),
        rung = port.reached.map(display),
    )
}
