//! VFs of which it is not known what their PF has for them, since the kernel does not tell
//! GUIDs or nobody has answered for this VF: what this run has told stands for it, and the
//! report says what was verified and how.

use std::collections::BTreeMap;

use super::judge::Attempts;
use crate::ladder::vf::{guids_are_untold, has_node_guids, shows_its_guids};
use crate::model::{StepDone, VfStep, WantedPf, WantedVf};
use crate::names::{PortNumber, VfIndex, vf_ranges};
use crate::observe::ObservedPf;

/// VFs, each with what the PF did not report of it when it was asked last.
pub(super) type Untold = BTreeMap<VfIndex, Unreported>;

/// What the PF did not report of a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub(super) enum Unreported {
    #[strum(
        to_string = "the kernel does not report the GUIDs of VFs at the PF (Linux 5.5 and later do, if the driver answers)"
    )]
    Guids,
    #[strum(
        to_string = "the driver of the PF did not report all settings of some VFs, as when a firmware command fails, see dmesg; their link states are not verified"
    )]
    Settings,
}

/// Fill in what this run has told the PF with success. A kernel that tells GUIDs back has no more
/// than that either: the PF's driver repeats what it was told.
pub(super) fn learn(observed: &mut ObservedPf, attempts: &Attempts) -> Untold {
    let mut untold = Untold::new();
    for vf in &mut observed.vfs {
        let why = match guids_are_untold(vf) {
            true => Unreported::Guids,
            false if !vf.admin.is_answered => Unreported::Settings,
            false => continue,
        };
        untold.insert(vf.index, why);
        let admin = &mut vf.admin;
        for done in attempts.of_vf(vf.index).filter(|done| done.is_done()) {
            match done.step {
                VfStep::NodeGuid { to, .. } => admin.node_guid = admin.node_guid.or(Some(to)),
                VfStep::PortGuid { port: PortNumber::FIRST, to, .. } => {
                    admin.port_guid = admin.port_guid.or(Some(to));
                }
                VfStep::Policy { to, .. } => admin.policy = admin.policy.or(Some(to)),
                _ => {}
            }
        }
    }
    untold
}

/// Which verification was possible, if anything was left untold.
pub(super) fn notes(
    untold: &Untold,
    wanted: &WantedPf,
    observed: &ObservedPf,
    attempts: &Attempts,
) -> Vec<String> {
    let note = |why| {
        let is_so = |vf: &&WantedVf| untold.get(&vf.index) == Some(&why);
        let parts = verified(wanted.vfs.iter().filter(is_so), observed, attempts)?;
        Some(format!("{why}: {parts}"))
    };
    [Unreported::Guids, Unreported::Settings].into_iter().filter_map(note).collect()
}

