//! What an expected port still lacks to be online, and what that means.

use crate::ladder::roce::{self, Roce};
use crate::names::{IsVf, LinkState, MadPort, PhysicalState, Policy, Rung};
use crate::observe::link::PortAnswer;
use crate::report::PortProgress;
use crate::report::advice::Advice;
use crate::report::hardware::{Link, NetDevState};
use crate::report::online::{Goal, Lack};

/// What is known of a port beyond its ladder up to `named`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// What the port last answered.
    pub answer: Option<PortAnswer>,
    /// For how long it has owed an answer, microseconds; 0 if it owes none.
    pub silent_usec: u64,
    /// Why it cannot be asked.
    pub cannot_ask: Option<String>,
    /// Whether it is a VF's.
    pub vf: IsVf,
    /// How its netdev is set; `None` if it has none.
    pub netdev: Option<NetDevState>,
    /// For how long its netdev's carrier or addresses have been owed, microseconds; 0 if
    /// they are not.
    pub netdev_silent_usec: u64,
    /// The port has a GID of type RoCE v2 for an address that a peer can use; read of a port in
    /// Ethernet mode only.
    pub has_gid: bool,
    /// The addresses of global scope, `10.0.0.5/24`, if they are known.
    pub addresses: Option<Vec<String>>,
    /// Who should set its netdev up, for messages.
    pub owner: Option<String>,
}

/// Who has not answered for so long is told of, microseconds.
pub const SILENCE_USEC: u64 = 3_000_000;

