//! The table of `ibprov status`: one line a port, VFs in ranges below it.

use std::collections::BTreeSet;

use super::{Detail, elsewhere};
use crate::model::NotExpected;
use crate::model::common::{Code, Finding, Severity};
use crate::model::hardware::{Link, VfPortStatus, VfStatus};
use crate::model::plan::{Action, PlannedVf};
use crate::model::status::{Child, Hca, PortStatus, Role, Status};
use crate::names::{
    Guid, LinkLayer, LinkState, Object, PhysicalState, Rate, RdmaName, Rung, Words, counted,
    grouped, vf_ranges,
};
use crate::show::screen::{Screen, Tone, columns};

/// How much a line of the table matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// As it is meant to be.
    Fine,
    Aside,
    Look,
    /// It is expected, and is not as it is meant to be.
    Wrong,
}

impl Mark {
    const fn sign(self) -> &'static str {
        match self {
            Self::Fine | Self::Aside => "  ",
            Self::Look => "~ ",
            Self::Wrong => "! ",
        }
    }

    const fn tone(self) -> Option<Tone> {
        match self {
            Self::Fine => None,
            Self::Aside => Some(Tone::Dim),
            Self::Look => Some(Tone::Warning),
            Self::Wrong => Some(Tone::Bad),
        }
    }
}

/// The columns but the last, which is as long as it is.
const COLUMNS: [&str; 6] = ["PORT", "PCI", "NETDEV", "STATE", "LID", "Gb/s"];

/// A port, or an adapter that shows none.
#[derive(Debug)]
struct Row {
    mark: Mark,
    cells: [String; COLUMNS.len()],
    note: String,
    /// A finding says what the note says.
    is_told: bool,
    below: Vec<(Mark, String)>,
    /// Nobody counts on it.
    is_aside: bool,
}

impl Row {
    /// It is not as it is meant to be, or something below it is not.
    fn is_wrong(&self) -> bool {
        let mut marks = self.below.iter().map(|(mark, _)| *mark).chain([self.mark]);
        marks.any(|mark| matches!(mark, Mark::Look | Mark::Wrong))
    }
}

/// The lines of the table, none where there is nothing to show, and what is left out of it: ports
/// that nobody expects, unless there are no others or all is to be shown.
pub fn table(status: &Status, screen: Screen, detail: Detail) -> (Vec<String>, Vec<String>) {
    /// So many P_Key children that are up are told one by one.
    const FEW: usize = 2;
    let ports = status.hcas.iter().flat_map(|hca| &hca.ports);
    let all: Vec<&Child> = ports.flat_map(|port| &port.children).collect();
    let up = all.iter().filter(|child| is_up(child)).count();
    let in_sum = detail == Detail::Ports && up > FEW;
    let of_hcas = status.hcas.iter().flat_map(|hca| rows(hca, status, in_sum));
    let mut rows: Vec<Row> = absent(status).chain(of_hcas).collect();
    let is_hidden = |row: &Row| row.is_aside && row.below.is_empty();
    let hidden = rows.iter().filter(|row| is_hidden(row)).count();
    let hides = detail == Detail::Ports && hidden < rows.len();
    match detail {
        Detail::Problems => rows.retain(Row::is_wrong),
        Detail::Ports => rows.retain(|row| !hides || !is_hidden(row)),
        Detail::Named | Detail::All => {}
    }
    if rows.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let cells = rows.iter().map(|row| row.cells.clone());
    let cells: Vec<_> = [COLUMNS.map(str::to_owned)].into_iter().chain(cells).collect();
    let mut lined = columns(&cells).into_iter();
    let head = format!("  {}  NOTE", lined.next().unwrap_or_default());
    let mut lines = vec![screen.paint(Tone::Head, &head)];
    let mut say = |mark: Mark, text: &str| {
        let text = text.trim_end();
        lines.push(mark.tone().map_or_else(|| text.to_owned(), |tone| screen.paint(tone, text)));
    };
    for (row, cells) in rows.iter().zip(lined) {
        let line = format!("{}{cells}", row.mark.sign());
        let whole = format!("{line}  {}", row.note);
        let fits = |columns| whole.trim_end().chars().count() <= columns;
        if row.note.is_empty() || screen.columns.is_none_or(fits) {
            say(row.mark, &whole);
        } else {
            say(row.mark, &line);
            let note = (!row.is_told).then(|| screen.wrapped("      ", &row.note));
            for line in note.into_iter().flatten() {
                say(row.mark, &line);
            }
        }
        for (mark, text) in &row.below {
            if detail == Detail::Problems && matches!(mark, Mark::Fine | Mark::Aside) {
                continue;
            }
            for line in screen.wrapped(&format!("{}    ", mark.sign()), text) {
                say(*mark, &line);
            }
        }
    }
    let mut left_out = Vec::new();
    if in_sum {
        let pkeys: BTreeSet<String> = all.iter().map(|child| pkey(child)).collect();
        let pkeys = pkeys.into_iter().collect::<Vec<_>>().join(", ");
        let of_all = if up == all.len() { String::new() } else { format!(" of {}", all.len()) };
        left_out.push(format!("{up}{of_all} P_Key children up ({pkeys})"));
    }
    left_out.extend((hides && hidden > 0).then(|| counted(hidden, "unexpected port")));
    (lines, left_out)
}

