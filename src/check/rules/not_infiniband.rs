use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen, unknown};
use crate::check::evidence::own::About;
use crate::check::evidence::relevance::concerns_rdma;
use crate::report::node::NodeVerdict;

pub(super) const RULE: Rule = Rule {
    code: Code::NotInfiniband,
    meaning: "no line of the log is about InfiniBand",
    page: "\
The log has lines, and none of them reports a fault of an InfiniBand adapter, driver,
netdev or service. A failure of this host has another reason: a disk, an Ethernet
adapter, or a service that does not use InfiniBand.

A log without such lines does not prove that the node is healthy: the verdict is
`unknown`, unless ibprov itself has found no InfiniBand adapter at that boot.",
    // Without another rule's word, tools of the fabric.
    needles: &[TOOLS],
    judge: Judge::Rest(judge),
};

const TOOLS: &[&str] = &[
    "osm_",
    "sminfo",
    "ibwarn:",
    "iberror:",
    "ibdiagnet",
    "mlxconfig",
    "mstconfig",
    "mstflint",
    "SMINFO_",
    "ibv_",
];

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    if !findings.is_empty() {
        return Vec::new();
    }
    // How a host is, it shows itself.
    if let Some(judgement) = boot.host.as_ref().and_then(|host| host.judgement.as_ref()) {
        let none = judgement.verdict == NodeVerdict::NoInfiniband;
        let text = "This host has no InfiniBand adapter, and none is expected.";
        let finding = || Finding::new(RULE.code, Severity::Info, Confidence::High, text);
        return none.then(finding).into_iter().collect();
    }
    // Words of ours would make it a case of too little evidence.
    // What is loaded says nothing of what failed.
    let told = |e: &&super::Event| !e.text.contains("Modules linked in");
    let ours = boot.events.iter().filter(told).any(|e| {
        seen::rdma_module(&e.text).is_some()
            || seen::ib_netdev_in(&e.text).is_some()
            || about(&e.text)
            || concerns_rdma(&e.text)
            || matches!(e.kind, super::Kind::Own(_))
    }) || boot.state.ports.iter().any(|p| p.infiniband != Some(false))
        || boot.state.netdevs.iter().any(|n| n.infiniband)
        || !boot.state.settings.is_empty()
        || boot.state.pci.iter().any(|f| f.is_infiniband())
        || boot
            .state
            .commands
            .iter()
            .any(|c| seen::rdma_module(&c.text).is_some() || about(&c.text));
    let own = boot.events.iter().any(|e| {
        matches!(&e.kind, super::Kind::Own(own) if own.about == About::Boot)
            && e.text.contains("this host has no InfiniBand")
    });
    if ours && !own {
        return Vec::new();
    }
    let (confidence, summary) = match own {
        true => (Confidence::High, "ibprov found no InfiniBand adapter on this host."),
        false => (Confidence::Medium, "No line of the log is about InfiniBand."),
    };
    let collect = (!own).then_some(unknown::COLLECT).into_iter().flatten();
    vec![Finding::new(RULE.code, Severity::Info, confidence, summary).look(collect)]
}

fn about(text: &str) -> bool {
    if TOOLS.iter().any(|tool| text.contains(tool)) {
        return true;
    }
    let text = text.to_ascii_lowercase();
    [
        "infiniband",
        "rdma",
        "openib",
        "ipoib",
        "ibstat",
        "opensm",
        "mlx4",
        "mlx5",
        "[020700]",
        "class 0x0207",
    ]
    .iter()
    .any(|w| text.contains(w))
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn other_hardware() {
        let crash = [
            "[ 4.1] general protection fault: 0000 [#2] SMP PTI",
            "[ 4.1] Modules linked in: ib_iser rdma_cm ib_core",
            "[ 4.1] RIP: 0010:x_release+0x58/0x110 [x]",
        ];
        assert_eq!(severity(&RULE, &crash), Some(Severity::Info));
        assert_eq!(
            severity(&RULE, &["[ 5.1] ata1.00: failed command: READ DMA",]),
            Some(Severity::Info)
        );
        assert_eq!(
            severity(&RULE, &["[ 5.1] mlx5_core 0000:03:00.0: firmware version: 20.36.1010",]),
            None
        );
    }
}
