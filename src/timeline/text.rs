//! The picture for a terminal: a serial console of 80 columns is enough.
//!
//! One row per thing, time from left to right, `!` where something was asked
//! for and missing. Without UTF-8 all of it is ASCII.

use super::scale::Scale;
use super::{Gap, GapKind, Outcome, PortTrack, Timeline, UnitBar};
use crate::names::{Rung, harmless};
use crate::report::duration::duration;

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Columns, at least 60.
    pub columns: usize,
    /// The terminal shows UTF-8.
    pub unicode: bool,
    /// It shows colours and the user wants them.
    pub colour: bool,
}

/// Ports beyond these are summed up, the troubled ones shown first.
const MOST_PORTS: usize = 16;
const MOST_UNITS: usize = 12;
const LABEL: usize = 22;
const RESULT: usize = 18;

/// A cell of the plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Blank,
    Rung(Rung),
    Missing,
    Down,
    Running,
    Failed,
    Mark,
    Asked,
    Unmet,
    Cut,
}

/// Draw the boot. Lines end with a line break and have no trailing blanks.
pub fn draw(timeline: &Timeline, terminal: Terminal) -> String {
    let columns = terminal.columns.clamp(60, 240);
    let is_empty = timeline.ports.is_empty() && timeline.units.is_empty();
    if timeline.moments().is_empty() && is_empty {
        return "there is no picture, because this log has no timestamps\n".to_owned();
    }
    let plot = columns - LABEL - RESULT - 2;
    let moments = timeline.moments();
    let mut drawing = Drawing {
        timeline,
        gaps: timeline.gaps(),
        scale: Scale::new(&moments, places(plot.saturating_sub(3)), 3.0),
        terminal,
        plot,
        columns,
        out: String::new(),
    };
    drawing.whole();
    drawing.out
}

#[allow(clippy::cast_precision_loss, reason = "a terminal has few columns")]
const fn places(columns: usize) -> f64 {
    columns as f64
}

struct Drawing<'a> {
    timeline: &'a Timeline,
    gaps: Vec<Gap>,
    scale: Scale,
    terminal: Terminal,
    plot: usize,
    columns: usize,
    out: String,
}

