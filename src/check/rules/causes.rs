//! Which diagnosis explains which, where both are made in one boot.

use crate::report::common::Code;

/// Each cause with what follows from it. What is in no row together is told side by side.
pub const CAUSES: &[(Code, &[Code])] = &[
    (
        Code::ConfigurationInvalid,
        &[
            Code::PortNotReady,
            Code::ModuleNotLoaded,
            Code::NetdevLate,
            Code::MountBeforeIpoib,
            Code::NetdevAdminDown,
            Code::NotAsExpected,
        ],
    ),
    (
        Code::OpenibdSkipsInboxModules,
        &[
            Code::OpenibdFailed,
            Code::ModuleNotLoaded,
            Code::ModuleMissingForKernel,
            Code::RdmaServiceFailed,
        ],
    ),
    (
        Code::OpenibdDisabled,
        &[
            Code::NetdevLate,
            Code::PortNotReady,
            Code::ModuleLoadedLate,
            Code::IfupSkippedOsBooting,
            Code::ModuleNotLoaded,
            Code::MountBeforeIpoib,
            Code::NetdevAdminDown,
            Code::IfcfgMismatch,
        ],
    ),
    (
        Code::OrderingCycle,
        &[
            Code::NetdevLate,
            Code::PortNotReady,
            Code::OrderingMissing,
            Code::ModuleNotLoaded,
            Code::OpenibdDisabled,
            Code::MountBeforeNetwork,
            Code::MountBeforeIpoib,
            Code::WaitOnlineTimeout,
            Code::ModuleLoadedLate,
        ],
    ),
    (Code::StartWaitDeadlock, &[Code::WaitOnlineTimeout, Code::OpenibdFailed]),
    (
        Code::ModuleLoadInterrupted,
        &[
            Code::DriverRegression,
            Code::RdmaServiceFailed,
            Code::ModuleNotLoaded,
            Code::NotAsExpected,
            Code::PortNotReady,
        ],
    ),
    (
        Code::ModuleSignatureRefused,
        &[
            Code::OpenibdFailed,
            Code::ModuleNotLoaded,
            Code::PortNotReady,
            Code::RdmaServiceFailed,
            Code::MountBeforeIpoib,
            Code::NotAsExpected,
        ],
    ),
    (
        Code::ModuleSymbolMismatch,
        &[
            Code::OpenibdFailed,
            Code::ModuleNotLoaded,
            Code::RdmaServiceFailed,
            Code::MountBeforeIpoib,
            Code::NotAsExpected,
        ],
    ),
    (
        Code::ModuleMissingForKernel,
        &[
            Code::OpenibdFailed,
            Code::ModuleNotLoaded,
            Code::RdmaServiceFailed,
            Code::MountBeforeIpoib,
            Code::NotAsExpected,
        ],
    ),
    (Code::ModuleMissingInInitrd, &[Code::RdmaServiceFailed]),
    (
        Code::InitrdWithoutFabric,
        &[Code::ModuleNotLoaded, Code::MountBeforeIpoib, Code::DriverRegression],
    ),
    (
        Code::ModuleIsADummy,
        &[Code::MountBeforeIpoib, Code::MountBeforeNetwork, Code::NotAsExpected],
    ),
    (
        Code::ModuleWrongDriver,
        &[Code::ModuleNotLoaded, Code::DriverRegression, Code::NotAsExpected],
    ),
    (
        Code::ModuleParameter,
        &[Code::DriverRegression, Code::OpenibdFailed, Code::ModuleNotLoaded, Code::NotAsExpected],
    ),
    (
        Code::ModuleDenied,
        &[
            Code::ModuleNotLoaded,
            Code::ModuleLoadedLate,
            Code::PortNotReady,
            Code::NotAsExpected,
            Code::OpenibdFailed,
            Code::MountBeforeIpoib,
        ],
    ),
    (
        Code::FirmwareTooOld,
        &[
            Code::DriverRegression,
            Code::VfProbeFailed,
            Code::OpenibdFailed,
            Code::ModuleNotLoaded,
            Code::NotAsExpected,
        ],
    ),
    (Code::FirmwareResetPending, &[Code::SriovNotEnabledFw, Code::NotAsExpected]),
    (
        Code::FirmwareFatal,
        &[
            Code::FwInitTimeout,
            Code::ModuleInitSlow,
            Code::DriverRegression,
            Code::VfProbeFailed,
            Code::PortNotReady,
            Code::ModuleNotLoaded,
            Code::NotAsExpected,
        ],
    ),
    (
        Code::FwInitTimeout,
        &[
            Code::DriverRegression,
            Code::VfProbeFailed,
            Code::UdevTimeout,
            Code::OpenibdFailed,
            Code::ModuleLoadedLate,
            Code::ModuleInitSlow,
            Code::ModuleNotLoaded,
            Code::PortNotReady,
            Code::NotAsExpected,
            Code::MountBeforeIpoib,
        ],
    ),
    (Code::DriverUnloadUnderRemoteRoot, &[Code::DriverRegression]),
    (
        Code::PciBarUnassigned,
        &[Code::DriverRegression, Code::PortNotReady, Code::ModuleNotLoaded, Code::NotAsExpected],
    ),
    (
        Code::SelinuxDeniesSubnet,
        &[Code::NoSubnetManager, Code::PortNotReady, Code::OpensmMisconfigured],
    ),
    (Code::VfProbeFailed, &[Code::DriverRegression, Code::NotAsExpected]),
    (
        Code::DriverRegression,
        &[
            Code::ModuleInitSlow,
            Code::ModuleNotLoaded,
            Code::UdevTimeout,
            Code::MountBeforeIpoib,
            Code::WaitOnlineTimeout,
            Code::NotAsExpected,
            Code::PortNotReady,
        ],
    ),
    (
        Code::UdevTimeout,
        &[Code::ModuleNotLoaded, Code::OpenibdFailed, Code::NotAsExpected, Code::PortNotReady],
    ),
    (
        Code::ModuleInitSlow,
        &[
            Code::OpenibdFailed,
            Code::RdmaServiceFailed,
            Code::ModuleNotLoaded,
            Code::NotAsExpected,
            Code::PortNotReady,
            Code::MountBeforeIpoib,
        ],
    ),
    (
        Code::SriovNotEnabledFw,
        &[Code::VmBeforeVf, Code::SriovNotExposedKernel, Code::NotAsExpected],
    ),
    (
        Code::SriovMmio,
        &[Code::VfProbeFailed, Code::VmBeforeVf, Code::DriverRegression, Code::NotAsExpected],
    ),
    (Code::SriovNotExposedKernel, &[Code::VmBeforeVf, Code::NotAsExpected]),
    (Code::IommuOff, &[Code::VmBeforeVf, Code::AutostartGuestOnVf, Code::NotAsExpected]),
    (Code::SriovVfUnreachable, &[Code::VmBeforeVf]),
    (Code::VfSettingDropped, &[Code::VfGuidZero, Code::VfPolicyDown, Code::NotAsExpected]),
    (Code::VfSettingRefused, &[Code::VfGuidZero, Code::VfPolicyDown, Code::NotAsExpected]),
    (
        Code::VfGuidZero,
        &[
            Code::OpensmVirtDisabled,
            Code::VfPolicyDown,
            Code::NetdevAdminDown,
            Code::NoSubnetManager,
            Code::LinkDownCable,
            Code::NotAsExpected,
        ],
    ),
    (Code::VfGuidDuplicate, &[Code::NotAsExpected]),
    (
        Code::VfPolicyDown,
        &[
            Code::OpensmVirtDisabled,
            Code::NetdevAdminDown,
            Code::LinkDownCable,
            Code::NotAsExpected,
        ],
    ),
    (
        Code::UmadZeroGuid,
        &[Code::OpensmMisconfigured, Code::RdmaServiceFailed, Code::NoSubnetManager],
    ),
    (Code::OpensmSkipped, &[Code::NoSubnetManager]),
    (Code::OpensmPartitionsRejected, &[Code::ModuleLoadOrder, Code::VfPolicyDown]),
    (Code::OpensmOtherPort, &[Code::NoSubnetManager]),
    (Code::OpensmMisconfigured, &[Code::NoSubnetManager, Code::RdmaServiceFailed]),
    (
        Code::OpensmVirtDisabled,
        &[Code::LinkDownCable, Code::NetdevAdminDown, Code::NoSubnetManager],
    ),
    (
        Code::NoSubnetManager,
        &[
            Code::PortNotActive,
            Code::NetdevAdminDown,
            Code::WaitOnlineTimeout,
            Code::MountBeforeIpoib,
        ],
    ),
    (
        Code::LinkDownCable,
        &[
            Code::PortNotActive,
            Code::NetdevAdminDown,
            Code::WaitOnlineTimeout,
            Code::MountBeforeIpoib,
        ],
    ),
    (
        Code::PortNotActive,
        &[Code::NetdevAdminDown, Code::WaitOnlineTimeout, Code::MountBeforeIpoib],
    ),
    (
        Code::ModuleNotLoaded,
        &[
            Code::RdmaServiceFailed,
            Code::OpensmMisconfigured,
            Code::MountBeforeIpoib,
            Code::NotAsExpected,
        ],
    ),
    (
        Code::OpenibdFailed,
        &[
            Code::ModuleNotLoaded,
            Code::RdmaServiceFailed,
            Code::MountBeforeIpoib,
            Code::NetdevAdminDown,
            Code::NotAsExpected,
        ],
    ),
    (Code::OpenibdAliasBroken, &[Code::MountBeforeIpoib]),
    (Code::PortDegraded, &[Code::NotAsExpected]),
    (Code::MlnxInterfaceMgrArmed, &[Code::NetdevAdminDown]),
    (
        Code::PortNotReady,
        &[Code::NetdevLate, Code::MountBeforeIpoib, Code::WaitOnlineTimeout, Code::NotAsExpected],
    ),
    (Code::NetdevLate, &[Code::NetdevAdminDown, Code::MountBeforeIpoib, Code::WaitOnlineTimeout]),
    (Code::ModuleLoadOrder, &[Code::MountBeforeIpoib]),
    (Code::ModuleLoadedLate, &[Code::IfupSkippedOsBooting, Code::MountBeforeIpoib]),
    (Code::NetdevRenamed, &[Code::IfcfgMismatch, Code::ModuleLoadedLate, Code::MountBeforeIpoib]),
    (Code::IpoibParentDown, &[Code::NetdevAdminDown, Code::MountBeforeIpoib]),
    (
        Code::NetworkStackBug,
        &[
            Code::NetdevAdminDown,
            Code::WaitOnlineTimeout,
            Code::MountBeforeIpoib,
            Code::IfcfgMismatch,
        ],
    ),
    (Code::IfcfgMismatch, &[Code::MountBeforeIpoib, Code::WaitOnlineTimeout]),
    (Code::NetdevAdminDown, &[Code::MountBeforeIpoib]),
    (Code::AutostartGuestOnVf, &[Code::VmBeforeVf]),
    // LNet is both: a service without an order, and what mounts.
    (Code::OrderingMissing, &[Code::MountBeforeIpoib]),
    (Code::MountBeforeIpoib, &[Code::MountBeforeNetwork]),
    (Code::WaitOnlineTimeout, &[Code::MountBeforeNetwork]),
];

