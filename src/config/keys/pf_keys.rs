//! The keys of `[[pf]]` and `[[pf.vf]]`.

use super::kinds::{Key, Kind, Spelling, Word};
use super::words::{GUID, PCI, RDMA};
use crate::config::value::Value;
use crate::names::{BindOrder, GuidRange, Policy, Template, VfDriver, VfNamePattern, Words};

const ANY_GUID: Word = Word { what: "a GUID", ..GUID };

const GUID_RANGE: Word = Word {
    what: "a range of GUIDs",
    example: "0200:0000:0000:0100 - 0200:0000:0000:010f",
    // Which end is the larger is not for a pattern to say.
    spelling: Spelling::Any,
    parse: |text| text.parse::<GuidRange>().map(Value::GuidRange).map_err(|e| e.to_string()),
};

const TEMPLATE: Word = Word {
    what: "a GUID template",
    example: "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}",
    // That the widths make 64 bits is not for a pattern to say.
    spelling: Spelling::Any,
    parse: |text| text.parse::<Template>().map(Value::Template).map_err(|e| e.to_string()),
};

const POLICY: Word = Word {
    what: "a link policy",
    example: "follow",
    spelling: Spelling::OneOf(Policy::all_typed),
    parse: |text| text.parse::<Policy>().map(Value::Policy).map_err(|e| e.to_string()),
};

const DRIVER: Word = Word {
    what: "a way to drive a VF",
    example: "vfio-pci",
    spelling: Spelling::OneOf(VfDriver::all_typed),
    parse: |text| text.parse::<VfDriver>().map(Value::Driver).map_err(|e| e.to_string()),
};

const VF_NAME: Word = Word {
    what: "a pattern for the names of VFs",
    example: "{netdev}v{vf}",
    // That braces hold known fields is not for a pattern to say.
    spelling: Spelling::Any,
    parse: |text| {
        text.parse::<VfNamePattern>().map(Value::VfNamePattern).map_err(|e| e.to_string())
    },
};

const BIND: Word = Word {
    what: "an order of binding",
    example: "in-order",
    spelling: Spelling::OneOf(BindOrder::all_typed),
    parse: |text| text.parse::<BindOrder>().map(Value::BindOrder).map_err(|e| e.to_string()),
};

/// The keys of one `[[pf]]`.
pub(crate) mod pf {
    pub(crate) const PCI: &str = "pci";
    pub(crate) const PORT_GUID: &str = "port-guid";
    pub(crate) const NODE_GUID: &str = "node-guid";
    pub(crate) const RDMA: &str = "rdma";
    pub(crate) const VFS: &str = "vfs";
    pub(crate) const POLICY: &str = "policy";
    pub(crate) const DRIVER: &str = "driver";
    pub(crate) const INDEX: &str = "index";
    pub(crate) const VF_NAME: &str = "vf-name";
    pub(crate) const VF_RDMA_NAME: &str = "vf-rdma-name";
    pub(crate) const BIND: &str = "bind";
    /// For both kinds, for node GUIDs, for port GUIDs.
    pub(crate) const LISTS: [&str; 3] = ["vf-guids", "vf-node-guids", "vf-port-guids"];
    pub(crate) const RANGES: [&str; 3] =
        ["vf-guid-range", "vf-node-guid-range", "vf-port-guid-range"];
    pub(crate) const OFFSETS: [&str; 3] =
        ["vf-guid-offset", "vf-node-guid-offset", "vf-port-guid-offset"];
    pub(crate) const TEMPLATE: &str = "vf-guid-template";
    pub(crate) const VF: &str = "vf";
}
/// The keys of one `[[pf.vf]]`.
pub(crate) mod vf {
    pub(crate) const INDEX: &str = "index";
    pub(crate) const NODE_GUID: &str = "node-guid";
    pub(crate) const PORT_GUID: &str = "port-guid";
    pub(crate) const POLICY: &str = "policy";
    pub(crate) const DRIVER: &str = "driver";
}

