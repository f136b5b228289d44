//! The messages of `messages.toml`: what the drivers of the RDMA stack and the programs on it
//! write, by families; and the diagnoses that are made of the harmless and of the unexplained.

use crate::names::{Object, PciAddress};
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer};

use super::words::harmless_warning::OURS;
use super::{Book, Boot, Code, Confidence, Event, Finding, Severity, seen};
use crate::check::evidence::event::function;
use crate::check::pattern::has_any;
use crate::model::data::data;

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

fn messages() -> &'static Messages {
    static MESSAGES: OnceLock<Messages> = OnceLock::new();
    MESSAGES.get_or_init(|| data(include_bytes!(concat!(env!("OUT_DIR"), "/messages.toml.gz"))))
}

pub(super) fn harmless_warning(book: &Book<'_>, findings: &[Finding]) -> Vec<Finding> {
    let boot = book.boot;
    // A line that a failure rests on is not harmless.
    let blamed = |event: &Event| {
        let blames = |f: &&Finding| f.severity != Severity::Info || f.code == Code::Unexplained;
        findings.iter().filter(blames).any(|f| {
            f.evidence.iter().any(|q| q.line == event.origin.line && q.text == *event.text)
        })
    };
    let mut whys: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for event in &boot.events {
        let Some(why) = why(&event.text).filter(|_| is_ours(&event.text)) else { continue };
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
        Finding::of(Code::HarmlessWarning, Severity::Info, Confidence::High, told)
            .chain(whys)
            .quoting(seen::quotes(boot, lines)),
    ]
}

/// Why `text` means nothing, if it is about the RDMA stack.
fn why(text: &str) -> Option<&'static str> {
    let is_in = |harmless: &&Harmless| harmless.words.iter().any(|word| text.contains(word));
    let known = messages().harmless.iter().find(is_in).map(|harmless| harmless.why.as_str());
    // Queries that the firmware refuses do no harm; commands that make
    // something are another matter, and fail a probe.
    let refused = has_any(text, &["mlx5_cmd_out_err", "mlx5_cmd_check"])
        && (has_any(text, &["QUERY_", "bad operation"])
            || text.contains("ACCESS_REG") && text.contains("bad parameter"));
    let refused =
        refused.then_some("the firmware does not know a query that the driver can do without");
    known.or(refused)
}

/// The taint and field-spanning lines name their module.
fn is_ours(text: &str) -> bool {
    seen::rdma_module(text).is_some() || seen::ib_netdev_in(text).is_some() || has_any(text, OURS)
}

/// Which source file writes `event`, where that is known.
pub(super) fn source(event: &Event) -> Option<String> {
    let family = family_of(event)?;
    let words = family.words_in(&event.text)?.join(" ... ");
    Some(format!("{words:?} is written by {}.", family.source))
}

/// True if `event` reads like a failure and is known to report none.
pub(in crate::check) fn is_harmless(event: &Event) -> bool {
    family_of(event).is_some_and(|family| family.harmless.is_some()) || why(&event.text).is_some()
}

/// True if a finding is made of `event`, or of lines like it on the same adapter.
pub(in crate::check) fn is_quoted(boot: &Boot, event: &Event, findings: &[Finding]) -> bool {
    const NONE: [Code; 3] = [Code::Healthy, Code::HarmlessWarning, Code::InputLeftOut];
    let quote = boot.quote(event);
    let signs = family_of(event).map(|family| family.sign.as_slice()).unwrap_or_default();
    findings.iter().filter(|finding| !NONE.contains(&finding.code)).any(|finding| {
        let has_needle = super::rule(finding.code)
            .is_some_and(|rule| rule.words().any(|needle| event.text.contains(needle)));
        let is_alike = has_needle || signs.contains(&finding.code);
        is_alike && !is_of_another(event, finding) || finding.evidence.contains(&quote)
    })
}

/// True if `event` names an adapter, and `finding` is about others.
fn is_of_another(event: &Event, finding: &Finding) -> bool {
    let named = function(&event.text).and_then(|function| Object::from(function).function());
    let of: Vec<PciAddress> = finding.objects.iter().filter_map(Object::function).collect();
    let is_other = |named: PciAddress| of.iter().all(|function| !function.is_beside(named));
    !of.is_empty() && named.is_some_and(is_other)
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn only_a_bar_of_vfs_is_left_without_room_by_right() {
        let of_bar = |bar| {
            why(&format!("mlx5_core 0000:4b:00.0: BAR {bar}: no space for [mem size 0x1000]"))
        };
        assert!(of_bar(7).is_some());
        assert!(of_bar(0).is_none());
    }
}
