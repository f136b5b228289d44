//! Writes SVG: a handful of shapes, every text escaped; colours and type.

use std::fmt::Write;

use crate::names::mark;

/// Where a text is held.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Default)]
pub(super) struct Pen(String);

impl Pen {
    pub(super) fn rect(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), class: &str) {
        let (w, h) = (w.max(0.0), h.max(0.0));
        self.add(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}" class="{class}"/>"#
        ));
    }

    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.add(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" class="{class}"/>"#
        ));
    }

    /// A closed shape through these points.
    pub(super) fn shape(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.add(format_args!(r#"<polygon points="{}" class="{class}"/>"#, points.join(" ")));
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="{class}">{}</text>"#,
            escape(text)
        ));
    }

    /// What is drawn until [`Pen::close`] belongs together and shows `title`
    /// when it is pointed at.
    pub(super) fn open(&mut self, title: &str) {
        self.add(format_args!("<g><title>{}</title>", escape(title)));
    }

    pub(super) fn close(&mut self) {
        self.add(format_args!("</g>"));
    }

    pub(super) fn finish(self, (w, h): (f64, f64), title: &str, style: &str) -> String {
        let title = escape(title);
        format!(
            concat!(
                r#"<?xml version="1.0" encoding="UTF-8"?>"#,
                "\n",
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0} {h:.0}" "#,
                r#"width="{w:.0}" height="{h:.0}" role="img">"#,
                "\n<title>{title}</title>\n{style}\n",
                r#"<rect x="0" y="0" width="{w:.0}" height="{h:.0}" class="paper"/>"#,
                "\n{body}</svg>\n"
            ),
            w = w,
            h = h,
            title = title,
            style = style,
            body = self.0
        )
    }

    /// Something of this class was drawn.
    pub(super) fn has(&self, class: &str) -> bool {
        self.0.contains(&format!("class=\"{class}\""))
    }

    /// What another pen drew, over this one's.
    pub(super) fn append(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{element}");
    }
}

/// Text as XML has it, safe as content and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars().map(mark) {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Width of a text in a sans-serif font of this size, on the safe side.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let wide = |c: char| if c.is_ascii() { 0.6 } else { 1.0 };
    text.chars().map(wide).sum::<f64>() * size
}

/// The text, cut so that it fits.
pub(super) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        cut.push(c);
        if width(&cut, size) + size > room {
            cut.pop();
            break;
        }
    }
    cut.push('…');
    cut
}

/// The text in lines that fit, broken at blanks where there are any.
pub(super) fn wrap(text: &str, size: f64, room: f64, lines: usize) -> Vec<String> {
    let mut wrapped: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match wrapped.last_mut() {
            Some(line) if width(line, size) + width(word, size) + size / 2.0 <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => wrapped.push(word.to_owned()),
        }
    }
    if wrapped.len() > lines {
        wrapped.truncate(lines);
        if let Some(last) = wrapped.last_mut() {
            last.push_str(" …");
        }
    }
    wrapped.into_iter().map(|line| fit(&line, size, room)).collect()
}

/// A class for each rung, lowest first.
pub(super) const RUNG_CLASSES: [&str; 8] = ["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"];

/// Light on purpose, whatever the browser's theme: it ends up in tickets and mails.
pub(super) const STYLE: &str = "<style>
text{font-family:system-ui,'DejaVu Sans',Verdana,Arial,sans-serif;font-size:13px;fill:#222}
.paper{fill:#fff}
.title{font-size:20px;font-weight:bold}
.head{rx:5}
.head.bad{fill:#b71c1c}.head.good{fill:#2e7d32}
.headline{font-size:19px;font-weight:bold;fill:#fff}
.tick{font-size:12px;fill:#555}
.grid{stroke:#e4e4e4}
.rule{stroke:#bbb}
.section{font-size:12px;font-weight:bold;fill:#666;letter-spacing:.04em}
.small{font-size:12px;fill:#444}
.tiny{font-size:10px}
.red{fill:#b71c1c;font-weight:bold}
.green{fill:#2e7d32}
.band{fill:#f44336;fill-opacity:.13}
.asked{stroke:#b71c1c;stroke-width:1.5;stroke-dasharray:5 4}
.cut{fill:#fff;fill-opacity:.92}
.cutline{stroke:#999;stroke-dasharray:3 3}
.cuttext{font-size:12px;fill:#b06000;font-weight:bold}
.unit{fill:#9e9e9e}.unit.good{fill:#81b987}.unit.bad{fill:#d9534f}
.never{stroke:#b71c1c;stroke-dasharray:2 5}
.dots{stroke:#bbb;stroke-dasharray:1 4}
.module{fill:#6a3d9a}
.note{fill:#b06000}
.mark.red{fill:#b71c1c;stroke:#fff}.mark.green{fill:#2e7d32;stroke:#fff}
.address{fill:#2e7d32;stroke:#fff}
.setup{fill:#2e7d32;stroke:#fff}.declined{fill:#b06000;stroke:#fff}
.r1{fill:#dce9f5}.r2{fill:#bfd8ec}.r3{fill:#94c1e0}.r4{fill:#5fa2d0}
.r5{fill:#3680bd}.r6{fill:#1c619f}.r7{fill:#0d4580}.r8{fill:#082b57}
.gap.missing{fill:#f44336;fill-opacity:.45;stroke:#b71c1c}
.gap.down{fill:#ffcc80;stroke:#b06000}
.gaptext{font-weight:bold;fill:#8e0000}
.onlight{font-size:11px;fill:#123}.ondark{font-size:11px;fill:#fff}
</style>";
