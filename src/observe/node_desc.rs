//! The node description of an RDMA device, by which subnet managers and `ibnetdiscover`
//! show a node, and what rdma-ndd of rdma-core would set.

use crate::host::{Root, unit_links};
use crate::names::{PciAddress, RdmaName};
use crate::report::hardware::NodeDescription;

/// How long a description can be, bytes (`IB_DEVICE_NODE_DESC_MAX`), and how much of it
/// rdma-ndd uses: it ends its text with a NUL.
const MOST: usize = 63;

/// The description of `device`; `None` if it cannot be read. The kernel keeps it: no firmware
/// is asked (`node_desc_show()`, drivers/infiniband/core/sysfs.c).
pub fn node_description(
    root: &Root,
    pci: PciAddress,
    device: &RdmaName,
) -> Option<NodeDescription> {
    let path = format!("{}/infiniband/{device}/node_desc", super::pf::dir(pci));
    let text = root.attribute(&path).ok()?;
    Some(NodeDescription { text, expected: expected(root, device) })
}

/// What rdma-ndd sets, if it is active.
fn expected(root: &Root, device: &RdmaName) -> Option<String> {
    // systemd's record of an active unit, a link to nothing.
    if !unit_links::is_up(root, "rdma-ndd.service") {
        return None;
    }
    let host = root.attribute("/proc/sys/kernel/hostname").ok()?;
    let host = host.split('.').next().unwrap_or_default();
    let mut format = None;
    for dir in ["/usr/lib/systemd/system", "/etc/systemd/system", "/run/systemd/system"] {
        let dir = format!("{dir}/rdma-ndd.service.d");
        for name in root.list_or_empty(&dir).unwrap_or_default() {
            let text = root.text(&format!("{dir}/{name}"), 1 << 16).unwrap_or_default();
            format = text.lines().filter_map(format_of).next_back().or(format);
        }
    }
    Some(described(format.as_deref().unwrap_or("%h %d"), host, device.as_str()))
}

/// The value of `RDMA_NDD_ND_FORMAT` that a line of a unit sets; systemd has `%%` for `%`.
fn format_of(line: &str) -> Option<String> {
    let setting = line.trim().strip_prefix("Environment=")?;
    let (before, value) = setting.split_once("RDMA_NDD_ND_FORMAT=")?;
    let end = match before.chars().last() {
        Some(quote @ ('"' | '\'')) => value.find(quote)?,
        _ => value.find(char::is_whitespace).unwrap_or(value.len()),
    };
    Some(value.get(..end)?.trim_matches(['"', '\'']).replace("%%", "%"))
}

/// `format` with its wild cards replaced, as `build_node_desc()` of rdma-ndd.c does it.
fn described(format: &str, host: &str, device: &str) -> String {
    let mut text = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        match c {
            '%' => match rest.next() {
                Some('h') => text.push_str(host),
                Some('d') => text.push_str(device),
                _ => {}
            },
            c => text.push(c),
        }
    }
    while text.len() > MOST {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_rdma_ndd_s() {
        assert_eq!(described("%h %d", "node7", "mlx5_0"), "node7 mlx5_0");
        assert_eq!(described("%d@%h%x%", "node7", "mlx5_0"), "mlx5_0@node7");
        assert_eq!(described("%h", &"n".repeat(90), "mlx5_0").len(), 63);
        for (line, want) in [
            ("Environment=\"RDMA_NDD_ND_FORMAT=%%h HCA-%%d\"", Some("%h HCA-%d")),
            ("Environment=RDMA_NDD_ND_FORMAT=%%h", Some("%h")),
            ("Environment=A=1 RDMA_NDD_ND_FORMAT=%%d B=2", Some("%d")),
            ("Environment=A=1", None),
            ("# Environment=RDMA_NDD_ND_FORMAT=%%h", None),
        ] {
            assert_eq!(format_of(line).as_deref(), want, "{line}");
        }
    }
}
