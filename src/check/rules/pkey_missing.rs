use super::{Judge, Rule};
use crate::report::common::Code;

pub(super) const RULE: Rule = Rule {
    code: Code::PkeyMissing,
    meaning: "an active port is not a full member of a partition that it needs",
    page: "\
The subnet manager writes the P_Key table of each port. A P_Key that is not in the table
of this port, or is there only as a limited member (without the bit 0x8000), is needed:
by pkeys of its [[port]], by a P_Key child that exists or is configured, or by a netdev
that has no carrier. Ports that are not active are not judged.

A limited member reaches full members only, and no other limited member. Not every subnet
manager lets it join the broadcast group of IPoIB. Without the P_Key nothing is sent or
received in the partition, and a P_Key child has no carrier.

opensm makes every port but its own a limited member of the default partition (0x7fff)
if partitions.conf exists and has no rule for it.

Symptoms: ib0 without carrier at an Active port; \"multicast join failed\" with status
-22; `cat /sys/class/infiniband/*/ports/*/pkeys/*` does not have the P_Key.

Remedy: have the administrator of the subnet manager add the port GUID to the partition
as a full member, for opensm in partitions.conf, then send opensm SIGHUP. To see the
P_Keys of the ports:

    ibprov status -v",
    needles: &[],
    judge: Judge::Host,
};