pub(super) static PF_KEYS: &[Key] = &[
    Key { path: pf::PCI, kind: Kind::Word(&PCI), default: "", doc: "The PF by its PCI address." },
    Key {
        path: pf::PORT_GUID,
        kind: Kind::Word(&GUID),
        default: "",
        doc: "The PF by the port GUID of one of its ports.",
    },
    Key {
        path: pf::NODE_GUID,
        kind: Kind::Word(&ANY_GUID),
        default: "",
        doc: "The PF by its node GUID.",
    },
    Key {
        path: pf::RDMA,
        kind: Kind::Word(&RDMA),
        default: "",
        doc: "The PF by the name of its RDMA device.",
    },
    Key {
        path: pf::VFS,
        kind: Kind::Number { min: 0, max: 65535 },
        default: "",
        doc: "How many VFs it shall have; the length of the list of GUIDs, if not given.",
    },
    Key {
        path: pf::POLICY,
        kind: Kind::Word(&POLICY),
        default: "\"follow\"",
        doc: "The link policy of its VFs: follow, up or down.",
    },
    Key {
        path: pf::DRIVER,
        kind: Kind::Word(&DRIVER),
        default: "\"default\"",
        doc: "Who drives its VFs: the host's own driver (default), vfio-pci, or nobody (none).",
    },
    Key {
        path: pf::LISTS[0],
        kind: Kind::Words(&ANY_GUID),
        default: "",
        doc: "The GUID of each VF from VF 0 on, for node and port alike.",
    },
    Key {
        path: pf::LISTS[1],
        kind: Kind::Words(&ANY_GUID),
        default: "",
        doc: "The node GUID of each VF from VF 0 on.",
    },
    Key {
        path: pf::LISTS[2],
        kind: Kind::Words(&ANY_GUID),
        default: "",
        doc: "The port GUID of each VF from VF 0 on.",
    },
    Key {
        path: pf::RANGES[0],
        kind: Kind::Word(&GUID_RANGE),
        default: "",
        doc: "VF n gets the first GUID of the range plus n, for node and port alike.",
    },
    Key {
        path: pf::RANGES[1],
        kind: Kind::Word(&GUID_RANGE),
        default: "",
        doc: "VF n gets the first GUID of the range plus n as its node GUID.",
    },
    Key {
        path: pf::RANGES[2],
        kind: Kind::Word(&GUID_RANGE),
        default: "",
        doc: "VF n gets the first GUID of the range plus n as its port GUID.",
    },
    Key {
        path: pf::OFFSETS[0],
        kind: OFFSET,
        default: "",
        doc: "VF n gets the PF's port GUID plus this plus n, for node and port alike.",
    },
    Key {
        path: pf::OFFSETS[1],
        kind: OFFSET,
        default: "",
        doc: "VF n gets the PF's port GUID plus this plus n as its node GUID.",
    },
    Key {
        path: pf::OFFSETS[2],
        kind: OFFSET,
        default: "",
        doc: "VF n gets the PF's port GUID plus this plus n as its port GUID.",
    },
    Key {
        path: pf::TEMPLATE,
        kind: Kind::Word(&TEMPLATE),
        default: "",
        doc: "Hex digits and numbers in fields that make the GUIDs of each VF, 64 bits in all: {host:BITS}, {pf:BITS}, {vf:BITS}, {kind:BITS}.",
    },
    Key {
        path: pf::INDEX,
        kind: Kind::Number { min: 0, max: 65535 },
        default: "",
        doc: "The PF's number in templates; its place among the [[pf]], from 0, if not given.",
    },
    Key {
        path: pf::VF_NAME,
        kind: Kind::Word(&VF_NAME),
        default: "",
        doc: "The name of each VF's netdev: text with {vf}, and {netdev} or {rdma} for the PF's own names.",
    },
    Key {
        path: pf::VF_RDMA_NAME,
        kind: Kind::Word(&VF_NAME),
        default: "",
        doc: "The name of each VF's RDMA device, in the same way.",
    },
    Key {
        path: pf::BIND,
        kind: Kind::Word(&BIND),
        default: "",
        doc: "How its VFs are bound: parallel, or in-order, each when the one before has its devices; if not given, in order where the kernel's numbers would be chance.",
    },
    Key {
        path: pf::VF,
        kind: Kind::Tables(VF_KEYS),
        default: "[]",
        doc: "What differs for one VF, or several in a row.",
    },
];

/// GUIDs of cards next to each other differ in their last 24 bits.
const OFFSET: Kind = Kind::Number { min: -0x00ff_ffff, max: 0x00ff_ffff };

pub(super) static VF_KEYS: &[Key] = &[
    Key {
        path: vf::INDEX,
        kind: Kind::Vfs,
        default: "",
        doc: "Which VF, counted from 0, or the first and the last: \"8-15\".",
    },
    Key {
        path: vf::NODE_GUID,
        kind: Kind::Word(&ANY_GUID),
        default: "",
        doc: "The node GUID of this one VF.",
    },
    Key {
        path: vf::PORT_GUID,
        kind: Kind::Word(&GUID),
        default: "",
        doc: "The port GUID of this one VF.",
    },
    Key {
        path: vf::POLICY,
        kind: Kind::Word(&POLICY),
        default: "",
        doc: "The link policy of these VFs.",
    },
    Key { path: vf::DRIVER, kind: Kind::Word(&DRIVER), default: "", doc: "Who drives these VFs." },
];
