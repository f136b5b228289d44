//! The kinds of words that several keys hold.

use super::kinds::{Spelling, Word};
use crate::config::value::Value;
use crate::names::{
    Connection, Gbps, Guid, IfName, IfPattern, LinkLayer, LinkSpeed, LinkWidth, Mode, ModuleName,
    NameRule, NetnsMode, PKey, PciAddress, PcieSpeed, PcieWidth, PortChoice, PortSelector,
    PortType, RdmaName, Rung, Words, is_hostile,
};

pub(super) const MODULE: Word = Word {
    what: "a kernel module name",
    example: "ib_srp",
    spelling: Spelling::Pattern("^[A-Za-z0-9_][A-Za-z0-9_-]{0,54}$"),
    parse: |text| text.parse::<ModuleName>().map(Value::Module).map_err(|e| e.to_string()),
};

pub(super) const PCI: Word = Word {
    what: "a PCI address",
    example: "0000:4b:00.0",
    spelling: Spelling::Pattern("^([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]$"),
    parse: |text| PciAddress::typed(text).map(Value::Pci).map_err(|e| e.to_string()),
};

pub(super) const GUID: Word = Word {
    what: "a port GUID",
    example: "0002:c903:000e:8acd",
    spelling: Spelling::Pattern(
        "^((0[xX])?[0-9a-fA-F]{16}|([0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}|([0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2})$",
    ),
    parse: |text| text.parse::<Guid>().map(Value::Guid).map_err(|e| e.to_string()),
};

pub(super) const RDMA: Word = Word {
    what: "an RDMA device name",
    example: "mlx5_0",
    spelling: Spelling::Pattern("^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"),
    parse: |text| text.parse::<RdmaName>().map(Value::Rdma).map_err(|e| e.to_string()),
};

pub(super) const MODE: Word = Word {
    what: "a transport mode",
    example: "connected",
    spelling: Spelling::OneOf(Mode::all_typed),
    parse: |text| text.parse::<Mode>().map(Value::Mode),
};

pub(super) const PKEY: Word = Word {
    what: "a P_Key",
    example: "0x8001",
    spelling: Spelling::Pattern(
        "^0[xX]([0-9a-fA-F]{3}[1-9a-fA-F]|[0-9a-fA-F]{2}[1-9a-fA-F]0|[0-9a-fA-F][1-9a-fA-F]00|[1-79a-fA-F]000)$",
    ),
    parse: |text| text.parse::<PKey>().map(Value::PKey).map_err(|e| e.to_string()),
};

/// A name that ibprov gives, or that stands in a rule of udev.
pub(super) const IF_NAME: Word = Word {
    what: "a network device name of letters, digits, '_', '-' and '.'",
    example: "ib0",
    spelling: Spelling::Loose("^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$"),
    parse: |text| IfName::to_give(text).map(Value::IfName).map_err(|e| e.to_string()),
};

pub(super) const IF_PATTERN: Word = Word {
    what: "a pattern for names of network devices",
    example: "ib*",
    spelling: Spelling::Loose("^[^/:\\s\\x00-\\x1f\\x7f-\\x9f]{1,64}$"),
    parse: |text| text.parse::<IfPattern>().map(Value::IfPattern).map_err(|e| e.to_string()),
};

pub(super) const STATE: Word = Word {
    what: "a state that can be waited for",
    example: "link",
    spelling: Spelling::OneOf(Rung::words_to_wait_for),
    parse: |text| {
        let want = || {
            format!(
                "{text:?} is not a state that can be waited for: expected {}",
                Rung::words_to_wait_for().join(", ")
            )
        };
        Rung::to_wait_for(text).map(Value::Rung).ok_or_else(want)
    },
};

pub(super) const NAME_RULE: Word = Word {
    what: "a rule",
    example: "last-digits",
    spelling: Spelling::OneOf(NameRule::all_typed),
    parse: |text| text.parse::<NameRule>().map(Value::NameRule).map_err(|e| e.to_string()),
};

