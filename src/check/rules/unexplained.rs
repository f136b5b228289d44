//! Errors of the stack, and failed units, that no diagnosis is made of.

use std::collections::BTreeSet;

use super::families::Family;
use super::{
    Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, families, harmless_warning, seen,
};
use crate::check::evidence::Level;
use crate::check::evidence::fold::{Lack, Object, What};
use crate::check::evidence::relevance::concerns_rdma;
use crate::check::pattern::has_word;

pub(super) const RULE: Rule = Rule {
    code: Code::Unexplained,
    meaning: "the log has errors of the RDMA stack, or a failed unit, that no diagnosis explains",
    page: "\
No known fault was found, but a driver of the RDMA stack, or a program of the boot about
an InfiniBand device (systemd, udev, a network service, the initramfs), has written lines
at error level, or a unit that uses InfiniBand has failed. No diagnosis and no list of
harmless messages names the reason. The node may work, but the verdict is not healthy.

A unit uses InfiniBand if it is a storage, job, guest or container service that is known
by its name (slurmd, lnet, gpfs, beegfs-client, kubelet ...), the mount of no local file
system, or if it has written of an RDMA device. One that was started after it had failed
does not count.

An adapter that is gone from the bus at the end of the log is an error; one whose access
the IOMMU has refused, and a netdev that got no address, are warnings.

Symptoms: the verdict is `unexplained`, and the lines are quoted. Levels are those
of the journal and of `dmesg -x`; in text without levels only message families that
are known count. Exits 0, and 1 with --strict; 1 if an adapter or a netdev was lost.

Remedy: read the lines. If they appear at each good boot, they are harmless on this host:
report them to the maintainers, with the log.",
    // What a unit writes that uses the stack by its libraries or by an OFED's sources.
    needles: &[&["OFED", "ofa_kernel", "rdma_create", "ibv_", "libibverbs", "librdmacm"]],
    judge: Judge::Rest(judge),
};

fn judge(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    let lost = lost(boot, findings);
    // Beside a failure, what else is strange is not worth a second verdict.
    if !lost.is_empty() || findings.iter().any(|f| f.severity != Severity::Info) {
        return lost;
    }
    let lines: Vec<&Event> = unexplained(boot, findings).collect();
    let mut units = seen::failed_units(boot);
    units.retain(|e| seen::concerns_fabric(boot, e));
    let Some(first) = lines.first().or(units.first()) else { return Vec::new() };
    let mut all = lines.clone();
    all.extend(&units);
    // What makes it a unit of the fabric.
    all.extend(
        units
            .iter()
            .flat_map(|failed| seen::words_of_unit(boot, failed))
            .filter(|event| concerns_rdma(&event.text)),
    );
    let summary = match (lines.len(), units.len()) {
        (0, _) => format!("A unit that uses InfiniBand failed: {}", first.text.trim()),
        (1, 0) => format!("The RDMA stack reports an error: {}", first.text.trim()),
        (n, _) => format!("The RDMA stack reports {n} errors; the first is: {}", first.text.trim()),
    };
    vec![
        Finding::new(RULE.code, Severity::Info, Confidence::Low, summary)
            .chain(
                lines
                    .iter()
                    .filter_map(|e| {
                        let family = families::of(e)?;
                        let words = family.words_in(&e.text)?.join(" ... ");
                        Some(format!("{words:?} is written by {}.", family.source))
                    })
                    .collect::<BTreeSet<String>>(),
            )
            .quoting(all.iter().map(|e| boot.quote(e)))
            .look(["read the messages around these lines: journalctl -b -p err -o short-precise"]),
    ]
}

