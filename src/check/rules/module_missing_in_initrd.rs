use super::module_missing_for_kernel::{in_initramfs, missing};
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleMissingInInitrd,
    meaning: "a module is listed for the initramfs and is not in it",
    page: "\
The initramfs has rdma-core's lists of modules (/etc/rdma/modules/*.conf) and lacks some
of the modules in them. systemd-modules-load reports \"Failed to find module\" for each;
before systemd 244 one missing module fails the whole service. The lists are loaded again
after the switch to the root file system, which has all the modules, so that this matters
only for a root or a mount that needs RDMA in the initramfs: the finding is a note where
InfiniBand came up.

Remedy: add the modules to the initramfs, or remove the names from the lists. Newer
rdma-core does this.

    dracut -f --add-drivers 'rpcrdma ib_iser ...'",
    needles: &[&[
        "Failed to find module '",
        "Switching root",
        "dracut",
        "Running in initrd",
        "Running in initial RAM disk",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> =
        boot.events.iter().filter(|e| missing(e).is_some() && in_initramfs(boot, e)).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let modules = seen::each(lines.iter().filter_map(|e| missing(e)));
    let of = seen::all_of("module", &modules);
    let rest = if modules.len() > 1 {
        "are listed for the initramfs, and are"
    } else {
        "is listed for the initramfs, and is"
    };
    let severity = match seen::sign_of_life(boot).is_some() {
        true => Severity::Info,
        false => Severity::Warning,
    };
    vec![
        Finding::new(
            RULE.code,
            severity,
            Confidence::Medium,
            format!("{of} {rest} not in it."),
        )
        .about_if(seen::joined(&modules))
        .quoting(seen::quotes(boot, lines))
        .look(["lsinitrd | grep -e rpcrdma -e ib_ (or lsinitramfs)"])
        .permanent([format!(
            "dracut -f --add-drivers '{}', or remove the names from /etc/rdma/modules/rdma.conf",
            modules.join(" ")
        )]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn what_comes_before_the_root_is_switched() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "systemd-modules-load[211]: Failed to find module 'ib_iser'",
                    "systemd[1]: Starting Switch Root...",
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(&RULE, &["systemd-modules-load[211]: Failed to find module 'ib_iser'",]),
            None
        );
    }

    #[test]
    fn systemd_says_that_it_runs_in_the_initramfs() {
        let inside = "systemd[1]: Running in initrd.";
        let missing = "systemd-modules-load[211]: Failed to find module 'ib_ipoib'";
        let left = "systemd[1]: Switching root.";
        assert_eq!(severity(&RULE, &[inside, missing]), Some(Severity::Warning));
        assert_eq!(severity(&RULE, &[inside, left, missing]), None);
        let up = "kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        assert_eq!(severity(&RULE, &[inside, missing, left, up]), Some(Severity::Info));
    }
}
