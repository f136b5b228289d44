//! The virtual machine lane: Debian's own kernel and systemd in QEMU, with
//! simulated HCAs. `cargo test --test vm -- --test-threads=8`, as root: more
//! threads than machines run at a time, since tests that share a boot wait together.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops at the first thing that is not as it should be, and runs other programs"
)]
#![allow(dead_code, reason = "the bed is shared by two lanes, neither of which needs all of it")]

mod again;
#[path = "../bed/mod.rs"]
mod bed;
mod campaigns;
mod card;
mod card_enhanced;
mod card_knobs;
mod card_nvswitch;
mod card_opensm;
mod check;
mod consumers;
mod deadline;
mod drivers;
mod early_drivers;
mod expected;
mod firmware;
mod guest_times;
mod guests;
mod iface_daemons;
mod iface_ifupdown;
mod iface_rough;
mod iface_sysconfig;
mod images;
mod late_rdma;
mod machine;
mod migration;
mod modules;
mod netns;
mod netplan;
mod not_enabled;
mod ofed_rules;
mod online;
mod plain;
mod port_type;
mod rails;
mod rdma_core;
mod read_only;
mod roce;
mod scale;
mod scale_guests;
mod seed;
mod sick;
mod soft_roce;
mod vf_faults;
mod vf_kills;
mod vf_many;
mod vf_mlx4;
mod vf_netns;
mod vf_plan;
mod vf_reload;
mod vf_untold;
mod vf_use;
