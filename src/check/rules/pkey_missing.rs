use super::interface_not_online::kept_out;
use super::{Advice, Boot, Confidence, Finding, Judge, Rule, Severity};
use crate::check::evidence::state::PortSeen;
use crate::report::common::Code;

pub(super) const RULE: Rule = Rule {
    code: Code::PkeyMissing,
    meaning: "an active port is not a full member of a partition that it needs",
    page: "\
The subnet manager writes the P_Key table of each port. A P_Key that is not in the table
of this port, or is there only as a limited member (without the bit 0x8000), is needed:
by pkeys of its [[port]], by a P_Key child that exists or is configured, or by a netdev
that has no carrier. Ports that are not active are not judged.

A limited member reaches full members only, and no other limited member. Not every subnet
manager lets it join the broadcast group of IPoIB. Without the P_Key nothing is sent or
received in the partition, and a P_Key child has no carrier.

opensm makes every port but its own a limited member of the default partition (0x7fff)
if partitions.conf exists and has no rule for it.

Symptoms: ib0 without carrier at an Active port; \"multicast join failed\" with status
-22; `cat /sys/class/infiniband/*/ports/*/pkeys/*` does not have the P_Key.

Remedy: have the administrator of the subnet manager add the port GUID to the partition
as a full member, for opensm in partitions.conf, then send opensm SIGHUP. To see the
P_Keys of the ports:

    ibprov status -v",
    needles: &[],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    // A host is judged as it is now.
    if boot.host.as_ref().is_some_and(|host| host.judgement.is_some()) {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = Vec::new();
    for out in kept_out(boot) {
        let Some(pkey) = out.pkey else { continue };
        // The last word on each port.
        let mut ports: Vec<&PortSeen> = Vec::new();
        for port in boot.state.ports.iter().filter(|port| !port.pkeys.is_empty()) {
            ports.retain(|other| other.name() != port.name());
            ports.push(port);
        }
        let is_its = |port: &&PortSeen| out.shown.is_none_or(|(_, own)| own.name() == port.name());
        for port in ports.into_iter().filter(|port| port.is_active()).filter(is_its) {
            let Some(lack) = pkey.lack_in(&port.pkeys) else { continue };
            let text = match out.refusals.is_empty() {
                true => format!("{}: {lack}; needed by {}.", port.name(), out.netdev),
                false => format!("{}: {lack}, and {} is refused.", port.name(), out.netdev),
            };
            findings.push(
                Finding::new(RULE.code, Severity::Warning, Confidence::Medium, text)
                    .about(port.name())
                    .quoting([boot.quote_at(port.origin, "", &port.told())])
                    .steps([Advice::full_membership(pkey, port.guid.parse().ok())]),
            );
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ca, severity};
    use super::{RULE, Severity};

    #[test]
    fn a_dump_of_the_table_explains_joins_that_are_refused() {
        let join = "Oct 04 08:11:22 n3 kernel: ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -22";
        let dark = "4: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 2044\n    link/infiniband 00:00 brd ff";
        let port = ca(0, "MT4126", 1, "Active", "LinkUp");
        let table = |pkey: &str| format!("/sys/class/infiniband/mlx5_0/ports/1/pkeys/0:{pkey}");
        let told = |pkey: &str| severity(&RULE, &[join, &port, &table(pkey), dark]);
        assert_eq!(told("0x7fff"), Some(Severity::Warning));
        assert_eq!(told("0x8012"), Some(Severity::Warning));
        assert_eq!(told("0xffff"), None);
        assert_eq!(severity(&RULE, &[join, &port, dark]), None);
    }
}
