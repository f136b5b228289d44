//! What the GUID plan has to know of the host: its name and number, and of
//! each function who it is and whether it can have VFs.
//!
//! `sriov_numvfs` is not read (see [`super::pf::addresses`]); `sriov_totalvfs` takes no
//! lock (`drivers/pci/iov.c`).

use super::{Look, Observed, PciFunction};
use crate::config::Config;
use crate::config::pins::Pins;
use crate::host::{ReadError, Root};
use crate::names::host_number::is_placeholder;
use crate::names::{Guid, HostNumber, IfName, LinkLayer, Machine, PINS_PATH, PciAddress, RdmaName};

/// What the GUID plan has to know of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanHost {
    /// Its name, by systemd's order (`hostname_setup()`): `systemd.hostname=` on the
    /// kernel command line, then `/etc/hostname`, then what the kernel has.
    pub name: Option<String>,
    /// `name` is the kernel's alone: DHCP or a person may have set it, and it may be
    /// another in the next minute and at the next boot.
    pub name_is_transient: bool,
    /// What `/etc/hostname` says, where the kernel command line overrules it.
    pub overruled_name: Option<String>,
    /// What the file that the configuration names for its number holds, or why
    /// it cannot be read; `None` if the configuration names none.
    pub number_file: Option<Result<String, String>>,
    /// The machine, as far as its firmware says and this process may read it.
    pub machine: Machine,
    /// Its functions that could be HCAs, VFs too.
    pub functions: Vec<PlanFunction>,
}

impl PlanHost {
    /// The name by which the host is told from others: a fixed one, which is not one that
    /// every image has. What DHCP gives is not known early in boot.
    pub fn own_name(&self) -> Option<&str> {
        let name = self.name.as_deref().filter(|_| !self.name_is_transient);
        name.filter(|name| !is_placeholder(name))
    }
}

/// A function that could be a PF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFunction {
    pub pci: PciAddress,
    /// It can be an HCA: by its PCI class, its driver, or its RDMA device.
    pub hca: bool,
    /// Its PF, if it is a VF.
    pub physfn: Option<PciAddress>,
    /// Its RDMA devices' names; none until its driver has registered one.
    pub rdma: Vec<RdmaName>,
    /// Its first port's netdev, once udev has given it its name.
    pub netdev: Option<IfName>,
    pub node_guid: Option<Guid>,
    /// The GUIDs of its InfiniBand ports, by number.
    pub port_guids: Vec<Guid>,
    /// Its VFs may have a second port with a GUID: mlx4 with two InfiniBand ports, or with none yet.
    pub vfs_have_port2: bool,
    /// How many VFs it can have; `None` without an SR-IOV capability.
    pub total_vfs: Option<u16>,
    /// All its ports speak Ethernet, or its PCI class says so.
    pub ethernet: bool,
    pub nvswitch: bool,
    /// It is in an IOMMU group, so its VFs can be handed to a VM.
    pub iommu: bool,
}

/// Looks at the host. What cannot be read is noted in `look`.
pub fn plan_host(look: &mut Look<'_>, observed: &Observed, config: &Config) -> PlanHost {
    let functions = observed.functions.iter().map(|f| function(look, f)).collect();
    let number_file = match &config.host_number {
        HostNumber::File(path) => Some(number_file(look.root, path).map_err(|e| e.to_string())),
        HostNumber::Name(_) | HostNumber::Given(_) => None,
    };
    let given = name_on_command_line(look);
    let file = name_in_file(look);
    let name_is_transient = given.is_none() && file.is_none();
    let (name, overruled_name) = match (given, file) {
        (Some(given), file) => (Some(given), file),
        (None, Some(file)) => (Some(file), None),
        (None, None) => (look.attribute("/proc/sys/kernel/hostname"), None),
    };
    let name = name.filter(|name| !name.is_empty() && name != "(none)");
    let machine = machine(look.root);
    PlanHost { name, name_is_transient, overruled_name, number_file, machine, functions }
}

/// What DMI says of the machine. Only root may read it, and not every machine has it; what is
/// not known proves nothing.
fn machine(root: &Root) -> Machine {
    let dmi = |name| root.attribute(&format!("/sys/class/dmi/id/{name}")).ok();
    Machine::of(dmi("product_uuid").as_deref(), dmi("board_serial").as_deref())
}

/// A number with its white space is never longer, bytes.
const NUMBER_FILE_LIMIT: u64 = 4096;

/// What the file at `path`, from which the host's number is taken, holds.
///
/// # Errors
/// It cannot be read.
pub fn number_file(root: &Root, path: &str) -> Result<String, ReadError> {
    root.text(path, NUMBER_FILE_LIMIT)
}

