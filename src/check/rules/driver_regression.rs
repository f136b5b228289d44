mod gives_up;
mod reports;

use super::super::evidence::event::function;
use super::causes::explains;
use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};
use crate::names::RDMA_MODULES_IN_TRACES;

use gives_up::{GIVES_UP, ROCE, STOPPED, given_up, is_of_bnxt_re};
use reports::{CRASH, HANG, WARN, reports};

pub(super) const RULE: Rule = Rule {
    code: Code::DriverRegression,
    meaning: "a fault of the kernel or the driver, which no configuration can correct",
    page: "\
The kernel crashed, warned or hung inside the RDMA stack, or a driver gave up on an
adapter, a device or a netdev although no other cause is visible: an oops with
[ib_core], [mlx5_core], [hfi1] ... in its trace, a firmware command that was refused
during probe, \"Couldn't register device with driver model\", \"ipoib_intf_alloc
failed\". Such faults appear with one kernel update and disappear with another; some
occur in some boots only.

Remedy: boot the kernel that worked. Search for the function at the top of the trace,
or for the refused command with its syndrome, and report the fault to linux-rdma with
the whole trace. If a new driver runs with old firmware, update the firmware.

Other diagnoses are a probe that fails because the firmware does not answer
(fw-init-timeout) or is too old (firmware-too-old), and the probe of a VF
(vf-probe-failed).",
    needles: &[
        &[
            "+0x",
            "    pc: ",
            "IP: [<",
            "BUG: ",
            "Call Trace",
            "Call trace",
            "RIP: ",
            "pc : ",
            "NIP [",
            "  state:D",
            "Modules linked in:",
            "Workqueue: ",
            "hung_task",
            "kobject_add_internal failed",
            // More modules that are named like these, and names that are cut off.
            " [ib_srp",
            " [ib_iser",
            " [mlx4_",
            " [mlx5_",
            " [hns_roce",
            " [iw_cxgb",
            "ib_register_device",
            "[ib_core",
            "[ib_ipoib",
            "[mlx5_core",
            "[mlx4_core",
            "[mlx5_ib",
            "[mlx4_ib",
            "[hfi1",
            "[irdma",
            "failed to initialize device:",
            "failed to allocate device WQ",
            "failed with error code",
            "probe with driver",
            "setup ports failed",
            "failed to initialize port",
            "_alloc_hw_stats failed",
            "Failed to register device",
            "aborting",
            "couldn't register",
            "Failed to init HCA",
            "mlx5_core 0000",
            "bnxt_re",
            "QPLIB: ",
        ],
        RDMA_MODULES_IN_TRACES,
        CRASH,
        WARN,
        HANG,
        GIVES_UP,
        STOPPED,
        &[
            "NETDEV WATCHDOG",
            "transmit timeout: latency",
            "suspicious rcu_dereference",
            "rying again with",
        ],
    ],
    judge: Judge::Rest(judge),
};

/// True if `event`, by which a driver gives up, has its reason among `findings`.
fn is_explained(boot: &Boot, event: &Event, findings: &[Finding]) -> bool {
    let address = function(&event.text);
    let quote = boot.quote(event);
    findings.iter().filter(|f| f.severity != Severity::Info).any(|finding| {
        let mut objects = finding.object.iter().flat_map(|objects| objects.split(", "));
        explains(finding.code, RULE.code)
            && (address.is_some_and(|address| objects.any(|object| object == address))
                || finding.evidence.contains(&quote))
    })
}

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    let reports = reports(boot);
    let mut given_up = given_up(boot);
    given_up.retain(|e| {
        // A VF's own trouble is another finding.
        function(&e.text).is_none_or(|address| !seen::is_vf(boot, address))
            && !is_explained(boot, e, findings)
    });
    let alive = seen::sign_of_life(boot).is_some();
    let mut found = Vec::new();
    if let Some(worst) = reports.iter().min_by_key(|r| (r.kind, !r.in_probe)) {
        let broke = worst.kind == Severity::Error || worst.in_probe && !alive;
        let severity = if broke { Severity::Error } else { Severity::Warning };
        let confidence =
            if worst.culprit.text.contains("+0x") { Confidence::High } else { Confidence::Medium };
        let what = match () {
            () if seen::has(worst.head, HANG) => "Tasks hang",
            () if seen::has(worst.head, WARN) => "The kernel reported a fault",
            () => "The kernel crashed",
        };
        let said = worst.head.text.trim();
        found.push(
            Finding::new(RULE.code, severity, confidence, format!("{what} in the RDMA stack ({}): {said}", worst.module))
                .quoting(seen::quotes(boot, [worst.head, worst.culprit]))
                .quoting(seen::quotes(boot, given_up.iter().copied()))
                .now(["boot the kernel that worked before"]).permanent(["look for a newer kernel with a fix", "report the whole trace (journalctl -k -b) to linux-rdma@vger.kernel.org or the distribution"]),
        );
    } else if let Some(last) = given_up.last() {
        let ethernet = given_up.iter().all(|e| seen::has(e, &ROCE) || is_of_bnxt_re(&e.text));
        let groups = seen::by_function(given_up.iter().copied());
        let addresses: Vec<&str> = groups.into_iter().filter_map(|(of, _)| of).collect();
        let of = match &addresses[..] {
            [] | [_] => String::new(),
            several => format!(" {}", seen::all_of("adapter", several)),
        };
        found.push(
            Finding::new(
                RULE.code,
                if ethernet { Severity::Warning } else { Severity::Error },
                Confidence::Medium,
                format!("The driver gave up{of}: {}", last.text.trim()),
            )
            .about_if(seen::joined(&addresses))
            .quoting(seen::quotes(boot, given_up.iter().copied()))
            .look(seen::firmware_query(&given_up, &addresses))
            .now(["boot the kernel that worked before; if the fault does not occur in each boot, load the driver again (modprobe -r, modprobe)"])
            .permanent(["look for a newer kernel, driver or firmware with a fix"]),
        );
    }
    let strange: Vec<_> = boot.events.iter().filter(|e| is_strange(&e.text)).collect();
    if let (true, Some(first)) = (found.is_empty(), strange.first()) {
        found.push(
            Finding::new(
                RULE.code,
                Severity::Warning,
                Confidence::Low,
                format!("The driver reported an internal fault: {}", first.text.trim()),
            )
            .quoting(seen::quotes(boot, strange.iter().copied()))
            .now(["boot the kernel that worked before"])
            .permanent([
                "look for a newer kernel with a fix; report it to linux-rdma@vger.kernel.org",
            ]),
        );
    }
    found
}

