//! Settings in the firmware of adapters: what mstconfig and mlxconfig print, how a setting
//! stands, what was written before, and what the host shows of it without any tool.

pub mod answer;
pub mod hindrance;
pub mod judge;
pub mod node;
pub mod record;
pub mod task;

use crate::names::FirmwareName;

/// Settings of a BlueField that tell whether its own system owns the firmware's settings.
pub const CPU_MODEL: &str = "INTERNAL_CPU_MODEL";
pub const CPU_OFFLOAD: &str = "INTERNAL_CPU_OFFLOAD_ENGINE";

/// The settings that are shown of an adapter of which none is configured, as far as it has
/// them; those of ports for the first `ports`.
pub fn shown(ports: u8) -> Vec<FirmwareName> {
    const WHOLE: [&str; 5] = [
        FirmwareName::SRIOV_EN,
        FirmwareName::NUM_OF_VFS,
        "FPP_EN",
        "NUM_OF_PF",
        FirmwareName::PER_PF,
    ];
    const OF_PORT: [&str; 5] = [
        "LINK_TYPE",
        "KEEP_ETH_LINK_UP",
        "KEEP_IB_LINK_UP",
        "KEEP_LINK_UP_ON_BOOT",
        "SRIOV_IB_ROUTING_MODE",
    ];
    let of_ports =
        (1..=ports).flat_map(|port| OF_PORT.map(|name| format!("{name}_P{port}").parse()));
    WHOLE.into_iter().map(str::parse).chain(of_ports).flatten().collect()
}
