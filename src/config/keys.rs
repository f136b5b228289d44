//! Every key that a configuration file may hold, in tables of rows.
//!
//! The tables drive reading, type errors, "did you mean", `config show`, the published JSON
//! schema and the check of the manual page. A new key is a row here, a
//! field of the type that has it, and the line that fills it.

/// One table of keys: each row makes the constant by which the key is read, of the type of its
/// values or of the items of its list, and the row itself.
macro_rules! keys {
    ($table:ident: $(
        $name:ident: $type:ty = $path:literal, $kind:expr, $default:literal, $doc:literal;
    )+) => {
        $(#[doc = $doc]
        pub const $name: $crate::config::keys::Name<$type> = $crate::config::keys::Name::new($path);)+
        pub static $table: &[Key] = &[
            $(Key {
                path: $path,
                kind: $kind,
                default: $default,
                #[cfg(test)]
                doc: $doc,
                #[cfg(test)]
                holds: |value| value.get::<$type>().is_some(),
            }),+
        ];
    };
}

mod kinds;
mod lookup;
mod words;

use std::time::Duration;

use crate::model::Code;
use crate::names::{Connection, ModuleName, NameRule, NetnsMode, PortChoice, PortSelector, Rung};
pub(crate) use kinds::{Key, Kind, Name, Settings, Tables, Value, setting, type_name};
#[cfg(test)]
pub(crate) use kinds::{OWN_OPTIONS, Word};
pub(crate) use lookup::{Found, find, inside, meant};

