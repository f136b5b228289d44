//! What single lines say of adapters, ports and netdevs.

use std::ops::RangeInclusive;

use super::{Lack, State};
use crate::check::evidence::event::function;
use crate::check::evidence::words::fold::{LINK_DOWN, LINK_UP};
use crate::check::pattern::{caught, caught_one, has_any, word};
use crate::names::RDMA_MODULES;

/// The PCI function of which a driver of the RDMA stack speaks.
pub fn driven(text: &str) -> Option<&str> {
    let driver = text.split([' ', ':']).next().unwrap_or_default();
    RDMA_MODULES.contains(&driver).then(|| function(text)).flatten()
}

/// The RDMA device that was not registered, or the port for which ib_ipoib has made no netdev.
pub fn given_up(text: &str) -> Option<String> {
    if let Some(device) = caught_one(text, "infiniband {}: Couldn't register device") {
        return Some(device.to_owned());
    }
    let [device, port] = caught::<2>(text, "{}: couldn't register ipoib port {}")
        .or_else(|| caught::<2>(text, "{}, {}: ipoib_intf_alloc failed"))?;
    Some(format!("{}/{}", last_word(device), word(port).trim_end_matches(';')))
}

/// What `ib_cache_update()` says of a port since Linux 6.14: `mlx5_core 0000:4b:00.0 mlx5_0: Port:
/// 1 Link ACTIVE`.
pub fn port_state(text: &str) -> Option<(String, &str)> {
    let [device, port, state] = caught::<3>(text, "{}: Port: {} Link {}")?;
    Some((format!("{}/{port}", last_word(device)), word(state)))
}

/// Whether the system begins to shut down, or has started, by `text`; `None` if it says neither.
/// What ends in a shutdown ends by right.
pub fn ends(text: &str) -> Option<bool> {
    let has_goal = text.contains("Multi-User") || text.contains("multi-user");
    if has_goal && text.starts_with("Reached target ") {
        return Some(false);
    }
    let words = ["System is rebooting", "System is powering down", "shutting down for system"];
    let stops = has_goal && text.starts_with("Stopped target ") || has_any(text, &words);
    stops.then_some(true)
}

/// The bridge that the kernel found on the PCI bus, and the buses behind it.
pub fn bridge(text: &str) -> Option<(&str, RangeInclusive<u8>)> {
    let [bridge, buses] = caught::<2>(text, "pci {}: PCI bridge to [bus {}]")?;
    let (first, last) = buses.split_once('-').unwrap_or((buses, buses));
    let number = |text: &str| u8::from_str_radix(text, 16).ok();
    Some((bridge, number(first)?..=number(last)?))
}

/// The bus of a PCI address.
pub fn bus(address: &str) -> Option<u8> {
    u8::from_str_radix(address.get(5..7)?, 16).ok()
}

pub fn last_word(text: &str) -> &str {
    text.rsplit([' ', ':']).next().unwrap_or(text)
}

/// What systemd-networkd says of a netdev.
pub fn of_networkd(text: &str) -> Option<(&str, State)> {
    let found = [
        (": Gained carrier", State::Good),
        (": DHCPv4 address ", State::Good),
        (": Lost carrier", State::Bad(Lack::Carrier)),
        (": DHCPv4 client: Timed out", State::Bad(Lack::Address)),
        (": DHCPv4 client: timed out", State::Bad(Lack::Address)),
    ];
    let of = |(words, state): (&str, State)| Some((last_word(text.split_once(words)?.0), state));
    found.into_iter().find_map(of).filter(|(name, _)| !name.is_empty())
}

/// What NetworkManager says of a netdev.
pub fn of_manager(text: &str) -> Option<(&str, State)> {
    let device =
        caught::<2>(text, "device ({}): {}").or_else(|| caught::<2>(text, "dhcp4 ({}): {}"));
    let [name, rest] = device?;
    let state = if rest.starts_with("carrier: link connected")
        || rest.starts_with("Activation: successful")
        || rest.starts_with("state changed new lease")
    {
        State::Good
    } else if rest.starts_with("carrier: link disconnected")
        || rest.contains("-> unavailable (reason 'carrier-changed'")
    {
        State::Bad(Lack::Carrier)
    } else if rest.starts_with("request timed out")
        || rest.contains("-> failed (reason")
        || rest.starts_with("Activation: failed")
    {
        State::Bad(Lack::Address)
    } else {
        return None;
    };
    Some((name, state))
}

/// What an Ethernet driver says of the link of its netdev: `mlx5_core 0000:42:00.1 eth4: Link
/// up`, `bnxt_en 0000:01:00.0 eno1: NIC Link is Up, 25000 Mbps`.
pub fn link_of_driver(text: &str) -> Option<(&str, bool)> {
    let of = |words: &[&str], is_up| {
        let name = words.iter().find_map(|w| Some(last_word(text.split_once(w)?.0)))?;
        (!name.is_empty()).then_some((name, is_up))
    };
    of(LINK_UP, true).or_else(|| of(LINK_DOWN, false))
}
