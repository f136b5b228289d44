//! Writes SVG: a handful of shapes, every text escaped.

use std::fmt::Write;

use crate::names::mark;

/// Where a text is held.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing under way.
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
