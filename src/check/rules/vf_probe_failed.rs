use super::super::evidence::event::function;
use super::{Boot, Code, Confidence, Event, Finding, Judge, Kind, Rule, Severity, seen};
use crate::names::{HCA_DRIVERS, PciAddress};

pub(super) const RULE: Rule = Rule {
    code: Code::VfProbeFailed,
    meaning: "the VF exists, and its driver's probe fails",
    page: "\
The PF created the VF, and the VF's driver could not initialize it: a firmware command
was refused (CREATE_TIS, CREATE_EQ ...), interrupts do not arrive (interrupt remapping
faults of the IOMMU), the PF's driver does not answer the VF's (mlx4). Writing
sriov_numvfs nevertheless succeeds, so that each VF has to be checked.

Symptoms: \"probe of 0000:6f:08.2 failed with error -22\" for a VF's address. Error -28
(ENOSPC) means that no interrupt vectors are left: plan fewer VFs, or give each of them
fewer vectors (sriov_vf_msix_count).

Remedy: read the kernel's messages about that address before this one. If the driver
has a bug, use another kernel; if the firmware refuses, update it. Then probe again:

    echo ADDRESS >/sys/bus/pci/drivers_probe",
    needles: &[
        &[
            "E-Switch: Enable",
            "Enabling SR-IOV with",
            "running in slave mode",
            "Assigned random MAC address",
            "INTR-REMAP",
            "recovered after timeout",
            "failed with error",
            "Blocked a compatibility format interrupt",
            "mlx5_cmd_out_err",
            "mlx5_cmd_check",
            ", aborting",
        ],
        SLAVE,
    ],
    judge: Judge::Boot(judge),
};

const SLAVE: &[&str] = &[
    "Failed to initialize slave",
    "PF is not responsive",
    "slave driver version is not supported",
    "Communication channel is offline",
];

