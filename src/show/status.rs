//! The text of `ibprov status`.

mod table;

use std::time::Duration;

use self::table::table;
use super::advice;
use super::screen::{self, RUN, Screen, Tone};
use crate::model::Away;
use crate::model::common::{Finding, Severity, Verdict, listed};
use crate::model::duration::duration;
use crate::model::hardware::{Gid, Link, NetDevState, PKeyEntry, VfPortStatus, VfStatus};
use crate::model::node::Judgement;
use crate::model::rxe::RxeState;
use crate::model::status::{
    Hca, History, Ladder, LinkChange, ModuleNow, Owner, PortStatus, SoftRoce, Status, Told,
};
use crate::names::{
    Guid, LinkLayer, LinkState, ModuleState, PciAddress, PhysicalState, RdmaName, Words, few,
    harmless,
};

/// How much of it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What is wrong.
    Problems,
    /// A line for each port that is expected.
    Ports,
    /// All that is known of what was named.
    Named,
    /// All that is known.
    All,
}

/// What `ibprov status` shows people: whether the node is as it is meant to be and what
/// is not, then a line for each port; with more `detail` all that is known of each. Where
/// that is higher than the screen, each finding has its first step only, nothing is said of
/// ibprov itself that is as usual, and if that is not enough the verdict stands at the end again.
pub fn text(status: &Status, screen: Screen, detail: Detail) -> String {
    let is_higher = |lines: &[String]| screen.rows.is_some_and(|rows| lines.len() >= rows);
    let mut lines = status.lines(screen, detail, &mut Steps { most: usize::MAX, left_out: 0 });
    let can_be_shorter = !screen.verbose && matches!(detail, Detail::Problems | Detail::Ports);
    if is_higher(&lines) && can_be_shorter {
        lines = status.lines(screen, detail, &mut Steps { most: 1, left_out: 0 });
    }
    if is_higher(&lines) {
        lines.extend(status.headline(screen));
    }
    screen::text(lines)
}

/// So many steps are shown of each finding, and so many were left out.
struct Steps {
    most: usize,
    left_out: usize,
}

impl Steps {
    fn of(&mut self, finding: &Finding, indent: &str, screen: Screen) -> Vec<String> {
        let indent = format!("{indent}  ");
        let (shown, left_out) = finding.advice.split_at(self.most.min(finding.advice.len()));
        self.left_out += left_out.len();
        let mut lines = advice::lines(shown, &indent, screen);
        lines.extend(advice::explained(finding.code, &indent, screen));
        lines
    }
}

/// The judgement, with ports called as in the table.
pub fn with_short_names(status: &Status) -> Judgement {
    let mut judgement = status.judgement.clone();
    for hca in &status.hcas {
        for port in &hca.ports {
            let (Some(label), Some(name)) = (hca.label(port), hca.name(port)) else { continue };
            let objects = judgement.findings.iter_mut().flat_map(|f| &mut f.objects);
            objects.filter(|object| **object == label).for_each(|o| *o = name.as_str().into());
        }
    }
    judgement
}

impl Status {
    fn headline(&self, screen: Screen) -> Vec<String> {
        let tone = match self.judgement.verdict {
            Verdict::Ready | Verdict::NothingExpected => Tone::Good,
            Verdict::Exceptions => Tone::Warning,
            _ => Tone::Bad,
        };
        screen.painted(tone, "", &self.judgement.headline())
    }

    /// The findings, those of which `is_shown`. What is to be done about several that follow
    /// one another stands below the last of them.
    fn findings(
        &self,
        screen: Screen,
        indent: &str,
        steps: &mut Steps,
        is_shown: fn(Severity) -> bool,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        let mut grouped = Finding::grouped(&with_short_names(self).findings);
        grouped.retain(|finding| is_shown(finding.severity));
        let mut grouped = grouped.iter().peekable();
        while let Some(finding) = grouped.next() {
            let tone = match finding.severity {
                Severity::Error => Tone::Bad,
                Severity::Warning | Severity::Info => Tone::Warning,
            };
            let names: Vec<String> = finding.objects.iter().map(ToString::to_string).collect();
            let subject = format!("{}{}", finding.noun(), few(&names));
            let text = format!("{}: {subject}: {}", finding.severity, finding.message);
            lines.extend(screen.painted(tone, indent, &text));
            let is_told_below = |next: &&Finding| {
                next.advice == finding.advice && (!screen.verbose || next.code == finding.code)
            };
            if !grouped.peek().is_some_and(is_told_below) {
                lines.extend(steps.of(finding, indent, screen));
            }
        }
        lines
    }

