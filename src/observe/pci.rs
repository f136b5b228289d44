//! The functions on the PCI bus and their PCIe links.

use std::cell::OnceCell;

use nix::libc::ARPHRD_ETHER;

use super::Look;
use super::modules::Aliases;
use super::rdma::{self, RdmaDevice};
use super::vpd::{self, Product};
use crate::host::Root;
use crate::model::{NarrowLink, PcieLink};
use crate::names::{
    IB_DRIVERS, IsVf, MELLANOX, PciAddress, PcieSpeed, PcieWidth, PortType, displayed, is_vf_id,
};

/// The directory of a PCI function.
pub fn dir(pci: PciAddress) -> String {
    format!("/sys/bus/pci/devices/{pci}")
}

/// A PCI class: base class, subclass, programming interface, as sysfs
/// `class` prints it (`0x020700`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PciClass(pub u32);

impl PciClass {
    /// InfiniBand controller (0x0207), fabric controller (0x0208: hfi1) or
    /// the older serial bus InfiniBand (0x0c06: mthca, qib); PCI Code and ID
    /// Assignment Specification.
    pub const fn is_infiniband(self) -> bool {
        matches!(self.0 >> 8, 0x0207 | 0x0208 | 0x0c06)
    }

    const fn is_network(self) -> bool {
        self.0 >> 16 == 0x02
    }

    pub const fn is_ethernet(self) -> bool {
        self.0 >> 8 == 0x0200
    }
}

displayed!(PciClass, Self(class) => "0x{class:06x}");

/// A PCI function that is, or could be, an InfiniBand HCA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciFunction {
    pub address: PciAddress,
    pub vendor: u16,
    pub device: u16,
    pub class: PciClass,
    /// What modprobe resolves to its driver.
    pub modalias: String,
    /// The driver that `modules.alias` resolves it to, if that one has an
    /// InfiniBand side.
    pub ib_driver: Option<&'static str>,
    /// The driver bound to it, or probing it right now: the kernel makes the
    /// link before it calls the probe (`really_probe()`, `drivers/base/dd.c`).
    pub driver: Option<String>,
    /// The only driver that may bind it, where somebody said so. It is not read with the
    /// rest: its reader waits for the device lock (`driver_override_show()`,
    /// drivers/pci/pci-sysfs.c), which a probe holds, and a removal that hangs, after which
    /// the link to the driver is gone already (`__device_release_driver()`,
    /// drivers/base/dd.c). A child is asked for it (`crate::workers`), for a function
    /// without a driver that udev has finished with.
    pub driver_override: Option<String>,
    /// The PF, if this is a VF of a PF on this host.
    pub physfn: Option<PciAddress>,
    /// Its auxiliary device for RDMA, which makes udev load the RDMA half:
    /// `mlx5_core.rdma.0` (Linux 5.11 and later), `mlx4_core.ib.0` (6.7).
    pub rdma_auxiliary: Option<String>,
    /// Its RDMA devices: none until the driver has registered one.
    pub rdma: Vec<RdmaDevice>,
    /// The types of its ports, by number, if its driver is mlx4_core; `None` for one that is
    /// not decided.
    pub mlx4_types: Vec<Option<PortType>>,
    /// What it is for, by its product data, where these decide and were read.
    pub product: Option<Product>,
}

impl PciFunction {
    /// The function at `address`, of which nothing else is known.
    const fn at(address: PciAddress, class: PciClass) -> Self {
        Self {
            address,
            vendor: 0,
            device: 0,
            class,
            modalias: String::new(),
            ib_driver: None,
            driver: None,
            driver_override: None,
            physfn: None,
            rdma_auxiliary: None,
            rdma: Vec::new(),
            mlx4_types: Vec::new(),
            product: None,
        }
    }

    /// Its ports, each with its RDMA device.
    pub fn ports(&self) -> impl Iterator<Item = (&RdmaDevice, &rdma::Port)> {
        self.rdma.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)))
    }

    /// True where product data decide what it is for: an InfiniBand PF of this vendor.
    pub fn is_told_by_product_data(&self) -> bool {
        self.class.is_infiniband() && self.vendor == MELLANOX && self.physfn.is_none()
    }

    /// True where `driver_override` decides whether its ports are expected: it has no driver,
    /// is no VF of this host and may be an HCA.
    pub fn is_told_by_override(&self) -> bool {
        let may_be_hca = self.class.is_infiniband() || self.ib_driver.is_some();
        self.driver.is_none() && self.physfn.is_none() && may_be_hca
    }

    /// It can be an HCA: by its PCI class, its driver, or its RDMA device.
    pub fn may_be_hca(&self) -> bool {
        self.class.is_infiniband() || self.ib_driver.is_some() || !self.rdma.is_empty()
    }

    /// Whether it is a VF: of a PF of this host by its link, else by its device number.
    pub const fn is_vf(&self) -> IsVf {
        match self.physfn {
            Some(pf) => IsVf::OfThisHost(pf),
            None if is_vf_id(self.vendor, self.device) => IsVf::PassedThrough,
            None => IsVf::No,
        }
    }

    /// A ConnectX-3 whose ports are all Ethernet ports.
    pub fn is_all_ethernet(&self) -> bool {
        !self.mlx4_types.is_empty() && self.mlx4_types.iter().all(|of| *of == Some(PortType::Eth))
    }

    /// True for a function that manages an NVSwitch and is no HCA of a fabric.
    pub fn manages_nvswitch(&self) -> bool {
        self.product == Some(Product::NvSwitchManagement)
    }
}

