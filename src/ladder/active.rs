//! The last rungs of an InfiniBand port: link, and active. Whether the fabric uses a port that
//! boot does not wait for any more, and what it lacks if not.

use crate::model::{Advice, Cause, Link, ToDo, firmware::how_to_set, online::Lack};
use crate::names::{IsVf, LinkState, MadPort, PciAddress, PhysicalState, Policy, Rung};
use crate::observe::link::PortAnswer;

/// Whether the fabric uses an expected port, InfiniBand or Ethernet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    Active,
    /// It does not, for want of this.
    Lacks(Lack, Cause),
    /// What adapter or kernel have not answered: that is a fault of its own.
    NotTold,
    /// A copied tree does not show it.
    NotShown,
}

/// The first thing that an InfiniBand port lacks on the way to `goal`.
pub fn lack(link: &Link, goal: Rung) -> Option<Lack> {
    match link.physical {
        _ if goal < Rung::Link => None,
        Some(PhysicalState::LinkUp) => {
            (goal >= Rung::Active && !link.is_active()).then_some(Lack::Active)
        }
        _ => Some(Lack::Link),
    }
}

/// The InfiniBand port that is spoken of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    pub pci: Option<PciAddress>,
    pub at: MadPort,
    pub vf: IsVf,
    /// The driver of its function; empty if it is not known.
    pub driver: String,
    /// Another InfiniBand port of this host that is Active.
    pub beside: Option<String>,
}

/// What is known of a subnet manager of the fabric of a port in Initializing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manager {
    /// One was seen: the port has its LID, it has answered through the port, or a log shows it. A
    /// port keeps the LID when the link is lost, so the subnet manager may have gone.
    Seen(Option<u32>),
    /// This port of the host is Active, in the same fabric or in another one.
    OfPort(String),
    Unknown,
}

impl Manager {
    /// What stands for a port that has `sm_lid`, `beside` another one that is Active.
    pub fn of(sm_lid: Option<u32>, beside: Option<String>) -> Self {
        match (sm_lid, beside) {
            (Some(lid), _) if lid != 0 => Self::Seen(Some(lid)),
            (_, Some(port)) => Self::OfPort(port),
            (_, None) => Self::Unknown,
        }
    }

    /// What is known of the last one, to follow that none has configured the port.
    pub fn last(&self) -> String {
        match self {
            Self::Seen(Some(lid)) => format!("; the last one had LID {lid}"),
            Self::Seen(None) | Self::OfPort(_) | Self::Unknown => String::new(),
        }
    }

    /// What to do at the port. Two subnet managers in one fabric do harm: one more is advised
    /// only where it is asked first whether there is one.
    pub fn advice(&self, at: &MadPort) -> [Advice; 2] {
        let sminfo = ToDo::at(at, format!("sminfo {at}"));
        match self {
            Self::Seen(_) => [
                Advice::look(sminfo.after("ask the subnet manager")),
                Advice::look(
                    "if it answers: check the switch port, and look for this port's GUID in its log; if not, restart it where it runs",
                ),
            ],
            Self::OfPort(other) => [
                Advice::look(format!(
                    "if it is in the fabric of {other} (Active): check its switch port"
                )),
                Advice::now(format!(
                    "if it is in a fabric of its own, and `sminfo {at}` finds no subnet manager: enable that of its switch, or run opensm on this port alone (man 8 ibprov-opensm)"
                )),
            ],
            Self::Unknown => [
                Advice::look(sminfo.after("check whether the fabric has a subnet manager")),
                Advice::now(
                    "if it has none: enable that of the switch, or `systemctl start opensm` (opafm for Omni-Path) on one node",
                ),
            ],
        }
    }
}

/// What to say of a port that is not active, by its answer.
pub fn words(port: &Subject, answer: &PortAnswer) -> Cause {
    if answer.policy == Some(Policy::Down) {
        return Cause::waiting(
            "the link state of this VF is set to down",
            [Advice::now("set it to follow at the PF: `ip link set PF-NETDEV vf N state auto`")],
        );
    }
    match answer.link.physical {
        Some(PhysicalState::LinkUp) => not_active(port, &answer.link),
        physical => no_link(port, physical),
    }
}

/// What shows more of a port without a physical link, which is one of `mlx5`.
pub fn no_cable(at: &MadPort, mlx5: Option<PciAddress>) -> [Advice; 2] {
    let query = mlx5.map_or_else(
        || ToDo::at(at, at.ibportstate("query")),
        |pci| ToDo::run(format!("mlxlink -d {pci} || mstlink -d {pci}")),
    );
    [Advice::look("check the cable and the switch port"), Advice::look(query)]
}

