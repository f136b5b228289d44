//! Netdevs: their names, and whether they are up.

use super::{Boot, Code, Confidence, Event, Finding, Kind, Severity, row, seen};
use crate::check::evidence::event::function;
use crate::check::evidence::state::NetdevSeen;
use crate::check::pattern::{caught, has_word};
use crate::model::advice::ToDo;
use crate::names::{is_ipoib_name, is_kernel_ipoib_name, may_be_ipoib_name};

/// A kernel name is asked for, and `ip link` shows only netdevs of other names.
fn shown_otherwise(boot: &Boot) -> Option<(&Event, &str, &NetdevSeen)> {
    let asked = |e| seen::not_found(e).filter(|n| is_ipoib_name(n)).map(|n| (e, n));
    let (event, name) = boot.events.iter().filter_map(asked).next_back()?;
    let kernels = is_kernel_ipoib_name(name);
    let netdevs = &boot.state.netdevs;
    let other = netdevs.iter().find(|n| n.infiniband && n.parent.is_none())?;
    (kernels && netdevs.iter().all(|n| n.name != name)).then_some((event, name, other))
}

/// A rename that udev could not do.
struct Refused<'a> {
    event: &'a Event,
    from: &'a str,
    to: &'a str,
    why: &'a str,
}

impl<'a> Refused<'a> {
    fn of(event: &'a Event) -> Option<Self> {
        let text = &event.text;
        if let Some([from, to]) =
            caught::<2>(text, "Network interface '{}' is already up, cannot rename to '{}'")
        {
            let to = to.split('\'').next().unwrap_or(to);
            return Some(Self { event, from, to, why: "it is up" });
        }
        let [from, to, why] = caught::<3>(text, " from '{}' to '{}': {}")
            .filter(|_| text.contains("Failed to rename network interface"))
            .or_else(|| caught::<3>(text, "rror changing net interface name {} to {}: {}"))?;
        let bare = |name: &'a str| name.trim_matches('\'');
        Some(Self { event, from: bare(from), to: bare(to), why: why.trim() })
    }

    fn is_up(&self) -> bool {
        self.why.contains("busy") || self.why == "it is up"
    }

    /// True of a netdev of an RDMA adapter: by its name, or because that is the place of one.
    fn is_ours(&self, boot: &Boot) -> bool {
        let is_of_adapter = || {
            let (bus, slot) = self.to.split_once('p')?.1.split_once('s')?;
            let number = |text: &str| {
                let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                text.get(..end)?.parse::<u8>().ok()
            };
            let place = format!(":{:02x}:{:02x}.", number(bus)?, number(slot)?);
            let adapters = boot.events.iter().filter(|e| seen::rdma_module(&e.text).is_some());
            adapters.filter_map(|e| function(&e.text)).find(|at| at.contains(&place))
        };
        is_ipoib_name(self.from) || is_ipoib_name(self.to) || is_of_adapter().is_some()
    }
}

/// The renames that failed and were not made good.
fn refused(boot: &Boot) -> Vec<Refused<'_>> {
    let mut all: Vec<Refused<'_>> = Vec::new();
    for refused in boot.events.iter().filter_map(Refused::of) {
        let mut later = boot.events.iter().filter(|e| e.origin > refused.event.origin);
        let is_good = later.any(
            |e| matches!(&e.kind, Kind::NetdevRenamed { from, .. } if &**from == refused.from),
        );
        if !is_good && refused.is_ours(boot) && all.iter().all(|known| known.from != refused.from) {
            all.push(refused);
        }
    }
    all
}