keys! { KEYS:
    BOOT_TIMEOUT: Duration = "boot.timeout", Kind::Span, "\"4min\"",
        "Maximum time that `ibprov boot` waits in all.";
    BOOT_ADAPTER_TIMEOUT: Duration = "boot.adapter-timeout", Kind::Span, "\"2min 30s\"",
        "Maximum time that `ibprov boot` waits for one adapter; at most boot.timeout, which is the default if it is shorter.";
    BOOT_PORTS: PortChoice = "boot.ports", Kind::Word(&words::PORTS), "\"found\"",
        "Which ports are expected: found (every InfiniBand port of the host, and those of [[port]]) or listed (those of [[port]] alone).";
    BOOT_IGNORE: PortSelector = "boot.ignore", Kind::Words(&words::PORT_NAME), "[]",
        "Adapters and ports that are not expected although they are found, each by PCI address, port GUID or RDMA device.";
    BOOT_AT_LEAST: i64 = "boot.at-least", Kind::Number { min: 1, max: 1024 }, "",
        "How many of the expected ports have to be ready, regardless of which; default: all that are required.";
    MODULES_LOAD: ModuleName = "modules.load", Kind::Words(&words::MODULE), "[\"ib_ipoib\", \"ib_umad\", \"ib_uverbs\"]",
        "Kernel modules to load, appended to the default; an empty list clears the default.";
    MODULES_EXCLUDE: ModuleName = "modules.exclude", Kind::Words(&words::MODULE), "[]",
        "Kernel modules that ibprov never loads.";
    RDMA_NETNS: NetnsMode = "rdma.netns", Kind::Word(&words::NETNS), "",
        "Whether each RDMA device is in one network namespace alone (exclusive) or in all (shared); `ibprov boot` sets it; default: it is left as it is.";
    PORT: Tables = "port", Kind::Tables(port::KEYS), "[]",
        "Describes a port, or several.";
    NETWORK_TIMEOUT: Duration = "network.timeout", Kind::Span, "\"1min 30s\"",
        "Maximum time that `ibprov iface` waits until the network stack has brought an interface up.";
    INTERFACE: Tables = "interface", Kind::Tables(interface::KEYS), "[]",
        "Settings of IPoIB interfaces; if several match an interface, later values override earlier ones.";
    WAIT_TIMEOUT: Duration = "wait-online.timeout", Kind::Span, "\"2min\"",
        "Maximum time that `ibprov wait-online` waits.";
    WAIT_STATE: Rung = "wait-online.state", Kind::Word(&words::STATE), "\"active\"",
        "The state for which `ibprov wait-online` waits: rdma, netdev, named, configured, link or active.";
    WAIT_ADDRESS: bool = "wait-online.address", Kind::Flag, "false",
        "`ibprov wait-online` waits for an address of global scope too.";
    WAIT_STABLE: Duration = "wait-online.stable", Kind::Span, "",
        "For how long `ibprov wait-online` wants each port to be online without interruption; default: it need not be.";
    HOST_NUMBER: i64 = "host.number", Kind::Number { min: 0, max: 0xffff_ffff }, "",
        "The host's number in GUID templates; default: from the host's name.";
    HOST_NUMBER_FILE: String = "host.number-file", Kind::Word(&words::PATH), "",
        "A file that holds the host's number, in decimal digits alone.";
    HOST_NUMBER_RULE: NameRule = "host.number-rule", Kind::Word(&words::NAME_RULE), "\"only-digits\"",
        "Which digits of the host's name, up to its first dot, are its number.";
    HOST_SITE: i64 = "host.site", Kind::Number { min: 0, max: 0xffff_ffff }, "",
        "The site's number in GUID templates, {site:BITS}.";
    PF: Tables = "pf", Kind::Tables(pf::KEYS), "[]",
        "A PF, the number of its VFs, and their GUIDs.";
    FIRMWARE: Tables = "firmware", Kind::Tables(firmware::KEYS), "[]",
        "Settings in the firmware of adapters, which `ibprov firmware` compares and writes.";
    RXE: Tables = "rxe", Kind::Tables(rxe::KEYS), "[]",
        "A soft RoCE device, and the netdev that it uses.";
    SUBNET_MANAGER: Tables = "subnet-manager", Kind::Tables(subnet_manager::KEYS), "[]",
        "A port of this host on which an opensm runs, once ibprov-opensm.target is enabled.";
    METRICS_FILE: String = "metrics.file", Kind::Word(&words::METRICS), "",
        "A file to which `ibprov boot` writes metrics at its end, for the textfile collector of node_exporter; default: none is written.";
    HEALTH_TOLERATE: Code = "health.tolerate", Kind::Words(&words::CODE), "[]",
        "Codes of findings by which `ibprov health` fails no node.";
    HEALTH_FAIL_ON: Code = "health.fail-on", Kind::Words(&words::CODE), "[]",
        "Codes of further findings by which `ibprov health` fails a node.";
    GUESTS_CONNECTION: Connection = "guests.connection", Kind::Word(&words::CONNECTION), "\"qemu:///system\"",
        "The connection URI of libvirt.";
    GUESTS_PARALLEL: i64 = "guests.max-parallel", Kind::Number { min: 1, max: 64 }, "4",
        "Maximum number of guests that are starting at the same time.";
    GUESTS_TIMEOUT: Duration = "guests.timeout", Kind::Span, "\"2min\"",
        "Maximum time of the first pass, for which units ordered after ibprov-guests.service wait.";
    GUEST: Tables = "guest", Kind::Tables(guest::KEYS), "[]",
        "A libvirt domain or a unit that is started when its VFs are ready.";
}

/// The keys of one `[[port]]`.
pub(crate) mod port {
    use super::{Key, Kind, words};
    use crate::names::{
        FirmwareVersion, Gbps, Guid, LinkLayer, LinkSpeed, LinkWidth, PKey, PciAddress, PcieSpeed,
        PcieWidth, PortType, PortWait, RdmaName,
    };

