//! Why a port is stuck on its way up, as far as the host can tell.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    Advice, Cause, Code, ModuleTrouble, PortProgress, ToDo,
    firmware::{how_to_set, link_type},
};
use crate::names::{IfName, LinkLayer, ModuleName, PciAddress, Rung};
use crate::observe::{Observed, PciFunction, rdma_half};

/// What is known beside the host's present state.
#[derive(Debug, Clone, Default)]
pub struct KernelLogFacts {
    /// Modules that could not be loaded.
    pub modules: BTreeMap<ModuleName, ModuleTrouble>,
    /// What the kernel log has said of each PCI function.
    pub functions: BTreeMap<PciAddress, FunctionLog>,
    /// Failed probes of auxiliary devices, such as `mlx5_core.rdma.0`, which have no PCI
    /// address in their line.
    pub halves: BTreeMap<String, HalfFailure>,
    /// In which line the latest probe of a function got past its firmware.
    probed: BTreeMap<PciAddress, u64>,
    /// How many lines were learnt from.
    lines: u64,
    /// Functions for which a driver was already asked for in vain.
    pub no_driver: BTreeSet<PciAddress>,
    /// Functions whose port types are being set.
    pub setting_types: BTreeSet<PciAddress>,
    /// Functions whose port types could not be set, and why.
    pub unset_types: BTreeMap<PciAddress, String>,
    /// Functions whose port types are left as they are, because a netdev is in use: by what.
    pub types_in_use: BTreeMap<PciAddress, String>,
    /// Interfaces whose settings, or those of a P_Key child, are not as wanted, and why.
    pub unset: BTreeMap<IfName, Cause>,
    /// Who wants a netdev of IPoIB; looked for only where ib_ipoib is denied.
    pub wants_ipoib: Option<String>,
}

/// What the kernel log has said of a PCI function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionLog {
    /// The line by which the driver core said that a probe failed.
    pub probe_failed: Option<String>,
    /// The last line of the driver about waiting for firmware.
    pub firmware_wait: Option<String>,
    /// The first line of error severity of a probe: what made it fail. The driver says
    /// more and more in general afterwards, up to `probe_failed`.
    pub first_error: Option<String>,
    /// The last line of error severity; of a fatal error and what follows from it, the fatal
    /// error.
    pub last_error: Option<String>,
    /// The last fatal error of its firmware: the driver resets the card then and probes it
    /// anew, so it outlives the other lines (`poll_health()`,
    /// drivers/net/ethernet/mellanox/mlx5/core/health.c).
    pub fatal_error: Option<String>,
}

impl FunctionLog {
    /// What has to do with something that it lacks: the last error of its probe, or why the
    /// driver has probed it anew.
    pub fn last_trouble(&self) -> Option<&String> {
        self.last_error.as_ref().or(self.fatal_error.as_ref())
    }

    /// That the probe failed, and the first error in it, in the driver's words.
    pub fn failed_probe(&self) -> Option<String> {
        Some(self.with_first_error(self.probe_failed.as_ref()?))
    }

    /// `line`, by which a probe was said to have failed, and the first error before it.
    fn with_first_error(&self, line: &str) -> String {
        match self.first_error.as_ref().filter(|first| *first != line) {
            Some(first) => format!("{line}; its first error was: {first}"),
            None => line.to_owned(),
        }
    }
}

/// The failed probe of an auxiliary device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HalfFailure {
    /// The line by which the driver core said so.
    line: String,
    /// Which line that was. The name is given anew when the function is probed anew.
    number: u64,
}

