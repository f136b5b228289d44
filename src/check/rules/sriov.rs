//! VFs that cannot be created.

use super::vfs::is_out_of_room;
use super::{Boot, Code, Confidence, Event, Finding, Severity, row, seen};
use crate::check::evidence::event::function;
use crate::check::evidence::state::Setting;
use crate::check::pattern::has_any;

pub(super) fn sriov_not_enabled_fw(boot: &Boot) -> Option<Finding> {
    let is_off = |s: &&Setting| {
        s.name == "SRIOV_EN" && (has_any(&s.value, &["False", "(0)"]) || s.value == "0")
            || s.name == "NUM_OF_VFS" && s.value == "0"
    };
    let settings: Vec<&Setting> = boot.state.settings.iter().filter(is_off).collect();
    let mut devices: Vec<&str> = settings.iter().map(|s| s.device.as_str()).collect();
    devices.dedup();
    devices.retain(|device| !device.is_empty());
    let off: Vec<_> = settings.iter().map(|s| boot.quote_at(s.origin, &s.text)).collect();
    // What was written already waits for a reset, which is another finding.
    let is_of_vfs = |s: &&Setting| matches!(s.name.as_str(), "SRIOV_EN" | "NUM_OF_VFS");
    if off.is_empty() && boot.state.settings.iter().filter(is_of_vfs).any(Setting::is_pending) {
        return None;
    }
    let zero =
        seen::answered(boot, |typed, answer| typed.contains("sriov_totalvfs") && answer == "0");
    let full: Vec<_> = boot.with("_enable_sriov failed").filter(|e| is_out_of_room(e)).collect();
    let range: Vec<_> = boot
        .events
        .iter()
        .filter(|e| e.text.contains("Numerical result out of range") && wants_vfs(boot, &e.text))
        .filter(|e| {
            let is_of_mellanox =
                |at| of_mellanox(boot, &e.text) && seen::may_be_of_fabric(boot, at);
            function(&e.text).is_none_or(is_of_mellanox)
        })
        .chain(boot.with("available vfs (").filter(|e| seen::rdma_module(&e.text).is_some()))
        // The card hides the capability, and the kernel has no file for it.
        .chain(boot.with_any(&["sriov_numvfs", "sriov_totalvfs"]).filter(|e| {
            e.text.contains("No such file")
                && !boot.says("MMIO range=[")
                && of_mellanox(boot, &e.text)
        }))
        .chain(full.iter().copied())
        .chain(
            boot.with("Failed to enable SR-IOV").filter(|e| seen::rdma_module(&e.text).is_some()),
        )
        .collect();
    // Someone must want VFs, or a setting that is off is what the site wants.
    let asked = !range.is_empty()
        || is_missed(boot)
        || boot.events.iter().any(|e| e.text.contains("NUM_OF_VFS") && !e.text.contains("  "));
    if off.is_empty() && zero.is_empty() && range.is_empty() {
        return None;
    }
    let severity = if asked { Severity::Error } else { Severity::Warning };
    let confidence = if off.is_empty() { Confidence::Medium } else { Confidence::High };
    let told = "The adapter's firmware has SR-IOV disabled, or allows fewer VFs than are planned.";
    Some(
        row::told(boot, Code::SriovNotEnabledFw, (severity, confidence), told, &devices, [])
            .quoting(off)
            .quoting(zero)
            .quoting(seen::quotes(boot, range))
            .permanent((!full.is_empty()).then_some(
                "or plan fewer VFs: the adapter may have no interrupt vectors for so many (ENOSPC)",
            )),
    )
}

/// True if somebody wants VFs that are not there: a command says so, or a message.
pub(super) fn is_missed(boot: &Boot) -> bool {
    let commands = &boot.state.commands;
    commands.iter().any(|c| {
        c.text.contains("sriov_totalvfs") && c.answer() == "0"
            || has_any(&c.text, &["sriov_numvfs", "num_vfs"])
    }) || boot.events.iter().any(|e| e.text.contains("sriov_numvfs"))
}

/// True if the card is one whose firmware has such a setting.
fn of_mellanox(boot: &Boot, text: &str) -> bool {
    text.contains("/infiniband/")
        || boot.events.iter().any(|e| has_any(&e.text, &["mlx5_core", "mlx4_core"]))
        || boot.state.pci.iter().any(|f| f.text.contains("Mellanox"))
}

/// True if the error is one of making VFs.
fn wants_vfs(boot: &Boot, text: &str) -> bool {
    has_any(text, &["vfs", "VFs", "sriov", "SR-IOV"])
        || boot.state.commands.iter().any(|c| {
            c.text.contains("num")
                && c.text.contains("vfs")
                && c.output.iter().any(|(_, o)| o.contains("Numerical result out of range"))
        })
}

