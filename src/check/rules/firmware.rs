//! The adapter's firmware.

use super::sriov::is_missed;
use super::words::firmware_fatal::{BROKEN, LOST, SIGNS, TOO_HOT};
use super::words::firmware_too_old::{ADVISES, NO_DEVICE, REFUSES};
use super::words::fw_init_timeout::{FINAL, WAITS};
use super::{Boot, Code, Confidence, Event, Finding, Kind, Severity, row, seen};
use crate::check::evidence::event::function;
use crate::check::evidence::state::Setting;
use crate::check::ledger::path::{above, card};
use crate::check::pattern::has_any;

/// mlx5 says every 20 s that it is still waiting. Firmware that takes this long does
/// not come.
const MANY: usize = 3;

/// How it ended for an adapter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// No device answers at its address.
    Gone,
    /// The driver gave up.
    Dead,
    /// The log ends before that.
    Waits(Severity),
    /// It became ready after all.
    Late,
}

impl End {
    fn of(boot: &Boot, address: Option<&str>, given_up: &[&Event], waits: &[&Event]) -> Self {
        let names = |e: &&Event| address.is_none_or(|address| e.text.contains(address));
        let last = given_up.iter().chain(waits).map(|e| e.origin).max();
        let came =
            boot.events.iter().filter(names).any(|e| {
                Some(e.origin) > last && has_any(&e.text, &["renamed from", "MLX5E: StrdRq"])
            });
        let is_gone =
            |e: &Event| address.is_some() && has_any(&e.text, &["0xffffffff", "65535.65535"]);
        match () {
            () if came => Self::Late,
            () if boot.events.iter().filter(names).any(is_gone) => Self::Gone,
            () if !given_up.is_empty() => Self::Dead,
            () if waits.len() >= MANY => Self::Waits(Severity::Error),
            () => Self::Waits(Severity::Warning),
        }
    }

    const fn severity(self, given_up: bool) -> Severity {
        match self {
            Self::Late => Severity::Info,
            Self::Waits(severity) => severity,
            Self::Gone if !given_up => Severity::Warning,
            Self::Gone | Self::Dead => Severity::Error,
        }
    }

    fn told(self, of: &str) -> String {
        match self {
            Self::Gone => format!(
                "No answer any more from {of}: the adapter or VF has disappeared, or hangs."
            ),
            Self::Dead => format!("The firmware of {of} does not become ready."),
            Self::Waits(_) => format!(
                "The firmware of {of} does not become ready; the log ends before the driver gives up."
            ),
            Self::Late => format!("The firmware of {of} became ready late."),
        }
    }
}

pub(super) fn fw_init_timeout(boot: &Boot) -> Vec<Finding> {
    let of_hca = |text: &str| seen::rdma_module(text).is_some();
    // A VF that gets no answer, while its PF has one, is another finding.
    let of_vf = |text: &str| {
        text.contains("Will cause a leak")
            && function(text).is_some_and(|address| seen::is_vf(boot, address))
    };
    let is_final = |e: &Event| has_any(&e.text, FINAL) && of_hca(&e.text) && !of_vf(&e.text);
    let lines = boot.events.iter().filter(|e| is_final(e) || has_any(&e.text, WAITS));
    let ends = seen::by_function(lines).into_iter().map(|(address, lines)| {
        let (given_up, waits): (Vec<&Event>, Vec<&Event>) =
            lines.into_iter().partition(|e| is_final(e));
        let end = End::of(boot, address, &given_up, &waits);
        let severity = end.severity(!given_up.is_empty() || waits.len() >= MANY);
        ((end, severity), address, given_up.into_iter().chain(waits).collect())
    });
    let finding = |((end, severity), addresses, lines): ((End, _), Vec<&str>, Vec<&Event>)| {
        let told = end.told(&seen::all_of("adapter", &addresses));
        let judged = (severity, Confidence::High);
        let quotes = seen::quotes(boot, lines.iter().copied());
        if end == End::Late {
            return Finding::of(Code::FwInitTimeout, judged.0, judged.1, told)
                .about_all(&addresses)
                .quoting(quotes);
        }
        row::told(boot, Code::FwInitTimeout, judged, told, &addresses, lines.clone())
            .look(seen::firmware_query(&lines, &addresses))
            .permanent([match seen::names_firmware(&lines) {
                true => "if the fault occurs again: burn the firmware again, or try another slot",
                false => "if the fault occurs again: try another slot",
            }])
    };
    seen::by_key(ends).into_iter().map(finding).collect()
}

/// Why it has failed, where that is no fault of the firmware's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
enum Outside {
    TooHot,
    Lost,
    Broken,
}

