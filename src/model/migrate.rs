//! What `ibprov migrate` finds, does and says.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Code, Finding, Kind, Report, Severity, Verdict};
use crate::names::{PathState, mark};

/// What becomes of something that brings InfiniBand up today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Becomes {
    /// Its settings become ibprov's configuration.
    #[strum(to_string = "imported")]
    Imported,
    /// It does not run at boot any more.
    #[strum(to_string = "disabled")]
    Disabled,
    /// It runs at boot from now on.
    #[strum(to_string = "enabled")]
    Enabled,
    /// It stays as it is.
    #[strum(to_string = "left")]
    Left,
    /// The administrator decides; it stays as it is until then.
    #[strum(to_string = "needs a decision")]
    NeedsDecision,
}

macro_rules! reasons {
    ($($(#[$doc:meta])+ $reason:ident: $becomes:ident, $message:literal $(, do $advice:literal)?;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum Reason {
            $($(#[$doc])+ $reason,)+
        }

        impl Reason {
            /// What becomes of something for this reason.
            pub const fn becomes(self) -> Becomes {
                match self {
                    $(Self::$reason => Becomes::$becomes,)+
                }
            }

            const fn message(self) -> &'static str {
                match self {
                    $(Self::$reason => $message,)+
                }
            }

            pub const fn advice(self) -> &'static str {
                match self {
                    $(Self::$reason => concat!($($advice)?),)+
                }
            }
        }
    };
}

reasons! {
    /// Its settings are written to a drop-in.
    Settings: Imported, "the settings become a drop-in of ibprov's configuration";
    /// The drop-in with its settings is there.
    SettingsThere: Left, "the settings are already in ibprov's configuration";
    /// It has nothing but what ibprov does without being told.
    Defaults: Left, "the file contains no setting that ibprov needs";
    /// Nothing of it could be converted.
    NothingConverted: Left, "no line of the file could be converted: see the warnings";
    /// The drop-in that it would become exists with another content.
    DropInThere: Left, "the drop-in for these settings exists with another content, and is not overwritten", do "compare both with `ibprov import`";
    /// The vendor's unit, enabled.
    UnitOfVendor: Disabled, "ibprov replaces the unit at boot, and takes its name";
    /// The vendor's unit or script, not enabled.
    UnitNotEnabled: Left, "the unit is not enabled; ibprov takes its name";
    /// The vendor's start script with rc links.
    ScriptOfVendor: Disabled, "the rc links no longer start the script";
    /// The rule of mlnx_interface_mgr.
    InterfaceManager: Disabled, "the rule is masked by a link to /dev/null in /etc/udev/rules.d, which package updates keep";
    /// ibprov itself.
    Ourselves: Enabled, "ibprov brings the ports up at boot, before the network starts";
    /// rdma-core or systemd loads modules.
    ModulesOfRdmaCore: Left, "modules are loaded by this too; ibprov skips modules that are loaded";
    /// What loads the modules of rdma.conf is not installed.
    RdmaConf: Left, "rdma.service, which alone reads the file, is not installed, so that its modules are not loaded today", do "if the modules are needed: `ibprov import rdma-conf`";
    /// Port types of mlx4 are written to a drop-in.
    PortTypes: Imported, "the port types become a drop-in of ibprov's configuration; a modprobe rule of rdma-core continues to set the same types";
    /// The settings of an interface are written to a drop-in, but for its addresses.
    InterfaceSettings: Imported, "mode, MTU and P_Key become a drop-in, by which ibprov checks the interface; addresses stay with the network stack";
    /// A network stack sets up an interface.
    Addresses: Left, "addresses stay with the network stack, which ibprov waits for";
    /// Ports of the subnet manager.
    SubnetManager: Left, "opensm continues to read the file; ibprov starts one only by a [[subnet-manager]] and ibprov-opensm.target";
    /// A unit that starts opensm.
    SubnetManagerUnit: Left, "the unit continues to start opensm";
    /// A drop-in made for the vendor's openibd.
    DropInOfVendor: NeedsDecision, "the drop-in was written for the vendor's openibd and would apply to ibprov-openibd.service", do "let the configuration, or a unit of your own ordered After=ibprov.service, do what this line does; then remove the drop-in";
    /// A line of one that loads modules.
    DropInLoadsModules: NeedsDecision, "the drop-in of openibd loads modules, and would apply to ibprov-openibd.service", do "list the modules in modules.load (ibprov.toml(5)), then remove the drop-in";
    /// A line of one that waits.
    DropInWaits: NeedsDecision, "the drop-in of openibd only waits here; ibprov.service waits for the ports by itself", do "remove the line";
    /// A hook of openibd.
    HookOfVendor: NeedsDecision, "openibd runs this hook, and nothing does after the migration", do "have a unit of your own, ordered After=ibprov.service, run what is needed of it; then remove the file";
    /// The port types that openibd sets.
    PortTypesOfVendor: NeedsDecision, "openibd sets the types of ports (ib, eth) from this file; without it they are those of the firmware", do "write a [[port]] with its type for each port of the file (ibprov.toml(5)), then remove the file";
    /// Settings that mlx5 adapters get by mlnx_conf_mgr.sh.
    SettingsOfMlx5: NeedsDecision, "mlnx_interface_mgr applies this file by mlnx_conf_mgr.sh, and ibprov does not know its settings", do "if they are needed, have a unit of your own set them; then remove the file";
    /// A line calls openibd.
    CallsOpenibd: NeedsDecision, "openibd, which loads and unloads modules while ibprov uses them, is started or stopped here", do "remove this line or unit";
    /// A line loads modules.
    LoadsModules: NeedsDecision, "modules for InfiniBand are loaded or unloaded here", do "ibprov loads drivers, ib_umad, ib_uverbs and ib_ipoib: list others in modules.load, then remove this line or unit";
    /// A line creates VFs or gives them GUIDs.
    SetsVfs: NeedsDecision, "VFs are created here, or their GUIDs are set", do "plan the VFs with [[pf]] (ibprov-vf(5)), compare with `ibprov plan`, then remove this line or unit";
    /// A line starts opensm.
    StartsOpensm: NeedsDecision, "opensm is started here", do "run it by a [[subnet-manager]] (ibprov.toml(5)) or a unit of the package, on one port once, then remove this line; without a subnet manager no port of the fabric becomes active";
    /// A line writes to the firmware.
    SetsFirmware: NeedsDecision, "firmware of an adapter, or its settings, are written here", do "plan the settings with [[firmware]] (ibprov-firmware(8)), compare with `ibprov firmware`, then remove this line or unit";
    /// A line sets the types of ports.
    SetsPortTypes: NeedsDecision, "types of ports (ib, eth) are set here", do "write a [[port]] with its type for each (ibprov.toml(5)), then remove this line or unit";
    /// A line binds functions to drivers.
    BindsDrivers: NeedsDecision, "adapters or VFs are bound to a driver or unbound here, maybe while ibprov sets them up", do "ibprov binds VFs once their GUIDs are set, as [[pf]] says (ibprov-vf(5)); remove this line or unit if it is for that";
    /// A line sets ports or the RDMA subsystem.
    SetsPorts: NeedsDecision, "ports or the RDMA subsystem are set here", do "rdma.netns, [[port]] and [[rxe]] have the settings that ibprov knows (ibprov.toml(5)); what else is needed belongs to a unit ordered After=ibprov.service";
    /// A line tunes.
    Tunes: Left, "what is set here, as performance, ibprov has no setting for";
    /// It touches InfiniBand, and is not understood.
    NotUnderstood: NeedsDecision, "InfiniBand is touched here, in a way that ibprov does not understand", do "see what it does; if it has to stay, order its unit After=ibprov.service";
    /// A line renames RDMA devices.
    RenamesRdma: NeedsDecision, "RDMA devices are renamed here", do "name adapters in the configuration by pci or port-guid; remove this line or unit if vf-rdma-name of [[pf]] does the same";
    /// A line of rc.local, which nothing runs.
    NotRun: NeedsDecision, "systemd does not run this file (from version 260 on it has no generator for it): the line has no effect", do "plan with [[pf]] and [[interface]] what the line is for, then remove it";
    /// A line starts a virtual machine.
    StartsGuest: NeedsDecision, "a virtual machine is started here, whether its VFs are ready or not", do "if it has VFs: list it as [[guest]] (ibprov.toml(5)), which starts it when they are ready, then remove this line";
    /// A line brings an interface up.
    BringsUp: NeedsDecision, "an InfiniBand interface is configured here", do "remove this line or unit if it was only needed because the interface appeared too late; settings belong to [[interface]], addresses to the network stack";
}

/// Something that brings InfiniBand up today.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Item {
    /// A unit or a file.
    pub object: String,
    /// The line, from 1, if it is about one.
    pub line: Option<usize>,
    /// What the line says.
    pub text: Option<String>,
    pub becomes: Becomes,
    /// Why, by a name that never changes.
    pub reason: Reason,
    /// It is not sure that it does this.
    pub guessed: bool,
    /// Why, in words.
    pub message: &'static str,
    /// The drop-in that its settings are written to.
    pub drop_in: Option<String>,
}

