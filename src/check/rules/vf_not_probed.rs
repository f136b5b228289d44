use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::VfNotProbed,
    meaning: "mlx4_core leaves VFs of a ConnectX-3 without a driver on the host",
    page: "\
mlx4_core creates num_vfs VFs when it is loaded, and binds only the first probe_vf of them
on the host. The others are for virtual machines: the probe ends with ENODEV, and so does
each later bind. Without the parameter no VF is bound.

It is a fault only where the plan has VFs for the host (driver = \"host\", the default).
In a log it is a note.

Symptoms: \"Skipping virtual function:1\" from mlx4_core.

Remedy: load mlx4_core with probe_vf, in a file of /etc/modprobe.d, then rebuild the
initramfs if it contains mlx4_core, and reboot:

    options mlx4_core num_vfs=2 probe_vf=2",
    needles: &[&["Skipping virtual function"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let quotes = seen::quotes(boot, boot.with("Skipping virtual function"));
    // The plan of a host that was judged says whether they are meant for guests.
    let judgement = boot.host.as_ref().and_then(|host| host.judgement.as_ref());
    let is_meant = judgement.is_some_and(|j| j.findings.iter().all(|f| f.code != RULE.code));
    if is_meant || quotes.is_empty() {
        return Vec::new();
    }
    let text = "mlx4_core has left VFs without a driver: its parameter probe_vf says how many the host may bind.";
    let finding = Finding::new(RULE.code, Severity::Info, Confidence::High, text)
        .quoting(quotes)
        .look(["cat /sys/module/mlx4_core/parameters/num_vfs /sys/module/mlx4_core/parameters/probe_vf"])
        .permanent([
            "if the host is to use them: `options mlx4_core probe_vf=N` in a file of /etc/modprobe.d, with the N of num_vfs; rebuild the initramfs if it contains mlx4_core, and reboot",
        ]);
    vec![finding]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn vfs_that_are_skipped_are_a_note() {
        let log = "[ 15.5] mlx4_core 0000:08:00.1: Skipping virtual function:1";
        assert_eq!(severity(&RULE, &[log]), Some(Severity::Info));
        assert_eq!(severity(&RULE, &["[ 15.5] mlx4_core: Initializing 0000:08:00.1"]), None);
    }
}