fn dash() -> String {
    "-".to_owned()
}

/// What is expected and shows nothing of itself.
fn absent(status: &Status) -> impl Iterator<Item = Row> {
    status.absent.iter().map(|absent| {
        let cell = || absent.expected.clone();
        let cells = match absent.expected.parse::<RdmaName>() {
            Ok(_) => [cell(), dash(), dash(), Rung::Pci.lacking().to_owned(), dash(), dash()],
            Err(_) => [dash(), cell(), dash(), Rung::Pci.lacking().to_owned(), dash(), dash()],
        };
        // What is expected of it is said above.
        let mark = if absent.optional { Mark::Look } else { Mark::Wrong };
        Row { mark, cells, note: String::new(), is_told: false, below: Vec::new(), is_aside: false }
    })
}

/// Where they are told `in_sum`, P_Key children that are up have no line.
fn rows(hca: &Hca, status: &Status, in_sum: bool) -> Vec<Row> {
    let findings = &status.judgement.findings;
    let mut rows: Vec<Row> =
        hca.ports.iter().map(|port| port_row(hca, port, status, in_sum)).collect();
    if rows.is_empty() {
        let name = hca.rdma.as_ref().map_or_else(dash, ToString::to_string);
        // Its ports are not shown.
        let has_device = hca.rdma.is_some();
        let state = match (&hca.left_out, hca.ladder.missing) {
            (Some(_), _) => hca.driver.clone().unwrap_or_else(|| "no driver".to_owned()),
            (None, Some(_)) if has_device => "unknown".to_owned(),
            (None, Some(rung)) => rung.lacking().to_owned(),
            (None, None) => dash(),
        };
        let cells = [name, hca.pci.to_string(), dash(), state, dash(), dash()];
        let mark = match judged(hca.role, false) {
            Mark::Wrong if has_device => Mark::Look,
            mark => mark,
        };
        let is_aside = is_aside(hca.role);
        let note = reason(hca, hca.role, &status.judgement.findings, Some(&hca.pci.into()));
        rows.push(Row { mark, cells, note, is_told: false, below: Vec::new(), is_aside });
    }
    if let Some(last) = rows.last_mut() {
        last.below.extend(vfs(hca, findings));
    }
    rows
}

const fn is_aside(role: Role) -> bool {
    matches!(role, Role::Unexpected | Role::Ignored)
}

/// Why it is aside, for one that is. What is found of `object` has said that it is optional.
fn reason(hca: &Hca, role: Role, findings: &[Finding], object: Option<&Object>) -> String {
    match role {
        Role::Expected => String::new(),
        Role::Optional if findings.iter().any(|found| found.objects.first() == object) => {
            String::new()
        }
        Role::Optional => "optional".to_owned(),
        Role::Unexpected => "not expected".to_owned(),
        Role::Ignored => hca.left_out.as_ref().map(NotExpected::short).unwrap_or_default(),
    }
}