/// What was lost, and no other finding tells of.
fn lost(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    let is_judged = boot.host.as_ref().is_some_and(|host| host.judgement.is_some());
    let is_told = |object: &Object| {
        let names = |text: &str| has_word(text, &object.name);
        findings.iter().filter(|f| f.severity != Severity::Info).any(|f| {
            f.object.as_deref().is_some_and(names) || f.evidence.iter().any(|q| names(&q.text))
        })
    };
    let told = |object: &Object, lack| {
        let (severity, what, look) = match lack {
            Lack::Gone => (Severity::Error, "is gone from the bus", "lspci -nnk"),
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
        (lack != Lack::Gone || object.what == What::Adapter).then_some(())?;
        // How ports and adapters of a host are, its judgement says.
        (!is_told(object) && (!is_judged || lack == Lack::Fault)).then_some(())?;
        let time = Some(object.last.quote.time.as_str()).filter(|time| !time.is_empty());
        let time = time.map(|time| format!(" at {time}")).unwrap_or_default();
        let text = object.last.quote.text.trim().trim_end_matches('.');
        let summary = format!("{} {what}{time}: {text}.", object.title());
        Some(
            Finding::new(RULE.code, severity, Confidence::Medium, summary)
                .about(&object.name)
                .quoting([object.last.quote.clone()])
                .look([look]),
        )
    };
    boot.fold().bad().filter_map(|(object, lack)| told(object, lack)).collect()
}

/// The lines of the RDMA stack at error level, and of a family of messages about it; where
/// the log has no levels those of a family.
pub fn alarming(boot: &Boot) -> impl Iterator<Item = &Event> {
    boot.events.iter().filter(|event| match event.level {
        Some(level) => {
            let is_known = event.from_kernel() || families::of(event).is_some();
            level == Level::Error && is_known && concerns_rdma(&event.text)
        }
        None => {
            // A program of user space may write of anything.
            families::of(event).is_some() && (event.from_kernel() || concerns_rdma(&event.text))
        }
    })
}

/// Those of them that no finding is made of and no family calls harmless.
pub fn unexplained<'a>(boot: &'a Boot, findings: &'a [Finding]) -> impl Iterator<Item = &'a Event> {
    alarming(boot).filter(move |event| {
        let harmless = families::of(event).is_some_and(|family| family.harmless.is_some())
            || harmless_warning::why(&event.text).is_some();
        !harmless && !is_quoted(boot, event, findings)
    })
}

/// True if a finding is made of `event`, or of lines like it.
fn is_quoted(boot: &Boot, event: &Event, findings: &[Finding]) -> bool {
    let quote = boot.quote(event);
    let is_sign = |family: &Family| findings.iter().any(|f| family.sign.contains(&f.code));
    if families::of(event).is_some_and(is_sign) {
        return true;
    }
    findings.iter().any(|finding| {
        let alike = super::rule(finding.code).is_some_and(|rule| {
            rule.needles.iter().copied().flatten().any(|n| event.text.contains(n))
        });
        ![Code::Healthy, Code::HarmlessWarning].contains(&finding.code) && alike
            || finding.evidence.contains(&quote)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::severity;
    use super::{RULE, Severity};

    const ACTIVE: &str = "kern  :info  : [    9.0] hfi1 0000:05:00.0: hfi1_0: logical state changed to PORT_ACTIVE (0x4)";

    #[test]
    fn an_error_that_nobody_knows_is_quoted() {
        let strange = "kern  :err   : [    8.0] mlx5_core 0000:05:00.0: the flux is out of tune";
        assert_eq!(severity(&RULE, &[strange, ACTIVE]), Some(Severity::Info));
        assert_eq!(severity(&RULE, &[&strange.replace(":err ", ":info"), ACTIVE]), None);
        let elsewhere = "kern  :err   : [    8.0] ata1: the flux is out of tune";
        assert_eq!(severity(&RULE, &[elsewhere, ACTIVE]), None);
        // Without a level nobody knows how grave it is.
        let plain = "[    8.0] mlx5_core 0000:05:00.0: the flux is out of tune";
        assert_eq!(severity(&RULE, &[plain, ACTIVE]), None);
    }

    #[test]
    fn a_family_of_user_space_counts_only_where_it_is_about_the_stack() {
        let up =
            "Jan 02 10:00:10 n9 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        let device = "Jan 02 10:00:09 n9 systemd[1]: Timed out waiting for device ib1.";
        assert_eq!(severity(&RULE, &[device, up]), Some(Severity::Info));
        assert_eq!(severity(&RULE, &[&device.replace("ib1", "dev-sdb1"), up]), None);
    }

    #[test]
    fn a_failed_unit_that_uses_the_fabric_is_quoted() {
        let failed = "Jan 02 10:00:09 n9 systemd[1]: fabric-metrics.service: Failed with result 'exit-code'.";
        let said = "Jan 02 10:00:09 n9 fabric-metrics[77]: cannot open mlx5_0: No such device";
        let active =
            "Jan 02 10:00:10 n9 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        assert_eq!(severity(&RULE, &[said, failed, active]), Some(Severity::Info));
        let other = "Jan 02 10:00:09 n9 systemd[1]: cups.service: Failed with result 'exit-code'.";
        assert_eq!(severity(&RULE, &[other, active]), None);
    }
}
