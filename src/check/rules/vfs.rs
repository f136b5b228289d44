//! VFs without a driver, and settings that their PF does not take.

use super::words::vf_probe_failed::SLAVE;
use super::{Boot, Code, Confidence, Event, Finding, Kind, Quote, Severity, row, seen};
use crate::check::evidence::event::function;
use crate::check::evidence::own::About;
use crate::model::advice::ToDo;
use crate::model::common::Kind as Report;
use crate::model::node::Standing;
use crate::model::pf::{DROPPED, REFUSED};
use crate::names::{HCA_DRIVERS, Object, PciAddress, grouped};

pub(super) fn vf_not_probed(boot: &Boot) -> Option<Finding> {
    let lines = row::lines(boot, Code::VfNotProbed);
    // The plan of a host that was judged says whether they are meant for guests.
    let judgement = boot.judgement();
    let is_meant =
        judgement.is_some_and(|j| j.findings.iter().all(|f| f.code != Code::VfNotProbed));
    if is_meant || lines.is_empty() {
        return None;
    }
    let text = "mlx4_core has left VFs without a driver: its parameter probe_vf says how many the host may bind.";
    let judged = (Severity::Info, Confidence::High);
    Some(row::told(boot, Code::VfNotProbed, judged, text, &[], lines))
}

pub(super) fn vf_probe_failed(boot: &Boot) -> Option<Finding> {
    let probes: Vec<_> = boot
        .events
        .iter()
        .filter_map(|e| match &e.kind {
            Kind::ProbeFailed { driver, device, errno } if *errno != -517 => {
                let base = driver.split('.').next().unwrap_or(driver);
                (HCA_DRIVERS.contains(&base)).then_some((e, device.to_string()))
            }
            _ => None,
        })
        .filter_map(|(e, device)| {
            // An auxiliary device (`mlx5_core.eth.2`) is named by no address: the
            // line above it is.
            if device.parse::<PciAddress>().is_ok() {
                return seen::is_vf(boot, &device).then_some((e, device));
            }
            let above = boot.events.iter().rev().find(|a| {
                a.origin < e.origin && a.text.contains("failed") && function(&a.text).is_some()
            })?;
            let address = function(&above.text)?.to_owned();
            seen::is_vf(boot, &address).then_some((e, address))
        })
        .collect();
    let aborted = boot.with(", aborting").filter(|e| {
        e.text.trim_end().trim_end_matches('.').ends_with(", aborting")
            && HCA_DRIVERS.iter().any(|d| e.text.starts_with(d))
            && function(&e.text).is_some_and(|address| seen::is_vf(boot, address))
    });
    let slave: Vec<_> = boot.with_any(SLAVE).chain(aborted).collect();
    // The IOMMU refuses a VF's interrupts: its commands never complete.
    let blocked: Vec<_> = boot
        .with("Blocked a compatibility format interrupt")
        .filter_map(|e| {
            let short = e
                .text
                .split(['[', ']'])
                .find(|w| w.len() == 7 && w.contains(':') && w.contains('.'))?;
            let victim = boot.events.iter().find(|v| {
                v.text.contains(&format!(":{short}:")) && seen::rdma_module(&v.text).is_some()
            })?;
            let address = function(&victim.text)?;
            Some((e, victim, address.to_owned()))
        })
        .collect();
    let of_probes = probes.iter().map(|(_, address)| address.as_str());
    let of_blocked = blocked.iter().map(|(_, _, address)| address.as_str());
    let of_slaves = slave.iter().filter_map(|e| function(&e.text));
    let addresses = seen::each(of_probes.chain(of_blocked).chain(of_slaves));
    let is_full = probes.iter().any(|(e, _)| is_out_of_room(e));
    let why = match (probes.first(), blocked.first(), slave.first()) {
        _ if is_full => "no interrupt vectors are left for it (ENOSPC)",
        (Some((e, _)), _, _) | (None, None, Some(e)) => e.text.trim(),
        (None, Some(_), _) => {
            "the IOMMU blocks its interrupts, so that no command of the driver completes"
        }
        (None, None, None) => return None,
    };
    let first = probes.iter().map(|(e, _)| e.origin).min();
    let above = boot.events.iter().filter(|l| {
        Some(l.origin) < first
            && l.text.contains("failed")
            && probes.iter().any(|(_, address)| l.text.contains(address.as_str()))
    });
    let lines = above
        .chain(probes.iter().map(|(e, _)| *e))
        .chain(blocked.iter().flat_map(|(fault, victim, _)| [*fault, *victim]))
        .chain(slave.iter().copied());
    let of = match &addresses[..] {
        [] => "a VF".to_owned(),
        [one] if seen::is_vf(boot, one) => format!("VF {one}"),
        [one] => (*one).to_owned(),
        several => seen::all_of("VF", several),
    };
    let grep: Vec<String> = addresses.iter().map(|address| format!("-e {address}")).collect();
    let told = format!("The driver could not initialize {of}: {why}");
    let judged = (Severity::Error, Confidence::High);
    let look = ToDo::with(
        "find the first line that failed, which names the reason",
        format!("dmesg | grep {}", grep.join(" ")),
    );
    let finding =
        row::told(boot, Code::VfProbeFailed, judged, told, &addresses, lines).look([look]);
    Some(if is_full {
        finding.permanent(["plan fewer VFs, or give each fewer vectors before it is bound: `echo N > /sys/bus/pci/devices/VF/sriov_vf_msix_count`"])
    } else {
        finding.permanent(["if a command was refused: install another kernel or firmware"])
    })
}

