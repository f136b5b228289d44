use super::super::evidence::{Boot, Kind};
use super::super::finding::{Confidence, Finding, Severity};
use super::{Judge, Rule};

pub(super) const RULE: Rule = Rule {
    code: "healthy",
    meaning: "InfiniBand came up as it should",
    page: "\
Something that only happens when InfiniBand works was seen: a port is Active, an
IPoIB netdev has carrier, or a network service brought one up; and no rule found
an error. Warnings of drivers, renamed netdevs and cables that are not plugged
into a second port do not speak against it.",
    needles: &["PORT_ACTIVE", "State: Active", "state ACTIVE", "4: ACTIVE"],
    causes: &[],
    judge: Judge::Rest(judge),
};

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    if findings.iter().any(|f| f.severity == Severity::Error) {
        return Vec::new();
    }
    let is_ib = |name: &str| name.starts_with("ib");
    let signs: Vec<_> = boot
        .events
        .iter()
        .filter(|e| match &e.kind {
            Kind::LinkReady(name) => is_ib(name),
            Kind::NetdevRenamed { from, .. } => is_ib(from),
            Kind::InterfaceAsked { name, worked } => is_ib(name) && *worked == Some(true),
            _ => e.text.contains("PORT_ACTIVE"),
        })
        .map(|e| boot.quote(e))
        .collect();
    let ports = boot.state.ports.iter().filter(|p| p.is_active() && p.may_be_infiniband());
    let quotes: Vec<_> = signs
        .into_iter()
        .chain(ports.map(|p| boot.quote_at(p.origin, "", &p.text)))
        .take(6)
        .collect();
    if quotes.is_empty() {
        return Vec::new();
    }
    vec![
        Finding::new("healthy", Severity::Info, Confidence::High, "InfiniBand came up.")
            .quoting(quotes),
    ]
}
