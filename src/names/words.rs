//! Words that users type, what to say to one that means nothing, and how names are ordered.

use std::borrow::Cow;
use std::cmp::Reverse;

/// A type that is one of a few words, which strum derives from its variants. Its parser, what
/// its errors say that is possible, and the configuration's schema all come from this one list.
pub trait Words: Copy + Into<&'static str> + 'static {
    /// Every value, in the order in which users are told them.
    const ALL: &'static [Self];

    /// The word for it, as users type it, or as the kernel writes it.
    fn typed(self) -> &'static str {
        self.into()
    }

    /// The value with this word.
    fn from_typed(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.typed() == text)
    }

    /// All words that users may type, in the order of [`Words::ALL`].
    fn all_typed() -> Vec<&'static str> {
        Self::ALL.iter().map(|value| value.typed()).collect()
    }

    /// All words for a sentence: `"follow", "up" or "down"`.
    fn quoted() -> String {
        let quoted: Vec<String> =
            Self::ALL.iter().map(|value| format!("\"{}\"", value.typed())).collect();
        match quoted.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

impl<T: strum::VariantArray + Copy + Into<&'static str>> Words for T {
    const ALL: &'static [Self] = Self::VARIANTS;
}

/// Why a text is not what it is to be: `"x" is not a GUID: expected 16 hex digits`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} {why}")]
pub struct BadText {
    text: String,
    why: &'static str,
}

impl BadText {
    /// That `text` is bad; `why` says what it is not, and what is expected.
    pub(super) fn new(text: &str, why: &'static str) -> Self {
        Self { text: beginning(text), why }
    }
}

/// As much of a bad text as a message repeats.
pub fn beginning(text: &str) -> String {
    text.chars().take(64).collect()
}

/// A bad text as a message repeats it: in quotes and escaped.
pub fn shown(text: &str) -> String {
    format!("{:?}", beginning(text))
}

/// True for a character of a plain name.
pub(super) const fn is_plain_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// `word` for a command that is told: one word of sh, whatever it has in it.
pub fn sh(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| is_plain_char(c) || matches!(c, '/' | ':' | '@');
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

/// The same of several.
pub fn sh_words<W: AsRef<str>>(words: &[W]) -> String {
    words.iter().map(|word| sh(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// The one of `candidates` that is most like `word`, if any is: about a quarter of its
/// letters may differ.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // The time grows with the product of the lengths, and no name is longer.
    if word.len() > 64 {
        return None;
    }
    let distances = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate));
    distances
        .filter(|(distance, candidate)| {
            // Of more than half of the letters, it is another word.
            *distance <= 1 + candidate.len() / 4 && *distance * 2 <= word.len()
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// What there is instead, for a message: `ib0, ib1`, or `none`. More than a dozen are
/// counted.
pub fn present(names: impl IntoIterator<Item = String>) -> String {
    let names: Vec<String> = names.into_iter().collect();
    if names.is_empty() { "none".to_owned() } else { first(&names, 12) }
}

/// `items` with what is said of each, those of which the same is said together.
pub fn grouped<T, S: PartialEq>(
    items: impl IntoIterator<Item = T>,
    said: impl Fn(&T) -> S,
) -> Vec<(S, Vec<T>)> {
    let mut groups: Vec<(S, Vec<T>)> = Vec::new();
    for item in items {
        let of_item = said(&item);
        match groups.iter_mut().find(|(of_group, _)| *of_group == of_item) {
            Some((_, items)) => items.push(item),
            None => groups.push((of_item, vec![item])),
        }
    }
    groups
}

/// So many of `noun`: `1 VF`, `2 VFs`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The first few of these names, and how many there are more.
pub fn few<S: AsRef<str>>(names: &[S]) -> String {
    first(names, 4)
}

/// The first of these names, at most so many, and how many there are more.
pub fn first<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// How many letters must be added, dropped or changed to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for ((cb, pair), left_at) in b.iter().zip(row.windows(2)).zip(0..) {
            let [above_left, above] = pair else { continue };
            let left = next.get(left_at).copied().unwrap_or(usize::MAX - 1);
            let change = above_left + usize::from(ca != *cb);
            next.push(change.min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

/// A part of a name: digits count as a number.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// By its length without zeros in front, then by its digits.
    Number(usize, String),
    Text(String),
}

/// How names and versions are ordered by people: 6.1.0-9 before 6.1.0-56, c2 before c10.
pub fn natural(name: &str) -> (Vec<Part>, Reverse<usize>) {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(match is_number {
            true => {
                let digits = part.trim_start_matches('0');
                Part::Number(digits.len(), digits.to_owned())
            }
            false => Part::Text(part.to_owned()),
        });
        rest = after;
    }
    (parts, Reverse(name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word_of_sh() {
        for (name, word) in [
            ("ib0.8001", "ib0.8001"),
            ("vm@9.service", "vm@9.service"),
            (r"mnt-a\x2db.mount", r"'mnt-a\x2db.mount'"),
            ("$(id)", "'$(id)'"),
            ("vm 1", "'vm 1'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(sh(name), word);
        }
    }

    #[test]
    fn distance_counts_letters() {
        for (a, b, want) in [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3)] {
            assert_eq!(distance(a, b), want, "{a} {b}");
        }
    }

    #[test]
    fn a_dozen_names_are_listed_and_the_rest_is_counted() {
        let names = |n: u32| present((0..n).map(|i| format!("ib{i}")));
        assert_eq!(names(0), "none");
        assert_eq!(names(2), "ib0, ib1");
        assert!(names(12).ends_with(", ib11"), "{}", names(12));
        assert!(names(14).ends_with(", ib11 and 2 more"), "{}", names(14));
    }

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let codes = ["ordering-cycle", "openibd-disabled", "healthy"];
        assert_eq!(nearest("ordering-cycel", codes), Some("ordering-cycle"));
        assert_eq!(nearest("helthy", codes), Some("healthy"));
        assert_eq!(nearest("network", codes), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), codes), None);
    }
}
