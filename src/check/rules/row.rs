//! The rows of `rules.toml`: what a rule looks for, and what it says and advises where that is
//! always the same.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Advice, Boot, Code, Confidence, Event, Finding, Needs, Severity, seen};
use crate::check::evidence::event::function;
use crate::model::advice::ToDo;
use crate::model::data::data;
use crate::names::sh;

/// What the data have of a rule.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Row {
    needles: Vec<String>,
    words: BTreeMap<String, Vec<String>>,
    #[serde(rename = "tells")]
    _tells: IgnoredAny,
    lines: Vec<Line>,
    beside: Vec<Line>,
    told: Option<Told>,
    look: Vec<Step>,
    now: Vec<Step>,
    permanent: Vec<Step>,
    kinds: BTreeMap<String, Steps>,
}

/// Steps of one kind of a finding.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Steps {
    look: Vec<Step>,
    now: Vec<Step>,
    permanent: Vec<Step>,
}

/// What it says, where no Rust does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    severity: Severity,
    /// Where a sign of life shows that InfiniBand works nevertheless.
    alive: Option<Severity>,
    confidence: Confidence,
    says: String,
    /// The object, where it is always the same.
    about: Option<String>,
    /// What of its lines the objects are.
    objects: Option<Named>,
}

/// Words of a line: one of `any`, each of `all`, none of `none`; and what it has to name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Line {
    any: Vec<String>,
    all: Vec<String>,
    none: Vec<String>,
    names: Option<Named>,
}

impl Line {
    /// The words by which it is looked for.
    fn needles(&self) -> &[String] {
        match self.any.is_empty() {
            true => self.all.get(..1).unwrap_or_default(),
            false => &self.any,
        }
    }

    fn is(&self, text: &str) -> bool {
        let has = |word: &String| text.contains(word.as_str());
        (self.any.is_empty() || self.any.iter().any(has))
            && self.all.iter().all(has)
            && !self.none.iter().any(has)
            && self.names.is_none_or(|named| named.by(text).is_some())
    }
}

/// What a line may name.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Named {
    Function,
    Module,
    RefusedModule,
}

impl Named {
    fn by(self, text: &str) -> Option<&str> {
        match self {
            Self::Function => function(text),
            Self::Module => seen::rdma_module(text),
            Self::RefusedModule => seen::refused_module(text),
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Function => "adapter",
            Self::Module | Self::RefusedModule => "module",
        }
    }
}

/// A step. One with a placeholder, `{ADDRESS}`, is taken for each object.
#[derive(Debug, Deserialize)]
struct Step {
    #[serde(flatten)]
    step: ToDo,
    /// What has to be proven of the object.
    needs: Option<Needs>,
}

impl Step {
    /// It is taken once for these `objects`, or for each of which what it needs is proven.
    fn of(&self, boot: &Boot, objects: &[&str]) -> Vec<ToDo> {
        const PLACES: [&str; 3] = ["{ADDRESS}", "{MODULE}", "{NETDEV}"];
        let has_place =
            |text: &Option<String>| text.iter().any(|text| PLACES.iter().any(|p| text.contains(p)));
        let is_for_each = has_place(&self.step.words) || has_place(&self.step.command);
        let objects = if objects.is_empty() { &[""][..] } else { objects };
        let most = if is_for_each { objects.len() } else { 1 };
        let is_proven = |at: &&&str| self.needs.is_none_or(|needs| needs.is_met(boot, at));
        let proven = objects.iter().filter(is_proven).take(most);
        let filled = |object: &&str| {
            let fill = |text: &str, place: &&str| match *object {
                "" => text.replace(place, place.trim_matches(['{', '}'])),
                object => text.replace(place, &sh(object)),
            };
            let step =
                self.step.map(|text| PLACES.iter().fold(text.to_owned(), |t, p| fill(&t, p)));
            // What a reader has to fill in first is no command.
            if is_for_each && object.is_empty() { step.to_string().into() } else { step }
        };
        proven.map(filled).collect()
    }
}

impl Row {
    /// The words by which its lines are looked for.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let of_lines = self.lines.iter().flat_map(Line::needles);
        let words = self.needles.iter().chain(self.words.values().flatten()).chain(of_lines);
        words.map(String::as_str)
    }
}

/// What the data have of the rule with `code`.
pub(super) fn row(code: Code) -> &'static Row {
    static ROWS: OnceLock<BTreeMap<Code, Row>> = OnceLock::new();
    static NONE: OnceLock<Row> = OnceLock::new();
    let read = || data(include_bytes!(concat!(env!("OUT_DIR"), "/rules.toml.gz")));
    ROWS.get_or_init(read).get(&code).unwrap_or_else(|| NONE.get_or_init(Row::default))
}

