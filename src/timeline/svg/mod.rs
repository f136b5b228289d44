//! The picture as SVG: self-contained, light, for any browser.
//!
//! From top to bottom: what is wrong in a sentence, who asked for the network,
//! which modules came when, and every port climbing its ladder. Time goes from
//! left to right. What was missing when it was asked for is red, through the
//! whole height.

mod pen;
mod ports;

use std::time::Duration;

use self::pen::{Anchor, Pen, fit, wrap};
use super::scale::{Scale, count};
use super::{Ask, Gap, GapKind, Outcome, Timeline, UnitBar, scale};
use crate::model::duration::duration;
use crate::names::Rung;

const WIDTH: f64 = 1280.0;
/// Where the time axis begins and ends.
const LEFT: f64 = 270.0;
const RIGHT: f64 = 990.0;
const MARGIN: f64 = 16.0;
const UNIT_ROW: f64 = 24.0;
/// Rows of one kind that are drawn; a file with more of them is no picture.
const MOST_ROWS: usize = 512;
/// Notes beyond these are left to the text.
const MOST_NOTES: usize = 12;

pub fn draw(timeline: &Timeline) -> String {
    let mut moments = timeline.moments();
    pad(&mut moments);
    let drawing = Drawing {
        timeline,
        gaps: timeline.gaps(),
        scale: Scale::new(&moments, RIGHT - LEFT, 70.0),
        pen: Pen::default(),
        y: 0.0,
    };
    drawing.whole()
}

/// Some room after the last moment, so that what has no end is seen to go on.
fn pad(moments: &mut Vec<Duration>) {
    // The stretches that will be cut out must not count.
    let scale = Scale::new(moments, 1.0, 0.0);
    let cut: Duration = scale.cuts().iter().map(|(_, at)| at).sum();
    if let (Some(first), Some(last)) = (moments.first().copied(), moments.last().copied()) {
        moments.push(last + ((last - first - cut) / 12).max(Duration::from_millis(1)));
    }
}

struct Drawing<'a> {
    timeline: &'a Timeline,
    gaps: Vec<Gap>,
    scale: Scale,
    pen: Pen,
    /// How far down the drawing is.
    y: f64,
}

