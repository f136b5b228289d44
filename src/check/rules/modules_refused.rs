//! Modules that the kernel or the administrator refuses.

use super::{Boot, Code, Confidence, Event, Finding, Severity, row, seen};
use crate::check::pattern::caught;
use crate::model::advice::ToDo;
use crate::names::RDMA_USERS;

pub(super) fn module_denied(boot: &Boot) -> Option<Finding> {
    let lines = seen::found(boot.events.iter().filter(|e| denies(e)))?;
    let modules = seen::each(lines.iter().flat_map(|e| seen::rdma_modules(&e.text)));
    let is = if modules.len() > 1 { "are" } else { "is" };
    let of =
        if modules.is_empty() { "a module".to_owned() } else { seen::all_of("module", &modules) };
    let severity =
        if seen::sign_of_life(boot).is_some() { Severity::Info } else { Severity::Error };
    let told = format!("{of} {is} on a deny list.");
    let judged = (severity, Confidence::Medium);
    Some(row::told(boot, Code::ModuleDenied, judged, told, &modules, lines))
}

/// True if a module of the RDMA stack is what `event` denies.
fn denies(event: &Event) -> bool {
    // `modprobe.blacklist=a,b`, `blacklist a`: the list ends at white space.
    let listed = ["blacklist=", "blacklist "].iter().any(|word| {
        event.text.split(word).skip(1).any(|rest| {
            rest.split_whitespace().next().is_some_and(|list| seen::rdma_module(list).is_some())
        })
    });
    listed || row::is_line(Code::ModuleDenied, event)
}

/// True if `event` says why.
fn is_mismatch(event: &Event) -> bool {
    row::is_line(Code::ModuleSymbolMismatch, event)
}

/// How `modprobe` begins, whatever the reason.
const INSERT: &str = "could not insert '";

/// `modprobe` says no more of a module that was built for another kernel.
fn is_built_here(text: &str, module: &str) -> bool {
    text.contains(INSERT) && text.contains("Invalid argument") && RDMA_USERS.contains(&module)
}

pub(super) fn module_symbol_mismatch(boot: &Boot) -> Option<Finding> {
    let of_symbol = |text: &str| {
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.any(|word| word.starts_with("ib_") || word.starts_with("rdma_"))
    };
    let is_of = |e: &&Event| match seen::refused_module(&e.text) {
        Some(module) => is_mismatch(e) || is_built_here(&e.text, module),
        None => is_mismatch(e) && of_symbol(&e.text) && !e.text.contains(INSERT),
    };
    let lines: Vec<_> =
        boot.events.iter().filter(|e| !is_busy_symbol(&e.text)).filter(is_of).collect();
    let modules = seen::each(lines.iter().map(|line| {
        let first = line.text.split([':', ' ']).next().unwrap_or("a module");
        seen::refused_module(&line.text).unwrap_or(first)
    }));
    if modules.is_empty() {
        return None;
    }
    let is_sure = lines.iter().any(|e| is_mismatch(e));
    let verb = if modules.len() == 1 { "does" } else { "do" };
    let what = seen::all_of("module", &modules);
    let told = if is_sure {
        format!("{what} {verb} not match the RDMA modules or the kernel that are loaded.")
    } else {
        format!("{what} {verb} not load, probably because of another kernel or RDMA stack.")
    };
    let severity = seen::error_unless_alive(boot);
    let confidence = if is_sure { Confidence::High } else { Confidence::Low };
    let judged = (severity, confidence);
    Some(row::told(boot, Code::ModuleSymbolMismatch, judged, told, &modules, lines))
}

pub(super) fn module_init_slow(boot: &Boot) -> Option<Finding> {
    let refused: Vec<_> = boot
        .with("gave up waiting for init of module")
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
