use super::vf_state::{dead_ports, named, quote_ports, quote_vfs, repaired, vfs};
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::VfPolicyDown,
    meaning: "the VF's link state is Down",
    page: "\
The PF sets the link state of the VF's port: Down (the initial value of every VF), Up, or
Follow, which is that of the physical port. With Down the VF's port stays Down.

Symptoms: link-state disable in `ip link show`; Down in
/sys/class/infiniband/mlx5_0/device/sriov/0/policy.

Remedy: set link-state = \"follow\" in the plan. By hand, with immediate effect:

    ip link set ib0 vf 0 state auto

With MLNX_OFED, write Follow to sriov/0/policy of the PF.",
    needles: &[],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let down: Vec<_> =
        vfs(boot).filter(|v| v.link_state == "disable" && v.node_guid.is_some()).collect();
    let sysfs: Vec<_> = boot
        .state
        .commands
        .iter()
        .filter(|c| c.text.contains("policy") && c.text.contains("cat") && c.answer() == "Down")
        .map(|c| boot.quote_at(c.origin, "", &format!("{}: Down", c.text)))
        .collect();
    if down.is_empty() && sysfs.is_empty() {
        return Vec::new();
    }
    let dead = dead_ports(boot);
    let confidence = if dead.is_empty() { Confidence::Medium } else { Confidence::High };
    let names = named(boot, &down);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let told = match &names[..] {
        [] => "The link policy of a VF is Down, so that its port stays Down.".to_owned(),
        [one] => format!("The link policy of {one} is Down, so that its port stays Down."),
        several => format!(
            "The link policies of {} are Down, so that their ports stay Down.",
            seen::all_of("VF", several)
        ),
    };
    vec![
        Finding::new(RULE.code, Severity::Error, confidence, told)
            .about_if(seen::joined(&names))
            .quoting(quote_vfs(boot, &down))
            .quoting(sysfs)
            .quoting(quote_ports(boot, &dead))
            .steps(repaired(boot, &down, "ip link set {pf} vf {vf} state auto"))
            .permanent(["plan the VF, or set link-state = \"follow\" in its plan, in /etc/ibprov/ibprov.toml"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{severity, two_vfs};
    use super::{RULE, Severity};

    #[test]
    fn what_the_pf_shows() {
        assert_eq!(
            severity(
                &RULE,
                &[&two_vfs("02:00:00:00:00:00:00:01", "02:00:00:00:00:00:00:01", "disable"),]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[&two_vfs("02:00:00:00:00:00:00:01", "02:00:00:00:00:00:00:01", "auto"),]
            ),
            None
        );
        assert_eq!(
            severity(&RULE, &["# cat /sys/class/infiniband/mlx5_0/device/sriov/0/policy", "Down",]),
            Some(Severity::Error)
        );
    }
}