impl Drawing<'_> {
    fn whole(mut self) -> String {
        self.head();
        let axis = self.y;
        // Drawn first, as what follows goes over it: the height is known after.
        let mut body = Drawing {
            timeline: self.timeline,
            gaps: self.gaps.clone(),
            scale: self.scale.clone(),
            pen: Pen::default(),
            y: axis + 26.0,
        };
        body.consumers();
        body.modules();
        body.ports();
        let (rows, end_of_rows) = (std::mem::take(&mut body.pen), body.y + 6.0);
        body.notes();
        let bottom = body.y + 6.0;
        if body.y > axis + 26.0 {
            self.red_bands(axis + 26.0, bottom);
            self.axis(axis + 18.0, bottom, true);
            self.ask_lines(axis + 26.0, bottom);
        } else {
            let text =
                "Nothing that was read of this boot has a time: see the text of ibprov check.";
            self.pen.text((MARGIN, axis + 18.0), Anchor::Start, "small", text);
        }
        self.pen.append(&rows);
        // An excerpt can be read across what is cut out.
        self.cuts(axis + 26.0, end_of_rows);
        self.pen.append(&body.pen);
        self.y = bottom;
        if bottom - axis > 700.0 {
            self.axis(bottom + 14.0, bottom, false);
            self.y += 18.0;
        }
        self.legend();
        let title = match self.timeline.headline() {
            Some((_, headline)) => format!("{}: {headline}", self.timeline.title),
            None => self.timeline.title.clone(),
        };
        self.pen.finish((WIDTH, self.y + MARGIN), &title, pen::STYLE)
    }

    fn x(&self, at: Duration) -> f64 {
        LEFT + self.scale.place(at)
    }

    fn head(&mut self) {
        let title = fit(&self.timeline.title, 23.0, WIDTH - 2.0 * MARGIN);
        self.pen.text((MARGIN, 34.0), Anchor::Start, "title", &title);
        self.y = 48.0;
        if let Some((bad, headline)) = self.timeline.headline() {
            // Bold letters are wider.
            let lines = wrap(&headline, 20.0, WIDTH - 4.0 * MARGIN, 3);
            let height = 16.0 + 24.0 * count(lines.len());
            let class = if bad { "head bad" } else { "head good" };
            self.pen.rect((MARGIN, self.y), (WIDTH - 2.0 * MARGIN, height), class);
            let mut y = self.y + 27.0;
            for line in lines {
                self.pen.text((2.0 * MARGIN, y), Anchor::Start, "headline", &line);
                y += 24.0;
            }
            self.y += height;
        }
        self.y += 10.0;
    }

    /// The ticks of the time axis; lines across all if `across`.
    fn axis(&mut self, y: f64, bottom: f64, across: bool) {
        let offset = self.timeline.clock.since_midnight();
        let cuts = self.scale.cuts();
        for (place, at) in self.scale.ticks(95.0, offset) {
            let x = LEFT + place;
            // There is another text.
            if cuts.iter().any(|(cut, _)| (cut - place).abs() < 80.0) {
                continue;
            }
            if across {
                self.pen.line((x, y + 6.0), (x, bottom), "grid");
            }
            let label = self.timeline.clock.tick(at);
            self.pen.text((x, y), Anchor::Middle, "tick", &label);
        }
        self.pen.text((MARGIN, y), Anchor::Start, "tick", self.timeline.clock.legend());
    }

    /// Where something was missing, through all rows. Overlapping ones are one.
    fn red_bands(&mut self, top: f64, bottom: f64) {
        let of = |g: &Gap| (self.x(g.from), g.until.map_or(RIGHT, |until| self.x(until)));
        let mut spans: Vec<(f64, f64)> = self.missed().map(of).collect();
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut bands: Vec<(f64, f64)> = Vec::new();
        for (from, until) in spans {
            match bands.last_mut() {
                Some((_, last)) if *last >= from => *last = last.max(until),
                _ => bands.push((from, until)),
            }
        }
        for (from, until) in bands {
            self.pen.rect((from, top), ((until - from).max(2.0), bottom - top), "band");
        }
    }

    /// The gaps that begin with an ask which was not met.
    fn missed(&self) -> impl Iterator<Item = &Gap> {
        self.gaps.iter().filter(|g| g.kind == GapKind::Missing && !g.who.is_empty())
    }

    /// The moment of each ask that was not met, through all rows.
    fn ask_lines(&mut self, top: f64, bottom: f64) {
        let mut places: Vec<f64> = self.missed().map(|g| self.x(g.from)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup_by(|a, b| (*a - *b).abs() < 6.0);
        for x in places {
            self.pen.line((x, top), (x, bottom), "asked");
        }
    }

    fn cuts(&mut self, top: f64, bottom: f64) {
        for (place, left_out) in self.scale.cuts() {
            let x = LEFT + place;
            self.pen.rect((x - 9.0, top), (18.0, bottom - top), "cut");
            for side in [x - 9.0, x + 9.0] {
                self.pen.line((side, top), (side, bottom), "cutline");
            }
            self.pen.text((x, top - 8.0), Anchor::Middle, "cuttext", &duration(left_out));
        }
    }

    fn section(&mut self, title: &str) {
        self.y += 8.0;
        self.pen.line((MARGIN, self.y), (WIDTH - MARGIN, self.y), "rule");
        self.pen.text((MARGIN, self.y + 16.0), Anchor::Start, "section", title);
        self.y += 22.0;
    }

    fn label(&mut self, text: &str, class: &str, size: f64, baseline: f64) {
        let room = LEFT - MARGIN - 12.0;
        self.pen.text((MARGIN, baseline), Anchor::Start, class, &fit(text, size, room));
    }

    fn result(&mut self, text: &str, class: &str, size: f64, baseline: f64) {
        let room = WIDTH - RIGHT - MARGIN - 12.0;
        self.pen.text((RIGHT + 12.0, baseline), Anchor::Start, class, &fit(text, size, room));
    }

    fn consumers(&mut self) {
        let units = self.timeline.rows();
        if units.is_empty() {
            return;
        }
        self.section("Services");
        let more = units.len().saturating_sub(MOST_ROWS);
        for unit in units.iter().take(MOST_ROWS) {
            self.unit(unit);
        }
        self.and_more(more);
    }

    fn unit(&mut self, unit: &UnitBar) {
        let clock = &self.timeline.clock;
        let (y, middle) = (self.y, self.y + UNIT_ROW / 2.0);
        let began = unit.began.map(|at| clock.moment(at));
        let ended = unit.ended.map(|at| clock.moment(at));
        let (class, said) = match (unit.outcome, &ended) {
            (Outcome::Good, Some(at)) => ("unit good", format!("up at {at}")),
            (Outcome::Good, None) => ("unit good", "up".to_owned()),
            (Outcome::Failed, Some(at)) => ("unit bad", format!("FAILED at {at}")),
            (Outcome::Failed, None) => ("unit bad", "FAILED".to_owned()),
            (Outcome::NeverRan, _) => ("unit bad", "never ran".to_owned()),
            (Outcome::Unknown, _) => {
                ("unit", began.as_deref().map_or_else(String::new, |at| format!("from {at}")))
            }
        };
        self.pen.open(&format!("{}: {said}", unit.name));
        let never = unit.outcome == Outcome::NeverRan;
        self.label(&unit.name, if never { "label red" } else { "label" }, 13.0, middle + 5.0);
        match (unit.began, unit.ended) {
            (None, _) => {
                self.pen.line(
                    (LEFT, middle),
                    (RIGHT, middle),
                    if never { "never" } else { "grid" },
                );
            }
            (Some(from), until) => {
                let from = self.x(from);
                let until = until.map_or(from + 6.0, |at| self.x(at)).max(from + 6.0);
                self.pen.rect((from, y + 5.0), (until - from, UNIT_ROW - 10.0), class);
            }
        }
        let red = unit.outcome == Outcome::Failed || never;
        self.result(&said, if red { "result red" } else { "result" }, 13.0, middle + 5.0);
        self.asks(unit, middle);
        self.pen.close();
        self.y += UNIT_ROW;
    }

    /// The asks of one unit: a mark each, and one label for all.
    fn asks(&mut self, unit: &UnitBar, middle: f64) {
        let asks: Vec<&Ask> = self.timeline.asks.iter().filter(|a| a.who == unit.name).collect();
        let Some(first) = asks.first() else { return };
        let missed =
            |ask: &Ask| self.gaps.iter().any(|g| g.kind == GapKind::Missing && g.covers(ask));
        let unmet: Vec<&&Ask> = asks.iter().filter(|a| missed(a)).collect();
        let named = unmet.first().map_or(first, |a| *a);
        let others = asks.len() - 1;
        let mut label = format!("asks for {}", named.netdev);
        if others > 0 {
            label.push_str(&format!(" and {others} more"));
        }
        match unmet.len() {
            0 => label.push_str(": there"),
            _ if others == 0 => label.push_str(": NOT PRESENT"),
            n => label.push_str(&format!(": {n} NOT PRESENT")),
        }
        let red = !unmet.is_empty();
        let mut marks: Vec<(f64, bool)> = asks.iter().map(|a| (self.x(a.at), missed(a))).collect();
        // Red ones over the others.
        marks.sort_by_key(|(_, missed)| *missed);
        for (x, missed) in &marks {
            let class = if *missed { "mark red" } else { "mark green" };
            let points = [(x - 7.0, middle - 9.0), (x + 7.0, middle - 9.0), (*x, middle + 5.0)];
            self.pen.shape(&points, class);
        }
        let class = if red { "ask red" } else { "ask green" };
        let text = fit(&label, 13.0, RIGHT - LEFT);
        // Behind the unit's bar, between the marks there if there is no room behind the last, or
        // else before all.
        let bar = self.end_of(unit);
        let behind = marks.iter().map(|(x, _)| *x).filter(|x| *x > bar);
        let mut from: Vec<f64> = behind.chain([bar]).collect();
        from.sort_by(f64::total_cmp);
        let until = from.iter().skip(1).map(|x| x - 7.0).chain([RIGHT]);
        let width = 14.0 + pen::width(&text, 13.0);
        match from.iter().zip(until).filter(|(from, until)| *from + width < *until).last() {
            Some((from, _)) => {
                self.pen.text((from + 11.0, middle + 5.0), Anchor::Start, class, &text);
            }
            None => {
                let begin = marks.iter().map(|(x, _)| *x).fold(RIGHT, f64::min);
                let begin = unit.began.map_or(begin, |at| self.x(at).min(begin));
                self.pen.text((begin - 11.0, middle + 5.0), Anchor::End, class, &text);
            }
        }
    }

    fn end_of(&self, unit: &UnitBar) -> f64 {
        unit.ended.or(unit.began).map_or(LEFT, |at| self.x(at))
    }

    fn modules(&mut self) {
        if self.timeline.modules.is_empty() {
            return;
        }
        self.section("Modules");
        let modules = &self.timeline.modules;
        for module in modules.iter().take(MOST_ROWS) {
            let middle = self.y + UNIT_ROW / 2.0;
            let x = self.x(module.at);
            let said = format!("loaded {}", self.timeline.clock.moment(module.at));
            self.pen.open(&format!("{}: {said} {}", module.name, module.remark));
            self.label(&module.name, "label", 13.0, middle + 5.0);
            self.result(&said, "result", 13.0, middle + 5.0);
            self.pen.line((LEFT, middle), (x, middle), "dots");
            self.pen.shape(
                &[(x, middle - 8.0), (x + 8.0, middle), (x, middle + 8.0), (x - 8.0, middle)],
                "module",
            );
            let right = RIGHT - x - 13.0;
            self.beside((x, middle), 13.0, (right, right > x - LEFT), &module.remark);
            self.pen.close();
            self.y += UNIT_ROW;
        }
        self.and_more(modules.len().saturating_sub(MOST_ROWS));
    }

    /// A small text right of a mark, or left of it where it has more room.
    fn beside(
        &mut self,
        (x, middle): (f64, f64),
        gap: f64,
        (right, is_wide): (f64, bool),
        text: &str,
    ) {
        if text.is_empty() {
            return;
        }
        let (at, anchor, room) = match is_wide || pen::width(text, 12.0) <= right {
            true => (x + gap, Anchor::Start, right),
            false => (x - gap, Anchor::End, x - LEFT - gap),
        };
        self.pen.text((at, middle + 4.0), anchor, "small", &fit(text, 12.0, room));
    }

    fn notes(&mut self) {
        if self.timeline.notes.is_empty() {
            return;
        }
        self.section("Log excerpts");
        for note in self.timeline.notes.iter().take(MOST_NOTES) {
            let (x, middle) = (self.x(note.at), self.y + UNIT_ROW / 2.0);
            let at = self.timeline.clock.moment(note.at);
            self.pen.open(&format!("{at} {}", note.text));
            self.label(&at, "label", 13.0, middle + 5.0);
            self.pen.rect((x - 3.0, middle - 6.0), (6.0, 12.0), "note");
            let right = WIDTH - MARGIN - x - 12.0;
            self.beside((x, middle), 12.0, (right, right > 500.0), &note.text);
            self.pen.close();
            self.y += UNIT_ROW;
        }
        self.and_more(self.timeline.notes.len().saturating_sub(MOST_NOTES));
    }

    fn and_more(&mut self, more: usize) {
        if more > 0 {
            self.y += 16.0;
            self.label(&format!("... and {more} more"), "small", 12.0, self.y);
            self.y += 6.0;
        }
    }

    /// The meaning of each sign that is drawn.
    fn legend(&mut self) {
        self.y += 24.0;
        let mut x = MARGIN;
        let rungs = Rung::ALL.into_iter().zip(pen::RUNG_CLASSES);
        let rungs = rungs.map(|(rung, class)| (class, &BOX[..], rung.word()));
        for (class, shape, text) in rungs.chain(SIGNS) {
            if !self.pen.has(class) {
                continue;
            }
            let width = 34.0 + pen::width(text, 12.0);
            if x + width > WIDTH - MARGIN {
                (x, self.y) = (MARGIN, self.y + 20.0);
            }
            let points: Vec<(f64, f64)> =
                shape.iter().map(|(right, down)| (x + right, self.y - 11.0 + down)).collect();
            self.pen.shape(&points, class);
            self.pen.text((x + 19.0, self.y), Anchor::Start, "small", text);
            x += width;
        }
    }
}

