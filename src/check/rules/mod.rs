//! One file, one diagnosis: the words it looks for, how it judges a boot, its
//! page of explanation, its tests.
//!
//! A new rule is a file here, its `mod` line and its row in [`ALL`]; nothing
//! else knows it. The order of the rows is the order of findings that are
//! equally grave and equally sure: what is nearer to the root cause first.

mod autostart_guest_on_vf;
#[cfg(test)]
mod cases;
pub mod causes;
mod configuration_invalid;
mod consumer_before_address;
mod driver_regression;
mod driver_unload_under_remote_root;
mod families;
mod firmware_fatal;
mod firmware_reset_pending;
mod firmware_too_old;
mod fw_init_timeout;
mod harmless_warning;
mod healthy;
mod ibprov_switched_off;
mod ifcfg_mismatch;
mod ifup_skipped_os_booting;
mod initrd_without_fabric;
mod interface_not_online;
mod iommu_off;
mod ipoib_parent_down;
mod link_down_cable;
mod mlnx_interface_mgr_armed;
mod module_denied;
mod module_init_slow;
mod module_is_a_dummy;
mod module_load_interrupted;
mod module_load_order;
mod module_loaded_late;
mod module_missing_for_kernel;
mod module_missing_in_initrd;
mod module_not_loaded;
mod module_parameter;
mod module_signature_refused;
mod module_symbol_mismatch;
mod module_wrong_driver;
mod mount_before_ipoib;
mod mount_before_network;
mod netdev_admin_down;
mod netdev_late;
mod netdev_renamed;
mod network_stack_bug;
mod no_subnet_manager;
mod not_as_expected;
mod not_infiniband;
mod openibd_alias_broken;
mod openibd_disabled;
mod openibd_failed;
mod openibd_skips_inbox_modules;
mod opensm_misconfigured;
mod opensm_other_port;
mod opensm_partitions_rejected;
mod opensm_skipped;
mod opensm_virt_disabled;
mod ordering_cycle;
mod ordering_missing;
mod pci_bar_unassigned;
mod pcie_link_reduced;
mod pkey_missing;
mod port_degraded;
mod port_not_active;
mod port_not_ready;
mod rdma_service_failed;
mod required_unit_missing;
mod rule;
mod run_full;
mod seen;
mod selinux_denies_subnet;
mod sriov_mmio;
mod sriov_not_enabled_fw;
mod sriov_not_exposed_kernel;
mod sriov_vf_unreachable;
mod start_wait_deadlock;
mod udev_timeout;
mod umad_zero_guid;
pub mod unexplained;
mod unknown;
mod vf_guid_duplicate;
mod vf_guid_zero;
mod vf_not_probed;
mod vf_policy_down;
mod vf_port_not_active;
mod vf_probe_failed;
mod vf_setting_dropped;
mod vf_setting_refused;
mod vf_state;
mod vm_before_vf;
mod wait_online_timeout;

use std::sync::OnceLock;

// What nearly every rule uses.
use super::evidence::{Boot, Event, Kind};
use crate::report::advice::Advice;
use crate::report::common::Code;
use crate::report::finding::{Confidence, Finding, Quote, Severity};

use super::evidence::Needles;
pub use rule::{Judge, Rule};
pub use seen::ib_netdev_in;
pub(super) use seen::rdma_module;

/// Every rule.
pub const ALL: &[&Rule] = &[
    &configuration_invalid::RULE,
    &openibd_skips_inbox_modules::RULE,
    &openibd_disabled::RULE,
    &ordering_cycle::RULE,
    &start_wait_deadlock::RULE,
    &module_load_interrupted::RULE,
    &module_signature_refused::RULE,
    &module_symbol_mismatch::RULE,
    &required_unit_missing::RULE,
    &run_full::RULE,
    &module_missing_for_kernel::RULE,
    &module_missing_in_initrd::RULE,
    &initrd_without_fabric::RULE,
    &module_is_a_dummy::RULE,
    &module_wrong_driver::RULE,
    &module_parameter::RULE,
    &module_denied::RULE,
    &firmware_too_old::RULE,
    &firmware_reset_pending::RULE,
    &firmware_fatal::RULE,
    &fw_init_timeout::RULE,
    &driver_unload_under_remote_root::RULE,
    &pci_bar_unassigned::RULE,
    &selinux_denies_subnet::RULE,
    &vf_probe_failed::RULE,
    &driver_regression::RULE,
    &udev_timeout::RULE,
    &module_init_slow::RULE,
    &sriov_not_enabled_fw::RULE,
    &sriov_mmio::RULE,
    &sriov_not_exposed_kernel::RULE,
    &iommu_off::RULE,
    &vf_not_probed::RULE,
    &sriov_vf_unreachable::RULE,
    &vf_setting_dropped::RULE,
    &vf_setting_refused::RULE,
    &vf_guid_zero::RULE,
    &vf_guid_duplicate::RULE,
    &vf_policy_down::RULE,
    &umad_zero_guid::RULE,
    &opensm_skipped::RULE,
    &opensm_partitions_rejected::RULE,
    &opensm_other_port::RULE,
    &opensm_misconfigured::RULE,
    &opensm_virt_disabled::RULE,
    &vf_port_not_active::RULE,
    &no_subnet_manager::RULE,
    &link_down_cable::RULE,
    &module_not_loaded::RULE,
    &openibd_failed::RULE,
    &openibd_alias_broken::RULE,
    &mlnx_interface_mgr_armed::RULE,
    &port_not_ready::RULE,
    &port_not_active::RULE,
    &pkey_missing::RULE,
    &port_degraded::RULE,
    &not_as_expected::RULE,
    &netdev_late::RULE,
    &ordering_missing::RULE,
    &module_load_order::RULE,
    &module_loaded_late::RULE,
    &ifup_skipped_os_booting::RULE,
    &netdev_renamed::RULE,
    &ipoib_parent_down::RULE,
    &network_stack_bug::RULE,
    &ifcfg_mismatch::RULE,
    &ibprov_switched_off::RULE,
    &interface_not_online::RULE,
    &netdev_admin_down::RULE,
    &autostart_guest_on_vf::RULE,
    &vm_before_vf::RULE,
    &consumer_before_address::RULE,
    &mount_before_ipoib::RULE,
    &mount_before_network::RULE,
    &wait_online_timeout::RULE,
    &rdma_service_failed::RULE,
    &pcie_link_reduced::RULE,
    &harmless_warning::RULE,
    &unexplained::RULE,
    &healthy::RULE,
    &not_infiniband::RULE,
    &unknown::RULE,
];