#[cfg(test)]
impl PciFunction {
    /// A ConnectX-6 in InfiniBand mode that nothing has happened to.
    pub(crate) fn connectx6() -> Self {
        Self {
            vendor: 0x15b3,
            device: 0x101b,
            modalias: "pci:v000015B3d0000101B".to_owned(),
            ib_driver: Some("mlx5_core"),
            ..Self::at("0000:4b:00.0".parse().expect("address"), PciClass(0x02_0700))
        }
    }
}

const DEVICES: &str = "/sys/bus/pci/devices";

/// The functions that may be of an HCA; without `with_vfs`, of VFs of this host no more than that
/// they are there.
pub(super) fn functions(
    look: &mut Look<'_>,
    aliases: &OnceCell<Aliases>,
    kernel: &str,
    with_vfs: bool,
) -> Vec<PciFunction> {
    let mut functions = Vec::new();
    for name in look.list(DEVICES) {
        let Ok(address) = name.parse::<PciAddress>() else {
            look.problems.insert(format!("{DEVICES}: {name:?} is not a PCI address"));
            continue;
        };
        let dir = format!("{DEVICES}/{name}");
        let Some(class) = look.parsed(&format!("{dir}/class"), hex).map(PciClass) else {
            continue;
        };
        if !class.is_infiniband() && !class.is_network() {
            continue;
        }
        let physfn = look.link_name(&format!("{dir}/physfn")).and_then(|n| n.parse().ok());
        if physfn.is_some() && !with_vfs {
            functions.push(PciFunction { physfn, ..PciFunction::at(address, class) });
            continue;
        }
        let mut function = function(look, &dir, address, class);
        function.ib_driver = bound_ib_driver(&function).unwrap_or_else(|| {
            let aliases = aliases.get_or_init(|| {
                let path = format!("/lib/modules/{kernel}/modules.alias");
                let reading = look.root.text(&path, 64 << 20);
                look.note(reading).map(|t| Aliases::parse(&t)).unwrap_or_default()
            });
            aliases.driver(&function.modalias)
        });
        functions.push(function);
    }
    functions
}

/// What `modules.alias` would say, where the driver that is bound says it too: a
/// file of a megabyte is not read on a host whose cards all have their drivers.
/// Some Ethernet card's driver is no InfiniBand driver; what drives a Mellanox card
/// instead of its own (vfio-pci) tells nothing.
fn bound_ib_driver(function: &PciFunction) -> Option<Option<&'static str>> {
    let bound = function.driver.as_deref()?;
    let ib_driver = IB_DRIVERS.into_iter().find(|d| *d == bound);
    let is_other = function.class.is_ethernet() && function.vendor != MELLANOX;
    (ib_driver.is_some() || is_other).then_some(ib_driver)
}

/// All but `ib_driver`.
fn function(look: &mut Look<'_>, dir: &str, address: PciAddress, class: PciClass) -> PciFunction {
    let modalias = look.attribute(&format!("{dir}/modalias")).unwrap_or_default();
    let id = |look: &mut Look<'_>, name: &str| {
        let value = look.parsed(&format!("{dir}/{name}"), hex);
        value.and_then(|v| u16::try_from(v).ok()).unwrap_or_default()
    };
    let link = |look: &mut Look<'_>, name: &str| {
        let reading = look.root.link_name(&format!("{dir}/{name}"));
        look.note(reading)
    };
    let driver = link(look, "driver");
    let physfn = link(look, "physfn").and_then(|n| n.parse().ok());
    let rdma = rdma::devices(look, dir);
    let is_auxiliary =
        |entry: &String| driver.as_ref().is_some_and(|driver| is_rdma_auxiliary(entry, driver));
    let rdma_auxiliary =
        if rdma.is_empty() { look.list(dir).into_iter().find(is_auxiliary) } else { None };
    let mlx4_types = match driver.as_deref() {
        Some("mlx4_core") if physfn.is_none() => mlx4_types(look, dir),
        _ => Vec::new(),
    };
    let mut function = PciFunction {
        vendor: id(look, "vendor"),
        device: id(look, "device"),
        modalias,
        driver,
        physfn,
        rdma_auxiliary,
        rdma,
        mlx4_types,
        ..PciFunction::at(address, class)
    };
    if function.is_told_by_product_data() {
        function.product = vpd::kept(look, address, &function.modalias);
    }
    function
}