/// How much a port of this role matters that is good or not.
const fn judged(role: Role, good: bool) -> Mark {
    match (role, good) {
        (Role::Expected | Role::Optional, true) => Mark::Fine,
        (Role::Expected, false) => Mark::Wrong,
        (Role::Optional, false) => Mark::Look,
        (Role::Unexpected | Role::Ignored, _) => Mark::Aside,
    }
}

fn port_row(hca: &Hca, port: &PortStatus, status: &Status, in_sum: bool) -> Row {
    let link = &port.link;
    let name = hca.name(port).unwrap_or_else(dash);
    let netdev = port.netdev.as_ref().map_or_else(dash, ToString::to_string);
    let is_ethernet =
        port.link_layer == LinkLayer::Ethernet && !port.is_of_other_type && !port.is_roce;
    let has_link = link.physical == Some(PhysicalState::LinkUp);
    // What boot waits for is judged; that the fabric uses the port comes after it.
    let reached_its_goal = port.ladder.missing.is_none_or(|rung| rung >= Rung::Link);
    let (findings, label) = (&status.judgement.findings, hca.label(port));
    let (state, lack) = match port.ladder.missing {
        Some(_) if port.is_roce && is_told(findings, Code::PortNotJudged, label.as_ref()) => {
            ("unknown".to_owned(), String::new())
        }
        _ if is_ethernet => ("Ethernet".to_owned(), String::new()),
        _ if port.is_of_other_type && port.is_roce => {
            ("InfiniBand".to_owned(), "Ethernet expected".to_owned())
        }
        _ if port.is_of_other_type => ("Ethernet".to_owned(), "InfiniBand expected".to_owned()),
        Some(rung) if port.is_roce => (rung.lacking().to_owned(), String::new()),
        Some(rung) if rung < Rung::Link && link.is_active() => {
            ("active".to_owned(), rung.lacking().to_owned())
        }
        Some(rung) if rung < Rung::Link => {
            (format!("{}, {}", rung.lacking(), not_active(link).0), String::new())
        }
        Some(_) => not_active(link),
        None => ("active".to_owned(), netdev_lack(port).to_owned()),
    };
    let lid = link.lid.filter(|_| !is_ethernet);
    let rate = link.rate.as_ref().filter(|_| has_link).map_or_else(dash, short_rate);
    let cells = [
        name,
        hca.pci.to_string(),
        netdev,
        state,
        lid.map_or_else(dash, |lid| lid.to_string()),
        rate,
    ];
    let is_aside = is_aside(port.role);
    let has = |code| is_told(findings, code, label.as_ref());
    let is_told = has(Code::PortNotReady);
    // Nobody counts on what is aside.
    let lack = Some(lack).filter(|_| !is_aside && !has(Code::PortNotActive));
    let is_degraded = !port.degraded.is_empty();
    let less = less_than_siblings(hca, port, status).filter(|_| !is_aside && !is_degraded);
    let reason = reason(hca, port.role, findings, label.as_ref());
    let mut notes = vec![reason];
    notes.extend(lack.into_iter().chain(less.clone()));
    notes.retain(|note| !note.is_empty());
    // A port that is active, and nothing above says what it lacks.
    let netdev = port.netdev.as_ref().map(Object::from);
    let is_its = |f: &&Finding| {
        f.objects.iter().any(|o| Some(o) == label.as_ref() || Some(o) == netdev.as_ref())
    };
    let wrong = findings.iter().filter(|f| f.severity != Severity::Info).find(is_its);
    let code = wrong.filter(|_| notes.is_empty() && port.ladder.missing.is_none() && !is_degraded);
    notes.extend(code.map(|wrong| wrong.code.name().to_owned()));
    let note = notes.join(", ");
    let mark = judged(port.role, port.ladder.missing.is_none());
    let is_error = wrong.is_some_and(|finding| finding.severity == Severity::Error);
    let mark = match (mark, reached_its_goal) {
        _ if is_ethernet => Mark::Aside,
        (Mark::Wrong, true) if !port.is_of_other_type && !is_error => Mark::Look,
        // Meant to be dark, perhaps.
        (Mark::Look, true) if port.role == Role::Optional => Mark::Aside,
        (Mark::Fine, _) if is_degraded || less.is_some() || wrong.is_some() => Mark::Look,
        (mark, _) => mark,
    };
    // That a child has no carrier follows from its port.
    let is_shown = |child: &&Child| {
        !in_sum || !is_up(child) && (child.state.admin_up != Some(true) || link.is_active())
    };
    let told = port.children.iter().filter(is_shown);
    Row { mark, cells, note, is_told, below: children(told).into_iter().collect(), is_aside }
}

