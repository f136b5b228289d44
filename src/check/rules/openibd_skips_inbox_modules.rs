use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::OpenibdSkipsInboxModules,
    meaning: "openibd does not load modules that belong to the distribution's kernel",
    page: "\
openibd loads only modules that OFED built. After a kernel update the OFED modules
are often missing for the new kernel; modprobe would then load the kernel's own
module, and openibd skips it. The stack is then loaded in part or not at all.

Remedy: build the OFED modules for the running kernel (mlnxofedinstall
--add-kernel-support, or dkms); let openibd load the kernel's own modules
(FORCE_MODE=yes in
/etc/infiniband/openib.conf); or remove OFED.",
    needles: &[&[
        "which is not a part of MLNX",
        "is not a part of MLNX_OFED",
        "Avoid loading inbox module",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot.with_any_of(RULE.needles).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let modules: Vec<&str> = lines.iter().filter_map(|e| seen::rdma_module(&e.text)).collect();
    let which = modules.first().map_or("modules", |m| m);
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::High,
            format!("openibd does not load {which}, which is the kernel's own module, not one built by OFED."),
        ).about_if(seen::joined(&modules))
        .quoting(seen::quotes(boot, lines))
        .look(["modinfo -n mlx5_core ib_core; uname -r"]).permanent(["mlnxofedinstall --add-kernel-support (or dkms autoinstall) for the running kernel", "or set FORCE_MODE=yes in /etc/infiniband/openib.conf, then systemctl restart openibd"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn openibd_says_so() {
        assert_eq!(
            severity(
                &RULE,
                &["Module ib_core belong to kernel which is not a part of MLNX_OFED, skipping...",]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["openibd[1]: Loading HCA driver and Access Layer: [  OK  ]",]),
            None
        );
    }
}
