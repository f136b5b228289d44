use super::super::evidence::event::function;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::UdevTimeout,
    meaning: "systemd-udevd's time limit kills the loading of a driver",
    page: "\
udev allows an event 180 s (less when the initramfs ends). A driver whose probe takes
longer, because there are many adapters or their firmware is slow, is killed with the
worker that loads it; the adapters that were not probed yet stay without a driver. The
timeout of `udevadm settle` has the same meaning for the whole queue.

Symptoms: \"Worker [1822] processing SEQNUM=23088 is taking a long time\", then
\"killed\"; \"timeout: killing '/sbin/modprobe ...'\"; \"Timed out for waiting the udev
queue being empty\".

\"is taking a long time\" alone is only a warning.

Remedy: add udev.event_timeout=600 (rd.udev.event_timeout=600) to the kernel command
line, and correct the cause of the slow probe. ibprov loads drivers outside of udev.",
    needles: &[&[
        "is taking a long time",
        "timeout: killing",
        "timeout; kill",
        "timeout '/sbin/modprobe",
        "timeout '/usr/sbin/modprobe",
        "processing SEQNUM=",
        "udev queue",
        "Giving up waiting for worker",
        "systemd-udev-settle",
        "failed while handling",
        "terminated by signal 9",
        "udevadm settle - timeout",
        "slow: '",
        "udev Wait for Complete Device Initialization",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let udev = |e: &&super::Event| {
        e.program.contains("udev") || e.text.contains("udev") || e.program.is_empty()
    };
    let killed: Vec<_> = boot
        .events
        .iter()
        .filter(udev)
        .filter(|e| {
            let t = &e.text;
            t.contains("processing SEQNUM=") && t.trim_end().ends_with("killed")
                || t.contains("timeout: killing")
                || t.contains("timeout; kill")
                || t.contains("timeout '/")
                || t.contains("Giving up waiting for worker")
                || t.contains("failed while handling") && t.contains("timeout")
        })
        .collect();
    let settle: Vec<_> = boot
        .events
        .iter()
        .filter(|e| {
            let t = &e.text;
            (t.contains("imed out") || t.contains("timeout of"))
                && t.contains("udev")
                && t.contains("queue")
                || t.contains("systemd-udev-settle.service")
                    && ["Failed with result", "status=1", "timed out"].iter().any(|w| t.contains(w))
                || t.contains("Failed to start")
                    && t.contains("udev Wait for Complete Device Initialization")
        })
        .collect();
    let slow: Vec<_> = boot.with("is taking a long time").collect();
    let Some(first) = killed.first().or(settle.first()).or(slow.first()) else { return Vec::new() };
    // Whose event it was: a card of ours is named by its address or its module.
    let ours = |e: &&&super::Event| {
        seen::rdma_module(&e.text).is_some()
            || function(&e.text).is_some_and(|a| {
                boot.events
                    .iter()
                    .any(|o| seen::rdma_module(&o.text).is_some() && o.text.contains(a))
            })
            || seen::ib_netdev_in(&e.text).is_some()
    };
    let concerns = killed.iter().chain(&settle).chain(&slow).any(|e| ours(&e));
    let rdma_here = boot.events.iter().any(|e| seen::rdma_module(&e.text).is_some());
    let (severity, confidence) = match (killed.is_empty() && settle.is_empty(), concerns, rdma_here)
    {
        (false, true, _) => (Severity::Error, Confidence::High),
        (false, false, true) if seen::sign_of_life(boot).is_none() => {
            (Severity::Error, Confidence::Medium)
        }
        // Some other device's: said, and no more.
        (false, false, _) => (Severity::Warning, Confidence::Medium),
        (true, ..) => (Severity::Warning, Confidence::Low),
    };
    let all = || killed.iter().chain(&settle).chain(&slow);
    let addresses = seen::each(all().filter_map(|e| function(&e.text)));
    let probe = seen::for_each(
        "probe the adapter again: echo {} > /sys/bus/pci/drivers_probe, or modprobe DRIVER",
        &addresses,
        "ADDRESS",
    );
    vec![
        Finding::new(
            RULE.code,
            severity,
            confidence,
            format!("systemd-udevd reached its time limit for a device: {}", first.text.trim()),
        )
        .about_if(seen::joined(&addresses))
        .quoting(seen::quotes(boot, slow.iter().chain(&killed).chain(&settle).copied()))
        .look(["find in dmesg which driver was being probed at that time, and what it waited for"])
        .now(probe)
        .permanent([
            "add udev.event_timeout=600 rd.udev.event_timeout=600 to the kernel command line",
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn killed_is_more_than_slow() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 1.0] mlx5_core 0000:3d:00.0: firmware version: 20.36.1010",
                    "systemd-udevd[16]: 0000:3d:00.0: Worker [18] processing SEQNUM=2308 is taking a long time",
                    "systemd-udevd[16]: 0000:3d:00.0: Worker [18] processing SEQNUM=2308 killed",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "systemd-udevd[16]: 0000:3d:00.0: Worker [18] processing SEQNUM=2308 is taking a long time",
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(
                &RULE,
                &["systemd-udevd[16]: usb3: Processing device (SEQNUM=2523, ACTION=add)",]
            ),
            None
        );
    }
}
