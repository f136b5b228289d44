//! Every key that a configuration file may hold, in one table.
//!
//! The table drives reading, type errors, "did you mean", the JSON schema,
//! `config show` and the check of the manual page. A new key is a row here, a
//! field of [`super::Config`], and the line in `validate.rs` that fills it.

mod guest_keys;
mod kinds;
mod pf_keys;
mod words;

pub(crate) use guest_keys::guest;
use guest_keys::{CONNECTION, GUEST_KEYS};

use crate::names::nearest;
pub(crate) use kinds::{Key, Kind, Word, type_name};
use pf_keys::PF_KEYS;
pub(crate) use pf_keys::{pf, vf};
use words::{GUID, IF_NAME, IF_PATTERN, MODE, MODULE, NAME_RULE, PATH, PCI, PKEY, RDMA, RUNG};

pub(crate) const HOST_NUMBER: &str = "host.number";
pub(crate) const HOST_NUMBER_FILE: &str = "host.number-file";
pub(crate) const HOST_NUMBER_RULE: &str = "host.number-rule";
pub(crate) const PF: &str = "pf";
pub(crate) const BOOT_DEADLINE: &str = "boot.deadline";
pub(crate) const BOOT_HCA_DEADLINE: &str = "boot.hca-deadline";
pub(crate) const MODULES_LOAD: &str = "modules.load";
pub(crate) const MODULES_SKIP: &str = "modules.skip";
pub(crate) const EXPECT_PORT: &str = "expect.port";
pub(crate) const NETWORK_DEADLINE: &str = "network.deadline";
pub(crate) const INTERFACE: &str = "interface";
/// The keys of one `[[interface]]`.
pub(crate) mod interface {
    pub(crate) const NAME: &str = "name";
    pub(crate) const PORT_GUID: &str = "port-guid";
    pub(crate) const PCI: &str = "pci";
    pub(crate) const PORT: &str = "port";
    pub(crate) const MODE: &str = "mode";
    pub(crate) const MTU: &str = "mtu";
    pub(crate) const UMCAST: &str = "umcast";
    pub(crate) const PKEYS: &str = "pkeys";
    pub(crate) const PERSISTENT_NAME: &str = "persistent-name";
    pub(crate) const RECEIVE_QUEUE: &str = "receive-queue";
    pub(crate) const SEND_QUEUE: &str = "send-queue";
}
pub(crate) const WAIT_DEADLINE: &str = "wait-online.deadline";
pub(crate) const WAIT_RUNG: &str = "wait-online.rung";
pub(crate) const WAIT_ADDRESS: &str = "wait-online.address";
pub(crate) const GUESTS_CONNECTION: &str = "guests.connection";
pub(crate) const GUESTS_PARALLEL: &str = "guests.max-parallel";
pub(crate) const GUESTS_DEADLINE: &str = "guests.deadline";
pub(crate) const GUEST: &str = "guest";
/// The keys of one `[[expect.port]]`.
pub(crate) mod port {
    pub(crate) const PCI: &str = "pci";
    pub(crate) const PORT_GUID: &str = "port-guid";
    pub(crate) const RDMA: &str = "rdma";
    pub(crate) const PORT: &str = "port";
    pub(crate) const OPTIONAL: &str = "optional";
}

