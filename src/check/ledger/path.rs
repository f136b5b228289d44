//! The PCIe path of an adapter: its function, and the ports and slots above it.

use super::{is_within, words::words};
use crate::check::evidence::event::function;
use crate::check::evidence::fold::lines::{bridge, bus};
use crate::check::evidence::{Boot, Event};

/// mlx5 waits for PCIe for a minute before it gives an adapter up. In microseconds.
const GIVES_UP: i64 = 90_000_000;

/// Buses that a root port has behind it, where nothing tells which.
const BUSES: u8 = 0x10;

/// The card of a PCI function: its address without the function.
pub fn card(address: &str) -> Option<&str> {
    function(address)?.rsplit_once('.').map(|(card, _)| card)
}

/// The failures of the ports above the adapter at `address` that were logged shortly before or
/// after `event`.
pub fn above<'a>(boot: &'a Boot, address: &str, event: &Event) -> Vec<&'a Event> {
    let fails = |e: &&Event| {
        e.from_kernel()
            && words().path.iter().any(|word| e.text.contains(word))
            && is_within(event, e, GIVES_UP)
    };
    boot.events.iter().filter(fails).filter(|e| leads_to(boot, &e.text, address)).collect()
}

/// True if `text` names the card of `address`, or a port that may be above it.
fn leads_to(boot: &Boot, text: &str, address: &str) -> bool {
    let Some(card) = card(address) else { return false };
    if text.contains(card) {
        return true;
    }
    let Some(port) = function(text).filter(|_| text.starts_with("pcieport")) else { return false };
    // Lines of this port that name a card tell what is behind it.
    let names = |e: &Event| e.text.contains(port) && e.text.contains("received from");
    let mut named = boot.events.iter().filter(|e| names(e)).peekable();
    if named.peek().is_some() {
        return named.any(|e| e.text.contains(card));
    }
    let (Some(bus_of_port), Some(bus)) = (bus(port), bus(address)) else { return false };
    let mut bridges = boot.events.iter().filter_map(|e| bridge(&e.text));
    port.get(..4) == address.get(..4)
        && match bridges.find(|(bridge, _)| *bridge == port) {
            Some((_, buses)) => buses.contains(&bus),
            None => bus > bus_of_port && bus - bus_of_port <= BUSES,
        }
}
