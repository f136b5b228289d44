use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::graph::consumers::{DropIn, PROVIDER};

pub(super) const RULE: Rule = Rule {
    code: Code::OpensmSkipped,
    meaning: "opensm was not started, because ib_umad was not loaded yet",
    page: "\
The distributions' opensm.service has a condition on
/sys/class/infiniband_mad/abi_version and no order after the service that loads ib_umad.
A unit whose condition does not hold is skipped without an error, and is not started
later: the fabric has no subnet manager.

Symptoms: \"opensm.service was skipped because of an unmet condition check
(ConditionPathExists=/sys/class/infiniband_mad/abi_version)\", and no line of opensm.

Remedy: order opensm after the service that loads ib_umad.",
    needles: &[&["infiniband_mad/abi_version", "InfiniBand subnet", "ubnet manager being skipped"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let skipped = |text: &str| {
        text.contains("skipped")
            && (text.contains("infiniband_mad/abi_version") || text.contains("opensm"))
    };
    let lines: Vec<_> = boot.with_any_of(RULE.needles).filter(|e| skipped(&e.text)).collect();
    let unit = boot.host.iter().filter_map(|host| host.graph.get("opensm.service"));
    let unit = unit.filter(|unit| unit.now.condition_failed && unit.now.active != "active");
    let shown: Vec<_> = unit
        .map(|unit| crate::report::finding::Quote {
            source: "live host".to_owned(),
            line: 0,
            time: String::new(),
            text: format!("{} was skipped: a condition of the unit did not hold", unit.name),
        })
        .collect();
    if lines.is_empty() && shown.is_empty() {
        return Vec::new();
    }
    let last = lines.last().map(|e| e.origin);
    let runs = boot
        .with_any(&["SUBNET UP", "Entering MASTER state", "Entering STANDBY state"])
        .any(|e| last.is_none_or(|last| e.origin > last));
    if runs {
        return Vec::new();
    }
    // Another host may have a subnet manager.
    let severity =
        if seen::sign_of_life(boot).is_some() { Severity::Warning } else { Severity::Error };
    vec![
        Finding::new(
            RULE.code,
            severity,
            Confidence::High,
            "opensm.service was skipped: ib_umad was not loaded when systemd checked the condition.",
        )
        .about("opensm.service")
        .quoting(seen::quotes(boot, lines))
        .quoting(shown)
        .look(["systemctl status opensm.service; ls /sys/class/infiniband_mad"])
        .now(["modprobe ib_umad; systemctl start opensm.service"])
        .permanent([DropIn::new("opensm.service", PROVIDER).commands()]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_skipped_subnet_manager_is_told_unless_it_came_later() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Jan 02 10:00:03 n9 systemd[1]: opensm.service - x was skipped because of an unmet condition check (ConditionPathExists=/sys/class/infiniband_mad/abi_version)."
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Jan 02 10:00:03 n9 systemd[1]: opensm.service - x was skipped because of an unmet condition check (ConditionPathExists=/sys/class/infiniband_mad/abi_version).",
                    "Jan 02 10:00:30 n9 OpenSM[9]: SUBNET UP"
                ]
            ),
            None
        );
    }
}
