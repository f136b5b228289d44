use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleSignatureRefused,
    meaning: "the kernel refuses a module because of its signature",
    page: "\
The kernel loads only modules whose signature it can verify: with Secure Boot, in lockdown
mode, or with module.sig_enforce. A module that was built on the host (by DKMS or for
MLNX_OFED) is signed with a key that the firmware does not know, or not at all. A module
whose file was changed after it was signed is refused on every host.

Symptoms: \"Key was rejected by service\" or \"Required key not available\" from
modprobe; \"Loading of unsigned module is rejected\", \"unsigned module loading is
restricted\" in the kernel log. \"module verification failed: signature and/or required
key missing - tainting kernel\" is another message: that module is loaded.

Remedy: enroll the key with which the module is signed, and confirm it on the console at
the next boot:

    mokutil --sb-state
    mokutil --import /var/lib/dkms/mok.pub

Or install a module that the distribution has signed.",
    needles: &[&[
        "Key was rejected by service",
        "Required key not available",
        "Loading of unsigned module is rejected",
        "Loading of module with unavailable key is rejected",
        "unsigned module loading is restricted",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let found =
        boot.with_any_of(RULE.needles).filter_map(|e| Some((e, seen::refused_module(&e.text)?)));
    let (lines, modules): (Vec<_>, Vec<_>) = found.unzip();
    let modules = seen::each(modules);
    if modules.is_empty() {
        return Vec::new();
    }
    vec![
        Finding::new(
            RULE.code,
            if seen::sign_of_life(boot).is_some() { Severity::Warning } else { Severity::Error },
            Confidence::High,
            format!(
                "The kernel refuses {} because of the signature.",
                seen::all_of("module", &modules)
            ),
        )
        .about_if(seen::joined(&modules))
        .quoting(seen::quotes(boot, lines))
        .look(["mokutil --sb-state; cat /sys/kernel/security/lockdown"])
        .permanent([
            "mokutil --import CERTIFICATE of the key with which the module is signed, and confirm it at the next boot",
            "or install a module that the distribution has signed",
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_module_of_the_stack_counts() {
        let refused = |module| {
            severity(
                &RULE,
                &[&format!(
                    "modprobe: ERROR: could not insert '{module}': Key was rejected by service"
                )],
            )
        };
        assert_eq!(refused("ib_ipoib"), Some(Severity::Error));
        assert_eq!(refused("nvidia"), None);
    }
}
