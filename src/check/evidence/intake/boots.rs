//! Which boot a line belongs to: the lines of a source are cut into parts, one for each boot that
//! it tells of, and the parts of all sources are put together.

use std::time::Duration;

use super::super::event::{Kind, When};
use super::super::{Boot, LeftOut};
use super::Intake;
use super::order::{join, order};
use super::part::Part;
use crate::names::Moment;

/// Events kept in all: whole boots go for more, the oldest first.
pub(super) const ALL: usize = 40_000;
/// Parts that are told apart while logs are read.
const PARTS: usize = 1024;

impl Boot {
    /// The boot of these parts.
    pub(super) fn of(parts: Vec<Part>) -> Self {
        let first = |text: fn(&Part) -> Option<&String>| parts.iter().find_map(text).cloned();
        Self {
            id: first(|part| part.id.as_ref()),
            begins: first(|part| Some(&part.begins).filter(|b| !b.is_empty())).unwrap_or_default(),
            left_out: LeftOut { boots: 0, words: parts.iter().any(|part| part.left_out) },
            events: join(parts),
            ..Self::default()
        }
    }
}

impl Intake {
    /// A new boot begins where the kernel greets, its clock starts again, or a
    /// card is enumerated a second time much later.
    pub(super) fn tell_boots_apart(&mut self, when: &When, text: &str, kind: &Kind) {
        /// Lines of one boot may be out of order by this much.
        const UNORDERED: Duration = Duration::from_secs(60);
        /// A kernel that has run no longer than this is just starting.
        const STARTING: Moment = Moment::from_usec(10_000_000);
        /// A card that is enumerated again after this long, by a clock that goes
        /// on over a boot, was not there in between, microseconds.
        const LONG: i64 = 600_000_000;

        let greets = text.starts_with("Linux version ");
        let mut new = text.starts_with("-- Reboot --") || text.starts_with("-- Boot ");
        if let Some(now) = when.monotonic {
            // The excerpts of one boot may come in any order: only a kernel that
            // is just starting is another one.
            new |= self.last_monotonic.is_some_and(|last| now + UNORDERED < last && now < STARTING);
            self.last_monotonic = Some(now);
        }
        new |= greets && self.current().is_some_and(|part| part.kept.len() > 1);
        let enumerated = matches!(kind, Kind::PciFunction { .. });
        if let Kind::PciFunction { address, .. } = kind
            && when.monotonic.is_none()
        {
            match self.enumerated.iter().find(|(a, _)| a == address) {
                Some((_, first)) => new |= when.since(first).is_some_and(|gap| gap > LONG),
                None if self.enumerated.len() < 4096 => {
                    self.enumerated.push((address.clone(), when.clone()));
                }
                None => {}
            }
        }
        // A journal's entries name their boot.
        let new = new && self.current().is_some_and(|p| p.kept.len() > 0 && p.id.is_none());
        if new || self.part.is_none() {
            self.next_part(None, when);
            if let Kind::PciFunction { address, .. } = kind {
                self.enumerated.push((address.clone(), when.clone()));
            }
        }
        let is_first = self.current().is_some_and(|part| part.kept.len() == 0);
        let starting = greets || enumerated || when.monotonic.is_some_and(|now| now < STARTING);
        if let Some(part) = self.current_mut() {
            part.starts |= new || is_first && starting;
            part.sees(when);
        }
    }

    pub(super) fn current(&self) -> Option<&Part> {
        self.parts.get(self.part?)
    }

    pub(super) fn current_mut(&mut self) -> Option<&mut Part> {
        self.parts.get_mut(self.part?)
    }

    /// Entries of boot `id` follow.
    pub(super) fn boot_of(&mut self, id: String, when: &When) {
        let is_it = |part: &Part| part.source == self.source && part.id.as_ref() == Some(&id);
        if !self.current().is_some_and(is_it) {
            match self.parts.iter().position(is_it) {
                Some(at) => self.part = Some(at),
                None => self.next_part(Some(id), when),
            }
        }
    }

    fn next_part(&mut self, id: Option<String>, when: &When) {
        self.enumerated.clear();
        self.part = Some(self.parts.len());
        let begins = when.stamp.to_string();
        self.parts.push(Part { source: self.source, id, begins, ..Part::default() });
        if self.parts.len() > PARTS {
            self.forget(|parts, _| parts > PARTS / 2);
        }
    }

    /// Make room for the lines of other boots than the oldest.
    pub(super) fn make_room(&mut self) {
        if self.kept > ALL {
            // A little more, not to do it for each line.
            self.forget(|_, kept| kept > ALL - ALL / 40);
        }
    }

    /// Forget whole boots, the oldest first, while there are too many parts or lines. The one
    /// that is being read stays: how old it is shows when it has been read. What else is of it
    /// goes if it alone is too much.
    fn forget(&mut self, is_too_much: impl Fn(usize, usize) -> bool) {
        let names: Vec<&str> = self.sources.iter().map(|s| s.name.as_str()).collect();
        let (mut left, mut kept, mut gone) = (self.parts.len(), self.kept, Vec::new());
        let lines = |at: &usize| self.parts.get(*at).map_or(0, |part| part.kept.len());
        let mut boots = order(&self.parts, &names);
        let is_read = |boot: &Vec<usize>| self.part.is_some_and(|at| boot.contains(&at));
        let newest = boots.iter().position(is_read).map(|at| boots.remove(at));
        let others = boots.into_iter().map(|boot| (1, boot));
        let its = newest.into_iter().flatten().filter(|at| Some(*at) != self.part);
        for (whole, parts) in others.chain(its.map(|at| (0, vec![at]))) {
            if !is_too_much(left, kept) {
                break;
            }
            left -= parts.len();
            kept -= parts.iter().map(lines).sum::<usize>();
            self.left_out.boots += whole;
            self.left_out.words |= whole == 0;
            gone.extend(parts);
        }
        self.kept = kept;
        gone.sort_unstable();
        for at in gone.into_iter().rev() {
            self.parts.remove(at);
            self.part = self.part.map(|part| part - usize::from(at < part));
        }
    }
}
