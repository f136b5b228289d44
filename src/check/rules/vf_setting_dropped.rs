use super::{Boot, Confidence, Event, Finding, Judge, Kind, Quote, Rule, Severity, seen};
use crate::check::evidence::own::About;
use crate::report::common::{Code, Kind as Report};
use crate::report::node::Standing;
use crate::report::pf::DROPPED;

pub(super) const RULE: Rule = Rule {
    code: Code::VfSettingDropped,
    meaning: "the firmware has dropped a GUID or a link state that was set for a VF",
    page: "\
ibprov set a VF's GUID or link state at the PF, the kernel reported success, and the PF
or the VF shows another value when it is read back. The plan and the host are right: the
adapter's firmware has ignored the command. Some versions ignore it always, and some for
VFs that are bound to a driver, or while the port is in another mode.

Symptoms: \"the port GUID at the PF is 0000:0000:0000:0000 instead of ..., although
the write succeeded: the firmware ignored it\" in the report of the PF.

Remedy: try once by hand, which shows whether it depends on the order; then update
the firmware, or reset the adapter (mlxfwreset of NVIDIA's MFT takes the same arguments):

    ibprov apply
    mstfwreset -d PCI-ADDRESS reset",
    needles: &[&[DROPPED]],
    judge: Judge::Boot(judge),
};

fn judge(boot: &Boot) -> Vec<Finding> {
    told(boot, Code::VfSettingDropped, DROPPED, |pf| {
        Finding::new(
            RULE.code,
            Severity::Error,
            Confidence::High,
            format!(
                "The firmware of PF {pf} has ignored a setting of a VF: the write succeeded, and another value is read back."
            ),
        )
        .permanent([format!(
            "update the adapter's firmware, or reset the adapter: `mstfwreset -d {pf} reset` (or mlxfwreset with the same arguments)"
        )])
    })
}

/// What `finding` says of each PF of whose VFs a report has a finding of `code`, or a log a
/// text with `said`, and that is not as planned now.
pub(super) fn told(
    boot: &Boot,
    code: Code,
    said: &str,
    finding: impl Fn(&str) -> Finding,
) -> Vec<Finding> {
    let finding = |pf: &str, quotes: Vec<Quote>| {
        (!quotes.is_empty()).then(|| {
            finding(pf)
                .about(pf)
                .quoting(quotes)
                .look([format!("cat /run/ibprov/pf/{pf}.json")])
                .now(["ibprov apply"])
        })
    };
    let judgement = boot.host.as_ref().and_then(|host| host.judgement.as_ref());
    // What is as planned now was made good.
    let is_so_now = |pf: &str| {
        judgement.is_none_or(|judgement| {
            let of_pf = judgement.findings.iter().filter(|f| f.object.as_deref() == Some(pf));
            of_pf.into_iter().any(|f| f.code == Code::VfNotAsPlanned)
        })
    };
    let reports = boot.accounts.all.iter().filter(|account| account.kind == Report::ApplyPf);
    let mut found: Vec<Finding> = Vec::new();
    for account in reports.clone().filter(|account| is_so_now(&account.object)) {
        let quotes = account.findings.iter().filter(|f| f.code == code).map(|finding| Quote {
            source: account.source.clone(),
            line: 0,
            time: String::new(),
            text: format!("{}: {}", finding.subject(), finding.message),
        });
        found.extend(finding(&account.object, quotes.collect()));
    }
    // A file is replaced at each run, and so tells more than the log of the same PF.
    let mut logged: Vec<(&str, Vec<&Event>)> = Vec::new();
    for (event, pf) in boot.events.iter().filter_map(|event| Some((event, pf(event, said)?))) {
        if reports.clone().any(|account| account.object == pf)
            || !is_so_now(pf)
            || is_made_good(boot, event, pf)
        {
            continue;
        }
        match logged.iter_mut().find(|(known, _)| *known == pf) {
            Some((_, events)) => events.push(event),
            None => logged.push((pf, vec![event])),
        }
    }
    found.extend(logged.into_iter().filter_map(|(pf, of)| finding(pf, seen::quotes(boot, of))));
    found
}

/// The PF of whose VF `event` says `said`.
fn pf<'a>(event: &'a Event, said: &str) -> Option<&'a str> {
    let Kind::Own(own) = &event.kind else { return None };
    let is_it = own.about == About::Vf && own.standing == Standing::Missing;
    let object = own.object.strip_prefix("PF ")?;
    let (pf, _) = object.split_once(": ")?;
    (is_it && event.text.contains(said)).then_some(pf)
}

