use super::{Code, Judge, Rule};

pub(super) const RULE: Rule = Rule {
    code: Code::NetdevLate,
    meaning: "a netdev appeared after the network service had set interfaces up, and is down",
    page: "\
Services like networking (ifupdown) and network (network-scripts) set up
once the interfaces that exist when they run. An adapter whose driver or firmware takes
long has its netdev later than that, and no network service sets it up any more. On a
live host the times are known: when the service began, and when udev had finished with
the netdev.

Remedy: bring the interface up with ifup. For every boot, enable ibprov.service, which
is ordered before the network and waits for the netdevs.",
    needles: &[],
    judge: Judge::Host,
};
