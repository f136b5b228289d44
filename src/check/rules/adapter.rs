//! The adapter on its bus, and the loading of its driver.

use super::words::driver_unload_under_remote_root::{LOCAL, REMOTE, UNLOADED};
use super::words::udev_timeout::KILLED;
use super::{Boot, Code, Confidence, Event, Finding, Severity, row, seen};
use crate::check::evidence::event::function;
use crate::check::pattern::has_any;

pub(super) fn pcie_link_reduced(boot: &Boot) -> Option<Finding> {
    let said =
        |word: &'static str| boot.with(word).filter(|e| seen::rdma_module(&e.text).is_some());
    let width: Vec<_> = said("PCIe width is lower").collect();
    let slow: Vec<_> =
        said("PCIe speed is slower").chain(said("available PCIe bandwidth, limited by")).collect();
    // `LnkSta: Speed 8GT/s (ok), Width x8 (downgraded)` below a function of the stack.
    let narrow = |text: &String| {
        text.contains("LnkSta:")
            && text.contains("Width")
            && text.split("Width").nth(1).is_some_and(|w| w.contains("(downgraded)"))
    };
    let shown: Vec<_> = boot
        .state
        .pci
        .iter()
        .filter(|f| has_any(&f.text, &["nfiniband", "nfiniBand", "Mellanox", "ConnectX"]))
        .filter_map(|f| Some((f, f.details.iter().find(|text| narrow(text))?)))
        .collect();
    let (severity, what) = match (width.is_empty() && shown.is_empty(), slow.first()) {
        (false, _) => (Severity::Warning, "narrower than the adapter can use"),
        (true, Some(_)) => (Severity::Info, "slower than the adapter can use"),
        (true, None) => return None,
    };
    let of_lines = width.iter().chain(&slow).filter_map(|e| function(&e.text));
    let addresses =
        seen::each(of_lines.chain(shown.iter().map(|(function, _)| function.address.as_str())));
    let of = match &addresses[..] {
        [] => String::new(),
        addresses => format!(" of {}", seen::all_of("adapter", addresses)),
    };
    let lines = width.into_iter().chain(slow);
    let shown = shown
        .iter()
        .map(|(f, text)| boot.quote_at(f.origin, &format!("{} {}", f.text, text.trim())));
    let told = format!("The PCIe link{of} is {what}.");
    let judged = (severity, Confidence::High);
    Some(row::told(boot, Code::PcieLinkReduced, judged, told, &addresses, lines).quoting(shown))
}

