//! The messages of `messages.toml`: what the drivers of the RDMA stack and the programs on it
//! write, by families.

use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::super::evidence::Event;
use crate::report::common::Code;
use crate::report::unpacked;

/// All of `messages.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Messages {
    #[serde(rename = "family")]
    pub families: Vec<Family>,
    pub harmless: Vec<Harmless>,
}

/// Messages of one source file that stand for one thing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Family {
    #[serde(deserialize_with = "texts")]
    texts: Vec<Vec<String>>,
    pub source: String,
    #[serde(default)]
    pub sign: Vec<Code>,
    pub harmless: Option<String>,
}

/// Words that mean nothing in a line about the RDMA stack.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Harmless {
    pub words: Vec<String>,
    pub why: String,
}

fn texts<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Vec<String>>, D::Error> {
    let texts = Vec::<String>::deserialize(d)?;
    Ok(texts.iter().map(|text| text.split("...").map(str::to_owned).collect()).collect())
}

impl Family {
    /// The words of the message of this family that `text` is.
    pub(super) fn words_in(&self, text: &str) -> Option<&[String]> {
        let words = self.texts.iter().find(|words| words.iter().all(|word| text.contains(word)));
        words.map(Vec::as_slice)
    }
}

pub(super) fn of(event: &Event) -> Option<&'static Family> {
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

pub(super) fn messages() -> &'static Messages {
    static MESSAGES: OnceLock<Messages> = OnceLock::new();
    MESSAGES.get_or_init(|| data(include_bytes!(concat!(env!("OUT_DIR"), "/messages.toml.gz"))))
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
}
