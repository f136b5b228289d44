use super::{Boot, Confidence, Finding, Judge, Rule, Severity};
use crate::report::node::{NodeCode, NodeSeverity};

pub(super) const RULE: Rule = Rule {
    code: "not-as-expected",
    meaning: "the node is not as its configuration and GUID plan say, whatever the logs tell",
    page: "\
What is expected (ports, by the configuration or because the adapters are there) and
what is planned (VFs, their number, GUIDs, policy and drivers) is held against the host
as it is now. This is what `ibprov status` judges too, so the two never disagree. It is
told here where no other diagnosis names the same: a VF that was not created, a plan
that has an error, an adapter that does not answer, a last boot that failed.

What to do: the chain names each thing with its reason. `ibprov status` shows all of
it, `ibprov plan` what would be changed at VFs, and `journalctl -b -u ibprov.service`
what the boot said.",
    needles: &[],
    causes: &[],
    judge: Judge::Rest(judge),
};

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    let judgement = boot.host.as_ref().and_then(|host| host.judgement.as_ref());
    let Some(judgement) = judgement else { return Vec::new() };
    let is_told = |severity| findings.iter().any(|f| f.severity <= severity);
    let told: Vec<_> = judgement
        .findings
        .iter()
        .filter(|finding| match (finding.severity, finding.code) {
            (NodeSeverity::Unknown, _) => true,
            // Rules of their own name the cause of these.
            (_, NodeCode::PortNotReady | NodeCode::PortAbsent) => !is_told(Severity::Error),
            (NodeSeverity::Error, _) => true,
            (NodeSeverity::Warning, _) => !is_told(Severity::Warning),
        })
        .collect();
    let Some(first) = told.first() else { return Vec::new() };
    let severity = match first.severity {
        NodeSeverity::Error => Severity::Error,
        NodeSeverity::Unknown | NodeSeverity::Warning => Severity::Warning,
    };
    let summary = format!("{}: {}.", first.object, first.message);
    let chain = told.iter().map(|finding| format!("{}: {}", finding.object, finding.message));
    vec![
        Finding::new(RULE.code, severity, Confidence::High, summary)
            .chain(chain.skip(1))
            .now(told.iter().flat_map(|finding| finding.advice.clone())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evidence::host::Host;
    use crate::report::node::{Count, Judgement, NodeFinding};

    fn judged(code: NodeCode, severity: NodeSeverity, others: &[Finding]) -> Option<Severity> {
        let finding = NodeFinding {
            code,
            severity,
            object: "PF 0000:4b:00.0".to_owned(),
            message: "VFs 0-3 to be created".to_owned(),
            advice: vec!["ibprov apply".to_owned()],
        };
        let judgement = Judgement::new(Count::default(), Count::default(), true, vec![finding]);
        let host = Host { live: true, judgement: Some(judgement), ..Host::default() };
        let boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
        judge(&boot, others).first().map(|finding| finding.severity)
    }

    #[test]
    fn what_is_not_as_planned_is_an_error_whatever_the_logs_tell() {
        use NodeSeverity::{Error, Unknown, Warning};
        let port = |severity| {
            [Finding::new("port-not-ready", severity, Confidence::High, "a port has not come")]
        };
        assert_eq!(judged(NodeCode::VfNotAsPlanned, Error, &[]), Some(Severity::Error));
        let beside = judged(NodeCode::VfNotAsPlanned, Error, &port(Severity::Error));
        assert_eq!(beside, Some(Severity::Error), "another error does not hide it");
        assert_eq!(judged(NodeCode::BootFailed, Warning, &[]), Some(Severity::Warning));
        assert_eq!(judged(NodeCode::BootFailed, Warning, &port(Severity::Error)), None);
        assert_eq!(judged(NodeCode::PortAbsent, Error, &[]), Some(Severity::Error));
        assert_eq!(judged(NodeCode::PortAbsent, Error, &port(Severity::Error)), None);
        assert_eq!(judged(NodeCode::ConfigurationInvalid, Unknown, &[]), Some(Severity::Warning));
    }
}
