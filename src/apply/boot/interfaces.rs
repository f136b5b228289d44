//! The settings of interfaces within a boot: each interface's own unit makes
//! them and says so; boot makes them itself where none has in time.

use std::collections::BTreeMap;

use crate::names::{IfName, Rung};
use crate::report::PortProgress;
use crate::report::boot::Step;

/// How long an interface's own unit may take to say how its settings went,
/// before boot makes them itself: the udev rule can be missing, the unit masked.
const INSTANCE_USEC: u64 = 5_000_000;

/// Interfaces whose settings were waited for.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    /// Since when.
    unset: BTreeMap<IfName, u64>,
    /// When they were made.
    set: BTreeMap<IfName, u64>,
}

impl Interfaces {
    /// Take in which interfaces (and their indexes) wait for their settings, and
    /// which `ports` have theirs. Gives what boot does itself, because the
    /// interface's own unit has had its time.
    pub(super) fn note(
        &mut self,
        open: Vec<(IfName, u32)>,
        ports: &[PortProgress],
        now: u64,
    ) -> Vec<Step> {
        for (netdev, _) in &open {
            self.unset.entry(netdev.clone()).or_insert(now);
        }
        for port in ports.iter().filter(|p| p.reached == Some(Rung::Configured)) {
            if let Some(netdev) = port.netdev.as_ref().filter(|n| self.unset.contains_key(n)) {
                self.set.entry(netdev.clone()).or_insert(now);
            }
        }
        let overdue = open.into_iter().filter(|(netdev, _)| {
            self.unset.get(netdev).is_some_and(|since| now >= since + INSTANCE_USEC)
        });
        overdue.map(|(netdev, ifindex)| Step::Configure { netdev, ifindex }).collect()
    }

    /// The settings of the port's netdev were waited for.
    pub(super) fn has_waited(&self, port: &PortProgress) -> bool {
        port.netdev.as_ref().is_some_and(|n| self.unset.contains_key(n))
    }

    /// When those of the port's netdev were made, if they were waited for.
    pub(super) fn made(&self, port: &PortProgress) -> Option<u64> {
        self.set.get(port.netdev.as_ref()?).copied()
    }

    /// When the next interface's own unit has had its time.
    pub(super) fn next_overdue(&self, now: u64) -> Option<u64> {
        let open = self.unset.iter().filter(|(netdev, _)| !self.set.contains_key(netdev));
        open.map(|(_, since)| since + INSTANCE_USEC).filter(|t| *t > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(interfaces.note(open(), &port, 10), []);
        assert!(interfaces.has_waited(&port[0]));
        assert_eq!(interfaces.next_overdue(10), Some(10 + INSTANCE_USEC));
        let overdue = interfaces.note(open(), &port, 10 + INSTANCE_USEC);
        assert_eq!(overdue.len(), 1, "{overdue:?}");
        assert_eq!(interfaces.next_overdue(10 + INSTANCE_USEC), None);
    }

    #[test]
    fn what_was_made_is_not_overdue() {
        let mut interfaces = Interfaces::default();
        interfaces.note(open(), &[ib0(Rung::Named)], 10);
        let port = [ib0(Rung::Configured)];
        assert_eq!(interfaces.note(Vec::new(), &port, 20), []);
        interfaces.note(Vec::new(), &port, 30);
        assert_eq!((interfaces.made(&port[0]), interfaces.next_overdue(30)), (Some(20), None));
        // Who was never waited for has no such time.
        let mut fresh = Interfaces::default();
        fresh.note(Vec::new(), &port, 20);
        assert_eq!((fresh.made(&port[0]), fresh.has_waited(&port[0])), (None, false));
    }
}
