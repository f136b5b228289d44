use super::{Boot, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: "module-denied",
    meaning: "a module that is needed is on a deny list",
    page: "\
The site forbids the module: a `blacklist` or `install MODULE /bin/false` line in
modprobe.d, or modprobe.blacklist= or module_blacklist= on the kernel command line.
udev then loads no driver, and modprobe -b says nothing at all.

What to do: take the line out if it was not meant; rebuild the initramfs, which has
a copy of modprobe.d.",
    needles: &[
        "modprobe.blacklist=",
        "module_blacklist=",
        "driver.blacklist=",
        "is deny-listed",
        "is blacklisted",
        "is denylisted",
        "blacklist ",
    ],
    causes: &["module-not-loaded", "module-loaded-late", "port-not-ready"],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot
        .with_any(RULE.needles)
        .filter(|e| {
            ["blacklist=", "listed", "blacklist "].iter().any(|w| {
                e.text.split(w).skip(usize::from(*w != "listed")).any(|part| {
                    let part =
                        if *w == "listed" { part } else { part.split(' ').next().unwrap_or(part) };
                    seen::rdma_module(part).is_some()
                })
            })
        })
        .collect();
    let Some(first) = lines.first() else { return Vec::new() };
    let module = seen::rdma_module(&first.text).unwrap_or("a module");
    let severity =
        if seen::sign_of_life(boot).is_some() { Severity::Info } else { Severity::Error };
    vec![
        Finding::new(RULE.code, severity, Confidence::Medium, format!("{module} is on a deny list."))
            .quoting(seen::quotes(boot, lines))
            .advice([
                format!("grep -rn {module} /etc/modprobe.d /lib/modprobe.d /run/modprobe.d; cat /proc/cmdline"),
                "take the line out, rebuild the initramfs, reboot".to_owned(),
            ]),
    ]
}
