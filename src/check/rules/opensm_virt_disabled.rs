use super::vf_state::{dead_ports, is_zero, quote_ports, vfs};
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::names::Policy;

pub(super) const RULE: Rule = Rule {
    code: Code::OpensmVirtDisabled,
    meaning: "the subnet manager has no virtualization support: VF ports stay down",
    page: "\
The PF is Active, its VFs are not, although they have GUIDs and a policy of Follow
or Up. From ConnectX-4 on each VF is a port of its own to the subnet manager, and
must support virtualization: NVIDIA's opensm with virt_enabled 2, UFM, or a switch with
virtualization enabled. The opensm of the distributions does not support it.

Remedy: set virt_enabled 2 in NVIDIA's /etc/opensm/opensm.conf and restart opensm, or
use a subnet manager that supports virtual ports.",
    needles: &[&[
        "virt_enabled",
        "support virtualization",
        "virtualization support",
        "VIRTUALIZATION",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let setting: Vec<_> = boot
        .with("virt_enabled")
        .filter(|e| {
            let value = e.text.split("virt_enabled").nth(1).unwrap_or_default();
            let value = value.trim_start_matches([' ', '=', ':', '\t']);
            // 0 ignores it, 1 switches it off, 2 on.
            value.starts_with(['0', '1']) || value.starts_with("FALSE")
        })
        .collect();
    let mut dead = dead_ports(boot);
    // Their PF keeps those down, whatever the subnet manager does; of a host that was judged
    // the judgement says which others are none of its fault. Alias GUIDs (mlx4) need no support.
    dead.retain(|port| port.policy != Some(Policy::Down) && !seen::has_alias(boot, port));
    if let Some(named) = seen::dark_vf_ports(boot) {
        dead.retain(|port| {
            named.iter().any(|object| object.starts_with(&format!("{} (", port.name())))
        });
    }
    // The judgement of a host names those that have a GUID and a link state.
    let is_judged = seen::dark_vf_ports(boot).is_some();
    let ready = is_judged && !dead.is_empty()
        || vfs(boot).any(|v| {
            !v.port_guid.as_deref().is_none_or(is_zero)
                && matches!(v.link_state.as_str(), "auto" | "enable")
        });
    if dead.is_empty() && setting.is_empty() {
        return Vec::new();
    }
    let enabled = boot.with("virt_enabled").any(|e| {
        e.text
            .split("virt_enabled")
            .nth(1)
            .is_some_and(|v| v.trim_start_matches([' ', '=', ':', '\t']).starts_with('2'))
    });
    if enabled && setting.is_empty() {
        return Vec::new();
    }
    // Zero GUIDs and policies of Down are other findings.
    if dead.iter().any(|p| is_zero(&p.node_guid)) && setting.is_empty() {
        return Vec::new();
    }
    let confidence = match (setting.is_empty(), ready, dead.is_empty()) {
        (false, _, false) => Confidence::High,
        (false, _, true) | (true, true, _) => Confidence::Medium,
        (true, false, _) => Confidence::Low,
    };
    vec![
        Finding::new(
            RULE.code,
            Severity::Warning,
            confidence,
            "The PF is Active and its VFs are not: the subnet manager does not serve virtual ports.",
        )
        .about_if(seen::names(dead.iter().copied()))
        .quoting(seen::quotes(boot, setting))
        .quoting(quote_ports(boot, &dead))
        .look(["check that GUID and link state of the VF are set: ibprov status, or ip link show PF_NETDEV"]).permanent(["set virt_enabled 2 in /etc/opensm/opensm.conf of NVIDIA's opensm (the distributions' opensm has no such option), then restart opensm"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ca, severity};
    use super::{RULE, Severity};

    #[test]
    fn a_vf_that_is_down_beside_its_pf() {
        assert_eq!(
            severity(
                &RULE,
                &[&ca(0, "MT4123", 1, "Active", "LinkUp"), &ca(1, "MT4124", 2, "Down", "LinkUp"),]
            ),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(
                &RULE,
                &[&ca(0, "MT4123", 1, "Active", "LinkUp"), &ca(1, "MT4124", 2, "Active", "LinkUp"),]
            ),
            None
        );
        assert_eq!(
            severity(
                &RULE,
                &[&ca(0, "MT4123", 1, "Active", "LinkUp"), &ca(1, "MT4123", 2, "Down", "Polling"),]
            ),
            None
        );
        assert_eq!(
            severity(
                &RULE,
                &[&ca(0, "MT4123", 1, "Active", "LinkUp"), &ca(1, "MT4124", 0, "Down", "LinkUp"),]
            ),
            None
        );
    }

    #[test]
    fn nvidias_option_is_on_at_2_only() {
        let vf = ca(1, "MT4124", 2, "Down", "LinkUp");
        let pf = ca(0, "MT4123", 1, "Active", "LinkUp");
        for (value, told) in [(0, Some(Severity::Warning)), (1, Some(Severity::Warning)), (2, None)]
        {
            let option = format!("virt_enabled {value}");
            assert_eq!(severity(&RULE, &[&option, &pf, &vf]), told, "{value}");
        }
    }
}
