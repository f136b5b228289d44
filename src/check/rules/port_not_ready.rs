use super::{Judge, Rule};

pub(super) const RULE: Rule = Rule {
    code: "port-not-ready",
    meaning: "an expected port of this host has not come, and no better name fits the cause",
    page: "\
Every expected port climbs a ladder: pci, driver, rdma, netdev, named. On a live
host the first rung that is missing is seen, and often why: a failed probe, a
driver that has registered no RDMA device, a netdev that ib_ipoib did not make.
The finding says what is known.

Remedy: follow the advice of the finding. To see all ports and their states:

    ibprov status

The kernel's messages about the PCI address show what the driver was doing.",
    needles: &[],
    judge: Judge::Host,
};