/// What is said of the renames that failed.
fn not_renamed(boot: &Boot, refused: &[Refused<'_>]) -> Finding {
    let each = refused.iter().map(|r| format!("cannot rename {} to {}: {}", r.from, r.to, r.why));
    let told = each.collect::<Vec<_>>().join("; ");
    let names: Vec<&str> = refused.iter().map(|r| r.from).collect();
    let twice = refused.iter().any(|r| !r.is_up());
    let severity = if twice { Severity::Error } else { Severity::Warning };
    let told = format!("udev {told}. A configuration for the new name finds no netdev.");
    let again = |r: &Refused<'_>| {
        let name = r.from;
        ToDo::run(format!(
            "ip link set {name} down && udevadm trigger --action=add /sys/class/net/{name}"
        ))
    };
    let finding = Finding::of(Code::NetdevRenamed, severity, Confidence::High, told)
        .about_all(&names)
        .quoting(seen::quotes(boot, refused.iter().map(|r| r.event)))
        .now(refused.iter().filter(|r| r.is_up()).map(again));
    if !twice {
        return finding;
    }
    let look = |r: &Refused<'_>| {
        let command = format!("udevadm test-builtin net_setup_link /sys/class/net/{}", r.from);
        ToDo::with("find what gives it that name", command)
    };
    finding.look(refused.iter().filter(|r| !r.is_up()).map(look)).permanent([
        "give each port a name of its own: [[interface]] with match.port-guid and name in /etc/ibprov/ibprov.toml, or a .link file for each address",
    ])
}

pub(super) fn netdev_renamed(boot: &Boot) -> Option<Finding> {
    let refused = refused(boot);
    if !refused.is_empty() {
        return Some(not_renamed(boot, &refused));
    }
    let found =
        boot.events.iter().find_map(|asked| {
            let name = seen::not_found(asked)?;
            let (renamed, to) = boot.events.iter().find_map(|e| match &e.kind {
                Kind::NetdevRenamed { from, to } if &**from == name && &**to != name => {
                    Some((e, to))
                }
                _ => None,
            })?;
            let back = boot.events.iter().any(|e| match &e.kind {
                Kind::NetdevRenamed { to, .. } => &**to == name && e.origin > renamed.origin,
                Kind::InterfaceAsked { name: n, worked: Some(true) } => &**n == name,
                _ => false,
            });
            (!back && (is_ipoib_name(name) || seen::rdma_module(&renamed.text).is_some()))
                .then_some((asked, renamed, name, to.to_string()))
        });
    let (asked, name, to, confidence, quotes) = match (found, shown_otherwise(boot)) {
        (Some((asked, renamed, name, to)), _) => {
            (asked, name, to, Confidence::High, vec![boot.quote(renamed)])
        }
        (None, Some((asked, name, netdev))) => {
            let quote = boot.quote_at(netdev.origin, &netdev.text);
            (asked, name, netdev.name.clone(), Confidence::Medium, vec![quote])
        }
        (None, None) => return None,
    };
    let told = format!("The configuration names {name}, which udev has renamed to {to}.");
    Some(
        Finding::of(Code::NetdevRenamed, Severity::Error, confidence, told)
            .about(name)
            .quoting(quotes)
            .quoting(seen::quotes(boot, [asked]))
            .permanent([
                format!("replace {name} by {to} in the network configuration"),
                format!("or keep {name}, with a .link file in /etc/systemd/network that matches the last 8 bytes of the address"),
            ]),
    )
}

