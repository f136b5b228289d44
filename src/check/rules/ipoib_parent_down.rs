use super::super::evidence::state::NetdevSeen;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::names::may_be_ipoib_name;

pub(super) const RULE: Rule = Rule {
    code: Code::IpoibParentDown,
    meaning: "an IPoIB child is up and its parent is down",
    page: "\
A child netdev (ib0.8001) shares the hardware queue of its parent (ib0). With mlx5's
enhanced IPoIB the child passes packets only while the parent is administratively
up; the child nevertheless shows carrier and an address.

Symptoms: `ip link`: ib0.8001@ib0 with UP and M-DOWN, ib0 without UP.

Remedy: bring the parent up (it needs no address):

    ip link set ib0 up

For every boot, add a configuration for the parent that is ordered before that of the
child (pre-up in /etc/network/interfaces).",
    needles: &[],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let netdevs = &boot.state.netdevs;
    let mut bad = Vec::new();
    for child in netdevs.iter().filter(|n| n.up && (n.infiniband || may_be_ipoib_name(&n.name))) {
        let parent = child
            .parent
            .as_deref()
            .or_else(|| child.name.split_once('.').map(|(p, _)| p))
            .and_then(|name| netdevs.iter().find(|n| n.name == name));
        if let Some(parent) = parent.filter(|p| !p.up && p.infiniband) {
            bad.push((child, Some(parent)));
        } else if child.parent_down {
            bad.push((child, parent));
        }
    }
    if bad.is_empty() {
        return Vec::new();
    }
    let parent_of = |(child, parent): &(&NetdevSeen, Option<&NetdevSeen>)| {
        let known = parent.map(|parent| parent.name.clone());
        known.or_else(|| child.parent.clone()).unwrap_or_else(|| "its parent".to_owned())
    };
    let children: Vec<&str> = bad.iter().map(|(child, _)| child.name.as_str()).collect();
    let mut parents: Vec<String> = bad.iter().map(parent_of).collect();
    parents.dedup();
    let told = match (&children[..], &parents[..]) {
        ([child], [parent]) => {
            format!("{child} is up and its parent {parent} is down, so that no packet passes.")
        }
        _ => format!(
            "{} are up and their parents are down ({}), so that no packet passes.",
            seen::all_of("interface", &children),
            parents.join(", ")
        ),
    };
    let quotes = bad.iter().flat_map(|(child, parent)| {
        [Some(*child), *parent].into_iter().flatten().map(|n| boot.quote_at(n.origin, "", &n.text))
    });
    vec![
        Finding::new(RULE.code, Severity::Error, Confidence::High, told)
            .about_if(seen::joined(&children))
            .quoting(quotes.collect::<Vec<_>>())
            .now(parents.iter().map(|parent| format!("ip link set {parent} up")))
            .permanent(parents.iter().map(|parent| {
                format!(
                    "add an interface entry for {parent} that is brought up before its children"
                )
            })),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn the_child_is_up_and_the_parent_is_not() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "4: ib0: <BROADCAST,MULTICAST> mtu 4092 qdisc noop state DOWN",
                    "    link/infiniband 00:00 brd ff",
                    "6: ib0.8001@ib0: <BROADCAST,MULTICAST,UP,LOWER_UP,M-DOWN> mtu 4092 qdisc mq",
                    "    link/infiniband 00:00 brd ff",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "4: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4092 qdisc mq state UP",
                    "    link/infiniband 00:00 brd ff",
                    "6: ib0.8001@ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4092 qdisc mq",
                ]
            ),
            None
        );
    }
}
