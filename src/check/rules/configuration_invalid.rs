use super::{Boot, Confidence, Finding, Judge, Rule, Severity};
use crate::report::common::Code;

pub(super) const RULE: Rule = Rule {
    code: Code::ConfigurationInvalid,
    meaning: "ibprov's configuration has an error, so ibprov did nothing in this boot",
    page: "\
ibprov reads its configuration first, and ends at once with exit code 2 if the
configuration has an error: no module is loaded, no VF is created, no interface is set
up. Other faults of such a host are mostly the consequence. The expected ports are not
known, so that the verdict is `unknown`; the host is shown with the default
configuration.

Symptoms: ibprov.service failed with exit code 2, within milliseconds.

Remedy: correct the file. To see every error with its line and column:

    ibprov config check

Then bring the node up:

    systemctl restart ibprov.service",
    needles: &[],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    let judgement = boot.host.as_ref().and_then(|host| host.judgement.as_ref());
    let invalid =
        judgement.and_then(|j| j.findings.iter().find(|f| f.code == Code::ConfigurationInvalid));
    let finding = |invalid: &crate::report::common::Finding| {
        let text = format!("ibprov did nothing: {}.", invalid.message.trim_end_matches('.'));
        Finding::new(RULE.code, Severity::Error, Confidence::High, text)
            .about_if(invalid.object.clone())
            .look(["ibprov config check"])
            .permanent(["correct the file, then `systemctl restart ibprov.service`"])
    };
    invalid.map(finding).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evidence::host::Host;
    use crate::report::common;
    use crate::report::node::{Count, Judgement, PortCount};

    #[test]
    fn it_is_the_first_thing_that_is_told() {
        let told = common::Finding::new(
            Code::ConfigurationInvalid,
            Severity::Error,
            "the configuration has an error",
        );
        let judgement = Judgement::new(PortCount::default(), Count::default(), true, vec![told]);
        let host = Host { live: true, judgement: Some(judgement), ..Host::default() };
        let boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
        assert_eq!(judge(&boot).len(), 1);
        let all = crate::check::rank::judge(&boot);
        assert_eq!(all.first().map(|f| f.code), Some(RULE.code), "{all:?}");
        assert!(all.iter().all(|f| f.code != Code::NotAsExpected), "{all:?}");
        assert_eq!(judge(&Boot::default()), []);
    }
}
