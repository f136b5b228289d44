/// The driver that keeps a VF for a virtual machine.
pub const VFIO: &str = "vfio-pci";

/// Drivers that keep a VF for a virtual machine: vfio-pci, and the kernel's own
/// variant for mlx5 VFs, which newer libvirt and administrators take for live
/// migration (drivers/vfio/pci/mlx5/main.c). Neither reads a GUID.
const KEEPERS: [&str; 2] = [VFIO, "mlx5_vfio_pci"];

/// The driver keeps a VF for a virtual machine.
#[must_use]
pub fn is_vfio(driver: &str) -> bool {
    KEEPERS.contains(&driver)
}
