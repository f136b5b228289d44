//! How a step at a PF failed. A value that prints itself: in JSON it is its text.

use std::fmt;

use nix::errno::Errno;
use serde::{Serialize, Serializer};

use super::Use;
use super::uses::used_by;

/// How a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepFailure {
    Refused {
        /// What was tried on what: `write "8" to /sys/...`.
        tried: String,
        said: String,
        /// Its error number, where it gave one.
        errno: Option<Errno>,
    },
    InUse(Vec<Use>),
    /// It had not ended when the deadline came; the child is still at it.
    Unfinished,
    /// The child that does it cannot be started, or was killed.
    NoChild {
        why: String,
    },
    /// It was not tried: a probe of another driver holds the VF.
    ProbeHangs,
    /// It was not tried: the VF is not there any more.
    NoSuchVf,
    /// The child answered something else.
    Unexpected {
        answer: String,
    },
}

impl StepFailure {
    /// The system's error number, where it refused with one.
    pub const fn errno(&self) -> Option<Errno> {
        match self {
            Self::Refused { errno, .. } => *errno,
            _ => None,
        }
    }
}

impl fmt::Display for StepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { tried, said, .. } => write!(f, "{tried}: {said}"),
            Self::InUse(uses) => f.write_str(&used_by(uses)),
            Self::Unfinished => write!(
                f,
                "the step did not finish before the deadline; a child process is still running"
            ),
            Self::NoChild { why } => write!(f, "cannot start a child process: {why}"),
            Self::ProbeHangs => {
                write!(f, "cannot read driver_override: a probe by another driver hangs")
            }
            Self::NoSuchVf => write!(f, "the VF has disappeared"),
            Self::Unexpected { answer } => {
                write!(f, "the child process gave an unexpected answer: {answer}")
            }
        }
    }
}

impl Serialize for StepFailure {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
