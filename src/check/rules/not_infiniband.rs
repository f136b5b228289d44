use super::super::evidence::Boot;
use super::super::finding::{Confidence, Finding, Severity};
use super::{Judge, Rule};

pub(super) const RULE: Rule = Rule {
    code: "not-infiniband",
    meaning: "nothing of this is about InfiniBand",
    page: "\
There are lines here, and none of them names an InfiniBand card, driver, netdev
or service. What fails on this host, if anything, fails for another reason.",
    needles: &[],
    causes: &[],
    judge: Judge::Rest(judge),
};

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    if !findings.is_empty() || boot.events.is_empty() {
        return Vec::new();
    }
    let _ = boot;
    vec![Finding::new(
        "not-infiniband",
        Severity::Info,
        Confidence::Medium,
        "Nothing of this is about InfiniBand.",
    )]
}
