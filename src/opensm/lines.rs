//! The buffer into which opensm reads a line, and how it takes words from it.
//!
//! opensm cuts words by writing zeros into the buffer, and in some places it goes on behind
//! the zero: then it reads the comment of the line, or what a longer line before has left.
//! So the buffer is kept here too, as long as the file is read.

use std::ops::Range;

use memchr::{memchr, memchr2};

/// `char line[4096]`, of which `fgets()` fills one byte less than it is told.
const SIZE: usize = 4096;
/// The longest line that is read as one, with its line end.
pub(super) const LONGEST: usize = SIZE - 2;
/// What memory holds that nobody has written: nothing that means anything.
const UNWRITTEN: u8 = 0xaa;

pub(super) struct Lines<'a> {
    file: &'a [u8],
    buffer: Vec<u8>,
    /// Where in the file the buffer begins.
    base: usize,
    /// How much of the buffer is of this line.
    length: usize,
}

/// A word, and its value if `=` stands in it.
pub(super) struct Token {
    pub name: Range<usize>,
    pub value: Option<Range<usize>>,
    /// How far opensm goes on.
    pub step: usize,
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a [u8]) -> Self {
        Self { file, buffer: vec![UNWRITTEN; SIZE], base: 0, length: 0 }
    }

    /// Reads the next line; false at the end of the file.
    pub(super) fn next(&mut self) -> bool {
        self.base += self.length;
        let rest = self.file.get(self.base..).unwrap_or_default();
        let line = rest.split_inclusive(|b| *b == b'\n').next().unwrap_or_default();
        let line = line.get(..LONGEST).unwrap_or(line);
        self.length = line.len();
        for (to, from) in self.buffer.iter_mut().zip(line.iter().chain(&[0])) {
            *to = *from;
        }
        self.length > 0
    }

    /// The line as the file has it, without its end.
    pub(super) fn line(&self) -> &'a [u8] {
        let line = self.file.get(self.base..self.base + self.length).unwrap_or_default();
        line.strip_suffix(b"\n").unwrap_or(line)
    }

    pub(super) fn at(&self, at: usize) -> u8 {
        self.buffer.get(at).copied().unwrap_or(0)
    }

    pub(super) fn cut(&mut self, at: usize) {
        if let Some(byte) = self.buffer.get_mut(at) {
            *byte = 0;
        }
    }

    /// Where the text that begins at `from` ends.
    pub(super) fn end(&self, from: usize) -> usize {
        let rest = self.buffer.get(from..).unwrap_or_default();
        from + memchr(0, rest).unwrap_or(rest.len())
    }

    /// Where `byte` stands in the text that begins at `from`.
    pub(super) fn find(&self, from: usize, byte: u8) -> Option<usize> {
        let at = from + memchr2(0, byte, self.buffer.get(from..)?)?;
        (self.at(at) == byte).then_some(at)
    }

    pub(super) fn skip_blanks(&self, mut from: usize) -> usize {
        while is_blank(self.at(from)) {
            from += 1;
        }
        from
    }

    pub(super) fn text(&self, range: &Range<usize>) -> Vec<u8> {
        self.buffer.get(range.clone()).unwrap_or_default().to_vec()
    }

    /// True if what stands at `at` is not of this line.
    pub(super) const fn is_behind(&self, at: usize) -> bool {
        at >= self.length
    }

    /// A stretch of the buffer, in the file; what is not of this line is at its end.
    pub(super) fn span(&self, range: &Range<usize>) -> Range<usize> {
        let length = self.line().len();
        let start = self.base + range.start.min(length);
        start..(self.base + range.end.min(length)).max(start)
    }

    /// The next word from `start` on, which ends where the text does.
    pub(super) fn token(&mut self, start: usize) -> Token {
        let from = self.skip_blanks(start);
        let equals = self.find(from, b'=');
        if let Some(at) = equals {
            self.cut(at);
        }
        let mut step = self.end(start) - start + 1;
        let name = self.trimmed(from);
        let value = equals.map(|at| {
            let from = self.skip_blanks(at + 1);
            step += self.end(from) - at;
            self.trimmed(from)
        });
        Token { name, value, step }
    }

    /// The text from `from` on, the blanks behind it cut off.
    fn trimmed(&mut self, from: usize) -> Range<usize> {
        let mut last = self.end(from);
        while last != from && (self.at(last) == 0 || is_blank(self.at(last))) {
            self.cut(last);
            last -= 1;
        }
        from..self.end(from)
    }
}