/// The first thing that `port` lacks; `None` if it is online.
#[must_use]
pub fn lack(port: &PortProgress, seen: &Seen, goal: Goal) -> Option<Lack> {
    if port.is_ethernet() {
        return None;
    }
    if let Some(rung) = port.missing() {
        return Some(Lack::Rung(rung));
    }
    if goal.rung >= Rung::Link {
        // What was said before the silence may not be so any more.
        let fresh = seen.answer.as_ref().filter(|_| seen.silent_usec < SILENCE_USEC);
        let Some(answer) = fresh else { return Some(Lack::Answer) };
        let link = &answer.link;
        if port.must_be_ethernet {
            let netdev = seen.netdev.as_ref();
            let roce = Roce {
                up: netdev.is_some_and(|netdev| netdev.admin_up),
                carrier: netdev.and_then(|netdev| netdev.carrier).filter(|_| is_fresh(seen)),
                has_gid: seen.has_gid,
            };
            if let Some(lack) = roce.lack(goal.rung) {
                return Some(lack);
            }
        } else if link.physical != Some(PhysicalState::LinkUp) {
            return Some(Lack::Link);
        }
        if goal.rung >= Rung::Active && !port.must_be_ethernet {
            if !is_active(link) {
                return Some(Lack::Active);
            }
            match &seen.netdev {
                Some(netdev) if !netdev.admin_up => return Some(Lack::Up),
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
    seen.netdev_silent_usec < SILENCE_USEC
}

/// Active, with a LID that a peer can use: 0 is none, and from 0xc000 on they
/// are multicast (InfiniBand Architecture, 4.1.3).
fn is_active(link: &Link) -> bool {
    link.state == Some(LinkState::Active) && link.lid.is_some_and(|l| (1..0xc000).contains(&l))
}

/// What is wrong and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// One phrase, lower case, without a full stop and without how long.
    pub text: String,
    /// What to do.
    pub advice: Vec<Advice>,
}

/// What to say of a port that lacks `lack`, which is no rung below `link`.
#[must_use]
pub fn words(port: &PortProgress, seen: &Seen, lack: Lack) -> Words {
    let netdev = port.netdev.as_ref().map_or_else(|| "the netdev".to_owned(), ToString::to_string);
    let say = |text: String, advice: Advice| Words { text, advice: vec![advice] };
    match lack {
        Lack::Up if port.must_be_ethernet => say(
            format!("{netdev} is down: no network stack has brought it up"),
            Advice::now(owner_advice(seen, &netdev, "bring it up")),
        ),
        Lack::Carrier | Lack::Gid if port.must_be_ethernet => {
            let (text, advice) = roce::words(port.netdev.as_ref(), lack, seen.addresses.as_deref());
            Words { text, advice }
        }
        Lack::Gid => Words { text: lack.lacking().to_owned(), advice: Vec::new() },
        Lack::Rung(rung) => Words { text: format!("state {rung} not reached"), advice: Vec::new() },
        Lack::Answer => silence(seen, &netdev),
        Lack::Link | Lack::Active if policy_is_down(seen) => say(
            "the link state of this VF is set to down".to_owned(),
            Advice::now(
                "set it to follow at the PF: `ip link set PF-NETDEV vf N state auto`".to_owned(),
            ),
        ),
        Lack::Link => no_link(port, seen),
        Lack::Active => not_active(port, seen),
        Lack::Up => say(
            format!("the port is Active, but {netdev} is down: no network stack has brought it up"),
            Advice::now(owner_advice(seen, &netdev, "bring it up")),
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
            Advice::now(owner_advice(seen, &netdev, "give it one")),
        ),
    }
}

fn policy_is_down(seen: &Seen) -> bool {
    seen.answer.as_ref().and_then(|a| a.policy) == Some(Policy::Down)
}

fn silence(seen: &Seen, netdev: &str) -> Words {
    if let Some(why) = &seen.cannot_ask {
        return Words {
            text: format!("cannot query the state of the port: {why}"),
            advice: Vec::new(),
        };
    }
    if seen.silent_usec < SILENCE_USEC && !is_fresh(seen) {
        return Words {
            text: format!(
                "the kernel has not reported the state of {netdev} for {} s: a process holds the RTNL lock",
                seen.netdev_silent_usec / 1_000_000
            ),
            advice: vec![Advice::look(
                "an adapter or its firmware hangs while one of its netdevs is set up or down: see dmesg, and `cat /proc/PID/stack` of the `ip` or ifup that hangs",
            )],
        };
    }
    if seen.silent_usec < SILENCE_USEC && seen.answer.is_some() {
        return Words {
            text: format!("querying the kernel for the state of {netdev}"),
            advice: Vec::new(),
        };
    }
    if seen.silent_usec < SILENCE_USEC {
        return Words {
            text: "querying the driver for the state of the port".to_owned(),
            advice: Vec::new(),
        };
    }
    Words {
        text: format!(
            "the driver has not reported the state of the port for {} s",
            seen.silent_usec / 1_000_000
        ),
        advice: vec![
            Advice::look("the adapter or its firmware hangs: see dmesg for the PCI address"),
            Advice::now("power cycle the adapter"),
        ],
    }
}

fn mad_port(port: &PortProgress) -> MadPort {
    MadPort { device: port.rdma.clone(), port: port.port }
}

fn no_link(port: &PortProgress, seen: &Seen) -> Words {
    let adapter = port.pci.map_or_else(|| "ADDRESS".to_owned(), |pci| pci.to_string());
    let mad_port = mad_port(port);
    let physical = seen.answer.as_ref().and_then(|a| a.link.physical);
    let (text, advice) = match physical {
        Some(PhysicalState::Polling) => (
            "no signal: the cable is missing or broken, or the other end is down (Polling)",
            Advice::look(format!(
                "check the cable and the switch port; `ibstat`, `mlxlink -d {adapter}`"
            )),
        ),
        Some(PhysicalState::Disabled) => (
            "the port is disabled (Disabled)",
            Advice::now(format!(
                "`{}`, or mlxconfig KEEP_IB_LINK_UP",
                mad_port.ibportstate("enable")
            )),
        ),
        Some(PhysicalState::Sleep) => (
            "the port is in sleep state (Sleep)",
            Advice::now(format!("`{}`", mad_port.ibportstate("reset"))),
        ),
        Some(state) => return unknown_state("the physical link is not up", state.word()),
        None => return unknown_state("the physical link is not up", "unknown"),
    };
    Words { text: text.to_owned(), advice: vec![advice] }
}

fn unknown_state(what: &str, state: &str) -> Words {
    Words {
        text: format!("{what} ({state})"),
        advice: vec![Advice::look("see `ibstat` and dmesg")],
    }
}

fn not_active(port: &PortProgress, seen: &Seen) -> Words {
    let link = seen.answer.as_ref().map(|a| a.link.clone()).unwrap_or_default();
    let is_vf = seen.vf != IsVf::No;
    let (text, advice) = match (link.state, seen.vf) {
        (Some(LinkState::Init), _) if is_vf => (
            "no subnet manager has configured the port of this VF (Initializing)".to_owned(),
            Advice::permanent(format!("the subnet manager must support virtual ports (OpenSM: `virt_enabled 2`), and the VF must have its port GUID; see `sminfo {}` on the PF", MadPort::default())),
        ),
        (Some(LinkState::Init), _) => (
            "no subnet manager has configured the port (Initializing)".to_owned(),
            Advice::now(format!("start a subnet manager on this fabric (switch, or `systemctl start opensm` on one node); `sminfo {}` shows whether there is one", mad_port(port))),
        ),
        (Some(LinkState::Armed), _) => (
            "the subnet manager has not finished configuring the port (Armed)".to_owned(),
            Advice::look("see the log of the subnet manager"),
        ),
        (Some(LinkState::Active), _) => (
            format!("the port is Active without a usable LID ({})", link.lid.unwrap_or(0)),
            Advice::look("see the log of the subnet manager"),
        ),
        (Some(LinkState::Down), IsVf::PassedThrough) => (
            "the port is Down although the physical link is up: the hypervisor has set the link state of this VF to down, or has not set a port GUID".to_owned(),
            Advice::look("on the hypervisor: ibprov status"),
        ),
        (Some(LinkState::Down), IsVf::OfThisHost(_)) => (
            "the VF's port is Down although the physical link is up: the VF has no port GUID, or its link state was down when it was probed".to_owned(),
            Advice::look("see GUIDs and link state in `ibprov status -v`"),
        ),
        (state, _) => {
            return unknown_state("the port is not Active", state.map_or("unknown", LinkState::word));
        }
    };
    Words { text, advice: vec![advice] }
}

fn owner_advice(seen: &Seen, netdev: &str, verb: &str) -> String {
    match &seen.owner {
        Some(owner) => format!("{owner} should {verb}: see its log"),
        None => format!(
            "no network stack has a configuration for {netdev}: add one, or `ip link set {netdev} up`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{LinkLayer, PortNumber};

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

    fn seen(state: &str, physical: &str, lid: u16) -> Seen {
        let link = Link {
            state: Some(LinkState::from_word(state)),
            physical: Some(PhysicalState::from_word(physical)),
            lid: Some(lid),
            ..Link::default()
        };
        Seen {
            answer: Some(PortAnswer { link, policy: None }),
            netdev: Some(NetDevState {
                admin_up: true,
                carrier: Some(true),
                ..NetDevState::default()
            }),
            ..Seen::default()
        }
    }

    const ACTIVE: Goal = Goal { rung: Rung::Active, address: false };

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
            let netdev =
                Some(NetDevState { admin_up, carrier: Some(carrier), ..NetDevState::default() });
            Seen { netdev, ..seen("ACTIVE", "LinkUp", 5) }
        };
        assert_eq!(lack(&port(Rung::Named), &down(false, false), ACTIVE), Some(Lack::Up));
        assert_eq!(lack(&port(Rung::Named), &down(true, false), ACTIVE), Some(Lack::Carrier));
    }

    #[test]
    fn what_waits_for_the_rtnl_lock_too_long_is_not_known() {
        let silent = Seen { netdev_silent_usec: 4_000_000, ..seen("ACTIVE", "LinkUp", 5) };
        let (lack, text) = says(&silent);
        assert_eq!(lack, Lack::Answer.word());
        assert_eq!(
            text,
            "the kernel has not reported the state of ib0 for 4 s: a process holds the RTNL lock"
        );
        let asked = Seen { netdev_silent_usec: 1, ..seen("ACTIVE", "LinkUp", 5) };
        assert_eq!(super::lack(&port(Rung::Named), &asked, ACTIVE), None);
    }

    #[test]
    fn an_address_is_asked_for_only_if_wanted() {
        let goal = Goal { rung: Rung::Active, address: true };
        let mut seen = seen("ACTIVE", "LinkUp", 5);
        assert_eq!(lack(&port(Rung::Named), &seen, goal), Some(Lack::Answer));
        seen.addresses = Some(Vec::new());
        assert_eq!(lack(&port(Rung::Named), &seen, goal), Some(Lack::Address));
        seen.addresses = Some(vec!["10.7.0.1/24".to_owned()]);
        assert_eq!(lack(&port(Rung::Named), &seen, goal), None);
    }

    #[test]
    fn a_lower_rung_asks_for_no_more() {
        let goal = |rung| Goal { rung, address: false };
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
        let link = Goal { rung: Rung::Link, address: false };
        assert_eq!(lack(&port, &seen, link), None, "a GID is more than a link");
        let with_gid = Seen { has_gid: true, ..seen.clone() };
        assert_eq!(lack(&port, &with_gid, ACTIVE), None);
        let netdev = NetDevState { admin_up: true, carrier: Some(false), ..NetDevState::default() };
        let without = Seen { netdev: Some(netdev), ..with_gid };
        assert_eq!(lack(&port, &without, ACTIVE), Some(Lack::Carrier));
        assert_eq!(lack(&port, &Seen::default(), ACTIVE), Some(Lack::Answer));
    }

    /// Without them the tools take the first port that is up, which is another adapter's.
    #[test]
    fn what_is_advised_acts_on_this_port() {
        let port = PortProgress {
            rdma: "mlx5_2".parse().ok(),
            port: PortNumber::new(2).ok(),
            ..port(Rung::Named)
        };
        let advised = |port: &PortProgress, seen: Seen, lack| {
            let advice = words(port, &seen, lack).advice;
            advice.into_iter().map(|a| a.text).collect::<Vec<_>>().join("; ")
        };
        for (seen, lack, command) in [
            (seen("DOWN", "Disabled", 0), Lack::Link, "`ibportstate -C mlx5_2 -P 2 -D 0 2 enable`"),
            (seen("DOWN", "Sleep", 0), Lack::Link, "`ibportstate -C mlx5_2 -P 2 -D 0 2 reset`"),
            (seen("DOWN", "Polling", 0), Lack::Link, "`mlxlink -d 0000:4b:00.0`"),
            (seen("INIT", "LinkUp", 0), Lack::Active, "`sminfo -C mlx5_2 -P 2`"),
        ] {
            let said = advised(&port, seen, lack);
            assert!(said.contains(command), "{said}");
        }
        // The subnet manager is asked through the PF's port, and not through the VF's.
        let vf = Seen { vf: IsVf::PassedThrough, ..seen("INIT", "LinkUp", 0) };
        let said = advised(&port, vf, Lack::Active);
        assert!(said.contains("`sminfo -C DEVICE -P PORT`"), "{said}");
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
        vf.vf = IsVf::PassedThrough;
        assert!(says(&vf).1.contains("hypervisor"), "{}", says(&vf).1);
        vf.answer.as_mut().expect("answer").policy = Some(Policy::Down);
        assert_eq!(says(&vf).1, "the link state of this VF is set to down");
    }

    #[test]
    fn a_lid_of_nobody_is_none() {
        for lid in [0, 0xffff, 0xc000] {
            let (word, text) = says(&seen("ACTIVE", "LinkUp", lid));
            assert_eq!(word, "active");
            assert!(text.contains("without a usable LID"), "{text}");
        }
    }

    #[test]
    fn who_does_not_answer_is_told_of() {
        let silent = Seen { silent_usec: 7_200_000, ..Seen::default() };
        assert!(says(&silent).1.contains("for 7 s"), "{}", says(&silent).1);
    }
}
