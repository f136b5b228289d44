//! The kinds of words that keys hold.

use super::kinds::Spelling::{Any, Loose, OneOf, Pattern};
use super::kinds::{Value, Word, named, one_of, text, word};
use crate::model::Code;
use crate::names::{
    BindOrder, Connection, DomainName, FirmwareVersion, Gbps, GuestVf, Guid, GuidRange, IfName,
    IfPattern, LinkLayer, LinkSpeed, LinkWidth, Mode, ModuleName, NameRule, NetnsMode, OnFailure,
    PKey, PciAddress, PcieSpeed, PcieWidth, Policy, PortChoice, PortSelector, PortType, PortWait,
    RdmaName, Ready, Rung, Template, UnitName, VfDriver, VfNamePattern, VfOwner, Words, is_hostile,
    nearest, shown,
};

pub(super) const MODULE: Word = text::<ModuleName>(
    "a kernel module name",
    "ib_srp",
    Pattern("^[A-Za-z0-9_][A-Za-z0-9_-]{0,54}$"),
);

pub(super) const CODE: Word = Word {
    what: "the code of a finding",
    example: "port-degraded",
    spelling: OneOf(|| Code::ALL.iter().map(|code| code.name()).collect()),
    parse: |of, text| {
        let name = text.to_ascii_lowercase();
        let code = Code::ALL.iter().find(|code| code.name() == name);
        let why = || {
            let names = Code::ALL.iter().map(|code| code.name());
            let meant = nearest(&name, names).map(|meant| format!(": did you mean {meant}?"));
            format!("{} is not {}{}", shown(text), of.what, meant.unwrap_or_default())
        };
        code.map(|code| Value::text(*code)).ok_or_else(why)
    },
};

pub(super) const PCI: Word = Word {
    what: "a PCI address",
    example: "0000:4b:00.0",
    spelling: Pattern("^([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]$"),
    parse: |_, text| PciAddress::typed(text).map(Value::text).map_err(|e| e.to_string()),
};

pub(super) const GUID: Word = text::<Guid>(
    "a port GUID",
    "0002:c903:000e:8acd",
    Pattern(
        "^((0[xX])?[0-9a-fA-F]{16}|([0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}|([0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2})$",
    ),
);

pub(super) const RDMA: Word =
    text::<RdmaName>("an RDMA device name", "mlx5_0", Pattern("^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"));

pub(super) const MODE: Word = named::<Mode>("a transport mode", "connected");

pub(super) const PKEY: Word = text::<PKey>(
    "a P_Key",
    "0x8001",
    Pattern(
        "^0[xX]([0-9a-fA-F]{3}[1-9a-fA-F]|[0-9a-fA-F]{2}[1-9a-fA-F]0|[0-9a-fA-F][1-9a-fA-F]00|[1-79a-fA-F]000)$",
    ),
);

/// A name that ibprov gives, or that stands in a rule of udev.
pub(super) const IF_NAME: Word = Word {
    what: "a network device name of letters, digits, '_', '-' and '.'",
    example: "ib0",
    spelling: Loose("^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$"),
    parse: |_, text| IfName::to_give(text).map(Value::text).map_err(|e| e.to_string()),
};

pub(super) const IF_PATTERN: Word = text::<IfPattern>(
    "a pattern for names of network devices",
    "ib*",
    Loose("^[^/:\\s\\x00-\\x1f\\x7f-\\x9f]{1,64}$"),
);

pub(super) const STATE: Word = Word {
    what: "a state that can be waited for",
    example: "link",
    spelling: OneOf(Rung::words_to_wait_for),
    parse: |_, text| {
        let want = || {
            format!(
                "{text:?} is not a state that can be waited for: expected {}",
                Rung::words_to_wait_for().join(", ")
            )
        };
        Rung::to_wait_for(&text.to_ascii_lowercase()).map(Value::text).ok_or_else(want)
    },
};

pub(super) const NAME_RULE: Word = one_of::<NameRule>("a rule", "last-digits");

pub(super) const PATH: Word = Word {
    what: "an absolute path",
    example: "/etc/site/host-number",
    spelling: Pattern("^/[^\\x00-\\x1f\\x7f-\\x9f]*$"),
    parse: |_, text| {
        let good = text.starts_with('/') && !text.contains(is_hostile);
        good.then(|| Value::text(text.to_owned()))
            .ok_or_else(|| "expected an absolute path, without control characters".to_owned())
    },
};

pub(super) const METRICS: Word = Word {
    what: "an absolute path that ends in .prom",
    example: "/var/lib/node_exporter/ibprov.prom",
    spelling: Pattern("^/[^\\x00-\\x1f\\x7f-\\x9f]*\\.prom$"),
    parse: |_, text| {
        if text.ends_with(".prom") {
            PATH.read(text)
        } else {
            Err("expected an absolute path that ends in .prom: node_exporter's textfile collector reads no other file".to_owned())
        }
    },
};

pub(super) const CONNECTION: Word =
    text::<Connection>("a libvirt connection", "qemu:///session", Loose("^[a-z][!-9;-~]*:[!-~]+$"));

pub(super) const PORTS: Word = one_of::<PortChoice>("a choice of ports", "listed");

