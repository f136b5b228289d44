use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::IfcfgMismatch,
    meaning: "the network configuration fits no device",
    page: "\
A profile or ifcfg file names an interface or an address (HWADDR) that no device has:
the adapter was replaced, the name changed, or the file has all 20 bytes of an IPoIB
address, of which the first 12 change. A name is judged on a host too, and in the copy of
its tree, once all expected ports have their netdevs: a profile of NetworkManager, an
ifcfg or .network file or a line of interfaces(5) for ib5, where only ib0 and ib1 exist.

Symptoms: \"No suitable device found for this connection\", \"Device ib0 has
different MAC address than expected, ignoring\", \"Device ib0 does not seem to be
present\" for a device that never appears.

Remedy: compare HWADDR and the name with the interface. Only the last 8 bytes of an
IPoIB address are constant.

    ip link show",
    needles: &[&[
        "No suitable device found",
        "different MAC address than expected",
        "instead of configured address",
        "no suitable device",
        "device-not-running",
        "no-device",
        "does not match the profile",
        "mismatching interface",
        "unknown interface",
        "Ignoring unknown interface",
        "no such device",
        "No such device",
    ]],
    judge: Judge::Boot(judge),
};

const SAID: [&str; 7] = [
    "No suitable device found for this connection",
    "different MAC address than expected",
    "instead of configured address",
    "no suitable device found",
    "Ignoring unknown interface",
    "No suitable device found",
    "mismatching interface name",
];

fn judge(boot: &Boot) -> Vec<Finding> {
    let said: Vec<_> =
        boot.events.iter().filter(|e| SAID.iter().any(|w| e.text.contains(w))).collect();
    let lines = said;
    let Some(first) = lines.first() else { return Vec::new() };
    // An attempt that worked afterwards.
    let name = seen::not_found(first).or_else(|| seen::ib_netdev_in(&first.text));
    if name.is_some_and(|n| seen::came_up_after(boot, n, first)) {
        return Vec::new();
    }
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::Medium,
            format!("The network configuration fits no device: {}", first.text.trim()),
        )
        .quoting(seen::quotes(boot, lines))
        .look(["check that there is an RDMA device (ls /sys/class/infiniband): without one the driver is missing, and the configuration may be right", "compare names and addresses with the profile, of an IPoIB address the last 8 bytes: ip -d link", "nmcli -f NAME,DEVICE,FILENAME connection; grep -H -e HWADDR -e DEVICE /etc/sysconfig/network-scripts/ifcfg-*"]).permanent(["correct the name or address in the profile"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_profile_without_device() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "Oct 14 16:43:38 h network[26]: Bringing up interface ens8:  Error: Connection activation failed: No suitable device found for this connection.",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &["Oct 14 16:43:38 h network[26]: Bringing up interface ens8:  [  OK  ]",]
            ),
            None
        );
    }
}
