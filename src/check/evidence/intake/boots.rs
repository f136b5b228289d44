//! Which boot a line belongs to.

use super::super::Boot;
use super::super::event::{Kind, When};
use super::{BOOTS, Intake};

impl Intake {
    /// A new boot begins where the kernel greets, its clock starts again, or a
    /// card is enumerated a second time much later.
    pub(super) fn tell_boots_apart(&mut self, when: &When, text: &str, kind: &Kind) {
        /// Lines of one boot may be out of order by this much, microseconds.
        const UNORDERED: u64 = 60_000_000;
        /// A card that is enumerated again after this long, by a clock that goes
        /// on over a boot, was not there in between, microseconds.
        const LONG: i64 = 600_000_000;

        let mut new = false;
        if let Some(now) = when.monotonic {
            let jumped = self.last_monotonic.is_some_and(|last| now + UNORDERED < last);
            // The excerpts of one boot may come in any order: only a kernel that
            // is just starting is another one.
            new = jumped && now < UNORDERED / 6;
            self.last_monotonic = Some(now);
        }
        if text.starts_with("-- Reboot --") || text.starts_with("-- Boot ") {
            new = true;
        }
        if text.starts_with("Linux version ") {
            new = self.current().is_some_and(|b| b.events.len() > 1);
        }
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
        if new && self.current().is_some_and(|b| !b.events.is_empty() && b.id.is_none()) {
            self.next_boot(None, when);
            if let Kind::PciFunction { address, .. } = kind {
                self.enumerated.push((address.clone(), when.clone()));
            }
        }
    }

    pub(super) fn current(&self) -> Option<&Boot> {
        self.evidence.boots.get(self.boot)
    }

    /// Entries of `id` follow. Journals of one host are many files, whose
    /// entries of one boot belong together.
    pub(super) fn boot_of(&mut self, id: String, when: &When) {
        if self.current().is_some_and(|b| b.id.as_ref() == Some(&id)) {
            return;
        }
        if let Some(at) = self.evidence.boots.iter().position(|b| b.id.as_ref() == Some(&id)) {
            self.boot = at;
            return;
        }
        match self.evidence.boots.get_mut(self.boot) {
            Some(first) if first.id.is_none() && first.events.is_empty() => first.id = Some(id),
            _ => self.next_boot(Some(id), when),
        }
    }

    fn next_boot(&mut self, id: Option<String>, when: &When) {
        self.enumerated.clear();
        if self.evidence.boots.len() < BOOTS {
            self.kept.fill(0);
            self.kept_nameless = 0;
            self.evidence.boots.push(Boot {
                id,
                begins: when.stamp.to_string(),
                ..Boot::default()
            });
        } else if let Some(last) = self.evidence.boots.last_mut() {
            last.id = id;
        }
        self.boot = self.evidence.boots.len().saturating_sub(1);
    }
}