/// What its link has less than those of most ports of such adapters: lanes, or else rate.
fn less_than_siblings(hca: &Hca, port: &PortStatus, status: &Status) -> Option<String> {
    let is_alike = |other: &&Hca| other.id == hca.id && other.card.board == hca.card.board;
    let siblings = status.hcas.iter().filter(is_alike).flat_map(|hca| &hca.ports);
    let used = siblings.filter(|p| p.link_layer == LinkLayer::InfiniBand && p.link.is_active());
    let rates: Vec<&Rate> = used.filter_map(|port| port.link.rate.as_ref()).collect();
    let own = port.link.rate.as_ref().filter(|own| port.link.is_active() && rates.contains(own))?;
    let best = rates.iter().copied().max_by(|a, b| a.gbps.total_cmp(&b.gbps))?;
    let is_usual = rates.iter().filter(|rate| **rate == best).count() * 2 > rates.len();
    match (best.gbps > own.gbps && is_usual, best.width > own.width) {
        (false, _) => None,
        (true, true) => Some(format!("{} of {} lanes", own.width, best.width)),
        (true, false) => Some(format!("{} of {} Gb/s", own.gbps, best.gbps)),
    }
}

/// Its state, and why it is in it, of a port that is not Active.
fn not_active(link: &Link) -> (String, String) {
    use PhysicalState::{Disabled, LinkUp, Polling};
    let (state, lack) = match (link.physical, link.state) {
        (None, _) | (_, None) => ("unknown", "its state is not reported"),
        (Some(Polling), _) => ("polling", "no cable, or the other end is down"),
        (Some(Disabled), _) => ("disabled", "the port is disabled"),
        (Some(LinkUp), Some(LinkState::Init)) => ("initializing", "no subnet manager"),
        (Some(LinkUp), Some(LinkState::Active)) => ("active", "no LID"),
        (Some(LinkUp), Some(state)) => return (state.word().to_lowercase(), String::new()),
        (Some(physical), _) => return (physical.word().to_lowercase(), "no link".to_owned()),
    };
    (state.to_owned(), lack.to_owned())
}

/// What the netdev of an active port lacks.
fn netdev_lack(port: &PortStatus) -> &'static str {
    match &port.netdev_state {
        Some(netdev) if netdev.admin_up == Some(false) => "netdev down",
        Some(netdev) if netdev.carrier == Some(false) => "no carrier",
        _ => "",
    }
}

/// `400 NDR`; another width than 4X is told.
fn short_rate(rate: &Rate) -> String {
    let speed = rate.speed.to_uppercase();
    match rate.width {
        4 => format!("{} {speed}", rate.gbps),
        width => format!("{} {width}X {speed}", rate.gbps),
    }
}

fn is_up(child: &Child) -> bool {
    child.state.admin_up == Some(true) && child.state.carrier != Some(false)
}

fn pkey(child: &Child) -> String {
    child.pkey.map_or_else(|| "?".to_owned(), |pkey| pkey.to_string())
}

/// These P_Key children, in one line.
fn children<'a>(of: impl Iterator<Item = &'a Child>) -> Option<(Mark, String)> {
    let mut mark = Mark::Fine;
    let told = of.map(|child| {
        let state = match (child.state.admin_up, child.state.carrier) {
            (Some(false), _) => "down",
            (None, _) => "unknown",
            (Some(true), Some(false)) => "up, no carrier",
            (Some(true), _) => "up",
        };
        if [child.state.admin_up, child.state.carrier].contains(&Some(false)) {
            mark = Mark::Look;
        }
        format!("{} ({}) {state}", child.name, pkey(child))
    });
    let told = told.collect::<Vec<_>>().join("; ");
    (!told.is_empty()).then(|| (mark, format!("P_Key children: {told}")))
}

