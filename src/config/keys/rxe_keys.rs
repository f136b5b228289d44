//! The keys of `[[rxe]]`.

/// The keys of one `[[rxe]]`.
pub(crate) mod rxe {
    use super::super::kinds::{Key, Kind};
    use super::super::words;
    use crate::names::{IfName, RdmaName};

    keys! { KEYS:
        NAME: RdmaName = "name", Kind::Word(&words::RDMA), "",
            "The name of the soft RoCE device, e.g. rxe0.";
        NETDEV: IfName = "netdev", Kind::Word(&words::IF_NAME), "",
            "The netdev that it uses, by its final name; neither IPoIB nor a VLAN.";
    }
}
