use super::super::evidence::event::function;
use super::{Boot, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: "firmware-too-old",
    meaning: "the adapter's firmware is too old for the driver",
    page: "\
The driver speaks another revision of the command interface than the card's
firmware, or needs something that this firmware has not. It says so and leaves the
card alone. (ib_mthca's \"HCA FW version 5.1.000 is old\" is only advice: the card
works.)

How it shows: \"Installed FW has unsupported command interface revision\",
\"driver does not support command interface version\".

What to do: mstflint -d ADDRESS q, burn the newest firmware for the card's PSID;
or use the driver that is as old as the firmware.",
    needles: &[
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
    ],
    causes: &["driver-regression", "vf-probe-failed", "openibd-failed", "module-not-loaded"],
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
        ])
        .filter(|e| seen::rdma_module(&e.text).is_some())
        .collect();
    let Some(first) = refuses.first().or(advises.first()) else { return Vec::new() };
    let address = function(&first.text).unwrap_or("the card");
    let only_advice = refuses.is_empty();
    let failed = boot.events.iter().any(
        |e| matches!(&e.kind, super::Kind::ProbeFailed { device, .. } if &**device == address),
    );
    let (severity, confidence) = match (only_advice, failed) {
        (false, _) => (Severity::Error, Confidence::High),
        (true, true) => (Severity::Error, Confidence::Medium),
        (true, false) => (Severity::Info, Confidence::Low),
    };
    vec![
        Finding::new(RULE.code, severity, confidence, format!("The firmware of {address} is too old for the driver: {}", first.text.trim()))
            .quoting(seen::quotes(boot, refuses.into_iter().chain(advises)))
            .advice([
                format!("mstflint -d {address} q shows version and PSID; burn the newest firmware for that PSID"),
                "power the host off and on".to_owned(),
            ]),
    ]
}