/// All keys, in the order in which they are shown.
pub(crate) static KEYS: &[Key] = &[
    Key {
        path: BOOT_DEADLINE,
        kind: Kind::Span { min: 1, max: 3600 },
        default: "\"4min\"",
        doc: "How long `ibprov boot` waits in all.",
    },
    Key {
        path: BOOT_HCA_DEADLINE,
        kind: Kind::Span { min: 1, max: 3600 },
        default: "\"2min 30s\"",
        doc: "How long `ibprov boot` waits for one HCA; not longer than boot.deadline, and the default follows a shorter boot.deadline.",
    },
    Key {
        path: MODULES_LOAD,
        kind: Kind::Words(&MODULE),
        default: "[\"ib_ipoib\", \"ib_umad\", \"ib_uverbs\"]",
        doc: "Kernel modules to load, after those of the default; an empty list takes the default away too.",
    },
    Key {
        path: MODULES_SKIP,
        kind: Kind::Words(&MODULE),
        default: "[]",
        doc: "Kernel modules that ibprov never loads.",
    },
    Key {
        path: EXPECT_PORT,
        kind: Kind::Tables(PORT_KEYS),
        default: "[]",
        doc: "A port that has to come; without any, every InfiniBand port of the host is expected.",
    },
    Key {
        path: NETWORK_DEADLINE,
        kind: Kind::Span { min: 1, max: 3600 },
        default: "\"1min 30s\"",
        doc: "How long `ibprov iface` waits for the network stack to bring an interface up.",
    },
    Key {
        path: INTERFACE,
        kind: Kind::Tables(INTERFACE_KEYS),
        default: "[]",
        doc: "How IPoIB interfaces are set; of several that fit one interface, the later one counts.",
    },
    Key {
        path: WAIT_DEADLINE,
        kind: Kind::Span { min: 1, max: 86400 },
        default: "\"2min\"",
        doc: "How long `ibprov wait-online` waits.",
    },
    Key {
        path: WAIT_RUNG,
        kind: Kind::Word(&RUNG),
        default: "\"active\"",
        doc: "How far `ibprov wait-online` lets every port come: rdma, netdev, named, configured, link or active.",
    },
    Key {
        path: WAIT_ADDRESS,
        kind: Kind::Flag,
        default: "false",
        doc: "`ibprov wait-online` waits for an address of global scope too.",
    },
    Key {
        path: HOST_NUMBER,
        kind: Kind::Number { min: 0, max: 0xffff_ffff },
        default: "",
        doc: "The host's number in GUID templates; it is taken from the host's name, if not given.",
    },
    Key {
        path: HOST_NUMBER_FILE,
        kind: Kind::Word(&PATH),
        default: "",
        doc: "A file that holds the host's number, in decimal digits alone.",
    },
    Key {
        path: HOST_NUMBER_RULE,
        kind: Kind::Word(&NAME_RULE),
        default: "\"only-digits\"",
        doc: "Which digits of the host's name, up to its first dot, are its number.",
    },
    Key {
        path: PF,
        kind: Kind::Tables(PF_KEYS),
        default: "[]",
        doc: "A PF, how many VFs it shall have, and their GUIDs.",
    },
    Key {
        path: GUESTS_CONNECTION,
        kind: Kind::Word(&CONNECTION),
        default: "\"qemu:///system\"",
        doc: "The libvirt that has the domains.",
    },
    Key {
        path: GUESTS_PARALLEL,
        kind: Kind::Number { min: 1, max: 64 },
        default: "4",
        doc: "How many guests may be starting at the same time.",
    },
    Key {
        path: GUESTS_DEADLINE,
        kind: Kind::Span { min: 1, max: 3600 },
        default: "\"2min\"",
        doc: "How long ibprov-guests.service may hold up what is ordered after it.",
    },
    Key {
        path: GUEST,
        kind: Kind::Tables(GUEST_KEYS),
        default: "[]",
        doc: "A virtual machine, or a unit, that starts when its VFs are right.",
    },
];

static INTERFACE_KEYS: &[Key] = &[
    Key {
        path: interface::NAME,
        kind: Kind::Word(&IF_PATTERN),
        default: "",
        doc: "The interfaces by name: a pattern as in a shell, \"*\" for every one.",
    },
    Key {
        path: interface::PORT_GUID,
        kind: Kind::Word(&GUID),
        default: "",
        doc: "The interface, and its P_Key children, by port GUID.",
    },
    Key {
        path: interface::PCI,
        kind: Kind::Word(&PCI),
        default: "",
        doc: "The interfaces, and their P_Key children, by the HCA's PCI address.",
    },
    Key {
        path: interface::PORT,
        kind: Kind::Number { min: 1, max: 254 },
        default: "",
        doc: "Beside pci: only this port of the HCA, counted from 1.",
    },
    Key {
        path: interface::MODE,
        kind: Kind::Word(&MODE),
        default: "",
        doc: "Transport mode, \"datagram\" or \"connected\".",
    },
    Key {
        path: interface::MTU,
        kind: Kind::Number { min: 72, max: 65520 },
        default: "",
        doc: "MTU in bytes: at most 4092 in datagram mode, 65520 in connected mode.",
    },
    Key {
        path: interface::UMCAST,
        kind: Kind::Flag,
        default: "",
        doc: "Whether user space may join multicast groups on its own.",
    },
    Key {
        path: interface::PKEYS,
        kind: Kind::Words(&PKEY),
        default: "",
        doc: "P_Key children that the interface shall have.",
    },
    Key {
        path: interface::PERSISTENT_NAME,
        kind: Kind::Word(&IF_NAME),
        default: "",
        doc: "Beside port-guid: the name that udev gives the interface at every boot.",
    },
    Key {
        path: interface::RECEIVE_QUEUE,
        kind: Kind::Number { min: 2, max: 8192 },
        default: "",
        doc: "The least that ib_ipoib's recv_queue_size should be; a smaller one is told, not changed.",
    },
    Key {
        path: interface::SEND_QUEUE,
        kind: Kind::Number { min: 2, max: 8192 },
        default: "",
        doc: "The least that ib_ipoib's send_queue_size should be; a smaller one is told, not changed.",
    },
];
static PORT_KEYS: &[Key] = &[
    Key {
        path: port::PCI,
        kind: Kind::Word(&PCI),
        default: "",
        doc: "The HCA by its PCI address.",
    },
    Key {
        path: port::PORT_GUID,
        kind: Kind::Word(&GUID),
        default: "",
        doc: "The port by its port GUID.",
    },
    Key {
        path: port::RDMA,
        kind: Kind::Word(&RDMA),
        default: "",
        doc: "The HCA by the name of its RDMA device.",
    },
    Key {
        path: port::PORT,
        kind: Kind::Number { min: 1, max: 254 },
        default: "",
        doc: "Only this port of the HCA, counted from 1; all of them if not given.",
    },
    Key {
        path: port::OPTIONAL,
        kind: Kind::Flag,
        default: "false",
        doc: "Waited for, but no failure if it does not come.",
    },
];