pub(super) const PATH: Word = Word {
    what: "an absolute path",
    example: "/etc/site/host-number",
    spelling: Spelling::Pattern("^/[^\\x00-\\x1f\\x7f-\\x9f]*$"),
    parse: |text| {
        let good = text.starts_with('/') && !text.contains(is_hostile);
        good.then(|| Value::Path(text.to_owned()))
            .ok_or_else(|| "expected an absolute path, without control characters".to_owned())
    },
};

pub(super) const CONNECTION: Word = Word {
    what: "a libvirt connection",
    example: "qemu:///session",
    spelling: Spelling::Loose("^[a-z][!-9;-~]*:[!-~]+$"),
    parse: |text| text.parse::<Connection>().map(Value::Connection),
};

pub(super) const PORTS: Word = Word {
    what: "a choice of ports",
    example: "listed",
    spelling: Spelling::OneOf(PortChoice::all_typed),
    parse: |text| text.parse::<PortChoice>().map(Value::PortChoice).map_err(|e| e.to_string()),
};

pub(super) const PORT_NAME: Word = Word {
    what: "a PCI address, a port GUID or the name of an RDMA device",
    example: "0000:4b:00.0",
    spelling: Spelling::Pattern(
        "^(([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]|([0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}|([0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2}|[A-Za-z0-9][A-Za-z0-9_.-]{0,62})$",
    ),
    parse: |text| text.parse::<PortSelector>().map(Value::Port).map_err(|e| e.to_string()),
};

pub(super) const LINK_LAYER: Word = Word {
    what: "a link layer",
    example: "ethernet",
    spelling: Spelling::OneOf(LinkLayer::all_typed),
    parse: |text| {
        let want = || format!("{text:?} is not a link layer: expected {}", LinkLayer::quoted());
        LinkLayer::from_typed(text).map(Value::LinkLayer).ok_or_else(want)
    },
};

pub(super) const NETNS: Word = Word {
    what: "a network namespace mode",
    example: "exclusive",
    spelling: Spelling::OneOf(NetnsMode::all_typed),
    parse: |text| {
        let want = || {
            format!("{text:?} is not a network namespace mode: expected {}", NetnsMode::quoted())
        };
        NetnsMode::from_typed(text).map(Value::NetnsMode).ok_or_else(want)
    },
};

pub(super) const PORT_TYPE: Word = Word {
    what: "a port type",
    example: "eth",
    spelling: Spelling::OneOf(PortType::all_typed),
    parse: |text| {
        let want = || format!("{text:?} is not a port type: expected {}", PortType::quoted());
        PortType::from_typed(text).map(Value::PortType).ok_or_else(want)
    },
};

pub(super) const RATE: Word = Word {
    what: "a rate",
    example: "400 Gb/s",
    spelling: Spelling::Pattern("^([1-9][0-9]{0,4}([.][0-9])?|0[.][1-9]) ?Gb/s(ec)?$"),
    parse: |text| text.parse::<Gbps>().map(Value::Rate).map_err(|e| e.to_string()),
};

pub(super) const LINK_WIDTH: Word = Word {
    what: "a link width",
    example: "4x",
    spelling: Spelling::Pattern("^(1|2|4|8|12)[xX]$"),
    parse: |text| text.parse::<LinkWidth>().map(Value::LinkWidth).map_err(|e| e.to_string()),
};

pub(super) const LINK_SPEED: Word = Word {
    what: "a link speed",
    example: "ndr",
    spelling: Spelling::OneOf(LinkSpeed::all_typed),
    parse: |text| text.parse::<LinkSpeed>().map(Value::LinkSpeed).map_err(|e| e.to_string()),
};

pub(super) const PCIE_WIDTH: Word = Word {
    what: "a PCIe width",
    example: "x16",
    spelling: Spelling::Pattern("^x(1|2|4|8|12|16|32)$"),
    parse: |text| text.parse::<PcieWidth>().map(Value::PcieWidth).map_err(|e| e.to_string()),
};

pub(super) const PCIE_SPEED: Word = Word {
    what: "a PCIe speed",
    example: "16 GT/s",
    spelling: Spelling::Pattern("^(2\\.5|(5|8|16|32|64)(\\.0)?) ?GT/s$"),
    parse: |text| text.parse::<PcieSpeed>().map(Value::PcieSpeed).map_err(|e| e.to_string()),
};
