//! What a rule is made of.

use super::super::evidence::Boot;
use crate::report::common::Code;
use crate::report::finding::Finding;

/// A diagnosis that can be made.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub code: Code,
    /// What it means, one phrase without a full stop.
    pub meaning: &'static str,
    /// Its page, plain text: how it shows, why it happens, what to do.
    pub page: &'static str,
    /// Words of the lines it looks at, in groups where it tells them apart; case
    /// matters.
    pub needles: &'static [&'static [&'static str]],
    pub judge: Judge,
}

/// How a rule judges.
#[derive(Debug, Clone, Copy)]
pub enum Judge {
    /// By what was seen in one boot.
    Boot(fn(&Boot) -> Vec<Finding>),
    /// By the host itself, where it was looked at: `predict` does.
    Host,
    /// By what was seen and what the rules of the first kind found there.
    Rest(fn(&Boot, &[Finding]) -> Vec<Finding>),
}
