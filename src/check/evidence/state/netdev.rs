//! A netdev as a tool shows it, and what its tools have in common: names, flags and
//! link-layer addresses.

use serde::{Deserialize, Serialize};

use super::super::event::Origin;
use super::vfs::VfSeen;
use crate::names::is_ipoib_name;

/// A netdev as a tool shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetdevSeen {
    pub name: String,
    /// The netdev it is a child of (`ib0.8001@ib0`).
    pub parent: Option<String>,
    pub up: bool,
    /// Has carrier; `None` where the tool does not show it.
    pub carrier: Option<bool>,
    /// True if it is IPoIB.
    pub infiniband: bool,
    /// True if `ip` says that its parent is down.
    pub parent_down: bool,
    /// True if the tool shows the operational state alone: one that is not up
    /// may have been set up and lack carrier.
    pub operational_state_alone: bool,
    /// Its port's GUID, hex digits only; empty where it is not shown.
    pub guid: String,
    /// The device and port it belongs to (`ibdev2netdev`).
    pub port: Option<(String, String)>,
    /// The VFs that its PF administers.
    pub vfs: Vec<VfSeen>,
    pub origin: Origin,
    pub text: String,
}

/// The flags of a netdev as `ip` prints them between `<` and `>`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flags {
    up: bool,
    carrier: bool,
    parent_down: bool,
}

impl Flags {
    /// `None` if a word is none of those that `ip` prints (iproute2,
    /// `print_link_flags`); flags that it has no word for are a number.
    pub(super) fn parse(text: &str) -> Option<Self> {
        const WORDS: [&str; 20] = [
            "NO-CARRIER",
            "LOOPBACK",
            "BROADCAST",
            "POINTOPOINT",
            "MULTICAST",
            "NOARP",
            "ALLMULTI",
            "PROMISC",
            "MASTER",
            "SLAVE",
            "DEBUG",
            "DYNAMIC",
            "AUTOMEDIA",
            "PORTSEL",
            "NOTRAILERS",
            "UP",
            "LOWER_UP",
            "DORMANT",
            "ECHO",
            "M-DOWN",
        ];
        let is_word = |word: &str| WORDS.contains(&word);
        let is_flag = |word: &str| is_word(word) || u32::from_str_radix(word, 16).is_ok();
        (text.split(',').all(is_flag) && text.split(',').any(is_word)).then_some(())?;
        let has = |flag: &str| text.split(',').any(|f| f == flag);
        Some(Self {
            up: has("UP"),
            carrier: has("LOWER_UP") && !has("NO-CARRIER"),
            parent_down: has("M-DOWN"),
        })
    }

    /// The same for `<UP,LOWER_UP>` with its brackets.
    pub(super) fn between_brackets(text: &str) -> Option<Self> {
        text.strip_prefix('<')?.strip_suffix('>').and_then(Self::parse)
    }

    /// `netdev` with these flags.
    pub(super) fn of(self, netdev: NetdevSeen) -> NetdevSeen {
        NetdevSeen {
            up: self.up,
            carrier: self.up.then_some(self.carrier),
            parent_down: self.parent_down,
            operational_state_alone: false,
            ..netdev
        }
    }
}

/// The netdev that `ip` calls so: `ib0`, `ib0.8001@ib0`, `eth0@if7`, `sit0@NONE`.
/// It is taken for InfiniBand by its name, until more is shown of it.
pub(super) fn named(text: &str) -> Option<NetdevSeen> {
    let (name, parent) = match text.split_once('@') {
        Some((name, parent)) => (name, Some(parent).filter(|p| *p != "NONE")),
        None => (text, None),
    };
    // IFNAMSIZ; the kernel takes neither white space nor `/` nor `:`.
    let fits = (1..=15).contains(&name.len())
        && !name.contains(|c: char| c.is_whitespace() || c == '/' || c == ':');
    fits.then(|| NetdevSeen {
        name: name.to_owned(),
        parent: parent.map(str::to_owned),
        infiniband: is_ipoib_name(name),
        ..NetdevSeen::default()
    })
}

/// True for a link-layer address of InfiniBand: 20 bytes (RFC 4391).
pub(super) fn has_ib_address(text: &str) -> bool {
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.len() == 59 && text.split(':').all(is_byte)
}

/// The port GUID in such an address: its last 8 bytes.
pub(super) fn guid_of(address: &str) -> String {
    let guid = has_ib_address(address).then(|| address.get(36..)).flatten();
    guid.unwrap_or_default().replace(':', "")
}

#[cfg(test)]
mod tests {
    use super::has_ib_address;

    #[test]
    fn an_address_of_infiniband_has_20_bytes() {
        let ib = "80:00:00:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:a1:b2:c3";
        assert!(has_ib_address(ib) && !has_ib_address("00:02:c9:03:00:a1"));
    }
}
