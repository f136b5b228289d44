use super::super::evidence::event::function;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::report::firmware::how_to_set;

pub(super) const RULE: Rule = Rule {
    code: Code::SriovMmio,
    meaning: "the address space has no room for the VFs",
    page: "\
The kernel could not assign addresses to the VFs' memory (BARs), or bus numbers: the
firmware of the host left no room below the bridge. The VFs cannot be created.

Symptoms: \"not enough MMIO resources for SR-IOV\", \"VF BAR 0 ... can't assign;
no space\", \"SR-IOV: bus number out of range\".

The same messages for a bridge, or for a BAR that is assigned a line later, are harmless.

Remedy: enable SR-IOV and Above 4G decoding and enlarge the MMIO window in the
firmware setup; or lower the number of VFs (NUM_OF_VFS in the adapter's firmware); or
add pci=realloc to the kernel command line (pci=assign-busses for bus numbers).",
    needles: &[&[
        "BAR 7: ",
        "BAR 9: ",
        "BAR 11: ",
        ": assigned [",
        "not enough MMIO resources for SR-IOV",
        "for SR-IOV",
        "VF BAR",
        "bus number out of range",
        "can't assign; no space",
        "failed to assign",
        "IOV BAR",
        "write error: Cannot allocate memory",
    ]],
    judge: Judge::Boot(judge),
};

/// Drivers of graphics adapters, which have VFs too.
const GRAPHICS: [&str; 7] = ["i915", "xe", "amdgpu", "gim", "nouveau", "nvidia", "radeon"];

/// True if the driver of a graphics adapter has written `event`.
fn is_of_graphics(event: &super::Event) -> bool {
    event.text.split_whitespace().any(|word| GRAPHICS.contains(&word))
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let refused: Vec<_> = boot
        .events
        .iter()
        .filter(|e| {
            e.text.contains("not enough MMIO resources for SR-IOV")
                || e.text.contains("SR-IOV") && e.text.contains("bus number out of range")
        })
        .collect();
    let bars: Vec<_> = boot
        .events
        .iter()
        .filter(|e| {
            let t = &e.text;
            let vf = t.contains("VF BAR")
                || ["BAR 7:", "BAR 9:", "BAR 11:"].iter().any(|b| t.contains(b));
            vf && (t.contains("no space") || t.contains("failed to assign"))
        })
        // It may get another place a line later.
        .filter(|e| {
            let address = function(&e.text).unwrap_or("?");
            !boot.events.iter().any(|l| {
                l.origin > e.origin && l.text.contains(address) && l.text.contains(": assigned")
            })
        })
        .collect();
    // The VFs of a graphics adapter do not concern InfiniBand: they are information only.
    let graphics: Vec<_> =
        refused.iter().filter(|e| is_of_graphics(e)).filter_map(|e| function(&e.text)).collect();
    let concerns_us = |e: &&&super::Event| {
        !is_of_graphics(e) && !function(&e.text).is_some_and(|at| graphics.contains(&at))
    };
    let ours = refused.iter().find(&concerns_us);
    let bar = bars.iter().find(&concerns_us);
    if refused.is_empty() && bars.is_empty() {
        return Vec::new();
    }
    let is_ours = ours.or(bar).is_some();
    let lines = refused.iter().chain(&bars).filter(|e| !is_ours || concerns_us(e)).copied();
    let addresses: Vec<&str> =
        seen::by_function(lines).into_iter().filter_map(|(of, _)| of).collect();
    let (severity, confidence) = match (ours, bar) {
        (Some(_), _) => (Severity::Error, Confidence::High),
        (None, Some(_)) => (Severity::Warning, Confidence::Medium),
        (None, None) => (Severity::Info, Confidence::Low),
    };
    let of = seen::all_of("adapter", &addresses);
    let fewer = seen::for_each(
        &format!("or lower the number of VFs: {}", how_to_set("{}", "NUM_OF_VFS=N", false)),
        &addresses,
        "ADDRESS",
    );
    vec![
        Finding::new(
            RULE.code,
            severity,
            confidence,
            format!("The address space has no room for the VFs of {of}."),
        )
        .about_if(seen::joined(&addresses))
        .quoting(seen::quotes(boot, refused.into_iter().chain(bars)))
        .permanent(["in the firmware setup, enable SR-IOV and Above 4G decoding, and enlarge the MMIO (64 bit) window"])
        .permanent(fewer)
        .permanent([
            "or add pci=realloc (for bus numbers: pci=assign-busses) to the kernel command line",
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_bar_that_finds_another_place_is_none() {
        assert_eq!(
            severity(
                &RULE,
                &["[ 4.4] mlx5_core 0000:04:00.0: not enough MMIO resources for SR-IOV",]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &["[ 0.7] pci 0000:04:00.0: BAR 7: no space for [mem size 0x01000000 64bit pref]",]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 0.7] pci 0000:04:00.0: BAR 7: no space for [mem size 0x01000000 64bit pref]",
                    "[ 0.8] pci 0000:04:00.0: BAR 7: assigned [mem 0x1000-0x2000]",
                ]
            ),
            None
        );
        assert_eq!(
            severity(
                &RULE,
                &["[ 0.7] pcieport 0000:00:01.0: BAR 13: no space for [io  size 0x1000]",]
            ),
            None
        );
    }

    #[test]
    fn vfs_of_a_graphics_adapter_are_information() {
        let line = "[ 4.4] i915 0000:00:02.0: not enough MMIO resources for SR-IOV";
        assert_eq!(severity(&RULE, &[line]), Some(Severity::Info));
        let bar = "[ 0.7] pci 0000:00:02.0: BAR 7: no space for [mem size 0x01000000 64bit pref]";
        assert_eq!(severity(&RULE, &[bar, line]), Some(Severity::Info));
        let other = "[ 0.7] pci 0000:04:00.0: BAR 7: no space for [mem size 0x01000000 64bit pref]";
        assert_eq!(severity(&RULE, &[bar, other, line]), Some(Severity::Warning));
        let card = "[ 4.5] ixgbe 0000:04:00.0: not enough MMIO resources for SR-IOV";
        assert_eq!(severity(&RULE, &[line, card]), Some(Severity::Error));
    }
}
