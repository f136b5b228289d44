//! Names that udev gives interfaces by port GUID or PCI slot, and VFs by PCI address.
//!
//! By rules of udev, which every udev has obeyed for this since 2012. `systemd.link(5)`
//! can match a whole address only, and of an IPoIB address the first 4 bytes change at
//! every probe; and a `[Match]` that an older systemd does not understand fits every
//! netdev there is (`Property=` before 243).

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::udev_rules::{self, own_path};
use crate::names::{Guid, IfName, PciAddress, PortNumber, RdmaName, VfNames};

/// The file of the rules for names by port.
pub const FILE: &str = "61-ibprov-names.rules";
/// The file of the rules for RDMA devices of adapters.
const RDMA: &str = "61-ibprov-rdma.rules";
/// How the names of the files of the rules for VFs begin; a PF's address and `.rules` follow.
const VFS: &str = "61-ibprov-vfs-";

/// The port whose interface has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedPort {
    PortGuid(Guid),
    /// By the PCI address of its function, and its number; without one, every port of the
    /// function is meant.
    Pci(PciAddress, Option<PortNumber>),
}

/// The file, path and content, that makes udev give these names; none for none.
pub fn file(names: &[(NamedPort, IfName)]) -> Option<(PathBuf, String)> {
    let mut rules = "# Written by ibprov boot from ibprov.toml.\n".to_owned();
    for (port, name) in names {
        // P_Key children have the same GUID and no PCI function above them. What has a
        // name by now is not named by 80-net-setup-link.rules.
        let which = match port {
            NamedPort::PortGuid(guid) => {
                format!("SUBSYSTEMS==\"pci\", ATTR{{address}}==\"*:{}\"", guid.bytes())
            }
            NamedPort::Pci(pci, port) => {
                // dev_port counts from 0 (`ipoib_intf_init()`).
                let port = port
                    .map(|port| format!("ATTR{{dev_port}}==\"{}\", ", i64::from(port.get()) - 1));
                format!("{}SUBSYSTEMS==\"pci\", KERNELS==\"{pci}\"", port.unwrap_or_default())
            }
        };
        rules.push_str(&format!(
            "ACTION!=\"remove\", SUBSYSTEM==\"net\", ATTR{{type}}==\"32\", {which}, NAME=\"{name}\"\n"
        ));
    }
    (!names.is_empty()).then(|| (udev_rules::path(FILE), rules))
}

/// Make udev give these names, and no others of ours, to what appears from now
/// on. Nothing is done if it does so already.
///
/// # Errors
/// The path that failed, with the system's answer, or udev could not be told.
pub fn establish(names: &[(NamedPort, IfName)]) -> Result<(), String> {
    udev_rules::put(FILE, file(names).map(|(_, content)| content).as_deref())
}

/// Make udev give the RDMA devices at these addresses these names, and no others, from now on.
/// Nothing is done if it does so already.
///
/// # Errors
/// As [`establish`].
pub fn establish_for_rdma<'a>(
    names: impl Iterator<Item = (PciAddress, &'a RdmaName)>,
) -> Result<(), String> {
    let of = |name: &RdmaName| VfNames { netdev: None, rdma: Some(name.clone()) };
    let names: Vec<_> = names.map(|(pci, name)| (pci, of(name))).collect();
    if names.is_empty() {
        return udev_rules::put(RDMA, None);
    }
    udev_rules::put(RDMA, Some(&of_functions(&names, &own_path()?)))
}

/// The name of the file of the rules for the VFs of a PF.
fn vf_rules(pf: PciAddress) -> String {
    format!("{VFS}{pf}.rules")
}

/// The rules that make udev give the functions at these addresses these names; `program` is
/// ibprov itself.
pub fn of_functions(names: &[(PciAddress, VfNames)], program: &str) -> String {
    let mut rules = "# Written by ibprov from ibprov.toml.\n".to_owned();
    for (pci, names) in names {
        if let Some(name) = &names.netdev {
            rules.push_str(&format!(
                "ACTION!=\"remove\", SUBSYSTEM==\"net\", ATTR{{type}}==\"32\", ATTR{{dev_port}}==\"0\", SUBSYSTEMS==\"pci\", KERNELS==\"{pci}\", NAME=\"{name}\"\n"
            ));
        }
        // NAME= is for netdevs alone. By the VF's address, since rdma-core's rule
        // (60-rdma-persistent-naming.rules) may have renamed it right before. That has ended
        // by now, so what has the name keeps it: who has bound the VF has given it the name,
        // and no program needs to start.
        if let Some(name) = &names.rdma {
            rules.push_str(&format!(
                "ACTION==\"add\", SUBSYSTEM==\"infiniband\", SUBSYSTEMS==\"pci\", KERNELS==\"{pci}\", TEST!=\"/sys/bus/pci/devices/{pci}/infiniband/{name}\", RUN+=\"{program} name-rdma {pci} {name}\"\n"
            ));
        }
    }
    rules
}

