use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::FirmwareFatal,
    meaning: "the adapter's firmware has failed during operation",
    page: "\
The driver's health check found the firmware dead or in a fatal state: a fatal error
that the firmware reports itself, or a counter that does not advance. The driver then
tries to recover the device. Until it has succeeded, VFs, their GUIDs and every
connection of that function are lost, and all commands fail.

Symptoms: \"Fatal error 3 detected\", \"device's health compromised - reached miss
count\", \"starting health recovery flow\", \"health recovery failed\", \"Driver is in
error state. Unloading\". A recovery that succeeded is a warning: the settings of VFs
are lost.

Remedy: read the firmware's own report, power the host off and on, and send that report
to the vendor.",
    needles: &[&[
        "Fatal error ",
        "health compromised",
        "health recovery",
        "Driver is in error state",
        "handling bad device here",
    ]],
    judge: Judge::Boot(judge),
};

const SIGNS: [&str; 5] = [
    "health compromised",
    "starting health recovery flow",
    "health recovery failed",
    "health recovery flow aborted",
    "Driver is in error state",
];

fn judge(boot: &Boot) -> Vec<Finding> {
    let fatal = |text: &str| text.contains("Fatal error ") && text.contains(" detected");
    let ours = |text: &str| seen::rdma_module(text).is_some();
    let lines: Vec<_> = boot
        .events
        .iter()
        .filter(|e| e.from_kernel() && ours(&e.text))
        .filter(|e| SIGNS.iter().any(|sign| e.text.contains(sign)) || fatal(&e.text))
        .collect();
    let mut found: Vec<(Severity, Vec<&str>, Vec<&Event>)> = Vec::new();
    for (address, lines) in seen::by_function(lines) {
        let last = lines.last().map(|e| e.origin);
        let recovered = boot.with("health recovery").any(|e| {
            Some(e.origin) >= last
                && e.text.contains("health recovery succeeded")
                && address.is_none_or(|address| e.text.contains(address))
        });
        let severity = if recovered { Severity::Warning } else { Severity::Error };
        match found.iter_mut().find(|known| known.0 == severity) {
            Some((_, addresses, all)) => {
                addresses.extend(address);
                all.extend(lines);
            }
            None => found.push((severity, address.into_iter().collect(), lines)),
        }
    }
    let finding = |(severity, addresses, lines): (_, Vec<&str>, Vec<&Event>)| {
        let of = seen::all_of("adapter", &addresses);
        let said = lines.first().map(|e| e.text.trim()).unwrap_or_default();
        let told = format!("The firmware of {of} has failed: {said}");
        Finding::new(RULE.code, severity, Confidence::High, told)
            .about_if(seen::joined(&addresses))
            .quoting(seen::quotes(boot, lines))
            .look(seen::for_each(
                "devlink health show pci/{} reporter fw_fatal; devlink health diagnose pci/{} reporter fw",
                &addresses,
                "ADDRESS",
            ))
            .look(seen::for_each("mstflint -d {} query", &addresses, "ADDRESS"))
            .now(["power the host off and on; ibprov apply sets VFs again after a recovery"])
            .permanent(["burn the newest firmware; report the health buffer to the vendor"])
    };
    found.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_dead_firmware_is_told_and_a_recovered_one_warned_of() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 90.1] mlx5_core 0000:4b:00.0: mlx5_health_try_recover:335:(pid 9): health recovery failed",
                    "[ 90.0] mlx5_core 0000:4b:00.0: poll_health:800:(pid 0): Fatal error 3 detected"
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 90.0] mlx5_core 0000:4b:00.0: poll_health:800:(pid 0): Fatal error 3 detected",
                    "[ 95.0] mlx5_core 0000:4b:00.0: mlx5_health_try_recover: health recovery succeeded"
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(severity(&RULE, &["[ 90.0] nvme 0000:4b:00.0: Fatal error 3 detected"]), None);
    }
}
