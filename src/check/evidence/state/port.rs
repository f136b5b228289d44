//! A port as a tool shows it, and the words for its states.

use serde::{Deserialize, Serialize};

use super::super::event::Origin;
use crate::check::pattern::word;
use crate::model::status::Role;
use crate::names::{IsVf, MadPort, Object, PciAddress, Policy, PortNumber, TablePKey};

/// A port as a tool shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSeen {
    /// The RDMA device; empty where it is not shown.
    pub device: String,
    /// The port, as written; empty where it is not shown.
    pub port: String,
    /// Logical state, lower case: `active`, `down`, `init`, `armed`.
    pub state: String,
    /// Physical state, lower case without `_`: `linkup`, `polling`, `disabled`;
    /// empty where the tool does not show it.
    pub physical: String,
    /// True for InfiniBand, false for Ethernet; `None` where it is not shown.
    pub infiniband: Option<bool>,
    /// LID of the subnet manager, as written.
    pub sm_lid: String,
    /// Port GUID, hex digits only; empty where it is not shown.
    pub guid: String,
    /// Node GUID of the device, hex digits only.
    pub node_guid: String,
    /// Whether it is a VF's.
    pub vf: IsVf,
    /// The link state of that VF, where its PF tells it.
    pub policy: Option<Policy>,
    /// Its PCI function; none where it is not shown.
    pub function: Option<PciAddress>,
    /// Its P_Key table, as far as it is shown.
    pub pkeys: Vec<TablePKey>,
    /// What the host that was looked at expects of it.
    pub role: Option<Role>,
    /// The line with the state.
    pub origin: Origin,
    pub text: String,
}

impl From<&PortSeen> for Object {
    fn from(port: &PortSeen) -> Self {
        Self::from(port.name())
    }
}

impl PortSeen {
    /// The state of its link in one word: of the physical one where that is why it is down.
    pub fn link(&self) -> &str {
        if self.state == "down" { &self.physical } else { &self.state }
    }

    /// True unless the tool says that it is Ethernet.
    pub fn may_be_infiniband(&self) -> bool {
        self.infiniband != Some(false)
    }

    /// True if a subnet manager has made it active.
    pub fn is_active(&self) -> bool {
        self.state == "active"
    }

    /// True if it was set so, by a subnet manager or by hand: a port without a cable is polling.
    pub fn is_disabled(&self) -> bool {
        self.physical == "disabled" && self.is_of_pf()
    }

    /// True of a port of a PF, unless the tool says that it is Ethernet.
    pub fn is_of_pf(&self) -> bool {
        self.may_be_infiniband() && !self.is_vf()
    }

    /// True if both are of one adapter, as the node GUIDs of its functions follow each other.
    pub fn is_beside(&self, other: &Self) -> bool {
        let guid = |port: &Self| u64::from_str_radix(&port.node_guid, 16).ok();
        let is_near = |(one, other): (u64, u64)| one.abs_diff(other) < 8;
        self.device == other.device || guid(self).zip(guid(other)).is_some_and(is_near)
    }

    /// True if it is a VF's.
    pub fn is_vf(&self) -> bool {
        self.vf != IsVf::No
    }

    /// Its line, with its name before it.
    pub fn told(&self) -> String {
        let name = self.name();
        match self.text.starts_with(&name) {
            true => self.text.clone(),
            false => format!("{name}: {}", self.text),
        }
    }

    /// The port for commands that ask through it.
    pub fn mad_port(&self) -> MadPort {
        let port = self.port.parse().ok().and_then(|port| PortNumber::new(port).ok());
        MadPort { device: self.device.parse().ok(), port }
    }

    /// Device and port for messages.
    pub fn name(&self) -> String {
        match (self.device.as_str(), self.port.as_str()) {
            ("", "") => "a port".to_owned(),
            ("", port) => format!("a port {port}"),
            (device, "") => format!("a port of {device}"),
            (device, port) => format!("{device}/{port}"),
        }
    }
}

/// The logical states of a port, as [`state`] writes them.
pub(super) const STATES: [&str; 4] = ["down", "init", "armed", "active"];

/// `Active`, `4: ACTIVE`, `PORT_ACTIVE (4)` as one word.
pub(super) fn state(text: &str) -> String {
    let text = text.split_once(": ").map_or(text, |(_, t)| t).trim();
    let name = text.strip_prefix("PORT_").unwrap_or(text);
    match word(name).to_ascii_lowercase().as_str() {
        "initializing" | "initialize" | "init" => "init".to_owned(),
        other => other.to_owned(),
    }
}

/// `LinkUp`, `5: LinkUp`, `LINK_UP (5)` as one word.
pub(super) fn physical(text: &str) -> String {
    let text = text.split_once(": ").map_or(text, |(_, t)| t).trim();
    word(text).to_ascii_lowercase().replace('_', "")
}