pub(super) fn netdev_admin_down(boot: &Boot) -> Option<Finding> {
    let state = &boot.state;
    let is_ib = |n: &&NetdevSeen| n.infiniband || is_ipoib_name(&n.name);
    let active = state.ports.iter().any(|p| p.is_active() && p.may_be_infiniband());
    // ibdev2netdev names the port.
    let own_port_active = |n: &NetdevSeen| {
        n.port.as_ref().is_some_and(|(device, port)| {
            state.ports.iter().any(|p| p.is_active() && &p.device == device && &p.port == port)
        })
    };
    // One that may only lack carrier is taken for set down where its port is active.
    let is_active = |n: &NetdevSeen| if n.port.is_some() { own_port_active(n) } else { active };
    let is_down = |n: &&NetdevSeen| !n.up && (!n.operational_state_alone || is_active(n));
    let down: Vec<_> =
        state.netdevs.iter().filter(is_ib).filter(is_down).filter(|n| n.parent.is_none()).collect();
    let up = state.netdevs.iter().filter(is_ib).any(|n| n.up);
    // It may be active though others are up.
    let beside = up.then(|| down.iter().find(|n| own_port_active(n))).flatten();
    let first = beside.or(down.first())?;
    let bad_ports = state.ports.iter().any(|p| !p.is_active() && p.infiniband != Some(false));
    // A second port that is not used, or a port that has no link at all.
    if up && beside.is_none() || bad_ports && !active {
        return None;
    }
    // Whether anybody wants it is not known while its port's state is not.
    let name = &first.name;
    let (severity, confidence) = match (active && !up, is_wanted(boot, name)) {
        (true, true) => (Severity::Error, Confidence::High),
        // A node that uses verbs alone has no need of it.
        (true, false) => (Severity::Info, Confidence::Medium),
        (false, _) => (Severity::Warning, Confidence::Medium),
    };
    let told = format!("{name} exists, but no network service has brought it up.");
    let shown = down.iter().take(8).map(|n| boot.quote_at(n.origin, &n.text));
    let judged = (severity, confidence);
    Some(row::told(boot, Code::NetdevAdminDown, judged, told, &[name], []).quoting(shown))
}

/// True if a program of user space, a command or a configuration names `netdev`.
fn is_wanted(boot: &Boot, netdev: &str) -> bool {
    let programs = boot.events.iter().filter(|e| !e.from_kernel());
    programs.into_iter().any(|e| has_word(&e.text, netdev))
        || boot.state.commands.iter().any(|c| has_word(&c.text, netdev))
        || boot.host.iter().flat_map(|host| &host.asked).any(|asked| asked.netdev == netdev)
}

pub(super) fn ipoib_parent_down(boot: &Boot) -> Option<Finding> {
    let netdevs = &boot.state.netdevs;
    let mut bad = Vec::new();
    for child in netdevs.iter().filter(|n| n.up && (n.infiniband || may_be_ipoib_name(&n.name))) {
        let parent = child
            .parent
            .as_deref()
            .or_else(|| child.name.split_once('.').map(|(p, _)| p))
            .and_then(|name| netdevs.iter().find(|n| n.name == name));
        if let Some(parent) = parent.filter(|p| !p.up && p.infiniband) {
            bad.push((child, Some(parent)));
        } else if child.parent_down {
            bad.push((child, parent));
        }
    }
    if bad.is_empty() {
        return None;
    }
    let parent_of = |(child, parent): &(&NetdevSeen, Option<&NetdevSeen>)| {
        let known = parent.map(|parent| parent.name.clone());
        known.or_else(|| child.parent.clone()).unwrap_or_else(|| "its parent".to_owned())
    };
    let children: Vec<&str> = bad.iter().map(|(child, _)| child.name.as_str()).collect();
    let mut parents: Vec<String> = bad.iter().map(parent_of).collect();
    parents.dedup();
    let told = match (&children[..], &parents[..]) {
        ([child], [parent]) => {
            format!("{child} is up and its parent {parent} is down, so that no packet passes.")
        }
        _ => format!(
            "{} are up and their parents are down ({}), so that no packet passes.",
            seen::all_of("interface", &children),
            parents.join(", ")
        ),
    };
    let quotes = bad.iter().flat_map(|(child, parent)| {
        [Some(*child), *parent].into_iter().flatten().map(|n| boot.quote_at(n.origin, &n.text))
    });
    Some(
        Finding::of(Code::IpoibParentDown, Severity::Error, Confidence::High, told)
            .about_all(&children)
            .quoting(quotes.collect::<Vec<_>>())
            .now(parents.iter().map(|parent| ToDo::run(format!("ip link set {parent} up"))))
            .permanent(parents.iter().map(|parent| {
                format!(
                    "add an interface entry for {parent} that is brought up before its children"
                )
            })),
    )
}
