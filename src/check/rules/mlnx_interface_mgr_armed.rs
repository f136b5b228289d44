use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::MlnxInterfaceMgrArmed,
    meaning: "mlnx_interface_mgr configures the same interfaces as ibprov",
    page: "\
MLNX_OFED's kernel package has a udev rule, 90-ib.rules, that starts
mlnx_interface_mgr@IF.service for each new netdev of a Mellanox driver. The unit
does not depend on openibd, and also runs if openibd is disabled. The script of the unit
sets mode and MTU from /etc/infiniband/openib.conf, creates P_Key children and may run
ifup, at the same time as ibprov-iface@.service does. ibprov waits until the script has
finished before it configures the interface, and reads its settings back; only one of
the two should configure interfaces.

Symptoms: lines of mlnx_interface_mgr and of ibprov in one boot; a warning of ibprov
status.

Remedy: mask the rule. The mask remains when the package is updated.

    ln -sf /dev/null /etc/udev/rules.d/90-ib.rules
    udevadm control --reload",
    needles: &[&["mlnx_interface_mgr"], &["ibprov["]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let of = |program: &str| boot.events.iter().find(|e| e.program.starts_with(program));
    let (Some(other), Some(ours)) = (of("mlnx_interface_mgr"), of("ibprov")) else {
        return Vec::new();
    };
    vec![
        Finding::new(
            RULE.code,
            Severity::Warning,
            Confidence::High,
            "MLNX_OFED's mlnx_interface_mgr configures the same interfaces as ibprov.",
        )
        .about("mlnx_interface_mgr")
        .quoting(seen::quotes(boot, [other, ours]))
        .permanent(["ln -sf /dev/null /etc/udev/rules.d/90-ib.rules && udevadm control --reload"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    const OTHER: &str =
        "Apr 02 11:09:36 n9 mlnx_interface_mgr.sh[310]: Setting up Mellanox network interface: ib0";
    const OURS: &str = "Apr 02 11:09:36 n9 ibprov[300]: ib0 is configured";

    #[test]
    fn two_agents_in_one_boot() {
        assert_eq!(severity(&RULE, &[OTHER, OURS]), Some(Severity::Warning));
        assert_eq!(severity(&RULE, &[OTHER]), None);
        assert_eq!(severity(&RULE, &[OURS]), None);
    }
}
