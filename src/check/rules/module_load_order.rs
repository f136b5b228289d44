use super::super::pattern::caught;
use super::{Boot, Code, Confidence, Finding, Judge, Kind, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleLoadOrder,
    meaning: "modules were loaded in an order, or at a time, that loses an event",
    page: "\
An IPoIB child was brought up before the subnet manager had written its P_Key into the
port's table (the port was not yet active), and an older ib_ipoib does not notice when
the P_Key appears. The child stays down: \"P_Key 0x8001 is not found\". The usual reason
is that ib_ipoib and its children are set up as soon as the driver is loaded.

Remedy: bring the child up again. To avoid it, wait for the port to be Active before
children are brought up (ibprov wait-online; ib_umad before ib_ipoib in the module
list only adds delay). If it never works, the subnet manager does not assign the P_Key
to this port:

    smpquery -C DEVICE -P PORT pkeys LID",
    needles: &[&["is not found", "P_Key 0x"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lost: Vec<_> = boot
        .events
        .iter()
        .filter_map(|e| {
            let [netdev, _] = caught::<2>(&e.text, "{}: P_Key 0x{} is not found")?;
            Some((e, netdev.rsplit(' ').next().unwrap_or(netdev)))
        })
        .filter(|(e, netdev)| {
            !boot.events.iter().any(|l| {
                l.origin > e.origin
                    && matches!(&l.kind, Kind::LinkReady(name) if &**name == *netdev)
            })
        })
        .collect();
    if lost.is_empty() {
        return Vec::new();
    }
    let netdevs = seen::each(lost.iter().map(|(_, netdev)| *netdev));
    let was = if netdevs.len() > 1 { "were" } else { "was" };
    let of = seen::all_of("interface", &netdevs);
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::Medium,
            format!(
                "{of} {was} brought up before the port had its P_Key, which has appeared unnoticed since."
            ),
        )
        .about_if(seen::joined(&netdevs))
        .quoting(seen::quotes(boot, lost.iter().map(|(e, _)| *e)))
        .look(["check whether the port has the P_Key now: cat /sys/class/infiniband/*/ports/*/pkeys/* | sort -u"])
        .now(seen::for_each(
            "when ibstat reports the port as Active: ip link set {} down; ip link set {} up",
            &netdevs,
            "NETDEV",
        ))
        .permanent(["let children wait for the port: systemctl enable ibprov-wait-online.service"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_child_that_lost_its_pkey() {
        assert_eq!(
            severity(&RULE, &["[ 9.1] ib0.8001: P_Key 0x8001 is not found",]),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 9.1] ib0.8001: P_Key 0x8001 is not found",
                    "[ 12.1] IPv6: ADDRCONF(NETDEV_CHANGE): ib0.8001: link becomes ready",
                ]
            ),
            None
        );
    }
}
