//! What the system refuses.

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// Something that was tried, and that the system refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{tried}: {said}")]
pub struct Refusal {
    /// What was tried on what, for people: `write "8" to /sys/...`.
    pub tried: String,
    /// The error's number, where it has one.
    pub errno: Option<i32>,
    /// What the system answered, for people.
    pub said: String,
}

impl Refusal {
    pub fn errno(&self) -> Option<Errno> {
        self.errno.map(Errno::from_raw)
    }

    /// What was asked about went away meanwhile.
    pub fn is_absent(&self) -> bool {
        matches!(self.errno(), Some(Errno::ENOENT | Errno::ENOTDIR | Errno::ENODEV | Errno::ENXIO))
    }
}
