//! The state of a node as metrics: the text format of Prometheus, for the textfile
//! collector of node_exporter.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

use strum::VariantArray as _;

use crate::model::boot::{BootReport, PortReport};
use crate::model::common::{Finding, SCHEMA, Verdict};
use crate::model::guests::{GuestsReport, PhaseWord};
use crate::model::status::{Hca, Role, Status};
use crate::names::{LinkLayer, Moment, PciAddress, Rung, mark};

/// What the configuration of a node comes to, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConfigurationMistakes {
    /// Errors, because of which the defaults hold.
    pub errors: usize,
    /// Settings that will not last, and files that were not read.
    pub warnings: usize,
}

/// The metrics of the last boot alone: they hold until the next boot.
pub fn of_boot(boot: &BootReport) -> String {
    let mut metrics = Metrics::default();
    metrics.program(&boot.kernel);
    metrics.boot(boot);
    metrics.text
}

/// The metrics of the node as it is, and of its last boot and its guests as far as there are
/// reports of them. `guests`: the configured ones, and the report.
pub fn of_node(
    status: &Status,
    mistakes: ConfigurationMistakes,
    guests: (usize, Option<&GuestsReport>),
    boot: Option<&BootReport>,
) -> String {
    let mut metrics = Metrics::default();
    metrics.program(&status.kernel);
    metrics.node(status, mistakes);
    metrics.ports(status);
    metrics.vfs(status);
    metrics.subnet_managers(status);
    metrics.guests(guests);
    if let Some(boot) = boot {
        metrics.boot(boot);
    }
    metrics.text
}

/// The verdicts that `status` has of a node.
const OF_NODE: [Verdict; 5] = [
    Verdict::Ready,
    Verdict::NothingExpected,
    Verdict::Exceptions,
    Verdict::NotReady,
    Verdict::Unknown,
];

/// The verdicts that a boot has.
const OF_BOOT: [Verdict; 5] = [
    Verdict::Ready,
    Verdict::NothingExpected,
    Verdict::Exceptions,
    Verdict::NotReady,
    Verdict::Interrupted,
];

/// The number of a state that a port has reached: 1 is the first, 0 is none.
fn number(reached: Option<Rung>) -> usize {
    reached.map_or(0, |reached| Rung::ALL.iter().filter(|rung| **rung <= reached).count())
}

/// Which numbers [`number`] gives.
fn numbers() -> String {
    let words = (1..).zip(Rung::ALL).map(|(number, rung)| format!("{number} {rung}"));
    words.collect::<Vec<_>>().join(", ")
}

/// Metrics of one name: the values by their labels. Labels that are empty are left out.
#[derive(Default)]
struct Family(BTreeMap<String, String>);

impl Family {
    fn of(value: impl fmt::Display + Copy) -> Self {
        let mut family = Self::default();
        family.add(&[], value);
        family
    }

    /// One metric; of two with the same labels, the first counts.
    fn add(&mut self, labels: &[(&str, &str)], value: impl fmt::Display + Copy) {
        let given = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels: Vec<String> =
            given.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.0.entry(labels).or_insert_with(|| value.to_string());
    }
}

/// A label's value as the format has it.
fn escaped(value: &str) -> String {
    value.chars().map(mark).fold(String::new(), |mut text, c| {
        if matches!(c, '\\' | '"') {
            text.push('\\');
        }
        text.push(c);
        text
    })
}

/// A time, to the microsecond.
#[derive(Clone, Copy)]
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0.as_secs(), self.0.subsec_micros())
    }
}

/// The text, while it grows.
#[derive(Default)]
struct Metrics {
    text: String,
}

impl Metrics {
    fn family(&mut self, name: &str, help: &str, family: &Family) {
        if family.0.is_empty() {
            return;
        }
        // Writing to a String cannot fail.
        let _ok = write!(self.text, "# HELP ibprov_{name} {help}\n# TYPE ibprov_{name} gauge\n");
        for (labels, value) in &family.0 {
            let _ok = writeln!(self.text, "ibprov_{name}{labels} {value}");
        }
    }

    fn program(&mut self, kernel: &str) {
        let mut info = Family::default();
        info.add(&[("version", env!("CARGO_PKG_VERSION")), ("kernel", kernel)], 1);
        self.family("info", "The version of ibprov and of the kernel; the value is 1.", &info);
        let help = "The version of the format of ibprov's reports.";
        self.family("schema_version", help, &Family::of(SCHEMA));
    }

