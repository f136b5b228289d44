//! The picture of a boot from ibprov's own report, `/run/ibprov/boot.json`.

use super::{Clock, ModuleLoad, Outcome, PortTrack, Role, Timeline, UnitBar};
use crate::model::{
    BootReport, PortReport, StepReport,
    boot::{Climbed, Moment},
};

pub fn timeline(report: &BootReport) -> Timeline {
    let outcome = if report.exit_code >= 2 { Outcome::Failed } else { Outcome::Good };
    Timeline {
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
    }
}

fn modules(report: &StepReport) -> Vec<ModuleLoad> {
    let loaded = report.took_usec.filter(|_| report.failure.is_none());
    let modules = report.step.modules();
    modules
        .iter()
        .map(|name| ModuleLoad {
            name: name.to_string(),
            usec: loaded.map(|took| report.started_usec.saturating_add(took)),
            remark: match (report.took_usec, &report.failure) {
                (None, _) => "modprobe had not ended".to_owned(),
                (Some(_), None) => "by ibprov".to_owned(),
                (Some(_), Some(failure)) => failure.clone(),
            },
        })
        .collect()
}

fn track(port: &PortReport, moments: &[Moment]) -> PortTrack {
    let progress = &port.progress;
    // Before its ports were known, an HCA climbed for all of them.
    let is_mine = |c: &Climbed| {
        c.expected == progress.expected && (c.port.is_none() || c.port == progress.port)
    };
    let climbed = moments.iter().filter_map(|m| Some((m.climbed.as_ref()?, m.usec)));
    PortTrack {
        label: progress.label().to_string(),
        netdev: progress.netdev.as_ref().map(ToString::to_string),
        reached: climbed.filter(|(c, _)| is_mine(c)).map(|(c, usec)| (c.rung, usec)).collect(),
        missing: port.missing.filter(|_| !progress.is_ethernet()),
        why: port.cause.as_ref().map(|c| c.text.clone()).unwrap_or_default(),
        ..PortTrack::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::boot::{Moment as Written, Step, blank};
    use crate::model::{Cause, PortProgress, read};
    use crate::names::{LinkLayer, PortNumber, Rung};

    #[test]
    fn what_boot_writes_is_read() {
        let climbed = |port, rung| {
            Some(Climbed {
                expected: "0000:4b:00.0".into(),
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
        let mut progress =
            PortProgress::absent("0000:4b:00.0".to_owned(), Rung::Named, String::new());
        progress.pci = "0000:4b:00.0".parse().ok();
        progress.rdma = "mlx5_0".parse().ok();
        progress.port = PortNumber::new(1).ok();
        progress.link_layer = Some(LinkLayer::InfiniBand);
        report.ports = vec![PortReport {
            progress,
            ready: false,
            missing: Some(Rung::Netdev),
            cause: Some(Cause::waiting("no ib_ipoib", [])),
            waited_usec: 0,
        }];
        let module = |name: &str| name.parse().expect("name");
        let all = Step::LoadModules { modules: vec![module("ib_umad"), module("ib_ipoib")] };
        let one = Step::LoadModule { module: module("ib_ipoib") };
        let step = |step, started_usec, failure: Option<&str>| StepReport {
            step,
            started_usec,
            took_usec: Some(2),
            failure: failure.map(str::to_owned),
        };
        report.steps = vec![step(all, 1, None), step(one, 5, Some("denied"))];
        let written = report.to_report().to_json().expect("JSON");
        let timeline = timeline(&read(&written).expect("report"));
        let [port] = &timeline.ports[..] else { panic!("{timeline:?}") };
        assert_eq!(port.label, "mlx5_0 port 1 (0000:4b:00.0)");
        assert_eq!(port.reached, [(Rung::Driver, 5_000_001), (Rung::Rdma, 6_000_000)]);
        assert_eq!((port.missing, port.why.as_str()), (Some(Rung::Netdev), "no ib_ipoib"));
        let modules: Vec<_> = timeline.modules.iter().map(|m| (m.name.as_str(), m.usec)).collect();
        assert_eq!(modules, [("ib_umad", Some(3)), ("ib_ipoib", Some(3)), ("ib_ipoib", None)]);
        let (bad, headline) = timeline.headline().expect("headline");
        assert!(bad && headline.contains("never came up"), "{headline}");
    }
}
