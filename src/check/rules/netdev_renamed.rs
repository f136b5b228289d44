use super::super::evidence::event::function;
use super::super::evidence::state::NetdevSeen;
use super::{Boot, Code, Confidence, Event, Finding, Judge, Kind, Rule, Severity, seen};
use crate::check::pattern::caught;
use crate::names::{is_ipoib_name, is_kernel_ipoib_name};

pub(super) const RULE: Rule = Rule {
    code: Code::NetdevRenamed,
    meaning: "the configuration names a netdev that udev has renamed, or could not rename",
    page: "\
The kernel calls IPoIB netdevs ib0, ib1; udev renames them by their place (ibp65s0,
ibs4f0) unless net.ifnames=0 or a rule keeps the names. A configuration that still names
ib0 finds no such netdev. A rename by itself is normal.

Symptoms: \"ibp1s0: renamed from ib0\", and a network service that does not find
ib0.

A rename fails with \"File exists\" if two netdevs, mostly the ports of one function, are
given one name, and with \"Device or resource busy\" if the netdev is up already.

Remedy: use the new name in the configuration, or set the name in a .link file by the
last 8 bytes of the address (the port GUID), which are constant.",
    needles: &[&[
        "renamed from",
        "ename network interface",
        "changing net interface name",
        "cannot rename to",
    ]],
    judge: Judge::Boot(judge),
};

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
    let finding = Finding::new(
        RULE.code,
        if twice { Severity::Error } else { Severity::Warning },
        Confidence::High,
        format!("udev {told}. A configuration for the new name finds no netdev."),
    )
    .about_if(seen::joined(&names))
    .quoting(seen::quotes(boot, refused.iter().map(|r| r.event)))
    .now(refused.iter().filter(|r| r.is_up()).map(|r| {
        format!("ip link set {0} down && udevadm trigger --action=add /sys/class/net/{0}", r.from)
    }));
    if !twice {
        return finding;
    }
    let look = |r: &Refused<'_>| {
        format!(
            "find what gives it that name: udevadm test-builtin net_setup_link /sys/class/net/{}",
            r.from
        )
    };
    finding.look(refused.iter().filter(|r| !r.is_up()).map(look)).permanent([
        "give each port a name of its own: [[interface]] with match.port-guid and name in /etc/ibprov/ibprov.toml, or a .link file for each address",
    ])
}

fn judge(boot: &Boot) -> Vec<Finding> {
    let refused = refused(boot);
    if !refused.is_empty() {
        return vec![not_renamed(boot, &refused)];
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
            let quote = boot.quote_at(netdev.origin, "", &netdev.text);
            (asked, name, netdev.name.clone(), Confidence::Medium, vec![quote])
        }
        (None, None) => return Vec::new(),
    };
    vec![
        Finding::new(
            RULE.code,
            Severity::Error,
            confidence,
            format!("The configuration names {name}, which udev has renamed to {to}."),
        ).about(name)
        .quoting(quotes)
        .quoting(seen::quotes(boot, [asked]))
        .permanent([format!("replace {name} by {to} in the network configuration"), format!("or keep {name}, with a .link file in /etc/systemd/network that matches the last 8 bytes of the address")]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    #[test]
    fn only_where_the_old_name_is_asked_for() {
        assert_eq!(
            severity(
                &RULE,
                &[
                    "[ 9.1] mlx5_core 0000:01:00.0 ibp1s0: renamed from ib0",
                    "[ 12.1] systemd[1]: x",
                    "ifup[9]: Cannot find device \"ib0\"",
                ]
            ),
            Some(Severity::Error)
        );
        assert_eq!(
            severity(&RULE, &["[ 9.1] mlx5_core 0000:01:00.0 ibp1s0: renamed from ib0",]),
            None
        );
    }

    #[test]
    fn ip_shows_the_netdev_by_another_name() {
        let asked = "ifup[9]: Cannot find device \"ib0\"";
        let shown = |name: &str| {
            format!("4: {name}: <BROADCAST,MULTICAST> mtu 4092\n    link/infiniband 00:00 brd ff")
        };
        assert_eq!(severity(&RULE, &[asked, &shown("ibp1s0")]), Some(Severity::Error));
        assert_eq!(severity(&RULE, &[asked, &shown("ib0")]), None);
        let other = "ifup[9]: Cannot find device \"ibp7s0\"";
        assert_eq!(severity(&RULE, &[other, &shown("ibp1s0")]), None);
    }
}
