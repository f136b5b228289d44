//! `ibprov check`: what is wrong with a boot.
//!
//! [`evidence`] turns logs and dumps of any kind into plain values, one boot at
//! a time; each file of [`rules`] is one diagnosis and judges those values;
//! [`rank`] puts the root cause first and hangs its consequences below it.
//! Nothing here opens a file or asks the host: the bytes come from `host`. A
//! wrong diagnosis costs its reader more than none, so a rule that is not sure
//! says so, or says nothing.

pub mod evidence;
pub mod ledger;
pub mod mask;
pub mod pattern;
pub mod predict;
pub mod rank;
pub mod rules;
pub mod secrets;

use crate::model::finding::Diagnosis;

pub use evidence::{Boot, Evidence};

/// What is wrong, judged boot by boot, the root cause first.
pub fn diagnose(evidence: &Evidence) -> Diagnosis {
    rank::diagnosis(evidence)
}
