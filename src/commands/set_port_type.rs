//! `ibprov set-port-type`, which boot runs as a child: the driver registers the ports anew,
//! which takes as long as it takes.

use std::io::Write as _;

use anyhow::{Context as _, bail};

use crate::host::{Root, answer, attribute, terminal};
use crate::names::{IfName, PciAddress, PortNumber, PortType};
use crate::observe::uses::{cm_uses, netdev_uses};
use crate::observe::{Look, pf};
use crate::report::{Exit, Use, used_by};

/// Set the `types` of ports of the ConnectX-3 at `pci`, and read them back; with exit status 1
/// and unless `force` asks for it, none is set while a netdev of any of its ports is in use: the
/// driver takes away all of them (`mlx4_change_port_types()`,
/// drivers/net/ethernet/mellanox/mlx4/main.c). The uses are written to standard error, where
/// boot reads what its children say.
///
/// # Errors
/// The driver refuses, or a port has another type afterwards.
pub fn run(pci: PciAddress, types: &[(PortNumber, PortType)], force: bool) -> anyhow::Result<u8> {
    let path = |number: PortNumber| format!("{}/mlx4_port{number}", pf::dir(pci));
    let root = Root::live();
    let netdevs = pf::netdevs(&mut Look::new(&root), pci);
    let uses = match force {
        true => Vec::new(),
        false => port_uses(&root, &netdevs),
    };
    if !uses.is_empty() {
        write!(terminal::stderr(), "{}", used_by(&uses))?;
        return Ok(Exit::Exceptions.code());
    }
    let has = |(number, wanted): &(PortNumber, PortType)| {
        let text = root.attribute(&path(*number)).unwrap_or_default();
        PortType::from_sysfs(&text) == Some(*wanted)
    };
    let mut refused = None;
    // What one order does not do, the other may: the driver judges each change by itself.
    let order = order(types);
    for (number, wanted) in order.iter().chain(order.iter().rev()) {
        if has(&(*number, *wanted)) {
            continue;
        }
        if let Err(e) = attribute::write(&path(*number), &format!("{wanted}\n")) {
            refused = Some(format!("write {wanted} to {}: {}", path(*number), answer(&e)));
        }
    }
    let Some((number, wanted)) = types.iter().find(|of| !has(of)) else {
        return Ok(Exit::Good.code());
    };
    let is = root.attribute(&path(*number)).with_context(|| format!("read {}", path(*number)))?;
    match refused {
        Some(refused) => bail!(
            "{refused}; {} is {is:?}, expected {wanted} (port 1 can be eth only if port 2 is; see dmesg)",
            path(*number)
        ),
        None => bail!("{} is {is:?} after {wanted} was written; see dmesg", path(*number)),
    }
}

/// By what these netdevs are in use. The connection manager is asked last: RDMA netlink can hang
/// where all else answers.
fn port_uses(root: &Root, netdevs: &[IfName]) -> Vec<Use> {
    let uses: Vec<Use> = netdev_uses(root, netdevs).into_iter().flatten().collect();
    match uses.is_empty() {
        true => cm_uses(root, netdevs).into_iter().flatten().collect(),
        false => uses,
    }
}

/// In which order the types are written: port 1 can become Ethernet only once port 2 is
/// (`mlx4_check_port_params()`, drivers/net/ethernet/mellanox/mlx4/main.c), and port 2
/// InfiniBand only once port 1 is.
fn order(types: &[(PortNumber, PortType)]) -> Vec<(PortNumber, PortType)> {
    let mut order = types.to_vec();
    order.sort_unstable_by_key(|(number, _)| *number);
    if order.first().is_some_and(|(_, first)| *first == PortType::Eth) {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use PortType::{Eth, Ib};

    #[test]
    fn port_2_comes_first_where_port_1_becomes_ethernet() {
        let numbered = |types: &[(i64, PortType)]| {
            let of = |(n, t): &(i64, PortType)| (PortNumber::new(*n).expect("number"), *t);
            types.iter().map(of).collect::<Vec<_>>()
        };
        let of = |types: &[(i64, PortType)]| {
            let order = order(&numbered(types));
            order.iter().map(|(n, _)| n.get()).collect::<Vec<_>>()
        };
        assert_eq!(of(&[(1, Eth), (2, Eth)]), [2, 1]);
        assert_eq!(of(&[(2, Ib), (1, Ib)]), [1, 2]);
        assert_eq!(of(&[(1, Ib), (2, Eth)]), [1, 2]);
        assert_eq!(of(&[(2, Eth)]), [2]);
    }
}
