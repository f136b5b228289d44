//! Why a port is stuck on its way up, as far as the host can tell.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{IfName, ModuleName, PciAddress, Rung};
use crate::observe::{Observed, rdma_half};
use crate::report::{Cause, ModuleTrouble, PortProgress};

/// What is known beside the host's present state.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Modules that could not be loaded.
    pub modules: BTreeMap<ModuleName, ModuleTrouble>,
    /// What the kernel log has said of each PCI function.
    pub functions: BTreeMap<PciAddress, FunctionLog>,
    /// Functions for which a driver was already asked for in vain.
    pub no_driver: BTreeSet<PciAddress>,
    /// Interfaces whose settings are not as wanted, and what went wrong.
    pub unset: BTreeMap<IfName, Option<String>>,
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
    /// The last line of error severity.
    pub last_error: Option<String>,
}

impl FunctionLog {
    /// That the probe failed, and the first error in it, in the driver's words.
    #[must_use]
    pub fn failed_probe(&self) -> Option<String> {
        let line = self.probe_failed.as_ref()?;
        let first = self.first_error.as_ref().filter(|first| *first != line);
        let first = first.map_or(String::new(), |first| format!("; its first error was: {first}"));
        Some(format!("{line}{first}"))
    }
}

/// Why `port` is missing its next rung; `None` if it is missing none.
#[must_use]
pub fn cause(port: &PortProgress, observed: &Observed, facts: &Facts) -> Option<Cause> {
    let function = port.pci.and_then(|a| observed.functions.iter().find(|f| f.address == a));
    let log = port.pci.and_then(|a| facts.functions.get(&a));
    let driver = function.and_then(|f| f.driver.as_deref());
    let trouble = |name: &str| {
        let (module, trouble) = facts.modules.iter().find(|(m, _)| m.as_str() == name)?;
        Some(Cause::module(module, trouble))
    };
    // Told of a function without a driver only: with one, what failed before is
    // being tried again.
    let probe_failed = || {
        let failed = log?.failed_probe()?;
        Some(Cause::last(
            format!("the driver's probe failed: {failed}"),
            "read dmesg above that line; after a repair: echo ADDRESS > /sys/bus/pci/drivers_probe",
        ))
    };
    let cause = match port.missing()? {
        Rung::Pci if port.expected.starts_with("port GUID") => Cause::waiting(
            "no port on this host has this GUID so far",
            "compare with `ibstat -p`; a card that was replaced has a new GUID",
        ),
        Rung::Pci => Cause::waiting(
            "the host shows no such PCI function or RDMA device",
            "see `lspci -Dnn -d 15b3:` and the firmware set-up; the card may sit in another slot",
        ),
        Rung::Driver => {
            let denied = function.and_then(|f| f.ib_driver).and_then(trouble);
            if let Some(cause) = probe_failed().or(denied) {
                cause
            } else if port.pci.is_some_and(|a| facts.no_driver.contains(&a)) {
                let modalias = function.map_or("", |f| f.modalias.as_str());
                Cause::last(
                    format!("no module of this kernel drives it ({modalias})"),
                    "install the driver for the running kernel; `modprobe -R MODALIAS` must name it",
                )
            } else {
                Cause::waiting("no driver is bound to it", "see `lspci -k` and dmesg")
            }
        }
        Rung::Rdma => {
            let half = driver.and_then(rdma_half);
            let half_trouble = half.as_ref().and_then(|h| trouble(h.as_str()));
            if let Some(cause) = half_trouble {
                cause
            } else if let Some(line) = log.and_then(|l| l.firmware_wait.as_ref()) {
                Cause::waiting(
                    format!("driver {} is waiting for firmware: {line}", driver.unwrap_or("?")),
                    "if it never ends: power cycle the card, `mstflint -d ADDRESS q`",
                )
            } else {
                let text = format!(
                    "driver {} is bound and has registered no RDMA device",
                    driver.unwrap_or("?")
                );
                let last = log.and_then(|l| l.last_error.as_ref());
                let text = last.map_or(text.clone(), |l| format!("{text}; it last said: {l}"));
                Cause::waiting(text, "read dmesg for that PCI address")
            }
        }
        Rung::Netdev => trouble("ib_ipoib").unwrap_or_else(|| {
            let last = log.and_then(|l| l.last_error.as_ref());
            let said = last.map_or(String::new(), |l| format!("; the kernel last said: {l}"));
            Cause::waiting(
                format!("ib_ipoib has made no netdev for it{said}"),
                "read dmesg for ipoib; `cat /sys/module/ib_ipoib/parameters/*`",
            )
        }),
        Rung::Named if !observed.udev.running => Cause::last(
            "the netdev is there, but systemd-udevd is not running, so nobody names it",
            "systemctl status systemd-udevd; /run/udev/control does not exist",
        ),
        Rung::Named => Cause::waiting(
            "udev has not finished with the netdev or its RDMA device: a name may still change",
            "udevadm info -p /sys/class/net/NAME; a rule that hangs shows in `journalctl -u systemd-udevd`",
        ),
        Rung::Configured => {
            let unset = port.netdev.as_ref().and_then(|n| facts.unset.get_key_value(n));
            match unset {
                Some((name, Some(failure))) => Cause::last(
                    failure.clone(),
                    format!("see `ibprov iface {name} --dry-run`, then `ibprov iface {name}`"),
                ),
                _ => Cause::waiting(
                    "its settings are not made yet",
                    "see `systemctl status 'ibprov-iface@*'`",
                ),
            }
        }
        Rung::Link | Rung::Active => Cause::waiting("", ""),
    };
    Some(cause)
}

/// Take one line of the kernel log into account. `level` is the kernel's
/// severity, 0 to 7.
pub fn learn(facts: &mut Facts, level: u8, line: &str) {
    let Some(address) = address_in(line) else { return };
    let log = facts.functions.entry(address).or_default();
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
    } else if line.contains("firmware version:") {
        // A new probe has got past its firmware: what was said before is over.
        *log = FunctionLog::default();
    } else if level <= 3 {
        // What comes after a failed probe did not make it fail.
        if log.probe_failed.is_none() {
            log.first_error.get_or_insert_with(|| line.to_owned());
        }
        log.last_error = Some(line.to_owned());
    }
}

/// The first PCI address in a line, as dev_err() and the driver core write it.
fn address_in(line: &str) -> Option<PciAddress> {
    line.split(|c: char| c.is_whitespace() || c == ',' || c == '(' || c == ')')
        .map(|word| word.trim_end_matches(':'))
        .find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "0000:4b:00.0";

    fn log_of(lines: &[(u8, &str)]) -> FunctionLog {
        let mut facts = Facts::default();
        for (level, line) in lines {
            learn(&mut facts, *level, line);
        }
        facts.functions.remove(&HERE.parse().expect("address")).unwrap_or_default()
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

    #[test]
    fn a_deferred_probe_is_not_a_failed_one() {
        let line = "mlx5_core: probe of 0000:4b:00.0 failed with error -517";
        assert_eq!(log_of(&[(4, line)]).probe_failed, None);
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
            learn(&mut Facts::default(), level, &line);
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
