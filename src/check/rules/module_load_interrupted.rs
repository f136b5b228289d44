use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::check::evidence::relevance::rdma_device_in;

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleLoadInterrupted,
    meaning: "the loading of a module was killed or interrupted",
    page: "\
The process that loads modules was killed while a module was being initialized: systemd
stops the services of the initramfs before it switches to the root file system, udev
kills a worker that takes too long. The creation of a kernel thread then fails with
-EINTR, and the port or netdev that was being set up is missing. No service tries again.

Symptoms: \"Failed to create a rescuer kthread for wq ipoib_wq: -EINTR\", then
\"couldn't register ipoib port\"; rdma-load-modules killed by TERM. Often only one
of several HCAs, and not at each boot.

Remedy: load the module again:

    modprobe -r ib_ipoib
    modprobe ib_ipoib

Update rdma-core: newer versions order rdma-load-modules@ before initrd.target.",
    needles: &[&["-EINTR", "rdma-load-modules@", "Interrupted system call", "rescuer kthread"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot
        .events
        .iter()
        .filter(|e| {
            let t = &e.text;
            t.contains("rescuer kthread") && t.contains("-EINTR")
                || t.contains("rdma-load-modules@")
                    && (t.contains("code=killed") || t.contains("signal"))
                || t.contains("Interrupted system call")
                    && (seen::rdma_module(t).is_some() || e.program.contains("modules-load"))
        })
        .collect();
    let Some(first) = lines.first() else { return Vec::new() };
    let port = boot.events.iter().filter(|e| {
        e.origin > first.origin
            && (e.text.contains("ipoib") || e.text.contains("failed to allocate device WQ"))
    });
    let severity = if first.text.contains("rescuer") || port.clone().next().is_some() {
        Severity::Error
    } else {
        Severity::Warning
    };
    let mut devices: Vec<&str> = port.clone().filter_map(|e| rdma_device_in(&e.text)).collect();
    devices.dedup();
    let told = match &devices[..] {
        [] => "The loading of a module was interrupted while it set up a port, so that the port has no netdev.".to_owned(),
        known => format!(
            "The loading of a module was interrupted while it set up a port, so that {} has no netdev.",
            known.join(", ")
        ),
    };
    vec![
        Finding::new(RULE.code, severity, Confidence::High, told)
            .about_if(seen::joined(&devices))
        .chain([
            "the process that loads the modules was stopped, which systemd does before it switches to the root file system",
            "the kernel could not create a thread (EINTR) and gave the port up",
            "no service loads the module again, because it counts as loaded",
        ])
        .quoting(seen::quotes(boot, lines.clone()))
        .quoting(seen::quotes(boot, port))
        .now(["modprobe -r ib_ipoib && modprobe ib_ipoib"]).permanent(["update rdma-core (rdma-load-modules@ before initrd.target), rebuild the initramfs"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_thread_that_could_not_be_made() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "kernel: workqueue: Failed to create a rescuer kthread for wq \"ipoib_wq\": -EINTR",
                    "kernel: mlx5_1: couldn't register ipoib port 1; error -12",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "kernel: workqueue: Failed to create a rescuer kthread for wq \"nvme-wq\": -ENOMEM",
                ]
            ),
            None
        );
    }
}
