use super::super::evidence::event::function;
use super::{Boot, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::report::common::Code;

pub(super) const RULE: Rule = Rule {
    code: Code::PcieLinkReduced,
    meaning: "the adapter's PCIe link is narrower or slower than it can be",
    page: "\
The adapter has trained its PCIe link with fewer lanes or at a lower speed than it
could. Fewer lanes are mostly caused by an adapter that is not seated properly, a
dirty contact or a riser; a lower speed is often that of the slot. The adapter works, and
cannot carry the full rate of its port.

Symptoms: the driver reports \"PCIe width is lower than device's capability\"; lspci -vv
shows \"Width x8 (downgraded)\"; the kernel's \"available PCIe bandwidth, limited by\"
names the device that limits it. The last message alone is information, since many slots
are built so. On a host, current_link_width and current_link_speed of the function are
compared with the maximum of the function and that of the port above it, whichever is
lower. To have the exit code depend on the link, set pcie-width and pcie-speed in
[[port]].

Remedy: reseat the adapter, try another slot, and check speed and bifurcation of the
slot in the firmware setup.",
    needles: &[&[
        "PCIe width is lower",
        "PCIe speed is slower",
        "available PCIe bandwidth, limited by",
        "(downgraded)",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let said =
        |word: &'static str| boot.with(word).filter(|e| seen::rdma_module(&e.text).is_some());
    let width: Vec<_> = said("PCIe width is lower").collect();
    let slow: Vec<_> =
        said("PCIe speed is slower").chain(said("available PCIe bandwidth, limited by")).collect();
    // `LnkSta: Speed 8GT/s (ok), Width x8 (downgraded)` below a function of the stack.
    let narrow = |text: &String| {
        text.contains("LnkSta:")
            && text.contains("Width")
            && text.split("Width").nth(1).is_some_and(|w| w.contains("(downgraded)"))
    };
    let shown: Vec<_> = boot
        .state
        .pci
        .iter()
        .filter(|f| {
            ["nfiniband", "nfiniBand", "Mellanox", "ConnectX"].iter().any(|w| f.text.contains(w))
        })
        .filter_map(|f| Some((f, f.details.iter().find(|text| narrow(text))?)))
        .collect();
    let (severity, what) = match (width.is_empty() && shown.is_empty(), slow.first()) {
        (false, _) => (Severity::Warning, "narrower than the adapter can use"),
        (true, Some(_)) => (Severity::Info, "slower than the adapter can use"),
        (true, None) => return Vec::new(),
    };
    let of_lines = width.iter().chain(&slow).filter_map(|e| function(&e.text));
    let addresses =
        seen::each(of_lines.chain(shown.iter().map(|(function, _)| function.address.as_str())));
    let of = match &addresses[..] {
        [] => String::new(),
        addresses => format!(" of {}", seen::all_of("adapter", addresses)),
    };
    vec![
        Finding::new(RULE.code, severity, Confidence::High, format!("The PCIe link{of} is {what}."))
            .about_if(seen::joined(&addresses))
            .quoting(seen::quotes(boot, width.into_iter().chain(slow)))
            .quoting(shown.iter().map(|(f, text)| boot.quote_at(f.origin, "", &format!("{} {}", f.text, text.trim()))))
            .look(seen::for_each("lspci -vv -s {} | grep -e LnkCap: -e LnkSta:", &addresses, "ADDRESS"))
            .permanent(["reseat the adapter or try another slot; check the slot's width and speed in the firmware setup"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn lost_lanes_are_warned_of_and_a_slow_slot_is_information() {
        assert_eq!(
            severity(
                &RULE,
                &["[ 9.1] mlx5_core 0000:4b:00.0: PCIe width is lower than device's capability"]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 9.1] mlx5_core 0000:4b:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at 0000:00:03.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
                ]
            ),
            Some(Severity::Info)
        );
        assert_eq!(
            severity(
                &RULE,
                &["[ 9.1] igb 0000:4b:00.0: PCIe width is lower than device's capability"]
            ),
            None
        );
    }
}
