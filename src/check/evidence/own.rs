//! What ibprov itself has written to a log: the outcome of a boot, of a PF, of a port.
//!
//! In a journal it is known by its MESSAGE_ID and its fields, which no other program has;
//! in text by its words.

use super::super::pattern::{caught, caught_one};
use crate::model::events as kinds;
use crate::model::node::Standing;
use crate::names::{Object, WAIT_ONLINE_UNIT};

/// What a line of ibprov's is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    Boot,
    /// The VFs of a PF.
    Pf,
    /// A port, at the end of a boot.
    Port,
    Vf,
    /// A step, which may have been made good later.
    Step,
    /// `wait-online` as a whole.
    WaitOnline,
    /// A port in `wait-online`.
    Online,
    Guest,
    Interface,
}

/// An outcome that ibprov has written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// What kind of thing it is about.
    pub about: About,
    /// Which of them, where there are several.
    pub objects: Vec<Object>,
    pub standing: Standing,
}

impl Own {
    fn new(about: About, objects: &str, standing: Standing) -> Self {
        let objects = match (about, objects) {
            (_, "") => Vec::new(),
            // The whole text stands for a step.
            (About::Step, text) => vec![Object::Named(text.to_owned())],
            (_, objects) => Object::all(objects),
        };
        Self { about, objects, standing }
    }

    /// True if what a process of `unit` has written is of the node's boot. Of the last words of
    /// a process no unit may be known.
    pub fn is_evidence(&self, unit: &str) -> bool {
        let is_of_any = unit.is_empty() || unit == WAIT_ONLINE_UNIT;
        is_of_any || !matches!(self.about, About::WaitOnline | About::Online)
    }
}

/// The outcome of the message `id`, whose text is `text` and whose exit code, if it has
/// one, is `exit`.
pub fn by_id(id: &str, exit: Option<u8>, text: &str) -> Option<Own> {
    use Standing::{Excused, Missing, Ready};
    let ended = |fallback| exit.map_or(fallback, Standing::of_exit);
    let head = text.split_once(": ").map_or("", |(head, _)| head);
    let (about, standing, object) = match id {
        kinds::FINISHED => (About::Boot, ended(Ready), ""),
        kinds::PF_FINISHED => (About::Pf, ended(Ready), head),
        kinds::PORT_READY => (About::Port, Ready, head),
        kinds::PORT_NOT_READY if text.contains("(optional)") => (About::Port, Excused, head),
        kinds::PORT_NOT_READY => (About::Port, Missing, head),
        kinds::VF_NOT_RIGHT => (About::Vf, Missing, of_vf(text)),
        kinds::VF_DEFERRED => (About::Vf, Excused, of_vf(text)),
        kinds::STEP_FAILED => (About::Step, Missing, text),
        kinds::WAIT_FINISHED => (About::WaitOnline, ended(Ready), ""),
        kinds::PORT_ONLINE => (About::Online, Ready, head),
        kinds::PORT_NOT_ONLINE => (About::Online, Missing, head),
        kinds::GUEST_UP => (About::Guest, Ready, of_guest(text)),
        kinds::GUEST_FAILED => (About::Guest, Missing, of_guest(text)),
        kinds::IFACE_DONE => (About::Interface, Ready, head),
        kinds::IFACE_FAILED => (About::Interface, Missing, head),
        _ => return None,
    };
    Some(Own::new(about, object, standing))
}

/// The outcome that a line of ibprov's tells in a log that has no fields.
pub fn by_words(text: &str) -> Option<Own> {
    use Standing::{Excused, Missing, Ready};
    let standing = |good: &str, of: &str| match good == of {
        true => Ready,
        false => Missing,
    };
    if text.contains("boot incomplete after ") {
        return Some(Own::new(About::Boot, "", Missing));
    }
    if text.contains("this host has no InfiniBand") {
        return Some(Own::new(About::Boot, "", Ready));
    }
    if let Some([good, of]) = caught::<2>(text, "{} of {} expected ports ready after ") {
        return Some(Own::new(About::Boot, "", standing(last_word(good), of)));
    }
    if let Some([pf, rest]) = caught::<2>(text, "PF {}: {}") {
        if rest.starts_with("VF ") && rest.contains(": not as planned") {
            return Some(Own::new(About::Vf, of_vf(text), Missing));
        }
        if let Some([good, of]) = caught::<2>(rest, "{} of {} VFs as planned") {
            let standing = match standing(good, of) {
                Missing if rest.contains("the others are in use") => Excused,
                standing => standing,
            };
            return Some(Own::new(About::Pf, pf, standing));
        }
    }
    if let Some(port) = caught_one(text, "{}: NOT READY") {
        let optional = text.contains("NOT READY (optional)");
        return Some(Own::new(About::Port, port, if optional { Excused } else { Missing }));
    }
    if let Some([good, of]) = caught::<2>(text, "{} of {} ports online after ") {
        return Some(Own::new(About::WaitOnline, "", standing(last_word(good), of)));
    }
    text.contains(" is not up: ").then(|| Own::new(About::Guest, of_guest(text), Missing))
}

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap_or(text)
}

/// `PF 0000:4b:00.0: VF 3` of a line on a VF.
fn of_vf(text: &str) -> &str {
    let end = text.match_indices([':', ' ']).map(|(at, _)| at).find(|at| {
        text.get(..*at).is_some_and(|head| {
            head.split_once(": VF ").is_some_and(|(_, number)| !number.is_empty())
        })
    });
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// `VM a` of `VM a is not up: ...`.
fn of_guest(text: &str) -> &str {
    text.split_once(" is ").map_or(text, |(guest, _)| guest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_fields_tell_the_same() {
        for (id, exit, text) in [
            (
                kinds::FINISHED,
                Some(3),
                "boot incomplete after 1.154 s: PF 0000:01:00.0: 0 of 4 VFs as planned (sriov_numvfs: ENOSPC); 1 of 1 expected ports ready",
            ),
            (kinds::FINISHED, Some(0), "2 of 2 expected ports ready after 1.154 s"),
            (
                kinds::PF_FINISHED,
                Some(3),
                "PF 0000:01:00.0: 0 of 4 VFs as planned after 1.154 s, 1 step",
            ),
            (kinds::PF_FINISHED, Some(0), "PF 0000:01:00.0: 4 of 4 VFs as planned after 1 s"),
            (
                kinds::PORT_NOT_READY,
                None,
                "mlx5_0/1 (0000:01:00.0): NOT READY: no netdev after 1 s",
            ),
            (
                kinds::VF_NOT_RIGHT,
                None,
                "PF 0000:01:00.0: VF 1 (0000:01:00.2): not as planned (state: driver, expected: x)",
            ),
            (kinds::WAIT_FINISHED, Some(3), "0 of 1 ports online after 120 s"),
            (kinds::GUEST_FAILED, None, "VM a is not up: its VF is missing"),
        ] {
            let own = by_id(id, exit, text);
            assert!(own.is_some(), "{text}");
            assert_eq!(own, by_words(text), "{text}");
        }
        assert_eq!(by_words("state directory made"), None);
        assert_eq!(by_id("0123", Some(3), "boot incomplete after"), None);
    }

    #[test]
    fn a_vf_is_named_with_its_pf() {
        let own =
            by_words("PF 0000:01:00.0: VF 1 (0000:01:00.2): not as planned: the link state is x");
        assert_eq!(own.map(|own| own.objects), Some(vec!["VF 1 of 0000:01:00.0".into()]));
    }
}
