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
    let Some((_, netdev)) = lost.first() else { return Vec::new() };
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::Medium,
            format!(
                "{netdev} was brought up before the port had its P_Key, and has not noticed that the P_Key appeared."
            ),
        )
        .about(*netdev)
        .quoting(seen::quotes(boot, lost.iter().map(|(e, _)| *e)))
        .look(["check whether the port has the P_Key now: cat /sys/class/infiniband/*/ports/*/pkeys/* | sort -u"])
        .now([format!(
            "when ibstat reports the port as Active: ip link set {netdev} down; ip link set {netdev} up"
        )])
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