/// True if `cause` explains `effect`.
pub fn explains(cause: Code, effect: Code) -> bool {
    CAUSES.iter().any(|(code, effects)| *code == cause && effects.contains(&effect))
}

/// Pairs that are made together, and of which neither explains the other, even over others.
pub const BESIDE: &[(Code, Code)] = &[
    (Code::DriverRegression, Code::LinkDownCable),
    (Code::IommuOff, Code::SriovVfUnreachable),
    (Code::NoSubnetManager, Code::LinkDownCable),
];

/// True if `cause` explains `effect`, perhaps over others.
fn leads_to(cause: Code, effect: Code) -> bool {
    let of_it = CAUSES.iter().filter(|(code, _)| *code == cause);
    let mut next = of_it.flat_map(|(_, effects)| *effects);
    next.any(|next| *next == effect || leads_to(*next, effect))
}

/// True if it is known of two diagnoses which explains which, or that neither does.
pub fn is_decided(one: Code, other: Code) -> bool {
    let is_pair = |(a, b): &(Code, Code)| (*a, *b) == (one, other) || (*a, *b) == (other, one);
    one == other || leads_to(one, other) || leads_to(other, one) || BESIDE.iter().any(is_pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rank::ranked;
    use crate::check::rules;
    use crate::check::rules::testing::{host, port};
    use crate::report::finding::{Confidence, Finding, Severity};
    use crate::report::status::Role;

    fn finding(code: Code) -> Finding {
        Finding::new(code, Severity::Error, Confidence::Medium, "x")
    }

    #[test]
    fn every_pair_is_ranked_cause_first_whichever_rule_comes_first() {
        for (cause, effects) in CAUSES {
            assert!(rules::rule(*cause).is_some(), "{cause} is no rule");
            assert_eq!(CAUSES.iter().filter(|(code, _)| code == cause).count(), 1, "{cause}");
            for effect in *effects {
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
            if path.is_dir() { paths.extend(logs(&path)) } else { paths.push(path) }
        }
        paths.sort();
        paths
    }

    #[test]
    fn of_each_pair_that_is_made_together_it_is_known_which_explains_which() {
        let mut seen = std::collections::BTreeSet::new();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut look = |name: &str, boot: &crate::check::evidence::Boot| {
            let made = crate::check::rank::judge(boot);
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
