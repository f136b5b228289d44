use super::vf_state::{dead_ports, is_zero, named, quote_ports, quote_vfs, repaired, vfs};
use super::{Advice, Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::VfGuidZero,
    meaning: "a VF has no GUID",
    page: "\
A new VF has node GUID and port GUID zero. With both zero its port never becomes Active,
or becomes Active and connections by rdma_cm fail. The GUIDs are set at the PF and read
by the VF when its driver is bound: a VF that was bound before has to be rebound.

Symptoms: Node GUID 0x0000000000000000 in ibstat; NODE_GUID and PORT_GUID zeros
in `ip link`; \"VF GUID is not valid\".

Remedy: plan the GUIDs with a [[pf]] in ibprov.toml. By hand, set them at the PF and
rebind the VF, which reads them when its driver is bound:

    ip link set ib0 vf 0 node_guid GUID
    ip link set ib0 vf 0 port_guid GUID
    echo ADDRESS >/sys/bus/pci/drivers/mlx5_core/unbind
    echo ADDRESS >/sys/bus/pci/drivers/mlx5_core/bind

In a virtual machine the hypervisor sets them; the VF is rebound in the machine, or
detached from it and attached again.",
    needles: &[&[
        "GUID is not valid",
        "GUID is zero",
        "guid is all zero",
        "zero GUID",
        "node_guid is zero",
        "invalid guid",
        "Invalid GUID",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let zero: Vec<_> = vfs(boot)
        .filter(|v| {
            v.node_guid.as_deref().is_some_and(is_zero)
                || v.port_guid.as_deref().is_some_and(is_zero)
        })
        .collect();
    let ports: Vec<_> = boot
        .state
        .ports
        .iter()
        .filter(|p| {
            // Those of a host are in its judgement. An Ethernet PF may show none either; a VF
            // without one cannot be used.
            p.role.is_none() && is_zero(&p.node_guid) && (p.infiniband == Some(true) || p.is_vf())
        })
        .collect();
    let sysfs: Vec<_> = boot
        .state
        .commands
        .iter()
        .filter(|c| {
            c.text.contains("cat") && c.text.contains("sriov/") && is_zero(c.answer())
                || c.text.contains("node_guid") && c.text.contains("cat") && is_zero(c.answer())
        })
        .map(|c| boot.quote_at(c.origin, "", &format!("{}: {}", c.text, c.answer())))
        .collect();
    let said: Vec<_> = boot
        .with_any_of(RULE.needles)
        .filter(|e| e.text.contains("VF") || e.text.contains("vf"))
        .collect();
    let devices: Vec<_> = boot.state.devices.iter().filter(|d| is_zero(&d.node_guid)).collect();
    if devices.is_empty()
        && zero.is_empty()
        && ports.is_empty()
        && said.is_empty()
        && sysfs.is_empty()
    {
        return Vec::new();
    }
    // The PF's record is 0 also where the GUID was written by sysfs; a VF that
    // is seen to work has one.
    let works =
        boot.state.ports.iter().any(|p| p.is_vf() && p.is_active() && !is_zero(&p.node_guid));
    let proved = !ports.is_empty()
        || !devices.is_empty()
        || !said.is_empty()
        || !dead_ports(boot).is_empty();
    let (severity, confidence) = match (works && ports.is_empty(), proved) {
        (true, _) => (Severity::Info, Confidence::Low),
        (false, true) => (Severity::Error, Confidence::High),
        (false, false) => (Severity::Error, Confidence::Medium),
    };
    let mut names = named(boot, &zero);
    if names.is_empty() {
        names.extend(ports.iter().map(|port| port.name()));
    }
    if names.is_empty() {
        names.extend(devices.iter().map(|device| device.name.clone()));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let which = match &names[..] {
        [] => "A VF has".to_owned(),
        [one] => format!("{one} has"),
        several => format!("{} have", seen::all_of("port", several)),
    };
    let mut advice = repaired(
        boot,
        &zero,
        "ip link set {pf} vf {vf} node_guid GUID; ip link set {pf} vf {vf} port_guid GUID",
    );
    advice.extend([
        Advice::now("then rebind the VF, which reads its GUID when its driver is bound"),
        Advice::permanent("plan GUIDs in /etc/ibprov/ibprov.toml"),
    ]);
    vec![
        Finding::new(RULE.code, severity, confidence, format!("{which} GUID zero."))
            .about_if(seen::joined(&names))
            .quoting(quote_vfs(boot, &zero))
            .quoting(quote_ports(boot, &ports))
            .quoting(sysfs)
            .quoting(devices.iter().map(|d| boot.quote_at(d.origin, "", &d.text)))
            .quoting(seen::quotes(boot, said))
            .steps(advice),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{severity, two_vfs};
    use super::{RULE, Severity};

    #[test]
    fn zeros_at_the_pf() {
        assert_eq!(
            severity(
                &RULE,
                &[&two_vfs("00:00:00:00:00:00:00:00", "00:00:00:00:00:00:00:00", "auto"),]
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
    }
}
