//! The keys of `[[interface]]` and `[[interface.partition]]`.

/// The keys of one `[[interface]]`.
pub(crate) mod interface {
    use super::super::kinds::Tables;
    use super::super::kinds::{Key, Kind};
    use super::super::words;
    use crate::names::{Guid, IfName, IfPattern, Mode, PciAddress};

    keys! { KEYS:
        MATCH_NAME: IfPattern = "match.name", Kind::OneOrMore(&words::IF_PATTERN), "",
            "The interfaces by name: a pattern as in a shell, \"*\" for every one, or a list of patterns.";
        MATCH_PORT_GUID: Guid = "match.port-guid", Kind::OneOrMore(&words::GUID), "",
            "The interface of the port with this port GUID, or a list of them.";
        MATCH_PCI: PciAddress = "match.pci", Kind::OneOrMore(&words::PCI), "",
            "The interfaces of the adapter at this PCI address, or a list of them.";
        MATCH_PORT: i64 = "match.port", Kind::Number { min: 1, max: 254 }, "",
            "Together with match.pci: only this port of the adapter, counted from 1.";
        NAME: IfName = "name", Kind::Word(&words::IF_NAME), "",
            "The name that udev gives the interface at every boot; for one port only.";
        MODE: Mode = "mode", Kind::Word(&words::MODE), "",
            "Transport mode, \"datagram\" or \"connected\".";
        MTU: i64 = "mtu", Kind::Number { min: 72, max: 65520 }, "",
            "MTU in bytes: at most 4092 in datagram mode (10236 on Omni-Path), 65520 in connected mode.";
        UMCAST: bool = "umcast", Kind::Flag, "",
            "Whether user space may join multicast groups by itself.";
        RECEIVE_QUEUE: i64 = "receive-queue", Kind::Number { min: 2, max: 8192 }, "",
            "The minimum recv_queue_size of ib_ipoib; a smaller one is reported, not changed.";
        SEND_QUEUE: i64 = "send-queue", Kind::Number { min: 2, max: 8192 }, "",
            "The minimum send_queue_size of ib_ipoib; a smaller one is reported, not changed.";
        PARTITION: Tables = "partition", Kind::Tables(super::partition::KEYS), "[]",
            "A P_Key child of the interface.";
    }
}

/// The keys of one `[[interface.partition]]`.
pub(crate) mod partition {
    use super::super::kinds::{Key, Kind};
    use super::super::words;
    use crate::names::{IfName, Mode, PKey};

    keys! { KEYS:
        PKEY: PKey = "pkey", Kind::Word(&words::PKEY), "",
            "Its P_Key.";
        NAME: IfName = "name", Kind::Word(&words::IF_NAME), "",
            "The name; default: the kernel's, such as ib0.8001.";
        MODE: Mode = "mode", Kind::Word(&words::MODE), "",
            "The transport mode; default: the parent's.";
        MTU: i64 = "mtu", Kind::Number { min: 72, max: 65520 }, "",
            "The MTU in bytes; default: the parent's.";
        UMCAST: bool = "umcast", Kind::Flag, "",
            "Whether user space may join multicast groups by itself; default: as on the parent.";
    }
}
