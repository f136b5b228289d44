//! Logs and what has to be said of each: `cases.toml`, which needs no Rust for one more. What the
//! rules' own tests ask of logs that are made, and of hosts.

use serde::Deserialize;

use super::super::evidence::host::Host;
use super::super::evidence::state::PortSeen;
use super::super::evidence::{Boot, Intake};
use super::Severity;
use crate::model::common::{Code, Finding, listed};
use crate::model::node::Judgement;
use crate::model::status::Role;

/// What is found in `log`.
fn findings(log: &str) -> Vec<Finding> {
    let mut intake = Intake::new(super::needles());
    intake.read("log", &mut log.as_bytes());
    super::super::diagnose(&intake.finish()).findings
}

/// How grave the finding of `code` in `lines` is; `None` if there is none.
pub(super) fn severity(code: Code, lines: &[&str]) -> Option<Severity> {
    findings(&lines.join("\n")).iter().find(|f| f.code == code).map(|f| f.severity)
}

/// What ibstat shows of `mlx5_<device>`, whose node GUID ends in `guid` and is
/// nothing but zeros if that is 0.
pub(super) fn ca(device: u8, kind: &str, guid: u8, state: &str, physical: &str) -> String {
    let node = if guid == 0 { 0 } else { 0x02c9_0300_0000_0000 + u64::from(guid) };
    format!(
        "CA 'mlx5_{device}'\n\tCA type: {kind}\n\tNode GUID: 0x{node:016x}\n\tPort 1:\n\
         \t\tState: {state}\n\t\tPhysical state: {physical}\n\t\tSM lid: 1\n\
         \t\tLink layer: InfiniBand"
    )
}

/// Port 1 of `device` as a host shows it, in this state and physical state.
pub(super) fn port(device: &str, state: &str, physical: &str, role: Role) -> PortSeen {
    PortSeen {
        device: device.to_owned(),
        port: "1".to_owned(),
        state: state.to_owned(),
        physical: physical.to_owned(),
        infiniband: Some(true),
        role: Some(role),
        ..PortSeen::default()
    }
}

/// A host with `ports`, of which its judgement names those of these devices as not active.
pub(super) fn host(ports: Vec<PortSeen>, named: &[(&str, Severity)]) -> Boot {
    let of = |(device, severity): &(&str, Severity)| {
        Finding::new(Code::PortNotActive, *severity, format!("{device} is not active"))
            .about(format!("{device}/1 (0000:4b:00.0)"))
    };
    let findings = named.iter().map(of).collect();
    let judgement = Judgement::new(Vec::new(), Vec::new(), true, true, findings);
    let host = Host { live: true, judgement: Some(judgement), ..Host::default() };
    let mut boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
    boot.state.ports = ports;
    boot
}

/// What `ip link` shows of a PF with two VFs, of which the second is as it should be.
pub(super) fn two_vfs(node_guid: &str, port_guid: &str, link_state: &str) -> String {
    let vf = |index: u8, node: &str, port: &str, link: &str| {
        format!(
            "    vf {index}     link/infiniband 80:00 brd 00:ff, NODE_GUID {node}, \
             PORT_GUID {port}, link-state {link}, trust off"
        )
    };
    format!(
        "4: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4092\n    link/infiniband 00:00 brd ff\n\
         {}\n{}",
        vf(0, node_guid, port_guid, link_state),
        vf(1, "02:00:00:00:00:00:01:01", "02:00:00:00:00:00:01:02", "auto"),
    )
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    what: String,
    log: String,
    /// Findings that are told: severity, code and object, or less of it from the left.
    #[serde(default)]
    told: Vec<String>,
    /// Codes, or severities and codes, that are not told.
    #[serde(default)]
    never: Vec<String>,
    /// Codes of findings that have no cause.
    #[serde(default)]
    root: Vec<String>,
    /// Confidences with codes.
    #[serde(default)]
    sure: Vec<String>,
    /// Words of a summary or of advice.
    #[serde(default)]
    says: Vec<String>,
    /// Words of neither.
    #[serde(default)]
    unsaid: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
    judged: Vec<Judged>,
}