/// How these VFs were verified; `None` of none.
fn verified<'a>(
    untold: impl Iterator<Item = &'a WantedVf>,
    observed: &ObservedPf,
    attempts: &Attempts,
) -> Option<String> {
    let shows = |want: &WantedVf| {
        let seen = observed.vf(want.index);
        seen.is_some_and(|seen| shows_its_guids(want, seen, &observed.backend))
    };
    let is_told = |want: &WantedVf| {
        let told = |is: fn(&VfStep) -> bool| {
            let done = |done: &StepDone| done.is_done() && is(&done.step);
            attempts.of_vf(want.index).any(done)
        };
        let node = told(|s| matches!(s, VfStep::NodeGuid { .. }));
        (node || !has_node_guids(&observed.backend))
            && told(|s| matches!(s, VfStep::PortGuid { .. }))
    };
    let (shown, hidden): (Vec<&WantedVf>, Vec<&WantedVf>) = untold.partition(|vf| shows(vf));
    let (told, unknown): (Vec<&WantedVf>, Vec<&WantedVf>) =
        hidden.into_iter().partition(|vf| is_told(vf));
    let parts = [
        (shown, "verified only at their own devices"),
        (
            told,
            "not verified for lack of a device on this host; the PF accepted the GUIDs without an error",
        ),
        (unknown, "not verified, and no GUID was changed"),
    ];
    let named = parts.iter().filter(|(vfs, _)| !vfs.is_empty());
    let parts: Vec<String> = named
        .map(|(vfs, how)| {
            let named = vf_ranges(vfs.iter().map(|vf| vf.index));
            match vfs.len() {
                1 => format!("{named} was {}", how.replace("their", "its")),
                _ => format!("{named} were {how}"),
            }
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::fixtures;
    use crate::names::{Administered, Guid, Policy, VfDriver};
    use crate::observe::Backend;

    const NODE: Guid = Guid::new(1);
    const PORT: Guid = Guid::new(2);

    fn index(n: u16) -> VfIndex {
        VfIndex::new(n).expect("index")
    }

    fn wanted(vfs: usize) -> WantedPf {
        fixtures::wanted(&vec![VfDriver::Host; vfs])
    }

    /// A PF by netlink, the kernel telling `guids`, and which of its VFs show theirs.
    fn observed(guids: Option<Guid>, shown: &[bool]) -> ObservedPf {
        let drivers: Vec<VfDriver> = shown
            .iter()
            .map(|shown| if *shown { VfDriver::Host } else { VfDriver::VfioPci })
            .collect();
        let mut pf = fixtures::right(&fixtures::wanted(&drivers));
        pf.backend = Backend::Netlink { ifindex: Some(3) };
        for vf in &mut pf.vfs {
            (vf.admin.node_guid, vf.admin.port_guid) = (guids, guids);
        }
        pf
    }

    #[test]
    fn the_note_says_what_was_verified_and_how() {
        let mut attempts = Attempts::default();
        let vf = index(3);
        for step in [
            VfStep::NodeGuid { vf, from: None, to: NODE },
            VfStep::PortGuid { vf, port: PortNumber::FIRST, from: None, to: PORT },
        ] {
            attempts.add(StepDone { step, failure: None });
        }
        let mut seen = observed(None, &[true, true, true, false, false]);
        let untold = learn(&mut seen, &attempts);
        let admin = |n| seen.vf(index(n)).expect("VF").admin;
        assert_eq!((admin(3).node_guid, admin(3).port_guid), (Some(NODE), Some(PORT)));
        assert_eq!((admin(4).node_guid, admin(4).port_guid), (None, None));
        let told = notes(&untold, &wanted(5), &seen, &attempts);
        let [note] = told.as_slice() else { panic!("{told:?}") };
        for part in [
            "VFs 0-2 were verified only at their own devices",
            "VF 3 was not verified for lack of a device",
            "VF 4 was not verified, and no GUID was changed",
        ] {
            assert!(note.contains(part), "{part}: {note}");
        }
    }

    #[test]
    fn a_kernel_that_tells_leaves_nothing_to_say() {
        let mut seen = observed(Some(Guid::new(0)), &[true, false]);
        let untold = learn(&mut seen, &Attempts::default());
        assert_eq!(notes(&untold, &wanted(2), &seen, &Attempts::default()), [""; 0]);
    }

    #[test]
    fn what_was_told_stands_for_what_the_pf_does_not_answer() {
        let vf = index(1);
        let mut attempts = Attempts::default();
        for step in [
            VfStep::NodeGuid { vf, from: None, to: NODE },
            VfStep::PortGuid { vf, port: PortNumber::FIRST, from: None, to: PORT },
            VfStep::Policy { vf, from: None, to: Policy::Follow },
        ] {
            attempts.add(StepDone { step, failure: None });
        }
        let mut seen = observed(None, &[true, false]);
        seen.vfs.iter_mut().for_each(|vf| vf.admin = Administered::default());
        let untold = learn(&mut seen, &attempts);
        let told = Administered {
            node_guid: Some(NODE),
            port_guid: Some(PORT),
            policy: Some(Policy::Follow),
            ..Administered::default()
        };
        assert_eq!(
            seen.vfs.iter().map(|vf| vf.admin).collect::<Vec<_>>(),
            [Administered::default(), told]
        );
        let told = notes(&untold, &wanted(2), &seen, &attempts);
        let [note] = told.as_slice() else { panic!("{told:?}") };
        for part in [
            "did not report all settings of some VFs",
            ": VF 0 was verified only at its own devices",
            "VF 1 was not verified for lack of a device",
        ] {
            assert!(note.contains(part), "{part}: {note}");
        }
        // Answered after all, there is nothing to say.
        let mut seen = observed(Some(NODE), &[true, false]);
        let untold = learn(&mut seen, &attempts);
        assert_eq!(notes(&untold, &wanted(2), &seen, &attempts), [""; 0]);
    }
}
