//! The PCIe link of a function.

use super::pci::dir;
use crate::host::Root;
use crate::names::{PciAddress, PcieSpeed, PcieWidth};
use crate::report::degraded::PcieLink;

/// The PCIe link of `pci` and what the two ends of it can have. Reads the configuration
/// space of the function and of the port above it. A function without such a link, such as
/// a VF, shows nothing of it.
pub fn link(root: &Root, pci: PciAddress) -> PcieLink {
    let own = dir(pci);
    // The kernel resolves the link before `..`: this is the port above.
    let slot = format!("{own}/..");
    let read = |dir: &str, name: &str| root.attribute(&format!("{dir}/{name}")).ok();
    let width = |dir: &str, name: &str| PcieWidth::from_sysfs(&read(dir, name)?);
    let speed = |dir: &str, name: &str| PcieSpeed::from_sysfs(&read(dir, name)?);
    PcieLink {
        width: width(&own, "current_link_width"),
        speed: speed(&own, "current_link_speed"),
        adapter_width: width(&own, "max_link_width"),
        adapter_speed: speed(&own, "max_link_speed"),
        slot_width: width(&slot, "max_link_width"),
        slot_speed: speed(&slot, "max_link_speed"),
    }
}

/// The upstream port of the PCIe switch below which `pci` is: above it is the root port, and below
/// it the downstream port to which the function is connected.
pub fn switch(root: &Root, pci: PciAddress) -> Option<PciAddress> {
    let target = root.link_target(&dir(pci)).ok()?;
    let mut above = target.rsplit('/').skip(2);
    let upstream: PciAddress = above.next()?.parse().ok()?;
    above.next()?.parse::<PciAddress>().ok().map(|_| upstream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing;

    #[test]
    fn the_slot_is_the_device_above() {
        let slot = "sys/devices/pci0000:00/0000:00:03.0";
        let at = |dir: &str, name: &str| format!("{dir}/{name}");
        let own = format!("{slot}/0000:4b:00.0");
        let files = [
            (at(&own, "current_link_width"), "8\n"),
            (at(&own, "current_link_speed"), "16.0 GT/s PCIe\n"),
            (at(&own, "max_link_width"), "16\n"),
            (at(&own, "max_link_speed"), "32.0 GT/s PCIe\n"),
            (at(slot, "max_link_width"), "16\n"),
            (at(slot, "max_link_speed"), "16.0 GT/s PCIe\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let device = "../../../devices/pci0000:00/0000:00:03.0/0000:4b:00.0";
        let dir = testing::tree(&files, &[("sys/bus/pci/devices/0000:4b:00.0", device)]);
        let root = Root::copy_at(dir.path()).expect("root");
        let link = link(&root, "0000:4b:00.0".parse().expect("address"));
        let lost = "the PCIe width is x8, and adapter and slot are capable of x16";
        assert_eq!(link.loss().as_deref(), Some(lost));
    }

    #[test]
    fn a_switch_is_between_a_root_port_and_a_downstream_port() {
        let switch = |above: &str| {
            let device = format!("../../../devices/pci0000:00/{above}0000:4b:00.0");
            let dir = testing::tree(&[], &[("sys/bus/pci/devices/0000:4b:00.0", &device)]);
            let root = Root::copy_at(dir.path()).expect("root");
            switch(&root, "0000:4b:00.0".parse().expect("address")).map(|pci| pci.to_string())
        };
        assert_eq!(switch(""), None);
        assert_eq!(switch("0000:00:03.0/"), None);
        let below = switch("0000:00:03.0/0000:17:00.0/0000:18:04.0/");
        assert_eq!(below.as_deref(), Some("0000:17:00.0"));
    }
}
