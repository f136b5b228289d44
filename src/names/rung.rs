//! The rungs of the readiness ladders, of a port and of a VF.

use serde::{Deserialize, Serialize};

/// One rung of a port's ladder, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Rung {
    /// The PCI function is present.
    Pci,
    /// A driver is bound to it (or probing it).
    Driver,
    /// The driver has registered its RDMA device.
    Rdma,
    /// The port's IPoIB netdev exists.
    Netdev,
    /// udev has processed the netdev: its name is final.
    Named,
    /// Mode, MTU and P_Keys are as asked.
    Configured,
    /// The physical state is LinkUp.
    Link,
    /// The logical state is Active: a subnet manager gave it a LID.
    Active,
    /// Of a port in Ethernet mode that is expected: its netdev has carrier.
    Carrier,
    /// Of such a port: it has a GID of type RoCE v2 for an address that a peer can use.
    Gid,
}

impl Rung {
    /// The rungs of a port in Ethernet mode that is expected, lowest first.
    pub const ROCE: [Self; 7] =
        [Self::Pci, Self::Driver, Self::Rdma, Self::Netdev, Self::Named, Self::Carrier, Self::Gid];

    /// The rungs of an InfiniBand port on a host that is to load no ib_ipoib, lowest first.
    pub const WITHOUT_IPOIB: [Self; 5] =
        [Self::Pci, Self::Driver, Self::Rdma, Self::Link, Self::Active];

    /// The rungs of an InfiniBand port, lowest first.
    pub const ALL: [Self; 8] = [
        Self::Pci,
        Self::Driver,
        Self::Rdma,
        Self::Netdev,
        Self::Named,
        Self::Configured,
        Self::Link,
        Self::Active,
    ];

    /// The rungs that `wait-online` can wait for: from the first on which a port
    /// is InfiniBand's and not only a PCI function.
    pub const WAITED_FOR: [Self; 6] =
        [Self::Rdma, Self::Netdev, Self::Named, Self::Configured, Self::Link, Self::Active];

    /// The words of [`Self::WAITED_FOR`].
    pub fn words_to_wait_for() -> Vec<&'static str> {
        Self::WAITED_FOR.iter().map(|rung| rung.word()).collect()
    }

    /// The rung with this word, if `wait-online` can wait for it.
    pub fn to_wait_for(word: &str) -> Option<Self> {
        Self::WAITED_FOR.into_iter().find(|rung| rung.word() == word)
    }

    /// The word for it, as users read and type it.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

impl Rung {
    /// The state of a port for which this is the first rung that is missing: `no driver`.
    pub const fn lacking(self) -> &'static str {
        match self {
            Self::Pci => "absent",
            Self::Driver => "no driver",
            Self::Rdma => "no RDMA device",
            Self::Netdev => "no netdev",
            Self::Named => "not named",
            Self::Configured => "not configured",
            Self::Link => "no link",
            Self::Active => "not active",
            Self::Carrier => "no carrier",
            Self::Gid => "no GID",
        }
    }
}

/// One rung of a VF's ladder, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum VfRung {
    /// It is on the bus.
    Created,
    /// The PF administers the plan's GUIDs for it, read back.
    Guid,
    /// Its driver on this host is bound.
    Bound,
    /// It has an RDMA device.
    Rdma,
    /// It has an IPoIB netdev.
    Netdev,
    /// Node GUID, GID 0 and the netdev's address are the plan's.
    Verified,
    /// vfio-pci has it, for a virtual machine.
    HandedOver,
}

impl VfRung {
    pub fn word(self) -> &'static str {
        self.into()
    }
}