    keys! { KEYS:
        PCI: PciAddress = "pci", Kind::OneOrMore(&words::PCI), "",
            "The adapter by its PCI address, or a list of them.";
        PORT_GUID: Guid = "port-guid", Kind::OneOrMore(&words::GUID), "",
            "The port by its port GUID, or a list of them.";
        RDMA: RdmaName = "rdma", Kind::OneOrMore(&words::RDMA), "",
            "The adapter by the name of its RDMA device, or a list of them.";
        RDMA_NAME: RdmaName = "rdma-name", Kind::OneOrMore(&words::RDMA), "",
            "The name that boot gives the RDMA device of the adapter; of a list of adapters, a list of as many names.";
        PORT: i64 = "port", Kind::Numbers { min: 1, max: 254 }, "",
            "Only this port of the adapter, counted from 1, or a list of them; default: all ports.";
        REQUIRED: bool = "required", Kind::Flag, "true",
            "The absence of the port is a failure.";
        WAIT: PortWait = "wait", Kind::Word(&words::WAIT), "\"boot\"",
            "Where the port is waited for: in boot, or in wait-online only (online), as one that another program creates later.";
        VFS_EXPECTED: i64 = "vfs-expected", Kind::Number { min: 1, max: 65535 }, "",
            "The number of VFs, each with a driver, that another program creates on the adapter; wait-online waits for them.";
        LINK_LAYER: LinkLayer = "link-layer", Kind::Word(&words::LINK_LAYER), "\"infiniband\"",
            "The link layer that the port has to have.";
        TYPE: PortType = "type", Kind::Word(&words::PORT_TYPE), "",
            "The type that boot sets the port of a ConnectX-3 to (mlx4); implies link-layer.";
        RATE: Gbps = "rate", Kind::Word(&words::RATE), "",
            "The minimum rate of the link; a slower port is degraded once it is Active.";
        WIDTH: LinkWidth = "width", Kind::Word(&words::LINK_WIDTH), "",
            "The minimum width of the link.";
        SPEED: LinkSpeed = "speed", Kind::Word(&words::LINK_SPEED), "",
            "The minimum speed of a lane of the link.";
        PCIE_WIDTH: PcieWidth = "pcie-width", Kind::Word(&words::PCIE_WIDTH), "",
            "The minimum width of the adapter's PCIe link.";
        PCIE_SPEED: PcieSpeed = "pcie-speed", Kind::Word(&words::PCIE_SPEED), "",
            "The minimum speed of the adapter's PCIe link.";
        FIRMWARE: FirmwareVersion = "firmware", Kind::Word(&words::FIRMWARE), "",
            "The minimum version of the adapter's firmware; with an older one the port is degraded.";
        PKEYS: PKey = "pkeys", Kind::Words(&words::PKEY), "[]",
            "The P_Keys of the partitions of which the port has to be a full member.";
    }
}

/// The keys of one `[[interface]]`.
pub(crate) mod interface {
    use super::{Key, Kind, Tables, words};
    use crate::names::{Guid, IfName, IfPattern, Mode, PciAddress};

    keys! { KEYS:
        MATCH_NAME: IfPattern = "match.name", Kind::OneOrMore(&words::IF_PATTERN), "",
            "The interfaces by name: a pattern as in a shell, \"*\" for every one, or a list of patterns.";
        MATCH_PORT_GUID: Guid = "match.port-guid", Kind::OneOrMore(&words::GUID), "",
            "The interface of the port with this port GUID, or a list of them.";
        MATCH_PCI: PciAddress = "match.pci", Kind::OneOrMore(&words::PCI), "",
            "The interfaces of the adapter at this PCI address, or a list of them.";
        MATCH_PORT: i64 = "match.port", Kind::Number { min: 1, max: 254 }, "",
            "Together with match.pci: only this port of the adapter, counted from 1.";
        NAME: IfName = "name", Kind::Word(&words::IF_NAME), "",
            "The name that udev gives the interface at every boot; for one port only.";
        MODE: Mode = "mode", Kind::Word(&words::MODE), "",
            "Transport mode, \"datagram\" or \"connected\".";
        MTU: i64 = "mtu", Kind::Number { min: 72, max: 65520 }, "",
            "MTU in bytes: at most 4092 in datagram mode (10236 on Omni-Path), 65520 in connected mode.";
        UMCAST: bool = "umcast", Kind::Flag, "",
            "Whether user space may join multicast groups by itself.";
        RECEIVE_QUEUE: i64 = "receive-queue", Kind::Number { min: 2, max: 8192 }, "",
            "The minimum recv_queue_size of ib_ipoib; a smaller one is reported, not changed.";
        SEND_QUEUE: i64 = "send-queue", Kind::Number { min: 2, max: 8192 }, "",
            "The minimum send_queue_size of ib_ipoib; a smaller one is reported, not changed.";
        PARTITION: Tables = "partition", Kind::Tables(super::partition::KEYS), "[]",
            "A P_Key child of the interface.";
    }
}

