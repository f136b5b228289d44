use super::super::evidence::state::NetdevSeen;
use super::{Boot, Code, Confidence, Event, Finding, Judge, Kind, Rule, Severity, seen};
use crate::names::{is_ipoib_name, is_kernel_ipoib_name};

pub(super) const RULE: Rule = Rule {
    code: Code::NetdevRenamed,
    meaning: "the configuration names a netdev that udev has renamed",
    page: "\
The kernel calls IPoIB netdevs ib0, ib1; udev renames them by their place (ibp65s0,
ibs4f0) unless net.ifnames=0 or a rule keeps the names. A configuration that still names
ib0 finds no such netdev. A rename by itself is normal.

Symptoms: \"ibp1s0: renamed from ib0\", and a network service that does not find
ib0.

Remedy: use the new name in the configuration, or set the name in a .link file by the
last 8 bytes of the address (the port GUID), which are constant.",
    needles: &[&["renamed from"]],
    judge: Judge::Boot(judge),
};

/// A kernel name is asked for, and `ip link` shows only netdevs of other names.
fn shown_otherwise(boot: &Boot) -> Option<(&Event, &str, &NetdevSeen)> {
    let asked = |e| seen::not_found(e).filter(|n| is_ipoib_name(n)).map(|n| (e, n));
    let (event, name) = boot.events.iter().filter_map(asked).next_back()?;
    let kernels = is_kernel_ipoib_name(name);
    let netdevs = &boot.state.netdevs;
    let other = netdevs.iter().find(|n| n.infiniband && n.parent.is_none())?;
    (kernels && netdevs.iter().all(|n| n.name != name)).then_some((event, name, other))
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let found =
        boot.events.iter().find_map(|asked| {
            let name = seen::not_found(asked)?;
            let (renamed, to) = boot.events.iter().find_map(|e| match &e.kind {
                Kind::NetdevRenamed { from, to } if &**from == name && &**to != name => {
                    Some((e, to))
                }
                _ => None,
            })?;
            let back = boot.events.iter().any(|e| match &e.kind {
                Kind::NetdevRenamed { to, .. } => &**to == name && e.origin > renamed.origin,
                Kind::InterfaceAsked { name: n, worked: Some(true) } => &**n == name,
                _ => false,
            });
            (!back && (is_ipoib_name(name) || seen::rdma_module(&renamed.text).is_some()))
                .then_some((asked, renamed, name, to.to_string()))
        });
    let (asked, name, to, confidence, quotes) = match (found, shown_otherwise(boot)) {
        (Some((asked, renamed, name, to)), _) => {
            (asked, name, to, Confidence::High, vec![boot.quote(renamed)])
        }
        (None, Some((asked, name, netdev))) => {
            let quote = boot.quote_at(netdev.origin, "", &netdev.text);
            (asked, name, netdev.name.clone(), Confidence::Medium, vec![quote])
        }
        (None, None) => return Vec::new(),
    };
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            confidence,
            format!("The configuration names {name}, which udev has renamed to {to}."),
        ).about(name)
        .quoting(quotes)
        .quoting(seen::quotes(boot, [asked]))
        .permanent([format!("replace {name} by {to} in the network configuration"), format!("or keep {name}, with a .link file in /etc/systemd/network that matches the last 8 bytes of the address")]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn only_where_the_old_name_is_asked_for() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 9.1] mlx5_core 0000:01:00.0 ibp1s0: renamed from ib0",
                    "[ 12.1] systemd[1]: x",
                    "ifup[9]: Cannot find device \"ib0\"",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["[ 9.1] mlx5_core 0000:01:00.0 ibp1s0: renamed from ib0",]),
            None
        );
    }

    #[test]
    fn ip_shows_the_netdev_by_another_name() {
        let asked = "ifup[9]: Cannot find device \"ib0\"";
        let shown = |name: &str| {
            format!("4: {name}: <BROADCAST,MULTICAST> mtu 4092\n    link/infiniband 00:00 brd ff")
        };
        assert_eq!(severity(&RULE, &[asked, &shown("ibp1s0")]), Some(Severity::Error));
        assert_eq!(severity(&RULE, &[asked, &shown("ib0")]), None);
        let other = "ifup[9]: Cannot find device \"ibp7s0\"";
        assert_eq!(severity(&RULE, &[other, &shown("ibp1s0")]), None);
    }
}
