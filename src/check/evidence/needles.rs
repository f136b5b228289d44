//! The words that are looked for: a line without one of them is passed over
//! without being taken apart, which is what makes gigabytes affordable.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::super::rules;
use super::{event, state};

/// All needles and the machine that finds them.
pub struct Needles {
    /// Finds any of them; `None` if it could not be built, and then every line
    /// is taken apart.
    pub finder: Option<AhoCorasick>,
    scanner: OnceLock<Option<AhoCorasick>>,
    words: Vec<&'static str>,
}

impl std::fmt::Debug for Needles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Needles").field("words", &self.words.len()).finish_non_exhaustive()
    }
}

/// The needles of every rule, of the shared kinds of event and of the dumps.
pub fn needles() -> &'static Needles {
    static NEEDLES: OnceLock<Needles> = OnceLock::new();
    NEEDLES.get_or_init(|| {
        let mut words: Vec<&'static str> = rules::ALL
            .iter()
            .flat_map(|rule| rule.needles.iter().copied().flatten())
            .chain(event::NEEDLES)
            .chain(state::NEEDLES)
            .copied()
            .collect();
        words.sort_unstable();
        words.dedup();
        let finder = machine(AhoCorasickKind::ContiguousNFA, &words);
        Needles { finder, scanner: OnceLock::new(), words }
    })
}

fn machine(kind: AhoCorasickKind, words: &[&'static str]) -> Option<AhoCorasick> {
    AhoCorasick::builder().kind(Some(kind)).build(words).ok()
}

impl Needles {
    /// The same for large sources: a DFA of a few megabytes, one table look-up
    /// for each byte. To build it costs more than to read the journal of a boot,
    /// so it is built when it is first asked for.
    pub fn scanner(&self) -> Option<&AhoCorasick> {
        self.scanner.get_or_init(|| machine(AhoCorasickKind::DFA, &self.words)).as_ref()
    }
}

/// True if lines with `needle` are kept.
#[must_use]
pub fn knows(needle: &str) -> bool {
    needles().words.iter().any(|word| needle.contains(word))
}
