//! The messages of `messages.toml`: what the drivers of the RDMA stack and the programs on it
//! write, by families; and the diagnoses that are made of the harmless and of the unexplained.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::{Boot, Code, Confidence, Event, Finding, Judge, Rule, Severity, seen};
use crate::check::evidence::Level;
use crate::check::evidence::fold::{Lack, Object, What};
use crate::check::evidence::relevance::concerns_rdma;
use crate::check::pattern::{has_any, has_word};
use crate::report::unpacked;

/// All of `messages.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Messages {
    #[serde(rename = "family")]
    families: Vec<Family>,
    harmless: Vec<Harmless>,
}

/// Messages of one source file that stand for one thing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    #[serde(deserialize_with = "texts")]
    texts: Vec<Vec<String>>,
    source: String,
    #[serde(default)]
    sign: Vec<Code>,
    harmless: Option<String>,
}

/// Words that mean nothing in a line about the RDMA stack.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Harmless {
    words: Vec<String>,
    why: String,
}

fn texts<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Vec<String>>, D::Error> {
    let texts = Vec::<String>::deserialize(d)?;
    Ok(texts.iter().map(|text| text.split("...").map(str::to_owned).collect()).collect())
}

impl Family {
    /// The words of the message of this family that `text` is.
    fn words_in(&self, text: &str) -> Option<&[String]> {
        let words = self.texts.iter().find(|words| words.iter().all(|word| text.contains(word)));
        words.map(Vec::as_slice)
    }
}

fn family_of(event: &Event) -> Option<&'static Family> {
    messages().families.iter().find(|family| family.words_in(&event.text).is_some())
}

/// The words by which all of them are looked for.
pub(super) fn needles() -> impl Iterator<Item = &'static str> {
    let Messages { families, harmless } = messages();
    let texts = families.iter().flat_map(|family| &family.texts);
    let harmless = harmless.iter().flat_map(|harmless| &harmless.words);
    texts.filter_map(|words| words.first()).chain(harmless).map(String::as_str)
}

/// What a file of data beside the rules says; `packed` is what build.rs has made of it.
pub(super) fn data<T: DeserializeOwned + Default>(packed: &[u8]) -> T {
    let text = unpacked(packed).map_err(|e| e.to_string());
    text.and_then(|text| toml::from_str(&text).map_err(|e| e.to_string())).unwrap_or_else(|e| {
        tracing::error!("the data of the rules cannot be read: {e}");
        T::default()
    })
}

fn messages() -> &'static Messages {
    static MESSAGES: OnceLock<Messages> = OnceLock::new();
    MESSAGES.get_or_init(|| data(include_bytes!(concat!(env!("OUT_DIR"), "/messages.toml.gz"))))
}

pub(super) const HARMLESS_WARNING: Rule = Rule {
    code: Code::HarmlessWarning,
    meaning: "harmless messages that look like errors",
    page: "\
Some lines read like a failure and report none: an upper layer that has nothing to do, a
feature that the adapter lacks, a taint, a transient state while the port comes up. Each
line is listed with the reason why it does not matter. Failures in the same log are
findings of their own.",
    // Beside the words of messages.toml.
    needles: &[&[
        "ACCESS_REG",
        "mlx5_cmd_out_err",
        "mlx5_cmd_check",
        "async UMR",
        "Unable to locate proper PHY",
        "no userspace device-specific driver found",
        "NO-CARRIER",
        "pcie bandwidth",
        "limited by",
        "Refused to change power state",
        "Not supported. Please upgrade",
        "please upgrade to later FW",
        "failed to enable relaxed ordering",
        "mlx5_fw_tracer",
        "FWTracer",
        "DEV_CAP",
        "Enforcing HT",
        "disabling already-disabled",
        "Deferred probe",
        "hw csum failure",
    ]],
    judge: Judge::Rest(harmless_warning),
};

fn harmless_warning(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    // A line that a failure rests on is not harmless.
    let blamed = |event: &Event| {
        findings.iter().filter(|f| f.severity != Severity::Info).any(|f| {
            f.evidence.iter().any(|q| q.line == event.origin.line && q.text == *event.text)
        })
    };
    let mut whys: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for event in &boot.events {
        let Some(why) = why(&event.text) else { continue };
        if !whys.contains(&why) && !blamed(event) {
            whys.push(why);
            lines.push(event);
        }
    }
    if lines.is_empty() {
        return Vec::new();
    }
    let said = match lines.len() {
        1 => "1 harmless message that looks like an error".to_owned(),
        n => format!("{n} harmless messages that look like errors"),
    };
    let told = format!("{said}: {}.", whys.first().copied().unwrap_or_default());
    vec![
        Finding::new(Code::HarmlessWarning, Severity::Info, Confidence::High, told)
            .chain(whys)
            .quoting(seen::quotes(boot, lines)),
    ]
}