/// Logs by how grave one diagnosis of them is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Judged {
    what: String,
    code: Code,
    #[serde(default)]
    error: Vec<String>,
    #[serde(default)]
    warning: Vec<String>,
    #[serde(default)]
    note: Vec<String>,
    /// Logs of which it is not made.
    #[serde(default)]
    none: Vec<String>,
}

impl Case {
    /// What is not as it has to be.
    fn faults(&self, findings: &[Finding]) -> Vec<String> {
        let line = |f: &Finding| {
            let object = if f.objects.is_empty() { "-".to_owned() } else { listed(&f.objects) };
            format!("{} {} {object}", f.severity, f.code)
        };
        let is = |told: &String, wanted: &str| {
            *told == wanted || told.starts_with(&format!("{wanted} "))
        };
        let told: Vec<String> = findings.iter().map(line).collect();
        let codes: Vec<String> = findings.iter().map(|f| f.code.to_string()).collect();
        let text: String = findings
            .iter()
            .flat_map(|f| {
                let steps = f.advice.iter().map(|advice| advice.step.to_string());
                [f.message.clone()].into_iter().chain(steps)
            })
            .map(|text| format!("{text}\n"))
            .collect();
        let missing = self.told.iter().filter(|wanted| !told.iter().any(|told| is(told, wanted)));
        let wrong = self
            .never
            .iter()
            .filter(|never| codes.contains(never) || told.iter().any(|told| is(told, never)));
        let roots: Vec<String> =
            findings.iter().filter(|f| f.caused_by.is_none()).map(|f| f.code.to_string()).collect();
        let sure: Vec<String> = findings
            .iter()
            .map(|f| format!("{} {}", f.confidence.map_or("-", Into::into), f.code))
            .collect();
        let all_roots = self.root.iter().filter(|code| !roots.contains(code));
        let unsure = self.sure.iter().filter(|one| !sure.contains(one));
        let unsaid = self.says.iter().filter(|words| !text.contains(words.as_str()));
        let said = self.unsaid.iter().filter(|words| text.contains(words.as_str()));
        let mut faults: Vec<String> = missing.map(|wanted| format!("not told: {wanted}")).collect();
        faults.extend(wrong.map(|wrong| format!("told: {wrong}")));
        if !self.root.is_empty() && self.root.len() != roots.len() {
            faults.push(format!("roots: {roots:?}"));
        }
        faults.extend(all_roots.map(|code| format!("has a cause: {code}")));
        faults.extend(unsure.map(|one| format!("not so sure: {one}, but {sure:?}")));
        faults.extend(unsaid.map(|words| format!("not said: {words}")));
        faults.extend(said.map(|words| format!("said: {words}")));
        if !faults.is_empty() {
            faults.push(format!("of {}:\n  {}", self.what, told.join("\n  ")));
            faults.push(text);
        }
        faults
    }
}

#[test]
fn each_log_is_told_as_it_has_to_be() {
    let cases: Cases = toml::from_str(include_str!("cases.toml")).expect("cases.toml");
    let mut faults = Vec::new();
    for case in &cases.case {
        faults.extend(case.faults(&findings(&case.log)));
    }
    for Judged { what, code, error, warning, note, none } in &cases.judged {
        let graves = [Some(Severity::Error), Some(Severity::Warning), Some(Severity::Info), None];
        for (grave, logs) in graves.into_iter().zip([error, warning, note, none]) {
            for log in logs {
                let told = findings(log).iter().find(|f| f.code == *code).map(|f| f.severity);
                if told != grave {
                    faults.push(format!("{what}: {code} is {told:?}, not {grave:?}, of:\n{log}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
