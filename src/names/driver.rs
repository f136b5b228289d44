/// The driver that keeps a VF for a virtual machine.
pub const VFIO: &str = "vfio-pci";

/// Drivers that keep a VF for a virtual machine: vfio-pci, and the kernel's own
/// variant for mlx5 VFs, which newer libvirt and administrators take for live
/// migration (drivers/vfio/pci/mlx5/main.c). Neither reads a GUID.
const VFIO_DRIVERS: [&str; 2] = [VFIO, "mlx5_vfio_pci"];

/// The driver keeps a VF for a virtual machine.
pub fn is_vfio(driver: &str) -> bool {
    VFIO_DRIVERS.contains(&driver)
}

/// The driver keeps a function for somebody else than this host: a virtual machine,
/// or one of Xen's (xen-pciback), or nobody yet (pci-stub). What the last two hold is
/// handed over as well, and yet it is not where a plan that says vfio-pci wants it.
pub fn keeps_for_others(driver: &str) -> bool {
    is_vfio(driver) || ["pci-stub", "xen-pciback"].contains(&driver)
}