/// True if the error of `event` is ENOSPC: the adapter or the interrupt controller has no room
/// for so many.
pub(super) fn is_out_of_room(event: &Event) -> bool {
    match &event.kind {
        Kind::ProbeFailed { errno, .. } => *errno == -28,
        _ => event.text.trim_end().ends_with(" -28"),
    }
}

pub(super) fn vf_setting_dropped(boot: &Boot) -> Vec<Finding> {
    told_of_pfs(boot, Code::VfSettingDropped, DROPPED, |pf| {
        format!(
            "The firmware of PF {pf} has ignored a setting of a VF: the write succeeded, and another value is read back."
        )
    })
}

/// What is `told` of each PF of whose VFs a report has a finding of `code`, or a log a
/// text with `said`, and that is not as planned now.
fn told_of_pfs(
    boot: &Boot,
    code: Code,
    said: &str,
    told: impl Fn(&Object) -> String,
) -> Vec<Finding> {
    let finding = |pf: &Object, quotes: Vec<Quote>| {
        let judged = (Severity::Error, Confidence::High);
        let finding = || row::told(boot, code, judged, told(pf), &[&pf.to_string()], []);
        (!quotes.is_empty()).then(|| finding().quoting(quotes))
    };
    let judgement = boot.judgement();
    // What is as planned now was made good.
    let is_so_now = |pf: &Object| {
        judgement.is_none_or(|judgement| {
            let lacks = judgement.findings.iter().filter(|f| f.code == Code::VfNotAsPlanned);
            lacks.into_iter().any(|f| f.objects.contains(pf))
        })
    };
    let reports = boot.accounts.all.iter().filter(|account| account.kind == Report::ApplyPf);
    let mut found: Vec<Finding> = Vec::new();
    let of_pfs = reports.clone().filter_map(|account| Some((account, account.object.as_ref()?)));
    for (account, pf) in of_pfs.filter(|(_, pf)| is_so_now(pf)) {
        let quotes = account.findings.iter().filter(|f| f.code == code).map(|finding| Quote {
            source: account.source.clone(),
            text: format!("{}: {}", finding.subject(), finding.message),
            ..Quote::default()
        });
        found.extend(finding(pf, quotes.collect()));
    }
    // A file is replaced at each run, and so tells more than the log of the same PF.
    let of_pf = |event: &&Event| {
        let pf = pf(event, said)?;
        let is_reported = reports.clone().any(|account| account.object.as_ref() == Some(&pf));
        (!is_reported && is_so_now(&pf) && !is_made_good(boot, event, &pf)).then_some(pf)
    };
    let logged = grouped(&boot.events, of_pf);
    found.extend(logged.into_iter().filter_map(|(pf, of)| finding(&pf?, seen::quotes(boot, of))));
    found
}

/// The PF of whose VF `event` says `said`.
fn pf(event: &Event, said: &str) -> Option<Object> {
    let Kind::Own(own) = &event.kind else { return None };
    let is_it = own.about == About::Vf && own.standing == Standing::Missing;
    let vf = own.objects.first()?.vf()?;
    (is_it && event.text.contains(said)).then(|| vf.pf.into())
}

/// True if a later run found the PF as planned.
fn is_made_good(boot: &Boot, event: &Event, pf: &Object) -> bool {
    boot.events.iter().filter(|later| later.origin > event.origin).any(|later| match &later.kind {
        Kind::Own(own) => {
            (own.about, own.standing) == (About::Pf, Standing::Ready)
                && own.objects.first() == Some(pf)
        }
        _ => false,
    })
}

