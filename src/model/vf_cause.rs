//! How a step at a VF failed, and by what its text is known in a log.

use nix::errno::Errno;

use super::Refusal;

/// How a step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepFailure {
    #[error(transparent)]
    Refused(#[from] Refusal),
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
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Refused(refusal) => refusal.errno(),
            _ => None,
        }
    }
}

/// What the text of a dropped setting says, by which it is known in a log.
pub const DROPPED: &str = "write succeeded: the firmware ignored it";

/// What the text of a refused setting says, by which it is known in a log.
pub const REFUSED: &str = "and the change was refused: ";
