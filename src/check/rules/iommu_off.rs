use super::super::evidence::event::function;
use super::{Boot, Code, Confidence, Finding, Judge, Kind, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::IommuOff,
    meaning: "there is no IOMMU, or the device is in no IOMMU group",
    page: "\
A VF can be assigned to a guest only if an IOMMU isolates it: vfio-pci refuses a
device without IOMMU group (-22), and libvirt and qemu refuse the guest.

Symptoms: \"vfio-pci: probe of ... failed with error -22\", \"iommu_group is not a
symlink\", \"host doesn't support passthrough\", \"no iommu_group\", \"No interrupt
remapping support\", Proxmox's \"cannot prepare PCI pass-through, IOMMU not present\".

Remedy: enable VT-d or AMD-Vi in the firmware setup, and add to the kernel command line
intel_iommu=on (not needed for AMD) and iommu=pt. Some boards have no IOMMU in front
of their PCI controller.",
    needles: &[
        SAID,
        &[
            "vfio-pci",
            "iommu_group",
            "IOMMU group",
            "doesn't support passthrough",
            "No IOMMU",
            "no iommu",
            "IOMMU not present",
            "IOMMU is not",
            "available IOMMU",
            "interrupt remapping",
            "vfio: error",
            "iommu is not",
            "IOMMU was not",
            "IOMMU support",
            "VFIO_GROUP_GET_STATUS",
        ],
    ],
    judge: Judge::Boot(judge),
};

const SAID: &[&str] = &[
    "No ACPI DMAR table found",
    "IOMMU appears to be disabled",
    "IOMMU either disabled",
    "iommu_group is not a symlink",
    "doesn't support passthrough of host PCI devices",
    "does not support passthrough",
    "no iommu_group found",
    "No available IOMMU models",
    "no iommu_group",
    "IOMMU not found",
    "No IOMMU found",
    "IOMMU was not enabled",
    "No interrupt remapping support",
    "No IOMMU detected",
    "no IOMMU",
    "is not in an IOMMU group",
];

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot
        .events
        .iter()
        .filter(|e| {
            // Proxmox VE. Other drivers say it of themselves.
            let pve = e.text.contains("IOMMU not present") && e.text.contains("pass-through");
            let probe = matches!(&e.kind, Kind::ProbeFailed { driver, errno: -22, .. } if &**driver == "vfio-pci");
            probe || pve || SAID.iter().any(|w| e.text.contains(w))
        })
        // Allowed on purpose.
        .filter(|e| !e.text.contains("enabling unsafe"))
        .collect();
    // That the board has none matters where a device is to be given away.
    let general = |e: &&super::Event| {
        ["DMAR table", "disabled", "no IOMMU", "No IOMMU", "not found", "not enabled"]
            .iter()
            .any(|w| e.text.contains(w))
    };
    let wanted = boot.events.iter().any(|e| {
        ["vfio", "VFIO", "passthrough", "libvirt", "QEMU", "iommu_group"]
            .iter()
            .any(|w| e.text.contains(w))
    });
    let severity =
        if lines.iter().all(general) && !wanted { Severity::Warning } else { Severity::Error };
    let Some(first) = lines.first() else { return Vec::new() };
    let address = lines.iter().find_map(|e| function(&e.text)).unwrap_or("the device");
    vec![
        Finding::new(
            RULE.code,
            severity,
            if lines.len() > 1 || !first.text.contains("probe of") {
                Confidence::High
            } else {
                Confidence::Medium
            },
            format!("{address} is in no IOMMU group, so that it cannot be assigned to a guest."),
        )
        .quoting(seen::quotes(boot, lines))
        .look(["dmesg | grep -e DMAR -e IOMMU -e AMD-Vi; ls /sys/kernel/iommu_groups"])
        .permanent([
            "enable VT-d or AMD-Vi, and SR-IOV, in the firmware setup, and add to the kernel command line: intel_iommu=on iommu=pt",
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn vfio_and_libvirt_say_so() {
        assert_eq!(
            severity(&RULE, &["[ 37.1] vfio-pci: probe of 0000:01:00.0 failed with error -22",]),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "libvirtd[1]: unsupported configuration: host doesn't support passthrough of host PCI devices",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["[ 37.1] vfio-pci 0000:01:00.0: enabling device (0000 -> 0002)",]),
            None
        );
    }

    #[test]
    fn a_line_of_the_kernel_alone_is_looked_at() {
        let said = "[    2.0] kvm: device has no IOMMU";
        assert_eq!(severity(&RULE, &[said]), Some(Severity::Warning));
    }

    #[test]
    fn proxmox_says_it_of_a_guest_and_a_driver_of_itself() {
        let pve = "pvedaemon[7]: cannot prepare PCI pass-through, IOMMU not present";
        assert_eq!(severity(&RULE, &[pve]), Some(Severity::Error));
        let driver = "[ 1.0] omap-rproc 58820000.ipu: iommu not present";
        assert_eq!(severity(&RULE, &[driver]), None);
    }
}
