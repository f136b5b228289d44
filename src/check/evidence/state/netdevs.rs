//! `ip link`, `ip addr`, `ifconfig` and `ibdev2netdev`, and what they have in
//! common with the tables of netdevs.

use super::super::event::Origin;
use super::netdev::{Flags, LINK, NetdevSeen, VfSeen, guid_of, is_broken, named};
use super::netdev_tables::NetdevTableReader;
use super::prompt::Line;
use super::put;
use crate::check::pattern::{caught, word};
use crate::names::{is_ipoib_name, may_be_ipoib_name};

#[derive(Debug, Default)]
pub(super) struct IpLinkReader {
    open: bool,
    /// The last VF's line was broken: it goes on on the next.
    broken: bool,
    tables: NetdevTableReader,
}

impl IpLinkReader {
    pub(super) fn gap(&mut self) {
        // A VF list may have blank lines in it; a netdev ends at the next one.
        self.broken = false;
        self.tables.gap();
    }

    pub(super) fn typed(&mut self, line: &Line<'_>) {
        self.open = false;
        self.broken = false;
        self.tables.typed(line);
    }

    pub(super) fn line(&mut self, text: &str, origin: Origin, netdevs: &mut Vec<NetdevSeen>) {
        let trimmed = text.trim();
        if let Some([device, port, name, state]) = caught::<4>(trimmed, "{} port {} ==> {} ({})") {
            self.begin(
                NetdevSeen {
                    name: name.to_owned(),
                    up: state == "Up",
                    carrier: Some(state == "Up"),
                    // It reads the carrier, which one that is set down has not either.
                    operational_state_alone: state != "Up",
                    // It lists the netdevs of RDMA devices.
                    infiniband: may_be_ipoib_name(name),
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
        if let Some(row) = self.tables.row(trimmed) {
            if let Some(netdev) = row {
                self.begin(NetdevSeen { origin, text: trimmed.to_owned(), ..netdev }, netdevs);
            }
            self.open = false;
            return;
        }
        if let Some(netdev) = ip_line(trimmed).or_else(|| ifconfig_line(trimmed)) {
            self.begin(NetdevSeen { origin, text: trimmed.to_owned(), ..netdev }, netdevs);
            return;
        }
        if self.tables.is_brief()
            && let Some(flags) = Flags::between_brackets(trimmed)
            && let Some(netdev) = netdevs.last_mut().filter(|n| n.operational_state_alone)
        {
            // The row was broken before its last word.
            *netdev = flags.of(std::mem::take(netdev));
            return;
        }
        let is_vf = trimmed.starts_with("vf ");
        if !self.open && is_vf && (trimmed.contains("NODE_GUID") || trimmed.contains(LINK)) {
            // Only the VF's line was copied: its PF is some IPoIB netdev that is up.
            let pf = NetdevSeen { infiniband: true, up: true, origin, ..NetdevSeen::default() };
            self.begin(pf, netdevs);
        }
        let Some(netdev) = netdevs.last_mut().filter(|_| self.open) else { return };
        if is_vf {
            self.broken = is_broken(trimmed);
            put(&mut netdev.vfs, VfSeen::parse(trimmed, origin));
        } else if netdev.vfs.last_mut().is_some_and(|vf| vf.goes_on(trimmed, self.broken)) {
            self.broken = is_broken(trimmed);
        } else if trimmed.starts_with("link/") {
            // What it is counts more than what it is called.
            netdev.infiniband = trimmed.starts_with(LINK);
            netdev.guid = port_guid(trimmed);
        } else if trimmed.starts_with("infiniband ") {
            netdev.infiniband = true;
        }
    }

    fn begin(&mut self, netdev: NetdevSeen, netdevs: &mut Vec<NetdevSeen>) {
        self.broken = false;
        self.open = put(netdevs, netdev);
    }
}

/// `4: ib0.8001@ib0: <BROADCAST,UP> mtu 4092 qdisc mq state UP ...`; the index
/// may have been cut off.
fn ip_line(text: &str) -> Option<NetdevSeen> {
    let text = match text.split_once(": ") {
        Some((index, rest)) if index.parse::<u32>().is_ok() => rest,
        _ => text,
    };
    let (name, rest) = text.split_once(": <")?;
    let (flags, rest) = rest.split_once('>')?;
    let netdev = Flags::parse(flags)?.of(named(name)?);
    // `ip -o` puts all of it on one line.
    let infiniband = rest.contains(LINK) || netdev.infiniband && !rest.contains("link/");
    Some(NetdevSeen { infiniband, guid: port_guid(rest), ..netdev })
}

/// The port GUID in the address behind `link/infiniband`.
fn port_guid(text: &str) -> String {
    let mut words = text.split_whitespace().skip_while(|word| *word != LINK);
    words.nth(1).map(guid_of).unwrap_or_default()
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
        infiniband: is_ipoib_name(name),
        ..NetdevSeen::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<NetdevSeen> {
        let mut reader = IpLinkReader::default();
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
                ("ib0.beef", true, true),
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

    #[test]
    fn a_netdev_is_known_without_its_index_and_by_the_kernels_flags_alone() {
        let names = |text: &str| read(text).into_iter().map(|n| n.name).collect::<Vec<_>>();
        assert_eq!(names("ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 4092 qdisc mq"), ["ib0"]);
        let ethernet = read("3: ib0: <UP> mtu 1500\n    link/ether 00:02:c9:00:a1:b2 brd ff");
        assert!(!ethernet[0].infiniband && read("mlx5_ib0: <UP> mtu 1500")[0].infiniband);
        assert_eq!(names("7: ib0: <BROADCAST,MULTICAST,UP,10000> mtu 2044"), ["ib0"]);
        assert_eq!(names("sit0@NONE: <NOARP> mtu 1480"), ["sit0"]);
        assert_eq!(names("note: <BROADCAST is a flag>"), [""; 0]);
        assert_eq!(names("mail from you: <UP>"), [""; 0]);
        assert_eq!(names("see: <face>"), [""; 0]);
    }

    #[test]
    fn a_brief_row_that_a_mailer_broke_is_joined() {
        let ib = "80:00:00:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:a1:b2:c3";
        let netdevs = read(&format!("ib0  DOWN  {ib}\n<NO-CARRIER,BROADCAST,MULTICAST,UP>\n"));
        assert_eq!(netdevs.len(), 1);
        let ib0 = &netdevs[0];
        assert!(ib0.up && ib0.infiniband && !ib0.operational_state_alone);
        assert_eq!(ib0.carrier, Some(false));
    }

    #[test]
    fn the_line_of_a_vf_is_joined_where_a_mailer_broke_it() {
        let address = "80:00:00:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:a1:b2:c3";
        let vf = format!(
            "vf 0     link/infiniband {address} brd {address}, spoof checking off, NODE_GUID 00:02:c9:03:00:00:00:01, PORT_GUID 00:02:c9:03:00:00:00:02, link-state disable, trust off, query_rss off"
        );
        let words: Vec<&str> = vf.split_whitespace().collect();
        for at in 2..words.len() {
            let (first, rest) = words.split_at(at);
            let text = format!(
                "ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4092\nlink/infiniband {address}\n{}\n{}\n    altname ibp1s0\n",
                first.join(" "),
                rest.join(" ")
            );
            let mut reader = IpLinkReader::default();
            let mut netdevs = Vec::new();
            for line in text.lines() {
                reader.line(line, Origin::default(), &mut netdevs);
            }
            let vf = &netdevs[0].vfs[0];
            assert!(netdevs[0].infiniband && netdevs[0].vfs.len() == 1);
            assert_eq!(vf.node_guid.as_deref(), Some("00:02:c9:03:00:00:00:01"), "{text}");
            assert_eq!(vf.port_guid.as_deref(), Some("00:02:c9:03:00:00:00:02"), "{text}");
            assert_eq!((vf.index.as_str(), vf.link_state.as_str()), ("0", "disable"), "{text}");
            assert!(!vf.text.contains("altname"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_dump_panics(text in r"(([0-9]: |ib0|@|: <|UP,|>|vf |NODE_GUID |flags=|\(|==> |[a-zÄ0-9 :]){0,5}\n){0,8}") {
            read(&text);
        }
    }
}
