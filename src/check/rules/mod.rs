//! One file, one topic: for each of its diagnoses the words it looks for and how it judges a boot. What they say of logs is tested by `cases.toml`.
//!
//! A new rule is a function in the file of its topic, or its row in `rules.toml` alone; and its row in
//! [`ALL`]; nothing else knows it.
//! The order of the rows is the order of findings that are equally grave and equally sure: what
//! is nearer to the root cause first.

mod adapter;
pub mod causes;
mod configuration;
mod consumers;
mod driver_regression;
mod firmware;
mod guests;
pub(super) mod messages;
mod modules_loaded;
mod modules_missing;
mod modules_refused;
mod netdevs;
mod network_services;
mod no_fault;
mod openibd;
mod opensm;
mod ordering;
mod ports;
pub(super) mod row;
mod seen;
mod services;
mod sriov;
mod subnet;
#[cfg(test)]
mod testing;
mod unexplained;
mod vf_ports;
mod vfs;
/// The lists of words in `rules.toml`, as constants.
mod words {
    include!(concat!(env!("OUT_DIR"), "/rules.rs"));
}

use std::sync::OnceLock;

// What nearly every rule uses.
use super::evidence::{Boot, Event, Kind};
use crate::model::advice::Advice;
use crate::model::common::Code;
use crate::model::finding::{Confidence, Finding, Quote, Severity};

use super::evidence::Needles;
use super::ledger::words as general;
use super::ledger::{Book, DEVICE_OF_MESSAGE};
use crate::model::pf::{DROPPED, REFUSED};
use crate::names::RDMA_MODULES_IN_TRACES;
use seen::Needs;
pub use seen::ib_netdev_in;
pub(super) use seen::rdma_module;

/// A diagnosis that can be made.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub code: Code,
    /// Words of the lines it looks at, beside those of its row in `rules.toml`.
    pub needles: Words,
    pub judge: Judge,
}