/// The pins of the host below `root`; none without a file.
///
/// # Errors
/// Why the file cannot be read, for people, without its path.
pub fn pins(root: &Root) -> Result<Pins, String> {
    match root.text(PINS_PATH, PINS_LIMIT) {
        Ok(text) => Pins::parse(&text),
        Err(e) if e.is_absent() => Ok(Pins::default()),
        Err(e) => {
            let why = e.to_string();
            Err(why.strip_prefix(&format!("{PINS_PATH}: ")).map_or(why.clone(), str::to_owned))
        }
    }
}

/// Room for tens of thousands of VFs, bytes.
const PINS_LIMIT: u64 = 4 << 20;

/// `systemd.hostname=` on the kernel command line; the last one, if it is a name.
fn name_on_command_line(look: &mut Look<'_>) -> Option<String> {
    let line = look.attribute("/proc/cmdline")?;
    let value = |word: &str| {
        let value = word.trim_matches('"').strip_prefix("systemd.hostname=")?;
        Some(value.trim_matches('"').to_owned())
    };
    let name = line.split_whitespace().filter_map(value).next_back()?;
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (!name.is_empty() && name.len() <= 64 && name.chars().all(is_good)).then_some(name)
}

/// What `/etc/hostname` says; `None` where there is none, or no name in it.
pub fn name_in_file(look: &mut Look<'_>) -> Option<String> {
    let comment = |line: &&str| !line.starts_with('#') && !line.is_empty();
    let text = look.attribute("/etc/hostname")?;
    text.lines().map(str::trim).find(comment).map(str::to_owned)
}

fn function(look: &mut Look<'_>, function: &PciFunction) -> PlanFunction {
    let dir = format!("/sys/bus/pci/devices/{}", function.address);
    let ports = || function.rdma.iter().flat_map(|device| &device.ports);
    let speaks = |layer| ports().all(|port| port.link_layer == layer);
    let total_vfs = look.parsed(&format!("{dir}/sriov_totalvfs"), |text| {
        text.parse::<u16>().map_err(|_| format!("{text:?} is not a number of VFs"))
    });
    PlanFunction {
        pci: function.address,
        hca: function.may_be_hca(),
        physfn: function.physfn,
        rdma: function.rdma.iter().map(|device| device.name.clone()).collect(),
        netdev: ports()
            .next()
            .and_then(|port| port.netdev.as_ref())
            .filter(|netdev| netdev.named)
            .map(|netdev| netdev.name.clone()),
        node_guid: function.rdma.iter().find_map(|device| device.node_guid),
        port_guids: ports().filter_map(|port| port.guid).filter(|guid| !guid.is_zero()).collect(),
        vfs_have_port2: function.driver.as_deref() == Some("mlx4_core")
            && ports().filter(|port| port.link_layer == LinkLayer::InfiniBand).count() != 1,
        total_vfs,
        ethernet: match ports().next() {
            Some(_) => speaks(LinkLayer::Ethernet),
            None => function.class.is_ethernet(),
        },
        nvswitch: function.manages_nvswitch(),
        iommu: look.root.is_link(&format!("{dir}/iommu_group")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::tree;

    /// Name, whether it is transient, and what it overrules.
    fn name(files: &[(&str, &str)]) -> (Option<String>, bool, Option<String>) {
        let dir = tree(files, &[]);
        let root = Root::copy_at(dir.path()).expect("root");
        let mut look = Look::new(&root);
        let host = plan_host(&mut look, &Observed::default(), &Config::default());
        (host.name, host.name_is_transient, host.overruled_name)
    }

    #[test]
    fn the_kernel_command_line_comes_first_and_the_kernels_name_last() {
        let some = |name: &str| Some(name.to_owned());
        let (line, file, kernel) = (
            ("proc/cmdline", "ro systemd.hostname=x1 quiet systemd.hostname=\"node17\"\n"),
            ("etc/hostname", "# the image's\n\ngolden01\n"),
            ("proc/sys/kernel/hostname", "dhcp9\n"),
        );
        assert_eq!(name(&[line, file, kernel]), (some("node17"), false, some("golden01")));
        assert_eq!(name(&[line, kernel]), (some("node17"), false, None));
        assert_eq!(name(&[file, kernel]), (some("golden01"), false, None));
        assert_eq!(name(&[kernel]), (some("dhcp9"), true, None));
        assert_eq!(name(&[("proc/sys/kernel/hostname", "(none)\n")]), (None, true, None));
        // As systemd has it, what is no name is not looked at.
        let bad = ("proc/cmdline", "systemd.hostname=node/17 systemd.hostname=\n");
        assert_eq!(name(&[bad, file]), (some("golden01"), false, None));
    }
}
