//! The kernel's own reports: crashes, warnings and hangs with their traces, and whose
//! they are.

use super::super::{Boot, Event, Severity, seen};
use crate::names::RDMA_MODULES;

/// Lines by which the kernel begins to tell of a crash.
pub(super) const CRASH: &[&str] = &[
    "BUG: kernel NULL pointer",
    "BUG: unable to handle",
    "Unable to handle kernel",
    "Oops: ",
    "Oops[",
    "general protection fault",
    "kernel BUG at",
    "Internal error: ",
    "soft lockup",
    "hard LOCKUP",
    "BUG: scheduling while atomic",
    "BUG: KASAN",
    "cannot create duplicate filename",
    ": Vector: ",
];
/// ... of a warning.
pub(super) const WARN: &[&str] = &["WARNING: CPU", "WARNING: at "];
/// ... of tasks that do not go on.
pub(super) const HANG: &[&str] = &["blocked for more than", "state:D"];

/// A report of the kernel: its head and the lines that belong to it.
pub(super) struct Report<'a> {
    pub(super) head: &'a Event,
    pub(super) culprit: &'a Event,
    pub(super) module: &'static str,
    pub(super) kind: Severity,
    pub(super) in_probe: bool,
}

/// Lines of one report, at most.
const LENGTH: u64 = 160;

pub(super) fn reports(boot: &Boot) -> Vec<Report<'_>> {
    let mut reports: Vec<Report<'_>> = Vec::new();
    let mut beyond = 0;
    for (at, head) in boot.events.iter().enumerate() {
        let bare = head.text.trim().trim_end_matches(':').eq_ignore_ascii_case("call trace");
        let kind = if seen::has(head, CRASH) {
            Severity::Error
        } else if seen::has(head, WARN) {
            Severity::Warning
        } else if seen::has(head, HANG) || bare {
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
                    || !(seen::has(e, WARN)
                        || e.text.contains("cut here")
                        || seen::has(e, HANG) && seen::has(head, HANG))
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
    let in_probe = body.iter().any(|e| {
        !is_list(e)
            && [
                "_probe",
                "init_one",
                "ib_register_device",
                "register_client",
                "work_for_cpu_fn",
                "do_init_module",
            ]
            .iter()
            .any(|w| e.text.contains(w))
    });
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
    if foreign || kind != Severity::Error || seen::has(head, HANG) || !seen::has(head, CRASH) {
        return None;
    }
    let before = boot.events.get(..at)?.iter().rev().take(2).find(|e| {
        e.origin.source == head.origin.source
            && head.when.since(&e.when).is_some_and(|gap| (0..1_500_000).contains(&gap))
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
