//! Which units the picture shows, and what each is to the ports.

use super::super::Role;
use crate::graph::{Unit, consumers};
use crate::stacks;

/// What a unit of the graph is; none if it has nothing to do with ports.
pub(super) fn role_of(unit: &Unit, provider: Option<&str>) -> Option<Role> {
    if provider == Some(&unit.name) {
        return Some(Role::Provider);
    }
    consumers::need(unit, stacks::network_role).map(role).or_else(|| {
        let (name, role) = known(&unit.name)?;
        (name == unit.name).then_some(role)
    })
}

const fn role(need: consumers::Need) -> Role {
    use consumers::Need;
    match need {
        Need::NetworkOnce | Need::NetworkHotplug => Role::Network,
        Need::WaitOnline => Role::Online,
        Need::Mount => Role::Mount,
        Need::Guests => Role::Guest,
        Need::Service | Need::Containers => Role::Consumer,
    }
}

/// Descriptions by which systemd and distributions speak of units that are no
/// network stack's.
const DESCRIPTIONS: [(&str, &str); 4] = [
    ("openibd - configure Mellanox devices", "openibd.service"),
    ("Bring up InfiniBand ports", "ibprov.service"),
    ("Virtualization daemon", "libvirtd.service"),
    ("Slurm node daemon", "slurmd.service"),
];

/// The unit of a name or a description, and what it is to the ports.
pub(super) fn known(name: &str) -> Option<(String, Role)> {
    if let Some(netdev) = name.strip_prefix("mlnx_interface_mgr - configure ") {
        return Some((format!("mlnx_interface_mgr@{netdev}.service"), Role::Network));
    }
    let described = DESCRIPTIONS.iter().find(|(said, _)| *said == name).map(|(_, unit)| *unit);
    let name = described.or_else(|| stacks::KNOWN.described(name)).unwrap_or(name);
    let role = match name {
        "ibprov.service" | "openibd.service" | "rdma.service" => Role::Provider,
        _ if name.starts_with("rdma-load-modules@") => Role::Provider,
        _ if name.starts_with("mlnx_interface_mgr@") => Role::Network,
        _ => {
            let unit = Unit { name: name.to_owned(), ..Unit::default() };
            role(consumers::need(&unit, stacks::network_role)?)
        }
    };
    Some((name.to_owned(), role))
}
