//! The text of `ibprov wait-online`.

use super::screen::Screen;
use super::{advice, screen};
use crate::model::common::Finding;
use crate::model::online::OnlineReport;
use crate::names::grouped;

/// What `ibprov wait-online` prints for people: ports of which the same is said in one line.
pub fn text(report: &OnlineReport, screen: Screen) -> String {
    let mut lines = vec![report.headline()];
    lines.extend(advice::findings(&report.configuration, "  ", screen));
    for (said, ports) in grouped(&report.ports, |port| port.said()) {
        let names: Vec<String> = ports.iter().map(|port| port.name()).collect();
        lines.push(format!("  {}: {said}", names.join("; ")));
        let findings: Vec<Finding> = ports.iter().flat_map(|port| report.findings(port)).collect();
        let findings = Finding::grouped(&findings);
        lines.extend(findings.iter().flat_map(|found| advice::of(found, "      ", screen)));
    }
    lines.extend(report.problems.iter().map(|problem| format!("  note: {problem}")));
    screen::text(lines)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::model::advice::{Advice, ToDo};
    use crate::model::online::{Goal, Lack, OnlinePort};
    use crate::model::{Cause, PortProgress};
    use crate::names::{Moment, Rung, at};

    fn dark(name: &str, seconds: u64) -> OnlinePort {
        let look = Advice::look(ToDo::run(format!("mlxlink -d {name}")));
        let progress = PortProgress::absent(name, Rung::Named, String::new());
        OnlinePort {
            progress,
            online: false,
            lid: None,
            state: None,
            physical: None,
            rate: None,
            degraded: Vec::new(),
            addresses: Vec::new(),
            lack: Some(Lack::Link),
            cause: Some(Cause::waiting("no cable", [look])),
            for_sec: Some(seconds),
        }
    }

    #[test]
    fn ports_that_lack_the_same_are_one_line() {
        let goal = Goal { rung: Rung::Active, address: false, stable_sec: 0 };
        let mut report = OnlineReport::new(Moment::START, 9, goal);
        let ports = vec![dark("4b:00.0", 9), dark("5e:00.0", 9), dark("6e:00.0", 3)];
        report.finish(ports, None, at(9_000_000));
        expect![[r#"
            0 of 3 ports online after 9.000 s
              4b:00.0; 5e:00.0: no link: no cable, for 9 s
                  run: mlxlink -d 4b:00.0
                  run: mlxlink -d 5e:00.0
              6e:00.0: no link: no cable, for 3 s
                  run: mlxlink -d 6e:00.0
        "#]]
        .assert_eq(&text(&report, Screen::default()));
        let verbose = text(&report, Screen { verbose: true, ..Screen::default() });
        assert_eq!(verbose.matches("see: ibprov check --explain port-not-active\n").count(), 2);
    }
}