/// True if `event` is one of the lines of the rule with `code`.
pub(super) fn is_line(code: Code, event: &Event) -> bool {
    row(code).lines.iter().any(|line| line.is(&event.text))
}

/// The lines of the rule with `code`.
pub(super) fn lines(boot: &Boot, code: Code) -> Vec<&Event> {
    boot.events.iter().filter(|event| is_line(code, event)).collect()
}

/// The steps of the rule with `code` for these `objects`.
pub(super) fn steps(boot: &Boot, code: Code, objects: &[&str]) -> Vec<Advice> {
    let Row { look, now, permanent, .. } = row(code);
    advice(boot, [look, now, permanent], objects)
}

/// The steps that look, those for this boot, and those for every later one.
fn advice(boot: &Boot, [look, now, permanent]: [&[Step]; 3], objects: &[&str]) -> Vec<Advice> {
    let of = |steps: &[Step], advice: fn(ToDo) -> Advice| -> Vec<Advice> {
        steps.iter().flat_map(|step| step.of(boot, objects)).map(advice).collect()
    };
    [of(look, Advice::look), of(now, Advice::now), of(permanent, Advice::permanent)].concat()
}

/// What the rule with `code` says of `objects`, with its steps.
pub(super) fn told<'a>(
    boot: &Boot,
    code: Code,
    (severity, confidence): (Severity, Confidence),
    text: impl Into<String>,
    objects: &[&str],
    lines: impl IntoIterator<Item = &'a Event>,
) -> Finding {
    Finding::of(code, severity, confidence, text)
        .about_all(objects)
        .quoting(seen::quotes(boot, lines))
        .advise(steps(boot, code, objects))
}

/// The same with the steps of one kind of this finding.
pub(super) fn told_as<'a>(
    boot: &Boot,
    (code, kind): (Code, &str),
    (severity, confidence): (Severity, Confidence),
    text: impl Into<String>,
    objects: &[&str],
    lines: impl IntoIterator<Item = &'a Event>,
) -> Finding {
    let steps = row(code).kinds.get(kind);
    debug_assert!(steps.is_some(), "{code} has no kind {kind}");
    let steps = steps.map(|Steps { look, now, permanent }| [&look[..], now, permanent]);
    Finding::of(code, severity, confidence, text)
        .about_all(objects)
        .quoting(seen::quotes(boot, lines))
        .advise(steps.into_iter().flat_map(|steps| advice(boot, steps, objects)))
}

/// What the rule with `code`, which is all in its row, says.
pub(in crate::check) fn judge(boot: &Boot, code: Code) -> Option<Finding> {
    let row = row(code);
    let said = row.told.as_ref()?;
    let mut lines = lines(boot, code);
    let first = lines.first()?.text.trim();
    let named = |named: Named| seen::each(lines.iter().filter_map(move |e| named.by(&e.text)));
    let of = said.objects.map(named).unwrap_or_default();
    let objects = said.about.as_deref().map_or(of, |about| vec![about]);
    let noun = said.objects.map(Named::noun).unwrap_or_default();
    let text = said.says.replace("{object}", &seen::all_of(noun, &objects));
    let alive = said.alive.filter(|_| seen::sign_of_life(boot).is_some());
    let judged = (alive.unwrap_or(said.severity), said.confidence);
    lines.extend(boot.events.iter().filter(|e| {
        objects.iter().any(|object| e.text.contains(object))
            && row.beside.iter().any(|line| line.is(&e.text))
    }));
    Some(told(boot, code, judged, text.replace("{line}", first), &objects, lines))
}

#[cfg(test)]
mod tests {
    use super::super::{ALL, Judge};
    use super::*;

    #[test]
    fn each_row_is_one_of_a_rule() {
        let rows: BTreeMap<Code, Row> = toml::from_str(include_str!("rules.toml")).expect("rows");
        for (code, row) in &rows {
            let rule = super::super::rule(*code).unwrap_or_else(|| panic!("{code} has no rule"));
            let is_row = matches!(rule.judge, Judge::Row);
            assert_eq!(row.told.is_some(), is_row, "{code}");
            assert!(!is_row || !row.lines.is_empty(), "{code}");
            assert!(row.words().all(|word| word.len() >= 3), "{code}");
        }
        assert!(ALL.iter().filter(|rule| matches!(rule.judge, Judge::Row)).count() > 6);
    }
}
