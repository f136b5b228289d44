use super::{Boot, Confidence, Event, Finding, Judge, Rule, Severity, seen};
use crate::check::evidence::state::{NetdevSeen, PortSeen};
use crate::names::{IfName, PKey};
use crate::report::common::Code;
use crate::report::finding::Quote;

pub(super) const RULE: Rule = Rule {
    code: Code::InterfaceNotOnline,
    meaning: "the netdev of an active port has no carrier, or is down and meant to be up",
    page: "\
The port is active, and its netdev, or a P_Key child of that, is up without carrier: IPoIB
has not joined the broadcast group of its partition. Or the netdev is down, although a
network stack that is part of this boot is configured to set it up. A netdev that is down
and that no network stack is configured for is no finding: a node that uses only verbs
does not need it. In a log the finding is made of joins that were refused (status -22) to
the last, and of ip link with ibstat, if these show no carrier at an Active port.

Symptoms: NO-CARRIER in ip link; \"multicast join failed for\" in the kernel log, with
status -110 if the subnet manager does not answer, and -22 if it refuses the port.

Causes: the port is not a member of the partition (pkey-missing); its rate or MTU is less
than that of the group; the subnet manager does not run any more; for a netdev that is
down, the network stack has failed or has finished before the netdev appeared.

Remedy: follow the advice of the finding.

    ibprov status -v
    sminfo -C DEVICE -P PORT",
    needles: &[&["multicast join failed for"]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    // A host is judged as it is now.
    if boot.host.as_ref().is_some_and(|host| host.judgement.is_some()) {
        return Vec::new();
    }
    let told = kept_out(boot).into_iter().map(|KeptOut { netdev, refusals, shown, .. }| {
        let finding = |text, quotes: Vec<Quote>| {
            let finding = Finding::new(RULE.code, Severity::Warning, Confidence::Medium, text);
            finding.about(netdev).quoting(quotes)
        };
        match shown {
            Some((up, port)) if refusals.is_empty() => finding(
                format!(
                    "{netdev} is up without carrier, although {} is Active: it has not joined its broadcast group.",
                    port.name()
                ),
                vec![
                    boot.quote_at(up.origin, "", &up.text),
                    boot.quote_at(port.origin, "", &port.told()),
                ],
            )
            .look([format!(
                "dmesg | grep '{netdev}: multicast join failed': status -110 means that the subnet manager does not answer, -22 that it refuses"
            )]),
            _ => finding(
                format!(
                    "The subnet manager refuses to let {netdev} join its broadcast group (status -22), so that {netdev} has no carrier."
                ),
                seen::quotes(boot, refusals),
            )
            .look([
                "compare the P_Keys of the port with the partition of the group: ibprov status -v",
                "saquery -C DEVICE -P PORT -g: the rate and the MTU of the group must not be greater than those of the port",
            ]),
        }
    });
    told.collect()
}

/// A netdev that is not in its broadcast group.
pub(super) struct KeptOut<'a> {
    pub netdev: &'a str,
    /// The partition of the group.
    pub pkey: Option<PKey>,
    /// The lines that say that the subnet manager refuses it.
    pub refusals: Vec<&'a Event>,
    /// A dump that shows it up without carrier, and one that shows its port as active.
    pub shown: Option<(&'a NetdevSeen, &'a PortSeen)>,
}

/// The netdevs that are shown up without carrier at an active port; and those whose last word is
/// that the join of their broadcast group was answered with an error (`recv_handler()`,
/// drivers/infiniband/core/sa_query.c: EINVAL for any), so often and so long that the fabric does
/// not only start, or with a dump that shows no carrier.
pub(super) fn kept_out(boot: &Boot) -> Vec<KeptOut<'_>> {
    const MANY: usize = 3;
    const LONG: i64 = 20_000_000;
    let mut all: Vec<(KeptOut<'_>, Option<usize>)> = Vec::new();
    for (at, event) in boot.events.iter().enumerate() {
        let Some((netdev, pkey)) = refusal(&event.text) else { continue };
        match all.iter_mut().find(|(out, _)| out.netdev == netdev) {
            Some((out, last)) => {
                out.refusals.push(event);
                *last = Some(at);
            }
            None => {
                all.push((KeptOut { netdev, pkey, refusals: vec![event], shown: None }, Some(at)));
            }
        }
    }
    for (netdev, port) in dark(boot) {
        match all.iter_mut().find(|(out, _)| out.netdev == netdev.name) {
            Some((out, _)) => out.shown = Some((netdev, port)),
            None => all.push((
                KeptOut {
                    netdev: &netdev.name,
                    // It is no child.
                    pkey: PKey::new(0xffff),
                    refusals: Vec::new(),
                    shown: Some((netdev, port)),
                },
                None,
            )),
        }
    }
    let is_last = |(out, last): &(KeptOut<'_>, Option<usize>)| {
        let mut good = boot.fold().good().filter(|object| object.name == out.netdev);
        let came = good.any(|object| {
            object.last.event.is_none_or(|event| last.is_none_or(|last| event > last))
        });
        let shown = boot.state.netdevs.iter().rfind(|netdev| netdev.name == out.netdev);
        let is_dark = shown.and_then(|netdev| netdev.carrier) == Some(false);
        let ends = out.refusals.first().zip(out.refusals.last());
        let long = ends.and_then(|(first, last)| last.when.since(&first.when));
        let often = out.refusals.len() >= MANY && long.is_some_and(|usec| usec >= LONG);
        !came && (is_dark || often)
    };
    all.into_iter().filter(is_last).map(|(out, _)| out).collect()
}

