//! The order of findings: root causes first, consequences below them.

use crate::names::Object;
use std::collections::BTreeSet;

use super::evidence::event::function;
use super::evidence::{Boot, Evidence};
use super::ledger::{self, Book, Ledger};
use super::predict;
use super::rules::causes::explains;
use super::rules::{self, Judge, ib_netdev_in, rdma_module};
use crate::model::advice::Purpose;
use crate::model::common::{Code, Kind, Verdict};
use crate::model::finding::{
    Confidence, Diagnosis, Failures, Finding, Quote, Read, ReadEvidence, ReadSource, Severity,
};
use crate::model::node::Judgement;

/// Everything that the rules say of `evidence`.
pub fn diagnosis(evidence: &Evidence) -> Diagnosis {
    let told: Vec<&Boot> = evidence
        .boots
        .iter()
        .filter(|b| {
            let is_shown = !b.state.is_empty() || b.host.is_some() || !b.accounts.all.is_empty();
            is_shown || !b.events.is_empty()
        })
        .collect();
    let several = told.len() > 1;
    let (mut findings, mut failures) = (Vec::new(), Failures::default());
    let nothing = Boot::default();
    let boots = if told.is_empty() { vec![&nothing] } else { told };
    for boot in boots {
        let book = Book::of(boot);
        let mut of_boot = judge(&book);
        count_failures(&book, &of_boot, &mut failures);
        if several {
            for finding in &mut of_boot {
                finding.boot = Some(label(boot));
            }
        }
        findings.extend(of_boot);
    }
    // The last boot is what matters, but a failure in an earlier one is not
    // hidden behind a good one.
    Finding::worst_first(&mut findings);
    let findings = with_consequences(findings);
    let judgement = evidence.boots.iter().find_map(Boot::judgement);
    let is_judged = judgement.is_none_or(|j| j.verdict != Verdict::Unknown);
    let is_good = |j: &Judgement| j.is_in_use() || j.is_without_adapter();
    let verdict = match verdict(&findings, judgement.is_some_and(is_good)) {
        Verdict::Ready | Verdict::Exceptions if !is_judged => Verdict::Unknown,
        // Where the host is not seen, nothing is known to have failed.
        Verdict::NotReady if findings.iter().any(|f| f.code.leaves_unknown()) => Verdict::Unknown,
        verdict => verdict,
    };
    Diagnosis::new(Kind::Check, verdict, findings, ReadEvidence { read: read(evidence, failures) })
}

/// Adds what became of the failures of a boot.
fn count_failures(book: &Book<'_>, findings: &[Finding], all: &mut Failures) {
    const NONE: [Code; 3] = [Code::Unexplained, Code::HarmlessWarning, Code::Healthy];
    let explain = |finding: &&Finding| !NONE.contains(&finding.code);
    let findings: Vec<Finding> = findings.iter().filter(explain).cloned().collect();
    let ledger = Ledger::of(book, &findings);
    all.explained += ledger.explained;
    all.harmless += ledger.harmless;
    all.over += ledger.over;
    all.unexplained += ledger.failures.len();
}

/// What was read, for the reader to know what the verdict rests on.
fn read(evidence: &Evidence, failures: Failures) -> Read {
    let sources = evidence.sources.iter().filter(|source| source.bytes > 0);
    let with_lines: Vec<&Boot> =
        evidence.boots.iter().filter(|b| !b.begins.is_empty() || !b.events.is_empty()).collect();
    let stamps = || with_lines.iter().flat_map(|boot| &boot.events).map(|event| &event.when.stamp);
    Read {
        sources: sources
            .map(|source| ReadSource { name: source.name.clone(), lines: source.lines })
            .collect(),
        boots: with_lines.len(),
        begins: with_lines.first().map(|boot| boot.begins.clone()).unwrap_or_default(),
        ends: stamps()
            .rfind(|stamp| !stamp.is_empty())
            .map(ToString::to_string)
            .unwrap_or_default(),
        failures,
    }
}

/// What ibprov has said itself is no evidence where there is other.
fn without_own_words(boot: &Boot, findings: &mut [Finding]) {
    let own: BTreeSet<(&str, u64)> = boot
        .events
        .iter()
        .filter(|event| &*event.program == "ibprov")
        .filter_map(|event| {
            let source = boot.names.get(usize::from(event.origin.source))?;
            Some((source.as_str(), event.origin.line))
        })
        .collect();
    for finding in findings {
        // That rule is made of them.
        if finding.code == Code::NotAsExpected {
            continue;
        }
        let is_own = |quote: &Quote| own.contains(&(quote.source.as_str(), quote.line));
        if !finding.evidence.iter().all(is_own) {
            finding.evidence.retain(|quote| !is_own(quote));
        }
    }
}