impl Item {
    /// `object`, for this reason.
    pub fn new(object: impl Into<String>, reason: Reason) -> Self {
        let (becomes, message) = (reason.becomes(), reason.message());
        let object = short(&object.into());
        Self {
            object,
            line: None,
            text: None,
            becomes,
            reason,
            guessed: false,
            message,
            drop_in: None,
        }
    }

    #[must_use]
    pub fn at_line(self, line: usize, text: &str) -> Self {
        Self { line: Some(line), text: Some(short(text.trim())), ..self }
    }

    /// What it says or runs.
    #[must_use]
    pub fn saying(self, text: &str) -> Self {
        let text = short(text.trim());
        Self { text: (!text.is_empty()).then_some(text), ..self }
    }

    /// What it does is guessed.
    #[must_use]
    pub fn guessed(self) -> Self {
        Self { guessed: true, ..self }
    }

    /// Its settings go to `path`.
    #[must_use]
    pub fn into_drop_in(self, path: &str) -> Self {
        Self { drop_in: Some(path.to_owned()), ..self }
    }

    pub fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.object),
            None => self.object.clone(),
        }
    }

    pub const fn guess(&self) -> &'static str {
        if self.guessed { "probably, " } else { "" }
    }

    fn finding(&self) -> Finding {
        let text = self.text.as_ref().map_or_else(String::new, |text| format!(": {text}"));
        let guessed = self.guess();
        let message = format!("needs a decision: {guessed}{}{text}", self.message);
        let finding = Finding::warning(Code::NeedsDecision, message).about(self.place());
        finding.permanent([self.reason.advice()])
    }
}

