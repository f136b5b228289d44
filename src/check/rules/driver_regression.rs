//! Faults of the kernel and of drivers: their own reports, and drivers that give up.

use super::causes::explains;
use super::vfs::is_out_of_room;
use super::words::driver_regression::{CRASH, GIVES_UP, HANG, PROBES, ROCE, STOPPED, WARN};
use super::{Book, Boot, Code, Confidence, Event, Finding, Kind, Severity, row, seen};
use crate::check::evidence::event::function;
use crate::check::pattern::has_any;
use crate::names::{HCA_DRIVERS, Object, RDMA_MODULES};

/// True if `event`, by which a driver gives up, has its reason among `findings`.
fn is_explained(boot: &Boot, event: &Event, findings: &[Finding]) -> bool {
    let function = function(&event.text).map(Object::from);
    let quote = boot.quote(event);
    findings.iter().filter(|f| f.severity != Severity::Info).any(|finding| {
        let is_of = |function| finding.objects.contains(function);
        explains(finding.code, Code::DriverRegression)
            && (function.as_ref().is_some_and(is_of) || finding.evidence.contains(&quote))
    })
}

pub(super) fn driver_regression(book: &Book<'_>, findings: &[Finding]) -> Vec<Finding> {
    let boot = book.boot;
    let mut given_up = given_up(boot);
    given_up.retain(|e| {
        // A VF's own trouble is another finding.
        function(&e.text).is_none_or(|address| !seen::is_vf(boot, address))
            && !is_explained(boot, e, findings)
    });
    let told = crashed(boot, &given_up).or_else(|| gave_up(boot, &given_up));
    told.or_else(|| strange(boot)).into_iter().collect()
}

/// The kernel reports a fault itself.
fn crashed(boot: &Boot, given_up: &[&Event]) -> Option<Finding> {
    let worst = reports(boot).into_iter().min_by_key(|r| (r.kind, !r.in_probe))?;
    let is_broken = worst.kind == Severity::Error
        || loses_adapter(given_up)
        || worst.in_probe && seen::sign_of_life(boot).is_none();
    let severity = if is_broken { Severity::Error } else { Severity::Warning };
    let confidence =
        if worst.culprit.text.contains("+0x") { Confidence::High } else { Confidence::Medium };
    let what = match () {
        () if has_any(&worst.head.text, HANG) => "Tasks hang",
        () if has_any(&worst.head.text, WARN) => "The kernel reported a fault",
        () => "The kernel crashed",
    };
    let said = worst.head.text.trim();
    let told = format!("{what} in the RDMA stack ({}): {said}", worst.module);
    let lines = [worst.head, worst.culprit];
    let adapters = seen::functions(lines.iter().chain(given_up));
    let judged = (severity, confidence);
    let finding = row::told(boot, Code::DriverRegression, judged, told, &adapters, lines);
    Some(finding.quoting(seen::quotes(boot, given_up.iter().copied())))
}

fn gave_up(boot: &Boot, given_up: &[&Event]) -> Option<Finding> {
    let said = given_up.last()?.text.trim();
    let severity = if loses_adapter(given_up) { Severity::Error } else { Severity::Warning };
    let addresses = seen::functions(given_up);
    let of = match &addresses[..] {
        [] | [_] => String::new(),
        several => format!(" {}", seen::all_of("adapter", several)),
    };
    let told = format!("The driver gave up{of}: {said}");
    Some(
        Finding::of(Code::DriverRegression, severity, Confidence::Medium, told)
            .about_all(&addresses)
            .quoting(seen::quotes(boot, given_up.iter().copied()))
            .look(seen::firmware_query(given_up, &addresses))
            .now(["boot the kernel that worked before; if the fault does not occur in each boot, load the driver again (modprobe -r, modprobe)"])
            .permanent([match seen::names_firmware(given_up) {
                true => "look for a newer kernel, driver or firmware with a fix",
                false => "look for a newer kernel or driver with a fix",
            }]),
    )
}

/// True if more than the RDMA half of Ethernet cards is lost.
fn loses_adapter(given_up: &[&Event]) -> bool {
    given_up.iter().any(|e| !has_any(&e.text, ROCE) && !is_of_bnxt_re(&e.text))
}

