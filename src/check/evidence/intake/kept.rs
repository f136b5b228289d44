//! The lines of a boot that are kept: of each word the first and the last, and the last of each
//! object, so that whatever is left out, no last word is.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Held;

/// Lines kept of one word.
const EACH: usize = 1000;
/// How many of them are the first ones.
const FIRST: usize = 100;
/// Lines kept of those that no rule has a word for, units and modules for the picture: of these
/// the beginning matters.
const NAMELESS: (usize, usize) = (4000, 3600);
/// Lines kept in all.
const MOST: usize = 10_000;
/// Objects, by the words that are said of them, of which the last line is kept.
const OBJECTS: usize = 8192;

/// A word, by its number; that of lines without one is [`Word::MAX`].
pub(super) type Word = usize;

/// Lines of one boot.
#[derive(Debug, Default)]
pub(super) struct Kept {
    lines: Vec<Option<Line>>,
    /// Places in `lines` that are free.
    free: Vec<usize>,
    /// Lines that were given.
    given: u64,
    words: Vec<VecDeque<usize>>,
    nameless: VecDeque<usize>,
    objects: HashMap<Box<str>, BTreeMap<Word, usize>>,
    /// How many `objects` have, words and all.
    last_words: usize,
    /// The last word on an object may have been left out.
    pub(super) left_out: bool,
}

/// A line, and for how many reasons it is kept.
#[derive(Debug)]
struct Line {
    number: u64,
    holders: usize,
    line: Held,
}

impl Kept {
    pub(super) fn len(&self) -> usize {
        self.lines.len() - self.free.len()
    }

    /// True if as many lines of `word` are kept as may be.
    pub(super) fn has_enough_of(&self, word: Word) -> bool {
        self.words.get(word).is_some_and(|lines| lines.len() >= EACH)
    }

    /// True if something was said of `object`.
    pub(super) fn knows(&self, object: &str) -> bool {
        self.objects.contains_key(object)
    }

    /// Keep `line`, in which these words stand, and which may be the last word on `objects`.
    pub(super) fn put<'o>(
        &mut self,
        words: &[Word],
        objects: impl Iterator<Item = &'o str>,
        line: Held,
    ) {
        let line = Line { number: self.given, holders: 1, line };
        self.given += 1;
        let at = self.free.pop().unwrap_or(self.lines.len());
        match self.lines.get_mut(at) {
            Some(place) => *place = Some(line),
            None => self.lines.push(Some(line)),
        }
        for word in words {
            let (most, first) = if *word == Word::MAX { NAMELESS } else { (EACH, FIRST) };
            let lines = self.of(*word);
            lines.push_back(at);
            let old = (lines.len() > most).then(|| lines.remove(first)).flatten();
            self.hold(at);
            if let Some(old) = old {
                self.release(old);
            }
        }
        for object in objects {
            self.last_word(words, object, at);
        }
        self.release(at);
        while self.len() > MOST
            && let Some(old) = self.of_the_most_frequent()
        {
            self.release(old);
        }
    }

    fn of(&mut self, word: Word) -> &mut VecDeque<usize> {
        if word == Word::MAX {
            return &mut self.nameless;
        }
        if self.words.len() <= word {
            self.words.resize_with(word + 1, VecDeque::new);
        }
        self.words.get_mut(word).unwrap_or(&mut self.nameless)
    }

    /// Line `at` is the last of each of `words` on `object`.
    fn last_word(&mut self, words: &[Word], object: &str, at: usize) {
        let mut said = self.objects.remove(object).unwrap_or_default();
        for word in words {
            let is_new = !said.contains_key(word);
            if is_new && self.last_words >= OBJECTS {
                self.left_out = true;
                continue;
            }
            self.last_words += usize::from(is_new);
            self.hold(at);
            if let Some(old) = said.insert(*word, at) {
                self.release(old);
            }
        }
        self.objects.insert(object.into(), said);
    }

    /// A line of the word of which most are kept, which is kept for it no longer.
    fn of_the_most_frequent(&mut self) -> Option<usize> {
        let all = self.words.iter_mut().chain([&mut self.nameless]);
        let lines = all.max_by_key(|lines| lines.len())?;
        lines.remove(lines.len() / (EACH / FIRST))
    }

    fn hold(&mut self, at: usize) {
        if let Some(Some(line)) = self.lines.get_mut(at) {
            line.holders += 1;
        }
    }

    /// There is a reason less to keep line `at`.
    fn release(&mut self, at: usize) {
        let Some(place) = self.lines.get_mut(at) else { return };
        let Some(line) = place else { return };
        line.holders -= 1;
        if line.holders == 0 {
            *place = None;
            self.free.push(at);
        }
    }

    /// The lines in the order in which they were given.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Held> + use<> {
        let mut lines: Vec<Line> = std::mem::take(self).lines.into_iter().flatten().collect();
        lines.sort_unstable_by_key(|line| line.number);
        lines.into_iter().map(|line| line.line)
    }
}