/// True if a later run found the PF as planned.
fn is_made_good(boot: &Boot, event: &Event, pf: &str) -> bool {
    boot.events.iter().filter(|later| later.origin > event.origin).any(|later| match &later.kind {
        Kind::Own(own) => {
            (own.about, own.standing) == (About::Pf, Standing::Ready)
                && own.object.strip_prefix("PF ") == Some(pf)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{severity, two_vfs};
    use super::*;
    use crate::check::evidence::host::Host;
    use crate::check::evidence::{Evidence, Intake};
    use crate::check::rank::diagnosis;
    use crate::report::common;
    use crate::report::node::Judgement;

    const PF: &str = "0000:4b:00.0";
    const DROPPED_GUID: &str = "Jan 02 10:00:03 n9 ibprov[77]: PF 0000:4b:00.0: VF 0 (0000:4b:00.1): not as planned (state: pci, expected: verified): the port GUID at the PF is 0000:0000:0000:0000 instead of 0200:0000:0000:0001, although the write succeeded: the firmware ignored it";

    fn report(code: Code) -> String {
        format!(
            r#"{{"schema":2,"report":"apply-pf","verdict":"not-right","exit_code":3,"pf":"{PF}","findings":[{{"code":"{code}","severity":"error","object":"{PF}","message":"VF 0: x","advice":[]}}]}}"#
        )
    }

    fn node(code: Code, now: Vec<common::Finding>) -> Boot {
        let judgement = Judgement::new(Vec::new(), Vec::new(), true, now);
        let host = Host { live: true, judgement: Some(judgement), ..Host::default() };
        let mut boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
        assert_eq!(boot.accounts.take("x.json", &report(code)), Ok(true));
        boot
    }

    #[test]
    fn what_the_firmware_dropped_is_told_before_the_zero_that_it_left() {
        let mut boot = node(
            Code::VfSettingDropped,
            vec![common::Finding::error(Code::VfNotAsPlanned, "VF 0 to be changed").about(PF)],
        );
        let mut intake = Intake::new(super::super::needles());
        let zeros = two_vfs("00:00:00:00:00:00:00:00", "00:00:00:00:00:00:00:00", "auto");
        intake.read("log", &mut zeros.as_bytes());
        let shown = intake.finish().boots.into_iter().next_back().expect("a boot");
        boot.state = shown.state;
        boot.names = shown.names;
        let told = |boot: &Boot| -> Vec<_> {
            let boots = vec![boot.clone()];
            let told = diagnosis(&Evidence { boots, ..Evidence::default() });
            told.findings.iter().map(|f| (f.code, f.caused_by)).collect()
        };
        let dropped = told(&boot);
        assert_eq!(dropped.first(), Some(&(RULE.code, None)), "{dropped:?}");
        for effect in [Code::VfGuidZero, Code::VfNotAsPlanned] {
            assert!(dropped.contains(&(effect, Some(RULE.code))), "{effect}: {dropped:?}");
        }
        // The same zero without a write is its own reason.
        boot.accounts = crate::check::evidence::account::Accounts::default();
        assert_eq!(told(&boot).first().map(|told| told.0), Some(Code::VfGuidZero));
    }

    #[test]
    fn what_was_made_good_and_what_was_not_dropped_are_not_told() {
        assert_eq!(judge(&node(Code::VfSettingDropped, Vec::new())), []);
        let wrong = common::Finding::error(Code::VfNotAsPlanned, "VF 0 to be changed").about(PF);
        assert_eq!(judge(&node(Code::VfNotAsPlanned, vec![wrong])), []);
    }

    #[test]
    fn a_log_tells_it_too() {
        assert_eq!(severity(&RULE, &[DROPPED_GUID]), Some(Severity::Error));
        let good = "Jan 02 10:00:09 n9 ibprov[99]: PF 0000:4b:00.0: 2 of 2 VFs as planned after 1.154 s, 4 steps";
        assert_eq!(severity(&RULE, &[DROPPED_GUID, good]), None);
        assert_eq!(severity(&RULE, &[good, DROPPED_GUID]), Some(Severity::Error));
        let others =
            DROPPED_GUID.replace(", although the write succeeded: the firmware ignored it", "");
        assert_eq!(severity(&RULE, &[&others]), None);
    }
}