/// False for what is said of the boot as a whole.
fn is_about_one(finding: &Finding) -> bool {
    const WHOLE: [Code; 7] = [
        Code::InputLeftOut,
        Code::Healthy,
        Code::HarmlessWarning,
        Code::Unexplained,
        Code::Unknown,
        Code::NotInfiniband,
        Code::NotAsExpected,
    ];
    !WHOLE.contains(&finding.code)
}

/// What a line that a finding rests on is about: a PCI function, an IPoIB netdev or a module
/// of the RDMA stack.
fn object(text: &str) -> Option<Object> {
    let function = function(text).or_else(|| ib_netdev_in(text));
    function.or_else(|| rdma_module(text)).map(Object::from)
}

/// What the rules say of one boot.
pub fn judge(book: &Book<'_>) -> Vec<Finding> {
    let boot = book.boot;
    let mut findings: Vec<Finding> = Vec::new();
    for rule in rules::ALL {
        match rule.judge {
            Judge::Row => findings.extend(rules::row::judge(boot, rule.code)),
            Judge::One(judge) => findings.extend(judge(boot)),
            Judge::Many(judge) => findings.extend(judge(boot)),
            Judge::Host | Judge::Rest(_) | Judge::Last(_) => {}
        }
    }
    predict::merge(&mut findings, predict::findings(boot));
    if let Some(host) = &boot.host {
        predict::account(host, &mut findings);
    }
    for rule in rules::ALL {
        if let Judge::Rest(judge) = rule.judge {
            let more = judge(book, &findings);
            findings.extend(more);
        }
    }
    without_own_words(boot, &mut findings);
    ledger::quote_causes(book, &mut findings);
    for rule in rules::ALL {
        if let Judge::Last(judge) = rule.judge {
            let more = judge(book, &findings);
            findings.extend(more);
        }
    }
    for finding in findings.iter_mut().filter(|f| f.objects.is_empty() && is_about_one(f)) {
        finding.objects.extend(finding.evidence.iter().find_map(|quote| object(&quote.text)));
    }
    let account = boot.judgement();
    in_order(findings, boot.host.is_some(), account)
}

/// Findings of one boot in order, each consequence behind its cause.
#[cfg(test)]
pub(super) fn ranked(findings: Vec<Finding>) -> Vec<Finding> {
    with_consequences(in_order(findings, false, None))
}

/// Findings of one boot with their causes, the gravest first. `ports_are_known`: whether a
/// port is a VF's was not guessed.
fn in_order(
    mut findings: Vec<Finding>,
    ports_are_known: bool,
    account: Option<&Judgement>,
) -> Vec<Finding> {
    // What a VF lacks is no reason why the port of an adapter is not in use.
    let is_elsewhere = |cause: Code, effect: Code| {
        ports_are_known
            && matches!(cause, Code::VfGuidZero | Code::VfPolicyDown | Code::OpensmVirtDisabled)
            && matches!(effect, Code::NoSubnetManager | Code::LinkDownCable)
    };
    blame(&mut findings, account);
    let made = findings.clone();
    for finding in &mut findings {
        // What is only advice causes no failure.
        let cause = made.iter().find(|cause| {
            cause.severity <= finding.severity
                && explains(cause.code, finding.code)
                && !is_elsewhere(cause.code, finding.code)
                && shares(cause, finding)
        });
        finding.caused_by = cause.map(|cause| cause.code);
        if let Some(cause) = cause {
            leave_to_cause(finding, cause);
        }
    }
    // That it works is said before what did not matter, and a diagnosis before both; among
    // equals the order of the rules holds.
    let place = |f: &Finding| {
        let rule = rules::rule(f.code).map_or(Code::NotAsExpected, |rule| rule.code);
        rules::ALL.iter().position(|r| r.code == rule)
    };
    findings.sort_by_key(|f| {
        let last = match f.code {
            Code::Unknown => 2,
            Code::HarmlessWarning => 1,
            _ => 0,
        };
        (
            f.severity,
            f.code != Code::Unexplained,
            f.code != Code::Healthy,
            last,
            f.confidence,
            place(f),
        )
    });
    findings
}