pub(super) fn udev_timeout(boot: &Boot) -> Option<Finding> {
    let udev =
        |e: &&Event| e.program.contains("udev") || e.text.contains("udev") || e.program.is_empty();
    let killed: Vec<_> = boot
        .events
        .iter()
        .filter(udev)
        .filter(|e| {
            let t = &e.text;
            t.contains("processing SEQNUM=") && t.trim_end().ends_with("killed")
                || has_any(t, KILLED)
                || t.contains("failed while handling") && t.contains("timeout")
        })
        .collect();
    let settle = boot.lines(|e| {
        let t = &e.text;
        has_any(t, &["imed out", "timeout of"]) && t.contains("udev") && t.contains("queue")
            || t.contains("systemd-udev-settle.service")
                && has_any(t, &["Failed with result", "status=1", "timed out"])
            || t.contains("Failed to start")
                && t.contains("udev Wait for Complete Device Initialization")
    });
    let slow: Vec<_> = boot.with("is taking a long time").collect();
    let first = killed.first().or(settle.first()).or(slow.first())?;
    // Whose event it was: a card of ours is named by its address or its module.
    let ours = |e: &&&Event| {
        seen::rdma_module(&e.text).is_some()
            || function(&e.text).is_some_and(|a| {
                boot.events
                    .iter()
                    .any(|o| seen::rdma_module(&o.text).is_some() && o.text.contains(a))
            })
            || seen::ib_netdev_in(&e.text).is_some()
    };
    let concerns = killed.iter().chain(&settle).chain(&slow).any(|e| ours(&e));
    // One that a line names, and nothing shows to be of the fabric.
    let of_another = |e: &&Event| {
        let name = e.text.split_once(": ").map(|(name, _)| name);
        let is_name = |name: &str| !name.contains(' ') && e.text.contains(": Worker [");
        !ours(&e) && (function(&e.text).is_some() || name.is_some_and(is_name))
    };
    let rdma_here = boot.events.iter().any(|e| seen::rdma_module(&e.text).is_some());
    let (severity, confidence) = match (killed.is_empty() && settle.is_empty(), concerns, rdma_here)
    {
        _ if killed.iter().chain(&settle).chain(&slow).all(of_another) => {
            (Severity::Info, Confidence::Medium)
        }
        (false, true, _) => (Severity::Error, Confidence::High),
        (false, false, true) if seen::sign_of_life(boot).is_none() => {
            (Severity::Error, Confidence::Medium)
        }
        // Some other device's: said, and no more.
        (false, false, _) => (Severity::Warning, Confidence::Medium),
        (true, ..) => (Severity::Warning, Confidence::Low),
    };
    let all = || killed.iter().chain(&settle).chain(&slow);
    let addresses = seen::functions(all());
    // Nothing is done to a device that nothing shows to be of the fabric.
    let probe = concerns.then(|| {
        seen::for_each(
            "probe the adapter again: echo {} > /sys/bus/pci/drivers_probe, or modprobe DRIVER",
            &seen::functions(all().filter(ours)),
            "ADDRESS",
        )
    });
    let told = format!("systemd-udevd reached its time limit for a device: {}", first.text.trim());
    let lines = slow.iter().chain(&killed).chain(&settle).copied();
    let judged = (severity, confidence);
    let finding = row::told(boot, Code::UdevTimeout, judged, told, &addresses, lines);
    Some(finding.now(probe.into_iter().flatten()))
}

pub(super) fn driver_unload_under_remote_root(boot: &Boot) -> Option<Finding> {
    let errors: Vec<_> = boot
        .with("I/O error, dev")
        .filter(|e| has_any(&e.text, &["dev sd", "dev dm-", "dev nvme"]))
        .collect();
    let root_hangs: Vec<_> = boot
        .with("blocked for more than")
        .filter(|e| {
            has_any(&e.text, &["jbd2/", "systemd-journal", "xfsaild", "xfs-", "systemd:1 "])
        })
        .collect();
    let local = boot.with_any(LOCAL).next().is_some();
    let remote: Vec<_> = boot.with_any(REMOTE).collect();
    let unloaded: Vec<_> = boot
        .with_any(UNLOADED)
        .filter(|e| e.text.contains("HCA") || seen::rdma_module(&e.text).is_some())
        .collect();
    // With the session gone the disk is taken offline and its file system read-only.
    let offline: Vec<_> = boot
        .with("rejecting I/O to offline device")
        .chain(
            boot.with("EXT4-fs (").filter(|e| e.text.contains("Remounting filesystem read-only")),
        )
        .filter(|_| !remote.is_empty())
        .collect();
    let errors: Vec<_> = errors.into_iter().chain(offline.iter().copied()).collect();
    let hangs = !root_hangs.is_empty() || offline.len() > 1;
    if errors.is_empty() || !hangs || local {
        return None;
    }
    // Without a word of either it may be any disk.
    let (severity, confidence) = match (remote.is_empty(), unloaded.is_empty()) {
        (false, _) | (_, false) => (Severity::Error, Confidence::High),
        (true, true) => (Severity::Warning, Confidence::Low),
    };
    let told = "The root disk disappeared without an error of a disk controller, and the system hangs, which happens when the driver that carries a remote root is unloaded.";
    let lines = unloaded.into_iter().chain(remote).chain(errors);
    let judged = (severity, confidence);
    let code = Code::DriverUnloadUnderRemoteRoot;
    let hangs = seen::quotes(boot, root_hangs);
    Some(row::told(boot, code, judged, told, &[], lines).quoting(hangs))
}
