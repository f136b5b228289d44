//! How a setting stands: what the adapter shows against what is wanted and was written.

use super::answer::Answer;
use super::record::Written;
use crate::config::FirmwareSetting;
use crate::model::firmware::{Setting, State};
use crate::names::{FirmwareName, FirmwareValue};

/// What is known beside what the tool shows.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    /// What was written to this adapter.
    pub written: &'a [Written],
    pub boot_id: &'a str,
}

impl<'a> Past<'a> {
    /// That this value was written before, if so.
    pub fn of(&self, name: &FirmwareName, value: &FirmwareValue) -> Option<&'a Written> {
        self.written.iter().find(|written| written.name == *name && written.value == *value)
    }

    /// That this value was written before, and a boot came since then.
    pub fn before_this_boot(&self, wanted: &FirmwareSetting) -> Option<&'a Written> {
        self.of(&wanted.name, &wanted.value).filter(|written| written.boot_id != self.boot_id)
    }
}

/// How each of `wanted` stands by `answer`.
pub fn judge(wanted: &[FirmwareSetting], answer: &Answer, past: Past<'_>) -> Vec<Setting> {
    let per_pf = answer.is(FirmwareName::PER_PF, 1);
    let one = |setting: &FirmwareSetting| {
        let shown = answer.setting(setting.name.as_str());
        let (state, reason) = match (answer.lacks.get(&setting.name), shown) {
            (Some(lack), _) => lack.clone(),
            (None, None) => (State::Unreadable, Some("the tool did not print it".to_owned())),
            (None, Some(_)) if per_pf && setting.name.as_str() == FirmwareName::NUM_OF_VFS => {
                let why = format!(
                    "each PF has a number of VFs of its own ({} is True, which devlink sets), and NUM_OF_VFS does not count",
                    FirmwareName::PER_PF
                );
                (State::NoEffect, Some(why))
            }
            (None, Some(shown)) => stands(setting, shown, past),
        };
        let printed = || Setting::shown(setting.name.clone(), None, None);
        let printed = shown.cloned().unwrap_or_else(printed);
        Setting { wanted: Some(setting.value.clone()), state, reason, ..printed }
    };
    wanted.iter().map(one).collect()
}

fn stands(wanted: &FirmwareSetting, shown: &Setting, past: Past<'_>) -> (State, Option<String>) {
    let is = |value: &Option<String>| value.as_ref().map(|text| wanted.value.is_shown_as(text));
    let written = past.of(&wanted.name, &wanted.value);
    let before = past.before_this_boot(wanted);
    match (is(&shown.current), is(&shown.next)) {
        (_, None) => (State::Unreadable, Some("the tool did not print its next value".to_owned())),
        (Some(false) | None, Some(false)) if before.is_some() => {
            let why = "it was written before this boot, and the adapter did not keep it: it is not written again without --again";
            (State::ToBeSet, Some(why.to_owned()))
        }
        (_, Some(false)) => (State::ToBeSet, None),
        (Some(true), Some(true)) => (State::AsWanted, None),
        (None, Some(true)) => match written.filter(|written| written.boot_id == past.boot_id) {
            Some(_) => (State::PendingReboot, None),
            None => {
                let why = "the firmware does not tell which value is in effect";
                (State::AsWanted, Some(why.to_owned()))
            }
        },
        (Some(false), Some(true)) => {
            let said = written.and_then(|written| written.said.as_deref()).unwrap_or_default();
            if before.is_some() || said.contains("power cycle") {
                (State::PendingPowerCycle, None)
            } else {
                (State::PendingReboot, None)
            }
        }
    }
}

