//! What of the fabric a boot has: PCI functions, and the RDMA devices, ports and netdevs of each.

use std::collections::{BTreeMap, BTreeSet};

use super::has_word_of_fabric;
use crate::check::evidence::Boot;
use crate::check::evidence::event::{Event, Kind, function};
use crate::check::evidence::fold::lines::driven;
use crate::check::evidence::relevance::{objects_in, rdma_device_in};
use crate::names::PciAddress;

#[derive(Debug, Default)]
pub struct Entities {
    /// PCI functions of the fabric, and netdevs that bear a name of their own.
    names: BTreeSet<Box<str>>,
    /// The function of each RDMA device and netdev, where a line tells it.
    functions: BTreeMap<Box<str>, Box<str>>,
    /// PCI functions whose drivers are none of the fabric.
    others: BTreeSet<Box<str>>,
}

impl Entities {
    pub fn of(boot: &Boot) -> Self {
        let mut all = Self::default();
        for event in &boot.events {
            all.learn(event);
        }
        for object in boot.fold().objects().filter(|object| object.is_port()) {
            let device = object.name.split(' ').next().unwrap_or_default();
            if let Some(adapter) = &object.adapter {
                all.names.insert(adapter.as_str().into());
                all.functions.insert(device.into(), adapter.as_str().into());
            }
            all.names.insert(device.into());
        }
        for port in &boot.state.ports {
            all.names.insert(port.device.as_str().into());
            if let Some(function) = port.function {
                let function: Box<str> = function.to_string().into();
                all.names.insert(function.clone());
                all.functions.insert(port.device.as_str().into(), function);
            }
        }
        for function in boot.state.pci.iter().filter(|function| function.is_infiniband()) {
            // lspci leaves out the domain where all have the same.
            let address = match function.address.len() {
                7 => format!("0000:{}", function.address),
                _ => function.address.clone(),
            };
            all.names.insert(address.into());
        }
        for netdev in boot.state.netdevs.iter().filter(|netdev| netdev.infiniband) {
            all.names.insert(netdev.name.as_str().into());
        }
        all
    }

    fn learn(&mut self, event: &Event) {
        let text = &*event.text;
        if let Kind::PciFunction { address, class, .. } = &event.kind
            && class.starts_with("0207")
        {
            self.names.insert(address.clone());
        }
        let driven = driven(text).filter(|_| event.from_kernel());
        let device = rdma_device_in(text);
        // Half of an Ethernet adapter is the fabric's if its RDMA device is named beside it.
        let is_named = device.is_some()
            || text.contains("(15b3:")
            || !event.from_kernel() && has_word_of_fabric(text);
        let named = || function(text).filter(|_| is_named);
        let Some(address) = driven.or_else(named) else {
            let other = function(text).filter(|at| event.from_kernel() && has_driver(text, at));
            self.others.extend(other.map(Box::from));
            return;
        };
        self.names.insert(address.into());
        if let Some(device) = device {
            self.functions.insert(device.into(), address.into());
        }
        let netdev = match &event.kind {
            Kind::NetdevRenamed { to, .. } => Some(&**to),
            _ => text.split_once(address).and_then(|(_, rest)| netdev_before(rest)),
        };
        if let Some(netdev) = netdev {
            self.names.insert(netdev.into());
            self.functions.insert(netdev.into(), address.into());
        }
    }

    /// The objects of the fabric that `text` names.
    pub fn in_text<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let is_ours =
            |name: &&str| name.parse::<PciAddress>().is_err() || self.names.contains(*name);
        objects_in(text, &self.names).filter(is_ours)
    }

    /// The object of the fabric of which `text` tells: the first, and in a path of sysfs the one to
    /// which it leads.
    pub fn named<'a>(&'a self, text: &'a str) -> Option<&'a str> {
        let is_path = |word: &str| word.contains("devices/pci") || word.contains("devices-pci");
        text.split(' ').find_map(|word| match is_path(word) {
            true => self.in_text(word).last(),
            false => self.in_text(word).next(),
        })
    }

    /// True if `text` names a PCI function that is none of the fabric.
    pub fn has_other(&self, text: &str) -> bool {
        let is_other = |at: &str| self.others.contains(at) && !self.names.contains(at);
        function(text).is_some_and(is_other)
    }

    /// The PCI function that `name` is, or is of; else itself.
    pub fn path<'a>(&'a self, name: &'a str) -> &'a str {
        self.functions.get(name).map_or(name, |function| function)
    }
}

/// True if `text` begins with a driver and the function at `address`: `ixgbe 0000:04:00.0: ...`.
fn has_driver(text: &str, address: &str) -> bool {
    /// What of the kernel names a function too, whoever drives it.
    const BUS: [&str; 4] = ["pci", "pcieport", "vfio-pci", "DMAR:"];
    let driver = text.split(' ').next().unwrap_or_default();
    let rest = text.get(driver.len()..).unwrap_or_default().trim_start();
    !BUS.contains(&driver) && rest.starts_with(address)
}

/// The netdev in ` ens3f1np1: Link up`, as a driver names it behind its function.
fn netdev_before(rest: &str) -> Option<&str> {
    let name = rest.strip_prefix(' ')?.split(':').next()?;
    let is_name = !name.is_empty() && name.len() < 16 && !name.contains(char::is_whitespace);
    is_name.then_some(name)
}
