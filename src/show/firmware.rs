//! The text of `ibprov firmware`.

use super::advice;
use super::screen::{Screen, Tone, columns};
use crate::model::firmware::{CardSettings, FirmwareReport, Setting, State, shown_value};

/// For people: a table for each adapter, and what is to be done.
pub fn text(report: &FirmwareReport, screen: Screen) -> String {
    let mut lines: Vec<String> = Vec::new();
    if report.adapters.is_empty() {
        lines.push("this host has no adapter whose firmware has settings".to_owned());
    }
    for adapter in &report.adapters {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(adapter.lines(screen));
    }
    let has = |wanted| report.adapters.iter().flat_map(|a| &a.settings).any(|s| s.state == wanted);
    let mut to_do = Vec::new();
    if report.adapters.iter().any(|a| a.settings.iter().any(|s| a.would_set(s))) {
        to_do.push("to set what differs: ibprov firmware --apply");
    }
    if has(State::PendingReboot) {
        to_do.push("what is pending takes effect at the next reboot");
    }
    if has(State::PendingPowerCycle) {
        to_do.push("what is pending a power cycle was written, and is not written again: power the host off and on (after a kexec, a reboot is enough)");
    }
    if !to_do.is_empty() {
        lines.push(String::new());
    }
    lines.extend(to_do.into_iter().flat_map(|text| screen.wrapped("", text)));
    lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

impl CardSettings {
    fn lines(&self, screen: Screen) -> Vec<String> {
        let mut head = self.pci.to_string();
        head.extend(self.device_type.as_ref().map(|device| format!("  {device}")));
        head.extend(self.firmware.as_ref().map(|version| format!(", firmware {version}")));
        let mut lines = vec![screen.paint(Tone::Head, &head)];
        let value = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let title = ["setting", "current", "next boot", "wanted"].map(str::to_owned);
        let row = |s: &Setting| {
            let wanted = s.wanted.as_ref().map_or_else(|| "-".to_owned(), shown_value);
            [s.name.to_string(), value(&s.current), value(&s.next), wanted]
        };
        let rows: Vec<[String; 4]> =
            [title].into_iter().chain(self.settings.iter().map(row)).collect();
        let states = self.settings.iter();
        let states = states.map(|s| screen.paint(s.state.tone(), s.state.into()));
        let states = ["state".to_owned()].into_iter().chain(states);
        if rows.len() > 1 {
            let rows = columns(&rows).into_iter().zip(states);
            lines.extend(rows.map(|(row, state)| format!("  {row}  {state}")));
        }
        for setting in &self.settings {
            let told = setting.reason.as_ref().map(|why| format!("{}: {why}", setting.name));
            lines.extend(told.iter().flat_map(|told| screen.wrapped("    ", told)));
        }
        lines.extend(self.problem.iter().flat_map(|why| screen.wrapped("  error: ", why)));
        for finding in &self.findings {
            lines.extend(
                screen.wrapped("  ", &format!("{}: {}", finding.severity, finding.message)),
            );
            lines.extend(advice::of(finding, "    ", screen));
        }
        if let Some(effect) = &self.effect {
            lines.extend(screen.wrapped("  the tool says: ", effect));
        }
        lines
    }
}

impl State {
    const fn tone(self) -> Tone {
        match self {
            Self::Shown => Tone::Dim,
            Self::AsWanted => Tone::Good,
            Self::NotSet | Self::Unreadable => Tone::Bad,
            _ => Tone::Warning,
        }
    }
}
