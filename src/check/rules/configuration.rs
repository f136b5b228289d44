//! ibprov and its configuration: what it says itself, and what the node lacks of its plan.

use std::collections::BTreeMap;

use super::{Boot, Code, Confidence, Finding, Kind, Quote, Severity, seen};
use crate::check::evidence::account::Account;
use crate::check::evidence::own::About;
use crate::model::advice::ToDo;
use crate::model::common::{self, listed};
use crate::model::node::{Judgement, Standing};
use crate::names::Object;

pub(super) fn not_as_expected(boot: &Boot) -> Option<Finding> {
    let judgement = boot.judgement();
    // What was written down is one account.
    let mut told = logged(boot, judgement);
    told.extend(failed_units(boot, judgement));
    Finding::worst_first(&mut told);
    let whole = told.into_iter().reduce(|first, other| {
        first.chain([other.message]).quoting(other.evidence).advise(other.advice)
    })?;
    Some(Finding { message: format!("{}.", whole.message), ..whole })
}

/// That something is not as it is meant to be, in one line.
fn told(severity: Severity, text: String, quote: Quote, look: impl Into<String>) -> Finding {
    let finding = Finding::of(Code::NotAsExpected, severity, Confidence::High, text);
    finding.quoting([quote]).look([ToDo::run(look)])
}

/// An outcome that ibprov has written to the log or to a file.
struct Written {
    standing: Standing,
    text: String,
    quote: Quote,
}

/// What ibprov itself has written to the log and to its report files, as far as it was not
/// made good later. Where the host is judged as it is now, only what that judgement does not
/// look at counts.
fn logged(boot: &Boot, judgement: Option<&Judgement>) -> Vec<Finding> {
    let mut last: BTreeMap<(About, Vec<Object>), Written> = BTreeMap::new();
    for event in &boot.events {
        let Kind::Own(own) = &event.kind else { continue };
        // A boot looks at everything anew.
        if own.about == About::Boot {
            last.retain(|(about, _), _| {
                matches!(about, About::Port | About::Pf | About::Vf | About::Step)
                    && own.standing != Standing::Ready
                    || matches!(about, About::WaitOnline | About::Online | About::Guest)
            });
        }
        let written = Written {
            standing: own.standing,
            text: event.text.trim_end_matches('.').to_owned(),
            quote: boot.quote(event),
        };
        last.insert((own.about, own.objects.clone()), written);
    }
    for account in &boot.accounts.all {
        filed(boot, account, &mut last);
    }
    let is_bad =
        |about| last.iter().any(|((a, _), w)| *a == about && w.standing != Standing::Ready);
    let summed_up = is_bad(About::Boot) || is_bad(About::Pf);
    let waited = is_bad(About::WaitOnline);
    let counts = |about: About| match about {
        // A step that failed may have been made good; it counts beside what did not come.
        About::Step => summed_up && judgement.is_none(),
        About::Online => !waited,
        About::Boot | About::Pf | About::Port | About::Vf | About::Guest => judgement.is_none(),
        About::WaitOnline | About::Interface => true,
    };
    // What a port lacks now the judgement of the host says.
    let past = judgement.is_some();
    let bad = last
        .into_iter()
        .filter(|((about, _), written)| counts(*about) && written.standing != Standing::Ready);
    bad.map(|((about, objects), written)| {
        let severity = match written.standing {
            Standing::Missing if !past => Severity::Error,
            _ => Severity::Warning,
        };
        // What a step failed at stands in its text.
        let objects = if about == About::Step { Vec::new() } else { objects };
        told(severity, written.text, written.quote, "ibprov status").about_all(objects)
    })
    .collect()
}

/// Put what a report file says in the place of what the log says of the same: a file is
/// replaced at each run, and so tells of the last one.
fn filed(boot: &Boot, account: &Account, last: &mut BTreeMap<(About, Vec<Object>), Written>) {
    let quote = |text: &str| Quote {
        source: account.source.clone(),
        text: text.to_owned(),
        ..Quote::default()
    };
    let found = account.findings.iter().filter(|f| f.severity != Severity::Info);
    let texts: Vec<String> =
        found.clone().map(|f| format!("{}: {}", f.subject(), f.message)).collect();
    let summary = |what: &str| match texts.as_slice() {
        [] => what.to_owned(),
        [only] => format!("{what}: {only}"),
        [first, rest @ ..] => format!("{what}: {first} and {} more", rest.len()),
    };
    let mut put = |about, objects: Vec<Object>, standing, text: String| {
        let text = text.trim_end_matches('.').to_owned();
        let quote = quote(&text);
        last.insert((about, objects), Written { standing, text, quote });
    };
    let standing = account.standing;
    match account.kind {
        common::Kind::Boot => {
            let headline = boot.accounts.boot.as_ref().map(|report| report.headline());
            put(About::Boot, Vec::new(), standing, headline.unwrap_or_default());
        }
        common::Kind::ApplyPf => {
            let pf = listed(account.object.as_slice());
            let text = summary(&format!("PF {pf}: the VFs are not as planned"));
            put(About::Pf, account.object.iter().cloned().collect(), standing, text);
        }
        common::Kind::Iface => {
            let text = match texts.first() {
                Some(first) => first.clone(),
                None => {
                    format!("{}: not configured, or not up", listed(account.object.as_slice()))
                }
            };
            put(About::Interface, account.object.iter().cloned().collect(), standing, text);
        }
        common::Kind::WaitOnline => {
            let is_degraded = |f: &Finding| f.code == common::Code::PortDegraded;
            let what = if found.clone().all(is_degraded) && !texts.is_empty() {
                "wait-online: the link of a port is below its minimum"
            } else {
                "wait-online: not every port is online"
            };
            put(About::WaitOnline, Vec::new(), standing, summary(what));
            last.retain(|(about, _), _| *about != About::Online);
        }
        common::Kind::Guests => {
            last.retain(|(about, _), _| *about != About::Guest);
            // One that still waits has not failed.
            let failed = found.zip(texts).filter(|(f, _)| f.code == common::Code::GuestFailed);
            for (finding, text) in failed {
                let written = Written { standing: Standing::Missing, quote: quote(&text), text };
                last.insert((About::Guest, finding.objects.clone()), written);
            }
        }
        _ => {}
    }
}

