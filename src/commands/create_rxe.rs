//! `ibprov create-rxe`, which boot runs as a child: the registration of an RDMA device waits
//! for locks that a driver may hold; and `ibprov name-rxe`, which a rule of udev runs.

use crate::apply::rxe::{create, keep_name};
use crate::host::Root;
use crate::names::{IfName, RdmaName};

/// Create the soft RoCE device `name` on `netdev`.
///
/// # Errors
/// As [`create`].
pub fn run(name: &RdmaName, netdev: &IfName) -> anyhow::Result<()> {
    create(&Root::live(), name, netdev)
}

/// Give the soft RoCE device of `netdev` the name `name` again.
///
/// # Errors
/// As [`keep_name`].
pub fn name(name: &RdmaName, netdev: &IfName) -> anyhow::Result<()> {
    keep_name(&Root::live(), name, netdev)
}
