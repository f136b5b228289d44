//! The text of `ibprov boot`.

use std::time::Duration;

use super::screen::Screen;
use super::{advice, screen};
use crate::model::Cause;
use crate::model::boot::{BootReport, ModuleOutcome, StepReport};
use crate::model::duration::seconds;

/// More lines than this are for programs, not for a serial console.
const TIMELINE_LINES: usize = 40;

pub fn text(report: &BootReport, screen: Screen) -> String {
    let mut lines = vec![report.headline()];
    lines.extend(advice::findings(&report.configuration, "", screen));
    for port in &report.ports {
        lines.push(port.line());
        for cause in port.cause.iter().flat_map(Cause::all) {
            lines.push(format!("  why: {}", cause.text));
            lines.extend(advice::lines(&cause.advice, "  ", screen));
        }
        let findings = port.progress.findings(port.cause.as_ref());
        lines.extend(findings.iter().filter_map(|f| advice::explained(f.code, "  ", screen)));
    }
    lines.extend(report.pfs.iter().map(|pf| pf.headline.clone()));
    for pf in &report.unresolved_pfs {
        let errors: Vec<&str> = pf.errors.iter().map(|e| e.message.as_str()).collect();
        lines.push(format!("{} ({}): not changed: {}", pf.which, pf.origin, errors.join("; ")));
    }
    lines.extend(report.rxe.iter().map(ToString::to_string));
    let left_out = report.left_out.iter();
    lines.extend(left_out.map(|out| format!("not waited for {}: {}", out.pci, out.reason)));
    for (name, trouble) in report.missing_modules() {
        lines.push(format!("module {name}: not loaded: {trouble}"));
        lines.extend(advice::lines(&trouble.advice(name), "  ", screen));
        lines.extend(advice::explained(trouble.code(), "  ", screen));
    }
    let there: Vec<&str> = report
        .modules
        .iter()
        .filter(|m| m.outcome == ModuleOutcome::AlreadyThere)
        .map(|m| m.name.as_str())
        .collect();
    if !there.is_empty() {
        lines.push(format!(
            "modules already loaded (initramfs, udev or built in): {}",
            there.join(", ")
        ));
    }
    lines.extend(report.steps.iter().map(StepReport::line));
    lines.extend(report.problems.iter().map(|problem| format!("note: {problem}")));
    if !report.timeline.is_empty() {
        lines.push("timeline of boot:".to_owned());
    }
    for entry in report.timeline.iter().take(TIMELINE_LINES) {
        let (at, started) = (entry.usec, report.started_usec);
        let sign = if at < started { '-' } else { '+' };
        let off = at.max(started).since(at.min(started));
        lines.push(format!("{sign}{:>10}  {}", seconds(off), entry.text));
    }
    if let Some(more @ 1..) = report.timeline.len().checked_sub(TIMELINE_LINES) {
        lines.push(format!("... and {more} more in /run/ibprov/boot.json"));
    }
    screen::text(lines)
}

