//! The routes of the main table, as `/proc/net/route` and `/proc/net/ipv6_route` have them
//! (proc_net(5); `fib_route_seq_show()`, net/ipv4/fib_trie.c; `ipv6_route_native_seq_show()`,
//! net/ipv6/ip6_fib.c). To read them no lock is waited for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Look;

/// `RTF_GATEWAY` and `RTF_REJECT` (include/uapi/linux/route.h).
const GATEWAY: u32 = 0x2;
const REJECT: u32 = 0x200;
/// A table with half a million routes is not what a node has.
const LIMIT: u64 = 16 << 20;

/// One route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// Where to; of length 0: everywhere.
    pub(super) to: IpAddr,
    /// How many bits of it count.
    pub(super) length: u32,
    /// Over whom, if it does not end at the link.
    pub(super) gateway: Option<IpAddr>,
    /// Out of which netdev.
    pub(super) netdev: String,
}

impl Route {
    fn has(&self, ip: IpAddr) -> bool {
        match (self.to, ip) {
            (IpAddr::V4(to), IpAddr::V4(ip)) => {
                let mask = u32::MAX.checked_shl(32 - self.length).unwrap_or(0);
                to.to_bits() & mask == ip.to_bits() & mask
            }
            (IpAddr::V6(to), IpAddr::V6(ip)) => {
                let mask = u128::MAX.checked_shl(128 - self.length).unwrap_or(0);
                to.to_bits() & mask == ip.to_bits() & mask
            }
            _ => false,
        }
    }
}

/// All of them, IPv4 first.
pub(super) fn routes(look: &mut Look<'_>) -> Vec<Route> {
    let mut all = Vec::new();
    for (path, parse) in
        [("/proc/net/route", ipv4 as fn(&str) -> Option<Route>), ("/proc/net/ipv6_route", ipv6)]
    {
        let text = look.root.text(path, LIMIT);
        let text = look.note(text).unwrap_or_default();
        all.extend(text.lines().filter_map(parse));
    }
    all
}

/// The netdev that a packet to `ip` leaves by: that of the longest prefix.
pub(super) fn way_to(routes: &[Route], ip: IpAddr) -> Option<&str> {
    let fit = routes.iter().filter(|route| route.has(ip));
    fit.max_by_key(|route| route.length).map(|route| route.netdev.as_str())
}

/// Numbers are those of the memory: the bytes of the address in the order of the network.
fn ipv4(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [netdev, to, gateway, flags, _, _, _, mask, ..] = fields.as_slice() else { return None };
    let address = |text: &str| {
        let number = u32::from_str_radix(text, 16).ok()?;
        Some(Ipv4Addr::from(number.to_ne_bytes()))
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    (flags & REJECT == 0).then_some(())?;
    let gateway = IpAddr::V4(address(gateway)?);
    Some(Route {
        to: IpAddr::V4(address(to)?),
        length: address(mask)?.to_bits().count_ones(),
        gateway: (flags & GATEWAY != 0).then_some(gateway),
        netdev: (*netdev).to_owned(),
    })
}

fn ipv6(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [to, length, _, _, gateway, _, _, _, flags, netdev] = fields.as_slice() else {
        return None;
    };
    let address = |text: &str| Some(Ipv6Addr::from_bits(u128::from_str_radix(text, 16).ok()?));
    let flags = u32::from_str_radix(flags, 16).ok()?;
    (flags & REJECT == 0).then_some(())?;
    let gateway = IpAddr::V6(address(gateway)?);
    Some(Route {
        to: IpAddr::V6(address(to)?),
        length: u32::from_str_radix(length, 16).ok().filter(|length| *length <= 128)?,
        gateway: (flags & GATEWAY != 0).then_some(gateway),
        netdev: (*netdev).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a node with a default route over eth0, ib0 with 10.9.8.1/24, and a storage
    /// network behind a router of it.
    #[cfg(target_endian = "little")]
    const IPV4: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
ib0\t0008090A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
ib0\t0000140A\tFE08090A\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0
*\t0000150A\t00000000\t0201\t0\t0\t0\t0000FFFF\t0\t0\t0
";

    #[cfg(target_endian = "little")]
    #[test]
    fn an_address_leaves_by_the_longest_prefix() {
        let routes: Vec<Route> = IPV4.lines().filter_map(ipv4).collect();
        assert_eq!(routes.len(), 3, "{routes:?}");
        let way = |ip: &str| way_to(&routes, ip.parse().expect("an address"));
        assert_eq!(way("10.9.8.77"), Some("ib0"));
        assert_eq!(way("10.20.3.4"), Some("ib0"));
        assert_eq!(way("10.21.3.4"), Some("eth0"));
        assert_eq!(way("fd00::1"), None);
        assert_eq!(routes.get(2).and_then(|r| r.gateway), "10.9.8.254".parse().ok());
        assert_eq!(routes.get(1).map(|r| r.gateway), Some(None));
    }

    #[test]
    fn ipv6_is_read_too() {
        let zero = "00000000000000000000000000000000";
        let line = |to: &str, length: &str, gateway: &str, flags: &str| {
            format!("{to} {length} {zero} 00 {gateway} 00000400 00000001 00000000 {flags} ib0")
        };
        let net = "fd000008000000000000000000000000";
        let near = ipv6(&line(net, "40", zero, "00000001")).expect("a route");
        assert!(near.has("fd00:8::7".parse().expect("an address")));
        assert!(!near.has("fd00:9::7".parse().expect("an address")));
        let all = ipv6(&line(zero, "00", net, "00000003")).expect("a route");
        assert!(all.has("2001:db8::1".parse().expect("an address")) && all.gateway.is_some());
        assert_eq!(ipv6(&line(zero, "00", zero, "00200200")), None, "an unreachable one");
        assert_eq!(ipv6(&line(zero, "ff", zero, "00000001")), None);
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line: String) {
            for route in [ipv4(&line), ipv6(&line)].into_iter().flatten() {
                route.has(IpAddr::V4(Ipv4Addr::LOCALHOST));
            }
        }
    }
}