/// Units of ibprov's that failed, by the log or by a dump; a judgement of the host knows
/// them itself.
fn failed_units(boot: &Boot, judgement: Option<&Judgement>) -> Vec<Finding> {
    if judgement.is_some() {
        return Vec::new();
    }
    let failed = |unit: &str, quote: Quote| {
        let (text, look) =
            (format!("{unit} has failed"), format!("journalctl -b -u '{}'", every(unit)));
        told(Severity::Error, text, quote, look).about(unit)
    };
    let by_log = seen::failed_units(boot).into_iter().filter_map(|event| match &event.kind {
        Kind::UnitFailed(unit) => Some(failed(own_unit(unit)?, boot.quote(event))),
        _ => None,
    });
    let shown = boot.state.units.iter().filter(|unit| unit.active.starts_with("failed"));
    let shown = shown.filter_map(|unit| {
        Some(failed(own_unit(&unit.name)?, boot.quote_at(unit.origin, &unit.text)))
    });
    by_log.chain(shown).collect()
}

/// All instances of the template that `unit` is one of.
fn every(unit: &str) -> String {
    match unit.split_once('@') {
        Some((template, _)) => format!("{template}@*"),
        None => unit.to_owned(),
    }
}

/// The unit of ibprov's that systemd calls `name`: by its name, or before v249 by its
/// description.
fn own_unit(name: &str) -> Option<&str> {
    const DESCRIPTIONS: [(&str, &str); 7] = [
        ("Bring up InfiniBand ports", "ibprov.service"),
        ("Wait until InfiniBand ports are online", "ibprov-wait-online.service"),
        ("Set up InfiniBand interface", "ibprov-iface@.service"),
        ("Set up P_Key children", "ibprov-children.service"),
        ("Read back the settings of InfiniBand interface", "ibprov-iface-later@.service"),
        ("GUID plan of the PF", "ibprov-pf@.service"),
        ("Start virtual machines when their InfiniBand VFs", "ibprov-guests.service"),
    ];
    if name.starts_with("ibprov") {
        return Some(name);
    }
    DESCRIPTIONS.iter().find(|(words, _)| name.starts_with(words)).map(|(_, unit)| *unit)
}

pub(super) fn ibprov_switched_off(boot: &Boot) -> Option<Finding> {
    // A host is judged by its /proc/cmdline.
    if boot.judgement().is_some() {
        return None;
    }
    let is_off = |text: &str| text.split_whitespace().any(|word| word == "ibprov=0");
    let line = boot.with("ommand line: ").find(|e| e.from_kernel() && is_off(&e.text))?;
    let text = "ibprov=0 is on the kernel command line: no unit of ibprov ran in this boot.";
    let finding = Finding::of(Code::IbprovSwitchedOff, Severity::Info, Confidence::High, text);
    Some(finding.quoting([boot.quote(line)]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::*;
    use crate::check::evidence::host::Host;
    use crate::check::ledger::Book;

    #[test]
    fn it_is_the_first_thing_that_is_told() {
        let told = Finding::new(
            Code::ConfigurationInvalid,
            Severity::Error,
            "the configuration has an error",
        );
        let judgement = Judgement::new(Vec::new(), Vec::new(), true, true, vec![told]);
        let host = Host { live: true, judgement: Some(judgement), ..Host::default() };
        let boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
        let all = crate::check::rank::judge(&Book::of(&boot));
        assert_eq!(all.first().map(|f| f.code), Some(Code::ConfigurationInvalid), "{all:?}");
        assert!(all.iter().all(|f| f.code != Code::NotAsExpected), "{all:?}");
    }

    #[test]
    fn what_ibprov_has_logged_counts_unless_it_was_made_good() {
        let failed = "Nov 23 10:00:09 n9 ibprov[77]: boot incomplete after 1.154 s: PF 0000:01:00.0: 0 of 4 VFs as planned (sriov_numvfs: ENOSPC); 1 of 1 expected ports ready";
        let good = "Nov 23 10:05:09 n9 ibprov[99]: 1 of 1 expected ports ready after 0.1 s";
        assert_eq!(severity(Code::NotAsExpected, &[failed]), Some(Severity::Error));
        assert_eq!(severity(Code::NotAsExpected, &[failed, good]), None);
        assert_eq!(severity(Code::NotAsExpected, &[good]), None);
        let unit =
            "Nov 23 10:00:09 n9 systemd[1]: ibprov-guests.service: Failed with result 'exit-code'.";
        assert_eq!(severity(Code::NotAsExpected, &[good, unit]), Some(Severity::Error));
        let older = "Nov 23 10:00:09 n9 systemd[1]: Failed to start Bring up InfiniBand ports.";
        assert_eq!(severity(Code::NotAsExpected, &[good, older]), Some(Severity::Error));
        let another =
            "Nov 23 10:00:09 n9 systemd[1]: cups.service: Failed with result 'exit-code'.";
        assert_eq!(severity(Code::NotAsExpected, &[good, another]), None);
    }
}
