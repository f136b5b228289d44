//! Modules that the kernel or the administrator refuses.

use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::check::pattern::{caught, has_any};
use crate::model::advice::ToDo;
use crate::names::RDMA_USERS;

pub(super) const MODULE_DENIED: Rule = Rule {
    code: Code::ModuleDenied,
    needles: &[
        SAID,
        &["modprobe.blacklist=", "module_blacklist=", "driver.blacklist=", "blacklist "],
    ],
    judge: Judge::One(module_denied),
};

fn module_denied(boot: &Boot) -> Option<Finding> {
    let lines = seen::found(boot.with_any_of(MODULE_DENIED.needles).filter(|e| denies(&e.text)))?;
    let modules = seen::each(lines.iter().flat_map(|e| seen::rdma_modules(&e.text)));
    let is = if modules.len() > 1 { "are" } else { "is" };
    let of =
        if modules.is_empty() { "a module".to_owned() } else { seen::all_of("module", &modules) };
    let severity =
        if seen::sign_of_life(boot).is_some() { Severity::Info } else { Severity::Error };
    let told = format!("{of} {is} on a deny list.");
    Some(
        Finding::of(Code::ModuleDenied, severity, Confidence::Medium, told)
            .about_all(&modules)
            .quoting(seen::quotes(boot, lines))
            .look(seen::for_each(
                "grep -rn {} /etc/modprobe.d /lib/modprobe.d /run/modprobe.d; cat /proc/cmdline",
                &modules,
                "MODULE",
            ))
            .permanent(["remove the line, rebuild the initramfs, reboot"]),
    )
}

/// The first two are ibprov's own words.
const SAID: &[&str] = &[
    "deny-listed by",
    "ran instead and did not load it",
    "is deny-listed",
    "is denylisted",
    "is blacklisted",
];

/// True if a module of the RDMA stack is what `text` denies.
fn denies(text: &str) -> bool {
    // `modprobe.blacklist=a,b`, `blacklist a`: the list ends at white space.
    let listed = ["blacklist=", "blacklist "].iter().any(|word| {
        text.split(word).skip(1).any(|rest| {
            rest.split_whitespace().next().is_some_and(|list| seen::rdma_module(list).is_some())
        })
    });
    listed || has_any(text, SAID) && seen::rdma_module(text).is_some()
}

pub(super) const MODULE_PARAMETER: Rule = Rule {
    code: Code::ModuleParameter,
    needles: &[&[
        "invalid for parameter",
        "check send_queue_size module parameter",
        "Please set ib_ipoib send_queue_size",
        "Failed to bring up interface for Connect-IB",
        "is not supported on this HCA",
        "Only same port types supported",
        "Invalid port_type",
        "Profile requires",
        "out of range for num_",
        "Invalid value for log_",
        "FW does not support more than",
    ]],
    judge: Judge::One(module_parameter),
};

fn module_parameter(boot: &Boot) -> Option<Finding> {
    let lines: Vec<_> = boot
        .with_any_of(MODULE_PARAMETER.needles)
        // The text of a script is no message.
        .filter(|e| !["log_msg ", "echo "].iter().any(|w| e.text.trim_start().starts_with(w)))
        .filter(|e| {
            !e.text.contains("invalid for parameter") || seen::rdma_module(&e.text).is_some()
        })
        .collect();
    let first = lines.first()?;
    let told = format!("A module parameter is refused: {}", first.text.trim());
    Some(
        Finding::of(Code::ModuleParameter, Severity::Error, Confidence::High, told)
            .quoting(seen::quotes(boot, lines))
            .look(["grep -rn -e 'options mlx' -e 'options ib_' /etc/modprobe.d; cat /proc/cmdline"])
            .permanent(["correct or remove it, rebuild the initramfs, reboot"]),
    )
}

pub(super) const MODULE_SIGNATURE_REFUSED: Rule = Rule {
    code: Code::ModuleSignatureRefused,
    needles: &[&[
        "Key was rejected by service",
        "Required key not available",
        "Loading of unsigned module is rejected",
        "Loading of module with unavailable key is rejected",
        "unsigned module loading is restricted",
    ]],
    judge: Judge::One(module_signature_refused),
};

fn module_signature_refused(boot: &Boot) -> Option<Finding> {
    let found = boot
        .with_any_of(MODULE_SIGNATURE_REFUSED.needles)
        .filter_map(|e| Some((e, seen::refused_module(&e.text)?)));
    let (lines, modules): (Vec<_>, Vec<_>) = found.unzip();
    let modules = seen::found(seen::each(modules))?;
    let severity = seen::error_unless_alive(boot);
    let of = seen::all_of("module", &modules);
    let told = format!("The kernel refuses {of} because of the signature.");
    Some(
        Finding::of(Code::ModuleSignatureRefused, severity, Confidence::High, told)
            .about_all(&modules)
            .quoting(seen::quotes(boot, lines))
            .look(["mokutil --sb-state; cat /sys/kernel/security/lockdown"])
            .permanent([
                "mokutil --import CERTIFICATE of the key with which the module is signed, and confirm it at the next boot",
                "or install a module that the distribution has signed",
            ]),
    )
}

