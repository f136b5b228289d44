//! What udev has stored of a netdev: the properties that its rules gave it.
//!
//! On the running system libudev is asked, which finds them in `/run/udev/data`. For a
//! netdev it reads its `uevent` file too. That is no lock to wait for, not even with the
//! kernels that take the device's lock there (see [`super::udev`]): a netdev has no
//! driver of its own, so none sleeps under the lock, and its parent's is not taken.
//! libudev knows no other root than `/`, so in a copied tree the record itself is read:
//! lines `E:KEY=VALUE`, and `I:` with the time (systemd, `device_read_db_internal()`,
//! `src/libsystemd/sd-device/sd-device.c`).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use nix::errno::Errno;
use udev::Device;

use super::root::{ReadError, Root};
use crate::names::IfName;

/// When udevd first finished with the device.
pub const USEC_INITIALIZED: &str = "USEC_INITIALIZED";

/// A device's properties by name.
pub type Properties = BTreeMap<String, String>;

/// The properties of the netdev that has this name and index; `None` while udevd has
/// not finished with it, and if there is none.
///
/// # Errors
/// They cannot be read.
pub fn of_netdev(root: &Root, name: &IfName, index: u32) -> Result<Option<Properties>, ReadError> {
    if root.is_live() {
        return asked(name, index);
    }
    match root.attribute(&format!("/run/udev/data/n{index}")) {
        Ok(record) => Ok(Some(parsed(&record))),
        Err(e) if e.is_absent() => Ok(None),
        Err(e) => Err(e),
    }
}

fn asked(name: &IfName, ifindex: u32) -> Result<Option<Properties>, ReadError> {
    let path = format!("/sys/class/net/{name}");
    let device = match Device::from_syspath(Path::new(&path)) {
        Ok(device) => device,
        Err(e) => {
            let errno = Errno::from_raw(e.raw_os_error().unwrap_or(nix::libc::EIO));
            let e = ReadError::System { path, errno };
            return if e.is_absent() { Ok(None) } else { Err(e) };
        }
    };
    // Another netdev may have taken the name since the index was read.
    let same = device.property_value("IFINDEX") == Some(OsStr::new(&ifindex.to_string()));
    if !same || !device.is_initialized() {
        return Ok(None);
    }
    let properties = device.properties().filter_map(|property| {
        Some((property.name().to_str()?.to_owned(), property.value().to_str()?.to_owned()))
    });
    Ok(Some(properties.collect()))
}

fn parsed(record: &str) -> Properties {
    let property = |line: &str| match line.split_once(':')? {
        ("I", usec) => Some((USEC_INITIALIZED.to_owned(), usec.to_owned())),
        ("E", property) => {
            property.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
        }
        _ => None,
    };
    record.lines().filter_map(property).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "tests write what udevd would")]

    use super::*;
    use crate::host::testing::{in_own_network, tree};

    const RECORD: &str =
        "I:1221000\nE:ID_RENAMING=1\nE:ID_NET_NAME=v0\nG:systemd\nQ:systemd\nV:1\n";

    /// What both ways give for lo, which has the index 1, with `record` stored of it.
    fn both(record: &str) -> [Properties; 2] {
        let lo = "lo".parse().expect("name");
        let live = in_own_network(|| {
            assert_eq!(of_netdev(&Root::live(), &lo, 1), Ok(None), "before udevd is done");
            std::fs::create_dir_all("/run/udev/data").expect("directory");
            std::fs::write("/run/udev/data/n1", record).expect("record");
            assert_eq!(of_netdev(&Root::live(), &lo, 2), Ok(None), "another netdev");
            of_netdev(&Root::live(), &lo, 1).expect("live").expect("record")
        });
        let dir = tree(&[("run/udev/data/n1", record)], &[]);
        let copy = Root::copy_at(dir.path()).expect("root");
        [live, of_netdev(&copy, &lo, 1).expect("copy").expect("record")]
    }

    #[test]
    fn libudev_and_the_record_say_the_same() {
        let stored = [("ID_NET_NAME", "v0"), ("ID_RENAMING", "1"), (USEC_INITIALIZED, "1221000")];
        for properties in both(RECORD) {
            let of_rules = |key: &str| key.starts_with("ID_") || key == USEC_INITIALIZED;
            let found: Vec<_> = properties
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .filter(|(key, _)| of_rules(key))
                .collect();
            assert_eq!(found, stored);
        }
    }

    #[test]
    fn what_is_not_there_has_no_properties() {
        let none = "none".parse().expect("name");
        let dir = tree(&[("run/udev/control", "")], &[]);
        let copy = Root::copy_at(dir.path()).expect("root");
        assert_eq!(of_netdev(&copy, &none, 7), Ok(None));
        in_own_network(|| assert_eq!(of_netdev(&Root::live(), &none, 7), Ok(None)));
    }
}