/// Beside no other fault, what is strange.
fn strange(boot: &Boot) -> Option<Finding> {
    let lines = boot.lines(|e| is_strange(&e.text));
    let told = format!("The driver reported an internal fault: {}", lines.first()?.text.trim());
    let judged = (Severity::Warning, Confidence::Low);
    Some(row::told(boot, Code::DriverRegression, judged, told, &[], lines))
}

/// A netdev of ours whose card sends nothing any more (`dev_watchdog()`,
/// `ipoib_timeout()`), or code of the stack that the lock checker complains of.
fn is_strange(text: &str) -> bool {
    let watchdog = text.contains("NETDEV WATCHDOG") && seen::rdma_module(text).is_some()
        || text.contains("transmit timeout: latency");
    let ours = ["drivers/infiniband/", "/mellanox/", "xprtrdma/"];
    watchdog && seen::ib_netdev_in(text).is_some()
        || text.contains("suspicious rcu_dereference") && ours.iter().any(|p| text.contains(p))
}

/// True of an error of bnxt_re, which writes through the PCI device of bnxt_en:
/// `bnxt_en 0000:61:00.0 bnxt_re0: Failed to create HW CQ`.
fn is_of_bnxt_re(text: &str) -> bool {
    text.starts_with("bnxt_en ")
        && (text.contains(" bnxt_re") && text.contains(": Failed to ")
            || text.contains(": QPLIB: cmdq[") && text.contains(" status "))
}

/// The driver of an HCA leaves its probe. mlx4 and mthca say it of a card that they
/// go on with, too, where something later says so.
fn aborts(boot: &Boot, event: &Event) -> bool {
    let text = event.text.trim_end().trim_end_matches('.');
    let address = function(text);
    let lives = |a: &str| {
        boot.after(event.origin).any(|e| e.text.contains(a) && e.text.contains("renamed from"))
    };
    text.ends_with(", aborting")
        && HCA_DRIVERS.iter().any(|d| text.starts_with(d))
        && !address.is_some_and(lives)
}

/// A line of [`GIVES_UP`] or [`STOPPED`] that means it.
fn is_final(boot: &Boot, e: &Event) -> bool {
    match () {
        // The firmware has done the command; its interrupt did not come.
        () if e.text.contains("NOP command failed to generate interrupt") => {
            !boot.after(e.origin).any(|l| l.text.contains("rying again with"))
        }
        () if e.text.contains(", aborting") => aborts(boot, e),
        // For agents: SELinux, and not the driver.
        () if e.text.contains("Couldn't open port") => {
            e.text.starts_with("infiniband ") && !e.text.contains("for agents")
        }
        // There are no VFs then, and the driver works.
        () if e.text.contains("_enable_sriov failed") => !is_out_of_room(e),
        () if is_of_bnxt_re(&e.text) => true,
        () => {
            has_any(&e.text, GIVES_UP) || has_any(&e.text, STOPPED) && e.text.contains("mlx4_core")
        }
    }
}

/// Probes of HCAs that failed for good, and drivers that gave up.
fn given_up(boot: &Boot) -> Vec<&Event> {
    /// -EPROBE_DEFER: it will be tried again.
    const LATER: i32 = -517;
    boot.events
        .iter()
        .filter(|e| match &e.kind {
            Kind::ProbeFailed { driver, device, errno } => {
                let base = driver.split('.').next().unwrap_or(driver);
                *errno != LATER && HCA_DRIVERS.contains(&base) && !seen::is_vf(boot, device)
            }
            _ => is_final(boot, e),
        })
        .collect()
}

/// A report of the kernel: its head and the lines that belong to it.
struct Report<'a> {
    head: &'a Event,
    culprit: &'a Event,
    module: &'static str,
    kind: Severity,
    in_probe: bool,
}

/// Lines of one report, at most.
const LENGTH: u64 = 160;