/// Why `port` is missing its next rung; `None` if it is missing none.
pub fn cause(port: &PortProgress, observed: &Observed, facts: &KernelLogFacts) -> Option<Cause> {
    let missing = port.missing()?;
    let Some(at) = port.pci else { return Some(absent(port)) };
    let function = observed.functions.iter().find(|f| f.address == at);
    let log = facts.functions.get(&at);
    let driver = function.and_then(|f| f.driver.as_deref());
    let trouble = |name: &str| {
        let (module, trouble) = facts.modules.iter().find(|(m, _)| m.as_str() == name)?;
        let of_driver = missing <= Rung::Rdma;
        Some(match trouble {
            ModuleTrouble::Denied { by } if of_driver => driver_denied(module, by, at),
            _ => Cause::module(module, trouble),
        })
    };
    // Told of a function without a driver only: with one, what failed before is
    // being tried again.
    let probe_failed = || {
        let failed = log?.failed_probe()?;
        Some(Cause::last(
            format!("the driver's probe failed: {failed}"),
            [
                Advice::look("see dmesg above that line"),
                Advice::now(ToDo::with(
                    "after the cause is corrected",
                    format!("echo {at} > /sys/bus/pci/drivers_probe"),
                )),
            ],
        ))
    };
    let half_failed = || {
        let half = facts.halves.get(function?.rdma_auxiliary.as_ref()?)?;
        let probed = facts.probed.get(&at).copied().unwrap_or_default();
        let said = log.map_or_else(|| half.line.clone(), |l| l.with_first_error(&half.line));
        (half.number > probed).then(|| {
            Cause::last(
                format!("the probe of its RDMA half failed: {said}"),
                [
 Advice::look("see dmesg above that line"),
 Advice::now("after the cause is corrected: rebind the function's driver, /sys/bus/pci/drivers/DRIVER/unbind and bind"),
 ],
            )
        })
    };
    if let Some(cause) = other_type(port, at, function, facts) {
        return Some(cause);
    }
    let cause = match missing {
        Rung::Pci => absent(port),
        Rung::Driver => {
            let denied = function.and_then(|f| f.ib_driver).and_then(trouble);
            if let Some(cause) = probe_failed().or(denied) {
                cause
            } else if facts.no_driver.contains(&at) {
                let modalias = function.map_or("", |f| f.modalias.as_str());
                Cause::last(
                    format!("this kernel has no module for the function ({modalias})"),
                    [Advice::permanent(
                        "install the driver for the running kernel; `modprobe -R MODALIAS` must name it",
                    )],
                )
            } else {
                Cause::waiting(
                    "no driver is bound to the function",
                    [Advice::look("see `lspci -k` and dmesg")],
                )
            }
        }
        Rung::Rdma => {
            let half = driver.and_then(rdma_half);
            let half_trouble = half.as_ref().and_then(|h| trouble(h.as_str()));
            // modprobe returns after the probe has failed.
            if let Some(cause) = half_failed().or(half_trouble) {
                cause
            } else if let Some(line) = log.and_then(|l| l.firmware_wait.as_ref()) {
                Cause::waiting(
                    format!("driver {} is waiting for firmware: {line}", driver.unwrap_or("?")),
                    driver
                        .filter(|driver| driver.starts_with("mlx"))
                        .map(|_| Advice::look(ToDo::run(format!("mstflint -d {at} query"))))
                        .into_iter()
                        .chain([Advice::now("if the wait does not end: power cycle the adapter")]),
                )
                .diagnosed(Code::FwInitTimeout)
            } else {
                let text = format!("driver {} is bound", driver.unwrap_or("?"));
                let last = log.and_then(FunctionLog::last_trouble);
                let text =
                    last.map_or(text.clone(), |l| format!("{text}; the driver last reported: {l}"));
                Cause::waiting(text, [Advice::look(ToDo::run(format!("dmesg | grep {at}")))])
            }
        }
        Rung::Netdev if port.must_be_ethernet => Cause::waiting(
            format!("driver {} has not created a netdev for the port", driver.unwrap_or("?")),
            [Advice::look(ToDo::run(format!("dmesg | grep {at}; devlink dev")))],
        ),
        Rung::Netdev if observed.is_absent("ib_ipoib") && trouble("ib_ipoib").is_none() => {
            let advice = [
                Advice::look(ToDo::run("ibprov boot --dry-run")),
                Advice::now(ToDo::run("modprobe ib_ipoib")),
            ];
            wanted(Cause::waiting("module ib_ipoib is not loaded", advice), facts)
        }
        Rung::Netdev if observed.modules.is_empty() => {
            Cause::waiting("whether module ib_ipoib is loaded is not known", [])
        }
        Rung::Netdev => trouble("ib_ipoib").map_or_else(
            || {
                let last = log.and_then(FunctionLog::last_trouble);
                let said =
                    last.map_or(String::new(), |l| format!("; the kernel last reported: {l}"));
                Cause::waiting(
                    format!("ib_ipoib has not created a netdev for the port{said}"),
                    [
                        Advice::look(ToDo::run(
                            "dmesg | grep -i ipoib; grep -H . /sys/module/ib_ipoib/parameters/*",
                        )),
                        Advice::now(ToDo::with(
                            "if the modprobe that loaded it was killed",
                            "modprobe -r ib_ipoib && ibprov boot",
                        )),
                    ],
                )
            },
            |cause| wanted(cause, facts),
        ),
        Rung::Named if observed.udev.running == Some(false) => Cause::last(
            "the netdev exists, but systemd-udevd, which names it, is not running",
            [Advice::look(ToDo::run(
                "systemctl status systemd-udevd.service systemd-udevd-control.socket",
            ))],
        ),
        Rung::Named => Cause::waiting(
            "udev has not finished with the netdev or its RDMA device, so that a name may still change",
            [Advice::look(ToDo::with(
                "a rule that hangs shows in the log of udev",
                "journalctl -b -u systemd-udevd",
            ))],
        ),
        Rung::Configured => {
            let netdev = port.netdev.as_ref()?;
            let unset = facts.unset.get(netdev).cloned();
            unset.unwrap_or_else(|| Cause::not_made_yet(netdev, &[]))
        }
        Rung::Link | Rung::Active | Rung::Carrier | Rung::Gid => Cause::waiting("", []),
    };
    Some(cause)
}

