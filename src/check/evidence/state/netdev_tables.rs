//! Netdevs as tables: `ip -br link`, `ip -br addr` and `networkctl list`.

use std::net::IpAddr;

use super::netdev::{Flags, NetdevSeen, guid_of, has_bytes, has_ib_address, named};
use super::prompt::Line;

/// What table is open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Table {
    #[default]
    None,
    Brief,
    Networkctl,
}

#[derive(Debug, Default)]
pub(super) struct NetdevTableReader {
    table: Table,
}

impl NetdevTableReader {
    pub(super) fn gap(&mut self) {
        self.table = Table::None;
    }

    pub(super) fn typed(&mut self, line: &Line<'_>) {
        let brief = |argument: &&str| argument.len() >= 3 && "-brief".starts_with(argument);
        self.table = match line.program {
            "ip" if line.arguments.iter().any(brief) => Table::Brief,
            "networkctl" => Table::Networkctl,
            _ => Table::None,
        };
    }

    /// True behind a row of `ip -br`.
    pub(super) fn is_brief(&self) -> bool {
        self.table == Table::Brief
    }

    /// The netdev that `text` is the row of; `None` in it if it tells nothing of
    /// whether the netdev is up.
    pub(super) fn row(&mut self, text: &str) -> Option<Option<NetdevSeen>> {
        if text.split_whitespace().eq(["IDX", "LINK", "TYPE", "OPERATIONAL", "SETUP"]) {
            self.table = Table::Networkctl;
            return Some(None);
        }
        if self.table == Table::Networkctl {
            let row = networkctl_row(text);
            if row.is_none() {
                self.table = Table::None;
            }
            return row;
        }
        let (netdev, certain) = brief_row(text)?;
        if !certain && self.table != Table::Brief {
            return None;
        }
        self.table = Table::Brief;
        Some(Some(netdev))
    }
}

/// `ib0.8001@ib0  UP  80:00:...  <BROADCAST,MULTICAST,UP,LOWER_UP>`, or with IP
/// addresses in the place of the last two (iproute2, `print_linkinfo_brief`).
/// The second value is true if it can be nothing else.
fn brief_row(text: &str) -> Option<(NetdevSeen, bool)> {
    let mut words = text.split_whitespace();
    let netdev = named(words.next()?)?;
    let state = words.next()?;
    // The kernel's operational states, RFC 2863.
    ["UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN", "TESTING", "DORMANT", "UP"]
        .contains(&state)
        .then_some(())?;
    let rest: Vec<&str> = words.collect();
    let hardware = rest.first().filter(|a| has_ib_address(a) || has_bytes(a, 6));
    let infiniband = hardware.map_or(netdev.infiniband, |a| has_ib_address(a));
    let guid = hardware.map(|address| guid_of(address)).unwrap_or_default();
    let netdev = NetdevSeen { infiniband, guid, ..netdev };
    let behind = rest.get(usize::from(hardware.is_some())..).unwrap_or_default();
    if let [flags] = behind
        && let Some(flags) = Flags::between_brackets(flags)
    {
        return Some((flags.of(netdev), true));
    }
    let is_address = |word: &&str| {
        let address = word.split_once('/').map_or(*word, |(address, _)| address);
        address.parse::<IpAddr>().is_ok()
    };
    behind.iter().filter(|w| **w != "peer").all(is_address).then_some(())?;
    let netdev = NetdevSeen {
        // The kernel calls every netdev that is not set up DOWN, and no other state.
        up: state != "DOWN",
        carrier: match state {
            "UP" => Some(true),
            "LOWERLAYERDOWN" => Some(false),
            _ => None,
        },
        operational_state_alone: true,
        ..netdev
    };
    Some((netdev, !rest.is_empty()))
}

/// `  4 ib0   infiniband routable    configured`, perhaps behind a dot (systemd,
/// `src/network/networkctl.c`).
fn networkctl_row(text: &str) -> Option<Option<NetdevSeen>> {
    let text = text.trim_start_matches(|c: char| c == '●' || c == '*' || c.is_whitespace());
    let words: Vec<&str> = text.split_whitespace().take(6).collect();
    let [index, name, kind, operational, _setup] = words.as_slice() else { return None };
    index.parse::<u32>().ok()?;
    let (up, carrier) = match *operational {
        "off" => (false, None),
        "no-carrier" => (true, Some(false)),
        "dormant" => (true, None),
        "degraded-carrier" | "carrier" | "degraded" | "enslaved" | "routable" => (true, Some(true)),
        // networkd does not run, or does not know it.
        "missing" | "pending" | "n/a" | "-" => return Some(None),
        _ => return None,
    };
    let infiniband = *kind == "infiniband" || *kind == "ipoib";
    Some(named(name).map(|netdev| NetdevSeen { up, carrier, infiniband, ..netdev }))
}