/// Why `text` means nothing, if it is one of the lines of this rule.
fn why(text: &str) -> Option<&'static str> {
    let is_in = |harmless: &&Harmless| harmless.words.iter().any(|word| text.contains(word));
    let known = messages().harmless.iter().find(is_in).map(|harmless| harmless.why.as_str());
    // Queries that the firmware refuses do no harm; commands that make
    // something are another matter, and fail a probe.
    let refused = has_any(text, &["mlx5_cmd_out_err", "mlx5_cmd_check"])
        && has_any(text, &["ACCESS_REG", "QUERY_", "bad operation"]);
    let refused =
        refused.then_some("the firmware does not know a query that the driver can do without");
    let is_ours = || about_rdma(text) || text.contains("defaulting to 1000");
    known.or(refused).filter(|_| is_ours())
}

/// The taint and field-spanning lines name their module.
fn about_rdma(text: &str) -> bool {
    seen::rdma_module(text).is_some()
        || seen::ib_netdev_in(text).is_some()
        || has_any(
            text,
            &[
                "rdma",
                "infiniband",
                "ib_",
                "mlx",
                "hfi1",
                "umad",
                "srpt",
                "HCA",
                "verbs",
                "iwpmd",
                "ibacm",
            ],
        )
}

pub(super) const UNEXPLAINED: Rule = Rule {
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
    judge: Judge::Rest(unexplained),
};

fn unexplained(boot: &Boot, findings: &[Finding]) -> Vec<Finding> {
    let lost = lost(boot, findings);
    // Beside a failure, what else is strange is not worth a second verdict.
    if !lost.is_empty() || findings.iter().any(|f| f.severity != Severity::Info) {
        return lost;
    }
    let lines: Vec<&Event> = unexplained_lines(boot, findings).collect();
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
        Finding::new(Code::Unexplained, Severity::Info, Confidence::Low, summary)
            .chain(
                lines
                    .iter()
                    .filter_map(|e| {
                        let family = family_of(e)?;
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
    let is_judged = boot.judgement().is_some();
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
            Finding::new(Code::Unexplained, severity, Confidence::Medium, summary)
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
            let is_known = event.from_kernel() || family_of(event).is_some();
            level == Level::Error && is_known && concerns_rdma(&event.text)
        }
        None => {
            // A program of user space may write of anything.
            family_of(event).is_some() && (event.from_kernel() || concerns_rdma(&event.text))
        }
    })
}

/// Those of them that no finding is made of and no family calls harmless.
pub fn unexplained_lines<'a>(
    boot: &'a Boot,
    findings: &'a [Finding],
) -> impl Iterator<Item = &'a Event> {
    alarming(boot).filter(move |event| {
        let harmless = family_of(event).is_some_and(|family| family.harmless.is_some())
            || why(&event.text).is_some();
        !harmless && !is_quoted(boot, event, findings)
    })
}

