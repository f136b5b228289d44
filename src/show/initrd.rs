//! The text of `ibprov check --initrd`.

use super::screen::Screen;
use super::{advice, screen};
use crate::model::common::{Report, Verdict};
use crate::model::initrd::{InitrdReport, NeededModule, Place, rebuild};

pub fn text(report: &Report<InitrdReport>) -> String {
    let InitrdReport { image, kernels, modules, naming_rules, .. } = &report.body;
    let mut lines = vec![match report.verdict {
        Verdict::Ready => {
            format!("{}: has what the ports of this host need", image)
        }
        Verdict::Exceptions => format!("{}: differs from this host", image),
        _ => format!("{}: NOT COMPLETE", image),
    }];
    for kernel in kernels {
        let of = modules.iter().filter(|m| m.kernel == *kernel);
        let word = |m: &NeededModule| {
            if m.present { m.name.clone() } else { format!("{} (missing)", m.name) }
        };
        lines.push(format!("  kernel {kernel}: {}", of.map(word).collect::<Vec<_>>().join(", ")));
    }
    let same = naming_rules.iter().filter(|line| line.place == Place::Both).count();
    lines.push(format!("  naming rules: {same} of {} are in both", naming_rules.len()));
    let findings = report.findings.iter();
    lines.extend(findings.map(|finding| format!("{}: {}", finding.severity, finding.message)));
    if !report.findings.is_empty() {
        lines.extend(advice::lines(&[rebuild()], "", Screen::default()));
    }
    screen::text(lines)
}
