//! Every key that a configuration file may hold, in one table.
//!
//! The table drives reading, type errors, "did you mean", the JSON schema,
//! `config show` and the check of the manual page. A new key is a row here, a
//! field of [`super::Config`], and the line in `validate.rs` that fills it.

/// One table of keys: each row makes the constant by which the key is read, of the type of its
/// values or of the items of its list, and the row itself.
macro_rules! keys {
    ($table:ident: $(
        $name:ident: $type:ty = $path:literal, $kind:expr, $default:literal, $doc:literal;
    )+) => {
        $(pub const $name: $crate::config::keys::Name<$type> = $crate::config::keys::Name::new($path);)+
        pub static $table: &[Key] = &[
            $(Key {
                path: $path,
                kind: $kind,
                default: $default,
                doc: $doc,
                #[cfg(test)]
                holds: |value| value.get::<$type>().is_some(),
            }),+
        ];
    };
}

mod firmware_keys;
mod guest_keys;
mod interface_keys;
mod kinds;
mod pf_keys;
mod port_keys;
mod renamed;
mod rxe_keys;
mod subnet_manager_keys;
mod words;

use crate::names::{
    Connection, ModuleName, NameRule, NetnsMode, PortChoice, PortSelector, Rung, nearest,
};
pub(crate) use firmware_keys::firmware;
pub(crate) use guest_keys::guest;
pub(crate) use interface_keys::{interface, partition};
pub(crate) use kinds::{
    Key, Kind, Name, OWN_OPTIONS, Settings, Tables, Word, any_case, setting, type_name,
};
pub(crate) use pf_keys::{pf, vf};
pub(crate) use port_keys::port;
pub(crate) use renamed::{Renamed, renamed};
pub(crate) use rxe_keys::rxe;
use std::time::Duration;
pub(crate) use subnet_manager_keys::subnet_manager;
use words::{CONNECTION, METRICS, MODULE, NAME_RULE, NETNS, PATH, PORT_NAME, PORTS, STATE};

keys! { KEYS:
    BOOT_TIMEOUT: Duration = "boot.timeout", Kind::Span, "\"4min\"",
        "Maximum time that `ibprov boot` waits in all.";
    BOOT_ADAPTER_TIMEOUT: Duration = "boot.adapter-timeout", Kind::Span, "\"2min 30s\"",
        "Maximum time that `ibprov boot` waits for one adapter; at most boot.timeout, which is the default if it is shorter.";
    BOOT_PORTS: PortChoice = "boot.ports", Kind::Word(&PORTS), "\"found\"",
        "Which ports are expected: found (every InfiniBand port of the host, and those of [[port]]) or listed (those of [[port]] alone).";
    BOOT_IGNORE: PortSelector = "boot.ignore", Kind::Words(&PORT_NAME), "[]",
        "Adapters and ports that are not expected although they are found, each by PCI address, port GUID or RDMA device.";
    BOOT_AT_LEAST: i64 = "boot.at-least", Kind::Number { min: 1, max: 1024 }, "",
        "How many of the expected ports have to be ready, regardless of which; default: all that are required.";
    MODULES_LOAD: ModuleName = "modules.load", Kind::Words(&MODULE), "[\"ib_ipoib\", \"ib_umad\", \"ib_uverbs\"]",
        "Kernel modules to load, appended to the default; an empty list clears the default.";
    MODULES_EXCLUDE: ModuleName = "modules.exclude", Kind::Words(&MODULE), "[]",
        "Kernel modules that ibprov never loads.";
    RDMA_NETNS: NetnsMode = "rdma.netns", Kind::Word(&NETNS), "",
        "Whether each RDMA device is in one network namespace alone (exclusive) or in all (shared); `ibprov boot` sets it; default: it is left as it is.";
    PORT: Tables = "port", Kind::Tables(port::KEYS), "[]",
        "Describes a port, or several.";
    NETWORK_TIMEOUT: Duration = "network.timeout", Kind::Span, "\"1min 30s\"",
        "Maximum time that `ibprov iface` waits until the network stack has brought an interface up.";
    INTERFACE: Tables = "interface", Kind::Tables(interface::KEYS), "[]",
        "Settings of IPoIB interfaces; if several match an interface, later values override earlier ones.";
    WAIT_TIMEOUT: Duration = "wait-online.timeout", Kind::Span, "\"2min\"",
        "Maximum time that `ibprov wait-online` waits.";
    WAIT_STATE: Rung = "wait-online.state", Kind::Word(&STATE), "\"active\"",
        "The state for which `ibprov wait-online` waits: rdma, netdev, named, configured, link or active.";
    WAIT_ADDRESS: bool = "wait-online.address", Kind::Flag, "false",
        "`ibprov wait-online` waits for an address of global scope too.";
    WAIT_STABLE: Duration = "wait-online.stable", Kind::Span, "",
        "For how long `ibprov wait-online` wants each port to be online without interruption; default: it need not be.";
    HOST_NUMBER: i64 = "host.number", Kind::Number { min: 0, max: 0xffff_ffff }, "",
        "The host's number in GUID templates; default: from the host's name.";
    HOST_NUMBER_FILE: String = "host.number-file", Kind::Word(&PATH), "",
        "A file that holds the host's number, in decimal digits alone.";
    HOST_NUMBER_RULE: NameRule = "host.number-rule", Kind::Word(&NAME_RULE), "\"only-digits\"",
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
    METRICS_FILE: String = "metrics.file", Kind::Word(&METRICS), "",
        "A file to which `ibprov boot` writes metrics at its end, for the textfile collector of node_exporter; default: none is written.";
    GUESTS_CONNECTION: Connection = "guests.connection", Kind::Word(&CONNECTION), "\"qemu:///system\"",
        "The connection URI of libvirt.";
    GUESTS_PARALLEL: i64 = "guests.max-parallel", Kind::Number { min: 1, max: 64 }, "4",
        "Maximum number of guests that are starting at the same time.";
    GUESTS_TIMEOUT: Duration = "guests.timeout", Kind::Span, "\"2min\"",
        "Maximum time of the first pass, for which units ordered after ibprov-guests.service wait.";
    GUEST: Tables = "guest", Kind::Tables(guest::KEYS), "[]",
        "A libvirt domain or a unit that is started when its VFs are ready.";
}

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

