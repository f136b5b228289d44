use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::RunFull,
    meaning: "/run has no room left, so that reports and locks of this boot are missing",
    page: "\
/run is a file system in memory, of limited size. If /run is full, programs that write
there fail: ibprov cannot write its reports and locks, so that `status`, `check` and the
next run do not know what it did; systemd and udev fail in ways that look like other
faults.

Symptoms: \"cannot write /run/ibprov/...: ENOSPC\" from ibprov; \"No space left on
device\" from systemd, udev or journald for a path below /run.

Remedy: find the files that fill /run, and remove them:

    df -h /run; df -i /run
    du -xhd2 /run | sort -h

To enlarge /run until the next boot: mount -o remount,size=SIZE /run",
    needles: &[&["cannot write /run/", "cannot use the lock /run/", "No space left on device"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot
        .with("No space left on device")
        .filter(|e| e.text.contains("/run/") && !e.text.contains("/run/media"))
        .collect();
    if lines.is_empty() {
        return Vec::new();
    }
    vec![
        Finding::new(
            RULE.code,
            Severity::Warning,
            Confidence::High,
            "/run has no room left, so that files of ibprov and other programs are missing there.",
        )
        .about("/run")
        .quoting(seen::quotes(boot, lines))
        .look(["df -h /run; df -i /run", "du -xhd2 /run | sort -h"])
        .now(["remove the files that fill /run, or `mount -o remount,size=SIZE /run`, then `systemctl restart ibprov.service`"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn only_run_counts() {
        let line = "Nov 23 10:00:09 n9 ibprov[77]: cannot write /run/ibprov/boot.json: ENOSPC: No space left on device";
        assert_eq!(severity(&RULE, &[line]), Some(Severity::Warning));
        let other = "Nov 23 10:00:09 n9 rsyslogd[77]: /var/log/syslog: No space left on device";
        assert_eq!(severity(&RULE, &[other]), None);
    }
}
