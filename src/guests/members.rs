//! All guests together: who is started next, who waits for what, and whether
//! anything is still to come. Pure.

use std::collections::BTreeSet;

use super::domain::Domains;
use super::member::GuestState;
use super::order::{GuestWait, Standing, first_before, startable};
use super::vf::Need;
use super::vf_reader::VfStates;
use crate::config::guest::{GuestIndex, Guests};
use crate::model::guests::Phase;
use crate::names::Moment;

/// The guests in the order of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Members {
    list: Vec<GuestState>,
    /// How many may be starting at the same time.
    max_parallel: usize,
}

impl Members {
    /// The configured guests, of which nothing is known yet.
    pub(super) fn new(guests: &Guests) -> Self {
        let list = guests.list.iter().cloned().map(GuestState::new).collect();
        Self { list, max_parallel: guests.max_parallel }
    }

    /// That guest; there is one for each index that came from here.
    pub(super) fn get(&self, index: GuestIndex) -> Option<&GuestState> {
        self.list.get(index.position())
    }

    /// That guest, to be changed.
    pub(super) fn get_mut(&mut self, index: GuestIndex) -> Option<&mut GuestState> {
        self.list.get_mut(index.position())
    }

    /// Each guest in turn, with its index.
    pub(super) fn iter(&self) -> impl Iterator<Item = (GuestIndex, &GuestState)> {
        let members = self.list.iter().enumerate();
        members.map(|(position, member)| (GuestIndex::new(position), member))
    }