impl Drawing<'_> {
    fn whole(&mut self) {
        self.line(&self.timeline.title.clone());
        if let Some((bad, headline)) = self.timeline.headline() {
            let sign = if bad { "!! " } else { "ok " };
            for (i, text) in wrap(&headline, self.columns - 3).iter().enumerate() {
                let sign = if i == 0 { sign } else { "   " };
                let text = self.plain(text);
                let coloured =
                    self.coloured(&format!("{sign}{text}"), if bad { RED } else { GREEN });
                self.out.push_str(&coloured);
                self.out.push('\n');
            }
        }
        self.axis();
        self.units();
        self.modules();
        self.ports();
        self.line(self.key());
    }

    fn column(&self, usec: u64) -> usize {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0..240")]
        let column = self.scale.place(usec).round().max(0.0) as usize;
        column.min(self.plot.saturating_sub(1))
    }

    fn axis(&mut self) {
        let mut axis = vec![' '; self.plot];
        let mut free = 0;
        for (place, usec) in self.scale.ticks(10.0, self.timeline.clock.day_usec()) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0..240")]
            let at = place.round().max(0.0) as usize;
            let label: Vec<char> = self.timeline.clock.tick(usec).chars().collect();
            if at < free || at + label.len() > self.plot {
                continue;
            }
            free = at + label.len() + 1;
            for (cell, c) in axis.iter_mut().skip(at).zip(label) {
                *cell = c;
            }
        }
        let legend = match self.timeline.clock {
            super::Clock::SinceBoot => "since the start of the kernel",
            super::Clock::Wall { ref date, .. } => date,
        };
        let cuts: Vec<String> =
            self.scale.cuts().iter().map(|(_, usec)| format!("// {}", duration(*usec))).collect();
        let axis: String = axis.into_iter().collect();
        let row = format!("{} {axis} {}", self.fixed(legend, LABEL), self.plain(&cuts.join(" ")));
        self.line(&row);
    }

    fn units(&mut self) {
        let units = self.timeline.rows();
        let more = units.len().saturating_sub(MOST_UNITS);
        for unit in units.iter().take(MOST_UNITS) {
            self.unit(unit);
        }
        if more > 0 {
            self.line(&format!("... and {more} more units"));
        }
    }

    fn unit(&mut self, unit: &UnitBar) {
        let mut cells = self.cells();
        if let Some(from) = unit.began_usec {
            let running =
                if unit.outcome == Outcome::Failed { Cell::Failed } else { Cell::Running };
            fill(
                &mut cells,
                self.column(from),
                self.column(unit.ended_usec.unwrap_or(from)),
                running,
            );
        }
        let mut unmet: Option<&str> = None;
        for ask in self.timeline.asks.iter().filter(|a| a.who == unit.name) {
            let missed = self.gaps.iter().any(|g| g.kind == GapKind::Missing && g.covers(ask));
            if missed {
                unmet = unmet.or(Some(&ask.netdev));
            }
            let mark = if missed { Cell::Unmet } else { Cell::Asked };
            let at = self.column(ask.usec);
            if let Some(cell) = cells.get_mut(at).filter(|c| **c != Cell::Unmet) {
                *cell = mark;
            }
        }
        let said = match (unmet, unit.outcome, unit.ended_usec.or(unit.began_usec)) {
            (Some(netdev), ..) => format!("no {netdev} yet"),
            (None, Outcome::NeverRan, _) => "NEVER RAN".to_owned(),
            (None, Outcome::Failed, at) => {
                format!("FAILED {}", at.map_or_else(String::new, |at| self.moment(at)))
            }
            (None, _, Some(at)) => self.moment(at),
            (None, _, None) => String::new(),
        };
        let bad = unmet.is_some() || matches!(unit.outcome, Outcome::Failed | Outcome::NeverRan);
        self.row(&unit.name, &cells, &said, bad);
    }

    fn modules(&mut self) {
        for module in self.timeline.modules.iter().take(MOST_UNITS) {
            let mut cells = self.cells();
            let said = match module.usec {
                Some(usec) => {
                    let at = self.column(usec);
                    fill(&mut cells, at, at, Cell::Mark);
                    self.moment(usec)
                }
                None => "NEVER LOADED".to_owned(),
            };
            self.row(&module.name, &cells, &said, module.usec.is_none());
        }
    }

    fn ports(&mut self) {
        let ports = &self.timeline.ports;
        let mut order: Vec<usize> = (0..ports.len()).collect();
        if ports.len() > MOST_PORTS {
            order.sort_by_key(|i| !self.gaps.iter().any(|g| g.port == Some(*i)));
        }
        for index in order.iter().take(MOST_PORTS) {
            if let Some(port) = ports.get(*index) {
                self.port(*index, port);
            }
        }
        let rest: Vec<usize> = order.into_iter().skip(MOST_PORTS).collect();
        if rest.is_empty() {
            return;
        }
        let bad = rest.iter().filter(|i| self.gaps.iter().any(|g| g.port == Some(**i))).count();
        let text = match bad {
            0 => format!("... and {} more ports without faults", rest.len()),
            bad => format!("... and {} more ports, {bad} of them late or missing", rest.len()),
        };
        self.line(&text);
    }

    fn port(&mut self, index: usize, port: &PortTrack) {
        let mut cells = self.cells();
        let end = self.plot.saturating_sub(1);
        let gaps: Vec<Gap> = self.gaps.iter().filter(|g| g.port == Some(index)).cloned().collect();
        let steps = port.steps();
        for (i, (rung, usec)) in steps.iter().enumerate() {
            let until = steps.get(i + 1).map_or(end + 1, |(_, next)| self.column(*next));
            let from = self.column(*usec);
            fill(&mut cells, from, until.saturating_sub(1).max(from), Cell::Rung(*rung));
        }
        for gap in &gaps {
            let until = gap.until_usec.map_or(end, |usec| self.column(usec).saturating_sub(1));
            let cell = if gap.kind == GapKind::Missing { Cell::Missing } else { Cell::Down };
            fill(&mut cells, self.column(gap.from_usec), until, cell);
            // The rung it got to in the end is seen all the same.
            if let (GapKind::Down, Some((rung, usec))) = (gap.kind, steps.last()) {
                let at = self.column(*usec);
                fill(&mut cells, at, at, Cell::Rung(*rung));
            }
        }
        if let Some(usec) = port.up_usec {
            let at = self.column(usec);
            fill(&mut cells, at, at, Cell::Mark);
        }
        let there = port.when(Rung::Netdev);
        let netdev = port.netdev.as_deref().unwrap_or("");
        let late = gaps.iter().find(|g| g.kind == GapKind::Missing);
        let said = match (there, late.and_then(|g| Some(g.until_usec?.saturating_sub(g.from_usec))))
        {
            (Some(_), Some(late)) => format!("{netdev} {} late", duration(late)),
            (Some(at), None) => format!("{netdev} {}", self.moment(at)),
            (None, _) => match port.missing {
                Some(rung) => format!("NO {rung} {netdev}"),
                None if netdev.is_empty() => {
                    port.highest().map_or_else(|| "not seen".to_owned(), |r| r.to_string())
                }
                None => format!("NO {netdev}"),
            },
        };
        let bad = !gaps.is_empty() || port.missing.is_some();
        // The PCI address is the first to go where there is no room.
        let label = match port.label.split_once(" (") {
            Some((short, _)) if port.label.chars().count() > LABEL => short,
            _ => &port.label,
        };
        self.row(label, &cells, &said, bad);
        if let (Some(usec), false) = (port.address_usec, netdev.is_empty()) {
            self.line(&format!("  {netdev} had an address at {}", self.moment(usec)));
        }
    }

    /// An empty row, with the cuts of the axis.
    fn cells(&self) -> Vec<Cell> {
        let mut cells = vec![Cell::Blank; self.plot];
        for (place, _) in self.scale.cuts() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0..240")]
            let at = place.max(0.0) as usize;
            fill(&mut cells, at, at, Cell::Cut);
        }
        cells
    }

    fn moment(&self, usec: u64) -> String {
        self.timeline.clock.moment(usec)
    }

    fn row(&mut self, label: &str, cells: &[Cell], said: &str, bad: bool) {
        let mut row = self.fixed(label, LABEL);
        row.push(' ');
        for cell in cells {
            let (c, colour) = self.glyph(*cell);
            match colour {
                Some(colour) => row.push_str(&self.coloured(&c.to_string(), colour)),
                None => row.push(c),
            }
        }
        row.push(' ');
        let said = self.fixed(said, RESULT);
        let said = said.trim_end();
        row.push_str(&if bad { self.coloured(said, RED) } else { said.to_owned() });
        self.out.push_str(row.trim_end());
        self.out.push('\n');
    }

    fn glyph(&self, cell: Cell) -> (char, Option<&'static str>) {
        let pick = |ascii: char, unicode: char| if self.terminal.unicode { unicode } else { ascii };
        match cell {
            Cell::Blank => (pick('.', '·'), None),
            Cell::Rung(rung) => {
                let index = Rung::ALL.iter().position(|r| *r == rung).unwrap_or_default();
                let of = |all: &str| all.chars().nth(index).unwrap_or('?');
                (pick(of("pdrnNcla"), of("▁▂▃▄▅▆▇█")), Some(BLUE))
            }
            Cell::Missing => (pick('!', '░'), Some(RED)),
            Cell::Down => (pick('~', '▒'), Some(YELLOW)),
            Cell::Running => (pick('=', '━'), None),
            Cell::Failed => (pick('x', '×'), Some(RED)),
            Cell::Mark => (pick('^', '◆'), Some(GREEN)),
            Cell::Asked => (pick('?', '▼'), Some(GREEN)),
            Cell::Unmet => (pick('!', '▼'), Some(RED)),
            Cell::Cut => (pick('/', '⁄'), None),
        }
    }

    const fn key(&self) -> &'static str {
        if self.terminal.unicode {
            "▁pci ▂driver ▃rdma ▄netdev ▅named ▆configured ▇link █active\n░ requested, not present  ▒ there but down  ◆ loaded, set up  ▼ asked  ⁄ cut"
        } else {
            "p pci d driver r rdma n netdev N named c config l link a active\n! requested, not present  ~ there but down  ^ loaded, set up  ? asked  / cut"
        }
    }

    fn coloured(&self, text: &str, colour: &str) -> String {
        if self.terminal.colour { format!("{colour}{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Safe to print, and in ASCII if it must be.
    fn plain(&self, text: &str) -> String {
        let text = harmless(text);
        if self.terminal.unicode {
            return text;
        }
        text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
    }

    /// The text in exactly so many columns.
    fn fixed(&self, text: &str, columns: usize) -> String {
        let text = self.plain(text);
        let length = text.chars().count();
        if length <= columns {
            return format!("{text:<columns$}");
        }
        let mut cut: String = text.chars().take(columns.saturating_sub(1)).collect();
        cut.push(if self.terminal.unicode { '…' } else { '>' });
        cut
    }

    fn line(&mut self, text: &str) {
        for line in text.split('\n') {
            let line: String = self.plain(line).chars().take(self.columns).collect();
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }
}

const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const BLUE: &str = "\x1b[34m";

fn fill(cells: &mut [Cell], from: usize, to: usize, with: Cell) {
    let to = to.max(from);
    cells.iter_mut().take(to + 1).skip(from).for_each(|cell| *cell = with);
}

fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.chars().take(columns).collect()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::fixtures;
    use super::*;

    const SERIAL: Terminal = Terminal { columns: 80, unicode: false, colour: false };
    const MODERN: Terminal = Terminal { columns: 80, unicode: true, colour: false };

    #[test]
    fn the_seeds_failing_boot_on_a_serial_console() {
        expect![[r#"
            node-9.domain.tld, boot of Mar 18 10:29:41
            !! ib0 appeared 80 s after network.service asked for it, and stayed down 4 d 6 h
               longer because no service configured it
            Mar 18                        10:30:00  10:30:30  10:31:00    // 4 d 6 h
            openibd.service        ................................./.... NEVER RAN
            network.service        ....!............................/.... no ib0 yet
            mlnx_interface_mgr@ib> ................................=/.... 10:31:14
            mlx5_core              .^.............................../.... 10:29:43
            ib_ipoib               ................................^/.... 10:31:13
            0000:4b:00.0           pddd!!!!!!!!!!!!!!!!!!!!!!!!!!!!n~~^nn ib0 80 s late
            p pci d driver r rdma n netdev N named c config l link a active
            ! requested, not present  ~ there but down  ^ loaded, set up  ? asked  / cut
        "#]]
        .assert_eq(&draw(&fixtures::seed_failing(), SERIAL));
    }

    #[test]
    fn eight_ports_on_a_modern_one() {
        expect![[r#"
            bed, 8 ports
            !! ib7 did not appear; networking.service asked for it; one more port is late or
               missing
            since the start of th…           5 s       10 s       15 s
            ibprov.service         ·━━━━━━━━━━━━························· 6.000 s
            networking.service     ············━━▼━━━━··················· no ib5 yet
            scratch.mount          ····················×××··············· FAILED 11.000 s
            vm: node1              ························━············· 12.000 s
            mlx5_core              ···◆·································· 2.000 s
            mlx5_ib                ·····◆································ 3.000 s
            ib_ipoib               ······◆······························· 3.200 s
            mlx5_0 port 1          ▁▁▁▂▂▅▅█████████◆█████████████████████ ib0 3.000 s
            mlx5_1 port 1          ▁▁▁▂▂▅▅▅████████◆█████████████████████ ib1 3.035 s
            mlx5_2 port 1          ▁▁▁▂▂▅▅▅████████◆█████████████████████ ib2 3.070 s
            mlx5_3 port 1          ▁▁▁▂▂▃▅▅████████◆█████████████████████ ib3 3.105 s
            mlx5_4 port 1          ▁▁▁▂▂▂▅▅████████◆█████████████████████ ib4 3.140 s
            mlx5_5 port 1          ▁▁▁▂▂▂▂▂▂▂▂▂▂▂░░░░░░░░░░░▒▒█▒▒▒▒▒▒▒◆██ ib5 5.165 s late
            mlx5_6 port 1          ▁▁▁▂▂▂▅▅████████◆█████████████████████ ib6 3.210 s
            mlx5_7 port 1          ▁▁▁▂▂▂▃▃▃▃▃▃▃▃░░░░░░░░░░░░░░░░░░░░░░░░ NO netdev ib7
            ▁pci ▂driver ▃rdma ▄netdev ▅named ▆configured ▇link █active
            ░ requested, not present  ▒ there but down  ◆ loaded, set up  ▼ asked  ⁄ cut
        "#]]
        .assert_eq(&draw(&fixtures::many(8), MODERN));
    }

    #[test]
    fn a_good_boot() {
        expect![[r#"
            node-9.domain.tld, boot of Apr 02 11:09:27
            ok the netdev existed before any service asked for it
            Apr 02                        11:09:30   11:09:35  11:09:40
            openibd.service        .............======................... 11:09:35
            network.service        ...............................====?.. 11:09:43
            mlx5_core              ..^................................... 11:09:28
            ib_ipoib               ...............^...................... 11:09:34
            0000:4b:00.0           ppdddddddddddddnnnnnnnnnnnnnnnnnnnn^nn ib0 11:09:34
            p pci d driver r rdma n netdev N named c config l link a active
            ! requested, not present  ~ there but down  ^ loaded, set up  ? asked  / cut
        "#]]
        .assert_eq(&draw(&fixtures::seed_good(), SERIAL));
    }

    #[test]
    fn a_hundred_ports_fit_a_screen_and_the_troubled_come_first() {
        let text = draw(&fixtures::many(100), SERIAL);
        assert!(text.lines().count() < 40, "{text}");
        assert!(text.contains("... and 84 more ports, 8 of them late or missing\n"), "{text}");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal_and_none_steers_it() {
        for timeline in [fixtures::hostile(), fixtures::many(100), Timeline::default()] {
            for terminal in [SERIAL, MODERN, Terminal { columns: 3, ..SERIAL }] {
                let columns = terminal.columns.clamp(60, 240);
                for line in draw(&timeline, terminal).lines() {
                    assert!(line.chars().count() <= columns, "{line}");
                    assert!(!line.chars().any(char::is_control), "{line:?}");
                    assert!(terminal.unicode || line.is_ascii(), "{line}");
                }
            }
        }
    }

    #[test]
    fn colour_only_where_it_is_wanted() {
        let coloured = draw(&fixtures::seed_failing(), Terminal { colour: true, ..SERIAL });
        assert!(coloured.contains("\x1b[1;31m!! ib0 appeared 80 s"), "{coloured:?}");
    }
}