fn reports(boot: &Boot) -> Vec<Report<'_>> {
    let mut reports: Vec<Report<'_>> = Vec::new();
    let mut beyond = 0;
    for (at, head) in boot.events.iter().enumerate() {
        let bare = head.text.trim().trim_end_matches(':').eq_ignore_ascii_case("call trace");
        let kind = if has_any(&head.text, CRASH) {
            Severity::Error
        } else if has_any(&head.text, WARN) {
            Severity::Warning
        } else if has_any(&head.text, HANG) || bare {
            Severity::Error
        } else {
            continue;
        };
        if at < beyond {
            continue;
        }
        let body: Vec<&Event> = boot
            .events
            .iter()
            .skip(at)
            .take_while(|e| {
                e.origin.source == head.origin.source && e.origin.line <= head.origin.line + LENGTH
            })
            // The next report is another one.
            .enumerate()
            .take_while(|(i, e)| {
                *i == 0
                    || !(has_any(&e.text, WARN)
                        || e.text.contains("cut here")
                        || has_any(&e.text, HANG) && has_any(&head.text, HANG))
            })
            .map(|(_, e)| e)
            .collect();
        if let Some(report) = culprit(boot, at, head, &body, kind) {
            beyond = at + body.len();
            reports.push(report);
        }
    }
    reports
}

/// Who is at fault: the RDMA module at the instruction pointer or near the top
/// of the stack, or the one that was just being loaded.
fn culprit<'a>(
    boot: &'a Boot,
    at: usize,
    head: &'a Event,
    body: &[&'a Event],
    kind: Severity,
) -> Option<Report<'a>> {
    /// Frames further down only carry the call.
    const NEAR: usize = 14;
    let is_list = |e: &Event| e.text.contains("Modules linked in");
    let frames: Vec<&&Event> = body
        .iter()
        .filter(|e| {
            !is_list(e) && !e.text.starts_with('?') && !e.text.trim_start().starts_with("? ")
        })
        .filter(|e| e.text.contains("+0x"))
        .collect();
    let in_probe = body.iter().any(|e| !is_list(e) && has_any(&e.text, PROBES));
    if let Some((event, module)) =
        frames.iter().take(NEAR).find_map(|e| seen::module_in_frame(&e.text).map(|m| (**e, m)))
    {
        return Some(Report { head, culprit: event, module, kind, in_probe });
    }
    // A module that is being loaded has a `(+)` in the list. Mailers break the
    // list, so what follows its line is part of it.
    let loading = body.iter().find_map(|e| {
        // `hfi1(+)`, `mlx5_core(OE+)`: flags of taint may stand before the sign.
        e.text.split_whitespace().find_map(|w| {
            let (name, flags) = w.split_once('(')?;
            flags.ends_with("+)").then_some(())?;
            RDMA_MODULES.iter().copied().find(|m| *m == name).map(|m| (*e, m))
        })
    });
    if let Some((event, module)) = loading {
        return Some(Report { head, culprit: event, module, kind, in_probe: true });
    }
    // No frame is left of the trace, and it says whose work it was.
    let work = body.iter().filter(|e| e.text.contains("Workqueue: "));
    let work = work.filter_map(|e| seen::module_in_frame(&e.text).map(|m| (*e, m))).next();
    let foreign = frames.iter().any(|e| e.text.trim_end().ends_with(']'));
    if let (Some((event, module)), false) = (work, foreign) {
        return Some(Report { head, culprit: event, module, kind, in_probe });
    }
    // Cut before its trace: what the kernel had just been doing is at fault,
    // unless the trace shows another module.
    if foreign
        || kind != Severity::Error
        || has_any(&head.text, HANG)
        || !has_any(&head.text, CRASH)
    {
        return None;
    }
    let before = boot.events.get(..at)?.iter().rev().take(2).find(|e| {
        e.origin.source == head.origin.source
            // Of a paste without times the lines stand one behind the other.
            && head.when.since(&e.when).is_none_or(|gap| (0..1_500_000).contains(&gap))
            && (seen::rdma_module(&e.text).is_some() && e.from_kernel()
                || seen::ib_netdev_in(&e.text).is_some()
                || near_ib(boot, at))
    })?;
    let module = seen::rdma_module(&before.text).unwrap_or("ib_ipoib");
    Some(Report { head, culprit: before, module, kind, in_probe })
}

/// True if the lines just above tell of an IPoIB netdev that is being set up.
fn near_ib(boot: &Boot, at: usize) -> bool {
    let above = boot.events.get(at.saturating_sub(6)..at).unwrap_or_default();
    above.iter().any(|e| seen::ib_netdev_in(&e.text).is_some())
}
