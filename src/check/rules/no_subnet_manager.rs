use super::{Boot, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: "no-subnet-manager",
    meaning: "the port stays in Initializing: no subnet manager has configured it",
    page: "\
The cable is in and the link is up, and no subnet manager has given the port a LID
and made it active. Every InfiniBand fabric needs one: in a managed switch, or
opensm on a host. Until then ibstat shows State: Initializing, SM lid 0, and IPoIB
has no carrier.

What to do: sminfo; start opensm on one host of the fabric (or switch it on in the
switch); with two fabrics, one for each port: opensm -g GUID.

A VF that stays in Initializing while its PF is Active is another thing
(opensm-virt-disabled).",
    needles: &[&[
        "logical state changed to PORT_INIT",
        "logical state changed to PORT_A",
        "PORT_INIT",
        "sminfo: iberror",
        "sminfo",
        "maybe no SM is running",
        "Couldn't open port",
        "manage_subnet",
    ]],
    causes: &["netdev-admin-down", "wait-online-timeout", "mount-before-ipoib"],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let waiting: Vec<_> = boot
        .state
        .ports
        .iter()
        .filter(|p| p.state == "init" && p.may_be_infiniband() && !p.is_vf())
        .filter(|p| p.physical.is_empty() || p.physical == "linkup")
        .collect();
    let active = boot.state.ports.iter().any(|p| p.is_active() && p.may_be_infiniband());
    // hfi1 names the states in the log.
    let inits: Vec<_> = boot.with("logical state changed to PORT_INIT").collect();
    let stuck = inits.last().filter(|init| {
        let later = |e: &&super::Event| e.origin > init.origin;
        let moved = boot
            .with_any(&[
                "logical state changed to PORT_ARMED",
                "logical state changed to PORT_ACTIVE",
            ])
            .any(|e| later(&e));
        // The log must go on long enough for a subnet manager to come by.
        let goes_on = boot
            .events
            .iter()
            .filter(later)
            .any(|e| e.when.since(&init.when).is_some_and(|t| t > 30_000_000));
        !moved && goes_on
    });
    // srp_daemon reads the port's SM LID. Without an agent of its own on the port the
    // kernel answers no subnet manager; SELinux can forbid that agent.
    let forbidden: Vec<_> = boot
        .with("manage_subnet")
        .filter(|e| e.text.contains("denied") && !e.text.contains("permissive=1"))
        .collect();
    let unanswered: Vec<_> = boot
        .with_any(&["sminfo: iberror", "maybe no SM is running"])
        .chain(boot.with("Couldn't open port").filter(|e| e.text.contains("for agents")))
        .chain(forbidden.iter().copied())
        .collect();
    let came = active || seen::sign_of_life(boot).is_some();
    if waiting.is_empty() && stuck.is_none() && (unanswered.is_empty() || came) {
        return Vec::new();
    }
    let name = waiting.first().map_or_else(|| "the port".to_owned(), |p| p.name());
    let (severity, confidence) = match (active, waiting.is_empty()) {
        (false, false) => (Severity::Error, Confidence::High),
        (true, false) => (Severity::Warning, Confidence::Medium),
        (_, true) => (Severity::Error, Confidence::Medium),
    };
    vec![
        Finding::new(
            RULE.code,
            severity,
            confidence,
            format!(
                "{name} has a link and stays in Initializing: no subnet manager has configured it."
            ),
        )
        .quoting(
            waiting
                .iter()
                .map(|p| boot.quote_at(p.origin, "", &format!("{}: {}", p.name(), p.text))),
        )
        .quoting(seen::quotes(boot, stuck.copied()))
        .quoting(seen::quotes(boot, unanswered))
        .chain(forbidden.first().map(|_| {
            "SELinux has denied manage_subnet, so the kernel does not answer the subnet manager on that port".to_owned()
        }))
        .advice(forbidden.first().map(|_| "ausearch -m avc | audit2allow: let what loads the modules manage_subnet; then load mlx5_ib again"))
        .advice([
            "sminfo (or ibdiagnet) from any host of the fabric: is there a subnet manager?",
            "systemctl enable --now opensm on one host, or switch it on in the managed switch",
            "two separate fabrics need one each: opensm -g PORT_GUID",
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ca, severity};
    use super::{RULE, Severity};

    #[test]
    fn initializing_is_no_cable_and_no_vf() {
        assert_eq!(
            severity(
                &RULE,
                &[&ca(0, "MT4123", 1, "Initializing", "LinkUp").replace("SM lid: 1", "SM lid: 0"),]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    &ca(0, "MT4123", 1, "Active", "LinkUp"),
                    &ca(1, "MT4123", 1, "Initializing", "LinkUp"),
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(severity(&RULE, &[&ca(0, "MT4123", 1, "Down", "Polling"),]), None);
        assert_eq!(severity(&RULE, &[&ca(0, "MT4123", 1, "Active", "LinkUp"),]), None);
        let srp = "Mar 22 07:12:19 n2 srp_daemon[4681]: SM LID is 0, maybe no SM is running";
        assert_eq!(severity(&RULE, &[srp]), Some(Severity::Error));
        let later =
            "Mar 22 07:12:49 n2 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        assert_eq!(severity(&RULE, &[srp, later]), None);
        let agents = "kernel: infiniband mlx5_0: Couldn't open port 1 for agents";
        let denied = "kernel: audit: type=1400 audit(1656357157.949:4): avc: denied { manage_subnet } for pid=7176 comm=\"systemd-modules\" device=mlx5_0 port_num=1 tclass=infiniband_endport permissive=0";
        assert_eq!(severity(&RULE, &[agents, denied]), Some(Severity::Error));
    }
}
