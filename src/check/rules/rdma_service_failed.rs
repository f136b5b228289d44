use super::{Boot, Code, Confidence, Event, Finding, Judge, Kind, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::RdmaServiceFailed,
    meaning: "an RDMA service failed, which the network mostly does not need",
    page: "\
An auxiliary service failed: rdma-ndd (names the node for the fabric), iwpmd
(iWARP), ibacm (path cache), srp_daemon (storage), rdma-load-modules (one list of
modules), a fabric manager's helper. IPoIB and verbs work without it. opafm is no such
service: it is the subnet manager of Omni-Path.

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

/// The subnet manager of Omni-Path.
const MANAGER: &str = "opafm";

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
    let mut services: Vec<(&str, Vec<&Event>)> = Vec::new();
    for line in lines {
        let Some(name) = SERVICES.into_iter().find(|s| line.text.contains(s)) else { continue };
        match services.iter_mut().find(|(known, _)| *known == name) {
            Some((_, lines)) => lines.push(line),
            None => services.push((name, vec![line])),
        }
    }
    if let Some(unit) = shown
        && !services.iter().any(|(name, _)| unit.name.contains(name))
    {
        services.push((&unit.name, Vec::new()));
    }
    let is_back = |name: &str, lines: &[&Event]| {
        let last = lines.last().map(|e| e.origin);
        last.is_some()
            && boot.events.iter().any(|e| {
                Some(e.origin) > last
                    && matches!(&e.kind, Kind::UnitStarted(unit) if unit.contains(name))
            })
    };
    let (back, failed): (Vec<_>, Vec<_>) =
        services.into_iter().partition(|(name, lines)| is_back(name, lines));
    let (managers, failed): (Vec<_>, Vec<_>) =
        failed.into_iter().partition(|(name, _)| name.starts_with(MANAGER));
    let finding = |of: Vec<(&str, Vec<&Event>)>, severity, what: &str| {
        let names: Vec<&str> = of.iter().map(|(name, _)| *name).collect();
        let units: Vec<String> = names
            .iter()
            .map(|name| match name.contains([' ', '.']) {
                true => (*name).to_owned(),
                false => format!("{name}.service"),
            })
            .collect();
        let shown = shown.filter(|unit| names.iter().any(|name| unit.name.contains(name)));
        let shown = shown.map(|u| boot.quote_at(u.origin, "", &format!("{} {}", u.name, u.active)));
        let told = format!("{} failed. {what}", seen::all_of("service", &names));
        (!names.is_empty()).then(|| {
            Finding::new(RULE.code, severity, Confidence::High, told)
                .about(units.join(", "))
                .quoting(seen::quotes(boot, of.iter().flat_map(|(_, lines)| lines).copied()))
                .quoting(shown)
                .look(names.iter().map(|name| format!("journalctl -b | grep -i '{name}'")))
        })
    };
    let severity = match seen::sign_of_life(boot).is_some() {
        true => Severity::Warning,
        false => Severity::Error,
    };
    let managers = finding(
        managers,
        severity,
        "It is the subnet manager of Omni-Path: without one, on this host or another, no port of the fabric becomes Active.",
    );
    let works = "InfiniBand and IPoIB work without it.";
    let failed = finding(failed, Severity::Warning, works);
    let back = finding(back, Severity::Info, "It was started later.");
    let restart = "systemctl restart opafm, after its log has told the reason";
    let mask = "if this host does not need the unit: systemctl mask UNIT";
    let all = [managers.map(|f| f.now([restart])), failed.map(|f| f.permanent([mask])), back];
    all.into_iter().flatten().collect()
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
