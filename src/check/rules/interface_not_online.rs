use super::{Judge, Rule};
use crate::report::common::Code;

pub(super) const RULE: Rule = Rule {
    code: Code::InterfaceNotOnline,
    meaning: "the netdev of an active port has no carrier, or is down and meant to be up",
    page: "\
The port is active, and its netdev, or a P_Key child of that, is up without carrier: IPoIB
has not joined the broadcast group of its partition. Or the netdev is down, although a
network stack that is part of this boot is configured to set it up. A netdev that is down
and that no network stack is configured for is no finding: a node that uses only verbs
does not need it.

Symptoms: NO-CARRIER in ip link; \"multicast join failed for\" in the kernel log, with
status -110 if the subnet manager does not answer, and -22 if it refuses the port.

Causes: the port is not a member of the partition (pkey-missing); its rate or MTU is less
than that of the group; the subnet manager does not run any more; for a netdev that is
down, the network stack has failed or has finished before the netdev appeared.

Remedy: follow the advice of the finding.

    ibprov status -v
    sminfo -C DEVICE -P PORT",
    needles: &[],
    judge: Judge::Host,
};
