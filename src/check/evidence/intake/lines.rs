//! Lines in a block of bytes, a line as text, and lines that a mailer or a terminal broke.

use std::ops::Range;

use memchr::{memchr, memrchr};

use crate::check::evidence::header::Header;
use crate::check::evidence::state::{begins_dump, typed};
use crate::names::mark;

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

/// Mailers break at 66 to 78 columns; a line as long as this was not broken.
const LONGEST: usize = 81;
/// Where mailers begin to break.
const SHORTEST: usize = 66;
/// Where old terminals break, in the middle of a word.
const TERMINAL: usize = 80;

/// How `next` continues `last`, the line above it: the text to put between
/// them, or `None` if it does not. `record` tells that `last` belongs to a log
/// record.
pub(super) fn joint(record: bool, last: &str, next: &Header<'_>) -> Option<&'static str> {
    // A prompt begins something new, and the mark of a start script, `[  OK  ]`, ends its line.
    let is_marked = last.trim_end().ends_with("  ]");
    let text = next.text.trim();
    let is_new = next.begins_record() || typed(text).is_some() || begins_dump(text);
    if !record || is_marked || is_new {
        return None;
    }
    let word = text.split_whitespace().next()?;
    let length = last.chars().count();
    if length == TERMINAL && !last.ends_with(' ') && !next.text.starts_with(' ') {
        return Some("");
    }
    // Broken because the next word had no place.
    let broken = length < LONGEST && length + 1 + word.chars().count() > SHORTEST;
    broken.then_some(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evidence::header::header;

    fn joint_of(last: &str, next: &str) -> Option<&'static str> {
        joint(header(last).begins_record(), last, &header(next))
    }

    #[test]
    fn broken_lines_are_told_from_new_ones() {
        let long = "[   94.866908] mlx5_core 0000:0b:00.0: init_one:1329:(pid 13): mlx5_load_one";
        assert_eq!(joint_of(long, "failed with error code -22"), Some(" "));
        assert_eq!(joint_of(long, "[   94.879657] mlx5_core: probe"), None);
        assert_eq!(joint_of(long, ""), None);
        assert_eq!(joint_of(long, "[root@n1 ~]# ibstat"), None);
        assert_eq!(joint_of("[    1.0] short", "$ ibstatus"), None);
        let marked = "Apr 02 11:09:43 n9 network: Bringing up interface ib0:        [  OK  ]";
        assert_eq!(joint_of(marked, "ibv_reg_mr() failed, errno: 12"), None);
        assert_eq!(
            joint_of(
                "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN",
                "group"
            ),
            None
        );
    }
}
