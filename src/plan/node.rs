//! What the node lacks of what is expected and planned. Pure: every verb that speaks of
//! the whole node is given the same answer for the same host.

use std::collections::BTreeSet;

use crate::names::{Guid, ModuleName, PciAddress, VfIndex, vf_ranges};
use crate::report::hardware::Vf;
use crate::report::node::{Count, Judgement, NodeCode, NodeFinding, NodeSeverity, Standing};
use crate::report::plan::{Action, PlannedPf};
use crate::report::{Cause, PortProgress, Verdict};

/// What is known of the node.
#[derive(Debug, Clone, Default)]
pub struct Known<'a> {
    /// What is wrong with the configuration, in one phrase: the defaults hold instead.
    pub configuration: Option<String>,
    /// Why it is not known which PCI devices there are.
    pub unreadable: Option<String>,
    /// The expected ports, and why each lacks what it lacks.
    pub ports: Vec<(&'a PortProgress, Option<Cause>)>,
    /// Configured modules that this host needs and that are not loaded.
    pub missing_modules: Vec<ModuleName>,
    /// The plans, as far as they can be held against the host.
    pub pfs: &'a [PlannedPf],
    /// The adapters that did not answer.
    pub silent: BTreeSet<PciAddress>,
    /// The VFs of each PF.
    pub vfs: Vec<(PciAddress, &'a [Vf])>,
    /// How the last boot ended.
    pub last_boot: Option<Verdict>,
    /// Units of ibprov's that have failed.
    pub failed_units: Vec<String>,
    /// The host shows an InfiniBand adapter.
    pub has_adapter: bool,
}

/// What `known` comes to.
#[must_use]
pub fn judge(known: &Known<'_>) -> Judgement {
    let mut findings = Vec::new();
    let mut add = |code, severity, object: &str, message: String, advice: Vec<String>| {
        findings.push(NodeFinding { code, severity, object: object.to_owned(), message, advice });
    };
    use NodeSeverity::{Error, Unknown, Warning};
    if let Some(why) = &known.configuration {
        let advice = vec!["ibprov config check".to_owned()];
        let message = format!(
            "{why}: the expected ports are not known, and the host is shown with the defaults"
        );
        add(NodeCode::ConfigurationInvalid, Unknown, "the configuration", message, advice);
    }
    if let Some(why) = &known.unreadable {
        add(NodeCode::HostUnreadable, Unknown, "the host", why.clone(), Vec::new());
    }
    let mut ports = Count { good: 0, of: known.ports.len() };
    for (port, cause) in &known.ports {
        let severity = match port.standing(cause.as_ref()) {
            Standing::Ready => {
                ports.good += 1;
                continue;
            }
            Standing::Excused => Warning,
            Standing::Missing => Error,
        };
        let why = cause.as_ref().map(|c| c.text.clone()).filter(|text| !text.is_empty());
        let (code, message) = match (port.reached, port.missing(), why) {
            (Some(_), Some(missing), Some(why)) => {
                (NodeCode::PortNotReady, format!("missing {missing}: {why}"))
            }
            (Some(_), Some(missing), None) => {
                (NodeCode::PortNotReady, format!("missing {missing}"))
            }
            _ => (NodeCode::PortAbsent, format!("absent, and expected ({})", port.why)),
        };
        let advice = cause.iter().map(|c| c.advice.clone()).filter(|a| !a.is_empty()).collect();
        add(code, severity, &port.label(), message, advice);
    }
    for module in &known.missing_modules {
        let message = "not loaded, although configured".to_owned();
        let advice = vec![format!("modprobe {module}"), "ibprov boot --dry-run".to_owned()];
        add(NodeCode::ModuleNotLoaded, Warning, &format!("module {module}"), message, advice);
    }
    for pci in &known.silent {
        let message = "no answer to a query of the state".to_owned();
        let advice = vec!["dmesg".to_owned(), format!("devlink health show pci/{pci}")];
        add(NodeCode::AdapterSilent, Error, &format!("adapter {pci}"), message, advice);
    }
    let mut vfs = Count::default();
    for pf in known.pfs {
        vfs.of += pf.wanted;
        let name = pf.pci.map_or_else(|| pf.named.clone(), |pci| format!("PF {pci}"));
        for error in &pf.errors {
            let message = format!("{error} ({})", pf.origin);
            add(NodeCode::VfPlanError, Error, &name, message, Vec::new());
        }
        if pf.pci.is_some_and(|pci| known.silent.contains(&pci)) {
            continue;
        }
        if let Some(problem) = &pf.problem {
            add(NodeCode::VfPlanBlocked, Error, &name, problem.to_string(), Vec::new());
        }
        let of = |action| pf.vfs.iter().filter(move |vf| vf.action == action).map(|vf| vf.index);
        vfs.good += of(Action::Keep).count();
        let parts = [
            (Action::Create, "to be created"),
            (Action::Change, "to be changed"),
            (Action::Remove, "to be removed"),
        ];
        let wrong: Vec<String> = parts
            .into_iter()
            .filter(|(action, _)| of(*action).next().is_some())
            .map(|(action, what)| format!("{} {what}", vf_ranges(of(action))))
            .collect();
        if !wrong.is_empty() {
            let advice = vec!["ibprov plan".to_owned(), "ibprov apply".to_owned()];
            add(NodeCode::VfNotAsPlanned, Error, &name, wrong.join(", "), advice);
        }
        if of(Action::Defer).next().is_some() || !pf.deferred.is_empty() {
            let message = match pf.deferred.first() {
                Some(deferred) => deferred.to_string(),
                None => format!("{}: not as planned, and in use", vf_ranges(of(Action::Defer))),
            };
            add(NodeCode::VfDeferred, Warning, &name, message, vec!["ibprov plan".to_owned()]);
        }
    }
    for (pf, seen) in &known.vfs {
        // What is planned is judged by the plan.
        if known.pfs.iter().any(|planned| planned.pci == Some(*pf)) {
            continue;
        }
        let zero = |vf: &&Vf| vf.port_guid.is_some_and(Guid::is_zero);
        let without: Vec<VfIndex> = seen.iter().filter(zero).map(|vf| vf.index).collect();
        if !without.is_empty() {
            let vfs = vf_ranges(without.into_iter());
            let message = format!("{vfs}: the port GUID is 0, and no [[pf]] sets one");
            let advice = vec!["plan GUIDs with a [[pf]]: man 5 ibprov.toml".to_owned()];
            add(NodeCode::VfGuidZero, Warning, &format!("PF {pf}"), message, advice);
        }
    }
    if let Some(verdict) = known.last_boot.filter(|verdict| verdict.exit_code() != 0) {
        let message = format!("{} (exit code {})", verdict.word(), verdict.exit_code());
        let advice = vec!["journalctl -b -u ibprov.service".to_owned()];
        add(NodeCode::BootFailed, Warning, "the last boot", message, advice);
    }
    for unit in &known.failed_units {
        let advice = vec![format!("systemctl status {unit}")];
        add(NodeCode::UnitFailed, Warning, unit, "the unit has failed".to_owned(), advice);
    }
    Judgement::new(ports, vfs, known.has_adapter, findings)
}
