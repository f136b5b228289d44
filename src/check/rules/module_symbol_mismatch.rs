use super::module_init_slow::is_busy_symbol;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::names::RDMA_USERS;

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
        INSERT,
    ]],
    judge: Judge::Boot(judge),
};

/// How `modprobe` begins, whatever the reason.
const INSERT: &str = "could not insert '";

/// True if `text` says why.
fn is_mismatch(text: &str) -> bool {
    !text.contains("Invalid argument")
        && RULE.needles.iter().copied().flatten().any(|n| *n != INSERT && text.contains(n))
}

/// `modprobe` says no more of a module that was built for another kernel.
fn is_built_here(text: &str, module: &str) -> bool {
    text.contains("Invalid argument") && RDMA_USERS.contains(&module)
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let of_symbol = |text: &str| {
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.any(|word| word.starts_with("ib_") || word.starts_with("rdma_"))
    };
    let lines: Vec<_> = boot
        .with_any_of(RULE.needles)
        .filter(|e| !is_busy_symbol(&e.text))
        .filter(|e| match e.text.contains(INSERT) {
            true => seen::refused_module(&e.text)
                .is_some_and(|module| is_mismatch(&e.text) || is_built_here(&e.text, module)),
            false => seen::refused_module(&e.text).is_some() || of_symbol(&e.text),
        })
        .collect();
    let modules = seen::each(lines.iter().map(|line| {
        let first = line.text.split([':', ' ']).next().unwrap_or("a module");
        seen::refused_module(&line.text).unwrap_or(first)
    }));
    if modules.is_empty() {
        return Vec::new();
    }
    let is_sure = lines.iter().any(|e| is_mismatch(&e.text));
    let verb = if modules.len() == 1 { "does" } else { "do" };
    let what = seen::all_of("module", &modules);
    let told = match is_sure {
        true => format!("{what} {verb} not match the RDMA modules or the kernel that are loaded."),
        false => {
            format!("{what} {verb} not load, probably because of another kernel or RDMA stack.")
        }
    };
    vec![
        Finding::new(
            RULE.code,
            if seen::sign_of_life(boot).is_some() { Severity::Warning } else { Severity::Error },
            if is_sure { Confidence::High } else { Confidence::Low },
            told,
        )
        .about_if(seen::joined(&modules))
        .quoting(seen::quotes(boot, lines))
        .look(seen::for_each("dmesg | grep {}", &modules, "MODULE"))
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
