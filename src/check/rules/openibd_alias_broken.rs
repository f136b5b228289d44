use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::OpenibdAliasBroken,
    meaning: "units that are ordered after openibd.service are not ordered after ibprov",
    page: "\
Other software orders itself After=openibd.service and requires it. The unit
ibprov-openibd.service, enabled together with ibprov.service, takes that name as an
alias. systemd refuses that while a unit file of openibd is still in /etc, or the name is
masked: the old openibd runs, or no unit of that name does, and the units that are
ordered after it start too early. `systemctl disable openibd` after ibprov was enabled
removes the alias again.

Symptoms: \"Failed to enable unit: File ... openibd.service already exists\"; a
warning of ibprov status.

Remedy: remove OFED's openibd.service from /etc/systemd/system, or unmask it, then run

    systemctl reenable ibprov.service",
    needles: &[&[
        "openibd.service already exists",
        "openibd.service is a symlink",
        "openibd.service is linked or masked",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot.with_any_of(RULE.needles).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    vec![
        Finding::new(
            RULE.code,
            Severity::Warning,
            Confidence::High,
            "The name openibd.service belongs to another unit, so that units ordered after it do not wait for ibprov.",
        ).about("openibd.service")
        .quoting(seen::quotes(boot, lines))
        .permanent(["run systemctl disable openibd.service, remove its unit file from /etc, then run systemctl reenable ibprov.service"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn systemd_refuses_the_name() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Failed to enable unit: File /etc/systemd/system/openibd.service already exists and openibd.service is a symlink",
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(&RULE, &["Created symlink /etc/systemd/system/openibd.service.",]),
            None
        );
    }
}
