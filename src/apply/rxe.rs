//! Creating a soft RoCE device by RDMA netlink, as `rdma link add` does.

use std::io;

use anyhow::bail;
use nix::errno::Errno;

use crate::config::RxeRow;
use crate::host::{Root, answer, rdma_netlink};
use crate::model::{RxeReport, RxeState};
use crate::names::{IfName, RdmaName};
use crate::observe::rxe;
use crate::plan::rxe::judge_rxe;

/// Create the soft RoCE device `name` on `netdev`, unless it is there. May wait for a driver.
///
/// # Errors
/// The kernel refuses, the netdev or the name cannot be used, or the device is not there
/// afterwards.
pub fn create(root: &Root, name: &RdmaName, netdev: &IfName) -> anyhow::Result<()> {
    let row = RxeRow { name: name.clone(), netdev: netdev.clone(), origin: String::new() };
    let judged = || -> Option<RxeReport> {
        let rows = std::slice::from_ref(&row);
        judge_rxe(rows, &rxe(root, rows)).into_iter().next()
    };
    let Some(before) = judged() else { return Ok(()) };
    match before.state {
        RxeState::Present => return Ok(()),
        RxeState::Absent | RxeState::NotNamed => {}
        _ => bail!("{}", before.message()),
    }
    if is_in_own_namespace(root) {
        bail!(
            "this process is in a network namespace of its own, but soft RoCE receives only in the initial one: run ibprov in the initial network namespace"
        );
    }
    if let Err(e) = rdma_netlink::add_link(name, "rxe", netdev) {
        // Another run may have been quicker.
        if judged().is_some_and(|now| now.state == RxeState::Present) {
            return Ok(());
        }
        bail!("RDMA netlink (NEWLINK, type rxe): {}: {}", answer(&e), meaning(root, netdev, &e));
    }
    match judged() {
        // Renamed by udev meanwhile: a rule names it again.
        Some(RxeReport { state: RxeState::NetdevTaken { .. }, .. }) => Ok(()),
        Some(after) if after.state != RxeState::Present => {
            bail!(
                "the kernel reported success, but the device cannot be read back: {}",
                after.message()
            )
        }
        _ => Ok(()),
    }
}

/// Give the soft RoCE device of `netdev` the name `name` again, which rdma-core's rule has
/// changed.
///
/// # Errors
/// Another RDMA device has the name, or the kernel refuses.
pub fn keep_name(root: &Root, name: &RdmaName, netdev: &IfName) -> anyhow::Result<()> {
    let devices = rxe(root, &[]).devices;
    let Some(device) = devices.iter().find(|device| device.rxe_on.as_ref() == Some(netdev)) else {
        return Ok(());
    };
    if device.name == *name {
        return Ok(());
    }
    rdma_netlink::rename(device.name.as_str(), name).map_err(|e| {
        let answer = answer(&e);
        anyhow::anyhow!("cannot rename the soft RoCE device {} to {name}: {answer}", device.name)
    })
}

/// True if that is known. The UDP socket of soft RoCE, and its routes, are those of the
/// initial network namespace (`rxe_net_init()`, `rxe_find_route4()` in
/// drivers/infiniband/sw/rxe/rxe_net.c; kernels of 2026 have one for each), so the kernel may
/// create a device here over which nothing is received.
fn is_in_own_namespace(root: &Root) -> bool {
    let of = |process: &str| root.link_name(&format!("/proc/{process}/ns/net")).ok();
    matches!((of("self"), of("1")), (Some(own), Some(first)) if own != first)
}

/// What the answer of the kernel means, and what to do (`nldev_newlink()` in
/// drivers/infiniband/core/nldev.c, `rxe_newlink()` in drivers/infiniband/sw/rxe/rxe.c).
fn meaning(root: &Root, netdev: &IfName, e: &io::Error) -> String {
    let is_loaded = root.exists("/sys/module/rdma_rxe");
    match e.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM) if root.exists(&format!("/proc/net/vlan/{netdev}")) => format!(
            "{netdev} is a VLAN: name its parent in [[rxe]]; the VLAN's addresses have GIDs there too"
        ),
        Some(Errno::EINVAL | Errno::EOPNOTSUPP | Errno::EPROTONOSUPPORT) if is_loaded => {
            "rdma_rxe is loaded but does not provide soft RoCE: this is the dummy module of MLNX_OFED or DOCA (modinfo rdma_rxe); soft RoCE needs the kernel's own module".to_owned()
        }
        Some(Errno::EINVAL | Errno::EOPNOTSUPP | Errno::EPROTONOSUPPORT) => {
            "the kernel does not support soft RoCE: rdma_rxe is not loaded, or not built for this kernel (modprobe rdma_rxe)".to_owned()
        }
        Some(Errno::EEXIST) => {
            format!("{netdev} has a soft RoCE device of another name: see rdma link")
        }
        Some(Errno::ENFILE) => "another RDMA device has this name: see rdma link".to_owned(),
        Some(Errno::ENODEV) => format!("{netdev} has disappeared"),
        _ => format!("the kernel refuses {netdev}: see dmesg"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_with_its_meaning() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let netdev: IfName = "eth1.7".parse().expect("name");
        let of = |errno: Errno| {
            meaning(&Root::copy_at(dir.path()).expect("root"), &netdev, &io::Error::from(errno))
        };
        assert!(of(Errno::EINVAL).contains("not built for this kernel"));
        assert!(of(Errno::EPERM).contains("the kernel refuses eth1.7"));
        for path in ["sys/module/rdma_rxe", "proc/net/vlan/eth1.7"] {
            std::fs::create_dir_all(dir.path().join(path)).expect("directory");
        }
        for errno in [Errno::EINVAL, Errno::EOPNOTSUPP] {
            assert!(of(errno).contains("dummy module of MLNX_OFED"), "{errno}");
        }
        assert!(of(Errno::EPERM).contains("is a VLAN: name its parent"));
    }
}
