use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::SriovNotExposedKernel,
    meaning: "the kernel does not see the adapter's SR-IOV capability",
    page: "\
SR-IOV is an extended capability of PCI Express, beyond the first 256 bytes of
configuration space, which are accessible only by ECAM (MMCONFIG). If the kernel does not
trust the firmware's ECAM region, it does not use ECAM, and no adapter has SR-IOV:
sriov_numvfs and sriov_totalvfs do not exist. Kernels 5.19 to 6.1 did that on
machines whose EFI marks the region as memory-mapped I/O only.

Symptoms: no sriov_numvfs; no \"VF(n) BAR0 space\" line; \"efi: Remove mem...: MMIO
range=... from e820 map\" of 256 MB where ECAM lies, without \"ECAM ... reserved\".
On kernels that reserve ECAM otherwise that line is harmless.

Remedy: use another kernel (fixed in 6.2). As root, lspci must show \"Single Root I/O
Virtualization\":

    lspci -vvv -s ADDRESS",
    needles: &[&[
        "MMIO range=[",
        "VF(n) BAR",
        "ECAM",
        "MMCONFIG",
        "sriov_numvfs",
        "pci_mmcfg",
        "mmconfig",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let reserved = boot
        .with_any(&["ECAM", "MMCONFIG"])
        .any(|e| e.text.contains("reserved") && !e.text.contains("not reserved"));
    let refused: Vec<_> = boot
        .with_any(&["ECAM", "MMCONFIG", "mmconfig"])
        .filter(|e| {
            e.text.contains("not reserved")
                || e.text.contains("not using MMCONFIG")
                || e.text.contains("not using ECAM")
        })
        .collect();
    // An ECAM region is 1 MB a bus, 256 MB mostly, below 4 GB.
    let removed: Vec<_> = boot
        .with("MMIO range=[")
        .filter(|e| e.text.contains("emove mem") && e.text.contains("(256MB)"))
        .collect();
    let missing: Vec<_> = boot
        .events
        .iter()
        .filter(|e| e.text.contains("sriov_numvfs") && e.text.contains("No such file"))
        .collect();
    let about_vfs = boot.says("VF(n) BAR")
        || !missing.is_empty()
        || boot.state.commands.iter().any(|c| c.text.contains("sriov"));
    if reserved || !about_vfs || refused.is_empty() && removed.is_empty() {
        return Vec::new();
    }
    // A capability that is shown is seen, unless it is another boot's line.
    let seen_too = boot.says("VF(n) BAR");
    let (severity, confidence) = match (missing.is_empty(), seen_too) {
        (false, _) => (Severity::Error, Confidence::Medium),
        (true, false) => (Severity::Error, Confidence::Low),
        (true, true) => (Severity::Warning, Confidence::Low),
    };
    vec![
        Finding::new(
            RULE.code,
            severity,
            confidence,
            "The kernel has removed the region of extended PCI configuration space (ECAM), so that it sees no SR-IOV capability.",
        )
        .quoting(seen::quotes(boot, removed.into_iter().chain(refused).chain(missing)))
        .look(["check, as root, that lspci -vvv has a line \"Single Root I/O Virtualization\""]).permanent(["boot a kernel before 5.19 or from 6.2 on"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_region_that_is_reserved_otherwise_is_harmless() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 0.0] efi: Remove mem94: MMIO range=[0x80000000-0x8fffffff] (256MB) from e820 map",
                    "bash: /sys/bus/pci/devices/0000:ca:00.0/sriov_numvfs: No such file or directory",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 0.0] efi: Remove mem94: MMIO range=[0x80000000-0x8fffffff] (256MB) from e820 map",
                    "[ 0.5] PCI: MMCONFIG at [mem 0x80000000-0x8fffffff] reserved in ACPI motherboard resources",
                    "bash: /sys/bus/pci/devices/0000:ca:00.0/sriov_numvfs: No such file or directory",
                ]
            ),
            None
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 0.0] efi: Remove mem94: MMIO range=[0x80000000-0x8fffffff] (256MB) from e820 map",
                ]
            ),
            None
        );
    }
}
