//! VFs for virtual machines.

use super::words::iommu_off::GENERAL;
use super::words::vm_before_vf::NOT_FOUND;
use super::{Boot, Code, Confidence, Event, Finding, Kind, Severity, row, seen};
use crate::check::evidence::event::function;
use crate::check::pattern::{caught_one, has_any};

/// A guest was refused for want of a device.
fn refused(event: &Event) -> bool {
    let t = &event.text;
    let pci = has_any(t, &["/sys/bus/pci/devices/", "PCI device", "Device 0000:", "pci_0000_"]);
    pci && (has_any(t, NOT_FOUND) || t.contains("does not exist"))
        // ENODEV: vfio-pci does not have it. Other answers are not of being early.
        || t.contains("vfio")
            && t.contains("error getting device from group")
            && t.contains("No such device")
        || t.contains("no such host device")
        || t.contains("Cannot find VF")
}

/// libvirt gives a VF a MAC address or VLAN through its PF's netdev, which must be up
/// for that (`virNetDevReadNetConfig()`).
fn offline(boot: &Boot) -> Option<Finding> {
    let lines: Vec<_> = boot.with("because the PF is not online").collect();
    let pf = caught_one(&lines.first()?.text, "of PF '{}'").unwrap_or("its PF").to_owned();
    let told = format!("A guest was started before {pf}, the netdev of the PF of its VF, was up.");
    Some(
        Finding::of(Code::VmBeforeVf, Severity::Error, Confidence::High, told)
            .about(&pf)
            .quoting(seen::quotes(boot, lines))
            .now([format!("ip link set {pf} up; virsh start GUEST")])
            .permanent([format!("configure {pf} to be up at boot, if necessary without an address, and order libvirtd after it")]),
    )
}

pub(super) fn vm_before_vf(boot: &Boot) -> Option<Finding> {
    let lines = boot.lines(refused);
    let Some(first) = lines.first() else { return offline(boot) };
    let addresses = seen::functions(&lines);
    let later = boot
        .after(first.origin)
        .find(|e| e.from_kernel() && addresses.iter().any(|a| e.text.contains(a)));
    let told = match &addresses[..] {
        [] => "A guest was started before its VF was present.".to_owned(),
        [one] => format!("A guest was started before {one} was present."),
        several => {
            format!("Guests were started before {} were present.", seen::all_of("VF", several))
        }
    };
    let confidence = if later.is_some() { Confidence::High } else { Confidence::Medium };
    let judged = (Severity::Error, confidence);
    let finding = row::told(boot, Code::VmBeforeVf, judged, told, &addresses, lines);
    Some(finding.quoting(seen::quotes(boot, later)))
}

pub(super) fn autostart_guest_on_vf(boot: &Boot) -> Option<Finding> {
    let lines =
        seen::found(boot.events.iter().filter(|e| e.text.contains("utostart") && refused(e)))?;
    let told = "libvirt started a guest by autostart before its VF was present.";
    let judged = (Severity::Warning, Confidence::High);
    Some(row::told(boot, Code::AutostartGuestOnVf, judged, told, &[], lines))
}

pub(super) fn iommu_off(boot: &Boot) -> Option<Finding> {
    let lines = boot.lines(|e| {
            let is_probe = matches!(&e.kind, Kind::ProbeFailed { driver, errno: -22, .. } if &**driver == "vfio-pci");
            is_probe || row::is_line(Code::IommuOff, e)
        });
    // That the board has none matters where a device is to be given away.
    let general = |e: &&Event| has_any(&e.text, GENERAL);
    let wanted = boot.events.iter().any(|e| {
        has_any(&e.text, &["vfio", "VFIO", "passthrough", "libvirt", "QEMU", "iommu_group"])
    });
    let severity =
        if lines.iter().all(general) && !wanted { Severity::Warning } else { Severity::Error };
    let first = lines.first()?;
    let is_sure = lines.len() > 1 || !first.text.contains("probe of");
    let confidence = if is_sure { Confidence::High } else { Confidence::Medium };
    let address = lines.iter().find_map(|e| function(&e.text)).unwrap_or("the device");
    let told = format!("{address} is in no IOMMU group, so that it cannot be assigned to a guest.");
    Some(row::told(boot, Code::IommuOff, (severity, confidence), told, &[], lines))
}
