use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::UmadZeroGuid,
    meaning: "tools for management datagrams fail because of a device whose GUID is 0",
    page: "\
The tools of infiniband-diags and opensm list all devices first and, before rdma-core
60, gave up at one whose port GUID is 0. A VF without GUID that is bound to the host's own
driver is such a device: ibstat, sminfo, perfquery and
opensm then fail for all ports of the host.

Symptoms: \"mad_rpc_open_port: can't open UMAD port\", \"ibpanic\", while a device with
port GUID 0 is shown.

Remedy: set a GUID for the VF, or unbind it from the host's driver. Newer rdma-core
ignores such devices.",
    needles: &[&["can't open UMAD port", "ibpanic", "umad_get_ca"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot.with_any_of(RULE.needles).collect();
    let zero = |guid: &str| {
        !guid.is_empty() && guid.trim_start_matches("0x").bytes().all(|b| b == b'0' || b == b':')
    };
    let ports = boot.state.ports.iter().filter(|p| zero(&p.guid) || zero(&p.node_guid));
    let shown: Vec<_> = ports.map(|p| boot.quote_at(p.origin, "", &p.text)).collect();
    if lines.is_empty() || shown.is_empty() {
        return Vec::new();
    }
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::Medium,
            "Tools for management datagrams fail: they give up at a device whose GUID is 0.",
        )
        .quoting(seen::quotes(boot, lines))
        .quoting(shown)
        .look(["grep -H . /sys/class/infiniband/*/node_guid"])
        .now(["ip link set PF_NETDEV vf N node_guid GUID; ip link set PF_NETDEV vf N port_guid GUID; bind the VF again"])
        .permanent(["plan GUIDs in /etc/ibprov/ibprov.toml, or install a newer rdma-core"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_zero_guid_explains_tools_that_fail() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "ibwarn: [99] mad_rpc_open_port: can't open UMAD port ((null):0)",
                    "CA 'mlx5_1'
	CA type: MT4124
	Node GUID: 0x0000000000000000
	Port 1:
		State: Down
		Physical state: LinkUp
		Port GUID: 0x0000000000000000
		Link layer: InfiniBand"
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["ibwarn: [99] mad_rpc_open_port: can't open UMAD port ((null):0)"]),
            None
        );
    }
}