    fn node(&mut self, status: &Status, mistakes: ConfigurationMistakes) {
        let judgement = &status.judgement;
        let help =
            "The exit code of ibprov status: 0 ready, 1 with exceptions, 2 not known, 3 not ready.";
        self.family("node_exit_code", help, &Family::of(judgement.verdict.exit().code()));
        let mut verdicts = Family::default();
        for verdict in OF_NODE {
            let value = u8::from(verdict == judgement.verdict);
            verdicts.add(&[("verdict", verdict.word())], value);
        }
        self.family("node_verdict", "1 for the verdict on the node, 0 for the others.", &verdicts);
        let help = "The findings of ibprov status, by code and severity.";
        self.family("findings", help, &findings(&status.to_report().findings));
        let help = "Errors in the configuration; what they concern is left out.";
        self.family("configuration_errors", help, &Family::of(mistakes.errors));
        let help = "Settings that will not last, and configuration files that were not read.";
        self.family("configuration_warnings", help, &Family::of(mistakes.warnings));
        let enabled = u8::from(status.units.enabled);
        self.family("enabled", "1 if ibprov.service runs at boot.", &Family::of(enabled));
    }

    fn ports(&mut self, status: &Status) {
        let count = status.judgement.ports;
        self.family("ports_expected", "The ports that are expected.", &Family::of(count.of));
        let help = "The expected ports that are ready: boot does not wait for them any more.";
        self.family("ports_ready", help, &Family::of(count.good));
        let help = "The expected ports that the fabric uses.";
        self.family("ports_active", help, &Family::of(count.active));
        let mut states = Family::default();
        for absent in &status.absent {
            let required = required(!absent.optional);
            states.add(&[("expected", &absent.expected), ("required", required)], 0);
        }
        let is_expected = |role| matches!(role, Role::Expected | Role::Optional);
        for hca in &status.hcas {
            let pci = hca.pci.to_string();
            if hca.ports.is_empty() && is_expected(hca.role) {
                let required = required(hca.role == Role::Expected);
                let labels =
                    [("pci", pci.as_str()), ("device", device(hca)), ("required", required)];
                states.add(&labels, number(hca.ladder.highest()));
            }
            let infiniband = |layer| layer != LinkLayer::Ethernet;
            for port in hca.ports.iter().filter(|port| {
                is_expected(port.role) && (infiniband(port.link_layer) || port.is_of_other_type)
            }) {
                let labels = [
                    ("pci", pci.as_str()),
                    ("device", device(hca)),
                    ("port", &port.port.to_string()),
                    ("netdev", port.netdev.as_ref().map_or("", |netdev| netdev.as_str())),
                    ("required", required(port.role == Role::Expected)),
                ];
                // A port that the fabric uses is active, whatever its netdev lacks.
                let active = port.ladder.reached.contains(&Rung::Active).then_some(Rung::Active);
                states.add(&labels, number(active.or(port.ladder.highest())));
            }
        }
        let help = format!("The state of each expected port: 0 absent, {}.", numbers());
        self.family("port_state", &help, &states);
    }

    fn subnet_managers(&mut self, status: &Status) {
        let mut states = Family::default();
        for manager in &status.subnet_managers {
            let guid = manager.port_guid.to_string();
            let labels = [("port_guid", guid.as_str()), ("state", manager.state.into())];
            states.add(&labels, 1);
        }
        let help = "The state of each configured subnet manager; the value is 1.";
        self.family("subnet_manager", help, &states);
    }

    fn vfs(&mut self, status: &Status) {
        let count = status.judgement.vfs;
        self.family("vfs_planned", "The VFs that are planned.", &Family::of(count.of));
        let help = "The planned VFs that are as planned.";
        self.family("vfs_as_planned", help, &Family::of(count.good));
        let (mut planned, mut right) = (Family::default(), Family::default());
        for pf in status.hcas.iter().filter_map(|hca| hca.planned.as_ref()) {
            let name = pf.object().to_string();
            let name = [("pf", name.as_str())];
            planned.add(&name, pf.wanted);
            right.add(&name, pf.count().good);
        }
        self.family("pf_vfs_planned", "The VFs that are planned at each PF.", &planned);
        self.family("pf_vfs_as_planned", "The VFs of each PF that are as planned.", &right);
    }

    fn guests(&mut self, (configured, report): (usize, Option<&GuestsReport>)) {
        let mut guests = Family::default();
        for phase in PhaseWord::VARIANTS {
            let of_report = report.map_or(0, |report| {
                report.guests.iter().filter(|guest| PhaseWord::from(&guest.phase) == *phase).count()
            });
            // Those of which no run has told yet.
            let untold = match (phase, report) {
                (PhaseWord::Idle, None) => configured,
                _ => 0,
            };
            guests.add(&[("phase", phase.into())], of_report + untold);
        }
        self.family("guests", "The number of guests in each state.", &guests);
    }

