//! `systemctl status`, `systemctl list-unit-files`, `systemctl list-units` and
//! `systemctl --failed`.

use serde::{Deserialize, Serialize};

use super::super::event::Origin;
use super::put;
use crate::check::evidence::words::dump::{ACTIVE, LOAD};
use crate::check::pattern::{caught_one, word};

/// A unit as systemctl shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitSeen {
    pub name: String,
    /// `enabled`, `disabled`, `static`, `masked` ...; empty where not shown.
    pub enabled: String,
    /// `active (exited)`, `failed (Result: exit-code)` ...; empty where not shown.
    pub active: String,
    /// The line that shows it.
    pub origin: Origin,
    pub text: String,
}

#[derive(Debug, Default)]
pub(super) struct SystemctlReader {
    in_unit: bool,
}

impl SystemctlReader {
    pub(super) fn gap(&mut self) {
        self.in_unit = false;
    }

    pub(super) fn line(&mut self, text: &str, origin: Origin, units: &mut Vec<UnitSeen>) {
        let trimmed = text.trim().trim_start_matches(['●', '○', '×', '*', '↻']).trim_start();
        let name = word(trimmed);
        let is_unit =
            [".service", ".target", ".mount", ".socket"].iter().any(|s| name.ends_with(s));
        let seen = || UnitSeen {
            name: name.to_owned(),
            origin,
            text: text.trim().to_owned(),
            ..UnitSeen::default()
        };
        // `systemctl list-units`: `openibd.service loaded failed failed what it is`.
        let mut words = trimmed.split_whitespace().skip(1);
        if is_unit
            && let (Some(load), Some(active), Some(sub)) =
                (words.next(), words.next(), words.next())
            && LOAD.contains(&load)
            && ACTIVE.contains(&active)
        {
            let enabled = if load == "masked" { load } else { "" };
            let (enabled, active) = (enabled.to_owned(), format!("{active} ({sub})"));
            put(units, UnitSeen { enabled, active, ..seen() });
            self.in_unit = false;
            return;
        }
        if is_unit && trimmed.contains(" - ") {
            self.in_unit = put(units, seen());
            return;
        }
        // `systemctl list-unit-files`: `openibd.service   disabled [enabled]`.
        if is_unit
            && let Some(
                enabled @ ("enabled" | "disabled" | "static" | "masked" | "indirect"
                | "enabled-runtime"),
            ) = trimmed.split_whitespace().nth(1)
        {
            put(units, UnitSeen { enabled: enabled.to_owned(), ..seen() });
            self.in_unit = false;
            return;
        }
        let Some(unit) = units.last_mut().filter(|_| self.in_unit) else { return };
        if let Some(loaded) = trimmed.strip_prefix("Loaded: ") {
            let inside = caught_one(loaded, "({})").unwrap_or_default();
            let mut parts = inside.split(';').map(str::trim);
            let enabled = if loaded.starts_with("masked") { Some("masked") } else { parts.nth(1) };
            enabled.unwrap_or_default().clone_into(&mut unit.enabled);
            if !unit.enabled.is_empty() {
                unit.origin = origin;
                text.trim().clone_into(&mut unit.text);
            }
        } else if let Some(active) = trimmed.strip_prefix("Active: ") {
            let active = active.split(" since ").next().unwrap_or(active);
            active.trim().clone_into(&mut unit.active);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<UnitSeen> {
        let mut reader = SystemctlReader::default();
        let mut units = Vec::new();
        for line in text.lines() {
            if line.is_empty() {
                reader.gap();
            } else {
                reader.line(line, Origin::default(), &mut units);
            }
        }
        units
    }

    fn shown(units: &[UnitSeen]) -> Vec<(&str, &str, &str)> {
        units.iter().map(|u| (u.name.as_str(), u.enabled.as_str(), u.active.as_str())).collect()
    }

    #[test]
    fn every_form_of_systemctl_is_read() {
        let units = read(
            "● openibd.service - openibd - configure Mellanox devices\n   Loaded: loaded (/usr/lib/systemd/system/openibd.service; disabled; vendor preset: enabled)\n   Active: inactive (dead) since Thu\n\nib.service   static\n",
        );
        assert_eq!(
            shown(&units),
            [("openibd.service", "disabled", "inactive (dead)"), ("ib.service", "static", "")]
        );
    }

    #[test]
    fn tables_of_units_are_read() {
        let units = read(
            "  UNIT                   LOAD      ACTIVE     SUB       JOB   DESCRIPTION\n● openibd.service        loaded    failed     failed          openibd - configure the HCA\n  rdma-ndd.service       loaded    active     running         RDMA Node Description Daemon\n  srp_daemon.service     loaded    activating auto-restart start Start or stop the daemon\n* opensmd.service        masked    inactive   dead            opensmd.service\n● old.service            not-found inactive   dead            old.service\n\nLOAD   = Reflects whether the unit definition was properly loaded.\n\n4 loaded units listed.\n",
        );
        assert_eq!(
            shown(&units),
            [
                ("openibd.service", "", "failed (failed)"),
                ("rdma-ndd.service", "", "active (running)"),
                ("srp_daemon.service", "", "activating (auto-restart)"),
                ("opensmd.service", "masked", "inactive (dead)"),
                ("old.service", "", "inactive (dead)"),
            ]
        );
    }

    proptest! {
        #[test]
        fn no_list_panics(text in r"((● |a\.service|b\.target | - |Loaded: |\(;|Active: |loaded |failed |[a-zÄ0-9 ]){0,5}\n){0,8}") {
            read(&text);
        }
    }
}
