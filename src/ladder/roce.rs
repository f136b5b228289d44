//! The last rungs of a port in Ethernet mode that is expected: carrier, and a GID of type
//! RoCE v2, by which programs such as NCCL and UCX address it.

use super::expect::is_meant;
use crate::config::Config;
use crate::model::{Advice, Cause, Gid, NetDevState, ToDo, online::Lack};
use crate::names::{GidKind, IfName, LinkLayer, Rung, sh};
use crate::observe::PciFunction;

/// True if a `[[port]]` expects an Ethernet port of `function`.
pub fn is_expected(config: &Config, function: &PciFunction) -> bool {
    let mut rows = config.ports.iter().filter(|row| row.link_layer == LinkLayer::Ethernet);
    rows.any(|row| is_meant(&row.which, function))
}

/// How the netdev of a named port is, and whether the port has a GID.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Roce {
    /// The netdev is set up.
    pub up: bool,
    /// It has carrier; `None` if the kernel did not tell.
    pub carrier: Option<bool>,
    /// The port has a GID of type RoCE v2 for an address that a peer can use.
    pub has_gid: bool,
}

impl Roce {
    pub fn of(netdev: &NetDevState, gids: &[Gid]) -> Self {
        let has_gid = has_gid(gids);
        Self { up: netdev.admin_up != Some(false), carrier: netdev.carrier, has_gid }
    }

    /// The first thing that it lacks on the way to `goal`.
    pub fn lack(self, goal: Rung) -> Option<Lack> {
        match self.carrier {
            _ if goal < Rung::Link => None,
            _ if !self.up => Some(Lack::Up),
            Some(false) => Some(Lack::Carrier),
            None => Some(Lack::Answer),
            Some(true) => (goal >= Rung::Active && !self.has_gid).then_some(Lack::Gid),
        }
    }
}

/// True if one of `gids` is of type RoCE v2 and stands for an address that a peer can use:
/// the kernel makes one for each address of the netdev (`roce_gid_mgmt.c`).
pub fn has_gid(gids: &[Gid]) -> bool {
    let is_global = |gid: &Gid| match gid.ipv4 {
        Some(ipv4) => !ipv4.is_link_local() && !ipv4.is_unspecified(),
        None => !gid.gid.is_unicast_link_local(),
    };
    gids.iter().any(|gid| gid.kind == GidKind::RoceV2 && is_global(gid))
}

/// What it means that the port of `netdev` lacks this: one phrase. `addresses` are those of
/// global scope, if they are known.
pub fn words(netdev: Option<&IfName>, lack: Lack, addresses: Option<&[String]>) -> Cause {
    let name = netdev.map_or("the netdev", IfName::as_str);
    let step = |words: &str, command: &dyn Fn(&str) -> String| match netdev {
        Some(name) => ToDo::with(words, command(&sh(name.as_str()))),
        None => words.into(),
    };
    let (text, advice) = match lack {
        Lack::Up => (
            format!("{name} is down: no network stack has brought it up"),
            vec![Advice::now(step("bring it up, or configure it in the network stack", &|name| {
                format!("ip link set {name} up")
            }))],
        ),
        Lack::Carrier => (
            format!("{name} has no carrier: the cable is missing, or the other end is down"),
            vec![Advice::look(step("check the cable and the switch port", &|name| {
                format!("ethtool {name}")
            }))],
        ),
        Lack::Gid => match addresses {
            Some([]) => (
                format!(
                    "{name} has no address of global scope, so that the kernel adds no GID of type RoCE v2"
                ),
                vec![
                    Advice::look(ToDo::run("ibprov status --gids")),
                    Advice::now(format!(
                        "assign an address to {name}: the kernel adds a GID for it"
                    )),
                ],
            ),
            Some(addresses) => (
                format!("none of type RoCE v2 is for {}", addresses.join(", ")),
                vec![Advice::look(ToDo::with(
                    format!("an address of a bridge above {name} has no GID"),
                    "ibprov status --gids",
                ))],
            ),
            None => (
                "none of type RoCE v2 is for an address of global scope".to_owned(),
                vec![Advice::look(ToDo::run("ibprov status --gids"))],
            ),
        },
        other => (other.lacking().to_owned(), Vec::new()),
    };
    Cause::waiting(text, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(kind: GidKind, text: &str) -> Gid {
        let gid: std::net::Ipv6Addr = text.parse().expect("GID");
        Gid { index: 3, kind, gid, ipv4: gid.to_ipv4_mapped(), netdev: None }
    }

    #[test]
    fn only_a_gid_of_v2_that_a_peer_can_use_counts() {
        for (kind, text, counts) in [
            (GidKind::RoceV2, "::ffff:10.0.0.7", true),
            (GidKind::RoceV2, "2001:db8::7", true),
            (GidKind::RoceV1, "::ffff:10.0.0.7", false),
            (GidKind::RoceV2, "fe80::1", false),
            (GidKind::RoceV2, "::ffff:169.254.3.4", false),
        ] {
            assert_eq!(has_gid(&[gid(kind, text)]), counts, "{kind:?} {text}");
        }
    }

    #[test]
    fn the_lowest_thing_missing_is_told() {
        let of = |up, carrier, has_gid| Roce { up, carrier, has_gid }.lack(Rung::Active);
        assert_eq!(of(false, Some(false), false), Some(Lack::Up));
        assert_eq!(of(true, Some(false), true), Some(Lack::Carrier));
        assert_eq!(of(true, None, true), Some(Lack::Answer));
        assert_eq!(of(true, Some(true), false), Some(Lack::Gid));
        assert_eq!(of(true, Some(true), true), None);
        let carrier = Roce { up: true, carrier: Some(true), has_gid: false };
        assert_eq!(carrier.lack(Rung::Link), None);
        assert_eq!(Roce::default().lack(Rung::Named), None);
    }
}
