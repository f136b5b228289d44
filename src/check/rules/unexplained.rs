//! What nothing explains.

use std::collections::BTreeSet;

use super::messages::{is_quoted, source};
use super::{Book, Boot, Code, Confidence, Event, Finding, Quote, Severity, seen};
use crate::check::evidence::fold::{Lack, Object, What};
use crate::check::evidence::relevance::concerns_rdma;
use crate::check::evidence::state::PortSeen;
use crate::check::ledger::{Flap, Ledger};
use crate::check::pattern::has_word;
use crate::model::advice::ToDo;

pub(super) fn unexplained(book: &Book<'_>, findings: &[Finding]) -> Vec<Finding> {
    let boot = book.boot;
    let mut told = lost(boot, findings);
    // Beside an error, what else is strange is not worth a second verdict.
    if !told.is_empty() || findings.iter().any(|f| f.severity == Severity::Error) {
        return told;
    }
    let ledger = Ledger::of(book, findings);
    told.extend(ledger.flaps.iter().map(|flap| comes_and_goes(boot, flap)));
    let failures = &ledger.failures;
    let lines: Vec<&Event> = failures.iter().map(|failure| failure.event).collect();
    let is_told = |e: &Event| is_quoted(boot, e, findings) || lines.contains(&e);
    let mut units = seen::failed_units(boot);
    units.retain(|e| seen::concerns_fabric(boot, e) && !is_told(e));
    let Some(first) = lines.first().or(units.first()) else {
        told.extend(dark(boot));
        return told;
    };
    let mut all = lines.clone();
    all.extend(&units);
    // What makes it a unit of the fabric.
    let words = units.iter().flat_map(|failed| seen::words_of_unit(boot, failed));
    all.extend(words.filter(|event| concerns_rdma(&event.text)));
    let text = first.text.trim();
    let summary = match (failures.first().and_then(|f| f.object.as_ref()), lines.len()) {
        (_, 0) => format!("A unit that may use InfiniBand failed: {text}"),
        (Some(object), 1) => format!("A failure of {object} that no diagnosis explains: {text}"),
        (None, 1) => format!("The RDMA stack reports an error: {text}"),
        (_, n) => format!("The RDMA stack reports {n} errors; the first is: {text}"),
    };
    let objects = failures.iter().filter_map(|f| f.object.as_deref()).take(FIRST);
    let objects = seen::each(objects);
    let finding = Finding::of(Code::Unexplained, Severity::Info, Confidence::Low, summary)
        .about_all(&objects)
        .chain(lines.iter().filter_map(|e| source(e)).collect::<BTreeSet<String>>())
        .quoting(all.iter().take(MOST).map(|e| boot.quote(e)))
        .look([ToDo::with(
            "read the messages around these lines",
            "journalctl -b -p err -o short-precise",
        )])
        .look(lines.iter().any(|e| e.text.contains(" to RTR")).then_some(
            "on RoCE, whether the program has the index of the GID that it needs, which is not always 0: ibprov gid --port NETDEV --type rocev2 --address ADDRESS",
        ));
    told.push(finding);
    told
}

/// Beside ports that work, those of an adapter that has no link at all. A second port of an
/// adapter may be free.
fn dark(boot: &Boot) -> Option<Finding> {
    let ports = &boot.state.ports;
    let is_lit = |port: &PortSeen| port.state != "down";
    let is_dark = |port: &&PortSeen| {
        let its = ports.iter().filter(|other| other.is_beside(port));
        port.is_of_pf() && !port.node_guid.is_empty() && !its.clone().any(is_lit)
    };
    let of: Vec<&PortSeen> = ports.iter().filter(is_dark).collect();
    let first = of.first().filter(|_| boot.judgement().is_none())?;
    seen::sign_of_life(boot)?;
    let names = seen::each(of.iter().map(|port| port.name()));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let names = seen::all_of("port", &names);
    let text = format!(
        "No port of the adapter of {names} has a link: whether one is expected is not known."
    );
    Some(
        Finding::of(Code::Unexplained, Severity::Info, Confidence::Low, text)
            .about_all(of.iter().copied())
            .quoting(of.iter().take(MOST).map(|port| boot.quote_at(port.origin, &port.told())))
            .look([ToDo::at(&first.mad_port(), first.mad_port().ibportstate("query"))]),
    )
}

fn comes_and_goes(boot: &Boot, flap: &Flap<'_>) -> Finding {
    let stamp = |event: Option<&&Event>| event.map(|e| e.when.stamp.to_string());
    let (first, last) = (stamp(flap.losses.first()), stamp(flap.losses.last()));
    let told = format!(
        "The link of {} {} {} times, from {} to {}.",
        flap.object,
        // Where no loss was logged, each time that it came up stands for one.
        if flap.is_sure { "was lost" } else { "came up again" },
        flap.losses.len(),
        first.unwrap_or_default(),
        last.unwrap_or_default(),
    );
    let confidence = if flap.is_sure { Confidence::Medium } else { Confidence::Low };
    Finding::of(Code::Unexplained, Severity::Warning, confidence, told)
        .about(&flap.object)
        .quoting(seen::quotes(boot, flap.losses.iter().copied()))
        .look(["check the cable, the module and the port of the switch"])
}

