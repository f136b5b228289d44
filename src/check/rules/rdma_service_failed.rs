use super::{Boot, Code, Confidence, Finding, Judge, Kind, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::RdmaServiceFailed,
    meaning: "an auxiliary RDMA service failed, which the network does not need",
    page: "\
An auxiliary service failed: rdma-ndd (names the node for the fabric), iwpmd
(iWARP), ibacm (path cache), srp_daemon (storage), rdma-load-modules (one list of
modules), a fabric manager's helper. IPoIB and verbs work without it.

\"rdma-hw.target is a disabled or a static unit, not starting it\" at installation is
normal.

Remedy: read the log of the unit. Mask the unit if this host does not need it (iwpmd
without iWARP adapters, srp_daemon without SRP).

    journalctl -b -u UNIT",
    needles: &[&[
        "rdma-ndd",
        "iwpmd",
        "iWarp Port Mapper",
        "iWARP Port Mapper",
        "ibacm",
        "srp_daemon",
        "rdma-load-modules",
        "rdma.service",
        "opafm",
        "Node Description Daemon",
        "InfiniBand Address Cache",
        "Load RDMA modules",
        "rdma-hw",
        "nvidia-fabricmanager",
        "ibsrpdm",
    ]],
    judge: Judge::Boot(judge),
};

const SERVICES: [&str; 14] = [
    "rdma-ndd",
    "iwpmd",
    "iWarp Port Mapper",
    "iWARP Port Mapper",
    "ibacm",
    "srp_daemon",
    "rdma-load-modules",
    "rdma.service",
    "opafm",
    "Node Description Daemon",
    "InfiniBand Address Cache",
    "Load RDMA modules",
    "srp",
    "nvidia-fabricmanager",
];

fn judge(boot: &Boot) -> Vec<Finding> {
    let lines: Vec<_> = boot
        .events
        .iter()
        .filter(|e| {
            let ours = SERVICES.iter().any(|s| e.text.contains(s));
            let failed =
                matches!(&e.kind, Kind::UnitFailed(u) if SERVICES.iter().any(|s| u.contains(s)));
            failed
                || ours
                    && (e.text.contains("Failed with result")
                        || e.text.contains("Failed at step EXEC")
                        || e.text.contains("Failed to execute")
                        || e.text.contains("code=exited, status=") && !e.text.contains("status=0/")
                        || e.text.contains("code=killed")
                        || e.text.contains("failed because")
                        || e.text.contains("Couldn't start"))
        })
        .collect();
    let shown =
        boot.state.units.iter().find(|u| {
            SERVICES.iter().any(|s| u.name.contains(s)) && u.active.starts_with("failed")
        });
    let Some(name) = lines
        .iter()
        .find_map(|e| SERVICES.iter().find(|s| e.text.contains(**s)).copied())
        .or(shown.map(|u| u.name.as_str()))
    else {
        return Vec::new();
    };
    let last = lines.last().map(|e| e.origin);
    let recovered = boot.events.iter().any(|e| {
        last.is_some_and(|l| e.origin > l)
            && matches!(&e.kind, Kind::UnitStarted(u) if u.contains(name))
    });
    let severity = if recovered { Severity::Info } else { Severity::Warning };
    vec![
        Finding::new(
            RULE.code,
            severity,
            Confidence::High,
            format!("{name} failed. InfiniBand and IPoIB work without it."),
        )
        .quoting(seen::quotes(boot, lines))
        .quoting(shown.map(|u| boot.quote_at(u.origin, "", &format!("{} {}", u.name, u.active))))
        .look([format!("journalctl -b | grep -i {name}")])
        .permanent(["if this host does not need the unit: systemctl mask UNIT"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_service_that_the_network_does_not_need() {
        assert_eq!(
            severity(&RULE, &["systemd[1]: rdma-ndd.service: Failed with result 'exit-code'.",]),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity(
                &RULE,
                &[
                    "systemd[1]: rdma-ndd.service: Failed with result 'exit-code'.",
                    "systemd[1]: Started rdma-ndd.service - RDMA Node Description Daemon.",
                ]
            ),
            Some(Severity::Info)
        );
        assert_eq!(
            severity(&RULE, &["rdma-hw.target is a disabled or a static unit, not starting it.",]),
            None
        );
    }
}