/// True if a finding is made of `event`, or of lines like it.
fn is_quoted(boot: &Boot, event: &Event, findings: &[Finding]) -> bool {
    let quote = boot.quote(event);
    let is_sign = |family: &Family| findings.iter().any(|f| family.sign.contains(&f.code));
    if family_of(event).is_some_and(is_sign) {
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
    use super::*;

    #[test]
    fn each_family_can_be_found_and_names_rules_and_its_source() {
        let families = &messages().families;
        assert!((100..=150).contains(&families.len()), "{}", families.len());
        let mut earlier: Vec<&[String]> = Vec::new();
        for Family { texts, source, sign, harmless } in families {
            assert!(!texts.is_empty(), "{source}");
            for words in texts {
                assert!(words.first().is_some_and(|word| word.len() >= 3), "{words:?}");
                assert!(words.iter().all(|word| word.len() <= 60), "{words:?}");
                // One that an earlier one hides is never met.
                let is_hidden = earlier.iter().any(|hiding| {
                    hiding.iter().all(|word| words.iter().any(|own| own.contains(word)))
                });
                assert!(!is_hidden, "{words:?}");
                earlier.push(words);
            }
            assert!(source.contains('.') || source.contains('/'), "{texts:?}: {source}");
            for code in sign {
                assert!(super::super::rule(*code).is_some(), "{texts:?}: {code:?}");
            }
            assert!(sign.is_empty() || harmless.is_none(), "{texts:?}");
            let says = |why: &String| why.len() > 10 && !why.ends_with('.');
            assert!(harmless.as_ref().is_none_or(says), "{texts:?}");
            // One source and one meaning are one family.
            let is_same =
                |f: &&Family| (&f.source, &f.sign, &f.harmless) == (source, sign, harmless);
            assert_eq!(families.iter().filter(is_same).count(), 1, "{source}: {sign:?}");
        }
    }

    /// What the programs of the boot write about a netdev, a mount or a unit of ours.
    #[test]
    fn the_words_of_the_programs_around_the_stack_are_known() {
        let families = &messages().families;
        let of = |text: &str| families.iter().find(|family| family.words_in(text).is_some());
        for (text, source) in [
            ("ib1: Failed to rename network interface 5 from 'ib1' to 'ib0': File exists", "udev"),
            ("ib0: Failed to set MTU, ignoring: Invalid argument", "networkd-setlink"),
            ("ib0.8001: netdev could not be created: No such device", "netdev/netdev"),
            ("device (ib0): interface ib0 not up for IP configuration", "nm-device.c"),
            ("failed setting sriov_numvfs to 8 for ib0: [Errno 28]", "sriov.py"),
            ("ifup: failed to bring up ib0", "ifupdown"),
            ("Warning: No carrier detected on interface ib0", "ifup.sh"),
            ("ipconfig: ib0: SIOCGIFINDEX: No such device", "ipconfig"),
            ("srv-ib0.mount: Mounting timed out. Terminating.", "core/mount"),
            ("Failed to find module 'ib_ipoib'", "module-util"),
        ] {
            let found = of(text).map(|family| family.source.as_str()).unwrap_or_default();
            assert!(found.contains(source), "{text}: {found}");
        }
        assert!(of("ib0: Gained carrier").is_none());
    }

    const ACTIVE: &str = "kern  :info  : [    9.0] hfi1 0000:05:00.0: hfi1_0: logical state changed to PORT_ACTIVE (0x4)";

    #[test]
    fn an_error_that_nobody_knows_is_quoted() {
        let strange = "kern  :err   : [    8.0] mlx5_core 0000:05:00.0: the flux is out of tune";
        assert_eq!(severity(&UNEXPLAINED, &[strange, ACTIVE]), Some(Severity::Info));
        assert_eq!(severity(&UNEXPLAINED, &[&strange.replace(":err ", ":info"), ACTIVE]), None);
        let elsewhere = "kern  :err   : [    8.0] ata1: the flux is out of tune";
        assert_eq!(severity(&UNEXPLAINED, &[elsewhere, ACTIVE]), None);
        // Without a level nobody knows how grave it is.
        let plain = "[    8.0] mlx5_core 0000:05:00.0: the flux is out of tune";
        assert_eq!(severity(&UNEXPLAINED, &[plain, ACTIVE]), None);
    }

    #[test]
    fn a_family_of_user_space_counts_only_where_it_is_about_the_stack() {
        let up =
            "Jan 02 10:00:10 n9 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        let device = "Jan 02 10:00:09 n9 systemd[1]: Timed out waiting for device ib1.";
        assert_eq!(severity(&UNEXPLAINED, &[device, up]), Some(Severity::Info));
        assert_eq!(severity(&UNEXPLAINED, &[&device.replace("ib1", "dev-sdb1"), up]), None);
    }

    #[test]
    fn a_failed_unit_that_uses_the_fabric_is_quoted() {
        let failed = "Jan 02 10:00:09 n9 systemd[1]: fabric-metrics.service: Failed with result 'exit-code'.";
        let said = "Jan 02 10:00:09 n9 fabric-metrics[77]: cannot open mlx5_0: No such device";
        let active =
            "Jan 02 10:00:10 n9 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready";
        assert_eq!(severity(&UNEXPLAINED, &[said, failed, active]), Some(Severity::Info));
        let other = "Jan 02 10:00:09 n9 systemd[1]: cups.service: Failed with result 'exit-code'.";
        assert_eq!(severity(&UNEXPLAINED, &[other, active]), None);
    }
}