/// The keys of one `[[interface.partition]]`.
pub(crate) mod partition {
    use super::{Key, Kind, words};
    use crate::names::{IfName, Mode, PKey};

    keys! { KEYS:
        PKEY: PKey = "pkey", Kind::Word(&words::PKEY), "",
            "Its P_Key.";
        NAME: IfName = "name", Kind::Word(&words::IF_NAME), "",
            "The name; default: the kernel's, such as ib0.8001.";
        MODE: Mode = "mode", Kind::Word(&words::MODE), "",
            "The transport mode; default: the parent's.";
        MTU: i64 = "mtu", Kind::Number { min: 72, max: 65520 }, "",
            "The MTU in bytes; default: the parent's.";
        UMCAST: bool = "umcast", Kind::Flag, "",
            "Whether user space may join multicast groups by itself; default: as on the parent.";
    }
}

/// GUIDs of cards next to each other differ in their last 24 bits.
const OFFSET: Kind = Kind::Number { min: -0x00ff_ffff, max: 0x00ff_ffff };

/// The keys of one `[[pf]]`.
pub(crate) mod pf {
    use super::{Key, Kind, OFFSET, Tables, words};
    use crate::names::{
        BindOrder, Guid, GuidRange, PciAddress, Policy, RdmaName, Template, VfDriver, VfNamePattern,
    };

