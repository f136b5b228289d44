use super::{Advice, Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};
use crate::names::MadPort;
use crate::report::status::Role;

pub(super) const RULE: Rule = Rule {
    code: Code::NoSubnetManager,
    meaning: "the port stays in Initializing: no subnet manager has configured it",
    page: "\
The cable is connected and the link is up, and no subnet manager has assigned a LID to
the port and set it active. Every InfiniBand fabric needs one: in a managed switch, or
opensm on a host. Until then ibstat shows State: Initializing, SM lid 0, and IPoIB
has no carrier. IPoIB repeats \"multicast join failed for ff12:401b...\" with status -110.

Remedy: start opensm (opafm for Omni-Path) on one host of the fabric, or enable the subnet
manager of the switch. If two fabrics are connected, start one opensm for each port
(opensm -g GUID). Where other ports of the node are Active there is a subnet manager, and
a second one does harm: find out there why it does not configure this port.
To query the subnet manager:

    sminfo -C DEVICE -P PORT

A VF that stays in Initializing while its PF is Active has another cause
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
        "multicast join failed for",
    ]],
    judge: Judge::Boot(judge),
};

/// `others`: further ports of this node are active, so that the fabric has a subnet manager,
/// and a second one would do harm.
fn advice(ports: &[MadPort], others: bool) -> Vec<Advice> {
    let look = |port: &MadPort| {
        Advice::look(format!("check whether the fabric has a subnet manager: sminfo {port}"))
    };
    let mut all: Vec<Advice> = ports.iter().map(look).collect();
    if others {
        all.push(Advice::look(
            "in the log of the subnet manager that serves the other ports, look for the GUID of this one: it may be excluded, or in another fabric",
        ));
        return all;
    }
    all.push(Advice::now(
        "systemctl enable --now opensm (opafm for Omni-Path) on one host, or enable the subnet manager of the managed switch",
    ));
    all.push(Advice::permanent(
        "two separate fabrics need a subnet manager each: opensm -g PORT_GUID",
    ));
    all
}

/// Joins of the broadcast group that nobody answered (-ETIMEDOUT), so many and so
/// long that they are no delay of the fabric's.
fn unheard(boot: &Boot) -> Vec<&Event> {
    const MANY: usize = 3;
    const LONG: i64 = 20_000_000;
    let lines: Vec<_> = boot
        .with("multicast join failed for")
        .filter(|e| e.text.contains("status -110") && e.text.contains("ff12:401b"))
        .collect();
    let long = lines
        .first()
        .zip(lines.last())
        .is_some_and(|(first, last)| last.when.since(&first.when).is_some_and(|usec| usec >= LONG));
    if lines.len() >= MANY && long { lines } else { Vec::new() }
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let waiting: Vec<_> = boot
        .state
        .ports
        .iter()
        .filter(|p| p.state == "init" && p.may_be_infiniband() && !p.is_vf())
        .filter(|p| p.role.is_none_or(|role| role == Role::Expected))
        .filter(|p| p.physical.is_empty() || p.physical == "linkup")
        .collect();
    let active = boot.state.ports.iter().any(|p| p.is_active() && p.may_be_infiniband());
    // hfi1 names the states in the log.
    let inits: Vec<_> = boot.with("logical state changed to PORT_INIT").collect();
    let stuck = inits.last().filter(|init| {
        let later = |e: &&Event| e.origin > init.origin;
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
    let unheard = if came { Vec::new() } else { unheard(boot) };
    if waiting.is_empty() && stuck.is_none() && unanswered.is_empty() && !unheard.is_empty() {
        return vec![
            Finding::new(
                RULE.code,
                Severity::Warning,
                Confidence::Medium,
                "The subnet manager does not answer: IPoIB asks repeatedly to join its broadcast group, and is never ready.",
            )
            .quoting(seen::quotes(boot, unheard))
            .steps(advice(&[MadPort::default()], false)),
        ];
    }
    if waiting.is_empty() && stuck.is_none() && (unanswered.is_empty() || came) {
        return Vec::new();
    }
    let all: Vec<String> = waiting.iter().map(|p| p.name()).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut mad_ports: Vec<MadPort> = waiting.iter().map(|port| port.mad_port()).collect();
    if mad_ports.is_empty() {
        mad_ports.push(MadPort::default());
    }
    let others = active && !waiting.is_empty();
    let has = if all.len() > 1 { "have a link and stay" } else { "has a link and stays" };
    let why = match others {
        true => "not configured by the subnet manager, while the others of this node are",
        false => "no subnet manager has configured the port",
    };
    let (severity, confidence) = match (active, waiting.is_empty()) {
        (false, false) => (Severity::Error, Confidence::High),
        (true, false) => (Severity::Warning, Confidence::Medium),
        (_, true) => (Severity::Error, Confidence::Medium),
    };
    // As status has it of the same host.
    let of_host = seen::inactive(boot).filter(|_| !waiting.is_empty());
    let (severity, confidence) =
        of_host.map_or((severity, confidence), |severity| (severity, Confidence::High));
    vec![
        Finding::new(
            RULE.code,
            severity,
            confidence,
            format!("{} {has} in Initializing: {why}.", seen::all_of("port", &all)),
        )
        .about_if(seen::names(waiting.iter().copied()))
        .quoting(
            waiting
                .iter()
                .map(|p| boot.quote_at(p.origin, "", &p.told())),
        )
        .quoting(seen::quotes(boot, stuck.copied()))
        .quoting(seen::quotes(boot, unanswered))
        .chain(forbidden.first().map(|_| {
            "SELinux has denied manage_subnet, so that the kernel does not answer the subnet manager on that port".to_owned()
        }))
        .permanent(forbidden.first().map(|_| "allow manage_subnet to the domain that loads the modules (ausearch -m avc | audit2allow), then load mlx5_ib again"))
        .steps(advice(&mad_ports, others)),
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

    #[test]
    fn joins_that_nobody_answers() {
        let join = |at: u32, status: &str| {
            format!(
                "[{at:5}.1] ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status {status}"
            )
        };
        let told = |status: &str, ats: &[u32], last: &str| {
            let mut lines: Vec<String> = ats.iter().map(|at| join(*at, status)).collect();
            lines.push(last.to_owned());
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            severity(&RULE, &lines)
        };
        assert_eq!(told("-110", &[33, 37, 45, 61], ""), Some(Severity::Warning));
        // A fabric that starts answers late, and with errors of its own.
        assert_eq!(told("-110", &[33, 34, 36], ""), None);
        assert_eq!(told("-22", &[33, 37, 45, 61], ""), None);
        let ready = "[   80.0] IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        assert_eq!(told("-110", &[33, 37, 45, 61], ready), None);
    }
}
