use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleParameter,
    meaning: "a module parameter makes the driver fail",
    page: "\
An option in /etc/modprobe.d or on the kernel command line is refused or cannot be
honoured: a queue size that a Connect-IB adapter cannot have, a port type that the adapter
lacks, more VFs than the adapter has, a text instead of a number. The driver then fails
to load, or works without the feature.

A parameter that the module does not have (\"unknown parameter ignored\") is
harmless.

Remedy: correct the line, rebuild the initramfs, and load the module again. To find
the line:

    grep -r 'options mlx\\|options ib_' /etc/modprobe.d",
    needles: &[&[
        "invalid for parameter",
        "check send_queue_size module parameter",
        "Please set ib_ipoib send_queue_size",
        "Failed to bring up interface for Connect-IB",
        "is not supported on this HCA",
        "Only same port types supported",
        "Invalid port_type",
        "Profile requires",
        "out of range for num_",
        "Invalid value for log_",
        "FW does not support more than",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot
        .with_any_of(RULE.needles)
        // The text of a script is no message.
        .filter(|e| !["log_msg ", "echo "].iter().any(|w| e.text.trim_start().starts_with(w)))
        .filter(|e| {
            !e.text.contains("invalid for parameter") || seen::rdma_module(&e.text).is_some()
        })
        .collect();
    let Some(first) = lines.first() else { return Vec::new() };
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::High,
            format!("A module parameter is refused: {}", first.text.trim()),
        )
        .quoting(seen::quotes(boot, lines))
        .look(["grep -rn -e 'options mlx' -e 'options ib_' /etc/modprobe.d; cat /proc/cmdline"])
        .permanent(["correct or remove it, rebuild the initramfs, reboot"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn refused_parameters_not_unknown_ones() {
        assert_eq!(
            severity(&RULE, &["[ 5.1] mlx4_core: `x' invalid for parameter `num_vfs'",]),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["[ 5.1] mlx4_core: unknown parameter 'log_num_mtt' ignored",]),
            None
        );
    }
}
