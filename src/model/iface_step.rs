use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Use, listed, uses::told};
use crate::names::{IfName, Mode, PKey, sh};

/// What one interface shall be. What is `None` or empty is left alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WantedInterface {
    /// The transport mode that it shall be in.
    pub mode: Option<Mode>,
    /// The MTU that it shall have, bytes.
    pub mtu: Option<u32>,
    /// User space may join multicast groups.
    pub umcast: Option<bool>,
    /// P_Key children.
    #[serde(default)]
    pub partitions: Vec<WantedChild>,
    /// The least that ib_ipoib's recv_queue_size should be.
    pub receive_queue: Option<u32>,
    /// The least that ib_ipoib's send_queue_size should be.
    pub send_queue: Option<u32>,
    /// The name it should have.
    pub name: Option<IfName>,
    /// The rules that apply, by file and line.
    #[serde(default)]
    pub origins: Vec<String>,
}

impl WantedInterface {
    /// Something shall be set at the interface itself, beside its name and its P_Key children.
    pub const fn sets(&self) -> bool {
        self.mode.is_some() || self.mtu.is_some() || self.umcast.is_some()
    }
}

/// A P_Key child that an interface shall have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WantedChild {
    /// Its P_Key.
    pub pkey: PKey,
    /// Its name; `None`: the kernel's.
    pub name: Option<IfName>,
    /// The network stack that creates it; `None`: ibprov does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<ChildCreator>,
}

/// A network stack that creates a P_Key child itself, and would not set up one that another
/// program had created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChildCreator {
    /// The stack, as messages name it.
    pub stack: String,
    /// The file that has it do so.
    pub file: String,
}

/// One thing that is done to an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum IfaceStep {
    /// Give it its persistent name, which it has not got from udev.
    Rename {
        to: IfName,
        /// The interface that bears that name now, by its index, and is given another
        /// one first: it has a persistent name of its own to come to.
        aside: Option<u32>,
    },
    /// Set the transport mode.
    SetMode {
        /// The mode that it gets.
        mode: Mode,
    },
    /// Set the MTU.
    SetMtu {
        /// To this, in bytes.
        mtu: u32,
    },
    /// Set umcast.
    SetUmcast {
        /// True lets user space join multicast groups.
        umcast: bool,
    },
    /// Make a P_Key child.
    AddChild {
        /// Its P_Key.
        pkey: PKey,
        /// The name that the child gets.
        name: IfName,
    },
}

impl IfaceStep {
    /// It interrupts what is sent and received over the interface: queues and paths are made
    /// anew (`ipoib_set_mode()`, drivers/infiniband/ulp/ipoib/ipoib_cm.c), carrier goes away
    /// for a moment (`ipoib_change_mtu()`, ipoib_main.c).
    pub const fn interrupts(&self) -> bool {
        match self {
            Self::SetMode { .. } | Self::SetMtu { .. } => true,
            Self::Rename { .. } | Self::SetUmcast { .. } | Self::AddChild { .. } => false,
        }
    }
}

/// Steps that are left undone, because the interface is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeferredSettings {
    /// In this order.
    pub steps: Vec<IfaceStep>,
    /// By what it is in use.
    pub uses: Vec<Use>,
}

impl DeferredSettings {
    /// That the interface `netdev` is in use, and what is therefore left undone.
    pub fn sentence(&self, netdev: impl fmt::Display) -> String {
        let used = told(&netdev.to_string(), &self.uses);
        format!("{used}; deferred to the next boot: {}", listed(&self.steps))
    }

    /// The same, with the command that takes these steps now.
    pub fn with_command(&self, netdev: &IfName) -> String {
        format!("{}; to do it now: {}", self.sentence(netdev), Self::command(netdev))
    }

    /// The command that takes these steps all the same.
    pub fn command(netdev: impl fmt::Display) -> String {
        format!("ibprov iface {} --force", sh(&netdev.to_string()))
    }
}

impl fmt::Display for IfaceStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rename { to, aside: None } => write!(f, "rename to {to}"),
            Self::Rename { to, aside: Some(ifindex) } => {
                write!(
                    f,
                    "rename to {to}, after the interface of that name has been renamed to {}",
                    aside_name(*ifindex)
                )
            }
            Self::SetMode { mode } => write!(f, "set mode {}", mode.word()),
            Self::SetMtu { mtu } => write!(f, "set MTU {mtu}"),
            Self::SetUmcast { umcast } => write!(f, "set umcast {}", u8::from(*umcast)),
            Self::AddChild { pkey, name } => write!(f, "create P_Key child {name} ({pkey})"),
        }
    }
}

/// What an interface is called while its name goes to another one.
pub fn aside_name(ifindex: u32) -> String {
    format!("ibprov{ifindex}")
}
