//! The words that are looked for: a line without one of them is passed over
//! without being taken apart, which is what makes gigabytes affordable.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::words::{dump, event, fold, own};

/// All needles and the machine that finds them.
pub struct Needles {
    /// Finds any of them; `None` if it could not be built, and then every line
    /// is taken apart.
    pub finder: Option<AhoCorasick>,
    scanner: OnceLock<Option<AhoCorasick>>,
    words: Vec<&'static str>,
    /// Where those begin that only say that a line may be of the fabric.
    general: usize,
}

impl std::fmt::Debug for Needles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Needles").field("words", &self.words.len()).finish_non_exhaustive()
    }
}

fn machine(kind: AhoCorasickKind, words: &[&'static str]) -> Option<AhoCorasick> {
    AhoCorasick::builder().kind(Some(kind)).build(words).ok()
}

impl Needles {
    /// These `words`, those of the shared kinds of event, of the dumps and of the fold; by the
    /// `general` ones a line is kept only if it says a failure.
    pub fn with(
        words: impl IntoIterator<Item = &'static str>,
        general: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let shared = event::NEEDLES.iter().chain(own::NEEDLES).chain(dump::NEEDLES);
        let shared = shared.chain(fold::NEEDLES).copied();
        let mut words: Vec<&'static str> = words.into_iter().chain(shared).collect();
        words.sort_unstable();
        words.dedup();
        let first = words.len();
        let more: Vec<_> =
            general.into_iter().filter(|w| words.binary_search(w).is_err()).collect();
        words.extend(more);
        let finder = machine(AhoCorasickKind::ContiguousNFA, &words);
        Self { finder, scanner: OnceLock::new(), words, general: first }
    }

    /// The same for large sources: a DFA of a few megabytes, one table look-up
    /// for each byte. To build it costs more than to read the journal of a boot,
    /// so it is built when it is first asked for.
    pub fn scanner(&self) -> Option<&AhoCorasick> {
        self.scanner.get_or_init(|| machine(AhoCorasickKind::DFA, &self.words)).as_ref()
    }

    /// The number of the words by which no rule knows a line, if `pattern` is one of them: of all
    /// together, so many lines are kept as of one other word.
    pub fn general(&self, pattern: usize) -> Option<usize> {
        (pattern >= self.general).then_some(self.general)
    }

    /// True if `name` is a word of one of the needles.
    pub fn has_word(&self, name: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        self.words
            .iter()
            .take(self.general)
            .any(|needle| needle.split(|c| !is_part(c)).any(|word| word.eq_ignore_ascii_case(name)))
    }

    /// True if lines with `needle` are kept.
    pub fn knows(&self, needle: &str) -> bool {
        self.words.iter().take(self.general).any(|word| needle.contains(word))
    }
}