fn judge(boot: &Boot) -> Vec<Finding> {
    let probes: Vec<_> = boot
        .events
        .iter()
        .filter_map(|e| match &e.kind {
            Kind::ProbeFailed { driver, device, errno } if *errno != -517 => {
                let base = driver.split('.').next().unwrap_or(driver);
                (HCA_DRIVERS.contains(&base)).then_some((e, device.to_string()))
            }
            _ => None,
        })
        .filter_map(|(e, device)| {
            // An auxiliary device (`mlx5_core.eth.2`) is named by no address: the
            // line above it is.
            if device.parse::<PciAddress>().is_ok() {
                return seen::is_vf(boot, &device).then_some((e, device));
            }
            let above = boot.events.iter().rev().find(|a| {
                a.origin < e.origin && a.text.contains("failed") && function(&a.text).is_some()
            })?;
            let address = function(&above.text)?.to_owned();
            seen::is_vf(boot, &address).then_some((e, address))
        })
        .collect();
    let aborted = boot.with(", aborting").filter(|e| {
        e.text.trim_end().trim_end_matches('.').ends_with(", aborting")
            && HCA_DRIVERS.iter().any(|d| e.text.starts_with(d))
            && function(&e.text).is_some_and(|address| seen::is_vf(boot, address))
    });
    let slave: Vec<_> = boot.with_any(SLAVE).chain(aborted).collect();
    // The IOMMU refuses a VF's interrupts: its commands never complete.
    let blocked: Vec<_> = boot
        .with("Blocked a compatibility format interrupt")
        .filter_map(|e| {
            let short = e
                .text
                .split(['[', ']'])
                .find(|w| w.len() == 7 && w.contains(':') && w.contains('.'))?;
            let victim = boot.events.iter().find(|v| {
                v.text.contains(&format!(":{short}:")) && seen::rdma_module(&v.text).is_some()
            })?;
            let address = function(&victim.text)?;
            seen::is_vf(boot, address).then_some((e, victim, address.to_owned()))
        })
        .collect();
    let of_probes = probes.iter().map(|(_, address)| address.as_str());
    let of_blocked = blocked.iter().map(|(_, _, address)| address.as_str());
    let of_slaves = slave.iter().filter_map(|e| function(&e.text));
    let addresses = seen::each(of_probes.chain(of_blocked).chain(of_slaves));
    let is_full = probes.iter().any(|(e, _)| is_out_of_room(e));
    let why = match (probes.first(), blocked.first(), slave.first()) {
        _ if is_full => "no interrupt vectors are left for it (ENOSPC)",
        (Some((e, _)), _, _) | (None, None, Some(e)) => e.text.trim(),
        (None, Some(_), _) => {
            "the IOMMU blocks the VF's interrupts, so that no command of the driver completes"
        }
        (None, None, None) => return Vec::new(),
    };
    let first = probes.iter().map(|(e, _)| e.origin).min();
    let above = boot.events.iter().filter(|l| {
        Some(l.origin) < first
            && l.text.contains("failed")
            && probes.iter().any(|(_, address)| l.text.contains(address.as_str()))
    });
    let lines = above
        .chain(probes.iter().map(|(e, _)| *e))
        .chain(blocked.iter().flat_map(|(fault, victim, _)| [*fault, *victim]))
        .chain(slave.iter().copied());
    let of = match &addresses[..] {
        [] => "a VF".to_owned(),
        [one] => format!("VF {one}"),
        several => seen::all_of("VF", several),
    };
    let grep: Vec<String> = addresses.iter().map(|address| format!("-e {address}")).collect();
    let finding = Finding::new(
        RULE.code,
        Severity::Error,
        Confidence::High,
        format!("The driver could not initialize {of}: {why}"),
    )
    .about_if(seen::joined(&addresses))
    .quoting(seen::quotes(boot, lines))
    .look([format!(
        "find the first line that failed, which names the reason: dmesg | grep {}",
        grep.join(" ")
    )])
    .now(seen::for_each(
        "after the cause is corrected: echo {} > /sys/bus/pci/drivers_probe",
        &addresses,
        "ADDRESS",
    ));
    vec![match is_full {
        true => finding.permanent(["plan fewer VFs, or give each fewer vectors before it is bound: echo N > /sys/bus/pci/devices/VF/sriov_vf_msix_count"]),
        false => finding.permanent(["if a command was refused: install another kernel or firmware"]),
    }]
}

/// True if the error of `event` is ENOSPC: the adapter or the interrupt controller has no room
/// for so many.
pub(super) fn is_out_of_room(event: &Event) -> bool {
    match &event.kind {
        Kind::ProbeFailed { errno, .. } => *errno == -28,
        _ => event.text.trim_end().ends_with(" -28"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn the_vf_is_told_from_its_pf() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 5.1] pci 0000:6f:00.2: [15b3:101c] type 00 class 0x020700",
                    "[ 5.2] mlx5_core: probe of 0000:6f:00.2 failed with error -22",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 5.1] pci 0000:6f:00.0: [15b3:101b] type 00 class 0x020700",
                    "[ 5.2] mlx5_core: probe of 0000:6f:00.0 failed with error -22",
                ]
            ),
            None
        );
        // VFs beyond the eighth function of their bus; a guest's second card.
        for (address, told) in [
            ("0000:0b:05.7", Some(Severity::Error)),
            ("0000:08:01.0", Some(Severity::Error)),
            ("0000:00:05.0", None),
        ] {
            let line = format!("[ 5.2] mlx5_core: probe of {address} failed with error -110");
            assert_eq!(severity(&RULE, &[&line]), told, "{line}");
        }
    }

    #[test]
    fn a_driver_that_leaves_its_probe_says_aborting() {
        let slave =
            "[ 1.0] mlx4_core a6d1:00:02.0: Detected virtual function - running in slave mode";
        let aborts =
            "[ 1.1] mlx4_core a6d1:00:02.0: INTx is not supported in multi-function mode, aborting";
        assert_eq!(severity(&RULE, &[slave, aborts]), Some(Severity::Error));
        assert_eq!(severity(&RULE, &[slave]), None);
        assert_eq!(severity(&super::super::driver_regression::RULE, &[slave, aborts]), None);
    }
}
