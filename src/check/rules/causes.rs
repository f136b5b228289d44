//! Which diagnosis explains which, where both are made in one boot.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::model::common::Code;
use crate::model::data::data;

/// `causes.toml`: each cause with what follows from it.
fn causes() -> &'static BTreeMap<Code, Vec<Code>> {
    static CAUSES: OnceLock<BTreeMap<Code, Vec<Code>>> = OnceLock::new();
    CAUSES.get_or_init(|| data(include_bytes!(concat!(env!("OUT_DIR"), "/causes.toml.gz"))))
}

/// What follows from `cause`.
fn effects(cause: Code) -> &'static [Code] {
    causes().get(&cause).map(Vec::as_slice).unwrap_or_default()
}

/// True if `cause` explains `effect`.
pub fn explains(cause: Code, effect: Code) -> bool {
    !OF_ITSELF.contains(&effect) && effects(cause).contains(&general(effect))
}

/// What no fault of a port, module or firmware explains; nor what is merely not known.
const OF_ITSELF: [Code; 11] = [
    Code::BootInProgress,
    Code::RdmaNameDiffers,
    Code::NodeDescription,
    Code::PcieBelowMinimum,
    Code::PcieLinkReduced,
    Code::PortNotJudged,
    Code::FirmwareBelowMinimum,
    Code::FirmwareNotAsConfigured,
    Code::SettingContradicted,
    Code::TwoAgents,
    Code::VfOtherWriter,
];

/// The diagnosis that `effect` is: what has no page of its own is what differs from the
/// configuration.
fn general(effect: Code) -> Code {
    super::rule(effect).map_or(Code::NotAsExpected, |rule| rule.code)
}

/// Pairs that are made together, and of which neither explains the other, even over others.
pub const BESIDE: &[(Code, Code)] = &[
    (Code::DriverRegression, Code::LinkDownCable),
    (Code::IommuOff, Code::SriovVfUnreachable),
    (Code::NoSubnetManager, Code::LinkDownCable),
];

/// True if `cause` explains `effect`, perhaps over others.
fn leads_to(cause: Code, effect: Code) -> bool {
    effects(cause).iter().any(|next| *next == effect || leads_to(*next, effect))
}

/// True if it is known of two diagnoses which explains which, or that neither does.
pub fn is_decided(one: Code, other: Code) -> bool {
    // What has no page of its own is a fact of its object, beside all others.
    if super::rule(one).is_none() || super::rule(other).is_none() {
        return true;
    }
    let is_pair = |(a, b): &(Code, Code)| (*a, *b) == (one, other) || (*a, *b) == (other, one);
    one == other || leads_to(one, other) || leads_to(other, one) || BESIDE.iter().any(is_pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::ledger::Book;
    use crate::check::rank::ranked;
    use crate::check::rules;
    use crate::check::rules::testing::{host, port};
    use crate::model::finding::{Confidence, Finding, Severity};
    use crate::model::status::Role;

    fn finding(code: Code) -> Finding {
        Finding::of(code, Severity::Error, Confidence::Medium, "x")
    }

    #[test]
    fn every_pair_is_ranked_cause_first_whichever_rule_comes_first() {
        for (cause, effects) in causes() {
            assert!(rules::rule(*cause).is_some(), "{cause} is no rule");
            for effect in effects {
                assert!(
                    rules::rule(*effect).is_some(),
                    "{cause} causes {effect}, which is no rule"
                );
                for pair in [[*cause, *effect], [*effect, *cause]] {
                    let told = ranked(pair.map(finding).to_vec());
                    let order: Vec<Code> = told.iter().map(|f| f.code).collect();
                    assert_eq!(order, [*cause, *effect]);
                    assert_eq!(told.get(1).and_then(|f| f.caused_by), Some(*cause));
                }
            }
        }
    }

    #[test]
    fn nothing_explains_itself_even_over_others() {
        let mut unexplained: Vec<Code> = rules::ALL.iter().map(|rule| rule.code).collect();
        // Take away what nothing that is left explains, until nothing is left.
        while !unexplained.is_empty() {
            let before = unexplained.len();
            let left = unexplained.clone();
            unexplained.retain(|code| left.iter().any(|other| explains(*other, *code)));
            assert!(unexplained.len() < before, "a circle of causes: {unexplained:?}");
        }
    }

    fn logs(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(dir).expect("a folder") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                paths.extend(logs(&path));
            } else if path.extension().is_some_and(|extension| extension == "log") {
                paths.push(path);
            }
        }
        paths.sort();
        paths
    }

    #[test]
    fn of_each_pair_that_is_made_together_it_is_known_which_explains_which() {
        let mut seen = std::collections::BTreeSet::new();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut look = |name: &str, boot: &crate::check::evidence::Boot| {
            let made = crate::check::rank::judge(&Book::of(boot));
            let made = made.iter().filter(|f| f.severity != Severity::Info).map(|f| f.code);
            let codes: Vec<Code> = made.collect();
            for one in &codes {
                for other in &codes {
                    seen.insert((*one, *other));
                    assert!(is_decided(*one, *other), "{name}: {one}, {other}");
                }
            }
        };
        for path in logs(&root.join("tests/tree/logs")) {
            let mut intake = crate::check::evidence::Intake::new(rules::needles());
            intake.read("log", &mut std::fs::read(&path).expect("log").as_slice());
            for boot in &intake.finish().boots {
                look(&path.display().to_string(), boot);
            }
        }
        let down = port("a", "down", "polling", Role::Expected);
        let init = port("b", "init", "linkup", Role::Expected);
        let named = ["a", "b"].map(|device| (device, Severity::Warning));
        look("a host", &host(vec![down, init], &named));
        assert!(!is_decided(Code::IommuOff, Code::OpensmSkipped));
        for pair in BESIDE {
            assert!(seen.contains(pair), "no log makes both of {pair:?}");
            assert!(!leads_to(pair.0, pair.1) && !leads_to(pair.1, pair.0), "{pair:?}");
        }
    }

    #[test]
    fn the_known_chains_hold() {
        for (cause, effect) in [
            (Code::ModuleDenied, Code::ModuleNotLoaded),
            (Code::DriverRegression, Code::PortNotReady),
            (Code::FwInitTimeout, Code::PortNotReady),
            (Code::VfProbeFailed, Code::NotAsExpected),
            (Code::PortNotReady, Code::MountBeforeIpoib),
            (Code::OrderingMissing, Code::MountBeforeIpoib),
            (Code::VfSettingDropped, Code::VfGuidZero),
            (Code::VfSettingDropped, Code::VfPolicyDown),
            (Code::VfSettingRefused, Code::VfGuidZero),
        ] {
            assert!(explains(cause, effect) && !explains(effect, cause), "{cause}, {effect}");
        }
    }

    #[test]
    fn what_explains_the_account_of_the_node_is_as_grave() {
        let mild = Finding { severity: Severity::Warning, ..finding(Code::UdevTimeout) };
        let told = ranked(vec![finding(Code::NotAsExpected), mild]);
        let told: Vec<_> = told.iter().map(|f| (f.code, f.severity)).collect();
        let both = [Code::UdevTimeout, Code::NotAsExpected].map(|code| (code, Severity::Error));
        assert_eq!(told, both);
    }

    #[test]
    fn advice_explains_no_failure() {
        let mild = Finding { severity: Severity::Info, ..finding(Code::ModuleDenied) };
        let told = ranked(vec![mild, finding(Code::ModuleNotLoaded)]);
        assert_eq!(
            told.first().map(|f| (f.code, f.caused_by)),
            Some((Code::ModuleNotLoaded, None))
        );
    }
}