/// Why nothing of `port` is there.
fn absent(port: &PortProgress) -> Cause {
    let (text, words, command) = match port.guid {
        Some(_) => (
            "no port on this host has this GUID so far",
            "compare the port GUIDs; a replaced adapter has a new one",
            "ibstat -p",
        ),
        None => (
            "no such PCI function or RDMA device on this host",
            "see whether the adapter is in another slot or disabled in the firmware setup, or the VF not created yet",
            "lspci -Dnn -d 15b3:",
        ),
    };
    Cause::waiting(text, [Advice::look(ToDo::with(words, command))])
}

/// The file in which NVIDIA's driver container denies the kernel's own modules on the host, as
/// long as it runs; where it ends badly, the file stays (doca-driver-build, entrypoint).
pub const CONTAINERS_DENY_LIST: &str = "/blacklist-ofed-modules.conf";

/// That `by` denies `module`, the driver of the function `at` or its RDMA half.
fn driver_denied(module: &ModuleName, by: &str, at: PciAddress) -> Cause {
    let text = format!("module {module} is not loaded: deny-listed by {by}");
    let to_use = format!("to use the adapter: remove the line in {by}, then `modprobe {module}`");
    let to_ignore =
        format!("if it is not to be used: boot.ignore = [\"{at}\"] (man 5 ibprov.toml)");
    let is_of_container = by.contains(CONTAINERS_DENY_LIST);
    let (text, first) = match is_of_container {
        true => (
            format!("{text}, which NVIDIA's driver container writes and removes again"),
            format!(
                "if the container loads the drivers: wait = \"online\" in the [[port]] with pci = \"{at}\""
            ),
        ),
        false => (text, to_use),
    };
    Cause {
        module: Some(module.clone()),
        ..Cause::last(text, [Advice::permanent(first), Advice::permanent(to_ignore)])
            .diagnosed(Code::ModuleDenied)
    }
}

/// With who wants what is missing.
fn wanted(cause: Cause, facts: &KernelLogFacts) -> Cause {
    match &facts.wants_ipoib {
        Some(wants) => Cause { text: format!("{}, and {wants}", cause.text), ..cause },
        None => cause,
    }
}

