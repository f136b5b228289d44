use super::super::evidence::event::function;
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::SriovVfUnreachable,
    meaning: "the VFs' configuration space does not answer",
    page: "\
The PF created VFs, and reading their configuration space gives all ones: header type
7f, class 0xffffff. The requests do not reach the adapter: a bridge or root port
without ARI, a bus number that is not routed, a platform whose PCI controller
passes only one function.

Remedy: try another slot (directly below a root port with ARI), update the host's
firmware, or add pci=assign-busses to the kernel command line. Some platforms do not
support it.",
    needles: &[&["unknown header type 7f", "Unknown header type 7f", "type 7f class 0xffffff"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot.with_any_of(RULE.needles).collect();
    let lspci: Vec<_> = boot
        .state
        .pci
        .iter()
        .filter(|f| f.text.contains("Virtual Function") || f.is_infiniband())
        .filter(|f| f.details.iter().any(|d| d.contains("Unknown header type 7f")))
        .map(|f| boot.quote_at(f.origin, "", &f.text))
        .collect();
    if lines.is_empty() && lspci.is_empty() {
        return Vec::new();
    }
    let addresses = seen::each(lines.iter().filter_map(|e| function(&e.text)));
    let does = if addresses.len() > 1 { "do" } else { "does" };
    let of = seen::all_of("VF", &addresses);
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::High,
            format!("{of} {does} not answer in configuration space (header type 7f)."),
        )
        .about_if(seen::joined(&addresses))
        .quoting(seen::quotes(boot, lines))
        .quoting(lspci)
        .look([
            "check whether a bridge without ARI is above the adapter (lspci -tv), and try a slot at a root port",
        ])
        .permanent(["update the host's firmware, or add pci=assign-busses to the kernel command line"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn header_type_7f() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 37.9] pci 0000:01:10.0: [15b3:1014] type 7f class 0xffffff",
                    "[ 37.9] pci 0000:01:10.0: unknown header type 7f, ignoring device",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["[ 37.9] pci 0000:01:10.0: [15b3:1014] type 00 class 0x020700",]),
            None
        );
    }
}