/// Its VFs and those that are planned: those that are alike in one line.
fn vfs(hca: &Hca, findings: &[Finding]) -> Vec<(Mark, String)> {
    let mut rows = Vec::new();
    for ((mark, text), alike) in grouped(&hca.vfs, |seen| vf_state(hca, seen, findings, true)) {
        let text = match alike.as_slice() {
            [only] => vf_state(hca, only, findings, false).1,
            _ => text,
        };
        rows.push((mark, format!("{}  {text}", vf_ranges(alike.iter().map(|seen| seen.index)))));
    }
    let is_absent = |vf: &&PlannedVf| !hca.vfs.iter().any(|seen| seen.index == vf.index);
    let text = |vf: &&PlannedVf| match vf.action {
        Action::Create => "to be created",
        Action::Defer => "planned, but absent: VFs are in use",
        _ => "planned, but absent",
    };
    let all = hca.planned.iter().flat_map(|pf| &pf.vfs);
    for (text, alike) in grouped(all.filter(is_absent), text) {
        rows.push((Mark::Wrong, format!("{}  {text}", vf_ranges(alike.iter().map(|vf| vf.index)))));
    }
    rows
}

/// How a VF is, in words that are true `of_several` where that is asked for.
fn vf_state(hca: &Hca, vf: &VfStatus, findings: &[Finding], of_several: bool) -> (Mark, String) {
    let has_errors = hca.planned.as_ref().is_some_and(|pf| !pf.errors.is_empty());
    let mut all = hca.planned.iter().flat_map(|pf| &pf.vfs);
    let planned = all.find(|planned| planned.index == vf.index);
    let (mark, deviation) = match planned.map(|planned| planned.action) {
        Some(Action::Keep) => (Mark::Fine, "as planned"),
        Some(Action::Create) => (Mark::Wrong, "to be recreated"),
        Some(Action::Change | Action::Refuse) => (Mark::Wrong, ""),
        Some(Action::Remove) => (Mark::Wrong, "to be removed"),
        Some(Action::Defer) => (Mark::Look, "; in use"),
        Some(Action::Block) => (Mark::Wrong, "no change is possible at its PF"),
        None if has_errors => (Mark::Wrong, "its plan has an error"),
        None if vf.port_guid.is_some_and(Guid::is_zero) => (Mark::Look, "port GUID 0"),
        None => (Mark::Fine, "no plan"),
    };
    let text = match planned {
        Some(
            planned @ PlannedVf { action: Action::Change | Action::Refuse | Action::Defer, .. },
        ) => planned.deviations(vf, of_several) + deviation,
        _ => {
            let driver = vf.driver.as_deref().unwrap_or("no driver");
            let policy = vf.policy.map_or("?", Words::typed);
            format!("{driver}, link state {policy}, {deviation}")
        }
    };
    let dark = dark_ports(vf, findings);
    let mark = if mark == Mark::Fine && !dark.is_empty() { Mark::Look } else { mark };
    let elsewhere = vf.other_namespace.map(elsewhere).unwrap_or_default();
    (mark, format!("{text}{elsewhere}{dark}"))
}

fn is_told(findings: &[Finding], code: Code, object: Option<&Object>) -> bool {
    findings.iter().any(|finding| finding.code == code && finding.objects.first() == object)
}

/// The ports of a VF of which it is found that they are not active.
fn dark_ports(vf: &VfStatus, findings: &[Finding]) -> String {
    let is_dark = |port: &&VfPortStatus| {
        is_told(findings, Code::VfPortNotActive, vf.port_label(port).as_ref())
    };
    let state = |port: &VfPortStatus| {
        let state = port.link.state.map_or("?", LinkState::word).to_lowercase();
        format!(", port {} {state}", port.port)
    };
    vf.ports.iter().filter(is_dark).map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_short_and_a_narrow_link_is_told() {
        for (rate, short) in [
            ("400 Gb/sec (4X NDR)", "400 NDR"),
            ("100 Gb/sec (2X HDR)", "100 2X HDR"),
            ("2.5 Gb/sec (1X SDR)", "2.5 1X SDR"),
        ] {
            assert_eq!(short_rate(&rate.parse().expect("a rate")), short);
        }
    }
}