#[cfg(test)]
mod tests {
    use super::super::prompt;
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<NetdevSeen> {
        let (mut reader, mut netdevs) = (NetdevTableReader::default(), Vec::new());
        prompt::feed(text, |line| match line {
            Ok(typed) => reader.typed(&typed),
            Err(line) => netdevs.extend(reader.row(line.trim()).flatten()),
        });
        netdevs
    }

    fn brief(text: &str) -> Vec<(String, bool, Option<bool>, bool)> {
        let netdevs = read(text);
        netdevs.into_iter().map(|n| (n.name, n.up, n.carrier, n.infiniband)).collect()
    }

    const IB: &str = "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:a1:b2:c3";

    #[test]
    fn brief_links_are_read_without_their_prompt() {
        let netdevs = read(&format!(
            "lo               UNKNOWN        00:00:00:00:00:00 <LOOPBACK,UP,LOWER_UP>\nx1  DOWN  {IB} <BROADCAST,MULTICAST>\nx1.8001@x1  LOWERLAYERDOWN {IB} <NO-CARRIER,BROADCAST,MULTICAST,UP,M-DOWN>\ntun0 UNKNOWN <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP>\n",
        ));
        let shown: Vec<_> = netdevs
            .iter()
            .map(|n| (n.name.as_str(), n.up, n.carrier, n.infiniband, n.parent_down))
            .collect();
        assert_eq!(
            shown,
            [
                ("lo", true, Some(true), false, false),
                ("x1", false, None, true, false),
                ("x1.8001", true, Some(false), true, true),
                ("tun0", true, Some(true), false, false),
            ]
        );
        assert_eq!(netdevs[2].parent.as_deref(), Some("x1"));
    }

    #[test]
    fn brief_addresses_are_told_from_words() {
        let rows = "ib0              UP             10.1.0.7/16 fe80::2:c903:a1:b2c3/64 \nib1              DOWN           \nppp0 UNKNOWN 10.0.0.1 peer 10.0.0.2/32\n";
        let shown = [
            ("ib0".to_owned(), true, Some(true), true),
            ("ib1".to_owned(), false, None, true),
            ("ppp0".to_owned(), true, None, false),
        ];
        assert_eq!(brief(&format!("# ip -br a\n{rows}")), shown);
        assert_eq!(brief(rows), shown);
        assert_eq!(brief("ib1 DOWN\nswitch UP again\n"), []);
        assert!(read("$ ip -brief addr\nib1  DOWN\n")[0].operational_state_alone);
    }

    #[test]
    fn networkctl_is_read_below_its_header() {
        let rows = "  1 lo      loopback   carrier     unmanaged\n● 4 ib0     infiniband routable    configured\n  5 ib1     infiniband no-carrier  configuring\n  6 ib2     infiniband off         unmanaged\n  7 ib3     infiniband n/a         unmanaged\n";
        let shown = [
            ("lo".to_owned(), true, Some(true), false),
            ("ib0".to_owned(), true, Some(true), true),
            ("ib1".to_owned(), true, Some(false), true),
            ("ib2".to_owned(), false, None, true),
        ];
        let header = "IDX LINK    TYPE       OPERATIONAL SETUP\n";
        assert_eq!(brief(&format!("{header}{rows}\n5 links listed.\n")), shown);
        assert_eq!(brief(&format!("# networkctl --no-legend\n{rows}")), shown);
        assert_eq!(brief(rows), []);
    }

    proptest! {
        #[test]
        fn no_table_panics(text in r"((# ip -br a|ib0@?|UP |DOWN |<UP,|>|10\.0\.0\.1/8 |IDX LINK TYPE OPERATIONAL SETUP|1 |infiniband |off |[a-zÄ0-9 :]){0,6}\n){0,8}") {
            read(&text);
        }
    }
}
