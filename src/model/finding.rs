//! What `ibprov check` says: findings, and what they rest on.

use serde::Serialize;

use super::{Report, common::or_null};

pub use super::common::{Confidence, Finding, Quote, Severity};

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
    /// The lines about the fabric that report a failure.
    pub failures: Failures,
}

/// Lines about the fabric that report a failure, by what became of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failures {
    /// That a finding quotes or explains.
    pub explained: usize,
    /// That are known to be harmless.
    pub harmless: usize,
    /// Of objects that worked later.
    pub over: usize,
    /// Of each object and kind the first that nothing explains.
    pub unexplained: usize,
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
pub type Diagnosis = Report<ReadEvidence>;

/// What a diagnosis rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadEvidence {
    /// What it rests on.
    pub read: Read,
}

/// What `ibprov check --explain` says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Explained {
    /// The code that was asked for, or all.
    pub diagnoses: Vec<ExplainedCode>,
}

/// What the code of a finding means.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplainedCode {
    /// The name by which programs know it.
    pub code: &'static str,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// Its page, in Markdown.
    pub page: &'static str,
}
