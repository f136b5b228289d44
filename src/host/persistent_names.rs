#![allow(clippy::disallowed_methods, reason = "files of udev's that are ours to write")]

//! Names that udev gives interfaces by port GUID or PCI slot, and VFs by PCI address.
//!
//! By rules of udev, which every udev has obeyed for this since 2012. `systemd.link(5)`
//! can match a whole address only, and of an IPoIB address the first 4 bytes change at
//! every probe; and a `[Match]` that an older systemd does not understand fits every
//! netdev there is (`Property=` before 243).

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{clock, process};
use crate::names::{Guid, IfName, PciAddress, PortNumber, VfNames};

/// The file of the rules for names by port.
pub const FILE: &str = "61-ibprov-names.rules";
const RULES: &str = "/run/udev/rules.d/61-ibprov-names.rules";
/// Where ibprov has written .link files for this in former releases.
const LINKS: &str = "/run/systemd/network";
const PREFIX: &str = "60-ibprov-";

/// The port whose interface has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedPort {
    /// By its port GUID.
    PortGuid(Guid),
    /// By the PCI address of its function, and its number; without one, every port of the
    /// function is meant.
    Pci(PciAddress, Option<PortNumber>),
}

/// The file, path and content, that makes udev give these names; none for none.
#[must_use]
pub fn file(names: &[(NamedPort, IfName)]) -> Option<(PathBuf, String)> {
    let mut rules = "# Written by ibprov boot from ibprov.toml.\n".to_owned();
    for (port, name) in names {
        // P_Key children have the same GUID and no PCI function above them. What has a
        // name by now is not named by 80-net-setup-link.rules.
        let which = match port {
            NamedPort::PortGuid(guid) => {
                let tail = guid.value().to_be_bytes().map(|b| format!("{b:02x}")).join(":");
                format!("SUBSYSTEMS==\"pci\", ATTR{{address}}==\"*:{tail}\"")
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
    (!names.is_empty()).then(|| (PathBuf::from(RULES), rules))
}

/// Make udev give these names, and no others of ours, to what appears from now
/// on. Nothing is done if it does so already.
///
/// # Errors
/// The path that failed, with the system's answer, or udev could not be told.
pub fn establish(names: &[(NamedPort, IfName)]) -> Result<(), String> {
    let wanted = file(names);
    let mut changed = false;
    let failed = |path: &Path, e: &io::Error| format!("{}: {}", path.display(), super::answer(e));
    let ours = |path: &Path| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        name.starts_with(PREFIX) && name.ends_with(".link")
    };
    let there = fs::read_dir(LINKS).into_iter().flatten().flatten().map(|e| e.path());
    let stale = there.filter(|path| ours(path)).chain([PathBuf::from(RULES)]);
    for path in stale.filter(|path| wanted.iter().all(|(w, _)| w != path)) {
        match fs::remove_file(&path) {
            Ok(()) => changed = true,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(&path, &e)),
        }
    }
    if let Some((path, content)) = wanted
        && !fs::read_to_string(&path).is_ok_and(|old| old == content)
    {
        changed = true;
        let dir = path.parent().unwrap_or(Path::new("/run"));
        fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
        fs::write(&path, content).map_err(|e| failed(&path, &e))?;
    }
    if changed { tell_udev() } else { Ok(()) }
}

/// The file of the rules for the VFs of a PF.
fn vf_rules(pf: PciAddress) -> PathBuf {
    PathBuf::from(format!("/run/udev/rules.d/61-ibprov-vfs-{pf}.rules"))
}

/// The rules that make udev give the VFs at these addresses these names; `program` is
/// ibprov itself.
#[must_use]
pub fn of_vfs(names: &[(PciAddress, VfNames)], program: &str) -> String {
    let mut rules = "# Written by ibprov apply from ibprov.toml.\n".to_owned();
    for (pci, names) in names {
        if let Some(name) = &names.netdev {
            rules.push_str(&format!(
                "ACTION!=\"remove\", SUBSYSTEM==\"net\", ATTR{{type}}==\"32\", ATTR{{dev_port}}==\"0\", SUBSYSTEMS==\"pci\", KERNELS==\"{pci}\", NAME=\"{name}\"\n"
            ));
        }
        // NAME= is for netdevs alone. By the VF's address, since rdma-core's rule
        // (60-rdma-persistent-naming.rules) may have renamed it right before.
        if let Some(name) = &names.rdma {
            rules.push_str(&format!(
                "ACTION==\"add\", SUBSYSTEM==\"infiniband\", SUBSYSTEMS==\"pci\", KERNELS==\"{pci}\", RUN+=\"{program} name-rdma {pci} {name}\"\n"
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
    let path = vf_rules(pf);
    let failed = |path: &Path, e: &io::Error| format!("{}: {}", path.display(), super::answer(e));
    if names.iter().all(|(_, names)| *names == VfNames::default()) {
        return match fs::remove_file(&path) {
            Ok(()) => tell_udev(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(failed(&path, &e)),
        };
    }
    let content = of_vfs(names, &own_path()?);
    if fs::read_to_string(&path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let dir = path.parent().unwrap_or(Path::new("/run"));
    fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
    fs::write(&path, content).map_err(|e| failed(&path, &e))?;
    tell_udev()
}

/// The path of ibprov itself, for a rule of udev.
pub(super) fn own_path() -> Result<String, String> {
    let program = fs::read_link("/proc/self/exe")
        .map_err(|e| format!("/proc/self/exe: {}", super::answer(&e)))?;
    let is_tame = |b: u8| b.is_ascii_alphanumeric() || b"/_.-".contains(&b);
    let program = program.to_str().filter(|text| text.bytes().all(is_tame));
    program
        .map(str::to_owned)
        .ok_or("ibprov's own path has a character that a rule of udev cannot have".to_owned())
}

/// Have udevd read its rules: by itself it looks for new files every 3 s only.
pub(super) fn tell_udev() -> Result<(), String> {
    let args = ["control", "--reload"];
    let until = clock::monotonic_usec() + 5_000_000;
    let told =
        process::output_until("udevadm", &args, until).and_then(|o| o.into_text("udevadm", &args));
    told.map(drop).map_err(|e| e.to_string())
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
        assert_eq!(path.display().to_string(), RULES);
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
            # Written by ibprov apply from ibprov.toml.
            ACTION!="remove", SUBSYSTEM=="net", ATTR{type}=="32", ATTR{dev_port}=="0", SUBSYSTEMS=="pci", KERNELS=="0000:01:00.1", NAME="ibp1s0v0"
            ACTION=="add", SUBSYSTEM=="infiniband", SUBSYSTEMS=="pci", KERNELS=="0000:01:00.1", RUN+="/usr/sbin/ibprov name-rdma 0000:01:00.1 ibp1s0v0"
        "#]]
        .assert_eq(&of_vfs(&[(pci, names)], "/usr/sbin/ibprov"));
    }
}
