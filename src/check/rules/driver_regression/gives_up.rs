//! Drivers that leave a card without a crash.

use super::super::{Boot, Event, Kind, seen, vf_probe_failed};
use crate::names::HCA_DRIVERS;

/// Lines by which a driver gives up.
pub(super) const GIVES_UP: &[&str] = &[
    "ipoib_intf_alloc failed",
    "register ipoib port",
    "Couldn't register device with driver model",
    "Failed to register driver with ib core",
    "cannot register verbs",
    "Failed to alloc IRQs",
    "Failed to create EQs",
    "mlx5_load_one failed",
    "mlx5_init_one failed",
    "handle_hca_cap failed",
    "enable msix failed",
    "Couldn't create special QP",
    "create_pv_resources: Couldn't create",
    "Could not allocate unit ID",
    "mlx5_device_enable_sriov failed",
    "failed to enable eswitch SRIOV",
    "health recovery flow aborted",
    "health recovery failed",
    "Couldn't start port",
    "FW STALL Detected",
    "Couldn't create ib_mad CQ",
    "Couldn't open port",
    "Couldn't create per-port data",
    "Couldn't query the device attributes",
    "Couldn't set up InfiniBand P_Key/GID cache",
    "NOP command failed to generate interrupt",
    ", aborting",
];
/// Drivers of Ethernet cards: without their RDMA half the network is there.
pub(super) const ROCE: [&str; 5] = ["bnxt_re", "irdma", "qedr", "hns_", "roce"];

/// True of an error of bnxt_re, which writes through the PCI device of bnxt_en:
/// `bnxt_en 0000:61:00.0 bnxt_re0: Failed to create HW CQ`.
pub(super) fn is_of_bnxt_re(text: &str) -> bool {
    text.starts_with("bnxt_en ")
        && (text.contains(" bnxt_re") && text.contains(": Failed to ")
            || text.contains(": QPLIB: cmdq[") && text.contains(" status "))
}

/// The driver of an HCA leaves its probe. mlx4 and mthca say it of a card that they
/// go on with, too, where something later says so.
fn aborts(boot: &Boot, event: &Event) -> bool {
    let text = event.text.trim_end().trim_end_matches('.');
    let address = super::super::super::evidence::event::function(text);
    let lives = |a: &str| {
        boot.events.iter().any(|e| {
            e.origin > event.origin && e.text.contains(a) && e.text.contains("renamed from")
        })
    };
    text.ends_with(", aborting")
        && HCA_DRIVERS.iter().any(|d| text.starts_with(d))
        && !address.is_some_and(lives)
}

/// A line of [`GIVES_UP`] or [`STOPPED`] that means it.
fn is_final(boot: &Boot, e: &Event) -> bool {
    match () {
        // The firmware has done the command; its interrupt did not come.
        () if e.text.contains("NOP command failed to generate interrupt") => {
            !boot.events.iter().any(|l| l.origin > e.origin && l.text.contains("rying again with"))
        }
        () if e.text.contains(", aborting") => aborts(boot, e),
        // For agents: SELinux, and not the driver.
        () if e.text.contains("Couldn't open port") => {
            e.text.starts_with("infiniband ") && !e.text.contains("for agents")
        }
        // There are no VFs then, and the driver works.
        () if e.text.contains("_enable_sriov failed") => !vf_probe_failed::is_out_of_room(e),
        () if is_of_bnxt_re(&e.text) => true,
        () => seen::has(e, GIVES_UP) || seen::has(e, STOPPED) && e.text.contains("mlx4_core"),
    }
}
/// ... by which mlx4 tells that the firmware of its card has stopped.
pub(super) const STOPPED: &[&str] =
    &["Internal error detected", "Internal error mark was detected"];

/// Probes of HCAs that failed for good, and drivers that gave up.
pub(super) fn given_up(boot: &Boot) -> Vec<&Event> {
    /// -EPROBE_DEFER: it will be tried again.
    const LATER: i32 = -517;
    boot.events
        .iter()
        .filter(|e| match &e.kind {
            Kind::ProbeFailed { driver, device, errno } => {
                let base = driver.split('.').next().unwrap_or(driver);
                *errno != LATER && HCA_DRIVERS.contains(&base) && !seen::is_vf(boot, device)
            }
            _ => is_final(boot, e),
        })
        .collect()
}
