//! Numbers as C reads them (`strtoul(text, &end, 0)`).

/// What was read, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    /// As 64 bits: all ones where it is larger, the complement where it is negative.
    pub value: u64,
    /// All of the text was read.
    pub whole: bool,
    /// It begins with 0 and another digit.
    pub is_octal: bool,
    /// It has no prefix and does not begin with 0.
    pub is_decimal: bool,
    /// It has a sign, or more than 64 bits.
    pub is_wrapped: bool,
}

pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Reads `text`; `None` where no digit begins it.
pub(super) fn read(text: &[u8]) -> Option<Number> {
    let mut rest = text;
    while let [first, after @ ..] = rest
        && is_space(*first)
    {
        rest = after;
    }
    let negative = rest.first() == Some(&b'-');
    if let [b'-' | b'+', after @ ..] = rest {
        rest = after;
    }
    let (radix, digits) = match rest {
        [b'0', b'x' | b'X', hex @ ..] if hex.first().is_some_and(u8::is_ascii_hexdigit) => {
            (16, hex)
        }
        [b'0', ..] => (8, rest),
        _ => (10, rest),
    };
    let mut value: Option<u64> = Some(0);
    let mut length = 0;
    for digit in digits.iter().map_while(|b| char::from(*b).to_digit(radix)) {
        value = value
            .and_then(|v| v.checked_mul(radix.into()))
            .and_then(|v| v.checked_add(digit.into()));
        length += 1;
    }
    if length == 0 {
        return None;
    }
    let read = match value {
        None => u64::MAX,
        Some(value) if negative => value.wrapping_neg(),
        Some(value) => value,
    };
    Some(Number {
        value: read,
        whole: length == digits.len(),
        is_octal: radix == 8 && length > 1,
        is_decimal: radix == 10,
        is_wrapped: value.is_none() || negative,
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        let value = |text: &str| read(text.as_bytes()).map(|n| (n.value, n.whole));
        for (text, expected) in [
            ("0x1F", Some((0x1f, true))),
            ("010", Some((8, true))),
            ("10", Some((10, true))),
            ("0", Some((0, true))),
            ("0x", Some((0, false))),
            ("08", Some((0, false))),
            ("4k", Some((4, false))),
            (" \r+7", Some((7, true))),
            ("-1", Some((u64::MAX, true))),
            ("0x1ffffffffffffffff", Some((u64::MAX, true))),
            ("0xfffffffffffffff5", Some((0xffff_ffff_ffff_fff5, true))),
            ("", None),
            ("x", None),
            ("-", None),
        ] {
            assert_eq!(value(text), expected, "{text:?}");
        }
    }
}