pub(super) fn vf_setting_refused(boot: &Boot) -> Vec<Finding> {
    told_of_pfs(boot, Code::VfSettingRefused, REFUSED, |pf| {
        format!("PF {pf} refuses a setting of a VF: the kernel returned an error for it.")
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{severity, two_vfs};
    use super::*;
    use crate::check::evidence::host::Host;
    use crate::check::evidence::{Evidence, Intake};
    use crate::check::rank::diagnosis;
    use crate::model::node::Judgement;

    #[test]
    fn a_driver_that_leaves_its_probe_says_aborting() {
        let slave =
            "[ 1.0] mlx4_core a6d1:00:02.0: Detected virtual function - running in slave mode";
        let aborts =
            "[ 1.1] mlx4_core a6d1:00:02.0: INTx is not supported in multi-function mode, aborting";
        assert_eq!(severity(Code::VfProbeFailed, &[slave, aborts]), Some(Severity::Error));
        assert_eq!(severity(Code::VfProbeFailed, &[slave]), None);
        assert_eq!(severity(Code::DriverRegression, &[slave, aborts]), None);
    }

    const PF: &str = "0000:4b:00.0";
    const DROPPED_GUID: &str = "Jan 02 10:00:03 n9 ibprov[77]: PF 0000:4b:00.0: VF 0 (0000:4b:00.1): not as planned (state: pci, expected: verified): the port GUID at the PF is 0000:0000:0000:0000 instead of 0200:0000:0000:0001, although the write succeeded: the firmware ignored it";

    fn report(code: Code) -> String {
        format!(
            r#"{{"schema":1,"report":"apply-pf","verdict":"not-right","exit_code":3,"pf":"{PF}","findings":[{{"code":"{code}","severity":"error","object":"{PF}","message":"VF 0: x","advice":[]}}]}}"#
        )
    }

    fn node(code: Code, now: Vec<Finding>) -> Boot {
        let judgement = Judgement::new(Vec::new(), Vec::new(), true, true, now);
        let host = Host { live: true, judgement: Some(judgement), ..Host::default() };
        let mut boot = Boot { host: Some(Box::new(host)), ..Boot::default() };
        assert_eq!(boot.accounts.take("x.json", &report(code)), Ok(true));
        boot
    }

    #[test]
    fn what_the_firmware_dropped_is_told_before_the_zero_that_it_left() {
        let mut boot = node(
            Code::VfSettingDropped,
            vec![Finding::error(Code::VfNotAsPlanned, "VF 0 to be changed").about(PF)],
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
        assert_eq!(dropped.first(), Some(&(Code::VfSettingDropped, None)), "{dropped:?}");
        for effect in [Code::VfGuidZero, Code::VfNotAsPlanned] {
            assert!(
                dropped.contains(&(effect, Some(Code::VfSettingDropped))),
                "{effect}: {dropped:?}"
            );
        }
        // The same zero without a write is its own reason.
        boot.accounts = crate::check::evidence::account::Accounts::default();
        assert_eq!(told(&boot).first().map(|told| told.0), Some(Code::VfGuidZero));
    }

    #[test]
    fn what_was_made_good_and_what_was_not_dropped_are_not_told() {
        assert_eq!(vf_setting_dropped(&node(Code::VfSettingDropped, Vec::new())), []);
        let wrong = Finding::error(Code::VfNotAsPlanned, "VF 0 to be changed").about(PF);
        assert_eq!(vf_setting_dropped(&node(Code::VfNotAsPlanned, vec![wrong])), []);
    }

    #[test]
    fn a_log_tells_it_too() {
        assert_eq!(severity(Code::VfSettingDropped, &[DROPPED_GUID]), Some(Severity::Error));
        let good = "Jan 02 10:00:09 n9 ibprov[99]: PF 0000:4b:00.0: 2 of 2 VFs as planned after 1.154 s, 4 steps";
        assert_eq!(severity(Code::VfSettingDropped, &[DROPPED_GUID, good]), None);
        assert_eq!(severity(Code::VfSettingDropped, &[good, DROPPED_GUID]), Some(Severity::Error));
        let others =
            DROPPED_GUID.replace(", although the write succeeded: the firmware ignored it", "");
        assert_eq!(severity(Code::VfSettingDropped, &[&others]), None);
    }

    const REFUSED_GUID: &str = "Jan 02 10:00:03 n9 ibprov[77]: PF 0000:4b:00.0: VF 0 (0000:4b:00.1): not as planned (state: pci, expected: verified): the node GUID at the PF is 0000:0000:0000:0000 instead of 0200:0000:0000:0001, and the change was refused: set node GUID of VF 0 to 0200:0000:0000:0001: set by netlink: EIO";

    #[test]
    fn a_log_tells_it_until_it_is_made_good() {
        assert_eq!(severity(Code::VfSettingRefused, &[REFUSED_GUID]), Some(Severity::Error));
        let good = "Jan 02 10:00:09 n9 ibprov[99]: PF 0000:4b:00.0: 2 of 2 VFs as planned after 1.154 s, 4 steps";
        assert_eq!(severity(Code::VfSettingRefused, &[REFUSED_GUID, good]), None);
        let others = REFUSED_GUID.replace("and the change was refused: ", "");
        assert_eq!(severity(Code::VfSettingRefused, &[&others]), None);
    }
}
