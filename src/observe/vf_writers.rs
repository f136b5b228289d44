//! Who else creates the VFs of a PF: files by which other programs set their number at boot.

use super::pci::PciFunction;
use crate::host::Root;

/// A folder, how the names of its files end, and what a line has that sets a number of VFs:
/// sysfsutils, systemd-tmpfiles(8), udev(7), systemd.link(5), netplan(5), NetworkManager and the
/// configuration daemon of sriov-network-operator.
const PLACES: [(&str, &str, &str); 10] = [
    ("/etc/sysfs.d", ".conf", "sriov_numvfs"),
    ("/etc/tmpfiles.d", ".conf", "sriov_numvfs"),
    ("/usr/lib/tmpfiles.d", ".conf", "sriov_numvfs"),
    ("/etc/udev/rules.d", ".rules", "sriov_numvfs"),
    ("/usr/lib/udev/rules.d", ".rules", "sriov_numvfs"),
    ("/etc/systemd/network", ".link", "SR-IOVVirtualFunctions="),
    ("/usr/lib/systemd/network", ".link", "SR-IOVVirtualFunctions="),
    ("/etc/netplan", ".yaml", "virtual-function-count:"),
    ("/etc/NetworkManager/system-connections", ".nmconnection", "total-vfs="),
    ("/etc/sriov-operator", ".yaml", "numVfs:"),
];

/// No such file is larger, bytes.
const LIMIT: u64 = 1 << 20;

/// A line of a file that sets the number of VFs of a PF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VfWriter {
    pub file: String,
    /// From 1.
    pub line: usize,
    pub text: String,
}

impl std::fmt::Display for VfWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The lines that set the number of VFs of `pf`, which such a file names by its address, a netdev
/// or its RDMA device, and what could not be read.
pub fn vf_writers(root: &Root, pf: &PciFunction) -> (Vec<VfWriter>, Vec<String>) {
    let netdevs = pf.rdma.iter().flat_map(|d| d.ports.iter().flat_map(|p| &p.netdev));
    let mut names = vec![pf.address.to_string()];
    names.extend(netdevs.map(|netdev| netdev.name.to_string()));
    names.extend(pf.rdma.iter().map(|device| device.name.to_string()));
    writers_of(root, &names)
}

fn writers_of(root: &Root, names: &[String]) -> (Vec<VfWriter>, Vec<String>) {
    let (mut writers, mut problems) = (Vec::new(), Vec::new());
    for (folder, end, key) in PLACES {
        let files = root.list_or_empty(folder).unwrap_or_else(|e| {
            problems.push(e.to_string());
            Vec::new()
        });
        for file in files.into_iter().filter(|file| file.ends_with(end)) {
            let file = format!("{folder}/{file}");
            let text = root.text(&file, LIMIT).unwrap_or_else(|e| {
                // A mask, a link to /dev/null, leads nowhere in a copied tree.
                problems.extend((!e.is_absent()).then(|| e.to_string()));
                String::new()
            });
            if !names.iter().any(|name| is_named(&text, name)) {
                continue;
            }
            let is_set = |line: &str| !line.trim_start().starts_with(['#', ';']);
            let lines = (1..).zip(text.lines()).filter(|(_, l)| l.contains(key) && is_set(l));
            let writer = |(line, text): (usize, &str)| {
                let text = text.trim().to_owned();
                VfWriter { file: file.clone(), line, text }
            };
            writers.extend(lines.map(writer));
        }
    }
    (writers, problems)
}

/// True if `name` stands in `text` as a word; a PCI address is one.
fn is_named(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    text.split(|c| !is_part(c)).any(|word| word.trim_matches(':') == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;

    #[test]
    fn a_line_for_this_pf_is_named_and_no_other() {
        let files = [
            (
                "etc/sysfs.d/vfs.conf",
                "# class/net/ib0/device/sriov_numvfs = 2\nclass/net/ib0/device/sriov_numvfs = 4\n",
            ),
            ("etc/tmpfiles.d/vfs.conf", "w /sys/class/net/ib00/device/sriov_numvfs - - - - 4\n"),
            (
                "etc/systemd/network/25-ib0.link",
                "[Match]\nOriginalName=ib0\n[Link]\nSR-IOVVirtualFunctions=4\n",
            ),
            (
                "etc/netplan/10-ib.yaml",
                "network:\n  ethernets:\n    ib0:\n      virtual-function-count: 4\n",
            ),
            ("etc/sriov-operator/x.yaml", "- pciAddress: 0000:4b:00.0\n  numVfs: 8\n"),
            (
                "etc/udev/rules.d/82-vfs.rules",
                "KERNEL==\"eth0\", ATTR{device/sriov_numvfs}=\"4\"\n",
            ),
        ];
        let dir = tree(&files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let names = ["0000:4b:00.0", "ib0", "mlx5_0"].map(str::to_owned);
        let want = [
            "/etc/sysfs.d/vfs.conf:2",
            "/etc/systemd/network/25-ib0.link:4",
            "/etc/netplan/10-ib.yaml:4",
            "/etc/sriov-operator/x.yaml:2",
        ];
        let (found, problems) = writers_of(&root, &names);
        assert_eq!(found.iter().map(VfWriter::to_string).collect::<Vec<_>>(), want);
        assert_eq!(found[0].text, "class/net/ib0/device/sriov_numvfs = 4");
        assert_eq!(problems, [""; 0]);
        // A folder in the place of a file cannot be read, which is told.
        std::fs::create_dir(dir.path().join("etc/sysfs.d/a.conf")).expect("a folder");
        let (_, problems) = writers_of(&root, &names);
        assert!(problems.len() == 1 && problems[0].contains("a.conf"), "{problems:?}");
    }
}
