//! What an expected port still lacks to be online, and what that means.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ladder::active::{self, Subject};
use crate::ladder::roce::{self, Roce};
use crate::model::{
    Advice, Awaited, Cause, NetDevState, PortProgress, ToDo,
    online::{Goal, Lack},
};
use crate::names::{IfName, Moment, PortNumber, Rung, sh};
use crate::observe::link::PortAnswer;

/// What is known of a port beyond its ladder up to `named`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// What the port last answered.
    pub answer: Option<PortAnswer>,
    /// For how long it has owed an answer; zero if it owes none.
    pub silent: Duration,
    /// Why it cannot be asked.
    pub cannot_ask: Option<String>,
    /// The port; beside it is another one that is waited for.
    pub subject: Subject,
    /// How its netdev is set; `None` if it has none.
    pub netdev: Option<NetDevState>,
    /// For how long its netdev's carrier or addresses have been owed; zero if they are not.
    pub netdev_silent: Duration,
    /// The port has a GID of type RoCE v2 for an address that a peer can use; read of a port in
    /// Ethernet mode only.
    pub has_gid: bool,
    /// The addresses of global scope, `10.0.0.5/24`, if they are known.
    pub addresses: Option<Vec<String>>,
    /// Who should set its netdev up, for messages.
    pub owner: Option<String>,
}

/// Who has not answered for so long is told of.
pub const SILENCE: Duration = Duration::from_secs(3);

/// What a port lacks, and if it lacks nothing, how often its link has gone down.
pub type LastSeen = (Option<Lack>, Option<u64>);

/// What `port`, seen as (lack, count of link downs), lacks, and for how long that is seen, seconds.
/// `since`: what was seen of each port before. One that lacks nothing lacks stability until it has
/// lacked nothing for `stable_sec`, its link up all the time.
pub fn lasting(
    since: &mut BTreeMap<(Awaited, Option<PortNumber>), (LastSeen, Moment)>,
    port: &PortProgress,
    stable_sec: u64,
    (lack, downed): LastSeen,
    now: Moment,
) -> (Option<Lack>, Option<u64>) {
    let seen = (lack, downed.filter(|_| lack.is_none()));
    let since = since.entry((port.awaited(), port.port)).or_insert((seen, now));
    if since.0 != seen {
        *since = (seen, now);
    }
    let for_sec = now.since(since.1).as_secs();
    let is_short = !port.is_ethernet() && for_sec < stable_sec;
    let lack = lack.or_else(|| is_short.then_some(Lack::Stable));
    (lack, lack.map(|_| for_sec))
}

/// The first thing that `port` lacks; `None` if it is online.
pub fn lack(port: &PortProgress, seen: &Seen, goal: Goal) -> Option<Lack> {
    if port.is_ethernet() {
        return None;
    }
    if let Some(rung) = port.missing() {
        return Some(Lack::Rung(rung));
    }
    if goal.rung >= Rung::Link {
        // What was said before the silence may not be so any more.
        let fresh = seen.answer.as_ref().filter(|_| seen.silent < SILENCE);
        let Some(answer) = fresh else { return Some(Lack::Answer) };
        let link = &answer.link;
        if port.must_be_ethernet {
            let netdev = seen.netdev.as_ref();
            let roce = Roce {
                up: netdev.is_some_and(|netdev| netdev.admin_up != Some(false)),
                carrier: netdev.and_then(|netdev| netdev.carrier).filter(|_| is_fresh(seen)),
                has_gid: seen.has_gid,
            };
            if let Some(lack) = roce.lack(goal.rung) {
                return Some(lack);
            }
        } else if let Some(lack) = active::lack(link, goal.rung) {
            return Some(lack);
        }
        if goal.rung >= Rung::Active && !port.must_be_ethernet {
            match &seen.netdev {
                Some(netdev) if netdev.admin_up == Some(false) => return Some(Lack::Up),
                Some(netdev) => match netdev.carrier.filter(|_| is_fresh(seen)) {
                    Some(true) => {}
                    Some(false) => return Some(Lack::Carrier),
                    None => return Some(Lack::Answer),
                },
                None => {}
            }
        }
    }
    if !goal.address {
        return None;
    }
    match seen.addresses.as_ref().filter(|_| is_fresh(seen)) {
        // Without a netdev there is nothing to ask of.
        None if seen.netdev.is_none() => Some(Lack::Address),
        None => Some(Lack::Answer),
        Some(addresses) => addresses.is_empty().then_some(Lack::Address),
    }
}

