//! A part of a source: its lines of one boot.

use std::collections::BTreeSet;

use super::super::event::{Event, When};
use super::kept::Kept;

/// Lines of one source that are of one boot.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) source: u16,
    /// The journal's boot id, where known.
    pub(super) id: Option<String>,
    /// The kernel starts in it.
    pub(super) starts: bool,
    /// When its first line was written, as it was written.
    pub(super) begins: String,
    /// When the first and the last of its lines were written.
    pub(super) wall: Option<(u64, u64)>,
    /// Lines, or what was made of them at last.
    pub(super) kept: Kept,
    pub(super) events: Vec<Event>,
    /// The last word on an object may have been left out.
    pub(super) left_out: bool,
    /// PCI functions of the fabric of which a line is kept that tells nothing else; that without one
    /// names the fabric.
    pub(super) named: BTreeSet<Box<str>>,
}

impl Part {
    /// Take notice of when a line was written.
    pub(super) fn sees(&mut self, when: &When) {
        if let Some(wall) = when.wall {
            self.wall = Some((self.wall.map_or(wall, |(first, _)| first), wall));
        }
    }
}