    fn boot(&mut self, boot: &BootReport) {
        let help = "The exit code of ibprov boot: 0 ready, 1 with exceptions, 3 not ready.";
        self.family("boot_exit_code", help, &Family::of(boot.verdict.exit().code()));
        let mut verdicts = Family::default();
        for verdict in OF_BOOT {
            verdicts.add(&[("verdict", verdict.word())], u8::from(verdict == boot.verdict));
        }
        self.family("boot_verdict", "1 for the verdict on the boot, 0 for the others.", &verdicts);
        let help = "How long ibprov boot took.";
        let took = boot.finished_usec.since(boot.started_usec);
        self.family("boot_duration_seconds", help, &Family::of(Seconds(took)));
        let waited: Vec<&PortReport> =
            boot.ports.iter().filter(|port| !port.progress.is_ethernet()).collect();
        let help = "The ports that the boot waited for.";
        self.family("boot_ports_expected", help, &Family::of(waited.len()));
        let ready = waited.iter().filter(|port| port.ready).count();
        let help = "The ports that were ready at the end of the boot.";
        self.family("boot_ports_ready", help, &Family::of(ready));
        let mut reached = Family::default();
        for (at, climbed) in
            boot.timeline.iter().filter_map(|moment| Some((moment.usec, moment.climbed.as_ref()?)))
        {
            let of_it = |port: &&PortReport| port.progress.expected == climbed.expected;
            let own = boot.ports.iter().filter(of_it);
            let port = own.clone().find(|port| port.progress.port == climbed.port);
            let progress = port.or_else(|| own.clone().next()).map(|port| &port.progress);
            let pci = progress.and_then(|p| p.pci).as_ref().map(PciAddress::to_string);
            let device = progress.and_then(|p| p.rdma.as_ref()).map(ToString::to_string);
            let number = climbed.port.map(|number| number.to_string()).unwrap_or_default();
            let expected = climbed.expected.to_string();
            let expected = if pci.is_some() { "" } else { expected.as_str() };
            let labels = [
                ("expected", expected),
                ("pci", pci.as_deref().unwrap_or_default()),
                ("device", device.as_deref().unwrap_or_default()),
                ("port", &number),
                ("state", climbed.rung.word()),
            ];
            reached.add(&labels, Seconds(at.since(Moment::START)));
        }
        let help = "When the boot first saw the port in the state, since the start of the kernel.";
        self.family("boot_port_state_seconds", help, &reached);
    }
}

fn device(hca: &Hca) -> &str {
    hca.rdma.as_ref().map_or("", |rdma| rdma.as_str())
}

const fn required(is_required: bool) -> &'static str {
    if is_required { "true" } else { "false" }
}

fn findings(findings: &[Finding]) -> Family {
    let mut count: BTreeMap<_, usize> = BTreeMap::new();
    for finding in findings {
        *count.entry((finding.code, finding.severity)).or_default() += 1;
    }
    let mut family = Family::default();
    for ((code, severity), count) in count {
        let severity = severity.to_string();
        family.add(&[("code", code.name()), ("severity", &severity)], count);
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::boot::{Climbed, TimelineEntry, blank};
    use proptest::prelude::*;

    #[test]
    fn a_state_has_its_place_as_number() {
        assert_eq!(number(None), 0);
        assert_eq!(number(Some(Rung::Pci)), 1);
        assert_eq!(number(Some(Rung::Active)), 8);
        assert!(numbers().starts_with("1 pci, 2 driver") && numbers().ends_with("8 active"));
    }

    #[test]
    fn a_label_is_escaped_and_a_metric_stands_once() {
        let mut family = Family::default();
        family.add(&[("a", "x\\\"\n\u{1b}y"), ("b", "")], 1);
        family.add(&[("a", "x\\\" \u{9b}y")], 2);
        let all: Vec<_> = family.0.into_iter().collect();
        assert_eq!(all, [("{a=\"x\\\\\\\" \u{fffd}y\"}".to_owned(), "1".to_owned())]);
    }

    proptest! {
        #[test]
        fn what_a_report_says_makes_lines_of_the_format(
            kernel in "(?s).{0,12}",
            expected in "(?s).{0,12}",
            usec: u64,
        ) {
            let usec = Moment::from_usec(usec);
            let climbed = Climbed { expected: expected.into(), port: None, rung: Rung::Driver };
            let moment = TimelineEntry { usec, text: String::new(), climbed: Some(climbed) };
            let boot = BootReport { kernel, timeline: vec![moment.clone(), moment], ..blank(Moment::START) };
            let label = r#"[a-z]+="([^"\\\n]|\\["\\])*""#;
            let line = format!(r"^(# .*|ibprov_[a-z_]+(\{{{label}(,{label})*\}})? [0-9.]+)$");
            let line = regex::Regex::new(&line).expect("a pattern");
            let text = of_boot(&boot);
            prop_assert!(text.split_terminator('\n').all(|each| line.is_match(each)), "{text}");
            prop_assert_eq!(text.matches("\nibprov_boot_port_state_seconds").count(), 1);
        }
    }
}