/// What stands at `path` in `keys`: a key, a section, or nothing.
pub(crate) enum Found {
    Key(&'static Key),
    Section,
    Nothing,
}

/// Looks `path` (with dots) up in `keys`.
pub(crate) fn find(keys: &'static [Key], path: &str) -> Found {
    if let Some(key) = keys.iter().find(|key| key.path == path) {
        return Found::Key(key);
    }
    let inside = |key: &Key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    if keys.iter().any(inside) { Found::Section } else { Found::Nothing }
}

/// The key or section of `keys` that was probably meant by `name`, written
/// below `section` (empty at the top).
pub(crate) fn meant(keys: &'static [Key], section: &str, name: &str) -> Option<String> {
    if name.len() > 64 {
        return None;
    }
    let wanted = name.to_lowercase().replace('_', "-");
    let here: Vec<&str> = keys
        .iter()
        .filter_map(|key| match section {
            "" => Some(key.path),
            _ => key.path.strip_prefix(section)?.strip_prefix('.'),
        })
        .filter_map(|rest| rest.split('.').next())
        .collect();
    let near = nearest(&wanted, here);
    let join = |name: &str| match section {
        "" => name.to_owned(),
        _ => format!("{section}.{name}"),
    };
    // A good name in the wrong section is the other common slip.
    let elsewhere = || keys.iter().find(|key| key.path.rsplit('.').next() == Some(&wanted));
    near.map(join).or_else(|| elsewhere().map(|key| key.path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_key() {
        let meant = |section, name| meant(KEYS, section, name);
        assert_eq!(meant("boot", "deadlin").as_deref(), Some("boot.deadline"));
        assert_eq!(meant("boot", "hca_deadline").as_deref(), Some("boot.hca-deadline"));
        assert_eq!(meant("", "module").as_deref(), Some("modules"));
        assert_eq!(meant("", "deadline").as_deref(), Some("boot.deadline"));
        assert_eq!(meant("boot", "skip").as_deref(), Some("modules.skip"));
        assert_eq!(meant("boot", "colour"), None);
        assert_eq!(super::meant(PORT_KEYS, "", "portguid").as_deref(), Some("port-guid"));
    }

    fn words() -> Vec<&'static Word> {
        let word = |key: &Key| match key.kind {
            Kind::Word(word) | Kind::Words(word) => Some(word),
            _ => None,
        };
        KEYS.iter()
            .chain(PORT_KEYS)
            .chain(INTERFACE_KEYS)
            .chain(PF_KEYS)
            .chain(pf_keys::VF_KEYS)
            .chain(GUEST_KEYS)
            .filter_map(word)
            .collect()
    }

    #[test]
    fn examples_are_good() {
        for word in words() {
            assert!((word.parse)(word.example).is_ok(), "{}", word.what);
        }
    }

    #[test]
    fn a_schema_pattern_accepts_nothing_that_is_refused() {
        use proptest::strategy::{Strategy, ValueTree};
        let mut runner = proptest::test_runner::TestRunner::default();
        for word in words() {
            let Some(pattern) = word.spelling.pattern() else { continue };
            let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
            let texts = proptest::string::string_regex(pattern).expect("pattern");
            for _ in 0..200 {
                let text = texts.new_tree(&mut runner).expect("text").current();
                assert!((word.parse)(&text).is_ok(), "{}: {text}", word.what);
            }
        }
    }

    #[test]
    fn a_schema_takes_every_word_of_a_list_and_no_other() {
        use crate::names::{Mode, NameRule, OnFailure, Policy, Ready, Rung, VfDriver, Words};
        use proptest::strategy::{Strategy, ValueTree};
        use std::collections::BTreeSet;
        let lists = [
            ("a rung that can be waited for", Rung::words_to_wait_for()),
            ("a link policy", Policy::all_typed()),
            ("a way to drive a VF", VfDriver::all_typed()),
            ("a transport mode", Mode::all_typed()),
            ("a rule", NameRule::all_typed()),
            ("what to do", OnFailure::all_typed()),
            ("what counts as up", Ready::all_typed()),
        ];
        let mut runner = proptest::test_runner::TestRunner::default();
        for (what, list) in lists {
            let word = words().into_iter().find(|word| word.what == what).expect(what);
            let pattern = word.spelling.pattern().expect(what);
            let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
            let texts = proptest::string::string_regex(pattern).expect("pattern");
            let mut sample = || texts.new_tree(&mut runner).expect("text").current();
            let in_schema: BTreeSet<String> = (0..500).map(|_| sample()).collect();
            assert_eq!(in_schema, list.iter().map(|word| (*word).to_owned()).collect(), "{what}");
            for text in list {
                assert!((word.parse)(text).is_ok(), "{what}: {text}");
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
