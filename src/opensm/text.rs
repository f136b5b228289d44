//! A stretch of a file, which knows where it stands.

use std::ops::Range;

use memchr::memchr;

#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub bytes: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    pub(super) const fn of(file: &'a [u8]) -> Self {
        Self { bytes: file, at: 0 }
    }

    /// Where it stands, in bytes of the file.
    pub(super) const fn span(self) -> Range<usize> {
        self.at..self.at + self.bytes.len()
    }

    pub(super) const fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// The text cut at `middle`.
    pub(super) fn split_at(self, middle: usize) -> (Self, Self) {
        let (before, behind) = self.bytes.split_at(middle.min(self.bytes.len()));
        (Self { bytes: before, at: self.at }, Self { bytes: behind, at: self.at + before.len() })
    }

    /// What stands before the first `byte`, and behind it.
    pub(super) fn split_once(self, byte: u8) -> Option<(Self, Self)> {
        let (before, rest) = self.split_at(memchr(byte, self.bytes)?);
        Some((before, rest.split_at(1).1))
    }

    /// What stands before the first `byte`, or all of it, and what stands behind that byte.
    pub(super) fn cut(self, byte: u8) -> (Self, Option<Self>) {
        self.split_once(byte).map_or((self, None), |(before, behind)| (before, Some(behind)))
    }

    pub(super) fn before(self, byte: u8) -> Self {
        self.cut(byte).0
    }

    pub(super) fn split(self, byte: u8) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let (part, behind) = rest?.cut(byte);
            rest = behind;
            Some(part)
        })
    }

    /// Its lines, with their ends, as `fgets()` reads them into a buffer: at most `longest` bytes.
    pub(super) fn lines(self, longest: usize) -> impl Iterator<Item = Self> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let end = memchr(b'\n', rest.bytes).map_or(rest.bytes.len(), |at| at + 1);
            let (line, behind) = rest.split_at(end.min(longest));
            rest = behind;
            (!line.is_empty()).then_some(line)
        })
    }

    /// Without the blanks around it.
    pub(super) fn trimmed(self) -> Self {
        self.without(is_blank)
    }

    /// Without the bytes at both ends that are such.
    pub(super) fn without(self, is_such: fn(u8) -> bool) -> Self {
        let start = self.bytes.iter().take_while(|b| is_such(**b)).count();
        let (_, text) = self.split_at(start);
        let end = text.bytes.iter().rev().take_while(|b| is_such(**b)).count();
        text.split_at(text.bytes.len() - end).0
    }

    pub(super) fn trim_start(self) -> Self {
        self.split_at(self.bytes.iter().take_while(|b| is_blank(**b)).count()).1
    }

    /// The first word, and what stands behind it.
    pub(super) fn word(self) -> (Self, Self) {
        let text = self.trim_start();
        text.split_at(text.bytes.iter().take_while(|b| !is_blank(**b)).count())
    }

    /// A name, and its value if `=` stands in it.
    pub(super) fn named(self) -> (Self, Option<Self>) {
        let (name, value) = self.cut(b'=');
        (name.trimmed(), value.map(Self::trimmed))
    }

    pub(super) fn shown(self) -> String {
        super::shown(self.bytes)
    }
}

/// A carriage return is none for opensm.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}
