//! The kinds of words that keys hold.

use super::kinds::{Value, Word, named, one_of, text, word};
use crate::model::Code;
use crate::names::{
    BindOrder, Connection, DomainName, FirmwareVersion, Gbps, GuestVf, Guid, GuidRange, IfName,
    IfPattern, LinkLayer, LinkSpeed, LinkWidth, Mode, ModuleName, NameRule, NetnsMode, OnFailure,
    PKey, PciAddress, PcieSpeed, PcieWidth, Policy, PortChoice, PortSelector, PortType, PortWait,
    RdmaName, Ready, Rung, Template, UnitName, VfDriver, VfNamePattern, VfOwner, Words, is_hostile,
    nearest, shown,
};

pub(super) const MODULE: Word = text::<ModuleName>("a kernel module name");

pub(super) const CODE: Word = Word {
    what: "the code of a finding",
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
    parse: |_, text| PciAddress::typed(text).map(Value::text).map_err(|e| e.to_string()),
};

pub(super) const GUID: Word = text::<Guid>("a port GUID");

pub(super) const RDMA: Word = text::<RdmaName>("an RDMA device name");

pub(super) const MODE: Word = named::<Mode>("a transport mode");

pub(super) const PKEY: Word = text::<PKey>("a P_Key");

/// A name that ibprov gives, or that stands in a rule of udev.
pub(super) const IF_NAME: Word = Word {
    what: "a network device name of letters, digits, '_', '-' and '.'",
    parse: |_, text| IfName::to_give(text).map(Value::text).map_err(|e| e.to_string()),
};

pub(super) const IF_PATTERN: Word = text::<IfPattern>("a pattern for names of network devices");

pub(super) const STATE: Word = Word {
    what: "a state that can be waited for",
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

pub(super) const NAME_RULE: Word = one_of::<NameRule>("a rule");

pub(super) const PATH: Word = Word {
    what: "an absolute path",
    parse: |_, text| {
        let good = text.starts_with('/') && !text.contains(is_hostile);
        good.then(|| Value::text(text.to_owned()))
            .ok_or_else(|| "expected an absolute path, without control characters".to_owned())
    },
};

pub(super) const METRICS: Word = Word {
    what: "an absolute path that ends in .prom",
    parse: |_, text| {
        if text.ends_with(".prom") {
            PATH.read(text)
        } else {
            Err("expected an absolute path that ends in .prom: node_exporter's textfile collector reads no other file".to_owned())
        }
    },
};

pub(super) const CONNECTION: Word = text::<Connection>("a libvirt connection");

pub(super) const PORTS: Word = one_of::<PortChoice>("a choice of ports");

pub(super) const WAIT: Word = one_of::<PortWait>("where a port is waited for");

pub(super) const PORT_NAME: Word =
    text::<PortSelector>("a PCI address, a port GUID or the name of an RDMA device");

pub(super) const LINK_LAYER: Word = named::<LinkLayer>("a link layer");

pub(super) const NETNS: Word = named::<NetnsMode>("a network namespace mode");

pub(super) const PORT_TYPE: Word = named::<PortType>("a port type");

pub(super) const RATE: Word = text::<Gbps>("a rate");

pub(super) const LINK_WIDTH: Word = text::<LinkWidth>("a link width");

pub(super) const LINK_SPEED: Word = named::<LinkSpeed>("a link speed");

pub(super) const PCIE_WIDTH: Word = text::<PcieWidth>("a PCIe width");

pub(super) const FIRMWARE: Word = text::<FirmwareVersion>("a firmware version");

pub(super) const PCIE_SPEED: Word = text::<PcieSpeed>("a PCIe speed");

pub(super) const ANY_GUID: Word = Word { what: "a GUID", ..GUID };

pub(super) const GUIDS: Word = text::<GuidRange>("a range of GUIDs");

pub(super) const TEMPLATE: Word = text::<Template>("a GUID template");

pub(super) const LINK_STATE: Word = Word {
    parse: |word, text| {
        (FOLLOW.parse)(word, text)
            .map_err(|e| format!("{e} (`ip link` calls them auto, enable and disable)"))
    },
    ..FOLLOW
};
const FOLLOW: Word = one_of::<Policy>("a link state");

pub(super) const DRIVER: Word = one_of::<VfDriver>("a driver of VFs");

pub(super) const OWNER: Word = one_of::<VfOwner>("the owner of a VF");

pub(super) const VF_NAME: Word = text::<VfNamePattern>("a pattern for the names of VFs");

pub(super) const BIND: Word = one_of::<BindOrder>("an order of binding");

pub(super) const DOMAIN: Word = text::<DomainName>("a libvirt domain");

pub(super) const UNIT: Word = text::<UnitName>("a systemd unit");

pub(super) const GUEST_NAME: Word = Word { what: "a guest of the list", ..DOMAIN };

pub(super) const GUEST_VF: Word = text::<GuestVf>("a VF");

pub(super) const ON_FAILURE: Word = Word { what: "what to do", parse: not_one_of::<OnFailure> };

pub(super) const READY: Word = Word { what: "what counts as up", parse: not_one_of::<Ready> };

fn not_one_of<T: Words + Send + Sync>(_: &Word, text: &str) -> Result<Value, String> {
    let why = || format!("{} is not one of {}", shown(text), T::all_typed().join(", "));
    word::<T>(text).ok_or_else(why)
}
