//! Lines in a block of bytes, and a line as text.

use crate::names::mark;
use std::ops::Range;

use memchr::{memchr, memrchr};

/// A line is kept up to this many bytes.
pub(super) const LINE_LIMIT: usize = 4 * 1024;
/// Lines that a mailer makes of one.
pub(super) const JOINED: usize = 6;

/// The lines of a block, without their line breaks.
pub(super) fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let block = block.strip_suffix(b"\n").unwrap_or(block);
    block.split(|b| *b == b'\n')
}

/// The line that `at` is in.
pub(super) fn line_around(block: &[u8], at: usize) -> Range<usize> {
    let start = memrchr(b'\n', block.get(..at).unwrap_or_default()).map_or(0, |nl| nl + 1);
    let end = memchr(b'\n', block.get(at..).unwrap_or_default()).map_or(block.len(), |nl| at + nl);
    start..end
}

/// The lines around `hit` that may belong to its record.
pub(super) fn window(block: &[u8], hit: usize) -> Range<usize> {
    let line_start =
        |at: usize| memrchr(b'\n', block.get(..at).unwrap_or_default()).map_or(0, |nl| nl + 1);
    let next_line = |at: usize| {
        memchr(b'\n', block.get(at..).unwrap_or_default()).map_or(block.len(), |nl| at + nl + 1)
    };
    let mut start = line_start(hit);
    // A line that does not begin like a record may go on from the one above.
    let begins = block.get(start).is_some_and(|b| b.is_ascii_uppercase() || b"[<{2".contains(b));
    if !begins && start > 0 {
        start = line_start(start - 1);
    }
    let mut end = next_line(hit);
    // What follows is wanted only where it does not begin a record.
    for _ in 0..JOINED {
        match block.get(end) {
            Some(b) if !(b.is_ascii_uppercase() || b"[<{2\n".contains(b)) => end = next_line(end),
            _ => break,
        }
    }
    start..end
}

/// `raw` as text that may go to a terminal: at most [`LINE_LIMIT`] bytes,
/// without colours, other control characters replaced.
pub(super) fn clean(raw: &[u8]) -> String {
    let cut = raw.get(..LINE_LIMIT).unwrap_or(raw);
    let text = String::from_utf8_lossy(cut);
    if !text.bytes().any(|b| b < b' ' || b == 0x7f || b >= 0x80) {
        return text.into_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\t' => clean.push('\t'),
            '\r' => {}
            '\u{1b}' if rest.peek() == Some(&'[') => {
                // A colour or a movement of the cursor: `ESC [ 0;32 m`.
                rest.next();
                for c in rest.by_ref() {
                    if c.is_ascii_alphabetic() || !(c.is_ascii_digit() || c == ';' || c == '?') {
                        break;
                    }
                }
            }
            c => clean.push(mark(c)),
        }
    }
    clean
}