fn no_link(port: &Subject, physical: Option<PhysicalState>) -> Cause {
    let Subject { pci, at, vf, driver, .. } = port;
    // mlxlink and the setting are those of ConnectX-4 and later.
    let mlx5 = pci.filter(|_| driver == "mlx5_core");
    let ibportstate = |operation| ToDo::at(at, at.ibportstate(operation));
    let state = physical.map_or("unknown", PhysicalState::word);
    match (physical, vf) {
        (_, IsVf::PassedThrough) => Cause::waiting(
            format!(
                "the physical link is not up ({state}): the hypervisor has set the link state of this VF to down, or has no link itself"
            ),
            [Advice::look(ToDo::with("on the hypervisor", "ibprov status"))],
        ),
        (_, IsVf::OfThisHost(pf)) => Cause::waiting(
            format!(
                "the physical link is not up ({state}): the PF {pf} has none, or the link state of this VF is down"
            ),
            [Advice::look(ToDo::with(
                "see the port of the PF, and the link state",
                "ibprov status -v",
            ))],
        ),
        (Some(PhysicalState::Polling), _) => {
            Cause::waiting("no cable, or the other end is down (Polling)", no_cable(at, mlx5))
        }
        (Some(PhysicalState::Disabled), _) => Cause::waiting(
            "the port is disabled (Disabled)",
            [Advice::now(ibportstate("enable"))].into_iter().chain(mlx5.map(|pci| {
                let keep = format!("KEEP_IB_LINK_UP_P{}=1", pci.port_of_adapter());
                let set = how_to_set(pci, &keep, false);
                Advice::permanent(set.after("if it is disabled after each boot"))
            })),
        ),
        (Some(PhysicalState::Sleep), _) => Cause::waiting(
            "the port is in sleep state (Sleep)",
            [Advice::now(ibportstate("reset"))],
        ),
        _ => unknown_state("the physical link is not up", state),
    }
}

fn not_active(port: &Subject, link: &Link) -> Cause {
    match (link.state, port.vf) {
        (Some(LinkState::Init), IsVf::No) => {
            let manager = Manager::of(link.sm_lid, port.beside.clone());
            let last = manager.last();
            let text = format!("no subnet manager configured it (Initializing){last}");
            Cause::waiting(text, manager.advice(&port.at))
        }
        (Some(LinkState::Init), _) => Cause::waiting(
            "no subnet manager has configured the port of this VF (Initializing)",
            [Advice::permanent(format!(
                "the subnet manager must support virtual ports (OpenSM: `virt_enabled 2`), and the VF must have its port GUID; see `sminfo {}` on the PF",
                MadPort::default()
            ))],
        ),
        (Some(LinkState::Armed), _) => Cause::waiting(
            "the subnet manager has not finished configuring the port (Armed)",
            [Advice::look("see the log of the subnet manager")],
        ),
        (Some(LinkState::Active | LinkState::ActiveDefer), _) => Cause::waiting(
            "the port is Active without a usable LID",
            [Advice::look("see the log of the subnet manager")],
        ),
        (Some(LinkState::Down), IsVf::PassedThrough) => Cause::waiting(
            "the port is Down although the physical link is up: the hypervisor has set the link state of this VF to down, or has not set a port GUID",
            [Advice::look(ToDo::with("on the hypervisor", "ibprov status"))],
        ),
        (Some(LinkState::Down), IsVf::OfThisHost(_)) => Cause::waiting(
            "the VF's port is Down although the physical link is up: the VF has no port GUID, or its link state was down when it was probed",
            [Advice::look(ToDo::with("see GUIDs and link state", "ibprov status -v"))],
        ),
        (state, _) => {
            unknown_state("the port is not Active", state.map_or("unknown", LinkState::word))
        }
    }
}

