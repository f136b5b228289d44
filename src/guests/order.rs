//! Who is started next, and what another one waits for: pure, from what is known of every guest.

use crate::config::guest::{GuestIndex, What};
use crate::model::guests::Phase;

/// What decides about one guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub phase: Phase,
    /// All that it needs is right, and known to be.
    pub is_right: bool,
    /// Guests that come before it.
    pub after: Vec<GuestIndex>,
}

/// The guests to start now, in their order: right, every one before them
/// settled, and never more than `max_parallel` starting at a time.
pub fn startable(guests: &[Standing], max_parallel: usize) -> Vec<GuestIndex> {
    let starting = guests.iter().filter(|g| matches!(g.phase, Phase::Starting { .. })).count();
    let free = max_parallel.saturating_sub(starting);
    let is_settled =
        |index: GuestIndex| guests.get(index.position()).is_none_or(|g| g.phase.is_settled());
    let ready = |guest: &Standing| {
        guest.phase == Phase::Idle
            && guest.is_right
            && first_before(&guest.after, is_settled).is_none()
    };
    let positions = guests.iter().enumerate().filter(|(_, guest)| ready(guest));
    positions.map(|(position, _)| GuestIndex::new(position)).take(free).collect()
}

/// The first of those that come `before` a guest that is not settled.
pub fn first_before(
    before: &[GuestIndex],
    is_settled: impl Fn(GuestIndex) -> bool,
) -> Option<GuestIndex> {
    before.iter().copied().find(|index| !is_settled(*index))
}

/// What a guest waits for. Printed as a reason, it is `waits` of the report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum GuestWait {
    /// libvirt, without which nothing is known of it.
    #[error("{0}")]
    Libvirt(String),
    /// Its VFs that are not right, each with what it lacks; never empty.
    #[error("{}", .0.join("; "))]
    Vfs(Vec<String>),
    /// A guest that comes before it.
    #[error("the guest starts after {0}, which is not up yet")]
    After(What),
    /// The look at its VFs that is under way.
    #[error("the VFs of the guest are being checked")]
    Look,
    /// Others, as many as may be starting at the same time.
    #[error("other guests are being started")]
    Slot,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Moment;
    use proptest::prelude::*;

    fn idle(after: &[usize]) -> Standing {
        let after = after.iter().copied().map(GuestIndex::new).collect();
        Standing { phase: Phase::Idle, is_right: true, after }
    }

    fn next(guests: &[Standing], max_parallel: usize) -> Vec<usize> {
        startable(guests, max_parallel).into_iter().map(GuestIndex::position).collect()
    }

    #[test]
    fn the_order_of_the_list_holds_as_far_as_it_can() {
        let mut guests = vec![idle(&[1]), idle(&[]), idle(&[]), idle(&[])];
        assert_eq!(next(&guests, 2), [1, 2]);
        guests[1].phase = Phase::Starting { since_usec: Moment::START };
        assert_eq!(next(&guests, 2), [2]);
        guests[1].phase = Phase::Up { already: false };
        assert_eq!(next(&guests, 2), [0, 2]);
    }

    #[test]
    fn who_fails_holds_nobody_up_and_who_waits_does() {
        let mut guests = vec![idle(&[]), idle(&[0])];
        guests[0].is_right = false;
        assert_eq!(next(&guests, 4), [0_usize; 0]);
        guests[0].phase = Phase::Failed { why: String::new() };
        assert_eq!(next(&guests, 4), [1]);
    }

    proptest! {
        /// Starting whatever may start, and letting any one end, comes to an end
        /// with every right guest up, in order, never too many at a time.
        #[test]
        fn every_right_guest_is_started_in_order(
            edges in proptest::collection::vec((0_usize..20, 0_usize..20), 0..40),
            wrong in proptest::collection::vec(any::<bool>(), 20),
            parallel in 1_usize..6,
            picks in proptest::collection::vec(0_usize..20, 400),
        ) {
            let mut guests: Vec<Standing> = (0..20).map(|_| idle(&[])).collect();
            for (a, b) in edges {
                // Only to earlier ones, so there is no circle.
                if a < b { guests[b].after.push(GuestIndex::new(a)) }
            }
            let mut picks = picks.into_iter();
            loop {
                for position in next(&guests, parallel) {
                    for before in &guests[position].after {
                        prop_assert!(guests[before.position()].phase.is_settled());
                    }
                    guests[position].phase = Phase::Starting { since_usec: Moment::START };
                }
                let starting: Vec<usize> = (0..20)
                    .filter(|i| matches!(guests[*i].phase, Phase::Starting { .. })).collect();
                prop_assert!(starting.len() <= parallel);
                if starting.is_empty() { break }
                let ends = starting[picks.next().unwrap_or(0) % starting.len()];
                guests[ends].phase = if wrong[ends] {
                    Phase::Failed { why: "x".to_owned() }
                } else {
                    Phase::Up { already: false }
                };
            }
            prop_assert!(guests.iter().all(|g| g.phase.is_settled()));
        }
    }
}
