use super::super::evidence::state::NetdevSeen;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity};
use crate::check::pattern::has_word;
use crate::names::is_ipoib_name;

pub(super) const RULE: Rule = Rule {
    code: Code::NetdevAdminDown,
    meaning: "the netdev exists, but no network service has brought it up",
    page: "\
The port is Active and its IPoIB netdev exists, but is administratively down: no network
service has it in its configuration, or that service had finished before the netdev
appeared. If no program, command or configuration names the netdev, the finding is
information: a node that uses only verbs does not need the netdev.

Symptoms: `ip link` shows ib0 without UP; ibdev2netdev: mlx5_0 port 1 ==> ib0
(Down) while ibstat says that this port is Active. By itself (Down) of ibdev2netdev
only says that the netdev has no carrier.

Remedy: configure the interface in the network stack (an ifcfg file, a NetworkManager
profile, a .network file). To bring it up now:

    ip link set ib0 up",
    needles: &[],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let state = &boot.state;
    let is_ib = |n: &&NetdevSeen| n.infiniband || is_ipoib_name(&n.name);
    let active = state.ports.iter().any(|p| p.is_active() && p.may_be_infiniband());
    // ibdev2netdev names the port.
    let own_port_active = |n: &NetdevSeen| {
        n.port.as_ref().is_some_and(|(device, port)| {
            state.ports.iter().any(|p| p.is_active() && &p.device == device && &p.port == port)
        })
    };
    // One that may only lack carrier is taken for set down where its port is active.
    let is_active = |n: &NetdevSeen| if n.port.is_some() { own_port_active(n) } else { active };
    let is_down = |n: &&NetdevSeen| !n.up && (!n.operational_state_alone || is_active(n));
    let down: Vec<_> =
        state.netdevs.iter().filter(is_ib).filter(is_down).filter(|n| n.parent.is_none()).collect();
    let up = state.netdevs.iter().filter(is_ib).any(|n| n.up);
    // It may be active though others are up.
    let beside = up.then(|| down.iter().find(|n| own_port_active(n))).flatten();
    let Some(first) = beside.or(down.first()) else { return Vec::new() };
    let bad_ports = state.ports.iter().any(|p| !p.is_active() && p.infiniband != Some(false));
    // A second port that is not used, or a port that has no link at all.
    if up && beside.is_none() || bad_ports && !active {
        return Vec::new();
    }
    // Whether anybody wants it is not known while its port's state is not.
    let name = &first.name;
    let (severity, confidence) = match (active && !up, is_wanted(boot, name)) {
        (true, true) => (Severity::Error, Confidence::High),
        // A node that uses verbs alone has no need of it.
        (true, false) => (Severity::Info, Confidence::Medium),
        (false, _) => (Severity::Warning, Confidence::Medium),
    };
    vec![
        Finding::new(
            RULE.code,
            severity,
            confidence,
            format!("{name} exists, but no network service has brought it up."),
        )
        .about(name.as_str())
        .quoting(
            down.iter().take(8).map(|n| boot.quote_at(n.origin, "", &n.text)).collect::<Vec<_>>(),
        )
        .now([format!("ip link set {name} up, and assign an address to {name}")])
        .permanent([format!("name {name} in the configuration of the network service in use")]),
    ]
}

/// True if a program of user space, a command or a configuration names `netdev`.
fn is_wanted(boot: &Boot, netdev: &str) -> bool {
    let programs = boot.events.iter().filter(|e| !e.from_kernel());
    programs.into_iter().any(|e| has_word(&e.text, netdev))
        || boot.state.commands.iter().any(|c| has_word(&c.text, netdev))
        || boot.host.iter().flat_map(|host| &host.asked).any(|asked| asked.netdev == netdev)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ca, severity};
    use super::{RULE, Severity};

    #[test]
    fn one_that_nobody_asks_for_is_no_error() {
        let lines = [
            &ca(0, "MT4123", 1, "Active", "LinkUp"),
            "4: ib0: <BROADCAST,MULTICAST> mtu 4092 qdisc noop state DOWN",
            "    link/infiniband 00:00 brd ff",
        ];
        assert_eq!(severity(&RULE, &lines), Some(Severity::Info));
    }

    #[test]
    fn an_active_port_whose_netdev_is_down() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    &ca(0, "MT4123", 1, "Active", "LinkUp"),
                    "4: ib0: <BROADCAST,MULTICAST> mtu 4092 qdisc noop state DOWN",
                    "    link/infiniband 00:00 brd ff",
                    "Jan 02 10:00:03 n9 ifup[77]: bringing up ib0",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    &ca(0, "MT4123", 1, "Active", "LinkUp"),
                    "4: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4092",
                    "    link/infiniband 00:00 brd ff",
                    "5: ib1: <BROADCAST,MULTICAST> mtu 4092",
                    "    link/infiniband 00:00 brd ff",
                ]
            ),
            None
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    &ca(0, "MT4123", 1, "Down", "Polling"),
                    "4: ib0: <BROADCAST,MULTICAST> mtu 4092 qdisc noop state DOWN",
                    "    link/infiniband 00:00 brd ff",
                ]
            ),
            None
        );
    }
}
