//! An RDMA device's name, which udev may change too: rdma-core's rules rename
//! `mlx5_0` to `ibp1s0` by default.
//!
//! The kernel announces an RDMA device after the netdevs that its clients made
//! for it (`ib_register_device()`, `drivers/infiniband/core/device.c`), so a port
//! can have its final netdev while the name of its RDMA device still changes. A
//! VF plan would work on paths that go away, and the report would tell a name
//! that nobody finds. udev keeps no record of an RDMA device that no rule says
//! something of, so only its processed event, or an empty queue, tells.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::model::PortProgress;
use crate::names::{Moment, RdmaName, Rung};
use crate::observe::Observed;

/// For how long after the netdev's own name the RDMA device's is waited for. Two
/// events in a row: milliseconds, unless udev itself is in trouble.
const LIMIT: Duration = Duration::from_secs(2);

/// The RDMA devices whose names are final.
#[derive(Debug, Default)]
pub(super) struct RdmaNames {
    seen: BTreeSet<RdmaName>,
    settled: BTreeSet<RdmaName>,
}

impl RdmaNames {
    /// Take a look into account. udev has nothing queued for a moment after the
    /// kernel showed a device: an empty queue says something only of those that
    /// an earlier look showed, or that were there before boot began.
    pub(super) fn learn(&mut self, observed: &Observed, is_first: bool) {
        let devices = observed.functions.iter().flat_map(|f| &f.rdma);
        let there: BTreeSet<RdmaName> = devices.map(|d| d.name.clone()).collect();
        if observed.udev.settled {
            self.settled
                .extend(there.iter().filter(|d| is_first || self.seen.contains(d)).cloned());
        }
        self.settled.retain(|d| there.contains(d));
        self.seen = there;
    }

    /// Hold each port below `named` whose RDMA device udev is not through with.
    /// Gives the first time at which one of them is not held any longer.
    pub(super) fn hold(
        &self,
        ports: &mut [PortProgress],
        observed: &Observed,
        now: Moment,
    ) -> Option<Moment> {
        if observed.udev.running == Some(false) {
            return None;
        }
        let mut next = None;
        for port in ports.iter_mut().filter(|p| p.reached == Some(Rung::Named)) {
            let (Some(name), Some(named)) = (&port.rdma, port.named_usec) else { continue };
            let until = named + LIMIT;
            if now < until && !self.is_final(name, observed) {
                port.reached = Some(Rung::Netdev);
                next = Some(next.map_or(until, |n: Moment| n.min(until)));
            }
        }
        next
    }

    fn is_final(&self, name: &RdmaName, observed: &Observed) -> bool {
        observed.udev.heard.contains(name.as_str()) || self.settled.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::status::Udev;
    use crate::names::at;
    use crate::observe::{PciFunction, RdmaDevice};

    const NAMED: Moment = at(10_000_000);
    const SOON: Moment = at(10_000_001);

    fn observed(rdma: &str, settled: bool, heard: &[&str]) -> Observed {
        let device =
            RdmaDevice { name: rdma.parse().expect("name"), node_guid: None, ports: Vec::new() };
        let function = PciFunction { rdma: vec![device], ..PciFunction::connectx6() };
        let heard = heard.iter().map(ToString::to_string).collect();
        let udev = Udev { running: Some(true), settled, heard };
        Observed { functions: vec![function], udev, ..Observed::default() }
    }

    fn port(rdma: &str) -> PortProgress {
        let mut port = PortProgress::absent("0000:4b:00.0", Rung::Named, String::new());
        port.rdma = Some(rdma.parse().expect("name"));
        port.reached = Some(Rung::Named);
        port.named_usec = Some(NAMED);
        port
    }

    /// The rung of a port of `rdma`, and until when it is held there.
    fn held(
        first: Option<&Observed>,
        now_there: &Observed,
        now: Moment,
    ) -> (Option<Rung>, Option<Moment>) {
        let mut names = RdmaNames::default();
        names.learn(first.unwrap_or(&Observed::default()), true);
        names.learn(now_there, false);
        let name = now_there.functions[0].rdma[0].name.to_string();
        let mut ports = [port(&name)];
        let until = names.hold(&mut ports, now_there, now);
        (ports[0].reached, until)
    }

    #[test]
    fn a_new_rdma_device_is_waited_for_until_udev_has_told_of_its_name() {
        let until = Some(NAMED + LIMIT);
        let new = observed("mlx5_0", true, &[]);
        assert_eq!(held(None, &new, SOON), (Some(Rung::Netdev), until));
        // Its first event under the old name is not the end of it.
        let renamed = observed("ibp1s0", false, &["mlx5_0"]);
        assert_eq!(held(None, &renamed, SOON), (Some(Rung::Netdev), until));
        let done = observed("ibp1s0", false, &["mlx5_0", "ibp1s0"]);
        assert_eq!(held(None, &done, SOON), (Some(Rung::Named), None));
    }

    #[test]
    fn one_that_was_there_is_final_where_udev_has_nothing_to_do() {
        let busy = observed("mlx5_0", false, &[]);
        let idle = observed("mlx5_0", true, &[]);
        assert_eq!(held(Some(&busy), &busy, SOON).0, Some(Rung::Netdev));
        assert_eq!(held(Some(&busy), &idle, SOON), (Some(Rung::Named), None));
        // What udev does later has nothing to do with it.
        assert_eq!(held(Some(&idle), &busy, SOON), (Some(Rung::Named), None));
    }

    #[test]
    fn a_silent_udev_holds_no_port_for_long() {
        let new = observed("mlx5_0", false, &[]);
        assert_eq!(held(None, &new, NAMED + LIMIT), (Some(Rung::Named), None));
        let mut without_udev = new;
        without_udev.udev.running = Some(false);
        assert_eq!(held(None, &without_udev, SOON), (Some(Rung::Named), None));
    }
}
