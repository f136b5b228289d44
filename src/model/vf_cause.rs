//! How a step at a VF failed, and by what its text is known in a log.

use nix::errno::Errno;

use super::{Use, used_by};

/// How a step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepFailure {
    #[error("{tried}: {said}")]
    Refused {
        /// What was tried on what: `write "8" to /sys/...`.
        tried: String,
        said: String,
        /// Its error number, where it gave one.
        errno: Option<Errno>,
    },
    #[error("{}", used_by(.0))]
    InUse(Vec<Use>),
    /// It had not ended when the deadline came; the child is still at it.
    #[error("the step did not finish before the deadline; a child process is still running")]
    Unfinished,
    /// It was not tried: there was no time left.
    #[error("the deadline or a signal ended the run before this step")]
    NotBegun,
    /// It was not tried, or the child came to nothing.
    #[error("{0}")]
    Other(String),
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

/// What the text of a dropped setting says, by which it is known in a log.
pub const DROPPED: &str = "write succeeded: the firmware ignored it";

/// What the text of a refused setting says, by which it is known in a log.
pub const REFUSED: &str = "and the change was refused: ";
