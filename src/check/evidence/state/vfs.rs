//! The lines of VFs in `ip link`, which are long and get broken.

use serde::{Deserialize, Serialize};

use super::super::event::Origin;
use crate::check::pattern::{caught_one, word};

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
    const WANTING: [&str; 12] = [
        LINK,
        "brd",
        "MAC",
        "vlan",
        "qos",
        "spoof",
        "checking",
        "NODE_GUID",
        "PORT_GUID",
        "link-state",
        "trust",
        "query_rss",
    ];
    text.ends_with(',')
        || text.rsplit(char::is_whitespace).next().is_some_and(|last| WANTING.contains(&last))
        || text.starts_with("vf ") && text.split_whitespace().count() == 2
}

/// True if a line begins as only the rest of a VF's line does.
fn is_rest(text: &str) -> bool {
    const REST: [&str; 8] = [
        "brd ",
        ",",
        "spoof checking ",
        "NODE_GUID ",
        "PORT_GUID ",
        "link-state ",
        "trust ",
        "query_rss ",
    ];
    REST.iter().any(|r| text.starts_with(r))
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
