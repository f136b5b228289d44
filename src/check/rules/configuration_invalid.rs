use super::{Judge, Rule};
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
    judge: Judge::Host,
};

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::evidence::Boot;
    use crate::check::evidence::host::Host;
    use crate::report::common;
    use crate::report::common::Code;
    use crate::report::finding::Severity;
    use crate::report::node::Judgement;

    #[test]
    fn it_is_the_first_thing_that_is_told() {
        let told = common::Finding::new(
            Code::ConfigurationInvalid,
            Severity::Error,
            "the configuration has an error",
        );
        let judgement = Judgement::new(Vec::new(), Vec::new(), true, vec![told]);
        let host = Host { live: true, judgement: Some(judgement), ..Host::default() };
        let boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
        let all = crate::check::rank::judge(&boot);
        assert_eq!(all.first().map(|f| f.code), Some(RULE.code), "{all:?}");
        assert!(all.iter().all(|f| f.code != Code::NotAsExpected), "{all:?}");
    }
}