/// Groups of words.
type Words = &'static [&'static [&'static str]];

impl Rule {
    const fn host(code: Code) -> Self {
        Self { code, needles: &[], judge: Judge::Host }
    }

    const fn row(code: Code) -> Self {
        Self { code, needles: &[], judge: Judge::Row }
    }

    const fn one(code: Code, judge: fn(&Boot) -> Option<Finding>) -> Self {
        Self { code, needles: &[], judge: Judge::One(judge) }
    }

    const fn many(code: Code, judge: fn(&Boot) -> Vec<Finding>) -> Self {
        Self { code, needles: &[], judge: Judge::Many(judge) }
    }

    const fn rest(code: Code, judge: fn(&Book<'_>, &[Finding]) -> Vec<Finding>) -> Self {
        Self { code, needles: &[], judge: Judge::Rest(judge) }
    }

    const fn last(code: Code, judge: fn(&Book<'_>, &[Finding]) -> Vec<Finding>) -> Self {
        Self { code, needles: &[], judge: Judge::Last(judge) }
    }

    const fn looking_for(self, needles: Words) -> Self {
        Self { needles, ..self }
    }

    /// All words of the lines it looks at.
    fn words(&self) -> impl Iterator<Item = &'static str> {
        self.needles.iter().copied().flatten().copied().chain(row::row(self.code).words())
    }
}

/// How a rule judges.
#[derive(Debug, Clone, Copy)]
pub enum Judge {
    /// By its row in `rules.toml` alone.
    Row,
    /// By what was seen in one boot.
    One(fn(&Boot) -> Option<Finding>),
    /// The same, where there may be several findings.
    Many(fn(&Boot) -> Vec<Finding>),
    /// By the host itself, where it was looked at: `predict` does.
    Host,
    /// By what was seen and what the rules of the first kinds found there.
    Rest(fn(&Book<'_>, &[Finding]) -> Vec<Finding>),
    /// The same, once each finding has the lines of its causes too.
    Last(fn(&Book<'_>, &[Finding]) -> Vec<Finding>),
}

/// Every rule.
pub static ALL: &[Rule] = &[
    Rule::host(Code::ConfigurationInvalid),
    Rule::row(Code::OpenibdSkipsInboxModules),
    Rule::one(Code::OpenibdDisabled, openibd::openibd_disabled),
    Rule::one(Code::OrderingCycle, ordering::ordering_cycle),
    Rule::many(Code::StartWaitDeadlock, ordering::start_wait_deadlock),
    Rule::one(Code::ModuleLoadInterrupted, modules_loaded::module_load_interrupted),
    Rule::row(Code::ModuleSignatureRefused),
    Rule::one(Code::ModuleSymbolMismatch, modules_refused::module_symbol_mismatch),
    Rule::host(Code::RequiredUnitMissing),
    Rule::row(Code::RunFull),
    Rule::one(Code::ModuleMissingForKernel, modules_missing::module_missing_for_kernel),
    Rule::one(Code::ModuleMissingInInitrd, modules_missing::module_missing_in_initrd),
    Rule::one(Code::InitrdWithoutFabric, modules_missing::initrd_without_fabric),
    Rule::one(Code::ModuleIsADummy, modules_missing::module_is_a_dummy),
    Rule::one(Code::ModuleWrongDriver, modules_missing::module_wrong_driver),
    Rule::row(Code::ModuleParameter),
    Rule::one(Code::ModuleDenied, modules_refused::module_denied),
    Rule::many(Code::FirmwareTooOld, firmware::firmware_too_old),
    Rule::one(Code::FirmwareResetPending, firmware::firmware_reset_pending),
    Rule::many(Code::FirmwareFatal, firmware::firmware_fatal),
    Rule::many(Code::FwInitTimeout, firmware::fw_init_timeout),
    Rule::one(Code::DriverUnloadUnderRemoteRoot, adapter::driver_unload_under_remote_root),
    Rule::row(Code::PciBarUnassigned),
    Rule::row(Code::SelinuxDeniesSubnet),
    Rule::one(Code::VfProbeFailed, vfs::vf_probe_failed),
    Rule::rest(Code::DriverRegression, driver_regression::driver_regression)
        .looking_for(&[RDMA_MODULES_IN_TRACES]),
    Rule::one(Code::UdevTimeout, adapter::udev_timeout),
    Rule::one(Code::ModuleInitSlow, modules_refused::module_init_slow),
    Rule::one(Code::SriovNotEnabledFw, sriov::sriov_not_enabled_fw),
    Rule::one(Code::SriovMmio, sriov::sriov_mmio),
    Rule::one(Code::SriovNotExposedKernel, sriov::sriov_not_exposed_kernel),
    Rule::one(Code::IommuOff, guests::iommu_off),
    Rule::one(Code::VfNotProbed, vfs::vf_not_probed),
    Rule::one(Code::SriovVfUnreachable, sriov::sriov_vf_unreachable),
    Rule::many(Code::VfSettingDropped, vfs::vf_setting_dropped).looking_for(&[&[DROPPED]]),
    Rule::many(Code::VfSettingRefused, vfs::vf_setting_refused).looking_for(&[&[REFUSED]]),
    Rule::one(Code::VfGuidZero, vf_ports::vf_guid_zero),
    Rule::one(Code::VfGuidDuplicate, vf_ports::vf_guid_duplicate),
    Rule::one(Code::VfPolicyDown, vf_ports::vf_policy_down),
    Rule::one(Code::UmadZeroGuid, subnet::umad_zero_guid),
    Rule::one(Code::OpensmSkipped, opensm::opensm_skipped),
    Rule::row(Code::OpensmPartitionsRejected),
    Rule::row(Code::OpensmOtherPort),
    Rule::one(Code::OpensmMisconfigured, opensm::opensm_misconfigured),
    Rule::one(Code::OpensmVirtDisabled, opensm::opensm_virt_disabled),
    Rule::host(Code::VfPortNotActive),
    Rule::one(Code::NoSubnetManager, subnet::no_subnet_manager),
    Rule::one(Code::LinkDownCable, ports::link_down_cable),
    Rule::one(Code::ModuleNotLoaded, modules_loaded::module_not_loaded),
    Rule::one(Code::OpenibdFailed, openibd::openibd_failed),
    Rule::row(Code::OpenibdAliasBroken),
    Rule::one(Code::MlnxInterfaceMgrArmed, openibd::mlnx_interface_mgr_armed),
    Rule::host(Code::PortNotReady),
    Rule::one(Code::PortNotActive, ports::port_not_active),
    Rule::many(Code::PkeyMissing, subnet::pkey_missing),
    Rule::host(Code::PortDegraded),
    Rule::one(Code::NotAsExpected, configuration::not_as_expected),
    Rule::host(Code::NetdevLate),
    Rule::many(Code::OrderingMissing, ordering::ordering_missing),
    Rule::one(Code::ModuleLoadOrder, modules_loaded::module_load_order),
    Rule::one(Code::ModuleLoadedLate, modules_loaded::module_loaded_late)
        .looking_for(&[seen::NOT_FOUND]),
    Rule::one(Code::IfupSkippedOsBooting, openibd::ifup_skipped_os_booting),
    Rule::one(Code::NetdevRenamed, netdevs::netdev_renamed),
    Rule::one(Code::IpoibParentDown, netdevs::ipoib_parent_down),
    Rule::many(Code::NetworkStackBug, network_services::network_stack_bug),
    Rule::one(Code::IfcfgMismatch, network_services::ifcfg_mismatch),
    Rule::one(Code::IbprovSwitchedOff, configuration::ibprov_switched_off),
    Rule::many(Code::InterfaceNotOnline, subnet::interface_not_online),
    Rule::one(Code::NetdevAdminDown, netdevs::netdev_admin_down),
    Rule::one(Code::AutostartGuestOnVf, guests::autostart_guest_on_vf),
    Rule::one(Code::VmBeforeVf, guests::vm_before_vf),
    Rule::many(Code::ConsumerBeforeAddress, consumers::consumer_before_address),
    Rule::one(Code::MountBeforeIpoib, consumers::mount_before_ipoib),
    Rule::one(Code::MountBeforeNetwork, consumers::mount_before_network)
        .looking_for(&[words::mount_before_ipoib::UNREACHABLE]),
    Rule::one(Code::WaitOnlineTimeout, services::wait_online_timeout),
    Rule::many(Code::RdmaServiceFailed, services::rdma_service_failed),
    Rule::one(Code::PcieLinkReduced, adapter::pcie_link_reduced),
    Rule::rest(Code::Unexplained, unexplained::unexplained).looking_for(&[DEVICE_OF_MESSAGE]),
    Rule::last(Code::HarmlessWarning, messages::harmless_warning),
    Rule::one(Code::InputLeftOut, no_fault::input_left_out),
    Rule::rest(Code::Healthy, no_fault::healthy),
    Rule::rest(Code::NotInfiniband, no_fault::not_infiniband),
    Rule::rest(Code::Unknown, no_fault::unknown),
];

/// The rule with `code`.
pub fn rule(code: Code) -> Option<&'static Rule> {
    ALL.iter().find(|r| r.code == code)
}

/// The needles of every rule, for [`super::evidence::Intake`].
pub fn needles() -> &'static Needles {
    static NEEDLES: OnceLock<Needles> = OnceLock::new();
    NEEDLES.get_or_init(|| {
        Needles::with(
            ALL.iter().flat_map(|rule| rule.words()).chain(messages::needles()),
            general::words().needles.iter().chain(&general::words().phrases).map(String::as_str),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Intake;
    use super::testing::{ca, severity};
    use super::{ALL, Code, Severity};

    /// The tools that send management datagrams, through the first port that is up unless they
    /// are told which.
    const MAD_TOOLS: [&str; 5] = ["ibportstate", "sminfo", "saquery", "smpquery", "perfquery"];

    /// Each use of one of these tools as a command in `text`.
    fn mad_commands(text: &str) -> impl Iterator<Item = &str> {
        let starts = MAD_TOOLS.into_iter().flat_map(|tool| text.match_indices(tool));
        starts.map(|(at, _)| text.get(at..).unwrap_or_default())
    }

    /// So many are more than are kept of one needle.
    #[test]
    fn a_message_is_found_behind_a_thousand_that_have_a_word_of_it() {
        for (flood, line, code) in [
            (
                "LNet: 88:0:(o2iblnd_cb.c:3467:kiblnd_check_conns()) Timed out tx for 10.0.0.2@o2ib",
                "LNetError: 105-4:0:(api-ni.c:2100:lnet_startup()) Error -100 starting up LNI o2ib",
                Code::MountBeforeIpoib,
            ),
            ("cache entry is not loaded", "ib_umad module is not loaded", Code::ModuleNotLoaded),
            ("cache entry is not loaded", "ib_umad: module not loaded", Code::ModuleNotLoaded),
            (
                "opened /dev/infiniband/uverbs0",
                "open(/dev/infiniband/rdma_cm): No such file or directory",
                Code::ModuleNotLoaded,
            ),
        ] {
            let flood: Vec<String> = (0..1001).map(|n| format!("[ {n}.0] {flood} {n}")).collect();
            let mut lines: Vec<&str> = flood.iter().map(String::as_str).collect();
            let line = format!("[ 2000.0] {line}");
            lines.push(&line);
            let told = severity(code, &lines);
            assert_eq!(told, Some(Severity::Error), "{line}");
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
            let advice: Vec<String> = finding.advice.iter().map(|a| a.step.to_string()).collect();
            let advice = advice.join("\n");
            assert!(advice.contains(command), "{code}: {advice}");
            for command in mad_commands(&advice) {
                assert!(command.contains(" -C ") && command.contains(" -P "), "{code}: {command}");
            }
        }
    }

    #[test]
    fn each_code_has_a_page_and_one_rule_at_most() {
        for code in Code::ALL {
            let (name, page) = (code.name(), code.page());
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{name}");
            assert!(page.starts_with(&format!("# {name}\n\n{}\n\n", code.meaning())), "{name}");
            assert!(code.meaning().ends_with('.') && code.meaning().len() <= 90, "{name}");
            assert!(page.len() > 250, "{name} has no page to speak of");
            for line in page.lines().skip(3) {
                let is_command = line.starts_with("    ");
                assert!(line.len() <= 80 || is_command, "{name}: {line}");
                for command in mad_commands(line).filter(|_| is_command) {
                    assert!(command.contains(" -C DEVICE -P PORT"), "{name}: {command}");
                }
            }
            let rules: Vec<_> = ALL.iter().filter(|rule| rule.code == *code).collect();
            let mut needles = rules.iter().flat_map(|rule| rule.words());
            assert!(rules.len() <= 1 && needles.all(|n| n.len() >= 3), "{name}");
        }
    }
}
