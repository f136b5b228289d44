//! One file, one diagnosis: the words it looks for, how it judges a boot, its
//! page of explanation, its tests.
//!
//! A new rule is a file here, its `mod` line and its row in [`ALL`]; nothing
//! else knows it. The order of the rows is the order of findings that are
//! equally grave and equally sure: what is nearer to the root cause first.

use super::evidence::Boot;
use super::finding::{Code, Finding};

mod healthy;
mod not_infiniband;
mod unknown;

/// A diagnosis that can be made.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its stable name.
    pub code: Code,
    /// What it means, one phrase without a full stop.
    pub meaning: &'static str,
    /// Its page, plain text: how it shows, why it happens, what to do.
    pub page: &'static str,
    /// Words of the lines it looks at; case matters.
    pub needles: &'static [&'static str],
    /// Findings that are consequences of this one where both are made.
    pub causes: &'static [Code],
    /// How it judges.
    pub judge: Judge,
}

/// How a rule judges.
#[derive(Debug, Clone, Copy)]
pub enum Judge {
    /// By what was seen in one boot.
    Boot(fn(&Boot) -> Vec<Finding>),
    /// By what was seen and what the rules of the first kind found there.
    Rest(fn(&Boot, &[Finding]) -> Vec<Finding>),
}

/// Every rule.
pub const ALL: &[&Rule] = &[&healthy::RULE, &not_infiniband::RULE, &unknown::RULE];

/// The rule with `code`.
#[must_use]
pub fn rule(code: &str) -> Option<&'static Rule> {
    ALL.iter().copied().find(|r| r.code == code)
}
