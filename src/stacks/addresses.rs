//! The addresses that the configuration of a network stack gives to a netdev: enough to
//! know which subnets are behind it while it has none yet.

use std::net::{IpAddr, Ipv4Addr};

use super::ConfiguredNetdev;
use crate::host::Root;

/// No configuration is longer, bytes.
const LIMIT: u64 = 1 << 20;

/// The addresses, with the lengths of their prefixes, that the files of `asked` give to
/// the netdevs there. What cannot be read or understood is left out.
pub fn configured(root: &Root, asked: &[ConfiguredNetdev]) -> Vec<(IpAddr, u8)> {
    let mut found = Vec::new();
    for ConfiguredNetdev { netdev, file, .. } in asked {
        // `/etc/network/interfaces:7` names a line too.
        let (path, line) = file.rsplit_once(':').unwrap_or((file, ""));
        let path = if line.parse::<u32>().is_ok() { path } else { file };
        let text = root.text(path, LIMIT).unwrap_or_default();
        for address in addresses(&text, netdev) {
            if !found.contains(&address) {
                found.push(address);
            }
        }
    }
    found
}

/// Of ifupdown's interfaces(5), ifcfg files, keyfiles of NetworkManager, systemd.network(5).
fn addresses(text: &str, netdev: &str) -> Vec<(IpAddr, u8)> {
    let mut found = Vec::new();
    // Of ifupdown's file, which has stanzas of many.
    let mut is_mine = true;
    let (mut address, mut length) = (None::<IpAddr>, None::<u8>);
    for line in text.lines().map(str::trim) {
        if let Some(stanza) = line.strip_prefix("iface ") {
            found.extend(address.take().zip(length.take()));
            is_mine = stanza.split_whitespace().next() == Some(netdev);
            continue;
        }
        let Some((key, value)) = line.split_once(['=', ' ', '\t']).filter(|_| is_mine) else {
            continue;
        };
        let value = value.trim().trim_matches(['"', '\'']);
        let first = value.split([',', ' ', ';']).next().unwrap_or_default();
        let key = key.trim().to_ascii_lowercase();
        match key.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "address" | "addresses" | "ipaddr" | "ipv" | "ipv6addr" => {
                match first.split_once('/') {
                    Some((ip, bits)) => found.extend(ip.parse().ok().zip(bits.parse().ok())),
                    None => address = first.parse().ok().or(address),
                }
            }
            "prefix" => length = first.parse().ok(),
            "netmask" => {
                let mask = |mask: Ipv4Addr| mask.to_bits().leading_ones().try_into().ok();
                length = first.parse().ok().or_else(|| first.parse().ok().and_then(mask));
            }
            _ => {}
        }
    }
    found.extend(address.zip(length));
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Vec<String> {
        addresses(text, "ib0").iter().map(|(ip, length)| format!("{ip}/{length}")).collect()
    }

    #[test]
    fn each_stack_writes_addresses_its_own_way() {
        for text in [
            "auto ib0\niface eth0 inet static\n address 192.168.0.1/24\niface ib0 inet static\n  address 10.1.2.3\n  netmask 255.255.255.0\n",
            "iface ib0 inet static\n\taddress 10.1.2.3/24\niface ib1 inet static\n\taddress 10.9.9.9/8\n",
            "DEVICE=ib0\nIPADDR=10.1.2.3\nPREFIX=24\n",
            "DEVICE=\"ib0\"\nIPADDR0=\"10.1.2.3\"\nNETMASK0=\"255.255.255.0\"\n",
            "[ipv4]\nmethod=manual\naddress1=10.1.2.3/24,10.1.2.1\n",
            "[Match]\nName=ib0\n[Network]\nAddress=10.1.2.3/24\n",
        ] {
            assert_eq!(shown(text), ["10.1.2.3/24"], "{text}");
        }
        for text in
            ["", "iface ib0 inet dhcp\n", "IPADDR=10.1.2.3\n", "address x/24\naddress 10.0.0.1/x"]
        {
            assert_eq!(shown(text), [""; 0], "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "((iface |address |IPADDR=|PREFIX=|netmask )?[ib0-9./:]{0,12}\n){0,6}") {
            addresses(&text, "ib0");
        }
    }
}