pub(super) fn sriov_mmio(boot: &Boot) -> Option<Finding> {
    let refused = boot.lines(|e| {
        e.text.contains("not enough MMIO resources for SR-IOV")
            || e.text.contains("SR-IOV") && e.text.contains("bus number out of range")
    });
    let bars: Vec<_> = boot
        .events
        .iter()
        .filter(|e| {
            let t = &e.text;
            let vf = t.contains("VF BAR") || has_any(t, &["BAR 7:", "BAR 9:", "BAR 11:"]);
            vf && has_any(t, &["no space", "failed to assign"])
        })
        // It may get another place a line later.
        .filter(|e| {
            let address = function(&e.text).unwrap_or("?");
            !boot.after(e.origin).any(|l| l.text.contains(address) && l.text.contains(": assigned"))
        })
        .collect();
    // The VFs of a graphics or storage adapter do not concern InfiniBand.
    let concerns_us =
        |e: &&&Event| function(&e.text).is_none_or(|at| seen::may_be_of_fabric(boot, at));
    let ours = refused.iter().find(&concerns_us);
    // Firmware asks for room for the VFs of whatever there is.
    let bar =
        bars.iter().find(|e| function(&e.text).is_some_and(|at| seen::is_of_fabric(boot, at)));
    ours.or(bar)?;
    let lines = refused.iter().chain(&bars).filter(concerns_us);
    let lines: Vec<&Event> = lines.copied().collect();
    let addresses = seen::functions(&lines);
    let (severity, confidence) = match ours {
        Some(_) => (Severity::Error, Confidence::High),
        // Firmware asks for room for VFs that nobody wants.
        None if seen::sign_of_life(boot).is_some() && !boot.says("sriov_numvfs") => {
            (Severity::Info, Confidence::Medium)
        }
        None => (Severity::Warning, Confidence::Medium),
    };
    let of = seen::all_of("adapter", &addresses);
    let told = format!("The address space has no room for the VFs of {of}.");
    let judged = (severity, confidence);
    Some(row::told(boot, Code::SriovMmio, judged, told, &addresses, lines))
}

pub(super) fn sriov_not_exposed_kernel(boot: &Boot) -> Option<Finding> {
    let reserved = boot
        .with_any(&["ECAM", "MMCONFIG"])
        .any(|e| e.text.contains("reserved") && !e.text.contains("not reserved"));
    let refused: Vec<_> = boot
        .with_any(&["ECAM", "MMCONFIG", "mmconfig"])
        .filter(|e| has_any(&e.text, &["not reserved", "not using MMCONFIG", "not using ECAM"]))
        .collect();
    // An ECAM region is 1 MB a bus, 256 MB mostly, below 4 GB.
    let removed: Vec<_> = boot
        .with("MMIO range=[")
        .filter(|e| e.text.contains("emove mem") && e.text.contains("(256MB)"))
        .collect();
    let missing =
        boot.lines(|e| e.text.contains("sriov_numvfs") && e.text.contains("No such file"));
    let about_vfs = boot.says("VF(n) BAR")
        || !missing.is_empty()
        || boot.state.commands.iter().any(|c| c.text.contains("sriov"));
    if reserved || !about_vfs || refused.is_empty() && removed.is_empty() {
        return None;
    }
    // A capability that is shown is seen, unless it is another boot's line.
    let seen_too = boot.says("VF(n) BAR");
    let (severity, confidence) = match (missing.is_empty(), seen_too) {
        (false, _) => (Severity::Error, Confidence::Medium),
        (true, false) => (Severity::Error, Confidence::Low),
        (true, true) => (Severity::Warning, Confidence::Low),
    };
    let told = "The kernel has removed the region of extended PCI configuration space (ECAM), so that it sees no SR-IOV capability.";
    let lines = removed.into_iter().chain(refused).chain(missing);
    let judged = (severity, confidence);
    Some(row::told(boot, Code::SriovNotExposedKernel, judged, told, &[], lines))
}

pub(super) fn sriov_vf_unreachable(boot: &Boot) -> Option<Finding> {
    let lines = row::lines(boot, Code::SriovVfUnreachable);
    let lspci: Vec<_> = boot
        .state
        .pci
        .iter()
        .filter(|f| f.text.contains("Virtual Function") || f.is_infiniband())
        .filter(|f| f.details.iter().any(|d| d.contains("Unknown header type 7f")))
        .map(|f| boot.quote_at(f.origin, &f.text))
        .collect();
    if lines.is_empty() && lspci.is_empty() {
        return None;
    }
    let addresses = seen::functions(&lines);
    let does = if addresses.len() > 1 { "do" } else { "does" };
    let of = seen::all_of("VF", &addresses);
    let told = format!("{of} {does} not answer in configuration space (header type 7f).");
    let judged = (Severity::Error, Confidence::High);
    let code = Code::SriovVfUnreachable;
    Some(row::told(boot, code, judged, told, &addresses, lines).quoting(lspci))
}
