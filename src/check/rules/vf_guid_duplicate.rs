use super::super::evidence::state::{PortSeen, VfSeen};
use super::vf_state::{is_zero, named, quote_ports, quote_vfs, vfs};
use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};

pub(super) const RULE: Rule = Rule {
    code: Code::VfGuidDuplicate,
    meaning: "two ports have the same GUID",
    page: "\
GUIDs must be unique in a fabric: the subnet manager identifies ports by them. If two
VFs have the same GUID, for example on two hosts that were set up by the same script,
the subnet manager drops one of them, or both in turn.

Symptoms: opensm: \"Duplicate Port GUID\", \"Found duplicated node GUID\", \"Found
the same node GUID\"; the same GUID twice in ibstat or ip link.

Remedy: use a plan that derives GUIDs from the host's number and the VF's index, and
rebind the VFs. opensm sweeps again without a restart.

    ibprov plan",
    needles: &[&[
        "Duplicate Port GUID",
        "uplicate port GUID",
        "uplicated node GUID",
        "uplicate GUID",
        "uplicated port",
        "uplicate node GUID",
        "Duplicated GUID",
        "ERR 0D01",
    ]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let said: Vec<_> =
        boot.with_any_of(RULE.needles).filter(|e| !e.text.contains("Might be")).collect();
    let mut twice = Vec::new();
    let all: Vec<_> = vfs(boot).collect();
    for (i, a) in all.iter().enumerate() {
        let Some(guid) = a.port_guid.as_deref().filter(|g| !is_zero(g)) else { continue };
        // The same VF may be shown twice, in two dumps.
        let is_other = |b: &&&VfSeen| a.index != b.index && b.port_guid.as_deref() == Some(guid);
        let other = all.iter().skip(i + 1).find(is_other);
        if let Some(b) = other {
            twice.extend([*a, *b]);
        }
    }
    let mut ports = Vec::new();
    // Those of a host are in its judgement.
    let shown: Vec<&PortSeen> = boot.state.ports.iter().filter(|p| p.role.is_none()).collect();
    for (i, a) in shown.iter().enumerate() {
        if a.guid.is_empty() || is_zero(&a.guid) || a.infiniband == Some(false) {
            continue;
        }
        let same = |b: &&&PortSeen| b.device != a.device && b.guid == a.guid;
        if let Some(b) = shown.iter().skip(i + 1).find(same) {
            // Two dumps of one host after a rename are no duplicate.
            if a.node_guid != b.node_guid || a.node_guid.is_empty() {
                ports.extend([*a, *b]);
            }
        }
    }
    if said.is_empty() && twice.is_empty() && ports.is_empty() {
        return Vec::new();
    }
    let mut names = named(boot, &twice);
    names.extend(ports.iter().map(|port| port.name()).filter(|_| twice.is_empty()));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let guid = twice.first().and_then(|vf| vf.port_guid.as_deref());
    let guid = guid.or_else(|| ports.first().map(|port| port.guid.as_str()));
    let told = match (&names[..], guid) {
        ([_, _, ..], Some(guid)) => {
            format!("{} have the same port GUID, {guid}.", seen::all_of("port", &names))
        }
        _ => "Two ports have the same GUID.".to_owned(),
    };
    // Only where one of them is not of this host the fabric has to be asked.
    let mad_port = ports.first().map(|port| port.mad_port()).unwrap_or_default();
    let ask = format!("find the other port of the fabric: saquery {mad_port} -N | grep GUID");
    vec![
        Finding::new(RULE.code, Severity::Error, Confidence::High, told)
            .about_if(seen::joined(&names))
            .quoting(seen::quotes(boot, said))
            .quoting(quote_vfs(boot, &twice))
            .quoting(quote_ports(boot, &ports))
            .look((names.len() < 2).then_some(ask))
            .permanent([
                "assign to each VF a GUID of its own (ibprov plan shows one), and rebind the VF",
            ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{severity, two_vfs};
    use super::{RULE, Severity};

    #[test]
    fn one_guid_for_two_vfs() {
        assert_eq!(
            severity(
                &RULE,
                &[&two_vfs("02:00:00:00:00:00:00:01", "02:00:00:00:00:00:01:02", "auto"),]
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
            severity(
                &RULE,
                &[&two_vfs("00:00:00:00:00:00:00:00", "00:00:00:00:00:00:00:00", "auto"),]
            ),
            None
        );
    }
}
