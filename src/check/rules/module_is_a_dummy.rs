use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::ModuleIsADummy,
    meaning: "a module of MLNX_OFED or DOCA loads and does nothing",
    page: "\
MLNX_OFED and DOCA contain empty modules with the names of the kernel's own for
protocols that the vendor does not support: rpcrdma, ib_srp, ib_iser, nvme-rdma,
rdma_rxe and others. modprobe succeeds, lsmod shows them, and their users fail: an NFS
mount over RDMA, an SRP or iSER disk, a soft RoCE device.

Symptoms: modinfo describes the module as a \"dummy kernel module\"; a mount with
proto=rdma reports \"Protocol not supported\" while rpcrdma is loaded.

Remedy: install the vendor's package with the real module (mlnx-nfsrdma-dkms, or
--with-nfsrdma), use the kernel's own stack, or mount over TCP.",
    needles: &[&["dummy kernel module", "Protocol not supported", "rotocol not supported"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let described: Vec<_> = boot.with("dummy kernel module").collect();
    let refused: Vec<_> = boot
        .with("rotocol not supported")
        .filter(|e| e.text.contains("rdma") || e.text.contains("20049"))
        .collect();
    let loaded = boot.state.modules.as_ref().is_some_and(|m| {
        ["rpcrdma", "xprtrdma"].iter().any(|name| m.has(name)) && m.has("mlx_compat")
    });
    let (lines, confidence) = match (described.is_empty(), refused.is_empty()) {
        (false, _) => (described.into_iter().chain(refused).collect::<Vec<_>>(), Confidence::High),
        (true, false) if loaded => (refused, Confidence::Medium),
        _ => return Vec::new(),
    };
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            confidence,
            "A module of the vendor's stack is an empty one, so that the service that needs it fails.",
        )
        .quoting(seen::quotes(boot, lines))
        .look(["find the modules that are dummies: modinfo -n -d rpcrdma ib_srp ib_iser nvme-rdma rdma_rxe"])
        .now(["mount with proto=tcp"])
        .permanent(["install the vendor's package with the real module (mlnx-nfsrdma-dkms), or use the kernel's own stack"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn an_empty_module_is_told() {
        assert_eq!(
            severity(&RULE, &["description:    rpcrdma dummy kernel module"]),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["mount.nfs: Protocol not supported for fs1:/x proto=rdma"]),
            None
        );
    }
}