/// Its port has the other link layer than the one that is expected. The type is changed
/// with the firmware's settings and a reset, never by waiting.
fn other_type(
    port: &PortProgress,
    at: PciAddress,
    function: Option<&PciFunction>,
    facts: &KernelLogFacts,
) -> Option<Cause> {
    let mlx5 = function.filter(|f| f.ib_driver == Some("mlx5_core"));
    let (is, expected, wanted, word) = if port.must_be_ethernet {
        ("in InfiniBand mode", "an Ethernet port", LinkLayer::Ethernet, "eth")
    } else {
        ("in Ethernet mode", "an InfiniBand port", LinkLayer::InfiniBand, "ib")
    };
    let seen = match port.rdma {
        Some(_) if port.is_of_other_type() => format!("the port is {is}"),
        // mlx5's functions have the class of their port's type.
        None => {
            let class = mlx5.map(|f| f.class)?;
            let is_other =
                if port.must_be_ethernet { class.is_infiniband() } else { class.is_ethernet() };
            if !is_other {
                return None;
            }
            format!("the port is {is} (class {class})")
        }
        Some(_) => return None,
    };
    let told = format!("{seen}, and {expected} is expected ({})", port.why);
    if let Some(uses) = facts.types_in_use.get(&at) {
        return Some(Cause::in_use(
            format!(
                "{told}; the type is set at the next boot, because the adapter is in use: {uses}"
            ),
            [Advice::now(ToDo::run("ibprov boot --force"))],
        ));
    }
    let number = port.port.map_or_else(|| "1".to_owned(), |n| n.to_string());
    let set = match function.and_then(|f| f.ib_driver) {
        Some("mlx4_core") if facts.setting_types.contains(&at) => {
            return Some(Cause::waiting(format!("{seen}: the type is being set"), []));
        }
        Some("mlx4_core") => ToDo::with(
            format!("set type = \"{word}\" in its [[port]], or until the next boot"),
            format!("echo {word} >/sys/bus/pci/devices/{at}/mlx4_port{number}"),
        ),
        _ => how_to_set(at, &link_type(at, wanted), false),
    };
    let failure =
        facts.unset_types.get(&at).map(|failure| format!("; the type could not be set: {failure}"));
    let failure = failure.unwrap_or_default();
    Some(Cause::last(
        format!("{told}{failure}"),
        [
            Advice::permanent(set.after("to change the type")),
            Advice::permanent("or ignore the port (boot.ignore)"),
        ],
    ))
}

/// Take one line of the kernel log into account. `level` is the kernel's
/// severity, 0 to 7. True if it can change a cause: drivers say more, and so do others.
pub fn learn(facts: &mut KernelLogFacts, level: u8, line: &str) -> bool {
    facts.lines += 1;
    let Some(address) = address_in(line) else {
        let Some(device) = failed_auxiliary(line) else { return false };
        let failure = HalfFailure { line: line.to_owned(), number: facts.lines };
        facts.halves.insert(device.to_owned(), failure);
        return true;
    };
    let log = facts.functions.entry(address).or_default();
    let before = log.clone();
    // call_driver_probe(), drivers/base/dd.c: "NAME: probe of ADDRESS failed
    // with error N", since 6.8 "probe with driver NAME failed with error N".
    // -517 is EPROBE_DEFER: the kernel tries again by itself.
    if line.contains("probe ") && line.contains("failed with error -") {
        if !line.trim_end().ends_with("-517") {
            log.probe_failed = Some(line.to_owned());
        }
    // wait_fw_init(), drivers/net/ethernet/mellanox/mlx5/core/main.c
    } else if line.contains("Waiting for FW") || line.contains("in pre-initializing state") {
        log.firmware_wait = Some(line.to_owned());
        // That it has given up is the first error of a probe that fails of it.
        if level <= 3 && log.probe_failed.is_none() {
            log.first_error.get_or_insert_with(|| line.to_owned());
        }
    } else if line.contains("firmware version:") {
        // A new probe has got past its firmware: what was said before is over.
        let fatal_error = log.fatal_error.take();
        *log = FunctionLog { fatal_error, ..FunctionLog::default() };
        facts.probed.insert(address, facts.lines);
        // It may be over with a half, too.
        return *log != before || !facts.halves.is_empty();
    } else if level <= 3 || is_unanswered(line) {
        // What comes after a failed probe did not make it fail.
        if log.probe_failed.is_none() {
            log.first_error.get_or_insert_with(|| line.to_owned());
        }
        let is_fatal = line.contains("Fatal error ");
        if is_fatal {
            log.fatal_error = Some(line.to_owned());
        }
        // All that comes between a fatal error and the next probe follows from it.
        let follows = log.last_error.is_some() && log.last_error == log.fatal_error;
        if is_fatal || !follows {
            log.last_error = Some(line.to_owned());
        }
    }
    *log != before
}

