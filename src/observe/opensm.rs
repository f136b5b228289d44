//! What of opensm a host has beside its units: devices for subnet managers, the packages' files.

use super::Look;
use crate::config::foreign::shell;
use crate::host::Root;
use crate::names::{Guid, PortNumber, RdmaName};

const DEVICES: &str = "/sys/class/infiniband_mad";
/// The program's configuration by its package: Debian's, and Red Hat's and SUSE's.
pub const DEFAULTS: [&str; 2] = ["/etc/default/opensm", "/etc/sysconfig/opensm"];

/// The port of the device `name` (`issm0`) for subnet managers (`ib_umad_init_port()`,
/// drivers/infiniband/core/user_mad.c).
pub fn port_of(look: &mut Look<'_>, name: &str) -> Option<(RdmaName, PortNumber)> {
    let number = name.strip_prefix("issm")?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let dir = format!("{DEVICES}/{name}");
    let rdma = look.parsed(&format!("{dir}/ibdev"), |text| text.parse::<RdmaName>())?;
    let port = look.parsed(&format!("{dir}/port"), |text| {
        let number = text.parse::<i64>().ok().and_then(|n| PortNumber::new(n).ok());
        number.ok_or_else(|| format!("{text:?} is not a port number"))
    })?;
    Some((rdma, port))
}

/// The ports that have such a device, each with the path of the device in sysfs.
pub fn ports(look: &mut Look<'_>) -> Vec<(RdmaName, PortNumber, String)> {
    let names = look.list(DEVICES);
    let of = |name: &String| {
        let (rdma, port) = port_of(look, name)?;
        let target = look.root().link_target(&format!("{DEVICES}/{name}")).ok()?;
        Some((rdma, port, format!("/sys/{}", target.trim_start_matches("../"))))
    };
    names.iter().filter_map(of).collect()
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
