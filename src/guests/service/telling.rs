//! What is said of the guests: status line, report, journal.

use log::Level;

use super::Service;
use crate::guests::order::first_before;
use crate::host::{clock, journal, state, systemd};
use crate::report::events as kinds;
use crate::report::guests::{GuestReport, Phase};

impl Service<'_> {
    /// Why a guest has not been started yet, in words.
    pub(super) fn why(&self, position: usize) -> Option<String> {
        let member = self.members.get(position)?;
        if member.phase != Phase::Idle {
            return None;
        }
        if let Some(trouble) = &member.trouble {
            return Some(trouble.clone());
        }
        if let Some(wrong) = member.wrong_vfs() {
            return Some(wrong);
        }
        let standings = self.standings();
        if let Some(before) = first_before(&standings, standings.get(position)?)
            .and_then(|before| self.members.get(before))
        {
            return Some(format!("it comes after {}, which is not up yet", before.guest.what));
        }
        let why = match &member.vfs {
            None => "its VFs are being looked at",
            Some(_) if self.only_look => return None,
            Some(_) => "others are being started",
        };
        Some(why.to_owned())
    }

    /// What is told of each guest.
    pub(super) fn guest_reports(&self) -> Vec<GuestReport> {
        let members = self.members.iter().enumerate();
        members.map(|(position, member)| member.report(self.why(position))).collect()
    }

    /// Bring status, report and journal up to date.
    pub(super) fn tell(&mut self) {
        let whys: Vec<Option<String>> = (0..self.members.len()).map(|i| self.why(i)).collect();
        if !self.is_first_pass {
            for (position, why) in whys.iter().enumerate() {
                let Some(why) = why else { continue };
                if self.told.get(&position) != Some(why) {
                    self.told.insert(position, why.clone());
                    let fields = [("IBPROV_CAUSE", why.clone())];
                    self.emit(
                        position,
                        kinds::GUEST_WAITS,
                        Level::Warn,
                        &format!("waits: {why}"),
                        &fields,
                    );
                }
            }
        }
        self.report.guests = self.guest_reports();
        let json = serde_json::to_string_pretty(&self.report).unwrap_or_default();
        if json == self.written {
            return;
        }
        if let Err((path, e)) = state::write("guests.json", &json) {
            let e = crate::host::answer(&e);
            self.report.problems.insert(format!("cannot write {}: {e}", path.display()));
        }
        self.written = json;
        if let Err(e) = systemd::status(&self.headline()) {
            log::debug!("cannot tell systemd the status: {e}");
        }
    }

    pub(super) fn headline(&self) -> String {
        let up = self.members.iter().filter(|m| matches!(m.phase, Phase::Up { .. })).count();
        let mut line = format!("{up} of {} guests up", self.members.len());
        let first = (0..self.members.len()).find_map(|i| Some((i, self.why(i)?)));
        if let Some((position, why)) = first
            && let Some(member) = self.members.get(position)
        {
            line = format!("{line}; {} waits: {why}", member.guest.what);
        }
        line
    }

    pub(super) fn emit(
        &self,
        position: usize,
        kind: &str,
        level: Level,
        said: &str,
        more: &[(&str, String)],
    ) {
        let Some(member) = self.members.get(position).filter(|_| !self.only_look) else { return };
        let mut fields = vec![("IBPROV_GUEST", member.guest.what.name().to_owned())];
        fields.extend(more.iter().cloned());
        journal::emit(kind, level, &format!("{} {said}", member.guest.what), &fields);
    }

    pub(super) fn finish(&mut self) {
        self.tell();
        self.report.finish(clock::monotonic_usec());
        if let Ok(json) = serde_json::to_string_pretty(&self.report)
            && let Err((path, e)) = state::write("guests.json", &json)
        {
            let e = crate::host::answer(&e);
            self.report.problems.insert(format!("cannot write {}: {e}", path.display()));
        }
    }
}
