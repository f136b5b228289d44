//! How a configured subnet manager stands, in every report that tells of it.

use serde::{Deserialize, Serialize};

use super::{Advice, Code, Finding, Severity, ToDo};
use crate::names::{Guid, Object, PortNumber, RdmaName, sh};

/// What makes udev start the subnet managers.
pub const TARGET: &str = "ibprov-opensm.target";

/// How far `ibprov opensm run` is with one: /run/ibprov/opensm/GUID.json.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetManagerRun {
    pub stage: Stage,
    /// Why it waits or was refused.
    pub reason: Option<String>,
    /// The process, which becomes opensm.
    pub pid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Waiting,
    Refused,
    Running,
}

/// A subnet manager of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubnetManagerReport {
    /// The port GUID of its port.
    pub port_guid: Guid,
    pub priority: u8,
    /// The RDMA device of the port; `null` if no port of the host has the GUID.
    pub rdma: Option<RdmaName>,
    /// The number of the port.
    pub port: Option<PortNumber>,
    /// The unit that runs it; `null` if its port has no device for subnet managers.
    pub unit: Option<String>,
    #[serde(flatten)]
    pub state: SubnetManagerState,
    /// Why; `null` if nothing is known, or there is nothing to say.
    pub reason: Option<String>,
}

/// How a subnet manager stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SubnetManagerState {
    /// It is the subnet manager of its fabric.
    Master,
    /// Another one is, which it watches.
    Standby {
        /// The LID of the master.
        master_lid: u32,
    },
    /// The link of its port is not up.
    WaitingForLink,
    /// opensm runs, and has not configured the port yet.
    Starting,
    /// opensm is not started yet, because the fabric has another subnet manager, or that is not
    /// known.
    Waiting,
    /// ibprov has not started opensm.
    Refused,
    /// opensm has ended too often.
    Failed,
    /// No unit runs it.
    NotRunning,
    /// `ibprov-opensm.target` is not enabled.
    NotEnabled,
    /// No InfiniBand port of the host has the GUID.
    NoPort,
    /// The port has no issm device: no subnet manager can run on it.
    NoDevice,
}

impl SubnetManagerReport {
    /// `mlx5_0/1 (9803:9b03:00a1:b0c1)`.
    pub fn object(&self) -> Object {
        match (&self.rdma, self.port) {
            (Some(rdma), Some(port)) => format!("{rdma}/{port} ({})", self.port_guid).into(),
            _ => self.port_guid.into(),
        }
    }

    pub fn message(&self) -> String {
        let text = match self.state {
            SubnetManagerState::Master => "master".to_owned(),
            SubnetManagerState::Standby { master_lid } => {
                format!("standby, the master has LID {master_lid}")
            }
            SubnetManagerState::WaitingForLink => "opensm waits for the link".to_owned(),
            SubnetManagerState::Starting => "opensm is starting".to_owned(),
            SubnetManagerState::Waiting => "opensm is not started yet".to_owned(),
            SubnetManagerState::Refused => "opensm is not started".to_owned(),
            SubnetManagerState::Failed => "opensm has failed".to_owned(),
            SubnetManagerState::NotRunning => "opensm is not running".to_owned(),
            SubnetManagerState::NotEnabled => {
                format!("opensm is configured, and {TARGET} is not enabled")
            }
            SubnetManagerState::NoPort => {
                "no InfiniBand port of this host has the port GUID".to_owned()
            }
            SubnetManagerState::NoDevice => {
                "the port has no issm device: no subnet manager can run on it".to_owned()
            }
        };
        let reason = self.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{text}{reason}")
    }

    /// What is wrong with it, if anything is: a port that has no link is told as such.
    pub fn finding(&self) -> Option<Finding> {
        let (code, severity) = match self.state {
            SubnetManagerState::Master
            | SubnetManagerState::Standby { .. }
            | SubnetManagerState::WaitingForLink
            | SubnetManagerState::Starting => return None,
            SubnetManagerState::NotEnabled => (Code::SubnetManagerNotEnabled, Severity::Warning),
            SubnetManagerState::Waiting => (Code::SubnetManagerNotRunning, Severity::Warning),
            _ => (Code::SubnetManagerNotRunning, Severity::Error),
        };
        let advice = match (&self.state, &self.unit) {
            (SubnetManagerState::NotEnabled, _) => {
                vec![
                    Advice::now(ToDo::run(ENABLE)),
                    Advice::permanent("or remove the [[subnet-manager]]"),
                ]
            }
            (SubnetManagerState::NoPort, _) => vec![
                Advice::look(ToDo::run("ibprov status --verbose")),
                Advice::permanent("set subnet-manager.port-guid to a port GUID of this host"),
            ],
            (SubnetManagerState::NoDevice, _) => {
                vec![Advice::look(ToDo::run(
                    "ls -l /sys/class/infiniband_mad; lsmod | grep ib_umad",
                ))]
            }
            (_, Some(unit)) => vec![
                Advice::look(ToDo::run(format!("systemctl status {}", sh(unit)))),
                Advice::now(ToDo::run(format!("systemctl restart {}", sh(unit)))),
            ],
            (_, None) => Vec::new(),
        };
        let finding = Finding::new(code, severity, self.message());
        Some(finding.about(self.object()).advise(advice))
    }
}

/// How the subnet managers are enabled, at once and for the next boot.
pub const ENABLE: &str =
    "systemctl enable ibprov-opensm.target && udevadm trigger -s infiniband_mad";
