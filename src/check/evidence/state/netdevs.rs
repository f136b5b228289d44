//! `ip link`, `ip addr`, `ifconfig` and `ibdev2netdev`.

use super::super::event::Origin;
use super::LIMIT;
use crate::check::pattern::{caught, caught_one, word};

/// A netdev as a tool shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetdevSeen {
    /// Its name.
    pub name: String,
    /// The netdev it is a child of (`ib0.8001@ib0`).
    pub parent: Option<String>,
    /// Administratively up.
    pub up: bool,
    /// Has carrier; `None` where the tool does not show it.
    pub carrier: Option<bool>,
    /// True if it is IPoIB.
    pub infiniband: bool,
    /// True if `ip` says that its parent is down.
    pub parent_down: bool,
    /// The device and port it belongs to (`ibdev2netdev`).
    pub port: Option<(String, String)>,
    /// The VFs that its PF administers.
    pub vfs: Vec<VfSeen>,
    /// Its line.
    pub origin: Origin,
    /// That line.
    pub text: String,
}

/// A VF as `ip link` shows it at the PF.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VfSeen {
    /// VF index, as written.
    pub index: String,
    /// Node GUID as written; `None` where it is not shown.
    pub node_guid: Option<String>,
    /// Port GUID as written; `None` where it is not shown.
    pub port_guid: Option<String>,
    /// `auto`, `enable`, `disable`.
    pub link_state: String,
    /// Its line.
    pub origin: Origin,
    /// That line.
    pub text: String,
}

#[derive(Debug, Default)]
pub(super) struct Reader {
    open: bool,
}

impl Reader {
    pub(super) fn gap(&mut self) {
        // A VF list may have blank lines in it; a netdev ends at the next one.
    }

    pub(super) fn line(&mut self, text: &str, origin: Origin, netdevs: &mut Vec<NetdevSeen>) {
        let trimmed = text.trim();
        if let Some([device, port, name, state]) = caught::<4>(trimmed, "{} port {} ==> {} ({})") {
            self.begin(
                NetdevSeen {
                    name: name.to_owned(),
                    up: state == "Up",
                    carrier: Some(state == "Up"),
                    infiniband: name.starts_with("ib"),
                    port: Some((word(device).to_owned(), port.to_owned())),
                    origin,
                    text: trimmed.to_owned(),
                    ..NetdevSeen::default()
                },
                netdevs,
            );
            self.open = false;
            return;
        }
        if let Some(netdev) = ip_line(trimmed).or_else(|| ifconfig_line(trimmed)) {
            self.begin(NetdevSeen { origin, text: trimmed.to_owned(), ..netdev }, netdevs);
            return;
        }
        if !self.open && trimmed.starts_with("vf ") && trimmed.contains("NODE_GUID") {
            // Only the VF's line was copied: its PF is some IPoIB netdev that is up.
            let pf = NetdevSeen { infiniband: true, up: true, origin, ..NetdevSeen::default() };
            self.begin(pf, netdevs);
        }
        let Some(netdev) = netdevs.last_mut().filter(|_| self.open) else { return };
        if trimmed.starts_with("link/infiniband") || trimmed.starts_with("infiniband ") {
            netdev.infiniband = true;
        } else if trimmed.starts_with("vf ") {
            if netdev.vfs.len() < LIMIT {
                let mut vf = VfSeen {
                    index: word(trimmed.get(3..).unwrap_or_default()).to_owned(),
                    origin,
                    text: trimmed.to_owned(),
                    ..VfSeen::default()
                };
                vf.read(trimmed);
                netdev.vfs.push(vf);
            }
        } else if let Some(vf) = netdev.vfs.last_mut() {
            // The line of a VF is long and gets broken.
            vf.read(trimmed);
        }
    }

    fn begin(&mut self, netdev: NetdevSeen, netdevs: &mut Vec<NetdevSeen>) {
        self.open = netdevs.len() < LIMIT;
        if self.open {
            netdevs.push(netdev);
        }
    }
}

