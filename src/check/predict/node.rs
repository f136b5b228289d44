//! What the account of the node says: the same findings as `ibprov status` has.

use crate::check::evidence::Host;
use crate::report::common;
use crate::report::finding::{Confidence, Finding};
use crate::report::node::Judgement;

/// What the judgement of the node says, in the place of what the logs told under the same code:
/// their lines stay as evidence.
pub fn account(host: &Host, found: &mut Vec<Finding>) {
    let finding = |told: common::Finding| {
        let message = told.message.trim_end_matches('.');
        let text = format!("{}: {message}.", told.subject());
        Finding::new(told.code, told.severity, Confidence::High, text)
            .about_if(told.object)
            .steps(told.advice)
    };
    let grouped = host.judgement.iter().flat_map(Judgement::grouped);
    let mut told: Vec<Finding> = grouped.map(finding).collect();
    found.retain_mut(|of_logs| match told.iter_mut().find(|f| f.code == of_logs.code) {
        Some(finding) => {
            finding.evidence.append(&mut of_logs.evidence);
            false
        }
        None => true,
    });
    found.extend(told);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::common::Code;
    use crate::report::finding::{Quote, Severity};

    #[test]
    fn what_the_host_shows_counts_and_the_lines_of_logs_are_its_evidence() {
        let denied = common::Finding::warning(Code::ModuleDenied, "deny-listed by x:1");
        let told = ["0000:4b:00.0", "0000:5e:00.0"].map(|pci| denied.clone().about(pci));
        let judgement = Judgement::new(Vec::new(), Vec::new(), true, told.to_vec());
        let host = Host { judgement: Some(judgement), ..Host::default() };
        let line = Quote {
            source: String::new(),
            line: 1,
            time: String::new(),
            text: "blacklist mlx5_core".to_owned(),
        };
        let mut found = vec![
            Finding::new(Code::ModuleDenied, Severity::Error, Confidence::Low, "x").quoting([line]),
            Finding::new(Code::UdevTimeout, Severity::Warning, Confidence::Low, "y"),
        ];
        account(&host, &mut found);
        let codes: Vec<_> = found.iter().map(|f| (f.code, f.severity)).collect();
        let want =
            [(Code::UdevTimeout, Severity::Warning), (Code::ModuleDenied, Severity::Warning)];
        assert_eq!(codes, want);
        assert_eq!(found[1].object.as_deref(), Some("0000:4b:00.0, 0000:5e:00.0"));
        assert_eq!(found[1].evidence.len(), 1);
    }
}