/// What dumps show up and without carrier, with their ports, if these are active to the last. A
/// netdev whose address is not shown is that of the only port.
fn dark(boot: &Boot) -> impl Iterator<Item = (&NetdevSeen, &PortSeen)> {
    let is_dark =
        |n: &&NetdevSeen| n.infiniband && n.parent.is_none() && n.up && n.carrier == Some(false);
    boot.state.netdevs.iter().filter(is_dark).filter_map(|netdev| {
        let ports = &boot.state.ports;
        let is_its = |port: &&PortSeen| match netdev.guid.as_str() {
            "" => ports.iter().all(|other| other.name() == port.name()),
            guid => port.guid == guid,
        };
        let port = ports.iter().rfind(is_its)?;
        port.is_active().then_some((netdev, port))
    })
}

/// The netdev of a line about a join of its broadcast group that was refused, and the partition
/// of the group: `ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status
/// -22` (drivers/infiniband/ulp/ipoib/ipoib_multicast.c).
fn refusal(text: &str) -> Option<(&str, Option<PKey>)> {
    let (netdev, rest) = text.split_once(": multicast join failed for ")?;
    let (group, status) = rest.split_once(", status ")?;
    let fields: Vec<&str> = group.split(':').collect();
    let is_broadcast =
        fields.len() == 8 && group.starts_with("ff1") && group.ends_with("ffff:ffff");
    let netdev = netdev.rsplit(' ').next().filter(|name| name.parse::<IfName>().is_ok())?;
    let pkey = || PKey::new(u16::from_str_radix(fields.get(2)?, 16).ok()?);
    (is_broadcast && status.trim() == "-22").then(|| (netdev, pkey()))
}

#[cfg(test)]
mod tests {
    use super::super::healthy;
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn a_dump_shows_no_carrier_at_an_active_port() {
        let port = |state: &str| {
            format!(
                "CA 'mlx5_0'\n\tCA type: MT4126\n\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: LinkUp\n\t\tPort GUID: 0x0200000c00010003\n\t\tLink layer: InfiniBand"
            )
        };
        let netdev = |flags: &str, guid: &str| {
            format!(
                "3: ib0: <{flags}BROADCAST,MULTICAST,UP> mtu 2044\n    link/infiniband 00:00:01:28:fe:80:00:00:00:00:00:00:{guid} brd 00:ff"
            )
        };
        let (own, other) = ("02:00:00:0c:00:01:00:03", "02:00:00:0c:00:01:00:04");
        for (state, flags, guid, told) in [
            ("Active", "NO-CARRIER,", own, true),
            ("Active", "LOWER_UP,", own, false),
            ("Active", "NO-CARRIER,", other, false),
            ("Initializing", "NO-CARRIER,", own, false),
        ] {
            let log = [port(state), netdev(flags, guid)];
            let log = log.each_ref().map(String::as_str);
            let want = told.then_some(Severity::Warning);
            assert_eq!(severity(&RULE, &log), want, "{log:#?}");
            let is_healthy = severity(&healthy::RULE, &log).is_some();
            assert_eq!(is_healthy, !told && state == "Active", "{log:#?}");
        }
        let brief = |guid: &str| {
            format!("ib0 DOWN 00:00:01:28:fe:80:00:00:00:00:00:00:{guid} <NO-CARRIER,MULTICAST,UP>")
        };
        let cut = "3: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 2044".to_owned();
        for (netdev, told) in [(brief(own), true), (brief(other), false), (cut, true)] {
            let log = [port("Active"), netdev];
            let want = told.then_some(Severity::Warning);
            assert_eq!(severity(&RULE, &log.each_ref().map(String::as_str)), want, "{log:#?}");
        }
    }

    #[test]
    fn joins_that_are_refused_to_the_last() {
        let join = |at: u32, netdev: &str, words: &str, status: &str| {
            format!(
                "Oct 04 08:11:{at} n3 kernel: {netdev}: {words}multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status {status}"
            )
        };
        let told = |netdev: &str, words: &str, status: &str, ats: &[u32], last: &str| {
            let mut lines: Vec<String> =
                ats.iter().map(|at| join(*at, netdev, words, status)).collect();
            lines.push(last.to_owned());
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            severity(&RULE, &lines)
        };
        let ats = [13, 17, 25, 41];
        assert_eq!(told("ib0", "", "-22", &ats, ""), Some(Severity::Warning));
        assert_eq!(told("ib0", "", "-110", &ats, ""), None);
        // A group that nobody has created yet.
        assert_eq!(told("ib0", "sendonly ", "-22", &ats, ""), None);
        // A fabric that starts.
        assert_eq!(told("ib0", "", "-22", &[33, 34, 36], ""), None);
        let shown = "4: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 2044\n    link/infiniband 00:00 brd ff";
        assert_eq!(told("ib0", "", "-22", &[33], shown), Some(Severity::Warning));
        for (ready, want) in [("ib0", None), ("ib1", Some(Severity::Warning))] {
            let ready = format!(
                "Oct 04 08:11:50 n3 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): {ready}: link becomes ready"
            );
            assert_eq!(told("ib0", "", "-22", &ats, &ready), want);
        }
    }
}
