//! What a rule says.

use serde::{Serialize, Serializer};

use super::advice::Advice;
use super::common::{Code, Report};
use crate::names::Object;

pub use super::common::Severity;

/// How sure the rule is. The order is the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The program that failed said so itself.
    High,
    /// It follows from what was said, and little else would explain it.
    Medium,
    /// It fits what was seen; something else may fit too.
    Low,
}

/// A line that a finding rests on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quote {
    /// Where it stands: the file's name as it was given, or `live host`.
    pub source: String,
    /// Line number, from 1; 0, in JSON `null`, where a source has no lines.
    #[serde(serialize_with = "numbered")]
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub line: u64,
    /// The time as it is written there; in JSON `null` where there is none.
    #[serde(serialize_with = "or_null")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub time: String,
    /// The text, control characters replaced.
    pub text: String,
}

/// What a rule has found, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// The name by which programs know the diagnosis.
    #[cfg_attr(test, schemars(with = "String"))]
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: a PCI address, a port, an interface, a unit, a module; `null`
    /// for the whole host.
    #[serde(rename = "object", serialize_with = "super::common::objects::serialize")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub objects: Vec<Object>,
    /// What is wrong, in one sentence; in JSON `message`.
    #[serde(rename = "message")]
    pub summary: String,
    /// What to do, one step each.
    pub advice: Vec<Advice>,
    /// How sure the rule is.
    pub confidence: Confidence,
    /// The chain of cause, first cause first, one sentence each.
    pub chain: Vec<String>,
    /// What it rests on.
    pub evidence: Vec<Quote>,
    /// The boot it is about, where the evidence holds several.
    pub boot: Option<String>,
    /// The code of the finding above that caused this one.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub caused_by: Option<Code>,
}

impl Finding {
    /// A finding without chain, evidence and advice yet.
    pub fn new(
        code: Code,
        severity: Severity,
        confidence: Confidence,
        summary: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity,
            objects: Vec::new(),
            confidence,
            summary: summary.into(),
            chain: Vec::new(),
            evidence: Vec::new(),
            advice: Vec::new(),
            boot: None,
            caused_by: None,
        }
    }

    /// Sorts errors before warnings before notes; what is as grave keeps its order.
    pub fn worst_first(findings: &mut [Self]) {
        findings.sort_by_key(|finding| finding.severity);
    }

    /// About `object`.
    #[must_use]
    pub fn about(self, object: impl Into<Object>) -> Self {
        self.about_all([object])
    }

    /// About all of `objects`, as far as they are known.
    #[must_use]
    pub fn about_all(self, objects: impl IntoIterator<Item = impl Into<Object>>) -> Self {
        Self { objects: objects.into_iter().map(Into::into).collect(), ..self }
    }

    /// With the chain of cause.
    #[must_use]
    pub fn chain<S: Into<String>>(mut self, links: impl IntoIterator<Item = S>) -> Self {
        self.chain.extend(links.into_iter().map(Into::into));
        self
    }

    /// With evidence. Equal lines are taken once.
    #[must_use]
    pub fn quoting(mut self, quotes: impl IntoIterator<Item = Quote>) -> Self {
        for quote in quotes {
            if !self.evidence.contains(&quote) {
                self.evidence.push(quote);
            }
        }
        self
    }

    /// With steps that only look.
    #[must_use]
    pub fn look<S: Into<String>>(self, steps: impl IntoIterator<Item = S>) -> Self {
        self.steps(steps.into_iter().map(Advice::look))
    }

    /// With steps that repair this boot.
    #[must_use]
    pub fn now<S: Into<String>>(self, steps: impl IntoIterator<Item = S>) -> Self {
        self.steps(steps.into_iter().map(Advice::now))
    }

    /// With steps that repair every later boot.
    #[must_use]
    pub fn permanent<S: Into<String>>(self, steps: impl IntoIterator<Item = S>) -> Self {
        self.steps(steps.into_iter().map(Advice::permanent))
    }

    /// With what to do. Equal steps are taken once.
    #[must_use]
    pub fn steps(mut self, steps: impl IntoIterator<Item = Advice>) -> Self {
        for step in steps {
            if !self.advice.contains(&step) {
                self.advice.push(step);
            }
        }
        self
    }
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Read {
    /// The files and streams, in the order they were read.
    pub sources: Vec<ReadSource>,
    /// How many boots they hold lines of.
    pub boots: usize,
    /// The time of the first line, as it is written; in JSON `null` where none is known.
    #[serde(serialize_with = "or_null")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub begins: String,
    /// The time of the last line that means something to ibprov.
    #[serde(serialize_with = "or_null")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub ends: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn numbered<S: Serializer>(line: &u64, s: S) -> Result<S::Ok, S::Error> {
    Some(*line).filter(|line| *line > 0).serialize(s)
}

fn or_null<S: Serializer>(text: &str, s: S) -> Result<S::Ok, S::Error> {
    Some(text).filter(|text| !text.is_empty()).serialize(s)
}

/// A file or stream that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadSource {
    /// Its name as it was given.
    pub name: String,
    /// How many lines were read.
    pub lines: u64,
}

/// All that was found: root causes first, each followed by its consequences.
pub type Diagnosis = Report<ReadEvidence, Finding>;

/// What a diagnosis rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadEvidence {
    /// What it rests on.
    pub read: Read,
}
