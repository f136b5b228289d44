use super::families::{Harmless, messages};
use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::HarmlessWarning,
    meaning: "harmless messages that look like errors",
    page: "\
Some lines read like a failure and report none: an upper layer that has nothing to do, a
feature that the adapter lacks, a taint, a transient state while the port comes up. Each
line is listed with the reason why it does not matter. Failures in the same log are
findings of their own.",
    // Beside the words of messages.toml.
    needles: &[&[
        "ACCESS_REG",
        "mlx5_cmd_out_err",
        "mlx5_cmd_check",
        "async UMR",
        "Unable to locate proper PHY",
        "no userspace device-specific driver found",
        "NO-CARRIER",
        "pcie bandwidth",
        "limited by",
        "Refused to change power state",
        "Not supported. Please upgrade",
        "please upgrade to later FW",
        "failed to enable relaxed ordering",
        "mlx5_fw_tracer",
        "FWTracer",
        "DEV_CAP",
        "Enforcing HT",
        "disabling already-disabled",
        "Deferred probe",
        "hw csum failure",
    ]],
    judge: Judge::Rest(judge),
};

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    // A line that a failure rests on is not harmless.
    let blamed = |event: &Event| {
        findings.iter().filter(|f| f.severity != Severity::Info).any(|f| {
            f.evidence.iter().any(|q| q.line == event.origin.line && q.text == *event.text)
        })
    };
    let mut whys: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for event in &boot.events {
        let Some(why) = why(&event.text) else { continue };
        if !whys.contains(&why) && !blamed(event) {
            whys.push(why);
            lines.push(event);
        }
    }
    if lines.is_empty() {
        return Vec::new();
    }
    let said = match lines.len() {
        1 => "1 harmless message that looks like an error".to_owned(),
        n => format!("{n} harmless messages that look like errors"),
    };
    vec![
        Finding::new(
            RULE.code,
            Severity::Info,
            Confidence::High,
            format!("{said}: {}.", whys.first().copied().unwrap_or_default()),
        )
        .chain(whys)
        .quoting(seen::quotes(boot, lines)),
    ]
}

/// Why `text` means nothing, if it is one of the lines of this rule.
pub(super) fn why(text: &str) -> Option<&'static str> {
    let is_in = |harmless: &&Harmless| harmless.words.iter().any(|word| text.contains(word));
    let known = messages().harmless.iter().find(is_in).map(|harmless| harmless.why.as_str());
    // Queries that the firmware refuses do no harm; commands that make
    // something are another matter, and fail a probe.
    let refused = (text.contains("mlx5_cmd_out_err") || text.contains("mlx5_cmd_check"))
        && ["ACCESS_REG", "QUERY_", "bad operation"].iter().any(|w| text.contains(w));
    let refused =
        refused.then_some("the firmware does not know a query that the driver can do without");
    let is_ours = || about_rdma(text) || text.contains("defaulting to 1000");
    known.or(refused).filter(|_| is_ours())
}

/// The taint and field-spanning lines name their module.
fn about_rdma(text: &str) -> bool {
    seen::rdma_module(text).is_some()
        || seen::ib_netdev_in(text).is_some()
        || [
            "rdma",
            "infiniband",
            "ib_",
            "mlx",
            "hfi1",
            "umad",
            "srpt",
            "HCA",
            "verbs",
            "iwpmd",
            "ibacm",
        ]
        .iter()
        .any(|w| text.contains(w))
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn words_that_mean_nothing() {
        assert_eq!(
            severity(&RULE, &["[ 16.0] ib_srpt srpt_add_one(mlx5_0) failed.",]),
            Some(Severity::Info)
        );
        for line in [
            "ib_ipoib: module not supported by Novell, setting U taint flag.",
            "[ 1.5] mlx5_core 0000:01:00.0: mlx5_pcie_event:326:(pid 12): Detected insufficient power on the PCIe slot (27W).",
        ] {
            assert_eq!(severity(&RULE, &[line]), Some(Severity::Info), "{line}");
        }
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 16.0] i915: module verification failed: signature and/or required key missing - tainting kernel",
                ]
            ),
            None
        );
    }
}
