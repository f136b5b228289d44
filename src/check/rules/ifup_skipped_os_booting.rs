use super::super::pattern::{caught_one, word};
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::IfupSkippedOsBooting,
    meaning: "mlnx_interface_mgr left the interface to a network service that had already given up",
    page: "\
mlnx_interface_mgr runs when a netdev appears. While it considers the system to be
booting it does not run ifup, and leaves that to the network service. The line \"OS is
booting, will not run ifup\" is in every good boot in which the network service starts
later. If the network service has already looked for the interface, neither of the two
brings the interface up.

Remedy: correct the cause of the late netdev (the finding above). To bring the
interface up now:

    ifup ib0",
    needles: &[&["OS is booting, will not run ifup"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let skipped = boot.with("OS is booting, will not run ifup").find_map(|e| {
        let netdev = word(caught_one(&e.text, "will not run ifup on {}")?);
        let asked = boot
            .events
            .iter()
            .find(|a| a.origin < e.origin && seen::not_found(a) == Some(netdev))?;
        (!seen::came_up_after(boot, netdev, e)).then_some((e, netdev, asked))
    });
    let Some((event, netdev, asked)) = skipped else { return Vec::new() };
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::High,
            format!("mlnx_interface_mgr did not bring {netdev} up, and the network service had already given up on it."),
        ).about(netdev)
        .quoting(seen::quotes(boot, [asked, event]))
        .now([format!("ifup {netdev}")]).permanent(["systemctl enable ibprov.service, so that the netdev is present before the network service looks for it"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GOOD, LATE, RECOVERED, severity};
    use super::{RULE, Severity};

    #[test]
    fn only_where_the_network_had_given_up() {
        assert_eq!(severity(&RULE, LATE), Some(Severity::Error));
        assert_eq!(severity(&RULE, RECOVERED), None);
        assert_eq!(severity(&RULE, GOOD), None);
    }
}
