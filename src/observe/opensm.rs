//! What of opensm a host has beside its units: devices for subnet managers, the packages' files.

use super::{Look, PciFunction};
use crate::config::foreign::shell;
use crate::host::Root;
use crate::names::{Guid, PortNumber, RdmaName};

pub const DEVICES: &str = "/sys/class/infiniband_mad";
/// The program's configuration by its package: Debian's, and Red Hat's and SUSE's.
pub const DEFAULTS: [&str; 2] = ["/etc/default/opensm", "/etc/sysconfig/opensm"];

/// A device for subnet managers, `issm0`.
#[derive(Debug)]
pub struct Issm {
    pub name: String,
    /// The port that a subnet manager is configured for.
    pub rdma: RdmaName,
    pub port: PortNumber,
    /// In sysfs.
    pub path: String,
}

/// The devices for subnet managers (`ib_umad_init_port()`, drivers/infiniband/core/user_mad.c), one
/// for each port. Where the planes of a port of `functions` are ports of an SMI sub-device, that has
/// them, each with the port's GUID: that of the first plane counts.
pub fn devices(look: &mut Look<'_>, functions: &[PciFunction]) -> Vec<Issm> {
    let mut found = Vec::new();
    for name in look.list(DEVICES).into_iter().filter(|name| is_issm(name)) {
        let Some((own, number)) = port_of(look, &name) else { continue };
        let Ok(target) = look.root().link_target(&format!("{DEVICES}/{name}")) else { continue };
        let path = format!("/sys/{}", target.trim_start_matches("../"));
        let (rdma, port) = hca_port(look, functions, &own, number).unwrap_or((own, number));
        found.push((number, Issm { name, rdma, port, path }));
    }
    found.sort_by_key(|(number, _)| *number);
    let mut devices: Vec<Issm> = Vec::new();
    for (_, issm) in found {
        if !devices.iter().any(|other| (&other.rdma, other.port) == (&issm.rdma, issm.port)) {
            devices.push(issm);
        }
    }
    devices
}

fn is_issm(name: &str) -> bool {
    let number = name.strip_prefix("issm").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

fn port_of(look: &mut Look<'_>, name: &str) -> Option<(RdmaName, PortNumber)> {
    let dir = format!("{DEVICES}/{name}");
    let rdma = look.parsed(&format!("{dir}/ibdev"), |text| text.parse::<RdmaName>())?;
    let port = look.parsed(&format!("{dir}/port"), |text| {
        let number = text.parse::<i64>().ok().and_then(|n| PortNumber::new(n).ok());
        number.ok_or_else(|| format!("{text:?} is not a port number"))
    })?;
    Some((rdma, port))
}

/// The port of an HCA of which `number` of `sub_device` is a plane.
fn hca_port(
    look: &Look<'_>,
    functions: &[PciFunction],
    sub_device: &RdmaName,
    number: PortNumber,
) -> Option<(RdmaName, PortNumber)> {
    let hcas = || functions.iter().flat_map(|function| &function.rdma);
    if hcas().any(|hca| hca.name == *sub_device) {
        return None;
    }
    let gid = format!("/sys/class/infiniband/{sub_device}/ports/{number}/gids/0");
    let guid = Guid::from_gid(&look.root().attribute(&gid).ok()?)?;
    let ports = hcas().flat_map(|hca| hca.ports.iter().map(move |port| (&hca.name, port)));
    let (hca, port) = ports.into_iter().find(|(_, port)| port.guid == Some(guid))?;
    Some((hca.clone(), port.number))
}

fn is_masked(root: &Root, name: &str) -> bool {
    let dirs = ["/etc/systemd/system", "/run/systemd/system"];
    dirs.iter().any(|dir| root.link_name(&format!("{dir}/{name}")).is_ok_and(|to| to == "null"))
}

/// The ports that the packages' files name: Debian's PORTS, Red Hat's GUIDS; `None` for all, or
/// for the first.
pub fn ports_of_defaults(look: &Look<'_>) -> Option<Vec<Guid>> {
    let value =
        DEFAULTS.iter().flat_map(|path| settings(look, path)).find_map(|(key, value)| {
            matches!(key.as_str(), "PORTS" | "GUIDS").then_some(value).filter(|v| !v.is_empty())
        })?;
    if value == "NONE" {
        return Some(Vec::new());
    }
    // What is no GUID may be any port.
    value.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
}

/// The assignments of a package's file.
pub fn settings(look: &Look<'_>, path: &str) -> Vec<(String, String)> {
    let text = look.root().text(path, 1 << 20).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| shell::assignment(line).ok()?);
    pairs.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// `systemctl enable ibprov-opensm.target` was done: what the rule of udev looks at.
pub fn is_enabled(root: &Root) -> bool {
    let links = ["/etc/systemd/system", "/run/systemd/system"]
        .map(|dir| format!("{dir}/multi-user.target.wants/ibprov-opensm.target"));
    links.iter().any(|link| root.is_link(link)) && !is_masked(root, "ibprov-opensm.target")
}