/// What was said of the netdev before a silence may not be so any more.
fn is_fresh(seen: &Seen) -> bool {
    seen.netdev_silent < SILENCE
}

/// What to say of a port that lacks `lack`, which is no rung below `link`.
pub fn words(port: &PortProgress, seen: &Seen, lack: Lack) -> Cause {
    let netdev = port.netdev.as_ref().map_or_else(|| "the netdev".to_owned(), ToString::to_string);
    let say = |text: String, advice: Advice| Cause::waiting(text, [advice]);
    match lack {
        Lack::Up if port.must_be_ethernet => say(
            format!("{netdev} is down: no network stack has brought it up"),
            Advice::now(owner_advice(seen, port.netdev.as_ref(), "bring it up")),
        ),
        Lack::Carrier | Lack::Gid if port.must_be_ethernet => {
            roce::words(port.netdev.as_ref(), lack, seen.addresses.as_deref())
        }
        Lack::Gid => Cause::waiting(lack.lacking(), []),
        Lack::Rung(rung) => Cause::waiting(format!("state {rung} not reached"), []),
        Lack::Answer => silence(seen, &netdev),
        Lack::Link | Lack::Active => {
            active::words(&seen.subject, &seen.answer.clone().unwrap_or_default())
        }
        Lack::Up => say(
            format!("the port is Active, but {netdev} is down: no network stack has brought it up"),
            Advice::now(owner_advice(seen, port.netdev.as_ref(), "bring it up")),
        ),
        Lack::Carrier => say(
            format!(
                "the port is Active, but {netdev} has no carrier: the netdev has not joined the broadcast group of its partition"
            ),
            Advice::look(format!(
                "dmesg | grep {netdev}; the subnet manager must have the partition (P_Key) as IPoIB with this MTU and rate"
            )),
        ),
        Lack::Address => say(
            format!("{netdev} has no address of global scope"),
            Advice::now(owner_advice(seen, port.netdev.as_ref(), "give it one")),
        ),
        Lack::Stable => too_short(seen.answer.as_ref().and_then(|a| a.link.link_downed)),
    }
}

/// What to say of a port that is online, and not yet for as long as it has to be.
pub fn too_short(link_downed: Option<u64>) -> Cause {
    let counter = link_downed.map(|n| format!("; link_downed is {n}")).unwrap_or_default();
    let text = format!("it has to be online for longer without interruption{counter}");
    Cause::waiting(text, [])
}

fn silence(seen: &Seen, netdev: &str) -> Cause {
    if let Some(why) = &seen.cannot_ask {
        return Cause::waiting(format!("cannot query the state of the port: {why}"), []);
    }
    if seen.silent < SILENCE && !is_fresh(seen) {
        let text = format!(
            "the kernel has not reported the state of {netdev} for {} s: a process holds the RTNL lock",
            seen.netdev_silent.as_secs()
        );
        let hangs = "an adapter or its firmware hangs while one of its netdevs is set up or down: see dmesg, and `cat /proc/PID/stack` of the `ip` or ifup that hangs";
        return Cause::waiting(text, [Advice::look(hangs)]);
    }
    if seen.silent < SILENCE && seen.answer.is_some() {
        return Cause::waiting(format!("querying the kernel for the state of {netdev}"), []);
    }
    if seen.silent < SILENCE {
        return Cause::waiting("querying the driver for the state of the port", []);
    }
    let silent = seen.silent.as_secs();
    Cause::waiting(
        format!("the driver has not reported the state of the port for {silent} s"),
        [
            Advice::look("the adapter or its firmware hangs: see dmesg for the PCI address"),
            Advice::now("power cycle the adapter"),
        ],
    )
}

