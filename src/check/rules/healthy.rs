use super::{Boot, Code, Confidence, Finding, Judge, Rule, Severity, seen};
use crate::check::evidence::fold::Object;
use crate::report::finding::Quote;

pub(super) const RULE: Rule = Rule {
    code: Code::Healthy,
    meaning: "InfiniBand came up, and nothing of it was lost again",
    page: "\
A host is healthy if it is ready, as `ibprov status` has it, at least one of its ports is
active, and no finding is an error or a warning.

In a log the last word on each port, netdev, adapter and unit that uses the fabric counts.
The log is healthy if at least one port is Active, or one IPoIB netdev has carrier or an
address, or an adapter with a cable has its IPoIB netdev under its final name, and none
was lost again: no cable unplugged, no carrier lost, no adapter gone, no such unit failed.
What a system writes as it shuts down does not count. Carrier of an Ethernet netdev
counts if its adapter has an RDMA device (RoCE) and nothing in the log is InfiniBand's.
Warnings of drivers, renamed netdevs and a second port that never had a cable do not
change this verdict.",
    needles: &[],
    judge: Judge::Rest(judge),
};

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    if findings.iter().any(|f| f.severity == Severity::Error) {
        return Vec::new();
    }
    let good: Vec<&Object> = boot.fold().good().collect();
    let judgement = boot.host.as_ref().and_then(|host| host.judgement.as_ref());
    if let Some(judgement) = judgement {
        let is_clean = findings.iter().all(|f| f.severity == Severity::Info);
        return match judgement.is_in_use() && is_clean {
            // The headline counts the others.
            true => {
                let one = good.get(..1).unwrap_or_default();
                vec![came_up(Confidence::High, one).chain([judgement.headline()])]
            }
            false => Vec::new(),
        };
    }
    let failed = |e: &&super::Event| seen::concerns_fabric(boot, e);
    let is_useless = |f: &Finding| matches!(f.code, Code::InterfaceNotOnline | Code::PkeyMissing);
    if findings.iter().any(is_useless)
        || boot.fold().bad().next().is_some()
        || seen::failed_units(boot).iter().any(failed)
    {
        return Vec::new();
    }
    if !good.is_empty() {
        return vec![came_up(Confidence::High, &good)];
    }
    let named: Vec<&Object> = boot.fold().named_with_a_cable().collect();
    match named.is_empty() {
        true => Vec::new(),
        false => vec![came_up(Confidence::Medium, &named)],
    }
}

fn came_up(confidence: Confidence, objects: &[&Object]) -> Finding {
    /// More of a kind prove nothing more.
    const ENOUGH: usize = 12;
    let mut quotes: Vec<(Option<usize>, Quote)> =
        objects.iter().map(|o| (o.last.event, o.last.quote.clone())).collect();
    quotes.sort_by_key(|(event, _)| *event);
    Finding::new(RULE.code, Severity::Info, confidence, "InfiniBand came up.")
        .quoting(quotes.into_iter().map(|(_, quote)| quote).take(ENOUGH))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GOOD, LATE, ca, severity};
    use super::{RULE, Severity};

    #[test]
    fn what_ibprov_says_is_a_proof_where_it_says_online() {
        let ready = "Nov 23 10:05:09 n9 ibprov[99]: 2 of 2 expected ports ready after 0.1 s";
        assert_eq!(severity(&RULE, &[ready]), None);
        let online = "Nov 23 10:05:09 n9 ibprov[99]: 2 of 2 ports online after 0.1 s";
        assert_eq!(severity(&RULE, &[online]), Some(Severity::Info));
        assert_eq!(severity(&RULE, &[&online.replace("2 of 2", "1 of 2")]), None);
        let none = "Nov 23 10:05:09 n9 ibprov[99]: no InfiniBand port to wait for, after 0.1 s";
        assert_eq!(severity(&RULE, &[none]), None);
    }

    #[test]
    fn signs_of_life() {
        assert_eq!(severity(&RULE, GOOD), Some(Severity::Info));
        assert_eq!(
            severity(&RULE, &[&ca(0, "MT4123", 1, "Active", "LinkUp"),]),
            Some(Severity::Info)
        );
        assert_eq!(severity(&RULE, LATE), None);
        let named = "[ 15.9] mlx5_core 0000:af:00.0 ibs4f0: renamed from ib0";
        assert_eq!(severity(&RULE, &[named]), None, "a name is no link");
    }
}