/// Failures whose objects are named.
const FIRST: usize = 3;
/// Lines that are quoted.
const MOST: usize = 100;

/// What was lost, and no other finding tells of.
fn lost(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    let is_judged = boot.judgement().is_some();
    let is_told = |object: &Object| {
        let is_of = |told: &crate::names::Object| told.is_of(&object.name.as_str().into());
        let is_named = |quote: &Quote| has_word(&quote.text, &object.name);
        findings
            .iter()
            .filter(|f| f.severity != Severity::Info)
            .any(|f| f.objects.iter().any(is_of) || f.evidence.iter().any(is_named))
    };
    let told = |object: &Object, lack| {
        let (severity, what, look) = match lack {
            Lack::Gone => (Severity::Error, "is gone from the bus", "lspci -nnk"),
            Lack::Bus => (
                Severity::Error,
                "has an error of its PCIe link, and no recovery is logged",
                "journalctl -k | grep -e AER -e DPC -e pciehp",
            ),
            Lack::Fault => (
                Severity::Warning,
                "had an access refused by the IOMMU",
                "dmesg -T | grep -i -e dmar -e amd-vi",
            ),
            Lack::Address => (Severity::Warning, "has a link, and got no address", "ip address"),
            // Those have rules of their own.
            Lack::Cable | Lack::Carrier | Lack::NotActive | Lack::Driver | Lack::Failed => {
                return None;
            }
        };
        // What is behind an adapter is gone with it.
        let is_of_bus = matches!(lack, Lack::Gone | Lack::Bus);
        (!is_of_bus || object.what == What::Adapter).then_some(())?;
        // How ports and adapters of a host are, its judgement says.
        (!is_told(object) && (!is_judged || lack == Lack::Fault)).then_some(())?;
        let time = Some(object.last.quote.time.as_str()).filter(|time| !time.is_empty());
        let time = time.map(|time| format!(" at {time}")).unwrap_or_default();
        let text = object.last.quote.text.trim().trim_end_matches('.');
        let summary = format!("{} {what}{time}: {text}.", object.title());
        Some(
            Finding::of(Code::Unexplained, severity, Confidence::Medium, summary)
                .about(&object.name)
                .quoting([object.last.quote.clone()])
                .look([ToDo::run(look)]),
        )
    };
    boot.fold().bad().filter_map(|(object, lack)| told(object, lack)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::*;

    const ACTIVE: &str = "kern  :info  : [    9.0] hfi1 0000:05:00.0: hfi1_0: logical state changed to PORT_ACTIVE (0x4)";

    #[test]
    fn an_error_that_nobody_knows_is_quoted() {
        let strange = "kern  :err   : [    8.0] mlx5_core 0000:06:00.0: the flux is out of tune";
        assert_eq!(severity(Code::Unexplained, &[strange, ACTIVE]), Some(Severity::Info));
        assert_eq!(
            severity(Code::Unexplained, &[&strange.replace(":err ", ":info"), ACTIVE]),
            None
        );
        let elsewhere = "kern  :err   : [    8.0] ata1: the flux is out of tune";
        assert_eq!(severity(Code::Unexplained, &[elsewhere, ACTIVE]), None);
        // Without a level nobody knows how grave it is.
        let plain = "[    8.0] mlx5_core 0000:05:00.0: the flux is out of tune";
        assert_eq!(severity(Code::Unexplained, &[plain, ACTIVE]), None);
    }

    #[test]
    fn a_family_of_user_space_counts_only_where_it_is_about_the_stack() {
        let up =
            "Jan 02 10:00:10 n9 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        let device = "Jan 02 10:00:09 n9 systemd[1]: Timed out waiting for device ib1.";
        assert_eq!(severity(Code::Unexplained, &[device, up]), Some(Severity::Info));
        assert_eq!(severity(Code::Unexplained, &[&device.replace("ib1", "dev-sdb1"), up]), None);
    }

    #[test]
    fn a_failed_unit_that_uses_the_fabric_is_quoted() {
        let failed = "Jan 02 10:00:09 n9 systemd[1]: fabric-metrics.service: Failed with result 'exit-code'.";
        let said = "Jan 02 10:00:09 n9 fabric-metrics[77]: cannot open mlx5_0: No such device";
        let active =
            "Jan 02 10:00:10 n9 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        assert_eq!(severity(Code::Unexplained, &[said, failed, active]), Some(Severity::Info));
        let other = "Jan 02 10:00:09 n9 systemd[1]: cups.service: Failed with result 'exit-code'.";
        assert_eq!(severity(Code::Unexplained, &[other, active]), None);
    }
}
