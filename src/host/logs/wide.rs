//! UTF-16 as UTF-8, while it is read.

use std::io::{self, Read};

/// Reads UTF-16 and gives UTF-8. What is no character becomes U+FFFD.
pub(super) struct Wide<R> {
    inner: R,
    big_endian: bool,
    /// Bytes that are not taken yet: half a unit, or half a pair of surrogates.
    raw: Vec<u8>,
    /// UTF-8 that is not given yet.
    ready: Vec<u8>,
    given: usize,
}

impl<R: Read> Wide<R> {
    /// Of a stream behind its mark.
    pub(super) const fn new(inner: R, big_endian: bool) -> Self {
        Self { inner, big_endian, raw: Vec::new(), ready: Vec::new(), given: 0 }
    }

    /// Take more in; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        let read = self.inner.read(&mut buffer)?;
        self.raw.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let ends = read == 0;
        let mut units: Vec<u16> =
            self.raw
                .chunks_exact(2)
                .filter_map(|pair| <[u8; 2]>::try_from(pair).ok())
                .map(|pair| {
                    if self.big_endian {
                        u16::from_be_bytes(pair)
                    } else {
                        u16::from_le_bytes(pair)
                    }
                })
                .collect();
        // The second half of a pair may come with the next bytes.
        let high = units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        if high && !ends {
            units.pop();
        }
        self.raw.drain(..units.len() * 2);
        if ends && !self.raw.is_empty() {
            self.raw.clear();
            units.push(0xfffd);
        }
        self.ready.clear();
        self.given = 0;
        for c in char::decode_utf16(units) {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.ready.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(!ends || !self.ready.is_empty())
    }
}

impl<R: Read> Read for Wide<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given >= self.ready.len() {
            if !self.fill()? {
                return Ok(0);
            }
        }
        let rest = self.ready.get(self.given..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(rest) {
            *to = *from;
        }
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives one byte for each question, as a slow pipe does.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn text(bytes: &[u8], big_endian: bool) -> String {
        let mut slow = String::new();
        Wide::new(Slow(bytes), big_endian).read_to_string(&mut slow).expect("UTF-8");
        let mut fast = String::new();
        Wide::new(bytes, big_endian).read_to_string(&mut fast).expect("UTF-8");
        assert_eq!(slow, fast);
        fast
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(line in r"(\PC|\n){0,80}") {
            let units: Vec<u16> = line.encode_utf16().collect();
            let little: Vec<u8> = units.iter().flat_map(|u| u.to_le_bytes()).collect();
            let big: Vec<u8> = units.iter().flat_map(|u| u.to_be_bytes()).collect();
            prop_assert_eq!(text(&little, false), line.as_str());
            prop_assert_eq!(text(&big, true), line.as_str());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            text(&bytes, false);
            text(&bytes, true);
        }
    }
}