    fn lines(&self, screen: Screen, detail: Detail, steps: &mut Steps) -> Vec<String> {
        let mut lines = self.headline(screen);
        lines.extend(self.findings(screen, "  ", steps, |severity| severity != Severity::Info));
        let has_room = steps.most == usize::MAX;
        if matches!(detail, Detail::Ports | Detail::All) && (has_room || !self.is_usual()) {
            lines.extend(screen.wrapped("", &self.head()));
        }
        for finding in &self.units.findings {
            let text = format!("{}: {}", finding.code.name(), finding.message);
            lines.extend(screen.wrapped("  ", &text));
            lines.extend(steps.of(finding, "  ", screen));
        }
        match self.udev.running {
            Some(true) => {}
            Some(false) => lines.push("udev: systemd-udevd is not running".to_owned()),
            None => lines.push("udev: not known: this copy has no /run/udev/control".to_owned()),
        }
        let (table, left_out) = table(self, screen, detail);
        if !table.is_empty() {
            lines.push(String::new());
            lines.extend(table);
        }
        if detail == Detail::Problems {
            lines.extend(advice::left_out(left_out, steps.left_out, screen));
            return lines;
        }
        lines.extend(self.findings(screen, "", steps, |severity| severity == Severity::Info));
        if detail == Detail::All {
            lines.push(String::new());
            lines.push(format!("kernel {}", self.kernel));
            lines.push(self.modules());
        }
        if matches!(detail, Detail::Named | Detail::All) {
            for hca in &self.hcas {
                lines.push(String::new());
                let text = screen.page(&hca.lines().join("\n"));
                lines.extend(text.lines().map(str::to_owned));
            }
        } else {
            lines.extend(self.gids());
        }
        lines.extend(self.soft_roce_lines());
        if !self.subnet_managers.is_empty() {
            lines.push(String::new());
        }
        lines.extend(self.subnet_managers.iter().flat_map(|manager| {
            let unit = manager.unit.as_ref().map(|unit| format!(" ('{unit}')"));
            let (object, priority) = (manager.object(), manager.priority);
            let text = format!(
                "subnet manager: {object}, priority {priority}: {}{}",
                manager.message(),
                unit.unwrap_or_default()
            );
            screen.wrapped("", &text)
        }));
        let is_told = |name: &&RdmaName| self.soft_roce.iter().any(|soft| soft.rxe.name == **name);
        let others = self.software_devices.iter().filter(|name| !is_told(name));
        let others: Vec<&RdmaName> = others.collect();
        if !others.is_empty() {
            lines.extend([String::new(), format!("other RDMA devices: {}", listed(&others))]);
        }
        for problem in &self.problems {
            lines.extend(screen.wrapped("note: ", problem));
        }
        lines.extend(advice::left_out(left_out, steps.left_out, screen));
        lines
    }

    fn modules(&self) -> String {
        let modules = self.modules.iter().map(|ModuleNow { name, state }| match state {
            ModuleState::Loaded => name.to_string(),
            ModuleState::Loading => format!("{name} (loading)"),
            ModuleState::Absent => format!("{name} (NOT LOADED)"),
        });
        format!("modules: {}", modules.collect::<Vec<_>>().join(", "))
    }

    /// The GID tables, where they were asked for.
    fn gids(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for hca in &self.hcas {
            for port in &hca.ports {
                let Some(gids) = port.gids.as_ref().filter(|gids| !gids.is_empty()) else {
                    continue;
                };
                let name =
                    hca.rdma.as_ref().map_or_else(|| hca.pci.to_string(), ToString::to_string);
                lines.extend([String::new(), format!("GIDs of {name}/{}", port.port)]);
                lines.extend(gids.iter().map(|gid| format!("  {}", gid_line(gid))));
            }
        }
        lines
    }

    /// The soft RoCE devices that are there; what is wrong with others stands above.
    fn soft_roce_lines(&self) -> Vec<String> {
        let is_there = |soft: &&SoftRoce| {
            matches!(soft.rxe.state, RxeState::Present | RxeState::NotConfigured)
        };
        let mut lines = Vec::new();
        for soft in self.soft_roce.iter().filter(is_there) {
            let how = match (&soft.rxe.state, &soft.rxe.reason) {
                (RxeState::NotConfigured, _) => "not in the configuration",
                (_, Some(_)) => "not ready",
                (_, None) => "ready",
            };
            lines.push(format!("soft RoCE: {}: {how}", soft.rxe.object()));
            let gids = soft.gids.iter().flatten();
            lines.extend(gids.map(|gid| format!("  {}", gid_line(gid))));
        }
        if !lines.is_empty() {
            lines.insert(0, String::new());
        }
        lines
    }

