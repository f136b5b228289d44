use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleDenied,
    meaning: "a module that is needed is on a deny list",
    page: "\
The administrator denies the module by a `blacklist` or `install MODULE /bin/false` line
in modprobe.d, or modprobe.blacklist= or module_blacklist= on the kernel command line.
udev then loads no driver, and modprobe -b prints no message.

Remedy: remove the line if it is not intended, and rebuild the initramfs, which contains
a copy of modprobe.d.",
    needles: &[&[
        "deny-listed by",
        "ran instead and did not load it",
        "modprobe.blacklist=",
        "module_blacklist=",
        "driver.blacklist=",
        "is deny-listed",
        "is blacklisted",
        "is denylisted",
        "blacklist ",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot.with_any_of(RULE.needles).filter(|e| denies(&e.text)).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let modules = seen::each(lines.iter().flat_map(|e| seen::rdma_modules(&e.text)));
    let is = if modules.len() > 1 { "are" } else { "is" };
    let of =
        if modules.is_empty() { "a module".to_owned() } else { seen::all_of("module", &modules) };
    let severity =
        if seen::sign_of_life(boot).is_some() { Severity::Info } else { Severity::Error };
    vec![
        Finding::new(RULE.code, severity, Confidence::Medium, format!("{of} {is} on a deny list."))
            .about_if(seen::joined(&modules))
            .quoting(seen::quotes(boot, lines))
            .look(seen::for_each(
                "grep -rn {} /etc/modprobe.d /lib/modprobe.d /run/modprobe.d; cat /proc/cmdline",
                &modules,
                "MODULE",
            ))
            .permanent(["remove the line, rebuild the initramfs, reboot"]),
    ]
}

/// True if a module of the RDMA stack is what `text` denies.
fn denies(text: &str) -> bool {
    // `modprobe.blacklist=a,b`, `blacklist a`: the list ends at white space.
    let listed = ["blacklist=", "blacklist "].iter().any(|word| {
        text.split(word).skip(1).any(|rest| {
            rest.split_whitespace().next().is_some_and(|list| seen::rdma_module(list).is_some())
        })
    });
    // The first two are ibprov's own words.
    const SAID: [&str; 5] = [
        "deny-listed by",
        "ran instead and did not load it",
        "is deny-listed",
        "is denylisted",
        "is blacklisted",
    ];
    let said = SAID.iter().any(|w| text.contains(w));
    listed || said && seen::rdma_module(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn only_modules_of_the_stack() {
        let own = "ibprov[1]: failed: load ib_ipoib: ib_ipoib: the install command \"/bin/false\" of /etc/modprobe.d/x.conf:1 ran instead and did not load it";
        assert_eq!(severity(&RULE, &[own]), Some(Severity::Error));
        assert_eq!(
            severity(
                &RULE,
                &["[ 0.0] Kernel command line: quiet modprobe.blacklist=mlx5_core,nouveau",]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 0.0] Kernel command line: quiet modprobe.blacklist=nouveau rd.driver.pre=mlx5_core",
                ]
            ),
            None
        );
        assert_eq!(
            severity(
                &RULE,
                &["systemd-modules-load[9]: Module 'ib_ipoib' is deny-listed (by kernel cmdline)",]
            ),
            Some(Severity::Error)
        );
    }
}