/// Make udev give the VFs of `pf` at these addresses these names, and no others, from
/// now on. Nothing is done if it does so already.
///
/// # Errors
/// As [`establish`].
pub fn establish_for_vfs(pf: PciAddress, names: &[(PciAddress, VfNames)]) -> Result<(), String> {
    if names.iter().all(|(_, names)| *names == VfNames::default()) {
        return udev_rules::put(&vf_rules(pf), None);
    }
    udev_rules::put(&vf_rules(pf), Some(&of_functions(names, &own_path()?)))
}

/// Have udev give no names any more to VFs of other PFs than `planned`, which are those that
/// the configuration may mean.
///
/// # Errors
/// As [`establish`].
pub fn forget_vfs_but_of(planned: &BTreeSet<PciAddress>) -> Result<(), String> {
    for file in udev_rules::files() {
        let pf = file.strip_prefix(VFS).and_then(|rest| rest.strip_suffix(".rules"));
        let pf: Option<PciAddress> = pf.and_then(|pf| pf.parse().ok());
        if pf.is_some_and(|pf| !planned.contains(&pf)) {
            udev_rules::put(&file, None)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_with_a_port_guid_or_a_slot() {
        let guid = NamedPort::PortGuid("0002:c903:000e:8acd".parse().expect("GUID"));
        let pci = "0000:18:00.0".parse().expect("address");
        let port = NamedPort::Pci(pci, PortNumber::new(2).ok());
        let name = |text: &str| text.parse().expect("name");
        let names =
            [(guid, name("ib7")), (NamedPort::Pci(pci, None), name("rail0")), (port, name("b"))];
        let (path, rules) = file(&names).expect("a file");
        assert_eq!(path.display().to_string(), "/run/udev/rules.d/61-ibprov-names.rules");
        expect_test::expect![[r#"
            # Written by ibprov boot from ibprov.toml.
            ACTION!="remove", SUBSYSTEM=="net", ATTR{type}=="32", SUBSYSTEMS=="pci", ATTR{address}=="*:00:02:c9:03:00:0e:8a:cd", NAME="ib7"
            ACTION!="remove", SUBSYSTEM=="net", ATTR{type}=="32", SUBSYSTEMS=="pci", KERNELS=="0000:18:00.0", NAME="rail0"
            ACTION!="remove", SUBSYSTEM=="net", ATTR{type}=="32", ATTR{dev_port}=="1", SUBSYSTEMS=="pci", KERNELS=="0000:18:00.0", NAME="b"
        "#]]
        .assert_eq(&rules);
        assert_eq!(file(&[]), None);
    }

    #[test]
    fn a_vf_is_named_by_its_address() {
        let names = VfNames { netdev: "ibp1s0v0".parse().ok(), rdma: "ibp1s0v0".parse().ok() };
        let pci: PciAddress = "0000:01:00.1".parse().expect("address");
        expect_test::expect![[r#"
            # Written by ibprov from ibprov.toml.
            ACTION!="remove", SUBSYSTEM=="net", ATTR{type}=="32", ATTR{dev_port}=="0", SUBSYSTEMS=="pci", KERNELS=="0000:01:00.1", NAME="ibp1s0v0"
            ACTION=="add", SUBSYSTEM=="infiniband", SUBSYSTEMS=="pci", KERNELS=="0000:01:00.1", TEST!="/sys/bus/pci/devices/0000:01:00.1/infiniband/ibp1s0v0", RUN+="/usr/sbin/ibprov name-rdma 0000:01:00.1 ibp1s0v0"
        "#]]
        .assert_eq(&of_functions(&[(pci, names)], "/usr/sbin/ibprov"));
    }
}
