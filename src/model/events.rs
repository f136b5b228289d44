//! The kinds of journal event, each with its MESSAGE_ID (`sd-id128(3)`), so
//! that `journalctl MESSAGE_ID=...` finds them in every release. ibprov.journal(7)
//! lists them; the identifiers are promised.

/// `boot` began. Fields: IBPROV_VERSION, IBPROV_TIMEOUT_SEC.
pub const STARTED: &str = "2b7b0b9e903d414e8c596726a282c880";
/// A step changed something on the host. Fields: IBPROV_STEP; IBPROV_TOOK_USEC where
/// it is one of `boot` or `iface`; what it was done to: IBPROV_MODULE, IBPROV_PCI,
/// IBPROV_PF, IBPROV_VF, IBPROV_NETDEV.
pub const STEP_DONE: &str = "2cab8de825d54485a60593541cedbd73";
/// A step failed. Fields as STEP_DONE, and IBPROV_CAUSE.
pub const STEP_FAILED: &str = "49d42b9c30f34cdeada6eb1050623f7c";
/// A port reached the rung that boot waits for. Fields: IBPROV_EXPECTED, IBPROV_PCI,
/// IBPROV_RDMA, IBPROV_PORT, IBPROV_GUID, IBPROV_NETDEV, IBPROV_RUNG.
pub const PORT_READY: &str = "5491926d039241e28588e22f466d308e";
/// A port did not. Fields as PORT_READY, and IBPROV_MISSING, IBPROV_CAUSE.
pub const PORT_NOT_READY: &str = "fa880a9215c64c31a44865a1837ca75f";
/// Something to know that stopped nothing. Field: IBPROV_WARNING, or IBPROV_GUEST.
pub const WARNING: &str = "94d9f3c083574995a21094eb83d49aea";
/// `wait-online`: a port is online. Fields as PORT_READY.
pub const PORT_ONLINE: &str = "c4c1e49464c14be7a491a490554e7009";
/// `wait-online`: a port is not. Fields as PORT_NOT_READY.
pub const PORT_NOT_ONLINE: &str = "ee7f399e320f44b48109c9490d154cfd";
/// `wait-online` ended. Fields: IBPROV_VERDICT, IBPROV_EXIT, IBPROV_TOOK_USEC.
pub const WAIT_FINISHED: &str = "1f96be6bce42433092ffa192c3eee859";
/// `guests`: a guest's start was asked for. Fields: IBPROV_GUEST.
pub const GUEST_STARTING: &str = "790ed33f69b1495496d5d7877f2572bd";
/// `guests`: a guest is up. Fields as GUEST_STARTING, and IBPROV_TOOK_USEC.
pub const GUEST_UP: &str = "eb4c79698efb4be19c9ba5a538ef8436";
/// `guests`: a guest waits for its VFs. Fields as GUEST_STARTING, and IBPROV_CAUSE.
pub const GUEST_WAITS: &str = "e90af04f628e4c0a962f6e27aebaec1d";
/// `guests`: a guest is not started, or did not come up. Fields as GUEST_WAITS.
pub const GUEST_FAILED: &str = "82d1e0f424224844929580734bdb20ff";
/// `guests`: the first pass is over. No fields.
pub const GUESTS_READY: &str = "50e65608506a4a0fbeeaeec7c9b81efc";
/// `ibprov iface` runs `ifup` in a unit of its own. Fields: IBPROV_NETDEV,
/// IBPROV_UNIT.
pub const IFUP: &str = "8e9e841466d84846b798935344d62d83";
/// An interface is set up; its message is the report. Fields: IBPROV_NETDEV,
/// IBPROV_STACK.
pub const IFACE_DONE: &str = "a68473297c524a639e70ab61cddb8f38";
/// An interface is not, or is not up. The same, and IBPROV_CAUSE.
pub const IFACE_FAILED: &str = "90f8b5c12ab1438785a37bdf0cfae5ea";
/// `boot` ended. Fields: IBPROV_VERDICT, IBPROV_EXIT, IBPROV_TOOK_USEC,
/// IBPROV_CPU_USEC.
pub const FINISHED: &str = "ae6974c6aa324960b805a4bda5d71cf6";
/// `apply` ended at one PF. Fields: IBPROV_PF, IBPROV_VERDICT, IBPROV_EXIT,
/// IBPROV_TOOK_USEC.
pub const PF_FINISHED: &str = "7b005ca36abc292c71e7e6ca0b0882ba";
/// A VF is not as planned. Fields: IBPROV_PF, IBPROV_VF, IBPROV_PCI,
/// IBPROV_GUID (port GUID of the plan), IBPROV_RUNG, IBPROV_CAUSE.
pub const VF_NOT_RIGHT: &str = "8dc3acb2f821f3ef481cbb705a2e419f";
/// A VF is left as it is, because somebody uses it. Fields as VF_NOT_RIGHT.
pub const VF_DEFERRED: &str = "307347b626b9850c0523c7f00c8380d1";
