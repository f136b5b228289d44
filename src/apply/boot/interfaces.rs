//! The settings of interfaces within a boot: each interface's own unit makes
//! them and says so; boot makes them itself where none has in time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::{IfaceReport, PortProgress, Step};
use crate::names::{IfName, Moment, Rung};

/// How long an interface's own unit may take to say how its settings went,
/// before boot makes them itself: the udev rule can be missing, the unit masked.
const INSTANCE: Duration = Duration::from_secs(5);

/// Interfaces whose settings were waited for.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    unset: BTreeMap<IfName, Moment>,
    /// When they were made.
    set: BTreeMap<IfName, Moment>,
    /// The start of the system is over, if that was asked.
    is_started: Option<bool>,
}

impl Interfaces {
    /// Take in which interfaces (and their indexes) wait for their settings, and
    /// which `ports` have theirs. Gives what boot does itself, because the
    /// interface's own unit has had its time. Of one that udev has named long ago `is_started`
    /// tells whether its unit may be about to start: not after the start of the system.
    pub(super) fn note(
        &mut self,
        open: Vec<(IfName, u32)>,
        ports: &[PortProgress],
        now: Moment,
        is_started: impl Fn() -> bool,
    ) -> Vec<Step> {
        for (netdev, _) in &open {
            if self.unset.contains_key(netdev) {
                continue;
            }
            let named = ports.iter().find(|p| p.netdev.as_ref() == Some(netdev));
            let named = named.and_then(|port| port.named_usec).unwrap_or(now);
            let has_had_its_time =
                now >= named + INSTANCE && *self.is_started.get_or_insert_with(&is_started);
            self.unset.insert(netdev.clone(), if has_had_its_time { named } else { now });
        }
        for port in ports.iter().filter(|p| p.reached == Some(Rung::Configured)) {
            if let Some(netdev) = port.netdev.as_ref().filter(|n| self.unset.contains_key(n)) {
                self.set.entry(netdev.clone()).or_insert(now);
            }
        }
        let overdue = open.into_iter().filter(|(netdev, _)| {
            self.unset.get(netdev).is_some_and(|since| now >= *since + INSTANCE)
        });
        overdue.map(|(netdev, ifindex)| Step::Configure { netdev, ifindex }).collect()
    }

    /// The settings of the port's netdev were waited for.
    pub(super) fn has_waited(&self, port: &PortProgress) -> bool {
        port.netdev.as_ref().is_some_and(|n| self.unset.contains_key(n))
    }

    /// When those of the port's netdev were made, if they were waited for.
    pub(super) fn made(&self, port: &PortProgress) -> Option<Moment> {
        self.set.get(port.netdev.as_ref()?).copied()
    }

    /// When the next interface's own unit has had its time.
    pub(super) fn next_overdue(&self, now: Moment) -> Option<Moment> {
        let open = self.unset.iter().filter(|(netdev, _)| !self.set.contains_key(netdev));
        open.map(|(_, since)| *since + INSTANCE).filter(|t| *t > now).min()
    }
}

/// Leave out of these `outcomes` what was deferred before this boot `started`: what was in use
/// then may not be any more.
pub(super) fn leave_out_old_deferrals(outcomes: &mut BTreeMap<u32, IfaceReport>, started: Moment) {
    outcomes.retain(|_, outcome| outcome.deferred.is_none() || outcome.started_usec >= started);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::iface::DeferredSettings;
    use crate::names::at;

    #[test]
    fn what_an_earlier_run_has_deferred_is_open_again() {
        let outcome = |started, deferred: bool| {
            let nothing = DeferredSettings { steps: Vec::new(), uses: Vec::new() };
            let deferred = deferred.then_some(nothing);
            IfaceReport { deferred, ..IfaceReport::blank("ib0", started) }
        };
        let mut outcomes = BTreeMap::from([
            (3, outcome(at(9), true)),
            (4, outcome(at(9), false)),
            (5, outcome(at(10), true)),
        ]);
        leave_out_old_deferrals(&mut outcomes, at(10));
        assert_eq!(outcomes.into_keys().collect::<Vec<_>>(), [4, 5]);
    }

    fn ib0(reached: Rung) -> PortProgress {
        let mut port = PortProgress::absent("x".to_owned(), Rung::Configured, String::new());
        port.netdev = "ib0".parse().ok();
        port.reached = Some(reached);
        port
    }

    fn open() -> Vec<(IfName, u32)> {
        vec![("ib0".parse().expect("name"), 3)]
    }

    #[test]
    fn boot_acts_itself_once_the_unit_has_had_its_time() {
        let mut interfaces = Interfaces::default();
        let port = [ib0(Rung::Named)];
        assert_eq!(interfaces.note(open(), &port, at(10), || false), []);
        assert!(interfaces.has_waited(&port[0]));
        assert_eq!(interfaces.next_overdue(at(10)), Some(at(10) + INSTANCE));
        let overdue = interfaces.note(open(), &port, at(10) + INSTANCE, || false);
        assert_eq!(overdue.len(), 1, "{overdue:?}");
        assert_eq!(interfaces.next_overdue(at(10) + INSTANCE), None);
    }

    /// No unit is started any more for an interface that was there before ibprov was begun.
    #[test]
    fn after_the_start_of_the_system_boot_acts_at_once() {
        let named = at(7);
        let port = [PortProgress { named_usec: Some(named), ..ib0(Rung::Named) }];
        let acts = |now, is_started: bool| {
            !Interfaces::default().note(open(), &port, now, || is_started).is_empty()
        };
        assert!(acts(named + INSTANCE, true));
        assert!(!acts(named + INSTANCE, false), "its unit starts beside us");
        let asked = || unreachable!("it has just appeared, and its unit starts");
        let now = named + INSTANCE - Duration::from_micros(1);
        assert_eq!(Interfaces::default().note(open(), &port, now, asked), []);
    }

    #[test]
    fn what_was_made_is_not_overdue() {
        let mut interfaces = Interfaces::default();
        interfaces.note(open(), &[ib0(Rung::Named)], at(10), || false);
        let port = [ib0(Rung::Configured)];
        assert_eq!(interfaces.note(Vec::new(), &port, at(20), || false), []);
        interfaces.note(Vec::new(), &port, at(30), || false);
        assert_eq!(
            (interfaces.made(&port[0]), interfaces.next_overdue(at(30))),
            (Some(at(20)), None)
        );
        // Who was never waited for has no such time.
        let mut fresh = Interfaces::default();
        fresh.note(Vec::new(), &port, at(20), || false);
        assert_eq!((fresh.made(&port[0]), fresh.has_waited(&port[0])), (None, false));
    }
}
