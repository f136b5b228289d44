use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleWrongDriver,
    meaning: "a driver for other hardware is loaded",
    page: "\
The adapter has no driver, and the driver that is loaded is for another generation:
mlx4 drives ConnectX-2 and -3, mlx5 Connect-IB and ConnectX-4 and later, ib_mthca
the adapters before them, hfi1 Omni-Path, ib_qib TrueScale.

Remedy: load the driver that belongs to the adapter, and name that driver in the
lists. To see the adapter and its driver:

    lspci -nnk
    modprobe -R MODALIAS",
    needles: &[],
    judge: Judge::Boot(judge),
};

/// What lspci calls the cards of each driver.
const FAMILIES: [(&str, &[&str]); 5] = [
    (
        "mlx4_core",
        &["ConnectX-2", "ConnectX-3", "MT26428", "MT25408", "MT27500", "MT27520", "[ConnectX VPI"],
    ),
    (
        "mlx5_core",
        &["ConnectX-4", "ConnectX-5", "ConnectX-6", "ConnectX-7", "Connect-IB", "BlueField"],
    ),
    ("ib_mthca", &["InfiniHost"]),
    ("ib_qib", &["IBA7322", "IBA7220", "TrueScale"]),
    ("hfi1", &["Omni-Path"]),
];

fn judge(boot: &Boot) -> Vec<Finding> {
    let Some(modules) = &boot.state.modules else { return Vec::new() };
    for function in &boot.state.pci {
        let Some((right, _)) =
            FAMILIES.iter().find(|(_, names)| names.iter().any(|n| function.text.contains(n)))
        else {
            continue;
        };
        let Some((wrong, _)) =
            FAMILIES.iter().find(|(driver, _)| driver != right && modules.has(driver))
        else {
            continue;
        };
        if function.driver.is_none() && modules.lacks(right) {
            return vec![
                Finding::new(
                    RULE.code,
                    Severity::Error,
                    Confidence::Medium,
                    format!("{} needs {right}, and {wrong} is loaded.", function.address),
                )
                .about(function.address.as_str())
                .quoting([boot.quote_at(function.origin, "", &function.text)])
                .now([format!("modprobe {right}")])
                .permanent([format!("name {right} instead of {wrong} in /etc/modules-load.d")]),
            ];
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn the_driver_of_another_generation() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "04:00.0 Infiniband controller: Mellanox Technologies MT27500 Family [ConnectX-3]",
                    "\tSubsystem: Mellanox",
                    "",
                    "Module                  Size  Used by",
                    "mlx5_core 10 0",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "04:00.0 Infiniband controller: Mellanox Technologies MT27500 Family [ConnectX-3]",
                    "\tKernel driver in use: mlx4_core",
                    "",
                    "Module                  Size  Used by",
                    "mlx5_core 10 0",
                    "mlx4_core 10 0",
                ]
            ),
            None
        );
    }
}
