use super::super::evidence::event::function;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::FwInitTimeout,
    meaning: "the adapter's firmware does not become ready",
    page: "\
The driver waits for the adapter's firmware and gives up, mlx5 after 120 s. The adapter
is in a bad state (a failed update, a reset that did not end, no power), or it has
disappeared: a register that reads 0xffffffff, firmware version 65535.65535.65535, means
that no device answers at that address any more, for example because the hypervisor has
removed the VF.

Symptoms: \"Waiting for FW initialization, timeout abort in\", \"Firmware over
120000 MS in pre-initializing state\", commands that time out, \"Failed to reset
HCA\".

Remedy: power the host off and on (a warm reset does not reset the adapter). If that
does not help, burn the firmware again, or try another slot. To query the firmware:

    mstflint -d ADDRESS q",
    needles: &[
        &[
            "Waiting for FW initialization",
            "Waiting for FW pre-initializing",
            "in pre-initializing state",
            "wait_fw_init",
            "FW initialization",
            "firmware internal error",
            "command timed out",
            "timed out waiting for firmware",
            "device is going to be reset",
        ],
        FINAL,
    ],
    judge: Judge::Boot(judge),
};

/// Lines that by themselves mean that the card was given up.
const FINAL: &[&str] = &[
    "in pre-initializing state, aborting",
    "in initializing state, aborting",
    "65535.65535.65535",
    "wait_vital timed out",
    "Failed to reset HCA",
    "PCI device did not come back after reset",
    "Failed to obtain HW semaphore",
    "Failed to start FW",
    "timeout. Will cause a leak of a command resource",
    "go bit not cleared",
    "health compromised",
];

/// mlx5 says every 20 s that it is still waiting. Firmware that takes this long does
/// not come.
const MANY: usize = 3;

fn judge(boot: &Boot) -> Vec<Finding> {
    let of_hca = |text: &str| seen::rdma_module(text).is_some();
    // A VF that gets no answer, while its PF has one, is another finding.
    let of_vf = |text: &str| {
        text.contains("Will cause a leak")
            && function(text).is_some_and(|address| seen::is_vf(boot, address))
    };
    let given_up: Vec<_> =
        boot.with_any(FINAL).filter(|e| of_hca(&e.text) && !of_vf(&e.text)).collect();
    let waits: Vec<_> = boot
        .with_any(&["Waiting for FW initialization", "Waiting for FW pre-initializing"])
        .collect();
    let Some(first) = given_up.first().or(waits.first()) else { return Vec::new() };
    let address = function(&first.text).unwrap_or("the adapter");
    let gone = boot.events.iter().any(|e| {
        e.text.contains(address)
            && (e.text.contains("0xffffffff") || e.text.contains("65535.65535"))
    });
    let later = boot.events.iter().find(|e| {
        e.origin > first.origin
            && e.text.contains(address)
            && (e.text.contains("renamed from") || e.text.contains("MLX5E: StrdRq"))
    });
    let (severity, end) = match (later, given_up.is_empty()) {
        (Some(_), _) => (Severity::Warning, "; the adapter became ready later"),
        (None, true) if waits.len() >= MANY => {
            (Severity::Error, "; the log ends before the driver gives up")
        }
        (None, true) => (Severity::Warning, "; the log ends before the driver gives up"),
        (None, false) => (Severity::Error, ""),
    };
    let what = if gone {
        format!(
            "{address} does not answer any more: the adapter or VF has disappeared, or hangs{end}."
        )
    } else {
        format!("The firmware of {address} does not become ready{end}.")
    };
    vec![
        Finding::new(RULE.code, severity, Confidence::High, what)
            .quoting(seen::quotes(boot, given_up.clone()))
            .quoting(seen::quotes(boot, waits))
            .look([
                format!("check whether the firmware answers: mstflint -d {address} query"),
                "in a guest: read the log of the hypervisor, which may have removed the VF"
                    .to_owned(),
            ])
            .now(["power the host off and on; a warm reboot does not reset the adapter"])
            .permanent(["if the fault occurs again: burn the firmware again, or try another slot"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_wait_that_ends_well_is_no_failure() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 20.1] mlx5_core 0000:03:00.0: wait_fw_init:199:(pid 1): Waiting for FW initialization, timeout abort in 100s",
                    "[ 121.1] mlx5_core 0000:03:00.0: mlx5_function_setup:1130:(pid 17): Firmware over 120000 MS in pre-initializing state, aborting",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 20.1] mlx5_core 0000:03:00.0: wait_fw_init:199:(pid 1): Waiting for FW initialization, timeout abort in 100s",
                    "[ 31.1] mlx5_core 0000:03:00.0 ibp3s0: renamed from ib0",
                ]
            ),
            Some(Severity::Warning)
        );
        let pf = "[ 134.3] mlx5_core 0000:61:00.0: wait_func:1185:(pid 3): ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource";
        assert_eq!(severity(&RULE, &[pf]), Some(Severity::Error));
        assert_eq!(severity(&RULE, &[&pf.replace("61:00.0", "61:01.0")]), None);
        let waits = [
            "[ 22.8] mlx5_core 0000:6f:00.0: wait_fw_init:211:(pid 8): Waiting for FW pre-initializing, timeout abort in 100s (0x87010000)",
            "[ 42.8] mlx5_core 0000:6f:00.0: wait_fw_init:211:(pid 8): Waiting for FW pre-initializing, timeout abort in 79s (0x87010000)",
            "[ 62.8] mlx5_core 0000:6f:00.0: wait_fw_init:211:(pid 8): Waiting for FW pre-initializing, timeout abort in 59s (0x87010000)",
        ];
        assert_eq!(severity(&RULE, &waits), Some(Severity::Error));
        assert_eq!(severity(&RULE, &waits[..2]), Some(Severity::Warning));
        assert_eq!(
            severity(&RULE, &["[ 2.1] mlx5_core 0000:03:00.0: firmware version: 20.36.1010",]),
            None
        );
    }
}
