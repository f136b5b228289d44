//! The keys of `[[pf]]` and `[[pf.vf]]`.

use super::kinds::{Key, Kind, Spelling, Word, one_of, text};
use super::words::GUID;
use crate::names::{BindOrder, GuidRange, Policy, Template, VfDriver, VfNamePattern, VfOwner};

const ANY_GUID: Word = Word { what: "a GUID", ..GUID };

const GUIDS: Word = Word {
    what: "a range of GUIDs",
    example: "0200:0000:0000:0100 - 0200:0000:0000:010f",
    // Which end is the larger is not for a pattern to say.
    spelling: Spelling::Any,
    parse: text::<GuidRange>,
};

const TEMPLATE: Word = Word {
    what: "a GUID template",
    example: "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}",
    // That the widths make 64 bits is not for a pattern to say.
    spelling: Spelling::Any,
    parse: text::<Template>,
};

const LINK_STATE: Word = Word {
    parse: |word, text| {
        (FOLLOW.parse)(word, text)
            .map_err(|e| format!("{e} (`ip link` calls them auto, enable and disable)"))
    },
    ..FOLLOW
};
const FOLLOW: Word = one_of::<Policy>("a link state", "follow");

const DRIVER: Word = Word {
    parse: |word, text| match text {
        "default" => Err("\"default\" was renamed to \"host\"".to_owned()),
        _ => (ANY_DRIVER.parse)(word, text),
    },
    ..ANY_DRIVER
};
const ANY_DRIVER: Word = one_of::<VfDriver>("a driver of VFs", "vfio-pci");

const OWNER: Word = one_of::<VfOwner>("the owner of a VF", "cni");

const VF_NAME: Word = Word {
    what: "a pattern for the names of VFs",
    example: "{netdev}v{vf}",
    // That braces hold known fields is not for a pattern to say.
    spelling: Spelling::Any,
    parse: text::<VfNamePattern>,
};

const BIND: Word = one_of::<BindOrder>("an order of binding", "in-order");

/// GUIDs of cards next to each other differ in their last 24 bits.
const OFFSET: Kind = Kind::Number { min: -0x00ff_ffff, max: 0x00ff_ffff };

/// The keys of one `[[pf]]`.
pub(crate) mod pf {
    use super::super::kinds::Tables;
    use super::super::words::{GUID, PCI, RDMA};
    use super::{
        ANY_GUID, BIND as ORDER, DRIVER as DRIVEN, GUIDS, Key, Kind, LINK_STATE as STATE, OFFSET,
        TEMPLATE, VF_NAME as NAME,
    };
    use crate::names::{
        BindOrder, Guid, GuidRange, PciAddress, Policy, RdmaName, Template, VfDriver, VfNamePattern,
    };

