use super::{Boot, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: "driver-unload-under-remote-root",
    meaning: "the driver that carries the root disk was unloaded",
    page: "\
The root file system comes over the network (iSCSI, iSER, NVMe over fabrics, SRP,
NFS), and the driver of the card that carries it was unloaded, as openibd restart
does. From then on every program that is not in memory hangs: I/O errors of the
disk without a word of a disk controller, then hung tasks of the journal and of the
file system's own threads.

What to do: never unload that driver (ALLOW_STOP=no in openib.conf; ibprov unloads
nothing). The host must be reset.",
    needles: &[&[
        "I/O error, dev",
        "blocked for more than",
        "jbd2/",
        "connection1:0",
        "session recovery timed out",
        "detected conn error",
        "iSCSI",
        "iscsi",
        "rejecting I/O to offline device",
        "Buffer I/O error",
        "Sense Key",
        "exception Emask",
        "Medium Error",
        "failed command:",
        "nvme nvme",
        "Unloading HCA driver",
        "rmmod",
        "modprobe -r",
        "EXT4-fs error",
        "XFS (",
    ]],
    causes: &["driver-regression"],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let errors: Vec<_> = boot
        .with("I/O error, dev")
        .filter(|e| {
            e.text.contains("dev sd") || e.text.contains("dev dm-") || e.text.contains("dev nvme")
        })
        .collect();
    let root_hangs: Vec<_> = boot
        .with("blocked for more than")
        .filter(|e| {
            ["jbd2/", "systemd-journal", "xfsaild", "xfs-", "systemd:1 "]
                .iter()
                .any(|w| e.text.contains(w))
        })
        .collect();
    // A disk of its own that fails says so through its controller.
    let local = boot
        .with_any(&["Sense Key", "exception Emask", "Medium Error", "failed command:"])
        .next()
        .is_some();
    let remote: Vec<_> = boot
        .with_any(&["session recovery timed out", "detected conn error", "connection1:0"])
        .collect();
    let unloaded: Vec<_> = boot
        .with_any(&["Unloading HCA driver", "rmmod", "modprobe -r"])
        .filter(|e| e.text.contains("HCA") || seen::rdma_module(&e.text).is_some())
        .collect();
    if errors.is_empty() || root_hangs.is_empty() || local {
        return Vec::new();
    }
    let confidence = match (remote.is_empty(), unloaded.is_empty()) {
        (false, _) | (_, false) => Confidence::High,
        (true, true) => Confidence::Low,
    };
    // A disk that went away is a failure whoever took it.
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            confidence,
            "The root disk went away without an error of a disk controller, and the system hangs: as when the driver that carries a remote root is unloaded.",
        )
        .quoting(seen::quotes(boot, unloaded.into_iter().chain(remote).chain(errors)))
        .quoting(seen::quotes(boot, root_hangs))
        .advice([
            "reset the host; findmnt / and lsblk -S show whether the root comes over the network",
            "ALLOW_STOP=no in /etc/infiniband/openib.conf; no modprobe -r of the card's driver on this host",
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_disk_that_fails_by_itself_is_none() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[  331.2] I/O error, dev sda, sector 35602992 op 0x0:(READ) flags 0x80700 phys_seg 33 prio class 0",
                    "[  528.8] INFO: task jbd2/sda1-8:1128 blocked for more than 123 seconds.",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[  331.2] I/O error, dev sda, sector 35602992 op 0x0:(READ) flags 0x80700 phys_seg 33 prio class 0",
                    "[  528.8] INFO: task jbd2/sda1-8:1128 blocked for more than 123 seconds.",
                    "[  331.2] sd 0:0:0:0: [sda] tag#1 Sense Key : Medium Error [current]",
                ]
            ),
            None
        );
    }
}