/// A netdev of ours whose card sends nothing any more (`dev_watchdog()`,
/// `ipoib_timeout()`), or code of the stack that the lock checker complains of.
fn is_strange(text: &str) -> bool {
    let watchdog = text.contains("NETDEV WATCHDOG") && seen::rdma_module(text).is_some()
        || text.contains("transmit timeout: latency");
    let ours = ["drivers/infiniband/", "/mellanox/", "xprtrdma/"];
    watchdog && seen::ib_netdev_in(text).is_some()
        || text.contains("suspicious rcu_dereference") && ours.iter().any(|p| text.contains(p))
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn crashes_in_the_stack_and_drivers_that_give_up() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[    9.1] mlx5_core 0000:02:00.0: firmware version: 16.35.2000",
                    "[   10.3] BUG: unable to handle page fault for address: ffffffff8ff0ade0",
                    "[   10.3] RIP: 0010:mlx5_irq_alloc+0x10/0x26 [mlx5_core]",
                    "[   10.4] Call Trace:",
                    "[   10.4]  mlx5_load+0x10/0x20 [mlx5_core]",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[    9.1] mlx5_core 0000:02:00.0: firmware version: 16.35.2000",
                    "[   90.3] BUG: unable to handle page fault for address: ffffffff8ff0ade0",
                    "[   90.3] RIP: 0010:nv04_x+0x10/0x26 [nouveau]",
                    "[   90.4] Call Trace:",
                    "[   90.4]  nouveau_x+0x10/0x20 [nouveau]",
                ]
            ),
            None
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[   61.3] WARNING: CPU: 0 PID: 155 at drivers/infiniband/core/cq.c:149 ib_free_cq+0x145/0x1d0 [ib_core]",
                    "[   61.5] RIP: 0010:ib_free_cq+0x145/0x1d0 [ib_core]",
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[   11.3] WARNING: CPU: 96 PID: 2074 at kernel/locking/irqflag-debug.c:10 warn_bogus_irq_restore+0x30/0x40",
                    "[   11.3]  warn_bogus_irq_restore+0x30/0x40",
                    "[   11.3]  add_qp_to_list+0x11c/0x148 [hns_roce_hw_v2]",
                    "[   11.3]  ib_register_device+0x34/0x50",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["[ 14.0] mlx5_core: probe of 0000:03:00.0 failed with error -22",]),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["[ 14.0] mlx5_core: probe of 0000:03:00.0 failed with error -517",]),
            None
        );
        for line in [
            "[ 1.0] infiniband mlx4_0: Couldn't register device with driver model",
            "[ 1.0] <mlx4_ib> create_pv_sqp: Couldn't create special QP (-16)",
            "[ 1.0] mlx5_core 0000:c1:00.0: mlx5_sriov_enable:168:(pid 9): mlx5_device_enable_sriov failed : -22",
            "[ 1.0] mlx4_core 0000:82:00.0: Internal error detected:",
        ] {
            assert_eq!(severity(&RULE, &[line]), Some(Severity::Error), "{line}");
        }
        assert_eq!(severity(&RULE, &["[ 1.0] xhci 0000:00:14.0: Internal error detected:"]), None);
    }

    #[test]
    fn a_driver_that_leaves_its_probe_says_aborting() {
        let aborts = "[ 1.0] mlx4_core 0000:03:00.0: Couldn't get PCI resources, aborting";
        let renamed = "[ 2.0] mlx4_core 0000:03:00.0 ibp3s0: renamed from ib0";
        assert_eq!(severity(&RULE, &[aborts]), Some(Severity::Error));
        assert_eq!(severity(&RULE, &[aborts, renamed]), None);
        assert_eq!(severity(&RULE, &["[ 1.0] ahci 0000:00:17.0: no memory, aborting"]), None);
    }

    #[test]
    fn a_port_that_the_mad_layer_cannot_open() {
        let lines = |device: &str| {
            [
                format!("[ 5.5] infiniband {device}: Couldn't create ib_mad CQ"),
                format!("[ 5.5] infiniband {device}: Couldn't open port 1"),
            ]
        };
        let told = |device: &str| {
            let lines = lines(device);
            severity(&RULE, &[&lines[0], &lines[1]])
        };
        assert_eq!(told("mlx5_0"), Some(Severity::Error));
        assert_eq!(told("bnxt_re0"), Some(Severity::Warning));
        let agents = "[ 5.5] infiniband mlx5_0: Couldn't open port 1 for agents";
        assert_eq!(severity(&RULE, &[agents]), None);
    }

    #[test]
    fn of_a_trace_that_is_cut_the_work_tells() {
        let head =
            "[ 3.0] Unable to handle kernel paging request at virtual address 0000000000010008";
        let work = "[ 3.0] Workqueue: events srpt_refresh_port_work [ib_srpt]";
        let other = "[ 3.0] Workqueue: events drm_work [nouveau]";
        assert_eq!(severity(&RULE, &[head, work]), Some(Severity::Error));
        assert_eq!(severity(&RULE, &[head, other]), None);
    }

    #[test]
    fn the_crash_of_another_driver_is_not_ours() {
        let loaded = "[   18.8] mlx5_ib: Mellanox Connect-IB Infiniband driver v4.9-2.2.4";
        let head = "[   19.9] BUG: unable to handle kernel NULL pointer dereference at (null)";
        let frames = |module: &str| -> Vec<String> {
            let core = (0..3).map(|n| format!("[   19.9]  core_{n}+0x1b/0xc0"));
            core.chain([format!("[   19.9]  top_of_it+0x1b/0xc0{module}")]).collect()
        };
        let told = |module: &str| {
            let frames = frames(module);
            let lines = [loaded, head].into_iter().chain(frames.iter().map(String::as_str));
            severity(&RULE, &lines.collect::<Vec<_>>())
        };
        assert_eq!(told(" [amdgpu]"), None);
        assert_eq!(told(" [mlx5_ib]"), Some(Severity::Error));
        // Cut, or built in.
        assert_eq!(told(""), Some(Severity::Error));
    }

    #[test]
    fn a_netdev_that_sends_nothing_is_a_warning() {
        for (line, told) in [
            ("[ 9.0] NETDEV WATCHDOG: ib0 (mlx4_core): transmit queue 0 timed out", true),
            ("[ 9.0] ib0: transmit timeout: latency 2900 msecs", true),
            ("[ 9.0] NETDEV WATCHDOG: ib0: transmit timed out", false),
            ("[ 9.0] NETDEV WATCHDOG: eth0 (r8169): transmit queue 0 timed out", false),
            (
                "[ 9.0] drivers/infiniband/core/cache.c:302 suspicious rcu_dereference_check() usage!",
                true,
            ),
            ("[ 9.0] net/ipv4/route.c:302 suspicious rcu_dereference_check() usage!", false),
        ] {
            assert_eq!(severity(&RULE, &[line]), told.then_some(Severity::Warning), "{line}");
        }
    }

    #[test]
    fn half_a_driver_fails_on_the_auxiliary_bus() {
        let line = "[ 1.0] mlx5_ib.rdma: probe of mlx5_core.rdma.0 failed with error -12";
        assert_eq!(severity(&RULE, &[line]), Some(Severity::Error));
        let nop =
            "[ 1.0] mlx4_core 0000:04:00.0: NOP command failed to generate MSI-X interrupt IRQ 24)";
        let irq = "[ 1.0] ib_mthca 0000:04:00.0: NOP command failed to generate interrupt (IRQ 217), aborting.";
        let again = "[ 1.0] mlx4_core 0000:04:00.0: Trying again without MSI-X";
        assert_eq!(severity(&RULE, &[irq]), Some(Severity::Error));
        assert_eq!(severity(&RULE, &[irq, again]), None);
        assert_eq!(severity(&RULE, &[nop, again]), None);
    }
}
