//! The keys of `[[subnet-manager]]`.

/// The keys of one `[[subnet-manager]]`.
pub(crate) mod subnet_manager {
    use std::collections::BTreeMap;

    use super::super::kinds::{Key, Kind};
    use super::super::words;
    use crate::names::Guid;

    keys! { KEYS:
        PORT_GUID: Guid = "port-guid", Kind::Word(&words::GUID), "",
            "The port GUID of the port of this host on which opensm runs.";
        PRIORITY: i64 = "priority", Kind::Number { min: 0, max: 15 }, "",
            "opensm's priority: of several subnet managers of a fabric the one with the highest is the master.";
        PARTITIONS: String = "partitions", Kind::Word(&words::PATH), "",
            "The partitions file; default: the one that opensm was built for.";
        PEERS: Guid = "peers", Kind::Words(&words::GUID), "[]",
            "Port GUIDs of other hosts whose subnet manager may be the master of this fabric.";
        OPTIONS: BTreeMap<String, String> = "options", Kind::Options, "",
            "Further keys of opensm.conf, with their values.";
    }
}
