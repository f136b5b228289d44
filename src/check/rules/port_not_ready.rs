use super::{Code, Judge, Rule};

pub(super) const RULE: Rule = Rule {
    code: Code::PortNotReady,
    meaning: "an expected port of this host is not ready, and no other diagnosis names the cause",
    page: "\
Every expected port passes through the states pci, driver, rdma, netdev and named. The
finding names the first state that is missing on the live host, and its cause if it is
known: a failed probe, a driver that has registered no RDMA device, a netdev that
ib_ipoib did not create.

Remedy: follow the advice of the finding. To see all ports and their states:

    ibprov status

The kernel's messages about the PCI address show what the driver was doing.",
    needles: &[],
    judge: Judge::Host,
};