pub(super) const WAIT: Word = one_of::<PortWait>("where a port is waited for", "online");

pub(super) const PORT_NAME: Word = text::<PortSelector>(
    "a PCI address, a port GUID or the name of an RDMA device",
    "0000:4b:00.0",
    Pattern(
        "^(([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]|([0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}|([0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2}|[A-Za-z0-9][A-Za-z0-9_.-]{0,62})$",
    ),
);

pub(super) const LINK_LAYER: Word = named::<LinkLayer>("a link layer", "ethernet");

pub(super) const NETNS: Word = named::<NetnsMode>("a network namespace mode", "exclusive");

pub(super) const PORT_TYPE: Word = named::<PortType>("a port type", "eth");

pub(super) const RATE: Word = text::<Gbps>(
    "a rate",
    "400 Gb/s",
    Pattern(
        "^([1-9][0-9]{0,4}([.][0-9])?|0[.][1-9])( ?Gb(/s(ec)?|ps)| ((1|2|4|8|12)[xX] )?([sSdDqQeEhHnNxX][dD][rR]|[fF][dD][rR](10)?)| Gb/sec [(]((1|2|4|8|12)[xX] )?([sSdDqQeEhHnNxX][dD][rR]|[fF][dD][rR](10)?)[)])$",
    ),
);

pub(super) const LINK_WIDTH: Word =
    text::<LinkWidth>("a link width", "4x", Pattern("^(1|2|4|8|12)[xX]$"));

pub(super) const LINK_SPEED: Word = named::<LinkSpeed>("a link speed", "ndr");

pub(super) const PCIE_WIDTH: Word =
    text::<PcieWidth>("a PCIe width", "x16", Pattern("^[xX](1|2|4|8|12|16|32)$"));

pub(super) const FIRMWARE: Word = text::<FirmwareVersion>(
    "a firmware version",
    "28.43.1014",
    Pattern("^(>= *)?[0-9]{1,9}(\\.[0-9]{1,9}){0,2}$"),
);

pub(super) const PCIE_SPEED: Word = text::<PcieSpeed>(
    "a PCIe speed",
    "16 GT/s",
    Pattern("^(2\\.5|(5|8|16|32|64)(\\.0)?) ?[gG][tT]/[sS]( [pP][cC][iI][eE])?$"),
);

pub(super) const ANY_GUID: Word = Word { what: "a GUID", ..GUID };

// Which end is the larger is not for a pattern to say.
pub(super) const GUIDS: Word =
    text::<GuidRange>("a range of GUIDs", "0200:0000:0000:0100 - 0200:0000:0000:010f", Any);

// That the widths make 64 bits is not for a pattern to say.
pub(super) const TEMPLATE: Word =
    text::<Template>("a GUID template", "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}", Any);

pub(super) const LINK_STATE: Word = Word {
    parse: |word, text| {
        (FOLLOW.parse)(word, text)
            .map_err(|e| format!("{e} (`ip link` calls them auto, enable and disable)"))
    },
    ..FOLLOW
};
const FOLLOW: Word = one_of::<Policy>("a link state", "follow");

pub(super) const DRIVER: Word = one_of::<VfDriver>("a driver of VFs", "vfio-pci");

pub(super) const OWNER: Word = one_of::<VfOwner>("the owner of a VF", "cni");

// That braces hold known fields is not for a pattern to say.
pub(super) const VF_NAME: Word =
    text::<VfNamePattern>("a pattern for the names of VFs", "{netdev}v{vf}", Any);

pub(super) const BIND: Word = one_of::<BindOrder>("an order of binding", "in-order");

pub(super) const DOMAIN: Word = text::<DomainName>(
    "a libvirt domain",
    "vm09",
    Pattern(
        "^[^/\\s\\x00-\\x1f\\x7f-\\x9f]([^/\\x00-\\x1f\\x7f-\\x9f]{0,253}[^/\\s\\x00-\\x1f\\x7f-\\x9f])?$",
    ),
);

pub(super) const UNIT: Word = text::<UnitName>(
    "a systemd unit",
    "vm@9.service",
    Loose(
        "^[A-Za-z0-9:_.\\\\-]([A-Za-z0-9:_.@\\\\-]*[A-Za-z0-9:_.\\\\-])?[.](service|target|socket|mount|scope|path|timer)$",
    ),
);

pub(super) const GUEST_NAME: Word = Word { what: "a guest of the list", example: "vm08", ..DOMAIN };

pub(super) const GUEST_VF: Word = text::<GuestVf>(
    "a VF",
    "0000:4b:00.0/3",
    Pattern(
        "^(auto|([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]/0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-4]))$",
    ),
);

pub(super) const ON_FAILURE: Word =
    Word { parse: not_one_of::<OnFailure>, ..one_of::<OnFailure>("what to do", "report") };

pub(super) const READY: Word =
    Word { parse: not_one_of::<Ready>, ..one_of::<Ready>("what counts as up", "agent") };

fn not_one_of<T: Words + Send + Sync>(_: &Word, text: &str) -> Result<Value, String> {
    let why = || format!("{} is not one of {}", shown(text), T::all_typed().join(", "));
    word::<T>(text).ok_or_else(why)
}
