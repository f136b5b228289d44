//! Reading a value out of a message whose wording is known.

/// The values at the `{}` places of `pattern`, which may begin and end
/// anywhere in `text`: literal pieces are found leftmost, one after the other.
/// A trailing `{}` takes the rest. `None` if a piece is missing.
///
/// `N` must be the number of `{}` in the pattern.
pub fn caught<'a, const N: usize>(text: &'a str, pattern: &str) -> Option<[&'a str; N]> {
    let mut pieces = pattern.split("{}");
    let first = pieces.next()?;
    let mut rest = text.get(text.find(first)? + first.len()..)?;
    let mut values = [""; N];
    let mut places = values.iter_mut();
    for piece in pieces {
        let place = places.next()?;
        let end = if piece.is_empty() { rest.len() } else { rest.find(piece)? };
        *place = rest.get(..end)?;
        rest = rest.get(end + piece.len()..)?;
    }
    places.next().is_none().then_some(values)
}

/// The single value at the `{}` of `pattern`.
pub fn caught_one<'a>(text: &'a str, pattern: &str) -> Option<&'a str> {
    caught::<1>(text, pattern).map(|[value]| value)
}

/// The first word of `text`: up to white space or one of `,;()'"`.
pub fn word(text: &str) -> &str {
    let text = text.trim_start();
    text.split(|c: char| c.is_whitespace() || ",;()'\"".contains(c)).next().unwrap_or_default()
}

/// True if one of `words` stands in `text`.
pub fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// True if `needle` stands in `text` with no letter, digit or `_` beside it.
pub fn has_word(text: &str, needle: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(needle).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let after = text.get(at + needle.len()..).and_then(|t| t.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_caught_between_the_literals() {
        let text = "mlx5_core: probe of 0000:0b:00.0 failed with error -22";
        assert_eq!(
            caught::<2>(text, "probe of {} failed with error {}"),
            Some(["0000:0b:00.0", "-22"])
        );
        assert_eq!(caught::<2>(text, "probe of {} failed with errno {}"), None);
        assert_eq!(caught_one(text, "{}: probe of"), Some("mlx5_core"));
        assert_eq!(word("  ib0: x"), "ib0:");
        assert!(has_word("on ib0.", "ib0") && !has_word("ib0_1 xib0", "ib0"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,80}", a in ".{0,4}", b in ".{0,4}") {
            let pattern = format!("{a}{{}}{b}{{}}");
            caught::<2>(&text, &pattern);
            caught::<1>(&text, &pattern);
            has_word(&text, "ib0");
            word(&text);
        }
    }
}