    keys! { KEYS:
        PCI_ADDRESS: PciAddress = "pci", Kind::OneOrMore(&words::PCI), "",
            "The PF by its PCI address, or a list of them.";
        PORT_GUID: Guid = "port-guid", Kind::OneOrMore(&words::GUID), "",
            "The PF by the port GUID of one of its ports, or a list of them.";
        NODE_GUID: Guid = "node-guid", Kind::OneOrMore(&words::ANY_GUID), "",
            "The PF by its node GUID, or a list of them.";
        RDMA_NAME: RdmaName = "rdma", Kind::OneOrMore(&words::RDMA), "",
            "The PF by the name of its RDMA device, or a list of them.";
        VFS: i64 = "vfs", Kind::Number { min: 0, max: 65535 }, "",
            "The number of VFs; default: the length of the list of GUIDs.";
        LINK_STATE: Policy = "link-state", Kind::Word(&words::LINK_STATE), "\"follow\"",
            "The link state of the VFs: follow the physical port, up or down.";
        DRIVER: VfDriver = "driver", Kind::Word(&words::DRIVER), "\"host\"",
            "The driver of the VFs: the host's own (host), vfio-pci, or none.";
        GUID_LIST: Guid = "guid.list", Kind::Words(&words::ANY_GUID), "",
            "The GUID of each VF from VF 0 on, for node and port alike.";
        GUID_RANGE: GuidRange = "guid.range", Kind::Word(&words::GUIDS), "",
            "VF n gets the first GUID of the range plus n, for node and port alike.";
        GUID_OFFSET: i64 = "guid.offset", OFFSET, "",
            "VF n gets the PF's port GUID plus this plus n, for node and port alike.";
        GUID_TEMPLATE: Template = "guid.template", Kind::Word(&words::TEMPLATE), "",
            "Hex digits and numbers in fields make the GUID of each VF, 64 bits in all, for node and port alike: {host:BITS}, {site:BITS}, {pf:BITS}, {vf:BITS}, {kind:BITS}.";
        GUID_NODE_LIST: Guid = "guid.node.list", Kind::Words(&words::ANY_GUID), "",
            "The node GUID of each VF from VF 0 on.";
        GUID_NODE_RANGE: GuidRange = "guid.node.range", Kind::Word(&words::GUIDS), "",
            "VF n gets the first GUID of the range plus n as its node GUID.";
        GUID_NODE_OFFSET: i64 = "guid.node.offset", OFFSET, "",
            "VF n gets the PF's port GUID plus this plus n as its node GUID.";
        GUID_NODE_TEMPLATE: Template = "guid.node.template", Kind::Word(&words::TEMPLATE), "",
            "Hex digits and numbers in fields make the GUID of each VF, 64 bits in all as its node GUID: {host:BITS}, {site:BITS}, {pf:BITS}, {vf:BITS}, {kind:BITS}.";
        GUID_PORT_LIST: Guid = "guid.port.list", Kind::Words(&words::ANY_GUID), "",
            "The port GUID of each VF from VF 0 on.";
        GUID_PORT_RANGE: GuidRange = "guid.port.range", Kind::Word(&words::GUIDS), "",
            "VF n gets the first GUID of the range plus n as its port GUID.";
        GUID_PORT_OFFSET: i64 = "guid.port.offset", OFFSET, "",
            "VF n gets the PF's port GUID plus this plus n as its port GUID.";
        GUID_PORT_TEMPLATE: Template = "guid.port.template", Kind::Word(&words::TEMPLATE), "",
            "Hex digits and numbers in fields make the GUID of each VF, 64 bits in all as its port GUID: {host:BITS}, {site:BITS}, {pf:BITS}, {vf:BITS}, {kind:BITS}.";
        NUMBER: i64 = "number", Kind::Number { min: 0, max: 65535 }, "",
            "The PF's number in templates; default: its position among the [[pf]], from 0.";
        VF_NAME: VfNamePattern = "vf-name", Kind::Word(&words::VF_NAME), "",
            "The name of each VF's netdev: text with {vf}, and {netdev} or {rdma} for the PF's own names.";
        VF_RDMA_NAME: VfNamePattern = "vf-rdma-name", Kind::Word(&words::VF_NAME), "",
            "The name of each VF's RDMA device, in the same way.";
        BIND: BindOrder = "bind", Kind::Word(&words::BIND), "",
            "How the VFs are bound: parallel, or in-order, each after the devices of the one before have appeared; default: in order if names depend on the order.";
        VF: Tables = "vf", Kind::Tables(super::vf::KEYS), "[]",
            "Exceptions for one VF, or a range of VFs.";
    }
}

/// The keys of one `[[pf.vf]]`.
pub(crate) mod vf {
    use super::{Key, Kind, words};
    use crate::names::{Guid, Policy, VfDriver, VfOwner, VfRange};

    keys! { KEYS:
        INDEX: VfRange = "index", Kind::Vfs, "",
            "Which VF, counted from 0, or the first and the last: \"8-15\".";
        NODE_GUID: Guid = "node-guid", Kind::Word(&words::ANY_GUID), "",
            "The node GUID of this one VF.";
        PORT_GUID: Guid = "port-guid", Kind::Word(&words::GUID), "",
            "The port GUID of this one VF.";
        PORT2_GUID: Guid = "port2-guid", Kind::Word(&words::GUID), "",
            "The GUID of the second InfiniBand port of this one VF of a ConnectX-3.";
        LINK_STATE: Policy = "link-state", Kind::Word(&words::LINK_STATE), "",
            "The link state of these VFs.";
        DRIVER: VfDriver = "driver", Kind::Word(&words::DRIVER), "",
            "The driver of these VFs.";
        OWNER: VfOwner = "owner", Kind::Word(&words::OWNER), "\"plan\"",
            "To whom their GUIDs and link state belong once they are set: plan, or cni.";
    }
}

/// The keys of one `[[firmware]]`.
pub(crate) mod firmware {
    use super::{Key, Kind, Settings, words};
    use crate::names::PciAddress;

    keys! { KEYS:
        PCI: PciAddress = "pci", Kind::OneOrMore(&words::PCI), "",
            "The adapter by the PCI address of one of its functions, or a list of adapters.";
        SET: Settings = "set", Kind::Settings, "",
            "The settings by the names that mstconfig and mlxconfig have for them, each with its value.";
    }
}

