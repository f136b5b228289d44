use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::DriverUnloadUnderRemoteRoot,
    meaning: "the driver that carries the root disk was unloaded",
    page: "\
The root file system comes over the network (iSCSI, iSER, NVMe over fabrics, SRP,
NFS), and the driver of the adapter that carries it was unloaded, as openibd restart
does. From then on every program that is not in memory hangs: the log has I/O errors of
the disk and no message of a disk controller, then hung tasks of the journal and of the
file system's own threads. If the log has no message of a session or an unload, any disk
may be the cause, and the finding is only a warning.

Remedy: reset the host. Never unload that driver: set ALLOW_STOP=no in openib.conf.
ibprov does not unload modules.",
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
        "EXT4-fs (",
        "XFS (",
    ]],
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
    // With the session gone the disk is taken offline and its file system read-only.
    let offline: Vec<_> = boot
        .with("rejecting I/O to offline device")
        .chain(
            boot.with("EXT4-fs (").filter(|e| e.text.contains("Remounting filesystem read-only")),
        )
        .filter(|_| !remote.is_empty())
        .collect();
    let errors: Vec<_> = errors.into_iter().chain(offline.iter().copied()).collect();
    let hangs = !root_hangs.is_empty() || offline.len() > 1;
    if errors.is_empty() || !hangs || local {
        return Vec::new();
    }
    // Without a word of either it may be any disk.
    let (severity, confidence) = match (remote.is_empty(), unloaded.is_empty()) {
        (false, _) | (_, false) => (Severity::Error, Confidence::High),
        (true, true) => (Severity::Warning, Confidence::Low),
    };
    vec![
        Finding::new(
            RULE.code,
            severity,
            confidence,
            "The root disk disappeared without an error of a disk controller, and the system hangs, which happens when the driver that carries a remote root is unloaded.",
        )
        .quoting(seen::quotes(boot, unloaded.into_iter().chain(remote).chain(errors)))
        .quoting(seen::quotes(boot, root_hangs))
        .look(["check whether the root file system is reached over the network: findmnt /; lsblk -S"]).now(["reset the host"]).permanent(["set ALLOW_STOP=no in /etc/infiniband/openib.conf, and never unload the adapter's driver on this host"]),
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
            Some(Severity::Warning)
        );
        // The session that carries it is gone: offline, and read-only.
        let gone = [
            "[ 3021.2]  connection1:0: detected conn error (1011)",
            "[ 3141.2]  session1: session recovery timed out after 120 secs",
            "[ 3141.2] sd 6:0:0:1: rejecting I/O to offline device",
            "[ 3141.2] EXT4-fs (sda2): Remounting filesystem read-only",
        ];
        assert_eq!(severity(&RULE, &gone), Some(Severity::Error));
        assert_eq!(severity(&RULE, &gone[2..]), None);
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
