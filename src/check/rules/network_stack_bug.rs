use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};
use crate::names::{RDMA_MODULES, is_ipoib_name};

pub(super) const RULE: Rule = Rule {
    code: Code::NetworkStackBug,
    meaning: "a fault or a missing feature of the network manager in use",
    page: "\
The netdev exists, and the program that configures the network does not support it:
NetworkManager has to set connected mode on a kernel without it (\"the device could not
be readied for configuration\"), a renderer writes no InfiniBand type, a DHCP client
cannot use a 20-byte address, or a generator refuses the type of the interface.

Remedy: use another version of the program, datagram mode, a static address, or another
network service for this interface.",
    needles: &[&[
        "could not be readied for configuration",
        "nfiniband",
        "nfiniBand",
        "IPoIB",
        "ipoib",
        "ib0",
        "ib1",
        "ib2",
        "ib3",
        " ibp",
        "(ibp",
        "'ibp",
        " ibs",
        "(ibs",
        "'ibs",
        " ibo",
        "(ibo",
        "ib_ipoib",
    ]],
    judge: Judge::Boot(judge),
};

fn of_network_manager(event: &Event) -> bool {
    [
        "NetworkManager",
        "systemd-networkd",
        "wicked",
        "netplan",
        "cloud-init",
        "dhclient",
        "dhcpcd",
        "ifup",
        "nm-",
        "networkd",
        "python3",
        "initrd",
    ]
    .iter()
    .any(|p| event.program.contains(p))
        || event.program.is_empty()
}

fn is_fault(event: &Event) -> bool {
    let t = &event.text;
    let low = t.to_ascii_lowercase();
    let names_ib =
        low.contains("infiniband") || low.contains("ipoib") || seen::ib_netdev_in(t).is_some();
    if t.contains("could not be readied for configuration") {
        return true;
    }
    names_ib
        && [
            "config-failed",
            "activation: failed for connection",
            "state change: config -> failed",
            "unsupported device type",
            "unsupported hardware type",
            "unknown device type",
            "unknown interface type",
            "failed to set mode",
            "bond config is using infiniband",
            "invalid hardware address",
            "hardware address length",
            "invalid mac address",
            "could not process link message",
            "assertion",
            "keyerror",
            "valueerror",
            "traceback",
            "dumped core",
        ]
        .iter()
        .any(|w| low.contains(w))
}

fn judge(boot: &Boot) -> Vec<Finding> {
    // What the kernel says of its own is no fault of a network manager.
    let lines: Vec<_> = boot
        .events
        .iter()
        .filter(|e| of_network_manager(e) && is_fault(e) && &*e.program != "kernel")
        .filter(|e| !e.program.is_empty() || !kernel_like(&e.text))
        .collect();
    let Some(first) = lines.first() else { return Vec::new() };
    // A later attempt that worked.
    let name = seen::ib_netdev_in(&first.text);
    let works = name.is_some_and(|n| {
        boot.events.iter().any(|e| {
            e.origin > first.origin
                && e.text.contains(n)
                && (e.text.contains("Activation: successful")
                    || e.text.contains("Gained carrier")
                    || e.text.contains("state change: secondaries -> activated"))
        })
    });
    let severity = if works { Severity::Warning } else { Severity::Error };
    vec![
        Finding::new(
            RULE.code,
            severity,
            Confidence::Medium,
            format!(
                "The network manager does not support the InfiniBand interface: {}",
                first.text.trim()
            ),
        )
        .quoting(seen::quotes(boot, lines))
        .now(["use datagram mode and a static address, which work if connected mode or DHCP do not"])
        .permanent([
            "look for a newer version of that program, and in its bug tracker for the interface type",
        ]),
    ]
}

/// True for a line of dmesg, which names no program: it begins with a driver or
/// a netdev.
fn kernel_like(text: &str) -> bool {
    let first = text.split([':', ' ']).next().unwrap_or_default();
    RDMA_MODULES.contains(&first)
        || is_ipoib_name(first)
        || first.starts_with("mlx")
        || first == "infiniband"
        || first == "IPv6"
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_manager_that_cannot_deal_with_the_kind() {
        assert_eq!(
            severity(
                &RULE,
                &["NetworkManager[1]: <warn> device (ib0): Activation: failed for connection 'ib'",]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "NetworkManager[1]: <warn> device (eth0): Activation: failed for connection 'lan'",
                ]
            ),
            None
        );
        let info = "NetworkManager[1]: <info> (ib0): driver 'ib_ipoib' does not support carrier detection.";
        assert_eq!(severity(&RULE, &[info]), None);
        assert_eq!(
            severity(&RULE, &["[ 5.1] ib0: multicast join failed for ff12:401b, unsupported",]),
            None
        );
    }
}