/// The keys of one `[[rxe]]`.
pub(crate) mod rxe {
    use super::{Key, Kind, words};
    use crate::names::{IfName, RdmaName};

    keys! { KEYS:
        NAME: RdmaName = "name", Kind::Word(&words::RDMA), "",
            "The name of the soft RoCE device, e.g. rxe0.";
        NETDEV: IfName = "netdev", Kind::Word(&words::IF_NAME), "",
            "The netdev that it uses, by its final name; neither IPoIB nor a VLAN.";
    }
}

/// The keys of one `[[subnet-manager]]`.
pub(crate) mod subnet_manager {
    use std::collections::BTreeMap;

    use super::{Key, Kind, words};
    use crate::names::Guid;

    keys! { KEYS:
        PORT_GUID: Guid = "port-guid", Kind::Word(&words::GUID), "",
            "The port GUID of the port of this host on which opensm runs.";
        PRIORITY: i64 = "priority", Kind::Number { min: 0, max: 15 }, "",
            "opensm's priority: of several subnet managers of a fabric the one with the highest is the master.";
        PARTITIONS: String = "partitions", Kind::Word(&words::PATH), "",
            "The partitions file; default: the one that opensm was built for.";
        PEERS: Guid = "peers", Kind::Words(&words::GUID), "[]",
            "Port GUIDs of other hosts whose subnet manager may be the master of this fabric.";
        OPTIONS: BTreeMap<String, String> = "options", Kind::Options, "",
            "Further keys of opensm.conf, with their values.";
    }
}

/// The keys of one `[[guest]]`.
pub(crate) mod guest {
    use std::time::Duration;

    use super::{Key, Kind, words};
    use crate::names::{DomainName, GuestVf, OnFailure, Ready, UnitName};

    keys! { KEYS:
        DOMAIN: DomainName = "domain", Kind::OneOrMore(&words::DOMAIN), "",
            "The libvirt domain, by name or UUID, or a list of them.";
        UNIT: UnitName = "unit", Kind::OneOrMore(&words::UNIT), "",
            "The systemd unit, or a list of them.";
        VFS: GuestVf = "vfs", Kind::Words(&words::GUEST_VF), "",
            "The VFs that it needs, each as PF/INDEX; \"auto\" takes those of the domain's hostdev devices, and is the default for a domain.";
        AFTER: DomainName = "after", Kind::Words(&words::GUEST_NAME), "[]",
            "Guests of this list that are started before it.";
        TIMEOUT: Duration = "timeout", Kind::Span, "\"2min\"",
            "Maximum time that the start may take.";
        ON_FAILURE: OnFailure = "on-failure", Kind::Word(&words::ON_FAILURE), "\"retry\"",
            "If the VFs are not ready: retry (start it once they are) or report (do not start it).";
        READY: Ready = "ready", Kind::Word(&words::READY), "\"running\"",
            "When a domain is up: running, or agent (once its guest agent answers).";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::spelling::{self, Spelling};
    use regex::Regex;

    /// Every table of keys, with what stands above them.
    fn tables() -> Vec<(String, &'static [Key])> {
        fn add(list: &mut Vec<(String, &'static [Key])>, above: &str, keys: &'static [Key]) {
            list.push((above.to_owned(), keys));
            for key in keys {
                if let Kind::Tables(below) = key.kind {
                    add(list, &format!("{above}{}.", key.path), below);
                }
            }
        }
        let mut list = Vec::new();
        add(&mut list, "", KEYS);
        list
    }

    fn words() -> Vec<&'static Word> {
        let word = |key: &Key| match key.kind {
            Kind::Word(word) | Kind::Words(word) | Kind::OneOrMore(word) => Some(word),
            _ => None,
        };
        tables().into_iter().flat_map(|(_, keys)| keys).filter_map(word).collect()
    }

    #[test]
    fn examples_are_good() {
        for word in words() {
            assert!(word.read(spelling::of(word).0).is_ok(), "{}", word.what);
        }
    }

    #[test]
    fn a_key_is_read_as_what_it_holds() {
        for (_, keys) in tables() {
            for key in keys {
                let value = match &key.kind {
                    Kind::Word(word) | Kind::Words(word) | Kind::OneOrMore(word) => {
                        word.read(spelling::of(word).0)
                    }
                    Kind::Span | Kind::Vfs => key.kind.read(&toml("1")),
                    Kind::Number { max, .. } | Kind::Numbers { max, .. } => {
                        key.kind.read(&toml(&max.to_string()))
                    }
                    Kind::Flag => key.kind.read(&toml("true")),
                    Kind::Options => key.kind.read(&toml("{ routing_engine = \"updn\" }")),
                    Kind::Tables(_) | Kind::Settings => continue,
                };
                assert!((key.holds)(&value.expect(key.path)), "{}", key.path);
            }
        }
    }

    fn toml(text: &str) -> toml::de::DeValue<'_> {
        toml::de::DeValue::parse(text).expect("a value").into_inner()
    }

