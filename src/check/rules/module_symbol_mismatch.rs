use super::module_init_slow::is_busy_symbol;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleSymbolMismatch,
    meaning: "a module does not match the RDMA stack or the kernel that is loaded",
    page: "\
The kernel refuses a module whose symbols have another version than those of the modules
that are loaded, or which was built for another kernel. With RDMA that mostly means that
the kernel's own modules and OFED's are mixed: the initramfs contains the one, the root
file system the other; or OFED was updated and a module that was built against it
(Lustre, nvidia-peermem, BeeGFS) was not.

Symptoms: \"disagrees about version of symbol\", \"Unknown symbol\", \"Invalid
module format\", \"version magic\". \"Unknown symbol ... (err -16)\" is module-init-slow.

Remedy: rebuild the initramfs (dracut -f, update-initramfs -u) and the module that was
refused. To see to which stack it belongs:

    modinfo -n MODULE",
    needles: &[&[
        "disagrees about version of symbol",
        "Unknown symbol",
        "version magic '",
        "Invalid module format",
        "Exec format error",
        "Unknown symbol in module",
        "section size must match",
        "failed to validate module",
        "Too many levels of symbolic links",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot
        .with_any_of(RULE.needles)
        .filter(|e| !is_busy_symbol(&e.text))
        .filter(|e| {
            seen::rdma_module(&e.text).is_some()
                || ["ib_", "rdma_", "nvidia_peermem", "nv_peer_mem", "beegfs", "lnet"]
                    .iter()
                    .any(|w| e.text.contains(w))
        })
        .collect();
    let Some(first) = lines.first() else { return Vec::new() };
    let module = first.text.split([':', ' ']).next().unwrap_or("a module");
    let module =
        seen::rdma_module(module).or_else(|| seen::rdma_module(&first.text)).unwrap_or(module);
    vec![
        Finding::new(
            RULE.code,
            if seen::sign_of_life(boot).is_some() { Severity::Warning } else { Severity::Error },
            Confidence::High,
            format!("{module} does not match the RDMA modules or the kernel that are loaded."),
        )
        .about(module)
        .quoting(seen::quotes(boot, lines))
        .look(["check that all modules are from the kernel, or all from OFED: modinfo -n ib_core mlx5_core ib_ipoib"])
        .permanent([
            "dracut -f (or update-initramfs -u), so that the initramfs contains the same modules",
            "rebuild the modules that were built against the other stack, then reboot",
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn symbols_of_the_rdma_stack_only() {
        assert_eq!(
            severity(
                &RULE,
                &["[ 8.1] mlx5_ib: disagrees about version of symbol ib_register_device",]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["[ 8.1] vboxdrv: version magic '5.4.0 SMP' should be '5.4.1 SMP'",]),
            None
        );
    }
}
