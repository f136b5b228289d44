use super::{Boot, Confidence, Finding, Judge, Kind, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: "healthy",
    meaning: "InfiniBand came up as it should",
    page: "\
Something that only happens when InfiniBand works was seen: a port is Active, an
IPoIB netdev has carrier or its final name, or a network service brought one up; and
no rule found an error. Warnings of drivers, renamed netdevs and cables that are not
plugged into a second port do not speak against it.",
    needles: &[
        "PORT_ACTIVE",
        "state ACTIVE",
        "4: ACTIVE",
        "IB: Port active",
        "Activation: successful",
        "Gained carrier",
        "SUBNET UP",
    ],
    causes: &[],
    judge: Judge::Rest(judge),
};

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    if findings.iter().any(|f| f.severity == Severity::Error) {
        return Vec::new();
    }
    let life = seen::sign_of_life(boot);
    let named = boot.events.iter().filter(|e| match &e.kind {
        Kind::NetdevRenamed { from, to } => seen::is_ib_netdev(from) || seen::is_ib_netdev(to),
        _ => {
            (e.text.contains("Activation: successful") || e.text.contains("Gained carrier"))
                && seen::ib_netdev_in(&e.text).is_some()
                || e.text.contains("SUBNET UP")
        }
    });
    let quotes = seen::quotes(boot, named);
    if life.is_none() && quotes.is_empty() {
        return Vec::new();
    }
    let confidence = if life.is_some() { Confidence::High } else { Confidence::Medium };
    vec![
        Finding::new(RULE.code, Severity::Info, confidence, "InfiniBand came up.")
            .quoting(life)
            .quoting(quotes),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn signs_of_life() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Apr 02 11:09:34 n9 openibd[23]: + /sbin/modprobe ib_ipoib",
                    "Apr 02 11:09:34 n9 kernel: mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)",
                    "Apr 02 11:09:34 n9 mlnx_interface_mgr.sh[28]: + log_msg 'OS is booting, will not run ifup on ib0'",
                    "Apr 02 11:09:43 n9 network[32]: Bringing up interface ib0:  [  OK  ]",
                ]
            ),
            Some(Severity::Info)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "CA 'mlx5_0'",
                    "\tCA type: MT4123",
                    "\tNode GUID: 0x02c9030000000001",
                    "\tPort 1:",
                    "\t\tState: Active",
                    "\t\tPhysical state: LinkUp",
                    "\t\tSM lid: 1",
                    "\t\tLink layer: InfiniBand",
                ]
            ),
            Some(Severity::Info)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Mar 18 10:29:53 n9 network[29]: Bringing up interface ib0:  ERROR     : [/etc/sysconfig/network-scripts/ifup-eth] Device ib0 does not seem to be present, delaying initialization.",
                    "Mar 18 10:31:13 n9 kernel: mlx5_core 0000:4b:00.0: MLX5E: StrdRq(0) RqSz(1024) StrdSz(256) RxCqeCmprss(0)",
                    "Mar 18 10:31:14 n9 mlnx_interface_mgr[13]: Setting up Mellanox network interface: ib0",
                    "Mar 18 10:31:14 n9 mlnx_interface_mgr[13]: OS is booting, will not run ifup on ib0",
                    "Mar 22 16:56:38 n9 network[58]: Bringing up interface ib0:  [  OK  ]",
                ]
            ),
            None
        );
        assert_eq!(
            severity(&RULE, &["[ 15.9] mlx5_core 0000:af:00.0 ibs4f0: renamed from ib0",]),
            Some(Severity::Info)
        );
    }
}
