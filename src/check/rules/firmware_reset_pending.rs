use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::FirmwareResetPending,
    meaning: "the adapter needs a reset or a power cycle before its settings take effect",
    page: "\
The firmware or its settings were changed, and the adapter uses them only after a reset
or after the host was without power. A reboot is not always enough: many hosts keep the
slot powered. Until then the adapter works with the previous settings, so that VFs may
be absent.

Symptoms: mlxconfig or mstconfig print other values under Next Boot than under Current,
or \"Please reboot machine to load new configurations\"; the driver reports \"Cold reset
is required\" or \"PCI Sync FW Update Reset\".

Remedy: power the host off and on, then read the settings again. If Current still
differs from Next Boot after that, do not write them again.",
    needles: &[&[
        "Cold reset is required",
        "PCI Sync FW Update Reset",
        "to load new configurations",
        "FW sync reset timeout",
        "reset is required",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot
        .with_any_of(RULE.needles)
        .filter(|e| {
            e.text.contains("to load new configurations") || seen::rdma_module(&e.text).is_some()
        })
        .collect();
    let Some(first) = lines.first() else { return Vec::new() };
    vec![
        Finding::new(
            RULE.code,
            Severity::Warning,
            Confidence::High,
            format!("An adapter needs a reset or a power cycle: {}", first.text.trim()),
        )
        .quoting(seen::quotes(boot, lines))
        .look(["compare the values under Next Boot and Current: mlxconfig -d ADDRESS -e query"])
        .permanent(["power the host off and on, so that the slot loses its power; a reboot may not be enough"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn settings_that_wait_are_told() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 9.1] mlx5_core 0000:4b:00.0: print_health_info:470:(pid 0): Cold reset is required"
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(&RULE, &["-I- Please reboot machine to load new configurations."]),
            Some(Severity::Warning)
        );
        assert_eq!(severity(&RULE, &["[ 9.1] ixgbe 0000:4b:00.0: Cold reset is required"]), None);
    }
}
