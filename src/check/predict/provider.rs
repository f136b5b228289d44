//! Nobody brings the ports up at boot, or only half of it is enabled.

use super::has_infiniband;
use crate::check::evidence::Host;
use crate::graph::{Load, consumers};
use crate::model::advice::ToDo;
use crate::model::common::Code;
use crate::model::finding::{Confidence, Finding, Severity};
use crate::names::{OPENIBD_STAND_IN, Rung, sh};

/// openibd or ibprov is there and does not run at boot; or its alias is broken.
pub(super) fn judge(host: &Host) -> Vec<Finding> {
    if host.graph.is_empty() || !has_infiniband(host) {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = alias(host);
    if consumers::provider(&host.graph).is_some() {
        return findings;
    }
    let Some((unit, state)) = idle(host) else { return findings };
    let harm = harm(host);
    let severity = if harm.is_some() { Severity::Error } else { Severity::Warning };
    let enable = match state.as_str() {
        "masked" => ToDo::run(format!("systemctl unmask {}", sh(&unit))),
        _ => ToDo::run(format!("systemctl enable {}", sh(&unit))),
    };
    let instead = (unit != "ibprov.service")
        .then(|| ToDo::with("or install ibprov", "systemctl enable ibprov.service"));
    let mut finding = Finding::of(
        Code::OpenibdDisabled,
        severity,
        if harm.is_some() { Confidence::High } else { Confidence::Medium },
        format!(
            "{unit} is {state}, so that no unit brings the InfiniBand ports up before the network starts."
        ),
    )
    .about(&unit)
    .quoting([host.quote(format!("{unit}: {state}"))])
    .permanent([enable].into_iter().chain(instead));
    if let Some(harm) = harm {
        finding = finding.chain([harm]);
    }
    findings.push(finding);
    findings
}

/// The unit that could have done it, and why it does not.
fn idle(host: &Host) -> Option<(String, String)> {
    ["openibd.service", "ibprov.service"].into_iter().find_map(|name| {
        let unit = host.graph.get(name).filter(|unit| unit.name != OPENIBD_STAND_IN)?;
        let state = match unit.load {
            Load::Masked => "masked",
            Load::NotFound => return None,
            _ if unit.file_state.is_empty() => "not enabled",
            _ => unit.file_state.as_str(),
        };
        Some((unit.name.clone(), state.to_owned()))
    })
}

/// What came of it in this boot, if anything did.
fn harm(host: &Host) -> Option<String> {
    if !host.live {
        return None;
    }
    let stuck = host.ports.iter().find(|p| !p.progress.is_ready() && !p.progress.optional);
    if let Some(port) = stuck {
        let missing = port.progress.missing().map_or("its netdev", Rung::word);
        return Some(format!("{} is missing {missing}.", port.progress.label()));
    }
    host.asked.iter().find_map(|asked| {
        let port = host
            .ports
            .iter()
            .find(|p| p.progress.netdev.as_ref().is_some_and(|n| n.as_str() == asked.netdev));
        match port {
            Some(port) if port.up == Some(false) => {
                Some(format!("{} exists, and is down.", asked.netdev))
            }
            Some(_) => None,
            None => Some(format!("{} does not exist.", asked.netdev)),
        }
    })
}

/// What `ibprov status` says of the alias and of masks, where the taxonomy has
/// a name for it.
fn alias(host: &Host) -> Vec<Finding> {
    let found = host.units.iter().flat_map(|u| &u.findings);
    found
        .filter(|f| f.code == Code::OpenibdAliasBroken)
        .map(|f| {
            let message = format!("{}.", f.message);
            let confidence = Some(Confidence::High);
            Finding { severity: Severity::Warning, confidence, message, ..f.clone() }
                .quoting([host.quote(f.message.clone())])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Port, host};
    use super::*;

    #[test]
    fn a_disabled_openibd_is_an_error_only_where_something_is_missing() {
        let mut idle = host(
            "openibd.service is oneshot\ngoal.target wants a.service\n",
            &[Port::named("ib0", 5)],
            &[],
        );
        idle.graph.get_mut("openibd.service").expect("unit").file_state = "disabled".to_owned();
        let [finding] = &judge(&idle)[..] else { panic!("{:?}", judge(&idle)) };
        assert_eq!((finding.code, finding.severity), (Code::OpenibdDisabled, Severity::Warning));
        assert_eq!(finding.advice.len(), 2, "enable it, or install ibprov");
        idle.ports = vec![Port::stuck()];
        assert_eq!(judge(&idle)[0].severity, Severity::Error);
    }

    #[test]
    fn a_masked_ibprov_is_told_though_its_openibd_is_there() {
        let mut masked = host(
            "goal.target wants ibprov-openibd.service\nibprov-openibd.service alias openibd.service\n\
             ibprov-openibd.service wants ibprov.service\nibprov.service masked\n",
            &[Port::named("ib0", 5)],
            &[],
        );
        masked.graph.get_mut("ibprov.service").expect("unit").file_state = "masked".to_owned();
        let [finding] = &judge(&masked)[..] else { panic!("{:?}", judge(&masked)) };
        assert!(finding.message.starts_with("ibprov.service is masked"), "{finding:?}");
        assert_eq!(finding.advice.len(), 1, "it is installed");
    }

    #[test]
    fn what_status_finds_of_the_alias_is_told() {
        use crate::model::advice::Advice;
        use crate::model::status::{Owner, Units};
        let mut both = host("goal.target wants ibprov.service\n", &[Port::named("ib0", 5)], &[]);
        both.units = Some(Units {
            openibd: Owner::Vendor,
            enabled: true,
            findings: vec![
                Finding::warning(Code::OpenibdAliasBroken, "it is")
                    .advise([Advice::permanent("reenable it")]),
            ],
        });
        let [finding] = &judge(&both)[..] else { panic!("{:?}", judge(&both)) };
        assert_eq!(
            (finding.code, &finding.advice[0].step),
            (Code::OpenibdAliasBroken, &"reenable it".into())
        );
    }

    #[test]
    fn rdma_core_alone_is_no_finding() {
        assert_eq!(
            judge(&host("goal.target wants a.service\n", &[Port::named("ib0", 5)], &[])),
            []
        );
    }
}
