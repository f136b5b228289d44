//! What settings were called before, so that an old file is answered with the new name.

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
