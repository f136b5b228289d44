use super::{Boot, Confidence, Finding, Judge, Rule, Severity, vf_setting_dropped};
use crate::report::common::Code;
use crate::report::pf::REFUSED;

pub(super) const RULE: Rule = Rule {
    code: Code::VfSettingRefused,
    meaning: "the driver or the firmware of a PF refuses a GUID or a link state of a VF",
    page: "\
ibprov set a VF's GUID or link state at the PF, and the kernel returned an error, which
the report of the PF names. EPERM comes from mlx5_core: the firmware does not let this
PF administer the ports of its VFs. EOPNOTSUPP comes from the kernel: the driver cannot
set it, or the port is in Ethernet mode. Other errors are the firmware's answer: the
line of mlx5_core in the kernel log gives its status and syndrome.

Symptoms: \"..., and the change was refused: set node GUID of VF 0 to ...: EIO\" in the
report of the PF; \"MODIFY_HCA_VPORT_CONTEXT ... failed\" in the kernel log.

Remedy: read the kernel's line, then what the firmware is set to; update the firmware,
or reset the adapter (mlxconfig and mlxfwreset of NVIDIA's MFT take the same arguments):

    dmesg | grep mlx5_core
    mstconfig -d PCI-ADDRESS query SRIOV_EN SRIOV_IB_ROUTING_MODE_P1
    mstfwreset -d PCI-ADDRESS reset",
    needles: &[&[REFUSED]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    vf_setting_dropped::told(boot, Code::VfSettingRefused, REFUSED, |pf| {
        let summary =
            format!("PF {pf} refuses a setting of a VF: the kernel returned an error for it.");
        Finding::new(RULE.code, Severity::Error, Confidence::High, summary)
            .look([format!("dmesg | grep {pf}")])
            .permanent([format!(
                "update the adapter's firmware, or reset the adapter: `mstfwreset -d {pf} reset` (or mlxfwreset with the same arguments)"
            )])
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::*;

    const REFUSED_GUID: &str = "Jan 02 10:00:03 n9 ibprov[77]: PF 0000:4b:00.0: VF 0 (0000:4b:00.1): not as planned (state: pci, expected: verified): the node GUID at the PF is 0000:0000:0000:0000 instead of 0200:0000:0000:0001, and the change was refused: set node GUID of VF 0 to 0200:0000:0000:0001: set by netlink: EIO";

    #[test]
    fn a_log_tells_it_until_it_is_made_good() {
        assert_eq!(severity(&RULE, &[REFUSED_GUID]), Some(Severity::Error));
        let good = "Jan 02 10:00:09 n9 ibprov[99]: PF 0000:4b:00.0: 2 of 2 VFs as planned after 1.154 s, 4 steps";
        assert_eq!(severity(&RULE, &[REFUSED_GUID, good]), None);
        let others = REFUSED_GUID.replace("and the change was refused: ", "");
        assert_eq!(severity(&RULE, &[&others]), None);
    }
}