    /// Every guest, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (GuestIndex, &mut GuestState)> {
        let members = self.list.iter_mut().enumerate();
        members.map(|(position, member)| (GuestIndex::new(position), member))
    }

    /// How many may be starting at the same time.
    pub(super) const fn max_parallel(&self) -> usize {
        self.max_parallel
    }

    pub(super) fn which(&self, is_meant: impl Fn(&GuestState) -> bool) -> Vec<GuestIndex> {
        self.iter().filter(|(_, member)| is_meant(member)).map(|(index, _)| index).collect()
    }

    /// True for one guest at least.
    pub(super) fn any(&self, is_meant: impl Fn(&GuestState) -> bool) -> bool {
        self.list.iter().any(is_meant)
    }

    pub(super) fn all(&self, is_meant: impl Fn(&GuestState) -> bool) -> bool {
        self.list.iter().all(is_meant)
    }

    fn standings(&self) -> Vec<Standing> {
        let standing = |m: &GuestState| Standing {
            phase: m.phase().clone(),
            is_right: m.is_right(),
            after: m.guest().after.clone(),
        };
        self.list.iter().map(standing).collect()
    }

    /// True if somebody may be started, as far as is known.
    pub(super) fn can_start_any(&self) -> bool {
        !startable(&self.standings(), self.max_parallel).is_empty()
    }

    /// Who is started now, beside so many that are `issuing` (their starts are being requested
    /// and not waited for). Who needs VFs is started only if `is_fresh`: they were looked at just
    /// now.
    pub(super) fn startable(&self, is_fresh: bool, issuing: usize) -> Vec<GuestIndex> {
        let mut standings = self.standings();
        for (standing, member) in standings.iter_mut().zip(&self.list) {
            standing.is_right &= is_fresh || !member.has_vfs();
        }
        startable(&standings, self.max_parallel.saturating_sub(issuing))
    }

    /// Who would be started as things are, one after the other, if each came up.
    pub(super) fn order(&self) -> Vec<GuestIndex> {
        let mut standings = self.standings();
        let mut order = Vec::new();
        while let Some(next) = startable(&standings, 1).first().copied() {
            let Some(standing) = standings.get_mut(next.position()) else { break };
            standing.phase = Phase::Up { already: false };
            order.push(next);
        }
        order
    }

    /// What `index` waits for; `None` if it does not wait.
    pub(super) fn waiting(&self, index: GuestIndex) -> Option<GuestWait> {
        let member = self.get(index)?;
        if !member.is_idle() {
            return None;
        }
        if let Some(trouble) = member.libvirt_trouble() {
            return Some(GuestWait::Libvirt(trouble.to_owned()));
        }
        if let Some(wrong) = member.wrong_vfs() {
            return Some(wrong);
        }
        let is_settled = |index| self.get(index).is_none_or(|m| m.phase().is_settled());
        let before = first_before(&member.guest().after, is_settled);
        if let Some(before) = before.and_then(|before| self.get(before)) {
            return Some(GuestWait::After(before.guest().what.clone()));
        }
        Some(if member.is_looked_at() { GuestWait::Slot } else { GuestWait::Look })
    }

    /// Take in what libvirt says of domains.
    pub(super) fn learn(&mut self, domains: &Domains, now: Moment) {
        for member in &mut self.list {
            member.learn(domains, now);
        }
    }

    /// libvirt does not answer, so guests wait for it.
    pub(super) fn lose_libvirt(&mut self, trouble: &str, now: Moment) {
        for member in &mut self.list {
            member.lose_libvirt(trouble, now);
        }
    }

    /// Those for whom libvirt did not come back in time, and what was wrong.
    pub(super) fn given_up(&self, now: Moment) -> Vec<(GuestIndex, String)> {
        self.iter().filter_map(|(index, m)| Some((index, m.gives_up(now)?))).collect()
    }

    /// When the next of those who wait for libvirt is given up.
    pub(super) fn next_until(&self) -> Option<Moment> {
        let waiting = self.list.iter().filter(|m| m.is_idle() && m.libvirt_trouble().is_some());
        waiting.filter_map(GuestState::until).min()
    }

    /// All devices that those need who are meant.
    pub(super) fn needs(&self, is_meant: impl Fn(&GuestState) -> bool) -> BTreeSet<Need> {
        let meant = self.list.iter().filter(|m| is_meant(m));
        meant.filter_map(GuestState::needs).flatten().copied().collect()
    }

    /// Those who are meant take in a look at VFs.
    pub(super) fn see(&mut self, seen: &VfStates, is_meant: impl Fn(&GuestState) -> bool) {
        for member in self.list.iter_mut().filter(|m| is_meant(m)) {
            member.see(seen);
        }
    }

    /// How many are up, and how many there are.
    pub(super) fn count_up(&self) -> (usize, usize) {
        let up = self.list.iter().filter(|m| matches!(m.phase(), Phase::Up { .. })).count();
        (up, self.list.len())
    }

    /// The first pass has nothing more to wait for, as far as guests go.
    pub(super) fn are_tried(&self) -> bool {
        let is_known = |m: &GuestState| m.is_looked_at() || m.phase().is_settled();
        self.all(is_known)
            && !self.any(|m| matches!(m.phase(), Phase::Starting { .. }))
            && !self.any(|m| m.is_idle() && m.libvirt_trouble().is_some())
            && !self.can_start_any()
    }

    /// All is known of them that can be known without starting anybody.
    pub(super) fn are_looked_at(&self) -> bool {
        self.all(|m| {
            m.is_looked_at()
                || matches!(m.phase(), Phase::Failed { .. })
                || m.libvirt_trouble().is_some()
        })
    }

    /// Every one is up or has failed: nothing more is going to happen.
    pub(super) fn are_over(&self) -> bool {
        self.all(|m| matches!(m.phase(), Phase::Up { .. } | Phase::Failed { .. }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixtures::{TIMEOUT, after, guest, guests, listed};
    use super::*;
    use crate::config::guest::Guest;
    use crate::model::guests::VfState;
    use crate::names::{VfName, at};

    fn members(list: Vec<Guest>) -> Members {
        Members::new(&guests(list, 1))
    }

    fn positions(indices: Vec<GuestIndex>) -> Vec<usize> {
        indices.into_iter().map(GuestIndex::position).collect()
    }

    fn of(members: &mut Members, position: usize) -> &mut GuestState {
        members.get_mut(GuestIndex::new(position)).expect("guest")
    }

    fn waits(members: &Members, position: usize) -> String {
        let waiting = members.waiting(GuestIndex::new(position));
        waiting.map(|w| w.to_string()).unwrap_or_default()
    }

    #[test]
    fn they_start_one_after_the_other_in_their_order() {
        let list = vec![after("a.service", &[2]), guest("b.service"), guest("c.service")];
        let mut all = members(list);
        assert_eq!(positions(all.order()), [1, 2, 0]);
        assert_eq!(positions(all.startable(false, 0)), [1]);
        assert_eq!(waits(&all, 0), "the guest starts after unit c.service, which is not up yet");
        assert_eq!(waits(&all, 2), "other guests are being started");
        of(&mut all, 1).begin(Moment::START);
        assert!(!all.can_start_any() && !all.are_tried());
        assert_eq!(waits(&all, 1), "");
        of(&mut all, 1).come_up(at(1));
        assert_eq!(positions(all.startable(false, 0)), [2]);
        // Who fails holds nobody up.
        of(&mut all, 2).fail("x".to_owned());
        assert_eq!(positions(all.startable(false, 0)), [0]);
        assert!(!all.are_over());
        // Who is issued holds nobody up either, but is not over.
        of(&mut all, 0).issue("y".to_owned());
        assert!(all.are_tried() && !all.are_over());
        of(&mut all, 0).come_up(at(2));
        assert!(all.are_over());
        assert_eq!(all.count_up(), (2, 3));
    }

    #[test]
    fn who_needs_vfs_is_started_on_a_fresh_look_only() {
        let vf: VfName = "0000:4b:00.0/1".parse().expect("name");
        let mut unit = guest("a.service");
        unit.vfs = crate::config::guest::Needs::These(vec![vf]);
        let mut all = members(vec![unit]);
        assert_eq!(waits(&all, 0), "the VFs of the guest are being checked");
        assert!(!all.are_looked_at() && !all.are_tried());
        let state = |lacks| VfState { vf: Some(vf), pci: None, reached: None, lacks };
        let seen = |lacks| VfStates::from([(Need::Vf(vf), Some(state(lacks)))]);
        all.see(&seen(Some("the VF does not exist".to_owned())), GuestState::is_idle);
        assert_eq!(waits(&all, 0), "VF 0000:4b:00.0/1: the VF does not exist");
        assert!(all.are_tried() && !all.can_start_any());
        // A look at other VFs says nothing of these.
        all.see(&VfStates::new(), GuestState::is_idle);
        assert_eq!(waits(&all, 0), "VF 0000:4b:00.0/1: the VF does not exist");
        all.see(&seen(None), GuestState::is_idle);
        assert!(all.can_start_any() && all.startable(false, 0).is_empty());
        assert_eq!(positions(all.startable(true, 0)), [0]);
        assert!(all.startable(true, 1).is_empty(), "one at a time");
    }

    #[test]
    fn who_waits_for_libvirt_is_given_up_when_its_start_would_be() {
        let mut all = members(vec![guest("vm"), guest("a.service")]);
        let trouble = "libvirt does not answer";
        all.lose_libvirt(trouble, at(10));
        assert_eq!(waits(&all, 0), trouble);
        // Units have nothing to do with it.
        assert_eq!(waits(&all, 1), "other guests are being started");
        assert!(all.are_looked_at() && !all.are_tried());
        // To be told so again does not give it more time.
        all.lose_libvirt(trouble, at(1_000_000));
        assert_eq!(all.next_until(), Some(at(10) + TIMEOUT));
        assert_eq!(all.given_up(at(9) + TIMEOUT), []);
        let given_up = all.given_up(at(10) + TIMEOUT);
        assert_eq!(given_up, [(GuestIndex::new(0), trouble.to_owned())]);
        // Had it come back, the guest would have been asked for its devices.
        all.learn(&Domains::parse(&listed("vm", 1).0, "", ""), at(20));
        assert_eq!(all.given_up(at(10) + TIMEOUT), []);
        assert_eq!(positions(all.which(GuestState::lacks_needs)), [0]);
    }
    #[test]
    fn after_an_outage_of_libvirt_a_start_has_all_its_time_whenever_it_comes() {
        let mut all = members(vec![guest("vm")]);
        let back = Domains::parse(&listed("vm", 1).0, "", "");
        for outage in [at(10), at(7_200_000_000)] {
            all.lose_libvirt("libvirt has stopped", outage);
            assert_eq!(all.next_until(), Some(outage + TIMEOUT));
            all.learn(&back, outage + Duration::from_micros(1));
            // It waits for its VFs, which has no end.
            assert_eq!(all.next_until(), None);
            assert_eq!(all.given_up(outage + 2 * TIMEOUT), []);
        }
        let now = at(9_000_000_000);
        assert_eq!(of(&mut all, 0).begin(now), now + TIMEOUT);
    }
}
