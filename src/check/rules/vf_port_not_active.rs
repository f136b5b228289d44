use super::{Judge, Rule};
use crate::report::common::Code;

pub(super) const RULE: Rule = Rule {
    code: Code::VfPortNotActive,
    meaning: "the port of a VF is not active, although the port of its PF is",
    page: "\
A VF of this host has its GUIDs and its driver, its link state is follow or up, and the
port of its PF is Active. Its own port is not: the fabric serves the one and not the
other. From ConnectX-4 on, the cause is mostly a subnet manager that serves no virtual
ports (opensm-virt-disabled). On a ConnectX-3 the subnet manager has not granted the
alias GUID.

The node is ready with exceptions (exit 1). Nothing is said of a VF whose link state is
down as planned, of one on vfio-pci, or of one that is in another network namespace.

To see the ports of VFs with their states:

    ibprov status -v",
    needles: &[],
    judge: Judge::Host,
};
