use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::MountBeforeIpoib,
    meaning: "a mount or LNet started before IPoIB could be used",
    page: "\
A file system over InfiniBand was mounted, or LNet was configured, before its netdev had
an address and carrier: NFS over RDMA or over IPoIB, Lustre (o2ib), BeeGFS, iSER.
network-online.target does not help if another interface makes the network \"online\"
first; systemd's remote mounts wait for that target only.

Symptoms: LNet: \"couldn't query intf ib0\", \"Error -100 starting up LNI o2ib\";
mount.nfs: \"Network is unreachable\" for a server that is reached over ib0.

Remedy: order the mount after the port: ibprov-wait-online.service before
remote-fs-pre.target, or x-systemd.after= in fstab; for LNet a drop-in
After=ibprov-wait-online.service for lnet.service.",
    needles: &[&[
        "starting up LNI o2ib",
        "query IPoIB interface",
        "query intf",
        "Can't load LND o2ib",
        "kiblnd",
        "o2ib",
        "LNet",
        "LNetError",
        "lnetctl",
        "mount.nfs",
        "mount.lustre",
        "rpcrdma:",
        "Network is unreachable",
        "No route to host",
        "proto=rdma",
        "beegfs",
        "Mount unit",
        "Failed to mount",
        "Mounting ",
        "Mounted ",
        "iser: ",
        "NFSv4",
        "mounting",
        "xprtrdma",
        "Dependency failed for ",
        "mount[",
    ]],
    judge: Judge::Boot(finds),
};

/// LNet or the RDMA transport says so itself.
pub(super) fn over_ib(event: &Event) -> bool {
    let t = &event.text;
    let lnet = (t.contains("starting up LNI o2ib")
        || t.contains("query IPoIB interface")
        || ["kiblnd_startup", "kiblnd_dev_", "kiblnd_create_dev"].iter().any(|w| t.contains(w)))
        && !t.contains("Unknown symbol")
        || t.contains("query intf") && seen::ib_netdev_in(t).is_some()
        || t.contains("LNet")
            && seen::ib_netdev_in(t).is_some()
            && (t.contains("it's down") || t.contains("rror") || t.contains("Invalid"));
    let nfs = (t.contains("mount.nfs") || t.contains("mount.lustre") || t.contains("mount["))
        && t.contains("rdma")
        && !t.contains("Protocol not supported");
    lnet || nfs
}

/// A mount that found no network.
pub(super) fn no_network(event: &Event) -> bool {
    let t = &event.text;
    let mount = ["mount.", "mount[", "mounting", "NFS", "nfs", "glusterfs", "ceph", "cifs"]
        .iter()
        .any(|w| t.contains(w))
        || event.program.contains("mount");
    mount
        && [
            "Network is unreachable",
            "No route to host",
            "Failed to resolve server",
            "Temporary failure in name resolution",
            "Name or service not known",
            "Connection timed out",
            "could not resolve address",
            "Network is down",
            "Cannot assign requested address",
        ]
        .iter()
        .any(|w| t.contains(w))
}

/// True if the boot's lines speak of InfiniBand as the way to the server.
pub(super) fn ib_here(boot: &Boot) -> bool {
    boot.events.iter().any(|e| {
        seen::ib_netdev_in(&e.text).is_some()
            || [
                "o2ib",
                "ib_ipoib",
                "openibd",
                "ipoib",
                "IPoIB",
                "nfiniBand",
                "rpcrdma",
                "proto=rdma",
            ]
            .iter()
            .any(|w| e.text.contains(w))
    }) || boot.state.netdevs.iter().any(|n| n.infiniband)
        || !boot.state.ports.is_empty()
}

pub(super) fn finds(boot: &Boot) -> Vec<Finding> {
    let said: Vec<_> = boot.events.iter().filter(|e| over_ib(e)).collect();
    let generic: Vec<_> = boot.events.iter().filter(|e| no_network(e)).collect();
    let (lines, confidence) = if !said.is_empty() {
        (said, Confidence::High)
    } else if !generic.is_empty() && ib_here(boot) {
        (generic, Confidence::Medium)
    } else if generic.iter().any(|e| e.text.contains("Network is unreachable")) {
        // Whether the way goes over InfiniBand is not in the log.
        return vec![
            Finding::new(
                RULE.code,
                Severity::Info,
                Confidence::Low,
                "If the server is reached over IPoIB, the mount was tried before the port was active.",
            )
            .quoting(seen::quotes(boot, generic))
            .look(["check whether the route uses an IPoIB netdev: ip route get SERVER"]),
        ];
    } else {
        return Vec::new();
    };
    let Some(last) = lines.last() else { return Vec::new() };
    let mounted = boot.events.iter().any(|e| {
        e.origin > last.origin
            && (e.text.starts_with("Mounted /")
                || e.text.contains("LNet: Added LNI") && e.text.contains("o2ib"))
    });
    let (severity, end) = if mounted {
        (Severity::Warning, "; a later attempt succeeded")
    } else {
        (Severity::Error, "")
    };
    vec![
        Finding::new(
            RULE.code,
            severity,
            confidence,
            format!("A mount or LNet was started before IPoIB could be used{end}: {}", last.text.trim()),
        ).about_if(Some(&last.unit).filter(|unit| !unit.is_empty()))
        .quoting(seen::quotes(boot, lines))
        .now(["mount -a, or systemctl restart lnet"]).permanent(["systemctl enable ibprov-wait-online.service, so that network-online.target waits for the port", "LNet: add a drop-in for lnet.service with After= and Requires=ibprov-wait-online.service", "NFS: add x-systemd.requires=ibprov-wait-online.service in fstab"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn lnet_or_nfs_over_infiniband() {
        assert_eq!(
            severity(&RULE, &["lnetctl[30]: descr: \"couldn't query intf ib0\"",]),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 30.1] LNetError: 105-4:0:(x.c:1:y()) Error -100 starting up LNI o2ib",
                    "[ 40.1] LNet: Added LNI 10.1.1.1@o2ib [8/256/0/180]",
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(&RULE, &["mount[8]: mount.nfs: Network is unreachable",]),
            Some(Severity::Info)
        );
        assert_eq!(severity(&RULE, &["mount[8]: mount.nfs: access denied by server",]), None);
    }
}
