//! No fault, or none that is known.

use super::words::not_infiniband::TOOLS;
use super::{Book, Boot, Code, Confidence, Event, Finding, Kind, Quote, Severity, seen};
use crate::check::evidence::LeftOut;
use crate::check::evidence::fold::Object;
use crate::check::evidence::own::About;
use crate::check::evidence::relevance::concerns_rdma;
use crate::check::ledger::{has_word_of_fabric, words::own_words};
use crate::check::pattern::has_any;
use crate::model::advice::ToDo;
use crate::model::common::Verdict;

pub(super) fn input_left_out(boot: &Boot) -> Option<Finding> {
    let LeftOut { boots, words } = boot.left_out;
    // What a host shows does not depend on its log.
    if (boots == 0 && !words) || boot.judgement().is_some() {
        return None;
    }
    let text = match boots {
        0 => "The log is too long: the last line on an adapter, port or netdev may have been left out, and a fault with it.".to_owned(),
        1 => "The oldest boot of the log was not judged, because the log is too long.".to_owned(),
        n => format!("The {n} oldest boots of the log were not judged, because the log is too long."),
    };
    let look = match boots {
        0 => "journalctl --since TIME -o export | ibprov check --log -",
        _ => "ibprov check --boot 0 --log FILE",
    };
    let finding = Finding::of(Code::InputLeftOut, Severity::Info, Confidence::High, text);
    Some(finding.look([look]))
}

pub(super) fn healthy(book: &Book<'_>, findings: &[Finding]) -> Vec<Finding> {
    let boot = book.boot;
    let denies = |f: &Finding| {
        f.severity == Severity::Error || matches!(f.code, Code::InputLeftOut | Code::Unexplained)
    };
    if findings.iter().any(denies) {
        return Vec::new();
    }
    let good: Vec<&Object> = boot.fold().good().collect();
    let judgement = boot.judgement();
    if let Some(judgement) = judgement {
        let is_clean = findings.iter().all(|f| f.severity == Severity::Info);
        return match judgement.is_in_use() && is_clean {
            // The headline counts the others.
            true => {
                let one = good.get(..1).unwrap_or_default();
                vec![came_up(Confidence::High, one).chain([judgement.headline()])]
            }
            false => Vec::new(),
        };
    }
    let failed = |e: &&Event| seen::concerns_fabric(boot, e);
    let is_useless = |f: &Finding| matches!(f.code, Code::InterfaceNotOnline | Code::PkeyMissing);
    if findings.iter().any(is_useless)
        || boot.fold().bad().next().is_some()
        || seen::failed_units(boot).iter().any(failed)
    {
        return Vec::new();
    }
    match good.is_empty() {
        true => Vec::new(),
        false => vec![came_up(Confidence::High, &good)],
    }
}

fn came_up(confidence: Confidence, objects: &[&Object]) -> Finding {
    /// More of a kind prove nothing more.
    const ENOUGH: usize = 12;
    let mut quotes: Vec<(Option<usize>, Quote)> =
        objects.iter().map(|o| (o.last.event, o.last.quote.clone())).collect();
    quotes.sort_by_key(|(event, _)| *event);
    Finding::of(Code::Healthy, Severity::Info, confidence, "InfiniBand came up.")
        .quoting(quotes.into_iter().map(|(_, quote)| quote).take(ENOUGH))
}

