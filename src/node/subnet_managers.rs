//! How the subnet managers of the configuration stand on this host.

use super::Node;
use crate::config::SubnetManager;
use crate::host::{Root, state, unit_links};
use crate::model::{
    Code, Finding, Link, ToDo,
    subnet_manager::{
        Stage, SubnetManagerReport, SubnetManagerRun, SubnetManagerState as State, TARGET,
    },
};
use crate::names::{LinkLayer, PhysicalState, RdmaName, unit_escape};
use crate::observe::opensm::Issm;
use crate::observe::{Look, opensm};

impl Node<'_> {
    /// How each subnet manager stands; their units are left out of those that have `failed`.
    pub(super) fn subnet_managers(
        &self,
        failed: &mut Vec<String>,
        problems: &mut Vec<String>,
    ) -> Vec<SubnetManagerReport> {
        let reports = reports(self, failed, problems);
        failed.retain(|unit| !reports.iter().any(|r| r.unit.as_ref() == Some(unit)));
        reports
    }

    /// What is wrong with them, and between the configuration, the target, the host's ports and
    /// its other units: the latter is known without an opensm that runs.
    pub(super) fn subnet_manager_findings(&self, reports: &[SubnetManagerReport]) -> Vec<Finding> {
        let Self { root, config, .. } = self;
        let entries = &config.subnet_managers;
        let mut findings = Vec::new();
        if entries.is_empty() {
            if !config.withheld.has_all_subnet_managers() && opensm::is_enabled(root) {
                let message = "the target is enabled, and no [[subnet-manager]] is configured: it starts no opensm";
                let advice =
                    "configure a [[subnet-manager]], or `systemctl disable ibprov-opensm.target`";
                let finding = Finding::warning(Code::SubnetManagerNotEnabled, message);
                findings.push(finding.about(TARGET).permanent([advice]));
            }
            return findings;
        }
        let of_defaults = opensm::ports_of_defaults(&Look::new(root));
        let starters = self.inventory().opensm_starters(root, of_defaults.as_deref());
        for entry in entries {
            if let Some(starter) = starters.iter().find(|starter| starter.has(entry.port_guid)) {
                let message = format!(
                    "{} {} for this port, on which only one opensm can run",
                    starter.name,
                    starter.state()
                );
                let finding = Finding::error(Code::OpensmOtherUnit, message).about(entry.port_guid);
                findings.push(finding.permanent([if starter.is_unit {
                    ToDo::run(starter.remedy())
                } else {
                    starter.remedy().into()
                }]));
            }
        }
        findings.extend(reports.iter().filter_map(SubnetManagerReport::finding));
        findings
    }
}

/// How each stands; `failed` are units that have failed.
fn reports(
    node: &Node<'_>,
    failed: &[String],
    problems: &mut Vec<String>,
) -> Vec<SubnetManagerReport> {
    let Node { root, config, observed, survey, .. } = node;
    if config.subnet_managers.is_empty() {
        return Vec::new();
    }
    let link = |rdma: &RdmaName, port| {
        let mut answers = survey.ports.iter();
        let its = answers.find(|((_, device, number), _)| device == rdma && *number == port);
        its.map(|(_, answer)| answer.link.clone()).unwrap_or_default()
    };
    problems.extend(node.inventory().problems.iter().cloned());
    let mut look = Look::new(root);
    let devices = opensm::devices(&mut look, &observed.functions);
    problems.extend(look.problems);
    let is_enabled = opensm::is_enabled(root);
    let entries = config.subnet_managers.iter();
    let reports = entries.map(|entry| {
        let hcas = observed.functions.iter().flat_map(|f| &f.rdma);
        let ports = hcas.flat_map(|d| d.ports.iter().map(move |port| (&d.name, port)));
        let its = |(_, port): &(&RdmaName, &crate::observe::Port)| {
            port.guid == Some(entry.port_guid) && port.link_layer != LinkLayer::Ethernet
        };
        let place = ports.into_iter().find(its).map(|(rdma, port)| (rdma.clone(), port.number));
        let run = last_run(root, entry);
        let its = |issm: &&Issm| {
            place.as_ref().is_some_and(|(rdma, port)| (rdma, *port) == (&issm.rdma, issm.port))
        };
        let unit = devices.iter().find(its).map(|issm| {
            format!("ibprov-opensm@{}.service", unit_escape(issm.path.trim_start_matches('/')))
        });
        let is_up = unit.as_ref().is_some_and(|unit| unit_links::is_up(root, unit));
        let state = match (&place, &run) {
            (None, _) => State::NoPort,
            _ if unit.is_none() => State::NoDevice,
            (Some((rdma, port)), Some(run)) if is_up => running(root, run, &link(rdma, *port)),
            (_, Some(run)) if run.stage == Stage::Refused => State::Refused,
            _ if unit.as_ref().is_some_and(|unit| failed.contains(unit)) => State::Failed,
            _ if !is_enabled => State::NotEnabled,
            _ => State::NotRunning,
        };
        let reason = match state {
            State::Waiting | State::Refused => run.and_then(|run| run.reason),
            _ => None,
        };
        let (rdma, port) = place.unzip();
        let SubnetManager { port_guid, priority, .. } = *entry;
        SubnetManagerReport { port_guid, priority, rdma, port, unit, state, reason }
    });
    reports.collect()
}

/// What `ibprov opensm run` has left of the entry.
fn last_run(root: &Root, entry: &SubnetManager) -> Option<SubnetManagerRun> {
    let path = format!("{}/opensm/{:016x}.json", state::RUN_DIR, entry.port_guid.value());
    serde_json::from_str(&root.text(&path, 1 << 16).ok()?).ok()
}

/// The state of one whose unit is active.
fn running(root: &Root, run: &SubnetManagerRun, link: &Link) -> State {
    let program = root.attribute(&format!("/proc/{}/comm", run.pid));
    match (run.stage, &link.physical, link.lid, link.sm_lid) {
        (Stage::Waiting, ..) => State::Waiting,
        // systemd starts it again in a moment.
        _ if root.is_live() && program.as_deref() != Ok("opensm") => State::Starting,
        (_, Some(physical), ..) if *physical != PhysicalState::LinkUp => State::WaitingForLink,
        (_, _, Some(lid), Some(sm_lid)) if lid == sm_lid => State::Master,
        (_, _, _, Some(master_lid)) => State::Standby { master_lid },
        _ => State::Starting,
    }
}
