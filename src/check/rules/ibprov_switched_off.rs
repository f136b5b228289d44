use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity};

pub(super) const RULE: Rule = Rule {
    code: Code::IbprovSwitchedOff,
    meaning: "ibprov=0 is on the kernel command line",
    page: "\
No unit of ibprov runs in such a boot: modules, names, VFs and interfaces are left to the
other programs of the host. It is a note, not a fault: who set the parameter meant it.

Symptoms: ibprov=0 in the line \"Kernel command line:\" of the kernel, and in /proc/cmdline.

Remedy: to have ibprov run again at the next boot, remove ibprov=0 from the configuration
of the boot loader:

    grep -rl ibprov=0 /etc/default/grub /etc/default/grub.d /boot/loader/entries",
    needles: &[&["ommand line: "]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    // A host is judged by its /proc/cmdline.
    if boot.host.as_ref().is_some_and(|host| host.judgement.is_some()) {
        return Vec::new();
    }
    let is_off = |text: &str| text.split_whitespace().any(|word| word == "ibprov=0");
    let line = boot.with("ommand line: ").find(|e| e.from_kernel() && is_off(&e.text));
    let told = line.map(|line| {
        let text = "ibprov=0 is on the kernel command line: no unit of ibprov ran in this boot.";
        Finding::new(RULE.code, Severity::Info, Confidence::High, text).quoting([boot.quote(line)])
    });
    told.into_iter().collect()
}
