//! What a rule says.

use serde::Serialize;

use super::advice::Advice;

/// The stable name of a diagnosis, kebab-case.
pub type Code = &'static str;

/// How much it matters. The order is the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// InfiniBand, or what needs it, does not work.
    Error,
    /// Something failed, and InfiniBand may work all the same.
    Warning,
    /// Nothing is wrong with what was seen.
    Info,
}

/// How sure the rule is. The order is the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
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
pub struct Quote {
    /// Where it stands: the file's name as it was given, or `live host`.
    pub source: String,
    /// Line number, from 1; 0 where a source has no lines.
    pub line: u64,
    /// The time as it is written there; empty where there is none.
    pub time: String,
    /// The text, control characters replaced.
    pub text: String,
}

/// What a rule has found, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name by which programs know the diagnosis.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// How sure the rule is.
    pub confidence: Confidence,
    /// What is wrong, in one sentence.
    pub summary: String,
    /// The chain of cause, first cause first, one sentence each.
    pub chain: Vec<String>,
    /// What it rests on.
    pub evidence: Vec<Quote>,
    /// What to do, one step each.
    pub advice: Vec<Advice>,
    /// The boot it is about, where the evidence holds several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The code of the finding above that caused this one.
    #[serde(skip_serializing_if = "Option::is_none")]
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
            confidence,
            summary: summary.into(),
            chain: Vec::new(),
            evidence: Vec::new(),
            advice: Vec::new(),
            boot: None,
            caused_by: None,
        }
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

/// The short answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// InfiniBand came up, or there is none and nothing of it failed.
    Healthy,
    /// Something failed, but not InfiniBand itself.
    Degraded,
    /// InfiniBand, or what needs it, does not work.
    Failed,
    /// Nothing is known to be wrong, and errors were logged that nothing explains.
    Unexplained,
    /// The evidence does not tell.
    Unknown,
}

impl Verdict {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
            Self::Unexplained => "unexplained",
            Self::Unknown => "unknown",
        }
    }

    /// The exit code. `strict`: what was not proved to be good is bad.
    #[must_use]
    pub const fn exit_code(self, strict: bool) -> u8 {
        match self {
            Self::Failed | Self::Degraded => 1,
            Self::Unexplained | Self::Unknown if strict => 1,
            Self::Healthy | Self::Unexplained | Self::Unknown => 0,
        }
    }
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Read {
    /// The files and streams, in the order they were read.
    pub sources: Vec<ReadSource>,
    /// How many boots they hold lines of.
    pub boots: usize,
    /// The time of the first line, as it is written; empty where none is known.
    pub begins: String,
    /// The time of the last line that means something to ibprov.
    pub ends: String,
}

/// A file or stream that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadSource {
    /// Its name as it was given.
    pub name: String,
    /// How many lines were read.
    pub lines: u64,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Version of this format.
    pub schema: u32,
    /// The short answer.
    pub verdict: Verdict,
    /// What it rests on.
    pub read: Read,
    /// Root causes first, each followed by its consequences.
    pub findings: Vec<Finding>,
}
