//! How a soft RoCE device stands, in every report that tells of it.

use serde::{Deserialize, Serialize};

use super::{Advice, Code, Finding, Severity, Standing, ToDo};
use crate::names::{IfName, Object, RdmaName, displayed, sh};

/// A soft RoCE device that is configured, or that is there and is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RxeReport {
    /// The name of the RDMA device.
    pub name: RdmaName,
    /// The netdev that it uses, or shall use; `null` if the kernel does not tell.
    pub netdev: Option<IfName>,
    #[serde(flatten)]
    pub state: RxeState,
    /// Why it could not be created, or what it lacks; `null` if nothing is known.
    #[serde(default)]
    pub reason: Option<String>,
}

/// How a soft RoCE device stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum RxeState {
    /// It is on its netdev.
    Present,
    /// It does not exist, and its netdev is ready for it.
    Absent,
    /// Its netdev does not exist.
    NoNetdev,
    /// udev has not finished with its netdev or with itself: a name may change.
    NotNamed,
    /// Its netdev is an IPoIB interface.
    OverIpoib,
    /// Another RDMA device has its name.
    NameTaken {
        /// The netdev of that device, if it is soft RoCE.
        by: Option<IfName>,
    },
    /// Its netdev has a soft RoCE device of another name.
    NetdevTaken {
        /// That device.
        by: RdmaName,
    },
    /// It exists, and the configuration does not name it.
    NotConfigured,
}

impl RxeState {
    /// How it counts. One whose netdev is not there is created when that appears.
    pub const fn standing(&self) -> Standing {
        match self {
            Self::Present | Self::NotConfigured => Standing::Ready,
            Self::NoNetdev | Self::NotNamed => Standing::Excused,
            Self::Absent | Self::OverIpoib | Self::NameTaken { .. } | Self::NetdevTaken { .. } => {
                Standing::Missing
            }
        }
    }
}

impl RxeReport {
    /// What stands before a message about it: `rxe0 (eth1)`.
    pub fn object(&self) -> Object {
        match &self.netdev {
            Some(netdev) => format!("{} ({netdev})", self.name).into(),
            None => (&self.name).into(),
        }
    }

    /// What is wrong with it, if anything is.
    pub fn finding(&self) -> Option<Finding> {
        let severity = match (self.state.standing(), &self.state, &self.reason) {
            (Standing::Missing, ..) => Severity::Error,
            (Standing::Excused, ..) | (_, RxeState::Present, Some(_)) => Severity::Warning,
            (_, RxeState::NotConfigured, _) => Severity::Info,
            _ => return None,
        };
        let finding = Finding::new(Code::RxeNotReady, severity, self.message());
        Some(finding.about(self.object()).advise(self.advice()))
    }

    pub fn message(&self) -> String {
        let netdev = self.netdev.as_ref().map_or("its netdev", IfName::as_str);
        let reason = self.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        match &self.state {
            RxeState::Present => format!("soft RoCE device on {netdev}{reason}"),
            RxeState::Absent => format!("soft RoCE device not created on {netdev}{reason}"),
            RxeState::NoNetdev => {
                format!(
                    "soft RoCE device absent: netdev {netdev} does not exist; the device is created when {netdev} appears"
                )
            }
            RxeState::NotNamed => {
                format!(
                    "soft RoCE device not ready: udev has not finished with {} or {netdev}",
                    self.name
                )
            }
            RxeState::OverIpoib => format!(
                "soft RoCE device refused: {netdev} is an IPoIB interface, and soft RoCE needs an Ethernet netdev"
            ),
            RxeState::NameTaken { by: Some(by) } => {
                format!("soft RoCE device not created: {} exists on netdev {by}", self.name)
            }
            RxeState::NameTaken { by: None } => format!(
                "soft RoCE device not created: another RDMA device has the name {}",
                self.name
            ),
            RxeState::NetdevTaken { by } => {
                format!("soft RoCE device not created: {netdev} has the soft RoCE device {by}")
            }
            RxeState::NotConfigured => {
                format!(
                    "soft RoCE device on {netdev} is not in the configuration, and is not changed"
                )
            }
        }
    }

    /// It is missing, and boot cannot create it.
    pub fn is_refused(&self) -> bool {
        self.state != RxeState::Absent && self.state.standing() == Standing::Missing
    }

    /// What a plan says of it.
    pub fn planned(&self) -> String {
        match (&self.state, &self.netdev) {
            (RxeState::Absent, Some(netdev)) => {
                format!("{}: would be created on {netdev} (soft RoCE)", self.object())
            }
            _ => self.to_string(),
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> Vec<Advice> {
        let name = &self.name;
        match &self.state {
            RxeState::Absent => {
                vec![
                    Advice::look(ToDo::run("dmesg; modinfo rdma_rxe")),
                    Advice::now(ToDo::run("ibprov boot")),
                ]
            }
            RxeState::NoNetdev | RxeState::NotNamed => {
                let netdev = self.netdev.as_ref();
                let show = |name: &IfName| format!("ip link show dev {}", sh(name.as_str()));
                netdev.map(|name| Advice::look(ToDo::run(show(name)))).into_iter().collect()
            }
            RxeState::OverIpoib => {
                vec![Advice::permanent("name an Ethernet netdev in [[rxe]] of ibprov.toml")]
            }
            RxeState::NameTaken { .. } => vec![
                Advice::look(ToDo::run("rdma link")),
                Advice::permanent("give another name in [[rxe]] of ibprov.toml"),
            ],
            RxeState::NetdevTaken { by } => vec![
                Advice::look(ToDo::run("rdma link")),
                Advice::now(ToDo::run(format!("rdma link delete {by} && ibprov boot"))),
            ],
            RxeState::NotConfigured => {
                vec![Advice::now(ToDo::with(
                    "if nothing uses it",
                    format!("rdma link delete {name}"),
                ))]
            }
            RxeState::Present => Vec::new(),
        }
    }
}

displayed!(RxeReport, rxe => "{}: {}", rxe.object(), rxe.message());