/// True of the warning that the firmware never answered a command, which is the reason of
/// what fails next: `wait_func()`, drivers/net/ethernet/mellanox/mlx5/core/cmd.c.
fn is_unanswered(line: &str) -> bool {
    line.contains(" timeout. Will cause a leak of a command resource")
}

/// The device of a line about a failed probe, in both spellings of `call_driver_probe()`.
/// A deferred one has not failed.
fn failed_auxiliary(line: &str) -> Option<&str> {
    if !line.contains("failed with error -") || line.trim_end().ends_with("-517") {
        return None;
    }
    let (before, after) = line.split_once("probe ")?;
    match after.strip_prefix("of ") {
        Some(rest) => rest.split_whitespace().next(),
        None => before.trim_end().strip_suffix(':')?.split_whitespace().last(),
    }
}

/// The first PCI address in a line, as dev_err() and the driver core write it.
fn address_in(line: &str) -> Option<PciAddress> {
    line.split(|c: char| c.is_whitespace() || c == ',' || c == '(' || c == ')')
        .map(|word| word.trim_end_matches(':'))
        .filter(|word| word.contains(':'))
        .find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::PciFunction;

    const HERE: &str = "0000:4b:00.0";

    fn log_of(lines: &[(u8, &str)]) -> FunctionLog {
        let mut facts = KernelLogFacts::default();
        for (level, line) in lines {
            learn(&mut facts, *level, line);
        }
        facts.functions.remove(&HERE.parse().expect("address")).unwrap_or_default()
    }

    /// boot looks at the host again for no other.
    #[test]
    fn only_a_line_that_can_change_a_cause_matters() {
        let mut facts = KernelLogFacts::default();
        let mut matters = |level, line: &str| learn(&mut facts, level, line);
        let failed = "mlx5_core: probe of 0000:4b:00.0 failed with error -5";
        assert!(!matters(5, "audit: type=1400 audit(1732772092.100:7): apparmor=\"STATUS\""));
        assert!(!matters(6, "mlx5_core 0000:4b:00.0: firmware version: 20.35.1012"));
        assert!(!matters(6, "mlx5_core 0000:4b:00.0: Port module event: module 0, Cable plugged"));
        assert!(matters(4, failed));
        assert!(!matters(4, failed), "it has been said");
        assert!(matters(6, "mlx5_core 0000:4b:00.0: firmware version: 20.35.1012"));
        assert!(matters(4, "mlx5_ib.rdma: probe of mlx5_core.rdma.0 failed with error -12"));
        assert!(matters(6, "mlx5_core 0000:4b:00.0: firmware version: 20.35.1012"));
    }

    #[test]
    fn a_failed_probe_is_learnt_in_both_spellings() {
        for line in [
            "mlx5_core: probe of 0000:4b:00.0 failed with error -110",
            "mlx5_core 0000:4b:00.0: probe with driver mlx5_core failed with error -110",
        ] {
            assert_eq!(log_of(&[(4, line)]).probe_failed.as_deref(), Some(line));
        }
    }

    /// As mlx5_core of Linux 6.1 says it where firmware refuses a command.
    #[test]
    fn firmware_that_never_came_up_is_the_first_error_of_the_probe() {
        let pci = "0000:4b:00.0";
        let waits = format!(
            "mlx5_core {pci}: wait_fw_init:209:(pid 1): Waiting for FW initialization, timeout abort in 19s"
        );
        let over = format!(
            "mlx5_core {pci}: mlx5_function_enable:1120:(pid 1): Firmware over 120000 MS in pre-initializing state, aborting"
        );
        let one = format!(
            "mlx5_core {pci}: probe_one:1778:(pid 1): mlx5_init_one failed with error code -16"
        );
        let mut facts = KernelLogFacts::default();
        for (level, line) in [(4, &waits), (3, &over), (3, &one)] {
            learn(&mut facts, level, line);
        }
        let log = facts.functions.values().next().expect("a function");
        assert_eq!(log.first_error.as_ref(), Some(&over));
    }

    #[test]
    fn the_first_error_of_a_probe_is_kept() {
        let refused = "mlx5_core 0000:4b:00.0: mlx5_cmd_out_err:808:(pid 147): INIT_HCA(0x102) op_mod(0x0) failed, status bad system state(0x4), syndrome (0x0), err(-5)";
        let failed = "mlx5_core: probe of 0000:4b:00.0 failed with error -5";
        let init = "mlx5_core 0000:4b:00.0: mlx5_function_open:1217:(pid 147): init hca failed";
        let lines = [
            (6, "mlx5_core 0000:4b:00.0: firmware version: 20.35.1012"),
            (3, refused),
            (3, init),
            (4, failed),
        ];
        let log = log_of(&lines);
        assert_eq!(log.first_error.as_deref(), Some(refused));
        assert_eq!(log.probe_failed.as_deref(), Some(failed));
        let told = format!("{failed}; its first error was: {refused}");
        assert_eq!(log.failed_probe(), Some(told));
        let later = log_of(&[&lines[3..], &[(3, init)]].concat());
        assert_eq!((later.first_error, later.probe_failed.as_deref()), (None, Some(failed)));
    }

    /// As mlx5_core of Linux 6.1 says it of a command that the firmware does not answer.
    #[test]
    fn a_command_without_an_answer_is_the_first_error_of_a_probe() {
        let lost = "mlx5_core 0000:4b:00.0: wait_func:1151:(pid 147): CREATE_CQ(0x400) timeout. Will cause a leak of a command resource";
        let log = log_of(&[
            (6, "mlx5_core 0000:4b:00.0: firmware version: 20.35.1012"),
            (
                4,
                "mlx5_core 0000:4b:00.0: cmd_work_handler:1009:(pid 147): cmd[0]: CREATE_CQ(0x400) No done completion",
            ),
            (4, lost),
            (3, "mlx5_core 0000:4b:00.0: later"),
        ]);
        assert_eq!(log.first_error.as_deref(), Some(lost));
    }

    /// As Linux 6.1 and 6.8 say it of mlx5_ib, whose device has no PCI address.
    #[test]
    fn a_failed_probe_of_the_rdma_half_is_final_until_the_function_is_probed_anew() {
        let version = "mlx5_core 0000:4b:00.0: firmware version: 20.35.1012";
        let refused = "mlx5_core 0000:4b:00.0: mlx5_cmd_out_err:808:(pid 147): ALLOC_XRCD(0x80e) op_mod(0x0) failed, status internal error(0x1), syndrome (0x0), err(-5)";
        let function = PciFunction {
            driver: Some("mlx5_core".to_owned()),
            rdma_auxiliary: Some("mlx5_core.rdma.2".to_owned()),
            ..PciFunction::connectx6()
        };
        let observed = Observed { functions: vec![function], ..Observed::default() };
        let mut port = PortProgress::absent(HERE.to_owned(), Rung::Named, String::new());
        port.pci = HERE.parse().ok();
        port.reached = Some(Rung::Driver);
        for failed in [
            "mlx5_ib.rdma: probe of mlx5_core.rdma.2 failed with error -5",
            "mlx5_ib.rdma mlx5_core.rdma.2: probe with driver mlx5_ib.rdma failed with error -5",
        ] {
            let cause = |lines: &[(u8, &str)]| {
                // modprobe has not returned yet from the probe.
                let module = "mlx5_ib".parse().expect("module");
                let modules = [(module, ModuleTrouble::Stuck { pid: 7 })].into();
                let mut facts = KernelLogFacts { modules, ..KernelLogFacts::default() };
                for (level, line) in lines {
                    learn(&mut facts, *level, line);
                }
                cause(&port, &observed, &facts).expect("it is missing a rung")
            };
            let now = cause(&[(6, version), (3, refused), (4, failed)]);
            assert!(now.is_final, "{now:?}");
            assert!(now.text.contains(failed) && now.text.contains(refused), "{now:?}");
            assert!(!cause(&[(4, failed), (6, version)]).is_final);
            assert!(!cause(&[(6, version), (4, &failed.replace("-5", "-517"))]).is_final);
            assert!(!cause(&[(6, version), (4, &failed.replace("rdma.2", "rdma.1"))]).is_final);
        }
    }

    #[test]
    fn a_port_type_that_is_left_because_the_adapter_is_in_use_is_no_failure() {
        let mut port = PortProgress::absent(HERE.to_owned(), Rung::Named, "listed".to_owned());
        port.pci = HERE.parse().ok();
        port.rdma = "mlx4_0".parse().ok();
        port.reached = Some(Rung::Rdma);
        port.link_layer = Some(crate::names::LinkLayer::InfiniBand);
        port.must_be_ethernet = true;
        let mut facts = KernelLogFacts::default();
        let told =
            |facts: &KernelLogFacts| cause(&port, &Observed::default(), facts).expect("a cause");
        assert!(!told(&facts).in_use);
        let uses = "ib0 has address 10.1.0.1/24".to_owned();
        facts.types_in_use.insert(HERE.parse().expect("address"), uses);
        let told = told(&facts);
        assert!(told.in_use && told.is_final, "{told:?}");
        assert!(told.text.ends_with("is in use: ib0 has address 10.1.0.1/24"), "{told:?}");
        assert_eq!(told.advice, [Advice::now(ToDo::run("ibprov boot --force"))]);
    }

    #[test]
    fn a_deferred_probe_is_not_a_failed_one() {
        let line = "mlx5_core: probe of 0000:4b:00.0 failed with error -517";
        assert_eq!(log_of(&[(4, line)]).probe_failed, None);
    }

    #[test]
    fn a_fatal_error_is_told_for_what_follows_from_it_and_outlives_the_next_probe() {
        let mut facts = KernelLogFacts::default();
        let mut said = |level: u8, line: &str| {
            learn(&mut facts, level, &format!("mlx5_core 0000:4b:00.0: {line}"));
            let log = facts.functions.values().next().expect("a function");
            let trouble = log.last_trouble().cloned().unwrap_or_default();
            (trouble.rsplit(": ").next().unwrap_or_default().to_owned(), log.last_error.is_some())
        };
        let fatal = "Fatal error 5 detected".to_owned();
        said(3, "mlx5_cmd_out_err:800:(pid 7): QUERY_HCA_VPORT_CONTEXT failed");
        assert_eq!(said(3, &format!("poll_health:836:(pid 3200): {fatal}")), (fatal.clone(), true));
        assert_eq!(said(3, "mlx5_error_sw_reset:280:(pid 31): end"), (fatal.clone(), true));
        assert_eq!(said(6, "firmware version: 20.35.1012"), (fatal, false));
        assert_eq!(said(3, "mlx5_ib_add: no memory"), ("no memory".to_owned(), true));
    }

    #[test]
    fn a_later_good_probe_clears_what_was_said() {
        let log = log_of(&[
            (4, "mlx5_core: probe of 0000:4b:00.0 failed with error -110"),
            (
                4,
                "mlx5_core 0000:4b:00.0: wait_fw_init:199:(pid 402): Waiting for FW initialization, timeout abort in 100s (0x80000000)",
            ),
            (6, "mlx5_core 0000:4b:00.0: firmware version: 20.36.1010"),
        ]);
        assert_eq!(log, FunctionLog::default());
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(level: u8, line in ".{0,200}") {
            learn(&mut KernelLogFacts::default(), level, &line);
        }
    }

    #[test]
    fn another_functions_lines_do_not_count() {
        let log = log_of(&[
            (3, "mlx5_core 0000:4b:00.1: mlx5_cmd_exec failed"),
            (3, "ib0: no address here"),
        ]);
        assert_eq!(log, FunctionLog::default());
    }
}
