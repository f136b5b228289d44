use super::super::pattern::caught;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleInitSlow,
    meaning: "a module was refused, because a module that it needs was still initializing",
    page: "\
A module that uses the symbols of another one can be loaded only when that one has
finished its initialization. The kernel waits 30 s for it and then refuses the module
with EBUSY. The initialization of a driver includes the probe of its adapters: it takes
this long where the firmware answers slowly or not at all, or where a driver has many
adapters and VFs. No program loads the refused module again.

Symptoms: \"mlx5_ib: gave up waiting for init of module mlx5_core.\", then \"mlx5_ib:
Unknown symbol mlx5_cmd_exec (err -16)\". Error -16 is EBUSY: the modules do match.

Remedy: load the module again when the driver has finished, and find out why its probe
takes so long (dmesg, firmware).

    modprobe MODULE",
    needles: &[&["gave up waiting for init of module"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let refused: Vec<_> = boot
        .with_any_of(RULE.needles)
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
        return Vec::new();
    }
    let modules = seen::each(refused.iter().map(|(_, module, _)| *module));
    let others = seen::each(refused.iter().map(|(_, _, other)| *other));
    let was = if modules.len() > 1 { "were" } else { "was" };
    let (of, other) = (seen::all_of("module", &modules), others.join(", "));
    let severity = match seen::sign_of_life(boot).is_some() {
        true => Severity::Warning,
        false => Severity::Error,
    };
    let symbols = boot.events.iter().filter(|event| is_busy_symbol(&event.text));
    let lines = refused.iter().map(|(event, ..)| *event).chain(symbols);
    vec![
        Finding::new(
            RULE.code,
            severity,
            Confidence::High,
            format!("{of} {was} not loaded, because {other} had not finished its initialization after 30 s."),
        )
        .about_if(seen::joined(&modules))
        .quoting(seen::quotes(boot, lines))
        .look(others.iter().map(|o| format!("find out why its probe takes so long: dmesg | grep {o}")))
        .now([format!("modprobe -a {}", modules.join(" "))]),
    ]
}

/// The symbol is one of a module that is initializing (`resolve_symbol_wait()` in
/// kernel/module/main.c): EBUSY, where other versions are EINVAL and none is ENOENT.
pub(super) fn is_busy_symbol(text: &str) -> bool {
    text.contains("Unknown symbol") && text.contains("(err -16)")
}

#[cfg(test)]
mod tests {
    use super::super::module_symbol_mismatch;
    use super::super::testing::severity;
    use super::{RULE, Severity};

    const BUSY: &[&str] = &[
        "[   38.1] mlx5_ib: gave up waiting for init of module mlx5_core.",
        "[   38.1] mlx5_ib: Unknown symbol mlx5_cmd_exec (err -16)",
    ];

    #[test]
    fn a_module_that_waits_for_another_is_no_mismatch() {
        assert_eq!(severity(&RULE, BUSY), Some(Severity::Error));
        assert_eq!(severity(&module_symbol_mismatch::RULE, BUSY), None);
        let other = ["[   38.1] snd_hda: gave up waiting for init of module snd_core."];
        assert_eq!(severity(&RULE, &other), None);
        let mismatch = ["[ 8.1] mlx5_ib: Unknown symbol mlx5_cmd_exec (err -22)"];
        assert_eq!(severity(&module_symbol_mismatch::RULE, &mismatch), Some(Severity::Error));
    }
}