fn unknown_state(what: &str, state: &str) -> Cause {
    Cause::waiting(
        format!("{what} ({state})"),
        [Advice::look(ToDo::run("ibstat; dmesg | grep -i -e mlx -e infiniband"))],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::PortNumber;

    fn link(state: &str, physical: &str, lid: Option<u32>) -> Link {
        Link {
            state: Some(LinkState::from_word(state)),
            physical: Some(PhysicalState::from_word(physical)),
            lid,
            ..Link::default()
        }
    }

    #[test]
    fn the_lowest_thing_missing_is_told() {
        let of = |state, physical, lid| lack(&link(state, physical, lid), Rung::Active);
        assert_eq!(of("ACTIVE", "LinkUp", Some(7)), None);
        assert_eq!(of("ACTIVE_DEFER", "LinkUp", Some(7)), None);
        assert_eq!(of("ACTIVE", "LinkUp", None), Some(Lack::Active));
        assert_eq!(of("INIT", "LinkUp", Some(7)), Some(Lack::Active));
        assert_eq!(of("ACTIVE", "LinkErrorRecovery", Some(7)), Some(Lack::Link));
        assert_eq!(of("DOWN", "Polling", None), Some(Lack::Link));
        assert_eq!(lack(&Link::default(), Rung::Active), Some(Lack::Link));
        assert_eq!(lack(&link("INIT", "LinkUp", None), Rung::Link), None);
        assert_eq!(lack(&Link::default(), Rung::Named), None);
    }

    /// What is said of `mlx5_2` port 2.
    fn said(link: Link, policy: Option<Policy>, vf: IsVf) -> String {
        said_of(&Subject { vf, ..subject() }, link, policy)
    }

    fn subject() -> Subject {
        let at = MadPort { device: "mlx5_2".parse().ok(), port: PortNumber::new(2).ok() };
        let driver = "mlx5_core".to_owned();
        Subject { pci: "0000:4b:00.0".parse().ok(), at, driver, ..Subject::default() }
    }

    fn said_of(port: &Subject, link: Link, policy: Option<Policy>) -> String {
        let Cause { text, advice, .. } = words(port, &PortAnswer { link, policy });
        let advice: Vec<String> = advice.iter().map(|a| a.step.to_string()).collect();
        format!("{text}: {}", advice.join("; "))
    }

    /// Without device and port the tools take the first port that is up, which is another
    /// adapter's.
    #[test]
    fn what_is_advised_acts_on_this_port() {
        for (state, physical, command) in [
            ("DOWN", "Disabled", "ibportstate -C mlx5_2 -P 2 -D 0 2 enable"),
            ("DOWN", "Sleep", "ibportstate -C mlx5_2 -P 2 -D 0 2 reset"),
            ("DOWN", "Polling", "mlxlink -d 0000:4b:00.0"),
            ("INIT", "LinkUp", "sminfo -C mlx5_2 -P 2"),
        ] {
            let said = said(link(state, physical, None), None, IsVf::No);
            assert!(said.contains(command), "{said}");
        }
        // The subnet manager is asked through the PF's port, and not through the VF's.
        let said = said(link("INIT", "LinkUp", None), None, IsVf::PassedThrough);
        assert!(said.contains("`sminfo -C DEVICE -P PORT`"), "{said}");
    }

    #[test]
    fn a_command_without_its_port_is_words() {
        let unknown = Subject { driver: "mlx5_core".to_owned(), ..Subject::default() };
        for (state, physical) in
            [("DOWN", "Disabled"), ("DOWN", "Sleep"), ("DOWN", "Polling"), ("INIT", "LinkUp")]
        {
            let answer = PortAnswer { link: link(state, physical, None), policy: None };
            let steps = words(&unknown, &answer).advice;
            assert!(steps.iter().all(|a| a.step.command.is_none()), "{steps:?}");
            let steps = words(&subject(), &answer).advice;
            assert!(steps.iter().any(|a| a.step.command.is_some()), "{steps:?}");
        }
    }

    /// A second one in a fabric does harm.
    #[test]
    fn a_second_subnet_manager_is_not_advised_where_there_may_be_one() {
        let init = link("INIT", "LinkUp", None);
        let alone = said_of(&subject(), init.clone(), None);
        assert!(alone.contains("`systemctl start opensm`"), "{alone}");
        let beside = Subject { beside: Some("mlx5_0/1".to_owned()), ..subject() };
        let said = said_of(&beside, init.clone(), None);
        assert!(said.contains("fabric of mlx5_0/1 (Active)") && !said.contains("start"));
        assert!(said.find("fabric of mlx5_0/1") < said.find("run opensm on this port alone"));
        let told = Link { sm_lid: Some(4), ..init };
        let said = said_of(&beside, told, None);
        assert!(said.contains("the last one had LID 4") && !said.contains("opensm"), "{said}");
    }

    #[test]
    fn what_only_newer_adapters_have_is_not_advised_for_older_ones() {
        for state in ["Polling", "Disabled"] {
            for driver in ["", "mlx4_core", "hfi1", "ib_qib"] {
                let port = Subject { driver: driver.to_owned(), ..subject() };
                let said = said_of(&port, link("DOWN", state, None), None);
                let is_theirs = ["mlxlink", "mstconfig", "ibprov firmware"];
                assert!(!is_theirs.iter().any(|tool| said.contains(tool)), "{driver}: {said}");
            }
        }
    }

    #[test]
    fn who_can_help_a_vf_is_told() {
        let pf = "0000:4b:00.0".parse().expect("address");
        for (state, physical) in [("DOWN", "LinkUp"), ("DOWN", "Disabled"), ("INIT", "LinkUp")] {
            let link = link(state, physical, None);
            for (vf, not) in
                [(IsVf::PassedThrough, "PF 0000"), (IsVf::OfThisHost(pf), "hypervisor")]
            {
                let said = said(link.clone(), None, vf);
                assert!(said.contains("VF") && !said.contains(not), "{said}");
                assert!(!said.contains("cable") && !said.contains("opensm"), "{said}");
            }
            let said = said(link, Some(Policy::Down), IsVf::OfThisHost(pf));
            assert!(said.starts_with("the link state of this VF is set to down: "), "{said}");
        }
    }
}
