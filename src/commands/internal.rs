//! The verbs that ibprov starts by itself, and rules of udev: one change to a device each. What
//! boot runs of them is a child, since the kernel takes locks for it that a card which hangs can
//! hold, and a driver takes as long as it takes.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tracing::{info, warn};

use crate::apply::rxe;
use crate::host::start_up::{self, BOOT_UNIT, StartUp};
use crate::host::unit_links;
use crate::host::{Root, answer, attribute, clock, process, rdma_netlink, state, terminal};
use crate::model::{Exit, Use, netns::remedy, used_by};
use crate::names::harmless;
use crate::names::{IfName, NetnsMode, PciAddress, PortNumber, PortType, RdmaName, present};
use crate::observe::uses::{rdma_uses, uses};
use crate::observe::{namespaces, pf};

/// Give the RDMA device of a function its name, by one of ibprov's own rules of udev when a VF's
/// RDMA device comes (`crate::host::persistent_names`). `unless_used`, as for
/// [`set_port_type`]: who opens devices by name would not find the one that it has.
///
/// # Errors
/// The kernel refuses: another device is called so, or it is not root who asks.
pub fn name_rdma(pci: PciAddress, name: &RdmaName, unless_used: bool) -> Result<u8> {
    let root = Root::live();
    let uses = if unless_used { rdma_uses(&root, pci) } else { Vec::new() };
    if !uses.is_empty() {
        return left(&uses);
    }
    pf::name_rdma(&root, pci, name).map_err(|e| anyhow::anyhow!(answer(&e))).with_context(
        || format!("set the name of the RDMA device of {pci} to {name} by netlink"),
    )?;
    Ok(Exit::Good.code())
}

/// Nothing is done because of these uses, which boot reads on standard error.
fn left(uses: &[Use]) -> Result<u8> {
    write!(terminal::stderr(), "{}", used_by(uses))?;
    Ok(Exit::Exceptions.code())
}

/// Create the soft RoCE device `name` on `netdev`.
///
/// # Errors
/// As [`rxe::create`].
pub fn create_rxe(name: &RdmaName, netdev: &IfName) -> Result<()> {
    rxe::create(&Root::live(), name, netdev)
}

/// Give the soft RoCE device of `netdev` the name `name` again, by a rule of udev.
///
/// # Errors
/// As [`rxe::keep_name`].
pub fn name_rxe(name: &RdmaName, netdev: &IfName) -> Result<()> {
    rxe::keep_name(&Root::live(), name, netdev)
}

/// Whether `unit`, which udev has started, may act: not ready after the start of the system, in a
/// boot in which ibprov.service has not begun, unless `ibprov boot` is running. Then a
/// configuration waits for the next boot, and udev's event need not be one of a new device:
/// `udevadm trigger` makes one for each. Where systemd cannot be asked, the unit may.
pub fn may_act(unit: &str) -> Exit {
    let root = Root::live();
    let has_begun = || {
        Ok(unit_links::is_up(&root, BOOT_UNIT)
            || root.exists(&format!("{}/{}", state::RUN_DIR, state::RUNNING))
            || !StartUp::ask()?.is_over
            || start_up::boot_began()?.is_some())
    };
    let unit = harmless(unit);
    match has_begun() {
        Ok(true) => Exit::Good,
        Ok(false) => {
            info!(
                "{unit}: nothing is done, because {BOOT_UNIT} has not begun in this boot: `systemctl start {BOOT_UNIT}`, or the next boot, does what is configured"
            );
            Exit::NotReady
        }
        Err(e) => {
            let e: io::Error = e;
            warn!(
                "{unit}: whether {BOOT_UNIT} has begun in this boot cannot be determined: {}: continuing",
                answer(&e)
            );
            Exit::Good
        }
    }
}

