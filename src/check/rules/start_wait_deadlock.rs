use super::{Boot, Code, Confidence, Finding, Judge, Kind, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::StartWaitDeadlock,
    meaning: "a unit starts another unit that is ordered after it, and waits for that unit",
    page: "\
A program in a unit runs `systemctl start B` and waits, and B is ordered after that
unit: B cannot start before the first unit has finished, and the first unit waits for B.
systemd does not detect that, because the second start is a transaction of its own. The
boot waits until a time limit ends it.

Symptoms: a start job that runs without end beside another that waits for it;
after the time limit both fail.

Remedy: do not wait for the unit, or pull it in with Wants= instead of starting it:

    systemctl --no-block start B",
    needles: &[&[
        "systemctl start ",
        "start operation timed out",
        "Job timed out",
        "A start job is running for",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    // From a log it shows only where the waiting program says what it waits for.
    let mut found = Vec::new();
    for ended in boot.with("start operation timed out") {
        let unit = ended.text.split(':').next().unwrap_or_default();
        let asked = boot.events.iter().find(|e| {
            e.origin < ended.origin
                && (&*e.unit == unit || unit.strip_suffix(".service") == Some(&*e.program))
                && e.text.contains("systemctl start ")
                && !e.text.contains("--no-block")
        });
        let Some(asked) = asked else { continue };
        let other = super::super::pattern::word(
            asked.text.split("systemctl start ").nth(1).unwrap_or_default(),
        );
        let began_after = boot.events.iter().any(|e| {
            e.origin > ended.origin && matches!(&e.kind, Kind::UnitStarting(u) if other.contains(&**u) || u.contains(other))
        });
        if !other.is_empty() && began_after {
            found.push(
                Finding::new(
                    RULE.code,
                    Severity::Error,
                    Confidence::Medium,
                    format!("{unit} started {other} and waited for it, which can start only after {unit} has finished."),
                ).about(unit)
                .quoting(seen::quotes(boot, [asked, ended]))
                .permanent([format!("start {other} without waiting: systemctl --no-block start {other}; or add Wants={other} to {unit}")]),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn what_can_begin_only_after_the_end() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Mar 18 10:29:00 h early[7]: + systemctl start late.service",
                    "Mar 18 10:32:00 h systemd[1]: early.service: start operation timed out. Terminating.",
                    "Mar 18 10:32:01 h systemd[1]: Starting late.service - x...",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Mar 18 10:29:00 h early[7]: + systemctl --no-block start late.service",
                    "Mar 18 10:32:00 h systemd[1]: early.service: start operation timed out. Terminating.",
                ]
            ),
            None
        );
    }
}
