//! One file, one topic: for each of its diagnoses the words it looks for and how it judges a boot. What they say of logs is tested by `cases.toml`.
//!
//! A new rule is a constant in the file of its topic, or its row in `rules.toml` alone; and its row in
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

use std::sync::OnceLock;

// What nearly every rule uses.
use super::evidence::{Boot, Event, Kind};
use crate::model::advice::Advice;
use crate::model::common::Code;
use crate::model::finding::{Confidence, Finding, Quote, Severity};

use super::evidence::Needles;
use super::ledger::Book;
use super::ledger::words::words;
use seen::Needs;
pub use seen::ib_netdev_in;
pub(super) use seen::rdma_module;

/// A diagnosis that can be made.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub code: Code,
    /// Words of the lines it looks at and tells apart; the others are in `rules.toml`.
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

    const fn one(code: Code, judge: fn(&Boot) -> Option<Finding>, needles: Words) -> Self {
        Self { code, needles, judge: Judge::One(judge) }
    }

    const fn many(code: Code, judge: fn(&Boot) -> Vec<Finding>, needles: Words) -> Self {
        Self { code, needles, judge: Judge::Many(judge) }
    }

    const fn rest(
        code: Code,
        judge: fn(&Book<'_>, &[Finding]) -> Vec<Finding>,
        needles: Words,
    ) -> Self {
        Self { code, needles, judge: Judge::Rest(judge) }
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
}

/// Every rule.
pub const ALL: &[&Rule] = &[
    &Rule::host(Code::ConfigurationInvalid),
    &Rule::row(Code::OpenibdSkipsInboxModules),
    &openibd::OPENIBD_DISABLED,
    &ordering::ORDERING_CYCLE,
    &ordering::START_WAIT_DEADLOCK,
    &modules_loaded::MODULE_LOAD_INTERRUPTED,
    &Rule::row(Code::ModuleSignatureRefused),
    &modules_refused::MODULE_SYMBOL_MISMATCH,
    &Rule::host(Code::RequiredUnitMissing),
    &Rule::row(Code::RunFull),
    &modules_missing::MODULE_MISSING_FOR_KERNEL,
    &modules_missing::MODULE_MISSING_IN_INITRD,
    &modules_missing::INITRD_WITHOUT_FABRIC,
    &modules_missing::MODULE_IS_A_DUMMY,
    &modules_missing::MODULE_WRONG_DRIVER,
    &Rule::row(Code::ModuleParameter),
    &modules_refused::MODULE_DENIED,
    &firmware::FIRMWARE_TOO_OLD,
    &firmware::FIRMWARE_RESET_PENDING,
    &firmware::FIRMWARE_FATAL,
    &firmware::FW_INIT_TIMEOUT,
    &adapter::DRIVER_UNLOAD_UNDER_REMOTE_ROOT,
    &Rule::row(Code::PciBarUnassigned),
    &Rule::row(Code::SelinuxDeniesSubnet),
    &vfs::VF_PROBE_FAILED,
    &driver_regression::DRIVER_REGRESSION,
    &adapter::UDEV_TIMEOUT,
    &modules_refused::MODULE_INIT_SLOW,
    &sriov::SRIOV_NOT_ENABLED_FW,
    &sriov::SRIOV_MMIO,
    &sriov::SRIOV_NOT_EXPOSED_KERNEL,
    &guests::IOMMU_OFF,
    &vfs::VF_NOT_PROBED,
    &sriov::SRIOV_VF_UNREACHABLE,
    &vfs::VF_SETTING_DROPPED,
    &vfs::VF_SETTING_REFUSED,
    &vf_ports::VF_GUID_ZERO,
    &vf_ports::VF_GUID_DUPLICATE,
    &vf_ports::VF_POLICY_DOWN,
    &subnet::UMAD_ZERO_GUID,
    &opensm::OPENSM_SKIPPED,
    &Rule::row(Code::OpensmPartitionsRejected),
    &Rule::row(Code::OpensmOtherPort),
    &opensm::OPENSM_MISCONFIGURED,
    &opensm::OPENSM_VIRT_DISABLED,
    &Rule::host(Code::VfPortNotActive),
    &subnet::NO_SUBNET_MANAGER,
    &ports::LINK_DOWN_CABLE,
    &modules_loaded::MODULE_NOT_LOADED,
    &openibd::OPENIBD_FAILED,
    &Rule::row(Code::OpenibdAliasBroken),
    &openibd::MLNX_INTERFACE_MGR_ARMED,
    &Rule::host(Code::PortNotReady),
    &ports::PORT_NOT_ACTIVE,
    &subnet::PKEY_MISSING,
    &Rule::host(Code::PortDegraded),
    &configuration::NOT_AS_EXPECTED,
    &Rule::host(Code::NetdevLate),
    &ordering::ORDERING_MISSING,
    &modules_loaded::MODULE_LOAD_ORDER,
    &modules_loaded::MODULE_LOADED_LATE,
    &openibd::IFUP_SKIPPED_OS_BOOTING,
    &netdevs::NETDEV_RENAMED,
    &netdevs::IPOIB_PARENT_DOWN,
    &network_services::NETWORK_STACK_BUG,
    &network_services::IFCFG_MISMATCH,
    &configuration::IBPROV_SWITCHED_OFF,
    &subnet::INTERFACE_NOT_ONLINE,
    &netdevs::NETDEV_ADMIN_DOWN,
    &guests::AUTOSTART_GUEST_ON_VF,
    &guests::VM_BEFORE_VF,
    &consumers::CONSUMER_BEFORE_ADDRESS,
    &consumers::MOUNT_BEFORE_IPOIB,
    &consumers::MOUNT_BEFORE_NETWORK,
    &services::WAIT_ONLINE_TIMEOUT,
    &services::RDMA_SERVICE_FAILED,
    &adapter::PCIE_LINK_REDUCED,
    &unexplained::UNEXPLAINED,
    &messages::HARMLESS_WARNING,
    &no_fault::INPUT_LEFT_OUT,
    &no_fault::HEALTHY,
    &no_fault::NOT_INFINIBAND,
    &no_fault::UNKNOWN,
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
            ALL.iter().flat_map(|rule| rule.words()).chain(messages::needles()),
            words().needles.iter().chain(&words().phrases).map(String::as_str),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Intake;
    use super::testing::{ca, severity};
    use super::{ALL, Code, Severity, rule};

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
            let told = severity(rule(code).expect("a rule"), &lines);
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