    keys! { KEYS:
        PCI_ADDRESS: PciAddress = "pci", Kind::OneOrMore(&PCI), "",
            "The PF by its PCI address, or a list of them.";
        PORT_GUID: Guid = "port-guid", Kind::OneOrMore(&GUID), "",
            "The PF by the port GUID of one of its ports, or a list of them.";
        NODE_GUID: Guid = "node-guid", Kind::OneOrMore(&ANY_GUID), "",
            "The PF by its node GUID, or a list of them.";
        RDMA_NAME: RdmaName = "rdma", Kind::OneOrMore(&RDMA), "",
            "The PF by the name of its RDMA device, or a list of them.";
        VFS: i64 = "vfs", Kind::Number { min: 0, max: 65535 }, "",
            "The number of VFs; default: the length of the list of GUIDs.";
        LINK_STATE: Policy = "link-state", Kind::Word(&STATE), "\"follow\"",
            "The link state of the VFs: follow the physical port, up or down.";
        DRIVER: VfDriver = "driver", Kind::Word(&DRIVEN), "\"host\"",
            "The driver of the VFs: the host's own (host), vfio-pci, or none.";
        GUID_LIST: Guid = "guid.list", Kind::Words(&ANY_GUID), "",
            "The GUID of each VF from VF 0 on, for node and port alike.";
        GUID_RANGE: GuidRange = "guid.range", Kind::Word(&GUIDS), "",
            "VF n gets the first GUID of the range plus n, for node and port alike.";
        GUID_OFFSET: i64 = "guid.offset", OFFSET, "",
            "VF n gets the PF's port GUID plus this plus n, for node and port alike.";
        GUID_TEMPLATE: Template = "guid.template", Kind::Word(&TEMPLATE), "",
            "Hex digits and numbers in fields make the GUID of each VF, 64 bits in all, for node and port alike: {host:BITS}, {site:BITS}, {pf:BITS}, {vf:BITS}, {kind:BITS}.";
        GUID_NODE_LIST: Guid = "guid.node.list", Kind::Words(&ANY_GUID), "",
            "The node GUID of each VF from VF 0 on.";
        GUID_NODE_RANGE: GuidRange = "guid.node.range", Kind::Word(&GUIDS), "",
            "VF n gets the first GUID of the range plus n as its node GUID.";
        GUID_NODE_OFFSET: i64 = "guid.node.offset", OFFSET, "",
            "VF n gets the PF's port GUID plus this plus n as its node GUID.";
        GUID_NODE_TEMPLATE: Template = "guid.node.template", Kind::Word(&TEMPLATE), "",
            "Hex digits and numbers in fields make the GUID of each VF, 64 bits in all as its node GUID: {host:BITS}, {site:BITS}, {pf:BITS}, {vf:BITS}, {kind:BITS}.";
        GUID_PORT_LIST: Guid = "guid.port.list", Kind::Words(&ANY_GUID), "",
            "The port GUID of each VF from VF 0 on.";
        GUID_PORT_RANGE: GuidRange = "guid.port.range", Kind::Word(&GUIDS), "",
            "VF n gets the first GUID of the range plus n as its port GUID.";
        GUID_PORT_OFFSET: i64 = "guid.port.offset", OFFSET, "",
            "VF n gets the PF's port GUID plus this plus n as its port GUID.";
        GUID_PORT_TEMPLATE: Template = "guid.port.template", Kind::Word(&TEMPLATE), "",
            "Hex digits and numbers in fields make the GUID of each VF, 64 bits in all as its port GUID: {host:BITS}, {site:BITS}, {pf:BITS}, {vf:BITS}, {kind:BITS}.";
        NUMBER: i64 = "number", Kind::Number { min: 0, max: 65535 }, "",
            "The PF's number in templates; default: its position among the [[pf]], from 0.";
        VF_NAME: VfNamePattern = "vf-name", Kind::Word(&NAME), "",
            "The name of each VF's netdev: text with {vf}, and {netdev} or {rdma} for the PF's own names.";
        VF_RDMA_NAME: VfNamePattern = "vf-rdma-name", Kind::Word(&NAME), "",
            "The name of each VF's RDMA device, in the same way.";
        BIND: BindOrder = "bind", Kind::Word(&ORDER), "",
            "How the VFs are bound: parallel, or in-order, each after the devices of the one before have appeared; default: in order if names depend on the order.";
        VF: Tables = "vf", Kind::Tables(super::vf::KEYS), "[]",
            "Exceptions for one VF, or a range of VFs.";
    }
}

/// The keys of one `[[pf.vf]]`.
pub(crate) mod vf {
    use super::super::words::GUID;
    use super::{ANY_GUID, DRIVER as DRIVEN, Key, Kind, LINK_STATE as STATE, OWNER as OWNED};
    use crate::names::{Guid, Policy, VfDriver, VfOwner, VfRange};

    keys! { KEYS:
        INDEX: VfRange = "index", Kind::Vfs, "",
            "Which VF, counted from 0, or the first and the last: \"8-15\".";
        NODE_GUID: Guid = "node-guid", Kind::Word(&ANY_GUID), "",
            "The node GUID of this one VF.";
        PORT_GUID: Guid = "port-guid", Kind::Word(&GUID), "",
            "The port GUID of this one VF.";
        LINK_STATE: Policy = "link-state", Kind::Word(&STATE), "",
            "The link state of these VFs.";
        DRIVER: VfDriver = "driver", Kind::Word(&DRIVEN), "",
            "The driver of these VFs.";
        OWNER: VfOwner = "owner", Kind::Word(&OWNED), "\"plan\"",
            "To whom their GUIDs and link state belong once they are set: plan, or cni.";
    }
}