/// Set the `types` of ports of the ConnectX-3 at `pci`, and read them back; with exit status 1
/// and unless `force` asks for it, none is set while the function is in use: the driver takes away
/// its netdevs and its RDMA device (`mlx4_change_port_types()`,
/// drivers/net/ethernet/mellanox/mlx4/main.c). The uses are written to standard error, where
/// boot reads what its children say.
///
/// # Errors
/// The driver refuses, or a port has another type afterwards.
pub fn set_port_type(pci: PciAddress, types: &[(PortNumber, PortType)], force: bool) -> Result<u8> {
    let path = |number: PortNumber| format!("{}/mlx4_port{number}", pf::dir(pci));
    let root = Root::live();
    let uses: Vec<Use> = match force {
        true => Vec::new(),
        false => uses(&root, &[pci]).into_iter().flatten().collect(),
    };
    if !uses.is_empty() {
        return left(&uses);
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

/// How long systemd is waited for, microseconds: boot waits for this child 10 s.
const SYSTEMD: Duration = Duration::from_secs(8);

/// Set the mode, and read it back.
///
/// # Errors
/// The kernel refuses, or has another mode afterwards.
pub fn set_netns_mode(mode: NetnsMode) -> Result<()> {
    if let Err(e) = rdma_netlink::set_netns_mode(mode) {
        let tried = format!("set {mode} by RDMA netlink: {}", answer(&e));
        if e.raw_os_error() != Some(nix::libc::EBUSY) {
            bail!("{tried}");
        }
        let found = found(namespaces::others(&Root::live()), units());
        bail!(
            "{tried}: the mode cannot be changed while there is another network namespace; {found}; {}",
            remedy(mode)
        );
    }
    let is = rdma_netlink::netns_mode().context("read the mode back by RDMA netlink")?;
    if is != mode {
        bail!("the mode is {is} after {mode} was set");
    }
    Ok(())
}

/// The network namespaces that were found: `shown` by the kernel, and those of `units`.
fn found(shown: Vec<String>, units: io::Result<Vec<String>>) -> String {
    match units {
        Ok(units) => format!("found: {}", present(shown.into_iter().chain(units))),
        Err(e) => format!("found: {}; those of units are unknown: {e}", present(shown)),
    }
}

/// The running units that have a network namespace of their own, as systemd tells them. Of
/// their processes it is shown to a tracer alone (CAP_SYS_PTRACE), which the boot is not.
fn units() -> io::Result<Vec<String>> {
    let args = [
        "show",
        "--no-pager",
        "--property=Id,ActiveState,PrivateNetwork,NetworkNamespacePath",
        "--",
        "*.service",
    ];
    let until = clock::now() + SYSTEMD;
    let text = process::output_until("systemctl", &args, until)?.into_text("systemctl", &args)?;
    Ok(units_in(&text))
}

fn units_in(text: &str) -> Vec<String> {
    let unit = |block: &str| {
        let value = |key: &str| block.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
        let state = value("ActiveState")?;
        let is_there = !matches!(state, "inactive" | "failed");
        let private = value("PrivateNetwork") == Some("yes");
        let path = value("NetworkNamespacePath").filter(|path| !path.is_empty());
        let why = match (private, path) {
            (true, _) => "PrivateNetwork=yes".to_owned(),
            (false, Some(path)) => format!("NetworkNamespacePath={path}"),
            (false, None) => return None,
        };
        is_there.then(|| value("Id").map(|id| format!("{id} ({why})")))?
    };
    text.split("\n\n").filter_map(unit).collect()
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

    #[test]
    fn units_with_a_namespace_that_run_are_named() {
        let text = "\
Id=a.service
ActiveState=active
PrivateNetwork=yes
NetworkNamespacePath=

Id=b.service
ActiveState=inactive
PrivateNetwork=yes
NetworkNamespacePath=

Id=c.service
ActiveState=activating
PrivateNetwork=no
NetworkNamespacePath=/run/netns/x

Id=d.service
ActiveState=active
PrivateNetwork=no
NetworkNamespacePath=
";
        let want =
            ["a.service (PrivateNetwork=yes)", "c.service (NetworkNamespacePath=/run/netns/x)"];
        assert_eq!(units_in(text), want);
    }

    #[test]
    fn that_systemd_does_not_answer_does_not_mean_that_no_unit_has_one() {
        let process = || vec!["process 7 (sleep)".to_owned()];
        let units = Ok(vec!["a.service (PrivateNetwork=yes)".to_owned()]);
        assert_eq!(
            found(process(), units),
            "found: process 7 (sleep), a.service (PrivateNetwork=yes)"
        );
        assert_eq!(found(Vec::new(), Ok(Vec::new())), "found: none");
        let late = || Err(io::Error::other("systemctl show has not answered before the timeout"));
        assert_eq!(
            found(process(), late()),
            "found: process 7 (sleep); those of units are unknown: systemctl show has not answered before the timeout"
        );
    }
}
