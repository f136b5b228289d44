use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen, sriov_not_enabled_fw};
use crate::check::evidence::state::Setting;
use crate::report::firmware::tool;

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
    let pending: Vec<&Setting> = boot.state.settings.iter().filter(|s| s.is_pending()).collect();
    let of_lines = seen::by_function(lines.iter().copied()).into_iter().filter_map(|(at, _)| at);
    let of_settings = pending.iter().map(|s| s.device.as_str()).filter(|device| !device.is_empty());
    let devices = seen::each(of_lines.chain(of_settings));
    let of = seen::all_of("adapter", &devices);
    let told = match (lines.first(), &pending[..]) {
        (_, [_, ..]) => {
            let mut names: Vec<&str> = pending.iter().map(|s| s.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            format!(
                "{} of {of} take effect after a reset or a power cycle: do not write them again.",
                names.join(", ")
            )
        }
        (Some(first), []) => format!("{of} needs a reset or a power cycle: {}", first.text.trim()),
        (None, []) => return Vec::new(),
    };
    // Somebody misses the VFs already.
    let is_missed = !pending.is_empty() && sriov_not_enabled_fw::is_missed(boot);
    vec![
        Finding::new(
            RULE.code,
            if is_missed { Severity::Error } else { Severity::Warning },
            Confidence::High,
            told,
        )
        .about_if(seen::joined(&devices))
        .quoting(pending.iter().map(|s| boot.quote_at(s.origin, "", &s.text)))
        .quoting(seen::quotes(boot, lines))
        .look(seen::for_each(
            &format!("compare the values under Next Boot and Current: {}", tool("{}", "-e query")),
            &devices,
            "ADDRESS",
        ))
        .now(seen::for_each(
            "where the adapter allows it: mstfwreset -d {} reset, or mlxfwreset with the same arguments",
            &devices,
            "ADDRESS",
        ))
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
