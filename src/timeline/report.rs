//! The picture of a boot from ibprov's own report, `/run/ibprov/boot.json`.

use serde::Deserialize;

use super::{Clock, ModuleLoad, Outcome, PortTrack, Role, Timeline, UnitBar};
use crate::names::Rung;

/// What the picture needs of a report. Everything may be missing: the report
/// may be of another version, or cut short.
#[derive(Debug, Deserialize)]
struct Report {
    #[serde(default)]
    kernel: String,
    started_usec: u64,
    finished_usec: u64,
    exit_code: u8,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    ports: Vec<Port>,
    #[serde(default)]
    timeline: Vec<Moment>,
}

#[derive(Debug, Deserialize)]
struct Step {
    #[serde(default)]
    modules: Vec<String>,
    module: Option<String>,
    started_usec: u64,
    took_usec: Option<u64>,
    #[serde(default)]
    failure: String,
}

#[derive(Debug, Deserialize)]
struct Port {
    expected: String,
    pci: Option<String>,
    rdma: Option<String>,
    port: Option<u8>,
    link_layer: Option<String>,
    netdev: Option<String>,
    missing: Option<String>,
    cause: Option<Cause>,
}

#[derive(Debug, Deserialize)]
struct Cause {
    #[serde(default)]
    text: String,
}

#[derive(Debug, Deserialize)]
struct Moment {
    usec: u64,
    expected: Option<String>,
    port: Option<u8>,
    rung: Option<String>,
}

/// The picture of the report in `json`.
///
/// # Errors
/// It is no boot report.
pub fn timeline(json: &str) -> serde_json::Result<Timeline> {
    let report: Report = serde_json::from_str(json)?;
    let outcome = if report.exit_code >= 2 { Outcome::Failed } else { Outcome::Good };
    Ok(Timeline {
        title: if report.kernel.is_empty() {
            "last boot, as ibprov saw it".to_owned()
        } else {
            format!("last boot, as ibprov saw it, kernel {}", report.kernel)
        },
        clock: Clock::SinceBoot,
        units: vec![UnitBar {
            name: "ibprov.service".to_owned(),
            role: Role::Provider,
            began_usec: Some(report.started_usec),
            ended_usec: Some(report.finished_usec),
            outcome,
        }],
        modules: report.steps.iter().flat_map(modules).collect(),
        ports: report.ports.iter().map(|port| track(port, &report.timeline)).collect(),
        ..Timeline::default()
    })
}

fn modules(step: &Step) -> Vec<ModuleLoad> {
    let loaded = step.took_usec.filter(|_| step.failure.is_empty());
    let names = step.modules.iter().chain(&step.module);
    names
        .map(|name| ModuleLoad {
            name: name.clone(),
            usec: loaded.map(|took| step.started_usec.saturating_add(took)),
            remark: match (&step.took_usec, step.failure.as_str()) {
                (None, _) => "modprobe had not ended".to_owned(),
                (Some(_), "") => "by ibprov".to_owned(),
                (Some(_), failure) => failure.to_owned(),
            },
        })
        .collect()
}

fn track(port: &Port, moments: &[Moment]) -> PortTrack {
    let label = match (&port.rdma, port.port, &port.pci) {
        (Some(rdma), Some(number), Some(pci)) => format!("{rdma} port {number} ({pci})"),
        (Some(rdma), None, Some(pci)) => format!("{rdma} ({pci})"),
        _ => port.expected.clone(),
    };
    // Before its ports were known, an HCA climbed for all of them.
    let mine = moments.iter().filter(|m| {
        m.expected.as_deref() == Some(&port.expected) && (m.port.is_none() || m.port == port.port)
    });
    PortTrack {
        label,
        netdev: port.netdev.clone(),
        reached: mine.filter_map(|m| Some((rung(m.rung.as_deref()?)?, m.usec))).collect(),
        missing: port
            .missing
            .as_deref()
            .and_then(rung)
            .filter(|_| port.link_layer.as_deref() != Some("ethernet")),
        why: port.cause.as_ref().map(|c| c.text.clone()).unwrap_or_default(),
        up_usec: None,
        declined_usec: None,
        still_down: false,
    }
}

fn rung(word: &str) -> Option<Rung> {
    Rung::ALL.into_iter().find(|rung| rung.word() == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::PortNumber;
    use crate::report::boot::{Climbed, Moment as Written, blank};

    #[test]
    fn what_boot_writes_is_read() {
        let climbed = |port, rung| {
            Some(Climbed {
                expected: "0000:4b:00.0".to_owned(),
                port: if port == 0 { None } else { PortNumber::new(port).ok() },
                rung,
            })
        };
        let mut report = blank(5_000_000);
        report.finished_usec = 9_000_000;
        report.timeline = vec![
            Written { usec: 5_000_001, text: String::new(), climbed: climbed(0, Rung::Driver) },
            Written { usec: 6_000_000, text: String::new(), climbed: climbed(1, Rung::Rdma) },
            Written { usec: 7_000_000, text: String::new(), climbed: climbed(2, Rung::Named) },
            Written { usec: 8_000_000, text: "said".to_owned(), climbed: None },
        ];
        let mut json: serde_json::Value =
            serde_json::from_str(&report.to_json().expect("JSON")).expect("JSON");
        json["ports"] = serde_json::json!([{
            "expected": "0000:4b:00.0", "pci": "0000:4b:00.0", "rdma": "mlx5_0", "port": 1,
            "missing": "netdev", "cause": { "text": "no ib_ipoib" }, "link_layer": "infiniband",
        }]);
        json["steps"] = serde_json::json!([
            { "step": "load-modules", "modules": ["ib_umad", "ib_ipoib"], "started_usec": 1, "took_usec": 2, "failure": "" },
            { "step": "load-module", "module": "ib_ipoib", "started_usec": 5, "took_usec": 2, "failure": "denied" },
        ]);
        let timeline = timeline(&json.to_string()).expect("report");
        let [port] = &timeline.ports[..] else { panic!("{timeline:?}") };
        assert_eq!(port.label, "mlx5_0 port 1 (0000:4b:00.0)");
        assert_eq!(port.reached, [(Rung::Driver, 5_000_001), (Rung::Rdma, 6_000_000)]);
        assert_eq!((port.missing, port.why.as_str()), (Some(Rung::Netdev), "no ib_ipoib"));
        let modules: Vec<_> = timeline.modules.iter().map(|m| (m.name.as_str(), m.usec)).collect();
        assert_eq!(modules, [("ib_umad", Some(3)), ("ib_ipoib", Some(3)), ("ib_ipoib", None)]);
        let (bad, headline) = timeline.headline().expect("headline");
        assert!(bad && headline.contains("never came up"), "{headline}");
    }

    #[test]
    fn what_is_no_report_is_an_error() {
        assert!(timeline("{}").is_err());
        assert!(timeline("not JSON").is_err());
    }
}
