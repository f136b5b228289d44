use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::PciBarUnassigned,
    meaning: "the kernel found no place for a register window (BAR) of the adapter itself",
    page: "\
The firmware of the host assigned no address space to the adapter, or too little, and
the kernel could not make room. The driver cannot map its registers and gives up. If only
VFs have no address space, the diagnosis is sriov-mmio.

Symptoms: mlx4_core \"Missing UAR, aborting\" or \"Missing DCS, aborting\", mlx5_core
\"Missing registers BAR, aborting\", \"can't assign; no space\" or \"failed to assign\"
of a BAR beside it.

Remedy: enable Above 4G decoding in the firmware setup, or add pci=realloc to the kernel
command line, so that the kernel assigns the addresses again.",
    needles: &[&["Missing UAR", "Missing DCS", "Missing registers BAR"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> =
        boot.with_any_of(RULE.needles).filter(|e| seen::rdma_module(&e.text).is_some()).collect();
    let Some(first) = lines.first() else { return Vec::new() };
    let addresses: Vec<&str> =
        seen::by_function(lines.iter().copied()).into_iter().filter_map(|(of, _)| of).collect();
    let bars = boot.events.iter().filter(|e| {
        addresses.iter().any(|address| e.text.contains(address))
            && e.text.contains("BAR")
            && ["no space", "failed to assign", "can't assign"].iter().any(|w| e.text.contains(w))
    });
    let of = seen::all_of("adapter", &addresses);
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::High,
            format!("This host has no address space for {of}: {}", first.text.trim()),
        )
        .about_if(seen::joined(&addresses))
        .quoting(seen::quotes(boot, lines.iter().copied().chain(bars)))
        .look(seen::for_each(
            "lspci -vv -s {} | grep Region; dmesg | grep -e {} -e BAR",
            &addresses,
            "ADDRESS",
        ))
        .permanent([
            "enable Above 4G decoding in the firmware setup",
            "or add pci=realloc to the kernel command line",
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_card_without_a_place_is_told() {
        assert_eq!(
            severity(&RULE, &["[ 5.1] mlx4_core 0000:04:00.0: Missing UAR, aborting"]),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["[ 5.1] mlx5_core 0000:04:00.0: Missing registers BAR, aborting"]),
            Some(Severity::Error)
        );
        assert_eq!(severity(&RULE, &["[ 5.1] foo 0000:04:00.0: Missing UAR, aborting"]), None);
    }
}