/// As it may be printed within a line, and not too long.
pub fn short(text: &str) -> String {
    text.chars().take(200).map(mark).collect()
}

/// A path of the host that is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Change {
    pub path: String,
    /// What is there before.
    pub before: PathState,
    /// What is there after.
    pub after: PathState,
}

impl Change {
    /// The other way round.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { path: self.path, before: self.after, after: self.before }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match (&self.before, &self.after) {
            (_, PathState::Absent) => write!(f, "remove {path}"),
            (_, PathState::Directory) => write!(f, "create the directory {path}"),
            (PathState::Absent, PathState::Link { target }) => write!(f, "link {path} to {target}"),
            (PathState::Absent, PathState::File { .. }) => write!(f, "write {path}"),
            (before, PathState::Link { target }) => {
                write!(f, "replace {path}, {before}, by a link to {target}")
            }
            (before, PathState::File { .. }) => write!(f, "replace {path}, {before}, by a file"),
        }
    }
}

/// What `ibprov migrate` says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Migration {
    /// It is taken back (`--back`).
    pub back: bool,
    /// It was done, as far as [`Migration::changes`] tells, not only shown.
    pub applied: bool,
    /// What was found, and what becomes of it.
    pub items: Vec<Item>,
    /// What is changed on the host, in this order.
    pub changes: Vec<Change>,
    /// The record by which it can be taken back.
    pub record: String,
    /// What is wrong, beside what needs a decision.
    #[serde(skip)]
    pub problems: Vec<Finding>,
}

impl Migration {
    fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    fn has_exceptions(&self) -> bool {
        let decisions = self.items.iter().any(|item| item.becomes == Becomes::NeedsDecision);
        decisions || self.problems.iter().any(|problem| problem.severity == Severity::Warning)
    }

    pub fn verdict(&self) -> Verdict {
        match (self.applied, self.has_errors()) {
            (true, true) => Verdict::Failed,
            (false, true) => Verdict::WouldFail,
            (false, false) if self.changes.is_empty() => Verdict::NothingToDo,
            (false, false) => Verdict::WouldChange,
            (true, false) if self.has_exceptions() => Verdict::Exceptions,
            (true, false) if self.changes.is_empty() => Verdict::NothingToDo,
            (true, false) => Verdict::Done,
        }
    }

    /// With the keys that every report has.
    pub fn to_report(&self) -> Report<&Self> {
        let decisions = self.items.iter().filter(|item| item.becomes == Becomes::NeedsDecision);
        let mut findings: Vec<Finding> = self.problems.clone();
        findings.extend(decisions.map(Item::finding));
        Finding::worst_first(&mut findings);
        Report::new(Kind::Migrate, self.verdict(), findings, self)
    }
}
