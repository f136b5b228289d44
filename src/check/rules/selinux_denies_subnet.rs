use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::SelinuxDeniesSubnet,
    meaning: "SELinux denies management datagrams on an InfiniBand port",
    page: "\
SELinux has a class for InfiniBand ports. A process that opens a management agent on a
port needs the permission manage_subnet there, and the kernel checks the permission of
the process that loads the driver. If it is denied, the kernel's own agents are not
registered: the node does not answer the subnet manager, the port stays in Initializing,
and umad tools fail.

Symptoms: an audit line \"avc: denied { manage_subnet }\" of the class
infiniband_endport; \"Couldn't open port 1 for agents\".

Remedy: allow manage_subnet to the domain that loads the modules. A line with
permissive=1 has denied nothing.",
    needles: &[&["manage_subnet"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let denied = |text: &str| text.contains("denied") && !text.contains("permissive=1");
    let lines: Vec<_> = boot.with("manage_subnet").filter(|e| denied(&e.text)).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let life = seen::sign_of_life(boot).is_some();
    vec![
        Finding::new(
            RULE.code,
            if life { Severity::Warning } else { Severity::Error },
            Confidence::High,
            "SELinux has denied manage_subnet on an InfiniBand port, so that the kernel does not answer the subnet manager there.",
        )
        .quoting(seen::quotes(boot, lines))
        .look(["ausearch -m avc -c modprobe; ausearch -m avc | audit2allow"])
        .now(["setenforce 0; modprobe -r mlx5_ib; modprobe mlx5_ib; setenforce 1"])
        .permanent(["add a policy module that allows manage_subnet to the domain that loads the modules"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_denial_is_told_unless_it_was_permissive() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "type=AVC msg=audit(1): avc:  denied  { manage_subnet } for pid=9 comm=\"modprobe\" device=mlx5_0 port_num=1 tclass=infiniband_endport permissive=0"
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "type=AVC msg=audit(1): avc:  denied  { manage_subnet } for pid=9 comm=\"modprobe\" device=mlx5_0 port_num=1 tclass=infiniband_endport permissive=1"
                ]
            ),
            None
        );
    }
}
