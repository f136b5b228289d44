//! What the published schema says of each kind of name.

use self::Spelling::{Any, Loose, OneOf, Pattern};
use crate::config::keys::Word;
use crate::model::Code;
use crate::names::{
    BindOrder, LinkLayer, LinkSpeed, Mode, NameRule, NetnsMode, OnFailure, Policy, PortChoice,
    PortType, PortWait, Ready, Rung, VfDriver, VfOwner, Words as _,
};

/// What a schema can say of a kind of name. It refuses nothing that the parser accepts, but
/// for what is not ASCII, of which a schema counts characters and the parser bytes.
#[derive(Debug)]
pub(in crate::config) enum Spelling {
    /// It fits this regular expression, and all ASCII that does is good.
    Pattern(&'static str),
    /// It is one of the words of its type, and all of these are good.
    OneOf(fn() -> Vec<&'static str>),
    /// It fits this regular expression, and not all that does is good.
    Loose(&'static str),
    /// No pattern can say what is good.
    Any,
}

impl Spelling {
    /// As a regular expression, if one can say it. Words hold letters, digits
    /// and hyphens, which mean themselves there.
    pub(in crate::config) fn pattern(&self) -> Option<String> {
        match self {
            Self::Pattern(pattern) | Self::Loose(pattern) => Some((*pattern).to_owned()),
            Self::OneOf(words) => {
                let words: Vec<String> = words().into_iter().map(any_case).collect();
                Some(format!("^({})$", words.join("|")))
            }
            Self::Any => None,
        }
    }
}

/// A regular expression for `word` in small and capital letters.
pub(in crate::config) fn any_case(word: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphabetic() {
            format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase())
        } else {
            c.to_string()
        }
    };
    word.chars().map(letter).collect()
}

/// Each kind of name: what it is, an example, and its spelling.
const SPELLINGS: &[(&str, &str, Spelling)] = &[
    (
        "a GUID",
        "0002:c903:000e:8acd",
        Pattern(
            "^((0[xX])?[0-9a-fA-F]{16}|([0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}|([0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2})$",
        ),
    ),
    // That the widths make 64 bits is not for a pattern to say.
    ("a GUID template", "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}", Any),
    (
        "a PCI address",
        "0000:4b:00.0",
        Pattern("^([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]$"),
    ),
    (
        "a PCI address, a port GUID or the name of an RDMA device",
        "0000:4b:00.0",
        Pattern(
            "^(([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]|([0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}|([0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2}|[A-Za-z0-9][A-Za-z0-9_.-]{0,62})$",
        ),
    ),
    (
        "a PCIe speed",
        "16 GT/s",
        Pattern("^(2\\.5|(5|8|16|32|64)(\\.0)?) ?[gG][tT]/[sS]( [pP][cC][iI][eE])?$"),
    ),
    ("a PCIe width", "x16", Pattern("^[xX](1|2|4|8|12|16|32)$")),
    (
        "a P_Key",
        "0x8001",
        Pattern(
            "^0[xX]([0-9a-fA-F]{3}[1-9a-fA-F]|[0-9a-fA-F]{2}[1-9a-fA-F]0|[0-9a-fA-F][1-9a-fA-F]00|[1-79a-fA-F]000)$",
        ),
    ),
    (
        "a VF",
        "0000:4b:00.0/3",
        Pattern(
            "^(auto|([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]/0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-4]))$",
        ),
    ),
    ("a choice of ports", "listed", OneOf(PortChoice::all_typed)),
    ("a driver of VFs", "vfio-pci", OneOf(VfDriver::all_typed)),
    ("a firmware version", "28.43.1014", Pattern("^(>= *)?[0-9]{1,9}(\\.[0-9]{1,9}){0,2}$")),
    (
        "a guest of the list",
        "vm08",
        Pattern(
            "^[^/\\s\\x00-\\x1f\\x7f-\\x9f]([^/\\x00-\\x1f\\x7f-\\x9f]{0,253}[^/\\s\\x00-\\x1f\\x7f-\\x9f])?$",
        ),
    ),
    ("a kernel module name", "ib_srp", Pattern("^[A-Za-z0-9_][A-Za-z0-9_-]{0,54}$")),
    ("a libvirt connection", "qemu:///session", Loose("^[a-z][!-9;-~]*:[!-~]+$")),
    (
        "a libvirt domain",
        "vm09",
        Pattern(
            "^[^/\\s\\x00-\\x1f\\x7f-\\x9f]([^/\\x00-\\x1f\\x7f-\\x9f]{0,253}[^/\\s\\x00-\\x1f\\x7f-\\x9f])?$",
        ),
    ),
    ("a link layer", "ethernet", OneOf(LinkLayer::all_typed)),
    ("a link speed", "ndr", OneOf(LinkSpeed::all_typed)),
    ("a link state", "follow", OneOf(Policy::all_typed)),
    ("a link width", "4x", Pattern("^(1|2|4|8|12)[xX]$")),
    (
        "a network device name of letters, digits, '_', '-' and '.'",
        "ib0",
        Loose("^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$"),
    ),
    ("a network namespace mode", "exclusive", OneOf(NetnsMode::all_typed)),
    (
        "a pattern for names of network devices",
        "ib*",
        Loose("^[^/:\\s\\x00-\\x1f\\x7f-\\x9f]{1,64}$"),
    ),
    // That braces hold known fields is not for a pattern to say.
    ("a pattern for the names of VFs", "{netdev}v{vf}", Any),
    (
        "a port GUID",
        "0002:c903:000e:8acd",
        Pattern(
            "^((0[xX])?[0-9a-fA-F]{16}|([0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}|([0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2})$",
        ),
    ),
    ("a port type", "eth", OneOf(PortType::all_typed)),
    // Which end is the larger is not for a pattern to say.
    ("a range of GUIDs", "0200:0000:0000:0100 - 0200:0000:0000:010f", Any),
    (
        "a rate",
        "400 Gb/s",
        Pattern(
            "^([1-9][0-9]{0,4}([.][0-9])?|0[.][1-9])( ?Gb(/s(ec)?|ps)| ((1|2|4|8|12)[xX] )?([sSdDqQeEhHnNxX][dD][rR]|[fF][dD][rR](10)?)| Gb/sec [(]((1|2|4|8|12)[xX] )?([sSdDqQeEhHnNxX][dD][rR]|[fF][dD][rR](10)?)[)])$",
        ),
    ),
    ("a rule", "last-digits", OneOf(NameRule::all_typed)),
    ("a state that can be waited for", "link", OneOf(Rung::words_to_wait_for)),
    (
        "a systemd unit",
        "vm@9.service",
        Loose(
            "^[A-Za-z0-9:_.\\\\-]([A-Za-z0-9:_.@\\\\-]*[A-Za-z0-9:_.\\\\-])?[.](service|target|socket|mount|scope|path|timer)$",
        ),
    ),
    ("a transport mode", "connected", OneOf(Mode::all_typed)),
    ("an RDMA device name", "mlx5_0", Pattern("^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")),
    ("an absolute path", "/etc/site/host-number", Pattern("^/[^\\x00-\\x1f\\x7f-\\x9f]*$")),
    (
        "an absolute path that ends in .prom",
        "/var/lib/node_exporter/ibprov.prom",
        Pattern("^/[^\\x00-\\x1f\\x7f-\\x9f]*\\.prom$"),
    ),
    ("an order of binding", "in-order", OneOf(BindOrder::all_typed)),
    (
        "the code of a finding",
        "port-degraded",
        OneOf(|| Code::ALL.iter().map(|code| code.name()).collect()),
    ),
    ("the owner of a VF", "cni", OneOf(VfOwner::all_typed)),
    ("what counts as up", "agent", OneOf(Ready::all_typed)),
    ("what to do", "report", OneOf(OnFailure::all_typed)),
    ("where a port is waited for", "online", OneOf(PortWait::all_typed)),
];

/// An example of this kind of name, and its spelling.
pub(in crate::config) fn of(word: &Word) -> (&'static str, &'static Spelling) {
    let is_of = |(what, ..): &&(&str, &str, Spelling)| *what == word.what;
    let (_, example, spelling) = SPELLINGS.iter().find(is_of).expect(word.what);
    (*example, spelling)
}