/// The types of the ports of a ConnectX-3: the driver knows them without asking. A copy may have
/// the netdevs alone, of which mlx4_en has one for each Ethernet port.
fn mlx4_types(look: &mut Look<'_>, dir: &str) -> Vec<Option<PortType>> {
    let of = |number| look.attribute(&format!("{dir}/mlx4_port{number}"));
    let texts = [1, 2].map(of).into_iter().map_while(|text| text);
    let types: Vec<_> = texts.map(|text| PortType::from_sysfs(&text)).collect();
    if !types.is_empty() || look.root.is_live() {
        return types;
    }
    let netdevs = rdma::netdevs(look, dir, ARPHRD_ETHER);
    netdevs.iter().map(|_| Some(PortType::Eth)).collect()
}

/// A function's entry in sysfs is the auxiliary device that its `driver` made for RDMA.
pub(super) fn is_rdma_auxiliary(entry: &str, driver: &str) -> bool {
    let of_driver = entry.strip_prefix(driver);
    of_driver.is_some_and(|rest| rest.starts_with(".rdma.") || rest.starts_with(".ib."))
}

fn hex(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u32::from_str_radix(digits, 16).map_err(|_| format!("{text:?} is not a hexadecimal number"))
}

/// The PCIe link of `pci` and what the two ends of it can have. Reads the configuration
/// space of the function and of the port above it. A function without such a link, such as
/// a VF, shows nothing of it.
pub fn pcie_link(root: &Root, pci: PciAddress) -> PcieLink {
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
        narrow_above: above(root, pci).chunks_exact(2).find_map(|ends| {
            let [above, below] = *ends else { return None };
            let of = |name| Some((width(&dir(above), name)?, width(&dir(below), name)?));
            let (one, other) = of("current_link_width")?;
            let (can, other_can) = of("max_link_width")?;
            let can_be = can.min(other_can);
            (one == other && one < can_be).then_some(NarrowLink {
                above,
                below,
                width: one,
                can_be,
            })
        }),
    }
}

/// The bridges above `pci`, the root port first. Of a switch both ports are among them, so that
/// every other pair of neighbours is the two ends of a link.
fn above(root: &Root, pci: PciAddress) -> Vec<PciAddress> {
    let target = root.link_target(&dir(pci)).unwrap_or_default();
    let bridges = target.rsplit('/').skip(1).map_while(|part| part.parse().ok());
    let mut bridges: Vec<PciAddress> = bridges.collect();
    bridges.reverse();
    bridges
}

/// The upstream port of the PCIe switch below which `pci` is: above it is the root port, and below
/// it the downstream port to which the function is connected.
pub fn switch(root: &Root, pci: PciAddress) -> Option<PciAddress> {
    let above = above(root, pci);
    above.len().checked_sub(2).filter(|at| *at > 0).and_then(|at| above.get(at).copied())
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
        let link = pcie_link(&root, "0000:4b:00.0".parse().expect("address"));
        let lost = "the PCIe width is x8, and adapter and slot are capable of x16";
        assert_eq!(link.loss().as_deref(), Some(lost));
    }

    /// Root port, switch, switch, slot: the first and the second pair are the ends of links.
    #[test]
    fn a_link_above_the_slot_is_judged_by_both_its_ends() {
        let bridges = ["00:03.0", "17:00.0", "18:04.0", "19:00.0", "1a:01.0"];
        let narrow = |widths: [(&str, &str); 5]| {
            let mut dir = "sys/devices/pci0000:00".to_owned();
            let mut files = Vec::new();
            let mut links = Vec::new();
            for (bridge, (current, max)) in bridges.iter().zip(widths) {
                dir = format!("{dir}/0000:{bridge}");
                files.push((format!("{dir}/current_link_width"), current.to_owned()));
                files.push((format!("{dir}/max_link_width"), max.to_owned()));
                links.push((format!("sys/bus/pci/devices/0000:{bridge}"), format!("/{dir}")));
            }
            links.push((
                "sys/bus/pci/devices/0000:4b:00.0".to_owned(),
                format!("/{dir}/0000:4b:00.0"),
            ));
            let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&**p, &**t)).collect();
            let links: Vec<(&str, &str)> = links.iter().map(|(p, t)| (&**p, &**t)).collect();
            let dir = testing::tree(&files, &links);
            let root = Root::copy_at(dir.path()).expect("root");
            let link = pcie_link(&root, "0000:4b:00.0".parse().expect("address")).narrow_above;
            link.map(|link| link.to_string())
        };
        let (whole, half, small) = (("16", "16"), ("8", "16"), ("8", "8"));
        let told = |ends: &str| {
            Some(format!(
                "above the slot, the PCIe width between {ends} is x8, and both are capable of x16"
            ))
        };
        assert_eq!(narrow([whole; 5]), None);
        assert_eq!(
            narrow([half, half, whole, whole, whole]),
            told("0000:00:03.0 and 0000:17:00.0")
        );
        assert_eq!(
            narrow([whole, whole, half, half, whole]),
            told("0000:18:04.0 and 0000:19:00.0")
        );
        assert_eq!(narrow([small, half, whole, whole, whole]), None, "a slot of eight lanes");
        assert_eq!(narrow([whole, half, half, whole, whole]), None, "the two sides of a switch");
        assert_eq!(narrow([whole, whole, whole, whole, half]), None, "the slot");
        assert_eq!(narrow([half, ("", "16"), whole, whole, whole]), None, "one end states none");
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