/// The rule with `code`.
pub fn rule(code: Code) -> Option<&'static Rule> {
    ALL.iter().copied().find(|r| r.code == code)
}

/// The needles of every rule, for [`super::evidence::Intake`].
pub fn needles() -> &'static Needles {
    static NEEDLES: OnceLock<Needles> = OnceLock::new();
    NEEDLES.get_or_init(|| {
        Needles::with(
            ALL.iter()
                .flat_map(|rule| rule.needles.iter().copied().flatten().copied())
                .chain(families::needles()),
        )
    })
}

#[cfg(test)]
mod testing;

#[cfg(test)]
mod tests {
    use super::super::evidence::Intake;
    use super::testing::ca;
    use super::{ALL, Code};

    /// The tools that send management datagrams, through the first port that is up unless they
    /// are told which.
    const MAD_TOOLS: [&str; 5] = ["ibportstate", "sminfo", "saquery", "smpquery", "perfquery"];

    /// Each use of one of these tools as a command in `text`.
    fn mad_commands(text: &str) -> impl Iterator<Item = &str> {
        let starts = MAD_TOOLS.into_iter().flat_map(|tool| text.match_indices(tool));
        starts.map(|(at, _)| text.get(at..).unwrap_or_default())
    }

    #[test]
    fn pages_say_through_which_port_a_tool_asks() {
        for rule in ALL {
            let commands = rule.page.lines().filter(|line| line.starts_with("    "));
            for command in commands.flat_map(mad_commands) {
                assert!(command.contains(" -C DEVICE -P PORT"), "{}: {command}", rule.code);
            }
        }
    }

    #[test]
    fn advice_says_through_which_port_a_tool_asks() {
        let (down, init) = ((1, "Down", "Polling"), (2, "Initializing", "LinkUp"));
        let port = |(device, state, physical)| ca(device, "MT4123", 1, state, physical);
        for (code, text, command) in [
            (Code::LinkDownCable, port(down), "ibportstate -C mlx5_1 -P 1 -D 0 1 query"),
            (Code::NoSubnetManager, port(init), "sminfo -C mlx5_2 -P 1"),
            (
                Code::NoSubnetManager,
                "srp_daemon[4681]: SM LID is 0, maybe no SM is running".to_owned(),
                "sminfo -C DEVICE -P PORT",
            ),
            // A name that a shell would obey is none.
            (
                Code::NoSubnetManager,
                port(init).replace("mlx5_2", "mlx5;id"),
                "sminfo -C DEVICE -P 1",
            ),
            (
                Code::VfGuidDuplicate,
                "OpenSM[9]: ERR 0D01: Found duplicated node GUID".to_owned(),
                "saquery -C DEVICE -P PORT",
            ),
            (
                Code::OpensmPartitionsRejected,
                "OpenSM[9]: PARSE ERROR partition conf file line 3: bad PortGUID".to_owned(),
                "smpquery -C DEVICE -P PORT pkeys LID",
            ),
        ] {
            let mut intake = Intake::new(super::needles());
            intake.read("log", &mut text.as_bytes());
            let diagnosis = super::super::diagnose(&intake.finish());
            let finding = diagnosis.findings.iter().find(|f| f.code == code);
            let finding = finding.unwrap_or_else(|| panic!("{code}"));
            let advice: Vec<&str> = finding.advice.iter().map(|a| a.text.as_str()).collect();
            let advice = advice.join("\n");
            assert!(advice.contains(command), "{code}: {advice}");
            for command in mad_commands(&advice) {
                assert!(command.contains(" -C ") && command.contains(" -P "), "{code}: {command}");
            }
        }
    }

    #[test]
    fn every_rule_has_a_page() {
        for rule in ALL {
            let name = rule.code.name();
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{name}");
            assert!(rule.page.len() > 200, "{name} has no page to speak of");
            assert!(!rule.meaning.ends_with('.'), "{name}");
            for line in rule.page.lines() {
                assert!(line.len() <= 90, "{name}: {line}");
            }
            assert!(rule.needles.iter().copied().flatten().all(|n| n.len() >= 3), "{name}");
            assert_eq!(ALL.iter().filter(|r| r.code == rule.code).count(), 1, "{name}");
        }
    }
}