pub(super) fn firmware_fatal(boot: &Boot) -> Vec<Finding> {
    let fatal = |text: &str| text.contains("Fatal error ") && text.contains(" detected");
    let ours = |text: &str| seen::rdma_module(text).is_some();
    let lines: Vec<_> = boot
        .events
        .iter()
        .filter(|e| e.from_kernel() && ours(&e.text))
        .filter(|e| has_any(&e.text, SIGNS) || has_any(&e.text, BROKEN) || fatal(&e.text))
        .collect();
    let ends = seen::by_function(lines).into_iter().map(|(address, lines)| {
        let last = lines.last().map(|e| e.origin);
        let recovered = boot.with("health recovery").any(|e| {
            Some(e.origin) >= last
                && e.text.contains("health recovery succeeded")
                && address.is_none_or(|address| e.text.contains(address))
        });
        let severity = if recovered { Severity::Warning } else { Severity::Error };
        let says = |signs: &'static [&'static str]| {
            boot.with_any(signs).any(|e| address.is_none_or(|address| e.text.contains(address)))
        };
        let end = says(TOO_HOT).then_some(Outside::TooHot);
        let above = || lines.iter().flat_map(|e| above(boot, address.unwrap_or_default(), e));
        let is_lost = || says(LOST) || above().next().is_some();
        let end = end.or_else(|| is_lost().then_some(Outside::Lost));
        ((severity, end.or_else(|| says(BROKEN).then_some(Outside::Broken))), address, lines)
    });
    let finding = |((severity, end), mut addresses, lines): (_, Vec<&str>, Vec<&Event>)| {
        // What was too hot is the card, and not a function of it.
        let cards: Vec<_> = addresses.iter().filter_map(|at| card(at)).collect();
        let is_hot = |e: &&Event| card(&e.text).is_some_and(|card| cards.contains(&card));
        let hot: Vec<&Event> = boot.with_any(TOO_HOT).filter(is_hot).collect();
        let hot = if end == Some(Outside::TooHot) { hot } else { Vec::new() };
        addresses.extend(hot.iter().filter_map(|e| function(&e.text)));
        let addresses = seen::each(addresses);
        let of = seen::all_of("adapter", &addresses);
        let said = hot.iter().chain(&lines).map(|e| e.text.trim()).next().unwrap_or_default();
        let told = match end {
            None => format!("The firmware of {of} has failed: {said}"),
            Some(Outside::TooHot) => format!("The firmware of {of} has stopped, too hot: {said}"),
            Some(Outside::Lost) => format!("{of} does not answer on PCIe any more: {said}"),
            Some(Outside::Broken) => format!("The hardware of {of} has failed: {said}"),
        };
        let is_its = |e: &&Event| function(&e.text).is_none_or(|at| addresses.contains(&at));
        let blamed: Vec<&Event> = boot.with("firmware internal error").filter(is_its).collect();
        let judged = (severity, Confidence::High);
        let all = hot.into_iter().chain(lines.iter().copied());
        let Some(outside) = end else {
            let permanent = match blamed.is_empty() && !seen::names_firmware(&lines) {
                true => "report the health buffer to the vendor",
                false => "burn the newest firmware; report the health buffer to the vendor",
            };
            return row::told(boot, Code::FirmwareFatal, judged, told, &addresses, all)
                .quoting(seen::quotes(boot, blamed))
                .permanent([permanent])
                .look(seen::firmware_query(&lines, &addresses));
        };
        let kind = (Code::FirmwareFatal, outside.into());
        let finding = row::told_as(boot, kind, judged, told, &addresses, all);
        finding.quoting(seen::quotes(boot, blamed))
    };
    seen::by_key(ends).into_iter().map(finding).collect()
}

pub(super) fn firmware_too_old(boot: &Boot) -> Vec<Finding> {
    let refuses: Vec<_> = boot.with_any(REFUSES).collect();
    let advises = boot.with_any(ADVISES).filter(|e| seen::rdma_module(&e.text).is_some());
    let no_device: Vec<_> = boot.with_any(NO_DEVICE).collect();
    let lines = seen::by_function(refuses.iter().copied().chain(advises));
    let judged = lines.into_iter().map(|(address, lines)| {
        let only_advice = !lines.iter().any(|line| refuses.contains(line));
        let failed = boot.events.iter().any(
            |e| matches!(&e.kind, Kind::ProbeFailed { device, .. } if Some(&**device) == address),
        );
        let judgement = match (only_advice, failed) {
            (false, _) => (Severity::Error, Confidence::High),
            (true, true) => (Severity::Error, Confidence::Medium),
            (true, false) if !no_device.is_empty() => (Severity::Error, Confidence::Low),
            (true, false) => (Severity::Info, Confidence::Low),
        };
        (judgement, address, lines)
    });
    let finding = |((severity, confidence), addresses, lines): (_, Vec<&str>, Vec<&Event>)| {
        let of = seen::all_of("adapter", &addresses);
        let said = lines.first().map(|e| e.text.trim()).unwrap_or_default();
        let told = format!("The firmware of {of} is too old for the driver: {said}");
        row::told(
            boot,
            Code::FirmwareTooOld,
            (severity, confidence),
            told,
            &addresses,
            lines.clone(),
        )
        .look(seen::firmware_query(&lines, &addresses))
        .quoting(seen::quotes(boot, no_device.iter().copied()))
    };
    seen::by_key(judged).into_iter().map(finding).collect()
}

pub(super) fn firmware_reset_pending(boot: &Boot) -> Option<Finding> {
    let lines = row::lines(boot, Code::FirmwareResetPending);
    let pending: Vec<&Setting> = boot.state.settings.iter().filter(|s| s.is_pending()).collect();
    let of_lines = seen::functions(&lines).into_iter();
    let of_settings = pending.iter().map(|s| s.device.as_str()).filter(|device| !device.is_empty());
    let devices = seen::each(of_lines.chain(of_settings));
    let of = seen::all_of("adapter", &devices);
    let told = match (lines.first(), &pending[..]) {
        (_, [_, ..]) => {
            let mut names: Vec<&str> = pending.iter().map(|s| s.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            format!(
                "{} of {of} take effect after a reset or a power cycle: do not write them again.",
                names.join(", ")
            )
        }
        (Some(first), []) => format!("{of} needs a reset or a power cycle: {}", first.text.trim()),
        (None, []) => return None,
    };
    // Somebody misses the VFs already.
    let is_missed = !pending.is_empty() && is_missed(boot);
    let severity = if is_missed { Severity::Error } else { Severity::Warning };
    let shown = pending.iter().map(|s| boot.quote_at(s.origin, &s.text));
    let judged = (severity, Confidence::High);
    let code = Code::FirmwareResetPending;
    Some(row::told(boot, code, judged, told, &devices, lines).quoting(shown))
}