pub(super) const MODULE_SYMBOL_MISMATCH: Rule = Rule {
    code: Code::ModuleSymbolMismatch,
    needles: &[&[
        "disagrees about version of symbol",
        "Unknown symbol",
        "Unknown symbol in module",
        "version magic '",
        "Invalid module format",
        "Exec format error",
        "section size must match",
        "failed to validate module",
        "Too many levels of symbolic links",
        INSERT,
    ]],
    judge: Judge::One(module_symbol_mismatch),
};

/// How `modprobe` begins, whatever the reason.
const INSERT: &str = "could not insert '";

/// True if `text` says why.
fn is_mismatch(text: &str) -> bool {
    !text.contains("Invalid argument")
        && MODULE_SYMBOL_MISMATCH
            .needles
            .iter()
            .copied()
            .flatten()
            .any(|n| *n != INSERT && text.contains(n))
}

/// `modprobe` says no more of a module that was built for another kernel.
fn is_built_here(text: &str, module: &str) -> bool {
    text.contains("Invalid argument") && RDMA_USERS.contains(&module)
}

fn module_symbol_mismatch(boot: &Boot) -> Option<Finding> {
    let of_symbol = |text: &str| {
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.any(|word| word.starts_with("ib_") || word.starts_with("rdma_"))
    };
    let lines: Vec<_> = boot
        .with_any_of(MODULE_SYMBOL_MISMATCH.needles)
        .filter(|e| !is_busy_symbol(&e.text))
        .filter(|e| {
            if e.text.contains(INSERT) {
                seen::refused_module(&e.text)
                    .is_some_and(|module| is_mismatch(&e.text) || is_built_here(&e.text, module))
            } else {
                seen::refused_module(&e.text).is_some() || of_symbol(&e.text)
            }
        })
        .collect();
    let modules = seen::each(lines.iter().map(|line| {
        let first = line.text.split([':', ' ']).next().unwrap_or("a module");
        seen::refused_module(&line.text).unwrap_or(first)
    }));
    if modules.is_empty() {
        return None;
    }
    let is_sure = lines.iter().any(|e| is_mismatch(&e.text));
    let verb = if modules.len() == 1 { "does" } else { "do" };
    let what = seen::all_of("module", &modules);
    let told = if is_sure {
        format!("{what} {verb} not match the RDMA modules or the kernel that are loaded.")
    } else {
        format!("{what} {verb} not load, probably because of another kernel or RDMA stack.")
    };
    let severity = seen::error_unless_alive(boot);
    let confidence = if is_sure { Confidence::High } else { Confidence::Low };
    Some(
        Finding::of(Code::ModuleSymbolMismatch, severity, confidence, told)
            .about_all(&modules)
            .quoting(seen::quotes(boot, lines))
            .look(seen::for_each("dmesg | grep {}", &modules, "MODULE"))
            .look([ToDo::with("check that all modules are from the kernel, or all from OFED", "modinfo -n ib_core mlx5_core ib_ipoib")])
            .permanent([
                "dracut -f (or update-initramfs -u), so that the initramfs contains the same modules",
                "rebuild the modules that were built against the other stack, then reboot",
            ]),
    )
}

pub(super) const MODULE_INIT_SLOW: Rule = Rule {
    code: Code::ModuleInitSlow,
    needles: &[&["gave up waiting for init of module"]],
    judge: Judge::One(module_init_slow),
};

fn module_init_slow(boot: &Boot) -> Option<Finding> {
    let refused: Vec<_> = boot
        .with_any_of(MODULE_INIT_SLOW.needles)
        .filter_map(|event| {
            let [before, other] =
                caught::<2>(&event.text, "{}: gave up waiting for init of module {}")?;
            let module = before.rsplit(' ').next().unwrap_or(before);
            let other = other.trim_end_matches('.');
            let is_of_rdma = [module, other].iter().any(|name| seen::rdma_module(name).is_some());
            is_of_rdma.then_some((event, module, other))
        })
        .collect();
    if refused.is_empty() {
        return None;
    }
    let modules = seen::each(refused.iter().map(|(_, module, _)| *module));
    let others = seen::each(refused.iter().map(|(_, _, other)| *other));
    let was = if modules.len() > 1 { "were" } else { "was" };
    let (of, other) = (seen::all_of("module", &modules), others.join(", "));
    let severity = seen::error_unless_alive(boot);
    let symbols = boot.events.iter().filter(|event| is_busy_symbol(&event.text));
    let lines = refused.iter().map(|(event, ..)| *event).chain(symbols);
    let told = format!(
        "{of} {was} not loaded, because {other} had not finished its initialization after 30 s."
    );
    Some(
        Finding::of(Code::ModuleInitSlow, severity, Confidence::High, told)
            .about_all(&modules)
            .quoting(seen::quotes(boot, lines))
            .look(
                others
                    .iter()
                    .map(|o| format!("find out why its probe takes so long: dmesg | grep {o}")),
            )
            .now([ToDo::run(format!("modprobe -a {}", modules.join(" ")))]),
    )
}

/// The symbol is one of a module that is initializing (`resolve_symbol_wait()` in
/// kernel/module/main.c): EBUSY, where other versions are EINVAL and none is ENOENT.
fn is_busy_symbol(text: &str) -> bool {
    text.contains("Unknown symbol") && text.contains("(err -16)")
}