/// What is to be written: what the next boot would not have, but for what was written before
/// this boot already and has had no effect, unless it is asked for `again`.
pub fn to_write(
    wanted: &[FirmwareSetting],
    judged: &[Setting],
    past: Past<'_>,
    again: bool,
) -> Vec<FirmwareSetting> {
    let is_due = |setting: &&FirmwareSetting| {
        let judged = judged.iter().find(|judged| judged.name == setting.name);
        let is_effective = |judged: &Setting| {
            judged.current.as_ref().is_some_and(|text| setting.value.is_shown_as(text))
        };
        judged.is_some_and(|judged| {
            judged.state == State::ToBeSet
                && (again || is_effective(judged) || past.before_this_boot(setting).is_none())
        })
    };
    wanted.iter().filter(is_due).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str, value: FirmwareValue) -> FirmwareSetting {
        FirmwareSetting { name: name.parse().expect("name"), value, origin: String::new() }
    }

    fn written(boot_id: &str, said: Option<&str>) -> Written {
        Written {
            name: "NUM_OF_VFS".parse().expect("name"),
            value: FirmwareValue::Number(8),
            boot_id: boot_id.to_owned(),
            time: 0,
            said: said.map(str::to_owned),
        }
    }

    fn answer(current: Option<&str>, next: &str) -> Answer {
        let name = "NUM_OF_VFS".parse().expect("name");
        let current = current.map(str::to_owned);
        let shown = Setting::shown(name, current, Some(next.to_owned()));
        Answer { settings: vec![shown], tells_current: true, ..Answer::default() }
    }

    fn state(current: Option<&str>, next: &str, record: &[Written]) -> (State, usize) {
        let wanted = [wanted("NUM_OF_VFS", FirmwareValue::Number(8))];
        let past = Past { written: record, boot_id: "now" };
        let judged = judge(&wanted, &answer(current, next), past);
        let due = to_write(&wanted, &judged, past, false).len();
        assert_eq!(
            to_write(&wanted, &judged, past, true).len(),
            usize::from(judged[0].state == State::ToBeSet)
        );
        (judged[0].state, due)
    }

    #[test]
    fn a_setting_stands_by_its_values_the_record_and_the_boot() {
        use State::{AsWanted, PendingPowerCycle, PendingReboot, ToBeSet};
        let cycle = Some("Please power cycle machine to load new configurations.");
        let (now, before) = ([written("now", None)], [written("before", None)]);
        let power = [written("now", cycle)];
        assert_eq!(state(Some("8"), "8", &[]), (AsWanted, 0));
        assert_eq!(state(Some("0"), "0", &[]), (ToBeSet, 1));
        assert_eq!(state(Some("8"), "0", &[]), (ToBeSet, 1), "it is lost at the next boot");
        assert_eq!(state(Some("0"), "8", &[]), (PendingReboot, 0));
        assert_eq!(state(Some("0"), "8", &now), (PendingReboot, 0));
        assert_eq!(state(Some("0"), "8", &before), (PendingPowerCycle, 0));
        assert_eq!(state(Some("0"), "8", &power), (PendingPowerCycle, 0));
        assert_eq!(state(Some("0"), "0", &before), (ToBeSet, 0), "written once, without effect");
        assert_eq!(state(Some("8"), "0", &before), (ToBeSet, 1), "it has had effect");
        assert_eq!(state(Some("0"), "0", &now), (ToBeSet, 1));
        assert_eq!(state(None, "8", &[]), (AsWanted, 0));
        assert_eq!(state(None, "8", &now), (PendingReboot, 0));
        assert_eq!(state(None, "0", &before), (ToBeSet, 0));
    }

    #[test]
    fn what_was_written_of_another_value_counts_for_nothing() {
        let other = Written { value: FirmwareValue::Number(4), ..written("before", None) };
        assert_eq!(state(Some("4"), "4", &[other]), (State::ToBeSet, 1));
    }

    #[test]
    fn a_number_for_each_pf_leaves_num_of_vfs_without_effect() {
        let wanted = [wanted("NUM_OF_VFS", FirmwareValue::Number(8))];
        let mut answer = answer(Some("0"), "0");
        let name = FirmwareName::PER_PF.parse().expect("name");
        let (current, next) = (Some("True(1)".to_owned()), Some("True(1)".to_owned()));
        answer.settings.push(Setting::shown(name, current, next));
        let past = Past { written: &[], boot_id: "now" };
        let judged = judge(&wanted, &answer, past);
        assert_eq!(judged[0].state, State::NoEffect);
        assert!(to_write(&wanted, &judged, past, true).is_empty());
    }
}
