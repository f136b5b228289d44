//! What ibprov's own report of a boot, `/run/ibprov/boot.json`, adds to the picture.

use std::time::Duration;

use super::{Outcome, Role, UnitBar};
use crate::model::boot::Climbed;
use crate::model::{BootReport, Exit, PortProgress};
use crate::names::{ModuleName, Moment, Rung};

/// The unit that ran.
pub fn ran(report: &BootReport) -> UnitBar {
    let has_failed = report.verdict.exit() >= Exit::NotBegun;
    UnitBar {
        began: Some(report.started_usec.since(Moment::START)),
        ended: Some(report.finished_usec.since(Moment::START)),
        outcome: if has_failed { Outcome::Failed } else { Outcome::Good },
        ..UnitBar::new("ibprov.service".to_owned(), Role::Provider)
    }
}

/// When this boot saw `port` reach which state.
pub fn reached(report: &BootReport, port: &PortProgress) -> Vec<(Rung, Duration)> {
    let label = port.label();
    let own = report.ports.iter().find(|own| own.progress.label() == label);
    let Some(own) = own.map(|own| &own.progress) else { return Vec::new() };
    // Before its ports were known, an HCA climbed for all of them.
    let is_mine =
        |c: &Climbed| c.expected == own.expected && (c.port.is_none() || c.port == own.port);
    let climbed = report.timeline.iter().filter_map(|m| Some((m.climbed.as_ref()?, m.usec)));
    climbed.filter(|(c, _)| is_mine(c)).map(|(c, at)| (c.rung, at.since(Moment::START))).collect()
}

/// The modules that this boot loaded, and when each was there.
pub fn loaded(report: &BootReport) -> impl Iterator<Item = (&ModuleName, Duration)> {
    report.steps.iter().filter(|step| step.failure.is_none()).flat_map(|step| {
        let started = step.started_usec.since(Moment::START);
        let at = step.took_usec.map(|took| started + Duration::from_micros(took));
        at.into_iter().flat_map(|at| step.step.modules().iter().map(move |name| (name, at)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::boot::{Step, TimelineEntry, blank};
    use crate::model::{PortReport, StepReport, read};
    use crate::names::{LinkLayer, PortNumber, at};

    #[test]
    fn what_boot_writes_is_read() {
        let climbed = |port, rung| {
            Some(Climbed {
                expected: "0000:4b:00.0".into(),
                port: if port == 0 { None } else { PortNumber::new(port).ok() },
                rung,
            })
        };
        let mut report = blank(at(5_000_000));
        report.finished_usec = at(9_000_000);
        report.timeline = vec![
            TimelineEntry {
                usec: at(5_000_001),
                text: String::new(),
                climbed: climbed(0, Rung::Driver),
            },
            TimelineEntry {
                usec: at(6_000_000),
                text: String::new(),
                climbed: climbed(1, Rung::Rdma),
            },
            TimelineEntry {
                usec: at(7_000_000),
                text: String::new(),
                climbed: climbed(2, Rung::Named),
            },
            TimelineEntry { usec: at(8_000_000), text: "said".to_owned(), climbed: None },
        ];
        let mut progress =
            PortProgress::absent("0000:4b:00.0".to_owned(), Rung::Named, String::new());
        progress.pci = "0000:4b:00.0".parse().ok();
        progress.rdma = "mlx5_0".parse().ok();
        progress.port = PortNumber::new(1).ok();
        progress.link_layer = Some(LinkLayer::InfiniBand);
        report.ports = vec![PortReport {
            progress: progress.clone(),
            ready: false,
            missing: Some(Rung::Netdev),
            cause: None,
            waited_usec: 0,
        }];
        let module = |name: &str| name.parse::<ModuleName>().expect("name");
        let all = Step::LoadModules { modules: vec![module("ib_umad"), module("ib_ipoib")] };
        let one = Step::LoadModule { module: module("ib_ipoib") };
        let step = |step, started_usec, failure: Option<&str>| StepReport {
            step,
            started_usec,
            took_usec: Some(2),
            failure: failure.map(str::to_owned),
        };
        report.steps = vec![step(all, at(1), None), step(one, at(5), Some("denied"))];
        let written = report.to_report().to_json().expect("JSON");
        let report = read(&written).expect("report");
        let usec = Duration::from_micros;
        let reached = reached(&report, &progress);
        assert_eq!(reached, [(Rung::Driver, usec(5_000_001)), (Rung::Rdma, usec(6_000_000))]);
        let modules: Vec<_> = loaded(&report).map(|(name, at)| (name.as_str(), at)).collect();
        assert_eq!(modules, [("ib_umad", usec(3)), ("ib_ipoib", usec(3))]);
    }
}
