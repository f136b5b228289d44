use super::super::pattern::{caught_one, word};
use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};
use crate::names::HCA_DRIVERS;

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleMissingForKernel,
    meaning: "a module that is needed is not built for the running kernel",
    page: "\
modprobe found no such module below /lib/modules of the running kernel. After a
kernel update OFED's modules may not be built for it; cloud and minimal kernels do not
contain the RDMA drivers (on Debian and Ubuntu linux-image-cloud,
linux-image-virtual; on Fedora and RHEL they are in kernel-modules or
kernel-modules-extra).

Symptoms: \"Module ib_ipoib not found in directory /lib/modules/...\",
\"Module mlx5_core does not exist, skipping\", a dkms build that fails.

Remedy: install the package with the modules of the running kernel, or build OFED for
it. Until then boot a kernel that has them.",
    needles: &[&[
        "not built for the running kernel",
        "not found in directory",
        "FATAL: Module ",
        "ERROR: Module ",
        "Failed to find module '",
        "does not exist, skipping",
        "could not find module",
        "Error! Bad return status for module build",
        "kernel headers for kernel",
    ]],
    judge: Judge::Boot(judge),
};

/// Modules that no kernel has any more; lists still name them.
pub(super) const GONE: [&str; 4] = ["ib_ucm", "ib_sdp", "iw_nes", "ib_addr"];

/// Modules that lists name on every host, as open-iscsi's does, and that few need.
const OPTIONAL: [&str; 12] = [
    "ib_iser",
    "ib_isert",
    "ib_srp",
    "ib_srpt",
    "rpcrdma",
    "xprtrdma",
    "svcrdma",
    "iw_cm",
    "iw_cxgb4",
    "rdma_rxe",
    "siw",
    "nvme_rdma",
];

/// True if something else here is of InfiniBand: a driver, a netdev, a port, a card.
fn has_infiniband(boot: &Boot) -> bool {
    boot.events.iter().filter(|e| missing(e).is_none()).any(|e| {
        HCA_DRIVERS.iter().any(|d| e.text.contains(d)) || seen::ib_netdev_in(&e.text).is_some()
    }) || boot.state.ports.iter().any(|p| p.may_be_infiniband())
        || boot.state.netdevs.iter().any(|n| n.infiniband)
        || boot.state.pci.iter().any(|f| f.is_infiniband())
}

/// The RDMA module that was not found, according to this line.
pub(super) fn missing(event: &Event) -> Option<&'static str> {
    let text = &event.text;
    if text.contains("not built for the running kernel") {
        // ibprov's own words.
        return seen::rdma_module(text.split_once("module ").map_or(text, |(_, rest)| rest));
    }
    let name = [
        "Module {} not found",
        "Failed to find module '{}'",
        "Module {} does not exist, skipping",
        "could not find module by name='{}'",
    ]
    .iter()
    .find_map(|p| caught_one(text, p))?;
    let name = word(name.trim_matches(['\'', '"'])).replace('-', "_");
    seen::rdma_module(&name)
}

/// True if the line was written in the initramfs or while it was made.
pub(super) fn in_initramfs(boot: &Boot, event: &Event) -> bool {
    // Only the newest of these belong to no kernel's own list, and the
    // initramfs takes the list from the root file system without the modules.
    let listed = ["xprtrdma", "svcrdma"].iter().any(|m| event.text.contains(m))
        && event.text.contains("Failed to find module");
    let program = event.program.starts_with("dracut") || event.text.starts_with("dracut");
    let leaves = |e: &&Event| {
        ["Switching root", "Switch Root", "initrd-switch-root"].iter().any(|w| e.text.contains(w))
    };
    // systemd says at its start where it runs.
    let enters = |e: &&Event| {
        ["Running in initrd", "Running in initial RAM disk"].iter().any(|w| e.text.contains(w))
    };
    let (above, below): (Vec<&Event>, Vec<&Event>) =
        boot.events.iter().partition(|e| e.origin < event.origin);
    let inside = above.iter().any(enters) && !above.iter().any(leaves);
    listed || program || inside || below.iter().any(leaves)
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot
        .events
        .iter()
        .filter(|e| missing(e).is_some_and(|m| !GONE.contains(&m)) && !in_initramfs(boot, e))
        .collect();
    let builds: Vec<_> = boot
        .with_any(&["Error! Bad return status for module build", "kernel headers for kernel"])
        .filter(|e| e.text.contains("mlnx") || e.text.contains("Bad return status"))
        .filter(|_| {
            boot.events.iter().any(|e| e.text.contains("mlnx-ofed") || e.text.contains("mlnx-ofa"))
        })
        .collect();
    if lines.is_empty() && builds.is_empty() {
        return Vec::new();
    }
    let modules = seen::each(lines.iter().filter_map(|e| missing(e)));
    let does = if modules.len() > 1 { "do" } else { "does" };
    let of = match &modules[..] {
        [] => "the OFED stack".to_owned(),
        modules => seen::all_of("module", modules),
    };
    let optional = builds.is_empty()
        && lines.iter().all(|e| missing(e).is_some_and(|m| OPTIONAL.contains(&m)));
    let severity = match (optional, seen::sign_of_life(boot).is_some()) {
        (true, _) if !has_infiniband(boot) => Severity::Info,
        (true, _) | (_, true) => Severity::Warning,
        (false, false) => Severity::Error,
    };
    vec![
        Finding::new(
            RULE.code,
            severity,
            Confidence::High,
            format!("{of} {does} not exist for the running kernel."),
        ).about_if(seen::joined(&modules))
        .quoting(seen::quotes(boot, lines))
        .quoting(seen::quotes(boot, builds))
        .look(seen::for_each("find /lib/modules/$(uname -r) -name '{}.ko*'", &modules, "ib_core")).permanent(["install the running kernel's modules (linux-modules-extra, kernel-modules-extra), or a kernel other than a cloud kernel", "with OFED: dkms autoinstall, or mlnxofedinstall --add-kernel-support"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn modules_that_exist_in_no_kernel_are_not_missed() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "modprobe: FATAL: Module ib_ipoib not found in directory /lib/modules/6.1.0-18-cloud-amd64",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["systemd-modules-load[211]: Failed to find module 'ib_ucm'",]),
            None
        );
        assert_eq!(
            severity(
                &RULE,
                &["modprobe: FATAL: Module floppy not found in directory /lib/modules/6.1.0",]
            ),
            None
        );
    }

    #[test]
    fn what_lists_name_everywhere_is_missed_where_infiniband_is() {
        let line = "systemd-modules-load[248]: Failed to find module 'ib_iser'";
        assert_eq!(severity(&RULE, &[line]), Some(Severity::Info));
        let card = "[ 1.0] mlx5_core 0000:01:00.0: firmware version: 20.35.1012";
        assert_eq!(severity(&RULE, &[line, card]), Some(Severity::Warning));
    }
}
