use std::collections::BTreeSet;

use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::check::evidence::state::{NetdevSeen, PortSeen};

pub(super) const RULE: Rule = Rule {
    code: Code::PortNotActive,
    meaning: "an expected port of this host has its netdev, and the fabric does not use the port",
    page: "\
The driver works and the port has its name, and its link is not up, or no subnet manager
has made it Active and given it a LID; a port in Ethernet mode has no carrier, or no GID
of type RoCE v2. boot does not wait for that, so that its own verdict is another one.

The node is ready with exceptions (exit 1). It is not ready (exit 3) if no expected port
is active, or with boot.at-least if fewer than that are.

A port that is meant to be dark, such as the second one of an adapter without a cable, is
a note if the configuration says so (exit 0):

    [[port]]
    pci = \"0000:5e:00.0\"
    port = 2
    required = false

or is not expected at all:

    [boot]
    ignore = [\"0000:5e:00.0\"]

Of a log or a dump it is a warning where an IPoIB netdev is up without carrier, and
nothing shows its port or another one that is in use: the port is not Active, or IPoIB
has not joined the broadcast group of its subnet. ibstat tells which.

Symptoms: State: Down, Initializing or Armed in ibstat; NO-CARRIER in ip link; (Down)
in ibdev2netdev.

Remedy: follow the advice of the finding. To see all ports and their states, and to wait
until they are active:

    ibprov status
    ibprov wait-online",
    needles: &[],
    // Of a host its judgement tells them.
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let is_judged = boot.host.as_ref().is_some_and(|host| host.judgement.is_some());
    idle(boot).filter(|_| !is_judged).into_iter().collect()
}

/// What dumps show of a netdev without carrier, where they do not show its port.
fn idle(boot: &Boot) -> Option<Finding> {
    let is_idle = |n: &&NetdevSeen| {
        let is_lacking = n.carrier == Some(false) && (n.up || n.operational_state_alone);
        n.infiniband && n.parent.is_none() && is_lacking
    };
    let netdevs: Vec<&NetdevSeen> = boot.state.netdevs.iter().filter(is_idle).collect();
    let first = netdevs.first()?;
    let shows_ports = boot.state.ports.iter().any(PortSeen::may_be_infiniband);
    if shows_ports || seen::sign_of_life(boot).is_some() || boot.fold().bad().next().is_some() {
        return None;
    }
    let names: BTreeSet<&str> = netdevs.iter().map(|netdev| netdev.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let what = if first.up { "no carrier" } else { "no carrier, or is set down" };
    let summary = format!(
        "{} has {what}: its port is not Active, or it has not joined the broadcast group of its subnet.",
        names.join(", ")
    );
    Some(
        Finding::new(RULE.code, Severity::Warning, Confidence::Medium, summary)
            .about(names.join(", "))
            .quoting(netdevs.iter().take(8).map(|n| boot.quote_at(n.origin, "", &n.text)))
            .look(["ibstat", "ip -d link"]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{host, port};
    use crate::check::evidence::state::PortSeen;
    use crate::check::rank;
    use crate::report::common::Code;
    use crate::report::finding::Severity;
    use crate::report::status::Role;

    /// What is told of such a host: severity, code, object and cause.
    fn told(ports: Vec<PortSeen>, named: &[(&str, Severity)]) -> Vec<String> {
        let all = rank::judge(&host(ports, named)).into_iter();
        all.filter(|finding| {
            ![Code::Healthy, Code::NotInfiniband, Code::Unknown].contains(&finding.code)
        })
        .map(|f| {
            let object = f.object.unwrap_or_default();
            format!("{} {} {object} <- {}", f.severity, f.code, f.caused_by.map_or("-", Code::name))
        })
        .collect()
    }

    #[test]
    fn each_port_has_the_cause_that_is_its_own() {
        use Role::Expected;
        let ports = vec![
            port("a", "down", "polling", Expected),
            port("b", "init", "linkup", Expected),
            port("c", "armed", "linkup", Expected),
            port("d", "active", "linkup", Expected),
        ];
        let named = ["a", "b", "c"].map(|device| (device, Severity::Warning));
        assert_eq!(
            told(ports, &named),
            [
                "warning no-subnet-manager b port 1 <- -",
                "warning link-down-cable a port 1 <- -",
                "warning port-not-active a port 1 (0000:4b:00.0) <- link-down-cable",
                "warning port-not-active b port 1 (0000:4b:00.0) <- no-subnet-manager",
                "warning port-not-active c port 1 (0000:4b:00.0) <- -",
            ]
        );
    }

    #[test]
    fn what_explains_it_is_as_grave() {
        let dark = || port("a", "down", "polling", Role::Expected);
        let active = port("b", "active", "linkup", Role::Unexpected);
        let both = [
            "error link-down-cable a port 1 <- -",
            "error port-not-active a port 1 (0000:4b:00.0) <- link-down-cable",
        ];
        assert_eq!(told(vec![dark(), active], &[("a", Severity::Error)]), both);
        let optional = || port("a", "down", "polling", Role::Optional);
        assert_eq!(
            told(vec![optional()], &[("a", Severity::Info)]),
            ["note port-not-active a port 1 (0000:4b:00.0) <- -"]
        );
        let ignored = port("a", "down", "polling", Role::Unexpected);
        assert_eq!(told(vec![ignored], &[]), ["note link-down-cable a port 1 <- -"]);
        let init = port("a", "init", "linkup", Role::Optional);
        assert_eq!(
            told(vec![init], &[("a", Severity::Info)]),
            ["note port-not-active a port 1 (0000:4b:00.0) <- -"]
        );
    }
}
