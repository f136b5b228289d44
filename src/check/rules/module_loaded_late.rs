use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleLoadedLate,
    meaning: "a netdev was created after the network service had looked for it",
    page: "\
The network service looked for an IPoIB netdev, did not find it, and continued. The
netdev was created later: its driver was slow, or ib_ipoib was loaded late. Network
services without hot plug (ifup scripts, ifupdown) do not try again.

Remedy: load the modules before the network service starts, and wait for the netdev, as
ibprov.service does.",
    needles: &[seen::NOT_FOUND],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let Some(late) = seen::late(boot) else { return Vec::new() };
    let gap = late
        .made
        .when
        .since(&late.asked.when)
        .map_or(String::new(), |usec| format!(" {} s", usec / 1_000_000));
    let netdev = late.netdev;
    let (severity, end) = if late.recovered {
        (Severity::Warning, "the netdev was brought up later")
    } else {
        (Severity::Error, "no network service brought the netdev up")
    };
    vec![
        Finding::new(
            RULE.code,
            severity,
            Confidence::Medium,
            format!(
                "{netdev} was created{gap} after the network service had looked for it, and {end}."
            ),
        ).about(netdev)
        .quoting(seen::quotes(boot, [late.asked, late.made]))
        .now([format!("ip link set {netdev} up, or ifup {netdev}")]).permanent(["systemctl enable ibprov.service, so that the network service starts after the netdevs are present"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GOOD, LATE, RECOVERED, severity};
    use super::{RULE, Severity};

    #[test]
    fn a_netdev_that_comes_after_the_network() {
        assert_eq!(severity(&RULE, LATE), Some(Severity::Error));
        assert_eq!(severity(&RULE, RECOVERED), Some(Severity::Warning));
        assert_eq!(severity(&RULE, GOOD), None);
    }
}