fn owner_advice(seen: &Seen, netdev: Option<&IfName>, verb: &str) -> ToDo {
    match (&seen.owner, netdev) {
        (Some(owner), _) => format!("{owner} should {verb}: see its log").into(),
        (None, Some(netdev)) => ToDo::with(
            format!("no network stack has a configuration for {netdev}: add one, or bring it up"),
            format!("ip link set {} up", sh(netdev.as_str())),
        ),
        (None, None) => "bring the netdev up".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::hardware::Link;
    use crate::names::{IsVf, LinkLayer, LinkState, PhysicalState, Policy, at};

    fn port(reached: Rung) -> PortProgress {
        PortProgress {
            pci: "0000:4b:00.0".parse().ok(),
            rdma: "mlx5_0".parse().ok(),
            netdev: "ib0".parse().ok(),
            link_layer: Some(LinkLayer::InfiniBand),
            reached: Some(reached),
            ..PortProgress::absent("0000:4b:00.0".to_owned(), Rung::Named, String::new())
        }
    }

    fn seen(state: &str, physical: &str, lid: u32) -> Seen {
        let link = Link {
            state: Some(LinkState::from_word(state)),
            physical: Some(PhysicalState::from_word(physical)),
            lid: Some(lid).filter(|lid| *lid > 0),
            ..Link::default()
        };
        Seen {
            answer: Some(PortAnswer { link, policy: None }),
            netdev: Some(NetDevState {
                admin_up: Some(true),
                carrier: Some(true),
                ..NetDevState::default()
            }),
            ..Seen::default()
        }
    }

    const ACTIVE: Goal = Goal { rung: Rung::Active, address: false, stable_sec: 0 };

    #[test]
    fn a_link_that_went_down_between_two_looks_is_not_stable() {
        let (port, mut since) = (port(Rung::Named), BTreeMap::new());
        let mut look = |sec: u64, lack, downed| {
            lasting(&mut since, &port, 5, (lack, downed), at(sec * 1_000_000))
        };
        let unstable = |for_sec| (Some(Lack::Stable), Some(for_sec));
        assert_eq!(look(10, Some(Lack::Link), Some(3)), (Some(Lack::Link), Some(0)));
        // A count that changes while the link is down is no news.
        assert_eq!(look(12, Some(Lack::Link), Some(4)), (Some(Lack::Link), Some(2)));
        assert_eq!(look(13, None, Some(4)), unstable(0));
        assert_eq!(look(17, None, Some(4)), unstable(4));
        assert_eq!(look(19, None, Some(5)), unstable(0));
        assert_eq!(look(23, None, Some(5)), unstable(4));
        assert_eq!(look(24, None, Some(5)), (None, None));
    }

    fn says(seen: &Seen) -> (&'static str, String) {
        let port = port(Rung::Named);
        let lack = lack(&port, seen, ACTIVE).expect("lacks something");
        (lack.word(), words(&port, seen, lack).text)
    }

    #[test]
    fn an_active_port_with_lid_and_carrier_is_online() {
        assert_eq!(lack(&port(Rung::Named), &seen("ACTIVE", "LinkUp", 5), ACTIVE), None);
    }

    #[test]
    fn the_lowest_thing_missing_is_told() {
        let answer = lack(&port(Rung::Netdev), &seen("DOWN", "Polling", 0), ACTIVE);
        assert_eq!(answer, Some(Lack::Rung(Rung::Named)));
        assert_eq!(lack(&port(Rung::Named), &Seen::default(), ACTIVE), Some(Lack::Answer));
        let down = |admin_up, carrier| {
            let netdev = Some(NetDevState {
                admin_up: Some(admin_up),
                carrier: Some(carrier),
                ..NetDevState::default()
            });
            Seen { netdev, ..seen("ACTIVE", "LinkUp", 5) }
        };
        assert_eq!(lack(&port(Rung::Named), &down(false, false), ACTIVE), Some(Lack::Up));
        assert_eq!(lack(&port(Rung::Named), &down(true, false), ACTIVE), Some(Lack::Carrier));
    }

    #[test]
    fn what_waits_for_the_rtnl_lock_too_long_is_not_known() {
        let silent = Seen { netdev_silent: Duration::from_secs(4), ..seen("ACTIVE", "LinkUp", 5) };
        let (lack, text) = says(&silent);
        assert_eq!(lack, Lack::Answer.word());
        assert_eq!(
            text,
            "the kernel has not reported the state of ib0 for 4 s: a process holds the RTNL lock"
        );
        let asked = Seen { netdev_silent: Duration::from_micros(1), ..seen("ACTIVE", "LinkUp", 5) };
        assert_eq!(super::lack(&port(Rung::Named), &asked, ACTIVE), None);
    }

    #[test]
    fn an_address_is_asked_for_only_if_wanted() {
        let goal = Goal { address: true, ..ACTIVE };
        let mut seen = seen("ACTIVE", "LinkUp", 5);
        assert_eq!(lack(&port(Rung::Named), &seen, goal), Some(Lack::Answer));
        seen.addresses = Some(Vec::new());
        assert_eq!(lack(&port(Rung::Named), &seen, goal), Some(Lack::Address));
        seen.addresses = Some(vec!["10.7.0.1/24".to_owned()]);
        assert_eq!(lack(&port(Rung::Named), &seen, goal), None);
    }

    #[test]
    fn a_lower_rung_asks_for_no_more() {
        let goal = |rung| Goal { rung, ..ACTIVE };
        let init = seen("INIT", "LinkUp", 0);
        assert_eq!(lack(&port(Rung::Named), &init, goal(Rung::Link)), None);
        assert_eq!(lack(&port(Rung::Named), &init, ACTIVE), Some(Lack::Active));
        assert_eq!(lack(&port(Rung::Named), &Seen::default(), goal(Rung::Named)), None);
    }

    #[test]
    fn a_port_in_ethernet_mode_is_not_waited_for() {
        let port = PortProgress { link_layer: Some(LinkLayer::Ethernet), ..port(Rung::Rdma) };
        assert_eq!(lack(&port, &Seen::default(), ACTIVE), None);
    }

    #[test]
    fn an_expected_port_in_ethernet_mode_needs_carrier_and_a_gid() {
        let port = PortProgress {
            link_layer: Some(LinkLayer::Ethernet),
            must_be_ethernet: true,
            netdev: "eth2".parse().ok(),
            ..port(Rung::Named)
        };
        // An Ethernet port has no LID.
        let seen = Seen { addresses: Some(Vec::new()), ..seen("ACTIVE", "LinkUp", 0) };
        assert_eq!(lack(&port, &seen, ACTIVE), Some(Lack::Gid));
        let text = words(&port, &seen, Lack::Gid).text;
        assert!(text.starts_with("eth2 has no address of global scope"), "{text}");
        let link = Goal { rung: Rung::Link, ..ACTIVE };
        assert_eq!(lack(&port, &seen, link), None, "a GID is more than a link");
        let with_gid = Seen { has_gid: true, ..seen.clone() };
        assert_eq!(lack(&port, &with_gid, ACTIVE), None);
        let netdev =
            NetDevState { admin_up: Some(true), carrier: Some(false), ..NetDevState::default() };
        let without = Seen { netdev: Some(netdev), ..with_gid };
        assert_eq!(lack(&port, &without, ACTIVE), Some(Lack::Carrier));
        assert_eq!(lack(&port, &Seen::default(), ACTIVE), Some(Lack::Answer));
    }

    #[test]
    fn no_sm_cable_and_policy_are_told_apart() {
        let (word, text) = says(&seen("INIT", "LinkUp", 0));
        assert_eq!(word, "active");
        assert!(text.contains("no subnet manager"), "{text}");
        let (word, text) = says(&seen("DOWN", "Polling", 0));
        assert_eq!(word, "link");
        assert!(text.contains("cable"), "{text}");
        let mut vf = seen("DOWN", "LinkUp", 0);
        vf.subject.vf = IsVf::PassedThrough;
        assert!(says(&vf).1.contains("hypervisor"), "{}", says(&vf).1);
        vf.answer.as_mut().expect("answer").policy = Some(Policy::Down);
        assert_eq!(says(&vf).1, "the link state of this VF is set to down");
    }

    #[test]
    fn who_does_not_answer_is_told_of() {
        let silent = Seen { silent: Duration::from_millis(7200), ..Seen::default() };
        assert!(says(&silent).1.contains("for 7 s"), "{}", says(&silent).1);
    }
}