/// The names of the keys and sections of `keys` right below `section` (empty at the top).
pub(crate) fn inside(keys: &'static [Key], section: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> = keys
        .iter()
        .filter_map(|key| match section {
            "" => Some(key.path),
            _ => key.path.strip_prefix(section)?.strip_prefix('.'),
        })
        .filter_map(|rest| rest.split('.').next())
        .collect();
    names.dedup();
    names
}

/// The key or section of `keys` that was probably meant by `name`, written
/// below `section` (empty at the top).
pub(crate) fn meant(keys: &'static [Key], section: &str, name: &str) -> Option<String> {
    if name.len() > 64 {
        return None;
    }
    let wanted = name.to_lowercase().replace('_', "-");
    let near = nearest(&wanted, inside(keys, section));
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
    use super::kinds::Spelling;
    use super::*;
    use regex::Regex;

    #[test]
    fn a_slip_finds_its_key() {
        let meant = |section, name| meant(KEYS, section, name);
        assert_eq!(meant("boot", "timeot").as_deref(), Some("boot.timeout"));
        assert_eq!(meant("boot", "adapter_timeout").as_deref(), Some("boot.adapter-timeout"));
        assert_eq!(meant("", "module").as_deref(), Some("modules"));
        assert_eq!(meant("", "timeout").as_deref(), Some("boot.timeout"));
        assert_eq!(meant("boot", "exclude").as_deref(), Some("modules.exclude"));
        assert_eq!(meant("boot", "colour"), None);
        assert_eq!(super::meant(port::KEYS, "", "portguid").as_deref(), Some("port-guid"));
        assert_eq!(super::meant(interface::KEYS, "match", "nme").as_deref(), Some("match.name"));
    }

    #[test]
    fn every_new_name_is_a_key() {
        let paths: Vec<String> = tables()
            .into_iter()
            .flat_map(|(above, keys)| keys.iter().map(move |key| format!("{above}{}", key.path)))
            .collect();
        for renamed in renamed::RENAMED {
            assert!(paths.iter().any(|path| path == renamed.new), "{}", renamed.new);
            assert!(!paths.iter().any(|path| path == renamed.old), "{}", renamed.old);
        }
    }

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
            assert!(word.read(word.example).is_ok(), "{}", word.what);
        }
    }

    #[test]
    fn a_key_is_read_as_what_it_holds() {
        for (_, keys) in tables() {
            for key in keys {
                let value = match &key.kind {
                    Kind::Word(word) | Kind::Words(word) | Kind::OneOrMore(word) => {
                        word.read(word.example)
                    }
                    Kind::Span | Kind::Vfs => key.kind.read(&toml("1")),
                    Kind::Number { max, .. } => key.kind.read(&toml(&max.to_string())),
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
            let Some(pattern) = word.spelling.pattern() else { continue };
            if matches!(word.spelling, Spelling::Loose(_)) {
                continue;
            }
            let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
            let texts = proptest::string::string_regex(pattern).expect("pattern");
            for _ in 0..200 {
                let text = texts.new_tree(&mut runner).expect("text").current();
                // Of other characters a pattern cannot count the bytes.
                let text: String = text.chars().filter(char::is_ascii).collect();
                if !Regex::new(&format!("^(?:{pattern})$")).expect("pattern").is_match(&text) {
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
            let pattern = word.spelling.pattern().expect(what);
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
