//! The kinds of journal event, each with its MESSAGE_ID (`sd-id128(3)`), so
//! that `journalctl MESSAGE_ID=...` finds them in every release. README.md and
//! the man page list them; the identifiers are promised.

/// `boot` began. Fields: IBPROV_VERSION, IBPROV_DEADLINE_SEC.
pub const STARTED: &str = "2b7b0b9e903d414e8c596726a282c880";
/// A step changed something on the host. Fields: IBPROV_STEP, IBPROV_MODULE or
/// IBPROV_PCI, IBPROV_TOOK_USEC.
pub const STEP_DONE: &str = "2cab8de825d54485a60593541cedbd73";
/// A step failed. Fields as STEP_DONE, and IBPROV_CAUSE.
pub const STEP_FAILED: &str = "49d42b9c30f34cdeada6eb1050623f7c";
/// A port reached the rung that boot waits for. Fields: IBPROV_PCI,
/// IBPROV_RDMA, IBPROV_PORT, IBPROV_GUID, IBPROV_NETDEV, IBPROV_RUNG.
pub const PORT_READY: &str = "5491926d039241e28588e22f466d308e";
/// A port did not. Fields as PORT_READY, and IBPROV_MISSING, IBPROV_CAUSE.
pub const PORT_NOT_READY: &str = "fa880a9215c64c31a44865a1837ca75f";
/// Something to know that stopped nothing. Field: IBPROV_WARNING.
pub const WARNING: &str = "94d9f3c083574995a21094eb83d49aea";
/// `wait-online`: a port is online. Fields as PORT_READY.
pub const PORT_ONLINE: &str = "c4c1e49464c14be7a491a490554e7009";
/// `wait-online`: a port is not. Fields as PORT_NOT_READY.
pub const PORT_NOT_ONLINE: &str = "ee7f399e320f44b48109c9490d154cfd";
/// `wait-online` ended. Fields: IBPROV_VERDICT, IBPROV_EXIT, IBPROV_TOOK_USEC.
pub const WAIT_FINISHED: &str = "1f96be6bce42433092ffa192c3eee859";
/// `boot` ended. Fields: IBPROV_VERDICT, IBPROV_EXIT, IBPROV_TOOK_USEC,
/// IBPROV_CPU_USEC.
pub const FINISHED: &str = "ae6974c6aa324960b805a4bda5d71cf6";
