use super::{
    Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen, vf_probe_failed::is_out_of_room,
};
use crate::check::evidence::state::Setting;
use crate::report::firmware::{how_to_set, tool};

pub(super) const RULE: Rule = Rule {
    code: Code::SriovNotEnabledFw,
    meaning: "SR-IOV is disabled in the adapter's firmware",
    page: "\
The adapter's firmware setting SRIOV_EN is off, or NUM_OF_VFS is 0 or lower than the
number of planned VFs. The adapter then shows no SR-IOV capability, or fewer VFs
(sriov_totalvfs).

Symptoms: mlxconfig reports SRIOV_EN False(0) or NUM_OF_VFS 0; sriov_totalvfs is 0;
sriov_numvfs answers ERANGE (Numerical result out of range).

Remedy: enable SR-IOV in the firmware, by a [[firmware]] and `ibprov firmware --apply`
or by hand (mlxconfig takes the same arguments), then reboot or power cycle the host:

    mstconfig -d ADDRESS set SRIOV_EN=1 NUM_OF_VFS=N",
    needles: &[&[
        "available vfs (",
        "mlx5_num_vfs",
        "SRIOV_EN",
        "NUM_OF_VFS",
        "Numerical result out of range",
        "sriov_totalvfs",
        "Failed to enable SR-IOV",
        "_enable_sriov failed",
        "sriov_numvfs",
        "SR-IOV is not supported",
        "doesn't support SR-IOV",
        "does not support SR-IOV",
        "not SRIOV capable",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let is_off = |s: &&Setting| {
        s.name == "SRIOV_EN"
            && (s.value.contains("False") || s.value.contains("(0)") || s.value == "0")
            || s.name == "NUM_OF_VFS" && s.value == "0"
    };
    let settings: Vec<&Setting> = boot.state.settings.iter().filter(is_off).collect();
    let mut devices: Vec<&str> = settings.iter().map(|s| s.device.as_str()).collect();
    devices.dedup();
    devices.retain(|device| !device.is_empty());
    let off: Vec<_> = settings.iter().map(|s| boot.quote_at(s.origin, "", &s.text)).collect();
    // What was written already waits for a reset, which is another finding.
    let is_of_vfs = |s: &&Setting| matches!(s.name.as_str(), "SRIOV_EN" | "NUM_OF_VFS");
    if off.is_empty() && boot.state.settings.iter().filter(is_of_vfs).any(Setting::is_pending) {
        return Vec::new();
    }
    let zero: Vec<_> = boot
        .state
        .commands
        .iter()
        .filter(|c| c.text.contains("sriov_totalvfs") && c.answer() == "0")
        .map(|c| boot.quote_at(c.origin, "", &format!("{}: 0", c.text)))
        .collect();
    let full: Vec<_> = boot.with("_enable_sriov failed").filter(|e| is_out_of_room(e)).collect();
    let range: Vec<_> = boot
        .events
        .iter()
        .filter(|e| e.text.contains("Numerical result out of range") && wants_vfs(boot, &e.text))
        .chain(boot.with("available vfs (").filter(|e| seen::rdma_module(&e.text).is_some()))
        // The card hides the capability, and the kernel has no file for it.
        .chain(boot.with_any(&["sriov_numvfs", "sriov_totalvfs"]).filter(|e| {
            e.text.contains("No such file")
                && !boot.says("MMIO range=[")
                && of_mellanox(boot, &e.text)
        }))
        .chain(full.iter().copied())
        .chain(
            boot.with("Failed to enable SR-IOV").filter(|e| seen::rdma_module(&e.text).is_some()),
        )
        .collect();
    // Someone must want VFs, or a setting that is off is what the site wants.
    let asked = !range.is_empty()
        || is_missed(boot)
        || boot.events.iter().any(|e| e.text.contains("NUM_OF_VFS") && !e.text.contains("  "));
    if off.is_empty() && zero.is_empty() && range.is_empty() {
        return Vec::new();
    }
    let severity = if asked { Severity::Error } else { Severity::Warning };
    let confidence = if off.is_empty() { Confidence::Medium } else { Confidence::High };
    vec![
        Finding::new(
            RULE.code,
            severity,
            confidence,
            "The adapter's firmware has SR-IOV disabled, or allows fewer VFs than are planned.",
        )
        .quoting(off)
        .quoting(zero)
        .quoting(seen::quotes(boot, range))
        .about_if(seen::joined(&devices))
        .look(seen::for_each(&tool("{}", "query SRIOV_EN NUM_OF_VFS"), &devices, "ADDRESS"))
        .permanent(seen::for_each(
            &how_to_set("{}", "SRIOV_EN=1 NUM_OF_VFS=N", false),
            &devices,
            "ADDRESS",
        ))
        .permanent((!full.is_empty()).then_some(
            "or plan fewer VFs: the adapter may have no interrupt vectors for so many (ENOSPC)",
        )),
    ]
}

/// True if somebody wants VFs that are not there: a command says so, or a message.
pub(super) fn is_missed(boot: &Boot) -> bool {
    let commands = &boot.state.commands;
    commands.iter().any(|c| {
        c.text.contains("sriov_totalvfs") && c.answer() == "0"
            || c.text.contains("sriov_numvfs")
            || c.text.contains("num_vfs")
    }) || boot.events.iter().any(|e| e.text.contains("sriov_numvfs"))
}

/// True if the card is one whose firmware has such a setting.
fn of_mellanox(boot: &Boot, text: &str) -> bool {
    text.contains("/infiniband/")
        || boot.events.iter().any(|e| e.text.contains("mlx5_core") || e.text.contains("mlx4_core"))
        || boot.state.pci.iter().any(|f| f.text.contains("Mellanox"))
}

/// True if the error is one of making VFs.
fn wants_vfs(boot: &Boot, text: &str) -> bool {
    ["vfs", "VFs", "sriov", "SR-IOV"].iter().any(|w| text.contains(w))
        || boot.state.commands.iter().any(|c| {
            c.text.contains("num")
                && c.text.contains("vfs")
                && c.output.iter().any(|(_, o)| o.contains("Numerical result out of range"))
        })
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_setting_that_nobody_misses_is_a_warning() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "# echo 4 > /sys/class/infiniband/mlx5_0/device/sriov_numvfs",
                    "-bash: echo: write error: Numerical result out of range",
                    "         SRIOV_EN                            False(0)",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "         SRIOV_EN                            False(0)",
                    "         NUM_OF_VFS                          8",
                ]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "         SRIOV_EN                            True(1)",
                    "         NUM_OF_VFS                          8",
                ]
            ),
            None
        );
    }
}