    /// Nothing of ibprov itself is to be known.
    fn is_usual(&self) -> bool {
        let is_good = self.last_boot.as_ref().is_some_and(|boot| boot.exit_code == 0);
        self.units.enabled && self.units.openibd == Owner::Ibprov && is_good
    }

    fn head(&self) -> String {
        let enabled = if self.units.enabled { "enabled" } else { "NOT enabled" };
        let owner = match self.units.openibd {
            Owner::Ibprov => "ibprov's",
            Owner::Vendor => "the vendor's",
            Owner::Masked => "masked",
            Owner::Nobody => "not installed",
        };
        let last = self.last_boot.as_ref().map_or_else(
            || "boot has not run".to_owned(),
            |b| format!("last boot: {}, exit {}", b.verdict.word(), b.exit_code),
        );
        format!("ibprov: {enabled}; {last}; openibd.service: {owner}")
    }
}

impl Hca {
    fn lines(&self) -> Vec<String> {
        let name = self.rdma.as_ref().map_or("no RDMA device", RdmaName::as_str);
        let mut head = format!("{name}  {}  {}", self.pci, self.id);
        let mut add = |what: &str, value: Option<String>| {
            if let Some(value) = value {
                head.push_str(&format!("  {what}{value}"));
            }
        };
        add("", self.card.hca_type.as_deref().map(harmless));
        add("firmware ", self.card.firmware.as_deref().map(harmless));
        add("node GUID ", self.node_guid.map(|g| g.to_string()));
        add("driver ", self.driver.clone());
        let pcie = self.pcie.and_then(|link| Some(format!("{} {}", link.width?, link.speed?)));
        add("PCIe ", pcie);
        add("NUMA node ", self.card.numa_node.map(|node| node.to_string()));
        add("PCIe switch ", self.card.pcie_switch.map(|pci| pci.to_string()));
        let mut lines = vec![head];
        if let Some(description) = self.node_description.as_ref().filter(|d| !d.text.is_empty()) {
            lines.push(format!("  node description {:?}", description.text));
        }
        if let Some(reason) = &self.left_out {
            lines.push(format!("  not expected: {reason}"));
        }
        if self.ports.is_empty() && self.left_out.is_none() {
            lines.push(format!("  {}", self.ladder.text()));
        }
        for port in &self.ports {
            lines.extend(port.lines());
        }
        lines.extend(self.vfs.iter().map(VfStatus::line));
        lines.extend(self.history.iter().flat_map(|history| history.lines(self.pci)));
        lines
    }
}

impl History {
    fn lines(&self, pci: PciAddress) -> Vec<String> {
        let told = |told: &Told| {
            format!("    {} ago: {}", duration(Duration::from_micros(told.ago_usec)), told.text)
        };
        let head = match self.cut_off {
            true => "  kernel log, cut off; the journal may have what was before:".to_owned(),
            false if self.of > self.last.len() => {
                format!("  kernel log, the last of {} lines:", self.of)
            }
            false => "  kernel log:".to_owned(),
        };
        let journal = || format!("    {RUN}journalctl -k -b _KERNEL_DEVICE=+pci:{pci}");
        let journal = self.cut_off.then(journal);
        [head].into_iter().chain(journal).chain(self.last.iter().map(told)).collect()
    }
}

impl LinkChange {
    fn line(&self) -> String {
        let before = self.before.iter().map(|before| format!(" ({before} before)"));
        format!("    link {} for {}", self.state, duration(Duration::from_micros(self.ago_usec)))
            + &before.collect::<String>()
    }
}

impl PortStatus {
    /// It is an InfiniBand port, or somebody counts on it.
    fn counts(&self) -> bool {
        self.link_layer != LinkLayer::Ethernet || self.is_of_other_type || self.is_roce
    }