impl VfSeen {
    fn read(&mut self, text: &str) {
        let guid = |key| {
            let value = word(caught_one(text, key)?);
            (value.len() == 23 || value.starts_with("0x")).then(|| value.to_owned())
        };
        self.node_guid = guid("NODE_GUID {}").or(self.node_guid.take());
        self.port_guid = guid("PORT_GUID {}").or(self.port_guid.take());
        if let Some(state) = caught_one(text, "link-state {}") {
            word(state).clone_into(&mut self.link_state);
        }
    }
}

/// `4: ib0.8001@ib0: <BROADCAST,UP> mtu 4092 qdisc mq state UP ...`
fn ip_line(text: &str) -> Option<NetdevSeen> {
    let (index, rest) = text.split_once(": ")?;
    index.parse::<u32>().ok()?;
    let [name, flags, rest] = caught::<3>(rest, "{}: <{}>{}")?;
    let (name, parent) = match name.split_once('@') {
        Some((name, parent)) => (name, Some(parent).filter(|p| *p != "NONE")),
        None => (name, None),
    };
    let has = |flag: &str| flags.split(',').any(|f| f == flag);
    Some(NetdevSeen {
        name: name.to_owned(),
        parent: parent.map(str::to_owned),
        up: has("UP"),
        carrier: has("UP").then(|| has("LOWER_UP") && !has("NO-CARRIER")),
        parent_down: has("M-DOWN"),
        // `ip -br` or a cut line may leave the type out.
        infiniband: rest.contains("link/infiniband"),
        ..NetdevSeen::default()
    })
}

/// `ib0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 2044`
fn ifconfig_line(text: &str) -> Option<NetdevSeen> {
    let [name, _, flags] = caught::<3>(text, "{}: flags={}<{}>")?;
    (!name.contains(' ')).then_some(())?;
    let has = |flag: &str| flags.split(',').any(|f| f == flag);
    Some(NetdevSeen {
        name: name.to_owned(),
        up: has("UP"),
        carrier: has("UP").then(|| has("RUNNING")),
        ..NetdevSeen::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<NetdevSeen> {
        let mut reader = Reader::default();
        let mut netdevs = Vec::new();
        for line in text.lines() {
            reader.line(line, Origin::default(), &mut netdevs);
        }
        netdevs
    }

    #[test]
    fn netdevs_and_their_vfs_are_read() {
        let netdevs = read(
            "4: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4092 qdisc mq state UP\n    link/infiniband 00:00 brd ff\n    vf 0     link/infiniband 80:00 brd 00:ff, spoof checking off, NODE_GUID\n 00:00:00:00:00:00:00:00, PORT_GUID 00:11:22:33:44:55:66:77, link-state disable, trust off\n6: ib0.beef@ib0: <BROADCAST,MULTICAST,UP,LOWER_UP,M-DOWN> mtu 4092\nib1: flags=4098<BROADCAST,MULTICAST>  mtu 2044\n        infiniband 80:00:02:08\nmlx5_0 port 1 ==> ib7 (Down)\n",
        );
        let names: Vec<_> = netdevs.iter().map(|n| (n.name.as_str(), n.up, n.infiniband)).collect();
        assert_eq!(
            names,
            [
                ("ib0", true, true),
                ("ib0.beef", true, false),
                ("ib1", false, true),
                ("ib7", false, true)
            ]
        );
        let vf = &netdevs[0].vfs[0];
        assert_eq!(vf.port_guid.as_deref(), Some("00:11:22:33:44:55:66:77"));
        assert_eq!(vf.link_state, "disable");
        assert_eq!(netdevs[1].parent.as_deref(), Some("ib0"));
        assert!(netdevs[1].parent_down);
    }

    proptest! {
        #[test]
        fn no_dump_panics(text in r"(([0-9]: |ib0|@|: <|UP,|>|vf |NODE_GUID |flags=|\(|==> |[a-zÄ0-9 :]){0,5}\n){0,8}") {
            read(&text);
        }
    }
}
