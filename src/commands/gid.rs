//! `ibprov gid`: the index of a GID, for scripts that would otherwise contain a number.

use std::io::Write as _;

use anyhow::{Result, bail};

use super::print;
use crate::cli::{Format, GidArgs};
use crate::host::{Root, terminal};
use crate::model::hardware::GidReport;
use crate::names::{GidKind, IfName, LinkLayer, PortNumber, RdmaName, Target, Words as _};
use crate::observe::{Observed, Observer, link, rxe, target};

/// Print the index of the entry of a GID table that `args` describe.
///
/// # Errors
/// There is no such port; standard output is gone.
pub fn run(args: &GidArgs, root: &Root, format: Format) -> Result<u8> {
    let observed = Observer::new(root).look([], &Default::default());
    let (rdma, port) = found(&args.port, root, &observed)?;
    let path = format!("/sys/class/infiniband/{rdma}/ports/{port}");
    let device = observed.functions.iter().find(|f| f.rdma.iter().any(|d| d.name == rdma));
    // In a copied tree the class may be missing.
    let dir = match device {
        Some(function) => link::port_dir(function.address, &rdma, port),
        None => path,
    };
    let layer = match root.attribute(&format!("{dir}/link_layer")).as_deref() {
        Ok("Ethernet") => LinkLayer::Ethernet,
        _ => LinkLayer::InfiniBand,
    };
    let mut gids = link::gids_in(root, &dir, layer);
    let entries = gids.len();
    gids.retain(|gid| {
        args.kind.is_none_or(|kind| gid.kind == kind)
            && args.address.is_none_or(|address| match address {
                std::net::IpAddr::V4(ipv4) => gid.ipv4 == Some(ipv4),
                std::net::IpAddr::V6(ipv6) => gid.gid == ipv6,
            })
    });
    let kind = args.kind.map(|kind: GidKind| format!("of type {}", kind.typed()));
    let address = args.address.map(|address| format!("for {address}"));
    let wanted: Vec<String> = [kind, address].into_iter().flatten().collect();
    let wanted = if wanted.is_empty() { "wanted".to_owned() } else { wanted.join(" ") };
    let report = GidReport { rdma, port, wanted, gids, entries };
    let report = report.to_report();
    if format == Format::Text {
        for finding in &report.findings {
            writeln!(terminal::stderr(), "{finding}")?;
        }
    }
    print(&report, format, |_| match report.body.gids.as_slice() {
        [gid] => format!("{}\n", gid.index),
        _ => String::new(),
    })
}

/// The device and port that `target` names.
fn found(target: &Target, root: &Root, observed: &Observed) -> Result<(RdmaName, PortNumber)> {
    let meant = target::meant(target, root, observed);
    let of_functions = meant.iter().flatten().flat_map(|meant| &meant.ports);
    let mut ports: Vec<(RdmaName, PortNumber)> =
        of_functions.map(|(device, port)| (device.name.clone(), port.number)).collect();
    // Of software, such as rxe: a device without a PCI function.
    if ports.is_empty() {
        let software = |netdev: &IfName| {
            let mut devices = rxe(root, &[]).devices.into_iter();
            devices.find(|device| device.rxe_on.as_ref() == Some(netdev)).map(|device| device.name)
        };
        let (name, number) = match target {
            Target::Rdma(name, number) => (Some(name.clone()), *number),
            Target::Name(name) => (software(name).or(name.as_str().parse().ok()), None),
            Target::Pci(..) | Target::Guid(_) => (None, None),
        };
        if let Some(name) = name {
            let all = root.list_or_empty(&format!("/sys/class/infiniband/{name}/ports"));
            let numbers = all.unwrap_or_default().into_iter();
            let numbers = numbers.filter_map(|n| PortNumber::new(n.parse().ok()?).ok());
            let numbers = numbers.filter(|n| number.is_none_or(|number| number == *n));
            ports.extend(numbers.map(|n| (name.clone(), n)));
        }
    }
    match ports.as_slice() {
        [port] => Ok(port.clone()),
        [] => match meant {
            Ok(_) => bail!("{target} has no RDMA device"),
            Err(e) => Err(e.into()),
        },
        several => {
            let each: Vec<String> =
                several.iter().map(|(name, port)| format!("{name}/{port}")).collect();
            bail!("{target} has several ports, name one of {}", each.join(", "))
        }
    }
}
