use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::HarmlessWarning,
    meaning: "harmless messages that look like errors",
    page: "\
Some lines read like a failure and report none: an upper layer that has nothing to do, a
feature that the adapter lacks, a taint, a transient state while the port comes up. Each
line is listed with the reason why it does not matter. Failures in the same log are
findings of their own.",
    needles: &[&[
        "set Node Description failed",
        "/node_desc",
        "couldn't stat '/sys/class/infiniband",
        "couldn't load driver '",
        "appeared twice with different sysfs paths",
        "srpt_add_one(",
        "ib_cm_listen() failed",
        "signature and/or required key missing",
        "loading out-of-tree module taints",
        "failed: fw status = 0x",
        "failed to allocate command entry",
        "detected field-spanning write",
        "using alternative format",
        "Board description not found",
        "multicast join failed for",
        "is a disabled or a static unit",
        "speed is unknown, defaulting to 1000",
        "Missing SyncE capability",
        "PCIe slot advertised sufficient power",
        "PCIe slot power capability",
        "will cause multicast packet drops",
        "unknown parameter '",
        "link is not ready",
        "IPOIB_FLAG_",
        "ACCESS_REG",
        "mlx5_cmd_out_err",
        "mlx5_cmd_check",
        "try updating your HCA FW",
        "Failed to find module 'ib_ucm'",
        "OS is booting, will not run ifup",
        "async reg mr failed",
        "async UMR",
        "array-index-out-of-bounds",
        "Detected insufficient power",
        "setting U taint flag",
        "PF is not ready - Deferring probe",
        "Unable to locate proper PHY",
        "couldn't open config directory",
        "no userspace device-specific driver found",
        "NO-CARRIER",
        "pcie bandwidth",
        "limited by",
        "Refused to change power state",
        "no default pinctrl state",
        "log_max_qp value in current profile",
        "Not supported. Please upgrade",
        "please upgrade to later FW",
        "is not supported on this device",
        "failed to enable relaxed ordering",
        "mlx5_fw_tracer",
        "FWTracer",
        "DEV_CAP",
        "Enforcing HT",
        "disabling already-disabled",
        "ignoring multicast groups joined",
        "PTP is not supported",
        "Deferred probe",
        "hw csum failure",
        "sendonly",
    ]],
    judge: Judge::Rest(judge),
};

/// Words, and why they do not matter.
const KNOWN: &[(&str, &str)] = &[
    (
        "appeared twice with different sysfs paths",
        "two device nodes of one port have the same systemd alias",
    ),
    (
        "srpt_add_one(",
        "the SRP target finds no address to listen on; only SRP storage targets need it",
    ),
    (
        "ib_cm_listen() failed",
        "the SRP target finds no address to listen on; only SRP storage targets need it",
    ),
    ("signature and/or required key missing", "an unsigned module taints the kernel and works"),
    ("loading out-of-tree module taints", "OFED's modules are not the kernel's own, and work"),
    (
        "failed: fw status = 0x",
        "an old firmware does not know a command that the driver can do without",
    ),
    ("detected field-spanning write", "the compiler's check reports a copy that is correct"),
    (
        "array-index-out-of-bounds",
        "the compiler's check reports an array whose length is stored elsewhere",
    ),
    ("using alternative format", "hfi1 reads an older form of its platform file"),
    ("Board description not found", "hfi1 has no text for the board"),
    ("is a disabled or a static unit", "other units start such a unit"),
    ("speed is unknown, defaulting to 1000", "an Ethernet port without link has no speed yet"),
    ("Missing SyncE capability", "the adapter cannot synchronise clocks over Ethernet"),
    ("PCIe slot advertised sufficient power", "the message reports that the power is sufficient"),
    (
        "Detected insufficient power",
        "the slot grants less power than the adapter can draw at most, with active cables",
    ),
    (
        "PF is not ready - Deferring probe",
        "the VF's driver waits for the driver of its PF, and tries again",
    ),
    ("setting U taint flag", "a module that SUSE does not support taints the kernel and works"),
    (
        "PCIe slot power capability was not advertised",
        "the slot does not report how much power it supplies",
    ),
    ("will cause multicast packet drops", "connected mode has a larger MTU than multicast"),
    ("unknown parameter '", "the module ignores a parameter that it does not have"),
    ("link is not ready", "the netdev was set up before the port was active; it has a link later"),
    ("IPOIB_FLAG_", "IPoIB printed a debug line"),
    ("try updating your HCA FW", "the driver prefers a newer firmware and works with this one"),
    ("Failed to find module 'ib_ucm'", "Linux 5.7 removed ib_ucm"),
    ("OS is booting, will not run ifup", "the network service brings the interface up"),
    ("async reg mr failed", "the cache of memory regions is filled later"),
    ("failed to allocate command entry", "the driver tries the command again"),
    ("couldn't open config directory", "no provider is configured; the built-in ones are used"),
    ("no default pinctrl state", "a PCI device has no pins to set"),
    ("log_max_qp value in current profile", "the driver uses the limit of the adapter"),
    ("is not supported on this device", "the adapter lacks a feature"),
    ("ignoring multicast groups joined", "IPoIB leaves groups to user space"),
    ("PTP is not supported", "the adapter has no clock to read"),
    ("multicast join failed for", "the subnet manager has not answered yet; IPoIB tries again"),
    (
        "set Node Description failed",
        "the device was renamed meanwhile; rdma-ndd sets the description under the new name",
    ),
    (
        "/node_desc",
        "the device was renamed meanwhile; rdma-ndd sets the description under the new name",
    ),
    ("couldn't stat '/sys/class/infiniband", "the device belongs to another container"),
    ("couldn't load driver '", "user space has no provider for a device that is not used"),
    ("sendonly", "the subnet manager has not answered yet; IPoIB tries again"),
];

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
    let known = KNOWN.iter().find(|(word, _)| text.contains(word)).map(|(_, why)| *why);
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
