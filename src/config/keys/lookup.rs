//! Which key a name in a file means: what is called so, was called so once, or is nearly so.

use super::Key;
use crate::names::nearest;

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

/// An old name.
#[derive(Debug)]
pub(crate) struct Renamed {
    /// What it was called, with dots.
    pub(crate) old: &'static str,
    /// What it is called now.
    pub(crate) new: &'static str,
    /// What else changed, as advice; empty for nothing.
    pub(crate) help: &'static str,
}

pub(super) const RENAMED: &[Renamed] = &[
    same("boot.deadline", "boot.timeout"),
    same("boot.hca-deadline", "boot.adapter-timeout"),
    same("modules.skip", "modules.exclude"),
    Renamed {
        old: "expect.port",
        new: "port",
        help: "write [[port]], and `[boot] ports = \"listed\"` to expect no other ports",
    },
    Renamed {
        old: "port.optional",
        new: "port.required",
        help: "`required = false` says what `optional = true` said",
    },
    same("network.deadline", "network.timeout"),
    same("wait-online.deadline", "wait-online.timeout"),
    same("wait-online.rung", "wait-online.state"),
    same("guests.deadline", "guests.timeout"),
    same("interface.port-guid", "interface.match.port-guid"),
    same("interface.pci", "interface.match.pci"),
    same("interface.port", "interface.match.port"),
    same("interface.persistent-name", "interface.name"),
    Renamed {
        old: "interface.pkeys",
        new: "interface.partition",
        help: "write [[interface.partition]] below, once for each, with `pkey = \"0x8001\"`",
    },
    same("pf.policy", "pf.link-state"),
    same("pf.vf.policy", "pf.vf.link-state"),
    same("pf.index", "pf.number"),
    same("pf.vf-guids", "pf.guid.list"),
    same("pf.vf-node-guids", "pf.guid.node.list"),
    same("pf.vf-port-guids", "pf.guid.port.list"),
    same("pf.vf-guid-range", "pf.guid.range"),
    same("pf.vf-node-guid-range", "pf.guid.node.range"),
    same("pf.vf-port-guid-range", "pf.guid.port.range"),
    same("pf.vf-guid-offset", "pf.guid.offset"),
    same("pf.vf-node-guid-offset", "pf.guid.node.offset"),
    same("pf.vf-port-guid-offset", "pf.guid.port.offset"),
    same("pf.vf-guid-template", "pf.guid.template"),
];

const fn same(old: &'static str, new: &'static str) -> Renamed {
    Renamed { old, new, help: "" }
}

/// What `path` was renamed to, or `None` if it never was a name. `Some(None)` for a section
/// that only held renamed names.
pub(crate) fn renamed(path: &str) -> Option<Option<&'static Renamed>> {
    if let Some(found) = RENAMED.iter().find(|renamed| renamed.old == path) {
        return Some(Some(found));
    }
    let inside = |old: &str| old.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    RENAMED.iter().any(|renamed| inside(renamed.old)).then_some(None)
}

#[cfg(test)]
mod tests {
    use super::super::{KEYS, interface, port};

    #[test]
    fn a_slip_finds_its_key() {
        let meant = |section, name| super::meant(KEYS, section, name);
        assert_eq!(meant("boot", "timeot").as_deref(), Some("boot.timeout"));
        assert_eq!(meant("boot", "adapter_timeout").as_deref(), Some("boot.adapter-timeout"));
        assert_eq!(meant("", "module").as_deref(), Some("modules"));
        assert_eq!(meant("", "timeout").as_deref(), Some("boot.timeout"));
        assert_eq!(meant("boot", "exclude").as_deref(), Some("modules.exclude"));
        assert_eq!(meant("boot", "colour"), None);
        assert_eq!(super::meant(port::KEYS, "", "portguid").as_deref(), Some("port-guid"));
        assert_eq!(super::meant(interface::KEYS, "match", "nme").as_deref(), Some("match.name"));
    }
}
