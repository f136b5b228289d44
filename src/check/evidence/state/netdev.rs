//! A netdev as a tool shows it, and what its tools have in common: names, flags and
//! link-layer addresses; and the lines of VFs in `ip link`, which are long and get broken.

use crate::check::evidence::words::dump::{FLAGS, VF_BEGINS, VF_ENDS};
use serde::{Deserialize, Serialize};

use super::super::event::Origin;
use crate::check::pattern::{caught_one, word};
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
        let is_word = |word: &str| FLAGS.contains(&word);
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
    has_bytes(text, 20)
}

/// `count` bytes with colons between them.
pub(super) fn has_bytes(text: &str, count: usize) -> bool {
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.len() == 3 * count - 1 && text.split(':').all(is_byte)
}

/// The port GUID in such an address: its last 8 bytes.
pub(super) fn guid_of(address: &str) -> String {
    let guid = has_ib_address(address).then(|| address.get(36..)).flatten();
    guid.unwrap_or_default().replace(':', "")
}

/// How `ip` begins the address of an InfiniBand netdev.
pub(super) const LINK: &str = "link/infiniband";

/// A VF as `ip link` shows it at the PF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfSeen {
    /// VF index, as written.
    pub index: String,
    /// Node GUID as written; `None` where it is not shown.
    pub node_guid: Option<String>,
    /// Port GUID as written; `None` where it is not shown.
    pub port_guid: Option<String>,
    /// `auto`, `enable`, `disable`.
    pub link_state: String,
    pub origin: Origin,
    pub text: String,
}

/// The line of a VF has at most about this many bytes; `ip` prints fewer.
const VF_LINE: usize = 1024;

/// True if the line of a VF that ends so was broken, as mailers do: behind a
/// comma, or between a word and its value.
pub(super) fn is_broken(text: &str) -> bool {
    text.ends_with(',')
        || text
            .rsplit(char::is_whitespace)
            .next()
            .is_some_and(|last| last == LINK || VF_ENDS.contains(&last))
        || text.starts_with("vf ") && text.split_whitespace().count() == 2
}

/// True if a line begins as only the rest of a VF's line does.
fn is_rest(text: &str) -> bool {
    VF_BEGINS.iter().any(|r| text.starts_with(r))
}

impl VfSeen {
    /// The VF of a line that begins with `vf N`.
    pub(super) fn parse(line: &str, origin: Origin) -> Self {
        let mut vf = Self {
            index: word(line.get(3..).unwrap_or_default()).to_owned(),
            origin,
            text: line.to_owned(),
            ..Self::default()
        };
        vf.read();
        vf
    }

    /// Take `line` if the VF's own goes on with it, which the end of that may
    /// show (`broken`); whether it does.
    pub(super) fn goes_on(&mut self, line: &str, broken: bool) -> bool {
        let more = (broken || is_rest(line)) && self.text.len() < VF_LINE;
        if more {
            self.text.push(' ');
            self.text.push_str(line);
            self.read();
        }
        more
    }

    /// Take from its line what it tells.
    fn read(&mut self) {
        let guid = |key| {
            let value = word(caught_one(&self.text, key)?);
            (value.len() == 23 || value.starts_with("0x")).then(|| value.to_owned())
        };
        let (node, port) = (guid("NODE_GUID {}"), guid("PORT_GUID {}"));
        let state = caught_one(&self.text, "link-state {}").map(|state| word(state).to_owned());
        self.node_guid = node;
        self.port_guid = port;
        self.link_state = state.unwrap_or_default();
    }
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
