use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::FirmwareTooOld,
    meaning: "the adapter's firmware is too old for the driver",
    page: "\
The driver uses another revision of the command interface than the adapter's firmware,
or needs a feature that this firmware lacks. The driver reports that and does not
configure the adapter. (\"HCA FW version 5.1.000 is old\" of ib_mthca is only advice: the
adapter works.)

Symptoms: \"Installed FW has unsupported command interface revision\",
\"driver does not support command interface version\".

Remedy: burn the newest firmware for the adapter's PSID, or use a driver of the same
age as the firmware. To show firmware version and PSID:

    mstflint -d ADDRESS q",
    needles: &[&[
        "upgrade to later FW",
        "sys files not found (/sys/class/infiniband",
        "No IB devices found",
        "unsupported command interface revision",
        "This driver version supports only revisions",
        "does not support command interface version",
        "command interface version",
        "is old (",
        "try updating your HCA FW",
        "Consider upgrading device FW",
        "upgrade your firmware",
        "update your firmware",
        "firmware is too old",
        "FW is too old",
        "please upgrade",
        "Please upgrade",
        "Please update",
        "old firmware",
        "outdated firmware",
        "Firmware too old",
        "unsupported firmware",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let refuses: Vec<_> = boot
        .with_any(&[
            "unsupported command interface revision",
            "This driver version supports only revisions",
            "does not support command interface version",
        ])
        .collect();
    let advises: Vec<_> = boot
        .with_any(&[
            "is old (",
            "try updating your HCA FW",
            "upgrade your firmware",
            "update your firmware",
            "firmware is too old",
            "FW is too old",
            "old firmware",
            "outdated firmware",
            "Firmware too old",
            "unsupported firmware",
            "upgrade to later FW",
            "Consider upgrading device FW",
        ])
        .filter(|e| seen::rdma_module(&e.text).is_some())
        .collect();
    // A feature that only a later firmware has is advice, unless no RDMA device
    // came of it.
    let no_device: Vec<_> = boot
        .with_any(&["sys files not found (/sys/class/infiniband", "No IB devices found"])
        .collect();
    let mut found: Vec<(Severity, Confidence, Vec<&str>, Vec<&Event>)> = Vec::new();
    for (address, lines) in seen::by_function(refuses.iter().chain(&advises).copied()) {
        let only_advice = !lines.iter().any(|line| refuses.contains(line));
        let failed = boot.events.iter().any(|e| {
            matches!(&e.kind, super::Kind::ProbeFailed { device, .. } if Some(&**device) == address)
        });
        let (severity, confidence) = match (only_advice, failed) {
            (false, _) => (Severity::Error, Confidence::High),
            (true, true) => (Severity::Error, Confidence::Medium),
            (true, false) if !no_device.is_empty() => (Severity::Error, Confidence::Low),
            (true, false) => (Severity::Info, Confidence::Low),
        };
        match found.iter_mut().find(|known| (known.0, known.1) == (severity, confidence)) {
            Some((_, _, addresses, all)) => {
                addresses.extend(address);
                all.extend(lines);
            }
            None => found.push((severity, confidence, address.into_iter().collect(), lines)),
        }
    }
    let finding = |(severity, confidence, addresses, lines): (_, _, Vec<&str>, Vec<&Event>)| {
        let of = seen::all_of("adapter", &addresses);
        let said = lines.first().map(|e| e.text.trim()).unwrap_or_default();
        let told = format!("The firmware of {of} is too old for the driver: {said}");
        Finding::new(RULE.code, severity, confidence, told)
            .about_if(seen::joined(&addresses))
            .look(seen::firmware_query(&lines, &addresses))
            .quoting(seen::quotes(boot, lines))
            .quoting(seen::quotes(boot, no_device.iter().copied()))
            .permanent([
                "burn the newest firmware for that adapter, then power the host off and on",
            ])
    };
    found.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn refusal_is_told_from_advice() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 5.1] mlx4_core 0000:04:00.0: Installed FW has unsupported command interface revision 2",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 6.2] ib_mthca 0000:01:00.0: HCA FW version 5.1.000 is old (5.3.000 is current).",
                ]
            ),
            Some(Severity::Info)
        );
        assert_eq!(
            severity(&RULE, &["[ 6.2] mlx5_core 0000:01:00.0: firmware version: 20.36.1010",]),
            None
        );
    }
}