    #[test]
    fn a_schema_pattern_accepts_nothing_that_is_refused() {
        use proptest::strategy::{Strategy, ValueTree};
        let mut runner = proptest::test_runner::TestRunner::default();
        for word in words() {
            let (_, spelling) = spelling::of(word);
            let Some(pattern) = spelling.pattern() else { continue };
            if matches!(spelling, Spelling::Loose(_)) {
                continue;
            }
            let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
            let texts = proptest::string::string_regex(pattern).expect("pattern");
            let whole = Regex::new(&format!("^(?:{pattern})$")).expect("pattern");
            for _ in 0..200 {
                let text = texts.new_tree(&mut runner).expect("text").current();
                // Of other characters a pattern cannot count the bytes.
                let text: String = text.chars().filter(char::is_ascii).collect();
                if !whole.is_match(&text) {
                    continue;
                }
                assert!(word.read(&text).is_ok(), "{}: {text}", word.what);
            }
        }
    }

    #[test]
    fn a_schema_takes_every_word_of_a_list_and_no_other() {
        use crate::names::{
            Mode, NameRule, OnFailure, Policy, PortChoice, Ready, Rung, VfDriver, Words,
        };
        use proptest::strategy::{Strategy, ValueTree};
        use std::collections::BTreeSet;
        let lists = [
            ("a state that can be waited for", Rung::words_to_wait_for()),
            ("a link state", Policy::all_typed()),
            ("a driver of VFs", VfDriver::all_typed()),
            ("a transport mode", Mode::all_typed()),
            ("a rule", NameRule::all_typed()),
            ("a choice of ports", PortChoice::all_typed()),
            ("what to do", OnFailure::all_typed()),
            ("what counts as up", Ready::all_typed()),
        ];
        let mut runner = proptest::test_runner::TestRunner::default();
        for (what, list) in lists {
            let word = words().into_iter().find(|word| word.what == what).expect(what);
            let pattern = spelling::of(word).1.pattern().expect(what);
            let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
            let texts = proptest::string::string_regex(pattern).expect("pattern");
            // In small and capital letters.
            let mut sample = || texts.new_tree(&mut runner).expect("text").current().to_lowercase();
            let in_schema: BTreeSet<String> = (0..500).map(|_| sample()).collect();
            assert_eq!(in_schema, list.iter().map(|word| (*word).to_owned()).collect(), "{what}");
            for text in list {
                assert!(word.read(text).is_ok(), "{what}: {text}");
                assert!(word.read(&text.to_uppercase()).is_ok(), "{what}: {text}");
            }
        }
    }

    #[test]
    fn no_key_is_a_section_and_none_is_twice() {
        for (i, key) in KEYS.iter().enumerate() {
            assert!(KEYS.iter().skip(i + 1).all(|other| other.path != key.path), "{}", key.path);
            let below = format!("{}.", key.path);
            assert!(!KEYS.iter().any(|other| other.path.starts_with(&below)), "{}", key.path);
            assert!(key.doc.ends_with('.'), "{}", key.path);
        }
    }
}