type Shape = [(f64, f64)];
const BOX: [(f64, f64); 4] = [(0.0, 0.0), (14.0, 0.0), (14.0, 14.0), (0.0, 14.0)];
const DIAMOND: [(f64, f64); 4] = [(7.0, -1.0), (15.0, 7.0), (7.0, 15.0), (-1.0, 7.0)];
const DOWN: [(f64, f64); 3] = [(0.0, 0.0), (14.0, 0.0), (7.0, 14.0)];
const UP: [(f64, f64); 3] = [(0.0, 14.0), (14.0, 14.0), (7.0, 0.0)];
const BAR: [(f64, f64); 4] = [(4.0, 1.0), (10.0, 1.0), (10.0, 13.0), (4.0, 13.0)];

/// The signs beside the states of a port: class, shape, meaning.
const SIGNS: [(&str, &Shape, &str); 12] = [
    ("gap missing", &BOX, "requested, not present"),
    ("gap down", &BOX, "present, not configured"),
    ("unit", &BOX, "unit starts"),
    ("unit good", &BOX, "unit started"),
    ("unit bad", &BOX, "unit failed"),
    ("mark red", &DOWN, "asks, not present"),
    ("mark green", &DOWN, "asks, present"),
    ("module", &DIAMOND, "module loaded"),
    ("setup", &UP, "set up"),
    ("declined", &UP, "not set up by its network service"),
    ("address", &DIAMOND, "has an address"),
    ("note", &BAR, "log line"),
];

#[cfg(test)]
mod tests;
