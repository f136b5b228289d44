use super::super::evidence::event::function;
use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};

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
];

/// mlx5 says every 20 s that it is still waiting. Firmware that takes this long does
/// not come.
const MANY: usize = 3;

/// How it ended for an adapter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// No device answers at its address.
    Gone,
    /// The driver gave up.
    Dead,
    /// The log ends before that.
    Waits(Severity),
    /// It became ready after all.
    Late,
}

impl End {
    fn of(boot: &Boot, address: Option<&str>, given_up: &[&Event], waits: &[&Event]) -> Self {
        let names = |e: &&Event| address.is_none_or(|address| e.text.contains(address));
        let last = given_up.iter().chain(waits).map(|e| e.origin).max();
        let came = boot.events.iter().filter(names).any(|e| {
            Some(e.origin) > last
                && (e.text.contains("renamed from") || e.text.contains("MLX5E: StrdRq"))
        });
        let is_gone = |e: &Event| {
            address.is_some() && ["0xffffffff", "65535.65535"].iter().any(|w| e.text.contains(w))
        };
        match () {
            () if came => Self::Late,
            () if boot.events.iter().filter(names).any(is_gone) => Self::Gone,
            () if !given_up.is_empty() => Self::Dead,
            () if waits.len() >= MANY => Self::Waits(Severity::Error),
            () => Self::Waits(Severity::Warning),
        }
    }

    const fn severity(self, given_up: bool) -> Severity {
        match self {
            Self::Late => Severity::Info,
            Self::Waits(severity) => severity,
            Self::Gone if !given_up => Severity::Warning,
            Self::Gone | Self::Dead => Severity::Error,
        }
    }

    fn told(self, of: &str) -> String {
        match self {
            Self::Gone => format!(
                "No answer any more from {of}: the adapter or VF has disappeared, or hangs."
            ),
            Self::Dead => format!("The firmware of {of} does not become ready."),
            Self::Waits(_) => format!(
                "The firmware of {of} does not become ready; the log ends before the driver gives up."
            ),
            Self::Late => format!("The firmware of {of} became ready late."),
        }
    }
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let of_hca = |text: &str| seen::rdma_module(text).is_some();
    // A VF that gets no answer, while its PF has one, is another finding.
    let of_vf = |text: &str| {
        text.contains("Will cause a leak")
            && function(text).is_some_and(|address| seen::is_vf(boot, address))
    };
    let is_final = |e: &Event| seen::has(e, FINAL) && of_hca(&e.text) && !of_vf(&e.text);
    let is_wait = |e: &Event| {
        seen::has(e, &["Waiting for FW initialization", "Waiting for FW pre-initializing"])
    };
    let lines = boot.events.iter().filter(|e| is_final(e) || is_wait(e));
    let mut ends: Vec<(End, Severity, Vec<&str>, Vec<&Event>)> = Vec::new();
    for (address, lines) in seen::by_function(lines) {
        let (given_up, waits): (Vec<&Event>, Vec<&Event>) =
            lines.into_iter().partition(|e| is_final(e));
        let end = End::of(boot, address, &given_up, &waits);
        let severity = end.severity(!given_up.is_empty() || waits.len() >= MANY);
        let is_same = |known: &&mut (End, Severity, _, _)| (known.0, known.1) == (end, severity);
        let lines = given_up.into_iter().chain(waits);
        match ends.iter_mut().find(is_same) {
            Some((_, _, addresses, all)) => {
                addresses.extend(address);
                all.extend(lines);
            }
            None => ends.push((end, severity, address.into_iter().collect(), lines.collect())),
        }
    }
    let finding = |(end, severity, addresses, lines): (End, _, Vec<&str>, Vec<&Event>)| {
        let told = end.told(&seen::all_of("adapter", &addresses));
        let finding = Finding::new(RULE.code, severity, Confidence::High, told)
            .about_if(seen::joined(&addresses))
            .quoting(seen::quotes(boot, lines.iter().copied()));
        if end == End::Late {
            return finding;
        }
        finding
            .look(seen::firmware_query(&lines, &addresses))
            .look(["in a guest: read the log of the hypervisor, which may have removed the VF"])
            .now(["power the host off and on; a warm reboot does not reset the adapter"])
            .permanent(["if the fault occurs again: burn the firmware again, or try another slot"])
    };
    ends.into_iter().map(finding).collect()
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
            Some(Severity::Info)
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
