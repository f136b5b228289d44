//! The rows of the ports: stairs that go up with the rungs, red where the
//! netdev was requested, not present.

use super::pen::{Anchor, RUNG_CLASSES, width};
use super::scale::count;
use super::{Drawing, LEFT, MOST_ROWS, RIGHT};
use crate::model::duration::duration;
use crate::names::Rung;
use crate::timeline::{Gap, GapKind, PortTrack};

/// Sizes by how many ports there are: row, letters.
const fn sizes(ports: usize) -> (f64, f64) {
    match ports {
        0..=12 => (46.0, 13.0),
        13..=40 => (26.0, 12.0),
        _ => (15.0, 10.0),
    }
}

impl Drawing<'_> {
    pub(super) fn ports(&mut self) {
        let ports = &self.timeline.ports;
        if ports.is_empty() {
            return;
        }
        self.section("Ports");
        let (row, size) = sizes(ports.len());
        for (index, port) in ports.iter().enumerate().take(MOST_ROWS) {
            self.port(index, port, row, size);
        }
        let left_out = ports.len().saturating_sub(MOST_ROWS);
        self.and_more(left_out);
    }

    fn port(&mut self, index: usize, port: &PortTrack, row: f64, size: f64) {
        let (top, bottom) = (self.y + 1.0, self.y + row - 2.0);
        let baseline = (top + bottom) / 2.0 + size * 0.38;
        let class = if size < 11.0 { "tiny" } else { "label" };
        let gaps: Vec<Gap> = self.gaps.iter().filter(|g| g.port == Some(index)).cloned().collect();
        let (said, then, bad) = self.said(port, &gaps);
        self.pen.open(&format!("{}: {said} {then} {}", port.label, port.why));
        self.label(&port.label, class, size, baseline);
        for gap in gaps.iter().filter(|g| g.kind == GapKind::Missing) {
            self.gap(gap, (top, bottom), "gap missing");
        }
        self.stairs(port, (top, bottom), size);
        let strip = (row * 0.4).max(6.0);
        for gap in &gaps {
            if gap.kind == GapKind::Down {
                self.gap(gap, (top, top + strip), "gap down");
                self.gap_text(gap, (top, top + strip), size);
            } else {
                self.gap_text(gap, (top, bottom), size);
            }
        }
        for (at, class) in [(port.declined, "declined"), (port.up, "setup")] {
            let Some(at) = at else { continue };
            let x = self.x(at);
            let half = (row / 4.0).min(7.0);
            self.pen
                .shape(&[(x - half, bottom), (x + half, bottom), (x, bottom - 2.0 * half)], class);
        }
        if let Some(at) = port.address {
            let (x, half) = (self.x(at), (row / 4.0).min(7.0));
            let points = [(x - half, top + half), (x, top), (x + half, top + half)];
            self.pen.shape(&[points[0], points[1], points[2], (x, top + 2.0 * half)], "address");
        }
        let class = match (bad, size < 11.0) {
            (true, true) => "tiny red",
            (true, false) => "result red",
            (false, true) => "tiny",
            (false, false) => "result",
        };
        if row > 40.0 && (!then.is_empty() || !port.why.is_empty()) {
            self.result(&said, class, size, baseline - 9.0);
            let (text, class) =
                if then.is_empty() { (&port.why, "small") } else { (&then, "result red") };
            self.result(text, class, 12.0, baseline + 9.0);
        } else {
            let said = if then.is_empty() { said } else { format!("{said}, {then}") };
            self.result(&said, class, size, baseline);
        }
        self.pen.close();
        self.y += row;
    }

    /// What became of a port, what after that, and whether it is bad.
    fn said(&self, port: &PortTrack, gaps: &[Gap]) -> (String, String, bool) {
        let missing = gaps.iter().find(|g| g.kind == GapKind::Missing);
        let down = gaps.iter().find(|g| g.kind == GapKind::Down);
        let mut said = match (&port.netdev, port.when(Rung::Netdev)) {
            (Some(netdev), Some(at)) => format!("{netdev} at {}", self.timeline.clock.moment(at)),
            (Some(netdev), None) => format!("{netdev} never came"),
            (None, _) => port.highest().map_or_else(|| "not seen".to_owned(), |r| r.to_string()),
        };
        match (missing.and_then(|g| Some((g.from, g.until?))), port.missing) {
            (Some((from, until)), _) => {
                said.push_str(&format!(", {} late", duration(until.saturating_sub(from))));
            }
            (None, Some(rung)) => said.push_str(&format!(", {}", rung.lacking())),
            (None, None) => said.extend(port.now.iter().map(|now| format!(", {now} now"))),
        }
        if let Some(at) = port.address {
            said.push_str(&format!(", address at {}", self.timeline.clock.moment(at)));
        }
        let then = down.map(|down| {
            let span = down.until.map(|until| duration(until.saturating_sub(down.from)));
            span.map_or_else(|| "then down".to_owned(), |span| format!("then down {span}"))
        });
        let bad = missing.is_some() || down.is_some() || port.missing.is_some();
        (said, then.unwrap_or_default(), bad)
    }

    fn stairs(&mut self, port: &PortTrack, (top, bottom): (f64, f64), size: f64) {
        let steps = port.steps();
        let ends = steps.iter().skip(1).map(|(_, at)| Some(*at)).chain([None]);
        let marks = port.declined.iter().chain(&port.up).map(|at| self.x(*at));
        let cuts = self.scale.cuts().into_iter().map(|(place, _)| LEFT + place);
        let over: Vec<f64> = marks.chain(cuts).collect();
        for ((rung, at), end) in steps.iter().zip(ends) {
            let index = Rung::ALL.iter().position(|r| r == rung).unwrap_or_default();
            let class = RUNG_CLASSES.get(index).copied().unwrap_or("r1");
            let height = (bottom - top) * count(index + 2) / 9.0;
            let from = self.x(*at);
            let until = end.map_or(RIGHT, |at| self.x(at));
            self.pen.rect((from, bottom - height), ((until - from).max(1.0), height), class);
            let room = width(rung.word(), 11.0) + 8.0;
            let is_free = !over.iter().any(|x| *x > from - 9.0 && *x < from + room + 9.0);
            if size > 11.0 && room < until - from && is_free {
                let class = if index < 3 { "onlight" } else { "ondark" };
                self.pen.text((from + 5.0, bottom - 4.0), Anchor::Start, class, rung.word());
            }
        }
    }

    fn span(&self, gap: &Gap) -> (f64, f64) {
        let from = self.x(gap.from);
        let until = gap.until.map_or(RIGHT, |at| self.x(at));
        (from.max(LEFT), (until - from).max(2.0))
    }

    fn gap(&mut self, gap: &Gap, (top, bottom): (f64, f64), class: &str) {
        let (x, width) = self.span(gap);
        self.pen.rect((x, top), (width, bottom - top), class);
    }

    fn gap_text(&mut self, gap: &Gap, (top, bottom): (f64, f64), size: f64) {
        let word = match gap.kind {
            GapKind::Missing => "missing",
            GapKind::Down => "down",
        };
        let text = match gap.until {
            Some(until) => format!("{word} {}", duration(until.saturating_sub(gap.from))),
            None => format!("{word}, never came"),
        };
        let text = if gap.until.is_none() && gap.kind == GapKind::Down {
            "down, not configured".to_owned()
        } else {
            text
        };
        let (x, room) = self.span(gap);
        if size < 11.0 || width(&text, 13.0) + 8.0 > room {
            return;
        }
        // Above the low stairs of a port that is still climbing.
        let y = if bottom - top > 30.0 { top + 16.0 } else { (top + bottom) / 2.0 + 4.5 };
        self.pen.text((x + room / 2.0, y), Anchor::Middle, "gaptext", &text);
    }
}
