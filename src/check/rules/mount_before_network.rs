use super::mount_before_ipoib::{ib_here, no_network, over_ib};
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::MountBeforeNetwork,
    meaning: "a mount started before the network was up; InfiniBand is not involved",
    page: "\
A network file system was mounted before there was a route to its server or a name
server to find it, and no line of the log is about InfiniBand. The mount is not ordered
after network-online.target (_netdev in fstab does that), or no service that
network-online.target waits for is enabled.

Remedy: add _netdev to the line in fstab and enable NetworkManager-wait-online or
systemd-networkd-wait-online. With x-systemd.automount the file system is mounted at
its first use.",
    needles: &[&[
        "Failed to resolve server",
        "Temporary failure in name resolution",
        "Name or service not known",
        "could not resolve address",
        "Network is unreachable",
        "mount.nfs",
        "mount.cifs",
        "glusterfs",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot.events.iter().filter(|e| no_network(e)).collect();
    if lines.is_empty() || ib_here(boot) || boot.events.iter().any(over_ib) {
        return Vec::new();
    }
    let mounted = lines.last().is_some_and(|last| {
        boot.events.iter().any(|e| e.origin > last.origin && e.text.starts_with("Mounted /"))
    });
    let severity = if mounted { Severity::Warning } else { Severity::Error };
    vec![
        Finding::new(
            RULE.code,
            severity,
            Confidence::Medium,
            "A mount was tried before the network was up; no line of the log is about InfiniBand.",
        )
        .quoting(seen::quotes(boot, lines))
        .look(["systemctl is-enabled NetworkManager-wait-online.service systemd-networkd-wait-online.service"]).now(["mount -a"]).permanent(["add _netdev or x-systemd.automount to its line in /etc/fstab"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn nothing_of_infiniband_in_it() {
        assert_eq!(
            severity(&RULE, &["mount[8]: mount.nfs: Network is unreachable",]),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "mount[8]: mount.nfs: Network is unreachable",
                    "[ 5.1] IPv6: ADDRCONF(NETDEV_UP): ib0: link is not ready",
                ]
            ),
            None
        );
    }
}
