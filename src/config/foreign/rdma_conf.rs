//! `/etc/rdma/rdma.conf` of Red Hat's rdma package, and of rdma-core before version 30 there:
//! the modules that `rdma.service` loads. Its keys are those of openib.conf.

use super::Imported;
use super::openib_conf;
use super::shell::assignment;

pub const PATH: &str = "/etc/rdma/rdma.conf";

/// Beside what ibprov loads by itself, `rdma-init-kernel` loads this in any case
/// (`redhat/rdma.kernel-init` of rdma-core).
const ALWAYS: &[&str] = &["rdma_ucm"];

pub fn import(text: &str) -> Imported {
    // RDS needs the addresses of IPoIB, so that with it the script loads IPoIB in any case.
    let rds = text.lines().rev().find_map(|line| match assignment(line) {
        Ok(Some(("RDS_LOAD", value))) => Some(value == "yes"),
        _ => None,
    });
    let ignored = (rds == Some(true)).then_some("IPOIB_LOAD");
    openib_conf::import_with(text, ALWAYS, ignored, &[])
}