pub(super) fn not_infiniband(book: &Book<'_>, findings: &[Finding]) -> Vec<Finding> {
    let boot = book.boot;
    if !findings.is_empty() {
        return Vec::new();
    }
    // How a host is, it shows itself.
    if let Some(judgement) = boot.judgement() {
        let none = judgement.is_without_adapter();
        let text = "This host has no InfiniBand adapter, and none is expected.";
        let finding = || Finding::of(Code::NotInfiniband, Severity::Info, Confidence::High, text);
        return none.then(finding).into_iter().collect();
    }
    // Words of ours would make it a case of too little evidence.
    let ours = boot.events.iter().any(is_ours)
        || seen::shows_infiniband(boot)
        || !boot.state.settings.is_empty()
        || boot.state.commands.iter().any(|c| about(&c.text));
    let own = boot.events.iter().any(|e| {
        matches!(&e.kind, Kind::Own(own) if own.about == About::Boot)
            && e.text.contains("this host has no InfiniBand")
    });
    if ours && !own {
        return Vec::new();
    }
    let (confidence, summary) = if own {
        (Confidence::High, "ibprov found no InfiniBand adapter on this host.")
    } else {
        (Confidence::Medium, "No line of the log is about InfiniBand.")
    };
    let collect = (!own).then_some(COLLECT).into_iter().flatten();
    vec![Finding::of(Code::NotInfiniband, Severity::Info, confidence, summary).look(collect)]
}

/// True if `event` is about the fabric. What is loaded says nothing of what failed.
fn is_ours(event: &Event) -> bool {
    matches!(event.kind, Kind::Own(_))
        || about(&event.text) && !event.text.contains("Modules linked in")
}

fn about(text: &str) -> bool {
    let text = own_words(text);
    let words = ["openib", "ipoib", "ibstat", "mlx4", "mlx5", "[020700]", "class 0x0207"];
    has_any(&text, TOOLS)
        || has_any(&text, &words)
        || has_word_of_fabric(&text)
        || seen::ib_netdev_in(&text).is_some()
        || concerns_rdma(&text)
}

const COLLECT: [&str; 3] = [
    "journalctl -b -o short-precise > journal.txt",
    "(ibstat; ip -d link; lspci -nnk; lsmod; systemctl --failed) > state.txt",
    "ibprov check --log journal.txt state.txt",
];

pub(super) fn unknown(book: &Book<'_>, findings: &[Finding]) -> Vec<Finding> {
    let boot = book.boot;
    // A netdev that was not there when it was wanted is a failure, whose cause
    // nobody here has found.
    let is_ipoib = |name: &str| boot.fold().is_ipoib(name);
    let absent = boot.lines(|e| seen::not_found(e).is_some_and(is_ipoib));
    let explained = findings.iter().any(|f| f.severity != Severity::Info);
    if let Some(first) = absent.first()
        && !explained
        && seen::sign_of_life(boot).is_none()
    {
        let netdev = seen::not_found(first).unwrap_or("the netdev");
        let told = format!(
            "{netdev} did not exist when the network service looked for it, and the log does not show why: the driver is missing or late, ib_ipoib is not loaded, or the netdev has another name."
        );
        return vec![
            Finding::of(Code::Unknown, Severity::Warning, Confidence::Low, told)
                .quoting(seen::quotes(boot, absent))
                .look(COLLECT),
        ];
    }
    // These say nothing of whether it works.
    const ASIDE: [Code; 3] = [Code::HarmlessWarning, Code::PcieLinkReduced, Code::FirmwareTooOld];
    let proved = findings.iter().any(|f| f.severity != Severity::Info || !ASIDE.contains(&f.code));
    // What the host itself shows is judged without logs.
    if let Some(judgement) = boot.judgement() {
        let is_ready = judgement.verdict == Verdict::Ready && !judgement.is_in_use();
        let text = "No port of this host is in use by the fabric, and none is missed: nothing shows whether InfiniBand works.";
        let idle = || {
            Finding::of(Code::Unknown, Severity::Info, Confidence::High, text)
                .look([ToDo::run("ibprov status -v")])
        };
        return (is_ready && !explained).then(idle).into_iter().collect();
    }
    if proved || seen::sign_of_life(boot).is_some() {
        return Vec::new();
    }
    let told = "The evidence shows neither that InfiniBand came up nor why it did not.";
    vec![Finding::of(Code::Unknown, Severity::Info, Confidence::Low, told).look(COLLECT)]
}
