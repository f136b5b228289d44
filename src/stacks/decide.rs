//! What to do about bringing an interface up. Pure.

use super::stack::Standing;
use crate::model::stack::{Action, Answer, Decision, Phase};
use crate::observe::ipoib::Interface;

/// Characters that reach a shell unharmed when ifupdown and its like put a name
/// into their command lines.
fn is_tame(name: &str) -> bool {
    let tame = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'@');
    name.bytes().all(tame) && !name.starts_with('-')
}

/// Decide who brings `interface` up, and what is to be done about it now.
pub fn decide(standings: &[Standing], interface: &Interface) -> Decision {
    let here = || standings.iter().filter(|s| s.view.phase != Phase::Absent);
    let claims = |s: &&Standing| matches!(s.view.claim.answer, Answer::Yes | Answer::Hotplug);
    let alive = |s: &&Standing| s.view.phase != Phase::NotStarted;
    // Of two that claim it, the one that is part of this boot.
    if let Some(standing) = here().filter(claims).find(alive).or_else(|| here().find(claims)) {
        return by(standing, interface);
    }
    if let Some(Standing { facts, view }) = here().find(|s| s.view.claim.answer == Answer::Later) {
        let (word, unit) = (facts.name.word(), facts.service);
        return match view.phase {
            Phase::Queued => Decision::new(
                view.stack,
                Action::Leave,
                format!(
                    "{unit} has not started yet; it then decides whether it takes the interface"
                ),
            ),
            Phase::Starting => {
                Decision::new(view.stack, Action::WaitForService, format!("{unit} is starting"))
            }
            _ => Decision::new(
                view.stack,
                Action::Verify,
                format!("{word} runs, but has not decided on the interface yet"),
            ),
        };
    }
    nobody(standings)
}

/// No stack claims it; is one to blame?
fn nobody(standings: &[Standing]) -> Decision {
    let here = || standings.iter().map(|s| &s.view).filter(|v| v.phase != Phase::Absent);
    let missed = here().find(|v| v.claim.answer == Answer::Missed);
    if let Some(view) = missed {
        let why = format!("{}: {}", view.stack, view.claim.why);
        return Decision::new(view.stack, Action::Stuck, why);
    }
    let by_hand = here().find(|v| v.claim.answer == Answer::ByHand);
    let why = match by_hand {
        Some(view) => format!("{}: {}", view.stack, view.claim.why),
        None if here().next().is_none() => "no known network stack is installed".to_owned(),
        None => "no network stack has a configuration for the interface".to_owned(),
    };
    Decision { stack: by_hand.map(|v| v.stack), action: Action::Nobody, why, is_wrong: false }
}

fn by(standing: &Standing, interface: &Interface) -> Decision {
    let Standing { facts, view } = standing;
    let (stack, unit, claim) = (facts.name, facts.service, &view.claim.why);
    let done = view.recorded && interface.up;
    let decision = |action, why: String| Decision::new(stack, action, why);
    if facts.looks_once && done {
        return decision(
            Action::Nothing,
            format!("{stack} has brought the interface up ({claim})"),
        );
    }
    if view.claim.answer == Answer::Hotplug {
        return hotplug(standing, interface);
    }
    match (view.phase, facts.looks_once) {
        (Phase::Queued, _) => decision(
            Action::Leave,
            format!("{unit} has not started yet, and will bring the interface up ({claim})"),
        ),
        (Phase::Starting, _) => decision(
            Action::WaitForService,
            format!("{unit} is starting, and may have looked for the interface already ({claim})"),
        ),
        (Phase::Active | Phase::Failed, true) => ifup(standing, interface),
        (Phase::Active, false) => decision(
            Action::Verify,
            format!("{stack} runs, and brings the interface up by itself ({claim})"),
        ),
        (Phase::Failed, false) => decision(
            Action::Stuck,
            format!(
                "{unit} has failed, and does not bring the interface up ({claim}): systemctl status {unit}"
            ),
        ),
        (Phase::Stopped, _) => decision(
            Action::Stuck,
            format!("{unit} was stopped, and does not bring the interface up ({claim})"),
        ),
        (Phase::NotStarted | Phase::Absent, _) => decision(
            Action::Stuck,
            format!(
                "{unit} would bring the interface up ({claim}), but is not part of this boot: systemctl enable --now {unit}"
            ),
        ),
    }
}

/// Why `ifup` alone would not do.
const ADDRESSED: &str = "the interface is down, but still has addresses, left by an interrupted ifup or by `ip link set down`";

/// A stack that looks once has looked, and did not see it.
fn ifup(standing: &Standing, interface: &Interface) -> Decision {
    let Standing { facts, view } = standing;
    let (stack, claim, name) = (facts.name, &view.claim.why, interface.name.as_str());
    if !is_tame(name) {
        return Decision::new(
            stack,
            Action::Stuck,
            format!(
                "{stack} finished before the interface appeared ({claim}), and would pass its name {name:?} to a shell: rename the interface (interface.name)"
            ),
        );
    }
    let unit = facts.service;
    if view.addressed {
        let why = format!("{unit} has finished; {ADDRESSED} ({claim})");
        return Decision::new(stack, Action::IfupAnew, why);
    }
    if view.recorded && facts.keeps_record {
        let why = format!(
            "{unit} has finished; {stack} has a record of an interface of that name, but this one is down ({claim})"
        );
        return Decision::new(stack, Action::IfupAgain, why);
    }
    let why = format!("{unit} finished before the interface appeared ({claim})");
    Decision::new(stack, Action::Ifup, why)
}

/// The stack's udev rule starts a unit of its own for it (ifupdown's allow-hotplug).
fn hotplug(standing: &Standing, interface: &Interface) -> Decision {
    let Standing { facts, view } = standing;
    let (stack, claim, name) = (facts.name, &view.claim.why, interface.name.as_str());
    let template = facts.own_unit.as_ref().map_or("", |own| own.template);
    let decision = |action, why: String| Decision::new(stack, action, why);
    match view.hotplug {
        // It is ordered after network-pre.target, and so after us.
        Phase::Queued => decision(
            Action::Leave,
            format!("{stack}'s own unit for the interface is queued ({claim})"),
        ),
        Phase::Starting => decision(
            Action::WaitForHotplug,
            format!("{stack}'s own unit for the interface is starting ({claim})"),
        ),
        Phase::Failed => decision(
            Action::Stuck,
            format!(
                "{stack}'s own unit for the interface has failed ({claim}): systemctl status '{template}@{name}.service'"
            ),
        ),
        // That unit gives the name to a shell.
        _ if !is_tame(name) => decision(
            Action::Stuck,
            format!(
                "{stack} would pass its name {name:?} to a shell ({claim}): rename the interface (interface.name)"
            ),
        ),
        Phase::Active if view.addressed => {
            decision(Action::IfupAnew, format!("{ADDRESSED} ({claim})"))
        }
        Phase::Active if view.recorded => decision(
            Action::IfupAgain,
            format!(
                "{stack} has a record of an interface of that name, but this one is down ({claim})"
            ),
        ),
        _ => decision(
            Action::StartHotplug,
            format!("{stack}'s udev rule did not start its unit for the interface ({claim})"),
        ),
    }
}