/// True unless both are about objects of one kind and share none of them: VFs, ports, or else
/// adapters.
fn shares(one: &Finding, other: &Finding) -> bool {
    fn share<'a, T: PartialEq>(
        [one, other]: [&'a Finding; 2],
        kind: impl Fn(&'a Object) -> Option<T>,
    ) -> Option<bool> {
        let of =
            |finding: &'a Finding| -> Vec<T> { finding.objects.iter().filter_map(&kind).collect() };
        let (one, other) = (of(one), of(other));
        let is_judged = !one.is_empty() && !other.is_empty();
        is_judged.then(|| one.iter().any(|object| other.contains(object)))
    }
    let both = [one, other];
    share(both, Object::vf)
        .or_else(|| share(both, Object::port))
        .or_else(|| share(both, |object| Some(object.function()?.adapter())))
        .unwrap_or(true)
}

/// Takes from `finding` the repairs for which its cause, where anything is to be done, has its
/// own. What makes every later boot right may be another thing for each of them.
fn leave_to_cause(finding: &mut Finding, cause: &Finding) {
    let of_cause = |purpose| cause.advice.iter().any(|step| step.purpose == purpose);
    finding.advice.retain(|step| match step.purpose {
        Purpose::Look => true,
        Purpose::Now => cause.advice.is_empty(),
        Purpose::Permanent => !of_cause(Purpose::Permanent),
    });
}

/// Where ibprov itself says that the node is not as it is meant to be, what explains that
/// is as grave, though it might have been harmless elsewhere.
fn blame(findings: &mut [Finding], account: Option<&Judgement>) {
    let is_told = |f: &&Finding| {
        f.code == Code::NotAsExpected
            || account.is_some_and(|account| account.findings.iter().any(|t| t.code == f.code))
    };
    let told: Vec<(Code, Severity)> =
        findings.iter().filter(is_told).map(|f| (f.code, f.severity)).collect();
    for (code, severity) in &told {
        // What the account says itself is as grave as it says.
        let is_own = |f: &Finding| told.iter().any(|(code, _)| *code == f.code);
        let explained = |f: &&mut Finding| {
            explains(f.code, *code) && f.severity != Severity::Info && !is_own(f)
        };
        if let Some(cause) = findings.iter_mut().filter(explained).min_by_key(|f| f.severity) {
            cause.severity = cause.severity.min(*severity);
        }
    }
}

/// Consequences behind what caused them.
fn with_consequences(findings: Vec<Finding>) -> Vec<Finding> {
    let (mut consequences, roots): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|f| f.caused_by.is_some());
    let mut ordered = Vec::new();
    for root in roots {
        let mut waiting = vec![root.clone()];
        ordered.push(root);
        while let Some(cause) = waiting.pop() {
            let (below, rest): (Vec<_>, Vec<_>) = consequences.into_iter().partition(|f| {
                f.caused_by == Some(cause.code) && f.boot == cause.boot && shares(&cause, f)
            });
            consequences = rest;
            waiting.extend(below.iter().cloned());
            ordered.extend(below);
        }
    }
    // Two that name each other as cause: said all the same.
    ordered.extend(consequences);
    ordered
}

fn label(boot: &Boot) -> String {
    match (&boot.id, boot.begins.as_str()) {
        (Some(id), "") => id.clone(),
        (Some(id), begins) => format!("{begins} ({id})"),
        (None, begins) => begins.to_owned(),
    }
}

/// ibprov has found none on the host. That a log does not mention InfiniBand proves nothing.
fn is_without_infiniband(finding: &Finding) -> bool {
    finding.code == Code::NotInfiniband && finding.confidence == Some(Confidence::High)
}

/// `judged_good`: the host itself was looked at, and is as it is meant to be.
fn verdict(findings: &[Finding], judged_good: bool) -> Verdict {
    let has = |code| findings.iter().any(|f| f.code == code);
    match findings.iter().map(|f| f.severity).min() {
        Some(Severity::Error) => Verdict::NotReady,
        _ if has(Code::Unknown) => Verdict::Unknown,
        Some(Severity::Warning) => Verdict::Exceptions,
        // A fault may be in it.
        _ if has(Code::InputLeftOut) || has(Code::Unexplained) => Verdict::Unknown,
        _ if has(Code::Healthy) || judged_good || findings.iter().any(is_without_infiniband) => {
            Verdict::Ready
        }
        // Nothing wrong was seen, and nothing that proves it right.
        _ => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::finding::Confidence;

    #[test]
    fn what_a_vf_lacks_explains_no_port_of_an_adapter_once_those_are_told_apart() {
        let finding = |code, object: &str| {
            Finding::of(code, Severity::Error, Confidence::High, "x").about(object)
        };
        for (lack, effect) in [
            (Code::VfGuidZero, Code::NoSubnetManager),
            (Code::VfGuidZero, Code::LinkDownCable),
            (Code::VfPolicyDown, Code::LinkDownCable),
            (Code::OpensmVirtDisabled, Code::NoSubnetManager),
        ] {
            let cause = |ports_are_known| {
                let both = vec![finding(lack, "0000:4b:00.2"), finding(effect, "mlx5_0/1")];
                let told = in_order(both, ports_are_known, None);
                told.iter().find(|f| f.code == effect).expect("the effect").caused_by
            };
            assert_eq!(cause(true), None, "{lack} of {effect}");
            assert_eq!(cause(false), Some(lack), "{lack} of {effect}");
        }
    }
}