    fn lines(&self) -> Vec<String> {
        let unknown = || "?".to_owned();
        let link = &self.link;
        let layer = match self.link_layer {
            LinkLayer::InfiniBand => "InfiniBand",
            LinkLayer::Ethernet => "Ethernet",
            LinkLayer::Unknown => "link layer unknown",
        };
        let mut head = format!(
            "  port {}  {layer}  {}  {}  {}",
            self.port,
            link.state.map_or("?", LinkState::word),
            link.physical.map_or("?", PhysicalState::word),
            link.rate.as_ref().map_or_else(unknown, ToString::to_string),
        );
        if self.link_layer == LinkLayer::InfiniBand {
            let lid = |lid: Option<u32>| lid.map_or_else(|| "-".to_owned(), |l| l.to_string());
            head.push_str(&format!("  LID {}  SM LID {}", lid(link.lid), lid(link.sm_lid)));
        }
        if let Some(guid) = self.guid {
            head.push_str(&format!("  port GUID {guid}"));
        }
        if let Some(downed) = link.link_downed.filter(|downed| *downed > 0) {
            head.push_str(&format!("  link_downed {downed}"));
        }
        let mut lines = vec![head];
        lines.extend(self.link_change.iter().map(LinkChange::line));
        if let (Some(netdev), Some(state)) = (&self.netdev, &self.netdev_state) {
            let mtu = state.mtu.map_or_else(unknown, |m| m.to_string());
            let addresses = if self.addresses.is_empty() {
                "no address".to_owned()
            } else {
                self.addresses.join(" ")
            };
            // Only IPoIB has a mode.
            let mode = match self.link_layer {
                LinkLayer::Ethernet => String::new(),
                _ => format!("{}  ", state.mode.as_deref().unwrap_or("datagram")),
            };
            lines.push(format!("    {netdev}  {mode}mtu {mtu}  {}  {addresses}", up(state)));
        }
        if self.counts() {
            lines.push(format!("    {}", self.ladder.text()));
        }
        for child in &self.children {
            let pkey = child.pkey.map_or_else(unknown, |pkey| pkey.to_string());
            let mtu = child.state.mtu.map_or_else(unknown, |m| m.to_string());
            lines.push(format!(
                "    {}  P_Key {pkey}  {}  mtu {mtu}  {}",
                child.name,
                child.state.mode.clone().unwrap_or_else(|| "datagram".to_owned()),
                up(&child.state)
            ));
        }
        if let Some(pkeys) = &self.pkeys {
            let each = |entry: &PKeyEntry| format!("{} {}", entry.pkey, entry.membership);
            let each: Vec<String> = pkeys.iter().map(each).collect();
            let all = if each.is_empty() { "none".to_owned() } else { each.join(", ") };
            lines.push(format!("    P_Keys {all}"));
        }
        lines.extend(self.gids.iter().flatten().map(|gid| format!("    {}", gid_line(gid))));
        lines
    }
}

fn gid_line(gid: &Gid) -> String {
    let ipv4 = gid.ipv4.map(|a| format!("  {a}")).unwrap_or_default();
    let netdev = gid.netdev.as_ref().map(|n| format!("  {n}")).unwrap_or_default();
    format!("GID {:>3}  {:10}  {}{ipv4}{netdev}", gid.index, gid.kind.word(), gid.gid)
}

fn up(state: &NetDevState) -> String {
    let carrier = match state.carrier {
        Some(true) => "carrier",
        Some(false) => "no carrier",
        None => "carrier unknown",
    };
    let up = match state.admin_up {
        Some(true) => "up",
        Some(false) => "down",
        None => "up or down is unknown",
    };
    format!("{up}, {carrier}")
}

/// The words behind a VF of which something is not to be seen here.
fn elsewhere(what: Away) -> String {
    format!(", its {what} not in this network namespace")
}

impl VfStatus {
    fn line(&self) -> String {
        let text = |guid: Option<Guid>| guid.map_or_else(|| "?".to_owned(), |g| g.to_string());
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        format!(
            "  VF {:>3}  {}  {}  {}  {}  node GUID {}  port GUID {}  link state {}{}",
            self.index,
            self.pci,
            self.driver.clone().unwrap_or_else(|| "no driver".to_owned()),
            or_none(self.rdma.as_ref().map(ToString::to_string)),
            or_none(self.netdev.as_ref().map(ToString::to_string)),
            text(self.node_guid),
            text(self.port_guid),
            self.policy.map_or("?", Words::typed),
            self.other_namespace.map(elsewhere).unwrap_or_default(),
        ) + &self.ports.iter().map(VfPortStatus::text).collect::<String>()
    }
}

impl VfPortStatus {
    fn text(&self) -> String {
        let Link { state, physical, lid, .. } = &self.link;
        format!(
            "  port {} {} {} LID {}",
            self.port,
            state.map_or("?", LinkState::word),
            physical.map_or("?", PhysicalState::word),
            lid.map_or_else(|| "-".to_owned(), |lid| lid.to_string()),
        )
    }
}

impl Ladder {
    fn text(&self) -> String {
        let reached: Vec<&str> = self.reached.iter().map(|r| r.word()).collect();
        let mut text = reached.join(" > ");
        if let Some(missing) = self.missing {
            text.push_str(&format!(" | missing {missing}"));
            if let Some(why) = self.why.as_ref().filter(|w| !w.is_empty()) {
                text.push_str(&format!(": {why}"));
            }
        }
        text
    }
}
