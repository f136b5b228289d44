use super::{Boot, Code, Confidence, Finding, Judge, Kind, Rule, Severity, seen};
use crate::check::evidence::own::About;
use crate::names::is_ipoib_name;
use crate::report::node::{Judgement, NodeVerdict, Standing};

pub(super) const RULE: Rule = Rule {
    code: Code::Healthy,
    meaning: "InfiniBand came up",
    page: "\
The log shows an event that only occurs when InfiniBand works: a port is Active, an IPoIB
netdev has carrier or its final name, or a network service brought one up. No rule found
an error. Warnings of drivers, renamed netdevs and a second port without cable do not
change this verdict.",
    needles: &[&[
        "PORT_ACTIVE",
        "state ACTIVE",
        "4: ACTIVE",
        "IB: Port active",
        "Activation: successful",
        "Gained carrier",
        "SUBNET UP",
    ]],
    judge: Judge::Rest(judge),
};

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    if findings.iter().any(|f| f.severity == Severity::Error) {
        return Vec::new();
    }
    let life = seen::sign_of_life(boot);
    let named = boot.events.iter().filter(|e| match &e.kind {
        Kind::NetdevRenamed { from, to } => is_ipoib_name(from) || is_ipoib_name(to),
        _ => {
            (e.text.contains("Activation: successful") || e.text.contains("Gained carrier"))
                && seen::ib_netdev_in(&e.text).is_some()
                || e.text.contains("SUBNET UP")
        }
    });
    let quotes = seen::quotes(boot, named);
    let judgement = boot.host.as_ref().and_then(|host| host.judgement.as_ref());
    let ready = judgement.filter(|j| j.verdict == NodeVerdict::Ready).map(Judgement::headline);
    let last =
        boot.events.iter().rfind(|e| matches!(&e.kind, Kind::Own(own) if own.about == About::Boot));
    let own = last.filter(|e| {
        matches!(&e.kind, Kind::Own(own) if own.standing == Standing::Ready)
            && e.text.contains("expected ports ready")
    });
    let life = life.or_else(|| own.map(|e| boot.quote(e)));
    if life.is_none() && quotes.is_empty() && ready.is_none() {
        return Vec::new();
    }
    let confidence = if life.is_some() { Confidence::High } else { Confidence::Medium };
    vec![
        Finding::new(RULE.code, Severity::Info, confidence, "InfiniBand came up.")
            .chain(ready)
            .quoting(life)
            .quoting(quotes),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GOOD, LATE, ca, severity};
    use super::{RULE, Severity};

    #[test]
    fn what_ibprov_says_of_a_boot_is_a_proof() {
        let good = "Nov 23 10:05:09 n9 ibprov[99]: 2 of 2 expected ports ready after 0.1 s";
        assert_eq!(severity(&RULE, &[good]), Some(Severity::Info));
        assert_eq!(severity(&RULE, &[&good.replace("2 of 2", "1 of 2")]), None);
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
        assert_eq!(
            severity(&RULE, &["[ 15.9] mlx5_core 0000:af:00.0 ibs4f0: renamed from ib0",]),
            Some(Severity::Info)
        );
    }
}