impl StepReport {
    fn line(&self) -> String {
        let took = self.took_usec.map(|usec| seconds(Duration::from_micros(usec)));
        match (took, &self.failure) {
            (None, _) => format!("still running: {}", self.step),
            (Some(took), None) => format!("changed by ibprov: {} in {took}", self.step),
            (Some(took), Some(failure)) => {
                format!("failed: {} after {took}: {failure}", self.step)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::model::boot::{Climbed, PortReport, Step, TimelineEntry, blank};
    use crate::model::common::Verdict;
    use crate::model::{ModuleReport, ModuleTrouble, PortProgress};
    use crate::names::{LinkLayer, PortNumber, Rung, at};

    fn denied() -> ModuleTrouble {
        ModuleTrouble::Denied { by: "/etc/modprobe.d/x.conf:1".to_owned() }
    }

    fn port(reached: Rung) -> PortReport {
        let progress = PortProgress {
            expected: "0000:4b:00.0".into(),
            pci: "0000:4b:00.0".parse().ok(),
            rdma: "mlx5_0".parse().ok(),
            port: PortNumber::new(1).ok(),
            guid: "b859:9f03:0012:a480".parse().ok(),
            link_layer: Some(LinkLayer::InfiniBand),
            netdev: "ib0".parse().ok().filter(|_| reached >= Rung::Netdev),
            named_usec: None,
            reached: Some(reached),
            goal: Rung::Named,
            optional: false,
            must_be_infiniband: false,
            must_be_ethernet: false,
            of_number: None,
            why: "class 0x020700".to_owned(),
        };
        let cause = (reached < Rung::Named)
            .then(|| Cause::module(&"ib_ipoib".parse().expect("name"), &denied()));
        PortReport {
            ready: progress.is_ready(),
            missing: progress.missing(),
            progress,
            cause,
            waited_usec: 1_234_567,
        }
    }

    fn report(verdict: Verdict, ports: Vec<PortReport>) -> BootReport {
        BootReport {
            finished_usec: at(7_312_000),
            verdict,
            ports,
            timeline: vec![
                TimelineEntry {
                    usec: at(4_900_000),
                    text: "ib0 was there".to_owned(),
                    climbed: None,
                },
                TimelineEntry {
                    usec: at(5_312_000),
                    text: "mlx5_0/1: named as ib0".to_owned(),
                    climbed: Some(Climbed {
                        expected: "0000:4b:00.0".into(),
                        port: PortNumber::new(1).ok(),
                        rung: Rung::Named,
                    }),
                },
            ],
            ..blank(at(5_000_000))
        }
    }

    #[test]
    fn a_ready_boot_reads_well() {
        let text = text(&report(Verdict::Ready, vec![port(Rung::Named)]), Screen::default());
        expect![[r#"
            1 of 1 expected ports ready after 2.312 s
            mlx5_0/1 (0000:4b:00.0): ready, netdev ib0, port GUID b859:9f03:0012:a480
            timeline of boot:
            -   0.100 s  ib0 was there
            +   0.312 s  mlx5_0/1: named as ib0
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_deferred_boot_says_why_and_what_to_do() {
        let mut report = report(Verdict::Exceptions, vec![port(Rung::Rdma)]);
        let missing = |name: &str| ModuleReport {
            name: name.parse().expect("name"),
            outcome: ModuleOutcome::Missing { trouble: denied() },
        };
        // The port says it of the first.
        report.modules = vec![missing("ib_ipoib"), missing("ib_uverbs")];
        report.steps.push(StepReport {
            step: Step::LoadModule { module: "ib_umad".parse().expect("name") },
            started_usec: at(5_100_000),
            took_usec: Some(90_000),
            failure: None,
        });
        report.problems.push("cannot read /dev/kmsg".to_owned());
        expect![[r#"
            boot incomplete after 2.312 s: mlx5_0/1 (0000:4b:00.0): no netdev and 1 more; 0 of 1 expected ports ready
            mlx5_0/1 (0000:4b:00.0): NOT READY: no netdev after 1.234 s, port GUID b859:9f03:0012:a480
              why: module ib_ipoib is not loaded: deny-listed by /etc/modprobe.d/x.conf:1
              do: to load it, remove the line in /etc/modprobe.d/x.conf:1; otherwise add it to modules.exclude of the configuration
            module ib_uverbs: not loaded: deny-listed by /etc/modprobe.d/x.conf:1
              do: to load it, remove the line in /etc/modprobe.d/x.conf:1; otherwise add it to modules.exclude of the configuration
            changed by ibprov: load ib_umad in 0.090 s
            note: cannot read /dev/kmsg
            timeline of boot:
            -   0.100 s  ib0 was there
            +   0.312 s  mlx5_0/1: named as ib0
        "#]].assert_eq(&text(&report, Screen::default()));
    }

    #[test]
    fn a_long_timeline_is_cut() {
        let mut report = report(Verdict::Ready, Vec::new());
        let moment = TimelineEntry { usec: at(5_000_000), text: "x".to_owned(), climbed: None };
        report.timeline = vec![moment; 43];
        let text = text(&report, Screen::default());
        assert_eq!(text.lines().filter(|l| l.ends_with("  x")).count(), TIMELINE_LINES);
        assert!(text.ends_with("... and 3 more in /run/ibprov/boot.json\n"), "{text}");
    }

    #[test]
    fn json_is_flat_and_carries_its_schema() {
        let report = report(Verdict::NotReady, vec![port(Rung::Rdma)]);
        let json: serde_json::Value =
            serde_json::from_str(&report.to_report().to_json().expect("JSON")).expect("JSON");
        assert_eq!((&json["schema"], &json["report"]), (&1.into(), &"boot".into()));
        assert_eq!(json["verdict"], "not-ready");
        assert_eq!(json["ports"][0]["reached"], "rdma");
        assert_eq!(json["ports"][0]["missing"], "netdev");
        assert_eq!(json["ports"][0]["cause"]["final"], true);
    }
}
